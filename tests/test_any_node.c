/* test_any_node.c - any op with any inputs and attributes: a node or an error, never anything else. What can be built,
 * and is small, is also differentiated and run; again, values or an error. Every type that a row allows has its turn.
 * Meant for the address and undefined-behaviour sanitizers, and reproducible: the same numbers are drawn in every
 * run. */
#include "op_testing.h"

#include <tower/nn.h>
#include <tower/session.h>
#include <tower/train.h>

enum {
    TRIES = 30,         /* of each op, all drawn */
    CHANGES = 12,       /* of each op, of nodes that are right but for one thing */
    TYPED = 4,          /* of each type that an attribute of the op may have */
    MOST_INPUTS = 12,
    MOST_ATTRS = 24,
    MOST_POOL = 1000,
    LARGEST_RUN = 4096, /* elements of an output */
};

static uint64_t state_of_draw;

static unsigned draw(unsigned below)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state_of_draw >> 33) % below;
}

static bool chance(unsigned percent)
{
    return draw(100) < percent;
}

/* ---- what inputs are taken from --------------------------------------------------------------------------------- */

static const tw_dtype dtypes[] = {
#define X(name, number, bytes, text) TW_##name,
    TW_DTYPE_LIST(X)
#undef X
};
enum { NUM_DTYPES = sizeof dtypes / sizeof *dtypes };

static const tw_shape shapes[] = {
    {0, {0}},          {1, {0}},          {1, {1}},          {1, {2}},
    {1, {4}},          {2, {3, 2}},       {2, {2, 2}},       {2, {0, 3}},
    {3, {2, 1, 3}},    {4, {1, 4, 4, 2}}, {4, {3, 3, 2, 2}}, {4, {2, 5, 3, 1}},
    {5, {1, 2, 1, 2, 1}}, {8, {1, 2, 1, 1, 2, 1, 1, 1}},
    {2, {INT64_C(1) << 40, 0}}, {3, {1 << 30, 2, 0}}, /* empty, but long to walk along */
    {4, {1 << 30, 4, 4, 0}}, {4, {1 << 20, 1 << 20, 0, 2}},
};
enum { NUM_SHAPES = sizeof shapes / sizeof *shapes };

/* Shapes that are known in part, not at all, or are too large for any machine. */
static const tw_shape strange_shapes[] = {
    {-1, {0}},
    {2, {-1, 3}},
    {4, {-1, -1, -1, 2}},
    {1, {INT64_MAX}},
    {2, {INT64_C(1) << 40, INT64_C(1) << 40}},
    {4, {INT64_C(1) << 31, INT64_C(1) << 31, 0, 7}},
    {4, {3, INT32_MAX, INT32_MAX, 1}},
    {8, {1000, 1000, 1000, 1000, 1000, 1000, 1000, -1}},
};
enum { NUM_STRANGE = sizeof strange_shapes / sizeof *strange_shapes };

typedef struct pool {
    tw_graph *g;
    int num_examples; /* the first so many nodes */
    tw_output outputs[MOST_POOL];
    int count;
} pool;

/* Small numbers, now and then an extreme one: indices, sizes and shapes are among them. */
static tw_output random_constant(tw_graph *g, tw_dtype dtype, tw_shape shape)
{
    tw_tensor *tensor = tw_tensor_create(dtype, shape);
    unsigned char *bytes = tw_tensor_data(tensor);
    for (int64_t i = 0; i < tw_tensor_elements(tensor); i++) {
        int value = (int)draw(5) - 1;
        size_t size = tw_dtype_size(dtype);
        if (dtype == TW_FLOAT32)
            ((float *)bytes)[i] = chance(2) ? INFINITY : (float)value / 2;
        else if (dtype == TW_FLOAT64)
            ((double *)bytes)[i] = chance(2) ? NAN : (double)value / 2;
        else if (dtype == TW_FLOAT16)
            ((uint16_t *)bytes)[i] = tw_float_to_half((float)value);
        else if (dtype == TW_BFLOAT16)
            ((uint16_t *)bytes)[i] = tw_float_to_bfloat16((float)value);
        else if (dtype == TW_COMPLEX64)
            ((float *)bytes)[2 * i] = (float)value / 2,
                                 ((float *)bytes)[2 * i + 1] = chance(2) ? NAN : (float)draw(5) - 2;
        else if (dtype == TW_COMPLEX128)
            ((double *)bytes)[2 * i] = (double)value / 2, ((double *)bytes)[2 * i + 1] = (double)draw(5) - 2;
        else if (dtype == TW_STRING)
            tw_tensor_set_string(tensor, i, "tag/x", draw(6));
        else if (dtype == TW_BOOL)
            bytes[i] = value > 0;
        else
            memset(bytes + (size_t)i * size, chance(2) ? 0x7f : value < 0 ? 0xff : 0, size);
        if (value > 0 && dtype != TW_FLOAT32 && dtype != TW_FLOAT64 && dtype != TW_FLOAT16 && dtype != TW_BFLOAT16 &&
            dtype != TW_STRING && dtype != TW_BOOL && !tw_dtype_is_complex(dtype))
            bytes[(size_t)i * size] = (unsigned char)value; /* the lowest byte comes first on all our machines */
    }
    tw_output output = tw_constant(g, tensor);
    tw_tensor_release(tensor);
    return output;
}

