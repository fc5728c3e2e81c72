/* trainer_variables.c - where variables live, and which of them a tower works with.
 *
 *     parameter_server         NAME, on the parameter devices; towers read it
 *       staged                 and "NAME/Staged" on the device of each tower, which it reads instead
 *     replicated, independent  NAME on the device of tower 0, "copy_k/NAME" on that of tower k
 *
 * What tower k has beyond tower 0 is a copy to the graph too (tw_copy_variable): checkpoints know one of each.
 * Never here: how gradients meet and are applied (trainer_apply.c). */
#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <tower/ops.h>

#include "train/reduce.h"
#include "train/trainer.h"

/* ---- what was asked for ------------------------------------------------------------------------------------- */

static const char *const update_names[] = {"", "parameter_server", "replicated", "independent"};
static const char *const placement_names[] = {"", "single", "rotate", "least-loaded", "least-bytes"};
static const char *const device_names[] = {"", "cpu", "gpu"};

enum { STAGED = 4, RELAXED = 5 }; /* saved for parameter_server and replicated with these */

const char *tw_variable_update_name(tw_variable_update update)
{
    return update >= TW_PARAMETER_SERVER && update <= TW_INDEPENDENT ? update_names[update] : "";
}

int64_t twi_trainer_update_to_save(const tw_variable_options *v)
{
    tw_variable_update update = v->update ? v->update : TW_PARAMETER_SERVER;
    if (v->update == 0 && !v->staged && !v->consistency)
        return 0; /* not asked for */
    return v->staged && update == TW_PARAMETER_SERVER                     ? STAGED
           : v->consistency == TW_RELAXED && update == TW_REPLICATED ? RELAXED
                                                                      : (int64_t)update;
}

/* Odd combinations are errors, not surprises. */
static tw_status check(const tw_trainer *t, tw_error *error)
{
    const tw_variable_options *v = &t->variables;
    const char *update = tw_variable_update_name(v->update);
    if (v->staged && v->update != TW_PARAMETER_SERVER)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "staged_vars goes with variable_update=parameter_server only: with %s each tower has variables "
                        "of its own, and none to fetch", update);
    if (v->consistency == TW_RELAXED && v->update != TW_REPLICATED)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "variable_consistency=relaxed goes with variable_update=replicated only, not with %s%s", update,
                        v->update == TW_PARAMETER_SERVER ? "; staged_vars is its counterpart there" : "");
    if (v->placement && v->update != TW_PARAMETER_SERVER)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "variable_placement=%s goes with variable_update=parameter_server only: with %s each tower has "
                        "all variables on its own device", placement_names[v->placement], update);
    if (v->parameter_device && v->update != TW_PARAMETER_SERVER)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "local_parameter_device=%s goes with variable_update=parameter_server only: with %s each tower "
                        "has all variables on its own device", device_names[v->parameter_device], update);
    const tw_average_options *a = &t->averaging;
    const char *meeting = a->all_reduce    ? "all_reduce_spec"
                          : a->packs       ? "gradient_repacking"
                          : a->small_bytes ? "agg_small_grads_max_bytes"
                          : a->bucket_bytes > 0 ? "gradient_bucket_bytes"
                          : a->wire        ? "compact_gradient_transfer"
                                           : NULL;
    if (v->update == TW_INDEPENDENT && meeting)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "%s says how gradients meet; with variable_update=independent they never do", meeting);
    return TW_OK;
}

/* What can be done at all with these devices. One tower meets nobody. */
static tw_status check_reduction(const tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    twi_reduce_spec spec;
    tw_status status = twi_reduce_spec_parse(t->averaging.all_reduce, &spec, error);
    if (status != TW_OK || t->towers == 1 || !twi_reduce_uses_nccl(&spec))
        return status;
    if (t->variables.update != TW_REPLICATED)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "all_reduce_spec=%.200s goes with variable_update=replicated only, not with %s: nccl brings the mean "
                        "to every tower", t->averaging.all_reduce, tw_variable_update_name(t->variables.update));
    status = tw_devices_check_nccl(options->devices, t->tower_devices, t->towers, error);
    return status == TW_OK ? TW_OK : (twi_prefix(error, "all_reduce_spec=%.200s", t->averaging.all_reduce), status);
}

static bool in_range(const tw_variable_options *v)
{
    return v->update >= 0 && v->update <= TW_INDEPENDENT && v->placement >= 0 && v->placement <= TW_PLACE_LEAST_BYTES &&
           v->parameter_device >= 0 && v->parameter_device <= TW_PARAMETERS_ON_GPU && v->consistency >= 0 &&
           v->consistency <= TW_RELAXED;
}

