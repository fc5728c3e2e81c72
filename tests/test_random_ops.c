/* test_random_ops.c - a sample of random graphs of one op each: TensorFlow's values, gradients and error codes.
 *
 * tests/golden/random_ops.bin holds them one after the other, each as four bytes of length, four of the code of the
 * error that running it gives (0: none) and a GraphDef, written by scripts/random-graphs --write. Node "n" is the op
 * and "init" gives its variables their values. What comes of it are constants: "want_0" output 0 of n, "want_dx_1" the
 * gradient of input x_1 for the gradients dy_0... of n's outputs, "want_read_x_2" what variable x_2 holds afterwards.
 */
#include "testing.h"

#include <tower/graph.h>
#include <tower/io.h>
#include <tower/ops.h>
#include <tower/session.h>

enum { MOST = 32 };

/* A graph, and what is to be fetched of it and compared. */
typedef struct random_case {
    int number;
    tw_graph *graph;
    tw_output values[MOST], wanted[MOST];
    int count, first_read; /* reads of variables come last */
} random_case;

static tw_node *find(const random_case *c, const char *format, int i)
{
    char name[64];
    snprintf(name, sizeof name, format, i);
    return tw_graph_find(c->graph, name);
}

static void add(random_case *c, tw_output value, tw_node *wanted)
{
    assert_true(c->count < MOST);
    c->values[c->count] = value;
    c->wanted[c->count++] = tw_node_output(wanted, 0);
}

static void add_gradients(random_case *c)
{
    tw_output ys[MOST], dys[MOST], xs[MOST], dxs[MOST];
    tw_node *n = tw_graph_find(c->graph, "n");
    int num_ys = 0, num_xs = 0, places[MOST];
    for (int i = 0; i < MOST; i++)
        if (find(c, "dy_%d", i)) {
            ys[num_ys] = tw_node_output(n, i);
            dys[num_ys++] = tw_node_output(find(c, "dy_%d", i), 0);
        }
    for (int i = 0; i < MOST; i++)
        if (find(c, "want_dx_%d", i)) {
            places[num_xs] = i;
            xs[num_xs++] = tw_node_output(find(c, "x_%d", i), 0);
        }
    tw_gradients(c->graph, ys, num_ys, dys, xs, num_xs, dxs);
    if (tw_graph_status(c->graph) != TW_OK)
        fail_msg("case %d: %s", c->number, tw_graph_message(c->graph));
    for (int i = 0; i < num_xs; i++)
        add(c, dxs[i].node ? dxs[i] : tw_zeros_like(c->graph, xs[i]), find(c, "want_dx_%d", places[i]));
}

static void list_values(random_case *c)
{
    tw_node *n = tw_graph_find(c->graph, "n");
    for (int i = 0; i < MOST; i++)
        if (find(c, "want_%d", i))
            add(c, tw_node_output(n, i), find(c, "want_%d", i));
    if (find(c, "want_dx_%d", 0) || find(c, "want_dx_%d", 1) || find(c, "want_dx_%d", 2))
        add_gradients(c);
    c->first_read = c->count;
    for (int i = 0; i < MOST; i++)
        if (find(c, "want_read_x_%d", i))
            add(c, tw_node_output(find(c, "read_x_%d", i), 0), find(c, "want_read_x_%d", i));
}

static double tolerance_of(tw_dtype dtype)
{
    return dtype == TW_FLOAT64 ? 1e-10 : dtype == TW_FLOAT32 ? 2e-5 : dtype == TW_FLOAT16 ? 6e-3 : 4e-2;
}

static void compare(const random_case *c, int i, const tw_tensor *got, const tw_tensor *want, double tolerance)
{
    char a[96], b[96];
    tw_dtype dtype = tw_tensor_dtype(want);
    bool is_float = dtype == TW_FLOAT32 || dtype == TW_FLOAT64 || dtype == TW_FLOAT16 || dtype == TW_BFLOAT16;
    double scale = 1;
    if (tw_tensor_dtype(got) != dtype || !tw_shape_equal(tw_tensor_shape(got), tw_tensor_shape(want)))
        fail_msg("case %d: value %d is %s %s, expected %s %s", c->number, i, tw_dtype_name(tw_tensor_dtype(got)),
                 tw_shape_text(tw_tensor_shape(got), a, sizeof a), tw_dtype_name(dtype),
                 tw_shape_text(tw_tensor_shape(want), b, sizeof b));
    tolerance = fmax(tolerance, is_float ? tolerance_of(dtype) : 0);
    for (int64_t k = 0; k < tw_tensor_elements(want); k++)
        if (isfinite(tw_tensor_value(want, k)))
            scale = fmax(scale, fabs(tw_tensor_value(want, k)));
    for (int64_t k = 0; k < tw_tensor_elements(want); k++) {
        double x = tw_tensor_value(got, k), y = tw_tensor_value(want, k);
        bool same = x == y || (isnan(x) && isnan(y)) || (is_float && fabs(x - y) <= tolerance * scale);
        if (dtype == TW_STRING) {
            const tw_string *s = (const tw_string *)tw_tensor_data(got) + k,
                            *t = (const tw_string *)tw_tensor_data(want) + k;
            same = s->size == t->size && (s->size == 0 || memcmp(s->data, t->data, s->size) == 0);
        }
        if (!same)
            fail_msg("case %d (%s): value %d, element %lld is %.9g, expected %.9g", c->number,
                     tw_node_op(tw_graph_find(c->graph, "n")), i, (long long)k, x, y);
    }
}

