/* test_train.c - training gives TensorFlow's numbers, whatever the devices, and goes on to the bit after a restore. */
#define _GNU_SOURCE
#include "testing.h"

#include "faulty_memory.h"

#include <ftw.h>
#include <math.h>
#include <sys/stat.h>
#include <tower/io.h>
#include <tower/nn.h>
#include <tower/train.h>
#include <unistd.h>

#include "golden/sparse.h"
#include "golden/train.h"

enum { STEPS = 20, TOWERS = 2, WEIGHTS = 25 };

/* ---- the network of make_train.py ------------------------------------------------------------------------------ */

typedef struct training {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
    tw_output fetches[TOWERS + 1]; /* losses, the update of averages */
    tw_averages *averages;
} training;

static tw_output tower_loss(tw_graph *g, int tower)
{
    float x[4][3], y[4];
    for (int i = 0; i < 4; i++) {
        int example = 4 * tower + i;
        y[i] = (float)((2 * example) % 5 - 2) / 2;
        for (int j = 0; j < 3; j++)
            x[i][j] = (float)((3 * example + 5 * j) % 7 - 3) / 4;
    }
    tw_initializer truncated = {TW_INIT_TRUNCATED_NORMAL, 0, 0.5f, 11}, normal = {TW_INIT_NORMAL, 0, 0.5f, 12};
    tw_variable *w1 = tw_get_variable(g, "w1", TW_FLOAT32, TW_SHAPE(3, 5), truncated);
    tw_variable *b1 = tw_get_variable(g, "b1", TW_FLOAT32, TW_SHAPE(5), (tw_initializer){.a = 0.1f});
    tw_variable *w2 = tw_get_variable(g, "w2", TW_FLOAT32, TW_SHAPE(5, 1), normal);
    tw_output sum = tw_matmul(g, tw_constant_floats(g, TW_SHAPE(4, 3), x[0]), tw_variable_read(g, w1));
    tw_output hidden = tw_relu(g, tw_bias_add(g, sum, tw_variable_read(g, b1)));
    tw_output miss = tw_sub(g, tw_matmul(g, hidden, tw_variable_read(g, w2)),
                            tw_constant_floats(g, TW_SHAPE(4, 1), y));
    tw_add_loss(g, tw_reduce_mean(g, tw_square(g, miss), NULL, 0, false));
    tw_add_loss(g, tw_mul(g, tw_l2_loss(g, tw_variable_read(g, w1)), tw_scalar(g, 0.01f)));
    return tw_total_loss(g, NULL);
}

static tw_optimizer *optimizer_of(tw_graph *g, const char *name, const tw_variable *step)
{
    if (strcmp(name, "gradient_descent") == 0)
        return tw_gradient_descent(g, tw_exponential_decay(g, 0.2f, step, 6, 0.5f, true));
    if (strcmp(name, "smooth") == 0)
        return tw_gradient_descent(g, tw_exponential_decay(g, 0.2f, step, 6, 0.5f, false));
    if (strcmp(name, "momentum") == 0)
        return tw_momentum(g, tw_piecewise_constant(g, step, (int64_t[]){4, 11}, 2, (float[]){0.05f, 0.02f, 0.01f}),
                           0.9f, false);
    if (strcmp(name, "nesterov") == 0)
        return tw_momentum(g, tw_scalar(g, 0.02f), 0.9f, true);
    if (strcmp(name, "adam") == 0)
        return tw_adam(g, tw_scalar(g, 0.01f), 0.9f, 0.999f, 1e-8f);
    return tw_rms_prop(g, tw_scalar(g, 0.01f), 0.9f, 0.5f, 1e-10f);
}

/* A training on so many virtual GPUs (0: the CPU), initialized unless it is to be restored. */
static training start(const char *optimizer_name, int gpus, bool initialize)
{
    tw_error error = {0};
    training t = {.g = tw_graph_create()};
    tw_grads *grads[TOWERS];
    tw_graph_set_seed(t.g, 7);
    tw_variable *step = tw_global_step(t.g);
    tw_optimizer *optimizer = optimizer_of(t.g, optimizer_name, step);
    for (int i = 0; i < TOWERS; i++)
        TW_DEVICE(t.g, gpus ? "/gpu:%d" : "/cpu:0", gpus ? i % gpus : 0)
        TW_NAME_SCOPE(t.g, "tower_%d", i) {
            t.fetches[i] = tower_loss(t.g, i);
            grads[i] = tw_compute_gradients(optimizer, t.fetches[i]);
            tw_reuse_variables(t.g);
        }
    tw_output apply = tw_apply_gradients(optimizer, tw_average_gradients(t.g, grads, TOWERS, NULL), step);
    t.averages = tw_moving_averages(t.g, 0.9f, step, apply);
    if (tw_graph_status(t.g) != TW_OK)
        fail_msg("%s", tw_graph_message(t.g));
    t.fetches[TOWERS] = t.averages->update;
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_threads = 1, .virtual_gpus = gpus, .no_gpus = !gpus},
                                &t.devices, &error));
    assert_ok(tw_session_create(t.g, &(tw_session_options){.devices = t.devices, .allow_soft_placement = true}, &t.s,
                                &error));
    tw_output init = tw_initialize_variables(t.g);
    if (initialize)
        assert_ok(tw_session_run(t.s, NULL, 0, &init, 1, NULL, &error));
    return t;
}

