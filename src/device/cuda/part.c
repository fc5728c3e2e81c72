/* part.c - a part of a card as a device of its own: a green context of the driver's, which gives its streams some of
 * the card's multiprocessors and nobody else's. Memory is the card's; a device's limit keeps each part to its share.
 *
 * The calls are newer than the oldest driver that will do otherwise, so they are looked up when a card is divided. */
#include "base/memory.h"
#include "device/cuda/cuda.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>

enum { GROUP = 8, MOST_PARTS = 16 }; /* multiprocessors are given out by groups of so many */

/*  X(field, symbol in the driver) */
#define CALLS(X)                                                                                                       \
    X(GetErrorString, cuGetErrorString)                                                                                \
    X(DeviceGetDevResource, cuDeviceGetDevResource)                                                                    \
    X(DevSmResourceSplitByCount, cuDevSmResourceSplitByCount)                                                          \
    X(DevResourceGenerateDesc, cuDevResourceGenerateDesc)                                                              \
    X(GreenCtxCreate, cuGreenCtxCreate)                                                                                \
    X(GreenCtxDestroy, cuGreenCtxDestroy)                                                                              \
    X(GreenCtxStreamCreate, cuGreenCtxStreamCreate)                                                                    \
    X(CtxFromGreenCtx, cuCtxFromGreenCtx)                                                                              \
    X(CtxPushCurrent, cuCtxPushCurrent)                                                                                \
    X(CtxPopCurrent, cuCtxPopCurrent)

struct twi_cuda_part {
    CUgreenCtx context;
#define X(field, symbol) __typeof__(&symbol) field;
    CALLS(X)
#undef X
};

/* As it is exported: cuda.h makes some names those of a newer version. */
#define NAME_OF(symbol) #symbol
#define NAME(symbol) NAME_OF(symbol)

#define DRIVER_CALL(c, error, field, ...)                                                                              \
    do {                                                                                                               \
        CUresult code_ = (c)->share->field(__VA_ARGS__);                                                               \
        if (code_ != CUDA_SUCCESS) {                                                                                   \
            const char *text_ = "unknown error";                                                                       \
            (c)->share->GetErrorString(code_, &text_);                                                                 \
            status = twi_fail(error, TW_INTERNAL, "%s: cu" #field ": %s (%s)", (c)->base.text, text_, TWI_HERE);       \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)

int twi_cuda_part_size(int multiprocessors, int parts)
{
    return parts <= MOST_PARTS ? multiprocessors / parts / GROUP * GROUP : 0;
}

static tw_status find_calls(twi_cuda_device *c, tw_error *error)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
#define X(field, symbol)                                                                                               \
    if (!library || !(c->share->field = (__typeof__(&symbol))dlsym(library, NAME(symbol))))                            \
        return twi_fail(error, TW_UNAVAILABLE,                                                                         \
                        "%s: the NVIDIA driver is too old to divide a card: it has no %s", c->base.text, NAME(symbol));
    CALLS(X)
#undef X
    return TW_OK;
}

/* The card is split alike for each of its parts, and each takes its own. */
tw_status twi_cuda_part_open(twi_cuda_device *c, tw_error *error)
{
    tw_status status;
    CUdevResource all, split[MOST_PARTS], rest;
    CUdevResourceDesc described;
    unsigned count = (unsigned)c->parts;
    if (!(c->share = twi_alloc(sizeof *c->share)))
        return twi_fail_memory(error, "dividing a card");
    TWI_TRY(find_calls(c, error));
    DRIVER_CALL(c, error, DeviceGetDevResource, c->ordinal, &all, CU_DEV_RESOURCE_TYPE_SM);
    DRIVER_CALL(c, error, DevSmResourceSplitByCount, split, &count, &all, &rest, 0, (unsigned)c->multiprocessors);
    if (count < (unsigned)c->parts)
        TWI_LEAVE(twi_fail(error, TW_UNAVAILABLE,
                           "%s: the card can be divided into %u parts of %d multiprocessors, not %d", c->base.text,
                           count, c->multiprocessors, c->parts));
    DRIVER_CALL(c, error, DevResourceGenerateDesc, &described, &split[c->part], 1);
    DRIVER_CALL(c, error, GreenCtxCreate, &c->share->context, described, c->ordinal, CU_GREEN_CTX_DEFAULT_STREAM);
    return TW_OK;
done:
    twi_cuda_part_close(c);
    return status;
}

tw_status twi_cuda_part_stream(twi_cuda_device *c, cudaStream_t *stream, tw_error *error)
{
    tw_status status = TW_OK;
    DRIVER_CALL(c, error, GreenCtxStreamCreate, stream, c->share->context, CU_STREAM_NON_BLOCKING, 0);
done:
    return status;
}

tw_status twi_cuda_part_enter(twi_cuda_device *c, tw_error *error)
{
    tw_status status = TW_OK;
    CUcontext own;
    DRIVER_CALL(c, error, CtxFromGreenCtx, &own, c->share->context);
    DRIVER_CALL(c, error, CtxPushCurrent, own);
done:
    return status;
}

void twi_cuda_part_leave(twi_cuda_device *c)
{
    CUcontext own;
    c->share->CtxPopCurrent(&own);
}

void twi_cuda_part_close(twi_cuda_device *c)
{
    if (c->share && c->share->context)
        c->share->GreenCtxDestroy(c->share->context);
    twi_free(c->share);
    c->share = NULL;
}
