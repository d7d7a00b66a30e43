# SPDX-License-Identifier: Apache-2.0
# netlib's test programs of BLAS and CBLAS with libvernier_cblas.so before the reference BLAS: all products, however
# small, go to the library.  Debian's package libblas-test has the programs.

shim=$PWD/.libs/libvernier_cblas.so
out=$PWD/tests/cblas.tmp
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT

folder=$(dirname "$(find /usr/lib -path '*/blas/xscblat3' 2> /dev/null | head -n 1)")
[ -n "$folder" ] && [ -x "$folder/xscblat3" ] && [ -e "$folder/libblas.so.3" ] ||
    { echo "skipped: install netlib's tests and its BLAS (Debian: libblas-test libblas3)"; exit 77; }
[ -e "$shim" ] || { echo "skipped: the shared library was not built"; exit 77; }
case $(objdump -p "$shim") in
*NEEDED*san.so*) echo "skipped: a library with sanitizers cannot be preloaded"; exit 77 ;;
esac

cd "$out" || exit 1
cases=0
failures=0

# run PROGRAM DATA WORD: the program passes, by launches of the library's.
run()
{
    cases=$((cases + 1))
    LD_LIBRARY_PATH=$folder LD_PRELOAD=$shim VERNIER_LOG=launch VERNIER_BLAS_FROM=0 \
        "$folder/$1" < "$folder/$2" > printed 2> said
    status=$?
    cat ./*.out ./*.OUT >> printed 2> /dev/null
    rm -f ./*.out ./*.OUT
    launches=$(grep -c '^vernier launch: gemm' said)
    grep -E "$3.*PASS" printed
    echo "$1: $launches launches"
    if [ $status != 0 ] || [ "$launches" -lt 1000 ] || ! grep -Eq "$3 *PASSED.*COMPUTATIONAL" printed ||
       grep -Eq 'FAIL|SUSPECT|FATAL' printed; then
        grep -v '^ *$' printed | tail -n 30
        failures=$((failures + 1))
    fi
}

run xscblat3 sin3 cblas_sgemm
run xdcblat3 din3 cblas_dgemm
run xscblat2 sin2 cblas_sgemv
run xblat3s sblat3.in SGEMM
echo "$cases programs, $failures failures"
[ $failures = 0 ]
