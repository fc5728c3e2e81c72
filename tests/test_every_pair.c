/* test_every_pair.c - element-wise ops, of every row that says to be one: of all pairs of a few numbers they give in
 * each type what they give in the widest, in whatever way the two inputs move or stay, in few elements and in as many
 * as several threads share, by the plain kernel and by the fastest. Complex ones have another of the numbers as
 * imaginary part. */
#include "typed_testing.h"

enum {
    MOST_VALUES = 12,
    MANY = 16384 + 7, /* elements that a team shares */
};

/* What numbers are taken from; integers the whole ones, each type those that it holds. */
static const double numbers[] = {1, 2, 0.5, -2, 3, 0, -0.5, 7, 0.25, -1, 5, 100};
enum { NUM_NUMBERS = sizeof numbers / sizeof *numbers };

static int64_t ops_tried, types_tried, compared;

/* An op in a type, and what it gives in the widest: of the pair (x, y) element x * count + y. */
typedef struct table {
    const twi_op *row;
    const twi_signature *signature;
    const char *attr;
    tw_dtype dtype, widest;
    int num_inputs, count;
    double values[MOST_VALUES];
    tw_tensor *results;
} table;

/* How the inputs lie: which element of the table is element i. */
typedef enum layout {
    BOTH_MOVE,  /* all pairs, again and again */
    X_MOVES,    /* with one y */
    Y_MOVES,    /* with one x */
    X_REPEATS,  /* a row of x beside rows of y: broadcast */
    NUM_LAYOUTS,
} layout;

static void pair_of(const table *t, layout how, int64_t i, int64_t *x, int64_t *y)
{
    *x = how == Y_MOVES ? 1 : how == BOTH_MOVE ? i / t->count % t->count : i % t->count;
    *y = how == X_MOVES ? 1 : how == X_REPEATS ? (i + i / t->count) % t->count : i % t->count;
}

static double part_of(const tw_tensor *tensor, int64_t i, bool imaginary)
{
    if (tensor->dtype == TW_COMPLEX64)
        return ((const float *)tensor->data)[2 * i + imaginary];
    if (tensor->dtype == TW_COMPLEX128)
        return ((const double *)tensor->data)[2 * i + imaginary];
    return imaginary ? 0 : twt_get(tensor, i);
}

/* Number k of the table's values. */
static void put_value(const table *t, tw_tensor *to, int64_t i, int64_t k)
{
    double imaginary = t->values[(k + 5) % t->count];
    if (to->dtype == TW_COMPLEX64)
        memcpy((float *)to->data + 2 * i, (float[]){(float)t->values[k], (float)imaginary}, 2 * sizeof(float));
    else if (to->dtype == TW_COMPLEX128)
        memcpy((double *)to->data + 2 * i, (double[]){t->values[k], imaginary}, 2 * sizeof(double));
    else
        twt_put(to, i, t->values[k]);
}

/* All pairs lie in so many elements, and then again. */
static int64_t period_of(const table *t, const tw_tensor *tensor)
{
    int64_t pairs = (int64_t)t->count * t->count;
    return tensor->elements < pairs ? tensor->elements : pairs;
}

/* The op on `elements` elements in that layout. */
static twt_op made(const table *t, tw_dtype dtype, layout how, int64_t elements)
{
    twt_op op = {.op = t->row->name, .num_inputs = t->num_inputs};
    for (int k = 0; k < t->num_inputs; k++) {
        bool stays = t->num_inputs == 2 && ((how == X_MOVES && k == 1) || (how == Y_MOVES && k == 0));
        bool row = t->num_inputs == 2 && how == X_REPEATS && k == 0;
        int64_t rows = elements / t->count;
        tw_shape shape = stays ? TW_SCALAR : TW_SHAPE(elements);
        if (how == X_REPEATS)
            shape = row ? TW_SHAPE(t->count) : TW_SHAPE(rows, t->count);
        op.inputs[k] = tw_tensor_create(dtype, shape);
        assert_non_null(op.inputs[k]);
        int64_t period = period_of(t, op.inputs[k]);
        for (int64_t i = 0; i < period; i++) {
            int64_t x, y;
            pair_of(t, how, i, &x, &y);
            put_value(t, op.inputs[k], i, k == 0 ? x : y);
        }
        char *bytes = op.inputs[k]->data;
        size_t size = tw_dtype_size(dtype), first = (size_t)period * size;
        for (size_t at = first; at < (size_t)op.inputs[k]->elements * size; at++)
            bytes[at] = bytes[at - first];
    }
    return op;
}

