/* test_every_type.c - loops that are written once and compiled for each type give in each what they give in the type in
 * which TensorFlow's values are known. Each golden case (op_testing.h) runs again in every other type that a type
 * attribute of the op may have and a kernel has, on numbers that both types hold exactly, so that the same must come
 * out, but for the rounding of the coarser type; by one thread and by three, by the plain kernel and by the fastest.
 * Element-wise ops do so once more on as many elements as several threads share. */
#include "op_testing.h"

enum {
    MANY = 16384 + 7, /* elements that a team shares: more than TWI_PARALLEL_ELEMENTS, and no multiple of anything */
    BOUND = 1000,     /* of integers that there may be more of */
};

static const tw_dtype dtypes[] = {TW_FLOAT32, TW_FLOAT64, TW_FLOAT16, TW_BFLOAT16, TW_INT64, TW_INT32,
                                  TW_INT16,   TW_INT8,    TW_UINT8,   TW_BOOL,     TW_STRING};
enum { NUM_DTYPES = sizeof dtypes / sizeof *dtypes };

static tw_devices *one_thread, *three_threads;

/* What has been seen, for the last test. */
static int64_t runs, wide_runs, elements_compared, elements_left, failures_alike;

/* ---- numbers of a type ------------------------------------------------------------------------------------------- */

static bool is_float(tw_dtype dtype)
{
    return dtype == TW_FLOAT32 || dtype == TW_FLOAT64 || dtype == TW_FLOAT16 || dtype == TW_BFLOAT16;
}

static bool is_integer(tw_dtype dtype)
{
    return dtype == TW_INT64 || dtype == TW_INT32 || dtype == TW_INT16 || dtype == TW_INT8 || dtype == TW_UINT8;
}

static double largest(tw_dtype dtype)
{
    return dtype == TW_INT8      ? INT8_MAX
           : dtype == TW_UINT8   ? UINT8_MAX
           : dtype == TW_INT16   ? INT16_MAX
           : dtype == TW_INT32   ? INT32_MAX
           : dtype == TW_INT64   ? (double)(INT64_C(1) << 53)
           : dtype == TW_BOOL    ? 1
           : dtype == TW_FLOAT16 ? 65504
                                 : 3e38;
}

static double smallest(tw_dtype dtype)
{
    return dtype == TW_UINT8 || dtype == TW_BOOL ? 0 : is_integer(dtype) ? -largest(dtype) - 1 : -largest(dtype);
}

static void put(tw_tensor *tensor, int64_t i, double value)
{
    char text[32];
    int64_t whole = isnan(value) ? 0 : (int64_t)fmin(fmax(value, -1e18), 1e18);
    if (tensor->dtype == TW_FLOAT64)
        ((double *)tensor->data)[i] = value;
    else if (tensor->dtype == TW_FLOAT32)
        ((float *)tensor->data)[i] = (float)value;
    else if (tensor->dtype == TW_FLOAT16)
        ((uint16_t *)tensor->data)[i] = tw_float_to_half((float)value);
    else if (tensor->dtype == TW_BFLOAT16)
        ((uint16_t *)tensor->data)[i] = tw_float_to_bfloat16((float)value);
    else if (tensor->dtype == TW_BOOL)
        ((bool *)tensor->data)[i] = value != 0;
    else if (tensor->dtype == TW_STRING && value != 0) /* nothing is what texts begin as, as numbers begin as zero */
        assert_int_equal(
            tw_tensor_set_string(tensor, i, text, (size_t)snprintf(text, sizeof text, "%.17g", value)), TW_OK);
    else if (tensor->dtype != TW_STRING)
        memcpy((char *)tensor->data + (size_t)i * tw_dtype_size(tensor->dtype), &whole, tw_dtype_size(tensor->dtype));
}

static double get(const tw_tensor *tensor, int64_t i)
{
    char text[32] = "";
    if (tensor->dtype != TW_STRING)
        return tw_tensor_value(tensor, i);
    const tw_string *string = (const tw_string *)tensor->data + i;
    memcpy(text, string->size ? string->data : "", string->size < sizeof text ? string->size : sizeof text - 1);
    return strtod(text, NULL);
}

