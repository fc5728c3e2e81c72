/* chrome_trace.h - the latest run as a Chrome trace. */
#ifndef TWI_CHROME_TRACE_H
#define TWI_CHROME_TRACE_H

#include "plan/plan.h"

/* A row a device, a slice a kernel or copy; times in microseconds from the first slice. The file is written whole. The
 * plans are the parts of one run, in order, and have traces. */
tw_status twi_chrome_trace_write(twi_plan *const *parts, int count, const char *path, tw_error *error);

#endif
