/* blocks.c - blocks of neighbours moved between axes: from space to the batch and back, from space to depth and back.
 * Rows, shape rules and gradient rules. */
#include "ops/rules.h"

/* ---- space and batch --------------------------------------------------------------------------------------- */

/* The blocks of SpaceToBatchND are an input, those of SpaceToBatch an attribute, the same in height and width. False:
 * not known yet. */
static bool block_sizes(twi_inference *c, int64_t sizes[TW_MAX_RANK], int *count)
{
    if (c->num_inputs == 2) {
        *count = 2;
        sizes[0] = sizes[1] = twi_attr_int(c->attrs, "block_size", 0);
        return true;
    }
    tw_shape spelled = twi_shape_of_value(twi_ask_value(c, 1));
    *count = spelled.rank;
    for (int i = 0; i < spelled.rank; i++)
        sizes[i] = spelled.dims[i];
    return spelled.rank >= 0;
}

/* Refuses blocks and margins that cannot be. */
static tw_status check_blocks(twi_inference *c, const int64_t *blocks, int count, const tw_tensor *margins)
{
    if (c->inputs[0].rank >= 0 && c->inputs[0].rank < count + 1)
        return TWI_REFUSE(c, "the input has rank %d, expected at least %d", c->inputs[0].rank, count + 1);
    for (int i = 0; i < count; i++)
        if (blocks[i] < 1)
            return TWI_REFUSE(c, "block size %lld", (long long)blocks[i]);
    if (margins && (margins->shape.rank != 2 || margins->shape.dims[0] != count || margins->shape.dims[1] != 2)) {
        char text[96];
        return TWI_REFUSE(c, "paddings and crops have shape [%d,2], not %s", count,
                          tw_shape_text(margins->shape, text, sizeof text));
    }
    for (int i = 0; margins && i < 2 * count; i++)
        if (twi_tensor_int(margins, i) < 0)
            return TWI_REFUSE(c, "paddings and crops are not negative: %lld", (long long)twi_tensor_int(margins, i));
    return TW_OK;
}

/* What is known of them before their values are. */
static tw_status check_counts(const twi_inference *c)
{
    int rank = c->inputs[0].rank;
    for (int i = 1; i < c->num_inputs && rank >= 0; i++)
        if (c->inputs[i].rank > 0 && c->inputs[i].dims[0] >= rank)
            return TWI_REFUSE(c, "the input has rank %d, expected more than %lld", rank,
                              (long long)c->inputs[i].dims[0]);
    return TW_OK;
}

static tw_status blocks_shape(twi_inference *c, bool to_batch)
{
    tw_shape in = c->inputs[0], out = in;
    int64_t blocks[TW_MAX_RANK] = {0}, product = 1;
    int count = 0;
    const tw_tensor *margins = twi_ask_value(c, c->num_inputs - 1);
    bool known = block_sizes(c, blocks, &count);
    tw_status status = known ? check_blocks(c, blocks, count, margins) : check_counts(c);
    if (status != TW_OK || in.rank < 0)
        return status;
    if (!known || !margins) {
        c->outputs[0] = twi_unknown_of_rank(in.rank);
        return TW_OK;
    }
    for (int i = 0; i < count; i++) {
        int64_t margin = twi_tensor_int(margins, 2 * i) + twi_tensor_int(margins, 2 * i + 1), dim = in.dims[i + 1];
        if (blocks[i] > INT32_MAX || product > INT32_MAX || margin > INT32_MAX || margin < 0)
            return TWI_REFUSE(c, "blocks or margins are too large");
        product *= blocks[i];
        if (dim < 0)
            continue;
        if (to_batch && (dim + margin) % blocks[i] != 0)
            return TWI_REFUSE(c, "padded axis %d of %lld is no multiple of the block's %lld", i + 1,
                              (long long)(dim + margin), (long long)blocks[i]);
        if (dim > INT64_MAX / 4 / blocks[i])
            return TWI_REFUSE(c, "axis %d of %lld is too large", i + 1, (long long)dim);
        out.dims[i + 1] = to_batch ? (dim + margin) / blocks[i] : dim * blocks[i] - margin;
        if (out.dims[i + 1] < 0)
            return TWI_REFUSE(c, "crops of %lld leave nothing of axis %d", (long long)margin, i + 1);
    }
    if (in.dims[0] >= 0 && to_batch && in.dims[0] > INT64_MAX / 4 / product)
        return TWI_REFUSE(c, "a batch of %lld is too large", (long long)in.dims[0]);
    if (in.dims[0] >= 0 && !to_batch && in.dims[0] % product != 0)
        return TWI_REFUSE(c, "a batch of %lld is no multiple of the block's %lld", (long long)in.dims[0],
                          (long long)product);
    if (in.dims[0] >= 0)
        out.dims[0] = to_batch ? in.dims[0] * product : in.dims[0] / product;
    c->outputs[0] = out;
    return TW_OK;
}

static tw_status to_batch_shape(twi_inference *c)
{
    return blocks_shape(c, true);
}

