/* recurrent.c - cells of recurrent networks, in float; half is widened. */
#include "base/memory.h"
#include "device/cpu/plain/products.h"
#include "device/cpu/plain/typed.h"

#include <math.h>
#include <string.h>

typedef struct cell {
    float forget_bias, clip;
    bool peephole;
    int ci, f; /* where these gates stand among the four */
    int64_t steps, batch, inputs, cells;
} cell;

enum { ACTIVATION = 64 }; /* multiplications that take as long as what a cell does with its gates */

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* A third of the C library's time; near 0, where a difference would say nothing, x is the tanh. */
static float hyperbolic_tangent(float x)
{
    return fabsf(x) < 2e-4f ? x : (float)(1 - 2 / (exp(2 * (double)x) + 1));
}

#define REAL float
#define NAME(f) f##_float
#include "device/cpu/plain/multiply.inl"
#undef REAL
#undef NAME

/* to [m,n] += a b */
static void add_product(const twi_run *r, const factors_float *f, float *to)
{
    int64_t panels = (f->n + PANEL_float - 1) / PANEL_float, blocks = (f->m + BLOCK_float - 1) / BLOCK_float;
    TWI_PRAGMA(omp parallel for num_threads(twi_team_for(r, blocks * panels, f->m * f->n * f->k)))
    for (int64_t job = 0; job < blocks * panels; job++)
        multiply_block_float(f, job / panels * BLOCK_float, job % panels * PANEL_float, true, to, f->n);
}

/* to [m,n] += a [m,k] b [k,n], all of them one row behind the other */
static void multiply(const twi_run *r, const float *a, const float *b, int64_t m, int64_t k, int64_t n, float *to)
{
    const factors_float f = {
        .a = a, .b = b, .m = m, .n = n, .k = k, .a_row = k, .a_column = 1, .b_row = n, .b_column = 1};
    add_product(r, &f, to);
}

/* to [m,n] += a [m,k] b^T, of b [n,k] */
static void multiply_transposed(const twi_run *r, const float *a, const float *b, int64_t m, int64_t k, int64_t n,
                                float *to)
{
    const factors_float f = {
        .a = a, .b = b, .m = m, .n = n, .k = k, .a_row = k, .a_column = 1, .b_row = 1, .b_column = k};
    add_product(r, &f, to);
}

/* to [k,n] += a^T b, of a [m,k] and b [m,n] */
static void multiply_first_transposed(const twi_run *r, const float *a, int64_t m, int64_t k, const float *b, int64_t n,
                                      float *to)
{
    const factors_float f = {
        .a = a, .b = b, .m = k, .n = n, .k = m, .a_row = 1, .a_column = k, .b_row = n, .b_column = 1};
    add_product(r, &f, to);
}

static void add_rows(const float *rows, int64_t m, int64_t n, float *to)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            to[j] += rows[i * n + j];
}

/* m rows, each a copy of one. */
static void repeat_row(const float *row, int64_t m, int64_t n, float *to)
{
    for (int64_t i = 0; i < m; i++)
        memcpy(to + i * n, row, sizeof *to * (size_t)n);
}

/* ---- LSTM -------------------------------------------------------------------------------------------------------- */

/* What a step reads and writes. */
typedef struct lstm_step {
    const float *x, *cs_prev, *h_prev, *w, *wci, *wcf, *wco, *b;
    float *i, *cs, *f, *o, *ci, *co, *h;
} lstm_step;

/* The cells of one example, from its gates. */
static void activate_row(const cell *s, const lstm_step *t, int64_t row, const float *gates)
{
    int64_t n = s->cells;
    for (int64_t c = 0, k = row * n; c < n; c++, k++) {
        const float *gate = gates + row * 4 * n + c;
        float before = t->cs_prev[k], peep[3] = {0};
        if (s->peephole) {
            peep[0] = before * t->wci[c];
            peep[1] = before * t->wcf[c];
        }
        t->i[k] = sigmoid(gate[0] + peep[0]);
        t->ci[k] = hyperbolic_tangent(gate[s->ci * n]);
        t->f[k] = sigmoid(gate[s->f * n] + s->forget_bias + peep[1]);
        float cs = t->ci[k] * t->i[k] + before * t->f[k];
        t->cs[k] = s->clip > 0 ? fminf(fmaxf(cs, -s->clip), s->clip) : cs;
        if (s->peephole)
            peep[2] = t->cs[k] * t->wco[c];
        t->o[k] = sigmoid(gate[3 * n] + peep[2]);
        t->co[k] = hyperbolic_tangent(t->cs[k]);
        t->h[k] = t->co[k] * t->o[k];
    }
}

