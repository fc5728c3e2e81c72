/* trainer_step_device.c - where the step is counted and the rate computed. */
#include "base/status.h"
#include "train/trainer_modes.h"

#include <string.h>
#include <tower/ops.h>

static const char *place_on_step_device(void *trainer, const tw_node *node)
{
    tw_trainer *t = trainer;
    if (tw_devices_have_kernel(t->devices, t->step_device.number, node))
        return tw_devices_info(t->devices, t->step_device.number).name;
    t->step_device.refused++;
    return "/cpu:0";
}

void twi_trainer_enter_step_device(tw_trainer *t)
{
    tw_enter_device_function(t->graph, place_on_step_device, t);
}

/* Builds them on a graph of their own, to see whether the device has all kernels: a rate that goes to the host and back
 * would be worse than one that is made there. */
static tw_status try_step_device(tw_trainer *t, bool *suffices, tw_error *error)
{
    tw_graph *trial = tw_graph_create();
    if (!trial)
        return twi_fail_memory(error, "creating a trainer");
    t->step_device.refused = 0;
    tw_enter_device_function(trial, place_on_step_device, t);
    const tw_variable *step = tw_global_step(trial);
    twi_trainer_build_rate(t, trial);
    if (step)
        tw_assign_add(trial, step->handle, tw_scalar_of(trial, TW_INT64, 1));
    tw_leave_device(trial);
    *suffices = tw_graph_status(trial) == TW_OK && t->step_device.refused == 0;
    tw_graph_destroy(trial);
    return TW_OK;
}

tw_status twi_trainer_find_step_device(tw_trainer *t, tw_error *error)
{
    const twi_variables *v = &t->variables;
    bool on_gpus = v->mode->place ? v->options.parameter_device == TW_PARAMETERS_ON_GPU
                                  : !tw_device_is(t->towers.devices[0], "CPU");
    bool suffices = false;
    t->step_device.number = -1;
    /* An automatic loss scale looks at all gradients, on the host. */
    if (!on_gpus || t->asynchronous || t->recipe.rule.automatic_loss_scale)
        return TW_OK;
    t->step_device.number = tw_devices_find(t->devices, t->towers.devices[0]);
    if (t->step_device.number < 0)
        return TW_OK;
    bool on_cpu = strcmp(tw_devices_info(t->devices, t->step_device.number).type, "CPU") == 0;
    tw_status status = on_cpu ? TW_OK : try_step_device(t, &suffices, error);
    if (!suffices)
        t->step_device.number = -1;
    return status;
}
