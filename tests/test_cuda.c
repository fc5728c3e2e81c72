/* The CUDA plug-in: without a card that it opens and says in one line why there is none; with one, that every kernel
 * computes what the CPU's does. Skipped where there is neither. */
#include "op_testing.h"
#include "planned_nodes.h"
#include "typed_testing.h"

#include "device/plugin.h"
#include "device/fused/scalars.h"

#include <tower/data.h>
#include <tower/models.h>
#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/session.h>
#include <tower/train.h>

static const twi_backend *cuda; /* the plug-in's */
static const char *why;
static tw_devices *devices; /* with the first card, if there is one */
static twi_device *card;

static const twi_backend *find_backend(const char *kind)
{
    twi_backends plugins = twi_plugin_backends(&why);
    for (int i = 0; i < plugins.count; i++)
        if (strcmp(plugins.items[i]->kind, kind) == 0)
            return plugins.items[i];
    return NULL;
}

static void one_plain_line_says_why_there_is_no_gpu(void **state)
{
    (void)state;
    const char *line = tw_devices_why_no_gpu();
    if (tw_devices_count(devices, "GPU") > 0)
        assert_string_equal(line, "");
    else
        assert_true(strlen(line) > 20 && !strchr(line, '\n'));
}

static void the_plugin_that_was_built_opens(void **state)
{
    (void)state;
#ifdef TOWER_WITH_CUDA
    if (!cuda)
        fail_msg("%s", why);
    assert_string_equal(cuda->type, "GPU");
#else
    skip();
#endif
}

static void a_card_that_is_not_there_cannot_be_opened(void **state)
{
    (void)state;
    tw_error error = {0};
    double values[16] = {0};
    int count;
    if (!cuda)
        skip();
    const twi_options nothing = {cuda->options, values};
    assert_ok(cuda->enumerate(&nothing, &count, &why, &error));
    assert_null(cuda->create(&nothing, count, 0, &error));
    assert_message(error.message, "there is no card number");
    assert_null(cuda->create(&nothing, -1, 0, &error));
}

static void gpus_are_left_alone_when_asked(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_devices *devices;
    assert_ok(tw_devices_create(&(tw_device_options){.no_gpus = true}, &devices, &error));
    assert_int_equal(tw_devices_count(devices, "GPU"), 0);
    tw_devices_destroy(devices);
    assert_ok(tw_devices_create(NULL, &devices, &error));
    assert_int_equal(tw_devices_count(devices, "GPU") > 0, tw_devices_why_no_gpu()[0] == 0);
    tw_devices_destroy(devices);
}

/* ---- with a card ------------------------------------------------------------------------------------------- */

static const tw_dtype floats[] = {TW_FLOAT32, TW_BFLOAT16, TW_FLOAT16};
/* In each of them blocks meet alike, which is what the thread sanitizer looks at. */
enum { FLOATS = UNDER_THREAD_SANITIZER ? 1 : sizeof floats / sizeof *floats, MOST_COVERED = 256 };

static const char *covered[MOST_COVERED]; /* ops that some case has run on the card */
static int num_covered;

static bool is_covered(const char *op)
{
    for (int i = 0; i < num_covered; i++)
        if (strcmp(covered[i], op) == 0)
            return true;
    return false;
}

static void cover(const char *op)
{
    assert_true(num_covered < MOST_COVERED);
    if (!is_covered(op))
        covered[num_covered++] = op;
}

/* Small multiples of 1/8 in [-1, 1): exact in every type, and often equal to a neighbour. Integers from 0 to 3. */
static tw_tensor *filled(tw_dtype dtype, tw_shape shape, unsigned seed)
{
    tw_tensor *t = tw_tensor_create(dtype, shape);
    assert_non_null(t);
    for (int64_t i = 0; i < t->elements; i++) {
        seed = seed * 1664525 + 1013904223;
        float x = (float)((int)(seed >> 28) - 8) / 8;
        int number = (int)(seed >> 30);
        switch (dtype) {
        case TW_FLOAT32:
            ((float *)t->data)[i] = x;
            break;
        case TW_BFLOAT16:
            ((uint16_t *)t->data)[i] = tw_float_to_bfloat16(x);
            break;
        case TW_FLOAT16:
            ((uint16_t *)t->data)[i] = tw_float_to_half(x);
            break;
        case TW_INT32:
            ((int32_t *)t->data)[i] = number;
            break;
        case TW_INT64:
            ((int64_t *)t->data)[i] = number;
            break;
        default:
            ((uint8_t *)t->data)[i] = (uint8_t)number;
        }
    }
    return t;
}

static tw_tensor *ints(int count, const int *values)
{
    tw_tensor *t = tw_tensor_create(TW_INT32, TW_SHAPE(count));
    assert_non_null(t);
    memcpy(t->data, values, (size_t)count * sizeof *values);
    return t;
}

/* Paddings of three axes. */
static tw_tensor *pairs(int a, int b, int c, int d, int e, int f)
{
    tw_tensor *t = tw_tensor_create(TW_INT32, TW_SHAPE(3, 2));
    assert_non_null(t);
    memcpy(t->data, (int[]){a, b, c, d, e, f}, 6 * sizeof(int));
    return t;
}

static tw_tensor *filled_int(int value)
{
    tw_tensor *t = tw_tensor_create(TW_INT32, TW_SCALAR);
    assert_non_null(t);
    *(int32_t *)t->data = value;
    return t;
}

static tw_tensor *listed(tw_dtype dtype, int count, const float *values)
{
    tw_tensor *t = tw_tensor_create(dtype, TW_SHAPE(count));
    assert_non_null(t);
    for (int i = 0; i < count; i++)
        if (dtype == TW_FLOAT32)
            ((float *)t->data)[i] = values[i];
        else
            ((uint16_t *)t->data)[i] = dtype == TW_FLOAT16 ? tw_float_to_half(values[i]) : tw_float_to_bfloat16(values[i]);
    return t;
}

/* Operands begin one element behind where memory does, though no plan lays them so: vectors do not fit there. */
static bool askew, may_be_askew;

static size_t shift_of(const twi_operand *operand)
{
    return askew ? tw_dtype_size(operand->dtype) : 0;
}

/* Runs a node on the card; outputs are of the node's types and shapes. */
static tw_status run_node(const tw_node *node, twt_op *op, tw_error *error)
{
    twi_operand in[TWT_MOST] = {0}, out[TWT_MOST] = {0};
    void *from[TWT_MOST] = {0}, *to[TWT_MOST] = {0}, *workspace = NULL;
    const twi_kernel *kernel = NULL;
    tw_status status = TW_OK;
    for (int i = 0; i < op->num_inputs; i++) {
        in[i] = twt_operand(op->inputs[i], true);
        TWI_TRY(twi_device_alloc(card, in[i].bytes + shift_of(&in[i]), "a test", &from[i], error));
        from[i] = (char *)from[i] + shift_of(&in[i]);
        TWI_TRY(card->ops->write(card, from[i], op->inputs[i]->data, in[i].bytes, error));
    }
    for (int i = 0; i < node->num_outputs; i++) {
        tw_tensor *output = tw_tensor_create(node->output_types[i], node->output_shapes[i]);
        assert_non_null(output);
        op->outputs[op->num_outputs++] = output;
        out[i] = twt_operand(output, false);
        memset(output->data, 0xa5, out[i].bytes);
        TWI_TRY(twi_device_alloc(card, out[i].bytes + shift_of(&out[i]), "a test", &to[i], error));
        to[i] = (char *)to[i] + shift_of(&out[i]);
        TWI_TRY(card->ops->write(card, to[i], output->data, out[i].bytes, error));
    }
    twi_prepare p = {.op = op->op, .node = node->name, .attrs = &node->attrs, .roles = node->op->roles,
                     .num_inputs = op->num_inputs, .num_outputs = op->num_outputs, .inputs = in, .outputs = out, .device = card, .threads = 1,
                     .error = error};
    TWI_TRY(twt_prepare(card, &p, false, &kernel));
    if (p.workspace)
        TWI_TRY(twi_device_alloc(card, p.workspace, "a test", &workspace, error));
    twi_run run = {.state = p.state, .inputs = (const void *const *)from, .outputs = to, .workspace = workspace,
                   .input_operands = in, .output_operands = out, .num_inputs = op->num_inputs,
                   .num_outputs = op->num_outputs, .threads = 1, .node = node->name, .error = error};
    TWI_TRY(card->ops->launch(card, kernel, &run));
    for (int i = 0; i < op->num_outputs; i++)
        TWI_TRY(card->ops->read(card, op->outputs[i]->data, to[i], out[i].bytes, error));
done:
    if (kernel && kernel->release)
        kernel->release(p.state);
    for (int i = 0; i < op->num_inputs; i++)
        twi_device_free(card, from[i] ? (char *)from[i] - shift_of(&in[i]) : NULL, in[i].bytes + shift_of(&in[i]));
    for (int i = 0; i < op->num_outputs; i++)
        twi_device_free(card, to[i] ? (char *)to[i] - shift_of(&out[i]) : NULL, out[i].bytes + shift_of(&out[i]));
    twi_device_free(card, workspace, p.workspace);
    return status;
}

/* The op on the card twice, the second time askew if `may_be_askew`, whose bits must agree, and by the plain C kernel;
 * tolerances are those of op_testing.h: the order of sums differs, and what the libraries make of a logarithm. Releases
 * the inputs. */
static void compare(twt_op op)
{
    tw_error error = {0};
    tw_output inputs[TWT_MOST];
    twt_op once = op, twice = op;
    twt_case c = {.file = op.op, .op = op};
    tw_graph *graph = tw_graph_create();
    assert_non_null(graph);
    for (int i = 0; i < op.num_inputs; i++)
        inputs[i] = tw_constant(graph, op.inputs[i]);
    tw_node *node = tw_add_node(graph, op.op, "n", inputs, op.num_inputs, op.attrs, op.num_attrs);
    if (!node)
        fail_msg("%s: %s", op.op, tw_graph_message(graph));
    assert_ok(run_node(node, &once, &error));
    askew = may_be_askew;
    assert_ok(run_node(node, &twice, &error));
    askew = false;
    op.plain = true;
    assert_ok(twt_op_run(&op, &error));
    for (int i = 0; i < op.num_outputs; i++) {
        c.expected[i] = op.outputs[i];
        twt_compare(&c, i, once.outputs[i], "on the card");
        twt_expect_same_bits(&c, once.outputs[i], twice.outputs[i], "in its second run");
    }
    cover(op.op);
    twt_op_release_outputs(&once);
    twt_op_release_outputs(&twice);
    twt_op_release(&op);
    tw_graph_destroy(graph);
}

static void needs_card(void)
{
    if (!card)
        skip();
}

static void nan_and_infinity_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const char *const gradients[] = {"SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"};
    static const float y[] = {0, INFINITY, NAN, 2, 0, 4}, dy[] = {0, 0, 0, 0, 1, 1}, t[] = {NAN, 2, 0, -5, INFINITY, 1};
    static const float limits[][2] = {{-1, 1}, {NAN, 1}, {-1, NAN}, {1, -1}};
    needs_card();
    for (int k = 0; k < FLOATS; k++) {
        float bias[16] = {1, NAN, -1};
        for (int fused = 0; fused < 2; fused++) /* products that end in a ReLU */
            compare((twt_op){.op = fused ? "_FusedConv2D" : "_FusedMatMul", .num_inputs = 3,
                             .inputs = {filled(floats[k], fused ? TW_SHAPE(2, 7, 8, 8) : TW_SHAPE(8, 24), 1),
                                        filled(floats[k], fused ? TW_SHAPE(3, 3, 8, 16) : TW_SHAPE(24, 16), 2),
                                        listed(floats[k], 16, bias)},
                             .num_attrs = fused ? 3 : 2,
                             .attrs = {tw_attr_bool("relu", true),
                                       fused ? tw_attr_ints("strides", (int64_t[]){1, 1, 1, 1}, 4)
                                             : tw_attr_type("U", floats[k]),
                                       tw_attr_string("padding", "SAME")}});
        for (int i = 0; i < 4; i++) {
            compare((twt_op){.op = i % 2 ? "ArgMin" : "ArgMax", .num_inputs = 2,
                             .inputs = {listed(floats[k], 6 - i, i < 2 ? t : y), filled_int(0)}});
            compare((twt_op){.op = gradients[i], .num_inputs = 2,
                             .inputs = {listed(floats[k], 6, y), listed(floats[k], 6, dy)}});
            compare((twt_op){.op = "ClipByValue", .num_inputs = 3,
                             .inputs = {listed(floats[k], 6, t), filled(floats[k], TW_SCALAR, 1),
                                        listed(floats[k], 6, (float[]){NAN, 1, NAN, 1, -1, 3})}});
            compare((twt_op){.op = "ClipByValue", .num_inputs = 3,
                             .inputs = {listed(floats[k], 1, t), listed(floats[k], 1, &limits[i][0]),
                                        listed(floats[k], 1, &limits[i][1])}});
        }
    }
}

static void elementwise_ops_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const char *const unary[] = {
        "Neg",   "Abs",   "Sign",   "Square", "Reciprocal", "Inv",  "Sqrt",     "Rsqrt",    "Exp",      "Expm1",
        "Log",   "Log1p", "Sin",    "Cos",    "Tan",        "Tanh", "Erf",      "Sigmoid",  "Floor",    "Ceil",
        "Round", "Relu",  "Relu6",  "Sinh",   "Cosh",       "Asin", "Acos",     "Atan",     "Asinh",    "Acosh",
        "Atanh", "Erfc",  "Lgamma", "Rint",   "Elu",        "Selu", "Softplus", "Softsign", "LeakyRelu"};
    static const char *const binary[] = {"Add",      "AddV2",       "Sub",      "Mul",      "RealDiv",
                                         "Div",      "DivNoNan",    "Maximum",  "Minimum",  "SquaredDifference",
                                         "Pow",      "TruncateDiv", "FloorDiv", "FloorMod", "Mod",
                                         "MulNoNan", "Xdivy",       "Xlogy",    "Xlog1py",  "Atan2"};
    static const char *const gradients[] = {"SqrtGrad",     "RsqrtGrad",    "ReciprocalGrad", "InvGrad", "SigmoidGrad",
                                            "TanhGrad",     "ReluGrad",     "Relu6Grad",      "EluGrad", "SeluGrad",
                                            "SoftplusGrad", "SoftsignGrad", "LeakyReluGrad"};
    static const tw_dtype casts[][2] = {{TW_FLOAT32, TW_INT32}, {TW_INT64, TW_FLOAT32}, {TW_BFLOAT16, TW_FLOAT32},
                                        {TW_FLOAT32, TW_BFLOAT16}, {TW_FLOAT32, TW_FLOAT16}, {TW_FLOAT16, TW_FLOAT32},
                                        {TW_FLOAT16, TW_BFLOAT16}, {TW_BFLOAT16, TW_FLOAT16}, {TW_FLOAT16, TW_BOOL},
                                        {TW_UINT8, TW_FLOAT32},
                                        {TW_INT32, TW_INT64}};
    needs_card();
    may_be_askew = true;
    for (int t = 0; t < FLOATS; t++) {
        tw_dtype T = floats[t];
        for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
            compare((twt_op){.op = unary[i], .num_inputs = 1, .inputs = {filled(T, TW_SHAPE(3, 5, 7), 1)}});
        for (size_t i = 0; i < sizeof binary / sizeof *binary; i++) {
            if (T == TW_BFLOAT16 && strstr("DivNoNan MulNoNan Xdivy Xlogy Xlog1py", binary[i]))
                continue; /* no such op in TensorFlow */
            compare((twt_op){.op = binary[i], .num_inputs = 2,
                             .inputs = {filled(T, TW_SHAPE(513), 1), filled(T, TW_SHAPE(513), 2)}});
            compare((twt_op){.op = binary[i], .num_inputs = 2,
                             .inputs = {filled(T, TW_SHAPE(3, 1, 7), 1), filled(T, TW_SHAPE(5, 1), 2)}});
            compare((twt_op){.op = binary[i], .num_inputs = 2,
                             .inputs = {filled(T, TW_SCALAR, 1), filled(T, TW_SHAPE(2, 3), 2)}});
            compare((twt_op){.op = binary[i], .num_inputs = 2,
                             .inputs = {filled(T, TW_SHAPE(37), 1), filled(T, TW_SHAPE(1, 1), 2)}});
        }
        for (size_t i = 0; i < sizeof gradients / sizeof *gradients; i++)
            compare((twt_op){.op = gradients[i], .num_inputs = 2,
                             .inputs = {filled(T, TW_SHAPE(11, 3), 1), filled(T, TW_SHAPE(11, 3), 2)}});
        compare((twt_op){.op = "AddN", .num_inputs = 3, .inputs = {filled(T, TW_SHAPE(7, 5), 1),
                                                                    filled(T, TW_SHAPE(7, 5), 2),
                                                                    filled(T, TW_SHAPE(7, 5), 3)}});
        compare((twt_op){.op = "AccumulateNV2", .num_inputs = 2,
                         .inputs = {filled(T, TW_SHAPE(7, 5), 1), filled(T, TW_SHAPE(7, 5), 2)},
                         .num_attrs = 1, .attrs = {tw_attr_shape("shape", TW_SHAPE(7, 5))}});
        compare((twt_op){.op = "Relu", .num_inputs = 1, .inputs = {filled(T, TW_SHAPE(0, 5), 1)}});
    }
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
        compare((twt_op){.op = "Cast", .num_inputs = 1, .inputs = {filled(casts[i][0], TW_SHAPE(9, 5), 4)},
                         .num_attrs = 1, .attrs = {tw_attr_type("DstT", casts[i][1])}});
    may_be_askew = false;
}

/* More terms than one launch takes; -1, 2, -3, 4, ... */
static void a_sum_of_many_terms_is_whole(void **state)
{
    (void)state;
    enum { TERMS = 300 };
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_output terms[TERMS], sum = {0};
    tw_tensor *value = NULL;
    needs_card();
    TW_DEVICE(g, "/gpu:0") {
        for (int i = 0; i < TERMS; i++)
            terms[i] = tw_scalar(g, (float)(i % 2 ? i + 1 : -i - 1));
        sum = tw_add_n(g, terms, TERMS);
    }
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = "fold"}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &sum, 1, &value, &error));
    assert_true(plans_have(session, "AddN"));
    assert_true(tw_tensor_value(value, 0) == TERMS / 2);
    tw_tensor_release(value);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* From -7 to 8 without 0, and the extremes: what wraps and what is rounded down. */
static tw_tensor *whole(tw_dtype dtype, tw_shape shape, unsigned seed)
{
    tw_tensor *t = filled(dtype, shape, 0);
    for (int64_t i = 0; i < t->elements; i++) {
        seed = seed * 1664525 + 1013904223;
        int64_t x = (int64_t)(seed >> 28) - 7;
        x = x ? x : 8;
        if (seed >> 20 << 24 == 0)
            x = dtype == TW_INT64 ? INT64_MIN : INT32_MIN;
        if (dtype == TW_INT64)
            ((int64_t *)t->data)[i] = x;
        else
            ((int32_t *)t->data)[i] = (int32_t)x;
    }
    return t;
}

