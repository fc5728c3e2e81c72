/* parse_examples.c - a data set that parses examples becomes a map, whose function is ParseExampleV2. */
#include "io/functions/lowering.h"

#include "format/tensor_proto.h"

#include <stdlib.h>
#include <string.h>

/* A list of an attribute; empty if it is none. */
static const Twi__AttrValue__ListValue *list_of(const Twi__NodeDef *node, const char *attr)
{
    static const Twi__AttrValue__ListValue none = TWI__ATTR_VALUE__LIST_VALUE__INIT;
    const Twi__AttrValue *value = twi_lower_attr(node, attr);
    return value && value->value_case == TWI__ATTR_VALUE__VALUE_LIST ? value->list : &none;
}

/* A vector of texts, as a node. */
static tw_status add_texts(twi_functions *f, const char *name, const char *device,
                           const Twi__AttrValue__ListValue *list)
{
    Twi__TensorProto texts = TWI__TENSOR_PROTO__INIT;
    texts.dtype = TW_STRING;
    texts.n_string_val = list->n_s;
    texts.string_val = list->s;
    return twi_lower_add_const(f, name, device, NULL, TW_SHAPE((int64_t)list->n_s), &texts);
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
static tw_status add_parsing(twi_lowering *l, const Twi__AttrValue__ListValue *sparse,
                             const Twi__AttrValue__ListValue *dense, const Twi__AttrValue__ListValue *ragged,
                             const char *device, parsed *given)
{
    static const char *const texts[] = {"names", "sparse_keys", "dense_keys", "ragged_keys"};
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    Twi__AttrValue__ListValue none = TWI__ATTR_VALUE__LIST_VALUE__INIT;
    const Twi__AttrValue__ListValue *lists[] = {&none, sparse, dense, ragged};
    const char **inputs = twi_arena_alloc(f->arena, sizeof *inputs * (dense->n_s + 5));
    const char *parse = TWI_PRINT("%s/f/parse", l->name);
    twi_attr_value string = twi_type_value("T", TW_STRING), ints = twi_int_value("num_sparse", (int64_t)sparse->n_s);
    twi_attr_value attrs[] = {twi_copied_value(l->node, "Tdense"),
                              twi_copied_value(l->node, "dense_shapes"),
                              twi_copied_value(l->node, "sparse_types"),
                              twi_copied_value(l->node, "ragged_value_types"),
                              twi_copied_value(l->node, "ragged_split_types"),
                              ints};
    if (!inputs || !parse)
        return twi_lower_fail_memory(f);
    TWI_TRY(
        twi_lower_add(f, "TowerArgument", inputs[0] = TWI_PRINT("%s/f/arg/0", l->name), device, NULL, 0, &string, 1));
    for (int i = 0; i < 4; i++)
        TWI_TRY(add_texts(f, inputs[1 + i] = TWI_PRINT("%s/f/%s", l->name, texts[i]), device, lists[i]));
    for (size_t i = 0; i < dense->n_s; i++) {
        twi_attr_value type = twi_type_value("T", twi_lower_type(l->node, "Tdense", i));
        TWI_TRY(twi_lower_add(f, "TowerArgument", inputs[5 + i] = TWI_PRINT("%s/f/arg/%zu", l->name, i + 1), device,
                              NULL, 0, &type, 1));
        given[sparse->n_s + i] =
            (parsed){dense->s[i], TWI_PRINT("%s:%zu", parse, 3 * sparse->n_s + i), type.value.type};
    }
    TWI_TRY(twi_lower_add(f, "ParseExampleV2", parse, device, inputs, dense->n_s + 5, attrs, 6));
    for (size_t i = 0; i < sparse->n_s; i++) {
        const char *parts[3];
        twi_attr_value type = twi_type_value("T", twi_lower_type(l->node, "sparse_types", i));
        for (size_t k = 0; k < 3; k++)
            parts[k] = TWI_PRINT("%s:%zu", parse, k * sparse->n_s + i);
        given[i] = (parsed){sparse->s[i], TWI_PRINT("%s/f/sparse_%zu", l->name, i), TW_STRING};
        TWI_TRY(twi_lower_add(f, "SerializeSparse", given[i].value, device, parts, 3, &type, 1));
    }
    for (size_t i = 0; i < ragged->n_s; i++) {
        size_t values = 3 * sparse->n_s + dense->n_s + i, count = sparse->n_s + dense->n_s;
        const char *parts[] = {TWI_PRINT("%s:%zu", parse, values + ragged->n_s), TWI_PRINT("%s:%zu", parse, values)};
        twi_attr_value kinds[] = {twi_int_value("RAGGED_RANK", 1), twi_bool_value("batched_input", false),
                                  twi_type_value("Tvalues", twi_lower_type(l->node, "ragged_value_types", i)),
                                  twi_type_value("Tsplits", twi_lower_type(l->node, "ragged_split_types", i))};
        given[count + i] = (parsed){ragged->s[i], TWI_PRINT("%s/f/ragged_%zu", l->name, i), TW_STRING};
        TWI_TRY(twi_lower_add(f, "RaggedTensorToVariant", given[count + i].value, device, parts, 2, kinds, 4));
    }
    qsort(given, sparse->n_s + dense->n_s + ragged->n_s, sizeof *given, by_key);
done:
    return status;
}

/* What does not fit together it leaves to the data set's node, which refuses it. */
tw_status twi_lower_parse(twi_lowering *l)
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
        return twi_lower_fail_memory(f);
    if (twi_lower_count_types(l->node, "ragged_value_types") != ragged->n_s ||
        twi_lower_count_types(l->node, "ragged_split_types") != ragged->n_s ||
        twi_lower_count_types(l->node, "sparse_types") != sparse->n_s ||
        twi_lower_count_types(l->node, "Tdense") != dense->n_s || l->num_data != 2 + dense->n_s || count == 0) {
        Twi__NodeDef *copy = twi_arena_copy(f->arena, l->node, sizeof *copy);
        if (!copy || !twi_push(&f->nodes, copy))
            return twi_lower_fail_memory(f);
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
    twi_attr_value gives = twi_list_value(f, "T", &types), place = twi_place_value("f", TWI_PRINT("%s/f", l->name));
    TWI_TRY(twi_lower_add(f, "IdentityN", TWI_PRINT("%s/f", l->name), "/device:CPU:0", inputs, count, &gives, 1));
    twi_attr_value attrs[] = {place, twi_copied_value(l->node, "Tdense"), twi_copied_value(l->node, "output_types"),
                              twi_copied_value(l->node, "output_shapes"), twi_bool_value("preserve_cardinality", true)};
    attrs[1].name = "Targuments";
    inputs[0] = l->inputs[0];
    for (size_t i = 0; i < dense->n_s; i++)
        inputs[1 + i] = l->inputs[2 + i];
    inputs[1 + dense->n_s] = l->inputs[1];
    for (size_t i = l->num_data; i < l->node->n_input; i++)
        inputs[i] = l->inputs[i];
    TWI_TRY(twi_lower_add(f, "ParallelMapDatasetV2", l->name, l->device, inputs, l->node->n_input, attrs, 5));
done:
    return status;
}
