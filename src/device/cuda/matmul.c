/* matmul.c - MatMul on cuBLASLt, alone or with the bias and the ReLU that follow it, and of many matrices at once.
 *
 * Matrices here are row-major, cuBLASLt's are column-major by default; a row-major matrix read so is its transpose. So
 * the library is asked for the transpose of the product, b' a', where nothing has to move. Sums are in
 * float; unless the device is told otherwise products are not of TF32, and no algorithm is taken that adds up in an
 * order of its own (in-place reductions of split sums). */
#include "base/hash.h"
#include "base/memory.h"
#include "device/cuda/choice.h"
#include "device/cuda/libraries.h"

#include <stdio.h>
#include <string.h>

#define FLOATS (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16))
#define WORKSPACE_LIMIT ((size_t)32 << 20)
#define WORKSPACE_ALIGNMENT ((size_t)256)
enum { MOST_FOUND = 2 * TWI_CANDIDATES }; /* many have the same number */

typedef struct product {
    const twi_device *device;
    const twi_cublas *library;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, out;
    cublasLtMatmulHeuristicResult_t found[MOST_FOUND]; /* while one is chosen */
    int num_found;
    cublasLtMatmulAlgo_t algorithm;
    size_t bytes[4], workspace;  /* of the operands as they are tried: a, b, the product, the bias */
    bool biased, relu;
    bool empty_sum; /* k = 0: the product is zeros */
} product;

static void drop(product *m)
{
    if (m->operation)
        m->library->cublasLtMatmulDescDestroy(m->operation);
    if (m->a)
        m->library->cublasLtMatrixLayoutDestroy(m->a);
    if (m->b)
        m->library->cublasLtMatrixLayoutDestroy(m->b);
    if (m->out)
        m->library->cublasLtMatrixLayoutDestroy(m->out);
}

static void release(void *state)
{
    drop(state);
    twi_free(state);
}

static cudaDataType_t data_type(tw_dtype type)
{
    return type == TW_BFLOAT16 ? CUDA_R_16BF : type == TW_FLOAT16 ? CUDA_R_16F : CUDA_R_32F;
}

/* Matrices are the last two axes. */
static int64_t rows_of(const twi_operand *x)
{
    return x->shape.dims[x->shape.rank - 2];
}

static int64_t columns_of(const twi_operand *x)
{
    return x->shape.dims[x->shape.rank - 1];
}

static int64_t matrices_of(const twi_operand *x)
{
    int64_t count = 1;
    for (int i = 0; i < x->shape.rank - 2; i++)
        count *= x->shape.dims[i];
    return count;
}

static bool is_turned(const twi_prepare *p, const char *attribute, const char *of_many)
{
    return twi_attr_bool(p->attrs, attribute, false) || twi_attr_bool(p->attrs, of_many, false);
}

/* The transpose of a row-major matrix, as cuBLASLt sees it; one that is for all products does not move on. */
static tw_status lay(const twi_prepare *p, product *m, const twi_operand *matrix, cublasLtMatrixLayout_t *layout)
{
    tw_status status = TW_OK;
    int64_t rows = rows_of(matrix), columns = columns_of(matrix), count = matrices_of(&p->outputs[0]);
    int32_t products = (int32_t)count;
    int64_t step = matrices_of(matrix) > 1 ? rows * columns : 0;
    TWI_LIBRARY_CALL(p->device, p->error, m->library, cublasLtMatrixLayoutCreate, layout, data_type(matrix->dtype),
                     (uint64_t)columns, (uint64_t)rows, columns);
    if (count == 1)
        return TW_OK;
    TWI_LIBRARY_CALL(p->device, p->error, m->library, cublasLtMatrixLayoutSetAttribute, *layout,
                     CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &products, sizeof products);
    TWI_LIBRARY_CALL(p->device, p->error, m->library, cublasLtMatrixLayoutSetAttribute, *layout,
                     CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step);
done:
    return status;
}

static tw_status set_operation(const twi_prepare *p, product *m, cublasLtMatmulDescAttributes_t attribute,
                               bool transposed)
{
    tw_status status = TW_OK;
    cublasOperation_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    TWI_LIBRARY_CALL(p->device, p->error, m->library, cublasLtMatmulDescSetAttribute, m->operation, attribute,
                     &operation, sizeof operation);
done:
    return status;
}

/* What follows the product. The library wants an address while it chooses, which it does not look at; the bias's own
 * comes with each run. */
