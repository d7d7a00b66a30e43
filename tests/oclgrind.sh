# SPDX-License-Identifier: Apache-2.0
# The conformance suite at small sizes under Oclgrind, which finds accesses outside a buffer,
# reads of what was never written, races, and wrong calls.  Any report fails.

command -v oclgrind > /dev/null || { echo "skipped: install oclgrind"; exit 77; }

reports=tests/oclgrind.reports
rm -f $reports
VERNIER_DEVICE=Oclgrind
export VERNIER_DEVICE
oclgrind --log $reports --data-races --uninitialized --check-api --max-errors 100 tests/test_suite --small
status=$?
if [ -s $reports ]; then
    head -n 200 $reports
    echo "$(grep -c '^$' $reports) reports by Oclgrind"
    exit 1
fi
rm -f $reports
[ $status != 0 ] || echo "no report by Oclgrind"
exit $status
