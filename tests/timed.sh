# SPDX-License-Identifier: Apache-2.0
# timed.sh COMMAND...: runs it, and says in a line of its log what time that took:
#
#     took 12.3 s, 8.1 s of CPU time

spent=tests/timed.$$
trap 'rm -f $spent' EXIT
mkdir -p tests
begin=$(date +%s.%N)
"$@"
status=$?
times > $spent
echo "$begin $(date +%s.%N)" | cat - $spent | awk '
    function seconds(time,   part) { split(time, part, /[ms]/); return 60 * part[1] + part[2] }
    NR == 1 { wall = $2 - $1 }
    NR == 3 { cpu = seconds($1) + seconds($2) }
    END     { printf "took %.1f s, %.1f s of CPU time\n", wall, cpu }'
exit $status
