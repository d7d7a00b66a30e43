# SPDX-License-Identifier: Apache-2.0
# PyTorch as a peer: its results agree with ours, row by row; and where python3 has none, that is said.

command=torch
. "${srcdir:=.}/tests/tools/command.sh"

problems='softmax:37x200:f32 softmax:37x200:f32:log softmax:37x200:f32:backward softmax:7x9:f32:gap=3:start=5
    attention:b3h4s40d32:f32:len=9 attention:b3h4s40d32:f32:causal:len=9:qlen=9
    attention:b2h4s17d24:f32:hk=2:sk=33:len=21:qlen=3:gap=2 attention:b2h4s17d24:f32:causal:sk=33:len=21'

# peers PYTHON_FOLDER: what a short bench says, in $out/said
peers()
{
    PATH=$1:$PATH timeout 600 ./vernier bench $problems --compare torch --budget 0.01 > "$out/said" 2>&1
    status=$?
    [ $status = 0 ] || { fail "vernier bench: exit status $status"; cat "$out/said"; }
}

# a python3 that has no PyTorch
mkdir -p "$out/without"
printf '#!/bin/sh\nexec %s -I -S "$@"\n' "$(command -v python3)" > "$out/without/python3"
chmod +x "$out/without/python3"
peers "$out/without"
grep -q 'PyTorch is not installed for python3' "$out/said" || { fail "a missing PyTorch is not told"; cat "$out/said"; }

# and one that ends at once
printf '#!/bin/sh\nexit 3\n' > "$out/without/python3"
peers "$out/without"
grep -q 'the process that runs PyTorch has ended' "$out/said" || { fail "a dead process is not told"; cat "$out/said"; }

folder=
for python in $(type -a -p python3 2> /dev/null || command -v python3) /usr/bin/python3; do
    "$python" -c 'import torch' 2> /dev/null && folder=${python%/*}
done
if [ -n "$folder" ]; then
    peers "$folder"
    grep -q 'beside PyTorch' "$out/said" && [ "$(grep -c '^softmax:' "$out/said")" = 4 ] &&
        [ "$(grep -c '^attention:' "$out/said")" = 4 ] && ! grep -q 'torch, where' "$out/said" &&
        ! grep -q 'differs' "$out/said" || { fail "PyTorch is not measured, or differs"; cat "$out/said"; }
else
    echo "no python3 here has PyTorch: its results were not compared"
fi

echo "$failures failures"
[ $failures = 0 ]
