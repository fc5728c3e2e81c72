/* reader.c - readers as nodes of a graph: records of the files whose names lie in a queue. */
#include "ops/build.h"

#include <tower/queue.h>

static tw_status read_up_to_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 2, 0);
    const tw_tensor *n = twi_ask_value(c, 2);
    int64_t count = n && tw_tensor_elements(n) == 1 ? *(const int64_t *)tw_tensor_data(n) : -1;
    if (status == TW_OK && n && count < 0)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "%lld records are asked for, expected 0 or more",
                        (long long)count);
    c->outputs[0] = c->outputs[1] = (tw_shape){1, {count}};
    return status;
}

/* A batch of records, as large as RecordInput says. */
static tw_status records_shape(twi_inference *c)
{
    int64_t batch = twi_attr_int(c->attrs, "batch_size", 32);
    if (batch < 1 || twi_attr_int(c->attrs, "file_buffer_size", 10000) < 1)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "batch_size and file_buffer_size must be above 0");
    c->outputs[0] = TW_SHAPE(batch);
    return TW_OK;
}

#define NAMES "container:string=; shared_name:string="
#define STATE TWI_STATEFUL | TWI_HOST_ONLY

const twi_op twi_reader_ops[] = {
    {"FixedLengthRecordReaderV2", "", "reader_handle:resource",
     "header_bytes:int=0; record_bytes:int; footer_bytes:int=0; hop_bytes:int=0; " NAMES "; encoding:string=",
     twi_shape_scalar, NULL, STATE, .makes = TWI_MAKES_READER},
    {"TFRecordReaderV2", "", "reader_handle:resource", NAMES "; compression_type:string=", twi_shape_scalar, NULL,
     STATE, .makes = TWI_MAKES_READER},
    {"TextLineReaderV2", "", "reader_handle:resource", "skip_header_lines:int=0; " NAMES, twi_shape_scalar, NULL, STATE,
     .makes = TWI_MAKES_READER},
    {"WholeFileReaderV2", "", "reader_handle:resource", NAMES, twi_shape_scalar, NULL, STATE,
     .makes = TWI_MAKES_READER},
    {"IdentityReaderV2", "", "reader_handle:resource", NAMES, twi_shape_scalar, NULL, STATE,
     .makes = TWI_MAKES_READER},
    {"ReaderReadV2", "reader_handle:resource, queue_handle:resource", "key:string, value:string", "", twi_shape_scalar,
     twi_not_differentiable, STATE | TWI_INPUT, "qq"},
    {"ReaderReadUpToV2", "reader_handle:resource, queue_handle:resource, num_records:int64",
     "keys:string, values:string", "", read_up_to_shape, twi_not_differentiable, STATE | TWI_INPUT, "qq."},
    {"ReaderNumRecordsProducedV2", "reader_handle:resource", "records_produced:int64", "", twi_shape_scalar,
     twi_not_differentiable, STATE, "q"},
    {"ReaderNumWorkUnitsCompletedV2", "reader_handle:resource", "units_completed:int64", "", twi_shape_scalar,
     twi_not_differentiable, STATE, "q"},
    {"RecordInput", "", "records:string",
     "file_pattern:string; file_random_seed:int=301; file_shuffle_shift_ratio:float=0; file_buffer_size:int=10000; "
     "file_parallelism:int=16; batch_size:int=32; compression_type:string=",
     records_shape, twi_not_differentiable, TWI_STATEFUL | TWI_HOST_ONLY | TWI_INPUT},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

tw_output tw_fixed_length_record_reader(tw_graph *graph, int64_t header_bytes, int64_t record_bytes,
                                        int64_t footer_bytes)
{
    return twi_build(graph, "FixedLengthRecordReaderV2", NULL, 0,
                     TWI_ATTRS(tw_attr_int("header_bytes", header_bytes), tw_attr_int("record_bytes", record_bytes),
                               tw_attr_int("footer_bytes", footer_bytes)));
}

tw_output tw_record_reader(tw_graph *graph)
{
    return twi_build(graph, "TFRecordReaderV2", NULL, 0, TWI_NO_ATTRS);
}

tw_output tw_text_line_reader(tw_graph *graph, int64_t skip_header_lines)
{
    return twi_build(graph, "TextLineReaderV2", NULL, 0, TWI_ATTRS(tw_attr_int("skip_header_lines", skip_header_lines)));
}

tw_output tw_whole_file_reader(tw_graph *graph)
{
    return twi_build(graph, "WholeFileReaderV2", NULL, 0, TWI_NO_ATTRS);
}

tw_output tw_reader_read(tw_graph *graph, tw_output reader, tw_output queue, tw_output *key)
{
    tw_output read = twi_build(graph, "ReaderReadV2", TWI_INPUTS(reader, queue), TWI_NO_ATTRS);
    if (key)
        *key = read;
    return tw_node_output(read.node, 1);
}

tw_output tw_reader_num_records_produced(tw_graph *graph, tw_output reader)
{
    return twi_build(graph, "ReaderNumRecordsProducedV2", TWI_INPUTS(reader), TWI_NO_ATTRS);
}
