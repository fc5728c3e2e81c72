/* summary_writer.c - the nodes of summary writers, and what they write as it comes; summaries of values are made in
 * summary.c. */
#include "device/state/summary_writer.h"

#include "base/memory.h"
#include "base/text.h"

static tw_status prepare_writer(twi_prepare *p)
{
    return twi_summary_writer_make(p->outputs[0].resource, p->node, p->error);
}

/* state: the writer. */
static tw_status prepare_use(twi_prepare *p)
{
    p->state = twi_summary_writer_of(p->inputs[0].resource);
    return p->state ? TW_OK
                    : twi_fail(p->error, TW_INVALID_ARGUMENT,
                               "%s '%s': its input 0 is not the handle of a summary writer", p->op, p->node);
}

static const char *text_of(const twi_run *r, int input)
{
    const tw_string *text = r->inputs[input];
    return text->data ? text->data : "";
}

static tw_status run_create(const twi_run *r)
{
    return twi_summary_writer_open(r->state, text_of(r, 1), text_of(r, 4), *(const int32_t *)r->inputs[2],
                                   *(const int32_t *)r->inputs[3], r->error);
}

static tw_status run_flush(const twi_run *r)
{
    return twi_summary_writer_flush(r->state, r->error);
}

static tw_status run_close(const twi_run *r)
{
    return twi_summary_writer_close(r->state, r->error);
}

/* Several are one: the values of all. */
static tw_status run_write_raw(const twi_run *r)
{
    const tw_string *summaries = r->inputs[2];
    twi_text all = {0};
    tw_status status;
    for (int64_t i = 0; i < r->input_operands[2].elements; i++)
        twi_text_append(&all, summaries[i].data ? summaries[i].data : "", summaries[i].size);
    if (all.failed)
        status = twi_fail_memory(r->error, r->node);
    else
        status = twi_summary_writer_add(r->state, TWI_WRITE_SUMMARY, *(const int64_t *)r->inputs[1],
                                        twi_text_string(&all), all.size, r->error);
    twi_text_free(&all);
    return status;
}

static tw_status run_write_graph(const twi_run *r)
{
    return twi_summary_writer_add(r->state, TWI_WRITE_GRAPH, *(const int64_t *)r->inputs[1], text_of(r, 2),
                                  ((const tw_string *)r->inputs[2])->size, r->error);
}

static tw_status run_import(const twi_run *r)
{
    return twi_summary_writer_add(r->state, TWI_WRITE_EVENT, 0, text_of(r, 1), ((const tw_string *)r->inputs[1])->size,
                                  r->error);
}

const twi_kernel twi_cpu_summary_writer_kernels[] = {
    {"SummaryWriter", "plain", 0, prepare_writer},
    {"CreateSummaryFileWriter", "plain", 0, prepare_use, run_create},
    {"FlushSummaryWriter", "plain", 0, prepare_use, run_flush},
    {"CloseSummaryWriter", "plain", 0, prepare_use, run_close},
    {"WriteRawProtoSummary", "plain", 0, prepare_use, run_write_raw},
    {"WriteGraphSummary", "plain", 0, prepare_use, run_write_graph},
    {"ImportEvent", "plain", 0, prepare_use, run_import},
    {0},
};