static void add(pool *p, tw_output output)
{
    assert_string_equal(tw_graph_message(p->g), "");
    assert_true(p->count < MOST_POOL);
    p->outputs[p->count++] = output;
}

/* Nodes of the more demanding ops, by the builders and with their gradients and updates. */
static void build_examples(tw_graph *g)
{
    tw_initializer half = {.a = 0.5f};
    tw_output images = tw_constant_floats(g, TW_SHAPE(2, 4, 4, 2), (float[64]){1, 2, -1, 3});
    tw_output labels = tw_constant_int32s(g, TW_SHAPE(2), (int32_t[]){0, 2});
    tw_output numbers = tw_constant_floats(g, TW_SHAPE(2, 3), (float[]){1, 2, 3, 4, 5, 6});
    tw_output yes = tw_greater(g, numbers, tw_scalar(g, 3)), parts[3], indices;
    tw_variable *filter = tw_get_variable(g, "filter", TW_FLOAT32, TW_SHAPE(3, 3, 2, 2), half);
    tw_variable *deep = tw_get_variable(g, "deep", TW_FLOAT32, TW_SHAPE(2, 2, 2, 1), half);
    tw_output x = tw_conv2d(g, images, filter->value, &(tw_conv2d_options){.stride = {2}});
    x = tw_leaky_relu(g, tw_elu(g, tw_selu(g, tw_softplus(g, tw_softsign(g, x)))), 0.1f);
    x = tw_batch_norm_layer(g, "norm", tw_depthwise_conv2d(g, x, deep->value, NULL), 0.9f, 1e-3f, true);
    x = tw_lrn(g, tw_relu(g, x), 1, 1, 1e-3f, 0.5f);
    x = tw_add(g, tw_max_pool(g, x, &(tw_pool_options){.window = {2}, .stride = {1}}),
               tw_avg_pool(g, x, &(tw_pool_options){.window = {2}, .stride = {1}}));
    x = tw_dense_layer(g, "dense", tw_flatten(g, tw_relu6(g, x)), 3, NULL);
    x = tw_add(g, x, tw_fused_batch_norm(g, tw_reshape(g, x, TW_SHAPE(2, 1, 1, 3)), tw_ones(g, TW_FLOAT32, TW_SHAPE(3)),
                                         tw_zeros(g, TW_FLOAT32, TW_SHAPE(3)), tw_zeros(g, TW_FLOAT32, TW_SHAPE(3)),
                                         tw_ones(g, TW_FLOAT32, TW_SHAPE(3)), 1e-3f, false).mean);
    tw_output loss = tw_reduce_mean(g, tw_sparse_softmax_cross_entropy(g, x, labels), NULL, 0, false);
    loss = tw_add(g, loss, tw_reduce_sum(g, tw_softmax_cross_entropy(g, x, tw_softmax(g, numbers)), NULL, 0, false));
    tw_in_top_k(g, x, labels, 2);
    tw_top_k(g, numbers, 2, &parts[0], &indices);
    tw_split(g, numbers, 1, parts, 3);
    loss = tw_add(g, loss, tw_l2_loss(g, tw_concat(g, parts, 3, 1)));
    tw_split_sizes(g, numbers, 1, (int64_t[]){1, 2}, parts, 2);
    tw_unpack(g, numbers, 0, parts, 2);
    tw_pack(g, parts, 2, 1);
    tw_one_hot(g, labels, 3);
    tw_range(g, tw_scalar(g, 0), tw_scalar(g, 3), tw_scalar(g, 1));
    tw_lin_space(g, tw_scalar(g, 0), tw_scalar(g, 3), 4);
    tw_strided_slice(g, numbers, (tw_strided_slice_options){.begin = TW_SHAPE(0, 1), .end = TW_SHAPE(2, 3)});
    tw_slice(g, numbers, TW_SHAPE(0, 1), TW_SHAPE(2, -1));
    tw_tile(g, numbers, TW_SHAPE(2, 1));
    tw_transpose(g, numbers, TW_SHAPE(1, 0));
    tw_pad(g, numbers, TW_SHAPE(1, 0), TW_SHAPE(0, 2));
    tw_mirror_pad(g, numbers, TW_SHAPE(1, 0), TW_SHAPE(0, 2), false);
    tw_gather(g, numbers, labels, 1);
    tw_select(g, yes, numbers, numbers);
    tw_clip(g, numbers, tw_scalar(g, 1), tw_scalar(g, 2));
    tw_cumsum(g, numbers, 1, true, false);
    tw_cumprod(g, numbers, 0, false, true);
    tw_arg_max(g, numbers, 1);
    tw_arg_min(g, numbers, 0);
    tw_broadcast_to(g, numbers, TW_SHAPE(2, 2, 3));
    tw_batch_matmul(g, numbers, numbers, true, false);
    tw_unsorted_segment_sum(g, numbers, labels, 3);
    tw_random_uniform_int(g, labels, tw_scalar_of(g, TW_INT32, 0), tw_scalar_of(g, TW_INT32, 5), 1);
    tw_multinomial(g, numbers, tw_scalar_of(g, TW_INT32, 4), 1);
    tw_resize_nearest_neighbor(g, images, tw_constant_int32s(g, TW_SHAPE(2), (int32_t[]){3, 5}), true, false);
    tw_adjust_contrast(g, images, tw_scalar(g, 2));
    tw_assert(g, tw_reduce_all(g, tw_is_finite(g, numbers), NULL, 0, false), &numbers, 1, 3);
    tw_summary_scalar(g, "loss", loss);
    tw_summary_histogram(g, "x", x);
    tw_merge_all_summaries(g, NULL);
    tw_output rate = tw_scalar(g, 0.1f);
    tw_optimizer *optimizers[] = {tw_momentum(g, rate, 0.9f, true), tw_adam(g, rate, 0.9f, 0.99f, 1e-8f),
                                  tw_rms_prop(g, rate, 0.9f, 0.5f, 1e-8f), tw_gradient_descent(g, rate)};
    for (int i = 0; i < 4; i++)
        tw_apply_gradients(optimizers[i], tw_compute_gradients(optimizers[i], loss), NULL);
    tw_moving_averages(g, 0.9f, NULL, (tw_output){0});
    assert_string_equal(tw_graph_message(g), "");
}