static void integers_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const char *const unary[] = {"Neg", "Abs", "Sign", "Square"};
    static const char *const binary[] = {"Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "TruncateDiv", "FloorDiv",
                                         "FloorMod", "Mod", "Maximum", "Minimum", "SquaredDifference"};
    static const tw_dtype types[] = {TW_INT32, TW_INT64};
    needs_card();
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
            compare((twt_op){.op = unary[i], .num_inputs = 1, .inputs = {whole(types[t], TW_SHAPE(3, 5, 7), 1)}});
        for (size_t i = 0; i < sizeof binary / sizeof *binary; i++) {
            compare((twt_op){.op = binary[i], .num_inputs = 2,
                             .inputs = {whole(types[t], TW_SHAPE(513), 1), whole(types[t], TW_SHAPE(513), 2)}});
            compare((twt_op){.op = binary[i], .num_inputs = 2,
                             .inputs = {whole(types[t], TW_SHAPE(3, 1, 7), 1), whole(types[t], TW_SHAPE(5, 1), 2)}});
            compare((twt_op){.op = binary[i], .num_inputs = 2,
                             .inputs = {whole(types[t], TW_SHAPE(0, 3), 1), whole(types[t], TW_SCALAR, 2)}});
        }
    }
}

/* Numbers with some that are none. */
static tw_tensor *strange(tw_dtype dtype, tw_shape shape)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0f};
    tw_tensor *t = filled(dtype, shape, 7);
    for (int64_t i = 0; i < t->elements; i += 3) {
        float x = odd[i / 3 % 5];
        if (dtype == TW_FLOAT32)
            ((float *)t->data)[i] = x;
        else
            ((uint16_t *)t->data)[i] = dtype == TW_FLOAT16 ? tw_float_to_half(x) : tw_float_to_bfloat16(x);
    }
    return t;
}

static tw_tensor *bools(tw_shape shape, unsigned seed)
{
    tw_tensor *t = filled(TW_BOOL, shape, seed);
    for (int64_t i = 0; i < t->elements; i++)
        ((uint8_t *)t->data)[i] &= 1;
    return t;
}

static void questions_on_the_card_are_answered_as_on_the_cpu(void **state)
{
    (void)state;
    static const char *const comparisons[] = {"Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"};
    static const char *const tests[] = {"IsNan", "IsInf", "IsFinite"};
    static const char *const logic[] = {"LogicalAnd", "LogicalOr", "All", "Any"};
    static const tw_dtype types[] = {TW_FLOAT32, TW_BFLOAT16, TW_FLOAT16, TW_INT32, TW_INT64, TW_UINT8, TW_BOOL};
    needs_card();
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++)
        for (size_t t = 0; t < sizeof types / sizeof *types - (i > 1 ? 2 : 0); t++) {
            bool is_bool = types[t] == TW_BOOL;
            tw_shape shapes[][2] = {{TW_SHAPE(5, 7), TW_SHAPE(5, 7)}, {TW_SHAPE(3, 1, 7), TW_SHAPE(5, 1)},
                                    {TW_SHAPE(0, 7), TW_SCALAR}};
            for (int s = 0; s < 3; s++)
                compare((twt_op){.op = comparisons[i], .num_inputs = 2,
                                 .inputs = {is_bool ? bools(shapes[s][0], 1) : filled(types[t], shapes[s][0], 1),
                                            is_bool ? bools(shapes[s][1], 2) : filled(types[t], shapes[s][1], 2)}});
        }
    for (int t = 0; t < FLOATS; t++) {
        for (int i = 0; i < 3; i++)
            compare((twt_op){.op = tests[i], .num_inputs = 1, .inputs = {strange(floats[t], TW_SHAPE(7, 5))}});
        compare((twt_op){.op = "Less", .num_inputs = 2, .inputs = {strange(floats[t], TW_SHAPE(7, 5)),
                                                                    filled(floats[t], TW_SHAPE(7, 5), 1)}});
    }
    for (int i = 0; i < 4; i++)
        for (int rows = 0; rows < 300; rows += 71) {
            tw_tensor *second = i < 2 ? bools(TW_SHAPE(rows, 3), 2) : ints(1, (int[]){rows % 2});
            compare((twt_op){.op = logic[i], .num_inputs = 2, .inputs = {bools(TW_SHAPE(rows, 3), 1), second}});
        }
    compare((twt_op){.op = "LogicalNot", .num_inputs = 1, .inputs = {bools(TW_SHAPE(3, 5), 1)}});
}

static void choices_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const tw_dtype types[] = {TW_FLOAT32, TW_BFLOAT16, TW_INT64, TW_UINT8};
    static const tw_dtype clipped[] = {TW_FLOAT32, TW_BFLOAT16, TW_FLOAT16, TW_INT32, TW_INT64};
    static const char *const places[] = {"ArgMax", "ArgMin"};
    needs_card();
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        tw_dtype T = types[t];
        for (int whole = 0; whole < 2; whole++)
            compare((twt_op){.op = whole ? "Select" : "SelectV2", .num_inputs = 3,
                             .inputs = {bools(TW_SHAPE(5, 7), 1), filled(T, TW_SHAPE(5, 7), 2),
                                        filled(T, TW_SHAPE(5, 7), 3)}});
        compare((twt_op){.op = "Select", .num_inputs = 3, .inputs = {bools(TW_SHAPE(5), 1), filled(T, TW_SHAPE(5, 7), 2),
                                                                      filled(T, TW_SHAPE(5, 7), 3)}});
        compare((twt_op){.op = "SelectV2", .num_inputs = 3,
                         .inputs = {bools(TW_SHAPE(5, 1), 1), filled(T, TW_SHAPE(3, 1, 7), 2), filled(T, TW_SCALAR, 3)}});
        compare((twt_op){.op = "SelectV2", .num_inputs = 3, .inputs = {bools(TW_SCALAR, 1), filled(T, TW_SHAPE(0, 3), 2),
                                                                        filled(T, TW_SHAPE(3), 3)}});
    }
    for (size_t t = 0; t < sizeof clipped / sizeof *clipped; t++)
        for (int all = 0; all < 2; all++)
            compare((twt_op){.op = "ClipByValue", .num_inputs = 3,
                             .inputs = {filled(clipped[t], TW_SHAPE(11, 3), 1),
                                        filled(clipped[t], all ? TW_SHAPE(11, 3) : TW_SCALAR, 2),
                                        filled(clipped[t], all ? TW_SHAPE(11, 3) : TW_SCALAR, 3)}});
    for (int i = 0; i < 2; i++)
        for (int t = 0; t < FLOATS; t++)
            for (int axis = 0; axis < 2; axis++) {
                tw_attr to = tw_attr_type("output_type", axis ? TW_INT32 : TW_INT64);
                compare((twt_op){.op = places[i], .num_inputs = 2, .num_attrs = 1, .attrs = {to},
                                 .inputs = {filled(floats[t], TW_SHAPE(37, 71), 1), filled_int(axis)}});
                compare((twt_op){.op = places[i], .num_inputs = 2, .num_attrs = 1, .attrs = {to},
                                 .inputs = {strange(floats[t], TW_SHAPE(5, 7)), filled_int(axis)}});
            }
    compare((twt_op){.op = "ArgMax", .num_inputs = 2, .inputs = {filled(TW_FLOAT32, TW_SHAPE(0, 3), 1), filled_int(1)}});
    for (int k = 1; k < 4; k += 2) {
        compare((twt_op){.op = "InTopKV2", .num_inputs = 3,
                         .inputs = {filled(TW_FLOAT32, TW_SHAPE(19, 4), 1), filled(TW_INT32, TW_SHAPE(19), 2),
                                    filled_int(k)}});
        compare((twt_op){.op = "InTopKV2", .num_inputs = 3,
                         .inputs = {strange(TW_FLOAT32, TW_SHAPE(19, 2)), filled(TW_INT32, TW_SHAPE(19), 2),
                                    filled_int(k)}});
        compare((twt_op){.op = "InTopKV2", .num_inputs = 3,
                         .inputs = {filled(TW_FLOAT32, TW_SHAPE(0, 4), 1), filled(TW_INT32, TW_SHAPE(0), 2),
                                    filled_int(k)}});
    }
}

/* So many elements that several blocks share an output, in columns and in rows that vectors fit into and that they do
 * not. */
static void check_parts(void)
{
    static const int64_t columns[] = {2, 7, 10, 33, 64, 72, 200};
    for (int t = 0; t < FLOATS; t++) {
        for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
            compare((twt_op){.op = "BiasAddGrad", .num_inputs = 1,
                             .inputs = {filled(floats[t], TW_SHAPE(9, 101, columns[i]), 1)}});
        compare((twt_op){.op = "BiasAddGrad", .num_inputs = 1, .inputs = {filled(floats[t], TW_SHAPE(0, 24), 1)}});
        compare((twt_op){.op = "Max", .num_inputs = 2, .inputs = {filled(floats[t], TW_SHAPE(1003, 5), 1),
                                                                   ints(1, (int[]){0})}});
        compare((twt_op){.op = "Mean", .num_inputs = 2, .inputs = {filled(floats[t], TW_SHAPE(2, 40000), 1),
                                                                    ints(1, (int[]){1})}});
        compare((twt_op){.op = "Min", .num_inputs = 2, .inputs = {filled(floats[t], TW_SHAPE(40001), 1),
                                                                   ints(1, (int[]){0})}});
        compare((twt_op){.op = "Sum", .num_inputs = 2, .inputs = {filled(floats[t], TW_SHAPE(90, 3, 100), 1),
                                                                   ints(2, (int[]){0, 2})}});
        compare((twt_op){.op = "L2Loss", .num_inputs = 1, .inputs = {filled(floats[t], TW_SHAPE(0), 1)}});
    }
    for (int size = 50000; size < 50002; size++)
        compare((twt_op){.op = "L2Loss", .num_inputs = 1, .inputs = {filled(TW_FLOAT32, TW_SHAPE(size), 1)}});
}

/* Both results, for few rows and many, columns that vectors fit into and do not, and one of them alone. */
static void check_relu_gradients(void)
{
    static const int64_t shapes[][2] = {{128, 24}, {128, 10}, {5, 33}, {700, 8}, {2100, 1}, {0, 16}, {1, 200}};
    for (int t = 0; t < FLOATS; t++) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            tw_shape shape = TW_SHAPE(shapes[i][0], shapes[i][1]);
            compare((twt_op){.op = "_ReluGradBias", .num_inputs = 2,
                             .inputs = {filled(floats[t], shape, 1), filled(floats[t], shape, 2)}});
        }
        compare((twt_op){.op = "_ReluGradBias", .num_inputs = 2, .inputs = {filled(floats[t], TW_SHAPE(2, 5, 3, 16), 1),
                                                                            filled(floats[t], TW_SHAPE(2, 5, 3, 16), 2)}});
    }
}

static void reductions_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const char *const ops[] = {"Sum", "Mean", "Max", "Min", "Prod"};
    needs_card();
    may_be_askew = true;
    for (int t = 0; t < FLOATS; t++)
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            compare((twt_op){.op = ops[i], .num_inputs = 2,
                             .inputs = {filled(floats[t], TW_SHAPE(3, 5, 7), 1), ints(1, (int[]){1})}});
            compare((twt_op){.op = ops[i], .num_inputs = 2,
                             .inputs = {filled(floats[t], TW_SHAPE(3, 5, 7), 1), ints(2, (int[]){0, 2})}});
            compare((twt_op){.op = ops[i], .num_inputs = 2,
                             .inputs = {filled(floats[t], TW_SHAPE(71, 33), 1), ints(1, (int[]){0})}});
        }
    for (int t = 0; t < FLOATS; t++) {
        compare((twt_op){.op = "L2Loss", .num_inputs = 1, .inputs = {filled(floats[t], TW_SHAPE(37, 3), 1)}});
        compare((twt_op){.op = "BiasAddGrad", .num_inputs = 1, .inputs = {filled(floats[t], TW_SHAPE(2, 5, 3, 33), 1)}});
        compare((twt_op){.op = "BiasAddV1", .num_inputs = 2, .inputs = {filled(floats[t], TW_SHAPE(5, 33), 1),
                                                                         filled(floats[t], TW_SHAPE(33), 2)}});
        compare((twt_op){.op = "BiasAdd", .num_inputs = 2, .inputs = {filled(floats[t], TW_SHAPE(2, 5, 3, 33), 1),
                                                                       filled(floats[t], TW_SHAPE(33), 2)}});
        compare((twt_op){.op = "BiasAdd", .num_inputs = 2, .inputs = {filled(floats[t], TW_SHAPE(2, 5, 3, 24), 1),
                                                                       filled(floats[t], TW_SHAPE(24), 2)}});
        compare((twt_op){.op = "BiasAdd", .num_inputs = 2, .inputs = {filled(floats[t], TW_SHAPE(2, 7, 3, 5), 1),
                                                                       filled(floats[t], TW_SHAPE(7), 2)},
                         .num_attrs = 1, .attrs = {tw_attr_string("data_format", "NCHW")}});
        compare((twt_op){.op = "BiasAdd", .num_inputs = 2, .inputs = {filled(floats[t], TW_SHAPE(0, 8), 1),
                                                                       filled(floats[t], TW_SHAPE(8), 2)}});
    }
    check_parts();
    check_relu_gradients();
    may_be_askew = false;
}

/* Channels in whole quads and not; more than a block has threads. */
static void compare_lrns(tw_dtype T, int64_t radius, float beta)
{
    static const int64_t channels[] = {13, 20, 1100};
    tw_attr lrn[] = {tw_attr_int("depth_radius", radius), tw_attr_float("alpha", 0.01f), tw_attr_float("beta", beta)};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        tw_shape image = TW_SHAPE(2, 3, 5, channels[i]);
        compare((twt_op){.op = "LRN", .num_inputs = 1, .inputs = {filled(T, image, 1)}, .num_attrs = 3,
                         .attrs = {lrn[0], lrn[1], lrn[2]}});
        compare((twt_op){.op = "LRNGrad", .num_inputs = 3,
                         .inputs = {filled(T, image, 1), filled(T, image, 2), filled(T, image, 3)}, .num_attrs = 3,
                         .attrs = {lrn[0], lrn[1], lrn[2]}});
    }
}

/* Windows over images of odd sides, with channels in whole quads and not. */
static void compare_max_pools(tw_dtype T, const int64_t size[4], const int64_t stride[4], const char *padding)
{
    static const int64_t channels[] = {5, 8};
    for (int i = 0; i < 2; i++) {
        tw_shape image = TW_SHAPE(2, 7, 8, channels[i]), pooled = image;
        bool same = strcmp(padding, "SAME") == 0;
        for (int side = 1; side < 3; side++)
            pooled.dims[side] = (image.dims[side] - (same ? 1 : size[side])) / stride[side] + 1;
        tw_attr pool[] = {tw_attr_ints("ksize", size, 4), tw_attr_ints("strides", stride, 4),
                          tw_attr_string("padding", padding)};
        compare((twt_op){.op = "MaxPool", .num_inputs = 1, .inputs = {filled(T, image, 1)}, .num_attrs = 3,
                         .attrs = {pool[0], pool[1], pool[2]}});
        compare((twt_op){.op = "MaxPoolGrad", .num_inputs = 3,
                         .inputs = {filled(T, image, 1), filled(T, pooled, 2), filled(T, pooled, 3)}, .num_attrs = 3,
                         .attrs = {pool[0], pool[1], pool[2]}});
    }
}

static void networks_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const int64_t ones[] = {1, 1, 1, 1}, twos[] = {1, 2, 2, 1}, threes[] = {1, 3, 3, 1};
    static const char *const paddings[] = {"SAME", "VALID"};
    needs_card();
    for (int t = 0; t < FLOATS; t++) {
        tw_dtype T = floats[t];
        for (int i = 0; i < 2; i++) {
            compare_max_pools(T, threes, twos, paddings[i]);
            compare_max_pools(T, threes, ones, paddings[i]);
            compare_max_pools(T, twos, threes, paddings[i]);
            for (int stride = 0; stride < 2; stride++) {
                tw_attr conv[] = {tw_attr_ints("strides", stride ? twos : ones, 4),
                                  tw_attr_string("padding", paddings[i])};
                int64_t size = stride ? (i ? 3 : 4) : (i ? 5 : 7);  /* of 7 cells */
                int64_t width = stride ? (i ? 3 : 4) : (i ? 6 : 8); /* of 8 cells */
                compare((twt_op){.op = "Conv2D", .num_inputs = 2,
                                 .inputs = {filled(T, TW_SHAPE(2, 7, 8, 8), 1), filled(T, TW_SHAPE(3, 3, 8, 16), 2)},
                                 .num_attrs = 2, .attrs = {conv[0], conv[1]}});
                compare((twt_op){.op = "Conv2DBackpropInput", .num_inputs = 3,
                                 .inputs = {ints(4, (int[]){2, 7, 8, 8}), filled(T, TW_SHAPE(3, 3, 8, 16), 2),
                                            filled(T, TW_SHAPE(2, size, width, 16), 3)},
                                 .num_attrs = 2, .attrs = {conv[0], conv[1]}});
                compare((twt_op){.op = "Conv2DBackpropFilter", .num_inputs = 3,
                                 .inputs = {filled(T, TW_SHAPE(2, 7, 8, 8), 1), ints(4, (int[]){3, 3, 8, 16}),
                                            filled(T, TW_SHAPE(2, size, width, 16), 3)},
                                 .num_attrs = 2, .attrs = {conv[0], conv[1]}});
            }
        }
        compare_lrns(T, 4, 0.75f);
        compare_lrns(T, 3, 0.5f);
        compare_lrns(T, 40, 1);
        compare_lrns(T, 0, 0.3f);
        for (int transposed = 0; transposed < 4; transposed++)
            compare((twt_op){.op = "MatMul", .num_inputs = 2,
                             .inputs = {filled(T, transposed & 1 ? TW_SHAPE(24, 8) : TW_SHAPE(8, 24), 1),
                                        filled(T, transposed & 2 ? TW_SHAPE(40, 24) : TW_SHAPE(24, 40), 2)},
                             .num_attrs = 2,
                             .attrs = {tw_attr_bool("transpose_a", transposed & 1),
                                       tw_attr_bool("transpose_b", transposed & 2)}});
        for (int relu = 0; relu < 2; relu++) {
            compare((twt_op){.op = "_FusedMatMul", .num_inputs = 3,
                             .inputs = {filled(T, TW_SHAPE(8, 24), 1), filled(T, TW_SHAPE(24, 40), 2),
                                        filled(T, TW_SHAPE(40), 3)},
                             .num_attrs = 2, .attrs = {tw_attr_bool("relu", relu), tw_attr_type("U", T)}});
            compare((twt_op){.op = "_FusedConv2D", .num_inputs = 3,
                             .inputs = {filled(T, TW_SHAPE(2, 7, 8, 8), 1), filled(T, TW_SHAPE(3, 3, 8, 16), 2),
                                        filled(T, TW_SHAPE(16), 3)},
                             .num_attrs = 3,
                             .attrs = {tw_attr_bool("relu", relu), tw_attr_ints("strides", relu ? twos : ones, 4),
                                       tw_attr_string("padding", "SAME")}});
        }
        compare((twt_op){.op = "Softmax", .num_inputs = 1, .inputs = {filled(T, TW_SHAPE(5, 37), 1)}});
        compare((twt_op){.op = "LogSoftmax", .num_inputs = 1, .inputs = {filled(T, TW_SHAPE(5, 37), 1)}});
        compare((twt_op){.op = "SparseSoftmaxCrossEntropyWithLogits", .num_inputs = 2,
                         .inputs = {filled(T, TW_SHAPE(11, 5), 1), filled(TW_INT32, TW_SHAPE(11), 2)}});
        compare((twt_op){.op = "SoftmaxCrossEntropyWithLogits",
                         .num_inputs = 2,
                         .inputs = {filled(T, TW_SHAPE(11, 37), 1), filled(T, TW_SHAPE(11, 37), 2)}});
    }
    compare((twt_op){.op = "MatMul", .num_inputs = 2, .inputs = {filled(TW_FLOAT32, TW_SHAPE(3, 7), 1),
                                                                  filled(TW_FLOAT32, TW_SHAPE(7, 5), 2)}});
}