/* Runs the whole, then reads the variables. Returns the status of what may fail. */
static tw_status run(random_case *c, tw_session *session, tw_tensor **results, tw_error *error)
{
    tw_output init = tw_node_output(tw_graph_find(c->graph, "init"), -1);
    tw_output n = tw_node_output(tw_graph_find(c->graph, "n"), -1);
    init.index = n.index = -1;
    tw_status status = tw_session_run(session, NULL, 0, &init, 1, NULL, error);
    if (status == TW_OK && c->first_read)
        status = tw_session_run(session, NULL, 0, c->values, c->first_read, results, error);
    else if (status == TW_OK)
        status = tw_session_run(session, NULL, 0, &n, 1, NULL, error);
    if (status == TW_OK && c->count > c->first_read)
        status = tw_session_run(session, NULL, 0, c->values + c->first_read, c->count - c->first_read,
                                results + c->first_read, error);
    return status;
}

static void check_values(random_case *c, int code, const tw_session_options *options)
{
    tw_error error = {0};
    tw_session *session;
    tw_tensor *got[MOST] = {NULL}, *want[MOST] = {NULL}, *tolerance = NULL;
    tw_node *told = tw_graph_find(c->graph, "tolerance");
    assert_ok(tw_session_create(c->graph, options, &session, &error));
    tw_status status = run(c, session, got, &error);
    if ((int)status != code)
        fail_msg("case %d: status %d, expected %d: %s", c->number, status, code, error.message);
    if (told) {
        tw_output output = tw_node_output(told, 0);
        assert_ok(tw_session_run(session, NULL, 0, &output, 1, &tolerance, &error));
    }
    for (int i = 0; i < c->count && !code; i++) {
        assert_ok(tw_session_run(session, NULL, 0, &c->wanted[i], 1, &want[i], &error));
        compare(c, i, got[i], want[i], tolerance ? tw_tensor_value(tolerance, 0) : 0);
    }
    for (int i = 0; i < c->count; i++) {
        tw_tensor_release(got[i]);
        tw_tensor_release(want[i]);
    }
    tw_tensor_release(tolerance);
    tw_session_destroy(session);
}

/* What cannot be is refused when it is read already, or when it runs. */
static void check_case(int number, const void *bytes, size_t size, int code, const tw_session_options *options)
{
    tw_error error = {0};
    random_case c = {.number = number, .graph = tw_graph_create()};
    assert_non_null(c.graph);
    tw_status status = tw_graph_import(c.graph, bytes, size, NULL, &error);
    if (status != TW_OK) {
        if ((int)status != code)
            fail_msg("case %d: %s", number, error.message);
    } else {
        list_values(&c);
        check_values(&c, code, options);
    }
    tw_graph_destroy(c.graph);
}

/* All cases in a mode. */
static void check_sample(tw_session_options options)
{
    tw_error error = {0};
    tw_devices *devices;
    FILE *file = fopen(GOLDEN_DIR "/random_ops.bin", "rb");
    unsigned char head[8];
    int cases = 0;
    assert_non_null(file);
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .no_gpus = true}, &devices, &error));
    options.devices = devices;
    while (fread(head, 1, sizeof head, file) == sizeof head) {
        size_t size = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
        char *bytes = malloc(size + 1);
        assert_non_null(bytes);
        assert_int_equal(fread(bytes, 1, size, file), size);
        check_case(cases++, bytes, size, head[4], &options);
        free(bytes);
    }
    fclose(file);
    tw_devices_destroy(devices);
    assert_int_equal(cases, 500);
}

static void random_ops_give_what_tensorflow_gives(void **state)
{
    (void)state;
    check_sample((tw_session_options){0});
}

static void they_do_so_without_rewrites_and_on_plain_kernels(void **state)
{
    (void)state;
    check_sample((tw_session_options){.disable = "all", .plain_kernels = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_ops_give_what_tensorflow_gives),
        cmocka_unit_test(they_do_so_without_rewrites_and_on_plain_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
