/* move.c - see move.h. */
#include "device/cpu/plain/move.h"

#include "device/cpu/copy.h"
#include "tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORTH_A_TEAM = 32768, /* elements */
    PIECE = 16384,        /* elements that one thread copies at a time */
    TRANSPOSED_PIECE = 1024,  /* the same where rows become columns: a square whose lines all stay in the cache */
    TRANSPOSED_SIDE = 32,     /* of that square */
};

typedef struct twi_move_axis axis;

/* A move with its two innermost axes set apart: squares or bundles of rows, which are copied piece by piece. */
typedef struct pieces {
    axis rows, columns;
    int64_t row_block, column_block; /* of a piece */
    axis outer[TWI_MOVE_RANK + 2];   /* the other axes, then the pieces along rows and along columns */
    int num_outer;
    int64_t count; /* of pieces */
} pieces;

/* Leaves out axes of size 1 and makes one axis of two that are one in both arrays. */
static twi_move simplified(const twi_move *move)
{
    twi_move out = {0};
    for (int i = 0; i < move->rank; i++) {
        axis a = move->axes[i], *last = out.rank ? &out.axes[out.rank - 1] : NULL;
        if (a.size == 1)
            continue;
        if (last && last->from == a.from * a.size && last->to == a.to * a.size)
            *last = (axis){last->size * a.size, a.from, a.to};
        else
            out.axes[out.rank++] = a;
    }
    return out;
}

/* Takes axis i out. */
static axis take(twi_move *move, int i)
{
    axis taken = move->axes[i];
    memmove(move->axes + i, move->axes + i + 1, sizeof *move->axes * (size_t)(move->rank - i - 1));
    move->rank--;
    return taken;
}

static int64_t at_most(int64_t size, int64_t limit)
{
    return size < limit ? size : limit;
}

static pieces cut(const twi_move *move)
{
    const axis alone = {1, 0, 0};
    twi_move m = simplified(move);
    pieces p = {.columns = m.rank ? take(&m, m.rank - 1) : alone};
    int transposed = -1; /* the axis along which `from` has neighbours, if columns are not */
    for (int i = 0; i < m.rank && p.columns.from != 0 && llabs(p.columns.from) != 1; i++)
        if (llabs(m.axes[i].from) == 1)
            transposed = i;
    p.rows = transposed >= 0 ? take(&m, transposed) : m.rank ? take(&m, m.rank - 1) : alone;
    if (transposed >= 0) { /* a square, or longer one way if the other has no 32 */
        p.column_block = at_most(p.columns.size, TRANSPOSED_PIECE / at_most(p.rows.size, TRANSPOSED_SIDE));
        p.row_block = at_most(p.rows.size, TRANSPOSED_PIECE / p.column_block);
    } else {
        p.column_block = at_most(p.columns.size, PIECE);
        p.row_block = at_most(p.rows.size, PIECE / p.column_block);
    }
    p.count = 1;
    for (int i = 0; i < m.rank; i++)
        p.outer[p.num_outer++] = m.axes[i];
    p.outer[p.num_outer++] =
        (axis){(p.rows.size + p.row_block - 1) / p.row_block, p.row_block * p.rows.from, p.row_block * p.rows.to};
    p.outer[p.num_outer++] = (axis){(p.columns.size + p.column_block - 1) / p.column_block,
                                    p.column_block * p.columns.from, p.column_block * p.columns.to};
    for (int i = 0; i < p.num_outer; i++)
        p.count *= p.outer[i].size;
    return p;
}

/* One piece, of elements of one size. */
#define COPY_PIECE(T)                                                                                                  \
    static void copy_##T(const T *from, T *to, axis rows, axis columns)                                                \
    {                                                                                                                  \
        for (int64_t i = 0; i < rows.size; i++, from += rows.from, to += rows.to)                                      \
            if (columns.from == 1 && columns.to == 1)                                                                  \
                memcpy(to, from, sizeof(T) * (size_t)columns.size);                                                    \
            else if (columns.from == 0 && columns.to == 1)                                                             \
                for (int64_t k = 0; k < columns.size; k++)                                                             \
                    to[k] = *from;                                                                                     \
            else                                                                                                       \
                for (int64_t k = 0; k < columns.size; k++)                                                             \
                    to[k * columns.to] = from[k * columns.from];                                                       \
    }

COPY_PIECE(uint8_t)
COPY_PIECE(uint16_t)
COPY_PIECE(uint32_t)
COPY_PIECE(uint64_t)
COPY_PIECE(twi_wide)

static bool copy_strings(const tw_string *from, tw_string *to, axis rows, axis columns)
{
    for (int64_t i = 0; i < rows.size; i++)
        for (int64_t k = 0; k < columns.size; k++) {
            const tw_string *string = &from[i * rows.from + k * columns.from];
            if (!twi_string_set(&to[i * rows.to + k * columns.to], string->data, string->size))
                return false;
        }
    return true;
}

