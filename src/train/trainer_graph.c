/* trainer_graph.c - the graph of a step: a tower for each share of the batch, their average, and the update.
 *
 * A tower is a name scope on a device. Nothing that computes a number here knows how many devices there are, which is
 * why resuming on others gives the same bits. */
#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

#include "train/optimizer.h" /* twi_trainable_variables, twi_take_whole_gradients */
#include "train/trainer_modes.h"

/* All GPUs, or where there is none all CPU devices, but for those of the job ps; into names. Returns how many. */
static int list_devices(const tw_devices *devices, const char **names)
{
    int count = 0;
    const char *type = tw_devices_count(devices, "GPU") ? "GPU" : "CPU";
    for (int i = 0; i < tw_devices_count(devices, NULL); i++) {
        tw_device_info info = tw_devices_info(devices, i);
        if (strcmp(info.type, type) == 0 && !tw_device_in_job(info.name, "ps"))
            names[count++] = info.name;
    }
    return count;
}

tw_status twi_trainer_choose_devices(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    int count = options->num_tower_devices;
    const char **all = twi_alloc_array((size_t)tw_devices_count(options->devices, NULL), sizeof *all);
    const char *const *names = count ? options->tower_devices : all;
    bool in_blocks = twi_mode_at(t->recipe.setting[TWI_UPDATE])->grouped; /* neighbours stay together */
    if (all && !count)
        count = list_devices(options->devices, all);
    if (t->recipe.setting[TWI_TOWERS] == 0)
        t->recipe.setting[TWI_TOWERS] = count;
    t->towers.count = (int)t->recipe.setting[TWI_TOWERS];
    t->towers.devices = twi_alloc_array((size_t)t->towers.count, sizeof *t->towers.devices);
    for (int i = 0; all && t->towers.devices && i < t->towers.count; i++)
        t->towers.devices[i] = names[in_blocks ? (int)((int64_t)i * count / t->towers.count) : i % count];
    bool good = all && t->towers.devices;
    twi_free(all);
    return good ? TW_OK : twi_fail_memory(error, "creating a trainer");
}

/* Gradients of the tower's loss by what it works with in place of each trainable variable. */
static tw_grads *compute_gradients(tw_trainer *t, int tower, tw_optimizer *optimizer)
{
    int count;
    tw_variable **own = twi_trainable_variables(t->graph, &count);
    if (!own)
        return NULL;
    for (int i = 0; i < count; i++)
        own[i] = tw_variable_here(t->graph, own[i]);
    tw_output loss = t->fetched.outputs[tower];
    if (t->scaling.scale)
        loss = tw_mul(tw_name(t->graph, "scaled_loss"), loss, t->scaling.scale->scale);
    tw_grads *grads = tw_compute_gradients_of(optimizer, loss, own, count);
    twi_free(own);
    return grads;
}

/* Of the tower whose scopes are open; on the CPU, where it costs the tower nothing. */
static void build_accuracy(tw_trainer *t, int tower)
{
    char scope[32];
    tw_output logits = {0}, *accuracy = t->fetched.outputs + t->towers.count + 1 + 2 * tower;
    snprintf(scope, sizeof scope, "tower_%d", tower);
    tw_get_collection(t->graph, "logits", scope, &logits, 1);
    accuracy[0] = tw_accuracy(tw_name(t->graph, "top_1_accuracy"), logits, t->input.labels[tower], 1);
    accuracy[1] = tw_accuracy(tw_name(t->graph, "top_5_accuracy"), logits, t->input.labels[tower], 5);
}

static void build_tower(tw_trainer *t, int tower, tw_optimizer *optimizer)
{
    tw_graph *g = t->graph;
    TW_NAME_SCOPE(g, "tower_%d", tower) {
        twi_trainer_build_input(t, tower);
        TW_DEVICE(g, "%s", t->towers.devices[tower])
        {
            twi_trainer_enter_variables(t, tower);
            t->fetched.outputs[tower] = tw_model_loss(g, t->recipe.model, t->input.images[tower],
                                                      t->input.labels[tower], (tw_dtype)t->recipe.setting[TWI_DTYPE]);
            t->update.gradients[tower] = compute_gradients(t, tower, optimizer);
            twi_trainer_leave_variables(t);
        }
        if (t->fetched.accuracy)
            build_accuracy(t, tower);
    }
    tw_reuse_variables(g);
}

