# SPDX-License-Identifier: Apache-2.0
# The command in odd surroundings: with standard streams closed, and where PoCL cannot write to its cache folder.

[ -x ./vernier ] || { echo "skipped: the command is not built"; exit 77; }
./vernier devices > /dev/null 2>&1 || { echo "skipped: there is no device"; exit 77; }

failures=0
cases=0
dir=$PWD/tests/surroundings.tmp
rm -rf "$dir"
mkdir -p "$dir"
trap 'rm -rf "$dir"' EXIT
problem=softmax:3x5:f32

check()
{
    cases=$((cases + 1))
    "$@" || { echo "not ok: $what: $*"; failures=$((failures + 1)); }
}

# What is opened first must not get the number of a closed stream, and its text.
what='standard output closed'
VERNIER_TRACE=$dir/trace ./vernier explain $problem >&- 2> "$dir/error"
check [ $? = 1 ]
check grep -q 'standard output cannot be written' "$dir/error"
check grep -q '^\[$' "$dir/trace"
check [ -z "$(sed -e '/^\[$/d' -e '/^{/d' -e '/^,$/d' -e '/^\]$/d' "$dir/trace")" ]
what='all streams closed'
VERNIER_TRACE=$dir/trace ./vernier explain $problem <&- >&- 2>&-
check [ $? = 1 ]
check [ -z "$(sed -e '/^\[$/d' -e '/^{/d' -e '/^,$/d' -e '/^\]$/d' "$dir/trace")" ]

# The loader is shown PoCL alone; a file in the place of a folder stops root, too.
what='a cache folder of PoCL that cannot be written'
icd=$(grep -ls pocl /etc/OpenCL/vendors/*.icd | head -n 1)
if [ -n "$icd" ] && OCL_ICD_VENDORS=$icd ./vernier devices > /dev/null 2>&1; then
    touch "$dir/file"
    OCL_ICD_VENDORS=$icd POCL_CACHE_DIR=$dir/file/cache ./vernier devices > "$dir/said" 2>&1
    check grep -q "cannot write to its cache folder, which is $dir/file/cache (POCL_CACHE_DIR)" "$dir/said"
else
    echo "left out: $what; there is no PoCL"
fi

echo "COUNT surroundings $cases"
echo "$failures failures"
[ $failures = 0 ]
