# SPDX-License-Identifier: Apache-2.0
# tests/kernels/emulation on all engines, side by side, since a compiler keeps one core busy.

out=tests/emulation.tmp
rm -rf $out && mkdir $out
trap 'rm -rf $out' 0

for part in "gfx908 gfx1100" "gfx90a gfx1201" "gfx942 intel" "sm_90"; do
    (
        tests/kernels/emulation $part > "$out/$part.said" 2>&1
        echo $? > "$out/$part.status"
    ) &
done
wait

cat $out/*.said
for status in $out/*.status; do
    [ "$(cat "$status")" = 0 ] || exit "$(cat "$status")"
done
