/* Sessions: plans, copies, variables, towers, and runs from several threads. label: threads */
#include "testing.h"

#include <pthread.h>
#include <string.h>
#include <tower/nn.h>
#include <tower/ops.h>
#include <tower/session.h>

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

typedef struct fixture {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
    tw_error error;
} fixture;

static fixture open_fixture(int cpus, int gpus)
{
    fixture f = {.g = tw_graph_create()};
    tw_error error = {0};
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_devices = cpus, .virtual_gpus = gpus}, &f.devices, &error));
    return f;
}

static void start(fixture *f, tw_session_options options)
{
    tw_error error = {0};
    options.devices = f->devices;
    assert_string_equal(tw_graph_message(f->g), "");
    assert_ok(tw_session_create(f->g, &options, &f->s, &error));
}

static void close_fixture(fixture *f)
{
    tw_session_destroy(f->s);
    tw_devices_destroy(f->devices);
    tw_graph_destroy(f->g);
}

static tw_tensor *run_one(fixture *f, tw_output fetch)
{
    tw_error error = {0};
    tw_tensor *result = NULL;
    assert_ok(tw_session_run(f->s, NULL, 0, &fetch, 1, &result, &error));
    return result;
}

static void assert_values(tw_tensor *tensor, const float *expected, int count)
{
    assert_non_null(tensor);
    assert_int_equal(tw_tensor_elements(tensor), count);
    for (int i = 0; i < count; i++)
        assert_true(tw_tensor_value(tensor, i) == expected[i]);
    tw_tensor_release(tensor);
}

static tw_output matrix(fixture *f, int rows, int columns, const float *values)
{
    return tw_constant_floats(f->g, TW_SHAPE(rows, columns), values);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void matmul_of_the_guide_gives_the_guides_values(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    tw_output product = tw_matmul(f.g, matrix(&f, 2, 3, (float[]){1, 2, 3, 4, 5, 6}),
                                  matrix(&f, 3, 2, (float[]){1, 2, 3, 4, 5, 6}));
    start(&f, (tw_session_options){0});
    assert_values(run_one(&f, product), (float[]){22, 28, 49, 64}, 4);
    close_fixture(&f);
}

static void texts_are_added_one_behind_the_other(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    tw_string words[] = {{"a", 1}, {"", 0}, {"ccc", 3}}, dot = {".", 1};
    tw_tensor *texts[] = {tw_tensor_from(TW_STRING, TW_SHAPE(3), words), tw_tensor_from(TW_STRING, TW_SHAPE(), &dot)};
    tw_output inputs[] = {tw_constant(f.g, texts[0]), tw_constant(f.g, texts[1])};
    tw_tensor_release(texts[0]);
    tw_tensor_release(texts[1]);
    tw_output sum = tw_node_output(tw_add_node(f.g, "Add", NULL, inputs, 2, NULL, 0), 0);
    static const char *const expected[] = {"a.", ".", "ccc."};
    start(&f, (tw_session_options){0});
    tw_tensor *result = run_one(&f, sum);
    for (int i = 0; i < 3; i++)
        assert_string_equal(((tw_string *)tw_tensor_data(result))[i].data, expected[i]);
    tw_tensor_release(result);
    close_fixture(&f);
}

/* [[3 5]] x [[2] [4]], and the guide's own product on two GPUs with their sum on the CPU; where each ran, as logged. */
static void products_of_the_guide_are_the_same_on_every_kind_of_device(void **state)
{
    (void)state;
    for (int gpu = 0; gpu < 2; gpu++) {
        fixture f = open_fixture(1, 2);
        tw_output small, products[2], sum;
        TW_DEVICE(f.g, gpu ? "/gpu:1" : "/cpu:0")
            small = tw_matmul(f.g, matrix(&f, 1, 2, (float[]){3, 5}), matrix(&f, 2, 1, (float[]){2, 4}));
        for (int i = 0; i < 2; i++)
            TW_DEVICE(f.g, gpu ? "/gpu:%d" : "/cpu:0", i)
                products[i] = tw_matmul(f.g, matrix(&f, 2, 3, (float[]){1, 2, 3, 4, 5, 6}),
                                        matrix(&f, 3, 2, (float[]){1, 2, 3, 4, 5, 6}));
        TW_DEVICE(f.g, "/cpu:0")
            sum = tw_add_n(f.g, products, 2);
        start(&f, (tw_session_options){.disable = "fold,merge"});
        assert_values(run_one(&f, small), (float[]){26}, 1);
        assert_values(run_one(&f, sum), (float[]){44, 56, 98, 128}, 4);
        assert_string_equal(tw_session_device(f.s, small.node), gpu ? "/job:localhost/replica:0/task:0/device:GPU:1"
                                                                    : "/job:localhost/replica:0/task:0/device:CPU:0");
        close_fixture(&f);
    }
}

static void three_gpus_multiply_and_the_cpu_adds(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 3);
    tw_output products[3], sum;
    for (int i = 0; i < 3; i++)
        TW_DEVICE(f.g, "/gpu:%d", i)
            products[i] = tw_matmul(f.g, matrix(&f, 2, 3, (float[]){1, 2, 3, 4, 5, 6}),
                                    matrix(&f, 3, 2, (float[]){1, 2, 3, 4, 5, 6}));
    TW_DEVICE(f.g, "/cpu:0")
        sum = tw_add_n(f.g, products, 3);
    start(&f, (tw_session_options){.disable = "fold"});
    assert_values(run_one(&f, sum), (float[]){66, 84, 147, 192}, 4);
    assert_string_equal(tw_session_device(f.s, products[2].node), "/job:localhost/replica:0/task:0/device:GPU:2");
    tw_plan_info info;
    assert_int_equal(tw_session_plan_info(f.s, &info, NULL), TW_OK);
    assert_int_equal(info.copies, 3);
    assert_int_equal(info.copied_bytes, 3 * 16);
    close_fixture(&f);
}

