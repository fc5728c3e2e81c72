/* made.h - kernels whose output's shape is found while they run, on the loops that expect it to be known. */
#ifndef TWI_CPU_MADE_H
#define TWI_CPU_MADE_H

#include "device/kernel.h"

/* Runs `f` as if the only output's shape had been known: `shape`. With a workspace of its own if that takes bytes. */
tw_status twi_run_made(const twi_run *r, tw_shape shape, size_t workspace, tw_status (*f)(const twi_run *r));

#endif