/* Strides and padding of a convolution, and what comes after it. */
static twt_op convolution(const char *op, const char *padding, bool relu)
{
    static const int64_t ones[] = {1, 1, 1, 1};
    return (twt_op){.op = op, .num_inputs = 3, .num_attrs = relu ? 3 : 2,
                    .attrs = {tw_attr_ints("strides", ones, 4), tw_attr_string("padding", padding),
                              tw_attr_bool("relu", relu)}};
}

/* The gradient of the filter, images being three. */
static void compare_filter_gradients(tw_dtype T, tw_shape image, int size, tw_shape output, const char *padding)
{
    twt_op gradient = convolution("Conv2DBackpropFilter", padding, false);
    gradient.inputs[0] = filled(T, image, 1);
    gradient.inputs[1] = ints(4, (int[]){size, size, (int)image.dims[3], (int)output.dims[3]});
    gradient.inputs[2] = filled(T, output, 3);
    compare(gradient);
}

/* A convolution with a bias and its gradients, by the kernel of ours that TOWER_CONVOLUTIONS names, if it takes
 * them. */
static void compare_convolutions(tw_dtype T, int channels, int filters, int size, int height, int width, bool same)
{
    const char *padding = same ? "SAME" : "VALID";
    int rows = same ? height : height - size + 1, columns = same ? width : width - size + 1;
    tw_shape image = TW_SHAPE(3, height, width, channels), filter = TW_SHAPE(size, size, channels, filters),
             output = TW_SHAPE(3, rows, columns, filters);
    for (int relu = 0; relu < 2; relu++) {
        twt_op forward = convolution("_FusedConv2D", padding, relu);
        forward.inputs[0] = filled(T, image, 1);
        forward.inputs[1] = filled(T, filter, 2);
        forward.inputs[2] = filled(T, TW_SHAPE(filters), 3);
        compare(forward);
    }
    twt_op data = convolution("Conv2DBackpropInput", padding, false);
    data.inputs[0] = ints(4, (int[]){3, height, width, channels});
    data.inputs[1] = filled(T, filter, 2);
    data.inputs[2] = filled(T, output, 3);
    compare(data);
    compare_filter_gradients(T, image, size, output, padding);
}

static int ours; /* how often the log has said that a kernel of ours was taken */

static void count_ours(void *user, int level, const char *message)
{
    (void)user;
    (void)level;
    ours += strstr(message, "tower's algorithm") != NULL;
}

/* A device that takes kernels of ours for floats, too, and says so; then which variant there is. */
static tw_devices *all_devices;
static twi_device *whole_card;

static void take_ours(void)
{
    tw_error error;
    tw_device_options options = {.tf32 = true};
    all_devices = devices;
    whole_card = card;
    assert_ok(tw_devices_create(&options, &devices, &error));
    card = devices->items[tw_devices_count(devices, "CPU")];
    tw_set_log(count_ours, NULL, TW_LOG_DETAIL);
}

static void take_variant(int variant)
{
    char name[16];
    snprintf(name, sizeof name, "tower:%d", variant);
    setenv("TOWER_CONVOLUTIONS", name, 1);
    ours = 0;
}

static void take_all_again(void)
{
    unsetenv("TOWER_CONVOLUTIONS");
    tw_set_log(NULL, NULL, TW_LOG_WARNING);
    tw_devices_destroy(devices);
    devices = all_devices;
    card = whole_card;
}

/* Each variant, in all types, at sizes that leave tiles, warps and fragments over. */
static void convolutions_of_ours_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const struct {
        int channels, filters, size, height, width;
        bool same;
    } cases[] = {{3, 32, 5, 6, 7, true},    {1, 16, 3, 7, 8, false},  {16, 16, 3, 16, 10, true}, {32, 64, 3, 5, 4, true},
                 {64, 16, 1, 3, 4, false}, {16, 32, 2, 4, 5, true},  {4, 64, 3, 5, 5, false},
                 {16, 32, 1, 100, 128, true}}; /* the last one has more tiles than blocks */
    needs_card();
    take_ours();
    for (int variant = 0; variant < 6; variant++) {
        take_variant(variant);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0] - (variant > 0); i++)
            compare_convolutions(floats[((size_t)variant + i) % FLOATS], cases[i].channels, cases[i].filters, cases[i].size,
                                 cases[i].height, cases[i].width, cases[i].same);
        assert_true(ours >= 12);
    }
    take_all_again();
}

/* Blocks that the last of a few add up, and the last of those: three times 16 but for nine, and one. */
static void gradients_of_filters_of_ours_are_those_of_the_cpu(void **state)
{
    (void)state;
    needs_card();
    take_ours();
    take_variant(0);
    for (size_t t = 0; t < FLOATS; t++) {
        compare_filter_gradients(floats[t], TW_SHAPE(3, 100, 32, 16), 3, TW_SHAPE(3, 100, 32, 16), "SAME");
        compare_filter_gradients(floats[t], TW_SHAPE(3, 4, 4, 3), 3, TW_SHAPE(3, 4, 4, 16), "SAME");
    }
    assert_true(ours >= 2 * FLOATS);
    take_all_again();
}

/* What a variance may be. */
static tw_tensor *positive(tw_shape shape, unsigned seed)
{
    tw_tensor *t = filled(TW_FLOAT32, shape, seed);
    for (int64_t i = 0; i < t->elements; i++)
        ((float *)t->data)[i] = 1.5f + ((float *)t->data)[i];
    return t;
}

static void compare_batch_norms(tw_dtype T, tw_shape shape, const char *const names[2], bool training)
{
    tw_shape channels = TW_SHAPE(shape.dims[3]), moments = training ? TW_SHAPE(0) : channels;
    tw_attr attrs[] = {tw_attr_float("epsilon", 0.001f), tw_attr_bool("is_training", training)};
    bool third = strstr(names[0], "V3");
    compare((twt_op){.op = names[0], .num_inputs = 5, .num_attrs = 2, .attrs = {attrs[0], attrs[1]},
                     .inputs = {filled(T, shape, 1), positive(channels, 2), filled(TW_FLOAT32, channels, 3),
                                filled(TW_FLOAT32, moments, 4), positive(moments, 5)}});
    compare((twt_op){.op = names[1], .num_inputs = third ? 6 : 5, .num_attrs = 2, .attrs = {attrs[0], attrs[1]},
                     .inputs = {filled(T, shape, 1), filled(T, shape, 2), positive(channels, 3),
                                filled(TW_FLOAT32, channels, 4), positive(channels, 5),
                                third ? filled(TW_FLOAT32, TW_SHAPE(0), 6) : NULL}});
}

/* With a side or not, one gradient or the sum of two. */
static void compare_batch_norm_relus(tw_dtype T, tw_shape shape, bool training)
{
    tw_shape channels = TW_SHAPE(shape.dims[3]), moments = training ? TW_SHAPE(0) : channels;
    for (int kind = 0; kind < 4; kind++) {
        int side = kind % 2, gradients = 1 + kind / 2, n = 0;
        tw_attr attrs[] = {tw_attr_int("N", side), tw_attr_float("epsilon", 0.001f), tw_attr_bool("is_training", training),
                           tw_attr_int("M", gradients)};
        if (gradients == 1)
            compare((twt_op){.op = "_BatchNormRelu", .num_inputs = 5 + side, .num_attrs = 3,
                             .attrs = {attrs[0], attrs[1], attrs[2]},
                             .inputs = {filled(T, shape, 1), positive(channels, 2), filled(TW_FLOAT32, channels, 3),
                                        filled(TW_FLOAT32, moments, 4), positive(moments, 5),
                                        side ? filled(T, shape, 6) : NULL}});
        twt_op gradient = {.op = "_BatchNormReluGrad", .num_attrs = 4, .attrs = {attrs[0], attrs[1], attrs[2], attrs[3]}};
        for (; n <= gradients; n++)
            gradient.inputs[n] = filled(T, shape, (unsigned)n);
        gradient.inputs[n++] = positive(channels, 4);
        gradient.inputs[n++] = filled(TW_FLOAT32, channels, 5);
        gradient.inputs[n++] = positive(channels, 6);
        gradient.inputs[n++] = filled(TW_FLOAT32, channels, 7);
        if (side)
            gradient.inputs[n++] = filled(T, shape, 8);
        gradient.num_inputs = n;
        compare(gradient);
    }
}

static void batch_norms_and_means_of_windows_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const char *const versions[][2] = {{"FusedBatchNormV3", "FusedBatchNormGradV3"},
                                              {"FusedBatchNormV2", "FusedBatchNormGradV2"},
                                              {"FusedBatchNorm", "FusedBatchNormGrad"}};
    static const int64_t twos[] = {1, 2, 2, 1}, threes[] = {1, 3, 3, 1};
    needs_card();
    for (int training = UNDER_THREAD_SANITIZER; training < 2; training++) /* both add up in the same blocks */
        for (int t = 0; t < FLOATS; t++) {
            compare_batch_norms(floats[t], TW_SHAPE(3, 17, 19, 5), versions[0], training); /* rows in several parts */
            compare_batch_norms(floats[t], TW_SHAPE(5, 7, 7, 267), versions[0], training); /* and channels in many */
            compare_batch_norms(floats[t], TW_SHAPE(1, 1, 1, 3), versions[0], training);
            compare_batch_norms(floats[t], TW_SHAPE(2, 23, 29, 16), versions[0], training); /* whole quads */
            compare_batch_norms(floats[t], TW_SHAPE(1, 3, 5, 132), versions[0], training);
            compare_batch_norm_relus(floats[t], TW_SHAPE(2, 23, 29, 16), training);
            compare_batch_norms(floats[t], TW_SHAPE(0, 3, 5, 7), versions[0], training);
            compare_batch_norms(floats[t], TW_SHAPE(2, 3, 5, 33), versions[1], training);
            compare_batch_norm_relus(floats[t], TW_SHAPE(3, 17, 19, 5), training);
            compare_batch_norm_relus(floats[t], TW_SHAPE(0, 3, 5, 7), training);
            if (floats[t] == TW_FLOAT32)
                compare_batch_norms(floats[t], TW_SHAPE(2, 3, 5, 33), versions[2], training);
        }
    if (!UNDER_THREAD_SANITIZER) /* threads come back for more rows, each by itself */
        compare_batch_norms(TW_FLOAT32, TW_SHAPE(3, 107, 103, 29), versions[0], true);
    for (int t = 0; t < FLOATS; t++)
        for (int valid = 0; valid < 2; valid++)
            for (int batch = 0; batch < 3; batch += 2) {
                tw_attr pool[] = {tw_attr_ints("ksize", threes, 4), tw_attr_ints("strides", twos, 4),
                                  tw_attr_string("padding", valid ? "VALID" : "SAME")};
                int64_t side = valid ? 3 : 4; /* of 7 x 8 pooled */
                compare((twt_op){.op = "AvgPool", .num_inputs = 1, .num_attrs = 3, .attrs = {pool[0], pool[1], pool[2]},
                                 .inputs = {filled(floats[t], TW_SHAPE(batch, 7, 8, 5), 1)}});
                compare((twt_op){.op = "AvgPoolGrad", .num_inputs = 2, .num_attrs = 3,
                                 .attrs = {pool[0], pool[1], pool[2]},
                                 .inputs = {ints(4, (int[]){batch, 7, 8, 5}),
                                            filled(floats[t], TW_SHAPE(batch, side, side, 5), 1)}});
            }
}

static void tails_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const int64_t twos[] = {1, 2, 2, 1}, threes[] = {1, 3, 3, 1};
    needs_card();
    for (int t = 0; t < FLOATS; t++)
        for (int kind = 0; kind < 9; kind++) {
            /* whole quads of channels and not; a block has many pixels, or a few, or one; bands of rows, or of one */
            static const int channels_of[] = {13, 13, 13, 13, 13, 300, 64, 64, 516};
            int batch = kind == 4 ? 0 : kind % 6 == 0 ? 38 : 2, channels = channels_of[kind];
            tw_dtype T = floats[t];
            tw_attr a[] = {tw_attr_ints("ksize", threes, 4),   tw_attr_ints("strides", twos, 4),
                           tw_attr_string("padding", kind % 2 ? "SAME" : "VALID"),
                           tw_attr_int("depth_radius", kind == 2 ? 2 : 4), tw_attr_float("alpha", 0.25f),
                           tw_attr_float("beta", 0.75f),       tw_attr_bool("relu", kind & 2),
                           tw_attr_int("height", 7),           tw_attr_int("width", 8)};
            tw_shape image = TW_SHAPE(batch, 7, 8, channels), pooled = TW_SHAPE(batch, 3, 3, channels);
            compare((twt_op){.op = "_MaxPoolLRN", .num_inputs = 1, .inputs = {filled(T, image, 1)}, .num_attrs = 6,
                             .attrs = {a[0], a[1], a[2], a[3], a[4], a[5]}});
            compare((twt_op){.op = "_LRNMaxPool", .num_inputs = 1, .inputs = {filled(T, image, 1)}, .num_attrs = 6,
                             .attrs = {a[0], a[1], a[2], a[3], a[4], a[5]}});
            if (kind % 2) /* some of the cells below would be padding */
                continue;
            compare((twt_op){.op = "_MaxPoolLRNGrad", .num_inputs = 3, .num_attrs = 9,
                             .inputs = {filled(T, pooled, 1), filled(T, pooled, 2), filled(TW_UINT8, pooled, 3)},
                             .attrs = {a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]}});
            compare((twt_op){.op = "_LRNMaxPoolGrad", .num_inputs = 3, .num_attrs = 7,
                             .inputs = {filled(T, pooled, 1), filled(T, image, 2), filled(TW_UINT8, pooled, 3)},
                             .attrs = {a[0], a[1], a[2], a[3], a[4], a[5], a[6]}});
        }
}

static void rows_that_numbers_name_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const tw_dtype types[] = {TW_FLOAT32, TW_FLOAT16, TW_INT32, TW_INT64, TW_UINT8};
    needs_card();
    may_be_askew = true;
    for (int t = 0; t < 5; t++)
        for (int wide = 0; wide < 2; wide++) {
            tw_dtype T = types[t], I = wide ? TW_INT64 : TW_INT32;
            const tw_attr of[] = {tw_attr_type("Tindices", I), tw_attr_type("Tparams", T),
                                  tw_attr_int("batch_dims", 0)};
            compare((twt_op){.op = "Gather",
                             .num_inputs = 2,
                             .num_attrs = 2,
                             .attrs = {of[0], of[1]},
                             .inputs = {filled(T, TW_SHAPE(4, 8), 1), filled(I, TW_SHAPE(3, 5), 2)}});
            compare(
                (twt_op){.op = "GatherV2",
                         .num_inputs = 3,
                         .num_attrs = 2,
                         .attrs = {of[0], of[1]},
                         .inputs = {filled(T, TW_SHAPE(2, 3, 5, 3), 1), filled(I, TW_SHAPE(7), 2), filled_int(-2)}});
            compare((twt_op){.op = "GatherV2",
                             .num_inputs = 3,
                             .num_attrs = 3,
                             .attrs = {of[0], of[1], tw_attr_int("batch_dims", 1)},
                             .inputs = {filled(T, TW_SHAPE(2, 3, 4), 1), filled(I, TW_SHAPE(2, 6), 2), filled_int(2)}});
            for (int axis = -1; axis < 2; axis++)
                compare((twt_op){.op = "OneHot",
                                 .num_inputs = 4,
                                 .num_attrs = 3,
                                 .attrs = {tw_attr_int("axis", axis), tw_attr_type("T", T), tw_attr_type("TI", I)},
                                 .inputs = {filled(I, TW_SHAPE(3, 5), 1), filled_int(3), filled(T, TW_SCALAR, 2),
                                            filled(T, TW_SCALAR, 5)}});
            compare((twt_op){
                .op = "MatrixBandPart",
                .num_inputs = 3,
                .inputs = {filled(T, TW_SHAPE(2, 5, 7), 1), filled(I, TW_SCALAR, 1), filled(I, TW_SCALAR, 9)}});
            if (T != TW_UINT8) /* a card adds up no bytes */
                for (int row = 1; row < 400; row += 297)
                    compare((twt_op){
                        .op = "UnsortedSegmentSum",
                        .num_inputs = 3,
                        .num_attrs = 1,
                        .attrs = {of[0]},
                        .inputs = {filled(T, TW_SHAPE(5, 9, row), 1), filled(I, TW_SHAPE(5, 9), 2), filled_int(6)}});
        }
    may_be_askew = false;
    compare(
        (twt_op){.op = "GatherV2",
                 .num_inputs = 3,
                 .inputs = {filled(TW_FLOAT32, TW_SHAPE(4, 0), 1), filled(TW_INT32, TW_SHAPE(3), 2), filled_int(0)}});
}

