/* fourier.c - Fourier transforms over the last one to three axes, in plain C and in double inside: of complex numbers,
 * and of real ones, whose transform has only half of what it says along its last axis. */
#include "base/memory.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/vector/transform.h"

#include <string.h>

enum { MOST_AXES = 3 };

/* A transform of a block, which the last axes of the operands make: [a, b, c], a and b 1 where there are fewer axes. */
typedef struct fourier {
    int axes;
    bool inverse, from_real, to_real;
    int64_t length[MOST_AXES]; /* along each axis; 0: not known, or nothing to do */
    twi_transform *along[MOST_AXES];
    size_t scratch; /* numbers of as many rows as are transformed together: themselves, and what that needs */
} fourier;

static void release(void *state)
{
    fourier *f = state;
    for (int i = 0; f && i < MOST_AXES; i++)
        twi_transform_free(f->along[i]);
    twi_free(f);
}

static bool prepare_lengths(fourier *f, const int64_t length[MOST_AXES])
{
    for (int i = 0; i < MOST_AXES; i++) {
        f->length[i] = length[i];
        f->along[i] = length[i] ? twi_transform_make(length[i]) : NULL;
        if (length[i] && !f->along[i])
            return false;
        size_t needed = f->along[i] ? (size_t)length[i] + twi_transform_scratch(f->along[i]) : 0;
        f->scratch = needed > f->scratch ? needed : f->scratch;
    }
    return true;
}

static size_t bytes_of_thread(const fourier *f)
{
    size_t block = (size_t)(f->length[0] * f->length[1] * f->length[2]) * (f->axes == 1 ? TWI_TRANSFORM_LANES : 1);
    block = (block + TWI_TRANSFORM_LANES - 1) / TWI_TRANSFORM_LANES * TWI_TRANSFORM_LANES; /* the rows are aligned */
    return block * sizeof(double _Complex) + f->scratch * sizeof(twi_transform_rows);
}

/* Lengths are the input's, or what an operand says. */
static void find_lengths(const fourier *f, tw_shape in, const int32_t *told, int64_t length[MOST_AXES])
{
    for (int i = 0; i < MOST_AXES; i++)
        length[i] = 1;
    for (int i = 0; i < f->axes; i++)
        length[MOST_AXES - f->axes + i] = told ? told[i] : in.dims[in.rank - f->axes + i];
}

static tw_status prepare(twi_prepare *p, int axes, bool inverse)
{
    fourier f = {.axes = axes, .inverse = inverse};
    f.from_real = !tw_dtype_is_complex(p->inputs[0].dtype);
    f.to_real = !tw_dtype_is_complex(p->outputs[0].dtype);
    tw_status status = twi_keep(p, &f, sizeof f);
    bool known = p->num_inputs == 1 || p->inputs[1].value;
    if (status != TW_OK || !known || p->inputs[0].elements == 0 || p->outputs[0].elements == 0)
        return status;
    int64_t length[MOST_AXES];
    find_lengths(&f, p->inputs[0].shape, p->num_inputs > 1 ? tw_tensor_data(p->inputs[1].value) : NULL, length);
    fourier *made = p->state;
    if (!prepare_lengths(made, length))
        return twi_fail_memory(p->error, p->node);
    p->workspace = bytes_of_thread(made) * (size_t)p->threads;
    return TW_OK;
}

/* ---- a block ----------------------------------------------------------------------------------------------------- */

/* So many numbers from number i on. */
static void read_numbers(const twi_operand *operand, const void *data, int64_t i, int64_t count, double _Complex *to)
{
    switch (operand->dtype) {
    case TW_FLOAT32:
        for (int64_t k = 0; k < count; k++)
            to[k] = ((const float *)data)[i + k];
        break;
    case TW_FLOAT64:
        for (int64_t k = 0; k < count; k++)
            to[k] = ((const double *)data)[i + k];
        break;
    case TW_COMPLEX64:
        for (int64_t k = 0; k < count; k++)
            to[k] = ((const float _Complex *)data)[i + k];
        break;
    default:
        memcpy(to, (const double _Complex *)data + i, (size_t)count * sizeof *to);
    }
}

static void write_numbers(const twi_operand *operand, void *data, int64_t i, int64_t count, const double _Complex *from)
{
    switch (operand->dtype) {
    case TW_FLOAT32:
        for (int64_t k = 0; k < count; k++)
            ((float *)data)[i + k] = (float)creal(from[k]);
        break;
    case TW_FLOAT64:
        for (int64_t k = 0; k < count; k++)
            ((double *)data)[i + k] = creal(from[k]);
        break;
    case TW_COMPLEX64:
        for (int64_t k = 0; k < count; k++)
            ((float _Complex *)data)[i + k] = (float _Complex)from[k];
        break;
    default:
        memcpy((double _Complex *)data + i, from, (size_t)count * sizeof *from);
    }
}

