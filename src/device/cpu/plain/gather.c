/* gather.c - elements taken from and put to places that indices say: Gather, GatherV2, GatherNd, DynamicStitch and
 * ParallelDynamicStitch, OneHot.
 * Indices are checked before anything is copied.
 * Never here: places that several elements are added to (scatter.c). */
#include "device/cpu/plain/indices.h"
#include "device/cpu/plain/made.h"
#include "device/cpu/plain/move.h"
#include "device/resources.h"

enum { WORTH_A_TEAM = 32768 }; /* elements */

/* ---- Gather ------------------------------------------------------------------------------------------------------ */

/* The state is the number of batch axes. */
static tw_status prepare_gather(twi_prepare *p)
{
    int rank = p->inputs[1].shape.rank;
    int64_t batch = twi_attr_int(p->attrs, "batch_dims", 0);
    batch += batch < 0 ? rank : 0;
    if (batch < 0 || batch > rank)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': batch_dims is %lld, the indices have %d axes", p->op,
                        p->node, (long long)batch, rank);
    p->state = (void *)(intptr_t)batch;
    return TW_OK;
}

/* A variable may be of another type than the op was made for. */
static tw_status check_variable(twi_prepare *p)
{
    return twi_resource_check_type(p->inputs[0].resource, p->outputs[0].dtype, p->op, p->node, p->error);
}

static tw_status prepare_resource_gather(twi_prepare *p)
{
    tw_status status = check_variable(p);
    return status == TW_OK ? prepare_gather(p) : status;
}

/* params [batch,outer,size,inner], indices [batch,n]: output [batch,outer,n,inner] */
static tw_status run_gather(const twi_run *r)
{
    const twi_operand *params = &r->input_operands[0], *indices = &r->input_operands[1], *out = &r->output_operands[0];
    int batch_axes = (int)(intptr_t)r->state, axis = 0;
    tw_status status = r->num_inputs > 2 ? twi_input_axis(r, 2, 0, params->shape.rank, &axis) : TW_OK;
    if (status == TW_OK && batch_axes > axis)
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %d batch axes reach beyond axis %d", r->node,
                          batch_axes, axis);
    if (status == TW_OK)
        status = twi_indices_check(r, 1, params->shape.dims[axis]);
    if (status != TW_OK || out->elements == 0)
        return status;
    int64_t outer = twi_elements_between(params->shape, batch_axes, axis), size = params->shape.dims[axis];
    int64_t inner = twi_elements_between(params->shape, axis + 1, params->shape.rank);
    int64_t n = twi_elements_between(indices->shape, batch_axes, indices->shape.rank);
    int64_t rows = out->elements / inner;
    const twi_slices slices = twi_slices_of(out->dtype, inner, r->inputs[0], r->outputs[0]);
    bool done = true;
#pragma omp parallel for num_threads(r->threads) reduction(&& : done)                                                  \
    if (r->threads > 1 && out->dtype != TW_STRING && out->elements >= WORTH_A_TEAM)
    for (int64_t row = 0; row < rows; row++) {
        int64_t block = row / n, index = twi_input_int(r, 1, block / outer * n + row % n);
        done = done && twi_copy_slice(&slices, (block * size + index) * inner, row * inner);
    }
    return done ? TW_OK : twi_fail_memory(r->error, r->node);
}

/* params [p_1..p_d,slice], indices [n,d]: output [n,slice] */
static tw_status run_gather_nd(const twi_run *r)
{
    const twi_operand *params = &r->input_operands[0], *out = &r->output_operands[0];
    twi_places places;
    tw_status status = twi_places_check_by_policy(r, 1, params->shape, &places);
    if (status == TW_OK && places.count > 0 && params->elements == 0 && !places.ignores)
        status =
            twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld places are asked for, and there is nothing to take",
                     r->node, (long long)places.count);
    if (status != TW_OK || out->elements == 0)
        return status;
    const twi_slices slices = twi_slices_of(out->dtype, places.slice, r->inputs[0], r->outputs[0]);
    bool done = !places.ignores || twi_clear_elements(r, out->elements, out->dtype, r->outputs[0]) == TW_OK;
#pragma omp parallel for num_threads(r->threads) reduction(&& : done)                                                  \
    if (r->threads > 1 && out->dtype != TW_STRING && out->elements >= WORTH_A_TEAM)
    for (int64_t i = 0; i < places.count; i++) {
        int64_t at = twi_places_offset(r, 1, &places, i);
        done = done && (at < 0 || twi_copy_slice(&slices, at, i * places.slice));
    }
    return done ? TW_OK : twi_fail_memory(r->error, r->node);
}

