/* virtual.h - what the files of virtual GPUs share. */
#ifndef TWI_VIRTUAL_H
#define TWI_VIRTUAL_H

#include "device/device.h"

uint64_t twi_gpu_lacks(const char *op); /* kernels.c */

#endif
