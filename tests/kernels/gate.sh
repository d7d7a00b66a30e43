# SPDX-License-Identifier: Apache-2.0
# `make codegen` does what it is trusted with: each shipped tune row is among its texts; a kernel's
# hash depends on what the kernel computes, and not on names, comments and lines.

out=$PWD/tests/gate.tmp
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT
failed=0

complain()
{
    echo "not ok: $*"
    failed=$((failed + 1))
}

codegen()
{
    CODEGEN_CACHE=$out/cache sh "$srcdir/tests/kernels/codegen.sh" "$@"
}

# ---- every row -----------------------------------------------------------------------

# The texts for CPUs are those of spir64 and of x86-64 alike.
TARGETS=$(codegen targets | grep -v ^x86 | tr '\n' ' ')
export TARGETS
codegen dump tests/kernels/texts "$out/all" && codegen list "$out/all" > "$out/list" || exit 1
awk '
    function pattern(glob) {
        gsub(/\./, "\\.", glob); gsub(/\*/, ".*", glob); gsub(/\?/, ".", glob)
        return "^" glob "$"
    }
    # A text is of all devices of its architecture, whatever device a row is for.
    function is_there(   i, j, found) {
        sub(/\/[^\/]*$/, "/*", $2)
        for (i = 1; i <= count[$1]; i++) {
            found = device[$1, i] ~ pattern($2) && backend[$1, i] ~ pattern($3) && type[$1, i] ~ pattern($4)
            for (j = 6; found && j <= NF && $j != "|"; j++)
                found = index(constants[$1, i], "," column[$1, j - 3] "=" $j ",")
            if (found) return 1
        }
        return 0
    }
    NR == FNR {
        split($4, part, ".")
        v = part[1]
        i = ++count[v]
        backend[v, i] = $2; type[v, i] = part[2]; constants[v, i] = "," $5 ","
        device[v, i] = $3 "/"
        next
    }
    { sub(/#.*/, "") }
    $1 == "columns" { for (j = 3; j <= NF; j++) column[$2, j] = $j; next }
    $1 == "space" || $1 == "rates" || $1 == "pin" || NF == 0 || $1 ~ /^(cublas|cudnn|clblast)$/ { next }
    { rows++ }
    !is_there() { print "no text is of the row: " $0; bad++ }
    END { print "COUNT rows " rows; exit bad != 0 || rows < 100 }
' "$out/list" $(find "$srcdir/cl" -name '*.tune') || complain "a row is not compiled"

# ---- same and changed ----------------------------------------------------------------

# Of each kind of target a short text: as it is; with other comments and lines; with another name of its
# kernel; and with another constant.
for target in sm_90a nvptx64-sm_90 gfx90a spir64-f32x8 x86-64-v3; do
    case $target in x86*) from=spir64-f32x8 ;; *) from=$target ;; esac
    for as in is noted named other; do
        mkdir -p "$out/$as/$target"
        case $as in
        is)    cat ;;
        noted) sed -e '/^#line/s/"/"elsewhere\//' \
                   -e '/^KERNEL/i /* a comment, "of two\nlines */ // and a half' ;;
        named) sed 's/gemm_sum/add_them_up/g' ;;
        other) sed 's/^#define ITEMS .*/#define ITEMS 16/' ;;
        esac < "$out/all/$from/gemm_splitk.f32.64" > "$out/$as/$target/gemm_splitk.f32.64"
    done
done

# expect TO SUMMARY, from the text as it is, with the number of texts for N.
expect()
{
    codegen compile "$out/$1" "$out/$1.table" > "$out/said" || { cat "$out/said"; exit 1; }
    said=$(codegen differences "$out/is.table" "$out/$1.table" "$out/report" | tail -n 1)
    [ "$said" = "$(echo "$2" | sed "s/N/$texts/")" ] ||
        { complain "\"$1\": $said, not $2"; cat "$out/report"; }
}

codegen compile "$out/is" "$out/is.table" > "$out/said" || { cat "$out/said"; exit 1; }
grep '^left out' "$out/said"
texts=$(wc -l < "$out/is.table")
[ "$texts" != 0 ] || exit 77
awk '$1 ~ /^(sm_90a|gfx90a)$/ && !($4 > 0) || !($7 > 0) { bad = 1 } END { exit bad }' "$out/is.table" ||
    complain "figures are missing: $(cat "$out/is.table")"

expect noted "N same, 0 changed, 0 only here, 0 only there"
grep -q ' [1-9][0-9]* of them compiled now' "$out/said" &&
    complain "comments are compiled again: $(cat "$out/said")"
expect named "N same, 0 changed, 0 only here, 0 only there"
expect other "0 same, N changed, 0 only here, 0 only there"
rm -rf "$out/cache"
expect is    "N same, 0 changed, 0 only here, 0 only there"
echo "COUNT gate $texts"
[ $failed = 0 ]