/* A number near `value` that both types hold exactly. Integers are made of eighths, which most golden numbers are. */
static double common(double value, tw_dtype from, tw_dtype to)
{
    if (is_float(from) && is_integer(to))
        value = isnan(value) ? 0 : rint(fmin(fmax(value * 8, -BOUND), BOUND));
    if (is_integer(from) && fabs(value) > BOUND) /* what overflows does so differently */
        value = fmod(value, BOUND);
    if (is_integer(to) || is_integer(from) || to == TW_BOOL)
        value = isnan(value) ? 0 : fmin(fmax(to == TW_UINT8 ? fabs(value) : value, smallest(to)), largest(to));
    if (to == TW_BOOL)
        value = value != 0;
    if (to == TW_BFLOAT16 || from == TW_BFLOAT16)
        value = tw_bfloat16_to_float(tw_float_to_bfloat16((float)value));
    if (to == TW_FLOAT16 || from == TW_FLOAT16)
        value = tw_half_to_float(tw_float_to_half((float)value));
    return value;
}

/* ---- a case in another type -------------------------------------------------------------------------------------- */

/* An op's run, of which those inputs that have the attribute's type are made anew. */
typedef struct typed_case {
    const twt_case *c;
    const twi_signature *signature;
    const char *attr;
    bool has_type[TWT_MOST]; /* of input i */
    tw_dtype from, to;
} typed_case;

/* Which argument each input belongs to. False: the op has more lists than one can tell apart. */
static bool find_inputs(typed_case *t)
{
    const twi_signature *s = t->signature;
    int lists = 0, at = 0;
    for (int i = 0; i < s->num_inputs; i++)
        lists += s->inputs[i].number_attr || s->inputs[i].list_attr;
    int rest = t->c->op.num_inputs - (s->num_inputs - lists);
    if (lists && (rest < 0 || rest % lists))
        return false;
    for (int i = 0; i < s->num_inputs; i++) {
        bool list = s->inputs[i].number_attr || s->inputs[i].list_attr;
        for (int k = 0; k < (list ? rest / lists : 1); k++)
            t->has_type[at++] = s->inputs[i].type_attr && strcmp(s->inputs[i].type_attr, t->attr) == 0;
    }
    return at == t->c->op.num_inputs;
}

static tw_dtype type_of_attr(const typed_case *t, const twi_attr_spec *spec)
{
    for (int i = 0; i < t->c->op.num_attrs; i++)
        if (strcmp(t->c->op.attrs[i].name, t->attr) == 0)
            return t->c->op.attrs[i].type;
    for (int i = 0; i < t->c->op.num_inputs; i++)
        if (t->has_type[i])
            return t->c->op.inputs[i]->dtype;
    return spec->has_default ? spec->value.type : TW_INVALID_DTYPE;
}

/* The last axis, `times` as long. */
static tw_shape longer(tw_shape shape, int64_t times)
{
    shape.dims[shape.rank - 1] *= times;
    return shape;
}

/* The case's op with inputs in type `to`, of the numbers that both types hold; along the last axis again and again. */
static twt_op made(const typed_case *t, tw_dtype to, int64_t last, int64_t times)
{
    twt_op op = t->c->op;
    op.num_outputs = 0;
    for (int i = 0; i < op.num_inputs; i++) {
        const tw_tensor *from = t->c->op.inputs[i];
        bool wide = from->shape.rank > 0 && from->shape.dims[from->shape.rank - 1] == last;
        tw_shape shape = wide ? longer(from->shape, times) : from->shape;
        int64_t row = wide ? last : 1, repeated = wide ? times : 1;
        op.inputs[i] = tw_tensor_create(t->has_type[i] ? to : from->dtype, shape);
        assert_non_null(op.inputs[i]);
        for (int64_t k = 0; k < op.inputs[i]->elements; k++) {
            int64_t source = k / (row * repeated) * row + k % row;
            double value = get(from, source);
            if (from->dtype == TW_STRING && !t->has_type[i])
                assert_true(twi_string_set((tw_string *)op.inputs[i]->data + k, ((tw_string *)from->data)[source].data,
                                           ((tw_string *)from->data)[source].size));
            else if (from->dtype == TW_INT64 && !t->has_type[i])
                ((int64_t *)op.inputs[i]->data)[k] = ((int64_t *)from->data)[source];
            else
                put(op.inputs[i], k, t->has_type[i] ? common(value, t->from, t->to) : value);
        }
    }
    for (int i = 0; i < op.num_attrs; i++)
        if (strcmp(op.attrs[i].name, t->attr) == 0)
            op.attrs[i] = tw_attr_type(t->attr, to);
    if (op.num_attrs < TWT_MOST && !op.num_inputs)
        op.attrs[op.num_attrs++] = tw_attr_type(t->attr, to);
    return op;
}

