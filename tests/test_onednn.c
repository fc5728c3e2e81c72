/* test_onednn.c - the oneDNN kernel rows against loops that spell the definition out. */
#include "kernel_testing.h"

#include <sys/resource.h>

/* Runs `op`, which must fall to the kernel called `name`. */
static tw_status run(const char *op, const char *name, const tw_attr *attrs, int num_attrs, value *inputs,
                     int num_inputs, value *outputs, int num_outputs, tw_error *error)
{
    kernel_call k = {op, name, 2, attrs, num_attrs, inputs, num_inputs, outputs, num_outputs};
    return call(&k, error);
}

/* Whether the library computes in bfloat16 on this CPU. Where there are instructions for it, it does. */
static bool has_bfloat16(void)
{
    tw_error error = {0};
    tw_attr attr = tw_attr_type("T", TW_BFLOAT16);
    value a = filled(TW_BFLOAT16, TW_SHAPE(8, 8), 1), y = make(TW_BFLOAT16, TW_SHAPE(8, 8));
    bool has = run("MatMul", "onednn", &attr, 1, (value[]){a, a}, 2, &y, 1, &error) == TW_OK;
#ifdef __x86_64__
    assert_true(has || !__builtin_cpu_supports("avx512bf16"));
#endif
    drop(&a), drop(&y);
    return has;
}

/* ---- convolutions ------------------------------------------------------------------------------------------ */

typedef struct conv_case {
    int64_t n, h, w, c, k, kh, kw, stride, dilation;
    const char *padding;
    int64_t groups; /* 0: 1 */
} conv_case;

static const conv_case conv_cases[] = {
    {2, 8, 9, 3, 16, 5, 5, 1, 1, "SAME"},   {3, 7, 6, 16, 8, 3, 3, 1, 1, "VALID"},
    {2, 9, 9, 8, 16, 3, 2, 2, 1, "SAME"},   {1, 10, 10, 4, 4, 3, 3, 1, 2, "SAME"},
    {2, 5, 5, 32, 16, 1, 1, 2, 1, "VALID"}, {1, 6, 6, 16, 16, 3, 3, 3, 1, "VALID"},
    {2, 9, 8, 1, 16, 3, 8, 1, 1, "VALID"},  {2, 9, 4, 3, 8, 2, 4, 2, 1, "VALID"},
    {2, 8, 9, 32, 64, 3, 3, 1, 1, "SAME", 2}, {2, 9, 9, 64, 32, 3, 2, 2, 1, "SAME", 4},
    {1, 10, 10, 12, 6, 3, 3, 1, 2, "SAME", 3}, {2, 9, 8, 4, 16, 3, 8, 1, 1, "VALID", 2},
    {2, 5, 5, 32, 16, 1, 1, 2, 1, "VALID", 2}, {3, 7, 6, 16, 16, 3, 3, 1, 1, "VALID", 16},
    {2, 6, 7, 40, 40, 1, 1, 1, 1, "VALID", 2}, {2, 7, 1, 8, 4, 3, 15, 1, 1, "SAME", 2},
};

/* How many channels a filter sees. */
static int64_t seen(const conv_case *t)
{
    return t->groups ? t->c / t->groups : t->c;
}

/* Calls visit(image cell, filter cell, output cell) for every product of the convolution. */
static void each_product(const conv_case *t, const twi_window *w, void (*visit)(value *, int64_t, int64_t, int64_t),
                         value *v)
{
    for (int64_t n = 0; n < t->n; n++)
        for (int64_t oy = 0; oy < w->output[0]; oy++)
            for (int64_t ox = 0; ox < w->output[1]; ox++)
                for (int64_t ky = 0; ky < t->kh; ky++)
                    for (int64_t kx = 0; kx < t->kw; kx++) {
                        int64_t y = oy * t->stride - w->before[0] + ky * t->dilation;
                        int64_t x = ox * t->stride - w->before[1] + kx * t->dilation;
                        if (y < 0 || y >= t->h || x < 0 || x >= t->w)
                            continue;
                        for (int64_t c = 0; c < seen(t); c++)
                            for (int64_t k = 0; k < t->k; k++) {
                                int64_t group = t->groups ? k / (t->k / t->groups) : 0;
                                visit(v, ((n * t->h + y) * t->w + x) * t->c + group * seen(t) + c,
                                      ((ky * t->kw + kx) * seen(t) + c) * t->k + k,
                                      ((n * w->output[0] + oy) * w->output[1] + ox) * t->k + k);
                            }
                    }
}

