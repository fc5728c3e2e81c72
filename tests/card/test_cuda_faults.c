/* The CUDA plug-in on a card that is not there (card/card.h), calls of which fail in turn: of the driver, the
 * runtime, cuBLASLt and cuDNN. Each failure must end in an error that names the call, the file and the device, and
 * nothing may stay behind. The driver is asked once a process, so each try has one of its own. */
#include "failing_calls.h"

#include <limits.h>
#include <stdlib.h>

/* ---- a program --------------------------------------------------------------------------------------------------- */

enum { CARDS = 2, STEPS = 4 };

/* On each device a convolution and a product with their gradients, and an update; the sum of the losses on the host. */
static tw_output build(tw_graph *g, const char *type, tw_output *start, tw_output *train)
{
    tw_output losses[CARDS] = {0}, begin[CARDS], updates[CARDS];
    for (int i = 0; i < CARDS; i++)
        TW_DEVICE(g, "/%s:%d", type, i) {
            char name[] = {'w', (char)('0' + i), 0};
            tw_variable *w = tw_get_variable(g, name, TW_FLOAT32, TW_SHAPE(3, 3, 3, 4),
                                             (tw_initializer){.kind = TW_INIT_UNIFORM, .a = -1, .b = 1, .seed = 3});
            tw_output gradient = {0}, shape = tw_constant_int32s(g, TW_SHAPE(4), (int32_t[]){2, 7, 8, 3});
            tw_output x = tw_random_uniform(g, shape, TW_FLOAT32, 5);
            tw_output y = tw_relu(g, tw_conv2d(g, x, w->value, &(tw_conv2d_options){.stride = {2, 2}}));
            y = tw_max_pool(g, y, &(tw_pool_options){.window = {3, 3}, .stride = {1, 1}});
            tw_output rows = tw_reshape(g, y, TW_SHAPE(8, 16));
            losses[i] = tw_l2_loss(g, tw_matmul(g, rows, tw_transpose(g, rows, TW_SHAPE(1, 0))));
            tw_gradients(g, &losses[i], 1, NULL, &w->value, 1, &gradient);
            updates[i] = tw_apply_gradient_descent(g, w->handle, tw_scalar(g, 1e-9f), gradient);
            begin[i] = w->initializer;
        }
    *start = tw_group(g, begin, CARDS);
    *train = tw_group(g, updates, CARDS);
    return tw_add_n(g, losses, CARDS);
}

typedef struct counts {
    long recordings, replays, launches;
} counts;

static counts counts_now(void)
{
    return (counts){card_count("cudaGraphInstantiate"), card_count("cudaGraphLaunch"), card_count("kernel")};
}

/* losses and after, if given: [STEPS], what each step computed and what had been counted when it was done. */
static tw_status run_on(tw_device_options options, const char *type, float *losses, counts *after, tw_error *error)
{
    tw_devices *devices = NULL;
    tw_session *session = NULL;
    tw_output start, fetches[2];
    tw_graph *g = tw_graph_create();
    options.cpu_devices = CARDS;
    options.cpu_threads = 1;
    tw_status status = tw_devices_create(&options, &devices, error);
    if (status == TW_OK && tw_devices_count(devices, "GPU") < CARDS) {
        snprintf(error->message, sizeof error->message, "%s", tw_devices_why_no_gpu());
        status = TW_UNAVAILABLE;
    }
    if (status == TW_OK) {
        fetches[0] = build(g, type, &start, &fetches[1]);
        assert_string_equal(tw_graph_message(g), "");
        status = tw_session_create(g, &(tw_session_options){.devices = devices}, &session, error);
    }
    if (status == TW_OK)
        status = tw_session_run(session, NULL, 0, &start, 1, NULL, error);
    for (int step = 0; step < STEPS && status == TW_OK; step++) {
        tw_tensor *values[2] = {0};
        status = tw_session_run(session, NULL, 0, fetches, 2, values, error);
        if (losses && status == TW_OK)
            losses[step] = *(const float *)tw_tensor_data(values[0]);
        if (after)
            after[step] = counts_now();
        tw_tensor_release(values[0]);
        tw_tensor_release(values[1]);
    }
    tw_session_destroy(session);
    tw_graph_destroy(g);
    tw_devices_destroy(devices);
    return status;
}

