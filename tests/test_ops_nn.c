/* Neural-network ops: TensorFlow's numbers, shapes, gradients, refusals. */
#include "op_testing.h"

#include <tower/nn.h>

/* ---- numbers ----------------------------------------------------------------------------------------------- */

static void convolutions_and_their_gradients_are_those_of_tensorflow(void **state)
{
    (void)state;
    check_golden("ops_nn.txt", "Conv2D,DepthwiseConv2dNative");
}

static void biases_are_those_of_tensorflow(void **state)
{
    (void)state;
    check_golden("ops_nn.txt", "BiasAdd");
}

static void activations_are_those_of_tensorflow(void **state)
{
    (void)state;
    check_golden("ops_nn.txt", "Relu,LeakyRelu,Elu,Selu,Softplus,Softsign");
}

static void pools_are_those_of_tensorflow(void **state)
{
    (void)state;
    check_golden("ops_nn.txt", "MaxPool,AvgPool");
}

static void normalizations_are_those_of_tensorflow(void **state)
{
    (void)state;
    check_golden("ops_nn.txt", "LRN,FusedBatchNorm");
}

static void losses_are_those_of_tensorflow(void **state)
{
    (void)state;
    check_golden("ops_nn.txt", "Softmax,LogSoftmax,SparseSoftmax,InTopK");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_and_their_gradients_are_those_of_tensorflow),
        cmocka_unit_test(biases_are_those_of_tensorflow),
        cmocka_unit_test(activations_are_those_of_tensorflow),
        cmocka_unit_test(pools_are_those_of_tensorflow),
        cmocka_unit_test(normalizations_are_those_of_tensorflow),
        cmocka_unit_test(losses_are_those_of_tensorflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
