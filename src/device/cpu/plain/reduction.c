/* reduction.c - see reduction.h. */
#include "device/cpu/plain/reduction.h"

#include "base/memory.h"
#include "device/cpu/plain/typed.h"

static int64_t integer_at(const twi_operand *operand, const void *data, int64_t i)
{
    return operand->dtype == TW_INT64 ? ((const int64_t *)data)[i] : ((const int32_t *)data)[i];
}

static tw_status plan_reduction(twi_reduction *d, const twi_operand *input, const twi_operand *axes, const void *values,
                                tw_error *error)
{
    bool reduced[TW_MAX_RANK] = {false};
    int rank = input->shape.rank;
    for (int64_t i = 0; i < axes->elements; i++) {
        int64_t axis = integer_at(axes, values, i);
        if (axis < -rank || axis >= rank)
            return twi_fail(error, TW_INVALID_ARGUMENT, "axis %lld, expected -%d to %d", (long long)axis, rank, rank - 1);
        reduced[axis < 0 ? axis + rank : axis] = true;
    }
    *d = (twi_reduction){.exclusive = d->exclusive, .reverse = d->reverse, .ready = true, .outputs = 1, .inputs = 1, .run = 1};
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; i--) { /* fills the lists from the last axis to the first */
        int64_t size = input->shape.dims[i];
        int *count = reduced[i] ? &d->num_reduced : &d->num_kept;
        int64_t *sizes = reduced[i] ? d->reduced_size : d->kept_size;
        int64_t *steps = reduced[i] ? d->reduced_step : d->kept_step;
        bool joins = i < rank - 1 && reduced[i] == reduced[i + 1] && *count > 0;
        if (joins) {
            sizes[*count - 1] *= size;
        } else {
            sizes[*count] = size;
            steps[(*count)++] = step;
        }
        *(reduced[i] ? &d->inputs : &d->outputs) *= size;
        step *= size;
    }
    if (d->num_reduced && d->reduced_step[0] == 1)
        d->run = d->reduced_size[0];
    return TW_OK;
}

tw_status twi_prepare_reduction(twi_prepare *p)
{
    tw_status status = twi_prepare_typed(p);
    if (status != TW_OK)
        return status;
    twi_reduction *d = p->state = twi_alloc(sizeof *d);
    if (!d)
        return twi_fail_memory(p->error, "preparing a reduction");
    d->exclusive = twi_attr_bool(p->attrs, "exclusive", false);
    d->reverse = twi_attr_bool(p->attrs, "reverse", false);
    const tw_tensor *axes = p->inputs[1].value;
    return axes ? plan_reduction(d, &p->inputs[0], &p->inputs[1], tw_tensor_data(axes), p->error) : TW_OK;
}

const twi_reduction *twi_reduction_of(const twi_run *r, twi_reduction *now)
{
    const twi_reduction *prepared = r->state;
    *now = *prepared;
    if (prepared->ready)
        return prepared;
    return plan_reduction(now, &r->input_operands[0], &r->input_operands[1], r->inputs[1], r->error) == TW_OK ? now
                                                                                                               : NULL;
}
