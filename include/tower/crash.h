/* crash.h - a report of a process that a signal ends. Off by default: signals are the process's, not a library's. */
#ifndef TOWER_CRASH_H
#define TOWER_CRASH_H

#include <tower/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From now on a process that ends by SEGV, BUS, ILL, FPE or ABRT leaves DIRECTORY/crash-STEP.txt: the signal, the step
 * (of the trainer that stepped last; 0: none), the node that each device was at, the versions of the library and of
 * what it stands on, and what to do. Then the signal does what it would have done: whoever had a handler before is
 * called, a core is written. Who had a handler has ten seconds, then the process ends by the signal: a handler that
 * hangs would keep the other tasks of a run waiting. A file that is there gets the report appended. `announce` says on
 * standard error, too, where the report is.
 *
 * The directory must be there; it is copied. NULL: no report any more, and signals as they were. Not to be called by
 * two threads at once. The report takes nothing from the heap and no lock: it comes also if those are what is broken.
 */
TW_API tw_status tw_set_crash_report(const char *directory, bool announce, tw_error *error);

#ifdef __cplusplus
}
#endif
#endif