/* ---- parameter devices -------------------------------------------------------------------------------------- */

static void add_parameter_device(tw_trainer *t, const char *device)
{
    for (int i = 0; i < t->num_parameter_devices; i++)
        if (strcmp(t->parameter_devices[i], device) == 0)
            return;
    t->parameter_devices[t->num_parameter_devices++] = device;
}

static bool towers_are_on_gpus(const tw_trainer *t)
{
    for (int i = 0; i < t->towers; i++)
        if (tw_device_is(t->tower_devices[i], "CPU"))
            return false;
    return true;
}

static tw_status find_parameter_devices(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    tw_variable_options *v = &t->variables;
    int cpus = tw_devices_count(options->devices, "CPU");
    size_t most = (size_t)(t->towers > cpus ? t->towers : cpus);
    bool asked = v->parameter_device != TW_PARAMETER_DEVICE, spread = v->placement > TW_PLACE_SINGLE;
    if (!asked)
        v->parameter_device = spread && towers_are_on_gpus(t) ? TW_PARAMETERS_ON_GPU : TW_PARAMETERS_ON_CPU;
    if (!v->placement)
        v->placement = v->parameter_device == TW_PARAMETERS_ON_GPU ? TW_PLACE_LEAST_LOADED : TW_PLACE_SINGLE;
    t->parameter_devices = twi_alloc_array(most, sizeof *t->parameter_devices);
    t->parameter_loads = twi_alloc_array(most, sizeof *t->parameter_loads);
    if (!t->parameter_devices || !t->parameter_loads)
        return twi_fail_memory(error, "creating a trainer");
    if (v->parameter_device == TW_PARAMETERS_ON_CPU) {
        for (int i = 0; i < cpus; i++) /* a set of devices lists CPUs first */
            add_parameter_device(t, tw_devices_info(options->devices, i).name);
    } else {
        for (int i = 0; i < t->towers; i++)
            if (!tw_device_is(t->tower_devices[i], "CPU"))
                add_parameter_device(t, t->tower_devices[i]);
    }
    if (t->num_parameter_devices == 0)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "local_parameter_device=gpu puts variables on the GPUs that towers run on, and none does: tower "
                        "0 runs on %s", t->tower_devices[0]);
    if (asked && spread && t->num_parameter_devices == 1 && v->parameter_device == TW_PARAMETERS_ON_CPU)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "variable_placement=%s spreads variables over several devices, and local_parameter_device=cpu "
                        "has one only", placement_names[v->placement]);
    t->least_loaded = (tw_least_loaded){.devices = t->parameter_devices,
                                        .num_devices = t->num_parameter_devices,
                                        .loads = t->parameter_loads,
                                        .by_bytes = v->placement == TW_PLACE_LEAST_BYTES};
    return TW_OK;
}

tw_status twi_trainer_find_variables(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    tw_variable_options *v = &t->variables;
    int64_t saved = t->setting[TWI_UPDATE];
    *v = options->variables;
    if (!in_range(v) || saved > RELAXED)
        return twi_fail(error, TW_INVALID_ARGUMENT, "variable_update, placement or consistency: unknown number");
    if (!v->update && !v->staged && !v->consistency) { /* the checkpoint's, or the default */
        v->update = saved == STAGED    ? TW_PARAMETER_SERVER
                    : saved == RELAXED ? TW_REPLICATED
                                       : (tw_variable_update)saved;
        v->staged = saved == STAGED;
        v->consistency = saved == RELAXED ? TW_RELAXED : TW_STRONG;
    }
    v->update = v->update ? v->update : TW_PARAMETER_SERVER;
    v->consistency = v->consistency ? v->consistency : TW_STRONG;
    t->setting[TWI_UPDATE] = twi_trainer_update_to_save(v);
    tw_status status = check(t, error);
    if (status == TW_OK && t->averaging.all_reduce)
        status = check_reduction(t, options, error);
    return status == TW_OK && v->update == TW_PARAMETER_SERVER ? find_parameter_devices(t, options, error) : status;
}

/* ---- the step and the rate ---------------------------------------------------------------------------------- */

static const char *stay_at_home(void *trainer, const tw_node *node)
{
    tw_trainer *t = trainer;
    if (tw_devices_have_kernel(t->devices, t->home, node))
        return tw_devices_info(t->devices, t->home).name;
    t->strangers++;
    return "/cpu:0";
}