static void run_steps(training *t, int count, float *losses)
{
    tw_error error = {0};
    tw_tensor *results[TOWERS + 1] = {0};
    for (int i = 0; i < count; i++) {
        assert_ok(tw_session_run(t->s, NULL, 0, t->fetches, TOWERS + 1, results, &error));
        for (int k = 0; k < TOWERS; k++)
            losses[i * TOWERS + k] = (float)tw_tensor_value(results[k], 0);
    }
    for (int k = 0; k < TOWERS; k++)
        tw_tensor_release(results[k]);
}

static void get_values(training *t, tw_variable *const *variables, float *values)
{
    tw_error error = {0};
    for (int i = 0; i < t->averages->count; i++) {
        tw_tensor *value = NULL;
        assert_ok(tw_session_get_variable(t->s, variables[i], &value, &error));
        memcpy(values, tw_tensor_data(value), tw_tensor_bytes(value));
        values += tw_tensor_elements(value);
        tw_tensor_release(value);
    }
}

static void stop(training *t)
{
    tw_session_destroy(t->s);
    tw_devices_destroy(t->devices);
    tw_graph_destroy(t->g);
}

/* ---- numbers --------------------------------------------------------------------------------------------------- */

static void twenty_steps_of_every_optimizer_give_the_numbers_of_tensorflow(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof golden_trainings / sizeof golden_trainings[0]; i++) {
        const struct golden_training *golden = &golden_trainings[i];
        float losses[STEPS * TOWERS], values[WEIGHTS];
        training t = start(golden->name, 0, true);
        run_steps(&t, STEPS, losses);
        assert_floats_near(losses, golden->losses, STEPS * TOWERS, 1e-5);
        get_values(&t, t.averages->variables, values);
        assert_floats_near(values, golden->variables, WEIGHTS, 1e-5);
        get_values(&t, t.averages->averages, values);
        assert_floats_near(values, golden->averages, WEIGHTS, 1e-5);
        stop(&t);
    }
}

static void one_and_two_gpus_give_the_bits_of_the_cpu(void **state)
{
    (void)state;
    float expected[WEIGHTS], values[WEIGHTS], losses[STEPS * TOWERS];
    for (int gpus = 0; gpus < 3; gpus++) {
        training t = start("adam", gpus, true);
        run_steps(&t, STEPS, losses);
        get_values(&t, t.averages->averages, gpus ? values : expected);
        if (gpus)
            assert_memory_equal(values, expected, sizeof values);
        stop(&t);
    }
}