/* Of complex numbers, which are right within their size; what is not finite is so in either part. */
static bool is_near(const tw_tensor *got, int64_t i, const tw_tensor *results, int64_t k, double tolerance)
{
    double real = part_of(results, k, false), imaginary = part_of(results, k, true);
    double wrong = hypot(part_of(got, i, false) - real, part_of(got, i, true) - imaginary), size = hypot(real, imaginary);
    return !isfinite(real) || !isfinite(imaginary) || size > 1e30 || wrong <= tolerance * fmax(1, size);
}

static void compare(const table *t, const twt_op *op, layout how, const char *words)
{
    const tw_tensor *got = op->outputs[0];
    double tolerance = fmax(twt_tolerance_of(t->dtype), twt_tolerance_of(got->dtype));
    int64_t period = period_of(t, got);
    size_t period_size = (size_t)period * tw_dtype_size(got->dtype);
    for (int64_t i = 0; i < got->elements; i++) {
        while (i > 0 && i % period == 0 && i + period <= got->elements &&
               memcmp(got->data, (const char *)got->data + (size_t)(i / period) * period_size, period_size) == 0) {
            i += period; /* the bits that have been looked at */
            compared += period;
        }
        if (i == got->elements)
            break;
        int64_t x, y;
        pair_of(t, how, i, &x, &y);
        if (t->num_inputs == 1)
            y = 0;
        int64_t k = x * (t->num_inputs == 1 ? 1 : t->count) + y;
        if (tw_dtype_is_complex(got->dtype)) {
            if (!is_near(got, i, t->results, k, got->dtype == TW_COMPLEX64 ? 1e-4 : 1e-12))
                fail_msg("%s in %s (%s%s): of numbers %d and %d %.9g + %.9gi, expected %.9g + %.9gi", t->row->name,
                         tw_dtype_name(t->dtype), op->kernel, words, (int)x, (int)y, part_of(got, i, false),
                         part_of(got, i, true), part_of(t->results, k, false), part_of(t->results, k, true));
            compared++;
            continue;
        }
        double value = twt_get(got, i), expected = twt_get(t->results, k);
        if (!twt_says_the_same(expected, got->dtype))
            continue;
        bool near = twt_is_float(got->dtype) && fabs(value - expected) <= tolerance * fmax(1, fabs(expected));
        if (!(near || value == expected || (isnan(value) && isnan(expected))))
            fail_msg("%s in %s (%s%s): of %g and %g %.9g, expected %.9g", t->row->name, tw_dtype_name(t->dtype),
                     op->kernel, words, t->values[x], t->values[y], value, expected);
        compared++;
    }
}

/* In one layout: few elements and many, one thread and three. Sanitizers look at where many lie and who has them, which
 * three threads show them: what they give is compared without. False: there is no such kernel. */
static bool try_layout(const table *t, layout how)
{
    tw_error error = {0};
    for (int many = 0; many < 2; many++) {
        int64_t elements = many ? (MANY / t->count + 1) * t->count : (int64_t)t->count * t->count;
        bool compares = !many || !UNDER_SANITIZER;
        twt_op op = made(t, t->dtype, how, elements);
        tw_status status = twt_run_on(&op, true, compares ? 1 : 3, &error);
        if (status == TW_OK && compares) {
            compare(t, &op, how, "");
            tw_tensor *first = op.outputs[0];
            op.outputs[0] = NULL;
            assert_ok(twt_run_on(&op, true, 3, &error));
            if (!twt_same_bits(first, op.outputs[0]))
                fail_msg("%s: three threads give other bits than one", op.op);
            tw_tensor_release(first);
        }
        if (status == TW_OK) {
            assert_ok(twt_run_on(&op, false, 3, &error));
            if (compares)
                compare(t, &op, how, " in three threads");
        } else if (how != BOTH_MOVE && strstr(error.message, "shapes differ")) {
            many = 2; /* it does not broadcast */
        } else if (status != TW_UNIMPLEMENTED) {
            fail_msg("%s in %s: %s", op.op, tw_dtype_name(t->dtype), error.message);
        }
        twt_op_release(&op);
        if (status == TW_UNIMPLEMENTED)
            return false;
    }
    return true;
}

/* The numbers that both types hold. Nobody divides integers by zero or takes them to a power below it, and how many
 * bits one below it has depends on the type. */
static void choose(table *t)
{
    bool signless = strcmp(t->row->name, "Pow") == 0 || strcmp(t->row->name, "PopulationCount") == 0;
    t->count = 0;
    for (int i = 0; i < NUM_NUMBERS; i++)
        if (!twt_is_integer(t->dtype) ||
            (twt_says_the_same(numbers[i], t->dtype) && numbers[i] != 0 && !(signless && numbers[i] < 0)))
            t->values[t->count++] = numbers[i];
}

