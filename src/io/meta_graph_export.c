/* meta_graph_export.c - a graph as a MetaGraphDef message, and as a SavedModel.
 *
 * A Saver is nodes of a graph, and the user's is not changed: they are added to a copy, which is the graph as an import
 * would read it. They are named and wired as TensorFlow's Saver does it: feeding save/Const with a path and fetching
 * save/control_dependency saves, running save/restore_all restores. */
#include "base/array.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/status.h"
#include "base/text.h"
#include "format/bundle.h"
#include "format/proto/meta_graph.pb-c.h"
#include "format/tensor_proto.h"
#include "graph/graph.h"
#include "ops/build.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <tower/io.h>
#include <tower/ops.h>

#define VARIABLES "variables"
#define RUNNERS "queue_runners"

typedef struct exporter {
    const tw_graph *graph;
    tw_meta_graph_options options;
    tw_graph *copy;                  /* with a Saver */
    TWI_ARRAY(tw_variable *) saved;  /* the user's that are no copies of others */
    const char *filename, *save, *restore;
    twi_arena arena;
    tw_error *error;
} exporter;

static tw_status fail_memory(const exporter *x)
{
    return twi_fail_memory(x->error, "exporting a graph");
}

/* ---- the Saver --------------------------------------------------------------------------------------------------- */

static tw_status make_copy(exporter *x)
{
    void *bytes;
    size_t size;
    tw_status status = tw_graph_export(x->graph, &bytes, &size, x->error);
    if (status != TW_OK)
        return status;
    x->copy = tw_graph_create();
    status = x->copy ? tw_graph_import(x->copy, bytes, size, NULL, x->error) : fail_memory(x);
    tw_free(bytes);
    return status;
}

static tw_status find_saved(exporter *x)
{
    for (int i = 0; i < x->graph->variables.count; i++)
        if (!x->graph->variables.items[i]->copy_of && !twi_push(&x->saved, x->graph->variables.items[i]))
            return fail_memory(x);
    return TW_OK;
}

/* An output of the user's graph in the copy. */
static tw_output copied(const exporter *x, tw_output output)
{
    return (tw_output){output.node ? tw_graph_find(x->copy, output.node->name) : NULL, output.index};
}

static tw_output texts(tw_graph *g, const char *name, const tw_string *strings, int count)
{
    return twi_constant_of(tw_name(g, "%s", name), tw_tensor_from(TW_STRING, TW_SHAPE(count), strings));
}

static tw_string string_of(const char *text)
{
    return (tw_string){(char *)(text ? text : ""), text ? strlen(text) : 0};
}

/* Names and parts, as inputs of the node that is made next in the scope `op`. */
static bool add_names(const exporter *x, const char *op, tw_output *names, tw_output *parts)
{
    int count = x->saved.count;
    tw_string *strings = twi_alloc_array(2 * (size_t)count + 1, sizeof *strings);
    char name[64];
    if (!strings)
        return false;
    for (int i = 0; i < count; i++) {
        const tw_variable *variable = x->saved.items[i];
        strings[i] = string_of(variable->whole ? variable->whole : variable->name);
        strings[count + i] = string_of(variable->part);
    }
    snprintf(name, sizeof name, "%s/tensor_names", op);
    *names = texts(x->copy, name, strings, count);
    snprintf(name, sizeof name, "%s/shape_and_slices", op);
    *parts = texts(x->copy, name, strings + count, count);
    twi_free(strings);
    return true;
}

static tw_node *add(tw_graph *g, const char *op, const char *name, const tw_output *inputs, int count,
                    const tw_attr *attrs, int num_attrs)
{
    return tw_add_node(g, op, name, inputs, count, attrs, num_attrs);
}

