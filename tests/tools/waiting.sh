# SPDX-License-Identifier: Apache-2.0
# For scripts that read this file.

# in_background OUTPUT ERRORS COMMAND...: begins it as process $!.  The files are emptied first, for what an earlier
# command left in them is not to be taken for what this one says: it would be interrupted before it takes interrupts.
in_background()
{
    output=$1 errors=$2
    shift 2
    : > "$output"
    : > "$errors"
    "$@" >> "$output" 2>> "$errors" &
}

# wait_for PROCESS COMMAND...: until the command succeeds.  It fails where the process ends before that, or
# hangs: nothing takes half an hour, however busy the machine is.
wait_for()
{
    process=$1 tries=0
    shift
    until "$@" 2> /dev/null; do
        kill -0 "$process" 2> /dev/null || { "$@" 2> /dev/null; return; }
        tries=$((tries + 1))
        [ $tries -lt 18000 ] || { echo "after half an hour there is still no: $*"; return 1; }
        sleep 0.1
    done
}
