/* test_stress.c - many threads, many sessions, steps that fail in the middle: nobody waits for ever, and what is right
 * stays right. Meant for the thread sanitizer as much as for its own checks. label: threads */
#include "testing.h"

#include "faulty_files.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <tower/data.h>
#include <tower/nn.h>
#include <tower/session.h>
#include <tower/train.h>
#include <unistd.h>

static tw_devices *open_devices(int cpus, int gpus)
{
    tw_error error = {0};
    tw_devices *devices = NULL;
    tw_device_options options = {.cpu_devices = cpus, .cpu_threads = 1, .virtual_gpus = gpus};
    assert_ok(tw_devices_create(&options, &devices, &error));
    return devices;
}

static tw_session *open_session(tw_graph *g, tw_devices *devices)
{
    tw_error error = {0};
    tw_session *s = NULL;
    assert_string_equal(tw_graph_message(g), "");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .plain_kernels = true}, &s, &error));
    return s;
}

/* Threads may not fail a test themselves: they count, and the test looks. */
static void run_threads(int count, void *(*function)(void *), void *argument)
{
    pthread_t threads[16];
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, function, argument), 0);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* ---- one session, many threads ----------------------------------------------------------------------------------- */

enum { ROUNDS = 12, SHAPES = 5 };

typedef struct shared {
    tw_session *s;
    tw_output x, products[2], add;
    tw_variable *counter;
    atomic_int next, wrong;
} shared;

/* x [n,2] doubled on each GPU; both must come back right whoever else runs, with whatever shape. */
static void *run_with_many_shapes(void *argument)
{
    shared *sh = argument;
    int number = atomic_fetch_add(&sh->next, 1);
    tw_tensor *results[3] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        tw_error error = {0};
        int rows = 1 + (number + round) % SHAPES;
        tw_tensor *value = tw_tensor_create(TW_FLOAT32, TW_SHAPE(rows, 2));
        for (int i = 0; i < 2 * rows; i++)
            ((float *)tw_tensor_data(value))[i] = (float)(number * 100 + round + i);
        tw_output fetches[] = {sh->products[0], sh->products[1], sh->add};
        int count = number % 2 ? 3 : 2; /* other fetches, other plans */
        if (tw_session_run(sh->s, &(tw_feed){sh->x, value}, 1, fetches, count, results, &error) != TW_OK)
            sh->wrong++;
        for (int k = 0; k < 2 && results[k]; k++)
            for (int i = 0; i < 2 * rows; i++)
                sh->wrong += tw_tensor_value(results[k], i) != 2.0 * (number * 100 + round + i);
        if (!tw_session_device(sh->s, sh->x.node) || !tw_session_why(sh->s, sh->x.node))
            sh->wrong++;
        tw_tensor_release(value);
    }
    for (int k = 0; k < 3; k++)
        tw_tensor_release(results[k]);
    return NULL;
}

static void threads_share_a_session_each_with_its_own_feeds(void **state)
{
    (void)state;
    enum { THREADS = 8 };
    tw_error error = {0};
    shared sh = {0};
    tw_graph *g = tw_graph_create();
    sh.x = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(-1, 2));
    for (int i = 0; i < 2; i++)
        TW_DEVICE(g, "/gpu:%d", i)
            sh.products[i] = tw_add(g, sh.x, sh.x);
    sh.counter = tw_get_variable(g, "counter", TW_FLOAT32, TW_SCALAR, (tw_initializer){0});
    sh.add = tw_assign_add(g, sh.counter->handle, tw_scalar(g, 1));
    tw_output initialize = tw_initialize_variables(g);
    tw_devices *devices = open_devices(1, 2);
    sh.s = open_session(g, devices);
    assert_ok(tw_session_run(sh.s, NULL, 0, &initialize, 1, NULL, &error));
    run_threads(THREADS, run_with_many_shapes, &sh);
    assert_int_equal(sh.wrong, 0);
    tw_tensor *value = NULL;
    assert_ok(tw_session_get_variable(sh.s, sh.counter, &value, &error));
    assert_int_equal((int)tw_tensor_value(value, 0), THREADS / 2 * ROUNDS); /* no update was lost */
    tw_tensor_release(value);
    tw_session_destroy(sh.s);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
}

/* ---- many sessions, one set of devices --------------------------------------------------------------------------- */

typedef struct common {
    tw_graph *g;
    tw_devices *devices;
    tw_output initialize, step, read;
    atomic_int wrong;
} common;