/* ---- saving and restoring -------------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)about;
    (void)kind;
    (void)walk;
    return remove(path);
}

static char directory[] = P_tmpdir "/tower-train-XXXXXX";

static int make_directory(void **state)
{
    (void)state;
    return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    (void)state;
    return nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static tw_checkpoint *open_latest(void)
{
    tw_error error = {0};
    tw_checkpoint *checkpoint;
    assert_ok(tw_checkpoint_open(directory, &checkpoint, &error));
    return checkpoint;
}

static void a_restored_training_goes_on_to_the_bit_on_other_devices(void **state)
{
    (void)state;
    tw_error error = {0};
    float expected[STEPS * TOWERS], losses[STEPS * TOWERS], whole[WEIGHTS], values[WEIGHTS];
    training t = start("rms_prop", 1, true);
    run_steps(&t, 10, expected);
    assert_ok(tw_save(t.s, directory, 10, NULL, &error));
    run_steps(&t, 10, expected);
    get_values(&t, t.averages->averages, whole);
    stop(&t);

    tw_checkpoint *checkpoint = open_latest();
    t = start("rms_prop", 2, false);
    assert_ok(tw_restore(t.s, checkpoint, NULL, NULL, &error));
    tw_checkpoint_close(checkpoint);
    run_steps(&t, 10, losses);
    get_values(&t, t.averages->averages, values);
    assert_memory_equal(losses, expected, 10 * TOWERS * sizeof(float));
    assert_memory_equal(values, whole, sizeof values);
    stop(&t);
}

static void averages_take_the_place_of_variables_in_a_graph_that_has_none(void **state)
{
    (void)state;
    tw_error error = {0};
    float averages[WEIGHTS], losses[5 * TOWERS];
    training t = start("gradient_descent", 0, true);
    run_steps(&t, 5, losses);
    get_values(&t, t.averages->averages, averages);
    assert_ok(tw_save(t.s, directory, 5000, &(tw_save_options){.keep = 1}, &error));
    stop(&t);

    tw_graph *g = tw_graph_create();
    tw_session *s;
    tw_variable *w1 = tw_get_variable(g, "w1", TW_FLOAT32, TW_SHAPE(3, 5), (tw_initializer){0});
    assert_ok(tw_session_create(g, NULL, &s, &error));
    tw_checkpoint *checkpoint = open_latest();
    for (int averaged = 0; averaged < 2; averaged++) {
        int count = -1;
        tw_tensor *value;
        assert_ok(tw_restore(s, checkpoint, &(tw_restore_options){.averages = averaged}, &count, &error));
        assert_int_equal(count, averaged);
        assert_ok(tw_session_get_variable(s, w1, &value, &error));
        assert_int_equal(memcmp(tw_tensor_data(value), averages, tw_tensor_bytes(value)) == 0, averaged);
        tw_tensor_release(value);
    }
    tw_checkpoint_close(checkpoint);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* What was saved elsewhere may have nothing else. */
static void an_average_alone_is_found(void **state)
{
    (void)state;
    int count = -1;
    tw_error error = {0};
    tw_tensor *given = tw_tensor_float(5), *value;
    tw_graph *g = tw_graph_create();
    tw_session *s;
    tw_variable *a = tw_get_variable(g, "a", TW_FLOAT32, TW_SCALAR, (tw_initializer){0});
    assert_ok(tw_session_create(g, NULL, &s, &error));
    tw_named_tensor average = {"a/ExponentialMovingAverage", given};
    assert_ok(tw_checkpoint_save(directory, "model.ckpt", 5001, &average, 1, 0, &error));
    tw_checkpoint *checkpoint = open_latest();
    assert_ok(tw_restore(s, checkpoint, &(tw_restore_options){.averages = true}, &count, &error));
    assert_int_equal(count, 1);
    assert_ok(tw_session_get_variable(s, a, &value, &error));
    assert_true(tw_tensor_value(value, 0) == 5);
    tw_checkpoint_close(checkpoint);
    tw_tensor_release(value);
    tw_tensor_release(given);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* A graph with variables "a" (float [2]) and, if asked, "b"; "a" is set. */
static tw_session *small_session(tw_graph *g, bool with_b)
{
    tw_error error = {0};
    tw_session *s;
    tw_variable *a = tw_get_variable(g, "a", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){0});
    if (with_b)
        tw_get_variable(g, "b", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){0});
    assert_ok(tw_session_create(g, NULL, &s, &error));
    tw_tensor *value = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2), (float[]){3, 4});
    assert_ok(tw_session_set_variable(s, a, value, &error));
    tw_tensor_release(value);
    return s;
}

static const char *old_name(void *user, const char *name)
{
    (void)user;
    return strcmp(name, "c") == 0 ? "a" : NULL;
}

