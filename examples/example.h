/* example.h - what the examples share: giving up with the library's message, and printing a matrix. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <tower/tower.h>

/* Ends the program with the library's own words. */
static inline void check(tw_status status, const tw_error *error)
{
    if (status != TW_OK) {
        fprintf(stderr, "%s\n", error->message);
        exit(1);
    }
}

/* The machine's GPUs if there are `gpus` of them, otherwise as many virtual ones, whose arithmetic is the CPU's. */
static inline tw_devices *open_gpus(int gpus)
{
    tw_error error = TW_NO_ERROR;
    tw_devices *devices;
    check(tw_devices_create(NULL, &devices, &error), &error);
    if (tw_devices_count(devices, "GPU") < gpus) {
        tw_devices_destroy(devices);
        check(tw_devices_create(TW_OPTIONS(tw_device_options, .virtual_gpus = gpus), &devices, &error), &error);
    }
    return devices;
}

/* Prints [[22 28] [49 64]]. */
static inline void print_matrix(const char *title, const tw_tensor *tensor)
{
    tw_shape shape = tw_tensor_shape(tensor);
    printf("%s[", title);
    for (int64_t row = 0; row < shape.dims[0]; row++) {
        printf("%s[", row ? " " : "");
        for (int64_t column = 0; column < shape.dims[1]; column++)
            printf("%s%g", column ? " " : "", tw_tensor_value(tensor, row * shape.dims[1] + column));
        printf("]");
    }
    printf("]\n");
}

#endif