/* The guide's three GPUs where there are none. TensorFlow 2.21 names the same node (the guide, of 2017, shows b_1). */
static void a_missing_device_is_said_of_the_node_that_tensorflow_names(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    const tw_initializer uniform = {TW_INIT_UNIFORM, -1, 1, 0};
    tw_output products[3], sum;
    for (int i = 0; i < 3; i++)
        TW_DEVICE(f.g, "/gpu:%d", i) {
            char a[16], b[16];
            snprintf(a, sizeof a, "a_%d", i);
            snprintf(b, sizeof b, "b_%d", i);
            tw_output left = tw_get_variable(f.g, a, TW_FLOAT32, TW_SHAPE(2, 3), uniform)->value;
            tw_output right = tw_get_variable(f.g, b, TW_FLOAT32, TW_SHAPE(3, 2), uniform)->value;
            products[i] = tw_matmul(f.g, left, right);
        }
    TW_DEVICE(f.g, "/cpu:0")
        sum = tw_add_n(f.g, products, 3);
    tw_initialize_variables(f.g);
    tw_error error = {0};
    tw_tensor *result = NULL;
    start(&f, (tw_session_options){0});
    assert_fails(tw_session_run(f.s, NULL, 0, &sum, 1, &result, &error), TW_INVALID_ARGUMENT,
                 "Cannot assign a device for operation 'a_0/Initializer/random_uniform/RandomUniform': "
                 "Operation was explicitly assigned to /device:GPU:0");
    close_fixture(&f);
}

static void a_tensor_crosses_to_a_device_once_for_all_its_readers(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 1);
    tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(2)), y[3];
    TW_DEVICE(f.g, "/gpu:0")
        for (int i = 0; i < 3; i++)
            y[i] = tw_mul(f.g, x, tw_scalar(f.g, (float)i));
    start(&f, (tw_session_options){0});
    tw_tensor *value = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2), (float[]){3, 4}), *results[3] = {0};
    tw_error error = {0};
    assert_ok(tw_session_run(f.s, &(tw_feed){x, value}, 1, y, 3, results, &error));
    for (int i = 0; i < 3; i++)
        assert_values(results[i], (float[]){3 * (float)i, 4 * (float)i}, 2);
    tw_plan_info info;
    assert_int_equal(tw_session_plan_info(f.s, &info, NULL), TW_OK);
    assert_int_equal(info.copies, 1);
    tw_tensor_release(value);
    close_fixture(&f);
}

/* The second device is kept busy before it looks, while the first goes on and asks for much memory, so that a value not
 * kept for the second would be gone. */
static void devices_of_the_host_look_at_each_others_values_where_they_are(void **state)
{
    (void)state;
    enum { SIZE = 256, ELEMENTS = SIZE * SIZE, MORE = 60 };
    fixture f = open_fixture(2, 0);
    tw_variable *v = NULL;
    tw_output made = {0}, more[MORE], sum = {0}, update = {0}, late = {0}, fetches[4];
    TW_DEVICE(f.g, "/cpu:0") {
        tw_output ones = tw_ones(f.g, TW_FLOAT32, TW_SHAPE(SIZE, SIZE));
        v = tw_get_variable(f.g, "v", TW_FLOAT32, TW_SHAPE(SIZE, SIZE), (tw_initializer){.a = 1});
        made = tw_add(f.g, v->value, tw_scalar(f.g, 1));
        for (int i = 0; i < MORE; i++)
            more[i] = tw_mul(f.g, ones, tw_scalar(f.g, (float)i));
        sum = tw_add_n(f.g, more, MORE);
        update = tw_assign_add(f.g, v->handle, tw_mul(f.g, ones, tw_scalar(f.g, 3)));
    }
    TW_DEVICE(f.g, "/cpu:1") {
        late = tw_mul(f.g, tw_ones(f.g, TW_FLOAT32, TW_SHAPE(SIZE, SIZE)), tw_scalar(f.g, 1.0f / SIZE));
        for (int i = 0; i < 20; i++)
            late = tw_matmul(f.g, late, late);
        fetches[0] = tw_mul(f.g, late, v->value);
        fetches[1] = tw_mul(f.g, late, made);
    }
    fetches[2] = update;
    fetches[3] = sum;
    start(&f, (tw_session_options){.disable = "fold"});
    assert_null(run_one(&f, tw_initialize_variables(f.g)));
    tw_tensor *results[4] = {0};
    tw_error error = {0};
    for (int step = 0; step < 3; step++) {
        assert_ok(tw_session_run(f.s, NULL, 0, fetches, 4, results, &error));
        for (int i = 0; i < ELEMENTS; i++) {
            float value = (float)(1 + 3 * step);
            assert_true(tw_tensor_value(results[0], i) == value / SIZE);
            assert_true(tw_tensor_value(results[1], i) == (value + 1) / SIZE);
            assert_true(tw_tensor_value(results[3], i) == MORE * (MORE - 1) / 2);
        }
    }
    tw_plan_info info;
    assert_int_equal(tw_session_plan_info(f.s, &info, NULL), TW_OK);
    assert_int_equal(info.copies, 0);
    assert_int_equal(info.copied_bytes, 0);
    for (int i = 0; i < 4; i++)
        tw_tensor_release(results[i]);
    close_fixture(&f);
}

static void feeds_of_another_shape_make_another_plan(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(-1, 2));
    tw_output sum = tw_reduce_sum(f.g, x, NULL, 0, false);
    start(&f, (tw_session_options){0});
    for (int rows = 1; rows <= 3; rows++) {
        tw_error error = {0};
        tw_tensor *value = tw_tensor_create(TW_FLOAT32, TW_SHAPE(rows, 2)), *result = NULL;
        for (int i = 0; i < 2 * rows; i++)
            ((float *)tw_tensor_data(value))[i] = 1;
        assert_ok(tw_session_run(f.s, &(tw_feed){x, value}, 1, &sum, 1, &result, &error));
        assert_values(result, (float[]){2 * (float)rows}, 1);
        tw_tensor_release(value);
    }
    close_fixture(&f);
}

enum { ROWS = 2, FED = 3 * ROWS };

/* What passes x on; what overwrites a copy of it; and what looks at it through a view. */
static void run_with(fixture *f, const tw_output *fetches, tw_output x, tw_tensor *value, tw_tensor **results)
{
    tw_error error = {0};
    float before[FED], sum = 0;
    memcpy(before, tw_tensor_data(value), sizeof before);
    assert_ok(tw_session_run(f->s, &(tw_feed){x, value}, 1, fetches, 3, results, &error));
    for (int i = 0; i < FED; i++) {
        assert_true(tw_tensor_value(results[0], i) == before[i]);
        assert_true(tw_tensor_value(results[1], i) == (before[i] > 0 ? before[i] : 0) * 2);
        sum += before[i];
    }
    assert_true(tw_tensor_value(results[2], 0) == sum);
}

