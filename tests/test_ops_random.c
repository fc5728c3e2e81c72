/* test_ops_random.c - random streams: TensorFlow's values, from run to run, whatever the number of threads. */
#include "op_testing.h"

#include "golden/random.h"

#include <tower/session.h>

extern const twi_kernel twi_cpu_random_kernels[];

enum { MOST_ELEMENTS = 8192 };

typedef struct table {
    twi_resources resources;
    twi_resource stream;
} table;

static twi_resource *get_stream(twi_resources *self, const char *name)
{
    table *t = (table *)self;
    t->stream.name = name;
    return &t->stream;
}

/* A random node that is prepared and may run again and again. */
typedef struct node {
    const twi_kernel *kernel;
    table table;
    twi_attr attrs[3];
    twi_attrs attr_list;
    twi_operand inputs[3], output;
    tw_tensor *values[3];
    void *workspace;
    twi_prepare prepare;
} node;

static const twi_kernel *find_kernel(const char *op)
{
    for (const twi_kernel *k = twi_cpu_random_kernels; k->op; k++)
        if (strcmp(k->op, op) == 0)
            return k;
    fail_msg("no kernel for %s", op);
    return NULL;
}

static void set_input(node *n, int i, tw_tensor *value)
{
    n->values[i] = value;
    n->inputs[i] = (twi_operand){.dtype = value->dtype, .shape = value->shape, .elements = value->elements,
                                 .bytes = tw_tensor_bytes(value)};
    n->prepare.num_inputs = i + 1;
}

static void start(node *n, const char *op, tw_dtype dtype, tw_shape shape, int64_t seed, int64_t seed2, int threads)
{
    tw_error error = {0};
    n->kernel = find_kernel(op);
    n->table.resources.get = get_stream;
    n->attrs[0] = tw_attr_int("seed", seed);
    n->attrs[1] = tw_attr_int("seed2", seed2);
    n->attrs[2] = tw_attr_type("dtype", dtype);
    n->attr_list = (twi_attrs){n->attrs, 3};
    n->output = (twi_operand){.dtype = dtype, .shape = shape, .elements = tw_shape_elements(shape)};
    n->output.bytes = (size_t)n->output.elements * tw_dtype_size(dtype);
    if (n->prepare.num_inputs == 0)
        set_input(n, 0, tw_tensor_int32(0)); /* the shape, which run() does not look at */
    twi_prepare *p = &n->prepare;
    p->op = op;
    p->node = "random";
    p->attrs = &n->attr_list;
    p->inputs = n->inputs;
    p->outputs = &n->output;
    p->num_outputs = 1;
    p->threads = threads;
    p->resources = &n->table.resources;
    p->error = &error;
    assert_ok(n->kernel->prepare(p));
    n->workspace = calloc(1, p->workspace + 1);
}

static tw_status run_into(node *n, void *values, tw_error *error)
{
    const void *inputs[3];
    void *outputs[] = {values};
    for (int i = 0; i < n->prepare.num_inputs; i++)
        inputs[i] = tw_tensor_data(n->values[i]);
    twi_run r = {.state = n->prepare.state, .inputs = inputs, .outputs = outputs, .workspace = n->workspace,
                 .input_operands = n->inputs, .output_operands = &n->output, .num_inputs = n->prepare.num_inputs,
                 .num_outputs = 1, .threads = n->prepare.threads, .node = "random", .error = error};
    return n->kernel->run(&r);
}

static void draw(node *n, void *values)
{
    tw_error error = {0};
    assert_ok(run_into(n, values, &error));
}

static void stop(node *n)
{
    for (int i = 0; i < n->prepare.num_inputs; i++)
        tw_tensor_release(n->values[i]);
    free(n->workspace);
}

static uint64_t fnv(const void *data, size_t bytes)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(1099511628211);
    return hash;
}

