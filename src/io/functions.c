/* functions.c - TensorFlow 2's control flow as TensorFlow 1's: a call becomes the function's own nodes under the call's
 * name; If, Case and While, whose branches and bodies are functions, become Switch and Merge, and frames, as TensorFlow
 * lowers them itself. What a data set calls is kept beside (functions.h). So nothing behind the import has a library.
 * Batch normalization that keeps averages becomes one without and their arithmetic.
 *
 * A call's node keeps its name and its outputs: an IdentityN of what takes its place. In a function, an input is an
 * argument's name or NODE:OUTPUT:NUMBER, where OUTPUT is the name that the op's signature has for it. */
#include "io/functions.h"

#include "base/array.h"
#include "base/map.h"
#include "base/memory.h"
#include "format/protobuf.h"
#include "format/tensor_proto.h"
#include "graph/op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROTO_RESOURCE = TW_RESOURCE, PROTO_VARIANT = 21 };
enum {
    MOST_CALLS = 64,      /* that lie in each other */
    SPARE_NODES = 1 << 16, /* made of calls, beside 16 for each that the library has */
};

typedef struct library {
    twi_proto proto;
    Twi__FunctionDefLibrary *message;
} library;

struct twi_functions {
    twi_arena *arena;
    library *libraries;
    size_t num_libraries;
    twi_map by_name; /* Twi__FunctionDef */
    TWI_ARRAY(Twi__NodeDef *) nodes;
    twi_map passed; /* "call:8" -> what the call gives there, where it is a handle or what it was given itself */
    twi_map gradients;             /* name -> twi_function_gradient */
    const char *stack[MOST_CALLS]; /* names of the functions that are being inlined */
    int depth, made, most;           /* nodes made so far, and how many there may be */
    bool lacks_memory;               /* a function, a name or a list is not there for want of memory */
    tw_error *error;
};

/* Where the nodes of a function go. */
typedef struct place {
    const char *prefix;               /* "cond/then/" */
    const char *device;               /* of those that ask for none */
    const char *pivot;                /* "^cond/pivot": what nodes without inputs come after; NULL: nothing */
    const Twi__FunctionDef *function; /* NULL: the graph itself */
    char **arguments;                 /* [input_arg] what the function is given; */
    const bool *unchanging;           /* [input_arg] in a loop, whether it stays; NULL: none does */
    bool waits;                       /* it is a call's that comes after other nodes: so does what uses resources */
    twi_map nodes;                    /* of the function, by name */
} place;

static tw_status fail_memory(const twi_functions *f)
{
    return twi_fail_memory(f->error, "inlining functions");
}

/* ---- making nodes ------------------------------------------------------------------------------------------------ */

typedef struct attr_value {
    const char *name;
    Twi__AttrValue value;
} attr_value;

static attr_value type_value(const char *name, int32_t type)
{
    attr_value a = {.name = name};
    twi__attr_value__init(&a.value);
    a.value.value_case = TWI__ATTR_VALUE__VALUE_TYPE;
    a.value.type = type;
    return a;
}

static attr_value int_value(const char *name, int64_t i)
{
    attr_value a = {.name = name};
    twi__attr_value__init(&a.value);
    a.value.value_case = TWI__ATTR_VALUE__VALUE_I;
    a.value.i = i;
    return a;
}

static attr_value bool_value(const char *name, bool b)
{
    attr_value a = {.name = name};
    twi__attr_value__init(&a.value);
    a.value.value_case = TWI__ATTR_VALUE__VALUE_B;
    a.value.b = b;
    return a;
}

