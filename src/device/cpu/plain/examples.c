/* examples.c - TowerBatch: a tower's batch of a data set in memory, as the input pipeline makes it. */
#include "base/memory.h"
#include "stream/examples.h"
#include "device/kernel.h"

#include <omp.h>
#include <string.h>

static size_t scratch_of_thread(const twi_examples *e)
{
    return (twi_distort_scratch(&e->distorter) + 63) / 64 * 64;
}

static tw_status prepare(twi_prepare *p)
{
    twi_examples e;
    tw_status status = twi_examples_init(&e, p->attrs, p->inputs[0].shape, p->error);
    if (status != TW_OK)
        return status;
    p->workspace = (size_t)p->threads * scratch_of_thread(&e);
    return twi_keep(p, &e, sizeof e);
}

static void make(const twi_run *r, float *batch, int32_t *batch_labels)
{
    const twi_examples *e = r->state;
    const twi_distorter *d = &e->distorter;
    const uint8_t *images = r->inputs[0];
    const int32_t *labels = r->inputs[1];
    const int64_t step = *(const int64_t *)r->inputs[2];
    const size_t in = (size_t)(d->height * d->width * d->channels), scratch = scratch_of_thread(e);
    const size_t out = (size_t)(d->out_height * d->out_width * d->channels);
#pragma omp parallel for num_threads(r->threads)
    for (int64_t i = 0; i < e->batch; i++) {
        int64_t k = twi_example_number(e, step, i), index = twi_example_index(e->count, e->seed, e->shuffle, k);
        twi_distortion drawn = twi_draw_distortion(d, e->seed, k, e->count, index);
        twi_distort(d, &drawn, images + (size_t)index * in, batch + (size_t)i * out,
                    (char *)r->workspace + (size_t)omp_get_thread_num() * scratch);
        batch_labels[i] = labels[index];
    }
}

static tw_status run(const twi_run *r)
{
    make(r, r->outputs[0], r->outputs[1]);
    return TW_OK;
}

static tw_status run_into(const twi_run *r)
{
    make(r, (void *)r->inputs[3], (void *)r->inputs[4]);
    return TW_OK;
}

const twi_kernel twi_cpu_examples_kernels[] = {
    {"TowerData", "plain", 0},
    {"TowerBatch", "plain", 0, prepare, run, twi_free},
    {"_TowerBatchInto", "plain", 0, prepare, run_into, twi_free},
    {0},
};
