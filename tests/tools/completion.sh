# SPDX-License-Identifier: Apache-2.0
# `vernier completion`: bash takes its script, and completes what the command itself knows.

: "${srcdir:=.}"
[ -x ./vernier ] || { echo "skipped: the command is not built"; exit 77; }
command -v bash > /dev/null || { echo "skipped: install bash"; exit 77; }
failures=0
out=tests/completion.tmp
rm -rf $out
mkdir -p $out
trap 'rm -rf $out' EXIT

fail()
{
    echo "$*"
    failures=$((failures + 1))
}

./vernier completion > $out/script || fail "vernier completion: exit status $?"
./vernier completion more > /dev/null 2>&1 && fail "vernier completion takes words"
bash -n $out/script || fail "bash does not take it"

# completes "WORDS" WANTED...: the last of the words is completed to just these
completes()
{
    words=$1
    shift
    got=$(bash -c '. "$1"; COMP_WORDS=($2); case $2 in *" ") COMP_WORDS+=("") ;; esac
                   COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _vernier; echo ${COMPREPLY[*]}' - $out/script "$words")
    [ "$got" = "$*" ] || fail "\"$words\" is completed to \"$got\", not \"$*\""
}

completes 'vernier be' bench
completes 'vernier c' check compare choice cache completion
completes 'vernier --v' --version
completes 'vernier cache ' size list clear prune --days --json --help
completes 'vernier bench dee' deepbench-gemm deepbench-conv
completes 'vernier bench --ty' --type
completes 'vernier bench squares --type b' bf16
completes 'vernier tune --device g' gpu
completes 'vernier explain --pl' --plans
completes "vernier compare $srcdir/LIC" "$srcdir/LICENSE" "$srcdir/LICENSES"
completes 'vernier no_such ' ''

# All that --help knows, and nothing else.
sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' << END > $out/commands
$(./vernier --help | sed -n '/^$/,/^Each/p')
END
while read -r name; do
    completes "vernier $name" "$(grep "^$name" $out/commands | tr '\n' ' ' | sed 's/ $//')"
    ./vernier "$name" --help > $out/help 2>&1
    grep -oE '^ +(-[a-zA-Z], )? *--[a-z-]+' $out/help | grep -oE -e '--[a-z-]+' |
        grep -vxE -e '--(help|usage|version)' | sort -u > $out/known
    sed -n "s/^        $name) words='\(.*\)' ;;\$/\1/p" $out/script | tr ' ' '\n' | grep -e '^--' |
        grep -vx -e --help | sort > $out/completed
    diff $out/known $out/completed || fail "^ options of vernier $name: --help (<) and completion (>)"
done < $out/commands
[ "$(wc -l < $out/commands)" -ge 11 ] || { fail "the commands of --help:"; cat $out/commands; }

echo "$failures failures"
[ $failures = 0 ]
