/* cl/gemm/tf32_pack.cl - makes an f32 operand K-major with aligned rows, for wgmma with tf32
 *
 * `rows` of K elements each, the last two strides of `from` being those of a row and of k, by way of 32 x 32
 * in local memory.
 */
KERNEL(256) void
pack(int rows, int K, GLOBAL const T *RESTRICT from, VIEW vFrom, GLOBAL T *to, VIEW vTo)
{
    LOCAL_ARRAY(T, s, 32 * 33);
    const int mn_major = vFrom.s5 < vFrom.s6;   /* adjacent work-items read adjacent elements */
    const int tiles_k = (K + 31) / 32, tiles = (rows + 31) / 32 * tiles_k;
    const int matrix = GROUP_ID(0) / tiles, tile = GROUP_ID(0) % tiles;
    const int row0 = tile / tiles_k * 32, k0 = tile % tiles_k * 32, x = LOCAL_ID() % 32, y = LOCAL_ID() / 32;

    from += vFrom.s0 + matrix * vFrom.s4;
    to += vTo.s0 + matrix * vTo.s4;
    UNROLL for (int i = 0; i < 32; i += 8) {
        const int row = row0 + (mn_major ? x : y + i), k = k0 + (mn_major ? y + i : x);

        s[(row - row0) * 33 + k - k0] = from[(row < rows ? row : rows - 1) * vFrom.s5 +
                                             (k < K ? k : K - 1) * vFrom.s6];
    }
    BARRIER();
    UNROLL for (int i = 0; i < 32; i += 8)
        if (row0 + y + i < rows && k0 + x < K)
            to[(row0 + y + i) * vTo.s5 + k0 + x] = s[(y + i) * 33 + x];
}
