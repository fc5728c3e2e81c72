/* trainer_variables.c - where variables live, and which of them a tower works with.
 *
 *     parameter_server         NAME, on the parameter devices; towers read it
 *       staged                 and "NAME/Staged" on the device of each tower, which it reads instead
 *     replicated, independent  NAME on the device of tower 0, "copy_k/NAME" on that of tower k
 *     distributed_replicated   NAME, on the parameter devices, and "copy_k/NAME" on that of tower k
 *     local                    NAME on the device of tower 0, "group_k/NAME" on that of the first tower of group k
 *
 * Parameter devices are those of the job ps, where several tasks have one. What is called copy_k is a copy to the graph
 * too (tw_copy_variable): checkpoints know one of each.
 * Never here: which mode has which (trainer_modes.c); how gradients meet and are applied (trainer_apply.c). */
#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <tower/ops.h>

#include "train/reduce.h"
#include "train/trainer_modes.h"

/* ---- what was asked for ------------------------------------------------------------------------------------- */

static const char *const placement_names[] = {
    [TW_PLACE_SINGLE] = "single",
    [TW_PLACE_ROTATE] = "rotate",
    [TW_PLACE_LEAST_LOADED] = "least-loaded",
    [TW_PLACE_LEAST_BYTES] = "least-bytes",
};
static const char *const device_names[] = {[TW_PARAMETERS_ON_CPU] = "cpu", [TW_PARAMETERS_ON_GPU] = "gpu"};

/* What belongs to another mode of update is an error, not a surprise. */
static tw_status check(const tw_trainer *t, const tw_devices *devices, tw_error *error)
{
    const tw_variable_options *v = &t->variables.options;
    const tw_average_options *a = &t->recipe.average;
    const char *update = tw_variable_update_name(v->update);
    const char *reduction = a->all_reduce         ? "all_reduce"
                            : a->packs            ? "packs"
                            : a->small_bytes      ? "small_bytes"
                            : a->bucket_bytes > 0 ? "bucket_bytes"
                            : a->wire             ? "wire"
                                                  : NULL;
    if (v->placement && !t->variables.mode->place)
        return twi_fail(
            error, TW_INVALID_ARGUMENT,
            "options.variables.placement=%s goes with options.variables.update=parameter_server and "
            "distributed_replicated only: with %s each tower has all variables on its own device",
            placement_names[v->placement], update);
    if (v->parameter_device && !t->variables.mode->place)
        return twi_fail(
            error, TW_INVALID_ARGUMENT,
            "options.variables.parameter_device=%s goes with options.variables.update=parameter_server and "
            "distributed_replicated only: with %s each tower has all variables on its own device",
            device_names[v->parameter_device], update);
    if (!t->variables.mode->place && tw_devices_find(devices, "/job:ps") >= 0)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.ps_tasks: with options.variables.update=%s each tower has all variables on its own "
                        "device, and the job ps nothing to do",
                        update);
    if (reduction && !t->variables.mode->meet)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.average.%s says how gradients meet; with options.variables.update=%s they never do",
                        reduction, update);
    return TW_OK;
}

/* What can be done at all with these devices. One tower meets nobody. */
static tw_status check_reduction(const tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    twi_reduce_spec spec;
    tw_status status = twi_reduce_spec_parse(t->recipe.average.all_reduce, &spec, error);
    if (status != TW_OK || t->towers.count == 1 || !twi_reduce_uses_nccl(&spec))
        return status;
    if (!t->variables.mode->everywhere)
        return twi_fail(
            error, TW_INVALID_ARGUMENT,
            "options.average.all_reduce=%.200s goes with options.variables.update=replicated only, not with "
            "%s: nccl brings the mean to every tower",
            t->recipe.average.all_reduce, tw_variable_update_name(t->variables.options.update));
    status = tw_devices_check_nccl(options->devices, t->towers.devices, t->towers.count, error);
    return status == TW_OK
               ? TW_OK
               : (twi_prefix(error, "options.average.all_reduce=%.200s", t->recipe.average.all_reduce), status);
}

