/* meta_graph.c - a MetaGraphDef message: a graph, and its collections as far as Tower has a use for them. */
#include "base/memory.h"
#include "base/status.h"
#include "graph/graph.h"
#include "format/proto/meta_graph.pb-c.h"
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
    tw_error *error;
} importer;

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* "node" or "node:1" as an output of the graph; a node that has outputs is meant as its first. */
static tw_status find_output(const importer *m, const char *collection, const char *text, tw_output *output)
{
    char name[600];
    const char *colon = strrchr(text, ':');
    int length = colon ? (int)(colon - text) : (int)strlen(text);
    snprintf(name, sizeof name, "%s%.*s", m->prefix, length, text);
    tw_node *node = tw_graph_find(m->graph, name);
    long index = colon ? strtol(colon + 1, NULL, 10) : 0;
    bool unknown = node && twi_op_is(node->op, TWI_UNKNOWN); /* fails when it is run */
    if (!node || index < 0 || (colon && index >= node->num_outputs && !unknown))
        return twi_fail(m->error, TW_INVALID_ARGUMENT, "collection '%s' names '%s', which is not in the graph",
                        collection, text);
    *output = unknown ? (tw_output){node, -1} : tw_node_output(node, (int)index);
    return TW_OK;
}

static tw_status read_nodes(importer *m, const char *name, const Twi__CollectionDef__NodeList *list)
{
    for (size_t i = 0; i < list->n_value; i++) {
        tw_output output;
        tw_status status = find_output(m, name, list->value[i], &output);
        if (status != TW_OK)
            return status;
        tw_add_to_collection(m->graph, name, output);
    }
    return TW_OK;
}

static tw_status fail_memory(importer *m)
{
    return twi_fail_memory(m->error, "importing a graph");
}

/* The graph's variables were made when it was read; those that stand here are trainable. */
static tw_status read_trainable(importer *m, const char *name, const Twi__VariableDef *def)
{
    tw_output handle;
    tw_status status = find_output(m, name, def->variable_name, &handle);
    for (int i = 0; i < m->graph->variables.count && status == TW_OK; i++) {
        tw_variable *variable = m->graph->variables.items[i];
        if (variable->handle.node != handle.node || variable->trainable)
            continue;
        variable->trainable = true;
        tw_add_to_collection(m->graph, name, variable->value);
    }
    return status;
}

static tw_status read_runner(importer *m, const char *name, const Twi__QueueRunnerDef *def)
{
    tw_queue_runner runner = {.num_enqueues = (int)def->n_enqueue_op_name};
    tw_output *enqueues = twi_alloc_array(def->n_enqueue_op_name + 1, sizeof *enqueues);
    tw_status status = enqueues ? find_output(m, name, def->queue_name, &runner.queue) : fail_memory(m);
    if (status == TW_OK)
        status = find_output(m, name, def->close_op_name, &runner.close);
    if (status == TW_OK)
        status = find_output(m, name, def->cancel_op_name, &runner.cancel);
    for (int i = 0; i < runner.num_enqueues && status == TW_OK; i++)
        status = find_output(m, name, def->enqueue_op_name[i], &enqueues[i]);
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

/* One of the messages in a collection of bytes; those of other collections are passed over. */
static tw_status read_message(importer *m, const char *name, ProtobufCBinaryData bytes)
{
    twi_proto proto;
    tw_status status = TW_OK;
    bool trainable = strcmp(name, "trainable_variables") == 0, runner = strcmp(name, "queue_runners") == 0;
    twi_proto_start(&proto, bytes.len);
    Twi__VariableDef *variable = trainable ? twi__variable_def__unpack(&proto.allocator, bytes.len, bytes.data) : NULL;
    Twi__QueueRunnerDef *queue = runner ? twi__queue_runner_def__unpack(&proto.allocator, bytes.len, bytes.data) : NULL;
    if (proto.out_of_memory)
        status = fail_memory(m);
    else if ((trainable && !variable) || (runner && !queue))
        status = twi_fail(m->error, TW_INVALID_ARGUMENT, "collection '%s' holds %zu bytes that are no such message",
                          name, bytes.len);
    else if (variable)
        status = read_trainable(m, name, variable);
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

static tw_status read_all(importer *m, const Twi__MetaGraphDef *def, const char *prefix)
{
    tw_status status = tw_graph_import(m->graph, def->graph_def.data, def->graph_def.len, prefix, m->error);
    for (size_t i = 0; i < def->n_collection_def && status == TW_OK; i++)
        status = read_collection(m, def->collection_def[i]);
    if (status == TW_OK && m->graph->error.status != TW_OK)
        status = twi_fail(m->error, m->graph->error.status, "%s", m->graph->error.message);
    return status;
}

tw_status tw_meta_graph_import(tw_graph *graph, const void *bytes, size_t size, const char *prefix, tw_error *error)
{
    TWI_NEED(bytes, "bytes", error);
    tw_status status;
    twi_proto proto;
    tw_error unasked;
    char before[300] = "";
    importer m = {.prefix = before, .error = error ? error : &unasked};
    if (size > INT_MAX)
        return twi_fail(error, TW_INVALID_ARGUMENT, "a MetaGraphDef holds at most %d bytes, but this has %zu", INT_MAX,
                        size);
    if (prefix && *prefix)
        snprintf(before, sizeof before, "%.290s/", prefix);
    twi_proto_start(&proto, size);
    Twi__MetaGraphDef *def = twi__meta_graph_def__unpack(&proto.allocator, size, bytes);
    tw_graph *trial = tw_graph_create(); /* all that can be wrong shows here */
    if (!trial || proto.out_of_memory)
        TWI_TRY(fail_memory(&m));
    if (!def)
        TWI_TRY(twi_fail(error, TW_INVALID_ARGUMENT, "Invalid MetaGraphDef: %zu bytes that should be one are not",
                         size));
    m.graph = trial;
    TWI_TRY(read_all(&m, def, prefix));
    m.graph = graph;
    TWI_TRY(read_all(&m, def, prefix));
done:
    tw_graph_destroy(trial);
    if (def)
        twi__meta_graph_def__free_unpacked(def, &proto.allocator);
    return status;
}