/* v: image, filter, output, result (float) */
static void visit_forward(value *v, int64_t x, int64_t f, int64_t y)
{
    ((float *)v[3].data)[y] += get(&v[0], x) * get(&v[1], f);
}

static void visit_input_gradient(value *v, int64_t x, int64_t f, int64_t y)
{
    ((float *)v[3].data)[x] += get(&v[1], f) * get(&v[2], y);
}

static void visit_filter_gradient(value *v, int64_t x, int64_t f, int64_t y)
{
    ((float *)v[3].data)[f] += get(&v[0], x) * get(&v[2], y);
}

static void check_convolution(const conv_case *t, tw_dtype dtype)
{
    tw_error error = {0};
    int64_t strides[] = {1, t->stride, t->stride, 1}, dilations[] = {1, t->dilation, t->dilation, 1};
    tw_attr attrs[] = {tw_attr_type("T", dtype), tw_attr_ints("strides", strides, 4),
                       tw_attr_ints("dilations", dilations, 4), tw_attr_string("padding", t->padding),
                       tw_attr_bool("relu", true)};
    twi_attrs list = {attrs, 4};
    tw_shape image = TW_SHAPE(t->n, t->h, t->w, t->c), filter = TW_SHAPE(t->kh, t->kw, seen(t), t->k);
    twi_window window;
    assert_ok(twi_window_lay(&list, image, &filter, &window, &error));
    tw_shape output = twi_window_output(&window, image, t->k);

    value x = filled(dtype, image, 1), f = filled(dtype, filter, 2), bias = filled(dtype, TW_SHAPE(t->k), 3);
    value y = make(dtype, output), dy = filled(dtype, output, 4), dx = make(dtype, image), df = make(dtype, filter);
    value db = make(dtype, TW_SHAPE(t->k)), sizes = make(TW_INT32, TW_SHAPE(4));
    value y0 = make(TW_FLOAT32, output), dx0 = make(TW_FLOAT32, image), df0 = make(TW_FLOAT32, filter);
    value db0 = make(TW_FLOAT32, TW_SHAPE(t->k));

    each_product(t, &window, visit_forward, (value[]){x, f, dy, y0});
    assert_ok(run("Conv2D", "onednn", attrs, 4, (value[]){x, f}, 2, &y, 1, &error));
    assert_near(&y, &y0);
    for (int64_t i = 0; i < y0.operand.elements; i++)
        put(&y0, i, fmaxf(0, get(&y0, i) + get(&bias, i % t->k)));
    assert_ok(run("_FusedConv2D", "onednn", attrs, 5, (value[]){x, f, bias}, 3, &y, 1, &error));
    assert_near(&y, &y0);

    each_product(t, &window, visit_input_gradient, (value[]){x, f, dy, dx0});
    assert_ok(run("Conv2DBackpropInput", "onednn", attrs, 4, (value[]){sizes, f, dy}, 3, &dx, 1, &error));
    assert_near(&dx, &dx0);

    each_product(t, &window, visit_filter_gradient, (value[]){x, f, dy, df0});
    for (int64_t i = 0; i < dy.operand.elements; i++)
        ((float *)db0.data)[i % t->k] += get(&dy, i);
    assert_ok(run("Conv2DBackpropFilter", "onednn", attrs, 4, (value[]){x, sizes, dy}, 3, &df, 1, &error));
    assert_near(&df, &df0);
    memset(df.data, 0, df.operand.bytes);
    assert_ok(run("_Conv2DBackpropFilterBias", "onednn", attrs, 4, (value[]){x, sizes, dy}, 3, (value[]){df, db}, 2,
                  &error));
    assert_near(&df, &df0);
    assert_near(&db, &db0);

    value *all[] = {&x, &f, &bias, &y, &dy, &dx, &df, &db, &sizes, &y0, &dx0, &df0, &db0};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        drop(all[i]);
}

static void convolutions_and_their_gradients_follow_the_definition(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof conv_cases / sizeof *conv_cases; i++)
        check_convolution(&conv_cases[i], TW_FLOAT32);
}