static tw_status check_numbers(const tw_variable_options *v, tw_error *error)
{
    const struct {
        const char *name;
        int number, last;
    } numbers[] = {{"placement", v->placement, TW_PLACE_LEAST_BYTES},
                   {"parameter_device", v->parameter_device, TW_PARAMETERS_ON_GPU},
                   {"consistency", v->consistency, TW_CONSISTENCY_RELAXED}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].number < 0 || numbers[i].number > numbers[i].last)
            return twi_fail(error, TW_INVALID_ARGUMENT, "options.variables.%s: there is no number %d", numbers[i].name,
                            numbers[i].number);
    return TW_OK;
}

/* ---- parameter devices -------------------------------------------------------------------------------------- */

static void add_parameter_device(tw_trainer *t, const char *device)
{
    for (int i = 0; i < t->variables.num_devices; i++)
        if (strcmp(t->variables.devices[i], device) == 0)
            return;
    t->variables.devices[t->variables.num_devices++] = device;
}

static bool towers_are_on_gpus(const tw_trainer *t)
{
    for (int i = 0; i < t->towers.count; i++)
        if (tw_device_is(t->towers.devices[i], "CPU"))
            return false;
    return true;
}

/* The CPU devices: of several tasks those of the job ps, if there is one. A set of devices lists CPUs first. */
static void add_cpus(tw_trainer *t, const tw_devices *devices, bool servers)
{
    for (int i = 0; i < tw_devices_count(devices, "CPU"); i++) {
        const char *name = tw_devices_info(devices, i).name;
        if (tw_device_in_job(name, "ps") == servers)
            add_parameter_device(t, name);
    }
}

static tw_status find_parameter_devices(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    tw_variable_options *v = &t->variables.options;
    int cpus = tw_devices_count(options->devices, "CPU");
    size_t most = (size_t)(t->towers.count > cpus ? t->towers.count : cpus);
    bool asked = v->parameter_device != TW_PARAMETERS_DEFAULT, spread = v->placement > TW_PLACE_SINGLE;
    bool servers = tw_devices_find(options->devices, "/job:ps") >= 0;
    if (!asked)
        v->parameter_device =
            spread && towers_are_on_gpus(t) && !servers ? TW_PARAMETERS_ON_GPU : TW_PARAMETERS_ON_CPU;
    if (servers && v->parameter_device == TW_PARAMETERS_ON_GPU)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.variables.parameter_device=gpu puts variables beside towers, and the job ps has none: "
                        "with options.ps_tasks they lie on its CPUs");
    t->variables.devices = twi_alloc_array(most, sizeof *t->variables.devices);
    t->variables.loads = twi_alloc_array(most, sizeof *t->variables.loads);
    if (!t->variables.devices || !t->variables.loads)
        return twi_fail_memory(error, "creating a trainer");
    if (v->parameter_device == TW_PARAMETERS_ON_CPU) {
        add_cpus(t, options->devices, servers);
    } else {
        for (int i = 0; i < t->towers.count; i++)
            if (!tw_device_is(t->towers.devices[i], "CPU"))
                add_parameter_device(t, t->towers.devices[i]);
    }
    if (t->variables.num_devices == 0)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.variables.parameter_device=gpu puts variables on the GPUs that towers run on, and "
                        "none does: tower "
                        "0 runs on %s",
                        t->towers.devices[0]);
    if (asked && spread && t->variables.num_devices == 1 && v->parameter_device == TW_PARAMETERS_ON_CPU)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "options.variables.placement=%s spreads variables over several devices, and "
                        "options.variables.parameter_device=cpu has one only",
                        placement_names[v->placement]);
    if (!v->placement)
        v->placement = v->parameter_device == TW_PARAMETERS_ON_GPU ? TW_PLACE_LEAST_LOADED
                       : servers && t->variables.num_devices > 1   ? TW_PLACE_LEAST_BYTES
                                                                   : TW_PLACE_SINGLE;
    t->variables.spread = (tw_least_loaded){.devices = t->variables.devices,
                                            .num_devices = t->variables.num_devices,
                                            .loads = t->variables.loads,
                                            .by_bytes = v->placement == TW_PLACE_LEAST_BYTES};
    return TW_OK;
}

