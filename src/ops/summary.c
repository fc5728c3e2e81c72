/* summary.c - ops that turn values into serialized Summary messages for event logs. */
#include "base/text.h"
#include "graph/graph.h"
#include "ops/types.h"

#include <ctype.h>
#include <string.h>
#include <tower/ops.h>

static tw_status scalar_summary_shape(twi_inference *c)
{
    tw_error ignored;
    tw_shape merged;
    char text[2][96];
    if (twi_merge_shapes(c->inputs[0], c->inputs[1], &merged, &ignored) != TW_OK)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "tags and values not the same shape: %s != %s",
                        tw_shape_text(c->inputs[0], text[0], sizeof text[0]),
                        tw_shape_text(c->inputs[1], text[1], sizeof text[1]));
    c->outputs[0] = TW_SCALAR;
    return TW_OK;
}

static tw_status histogram_summary_shape(twi_inference *c)
{
    c->outputs[0] = TW_SCALAR;
    return twi_expect_rank(c, 0, 0);
}

#define REAL "{" TWI_REALS "}"

/* Images [N,H,W,C], of 1, 3 or 4 channels. */
static tw_status image_summary_shape(twi_inference *c)
{
    tw_shape images = c->inputs[1];
    int64_t channels = images.rank == 4 ? images.dims[3] : -1;
    c->outputs[0] = TW_SCALAR;
    if (twi_attr_int(c->attrs, "max_images", 3) < 1)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "max_images is less than 1");
    if (channels >= 0 && channels != 1 && channels != 3 && channels != 4)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "images have 1, 3 or 4 channels, not %lld", (long long)channels);
    return images.rank < 0 || images.rank == 4 ? twi_expect_rank(c, 0, 0) : twi_expect_rank(c, 1, 4);
}

/* Sounds [N,frames] or [N,frames,channels], from -1 to 1. */
static tw_status audio_summary_shape(twi_inference *c)
{
    tw_shape sounds = c->inputs[1];
    c->outputs[0] = TW_SCALAR;
    if (twi_attr_int(c->attrs, "max_outputs", 3) < 1)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "max_outputs is less than 1");
    if (sounds.rank >= 0 && sounds.rank != 2 && sounds.rank != 3)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "sounds have 2 or 3 dimensions, not %d", sounds.rank);
    tw_status status = twi_expect_rank(c, 0, 0);
    return status == TW_OK && c->num_inputs == 3 ? twi_expect_rank(c, 2, 0) : status;
}

static tw_status tensor_summary_shape(twi_inference *c)
{
    c->outputs[0] = TW_SCALAR;
    tw_status status = c->num_inputs == 3 ? twi_expect_rank(c, 0, 0) : TW_OK;
    return status == TW_OK && c->num_inputs == 3 ? twi_expect_rank(c, 2, 0) : status;
}

