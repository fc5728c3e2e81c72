/* cudnn.cc - cuDNN's operation graphs, computed by plain loops, an operation after another. Descriptors keep what they
 * are told; an engine is a number, of which some have notes that our rules must heed. */
#include "inside.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cudnn.h>
#include <map>
#include <string>
#include <vector>

/* Every descriptor: attributes as they were set. */
struct descriptor {
    cudnnBackendDescriptorType_t type;
    std::map<cudnnBackendAttributeName_t, std::vector<char>> said;
    bool finalized = false;
    int64_t number = 0; /* of an engine */

    template <typename T> std::vector<T> all(cudnnBackendAttributeName_t name) const
    {
        auto found = said.find(name);
        std::vector<T> out;
        if (found != said.end()) {
            out.resize(found->second.size() / sizeof(T));
            memcpy(out.data(), found->second.data(), found->second.size());
        }
        return out;
    }
    template <typename T> T one(cudnnBackendAttributeName_t name, T otherwise = T()) const
    {
        auto values = all<T>(name);
        return values.empty() ? otherwise : values[0];
    }
    const descriptor *part(cudnnBackendAttributeName_t name) const
    {
        return one<const descriptor *>(name);
    }
};

/* What an execution knows: where the tensors of the graph lie. */
typedef std::map<int64_t, void *> places;

struct tensor {
    cudnnDataType_t type;
    std::vector<int64_t> size, step;
    void *data;

    int64_t place(int64_t n, int64_t c, int64_t h, int64_t w) const
    {
        return n % size[0] * step[0] + c % size[1] * step[1] + h % size[2] * step[2] + w % size[3] * step[3];
    }
    float get(int64_t i) const
    {
        return type == CUDNN_DATA_BFLOAT16 ? __bfloat162float(((__nv_bfloat16 *)data)[i])
               : type == CUDNN_DATA_HALF   ? __half2float(((__half *)data)[i])
                                           : ((float *)data)[i];
    }
    void set(int64_t i, float x) const
    {
        if (type == CUDNN_DATA_BFLOAT16)
            ((__nv_bfloat16 *)data)[i] = __float2bfloat16_rn(x);
        else if (type == CUDNN_DATA_HALF)
            ((__half *)data)[i] = __float2half_rn(x);
        else
            ((float *)data)[i] = x;
    }
};

static tensor tensor_of(const descriptor *d, places &where)
{
    tensor t{d->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE), d->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
             d->all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES), nullptr};
    t.data = where[d->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)];
    return t;
}

static int64_t elements(const descriptor *d)
{
    int64_t n = 1;
    for (int64_t size : d->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS))
        n *= size;
    return n;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

enum direction { FORWARD, DATA, FILTER };

/* A tensor's values with its dimensions in that order, without gaps; transfer() moves them to or from there. */
struct dense {
    tensor &of;
    int order[4];
    std::vector<float> values;

    dense(tensor &of, int a, int b, int c, int d) : of(of), order{a, b, c, d}
    {
        values.resize((size_t)(of.size[0] * of.size[1] * of.size[2] * of.size[3]));
    }

    template <typename Each> void transfer(Each each)
    {
        int64_t at[4];
        float *value = values.data();
        for (at[order[0]] = 0; at[order[0]] < of.size[(size_t)order[0]]; at[order[0]]++)
            for (at[order[1]] = 0; at[order[1]] < of.size[(size_t)order[1]]; at[order[1]]++)
                for (at[order[2]] = 0; at[order[2]] < of.size[(size_t)order[2]]; at[order[2]]++)
                    for (at[order[3]] = 0; at[order[3]] < of.size[(size_t)order[3]]; at[order[3]]++)
                        each(of.place(at[0], at[1], at[2], at[3]), *value++);
    }

    void load()
    {
        transfer([this](int64_t place, float &value) { value = of.get(place); });
    }

    void store()
    {
        transfer([this](int64_t place, float &value) { of.set(place, value); });
    }
};

/* Computes in rooms of its own, which sanitizers need not look at number by number; those of the card are read and
 * written by load() and store(). */