/* Inputs as make_random.py has them. */
static void set_golden_inputs(node *n, const struct drawn *g)
{
    if (strcmp(g->op, "RandomUniformInt") == 0) {
        bool is_long = g->dtype == TW_INT64;
        set_input(n, 0, tw_tensor_int32(0));
        set_input(n, 1, is_long ? tw_tensor_int64(-(INT64_C(1) << 40)) : tw_tensor_int32(-5));
        set_input(n, 2, is_long ? tw_tensor_int64(INT64_C(1) << 41) : tw_tensor_int32(1000));
    } else if (strcmp(g->op, "RandomShuffle") == 0) {
        tw_tensor *value = tw_tensor_create(g->dtype, g->dtype == TW_INT32 ? TW_SHAPE(1001) : TW_SHAPE(101, 3));
        for (int i = 0; i < g->elements; i++)
            if (g->dtype == TW_INT32)
                ((int32_t *)value->data)[i] = i;
            else
                ((float *)value->data)[i] = (float)i;
        set_input(n, 0, value);
    } else if (strcmp(g->op, "Multinomial") == 0) {
        float logits[] = {0, 1, -1, 2, 3, 0.5f, 0.5f, -INFINITY};
        set_input(n, 0, tw_tensor_from(TW_FLOAT32, TW_SHAPE(2, 4), logits));
        set_input(n, 1, tw_tensor_int32(7));
    }
}

/* Values that pass through log, sin and cos may differ in the last bits between C libraries. */
static double tolerance(const struct drawn *g)
{
    if (!strstr(g->op, "Normal"))
        return 0;
    return g->dtype == TW_FLOAT64 ? 1e-13 : g->dtype == TW_FLOAT32 ? 2e-6 : g->dtype == TW_FLOAT16 ? 1e-3 : 8e-3;
}

static void compare(const struct drawn *g, const void *values, int64_t first, const double *expected, int count)
{
    tw_tensor view = {.dtype = g->dtype, .data = (void *)values};
    for (int i = 0; i < count; i++) {
        double value = tw_tensor_value(&view, first + i);
        if (!(fabs(value - expected[i]) <= tolerance(g) * fmax(1, fabs(expected[i]))))
            fail_msg("%s, element %lld: %.17g, expected %.17g", g->name, (long long)first + i, value, expected[i]);
    }
}

static void streams_equal_those_of_tensorflow_in_two_runs(void **state)
{
    (void)state;
    static double values[MOST_ELEMENTS];
    for (size_t i = 0; i < sizeof golden_random / sizeof golden_random[0]; i++) {
        const struct drawn *g = &golden_random[i];
        node n = {0};
        set_golden_inputs(&n, g);
        tw_shape shape = strcmp(g->op, "Multinomial") == 0 ? TW_SHAPE(2, 7)
                         : strstr(g->name, "rows")         ? TW_SHAPE(101, 3)
                                                           : TW_SHAPE(g->elements);
        start(&n, g->op, g->dtype, shape, 87654321, 1, 1);
        draw(&n, values);
        compare(g, values, 0, g->first, 11);
        draw(&n, values);
        compare(g, values, 0, g->second, 11);
        compare(g, values, g->elements - 3, g->last, 3);
        if (tolerance(g) == 0)
            assert_int_equal(fnv(values, n.output.bytes), g->hash);
        stop(&n);
    }
}

static void first_values_are_those_that_users_of_a_global_seed_42_know(void **state)
{
    (void)state;
    static const struct {
        const char *op;
        float values[5];
    } known[] = {
        {"RandomUniform", {0.6645621f, 0.44100678f, 0.3528825f, 0.46448255f, 0.03366041f}},
        {"RandomStandardNormal", {0.3274685f, -0.8426258f, 0.3194337f, -1.4075519f, -2.3880599f}},
        {"TruncatedNormal", {0.3274685f, -0.8426258f, 0.3194337f, -1.4075519f, -0.5677412f}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        node n = {0};
        float values[5];
        start(&n, known[i].op, TW_FLOAT32, TW_SHAPE(5), 42, 478163327, 1);
        draw(&n, values);
        assert_floats_near(values, known[i].values, 5, 1e-6);
        stop(&n);
    }
}

static void values_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    static const char *const ops[] = {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"};
    static float one[MOST_ELEMENTS], four[MOST_ELEMENTS];
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        node a = {0}, b = {0};
        start(&a, ops[i], TW_FLOAT32, TW_SHAPE(MOST_ELEMENTS - 3), 7, 8, 1);
        start(&b, ops[i], TW_FLOAT32, TW_SHAPE(MOST_ELEMENTS - 3), 7, 8, 4);
        draw(&a, one);
        draw(&b, four);
        assert_memory_equal(one, four, sizeof(float) * (MOST_ELEMENTS - 3));
        stop(&a);
        stop(&b);
    }
}