static void check_feeds(int cpus, int gpus, const char *device)
{
    fixture f = open_fixture(cpus, gpus);
    tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(ROWS, FED / ROWS)), fetches[3] = {tw_identity(f.g, x)};
    TW_DEVICE(f.g, "%s", device)
    {
        fetches[1] = tw_mul(f.g, tw_relu(f.g, x), tw_scalar(f.g, 2));
        fetches[2] = tw_reduce_sum(f.g, tw_reshape(f.g, x, TW_SHAPE(FED)), NULL, 0, false);
    }
    start(&f, (tw_session_options){0});
    _Alignas(64) float memory[FED + 1];
    for (int i = 0; i <= FED; i++)
        memory[i] = (float)(i % 7 - 3);
    tw_shape shape = TW_SHAPE(ROWS, FED / ROWS);
    tw_tensor *results[3] = {NULL}, *own = tw_tensor_from(TW_FLOAT32, shape, memory);
    tw_tensor *aligned = tw_tensor_wrap(TW_FLOAT32, shape, memory, NULL, NULL);
    tw_tensor *unaligned = tw_tensor_wrap(TW_FLOAT32, shape, memory + 1, NULL, NULL);
    for (int again = 0; again < 2; again++) {
        run_with(&f, fetches, x, own, results);
        run_with(&f, fetches, x, unaligned, results);
        run_with(&f, fetches, x, aligned, results);
        memory[1]++;
    }
    for (int i = 0; i < 3; i++)
        tw_tensor_release(results[i]);
    tw_tensor_release(own);
    tw_tensor_release(aligned);
    tw_tensor_release(unaligned);
    close_fixture(&f);
}

static void what_is_fed_is_read_and_never_changed(void **state)
{
    (void)state;
    check_feeds(1, 0, "/cpu:0");
    check_feeds(2, 0, "/cpu:1");
    check_feeds(1, 1, "/gpu:0");
}

/* Nobody else wants it, so Relu might have written over it; what is fetched is a view of that. */
static void what_is_fed_is_not_written_over(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    tw_error error = {0};
    tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(FED));
    tw_output y = tw_reshape(f.g, tw_relu(f.g, x), TW_SHAPE(ROWS, FED / ROWS));
    start(&f, (tw_session_options){0});
    _Alignas(64) float memory[FED] = {-3, -2, -1, 0, 1, 2};
    tw_tensor *value = tw_tensor_wrap(TW_FLOAT32, TW_SHAPE(FED), memory, NULL, NULL);
    for (int again = 0; again < 2; again++) {
        tw_tensor *result = NULL;
        assert_ok(tw_session_run(f.s, &(tw_feed){x, value}, 1, &y, 1, &result, &error));
        assert_values(result, (float[]){0, 0, 0, 0, 1, 2}, FED);
        assert_memory_equal(memory, ((float[]){-3, -2, -1, 0, 1, 2}), sizeof memory);
    }
    tw_tensor_release(value);
    close_fixture(&f);
}

/* It is large enough that the kernel writes into the tensor that the caller gets: another in each run, or one that is
 * filled again. The second fetch and the view are of the same memory. */
static void what_is_fetched_is_made_in_tensors_that_stay(void **state)
{
    (void)state;
    enum { N = 1 << 15, FETCHES = 4 };
    fixture f = open_fixture(1, 0);
    tw_error error = {0};
    tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(N)), y = tw_neg(f.g, x);
    tw_output fetches[FETCHES] = {y, y, tw_reshape(f.g, y, TW_SHAPE(2, N / 2)), tw_mul(f.g, y, y)};
    start(&f, (tw_session_options){0});
    tw_tensor *runs[3][FETCHES] = {{NULL}}, *value = tw_tensor_create(TW_FLOAT32, TW_SHAPE(N));
    float *values = tw_tensor_data(value);
    for (int run = 0; run < 4; run++) { /* the last two are of one array */
        for (int i = 0; i < N; i++)
            values[i] = (float)(i % 13 + run);
        assert_ok(tw_session_run(f.s, &(tw_feed){x, value}, 1, fetches, FETCHES, runs[run < 3 ? run : 2], &error));
        for (int i = 0; i < N; i++)
            assert_true(values[i] == (float)(i % 13 + run));
    }
    for (int k = 0; k < 3; k++)
        for (int i = 0, run = k < 2 ? k : 3; i < N; i++) {
            float fed = (float)(i % 13 + run);
            for (int fetch = 0; fetch < FETCHES; fetch++)
                assert_true(((float *)tw_tensor_data(runs[k][fetch]))[i] == (fetch < 3 ? -fed : fed * fed));
        }
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < FETCHES; i++)
            tw_tensor_release(runs[k][i]);
    tw_tensor_release(value);
    close_fixture(&f);
}

/* A program may feed a result's memory while that is filled again. */
static void what_is_fetched_may_lie_where_it_is_fed_from(void **state)
{
    (void)state;
    enum { N = 1 << 15 };
    fixture f = open_fixture(1, 0);
    tw_error error = {0};
    tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(N)), y = tw_reverse(f.g, x, (int[]){0}, 1);
    start(&f, (tw_session_options){0});
    tw_tensor *result = NULL, *value = tw_tensor_create(TW_FLOAT32, TW_SHAPE(N));
    for (int i = 0; i < N; i++)
        ((float *)tw_tensor_data(value))[i] = (float)i;
    for (int run = 0; run < 3; run++) {
        assert_ok(tw_session_run(f.s, &(tw_feed){x, value}, 1, &y, 1, &result, &error));
        float *values = tw_tensor_data(result);
        for (int i = 0; i < N; i++)
            assert_true(values[i] == (float)(run % 2 ? i : N - 1 - i));
        tw_tensor_release(value);
        value = tw_tensor_wrap(TW_FLOAT32, TW_SHAPE(N), values, NULL, NULL);
    }
    tw_tensor_release(value);
    tw_tensor_release(result);
    close_fixture(&f);
}

