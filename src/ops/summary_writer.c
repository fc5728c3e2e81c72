/* summary_writer.c - summaries that nodes write to event files themselves, as TensorFlow 2's tf.summary does. */
#include "ops/rules.h"
#include "ops/types.h"

/* The writer's handle, then scalars: of these inputs 1 to `last`, but for `other`. */
static tw_status expect_scalars(twi_inference *c, int last, int other)
{
    tw_status status = TW_OK;
    for (int i = 1; i <= last && status == TW_OK; i++)
        status = i == other ? TW_OK : twi_expect_rank(c, i, 0);
    return status;
}

static tw_status writer_shape(twi_inference *c)
{
    c->outputs[0] = TW_SCALAR;
    return TW_OK;
}

/* Folder, numbers and suffix; or a step, a tag and a value. */
static tw_status scalars_shape(twi_inference *c)
{
    return expect_scalars(c, c->num_inputs - 1, -1);
}

static tw_status step_shape(twi_inference *c)
{
    return expect_scalars(c, 1, -1);
}

static tw_status tagged_shape(twi_inference *c)
{
    return expect_scalars(c, 2, -1);
}

/* Step, tensor, tag, what the reader is told of it. */
static tw_status tensor_shape(twi_inference *c)
{
    return expect_scalars(c, 4, 2);
}

/* Images [N,H,W,C], of 1, 3 or 4 channels, and a colour. */
static tw_status images_shape(twi_inference *c)
{
    int64_t channels = c->inputs[3].rank == 4 ? c->inputs[3].dims[3] : -1;
    if (twi_attr_int(c->attrs, "max_images", 3) < 1)
        return TWI_REFUSE(c, "max_images is less than 1");
    if (channels >= 0 && channels != 1 && channels != 3 && channels != 4)
        return TWI_REFUSE(c, "images have 1, 3 or 4 channels, not %lld", (long long)channels);
    if (channels >= 0 && c->inputs[4].rank == 1 && c->inputs[4].dims[0] >= 0 && c->inputs[4].dims[0] < channels)
        return TWI_REFUSE(c, "bad_color has %lld channels, images have %lld", (long long)c->inputs[4].dims[0],
                          (long long)channels);
    tw_status status = expect_scalars(c, 2, -1);
    if (status == TW_OK)
        status = twi_expect_rank(c, 3, 4);
    return status == TW_OK ? twi_expect_rank(c, 4, 1) : status;
}

/* Sounds [N,frames] or [N,frames,channels], and how many frames a second. */
static tw_status sounds_shape(twi_inference *c)
{
    int rank = c->inputs[3].rank;
    if (twi_attr_int(c->attrs, "max_outputs", 3) < 1)
        return TWI_REFUSE(c, "max_outputs is less than 1");
    if (rank >= 0 && rank != 2 && rank != 3)
        return TWI_REFUSE(c, "sounds have 2 or 3 dimensions, not %d", rank);
    return expect_scalars(c, 4, 3);
}

static tw_status nothing_shape(twi_inference *c)
{
    (void)c;
    return TW_OK;
}

#define WRITES NULL, TWI_STATEFUL | TWI_HOST_ONLY
#define REAL "{" TWI_REALS "}"

const twi_op twi_summary_writer_ops[] = {
    {"SummaryWriter", "", "writer:resource", "shared_name:string=; container:string=", writer_shape, WRITES,
     .makes = TWI_MAKES_QUEUE},
    {"CreateSummaryFileWriter",
     "writer:resource, logdir:string, max_queue:int32, flush_millis:int32, filename_suffix:string", "", "",
     scalars_shape, WRITES, "q...."},
    {"FlushSummaryWriter", "writer:resource", "", "", nothing_shape, WRITES, "q"},
    {"CloseSummaryWriter", "writer:resource", "", "", nothing_shape, WRITES, "q"},
    {"WriteSummary", "writer:resource, step:int64, tensor:T, tag:string, summary_metadata:string", "", "T:type",
     tensor_shape, WRITES, "q...."},
    {"WriteRawProtoSummary", "writer:resource, step:int64, tensor:string", "", "", step_shape, WRITES, "q.."},
    {"WriteGraphSummary", "writer:resource, step:int64, tensor:string", "", "", tagged_shape, WRITES, "q.."},
    {"ImportEvent", "writer:resource, event:string", "", "", scalars_shape, WRITES, "q."},
    {"WriteScalarSummary", "writer:resource, step:int64, tag:string, value:T", "", "T:" REAL, scalars_shape, WRITES,
     "q..."},
    {"WriteHistogramSummary", "writer:resource, step:int64, tag:string, values:T", "", "T:{" TWI_REALS ",bool}=float",
     tagged_shape, WRITES, "q..."},
    {"WriteImageSummary", "writer:resource, step:int64, tag:string, tensor:T, bad_color:uint8", "",
     "max_images:int=3; T:{uint8,float,half,double}=float", images_shape, WRITES, "q...."},
    {"WriteAudioSummary", "writer:resource, step:int64, tag:string, tensor:float, sample_rate:float", "",
     "max_outputs:int=3", sounds_shape, WRITES, "q...."},
    {0},
};
