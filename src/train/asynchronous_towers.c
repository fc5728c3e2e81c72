/* asynchronous_towers.c - the towers' threads, each with its lane and its batches; how they begin and end. */
#include "base/memory.h"
#include "base/status.h"
#include "base/thread.h"
#include "train/asynchronous.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BATCHES "tower/batches" /* where the stream of data stands, in a checkpoint */

/* ---- towers ------------------------------------------------------------------------------------------------ */

static void *work(void *argument)
{
    twi_worker *w = argument;
    twi_asynchronous *a = w->all;
    pthread_mutex_lock(&a->lock);
    for (;;) {
        while (w->state != TWI_COMPUTES && !a->stop)
            pthread_cond_wait(&a->begin, &a->lock);
        if (a->stop)
            break;
        pthread_mutex_unlock(&a->lock);
        w->status = tw_session_run_to(a->trainer->session, 1 + w->tower, w->feeds, a->num_variables, w->fetches,
                                       w->num_fetches, w->pushes, w->results, &w->error);
        if (a->options.delay)
            a->options.delay(a->options.delay_user, w->tower);
        pthread_mutex_lock(&a->lock);
        w->state = TWI_HAS_COMPUTED;
        w->arrived = a->arrivals++;
        pthread_cond_signal(&a->arrival);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

tw_status twi_asynchronous_fill(tw_trainer *t, int tower, void *const *outputs, tw_error *error)
{
    twi_asynchronous *a = t->asynchronous;
    twi_worker *w = &a->workers[tower];
    tw_status status = TW_OK;
    pthread_mutex_lock(&a->lock);
    while (a->inputs_taken != w->place && !a->stop)
        pthread_cond_wait(&a->input, &a->lock);
    bool stop = a->stop;
    pthread_mutex_unlock(&a->lock);
    if (stop)
        return twi_fail(error, TW_CANCELLED, "training has ended");
    if (w->batch < a->next_input || w->batch > a->next_input + 2 * t->towers.count)
        status = tw_pipeline_seek(t->input.pipeline, a->next_input = w->batch, error);
    for (; a->next_input <= w->batch && status == TW_OK; a->next_input++) /* those in between are other tasks' */
        status = tw_pipeline_next(t->input.pipeline, 0, outputs[0], outputs[1], error);
    pthread_mutex_lock(&a->lock);
    a->inputs_taken++;
    pthread_cond_broadcast(&a->input);
    pthread_mutex_unlock(&a->lock);
    return status;
}

/* ---- beginning --------------------------------------------------------------------------------------------- */

static tw_status agree(int64_t *asked, int64_t logged, const char *what, const char *path, tw_error *error)
{
    if (*asked && *asked != logged)
        return twi_fail(error, TW_INVALID_ARGUMENT, "%s is the order of a run with %s %lld, but %lld was asked for",
                        path, what, (long long)logged, (long long)*asked);
    *asked = logged;
    return TW_OK;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat about_a, about_b;
    return stat(a, &about_a) == 0 && stat(b, &about_b) == 0 && about_a.st_dev == about_b.st_dev &&
           about_a.st_ino == about_b.st_ino;
}

static tw_status open_replay(twi_asynchronous *a, tw_trainer_options *options, tw_error *error)
{
    const char *path = a->options.replay;
    int64_t towers = options->towers, batch = options->batch;
    tw_status status;
    if (a->options.log && is_same_file(path, a->options.log))
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "the order of this run would be written over '%s', which is to be replayed: train into another "
                        "directory",
                        path);
    TWI_TRY(twi_order_log_read(path, &a->replay, error));
    const twi_order_head *head = &a->replay.head;
    if (strcmp(head->model, options->model->name) != 0)
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT, "%s is the order of a run of model %s, not %s", path,
                           head->model, options->model->name));
    TWI_TRY(agree(&towers, head->towers, "number of towers", path, error));
    TWI_TRY(agree(&batch, head->batch, "batch size per tower", path, error));
    TWI_TRY(agree(&options->seed, head->seed, "seed", path, error));
    options->towers = (int)towers;
    options->batch = (int)batch;
    options->updates = TW_UPDATES_ASYNCHRONOUS;
done:
    return status;
}

tw_status twi_asynchronous_open(tw_trainer *t, tw_trainer_options *options, tw_error *error)
{
    const tw_asynchronous *wanted = &options->asynchronous;
    if (wanted->bounded && wanted->max_staleness < 0)
        return twi_fail(error, TW_INVALID_ARGUMENT, "a staleness of at most %lld; 0 is the least there can be",
                        (long long)wanted->max_staleness);
    twi_asynchronous *a = t->asynchronous = twi_alloc(sizeof *a);
    if (!a)
        return twi_fail_memory(error, "creating a trainer");
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->begin, NULL);
    pthread_cond_init(&a->arrival, NULL);
    pthread_cond_init(&a->input, NULL);
    a->trainer = t;
    a->options = *wanted;
    return wanted->replay ? open_replay(a, options, error) : TW_OK;
}