/* The rows come from the same memory, once by itself and once through a view: where they go must not be there. */
static void what_is_an_input_twice_is_not_written_over(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    tw_error error = {0};
    tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(2, 3)), fetches[2];
    for (int i = 0; i < 2; i++) {
        tw_output made = tw_mul(f.g, x, tw_scalar(f.g, (float)(1 + i)));
        tw_output rows = i == 0 ? made : tw_reshape(f.g, tw_reshape(f.g, made, TW_SHAPE(6)), TW_SHAPE(2, 3));
        tw_output inputs[] = {made, tw_constant_int32s(f.g, TW_SHAPE(2), (int32_t[]){1, 0}), rows};
        fetches[i] = tw_node_output(tw_add_node(f.g, "InplaceUpdate", NULL, inputs, 3, NULL, 0), 0);
    }
    start(&f, (tw_session_options){0});
    tw_tensor *value = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2, 3), (float[]){1, 2, 3, 4, 5, 6}), *results[2] = {NULL};
    assert_ok(tw_session_run(f.s, &(tw_feed){x, value}, 1, fetches, 2, results, &error));
    assert_values(results[0], (float[]){4, 5, 6, 1, 2, 3}, 6);
    assert_values(results[1], (float[]){8, 10, 12, 2, 4, 6}, 6);
    tw_tensor_release(value);
    close_fixture(&f);
}

/* What is large is copied and cleared by the team; the last part is longer by what does not divide. */
static void large_values_are_whole_with_any_number_of_threads(void **state)
{
    (void)state;
    enum { MANY = 100003 };
    tw_error error = {0};
    tw_tensor *value = tw_tensor_create(TW_FLOAT32, TW_SHAPE(MANY));
    for (int i = 0; i < MANY; i++)
        ((float *)tw_tensor_data(value))[i] = (float)(i + 1);
    for (int threads = 1; threads <= 5; threads++) {
        fixture f = {.g = tw_graph_create()};
        assert_ok(tw_devices_create(TW_OPTIONS(tw_device_options, .cpu_threads = threads), &f.devices, &error));
        tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(MANY));
        tw_variable *v = tw_get_variable(f.g, "v", TW_FLOAT32, TW_SHAPE(MANY), (tw_initializer){.a = 0});
        tw_output set = tw_assign(f.g, v->handle, x);
        tw_output fetches[] = {v->value, tw_zeros_like(f.g, x)};
        tw_tensor *results[2] = {NULL};
        start(&f, (tw_session_options){0});
        assert_ok(tw_session_run(f.s, &(tw_feed){x, value}, 1, &set, 1, NULL, &error));
        for (int again = 0; again < 2; again++)
            assert_ok(tw_session_run(f.s, &(tw_feed){x, value}, 1, fetches, 2, results, &error));
        assert_memory_equal(tw_tensor_data(results[0]), tw_tensor_data(value), tw_tensor_bytes(value));
        for (int i = 0; i < MANY; i++)
            assert_true(((float *)tw_tensor_data(results[1]))[i] == 0);
        tw_tensor_release(results[0]);
        tw_tensor_release(results[1]);
        close_fixture(&f);
    }
    tw_tensor_release(value);
}

static void an_unfed_placeholder_is_named(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    tw_output x = tw_placeholder(tw_name(f.g, "images"), TW_FLOAT32, TW_SHAPE(-1, 784));
    start(&f, (tw_session_options){0});
    tw_error error = {0};
    tw_tensor *result = NULL;
    tw_output y = tw_identity(f.g, x);
    assert_fails(tw_session_run(f.s, NULL, 0, &y, 1, &result, &error), TW_INVALID_ARGUMENT,
                 "You must feed a value for placeholder tensor 'images' with dtype float and shape [?,784]");
    tw_tensor *wrong = tw_tensor_create(TW_FLOAT32, TW_SHAPE(3, 783));
    assert_fails(tw_session_run(f.s, &(tw_feed){x, wrong}, 1, &y, 1, &result, &error), TW_INVALID_ARGUMENT,
                 "feed of 'images:0' is float [3,783], expected float [?,784]");
    tw_tensor_release(wrong);
    close_fixture(&f);
}

/* ---- variables --------------------------------------------------------------------------------------------------- */

/* Its shape can be, and no memory holds it: so it is neither folded nor planned. */
static void refuse_to_fill(int64_t rows, int64_t columns, const char *message)
{
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_tensor *result = NULL;
    tw_graph *g = tw_graph_create();
    tw_tensor *sizes = tw_tensor_from(TW_INT64, TW_SHAPE(2), (int64_t[]){rows, columns});
    tw_output dims = tw_constant(g, sizes), huge = tw_fill(tw_name(g, "huge"), dims, tw_scalar(g, 1));
    tw_output sum = tw_reduce_sum(g, huge, NULL, 0, false);
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_devices_create(NULL, &devices, &error));
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    assert_fails(tw_session_run(session, NULL, 0, &sum, 1, &result, &error), TW_RESOURCE_EXHAUSTED, message);
    tw_tensor_release(sizes);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

static void a_tensor_larger_than_any_memory_is_not_planned(void **state)
{
    (void)state;
    refuse_to_fill(INT64_C(1) << 30, INT64_C(1) << 20,
                   "Fill 'huge' is a float of [1073741824,1048576], more than any memory holds");
    refuse_to_fill(INT64_C(1) << 40, INT64_C(1) << 40, /* its elements are more than 64 bits count */
                   "Fill 'huge' is a float of [1099511627776,1099511627776], more than any memory holds");
}

