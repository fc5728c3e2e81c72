/* conv.c - Conv2D, its gradients and its fused forms by cuDNN's operation graphs (cudnn_graph.h), or by kernels of ours
 * where those are faster (implicit_gemm.cu, conv_pool.cu).
 *
 * With a batch normalization behind it, a kernel of ours leaves the moments of what it stores, where behind cuDNN's a
 * launch reads that again; the contest is between the two together. So it is where a pool and a local response
 * normalization stand behind, which one kernel of ours does, too, and with all their gradients; behind cuDNN's there
 * are launches for them. Where none of ours would do, nodes stay apart.
 *
 * Images are NHWC on both sides. Filters are [kh,kw,C,K] here and [K,kh,kw,C] there, so they are transposed on the way,
 * into or out of the workspace; ops whose names begin with _TransposedFilter have them as they are there. Not every
 * engine pads both ends of a side differently; where ours differ, the image is padded by a copy first. Unless the
 * device is told otherwise, only engines that give the same bits in every run are taken, and float products are of
 * floats, not TF32. */
#ifdef TOWER_WITH_CUDNN
#include "base/memory.h"
#include "device/cuda/choice.h"
#include "device/cuda/cudnn_graph.h"
#include "device/cuda/launch.h"
#include "tensor/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKSPACE_LIMIT ((size_t)256 << 20)
#define ALIGNMENT ((size_t)256)

enum { OWN_VARIANTS = TWI_CUDA_CONV_POOLS + 1, MOST_SIDE = 4096 };

/* Of what bits kernels of ours give, by direction. */
static const uint64_t own_revisions[] = {
    [TWI_CONV_FORWARD] = 1, [TWI_CONV_BACKWARD_DATA] = 1, [TWI_CONV_BACKWARD_FILTER] = 2};

typedef struct own_kernel {
    int variant, parts; /* that it leaves the moments of */
    size_t workspace;
} own_kernel;

typedef struct convolution {
    twi_conv_graph graph;
    twi_convolution laid;
    const twi_cudnn *library;        /* NULL: nothing to compute, or only kernels of ours to do so */
    cudnnHandle_t handle;
    twi_cuda_device *device;
    twi_descriptors parts;
    cudnnBackendDescriptor_t described; /* the graph; NULL: no engine takes it */
    void *plan;                      /* the graph with an engine; one of own[] */
    twi_cuda_conv by_us;             /* what kernels of ours would do */
    own_kernel own[OWN_VARIANTS];   /* in this order */
    int num_own;
    bool fits_own, fits_pooled;      /* some would take it, whether they may or not; and pool, too */
    bool normalized;                 /* a batch normalization with a ReLU stands behind */
    bool pooled;                     /* a pool and a local response normalization stand behind, */
    twi_cuda_pool pool;              /* these */
    twi_cuda_lrn lrn;
    bool relu;                       /* of a gradient that is pooled: a ReLU stands before them, */
    twi_cuda_reduction bias;         /* and of the bias's, by a launch of its own */
    twi_cuda_batch_norm norm;        /* with the parts that a launch of its own makes moments of */
    twi_engine_rules rules;
    twi_variant_pack pack;
    bool bias_apart, relu_apart;     /* no engine does them; so a kernel of ours does, afterwards */
    bool transposed;                     /* filters are [K,kh,kw,C] outside, too */
    bool padded;                     /* the image is copied into a larger one, [N, sides, C] */
    int64_t sides[2];
    size_t filter_bytes, padded_bytes, moments_bytes, convolved_bytes, workspace; /* the run's parts, in this order; of
                                                                                     moments, or a bias's sums */
} convolution;

static void release(void *state)
{
    convolution *c = state;
    if (!c)
        return;
    if (c->library)
        twi_variant_pack_free(c->library, &c->pack);
    twi_descriptors_free(&c->parts);
    twi_free(c);
}

