/* graph_file.c - a graph in whatever file it comes: finds out what a file is and hands it to the reader of that.
 *
 * A file is known by what is in it, never by its name. An event file's records have checksums; text begins with the
 * name of a field. The messages tell themselves apart by their first field: a SavedModel's is a number; the first of a
 * GraphDef is a node, which has a name and an op in printable characters; everything else is a MetaGraphDef. */
#include "base/crc32c.h"
#include "base/file.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/status.h"
#include "base/text.h"
#include "base/tfrecord.h"
#include "format/proto/event.pb-c.h"
#include "format/proto/graph.pb-c.h"
#include "format/proto/text.pb-c.h"
#include "format/protobuf.h"
#include "format/text_format.h"
#include "io/meta_graph.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef enum file_kind { GRAPH_DEF, META_GRAPH_DEF, SAVED_MODEL, EVENT_FILE } file_kind; /* ORDER FILE KIND */

static const char *const kind_names[] = {"GraphDef", "MetaGraphDef", "SavedModel", "event file"};

typedef struct loader {
    tw_graph *graph;
    const char *path;
    tw_load_options options;
    twi_about *about;
    tw_error *error;
} loader;

/* ---- what a file is ---------------------------------------------------------------------------------------------- */

/* The block of field `number` if that comes next, in *block[*size]. */
static bool take_block(const char **at, const char *end, int number, const char **block, size_t *size)
{
    uint64_t length;
    if (*at >= end || **at != (number << 3 | 2))
        return false;
    ++*at;
    if (!twi_get_varint(at, end, &length) || length > (uint64_t)(end - *at))
        return false;
    *block = *at;
    *size = (size_t)length;
    *at += length;
    return true;
}

static bool is_printable(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    return size > 0;
}

/* Whether the first field is a node: of all other messages that is called 1 none begins with a text and the name of an
 * op. The node's own name may be anything, and is looked at later. */
static bool begins_with_node(const char *bytes, size_t size)
{
    const char *end = bytes + size, *node, *name;
    size_t node_size, name_size;
    if (!take_block(&bytes, end, 1, &node, &node_size))
        return size == 0 || bytes[0] == (3 << 3) || (bytes[0] == (4 << 3 | 2) && size > 2 && bytes[2] == (1 << 3));
    end = node + node_size;
    return take_block(&node, end, 1, &name, &name_size) &&
           take_block(&node, end, 2, &name, &name_size) && is_printable(name, name_size);
}

static bool is_record(const char *bytes, size_t size)
{
    return size >= 16 && twi_crc32c_mask(twi_crc32c(0, bytes, 8)) == twi_get32(bytes + 8);
}

