/* step.c - one training step of the CIFAR-10 tutorial network as a bare list of kernels, in the order a plan would run
 * them: what the kernels cost, without graphs or sessions around them.
 *
 *     bench_step [--threads N] [--steps N] [--type float|bfloat16] [--single] [--kernels]
 *
 * The network is TensorFlow's tutorial: images [128,24,24,3]; conv 5x5x64, ReLU, pool 3x3/2, LRN; conv 5x5x64, ReLU,
 * LRN, pool 3x3/2; 384, 192, 10. Activations are of the type, variables and their updates float. --single runs
 * TensorFlow's ops one by one instead of the fused ones; --kernels prints the time of each. The loss falls if all is
 * well: the labels are fixed. */
#include "base/clock.h"
#include "device/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 128, MOST_TENSORS = 128, MOST_NODES = 96, MOST_EDGES = 32, MOST_ATTRS = 12, MOST_STEPS = 1000 };

typedef struct node {
    const char *op, *label;
    tw_attr attrs[MOST_ATTRS];
    twi_attrs list;
    int num_inputs, num_outputs;
    twi_operand inputs[MOST_EDGES], outputs[MOST_EDGES];
    const void *from[MOST_EDGES];
    void *to[MOST_EDGES];
    const twi_kernel *kernel;
    void *state;
    double times[MOST_STEPS];
} node;

typedef struct step {
    twi_device *device;
    tw_dtype type;
    twi_operand operands[MOST_TENSORS];
    void *memory[MOST_TENSORS];
    twi_resource resources[MOST_TENSORS];
    int num_tensors;
    node nodes[MOST_NODES];
    int num_nodes;
    void *workspace;
    unsigned seed;
} step;

static tw_error error;

static void check(tw_status status)
{
    if (status == TW_OK)
        return;
    fprintf(stderr, "bench_step: %s\n", error.message);
    exit(1);
}

/* ---- tensors and nodes ------------------------------------------------------------------------------------- */

static int tensor(step *s, tw_dtype dtype, tw_shape shape)
{
    int t = s->num_tensors++;
    twi_operand *o = &s->operands[t];
    *o = (twi_operand){.dtype = dtype, .shape = shape, .elements = tw_shape_elements(shape)};
    o->bytes = (size_t)o->elements * tw_dtype_size(dtype);
    check(twi_device_alloc(s->device, o->bytes, "a tensor", &s->memory[t], &error));
    memset(s->memory[t], 0, o->bytes);
    return t;
}

static float uniform(step *s)
{
    s->seed = s->seed * 1664525 + 1013904223;
    return (float)(s->seed >> 8) / (1 << 23) - 1;
}

static void fill(step *s, int t, float scale)
{
    for (int64_t i = 0; i < s->operands[t].elements; i++) {
        float x = scale * uniform(s);
        if (s->operands[t].dtype == TW_BFLOAT16)
            ((uint16_t *)s->memory[t])[i] = tw_float_to_bfloat16(x);
        else
            ((float *)s->memory[t])[i] = x;
    }
}

static int variable(step *s, tw_shape shape, float scale)
{
    int t = tensor(s, TW_FLOAT32, shape);
    fill(s, t, scale);
    s->resources[t] = (twi_resource){.name = "v", .dtype = TW_FLOAT32, .shape = shape, .memory = s->memory[t]};
    return t;
}

#define LIST(...) (int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int)
#define ATTRS(...) (tw_attr[]){__VA_ARGS__}, sizeof((tw_attr[]){__VA_ARGS__}) / sizeof(tw_attr)

static node *add(step *s, const char *label, const char *op, const tw_attr *attrs, size_t num_attrs, const int *inputs,
                 size_t num_inputs, const int *outputs, size_t num_outputs)
{
    node *n = &s->nodes[s->num_nodes++];
    n->op = op;
    n->label = label;
    memcpy(n->attrs, attrs, num_attrs * sizeof *attrs);
    n->list = (twi_attrs){n->attrs, (int)num_attrs};
    for (size_t i = 0; i < num_inputs; i++) {
        n->inputs[i] = s->operands[inputs[i]];
        n->from[i] = s->memory[inputs[i]];
    }
    for (size_t i = 0; i < num_outputs; i++) {
        n->outputs[i] = s->operands[outputs[i]];
        n->to[i] = s->memory[outputs[i]];
    }
    n->num_inputs = (int)num_inputs;
    n->num_outputs = (int)num_outputs;
    return n;
}

