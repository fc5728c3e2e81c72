/* contract.c - the sizes of what libtower and a plug-in share, as they were when this was compiled; see plugin.h. */
#include "device/plugin.h"
#include "tensor/tensor.h"

#define ROW(type) {#type, sizeof(type)},
const twi_layout twi_layouts[] = {TWI_SHARED(ROW){NULL, 0}};
