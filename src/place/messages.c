/* messages.c - what is said when a node cannot be placed: TensorFlow's words, which people and tools search for. */
#include "place/colocation.h"

#include <ctype.h>
#include <string.h>

/* ---- attributes and nodes as TensorFlow summarizes them -------------------------------------------------------- */

static void put_type(twi_text *text, tw_dtype type)
{
    twi_text_printf(text, "DT_");
    for (const char *name = tw_dtype_name(type); *name; name++)
        twi_text_printf(text, "%c", toupper((unsigned char)*name));
}

static void put_string(twi_text *text, tw_string s)
{
    twi_text_printf(text, "\"");
    for (size_t i = 0; i < s.size; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c == '"' || c == '\\')
            twi_text_printf(text, "\\%c", c);
        else if (c == '\n')
            twi_text_printf(text, "\\n");
        else if (c < 32 || c >= 127)
            twi_text_printf(text, "\\%03o", c);
        else
            twi_text_printf(text, "%c", c);
    }
    twi_text_printf(text, "\"");
}

static void put_shape(twi_text *text, tw_shape shape)
{
    char out[256];
    twi_text_printf(text, "%s", tw_shape_text(shape, out, sizeof out));
}

/* The first three values are enough to recognize a constant. */
static void put_tensor(twi_text *text, const tw_tensor *tensor)
{
    twi_text_printf(text, "Tensor<type: %s shape: ", tw_dtype_name(tw_tensor_dtype(tensor)));
    put_shape(text, tw_tensor_shape(tensor));
    twi_text_printf(text, " values:");
    int64_t count = tw_tensor_elements(tensor);
    for (int64_t i = 0; i < count && i < 3; i++)
        if (tw_tensor_dtype(tensor) == TW_STRING) {
            twi_text_printf(text, " ");
            put_string(text, ((const tw_string *)tw_tensor_data(tensor))[i]);
        } else if (tw_dtype_is_complex(tw_tensor_dtype(tensor))) {
            twi_text_printf(text, " (%.9g,%.9g)", tw_tensor_value(tensor, i), tw_tensor_imaginary(tensor, i));
        } else {
            twi_text_printf(text, " %.9g", tw_tensor_value(tensor, i));
        }
    twi_text_printf(text, "%s>", count > 3 ? "..." : "");
}

static void put_item(twi_text *text, const twi_attr *attr, int i)
{
    switch (attr->kind) {
    case TW_ATTR_INTS:
        twi_text_printf(text, "%lld", (long long)attr->ints[i]);
        break;
    case TW_ATTR_FLOATS:
        twi_text_printf(text, "%.9g", (double)attr->floats[i]);
        break;
    case TW_ATTR_TYPES:
        put_type(text, attr->types[i]);
        break;
    case TW_ATTR_STRINGS:
        put_string(text, attr->strings[i]);
        break;
    default:
        put_shape(text, attr->shapes[i]);
        break;
    }
}

static void put_value(twi_text *text, const twi_attr *attr)
{
    switch (attr->kind) {
    case TW_ATTR_INT:
        twi_text_printf(text, "%lld", (long long)attr->i);
        break;
    case TW_ATTR_FLOAT:
        twi_text_printf(text, "%.9g", (double)attr->f);
        break;
    case TW_ATTR_BOOL:
        twi_text_printf(text, "%s", attr->b ? "true" : "false");
        break;
    case TW_ATTR_TYPE:
        put_type(text, attr->type);
        break;
    case TW_ATTR_STRING:
        put_string(text, attr->s);
        break;
    case TW_ATTR_SHAPE:
        put_shape(text, attr->shape);
        break;
    case TW_ATTR_TENSOR:
        put_tensor(text, attr->tensor);
        break;
    default:
        twi_text_printf(text, "[");
        for (int i = 0; i < attr->count; i++) {
            if (i)
                twi_text_printf(text, ", ");
            put_item(text, attr, i);
        }
        twi_text_printf(text, "]");
        break;
    }
}

/* In order of their names. */
static void put_attrs(twi_text *text, const twi_attrs *attrs)
{
    const char *last = "";
    for (int i = 0; i < attrs->count; i++) {
        const twi_attr *next = NULL;
        for (int k = 0; k < attrs->count; k++)
            if (strcmp(attrs->items[k].name, last) > 0 && (!next || strcmp(attrs->items[k].name, next->name) < 0))
                next = &attrs->items[k];
        if (!next)
            break;
        twi_text_printf(text, "%s%s=", i ? ", " : "", next->name);
        put_value(text, next);
        last = next->name;
    }
}

