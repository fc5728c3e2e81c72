/* function.c - functions of a graph: kept as the messages that they are, and handed to Tower with whatever calls them.
 * Never here:  making functions of graphs (to_function.c). */
#include "capi.h"

#include <stdlib.h>
#include <string.h>

enum { SIGNATURE = 1, NAME = 1 }; /* of a FunctionDef; of its OpDef */

TF_Function *new_function(wire *def, TF_Status *status)
{
    wire_field field, inner;
    char *name = NULL;
    TF_Function *function = calloc(1, sizeof *function);
    wire_reader r = wire_read(def->data, def->size);
    while (wire_next(&r, &field)) {
        wire_reader signature =
            field.number == SIGNATURE && field.type == 2 ? wire_read(field.data, field.size) : (wire_reader){0};
        while (wire_next(&signature, &inner))
            if (inner.number == NAME && inner.type == 2) {
                free(name);
                name = strndup((const char *)inner.data, inner.size);
            }
        r.wrong |= signature.wrong;
    }
    TF_SetStatus(status, TF_OK, "");
    if (r.wrong)
        set_status(status, TF_INVALID_ARGUMENT, "Invalid FunctionDef given to TF_FunctionImportFunctionDef");
    else if (!function || !(name || (name = strdup(""))) || def->failed)
        set_no_memory(status);
    if (!is_ok(status)) {
        free(name);
        free(function);
        wire_free(def);
        return NULL;
    }
    *function = (TF_Function){.references = 1, .name = name, .def = *def};
    *def = (wire){0};
    return function;
}

TF_Function *TF_FunctionImportFunctionDef(const void *proto, size_t proto_len, TF_Status *status)
{
    wire def = {0};
    wire_append(&def, proto, proto_len);
    return new_function(&def, status);
}

