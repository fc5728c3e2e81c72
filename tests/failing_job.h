/* failing_job.h - a training job in which every allocation fails once, or one in which all fail from there on: the call
 * in whose course that happens says so, the same call succeeds when there is memory again, the numbers are those of an
 * undisturbed job, nothing leaks.
 *
 * Plain kernels only: a library's kernels allocate out of our reach. */
#ifndef FAILING_JOB_H
#define FAILING_JOB_H

#include "testing.h"

#include "faulty_files.h"
#include "faulty_memory.h"

#include <tower/io.h>
#include <tower/nn.h>
#include <tower/train.h>

enum { TOWERS = 2, BATCH = 2, INPUTS = 3, CLASSES = 2, STEPS = 3, MANY = 512 };

/* ---- the job ------------------------------------------------------------------------------------------------------- */

/* What a job holds; every field is NULL or whole, so that it can be closed at any time. */
typedef struct job {
    const char *folder;
    tw_graph *g;
    tw_devices *devices;
    tw_session *s;
    tw_checkpoint *checkpoint;
    tw_output initialize, fetches[TOWERS + 1]; /* losses, then the step */
    tw_tensor *results[TOWERS + 1];
    tw_output summary, asked, answer;
    tw_tensor *summary_result, *question, *answer_result;
    float losses[STEPS][TOWERS]; /* of all steps */
    int steps;
} job;

static tw_output kernel_of(tw_graph *g)
{
    return tw_variable_read(g, tw_graph_find_variable(g, "hidden/kernel"));
}

static tw_output tower_loss(tw_graph *g, int tower)
{
    tw_dtype types[] = {TW_FLOAT32, TW_INT32};
    tw_shape shapes[] = {TW_SHAPE(BATCH, INPUTS), TW_SHAPE(BATCH)};
    tw_output batch[2];
    tw_initializer weights = {TW_INIT_TRUNCATED_NORMAL, 0, 0.5f, 5};
    TW_DEVICE(g, "/cpu:0")
        tw_input(g, "examples", tower, types, shapes, 2, batch);
    tw_layer_options hidden = {.weights = &weights, .activation = tw_relu}, last = {.weights = &weights};
    tw_output x = tw_dense_layer(g, "hidden", batch[0], 3, &hidden);
    x = tw_dropout(g, x, 0.25f, 0);
    x = tw_dense_layer(g, "logits", x, CLASSES, &last);
    tw_add_loss(g, tw_reduce_mean(g, tw_sparse_softmax_cross_entropy(g, x, batch[1]), NULL, 0, false));
    tw_add_loss(g, tw_mul(g, tw_l2_loss(g, kernel_of(g)), tw_scalar(g, 0.1f)));
    return tw_total_loss(g, NULL);
}

static tw_status build(job *j, tw_error *error)
{
    tw_grads *grads[TOWERS];
    tw_graph_destroy(j->g);
    tw_graph *g = j->g = tw_graph_create();
    if (!g) {
        error->status = TW_RESOURCE_EXHAUSTED;
        return TW_RESOURCE_EXHAUSTED;
    }
    tw_graph_set_seed(g, 3);
    tw_variable *step = tw_global_step(g);
    tw_optimizer *optimizer = tw_momentum(g, tw_exponential_decay(g, 0.1f, step, 2, 0.5f, true), 0.9f, false);
    for (int i = 0; i < TOWERS; i++)
        TW_DEVICE(g, "/gpu:%d", i)
        TW_NAME_SCOPE(g, "tower_%d", i) {
            j->fetches[i] = tower_loss(g, i);
            grads[i] = tw_compute_gradients(optimizer, j->fetches[i]);
            tw_reuse_variables(g);
        }
    tw_output apply = tw_apply_gradients(optimizer, tw_average_gradients(g, grads, TOWERS, NULL), step);
    tw_averages *averages = tw_moving_averages(g, 0.9f, step, apply);
    if (averages)
        j->fetches[TOWERS] = averages->update;
    j->summary = tw_summary_scalar(g, "sum", tw_reduce_sum(g, kernel_of(g), NULL, 0, false));
    j->asked = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(-1, INPUTS));
    TW_DEVICE(g, "/gpu:1")
        j->answer = tw_reduce_max(g, tw_matmul(g, j->asked, kernel_of(g)), NULL, 0, false);
    j->initialize = tw_initialize_variables(g);
    *error = (tw_error){tw_graph_status(g), {0}};
    snprintf(error->message, sizeof error->message, "%s", tw_graph_message(g));
    return tw_graph_status(g);
}

static tw_status open_devices(job *j, tw_error *error)
{
    return tw_devices_create(&(tw_device_options){.virtual_gpus = 2, .cpu_threads = 1}, &j->devices, error);
}

static tw_status open_session(job *j, tw_error *error)
{
    return tw_session_create(j->g, &(tw_session_options){.devices = j->devices, .plain_kernels = true}, &j->s, error);
}

static tw_status fill(void *user, int tower, void *const *outputs, tw_error *error)
{
    (void)user, (void)error;
    for (int i = 0; i < BATCH * INPUTS; i++)
        ((float *)outputs[0])[i] = (float)((3 * i + tower) % 5) / 4;
    for (int i = 0; i < BATCH; i++)
        ((int32_t *)outputs[1])[i] = (i + tower) % CLASSES;
    return TW_OK;
}

static tw_status connect(job *j, tw_error *error)
{
    return tw_session_set_source(j->s, "examples", fill, NULL, error);
}

static tw_status initialize(job *j, tw_error *error)
{
    return tw_session_run(j->s, NULL, 0, &j->initialize, 1, NULL, error);
}