/* ---- the network ------------------------------------------------------------------------------------------- */

static const int64_t one[] = {1, 1, 1, 1}, two[] = {1, 2, 2, 1}, three[] = {1, 3, 3, 1};

#define TYPE tw_attr_type("T", s->type)
#define CONV TYPE, tw_attr_ints("strides", one, 4), tw_attr_string("padding", "SAME")
#define POOL TYPE, tw_attr_ints("ksize", three, 4), tw_attr_ints("strides", two, 4), tw_attr_string("padding", "SAME")
#define LRN                                                                                                            \
    tw_attr_int("depth_radius", 4), tw_attr_float("bias", 1), tw_attr_float("alpha", 0.001f / 9),                      \
        tw_attr_float("beta", 0.75f)
#define RELU tw_attr_bool("relu", true)

typedef struct layer {
    int weights, bias;   /* variables */
    int w, b;            /* the same in the step's type */
    int dw, db;          /* float */
    int sizes;           /* shape of the weights, which backward asks for and nobody reads */
} layer;

/* A variable and its copy in the step's type. */
static int cast(step *s, const char *label, int from, tw_dtype to)
{
    if (s->operands[from].dtype == to)
        return from;
    int t = tensor(s, to, s->operands[from].shape);
    add(s, label, "Cast", ATTRS(tw_attr_type("SrcT", s->operands[from].dtype), tw_attr_type("DstT", to)), LIST(from),
        LIST(t));
    return t;
}

static layer new_layer(step *s, tw_shape shape, float scale)
{
    layer l = {.weights = variable(s, shape, scale), .bias = variable(s, TW_SHAPE(shape.dims[shape.rank - 1]), 0.1f)};
    l.w = cast(s, "casts", l.weights, s->type);
    l.b = cast(s, "casts", l.bias, s->type);
    l.dw = tensor(s, TW_FLOAT32, shape);
    l.db = tensor(s, TW_FLOAT32, s->operands[l.bias].shape);
    l.sizes = tensor(s, TW_INT32, TW_SHAPE(4));
    return l;
}

static int like(step *s, int t)
{
    return tensor(s, s->operands[t].dtype, s->operands[t].shape);
}

/* Convolution, bias, ReLU. */
static int conv(step *s, const char *label, const layer *l, int x, bool fused)
{
    tw_shape image = s->operands[x].shape;
    int y = tensor(s, s->type, TW_SHAPE(image.dims[0], image.dims[1], image.dims[2], 64));
    if (fused) {
        add(s, label, "_FusedConv2D", ATTRS(CONV, RELU), LIST(x, l->w, l->b), LIST(y));
        return y;
    }
    add(s, label, "Conv2D", ATTRS(CONV), LIST(x, l->w), LIST(y));
    add(s, "biases", "BiasAdd", ATTRS(TYPE), LIST(y, l->b), LIST(y));
    add(s, "relus", "Relu", ATTRS(TYPE), LIST(y), LIST(y));
    return y;
}

static void conv_filter(step *s, const char *label, layer *l, int x, int dy, bool fused)
{
    if (fused) {
        add(s, label, "_Conv2DBackpropFilterBias", ATTRS(CONV, tw_attr_type("U", TW_FLOAT32)), LIST(x, l->sizes, dy),
            LIST(l->dw, l->db));
        return;
    }
    int dw = tensor(s, s->type, s->operands[l->dw].shape), db = tensor(s, s->type, s->operands[l->db].shape);
    add(s, label, "Conv2DBackpropFilter", ATTRS(CONV), LIST(x, l->sizes, dy), LIST(dw));
    add(s, "bias gradients", "BiasAddGrad", ATTRS(TYPE), LIST(dy), LIST(db));
    l->dw = cast(s, "casts", dw, TW_FLOAT32);
    l->db = cast(s, "casts", db, TW_FLOAT32);
}

static int dense(step *s, const char *label, const layer *l, int x, bool relu, bool fused)
{
    int y = tensor(s, s->type, TW_SHAPE(BATCH, s->operands[l->bias].shape.dims[0]));
    if (fused) {
        add(s, label, "_FusedMatMul", ATTRS(TYPE, tw_attr_type("U", s->type), tw_attr_bool("relu", relu)),
            LIST(x, l->w, l->b), LIST(y));
        return y;
    }
    add(s, label, "MatMul", ATTRS(TYPE), LIST(x, l->w), LIST(y));
    add(s, "biases", "BiasAdd", ATTRS(TYPE), LIST(y, l->b), LIST(y));
    if (relu)
        add(s, "relus", "Relu", ATTRS(TYPE), LIST(y), LIST(y));
    return y;
}