/* What summaries look at besides the towers' losses: the rate, what the last tower's loss is made of, the averaged
 * gradients, and what the last tower saw. Variables and activations are read on their own. */
static tw_status list_fetches(tw_trainer *t, tw_error *error)
{
    char scope[32];
    snprintf(scope, sizeof scope, "tower_%d", t->towers.count - 1);
    int losses = tw_get_collection(t->graph, "losses", scope, NULL, 0);
    t->fetched.num_losses = losses;
    t->fetched.num_parts = losses + tw_get_collection(t->graph, "loss_averages", scope, NULL, 0);
    int first = t->towers.count + 1 + (t->fetched.accuracy ? 2 * t->towers.count : 0),
        most = first + 4 + t->fetched.num_parts + t->update.average->count;
    tw_output *fetches = twi_alloc_array((size_t)most, sizeof *fetches);
    t->fetched.tensors = twi_alloc_array((size_t)most, sizeof *t->fetched.tensors);
    if (!fetches || !t->fetched.tensors) {
        twi_free(fetches);
        return twi_fail_memory(error, "creating a trainer");
    }
    memcpy(fetches, t->fetched.outputs, sizeof *fetches * (size_t)first);
    twi_free(t->fetched.outputs);
    t->fetched.outputs = fetches;
    t->fetched.count = first;
    if (t->scaling.scale && t->scaling.scale->automatic) {
        fetches[t->fetched.count++] = t->scaling.scale->finite;
        fetches[t->fetched.count++] = t->scaling.scale->scale;
    }
    t->fetched.num_always = t->fetched.count;
    fetches[t->fetched.count++] = t->update.rate;
    tw_get_collection(t->graph, "losses", scope, fetches + t->fetched.count, losses);
    tw_get_collection(t->graph, "loss_averages", scope, fetches + t->fetched.count + losses,
                      t->fetched.num_parts - losses);
    t->fetched.count += t->fetched.num_parts;
    for (int i = 0; i < t->update.average->count; i++)
        if (t->update.average->gradients[i].node)
            fetches[t->fetched.count++] = t->update.average->gradients[i];
    fetches[t->fetched.count++] = t->input.images[t->towers.count - 1];
    return TW_OK;
}

tw_status twi_trainer_build_graph(tw_trainer *t, const tw_dataset *dataset, tw_error *error)
{
    tw_graph *g = t->graph;
    tw_graph_set_seed(g, t->recipe.setting[TWI_SEED]);
    tw_enter_device(g, "/cpu:0");
    twi_trainer_enter_step_device(t);
    tw_global_step(g); /* here, before anything reads it */
    tw_optimizer *optimizer = twi_trainer_build_optimizer(t);
    if (t->asynchronous)
        twi_take_whole_gradients(optimizer);
    t->scaling.scale = twi_trainer_build_scale(t);
    tw_leave_device(g);
    if (t->scaling.scale && t->scaling.scale->automatic)
        tw_guard_optimizer(optimizer, t->scaling.scale);
    if (t->input.on_device)
        twi_trainer_build_data(t, dataset);
    twi_trainer_build_prefetch(t);
    for (int i = 0; i < t->towers.count; i++)
        build_tower(t, i, optimizer);
    if (t->as_tutorial && t->recipe.model->channels == 3) {
        tw_summary_image(g, "images", t->input.images[t->towers.count - 1], 3);
        t->input.summary = tw_merge_all_summaries(g, NULL);
    }
    twi_trainer_enter_step_device(t);
    t->fetched.outputs[t->towers.count] = twi_trainer_build_ahead(t, twi_trainer_build_update(t, optimizer));
    tw_leave_device(g);
    twi_trainer_build_meeting(t);
    tw_leave_device(g);
    if (tw_graph_status(g) != TW_OK)
        return twi_fail(error, tw_graph_status(g), "%s", tw_graph_message(g));
    if (!t->fetched.outputs[t->towers.count].node)
        return twi_fail_memory(error, "creating a trainer");
    return list_fetches(t, error);
}
