/* broadcast.c - see broadcast.h. */
#include "device/cpu/plain/broadcast.h"

/* Size of axis `i` counted for `rank` axes aligned at the end; 1 where the shape has no such axis. */
static int64_t aligned_dim(tw_shape shape, int rank, int i)
{
    int own = i - (rank - shape.rank);
    return own < 0 ? 1 : shape.dims[own];
}

void twi_broadcast_init(twi_broadcast *b, tw_shape x, tw_shape y, tw_shape out)
{
    int64_t size[TW_MAX_RANK], x_step[TW_MAX_RANK], y_step[TW_MAX_RANK], x_next = 1, y_next = 1;
    int joined = 0; /* axes from the last to the first */
    *b = (twi_broadcast){.x_moves = true, .y_moves = true};
    if (tw_shape_elements(out) == 0) /* whose other axes may be as long as they like */
        return;
    for (int i = out.rank - 1; i >= 0; i--) {
        int64_t dx = aligned_dim(x, out.rank, i), dy = aligned_dim(y, out.rank, i);
        int64_t sx = dx == 1 ? 0 : x_next, sy = dy == 1 ? 0 : y_next;
        x_next *= dx;
        y_next *= dy;
        if (out.dims[i] == 1)
            continue;
        int last = joined - 1;
        if (joined && (sx ? sx == x_step[last] * size[last] : !x_step[last]) &&
            (sy ? sy == y_step[last] * size[last] : !y_step[last])) {
            size[last] *= out.dims[i];
            continue;
        }
        size[joined] = out.dims[i];
        x_step[joined] = sx;
        y_step[joined++] = sy;
    }
    b->runs = b->run = 1;
    if (joined) {
        b->run = size[0];
        b->x_moves = x_step[0] != 0;
        b->y_moves = y_step[0] != 0;
    }
    for (int i = joined - 1; i > 0; i--) {
        b->size[b->rank] = size[i];
        b->x_step[b->rank] = x_step[i];
        b->y_step[b->rank++] = y_step[i];
        b->runs *= size[i];
    }
}

void twi_broadcast_start(const twi_broadcast *b, int64_t index, int64_t *x, int64_t *y)
{
    *x = *y = 0;
    for (int i = b->rank - 1; i >= 0; i--) {
        int64_t at = i ? index % b->size[i] : index; /* divisions are slow, and most have one axis */
        index = i ? index / b->size[i] : 0;
        *x += at * b->x_step[i];
        *y += at * b->y_step[i];
    }
}
