# SPDX-License-Identifier: Apache-2.0
# What this run of make check did, in numbers.  Each test says what it counted in lines
#
#     COUNT <what> <n>
#
# of its log.  This adds them up, and fails where one is below what we promise: a suite
# that shrinks unseen is no suite.

promised='exact 20000
real 5000
special 1500
arguments 1000'

out=tests/counts.tmp
mkdir -p $out
trap 'rm -rf $out' EXIT

logs= trs=
for test in $counted; do
    logs="$logs $test.log" trs="$trs $test.trs"
done
echo "$promised" > $out/promised

cat $logs | awk '
    NR == FNR     { promise[$1] = $2; order[++n] = $1; next }
    $1 == "COUNT" && NF == 3 && $3 ~ /^[0-9]+$/ {
        if (!($2 in promise)) { promise[$2] = 0; order[++n] = $2 }
        count[$2] += $3
    }
    END {
        for (i = 1; i <= n; i++) {
            what  = order[i]
            short = count[what] + 0 < promise[what]
            wrong += short
            printf "%10d  %s cases%s\n", count[what], what, short ? ": fewer than " promise[what] : ""
        }
        exit wrong > 0
    }' $out/promised - > $out/said
enough=$?

passed=$(cat $trs | grep -c '^:test-result: *\(PASS\|XFAIL\)')
failed=$(cat $trs | grep -c '^:test-result: *\(FAIL\|XPASS\|ERROR\)')
skipped=$(grep -l '^:test-result: *SKIP' $trs | sed 's|^tests/||; s|\.trs$||' | tr '\n' ' ')
[ $enough = 0 ] && passed=$((passed + 1)) || failed=$((failed + 1))

# Each with its time, which timed.sh wrote, the slowest first.
for log in $logs; do
    test=${log#tests/}
    sed -n "s|^took \([0-9.]*\) s, \([0-9.]*\) s of CPU time\$|\1 \2 ${test%.log}|p" $log
done | sort -rn | awk '{ printf "%8.1f s %8.1f s of CPU time  %s\n", $1, $2, $3 }' > $out/times

{
    echo
    cat $out/times
    echo
    cat $out/said
    [ -z "$skipped" ] || echo "skipped: $skipped(their logs say what to install)"
    echo "$passed passed, $failed failed"
    echo
} | tee $out/all
# On the terminal too: descriptor 9 is the standard output of make.
(cat $out/all >&9) 2> /dev/null
exit $enough