tw_status twi_trainer_find_variables(tw_trainer *t, const tw_trainer_options *options, tw_error *error)
{
    tw_variable_options *v = &t->variables.options;
    const twi_mode *remembered = twi_mode_at(t->recipe.setting[TWI_UPDATE]);
    tw_status status;
    *v = options->variables;
    TWI_TRY(check_numbers(v, error));
    if (!v->update && !v->staged && !v->consistency) /* the checkpoint's, or the default */
        twi_mode_ask(remembered, v);
    v->update = v->update ? v->update : TW_UPDATE_PARAMETER_SERVER;
    v->consistency = v->consistency ? v->consistency : TW_CONSISTENCY_STRONG;
    TWI_TRY(twi_mode_find(v, &t->variables.mode, error));
    t->recipe.setting[TWI_UPDATE] = twi_mode_number(t->variables.mode);
    TWI_TRY(check(t, options->devices, error));
    if (t->recipe.average.all_reduce)
        TWI_TRY(check_reduction(t, options, error));
    if (t->variables.mode->place)
        TWI_TRY(find_parameter_devices(t, options, error));
done:
    return status;
}

/* ---- while a tower is built --------------------------------------------------------------------------------- */

/* Models ask for their variables inside a tower's device scope; a parameter server's lie elsewhere. */
const char *twi_on_parameter_devices(void *trainer, const tw_node *node)
{
    tw_trainer *t = trainer;
    if (!tw_node_is_variable(node))
        return "";
    switch (t->variables.options.placement) {
    case TW_PLACE_ROTATE:
        return t->variables.devices[t->variables.next++ % t->variables.num_devices];
    case TW_PLACE_LEAST_LOADED:
    case TW_PLACE_LEAST_BYTES:
        return tw_least_loaded_device(&t->variables.spread, node);
    default:
        return t->variables.devices[0];
    }
}

static void enter_tower(tw_trainer *t)
{
    tw_enter_no_device(t->graph);
    tw_enter_device(t->graph, "%s", t->towers.devices[t->variables.building]);
}

static void leave_tower(tw_trainer *t)
{
    tw_leave_device(t->graph);
    tw_leave_device(t->graph);
}

/* A copy of the variable on the device of the tower under construction. */
tw_variable *twi_own_local(tw_trainer *t, tw_variable *variable)
{
    char name[700];
    snprintf(name, sizeof name, TWI_COPY "%s", t->variables.building, variable->name);
    tw_variable *found = tw_graph_find_variable(t->graph, name);
    if (found || tw_graph_status(t->graph) != TW_OK)
        return found;
    enter_tower(t);
    found = tw_copy_variable(t->graph, variable, name);
    leave_tower(t);
    return found;
}

tw_variable *twi_own_copy(tw_trainer *t, tw_variable *variable)
{
    return t->variables.building == 0 ? variable : twi_own_local(t, variable);
}

tw_variable *twi_own_made(tw_trainer *t, const char *name, tw_variable *variable)
{
    enter_tower(t);
    tw_variable *made = tw_make_variable(
        t->graph, name,
        &(tw_new_variable){variable->dtype, variable->shape, .initial_value = tw_variable_initial_value(variable)});
    leave_tower(t);
    return made;
}

/* Tower 0's is saved: it may differ from the variable. */
tw_variable *twi_own_stage(tw_trainer *t, tw_variable *variable)
{
    char name[600];
    snprintf(name, sizeof name, "%s" TWI_STAGED, variable->name);
    tw_variable *stage = tw_graph_find_variable(t->graph, name);
    if (tw_graph_status(t->graph) != TW_OK || (stage && t->variables.building == 0))
        return stage;
    return stage ? twi_own_local(t, stage) : twi_own_made(t, name, variable);
}

/* What the tower under construction works with in place of a variable. State that is not trained is tower 0's. */
static tw_variable *get_own(void *trainer, tw_graph *g, tw_variable *variable)
{
    (void)g;
    tw_trainer *t = trainer;
    return variable->trainable ? t->variables.mode->own(t, variable) : variable;
}

void twi_trainer_enter_variables(tw_trainer *t, int tower)
{
    t->variables.building = tower;
    if (t->variables.mode->place)
        tw_enter_device_function(t->graph, t->variables.mode->place, t);
    if (t->variables.mode->own)
        tw_enter_variable_getter(t->graph, get_own, t);
}

void twi_trainer_leave_variables(tw_trainer *t)
{
    if (t->variables.mode->own)
        tw_leave_variable_getter(t->graph);
    if (t->variables.mode->place)
        tw_leave_device(t->graph);
}
