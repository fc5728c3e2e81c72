/* team.h - the threads that share the loops of kernels: whatever `#pragma omp parallel` with a size is in this
 * library. */
#ifndef TWI_TEAM_H
#define TWI_TEAM_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Items first to last - 1 of a job; `thread` says whose scratch to use. */
typedef void twi_share(const void *job, int64_t first, int64_t last, int thread);

/* Divides `count` items among so many threads in order. */
void twi_team_run(int threads, twi_share *range, const void *job, int64_t count);

/* Says that the calling thread has run something on libgomp's own threads, which wait busily for more: from now on they
 * do its regions, too. */
void twi_team_is_libgomps(void);
/* Whether the calling thread has a team already. */
bool twi_team_is_here(void);

#ifdef __cplusplus
}
#endif
#endif
