/* cl/conv/run.h - stores a run of the output through the epilogue, by vectors where elements are contiguous
 *
 * Takes  VEC; cl/conv/slab.h; struct source and lanes_of(), by who comes after it: VEC elements from i on
 * Gives  struct run, store_run()
 */

struct source;
DEVICE RV lanes_of(const struct source *from, int i, int count);

/* A run of elements in the output, and where its first is in the residual and the bias. */
struct run { INDEX at, residual, residual_step, bias, bias_step; int length; };

DEVICE void store_run(const struct output *o, const struct source *from, const struct run *r)
{
    const int whole = r->length >= VEC && (r->residual_step == 0 || r->residual_step == 1) &&
                      (r->bias_step == 0 || r->bias_step == 1);
    /* The last vector repeats elements of the one before, unless they would be added to C twice. */
    const int least = RESIDUAL ? 0 : whole ? VEC : 0;

    for (int i = 0, count; i < r->length; i += count) {
        RV v;
        R each[VEC];

        count = r->length - i < VEC ? r->length - i : VEC;
        if (count < least) {
            i = r->length - VEC;
            count = VEC;
        }
        v = lanes_of(from, i, count);
        if (count == VEC && whole) {
            store_lanes(o, r->at + i, r->residual + i * r->residual_step, r->residual_step,
                        r->bias + i * r->bias_step, r->bias_step, 0, v);
            continue;
        }
        VSTORE(VEC, each, v);
        for (int j = 0; j < count; j++)
            STORE_C(o->c, r->at + i + j, epilogue_at(o, r->residual + (i + j) * r->residual_step,
                                                     r->bias + (i + j) * r->bias_step, o->alpha * each[j]));
    }
}
