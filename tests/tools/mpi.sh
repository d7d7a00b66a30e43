# SPDX-License-Identifier: Apache-2.0
# examples/mpi/summa.c: four processes multiply one matrix, on the device that the tests use.

command -v mpicc > /dev/null && command -v mpirun > /dev/null ||
    { echo "skipped: install Open MPI (Debian: libopenmpi-dev openmpi-bin)"; exit 77; }
case $(objdump -p .libs/libvernier.so 2> /dev/null) in
*NEEDED*san.so*) echo "skipped: with sanitizers the processes would need them too"; exit 77 ;;
esac
out=$PWD/tests/mpi.tmp
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT

./libtool --quiet --tag=CC --mode=link mpicc -std=gnu99 -Wall -Wextra -I"$srcdir/lib" "$srcdir/examples/mpi/summa.c" \
    libvernier.la -lm -o "$out/summa" || exit 1

# Also as root, and with more processes than cores; all on this machine, without a daemon.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$out
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM TMPDIR
failures=0
run()           # PROCESSES N PANEL
{
    timeout 600 mpirun --oversubscribe --mca btl self,vader --mca plm isolated -n "$1" "$out/summa" "$2" "$3" > "$out/said" 2>&1
    status=$?
    cat "$out/said"
    if [ $status = 77 ]; then echo "skipped: there is no device"; exit 77; fi
    grep -q ' 0 wrong elements$' "$out/said" && [ $status = 0 ] || failures=$((failures + 1))
}
run 4 256 32
mpirun --oversubscribe --mca plm isolated -n 2 "$out/summa" 100 7 > "$out/said" 2>&1 && failures=$((failures + 1))
grep -q '^N is 100 and the panel 7; ' "$out/said" || { cat "$out/said"; failures=$((failures + 1)); }
echo "$failures failures"
[ $failures = 0 ]
