/* ops.h - builders for single ops: mathematics, arrays, random numbers, state, control, images, summaries.
 *
 * Each adds one node (TensorFlow's op of that name, in its types and numerics) and returns its output. On a wrong type
 * or shape the graph latches an error that names the node, the op and what it found, and the result is dead
 * ({NULL, 0}); dead outputs may be passed on freely. Shapes use [N,H,W,C] and broadcast as NumPy does. */
#ifndef TOWER_OPS_H
#define TOWER_OPS_H

#include <tower/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- math: element-wise, reductions, matrix products (src/ops/math.c) -------------------------------------- */

/* ---- arrays: constants, shapes, slicing, joining (src/ops/array.c) ----------------------------------------- */

/* ---- random numbers (src/ops/random.c) --------------------------------------------------------------------- */

/* ---- state: variables and their updates (src/ops/state.c) -------------------------------------------------- */

/* ---- control (src/ops/control.c) --------------------------------------------------------------------------- */

/* ---- images and summaries (src/ops/image.c, src/ops/summary.c) --------------------------------------------- */

#ifdef __cplusplus
}
#endif
#endif
