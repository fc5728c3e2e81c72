/* dense_head.h - the end that AlexNet and VGG-16 have in common. */
#ifndef TWI_DENSE_HEAD_H
#define TWI_DENSE_HEAD_H

#include <tower/graph.h>

/* Two dense layers of 4096, each with relu and in training dropout, and one of the classes: "dense1" to "dense3". */
tw_output twi_dense_head(tw_graph *g, tw_output x, int classes, tw_dtype dtype, bool training);

#endif
