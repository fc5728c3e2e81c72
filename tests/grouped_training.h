/* grouped_training.h - a small network of convolutions in groups, trained on a device; or the same with a convolution
 * for each group by itself. */
#ifndef GROUPED_TRAINING_H
#define GROUPED_TRAINING_H

#include "testing.h"

#include <tower/tower.h>

enum { GROUPED_STEPS = 4, GROUPED_GROUPS = 2 };

typedef struct grouped_run {
    const char *device;
    bool channels_first; /* NCHW */
    bool apart;          /* a convolution for each group */
    const char *disable; /* rewrites */
} grouped_run;

static inline tw_output grouped_weights(tw_graph *g, const char *name, tw_shape shape)
{
    tw_variable *v = tw_get_variable(g, name, TW_FLOAT32, shape, (tw_initializer){TW_INIT_CONSTANT});
    assert_non_null(v);
    return v->value;
}

static inline tw_output grouped_conv(tw_graph *g, const grouped_run *r, tw_output x, tw_output filter)
{
    static const int64_t strides[] = {1, 1, 1, 1};
    const int axis = r->channels_first ? 1 : 3;
    tw_output parts[2][GROUPED_GROUPS] = {{x}, {filter}}, made[GROUPED_GROUPS];
    int groups = r->apart ? GROUPED_GROUPS : 1;
    const tw_attr attrs[] = {tw_attr_ints("strides", strides, 4), tw_attr_string("padding", "SAME"),
                             tw_attr_string("data_format", r->channels_first ? "NCHW" : "NHWC")};
    if (groups > 1) {
        tw_split(g, x, axis, parts[0], groups);
        tw_split(g, filter, 3, parts[1], groups);
    }
    for (int i = 0; i < groups; i++)
        made[i] = tw_node_output(tw_add_node(g, "Conv2D", "conv", (tw_output[]){parts[0][i], parts[1][i]}, 2, attrs, 3), 0);
    return groups > 1 ? tw_concat(g, made, groups, axis) : made[0];
}

/* Images [2,5,4,16] to [2,5,4,24] with a bias and a ReLU, and to [2,5,4,8]. */
static inline tw_output grouped_loss(tw_graph *g, const grouped_run *r)
{
    float pixels[2 * 5 * 4 * 16];
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++)
        pixels[i] = (float)(i % 17) / 8 - 1;
    const tw_attr format = tw_attr_string("data_format", r->channels_first ? "NCHW" : "NHWC");
    tw_output x = tw_constant_floats(g, TW_SHAPE(2, 5, 4, 16), pixels);
    if (r->channels_first)
        x = tw_transpose(g, x, TW_SHAPE(0, 3, 1, 2));
    x = grouped_conv(g, r, x, grouped_weights(g, "first", TW_SHAPE(3, 3, 16 / GROUPED_GROUPS, 24)));
    tw_output biased[] = {x, grouped_weights(g, "bias", TW_SHAPE(24))};
    x = tw_relu(g, tw_node_output(tw_add_node(g, "BiasAdd", "biased", biased, 2, &format, 1), 0));
    x = grouped_conv(g, r, x, grouped_weights(g, "second", TW_SHAPE(2, 3, 24 / GROUPED_GROUPS, 8)));
    return tw_reduce_mean(g, tw_square(g, tw_sub(g, x, tw_scalar(g, 1))), NULL, 0, false);
}

static inline void grouped_fill(tw_session *s, tw_graph *g, const char *name)
{
    tw_error error = {0};
    const tw_variable *v = tw_graph_find_variable(g, name);
    tw_tensor *values = tw_tensor_create(TW_FLOAT32, v->shape);
    for (int64_t i = 0; i < tw_tensor_elements(values); i++)
        ((float *)tw_tensor_data(values))[i] = (float)((i * 7 + 3) % 11 - 5) / 64;
    assert_ok(tw_session_set_variable(s, v, values, &error));
    tw_tensor_release(values);
}

static inline void grouped_train(tw_devices *devices, const grouped_run *r, float losses[GROUPED_STEPS])
{
    static const char *const names[] = {"first", "bias", "second"};
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output fetches[2] = {{0}};
    tw_session *s;
    TW_DEVICE(g, "%s", r->device) {
        fetches[0] = grouped_loss(g, r);
        tw_optimizer *o = tw_gradient_descent(g, tw_scalar(g, 0.5f));
        fetches[1] = tw_apply_gradients(o, tw_compute_gradients(o, fetches[0]), NULL);
    }
    tw_output init = tw_initialize_variables(g);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices, .allow_soft_placement = true,
                                              .disable = r->disable), &s, &error));
    assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
    for (int i = 0; i < 3; i++)
        grouped_fill(s, g, names[i]);
    for (int i = 0; i < GROUPED_STEPS; i++) {
        tw_tensor *results[2] = {NULL};
        assert_ok(tw_session_run(s, NULL, 0, fetches, 2, results, &error));
        losses[i] = *(const float *)tw_tensor_data(results[0]);
        tw_tensor_release(results[0]);
    }
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

#endif
