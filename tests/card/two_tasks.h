/* two_tasks.h - a process that becomes one of two tasks, as `tower launch` makes them.
 * Never here:  starting processes, and what they do. */
#ifndef TWO_TASKS_H
#define TWO_TASKS_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* `pair` are connected sockets, one for each task; this process keeps its own, and has so many cards. */
static inline void become_task(int task, const int pair[2], const char *cards)
{
    char sockets[40];
    snprintf(sockets, sizeof sockets, task == 0 ? "-,%d" : "%d,-", pair[task]);
    close(pair[1 - task]);
    setenv("TOWER_TASK", task == 0 ? "0" : "1", 1);
    setenv("TOWER_TASK_SOCKETS", sockets, 1);
    setenv("CARD_COUNT", cards, 1);
}

#endif