static void try_type(table *t)
{
    tw_error error = {0};
    choose(t);
    twt_op op = made(t, t->widest, BOTH_MOVE, t->num_inputs == 1 ? t->count : t->count * t->count);
    for (int i = 0; i < t->count && t->num_inputs == 1; i++) /* one input: each number once */
        put_value(t, op.inputs[0], i, i);
    tw_status status = twt_run_on(&op, true, 1, &error);
    if (status == TW_OK) {
        t->results = op.outputs[0];
        bool had = true;
        for (int how = 0; how < (t->num_inputs == 1 ? 1 : NUM_LAYOUTS) && had; how++) /* one input lies in one way */
            had = try_layout(t, (layout)how);
        types_tried += had;
    } else if (status != TW_UNIMPLEMENTED) {
        fail_msg("%s in %s: %s", op.op, tw_dtype_name(t->widest), error.message);
    }
    twt_op_release(&op);
}

/* The one type attribute that all inputs have; NULL: they have not. */
static const twi_attr_spec *type_attr(const twi_signature *s)
{
    for (int i = 0; i < s->num_inputs; i++)
        if (!s->inputs[i].type_attr || s->inputs[i].number_attr || s->inputs[i].list_attr ||
            strcmp(s->inputs[i].type_attr, s->inputs[0].type_attr) != 0)
            return NULL;
    for (int i = 0; i < s->num_attrs; i++)
        if (strcmp(s->attrs[i].name, s->inputs[0].type_attr) == 0)
            return &s->attrs[i];
    return NULL;
}

static bool has_required_attr(const twi_signature *s, const twi_attr_spec *type)
{
    for (int i = 0; i < s->num_attrs; i++)
        if (&s->attrs[i] != type && !s->attrs[i].has_default)
            return true;
    return false;
}

static void try_op(const twi_op *row)
{
    const twi_signature *signature = twi_op_signature(row);
    assert_non_null(signature);
    const twi_attr_spec *type = type_attr(signature);
    if (signature->num_inputs <= 2 && signature->num_outputs == 1 && type && !has_required_attr(signature, type)) {
        int64_t before = types_tried;
        for (int i = 0; i < TWT_NUM_DTYPES + 2; i++) {
            tw_dtype dtype = i < TWT_NUM_DTYPES ? twt_dtypes[i] : i == TWT_NUM_DTYPES ? TW_COMPLEX64 : TW_COMPLEX128;
            bool complex = tw_dtype_is_complex(dtype);
            bool allowed = !type->allowed_types || type->allowed_types >> dtype & 1;
            table t = {.row = row, .signature = signature, .dtype = dtype, .num_inputs = signature->num_inputs,
                       .widest = complex ? TW_COMPLEX128 : twt_is_float(dtype) ? TW_FLOAT64 : TW_INT64};
            if (allowed && (complex || twt_is_float(dtype) || twt_is_integer(dtype)))
                try_type(&t);
        }
        ops_tried += types_tried > before;
    }
}

static void every_pair_gives_the_same_in_every_type_and_layout(void **state)
{
    (void)state;
    for (const twi_op *const *family = twi_op_families; *family; family++)
        for (const twi_op *row = *family; row->name; row++)
            if (twi_op_is(row, TWI_ELEMENTWISE) && !twi_op_is(row, TWI_REWRITTEN))
                try_op(row);
    print_message("%lld ops in %lld types, %lld elements\n", (long long)ops_tried, (long long)types_tried,
                  (long long)compared);
    assert_true(ops_tried > 60 && types_tried > 300);
}

static void pairs_of_truths_are_right_in_every_layout(void **state)
{
    static const struct {
        const char *op;
        bool results[4];
    } ops[] = {{"LogicalAnd", {0, 0, 0, 1}},
               {"LogicalOr", {0, 1, 1, 1}},
               {"Equal", {1, 0, 0, 1}},
               {"NotEqual", {0, 1, 1, 0}}};
    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        table t = {.row = twi_op_find(ops[i].op), .dtype = TW_BOOL, .num_inputs = 2, .count = 2, .values = {0, 1}};
        t.results = tw_tensor_create(TW_BOOL, TW_SHAPE(4));
        assert_non_null(t.results);
        memcpy(t.results->data, ops[i].results, sizeof ops[i].results);
        for (int how = 0; how < NUM_LAYOUTS; how++)
            assert_true(try_layout(&t, (layout)how));
        tw_tensor_release(t.results);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_gives_the_same_in_every_type_and_layout),
        cmocka_unit_test(pairs_of_truths_are_right_in_every_layout),
    };
    return cmocka_run_group_tests(tests, twt_open_devices, twt_close_devices);
}