static void a_stream_with_its_counters_restored_goes_on_where_it_was(void **state)
{
    (void)state;
    node a = {0}, b = {0};
    float skipped[9], expected[9], values[9];
    start(&a, "TruncatedNormal", TW_FLOAT32, TW_SHAPE(9), 3, 4, 1);
    draw(&a, skipped);
    memcpy(b.table.stream.counters, a.table.stream.counters, sizeof b.table.stream.counters);
    b.table.stream.num_counters = a.table.stream.num_counters;
    start(&b, "TruncatedNormal", TW_FLOAT32, TW_SHAPE(9), 1000, 1001, 1);
    draw(&a, expected);
    draw(&b, values);
    assert_memory_equal(values, expected, sizeof values);
    stop(&a);
    stop(&b);
}

static void without_seeds_two_streams_differ(void **state)
{
    (void)state;
    node a = {0}, b = {0};
    float first[64], second[64];
    start(&a, "RandomUniform", TW_FLOAT32, TW_SHAPE(64), 0, 0, 1);
    start(&b, "RandomUniform", TW_FLOAT32, TW_SHAPE(64), 0, 0, 1);
    draw(&a, first);
    draw(&b, second);
    assert_memory_not_equal(first, second, sizeof first);
    stop(&a);
    stop(&b);
}

static void an_empty_integer_range_is_refused(void **state)
{
    (void)state;
    tw_error error = {0};
    node n = {0};
    int32_t value;
    set_input(&n, 0, tw_tensor_int32(0));
    set_input(&n, 1, tw_tensor_int32(5));
    set_input(&n, 2, tw_tensor_int32(5));
    start(&n, "RandomUniformInt", TW_INT32, TW_SHAPE(1), 1, 2, 1);
    assert_fails(run_into(&n, &value, &error), TW_INVALID_ARGUMENT, "Need minval < maxval, got 5 >= 5");
    stop(&n);
}

static void a_dimension_below_zero_is_refused_whether_it_is_fed_or_not(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_output shape = tw_placeholder(g, TW_INT32, TW_SHAPE(2));
    tw_attr dtype = tw_attr_type("dtype", TW_FLOAT32);
    tw_output drawn = tw_node_output(tw_add_node(g, "RandomUniform", "drawn", &shape, 1, &dtype, 1), 0);
    int32_t dims[] = {2, -1};
    tw_feed feed = {shape, tw_tensor_from(TW_INT32, TW_SHAPE(2), dims)};
    tw_session *s;
    tw_tensor *result = NULL;
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_fails(tw_session_run(s, &feed, 1, &drawn, 1, &result, &error), TW_INVALID_ARGUMENT,
                 "RandomUniform 'drawn': dimension 1 of the shape is -1");
    tw_output given = tw_constant_int32s(g, TW_SHAPE(2), dims);
    assert_null(tw_add_node(g, "RandomUniform", "given", &given, 1, &dtype, 1));
    assert_message(tw_graph_message(g), "RandomUniform 'given': dimension 1 of the shape is -1");
    tw_tensor_release(feed.tensor);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void random_nodes_are_not_computed_in_advance(void **state)
{
    (void)state;
    tw_error error = {0};
    twi_prepare p = {.op = "RandomUniform", .node = "x", .error = &error};
    assert_fails(find_kernel("RandomUniform")->prepare(&p), TW_UNIMPLEMENTED, "random");
}

static void strings_are_shuffled_as_numbers_are(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "bc", "", "def", "g"};
    node numbers = {0}, strings = {0};
    int32_t order[5];
    tw_string shuffled[5] = {{0}};
    tw_tensor *value = tw_tensor_create(TW_STRING, TW_SHAPE(5));
    for (int i = 0; i < 5; i++)
        assert_int_equal(tw_tensor_set_string(value, i, names[i], strlen(names[i])), TW_OK);
    set_input(&strings, 0, value);
    set_input(&numbers, 0, tw_tensor_from(TW_INT32, TW_SHAPE(5), (int32_t[]){0, 1, 2, 3, 4}));
    start(&strings, "RandomShuffle", TW_STRING, TW_SHAPE(5), 11, 12, 1);
    start(&numbers, "RandomShuffle", TW_INT32, TW_SHAPE(5), 11, 12, 1);
    draw(&strings, shuffled);
    draw(&numbers, order);
    for (int i = 0; i < 5; i++) {
        assert_string_equal(shuffled[i].data, names[order[i]]);
        twi_free(shuffled[i].data);
    }
    stop(&strings);
    stop(&numbers);
}

