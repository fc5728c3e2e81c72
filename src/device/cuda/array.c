/* array.c - rows of values that are passed on. */
#include "device/cuda/cuda.h"

/* What a GPU passes on: anything but strings, which lie on the host alone. */
#define MOVED (TWI_NUMBER_TYPES | TWI_TYPE(TW_BOOL))

static tw_status run_nothing(const twi_run *r)
{
    (void)r;
    return TW_OK;
}

const twi_kernel twi_cuda_array_kernels[] = {
    /* never run: the plan writes constants and feeds, and passes buffers on */
    {"Const", "cuda", MOVED},
    {"Placeholder", "cuda", MOVED},
    {"PlaceholderV2", "cuda", MOVED},
    {"PlaceholderWithDefault", "cuda", MOVED},
    {"Identity", "cuda", MOVED},
    {"StopGradient", "cuda", MOVED},
    {"PreventGradient", "cuda", MOVED},
    {"Reshape", "cuda", MOVED},
    {"ExpandDims", "cuda", MOVED},
    {"Squeeze", "cuda", MOVED},
    {"VarHandleOp", "cuda", MOVED},

    {"NoOp", "cuda", 0, NULL, run_nothing},
    {0},
};
