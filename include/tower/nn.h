/* nn.h - builders for neural-network ops, and the layers made of them.
 *
 * Images are [N,H,W,C], filters [kh,kw,C,K]. The rules of ops.h hold: TensorFlow's numerics, dead outputs on error. */
#ifndef TOWER_NN_H
#define TOWER_NN_H

#include <tower/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