tw_status twi_asynchronous_agree(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    const tw_asynchronous *wanted = &options->asynchronous;
    const tw_average_options *average = &options->average;
    if (t->recipe.setting[TWI_SYNC] != TW_UPDATES_ASYNCHRONOUS) {
        twi_asynchronous_destroy(t->asynchronous);
        t->asynchronous = NULL;
        if (wanted->bounded || wanted->order != TW_ORDER_ARRIVAL)
            return twi_fail(error, TW_INVALID_ARGUMENT, "options.asynchronous.%s is for options.updates=asynchronous",
                            wanted->bounded ? "max_staleness" : "order");
        return TW_OK;
    }
    if (!t->variables.mode->asynchronous)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.updates=asynchronous needs one copy of the variables, "
                        "options.variables.update=parameter_server, not %s%s",
                        tw_variable_update_name(t->variables.options.update),
                        t->variables.mode->staged ? " with options.variables.staged" : "");
    if (!twi_trainer_has_equal_shares(t))
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.updates=asynchronous needs towers of as many examples each, not unequal shares");
    if (average->all_reduce || average->packs || average->small_bytes || average->wire)
        return twi_fail(
            error, TW_INVALID_ARGUMENT,
            "with options.updates=asynchronous each tower's gradients are applied by themselves: nothing is "
            "reduced");
    if (options->session.trace)
        return twi_fail(
            error, TW_INVALID_ARGUMENT,
            "options.session.trace shows a synchronous step; with options.updates=asynchronous they overlap, "
            "and have none");
    return TW_OK;
}

/* What is pulled, and what is pushed: the variables, and the averages that have a value. */
static tw_status list_values(twi_asynchronous *a, tw_error *error)
{
    const tw_grads *average = a->trainer->update.average;
    a->num_variables = average->count;
    a->values = twi_alloc_array((size_t)average->count + 1, sizeof *a->values);
    a->pushed = twi_alloc_array((size_t)average->count + 1, sizeof *a->pushed);
    if (!a->values || !a->pushed)
        return twi_fail_memory(error, "creating a trainer");
    for (int i = 0; i < average->count; i++) {
        a->values[i] = average->variables[i]->value;
        if (average->gradients[i].node)
            a->pushed[a->num_gradients++].output = average->gradients[i];
    }
    return TW_OK;
}

static tw_status make_worker(twi_asynchronous *a, int tower, tw_error *error)
{
    tw_trainer *t = a->trainer;
    twi_worker *w = &a->workers[tower];
    const tw_grads *grads = t->update.gradients[tower];
    char scope[32];
    snprintf(scope, sizeof scope, "tower_%d", tower);
    int norms = tower == 0 ? tw_get_collection(t->graph, "update_ops", scope, NULL, 0) : 0;
    int most = 1 + a->num_gradients + norms;
    *w = (twi_worker){.all = a, .tower = tower};
    w->values = twi_alloc_array((size_t)a->num_variables + 1, sizeof *w->values);
    w->feeds = twi_alloc_array((size_t)a->num_variables + 1, sizeof *w->feeds);
    w->fetches = twi_alloc_array((size_t)most, sizeof *w->fetches);
    w->results = twi_alloc_array((size_t)most, sizeof *w->results);
    w->pulls = twi_alloc_array((size_t)a->num_variables + 1, sizeof *w->pulls);
    w->pushes = twi_alloc_array((size_t)most, sizeof *w->pushes);
    if (!w->values || !w->feeds || !w->fetches || !w->results || !w->pulls || !w->pushes)
        return twi_fail_memory(error, "creating a trainer");
    w->fetches[w->num_fetches++] = t->fetched.outputs[tower];
    for (int i = 0; i < grads->count; i++) {
        if (!t->update.average->gradients[i].node)
            continue;
        if (!grads->gradients[i].node)
            return twi_fail(error, TW_INVALID_ARGUMENT, "variable '%s' has no gradient in tower %d",
                            grads->variables[i]->name, tower);
        w->fetches[w->num_fetches++] = grads->gradients[i];
    }
    if (norms) {
        tw_get_collection(t->graph, "update_ops", scope, w->fetches + w->num_fetches, norms);
        for (; norms > 0; norms--)
            w->fetches[w->num_fetches++].index = -1;
    }
    return TW_OK;
}