/* SaveV2 of all variables, and the path behind it. */
static bool add_save(exporter *x, tw_output path)
{
    tw_graph *g = x->copy;
    int count = x->saved.count;
    tw_output *inputs = twi_alloc_array((size_t)count + 4, sizeof *inputs);
    if (!inputs || !add_names(x, "SaveV2", &inputs[1], &inputs[2])) {
        twi_free(inputs);
        return false;
    }
    inputs[0] = path;
    for (int i = 0; i < count; i++) {
        const tw_variable *variable = x->saved.items[i];
        tw_output handle = copied(x, variable->handle);
        inputs[3 + i] = tw_output_dtype(handle) == TW_RESOURCE ? tw_variable_read(g, &(tw_variable){.handle = handle, .dtype = variable->dtype}) : handle;
    }
    tw_node *save = add(g, "SaveV2", "SaveV2", inputs, 3 + count, NULL, 0);
    tw_node *after = add(g, "Identity", "control_dependency", (tw_output[]){path, {save, -1}}, 2, NULL, 0);
    x->save = after ? after->name : NULL;
    twi_free(inputs);
    return true;
}

/* RestoreV2, an assignment for each variable, and one node for all of them. */
static bool add_restore(exporter *x, tw_output path)
{
    tw_graph *g = x->copy;
    int count = x->saved.count;
    tw_output inputs[3] = {path};
    tw_dtype *types = twi_alloc_array((size_t)count + 1, sizeof *types);
    tw_output *assigns = twi_alloc_array((size_t)count + 1, sizeof *assigns);
    bool fits = types && assigns && add_names(x, "RestoreV2", &inputs[1], &inputs[2]);
    for (int i = 0; i < count && fits; i++)
        types[i] = x->saved.items[i]->dtype;
    tw_attr attr = tw_attr_types("dtypes", types, count);
    tw_node *restore = fits ? add(g, "RestoreV2", "RestoreV2", inputs, 3, &attr, 1) : NULL;
    for (int i = 0; i < count && restore; i++) {
        tw_output handle = copied(x, x->saved.items[i]->handle);
        bool is_handle = tw_output_dtype(handle) == TW_RESOURCE;
        tw_enter_colocation(g, handle);
        tw_output value = {restore, i};
        if (is_handle)
            value = tw_node_output(add(g, "Identity", NULL, &value, 1, NULL, 0), 0);
        assigns[i] = tw_node_output(add(g, is_handle ? "AssignVariableOp" : "Assign", NULL, (tw_output[]){handle, value}, 2,
                                        NULL, 0), -1);
        tw_leave_colocation(g);
        assigns[i].index = -1;
    }
    tw_node *all = restore ? add(g, "NoOp", "restore_all", assigns, count, NULL, 0) : NULL;
    x->restore = all ? all->name : NULL;
    twi_free(types);
    twi_free(assigns);
    return fits;
}

