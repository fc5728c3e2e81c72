/* dense_head.c - see dense_head.h. */
#include "dense_head.h"

#include <tower/nn.h>

tw_output twi_dense_head(tw_graph *g, tw_output x, int classes, tw_dtype dtype, bool training)
{
    static const char *const names[] = {"dense1", "dense2"};
    x = tw_flatten(g, x);
    for (int i = 0; i < 2; i++) {
        x = tw_dense_layer(g, names[i], x, 4096, &(tw_layer_options){.activation = tw_relu, .compute = dtype});
        tw_add_to_collection(g, "activations", x);
        x = training ? tw_dropout(g, x, 0.5f, 0) : x;
    }
    x = tw_dense_layer(g, "dense3", x, classes, &(tw_layer_options){.compute = dtype});
    return tw_cast(g, x, TW_FLOAT32);
}
