# SPDX-License-Identifier: Apache-2.0
# Each row of each variant on a matrix engine of AMD or Intel, as a compiler sees it: the matrix
# instruction stands in an innermost loop, as often as the row says; AMD's kernels keep all in
# registers and take no more local memory than there is.  tests/kernels/emulation says that they are right.

. "$srcdir/tests/kernels/compilers.sh"

out=$PWD/tests/engines.tmp
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT
failed=0 kernels=0 left_out=

# The count that the row of a text says, where each output shows it.
counted()
{
    case $1 in
    */gemm_* | */conv_*) count='BLK_K / MATRIX_K * MATRIX_BLOCKS_M * MATRIX_BLOCKS_N' ;;
    *) count='COLUMNS * (HEAD / MATRIX_K * KEY_BLOCKS + BLK_N / MATRIX_K * SUM_BLOCKS)' ;;
    esac
    echo "
CONSTANT const int vn_counted = $count * MATRIX_STEPS;
KERNEL(1) void count(GLOBAL int *to) { *to = vn_counted; }"
}

# loops INSTRUCTION: of the numbered lines on standard input, how often the pattern is within each
# loop that has it and no other such loop within.  A loop is what lies between a label and a branch back to it.
loops()
{
    awk -v pattern="$1" '
        function label(name) { where[name] = NR }
        function branch(name) { if (name in where) { from[++n] = where[name]; to[n] = NR } }
        /^\.?[A-Za-z_0-9]+:/           { sub(/:.*/, "", $1); label($1) }
        /^%[0-9A-Za-z_]+ = OpLabel/    { label($1) }
        /^[ \t]+s_c?branch/            { branch($2) }
        /^  br label/                  { sub(/^%/, "", $3); branch($3) }
        /^  br i1/                     { gsub(/[%,]/, ""); branch($5); branch($7) }
        /^OpBranch /                   { branch($2) }
        /^OpBranchConditional /        { branch($3); branch($4) }
        $0 ~ pattern                   { at[++m] = NR }
        END {
            for (i = 1; i <= n; i++) {
                hits[i] = 0
                for (k = 1; k <= m; k++) hits[i] += at[k] >= from[i] && at[k] <= to[i]
            }
            for (i = 1; i <= n; i++) {
                inner = 1
                for (j = 1; j <= n; j++)
                    inner = inner && !(hits[j] && j != i && from[j] >= from[i] && to[j] <= to[i] && to[j] - from[j] < to[i] - from[i])
                if (inner && hits[i]) print hits[i]
            }
        }' | sort -n | uniq | tr '\n' ' '
}

# check TEXT COUNT LOOPS: all innermost loops with the instruction have it COUNT times.
check()
{
    kernels=$((kernels + 1))
    if [ -n "$2" ] && [ "$3" = "$2 " ]; then
        return
    fi
    echo "not ok: $1: ${3:-no }matrix instructions in a loop, not $2"
    failed=$((failed + 1))
}

# Of gemm and attention, all rows; of conv, not each of them with all values of its constants.
texts()
{
    rm -rf "$out/rows" "$out/pairs"
    mkdir "$out/rows" "$out/pairs"
    tests/kernels/texts opencl "$1" "$out/rows" rows > "$out/all" &&
        tests/kernels/texts opencl "$1" "$out/pairs" rows pairs > "$out/some" || exit 1
    grep -E "/(gemm|attention)_(mfma|wmma|dpas8?)\." "$out/all" > "$out/list" || { echo "no row for $1"; exit 1; }
    grep -E "/conv_(mfma|wmma|dpas)\." "$out/some" >> "$out/list" || { echo "no row of conv for $1"; exit 1; }
    while read -r text; do counted "$text" >> "$text"; done < "$out/list"
}

# What a kernel's description says of a thing: that of the larger kernel, the other has none.
described()
{
    sed -n "s/^ *-\{0,1\} *\.$1: *\([0-9]*\)/\1/p" "$2" | sort -n | tail -n 1
}

