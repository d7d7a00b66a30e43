# SPDX-License-Identifier: Apache-2.0
# The first C program of README.md compiles as it stands, is as short as promised, and runs.

out=tests/readme.tmp
rm -rf $out
mkdir -p $out
trap 'rm -rf $out' EXIT

awk '/^```c$/ { on = 1; next } /^```/ && on { exit } on' "$srcdir/README.md" > $out/program.c
lines=$(grep -c . $out/program.c)
[ "$lines" -ge 5 ] && [ "$lines" -le 20 ] || { echo "the program of README.md has $lines lines, not up to 20"; exit 1; }

sanitizers=                     # of --enable-sanitizers: the program needs them as well
objdump -p .libs/libvernier.so 2> /dev/null | grep -q 'NEEDED *lib.*san' && sanitizers=-fsanitize=address,undefined

./libtool --quiet --tag=CC --mode=link "$CC" $sanitizers -std=c99 -pedantic -Wall -Wextra -Werror -I"$srcdir/lib" \
    $out/program.c libvernier.la -o $out/program || exit 1
$out/program > $out/printed || { echo "it exits with $?"; exit 1; }
cat $out/printed

# What README.md says that it prints is what it prints.
awk '/^```c$/ { seen = 1 } seen && /^```text$/ { on = 1; next } /^```/ && on { exit } on' "$srcdir/README.md" |
    diff - $out/printed