static bool has_node_of(const tw_graph *g, const twi_op *op)
{
    for (int i = 0; i < tw_graph_num_nodes(g); i++)
        if (tw_graph_node(g, i)->op == op)
            return true;
    return false;
}

/* With the examples, if one is of that op: every run places all that is in the graph. */
static void fill_pool(pool *p, const twi_op *op, const tw_graph *examples)
{
    *p = (pool){.g = tw_graph_create()};
    if (has_node_of(examples, op))
        build_examples(p->g);
    p->num_examples = tw_graph_num_nodes(p->g);
    for (int t = 0; t < NUM_DTYPES; t++) {
        for (int s = 0; s < NUM_SHAPES && dtypes[t] != TW_RESOURCE && dtypes[t] != TW_VARIANT; s++)
            add(p, random_constant(p->g, dtypes[t], shapes[s]));
        for (int s = 0; s < NUM_STRANGE; s++)
            if (dtypes[t] != TW_RESOURCE && dtypes[t] != TW_VARIANT)
                add(p, tw_placeholder(p->g, dtypes[t], strange_shapes[s]));
    }
    for (int i = 0; i < 8; i++) {
        tw_attr attrs[] = {tw_attr_type("element_dtype", TW_FLOAT32), tw_attr_type("shape_type", TW_INT32)};
        tw_output inputs[] = {tw_zeros(p->g, TW_FLOAT32, TW_SHAPE(i / 2, 2)),
                              tw_constant_int32s(p->g, TW_SCALAR, (int32_t[]){-1})};
        add(p, tw_node_output(tw_add_node(p->g, "TensorListFromTensor", NULL, inputs, 2, attrs, 2), 0));
    }
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        tw_dtype dtype = i < 4 ? TW_FLOAT32 : dtypes[i - 4];
        add(p,
            tw_get_variable(p->g, name, dtype == TW_STRING ? TW_INT8 : dtype, shapes[i], (tw_initializer){0})->handle);
    }
}