static attr_value text_value(const char *name, const char *text)
{
    attr_value a = {.name = name};
    twi__attr_value__init(&a.value);
    a.value.value_case = TWI__ATTR_VALUE__VALUE_S;
    a.value.s = (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
    return a;
}

static bool add_attr(twi_functions *f, Twi__NodeDef *node, const attr_value *attr)
{
    Twi__NodeDef__AttrEntry *entry = twi_arena_alloc(f->arena, sizeof *entry);
    Twi__AttrValue *value = twi_arena_copy(f->arena, &attr->value, sizeof *value);
    if (!entry || !value)
        return false;
    twi__node_def__attr_entry__init(entry);
    entry->key = (char *)attr->name;
    entry->value = value;
    node->attr[node->n_attr++] = entry;
    return true;
}

/* Adds a node with these inputs, of which NULLs are left out. */
static tw_status add(twi_functions *f, const char *op, const char *name, const char *device, const char *const *inputs,
                     size_t num_inputs, const attr_value *attrs, int num_attrs)
{
    Twi__NodeDef *node = twi_arena_alloc(f->arena, sizeof *node);
    if (f->made++ >= f->most)
        return twi_fail(f->error, TW_RESOURCE_EXHAUSTED, "calls of functions become more than %d nodes", f->most);
    if (!name || !node)
        return fail_memory(f);
    twi__node_def__init(node);
    node->name = (char *)name;
    node->op = (char *)op;
    node->device = (char *)device;
    node->input = twi_arena_alloc(f->arena, sizeof *node->input * (num_inputs + 1));
    node->attr = twi_arena_alloc(f->arena, sizeof *node->attr * (size_t)(num_attrs + 1));
    bool fits = node->input && node->attr;
    for (size_t i = 0; i < num_inputs && fits; i++)
        if (inputs[i])
            node->input[node->n_input++] = (char *)inputs[i];
    for (int i = 0; i < num_attrs && fits; i++)
        fits = add_attr(f, node, &attrs[i]);
    return fits && twi_push(&f->nodes, node) ? TW_OK : fail_memory(f);
}

/* That there is no memory for a name shows in the end, where an input without one was left out. */
static char *noted(twi_functions *f, char *name)
{
    f->lacks_memory |= !name;
    return name;
}

#define PRINT(...) noted(f, twi_arena_printf(f->arena, __VA_ARGS__))

/* ---- attributes of calls ----------------------------------------------------------------------------------------- */

static const Twi__AttrValue *find_attr(const Twi__NodeDef *node, const char *name)
{
    for (size_t i = 0; i < node->n_attr; i++)
        if (strcmp(node->attr[i]->key, name) == 0)
            return node->attr[i]->value;
    return NULL;
}

/* The name in a function's attribute, in the arena; NULL: it cannot be read, or memory has run out. */
static const char *function_name(twi_arena *arena, const ProtobufCBinaryData *bytes, bool *lacks_memory)
{
    twi_proto proto;
    twi_proto_start(&proto, bytes->len);
    Twi__NameAttrList *list = twi__name_attr_list__unpack(&proto.allocator, bytes->len, bytes->data);
    const char *name = list ? twi_arena_strdup(arena, list->name) : NULL;
    *lacks_memory |= proto.out_of_memory || (list && !name);
    if (list)
        twi__name_attr_list__free_unpacked(list, &proto.allocator);
    return name;
}

static const Twi__FunctionDef *function_named_in(twi_functions *f, const ProtobufCBinaryData *bytes)
{
    const char *name = function_name(f->arena, bytes, &f->lacks_memory);
    return name ? twi_map_get(&f->by_name, name) : NULL;
}

/* The function that an attribute names, or the number-th of a list; NULL: there is none. */
static const Twi__FunctionDef *function_at(twi_functions *f, const Twi__NodeDef *node, const char *attr,
                                           size_t number)
{
    const Twi__AttrValue *value = find_attr(node, attr);
    if (value && value->value_case == TWI__ATTR_VALUE__VALUE_FUNC && number == 0)
        return function_named_in(f, &value->func);
    if (value && value->value_case == TWI__ATTR_VALUE__VALUE_LIST && number < value->list->n_func)
        return function_named_in(f, &value->list->func[number]);
    return NULL;
}

static const Twi__FunctionDef *function_of(twi_functions *f, const Twi__NodeDef *node, const char *attr)
{
    return function_at(f, node, attr, 0);
}

/* How many there are; 0 also where one is not in the library. */
static size_t count_functions(twi_functions *f, const Twi__NodeDef *node, const char *attr)
{
    const Twi__AttrValue *value = find_attr(node, attr);
    size_t count = !value ? 0 : value->value_case == TWI__ATTR_VALUE__VALUE_LIST ? value->list->n_func : 1;
    for (size_t i = 0; i < count; i++)
        if (!function_at(f, node, attr, i))
            return 0;
    return count;
}

static int32_t type_at(const Twi__NodeDef *node, const char *attr, size_t i)
{
    const Twi__AttrValue *value = find_attr(node, attr);
    bool has = value && value->value_case == TWI__ATTR_VALUE__VALUE_LIST && i < value->list->n_type;
    return has ? value->list->type[i] : 0;
}

static size_t count_types(const Twi__NodeDef *node, const char *attr)
{
    const Twi__AttrValue *value = find_attr(node, attr);
    return value && value->value_case == TWI__ATTR_VALUE__VALUE_LIST ? value->list->n_type : 0;
}

static size_t count_data(const Twi__NodeDef *node)
{
    size_t count = 0;
    while (count < node->n_input && node->input[count][0] != '^')
        count++;
    return count;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static int argument_number(const place *p, const char *name)
{
    for (size_t i = 0; p->function && i < p->function->signature->n_input_arg; i++)
        if (strcmp(p->function->signature->input_arg[i]->name, name) == 0)
            return (int)i;
    return -1;
}

static int64_t length_of(const Twi__NodeDef *node, const twi_argument *argument)
{
    const Twi__AttrValue *value = argument->number_attr ? find_attr(node, argument->number_attr) : NULL;
    if (argument->number_attr)
        return value && value->value_case == TWI__ATTR_VALUE__VALUE_I ? value->i : 1;
    return argument->list_attr ? (int64_t)count_types(node, argument->list_attr) : 1;
}

/* The function that a node of its own name calls, as TensorFlow 1's Defun has it; NULL: none. */
static const Twi__FunctionDef *function_as_op(twi_functions *f, const Twi__NodeDef *node)
{
    return twi_op_find(node->op) ? NULL : twi_map_get(&f->by_name, node->op);
}

/* The number of the node's output that the signature calls `name` and numbers from `index`. */
static int64_t output_number(twi_functions *f, const Twi__NodeDef *node, const char *name, int64_t index)
{
    const twi_op *op = twi_op_find(node->op);
    const Twi__FunctionDef *function = function_as_op(f, node);
    twi_signature signature;
    int64_t first = 0;
    for (size_t i = 0; function && i < function->signature->n_output_arg; i++)
        if (strcmp(function->signature->output_arg[i]->name, name) == 0)
            return (int64_t)i;
    if (!op || !twi_signature_parse(f->arena, op, &signature))
        return index; /* a call's outputs have one name */
    for (int i = 0; i < signature.num_outputs && strcmp(signature.outputs[i].name, name) != 0; i++)
        first += length_of(node, &signature.outputs[i]);
    return first + index;
}

/* An input as it is called in the graph; NULL: memory has run out. */
static char *resolve(twi_functions *f, const place *p, const char *input)
{
    bool control = input[0] == '^';
    if (!p->function)
        return (char *)input;
    int argument = argument_number(p, input + control);
    if (control && argument >= 0)
        return PRINT("^%.*s", (int)strcspn(p->arguments[argument], ":"), p->arguments[argument]);
    if (control)
        return PRINT("^%s%s", p->prefix, input + 1);
    if (argument >= 0)
        return p->arguments[argument];
    char *name = twi_arena_strdup(f->arena, input), *output = name ? strchr(name, ':') : NULL;
    char *index = output ? strchr(output + 1, ':') : NULL;
    if (!name)
        return NULL;
    if (output)
        *output++ = 0;
    if (index)
        *index++ = 0;
    const Twi__NodeDef *node = output ? twi_map_get(&p->nodes, name) : NULL;
    long long number = index ? atoll(index) : 0;
    if (node)
        number = output_number(f, node, output, number);
    return number ? PRINT("%s%s:%lld", p->prefix, name, number) : PRINT("%s%s", p->prefix, name);
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static tw_status add_node(twi_functions *f, const place *p, const Twi__NodeDef *node);

static const char *returned(const Twi__FunctionDef *function, size_t i)
{
    for (size_t k = 0; k < function->n_ret; k++)
        if (strcmp(function->ret[k]->key, function->signature->output_arg[i]->name) == 0)
            return function->ret[k]->value;
    return NULL;
}

/* Puts a function's nodes in their place. results[output_arg]: what it gives; controls: "^node" for what it does
 * besides. */
static tw_status inline_function(twi_functions *f, place *p, char **results, char **controls)
{
    const Twi__FunctionDef *function = p->function;
    tw_status status = TW_OK;
    if (f->depth == MOST_CALLS)
        return twi_fail(f->error, TW_RESOURCE_EXHAUSTED, "more than %d calls of functions lie in each other",
                        MOST_CALLS);
    for (int i = 0; i < f->depth; i++)
        if (strcmp(f->stack[i], function->signature->name) == 0)
            return twi_fail(f->error, TW_INVALID_ARGUMENT, "function '%s' calls itself", function->signature->name);
    f->stack[f->depth++] = function->signature->name;
    for (size_t i = 0; i < function->n_node_def; i++)
        if (!twi_map_put(&p->nodes, function->node_def[i]->name, function->node_def[i]))
            TWI_LEAVE(fail_memory(f));
    for (size_t i = 0; i < function->n_node_def; i++)
        TWI_TRY(add_node(f, p, function->node_def[i]));
    for (size_t i = 0; i < function->signature->n_output_arg; i++) {
        const char *value = returned(function, i);
        if (!value)
            TWI_LEAVE(twi_fail(f->error, TW_INVALID_ARGUMENT, "function '%s' does not say what it gives as '%s'",
                               function->signature->name, function->signature->output_arg[i]->name));
        if (!(results[i] = resolve(f, p, value)))
            TWI_LEAVE(fail_memory(f));
    }
    for (size_t i = 0; i < function->n_control_ret; i++)
        if (!(controls[i] = PRINT("^%s%s", p->prefix, function->control_ret[i]->value)))
            TWI_LEAVE(fail_memory(f));
done:
    twi_map_free(&p->nodes);
    f->depth -= f->depth > 0;
    return status;
}

/* A place for a function that is called from another one; its results and controls have room. */
typedef struct call {
    place place;
    char **results, **controls;
    size_t num_results, num_controls;
} call;

static tw_status open_call(twi_functions *f, const Twi__FunctionDef *function, const char *prefix, const char *device,
                           const char *pivot, size_t num_arguments, call *c)
{
    if (!function) /* it was there when the node was looked at */
        return fail_memory(f);
    *c = (call){.place = {.prefix = prefix, .device = device, .pivot = pivot, .function = function},
                .num_results = function->signature->n_output_arg,
                .num_controls = function->n_control_ret};
    c->place.arguments = twi_arena_alloc(f->arena, sizeof(char *) * (num_arguments + 1));
    c->results = twi_arena_alloc(f->arena, sizeof(char *) * (c->num_results + 1));
    c->controls = twi_arena_alloc(f->arena, sizeof(char *) * (c->num_controls + 1));
    if (!prefix || !c->place.arguments || !c->results || !c->controls)
        return fail_memory(f);
    if (function->signature->n_input_arg != num_arguments)
        return twi_fail(f->error, TW_INVALID_ARGUMENT, "function '%s' takes %zu arguments and is given %zu",
                        function->signature->name, function->signature->n_input_arg, num_arguments);
    return TW_OK;
}

/* What a call's output is, for those who may take it past the call. */
static bool note_passed(twi_functions *f, const char *name, size_t i, char *value)
{
    char *key = PRINT("%s:%zu", name, i);
    return key && twi_map_put(&f->passed, key, value) && (i > 0 || twi_map_put(&f->passed, name, value));
}

/* The call's own name, with its outputs: what has taken its place. */
static tw_status add_outputs(twi_functions *f, const char *name, const char *device, const Twi__NodeDef *node,
                             const char *types, char **values, size_t count, char **controls, size_t num_controls)
{
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (count + num_controls + 1));
    attr_value type = {.name = "T"};
    const Twi__AttrValue *list = find_attr(node, types);
    if (!inputs)
        return fail_memory(f);
    if (count != count_types(node, types))
        return twi_fail(f->error, TW_INVALID_ARGUMENT, "node '%s' (%s) has %zu outputs, and its function gives %zu",
                        name, node->op, count_types(node, types), count);
    for (size_t i = 0; i < count; i++)
        inputs[i] = values[i];
    for (size_t i = 0; i < count; i++)
        if (type_at(node, types, i) == PROTO_RESOURCE && !note_passed(f, name, i, values[i]))
            return fail_memory(f);
    for (size_t i = 0; i < num_controls; i++)
        inputs[count + i] = controls[i];
    if (count)
        type.value = *list;
    return add(f, count ? "IdentityN" : "NoOp", name, device, inputs, count + num_controls, &type, count > 0);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* A node that is lowered, with its name, device and inputs as they are in the graph. */
typedef struct lowering {
    twi_functions *f;
    const Twi__NodeDef *node;
    const char *name, *device;
    char **inputs; /* [node->n_input] */
    size_t num_data;
    const place *place; /* that the node is in */
} lowering;

/* Whether an input is what the function was given, and stays in the loop that it is in. */
static bool stays(const place *p, const char *input)
{
    int argument = argument_number(p, input);
    return argument >= 0 && p->unchanging && p->unchanging[argument];
}

/* What the nodes of the function come after: all that the call itself does, in the place that it is in. */
static tw_status open_called(lowering *l, const Twi__FunctionDef *function, size_t first, call *c)
{
    twi_functions *f = l->f;
    size_t num_arguments = l->num_data - first;
    const char *pivot = l->place->pivot, *prefix = PRINT("%s/", l->name);
    const char *const *controls = (const char *const *)l->inputs + l->num_data;
    size_t count = l->node->n_input - l->num_data;
    tw_status status = TW_OK;
    if (count == 1 && (!pivot || strcmp(pivot, controls[0]) == 0)) {
        pivot = controls[0];
    } else if (count) {
        const char **all = twi_arena_alloc(f->arena, sizeof *all * (count + 1)), *begin = PRINT("%s/begin", l->name);
        if (!all || !begin || !(pivot = PRINT("^%s", begin)))
            return fail_memory(f);
        memcpy(all, controls, sizeof *all * count);
        all[count] = l->place->pivot;
        status = add(f, "NoOp", begin, l->device, all, count + 1, NULL, 0);
    }
    if (status == TW_OK)
        status = open_call(f, function, prefix, l->device, pivot, num_arguments, c);
    bool *unchanging = status == TW_OK ? twi_arena_alloc(f->arena, num_arguments + 1) : NULL;
    if (!unchanging)
        return status == TW_OK ? fail_memory(f) : status;
    for (size_t i = 0; i < num_arguments; i++) {
        c->place.arguments[i] = l->inputs[first + i];
        unchanging[i] = stays(l->place, l->node->input[first + i]);
    }
    c->place.unchanging = unchanging;
    c->place.waits = count > 0;
    return TW_OK;
}

static tw_status call_function(lowering *l, const Twi__FunctionDef *function, size_t first)
{
    twi_functions *f = l->f;
    call c;
    tw_status status = open_called(l, function, first, &c);
    if (status == TW_OK)
        status = inline_function(f, &c.place, c.results, c.controls);
    if (status == TW_OK)
        status =
            add_outputs(f, l->name, l->device, l->node, "Tout", c.results, c.num_results, c.controls, c.num_controls);
    return status;
}

static tw_status lower_call(lowering *l)
{
    return call_function(l, function_of(l->f, l->node, "f"), 0);
}

/* Inputs, and behind them the node's control inputs. */
static const char **with_controls(lowering *l, const char *a, const char *b, size_t *count)
{
    const char **inputs = twi_arena_alloc(l->f->arena, sizeof *inputs * (l->node->n_input + 3));
    *count = 0;
    if (!inputs)
        return NULL;
    inputs[(*count)++] = a;
    if (b)
        inputs[(*count)++] = b;
    for (size_t i = l->num_data; i < l->node->n_input; i++)
        inputs[(*count)++] = l->inputs[i];
    return inputs;
}

static tw_status add_with_controls(lowering *l, const char *op, const char *name, const char *a, const char *b,
                                   const attr_value *attrs, int num_attrs)
{
    size_t count;
    const char **inputs = with_controls(l, a, b, &count);
    return inputs ? add(l->f, op, name, l->device, inputs, count, attrs, num_attrs) : fail_memory(l->f);
}

/* ---- If ---------------------------------------------------------------------------------------------------------- */

/* What runs where the side is taken. */
static tw_status add_side(lowering *l, bool side)
{
    twi_functions *f = l->f;
    attr_value type = type_value("T", TW_BOOL);
    const char *input = PRINT("%s/pivot%s", l->name, side ? ":1" : "");
    return add(f, "Identity", PRINT("%s/%s", l->name, side ? "then" : "else"), l->device, &input, 1, &type, 1);
}

static tw_status add_switches(lowering *l)
{
    twi_functions *f = l->f;
    attr_value type = type_value("T", TW_BOOL);
    tw_status status = add_with_controls(l, "Switch", PRINT("%s/pivot", l->name), l->inputs[0], l->inputs[0], &type, 1);
    for (size_t i = 1; i < l->num_data && status == TW_OK; i++) {
        type = type_value("T", type_at(l->node, "Tin", i - 1));
        status = add_with_controls(l, "Switch", PRINT("%s/switch_%zu", l->name, i - 1), l->inputs[i], l->inputs[0],
                                   &type, 1);
    }
    if (status == TW_OK)
        status = add_side(l, false);
    return status == TW_OK ? add_side(l, true) : status;
}

static tw_status inline_branch(lowering *l, const Twi__FunctionDef *function, bool side, call *c)
{
    twi_functions *f = l->f;
    const char *word = side ? "then" : "else";
    tw_status status = open_call(f, function, PRINT("%s/%s/", l->name, word), l->device, PRINT("^%s/%s", l->name, word),
                                 l->num_data - 1, c);
    for (size_t i = 0; i + 1 < l->num_data && status == TW_OK; i++)
        if (!(c->place.arguments[i] = PRINT("%s/switch_%zu%s", l->name, i, side ? ":1" : "")))
            status = fail_memory(f);
    return status == TW_OK ? inline_function(f, &c->place, c->results, c->controls) : status;
}

/* Runs when the side's effects are there. */
static tw_status add_done(lowering *l, const char *word, const call *c)
{
    twi_functions *f = l->f;
    attr_value type = type_value("T", TW_BOOL);
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (c->num_controls + 1));
    if (!inputs)
        return fail_memory(f);
    inputs[0] = PRINT("%s/%s", l->name, word);
    for (size_t i = 0; i < c->num_controls; i++)
        inputs[i + 1] = c->controls[i];
    return add(f, "Identity", PRINT("%s/%s_done", l->name, word), l->device, inputs, c->num_controls + 1, &type, 1);
}

/* The results of both sides, [false] and [true], become one: sides[0]'s, whose only control is that it is done. */
static tw_status merge_sides(lowering *l, call sides[2])
{
    twi_functions *f = l->f;
    tw_status status;
    if (sides[0].num_results != sides[1].num_results)
        TWI_LEAVE(twi_fail(f->error, TW_INVALID_ARGUMENT, "node '%s' (%s): one branch gives %zu values, the other %zu",
                           l->name, l->node->op, sides[1].num_results, sides[0].num_results));
    for (size_t i = 0; i < sides[0].num_results; i++) {
        attr_value attrs[] = {type_value("T", type_at(l->node, "Tout", i)), int_value("N", 2)};
        const char *inputs[] = {sides[0].results[i], sides[1].results[i]};
        char *name = PRINT("%s/merge_%zu", l->name, i);
        TWI_TRY(add(f, "Merge", name, l->device, inputs, 2, attrs, 2));
        sides[0].results[i] = name;
    }
    TWI_TRY(add_done(l, "else", &sides[0]));
    TWI_TRY(add_done(l, "then", &sides[1]));
    attr_value attrs[] = {type_value("T", TW_BOOL), int_value("N", 2)};
    const char *inputs[] = {PRINT("%s/else_done", l->name), PRINT("%s/then_done", l->name)};
    TWI_TRY(add(f, "Merge", PRINT("%s/done", l->name), l->device, inputs, 2, attrs, 2));
    sides[0].controls = twi_arena_alloc(f->arena, sizeof(char *));
    sides[0].num_controls = 1;
    if (!sides[0].controls || !(sides[0].controls[0] = PRINT("^%s/done", l->name)))
        status = fail_memory(f);
done:
    return status;
}

static tw_status lower_if(lowering *l)
{
    twi_functions *f = l->f;
    call sides[2];
    tw_status status;
    TWI_TRY(add_switches(l));
    TWI_TRY(inline_branch(l, function_of(f, l->node, "else_branch"), false, &sides[0]));
    TWI_TRY(inline_branch(l, function_of(f, l->node, "then_branch"), true, &sides[1]));
    TWI_TRY(merge_sides(l, sides));
    TWI_TRY(add_outputs(f, l->name, l->device, l->node, "Tout", sides[0].results, sides[0].num_results,
                        sides[0].controls, 1));
done:
    return status;
}

/* ---- Case: as many Ifs as there are branches but one, each in the side of the one before that is not taken ------ */

/* Whether the index is that branch's. */
static tw_status add_test(lowering *level, const char *index, int32_t number)
{
    twi_functions *f = level->f;
    attr_value value = {.name = "value"}, type = type_value("dtype", TW_INT32), compared = type_value("T", TW_INT32);
    Twi__TensorProto *tensor = twi_arena_alloc(f->arena, sizeof *tensor);
    Twi__TensorShapeProto *shape = twi_arena_alloc(f->arena, sizeof *shape);
    int32_t *held = twi_arena_copy(f->arena, &number, sizeof number);
    const char *there = PRINT("^%.*s", (int)strcspn(index, ":"), index);
    const char *inputs[] = {index, PRINT("%s/number", level->name)};
    if (!tensor || !shape || !held || !there || !inputs[1])
        return fail_memory(f);
    twi__tensor_proto__init(tensor);
    twi__tensor_shape_proto__init(shape);
    tensor->dtype = TW_INT32;
    tensor->tensor_shape = shape;
    tensor->n_int_val = 1;
    tensor->int_val = held;
    twi__attr_value__init(&value.value);
    value.value.value_case = TWI__ATTR_VALUE__VALUE_TENSOR;
    value.value.tensor = tensor;
    attr_value attrs[] = {value, type};
    tw_status status = add(f, "Const", inputs[1], level->device, &there, 1, attrs, 2);
    return status == TW_OK ? add(f, "Equal", level->inputs[0], level->device, inputs, 2, &compared, 1) : status;
}

/* A level tells its branch from all behind it. What it takes is what the level before lets through. */
static tw_status open_level(lowering *l, size_t number, const lowering *before, const char **index, lowering *level)
{
    twi_functions *f = l->f;
    attr_value type = type_value("T", TW_INT32);
    char *last = PRINT("%s/level_%zu/index", l->name, number);
    *level = *l;
    level->name = PRINT("%s/level_%zu", l->name, number);
    level->inputs = twi_arena_copy(f->arena, l->inputs, sizeof *l->inputs * (l->node->n_input + 1));
    if (!last || !level->name || !level->inputs || !(level->inputs[0] = PRINT("%s/taken", level->name)))
        return fail_memory(f);
    for (size_t i = 1; i < l->num_data && before; i++)
        if (!(level->inputs[i] = PRINT("%s/switch_%zu", before->name, i - 1)))
            return fail_memory(f);
    tw_status status = add_test(level, *index, (int32_t)number);
    const char *switched[] = {*index, level->inputs[0]};
    if (status == TW_OK)
        status = add(f, "Switch", last, level->device, switched, 2, &type, 1);
    *index = last;
    return status == TW_OK ? add_switches(level) : status;
}

static tw_status lower_case(lowering *l)
{
    twi_functions *f = l->f;
    size_t count = count_functions(f, l->node, "branches");
    lowering *levels = twi_arena_alloc(f->arena, sizeof *levels * (count + 1));
    call *branches = twi_arena_alloc(f->arena, sizeof *branches * (count + 1));
    const char *index = l->inputs[0];
    tw_status status = levels && branches && count ? TW_OK : fail_memory(f); /* count: once there were some */
    if (count == 1)
        return call_function(l, function_of(f, l->node, "branches"), 1);
    for (size_t i = 0; i + 1 < count && status == TW_OK; i++) {
        status = open_level(l, i, i ? &levels[i - 1] : NULL, &index, &levels[i]);
        if (status == TW_OK)
            status = inline_branch(&levels[i], function_at(f, l->node, "branches", i), true, &branches[i]);
    }
    if (status == TW_OK)
        status = inline_branch(&levels[count - 2], function_at(f, l->node, "branches", count - 1), false,
                               &branches[count - 1]);
    for (size_t i = count - 1; i > 0 && status == TW_OK; i--) {
        call sides[2] = {branches[i], branches[i - 1]};
        status = merge_sides(&levels[i - 1], sides);
        branches[i - 1] = sides[0];
    }
    if (status == TW_OK)
        status = add_outputs(f, l->name, l->device, l->node, "Tout", branches[0].results, branches[0].num_results,
                             branches[0].controls, 1);
    return status;
}

/* ---- While ------------------------------------------------------------------------------------------------------- */

/* unchanging[i]: value i comes back as it went in. */
static tw_status add_entries(lowering *l, const bool *unchanging)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    for (size_t i = 0; i < l->num_data && status == TW_OK; i++) {
        attr_value type = type_value("T", type_at(l->node, "T", i));
        attr_value attrs[] = {type, text_value("frame_name", l->name), bool_value("is_constant", unchanging[i])};
        const char *merged[] = {PRINT("%s/enter_%zu", l->name, i), PRINT("%s/next_%zu", l->name, i)};
        const char *switched[] = {PRINT("%s/merge_%zu", l->name, i), PRINT("%s/cond", l->name)};
        attr_value two[] = {type, int_value("N", 2)};
        status = add_with_controls(l, "Enter", merged[0], l->inputs[i], NULL, attrs, 3);
        if (status == TW_OK && !unchanging[i])
            status = add(f, "Merge", switched[0], l->device, merged, 2, two, 2);
        if (status == TW_OK && !unchanging[i])
            status = add(f, "Switch", PRINT("%s/switch_%zu", l->name, i), l->device, switched, 2, &type, 1);
    }
    return status;
}

static tw_status inline_part(lowering *l, const char *attr, const bool *unchanging, const char *pivot,
                             const char *changing, call *c)
{
    twi_functions *f = l->f;
    tw_status status =
        open_call(f, function_of(f, l->node, attr), PRINT("%s/%s/", l->name, attr), l->device, pivot, l->num_data, c);
    c->place.unchanging = unchanging;
    for (size_t i = 0; i < l->num_data && status == TW_OK; i++)
        if (!(c->place.arguments[i] = unchanging[i] ? PRINT("%s/enter_%zu", l->name, i) : PRINT(changing, l->name, i)))
            status = fail_memory(f);
    return status == TW_OK ? inline_function(f, &c->place, c->results, c->controls) : status;
}

/* The ways back, of which the first waits for all that a round does besides. */
static tw_status add_ways_back(lowering *l, const bool *unchanging, const call *body, char **outputs)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    bool waits = true;
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (body->num_controls + 1));
    for (size_t i = 0; i < body->num_controls && inputs; i++)
        inputs[i + 1] = body->controls[i];
    for (size_t i = 0; i < l->num_data && status == TW_OK; i++) {
        attr_value type = type_value("T", type_at(l->node, "T", i));
        const char *out = PRINT("%s/switch_%zu", l->name, i);
        outputs[i] = unchanging[i] ? l->inputs[i] : PRINT("%s/exit_%zu", l->name, i);
        if (!inputs || !out || !outputs[i])
            return fail_memory(f);
        inputs[0] = body->results[i];
        if (!unchanging[i])
            status = add(f, "NextIteration", PRINT("%s/next_%zu", l->name, i), l->device, inputs,
                         waits ? body->num_controls + 1 : 1, &type, 1);
        waits = waits && unchanging[i];
        if (status == TW_OK && !unchanging[i])
            status = add(f, "Exit", outputs[i], l->device, &out, 1, &type, 1);
    }
    return status;
}

