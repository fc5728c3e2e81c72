/* traffic.h - who must come after whom, by the memory they touch: of works that are told in order, one comes after
 * those before it that have written what it reads or writes, or read what it writes. */
#ifndef TWI_TRAFFIC_H
#define TWI_TRAFFIC_H

#include "base/status.h"

#include <stdbool.h>

typedef struct twi_traffic twi_traffic;

twi_traffic *twi_traffic_create(void); /* NULL: out of memory */
void twi_traffic_destroy(twi_traffic *traffic);

/* The present work, number 0 at first, touches that memory. Fails for want of memory only. */
tw_status twi_traffic_touch(twi_traffic *traffic, const void *memory, size_t bytes, bool writes);
/* The works after which the present one comes, each once; what comes after them follows from those. Borrowed until the
 * next call. What is told next is of the next work. */
void twi_traffic_end_work(twi_traffic *traffic, const int **after, int *count);

#endif