static file_kind kind_of(const char *bytes, size_t size)
{
    if (is_record(bytes, size))
        return EVENT_FILE;
    if (size && bytes[0] == (1 << 3))
        return SAVED_MODEL;
    return begins_with_node(bytes, size) ? GRAPH_DEF : META_GRAPH_DEF;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* By the name that a text begins with. NULL: it is none. */
static const ProtobufCMessageDescriptor *kind_of_text(const char *bytes, size_t size)
{
    static const ProtobufCMessageDescriptor *const kinds[] = {
        &twi_text__graph_def__descriptor, &twi_text__meta_graph_def__descriptor, &twi_text__saved_model__descriptor};
    char word[32];
    twi_text_first_field(bytes, size, word, sizeof word);
    for (size_t i = 0; *word && i < sizeof kinds / sizeof *kinds; i++)
        if (protobuf_c_message_descriptor_get_field_by_name(kinds[i], word))
            return kinds[i];
    return NULL;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static tw_status fail_memory(const loader *l)
{
    return twi_fail_memory(l->error, "reading a graph");
}

static tw_status load_bytes(loader *l, file_kind kind, const char *bytes, size_t size);

static tw_status load_graph_def(loader *l, const char *bytes, size_t size)
{
    l->about->about.writer = l->about->about.tags = "";
    return tw_graph_import(l->graph, bytes, size, l->options.prefix, l->error);
}

static bool has_tag(const Twi__MetaGraphDef *def, const char *tag, size_t size)
{
    for (size_t i = 0; def->meta_info_def && i < def->meta_info_def->n_tags; i++)
        if (strncmp(def->meta_info_def->tags[i], tag, size) == 0 && !def->meta_info_def->tags[i][size])
            return true;
    return false;
}

/* Whether a graph has all tags that are asked for, or if none is, the usual one. */
static bool has_tags(const Twi__MetaGraphDef *def, const char *wanted)
{
    const char *at = wanted ? wanted : "serve";
    size_t size = strcspn(at, ",");
    while (has_tag(def, at, size) && at[size]) {
        at += size + 1;
        size = strcspn(at, ",");
    }
    return has_tag(def, at, size);
}

/* Whether it has those and no others. */
static bool has_just_tags(const Twi__MetaGraphDef *def, const char *wanted)
{
    size_t count = 1, there = def->meta_info_def ? def->meta_info_def->n_tags : 0;
    for (const char *at = wanted ? wanted : ""; *at; at++)
        count += *at == ',';
    return wanted && !*wanted ? there == 0 : has_tags(def, wanted) && there == count;
}

/* Adds the graph's tags to a list of them. */
static void list_tags(const Twi__MetaGraphDef *def, twi_text *list)
{
    twi_text_printf(list, "%s'", list->size ? ", " : "");
    for (size_t i = 0; def->meta_info_def && i < def->meta_info_def->n_tags; i++)
        twi_text_printf(list, "%s%s", i ? "," : "", def->meta_info_def->tags[i]);
    twi_text_printf(list, "'");
}

/* Which of the graphs: that with just the tags, or else the first with more. *chosen stays below 0 if there is none. */
static tw_status choose_graph(const loader *l, const Twi__SavedModel *model, int *chosen)
{
    tw_status status = TW_OK;
    twi_text found = {0};
    bool just = false;
    *chosen = -1;
    for (size_t i = 0; i < model->n_meta_graphs && status == TW_OK; i++) {
        twi_proto proto;
        twi_proto_start(&proto, model->meta_graphs[i].len);
        Twi__MetaGraphDef *def =
            twi__meta_graph_def__unpack(&proto.allocator, model->meta_graphs[i].len, model->meta_graphs[i].data);
        if (!def)
            status = proto.out_of_memory ? fail_memory(l)
                                         : twi_fail(l->error, TW_INVALID_ARGUMENT, "graph %zu is none", i);
        bool is_better = def && !just && (just = has_just_tags(def, l->options.tags));
        if (is_better || (def && *chosen < 0 && !l->options.just_tags && has_tags(def, l->options.tags)))
            *chosen = (int)i;
        if (def)
            list_tags(def, &found);
        if (def)
            twi__meta_graph_def__free_unpacked(def, &proto.allocator);
    }
    if (status == TW_OK && *chosen < 0 && (l->options.tags || l->options.just_tags))
        status = twi_fail(l->error, TW_NOT_FOUND, "no graph has the tag '%s'; there are %s",
                          l->options.tags ? l->options.tags : "serve", found.size ? twi_text_string(&found) : "none");
    if (status == TW_OK && *chosen < 0 && model->n_meta_graphs)
        *chosen = 0;
    if (status == TW_OK && *chosen < 0)
        status = twi_fail(l->error, TW_INVALID_ARGUMENT, "there is no graph in it");
    twi_text_free(&found);
    return status;
}

/* Variables and assets lie in folders beside the file. */
static tw_status find_folders(loader *l)
{
    tw_graph_about *about = &l->about->about;
    const char *slash = strrchr(l->path, '/');
    int length = slash ? (int)(slash - l->path + 1) : 0;
    char *index = twi_arena_printf(&l->about->arena, "%.*svariables/variables.index", length, l->path);
    if (!index)
        return fail_memory(l);
    if (twi_file_exists(index))
        about->variables = twi_arena_printf(&l->about->arena, "%.*svariables/variables", length, l->path);
    for (int i = 0; i < about->num_assets; i++) {
        tw_signature_value *asset = &about->assets[i];
        asset->name = twi_arena_printf(&l->about->arena, "%.*sassets/%s", length, l->path, asset->name);
        if (!asset->name)
            return fail_memory(l);
    }
    return twi_file_exists(index) && !about->variables ? fail_memory(l) : TW_OK;
}

static tw_status load_meta_graph(loader *l, const void *bytes, size_t size)
{
    tw_graph_about *about = &l->about->about;
    if (l->options.keep_message) {
        if (!(about->meta_graph = twi_arena_copy(&l->about->arena, bytes, size)))
            return fail_memory(l);
        about->meta_graph_size = size;
    }
    return twi_meta_graph_import(l->graph, bytes, size, l->options.prefix, l->about, l->error);
}

static tw_status load_saved_model(loader *l, const char *bytes, size_t size)
{
    int chosen;
    twi_proto proto;
    tw_status status;
    twi_proto_start(&proto, size);
    Twi__SavedModel *model = twi__saved_model__unpack(&proto.allocator, size, (const uint8_t *)bytes);
    if (!model)
        return proto.out_of_memory
                   ? fail_memory(l)
                   : twi_fail(l->error, TW_DATA_LOSS, "%zu bytes that should be a SavedModel are not", size);
    TWI_TRY(choose_graph(l, model, &chosen));
    ProtobufCBinaryData *graph = &model->meta_graphs[chosen];
    TWI_TRY(load_meta_graph(l, graph->data, graph->len));
    TWI_TRY(find_folders(l));
done:
    twi__saved_model__free_unpacked(model, &proto.allocator);
    return status;
}

/* The last graph that an event file has, with collections if there is one with collections. */
static tw_status load_events(loader *l)
{
    twi_record_reader *reader;
    twi_text graph = {0};
    bool has_meta = false;
    const char *bytes;
    size_t size;
    tw_status status = twi_record_open(l->path, &reader, l->error);
    while (status == TW_OK && (status = twi_record_next(reader, &bytes, &size, l->error)) == TW_OK) {
        twi_proto proto;
        twi_proto_start(&proto, size);
        Twi__Event *event = twi__event__unpack(&proto.allocator, size, (const uint8_t *)bytes);
        bool is_meta = event && event->what_case == TWI__EVENT__WHAT_META_GRAPH_DEF;
        bool is_graph = event && event->what_case == TWI__EVENT__WHAT_GRAPH_DEF;
        if (is_meta || (is_graph && !has_meta)) {
            const ProtobufCBinaryData *def = is_meta ? &event->meta_graph_def : &event->graph_def;
            graph.size = 0;
            twi_text_append(&graph, def->data, def->len);
            has_meta |= is_meta;
        }
        if (event)
            twi__event__free_unpacked(event, &proto.allocator);
    }
    twi_record_close(reader);
    if (status == TW_OUT_OF_RANGE || (status == TW_DATA_LOSS && graph.size)) /* its writer may be at work */
        status = graph.failed ? fail_memory(l)
                 : graph.size ? load_bytes(l, has_meta ? META_GRAPH_DEF : GRAPH_DEF, graph.data, graph.size)
                              : twi_fail(l->error, TW_NOT_FOUND, "this event file has no graph");
    twi_text_free(&graph);
    return status;
}

static tw_status load_bytes(loader *l, file_kind kind, const char *bytes, size_t size)
{
    if (!l->about->about.format)
        l->about->about.format = kind_names[kind];
    if (l->options.just_tags && kind != SAVED_MODEL)
        return twi_fail(l->error, TW_DATA_LOSS, "it is no SavedModel");
    switch (kind) {
    case GRAPH_DEF:
        return load_graph_def(l, bytes, size);
    case META_GRAPH_DEF:
        return load_meta_graph(l, bytes, size);
    case SAVED_MODEL:
        return load_saved_model(l, bytes, size);
    default:
        return load_events(l);
    }
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static tw_status load_file(loader *l)
{
    char *bytes;
    size_t size;
    twi_text wire = {0};
    tw_status status = twi_file_read_any(l->path, INT_MAX, &bytes, &size, l->error);
    if (status != TW_OK)
        return status;
    const ProtobufCMessageDescriptor *kind = kind_of_text(bytes, size);
    if (kind) {
        l->about->about.is_text = true;
        TWI_TRY(twi_text_to_wire(kind, bytes, size, &wire, l->error));
        TWI_TRY(load_bytes(l, kind == &twi_text__graph_def__descriptor        ? GRAPH_DEF
                              : kind == &twi_text__meta_graph_def__descriptor ? META_GRAPH_DEF
                                                                              : SAVED_MODEL,
                           twi_text_string(&wire), wire.size));
    } else {
        TWI_TRY(load_bytes(l, l->options.just_tags ? SAVED_MODEL : kind_of(bytes, size), bytes, size));
    }
done:
    twi_text_free(&wire);
    twi_free(bytes);
    if (status != TW_OK)
        twi_prefix(l->error, "'%s'", l->path);
    return status;
}

static bool is_directory(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* A directory stands for the SavedModel in it, or the graph beside its latest checkpoint. */
static tw_status load_directory(loader *l)
{
    const char *directory = l->path;
    char latest[4096];
    char *paths[] = {twi_arena_printf(&l->about->arena, "%s/saved_model.pb", directory),
                     twi_arena_printf(&l->about->arena, "%s/saved_model.pbtxt", directory), NULL};
    if (tw_checkpoint_latest(directory, latest, sizeof latest, NULL, NULL) == TW_OK)
        paths[2] = twi_arena_printf(&l->about->arena, "%s.meta", latest);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (!paths[i] && i < 2)
            return fail_memory(l);
        if (!paths[i] || !twi_file_exists(paths[i]))
            continue;
        l->path = paths[i];
        return load_file(l);
    }
    return twi_fail(l->error, TW_NOT_FOUND, "'%s' is a directory without a saved_model.pb or a checkpoint's .meta",
                    directory);
}

tw_status tw_graph_load(tw_graph *graph, const char *path, const tw_load_options *options, tw_graph_about **about,
                        tw_error *error)
{
    TWI_NEED(graph, "graph", error);
    TWI_NEED(path, "path", error);
    tw_error unasked;
    tw_load_options known;
    tw_status status = twi_sized(&known, options, TWI_SIZE(tw_load_options, tags), error);
    if (status != TW_OK)
        return status;
    twi_about *made = twi_alloc(sizeof *made);
    if (!made)
        return twi_fail_memory(error, "reading a graph");
    loader l = {graph, path, known, made, error ? error : &unasked};
    status = is_directory(path) ? load_directory(&l) : load_file(&l);
    if (status == TW_OK && about)
        *about = &made->about;
    else
        tw_graph_about_destroy(&made->about);
    return status;
}

void tw_graph_about_destroy(tw_graph_about *about)
{
    if (!about)
        return;
    twi_about *whole = (twi_about *)about; /* its first member */
    twi_about_free(whole);
    twi_free(whole);
}
