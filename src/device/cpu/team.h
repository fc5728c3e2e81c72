/* team.h - the threads that share the loops of kernels: whatever `#pragma omp parallel` with a size is in this library. */
#ifndef TWI_TEAM_H
#define TWI_TEAM_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Says that the calling thread has run something on libgomp's own threads, which wait busily for more: from now on they do
 * its regions, too. */
void twi_team_is_libgomps(void);
/* Whether the calling thread has a team already. */
bool twi_team_is_here(void);

#ifdef __cplusplus
}
#endif
#endif
