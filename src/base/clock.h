/* clock.h - the two clocks. Deadlines and durations use the monotonic one, what people read the wall clock. */
#ifndef TWI_CLOCK_H
#define TWI_CLOCK_H

#include <stdint.h>

int64_t twi_monotonic_ns(void);
double twi_wall_seconds(void); /* since 1970, UTC */

#endif
