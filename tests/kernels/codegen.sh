# SPDX-License-Identifier: Apache-2.0
# The machine code of every text of every shipped tune row, so that a change that should not alter
# code can be seen to alter none.
#
#     make codegen [TARGETS="sm_90a gfx90a"]
#         Writes codegen.table: a line for each text and target with the name of the text, a hash of
#         its code, registers (the most of its kernels), spills (all of its kernels), stack in bytes
#         (the most of its kernels), the size of its code, and its #defines.
#     make codegen-compare BASE=COMMIT [TARGETS=...]
#         Makes the table of a commit, too, as codegen.base, and compares each text: "same", "same as
#         NAME" (another text of the commit has that code), "changed" with what is different, "only
#         here" or "only there".  Texts whose names and code are the same are counted; codegen.report
#         lists them, too.  tests/kernels/codegen.names says what variants were called before.
#
# This is a report: it fails only where a text does not compile.  Targets:
#
#     sm_80, sm_90a      NVRTC: spills in bytes
#     gfx*               clang-19: registers of vectors and matrices together; spilled registers
#     x86-64-v*          clang-15 -O3, for CPUs: spills and reloads counted.  This is not all that PoCL
#                        does, which adds loops over work-items; our kernels for CPUs have one work-item
#     spir64*, nvptx64*  LLVM's language of clang-15, PTX of clang-19: size in lines; no registers
#
# A target whose compiler is missing is left out, and named.  What was compiled once is kept in
# $CODEGEN_CACHE, or codegen.cache, under a hash of the compiler, its options, and the text without
# comments and #line; JOBS says how many compile at once.
#
#     codegen.sh table OUT | compare BASE             what make calls
#     codegen.sh targets                              their names
#     codegen.sh dump PROGRAM DIRECTORY               all texts, DIRECTORY/TARGET/NAME
#     codegen.sh list DIRECTORY                       each with target, backend, device, and #defines
#     codegen.sh compile DIRECTORY OUT                their table
#     codegen.sh differences BASE_TABLE TABLE REPORT  of two tables

. "${srcdir:=.}/tests/kernels/compilers.sh"

LC_ALL=C
export LC_ALL

# The way that hashes are made: another number here forgets what is in caches.
form=1
cache=${CODEGEN_CACHE:-codegen.cache}
jobs=${JOBS:-$(getconf _NPROCESSORS_ONLN)}

# target, backend, device, and "wide" where texts with offsets of 64 bits are wanted too; each row of
# the tune files is for one of these devices.
devices='sm_80            cuda   nvidia/sm_80
sm_90a           cuda   nvidia/sm_90
nvptx64-sm_90    opencl nvidia/sm_90
gfx908           opencl amd/gfx908
gfx90a           opencl amd/gfx90a
gfx942           opencl amd/gfx942
gfx1100          opencl amd/gfx1100
gfx1201          opencl amd/gfx1201
spir64-intel     opencl intel/intel
spir64-other     opencl other/other
spir64-f32x16    opencl cpu/f32x16   wide
spir64-f32x8     opencl cpu/f32x8    wide
spir64-f32x4     opencl cpu/f32x4    wide
x86-64-v4        opencl cpu/f32x16   wide
x86-64-v3        opencl cpu/f32x8    wide
x86-64-v2        opencl cpu/f32x4    wide'

targets()
{
    echo "$devices" | awk '{ print $1 }'
}

# ---- texts ---------------------------------------------------------------------------

