/* test_every_fault.c - each single allocation of a job fails (label: slow). test_faults.c tries some of them. */
#include "failing_job.h"

static void a_job_survives_the_failure_of_each_allocation(void **state)
{
    (void)state;
    fail_allocations_of_jobs(fail_allocation, 0, 1);
}

static void a_job_survives_running_out_of_memory_anywhere(void **state)
{
    (void)state;
    fail_allocations_of_jobs(fail_allocations_from, 0, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_survives_the_failure_of_each_allocation),
        cmocka_unit_test(a_job_survives_running_out_of_memory_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