static void a_variable_larger_than_any_memory_is_not_made(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session *session;
    tw_tensor *result = NULL;
    tw_graph *g = tw_graph_create();
    tw_attr attrs[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_shape("shape", TW_SHAPE(INT64_MAX))};
    tw_output handle = {tw_add_node(g, "VarHandleOp", "v", NULL, 0, attrs, 2), 0};
    tw_output read = {tw_add_node(g, "ReadVariableOp", NULL, &handle, 1, attrs, 1), 0};
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, NULL, &session, &error));
    assert_fails(tw_session_run(session, NULL, 0, &read, 1, &result, &error), TW_RESOURCE_EXHAUSTED,
                 "VarHandleOp 'v' is a float of [9223372036854775807], more than any memory holds");
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* Nor is an element whose shape is known before the step only because an array says so. */
static void an_element_larger_than_any_memory_is_not_planned(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_session *session;
    tw_tensor *result = NULL;
    tw_graph *g = tw_graph_create();
    tw_attr attrs[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_shape("element_shape", TW_SHAPE(INT64_MAX))};
    tw_output one = tw_scalar_of(g, TW_INT32, 1);
    tw_node *array = tw_add_node(g, "TensorArrayV3", NULL, &one, 1, attrs, 2);
    tw_output inputs[] = {{array, 0}, tw_scalar_of(g, TW_INT32, 0), {array, 1}};
    tw_output element = {tw_add_node(g, "TensorArrayReadV3", "element", inputs, 3, attrs, 1), 0};
    tw_output three = tw_reshape(g, element, TW_SHAPE(3));
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, NULL, &session, &error));
    assert_fails(tw_session_run(session, NULL, 0, &three, 1, &result, &error), TW_RESOURCE_EXHAUSTED,
                 "TensorArrayReadV3 'element' is a float of [9223372036854775807], more than any memory holds");
    tw_session_destroy(session);
    tw_graph_destroy(g);
}

/* Its bytes are more than 64 bits count. */
static void a_tensor_larger_than_any_memory_is_refused_by_name(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output start = tw_scalar_of(g, TW_INT64, 0), limit = tw_scalar_of(g, TW_INT64, 0x1p62);
    tw_range(tw_name(g, "endless"), start, limit, tw_scalar_of(g, TW_INT64, 1));
    assert_int_equal(tw_graph_status(g), TW_INVALID_ARGUMENT);
    assert_non_null(strstr(tw_graph_message(g), "Range 'endless': a range of 4611686018427387904 elements"));
    tw_graph_destroy(g);
}

static void an_uninitialized_variable_is_named(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    tw_variable *v = tw_get_variable(f.g, "weights", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){.a = 5});
    start(&f, (tw_session_options){0});
    tw_error error = {0};
    tw_tensor *result = NULL;
    assert_fails(tw_session_run(f.s, NULL, 0, &v->value, 1, &result, &error), TW_FAILED_PRECONDITION,
                 "resource variable weights");
    assert_null(run_one(&f, tw_initialize_variables(f.g)));
    assert_values(run_one(&f, v->value), (float[]){5, 5}, 2);
    close_fixture(&f);
}

static void readers_without_order_see_the_value_before_the_update(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 1);
    tw_variable *v = tw_get_variable(f.g, "v", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){.a = 1});
    tw_output seen, update, both[2];
    TW_DEVICE(f.g, "/gpu:0")
        seen = tw_mul(f.g, v->value, tw_scalar(f.g, 10));
    update = tw_assign_add(f.g, v->handle, tw_reduce_sum(f.g, tw_ones(f.g, TW_FLOAT32, TW_SHAPE(2, 3)), TW_AXES(1), false));
    both[0] = seen;
    both[1] = update;
    start(&f, (tw_session_options){0});
    assert_null(run_one(&f, tw_initialize_variables(f.g)));
    tw_tensor *results[2] = {0};
    tw_error error = {0};
    for (int i = 0; i < 3; i++) {
        assert_ok(tw_session_run(f.s, NULL, 0, both, 2, results, &error));
        assert_true(tw_tensor_value(results[0], 0) == 10 * (1 + 3 * i));
    }
    tw_tensor_release(results[0]);
    close_fixture(&f);
}

static void a_read_after_an_update_sees_the_new_value_and_one_before_the_old(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    tw_variable *v = tw_get_variable(f.g, "v", TW_FLOAT32, TW_SHAPE(1), (tw_initializer){.a = 1});
    tw_output old = tw_identity(f.g, v->value), fresh, update = {0};
    TW_CONTROL(f.g, old)
        update = tw_assign_add(f.g, v->handle, tw_ones(f.g, TW_FLOAT32, TW_SHAPE(1)));
    TW_CONTROL(f.g, update) {
        fresh = tw_variable_read(f.g, v);
        old = tw_add(f.g, old, tw_zeros(f.g, TW_FLOAT32, TW_SHAPE(1))); /* looks at the old value after the update */
    }
    start(&f, (tw_session_options){0});
    assert_null(run_one(&f, tw_initialize_variables(f.g)));
    tw_tensor *results[2] = {0};
    tw_error error = {0};
    assert_ok(tw_session_run(f.s, NULL, 0, (tw_output[]){old, fresh}, 2, results, &error));
    assert_values(results[0], (float[]){1}, 1);
    assert_values(results[1], (float[]){2}, 1);
    close_fixture(&f);
}

static void a_fetched_variable_is_a_value_not_a_view(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    tw_variable *v = tw_get_variable(f.g, "v", TW_FLOAT32, TW_SHAPE(1), (tw_initializer){.a = 1});
    tw_output update = tw_assign_add(f.g, v->handle, tw_ones(f.g, TW_FLOAT32, TW_SHAPE(1)));
    start(&f, (tw_session_options){0});
    assert_null(run_one(&f, tw_initialize_variables(f.g)));
    tw_tensor *results[2] = {0};
    tw_error error = {0};
    assert_ok(tw_session_run(f.s, NULL, 0, (tw_output[]){v->value, update}, 2, results, &error));
    assert_values(results[0], (float[]){1}, 1);
    close_fixture(&f);
}

static void variables_can_be_set_and_read_from_outside(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 1);
    tw_variable *v;
    TW_DEVICE(f.g, "/gpu:0")
        v = tw_get_variable(f.g, "v", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){0});
    start(&f, (tw_session_options){0});
    tw_error error = {0};
    tw_tensor *value = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2), (float[]){7, 8}), *back = NULL;
    assert_fails(tw_session_get_variable(f.s, v, &back, &error), TW_FAILED_PRECONDITION, "v has no value");
    assert_ok(tw_session_set_variable(f.s, v, value, &error));
    assert_ok(tw_session_get_variable(f.s, v, &back, &error));
    assert_values(back, (float[]){7, 8}, 2);
    tw_tensor *wrong = tw_tensor_create(TW_FLOAT32, TW_SHAPE(3));
    assert_fails(tw_session_set_variable(f.s, v, wrong, &error), TW_INVALID_ARGUMENT,
                 "variable v is float [2], the value for it is float [3]");
    tw_tensor_release(value);
    tw_tensor_release(wrong);
    close_fixture(&f);
}

