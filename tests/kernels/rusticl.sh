# SPDX-License-Identifier: Apache-2.0
# A tenth of the conformance suite on Mesa's rusticl, on the CPU: local memory of 32 KiB, no f64.

RUSTICL_ENABLE=llvmpipe VERNIER_DEVICE=rusticl
export RUSTICL_ENABLE VERNIER_DEVICE
tests/api/test_suite --quick
status=$?
[ $status != 77 ] || echo "skipped: install mesa-opencl-icd"
exit $status
