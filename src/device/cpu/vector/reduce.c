/* reduce.c - L2Loss on our own loops (row "vector"). */
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

const twi_kernel twi_vector_reduce_kernels[] = {
    {"L2Loss", "vector", TYPES, loss_prepare, loss_run, NULL},
    {0},
};
