#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# musl.sh: this commit's library, built by musl-gcc against musl's libc; and a program that is linked with it, loads it and
# asks for its devices.  The headers of OpenCL and xxHash, and libOpenCL, are those of the system, which is why nothing
# more than that can run here: that libOpenCL is glibc's, and stands in as an empty library.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
command -v musl-gcc > /dev/null || { echo "install musl-tools"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/vernier" "$work/include" "$work/lib"
git -c safe.directory='*' -C "$top" archive HEAD | tar -x -C "$work/vernier"
ln -s /usr/include/CL /usr/include/xxhash.h "$work/include"

# Each OpenCL function that the library calls, doing nothing: there are no platforms.
grep -rhoE '\bcl[A-Z][A-Za-z]*\(' "$work/vernier/backends/opencl" "$work/vernier/vendors" | tr -d '(' | sort -u |
    awk '{ printf "int %s(void) { return -1; }\n", $1 }' > "$work/opencl.c"
musl-gcc -shared -fPIC "$work/opencl.c" -o "$work/lib/libOpenCL.so"

cd "$work/vernier"
autoreconf -fi > /dev/null 2>&1
./configure -q --without-tools CC=musl-gcc CPPFLAGS="-I$work/include" LDFLAGS="-L$work/lib" > /dev/null
make -s -j2 libvernier.la libvernier_cblas.la > /dev/null
cat > devices.c <<'END_OF_C'
#include <stdio.h>
#include <vernier.h>

int main(void)
{
    vn_device *d;
    const vn_status s = vn_device_open(&d, NULL);

    printf("vernier %s: %s, %s\n", vn_version(), vn_status_name(s), vn_last_error());
    return s != VN_NO_DEVICE;
}
END_OF_C
musl-gcc -Ilib devices.c -o devices .libs/libvernier.so -L"$work/lib" -lOpenCL
LD_LIBRARY_PATH=$PWD/.libs:$work/lib ./devices
readelf -d .libs/libvernier.so | grep NEEDED
