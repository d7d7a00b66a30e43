# SPDX-License-Identifier: Apache-2.0
# `vernier gap` and `vernier compare`, end to end, between two OpenCL implementations of a CPU.

[ -x ./vernier ] || { echo "skipped: the command is not built"; exit 77; }
RUSTICL_ENABLE=llvmpipe
export RUSTICL_ENABLE
./vernier devices 2> /dev/null > tests/gap-devices.txt
grep -q rusticl tests/gap-devices.txt && grep -q Portable tests/gap-devices.txt ||
    { rm -f tests/gap-devices.txt; echo "skipped: install pocl-opencl-icd and mesa-opencl-icd"; exit 77; }

. "$srcdir/tests/tools/waiting.sh"
failures=0
fail()
{
    echo "$*"
    failures=$((failures + 1))
}

# refuses STATUS PATTERN WORDS...: exits so, with a sentence like that.
refuses()
{
    want=$1 pattern=$2
    shift 2
    said=$(./vernier "$@" 2>&1)
    status=$?
    [ $status = "$want" ] || fail "vernier $*: exit status $status, not $want"
    case $said in *"$pattern"*) ;; *) fail "vernier $*: said: $said" ;; esac
}

gemm=gemm:64x64x64:f32:nn softmax=softmax:8x64:f32
out=tests/gap-out
./vernier gap $gemm $softmax --pair Portable,rusticl --compare none --budget 0.2 --processes 2 \
    --json $out.json --csv $out.csv --html $out.html --svg $out.svg > $out.txt || fail "vernier gap: exit status $?"
cat $out.txt
for name in $gemm $softmax; do
    for file in $out.json $out.csv $out.html $out.txt; do
        grep -q "$name" $file || fail "$file has no $name"
    done
done
[ "$(grep -c '"toolchain_gap": [0-9]' $out.json)" = 2 ] || fail "$out.json: not each row has a toolchain gap"
for key in '"roofline"' '"library_gap"' '"kernel_time"' '"wall_time"' '"geomean"' '"launch"' '"transfer"' '"build"'; do
    grep -q "$key" $out.json || fail "$out.json has no $key"
done
for device in 1 2; do
    grep -q "^$gemm,.*,gemm,f32,[^,]*,$device,opencl:" $out.csv || fail "$out.csv has no line of device $device"
done

# two processes measured each row, and each sample says which
[ "$(grep -c '"processes": 2' $out.json)" = 3 ] || fail "$out.json: not each row is of two processes"
for process in 1 2; do
    grep -q "^$gemm,.*,gemm,f32,.*,$process,1,[0-9.e-]*," $out.csv || fail "$out.csv has no sample of process $process"
done

# six agree within 2 %, or others measure the row again, five at a time
./vernier gap gemm:96x96x96:f32:nn --pair Portable,rusticl --compare none --budget 0.06 --rows-only \
    --json $out.six.json --csv $out.six.csv > $out.six.txt || fail "vernier gap, six processes: exit status $?"
count=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "process") at = i }
                 NR > 1 && $at > most { most = $at } END { print most }' $out.six.csv)
case $count in 6|11|16|21|26) ;; *) fail "$count processes measured the row"; cat $out.six.txt ;; esac
! grep -q '"launch": \[' $out.six.json || fail "vernier gap --rows-only: $out.six.json has launches"
grep -q "\"processes\": $count," $out.six.json || fail "$out.six.json: the row is not of $count processes"

# the first process, the leader of its group, ends: the rows until then are reported, with what they were measured on
in_background $out.ended.txt $out.said ./vernier gap $gemm $softmax --pair Portable,rusticl --compare none \
    --budget 600 --processes 2 --json $out.ended.json
command=$!
wait_for $command grep -q '^each row in 2 processes' $out.ended.txt || fail "vernier gap: no process is ready"
first=$(cat /proc/[0-9]*/stat 2> /dev/null | awk -v parent=$command '$4 == parent && $5 == $1 { print $1 }' | sort -n | head -n 1)
kill -KILL "$first" || fail "the first process cannot be ended"
wait $command
status=$?
[ $status = 1 ] || fail "vernier gap, its first process ended: exit status $status"
grep -q 'the first process has ended' $out.said || fail "vernier gap does not say that its first process ended"
grep -q '"library_version"' $out.ended.json || fail "$out.ended.json has no context"

