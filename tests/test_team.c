/* test_team.c - the threads that share the loops of kernels (src/device/cpu/team.c). */
#include "testing.h"

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { MOST = 9 };

/* How often each share of a region was done, and whether it was told its number and of how many it is. */
static void count_shares(int threads, atomic_int *done, atomic_bool *wrong)
{
#pragma omp parallel num_threads(threads)
    {
        int number = omp_get_thread_num();
        if (number < 0 || number >= threads || omp_get_num_threads() != threads)
            atomic_store(wrong, true);
        else
            atomic_fetch_add(&done[number], 1);
    }
}

static bool shares_are_done_once(int regions)
{
    atomic_bool wrong = false;
    for (int i = 0; i < regions; i++) {
        int threads = i % MOST + 1;
        atomic_int done[MOST] = {0};
        count_shares(threads, done, &wrong);
        for (int k = 0; k < MOST; k++)
            if (done[k] != (k < threads))
                return false;
    }
    return !wrong;
}

static void every_share_is_done_once(void **state)
{
    (void)state;
    assert_true(shares_are_done_once(5000));
}

static void *in_a_thread(void *argument)
{
    atomic_bool *all = argument;
    if (!shares_are_done_once(500))
        atomic_store(all, false);
    return NULL;
}

static void threads_have_teams_of_their_own_that_end_with_them(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    atomic_bool all = true;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, in_a_thread, &all), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
    }
    assert_true(all);
}

static void a_region_within_a_share_is_of_one_thread(void **state)
{
    (void)state;
    atomic_int done[4] = {0}, others = 0;
#pragma omp parallel num_threads(4)
    {
        int outer = omp_get_thread_num();
#pragma omp parallel num_threads(3)
        {
            if (omp_get_thread_num() != 0 || omp_get_num_threads() != 1)
                atomic_fetch_add(&others, 1);
        }
        if (omp_get_thread_num() == outer && omp_get_num_threads() == 4)
            atomic_fetch_add(&done[outer], 1);
    }
    assert_int_equal(others, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(done[i], 1);
}

static void a_loop_is_divided_and_added_up(void **state)
{
    (void)state;
    enum { N = 1000 };
    int numbers[N];
    for (int round = 0; round < 200; round++) {
#pragma omp parallel for num_threads(3)
        for (int i = 0; i < N; i++)
            numbers[i] = i + round;
        for (int i = 0; i < N; i++)
            assert_int_equal(numbers[i], i + round);
    }
}

static void sleep_for(long nanoseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

/* The caller is done with short regions before whom it wakes for them is there. In the last one it waits with its own
 * share for somebody to begin the other one. */
static void who_was_woken_too_late_is_there_for_a_later_region(void **state)
{
    (void)state;
    enum { SHORT_REGIONS = 50, LOOKS = PATIENCE * 1000 };
    atomic_bool wrong = false, begun = false, met = false;
    for (int i = 0; i < SHORT_REGIONS; i++) {
        atomic_int done[MOST] = {0};
        count_shares(2, done, &wrong);
        sleep_for(500000);
    }
#pragma omp parallel num_threads(2)
    {
        if (omp_get_thread_num() == 1)
            atomic_store(&begun, true);
        for (int i = 0; omp_get_thread_num() == 0 && !begun && i < LOOKS; i++)
            sleep_for(1000000);
        if (omp_get_thread_num() == 0)
            atomic_store(&met, begun);
    }
    assert_true(met);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_share_is_done_once),
        cmocka_unit_test(threads_have_teams_of_their_own_that_end_with_them),
        cmocka_unit_test(a_region_within_a_share_is_of_one_thread),
        cmocka_unit_test(a_loop_is_divided_and_added_up),
        cmocka_unit_test(who_was_woken_too_late_is_there_for_a_later_region),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
