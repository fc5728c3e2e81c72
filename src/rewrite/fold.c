/* fold.c - what can be known before the first step becomes a constant.
 * Shapes of known shapes fold by rule; the rest by running the plain CPU kernel once. */
#include "rewrite/rewrite.h"

#include <string.h>

#define LARGEST_RESULT (64 * 1024) /* bytes; a bigger constant costs more memory than computing it costs time */

static tw_output make_constant(twi_rewriting *r, tw_node *like, int index, tw_tensor *value)
{
    tw_attr attrs[] = {tw_attr_tensor("value", value), tw_attr_type("dtype", tw_tensor_dtype(value))};
    char suffix[16] = "";
    if (index)
        suffix[0] = '_', suffix[1] = (char)('0' + index % 10);
    return tw_node_output(twi_rewrite_node(r, like, suffix, "Const", NULL, 0, attrs, 2), 0);
}

static void write_integer(tw_tensor *tensor, int64_t i, int64_t value)
{
    if (tw_tensor_dtype(tensor) == TW_INT64)
        ((int64_t *)tw_tensor_data(tensor))[i] = value;
    else
        ((int32_t *)tw_tensor_data(tensor))[i] = (int32_t)value;
}

/* Shape, ShapeN, Size, Rank, VariableShape: of input k, as output k. *result stays NULL if this is no such op or nothing
 * is known. */
static tw_status shape_result(const tw_node *node, int k, tw_tensor **result, tw_error *error)
{
    const char *op = node->op->name;
    bool shape_like = !strcmp(op, "Shape") || !strcmp(op, "ShapeN") || !strcmp(op, "VariableShape");
    if (!shape_like && strcmp(op, "Size") != 0 && strcmp(op, "Rank") != 0)
        return TW_OK;
    tw_shape shape = tw_output_shape(node->inputs[k]);
    if (!tw_shape_is_known(shape))
        return TW_OK;
    *result = tw_tensor_create(node->output_types[k], shape_like ? TW_SHAPE(shape.rank) : TW_SCALAR);
    if (!*result)
        return twi_fail_memory(error, "folding constants");
    for (int i = 0; shape_like && i < shape.rank; i++)
        write_integer(*result, i, shape.dims[i]);
    if (!shape_like)
        write_integer(*result, 0, !strcmp(op, "Size") ? tw_shape_elements(shape) : shape.rank);
    return TW_OK;
}

static bool may_run_now(const twi_rewriting *r, const tw_node *node)
{
    if (node->op->flags & TWI_STATEFUL || node->num_outputs == 0 || node->num_control_inputs || node->num_inputs == 0)
        return false;
    for (int i = 0; i < node->num_inputs; i++)
        if (!twi_constant_value(node->inputs[i]))
            return false;
    for (int i = 0; i < node->num_outputs; i++) {
        int64_t elements = tw_shape_elements(node->output_shapes[i]);
        tw_dtype dtype = node->output_types[i];
        bool counts = dtype == TW_INT32 || dtype == TW_INT64 || dtype == TW_BOOL;
        if (elements < 0 || elements * (int64_t)tw_dtype_size(dtype) > LARGEST_RESULT || dtype == TW_STRING ||
            dtype == TW_RESOURCE || (!counts && !r->fold_everything))
            return false;
    }
    return true;
}

static twi_operand operand_of(tw_dtype dtype, tw_shape shape, const tw_tensor *value)
{
    int64_t elements = tw_shape_elements(shape);
    return (twi_operand){dtype, shape, elements, (size_t)elements * tw_dtype_size(dtype), value, NULL};
}

/* Runs the node on the host. On success results[] are new tensors; TW_UNIMPLEMENTED when no kernel wants to. */
static tw_status run_now(twi_rewriting *r, const tw_node *node, tw_tensor **results, tw_error *error)
{
    int n = node->num_inputs, m = node->num_outputs;
    twi_device *host = r->devices->items[0];
    void *workspace = NULL;
    const twi_kernel *kernel = NULL;
    tw_status status;
    twi_operand *operands = twi_alloc_array((size_t)(n + m), sizeof *operands);
    const void **pointers = twi_alloc_array((size_t)(n + m), sizeof *pointers);
    twi_prepare p = {.op = node->op->name, .node = node->name, .attrs = &node->attrs, .num_inputs = n,
                     .num_outputs = m, .inputs = operands, .outputs = operands + n, .device = host, .threads = 1,
                     .error = error};
    if (!operands || !pointers)
        TWI_TRY(twi_fail_memory(error, "folding constants"));
    for (int i = 0; i < n; i++) {
        tw_tensor *value = twi_constant_value(node->inputs[i]);
        operands[i] = operand_of(tw_tensor_dtype(value), tw_tensor_shape(value), value);
        pointers[i] = tw_tensor_data(value);
    }
    for (int i = 0; i < m; i++) {
        operands[n + i] = operand_of(node->output_types[i], node->output_shapes[i], NULL);
        results[i] = tw_tensor_create(node->output_types[i], node->output_shapes[i]);
        if (!results[i])
            TWI_TRY(twi_fail_memory(error, "folding constants"));
        pointers[n + i] = tw_tensor_data(results[i]);
    }
    TWI_TRY(twi_device_prepare(host, &p, true, &kernel));
    if (!kernel->run) {
        if (operands[0].bytes == operands[n].bytes)
            memcpy((void *)pointers[n], pointers[0], operands[n].bytes);
        goto done;
    }
    if (p.workspace && !(workspace = twi_alloc_aligned(p.workspace, 64)))
        TWI_TRY(twi_fail_memory(error, "folding constants"));
    twi_run run = {.state = p.state, .inputs = pointers, .outputs = (void *const *)(pointers + n),
                   .workspace = workspace, .input_operands = operands, .output_operands = operands + n,
                   .num_inputs = n, .num_outputs = m, .threads = 1, .node = node->name, .error = error};
    status = kernel->run(&run);
done:
    if (kernel && kernel->release)
        kernel->release(p.state);
    twi_free_aligned(workspace);
    twi_free(operands);
    twi_free(pointers);
    return status;
}

tw_status twi_fold(twi_rewriting *r, tw_node *node, tw_output *outputs, bool *folded, tw_error *error)
{
    enum { MOST_OUTPUTS = 16 };
    tw_tensor *results[MOST_OUTPUTS] = {0};
    int m = node->num_outputs;
    tw_status status = TW_OK;
    *folded = false;
    if (m == 0 || m > MOST_OUTPUTS)
        return TW_OK;
    for (int i = 0; i < m; i++)
        TWI_TRY(shape_result(node, i, &results[i], error));
    bool known = true;
    for (int i = 0; i < m; i++)
        known = known && results[i];
    if (!known && !results[0] && may_run_now(r, node)) {
        tw_error refusal = {0}; /* a kernel that fails now will say so when the step runs it */
        tw_status ran = run_now(r, node, results, &refusal);
        if (ran == TW_RESOURCE_EXHAUSTED)
            TWI_TRY(twi_fail(error, ran, "%s", refusal.message));
        known = ran == TW_OK;
    }
    for (int i = 0; i < m && known; i++)
        outputs[i] = make_constant(r, node, i, results[i]);
    *folded = known;
    status = r->graph->error.status;
    if (status != TW_OK && error)
        *error = r->graph->error;
done:
    for (int i = 0; i < m && i < MOST_OUTPUTS; i++)
        tw_tensor_release(results[i]);
    return status;
}
