# SPDX-License-Identifier: Apache-2.0
from spack.package import *


class Vernier(AutotoolsPackage):
    """GEMM, convolution, softmax, attention and cross-entropy on any OpenCL device, through one C API."""

    homepage = "https://github.com/vernier/vernier"
    git = "https://github.com/vernier/vernier.git"

    license("Apache-2.0")

    version("main", branch="main")

    variant("tools", default=True, description="Build the command vernier")
    variant("cuda", default=True, description="Build the CUDA backend, which looks for CUDA at run time")

    depends_on("c", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("opencl")
    depends_on("xxhash", type="build")
    depends_on("jansson@2.7:", when="+tools")

    def configure_args(self):
        return self.with_or_without("tools") + self.with_or_without("cuda")

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def list_devices(self):
        if self.spec.satisfies("+tools"):
            Executable(self.prefix.bin.vernier)("devices")
