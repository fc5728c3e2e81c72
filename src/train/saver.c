/* saver.c - between a session and its checkpoints: which tensors there are, and what they are called.
 * Never here:  how a checkpoint lies on the disk (src/io). */
#include "base/array.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sized.h"
#include "base/status.h"
#include "base/text.h"
#include "train/finite.h"

#include <stdio.h>
#include <string.h>
#include <tower/train.h>

#define STREAMS "tower/streams/"
#define AVERAGE "/ExponentialMovingAverage"

enum { NAME_SIZE = 640 };

/* ---- saving ------------------------------------------------------------------------------------------------ */

/* Tensors on their way to a file; those from the session are owned, the rest is the caller's. */
typedef struct cargo {
    TWI_ARRAY(tw_named_tensor) tensors;
    TWI_ARRAY(char *) names; /* that were made for them */
    int owned;               /* the first so many tensors */
} cargo;

static void free_cargo(cargo *c)
{
    for (int i = 0; i < c->owned; i++)
        tw_tensor_release((tw_tensor *)c->tensors.items[i].tensor);
    for (int i = 0; i < c->names.count; i++)
        twi_free(c->names.items[i]);
    twi_array_free(&c->tensors);
    twi_array_free(&c->names);
}

/* A copy of the name that lasts as long as the cargo; NULL: memory ran out. */
static const char *keep_name(cargo *c, const char *name)
{
    char *kept = twi_strdup(name);
    if (kept && twi_push(&c->names, kept))
        return kept;
    twi_free(kept);
    return NULL;
}

/* What the variable is called in the checkpoint; NULL: memory ran out. */
static const char *name_to_save(cargo *c, const tw_variable *variable, const char *renamed)
{
    return renamed ? keep_name(c, renamed) : variable->whole ? variable->whole : variable->name;
}

static tw_status load_variables(cargo *c, tw_session *session, const tw_save_options *o, tw_error *error)
{
    tw_graph *graph = tw_session_graph(session);
    for (int i = 0; i < tw_graph_num_variables(graph); i++) {
        const tw_variable *variable = tw_graph_variable(graph, i);
        const char *renamed = o->rename ? o->rename(o->user, variable->name) : NULL;
        tw_tensor *value = NULL;
        if (variable->copy_of || (renamed && !*renamed))
            continue;
        tw_status status = tw_session_get_variable(session, variable, &value, error);
        if (status != TW_OK)
            return status;
        const char *name = name_to_save(c, variable, renamed);
        c->tensors.items[c->tensors.count++] = (tw_named_tensor){name, value, variable->part};
        c->owned++;
        if (!name)
            return twi_fail_memory(error, "saving a checkpoint");
        if (o->finite && !twi_is_finite(value))
            return twi_fail(error, TW_OUT_OF_RANGE, "Model diverged: variable '%s' is not finite, nothing is saved",
                            variable->name);
    }
    return TW_OK;
}

static tw_status load_streams(cargo *c, tw_session *session, int count, tw_error *error)
{
    for (int i = 0; i < count; i++) {
        const char *node;
        tw_tensor *place = NULL;
        tw_status status = tw_session_get_stream(session, i, &node, &place, error);
        if (status != TW_OK)
            return status;
        if (strstr(node, "/Initializer/")) {
            tw_tensor_release(place);
            continue;
        }
        char name[NAME_SIZE];
        snprintf(name, sizeof name, STREAMS "%s", node);
        const char *kept = keep_name(c, name);
        c->tensors.items[c->tensors.count++] = (tw_named_tensor){kept, place, NULL};
        c->owned++;
        if (!kept)
            return twi_fail_memory(error, "saving streams");
    }
    return TW_OK;
}

/* The graph, so that others can open the run: TensorFlow, Netron, `tower run`. */
static tw_status write_meta_graph(const tw_graph *graph, const char *directory, const char *prefix, int64_t step,
                                  tw_error *error)
{
    void *bytes = NULL;
    size_t size;
    twi_text path = {0};
    tw_status status;
    twi_text_printf(&path, "%s/%s-%lld.meta", directory, prefix, (long long)step);
    if (path.failed)
        TWI_LEAVE(twi_fail_memory(error, "saving a graph"));
    TWI_TRY(tw_meta_graph_export(graph, NULL, &bytes, &size, error));
    status = twi_file_replace(path.data, bytes, size, error);
done:
    tw_free(bytes);
    twi_text_free(&path);
    return status;
}