static void products_of_many_matrices_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    needs_card();
    for (int t = 0; t < FLOATS; t++)
        for (int turned = 0; turned < 4; turned++) {
            const tw_attr adj[] = {tw_attr_bool("adj_x", turned & 1), tw_attr_bool("adj_y", turned & 2)};
            tw_shape a = turned & 1 ? TW_SHAPE(2, 3, 8, 16) : TW_SHAPE(2, 3, 16, 8);
            tw_shape b = turned & 2 ? TW_SHAPE(2, 3, 24, 8) : TW_SHAPE(2, 3, 8, 24), one = b;
            one.dims[0] = one.dims[1] = 1;
            compare((twt_op){.op = "BatchMatMul",
                             .num_inputs = 2,
                             .num_attrs = 2,
                             .attrs = {adj[0], adj[1]},
                             .inputs = {filled(floats[t], a, 1), filled(floats[t], b, 2)}});
            compare((twt_op){.op = "BatchMatMulV2",
                             .num_inputs = 2,
                             .num_attrs = 2,
                             .attrs = {adj[0], adj[1]},
                             .inputs = {filled(floats[t], a, 1), filled(floats[t], one, 2)}});
            compare((twt_op){.op = "BatchMatMulV3",
                             .num_inputs = 2,
                             .num_attrs = 3,
                             .attrs = {adj[0], adj[1], tw_attr_type("Tout", floats[t])},
                             .inputs = {filled(floats[t], a, 1), filled(floats[t], b, 2)}});
        }
}

static void arrays_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const tw_dtype types[] = {TW_FLOAT32, TW_BFLOAT16, TW_INT64, TW_UINT8};
    needs_card();
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        tw_dtype T = types[t];
        compare((twt_op){.op = "Transpose", .num_inputs = 2,
                         .inputs = {filled(T, TW_SHAPE(3, 5, 7), 1), ints(3, (int[]){2, 0, 1})}});
        compare((twt_op){.op = "Tile", .num_inputs = 2,
                         .inputs = {filled(T, TW_SHAPE(3, 5), 1), ints(2, (int[]){2, 3})}});
        compare((twt_op){.op = "BroadcastTo", .num_inputs = 2,
                         .inputs = {filled(T, TW_SHAPE(3, 1), 1), ints(3, (int[]){2, 3, 5})}});
        compare((twt_op){.op = "Slice", .num_inputs = 3, .inputs = {filled(T, TW_SHAPE(5, 7), 1),
                                                                     ints(2, (int[]){1, 2}), ints(2, (int[]){3, 4})}});
        compare((twt_op){.op = "Fill", .num_inputs = 2, .inputs = {ints(2, (int[]){3, 5}), filled(T, TW_SCALAR, 3)}});
        compare((twt_op){.op = "ZerosLike", .num_inputs = 1, .inputs = {filled(T, TW_SHAPE(3, 5), 1)}});
        /* Elements that move several at a time; from a place where they cannot; and where axes lie as one. */
        compare((twt_op){.op = "Transpose", .num_inputs = 2,
                         .inputs = {filled(T, TW_SHAPE(3, 5, 48), 1), ints(3, (int[]){1, 0, 2})}});
        compare((twt_op){.op = "Transpose", .num_inputs = 2,
                         .inputs = {filled(T, TW_SHAPE(4, 1, 3, 6), 1), ints(4, (int[]){3, 0, 1, 2})}});
        compare((twt_op){.op = "Slice", .num_inputs = 3, .inputs = {filled(T, TW_SHAPE(5, 32), 1),
                                                                     ints(2, (int[]){1, 16}), ints(2, (int[]){3, 16})}});
        compare((twt_op){.op = "Slice", .num_inputs = 3, .inputs = {filled(T, TW_SHAPE(5, 32), 1),
                                                                     ints(2, (int[]){1, 15}), ints(2, (int[]){3, 16})}});
        compare((twt_op){.op = "ConcatV2", .num_inputs = 3,
                         .inputs = {filled(T, TW_SHAPE(3, 2), 1), filled(T, TW_SHAPE(3, 5), 2), filled_int(1)}});
        compare((twt_op){.op = "Concat", .num_inputs = 3,
                         .inputs = {filled_int(-1), filled(T, TW_SHAPE(3, 2), 1), filled(T, TW_SHAPE(3, 5), 2)}});
        compare((twt_op){.op = "Split", .num_inputs = 2, .inputs = {filled_int(1), filled(T, TW_SHAPE(3, 6, 5), 1)},
                         .num_attrs = 1, .attrs = {tw_attr_int("num_split", 3)}});
        compare((twt_op){.op = "SplitV", .num_inputs = 3,
                         .inputs = {filled(T, TW_SHAPE(3, 6, 5), 1), ints(3, (int[]){3, 0, 2}), filled_int(-1)},
                         .num_attrs = 1, .attrs = {tw_attr_int("num_split", 3)}});
        for (int axis = 0; axis < 2; axis++)
            compare((twt_op){.op = "Unpack", .num_inputs = 1, .inputs = {filled(T, TW_SHAPE(3, 3, 5), 1)},
                             .num_attrs = 2, .attrs = {tw_attr_int("num", 3), tw_attr_int("axis", axis)}});
        for (int batch = 0; batch < 3; batch += 2) {
            compare((twt_op){.op = "Pad", .num_inputs = 2,
                             .inputs = {filled(T, TW_SHAPE(batch, 3, 5), 1), pairs(0, 0, 1, 2, 3, 0)}});
            compare((twt_op){.op = "PadV2", .num_inputs = 3,
                             .inputs = {filled(T, TW_SHAPE(batch, 3, 5), 1), pairs(0, 1, 1, 2, 0, 0),
                                        filled(T, TW_SCALAR, 2)}});
        }
        /* x[1:, ::-2, newaxis, 3] of [5,7,9]: three begins, ends and strides and a new axis between them */
        tw_attr masks[] = {tw_attr_int("end_mask", 3), tw_attr_int("begin_mask", 2), tw_attr_int("new_axis_mask", 4),
                           tw_attr_int("shrink_axis_mask", 8)};
        compare((twt_op){.op = "StridedSlice", .num_inputs = 4, .num_attrs = 4,
                         .attrs = {masks[0], masks[1], masks[2], masks[3]},
                         .inputs = {filled(T, TW_SHAPE(5, 7, 9), 1), ints(4, (int[]){1, 0, 0, 3}),
                                    ints(4, (int[]){0, 0, 0, 4}), ints(4, (int[]){1, -2, 1, 1})}});
        compare((twt_op){.op = "StridedSliceGrad", .num_inputs = 5, .num_attrs = 4,
                         .attrs = {masks[0], masks[1], masks[2], masks[3]},
                         .inputs = {ints(3, (int[]){5, 7, 9}), ints(4, (int[]){1, 0, 0, 3}), ints(4, (int[]){0, 0, 0, 4}),
                                    ints(4, (int[]){1, -2, 1, 1}), filled(T, TW_SHAPE(4, 4, 1), 1)}});
        compare((twt_op){.op = "StridedSlice", .num_inputs = 4,
                         .inputs = {filled(T, TW_SHAPE(5), 1), ints(1, (int[]){2}), ints(1, (int[]){2}),
                                    ints(1, (int[]){1})}});
        compare((twt_op){.op = "Pack", .num_inputs = 2,
                         .inputs = {filled(T, TW_SHAPE(3, 2), 1), filled(T, TW_SHAPE(3, 2), 2)},
                         .num_attrs = 1, .attrs = {tw_attr_int("axis", 1)}});
    }
}

/* A value that crosses in parts, more than one stage of page-locked memory long, and back. */
static void long_values_cross_whole(void **state)
{
    (void)state;
    tw_error error = {0};
    void *memory;
    needs_card();
    size_t bytes = ((size_t)9 << 20) + 12345;
    unsigned char *there = twi_alloc(bytes), *back = twi_alloc(bytes);
    assert_true(there && back);
    for (size_t i = 0; i < bytes; i++)
        there[i] = (unsigned char)(i * 31 >> 3);
    assert_ok(twi_device_alloc(card, bytes, "a test", &memory, &error));
    assert_ok(card->ops->write(card, memory, there, bytes, &error));
    assert_ok(card->ops->read(card, back, memory, bytes, &error));
    assert_memory_equal(there, back, bytes);
    twi_device_free(card, memory, bytes);
    twi_free(there);
    twi_free(back);
}

/* The batch in a narrow type is the Cast of the CPU's, to the bit. */
static void check_narrow_batch(tw_graph *graph, const tw_output *inputs, const twt_op *wide, tw_dtype type)
{
    tw_error error = {0};
    twt_op narrow = *wide, cast = {.op = "Cast", .num_inputs = 1, .inputs = {wide->outputs[0]}, .num_attrs = 1,
                                   .attrs = {tw_attr_type("DstT", type)}};
    narrow.op = "_TowerBatch";
    narrow.num_outputs = 0;
    narrow.attrs[narrow.num_attrs++] = tw_attr_type("T", type);
    tw_node *node = tw_add_node(graph, narrow.op, NULL, inputs, 3, narrow.attrs, narrow.num_attrs);
    assert_string_equal(tw_graph_message(graph), "");
    assert_ok(run_node(node, &narrow, &error));
    assert_ok(twt_op_run(&cast, &error));
    assert_memory_equal(narrow.outputs[0]->data, cast.outputs[0]->data, tw_tensor_bytes(cast.outputs[0]));
    assert_memory_equal(narrow.outputs[1]->data, wide->outputs[1]->data, tw_tensor_bytes(wide->outputs[1]));
    twt_op_release_outputs(&narrow);
    twt_op_release_outputs(&cast);
}

/* A batch made of a data set is the CPU's to the bit: sums of bytes are exact, all else is the same arithmetic. */
static void batches_on_the_card_are_those_of_the_cpu_to_the_bit(void **state)
{
    (void)state;
    enum { COUNT = 11, SIDE = 13, BATCH = 20 };
    static const tw_augmentation kinds[] = {TW_AUGMENT_NONE, TW_AUGMENT_TUTORIAL_TRAIN, TW_AUGMENT_TUTORIAL_EVAL,
                                            TW_AUGMENT_PAD_CROP_FLIP, TW_AUGMENT_REFLECT_CROP_ALTERNATE};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    tw_error error = {0};
    needs_card();
    for (int i = 0; i < 2 * KINDS; i++) {
        int channels = i < KINDS ? 3 : 1;
        twt_op op = {.op = "TowerBatch",
                     .num_inputs = 3,
                     .inputs = {tw_tensor_create(TW_UINT8, TW_SHAPE(COUNT, SIDE, SIDE, channels)),
                                filled(TW_INT32, TW_SHAPE(COUNT), 2), filled(TW_INT64, TW_SCALAR, 3)},
                     .num_attrs = 8,
                     .attrs = {tw_attr_int("batch", BATCH), tw_attr_int("examples", 3 * BATCH), tw_attr_int("first", BATCH),
                               tw_attr_int("seed", 7), tw_attr_bool("shuffle", i != 3),
                               tw_attr_int("augmentation", kinds[i % KINDS]), tw_attr_int("crop", 9),
                               tw_attr_float("offset", 0.5f)}};
        uint8_t *bytes = op.inputs[0]->data;
        for (int64_t k = 0; k < op.inputs[0]->elements; k++)
            bytes[k] = (uint8_t)(k * k * 7 >> 3);
        tw_output inputs[3];
        tw_graph *graph = tw_graph_create();
        twt_op there = op;
        for (int k = 0; k < 3; k++)
            inputs[k] = tw_constant(graph, op.inputs[k]);
        tw_node *node = tw_add_node(graph, op.op, "n", inputs, 3, op.attrs, op.num_attrs);
        assert_string_equal(tw_graph_message(graph), "");
        assert_ok(run_node(node, &there, &error));
        assert_ok(twt_op_run(&op, &error));
        for (int k = 0; k < 2; k++)
            assert_memory_equal(there.outputs[k]->data, op.outputs[k]->data, tw_tensor_bytes(op.outputs[k]));
        check_narrow_batch(graph, inputs, &op, TW_BFLOAT16);
        check_narrow_batch(graph, inputs, &op, TW_FLOAT16);
        twt_op_release_outputs(&there);
        twt_op_release(&op);
        tw_graph_destroy(graph);
    }
    cover("TowerBatch");
    cover("_TowerBatch");
    cover("_TowerBatchInto"); /* a_trainer_makes_its_batches_on_the_card */
}

/* ---- variables and streams, which live in sessions ------------------------------------------------------------- */

enum { VARIABLES = 5, STEPS = 3 };

/* The values of some variables after a few steps of noise, all on one device. */
static void train_a_little(const char *device, const char *disable, tw_tensor *values[VARIABLES])
{
    static const tw_initializer_kind kinds[] = {TW_INIT_TRUNCATED_NORMAL, TW_INIT_UNIFORM, TW_INIT_NORMAL};
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_variable *v[VARIABLES];
    tw_output begin[VARIABLES], step[VARIABLES], all = {0}, start = {0}, known = {0};
    tw_session *session;
    tw_tensor *truth = NULL;
    tw_tensor *one = tw_tensor_create(TW_INT64, TW_SCALAR);
    assert_non_null(one);
    *(int64_t *)one->data = 1;
    TW_DEVICE(g, "%s", device) {
        for (int i = 0; i < 3; i++) {
            char name[] = {(char)('a' + i), 0};
            v[i] = tw_get_variable(g, name, TW_FLOAT32, TW_SHAPE(71, 67),
                                   (tw_initializer){.kind = kinds[i], .a = 0, .b = 1, .seed = 3 + i});
        }
        v[3] = tw_get_variable(g, "average", TW_FLOAT32, TW_SHAPE(5), (tw_initializer){.a = 2});
        v[4] = tw_get_variable(g, "count", TW_INT64, TW_SCALAR, (tw_initializer){0});
        assert_string_equal(tw_graph_message(g), "");
        for (int i = 0; i < VARIABLES; i++)
            begin[i] = v[i]->initializer;
        tw_output rate = tw_scalar(g, 0.125f);
        for (int i = 0; i < 2; i++) {
            tw_output shape = tw_constant_int32s(g, TW_SHAPE(2), (int32_t[]){71, 67});
            tw_output noise = i ? tw_random_normal(g, shape, TW_FLOAT32, 11)
                                : tw_random_uniform(g, shape, TW_FLOAT32, 12);
            tw_output decay = tw_mul(g, tw_scalar(g, 0.5f), tw_read_variable(g, v[i]->handle));
            step[i] = tw_apply_gradient_descent(g, v[i]->handle, rate, tw_add_n(g, (tw_output[]){noise, decay}, 2));
        }
        step[2] = tw_assign_sub(g, v[2]->handle, tw_mul(g, tw_read_variable(g, v[2]->handle), rate));
        tw_output target = tw_constant_floats(g, TW_SHAPE(5), (float[]){1, 2, 3, 4, 5});
        step[3] = tw_assign_sub(g, v[3]->handle,
                                tw_mul(g, tw_sub(g, tw_read_variable(g, v[3]->handle), target), rate));
        step[4] = tw_assign_add(g, v[4]->handle, tw_constant(g, one));
        start = tw_group(g, begin, VARIABLES);
        all = tw_group(g, step, VARIABLES);
        known = tw_is_initialized(g, v[0]->handle);
    }
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = disable}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &start, 1, NULL, &error));
    for (int i = 0; i < STEPS; i++)
        assert_ok(tw_session_run(session, NULL, 0, &all, 1, NULL, &error));
    assert_ok(tw_session_run(session, NULL, 0, &known, 1, &truth, &error));
    assert_true(*(const bool *)tw_tensor_data(truth));
    for (int i = 0; i < VARIABLES; i++)
        assert_ok(tw_session_get_variable(session, v[i], &values[i], &error));
    tw_tensor_release(truth);
    tw_tensor_release(one);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void variables_and_streams_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const char *const ops[] = {"ReadVariableOp", "VarIsInitializedOp", "AssignVariableOp", "AssignAddVariableOp",
                                      "AssignSubVariableOp", "ResourceApplyGradientDescent",
                                      "_ApplyGradientDescentMany", "_MovingAverageMany", "RandomUniform",
                                      "RandomStandardNormal", "TruncatedNormal", "NoOp"};
    tw_tensor *expected[VARIABLES], *found[VARIABLES];
    needs_card();
    for (int joined = 0; joined < 2; joined++) {
        train_a_little("/cpu:0", joined ? NULL : "update", expected);
        train_a_little("/gpu:0", joined ? NULL : "update", found);
        for (int i = 0; i < VARIABLES; i++) {
            for (int64_t k = 0; k < expected[i]->elements; k++)
                if (fabs(tw_tensor_value(found[i], k) - tw_tensor_value(expected[i], k)) > 1e-5)
                    fail_msg("variable %d element %lld is %g, expected %g", i, (long long)k,
                             tw_tensor_value(found[i], k), tw_tensor_value(expected[i], k));
            tw_tensor_release(expected[i]);
            tw_tensor_release(found[i]);
        }
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        cover(ops[i]);
}

/* Rows of variables that are named, some of them twice, and Adagrad's two versions; a variable's and its slot's values.
 */
static void update_rows(const char *device, tw_dtype dtype, tw_tensor *values[VARIABLES])
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_variable *v[VARIABLES];
    tw_output step = {0}, start = {0}, done[4];
    bool is_float = dtype != TW_INT32;
    int count = is_float ? VARIABLES : 2;
    tw_tensor *rows = filled(dtype, TW_SHAPE(9, 300), 1), *some = filled(dtype, TW_SHAPE(4, 300), 2);
    TW_DEVICE(g, "%s", device)
    {
        for (int i = 0; i < count; i++) {
            char name[] = {'v', (char)('0' + i), 0};
            v[i] = tw_get_variable(g, name, dtype, TW_SHAPE(4, 300), (tw_initializer){.a = 1});
        }
        tw_output at = tw_constant_int32s(g, TW_SHAPE(9), (int32_t[]){2, 0, 2, 1, 2, 0, 2, 2, 1});
        tw_output rate = is_float ? tw_scalar_of(g, dtype, 0.25) : at,
                  tiny = is_float ? tw_scalar_of(g, dtype, 0.5) : at;
        tw_output adds[] = {v[0]->handle, at, tw_constant(g, rows)}, takes[] = {v[1]->handle, at, adds[2]};
        const tw_attr type = tw_attr_type("dtype", dtype);
        done[0] = tw_node_output(tw_add_node(g, "ResourceScatterAdd", NULL, adds, 3, NULL, 0), -1);
        if (dtype != TW_FLOAT16) /* whose sums would not be exact */
            TW_CONTROL(g, done[0])
                takes[2] = tw_node_output(tw_add_node(g, "ResourceGather", NULL, adds, 2, &type, 1), 0);
        done[1] = tw_node_output(tw_add_node(g, "ResourceScatterSub", NULL, takes, 3, NULL, 0), -1);
        if (is_float) {
            tw_output first[] = {v[2]->handle, v[3]->handle, rate, tw_constant(g, some)};
            tw_output second[] = {v[3]->handle, v[4]->handle, rate, tiny, first[3]};
            done[2] = tw_node_output(tw_add_node(g, "ResourceApplyAdagrad", NULL, first, 4, NULL, 0), -1);
            TW_CONTROL(g, done[2])
            done[3] = tw_node_output(tw_add_node(g, "ResourceApplyAdagradV2", NULL, second, 5, NULL, 0), -1);
        }
        step = tw_group(g, done, is_float ? 4 : 2);
        start = tw_initialize_variables(g);
    }
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &start, 1, NULL, &error));
    for (int i = 0; i < STEPS; i++)
        assert_ok(tw_session_run(session, NULL, 0, &step, 1, NULL, &error));
    for (int i = 0; i < VARIABLES; i++)
        values[i] = NULL;
    for (int i = 0; i < count; i++)
        assert_ok(tw_session_get_variable(session, v[i], &values[i], &error));
    tw_tensor_release(rows);
    tw_tensor_release(some);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void updates_of_rows_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const char *const ops[] = {"ResourceScatterAdd", "ResourceScatterSub", "ResourceGather",
                                      "ResourceApplyAdagrad", "ResourceApplyAdagradV2"};
    static const tw_dtype types[] = {TW_FLOAT32, TW_INT32, TW_FLOAT16};
    needs_card();
    for (int t = 0; t < (FLOATS > 1 ? 3 : 2); t++) {
        tw_tensor *expected[VARIABLES], *found[VARIABLES];
        update_rows("/cpu:0", types[t], expected);
        update_rows("/gpu:0", types[t], found);
        for (int i = 0; i < VARIABLES && expected[i]; i++) {
            twt_expect_same_bits(&(twt_case){.file = "rows", .line = i, .op = {.op = "a variable"}}, found[i],
                                 expected[i], "on the card");
            tw_tensor_release(expected[i]);
            tw_tensor_release(found[i]);
        }
    }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        cover(ops[i]);
}

