# SPDX-License-Identifier: Apache-2.0
# Rows that nobody ships: convolution on CPUs with two rows from corners of each variant's space, on a small problem, and
# attention with work-groups so many that the keys have more splits than are merged at once.  A row that does not fit the
# device, or that the kernel's text refuses (#error), is passed over.

[ -x ./vernier ] || { echo "skipped: the command is not built"; exit 77; }
./vernier devices > /dev/null 2>&1 || { echo "skipped: there is no device"; exit 77; }

problems='
conv_cpu          conv:n1c5h6w9k7r3s3:f32:pad=1
conv_slab         conv:n1c5h6w9k7r3s3:f32:pad=1
conv_slab_packed  conv:n1c5h6w9k7r3s3:f32:pad=1:nhwc
conv_slab_filter  conv:n1c5h6w9k7r3s3:f32:pad=1:backward-filter
conv_narrow       conv:n1c5h6w19k3r3s3:f32:pad=1
conv_narrow       conv:n1c3h7w19k5r3s3:f32:pad=1:stride=2:nhwc:backward-data
attention_decode      attention:b1h4s1d64:f32:hk=2:sk=2000      8 4 1 1 0 | 8 64 0
attention_decode_cpu  attention:b1h4s2d72:f32:hk=2:sk=2000:lse  8 16 | 64'

out=$PWD/tests/${0##*/}.tmp
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT
VERNIER_TUNE=$out/user.tune
export VERNIER_TUNE

# corner VARIANT FIRST: the smallest and the largest value of its parameters in turns; FIRST is 0: from the smallest on
corner()
{
    cat "$srcdir"/cl/*/*.tune | awk -v variant="$1" -v first="$2" '
        $1 == "space" && $2 == variant {
            for (i = 3; i <= NF; i++)
                if ($i ~ /^[A-Z]/)
                    n++
                else {
                    if (!(n in low)) low[n] = $i
                    high[n] = $i
                }
            for (i = 1; i <= n; i++)
                printf "%s ", (i + first) % 2 ? low[i] : high[i]
        }'
}

failures=0
rows=0
echo "$problems" > "$out/problems"
while read -r variant problem given; do
    [ -n "$variant" ] || continue
    for first in 0 1; do
        [ $first = 0 ] || [ -z "$given" ] || break
        row=${given:-$(corner $variant $first)}
        echo "$variant * * * * $row" > $VERNIER_TUNE
        if ./vernier check $problem:variant=$variant > "$out/said" 2>&1 < /dev/null &&
           ! grep -q 'is not used' "$out/said"; then
            rows=$((rows + 1))
        elif ! grep -q '^0 cases\|failed to build the program' "$out/said"; then
            echo "the row $row of $variant is wrong:"
            cat "$out/said"
            failures=$((failures + 1))
        fi
    done
done < "$out/problems"
echo "$rows rows are right, $failures failures"
[ $rows$failures != 00 ] || { echo "skipped: the device is no CPU"; exit 77; }
[ $failures = 0 ] && [ $rows -ge 6 ]