static void step_forward(const twi_run *r, const lstm_step *t, float *gates)
{
    const cell *s = r->state;
    int64_t n = s->cells, four = 4 * n;
    repeat_row(t->b, s->batch, four, gates);
    multiply(r, t->x, t->w, s->batch, s->inputs, four, gates);
    multiply(r, t->h_prev, t->w + s->inputs * four, s->batch, n, four, gates);
    TWI_PRAGMA(omp parallel for num_threads(twi_team_for(r, s->batch, s->batch * n * ACTIVATION)))
    for (int64_t row = 0; row < s->batch; row++)
        activate_row(s, t, row, gates);
}

/* From the gradients of cs and h those of the gates and of cs_prev; those of peepholes are added to. */
static void step_backward(const cell *s, const lstm_step *t, const float *dcs, const float *dh, float *gates,
                          float *dcs_prev, float *const peepholes[3])
{
    int64_t n = s->cells;
    for (int64_t k = 0, c = 0; k < s->batch * n; k++, c = c + 1 < n ? c + 1 : 0) {
        float *gate = gates + 4 * (k - c) + c, before = t->cs_prev[k];
        float o = t->o[k] * (1 - t->o[k]) * dh[k] * t->co[k];
        float cs = (1 - t->co[k] * t->co[k]) * dh[k] * t->o[k] + dcs[k] + (s->peephole ? o * t->wco[c] : 0);
        float ci = (1 - t->ci[k] * t->ci[k]) * cs * t->i[k], f = t->f[k] * (1 - t->f[k]) * cs * before;
        float i = t->i[k] * (1 - t->i[k]) * cs * t->ci[k];
        gate[0] = i;
        gate[s->ci * n] = ci;
        gate[s->f * n] = f;
        gate[3 * n] = o;
        dcs_prev[k] = cs * t->f[k];
        if (!s->peephole)
            continue;
        dcs_prev[k] += i * t->wci[c] + f * t->wcf[c];
        peepholes[0][c] += i * before;
        peepholes[1][c] += f * before;
        peepholes[2][c] += o * t->cs[k];
    }
}

static lstm_step inputs_of(const twi_run *r, int first)
{
    const void *const *in = r->inputs + first;
    return (lstm_step){.x = in[0],
                       .cs_prev = in[1],
                       .h_prev = in[2],
                       .w = in[3],
                       .wci = in[4],
                       .wcf = in[5],
                       .wco = in[6],
                       .b = in[7]};
}

static void set_outputs(lstm_step *t, void *const *out, int64_t offset)
{
    t->i = (float *)out[0] + offset;
    t->cs = (float *)out[1] + offset;
    t->f = (float *)out[2] + offset;
    t->o = (float *)out[3] + offset;
    t->ci = (float *)out[4] + offset;
    t->co = (float *)out[5] + offset;
    if (out[6])
        t->h = (float *)out[6] + offset;
}

static tw_status lstm_cell_float(const twi_run *r)
{
    lstm_step t = inputs_of(r, 0);
    set_outputs(&t, r->outputs, 0);
    step_forward(r, &t, r->workspace);
    return TW_OK;
}

static tw_status lstm_cell_grad_float(const twi_run *r)
{
    const cell *s = r->state;
    lstm_step t = inputs_of(r, 0);
    void *saved[7];
    for (int k = 0; k < 6; k++)
        saved[k] = (void *)r->inputs[8 + k];
    saved[6] = NULL;
    set_outputs(&t, saved, 0);
    float *peepholes[3] = {r->outputs[2], r->outputs[3], r->outputs[4]};
    for (int k = 0; k < 3; k++)
        twi_clear(peepholes[k], sizeof(float) * (size_t)s->cells);
    step_backward(s, &t, r->inputs[14], r->inputs[15], r->outputs[1], r->outputs[0], peepholes);
    return TW_OK;
}

/* How many steps count. */
static tw_status read_steps(const twi_run *r, int64_t *steps)
{
    const cell *s = r->state;
    *steps = *(const int64_t *)r->inputs[0];
    if (*steps > 0 && r->output_operands[0].elements == 0 && s->steps == 0)
        *steps = 0;
    if (*steps < 0 || *steps > s->steps)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': seq_len_max is %lld, of %lld steps", r->node,
                        (long long)*steps, (long long)s->steps);
    return TW_OK;
}

