/* segment.c - SegmentSum and UnsortedSegmentSum: rows that belong together are added, in their order, whatever the
 * number of threads. */
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"

enum {
    WORTH_A_TEAM = 32768, /* elements */
    COLUMNS = 64,         /* at least, for each thread that adds its part of every row */
};

static int64_t column_shares(const twi_run *r, int64_t columns)
{
    int64_t most = r->input_operands[0].elements < WORTH_A_TEAM ? 1 : columns / COLUMNS;
    return most < 1 ? 1 : most < r->threads ? most : r->threads;
}

static tw_status fail_segment(const twi_run *r, int64_t i)
{
    char text[128];
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': segment_ids%s = %lld is out of range [0, %lld)", r->node,
                    twi_position_text(r->input_operands[1].shape, i, text, sizeof text),
                    (long long)twi_input_int(r, 1, i), (long long)r->output_operands[0].shape.dims[0]);
}

/* Ids may be negative, but not too large. */
static tw_status check_segments(const twi_run *r)
{
    for (int64_t i = 0; i < r->input_operands[1].elements; i++)
        if (twi_input_int(r, 1, i) >= r->output_operands[0].shape.dims[0])
            return fail_segment(r, i);
    return TW_OK;
}

/* Ids rise from 0 on; some may be left out. */
static tw_status check_order(const twi_run *r)
{
    for (int64_t i = 0; i < r->input_operands[1].elements; i++) {
        int64_t id = twi_input_int(r, 1, i), last = i ? twi_input_int(r, 1, i - 1) : 0;
        if (id < 0 || id >= r->output_operands[0].shape.dims[0])
            return fail_segment(r, i);
        if (id < last)
            return twi_fail(r->error, TW_INVALID_ARGUMENT,
                            "'%s': segment ids are not increasing: %lld at %lld, after %lld", r->node, (long long)id,
                            (long long)i, (long long)last);
    }
    return TW_OK;
}

#define BODY "device/cpu/plain/segment.inl"
#include "device/cpu/plain/for_floats.h"
#include "device/cpu/plain/for_integers.h"
#undef BODY

TWI_WIDENED(unsorted_segment_sum)
TWI_WIDENED(segment_sum)

const twi_kernel twi_cpu_segment_kernels[] = {
    TWI_FLOAT_ROWS("UnsortedSegmentSum", twi_prepare_typed, unsorted_segment_sum, NULL),
    TWI_INTEGER_ROWS("UnsortedSegmentSum", twi_prepare_typed, unsorted_segment_sum, NULL),
    TWI_FLOAT_ROWS("SegmentSum", twi_prepare_typed, segment_sum, NULL),
    TWI_INTEGER_ROWS("SegmentSum", twi_prepare_typed, segment_sum, NULL),
    {0},
};
