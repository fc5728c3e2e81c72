/* conv_testing.h - convolutions and their gradients by one of the fast kernels, against the plain one. */
#ifndef CONV_TESTING_H
#define CONV_TESTING_H

#include "kernel_testing.h"

typedef struct conv_case {
    int64_t n, h, w, c, k, kh, kw, stride;
    const char *padding;
    int64_t groups; /* 0: 1 */
} conv_case;

typedef struct lab {
    tw_attr attrs[5];
    value x, filter, bias, dy, sizes;
} lab;

static inline lab open_lab(const conv_case *t, int64_t strides[4])
{
    tw_error error = {0};
    tw_shape image = TW_SHAPE(t->n, t->h, t->w, t->c);
    tw_shape filter = TW_SHAPE(t->kh, t->kw, t->groups ? t->c / t->groups : t->c, t->k);
    strides[0] = strides[3] = 1;
    strides[1] = strides[2] = t->stride;
    lab l = {.attrs = {tw_attr_type("T", TW_FLOAT32), tw_attr_ints("strides", strides, 4),
                       tw_attr_string("padding", t->padding), tw_attr_type("U", TW_FLOAT32),
                       tw_attr_bool("relu", true)}}; /* the last for fused ones only */
    twi_attrs list = {l.attrs, 5};
    twi_window window;
    assert_ok(twi_window_lay(&list, image, &filter, &window, &error));
    l.x = filled(TW_FLOAT32, image, 1);
    l.filter = filled(TW_FLOAT32, filter, 2);
    l.bias = filled(TW_FLOAT32, TW_SHAPE(t->k), 3);
    l.dy = filled(TW_FLOAT32, twi_window_output(&window, image, t->k), 4);
    l.sizes = make(TW_INT32, TW_SHAPE(4));
    return l;
}

/* Lets the filter be known before the kernel runs. */
static inline void make_filter_constant(lab *l)
{
    tw_tensor *filter = tw_tensor_create(TW_FLOAT32, l->filter.operand.shape);
    assert_non_null(filter);
    memcpy(tw_tensor_data(filter), l->filter.data, l->filter.operand.bytes);
    l->filter.operand.value = filter;
}

static inline void close_lab(lab *l)
{
    tw_tensor_release((tw_tensor *)l->filter.operand.value);
    drop(&l->x), drop(&l->filter), drop(&l->bias), drop(&l->dy), drop(&l->sizes);
}

/* False if the row is not there for this CPU or case. `like` has the output's shape; bias: there is a second output. */
static inline bool agrees(const char *kernel, const char *op, const lab *l, value *inputs, int num_inputs,
                          const value *like, bool has_bias, int threads)
{
    tw_error error = {0};
    value found[2], expected[2];
    found[0] = make(TW_FLOAT32, like->operand.shape), expected[0] = make(TW_FLOAT32, like->operand.shape);
    found[1] = make(TW_FLOAT32, l->bias.operand.shape), expected[1] = make(TW_FLOAT32, l->bias.operand.shape);
    kernel_call k = {op, kernel, threads, l->attrs, *op == '_' ? 5 : 4, inputs, num_inputs, found, has_bias ? 2 : 1};
    tw_status status = call(&k, &error);
    if (status == TW_OK) {
        k.kernel = "plain";
        k.outputs = expected;
        assert_ok(call(&k, &error));
        for (int i = 0; i < k.num_outputs; i++)
            assert_near(&found[i], &expected[i]);
        k.kernel = kernel; /* once more, alone: to the same bits */
        k.outputs = expected;
        k.threads = 1;
        assert_ok(call(&k, &error));
        for (int i = 0; i < k.num_outputs; i++)
            assert_memory_equal(found[i].data, expected[i].data, found[i].operand.bytes);
    }
    for (int i = 0; i < 2; i++)
        drop(&found[i]), drop(&expected[i]);
    return status == TW_OK;
}

/* Through a fused ReLU, from the first pixel to the first output. False if the row is not there for this CPU or
 * case. */
static inline bool not_a_number_passes(const char *kernel, const conv_case *t)
{
    int64_t strides[4];
    lab l = open_lab(t, strides);
    tw_error error = {0};
    value out = make(TW_FLOAT32, l.dy.operand.shape);
    make_filter_constant(&l);
    put(&l.x, 0, NAN);
    kernel_call k = {"_FusedConv2D", kernel, 1, l.attrs, 5, (value[]){l.x, l.filter, l.bias}, 3, &out, 1};
    bool ran = call(&k, &error) == TW_OK;
    if (ran)
        assert_true(isnan(get(&out, 0)));
    drop(&out);
    close_lab(&l);
    return ran;
}

#endif
