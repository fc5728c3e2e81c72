/* test_wrong_nodes.c - each op of which TensorFlow's values are known, with one thing about it wrong: an input that is
 * missing, of another type, shape or value, an attribute that is missing, of another kind or value. It is refused with
 * words that name it, or gives what its shape rule says; memory of more than its share is not asked for. Then with
 * shapes of which less is known: what a shape rule says of part of them fits what it says of all. */
#include "sparing_memory.h"
#include "typed_testing.h"

#include <tower/session.h>
#include <tower/train.h>

enum {
    LARGEST_RUN = 1 << 14,  /* elements of an output */
    MOST_ELEMENTS = 1 << 12 /* of a changed input */
};

static int tried, refused, given, guesses;

/* ---- one of each ------------------------------------------------------------------------------------------------- */

static uint64_t seen[1 << 15]; /* of op, ranks of inputs, and attributes */
static size_t num_seen;
static bool counts_types; /* of inputs, too */
enum { ONE_OF = UNDER_SANITIZER ? 3 : 1 }; /* those in every type */

static uint64_t mixed(uint64_t hash, const char *text, int number)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return (hash ^ (unsigned)(number + 1)) * UINT64_C(1099511628211);
}

static bool is_new(const twt_case *c)
{
    uint64_t hash = mixed(UINT64_C(14695981039346656037), c->op.op, 0);
    for (int i = 0; i < c->op.num_inputs && counts_types; i++)
        hash = mixed(hash, tw_dtype_name(c->op.inputs[i]->dtype), 0);
    for (int i = 0; i < c->op.num_inputs; i++)
        hash = mixed(hash, "", c->op.inputs[i]->shape.rank);
    for (int i = 0; i < c->op.num_attrs; i++) {
        const tw_attr *attr = &c->op.attrs[i];
        hash = mixed(mixed(hash, attr->name, 0), attr->kind == TW_ATTR_STRING ? attr->s.data : "", 0);
    }
    for (size_t i = 0; i < num_seen; i++)
        if (seen[i] == hash)
            return false;
    assert_true(num_seen < sizeof seen / sizeof *seen);
    seen[num_seen++] = hash;
    if (counts_types && hash % ONE_OF != 0)
        return false;
    return !c->failure && !twi_op_is(twi_op_find(c->op.op), TWI_STATEFUL);
}

