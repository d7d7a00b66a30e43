# SPDX-License-Identifier: Apache-2.0
# Both vocabularies define the same words, with the same arguments, in the same order.
# What a file takes back with #undef is its own affair.

words()
{
    sed -n 's/^#undef \([A-Za-z_0-9]*\).*/undef \1/p; s/^#define \([A-Za-z_0-9]*\)\(([^)]*)\)\{0,1\}.*/\1 \2/p' "$1" |
    awk '$1 == "undef" { gone[$2] = 1; next }
                       { name[++n] = $1; line[n] = $0 }
         END           { for (i = 1; i <= n; i++) if (!(name[i] in gone)) print line[i] }'
}

out=tests/words.tmp
mkdir -p $out
trap 'rm -rf $out' EXIT
words "$srcdir/cl/words.h"   > $out/cl
words "$srcdir/cuda/words.h" > $out/cuda
test -s $out/cl || { echo "cl/words.h defines no word"; exit 1; }
diff $out/cl $out/cuda && echo "$(wc -l < $out/cl) words, the same in both"