static void variables_of_texts_can_be_set_and_read_from_outside(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    tw_error error = {0};
    tw_variable *v = tw_get_variable(f.g, "v", TW_STRING, TW_SHAPE(2), (tw_initializer){0});
    start(&f, (tw_session_options){0});
    tw_tensor *value = tw_tensor_from(TW_STRING, TW_SHAPE(2), (tw_string[]){{"one", 3}, {"two", 3}}), *back = NULL;
    assert_ok(tw_session_set_variable(f.s, v, value, &error));
    tw_tensor_release(value);
    assert_ok(tw_session_get_variable(f.s, v, &back, &error));
    assert_string_equal(((tw_string *)tw_tensor_data(back))[0].data, "one");
    assert_string_equal(((tw_string *)tw_tensor_data(back))[1].data, "two");
    tw_tensor_release(back);
    close_fixture(&f);
}

/* ---- towers ------------------------------------------------------------------------------------------------------ */

/* The mean of 2..9 towers' tensors through the averaging nodes equals the tree's and does not depend on devices. */
static void the_average_of_towers_has_the_same_bits_on_any_number_of_devices(void **state)
{
    (void)state;
    enum { ELEMENTS = 1000 };
    for (int towers = 2; towers <= 9; towers++) {
        float reference[ELEMENTS];
        for (int gpus = 1; gpus <= 4; gpus++) {
            fixture f = open_fixture(1, gpus);
            tw_output parts[9], mean;
            for (int t = 0; t < towers; t++)
                TW_DEVICE(f.g, "/gpu:%d", t % gpus) {
                    tw_tensor *values = tw_tensor_create(TW_FLOAT32, TW_SHAPE(ELEMENTS));
                    for (int i = 0; i < ELEMENTS; i++)
                        ((float *)tw_tensor_data(values))[i] = sinf((float)(i * 31 + t * 17)) * powf(10, (float)(t % 3));
                    tw_output x = tw_constant(f.g, values);
                    tw_tensor_release(values);
                    parts[t] = tw_expand_dims(f.g, tw_mul(f.g, x, x), 0);
                }
            TW_DEVICE(f.g, "/cpu:0")
                mean = tw_reduce_mean(f.g, tw_concat(f.g, parts, towers, 0), TW_AXES(0), false);
            start(&f, (tw_session_options){.disable = "fold"});
            tw_tensor *result = run_one(&f, mean);
            if (gpus == 1)
                memcpy(reference, tw_tensor_data(result), sizeof reference);
            assert_memory_equal(reference, tw_tensor_data(result), sizeof reference);
            tw_tensor_release(result);
            tw_session *plain;
            tw_error error = {0};
            assert_ok(tw_session_create(f.g, &(tw_session_options){.devices = f.devices, .disable = "all"}, &plain, &error));
            result = NULL;
            assert_ok(tw_session_run(plain, NULL, 0, &mean, 1, &result, &error));
            assert_floats_near(tw_tensor_data(result), reference, ELEMENTS, 1e-5);
            tw_tensor_release(result);
            tw_session_destroy(plain);
            close_fixture(&f);
        }
    }
}

/* ---- promises ---------------------------------------------------------------------------------------------------- */

static void a_repeated_run_allocates_nothing(void **state)
{
    (void)state;
    fixture f = open_fixture(2, 2);
    tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SHAPE(64, 64)), y = x;
    for (int i = 0; i < 8; i++)
        TW_DEVICE(f.g, i % 2 ? "/gpu:%d" : "/cpu:%d", i / 2 % 2)
            y = tw_matmul(f.g, y, x);
    start(&f, (tw_session_options){0});
    tw_tensor *value = tw_tensor_create(TW_FLOAT32, TW_SHAPE(64, 64)), *result = NULL;
    tw_error error = {0};
    assert_ok(tw_session_run(f.s, &(tw_feed){x, value}, 1, &y, 1, &result, &error));
    int64_t before = tw_allocation_count();
    for (int i = 0; i < 10; i++)
        assert_ok(tw_session_run(f.s, &(tw_feed){x, value}, 1, &y, 1, &result, &error));
    assert_int_equal(tw_allocation_count(), before);
    tw_tensor_release(value);
    tw_tensor_release(result);
    close_fixture(&f);
}

static void memory_reuse_does_not_change_a_bit(void **state)
{
    (void)state;
    tw_tensor *results[2] = {0};
    int64_t arenas[2];
    for (int reuse = 0; reuse < 2; reuse++) {
        fixture f = open_fixture(1, 1);
        tw_output x = tw_constant_floats(f.g, TW_SHAPE(4, 4), (float[16]){1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2});
        tw_output y = x;
        for (int i = 0; i < 20; i++)
            TW_DEVICE(f.g, i % 3 ? "/gpu:0" : "/cpu:0") {
                tw_output z = tw_matmul(f.g, y, x);
                y = tw_sub(f.g, tw_mul(f.g, tw_sigmoid(f.g, z), y), tw_sqrt(f.g, tw_abs(f.g, z)));
            }
        start(&f, (tw_session_options){.disable = reuse ? "fold" : "fold,reuse"});
        results[reuse] = run_one(&f, y);
        tw_plan_info info;
        assert_int_equal(tw_session_plan_info(f.s, &info, NULL), TW_OK);
        arenas[reuse] = info.arena_bytes;
        close_fixture(&f);
    }
    assert_memory_equal(tw_tensor_data(results[0]), tw_tensor_data(results[1]), 64);
    assert_true(arenas[1] < arenas[0]);
    tw_tensor_release(results[0]);
    tw_tensor_release(results[1]);
}

typedef struct hammer {
    fixture *f;
    tw_output x, y;
    float number;
    bool failed;
} hammer;