# a run goes on where another one ended: the rows that this has are taken over, the others measured
more=gemm:32x64x64:f32:nn
./vernier gap $gemm $more --pair Portable,rusticl --compare none --budget 0.2 --processes 2 --resume $out.json --rows-only \
    --json $out.resumed.json --html $out.resumed.html > $out.resumed.txt || fail "vernier gap --resume: exit status $?"
first_row() { sed -n "/\"name\": \"$gemm\"/,/\"spent_s\"/p" "$1"; }
[ "$(first_row $out.json | wc -l)" -gt 50 ] && [ "$(first_row $out.json)" = "$(first_row $out.resumed.json)" ] ||
    fail "$out.resumed.json: the row of $gemm is not that of $out.json"
grep -q "\"name\": \"$more\"" $out.resumed.json || fail "$out.resumed.json has no $more"
grep -A 5 '"resumed"' $out.resumed.json | grep -q '"rows": 1' || fail "$out.resumed.json does not say that a row is taken over"
grep -q '1 of the rows, from the run of 20' $out.resumed.html || fail "$out.resumed.html does not say that a row is taken over"
refuses 2 "the budget of $out.json is 0.2, and must be as in this run: 0.3" gap $gemm --pair Portable,rusticl \
    --compare none --budget 0.3 --processes 2 --resume $out.json
refuses 2 "--from measures nothing" gap --from $out.json --resume $out.json

# a run that is killed leaves its rows until then
rm -f $out.killed.json*
in_background $out.killed.txt $out.said ./vernier gap $gemm gemm:65x64x64:f32:nn gemm:66x64x64:f32:nn gemm:67x64x64:f32:nn \
    gemm:68x64x64:f32:nn gemm:69x64x64:f32:nn --pair Portable,rusticl --compare none --budget 3 --processes 1 --rows-only --json $out.killed.json
command=$!
wait_for $command test -s $out.killed.json.part || fail "vernier gap leaves no rows while it runs"
kill -KILL $command
wait $command
./vernier gap $gemm --pair Portable,rusticl --compare none --budget 3 --processes 1 --resume $out.killed.json.part --rows-only \
    --json $out.resumed.part.json > /dev/null || fail "vernier gap --resume of a part: exit status $?"
grep -A 5 '"resumed"' $out.resumed.part.json | grep -q '"rows": 1' || fail "the row of a run that was killed is not taken over"
[ ! -e $out.resumed.part.json.part ] || fail "a whole report leaves its part"

[ -s $out.svg/summary-toolchain.svg ] || fail "no figure is in the folder $out.svg"

# drawn again, it is the same page
./vernier gap --from $out.json --html $out.again.html > /dev/null || fail "vernier gap --from: exit status $?"
cmp $out.html $out.again.html || fail "the page drawn again differs"

./vernier compare $out.json $out.json --html $out.compare.html | grep -q 'geometric mean of B/A: 1.000 (2 rows: ' ||
    fail "vernier compare: a report differs from itself"
[ -s $out.compare.html ] || fail "vernier compare wrote no page"

# bench draws the same
./vernier bench $softmax --device Portable --budget 0.1 --csv $out.bench.csv --html $out.bench.html \
    --svg $out.svg --json $out.bench.json > /dev/null || fail "vernier bench --html: exit status $?"
for file in $out.bench.csv $out.bench.html $out.svg/summary-roof.svg; do
    grep -q softmax $file || fail "$file has no softmax"
done

refuses 2 "is no report of vernier gap" gap $gemm --pair Portable,rusticl --processes 2 --resume $out.bench.json

