/* test_every_type.c - loops that are written once and compiled for each type give in each what they give in the type in
 * which TensorFlow's values are known. Each golden case (op_testing.h) runs again in every other type that a type
 * attribute of the op may have and a kernel has, on numbers that both types hold exactly, so that the same must come
 * out, but for the rounding of the coarser type; by one thread and by three, by the plain kernel and by the fastest.
 * Element-wise ops do so once more on as many elements as several threads share. */
#include "typed_testing.h"

enum {
    MANY = 16384 + 7, /* elements that a team shares: more than TWI_PARALLEL_ELEMENTS, and no multiple of anything */
};

/* What has been seen, for the last test. */
static int64_t runs, wide_runs, elements_compared, elements_left, failures_alike;

/* ---- what must come out ------------------------------------------------------------------------------------------ */

static void fail_case(const twt_typed *t, const char *what)
{
    fail_msg("%s:%d: %s with %s=%s instead of %s: %s", t->c->file, t->c->line, t->c->op.op, t->attr,
             tw_dtype_name(t->to), tw_dtype_name(t->from), what);
}

static void compare(const twt_typed *t, const tw_tensor *got, const tw_tensor *wanted, const char *how, int64_t last,
                    int64_t times)
{
    char words[192], a[128], b[128];
    bool wide = times > 1;
    tw_shape shape = wide ? twt_longer(wanted->shape, times) : wanted->shape;
    double tolerance = fmax(fmax(twt_tolerance_of(t->from), twt_tolerance_of(t->to)), t->c->tolerance);
    if (!tw_shape_equal(got->shape, shape)) {
        snprintf(words, sizeof words, "%s output of shape %s, expected %s", how, tw_shape_text(got->shape, a, sizeof a),
                 tw_shape_text(shape, b, sizeof b));
        fail_case(t, words);
    }
    for (int64_t i = 0; i < got->elements; i++) {
        double value = twt_get(got, i), expected = twt_get(wanted, wide ? i / (last * times) * last + i % last : i);
        if (!twt_says_the_same(expected, got->dtype)) {
            elements_left++;
            continue;
        }
        elements_compared++;
        bool near = twt_is_float(got->dtype) && fabs(value - expected) <= tolerance * fmax(1, fabs(expected));
        if (!(near || value == expected || (isnan(value) && isnan(expected)))) {
            snprintf(words, sizeof words, "%s element %lld is %.17g, expected %.17g", how, (long long)i, value,
                     expected);
            fail_case(t, words);
        }
    }
}

/* Runs the op as `wanted` has run, and compares. False: there is no such kernel. */
static bool run_alike(const twt_typed *t, twt_op *op, const twt_op *wanted, tw_status status, int64_t last,
                      int64_t times)
{
    tw_error error = {0};
    twt_op first = *op;
    tw_status found = twt_run_on(&first, true, 1, &error);
    if (found == TW_UNIMPLEMENTED) {
        twt_op_release_outputs(&first);
        return false;
    }
    if ((found == TW_OK) != (status == TW_OK) && !(twt_is_integer(t->to) && twt_integers_refuse(error.message)))
        fail_case(t, found == TW_OK ? "no error any more" : error.message);
    if (found != TW_OK) {
        failures_alike++;
        twt_op_release_outputs(&first);
        return true;
    }
    for (int k = 0; k < 2; k++) {
        twt_op again = *op;
        if (twt_run_on(&again, k == 0, 3, &error) != TW_OK)
            fail_case(t, error.message);
        for (int i = 0; i < first.num_outputs; i++) {
            if (!t->c->expected[i])
                continue;
            compare(t, again.outputs[i], wanted->outputs[i], again.kernel, last, times);
            if (k == 0 && !twt_same_bits(first.outputs[i], again.outputs[i]))
                fail_case(t, "three threads give other bits than one");
        }
        twt_op_release_outputs(&again);
    }
    twt_op_release_outputs(&first);
    return true;
}

/* How often the last axis must be repeated for many elements; 0: the op or these shapes do not allow it. */
static int64_t times_for_many(const twt_typed *t, const twi_op *row, const twt_op *wanted, int64_t *last)
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

static void run_in_type(const twt_typed *t)
{
    const twi_op *row = twi_op_find(t->c->op.op);
    tw_error error = {0};
    int64_t last = -1;
    twt_op wanted = twt_made(t, t->from, -1, 1), op = twt_made(t, t->to, -1, 1);
    tw_status status = twt_run_on(&wanted, true, 1, &error);
    if (status != TW_UNIMPLEMENTED && run_alike(t, &op, &wanted, status, 1, 1)) {
        runs++;
        int64_t times = status == TW_OK ? times_for_many(t, row, &wanted, &last) : 0;
        if (times && !had_its_turn(&op, t->to, last)) {
            twt_op wide = twt_made(t, t->to, last, times);
            wide_runs += run_alike(t, &wide, &wanted, status, last, times);
            twt_op_release(&wide);
        }
    }
    twt_op_release(&wanted);
    twt_op_release(&op);
}

