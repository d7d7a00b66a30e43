/* cl/window.cl - copies a window of memory again and again: how fast is a cache that holds it?
 *
 *   copy_window    the window has a part for each work-group, of `steps` vectors for each work-item; `times`
 *                  times a work-group copies a part: its own, or with shift 1 the next one each time, so that
 *                  no cache of a single compute unit holds what it reads
 *
 * ITEMS       work-items per work-group; 1 on CPUs
 * COPY_WIDTH  elements per vector
 */
KERNEL(ITEMS) void copy_window(GLOBAL const R *x, GLOBAL R *y, int parts, int steps, int times, int shift)
{
    for (int t = 0; t < times; t++) {
        const INT64 part = ((INT64)GROUP_ID(0) + (INT64)t * shift) % parts;

        for (int s = 0; s < steps; s++) {
            const INT64 at = ((part * steps + s) * ITEMS + LOCAL_ID()) * COPY_WIDTH;

            VSTORE(COPY_WIDTH, y + at, VLOAD(COPY_WIDTH, x + at));
        }
    }
}
