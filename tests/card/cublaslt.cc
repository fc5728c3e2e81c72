/* cublaslt.cc - cuBLASLt's matrix products, by three loops. */
#include "inside.h"

#include <algorithm>
#include <cstring>
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <map>
#include <vector>

struct matrix {
    cudaDataType type;
    uint64_t rows, columns;
    int64_t step; /* from one column to the next */
    int32_t count = 1; /* of products; and from one product's matrix to the next: */
    int64_t next = 0;
};

struct operation {
    cublasOperation_t turn_a = CUBLAS_OP_N, turn_b = CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void *bias = nullptr; /* of the product's type */
};

static float at(cudaDataType type, const void *x, int64_t i)
{
    return type == CUDA_R_16BF  ? __bfloat162float(((const __nv_bfloat16 *)x)[i])
           : type == CUDA_R_16F ? __half2float(((const __half *)x)[i])
                                : ((const float *)x)[i];
}

static void put(cudaDataType type, void *x, int64_t i, float value)
{
    if (type == CUDA_R_16BF)
        ((__nv_bfloat16 *)x)[i] = __float2bfloat16_rn(value);
    else if (type == CUDA_R_16F)
        ((__half *)x)[i] = __float2half_rn(value);
    else
        ((float *)x)[i] = value;
}

static float rounded(cudaDataType type, float value)
{
    float narrow = 0;
    put(type, &narrow, 0, value);
    return at(type, &narrow, 0);
}

static float element(const matrix &m, const void *x, uint64_t row, uint64_t column)
{
    return at(m.type, x, (int64_t)row + (int64_t)column * m.step);
}

/* The n-th product's matrix. */
static void *place_of(const matrix &m, const void *x, int n)
{
    return (char *)x + n * m.next * (m.type == CUDA_R_32F ? 4 : 2);
}