# dump PROGRAM DIRECTORY.  An older program takes either of the words "rows" and "wide".  A text of which a
# file is for CPUs by its name is left to them: GPUs may not have the local memory.
dump()
{
    VERNIER_TUNE=/dev/null
    export VERNIER_TUNE
    echo "$devices" > "$out/devices"
    while read -r target backend device wide; do
        case " ${TARGETS:-$target} " in *" $target "*) ;; *) continue ;; esac
        mkdir -p "$2/$target"
        "$1" "$backend" "$device" "$2/$target" rows $wide > "$out/paths" 2> "$out/said" ||
            for word in rows $wide; do
                "$1" "$backend" "$device" "$2/$target" $word || exit 1
            done > "$out/paths" || exit 1
        case $device in cpu/*) ;; *) xargs grep -l '^#line 1 ".*cpu' < "$out/paths" | xargs rm -f ;; esac
    done < "$out/devices"
}

# Leaves in $out/constants, for each text of the directory, the #defines that are written directly before a #line.
constants()
{
    awk -v constants="$out/constants" '
    function finish() { if (name != "") print name, (all == "" ? "-" : all) > constants }
    FNR == 1 { finish(); name = FILENAME; sub(/.*\//, "", name); all = run = "" }
    /^#line/ { all = all (all != "" && run != "" ? "," : "") run; run = ""; next }
    /^#define [A-Za-z_0-9]+ -?[A-Za-z_0-9]+$/ {
        if ($2 != "TYPE" && $2 != "WIDE") run = run (run != "" ? "," : "") $2 "=" $3
    }
    !/^#define [A-Za-z_0-9]+ |^#undef / { run = "" }
    END { finish() }' "$1"/*
}

# Leaves in $out/stripped/NAME what a compiler sees of each text of the directory, behind the
# header of the key.
strip()
{
    rm -rf "$out/stripped"
    mkdir "$out/stripped"
    awk -v to="$out/stripped/" -v header="$form $target $command $version" '
    FNR == 1 {
        if (path != "") close(path)
        name = FILENAME; sub(/.*\//, "", name); path = to name
        print header > path
        inside = continued = 0
    }
    /^#line/ { next }
    {
        line = $0; kept = ""
        while (line != "") {
            if (inside) {
                if (!(i = index(line, "*/"))) break
                line = substr(line, i + 2); inside = 0; kept = kept " "
                continue
            }
            if (!match(line, /["'\'']|\/\*|\/\//)) { kept = kept line; break }
            what = substr(line, RSTART, RLENGTH)
            kept = kept substr(line, 1, RSTART - 1)
            line = substr(line, RSTART)
            if (what == "/*") { inside = 1; line = substr(line, 3); continue }
            if (what == "//") { if (line ~ /\\$/) kept = kept line; break }
            if (what == "\"") match(line, /^"([^"\\]|\\.)*"?/)
            else              match(line, /^'\''([^'\''\\]|\\.)*'\''?/)
            kept = kept substr(line, 1, RLENGTH)
            line = substr(line, RLENGTH + 1)
        }
        sub(/[ \t]+$/, "", kept)
        if (kept != "" || continued) print kept > path
        continued = kept ~ /\\$/
    }' "$1"/*
}

# list DIRECTORY
list()
{
    echo "$devices" > "$out/devices"
    while read -r target backend device wide; do
        [ -d "$1/$target" ] || continue
        constants "$1/$target"
        sed "s|^|$target $backend $device |" "$out/constants"
    done < "$out/devices"
}

# ---- code ----------------------------------------------------------------------------

# PTX and LLVM's language without comments, notes and the names of what is defined in them: a hash, and
# how many instructions.
hash_assembly()
{
    awk -v sign="$2" '
    NR == FNR {
        if (match($0, sign == "@" ? "^define .*@[A-Za-z_0-9$.]+\\(" : "\\.entry[ \t]+[A-Za-z_0-9$]+\\(?$")) {
            line = substr($0, RSTART, RLENGTH)
            sub(/\($/, "", line); sub(/.*[@ \t]/, "", line)
            new[line] = "defined" ++count
        }
        next
    }
    /^[ \t]*(;|\/\/)/ || /^source_filename/ || /^!/ || /^[ \t]*\.(file|loc)[ \t]/ || /^$/ { next }
    {
        sub(/[ \t]*\/\/.*/, ""); sub(/[ \t]+;.*/, ";")
        gsub(/,? ![A-Za-z_.]+ ![0-9]+/, "")
        line = $0; done = ""
        while (match(line, sign "[A-Za-z_$][A-Za-z_0-9$.]*")) {
            word = name = substr(line, RSTART + length(sign), RLENGTH - length(sign))
            sub(/(_param_[0-9]+|\..*)$/, "", name)
            if (name in new) word = new[name] substr(word, length(name) + 1)
            done = done substr(line, 1, RSTART - 1) sign word
            line = substr(line, RSTART + RLENGTH)
        }
        print done line
    }' "$1" "$1" > "$1.bare"
    echo "$(sha256sum < "$1.bare" | cut -c 1-16) $(grep -c '^[[:space:]]' "$1.bare")"
}

# What compilers say of each kernel: registers, spills, stack.
figures()
{
    awk '
    function most(a, b) { return a + 0 > b + 0 ? a + 0 : b + 0 }
    { sub(/.*remark: */, "") }
    /Used [0-9]+ registers/           { sub(/.*Used /, ""); registers = most(registers, $1) }
    /bytes stack frame/               { sub(/^[^0-9]*/, ""); stack = most(stack, $1); spills += $4 + $8 }
    /^VGPRs: /                        { vectors = $2 }
    /^AGPRs: /                        { registers = most(registers, vectors + $2) }
    /^ScratchSize/                    { stack = most(stack, $3) }
    /^[SV]GPRs Spill: /               { spills += $3 }
    /stack bytes in function/         { stack = most(stack, $1) }
    /generated in function/           { for (i = 2; i <= NF; i++) if ($i ~ /^(spills|reloads)$/) {
                                            j = $(i - 1) == "folded" ? i - 2 : i - 1
                                            if ($j ~ /^[0-9]+$/) spills += $j } }
    END { printf "%s %d %d\n", registers == "" ? "-" : registers, spills, stack }' "$1"
}

# What becomes of a text, or 1 and what the compiler says in $said.
figures_of()
{
    target=$1 text=$2 code=$out/code.$$ said=$out/said.$$
    command_of "$target"
    case $target in
    sm_*)
        tests/kernels/nvrtc -o "$code" "$target" "$text" > "$said" 2>&1 &&
            hash=$(tests/kernels/machine_code "$code") ;;
    gfx* | x86-64*)
        case $target in
        gfx*) options='-O3 -ffunction-sections -Rpass-analysis=kernel-resource-usage' ;;
        *)    options='-O3 -ffunction-sections -Rpass-analysis=prologepilog -Rpass-missed=regalloc' ;;
        esac
        # The header has what matrix engines' kernels call, and not all that others do.
        { { [ -n "$header" ] && $command $options -include "$header" -c "$text" -o "$code"; } ||
            $command $options -c "$text" -o "$code"; } > "$said" 2>&1 &&
            hash=$(tests/kernels/machine_code "$code") ;;
    spir64*)
        $command ${header:+-include "$header"} -O1 -S -emit-llvm "$text" -o "$code" > "$said" 2>&1 &&
            hash=$(hash_assembly "$code" @) ;;
    nvptx64*)
        $command -O3 -S "$text" -o "$code" > "$said" 2>&1 &&
            hash=$(hash_assembly "$code" '') ;;
    esac || return 1
    case $target in
    spir64* | nvptx64*) echo "${hash% *} - - - ${hash#* }" ;;
    *) echo "${hash% *} $(figures "$said") ${hash#* }" ;;
    esac
}

