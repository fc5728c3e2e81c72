/* functions.c - TensorFlow 2's control flow as TensorFlow 1's: a call becomes the function's own nodes under the call's
 * name; If, Case and While, whose branches and bodies are functions, become Switch and Merge, and frames, as TensorFlow
 * lowers them itself. What a data set calls is kept beside (functions.h). So nothing behind the import has a library.
 *
 * Here is the table that says what becomes of which node, and the walk over the graph. */
#include "io/functions/lowering.h"

#include "base/memory.h"
#include "graph/graph.h"

#include <string.h>

enum { SPARE_NODES = 1 << 16 }; /* made of calls, beside 16 for each that the library has */

static const struct {
    const char *name;
    const char *functions[2]; /* attributes that name them */
    tw_status (*lower)(twi_lowering *l);
    bool (*applies)(const Twi__NodeDef *node); /* NULL: always */
} lowered[] = {
    {"PartitionedCall", {"f", NULL}, twi_lower_call},
    {"StatefulPartitionedCall", {"f", NULL}, twi_lower_call},
    {"BatchFunction", {"f", NULL}, twi_lower_call}, /* a run is a batch of its own */
    {"If", {"then_branch", "else_branch"}, twi_lower_if},
    {"StatelessIf", {"then_branch", "else_branch"}, twi_lower_if},
    {"While", {"cond", "body"}, twi_lower_while},
    {"StatelessWhile", {"cond", "body"}, twi_lower_while},
    {"Case", {"branches", NULL}, twi_lower_case},
    {"StatelessCase", {"branches", NULL}, twi_lower_case},
    {"SymbolicGradient", {"f", NULL}, twi_lower_gradient},
    {"ParseExampleDataset", {NULL}, twi_lower_parse},
    {"ParseExampleDatasetV2", {NULL}, twi_lower_parse},
    {"ExperimentalParseExampleDataset", {NULL}, twi_lower_parse},
    {"FusedBatchNorm", {NULL}, twi_lower_batch_norm, twi_keeps_averages},
    {"FusedBatchNormV2", {NULL}, twi_lower_batch_norm, twi_keeps_averages},
    {"FusedBatchNormV3", {NULL}, twi_lower_batch_norm, twi_keeps_averages},
    {"FusedPadConv2D", {NULL}, twi_lower_padded_conv},
    {"FusedResizeAndPadConv2D", {NULL}, twi_lower_padded_conv},
    {"GeneratorDataset", {NULL}, twi_lower_copied_data_set, twi_copies_data_set},
    {"WrapDatasetVariant", {NULL}, twi_lower_wrapped_data_set},
    {"UnwrapDatasetVariant", {NULL}, twi_lower_wrapped_data_set},
    {NULL, {NULL}, twi_lower_named}, /* the last: of a name that the library has */
};

/* Which row is for the node; -1: it stays as it is. One whose functions are not there is missed by name when it is run.
 */
static int row_of(twi_functions *f, const Twi__NodeDef *node)
{
    size_t last = sizeof lowered / sizeof *lowered - 1;
    for (size_t i = 0; i < last; i++) {
        bool there = strcmp(lowered[i].name, node->op) == 0 && (!lowered[i].applies || lowered[i].applies(node));
        for (int k = 0; k < 2 && there && lowered[i].functions[k]; k++)
            there = twi_lower_count_functions(f, node, lowered[i].functions[k]) > 0;
        const Twi__AttrValue *type = there ? twi_lower_attr(node, "Tcond") : NULL;
        if (there && (!type || type->type == TW_BOOL))
            return (int)i;
    }
    return twi_lower_function_as_op(f, node) ? (int)last : -1;
}

const char *twi_functions_missing(twi_arena *arena, twi_functions *functions, const Twi__NodeDef *node)
{
    const char *missing = NULL;
    bool lacks_memory = false; /* then the op is missed by its own name */
    for (size_t i = 0; i < sizeof lowered / sizeof *lowered; i++)
        for (int k = 0; k < 2 && lowered[i].functions[k] && strcmp(lowered[i].name, node->op) == 0 && !missing; k++) {
            const Twi__AttrValue *value = twi_lower_attr(node, lowered[i].functions[k]);
            bool is_one = value && value->value_case == TWI__ATTR_VALUE__VALUE_FUNC;
            if (is_one && !(functions && twi_lower_function_named(functions, &value->func)))
                missing = twi_lower_function_name(arena, &value->func, &lacks_memory);
        }
    return missing;
}

/* Whether the node takes nothing that says where it is, or uses what may be changed before: in a function only. What
 * comes after another node of the function is where that one is. A condition is where its predicate is, for all of its
 * sides. */
