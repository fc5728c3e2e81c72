/* graph_import.c - a GraphDef message as nodes of a graph.
 *
 * A node whose op is not registered, that asks of it what it cannot do here (a type, a rank, an attribute), or that
 * takes something from such a node, becomes an _Unknown node: it has its name, remembers what the file says of it, and
 * fails when a run needs it. So what nobody needs may be anything.
 *
 * What the file's nodes take of the graph that they are added to, instead of something of the file, are items too,
 * which stand behind those of the file and are there already (`given`).
 *
 * The message may be hostile. It is sorted (files may have any order) and built into the user's graph; after an error
 * what was built is taken back, and the graph is as it was. */
#include "io/import/import.h"

#include "base/memory.h"
#include "base/sized.h"
#include "format/protobuf.h"

#include <limits.h>

/* A file of few bytes can ask for much memory: a constant whose single value is repeated. This much is granted beyond
 * what is proportional to its size. */
#define SPARE_CONSTANT_BYTES ((size_t)64 << 20)

static tw_status import(twi_importer *m)
{
    tw_status status;
    TWI_TRY(twi_import_check_versions(m));
    TWI_TRY(twi_functions_inline(&m->arena, m->def, &m->functions, m->error));
    TWI_TRY(twi_import_collect_nodes(m));
    TWI_TRY(twi_import_collect_given(m));
    TWI_TRY(twi_import_name_items(m));
    TWI_TRY(twi_import_read_nodes(m));
    TWI_TRY(twi_import_sort(m));
    TWI_TRY(twi_import_tell_data_sets(m)); /* who made what comes to one: from here on nothing goes round */
    TWI_TRY(twi_import_build(m));
done:
    return status;
}

static tw_status check_options(const tw_import_options *o, tw_error *error)
{
    const char *missing = o->num_inputs > 0 && !o->inputs                ? "inputs"
                          : o->num_after > 0 && !o->after                ? "after"
                          : o->num_names > 0 && (!o->names || !o->nodes) ? "names"
                                                                         : NULL;
    if (missing)
        return twi_fail(error, TW_INVALID_ARGUMENT, "tw_graph_import_with: %s is NULL", missing);
    if (o->num_inputs < 0 || o->num_after < 0 || o->num_inputs > INT_MAX / 4 || o->num_after > INT_MAX / 4)
        return twi_fail(error, TW_INVALID_ARGUMENT,
                        "tw_graph_import_with: there cannot be %d inputs and %d to wait for", o->num_inputs,
                        o->num_after);
    return TW_OK;
}

tw_status tw_graph_import_with(tw_graph *graph, const void *bytes, size_t size, const tw_import_options *options,
                               tw_error *error)
{
    TWI_NEED(graph, "graph", error);
    TWI_NEED(bytes, "bytes", error);
    tw_status status;
    twi_proto proto;
    tw_error unasked;
    tw_import_options known;
    Twi__GraphDef *def = NULL;
    twi_importer m = {.spare_bytes = SPARE_CONSTANT_BYTES,
                      .options = &known,
                      .graph = graph,
                      .prefix = "",
                      .error = error ? error : &unasked};
    TWI_TRY(twi_sized(&known, options, TWI_SIZE(tw_import_options, num_names), error));
    TWI_TRY(check_options(&known, error));
    m.device = known.device ? known.device : "";
    if (graph->error.status != TW_OK)
        return twi_fail(error, graph->error.status, "%s", graph->error.message);
    if (size > INT_MAX)
        return twi_fail(error, TW_INVALID_ARGUMENT, "a GraphDef holds at most %d bytes, but this has %zu", INT_MAX,
                        size);
    twi_proto_start(&proto, size);
    def = twi__graph_def__unpack(&proto.allocator, size, bytes);
    m.def = def;
    if (!def)
        TWI_TRY(proto.out_of_memory ? twi_import_fail_memory(&m)
                                    : twi_fail(error, TW_INVALID_ARGUMENT,
                                               "Invalid GraphDef: %zu bytes that should be one are not", size));
    if (known.prefix && *known.prefix) {
        m.prefix = twi_arena_printf(&m.arena, "%s/", known.prefix);
        if (!m.prefix)
            TWI_LEAVE(twi_import_fail_memory(&m));
    }
    TWI_TRY(import(&m));
done:
    for (int i = 0; i < m.tensors.count; i++)
        tw_tensor_release(m.tensors.items[i]);
    twi_array_free(&m.tensors);
    twi_map_free(&m.places);
    twi_map_free(&m.inputs);
    twi_map_free(&m.outside);
    twi_map_free(&m.new_names);
    twi_frames_free(&m.frames);
    twi_functions_free(m.functions);
    twi_array_free(&m.members);
    twi_arena_free(&m.arena);
    if (def)
        twi__graph_def__free_unpacked(def, &proto.allocator);
    return status;
}

tw_status tw_graph_import(tw_graph *graph, const void *bytes, size_t size, const char *prefix, tw_error *error)
{
    TWI_NEED(graph, "graph", error);
    TWI_NEED(bytes, "bytes", error);
    return tw_graph_import_with(graph, bytes, size, &(tw_import_options){.prefix = prefix}, error);
}