static size_t round_up(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* ---- kernels of ours --------------------------------------------------------------------------------------------- */

/* TOWER_CONVOLUTIONS: "cudnn" or "tower", whose kernels may be taken, or "tower:3", which of ours. */
static bool may_take(bool own, int variant)
{
    const char *wanted = getenv("TOWER_CONVOLUTIONS");
    char name[32];
    if (!wanted || !*wanted)
        return true;
    if (!own)
        return strcmp(wanted, "cudnn") == 0;
    snprintf(name, sizeof name, "tower:%d", variant);
    return strcmp(wanted, "tower") == 0 || strcmp(wanted, name) == 0;
}

/* Those that take what the graph describes. */
static void find_own(convolution *c)
{
    const twi_conv_graph *g = &c->graph;
    twi_cuda_conv *o = &c->by_us;
    bool plain = c->device->card.capability >= 80 && c->rules.tensor_cores && g->batch > 0 && g->batch <= INT32_MAX &&
                 g->in_channels <= INT32_MAX && g->out_channels <= INT32_MAX;
    *o = (twi_cuda_conv){.type = g->type, .direction = g->direction, .relu = g->relu || c->relu,
                         .moments = c->normalized, .pooled = c->pooled, .pool = c->pool, .lrn = c->lrn,
                         .shared = (size_t)c->device->card.shared, .batch = (int)g->batch,
                         .in_channels = (int)g->in_channels, .out_channels = (int)g->out_channels};
    for (int i = 0; i < 2; i++) {
        plain = plain && g->stride[i] == 1 && g->dilation[i] == 1 && g->image[i] > 0 && g->image[i] <= MOST_SIDE;
        o->image[i] = (int)g->image[i];
        o->output[i] = (int)g->output[i];
        o->size[i] = (int)g->size[i];
        o->before[i] = (int)g->before[i];
    }
    c->num_own = 0;
    for (int variant = 0; variant < OWN_VARIANTS && plain; variant++) {
        size_t workspace;
        bool pools = variant == TWI_CUDA_CONV_POOLS;
        bool fits = pools ? twi_cuda_conv_pool_fits(o, &workspace) : twi_cuda_conv_fits(o, variant, &workspace);
        c->fits_own = c->fits_own || fits;
        c->fits_pooled = c->fits_pooled || (fits && pools);
        if (fits && may_take(true, variant))
            c->own[c->num_own++] = (own_kernel){variant, pools ? 0 : twi_cuda_conv_parts(o, variant), workspace};
    }
}

/* What a normalization takes of all rows, and room for the moments of as many parts as anybody leaves. */
static void plan_norm(const twi_prepare *p, convolution *c)
{
    const twi_window *w = &c->laid.window;
    c->norm = (twi_cuda_batch_norm){.rows = (int)(c->laid.batch * w->output[0] * w->output[1]),
                                    .channels = (int)c->laid.out_channels,
                                    .epsilon = twi_attr_float(p->attrs, "epsilon", 0.0001f),
                                    .training = true, .relu = true};
    twi_cuda_batch_norm_plan(&c->norm);
    int most = c->norm.parts;
    for (int i = 0; i < c->num_own; i++)
        most = c->own[i].parts > most ? c->own[i].parts : most;
    c->moments_bytes = round_up((size_t)most * ((size_t)c->norm.channels * 2 + 1) * sizeof(float));
}

/* The sums of a bias's gradient, and room for what such a launch has in between. */
static void plan_bias(convolution *c)
{
    const twi_window *w = &c->laid.window;
    const int64_t rows = c->laid.batch * w->output[0] * w->output[1], channels = c->laid.out_channels;
    c->bias = (twi_cuda_reduction){.fold = TWI_CUDA_SUM, .outputs = channels, .inputs = rows, .num_kept = 1,
                                   .num_reduced = 1, .kept_size = {channels}, .kept_step = {1},
                                   .reduced_size = {rows}, .reduced_step = {channels}};
    c->moments_bytes = round_up(twi_cuda_reduction_plan(&c->bias, c->graph.type));
}

static const own_kernel *own_of(const convolution *c, const void *plan)
{
    for (int i = 0; i < c->num_own; i++)
        if (plan == &c->own[i])
            return &c->own[i];
    return NULL;
}

/* Those that are wanted stand behind all of the library's. */
static void next_own(convolution *c, const twi_search *search, twi_candidate *found)
{
    const uint64_t revision = own_revisions[c->graph.direction];
    for (int i = 0; i < c->num_own && !found->plan; i++) {
        int at = TWI_OWN_ALGORITHMS + c->own[i].variant;
        if (twi_is_wanted(search, at, at, revision))
            *found = (twi_candidate){at, at, revision, c->own[i].workspace, &c->own[i]};
    }
}

static const int64_t ids[] = {TWI_CONV_IMAGE, TWI_CONV_FILTER, TWI_CONV_OUTPUT, TWI_CONV_BIAS};

/* ---- choosing an engine: see choice.h ---------------------------------------------------------------------------- */

/* Under the lock of the handle. */
static tw_status find_engine(convolution *c, const twi_search *search, twi_candidate *found, tw_error *error)
{
    twi_engine engine;
    *found = (twi_candidate){0};
    if (!c->described)
        return TW_OK;
    c->parts.error = error;
    if (twi_engine_next(&c->parts, c->described, c->handle, NULL, &c->rules, search, &engine))
        *found = (twi_candidate){engine.position, engine.number, engine.settings, engine.workspace, engine.plan};
    c->parts.error = NULL; /* the caller's; parts outlive it */
    return c->parts.status;
}

static tw_status next_engine(void *user, const twi_search *search, twi_candidate *found, tw_error *error)
{
    convolution *c = user;
    tw_status status = TW_OK;
    *found = (twi_candidate){0};
    if (search->from < TWI_OWN_ALGORITHMS && (c->num_own == 0 || may_take(false, 0))) {
        pthread_mutex_lock(&c->device->cudnn_lock);
        status = find_engine(c, search, found, error);
        pthread_mutex_unlock(&c->device->cudnn_lock);
    }
    if (status == TW_OK && !found->plan)
        next_own(c, search, found);
    return status;
}

static void drop_engine(void *user, const twi_candidate *candidate)
{
    convolution *c = user;
    if (!own_of(c, candidate->plan))
        twi_engine_drop(&c->parts, &(twi_engine){.plan = candidate->plan});
}

/* What the pool makes of it: y, as many maxima, and a byte for each. */
static size_t pooled_bytes(const convolution *c)
{
    return c->pooled ? round_up((size_t)c->pool.batch * (size_t)c->pool.output[0] * (size_t)c->pool.output[1] *
                                (size_t)c->pool.channels * tw_dtype_size(c->graph.type)) : 0;
}

/* Image, filter, output and bias of the graph, or moments. */
static void measure_operands(const convolution *c, size_t bytes[4])
{
    const twi_conv_graph *g = &c->graph;
    size_t size = tw_dtype_size(g->type);
    bytes[0] = round_up((size_t)(g->batch * g->image[0] * g->image[1] * g->in_channels) * size);
    bytes[1] = round_up((size_t)(g->out_channels * g->size[0] * g->size[1] * g->in_channels) * size);
    bytes[2] = round_up((size_t)(g->batch * g->output[0] * g->output[1] * g->out_channels) * size);
    bytes[3] = c->normalized ? c->moments_bytes : round_up((size_t)g->out_channels * size);
}

static tw_status execute_own(const convolution *c, const own_kernel *own, void *const pointers[4], bool bias,
                             void *moments, void *workspace, cudaStream_t stream, tw_error *error)
{
    tw_status status = TW_OK;
    TWI_CALL(&c->device->base, error,
             twi_cuda_conv_run(stream, &c->by_us, own->variant, pointers[0], pointers[1], pointers[2],
                               bias ? pointers[3] : NULL, moments, workspace));
done:
    return status;
}

static tw_status execute_plan(convolution *c, void *plan, void *const pointers[4], bool bias, void *workspace,
                              cudaStream_t stream, tw_error *error)
{
    const own_kernel *own = own_of(c, plan);
    if (own)
        return execute_own(c, own, pointers, bias, NULL, workspace, stream, error);
    pthread_mutex_lock(&c->device->cudnn_lock);
    tw_status status = twi_cudnn_to_stream(c->device, stream, error);
    if (status == TW_OK)
        status = twi_plan_execute(c->library, c->handle, plan, &c->pack, bias ? 4 : 3, ids, pointers, workspace, error);
    pthread_mutex_unlock(&c->device->cudnn_lock);
    return status;
}

/* Kernels of ours leave moments only of what is laid for vectors. */
static bool leaves_moments(const own_kernel *own, void *const pointers[3])
{
    bool fits = own != NULL;
    for (int i = 0; i < 3; i++)
        fits = fits && (uintptr_t)pointers[i] % 16 == 0;
    return fits;
}

/* The convolution, and the moments of its output; *norm: what becomes of these. */
static tw_status execute_with_moments(convolution *c, void *plan, void *const pointers[4], void *moments,
                                      void *workspace, cudaStream_t stream, twi_cuda_batch_norm *norm, tw_error *error)
{
    const own_kernel *own = own_of(c, plan);
    tw_status status;
    *norm = c->norm;
    if (leaves_moments(own, pointers)) {
        norm->parts = own->parts;
        norm->counted = true;
        return execute_own(c, own, pointers, false, moments, workspace, stream, error);
    }
    TWI_TRY(execute_plan(c, plan, pointers, false, workspace, stream, error));
    TWI_CALL(&c->device->base, error,
             twi_cuda_batch_norm_moments(stream, c->graph.type, norm, pointers[2], moments));
done:
    return status;
}

/* Where a pool's outputs go. */
typedef struct pooled {
    void *y, *most;
    uint8_t *argmax;
} pooled;

static tw_status add_bias(const convolution *c, cudaStream_t stream, const void *bias, void *image, tw_error *error)
{
    const twi_window *w = &c->laid.window;
    const int64_t elements = c->laid.batch * w->output[0] * w->output[1] * c->laid.out_channels;
    tw_status status = TW_OK;
    TWI_CALL(&c->device->base, error,
             twi_cuda_bias_add(stream, c->graph.type, elements, c->laid.out_channels, 1, c->relu_apart, image, bias,
                               image));
done:
    return status;
}

static bool pools(const own_kernel *own)
{
    return own && own->variant == TWI_CUDA_CONV_POOLS;
}

/* The convolution, with its bias, and what stands behind it. */
static tw_status execute_pooled(convolution *c, void *plan, void *const pointers[4], const pooled *to, void *workspace,
                                cudaStream_t stream, tw_error *error)
{
    const own_kernel *own = own_of(c, plan);
    tw_status status = TW_OK;
    if (pools(own)) {
        TWI_CALL(&c->device->base, error,
                 twi_cuda_conv_pool(stream, &c->by_us, pointers[0], pointers[1], pointers[3], to->y, to->most,
                                    to->argmax));
        return TW_OK;
    }
    TWI_TRY(execute_plan(c, plan, pointers, c->graph.bias, workspace, stream, error));
    if (c->bias_apart)
        TWI_TRY(add_bias(c, stream, pointers[3], pointers[2], error));
    TWI_CALL(&c->device->base, error,
             twi_cuda_pool_lrn(stream, c->graph.type, &c->pool, &c->lrn, pointers[2], to->y, to->most, to->argmax));
done:
    return status;
}

/* The gradients of filter and bias by that of y. Sums: room of the bias's launch. *apart: the filter's is
 * [K,kh,kw,C]. */
static tw_status execute_pooled_gradient(convolution *c, void *plan, void *const pointers[4], const pooled *of,
                                         void *filter, void *sums, void *workspace, cudaStream_t stream, bool *apart,
                                         tw_error *error)
{
    tw_status status = TW_OK;
    *apart = !pools(own_of(c, plan));
    if (!*apart) {
        TWI_CALL(&c->device->base, error,
                 twi_cuda_conv_pool_grad(stream, &c->by_us, pointers[0], of->y, of->most, of->argmax, filter,
                                         pointers[3], workspace));
        return TW_OK;
    }
    TWI_CALL(&c->device->base, error,
             twi_cuda_pool_lrn_grad(stream, c->graph.type, &c->pool, &c->lrn, c->relu, of->y, of->most, of->argmax,
                                    pointers[2]));
    TWI_CALL(&c->device->base, error,
             twi_cuda_reduce(stream, c->graph.type, &c->bias, pointers[2], pointers[3], sums, c->by_us.counters));
    status = execute_plan(c, plan, pointers, false, workspace, stream, error);
done:
    return status;
}

static tw_status try_engine(void *user, const twi_candidate *candidate, char *operands, void *workspace,
                            cudaStream_t stream, tw_error *error)
{
    convolution *c = user;
    size_t bytes[4];
    measure_operands(c, bytes);
    void *const pointers[] = {operands, operands + bytes[0], operands + bytes[0] + bytes[1],
                              operands + bytes[0] + bytes[1] + bytes[2]};
    if (c->normalized)
        return execute_with_moments(c, candidate->plan, pointers, pointers[3], workspace, stream,
                                    &(twi_cuda_batch_norm){0}, error);
    if (c->pooled) {
        char *y = (char *)pointers[3] + bytes[3], *most = y + pooled_bytes(c), *argmax = most + pooled_bytes(c);
        const pooled all = {y, most, (uint8_t *)argmax};
        return c->graph.direction == TWI_CONV_FORWARD
                   ? execute_pooled(c, candidate->plan, pointers, &all, workspace, stream, error)
                   : execute_pooled_gradient(c, candidate->plan, pointers, &all, pointers[1], argmax + pooled_bytes(c),
                                             workspace, stream, &(bool){0}, error);
    }
    return execute_plan(c, candidate->plan, pointers, c->graph.bias, workspace, stream, error);
}

static void write_key(const convolution *c, char *key, size_t size)
{
    static const char *const directions[] = {"forward", "backward-data", "backward-filter"};
    const twi_conv_graph *g = &c->graph;
    const twi_cuda_pool *p = &c->pool;
    char pool[64] = "";
    if (c->pooled)
        snprintf(pool, sizeof pool, ",pool%dx%d/%dx%d,lrn%d", p->size[0], p->size[1], p->stride[0], p->stride[1],
                 c->lrn.radius);
#define PAIR(x) (long long)(x)[0], (long long)(x)[1]
    snprintf(key, size,
             "conv-%s,%s,batch%lld,channels%lldto%lld,image%lldx%lld,output%lldx%lld,filter%lldx%lld,stride%lldx%lld,"
             "dilation%lldx%lld,pad%lldx%lld+%lldx%lld%s%s%s%s%s%s",
             directions[g->direction], tw_dtype_name(g->type), (long long)g->batch, (long long)g->in_channels,
             (long long)g->out_channels, PAIR(g->image), PAIR(g->output), PAIR(g->size), PAIR(g->stride),
             PAIR(g->dilation), PAIR(g->before), PAIR(g->after), g->bias ? ",bias" : "", g->relu ? ",relu" : "",
             c->normalized ? ",moments" : "", pool,
             c->rules.tensor_cores && g->type == TW_FLOAT32 ? ",tf32" : "", c->rules.any_order ? ",fast" : "");
#undef PAIR
}

static tw_status choose_engine(twi_prepare *p, convolution *c)
{
    size_t bytes[4];
    twi_candidate winner;
    twi_contest contest = {.maker = "cudnn", .version = c->library ? c->library->cudnnGetVersion() : 0,
                           .node = p->node, .comm = p->comm, .user = c, .next = next_engine, .run = try_engine,
                           .drop = drop_engine};
    measure_operands(c, bytes);
    contest.bytes = bytes[0] + bytes[1] + bytes[2] + bytes[3] + 3 * pooled_bytes(c);
    if (c->pooled)
        contest.bytes += c->moments_bytes;
    write_key(c, contest.key, sizeof contest.key);
    tw_status status = twi_choose(c->device, &contest, &winner, p->error);
    if (c->library)
        twi_variant_pack_free(c->library, &c->pack);
    c->plan = winner.plan;
    c->convolved_bytes = c->pooled && !pools(own_of(c, c->plan)) ? bytes[2] : 0;
    c->workspace = winner.workspace;
    return status;
}

/* The graph of what is left when padding is done by hand. */
static void draw(const twi_prepare *p, convolution *c)
{
    const twi_window *w = &c->laid.window;
    c->rules = (twi_engine_rules){.tensor_cores = c->graph.type != TW_FLOAT32 || twi_cuda_of(p)->tf32,
                                  .any_order = twi_cuda_of(p)->fast, .workspace = WORKSPACE_LIMIT};
    c->graph.batch = c->laid.batch;
    c->graph.in_channels = c->laid.in_channels;
    c->graph.out_channels = c->laid.out_channels;
    for (int i = 0; i < 2; i++) {
        c->graph.image[i] = c->sides[i];
        c->graph.output[i] = w->output[i];
        c->graph.size[i] = w->size[i];
        c->graph.stride[i] = w->stride[i];
        c->graph.dilation[i] = w->dilation[i];
        c->graph.before[i] = c->padded ? 0 : w->before[i];
        c->graph.after[i] = c->padded ? 0 : w->after[i];
    }
    find_own(c);
}

/* Bias and ReLU come afterwards, from a kernel of ours. */
static void set_apart(convolution *c)
{
    c->bias_apart = c->bias_apart || c->graph.bias;
    c->relu_apart = c->relu_apart || c->graph.relu;
    c->graph.bias = c->graph.relu = false;
}

static tw_status make_graph(const twi_prepare *p, convolution *c)
{
    c->parts = (twi_descriptors){.cudnn = c->library, .device = p->device, .error = p->error};
    c->described = twi_conv_graph_make(&c->parts, &c->graph, c->handle);
    c->parts.error = NULL;
    return c->parts.status;
}

/* TW_UNIMPLEMENTED: no engine that obeys wants to. */
static tw_status find_any(const twi_prepare *p, convolution *c)
{
    twi_candidate first = {0};
    tw_status status = make_graph(p, c);
    if (status == TW_OK)
        status = find_engine(c, &(twi_search){0}, &first, p->error);
    twi_descriptors_free(&c->parts);
    return status == TW_OK && !first.plan
               ? twi_fail(p->error, TW_UNIMPLEMENTED, "cudnn has no algorithm for this that may be taken")
               : status;
}

/* Whether there is an engine, for all or for the convolution alone; the library is asked once for each, and what it
 * said is kept. */
static tw_status ask(const twi_prepare *p, convolution *c, twi_answer *answer)
{
    char key[TWI_CHOICE_KEY];
    tw_status status = TW_OK;
    write_key(c, key, sizeof key);
    if ((*answer = twi_answer_find(p->device, key)) != TWI_NOT_ASKED)
        return TW_OK;
    status = find_any(p, c);
    *answer = status == TW_OK ? TWI_TAKEN : TWI_REFUSED;
    if (status == TW_UNIMPLEMENTED && c->graph.bias) {
        set_apart(c);
        status = find_any(p, c);
        *answer = status == TW_OK ? TWI_TAKEN_APART : TWI_REFUSED;
    }
    if (status != TW_OK && status != TW_UNIMPLEMENTED)
        return status;
    twi_answer_keep(p->device, key, *answer);
    return TW_OK;
}

/* ---- preparing --------------------------------------------------------------------------------------------------- */

/* Which operand is what. */
typedef struct operands {
    const twi_operand *image, *filter, *output;
} operands;

enum {
    CONVOLVED = 6,         /* the output of the convolution before a normalization */
    POOLED_OUTPUTS = 3,    /* of one before a pool: y, maxima, argmax */
    POOLED_GRADIENT_INPUTS = 5, /* image, sizes, that of y, maxima, argmax */
};

static operands operands_of(const twi_prepare *p, twi_conv_direction direction)
{
    switch (direction) {
    case TWI_CONV_FORWARD:
        return (operands){&p->inputs[0], &p->inputs[1], &p->outputs[p->num_outputs > CONVOLVED ? CONVOLVED : 0]};
    case TWI_CONV_BACKWARD_DATA: return (operands){&p->outputs[0], &p->inputs[1], &p->inputs[2]};
    case TWI_CONV_BACKWARD_FILTER: break;
    }
    return (operands){&p->inputs[0], &p->outputs[0], &p->inputs[2]};
}

static twi_conv_graph graph_of(const twi_prepare *p, twi_conv_direction direction)
{
    bool forward = direction == TWI_CONV_FORWARD;
    return (twi_conv_graph){.direction = direction, .type = operands_of(p, direction).image->dtype,
                            .bias = forward && p->num_inputs > 2 && p->num_outputs <= POOLED_OUTPUTS,
                            .relu = forward && twi_attr_bool(p->attrs, "relu", false)};
}

/* The pool and the normalization behind. */
static tw_status lay_pool(const twi_prepare *p, convolution *c)
{
    twi_attr items[TWI_POOL_ATTRS];
    const twi_attrs attrs = twi_pool_attrs(p->attrs, items);
    const tw_shape shape = twi_window_output(&c->laid.window, p->inputs[0].shape, c->laid.out_channels);
    const twi_operand convolved = {.dtype = p->inputs[0].dtype, .shape = shape, .elements = tw_shape_elements(shape)};
    twi_prepare pool = *p;
    pool.attrs = &attrs;
    tw_status status = twi_cuda_pool_of(&pool, &convolved, &c->pool);
    const twi_operand *y = c->graph.direction == TWI_CONV_FORWARD ? &p->outputs[0] : &p->inputs[2];
    return status == TW_OK ? twi_cuda_lrn_of(p, y, &c->lrn) : status;
}

/* All that follows from shapes and attributes; *empty: there is nothing to compute. */
static tw_status lay(const twi_prepare *p, twi_conv_direction direction, convolution *c, bool *empty)
{
    const operands o = operands_of(p, direction);
    c->graph = graph_of(p, direction);
    c->device = (twi_cuda_device *)p->device;
    c->normalized = p->num_outputs > CONVOLVED;
    c->pooled = direction == TWI_CONV_FORWARD ? p->num_outputs == POOLED_OUTPUTS
                                              : p->num_inputs == POOLED_GRADIENT_INPUTS;
    c->relu = c->pooled && direction != TWI_CONV_FORWARD && twi_attr_bool(p->attrs, "relu", false);
    c->transposed = strncmp(p->op, "_TransposedFilter", strlen("_TransposedFilter")) == 0;
    *empty = o.image->elements == 0 || o.filter->elements == 0 || o.output->elements == 0;
    if (strcmp(twi_attr_string(p->attrs, "data_format", "NHWC"), "NHWC") != 0)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s supports NHWC only", p->op);
    tw_status status =
        twi_convolution_lay(p->attrs, TWI_DENSE, o.image->shape,
                            c->transposed ? twi_transpose_filter_back(o.filter->shape) : o.filter->shape,
                            c->pooled ? TW_UNKNOWN_SHAPE : o.output->shape, &c->laid,
                            p->error);
    if (status == TW_OK && c->pooled)
        status = lay_pool(p, c);
    if (status != TW_OK)
        return status;
    const twi_window *w = &c->laid.window;
    for (int i = 0; i < 2; i++) {
        c->padded = c->padded || w->before[i] != w->after[i];
        c->sides[i] = w->image[i];
    }
    for (int i = 0; i < 2 && c->padded; i++)
        c->sides[i] += w->before[i] + w->after[i];
    if (!c->transposed)
        c->filter_bytes = round_up((size_t)o.filter->elements * tw_dtype_size(c->graph.type));
    if (c->padded)
        c->padded_bytes = round_up((size_t)(c->laid.batch * c->sides[0] * c->sides[1] * c->laid.in_channels) *
                                   tw_dtype_size(c->graph.type));
    draw(p, c);
    if (c->normalized)
        plan_norm(p, c);
    if (c->pooled && direction != TWI_CONV_FORWARD)
        plan_bias(c);
    return TW_OK;
}

static tw_status accepts(const twi_prepare *p, twi_conv_direction direction)
{
    convolution c = {0};
    twi_answer answer = TWI_TAKEN;
    bool empty;
    tw_status status = lay(p, direction, &c, &empty);
    if (status != TW_OK || empty || c.num_own > 0)
        return status;
    if ((status = twi_cudnn_open(p->device, &c.library, &c.handle, p->error)) != TW_OK)
        return status;
    pthread_mutex_lock(&c.device->cudnn_lock);
    status = ask(p, &c, &answer);
    pthread_mutex_unlock(&c.device->cudnn_lock);
    if (status == TW_OK && answer == TWI_REFUSED)
        status = twi_fail(p->error, TW_UNIMPLEMENTED, "cudnn has no algorithm for this that may be taken");
    return status;
}

static tw_status accepts_forward(const twi_prepare *p)
{
    return accepts(p, TWI_CONV_FORWARD);
}

/* With what stands behind. */
static tw_status accepts_with_all(const twi_prepare *p, twi_conv_direction direction)
{
    convolution c = {0};
    bool empty;
    tw_status status = lay(p, direction, &c, &empty);
    if (status == TW_OK && (empty || !(c.pooled ? c.fits_pooled : c.fits_own)))
        return twi_fail(p->error, TW_UNIMPLEMENTED, "no kernel of ours for this %s",
                        c.pooled ? "pools and normalizes" : "leaves moments");
    return status == TW_OK ? accepts(p, direction) : status;
}

static tw_status accepts_joined(const twi_prepare *p)
{
    return accepts_with_all(p, TWI_CONV_FORWARD);
}

static tw_status accepts_pooled_gradient(const twi_prepare *p)
{
    return accepts_with_all(p, TWI_CONV_BACKWARD_FILTER);
}

static tw_status accepts_backprop_input(const twi_prepare *p)
{
    return accepts(p, TWI_CONV_BACKWARD_DATA);
}

static tw_status accepts_backprop_filter(const twi_prepare *p)
{
    return accepts(p, TWI_CONV_BACKWARD_FILTER);
}

/* An engine, or a kernel of ours, for what accepts() has found there to be one for. What ours do at once is not taken
 * apart for the library's sake. */
static tw_status choose(twi_prepare *p, convolution *c)
{
    twi_answer answer = TWI_REFUSED;
    tw_error unused;
    tw_status status = twi_cudnn_open(p->device, &c->library, &c->handle, c->num_own > 0 ? &unused : p->error);
    if (status != TW_OK)
        return c->num_own > 0 ? choose_engine(p, c) : status;
    pthread_mutex_lock(&c->device->cudnn_lock);
    convolution asked = *c;
    status = ask(p, &asked, &answer);
    if (status == TW_OK && answer == TWI_TAKEN_APART && c->num_own == 0)
        set_apart(c);
    if (status == TW_OK && (answer == TWI_TAKEN || c->num_own == 0))
        status = make_graph(p, c);
    pthread_mutex_unlock(&c->device->cudnn_lock);
    return status == TW_OK ? choose_engine(p, c) : status;
}

static tw_status prepare(twi_prepare *p, twi_conv_direction direction)
{
    tw_status status;
    bool empty;
    convolution *c = p->state = twi_alloc(sizeof *c);
    if (!c)
        return twi_fail_memory(p->error, p->node);
    TWI_TRY(lay(p, direction, c, &empty));
    if (empty) { /* zeros, and the bias */
        set_apart(c);
        return TW_OK;
    }
    if ((c->num_own > 0 || c->pooled) && direction == TWI_CONV_BACKWARD_FILTER)
        TWI_TRY(twi_cuda_take_counters(p, &c->by_us.counters));
    TWI_TRY(choose(p, c));
    if (!own_of(c, c->plan) && !c->pooled)
        p->touches = NULL; /* the library counts elsewhere */
    p->workspace = ALIGNMENT + c->filter_bytes + c->padded_bytes + c->moments_bytes + c->convolved_bytes +
                   c->workspace;
done:
    return status;
}

static tw_status prepare_forward(twi_prepare *p)
{
    return prepare(p, TWI_CONV_FORWARD);
}

static tw_status prepare_backprop_input(twi_prepare *p)
{
    return prepare(p, TWI_CONV_BACKWARD_DATA);
}

static tw_status prepare_backprop_filter(twi_prepare *p)
{
    return prepare(p, TWI_CONV_BACKWARD_FILTER);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

typedef struct rooms {
    char *filter, *image, *moments, *convolved, *workspace;
} rooms;

static rooms rooms_of(const twi_run *r, const convolution *c)
{
    char *start = (char *)round_up((size_t)r->workspace), *image = start + c->filter_bytes;
    char *moments = image + c->padded_bytes, *convolved = moments + c->moments_bytes;
    return (rooms){start, image, moments, convolved, convolved + c->convolved_bytes};
}

/* [kh,kw,C,K] to [K,kh,kw,C], or back. */
static tw_status turn_filter(const twi_run *r, const convolution *c, bool back, const void *from, void *to)
{
    int64_t cells = c->laid.window.size[0] * c->laid.window.size[1], in = c->laid.in_channels,
            out = c->laid.out_channels;
    twi_cuda_move move = {.rank = 2, .size = {cells * in, out}, .from = {out, 1}, .to = {1, cells * in}};
    if (back)
        move = (twi_cuda_move){.rank = 2, .size = {cells * in, out}, .from = {1, cells * in}, .to = {out, 1}};
    return TWI_LAUNCH(r, twi_cuda_move_run(r->stream, (int)tw_dtype_size(c->graph.type), &move, from, to));
}

/* The image into the middle of the padded one, whose rest is zero; or out of it. */
static tw_status pad_image(const twi_run *r, const convolution *c, bool back, const void *from, void *to)
{
    const twi_window *w = &c->laid.window;
    int64_t channels = c->laid.in_channels, size = (int64_t)tw_dtype_size(c->graph.type);
    int64_t small[3] = {w->image[0] * w->image[1] * channels, w->image[1] * channels, 1};
    int64_t large[3] = {c->sides[0] * c->sides[1] * channels, c->sides[1] * channels, 1};
    int64_t offset = (w->before[0] * large[1] + w->before[1] * channels) * size;
    twi_cuda_move move = {.rank = 3, .size = {c->laid.batch, w->image[0], w->image[1] * channels}};
    memcpy(move.from, back ? large : small, sizeof small);
    memcpy(move.to, back ? small : large, sizeof small);
    if (back)
        return TWI_LAUNCH(r, twi_cuda_move_run(r->stream, (int)size, &move, (const char *)from + offset, to));
    tw_status status = TWI_LAUNCH(r, cudaMemsetAsync(to, 0, c->padded_bytes, r->stream));
    if (status != TW_OK)
        return status;
    return TWI_LAUNCH(r, twi_cuda_move_run(r->stream, (int)size, &move, from, (char *)to + offset));
}

/* Images, filter and output where the graph wants them; bias NULL: there is none. */
static tw_status execute(const twi_run *r, convolution *c, const void *image, const void *filter, const void *output,
                         const void *bias, void *workspace)
{
    void *const pointers[] = {(void *)image, (void *)filter, (void *)output, (void *)bias};
    return execute_plan(c, c->plan, pointers, bias, workspace, r->stream, r->error);
}

/* Image and filter as the graph wants them. */
static tw_status lay_inputs(const twi_run *r, const convolution *c, const rooms *room, void *pointers[2])
{
    tw_status status = TW_OK;
    pointers[0] = c->padded ? room->image : (void *)r->inputs[0];
    pointers[1] = c->transposed ? (void *)r->inputs[1] : room->filter;
    if (!c->transposed)
        TWI_TRY(turn_filter(r, c, false, r->inputs[1], room->filter));
    if (c->padded)
        TWI_TRY(pad_image(r, c, false, r->inputs[0], room->image));
done:
    return status;
}

static tw_status run_forward(const twi_run *r)
{
    convolution *c = r->state;
    tw_status status = TW_OK;
    void *pointers[4] = {NULL, NULL, r->outputs[0], r->num_inputs > 2 ? (void *)r->inputs[2] : NULL};
    if (!c->plan) {
        TWI_TRY(TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[0], 0, r->output_operands[0].bytes, r->stream)));
    } else {
        rooms room = rooms_of(r, c);
        TWI_TRY(lay_inputs(r, c, &room, pointers));
        TWI_TRY(execute_plan(c, c->plan, pointers, c->graph.bias, room.workspace, r->stream, r->error));
    }
    if (c->bias_apart && r->output_operands[0].elements)
        status = add_bias(c, r->stream, pointers[3], r->outputs[0], r->error);
done:
    return status;
}

