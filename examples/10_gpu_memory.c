/* 10_gpu_memory.c - how much of a GPU's memory a program takes: a limit, a fraction, growth.
 *
 * Nothing is taken by listing devices. A session plans before it runs, and takes what its largest plan needs, once;
 * with allow_growth it takes what the plan at hand needs, and more when a larger one comes. A limit, in bytes or as a
 * part of what the GPU has, makes a step that does not fit fail before it begins. The GPU is a virtual one of 100 MiB.
 *
 * prints: listed: 0 of 100 MiB.*at once: 40001[0-9]+ bytes, then 40001.*growing: 40[0-9][0-9][0-9] bytes, then
 * 40001.*limit 1 MiB: .*GPU:0 has no room.*fraction 0.4, 40 MiB: 1e.06
 */
#include "example.h"

enum { SMALL = 100, LARGE = 1000 };
static const size_t memory = 100 << 20;

typedef struct program {
    tw_graph *g;
    tw_devices *devices;
    tw_session *session;
    tw_output x, sum;
} program;

/* Adds up the positive elements of a matrix of any size, which is copied to the GPU. */
static program open_program(tw_device_options options)
{
    tw_error error = TW_NO_ERROR;
    program p = {.g = tw_graph_create()};
    p.x = tw_placeholder(p.g, TW_FLOAT32, TW_SHAPE(-1, -1));
    TW_DEVICE(p.g, "/gpu:0")
        p.sum = tw_reduce_sum(p.g, tw_relu(p.g, p.x), NULL, 0, false);
    options.virtual_gpus = 1;
    options.virtual_gpu_memory = memory;
    check(tw_devices_create(&options, &p.devices, &error), &error);
    check(tw_session_create(p.g, TW_OPTIONS(tw_session_options, .devices = p.devices), &p.session, &error), &error);
    return p;
}

static void close_program(program *p)
{
    tw_session_destroy(p->session);
    tw_devices_destroy(p->devices);
    tw_graph_destroy(p->g);
}

/* Of side x side ones; prints the message if that fails. */
static void add_up(program *p, int side, const char *title)
{
    tw_error error = TW_NO_ERROR;
    tw_tensor *ones = tw_tensor_create(TW_FLOAT32, TW_SHAPE(side, side)), *sum = NULL;
    for (int i = 0; i < side * side; i++)
        ((float *)tw_tensor_data(ones))[i] = 1;
    tw_status status = tw_session_run(p->session, TW_LIST(tw_feed, {p->x, ones}), &p->sum, 1, &sum, &error);
    if (title && status == TW_OK)
        printf("%s: %g\n", title, tw_tensor_value(sum, 0));
    else if (status != TW_OK)
        printf("%s: %s\n", title ? title : "failed", error.message);
    tw_tensor_release(sum);
    tw_tensor_release(ones);
}

static size_t used(const program *p)
{
    return tw_devices_info(p->devices, 1).memory_used;
}

static void small_then_large(const char *title, bool allow_growth)
{
    tw_error error = TW_NO_ERROR;
    program p = open_program((tw_device_options){.allow_growth = allow_growth});
    tw_feed_shape large = {p.x, TW_SHAPE(LARGE, LARGE)};
    check(tw_session_prepare(p.session, &large, 1, &p.sum, 1, &error), &error);
    add_up(&p, SMALL, NULL);
    printf("%s: %zu bytes, ", title, used(&p));
    add_up(&p, LARGE, NULL);
    printf("then %zu\n", used(&p));
    close_program(&p);
}

int main(void)
{
    program p = open_program((tw_device_options){0});
    printf("listed: %zu of %zu MiB in use\n", used(&p), memory >> 20);
    close_program(&p);

    small_then_large("at once", false);
    small_then_large("growing", true);

    p = open_program((tw_device_options){.gpu_memory_limit = 1 << 20});
    add_up(&p, LARGE, "limit 1 MiB");
    close_program(&p);

    char title[64];
    p = open_program((tw_device_options){.gpu_memory_fraction = 0.4});
    snprintf(title, sizeof title, "fraction 0.4, %zu MiB", tw_devices_info(p.devices, 1).memory_limit >> 20);
    add_up(&p, LARGE, title);
    close_program(&p);
    return 0;
}