static void what_does_not_fit_is_named_and_nothing_is_changed(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create(), *bigger = tw_graph_create(), *other = tw_graph_create();
    tw_session *s = small_session(g, false), *t = small_session(bigger, true), *u;
    assert_ok(tw_save(s, directory, 6000, NULL, &error));
    assert_fails(tw_save(t, directory, 7000, NULL, &error), TW_FAILED_PRECONDITION, "variable b has no value yet");

    tw_checkpoint *checkpoint = open_latest();
    tw_tensor *value = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2), (float[]){5, 6}), *kept;
    assert_ok(tw_session_set_variable(t, tw_graph_find_variable(bigger, "a"), value, &error));
    assert_fails(tw_restore(t, checkpoint, NULL, NULL, &error), TW_NOT_FOUND, "has no 'b', which variable 'b' needs");
    assert_ok(tw_session_get_variable(t, tw_graph_find_variable(bigger, "a"), &kept, &error));
    assert_true(tw_tensor_value(kept, 0) == 5);
    tw_tensor_release(kept);
    assert_ok(tw_restore(t, checkpoint, &(tw_restore_options){.allow_missing = true}, NULL, &error));
    assert_ok(tw_session_get_variable(t, tw_graph_find_variable(bigger, "a"), &kept, &error));
    assert_true(tw_tensor_value(kept, 0) == 3);
    tw_tensor_release(kept);

    tw_get_variable(other, "c", TW_FLOAT32, TW_SHAPE(3), (tw_initializer){0});
    assert_ok(tw_session_create(other, NULL, &u, &error));
    assert_fails(tw_restore(u, checkpoint, &(tw_restore_options){.rename = old_name}, NULL, &error),
                 TW_INVALID_ARGUMENT, "has float [2] as 'a', but variable 'c' is float [3]");
    tw_checkpoint_close(checkpoint);
    tw_tensor_release(value);
    tw_session_destroy(s);
    tw_session_destroy(t);
    tw_session_destroy(u);
    tw_graph_destroy(g);
    tw_graph_destroy(bigger);
    tw_graph_destroy(other);
}

static void random_streams_and_extras_are_saved_too(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_tensor *results[4] = {0}, *seven = tw_tensor_int64(7);
    tw_named_tensor extra = {"position", seven};
    for (int restored = 0; restored < 2; restored++) {
        tw_graph *g = tw_graph_create();
        tw_graph_set_seed(g, 3);
        tw_session *s = small_session(g, false);
        tw_output noise = tw_random_uniform(g, tw_constant_int32s(g, TW_SHAPE(1), (int32_t[]){5}), TW_FLOAT32, 1);
        if (!restored) {
            assert_ok(tw_session_run(s, NULL, 0, &noise, 1, &results[0], &error));
            assert_ok(tw_save(s, directory, 8000, &(tw_save_options){.extras = &extra, .num_extras = 1}, &error));
            assert_ok(tw_session_run(s, NULL, 0, &noise, 1, &results[1], &error));
        } else {
            tw_checkpoint *checkpoint = open_latest();
            assert_ok(tw_restore(s, checkpoint, NULL, NULL, &error));
            assert_ok(tw_checkpoint_read(checkpoint, "position", &results[3], &error));
            assert_true(tw_tensor_value(results[3], 0) == 7);
            tw_checkpoint_close(checkpoint);
            assert_ok(tw_session_run(s, NULL, 0, &noise, 1, &results[2], &error));
        }
        tw_session_destroy(s);
        tw_graph_destroy(g);
    }
    assert_memory_not_equal(tw_tensor_data(results[0]), tw_tensor_data(results[1]), 5 * sizeof(float));
    assert_memory_equal(tw_tensor_data(results[2]), tw_tensor_data(results[1]), 5 * sizeof(float));
    for (int i = 0; i < 4; i++)
        tw_tensor_release(results[i]);
    tw_tensor_release(seven);
}

/* Each stream is restored, and what is none is told with the checkpoint that has it. */
static void all_streams_are_restored(void **state)
{
    (void)state;
    static const char *const names[] = {"first", "second"};
    char expected[100];
    tw_error error = {0};
    tw_tensor *places[] = {tw_tensor_int64(0), tw_tensor_from(TW_INT64, TW_SHAPE(2), (int64_t[]){5, 6}),
                           tw_tensor_from(TW_INT64, TW_SHAPE(3), (int64_t[]){7, 8, 9})};
    tw_graph *g = tw_graph_create();
    tw_session *s, *restored;
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_ok(tw_save(s, directory, 8001, NULL, &error)); /* of nothing */
    for (int i = 0; i < 2; i++)
        assert_ok(tw_session_set_stream(s, names[i], places[1 + i], &error));
    assert_ok(tw_save(s, directory, 8002, NULL, &error));
    assert_ok(tw_session_create(g, NULL, &restored, &error));
    tw_checkpoint *checkpoint = open_latest();
    assert_ok(tw_restore(restored, checkpoint, NULL, NULL, &error));
    tw_checkpoint_close(checkpoint);
    assert_int_equal(tw_session_num_streams(restored), 2);
    for (int i = 0; i < 2; i++) {
        const char *name;
        tw_tensor *place;
        assert_ok(tw_session_get_stream(restored, i, &name, &place, &error));
        const tw_tensor *given = places[1 + (strcmp(name, names[1]) == 0)];
        assert_string_equal(name, names[given == places[2]]);
        assert_int_equal(tw_tensor_bytes(place), tw_tensor_bytes(given));
        assert_memory_equal(tw_tensor_data(place), tw_tensor_data(given), tw_tensor_bytes(place));
        tw_tensor_release(place);
    }
    tw_named_tensor none = {"tower/streams/third", places[0]}; /* no vector */
    assert_ok(tw_save(s, directory, 8003, &(tw_save_options){.extras = &none, .num_extras = 1}, &error));
    checkpoint = open_latest();
    snprintf(expected, sizeof expected, "restoring %s/model.ckpt-8003: the place of stream 'third'", directory);
    assert_fails(tw_restore(restored, checkpoint, NULL, NULL, &error), TW_INVALID_ARGUMENT, expected);
    tw_checkpoint_close(checkpoint);
    for (int i = 0; i < 3; i++)
        tw_tensor_release(places[i]);
    tw_session_destroy(s);
    tw_session_destroy(restored);
    tw_graph_destroy(g);
}