/* image, filter, bias: y, maxima and argmax. */
static tw_status run_pooled(const twi_run *r)
{
    convolution *c = r->state;
    rooms room = rooms_of(r, c);
    void *pointers[4] = {NULL, NULL, room.convolved, (void *)r->inputs[2]};
    tw_status status = lay_inputs(r, c, &room, pointers);
    return status == TW_OK ? execute_pooled(c, c->plan, pointers,
                                            &(pooled){r->outputs[0], r->outputs[1], r->outputs[2]}, room.workspace,
                                            r->stream, r->error)
                           : status;
}

/* image, filter, scale, offset and perhaps a side: y, batch mean and variance, what the gradient wants of them, nothing
 * and what was normalized. */
static tw_status run_normalized(const twi_run *r)
{
    convolution *c = r->state;
    tw_status status = TW_OK;
    twi_cuda_batch_norm norm;
    rooms room = rooms_of(r, c);
    void *pointers[4] = {NULL, NULL, r->outputs[CONVOLVED], NULL};
    const twi_cuda_normed in = {.x = r->outputs[CONVOLVED], .scale = r->inputs[2], .offset = r->inputs[3],
                                .side = r->num_inputs > 4 ? r->inputs[4] : NULL};
    const twi_cuda_moments to = {r->outputs[3], r->outputs[4], r->outputs[1], r->outputs[2]};
    TWI_TRY(lay_inputs(r, c, &room, pointers));
    TWI_TRY(execute_with_moments(c, c->plan, pointers, room.moments, room.workspace, r->stream, &norm, r->error));
    status = TWI_LAUNCH(r, twi_cuda_batch_norm_run(r->stream, c->graph.type, &norm, &in, &to, r->outputs[0],
                                                   room.moments));
done:
    return status;
}