/* A session's life: variables start anew, whatever other sessions of the graph do. */
static void *live_and_die(void *argument)
{
    common *c = argument;
    for (int life = 0; life < 4; life++) {
        tw_error error = {0};
        tw_session *s = NULL;
        tw_tensor *value = NULL;
        tw_session_options options = {.devices = c->devices, .plain_kernels = true};
        c->wrong += tw_session_create(c->g, &options, &s, &error) != TW_OK ||
                    tw_session_run(s, NULL, 0, &c->initialize, 1, NULL, &error) != TW_OK;
        for (int step = 0; s && step < 5; step++)
            c->wrong += tw_session_run(s, NULL, 0, &c->step, 1, NULL, &error) != TW_OK;
        c->wrong += !s || tw_session_run(s, NULL, 0, &c->read, 1, &value, &error) != TW_OK ||
                    tw_tensor_value(value, 0) != 5;
        tw_tensor_release(value);
        tw_session_destroy(s);
    }
    return NULL;
}

static void sessions_that_share_devices_come_and_go_without_touching_each_other(void **state)
{
    (void)state;
    common c = {.g = tw_graph_create(), .devices = open_devices(1, 1)};
    TW_DEVICE(c.g, "/gpu:0") {
        tw_variable *v = tw_get_variable(c.g, "v", TW_FLOAT32, TW_SCALAR, (tw_initializer){0});
        tw_output one;
        TW_DEVICE(c.g, "/cpu:0")
            one = tw_reduce_max(c.g, tw_ones(c.g, TW_FLOAT32, TW_SHAPE(9)), NULL, 0, false);
        c.step = tw_assign_add(c.g, v->handle, one);
        c.read = tw_variable_read(c.g, v);
    }
    c.initialize = tw_initialize_variables(c.g);
    assert_string_equal(tw_graph_message(c.g), "");
    run_threads(4, live_and_die, &c);
    assert_int_equal(c.wrong, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tw_devices_info(c.devices, i).memory_used, 0);
    tw_devices_destroy(c.devices);
    tw_graph_destroy(c.g);
}

/* ---- towers ------------------------------------------------------------------------------------------------------ */

enum { MOST_TOWERS = 8, BATCH = 4, INPUTS = 3, CLASSES = 2 };

typedef struct training {
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
    int towers;
    tw_output fetches[MOST_TOWERS + 1];
    tw_tensor *results[MOST_TOWERS + 1];
} training;

/* A dense layer, tower i on GPU i, all of them averaged on the CPU. */
static training start_training(int towers, int cpus)
{
    training t = {.g = tw_graph_create(), .towers = towers, .devices = open_devices(cpus, towers)};
    tw_error error = {0};
    tw_grads *grads[MOST_TOWERS];
    tw_graph_set_seed(t.g, 1);
    tw_variable *step = tw_global_step(t.g);
    tw_optimizer *optimizer = tw_gradient_descent(t.g, tw_scalar(t.g, 0.1f));
    for (int i = 0; i < towers; i++)
        TW_NAME_SCOPE(t.g, "tower_%d", i) {
            tw_dtype types[] = {TW_FLOAT32, TW_INT32};
            tw_shape shapes[] = {TW_SHAPE(BATCH, INPUTS), TW_SHAPE(BATCH)};
            tw_output batch[2];
            TW_DEVICE(t.g, "/cpu:%d", i % cpus)
                tw_input(t.g, "examples", i, types, shapes, 2, batch);
            TW_DEVICE(t.g, "/gpu:%d", i) {
                tw_output logits = tw_dense_layer(t.g, "dense", batch[0], CLASSES, NULL), loss;
                TW_DEVICE(t.g, "/cpu:%d", i % cpus) /* the CPU looks at labels closely */
                    loss = tw_sparse_softmax_cross_entropy(t.g, logits, batch[1]);
                t.fetches[i] = tw_reduce_mean(tw_name(t.g, "loss"), loss, NULL, 0, false);
                grads[i] = tw_compute_gradients(optimizer, t.fetches[i]);
            }
            tw_reuse_variables(t.g);
        }
    t.fetches[towers] = tw_apply_gradients(optimizer, tw_average_gradients(t.g, grads, towers, NULL), step);
    tw_output initialize = tw_initialize_variables(t.g);
    t.s = open_session(t.g, t.devices);
    assert_ok(tw_session_run(t.s, NULL, 0, &initialize, 1, NULL, &error));
    return t;
}

static tw_status step(training *t, tw_error *error)
{
    return tw_session_run(t->s, NULL, 0, t->fetches, t->towers + 1, t->results, error);
}

static void end_training(training *t)
{
    for (int i = 0; i <= t->towers; i++)
        tw_tensor_release(t->results[i]);
    tw_session_destroy(t->s);
    tw_devices_destroy(t->devices);
    tw_graph_destroy(t->g);
}

