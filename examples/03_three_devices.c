/* 03_three_devices.c - three GPUs each multiply their own variables, the CPU adds the products.
 *
 * What crosses between devices is copied by the session: nobody writes a copy.
 *
 * prints: sum of 3 products on /job:localhost/replica:0/task:0/device:CPU:0.*equals the sum on the host: yes
 */
#include "example.h"

#include <math.h>

enum { GPUS = 3 };

int main(void)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    tw_graph_set_seed(g, 1);
    tw_initializer uniform = {TW_INIT_UNIFORM, -1, 1, 0};
    tw_output fetches[GPUS + 1];

    for (int i = 0; i < GPUS; i++)
        TW_DEVICE(g, "/gpu:%d", i) {
            char name[16];
            snprintf(name, sizeof name, "a_%d", i);
            tw_variable *a = tw_get_variable(g, name, TW_FLOAT32, TW_SHAPE(2, 3), uniform);
            name[0] = 'b';
            tw_variable *b = tw_get_variable(g, name, TW_FLOAT32, TW_SHAPE(3, 2), uniform);
            if (a && b)
                fetches[i] = tw_matmul(g, a->value, b->value);
        }
    TW_DEVICE(g, "/cpu:0")
        fetches[GPUS] = tw_add_n(g, fetches, GPUS);
    tw_output init = tw_initialize_variables(g);

    tw_devices *devices = open_gpus(GPUS);
    tw_session *session;
    tw_tensor *results[GPUS + 1] = {0};
    check(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &session, &error), &error);
    check(tw_session_run(session, NULL, 0, &init, 1, NULL, &error), &error);
    check(tw_session_run(session, NULL, 0, fetches, GPUS + 1, results, &error), &error);

    double worst = 0;
    for (int i = 0; i < 4; i++) {
        double sum = 0;
        for (int k = 0; k < GPUS; k++)
            sum += tw_tensor_value(results[k], i);
        worst = fmax(worst, fabs(sum - tw_tensor_value(results[GPUS], i)));
    }
    for (int i = 0; i < GPUS; i++)
        printf("product %d on %s\n", i, tw_session_device(session, fetches[i].node));
    printf("sum of %d products on %s: ", GPUS, tw_session_device(session, fetches[GPUS].node));
    print_matrix("", results[GPUS]);
    printf("equals the sum on the host: %s\n", worst < 1e-6 ? "yes" : "no");

    for (int i = 0; i <= GPUS; i++)
        tw_tensor_release(results[i]);
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return 0;
}