static void *run_many(void *argument)
{
    hammer *h = argument;
    tw_tensor *value = tw_tensor_float(h->number), *result = NULL;
    for (int i = 0; i < 100; i++) {
        h->failed = h->failed || tw_session_run(h->f->s, &(tw_feed){h->x, value}, 1, &h->y, 1, &result, NULL) != TW_OK ||
                    tw_tensor_value(result, 0) != 2 * h->number;
    }
    tw_tensor_release(value);
    tw_tensor_release(result);
    return NULL;
}

static void runs_from_several_threads_do_not_disturb_each_other(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 1);
    tw_output x = tw_placeholder(f.g, TW_FLOAT32, TW_SCALAR), y;
    TW_DEVICE(f.g, "/gpu:0")
        y = tw_add(f.g, x, x);
    start(&f, (tw_session_options){0});
    pthread_t threads[4];
    hammer hammers[4];
    for (int i = 0; i < 4; i++) {
        hammers[i] = (hammer){&f, x, y, (float)i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, &hammers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_false(hammers[i].failed);
    }
    close_fixture(&f);
}

static tw_status fill_or_fail(void *user, int tower, void *const *outputs, tw_error *error)
{
    int *calls = user;
    (void)error;
    *(float *)outputs[0] = (float)(100 * tower + ++calls[tower]);
    return TW_OK;
}

static void each_tower_gets_its_own_batch_of_a_source_in_every_step(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 2);
    tw_output x[2], y[2];
    tw_dtype type = TW_FLOAT32;
    tw_shape shape = TW_SHAPE(1);
    for (int t = 0; t < 2; t++) {
        tw_input(f.g, "numbers", t, &type, &shape, 1, &x[t]);
        TW_DEVICE(f.g, "/gpu:%d", t)
            y[t] = tw_neg(f.g, x[t]);
    }
    start(&f, (tw_session_options){0});
    tw_error error = {0};
    tw_tensor *results[2] = {0};
    int calls[2] = {0};
    assert_fails(tw_session_run(f.s, NULL, 0, y, 2, results, &error), TW_FAILED_PRECONDITION, "no source 'numbers'");
    assert_ok(tw_session_set_source(f.s, "numbers", fill_or_fail, calls, &error));
    for (int step = 1; step <= 3; step++) {
        assert_ok(tw_session_run(f.s, NULL, 0, y, 2, results, &error));
        assert_true(tw_tensor_value(results[0], 0) == -step && tw_tensor_value(results[1], 0) == -100 - step);
    }
    tw_tensor_release(results[0]);
    tw_tensor_release(results[1]);
    close_fixture(&f);
}

/* ---- numbers that are none ---- */

/* log(x) + v on a GPU, where x is fed; what comes of `x` and with the variable's value `v`. */
static void the_node_that_makes_an_infinity_is_named_with_what_it_took(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 1);
    tw_error error = {0};
    tw_graph *g = f.g;
    tw_output x, log, untaken = {0}, sum;
    TW_DEVICE(g, "/gpu:0")
    {
        x = tw_placeholder(tw_name(g, "x"), TW_FLOAT32, TW_SHAPE(3));
        log = tw_log(tw_name(g, "log"), x);
        TW_WHEN(g, tw_less(g, tw_scalar(g, 2), tw_scalar(g, 1)))
        untaken = tw_log(tw_name(g, "untaken"), tw_sub(g, x, x));
        sum = tw_reduce_sum(tw_name(g, "sum"), log, NULL, 0, false);
    }
    start(&f, (tw_session_options){0});
    tw_tensor *fed = tw_tensor_from(TW_FLOAT32, TW_SHAPE(3), (float[]){1, 0, 3}), *result = NULL;
    tw_feed feed = {x, fed};
    assert_ok(tw_session_run(f.s, &feed, 1, &sum, 1, &result, &error));
    assert_true(isinf(tw_tensor_value(result, 0)));
    assert_ok(tw_session_check_numbers(f.s, true, &error));
    assert_fails(
        tw_session_run(f.s, &feed, 1, &sum, 1, &result, &error), TW_OUT_OF_RANGE,
        "node 'log' (Log, /device:GPU:0) makes -infinity: 1 of 3 values of output 0, the first number 1; it takes "
        "'x");
    assert_message(error.message, "' from 0 to 3");
    ((float *)tw_tensor_data(fed))[1] = NAN;
    assert_fails(tw_session_run(f.s, &feed, 1, &sum, 1, &result, &error), TW_OUT_OF_RANGE,
                 "what is not finite comes from outside: 'log' (Log, /device:GPU:0) passes on NaN");
    assert_message(error.message, "from 1 to 3 but for 1 of 3 not finite");
    ((float *)tw_tensor_data(fed))[1] = 2;
    untaken.index = -1;
    assert_ok(tw_session_run(f.s, &feed, 1, (tw_output[]){sum, untaken}, 2, (tw_tensor *[]){result, NULL}, &error));
    assert_ok(tw_session_check_numbers(f.s, false, &error));
    ((float *)tw_tensor_data(fed))[1] = 0;
    assert_ok(tw_session_run(f.s, &feed, 1, &sum, 1, &result, &error));
    tw_tensor_release(result);
    tw_tensor_release(fed);
    close_fixture(&f);
}

static void an_update_that_makes_a_variable_infinite_is_named(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    tw_error error = {0};
    tw_variable *w =
        tw_get_variable(f.g, "w", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){.kind = TW_INIT_CONSTANT, .a = 3e38f});
    tw_output more = tw_constant_floats(f.g, TW_SHAPE(2), (float[]){1, 1e38f});
    tw_output add = tw_assign_add(tw_name(f.g, "grow"), w->handle, more);
    tw_output init = tw_initialize_variables(f.g);
    start(&f, (tw_session_options){0});
    assert_ok(tw_session_check_numbers(f.s, true, &error));
    assert_ok(tw_session_run(f.s, NULL, 0, &init, 1, NULL, &error));
    assert_fails(
        tw_session_repeat(f.s, add, 1, &error), TW_OUT_OF_RANGE,
        "node 'grow' (AssignAddVariableOp, /device:CPU:0) makes infinity: 1 of 2 values of variable 'w', the first "
        "number 1; it takes 'w' from 3e+38 to 3e+38");
    close_fixture(&f);
}

