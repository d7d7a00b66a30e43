# SPDX-License-Identifier: Apache-2.0
# What the command says: one of a thing is not many, no text obeys a terminal, what a driver prints stays out
# of the tables, and closed descriptors are nobody's files.

command=messages
. "${srcdir:=.}/tests/tools/command.sh"
escape=$(printf '\033')
gemm=gemm:5x7x9:f32:nn

# clean WORDS...: exits with STATUS (of the first word), and no control character is in what it says
clean()
{
    want=$1
    shift
    ./vernier "$@" > "$out/said" 2>&1
    status=$?
    [ $status = "$want" ] || { fail "vernier $*: exit status $status, not $want"; cat -v "$out/said"; }
    [ "$(LC_ALL=C tr -d '\000-\010\013-\037\177' < "$out/said" | wc -c)" = "$(wc -c < "$out/said")" ] ||
        { fail "vernier $*: control characters:"; cat -v "$out/said"; }
}

VERNIER_DEVICE=no-such-device ./vernier explain $gemm 2>&1 | grep -q 'none of the' &&
    fail "a device is told to be none of the 1 devices"

# each variant is told of once, unless with several rows
for direction in forward backward-data backward-filter; do
    ./vernier explain conv:n1c32h8w8k32r3s3:f32:groups=32:$direction > "$out/said" 2> /dev/null ||
        fail "vernier explain: exit status $?"
    grep -E '^(variant|passed over|           ) ' "$out/said" |
        sed -E 's/^(variant|passed over|           ) *//; s/^([a-z_0-9]*:).*/\1/; s/: .*//' | sort | uniq -d > "$out/twice"
    [ ! -s "$out/twice" ] || { fail "explain, $direction, names twice:"; cat "$out/twice" "$out/said"; }
    sed -nE 's/^(passed over|           ) *([a-z_0-9]*): it is for .*/\2/p' "$out/said" > "$out/other"
    while read -r name; do
        grep -Eq "^(variant|passed over|           ) *$name( |\$)" "$out/said" &&
            { fail "explain, $direction, has a row of $name, and that it is for another direction"; cat "$out/said"; }
    done < "$out/other"
done

# a convolution that is copied first, and is a product then, has the engine of the product
./vernier explain conv:n2c64h32w32k64r1s1:f32:variant=conv_repack > "$out/said" 2> /dev/null ||
    fail "vernier explain: exit status $?"
grep -Eq '^engine +FMA f32$' "$out/said" || { fail "explain does not name the engine of what has parts"; cat "$out/said"; }

# the suites are found wherever this was built
./vernier bench squares --filter no-such-row 2>&1 | grep -q 'no-such-row' || fail "the suite squares is not found"

# names of files, and texts in them
cat > "$out/report.json" << END
{ "context": { "device": "\\u001b[31mred\\u009b", "name\\u0007": "x" },
  "vernier": { "geomean": { "\\u001b]0;title": 1 } },
  "benchmarks": [ { "name": "\\u001b[2Jgemm:1x1x1:f32:nn", "variant": "\\u0008gemm", "real_time": 1.0 } ] }
END
clean 0 compare "$out/report.json" "$out/report.json"
clean 2 compare "$out/${escape}[31m.json" "$out/report.json"
clean 2 check "${escape}[31m"

# a descriptor that is closed is not taken by a file that the command writes to
./vernier explain $gemm --json "$out/explained" >&- 2> "$out/said" && fail "closed stdout: exit status 0"
grep -q 'standard output cannot be written' "$out/said" || { fail "closed stdout: said:"; cat "$out/said"; }
grep -q '^problem' "$out/explained" && fail "closed stdout: the table is in the JSON"

# what a driver prints comes after the table, as one sentence; all of it with VERNIER_LOG, or before a failure
if ${CC:-cc} -shared -fPIC -o "$out/loud.so" -x c - > "$out/said" 2>&1 << 'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* As a driver with a compiler in it does. */
int clFinish(void *queue)
{
    static int (*finish)(void *);

    if (!finish)
        finish = (int (*)(void *))dlsym(RTLD_NEXT, "clFinish");
    if (write(2, "1 warning generated.\n", 21) < 0 || fprintf(stderr, "MESA: \033[31m\n") < 0)
        return -1;
    if (getenv("LOUD_ABORTS"))
        abort();
    return finish(queue);
}
END
then
    loud()
    {
        LD_PRELOAD=$out/loud.so ./vernier explain $gemm > "$out/table" 2>&1
    }
    if ldd ./vernier | grep -q 'lib[a-z]*san\.so'; then
        echo "a loud driver left out: a sanitizer comes before all that is preloaded"
    elif ! loud; then
        fail "a loud driver: exit status $?"
        cat "$out/table"
    elif grep -q 'printed [0-9]* lines, the first "1 warning generated\."' "$out/table"; then
        [ "$(grep -c 'warning generated' "$out/table")" = 1 ] || { fail "not all was kept back:"; cat "$out/table"; }
        sed -n '$p' "$out/table" | grep -q '^vernier: drivers or their compilers printed' ||
            { fail "the sentence is not the last:"; cat "$out/table"; }
        (VERNIER_LOG=build; export VERNIER_LOG; loud)
        [ "$(grep -c '^1 warning generated' "$out/table")" -gt 1 ] || { fail "VERNIER_LOG:"; cat "$out/table"; }
        # through a pipe, whose end is that of all who write
        (LOUD_ABORTS=1; export LOUD_ABORTS; LD_PRELOAD=$out/loud.so ./vernier explain $gemm 2>&1) 2> /dev/null |
            cat > "$out/table"
        grep -q '^1 warning generated' "$out/table" || { fail "aborted, and its words are lost:"; cat "$out/table"; }
    else
        fail "a loud driver:"
        cat "$out/table"
    fi
else
    echo "a loud driver left out: no shared library can be made"
fi

echo "$failures failures"
[ $failures = 0 ]