void twi_node_summary(twi_text *text, const tw_node *node)
{
    twi_text_printf(text, "%s = %s[", node->name, node->op->name);
    put_attrs(text, &node->attrs);
    if (node->device[0])
        twi_text_printf(text, "%s_device=\"%s\"", node->attrs.count ? ", " : "", node->device);
    twi_text_printf(text, "](");
    const char *comma = "";
    for (int i = 0; i < node->num_inputs; i++, comma = ", ") {
        twi_text_printf(text, "%s%s", comma, node->inputs[i].node->name);
        if (node->inputs[i].index)
            twi_text_printf(text, ":%d", node->inputs[i].index);
    }
    for (int i = 0; i < node->num_control_inputs; i++, comma = ", ")
        twi_text_printf(text, "%s^%s", comma, node->control_inputs[i]->name);
    twi_text_printf(text, ")");
}

/* ---- pieces ---------------------------------------------------------------------------------------------------- */

static void put_devices(twi_text *text, const tw_devices *devices)
{
    for (int i = 0; i < devices->count; i++)
        twi_text_printf(text, "%s%s", i ? ", " : "", devices->items[i]->text);
}

static void put_kernels(twi_text *text, const twi_groups *g, const tw_node *node)
{
    const twi_attr *type = twi_kernel_attr(&node->attrs);
    static const tw_dtype types[] = {
#define X(name, number, bytes, text) TW_##name,
        TW_DTYPE_LIST(X)
#undef X
    };
    bool any = false;
    for (int kind = 0; kind < g->num_kinds; kind++) {
        const twi_device *d = g->kinds[kind];
        uint64_t accepted = 0;
        for (const twi_kernel *const *family = d->ops->kernels; *family; family++)
            for (const twi_kernel *row = *family; row->op; row++)
                if (strcmp(row->op, twi_op_planned(node->op)) == 0)
                    accepted |= row->types ? row->types : ~UINT64_C(0);
        if (((node->op->flags & TWI_HOST_ONLY) && !d->is_host) || !accepted)
            continue;
        const char *comma = "";
        twi_text_printf(text, "  device='%s'", d->name.type);
        if (type)
            twi_text_printf(text, "; %s in [", type->name);
        for (size_t i = 0; type && i < sizeof types / sizeof types[0]; i++) {
            if (!(accepted & TWI_TYPE(types[i])) || twi_device_lacks(d, node->op->name, types[i]))
                continue;
            twi_text_printf(text, "%s", comma);
            put_type(text, types[i]);
            comma = ", ";
        }
        twi_text_printf(text, "%s\n", type ? "]" : "");
        any = true;
    }
    if (!any)
        twi_text_printf(text, "  <no registered kernels>\n");
}

static void put_kinds(twi_text *text, const twi_groups *g, unsigned kinds, const char *separator)
{
    const char *between = "";
    for (int kind = g->num_kinds - 1; kind >= 0; kind--)
        if (kinds >> kind & 1) {
            twi_text_printf(text, "%s%s", between, g->kinds[kind]->name.type);
            between = separator;
        }
}

/* Who is in the group, what each asks for, and where its op could run. */
static void put_debug_info(twi_text *text, twi_groups *g, const tw_node *node)
{
    const twi_member *group = twi_group_of(g, node->id);
    char requested[192], resource[192];
    twi_text_printf(text,
                    "\nColocation Debug Info:\nColocation group had the following types and supported devices: \n"
                    "Root Member(assigned_device_name_index_=%d requested_device_name_='%s' assigned_device_name_='%s' "
                    "resource_device_name_='%s' supported_device_types_=[",
                    group->assigned, twi_device_name_print(group->requested, requested, sizeof requested),
                    group->assigned >= 0 ? g->devices->items[group->assigned]->text : "",
                    twi_device_name_print(group->resource, resource, sizeof resource));
    put_kinds(text, g, group->kinds, ", ");
    twi_text_printf(text, "] possible_devices_=[]\n");
    for (int id = 0; id < g->graph->nodes.count; id++) {
        const tw_node *member = g->graph->nodes.items[id];
        bool told = twi_group_of(g, id) != group;
        for (int k = 0; k < id && !told; k++)
            told = g->graph->nodes.items[k]->op == member->op && twi_group_of(g, k) == group;
        if (told)
            continue;
        twi_text_printf(text, "%s: ", member->op->name);
        put_kinds(text, g, twi_kinds_with_kernel(g, member), " ");
        twi_text_printf(text, "\n");
    }
    twi_text_printf(text, "\nColocation members, user-requested devices, and framework assigned devices, if any:\n");
    for (int id = 0; id < g->graph->nodes.count; id++) {
        const tw_node *member = g->graph->nodes.items[id];
        if (twi_group_of(g, id) == group)
            twi_text_printf(text, "  %s (%s) %s\n", member->name, member->op->name, member->device);
    }
}

/* Ends every message; frees the text. */
static tw_status fail_with(twi_text *text, const tw_node *node, tw_error *error)
{
    twi_text_printf(text, "\n\t [[Node: ");
    twi_node_summary(text, node);
    twi_text_printf(text, "]]");
    if (node->file)
        twi_text_printf(text, " (%s:%d)", node->file, node->line);
    tw_status status = text->failed ? twi_fail_memory(error, "saying why a node cannot be placed")
                                    : twi_fail(error, TW_INVALID_ARGUMENT, "%s", twi_text_string(text));
    twi_text_free(text);
    return status;
}