static void sleep_us(int us)
{
    nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

/* The source of all these: examples that depend on tower and step, and what else a test asks for. */
typedef struct source {
    atomic_int calls[MOST_TOWERS];
    int bad_tower, bad_step; /* a label out of range; bad_tower -1: none */
    int failing_tower;       /* its call fails in bad_step; -1: none */
    bool sleeps;
} source;

static tw_status fill(void *user, int tower, void *const *outputs, tw_error *error)
{
    source *s = user;
    int call = atomic_fetch_add(&s->calls[tower], 1);
    if (s->sleeps)
        sleep_us((tower * 7919 + call * 104729) % 97 < 20 ? (tower * 31 + call * 17) % 300 : 0);
    if (s->failing_tower == tower && s->bad_step == call) {
        error->status = TW_DATA_LOSS;
        snprintf(error->message, sizeof error->message, "tower %d has no examples in step %d", tower, call);
        return TW_DATA_LOSS;
    }
    for (int i = 0; i < BATCH * INPUTS; i++)
        ((float *)outputs[0])[i] = (float)((call * 5 + tower * 3 + i) % 7) / 7;
    for (int i = 0; i < BATCH; i++)
        ((int32_t *)outputs[1])[i] = s->bad_tower == tower && s->bad_step == call ? 99 : (call + tower + i) % CLASSES;
    return TW_OK;
}

static void give_source(training *t, source *s)
{
    tw_error error = {0};
    assert_ok(tw_session_set_source(t->s, "examples", fill, s, &error));
}

static void a_bad_label_in_one_tower_fails_the_step_by_name_and_the_next_one_runs(void **state)
{
    (void)state;
    training t = start_training(4, 2);
    tw_error error = {0};
    for (int tower = 0; tower < 4; tower++) {
        source s = {.bad_tower = tower, .bad_step = 3, .failing_tower = -1, .sleeps = true};
        char name[64];
        snprintf(name, sizeof name, "{{node tower_%d/", tower);
        give_source(&t, &s);
        for (int i = 0; i < 6; i++) {
            if (i != 3) {
                assert_ok(step(&t, &error));
                continue;
            }
            float before = *(float *)tw_tensor_data(t.results[0]);
            assert_fails(step(&t, &error), TW_INVALID_ARGUMENT, name);
            assert_message(error.message, "99");
            assert_true(*(float *)tw_tensor_data(t.results[0]) == before);
            for (int k = 0; k < 4; k++) /* towers may have been stopped before they asked */
                s.calls[k] = i + 1;
        }
    }
    end_training(&t);
}

static void a_source_that_fails_is_told_with_its_own_words(void **state)
{
    (void)state;
    training t = start_training(3, 1);
    tw_error error = {0};
    source s = {.bad_tower = -1, .failing_tower = 2, .bad_step = 2, .sleeps = true};
    give_source(&t, &s);
    for (int i = 0; i < 2; i++)
        assert_ok(step(&t, &error));
    assert_fails(step(&t, &error), TW_DATA_LOSS, "tower 2 has no examples in step 2");
    assert_message(error.message, "{{node tower_2/");
    s.failing_tower = -1;
    assert_ok(step(&t, &error));
    end_training(&t);
}

static void eight_towers_on_eight_gpus_and_two_cpus_never_stand_still(void **state)
{
    (void)state;
    enum { STEPS = 200 };
    training t = start_training(8, 2);
    tw_error error = {0};
    source s = {.bad_tower = -1, .failing_tower = -1, .sleeps = true};
    give_source(&t, &s);
    for (int i = 0; i < STEPS; i++)
        assert_ok(step(&t, &error));
    tw_tensor *value = NULL;
    assert_ok(tw_session_get_variable(t.s, tw_global_step(t.g), &value, &error));
    assert_int_equal(*(int64_t *)tw_tensor_data(value), STEPS);
    for (int i = 0; i < 8; i++)
        assert_int_equal(s.calls[i], STEPS); /* one batch a tower and step */
    tw_tensor_release(value);
    end_training(&t);
}

/* ---- a pipeline that is cancelled while towers wait for it ------------------------------------------------------- */

/* Like a pipeline with an empty store: waits until somebody cancels. */
typedef struct dry {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int waiting;
    bool cancelled;
} dry;

static tw_status wait_for_examples(void *user, int tower, void *const *outputs, tw_error *error)
{
    dry *d = user;
    (void)tower, (void)outputs;
    pthread_mutex_lock(&d->lock);
    d->waiting++;
    pthread_cond_broadcast(&d->changed);
    while (!d->cancelled)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
    error->status = TW_CANCELLED;
    snprintf(error->message, sizeof error->message, "the input was cancelled");
    return TW_CANCELLED;
}

static void *cancel_when_all_wait(void *argument)
{
    dry *d = argument;
    pthread_mutex_lock(&d->lock);
    while (d->waiting < 2)
        pthread_cond_wait(&d->changed, &d->lock);
    d->cancelled = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static void cancelling_the_input_ends_a_step_in_which_towers_wait_for_it(void **state)
{
    (void)state;
    training t = start_training(2, 2); /* one CPU a tower: both wait at the same time */
    tw_error error = {0};
    source s = {.bad_tower = -1, .failing_tower = -1};
    for (int round = 0; round < 10; round++) {
        dry d = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
        pthread_t canceller;
        assert_ok(tw_session_set_source(t.s, "examples", wait_for_examples, &d, &error));
        assert_int_equal(pthread_create(&canceller, NULL, cancel_when_all_wait, &d), 0);
        assert_fails(step(&t, &error), TW_CANCELLED, "the input was cancelled");
        pthread_join(canceller, NULL);
        give_source(&t, &s);
        assert_ok(step(&t, &error));
    }
    end_training(&t);
}

enum { EXAMPLE = 1 + 32 * 32 * 3 };

/* Five files of two examples each. */
static tw_dataset *tiny_dataset(const char *folder)
{
    tw_error error = {0};
    tw_dataset *dataset = NULL;
    static unsigned char bytes[2 * EXAMPLE];
    for (int i = 1; i <= 5; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/data_batch_%d.bin", folder, i);
        FILE *file = fopen(path, "wb");
        bytes[0] = (unsigned char)i;
        assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
        fclose(file);
    }
    tw_dataset_options few = {.allow_fewer = true};
    assert_ok(tw_dataset_load("cifar10", folder, TW_SPLIT_TRAIN, &few, &dataset, &error));
    return dataset;
}

typedef struct watched {
    tw_pipeline *pipeline;
    atomic_int steps;
} watched;

static tw_status fill_from_pipeline(void *user, int tower, void *const *outputs, tw_error *error)
{
    watched *w = user;
    return tw_pipeline_next(w->pipeline, tower, outputs[0], outputs[1], error);
}

static void *cancel_after_some_steps(void *argument)
{
    watched *w = argument;
    while (w->steps < 5)
        sleep_us(100);
    tw_pipeline_cancel(w->pipeline);
    return NULL;
}

static void cancelling_a_pipeline_ends_the_training_that_it_feeds(void **state)
{
    (void)state;
    tw_error error = {0};
    const char *folder = scratch_folder();
    tw_dataset *dataset = tiny_dataset(folder);
    tw_graph *g = tw_graph_create();
    tw_output means[2];
    for (int i = 0; i < 2; i++) {
        tw_output batch[2];
        TW_DEVICE(g, "/cpu:%d", i)
            tw_input(g, "images", i, (tw_dtype[]){TW_FLOAT32, TW_INT32},
                     (tw_shape[]){TW_SHAPE(2, 32, 32, 3), TW_SHAPE(2)}, 2, batch);
        TW_DEVICE(g, "/gpu:%d", i)
            means[i] = tw_reduce_mean(g, batch[0], NULL, 0, false);
    }
    tw_devices *devices = open_devices(2, 2);
    tw_session *s = open_session(g, devices);
    watched w = {0};
    tw_pipeline_options options = {.batch = 2, .towers = 2, .seed = 1, .shuffle = true, .threads = 2};
    assert_ok(tw_pipeline_create(dataset, &options, &w.pipeline, &error));
    assert_ok(tw_session_set_source(s, "images", fill_from_pipeline, &w, &error));
    pthread_t canceller;
    assert_int_equal(pthread_create(&canceller, NULL, cancel_after_some_steps, &w), 0);
    tw_status status;
    tw_tensor *values[2] = {0};
    while ((status = tw_session_run(s, NULL, 0, means, 2, values, &error)) == TW_OK)
        w.steps++;
    if (status != TW_CANCELLED)
        fail_msg("%s", error.message);
    pthread_join(canceller, NULL);
    assert_true(w.steps >= 5);
    tw_tensor_release(values[0]);
    tw_tensor_release(values[1]);
    tw_session_destroy(s);
    tw_pipeline_destroy(w.pipeline);
    tw_dataset_destroy(dataset);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    remove_scratch(folder);
}

int main(void)
{
    alarm(PATIENCE); /* whoever stands still is ended, loudly */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_a_session_each_with_its_own_feeds),
        cmocka_unit_test(sessions_that_share_devices_come_and_go_without_touching_each_other),
        cmocka_unit_test(a_bad_label_in_one_tower_fails_the_step_by_name_and_the_next_one_runs),
        cmocka_unit_test(a_source_that_fails_is_told_with_its_own_words),
        cmocka_unit_test(eight_towers_on_eight_gpus_and_two_cpus_never_stand_still),
        cmocka_unit_test(cancelling_the_input_ends_a_step_in_which_towers_wait_for_it),
        cmocka_unit_test(cancelling_a_pipeline_ends_the_training_that_it_feeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