static void each_kind(void (*look)(twt_case *c))
{
    static const char *const files[] = {"ops_math.txt", "ops_array.txt",   "ops_nn.txt",    "ops_image.txt",
                                        "ops_rare.txt", "ops_complex.txt", "ops_other.txt", "ops_extra.txt"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        twt_each_case(files[i], look);
    num_seen = 0;
}

/* ---- what is wrong ------------------------------------------------------------------------------------------------
 */

static bool is_small(const tw_node *node)
{
    for (int i = 0; i < node->num_outputs; i++) {
        int64_t elements = tw_shape_elements(node->output_shapes[i]);
        if (elements > LARGEST_RUN || (elements < 0 && !twi_op_is(node->op, TWI_MAKES_SHAPE)))
            return false;
    }
    return true;
}

/* Builds it, and runs it by the plain kernel and the fastest. Of what is fed the shapes are known, and the values when
 * it runs. */
static void try_as(const twt_op *given_op, bool fed, const char *what)
{
    twt_op op = *given_op;
    tw_graph *graph = tw_graph_create();
    tw_output inputs[TWT_MOST];
    op.fed = fed;
    for (int i = 0; i < op.num_inputs; i++)
        inputs[i] = fed ? tw_placeholder(graph, op.inputs[i]->dtype, op.inputs[i]->shape)
                        : tw_constant(graph, op.inputs[i]);
    tw_node *node = tw_add_node(graph, op.op, "n", inputs, op.num_inputs, op.attrs, op.num_attrs);
    tw_status status = tw_graph_status(graph);
    if (!node && (status == TW_OK || status == TW_INTERNAL || !strstr(tw_graph_message(graph), op.op)))
        fail_msg("%s, %s: built with status %d, \"%s\"", op.op, what, status, tw_graph_message(graph));
    for (int plain = 0; plain < 2 && node && is_small(node); plain++) {
        tw_error error = {0};
        op.plain = plain;
        op.num_outputs = 0;
        status = twt_run_node(&op, node, twt_one_thread->items[0], &error);
        if (status == TW_INTERNAL || (status != TW_OK && !error.message[0]))
            fail_msg("%s, %s: runs with status %d, \"%s\"", op.op, what, status, error.message);
        twt_op_release_outputs(&op);
    }
    tried++;
    refused += status != TW_OK;
    given += status == TW_OK;
    tw_graph_destroy(graph);
}

static void try(const twt_op *op, const char *what)
{
    try_as(op, false, what);
}

/* The same elements again and again, in another shape or type. */
static tw_tensor *laid_out(const tw_tensor *from, tw_dtype dtype, tw_shape shape)
{
    int64_t elements = tw_shape_elements(shape);
    tw_tensor *to = elements >= 0 && elements <= MOST_ELEMENTS ? tw_tensor_create(dtype, shape) : NULL;
    for (int64_t i = 0; to && i < elements && from->elements; i++)
        if (dtype == TW_STRING && from->dtype == TW_STRING) {
            const tw_string *text = (const tw_string *)from->data + i % from->elements;
            assert_int_equal(tw_tensor_set_string(to, i, text->data, text->size), TW_OK);
        } else if (dtype == from->dtype) {
            size_t size = tw_dtype_size(dtype);
            memcpy((char *)to->data + (size_t)i * size, (const char *)from->data + (size_t)(i % from->elements) * size,
                   size);
        } else if (from->dtype != TW_STRING) {
            twt_put(to, i, tw_tensor_value(from, i % from->elements));
        }
    return to;
}

/* The number-th wrong shape for the input; false: there are no more. */
static bool wrong_shape(tw_shape right, int number, tw_shape *shape)
{
    int last = right.rank - 1, low = right.rank > 0;
    *shape = right;
    switch (number) {
    case 0:
        *shape = TW_SCALAR;
        return true;
    case 1:
        *shape = TW_SHAPE(0);
        return true;
    case 2:
        *shape = TW_SHAPE(3);
        return true;
    case 3:
        *shape = TW_SHAPE(2, 2, 2, 2, 2, 2);
        return true;
    case 4: /* one more in front */
        shape->rank = right.rank + 1;
        shape->dims[0] = 1;
        memcpy(shape->dims + 1, right.dims, sizeof *right.dims * (size_t)(TW_MAX_RANK - 1));
        return true;
    case 5: /* one less */
        shape->rank = right.rank - low;
        memcpy(shape->dims, right.dims + low, sizeof *right.dims * (size_t)(TW_MAX_RANK - 1));
        return true;
    case 6:
        shape->rank = right.rank - low;
        return true;
    case 7:
        shape->dims[0] += 1;
        return true;
    case 8:
        shape->dims[low ? last : 0] += 1;
        return true;
    case 9:
        shape->dims[0] = 0;
        return true;
    case 10:
        shape->dims[low ? last : 0] = 0;
        return true;
    case 11:
        shape->dims[low ? last : 0] = 1;
        return true;
    case 12:
        shape->dims[0] = 1;
        return true;
    case 13:
        shape->dims[low ? last / 2 : 0] += 2;
        return true;
    case 14: /* rows without elements, of which there are too many to be gone through one by one */
    case 15:
        shape->rank = right.rank > 2 ? right.rank : 2;
        shape->dims[number == 14 ? 0 : shape->rank - 1] = INT64_C(1) << 40;
        shape->dims[number == 14 ? shape->rank - 1 : 0] = 0;
        return true;
    default:
        return false;
    }
}

/* The number-th other content of the same type and shape. */
static bool wrong_value(tw_tensor *tensor, int number)
{
    static const double numbers[] = {0, -1, 1, 2, 100, -3, 2147483647, -2147483648.0, 1e18, (double)INT64_MIN};
    enum { NUMBERS = sizeof numbers / sizeof *numbers };
    int last = (int)tensor->elements - 1;
    if (tensor->elements == 0)
        return false;
    if (tensor->dtype == TW_STRING) {
        static const tw_string texts[] = {{"", 0}, {"\xff\xfe", 2}, {"-12.5e300x", 10}, {"a/b,c d", 7}, {"\0\n", 2}};
        if (number >= 5)
            return false;
        return tw_tensor_set_string(tensor, number % 2 ? last : 0, texts[number].data, texts[number].size) == TW_OK;
    }
    bool is_float = twt_is_float(tensor->dtype) || tw_dtype_is_complex(tensor->dtype);
    if (number >= 3 * NUMBERS + 3 * is_float)
        return false;
    double value = number < 3 * NUMBERS    ? numbers[number / 3]
                   : number == 3 * NUMBERS ? NAN
                   : number % 2            ? INFINITY
                                           : -INFINITY;
    for (int i = 0; i <= last; i++) /* all, the first, the last */
        if (number % 3 == 0 || i == (number % 3 == 1 ? 0 : last)) {
            if (tw_dtype_is_complex(tensor->dtype))
                memset((char *)tensor->data + (size_t)i * tw_dtype_size(tensor->dtype), 0,
                       tw_dtype_size(tensor->dtype));
            else
                twt_put(tensor, i,
                        fmin(fmax(value, twt_is_integer(tensor->dtype) ? twt_smallest(tensor->dtype) : value),
                             twt_is_integer(tensor->dtype) ? twt_largest(tensor->dtype) : value));
        }
    return true;
}

static void with_input(const twt_op *right, int i, tw_tensor *tensor, const char *what)
{
    twt_op op = *right;
    if (!tensor)
        return;
    op.inputs[i] = tensor;
    try(&op, what);
    tw_tensor_release(tensor);
}

/* False: there is no such value. */
static bool with_value(const twt_op *right, int i, int number)
{
    char what[100];
    twt_op op = *right;
    op.inputs[i] = laid_out(right->inputs[i], right->inputs[i]->dtype, right->inputs[i]->shape);
    bool is_one = op.inputs[i] && wrong_value(op.inputs[i], number);
    for (int fed = 0; fed < 2 && is_one; fed++) {
        snprintf(what, sizeof what, "input %d of type %s has value %d%s", i, tw_dtype_name(op.inputs[i]->dtype), number,
                 fed ? ", fed" : "");
        try_as(&op, fed, what);
    }
    tw_tensor_release(op.inputs[i]);
    return is_one;
}

static void wrong_inputs(const twt_op *right)
{
    char what[100];
    tw_shape shape;
    twt_op op = *right;
    for (int i = 0; i < right->num_inputs; i++) {
        tw_tensor *input = right->inputs[i];
        for (int t = 0; t < TWT_NUM_DTYPES; t++) {
            snprintf(what, sizeof what, "input %d is of type %s", i, tw_dtype_name(twt_dtypes[t]));
            with_input(right, i, laid_out(input, twt_dtypes[t], input->shape), what);
        }
        for (int k = 0; wrong_shape(input->shape, k, &shape); k++) {
            snprintf(what, sizeof what, "input %d is in shape %d", i, k);
            with_input(right, i, laid_out(input, input->dtype, shape), what);
        }
        for (int k = 0; with_value(right, i, k); k++)
            ;
    }
    for (int i = 0; i < right->num_inputs; i++) { /* one is missing, or there twice */
        op = *right;
        op.num_inputs--;
        memmove(op.inputs + i, op.inputs + i + 1, sizeof *op.inputs * (size_t)(op.num_inputs - i));
        try(&op, "an input is missing");
        op = *right;
        if (op.num_inputs < TWT_MOST) {
            memmove(op.inputs + i + 1, op.inputs + i, sizeof *op.inputs * (size_t)(op.num_inputs - i));
            op.num_inputs++;
            try(&op, "an input is there twice");
        }
    }
}

/* The number-th value of the attribute, of its kind or, at the end, of another; false: there are no more. */
static bool wrong_attr(const twi_attr_spec *spec, const tw_attr *right, int number, tw_attr *attr)
{
    static const int64_t ints[] = {-1, 0, 1, 2, 3, 5, 100, INT32_MAX, INT64_MIN};
    static const float floats[] = {-1, 0, 0.5f, 1, 3, 1e30f, NAN};
    static const char *const texts[] = {"", "nonsense", "SAME", "VALID", "NCHW", "EXPLICIT", "float", "a,b->c"};
    static const int64_t lists[][6] = {
        {0},       {1, 1},          {1, 2, 2, 1},    {1, 0, 2, 1},        {2, 1, 1, 2}, {-1, -1, -1, -1},
        {1, 3, 1}, {1, 1, 2, 2, 1}, {0, 0, 0, 0, 1}, {INT32_MAX, 1, 1, 1}};
    static const int lengths[] = {0, 2, 4, 4, 4, 4, 3, 5, 5, 4};
    static const tw_dtype types[] = {TW_FLOAT32, TW_INT32, TW_STRING};
    static const tw_shape shapes[] = {{-1, {0}}, {0, {0}}, {1, {3}}, {2, {-1, 2}}, {3, {0, 1, 2}}, {1, {INT64_MAX}}};
    const char *name = spec->name;
#define OF(array, made) (number < (int)(sizeof array / sizeof *array) && (*attr = (made), true))
    if (number == 20) /* of another kind */
        return *attr = spec->kind == TW_ATTR_INT ? tw_attr_float(name, 1) : tw_attr_int(name, 1), true;
    switch (spec->kind) {
    case TW_ATTR_INT:
        return OF(ints, tw_attr_int(name, ints[number]));
    case TW_ATTR_FLOAT:
        return OF(floats, tw_attr_float(name, floats[number]));
    case TW_ATTR_BOOL:
        return number < 2 && (*attr = tw_attr_bool(name, number), true);
    case TW_ATTR_TYPE:
        return OF(twt_dtypes, tw_attr_type(name, twt_dtypes[number]));
    case TW_ATTR_STRING:
        if (number < spec->num_allowed_strings)
            return *attr = tw_attr_string(name, spec->allowed_strings[number]), true;
        number -= spec->num_allowed_strings;
        return OF(texts, tw_attr_string(name, texts[number]));
    case TW_ATTR_SHAPE:
        return OF(shapes, tw_attr_shape(name, shapes[number]));
    case TW_ATTR_INTS:
        if (right && number == 10) { /* one less */
            *attr = tw_attr_ints(name, right->ints, right->count - (right->count > 0));
            return true;
        }
        return OF(lists, tw_attr_ints(name, lists[number], lengths[number]));
    case TW_ATTR_TYPES:
        return number < 4 && (*attr = tw_attr_types(name, types, number), true);
    case TW_ATTR_FLOATS:
        return number < 4 && (*attr = tw_attr_floats(name, floats, number), true);
    default:
        return false;
    }
#undef OF
}

static void wrong_attrs(const twt_op *right)
{
    char what[200];
    const twi_signature *signature = twi_op_signature(twi_op_find(right->op));
    assert_non_null(signature);
    for (int i = 0; i < signature->num_attrs; i++) {
        const twi_attr_spec *spec = &signature->attrs[i];
        twt_op op = *right;
        int at = 0;
        while (at < op.num_attrs && strcmp(op.attrs[at].name, spec->name) != 0)
            at++;
        bool is_there = at < op.num_attrs;
        if (is_there) {
            memmove(op.attrs + at, op.attrs + at + 1, sizeof *op.attrs * (size_t)(op.num_attrs - at - 1));
            op.num_attrs--;
            try(&op, "an attribute is missing");
        }
        for (int number = 0; number <= 20 && op.num_attrs < TWT_MOST; number++) {
            op.num_attrs = right->num_attrs - is_there;
            if (!wrong_attr(spec, is_there ? &right->attrs[at] : NULL, number, &op.attrs[op.num_attrs]))
                continue;
            op.num_attrs++;
            snprintf(what, sizeof what, "attribute %s has value %d", spec->name, number);
            try(&op, what);
        }
    }
}

static void make_wrong(twt_case *c)
{
    if (!is_new(c))
        return;
    tw_set_allocator(sparing_resize, NULL);
    wrong_inputs(&c->op);
    wrong_attrs(&c->op);
    tw_set_allocator(NULL, NULL);
}

/* Loops are compiled for each type: shapes and values of which they meet what they refuse, and what is empty. */
static void make_wrong_in_type(const twt_typed *t)
{
    char what[100];
    tw_shape shape;
    twt_op op = twt_made(t, t->to, -1, 1);
    twt_case typed = {.op = op};
    bool is_known = !is_new(&typed);
    tw_set_allocator(sparing_resize, NULL);
    for (int i = 0; i < op.num_inputs && !is_known; i++) {
        for (int k = 0; wrong_shape(op.inputs[i]->shape, k, &shape); k++) {
            snprintf(what, sizeof what, "input %d of type %s is in shape %d", i, tw_dtype_name(t->to), k);
            with_input(&op, i, laid_out(op.inputs[i], op.inputs[i]->dtype, shape), what);
        }
        for (int k = 0; k < 9 && with_value(&op, i, k); k++)
            ;
    }
    tw_set_allocator(NULL, NULL);
    twt_op_release(&op);
}

static void make_wrong_in_each_type(twt_case *c)
{
    if (!c->failure)
        twt_in_each_type(c, make_wrong_in_type);
}

static void what_is_wrong_is_refused_or_gives_values_in_every_type(void **state)
{
    (void)state;
    refused = given = 0;
    counts_types = true;
    each_kind(make_wrong_in_each_type);
    counts_types = false;
    print_message("%d refused, %d gave values\n", refused, given);
    assert_true(refused > 10000 / ONE_OF && given > 10000 / ONE_OF);
}

static void what_is_wrong_in_one_thing_is_refused_or_gives_values(void **state)
{
    (void)state;
    each_kind(make_wrong);
    print_message("%d nodes with one thing wrong: %d refused, %d gave values\n", tried, refused, given);
    assert_true(refused > 10000 && given > 10000);
}

/* ---- what is known in part ----------------------------------------------------------------------------------------
 */

enum { UNKNOWN, RANK, SHAPE, VALUE }; /* what is known of an input */

/* The node with inputs of which so much is known; the dimension `open` of input `of` is not (-1: all are). */
static tw_node *guess(tw_graph *g, const twt_op *op, const int *known, int of, int open)
{
    tw_output inputs[TWT_MOST];
    for (int i = 0; i < op->num_inputs; i++) {
        tw_shape shape = op->inputs[i]->shape;
        for (int d = 0; d < shape.rank; d++)
            if (known[i] == RANK || (i == of && d == open))
                shape.dims[d] = -1;
        if (known[i] == UNKNOWN)
            shape = TW_UNKNOWN_SHAPE;
        inputs[i] = known[i] == VALUE ? tw_constant(g, op->inputs[i]) : tw_placeholder(g, op->inputs[i]->dtype, shape);
    }
    return tw_add_node(g, op->op, "n", inputs, op->num_inputs, op->attrs, op->num_attrs);
}

static void expect_fitting(const twt_case *c, const int *known, int of, int open, const tw_node *whole)
{
    tw_graph *g = tw_graph_create();
    const tw_node *part = guess(g, &c->op, known, of, open);
    guesses++;
    if (!part)
        fail_msg("%s:%d: refused where less is known of input %d: %s", c->file, c->line, of, tw_graph_message(g));
    for (int i = 0; i < part->num_outputs; i++) {
        char a[128], b[128];
        tw_shape merged;
        if (twi_merge_shapes(part->output_shapes[i], whole->output_shapes[i], &merged, NULL) != TW_OK)
            fail_msg("%s:%d: output %d is said to be %s where less is known of input %d, and is %s", c->file, c->line,
                     i, tw_shape_text(part->output_shapes[i], a, sizeof a), of,
                     tw_shape_text(whole->output_shapes[i], b, sizeof b));
    }
    tw_graph_destroy(g);
}

static void guess_shapes(twt_case *c)
{
    int known[TWT_MOST], n = c->op.num_inputs;
    if (!is_new(c))
        return;
    tw_graph *g = tw_graph_create();
    for (int i = 0; i < n; i++)
        known[i] = VALUE;
    tw_node *whole = guess(g, &c->op, known, -1, -1);
    if (!whole)
        fail_msg("%s:%d: %s", c->file, c->line, tw_graph_message(g));
    for (int all = UNKNOWN; all <= SHAPE; all++) { /* of all inputs, of all but one, of one */
        for (int i = 0; i < n; i++)
            known[i] = all;
        expect_fitting(c, known, -1, -1, whole);
        for (int i = 0; i < n; i++) {
            known[i] = VALUE;
            expect_fitting(c, known, i, -1, whole);
            known[i] = all;
        }
        for (int i = 0; i < n; i++)
            known[i] = VALUE;
        for (int i = 0; i < n; i++) {
            known[i] = all;
            expect_fitting(c, known, i, -1, whole);
            for (int d = 0; d < c->op.inputs[i]->shape.rank && all == SHAPE; d++)
                expect_fitting(c, known, i, d, whole);
            known[i] = VALUE;
        }
    }
    tw_graph_destroy(g);
}

static void what_is_inferred_of_part_fits_what_is_of_all(void **state)
{
    (void)state;
    each_kind(guess_shapes);
    print_message("%d nodes of which less is known\n", guesses);
    assert_true(guesses > 10000);
}

/* ---- gradients of what is known in part
 * ------------------------------------------------------------------------------ */

static int differentiated;

/* The gradients of the sum of all outputs that can be differentiated; false: there are none. */
static bool gradients(tw_graph *g, tw_node *node, tw_output *grads)
{
    tw_output y[TWT_MOST];
    int count = 0;
    for (int i = 0; i < node->num_outputs; i++)
        if (twt_is_float(node->output_types[i]))
            y[count++] = (tw_output){node, i};
    if (count == 0 || node->num_inputs == 0)
        return false;
    tw_gradients(g, y, count, NULL, node->inputs, node->num_inputs, grads);
    return tw_graph_status(g) == TW_OK;
}

static void run_gradients(const twt_op *op, const tw_output *inputs, bool fed, tw_session *s, const tw_output *grads,
                          int i, tw_tensor **result, tw_error *error)
{
    tw_feed feeds[TWT_MOST];
    for (int k = 0; k < op->num_inputs; k++)
        feeds[k] = (tw_feed){inputs[k], op->inputs[k]};
    *error = (tw_error){0};
    tw_session_run(s, feeds, fed ? op->num_inputs : 0, &grads[i], 1, result, error);
}

static void expect_near(const twt_case *c, int i, const tw_tensor *known, const tw_tensor *unknown)
{
    char a[128], b[128];
    if (!tw_shape_equal(known->shape, unknown->shape))
        fail_msg("%s:%d: the gradient of input %d has shape %s where all is known, %s where nothing is", c->file,
                 c->line, i, tw_shape_text(known->shape, a, sizeof a), tw_shape_text(unknown->shape, b, sizeof b));
    for (int64_t e = 0; e < known->elements; e++) {
        double x = tw_tensor_value(known, e), y = tw_tensor_value(unknown, e);
        if (!twt_near(x, y, twt_tolerance_of(known->dtype)))
            fail_msg("%s:%d: element %lld of the gradient of input %d is %g where all is known, %g where nothing is",
                     c->file, c->line, (long long)e, i, x, y);
    }
}

static void guess_gradients(twt_case *c)
{
    if (!is_new(c))
        return;
    int known[TWT_MOST];
    tw_error error[2] = {{0}};
    tw_graph *g[2];
    tw_node *node[2];
    tw_session *s[2] = {NULL};
    tw_output grads[2][TWT_MOST];
    bool there[2];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < TWT_MOST; i++)
            known[i] = k ? UNKNOWN : VALUE;
        g[k] = tw_graph_create();
        node[k] = guess(g[k], &c->op, known, -1, -1);
        assert_non_null(node[k]);
        there[k] = gradients(g[k], node[k], grads[k]);
    }
    for (int k = 0; k < 2 && there[0] && there[1]; k++)
        assert_int_equal(
            tw_session_create(g[k], &(tw_session_options){.devices = twt_one_thread, .disable = k ? NULL : "fold"},
                              &s[k], &error[k]),
            TW_OK);
    for (int i = 0; i < c->op.num_inputs && s[1]; i++) {
        tw_tensor *result[2] = {NULL};
        if (!grads[0][i].node || !grads[1][i].node)
            continue;
        for (int k = 0; k < 2; k++)
            run_gradients(&c->op, node[k]->inputs, k, s[k], grads[k], i, &result[k], &error[k]);
        if (!result[0] != !result[1])
            fail_msg("%s:%d: the gradient of input %d: \"%s\" where all is known, \"%s\" where nothing is", c->file,
                     c->line, i, error[0].message, error[1].message);
        if (result[0])
            expect_near(c, i, result[0], result[1]);
        differentiated += result[0] != NULL;
        tw_tensor_release(result[0]);
        tw_tensor_release(result[1]);
    }
    for (int k = 0; k < 2; k++) {
        tw_session_destroy(s[k]);
        tw_graph_destroy(g[k]);
    }
}

static void gradients_of_unknown_shapes_are_those_of_known_ones(void **state)
{
    (void)state;
    each_kind(guess_gradients);
    print_message("%d gradients\n", differentiated);
    assert_true(differentiated > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_in_one_thing_is_refused_or_gives_values),
        cmocka_unit_test(what_is_wrong_is_refused_or_gives_values_in_every_type),
        unsanitized_test(what_is_inferred_of_part_fits_what_is_of_all),
        unsanitized_test(gradients_of_unknown_shapes_are_those_of_known_ones),
    };
    return cmocka_run_group_tests(tests, twt_open_devices, twt_close_devices);
}
