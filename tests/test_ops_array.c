/* test_ops_array.c - ops that make, shape, cut, join and rearrange arrays: TensorFlow's results, and refusals. */
#include "op_testing.h"

static void array_ops_give_the_results_of_tensorflow(void **state)
{
    (void)state;
    twt_run_golden("ops_array.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(array_ops_give_the_results_of_tensorflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