static tw_status set_epilogue(const twi_prepare *p, product *m)
{
    tw_status status = TW_OK;
    const void *somewhere = (const void *)WORKSPACE_ALIGNMENT;
    cublasLtEpilogue_t epilogue = m->biased && m->relu ? CUBLASLT_EPILOGUE_RELU_BIAS
                                  : m->biased          ? CUBLASLT_EPILOGUE_BIAS
                                                       : CUBLASLT_EPILOGUE_RELU;
    if (!m->biased && !m->relu)
        return TW_OK;
    TWI_LIBRARY_CALL(p->device, p->error, m->library, cublasLtMatmulDescSetAttribute, m->operation,
                     CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (m->biased)
        TWI_LIBRARY_CALL(p->device, p->error, m->library, cublasLtMatmulDescSetAttribute, m->operation,
                         CUBLASLT_MATMUL_DESC_BIAS_POINTER, &somewhere, sizeof somewhere);
done:
    return status;
}

static tw_status multiply(product *m, const void *a, const void *b, const void *bias, void *out, void *workspace,
                          cudaStream_t stream, tw_error *error)
{
    tw_status status = TW_OK;
    float one = 1, zero = 0;
    if (m->biased)
        TWI_LIBRARY_CALL(NULL, error, m->library, cublasLtMatmulDescSetAttribute, m->operation,
                         CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    TWI_LIBRARY_CALL(NULL, error, m->library, cublasLtMatmul, m->handle, m->operation, &one, b, m->b, a, m->a, &zero,
                     out, m->out, out, m->out, &m->algorithm, m->workspace ? workspace : NULL, m->workspace, stream);
done:
    return status;
}

/* ---- choosing an algorithm: see choice.h ------------------------------------------------------------------------- */

/* Operands may lie in the middle of an arena: their addresses are multiples of 64 (device/kernel.h), which is what
 * the library is promised. None lies in the middle of another: who reads parts of a list is a kernel of our own. */
static tw_status find_algorithms(const twi_prepare *p, product *m)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    tw_status status = TW_OK;
    cublasLtMatmulPreference_t preference = NULL;
    size_t limit = WORKSPACE_LIMIT;
    uint32_t reductions =
        twi_cuda_of(p)->fast ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    uint32_t alignment = 64;
    TWI_LIBRARY_CALL(p->device, p->error, m->library, cublasLtMatmulPreferenceCreate, &preference);
    TWI_LIBRARY_CALL(p->device, p->error, m->library, cublasLtMatmulPreferenceSetAttribute, preference,
                     CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof limit);
    TWI_LIBRARY_CALL(p->device, p->error, m->library, cublasLtMatmulPreferenceSetAttribute, preference,
                     CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions);
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++)
        TWI_LIBRARY_CALL(p->device, p->error, m->library, cublasLtMatmulPreferenceSetAttribute, preference,
                         alignments[i], &alignment, sizeof alignment);
    TWI_LIBRARY_CALL(p->device, p->error, m->library, cublasLtMatmulAlgoGetHeuristic, m->handle, m->operation, m->b,
                     m->a, m->out, m->out, preference, MOST_FOUND, m->found, &m->num_found);
done:
    if (preference)
        m->library->cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

/* The library's own few words on the algorithm are all that there is to it. */
static uint64_t settings_of(const cublasLtMatmulAlgo_t *algorithm)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof algorithm->data / sizeof *algorithm->data; i++)
        hash = twi_hash_mix(hash, algorithm->data[i]);
    return hash;
}

static tw_status next_algorithm(void *user, const twi_search *search, twi_candidate *found, tw_error *error)
{
    product *m = user;
    tw_status status = TW_OK;
    *found = (twi_candidate){0};
    for (int i = search->from; i < m->num_found && !found->plan; i++) {
        int32_t number = 0;
        size_t written;
        if (m->found[i].state != CUBLAS_STATUS_SUCCESS)
            continue;
        TWI_LIBRARY_CALL(m->device, error, m->library, cublasLtMatmulAlgoConfigGetAttribute, &m->found[i].algo,
                         CUBLASLT_ALGO_CONFIG_ID, &number, sizeof number, &written);
        uint64_t settings = settings_of(&m->found[i].algo);
        if (twi_is_wanted(search, i, number, settings))
            *found = (twi_candidate){i, number, settings, m->found[i].workspaceSize, &m->found[i]};
    }
done:
    return status;
}