static tw_status lower_while(lowering *l)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    const Twi__FunctionDef *function = function_of(f, l->node, "body");
    bool *unchanging = twi_arena_alloc(f->arena, l->num_data + 1);
    char **outputs = twi_arena_alloc(f->arena, sizeof *outputs * (l->num_data + 1));
    size_t first = 0;
    call test, body;
    if (!function || !unchanging || !outputs)
        return fail_memory(f);
    for (size_t i = 0; i < l->num_data && i < function->signature->n_output_arg && i < function->signature->n_input_arg;
         i++) {
        const char *value = returned(function, i);
        unchanging[i] = value && strcmp(value, function->signature->input_arg[i]->name) == 0;
    }
    while (first < l->num_data && unchanging[first])
        first++;
    if (first == l->num_data || function->signature->n_output_arg != l->num_data)
        return twi_fail(f->error, TW_INVALID_ARGUMENT, "node '%s' (%s): no value changes from round to round", l->name,
                        l->node->op);
    TWI_TRY(add_entries(l, unchanging));
    TWI_TRY(inline_part(l, "cond", unchanging, PRINT("^%s/merge_%zu", l->name, first), "%s/merge_%zu", &test));
    if (test.num_results != 1)
        TWI_LEAVE(twi_fail(f->error, TW_INVALID_ARGUMENT, "node '%s' (%s): its condition gives %zu values", l->name,
                           l->node->op, test.num_results));
    TWI_TRY(add(f, "LoopCond", PRINT("%s/cond", l->name), l->device, (const char *const *)test.results, 1, NULL, 0));
    attr_value type = type_value("T", type_at(l->node, "T", first));
    const char *pivot = PRINT("%s/switch_%zu:1", l->name, first);
    TWI_TRY(add(f, "Identity", PRINT("%s/body", l->name), l->device, &pivot, 1, &type, 1));
    TWI_TRY(inline_part(l, "body", unchanging, PRINT("^%s/body", l->name), "%s/switch_%zu:1", &body));
    TWI_TRY(add_ways_back(l, unchanging, &body, outputs));
    for (size_t i = 0; i < l->num_data; i++)
        if (unchanging[i] && !note_passed(f, l->name, i, l->inputs[i]))
            TWI_LEAVE(fail_memory(f));
    TWI_TRY(add_outputs(f, l->name, l->device, l->node, "T", outputs, l->num_data, NULL, 0));
