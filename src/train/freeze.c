/* freeze.c - a network with the values of a checkpoint as constants. The variables are still made, by the network
 * itself, but what it is handed in their place is a constant; an export of what the outputs need leaves the variables
 * out. */
#include "base/memory.h"
#include "base/sized.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <tower/models.h>
#include <tower/nn.h>

typedef struct freezing {
    tw_checkpoint *checkpoint;
    bool raw;
    tw_error error;
} freezing;

static tw_status read_value(freezing *f, const tw_variable *variable, tw_tensor **value)
{
    char name[640];
    snprintf(name, sizeof name, "%s/ExponentialMovingAverage", variable->name);
    if (f->raw || tw_checkpoint_find(f->checkpoint, name) < 0)
        snprintf(name, sizeof name, "%s", variable->name);
    tw_status status = tw_checkpoint_read(f->checkpoint, name, value, &f->error);
    if (status == TW_OK &&
        (tw_tensor_dtype(*value) != variable->dtype || !tw_shape_compatible(tw_tensor_shape(*value), variable->shape)))
        status =
            twi_fail(&f->error, TW_INVALID_ARGUMENT, "checkpoint %s has another type or shape of '%s' than the network",
                     tw_checkpoint_path(f->checkpoint), name);
    return status;
}

/* The network's variable, whose value is a constant now. */
static tw_variable *hand_out(void *user, tw_graph *g, tw_variable *variable)
{
    freezing *f = user;
    tw_tensor *value = NULL;
    if (f->error.status != TW_OK || !variable)
        return variable;
    const char *slash = strrchr(variable->name, '/');
    if (read_value(f, variable, &value) == TW_OK)
        variable->value = tw_constant(tw_name(g, "%s", slash ? slash + 1 : variable->name), value);
    tw_tensor_release(value);
    return variable;
}

tw_status tw_freeze(const tw_model *model, const char *checkpoint, bool raw, void **bytes, size_t *size,
                    tw_error *error)
{
    TWI_NEED(model, "model", error);
    TWI_NEED(checkpoint, "checkpoint", error);
    TWI_NEED(bytes, "bytes", error);
    TWI_NEED(size, "size", error);
    tw_model whole, *m = &whole;
    freezing f = {.raw = raw};
    tw_graph *g = tw_graph_create();
    tw_status status = g ? TW_OK : twi_fail_memory(error, "freezing a network");
    *bytes = NULL;
    if (status != TW_OK)
        return status;
    TWI_TRY(twi_sized(m, model, TWI_SIZE(tw_model, logits), error));
    TWI_TRY(tw_checkpoint_open(checkpoint, &f.checkpoint, error));
    tw_output images = tw_placeholder(tw_name(g, "images"), TW_FLOAT32, TW_SHAPE(-1, m->height, m->width, m->channels));
    tw_enter_variable_getter(g, hand_out, &f);
    tw_output logits = m->logits(g, m, images, TW_FLOAT32, false);
    tw_leave_variable_getter(g);
    if (f.error.status != TW_OK)
        TWI_LEAVE(twi_fail(error, f.error.status, "%s", f.error.message));
    tw_output outputs[] = {tw_identity(tw_name(g, "logits"), logits), tw_softmax(tw_name(g, "probabilities"), logits)};
    if (tw_graph_status(g) != TW_OK)
        TWI_LEAVE(twi_fail(error, tw_graph_status(g), "%s", tw_graph_message(g)));
    TWI_TRY(tw_graph_export_part(g, outputs, 2, bytes, size, error));
done:
    tw_checkpoint_close(f.checkpoint);
    tw_graph_destroy(g);
    return status;
}