static tw_status run(const char *type, float *losses, counts *after, tw_error *error)
{
    return run_on((tw_device_options){0}, type, losses, after, error);
}

/* ---- every call -------------------------------------------------------------------------------------------------- */

static long stride = 47; /* between the calls that are tried; the argument "every" makes it 1, "some" 397 */

/* Giving back may fail without anybody being told: what was asked for has been done. An engine of cuDNN that does not
 * want to is passed over. And cards are found by number once more when their memory is freed. */
static bool may_be_silent(const char *call)
{
    return strstr(call, "Destroy") || strstr(call, "Free") || strcmp(call, "cudnnBackendFinalize") == 0 ||
           strcmp(call, "cudaSetDevice") == 0;
}

static int complain(long n, const char *what, const char *text)
{
    fprintf(stderr, "call %ld (%s) fails: %s: \"%s\"\n", n, card_failed(), what, text);
    return BAD;
}

static int try_one(long n)
{
    tw_error error = {0};
    tw_set_log(log_it, NULL, 1);
    card_fail_at(n);
    tw_status status = run("gpu", NULL, NULL, &error);
    const char *call = card_failed();
    if (*card_leaks())
        return complain(n, "left behind", card_leaks());
    if (!*call)
        return status == TW_OK ? NOT_REACHED : complain(n, "fails on its own", error.message);
    if (status == TW_OK)
        return may_be_silent(call) || strstr(logged, call) ? FINE : complain(n, "nobody says so", "");
    if (strncmp(call, "cu", 2) == 0 && call[2] >= 'A' && call[2] <= 'Z') /* the driver: there is no device yet */
        return strstr(error.message, call) && strstr(error.message, "driver") ? FINE
                                                                             : complain(n, "which?", error.message);
    if (!strstr(error.message, call) || !strstr(error.message, "/device:GPU:") ||
        (!strstr(error.message, ".c:") && !strstr(error.message, ".cu:")))
        return complain(n, "what, where, on which device?", error.message);
    return FINE;
}

static void every_call_that_fails_is_named_and_nothing_stays_behind(void **state)
{
    (void)state;
    assert_failing_calls_are_answered(try_one, stride, 1000, LONG_MAX);
}

/* From the n-th call on every call fails, those of giving back, too. */
static int try_from(long n)
{
    tw_error error = {0};
    tw_set_log(log_it, NULL, 1);
    alarm(PATIENCE); /* none waits for what does not come */
    card_fail_from(n);
    tw_status status = run("gpu", NULL, NULL, &error);
    if (*card_leaks())
        return complain(n, "left behind", card_leaks());
    if (!*card_failed())
        return status == TW_OK ? NOT_REACHED : complain(n, "fails on its own", error.message);
    if (status == TW_OK)
        return names_a_failed_call(logged, may_be_silent) ? FINE : complain(n, "nobody says so", logged);
    if (!names_a_failed_call(error.message, NULL))
        return complain(n, "which?", error.message);
    bool of_device = strstr(error.message, "/device:GPU:") &&
                     (strstr(error.message, ".c:") || strstr(error.message, ".cu:"));
    return of_device || strstr(error.message, "driver") ? FINE : complain(n, "where, on which device?", error.message);
}