done:
    return status;
}

/* ---- functions that are kept ------------------------------------------------------------------------------------- */

/* Where the node's captured values for the function begin among its inputs, and how many there are. */
static size_t find_captured(twi_functions *f, const Twi__NodeDef *node, const char *attr, size_t *first)
{
    const twi_op *op = twi_op_find(node->op);
    twi_signature signature;
    size_t length = strlen(attr);
    *first = 0;
    if (!twi_signature_parse(f->arena, op, &signature))
        return 0;
    for (int i = 0; i < signature.num_inputs; i++) {
        const char *name = signature.inputs[i].name;
        bool own = strncmp(name, attr, length) == 0 && strcmp(name + length, "_other_arguments") == 0;
        size_t count = (size_t)length_of(node, &signature.inputs[i]);
        if (own || strcmp(name, "other_arguments") == 0)
            return count;
        *first += count;
    }
    return 0;
}

/* Whether the node takes texts where it takes that argument. */
static bool takes_text(twi_functions *f, const Twi__NodeDef *node, const char *argument)
{
    const twi_op *op = twi_op_find(node->op);
    twi_signature signature;
    size_t end = 0;
    if (!op || !twi_signature_parse(f->arena, op, &signature))
        return false;
    for (int i = 0; i < signature.num_inputs; i++) {
        size_t first = end;
        end += (size_t)length_of(node, &signature.inputs[i]);
        for (size_t k = first; k < end && k < node->n_input; k++)
            if (strcmp(node->input[k], argument) == 0 &&
                twi_signature_wants_text(&signature, signature.inputs[i].type_attr))
                return true;
    }
    return false;
}