/* oneDNN 2.6 gives other sums at each turn there, or crashes. */
static void filters_of_one_cell_with_strides_over_few_channels_are_left_to_others(void **state)
{
    static const int64_t channels[] = {1, 3, 5, 12, 16, 20};
    int64_t strides[] = {1, 2, 2, 1};
    const tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_ints("strides", strides, 4),
                             tw_attr_string("padding", "VALID")};
    tw_error error = {0};
    (void)state;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        for (int threads = 1; threads <= 4; threads++) {
            value x = filled(TW_FLOAT32, TW_SHAPE(3, 10, 16, channels[i]), 1), sizes = make(TW_INT32, TW_SHAPE(4));
            value dy = filled(TW_FLOAT32, TW_SHAPE(3, 5, 8, 10), 2), df = make(TW_FLOAT32, TW_SHAPE(1, 1, channels[i], 10));
            value plain = make(TW_FLOAT32, df.operand.shape);
            kernel_call k = {"Conv2DBackpropFilter", "plain", threads, attrs, 3, (value[]){x, sizes, dy}, 3, &plain, 1};
            assert_ok(call(&k, &error));
            k.kernel = "onednn", k.outputs = &df;
            tw_status status = TW_OK;
            for (int turn = 0; turn < 10 && status == TW_OK; turn++)
                if ((status = call(&k, &error)) == TW_OK)
                    assert_near(&df, &plain);
            assert_int_equal(status, channels[i] < 16 ? TW_UNIMPLEMENTED : TW_OK);
            drop(&x), drop(&sizes), drop(&dy), drop(&df), drop(&plain);
        }
}

static void bfloat16_convolutions_agree_where_the_cpu_has_the_type(void **state)
{
    (void)state;
    if (!has_bfloat16())
        skip();
    for (size_t i = 0; i < sizeof conv_cases / sizeof *conv_cases; i++)
        check_convolution(&conv_cases[i], TW_BFLOAT16);
}

/* ---- volumes ------------------------------------------------------------------------------------------------ */

typedef struct volume_case {
    int64_t in[5], filter[5], strides[3], dilations[3];
    const char *padding;
} volume_case;

static const volume_case volume_cases[] = {
    {{2, 5, 6, 7, 3}, {3, 3, 3, 3, 16}, {1, 1, 1}, {1, 1, 1}, "SAME"},
    {{2, 5, 6, 7, 16}, {3, 2, 3, 16, 8}, {1, 1, 1}, {1, 1, 1}, "VALID"},
    {{1, 7, 8, 9, 4}, {3, 3, 2, 4, 6}, {2, 1, 3}, {1, 1, 1}, "SAME"},
    {{1, 8, 8, 8, 5}, {2, 3, 3, 5, 4}, {3, 2, 2}, {1, 1, 1}, "VALID"},
    {{2, 4, 9, 8, 8}, {2, 3, 3, 8, 8}, {1, 1, 1}, {1, 2, 3}, "SAME"},
    {{2, 4, 5, 6, 32}, {1, 1, 1, 32, 16}, {1, 2, 2}, {1, 1, 1}, "VALID"},
    {{3, 4, 1, 1, 1}, {4, 1, 1, 1, 2}, {1, 1, 1}, {1, 1, 1}, "VALID"},
};

/* Against plain loops, which are held against TensorFlow's values. */
static void convolutions_of_volumes_are_those_of_plain_loops(void **state)
{
    (void)state;
    tw_error error = {0};
    for (size_t i = 0; i < sizeof volume_cases / sizeof *volume_cases; i++) {
        const volume_case *t = &volume_cases[i];
        int64_t strides[] = {1, t->strides[0], t->strides[1], t->strides[2], 1};
        int64_t dilations[] = {1, t->dilations[0], t->dilations[1], t->dilations[2], 1};
        const tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_ints("strides", strides, 5),
                                 tw_attr_ints("dilations", dilations, 5), tw_attr_string("padding", t->padding)};
        tw_shape image = {5}, filter = {5}, output = {5, {t->in[0], 0, 0, 0, t->filter[4]}};
        memcpy(image.dims, t->in, sizeof t->in);
        memcpy(filter.dims, t->filter, sizeof t->filter);
        for (int k = 0; k < 3; k++) {
            int64_t reach = (t->filter[k] - 1) * t->dilations[k] + 1;
            int64_t places = strcmp(t->padding, "SAME") == 0 ? t->in[k + 1] : t->in[k + 1] - reach + 1;
            output.dims[k + 1] = (places + t->strides[k] - 1) / t->strides[k];
        }
        value x = filled(TW_FLOAT32, image, 1), f = filled(TW_FLOAT32, filter, 2), dy = filled(TW_FLOAT32, output, 3);
        value sizes = make(TW_INT32, TW_SHAPE(5));
        struct {
            const char *op;
            value inputs[3];
            int num_inputs;
            tw_shape shape;
        } ops[] = {{"Conv3D", {x, f}, 2, output},
                   {"Conv3DBackpropInputV2", {sizes, f, dy}, 3, image},
                   {"Conv3DBackpropFilterV2", {x, sizes, dy}, 3, filter}};
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
            for (int threads = 1; threads <= 3; threads++) {
                value y = make(TW_FLOAT32, ops[k].shape), plain = make(TW_FLOAT32, ops[k].shape);
                kernel_call c = {ops[k].op, "plain", threads, attrs, 4, ops[k].inputs, ops[k].num_inputs, &plain, 1};
                assert_ok(call(&c, &error));
                c.kernel = "onednn", c.outputs = &y;
                assert_ok(call(&c, &error));
                assert_near(&y, &plain);
                drop(&y), drop(&plain);
            }
        drop(&x), drop(&f), drop(&dy), drop(&sizes);
    }
}