void twi_trainer_enter_home(tw_trainer *t)
{
    tw_enter_device_function(t->graph, stay_at_home, t);
}

/* Builds them on a graph of their own, to see whether the home has all kernels: a rate that goes to the host and back
 * would be worse than one that is made there. */
static bool home_suffices(tw_trainer *t)
{
    tw_graph *own = t->graph;
    t->graph = tw_graph_create();
    t->strangers = 0;
    twi_trainer_enter_home(t);
    const tw_variable *step = tw_global_step(t->graph);
    twi_trainer_build_rate(t);
    if (step)
        tw_assign_add(t->graph, step->handle, tw_scalar_of(t->graph, TW_INT64, 1));
    bool fine = tw_graph_status(t->graph) == TW_OK && t->strangers == 0;
    tw_leave_device(t->graph);
    tw_graph_destroy(t->graph);
    t->graph = own;
    return fine;
}

void twi_trainer_find_home(tw_trainer *t)
{
    const tw_variable_options *v = &t->variables;
    bool on_gpus = v->update == TW_PARAMETER_SERVER ? v->parameter_device == TW_PARAMETERS_ON_GPU
                                                    : !tw_device_is(t->tower_devices[0], "CPU");
    /* An automatic loss scale looks at all gradients, on the host. */
    if (!on_gpus || t->asynchronous || t->rule.automatic_loss_scale)
        return;
    t->home = tw_devices_find(t->devices, t->tower_devices[0]);
    if (t->home >= 0 && (strcmp(tw_devices_info(t->devices, t->home).type, "CPU") == 0 || !home_suffices(t)))
        t->home = -1;
}

/* ---- while a tower is built --------------------------------------------------------------------------------- */

/* Models ask for their variables inside a tower's device scope; a parameter server's lie elsewhere. */
static const char *place_variable(void *trainer, const tw_node *node)
{
    tw_trainer *t = trainer;
    if (!tw_node_is_variable(node))
        return "";
    switch (t->variables.placement) {
    case TW_PLACE_ROTATE:
        return t->parameter_devices[t->next_parameter_device++ % t->num_parameter_devices];
    case TW_PLACE_LEAST_LOADED:
    case TW_PLACE_LEAST_BYTES:
        return tw_least_loaded_device(&t->least_loaded, node);
    default:
        return t->parameter_devices[0];
    }
}

/* On tower 0's device, and saved: it may differ from the variable. */
static tw_variable *make_stage(tw_graph *g, const tw_variable *variable, const char *name)
{
    return tw_make_variable(
        g, name,
        &(tw_new_variable){variable->dtype, variable->shape, .initial_value = tw_variable_initial_value(variable)});
}

/* What the tower under construction works with in place of a variable. State that is not trained is tower 0's. */
static tw_variable *own_variable(void *trainer, tw_graph *g, tw_variable *variable)
{
    tw_trainer *t = trainer;
    char of[600], name[640];
    int tower = t->building;
    bool staged = t->variables.staged;
    if (!variable->trainable || (!staged && tower == 0))
        return variable;
    snprintf(of, sizeof of, "%s%s", variable->name, staged ? TWI_STAGED : "");
    snprintf(name, sizeof name, TWI_COPY "%s", tower, of);
    tw_variable *found = tw_graph_find_variable(g, tower ? name : of);
    if (found || tw_graph_status(g) != TW_OK)
        return found;
    tw_enter_no_device(g);
    tw_enter_device(g, "%s", t->tower_devices[tower]);
    found = tower ? tw_copy_variable(g, tw_graph_find_variable(g, of), name) : make_stage(g, variable, of);
    tw_leave_device(g);
    tw_leave_device(g);
    return found;
}

void twi_trainer_enter_variables(tw_trainer *t, int tower)
{
    const tw_variable_options *v = &t->variables;
    t->building = tower;
    if (v->update == TW_PARAMETER_SERVER)
        tw_enter_device_function(t->graph, place_variable, t);
    if (v->update != TW_PARAMETER_SERVER || v->staged)
        tw_enter_variable_getter(t->graph, own_variable, t);
}

void twi_trainer_leave_variables(tw_trainer *t)
{
    const tw_variable_options *v = &t->variables;
    if (v->update != TW_PARAMETER_SERVER || v->staged)
        tw_leave_variable_getter(t->graph);
    if (v->update == TW_PARAMETER_SERVER)
        tw_leave_device(t->graph);
}
