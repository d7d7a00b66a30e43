# SPDX-License-Identifier: Apache-2.0
# `vernier warm`: what it has prepared, a later process neither builds nor tries out.

command=warm
. "${srcdir:=.}/tests/tools/command.sh"

gemm=gemm:41x43x47:f32:nt:bias=row softmax=softmax:16x1003:f32
mkdir -m 700 "$out/cache"
VERNIER_CACHE_DIR=$out/cache
export VERNIER_CACHE_DIR

refuses 2 'prepare what'
refuses 2 'neither a problem' nonsense
refuses 2 'has "nothing" in its name' $gemm --filter nothing
refuses 2 'which no device matches' $gemm --device no-such-device
refuses 1 'does not fit' $gemm:variant=gemm_wgmma

# logged FILE WORDS...: runs the command so, and leaves in FILE what was built and what was loaded.
logged()
{
    file=$1
    shift
    VERNIER_LOG=build,cache ./vernier "$@" > "$out/said" 2> "$file" ||
        { fail "vernier $*: exit status $?:"; cat "$out/said" "$file"; }
}

has()           # FILE PATTERN WHAT
{
    grep -q "$2" "$1" || { fail "$3:"; cat "$1"; }
}

logged "$out/first" warm $gemm $softmax --json "$out/report.json"
has "$out/first" ': built in' "nothing was built"
has "$out/first" 'bytes stored' "nothing was stored"
for problem in $gemm $softmax; do
    has "$out/said" "^$problem  *[0-9.]*  *[0-9.]*  *[a-z]" "no row of $problem"
    has "$out/report.json" "\"name\": \"$problem" "the JSON has no $problem"
done
[ "$(grep -c '"first_time"' "$out/report.json")" = 2 ] || fail "the JSON has not two runs"

logged "$out/later" warm $gemm $softmax
has "$out/later" 'bytes loaded' "nothing was loaded"
grep ': built in' "$out/later" && fail "a later process builds what was prepared"

# Built without being run.
logged "$out/build" warm --build $gemm:act=relu
has "$out/said" "^$gemm:act=relu  *[0-9.]*  *-  *[a-z]" "it was run"
has "$out/build" ': built in' "nothing was built"
logged "$out/explained" explain $gemm:act=relu
has "$out/explained" 'bytes loaded' "nothing was loaded after --build"

echo "$failures failures"
[ $failures = 0 ]