static tw_status make_workers(twi_asynchronous *a, tw_error *error)
{
    int towers = a->trainer->towers.count;
    tw_status status = list_values(a, error);
    a->workers = twi_alloc_array((size_t)towers, sizeof *a->workers);
    if (status == TW_OK && !a->workers)
        status = twi_fail_memory(error, "creating a trainer");
    for (int i = 0; i < towers && status == TW_OK; i++)
        status = make_worker(a, i, error);
    return status;
}

/* Adds the latest plan of a lane to t->fetched.plan, which is of one update, in the memory of all lanes. */
static tw_status count_plan(tw_trainer *t, int lane, tw_error *error)
{
    tw_plan_info info;
    tw_status status = tw_session_plan_info_in(t->session, lane, &info, error);
    if (status != TW_OK)
        return status;
    t->fetched.plan.arena_bytes += info.arena_bytes;
    t->fetched.plan.constant_bytes += info.constant_bytes;
    t->fetched.plan.variable_bytes = info.variable_bytes;
    if (lane > 1) /* tower 0 stands for all */
        return TW_OK;
    t->fetched.plan.nodes += info.nodes;
    t->fetched.plan.kernels += info.kernels;
    t->fetched.plan.copies += info.copies;
    t->fetched.plan.copied_bytes += info.copied_bytes;
    return TW_OK;
}

/* A tower's variables go where its plan takes them in, which is that of its lane. */
static void find_pulls(const twi_asynchronous *a, twi_worker *w)
{
    for (int i = 0; i < a->num_variables; i++)
        w->pulls[i] = (tw_receivers){tw_session_fed_task(a->trainer->session, 1 + w->tower, i), -1};
}

/* Its gradients go where the update takes them in, whose plan is the latest of lane 0, and to the first task; its loss
 * is looked at by all. */
static void find_pushes(const twi_asynchronous *a, twi_worker *w)
{
    w->pushes[0] = (tw_receivers){-1, -1};
    for (int i = 1; i < w->num_fetches; i++)
        w->pushes[i] = (tw_receivers){i <= a->num_gradients ? tw_session_fed_task(a->trainer->session, 0, i - 1) : -1, 0};
}

tw_status twi_asynchronous_prepare(tw_trainer *t, tw_error *error)
{
    twi_asynchronous *a = t->asynchronous;
    tw_status status;
    tw_output update[] = {t->update.rate, t->fetched.outputs[t->towers.count]};
    tw_feed_shape *fed = NULL;
    TWI_TRY(make_workers(a, error));
    fed = twi_alloc_array((size_t)a->num_variables + 1, sizeof *fed);
    if (!fed)
        TWI_LEAVE(twi_fail_memory(error, "creating a trainer"));
    for (int i = 0; i < a->num_variables; i++)
        fed[i] = (tw_feed_shape){a->values[i], t->update.average->variables[i]->shape};
    for (int i = 0; i < t->towers.count; i++) {
        const twi_worker *w = &a->workers[i];
        TWI_TRY(tw_session_prepare_in(t->session, 1 + i, fed, a->num_variables, w->fetches, w->num_fetches, error));
        TWI_TRY(count_plan(t, 1 + i, error));
        find_pulls(a, &a->workers[i]);
    }
    for (int i = 0, k = 0; i < a->num_variables; i++)
        if (t->update.average->gradients[i].node)
            fed[k++] = (tw_feed_shape){t->update.average->gradients[i], t->update.average->variables[i]->shape};
    TWI_TRY(tw_session_prepare(t->session, NULL, 0, a->values, a->num_variables, error));
    TWI_TRY(tw_session_prepare(t->session, fed, a->num_gradients, update, 2, error));
    TWI_TRY(count_plan(t, 0, error));
    for (int i = 0; i < t->towers.count; i++)
        find_pushes(a, &a->workers[i]);
done:
    twi_free(fed);
    return status;
}

/* What a checkpoint says about the stream of data: *numbers[*count], count 0 if it says nothing. */
static tw_status read_batches(tw_checkpoint *checkpoint, int towers, tw_tensor **numbers, int *count, tw_error *error)
{
    *count = 0;
    *numbers = NULL;
    if (!checkpoint || tw_checkpoint_find(checkpoint, BATCHES) < 0)
        return TW_OK;
    tw_status status = tw_checkpoint_read(checkpoint, BATCHES, numbers, error);
    if (status != TW_OK)
        return status;
    bool plausible = tw_tensor_dtype(*numbers) == TW_INT64 && tw_tensor_elements(*numbers) >= 1 &&
                     tw_tensor_elements(*numbers) <= towers + 1;
    for (int i = 0; plausible && i < (int)tw_tensor_elements(*numbers); i++)
        plausible = ((int64_t *)tw_tensor_data(*numbers))[i] >= 0;
    if (!plausible)
        return twi_fail(error, TW_DATA_LOSS, "checkpoint %s: '" BATCHES "' are not sensible numbers",
                        tw_checkpoint_path(checkpoint));
    *count = (int)tw_tensor_elements(*numbers);
    return TW_OK;
}