/* ---- DynamicStitch: merged[indices_k[i]] = data_k[i]; the last one wins, and what nobody names is zero ----------- */

static tw_status stitch(const twi_run *r)
{
    const twi_operand *out = &r->output_operands[0];
    int n = r->num_inputs / 2;
    int64_t length = out->shape.dims[0], inner = twi_elements_between(out->shape, 1, out->shape.rank);
    tw_status status = twi_clear_elements(r, out->elements, out->dtype, r->outputs[0]);
    for (int k = 0; k < n && status == TW_OK; k++)
        status = twi_indices_check(r, k, length);
    for (int k = 0; k < n && status == TW_OK; k++)
        for (int64_t i = 0; i < r->input_operands[k].elements; i++) {
            int64_t to = twi_input_int(r, k, i) * inner;
            if (!twi_copy_elements(inner, out->dtype, twi_element(r->inputs[n + k], out->dtype, i * inner),
                                   twi_element_of_output(r->outputs[0], out->dtype, to)))
                return twi_fail_memory(r->error, r->node);
        }
    return status;
}

/* The greatest index says how many rows there are. */
static tw_status run_dynamic_stitch(const twi_run *r)
{
    int64_t length = 0;
    tw_shape shape = r->output_operands[0].shape;
    if (r->output_operands[0].elements >= 0)
        return stitch(r);
    for (int k = 0; k < r->num_inputs / 2; k++)
        for (int64_t i = 0; i < r->input_operands[k].elements; i++)
            length = twi_input_int(r, k, i) >= length ? twi_input_int(r, k, i) + 1 : length;
    shape.dims[0] = length;
    return twi_run_made(r, shape, 0, stitch);
}

/* ---- OneHot ------------------------------------------------------------------------------------------------------ */

/* The state is the axis of the output along which one element is on. */
static tw_status prepare_one_hot(twi_prepare *p)
{
    int64_t axis = twi_attr_int(p->attrs, "axis", -1), rank = p->outputs[0].shape.rank;
    if (axis < -1 || axis >= rank)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': axis %lld, expected -1 to %lld", p->op, p->node,
                        (long long)axis, (long long)rank - 1);
    p->state = (void *)(intptr_t)(axis < 0 ? rank - 1 : axis);
    return TW_OK;
}

/* indices [before,after]: output [before,depth,after]. An index that is no place is on nowhere. */
static tw_status run_one_hot(const twi_run *r)
{
    const twi_operand *out = &r->output_operands[0];
    int axis = (int)(intptr_t)r->state;
    int64_t depth = out->shape.dims[axis], after = twi_elements_between(out->shape, axis + 1, out->shape.rank);
    const twi_slices ones = twi_slices_of(out->dtype, 1, r->inputs[2], r->outputs[0]);
    tw_status status = twi_fill_elements(r, out->elements, out->dtype, r->inputs[3], r->outputs[0]);
    for (int64_t i = 0; i < r->input_operands[0].elements && status == TW_OK; i++) {
        int64_t index = twi_input_int(r, 0, i);
        if (index < 0 || index >= depth)
            continue;
        if (!twi_copy_slice(&ones, 0, (i / after * depth + index) * after + i % after))
            return twi_fail_memory(r->error, r->node);
    }
    return status;
}

const twi_kernel twi_cpu_gather_kernels[] = {
    {"Gather", "plain", TWI_MOVED_TYPES, prepare_gather, run_gather},
    {"ResourceGather", "plain", TWI_MOVED_TYPES, prepare_resource_gather, run_gather},
    {"GatherV2", "plain", TWI_MOVED_TYPES, prepare_gather, run_gather},
    {"GatherNd", "plain", TWI_MOVED_TYPES, twi_places_prepare, run_gather_nd},
    {"ResourceGatherNd", "plain", TWI_MOVED_TYPES, check_variable, run_gather_nd},
    {"DynamicStitch", "plain", TWI_MOVED_TYPES, NULL, run_dynamic_stitch},
    {"ParallelDynamicStitch", "plain", TWI_MOVED_TYPES, NULL, run_dynamic_stitch},
    {"OneHot", "plain", TWI_MOVED_TYPES, prepare_one_hot, run_one_hot},
    {0},
};
