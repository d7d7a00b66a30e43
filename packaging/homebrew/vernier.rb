# SPDX-License-Identifier: Apache-2.0
class Vernier < Formula
  desc "GEMM, convolution, softmax and attention on any OpenCL device"
  homepage "https://github.com/vernier/vernier"
  license "Apache-2.0"
  head "https://github.com/vernier/vernier.git", branch: "main"

  depends_on "autoconf" => :build
  depends_on "automake" => :build
  depends_on "libtool" => :build
  depends_on "opencl-headers" => :build
  depends_on "pkgconf" => :build
  depends_on "xxhash" => :build
  depends_on "jansson"
  # Of Linux: the library uses what macOS lacks.
  depends_on :linux
  depends_on "opencl-icd-loader"

  def install
    system "autoreconf", "-fi"
    system "./configure", *std_configure_args, "--disable-silent-rules"
    system "make", "install"
  end

  test do
    (testpath/"test.c").write <<~C
      #include <stdio.h>
      #include <vernier.h>
      int main(void) { return puts(vn_version()) < 0; }
    C
    system ENV.cc, "test.c", "-I#{include}", "-L#{lib}", "-lvernier", "-o", "test"
    system "./test"
  end
end