/* What an attempt leans to, so that inputs fit each other now and then. */
typedef struct leaning {
    bool honest;      /* nothing is spoilt on purpose */
    bool one_shape;   /* inputs mostly have this shape: */
    tw_shape shape;
    int rank;         /* or this rank; -1: any */
} leaning;

static bool suits(const leaning *l, tw_output output)
{
    tw_shape shape = tw_output_shape(output);
    if (l->honest && !tw_shape_is_known(shape))
        return chance(10);
    if (l->one_shape)
        return tw_shape_equal(shape, l->shape);
    return l->rank < 0 || shape.rank == l->rank;
}

/* Integers are often indices and sizes: those are scalars and vectors whatever the rest is. */
static tw_output input_of_type(const pool *p, tw_dtype dtype, const leaning *l)
{
    bool index = (dtype == TW_INT32 || dtype == TW_INT64) && chance(60);
    for (int i = 0; i < 2000; i++) {
        tw_output output = p->outputs[draw((unsigned)p->count)];
        if (!l->honest && chance(1))
            return output;
        if (tw_output_dtype(output) == dtype &&
            (dtype == TW_RESOURCE || dtype == TW_VARIANT || i > 1000 || chance(15) ||
             (index ? tw_output_shape(output).rank >= 0 && tw_output_shape(output).rank <= 1 : suits(l, output))))
            return output;
    }
    return p->outputs[0];
}

/* ---- a node at random -------------------------------------------------------------------------------------------- */

typedef struct attempt {
    const char *typed; /* the attribute that has the type `type`; NULL: all are drawn */
    tw_dtype type;
    tw_output inputs[MOST_INPUTS];
    int num_inputs;
    tw_attr attrs[MOST_ATTRS];
    int num_attrs;
    int64_t ints[MOST_ATTRS][8];
    float floats[8];
    tw_dtype types[MOST_ATTRS][8];
    tw_shape shape_list[2];
    tw_string strings[3];
    leaning leaning;
} attempt;

static int64_t random_int(const leaning *l)
{
    static const int64_t extremes[] = {-1, 0, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1 << 20, -7};
    return chance(l->honest ? 2 : 10) ? extremes[draw(8)] : draw(4);
}

static tw_dtype random_type(uint64_t allowed, const leaning *l)
{
    if (!l->honest && chance(2))
        return (tw_dtype)(int)(draw(200) - 50u); /* no type at all */
    for (int i = 0; i < 1000; i++) {
        tw_dtype dtype = dtypes[draw(NUM_DTYPES)];
        if (!allowed || allowed >> dtype & 1)
            return dtype;
    }
    return TW_FLOAT32;
}

