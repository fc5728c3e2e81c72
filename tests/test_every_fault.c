/* test_every_fault.c - each single allocation of a job fails, and many of a trainer's (label: slow). test_faults.c tries
 * some of them. */
#include "failing_session.h"
#include "failing_trainer.h"

enum { TRAINER_STRIDE = 5 }; /* a trainer makes thousands, most of them alike */

static void a_job_survives_the_failure_of_each_allocation(void **state)
{
    (void)state;
    fail_allocations_of(&session_job_kind, fail_allocation, 0, 1);
}

static void a_job_survives_running_out_of_memory_anywhere(void **state)
{
    (void)state;
    fail_allocations_of(&session_job_kind, fail_allocations_from, 0, 1);
}

static void a_trainer_survives_the_failure_of_many_an_allocation(void **state)
{
    (void)state;
    fail_allocations_of(&trainer_job_kind, fail_allocation, 0, TRAINER_STRIDE);
}

static void a_trainer_survives_running_out_of_memory_at_many_places(void **state)
{
    (void)state;
    fail_allocations_of(&trainer_job_kind, fail_allocations_from, TRAINER_STRIDE / 2, TRAINER_STRIDE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_survives_the_failure_of_each_allocation),
        cmocka_unit_test(a_job_survives_running_out_of_memory_anywhere),
        cmocka_unit_test(a_trainer_survives_the_failure_of_many_an_allocation),
        cmocka_unit_test(a_trainer_survives_running_out_of_memory_at_many_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