/* Gradients of a dense layer's variables and, returned, of its input. */
static int dense_gradient(step *s, const char *label, layer *l, int x, int dy, bool fused)
{
    int dx = like(s, x);
    if (fused) {
        add(s, label, "_FusedMatMul",
            ATTRS(TYPE, tw_attr_type("U", TW_FLOAT32), tw_attr_bool("transpose_a", true)), LIST(x, dy), LIST(l->dw));
    } else {
        int dw = tensor(s, s->type, s->operands[l->dw].shape);
        add(s, label, "MatMul", ATTRS(TYPE, tw_attr_bool("transpose_a", true)), LIST(x, dy), LIST(dw));
        l->dw = cast(s, "casts", dw, TW_FLOAT32);
    }
    int db = tensor(s, s->type, s->operands[l->db].shape);
    add(s, "bias gradients", "BiasAddGrad", ATTRS(TYPE), LIST(dy), LIST(db));
    l->db = cast(s, "casts", db, TW_FLOAT32);
    add(s, label, "MatMul", ATTRS(TYPE, tw_attr_bool("transpose_b", true)), LIST(dy, l->w), LIST(dx));
    return dx;
}

/* Builds the list; returns the tensor of the losses. */
static int build(step *s, bool fused)
{
    int images = tensor(s, s->type, TW_SHAPE(BATCH, 24, 24, 3)), labels = tensor(s, TW_INT64, TW_SHAPE(BATCH));
    fill(s, images, 1);
    for (int i = 0; i < BATCH; i++)
        ((int64_t *)s->memory[labels])[i] = (int64_t)((uniform(s) + 1) * 4.99f);
    /* The sum of the losses is differentiated, so the rate is divided by the batch. */
    int rate = tensor(s, TW_FLOAT32, TW_SCALAR);
    *(float *)s->memory[rate] = 0.1f / BATCH;

    layer conv1 = new_layer(s, TW_SHAPE(5, 5, 3, 64), 0.1f), conv2 = new_layer(s, TW_SHAPE(5, 5, 64, 64), 0.03f);
    layer fc1 = new_layer(s, TW_SHAPE(2304, 384), 0.04f), fc2 = new_layer(s, TW_SHAPE(384, 192), 0.07f);
    layer fc3 = new_layer(s, TW_SHAPE(192, 10), 0.1f);
    tw_shape half = TW_SHAPE(BATCH, 12, 12, 64), quarter = TW_SHAPE(BATCH, 6, 6, 64);

    /* forward */
    int y1 = conv(s, "conv1", &conv1, images, fused);
    int pool1 = tensor(s, s->type, half), norm1 = tensor(s, s->type, half), argmax1 = tensor(s, TW_UINT8, half);
    if (fused) {
        add(s, "pool1, norm1", "_MaxPoolLRN", ATTRS(POOL, LRN), LIST(y1), LIST(norm1, pool1, argmax1));
    } else {
        add(s, "pool1", "MaxPool", ATTRS(POOL), LIST(y1), LIST(pool1));
        add(s, "norm1", "LRN", ATTRS(TYPE, LRN), LIST(pool1), LIST(norm1));
    }
    int y2 = conv(s, "conv2", &conv2, norm1, fused);
    int norm2 = tensor(s, s->type, half), pool2 = tensor(s, s->type, quarter), argmax2 = tensor(s, TW_UINT8, quarter);
    if (fused) {
        add(s, "norm2, pool2", "_LRNMaxPool", ATTRS(POOL, LRN), LIST(y2), LIST(pool2, argmax2));
    } else {
        add(s, "norm2", "LRN", ATTRS(TYPE, LRN), LIST(y2), LIST(norm2));
        add(s, "pool2", "MaxPool", ATTRS(POOL), LIST(norm2), LIST(pool2));
    }
    int flat = pool2;
    s->operands[flat].shape = TW_SHAPE(BATCH, 2304);
    int a1 = dense(s, "fc1", &fc1, flat, true, fused), a2 = dense(s, "fc2", &fc2, a1, true, fused);
    int logits = dense(s, "fc3", &fc3, a2, false, fused);
    int losses = tensor(s, s->type, TW_SHAPE(BATCH)), d3 = like(s, logits);
    add(s, "loss", "SparseSoftmaxCrossEntropyWithLogits", ATTRS(TYPE, tw_attr_type("Tlabels", TW_INT64)),
        LIST(logits, labels), LIST(losses, d3));

    /* backward */
    int da2 = dense_gradient(s, "fc3 gradients", &fc3, a2, d3, fused), d2 = like(s, da2);
    add(s, "relu gradients", "ReluGrad", ATTRS(TYPE), LIST(da2, a2), LIST(d2));
    int da1 = dense_gradient(s, "fc2 gradients", &fc2, a1, d2, fused), d1 = like(s, da1);
    add(s, "relu gradients", "ReluGrad", ATTRS(TYPE), LIST(da1, a1), LIST(d1));
    int dpool2 = dense_gradient(s, "fc1 gradients", &fc1, flat, d1, fused), dy2 = like(s, y2);
    s->operands[pool2].shape = s->operands[dpool2].shape = quarter;
    if (fused) {
        add(s, "pool2, norm2 gradients", "_LRNMaxPoolGrad", ATTRS(POOL, LRN, RELU), LIST(dpool2, y2, argmax2),
            LIST(dy2));
    } else {
        int dnorm2 = like(s, norm2);
        add(s, "pool2 gradient", "MaxPoolGrad", ATTRS(POOL), LIST(norm2, pool2, dpool2), LIST(dnorm2));
        add(s, "norm2 gradient", "LRNGrad", ATTRS(TYPE, LRN), LIST(dnorm2, y2, norm2), LIST(dy2));
        add(s, "relu gradients", "ReluGrad", ATTRS(TYPE), LIST(dy2, y2), LIST(dy2));
    }
    conv_filter(s, "conv2 filter gradient", &conv2, norm1, dy2, fused);
    int dnorm1 = like(s, norm1), dy1 = like(s, y1);
    add(s, "conv2 input gradient", "Conv2DBackpropInput", ATTRS(CONV), LIST(conv2.sizes, conv2.w, dy2), LIST(dnorm1));
    if (fused) {
        add(s, "norm1, pool1 gradients", "_MaxPoolLRNGrad", ATTRS(POOL, LRN, RELU), LIST(dnorm1, pool1, argmax1),
            LIST(dy1));
    } else {
        int dpool1 = like(s, pool1);
        add(s, "norm1 gradient", "LRNGrad", ATTRS(TYPE, LRN), LIST(dnorm1, pool1, norm1), LIST(dpool1));
        add(s, "pool1 gradient", "MaxPoolGrad", ATTRS(POOL), LIST(y1, pool1, dpool1), LIST(dy1));
        add(s, "relu gradients", "ReluGrad", ATTRS(TYPE), LIST(dy1, y1), LIST(dy1));
    }
    conv_filter(s, "conv1 filter gradient", &conv1, images, dy1, fused);

    /* update */
    layer *layers[] = {&conv1, &conv2, &fc1, &fc2, &fc3};
    int inputs[31] = {[10] = rate}, none = tensor(s, TW_FLOAT32, TW_SCALAR);
    s->operands[none].value = tw_tensor_float(0);
    for (int i = 0; i < 5; i++) {
        inputs[2 * i] = layers[i]->weights, inputs[2 * i + 1] = layers[i]->bias;
        inputs[11 + 2 * i] = layers[i]->dw, inputs[12 + 2 * i] = layers[i]->db;
        inputs[21 + 2 * i] = inputs[22 + 2 * i] = none;
    }
    for (int i = 0; i < 10; i++) {
        s->operands[inputs[i]].dtype = TW_RESOURCE;
        s->operands[inputs[i]].resource = &s->resources[inputs[i]];
    }
    if (fused)
        add(s, "updates", "_ApplyGradientDescentMany",
            ATTRS(tw_attr_int("N", 10), tw_attr_int("M", 10), tw_attr_type("T", TW_FLOAT32)), inputs, 31, NULL, 0);
    for (int i = 0; i < 10 && !fused; i++)
        add(s, "updates", "ResourceApplyGradientDescent", ATTRS(tw_attr_type("T", TW_FLOAT32)),
            LIST(inputs[i], rate, inputs[11 + i]), NULL, 0);
    return losses;
}

