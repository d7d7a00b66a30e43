# SPDX-License-Identifier: Apache-2.0
# The conformance suite at small sizes under Oclgrind, which finds accesses outside a buffer,
# reads of what was never written, races, and wrong calls.  Any report fails.

command -v oclgrind > /dev/null || { echo "skipped: install oclgrind"; exit 77; }

reports=tests/oclgrind.reports
rm -f $reports
VERNIER_DEVICE=Oclgrind
export VERNIER_DEVICE

# Built without optimization, and so in a cache of its own: Oclgrind does not know some of
# the instructions that optimization makes (freeze, sums of vectors).
VERNIER_CACHE_DIR=$(pwd)/tests/oclgrind.cache
export VERNIER_CACHE_DIR
rm -rf "$VERNIER_CACHE_DIR" && mkdir -p tests && mkdir -m 700 "$VERNIER_CACHE_DIR"
trap 'rm -rf "$VERNIER_CACHE_DIR"' 0

oclgrind --build-options -cl-opt-disable --log $reports --data-races --uninitialized --check-api --max-errors 100 \
    tests/test_suite --small
status=$?
if [ -s $reports ]; then
    head -n 200 $reports
    echo "$(grep -c '^$' $reports) reports by Oclgrind"
    exit 1
fi
rm -f $reports
[ $status != 0 ] || echo "no report by Oclgrind"
exit $status
