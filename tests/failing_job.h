/* failing_job.h - jobs in which an allocation fails, alone or with all that follow: the call in whose course that
 * happens says so, the same call succeeds when there is memory again, the numbers are those of an undisturbed job,
 * nothing leaks.
 *
 * What libraries allocate (oneDNN, libgomp) is out of reach and does not fail. */
#ifndef FAILING_JOB_H
#define FAILING_JOB_H

#include "testing.h"

#include "faulty_files.h"
#include "faulty_memory.h"

#include <limits.h>
#include <tower/io.h>

enum { MOST_NUMBERS = 32, MOST_STAGES = 32 };

/* What every job begins with; all else in it is NULL or whole, so that it can be closed at any time. */
typedef struct job {
    const char *folder;
    double numbers[MOST_NUMBERS]; /* what it has computed */
    int num_numbers;
} job;

static inline void note(job *j, double number)
{
    assert_true(j->num_numbers < MOST_NUMBERS);
    j->numbers[j->num_numbers++] = number;
}

/* One call, or a few that may be repeated. */
typedef tw_status job_stage(void *job, tw_error *error);

typedef struct job_kind {
    size_t bytes;
    void (*prepare)(const char *folder); /* what must be in the folder; NULL: nothing */
    job_stage *stages[MOST_STAGES];
    void (*close)(void *job);
    int saves;          /* the stage that saves a checkpoint in the folder */
    unsigned quiet;     /* bit i: stage i allocates nothing */
} job_kind;

/* A failure outside of any call with an error. */
static inline tw_status out_of_memory(tw_error *error)
{
    error->status = TW_RESOURCE_EXHAUSTED;
    return error->status;
}

static inline void assert_older_checkpoint_is_whole(const char *folder)
{
    tw_error error = {0};
    tw_checkpoint *older = NULL;
    assert_ok(tw_checkpoint_open(folder, &older, &error));
    tw_checkpoint_close(older);
}

/* Runs the whole job, whatever allocations fail, with a second try of each call. Returns the stage that a failed
 * allocation made fail; -1 if none. */
static inline int run_job(const job_kind *kind, job *j)
{
    int failed = -1;
    for (int i = 0; kind->stages[i]; i++) {
        tw_error error = {0};
        tw_status status = kind->stages[i](j, &error);
        if (status == TW_OK)
            continue;
        if (status != TW_RESOURCE_EXHAUSTED || error.status != status)
            fail_msg("stage %d: status %d, not %d: %s", i, status, TW_RESOURCE_EXHAUSTED, error.message);
        assert_true(forgive_allocations());
        failed = i;
        if (i >= kind->saves)
            assert_older_checkpoint_is_whole(j->folder);
        assert_ok(kind->stages[i](j, &error));
    }
    return failed;
}

static inline void fail_at_next_place(int n)
{
    (void)n;
    fail_at_new_place();
}

/* An undisturbed job, which leaves a checkpoint in the folder. Returns how many allocations it makes. */
static inline int run_reference(const job_kind *kind, job *j)
{
    fail_allocation(INT_MAX);
    assert_int_equal(run_job(kind, j), -1);
    kind->close(j);
    assert_int_equal(memory.live, 0);
    stop_failing_allocations();
    return INT_MAX - (int)memory.countdown;
}

enum { EACH = INT_MAX };

/* Lets about so many allocations fail, or each, one in each job, evenly spread over those that a job makes: with small
 * blocks (TOWER_SMALL_BLOCKS) it makes eight times as many. With fail_at_next_place() as the start, one at each place
 * in the code. */
static inline void fail_allocations_of(const job_kind *kind, void (*start)(int n), int tries)
{
    twi_file_calls calls = twi_posix_files;
    const char *folder = scratch_folder();
    int tried[MOST_STAGES] = {0};
    job *expected = calloc(1, kind->bytes), *j = calloc(1, kind->bytes);
    calls.fsync = no_sync;
    if (kind->prepare)
        kind->prepare(folder);
    twi_set_files(&calls);
    expected->folder = folder;
    int made = run_reference(kind, expected), stride = made > tries ? made / tries : 1;
    bool any = true;
    for (int n = stride / 2; any; n += stride) {
        memset(j, 0, kind->bytes);
        j->folder = folder;
        start(n);
        int failed = run_job(kind, j);
        kind->close(j);
        if (memory.live != 0)
            fail_msg("allocation %d failed in stage %d: %d blocks have leaked", n, failed, memory.live);
        any = stop_failing_allocations() || failed >= 0; /* one that failed without harm counts */
        if (failed >= 0)
            tried[failed]++;
        if (j->num_numbers != expected->num_numbers || memcmp(j->numbers, expected->numbers, sizeof j->numbers) != 0)
            fail_msg("allocation %d failed in stage %d: the numbers are others", n, failed);
    }
    twi_set_files(NULL);
    remove_scratch(folder);
    free(expected);
    free(j);
    for (int i = 0; kind->stages[i] && tries == EACH; i++)
        if ((tried[i] == 0) != (kind->quiet >> i & 1))
            fail_msg("%d allocations have failed in stage %d", tried[i], i);
}

#endif