static tw_attr random_value(attempt *a, const char *name, tw_attr_kind kind, const twi_attr_spec *spec, pool *p)
{
    const leaning *l = &a->leaning;
    int at = a->num_attrs, count = l->honest || chance(50) ? 4 : (int)draw(6); /* as strides and windows are */
    for (int i = 0; i < 8; i++) {
        a->ints[at][i] = i == 0 || i == 3 || chance(50) ? 1 : l->honest ? 1 + draw(3) : random_int(l);
        a->types[at][i] = random_type(0, l);
    }
    switch (kind) {
    case TW_ATTR_INT:
        return tw_attr_int(name, random_int(l));
    case TW_ATTR_FLOAT:
        return tw_attr_float(name, chance(5) ? NAN : (float)draw(5) / 2 - 0.5f);
    case TW_ATTR_BOOL:
        return tw_attr_bool(name, chance(50));
    case TW_ATTR_TYPE:
        if (a->typed && strcmp(name, a->typed) == 0)
            return tw_attr_type(name, a->type);
        return tw_attr_type(name, random_type(spec ? spec->allowed_types : 0, l));
    case TW_ATTR_STRING:
        if (spec && spec->num_allowed_strings && (l->honest || chance(95)))
            return tw_attr_string(name, spec->allowed_strings[draw((unsigned)spec->num_allowed_strings)]);
        return tw_attr_string(name, chance(50) ? "" : "anything");
    case TW_ATTR_SHAPE:
        return tw_attr_shape(name, chance(70) ? shapes[draw(NUM_SHAPES)] : strange_shapes[draw(NUM_STRANGE)]);
    case TW_ATTR_TENSOR:
        return tw_attr_tensor(name, twi_constant_value(p->outputs[draw(NUM_SHAPES)]));
    case TW_ATTR_INTS:
        return tw_attr_ints(name, a->ints[at], count);
    case TW_ATTR_FLOATS:
        return tw_attr_floats(name, a->floats, count);
    case TW_ATTR_TYPES:
        return tw_attr_types(name, a->types[at], count);
    case TW_ATTR_STRINGS:
        return tw_attr_strings(name, a->strings, count % 3);
    default:
        return tw_attr_shapes(name, a->shape_list, count % 2);
    }
}

static const tw_attr *given(const attempt *a, const char *name)
{
    for (int i = 0; name && i < a->num_attrs; i++)
        if (strcmp(a->attrs[i].name, name) == 0)
            return &a->attrs[i];
    return NULL;
}

static void add_input(attempt *a, pool *p, tw_dtype dtype)
{
    if (a->num_inputs < MOST_INPUTS)
        a->inputs[a->num_inputs++] = input_of_type(p, dtype, &a->leaning);
}

/* Mostly what the signature wants. */
static void draw_attempt(attempt *a, pool *p, const twi_signature *s)
{
    bool honest = a->typed || chance(70);
    a->num_inputs = a->num_attrs = 0;
    a->leaning = (leaning){honest, chance(40), shapes[draw(NUM_SHAPES)], chance(70) ? (int)draw(5) : -1};
    for (int i = 0; i < s->num_attrs && a->num_attrs < MOST_ATTRS; i++) {
        const twi_attr_spec *spec = &s->attrs[i];
        bool typed = a->typed && strcmp(spec->name, a->typed) == 0;
        if (!typed && ((spec->has_default && chance(honest ? 80 : 60)) || (!honest && chance(3))))
            continue;
        tw_attr_kind kind = !honest && chance(2) ? (tw_attr_kind)(1 + draw(TW_ATTR_SHAPES)) : spec->kind;
        a->attrs[a->num_attrs] = random_value(a, spec->name, kind, spec, p);
        a->num_attrs++;
    }
    if (!honest && chance(2))
        a->attrs[a->num_attrs < MOST_ATTRS ? a->num_attrs++ : 0] = tw_attr_int("nonsense", 1);
    for (int i = 0; i < s->num_inputs; i++) {
        const twi_argument *argument = &s->inputs[i];
        const tw_attr *type = given(a, argument->type_attr), *number = given(a, argument->number_attr),
                      *list = given(a, argument->list_attr);
        tw_dtype dtype = type && type->kind == TW_ATTR_TYPE ? type->type
                         : argument->dtype                  ? argument->dtype
                                                            : dtypes[draw(NUM_DTYPES)];
        int length = 1;
        if (number && number->kind == TW_ATTR_INT)
            length = number->i < 0 ? 0 : number->i > 4 ? 4 : (int)number->i;
        else if (list && list->kind == TW_ATTR_TYPES)
            length = list->count;
        for (int k = 0; k < length; k++)
            add_input(a, p, list && list->kind == TW_ATTR_TYPES ? list->types[k] : dtype);
    }
    if (honest)
        return;
    if (chance(3) && a->num_inputs)
        a->num_inputs--;
    if (chance(3))
        add_input(a, p, TW_FLOAT32);
    if (chance(3) && a->num_inputs)
        a->inputs[draw((unsigned)a->num_inputs)] = (tw_output){0};
    if (chance(3) && a->num_inputs)
        a->inputs[draw((unsigned)a->num_inputs)].index = (int)draw(5) - 2;
}

