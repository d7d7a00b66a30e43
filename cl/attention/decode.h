/* cl/attention/decode.h - which vectors of keys and values a work-item of decode.cl has
 *
 * Takes  HEAD ROWS ITEMS LANES_MOST KEYS UNROLLED; VECTOR_RUN (cl/tile/lanes.h)
 * Gives  EACH RUN TEAM VECTORS TEAMS STEP SCORES; STREAM_VECTORS (cl/tile/stream.h)
 */
#if UNROLLED
#define EACH    UNROLL                          /* loops over what is in registers */
#else
#define EACH
#endif
#define RUN     VECTOR_RUN
#define TEAM    (HEAD / RUN < LANES_MOST ? HEAD / RUN : LANES_MOST)
#define VECTORS (HEAD / RUN / TEAM)             /* of a key, that a work-item has */
#define TEAMS   (ITEMS / TEAM)
#define STEP    (TEAMS * KEYS)                  /* keys of a work-group */
#define SCORES  (KEYS * ROWS)                   /* of a team */
#define STREAM_VECTORS (2 * KEYS * VECTORS)