/* Builds and runs it; outputs are the op's. */
static tw_status run(twt_op *op, bool plain, int threads, tw_error *error)
{
    tw_graph *graph = tw_graph_create();
    tw_output inputs[TWT_MOST];
    tw_status status = TW_OK;
    twt_op_release_outputs(op);
    op->plain = plain;
    op->threads = threads;
    for (int i = 0; i < op->num_inputs; i++)
        inputs[i] = tw_constant(graph, op->inputs[i]);
    tw_node *node = tw_add_node(graph, op->op, "n", inputs, op->num_inputs, op->attrs, op->num_attrs);
    if (node) {
        status = twt_run_node(op, node, (threads == 1 ? one_thread : three_threads)->items[0], error);
    } else {
        *error = graph->error;
        status = graph->error.status;
    }
    tw_graph_destroy(graph);
    return status;
}

/* ---- what must come out ------------------------------------------------------------------------------------------ */

static double tolerance_of(tw_dtype dtype)
{
    return dtype == TW_BFLOAT16 ? 1e-2 : dtype == TW_FLOAT16 ? 2e-3 : dtype == TW_FLOAT32 ? 1e-5 : 1e-12;
}

static void fail_case(const typed_case *t, const char *what)
{
    fail_msg("%s:%d: %s with %s=%s instead of %s: %s", t->c->file, t->c->line, t->c->op.op, t->attr,
             tw_dtype_name(t->to), tw_dtype_name(t->from), what);
}

/* Of numbers that are not whole, or beyond what a type holds, integers say something else. */
static bool says_the_same(double value, tw_dtype dtype)
{
    if (is_integer(dtype) || dtype == TW_BOOL)
        return value == rint(value) && value >= smallest(dtype) && value <= largest(dtype);
    return dtype == TW_STRING || !isfinite(value) || fabs(value) <= largest(dtype);
}

static void compare(const typed_case *t, const tw_tensor *got, const tw_tensor *wanted, const char *how, int64_t last,
                    int64_t times)
{
    char words[192], a[128], b[128];
    bool wide = times > 1;
    tw_shape shape = wide ? longer(wanted->shape, times) : wanted->shape;
    double tolerance = fmax(fmax(tolerance_of(t->from), tolerance_of(t->to)), t->c->tolerance);
    if (!tw_shape_equal(got->shape, shape)) {
        snprintf(words, sizeof words, "%s output of shape %s, expected %s", how, tw_shape_text(got->shape, a, sizeof a),
                 tw_shape_text(shape, b, sizeof b));
        fail_case(t, words);
    }
    for (int64_t i = 0; i < got->elements; i++) {
        double value = get(got, i), expected = get(wanted, wide ? i / (last * times) * last + i % last : i);
        if (!says_the_same(expected, got->dtype)) {
            elements_left++;
            continue;
        }
        elements_compared++;
        bool near = is_float(got->dtype) && fabs(value - expected) <= tolerance * fmax(1, fabs(expected));
        if (!(near || value == expected || (isnan(value) && isnan(expected)))) {
            snprintf(words, sizeof words, "%s element %lld is %.17g, expected %.17g", how, (long long)i, value,
                     expected);
            fail_case(t, words);
        }
    }
}