static tw_status lstm_float(const twi_run *r)
{
    const cell *s = r->state;
    lstm_step t = inputs_of(r, 1);
    int64_t steps, size = s->batch * s->cells;
    tw_status status = read_steps(r, &steps);
    if (status != TW_OK)
        return status;
    for (int k = 0; k < 7; k++)
        twi_clear((float *)r->outputs[k] + steps * size, sizeof(float) * (size_t)((s->steps - steps) * size));
    for (int64_t step = 0; step < steps; step++) {
        set_outputs(&t, r->outputs, step * size);
        step_forward(r, &t, r->workspace);
        t.x += s->batch * s->inputs;
        t.cs_prev = t.cs;
        t.h_prev = t.h;
    }
    return TW_OK;
}

/* Back through the steps; what a step's predecessor gets is added to its own gradients. */
static tw_status lstm_grad_float(const twi_run *r)
{
    const cell *s = r->state;
    const lstm_step all = inputs_of(r, 1);
    int64_t steps, size = s->batch * s->cells, n = s->cells, four = 4 * n, wide = s->inputs;
    float *dcs = r->workspace, *dh = dcs + size, *gates = dh + size, *dx = r->outputs[0], *dw = r->outputs[3];
    float *dcs_prev = r->outputs[1], *dh_prev = r->outputs[2];
    float *peepholes[3] = {r->outputs[4], r->outputs[5], r->outputs[6]};
    tw_status status = read_steps(r, &steps);
    if (status != TW_OK)
        return status;
    for (int k = 0; k < 8; k++)
        twi_clear(r->outputs[k], r->output_operands[k].bytes);
    for (int64_t step = steps; step-- > 0;) {
        lstm_step t = all;
        void *saved[7];
        for (int k = 0; k < 7; k++)
            saved[k] = (void *)r->inputs[9 + k];
        set_outputs(&t, saved, step * size);
        t.x += step * s->batch * wide;
        if (step > 0) {
            t.cs_prev = (const float *)r->inputs[10] + (step - 1) * size;
            t.h_prev = (const float *)r->inputs[15] + (step - 1) * size;
        }
        for (int64_t k = 0; k < size; k++) {
            dcs[k] = ((const float *)r->inputs[16])[step * size + k] + dcs_prev[k];
            dh[k] = ((const float *)r->inputs[17])[step * size + k] + dh_prev[k];
            dh_prev[k] = 0;
        }
        step_backward(s, &t, dcs, dh, gates, dcs_prev, peepholes);
        multiply_transposed(r, gates, all.w, s->batch, four, wide, dx + step * s->batch * wide);
        multiply_transposed(r, gates, all.w + wide * four, s->batch, four, n, dh_prev);
        multiply_first_transposed(r, t.x, s->batch, wide, gates, four, dw);
        multiply_first_transposed(r, t.h_prev, s->batch, n, gates, four, dw + wide * four);
        add_rows(gates, s->batch, four, r->outputs[7]);
    }
    return TW_OK;
}

/* ---- GRU --------------------------------------------------------------------------------------------------------- */

/* x, h_prev, w_ru, w_c, b_ru, b_c: r, u, c, h */
static tw_status gru_float(const twi_run *run)
{
    const cell *s = run->state;
    const float *x = run->inputs[0], *before = run->inputs[1], *w_ru = run->inputs[2], *w_c = run->inputs[3];
    float *r = run->outputs[0], *u = run->outputs[1], *c = run->outputs[2], *h = run->outputs[3];
    int64_t n = s->cells, size = s->batch * n;
    float *gates = run->workspace, *kept = gates + 2 * size;
    repeat_row(run->inputs[4], s->batch, 2 * n, gates);
    repeat_row(run->inputs[5], s->batch, n, c);
    multiply(run, x, w_ru, s->batch, s->inputs, 2 * n, gates);
    multiply(run, before, w_ru + s->inputs * 2 * n, s->batch, n, 2 * n, gates);
    for (int64_t k = 0, column = 0; k < size; k++, column = column + 1 < n ? column + 1 : 0) {
        const float *gate = gates + 2 * (k - column) + column;
        r[k] = sigmoid(gate[0]);
        u[k] = sigmoid(gate[n]);
        kept[k] = r[k] * before[k];
    }
    multiply(run, x, w_c, s->batch, s->inputs, n, c);
    multiply(run, kept, w_c + s->inputs * n, s->batch, n, n, c);
    for (int64_t k = 0; k < size; k++) {
        c[k] = hyperbolic_tangent(c[k]);
        h[k] = u[k] * before[k] + (1 - u[k]) * c[k];
    }
    return TW_OK;
}

