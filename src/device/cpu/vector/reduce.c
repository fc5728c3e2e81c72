/* reduce.c - L2Loss, Sum and Mean on our own loops (rows "vector"), and what reduces nothing. */
#include "base/memory.h"
#include "device/cpu/vector/loops.h"
#include "device/kernel.h"

#define TYPES (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16))

/* L2Loss (t): half the sum of squares, as if t were a matrix of 64 columns */
enum { LOSS_COLUMNS = 64 };

static tw_status loss_prepare(twi_prepare *p)
{
    int64_t chunks = twi_row_chunks(p->inputs[0].elements / LOSS_COLUMNS);
    p->workspace = (size_t)(chunks * LOSS_COLUMNS) * sizeof(float);
    return TW_OK;
}

static tw_status loss_run(const twi_run *r)
{
    int64_t elements = r->input_operands[0].elements, rows = elements / LOSS_COLUMNS, chunks = twi_row_chunks(rows);
    float *sums = r->workspace;
    const uint16_t *narrow = r->inputs[0];
    const float *wide = r->inputs[0];
    double sum = 0;
    twi_rows_job job = {.form = twi_form_of(r->input_operands[0].dtype), .rows = rows, .channels = LOSS_COLUMNS,
                        .x = r->inputs[0], .sums = sums};
    twi_team_run(elements > TWI_CHUNK ? r->threads : 1, twi_loops_best()->sum_squares, &job, chunks);
    for (int64_t i = 0; i < chunks * LOSS_COLUMNS; i++)
        sum += sums[i];
    for (int64_t i = rows * LOSS_COLUMNS; i < elements; i++) {
        double x = job.form == TWI_BFLOATS ? tw_bfloat16_to_float(narrow[i]) : wide[i];
        sum += x * x;
    }
    if (job.form == TWI_BFLOATS)
        *(uint16_t *)r->outputs[0] = tw_float_to_bfloat16((float)(sum / 2));
    else
        *(float *)r->outputs[0] = (float)(sum / 2);
    return TW_OK;
}

/* ---- Sum, Mean (input, axes) ------------------------------------------------------------------------------------- */

static tw_status sum_accepts(const twi_prepare *p)
{
    return p->inputs[1].value && p->inputs[0].elements > 0 ? TW_OK : TW_UNIMPLEMENTED;
}

static tw_status run_sum(const twi_run *r, double divisor)
{
    const twi_reduction *d = r->state;
    twi_sum_job job = {.reduction = d, .x = r->inputs[0], .out = r->outputs[0], .divisor = divisor};
    int threads = d->outputs * d->inputs > TWI_CHUNK ? r->threads : 1;
    bool keeps_last = d->run == 1 && d->outputs > 1 && d->kept_step[0] == 1;
    if (keeps_last)
        twi_team_run(threads, twi_loops_best()->sum_columns, &job,
                     d->outputs / d->kept_size[0] * ((d->kept_size[0] + TWI_SUM_COLUMNS - 1) / TWI_SUM_COLUMNS));
    else
        twi_team_run(threads, twi_loops_best()->sum_runs, &job, d->outputs);
    return TW_OK;
}

static tw_status sum_run(const twi_run *r)
{
    return run_sum(r, 1);
}

static tw_status mean_run(const twi_run *r)
{
    return run_sum(r, (double)((const twi_reduction *)r->state)->inputs);
}

/* Where axes of one element are reduced, or none, the elements stay what they are. */
static tw_status reduces_nothing(const twi_prepare *p)
{
    return p->inputs[1].value && p->inputs[0].elements == p->outputs[0].elements && p->inputs[0].elements > 0
               ? TW_OK
               : TW_UNIMPLEMENTED;
}

#define PASSED(op) {op, "passed", TWI_NUMBER_TYPES, NULL, NULL, NULL, .accepts = reduces_nothing}

const twi_kernel twi_vector_reduce_kernels[] = {
    PASSED("Sum"),
    PASSED("Mean"),
    PASSED("Prod"),
    PASSED("Max"),
    PASSED("Min"),
    {"Sum", "vector", TWI_TYPE(TW_FLOAT32), twi_prepare_reduction, sum_run, twi_free, .accepts = sum_accepts},
    {"Mean", "vector", TWI_TYPE(TW_FLOAT32), twi_prepare_reduction, mean_run, twi_free, .accepts = sum_accepts},
    {"L2Loss", "vector", TYPES, loss_prepare, loss_run, NULL},
    {0},
};
