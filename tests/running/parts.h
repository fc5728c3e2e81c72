/* parts.h - the parts of test_run, each in the file of its name. Each runs its tests; returns how many failed. */
#ifndef PARTS_H
#define PARTS_H

#include <stdbool.h>

int run_dispatchers(void);
int run_exchange(void);
int run_local(void);
int run_messages(void);
int run_packing(void);
int run_part(void);
int run_protocol(void);
int run_sessions(void);
int run_sockets(void);
int run_traffic(void);
int run_waits(void);
int run_waterfall(void);

/* What they share: time that goes by without anybody's waiting for it (clock.c). */
void skip_seconds(double seconds);
void skip_at_each_look(double seconds); /* at the clock, of any thread; 0: no more */
void stand_still(bool still);
void nap(void); /* a moment, between two looks for what another thread comes to */

#endif