static bool needs_pivot(const twi_function_place *p, const Twi__NodeDef *node, bool is_condition)
{
    bool is_lost = twi_lower_count_data(node) == node->n_input, uses = false;
    for (size_t i = 0; i < twi_lower_count_data(node) && p->pivot; i++) {
        int argument = twi_lower_argument(p, node->input[i]);
        if (i == 0 || !is_condition)
            is_lost = is_lost && twi_lower_stays(p, node->input[i]);
        uses = uses || (argument >= 0 && p->function->signature->input_arg[argument]->type == TWI_PROTO_RESOURCE);
    }
    return p->pivot && (is_lost || (uses && p->waits));
}

static tw_status add_copy(twi_functions *f, const twi_function_place *p, const Twi__NodeDef *node, const char *name,
                          const char *device, char **inputs, size_t num_inputs)
{
    Twi__NodeDef *copy = twi_arena_copy(f->arena, node, sizeof *copy);
    if (!copy)
        return twi_lower_fail_memory(f);
    copy->name = (char *)name;
    copy->device = (char *)device;
    copy->input = inputs;
    copy->n_input = num_inputs;
    copy->attr = twi_arena_alloc(f->arena, sizeof *copy->attr * (node->n_attr + 1));
    copy->n_attr = 0;
    for (size_t i = 0; i < node->n_attr && copy->attr; i++)
        if (!p->function || strcmp(node->attr[i]->key, "_class") != 0) /* which names nodes of the function */
            copy->attr[copy->n_attr++] = node->attr[i];
    f->made += p->function != NULL;
    if (f->made > f->most)
        return twi_fail(f->error, TW_RESOURCE_EXHAUSTED, "calls of functions become more than %d nodes", f->most);
    if (!copy->attr || !twi_push(&f->nodes, copy))
        return twi_lower_fail_memory(f);
    return twi_lower_keep_functions(f, copy, inputs);
}

tw_status twi_lower_node(twi_functions *f, const twi_function_place *p, const Twi__NodeDef *node)
{
    int row = row_of(f, node);
    bool is_condition = row >= 0 && (lowered[row].lower == twi_lower_if || lowered[row].lower == twi_lower_case);
    bool pivot = needs_pivot(p, node, is_condition);
    char *name = p->function ? TWI_PRINT("%s%s", p->prefix, node->name) : node->name;
    const char *device = (node->device[0] && !p->is_alone) || !p->device ? node->device : p->device;
    char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (node->n_input + 2));
    if (!name || !inputs)
        return twi_lower_fail_memory(f);
    for (size_t i = 0; i < node->n_input; i++)
        if (!(inputs[i] = twi_lower_resolve(f, p, node->input[i])))
            return twi_lower_fail_memory(f);
    if (pivot)
        inputs[node->n_input] = (char *)p->pivot;
    if (row < 0)
        return add_copy(f, p, node, name, device, inputs, node->n_input + pivot);
    Twi__NodeDef with_pivot = *node;
    with_pivot.n_input += pivot;
    twi_lowering l = {f, &with_pivot, name, device, inputs, twi_lower_count_data(node), p};
    tw_status status = lowered[row].lower(&l);
    if (status != TW_OK && !f->named) /* the innermost of nodes in each other */
        twi_say_node(f->error, name);
    f->named = status != TW_OK;
    return status;
}

static const Twi__AttrValue *attr_of(const Twi__FunctionDef *function, const char *name)
{
    const Twi__AttrValue *value = NULL;
    for (size_t i = 0; i < function->n_attr; i++)
        if (strcmp(function->attr[i]->key, name) == 0)
            value = function->attr[i]->value;
    return value;
}

/* What the function implements, in the arena; NULL: nothing that others do too, or memory has run out. The function
 * that a gradient goes through, and the gradient, give and take what is their implementation's own: they stay. */
static const char *implemented(twi_functions *f, const Twi__FunctionDef *function)
{
    const Twi__AttrValue *name = attr_of(function, "api_implements");
    bool is_one = name && name->value_case == TWI__ATTR_VALUE__VALUE_S && !attr_of(function, "forward_function_name") &&
                  !attr_of(function, "backward_function_name");
    return is_one ? TWI_PRINT("%.*s", (int)name->s.len, (const char *)name->s.data) : NULL;
}

static bool is_for_cpus(const Twi__FunctionDef *function)
{
    const Twi__AttrValue *device = attr_of(function, "api_preferred_device");
    return device && device->value_case == TWI__ATTR_VALUE__VALUE_S && device->s.len == 3 &&
           memcmp(device->s.data, "CPU", 3) == 0;
}

/* As TensorFlow chooses before it runs a graph on CPUs: of the two ways in which TensorFlow Probability draws gamma
 * numbers, the graph calls one and TensorFlow's numbers are the other's. */
const Twi__FunctionDef *twi_lower_implementation(twi_functions *f, const Twi__FunctionDef *function)
{
    const char *name = function ? implemented(f, function) : NULL;
    const Twi__FunctionDef *other = name ? twi_map_get(&f->for_cpus, name) : NULL;
    bool fits = other && !is_for_cpus(function) && other->signature->n_input_arg == function->signature->n_input_arg &&
                other->signature->n_output_arg == function->signature->n_output_arg;
    return fits ? other : function;
}

