/* chrome_trace.h - the latest run of a plan as a Chrome trace. */
#ifndef TWI_CHROME_TRACE_H
#define TWI_CHROME_TRACE_H

#include "plan/plan.h"

/* A row a device, a slice a kernel or copy; times in microseconds from the first slice. The file is written whole. The
 * plan has a trace. */
tw_status twi_chrome_trace_write(const twi_plan *plan, const char *path, tw_error *error);

#endif
