# SPDX-License-Identifier: Apache-2.0
# `vernier tune --rates, --costs, --pin`: what they write, the library reads; `vernier explain --plans` times plans.

command=tune
. "${srcdir:=.}/tests/tools/command.sh"

# tunes WORDS...: says it in $out/said, and leaves a file that the library reads.
tunes()
{
    ./vernier tune "$@" > "$out/said" 2> "$out/errors" || { fail "vernier tune $*: exit status $?:"; cat "$out/errors"; }
    cat "$out/said"
    explain $gemm
}

# explain WORDS...: into $out/explained; no line of the user's file is wrong.
explain()
{
    ./vernier explain "$@" > "$out/explained" 2> "$out/errors" || fail "vernier explain $*: exit status $?"
    grep 'the file is not used' "$out/errors" && fail "a wrong line was written"
}

gemm=gemm:64x64x64:f32:nn

refuses 2 'take no problem or suite' --rates $gemm
refuses 2 'tune for what' --costs
refuses 2 'tune for what' --pin
refuses 2 'one at a time' --pin --costs $gemm
refuses 2 '--budget is of a search' --pin $gemm --budget 1s
refuses 2 '--variant is of a search' --costs $gemm --variant gemm
refuses 2 'names a variant' --pin $gemm:variant=gemm
refuses 2 'which no device matches' --rates --device no-such-device

# Rates: a line for this device alone, which takes the place of an older one and keeps what was not measured.
mkdir -p "$out/config"
echo 'rates no/such/device GBPS 1' > $VERNIER_TUNE
tunes --rates --json "$out/report.json"
device=$(sed -n 's/^rates \([^ ]*\)  GBPS .*/\1/p' $VERNIER_TUNE)
for rate in GBPS L2_GBPS L2_MB LAUNCH_NS FMA32; do
    grep -q "^$rate  *[-0-9]" "$out/said" || fail "$rate is not printed"
    grep -q "^rates .* $rate [0-9.]*\( \|$\)" $VERNIER_TUNE || fail "$rate is not written"
    grep -q "\"rate\": \"$rate\"" "$out/report.json" || fail "the JSON does not have $rate"
done
awk '$1 == "rates" && $3 == "GBPS" && $2 != "no/such/device" {
         for (i = 3; i < NF; i += 2) if ($i != "L2_MB" && !($(i + 1) > 0)) { print $i " is " $(i + 1); wrong = 1 }
         for (i = 3; i < NF; i += 2) { v = $(i + 1); gsub(/[.]/, "", v); gsub(/^0+|0+$/, "", v)
                                       if (length(v) > 3) { print $(i + 1) " has more than 3 digits"; wrong = 1 } } }
     END { exit wrong }' $VERNIER_TUNE || fail "wrong rates"
cat > $VERNIER_TUNE << END
# mine
rates no/such/device GBPS 1
rates $device WAVES 0.5  GBPS 0.125   # old
END
tunes --rates
[ "$(grep -cF "rates $device " $VERNIER_TUNE)" = 1 ] || fail "not one line for the device"
grep -q ' WAVES 0.5$' $VERNIER_TUNE || fail "a rate that is not measured was lost"
grep -q 'GBPS 0.125' $VERNIER_TUNE && fail "the old rate is still there"
grep -q '^# mine' $VERNIER_TUNE && grep -q '^rates no/such/device GBPS 1$' $VERNIER_TUNE || fail "other lines were lost"
[ "$(grep -n "$device " $VERNIER_TUNE | cut -d: -f1)" -lt "$(grep -n 'no/such' $VERNIER_TUNE | cut -d: -f1)" ] ||
    fail "another line might hide the rates"

# A bad plan is pinned: the fastest one is, before it, and is used; and takes the place of a bad one of its kind.
bad="gemm_cpu_direct 4 1 4 48 16 64"
case $device in
cpu/*)
    echo "pin gemm 64x64x64:nn * * f32 $bad" >> $VERNIER_TUNE
    explain $gemm
    grep -q '^row  *pinned  *THR_M=4 THR_V=1 ' "$out/explained" || fail "the bad plan is not used"
    tunes --pin $gemm
    grep -q "^  pinned " "$out/said" || fail "nothing was pinned"
    [ "$(grep -c '^pin gemm 64x64x64:nn .* opencl f32  gemm' $VERNIER_TUNE)" = 1 ] || fail "not one pin"
    grep '^row  *pinned ' "$out/explained" | grep -qv ' THR_M=4 THR_V=1 ' || { fail "not pinned:"; cat "$out/explained"; }
    sed -i "s/^\(pin.* f32\)  .*/\1  $bad/" $VERNIER_TUNE
    tunes --pin $gemm
    [ "$(grep -c '^pin' $VERNIER_TUNE)" = 2 ] || fail "not two pins after the second"
    [ "$(grep -c " $bad\$" $VERNIER_TUNE)" = 1 ] || fail "a bad pin stayed" ;;
esac
sed -i '/^pin/d' $VERNIER_TUNE

# Costs: fitted where five problems were timed; all alternatives are written, and are read.
refuses 2 'nothing is written: no row with costs' --costs $gemm
problems="gemm:32x32x32:f32:nn gemm:64x64x64:f32:nn gemm:96x64x32:f32:nt gemm:64x96x64:f32:tn gemm:128x64x96:f32:nn"
tunes --costs $problems --json "$out/report.json"
fitted=$(grep -c '"deviation"' "$out/report.json")
[ "$fitted" -ge 1 ] || fail "nothing was fitted"
if grep -q '^written' "$out/said"; then
    written=$(grep -c '^[a-z0-9_]* [^ ]* [a-z]* f32 \*  [-0-9 ]* | [0-9 ]*[0-9]\(  # costs fitted\)\{0,1\}$' $VERNIER_TUNE)
    [ "$written" -ge "$fitted" ] || { fail "$fitted rows were fitted, and $written written:"; cat $VERNIER_TUNE; }
    ./vernier explain $gemm:variant=gemm > "$out/explained" 2>&1
    grep -q '^row  *user .* estimated' "$out/explained" || { fail "the rows are not read:"; cat "$out/explained"; }
fi
awk -F'[:,]' '/"loss_before"/ { before = $2 + 0 }
              /"loss":/       { fits++; if ($2 + 0 > before) { print $2 " after " before; wrong = 1 } }
              END             { exit wrong || !fits }' "$out/report.json" || fail "a fit is worse than what it began with"

# Every plan, with the time that it takes.
explain $gemm --plans --json "$out/report.json"
cat "$out/explained"
grep -q '^plan  *estimate  *ms ' "$out/explained" || fail "no table of plans"
[ "$(sed -n '/"plans"/,$p' "$out/report.json" | grep -c '"real_time"')" -ge 3 ] || fail "fewer than 3 plans were timed"

echo "$failures failures"
[ $failures = 0 ]
