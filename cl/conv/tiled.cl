/* cl/conv/tiled.cl - convolution and its gradients as implicit matrix products (implicit GEMM)
 *
 * cl/tile/fma.h does the product; this file says what its operands are, element by element:
 *
 *     forward, backward data      A[row][tap, channel]   the filter
 *                                 B[tap, channel][pixel] the source, 0 in the padding
 *     backward filter             A[tap, channel][pixel] x, 0 in the padding
 *                                 B[pixel][column]       dy
 *
 * Sums run tap by tap, and in order of the channels of each (backward filter: in order of the
 * pixels), one fused multiply-add each, whatever the tile: bit-identical on every device.
 *
 * Parameters, from conv.tune: BLK_M BLK_N BLK_K THR_M THR_N (see cl/tile/fma.h).
 */
struct operand_a {
    GLOBAL const T *g;
    VIEW  v, in;
    INDEX start, channels;
    INDEX depth, height, width;                 /* of the pixels along K (DIRECTION 2) */
    VIEW  step, pad;
    struct taps t, r, s;
    int   M, K;
};

struct operand_b {
    GLOBAL const T *g;
    VIEW  v, in;
    INDEX start, channels;
    INDEX depth, height, width;                 /* of the pixels along N (with DIRECTION 2, along K) */
    VIEW  step;
    struct taps t, r, s;
    int   K, N;
};

DEVICE int is_inside(INDEX d, INDEX h, INDEX w, VIEW in)
{
    return d >= 0 && d < (INDEX)in.s4 && h >= 0 && h < (INDEX)in.s5 && w >= 0 && w < (INDEX)in.s6;
}

#if DIRECTION != 2

DEVICE int is_k_major_a(const struct operand_a *a) { return (INDEX)a->v.s3 < (INDEX)a->v.s2; }
DEVICE int is_k_major_b(const struct operand_b *b) { return (INDEX)b->v.s3 < (INDEX)b->v.s6; }

DEVICE R load_a(const struct operand_a *a, int m, int k)
{
    if (m >= a->M || k >= a->K)                 /* before the divisions: an extent may be 0 */
        return ZERO;

    INDEX t = k;
    const INDEX c = divmod(&t, a->channels), s = divmod(&t, a->s.count), r = divmod(&t, a->r.count);

    return LOAD(a->g, a->start + m * (INDEX)a->v.s2 + c * (INDEX)a->v.s3 +
                      (a->t.first + t * a->t.step) * (INDEX)a->v.s4 +
                      (a->r.first + r * a->r.step) * (INDEX)a->v.s5 +
                      (a->s.first + s * a->s.step) * (INDEX)a->v.s6);
}

DEVICE R load_b(const struct operand_b *b, int k, int n)
{
    if (k >= b->K || n >= b->N)
        return ZERO;

    INDEX t = k, image = n;
    const INDEX c = divmod(&t, b->channels), s = divmod(&t, b->s.count), r = divmod(&t, b->r.count);
    const INDEX w = divmod(&image, b->width)  * SOURCE_STEP((INDEX)b->step.s6) + b->s.shift + s * b->s.delta;
    const INDEX h = divmod(&image, b->height) * SOURCE_STEP((INDEX)b->step.s5) + b->r.shift + r * b->r.delta;
    const INDEX d = divmod(&image, b->depth)  * SOURCE_STEP((INDEX)b->step.s4) + b->t.shift + t * b->t.delta;

    if (!is_inside(d, h, w, b->in))
        return ZERO;
    return LOAD(b->g, b->start + image * (INDEX)b->v.s2 + c * (INDEX)b->v.s3 +
                      d * (INDEX)b->v.s4 + h * (INDEX)b->v.s5 + w * (INDEX)b->v.s6);
}

#else

DEVICE int is_k_major_a(const struct operand_a *a) { return (INDEX)a->v.s6 < (INDEX)a->v.s3; }
DEVICE int is_k_major_b(const struct operand_b *b) { return (INDEX)b->v.s6 < (INDEX)b->v.s3; }

DEVICE R load_a(const struct operand_a *a, int m, int k)
{
    if (m >= a->M || k >= a->K)                 /* before the divisions: an extent may be 0 */
        return ZERO;

    INDEX t = m, image = k;
    const INDEX c = divmod(&t, a->channels), s = divmod(&t, a->s.count), r = divmod(&t, a->r.count);
    const INDEX w = divmod(&image, a->width)  * (INDEX)a->step.s6 + a->s.shift + s * a->s.delta;
    const INDEX h = divmod(&image, a->height) * (INDEX)a->step.s5 + a->r.shift + r * a->r.delta;
    const INDEX d = divmod(&image, a->depth)  * (INDEX)a->step.s4 + a->t.shift + t * a->t.delta;

    if (!is_inside(d, h, w, a->in))
        return ZERO;
    return LOAD(a->g, a->start + image * (INDEX)a->v.s2 + c * (INDEX)a->v.s3 +
                      d * (INDEX)a->v.s4 + h * (INDEX)a->v.s5 + w * (INDEX)a->v.s6);
}