/* The type of an argument that TensorFlow calls a variant: text where it is a sparse or ragged tensor. */
static int32_t type_of_argument(twi_functions *f, const Twi__FunctionDef *function, size_t i)
{
    const Twi__FunctionDef__ArgDef *argument = function->signature->input_arg[i];
    for (size_t k = 0; k < function->n_node_def && argument->type == PROTO_VARIANT; k++)
        if (takes_text(f, function->node_def[k], argument->name))
            return TW_STRING;
    return argument->type;
}

/* Arguments of the function: TowerArgument nodes, but for captured resources. */
static tw_status add_arguments(twi_functions *f, const Twi__NodeDef *node, char **inputs, const char *attr, call *c)
{
    const Twi__FunctionDef *function = c->place.function;
    size_t count = function->signature->n_input_arg, first, captured = find_captured(f, node, attr, &first);
    tw_status status = TW_OK;
    if (captured > count || first + captured > node->n_input)
        return twi_fail(f->error, TW_INVALID_ARGUMENT,
                        "function '%s' takes %zu arguments, of which node '%s' captures %zu",
                        function->signature->name, count, node->name, captured);
    for (size_t i = 0; i < count && status == TW_OK; i++) {
        int32_t type = type_of_argument(f, function, i);
        attr_value value = type_value("T", type);
        c->place.arguments[i] = type == PROTO_RESOURCE && i + captured >= count
                                    ? inputs[first + (i + captured - count)]
                                    : PRINT("%sarg/%zu", c->place.prefix, i);
        if (type != PROTO_RESOURCE)
            status = add(f, type == PROTO_VARIANT ? "TowerVariant" : "TowerArgument", c->place.arguments[i],
                         c->place.device, NULL, 0, &value, type != PROTO_VARIANT);
        else if (i + captured < count)
            status = twi_fail(f->error, TW_INVALID_ARGUMENT, "function '%s' takes a resource that is not captured",
                              function->signature->name);
    }
    return status;
}

/* What it gives, under its name. */
static tw_status add_given(twi_functions *f, const char *name, const call *c)
{
    Twi__AttrValue__ListValue *list = twi_arena_alloc(f->arena, sizeof *list);
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (c->num_results + c->num_controls + 1));
    attr_value types = {.name = "T"};
    if (!list || !inputs)
        return fail_memory(f);
    twi__attr_value__list_value__init(list);
    list->n_type = c->num_results;
    list->type = twi_arena_alloc(f->arena, sizeof *list->type * (c->num_results + 1));
    for (size_t i = 0; i < c->num_results && list->type; i++) {
        list->type[i] = c->place.function->signature->output_arg[i]->type;
        inputs[i] = c->results[i];
    }
    for (size_t i = 0; i < c->num_controls; i++)
        inputs[c->num_results + i] = c->controls[i];
    twi__attr_value__init(&types.value);
    types.value.value_case = TWI__ATTR_VALUE__VALUE_LIST;
    types.value.list = list;
    return list->type ? add(f, c->num_results ? "IdentityN" : "NoOp", name, c->place.device, inputs,
                            c->num_results + c->num_controls, &types, c->num_results > 0)
                      : fail_memory(f);
}

/* A node whose op is the function itself. */
static tw_status lower_function(lowering *l)
{
    twi_functions *f = l->f;
    const Twi__FunctionDef *function = function_as_op(f, l->node);
    call c;
    tw_status status = open_called(l, function, 0, &c);
    if (status == TW_OK)
        status = inline_function(f, &c.place, c.results, c.controls);
    for (size_t i = 0; i < c.num_results && status == TW_OK; i++)
        if (function->signature->output_arg[i]->type == PROTO_RESOURCE && !note_passed(f, l->name, i, c.results[i]))
            status = fail_memory(f);
    return status == TW_OK ? add_given(f, l->name, &c) : status;
}

/* A data set's function runs on the host, where no node asks for more. */
static tw_status keep_function(twi_functions *f, const Twi__NodeDef *node, const Twi__FunctionDef *function,
                               const char *name, const char *attr, char **inputs)
{
    const char *at = PRINT("%s/%s", name, attr);
    call c;
    tw_status status = open_call(f, function, PRINT("%s/%s/", name, attr), "/device:CPU:0", NULL,
                                 function->signature->n_input_arg, &c);
    if (status == TW_OK && !at)
        status = fail_memory(f);
    if (status == TW_OK)
        status = add_arguments(f, node, inputs, attr, &c);
    if (status == TW_OK)
        status = inline_function(f, &c.place, c.results, c.controls);
    return status == TW_OK ? add_given(f, at, &c) : status;
}

/* Keeps all that the node calls. In its attributes the function's place takes the function's: as a placeholder, which
 * files have in libraries alone. */
static tw_status keep_functions(twi_functions *f, Twi__NodeDef *node, char **inputs)
{
    tw_status status = TW_OK;
    for (size_t i = 0; i < node->n_attr && twi_op_find(node->op) && status == TW_OK; i++) {
        const char *attr = node->attr[i]->key;
        const Twi__FunctionDef *function = function_of(f, node, attr);
        if (!function || attr[0] == '_')
            continue;
        attr_value place = {.name = attr};
        twi__attr_value__init(&place.value);
        place.value.value_case = TWI__ATTR_VALUE__VALUE_PLACEHOLDER;
        place.value.placeholder = PRINT("%s/%s", node->name, attr);
        size_t count = node->n_attr;
        node->n_attr = i;
        if (!place.value.placeholder || !add_attr(f, node, &place))
            status = fail_memory(f);
        node->n_attr = count;
        if (status == TW_OK)
            status = keep_function(f, node, function, node->name, attr, inputs);
    }
    return status;
}

/* ---- data sets that parse examples: a map, whose function is ParseExampleV2 ------------------------------------- */

/* A list of an attribute; empty if it is none. */
static const Twi__AttrValue__ListValue *list_of(const Twi__NodeDef *node, const char *attr)
{
    static const Twi__AttrValue__ListValue none = TWI__ATTR_VALUE__LIST_VALUE__INIT;
    const Twi__AttrValue *value = find_attr(node, attr);
    return value && value->value_case == TWI__ATTR_VALUE__VALUE_LIST ? value->list : &none;
}

static attr_value list_value(twi_functions *f, const char *name, const Twi__AttrValue__ListValue *list)
{
    attr_value a = {.name = name};
    twi__attr_value__init(&a.value);
    a.value.value_case = TWI__ATTR_VALUE__VALUE_LIST;
    a.value.list = twi_arena_copy(f->arena, list, sizeof *list);
    f->lacks_memory |= !a.value.list;
    return a;
}