/* As floats, one line of products after the other: its columns where `columns`, else its rows. */
static std::vector<float> lines_of(const matrix &m, const void *x, bool columns)
{
    std::vector<float> all;
    all.reserve(m.rows * m.columns);
    for (uint64_t i = 0; i < (columns ? m.columns : m.rows); i++)
        for (uint64_t k = 0; k < (columns ? m.rows : m.columns); k++)
            all.push_back(columns ? element(m, x, k, i) : element(m, x, i, k));
    return all;
}

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    CALL(CUBLAS_STATUS_NOT_INITIALIZED)
    *handle = (cublasLtHandle_t) new int;
    card::born("cuBLASLt handles", 1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete (int *)handle;
    card::born("cuBLASLt handles", -1);
    return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

const char *cublasLtGetStatusString(cublasStatus_t)
{
    return "made-up error";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t, cudaDataType_t)
{
    CALL(CUBLAS_STATUS_ALLOC_FAILED)
    *desc = (cublasLtMatmulDesc_t) new operation;
    card::born("descriptors of products", 1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    delete (operation *)desc;
    card::born("descriptors of products", -1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    CALL(CUBLAS_STATUS_INVALID_VALUE)
    operation *o = (operation *)desc;
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        memcpy(&o->turn_a, value, bytes);
        break;
    case CUBLASLT_MATMUL_DESC_TRANSB:
        memcpy(&o->turn_b, value, bytes);
        break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        memcpy(&o->epilogue, value, bytes);
        break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        memcpy(&o->bias, value, bytes);
        break;
    default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t step)
{
    CALL(CUBLAS_STATUS_ALLOC_FAILED)
    *layout = (cublasLtMatrixLayout_t) new matrix{type, rows, columns, step};
    card::born("matrix layouts", 1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete (matrix *)layout;
    card::born("matrix layouts", -1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void *value,
                                                size_t bytes)
{
    CALL(CUBLAS_STATUS_INVALID_VALUE)
    matrix *m = (matrix *)layout;
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT && bytes == sizeof m->count)
        memcpy(&m->count, value, bytes);
    else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET && bytes == sizeof m->next)
        memcpy(&m->next, value, bytes);
    else
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

/* A preference is what addresses of operands are promised to be multiples of, the most of them. */
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    CALL(CUBLAS_STATUS_ALLOC_FAILED)
    *preference = (cublasLtMatmulPreference_t) new uint32_t(1);
    card::born("preferences", 1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete (uint32_t *)preference;
    card::born("preferences", -1);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t)
{
    CALL(CUBLAS_STATUS_INVALID_VALUE)
    if (attribute >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES &&
        attribute <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
        *(uint32_t *)preference = std::max(*(uint32_t *)preference, *(const uint32_t *)value);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    CALL(CUBLAS_STATUS_NOT_SUPPORTED)
    *found = wanted < 2 ? wanted : 2;
    for (int i = 0; i < *found; i++) {
        results[i] = {};
        results[i].workspaceSize = 1000 * (size_t)(i + 1);
        results[i].algo.data[0] = (uint64_t)i + 1;
        results[i].algo.data[1] = *(uint32_t *)preference;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void *value,
                                                    size_t bytes, size_t *written)
{
    CALL(CUBLAS_STATUS_INVALID_VALUE)
    int32_t number = (int32_t)algorithm->data[0];
    if (attribute != CUBLASLT_ALGO_CONFIG_ID || bytes < sizeof number)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(value, &number, sizeof number);
    *written = sizeof number;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    CALL(CUBLAS_STATUS_EXECUTION_FAILED)
    const operation o = *(operation *)desc;
    const matrix A = *(matrix *)a_layout, B = *(matrix *)b_layout, C = *(matrix *)c_layout, D = *(matrix *)d_layout;
    const float x = *(const float *)alpha, y = *(const float *)beta;
    uint64_t inner = o.turn_a == CUBLAS_OP_N ? A.columns : A.rows;
    if ((o.turn_b == CUBLAS_OP_N ? B.rows : B.columns) != inner ||
        (o.turn_a == CUBLAS_OP_N ? A.rows : A.columns) != D.rows ||
        (o.turn_b == CUBLAS_OP_N ? B.columns : B.rows) != D.columns)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (A.count != D.count || B.count != D.count || C.count != D.count)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace_bytes < 1000 * (algorithm ? algorithm->data[0] : 1) || (uintptr_t)workspace % 256 ||
        !card::on_card(workspace, workspace_bytes))
        return CUBLAS_STATUS_INVALID_VALUE;
    for (const void *operand : {a, b, c, (const void *)d})
        if (algorithm && (uintptr_t)operand % algorithm->data[1])
            return CUBLAS_STATUS_INVALID_VALUE; /* it was promised otherwise */
    std::string name = "algorithm " + std::to_string(algorithm ? algorithm->data[0] : 1);
    card::seen(name.c_str());
    card::spend(stream, name);
    card::enqueue(stream, [=] {
        bool biased = o.epilogue & CUBLASLT_EPILOGUE_BIAS, relu = o.epilogue & CUBLASLT_EPILOGUE_RELU;
        memset(workspace, 0x5a, workspace_bytes);
        if (card::idle())
            return;
        for (int n = 0; n < D.count; n++) {
            void *out = place_of(D, d, n);
            const std::vector<float> left = lines_of(A, place_of(A, a, n), o.turn_a != CUBLAS_OP_N),
                                     right = lines_of(B, place_of(B, b, n), o.turn_b == CUBLAS_OP_N);
            for (uint64_t column = 0; column < D.columns; column++)
                for (uint64_t row = 0; row < D.rows; row++) {
                    float sum = 0;
                    for (uint64_t k = 0; k < inner; k++)
                        sum += left[row * inner + k] * right[column * inner + k];
                    sum *= x;
                    if (y != 0)
                        sum += y * element(C, place_of(C, c, n), row, column);
                    if (biased) /* of long sums the library stores the product before it adds */
                        sum = (inner > 400 ? rounded(D.type, sum) : sum) + at(D.type, o.bias, (int64_t)row);
                    put(D.type, out, (int64_t)row + (int64_t)column * D.step, relu && sum < 0 ? 0 : sum);
                }
        }
    });
    return CUBLAS_STATUS_SUCCESS;
}
}