/* ..., r, u, c, d_h: d_x, d_h_prev, d_c_bar, d_r_bar_u_bar */
static tw_status gru_grad_float(const twi_run *run)
{
    const cell *s = run->state;
    const float *before = run->inputs[1], *w_ru = run->inputs[2], *w_c = run->inputs[3];
    const float *r = run->inputs[6], *u = run->inputs[7], *c = run->inputs[8], *dh = run->inputs[9];
    float *dx = run->outputs[0], *dh_prev = run->outputs[1], *dc = run->outputs[2], *dru = run->outputs[3];
    int64_t n = s->cells, size = s->batch * n;
    float *kept = run->workspace;
    twi_clear(kept, sizeof *kept * (size_t)size);
    twi_clear(dx, run->output_operands[0].bytes);
    for (int64_t k = 0; k < size; k++)
        dc[k] = dh[k] * (1 - u[k]) * (1 - c[k] * c[k]);
    multiply_transposed(run, dc, w_c, s->batch, n, s->inputs, dx);
    multiply_transposed(run, dc, w_c + s->inputs * n, s->batch, n, n, kept);
    for (int64_t k = 0, column = 0; k < size; k++, column = column + 1 < n ? column + 1 : 0) {
        float *gate = dru + 2 * (k - column) + column;
        gate[0] = kept[k] * before[k] * r[k] * (1 - r[k]);
        gate[n] = dh[k] * (before[k] - c[k]) * u[k] * (1 - u[k]);
        dh_prev[k] = dh[k] * u[k] + kept[k] * r[k];
    }
    multiply_transposed(run, dru, w_ru, s->batch, 2 * n, s->inputs, dx);
    multiply_transposed(run, dru, w_ru + s->inputs * 2 * n, s->batch, 2 * n, n, dh_prev);
    return TW_OK;
}

/* ---- preparing --------------------------------------------------------------------------------------------------- */

/* x is input `first`, and what has C columns the one behind it. Room for six of [B,C]. */
static tw_status prepare(twi_prepare *p, int first)
{
    const int64_t *x = p->inputs[first].shape.dims, *h = p->inputs[first + 1].shape.dims;
    bool is_second = strcmp(p->op, "BlockLSTMV2") == 0 || strcmp(p->op, "BlockLSTMGradV2") == 0;
    cell s = {.forget_bias = twi_attr_float(p->attrs, "forget_bias", is_second ? 0 : 1),
              .clip = twi_attr_float(p->attrs, "cell_clip", is_second ? 0 : 3),
              .ci = is_second ? 2 : 1,
              .f = is_second ? 1 : 2,
              .peephole = twi_attr_bool(p->attrs, "use_peephole", false),
              .steps = first ? x[0] : 1,
              .batch = h[0],
              .inputs = first ? x[2] : x[1],
              .cells = h[1]};
    if (s.cells == 0 || s.batch == 0) /* whatever else there is many of */
        s.batch = s.steps = 0;
    p->workspace = twi_widened_bytes(p) + (size_t)(s.batch * s.cells) * 6 * sizeof(float);
    return twi_keep(p, &s, sizeof s);
}

static tw_status prepare_cell(twi_prepare *p)
{
    return prepare(p, 0);
}

static tw_status prepare_block(twi_prepare *p)
{
    return prepare(p, 1);
}

TWI_WIDENED(lstm_cell)
TWI_WIDENED(lstm_cell_grad)
TWI_WIDENED(lstm)
TWI_WIDENED(lstm_grad)

#define ROWS(op, prepare, f)                                                                                           \
    {op, "plain", TWI_TYPE(TW_FLOAT32), prepare, f##_float, twi_free},                                                 \
    {                                                                                                                  \
        op, "plain", TWI_TYPE(TW_FLOAT16), prepare, f##_widened, twi_free                                              \
    }

const twi_kernel twi_cpu_recurrent_kernels[] = {
    ROWS("LSTMBlockCell", prepare_cell, lstm_cell),
    ROWS("LSTMBlockCellGrad", prepare_cell, lstm_cell_grad),
    ROWS("BlockLSTM", prepare_block, lstm),
    ROWS("BlockLSTMGrad", prepare_block, lstm_grad),
    ROWS("BlockLSTMV2", prepare_block, lstm),
    ROWS("BlockLSTMGradV2", prepare_block, lstm_grad),
    {"GRUBlockCell", "plain", 0, prepare_cell, gru_float, twi_free},
    {"GRUBlockCellGrad", "plain", 0, prepare_cell, gru_grad_float, twi_free},
    {0},
};