static bool same_bits(const tw_tensor *a, const tw_tensor *b)
{
    bool same = a->elements == b->elements;
    for (int64_t i = 0; same && a->dtype == TW_STRING && i < a->elements; i++)
        same = twt_same_string((tw_string *)a->data + i, (tw_string *)b->data + i);
    return same && (a->dtype == TW_STRING || !a->elements || memcmp(a->data, b->data, tw_tensor_bytes(a)) == 0);
}

/* Integers refuse what floats have a number for. */
static bool integers_refuse(const char *message)
{
    return strstr(message, "division by zero") || strstr(message, "negative");
}

/* Runs the op as `wanted` has run, and compares. False: there is no such kernel. */
static bool run_alike(const typed_case *t, twt_op *op, const twt_op *wanted, tw_status status, int64_t last,
                      int64_t times)
{
    tw_error error = {0};
    twt_op first = *op;
    tw_status found = run(&first, true, 1, &error);
    if (found == TW_UNIMPLEMENTED)
        return false;
    if ((found == TW_OK) != (status == TW_OK) && !(is_integer(t->to) && integers_refuse(error.message)))
        fail_case(t, found == TW_OK ? "no error any more" : error.message);
    if (found != TW_OK) {
        failures_alike++;
        twt_op_release_outputs(&first);
        return true;
    }
    for (int k = 0; k < 2; k++) {
        twt_op again = *op;
        if (run(&again, k == 0, 3, &error) != TW_OK)
            fail_case(t, error.message);
        for (int i = 0; i < first.num_outputs; i++) {
            if (!t->c->expected[i])
                continue;
            compare(t, again.outputs[i], wanted->outputs[i], again.kernel, last, times);
            if (k == 0 && !same_bits(first.outputs[i], again.outputs[i]))
                fail_case(t, "three threads give other bits than one");
        }
        twt_op_release_outputs(&again);
    }
    twt_op_release_outputs(&first);
    return true;
}

/* How often the last axis must be repeated for many elements; 0: the op or these shapes do not allow it. */
static int64_t times_for_many(const typed_case *t, const twi_op *row, const twt_op *wanted, int64_t *last)
{
    if (!twi_op_is(row, TWI_ELEMENTWISE) || !wanted->num_outputs || !wanted->outputs[0]->shape.rank ||
        !wanted->outputs[0]->elements)
        return 0;
    tw_shape out = wanted->outputs[0]->shape;
    *last = out.dims[out.rank - 1];
    if (*last == 1 || wanted->outputs[0]->elements / *last > 4)
        return 0;
    for (int i = 0; i < t->c->op.num_inputs; i++) {
        tw_shape shape = t->c->op.inputs[i]->shape;
        int64_t own = shape.rank ? shape.dims[shape.rank - 1] : 1;
        if (own != *last && own != 1)
            return 0;
    }
    return MANY / *last + 1;
}

/* Whether op and type have had their turn with many elements: one for each of the ways in which two inputs may move or
 * stay, for each has a loop of its own. */
static bool had_its_turn(const twt_op *op, tw_dtype dtype, int64_t last)
{
    static struct {
        char op[48];
        tw_dtype dtype;
        unsigned ways;
    } turns[2048];
    size_t i = 0;
    unsigned way = 0;
    for (int k = 0; k < op->num_inputs && k < 2; k++) {
        tw_shape shape = op->inputs[k]->shape;
        way |= (unsigned)(shape.rank && shape.dims[shape.rank - 1] == last) << k;
    }
    while (turns[i].op[0] && (strcmp(turns[i].op, op->op) != 0 || turns[i].dtype != dtype))
        assert_true(++i < sizeof turns / sizeof *turns);
    snprintf(turns[i].op, sizeof turns[i].op, "%s", op->op);
    turns[i].dtype = dtype;
    bool had = turns[i].ways >> way & 1;
    turns[i].ways |= 1u << way;
    return had;
}

static void run_in_type(const typed_case *t, const twi_op *row)
{
    tw_error error = {0};
    int64_t last = -1;
    twt_op wanted = made(t, t->from, -1, 1), op = made(t, t->to, -1, 1);
    tw_status status = run(&wanted, true, 1, &error);
    if (status != TW_UNIMPLEMENTED && run_alike(t, &op, &wanted, status, 1, 1)) {
        runs++;
        int64_t times = status == TW_OK ? times_for_many(t, row, &wanted, &last) : 0;
        if (times && !had_its_turn(&op, t->to, last)) {
            twt_op wide = made(t, t->to, last, times);
            wide_runs += run_alike(t, &wide, &wanted, status, last, times);
            twt_op_release(&wide);
        }
    }
    twt_op_release(&wanted);
    twt_op_release(&op);
}

