/* cl/conv/sides.h - what a convolution says of the epilogue, before cl/tile/epilogue.h: nothing is scaled,
 * and a bias of one value for each channel of the output is a row for all pixels
 *
 * Takes: BIAS_OF_CHANNELS.
 */
#undef SCALE
#define SCALE 0
#if BIAS && BIAS_OF_CHANNELS
#undef BIAS
#define BIAS 1                                  /* SAME_ROWS */
#endif
