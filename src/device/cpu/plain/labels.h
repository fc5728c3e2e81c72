/* labels.h - labels of examples, as kernels of losses look at them first. */
#ifndef TWI_LABELS_H
#define TWI_LABELS_H

#include "device/kernel.h"

/* Whether each of input 1 is 0 to classes - 1; says which is not, and what all of them are. */
tw_status twi_check_labels(const twi_run *r, int64_t classes);

#endif
