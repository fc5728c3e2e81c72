/* test_ops_math.c - element-wise ops, reductions and matrix products: TensorFlow's results, and refusals. */
#include "op_testing.h"

static void math_ops_give_the_results_of_tensorflow(void **state)
{
    (void)state;
    twt_run_golden("ops_math.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(math_ops_give_the_results_of_tensorflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
