# SPDX-License-Identifier: Apache-2.0
# The Python package on the library that was built here: its structs are those of vernier.h, its tests pass, and
# the program that README.md and doc/python.md show runs.

# The first that has what the tests need: that of the system may not come first.
for python in ${PYTHON-python3 /usr/bin/python3}; do
    "$python" -c 'import numpy, pytest' 2> /dev/null && break
done
out=tests/python.tmp
rm -rf $out
mkdir -p $out
trap 'rm -rf $out' EXIT

"$python" -c 'import numpy, pytest' 2> /dev/null ||
    { echo "skipped: install NumPy and pytest (Debian: python3-numpy python3-pytest)"; exit 77; }
case $(objdump -p .libs/libvernier.so 2> /dev/null) in
*NEEDED*san.so*) echo "skipped: a library with sanitizers cannot be loaded by Python"; exit 77 ;;
esac
VERNIER_LIBRARY=$PWD/.libs/libvernier.so PYTHONPATH=$srcdir/python PYTHONDONTWRITEBYTECODE=1 PATH=$PWD:$PATH
export VERNIER_LIBRARY PYTHONPATH PYTHONDONTWRITEBYTECODE PATH

# ---- structs: the size and place of each member, from C and from ctypes ----------------------------

cat > $out/layout.py <<'END'
import sys
from vernier import _library as v

members = [(s, m[0]) for s in v.STRUCTS for m in s._fields_]
if sys.argv[1] == "c":
    print("#include <stddef.h>\n#include <stdio.h>\n#include <vernier.h>\nint main(void)\n{")
    for s in v.STRUCTS:
        print(f'    printf("{s.C} %zu\\n", sizeof({s.C}));')
    for s, m in members:
        print(f'    printf("{s.C}.{m} %zu %zu\\n", offsetof({s.C}, {m}), sizeof((({s.C} *)0)->{m}));')
    for name, list, prefix in (("math", v.MATHS, "VN_MATH_"), ("act", v.ACTIVATIONS, "VN_"), ("type", v.TYPES, "VN_"),
                               ("causal", v.CAUSALS, "VN_CAUSAL_")):
        for word in list:
            print(f'    printf("{name} {word} %d\\n", (int){prefix}{word.upper()});')
    for e in v.ERRORS[1:]:
        print(f'    printf("status {e.status} %d\\n", (int){e.status});')
    print('    printf("counts %d %d %d %d\\n", VN_MATH_COUNT, VN_ACTIVATION_COUNT, VN_TYPE_COUNT, VN_STATUS_COUNT);')
    print('    printf("rank %d align %d\\n", VN_RANK, VN_HOST_ALIGN);\n    return 0;\n}')
else:
    import ctypes
    for s in v.STRUCTS:
        print(s.C, ctypes.sizeof(s))
    for s, m in members:
        print(f"{s.C}.{m}", getattr(s, m).offset, getattr(s, m).size)
    for name, list in (("math", v.MATHS), ("act", v.ACTIVATIONS), ("type", v.TYPES), ("causal", v.CAUSALS)):
        for i, word in enumerate(list):
            print(name, word, i)
    for i, e in enumerate(v.ERRORS[1:], 1):
        print("status", e.status, i)
    print("counts", len(v.MATHS), len(v.ACTIVATIONS), len(v.TYPES), len(v.ERRORS))
    print("rank", v.RANK, "align", v.HOST_ALIGN)
END
"$python" $out/layout.py c > $out/layout.c && $CC -I"$srcdir/lib" $out/layout.c -o $out/layout || exit 1
$out/layout > $out/of_c && "$python" $out/layout.py python | diff $out/of_c - ||
    { echo "^ vernier.h (<) and python/vernier/_library.py (>) differ"; exit 1; }
echo "$(wc -l < $out/of_c) sizes, places and enumerators, the same in both"

# ---- what the documents show ------------------------------------------------------------------------

program()       # FILE: its first program
{
    awk '/^```python$/ { on = 1; next } /^```/ && on { exit } on' "$srcdir/$1"
}
for file in README.md doc/python.md; do
    [ "$(program $file | wc -l)" = 6 ] || { echo "the Python program of $file has not six lines"; exit 1; }
    program $file > $out/program.py
    "$python" $out/program.py > $out/printed || { cat $out/printed; echo "^ the Python program of $file fails"; exit 1; }
    grep -q '^(1000, 800) ' $out/printed && grep -q '^variant gemm' $out/printed ||
        { cat $out/printed; echo "^ printed by the Python program of $file"; exit 1; }
done

# ---- the notebook, which draws the reports of results/ -------------------------------------------

if [ -d "$srcdir/results" ] && "$python" -c 'import pandas, matplotlib' 2> /dev/null; then
    notebook=$(cd "$srcdir" && pwd)/examples/gap.ipynb runner=$(cd "$srcdir" && pwd)/tests/tools/notebook.py
    (PYTHONPATH=$(cd "$srcdir" && pwd)/python; cd "$srcdir" && MPLCONFIGDIR=${TMPDIR-/tmp} "$python" "$runner" "$notebook") || { echo "^ examples/gap.ipynb fails"; exit 1; }
else
    echo "examples/gap.ipynb left out: it needs results/, pandas and matplotlib"
fi

# ---- its own tests -----------------------------------------------------------------------------------

"$python" -m pytest -q -p no:cacheprovider --tb=short --pyargs vernier > $out/said 2>&1
status=$?
cat $out/said
passed=$(sed -n 's/^\([0-9]*\) passed.*/\1/p; s/.* \([0-9]*\) passed.*/\1/p' $out/said | tail -n 1)
echo "COUNT python ${passed:-0}"
[ $status = 0 ] || exit 1
[ "${passed:-0}" -ge 400 ] || { echo "fewer than 400 passed"; exit 1; }