static tw_status run_backprop_input(const twi_run *r)
{
    convolution *c = r->state;
    tw_status status = TW_OK;
    if (!c->plan)
        return TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[0], 0, r->output_operands[0].bytes, r->stream));
    rooms room = rooms_of(r, c);
    void *image = c->padded ? room.image : r->outputs[0];
    const void *filter = c->transposed ? r->inputs[1] : room.filter;
    if (!c->transposed)
        TWI_TRY(turn_filter(r, c, false, r->inputs[1], room.filter));
    TWI_TRY(execute(r, c, image, filter, r->inputs[2], NULL, room.workspace));
    if (c->padded)
        TWI_TRY(pad_image(r, c, true, image, r->outputs[0]));
done:
    return status;
}

static tw_status run_backprop_filter(const twi_run *r)
{
    convolution *c = r->state;
    tw_status status = TW_OK;
    if (!c->plan)
        return TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[0], 0, r->output_operands[0].bytes, r->stream));
    rooms room = rooms_of(r, c);
    const void *image = r->inputs[0];
    if (c->padded) {
        TWI_TRY(pad_image(r, c, false, image, room.image));
        image = room.image;
    }
    TWI_TRY(execute(r, c, image, c->transposed ? r->outputs[0] : room.filter, r->inputs[2], NULL, room.workspace));
    if (!c->transposed)
        TWI_TRY(turn_filter(r, c, true, room.filter, r->outputs[0]));