enum { WEIGHTS = 150, KINDS = 7, DESCENT = 6, MOST_VALUES = 5 * WEIGHTS + 5 };

/* One kind has more than a launch takes. */
static int weights_of(int kind)
{
    return kind == 1 ? WEIGHTS : 20;
}

static tw_shape weight_shape(int i)
{
    return i == 0 ? TW_SHAPE(71, 67) : i == 2 ? TW_SHAPE(0, 3) : TW_SHAPE(5);
}

static bool is_adam(int kind)
{
    return kind == 2 || kind == 3;
}

static tw_optimizer *make_optimizer(tw_graph *g, int kind)
{
    tw_output rate = tw_scalar(g, 0.25f);
    tw_optimizer *made = kind == DESCENT ? tw_gradient_descent(g, rate)
                         : kind < 2      ? tw_momentum(g, rate, 0.5f, kind == 1)
                         : is_adam(kind) ? tw_adam(g, rate, 0.5f, 0.75f, 0.125f)
                                         : tw_rms_prop(g, rate, 0.75f, 0.5f, 0.125f);
    tw_decouple_weight_decay(made, kind % 2 ? 0.125f : 0, 2); /* AdamW is one of them */
    return made;
}

/* With weight decay of every second one; mixed: one of the float types, cast to the variable's. */
static tw_output made_up_gradient(tw_graph *g, const tw_variable *v, bool mixed, unsigned seed)
{
    tw_dtype dtype = mixed ? floats[seed % FLOATS] : v->dtype;
    tw_tensor *some = filled(dtype, v->shape, seed);
    tw_output gradient = tw_constant(g, some);
    if (dtype != v->dtype) { /* of something that is not known before the step: constants would be cast while planning */
        char name[16];
        snprintf(name, sizeof name, "one%u", seed);
        tw_variable *one = tw_get_variable(g, name, dtype, TW_SCALAR, (tw_initializer){.a = 1});
        gradient = tw_cast(g, tw_mul(g, one->value, gradient), v->dtype);
    }
    if (seed % 2 == 0) {
        tw_output decay = tw_mul(g, v->value, tw_scalar_of(g, v->dtype, 0.5));
        gradient = tw_add_n(g, (tw_output[]){gradient, decay}, 2);
    }
    tw_tensor_release(some);
    return gradient;
}

/* Gradients that travelled together: out of one vector again, and then with weight decay of every fourth one. */
static void travel(tw_graph *g, tw_variable **v, int count, int tower, tw_output *gradients)
{
    tw_output parts[WEIGHTS];
    int64_t sizes[WEIGHTS];
    for (int i = 0; i < count; i++) {
        parts[i] = tw_reshape(g, gradients[i], TW_SHAPE(-1));
        sizes[i] = tw_shape_elements(v[i]->shape);
    }
    tw_split_sizes(g, tw_concat(g, parts, count, 0), 0, sizes, parts, count);
    for (int i = 0; i < count; i++) {
        gradients[i] = tw_reshape(g, parts[i], v[i]->shape);
        if (i % 4 == 1 + 2 * tower)
            gradients[i] = tw_add_n(g, (tw_output[]){gradients[i], tw_mul(g, v[i]->value, tw_scalar(g, 0.25f))}, 2);
    }
}

/* The values of some variables, of their slots and of moving averages after a few updates, all on one device; *joined:
 * they were one node, weight decay, casts, cuts and all. */
static void optimize(const char *device, int kind, int towers, tw_dtype dtype, bool mixed, bool travels, bool averaged,
                     const char *disable, tw_tensor **values, int *count, bool *joined)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_variable *v[WEIGHTS];
    tw_output gradients[2][WEIGHTS], start = {0}, step = {0};
    const int weights = weights_of(kind);
    TW_DEVICE(g, "%s", device) {
        for (int i = 0; i < weights; i++) {
            char name[8];
            snprintf(name, sizeof name, "v%d", i);
            v[i] = tw_get_variable(g, name, dtype, weight_shape(i), (tw_initializer){.a = 0.5f});
            for (int t = 0; t < towers; t++)
                gradients[t][i] = made_up_gradient(g, v[i], mixed, (unsigned)i + (unsigned)t * 151);
        }
        for (int t = 0; t < towers && travels; t++)
            travel(g, v, weights, t, gradients[t]);
        for (int i = 0; i < weights && towers == 2; i++)
            gradients[0][i] = tw_mul(g, tw_add(g, gradients[0][i], gradients[1][i]), tw_scalar_of(g, dtype, 0.5));
        tw_optimizer *optimizer = make_optimizer(g, kind);
        tw_variable *counted = averaged ? tw_global_step(g) : NULL;
        step = tw_apply_gradients(optimizer, &(tw_grads){weights, v, gradients[0]}, counted);
        if (averaged)
            step = tw_moving_averages(g, 0.75f, counted, step)->update;
        start = tw_initialize_variables(g);
    }
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = disable}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &start, 1, NULL, &error));
    for (int i = 0; i < STEPS; i++)
        assert_ok(tw_session_run(session, NULL, 0, &step, 1, NULL, &error));
    const char *joint = averaged ? "_ApplyAveragedMany" : kind == DESCENT ? "_ApplyGradientDescentMany" : "_ApplyMany";
    *joined = plans_have(session, joint) && !plans_have(session, "_MovingAverageMany") &&
              !plans_have(session, "AssignSubVariableOp") && !plans_have(session, "AddN") &&
              !plans_have(session, "AddV2") && !plans_have(session, "Cast") && !plans_have(session, "SplitV");
    if (travels)
        assert_int_equal(*joined, plans_have(session, "_JoinGradients"));
    if (mixed && disable)
        assert_true(plans_have(session, "Cast"));
    *count = tw_graph_num_variables(g);
    for (int i = 0; i < *count; i++)
        assert_ok(tw_session_get_variable(session, tw_graph_variable(g, i), &values[i], &error));
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* Updates round as the CPU's do: to the bit. */
static void optimizers_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const char *const ops[] = {"ResourceApplyMomentum", "ResourceApplyAdam", "ResourceApplyRMSProp", "_ApplyMany",
                                      "_ApplyAveragedMany"};
    needs_card();
    for (int kind = 0; kind < KINDS; kind++)
        for (int t = 0; t < FLOATS; t++)
            for (int joined = 0; joined < (floats[t] == TW_FLOAT32 ? 9 : 1); joined++) {
                int towers = joined && joined % 2 == 0 ? 2 : 1;
                bool averaged = joined > 6, mixed = joined > 2 && !averaged, travels = joined > 4 && !averaged;
                tw_tensor *expected[MOST_VALUES], *found[MOST_VALUES];
                bool cpu_joined, card_joined;
                int count;
                optimize("/cpu:0", kind, towers, floats[t], mixed, travels, averaged, "update", expected, &count,
                         &cpu_joined);
                optimize("/gpu:0", kind, towers, floats[t], mixed, travels, averaged, joined ? NULL : "update",
                         found, &count, &card_joined);
                assert_false(cpu_joined);
                assert_int_equal(card_joined, joined > 0);
                assert_true(count >= weights_of(kind) * (kind == DESCENT ? 1 : 2) && count <= MOST_VALUES);
                for (int i = 0; i < count; i++) {
                    twt_expect_same_bits(&(twt_case){.file = "an optimizer", .line = kind, .op = {.op = "a variable"}},
                                         found[i], expected[i], "on the card");
                    tw_tensor_release(expected[i]);
                    tw_tensor_release(found[i]);
                }
            }
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        cover(ops[i]);
}

/* A loop that is asked for on a card as a whole: what decides whether there is another round says no type. */
static void a_loop_may_be_asked_for_on_a_card(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_tensor *value = NULL;
    needs_card();
    tw_output v[] = {tw_constant_floats(g, TW_SHAPE(2), (float[]){1, -2})};
    TW_DEVICE(g, "/gpu:0")
    TW_LOOP(g, v, 1)
    {
        tw_while(g, tw_less(g, tw_round_number(g), tw_scalar_of(g, TW_INT32, 3)));
        v[0] = tw_add(g, v[0], v[0]);
    }
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, v, 1, &value, &error));
    assert_true(tw_tensor_value(value, 0) == 8 && tw_tensor_value(value, 1) == -16);
    tw_tensor_release(value);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* ---- scalars ----------------------------------------------------------------------------------------------------- */

/* Of a number type: the ops of device/fused/scalars.h that kernels take on it; bools come from comparisons. */
static bool takes(const char *op, tw_dtype T)
{
    static const char whole[] = " Neg Abs Sign Square Cast Add AddV2 Sub Mul RealDiv Div FloorDiv FloorMod Maximum Minimum "
                                "SquaredDifference Equal NotEqual Less LessEqual Greater GreaterEqual Select SelectV2 ";
    char word[64];
    snprintf(word, sizeof word, " %s ", op);
    return T == TW_INT32 || T == TW_INT64 ? strstr(whole, word) != NULL
                                          : strncmp(op, "Logical", 7) && !(T == TW_BFLOAT16 && !strcmp(op, "DivNoNan"));
}

enum { MANY_TERMS = 70 };

/* Every op of two numbers and of what comes of comparing them, on one device. */
static int all_scalars(tw_graph *g, tw_dtype T, tw_output x, tw_output y, tw_output *made)
{
    int count = 0;
    tw_output many[MANY_TERMS];
    tw_output less = tw_less(g, x, y), equal = tw_equal(g, x, y);
    for (int i = 0; i < TWI_SCALAR_OPS; i++) {
        const char *op = twi_scalar_ops[i].op;
        tw_output operands[] = {strncmp(op, "Select", 6) ? x : less, strncmp(op, "Select", 6) ? y : x, y};
        tw_attr to = tw_attr_type("DstT", T == TW_FLOAT32 ? TW_INT32 : TW_FLOAT32);
        int n = twi_scalar_ops[i].operands ? twi_scalar_ops[i].operands : 3;
        if (takes(op, T))
            made[count++] = tw_node_output(tw_add_node(g, op, NULL, operands, n, &to, strcmp(op, "Cast") == 0), 0);
    }
    made[count++] = tw_logical_and(g, less, equal);
    made[count++] = tw_logical_or(g, less, tw_logical_not(g, equal));
    made[count++] = tw_cast(g, less, T);
    for (int i = 0; i < MANY_TERMS; i++)
        many[i] = i % 3 ? x : y;
    if (T == TW_FLOAT32)
        made[count++] = tw_add_n(g, many, MANY_TERMS);
    return count;
}

static void run_scalars(const char *device, tw_dtype T, const char *disable, tw_tensor *x, tw_tensor *y,
                        tw_tensor *values[64], int *count, bool *joined)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_output in[] = {tw_placeholder(g, T, TW_SCALAR), tw_placeholder(g, T, TW_SCALAR)}, made[64];
    TW_DEVICE(g, "%s", device)
        *count = all_scalars(g, T, in[0], in[1], made);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = disable}, &session, &error));
    memset(values, 0, sizeof *values * 64);
    assert_ok(tw_session_run(session, (tw_feed[]){{in[0], x}, {in[1], y}}, 2, made, *count, values, &error));
    *joined = plans_have(session, "_Scalars") && !plans_have(session, "Mul") && !plans_have(session, "SelectV2") &&
              !plans_have(session, "Cast");
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* In one launch scalars have the bits that they have in many. */
static void scalars_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const tw_dtype types[] = {TW_FLOAT32, TW_BFLOAT16, TW_FLOAT16, TW_INT32, TW_INT64};
    needs_card();
    for (int t = 0; t < 5; t++)
        for (unsigned seed = 0; seed < 12; seed += 2) {
            bool is_whole = t > 2, joined[3];
            tw_tensor *x = is_whole ? whole(types[t], TW_SCALAR, seed) : filled(types[t], TW_SCALAR, seed);
            tw_tensor *y = is_whole ? whole(types[t], TW_SCALAR, seed + 1) : filled(types[t], TW_SCALAR, seed + 1);
            tw_tensor *cpu[64], *apart[64], *one[64];
            int count;
            run_scalars("/cpu:0", types[t], NULL, x, y, cpu, &count, &joined[0]);
            run_scalars("/gpu:0", types[t], "scalars", x, y, apart, &count, &joined[1]);
            run_scalars("/gpu:0", types[t], NULL, x, y, one, &count, &joined[2]);
            assert_true(!joined[0] && !joined[1] && joined[2]);
            for (int i = 0; i < count; i++) {
                twt_case c = {.file = "scalars", .line = i, .op = {.op = "_Scalars"}, .expected = {cpu[i]}};
                twt_expect_same_bits(&c, one[i], apart[i], "in one launch");
                twt_compare(&c, 0, one[i], "on the card");
                tw_tensor_release(cpu[i]);
                tw_tensor_release(apart[i]);
                tw_tensor_release(one[i]);
            }
            tw_tensor_release(x);
            tw_tensor_release(y);
        }
    cover("_Scalars");
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

/* The mean loss of logits that are T and its gradient, where a softmax works in float; scaled: a loss scale that is fed
 * is part of the gradient, and a constant one of the loss if not. */
static void run_loss(const char *device, tw_tensor *logits, tw_tensor *labels, bool scaled, const char *disable,
                     tw_tensor *values[2], bool *joined)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_output x = tw_placeholder(g, logits->dtype, logits->shape), y = tw_placeholder(g, labels->dtype, labels->shape);
    tw_output scale = tw_placeholder(g, TW_FLOAT32, TW_SCALAR), fetches[2] = {{0}};
    TW_DEVICE(g, "%s", device) {
        tw_output input = tw_mul(g, x, tw_scalar_of(g, logits->dtype, 2)); /* is the product's gradient narrow, too? */
        tw_output wide = logits->dtype == TW_FLOAT32 ? input : tw_cast(g, input, TW_FLOAT32);
        fetches[0] = tw_reduce_mean(g, tw_sparse_softmax_cross_entropy(g, wide, y), NULL, 0, false);
        tw_output goal = tw_mul(g, fetches[0], scaled ? scale : tw_scalar(g, 64));
        tw_gradients(g, &goal, 1, NULL, &input, 1, &fetches[1]);
    }
    tw_tensor *factor = tw_tensor_float(64);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = disable}, &session, &error));
    values[0] = values[1] = NULL;
    assert_ok(tw_session_run(session, (tw_feed[]){{x, logits}, {y, labels}, {scale, factor}}, 3, fetches, 2, values,
                             &error));
    *joined = plans_have(session, "_SoftmaxLoss") && !plans_have(session, "Cast") && !plans_have(session, "Mean") &&
              !plans_have(session, "PreventGradient") && !plans_have(session, "RealDiv");
    tw_tensor_release(factor);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

enum { WEIGHTS_LOST = 150 }; /* more than a launch takes */

/* The L2 losses of weights of many sizes: one is empty, and of the last there is more than blocks take at once. */
static void run_l2_losses(const char *device, tw_dtype T, const char *disable, tw_tensor **values, bool *joined)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_output losses[WEIGHTS_LOST];
    TW_DEVICE(g, "%s", device)
        for (int i = 0; i < WEIGHTS_LOST; i++) {
            int64_t size = i % 50 == 1 ? 4096 : i % 50 == 2 ? 9001 : i == WEIGHTS_LOST - 1 ? 1600001 : i * 3;
            tw_tensor *some = filled(T, TW_SHAPE(size), (unsigned)i);
            losses[i] = tw_l2_loss(g, tw_constant(g, some));
            tw_tensor_release(some);
        }
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = disable}, &session, &error));
    memset(values, 0, sizeof *values * WEIGHTS_LOST);
    assert_ok(tw_session_run(session, NULL, 0, losses, WEIGHTS_LOST, values, &error));
    *joined = plans_have(session, "_L2LossMany") && !plans_have(session, "L2Loss");
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void many_l2_losses_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    needs_card();
    for (int t = 0; t < FLOATS; t++) {
        tw_tensor *cpu[WEIGHTS_LOST], *one[WEIGHTS_LOST], *again[WEIGHTS_LOST];
        bool joined[3];
        run_l2_losses("/cpu:0", floats[t], "fold,merge", cpu, &joined[0]);
        run_l2_losses("/gpu:0", floats[t], "fold,merge", one, &joined[1]);
        run_l2_losses("/gpu:0", floats[t], "fold,merge", again, &joined[2]);
        assert_true(!joined[0] && joined[1] && joined[2]);
        for (int i = 0; i < WEIGHTS_LOST; i++) {
            twt_case c = {.file = "l2 losses", .line = i, .op = {.op = "_L2LossMany"}, .expected = {cpu[i]}};
            twt_compare(&c, 0, one[i], "on the card");
            twt_expect_same_bits(&c, one[i], again[i], "in its second run");
            tw_tensor_release(cpu[i]);
            tw_tensor_release(one[i]);
            tw_tensor_release(again[i]);
        }
    }
    cover("_L2LossMany");
}

