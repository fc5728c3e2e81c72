/* meta_graph.c - a MetaGraphDef message: a graph, its collections as far as Tower has a use for them, and what is to be
 * known of it: signatures, what restores it, what has to be run first. */
#include "io/meta_graph.h"

#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include "format/protobuf.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tower/io.h>
#include <tower/queue.h>

typedef struct importer {
    tw_graph *graph;
    const char *prefix; /* "imported/" or "" */
    twi_about *about;   /* filled in */
    tw_error *error;
} importer;

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* "node" or "node:1" as an output of the graph; a node that has outputs is meant as its first. */
static tw_status find_output(const importer *m, const char *where, const char *text, tw_output *output)
{
    char name[600];
    const char *colon = strrchr(text, ':');
    int length = colon ? (int)(colon - text) : (int)strlen(text);
    snprintf(name, sizeof name, "%s%.*s", m->prefix, length, text);
    tw_node *node = tw_graph_find(m->graph, name);
    long index = colon ? strtol(colon + 1, NULL, 10) : 0;
    bool unknown = node && twi_op_is(node->op, TWI_UNKNOWN); /* fails when it is run */
    if (!node || index < 0 || (colon && index >= node->num_outputs && !unknown))
        return twi_fail(m->error, TW_NOT_FOUND, "%s names '%s', which is not in the graph", where, text);
    *output = unknown ? (tw_output){node, -1} : tw_node_output(node, (int)index);
    return TW_OK;
}

/* What programs run before anything else, in collections of these names. */
static bool names_initializers(const char *collection)
{
    static const char *const names[] = {"table_initializer", "saved_model_main_op", "legacy_init_op"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], collection) == 0)
            return true;
    return false;
}

static tw_status read_nodes(importer *m, const char *name, const Twi__CollectionDef__NodeList *list)
{
    char where[300];
    tw_status status = TW_OK;
    snprintf(where, sizeof where, "collection '%.200s'", name);
    for (size_t i = 0; i < list->n_value && status == TW_OK; i++) {
        tw_output output;
        status = find_output(m, where, list->value[i], &output);
        if (status != TW_OK)
            break;
        tw_add_to_collection(m->graph, name, output);
        if (names_initializers(name))
            status = twi_about_add_initializer(m->about, output, m->error);
    }
    return status;
}

static tw_status fail_memory(importer *m)
{
    return twi_fail_memory(m->error, "importing a graph");
}

/* Of a part of a partitioned variable, how checkpoints know it. */
static tw_status read_part(importer *m, tw_variable *variable, const Twi__SaveSliceInfoDef *def)
{
    size_t rank = def ? def->n_full_shape : 0;
    if (!def || !def->full_name[0] || rank == 0 || def->n_var_offset != rank || def->n_var_shape != rank)
        return TW_OK;
    twi_text part = {0};
    for (size_t i = 0; i < rank; i++)
        twi_text_printf(&part, "%lld ", (long long)def->full_shape[i]);
    for (size_t i = 0; i < rank; i++)
        twi_text_printf(&part, "%lld,%lld%s", (long long)def->var_offset[i], (long long)def->var_shape[i],
                        i + 1 < rank ? ":" : "");
    variable->part = part.failed ? NULL : twi_arena_strdup(&m->graph->arena, part.data);
    variable->whole = twi_arena_printf(&m->graph->arena, "%s%s", m->prefix, def->full_name);
    twi_text_free(&part);
    return variable->part && variable->whole ? TW_OK : fail_memory(m);
}

/* The graph's variables were made when it was read. The file says which node gives each its first value, and by the
 * collections it stands in what it is for. */
static tw_status read_variable(importer *m, const char *name, const Twi__VariableDef *def)
{
    char where[300];
    tw_output handle, initializer = {0};
    snprintf(where, sizeof where, "collection '%.200s'", name);
    tw_status status = find_output(m, where, def->variable_name, &handle);
    if (status == TW_OK && def->initializer_name[0])
        status = find_output(m, where, def->initializer_name, &initializer);
    for (int i = 0; i < m->graph->variables.count && status == TW_OK; i++) {
        tw_variable *variable = m->graph->variables.items[i];
        if (variable->handle.node != handle.node)
            continue;
        if (initializer.node)
            variable->initializer = (tw_output){initializer.node, -1};
        status = read_part(m, variable, def->save_slice_info_def);
        if (strcmp(name, "variables") == 0)
            break; /* it joined when it was made */
        variable->trainable |= strcmp(name, "trainable_variables") == 0;
        tw_add_to_collection(m->graph, name, variable->value);
    }
    return status;
}

