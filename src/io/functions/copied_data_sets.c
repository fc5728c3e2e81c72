/* copied_data_sets.c - what tf.data's copy_to_device and prefetch_to_device make: a data set that asks an iterator of
 * another device for its elements, through functions that are called there. Here elements are on the host, whoever asks
 * for them, so it becomes the data set that is copied. */
#include "io/functions/lowering.h"

/* Which input is the data set that the iterator is over: the variant that the first of the three functions is given. */
static size_t copied_input(const Twi__NodeDef *node)
{
    size_t at = 0, count = twi_lower_count_types(node, "Tinit_func_args");
    while (at < count && twi_lower_type(node, "Tinit_func_args", at) != TWI_PROTO_VARIANT)
        at++;
    return at < count && at < twi_lower_count_data(node) ? at : SIZE_MAX;
}

bool twi_copies_data_set(const Twi__NodeDef *node)
{
    return copied_input(node) != SIZE_MAX;
}

static tw_status pass(twi_lowering *l, size_t input)
{
    twi_attr_value type = twi_type_value("T", TWI_PROTO_VARIANT);
    return twi_lower_add_with_controls(l, "Identity", l->name, l->inputs[input], NULL, &type, 1);
}

tw_status twi_lower_copied_data_set(twi_lowering *l)
{
    return pass(l, copied_input(l->node));
}

/* WrapDatasetVariant and its inverse, by which a data set is led to another device. */
tw_status twi_lower_wrapped_data_set(twi_lowering *l)
{
    if (l->num_data != 1)
        return twi_fail(l->f->error, TW_INVALID_ARGUMENT, "node '%s' (%s) has %zu inputs, expected 1", l->name,
                        l->node->op, l->num_data);
    return pass(l, 0);
}