static tw_status add_saver(exporter *x)
{
    tw_graph *g = x->copy;
    bool fits = true;
    if (x->saved.count == 0)
        return TW_OK;
    TW_NAME_SCOPE(g, "save")
    TW_DEVICE(g, "/device:CPU:0") {
        tw_output path = twi_constant_of(tw_name(g, "filename/input"), tw_tensor_string("model", strlen("model")));
        tw_attr shape = tw_attr_shape("shape", TW_SCALAR);
        path = tw_node_output(add(g, "PlaceholderWithDefault", "filename", &path, 1, &shape, 1), 0);
        path = tw_node_output(add(g, "PlaceholderWithDefault", "Const", &path, 1, &shape, 1), 0);
        x->filename = path.node ? path.node->name : NULL;
        fits = add_save(x, path) && add_restore(x, path);
    }
    if (!fits)
        return fail_memory(x);
    return x->copy->error.status == TW_OK ? TW_OK
                                          : twi_fail(x->error, x->copy->error.status, "%s", x->copy->error.message);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* NULL when out of memory, as all below. */
static char *text_of(exporter *x, tw_output output)
{
    if (output.index < 0)
        return (char *)output.node->name;
    return twi_arena_printf(&x->arena, "%s:%d", output.node->name, output.index);
}

static Twi__TensorInfo *tensor_info(exporter *x, tw_output output)
{
    Twi__TensorInfo *info = twi_arena_alloc(&x->arena, sizeof *info);
    if (!info)
        return NULL;
    twi__tensor_info__init(info);
    info->name = text_of(x, output);
    info->dtype = (int32_t)tw_output_dtype(output);
    info->tensor_shape = twi_shape_to_proto(&x->arena, tw_output_shape(output));
    return info->name && info->tensor_shape ? info : NULL;
}

static Twi__SignatureDef__Entry **signature_entries(exporter *x, const tw_signature_value *values, int count)
{
    Twi__SignatureDef__Entry **list = twi_arena_alloc(&x->arena, sizeof *list * (size_t)(count + 1));
    for (int i = 0; i < count && list; i++) {
        list[i] = twi_arena_alloc(&x->arena, sizeof *list[i]);
        if (!list[i])
            return NULL;
        twi__signature_def__entry__init(list[i]);
        list[i]->key = (char *)values[i].name;
        if (!(list[i]->value = tensor_info(x, values[i].output)))
            return NULL;
    }
    return list;
}

static Twi__MetaGraphDef__SignatureEntry *signature_entry(exporter *x, const tw_signature *signature)
{
    Twi__MetaGraphDef__SignatureEntry *entry = twi_arena_alloc(&x->arena, sizeof *entry);
    Twi__SignatureDef *def = twi_arena_alloc(&x->arena, sizeof *def);
    if (!entry || !def)
        return NULL;
    twi__meta_graph_def__signature_entry__init(entry);
    twi__signature_def__init(def);
    entry->key = (char *)signature->name;
    entry->value = def;
    def->method_name = (char *)(signature->method ? signature->method : "tensorflow/serving/predict");
    def->n_inputs = (size_t)signature->num_inputs;
    def->inputs = signature_entries(x, signature->inputs, signature->num_inputs);
    def->n_outputs = (size_t)signature->num_outputs;
    def->outputs = signature_entries(x, signature->outputs, signature->num_outputs);
    return def->inputs && def->outputs ? entry : NULL;
}

/* A packed message of a collection. */
static bool pack(exporter *x, const ProtobufCMessage *message, ProtobufCBinaryData *bytes)
{
    bytes->len = protobuf_c_message_get_packed_size(message);
    bytes->data = twi_arena_alloc(&x->arena, bytes->len + 1);
    if (bytes->data)
        protobuf_c_message_pack(message, bytes->data);
    return bytes->data != NULL;
}

static bool variable_bytes(exporter *x, const tw_variable *variable, ProtobufCBinaryData *bytes)
{
    Twi__VariableDef def = TWI__VARIABLE_DEF__INIT;
    tw_output first = tw_variable_initial_value(variable);
    def.variable_name = text_of(x, variable->handle);
    def.initializer_name = variable->initializer.node ? (char *)variable->initializer.node->name : "";
    def.initial_value_name = first.node ? text_of(x, first) : "";
    def.snapshot_name = text_of(x, variable->value);
    def.is_resource = tw_output_dtype(variable->handle) == TW_RESOURCE;
    def.trainable = variable->trainable;
    return def.variable_name && def.initial_value_name && def.snapshot_name && pack(x, &def.base, bytes);
}

/* The collection's entry, of which the caller fills in the list. */
static Twi__MetaGraphDef__CollectionEntry *collection_entry(exporter *x, const char *name)
{
    Twi__MetaGraphDef__CollectionEntry *entry = twi_arena_alloc(&x->arena, sizeof *entry);
    Twi__CollectionDef *def = twi_arena_alloc(&x->arena, sizeof *def);
    if (!entry || !def)
        return NULL;
    twi__meta_graph_def__collection_entry__init(entry);
    twi__collection_def__init(def);
    entry->key = (char *)name;
    entry->value = def;
    return entry;
}

static bool make_nodes(exporter *x, const twi_collection *collection, Twi__CollectionDef *def)
{
    Twi__CollectionDef__NodeList *list = twi_arena_alloc(&x->arena, sizeof *list);
    if (!list)
        return false;
    twi__collection_def__node_list__init(list);
    list->value = twi_arena_alloc(&x->arena, sizeof *list->value * (size_t)(collection->members.count + 1));
    for (int i = 0; i < collection->members.count && list->value; i++)
        if (!(list->value[list->n_value++] = text_of(x, collection->members.items[i])))
            return false;
    def->kind_case = TWI__COLLECTION_DEF__KIND_NODE_LIST;
    def->node_list = list;
    return list->value != NULL;
}

static Twi__CollectionDef__BytesList *bytes_list(exporter *x, Twi__CollectionDef *def, int most)
{
    Twi__CollectionDef__BytesList *list = twi_arena_alloc(&x->arena, sizeof *list);
    if (!list)
        return NULL;
    twi__collection_def__bytes_list__init(list);
    list->value = twi_arena_alloc(&x->arena, sizeof *list->value * (size_t)(most + 1));
    def->kind_case = TWI__COLLECTION_DEF__KIND_BYTES_LIST;
    def->bytes_list = list;
    return list->value ? list : NULL;
}

/* The variable whose value an output is. */
static const tw_variable *variable_of(const tw_graph *graph, tw_output value)
{
    for (int i = 0; i < graph->variables.count; i++)
        if (graph->variables.items[i]->value.node == value.node)
            return graph->variables.items[i];
    return NULL;
}

static bool make_variables(exporter *x, const twi_collection *collection, Twi__CollectionDef *def)
{
    Twi__CollectionDef__BytesList *list = bytes_list(x, def, collection->members.count);
    for (int i = 0; i < collection->members.count && list; i++) {
        const tw_variable *variable = variable_of(x->graph, collection->members.items[i]);
        if (variable && !variable->copy_of && !variable_bytes(x, variable, &list->value[list->n_value++]))
            return false;
    }
    return list != NULL;
}

/* A queue, what closes and cancels it, then what fills it, up to the next queue. */
static bool make_runners(exporter *x, const twi_collection *collection, Twi__CollectionDef *def)
{
    int count = collection->members.count;
    const tw_output *members = collection->members.items;
    Twi__CollectionDef__BytesList *list = bytes_list(x, def, count);
    for (int i = 0; list && i + 2 < count;) {
        Twi__QueueRunnerDef runner = TWI__QUEUE_RUNNER_DEF__INIT;
        runner.queue_name = (char *)members[i].node->name;
        runner.close_op_name = (char *)members[i + 1].node->name;
        runner.cancel_op_name = (char *)members[i + 2].node->name;
        runner.enqueue_op_name = twi_arena_alloc(&x->arena, sizeof *runner.enqueue_op_name * (size_t)count);
        if (!runner.enqueue_op_name)
            return false;
        for (i += 3; i < count && members[i].index < 0; i++)
            runner.enqueue_op_name[runner.n_enqueue_op_name++] = (char *)members[i].node->name;
        if (!pack(x, &runner.base, &list->value[list->n_value++]))
            return false;
    }
    return list != NULL;
}

/* Whether all of its members are variables' values: TensorFlow wants those as messages. */
static bool holds_variables(const tw_graph *graph, const twi_collection *collection)
{
    for (int i = 0; i < collection->members.count; i++)
        if (!variable_of(graph, collection->members.items[i]))
            return false;
    return strstr(collection->name, VARIABLES) != NULL;
}

static bool make_collections(exporter *x, Twi__MetaGraphDef *def)
{
    int count = x->graph->collections.count;
    def->collection_def = twi_arena_alloc(&x->arena, sizeof *def->collection_def * (size_t)(count + 1));
    for (int i = 0; i < count && def->collection_def; i++) {
        const twi_collection *collection = x->graph->collections.items[i];
        Twi__MetaGraphDef__CollectionEntry *entry = collection_entry(x, collection->name);
        if (!entry)
            return false;
        bool good = strcmp(collection->name, RUNNERS) == 0      ? make_runners(x, collection, entry->value)
                    : holds_variables(x->graph, collection) ? make_variables(x, collection, entry->value)
                                                            : make_nodes(x, collection, entry->value);
        if (!good)
            return false;
        def->collection_def[def->n_collection_def++] = entry;
    }
    return def->collection_def != NULL;
}

static bool make_info(exporter *x, Twi__MetaGraphDef *def)
{
    Twi__MetaInfoDef *info = twi_arena_alloc(&x->arena, sizeof *info);
    char *tags = twi_arena_strdup(&x->arena, x->options.tags ? x->options.tags : "");
    if (!info || !tags)
        return false;
    twi__meta_info_def__init(info);
    info->tags = twi_arena_alloc(&x->arena, sizeof *info->tags * (strlen(tags) + 1));
    for (char *tag = strtok_r(tags, ",", &tags); tag && info->tags; tag = strtok_r(NULL, ",", &tags))
        info->tags[info->n_tags++] = tag;
    def->meta_info_def = info;
    return info->tags != NULL;
}

static bool make_saver(exporter *x, Twi__MetaGraphDef *def)
{
    Twi__SaverDef *saver = twi_arena_alloc(&x->arena, sizeof *saver);
    if (!x->filename)
        return true;
    if (!saver)
        return false;
    twi__saver_def__init(saver);
    saver->filename_tensor_name = twi_arena_printf(&x->arena, "%s:0", x->filename);
    saver->save_tensor_name = twi_arena_printf(&x->arena, "%s:0", x->save);
    saver->restore_op_name = (char *)x->restore;
    saver->max_to_keep = 5;
    saver->version = 2;
    def->saver_def = saver;
    return saver->filename_tensor_name && saver->save_tensor_name;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static tw_status make_def(exporter *x, Twi__MetaGraphDef *def)
{
    size_t size;
    void *bytes;
    tw_status status = tw_graph_export(x->copy, &bytes, &size, x->error);
    if (status != TW_OK)
        return status;
    def->graph_def = (ProtobufCBinaryData){size, twi_arena_copy(&x->arena, bytes, size)};
    tw_free(bytes);
    def->signature_def =
        twi_arena_alloc(&x->arena, sizeof *def->signature_def * (size_t)(x->options.num_signatures + 1));
    if (!def->graph_def.data || !def->signature_def || !make_info(x, def) || !make_saver(x, def) ||
        !make_collections(x, def))
        return fail_memory(x);
    for (int i = 0; i < x->options.num_signatures; i++)
        if (!(def->signature_def[def->n_signature_def++] = signature_entry(x, &x->options.signatures[i])))
            return fail_memory(x);
    return TW_OK;
}

static tw_status pack_def(exporter *x, const ProtobufCMessage *def, void **bytes, size_t *size)
{
    size_t needed = protobuf_c_message_get_packed_size(def);
    if (needed > INT_MAX)
        return twi_fail(x->error, TW_INVALID_ARGUMENT, "the graph takes %zu bytes, but a message holds at most %d",
                        needed, INT_MAX);
    *bytes = twi_resize(NULL, needed + 1);
    if (!*bytes)
        return fail_memory(x);
    *size = protobuf_c_message_pack(def, *bytes);
    return TW_OK;
}

/* As a MetaGraphDef, or as a SavedModel with one. */
static tw_status export_as(const tw_graph *graph, const tw_meta_graph_options *options, bool saved_model, void **bytes,
                           size_t *size, tw_error *error)
{
    tw_error unasked;
    exporter x = {.graph = graph, .error = error ? error : &unasked};
    Twi__MetaGraphDef def = TWI__META_GRAPH_DEF__INIT;
    Twi__SavedModel model = TWI__SAVED_MODEL__INIT;
    ProtobufCBinaryData packed;
    tw_status status;
    TWI_TRY(twi_sized(&x.options, options, TWI_SIZE(tw_meta_graph_options, num_signatures), error));
    if (saved_model && !x.options.tags)
        x.options.tags = "serve";
    TWI_TRY(make_copy(&x));
    TWI_TRY(find_saved(&x));
    TWI_TRY(add_saver(&x));
    TWI_TRY(make_def(&x, &def));
    if (saved_model) {
        if (!pack(&x, &def.base, &packed))
            TWI_LEAVE(fail_memory(&x));
        model.saved_model_schema_version = 1;
        model.n_meta_graphs = 1;
        model.meta_graphs = &packed;
    }
    status = pack_def(&x, saved_model ? &model.base : &def.base, bytes, size);
done:
    tw_graph_destroy(x.copy);
    twi_array_free(&x.saved);
    twi_arena_free(&x.arena);
    return status;
}

tw_status tw_meta_graph_export(const tw_graph *graph, const tw_meta_graph_options *options, void **bytes, size_t *size,
                               tw_error *error)
{
    TWI_NEED(graph, "graph", error);
    TWI_NEED(bytes, "bytes", error);
    TWI_NEED(size, "size", error);
    return export_as(graph, options, false, bytes, size, error);
}

/* ---- SavedModels ------------------------------------------------------------------------------------------------- */

static tw_status save_values(tw_session *session, const char *prefix, tw_error *error)
{
    tw_graph *graph = tw_session_graph(session);
    tw_status status = TW_OK;
    int count = 0;
    tw_named_tensor *tensors = twi_alloc_array((size_t)graph->variables.count + 1, sizeof *tensors);
    if (!tensors)
        return twi_fail_memory(error, "saving a model");
    for (int i = 0; i < graph->variables.count && status == TW_OK; i++) {
        const tw_variable *variable = graph->variables.items[i];
        tw_tensor *value = NULL;
        if (variable->copy_of)
            continue;
        status = tw_session_get_variable(session, variable, &value, error);
        tensors[count++] = (tw_named_tensor){variable->whole ? variable->whole : variable->name, value, variable->part};
    }
    if (status == TW_OK && count)
        status = twi_bundle_save(prefix, tensors, count, error);
    for (int i = 0; i < count; i++)
        tw_tensor_release((tw_tensor *)tensors[i].tensor);
    twi_free(tensors);
    return status;
}

tw_status tw_saved_model_save(tw_session *session, const char *directory, const tw_meta_graph_options *options,
                              tw_error *error)
{
    TWI_NEED(session, "session", error);
    TWI_NEED(directory, "directory", error);
    void *bytes = NULL;
    size_t size;
    tw_status status;
    twi_text path = {0}, prefix = {0};
    twi_text_printf(&path, "%s/saved_model.pb", directory);
    twi_text_printf(&prefix, "%s/variables/variables", directory);
    if (path.failed || prefix.failed)
        TWI_LEAVE(twi_fail_memory(error, "saving a model"));
    if (twi_file_exists(path.data))
        TWI_LEAVE(twi_fail(error, TW_ALREADY_EXISTS, "there is a SavedModel in '%s'", directory));
    TWI_TRY(export_as(tw_session_graph(session), options, true, &bytes, &size, error));
    TWI_TRY(twi_make_directories(directory, error));
    TWI_TRY(save_values(session, prefix.data, error));
    status = twi_file_replace(path.data, bytes, size, error); /* last: with it the model is there */
done:
    tw_free(bytes);
    twi_text_free(&path);
    twi_text_free(&prefix);
    return status;
}