static tw_status read_runner(importer *m, const char *name, const Twi__QueueRunnerDef *def)
{
    static const char where[] = "collection 'queue_runners'";
    tw_queue_runner runner = {.num_enqueues = (int)def->n_enqueue_op_name};
    tw_output *enqueues = twi_alloc_array(def->n_enqueue_op_name + 1, sizeof *enqueues);
    tw_status status = enqueues ? find_output(m, where, def->queue_name, &runner.queue) : fail_memory(m);
    if (status == TW_OK)
        status = find_output(m, where, def->close_op_name, &runner.close);
    if (status == TW_OK)
        status = find_output(m, where, def->cancel_op_name, &runner.cancel);
    for (int i = 0; i < runner.num_enqueues && status == TW_OK; i++)
        status = find_output(m, where, def->enqueue_op_name[i], &enqueues[i]);
    runner.enqueues = enqueues;
    if (status == TW_OK && twi_op_is(runner.queue.node->op, TWI_UNKNOWN))
        goto done; /* so is who takes something from it */
    if (status == TW_OK && tw_output_dtype(runner.queue) != TW_RESOURCE)
        status = twi_fail(m->error, TW_INVALID_ARGUMENT, "collection '%s': '%s' is not a queue", name, def->queue_name);
    if (status == TW_OK)
        tw_add_queue_runner(m->graph, &runner);
done:
    twi_free(enqueues);
    return status;
}

static bool holds_variables(const char *collection)
{
    static const char *const names[] = {"variables",       "trainable_variables",       "local_variables",
                                        "model_variables", "moving_average_variables", "metric_variables"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], collection) == 0)
            return true;
    return false;
}

/* One of the messages in a collection of bytes; those of other collections are passed over. */
static tw_status read_message(importer *m, const char *name, ProtobufCBinaryData bytes)
{
    twi_proto proto;
    tw_status status = TW_OK;
    bool is_variable = holds_variables(name), is_runner = strcmp(name, "queue_runners") == 0;
    twi_proto_start(&proto, bytes.len);
    Twi__VariableDef *variable =
        is_variable ? twi__variable_def__unpack(&proto.allocator, bytes.len, bytes.data) : NULL;
    Twi__QueueRunnerDef *queue =
        is_runner ? twi__queue_runner_def__unpack(&proto.allocator, bytes.len, bytes.data) : NULL;
    if (proto.out_of_memory)
        status = fail_memory(m);
    else if ((is_variable && !variable) || (is_runner && !queue))
        status = twi_fail(m->error, TW_INVALID_ARGUMENT, "collection '%s' holds %zu bytes that are no such message",
                          name, bytes.len);
    else if (variable)
        status = read_variable(m, name, variable);
    else if (queue)
        status = read_runner(m, name, queue);
    if (variable)
        twi__variable_def__free_unpacked(variable, &proto.allocator);
    if (queue)
        twi__queue_runner_def__free_unpacked(queue, &proto.allocator);
    return status;
}

static tw_status read_collection(importer *m, const Twi__MetaGraphDef__CollectionEntry *entry)
{
    const Twi__CollectionDef *def = entry->value;
    tw_status status = TW_OK;
    if (def && def->kind_case == TWI__COLLECTION_DEF__KIND_NODE_LIST)
        return read_nodes(m, entry->key, def->node_list);
    if (def && def->kind_case == TWI__COLLECTION_DEF__KIND_BYTES_LIST)
        for (size_t i = 0; i < def->bytes_list->n_value && status == TW_OK; i++)
            status = read_message(m, entry->key, def->bytes_list->value[i]);
    return status;
}

/* ---- what is to be known of it --------------------------------------------------------------------------------- */