/* ---- running ----------------------------------------------------------------------------------------------- */

static void prepare(step *s)
{
    size_t workspace = 0;
    for (int i = 0; i < s->num_nodes; i++) {
        node *n = &s->nodes[i];
        twi_prepare p = {.op = n->op, .node = n->label, .attrs = &n->list, .num_inputs = n->num_inputs,
                         .num_outputs = n->num_outputs, .inputs = n->inputs, .outputs = n->outputs,
                         .device = s->device, .threads = s->device->threads, .error = &error};
        check(twi_device_prepare(s->device, &p, false, &n->kernel));
        n->state = p.state;
        workspace = p.workspace > workspace ? p.workspace : workspace;
    }
    check(twi_device_alloc(s->device, workspace, "workspace", &s->workspace, &error));
}

static void run(step *s, int number)
{
    for (int i = 0; i < s->num_nodes; i++) {
        node *n = &s->nodes[i];
        int64_t start = twi_monotonic_ns();
        check(n->kernel->run(&(twi_run){.state = n->state, .inputs = n->from, .outputs = n->to,
                                        .workspace = s->workspace, .input_operands = n->inputs,
                                        .output_operands = n->outputs, .num_inputs = n->num_inputs,
                                        .num_outputs = n->num_outputs, .threads = s->device->threads,
                                        .node = n->label, .error = &error}));
        n->times[number] = (double)(twi_monotonic_ns() - start) * 1e-6;
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[count / 2];
}

static double mean_loss(const step *s, int losses)
{
    double sum = 0;
    for (int i = 0; i < BATCH; i++)
        sum += s->type == TW_FLOAT32 ? ((float *)s->memory[losses])[i]
                                     : tw_bfloat16_to_float(((uint16_t *)s->memory[losses])[i]);
    return sum / BATCH;
}

/* One line a label, in order of appearance. */
static void print_kernels(step *s, int steps)
{
    for (int i = 0; i < s->num_nodes; i++) {
        double total = 0;
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen = seen || strcmp(s->nodes[k].label, s->nodes[i].label) == 0;
        for (int k = i; k < s->num_nodes && !seen; k++)
            if (strcmp(s->nodes[k].label, s->nodes[i].label) == 0)
                total += median(s->nodes[k].times, steps);
        if (!seen)
            printf("  %-24s %-8s %8.3f ms\n", s->nodes[i].label, s->nodes[i].kernel->name, total);
    }
}

int main(int argc, char **argv)
{
    static step s;
    static double times[MOST_STEPS];
    int threads = 0, steps = 21;
    bool fused = true, kernels = false;
    s.type = TW_FLOAT32;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--single") == 0)
            fused = false;
        else if (strcmp(argv[i], "--kernels") == 0)
            kernels = true;
        else if (strcmp(argv[i], "--threads") == 0 && ++i)
            threads = atoi(value);
        else if (strcmp(argv[i], "--steps") == 0 && ++i)
            steps = atoi(value);
        else if (strcmp(argv[i], "--type") == 0 && ++i)
            s.type = tw_dtype_from_name(value);
        else
            steps = 0;
    }
    if (steps < 1 || steps > MOST_STEPS || (s.type != TW_FLOAT32 && s.type != TW_BFLOAT16)) {
        fprintf(stderr, "usage: bench_step [--threads N] [--steps N] [--type float|bfloat16] [--single] [--kernels]\n");
        return 2;
    }
    tw_devices *devices;
    check(tw_devices_create(&(tw_device_options){.cpu_threads = threads, .no_gpus = true}, &devices, &error));
    s.device = devices->items[0];
    int losses = build(&s, fused);
    prepare(&s);

    double first = 0;
    for (int i = -4; i < steps; i++) {
        int64_t start = twi_monotonic_ns();
        run(&s, i < 0 ? 0 : i);
        if (i >= 0)
            times[i] = (double)(twi_monotonic_ns() - start) * 1e-6;
        if (i == -4)
            first = mean_loss(&s, losses);
    }
    if (kernels)
        print_kernels(&s, steps);
    double middle = median(times, steps);
    printf("%s %s, %d threads: median %.2f ms, min %.2f, max %.2f, %.0f images/s, loss %.4f -> %.4f\n",
           fused ? "fused" : "single", tw_dtype_name(s.type), s.device->threads, middle, times[0], times[steps - 1],
           BATCH / middle * 1e3, first, mean_loss(&s, losses));
    for (int i = 0; i < s.num_nodes; i++)
        if (s.nodes[i].kernel->release)
            s.nodes[i].kernel->release(s.nodes[i].state);
    tw_devices_destroy(devices);
    return 0;
}
