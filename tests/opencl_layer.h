/* SPDX-License-Identifier: Apache-2.0
 *
 * opencl_layer.h - a layer between the OpenCL loader and the drivers, for tests.
 *
 * The loader takes it from $OPENCL_LAYERS; a test finds these functions with dlsym() in
 * what dlopen(path, RTLD_NOLOAD) gives.  The layer counts the calls of each function and
 * the objects that are not yet released, and can make a call fail that the driver then
 * never sees.  Releases are counted but never failed: nothing could be done about it.
 */
#ifndef OPENCL_LAYER_H
#define OPENCL_LAYER_H

/* From now on, the nth call (the first is 1) of `function`, or with NULL of any, returns
 * `error`; if persistent, each one after it too, until layer_disarm().                  */
typedef void layer_arm_function   (const char *function, long nth, int error, int persistent);
typedef void layer_disarm_function(void);

/* How many calls failed since layer_arm(), and the name of the first (NULL: none). */
typedef long        layer_failed_function(void);
typedef const char *layer_victim_function(void);

/* Calls of `function` since the process began; with NULL, of all that can fail. */
typedef long layer_calls_function(const char *function);

/* References to objects of a kind ("context", "queue", "memory", "program", "kernel",
 * "event"; NULL: of all kinds) that are held and not yet released.                    */
typedef long layer_live_function(const char *kind);

layer_arm_function    layer_arm;
layer_disarm_function layer_disarm;
layer_failed_function layer_failed;
layer_victim_function layer_victim;
layer_calls_function  layer_calls;
layer_live_function   layer_live;
#endif