static bool copy_piece(tw_dtype dtype, const char *from, char *to, axis rows, axis columns)
{
    switch (tw_dtype_size(dtype)) {
    case 1:
        copy_uint8_t((const void *)from, (void *)to, rows, columns);
        return true;
    case 2:
        copy_uint16_t((const void *)from, (void *)to, rows, columns);
        return true;
    case 4:
        copy_uint32_t((const void *)from, (void *)to, rows, columns);
        return true;
    case 8:
        copy_uint64_t((const void *)from, (void *)to, rows, columns);
        return true;
    default:
        if (dtype == TW_STRING)
            return copy_strings((const void *)from, (void *)to, rows, columns);
        copy_twi_wide((const void *)from, (void *)to, rows, columns);
        return true;
    }
}

/* Pieces from `first` to before `end`, in order. */
static bool copy_pieces(const pieces *p, tw_dtype dtype, const char *from, char *to, int64_t first, int64_t end)
{
    int64_t bytes = (int64_t)tw_dtype_size(dtype), at[TWI_MOVE_RANK + 2], rest = first;
    for (int i = p->num_outer - 1; i >= 0; i--) {
        at[i] = rest % p->outer[i].size;
        rest /= p->outer[i].size;
        from += at[i] * p->outer[i].from * bytes;
        to += at[i] * p->outer[i].to * bytes;
    }
    for (int64_t piece = first; piece < end; piece++) {
        axis rows = p->rows, columns = p->columns;
        rows.size = at_most(rows.size - at[p->num_outer - 2] * p->row_block, p->row_block);
        columns.size = at_most(columns.size - at[p->num_outer - 1] * p->column_block, p->column_block);
        if (!copy_piece(dtype, from, to, rows, columns))
            return false;
        for (int i = p->num_outer - 1; i >= 0; i--) {
            from += p->outer[i].from * bytes;
            to += p->outer[i].to * bytes;
            if (++at[i] < p->outer[i].size)
                break;
            from -= at[i] * p->outer[i].from * bytes;
            to -= at[i] * p->outer[i].to * bytes;
            at[i] = 0;
        }
    }
    return true;
}

tw_status twi_move_elements(const twi_run *r, const twi_move *move, tw_dtype dtype, const void *from, void *to)
{
    int64_t elements = 1;
    for (int i = 0; i < move->rank; i++)
        elements *= move->axes[i].size;
    if (elements == 0)
        return TW_OK;
    pieces p = cut(move);
    if (dtype == TW_STRING)
        return copy_pieces(&p, dtype, from, to, 0, p.count) ? TW_OK : twi_fail_memory(r->error, r->node);
    int64_t shares = elements < WORTH_A_TEAM || p.count < r->threads ? 1 : r->threads;
#pragma omp parallel for num_threads((int)shares)
    for (int64_t i = 0; i < shares; i++)
        copy_pieces(&p, dtype, from, to, p.count * i / shares, p.count * (i + 1) / shares);
    return TW_OK;
}

bool twi_copy_elements(int64_t count, tw_dtype dtype, const void *from, void *to)
{
    if (dtype == TW_STRING)
        return copy_strings(from, to, (axis){1, 0, 0}, (axis){count, 1, 1});
    if (count)
        memcpy(to, from, (size_t)count * tw_dtype_size(dtype));
    return true;
}

tw_status twi_fill_elements(const twi_run *r, int64_t count, tw_dtype dtype, const void *value, void *to)
{
    twi_move move = {0};
    twi_move_axis(&move, count, 0, 1);
    return twi_move_elements(r, &move, dtype, value, to);
}

tw_status twi_clear_elements(const twi_run *r, int64_t count, tw_dtype dtype, void *to)
{
    const tw_string nothing = {0};
    if (dtype == TW_STRING)
        return twi_fill_elements(r, count, dtype, &nothing, to);
    twi_clear_block(to, (size_t)count * tw_dtype_size(dtype), r->threads);
    return TW_OK;
}

void twi_row_major(tw_shape shape, int64_t strides[TW_MAX_RANK])
{
    int64_t stride = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape.dims[i];
    }
}

char *twi_position_text(tw_shape shape, int64_t i, char *text, size_t size)
{
    tw_shape position = {.rank = shape.rank};
    for (int k = shape.rank - 1; k >= 0; k--) {
        position.dims[k] = i % shape.dims[k];
        i /= shape.dims[k];
    }
    return tw_shape_text(position, text, size);
}

tw_status twi_input_axis(const twi_run *r, int input, int64_t k, int rank, int *axis)
{
    int64_t value = twi_input_int(r, input, k);
    if (value < -rank || value >= rank)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': axis %lld, expected -%d to %d", r->node, (long long)value,
                        rank, rank - 1);
    *axis = (int)(value < 0 ? value + rank : value);
    return TW_OK;
}