/* The values of a signature, by name. */
typedef struct value_list {
    const char *where; /* for messages */
    tw_signature_value *items;
    int count, room;
} value_list;

/* A tensor, or a part of one: KEY/PART. */
static tw_status add_value(importer *m, value_list *list, const char *key, const char *part, const char *tensor)
{
    twi_arena *arena = &m->about->arena;
    tw_signature_value value;
    tw_status status = find_output(m, list->where, tensor, &value.output);
    if (status != TW_OK)
        return status;
    value.name = part ? twi_arena_printf(arena, "%s/%s", key, part) : twi_arena_strdup(arena, key);
    if (list->count == list->room) {
        list->room = 2 * list->room + 4;
        tw_signature_value *more = twi_arena_alloc(arena, sizeof *more * (size_t)list->room);
        if (more && list->count)
            memcpy(more, list->items, sizeof *more * (size_t)list->count);
        list->items = more;
    }
    if (!value.name || !list->items)
        return fail_memory(m);
    int at = list->count++;
    for (; at > 0 && strcmp(list->items[at - 1].name, value.name) > 0; at--)
        list->items[at] = list->items[at - 1];
    list->items[at] = value;
    return TW_OK;
}

/* A sparse tensor has its three parts, as its placeholder names them; others of several parts have these numbered. */
static tw_status add_parts(importer *m, value_list *list, const char *key, const Twi__TensorInfo *info)
{
    const Twi__TensorInfo__CooSparse *sparse = info->coo_sparse;
    const Twi__TensorInfo__CompositeTensor *several = info->composite_tensor;
    tw_status status = TW_OK;
    char part[32];
    if (sparse)
        status = add_value(m, list, key, "indices", sparse->indices_tensor_name);
    if (sparse && status == TW_OK)
        status = add_value(m, list, key, "values", sparse->values_tensor_name);
    if (sparse && status == TW_OK)
        status = add_value(m, list, key, "shape", sparse->dense_shape_tensor_name);
    for (size_t i = 0; several && i < several->n_components && status == TW_OK; i++) {
        snprintf(part, sizeof part, "%zu", i);
        if (several->components[i]->name[0])
            status = add_value(m, list, key, part, several->components[i]->name);
    }
    return status;
}

static tw_status read_values(importer *m, const char *where, Twi__SignatureDef__Entry **entries, size_t count,
                             tw_signature_value **values, int *num_values)
{
    tw_status status = TW_OK;
    value_list list = {.where = where};
    for (size_t i = 0; i < count && status == TW_OK; i++) {
        const Twi__TensorInfo *info = entries[i]->value;
        if (info && info->name[0])
            status = add_value(m, &list, entries[i]->key, NULL, info->name);
        else if (info)
            status = add_parts(m, &list, entries[i]->key, info);
    }
    *values = list.items;
    *num_values = list.count;
    return status;
}

static tw_status read_signature(importer *m, const Twi__MetaGraphDef__SignatureEntry *entry)
{
    tw_graph_about *about = &m->about->about;
    const Twi__SignatureDef *def = entry->value;
    tw_signature signature = {0};
    char where[300];
    snprintf(where, sizeof where, "signature '%.200s'", entry->key);
    signature.name = twi_arena_strdup(&m->about->arena, entry->key);
    signature.method = twi_arena_strdup(&m->about->arena, def ? def->method_name : "");
    if (!signature.name || !signature.method)
        return fail_memory(m);
    tw_status status = TW_OK;
    if (def)
        status = read_values(m, where, def->inputs, def->n_inputs, &signature.inputs, &signature.num_inputs);
    if (def && status == TW_OK)
        status = read_values(m, where, def->outputs, def->n_outputs, &signature.outputs, &signature.num_outputs);
    if (status != TW_OK)
        return status;
    if (strncmp(entry->key, "__saved_model", strlen("__saved_model")) == 0) { /* what a loader runs, not a user */
        for (int i = 0; i < signature.num_outputs && strstr(entry->key, "init") && status == TW_OK; i++)
            status = twi_about_add_initializer(m->about, signature.outputs[i].output, m->error);
        return status;
    }
    int at = about->num_signatures++;
    for (; at > 0 && strcmp(about->signatures[at - 1].name, signature.name) > 0; at--)
        about->signatures[at] = about->signatures[at - 1];
    about->signatures[at] = signature;
    return TW_OK;
}