void release_function(TF_Function *function)
{
    if (!function || __atomic_sub_fetch(&function->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    free(function->name);
    free(function->gradient);
    wire_free(&function->def);
    free(function);
}

void TF_DeleteFunction(TF_Function *func)
{
    release_function(func);
}

const char *TF_FunctionName(TF_Function *func)
{
    return func->name;
}

void TF_FunctionToFunctionDef(TF_Function *func, TF_Buffer *output_func_def, TF_Status *status)
{
    wire def = {0};
    wire_append(&def, func->def.data, func->def.size);
    fill_buffer(output_func_def, &def, status);
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

enum { ATTR = 5, KEY = 1, VALUE = 2 }; /* of a FunctionDef, a map */

static bool is_attr(const wire_field *field, const char *name, wire_field *value)
{
    wire_field part;
    bool found = false;
    wire_reader entry =
        field->number == ATTR && field->type == 2 ? wire_read(field->data, field->size) : (wire_reader){0};
    *value = (wire_field){0};
    while (wire_next(&entry, &part)) {
        found |= part.number == KEY && wire_is_text(&part, name);
        if (part.number == VALUE && part.type == 2)
            *value = part;
    }
    return found;
}

void TF_FunctionSetAttrValueProto(TF_Function *func, const char *attr_name, const void *proto, size_t proto_len,
                                  TF_Status *status)
{
    wire def = {0}, entry = {0};
    wire_field field, value;
    if (!wire_is_message(proto, proto_len)) {
        set_status(status, TF_INVALID_ARGUMENT, "Unparseable AttrValue proto passed to TF_FunctionSetAttrValueProto");
        return;
    }
    wire_reader r = wire_read(func->def.data, func->def.size);
    for (const uint8_t *from = r.at; wire_next(&r, &field); from = r.at)
        if (!is_attr(&field, attr_name, &value))
            wire_append(&def, from, (size_t)(r.at - from));
    wire_text(&entry, KEY, attr_name);
    wire_bytes(&entry, VALUE, proto, proto_len);
    wire_message(&def, ATTR, &entry);
    TF_SetStatus(status, TF_OK, "");
    if (def.failed) {
        set_no_memory(status);
        wire_free(&def);
        return;
    }
    wire_free(&func->def);
    func->def = def;
}

void TF_FunctionGetAttrValueProto(TF_Function *func, const char *attr_name, TF_Buffer *output_attr_value,
                                  TF_Status *status)
{
    wire copy = {0};
    wire_field field, value;
    wire_reader r = wire_read(func->def.data, func->def.size);
    while (wire_next(&r, &field))
        if (is_attr(&field, attr_name, &value)) {
            wire_append(&copy, value.data, value.size);
            fill_buffer(output_attr_value, &copy, status);
            return;
        }
    set_status(status, TF_INVALID_ARGUMENT, "Function '%s' has no attr named '%s'.", func->name, attr_name);
}

/* ---- in a graph ------------------------------------------------------------------------------------------------- */

TF_Function *find_function(const TF_Graph *graph, const char *name)
{
    for (int i = 0; i < graph->num_functions; i++)
        if (strcmp(graph->functions[i]->name, name) == 0)
            return graph->functions[i];
    return NULL;
}

static TF_Function *copy_function(const TF_Function *from)
{
    TF_Function *copy = calloc(1, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = (TF_Function){.references = 1, .name = strdup(from->name)};
    wire_append(&copy->def, from->def.data, from->def.size);
    if (copy->name && !copy->def.failed)
        return copy;
    release_function(copy);
    return NULL;
}

static bool add_one(TF_Graph *graph, const TF_Function *function, TF_Status *status)
{
    const TF_Function *there = find_function(graph, function->name);
    if (there &&
        (there->def.size != function->def.size || memcmp(there->def.data, function->def.data, there->def.size) != 0)) {
        set_status(status, TF_INVALID_ARGUMENT,
                   "Cannot add function '%s' because a different function with the same name already exists.",
                   function->name);
        return false;
    }
    if (there)
        return true;
    TF_Function **grown = realloc(graph->functions, sizeof *grown * (size_t)(graph->num_functions + 1));
    if (grown)
        graph->functions = grown;
    TF_Function *copy = grown ? copy_function(function) : NULL;
    if (!copy) {
        set_no_memory(status);
        return false;
    }
    graph->functions[graph->num_functions++] = copy;
    return true;
}

bool add_function(TF_Graph *graph, const TF_Function *function, const TF_Function *gradient, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    TF_Function *there = gradient ? find_function(graph, function->name) : NULL;
    if (there && there->gradient && strcmp(there->gradient, gradient->name) != 0) {
        set_status(status, TF_INVALID_ARGUMENT,
                   "Cannot assign gradient function '%s' to '%s' because it already has gradient function '%s'",
                   gradient->name, function->name, there->gradient);
        return false;
    }
    if (!add_one(graph, function, status) || (gradient && !add_one(graph, gradient, status)))
        return false;
    there = gradient ? find_function(graph, function->name) : NULL;
    if (there && !there->gradient && !(there->gradient = strdup(gradient->name)))
        set_no_memory(status);
    return is_ok(status);
}

void TF_GraphCopyFunction(TF_Graph *g, const TF_Function *func, const TF_Function *grad, TF_Status *status)
{
    if (!func) {
        set_status(status, TF_INVALID_ARGUMENT, "'func' argument to TF_GraphCopyFunction cannot be null");
        return;
    }
    pthread_rwlock_wrlock(&g->lock);
    add_function(g, func, grad, status);
    pthread_rwlock_unlock(&g->lock);
}

void TF_GraphRemoveFunction(TF_Graph *g, const char *func_name, TF_Status *status)
{
    pthread_rwlock_wrlock(&g->lock);
    TF_Function *found = find_function(g, func_name);
    int kept = 0;
    for (int i = 0; i < g->num_functions; i++)
        if (g->functions[i] != found)
            g->functions[kept++] = g->functions[i];
    g->num_functions = kept;
    release_function(found);
    pthread_rwlock_unlock(&g->lock);
    TF_SetStatus(status, TF_OK, "");
    if (!found)
        set_status(status, TF_INVALID_ARGUMENT, "Tried to remove non-existent function '%s'.", func_name);
}

int TF_GraphNumFunctions(TF_Graph *g)
{
    pthread_rwlock_rdlock(&g->lock);
    int count = g->num_functions;
    pthread_rwlock_unlock(&g->lock);
    return count;
}

int TF_GraphGetFunctions(TF_Graph *g, TF_Function **funcs, int max_func, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    pthread_rwlock_rdlock(&g->lock);
    int count = 0;
    while (count < g->num_functions && count < max_func && is_ok(status))
        if ((funcs[count] = copy_function(g->functions[count])))
            count++;
        else
            set_no_memory(status);
    pthread_rwlock_unlock(&g->lock);
    return count;
}

void write_library(wire *w, const TF_Graph *graph)
{
    enum { LIBRARY = 2, FUNCTION = 1, GRADIENT = 2, FUNCTION_NAME = 1, GRADIENT_FUNC = 2 };
    wire library = {0};
    for (int i = 0; i < graph->num_functions; i++) {
        const TF_Function *function = graph->functions[i];
        wire gradient = {0};
        wire_bytes(&library, FUNCTION, function->def.data, function->def.size);
        if (!function->gradient)
            continue;
        wire_text(&gradient, FUNCTION_NAME, function->name);
        wire_text(&gradient, GRADIENT_FUNC, function->gradient);
        wire_message(&library, GRADIENT, &gradient);
    }
    if (graph->num_functions)
        wire_message(w, LIBRARY, &library);
}
