/* recording.c - see recording.h. */
#include "run/recording.h"

#include "base/log.h"

tw_status twi_launch(twi_device *device, const twi_step *step)
{
    return device->ops->launch ? device->ops->launch(device, step->kernel, &step->run) : step->kernel->run(&step->run);
}

static tw_status record(twi_list *list, twi_stretch *stretch, tw_error *error)
{
    twi_device *device = list->device;
    tw_error last = {0};
    tw_status status = device->ops->record(device, error);
    if (status != TW_OK)
        return status;
    for (int i = stretch->first; i < stretch->end && status == TW_OK; i++)
        if (list->steps[i].kernel)
            status = twi_launch(device, &list->steps[i]);
    if (status != TW_OK)
        *error = list->error; /* where a step's run() reports to */
    list->error = (tw_error){0};
    tw_status ended = device->ops->recorded(device, &stretch->recording, &last);
    if (status == TW_OK && ended != TW_OK)
        *error = last;
    if (status != TW_OK && stretch->recording) {
        device->ops->forget(device, stretch->recording);
        stretch->recording = NULL;
    }
    return status == TW_OK ? ended : status;
}

bool twi_recorded(twi_list *list, twi_stretch *stretch)
{
    tw_error error = {0};
    if (!stretch->ran || stretch->refused) {
        stretch->ran = true;
        return false;
    }
    if (!stretch->recording && record(list, stretch, &error) != TW_OK) {
        stretch->refused = true;
        twi_log(TWI_LOG_WARNING, "%d steps of %s are launched one by one, because recording them failed: %s",
                stretch->end - stretch->first, list->device->text, error.message);
    }
    return stretch->recording != NULL;
}