# a sequence is one row, with the variant of each layer; --layers measures each, too, those of one shape once
mkdir -p $out.suites
cat > $out.suites/resnet50_network.csv <<'EOF'
label,problem
first,conv:n1c3h9w9k8r3s3:f32:pad=1:bias:act=relu
second,conv:n1c8h9w9k8r1s1:f32:bias:act=relu:beta=1:residual=full
third,conv:n1c8h9w9k8r1s1:f32:bias:act=relu:beta=1:residual=full
EOF
VERNIER_SUITES=$out.suites ./vernier bench resnet50-network --batch 2 --with nhwc --layers --device Portable \
    --budget 0.02 --json $out.sequence.json --csv $out.sequence.csv > $out.sequence.txt ||
    fail "vernier bench resnet50-network: exit status $?"
grep -q '^sequence:resnet50-network:3:conv:n2c3h9w9k8r3s3:f32' $out.sequence.txt || fail "the sequence is no row"
[ "$(grep -c '^conv:n2' $out.sequence.txt)" = 2 ] || fail "$out.sequence.txt: the sequence has not two kinds of layers"
[ "$(sed -n '/"layers": \[/,/\]/p' $out.sequence.json | grep -c '"variant": "conv')" = 3 ] ||
    fail "$out.sequence.json: the sequence has not three layers"

# what was measured has a line of CSV for each sample; all that is written is as the schema says
./vernier compare $out.json $out.bench.json --json $out.compare.json > /dev/null || fail "vernier compare: exit status $?"
for python in python3 /usr/bin/python3 none; do
    $python -c 'import jsonschema' 2> /dev/null && break
done
if [ $python = none ]; then
    echo "skipped: the schema, since there is no python3-jsonschema"
else
    $python - "$srcdir/doc/report.schema.json" $out.json $out.bench.json $out.sequence.json $out.compare.json \
        $out.resumed.json <<'EOF' || fail "a report is not as the schema says"
import csv, json, jsonschema, sys
schema, gap, bench, sequence, compared, resumed = (json.load(open(path)) for path in sys.argv[1:])
for report in gap, bench, sequence, compared, resumed:
    jsonschema.validate(report, schema, cls=jsonschema.validators.validator_for(schema))
for report, path in (gap, sys.argv[2]), (bench, sys.argv[3]), (sequence, sys.argv[4]):
    samples = sum(len(run.get("samples_s", [])) for row in report["benchmarks"] for run in row.get("runs", [row]))
    lines = list(csv.DictReader(open(path.replace(".json", ".csv"), newline="")))
    if len(lines) != samples or not samples:
        sys.exit(f"{path}: {samples} samples, and {len(lines)} lines of CSV")
EOF
fi

# each ratio of the table stands beside the two times that it is made of
awk '$2 == "1/2" { gap++; if ($6 / $7 > 10 * $8 || $6 / $7 < $8 / 10) { print; wrong = 1 } }
     END { exit wrong || gap != 2 }' $out.txt || fail "$out.txt: a ratio is not that of its times"

# each row and each run of it has its samples, what disturbed it, and what it computed with
for key in '"schema": 2' '"roofs"' '"flops_per_s"' '"cpu_time"' '"library_commit": "' '"host_cpu": "' '"others_cpus"'; do
    grep -q "$key" $out.json || fail "$out.json has no $key"
done
[ "$(grep -c '"engine": "FMA f32"' $out.json)" -ge 6 ] || fail "$out.json: not each run has an engine"
[ "$(grep -A 1 '"disturbed": "' $out.json | grep -c '"machine"')" = 2 ] || fail "$out.json: not each row says whether it was disturbed"
[ "$(grep -c '"interval_s"' $out.json)" -ge 6 ] && [ "$(grep -c '"samples_s"' $out.json)" -ge 6 ] ||
    fail "$out.json: not each time has samples and an interval"

# A time that nobody measured, which no chart can scale, and reports that are none.
for name in real_time first_s; do
    sed "s/\"$name\": [0-9.e-]*/\"$name\": 1e-323/" $out.json > $out.bad.json
    refuses 2 "\"$name\" of row 1 is" gap --from $out.bad.json --html $out.bad.html
    refuses 2 "\"$name\" of row 1 is" compare $out.bad.json $out.json
    [ ! -e $out.bad.html ] || fail "a page was made of a time of 1e-323"
done
echo '{ "benchmarks": [] }' > $out.bad.json
refuses 2 'has no "context"' compare $out.bad.json $out.json
echo '{ "context": {}, "benchmarks": [] }' > $out.bad.json
refuses 2 'no row in common' compare $out.bad.json $out.json

# report FILE LOW TIME HIGH DISTURBED SAMPLES ENGINE: one of a row.
report()
{
    echo '{ "context": {}, "benchmarks": [ { "name": "gemm:1x1x1:f32:nn", "variant": "gemm", "engine": "'"$7"'",' \
        '"real_time": '$3', "interval_s": ['$2', '$4'], "disturbed": "'"$5"'", "samples": '$6' } ] }' > "$1"
}
# verdict WORDS: that is what vernier compare says of the two.
verdict()
{
    ./vernier compare $out.a.json $out.b.json > $out.said || fail "vernier compare: exit status $?"
    grep -q "^gemm:.*  $1  " $out.said || { fail "vernier compare does not say \"$1\":"; cat $out.said; }
}
report $out.a.json 0.98 1.00 1.02 '' 31 FFMA
report $out.b.json 1.01 1.03 1.05 '' 31 FFMA; verdict 'no difference'
report $out.b.json 1.03 1.04 1.05 '' 31 FFMA; verdict slower
report $out.b.json 0.80 0.81 0.82 '' 31 FFMA; verdict faster
report $out.b.json 0.90 1.10 1.30 '' 31 FFMA; verdict 'cannot tell'
grep -q 'intervals are too wide' $out.said || fail "compare does not say why it cannot tell"
report $out.b.json 1.03 1.04 1.05 'other processes' 31 FFMA; verdict 'cannot tell'
grep -q 'B was disturbed' $out.said || fail "compare does not say that B was disturbed"
report $out.b.json 1.03 1.04 1.05 '' 3 FFMA; verdict 'cannot tell'
report $out.b.json 0.40 0.41 0.42 '' 31 'HGMMA bf16 x 3'; verdict faster
grep -q 'gemm (HGMMA bf16 x 3), was gemm (FFMA)' $out.said && grep -q 'different engines' $out.said ||
    fail "compare is silent about engines that differ"
sed 's/"interval_s": \[[^]]*\],//' $out.a.json > $out.b.json; verdict 'cannot tell'

# Rows that each take little, since what has begun is waited for, and all together long.
rows=
for k in $(seq 2 80); do
    rows="$rows gemm:32x32x$k:f32:nn"
done

# interrupted COMMAND...: in its first rows it is, and reports them.
interrupted()
{
    in_background $out.part.txt $out.said ./vernier "$@" $rows --budget 0.5 --json $out.part.json
    command=$!
    wait_for $command grep -q '^gemm:' $out.part.txt || fail "vernier $*: no row"
    kill -INT $command
    wait $command
    status=$?
    [ $status = 1 ] || fail "vernier $*, interrupted: exit status $status, not 1"
    grep -q 'interrupted: ' $out.said || { fail "vernier $*, interrupted, said:"; cat $out.said; }
    grep -q '"name": "gemm:32x32x2:f32:nn"' $out.part.json || fail "vernier $*, interrupted, has not the row that it measured"
    grep -q '"name": "gemm:32x32x80:f32:nn"' $out.part.json && fail "vernier $*, interrupted, has measured all"
    rm -f $out.part.json
}
interrupted bench --device Portable
interrupted gap --pair Portable,rusticl --compare none --processes 1
interrupted gap --pair Portable,rusticl --compare none --processes 2

refuses 2 'the same device' gap $gemm --pair Portable,Portable
refuses 2 'comma between' gap $gemm --pair Portable
refuses 2 'no library "rocblas"' gap $gemm --pair Portable,rusticl --compare rocblas
refuses 2 '1 to 31' gap $gemm --processes 32
refuses 2 'one is enough' gap $gemm --pair Portable,rusticl --gpu cuda:0
refuses 2 'missing.json' compare missing.json missing.json
grep -q '^cuda' tests/gap-devices.txt || refuses 2 '--pair SPEC,SPEC' gap $gemm

rm -rf $out.* tests/gap-devices.txt
echo "$failures failures"
[ $failures = 0 ]