# compile_some TARGET OUT (KEY TEXT)...: a part of what is compiled at once.
compile_some()
{
    target=$1 out=$2
    shift 2
    while [ $# -ge 2 ]; do
        if figures_of "$target" "$2" > "$out/figures.$$"; then
            mv "$out/figures.$$" "$cache/$1"
        else
            { echo "$2 does not compile for $target"; head -n 20 "$out/said.$$"; } >> "$out/failed"
        fi
        shift 2
    done
}

# compile DIRECTORY OUT
compile()
{
    : > "$out/table"
    : > "$out/failed"
    left_out=
    mkdir -p "$cache"
    for directory in "$1"/*; do
        target=${directory##*/}
        command_of "$target"
        version=$(version_of "$needs") || {
            case "$left_out " in *" $needs "*) ;; *) left_out="$left_out $needs" ;; esac
            continue
        }
        [ -z "$header" ] || version="$version $(cksum < "$header")"
        strip "$directory"
        constants "$directory"
        (cd "$out/stripped" && sha256sum -- *) | awk '{ print substr($1, 1, 32), $2 }' > "$out/keys"
        while read -r key name; do
            [ -s "$cache/$key" ] || echo "$key $directory/$name"
        done < "$out/keys" | sort -u -k 1,1 > "$out/missing"
        xargs -n 8 -P "$jobs" sh "$srcdir/tests/kernels/codegen.sh" compile_some "$target" "$out" < "$out/missing"
        sort -k 2,2 "$out/keys" | join -1 2 - "$out/constants" > "$out/named" || exit 1
        while read -r name key constants; do
            [ ! -s "$cache/$key" ] || echo "$target $name $(cat "$cache/$key") $constants"
        done < "$out/named" >> "$out/table"
        echo "$target: $(wc -l < "$out/keys") texts, $(wc -l < "$out/missing") of them compiled now"
    done
    mv "$out/table" "$2"
    [ -z "$left_out" ] || echo "left out, for want of:$left_out"
    [ ! -s "$out/failed" ] || { head -n 60 "$out/failed"; exit 1; }
}

# ---- two tables ----------------------------------------------------------------------