static tw_status read_saver(importer *m, const Twi__SaverDef *def)
{
    tw_graph_about *about = &m->about->about;
    if (!def || !def->filename_tensor_name[0])
        return TW_OK;
    tw_status status = find_output(m, "the Saver", def->filename_tensor_name, &about->saver_filename);
    if (status == TW_OK && def->restore_op_name[0])
        status = find_output(m, "the Saver", def->restore_op_name, &about->saver_restore);
    if (status == TW_OK && def->save_tensor_name[0] && /* which a graph that only serves may have lost */
        find_output(m, "the Saver", def->save_tensor_name, &about->saver_save) != TW_OK)
        *m->error = (tw_error)TW_NO_ERROR;
    return status;
}

static tw_status read_info(importer *m, const Twi__MetaInfoDef *info)
{
    tw_graph_about *about = &m->about->about;
    twi_text tags = {0};
    for (size_t i = 0; info && i < info->n_tags; i++)
        twi_text_printf(&tags, "%s%s", i ? "," : "", info->tags[i]);
    about->tags = tags.failed ? NULL : twi_arena_strdup(&m->about->arena, twi_text_string(&tags));
    about->writer = twi_arena_strdup(&m->about->arena, info ? info->tensorflow_version : "");
    twi_text_free(&tags);
    return about->tags && about->writer ? TW_OK : fail_memory(m);
}

static tw_status read_asset(importer *m, const Twi__AssetFileDef *def)
{
    tw_graph_about *about = &m->about->about;
    tw_signature_value *asset = &about->assets[about->num_assets];
    if (!def->tensor_info || !def->tensor_info->name[0])
        return TW_OK;
    tw_status status = find_output(m, "a file of the model", def->tensor_info->name, &asset->output);
    for (int i = 0; i < about->num_assets && status == TW_OK; i++)
        if (about->assets[i].output.node == asset->output.node && about->assets[i].output.index == asset->output.index)
            return TW_OK; /* it is listed twice */
    asset->name = twi_arena_strdup(&m->about->arena, def->filename);
    about->num_assets++;
    return asset->name ? status : fail_memory(m);
}

static tw_status read_packed_asset(importer *m, const Twi__CollectionDef__Any *any)
{
    twi_proto proto;
    twi_proto_start(&proto, any->value.len);
    Twi__AssetFileDef *def = twi__asset_file_def__unpack(&proto.allocator, any->value.len, any->value.data);
    if (!def)
        return proto.out_of_memory ? fail_memory(m)
                                   : twi_fail(m->error, TW_INVALID_ARGUMENT,
                                              "collection 'saved_model_assets' holds %zu bytes that are no such message",
                                              any->value.len);
    tw_status status = read_asset(m, def);
    twi__asset_file_def__free_unpacked(def, &proto.allocator);
    return status;
}

/* The model's own files, which TensorFlow 1 lists in a collection. */
static tw_status read_assets(importer *m, const Twi__MetaGraphDef *def)
{
    const Twi__CollectionDef__AnyList *packed = NULL;
    for (size_t i = 0; i < def->n_collection_def && def->n_asset_file_def == 0; i++) {
        const Twi__CollectionDef *collection = def->collection_def[i]->value;
        if (strcmp(def->collection_def[i]->key, "saved_model_assets") == 0 && collection &&
            collection->kind_case == TWI__COLLECTION_DEF__KIND_ANY_LIST)
            packed = collection->any_list;
    }
    size_t count = packed ? packed->n_value : def->n_asset_file_def;
    tw_graph_about *about = &m->about->about;
    about->assets = twi_arena_alloc(&m->about->arena, sizeof *about->assets * (count + 1));
    tw_status status = about->assets ? TW_OK : fail_memory(m);
    for (size_t i = 0; i < count && status == TW_OK; i++)
        status = packed ? read_packed_asset(m, packed->value[i]) : read_asset(m, def->asset_file_def[i]);
    return status;
}