/* Dimension i of the block in an operand. */
static int64_t dim_of(const fourier *f, const twi_operand *operand, int i)
{
    int axis = operand->shape.rank - MOST_AXES + i;
    return i < MOST_AXES - f->axes ? 1 : operand->shape.dims[axis];
}

/* The half of a real result's last row that is not there is the conjugate of the other. */
static void complete(double _Complex *row, int64_t n)
{
    for (int64_t j = n / 2 + 1; j < n; j++)
        row[j] = conj(row[n - j]);
    row[0] = creal(row[0]); /* these are real, whatever is told */
    if (n % 2 == 0)
        row[n / 2] = creal(row[n / 2]);
}

/* Along axis i, the rows that begin there. */
static void transform_rows(const fourier *f, int i, int64_t stride, int count, double _Complex *const *starts,
                           twi_transform_rows *rows)
{
    int64_t n = f->length[i];
    if (count < TWI_TRANSFORM_LANES)
        memset(rows, 0, (size_t)n * sizeof *rows);
    for (int64_t j = 0; j < n; j++)
        for (int lane = 0; lane < count; lane++) {
            rows[j].re[lane] = creal(starts[lane][j * stride]);
            rows[j].im[lane] = cimag(starts[lane][j * stride]);
        }
    twi_transform_run(f->along[i], rows, rows + n, f->inverse);
    for (int64_t j = 0; j < n; j++)
        for (int lane = 0; lane < count; lane++)
            starts[lane][j * stride] = CMPLX(rows[j].re[lane], rows[j].im[lane]);
}

/* Along axis i of a block [n], the rows whose place along the last axis is below `width`. */
static void transform_axis(const fourier *f, int i, const int64_t *n, int64_t width, double _Complex *block,
                           twi_transform_rows *scratch)
{
    int64_t stride = i == 0 ? n[1] * n[2] : i == 1 ? n[2] : 1, rows = n[0] * n[1] * n[2] / n[i];
    double _Complex *starts[TWI_TRANSFORM_LANES];
    int count = 0;
    for (int64_t k = 0; k < rows; k++) {
        int64_t start = k / stride * stride * n[i] + k % stride;
        if (i < 2 && start % n[2] >= width)
            continue;
        if (i == 2 && f->to_real)
            complete(block + start, n[2]);
        starts[count++] = block + start;
        if (count == TWI_TRANSFORM_LANES) {
            transform_rows(f, i, stride, count, starts, scratch);
            count = 0;
        }
    }
    if (count > 0)
        transform_rows(f, i, stride, count, starts, scratch);
}

/* The blocks from `first` to before `last`: several only of a single axis. */
static void transform_blocks(const fourier *f, const twi_run *r, int64_t first, int64_t last, double _Complex *block,
                             twi_transform_rows *scratch)
{
    const twi_operand *in = &r->input_operands[0], *out = &r->output_operands[0];
    const int64_t n[MOST_AXES] = {f->length[0], f->length[1] * (last - first), f->length[2]};
    int64_t in_dims[MOST_AXES], out_dims[MOST_AXES], half = n[2] / 2 + 1;
    for (int i = 0; i < MOST_AXES; i++) {
        in_dims[i] = dim_of(f, in, i);
        out_dims[i] = dim_of(f, out, i);
    }
    int64_t from = first * in_dims[0] * in_dims[1] * in_dims[2];
    int64_t given = f->to_real ? half : n[2], made = f->from_real ? half : n[2];
    for (int64_t a = 0; a < n[0]; a++)
        for (int64_t b = 0; b < n[1]; b++)
            read_numbers(in, r->inputs[0], from + (a * in_dims[1] + b) * in_dims[2], given,
                         block + (a * n[1] + b) * n[2]);
    for (int i = 0; i < MOST_AXES; i++) { /* half a row is done when there is a whole one no more, or not yet */
        int axis = f->inverse ? i : MOST_AXES - 1 - i;
        if (f->length[axis] > 1 || (axis == 2 && f->to_real))
            transform_axis(f, axis, n, f->to_real ? given : made, block, scratch);
    }
    int64_t to = first * out_dims[0] * out_dims[1] * out_dims[2];
    for (int64_t row = 0; row < n[0] * n[1]; row++)
        write_numbers(out, r->outputs[0], to + row * made, made, block + row * n[2]);
}

/* The only row there is. */
static void transform_row(const fourier *f, const twi_run *r, double _Complex *row, twi_transform_rows *scratch)
{
    int64_t n = f->length[2], half = n / 2 + 1;
    read_numbers(&r->input_operands[0], r->inputs[0], 0, f->to_real ? half : n, row);
    if (f->to_real)
        complete(row, n);
    twi_transform_run_one(f->along[2], row, scratch, f->inverse);
    write_numbers(&r->output_operands[0], r->outputs[0], 0, f->from_real ? half : n, row);
}

