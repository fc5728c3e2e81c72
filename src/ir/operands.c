/* operands.c - a node as kernels see it, and whether a device has one for it. */
#include "ir/ir.h"

twi_operand twi_operand_of(twi_value value)
{
    const twi_result *result = &value.node->results[value.index];
    bool is_handle = result->dtype == TW_RESOURCE || result->dtype == TW_VARIANT;
    tw_shape shape = twi_shape(value);
    int64_t elements = is_handle ? 1 : tw_shape_elements(shape);
    size_t bytes = elements < 0 ? 0 : (size_t)elements * tw_dtype_size(result->dtype);
    return (twi_operand){
        .dtype = result->dtype,
        .shape = shape,
        .elements = elements,
        .bytes = is_handle ? sizeof(void *) : bytes,
        .value = twi_constant(value),
    };
}

static bool shapes_are_known(const twi_node *node)
{
    bool known = true;
    for (int i = 0; i < node->num_inputs && known; i++)
        known = twi_shape_is_settled(twi_in(node, i));
    for (int i = 0; i < node->num_results && known; i++)
        known = twi_shape_is_settled(twi_out(node, i));
    return known;
}

/* Whether the kernel is to make a tensor of its own. */
static bool makes_shape(const twi_node *node)
{
    bool unknown = false;
    for (int i = 0; i < node->num_results && twi_op_is(node->op, TWI_MAKES_SHAPE) && !unknown; i++)
        unknown = !twi_shape_is_settled(twi_out(node, i));
    return unknown;
}

tw_status twi_node_accepted(const twi_node *node, twi_device *device, bool plain_only, tw_error *refusal, tw_error *error)
{
    enum { FEW = 16 };
    twi_operand few[FEW];
    int n = node->num_inputs, m = node->num_results;
    if (!device->is_host && makes_shape(node)) {
        if (refusal)
            twi_fail(refusal, TW_UNIMPLEMENTED, "the shape of its output is found while it runs, in memory of the host");
        return twi_fail(error, TW_UNIMPLEMENTED, "%s '%s': the shape of its output is found while it runs, which %s cannot do",
                        node->op->name, node->name, device->text);
    }
    if (twi_device_takes_all(device, node->op->name, node->kernel_type, plain_only) || !shapes_are_known(node))
        return TW_OK; /* an unknown shape is refused by name when the node is prepared */
    twi_operand *operands = n + m > FEW ? twi_alloc_array((size_t)n + (size_t)m, sizeof *operands) : few;
    if (!operands)
        return twi_fail_memory(error, "asking for kernels");
    for (int i = 0; i < n; i++)
        operands[i] = twi_operand_of(twi_in(node, i));
    for (int i = 0; i < m; i++)
        operands[n + i] = twi_operand_of(twi_out(node, i));
    device = twi_prepares_on(device);
    twi_prepare p = {.op = node->op->name, .node = node->name, .attrs = &node->attrs, .roles = node->op->roles,
                     .num_inputs = n, .num_outputs = m, .inputs = operands, .outputs = operands + n, .device = device,
                     .threads = device->threads, .error = error, .refusal = refusal};
    tw_status status = twi_device_accepts(&p, plain_only);
    if (operands != few)
        twi_free(operands);
    return status;
}