/* Of several tasks the first one writes, and the others wait for what comes of it. */
static tw_status save_once(tw_session *session, const char *directory, const char *prefix, int64_t step, const cargo *c,
                           int keep, tw_error *error)
{
    tw_devices *devices = tw_session_devices(session);
    tw_error reason = {0};
    if (tw_devices_task(devices) == 0)
        tw_checkpoint_save(directory, prefix, step, c->tensors.items, c->tensors.count, keep, &reason);
    tw_status status = tw_devices_share(devices, &reason, sizeof reason, error);
    if (status == TW_OK && reason.status != TW_OK && error)
        *error = reason;
    return status == TW_OK ? reason.status : status;
}

tw_status tw_save(tw_session *session, const char *directory, int64_t step, const tw_save_options *options,
                  tw_error *error)
{
    TWI_NEED(session, "session", error);
    tw_save_options whole, *o = &whole;
    int streams = tw_session_num_streams(session);
    cargo c = {0};
    tw_status status;
    TWI_TRY(twi_sized(o, options, TWI_SIZE(tw_save_options, num_extras), error));
    if (o->num_extras < 0 || (o->num_extras > 0 && !o->extras))
        TWI_LEAVE(twi_fail(error, TW_INVALID_ARGUMENT, "tw_save: %d extras%s; expected 0 or more, and where they are",
                           o->num_extras, o->extras ? "" : " at NULL"));
    if (!twi_reserve(&c.tensors, tw_graph_num_variables(tw_session_graph(session)) + streams + o->num_extras))
        TWI_LEAVE(twi_fail_memory(error, "saving a checkpoint"));
    TWI_TRY(load_variables(&c, session, o, error));
    TWI_TRY(load_streams(&c, session, streams, error));
    for (int i = 0; i < o->num_extras; i++)
        c.tensors.items[c.tensors.count++] = o->extras[i];
    const char *prefix = o->prefix ? o->prefix : "model.ckpt";
    TWI_TRY(save_once(session, directory, prefix, step, &c, o->keep, error));
    if (tw_devices_task(tw_session_devices(session)) != 0)
        goto done;
    tw_error reason;
    if (o->meta_graph && write_meta_graph(tw_session_graph(session), directory, prefix, step, &reason) != TW_OK)
        twi_log(TWI_LOG_WARNING, "the graph was not saved beside the checkpoint: %s", reason.message);
done:
    free_cargo(&c);
    return status;
}

/* ---- restoring --------------------------------------------------------------------------------------------- */

/* What the checkpoint calls the value of a variable that goes by `name`, in *found; NULL if it has none. */
static tw_status name_in(tw_checkpoint *checkpoint, const char *name, const tw_restore_options *o,
                         char text[NAME_SIZE], const char **found, bool *is_average, tw_error *error)
{
    snprintf(text, NAME_SIZE, "%s" AVERAGE, name);
    *is_average = o->averages && tw_checkpoint_find(checkpoint, text) >= 0;
    if (!*is_average)
        snprintf(text, NAME_SIZE, "%s", name);
    *found = text;
    return tw_checkpoint_find(checkpoint, text) >= 0 ? TW_OK : tw_checkpoint_key(checkpoint, name, found, error);
}

/* " (it was made by model cifar10)", where a checkpoint says so. */
static const char *maker_text(tw_checkpoint *checkpoint, char text[128])
{
    tw_tensor *model = NULL;
    text[0] = 0;
    if (tw_checkpoint_find(checkpoint, "tower/model") >= 0 &&
        tw_checkpoint_read(checkpoint, "tower/model", &model, NULL) == TW_OK && tw_tensor_dtype(model) == TW_STRING &&
        tw_tensor_elements(model) == 1) {
        const tw_string *name = tw_tensor_data(model);
        snprintf(text, 128, " (it was made by model %.*s)", name->size < 64 ? (int)name->size : 64, name->data);
    }
    tw_tensor_release(model);
    return text;
}

