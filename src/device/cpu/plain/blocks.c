/* blocks.c - blocks of neighbours moved between axes: space and batch, space and depth. */
#include "device/cpu/plain/move.h"

#include <string.h>

/* ---- space and batch --------------------------------------------------------------------------------------------- */

/* A batch index of the side with blocks is (offset in the block) x (batches) + batch; what lies at `start` and behind
 * is inside of the other side's space. */
typedef struct tiling {
    int axes;
    int64_t blocks[TW_MAX_RANK], start[TW_MAX_RANK];
    tw_shape tiles, space; /* the side with blocks, and the other */
} tiling;

static tiling read_tiling(const twi_run *r, bool to_batch)
{
    int margins = r->num_inputs - 1;
    tiling t = {.axes = (int)r->input_operands[margins].shape.dims[0],
                .tiles = to_batch ? r->output_operands[0].shape : r->input_operands[0].shape,
                .space = to_batch ? r->input_operands[0].shape : r->output_operands[0].shape};
    for (int i = 0; i < t.axes; i++) {
        t.start[i] = twi_input_int(r, margins, 2 * i);
        t.blocks[i] = margins == 2 ? twi_input_int(r, 1, i) : (int64_t)(intptr_t)r->state;
    }
    return t;
}

/* Where row number `row` of the side with blocks lies on the other, as a row there; -1: in the margin. */
static int64_t row_in_space(const tiling *t, int64_t row)
{
    int64_t tile[TW_MAX_RANK], at = 0, stride = 1;
    for (int i = t->axes; i > 0; i--) {
        tile[i - 1] = row % t->tiles.dims[i];
        row /= t->tiles.dims[i];
    }
    int64_t batch = row % t->space.dims[0], offset = row / t->space.dims[0];
    for (int i = t->axes; i > 0; i--) {
        int64_t place = tile[i - 1] * t->blocks[i - 1] + offset % t->blocks[i - 1] - t->start[i - 1];
        offset /= t->blocks[i - 1];
        if (place < 0 || place >= t->space.dims[i])
            return -1;
        at += place * stride;
        stride *= t->space.dims[i];
    }
    return at + batch * stride;
}

static tw_status move_rows(const twi_run *r, bool to_batch)
{
    const tiling t = read_tiling(r, to_batch);
    tw_dtype dtype = r->output_operands[0].dtype;
    int64_t rows = twi_elements_between(t.tiles, 0, t.axes + 1);
    int64_t row = twi_elements_between(t.tiles, t.axes + 1, t.tiles.rank);
    tw_status status = TW_OK;
    if (to_batch)
        status = twi_clear_elements(r, r->output_operands[0].elements, dtype, r->outputs[0]);
    for (int64_t i = 0; i < rows && row && r->output_operands[0].elements && status == TW_OK; i++) {
        int64_t place = row_in_space(&t, i);
        if (place >= 0 && !twi_copy_elements(row, dtype, twi_element(r->inputs[0], dtype, (to_batch ? place : i) * row),
                                             twi_element_of_output(r->outputs[0], dtype, (to_batch ? i : place) * row)))
            status = twi_fail_memory(r->error, r->node);
    }
    return status;
}

static tw_status run_to_batch(const twi_run *r)
{
    return move_rows(r, true);
}

static tw_status run_to_space(const twi_run *r)
{
    return move_rows(r, false);
}

static tw_status prepare_block(twi_prepare *p)
{
    p->state = (void *)(intptr_t)twi_attr_int(p->attrs, "block_size", 0);
    return TW_OK;
}

/* ---- space and depth --------------------------------------------------------------------------------------------- */

/* The state is the block's size, negative where depth is the second axis. */
static tw_status prepare_depth(twi_prepare *p)
{
    int64_t block = twi_attr_int(p->attrs, "block_size", 0);
    bool depth_first = strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NCHW") == 0;
    p->state = (void *)(intptr_t)(depth_first ? -block : block);
    return TW_OK;
}

/* Space [n, H, b, W, b, C] and depth [n, H, W, b, b, C]; or [n, C, H, b, W, b] and [n, b, b, C, H, W]. */
static tw_status move_depth(const twi_run *r, bool to_depth)
{
    int64_t signed_block = (int64_t)(intptr_t)r->state, b = signed_block < 0 ? -signed_block : signed_block;
    bool first = signed_block < 0;
    const int64_t *d = to_depth ? r->output_operands[0].shape.dims : r->input_operands[0].shape.dims;
    int64_t batches = d[0], height = d[first ? 2 : 1], width = d[first ? 3 : 2], depth = d[first ? 1 : 3] / (b * b);
    /* batch, height, in the block, width, in the block, depth: size, stride in space, stride in depth */
    int64_t axes[6][3] = {
        {batches, b * b * depth * height * width, b * b * depth * height * width},
        {height, first ? b * b * width : b * b * width * depth, first ? width : width * b * b * depth},
        {b, first ? b * width : b * width * depth, first ? b * depth * height * width : b * depth},
        {width, first ? b : b * depth, first ? 1 : b * b * depth},
        {b, first ? 1 : depth, first ? depth * height * width : depth},
        {depth, first ? b * b * height * width : 1, first ? height * width : 1},
    };
    twi_move move = {0};
    for (int i = 0; i < 6; i++)
        twi_move_axis(&move, axes[i][0], axes[i][to_depth ? 1 : 2], axes[i][to_depth ? 2 : 1]);
    if (r->output_operands[0].elements == 0)
        return TW_OK;
    return twi_move_elements(r, &move, r->output_operands[0].dtype, r->inputs[0], r->outputs[0]);
}

static tw_status run_to_depth(const twi_run *r)
{
    return move_depth(r, true);
}

static tw_status run_from_depth(const twi_run *r)
{
    return move_depth(r, false);
}

const twi_kernel twi_cpu_blocks_kernels[] = {
    {"SpaceToBatchND", "plain", TWI_MOVED_TYPES, NULL, run_to_batch},
    {"BatchToSpaceND", "plain", TWI_MOVED_TYPES, NULL, run_to_space},
    {"SpaceToBatch", "plain", TWI_MOVED_TYPES, prepare_block, run_to_batch},
    {"BatchToSpace", "plain", TWI_MOVED_TYPES, prepare_block, run_to_space},
    {"SpaceToDepth", "plain", TWI_MOVED_TYPES, prepare_depth, run_to_depth},
    {"DepthToSpace", "plain", TWI_MOVED_TYPES, prepare_depth, run_from_depth},
    {0},
};
