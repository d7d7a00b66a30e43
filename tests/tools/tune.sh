# SPDX-License-Identifier: Apache-2.0
# `vernier tune`: finds a better row than a bad one and writes it, survives a kill, and says what is wrong.

# each variant of ours says what its rows may be
awk '$1 == "columns" && $2 !~ /^(cublas|clblast|cudnn)$/ { want[$2] = FILENAME }
     $1 == "space"                                       { have[$2] = 1 }
     END { for (i in want) if (!(i in have)) { print want[i] ": " i " has no line of space"; wrong = 1 } exit wrong }' \
    "$srcdir"/cl/*/*.tune || exit 1

command=tune
. "${srcdir:=.}/tests/tools/command.sh"
. "$srcdir/tests/tools/waiting.sh"

# row_of PROBLEM WORD: does `vernier explain` say that the row is the user's, or shipped...?
row_of()
{
    ./vernier explain $1 > "$out/explained" 2>&1
    grep -q "^row  *$2 " "$out/explained" || { fail "$1 has no $2 row:"; cat "$out/explained"; }
}

# measured: how many measurements the journal has
measured()
{
    grep -c '^[0-9a-f]\{16\} [0-9i]' $VERNIER_TUNE.measured 2> /dev/null
}

measured_some()
{
    [ "$(measured)" -ge 3 ]
}

gemm=gemm:64x64x64:f32:nn softmax=softmax:16x100:f32 conv=conv:n1c8h9w9k8r3s3:f32:pad=1

refuses 2 'neither a problem' nonsense
refuses 2 'gemm' gemm:64x64:f32
refuses 2 'must be a time' $gemm --budget soon
refuses 2 'must be a time' $gemm --budget 3parsecs
refuses 2 'which no device matches' $gemm --device no-such-device
refuses 2 'it needs NULL or one of' $gemm --variant no_such_variant
refuses 2 'tune for what' --budget 1s
ln -s /dev/full "$out/full"
VERNIER_TUNE=$out/full refuses 2 'no regular file' $gemm
VERNIER_TUNE=/dev/null/user.tune refuses 2 '/dev/null/user.tune' $gemm

# A bad row of the user's, among others: the tuner begins, is killed, and goes on.
cat > $VERNIER_TUNE << END
# what is mine
columns gemm  BLK_M BLK_N BLK_K THR_M THR_N
gemm          * * f32 *  16 16 4 2 2   # and stays
END
variant=$(./vernier explain $gemm 2> /dev/null | sed -n 's/^variant  *//p')
case $variant in
gemm_cpu*) variant=gemm_cpu_direct  bad="4 1 4 48 16 64"      # by name: a bad row may not be chosen
           gemm=$gemm:variant=$variant ;;
*)         bad= ;;
esac
[ -z "$bad" ] || echo "$variant * * f32 *  $bad" >> $VERNIER_TUNE
cp $VERNIER_TUNE "$out/before"

in_background "$out/said" "$out/said" ./vernier tune $gemm --budget 1h
tuner=$!
wait_for $tuner measured_some || { fail "nothing was measured:"; cat "$out/said"; }
kill -9 $tuner
wait $tuner 2> /dev/null
cmp $VERNIER_TUNE "$out/before" || fail "the user's file changed before anything was decided"
cp $VERNIER_TUNE.measured "$out/journal"

# goes on from there; on a busy machine, the first kernels alone take some seconds
for budget in 4s 16s 64s 256s; do
    ./vernier tune $gemm --budget $budget --json "$out/report.json" > "$out/said" 2>&1 ||
        fail "vernier tune: exit status $?"
    [ "$(sed -n 's/.*measured, \([0-9]*\) known from before.*/\1/p' "$out/said")" -lt 3 ] || break
done
cat "$out/said"
head -c "$(wc -c < "$out/journal")" $VERNIER_TUNE.measured | cmp - "$out/journal" ||
    fail "what was measured before the kill is no longer in the journal"
known=$(sed -n 's/.*measured, \([0-9]*\) known from before.*/\1/p' "$out/said")
[ "${known:-0}" -ge 3 ] || fail "what was measured before the kill was measured again"
grep -q "\"known\": $known" "$out/report.json" || fail "the JSON does not say what was known"
grep -q 'THR_M=' "$out/said" || fail "no row was printed"

# says where it tried fewer rows than there are steps from one
sed -n 's/.* \([0-9]*\) rows\{0,1\} measured, \([0-9]*\) known from before, \([0-9]*\) illegal, \([0-9]*\) wrong.*/\1 \2 \3 \4/p' \
    "$out/said" > "$out/tried"
read -r rows known illegal wrong < "$out/tried"
few=$(sed -n 's/.*too few to say that none is faster: a step along each parameter makes \([0-9]*\);.*/\1/p' "$out/said")
if [ -n "$few" ]; then
    [ $((rows + known + illegal + wrong)) -lt "$few" ] || fail "enough rows are said to be too few"
else
    [ $((rows + known + illegal + wrong)) -ge 6 ] || fail "a handful of rows is not said to be too few"
fi
if [ -n "$bad" ]; then
    grep -q '"written": true' "$out/report.json" || fail "a bad row was kept"
    grep -q "^$variant cpu/.* opencl f32 small " $VERNIER_TUNE || { fail "the row is not in the file:"; cat $VERNIER_TUNE; }
    row_of $gemm user
    grep -q 'VEC=4 ' "$out/explained" && fail "the bad row is still used"
fi
grep -q '^# what is mine' $VERNIER_TUNE && grep -q 'and stays' $VERNIER_TUNE || fail "lines of the user's are gone"
[ ! -e $VERNIER_TUNE.new ] || fail "a temporary file was left"

# one mechanism for all three operations; one row for two problems, or directions; two tuners do not mix
./vernier tune $softmax softmax:8x90:f32 $conv $conv:backward-data --budget 5s --json - > "$out/report.json" 2> "$out/said" ||
    { fail "vernier tune: exit status $?:"; cat "$out/said"; }
[ "$(grep -c '"variant"' "$out/report.json")" = 2 ] || { fail "not two rows:"; cat "$out/report.json"; }
[ "$(grep -c '"real_time"' "$out/report.json")" = 4 ] || { fail "not four problems:"; cat "$out/report.json"; }
in_background "$out/said" "$out/said" ./vernier tune $conv --budget 1h
tuner=$!
wait_for $tuner grep -q '^vernier ' "$out/said" || fail "the tuner does not begin"
refuses 2 'another `vernier tune` is at work' $gemm
kill -INT $tuner
wait $tuner
[ $? = 1 ] || fail "an interrupted tuner does not say so"

# A wrong line: no row of the file is used, and the line is named.
echo "$variant * * f32 * 1 2" >> $VERNIER_TUNE
line=$(wc -l < $VERNIER_TUNE)
refuses 2 "user.tune:$line: a row of $variant ends with a number for each of" $gemm
./vernier explain $gemm 2>&1 > /dev/null | grep -q "^vernier: .*user.tune:$line: .*; the file is not used" ||
    fail "explain does not name the wrong line"
VERNIER_LOG=choose ./vernier bench $gemm --budget 0.01 2>&1 > /dev/null |
    grep -q "^vernier choose: .*user.tune:$line: .*; the file is not used" || fail "VERNIER_LOG=choose does not name the wrong line"
row_of $gemm '\(shipped\|nearest\|default\)'

echo "$failures failures"
[ $failures = 0 ]