static void look(twt_case *c)
{
    if (!c->failure)
        twt_in_each_type(c, run_in_type);
}

/* ---- reductions of many ------------------------------------------------------------------------------------------ */

/* Rows and columns whose sums and products every type holds: 1 and -1 in turn, a 2 in each. */
static tw_tensor *matrix(tw_dtype dtype, bool is_signed, int64_t rows, int64_t columns)
{
    tw_tensor *made = tw_tensor_create(dtype, TW_SHAPE(rows, columns));
    assert_non_null(made);
    for (int64_t i = 0; i < made->elements; i++) {
        int64_t row = i / columns, column = i % columns;
        twt_put(made, i, column == row % columns ? 2 : is_signed && (row + column) % 2 ? -1 : 1);
    }
    return made;
}

static void reduce_many(const twi_op *row, tw_dtype dtype, int axes)
{
    static const int32_t both[] = {0, 1};
    tw_error error = {0};
    tw_dtype widest = twt_is_float(dtype) ? TW_FLOAT64 : twt_is_integer(dtype) ? TW_INT64 : dtype;
    tw_dtype types[] = {dtype, widest};
    twt_op ops[2];
    twt_case of_axes = {.file = row->name, .line = axes};
    twt_typed t = {.c = &of_axes, .attr = "T", .from = widest, .to = dtype};
    for (int k = 0; k < 2; k++) {
        ops[k] = (twt_op){.op = row->name,
                          .num_inputs = 2,
                          .inputs = {matrix(types[k], !(TWI_UNSIGNED_TYPES & TWI_TYPE(dtype)), 130, 140)}};
        ops[k].inputs[1] = axes < 2 ? tw_tensor_int32(axes) : tw_tensor_from(TW_INT32, TW_SHAPE(2), both);
    }
    of_axes.op = ops[0];
    of_axes.expected[0] = ops[0].inputs[0]; /* something to compare */
    tw_status status = twt_run_on(&ops[1], true, 1, &error);
    if (status == TW_OK)
        wide_runs += run_alike(&t, &ops[0], &ops[1], status, 1, 1);
    else if (status != TW_UNIMPLEMENTED)
        fail_case(&t, error.message);
    for (int k = 0; k < 2; k++)
        twt_op_release(&ops[k]);
}

static void reductions_of_many_are_the_same_in_every_type(void **state)
{
    (void)state;
    for (const twi_op *const *family = twi_op_families; *family; family++)
        for (const twi_op *row = *family; row->name; row++) {
            const twi_signature *signature = twi_op_signature(row);
            assert_non_null(signature);
            bool typed = twi_op_is(row, TWI_REDUCES) && !twi_op_is(row, TWI_REWRITTEN) &&
                         signature->inputs[0].type_attr;
            for (int i = 0; i < signature->num_attrs && typed; i++)
                for (int k = 0; k < TWT_NUM_DTYPES && strcmp(signature->attrs[i].name, "T") == 0; k++)
                    for (int axes = 0; axes < 3 && signature->attrs[i].allowed_types >> twt_dtypes[k] & 1; axes++)
                        reduce_many(row, twt_dtypes[k], axes);
        }
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

static void rare_ops_give_the_results_of_tensorflow(void **state)
{
    (void)state;
    twt_run_golden("ops_rare.txt");
    twt_run_golden("ops_other.txt");
    twt_run_golden("ops_extra.txt");
}

static void rare_ops_are_the_same_in_every_type(void **state)
{
    (void)state;
    twt_each_case("ops_rare.txt", look);
    twt_each_case("ops_other.txt", look);
    twt_each_case("ops_extra.txt", look);
}

static void that_was_much(void **state)
{
    (void)state;
    print_message("%lld runs and %lld of many elements: %lld elements compared, %lld not; %lld refused alike\n",
                  (long long)runs, (long long)wide_runs, (long long)elements_compared, (long long)elements_left,
                  (long long)failures_alike);
    assert_true(runs > 5000 && wide_runs > 200 && elements_compared > 12 * elements_left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(math_is_the_same_in_every_type),     cmocka_unit_test(arrays_are_the_same_in_every_type),
        cmocka_unit_test(networks_are_the_same_in_every_type), cmocka_unit_test(images_are_the_same_in_every_type),
        cmocka_unit_test(rare_ops_give_the_results_of_tensorflow),
        cmocka_unit_test(rare_ops_are_the_same_in_every_type),
        cmocka_unit_test(reductions_of_many_are_the_same_in_every_type), cmocka_unit_test(that_was_much),
    };
    return cmocka_run_group_tests(tests, twt_open_devices, twt_close_devices);
}
