/* data_sets.c - what TensorFlow calls a variant: data sets, texts, values. */
#include "io/import/import.h"

/* The attribute of an op's output that is a value, but may be text; NULL: it has none. */
static const char *text_attr(const twi_import_item *item)
{
    const twi_signature *signature = item->op ? twi_op_signature(item->op) : NULL;
    const char *name = signature && signature->num_outputs ? signature->outputs[0].type_attr : NULL;
    for (int i = 0; i < item->num_attrs && name; i++)
        if (strcmp(item->attrs[i].name, name) == 0)
            return NULL;
    return name && twi_signature_wants_text(signature, name) ? name : NULL;
}

/* A node that passes on what it takes there. Through one that is not built a cycle may go. */
static bool passes(const twi_importer *m, twi_import_source from)
{
    const twi_import_item *item = &m->items[from.node];
    return from.index >= 0 && item->op && !item->why && twi_op_is(item->op, TWI_PASSES) &&
           (size_t)from.index < item->num_inputs;
}

/* Who makes what comes from there, through nodes that pass it on, makes text of it. */
static tw_status make_text(twi_importer *m, twi_import_source from)
{
    while (passes(m, from))
        from = m->items[from.node].inputs[from.index];
    twi_import_item *maker = &m->items[from.node];
    const char *name = from.index == 0 && !maker->given ? text_attr(maker) : NULL;
    if (!name)
        return TW_OK;
    twi_attr *attrs = twi_arena_alloc(&m->arena, sizeof *attrs * (size_t)(maker->num_attrs + 1));
    if (!attrs)
        return twi_import_fail_memory(m);
    for (int i = 0; i < maker->num_attrs; i++)
        attrs[i] = maker->attrs[i];
    attrs[maker->num_attrs++] = tw_attr_type(name, TW_STRING);
    maker->attrs = attrs;
    return TW_OK;
}

static tw_status make_texts(twi_importer *m, const twi_import_item *user)
{
    tw_status status = TW_OK;
    for (size_t i = 0; i < user->num_inputs && status == TW_OK; i++)
        status = make_text(m, user->inputs[i]);
    return status;
}

/* Of a data set that another process has made the generator of seeds is a constant, a handle that only that process
 * has: here as in TensorFlow there is none behind it, so the data set's own seeds count. */
static void make_seed_generator(twi_importer *m, const twi_import_item *user)
{
    const twi_signature *signature = twi_op_signature(user->op);
    const twi_argument *last =
        signature && signature->num_inputs ? &signature->inputs[signature->num_inputs - 1] : NULL;
    size_t count = user->num_inputs;
    while (count && user->inputs[count - 1].index < 0)
        count--;
    twi_import_item *from = last && count ? &m->items[user->inputs[count - 1].node] : NULL;
    const twi_op *wanted = from && from->why ? twi_op_find(from->def->op) : NULL;
    if (!wanted || !twi_op_is(wanted, TWI_CONSTANT) || strcmp(last->name, "seed_generator") != 0)
        return;
    from->op = twi_op_find("DummySeedGenerator");
    from->why = NULL;
    from->attrs = NULL;
    from->num_attrs = 0;
}

/* What the function gives that an attribute names: as TensorFlow wrote it, or Tower; NULL: it names none. */
static const twi_import_item *called(twi_importer *m, const Twi__AttrValue *value)
{
    const char *name = value->value_case == TWI__ATTR_VALUE__VALUE_PLACEHOLDER ? value->placeholder : NULL;
    if (value->value_case == TWI__ATTR_VALUE__VALUE_S)
        name = twi_arena_printf(&m->arena, "%.*s", (int)value->s.len, (const char *)value->s.data);
    return name ? twi_map_get(&m->places, name) : NULL;
}

tw_status twi_import_tell_data_sets(twi_importer *m)
{
    tw_status status = TW_OK;
    for (int i = 0; i < m->num_read && status == TW_OK; i++) {
        const twi_import_item *user = &m->items[i];
        if (!user->op || user->op->makes != TWI_MAKES_RECIPE)
            continue;
        make_seed_generator(m, user);
        status = make_texts(m, user);
        for (size_t k = 0; k < user->def->n_attr && status == TW_OK; k++) {
            const Twi__AttrValue *value = user->def->attr[k]->value;
            const twi_import_item *given = value ? called(m, value) : NULL;
            if (given)
                status = make_texts(m, given);
        }
    }
    return status;
}

