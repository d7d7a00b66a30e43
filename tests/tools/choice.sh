# SPDX-License-Identifier: Apache-2.0
# `vernier choice`: finds that a bad row makes a bad choice, reports each candidate, and says what is wrong.

command=choice
. "${srcdir:=.}/tests/tools/command.sh"
. "$srcdir/tests/tools/waiting.sh"
mkdir "$out/config"

gemm=gemm:96x96x96:f32:nn softmax=softmax:16x100:f32

refuses 2 'choose for what'
refuses 2 'neither a problem' nonsense
refuses 2 'compares them all' $gemm:variant=gemm
refuses 2 'must be a number from 1 to 31' $gemm --samples 32
refuses 2 'must be a number above 0' --random 1 --limit-flops 0
refuses 2 'which no device matches' $gemm --device no-such-device
refuses 2 'has "nothing" in its name' $gemm --filter nothing

# Two problems: what the table says, the JSON says too.
./vernier choice $gemm $softmax --samples 3 --json "$out/report.json" > "$out/said" 2> "$out/errors" ||
    { fail "vernier choice: exit status $?:"; cat "$out/errors"; }
cat "$out/said"
for problem in $gemm $softmax; do
    grep -q "^$problem " "$out/said" || fail "no row of $problem"
    grep -q "\"name\": \"$problem\"" "$out/report.json" || fail "the JSON has no $problem"
done
grep -q '^geometric mean of the ratios .* of 2 problems' "$out/said" || fail "no mean of two problems"
grep -q '"measured": 2' "$out/report.json" || fail "the JSON does not have two problems"
[ "$(grep -c '"chosen_time"' "$out/report.json")" = 2 ] || fail "the JSON does not have two choices"
grep -q '"geomean": [1-9]' "$out/report.json" || fail "a mean of ratios below 1, or none"
# The best is no slower than any candidate, and each is sampled as often as was asked for or is slow.
awk '/"best_time"/ { best = $2 + 0 }
     /"real_time"/ { time = $2 + 0; candidates++
                     if (time < best) { print "a candidate takes " time ", the best " best; wrong = 1 } }
     /"slow"/      { slow = /true/ }
     /"samples"/   { samples = /\[\]/ ? 0 : -1 }
     samples < 0 && /^ *[0-9]/ { taken++ }
     /"samples"/ && /\[\]/ && !slow { print "a candidate without samples is not slow"; wrong = 1 }
     samples < 0 && /^ *\]/ { if (taken != 3) { print taken " samples"; wrong = 1 }
                              samples = taken = 0 }
     END { if (candidates < 4) { print candidates " candidates"; wrong = 1 }
           exit wrong }' "$out/report.json" || { fail "wrong candidates:"; cat "$out/report.json"; }

# A pin to a slow variant: others are faster, and the exit status is still 0.
echo "pin gemm 96x96x96:nn * * f32 gemm" > $VERNIER_TUNE
./vernier choice $gemm --json "$out/report.json" > "$out/said" 2>&1 || fail "vernier choice: exit status $?"
cat "$out/said"
grep -q "^ratios above 1.25 *1$" "$out/said" || fail "a bad choice is not among those above 1.25"
grep -q "^ .*$gemm: gemm, best " "$out/said" || fail "the bad choice is not listed"
grep -q '"above_1.25": 1' "$out/report.json" || fail "the JSON does not count the bad choice"
rm $VERNIER_TUNE

# One seed draws the same problems; another seed, others.
drawn()
{
    ./vernier choice --random 2 --limit-flops 1e4 --samples 1 --seed $1 2> "$out/errors" ||
        { fail "vernier choice --random: exit status $?:"; cat "$out/errors"; }
}
for run in 1-first 1-second 2-third; do
    drawn ${run%-*} | sed -n 's/^\(gemm:[^ ]*\) .*/\1/p' > "$out/${run#*-}"
done
[ "$(wc -l < "$out/first")" = 2 ] || fail "not two random problems"
cmp "$out/first" "$out/second" || fail "one seed gave two lists"
cmp -s "$out/first" "$out/third" && fail "two seeds gave one list"

# Interrupted, it reports what it has, and fails.
rows=
for k in $(seq 2 80); do
    rows="$rows gemm:32x32x$k:f32:nn"
done
in_background "$out/said" "$out/errors" ./vernier choice $rows --samples 31
choice=$!
wait_for $choice grep -q '^problem ' "$out/said" || fail "no table"
kill -INT $choice
wait $choice
status=$?
[ $status = 1 ] || fail "interrupted: exit status $status, not 1"
grep -q '^vernier: interrupted' "$out/errors" || fail "interrupted, it said: $(cat "$out/errors")"

echo "$failures failures"
[ $failures = 0 ]