static void extras_must_be_somewhere(void **state)
{
    (void)state;
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *s = small_session(g, false);
    tw_named_tensor extra = {0};
    assert_fails(tw_save(s, directory, 8004, &(tw_save_options){.extras = &extra, .num_extras = -1}, &error),
                 TW_INVALID_ARGUMENT, "tw_save: -1 extras; expected 0 or more, and where they are");
    assert_fails(tw_save(s, directory, 8004, &(tw_save_options){.num_extras = 2}, &error), TW_INVALID_ARGUMENT,
                 "tw_save: 2 extras at NULL");
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

/* ---- copies, what is not finite, and what is said ---- */

/* a, b, a copy of a, and a copy of that; the copies are 0, a and b as they are given. What b began with was drawn. */
static tw_session *session_of_copies(tw_graph *g, float a, float b)
{
    tw_error error = {0};
    tw_session *s;
    tw_variable *made[2] = {tw_get_variable(g, "a", TW_FLOAT32, TW_SCALAR, (tw_initializer){0}),
                            tw_get_variable(g, "b", TW_FLOAT32, TW_SCALAR, (tw_initializer){TW_INIT_NORMAL, 0, 1, 3})};
    tw_copy_variable(g, tw_copy_variable(g, made[0], "copy"), "copy_of_copy");
    tw_output init = tw_initialize_variables(g);
    assert_ok(tw_session_create(g, NULL, &s, &error));
    assert_ok(tw_session_run(s, NULL, 0, &init, 1, NULL, &error));
    for (int i = 0; i < 2; i++) {
        tw_tensor *value = tw_tensor_float(i ? b : a);
        assert_ok(tw_session_set_variable(s, made[i], value, &error));
        tw_tensor_release(value);
    }
    return s;
}

static void copies_are_not_saved_and_get_what_is_restored(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "copy", "copy_of_copy"};
    tw_error error = {0};
    tw_graph *graphs[] = {tw_graph_create(), tw_graph_create()};
    tw_session *s = session_of_copies(graphs[0], 3, 4), *t = session_of_copies(graphs[1], 0, 0);
    assert_ok(tw_save(s, directory, 9000, NULL, &error));
    tw_checkpoint *checkpoint = open_latest();
    assert_int_equal(tw_checkpoint_count(checkpoint), 2);
    assert_ok(tw_restore(t, checkpoint, NULL, NULL, &error));
    tw_checkpoint_close(checkpoint);
    for (int i = 0; i < 4; i++) {
        tw_tensor *value = NULL;
        assert_ok(tw_session_get_variable(t, tw_graph_find_variable(graphs[1], names[i]), &value, &error));
        assert_true(tw_tensor_value(value, 0) == (i == 1 ? 4 : 3));
        tw_tensor_release(value);
    }
    tw_new_variable foreign = {TW_FLOAT32, TW_SCALAR, .copy_of = tw_graph_find_variable(graphs[0], "b")};
    assert_null(tw_make_variable(graphs[1], "foreign", &foreign));
    assert_string_equal(tw_graph_message(graphs[1]),
                        "variable 'foreign' cannot be a copy of 'b', which is of another graph");
    tw_session_destroy(s);
    tw_session_destroy(t);
    for (int i = 0; i < 2; i++)
        tw_graph_destroy(graphs[i]);
}