static tw_status to_space_shape(twi_inference *c)
{
    return blocks_shape(c, false);
}

/* The counterpart, with the same blocks and margins. */
static void take_back(twi_gradient *g, const char *op)
{
    tw_output inputs[3] = {DY(0)};
    tw_attr block = tw_attr_int("block_size", twi_attr_int(&g->node->attrs, "block_size", 0));
    int count = tw_node_num_inputs(g->node);
    for (int i = 1; i < count; i++)
        inputs[i] = X(i);
    g->dx[0] = twi_build(G, op, inputs, count, &block, count == 2);
}

static void to_batch_gradient(twi_gradient *g)
{
    take_back(g, tw_node_num_inputs(g->node) == 2 ? "BatchToSpace" : "BatchToSpaceND");
}

static void to_space_gradient(twi_gradient *g)
{
    take_back(g, tw_node_num_inputs(g->node) == 2 ? "SpaceToBatch" : "SpaceToBatchND");
}

/* ---- space and depth --------------------------------------------------------------------------------------- */

static tw_status depth_shape(twi_inference *c, bool to_depth)
{
    tw_shape in = c->inputs[0], out = in;
    int64_t block = twi_attr_int(c->attrs, "block_size", 0);
    const char *format = twi_attr_string(c->attrs, "data_format", "NHWC");
    int first = strcmp(format, "NCHW") == 0 ? 2 : 1, depth = first == 2 ? 1 : 3; /* the axis of height, of depth */
    tw_status status = twi_expect_rank(c, 0, 4);
    if (status != TW_OK || in.rank < 0)
        return status;
    if (strcmp(format, "NCHW_VECT_C") == 0)
        return twi_fail(c->error, TW_UNIMPLEMENTED, "data format NCHW_VECT_C");
    if (block > INT16_MAX)
        return TWI_REFUSE(c, "block size %lld, expected at most %d", (long long)block, INT16_MAX);
    if (block < 2)
        return TWI_REFUSE(c, "block size %lld, expected 2 or more", (long long)block);
    for (int i = first; i < first + 2; i++) {
        if (to_depth && in.dims[i] >= 0 && in.dims[i] % block != 0)
            return TWI_REFUSE(c, "axis %d of %lld is no multiple of the block's %lld", i, (long long)in.dims[i],
                              (long long)block);
        if (in.dims[i] > INT64_MAX / 4 / block)
            return TWI_REFUSE(c, "axis %d of %lld is too large", i, (long long)in.dims[i]);
        out.dims[i] = in.dims[i] < 0 ? -1 : to_depth ? in.dims[i] / block : in.dims[i] * block;
    }
    int64_t area = block * block;
    if (!to_depth && in.dims[depth] >= 0 && in.dims[depth] % area != 0)
        return TWI_REFUSE(c, "a depth of %lld is no multiple of the block's %lld", (long long)in.dims[depth],
                          (long long)area);
    if (in.dims[depth] > INT64_MAX / 4 / area)
        return TWI_REFUSE(c, "a depth of %lld is too large", (long long)in.dims[depth]);
    out.dims[depth] = in.dims[depth] < 0 ? -1 : to_depth ? in.dims[depth] * area : in.dims[depth] / area;
    c->outputs[0] = out;
    return TW_OK;
}

static tw_status to_depth_shape(twi_inference *c)
{
    return depth_shape(c, true);
}

static tw_status from_depth_shape(twi_inference *c)
{
    return depth_shape(c, false);
}

static void to_depth_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "DepthToSpace", &DY(0), 1);
}

static void from_depth_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "SpaceToDepth", &DY(0), 1);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define INDEX "{int32,int64}"
#define DEPTH "T:type; block_size:int>=2; data_format:{NHWC,NCHW,NCHW_VECT_C}=NHWC"

const twi_op twi_blocks_ops[] = {
    {"SpaceToBatchND", "input:T, block_shape:Tblock_shape, paddings:Tpaddings", "output:T",
     "T:type; Tblock_shape:" INDEX "=int32; Tpaddings:" INDEX "=int32", to_batch_shape, to_batch_gradient},
    {"BatchToSpaceND", "input:T, block_shape:Tblock_shape, crops:Tcrops", "output:T",
     "T:type; Tblock_shape:" INDEX "=int32; Tcrops:" INDEX "=int32", to_space_shape, to_space_gradient},
    {"SpaceToBatch", "input:T, paddings:Tpaddings", "output:T", "T:type; Tpaddings:" INDEX "=int32; block_size:int>=2",
     to_batch_shape, to_batch_gradient},
    {"BatchToSpace", "input:T, crops:Tidx", "output:T", "T:type; block_size:int>=2; Tidx:" INDEX "=int32",
     to_space_shape, to_space_gradient},
    {"SpaceToDepth", "input:T", "output:T", DEPTH, to_depth_shape, to_depth_gradient},
    {"DepthToSpace", "input:T", "output:T", DEPTH, from_depth_shape, from_depth_gradient},
    {0},
};
