/* batch_norm.c - batch normalization that keeps averages becomes one without, and their arithmetic. */
#include "io/functions/lowering.h"

#include "format/tensor_proto.h"

#include <string.h>

/* TensorFlow 2's gives moving averages of mean and variance, in which the batch has this part. */
static float part_of_batch(const Twi__NodeDef *node)
{
    const Twi__AttrValue *part = twi_lower_attr(node, "exponential_avg_factor"),
                         *training = twi_lower_attr(node, "is_training");
    return part && part->value_case == TWI__ATTR_VALUE__VALUE_F && !(training && !training->b) ? part->f : 1;
}

static tw_status add_float(twi_functions *f, const char *name, const char *device, float value)
{
    Twi__TensorProto values = TWI__TENSOR_PROTO__INIT;
    values.dtype = TW_FLOAT32;
    values.n_float_val = 1;
    values.float_val = twi_arena_copy(f->arena, &value, sizeof value);
    return values.float_val ? twi_lower_add_const(f, name, device, NULL, TW_SCALAR, &values) : twi_lower_fail_memory(f);
}

/* Names of our own lie in NAME/averages, since TensorFlow calls inputs that are constants NAME/mean. The node
 * NAME/averages/batch gives what the batch alone has, and its output i goes into the average that input i + 2 is. */
static tw_status add_average(twi_lowering *l, int i, const char *name)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    twi_attr_value type = twi_type_value("T", TW_FLOAT32);
    const char *before[] = {l->inputs[i + 2], TWI_PRINT("%s/averages/rest", l->name)};
    const char *batch[] = {TWI_PRINT("%s/averages/batch:%d", l->name, i), TWI_PRINT("%s/averages/part", l->name)};
    const char *parts[] = {TWI_PRINT("%s/before", name), TWI_PRINT("%s/batch", name)};
    if (!before[1] || !batch[0] || !batch[1])
        return twi_lower_fail_memory(f);
    TWI_TRY(twi_lower_add(f, "Mul", parts[0], l->device, before, 2, &type, 1));
    TWI_TRY(twi_lower_add(f, "Mul", parts[1], l->device, batch, 2, &type, 1));
    TWI_TRY(twi_lower_add(f, "AddV2", name, l->device, parts, 2, &type, 1));
done:
    return status;
}

tw_status twi_lower_batch_norm(twi_lowering *l)
{
    twi_functions *f = l->f;
    tw_status status = TW_OK;
    const twi_signature *signature = twi_op_signature(twi_op_find(l->node->op));
    if (!signature)
        return twi_lower_fail_memory(f);
    size_t count = (size_t)signature->num_outputs;
    const char *batch = TWI_PRINT("%s/averages/batch", l->name), *outputs[6] = {batch};
    Twi__NodeDef *copy = twi_arena_copy(f->arena, l->node, sizeof *copy);
    Twi__AttrValue__ListValue types = TWI__ATTR_VALUE__LIST_VALUE__INIT;
    types.type = twi_arena_alloc(f->arena, sizeof *types.type * count);
    if (!batch || !copy || !types.type || !(copy->attr = twi_arena_alloc(f->arena, sizeof *copy->attr * copy->n_attr)))
        return twi_lower_fail_memory(f);
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
                                : twi_lower_fail_memory(f);
    TWI_TRY(add_float(f, TWI_PRINT("%s/averages/part", l->name), l->device, part_of_batch(l->node)));
    TWI_TRY(add_float(f, TWI_PRINT("%s/averages/rest", l->name), l->device, 1 - part_of_batch(l->node)));
    TWI_TRY(add_average(l, 1, outputs[1] = TWI_PRINT("%s/averages/mean", l->name)));
    TWI_TRY(add_average(l, 2, outputs[2] = TWI_PRINT("%s/averages/variance", l->name)));
    for (size_t i = 3; i < count; i++)
        if (!(outputs[i] = TWI_PRINT("%s/averages/batch:%zu", l->name, i)))
            return twi_lower_fail_memory(f);
    types.n_type = count;
    for (size_t i = 0; i < count; i++)
        types.type[i] = i == 0 && twi_lower_attr(l->node, "T") ? twi_lower_attr(l->node, "T")->type : TW_FLOAT32;
    twi_attr_value gives = twi_list_value(f, "T", &types);
    status = gives.value.list ? twi_lower_add(f, "IdentityN", l->name, l->device, outputs, count, &gives, 1)
                              : twi_lower_fail_memory(f);
done:
    return status;
}

bool twi_keeps_averages(const Twi__NodeDef *node)
{
    return part_of_batch(node) != 1;
}