/* ---- which types ------------------------------------------------------------------------------------------------- */

/* What a type means to the op itself: its values are other ones. */
static bool differs_by_type(const typed_case *t)
{
    const char *op = t->c->op.op;
    if (strcmp(op, "Cast") == 0) /* what is too large for an integer is cut if it was one, else the largest there is */
        return is_integer(t->to) && (is_integer(t->from) || strcmp(t->attr, "SrcT") == 0);
    if (strcmp(op, "Range") == 0) /* adds the step again and again, and rounds each sum */
        return t->to == TW_BFLOAT16;
    return strcmp(op, "DecodeRaw") == 0; /* takes bytes for numbers of the type */
}

/* Texts and truths are no numbers: who takes any type does with them what it does with numbers. Whole numbers are
 * divided otherwise than those with a fraction. */
static bool may_be(const twi_attr_spec *spec, tw_dtype from, tw_dtype to)
{
    if (to == from || (from != TW_FLOAT32 && from != TW_INT32 && from != TW_INT64) ||
        (spec->allowed_types && !(spec->allowed_types >> to & 1)))
        return false;
    if (to == TW_BOOL || to == TW_STRING || (is_integer(from) && is_float(to)))
        return !spec->allowed_types;
    return true;
}

static void look(twt_case *c)
{
    const twi_op *row = twi_op_find(c->op.op);
    twi_arena arena = {0};
    twi_signature signature;
    if (c->failure || twi_op_is(row, TWI_STATEFUL))
        return;
    assert_true(twi_signature_parse(&arena, row, &signature));
    for (int i = 0; i < signature.num_attrs; i++) {
        typed_case t = {.c = c, .signature = &signature, .attr = signature.attrs[i].name};
        if (signature.attrs[i].kind != TW_ATTR_TYPE || !find_inputs(&t))
            continue;
        t.from = type_of_attr(&t, &signature.attrs[i]);
        for (int k = 0; k < NUM_DTYPES && t.from; k++) {
            t.to = dtypes[k];
            if (may_be(&signature.attrs[i], t.from, t.to) && !differs_by_type(&t))
                run_in_type(&t, row);
        }
    }
    twi_arena_free(&arena);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void math_is_the_same_in_every_type(void **state)
{
    (void)state;
    twt_each_case("ops_math.txt", look);
}

static void arrays_are_the_same_in_every_type(void **state)
{
    (void)state;
    twt_each_case("ops_array.txt", look);
}

static void networks_are_the_same_in_every_type(void **state)
{
    (void)state;
    twt_each_case("ops_nn.txt", look);
}

static void images_are_the_same_in_every_type(void **state)
{
    (void)state;
    twt_each_case("ops_image.txt", look);
}

static void that_was_much(void **state)
{
    (void)state;
    print_message("%lld runs and %lld of many elements: %lld elements compared, %lld not; %lld refused alike\n",
                  (long long)runs, (long long)wide_runs, (long long)elements_compared, (long long)elements_left,
                  (long long)failures_alike);
    assert_true(runs > 5000 && wide_runs > 200 && elements_compared > 20 * elements_left);
}

static int open_devices(void **state)
{
    (void)state;
    tw_error error = {0};
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .no_gpus = true}, &one_thread, &error));
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 3, .no_gpus = true}, &three_threads, &error));
    return 0;
}

static int close_devices(void **state)
{
    (void)state;
    tw_devices_destroy(one_thread);
    tw_devices_destroy(three_threads);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(math_is_the_same_in_every_type),     cmocka_unit_test(arrays_are_the_same_in_every_type),
        cmocka_unit_test(networks_are_the_same_in_every_type), cmocka_unit_test(images_are_the_same_in_every_type),
        cmocka_unit_test(that_was_much),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