/* As tf.train.Checkpoint has them: the values lie under the ways to their objects. */
static void a_variable_finds_its_object(void **state)
{
    (void)state;
    static const char objects[] = "\x0a\x0a\x12\x08\x12\x01" "a\x1a\x03x/a"
                                  "\x0a\x0a\x12\x08\x12\x01" "b\x1a\x03x/b";
    tw_error error = {0};
    tw_named_tensor tensors[] = {{"x/a", tw_tensor_float(5)},
                                 {"x/b", tw_tensor_from(TW_FLOAT32, TW_SHAPE(2), (float[]){1, 2})},
                                 {"_CHECKPOINTABLE_OBJECT_GRAPH", tw_tensor_string(objects, sizeof objects - 1)}};
    tw_graph *g = tw_graph_create();
    tw_session *s = session_of_copies(g, 3, 4);
    tw_tensor *value = NULL;
    for (int i = 0; i < 2; i++) {
        assert_ok(tw_checkpoint_save(directory, "model.ckpt", 9050 + i, tensors, 3, 0, &error));
        tw_checkpoint *checkpoint = open_latest();
        if (i == 0)
            assert_fails(tw_restore(s, checkpoint, NULL, NULL, &error), TW_INVALID_ARGUMENT, "float [2] as 'x/b'");
        else
            assert_ok(tw_restore(s, checkpoint, NULL, NULL, &error));
        tw_checkpoint_close(checkpoint);
        tw_tensor_release((tw_tensor *)tensors[1].tensor);
        tensors[1].tensor = tw_tensor_float(6);
    }
    assert_ok(tw_session_get_variable(s, tw_graph_find_variable(g, "copy"), &value, &error));
    assert_true(tw_tensor_value(value, 0) == 5);
    tw_tensor_release(value);
    assert_ok(tw_session_get_variable(s, tw_graph_find_variable(g, "b"), &value, &error));
    assert_true(tw_tensor_value(value, 0) == 6);
    tw_tensor_release(value);
    for (int i = 0; i < 3; i++)
        tw_tensor_release((tw_tensor *)tensors[i].tensor);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void what_is_not_finite_is_saved_where_nobody_minds(void **state)
{
    (void)state;
    tw_error error = {0};
    for (int finite = 0; finite < 2; finite++) {
        tw_graph *g = tw_graph_create();
        tw_session *s = session_of_copies(g, 1, finite ? 2 : NAN);
        const tw_save_options *options = TW_OPTIONS(tw_save_options, .finite = true);
        if (finite)
            assert_ok(tw_save(s, directory, 9001, options, &error));
        else
            assert_fails(tw_save(s, directory, 9001, options, &error), TW_OUT_OF_RANGE,
                         "Model diverged: variable 'b' is not finite, nothing is saved");
        assert_ok(tw_save(s, directory, 9002, NULL, &error));
        tw_session_destroy(s);
        tw_graph_destroy(g);
    }
}

static int warnings;

static void count_warnings(void *user, int level, const char *text)
{
    (void)user;
    warnings += level == TW_LOG_WARNING && strstr(text, "the graph was not saved beside the checkpoint: ");
}

static void a_graph_that_cannot_lie_beside_its_checkpoint_is_a_warning(void **state)
{
    (void)state;
    char path[200];
    tw_error error = {0};
    tw_graph *g = tw_graph_create();
    tw_session *s = small_session(g, false);
    snprintf(path, sizeof path, "%s/alone-2.meta", directory);
    assert_int_equal(mkdir(path, 0700), 0); /* is in the way */
    tw_set_log(count_warnings, NULL, TW_LOG_WARNING);
    for (int step = 1; step < 4; step++) {
        assert_ok(
            tw_save(s, directory, step, TW_OPTIONS(tw_save_options, .prefix = "alone", .meta_graph = true), &error));
        assert_int_equal(warnings, step >= 2);
    }
    tw_set_log(NULL, NULL, TW_LOG_ERROR);
    tw_session_destroy(s);
    tw_graph_destroy(g);
}

static void the_graph_lies_beside_its_checkpoint(void **state)
{
    (void)state;
    char path[200];
    size_t size;
    tw_error error = {0};
    tw_graph *g = tw_graph_create(), *read = tw_graph_create();
    tw_session *s = session_of_copies(g, 1, 2);
    assert_ok(tw_save(s, directory, 9003, TW_OPTIONS(tw_save_options, .prefix = "whole", .meta_graph = true), &error));
    snprintf(path, sizeof path, "%s/whole-9003.meta", directory);
    char *bytes = read_whole(path, &size);
    assert_ok(tw_meta_graph_import(read, bytes, size, NULL, &error));
    assert_non_null(tw_graph_find_variable(read, "copy"));
    free(bytes);
    snprintf(path, sizeof path, "%s/whole-9003.meta/no-directory", directory);
    assert_fails(tw_save(s, path, 9004, NULL, &error), TW_FAILED_PRECONDITION, "cannot make directory");
    assert_int_equal(tw_save(s, path, 9004, NULL, NULL), TW_FAILED_PRECONDITION);
    tw_session_destroy(s);
    tw_graph_destroy(g);
    tw_graph_destroy(read);
}

/* What a checkpoint lacks is said with the model that made it, if it says so in a word. */
static void what_lacks_is_said_with_the_model_that_made_the_rest(void **state)
{
    (void)state;
    tw_error error = {0};
    char text[70];
    memset(text, 'm', sizeof text);
    tw_string words[] = {{text, 70}, {"two", 3}};
    tw_tensor *models[] = {tw_tensor_string("small", 5), tw_tensor_from(TW_STRING, TW_SCALAR, words),
                           tw_tensor_from(TW_STRING, TW_SHAPE(2), words), tw_tensor_int64(5), NULL};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        tw_graph *graphs[] = {tw_graph_create(), tw_graph_create()};
        tw_session *s = small_session(graphs[0], false), *t = small_session(graphs[1], true);
        tw_named_tensor model = {"tower/model", models[i]};
        tw_save_options options = {.extras = &model, .num_extras = models[i] != NULL};
        assert_ok(tw_save(s, directory, 9100 + (int64_t)i, &options, &error));
        tw_checkpoint *checkpoint = open_latest();
        assert_fails(tw_restore(t, checkpoint, NULL, NULL, &error), TW_NOT_FOUND,
                     "has no 'b', which variable 'b' needs");
        const char *made = strstr(error.message, " (it was made by model ");
        if (i == 0)
            assert_string_equal(made, " (it was made by model small)");
        else if (i == 1)
            assert_int_equal(strlen(made), strlen(" (it was made by model )") + 64);
        else
            assert_null(made);
        tw_checkpoint_close(checkpoint);
        tw_session_destroy(s);
        tw_session_destroy(t);
        tw_graph_destroy(graphs[0]);
        tw_graph_destroy(graphs[1]);
        tw_tensor_release(models[i]);
    }
}

