# SPDX-License-Identifier: Apache-2.0
# vernier.hpp on the library that was built here: with exceptions and without, in C++17 and C++20.

CXX=${CXX-c++}
out=tests/cpp.tmp
rm -rf $out
mkdir -p $out
trap 'rm -rf $out' EXIT

command -v "$CXX" > /dev/null || { echo "skipped: install g++"; exit 77; }
sanitizers=                     # of --enable-sanitizers: the program needs them as well
objdump -p .libs/libvernier.so 2> /dev/null | grep -q 'NEEDED *lib.*san' && sanitizers=-fsanitize=address,undefined

for flags in -std=c++17 '-std=c++20 -fno-exceptions'; do
    $CXX $flags $sanitizers -O1 -pedantic -Wall -Wextra -Wshadow -Werror -I"$srcdir/lib" "$srcdir/tests/api/cpp.cpp" \
        .libs/libvernier.so -Wl,-rpath,"$PWD/.libs" -o $out/program || { echo "it does not compile: $flags"; exit 1; }
    $out/program
    status=$?
    [ $status = 0 ] || { echo "^ $flags"; exit $status; }
done