/* What a sampler whose weights stand in a file, or in a list, draws: 8 candidates of 4 classes. */
static tw_status sample_unigrams(const char *path, const float *weights, int count, int64_t *drawn, tw_error *error)
{
    tw_graph *g = tw_graph_create();
    tw_session *s = NULL;
    tw_tensor *result = NULL;
    tw_output classes = tw_cast(g, tw_constant_int32s(g, TW_SHAPE(1, 1), (int32_t[]){1}), TW_INT64);
    const tw_attr attrs[] = {
        tw_attr_int("num_true", 1), tw_attr_int("num_sampled", 8), tw_attr_bool("unique", false),
        tw_attr_int("range_max", 4), tw_attr_int("seed", 3), tw_attr_int("seed2", 4),
        tw_attr_string("vocab_file", path), tw_attr_floats("unigrams", weights, count),
    };
    tw_output out = tw_node_output(tw_add_node(g, "FixedUnigramCandidateSampler", NULL, &classes, 1, attrs, 8), 0);
    assert_int_equal(tw_session_create(g, NULL, &s, error), TW_OK);
    tw_status status = tw_session_run(s, NULL, 0, &out, 1, &result, error);
    if (status == TW_OK)
        memcpy(drawn, tw_tensor_data(result), 8 * sizeof *drawn);
    tw_tensor_release(result);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    return status;
}

static void write_vocabulary(const char *text)
{
    FILE *file = fopen("vocabulary.txt", "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void weights_of_classes_may_stand_in_a_file(void **state)
{
    (void)state;
    static const float weights[] = {9, 1.5f, 4, 0};
    int64_t listed[8], read[8];
    tw_error error = {0};
    assert_ok(sample_unigrams("", weights, 4, listed, &error));
    write_vocabulary("the,9\na,b,1.5\n\n4\nnever,0");
    assert_ok(sample_unigrams("vocabulary.txt", NULL, 0, read, &error));
    assert_memory_equal(listed, read, sizeof listed);
    assert_int_equal(sample_unigrams("", NULL, 0, read, &error), TW_INVALID_ARGUMENT);
    assert_int_equal(sample_unigrams("vocabulary.txt", weights, 4, read, &error), TW_INVALID_ARGUMENT);
    write_vocabulary("the,9\na,few\n");
    assert_int_equal(sample_unigrams("vocabulary.txt", NULL, 0, read, &error), TW_INVALID_ARGUMENT);
    assert_non_null(strstr(error.message, "a,few"));
    remove("vocabulary.txt");
    assert_int_equal(sample_unigrams("vocabulary.txt", NULL, 0, read, &error), TW_NOT_FOUND);
}

/* Rounds take time, and no more than a user could want. */
static void a_shuffle_of_indices_has_so_many_rounds_at_most(void **state)
{
    (void)state;
    static const struct {
        int64_t rounds;
        const char *words;
    } cases[] = {{-2, "an even number from 4 on"}, {4, NULL}, {4096, NULL}, {4098, "expected at most 4096"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tw_error error = {0};
        twt_op op = {.op = "RandomIndexShuffle", .num_inputs = 3, .attrs = {tw_attr_int("rounds", cases[i].rounds)},
                     .num_attrs = 1};
        op.inputs[0] = tw_tensor_from(TW_INT32, TW_SCALAR, (int32_t[]){3});
        op.inputs[1] = tw_tensor_from(TW_INT32, TW_SHAPE(3), (int32_t[]){1, 2, 3});
        op.inputs[2] = tw_tensor_from(TW_INT32, TW_SCALAR, (int32_t[]){9});
        tw_status status = twt_op_run(&op, &error);
        assert_int_equal(status, cases[i].words ? TW_INVALID_ARGUMENT : TW_OK);
        assert_message(error.message, cases[i].words ? cases[i].words : "");
        twt_op_release(&op);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_equal_those_of_tensorflow_in_two_runs),
        cmocka_unit_test(first_values_are_those_that_users_of_a_global_seed_42_know),
        cmocka_unit_test(values_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(a_stream_with_its_counters_restored_goes_on_where_it_was),
        cmocka_unit_test(without_seeds_two_streams_differ),
        cmocka_unit_test(strings_are_shuffled_as_numbers_are),
        cmocka_unit_test(an_empty_integer_range_is_refused),
        cmocka_unit_test(a_dimension_below_zero_is_refused_whether_it_is_fed_or_not),
        cmocka_unit_test(weights_of_classes_may_stand_in_a_file),
        cmocka_unit_test(a_shuffle_of_indices_has_so_many_rounds_at_most),
        cmocka_unit_test(random_nodes_are_not_computed_in_advance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