static const char *new_name(void *user, const char *name)
{
    static char text[20];
    (void)user;
    snprintf(text, sizeof text, "new/%s", name);
    return text;
}

/* In each place that asks for memory: nothing is left behind, and what is saved and restored then is right. */
static void saving_and_restoring_fail_cleanly_when_memory_runs_out(void **state)
{
    (void)state;
    char prefix[20];
    int64_t step = 9200;
    for (bool failed = true; failed; step++) {
        tw_error error = {0};
        snprintf(prefix, sizeof prefix, "short-%d", (int)step);
        fail_at_new_place();
        memory.by_place = false;
        tw_graph *g = tw_graph_create();
        tw_tensor *model = tw_tensor_string("small", 5), *drawn = NULL;
        tw_save_options options = {.size = sizeof options, .prefix = prefix, .rename = new_name, .num_extras = 1,
                                   .extras = &(tw_named_tensor){"tower/model", model}};
        tw_output noise = tw_random_uniform(g, tw_constant_int32s(g, TW_SHAPE(1), (int32_t[]){5}), TW_FLOAT32, 1);
        tw_session *s = session_of_copies(g, 5, 6);
        tw_checkpoint *checkpoint = NULL;
        assert_ok(tw_session_run(s, NULL, 0, &noise, 1, &drawn, &error));
        memory.by_place = true;
        tw_status status = tw_save(s, directory, step, &options, &error);
        if (status == TW_OK)
            status = tw_checkpoint_open(directory, &checkpoint, &error);
        if (status == TW_OK)
            status = tw_restore(s, checkpoint, &(tw_restore_options){.rename = new_name}, NULL, &error);
        if (status == TW_OK) /* whose message looks for the model */
            assert_int_not_equal(tw_restore(s, checkpoint, NULL, NULL, &error), TW_OK);
        failed = forgive_allocations();
        assert_true(status == TW_OK || (failed && status == TW_RESOURCE_EXHAUSTED));
        tw_checkpoint_close(checkpoint);
        options.meta_graph = true;
        assert_ok(tw_save(s, directory, step, &options, &error));
        tw_session_destroy(s);
        tw_graph_destroy(g);
        tw_tensor_release(model);
        tw_tensor_release(drawn);
        assert_int_equal(memory.live, 0);
        stop_failing_allocations();
    }
}

