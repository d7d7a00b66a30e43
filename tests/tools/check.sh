# SPDX-License-Identifier: Apache-2.0
# `vernier check`: its reports, a budget, an interruption, and the progress line.

command=check
. "${srcdir:=.}/tests/tools/command.sh"
. "$srcdir/tests/tools/waiting.sh"

# has FILE PATTERN: a line of the file matches.
has()
{
    grep -Eq -e "$2" "$1" || { fail "no line of $1 matches $2:"; cat "$1"; }
}

# a problem is three groups, all of which run; what goes to a file does not change what goes to stdout
problem=gemm:5x7x9:f32:nn
./vernier check $problem --tap $out/tap --junit $out/xml --json $out/json --budget 1h > $out/text ||
    fail "vernier check $problem: exit status $?"
has $out/text '^passed  gemm:5x7x9:f32:nn exact  *1 case  '
has $out/text '^3 of 3 groups in 3600 s \(100%\)$'
has $out/tap '^ok 3 - gemm:5x7x9:f32:nn [a-z]* \([0-9]* cases?\)$'
has $out/tap '^1\.\.3$'
has $out/xml 'tests="3" failures="0" errors="0"'
has $out/json '"interrupted": false'
has $out/json '"groups_run": 3'
./vernier check $problem --tap - > $out/tap 2> $out/text || fail "vernier check --tap -: exit status $?"
grep -Evq '^(ok [123] - |1\.\.3$)' $out/tap && { fail "--tap - writes more than TAP:"; cat $out/tap; }
has $out/text '^passed '
refuses 2 'only one of' $problem --tap - --json -
refuses 2 'cannot be written' $problem --tap /nowhere/at/all
refuses 2 '--budget is "soon"' $problem --budget soon

# an activation is irrational: no case has tolerance 0
./vernier check $problem:act=silu > $out/text || fail "vernier check $problem:act=silu: exit status $?"
grep -q 'silu exact' $out/text && { fail "an irrational result is to be exact:"; cat $out/text; }
has $out/text '^passed  gemm:5x7x9:f32:nn:act=silu real  *1 case  '

# a budget that is soon over: at least one case, not all, and another seed begins with another group
for seed in 1 2; do
    ./vernier check gemm --variant gemm --small --budget 1ms --seed $seed > $out/text.$seed ||
        fail "vernier check --budget 1ms: exit status $?"
    has $out/text.$seed '^1 of [0-9]* groups in 0.001 s \(8%\), evenly spread; another --seed begins elsewhere$'
    has $out/text.$seed '^[1-9][0-9]* cases?, 0 failed'
done
[ "$(sed -n 's/^passed *//p' $out/text.1 | cut -c 1-50)" != "$(sed -n 's/^passed *//p' $out/text.2 | cut -c 1-50)" ] ||
    fail "two seeds begin with the same group"

# shards: each group is in one of them, whatever their number, and with threads, too
groups()
{
    sed -n 's/^passed *\(.*[^ ]\)  *[0-9]* cases*  .*/\1/p' "$@" | sort
}
whats="$problem gemm:3x2x4:f32:nt softmax:3x5:f32"
./vernier check $whats > $out/all || fail "vernier check $whats: exit status $?"
./vernier check $whats --shard 1/2 --jobs 2 > $out/part.1 || fail "--shard 1/2: exit status $?"
./vernier check $whats --shard 2/2 > $out/part.2 || fail "--shard 2/2: exit status $?"
groups $out/all > $out/groups.all
groups $out/part.1 $out/part.2 > $out/groups.parts
cmp $out/groups.all $out/groups.parts || fail "two shards do not run what one process runs"
[ "$(groups $out/part.1 | wc -l)" = 5 ] && [ "$(groups $out/part.2 | wc -l)" = 4 ] ||
    fail "nine groups are not five and four"
./vernier check $whats --shard 12/12 > $out/part.3 || fail "a shard without a group: exit status $?"
for shard in 0/2 3/2 2 1/2/3 1/0 one; do
    refuses 2 "--shard is \"$shard\"" $problem --shard $shard
done

# interrupted after its first group, it reports that
in_background $out/text $out/said ./vernier check --tap $out/tap --junit $out/xml --json $out/json
command=$!
wait_for $command grep -q '^passed' $out/text || fail "no group passes"
kill -INT $command
wait $command
status=$?
[ $status = 1 ] || fail "vernier check, interrupted: exit status $status, not 1"
has $out/said '^vernier: interrupted: [0-9]* of [0-9]* groups are reported$'
has $out/text '^[1-9][0-9]* cases?, 0 failed; seed 1$'
has $out/tap '^ok 1 - '
has $out/tap '^Bail out! interrupted$'
has $out/xml '<error message="interrupted after [0-9]* of [0-9]* groups"/>'
has $out/xml '^</testsuite>$'
has $out/json '"interrupted": true'

# on a terminal it says how far it is
if command -v script > /dev/null; then
    script -qec "./vernier check $problem" $out/typescript > /dev/null 2>&1 < /dev/null
    grep -q '\[3/3\] gemm:5x7x9:f32:nn special  about 0:[0-9]* left' $out/typescript ||
        { fail "no progress on a terminal:"; cat -v $out/typescript; }
else
    echo "the progress line left out: install util-linux (script)"
fi

echo "$failures failures"
[ $failures = 0 ]
