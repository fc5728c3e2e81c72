/* move.cu - copies between arrays that are laid out differently: the one kernel behind cutting, joining, padding, turning
 * and repeating. */
#include "device/cuda/typed.cuh"

template <typename T> static __global__ void move_kernel(twi_cuda_move move, int64_t n, const T *from, T *to)
{
    EACH(i, n)
    {
        int64_t source = 0, target = 0, rest = i;
        for (int axis = move.rank - 1; axis >= 0; axis--) {
            int64_t at = rest % move.size[axis];
            rest /= move.size[axis];
            source += at * move.from[axis];
            target += at * move.to[axis];
        }
        to[target] = from[source];
    }
}

cudaError_t twi_cuda_move_run(cudaStream_t stream, int bytes, const twi_cuda_move *move, const void *from, void *to)
{
    int64_t n = 1;
    for (int i = 0; i < move->rank; i++)
        n *= move->size[i];
    if (n == 0)
        return cudaSuccess;
    switch (bytes) {
    case 1:
        LAUNCH(blocks_for(n), THREADS, 0, stream, move_kernel<uint8_t>)(*move, n, (const uint8_t *)from, (uint8_t *)to);
        break;
    case 2:
        LAUNCH(blocks_for(n), THREADS, 0, stream, move_kernel<uint16_t>)(*move, n, (const uint16_t *)from, (uint16_t *)to);
        break;
    case 4:
        LAUNCH(blocks_for(n), THREADS, 0, stream, move_kernel<uint32_t>)(*move, n, (const uint32_t *)from, (uint32_t *)to);
        break;
    case 8:
        LAUNCH(blocks_for(n), THREADS, 0, stream, move_kernel<uint64_t>)(*move, n, (const uint64_t *)from, (uint64_t *)to);
        break;
    default:
        return cudaErrorInvalidValue;
    }
    return cudaGetLastError();
}
