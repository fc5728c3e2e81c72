/* ragged.h - what kernels of ragged tensors share.
 * Never here:  ragged tensors as one value (ragged_variant.c). */
#ifndef TWI_CPU_RAGGED_H
#define TWI_CPU_RAGGED_H

#include "device/kernel.h"

/* Inputs `first` to first + count - 1 are splits, and behind them stand the values: the splits begin with 0, never
 * fall, and end where what they divide ends. */
tw_status twi_check_splits(const twi_run *r, int first, int count);

#endif