static void a_card_that_fails_for_good_is_named_and_nothing_stays_behind(void **state)
{
    (void)state;
    assert_failing_calls_are_answered(try_from, stride, 1000, LONG_MAX);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static void a_step_is_recorded_once_and_replayed_with_the_same_numbers(void **state)
{
    (void)state;
    tw_error error = {0};
    float expected[STEPS], found[STEPS];
    counts after[STEPS];
    assert_ok(run("cpu", expected, NULL, &error));
    assert_ok(run("gpu", found, NULL, &error)); /* algorithms are chosen, for which they are recorded, too */
    counts before = counts_now();
    assert_ok(run("gpu", found, after, &error));
    assert_floats_near(found, expected, STEPS, 1e-5);
    assert_int_equal(after[0].recordings - before.recordings, 1); /* whether the two cards can be in one is tried */
    assert_int_equal(after[0].replays - before.replays, 1);
    assert_true(after[1].recordings > after[0].recordings);
    for (int step = 2; step < STEPS; step++) {
        assert_int_equal(after[step].recordings, after[1].recordings);
        assert_int_equal(after[step].replays - after[step - 1].replays, after[1].replays - after[0].replays);
        assert_int_equal(after[step].launches - after[step - 1].launches, CARDS); /* random numbers */
    }
    assert_string_equal(card_leaks(), "");
}

/* ---- machines ---------------------------------------------------------------------------------------------------- */

static int one_line(const char *part)
{
    const char *why = tw_devices_why_no_gpu();
    if (strstr(why, part) && !strchr(why, '\n'))
        return FINE;
    fprintf(stderr, "\"%s\" does not contain \"%s\"\n", why, part);
    return BAD;
}

static int without_cards(long n)
{
    (void)n;
    setenv("CARD_COUNT", "0", 1);
    return one_line("the NVIDIA driver finds no card");
}

static int with_an_old_driver(long n)
{
    (void)n;
    setenv("CARD_DRIVER", "11040", 1);
    return one_line("the NVIDIA driver is too old: it knows CUDA 11.4");
}

static int only_one_is_used(long n)
{
    (void)n;
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_tensor *value = NULL;
    tw_graph *g = tw_graph_create();
    tw_output sum = {0};
    TW_DEVICE(g, "/gpu:0")
        sum = tw_add(g, tw_neg(g, tw_scalar(g, 1)), tw_scalar(g, 3));
    if (tw_devices_create(NULL, &devices, &error) != TW_OK || card_opened(0) || card_opened(1) ||
        tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error) != TW_OK ||
        tw_session_run(session, NULL, 0, &sum, 1, &value, &error) != TW_OK) {
        fprintf(stderr, "%s\n", error.message);
        return BAD;
    }
    tw_tensor_release(value);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return card_opened(1) && !card_opened(0) ? FINE : BAD; /* the first on the bus is the driver's last */
}

/* Two cards in two parts each: four GPUs, each with half of a card's memory, all of which work. */
static int in_parts(long n)
{
    (void)n;
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_tensor *value = NULL;
    tw_graph *g = tw_graph_create();
    tw_output sum = tw_scalar(g, 1);
    if (tw_devices_create(&(tw_device_options){.logical_gpus = 2}, &devices, &error) != TW_OK)
        return complain(0, "cannot be divided", error.message);
    tw_device_info gpu = tw_devices_info(devices, 2);
    if (tw_devices_count(devices, "GPU") != 4 || gpu.part != 1 || gpu.parts != 2 || gpu.multiprocessors != 64 ||
        gpu.memory_limit != (size_t)8 << 30 || !strstr(gpu.description, "logical: part 2 of 2"))
        return complain(0, "are not the parts", gpu.description);
    for (int i = 0; i < 4; i++)
        TW_DEVICE(g, "/gpu:%d", i)
            sum = tw_add(g, tw_neg(g, sum), tw_scalar(g, 3));
    if (tw_session_create(g, &(tw_session_options){.devices = devices, .disable = "fold"}, &session, &error) != TW_OK ||
        tw_session_run(session, NULL, 0, &sum, 1, &value, &error) != TW_OK || tw_tensor_value(value, 0) != 1)
        return complain(0, "do not work", error.message);
    if (card_count("cudaMemcpyPeerAsync") != 1) /* from the second part to the third; others are of one card */
        return complain(0, "copy within a card as between two", "");
    tw_tensor_release(value);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    if (tw_devices_create(&(tw_device_options){.logical_gpus = 16}, &devices, &error) != TW_OK)
        return complain(0, "cannot be divided by 16", error.message);
    tw_devices_destroy(devices);
    return *card_leaks() ? complain(0, "left behind", card_leaks()) : FINE;
}