static attr_value copied_value(const Twi__NodeDef *node, const char *name)
{
    attr_value a = {.name = name};
    twi__attr_value__init(&a.value);
    if (find_attr(node, name))
        a.value = *find_attr(node, name);
    return a;
}

/* A vector of texts, as a node. */
static tw_status add_texts(twi_functions *f, const char *name, const char *device,
                           const Twi__AttrValue__ListValue *list)
{
    Twi__TensorShapeProto *shape = twi_shape_to_proto(f->arena, TW_SHAPE((int64_t)list->n_s));
    Twi__TensorProto *tensor = twi_arena_alloc(f->arena, sizeof *tensor);
    attr_value attrs[] = {type_value("dtype", TW_STRING), {.name = "value"}};
    if (!shape || !tensor)
        return fail_memory(f);
    twi__tensor_proto__init(tensor);
    tensor->dtype = TW_STRING;
    tensor->tensor_shape = shape;
    tensor->n_string_val = list->n_s;
    tensor->string_val = list->s;
    twi__attr_value__init(&attrs[1].value);
    attrs[1].value.value_case = TWI__ATTR_VALUE__VALUE_TENSOR;
    attrs[1].value.tensor = tensor;
    return add(f, "Const", name, device, NULL, 0, attrs, 2);
}

/* A component of what such a data set gives. */
typedef struct parsed {
    ProtobufCBinaryData key;
    const char *value;
    int32_t type;
} parsed;

static int by_key(const void *a, const void *b)
{
    const parsed *x = a, *y = b;
    size_t common = x->key.len < y->key.len ? x->key.len : y->key.len;
    int order = common ? memcmp(x->key.data, y->key.data, common) : 0;
    return order ? order : x->key.len < y->key.len ? -1 : x->key.len > y->key.len;
}

/* The function's nodes but the last: what it gives, sorted by key. */
static tw_status add_parsing(lowering *l, const Twi__AttrValue__ListValue *sparse,
                             const Twi__AttrValue__ListValue *dense, const Twi__AttrValue__ListValue *ragged,
                             const char *device, parsed *given)
{
    static const char *const texts[] = {"names", "sparse_keys", "dense_keys", "ragged_keys"};
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    Twi__AttrValue__ListValue none = TWI__ATTR_VALUE__LIST_VALUE__INIT;
    const Twi__AttrValue__ListValue *lists[] = {&none, sparse, dense, ragged};
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (dense->n_s + 5));
    const char *parse = PRINT("%s/f/parse", l->name);
    attr_value string = type_value("T", TW_STRING), ints = int_value("num_sparse", (int64_t)sparse->n_s);
    attr_value attrs[] = {copied_value(l->node, "Tdense"),
                          copied_value(l->node, "dense_shapes"),
                          copied_value(l->node, "sparse_types"),
                          copied_value(l->node, "ragged_value_types"),
                          copied_value(l->node, "ragged_split_types"),
                          ints};
    if (!inputs || !parse)
        return fail_memory(f);
    TWI_TRY(add(f, "TowerArgument", inputs[0] = PRINT("%s/f/arg/0", l->name), device, NULL, 0, &string, 1));
    for (int i = 0; i < 4; i++)
        TWI_TRY(add_texts(f, inputs[1 + i] = PRINT("%s/f/%s", l->name, texts[i]), device, lists[i]));
    for (size_t i = 0; i < dense->n_s; i++) {
        attr_value type = type_value("T", type_at(l->node, "Tdense", i));
        TWI_TRY(
            add(f, "TowerArgument", inputs[5 + i] = PRINT("%s/f/arg/%zu", l->name, i + 1), device, NULL, 0, &type, 1));
        given[sparse->n_s + i] = (parsed){dense->s[i], PRINT("%s:%zu", parse, 3 * sparse->n_s + i), type.value.type};
    }
    TWI_TRY(add(f, "ParseExampleV2", parse, device, inputs, dense->n_s + 5, attrs, 6));
    for (size_t i = 0; i < sparse->n_s; i++) {
        const char *parts[3];
        attr_value type = type_value("T", type_at(l->node, "sparse_types", i));
        for (size_t k = 0; k < 3; k++)
            parts[k] = PRINT("%s:%zu", parse, k * sparse->n_s + i);
        given[i] = (parsed){sparse->s[i], PRINT("%s/f/sparse_%zu", l->name, i), TW_STRING};
        TWI_TRY(add(f, "SerializeSparse", given[i].value, device, parts, 3, &type, 1));
    }
    for (size_t i = 0; i < ragged->n_s; i++) {
        size_t values = 3 * sparse->n_s + dense->n_s + i, count = sparse->n_s + dense->n_s;
        const char *parts[] = {PRINT("%s:%zu", parse, values + ragged->n_s), PRINT("%s:%zu", parse, values)};
        attr_value kinds[] = {int_value("RAGGED_RANK", 1), bool_value("batched_input", false),
                              type_value("Tvalues", type_at(l->node, "ragged_value_types", i)),
                              type_value("Tsplits", type_at(l->node, "ragged_split_types", i))};
        given[count + i] = (parsed){ragged->s[i], PRINT("%s/f/ragged_%zu", l->name, i), TW_STRING};
        TWI_TRY(add(f, "RaggedTensorToVariant", given[count + i].value, device, parts, 2, kinds, 4));
    }
    qsort(given, sparse->n_s + dense->n_s + ragged->n_s, sizeof *given, by_key);
done:
    return status;
}

/* What does not fit together it leaves to the data set's node, which refuses it. */
static tw_status lower_parse(lowering *l)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    const Twi__AttrValue__ListValue *sparse = list_of(l->node, "sparse_keys"), *dense = list_of(l->node, "dense_keys");
    const Twi__AttrValue__ListValue *ragged = list_of(l->node, "ragged_keys");
    size_t count = sparse->n_s + dense->n_s + ragged->n_s;
    parsed *given = twi_arena_alloc(f->arena, sizeof *given * (count + 1));
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (count + l->node->n_input + 1));
    Twi__AttrValue__ListValue types = TWI__ATTR_VALUE__LIST_VALUE__INIT;
    types.type = twi_arena_alloc(f->arena, sizeof *types.type * (count + 1));
    if (!given || !inputs || !types.type)
        return fail_memory(f);
    if (count_types(l->node, "ragged_value_types") != ragged->n_s ||
        count_types(l->node, "ragged_split_types") != ragged->n_s ||
        count_types(l->node, "sparse_types") != sparse->n_s || count_types(l->node, "Tdense") != dense->n_s ||
        l->num_data != 2 + dense->n_s || count == 0) {
        Twi__NodeDef *copy = twi_arena_copy(f->arena, l->node, sizeof *copy);
        if (!copy || !twi_push(&f->nodes, copy))
            return fail_memory(f);
        copy->name = (char *)l->name;
        copy->device = (char *)l->device;
        copy->input = l->inputs;
        return TW_OK;
    }
    TWI_TRY(add_parsing(l, sparse, dense, ragged, "/device:CPU:0", given));
    for (size_t i = 0; i < count; i++) {
        inputs[i] = given[i].value;
        types.type[types.n_type++] = given[i].type;
    }
    attr_value gives = list_value(f, "T", &types), place = {.name = "f"};
    TWI_TRY(add(f, "IdentityN", PRINT("%s/f", l->name), "/device:CPU:0", inputs, count, &gives, 1));
    twi__attr_value__init(&place.value);
    place.value.value_case = TWI__ATTR_VALUE__VALUE_PLACEHOLDER;
    place.value.placeholder = PRINT("%s/f", l->name);
    attr_value attrs[] = {place, copied_value(l->node, "Tdense"), copied_value(l->node, "output_types"),
                          copied_value(l->node, "output_shapes"), bool_value("preserve_cardinality", true)};
    attrs[1].name = "Targuments";
    inputs[0] = l->inputs[0];
    for (size_t i = 0; i < dense->n_s; i++)
        inputs[1 + i] = l->inputs[2 + i];
    inputs[1 + dense->n_s] = l->inputs[1];
    for (size_t i = l->num_data; i < l->node->n_input; i++)
        inputs[i] = l->inputs[i];
    TWI_TRY(add(f, "ParallelMapDatasetV2", l->name, l->device, inputs, l->node->n_input, attrs, 5));
done:
    return status;
}

/* ---- gradients of functions -------------------------------------------------------------------------------------- */

/* The function that the library says gives the gradient of this one; NULL: it says nothing. */
static const Twi__FunctionDef *registered_gradient(twi_functions *f, const Twi__FunctionDef *function)
{
    const Twi__FunctionDef *found = NULL;
    for (size_t i = 0; i < f->num_libraries && !found; i++)
        for (size_t k = 0; k < f->libraries[i].message->n_gradient && !found; k++) {
            const Twi__GradientDef *gradient = f->libraries[i].message->gradient[k];
            if (strcmp(gradient->function_name, function->signature->name) == 0)
                found = twi_map_get(&f->by_name, gradient->gradient_func);
        }
    return found;
}