# differences BASE_TABLE TABLE REPORT
differences()
{
    awk -v names="$srcdir/tests/kernels/codegen.names" -v report="$3" '
    # A name is VARIANT.TYPE[.PARAMETERS][.wide][.CONSTANTS]; before, it had a number or a bucket.
    function split_name(name,   part, n, i) {
        n = split(name, part, ".")
        variant = part[1]; rest = ""
        for (i = 2; i <= n && part[i] !~ /=/; i++)
            if (part[i] !~ /^(-?[0-9]+(-[0-9]+)*|small|medium|@.*)$/) rest = rest "." part[i]
    }
    function common(a, b,   list, n, i, count) {
        n = split(a, list, ",")
        for (i = 1; i <= n; i++) count += index("," b ",", "," list[i] ",") > 0
        return count + 0
    }
    function difference(what, a, b) { return a == b ? "" : ", " what " " a " -> " b }
    # The text of the commit that most likely became line h of ours: the most #defines are the same.
    function find(h,   i, n, list, old, best, score, top) {
        split_name(name[h])
        n = split(variant " " before[variant], old, " ")
        best = 0; top = -1
        for (i = 1; i <= n; i++) {
            m = split(lines[target[h], old[i] rest], list, " ")
            for (j = 1; j <= m; j++) {
                score = 2 * common(constants[h], constants[list[j]]) + !((target[h], hash[list[j]]) in here)
                if (score > top) { top = score; best = list[j] }
            }
        }
        return best
    }
    function say(line) { print line; print line > report }
    BEGIN {
        while ((getline line < names) > 0)
            if (line !~ /^#/ && split(line, word, " ") == 2) before[word[1]] = before[word[1]] " " word[2]
        printf "" > report
    }
    {
        target[NR] = $1; name[NR] = $2; hash[NR] = $3; registers[NR] = $4; spills[NR] = $5; stack[NR] = $6
        size[NR] = $7; constants[NR] = $8
        split_name($2)
        plain[NR] = variant rest
    }
    NR == FNR {
        last = NR
        lines[$1, plain[NR]] = lines[$1, plain[NR]] " " NR
        if (!(($1, $3) in there)) there[$1, $3] = $2
        named[$1, $3, plain[NR]] = 1
        next
    }
    { here[$1, $3] = 1 }
    END {
        for (h = last + 1; h <= NR; h++) {
            if ((target[h], hash[h], plain[h]) in named) {
                print "same", target[h], name[h] > report
                same++
            } else if ((target[h], hash[h]) in there) {
                say("same as " there[target[h], hash[h]] ": " target[h] " " name[h])
                same++
            } else if ((b = find(h))) {
                paired[b] = 1
                say("changed: " target[h] " " name[h] (plain[h] == plain[b] ? "" : ", was " name[b]) \
                    difference("registers", registers[b], registers[h]) \
                    difference("spills", spills[b], spills[h]) \
                    difference("stack", stack[b], stack[h]) difference("size", size[b], size[h]))
                changed++
            } else {
                say("only here: " target[h] " " name[h])
                only_here++
            }
        }
        for (b = 1; b <= last; b++)
            if (!paired[b] && !((target[b], hash[b]) in here)) {
                say("only there: " target[b] " " name[b])
                only_there++
            }
        say(same + 0 " same, " changed + 0 " changed, " only_here + 0 " only here, " \
            only_there + 0 " only there")
    }' "$1" "$2"
}

# ---- a commit ------------------------------------------------------------------------

# Its program that writes texts, built from an archive and kept.
program_of()
{
    program=$cache/texts-$1
    [ ! -x "$program" ] || return 0
    mkdir -p "$cache" "$out/tree"
    git -C "$srcdir" archive "$1" | tar -x -C "$out/tree" &&
        ( cd "$out/tree" && path=$(find tests -name texts.c) && autoreconf -fi &&
          ./configure -q --disable-shared && "${MAKE:-make}" -s -j "$jobs" "${path%.c}" &&
          cp "${path%.c}" texts ) > "$out/said" 2>&1 &&
        mv "$out/tree/texts" "$program" ||
        { echo "the texts of $1 cannot be built"; tail -n 20 "$out/said"; exit 1; }
}

compare()
{
    commit=$(git -C "$srcdir" rev-parse --verify --quiet "$1^{commit}") ||
        { echo "\"$1\" is no commit of this tree: make codegen-compare BASE=COMMIT"; exit 2; }
    program_of "$commit"
    dump "$program" "$out/there"
    compile "$out/there" codegen.base > "$out/compiled" || { cat "$out/compiled"; exit 1; }
    table codegen.table
    differences codegen.base codegen.table codegen.report
}

table()
{
    dump tests/kernels/texts "$out/here"
    compile "$out/here" "$1"
}

if [ "$1" = compile_some ]; then
    "$@"
    exit
fi
out=$PWD/codegen.tmp.$$
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT
trap 'exit 1' INT TERM
"$@"
