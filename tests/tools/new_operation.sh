# SPDX-License-Identifier: Apache-2.0
# A fourth operation, the Euclidean norm of rows, is added to a copy of this tree as README.md says: by
# files of its own (tests/tools/new_operation/) and at most six lines elsewhere.  It must then be chosen, its
# kernel cached, its second call warm; and vernier check and bench must know it.

[ -x ./vernier ] || { echo "skipped: the command is not built"; exit 77; }
./vernier devices > /dev/null 2>&1 || { echo "skipped: there is no device"; exit 77; }
command -v autoreconf > /dev/null || { echo "skipped: install autoconf, automake and libtool"; exit 77; }

most=6
out=$PWD/tests/new_operation.tmp
rm -rf "$out"
mkdir -p "$out/build"
trap 'chmod -R u+w "$out"; rm -rf "$out"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
failures=0

fail()
{
    echo "$*"
    failures=$((failures + 1))
}

step()          # WHAT COMMAND...
{
    what=$1
    shift
    "$@" > "$out/said" 2>&1 && return
    echo "failed: $what"
    tail -n 40 "$out/said"
    exit 1
}

# ---- the tree, and the operation -------------------------------------------------------

step "a copy of the tree" "$MAKE" distdir distdir="$out/before"
chmod -R u+w "$out/before"
cp -Rp "$out/before" "$out/tree"
for folder in lib cl tools; do
    cp -R "$srcdir/tests/tools/new_operation/$folder" "$out/tree"
done

# after FILE LINE NEW: in the tree, the line NEW after the one that is LINE.
after()
{
    awk -v line="$2" -v new="$3" '{ print } $0 == line { print new; n++ } END { exit n != 1 }' \
        "$out/tree/$1" > "$out/edited" || { echo "$1: there is not one line \"$2\""; exit 1; }
    cat "$out/edited" > "$out/tree/$1"
}

after Makefile.am            'include lib/softmax/sources.mk' 'include lib/l2norm/sources.mk'
after Makefile.am            'include cl/softmax/sources.mk'  'include cl/l2norm/sources.mk'
after lib/operations.h       'OPERATION(softmax)'             'OPERATION(l2norm)'
after lib/vernier.h          \
    'VN_API vn_status vn_softmax(vn_queue *q, vn_tensor x, vn_tensor y, const vn_softmax_options *o);' \
    'VN_API vn_status vn_l2norm(vn_queue *q, vn_tensor x, vn_tensor y, const char *variant);'
after tools/problem/ops.h    'OP(softmax)'                    'OP(l2norm)'
after tools/problem/sources.mk '# The operations of ops.h: how each is said and run, its oracle, and its cases in the suite.' \
    'libproblem_la_SOURCES += %D%/l2norm.c %D%/l2norm.h tools/check/oracle/l2norm.c tools/check/suite_l2norm.c'

# What is said of the lines: how many, and that README.md names each file.
diff -r "$out/before" "$out/tree" > "$out/changes"
lines=$(grep -c '^[<>]' "$out/changes")
echo "$lines lines outside its own files:"
grep '^[<>]' "$out/changes"
[ "$lines" -le $most ] || fail "they are more than $most"
sed -n '/^\*\*An operation\.\*\*/,/^$/p' "$srcdir/README.md" > "$out/paragraph"
for file in $(sed -n "s|^diff -r $out/before/\([^ ]*\) .*|\1|p" "$out/changes"); do
    grep -qF "\`$file\`" "$out/paragraph" || fail "README.md does not say that $file needs a line"
done

# ---- built ------------------------------------------------------------------------------

step "autoreconf" autoreconf -i "$out/tree"
cd "$out/build" || exit 1
step "configure" ../tree/configure --disable-shared --without-cuda CC="$CC" CFLAGS=-O0
step "make" "$MAKE" -j2 vernier
step "a program" ./libtool --quiet --tag=CC --mode=link "$CC" -std=gnu99 -DHAVE_CONFIG_H -I. -I../tree/lib -I../tree/tools \
    ../tree/tests/tools/new_operation/warm.c ../tree/tools/problem/values.c -o warm libproblem.la libcore.la \
    -Wl,--wrap=vn__choose -Wl,--wrap=vn__launch -lOpenCL -lm

# ---- used -------------------------------------------------------------------------------

VERNIER_CACHE_DIR=$out/cache
export VERNIER_CACHE_DIR
problem=l2norm:100x1000:f32

says()          # WHAT PATTERN: in the output of the last command.
{
    grep -q "$2" "$out/said" || { fail "$1; it said:"; tail -n 20 "$out/said"; }
}

VERNIER_LOG=choose,build,cache ./vernier explain $problem > "$out/said" 2>&1 || fail "vernier explain exits with $?"
says "it is not chosen"         '^variant  *l2norm$'
says "its row is not the shipped one" '^row  *shipped  *ITEMS='
says "its kernel is not built"  'kernel: built in'
says "its kernel is not stored" 'kernel: [0-9]* bytes stored'

VERNIER_LOG=build,cache ./vernier explain $problem > "$out/said" 2>&1 || fail "vernier explain exits with $?, again"
says "its kernel is not loaded" 'kernel: [0-9]* bytes loaded'

./warm $problem > "$out/said" || fail "two calls: it exits with $?"
says "the first call"                      '^call 1: 1 chosen, 1 launched$'
says "the second call is not a warm one"   '^call 2: 0 chosen, 1 launched$'

./vernier check --quick l2norm --json "$out/check.json" > "$out/said" 2>&1 || { fail "vernier check exits with $?"; cat "$out/said"; }
for kind in exact real special; do
    says "no $kind cases" "^COUNT $kind [1-9]"
done
says "a case failed" '^[0-9]* cases, 0 failed'

./vernier bench $problem --budget 0.1 > "$out/said" 2>&1 || fail "vernier bench exits with $?"
says "it is not measured" "^$problem  *l2norm  *FMA f32  *[0-9]"

echo "$failures failures"
[ $failures = 0 ]