/* Of tensors of many sizes some have an infinity or a NaN, the first or the last of them. */
static void many_are_finite_on_the_card_that_are_on_the_cpu(void **state)
{
    (void)state;
    enum { LOOKED_AT = 150 }; /* more than a launch takes */
    tw_error error = {0};
    needs_card();
    for (int t = 0; t < FLOATS; t++) {
        tw_graph *g = tw_graph_create();
        tw_session *session;
        tw_output found[LOOKED_AT];
        tw_tensor *values[LOOKED_AT] = {NULL};
        tw_feed feeds[LOOKED_AT];
        TW_DEVICE(g, "/gpu:0")
            for (int i = 0; i < LOOKED_AT; i++) {
                const int64_t size = i == LOOKED_AT - 1 ? 1600001 : i * 67;
                tw_tensor *some = filled(floats[t], TW_SHAPE(size), (unsigned)i);
                const float odd = i % 3 == 1 ? NAN : i % 4 == 1 ? INFINITY : -INFINITY;
                if (i % 3)
                    twt_put(some, i % 2 ? size - 1 : 0, odd);
                feeds[i] = (tw_feed){tw_placeholder(g, floats[t], TW_SHAPE(size)), some};
                found[i] = tw_reduce_all(g, tw_is_finite(g, feeds[i].output), NULL, 0, false);
            }
        assert_string_equal(tw_graph_message(g), "");
        assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
        assert_ok(tw_session_run(session, feeds, LOOKED_AT, found, LOOKED_AT, values, &error));
        assert_true(plans_have(session, "_AllFiniteMany") && !plans_have(session, "IsFinite"));
        for (int i = 0; i < LOOKED_AT; i++) {
            assert_int_equal(tw_tensor_value(values[i], 0), i % 3 == 0);
            tw_tensor_release(values[i]);
            tw_tensor_release(feeds[i].tensor);
        }
        tw_session_destroy(session);
        tw_graph_destroy(g);
    }
    cover("_AllFiniteMany");
}

enum { BIASES = 6 };

/* Sums over the rows of gradients that one node gives: columns that vectors fit into and do not, and one of one column,
 * which is not joined. */
static void run_biases(const char *device, tw_tensor *gradients, const char *disable, tw_tensor **values, bool *joined)
{
    static const int64_t columns[BIASES] = {10, 64, 24, 33, 8, 1};
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_output x = tw_placeholder(g, gradients->dtype, gradients->shape), parts[BIASES], sums[BIASES];
    TW_DEVICE(g, "%s", device) {
        tw_split_sizes(g, x, 1, columns, parts, BIASES);
        for (int i = 0; i < BIASES; i++)
            sums[i] = tw_node_output(tw_add_node(g, "BiasAddGrad", NULL, &parts[i], 1, NULL, 0), 0);
    }
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = disable}, &session, &error));
    memset(values, 0, sizeof *values * BIASES);
    assert_ok(tw_session_run(session, &(tw_feed){x, gradients}, 1, sums, BIASES, values, &error));
    *joined = plans_have(session, "_BiasAddGradMany");
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void many_biases_on_the_card_have_the_bits_of_one_by_one(void **state)
{
    (void)state;
    static const int64_t rows[] = {128, 5, 700, 0}; /* 700: in several parts */
    needs_card();
    for (int t = 0; t < FLOATS; t++)
        for (int s = 0; s < 4; s++) {
            tw_tensor *cpu[BIASES], *one[BIASES], *apart[BIASES];
            tw_tensor *gradients = filled(floats[t], TW_SHAPE(rows[s], 140), 3);
            bool joined[3];
            run_biases("/cpu:0", gradients, NULL, cpu, &joined[0]);
            run_biases("/gpu:0", gradients, NULL, one, &joined[1]);
            run_biases("/gpu:0", gradients, "losses", apart, &joined[2]);
            assert_true(!joined[0] && joined[1] && !joined[2]);
            for (int i = 0; i < BIASES; i++) {
                twt_case c = {.file = "biases", .line = 10 * s + i, .op.op = "_BiasAddGradMany", .expected = {cpu[i]}};
                twt_compare(&c, 0, one[i], "on the card");
                twt_expect_same_bits(&c, one[i], apart[i], "one by one");
                tw_tensor_release(cpu[i]);
                tw_tensor_release(one[i]);
                tw_tensor_release(apart[i]);
            }
            tw_tensor_release(gradients);
        }
    cover("_BiasAddGradMany");
}

static void losses_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{11, 5}, {1100, 3}, {70, 37}, {3, 1000}, {2, 1}, {0, 4}};
    needs_card();
    for (int t = 0; t < FLOATS; t++)
        for (int s = 0; s < 6; s++)
            for (int scaled = 0; scaled < 2; scaled++) {
                tw_tensor *cpu[2], *one[2];
                bool joined[2];
                tw_tensor *logits = filled(floats[t], TW_SHAPE(shapes[s][0], shapes[s][1]), (unsigned)s);
                tw_tensor *labels = filled(s % 2 ? TW_INT64 : TW_INT32, TW_SHAPE(shapes[s][0]), (unsigned)s + 1);
                for (int64_t i = 0; i < labels->elements; i++) /* 0 to 3 */
                    if (labels->dtype == TW_INT64)
                        ((int64_t *)labels->data)[i] %= shapes[s][1];
                    else
                        ((int32_t *)labels->data)[i] %= (int32_t)shapes[s][1];
                run_loss("/cpu:0", logits, labels, scaled, NULL, cpu, &joined[0]);
                run_loss("/gpu:0", logits, labels, scaled, NULL, one, &joined[1]);
                assert_true(!joined[0] && (joined[1] || shapes[s][0] == 0)); /* a mean of none has no factor */
                for (int i = 0; i < 2; i++) {
                    twt_case c = {.file = "losses", .line = s, .op = {.op = "_SoftmaxLoss"}, .expected = {cpu[i]}};
                    twt_compare(&c, 0, one[i], "on the card");
                    tw_tensor_release(cpu[i]);
                    tw_tensor_release(one[i]);
                }
                tw_tensor_release(logits);
                tw_tensor_release(labels);
            }
    cover("_SoftmaxLoss");
}

/* ---- the last layers and their loss ------------------------------------------------------------------------------ */

enum { LAYER_INPUTS = 6, LAYER_VALUES = 2 + LAYER_INPUTS };

/* The loss of two layers that end in a softmax, what is between them, and the gradients of the loss by all that goes
 * in. With relu the first layer takes what a ReLU lets pass; without bias the layers' are zeros. */
static void run_layers(const char *device, tw_dtype T, const int64_t sizes[4], bool relu, bool bias, const char *disable,
                       tw_tensor *values[LAYER_VALUES], bool *joined)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    const tw_shape shapes[LAYER_INPUTS] = {TW_SHAPE(sizes[0], sizes[1]), TW_SHAPE(sizes[1]),
                                           TW_SHAPE(sizes[1], sizes[2]), TW_SHAPE(sizes[2]),
                                           TW_SHAPE(sizes[2], sizes[3]), TW_SHAPE(sizes[3])};
    tw_output in[LAYER_INPUTS], y = tw_placeholder(g, TW_INT32, TW_SHAPE(sizes[0])), fetches[LAYER_VALUES] = {{0}};
    tw_feed feeds[LAYER_INPUTS + 1];
    tw_tensor *labels = filled(TW_INT32, TW_SHAPE(sizes[0]), 7);
    for (int64_t i = 0; i < sizes[0]; i++)
        ((int32_t *)labels->data)[i] %= (int32_t)sizes[3];
    for (int i = 0; i < LAYER_INPUTS; i++) {
        in[i] = tw_placeholder(g, T, shapes[i]);
        feeds[i] = (tw_feed){in[i], filled(T, shapes[i], (unsigned)i + 1)};
        if (i > 1 && i % 2 && !bias)
            memset(feeds[i].tensor->data, 0, (size_t)feeds[i].tensor->elements * tw_dtype_size(T));
    }
    feeds[LAYER_INPUTS] = (tw_feed){y, labels};
    TW_DEVICE(g, "%s", device) {
        tw_output x = tw_bias_add(g, in[0], in[1]);
        tw_output h = tw_relu(g, tw_bias_add(g, tw_matmul(g, relu ? tw_relu(g, x) : x, in[2]), in[3]));
        tw_output logits = tw_bias_add(g, tw_matmul(g, h, in[4]), in[5]);
        logits = T == TW_FLOAT32 ? logits : tw_cast(g, logits, TW_FLOAT32);
        fetches[0] = tw_reduce_mean(g, tw_sparse_softmax_cross_entropy(g, logits, y), NULL, 0, false);
        fetches[1] = h;
        tw_output goal = tw_mul(g, fetches[0], tw_scalar(g, (float)sizes[0]));
        tw_gradients(g, &goal, 1, NULL, in, LAYER_INPUTS, &fetches[2]);
    }
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = disable}, &session, &error));
    memset(values, 0, sizeof *values * LAYER_VALUES);
    assert_ok(tw_session_run(session, feeds, LAYER_INPUTS + 1, fetches, LAYER_VALUES, values, &error));
    *joined = plans_have(session, "_DenseLoss") && !plans_have(session, "_SoftmaxLoss") &&
              !plans_have(session, "ReluGrad") && !plans_have(session, "_ReluGradBias");
    for (int i = 0; i <= LAYER_INPUTS; i++)
        tw_tensor_release(feeds[i].tensor);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static float narrowed(double x)
{
    return tw_bfloat16_to_float(tw_float_to_bfloat16((float)x));
}

/* y[rows, columns] = x[rows, inner] * w + bias in bfloat16: sums are exact, for all are small multiples of 1/512, and
 * what a layer gives is rounded once. */
static void narrow_layer(int64_t rows, int64_t inner, int64_t columns, const float *x, unsigned seed, bool relu, float *y)
{
    tw_tensor *w = filled(TW_FLOAT32, TW_SHAPE(inner, columns), seed), *bias = filled(TW_FLOAT32, TW_SHAPE(columns), seed + 1);
    for (int64_t i = 0; i < rows * columns; i++) {
        double sum = ((float *)bias->data)[i % columns];
        for (int64_t k = 0; k < inner; k++)
            sum += (double)x[i / columns * inner + k] * ((float *)w->data)[k * columns + i % columns];
        y[i] = relu && sum <= 0 ? 0 : narrowed(sum);
    }
    tw_tensor_release(w);
    tw_tensor_release(bias);
}

/* The loss of run_layers() in bfloat16 and what is between its layers. */
static void narrow_layers(const int64_t sizes[4], bool relu, tw_tensor *values[2])
{
    enum { MOST = 8 * 1000 };
    static float x[MOST], h[MOST], logits[MOST];
    tw_tensor *image = filled(TW_FLOAT32, TW_SHAPE(sizes[0], sizes[1]), 1), *bias = filled(TW_FLOAT32, TW_SHAPE(sizes[1]), 2),
              *labels = filled(TW_INT32, TW_SHAPE(sizes[0]), 7);
    double all = 0;
    for (int64_t i = 0; i < sizes[0] * sizes[1]; i++) {
        x[i] = narrowed(((float *)image->data)[i] + ((float *)bias->data)[i % sizes[1]]);
        x[i] = relu && x[i] <= 0 ? 0 : x[i];
    }
    narrow_layer(sizes[0], sizes[1], sizes[2], x, 3, true, h);
    narrow_layer(sizes[0], sizes[2], sizes[3], h, 5, false, logits);
    for (int64_t r = 0; r < sizes[0]; r++) {
        double sum = 0, own = logits[r * sizes[3] + ((int32_t *)labels->data)[r] % sizes[3]];
        for (int64_t c = 0; c < sizes[3]; c++)
            sum += exp(logits[r * sizes[3] + c] - own);
        all += log(sum);
    }
    values[0] = tw_tensor_float((float)(all / (double)sizes[0]));
    values[1] = listed(TW_BFLOAT16, (int)(sizes[0] * sizes[2]), h);
    tw_tensor_release(image);
    tw_tensor_release(bias);
    tw_tensor_release(labels);
}

static void compare_layers(int line, int count, tw_tensor *const *expected, tw_tensor *const *found,
                           tw_tensor *const *again)
{
    for (int i = 0; i < count; i++) {
        twt_case c = {.file = "layers", .line = line + i, .op.op = "_DenseLoss", .expected = {expected[i]}};
        twt_compare(&c, 0, found[i], "on the card");
        if (again)
            twt_expect_same_bits(&c, found[i], again[i], "in its second run");
    }
}

static void release_layers(tw_tensor *values[LAYER_VALUES])
{
    for (int i = 0; i < LAYER_VALUES; i++)
        tw_tensor_release(values[i]);
}

/* Weights fit into a block's shared memory, or only as narrow numbers, or not at all. The last rows are too long. */
enum { LAYERS = 6 };
static const int64_t layer_sizes[LAYERS][4] = {{7, 20, 8, 5},     {4, 37, 33, 40},  {1, 1, 1, 2},
                                               {5, 384, 192, 10}, {3, 450, 264, 3}, {3, 990, 8, 3}};

/* Those that round between layers are compared with the same kernels one by one, which round where these do, without
 * biases: some of cuBLASLt's algorithms (an H200's for 450 columns) round a product before they add one, and again. */
static void last_layers_on_the_card_are_those_of_the_cpu(void **state)
{
    (void)state;
    needs_card();
    for (int t = 0; t < 2 - UNDER_THREAD_SANITIZER; t++)
        for (int s = 0; s < LAYERS; s++) {
            tw_tensor *apart[LAYER_VALUES], *one[LAYER_VALUES], *again[LAYER_VALUES];
            bool joined[3], fits = s < LAYERS - 1;
            tw_dtype type = t ? TW_BFLOAT16 : TW_FLOAT32;
            run_layers(t ? "/gpu:0" : "/cpu:0", type, layer_sizes[s], s % 2 == 0, !t, "losses", apart, &joined[0]);
            run_layers("/gpu:0", type, layer_sizes[s], s % 2 == 0, !t, NULL, one, &joined[1]);
            run_layers("/gpu:0", type, layer_sizes[s], s % 2 == 0, !t, NULL, again, &joined[2]);
            assert_true(!joined[0] && joined[1] == fits && joined[2] == fits);
            compare_layers(10 * s, LAYER_VALUES, apart, one, again);
            release_layers(apart);
            release_layers(one);
            release_layers(again);
        }
    cover("_DenseLoss");
}

/* What goes forward, with biases: each layer is rounded once. */
static void last_layers_in_bfloat16_round_once(void **state)
{
    (void)state;
    needs_card();
    for (int s = 0; s < LAYERS - 1; s++) {
        tw_tensor *expected[2], *found[LAYER_VALUES];
        bool joined;
        narrow_layers(layer_sizes[s], s % 2 == 0, expected);
        run_layers("/gpu:0", TW_BFLOAT16, layer_sizes[s], s % 2 == 0, true, NULL, found, &joined);
        assert_true(joined);
        assert_true(tw_tensor_bytes(found[1]) == tw_tensor_bytes(expected[1]));
        assert_memory_equal(found[1]->data, expected[1]->data, tw_tensor_bytes(found[1]));
        compare_layers(10 * s, 1, expected, found, NULL);
        tw_tensor_release(expected[0]);
        tw_tensor_release(expected[1]);
        release_layers(found);
    }
}

/* ---- convolutions with a normalization behind them --------------------------------------------------------------- */

enum { NORMED_WEIGHTS = 4, NORMED_INPUTS = 6, NORMED_VALUES = 3 + NORMED_INPUTS - 1, NORMED_CASES = 7 };

static const struct {
    int batch, height, width, channels, filters, size;
    bool same;
} normed_cases[NORMED_CASES] = {{2, 6, 7, 3, 64, 3, true},  {3, 16, 10, 16, 16, 3, true}, {1, 5, 5, 32, 64, 3, false},
                                {2, 4, 4, 64, 64, 3, true}, {5, 3, 3, 16, 32, 2, true},   {1, 1, 1, 16, 16, 1, true},
                                {3, 100, 128, 16, 16, 1, true}}; /* the last one has more tiles than blocks */

static void fill_filter(tw_session *session, tw_variable *filter, tw_shape shape)
{
    tw_error error = {0};
    tw_tensor *weights = filled(TW_FLOAT32, shape, 2);
    assert_ok(tw_session_set_variable(session, filter, weights, &error));
    tw_tensor_release(weights);
}

/* What a ReLU gives of a normalized convolution, with a side or without, its moments, and of small ones the gradients
 * of a weighted sum. Filters that are variables are transposed on their way. With `apart` the scale waits for the
 * convolution, so that the two cannot be joined. */
static int run_normed(tw_dtype T, int number, bool side, bool variable, bool apart, tw_tensor *values[NORMED_VALUES],
                      bool *joined)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    const int batch = normed_cases[number].batch, height = normed_cases[number].height,
              width = normed_cases[number].width, channels = normed_cases[number].channels, filters = normed_cases[number].filters,
              size = normed_cases[number].size, cut = normed_cases[number].same ? 0 : size - 1, inputs = 5 + side,
              count = batch * height * width > 1000 ? 3 : 2 + inputs;
    const tw_shape result = TW_SHAPE(batch, height - cut, width - cut, filters);
    const tw_shape shapes[] = {TW_SHAPE(batch, height, width, channels), TW_SHAPE(size, size, channels, filters),
                               TW_SHAPE(filters), TW_SHAPE(filters), result, result}; /* the last: a side */
    const tw_conv2d_options options = {.padding = cut ? TW_PADDING_VALID : TW_PADDING_SAME};
    tw_variable *kept = NULL;
    tw_feed feeds[NORMED_INPUTS];
    tw_output in[NORMED_INPUTS], fetches[NORMED_VALUES] = {{0}};
    for (int i = 0; i < inputs; i++) {
        tw_dtype type = i == 2 || i == 3 ? TW_FLOAT32 : T;
        in[i] = tw_placeholder(g, type, shapes[i]);
        feeds[i] = (tw_feed){in[i], filled(type, shapes[i], (unsigned)i + 1)};
    }
    TW_DEVICE(g, "/gpu:0") {
        tw_output filter = in[1];
        if (variable) {
            kept = tw_get_variable(g, "filter", TW_FLOAT32, shapes[1], (tw_initializer){.a = 0.5f});
            filter = T == TW_FLOAT32 ? kept->value : tw_cast(g, kept->value, T);
        }
        tw_output x = tw_conv2d(g, in[0], filter, &options), scale = in[2];
        tw_output zero = tw_mul(g, tw_reduce_sum(g, tw_cast(g, tw_stop_gradient(g, x), TW_FLOAT32), NULL, 0, false),
                                tw_scalar(g, 0));
        scale = apart ? tw_add(g, scale, zero) : scale;
        tw_batch_norm y = tw_fused_batch_norm(g, x, scale, in[3], (tw_output){0}, (tw_output){0}, 0.001f, true);
        fetches[0] = tw_relu(g, side ? tw_add(g, y.y, in[5]) : y.y);
        fetches[1] = y.mean;
        fetches[2] = y.variance;
        tw_output goal = tw_mul(g, fetches[0], in[NORMED_WEIGHTS]);
        goal = tw_reduce_sum(g, T == TW_FLOAT32 ? goal : tw_cast(g, goal, TW_FLOAT32), NULL, 0, false);
        const tw_output by[] = {in[0], variable ? kept->value : in[1], in[2], in[3], in[5]};
        tw_gradients(g, &goal, 1, NULL, by, inputs - 1, &fetches[3]);
    }
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    if (variable)
        fill_filter(session, kept, shapes[1]);
    memset(values, 0, sizeof *values * NORMED_VALUES);
    assert_ok(tw_session_run(session, feeds, inputs, fetches, count, values, &error));
    *joined = plans_have(session, variable ? "_TransposedFilterConv2DBatchNormRelu" : "_Conv2DBatchNormRelu");
    assert_int_equal(*joined, !plans_have(session, "_BatchNormRelu"));
    for (int i = 0; i < inputs; i++)
        tw_tensor_release(feeds[i].tensor);
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return count;
}