/* The attribute of that name and kind; NULL: it has none. What has another kind is refused when the node is added. */
static const twi_attr *attr_of(const twi_import_item *item, const char *name, tw_attr_kind kind)
{
    for (int i = 0; i < item->num_attrs; i++)
        if (strcmp(item->attrs[i].name, name) == 0 && item->attrs[i].kind == kind)
            return &item->attrs[i];
    return NULL;
}

/* How many inputs are the argument's, of those that there are. */
static int length_of(const twi_import_item *item, const twi_argument *argument)
{
    const twi_attr *number = argument->number_attr ? attr_of(item, argument->number_attr, TW_ATTR_INT) : NULL;
    const twi_attr *list = argument->list_attr ? attr_of(item, argument->list_attr, TW_ATTR_TYPES) : NULL;
    int64_t length = number ? number->i : list ? list->count : 1;
    return length < 0 ? 0 : length > (int64_t)item->num_inputs ? (int)item->num_inputs : (int)length;
}

/* Of what gives several components, with a shape each: those that are no scalars are no data sets, but serialized
 * sparse tensors (ops/serialize.c), whose shape data sets do not tell. */
static void tell_texts(const twi_import_item *item, twi_attr *types)
{
    const twi_attr *shapes = attr_of(item, "output_shapes", TW_ATTR_SHAPES);
    for (int i = 0; shapes && types->kind == TW_ATTR_TYPES && shapes->count == types->count && i < types->count; i++)
        if (types->types[i] == TW_VARIANT && shapes->shapes[i].rank != 0)
            ((tw_dtype *)types->types)[i] = TW_STRING;
}

/* What TensorFlow calls a variant is a data set, whose handle is a resource here (ops/dataset.c), a serialized sparse
 * tensor, which is text, or a value (tensor/variant.h). Who takes one has what it is given; who only gives one, as an
 * iterator does, gives a data set, or text if its op's row says so. */
tw_status twi_import_tell_variants(twi_importer *m, const twi_import_item *item, const tw_output *inputs,
                                   twi_attr *attr)
{
    const twi_signature *signature = twi_op_signature(item->op);
    tw_dtype *types = attr->kind == TW_ATTR_TYPE ? &attr->type : (tw_dtype *)attr->types;
    int count = attr->kind == TW_ATTR_TYPE ? 1 : attr->kind == TW_ATTR_TYPES ? attr->count : 0, input = 0;
    bool any = false, taken = false, lists = false, given = false;
    tell_texts(item, attr);
    for (int i = 0; i < count; i++)
        any = any || types[i] == TW_VARIANT;
    if (!any)
        return TW_OK;
    if (!signature)
        return twi_import_fail_memory(m);
    for (int i = 0; i < signature->num_inputs && input < (int)item->num_inputs; i++) {
        const twi_argument *argument = &signature->inputs[i];
        const char *name = argument->type_attr ? argument->type_attr : argument->list_attr;
        bool is_it = name && strcmp(name, attr->name) == 0;
        lists = lists || argument->dtype == TW_VARIANT;
        taken = taken || is_it;
        for (int k = 0; k < count && is_it && input + k < (int)item->num_inputs; k++)
            if (types[k] == TW_VARIANT && inputs[input + k].node && inputs[input + k].index >= 0)
                types[k] = tw_output_dtype(inputs[input + k]);
        input += length_of(item, argument);
    }
    for (int i = 0; i < signature->num_outputs; i++) {
        const char *name =
            signature->outputs[i].type_attr ? signature->outputs[i].type_attr : signature->outputs[i].list_attr;
        given = given || (name && strcmp(name, attr->name) == 0);
    }
    tw_dtype otherwise = twi_signature_wants_text(signature, attr->name) ? TW_STRING : TW_RESOURCE;
    for (int i = 0; i < count && given && !taken && !lists; i++)
        types[i] = types[i] == TW_VARIANT ? otherwise : types[i];
    return TW_OK;
}