static void channels_first_images_are_left_to_other_kernels(void **state)
{
    (void)state;
    tw_error error = {0};
    int64_t ones[] = {1, 1, 1, 1};
    tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_ints("strides", ones, 4),
                       tw_attr_string("padding", "SAME"), tw_attr_string("data_format", "NCHW")};
    value x = make(TW_FLOAT32, TW_SHAPE(1, 3, 4, 4)), f = make(TW_FLOAT32, TW_SHAPE(3, 3, 3, 2));
    value y = make(TW_FLOAT32, TW_SHAPE(1, 2, 4, 4));
    twi_operand in[] = {x.operand, f.operand};
    twi_attrs list = {attrs, 4};
    twi_prepare p = {.op = "Conv2D", .node = "n", .attrs = &list, .num_inputs = 2, .num_outputs = 1, .inputs = in,
                     .outputs = &y.operand, .device = devices->items[0], .threads = 1, .error = &error};
    assert_int_equal(find_kernel("Conv2D", "onednn", TW_FLOAT32)->prepare(&p), TW_UNIMPLEMENTED);
    drop(&x), drop(&f), drop(&y);
}

/* ---- one state for several steps --------------------------------------------------------------------------- */

static void multiply(const twi_kernel *row, const twi_prepare *p, const value *a, const value *b, value *y)
{
    tw_error error = {0};
    void *workspace = twi_alloc_aligned(p->workspace + 64, 64);
    const void *from[] = {a->data, b->data};
    void *to[] = {y->data};
    const twi_run r = {.state = p->state, .inputs = from, .outputs = to, .workspace = workspace,
                       .input_operands = p->inputs, .output_operands = p->outputs, .num_inputs = 2, .num_outputs = 1,
                       .threads = 1, .node = "n", .error = &error};
    assert_ok(row->run(&r));
    twi_free_aligned(workspace);
}

static void steps_that_are_alike_may_take_turns_with_one_state(void **state)
{
    (void)state;
    const twi_kernel *row = find_kernel("MatMul", "onednn", TW_FLOAT32);
    tw_error error = {0};
    tw_attr attr = tw_attr_type("T", TW_FLOAT32);
    value a[] = {filled(TW_FLOAT32, TW_SHAPE(8, 8), 1), filled(TW_FLOAT32, TW_SHAPE(8, 8), 2)};
    value b[] = {filled(TW_FLOAT32, TW_SHAPE(8, 8), 3), filled(TW_FLOAT32, TW_SHAPE(8, 8), 4)};
    value apart = make(TW_FLOAT32, TW_SHAPE(8, 8)), shared = make(TW_FLOAT32, TW_SHAPE(8, 8));
    twi_operand in[] = {a[0].operand, b[0].operand};
    twi_prepare p = {.op = "MatMul", .node = "n", .attrs = &(twi_attrs){&attr, 1}, .num_inputs = 2, .num_outputs = 1,
                     .inputs = in, .outputs = &shared.operand, .device = devices->items[0], .threads = 1,
                     .error = &error};
    twi_prepare own = p;
    assert_true(row->shares);
    assert_ok(row->prepare(&p));
    for (int turn = 0; turn < 4; turn++) {
        int step = turn % 2;
        assert_ok(row->prepare(&own));
        multiply(row, &own, &a[step], &b[step], &apart);
        row->release(own.state);
        multiply(row, &p, &a[step], &b[step], &shared);
        assert_memory_equal(shared.data, apart.data, apart.operand.bytes);
    }
    row->release(p.state);
    for (int i = 0; i < 2; i++)
        drop(&a[i]), drop(&b[i]);
    drop(&apart), drop(&shared);
}

