/* isotonic.c - IsotonicRegression: neighbours that grow become one segment, which has their mean. */
#include "device/kernel.h"
#include "tensor/tensor.h"

/* A segment as it is found: where it begins, and the sum of what is in it. */
typedef struct segment {
    int64_t first;
    double sum;
} segment;

static double mean(const segment *s, int64_t end)
{
    return s->sum / (double)(end - s->first);
}

static void put(const twi_operand *out, void *data, int64_t i, double x)
{
    switch (out->dtype) {
    case TW_FLOAT64:
        ((double *)data)[i] = x;
        break;
    case TW_FLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_half((float)x);
        break;
    case TW_BFLOAT16:
        ((uint16_t *)data)[i] = tw_float_to_bfloat16((float)x);
        break;
    default:
        ((float *)data)[i] = (float)x;
    }
}

/* The segments of the n numbers from `begin` on; how many. */
static int64_t find_segments(const tw_tensor *x, int64_t begin, int64_t n, segment *s)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        s[count++] = (segment){i, tw_tensor_value(x, begin + i)};
        for (; count > 1 && mean(&s[count - 2], s[count - 1].first) < mean(&s[count - 1], i + 1); count--)
            s[count - 2].sum += s[count - 1].sum;
    }
    s[count].first = n;
    return count;
}

static tw_status run(const twi_run *r)
{
    const twi_operand *in = &r->input_operands[0];
    tw_tensor x = {.dtype = in->dtype, .data = (void *)r->inputs[0]};
    int64_t n = in->shape.rank ? in->shape.dims[in->shape.rank - 1] : 1;
    segment *s = r->workspace;
    for (int64_t begin = 0; begin < in->elements; begin += n) {
        int64_t count = find_segments(&x, begin, n, s);
        for (int64_t k = 0; k < count; k++)
            for (int64_t i = s[k].first; i < s[k + 1].first; i++) {
                put(&r->output_operands[0], r->outputs[0], begin + i, mean(&s[k], s[k + 1].first));
                ((int32_t *)r->outputs[1])[begin + i] = (int32_t)k;
            }
    }
    return TW_OK;
}

static tw_status prepare(twi_prepare *p)
{
    tw_shape shape = p->inputs[0].shape;
    if (p->inputs[0].elements)
        p->workspace = sizeof(segment) * (size_t)((shape.rank ? shape.dims[shape.rank - 1] : 1) + 1);
    return TW_OK;
}

const twi_kernel twi_cpu_isotonic_kernels[] = {
    {"IsotonicRegression", "plain", 0, prepare, run},
    {0},
};