const twi_op twi_summary_ops[] = {
    {"AudioSummary", "tag:string, tensor:float", "summary:string", "sample_rate:float; max_outputs:int=3",
     audio_summary_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"AudioSummaryV2", "tag:string, tensor:float, sample_rate:float", "summary:string", "max_outputs:int=3",
     audio_summary_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"ScalarSummary", "tags:string, values:T", "summary:string", "T:" REAL, scalar_summary_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"HistogramSummary", "tag:string, values:T", "summary:string", "T:" REAL "=float", histogram_summary_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"ImageSummary", "tag:string, tensor:T", "summary:string",
     "max_images:int=3; T:{uint8,float,half,double}=float; bad_color:tensor", image_summary_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"TensorSummary", "tensor:T", "summary:string",
     "T:type; description:string=; labels:strings=[]; display_name:string=", tensor_summary_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"TensorSummaryV2", "tag:string, tensor:T, serialized_summary_metadata:string", "summary:string", "T:type",
     tensor_summary_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"MergeSummary", "inputs:N*string", "summary:string", "N:int", twi_shape_scalar, twi_not_differentiable,
     TWI_HOST_ONLY},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

/* Characters that tags may not have become '_', leading slashes go. */
static void clean_tag(const char *name, twi_text *text)
{
    while (*name == '/')
        name++;
    for (; *name; name++) {
        char c = isalnum((unsigned char)*name) || strchr("-/_.", *name) ? *name : '_';
        twi_text_append(text, &c, 1);
    }
}

/* op(tag, values) within a name scope of the summary's name, whose full name is the tag, as TensorFlow makes them. */
static tw_output add_summary(tw_graph *graph, const char *op, const char *tag_input, const char *name, tw_output values,
                             const tw_attr *attrs, int num_attrs)
{
    twi_text clean = {0};
    tw_output summary = {0};
    clean_tag(name, &clean);
    tw_enter_name_scope(graph, "%s", twi_text_string(&clean));
    const char *scope = tw_name_scope(graph);
    tw_tensor *tag = tw_tensor_string(scope, *scope ? strlen(scope) - 1 : 0);
    if (clean.failed || !tag) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while adding summary '%s'", name);
    } else {
        tw_attr text[] = {tw_attr_tensor("value", tag), tw_attr_type("dtype", TW_STRING)};
        tw_output inputs[] = {tw_node_output(tw_add_node(graph, "Const", tag_input, NULL, 0, text, 2), 0), values};
        summary = tw_node_output(tw_add_node(graph, op, scope, inputs, 2, attrs, num_attrs), 0);
        tw_add_to_collection(graph, "summaries", summary);
    }
    tw_leave_name_scope(graph);
    tw_tensor_release(tag);
    twi_text_free(&clean);
    return summary;
}

tw_output tw_summary_scalar(tw_graph *graph, const char *name, tw_output value)
{
    TWI_NEED_OR(graph, (tw_output){0});
    TWI_NEED_IN(graph, name, "name", (tw_output){0});
    return add_summary(graph, "ScalarSummary", "tags", name, value, NULL, 0);
}

tw_output tw_summary_histogram(tw_graph *graph, const char *name, tw_output values)
{
    TWI_NEED_OR(graph, (tw_output){0});
    TWI_NEED_IN(graph, name, "name", (tw_output){0});
    return add_summary(graph, "HistogramSummary", "tag", name, values, NULL, 0);
}

tw_output tw_summary_image(tw_graph *graph, const char *name, tw_output images, int most)
{
    TWI_NEED_OR(graph, (tw_output){0});
    TWI_NEED_IN(graph, name, "name", (tw_output){0});
    static const uint8_t red[] = {255, 0, 0, 255}; /* where a pixel is not finite */
    tw_tensor *bad_color = tw_tensor_from(TW_UINT8, TW_SHAPE(4), red);
    tw_output summary = {0};
    if (bad_color) {
        tw_attr attrs[] = {tw_attr_int("max_images", most), tw_attr_tensor("bad_color", bad_color)};
        summary = add_summary(graph, "ImageSummary", "tag", name, images, attrs, 2);
    } else {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while adding summary '%s'", name);
    }
    tw_tensor_release(bad_color);
    return summary;
}

tw_output tw_merge_summaries(tw_graph *graph, const tw_output *summaries, int count)
{
    return tw_node_output(tw_add_node(graph, "MergeSummary", NULL, summaries, count, NULL, 0), 0);
}

tw_output tw_merge_all_summaries(tw_graph *graph, const char *scope)
{
    TWI_NEED_OR(graph, (tw_output){0});
    int count = tw_get_collection(graph, "summaries", scope, NULL, 0);
    if (!count)
        return (tw_output){0};
    tw_output *summaries = twi_alloc_array((size_t)count, sizeof *summaries);
    if (!summaries) {
        twi_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while merging %d summaries", count);
        return (tw_output){0};
    }
    tw_get_collection(graph, "summaries", scope, summaries, count);
    tw_output merged = tw_merge_summaries(graph, summaries, count);
    twi_free(summaries);
    return merged;
}