done:
    return status;
}

/* image, sizes, gradient of y, maxima, argmax: those of filter and bias. */
static tw_status run_pooled_gradient(const twi_run *r)
{
    convolution *c = r->state;
    bool apart;
    rooms room = rooms_of(r, c);
    void *pointers[4] = {c->padded ? room.image : (void *)r->inputs[0], room.filter, room.convolved, r->outputs[1]};
    const pooled of = {(void *)r->inputs[2], (void *)r->inputs[3], (uint8_t *)r->inputs[4]};
    tw_status status = TW_OK;
    if (c->padded)
        TWI_TRY(pad_image(r, c, false, r->inputs[0], room.image));
    TWI_TRY(execute_pooled_gradient(c, c->plan, pointers, &of, r->outputs[0], room.moments, room.workspace, r->stream,
                                    &apart, r->error));
    if (apart)
        TWI_TRY(turn_filter(r, c, true, room.filter, r->outputs[0]));
done:
    return status;
}

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))

const twi_kernel twi_cuda_conv_kernels[] = {
    {"Conv2D", "cudnn", FLOATS, prepare_forward, run_forward, release, .accepts = accepts_forward},
    {"_FusedConv2D", "cudnn", FLOATS, prepare_forward, run_forward, release, .accepts = accepts_forward},
    {"_TransposedFilterConv2D", "cudnn", FLOATS, prepare_forward, run_forward, release, .accepts = accepts_forward},
    {"_Conv2DBatchNormRelu", "cudnn", FLOATS, prepare_forward, run_normalized, release, .accepts = accepts_joined},
    {"_TransposedFilterConv2DBatchNormRelu", "cudnn", FLOATS, prepare_forward, run_normalized, release,
     .accepts = accepts_joined},
    {"_Conv2DMaxPoolLRN", "cudnn", FLOATS, prepare_forward, run_pooled, release, .accepts = accepts_joined},
    {"_TransposedFilterConv2DMaxPoolLRN", "cudnn", FLOATS, prepare_forward, run_pooled, release,
     .accepts = accepts_joined},
    {"_Conv2DMaxPoolLRNGrad", "cudnn", FLOATS, prepare_backprop_filter, run_pooled_gradient, release,
     .accepts = accepts_pooled_gradient},
    {"_TransposedFilterConv2DBackpropInput", "cudnn", FLOATS, prepare_backprop_input, run_backprop_input, release,
     .accepts = accepts_backprop_input},
    {"_TransposedFilterConv2DBackpropFilter", "cudnn", FLOATS, prepare_backprop_filter, run_backprop_filter, release,
     .accepts = accepts_backprop_filter},
    {"Conv2DBackpropInput", "cudnn", FLOATS, prepare_backprop_input, run_backprop_input, release,
     .accepts = accepts_backprop_input},
    {"Conv2DBackpropFilter", "cudnn", FLOATS, prepare_backprop_filter, run_backprop_filter, release,
     .accepts = accepts_backprop_filter},
    {0},
};
#else
#include "device/cuda/cuda.h"

const twi_kernel twi_cuda_conv_kernels[] = {{0}};
#endif