/* Joined and apart they round where each other does, so only moments differ, in their last bits; of floats that are
 * then rounded for the gradients of image and filter, the last of those. */
static void compare_normed(tw_dtype T, int number, bool side, bool variable, bool twice)
{
    tw_tensor *apart[NORMED_VALUES], *one[NORMED_VALUES], *again[NORMED_VALUES] = {NULL};
    bool joined[3] = {false, false, true};
    int count = run_normed(T, number, side, variable, true, apart, &joined[0]);
    run_normed(T, number, side, variable, false, one, &joined[1]);
    if (twice)
        run_normed(T, number, side, variable, false, again, &joined[2]);
    assert_true(!joined[0] && joined[1] && joined[2]);
    for (int i = 0; i < count; i++) {
        twt_case c = {.file = "normed", .line = 100 * number + i, .op.op = "_Conv2DBatchNormRelu",
                      .expected = {apart[i]}};
        if (one[i]->dtype != TW_FLOAT32 || (i != 3 && i != 4)) /* image and filter */
            twt_compare(&c, 0, one[i], "on the card");
        if (twice)
            twt_expect_same_bits(&c, one[i], again[i], "in its second run");
        tw_tensor_release(apart[i]);
        tw_tensor_release(one[i]);
        tw_tensor_release(again[i]);
    }
}

/* Each variant, whose blocks leave the moments of what they store; where it does not fit, cuDNN's engine and a
 * launch. */
static void normalized_convolutions_on_the_card_are_those_apart(void **state)
{
    (void)state;
    needs_card();
    take_ours();
    for (int variant = 0; variant < 6; variant++) {
        take_variant(variant);
        const int first = variant ? variant / 2 % 2 : 0, step = variant ? 2 : 1; /* the played card takes long */
        for (int i = first; i < NORMED_CASES - (variant > 0); i += step)
            compare_normed(floats[(i / step + variant) % FLOATS], i, i % 3 == 0, (i + variant) % 3 == 0,
                           variant == 0 && i < NORMED_CASES - 1);
    }
    take_all_again();
    cover("_Conv2DBatchNormRelu");
    cover("_TransposedFilterConv2DBatchNormRelu");
}

/* ---- convolutions with a pool and a local response normalization behind them ------------------------------------- */

enum {
    POOLED_CASES = 6,
    MANY_POOLED = 6, /* a case more: of more images than there are blocks */
    POOLED_INPUTS = 4,
    POOLED_VALUES = 3,
    POOLED_ALL = 5,
};

static const struct {
    int batch, height, width, channels, filters, size, window, stride, radius;
    bool same, relu;
} pooled_cases[] = {
    {2, 9, 7, 3, 64, 5, 3, 2, 4, true, true},   {3, 6, 6, 1, 16, 3, 2, 2, 2, false, true},
    {1, 4, 5, 4, 48, 2, 3, 1, 4, true, false},  {2, 5, 5, 2, 128, 1, 3, 3, 1, true, true},
    {2, 6, 5, 3, 16, 3, 5, 2, 20, true, true},  {1, 24, 24, 3, 64, 5, 3, 2, 4, true, true},
    {140, 2, 3, 1, 16, 1, 2, 2, 2, false, true},
};

/* What comes out, and the gradients of a weighted sum by filter and bias; and with `apart` what is pooled, and the
 * gradient before the ReLU, so that they have to be written down. Filters that are variables are transposed on their
 * way. */
static void run_pooled(const char *device, tw_dtype T, int number, bool apart, bool variable,
                       tw_tensor *values[POOLED_ALL], bool *joined)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    const int batch = pooled_cases[number].batch, height = pooled_cases[number].height,
              width = pooled_cases[number].width, channels = pooled_cases[number].channels,
              filters = pooled_cases[number].filters, size = pooled_cases[number].size,
              window = pooled_cases[number].window, stride = pooled_cases[number].stride;
    const tw_padding padding = pooled_cases[number].same ? TW_PADDING_SAME : TW_PADDING_VALID;
    const tw_shape shapes[] = {TW_SHAPE(batch, height, width, channels), TW_SHAPE(size, size, channels, filters),
                               TW_SHAPE(filters)};
    tw_variable *kept = NULL;
    tw_feed feeds[POOLED_INPUTS];
    tw_output in[POOLED_INPUTS], fetches[POOLED_ALL];
    for (int i = 0; i < 3; i++)
        in[i] = tw_placeholder(g, T, shapes[i]);
    TW_DEVICE(g, "%s", device) {
        tw_output filter = in[1];
        if (variable) {
            kept = tw_get_variable(g, "filter", TW_FLOAT32, shapes[1], (tw_initializer){.a = 0.5f});
            filter = T == TW_FLOAT32 ? kept->value : tw_cast(g, kept->value, T);
        }
        tw_output x = tw_bias_add(g, tw_conv2d(g, in[0], filter, &(tw_conv2d_options){.padding = padding}), in[2]);
        const tw_output sum = x;
        x = fetches[POOLED_VALUES] = pooled_cases[number].relu ? tw_relu(g, x) : x;
        x = tw_max_pool(g, x, &(tw_pool_options){.window = {window, window}, .stride = {stride, stride},
                                                 .padding = padding});
        fetches[0] = tw_lrn(g, x, pooled_cases[number].radius, 1, 0.1f, 0.75f);
        in[3] = tw_placeholder(g, T, tw_output_shape(x));
        tw_output goal = tw_mul(g, fetches[0], in[3]);
        goal = tw_reduce_sum(g, T == TW_FLOAT32 ? goal : tw_cast(g, goal, TW_FLOAT32), NULL, 0, false);
        const tw_output by[] = {variable ? kept->value : in[1], in[2], sum};
        tw_output gradients[3];
        tw_gradients(g, &goal, 1, NULL, by, 3, gradients);
        fetches[1] = gradients[0];
        fetches[2] = gradients[1];
        fetches[POOLED_VALUES + 1] = gradients[2];
    }
    for (int i = 0; i < POOLED_INPUTS; i++)
        feeds[i] = (tw_feed){in[i], filled(T, tw_output_shape(in[i]), (unsigned)i + 1)};
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    if (variable)
        fill_filter(session, kept, shapes[1]);
    memset(values, 0, sizeof *values * POOLED_ALL);
    const int wanted = apart ? POOLED_ALL : POOLED_VALUES;
    assert_ok(tw_session_run(session, feeds, POOLED_INPUTS, fetches, wanted, values, &error));
    *joined = plans_have(session, variable ? "_TransposedFilterConv2DMaxPoolLRN" : "_Conv2DMaxPoolLRN");
    assert_int_equal(*joined, plans_have(session, "_Conv2DMaxPoolLRNGrad"));
    assert_int_equal(*joined && plans_have(session, "_MaxPoolLRNGrad"), 0);
    for (int i = 0; i < POOLED_INPUTS; i++)
        tw_tensor_release(feeds[i].tensor);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

static void release_pooled(tw_tensor *values[POOLED_ALL])
{
    for (int v = 0; v < POOLED_ALL; v++)
        tw_tensor_release(values[v]);
}

static void compare_pooled(tw_dtype T, int number, bool variable)
{
    tw_tensor *apart[POOLED_ALL], *one[POOLED_ALL], *cudnn[POOLED_ALL] = {NULL}, *host[POOLED_ALL] = {NULL};
    bool joined[3] = {[2] = true}, unused;
    take_variant(0);
    run_pooled("/gpu:0", T, number, true, variable, apart, &joined[0]);
    take_variant(6);
    run_pooled("/gpu:0", T, number, false, variable, one, &joined[1]);
    assert_int_equal(ours, 2);
    setenv("TOWER_CONVOLUTIONS", "cudnn", 1);
    if (T != TW_FLOAT32) /* which cuDNN may compute in another order */
        run_pooled("/gpu:0", T, number, false, variable, cudnn, &joined[2]);
    if (T == TW_BFLOAT16) /* the CPU does not round floats, and rounds half numbers between nodes */
        run_pooled("/cpu:0", T, number, true, variable, host, &unused);
    assert_true(!joined[0] && joined[1] && joined[2]);
    for (int v = 0; v < POOLED_VALUES; v++) {
        twt_case c = {.file = "pooled", .line = 100 * number + v, .op.op = "_Conv2DMaxPoolLRN", .expected = {apart[v]}};
        if (v == 0)
            twt_expect_same_bits(&c, one[v], apart[v], "apart");
        twt_compare(&c, 0, one[v], "on the card");
        if (T != TW_FLOAT32)
            twt_compare(&c, 0, cudnn[v], "by cuDNN's engine and launches");
        c.expected[0] = host[v];
        if (T == TW_BFLOAT16)
            twt_compare(&c, 0, one[v], "beside the CPU's");
    }
    release_pooled(apart);
    release_pooled(one);
    release_pooled(cudnn);
    release_pooled(host);
}

/* By one kernel of ours forward and one for both gradients, and by cuDNN's and launches. What goes forward is that of
 * the nodes apart to the bit; gradients are added in another order. */
static void first_layers_of_ours_pool_and_normalize(void **state)
{
    (void)state;
    needs_card();
    take_ours();
    for (int i = 0; i < POOLED_CASES; i++)
        for (int t = 0; t < 2 - (UNDER_SANITIZER || i == POOLED_CASES - 1); t++) /* the played card takes long */
            compare_pooled(i == POOLED_CASES - 1 ? TW_BFLOAT16 : floats[(i + t) % FLOATS], i, (i + t) % 2);
    take_all_again();
    cover("_Conv2DMaxPoolLRN");
    cover("_TransposedFilterConv2DMaxPoolLRN");
    cover("_Conv2DMaxPoolLRNGrad");
}

/* Blocks have several images, and go on with what others made. Floats, of which alone the thread sanitizer has kernels,
 * are those of the nodes apart, for the CPU does not round them. */
static void gradients_of_filters_of_many_images_are_those_of_the_cpu(void **state)
{
    (void)state;
    const tw_dtype T = UNDER_THREAD_SANITIZER ? TW_FLOAT32 : TW_BFLOAT16;
    tw_tensor *found[POOLED_ALL], *expected[POOLED_ALL];
    bool joined, unused;
    needs_card();
    take_ours();
    take_variant(6);
    run_pooled("/gpu:0", T, MANY_POOLED, false, false, found, &joined);
    assert_true(joined && ours == 2);
    take_variant(0);
    run_pooled(T == TW_FLOAT32 ? "/gpu:0" : "/cpu:0", T, MANY_POOLED, true, false, expected, &unused);
    for (int v = 0; v < POOLED_VALUES; v++) {
        twt_case c = {.file = "many images", .line = v, .op.op = "_Conv2DMaxPoolLRN", .expected = {expected[v]}};
        twt_compare(&c, 0, found[v], "on the card");
    }
    release_pooled(found);
    release_pooled(expected);
    take_all_again();
}

/* ---- weights as a step computes with them ---------------------------------------------------------------------- */

/* [rows, columns] with its axes the other way round. */
static tw_tensor *transposed(const tw_tensor *t, tw_shape shape, int64_t columns)
{
    size_t size = tw_dtype_size(t->dtype);
    tw_tensor *made = tw_tensor_create(t->dtype, shape);
    assert_non_null(made);
    for (int64_t i = 0; i < t->elements; i++) {
        int64_t place = i % columns * (t->elements / columns) + i / columns;
        memcpy((char *)made->data + (size_t)place * size, (const char *)t->data + (size_t)i * size, size);
    }
    return made;
}

/* Filters with sides that are no multiples of a tile's, empty ones among them; some are transposed. */
static void weights_are_cast_and_transposed_on_the_card_as_on_the_cpu(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    static const tw_shape shapes[COUNT] = {{4, {3, 3, 5, 7}}, {4, {1, 1, 64, 70}}, {1, {1031}},        {4, {5, 5, 3, 33}},
                                           {4, {3, 3, 0, 8}}, {2, {0, 3}},         {4, {2, 3, 32, 32}}, {2, {5, 3}}};
    static const int64_t which[COUNT] = {1, 1, 0, 1, 1, 0, 1, 0};
    tw_error error = {0};
    needs_card();
    for (int t = 0; t < FLOATS; t++) {
        twt_op many = {.op = "_CastMany", .num_inputs = COUNT};
        tw_output inputs[COUNT];
        tw_graph *g = tw_graph_create();
        for (int i = 0; i < COUNT; i++) {
            many.inputs[i] = filled(TW_FLOAT32, shapes[i], (unsigned)i);
            for (int64_t k = 0; k < many.inputs[i]->elements; k++) /* to be rounded, and each another */
                ((float *)many.inputs[i]->data)[k] += (float)k / 999;
            inputs[i] = tw_constant(g, many.inputs[i]);
        }
        tw_attr attrs[] = {tw_attr_type("T", floats[t]), tw_attr_int("N", COUNT),
                           tw_attr_ints("transposed", which, COUNT)};
        tw_node *node = tw_add_node(g, many.op, "n", inputs, COUNT, attrs, 3);
        if (!node)
            fail_msg("%s", tw_graph_message(g));
        assert_ok(run_node(node, &many, &error));
        for (int i = 0; i < COUNT; i++) {
            twt_op one = {.op = "Cast", .plain = true, .num_inputs = 1, .inputs = {many.inputs[i]}, .num_attrs = 1,
                          .attrs = {tw_attr_type("DstT", floats[t])}};
            assert_ok(twt_op_run(&one, &error));
            tw_tensor *expected = which[i] ? transposed(one.outputs[0], node->output_shapes[i], shapes[i].dims[3])
                                           : tw_tensor_retain(one.outputs[0]);
            twt_expect_same_bits(&(twt_case){.file = "a weight", .line = i, .op = {.op = many.op}}, many.outputs[i],
                                 expected, "on the card");
            tw_tensor_release(expected);
            twt_op_release_outputs(&one);
        }
        twt_op_release(&many);
        tw_graph_destroy(g);
    }
    cover("_CastMany");
}

/* Reads that wait for a write are not joined with those before it. */
static void casts_of_what_was_written_stay_behind_the_write(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_output casts[4], start = {0};
    tw_tensor *found[4] = {NULL};
    const double expected[] = {1, 5, 2, 5};
    needs_card();
    TW_DEVICE(g, "/gpu:0") {
        tw_variable *v = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(5), (tw_initializer){.a = 1});
        tw_variable *w = tw_get_variable(g, "w", TW_FLOAT32, TW_SHAPE(3), (tw_initializer){.a = 5});
        for (int i = 0; i < 2; i++)
            casts[i] = tw_cast(g, tw_read_variable(g, i ? w->handle : v->handle), TW_BFLOAT16);
        tw_output write = tw_assign_add(g, v->handle, tw_cast(g, tw_mul(g, casts[0], casts[0]), TW_FLOAT32));
        TW_CONTROL(g, write)
            for (int i = 2; i < 4; i++)
                casts[i] = tw_cast(g, tw_read_variable(g, i == 2 ? v->handle : w->handle), TW_BFLOAT16);
        start = tw_initialize_variables(g);
    }
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &start, 1, NULL, &error));
    assert_ok(tw_session_run(session, NULL, 0, casts, 4, found, &error));
    assert_true(plans_have(session, "_CastMany"));
    for (int i = 0; i < 4; i++) {
        assert_true(tw_tensor_value(found[i], 2) == expected[i]);
        tw_tensor_release(found[i]);
    }
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* ---- gradients that travel together ---------------------------------------------------------------------------- */

enum { TRAVELLERS = 150 }; /* more than one launch takes */

/* As filled(), but floats are to be rounded when they are multiplied. */
static tw_tensor *uneven(tw_dtype dtype, tw_shape shape, unsigned seed)
{
    tw_tensor *t = filled(dtype, shape, seed);
    for (int64_t i = 0; i < t->elements && dtype == TW_FLOAT32; i++)
        ((float *)t->data)[i] += (float)i / 999;
    return t;
}

/* Gradients of all float types, those of every second variable with weight decay, end to end. */
static tw_output make_bucket(tw_graph *g, tw_variable **v)
{
    tw_output ones[FLOATS], parts[TRAVELLERS]; /* what is known before a step would be cast while planning */
    char name[16];
    for (int t = 0; t < FLOATS; t++) {
        snprintf(name, sizeof name, "one%d", t);
        ones[t] = tw_get_variable(g, name, floats[t], TW_SCALAR, (tw_initializer){.a = 1})->value;
    }
    for (int i = 0; i < TRAVELLERS; i++) {
        tw_shape shape = i == 0 ? TW_SHAPE(71, 67) : i == 2 ? TW_SHAPE(0, 3) : TW_SHAPE(1 + i % 9);
        tw_tensor *some = uneven(floats[i % FLOATS], shape, (unsigned)i);
        tw_output gradient = tw_mul(g, ones[i % FLOATS], tw_constant(g, some));
        snprintf(name, sizeof name, "v%d", i);
        v[i] = tw_get_variable(g, name, TW_FLOAT32, shape, (tw_initializer){.a = 0.5f});
        if (i % FLOATS)
            gradient = tw_cast(g, gradient, TW_FLOAT32);
        tw_output decay = tw_mul(g, v[i]->value, tw_scalar(g, 0.1f));
        if (i % 4 < 2)
            gradient = tw_add_n(g, i % 4 ? (tw_output[]){decay, gradient} : (tw_output[]){gradient, decay}, 2);
        parts[i] = tw_reshape(g, gradient, TW_SHAPE(-1));
        tw_tensor_release(some);
    }
    return tw_concat(g, parts, TRAVELLERS, 0);
}

static tw_tensor *run_bucket(const char *device, const char *disable, bool *joined)
{
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_variable *v[TRAVELLERS];
    tw_output bucket = {0}, start = {0};
    tw_tensor *value = NULL;
    TW_DEVICE(g, "%s", device) {
        bucket = make_bucket(g, v);
        start = tw_initialize_variables(g);
    }
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = disable}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &start, 1, NULL, &error));
    for (int i = 0; i < TRAVELLERS; i++) {
        tw_tensor *some = uneven(TW_FLOAT32, v[i]->shape, (unsigned)i + 1000);
        assert_ok(tw_session_set_variable(session, v[i], some, &error));
        tw_tensor_release(some);
    }
    assert_ok(tw_session_run(session, NULL, 0, &bucket, 1, &value, &error));
    *joined = plans_have(session, "_JoinGradients") && !plans_have(session, "ConcatV2") &&
              !plans_have(session, "AddN") && !plans_have(session, "Cast");
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return value;
}