static tw_status check_lengths(const fourier *f, const twi_run *r, const int64_t length[MOST_AXES])
{
    for (int i = MOST_AXES - f->axes; i < MOST_AXES; i++) {
        int64_t in = dim_of(f, &r->input_operands[0], i), out = dim_of(f, &r->output_operands[0], i);
        int64_t half = i == 2 && length[i] ? length[i] / 2 + 1 : length[i];
        if (length[i] < 0 || out != (f->from_real ? half : length[i]) || (in && in < (f->to_real ? half : length[i])))
            return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': fft_length[%d] is %lld, which does not fit", r->node,
                            i - MOST_AXES + f->axes, (long long)length[i]);
    }
    return TW_OK;
}

static tw_status transform_all(const fourier *f, const twi_run *r, char *workspace)
{
    const twi_operand *out = &r->output_operands[0];
    int64_t size = dim_of(f, out, 0) * dim_of(f, out, 1) * dim_of(f, out, 2), count = out->elements / size;
    int64_t together = f->axes == 1 ? TWI_TRANSFORM_LANES : 1, groups = (count + together - 1) / together;
    int64_t shares = groups < r->threads ? groups : r->threads;
    size_t bytes = bytes_of_thread(f);
    if (f->axes == 1 && count == 1) {
        transform_row(f, r, (double _Complex *)(void *)(workspace + f->scratch * sizeof(twi_transform_rows)),
                      (twi_transform_rows *)(void *)workspace);
        return TW_OK;
    }
#pragma omp parallel for num_threads((int)shares)
    for (int64_t s = 0; s < shares; s++) {
        twi_transform_rows *scratch = (twi_transform_rows *)(void *)(workspace + (size_t)s * bytes);
        for (int64_t i = groups * s / shares; i < groups * (s + 1) / shares; i++)
            transform_blocks(f, r, i * together, i * together + together < count ? i * together + together : count,
                             (double _Complex *)(void *)(scratch + f->scratch), scratch);
    }
    return TW_OK;
}

/* For lengths that only this run tells. */
static tw_status prepare_and_run(const fourier *f, const twi_run *r, const int64_t length[MOST_AXES])
{
    fourier now = *f;
    twi_run alone = *r;
    alone.threads = 1;
    bool made = prepare_lengths(&now, length);
    char *workspace = made ? twi_alloc_aligned(bytes_of_thread(&now), 64) : NULL;
    tw_status status = workspace ? transform_all(&now, &alone, workspace) : twi_fail_memory(r->error, r->node);
    twi_free_aligned(workspace);
    for (int i = 0; i < MOST_AXES; i++)
        twi_transform_free(now.along[i]);
    return status;
}

static tw_status run(const twi_run *r)
{
    const fourier *f = r->state;
    const twi_operand *out = &r->output_operands[0];
    int64_t length[MOST_AXES];
    find_lengths(f, r->input_operands[0].shape, r->num_inputs > 1 ? r->inputs[1] : NULL, length);
    tw_status status = check_lengths(f, r, length);
    if (status != TW_OK || out->elements == 0)
        return status;
    if (r->input_operands[0].elements == 0)
        return twi_clear_elements(r, out->elements, out->dtype, r->outputs[0]);
    if (memcmp(length, f->length, sizeof length) != 0)
        return prepare_and_run(f, r, length);
    return transform_all(f, r, r->workspace);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

#define PREPARE(axes)                                                                                                  \
    static tw_status prepare_##axes(twi_prepare *p)                                                                    \
    {                                                                                                                  \
        return prepare(p, axes, false);                                                                                \
    }                                                                                                                  \
    static tw_status prepare_inverse_##axes(twi_prepare *p)                                                            \
    {                                                                                                                  \
        return prepare(p, axes, true);                                                                                 \
    }
PREPARE(1)
PREPARE(2)
PREPARE(3)

#define ROW(op, prepare) {op, "plain", 0, prepare, run, release}

const twi_kernel twi_cpu_fourier_kernels[] = {
    ROW("FFT", prepare_1),    ROW("IFFT", prepare_inverse_1),    ROW("FFT2D", prepare_2),
    ROW("IFFT2D", prepare_inverse_2), ROW("FFT3D", prepare_3),   ROW("IFFT3D", prepare_inverse_3),
    ROW("RFFT", prepare_1),   ROW("IRFFT", prepare_inverse_1),   ROW("RFFT2D", prepare_2),
    ROW("IRFFT2D", prepare_inverse_2), ROW("RFFT3D", prepare_3), ROW("IRFFT3D", prepare_inverse_3),
    {0},
};
