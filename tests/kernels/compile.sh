# SPDX-License-Identifier: Apache-2.0
# Each kernel, in each type, compiles for devices that are not here: AMD's with clang-19, SPIR-V
# (as what an OpenCL compiler sees) with clang-15, and as CUDA with NVRTC.  What compiler is
# missing is left out, and named.  Of a variant, each two of a type, a row, an epilogue and the
# values of its constants are together in some text that is compiled; `make codegen` compiles all.
# Of targets that take the same instructions for what is no matrix engine's, the second compiles
# what the first had not; tests/kernels/engines.sh has each engine for each of its targets.

. "$srcdir/tests/kernels/compilers.sh"

out=$PWD/tests/compile.tmp
rm -rf "$out"
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT
cores=$(getconf _NPROCESSORS_ONLN)
compiled=0 left_out=

# texts BACKEND FAMILY/ARCH [wide]: their paths in $out/list
texts()
{
    rm -rf "$out/texts"
    mkdir "$out/texts"
    tests/kernels/texts "$1" "$2" "$out/texts" pairs $3 > "$out/list" || exit 1
    [ -s "$out/list" ] || { echo "there are no texts for $2"; exit 1; }
}

# Leaves in $out/list those whose text was not there at an earlier call.
new_texts()
{
    xargs cksum < "$out/list" | awk -v seen="$out/seen" '
        BEGIN { while ((getline line < seen) > 0) old[line] = 1 }
        !(($1 " " $2) in old) { print $3; print $1 " " $2 >> seen }' > "$out/new"
    mv "$out/new" "$out/list"
}

# each TARGET COMMAND...: the command with each text behind it, several at once.  0, or the
# exit status of the command if that says that there is no such compiler (77).
each()
{
    target=$1
    shift
    "$@" > "$out/said" 2>&1 < /dev/null
    [ $? = 77 ] && return 77
    if xargs -n 2 -P "$cores" "$@" < "$out/list" > "$out/said" 2>&1; then
        echo "$target: $(wc -l < "$out/list") texts compile"
        compiled=$((compiled + $(wc -l < "$out/list")))
    else
        echo "$target: a text does not compile: $*"
        head -n 60 "$out/said"
        exit 1
    fi
}

# -S into nowhere: all the way to instructions, so that registers and local memory must do.
if command -v clang-19 > /dev/null; then
    for arch in gfx90a gfx942 gfx1100 gfx1201; do
        case $arch in gfx90a | gfx1100) rm -f "$out/seen";; esac
        texts opencl amd/$arch
        new_texts
        command_of $arch
        each $arch sh -c 'for text; do '"$command"' -O1 -S "$text" -o /dev/null || exit 255; done' sh
    done
else
    left_out="$left_out clang-19"
fi

rm -f "$out/seen"
if command -v clang-15 > /dev/null; then
    for arch in f32x16 f32x8 f32x4; do
        texts opencl cpu/$arch wide
        new_texts
        command_of spir64
        each "spir64 of a CPU with $arch" sh -c 'for text; do '"$command"' -O1 -emit-llvm -c "$text" -o /dev/null ||
            exit 255; done' sh
    done
else
    left_out="$left_out clang-15"
fi

# For sm_90 all the way to instructions, and what sm_80 alone has as PTX, which names no registers.  The a is for what only
# this architecture has, as the library asks for it.
rm -f "$out/seen"
while read -r arch target; do
    texts cuda nvidia/$arch
    new_texts
    command_of $target
    each $arch $command
    [ $? != 77 ] || { left_out="$left_out NVRTC (pip install nvidia-cuda-nvrtc)"; break; }
done << END
sm_90 sm_90a
sm_80 compute_80
END

echo "COUNT compiled $compiled"
[ -z "$left_out" ] || echo "left out, for want of:$left_out"
[ $compiled != 0 ] || exit 77