/* Two parts of a card convolve as two cards do, whether or not cuDNN takes their streams as it is. */
static int convolve_in_parts(long strict)
{
    tw_error error = {0};
    float expected[STEPS], losses[STEPS];
    setenv("CARD_COUNT", "1", 1);
    if (strict)
        setenv("CARD_STRICT", "1", 1);
    if (run_on((tw_device_options){.logical_gpus = 2}, "cpu", expected, NULL, &error) != TW_OK)
        return complain(0, "fails on the CPU", error.message);
    if (run_on((tw_device_options){.logical_gpus = 2}, "gpu", losses, NULL, &error) != TW_OK)
        return complain(0, "fails", error.message);
    for (int i = 0; i < STEPS; i++)
        if (fabsf(losses[i] - expected[i]) > 1e-4f * fabsf(expected[i]))
            return complain(0, "computes something else", "");
    if (card_count("cudnnCreate") != (strict ? 4 : 2) ||
        card_count("cuCtxPushCurrent_v2") != card_count("cuCtxPopCurrent_v2"))
        return complain(0, "makes too many handles, or stays in a context", "");
    return *card_leaks() ? complain(0, "left behind", card_leaks()) : FINE;
}

/* The library's list begins with an engine that adds in any order, then comes one of TF32, then one that wants too much
 * memory. Those that may be taken are timed; the others never run. */
static int by_engine(long wanted)
{
    tw_error error = {0};
    tw_device_options options = {.fast = wanted == 0, .tf32 = wanted == 1 || getenv("CARD_NARROWS")};
    long runs[5], most = 0;
    card_takes("engine 0", 0.5);
    card_takes("engine 1", 0.5);
    card_takes("engine 4", 2);
    if (run_on(options, "gpu", NULL, NULL, &error) != TW_OK)
        return complain(0, "fails", error.message);
    for (long engine = 0; engine < 5; engine++) {
        char name[] = {'e', 'n', 'g', 'i', 'n', 'e', ' ', (char)('0' + engine), 0};
        runs[engine] = card_count(name);
        if ((runs[engine] > 0) != (engine == wanted || engine > 2))
            return complain(0, "another engine runs", name);
        most = runs[engine] > most ? runs[engine] : most;
    }
    return runs[wanted] == most && runs[4] < most ? FINE : complain(0, "another engine is taken", "");
}

/* The one of TF32 makes its inputs narrower still, which nobody can ask for. */
static int by_engine_among_narrow_ones(long wanted)
{
    setenv("CARD_NARROWS", "1", 1);
    return by_engine(wanted);
}

static void engines_that_make_inputs_narrower_are_never_taken(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(by_engine_among_narrow_ones, 3), FINE);
}

static void engines_of_any_order_and_of_tf32_are_taken_only_when_asked_for(void **state)
{
    (void)state;
    for (long engine = 0; engine < 2; engine++)
        assert_int_equal(in_a_process(by_engine, engine), FINE);
    assert_int_equal(in_a_process(by_engine, 3), FINE);
}

static void a_card_is_divided_into_parts(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(in_parts, 0), FINE);
}

static void a_part_has_a_handle_of_cudnn_that_takes_its_streams(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(convolve_in_parts, 0), FINE);
    assert_int_equal(in_a_process(convolve_in_parts, 1), FINE);
}

static void a_machine_without_cards_or_with_an_old_driver_says_so_in_one_line(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(without_cards, 0), FINE);
    assert_int_equal(in_a_process(with_an_old_driver, 0), FINE);
}

static void a_card_that_nobody_uses_gets_no_context(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(only_one_is_used, 0), FINE);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_that_fails_is_named_and_nothing_stays_behind),
        cmocka_unit_test(a_card_that_fails_for_good_is_named_and_nothing_stays_behind),
        cmocka_unit_test(a_machine_without_cards_or_with_an_old_driver_says_so_in_one_line),
        cmocka_unit_test(a_card_that_nobody_uses_gets_no_context),
        cmocka_unit_test(engines_of_any_order_and_of_tf32_are_taken_only_when_asked_for),
        cmocka_unit_test(engines_that_make_inputs_narrower_are_never_taken),
        cmocka_unit_test(a_card_is_divided_into_parts),
        cmocka_unit_test(a_part_has_a_handle_of_cudnn_that_takes_its_streams),
        cmocka_unit_test(a_step_is_recorded_once_and_replayed_with_the_same_numbers), /* the last: it asks the driver */
    };
    if (count > 1 && strcmp(arguments[1], "every") == 0)
        stride = 1;
    if (count > 1 && strcmp(arguments[1], "some") == 0)
        stride = 397;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
