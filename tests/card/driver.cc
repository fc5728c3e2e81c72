/* driver.cc - the driver, as far as listing goes: it says what cards there are. Their order on the bus is not their
 * order in the driver. */
#include "inside.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>

static int number_of(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}

extern "C" {

CUresult cuInit(unsigned)
{
    CALL(CUDA_ERROR_UNKNOWN)
    return number_of("CARD_COUNT", 2) ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
    CALL(CUDA_ERROR_UNKNOWN)
    *version = number_of("CARD_DRIVER", 13000);
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult, const char **text)
{
    *text = "made-up error";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    CALL(CUDA_ERROR_UNKNOWN)
    *count = number_of("CARD_COUNT", 2);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CALL(CUDA_ERROR_UNKNOWN)
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice)
{
    CALL(CUDA_ERROR_UNKNOWN)
    const char *given = getenv("CARD_NAME");
    snprintf(name, (size_t)size, "%s", given ? given : "Made-up Card");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    CALL(CUDA_ERROR_UNKNOWN)
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(device * 16 + i);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
    CALL(CUDA_ERROR_UNKNOWN)
    snprintf(id, (size_t)size, "0000:%02x:00.0", 0x40 - device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice)
{
    CALL(CUDA_ERROR_UNKNOWN)
    *bytes = (size_t)16 << 30;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice)
{
    CALL(CUDA_ERROR_UNKNOWN)
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR                ? 9
             : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT                  ? 132
             : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 227 << 10
                                                                                      : 0;
    return CUDA_SUCCESS;
}

/* A card in parts. */
CUresult cuDeviceGetDevResource(CUdevice, CUdevResource *all, CUdevResourceType)
{
    CALL(CUDA_ERROR_UNKNOWN)
    *all = {};
    all->sm.smCount = 132;
    return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *split, unsigned *count, const CUdevResource *all, CUdevResource *,
                                     unsigned, unsigned least)
{
    CALL(CUDA_ERROR_UNKNOWN)
    unsigned can = all->sm.smCount / least;
    *count = can < *count ? can : *count;
    for (unsigned i = 0; i < *count; i++)
        split[i].sm.smCount = least;
    return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *described, CUdevResource *, unsigned)
{
    CALL(CUDA_ERROR_UNKNOWN)
    *described = nullptr;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx *context, CUdevResourceDesc, CUdevice, unsigned)
{
    CALL(CUDA_ERROR_UNKNOWN)
    *context = (CUgreenCtx) new int;
    card::born("green contexts", 1);
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx context)
{
    delete (int *)context;
    card::born("green contexts", -1);
    CALL(CUDA_ERROR_UNKNOWN)
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx context, unsigned, int)
{
    if (cudaStreamCreateWithFlags(stream, 0) != cudaSuccess)
        return CUDA_ERROR_UNKNOWN;
    card::set_context(*stream, context);
    return CUDA_SUCCESS;
}

CUresult cuCtxFromGreenCtx(CUcontext *own, CUgreenCtx context)
{
    CALL(CUDA_ERROR_UNKNOWN)
    *own = (CUcontext)context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext own)
{
    CALL(CUDA_ERROR_UNKNOWN)
    card::context = own;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *own)
{
    CALL(CUDA_ERROR_UNKNOWN)
    *own = (CUcontext)card::context;
    card::context = nullptr;
    return CUDA_SUCCESS;
}
}
