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
./vernier gap $gemm $softmax --pair Portable,rusticl --compare none --budget 0.2 \
    --json $out.json --csv $out.csv --html $out.html > $out.txt || fail "vernier gap: exit status $?"
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
[ "$(wc -l < $out.csv)" = 3 ] || fail "$out.csv has not three lines"

# drawn again, it is the same page
./vernier gap --from $out.json --html $out.again.html > /dev/null || fail "vernier gap --from: exit status $?"
cmp $out.html $out.again.html || fail "the page drawn again differs"

./vernier compare $out.json $out.json --html $out.compare.html | grep -q 'geometric mean of B/A: 1.000 (2 rows)' ||
    fail "vernier compare: a report differs from itself"
[ -s $out.compare.html ] || fail "vernier compare wrote no page"

# Rows that each take little, since what has begun is waited for, and all together long.
rows=
for k in $(seq 2 80); do
    rows="$rows gemm:32x32x$k:f32:nn"
done

# interrupted COMMAND...: in its first rows it is, and reports them.
interrupted()
{
    ./vernier "$@" $rows --budget 0.5 --json $out.part.json > $out.part.txt 2> $out.said &
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
interrupted gap --pair Portable,rusticl --compare none

refuses 2 'the same device' gap $gemm --pair Portable,Portable
refuses 2 'comma between' gap $gemm --pair Portable
refuses 2 'no library "rocblas"' gap $gemm --pair Portable,rusticl --compare rocblas
refuses 2 'one is enough' gap $gemm --pair Portable,rusticl --gpu cuda:0
refuses 2 'missing.json' compare missing.json missing.json
grep -q '^cuda' tests/gap-devices.txt || refuses 2 '--pair SPEC,SPEC' gap $gemm

rm -f $out.* tests/gap-devices.txt
echo "$failures failures"
[ $failures = 0 ]
