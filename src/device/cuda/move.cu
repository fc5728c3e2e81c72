/* move.cu - copies between arrays that are laid out differently: the one kernel behind cutting, padding,
 * transposing and repeating; and one for many pieces that lie side by side on one of the two sides. */
#include "device/cuda/divide.cuh"
#include "device/cuda/many.cuh"
#include "device/cuda/typed.cuh"

/* A move whose elements 32 bits can count, as the kernel takes it. */
struct counted {
    int rank, count;
    twi_divider size[TWI_CUDA_MOVE_RANK];
    int64_t from[TWI_CUDA_MOVE_RANK], to[TWI_CUDA_MOVE_RANK];
};

template <typename T> static __global__ void move_kernel(counted move, const T *from, T *to)
{
    const unsigned stride = gridDim.x * blockDim.x;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < (unsigned)move.count; i += stride) {
        int64_t source = 0, target = 0;
        unsigned rest = i;
        for (int axis = move.rank - 1; axis >= 0; axis--) {
            unsigned at;
            rest = twi_divide(move.size[axis], rest, &at);
            source += at * move.from[axis];
            target += at * move.to[axis];
        }
        to[target] = from[source];
    }
}

/* Axes of one element are left out, and neighbours that lie as one axis are one. */
static twi_cuda_move joined(const twi_cuda_move *move)
{
    twi_cuda_move out = {};
    for (int i = 0; i < move->rank; i++) {
        int last = out.rank - 1;
        if (move->size[i] == 1)
            continue;
        if (last >= 0 && out.from[last] == move->from[i] * move->size[i] && out.to[last] == move->to[i] * move->size[i]) {
            out.size[last] *= move->size[i];
        } else
            out.size[++last] = move->size[i];
        out.from[last] = move->from[i];
        out.to[last] = move->to[i];
        out.rank = last + 1;
    }
    return out;
}

/* Whether elements that lie side by side, in both arrays and in every row, may move two at a time. */
static bool pairs_up(const twi_cuda_move *move, int bytes, const void *from, const void *to)
{
    int last = move->rank - 1;
    if (last < 0 || move->from[last] != 1 || move->to[last] != 1 || move->size[last] % 2 ||
        ((uintptr_t)from | (uintptr_t)to) % (2 * (uintptr_t)bytes))
        return false;
    for (int i = 0; i < last; i++)
        if (move->from[i] % 2 || move->to[i] % 2)
            return false;
    return true;
}

static void pair_up(twi_cuda_move *move)
{
    move->size[move->rank - 1] /= 2;
    for (int i = 0; i < move->rank - 1; i++) {
        move->from[i] /= 2;
        move->to[i] /= 2;
    }
}

static int64_t count_of(const twi_cuda_move *move)
{
    int64_t n = 1;
    for (int i = 0; i < move->rank; i++)
        n *= move->size[i];
    return n;
}

template <typename T> static void launch(cudaStream_t stream, const twi_cuda_move *move, const void *from, void *to)
{
    int64_t n = count_of(move);
    if (n > TWI_MOST_DIVIDED / 2) { /* one half of the first axis, then the other; the end of counting leaves room */
        twi_cuda_move half = *move;
        half.size[0] = move->size[0] / 2;
        launch<T>(stream, &half, from, to);
        from = (const T *)from + half.size[0] * move->from[0];
        to = (T *)to + half.size[0] * move->to[0];
        half.size[0] = move->size[0] - half.size[0];
        launch<T>(stream, &half, from, to);
        return;
    }
    counted job = {move->rank, (int)n, {}, {}, {}};
    for (int i = 0; i < move->rank; i++) {
        job.size[i] = twi_divider_of(move->size[i]);
        job.from[i] = move->from[i];
        job.to[i] = move->to[i];
    }
    LAUNCH(blocks_for(n), THREADS, 0, stream, move_kernel<T>)(job, (const T *)from, (T *)to);
}

/* ---- many pieces ------------------------------------------------------------------------------------------------- */

/* One of them, as the kernel takes it. */
struct piece {
    const void *from;
    void *to;
    int64_t from_step, to_step;
    twi_divider width;
    int count; /* of elements */
};