DEVICE R load_b(const struct operand_b *b, int k, int n)
{
    if (k >= b->K || n >= b->N)
        return ZERO;

    INDEX image = k;
    const INDEX w = divmod(&image, b->width), h = divmod(&image, b->height), d = divmod(&image, b->depth);

    return LOAD(b->g, b->start + image * (INDEX)b->v.s2 + n * (INDEX)b->v.s3 + d * (INDEX)b->v.s4 +
                      h * (INDEX)b->v.s5 + w * (INDEX)b->v.s6);
}

#endif

KERNEL(FMA_ITEMS) void
conv(GLOBAL const T *RESTRICT gA, VIEW vA, GLOBAL const T *RESTRICT gB, VIEW vB,
     CONV_PARAMS,
     VIEW eTaps, VIEW eIn, VIEW eOut, VIEW vStep, VIEW vPad, VIEW vMeet,
     R alpha, int panels)
{
    LOCAL_ARRAY(R, sA, BLK_K * PITCH_A);
    LOCAL_ARRAY(R, sB, BLK_K * PITCH_B);

    const INDEX group = GROUP_ID(2);
    INDEX phase_d = GROUP_ID(0);
    const int m0 = GROUP_ID(1) * BLK_M, n0 = (int)divmod(&phase_d, panels) * BLK_N;
    const INDEX phase_w = divmod(&phase_d, phases_along((INDEX)eOut.s6, (INDEX)vStep.s6));
    const INDEX phase_h = divmod(&phase_d, phases_along((INDEX)eOut.s5, (INDEX)vStep.s5));
    struct taps t, r, s;

    FIND_TAPS(&t, &r, &s, phase_d, phase_h, phase_w);

    const INDEX channels = (INDEX)eTaps.s3;
    const INDEX depth  = pixels_along((INDEX)eOut.s4, (INDEX)vStep.s4, phase_d);
    const INDEX height = pixels_along((INDEX)eOut.s5, (INDEX)vStep.s5, phase_h);
    const INDEX width  = pixels_along((INDEX)eOut.s6, (INDEX)vStep.s6, phase_w);
    const int pixels = (int)((INDEX)eOut.s2 * depth * height * width);
    const int weights = (int)(t.count * r.count * s.count * channels);
#if DIRECTION == 2
    const int M = weights, N = (int)eOut.s3, K = pixels;
#else
    const int M = (int)eOut.s3, N = pixels, K = weights;
#endif
    const struct operand_a a = { gA, vA, eIn, (INDEX)vA.s0 + group * (INDEX)vA.s1, channels,
                                 depth, height, width, vStep, vPad, t, r, s, M, K };
    const struct operand_b b = { gB, vB, eIn, (INDEX)vB.s0 + group * (INDEX)vB.s1, channels,
                                 depth, height, width, vStep, t, r, s, K, N };
    R rC[THR_M][THR_N];

    if (n0 >= N)                                /* a later phase may have fewer pixels than the first */
        return;
    tile_multiply(rC, sA, sB, &a, &b, m0, n0, K);

    const struct output c = CONV_OUTPUT;

    UNROLL for (int i = 0; i < THR_M; i++) {
        const int m = TILE_ROW(m0, i);

        UNROLL for (int j = 0; j < THR_N; j++) {
            const int n = TILE_COL(n0, j);

            if (m < M && n < N) {
#if DIRECTION == 2
                const INDEX i0 = n;
                INDEX d = m;
                const INDEX i1 = divmod(&d, channels), w = divmod(&d, s.count), h = divmod(&d, r.count);
#else
                INDEX i0 = n;
                const INDEX i1 = m;
                const INDEX w = phase_w + divmod(&i0, width)  * PIXEL_STEP((INDEX)vStep.s6);
                const INDEX h = phase_h + divmod(&i0, height) * PIXEL_STEP((INDEX)vStep.s5);
                const INDEX d = phase_d + divmod(&i0, depth)  * PIXEL_STEP((INDEX)vStep.s4);
#endif
                const INDEX at = OFFSET(vC, group, i0, i1, d, h, w);

                STORE_C(gC, at, epilogue_at(&c, OFFSET(vR, group, i0, i1, d, h, w),
                                            OFFSET(vBias, group, i0, i1, d, h, w), alpha * rC[i][j]));
            }
        }
    }
}
