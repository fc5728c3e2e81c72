/* lock.h - one training a directory: a file "lock" in it that says who trains, and that its process holds. */
#ifndef CLI_LOCK_H
#define CLI_LOCK_H

#include <limits.h>
#include <stdbool.h>

typedef struct lock {
    int file; /* -1: not held */
    bool made_directory;
    char directory[PATH_MAX], path[PATH_MAX];
} lock;

/* Makes the directory if need be and takes the lock. Complains in the name of `command` and returns false if another
 * process has it, saying which and where; one that a dead process left is taken over, and that is said. */
bool lock_take(const char *command, const char *directory, lock *lock);

/* Before something is written: where the directory or the lock in it was removed meanwhile, takes it again, and says
 * so. False, having complained, if another process has it now. Not held: nothing happens. */
bool lock_keep(const char *command, lock *lock);

/* Gives it back; a directory that was made for it and is still empty goes with it. Not held: does nothing. */
void lock_release(lock *lock);

#endif
