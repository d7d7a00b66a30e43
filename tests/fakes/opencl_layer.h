/* SPDX-License-Identifier: Apache-2.0
 *
 * opencl_layer.h - a layer between the OpenCL loader and the drivers, for tests.
 *
 * The loader takes it from $OPENCL_LAYERS; layer_open() gives a test these functions.
 * The layer counts the calls of each function and
 * the objects that are not yet released, and can make a call fail, which the driver then
 * never sees.  Releases are counted but never failed: nothing could be done about it.
 */
#ifndef OPENCL_LAYER_H
#define OPENCL_LAYER_H

struct layer {
    /* From now on, the nth call (the first is 1) of `function`, or with NULL of any, returns
     * `error`; if persistent, each one after it too, until disarm().                        */
    void        (*arm)(const char *function, long nth, int error, int persistent);
    void        (*disarm)(void);

    /* How many calls failed since arm(), and the name of the first (NULL: none). */
    long        (*failed)(void);
    const char *(*victim)(void);

    /* Calls of `function` since the process began; with NULL, of all that can fail. */
    long        (*calls)(const char *function);

    /* References to objects of a kind ("context", "queue", "memory", "program", "kernel",
     * "event"; NULL: of all kinds) that are held and not yet released.                    */
    long        (*live)(const char *kind);
};

/* Runs the program again with the layer at `path` in the environment, unless it is there
 * already: the loader looks before main() could put it there.  Exits if that fails.      */
struct layer layer_open(const char *path, char **argv);
#endif
