/* consumer.c - a program outside of the tree: it sees the installed headers and library, and nothing else. */
#include <tower/tower.h>

#include <stdio.h>

int main(void)
{
    tw_error error = {};
    tw_devices *devices;
    if (tw_devices_create(NULL, &devices, &error) != TW_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    printf("tower %s, %d device(s)\n", tw_version(), tw_devices_count(devices, NULL));
    tw_devices_destroy(devices);
    return 0;
}