static void drop_algorithm(void *user, const twi_candidate *candidate)
{
    (void)user;
    (void)candidate;
}

static tw_status try_algorithm(void *user, const twi_candidate *candidate, char *operands, void *workspace,
                               cudaStream_t stream, tw_error *error)
{
    product *m = user;
    char *b = operands + m->bytes[0], *out = b + m->bytes[1], *bias = out + m->bytes[2];
    m->algorithm = m->found[candidate->position].algo;
    m->workspace = candidate->workspace;
    return multiply(m, operands, b, bias, out, workspace, stream, error);
}

static size_t round_up(size_t bytes)
{
    return (bytes + WORKSPACE_ALIGNMENT - 1) / WORKSPACE_ALIGNMENT * WORKSPACE_ALIGNMENT;
}

static void write_key(const twi_prepare *p, char *key, size_t size)
{
    const twi_operand *a = &p->inputs[0], *b = &p->inputs[1];
    const twi_cuda_device *card = twi_cuda_of(p);
    char many[64] = "";
    if (matrices_of(&p->outputs[0]) > 1)
        snprintf(many, sizeof many, "%lld=%lldx%lld,", (long long)matrices_of(&p->outputs[0]),
                 (long long)matrices_of(a), (long long)matrices_of(b));
    snprintf(key, size, "matmul,%s%s,%lldx%lld%s,%lldx%lld%s%s%s%s%s", many, tw_dtype_name(a->dtype),
             (long long)rows_of(a), (long long)columns_of(a), is_turned(p, "transpose_a", "adj_x") ? "transposed" : "",
             (long long)rows_of(b), (long long)columns_of(b), is_turned(p, "transpose_b", "adj_y") ? "transposed" : "",
             p->num_inputs > 2 ? ",bias" : "", twi_attr_bool(p->attrs, "relu", false) ? ",relu" : "",
             card->tf32 && a->dtype == TW_FLOAT32 ? ",tf32" : "", card->fast ? ",fast" : "");
}

static tw_status choose_algorithm(twi_prepare *p, product *m)
{
    tw_status status;
    twi_candidate winner;
    twi_contest contest = {.maker = "cublaslt", .version = m->library->cublasLtGetVersion(), .node = p->node,
                           .comm = p->comm, .user = m, .next = next_algorithm, .run = try_algorithm,
                           .drop = drop_algorithm};
    const size_t bytes[] = {p->inputs[0].bytes, p->inputs[1].bytes, p->outputs[0].bytes,
                            m->biased ? p->inputs[2].bytes : 0};
    for (int i = 0; i < 4; i++)
        contest.bytes += m->bytes[i] = round_up(bytes[i]);
    write_key(p, contest.key, sizeof contest.key);
    TWI_TRY(twi_choose((twi_cuda_device *)p->device, &contest, &winner, p->error));
    m->algorithm = m->found[winner.position].algo;
    m->workspace = winner.workspace;
    p->workspace = m->workspace ? m->workspace + WORKSPACE_ALIGNMENT : 0;
done:
    return status;
}

/* ---- preparing and running --------------------------------------------------------------------------------------- */

/* The product as the library sees it, and its algorithms; nothing of both where there is nothing to multiply. */
static tw_status describe(const twi_prepare *p, product *m)
{
    tw_status status;
    const twi_operand *a = &p->inputs[0], *b = &p->inputs[1], *out = &p->outputs[0];
    m->device = p->device;
    m->biased = p->num_inputs > 2;
    m->relu = twi_attr_bool(p->attrs, "relu", false);
    m->empty_sum = a->elements == 0 || b->elements == 0;
    TWI_TRY(twi_cublas_open(p->device, &m->library, &m->handle, p->error));
    if (!out->elements || m->empty_sum)
        return TW_OK;
    TWI_LIBRARY_CALL(p->device, p->error, m->library, cublasLtMatmulDescCreate, &m->operation,
                     twi_cuda_of(p)->tf32 && a->dtype == TW_FLOAT32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                     CUDA_R_32F);
    TWI_TRY(set_operation(p, m, CUBLASLT_MATMUL_DESC_TRANSA, is_turned(p, "transpose_b", "adj_y")));
    TWI_TRY(set_operation(p, m, CUBLASLT_MATMUL_DESC_TRANSB, is_turned(p, "transpose_a", "adj_x")));
    TWI_TRY(set_epilogue(p, m));
    TWI_TRY(lay(p, m, a, &m->a));
    TWI_TRY(lay(p, m, b, &m->b));
    TWI_TRY(lay(p, m, out, &m->out));
    TWI_TRY(find_algorithms(p, m));
done:
    return status;
}

