# SPDX-License-Identifier: Apache-2.0
# tests/kernels/emulation on all engines, side by side, since a compiler keeps one core busy.

out=$PWD/tests/emulation.tmp
rm -rf "$out" && mkdir -p "$out" && mkdir -m 700 "$out/cache" "$out/pocl"
trap 'rm -rf "$out"' 0

# PoCL does not vectorize the loops over work-items, which takes longer than it saves here; and so what it builds
# is in a cache of its own, and is not what other tests run.
POCL_WORK_GROUP_METHOD=loops
VERNIER_CACHE_DIR=$out/cache
POCL_CACHE_DIR=$out/pocl
export POCL_WORK_GROUP_METHOD VERNIER_CACHE_DIR POCL_CACHE_DIR

for part in "gfx908 gfx1100" "gfx90a gfx1201" "gfx942 intel" "sm_90"; do
    (
        tests/kernels/emulation $part > "$out/$part.said" 2>&1
        echo $? > "$out/$part.status"
    ) &
done
wait

cat "$out"/*.said
for status in "$out"/*.status; do
    [ "$(cat "$status")" = 0 ] || exit "$(cat "$status")"
done