__attribute__((no_sanitize_address, no_sanitize_thread))
static void convolve(const descriptor *op, places &where, direction way, cudnnBackendAttributeName_t window,
                     cudnnBackendAttributeName_t image, cudnnBackendAttributeName_t filter,
                     cudnnBackendAttributeName_t output)
{
    const descriptor *c = op->part(window);
    tensor x = tensor_of(op->part(image), where), w = tensor_of(op->part(filter), where),
           y = tensor_of(op->part(output), where);
    auto before = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    auto stride = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    auto dilation = c->all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    /* Rows of filters' numbers are next to each other in the innermost loop. */
    dense images(x, 0, 2, 3, 1), filters(w, 2, 3, 1, 0), outputs(y, 0, 2, 3, 1);
    dense *const all[] = {&images, &filters, &outputs}, *to = way == FORWARD ? &outputs : way == DATA ? &images : &filters;
    for (dense *d : all)
        if (d != to)
            d->load();
    int64_t channels = x.size[1], kernels = y.size[1];
    for (int64_t n = 0; n < y.size[0]; n++)
        for (int64_t i = 0; i < y.size[2]; i++)
            for (int64_t j = 0; j < y.size[3]; j++)
                for (int64_t r = 0; r < w.size[2]; r++)
                    for (int64_t s = 0; s < w.size[3]; s++) {
                        int64_t h = i * stride[0] - before[0] + r * dilation[0];
                        int64_t v = j * stride[1] - before[1] + s * dilation[1];
                        if (h < 0 || h >= x.size[2] || v < 0 || v >= x.size[3])
                            continue;
                        float *X = images.values.data() + ((n * x.size[2] + h) * x.size[3] + v) * channels;
                        float *Y = outputs.values.data() + ((n * y.size[2] + i) * y.size[3] + j) * kernels;
                        float *W = filters.values.data() + (r * w.size[3] + s) * channels * kernels;
                        for (int64_t ch = 0; ch < channels; ch++, W += kernels)
                            if (way == FORWARD)
                                for (int64_t k = 0; k < kernels; k++)
                                    Y[k] += X[ch] * W[k];
                            else if (way == DATA)
                                for (int64_t k = 0; k < kernels; k++)
                                    X[ch] += Y[k] * W[k];
                            else
                                for (int64_t k = 0; k < kernels; k++)
                                    W[k] += X[ch] * Y[k];
                    }
    to->store();
}

static void pointwise(const descriptor *op, places &where)
{
    cudnnPointwiseMode_t mode =
        op->part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)->one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    bool keeps_nans = op->part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
                          ->one(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_NOT_PROPAGATE_NAN) == CUDNN_PROPAGATE_NAN;
    const descriptor *second = op->part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    tensor x = tensor_of(op->part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC), where);
    tensor y = tensor_of(op->part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC), where);
    tensor b = second ? tensor_of(second, where) : x;
    for (int64_t n = 0; n < y.size[0]; n++)
        for (int64_t c = 0; c < y.size[1]; c++)
            for (int64_t h = 0; h < y.size[2]; h++)
                for (int64_t w = 0; w < y.size[3]; w++) {
                    float value = x.get(x.place(n, c, h, w));
                    if (mode == CUDNN_POINTWISE_ADD)
                        value += b.get(b.place(n, c, h, w));
                    else if (mode == CUDNN_POINTWISE_RELU_FWD)
                        value = value >= 0 || (std::isnan(value) && keeps_nans) ? value : 0;
                    y.set(y.place(n, c, h, w), value);
                }
}

static void run(const descriptor *op, places &where)
{
    switch (op->type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        convolve(op, where, FORWARD, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
        break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        convolve(op, where, DATA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
        break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        convolve(op, where, FILTER, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
        break;
    default:
        pointwise(op, where);
    }
}

/* The tensors between operations have no memory of anybody's: they get some while the graph runs. */
static void run_graph(const descriptor *graph, places where)
{
    std::vector<std::vector<float>> between;
    for (const descriptor *op : graph->all<const descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS))
        for (auto &[name, bytes] : op->said) {
            const descriptor *part = bytes.size() == sizeof part ? *(const descriptor **)bytes.data() : nullptr;
            if (name == CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y || name == CUDNN_ATTR_OPERATION_POINTWISE_YDESC) {
                int64_t id = part->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
                if (part->one<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL)) {
                    between.emplace_back((size_t)elements(part));
                    where[id] = between.back().data();
                }
            }
        }
    for (const descriptor *op : graph->all<const descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS))
        run(op, where);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

struct handle {
    cudaStream_t stream;
    void *context; /* in which it was made */
};

/* What a driver would have to compile is not there: operations that follow each other, on numbers of 16 bits. */
static bool has_engine(const descriptor *graph)
{
    auto operations = graph->all<const descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    if (operations.size() < 2)
        return true;
    auto type = operations[0]->part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X)
                    ->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    return type != CUDNN_DATA_HALF;
}