static bool note_function(twi_functions *f, Twi__FunctionDef *function)
{
    const char *name = is_for_cpus(function) ? implemented(f, function) : NULL;
    return twi_map_put(&f->by_name, function->signature->name, function) &&
           (!name || twi_map_put(&f->for_cpus, name, function));
}

static tw_status read_library(twi_functions *f, const ProtobufCBinaryData *bytes, twi_function_library *library)
{
    twi_proto_start(&library->proto, bytes->len);
    library->message = twi__function_def_library__unpack(&library->proto.allocator, bytes->len, bytes->data);
    if (!library->message)
        return library->proto.out_of_memory
                   ? twi_lower_fail_memory(f)
                   : twi_fail(f->error, TW_INVALID_ARGUMENT, "the library of functions cannot be read");
    bool fits = true;
    for (size_t i = 0; i < library->message->n_function && fits; i++) {
        f->most += 16 * (int)library->message->function[i]->n_node_def;
        if (library->message->function[i]->signature)
            fits = note_function(f, library->message->function[i]);
    }
    return fits ? TW_OK : twi_lower_fail_memory(f);
}

/* Who takes a handle that a call gives, or what a loop gives as it came, takes it where the call has it from, and comes
 * after the call. A handle is made again in each plan that needs it (plan/border.c, plan/loops.c): as one of a call's
 * outputs it would bring the whole call along. */
static tw_status lead_past(twi_functions *f, Twi__NodeDef *node)
{
    char **inputs = NULL;
    size_t count = node->n_input, data = twi_lower_count_data(node);
    for (size_t i = 0; i < data; i++) {
        char *value = twi_map_get(&f->passed, node->input[i]);
        if (!value)
            continue;
        if (!inputs) {
            inputs = twi_arena_alloc(f->arena, sizeof *inputs * (count + data + 1));
            if (!inputs)
                return twi_lower_fail_memory(f);
            memcpy(inputs, node->input, sizeof *inputs * count);
        }
        char *further = twi_map_get(&f->passed, value);
        for (int k = 0; further && k < f->passed.count; k++, further = twi_map_get(&f->passed, value)) /* no circle */
            value = further;
        const char *colon = strrchr(node->input[i], ':');
        int length = colon ? (int)(colon - node->input[i]) : (int)strlen(node->input[i]);
        if (!(inputs[node->n_input++] = TWI_PRINT("^%.*s", length, node->input[i])))
            return twi_lower_fail_memory(f);
        inputs[i] = value;
    }
    node->input = inputs ? inputs : node->input;
    return TW_OK;
}

void twi_functions_free(twi_functions *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->num_libraries; i++)
        if (f->libraries[i].message)
            twi__function_def_library__free_unpacked(f->libraries[i].message, &f->libraries[i].proto.allocator);
    twi_free(f->libraries);
    twi_map_free(&f->by_name);
    twi_map_free(&f->names);
    twi_map_free(&f->for_cpus);
    twi_map_free(&f->passed);
    twi_map_free(&f->gradients);
    twi_array_free(&f->nodes);
    twi_free(f);
}

tw_status twi_functions_inline(twi_arena *arena, const Twi__GraphDef *def, twi_functions **functions, tw_error *error)
{
    tw_status status = TW_OK;
    twi_functions none = {.arena = arena};
    bool any = def->n_library > 0;
    *functions = NULL;
    for (size_t i = 0; i < def->n_node && !any; i++)
        any = row_of(&none, def->node[i]) >= 0;
    if (!any)
        return none.lacks_memory ? twi_fail_memory(error, "inlining functions") : TW_OK;
    twi_functions *f = *functions = twi_alloc(sizeof *f);
    if (!f)
        return twi_fail_memory(error, "inlining functions");
    f->arena = arena;
    f->error = error;
    f->most = SPARE_NODES;
    f->libraries = twi_alloc_array(def->n_library + 1, sizeof *f->libraries);
    if (!f->libraries)
        return twi_lower_fail_memory(f);
    for (; f->num_libraries < def->n_library && status == TW_OK; f->num_libraries++)
        status = read_library(f, &def->library[f->num_libraries], &f->libraries[f->num_libraries]);
    for (size_t i = 0; i < def->n_node && status == TW_OK; i++)
        if (!twi_map_put(&f->names, def->node[i]->name, def->node[i]))
            status = twi_lower_fail_memory(f);
    twi_function_place graph = {.prefix = ""};
    for (size_t i = 0; i < def->n_node && status == TW_OK; i++)
        status = twi_lower_node(f, &graph, def->node[i]);
    for (int i = 0; i < f->nodes.count && f->passed.count && status == TW_OK; i++)
        status = lead_past(f, f->nodes.items[i]);
    return status == TW_OK && (f->lacks_memory || none.lacks_memory) ? twi_lower_fail_memory(f) : status;
}

Twi__NodeDef **twi_functions_nodes(const twi_functions *f, size_t *count)
{
    *count = (size_t)f->nodes.count;
    return f->nodes.items;
}
