# SPDX-License-Identifier: Apache-2.0
# The conformance suite at small sizes under Oclgrind, which finds accesses outside a buffer,
# reads of what was never written, races, and wrong calls.  Any report fails.

command -v oclgrind > /dev/null || { echo "skipped: install oclgrind"; exit 77; }

VERNIER_DEVICE=Oclgrind
export VERNIER_DEVICE

# Built without optimization, and so in a cache of its own: Oclgrind does not know some of
# the instructions that optimization makes (freeze, sums of vectors).
VERNIER_CACHE_DIR=$(pwd)/tests/oclgrind.cache
export VERNIER_CACHE_DIR
rm -rf "$VERNIER_CACHE_DIR" && mkdir -p tests && mkdir -m 700 "$VERNIER_CACHE_DIR"

out=tests/oclgrind.tmp
rm -rf $out && mkdir $out
trap 'rm -rf "$VERNIER_CACHE_DIR" $out' 0

# Small tiles and work-groups: one core runs each work-item after the other.
VERNIER_TUNE=$(pwd)/$out/rows.tune
export VERNIER_TUNE
cat > $out/rows.tune << END
columns softmax_split  ITEMS VALUES
softmax_split  * * * *  32 8
columns conv           BLK_M BLK_N BLK_K THR_M THR_N
conv           * * * *  16 16 8 2 2
columns attention      BLK_M BLK_N BLK_K THR_M THR_N
attention      * * * *  16 16 8 2 2
END

# Side by side, since it keeps little more than one core busy.
for part in gemm conv softmax attention cross-entropy; do
    (
        oclgrind --build-options -cl-opt-disable --log $out/$part.reports --data-races --uninitialized \
            --check-api --max-errors 100 tests/api/test_suite --small $part > $out/$part.said 2>&1
        echo $? > $out/$part.status
    ) &
done
wait

status=0
for part in gemm conv softmax attention cross-entropy; do
    cat $out/$part.said
    if [ -s $out/$part.reports ]; then
        head -n 200 $out/$part.reports
        echo "$part: $(grep -c '^$' $out/$part.reports) reports by Oclgrind"
        exit 1
    fi
    [ $status != 0 ] || status=$(cat $out/$part.status)
done
[ $status != 0 ] || echo "no report by Oclgrind"
exit $status
