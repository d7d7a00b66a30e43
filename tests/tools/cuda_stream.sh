# SPDX-License-Identifier: Apache-2.0
# examples/cuda_stream.c: it compiles where CUDA's headers are, and runs where a driver is, too.

cuda=${CUDA_HOME-$(nvcc=$(command -v nvcc) && dirname "$(dirname "$(readlink -f "$nvcc")")")}
[ -f "${cuda:-/usr}/include/cuda.h" ] || { echo "skipped: install CUDA's toolkit, or set CUDA_HOME"; exit 77; }
case $(objdump -p .libs/libvernier.so 2> /dev/null) in
*NEEDED*san.so*) echo "skipped: with sanitizers the program would need them too"; exit 77 ;;
esac
out=$PWD/tests/cuda_stream.tmp
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT

$CC -std=gnu99 -Wall -Wextra -Werror -I"$srcdir/lib" -I"${cuda:-/usr}/include" -c "$srcdir/examples/cuda_stream.c" \
    -o "$out/cuda_stream.o" || exit 1
driver=$(ldconfig -p 2> /dev/null | sed -n 's/.*libcuda\.so\.1 .*=> //p' | head -n 1)
[ -n "$driver" ] || { echo "skipped: it compiles, and there is no driver of CUDA to run it"; exit 77; }
./libtool --quiet --tag=CC --mode=link $CC "$out/cuda_stream.o" libvernier.la "$driver" -lm -o "$out/cuda_stream" || exit 1
"$out/cuda_stream"