/* The arguments as nodes of their own: what is given twice is two. The controls follow. */
static tw_status name_arguments(lowering *l, size_t count, char **inputs, char **original)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    for (size_t i = 0; i < count && status == TW_OK; i++) {
        attr_value type = type_value("T", type_at(l->node, "Tin", i));
        if (type.value.type == PROTO_RESOURCE)
            return twi_fail(f->error, TW_UNIMPLEMENTED,
                            "node '%s' (%s): its input %zu is a handle, which has no gradient", l->name, l->node->op,
                            i);
        original[i] = l->node->input[i];
        inputs[i] = PRINT("%s/x_%zu", l->name, i);
        status = add(f, "Identity", inputs[i], l->device, (const char *const *)&l->inputs[i], 1, &type, 1);
    }
    for (size_t i = l->num_data; i < l->node->n_input; i++) {
        original[count + i - l->num_data] = l->node->input[i];
        inputs[count + i - l->num_data] = l->inputs[i];
    }
    return status;
}

static const char *control_on(twi_functions *f, const char *value)
{
    const char *colon = strrchr(value, ':');
    return PRINT("^%.*s", colon ? (int)(colon - value) : (int)strlen(value), value);
}

/* An IdentityN of the arguments (twi_function_gradient). Inputs: the function's arguments, then a gradient for each of
 * its results. */
static tw_status lower_gradient(lowering *l)
{
    twi_functions *f = l->f;
    const Twi__FunctionDef *function = function_of(f, l->node, "f");
    if (!function) /* it was there when the node was looked at */
        return fail_memory(f);
    const Twi__FunctionDef *gradient = registered_gradient(f, function);
    size_t arguments = function->signature->n_input_arg, results = function->signature->n_output_arg;
    size_t controls = l->node->n_input - l->num_data, count = arguments + controls;
    if (gradient)
        return call_function(l, gradient, 0);
    if (l->num_data != arguments + results || count_types(l->node, "Tin") != l->num_data ||
        count_types(l->node, "Tout") != arguments || !arguments || !results)
        return twi_fail(f->error, TW_INVALID_ARGUMENT,
                        "node '%s' (%s) has %zu inputs and %zu outputs; its function takes %zu and gives %zu", l->name,
                        l->node->op, l->num_data, count_types(l->node, "Tout"), arguments, results);
    char **original = twi_arena_alloc(f->arena, sizeof *original * (count + 1));
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (count + 2 * results + 2));
    twi_function_gradient *noted = twi_arena_alloc(f->arena, sizeof *noted);
    Twi__NodeDef body = *l->node;
    lowering within = *l;
    call c;
    attr_value types = copied_value(l->node, "Tout");
    if (!original || !inputs || !noted)
        return fail_memory(f);
    tw_status status = name_arguments(l, arguments, (char **)inputs, original);
    body.input = original;
    body.n_input = count;
    within.node = &body;
    within.inputs = (char **)inputs;
    within.num_data = arguments;
    if (status == TW_OK)
        status = open_called(&within, function, 0, &c);
    if (status == TW_OK)
        status = inline_function(f, &c.place, c.results, c.controls);
    if (status != TW_OK)
        return status;
    *noted = (twi_function_gradient){(int)arguments, (int)controls, (int)results, c.results, l->inputs + arguments};
    for (size_t i = 0; i < results; i++) {
        inputs[count + 2 * i] = control_on(f, noted->ys[i]);
        inputs[count + 2 * i + 1] = control_on(f, noted->dys[i]);
        if (!inputs[count + 2 * i] || !inputs[count + 2 * i + 1])
            return fail_memory(f);
    }
    types.name = "T";
    status = add(f, "IdentityN", l->name, l->device, inputs, count + 2 * results, &types, 1);
    return status == TW_OK && !twi_map_put(&f->gradients, l->name, noted) ? fail_memory(f) : status;
}

const twi_function_gradient *twi_functions_gradient(const twi_functions *f, const char *name)
{
    return f ? twi_map_get(&f->gradients, name) : NULL;
}

/* ---- batch normalization that keeps averages --------------------------------------------------------------------- */

/* TensorFlow 2's gives moving averages of mean and variance, in which the batch has this part. */
static float part_of_batch(const Twi__NodeDef *node)
{
    const Twi__AttrValue *part = find_attr(node, "exponential_avg_factor"), *training = find_attr(node, "is_training");
    return part && part->value_case == TWI__ATTR_VALUE__VALUE_F && !(training && !training->b) ? part->f : 1;
}

static tw_status add_float(twi_functions *f, const char *name, const char *device, float value)
{
    Twi__TensorShapeProto *shape = twi_shape_to_proto(f->arena, TW_SCALAR);
    Twi__TensorProto *tensor = twi_arena_alloc(f->arena, sizeof *tensor);
    float *values = twi_arena_copy(f->arena, &value, sizeof value);
    attr_value attrs[] = {type_value("dtype", TW_FLOAT32), {.name = "value"}};
    if (!shape || !tensor || !values)
        return fail_memory(f);
    twi__tensor_proto__init(tensor);
    tensor->dtype = TW_FLOAT32;
    tensor->tensor_shape = shape;
    tensor->n_float_val = 1;
    tensor->float_val = values;
    twi__attr_value__init(&attrs[1].value);
    attrs[1].value.value_case = TWI__ATTR_VALUE__VALUE_TENSOR;
    attrs[1].value.tensor = tensor;
    return add(f, "Const", name, device, NULL, 0, attrs, 2);
}

/* The node NAME/batch gives what the batch alone has, and its output i goes into the average that input i + 2 is. */
static tw_status add_average(lowering *l, int i, const char *name)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    attr_value type = type_value("T", TW_FLOAT32);
    const char *before[] = {l->inputs[i + 2], PRINT("%s/rest", l->name)};
    const char *batch[] = {PRINT("%s/batch:%d", l->name, i), PRINT("%s/part", l->name)};
    const char *parts[] = {PRINT("%s/before", name), PRINT("%s/batch", name)};
    if (!before[1] || !batch[0] || !batch[1])
        return fail_memory(f);
    TWI_TRY(add(f, "Mul", parts[0], l->device, before, 2, &type, 1));
    TWI_TRY(add(f, "Mul", parts[1], l->device, batch, 2, &type, 1));
    TWI_TRY(add(f, "AddV2", name, l->device, parts, 2, &type, 1));
done:
    return status;
}

static tw_status lower_batch_norm(lowering *l)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    twi_signature signature;
    if (!twi_signature_parse(f->arena, twi_op_find(l->node->op), &signature))
        return fail_memory(f);
    size_t count = (size_t)signature.num_outputs;
    const char *batch = PRINT("%s/batch", l->name), *outputs[6] = {batch};
    Twi__NodeDef *copy = twi_arena_copy(f->arena, l->node, sizeof *copy);
    Twi__AttrValue__ListValue types = TWI__ATTR_VALUE__LIST_VALUE__INIT;
    types.type = twi_arena_alloc(f->arena, sizeof *types.type * count);
    if (!batch || !copy || !types.type || !(copy->attr = twi_arena_alloc(f->arena, sizeof *copy->attr * copy->n_attr)))
        return fail_memory(f);
    copy->name = (char *)batch;
    copy->device = (char *)l->device;
    copy->input = l->inputs;
    copy->n_attr = 0;
    for (size_t i = 0; i < l->node->n_attr; i++)
        if (strcmp(l->node->attr[i]->key, "exponential_avg_factor") != 0)
            copy->attr[copy->n_attr++] = l->node->attr[i];
    if (l->num_data != 5 || !twi_push(&f->nodes, copy))
        return l->num_data != 5 ? twi_fail(f->error, TW_INVALID_ARGUMENT, "node '%s' (%s) has %zu inputs, expected 5",
                                           l->name, l->node->op, l->num_data)
                                : fail_memory(f);
    TWI_TRY(add_float(f, PRINT("%s/part", l->name), l->device, part_of_batch(l->node)));
    TWI_TRY(add_float(f, PRINT("%s/rest", l->name), l->device, 1 - part_of_batch(l->node)));
    TWI_TRY(add_average(l, 1, outputs[1] = PRINT("%s/mean", l->name)));
    TWI_TRY(add_average(l, 2, outputs[2] = PRINT("%s/variance", l->name)));
    for (size_t i = 3; i < count; i++)
        if (!(outputs[i] = PRINT("%s/batch:%zu", l->name, i)))
            return fail_memory(f);
    types.n_type = count;
    for (size_t i = 0; i < count; i++)
        types.type[i] = i == 0 && find_attr(l->node, "T") ? find_attr(l->node, "T")->type : TW_FLOAT32;
    attr_value gives = list_value(f, "T", &types);
    status = gives.value.list ? add(f, "IdentityN", l->name, l->device, outputs, count, &gives, 1) : fail_memory(f);