/* A node of the examples, with one thing changed; false if there is none of that op. */
static bool change_example(attempt *a, pool *p, const twi_op *op, const twi_signature *s)
{
    const tw_node *found = NULL;
    int seen = 0;
    for (int i = 0; i < p->num_examples; i++)
        if (tw_graph_node(p->g, i)->op == op && draw((unsigned)++seen) == 0)
            found = tw_graph_node(p->g, i);
    if (!found || found->num_inputs > MOST_INPUTS || found->attrs.count > MOST_ATTRS)
        return false;
    a->leaning = (leaning){.honest = true, .rank = -1};
    a->num_inputs = found->num_inputs;
    memcpy(a->inputs, found->inputs, sizeof *a->inputs * (size_t)found->num_inputs);
    a->num_attrs = found->attrs.count;
    memcpy(a->attrs, found->attrs.items, sizeof *a->attrs * (size_t)a->num_attrs);
    if (chance(10) || a->num_inputs + s->num_attrs == 0)
        return true;
    unsigned at = draw((unsigned)(a->num_inputs + s->num_attrs));
    if (at < (unsigned)a->num_inputs) {
        tw_dtype dtype = tw_output_dtype(a->inputs[at]);
        a->leaning.rank = chance(50) ? tw_output_shape(a->inputs[at]).rank : -1;
        a->inputs[at] = input_of_type(p, chance(90) ? dtype : dtypes[draw(NUM_DTYPES)], &a->leaning);
        return true;
    }
    const twi_attr_spec *spec = &s->attrs[at - (unsigned)a->num_inputs];
    for (int i = 0; i < a->num_attrs; i++)
        if (strcmp(a->attrs[i].name, spec->name) == 0) {
            int count = a->num_attrs;
            a->leaning.honest = false;
            a->num_attrs = i; /* where the lists of the new value lie */
            a->attrs[i] = random_value(a, spec->name, spec->kind, spec, p);
            a->num_attrs = count;
            a->leaning.honest = true;
        }
    return true;
}

static const char *random_name(const leaning *l)
{
    static const char *const names[] = {NULL, "x", "", "a b", "/x", "x/", "_", "-", "x/y/z", "\xff"};
    return l->honest ? NULL : names[draw(sizeof names / sizeof *names)];
}

/* ---- what is done with it ---------------------------------------------------------------------------------------- */

static bool is_small(const tw_node *node)
{
    for (int i = 0; i < node->num_outputs; i++) {
        int64_t elements = tw_shape_elements(node->output_shapes[i]);
        if (elements < 0 || elements > LARGEST_RUN || node->output_types[i] == TW_RESOURCE)
            return false;
    }
    for (int i = 0; i < node->num_inputs; i++)
        if (strcmp(node->inputs[i].node->op->name, "Placeholder") == 0)
            return false;
    return true;
}

/* Takes the latest nodes out of the graph again. */
static void cut(tw_graph *g, int count)
{
    while (g->nodes.count > count) {
        tw_node *node = g->nodes.items[--g->nodes.count];
        for (int i = 0; i < node->attrs.count; i++)
            twi_attr_release(&node->attrs.items[i]);
    }
}

static void differentiate(pool *p, tw_node *node)
{
    tw_output grads[MOST_INPUTS], y = {node, 0};
    int count = p->g->nodes.count;
    bool is_complex = node->num_outputs && tw_dtype_is_complex(tw_output_dtype(y));
    if (node->num_outputs && (is_complex || tw_output_dtype(y) == TW_FLOAT32) && node->num_inputs)
        tw_gradients(p->g, &y, 1, is_complex ? &y : NULL, node->inputs, node->num_inputs, grads);
    cut(p->g, count);
}

typedef struct counts {
    int built, refused, ran, failed;
} counts;

static void run(tw_session *s, tw_node *node, counts *c)
{
    tw_error error = {0};
    tw_output fetch = {node, node->num_outputs ? (int)draw((unsigned)node->num_outputs) : -1};
    tw_tensor *result = NULL;
    if (tw_session_run(s, NULL, 0, &fetch, 1, &result, &error) == TW_OK)
        c->ran++;
    else
        c->failed += error.message[0] != 0;
    tw_tensor_release(result);
}

