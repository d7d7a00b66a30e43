# SPDX-License-Identifier: Apache-2.0
# The compilers that need no device, for scripts that read this file: command_of TARGET sets
#
#     command    compiles an OpenCL text, or a CUDA one, for the target
#     needs      what must be there for it: a command's name, or NVRTC
#     header     what such a target's own library would declare; or nothing

command_of()
{
    header= opencl='-x cl -cl-std=CL1.2'
    case $1 in
    sm_* | compute_*)
        needs=NVRTC
        command="tests/kernels/nvrtc $1" ;;
    gfx*)
        needs=clang-19 header=$srcdir/tests/kernels/amdgcn.h
        command="$needs $opencl -Werror --target=amdgcn-amd-amdhsa -mcpu=$1 -nogpulib" ;;
    nvptx64-sm_*)
        needs=clang-19
        command="$needs $opencl --target=nvptx64-nvidia-nvcl -Xclang -target-cpu -Xclang ${1#*-}"
        command="$command -Dasm=__asm__" ;;
    spir64*)
        needs=clang-15
        command="$needs $opencl -Werror -Xclang -finclude-default-header --target=spir64-unknown-unknown"
        [ "$1" != spir64-intel ] || header=$srcdir/tests/kernels/intel.h ;;
    x86-64*)
        needs=clang-15
        command="$needs $opencl -Werror -Xclang -finclude-default-header --target=x86_64-unknown-linux-gnu"
        command="$command -march=$1 -Wno-psabi" ;;
    *)
        echo "there is no target $1"
        exit 2 ;;
    esac
}

# What the compiler that command_of asks for calls itself; nothing and 1 if there is none.
version_of()
{
    case $1 in
    NVRTC) tests/kernels/nvrtc --version > "$out/version" && cat "$out/version" ;;
    *)     command -v "$1" > /dev/null && "$1" --version | head -n 1 ;;
    esac
}
