/* select.c - Select and SelectV2: element by element one of two. */
#include "device/cpu/plain/move.h"

enum {
    WORTH_A_TEAM = 32768, /* elements */
    PIECE = 4096,         /* elements along the last axis that one thread selects at a time */
};

/* Axes of the output; steps[0] of the condition, [1] and [2] of the two inputs: 0 where they have only one element. */
typedef struct selection {
    int rank;
    int64_t size[TW_MAX_RANK], steps[3][TW_MAX_RANK];
} selection;

/* One piece of the last axis: to[i] = condition[i * c] ? yes[i * y] : no[i * n]. Without a branch, which conditions
 * that were drawn would mislead; the steps that are usual are constants, so that vectors of elements are taken. */
#define SELECT(T)                                                                                                      \
    static inline __attribute__((always_inline)) void select_by_##T(T *to, const uint8_t *condition, const T *yes,     \
                                                                    const T *no, int64_t count, int64_t c, int64_t y,  \
                                                                    int64_t n)                                         \
    {                                                                                                                  \
        _Pragma("omp simd") for (int64_t i = 0; i < count; i++)                                                        \
        {                                                                                                              \
            T mask = (T) - (T)(condition[i * c] != 0);                                                                 \
            to[i] = (T)((yes[i * y] & mask) | (no[i * n] & (T)~mask));                                                 \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void select_##T(T *to, const uint8_t *condition, const T *yes, const T *no, int64_t count, int64_t c,       \
                           int64_t y, int64_t n)                                                                       \
    {                                                                                                                  \
        if (c == 1 && y == 1 && n == 1)                                                                                \
            select_by_##T(to, condition, yes, no, count, 1, 1, 1);                                                     \
        else if (c == 1 && y == 1 && n == 0)                                                                           \
            select_by_##T(to, condition, yes, no, count, 1, 1, 0);                                                     \
        else if (c == 1 && y == 0 && n == 1)                                                                           \
            select_by_##T(to, condition, yes, no, count, 1, 0, 1);                                                     \
        else                                                                                                           \
            select_by_##T(to, condition, yes, no, count, c, y, n);                                                     \
    }

SELECT(uint8_t)
SELECT(uint16_t)
SELECT(uint32_t)
SELECT(uint64_t)

static void select_wide(twi_wide *to, const uint8_t *condition, const twi_wide *yes, const twi_wide *no, int64_t count,
                        int64_t c, int64_t y, int64_t n)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = condition[i * c] ? yes[i * y] : no[i * n];
}

static bool select_strings(void *to, const uint8_t *condition, const void *yes, const void *no, int64_t count,
                           int64_t c, int64_t y, int64_t n)
{
    bool done = true;
    for (int64_t i = 0; i < count && done; i++)
        done = twi_copy_elements(
            1, TW_STRING, condition[i * c] ? twi_element(yes, TW_STRING, i * y) : twi_element(no, TW_STRING, i * n),
            twi_element_of_output(to, TW_STRING, i));
    return done;
}

/* Piece `index` of all pieces of last axes. */
static bool select_piece(const twi_run *r, const selection *s, tw_dtype dtype, int64_t index)
{
    int last = s->rank - 1;
    int64_t pieces = (s->size[last] + PIECE - 1) / PIECE, row = index / pieces, begin = index % pieces * PIECE;
    int64_t count = s->size[last] - begin < PIECE ? s->size[last] - begin : PIECE, at[3];
    for (int k = 0; k < 3; k++)
        at[k] = begin * s->steps[k][last];
    void *to = twi_element_of_output(r->outputs[0], dtype, row * s->size[last] + begin);
    for (int i = last - 1; i >= 0; i--) {
        for (int k = 0; k < 3; k++)
            at[k] += row % s->size[i] * s->steps[k][i];
        row /= s->size[i];
    }
    const uint8_t *condition = (const uint8_t *)r->inputs[0] + at[0];
    const void *yes = twi_element(r->inputs[1], dtype, at[1]), *no = twi_element(r->inputs[2], dtype, at[2]);
    int64_t c = s->steps[0][last], y = s->steps[1][last], n = s->steps[2][last];
    switch (tw_dtype_size(dtype)) {
    case 1:
        select_uint8_t(to, condition, yes, no, count, c, y, n);
        return true;
    case 2:
        select_uint16_t(to, condition, yes, no, count, c, y, n);
        return true;
    case 4:
        select_uint32_t(to, condition, yes, no, count, c, y, n);
        return true;
    case 8:
        select_uint64_t(to, condition, yes, no, count, c, y, n);
        return true;
    default:
        if (dtype == TW_STRING)
            return select_strings(to, condition, yes, no, count, c, y, n);
        select_wide(to, condition, yes, no, count, c, y, n);
        return true;
    }
}

/* The axes of input k end with those of the output (SelectV2), or begin with them (the condition of Select). */
static void add_steps(selection *s, int k, tw_shape shape, bool at_the_end)
{
    int64_t strides[TW_MAX_RANK];
    int first = at_the_end ? s->rank - shape.rank : 0;
    twi_row_major(shape, strides);
    for (int i = 0; i < shape.rank; i++)
        s->steps[k][first + i] = shape.dims[i] == 1 ? 0 : strides[i];
}

static tw_status run(const twi_run *r, bool conditions_come_first)
{
    const twi_operand *out = &r->output_operands[0];
    selection s = {.rank = out->shape.rank};
    bool alike = true;
    for (int i = 0; i < s.rank; i++)
        s.size[i] = out->shape.dims[i];
    for (int k = 0; k < 3; k++) {
        alike = alike && tw_shape_equal(r->input_operands[k].shape, out->shape);
        add_steps(&s, k, r->input_operands[k].shape, k > 0 || !conditions_come_first);
    }
    if (alike || s.rank == 0) /* one long axis */
        s = (selection){1, {out->elements}, {{1}, {1}, {1}}};
    if (out->elements == 0)
        return TW_OK;
    int64_t last = s.size[s.rank - 1], count = out->elements / last * ((last + PIECE - 1) / PIECE);
    bool done = true;
#pragma omp parallel for num_threads(r->threads) reduction(&& : done)                                                  \
    if (r->threads > 1 && out->dtype != TW_STRING && out->elements >= WORTH_A_TEAM)
    for (int64_t i = 0; i < count; i++)
        done = done && select_piece(r, &s, out->dtype, i);
    return done ? TW_OK : twi_fail_memory(r->error, r->node);
}

static tw_status run_select(const twi_run *r)
{
    return run(r, true);
}

static tw_status run_select_v2(const twi_run *r)
{
    return run(r, false);
}

/* Element by element, so the output may lie over either input of its shape. */
static tw_status prepare_select(twi_prepare *p)
{
    for (int i = 1; i < 3; i++)
        p->can_overwrite[i] =
            p->outputs[0].dtype != TW_STRING && tw_shape_equal(p->inputs[i].shape, p->outputs[0].shape);
    return TW_OK;
}

const twi_kernel twi_cpu_select_kernels[] = {
    {"Select", "plain", TWI_MOVED_TYPES, prepare_select, run_select},
    {"SelectV2", "plain", TWI_MOVED_TYPES, prepare_select, run_select_v2},
    {0},
};
