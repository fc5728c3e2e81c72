/* fold.c - what can be known before the first step becomes a constant.
 * Shapes of known shapes fold by rule; the rest by running the plain CPU kernel once. */
#include "rewrite/rewrite.h"

#include "tensor/variant.h"

#include <stdio.h>
#include <string.h>

#define LARGEST_RESULT (64 * 1024) /* bytes; a bigger constant costs more memory than computing it costs time */

static void write_integer(tw_tensor *tensor, int64_t i, int64_t value)
{
    if (tw_tensor_dtype(tensor) == TW_INT64)
        ((int64_t *)tw_tensor_data(tensor))[i] = value;
    else
        ((int32_t *)tw_tensor_data(tensor))[i] = (int32_t)value;
}

/* What a node tells of the shape of input k, as output k. *result stays NULL if it tells of no shapes or nothing is
 * known, as of lists. */
static tw_status shape_result(const twi_node *node, int k, tw_tensor **result, tw_error *error)
{
    if (!twi_has_trait(node, TWI_METADATA))
        return TW_OK;
    bool counts = twi_is(node, TWI_OP_Size), ranks = twi_is(node, TWI_OP_Rank);
    tw_shape shape = twi_shape(twi_in(node, k));
    if (!tw_shape_is_known(shape) || twi_dtype(twi_in(node, k)) == TW_VARIANT)
        return TW_OK;
    *result = tw_tensor_create(node->results[k].dtype, counts || ranks ? TW_SCALAR : TW_SHAPE(shape.rank));
    if (!*result)
        return twi_fail_memory(error, "folding constants");
    if (counts || ranks)
        write_integer(*result, 0, counts ? tw_shape_elements(shape) : shape.rank);
    else
        for (int i = 0; i < shape.rank; i++)
            write_integer(*result, i, shape.dims[i]);
    return TW_OK;
}

/* Of a type that is worth it, and small. */
static bool may_be_constant(const twi_rewriting *r, twi_value value)
{
    int64_t elements = tw_shape_elements(twi_shape(value));
    tw_dtype dtype = twi_dtype(value);
    int64_t size = (int64_t)tw_dtype_size(dtype);
    bool counts = dtype == TW_INT32 || dtype == TW_INT64 || dtype == TW_BOOL;
    bool may = r->fold_everything && !twi_owns_memory(dtype) && dtype != TW_RESOURCE;
    return (counts || may) && elements >= 0 && size && elements <= LARGEST_RESULT / size;
}

static bool may_run_now(const twi_rewriting *r, const twi_node *node)
{
    bool may = !twi_has_trait(node, TWI_STATEFUL) && node->num_results && node->num_inputs && !node->num_controls;
    for (int i = 0; i < node->num_inputs && may; i++)
        may = twi_constant(twi_in(node, i)) != NULL;
    for (int i = 0; i < node->num_results && may; i++)
        may = may_be_constant(r, twi_out(node, i));
    return may;
}

/* Runs the node on the host. On success results[] are new tensors; TW_UNIMPLEMENTED when no kernel wants to. */
static tw_status run_now(twi_rewriting *r, const twi_node *node, tw_tensor **results, tw_error *error)
{
    int n = node->num_inputs, m = node->num_results;
    twi_device *host = r->devices->items[0];
    void *workspace = NULL;
    const twi_kernel *kernel = NULL;
    tw_status status;
    twi_operand *operands = twi_alloc_array((size_t)n + (size_t)m, sizeof *operands);
    const void **pointers = twi_alloc_array((size_t)n + (size_t)m, sizeof *pointers);
    twi_prepare p = {.op = node->op->name, .node = node->name, .attrs = &node->attrs, .roles = node->op->roles,
                     .num_inputs = n, .num_outputs = m, .inputs = operands, .device = host, .threads = 1,
                     .error = error};
    if (!operands || !pointers)
        TWI_LEAVE(twi_fail_memory(error, "folding constants"));
    p.outputs = operands + n;
    for (int i = 0; i < n; i++) {
        tw_tensor *value = twi_constant(twi_in(node, i));
        operands[i] = twi_operand_of(twi_in(node, i));
        pointers[i] = tw_tensor_data(value);
    }
    for (int i = 0; i < m; i++) {
        operands[n + i] = twi_operand_of(twi_out(node, i));
        results[i] = tw_tensor_create(node->results[i].dtype, twi_shape(twi_out(node, i)));
        if (!results[i])
            TWI_LEAVE(twi_fail_memory(error, "folding constants"));
        pointers[n + i] = tw_tensor_data(results[i]);
    }
    TWI_TRY(twi_device_prepare(host, &p, true, &kernel));
    if (!kernel->run) {
        if (operands[0].bytes == operands[n].bytes)
            memcpy((void *)pointers[n], pointers[0], operands[n].bytes);
        goto done;
    }
    if (p.workspace && !(workspace = twi_alloc_aligned(p.workspace, 64)))
        TWI_LEAVE(twi_fail_memory(error, "folding constants"));
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

/* The name of output k is the node's; others have k behind it. */
static twi_value make_constant(twi_rewriting *r, const twi_node *node, int k, tw_tensor *value)
{
    char suffix[16] = "";
    if (k)
        snprintf(suffix, sizeof suffix, "_%d", k);
    return twi_out(twi_node_constant(r->region, node, suffix, value), 0);
}

tw_status twi_fold(twi_rewriting *r, twi_node *node, twi_value *outputs, bool *folded, tw_error *error)
{
    enum { MOST_OUTPUTS = 16 };
    tw_tensor *results[MOST_OUTPUTS] = {0};
    int m = node->num_results;
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
            TWI_LEAVE(twi_fail(error, ran, "%s", refusal.message));
        known = ran == TW_OK;
    }
    for (int i = 0; i < m && known; i++)
        outputs[i] = make_constant(r, node, i, results[i]);
    *folded = known;
    status = twi_region_check(r->region, error);
done:
    for (int i = 0; i < m; i++)
        tw_tensor_release(results[i]);
    return status;
}