/* Its code generators do not look whether they got memory. */
static void without_memory_for_its_code_the_library_is_not_called(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); // their own memory would be refused
#endif
    struct rlimit before, none;
    const twi_kernel *row = find_kernel("MatMul", "onednn", TW_FLOAT32);
    tw_error error = {0};
    tw_attr attr = tw_attr_type("T", TW_FLOAT32);
    value a = filled(TW_FLOAT32, TW_SHAPE(8, 8), 1), y = make(TW_FLOAT32, TW_SHAPE(8, 8));
    twi_operand in[] = {a.operand, a.operand};
    twi_prepare p = {.op = "MatMul", .node = "n", .attrs = &(twi_attrs){&attr, 1}, .num_inputs = 2, .num_outputs = 1,
                     .inputs = in, .outputs = &y.operand, .device = devices->items[0], .threads = 1, .error = &error};
    twi_prepare limited = p;
    const void *from[] = {a.data, a.data};
    assert_ok(row->prepare(&p));
    void *workspace = twi_alloc_aligned(p.workspace + 64, 64);
    twi_run r = {.state = p.state, .inputs = from, .outputs = &y.data, .workspace = workspace, .input_operands = in,
                 .output_operands = &y.operand, .num_inputs = 2, .num_outputs = 1, .threads = 1, .node = "n",
                 .error = &error};
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    none = before;
    none.rlim_cur = 1;
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    tw_status prepared = row->prepare(&limited), ran = row->run(&r);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(prepared, TW_RESOURCE_EXHAUSTED);
    assert_int_equal(ran, TW_RESOURCE_EXHAUSTED);
    assert_message(error.message, "out of memory while running a oneDNN primitive");
    assert_ok(row->run(&r));
    row->release(limited.state);
    row->release(p.state);
    twi_free_aligned(workspace);
    drop(&a), drop(&y);
}

/* ---- matrix products --------------------------------------------------------------------------------------- */

static void check_matmul(int64_t m, int64_t k, int64_t n, bool transpose_a, bool transpose_b, tw_dtype dtype)
{
    tw_error error = {0};
    tw_attr attrs[] = {tw_attr_type("T", dtype), tw_attr_bool("transpose_a", transpose_a),
                       tw_attr_bool("transpose_b", transpose_b), tw_attr_bool("relu", true)};
    value a = filled(dtype, transpose_a ? TW_SHAPE(k, m) : TW_SHAPE(m, k), 5);
    value b = filled(dtype, transpose_b ? TW_SHAPE(n, k) : TW_SHAPE(k, n), 6);
    value bias = filled(dtype, TW_SHAPE(n), 7), y = make(dtype, TW_SHAPE(m, n)), y0 = make(TW_FLOAT32, TW_SHAPE(m, n));
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            for (int64_t l = 0; l < k; l++)
                ((float *)y0.data)[i * n + j] +=
                    get(&a, transpose_a ? l * m + i : i * k + l) * get(&b, transpose_b ? j * k + l : l * n + j);
    assert_ok(run("MatMul", "onednn", attrs, 3, (value[]){a, b}, 2, &y, 1, &error));
    assert_near(&y, &y0);
    for (int64_t i = 0; i < m * n; i++)
        put(&y0, i, fmaxf(0, get(&y0, i) + get(&bias, i % n)));
    assert_ok(run("_FusedMatMul", "onednn", attrs, 4, (value[]){a, b, bias}, 3, &y, 1, &error));
    assert_near(&y, &y0);
    drop(&a), drop(&b), drop(&bias), drop(&y), drop(&y0);
}

static void products_follow_the_definition_for_every_transposition(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        check_matmul(7, 33, 10, i & 1, i & 2, TW_FLOAT32);
        check_matmul(64, 40, 48, i & 1, i & 2, TW_FLOAT32);
        check_matmul(1, 5, 1, i & 1, i & 2, TW_FLOAT32);
        if (has_bfloat16())
            check_matmul(32, 50, 20, i & 1, i & 2, TW_BFLOAT16);
    }
}

typedef struct batch_case {
    tw_shape a, b, y;
    bool turn_a, turn_b, plain; /* plain: left to the plain kernel */
} batch_case;