static void tasks_that_are_only_planned_for_run_nothing(void **state)
{
    (void)state;
    fixture f = {.g = tw_graph_create()};
    tw_error error = {0};
    tw_tensor *result = NULL;
    tw_device_options options = TW_SIZED(tw_device_options);
    options.plan_tasks = 2;
    assert_ok(tw_devices_create(&options, &f.devices, &error));
    assert_int_equal(tw_devices_tasks(f.devices), 2);
    tw_output sum, there;
    TW_DEVICE(f.g, "/job:worker/task:1")
        there = matrix(&f, 1, 2, (const float[]){1, 2});
    TW_DEVICE(f.g, "/job:worker/task:0")
        sum = tw_add(f.g, there, there);
    start(&f, (tw_session_options){.disable = "all"});
    assert_ok(tw_session_prepare(f.s, NULL, 0, &sum, 1, &error));
    assert_int_equal(tw_session_run(f.s, NULL, 0, &sum, 1, &result, &error), TW_FAILED_PRECONDITION);
    assert_non_null(strstr(error.message, "options.plan_tasks made them of 2 tasks that were not started"));
    close_fixture(&f);

    options.plan_tasks = 1025;
    assert_int_equal(tw_devices_create(&options, &f.devices, &error), TW_INVALID_ARGUMENT);
    options.plan_tasks = 2;
    options.tasks = true;
    assert_int_equal(tw_devices_create(&options, &f.devices, &error), TW_INVALID_ARGUMENT);
}

/* ---- streams of random numbers ----------------------------------------------------------------------------------- */

static tw_tensor *place_of_stream(fixture *f, const char **name)
{
    tw_error error = {0};
    tw_tensor *place = NULL;
    assert_ok(tw_session_get_stream(f->s, 0, name, &place, &error));
    return place;
}

static void a_stream_goes_on_from_where_it_was_set(void **state)
{
    (void)state;
    fixture f = open_fixture(1, 0);
    tw_error error = {0};
    const char *name = NULL, *again = NULL;
    tw_tensor *place, *drawn[3];
    tw_output draw = tw_random_uniform(f.g, tw_constant_int32s(f.g, TW_SHAPE(1), (int32_t[]){5}), TW_FLOAT32, 7);
    start(&f, (tw_session_options){0});
    assert_int_equal(tw_session_num_streams(f.s), 0);
    drawn[0] = run_one(&f, draw);
    assert_int_equal(tw_session_num_streams(f.s), 1);
    place = place_of_stream(&f, &name);
    tw_tensor *same = place_of_stream(&f, &again);
    assert_string_equal(name, again);
    assert_memory_equal(tw_tensor_data(place), tw_tensor_data(same), 8 * (size_t)tw_tensor_elements(place));
    drawn[1] = run_one(&f, draw);
    assert_memory_not_equal(tw_tensor_data(drawn[0]), tw_tensor_data(drawn[1]), 20);
    assert_ok(tw_session_set_stream(f.s, name, place, &error));
    drawn[2] = run_one(&f, draw);
    assert_memory_equal(tw_tensor_data(drawn[1]), tw_tensor_data(drawn[2]), 20);
    tw_tensor_release(place);
    place = NULL;
    for (int i = -1; i < 2; i += 2)
        assert_fails(tw_session_get_stream(f.s, i, &name, &place, &error), TW_NOT_FOUND, "there is no stream number");
    assert_null(place);
    tw_tensor_release(same);
    for (int i = 0; i < 3; i++)
        tw_tensor_release(drawn[i]);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_of_the_guide_gives_the_guides_values),
        cmocka_unit_test(texts_are_added_one_behind_the_other),
        cmocka_unit_test(products_of_the_guide_are_the_same_on_every_kind_of_device),
        cmocka_unit_test(three_gpus_multiply_and_the_cpu_adds),
        cmocka_unit_test(a_missing_device_is_said_of_the_node_that_tensorflow_names),
        cmocka_unit_test(a_tensor_crosses_to_a_device_once_for_all_its_readers),
        cmocka_unit_test(devices_of_the_host_look_at_each_others_values_where_they_are),
        cmocka_unit_test(feeds_of_another_shape_make_another_plan),
        cmocka_unit_test(what_is_fed_is_read_and_never_changed),
        cmocka_unit_test(what_is_fed_is_not_written_over),
        cmocka_unit_test(what_is_fetched_is_made_in_tensors_that_stay),
        cmocka_unit_test(what_is_fetched_may_lie_where_it_is_fed_from),
        cmocka_unit_test(what_is_an_input_twice_is_not_written_over),
        cmocka_unit_test(large_values_are_whole_with_any_number_of_threads),
        cmocka_unit_test(an_unfed_placeholder_is_named),
        cmocka_unit_test(a_tensor_larger_than_any_memory_is_not_planned),
        cmocka_unit_test(a_variable_larger_than_any_memory_is_not_made),
        cmocka_unit_test(an_element_larger_than_any_memory_is_not_planned),
        cmocka_unit_test(a_tensor_larger_than_any_memory_is_refused_by_name),
        cmocka_unit_test(an_uninitialized_variable_is_named),
        cmocka_unit_test(readers_without_order_see_the_value_before_the_update),
        cmocka_unit_test(a_read_after_an_update_sees_the_new_value_and_one_before_the_old),
        cmocka_unit_test(a_fetched_variable_is_a_value_not_a_view),
        cmocka_unit_test(variables_can_be_set_and_read_from_outside),
        cmocka_unit_test(variables_of_texts_can_be_set_and_read_from_outside),
        cmocka_unit_test(the_average_of_towers_has_the_same_bits_on_any_number_of_devices),
        cmocka_unit_test(a_repeated_run_allocates_nothing),
        cmocka_unit_test(memory_reuse_does_not_change_a_bit),
        cmocka_unit_test(runs_from_several_threads_do_not_disturb_each_other),
        cmocka_unit_test(each_tower_gets_its_own_batch_of_a_source_in_every_step),
        cmocka_unit_test(the_node_that_makes_an_infinity_is_named_with_what_it_took),
        cmocka_unit_test(an_update_that_makes_a_variable_infinite_is_named),
        cmocka_unit_test(tasks_that_are_only_planned_for_run_nothing),
        cmocka_unit_test(a_stream_goes_on_from_where_it_was_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
