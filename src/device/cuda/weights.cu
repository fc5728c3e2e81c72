/* weights.cu - variables as a step computes with them: of a narrower type, filters with their last axis first. */
#include "device/cuda/many.cuh"

static const int TILE = 32; /* TILE x TILE elements are transposed by a block */

/* A chunk of an array, as it lies. */
template <typename T> static __device__ void cast_chunk(int64_t elements, int part, const float *from, T *to)
{
    float x[TOGETHER];
    int64_t at = part * (int64_t)CHUNK + (int)threadIdx.x * TOGETHER;
    int count = (int)min(elements - at, (int64_t)TOGETHER);
    if (count <= 0)
        return;
    load(from + at, count, x);
    store(to + at, count, x);
}

/* A tile of [rows, columns] to its place in [columns, rows]: rows of both are read and written as they lie. */
template <typename T>
static __device__ void transpose_tile(int64_t rows, int columns, int part, const float *from, T *to)
{
    __shared__ float tile[TILE][TILE + 1];
    int across = (columns + TILE - 1) / TILE, column = part % across * TILE;
    int64_t row = part / across * (int64_t)TILE;
    int x = (int)threadIdx.x % TILE, y = (int)threadIdx.x / TILE;
    for (int i = y; i < TILE; i += THREADS / TILE)
        if (row + i < rows && column + x < columns)
            tile[i][x] = from[(row + i) * columns + column + x];
    __syncthreads();
    for (int i = y; i < TILE; i += THREADS / TILE)
        if (column + i < columns && row + x < rows)
            put(to + (column + i) * rows + row + x, tile[x][i]);
}

template <typename T> static __global__ void cast_kernel(twi_cuda_casts c)
{
    int v = array_of_block(c.count, c.first_block), part = (int)blockIdx.x - c.first_block[v];
    if (c.columns[v])
        transpose_tile(c.elements[v] / c.columns[v], c.columns[v], part, c.from[v], (T *)c.to[v]);
    else
        cast_chunk(c.elements[v], part, c.from[v], (T *)c.to[v]);
}

static unsigned blocks_of(int64_t elements, int columns)
{
    if (!columns)
        return chunks_of(elements);
    return (unsigned)((elements / columns + TILE - 1) / TILE) * (unsigned)((columns + TILE - 1) / TILE);
}

cudaError_t twi_cuda_cast_many(cudaStream_t stream, tw_dtype type, twi_cuda_casts *c)
{
    unsigned blocks = 0;
    for (int v = 0; v < c->count; v++) {
        c->first_block[v] = (int)blocks;
        blocks += blocks_of(c->elements[v], c->columns[v]);
    }
    if (blocks == 0)
        return cudaSuccess;
    FLOAT_TYPES(type, LAUNCH(blocks, THREADS, 0, stream, cast_kernel<T>)(*c))
    return cudaGetLastError();
}