struct piece_list {
    int count, first_block[TWI_CUDA_PIECES];
    piece pieces[TWI_CUDA_PIECES];
};
static_assert(sizeof(piece_list) < 32 << 10, "what a kernel is called with");

template <typename T> static __global__ void pieces_kernel(piece_list all)
{
    const int which = array_of_block(all.count, all.first_block);
    const piece &p = all.pieces[which];
    const unsigned begin = (blockIdx.x - (unsigned)all.first_block[which]) * CHUNK + threadIdx.x;
    for (unsigned i = begin; i < begin + CHUNK && i < (unsigned)p.count; i += THREADS) {
        unsigned column, row = twi_divide(p.width, i, &column);
        ((T *)p.to)[row * p.to_step + column] = ((const T *)p.from)[row * p.from_step + column];
    }
}

template <typename T> static cudaError_t launch_pieces(cudaStream_t stream, const twi_cuda_pieces *pieces, int64_t part)
{
    piece_list all = {};
    unsigned blocks = 0;
    for (int i = 0; i < pieces->count; i++) {
        const int64_t width = pieces->width[i] / part, count = width * pieces->rows;
        if (count == 0)
            continue;
        all.first_block[all.count] = (int)blocks;
        all.pieces[all.count++] = {pieces->from[i], pieces->to[i], pieces->from_step[i] / part,
                                   pieces->to_step[i] / part, twi_divider_of(width), (int)count};
        blocks += chunks_of(count);
    }
    if (blocks)
        LAUNCH(blocks, THREADS, 0, stream, pieces_kernel<T>)(all);
    return cudaGetLastError();
}

/* How many elements of `bytes` move at once: all pieces lie so, and are so wide. */
static int elements_at_once(int bytes, const twi_cuda_pieces *pieces)
{
    int together = 16 / bytes;
    for (int i = 0; i < pieces->count; i++) {
        uint64_t all = (uint64_t)pieces->width[i];
        if (pieces->rows > 1)
            all |= (uint64_t)(pieces->from_step[i] | pieces->to_step[i]);
        while (all % (uint64_t)together || ((uintptr_t)pieces->from[i] | (uintptr_t)pieces->to[i]) % (together * bytes))
            together /= 2;
    }
    return together;
}

/* Each by itself, of which some are more than can be counted. */
static cudaError_t move_one_by_one(cudaStream_t stream, int bytes, const twi_cuda_pieces *pieces)
{
    cudaError_t code = cudaSuccess;
    for (int i = 0; i < pieces->count && code == cudaSuccess; i++) {
        twi_cuda_move move = {2, {pieces->rows, pieces->width[i]}, {pieces->from_step[i], 1}, {pieces->to_step[i], 1}};
        code = twi_cuda_move_run(stream, bytes, &move, pieces->from[i], pieces->to[i]);
    }
    return code;
}

cudaError_t twi_cuda_move_pieces(cudaStream_t stream, int bytes, const twi_cuda_pieces *pieces)
{
    int64_t elements = 0;
    for (int i = 0; i < pieces->count; i++)
        elements += pieces->rows * pieces->width[i];
    if (elements > TWI_MOST_DIVIDED / 2)
        return move_one_by_one(stream, bytes, pieces);
    const int together = elements_at_once(bytes, pieces);
    switch (bytes * together) {
    case 1:
        return launch_pieces<uint8_t>(stream, pieces, together);
    case 2:
        return launch_pieces<uint16_t>(stream, pieces, together);
    case 4:
        return launch_pieces<uint32_t>(stream, pieces, together);
    case 8:
        return launch_pieces<uint2>(stream, pieces, together);
    default:
        return launch_pieces<uint4>(stream, pieces, together);
    }
}

/* ---- one move ---------------------------------------------------------------------------------------------------- */

cudaError_t twi_cuda_move_run(cudaStream_t stream, int bytes, const twi_cuda_move *move, const void *from, void *to)
{
    if (count_of(move) == 0)
        return cudaSuccess;
    twi_cuda_move job = joined(move);
    for (; bytes < 16 && pairs_up(&job, bytes, from, to); bytes *= 2)
        pair_up(&job);
    if (bytes == 16)
        launch<uint4>(stream, &job, from, to);
    else
        SIZED_TYPES(bytes, launch<T>(stream, &job, from, to))
    return cudaGetLastError();
}
