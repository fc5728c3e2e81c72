/* virtual.h - what the files of virtual GPUs share. */
#ifndef TWI_VIRTUAL_H
#define TWI_VIRTUAL_H

#include "device/device.h"

bool twi_gpu_supports(const char *op, tw_dtype type); /* kernels.c */

#endif
