# SPDX-License-Identifier: Apache-2.0
# `vernier cache`: what it counts is what there is, and what it removes is what it says, and nothing else.

command=cache
. "${srcdir:=.}/tests/tools/command.sh"

mkdir -m 700 "$out/cache"
VERNIER_CACHE_DIR=$out/cache
export VERNIER_CACHE_DIR

refuses 2 'no action "shrink"' shrink
refuses 2 'one action at a time' list clear
refuses 2 '--days is "0"' prune --days 0
refuses 2 '--days is for prune' list --days 3
VERNIER_CACHE=0 refuses 2 'VERNIER_CACHE is 0' size
VERNIER_CACHE_DIR=/dev/null refuses 2 '/dev/null: there is no such directory' size

# says PATTERN WORDS...: exits with 0, and says a line like that
says()
{
    pattern=$1
    shift
    ./vernier cache "$@" > "$out/said" 2>&1 || { fail "vernier cache $*: exit status $?:"; cat "$out/said"; }
    grep -q -- "$pattern" "$out/said" || { fail "vernier cache $*: no line is like \"$pattern\":"; cat "$out/said"; }
}

says "^$out/cache  0 kernels, 0 bytes\$"
./vernier explain gemm:21x22x23:f32:nn:variant=gemm > /dev/null 2>&1 || fail "nothing to keep"
count=$(find "$out/cache" -name '*.kernel' | wc -l)
bytes=$(cat "$out"/cache/*.kernel | wc -c)
one=$(find "$out/cache" -name '*.kernel' | head -n 1)
[ "$count" -ge 1 ] || { fail "nothing was kept"; exit 1; }
says "^$out/cache  $count kernels*, $bytes bytes\$" size
says "^$(basename "$one" | cut -c 1-8)  *$(wc -c < "$one") bytes  20[0-9-]* [0-9:]*  [^ ]" list
[ "$(grep -c ' bytes  20' "$out/said")" = "$count" ] || fail "list has not $count lines"
says '"toolchain": ".' --json -
says '"current": true' list --json -

# Of another version, damaged, old: pruned.  Files that are no entries, and entries in use: kept.
entry() { printf "%s/cache/%032d.kernel" "$out" "$1"; }
sed 's/vernier [0-9.]*/vernier 9.9.9/' "$one" > "$(entry 1)"
head -c 100 "$one" > "$(entry 2)"
cp "$one" "$(entry 3)"
touch -d '40 days ago' "$(entry 3)"
cp "$one" "$(entry 4)"
touch -d '20 days ago' "$(entry 4)"
echo mine > "$out/cache/notes"
chmod 600 "$out"/cache/*
says 'of another version, or damaged$' list
says '^removed  3 kernels, [0-9]* bytes$' prune
[ -e "$(entry 4)" ] && [ -e "$one" ] && [ -e "$out/cache/notes" ] || fail "prune removed too much"
[ -e "$(entry 1)" ] || [ -e "$(entry 2)" ] || [ -e "$(entry 3)" ] && fail "prune removed too little"
says '^removed  1 kernel, [0-9]* bytes$' prune --days 10
says "^$out/cache  $count kernels*, $bytes bytes\$" prune
says "^removed  $count kernels*, $bytes bytes\$" clear
[ "$(ls "$out/cache")" = notes ] || { fail "clear leaves:"; ls "$out/cache"; }
says "^$out/cache  0 kernels, 0 bytes\$" clear

echo "$failures failures"
[ $failures = 0 ]