tw_status twi_asynchronous_start(tw_trainer *t, const tw_trainer_options *options, tw_checkpoint *checkpoint,
                                 tw_error *error)
{
    twi_asynchronous *a = t->asynchronous;
    tw_status status;
    tw_tensor *batches = NULL;
    int num_batches;
    twi_order_head head = {
        .towers = t->towers.count, .batch = t->towers.shares[0], .seed = t->recipe.setting[TWI_SEED]};
    snprintf(head.model, sizeof head.model, "%s", t->recipe.model->name);
    TWI_TRY(read_batches(checkpoint, t->towers.count, &batches, &num_batches, error));
    TWI_TRY(twi_update_order_begin(&a->order, t->towers.count, &a->options, t->step,
                                   num_batches ? tw_tensor_data(batches) : NULL, num_batches,
                                   a->options.replay ? &a->replay : NULL, error));
    a->next_input = t->step; /* where trainer_input.c opens the pipeline */
    if (options->asynchronous.log && tw_devices_task(options->devices) == 0)
        TWI_TRY(twi_order_writer_open(options->asynchronous.log, &head, t->step, &a->log, error));
    for (int i = 0; i < t->towers.count; i++) {
        char name[32];
        snprintf(name, sizeof name, "tower_%d", i);
        TWI_TRY(twi_thread_start(&a->workers[i].thread, name, NULL, 0, work, &a->workers[i], error));
        a->workers[i].started = true;
    }
done:
    tw_tensor_release(batches);
    return status;
}

/* ---- ending ------------------------------------------------------------------------------------------------ */

/* Until no tower computes. */
static void wait_for_rest(twi_asynchronous *a)
{
    pthread_mutex_lock(&a->lock);
    for (int i = 0; a->workers && i < a->trainer->towers.count; i++)
        while (a->workers[i].state == TWI_COMPUTES)
            pthread_cond_wait(&a->arrival, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

/* Other tasks may wait for what towers under way compute here, and these for theirs, so among several they end. */
void twi_asynchronous_stop(twi_asynchronous *a)
{
    if (!a)
        return;
    if (a->trainer->session && tw_devices_tasks(tw_session_devices(a->trainer->session)) > 1)
        wait_for_rest(a);
    pthread_mutex_lock(&a->lock);
    a->stop = true;
    pthread_cond_broadcast(&a->begin);
    pthread_cond_broadcast(&a->input);
    pthread_mutex_unlock(&a->lock);
    if (a->trainer->input.pipeline)
        tw_pipeline_cancel(a->trainer->input.pipeline);
    if (a->trainer->session)
        tw_session_cancel(a->trainer->session);
    for (int i = 0; a->workers && i < a->trainer->towers.count; i++)
        if (a->workers[i].started)
            pthread_join(a->workers[i].thread, NULL);
}

void twi_asynchronous_destroy(twi_asynchronous *a)
{
    if (!a)
        return;
    for (int i = 0; a->workers && i < a->trainer->towers.count; i++) {
        twi_worker *w = &a->workers[i];
        for (int k = 0; w->values && k < a->num_variables; k++)
            tw_tensor_release(w->values[k]);
        for (int k = 0; w->results && k < w->num_fetches; k++)
            tw_tensor_release(w->results[k]);
        twi_free(w->values);
        twi_free(w->feeds);
        twi_free(w->fetches);
        twi_free(w->results);
        twi_free(w->pulls);
        twi_free(w->pushes);
    }
    twi_order_writer_close(a->log);
    twi_order_log_free(&a->replay);
    twi_update_order_free(&a->order);
    tw_tensor_release(a->rate);
    twi_free(a->workers);
    twi_free(a->values);
    twi_free(a->pushed);
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->begin);
    pthread_cond_destroy(&a->arrival);
    pthread_cond_destroy(&a->input);
    twi_free(a);
}

/* ---- resting --------------------------------------------------------------------------------------------- */

tw_status twi_asynchronous_rest(tw_trainer *t, tw_named_tensor *batches, tw_error *error)
{
    twi_asynchronous *a = t->asynchronous;
    wait_for_rest(a);
    int64_t *numbers = twi_alloc_array((size_t)t->towers.count + 1, sizeof *numbers);
    int count = numbers ? twi_update_order_batches(&a->order, numbers) : 0;
    tw_tensor *tensor = numbers ? tw_tensor_from(TW_INT64, TW_SHAPE(count), numbers) : NULL;
    *batches = (tw_named_tensor){BATCHES, tensor};
    twi_free(numbers);
    return tensor ? TW_OK : twi_fail_memory(error, "saving a checkpoint");
}
