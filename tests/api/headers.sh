# SPDX-License-Identifier: Apache-2.0
# Each public header compiles by itself, without a warning, in every C and C++ we promise.

CXX=${CXX-c++}
out=tests/headers.tmp
mkdir -p $out
trap 'rm -rf $out' EXIT
failures=0 count=0

compile()       # HEADER COMPILER STANDARD SUFFIX
{
    # The second inclusion must be harmless too.
    printf '#include "%s"\n#include "%s"\nint made_of_nothing;\n' "$1" "$1" > $out/alone.$4
    count=$((count + 1))
    $2 -std=$3 -pedantic -Wall -Wextra -Werror -DCL_TARGET_OPENCL_VERSION=120 -I"$srcdir/lib" -c $out/alone.$4 -o $out/alone.o ||
        { echo "$1 does not compile: $2 -std=$3"; failures=$((failures + 1)); }
}

for header in vernier.h vernier_cuda.h vernier_opencl.h; do
    for standard in c99 c11 c17 c2x; do
        compile $header "$CC" $standard c
    done
    if command -v "$CXX" > /dev/null; then
        for standard in c++11 c++14 c++17 c++20; do
            compile $header "$CXX" $standard cpp
        done
    else
        echo "C++ left out: install g++"
    fi
done
if command -v "$CXX" > /dev/null; then
    for standard in c++17 c++20 'c++17 -fno-exceptions'; do
        compile vernier.hpp "$CXX" "$standard" cpp
    done
fi
echo "$count compiled, $failures failures"
[ $failures = 0 ]