/* Reads the value of one variable; *value stays NULL if the checkpoint may lack it and does, or is not asked. */
static tw_status read_variable(tw_checkpoint *checkpoint, const tw_variable *variable, const tw_restore_options *o,
                               tw_tensor **value, int *num_averages, tw_error *error)
{
    char name[NAME_SIZE], has[128], wants[128];
    bool is_average;
    const char *renamed = o->rename ? o->rename(o->user, variable->name) : NULL;
    if (renamed && !*renamed)
        return TW_OK;
    const char *own = variable->whole ? variable->whole : variable->name;
    const char *found;
    tw_status status = name_in(checkpoint, renamed ? renamed : own, o, name, &found, &is_average, error);
    if (status != TW_OK || (!found && o->allow_missing))
        return status;
    if (!found)
        return twi_fail(error, TW_NOT_FOUND, "checkpoint %s has no '%s', which variable '%s' needs%s",
                        tw_checkpoint_path(checkpoint), name, variable->name, maker_text(checkpoint, has));
    status = tw_checkpoint_read_part(checkpoint, found, variable->part, value, error);
    if (status != TW_OK)
        return twi_prefix(error, "restoring variable '%s'", variable->name), status;
    if (tw_tensor_dtype(*value) != variable->dtype || !tw_shape_compatible(tw_tensor_shape(*value), variable->shape))
        return twi_fail(error, TW_INVALID_ARGUMENT, "checkpoint %s has %s %s as '%s', but variable '%s' is %s %s",
                        tw_checkpoint_path(checkpoint), tw_dtype_name(tw_tensor_dtype(*value)),
                        tw_shape_text(tw_tensor_shape(*value), has, sizeof has), found, variable->name,
                        tw_dtype_name(variable->dtype), tw_shape_text(variable->shape, wants, sizeof wants));
    *num_averages += is_average;
    return TW_OK;
}

static tw_status restore_streams(tw_session *session, tw_checkpoint *checkpoint, tw_error *error)
{
    for (int i = 0; i < tw_checkpoint_count(checkpoint); i++) {
        const char *name = tw_checkpoint_name(checkpoint, i);
        if (strncmp(name, STREAMS, strlen(STREAMS)) != 0)
            continue;
        tw_tensor *place = NULL;
        tw_status status = tw_checkpoint_read(checkpoint, name, &place, error);
        if (status == TW_OK)
            status = tw_session_set_stream(session, name + strlen(STREAMS), place, error);
        tw_tensor_release(place);
        if (status != TW_OK)
            return twi_prefix(error, "restoring %s", tw_checkpoint_path(checkpoint)), status;
    }
    return TW_OK;
}

/* The value for variable i: its own, or its original's, which was made before it. */
static tw_tensor *value_for(const tw_graph *graph, int i, tw_tensor *const *values)
{
    const tw_variable *original = tw_graph_variable(graph, i);
    while (original->copy_of)
        original = original->copy_of;
    while (tw_graph_variable(graph, i) != original)
        i--;
    return values[i];
}

tw_status tw_restore(tw_session *session, tw_checkpoint *checkpoint, const tw_restore_options *options,
                     int *num_averages, tw_error *error)
{
    TWI_NEED(session, "session", error);
    TWI_NEED(checkpoint, "checkpoint", error);
    tw_restore_options whole, *o = &whole;
    tw_graph *graph = tw_session_graph(session);
    int count = tw_graph_num_variables(graph), averages = 0;
    tw_status status = TW_OK;
    status = twi_sized(o, options, TWI_SIZE(tw_restore_options, user), error);
    if (status != TW_OK)
        return status;
    tw_tensor **values = twi_alloc_array((size_t)count, sizeof *values);
    if (!values)
        return twi_fail_memory(error, "restoring a checkpoint");
    for (int i = 0; i < count; i++)
        if (!tw_graph_variable(graph, i)->copy_of)
            TWI_TRY(read_variable(checkpoint, tw_graph_variable(graph, i), o, &values[i], &averages, error));
    for (int i = 0; i < count; i++) {
        const tw_tensor *value = value_for(graph, i, values);
        if (value)
            TWI_TRY(tw_session_set_variable(session, tw_graph_variable(graph, i), value, error));
    }
    TWI_TRY(restore_streams(session, checkpoint, error));
    if (num_averages)
        *num_averages = averages;
done:
    for (int i = 0; i < count; i++)
        tw_tensor_release(values[i]);
    twi_free(values);
    return status;
}