/* The network of make_sparse.py. */
static void sparse_updates_of_a_table_give_the_numbers_of_tensorflow(void **state)
{
    (void)state;
    for (int gpus = 0; gpus < 2; gpus++) {
        tw_error error = {0};
        tw_graph *g = tw_graph_create();
        tw_devices *devices;
        tw_session *s;
        tw_tensor *value = NULL;
        float first[12];
        for (int i = 0; i < 12; i++)
            first[i] = (float)i / 7;
        tw_output train = {0}, scale = tw_constant_floats(g, TW_SHAPE(4, 1), (float[]){0.3f, 0.7f, 1.1f, 0.9f});
        TW_DEVICE(g, gpus ? "/gpu:0" : "/cpu:0") {
            tw_variable *table = tw_get_variable(g, "table", TW_FLOAT32, TW_SHAPE(6, 2), (tw_initializer){0});
            tw_output ids = tw_constant_int32s(g, TW_SHAPE(4), (int32_t[]){4, 1, 4, 4});
            tw_output rows = tw_gather(g, tw_variable_read(g, table), ids, 0);
            tw_output loss = tw_reduce_sum(g, tw_mul(g, tw_square(g, rows), scale), NULL, 0, false);
            tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f));
            train = tw_apply_gradients(sgd, tw_compute_gradients(sgd, loss), NULL);
        }
        assert_string_equal(tw_graph_message(g), "");
        assert_ok(tw_devices_create(&(tw_device_options){.virtual_gpus = gpus, .no_gpus = !gpus}, &devices, &error));
        assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &s, &error));
        tw_tensor *initial = tw_tensor_from(TW_FLOAT32, TW_SHAPE(6, 2), first);
        tw_variable *table = tw_graph_find_variable(g, "table");
        assert_ok(tw_session_set_variable(s, table, initial, &error));
        for (int step = 0; step < 3; step++)
            assert_ok(tw_session_run(s, NULL, 0, &train, 1, NULL, &error));
        assert_ok(tw_session_get_variable(s, table, &value, &error));
        assert_floats_near(tw_tensor_data(value), golden_table, 12, 1e-7);
        tw_tensor_release(initial);
        tw_tensor_release(value);
        tw_session_destroy(s);
        tw_devices_destroy(devices);
        tw_graph_destroy(g);
    }
}

static void loss_that_is_no_scalar_is_refused_by_name(void **state)
{
    (void)state;
    const char *message = "the loss 'each' has shape [3], expected a scalar: take its mean or sum first";
    for (int way = 0; way < 3; way++) {
        tw_graph *g = tw_graph_create();
        tw_variable *w = tw_get_variable(g, "w", TW_FLOAT32, TW_SHAPE(3), (tw_initializer){.a = 1});
        tw_output each = tw_square(tw_name(g, "each"), tw_variable_read(g, w));
        tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.1f));
        if (way == 0)
            assert_null(tw_add_loss(g, each).node);
        else
            assert_null(way == 1 ? tw_compute_gradients(sgd, each) : tw_compute_gradients_of(sgd, each, &w, 1));
        assert_int_equal(tw_graph_status(g), TW_INVALID_ARGUMENT);
        assert_string_equal(tw_graph_message(g), message);
        tw_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_steps_of_every_optimizer_give_the_numbers_of_tensorflow),
        cmocka_unit_test(one_and_two_gpus_give_the_bits_of_the_cpu),
        cmocka_unit_test(a_restored_training_goes_on_to_the_bit_on_other_devices),
        cmocka_unit_test(averages_take_the_place_of_variables_in_a_graph_that_has_none),
        cmocka_unit_test(an_average_alone_is_found),
        cmocka_unit_test(what_does_not_fit_is_named_and_nothing_is_changed),
        cmocka_unit_test(sparse_updates_of_a_table_give_the_numbers_of_tensorflow),
        cmocka_unit_test(random_streams_and_extras_are_saved_too),
        cmocka_unit_test(all_streams_are_restored),
        cmocka_unit_test(extras_must_be_somewhere),
        cmocka_unit_test(copies_are_not_saved_and_get_what_is_restored),
        cmocka_unit_test(a_variable_finds_its_object),
        cmocka_unit_test(what_is_not_finite_is_saved_where_nobody_minds),
        cmocka_unit_test(the_graph_lies_beside_its_checkpoint),
        cmocka_unit_test(a_graph_that_cannot_lie_beside_its_checkpoint_is_a_warning),
        cmocka_unit_test(what_lacks_is_said_with_the_model_that_made_the_rest),
        cmocka_unit_test(saving_and_restoring_fail_cleanly_when_memory_runs_out),
        cmocka_unit_test(loss_that_is_no_scalar_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
