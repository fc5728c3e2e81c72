/* clock.h - the two clocks. Deadlines and durations use the monotonic one, what people read the wall clock. */
#ifndef TWI_CLOCK_H
#define TWI_CLOCK_H

#include <stdint.h>
#include <time.h>

int64_t twi_monotonic_ns(void);
int64_t twi_coarse_ns(void); /* the same, some milliseconds behind: it costs next to nothing */
struct timespec twi_time_in(double seconds); /* so much later, by the monotonic clock; 10^9 at most */
double twi_wall_seconds(void); /* since 1970, UTC */

#endif
