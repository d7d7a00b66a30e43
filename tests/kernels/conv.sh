# SPDX-License-Identifier: Apache-2.0
# Variants of convolution for problems that the conformance suite seldom draws: depthwise in strips, products
# of taps, gradients of filters and packed filters on CPUs, NCHW through copies.  Each problem runs on integers and on random and unusual numbers.

[ -x ./vernier ] || { echo "skipped: the command is not built"; exit 77; }
./vernier devices > /dev/null 2>&1 || { echo "skipped: there is no device"; exit 77; }

problems='
conv_strips  n2c24h11w21k24r3s3:f32:groups=24:pad=1:bias:act=relu
conv_strips  n2c16h9w11k16r3s3:f16:groups=16:nhwc:pad=1:stride=2:beta=2
conv_strips  n2c3h9w12k3r5s5:f32:groups=3:nhwc:pad=2:stride=2:backward-data
conv_strips  n1c8h9w11k8r3s3:bf16:groups=8:nhwc:pad=1x0:backward-data
conv_planes  n3c5h7w7k5r3s3:f16:groups=5:pad=1:beta=2
conv_planes  n1c3h40w37k3r3s3:f32:groups=3:pad=1:stride=2:backward-data
conv_planes  n1c2h113w112k2r3s3:f32:groups=2:pad=1
conv_shallow n2c1h23w75k32r5s20:f32:stride=2
conv_shallow n2c3h17w41k70r3s3:f32:pad=1:nhwc:bias:act=relu
conv_shallow n1c3h30w29k64r7s7:f16:stride=2:pad=3:nhwc:beta=1
conv_shallow n3c8h9w70k18r3s3:bf16:groups=2:pad=1:dil=2
conv_shallow n2c2h20w33k24r3s5:f16:pad=1x2:bias
conv_strips_filter  n3c48h14w13k48r3s3:f16:groups=48:nhwc:pad=1:stride=2:backward-filter
conv_planes_filter  n3c20h14w13k20r3s3:f32:groups=20:pad=1:stride=2:backward-filter:beta=1
conv_planes_filter  n2c3h112w112k3r3s3:f16:groups=3:pad=1:backward-filter
conv_taps    n2c3h10w11k17r7s7:f32:pad=3:stride=2:backward-data:beta=1
conv_taps    n2c2h9w8d5k5t2r3s3:f16:nhwc:stride=2:dil=2:pad=2:backward-data:bias
conv_slab_packed  n2c18h20w30k38r3s3:f32:groups=2:pad=1:stride=2:backward-data
conv_slab_packed  n2c9h53w31k17r3s2:f32:pad=1:nhwc
conv_slab_packed  n1c8h6w6k8r1s1:f32:nhwc
conv_spread  n2c18h21w75k38r1s1:f32:stride=2:backward-data:bias:act=relu
conv_spread  n2c21h11w9k13r1s1:f16:nhwc:stride=2:pad=1:backward-data:beta=2
conv_spread  n1c3d5h4w37k9t1r1s1:f64:stride=2x1x3:pad=1:backward-data
conv_gather_filter  n2c18h21w75k38r1s1:f32:groups=2:stride=2:backward-filter:beta=2
conv_gather_filter  n2c21h11w9k13r1s1:f16:nhwc:stride=3:backward-filter
conv_gather_filter  n1c3d5h4w37k9t1r1s1:f64:stride=2x1x3:backward-filter
conv_slab_filter  n2c21h13w11k37r3s3:f32:pad=1:stride=2:backward-filter
conv_slab_filter  n1c9h30w31k24r3s3:f32:pad=1:backward-filter
conv_narrow  n2c4h13w9k33r5s2:f64:pad=2:nhwc:backward-data:stride=3
conv_narrow  n1c9h5w40k21r3s3:f32:pad=1:nhwc:backward-data:stride=4
conv_narrow  n3c40h17w50k3r3s3:f32:pad=1:bias:act=relu
conv_narrow  n1c33h20w31k1r5s5:f16:nhwc:pad=2:beta=2
conv_narrow  n2c5h9w70k20r3s3:f32:dil=2:pad=2:backward-data:stride=2x3:beta=1
conv_narrow  n1c2h3w2k9r1s1:f32:backward-data:stride=4
conv_narrow  n2c4h30w300k20r3s3:bf16:pad=1:backward-data
conv_repack  n2c9h13w11k17r3s3:f16:pad=1:stride=2
conv_repack  n2c12h13w7k37r2s3:f32:backward-data'

set --
for problem in $(echo "$problems" | awk 'NF { print "conv:" $2 ":variant=" $1 }'); do
    set -- "$@" "$problem"
done
./vernier check "$@"
