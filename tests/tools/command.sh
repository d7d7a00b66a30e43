# SPDX-License-Identifier: Apache-2.0
# What tests of a command on a device begin with; sourced with $command, a subcommand: leaves $out, a folder, with a
# user's tune file $VERNIER_TUNE in one of its own that is not there yet.

[ -x ./vernier ] || { echo "skipped: the command is not built"; exit 77; }
./vernier devices > /dev/null 2>&1 || { echo "skipped: there is no device"; exit 77; }

failures=0
fail()
{
    echo "$*"
    failures=$((failures + 1))
}

out=$PWD/tests/${0##*/}.tmp
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT
VERNIER_TUNE=$out/config/user.tune
export VERNIER_TUNE

# refuses STATUS PATTERN WORDS...: exits so, with a sentence like that.
refuses()
{
    want=$1 pattern=$2
    shift 2
    said=$(./vernier $command "$@" 2>&1)
    status=$?
    [ $status = "$want" ] || fail "vernier $command $*: exit status $status, not $want"
    case $said in *"$pattern"*) ;; *) fail "vernier $command $*: said: $said" ;; esac
}