/* Engine 0 adds in any order, 1 uses TF32, 2 wants more memory than anybody has, 3 and 4 are fine. */
enum { ENGINES = 5, WORKSPACE = 512 };

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t *made)
{
    CALL(CUDNN_STATUS_NOT_INITIALIZED)
    *made = (cudnnHandle_t) new handle{nullptr, card::context};
    card::born("cuDNN handles", 1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t made)
{
    delete (handle *)made;
    card::born("cuDNN handles", -1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t made, cudaStream_t stream)
{
    CALL(CUDNN_STATUS_BAD_PARAM)
    if (getenv("CARD_STRICT") && ((handle *)made)->context != card::context_of(stream))
        return CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED; /* CUDNN_STATUS_MAPPING_ERROR's name by now */
    ((handle *)made)->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t)
{
    return "made-up error";
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *made)
{
    CALL(CUDNN_STATUS_ALLOC_FAILED)
    *made = (cudnnBackendDescriptor_t) new descriptor{type, {}};
    card::born("descriptors of cuDNN", 1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t made)
{
    delete (descriptor *)made;
    card::born("descriptors of cuDNN", -1);
    return CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type)
{
    return type == CUDNN_TYPE_BOOLEAN || type == CUDNN_TYPE_CHAR ? 1
           : type == CUDNN_TYPE_INT64 || type == CUDNN_TYPE_BACKEND_DESCRIPTOR || type == CUDNN_TYPE_HANDLE ||
                   type == CUDNN_TYPE_VOID_PTR || type == CUDNN_TYPE_DOUBLE
               ? 8
               : 4;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t made, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
    CALL(CUDNN_STATUS_BAD_PARAM)
    descriptor *d = (descriptor *)made;
    if (d->finalized)
        return CUDNN_STATUS_BAD_PARAM;
    const char *bytes = (const char *)values;
    d->said[name].assign(bytes, bytes + (size_t)count * size_of(type));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t made)
{
    CALL(CUDNN_STATUS_BAD_PARAM)
    descriptor *d = (descriptor *)made;
    d->finalized = true;
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) { /* outlives its configuration */
        const descriptor *configuration = d->part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        d->said[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = configuration->all<char>(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
        d->number = configuration->number;
        if (!has_engine(d->part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH)))
            return CUDNN_STATUS_NOT_SUPPORTED;
    }
    return CUDNN_STATUS_SUCCESS;
}

static void answer(const descriptor *d, cudnnBackendAttributeName_t name, int64_t most, int64_t *count, void *values)
{
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
        for (*count = 0; *count < ENGINES && *count < most; ++*count) {
            descriptor *found = ((descriptor **)values)[*count];
            found->number = *count;
            found->finalized = true;
            auto graph = d->all<char>(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
            found->said[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = graph;
        }
    } else if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
        ((descriptor **)values)[0]->number = d->number;
        *count = 1;
    } else if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX) {
        *(int64_t *)values = d->number;
        *count = 1;
    } else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
        auto *notes = (cudnnBackendNumericalNote_t *)values;
        *count = d->number < 2;
        notes[0] = d->number == 0 ? CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC : CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
        if (d->number == 1 && getenv("CARD_NARROWS"))
            notes[(*count)++] = CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    } else if (name == CUDNN_ATTR_ENGINECFG_KNOB_CHOICES) {
        ((descriptor **)values)[0]->number = d->number;
        *count = 1;
    } else if (name == CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE) {
        *(cudnnBackendKnobType_t *)values = CUDNN_KNOB_TYPE_TILE_SIZE;
        *count = 1;
    } else if (name == CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE) {
        *(int64_t *)values = d->number + (getenv("CARD_TUNED") ? 100 : 0);
        *count = 1;
    } else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        const descriptor *configuration = d->part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        *(int64_t *)values = configuration->number == 2 ? INT64_C(1) << 50 : (int64_t)WORKSPACE;
        *count = 1;
    } else
        *count = 0;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t made, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t most, int64_t *count, void *values)
{
    CALL(CUDNN_STATUS_BAD_PARAM)
    answer((const descriptor *)made, name, most, count, values);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t on, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t made)
{
    CALL(CUDNN_STATUS_EXECUTION_FAILED)
    const descriptor *pack = (const descriptor *)made;
    const descriptor *graph = ((const descriptor *)plan)->part(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    std::string engine = "engine " + std::to_string(((const descriptor *)plan)->number);
    card::seen(engine.c_str());
    auto ids = pack->all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    auto pointers = pack->all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    void *workspace = pack->one<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    places where;
    for (size_t i = 0; i < ids.size(); i++) {
        if (!card::on_card(pointers[i], 1))
            return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
        where[ids[i]] = pointers[i];
    }
    if (!card::on_card(workspace, WORKSPACE))
        return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    card::spend(((handle *)on)->stream, engine);
    card::enqueue(((handle *)on)->stream, [=] {
        memset(workspace, 0x5a, WORKSPACE);
        if (!card::idle())
            run_graph(graph, where);
    });
    return CUDNN_STATUS_SUCCESS;
}
}