done:
    return status;
}

static bool keeps_averages(const Twi__NodeDef *node)
{
    return part_of_batch(node) != 1;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *functions[2]; /* attributes that name them */
    tw_status (*lower)(lowering *l);
    bool (*applies)(const Twi__NodeDef *node); /* NULL: always */
} lowered[] = {
    {"PartitionedCall", {"f", NULL}, lower_call},
    {"StatefulPartitionedCall", {"f", NULL}, lower_call},
    {"If", {"then_branch", "else_branch"}, lower_if},
    {"StatelessIf", {"then_branch", "else_branch"}, lower_if},
    {"While", {"cond", "body"}, lower_while},
    {"StatelessWhile", {"cond", "body"}, lower_while},
    {"Case", {"branches", NULL}, lower_case},
    {"StatelessCase", {"branches", NULL}, lower_case},
    {"SymbolicGradient", {"f", NULL}, lower_gradient},
    {"ParseExampleDataset", {NULL}, lower_parse},
    {"ParseExampleDatasetV2", {NULL}, lower_parse},
    {"ExperimentalParseExampleDataset", {NULL}, lower_parse},
    {"FusedBatchNorm", {NULL}, lower_batch_norm, keeps_averages},
    {"FusedBatchNormV2", {NULL}, lower_batch_norm, keeps_averages},
    {"FusedBatchNormV3", {NULL}, lower_batch_norm, keeps_averages},
    {NULL, {NULL}, lower_function}, /* the last: of a name that the library has */
};

/* Which row is for the node; -1: it stays as it is. One whose functions are not there is missed by name when it is run.
 */
static int row_of(twi_functions *f, const Twi__NodeDef *node)
{
    size_t last = sizeof lowered / sizeof *lowered - 1;
    for (size_t i = 0; i < last; i++) {
        bool there = strcmp(lowered[i].name, node->op) == 0 && (!lowered[i].applies || lowered[i].applies(node));
        for (int k = 0; k < 2 && there && lowered[i].functions[k]; k++)
            there = count_functions(f, node, lowered[i].functions[k]) > 0;
        const Twi__AttrValue *type = there ? find_attr(node, "Tcond") : NULL;
        if (there && (!type || type->type == TW_BOOL))
            return (int)i;
    }
    return function_as_op(f, node) ? (int)last : -1;
}

const char *twi_functions_missing(twi_arena *arena, twi_functions *functions, const Twi__NodeDef *node)
{
    const char *missing = NULL;
    bool lacks_memory = false; /* then the op is missed by its own name */
    for (size_t i = 0; i < sizeof lowered / sizeof *lowered; i++)
        for (int k = 0; k < 2 && lowered[i].functions[k] && strcmp(lowered[i].name, node->op) == 0 && !missing; k++) {
            const Twi__AttrValue *value = find_attr(node, lowered[i].functions[k]);
            bool is_one = value && value->value_case == TWI__ATTR_VALUE__VALUE_FUNC;
            if (is_one && !(functions && function_named_in(functions, &value->func)))
                missing = function_name(arena, &value->func, &lacks_memory);
        }
    return missing;
}

/* Whether the node takes nothing that says where it is, or uses what may be changed before: in a function only. What
 * comes after another node of the function is where that one is. A condition is where its predicate is, for all of its
 * sides. */
static bool needs_pivot(const place *p, const Twi__NodeDef *node, bool is_condition)
{
    bool is_lost = count_data(node) == node->n_input, uses = false;
    for (size_t i = 0; i < count_data(node) && p->pivot; i++) {
        int argument = argument_number(p, node->input[i]);
        if (i == 0 || !is_condition)
            is_lost = is_lost && stays(p, node->input[i]);
        uses = uses || (argument >= 0 && p->function->signature->input_arg[argument]->type == PROTO_RESOURCE);
    }
    return p->pivot && (is_lost || (uses && p->waits));
}

static tw_status add_copy(twi_functions *f, const place *p, const Twi__NodeDef *node, const char *name,
                          const char *device, char **inputs, size_t num_inputs)
{
    Twi__NodeDef *copy = twi_arena_copy(f->arena, node, sizeof *copy);
    if (!copy)
        return fail_memory(f);
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
        return fail_memory(f);
    return keep_functions(f, copy, inputs);
}

static tw_status add_node(twi_functions *f, const place *p, const Twi__NodeDef *node)
{
    int row = row_of(f, node);
    bool is_condition = row >= 0 && (lowered[row].lower == lower_if || lowered[row].lower == lower_case);
    bool pivot = needs_pivot(p, node, is_condition);
    char *name = p->function ? PRINT("%s%s", p->prefix, node->name) : node->name;
    const char *device = node->device[0] || !p->device ? node->device : p->device;
    char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (node->n_input + 2));
    if (!name || !inputs)
        return fail_memory(f);
    for (size_t i = 0; i < node->n_input; i++)
        if (!(inputs[i] = resolve(f, p, node->input[i])))
            return fail_memory(f);
    if (pivot)
        inputs[node->n_input] = (char *)p->pivot;
    if (row < 0)
        return add_copy(f, p, node, name, device, inputs, node->n_input + pivot);
    Twi__NodeDef with_pivot = *node;
    with_pivot.n_input += pivot;
    lowering l = {f, &with_pivot, name, device, inputs, count_data(node), p};
    tw_status status = lowered[row].lower(&l);
    return status;
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static tw_status read_library(twi_functions *f, const ProtobufCBinaryData *bytes, library *library)
{
    twi_proto_start(&library->proto, bytes->len);
    library->message = twi__function_def_library__unpack(&library->proto.allocator, bytes->len, bytes->data);
    if (!library->message)
        return library->proto.out_of_memory
                   ? fail_memory(f)
                   : twi_fail(f->error, TW_INVALID_ARGUMENT, "the library of functions cannot be read");
    bool fits = true;
    for (size_t i = 0; i < library->message->n_function && fits; i++) {
        f->most += 16 * (int)library->message->function[i]->n_node_def;
        if (library->message->function[i]->signature)
            fits =
                twi_map_put(&f->by_name, library->message->function[i]->signature->name, library->message->function[i]);
    }
    return fits ? TW_OK : fail_memory(f);
}

/* Who takes a handle that a call gives, or what a loop gives as it came, takes it where the call has it from, and comes
 * after the call. A handle is made again in each plan that needs it (plan/border.c, plan/loops.c): as one of a call's
 * outputs it would bring the whole call along. */
static tw_status lead_past(twi_functions *f, Twi__NodeDef *node)
{
    char **inputs = NULL;
    size_t count = node->n_input, data = count_data(node);
    for (size_t i = 0; i < data; i++) {
        char *value = twi_map_get(&f->passed, node->input[i]);
        if (!value)
            continue;
        if (!inputs) {
            inputs = twi_arena_alloc(f->arena, sizeof *inputs * (count + data + 1));
            if (!inputs)
                return fail_memory(f);
            memcpy(inputs, node->input, sizeof *inputs * count);
        }
        char *further = twi_map_get(&f->passed, value);
        for (int k = 0; further && k < f->passed.count; k++, further = twi_map_get(&f->passed, value)) /* no circle */
            value = further;
        const char *colon = strrchr(node->input[i], ':');
        int length = colon ? (int)(colon - node->input[i]) : (int)strlen(node->input[i]);
        if (!(inputs[node->n_input++] = PRINT("^%.*s", length, node->input[i])))
            return fail_memory(f);
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
        return fail_memory(f);
    for (; f->num_libraries < def->n_library && status == TW_OK; f->num_libraries++)
        status = read_library(f, &def->library[f->num_libraries], &f->libraries[f->num_libraries]);
    place graph = {.prefix = ""};
    for (size_t i = 0; i < def->n_node && status == TW_OK; i++)
        status = add_node(f, &graph, def->node[i]);
    for (int i = 0; i < f->nodes.count && f->passed.count && status == TW_OK; i++)
        status = lead_past(f, f->nodes.items[i]);
    return status == TW_OK && (f->lacks_memory || none.lacks_memory) ? fail_memory(f) : status;
}

Twi__NodeDef **twi_functions_nodes(const twi_functions *f, size_t *count)
{
    *count = (size_t)f->nodes.count;
    return f->nodes.items;
}
