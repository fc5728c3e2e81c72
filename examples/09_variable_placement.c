/* 09_variable_placement.c - a device function says where each variable lives: in rotation, or with the least loaded
 * GPU.
 *
 * A device function is asked about every new node. Both of these send variables to the GPUs in turn and everything else
 * to a worker; the network itself (here the CIFAR-10 tutorial's) knows nothing of it.
 *
 * prints: conv1/weights +4800 +0 +0.*local3/weights +884736 +1 +1.*local4/weights +73728 +0 +0.*rotation 78602 884992
 * 104704.*least loaded 81034 884864 102400
 */
#include "example.h"

#include <string.h>

enum { GPUS = 3 };

static const char *const gpus[GPUS] = {"/gpu:0", "/gpu:1", "/gpu:2"};

/* Variables to each GPU in turn, whatever their size. */
static const char *rotate(void *user, const tw_node *node)
{
    int *next = user;
    if (!tw_node_is_variable(node))
        return "/gpu:0";
    return gpus[(*next)++ % GPUS];
}

/* The tutorial's network, its variables where the device function says. */
static tw_graph *build(tw_device_function *function, void *user)
{
    tw_graph *g = tw_graph_create();
    const tw_model *model = tw_model_find("cifar10");
    tw_enter_device_function(g, function, user);
    tw_output images = tw_placeholder(g, TW_FLOAT32, TW_SHAPE(1, model->height, model->width, model->channels));
    model->logits(g, model, images, TW_FLOAT32, true);
    tw_leave_device(g);
    return g;
}

/* Which GPU variable i asks for. */
static int gpu_of(tw_graph *g, int i)
{
    const char *device = tw_node_device(tw_graph_variable(g, i)->handle.node); /* "/device:GPU:2" */
    return atoi(strrchr(device, ':') + 1);
}

static void print_loads(const char *title, tw_graph *g)
{
    long long loads[GPUS] = {0};
    for (int i = 0; i < tw_graph_num_variables(g); i++)
        loads[gpu_of(g, i)] += tw_shape_elements(tw_graph_variable(g, i)->shape);
    printf("%s", title);
    for (int i = 0; i < GPUS; i++)
        printf(" %lld", loads[i]);
    printf("\n");
}

int main(void)
{
    int next = 0;
    int64_t loads[GPUS] = {0};
    tw_least_loaded spread = {.devices = gpus, .num_devices = GPUS, .loads = loads, .worker = "/gpu:0"};
    tw_graph *rotated = build(rotate, &next), *balanced = build(tw_least_loaded_device, &spread);

    printf("%-24s %10s %10s %14s\n", "variable", "elements", "rotation", "least loaded");
    for (int i = 0; i < tw_graph_num_variables(rotated); i++) {
        const tw_variable *variable = tw_graph_variable(rotated, i);
        printf("%-24s %10lld %10d %14d\n", variable->name, (long long)tw_shape_elements(variable->shape),
               gpu_of(rotated, i), gpu_of(balanced, i));
    }
    printf("\nelements on each GPU\n");
    print_loads("rotation", rotated);
    print_loads("least loaded", balanced);
    tw_graph_destroy(rotated);
    tw_graph_destroy(balanced);
    return 0;
}