static tw_status read_about(importer *m, const Twi__MetaGraphDef *def)
{
    tw_graph_about *about = &m->about->about;
    about->signatures = twi_arena_alloc(&m->about->arena, sizeof *about->signatures * (def->n_signature_def + 1));
    if (!about->signatures)
        return fail_memory(m);
    tw_status status = read_info(m, def->meta_info_def);
    if (status == TW_OK)
        status = read_saver(m, def->saver_def);
    for (size_t i = 0; i < def->n_signature_def && status == TW_OK; i++)
        status = read_signature(m, def->signature_def[i]);
    return status == TW_OK ? read_assets(m, def) : status;
}

/* ---- all of it ------------------------------------------------------------------------------------------------- */

static tw_status read_all(importer *m, const Twi__MetaGraphDef *def, const char *prefix)
{
    const ProtobufCBinaryData *graph = &def->graph_def;
    tw_status status = graph->len ? tw_graph_import(m->graph, graph->data, graph->len, prefix, m->error)
                                  : twi_fail(m->error, TW_INVALID_ARGUMENT, "this MetaGraphDef has no graph");
    for (size_t i = 0; i < def->n_collection_def && status == TW_OK; i++)
        status = read_collection(m, def->collection_def[i]);
    if (status == TW_OK)
        status = read_about(m, def);
    if (status == TW_OK && m->graph->error.status != TW_OK)
        status = twi_fail(m->error, m->graph->error.status, "%s", m->graph->error.message);
    return status;
}

tw_status twi_meta_graph_import(tw_graph *graph, const void *bytes, size_t size, const char *prefix, twi_about *about,
                                tw_error *error)
{
    tw_status status;
    twi_proto proto;
    tw_error unasked;
    char before[300] = "";
    int first = graph->nodes.count;
    importer m = {.graph = graph, .prefix = before, .about = about, .error = error ? error : &unasked};
    if (graph->error.status != TW_OK)
        return twi_fail(error, graph->error.status, "%s", graph->error.message);
    if (size > INT_MAX)
        return twi_fail(error, TW_INVALID_ARGUMENT, "a MetaGraphDef holds at most %d bytes, but this has %zu", INT_MAX,
                        size);
    if (prefix && *prefix)
        snprintf(before, sizeof before, "%.290s/", prefix);
    twi_proto_start(&proto, size);
    Twi__MetaGraphDef *def = twi__meta_graph_def__unpack(&proto.allocator, size, bytes);
    if (proto.out_of_memory)
        TWI_LEAVE(fail_memory(&m));
    if (!def)
        TWI_LEAVE(
            twi_fail(error, TW_INVALID_ARGUMENT, "Invalid MetaGraphDef: %zu bytes that should be one are not", size));
    TWI_TRY(read_all(&m, def, prefix));
done:
    if (status != TW_OK)
        tw_graph_take_back(graph, first);
    if (def)
        twi__meta_graph_def__free_unpacked(def, &proto.allocator);
    return status;
}

tw_status tw_meta_graph_import(tw_graph *graph, const void *bytes, size_t size, const char *prefix, tw_error *error)
{
    TWI_NEED(graph, "graph", error);
    TWI_NEED(bytes, "bytes", error);
    twi_about about = {0};
    tw_status status = twi_meta_graph_import(graph, bytes, size, prefix, &about, error);
    twi_about_free(&about);
    return status;
}

/* ---- what is kept of it ---------------------------------------------------------------------------------------- */

tw_status twi_about_add_initializer(twi_about *about, tw_output output, tw_error *error)
{
    tw_output *larger = twi_arena_alloc(&about->arena, sizeof *larger * (size_t)(about->about.num_initializers + 1));
    if (!larger)
        return twi_fail_memory(error, "importing a graph");
    if (about->about.num_initializers)
        memcpy(larger, about->about.initializers, sizeof *larger * (size_t)about->about.num_initializers);
    larger[about->about.num_initializers++] = (tw_output){output.node, -1};
    about->about.initializers = larger;
    return TW_OK;
}

void twi_about_free(twi_about *about)
{
    twi_arena_free(&about->arena);
}