static tw_status step(job *j, tw_error *error)
{
    tw_status status = tw_session_run(j->s, NULL, 0, j->fetches, TOWERS + 1, j->results, error);
    if (status != TW_OK)
        return status;
    for (int i = 0; i < TOWERS; i++)
        j->losses[j->steps][i] = *(float *)tw_tensor_data(j->results[i]);
    j->steps++;
    return TW_OK;
}

static tw_status summarize(job *j, tw_error *error)
{
    return tw_session_run(j->s, NULL, 0, &j->summary, 1, &j->summary_result, error);
}

static tw_status ask(job *j, int rows, tw_error *error)
{
    tw_tensor_release(j->question);
    j->question = tw_tensor_create(TW_FLOAT32, TW_SHAPE(rows, INPUTS));
    if (!j->question) {
        error->status = TW_RESOURCE_EXHAUSTED;
        return error->status;
    }
    return tw_session_run(j->s, &(tw_feed){j->asked, j->question}, 1, &j->answer, 1, &j->answer_result, error);
}

static tw_status ask_little(job *j, tw_error *error)
{
    return ask(j, 1, error);
}

/* Arenas grow: the plans of the stages before must find their buffers elsewhere. */
static tw_status ask_much(job *j, tw_error *error)
{
    return ask(j, MANY, error);
}

static tw_status save(job *j, tw_error *error)
{
    return tw_save(j->s, j->folder, 2, &(tw_save_options){.keep = 2}, error);
}

static tw_status open_checkpoint(job *j, tw_error *error)
{
    return tw_checkpoint_open(j->folder, &j->checkpoint, error);
}

static tw_status restore(job *j, tw_error *error)
{
    return tw_restore(j->s, j->checkpoint, NULL, NULL, error);
}

static void close_job(job *j)
{
    tw_checkpoint_close(j->checkpoint);
    for (int i = 0; i < TOWERS + 1; i++)
        tw_tensor_release(j->results[i]);
    tw_tensor_release(j->summary_result);
    tw_tensor_release(j->question);
    tw_tensor_release(j->answer_result);
    tw_session_destroy(j->s);
    tw_devices_destroy(j->devices);
    tw_graph_destroy(j->g);
}

static tw_status (*const stages[])(job *j, tw_error *error) = {
    build,      open_devices, open_session, connect,         initialize, step, ask_little,
    ask_much,   step,         summarize,    save,            open_checkpoint, restore, step,
};

enum { NUM_STAGES = sizeof stages / sizeof *stages, FIRST_STEP = 5, SAVE = 10 };

/* Runs the whole job, whatever allocations fail, with a second try of each call. *failed is the stage that a failed
 * allocation made fail; -1 if none. */
static void run_job(job *j, int *failed)
{
    *failed = -1;
    for (int i = 0; i < NUM_STAGES; i++) {
        tw_error error = {0};
        tw_status status = stages[i](j, &error);
        if (status == TW_OK)
            continue;
        if (status != TW_RESOURCE_EXHAUSTED || error.status != status)
            fail_msg("stage %d: status %d, not %d: %s", i, status, TW_RESOURCE_EXHAUSTED, error.message);
        assert_true(forgive_allocations());
        *failed = i;
        if (i >= SAVE) { /* the older checkpoint is as it was */
            tw_checkpoint *older = NULL;
            assert_ok(tw_checkpoint_open(j->folder, &older, &error));
            tw_checkpoint_close(older);
        }
        assert_ok(stages[i](j, &error));
    }
}

/* ---- every allocation ---------------------------------------------------------------------------------------------- */

static inline int no_sync(int fd)
{
    (void)fd;
    return 0;
}

static twi_file_calls files_without_sync(void)
{
    twi_file_calls calls = twi_posix_files;
    calls.fsync = no_sync;
    return calls;
}

/* An undisturbed job, which leaves a checkpoint in the folder. */
static inline job reference(const char *folder)
{
    job j = {.folder = folder};
    int failed;
    fail_allocation(-1);
    run_job(&j, &failed);
    assert_int_equal(failed, -1);
    close_job(&j);
    assert_int_equal(memory.live, 0);
    stop_failing_allocations();
    return j;
}

/* Lets allocation first, first + stride, first + 2 * stride and so on fail, until a job makes fewer. */
static inline void fail_allocations_of_jobs(void (*start)(int n), int first, int stride)
{
    twi_file_calls calls = files_without_sync();
    const char *folder = scratch_folder();
    int tried[NUM_STAGES] = {0}, failed = 0, n = first;
    twi_set_files(&calls);
    job expected = reference(folder);
    for (bool any = true; any; n += stride) {
        job j = {.folder = folder};
        start(n);
        run_job(&j, &failed);
        close_job(&j);
        if (memory.live != 0)
            fail_msg("allocation %d failed in stage %d: %d blocks have leaked", n, failed, memory.live);
        any = failed >= 0;
        if (any)
            tried[failed]++;
        else
            any = memory.failed; /* a failure that somebody could do without */
        stop_failing_allocations();
        if (j.steps != expected.steps || memcmp(j.losses, expected.losses, sizeof j.losses) != 0)
            fail_msg("allocation %d failed in stage %d: the losses are others", n, failed);
    }
    twi_set_files(NULL);
    remove_scratch(folder);
    for (int i = 0; i < NUM_STAGES && stride == 1; i++)
        if (!tried[i] && (stages[i] != step || i == FIRST_STEP)) /* later ones allocate nothing */
            fail_msg("no allocation has failed in stage %d", i);
}

#endif
