/* serialize.h - tensors as texts (TensorProto), for kernels that make and read such.
 * Never here:  which texts a sparse or a ragged tensor is made of. */
#ifndef TWI_CPU_SERIALIZE_H
#define TWI_CPU_SERIALIZE_H

#include "device/kernel.h"

tw_status twi_write_text(const twi_run *r, const tw_tensor *tensor, tw_string *text);
/* A tensor of that type; the caller's. */
tw_status twi_read_text(const twi_run *r, const tw_string *text, tw_dtype dtype, tw_tensor **tensor);

#endif