static void gradients_are_laid_end_to_end_on_the_card_as_on_the_cpu(void **state)
{
    (void)state;
    bool joined[3];
    needs_card();
    tw_tensor *expected = run_bucket("/cpu:0", NULL, &joined[0]), *apart = run_bucket("/gpu:0", "buckets", &joined[1]);
    tw_tensor *found = run_bucket("/gpu:0", NULL, &joined[2]);
    assert_true(!joined[0] && !joined[1] && joined[2]);
    twt_case c = {.file = "a bucket", .op = {.op = "_JoinGradients"}};
    twt_expect_same_bits(&c, found, expected, "on the card");
    twt_expect_same_bits(&c, apart, expected, "by nodes of their own");
    tw_tensor_release(expected);
    tw_tensor_release(apart);
    tw_tensor_release(found);
}

/* Gradients of filters, which have their last axis first, and others; operands that are aligned, and some that are
 * not. */
static void transposed_gradients_are_laid_end_to_end_as_their_variables_are(void **state)
{
    (void)state;
    enum { COUNT = 5, DECAYS = 3 };
    static const tw_shape shapes[COUNT] = {{4, {3, 3, 5, 7}}, {1, {9}}, {4, {1, 1, 64, 70}}, {4, {3, 3, 0, 8}}, {2, {5, 3}}};
    static const int64_t which[COUNT] = {1, 0, 1, 1, 0}, decayed[DECAYS] = {0, 2, 4};
    tw_error error = {0};
    needs_card();
    for (int run = 0; run < 2 * FLOATS; run++) {
        twt_op op = {.op = "_JoinGradients", .num_inputs = COUNT + 2 * DECAYS};
        tw_output inputs[COUNT + 2 * DECAYS];
        tw_graph *g = tw_graph_create();
        tw_tensor *expected = tw_tensor_create(TW_FLOAT32, TW_SHAPE(3 * 3 * 5 * 7 + 9 + 64 * 70 + 15));
        int64_t at = 0;
        for (int i = 0; i < DECAYS; i++) {
            op.inputs[COUNT + i] = uneven(TW_FLOAT32, shapes[decayed[i]], (unsigned)i + 40);
            op.inputs[COUNT + DECAYS + i] = tw_tensor_float(0.1f * (float)(i + 1));
        }
        for (int i = 0; i < COUNT; i++) {
            tw_tensor *gradient = uneven(floats[(run + i) % FLOATS], shapes[i], (unsigned)i);
            tw_shape to = {4, {shapes[i].dims[3], shapes[i].dims[0], shapes[i].dims[1], shapes[i].dims[2]}};
            op.inputs[i] = which[i] ? transposed(gradient, to, shapes[i].dims[3]) : tw_tensor_retain(gradient);
            for (int64_t k = 0; k < gradient->elements; k++, at++) {
                float x = (float)tw_tensor_value(gradient, k);
                const tw_tensor *var = i % 2 ? NULL : op.inputs[COUNT + i / 2];
                float more = var ? *(float *)op.inputs[COUNT + DECAYS + i / 2]->data * ((float *)var->data)[k] : 0;
                ((float *)expected->data)[at] = var ? x + more : x;
            }
            tw_tensor_release(gradient);
        }
        assert_int_equal(at, expected->elements);
        for (int i = 0; i < op.num_inputs; i++)
            inputs[i] = tw_constant(g, op.inputs[i]);
        tw_attr attrs[] = {tw_attr_type("T", TW_FLOAT32), tw_attr_int("D", DECAYS),
                           tw_attr_ints("decayed", decayed, DECAYS), tw_attr_ints("transposed", which, COUNT)};
        tw_node *node = tw_add_node(g, op.op, "n", inputs, op.num_inputs, attrs, 4);
        if (!node)
            fail_msg("%s", tw_graph_message(g));
        askew = run >= FLOATS;
        assert_ok(run_node(node, &op, &error));
        askew = false;
        twt_expect_same_bits(&(twt_case){.file = "a bucket", .line = run, .op = {.op = op.op}}, op.outputs[0], expected,
                             "on the card");
        tw_tensor_release(expected);
        twt_op_release(&op);
        tw_graph_destroy(g);
    }
    cover("_JoinGradients");
}

/* Neighbours are added first, whatever the number of towers; operands that are aligned, and some that are not. */
static void means_of_towers_are_those_of_single_additions(void **state)
{
    (void)state;
    enum { MOST = 8 };
    static const tw_shape shapes[] = {{1, {4099}}, {2, {3, 5}}, {1, {0}}};
    tw_error error = {0};
    needs_card();
    for (int run = 0; run < 2 * (MOST - 1) * 3; run++) {
        const int count = 2 + run / 3 % (MOST - 1);
        const tw_shape shape = shapes[run % 3];
        float scale = 1.0f / (float)count;
        twt_op op = {.op = "_TowerMean", .num_inputs = count};
        tw_output inputs[MOST];
        tw_graph *g = tw_graph_create();
        tw_tensor *expected = tw_tensor_create(TW_FLOAT32, shape);
        for (int i = 0; i < count; i++)
            inputs[i] = tw_constant(g, op.inputs[i] = uneven(TW_FLOAT32, shape, (unsigned)i));
        for (int64_t k = 0; k < expected->elements; k++) {
            float sums[MOST];
            for (int i = 0; i < count; i++)
                sums[i] = ((float *)op.inputs[i]->data)[k];
            for (int stride = 1; stride < count; stride *= 2)
                for (int i = 0; i + stride < count; i += 2 * stride)
                    sums[i] += sums[i + stride];
            ((float *)expected->data)[k] = sums[0] * scale;
        }
        tw_attr attrs[] = {tw_attr_int("N", count), tw_attr_float("scale", scale)};
        tw_node *node = tw_add_node(g, op.op, "n", inputs, count, attrs, 2);
        if (!node)
            fail_msg("%s", tw_graph_message(g));
        askew = run >= 3 * (MOST - 1);
        assert_ok(run_node(node, &op, &error));
        askew = false;
        twt_expect_same_bits(&(twt_case){.file = "a mean", .line = run, .op = {.op = op.op}}, op.outputs[0], expected,
                             "on the card");
        tw_tensor_release(expected);
        twt_op_release(&op);
        tw_graph_destroy(g);
    }
    cover("_TowerMean");
}

/* ---- learning with all of these -------------------------------------------------------------------------------- */

enum { FILTERS = 2, LARGEST_JOB = 60 };

/* Two convolutions learn what they are given, with more variables beside them than one launch takes. Values after a few
 * steps. */
static void learn(tw_dtype T, int towers, const char *disable, tw_tensor **values, int *count, bool *at_once)
{
    static const tw_shape shapes[FILTERS] = {{4, {3, 3, 8, 16}}, {4, {3, 3, 16, 8}}};
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *session;
    tw_variable *v[LARGEST_JOB];
    tw_output losses[2], gradients[2][LARGEST_JOB], handles[LARGEST_JOB], start = {0}, step = {0};
    tw_tensor *image = filled(T, TW_SHAPE(2, 7, 8, 8), 1), *weight[FILTERS];
    TW_DEVICE(g, "/gpu:0") {
        for (int i = 0; i < LARGEST_JOB; i++) {
            char name[8];
            snprintf(name, sizeof name, "v%d", i);
            v[i] = tw_get_variable(g, name, TW_FLOAT32, i < FILTERS ? shapes[i] : TW_SHAPE(8),
                                   (tw_initializer){.a = 0.25f});
            handles[i] = v[i]->value;
        }
        for (int i = 0; i < FILTERS; i++) /* they differ from place to place */
            weight[i] = filled(TW_FLOAT32, shapes[i], (unsigned)i + 2);
        for (int tower = 0; tower < towers; tower++) {
            tw_output x = tw_mul(g, tw_constant(g, image), tw_scalar_of(g, T, tower ? 0.5 : 0.25));
            for (int i = 0; i < FILTERS; i++)
                x = tw_conv2d(g, x, T == TW_FLOAT32 ? v[i]->value : tw_cast(g, v[i]->value, T), NULL);
            for (int i = FILTERS; i < LARGEST_JOB; i++)
                x = tw_add(g, x, T == TW_FLOAT32 ? v[i]->value : tw_cast(g, v[i]->value, T));
            x = tw_cast(g, x, TW_FLOAT32);
            losses[tower] = tw_reduce_mean(g, tw_mul(g, x, x), NULL, 0, false);
            tw_gradients(g, &losses[tower], 1, NULL, handles, LARGEST_JOB, gradients[tower]);
        }
        for (int i = 0; i < LARGEST_JOB && towers == 2; i++)
            gradients[0][i] = tw_mul(g, tw_add(g, gradients[0][i], gradients[1][i]), tw_scalar(g, 0.5f));
        step = tw_apply_gradients(tw_gradient_descent(g, tw_scalar(g, 0.001f)),
                                  &(tw_grads){LARGEST_JOB, v, gradients[0]}, NULL);
        start = tw_initialize_variables(g);
    }
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = disable}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &start, 1, NULL, &error));
    for (int i = 0; i < FILTERS; i++)
        assert_ok(tw_session_set_variable(session, v[i], weight[i], &error));
    for (int i = 0; i < STEPS; i++)
        assert_ok(tw_session_run(session, NULL, 0, &step, 1, NULL, &error));
    *at_once = plans_have(session, "_CastMany") && plans_have(session, "_TransposedFilterConv2D") &&
               plans_have(session, "_TransposedFilterConv2DBackpropInput") &&
               plans_have(session, "_TransposedFilterConv2DBackpropFilter") &&
               !plans_have(session, "Conv2D") && !plans_have(session, "Conv2DBackpropInput") &&
               !plans_have(session, "Conv2DBackpropFilter");
    *count = LARGEST_JOB;
    for (int i = 0; i < LARGEST_JOB; i++)
        assert_ok(tw_session_get_variable(session, v[i], &values[i], &error));
    for (int i = 0; i < FILTERS; i++)
        tw_tensor_release(weight[i]);
    tw_tensor_release(image);
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* The same kernels of the library have the same operands, and updates the same numbers: to the bit. */
static void filters_that_are_transposed_at_once_learn_as_those_transposed_one_by_one(void **state)
{
    (void)state;
    needs_card();
    for (int t = 0; t < FLOATS; t++)
        for (int towers = 1; towers <= 2; towers++) {
            tw_tensor *expected[LARGEST_JOB], *found[LARGEST_JOB];
            bool at_once, one_by_one;
            int count;
            learn(floats[t], towers, "update,weights", expected, &count, &one_by_one);
            learn(floats[t], towers, NULL, found, &count, &at_once);
            assert_true(at_once && !one_by_one);
            for (int i = 0; i < count; i++) {
                twt_expect_same_bits(&(twt_case){.file = "a filter", .line = t, .op = {.op = "a variable"}}, found[i],
                                     expected[i], "transposed at once");
                tw_tensor_release(expected[i]);
                tw_tensor_release(found[i]);
            }
        }
    cover("_TransposedFilterConv2D");
    cover("_TransposedFilterConv2DBackpropInput");
    cover("_TransposedFilterConv2DBackpropFilter");
}

/* ---- a trainer ------------------------------------------------------------------------------------------------- */

static tw_output one_layer(tw_graph *g, const tw_model *model, tw_output images, tw_dtype dtype, bool training)
{
    (void)dtype;
    (void)training;
    return tw_dense_layer(g, "logits", tw_flatten(g, images), model->classes, NULL);
}

/* On a card a trainer makes its batches there unless told otherwise; losses and variables are the same to the bit. */
static void a_trainer_makes_its_batches_on_the_card(void **state)
{
    (void)state;
    static const tw_model model = {.name = "small", .description = "for tests", .dataset = "cifar10", .height = 8, .width = 8,
                                   .channels = 3, .classes = 10, .batch = 5, .training = TW_AUGMENT_TUTORIAL_TRAIN,
                                   .optimizer = TW_OPTIMIZER_GRADIENT_DESCENT, .learning_rate = 0.1f, .logits = one_layer};
    static const char *const where[] = {"/gpu:0"};
    enum { TRAINED = 4 };
    static const tw_input_place places[] = {TW_INPUT_ON_HOST, TW_INPUT_AUTO};
    tw_error error = {0};
    tw_dataset *d;
    tw_tensor *weights[2];
    float losses[2][TRAINED];
    needs_card();
    assert_ok(tw_dataset_synthetic(23, 12, 12, 3, 10, 3, &d, &error));
    for (int i = 0; i < 2; i++) {
        tw_trainer *t;
        tw_trainer_step_result result;
        assert_ok(tw_trainer_create(&(tw_trainer_options){.model = &model, .dataset = d, .devices = devices, .towers = 2,
                                                          .tower_devices = where, .num_tower_devices = 1,
                                                          .input_place = places[i]}, &t, &error));
        assert_int_equal(tw_trainer_input_place(t), i ? TW_INPUT_ON_DEVICE : TW_INPUT_ON_HOST);
        for (int k = 0; k < TRAINED; k++) { /* recorded and replayed on the way */
            assert_ok(tw_trainer_step(t, &result, &error));
            losses[i][k] = result.loss;
        }
        const tw_variable *v = tw_graph_find_variable(tw_trainer_graph(t), "logits/kernel");
        assert_non_null(v);
        assert_ok(tw_session_get_variable(tw_trainer_session(t), v, &weights[i], &error));
        assert_int_equal(plans_have(tw_trainer_session(t), "_TowerBatchInto"), i);
        assert_false(plans_have(tw_trainer_session(t), "TowerBatch"));
        tw_trainer_destroy(t);
    }
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
    assert_memory_equal(weights[0]->data, weights[1]->data, tw_tensor_bytes(weights[0]));
    assert_true(losses[0][0] != losses[0][1]);
    for (int i = 0; i < 2; i++)
        tw_tensor_release(weights[i]);
    tw_dataset_destroy(d);
}

/* The library itself, as far as one card goes: communicator, group, streams, the end. */
static void a_card_reduces_by_nccl_what_it_has_alone(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session *session;
    tw_output sum = {0};
    tw_graph *g = tw_graph_create();
    const float values[] = {1.5f, -2, 3};
    needs_card();
    cover("NcclAllReduce");
    cover("_NcclDone");
    if (!tw_devices_nccl(&why)) {
        tw_graph_destroy(g);
        print_message("%s\n", why);
        skip();
    }
    TW_DEVICE(g, "/gpu:0")
        sum = tw_nccl_all_reduce(g, tw_neg(g, tw_constant_floats(g, TW_SHAPE(3), values)), 1, "alone");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .disable = "fold"}, &session, &error));
    for (int step = 0; step < 3; step++) {
        tw_tensor *found = NULL;
        assert_ok(tw_session_run(session, NULL, 0, &sum, 1, &found, &error));
        for (int i = 0; i < 3; i++)
            assert_true(tw_tensor_value(found, i) == -values[i]);
        tw_tensor_release(found);
    }
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* The last test: what the others have run. */
static void every_kernel_of_the_card_has_been_compared(void **state)
{
    (void)state;
    needs_card();
    for (const twi_kernel *const *family = card->ops->kernels; *family; family++)
        for (const twi_kernel *row = *family; row->op; row++)
            if (row->run && !is_covered(row->op))
                fail_msg("no test runs %s ('%s') on a card", row->op, row->name);
}

/* The argument, if there is one: which tests run, "--but PATTERN": which do not. */
int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_plain_line_says_why_there_is_no_gpu),
        cmocka_unit_test(the_plugin_that_was_built_opens),
        cmocka_unit_test(a_card_that_is_not_there_cannot_be_opened),
        cmocka_unit_test(gpus_are_left_alone_when_asked),
        cmocka_unit_test(long_values_cross_whole),
        cmocka_unit_test(elementwise_ops_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(nan_and_infinity_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(a_sum_of_many_terms_is_whole),
        cmocka_unit_test(integers_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(questions_on_the_card_are_answered_as_on_the_cpu),
        cmocka_unit_test(choices_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(reductions_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(networks_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(convolutions_of_ours_are_those_of_the_cpu),
        cmocka_unit_test(gradients_of_filters_of_ours_are_those_of_the_cpu),
        cmocka_unit_test(batch_norms_and_means_of_windows_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(tails_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(rows_that_numbers_name_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(products_of_many_matrices_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(arrays_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(batches_on_the_card_are_those_of_the_cpu_to_the_bit),
        cmocka_unit_test(variables_and_streams_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(updates_of_rows_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(optimizers_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(a_loop_may_be_asked_for_on_a_card),
        cmocka_unit_test(scalars_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(many_l2_losses_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(many_are_finite_on_the_card_that_are_on_the_cpu),
        cmocka_unit_test(many_biases_on_the_card_have_the_bits_of_one_by_one),
        cmocka_unit_test(losses_on_the_card_are_those_of_the_cpu),
        cmocka_unit_test(last_layers_on_the_card_are_those_of_the_cpu),
        unthreaded_test(last_layers_in_bfloat16_round_once),
        cmocka_unit_test(normalized_convolutions_on_the_card_are_those_apart),
        cmocka_unit_test(first_layers_of_ours_pool_and_normalize),
        cmocka_unit_test(gradients_of_filters_of_many_images_are_those_of_the_cpu),
        cmocka_unit_test(weights_are_cast_and_transposed_on_the_card_as_on_the_cpu),
        cmocka_unit_test(casts_of_what_was_written_stay_behind_the_write),
        cmocka_unit_test(gradients_are_laid_end_to_end_on_the_card_as_on_the_cpu),
        cmocka_unit_test(transposed_gradients_are_laid_end_to_end_as_their_variables_are),
        cmocka_unit_test(means_of_towers_are_those_of_single_additions),
        cmocka_unit_test(filters_that_are_transposed_at_once_learn_as_those_transposed_one_by_one),
        cmocka_unit_test(a_trainer_makes_its_batches_on_the_card),
        cmocka_unit_test(a_card_reduces_by_nccl_what_it_has_alone),
        cmocka_unit_test(every_kernel_of_the_card_has_been_compared),
    };
    tw_error error;
    if (count > 2 && strcmp(words[1], "--but") == 0)
        cmocka_set_skip_filter(words[2]);
    else if (count > 1)
        cmocka_set_test_filter(words[1]);
    cuda = find_backend("cuda");
#ifndef TOWER_WITH_CUDA
    if (!cuda)
        return 77;
#endif
    if (tw_devices_create(NULL, &devices, &error) == TW_OK && tw_devices_count(devices, "GPU") > 0)
        card = devices->items[tw_devices_count(devices, "CPU")];
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tw_devices_destroy(devices);
    return failed;
}
