#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# measure.sh - measures what the tables of results/DEVICE/ show, part by part, with the command of this tree.
#
#     results/measure.sh [-d DEVICE] [-o FOLDER] [-b SECONDS] [-l SECONDS] PART...
#
# A PART is a row of the table below, or the beginning of the names of several (conv, attention-f16, ...);
# without one the table is printed.  Each part writes FOLDER/PART.json and FOLDER/PART.txt; one that has both
# is passed over, so that an interrupted run goes on where it stopped.
#
#     -d DEVICE     as of vernier bench; the fastest, unless said
#     -o FOLDER     measured, unless said
#     -b SECONDS    to spend on a row; 0.3, unless said
#     -l SECONDS    no part begins, and none goes on, after so long; a part cut off has its rows so far
set -u
top=$(cd "$(dirname "$0")/.." && pwd)

# name | command of vernier, with the peers that an NVIDIA GPU or a CPU may have
table()
{
    cat <<'EOF'
epilogues-f16        | bench epilogues -t f16 --compare cublas,onednn
epilogues-bf16       | bench epilogues -t bf16 --compare cublas,onednn
epilogues-f32        | bench epilogues -t f32 --compare cublas,onednn
epilogues-tf32       | bench epilogues -t f32 --with math=tf32 --compare cublas
mixed                | bench mixed --compare cublas
batched              | bench batched --compare cublas
squares              | bench squares --compare cublas,onednn,openblas,clblast
llama31              | bench llama31 --compare cublas,onednn
choice-suites        | choice squares llama31 deepbench-gemm
choice-random        | choice --random 500 --seed 4
conv-f32-nchw        | bench resnet50 --batch 64 --direction all --compare cudnn
conv-f32-nhwc        | bench resnet50 --batch 64 --direction all --with nhwc --compare cudnn
conv-f16-nhwc        | bench resnet50 --batch 64 --direction all -t f16 --with nhwc --compare cudnn
conv-bf16-nhwc       | bench resnet50 --batch 64 --direction all -t bf16 --with nhwc --compare cudnn
conv-f16-nchw        | bench resnet50 --batch 64 -t f16 --compare cudnn
conv-tf32-nhwc       | bench resnet50 --batch 64 --direction all --with nhwc:math=tf32 --compare cudnn
conv-b1-f16          | bench resnet50 --batch 1 --direction all -t f16 --with nhwc --compare cudnn
conv-b1-f32          | bench resnet50 --batch 1 --direction all --compare cudnn,onednn
conv-b16-f32         | bench resnet50 --batch 16 --direction all --compare onednn
conv-packed          | bench resnet50 --batch 1 --with packed --compare onednn,onednn-plain
conv-packed-data     | bench resnet50 --batch 1 --direction backward-data --with packed --compare onednn,onednn-plain
conv-packed-nhwc     | bench resnet50 --batch 1 --with nhwc:packed --compare onednn
conv-b1-filter       | bench resnet50 --batch 1 --direction backward-filter --compare onednn,cudnn
conv-b256-f16        | bench resnet50 --batch 256 --direction all -t f16 --with nhwc --compare cudnn
conv-deepbench-f32   | bench deepbench-conv --compare cudnn
conv-deepbench-f16   | bench deepbench-conv -t f16 --with nhwc --compare cudnn
depthwise-f32        | bench mobilenet --batch 64 --filter depthwise --direction all --compare cudnn
depthwise-f16        | bench mobilenet --batch 64 --filter depthwise --direction all -t f16 --with nhwc --compare cudnn
network-b64          | bench resnet50-network --batch 64 -t f16 --with nhwc --compare cudnn
network-b1           | bench resnet50-network --batch 1 -t f16 --with nhwc --compare cudnn
softmax-f32          | bench softmax-rows --compare cudnn,torch,onednn
softmax-f16          | bench softmax-rows -t f16 --compare cudnn,torch
softmax-bf16         | bench softmax-rows -t bf16 --compare cudnn,torch
softmax-backward     | bench softmax-rows --direction backward --compare cudnn,torch
softmax-backward-f16 | bench softmax-rows --direction backward -t f16 --compare cudnn,torch
cross-entropy        | bench cross-entropy --compare torch
attention            | bench attention --compare torch
attention-bf16       | bench attention -t bf16 --compare torch
attention-f32        | bench attention -t f32 --compare torch
attention-backward   | bench attention --direction backward --compare torch
decode               | bench decode --compare torch
gap                  | gap squares resnet50 llama31 softmax-rows
gap-again            | gap squares resnet50 llama31 softmax-rows
EOF
}

usage()
{
    echo "usage: results/measure.sh [-d DEVICE] [-o FOLDER] [-b SECONDS] [-l SECONDS] PART..." >&2
    exit 2
}

device= folder=measured budget=0.3 limit=
while getopts d:o:b:l: option; do
    case $option in
        d) device=$OPTARG ;;
        o) folder=$OPTARG ;;
        b) budget=$OPTARG ;;
        l) limit=$OPTARG ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { table; exit 0; }
[ -x "$top/vernier" ] || { echo "measure.sh: $top has no command vernier: build it first" >&2; exit 2; }
for part; do
    table | grep -q "^$part" || { echo "measure.sh: no part begins with '$part': it lists them without one" >&2; exit 2; }
done
mkdir -p "$folder" || exit 2

begin=$(date +%s) status=0
for wanted; do
    table | grep "^$wanted" > "$folder/.parts"
    while IFS='|' read -r part command <&3; do
        part=$(echo $part)
        out=$folder/$part
        [ -s "$out.json" ] && [ -s "$out.txt" ] && continue
        within=
        if [ -n "$limit" ]; then
            left=$((limit - $(date +%s) + begin))
            [ $left -gt 0 ] || { echo "$part: not measured, the time is over"; status=1; continue; }
            within="timeout -s INT $left"
        fi
        set -- $command
        case $1 in
            bench) set -- "$@" --budget "$budget" ${device:+--device "$device"} ;;
            gap)   set -- "$@" --budget "$budget" ${device:+--gpu "$device"} --html "$out.html" --csv "$out.csv" ;;
            *)     set -- "$@" ${device:+--device "$device"} ;;
        esac
        since=$(date +%s)
        $within "$top/vernier" "$@" --json "$out.json" > "$out.txt" 2> "$out.log" || status=1
        echo "$part: $(($(date +%s) - since)) s, vernier $*"
        grep -i 'geometric mean' "$out.txt"
    done 3< "$folder/.parts"
done
rm -f "$folder/.parts"
exit $status