static const batch_case batch_cases[] = {
    {{3, {5, 20, 33}}, {3, {5, 33, 7}}, {3, {5, 20, 7}}, false, false, false},
    {{4, {2, 3, 20, 16}}, {4, {2, 3, 20, 16}}, {4, {2, 3, 20, 20}}, false, true, false},
    {{4, {2, 3, 20, 9}}, {4, {2, 3, 20, 16}}, {4, {2, 3, 9, 16}}, true, false, false},
    {{3, {5, 6, 11}}, {3, {5, 8, 6}}, {3, {5, 11, 8}}, true, true, false},
    {{3, {5, 20, 33}}, {2, {33, 7}}, {3, {5, 20, 7}}, false, false, false},
    {{3, {5, 33, 20}}, {2, {7, 33}}, {3, {5, 20, 7}}, true, true, false},
    {{2, {20, 33}}, {3, {5, 33, 7}}, {3, {5, 20, 7}}, false, false, false},
    {{3, {1, 4, 6}}, {4, {1, 1, 6, 5}}, {4, {1, 1, 4, 5}}, false, false, false},
    {{4, {2, 1, 4, 6}}, {4, {2, 3, 6, 5}}, {4, {2, 3, 4, 5}}, false, false, true},
    {{4, {2, 1, 4, 6}}, {4, {1, 3, 6, 5}}, {4, {2, 3, 4, 5}}, false, false, true},
};

static void products_of_many_matrices_are_those_of_plain_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof batch_cases / sizeof *batch_cases; i++) {
        const batch_case *t = &batch_cases[i];
        tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_bool("adj_x", t->turn_a), tw_attr_bool("adj_y", t->turn_b)};
        value inputs[] = {filled(TW_FLOAT32, t->a, 1), filled(TW_FLOAT32, t->b, 2)};
        value y = make(TW_FLOAT32, t->y), expected = make(TW_FLOAT32, t->y);
        tw_error error = {0};
        tw_status status = run("BatchMatMulV2", "onednn", attrs, 3, inputs, 2, &y, 1, &error);
        assert_int_equal(status, t->plain ? TW_UNIMPLEMENTED : TW_OK);
        assert_ok(run("BatchMatMulV2", "plain", attrs, 3, inputs, 2, &expected, 1, &error));
        if (!t->plain)
            assert_near(&y, &expected);
        drop(&inputs[0]), drop(&inputs[1]), drop(&y), drop(&expected);
    }
}

static void the_same_run_gives_the_same_bits(void **state)
{
    (void)state;
    tw_error error = {0};
    int64_t ones[] = {1, 1, 1, 1};
    tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_ints("strides", ones, 4),
                       tw_attr_string("padding", "SAME")};
    value x = filled(TW_FLOAT32, TW_SHAPE(4, 12, 12, 16), 8), dy = filled(TW_FLOAT32, TW_SHAPE(4, 12, 12, 32), 9);
    value sizes = make(TW_INT32, TW_SHAPE(4)), first = make(TW_FLOAT32, TW_SHAPE(5, 5, 16, 32));
    value again = make(TW_FLOAT32, TW_SHAPE(5, 5, 16, 32));
    for (int64_t i = 0; i < x.operand.elements; i++)
        put(&x, i, get(&x, i) / 3); /* so that sums round */
    for (int i = 0; i < 5; i++) {
        value *out = i == 0 ? &first : &again;
        assert_ok(run("Conv2DBackpropFilter", "onednn", attrs, 3, (value[]){x, sizes, dy}, 3, out, 1, &error));
        if (i > 0)
            assert_memory_equal(first.data, again.data, first.operand.bytes);
    }
    drop(&x), drop(&dy), drop(&sizes), drop(&first), drop(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_and_their_gradients_follow_the_definition),
        cmocka_unit_test(filters_of_one_cell_with_strides_over_few_channels_are_left_to_others),
        cmocka_unit_test(bfloat16_convolutions_agree_where_the_cpu_has_the_type),
        cmocka_unit_test(steps_that_are_alike_may_take_turns_with_one_state),
        cmocka_unit_test(without_memory_for_its_code_the_library_is_not_called),
        cmocka_unit_test(convolutions_of_volumes_are_those_of_plain_loops),
        cmocka_unit_test(channels_first_images_are_left_to_other_kernels),
        cmocka_unit_test(products_follow_the_definition_for_every_transposition),
        cmocka_unit_test(products_of_many_matrices_are_those_of_plain_loops),
        cmocka_unit_test(the_same_run_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