/* ---- the failures ---------------------------------------------------------------------------------------------- */

tw_status twi_fail_malformed(const tw_node *node, const tw_error *reason, tw_error *error)
{
    twi_text text = {0};
    twi_text_printf(&text, "%s", reason->message);
    return fail_with(&text, node, error);
}

tw_status twi_fail_no_kernel(const twi_groups *g, const tw_node *node, tw_error *error)
{
    twi_text text = {0};
    twi_text_printf(&text, "No OpKernel was registered to support Op '%s' used by '%s' with these attrs: [",
                    node->op->name, node->name);
    put_attrs(&text, &node->attrs);
    twi_text_printf(&text, "]\nRegistered devices: [");
    put_kinds(&text, g, (1u << g->num_kinds) - 1, ", ");
    twi_text_printf(&text, "]\nRegistered kernels:\n");
    put_kernels(&text, g, node);
    return fail_with(&text, node, error);
}

tw_status twi_fail_to_colocate(twi_groups *g, const tw_node *a, const tw_node *b, const tw_error *merge_error,
                               tw_error *error)
{
    twi_text text = {0};
    twi_text_printf(&text,
                    "Cannot assign a device for operation '%s': Cannot colocate nodes {{colocation_node %s}} and "
                    "{{colocation_node %s}}",
                    b->name, a->name, b->name);
    if (merge_error) {
        twi_text_printf(&text, ": %s", merge_error->message);
    } else {
        twi_text_printf(&text, " because no device type supports both of those nodes and the other nodes colocated "
                               "with them.");
        put_debug_info(&text, g, a);
        put_debug_info(&text, g, b);
    }
    return fail_with(&text, b, error);
}

/* What soft placement would have done instead. */
static void put_nearest(twi_text *text, const twi_groups *g, const twi_member *group)
{
    int nearest = twi_nearest_device(g, group);
    if (nearest >= 0)
        twi_text_printf(text, " The nearest valid device is %s.", g->devices->items[nearest]->text);
}

static bool any_device(const twi_groups *g, const twi_device_name *spec, unsigned kinds)
{
    for (int i = 0; i < g->devices->count; i++)
        if ((kinds >> g->kind_of[i] & 1) && twi_device_name_matches(spec, &g->devices->items[i]->name))
            return true;
    return false;
}

tw_status twi_fail_to_place(twi_groups *g, const tw_node *node, tw_error *error)
{
    const twi_member *group = twi_group_of(g, node->id);
    if (!node->device[0] && group->asker >= 0) /* the one whose request cannot be met is who should be named */
        node = g->graph->nodes.items[group->asker];
    twi_device_name asked = TWI_NO_DEVICE;
    twi_device_name_parse(node->device, &asked, NULL);
    char requested[192];
    twi_text text = {0};

    twi_text_printf(&text, "Cannot assign a device for operation '%s': ", node->name);
    if (!twi_names_a_device(&asked)) {
        twi_text_printf(&text,
                        "Node had no OpKernel registered to support this operation: Operation was %s and inputs "
                        "were [",
                        node->op->name);
        for (int i = 0; i < node->num_inputs; i++)
            twi_text_printf(&text, "%s%s", i ? ", " : "", tw_dtype_name(tw_output_dtype(node->inputs[i])));
        twi_text_printf(&text, "].");
        put_debug_info(&text, g, node);
    } else if (!any_device(g, &asked, ~0u)) {
        twi_text_printf(&text, "Operation was explicitly assigned to %s but available devices are [ ", node->device);
        put_devices(&text, g->devices);
        twi_text_printf(&text, " ]. Make sure the device specification refers to a valid device.");
        put_nearest(&text, g, group);
    } else if (!any_device(g, &asked, twi_kinds_with_kernel(g, node))) {
        twi_text_printf(&text,
                        "Could not satisfy explicit device specification '%s' because no supported kernel for %s "
                        "devices is available.",
                        node->device, asked.type);
        put_nearest(&text, g, group);
        put_debug_info(&text, g, node);
        twi_text_printf(&text, "\nOp: %s\nNode attrs: ", node->op->name);
        put_attrs(&text, &node->attrs);
        twi_text_printf(&text, "\nRegistered kernels:\n");
        put_kernels(&text, g, node);
    } else {
        twi_text_printf(&text,
                        "Could not satisfy explicit device specification '%s' because the node "
                        "{{colocation_node %s}} was colocated with a group of nodes that required incompatible "
                        "device '%s'. All available devices [",
                        node->device, node->name,
                        twi_device_name_print(group->requested, requested, sizeof requested));
        put_devices(&text, g->devices);
        twi_text_printf(&text, "]. ");
        put_debug_info(&text, g, node);
    }
    return fail_with(&text, node, error);
}