/* The library is asked once for each product; what it said is kept. */
static tw_status accepts(const twi_prepare *p)
{
    product m = {0};
    char key[TWI_CHOICE_KEY];
    twi_candidate first = {0};
    bool empty = p->inputs[0].elements == 0 || p->inputs[1].elements == 0;
    if (empty && p->num_inputs > 2 && p->outputs[0].elements)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s of nothing, with a bias", p->op);
    if (empty || !p->outputs[0].elements)
        return TW_OK;
    write_key(p, key, sizeof key);
    twi_answer known = twi_answer_find(p->device, key);
    if (known == TWI_NOT_ASKED) {
        tw_status status = describe(p, &m);
        if (status == TW_OK)
            status = next_algorithm(&m, &(twi_search){0}, &first, p->error);
        drop(&m);
        if (status != TW_OK)
            return status;
        twi_answer_keep(p->device, key, known = first.plan ? TWI_TAKEN : TWI_REFUSED);
    }
    if (known == TWI_REFUSED)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "cublaslt has no algorithm for this that may be taken");
    return TW_OK;
}

/* The library goes through many matrices by one step, so operands have one for each product, or one for all. */
static tw_status accepts_many(const twi_prepare *p)
{
    int64_t count = matrices_of(&p->outputs[0]);
    for (int i = 0; i < 2; i++)
        if (p->inputs[i].dtype != p->outputs[0].dtype || !(FLOATS & TWI_TYPE(p->inputs[i].dtype)))
            return twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU multiplies floats of one type", p->op);
        else if (matrices_of(&p->inputs[i]) != count && matrices_of(&p->inputs[i]) != 1)
            return twi_fail(p->error, TW_UNIMPLEMENTED, "%s on a GPU takes %lld matrices or 1, got %lld", p->op,
                            (long long)count, (long long)matrices_of(&p->inputs[i]));
    if (count > INT32_MAX)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s of more than 2^31 matrices", p->op);
    return accepts(p);
}

static tw_status prepare(twi_prepare *p)
{
    product *m = p->state = twi_alloc(sizeof *m);
    if (!m)
        return twi_fail_memory(p->error, p->node);
    tw_status status = describe(p, m);
    return status == TW_OK && m->operation ? choose_algorithm(p, m) : status;
}

static tw_status run(const twi_run *r)
{
    product *m = r->state;
    if (r->output_operands[0].elements == 0)
        return TW_OK;
    if (m->empty_sum)
        return TWI_LAUNCH(r, cudaMemsetAsync(r->outputs[0], 0, r->output_operands[0].bytes, r->stream));
    return multiply(m, r->inputs[0], r->inputs[1], m->biased ? r->inputs[2] : NULL, r->outputs[0],
                    (void *)round_up((size_t)r->workspace), r->stream, r->error);
}

/* Its first answer takes a tenth of a second, all others a fraction of a millisecond. */
void twi_cuda_matmul_begin(twi_cuda_device *c)
{
    tw_error error = {0};
    twi_attrs none = {0};
    const twi_operand square = {.dtype = TW_FLOAT32, .shape = {2, {16, 16}}, .elements = 256, .bytes = 1024};
    const twi_operand inputs[] = {square, square};
    twi_prepare p = {.op = "MatMul", .node = "", .attrs = &none, .num_inputs = 2, .num_outputs = 1, .inputs = inputs,
                     .outputs = &square, .device = &c->base, .error = &error};
    product *m = twi_alloc(sizeof *m);
    if (!m)
        return;
    describe(&p, m);
    release(m);
}

const twi_kernel twi_cuda_matmul_kernels[] = {
    {"MatMul", "cublaslt", FLOATS, prepare, run, release, .accepts = accepts, .shares = true},
    {"_FusedMatMul", "cublaslt", FLOATS, prepare, run, release, .accepts = accepts, .shares = true},
    {"BatchMatMul", "cublaslt", FLOATS, prepare, run, release, .accepts = accepts_many, .shares = true},
    {"BatchMatMulV2", "cublaslt", FLOATS, prepare, run, release, .accepts = accepts_many, .shares = true},
    {"BatchMatMulV3", "cublaslt", 0, prepare, run, release, .accepts = accepts_many, .shares = true},
    {0},
};
