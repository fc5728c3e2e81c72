/* 08_matrix_powers.c - A^n + B^n: a power on each of two GPUs, their sum on the CPU; then both on one GPU, and the
 * clock.
 *
 *     08_matrix_powers [SIZE] [N]
 *
 * The same program that everybody times several GPUs with. Two devices give the bits of one: each product is computed
 * alone, and the sum has one order. The matrices are fed, for a constant would be folded before anything ran.
 *
 * prints: two GPUs: .* s.*one GPU: .* s.*same bits: yes
 */
#include "example.h"

#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static tw_output power(tw_graph *g, tw_output x, int n)
{
    tw_output product = x;
    for (int i = 1; i < n; i++)
        product = tw_matmul(g, product, x);
    return product;
}

/* Between -4/SIZE and 4/SIZE: powers neither vanish nor explode at once. */
static tw_tensor *random_matrix(int size, unsigned seed)
{
    tw_tensor *matrix = tw_tensor_create(TW_FLOAT32, TW_SHAPE(size, size));
    float *values = tw_tensor_data(matrix);
    for (int i = 0; i < size * size; i++) {
        seed = seed * 1664525 + 1013904223;
        values[i] = ((float)(seed >> 8) / (1 << 23) - 1) * 4 / (float)size;
    }
    return matrix;
}

static tw_tensor *compute(const char *title, const char *second, tw_tensor *a, tw_tensor *b, int n, tw_devices *devices)
{
    tw_error error = TW_NO_ERROR;
    tw_graph *g = tw_graph_create();
    tw_shape shape = tw_tensor_shape(a);
    tw_output x[2] = {tw_placeholder(g, TW_FLOAT32, shape), tw_placeholder(g, TW_FLOAT32, shape)}, powers[2], sum = {0};

    TW_DEVICE(g, "/gpu:0")
        powers[0] = power(g, x[0], n);
    TW_DEVICE(g, "%s", second)
        powers[1] = power(g, x[1], n);
    TW_DEVICE(g, "/cpu:0")
        sum = tw_add_n(g, powers, 2);

    tw_session *session;
    tw_tensor *result = NULL;
    tw_feed feeds[] = {{x[0], a}, {x[1], b}};
    check(tw_session_create(g, TW_OPTIONS(tw_session_options, .devices = devices), &session, &error), &error);
    check(tw_session_run(session, feeds, 2, &sum, 1, &result, &error), &error); /* plans, too */
    double start = now();
    check(tw_session_run(session, feeds, 2, &sum, 1, &result, &error), &error);
    printf("%s: %.6f s\n", title, now() - start);
    tw_session_destroy(session);
    tw_graph_destroy(g);
    return result;
}

int main(int argc, char **argv)
{
    int size = argc > 1 ? atoi(argv[1]) : 100, n = argc > 2 ? atoi(argv[2]) : 10;
    if (size < 1 || size > 20000 || n < 1) {
        fprintf(stderr, "usage: 08_matrix_powers [SIZE] [N]\n");
        return 2;
    }
    tw_devices *devices = open_gpus(2);
    tw_tensor *a = random_matrix(size, 1), *b = random_matrix(size, 2);
    tw_tensor *two = compute("two GPUs", "/gpu:1", a, b, n, devices),
              *one = compute("one GPU", "/gpu:0", a, b, n, devices);
    bool same = memcmp(tw_tensor_data(two), tw_tensor_data(one), tw_tensor_bytes(one)) == 0;
    printf("same bits: %s\n", same ? "yes" : "no");
    tw_tensor_release(a);
    tw_tensor_release(b);
    tw_tensor_release(two);
    tw_tensor_release(one);
    tw_devices_destroy(devices);
    return !same;
}