amd()
{
    texts "amd/$1"
    command_of "$1"
    xargs -P "$(getconf _NPROCESSORS_ONLN)" -I TEXT $command -O3 -include "$header" -S TEXT -o TEXT.s \
        < "$out/list" > "$out/said" 2>&1 ||
        { echo "not ok: $1: a row does not compile"; head -n 40 "$out/said"; exit 1; }
    while read -r text; do
        name="$1 ${text##*/}"
        in_loops=$(loops '^[ \t]+v_(mfma|wmma)_' < "$text.s")
        # Of attention, a branch back from a block that is out of line looks like a loop within the loop.
        case $name in *attention_*) in_loops=$(echo "$in_loops" | awk '{ print $NF " " }') ;; esac
        check "$name" "$(sed -n '/^vn_counted:/{n;s/.*\.long[ \t]*\([0-9]*\).*/\1/p;}' "$text.s")" "$in_loops"
        # Nothing is spilt by a product, and what an epilogue adds spills little, even all at once.
        for what in vgpr_spill_count sgpr_spill_count private_segment_fixed_size; do
            case $text in *.added*) [ "$(described $what "$text.s")" -le 128 ] ;;
                          *) [ "$(described $what "$text.s")" = 0 ] ;; esac ||
                { echo "not ok: $name: $what is $(described $what "$text.s")"; failed=$((failed + 1)); }
        done
        [ "$(described group_segment_fixed_size "$text.s")" -le 65536 ] ||
            { echo "not ok: $name: more than 64 KiB of local memory"; failed=$((failed + 1)); }
        echo "$name: $(described vgpr_count "$text.s") registers," \
            "$(described group_segment_fixed_size "$text.s") bytes of local memory"
    done < "$out/list"
}

# Intel's compiler takes SPIR-V as it comes, with its loops still rolled, and calls by the name that
# OpenCL C gives a built-in function.  How many calls there are, unrolled, is seen in LLVM's words.
intel()
{
    texts intel/intel
    command_of spir64-intel
    compile="$command -include $header -emit-llvm"
    function='_Z[0-9]*intel_sub_group_b?f16_b?f16_matrix_mad_k16'
    while read -r text; do
        $compile -O1 -S "$text" -o "$text.s" > "$out/said" 2>&1 && $compile -O0 -c "$text" -o "$text.bc" >> "$out/said" 2>&1 &&
            "$translate" --spirv-ext=+SPV_INTEL_subgroups "$text.bc" -o "$text.spv" >> "$out/said" 2>&1 &&
            spirv-val "$text.spv" >> "$out/said" 2>&1 && spirv-dis --raw-id --no-indent "$text.spv" -o "$text.dis" ||
            { echo "not ok: ${text##*/} does not become SPIR-V"; head -n 40 "$out/said"; failed=$((failed + 1)); continue; }
        check "LLVM ${text##*/}" "$(sed -n 's/^@vn_counted = .*constant i32 \([0-9]*\).*/\1/p' "$text.s")" \
            "$(loops "call .*@$function" < "$text.s")"
        called=$(sed -nE "s/^OpName (%[0-9]*) \"$function.*/\1/p" "$text.dis")
        check "SPIR-V ${text##*/}" 1 "$(loops "OpFunctionCall %[0-9]+ ${called:-none} " < "$text.dis")"
    done < "$out/list"
}

if command -v clang-19 > /dev/null; then
    for arch in gfx908 gfx90a gfx942 gfx1100 gfx1201; do
        amd $arch
    done
else
    left_out="$left_out clang-19"
fi

for translate in llvm-spirv-15 llvm-spirv-19 llvm-spirv; do
    command -v $translate > /dev/null && break
done
if command -v clang-15 > /dev/null && command -v $translate > /dev/null && command -v spirv-dis > /dev/null; then
    intel
else
    left_out="$left_out clang-15, llvm-spirv, spirv-tools"
fi

echo "COUNT engines $kernels"
[ -z "$left_out" ] || echo "left out, for want of:$left_out"
[ $failed = 0 ] || exit 1
[ $kernels != 0 ] || exit 77
