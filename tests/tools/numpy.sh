# SPDX-License-Identifier: Apache-2.0
# NumPy's own test_linalg and test_multiarray with libvernier_cblas.so preloaded, all products of which go to the
# library: minutes, so `make check-numpy` runs it, not `make check`.

shim=$PWD/.libs/libvernier_cblas.so
for python in ${PYTHON-python3 /usr/bin/python3}; do
    "$python" -c 'import numpy, pytest, hypothesis' 2> /dev/null && break
done
"$python" -c 'import numpy, pytest, hypothesis' 2> /dev/null ||
    { echo "skipped: install NumPy, pytest and hypothesis (Debian: python3-numpy python3-pytest python3-hypothesis)"; exit 77; }
[ -e "$shim" ] || { echo "skipped: the shared library was not built"; exit 77; }
core=$("$python" -c 'import numpy; print("_core" if int(numpy.__version__.split(".")[0]) > 1 else "core")')
out=$PWD/tests/numpy.tmp
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT

for module in numpy.linalg.tests.test_linalg numpy.$core.tests.test_multiarray; do
    VERNIER_TRACE=$out/trace VERNIER_BLAS_FROM=0 LD_PRELOAD=$shim "$python" -m pytest -q -p no:cacheprovider \
        --tb=short --pyargs $module > "$out/said" 2>&1
    status=$?
    tail -n 3 "$out/said"
    launches=$(grep -o '"gemm[a-z_0-9]*"' "$out/trace" | wc -l)
    echo "$module: $launches launches"
    rm -f "$out/trace"
    [ $status = 0 ] && [ "$launches" -ge 100 ] || exit 1
done
