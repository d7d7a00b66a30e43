# SPDX-License-Identifier: Apache-2.0
# For `make check-quick`: groups of the conformance suite, evenly spread over all, for a quarter of a minute.

[ -x ./vernier ] || { echo "skipped: the command is not built"; exit 77; }
./vernier check --quick --budget 15s
status=$?
[ $status != 2 ] || status=77                   # there is no device
exit $status