static tw_session *open_session(pool *p, tw_devices *devices, bool plain)
{
    tw_error error = {0};
    tw_session *s = NULL;
    tw_session_options options = {.devices = devices, .plain_kernels = plain, .disable = plain ? NULL : "fold"};
    tw_output initialize = tw_initialize_variables(p->g);
    assert_ok(tw_session_create(p->g, &options, &s, &error));
    assert_ok(tw_session_run(s, NULL, 0, &initialize, 1, NULL, &error));
    return s;
}

static void try_node(pool *p, const twi_op *op, const attempt *a, twi_device *cpu, tw_session *s, counts *c)
{
    int before = p->g->nodes.count;
    tw_node *node =
        tw_add_node(p->g, op->name, random_name(&a->leaning), a->inputs, a->num_inputs, a->attrs, a->num_attrs);
    if ((node == NULL) != (tw_graph_status(p->g) != TW_OK))
        fail_msg("%s: a node and an error, or neither: '%s'", op->name, tw_graph_message(p->g));
    if (!node && !tw_graph_message(p->g)[0])
        fail_msg("%s: an error without words", op->name);
    c->built += node != NULL;
    c->refused += node == NULL;
    if (node && is_small(node) && twi_device_has_kernel(cpu, op->name, node->kernel_type))
        run(s, node, c);
    else
        cut(p->g, before); /* a node without a kernel would keep all others from being placed */
    if (node && p->g->nodes.count > before)
        differentiate(p, node);
    p->g->error = (tw_error){0}; /* the next try is not to suffer for this one */
}

/* Each type attribute with each type that the row allows. */
static void try_types(const twi_op *op, const twi_signature *signature, pool *p, twi_device *cpu,
                      tw_session *const *sessions, counts *c)
{
    attempt a = {0};
    for (int i = 0; i < signature->num_attrs; i++)
        for (int t = 0; t < NUM_DTYPES && signature->attrs[i].kind == TW_ATTR_TYPE; t++) {
            uint64_t allowed = signature->attrs[i].allowed_types;
            a.typed = signature->attrs[i].name;
            a.type = dtypes[t];
            for (int k = 0; k < TYPED && (!allowed || allowed >> a.type & 1); k++) {
                draw_attempt(&a, p, signature);
                try_node(p, op, &a, cpu, sessions[k % 2], c);
            }
        }
}

/* A new graph for each op: what one does wrong stays with it. */
static void try_op(const twi_op *op, const tw_graph *examples, tw_devices *devices, counts *c)
{
    pool p;
    attempt a = {0};
    fill_pool(&p, op, examples);
    const twi_signature *signature = twi_op_signature(op);
    assert_non_null(signature);
    tw_session *sessions[] = {open_session(&p, devices, true), open_session(&p, devices, false)};
    for (int i = 0; i < TRIES; i++) {
        draw_attempt(&a, &p, signature);
        try_node(&p, op, &a, devices->items[0], sessions[i % 2], c);
    }
    try_types(op, signature, &p, devices->items[0], sessions, c);
    for (int i = 0; i < CHANGES && change_example(&a, &p, op, signature); i++)
        try_node(&p, op, &a, devices->items[0], sessions[i % 2], c);
    tw_session_destroy(sessions[0]);
    tw_session_destroy(sessions[1]);
    tw_graph_destroy(p.g);
}

static void any_node_is_built_or_refused_and_runs_or_fails(void **state)
{
    (void)state;
    tw_error error = {0};
    counts all = {0};
    tw_devices *devices = NULL;
    tw_graph *examples = tw_graph_create();
    build_examples(examples);
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1}, &devices, &error));
    for (const twi_op *const *family = twi_op_families; *family; family++)
        for (const twi_op *op = *family; op->name; op++) {
            counts c = {0};
            state_of_draw = (uint64_t)(op->name[0] * 31 + op->name[1]);
            if (!(op->flags & TWI_REWRITTEN))
                try_op(op, examples, devices, &c);
            all.built += c.built;
            all.refused += c.refused;
            all.ran += c.ran;
            all.failed += c.failed;
        }
    tw_devices_destroy(devices);
    tw_graph_destroy(examples);
    print_message("%d nodes built, %d refused; %d runs gave values, %d failed\n", all.built, all.refused, all.ran,
                  all.failed);
    assert_true(all.built > 1000 && all.refused > 1000 && all.ran > 500); /* the draw reaches all of it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_node_is_built_or_refused_and_runs_or_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
