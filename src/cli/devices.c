/* devices.c - `tower devices`: which devices there are, and why there is no GPU. */
#include "command.h"
#include "json.h"

#include <string.h>
#include <tower/device.h>

typedef struct settings {
    int64_t cpu_devices, cpu_threads, virtual_gpus;
    int format;
} settings;

static void print_text(const tw_devices *devices)
{
    int widest = 0;
    for (int i = 0; i < tw_devices_count(devices, NULL); i++) {
        int length = (int)strlen(tw_devices_info(devices, i).name);
        widest = length > widest ? length : widest;
    }
    printf("%-*s  %-8s %8s %14s  %s\n", widest, "device", "kind", "threads", "memory limit", "what it is");
    for (int i = 0; i < tw_devices_count(devices, NULL); i++) {
        tw_device_info info = tw_devices_info(devices, i);
        char limit[32] = "none";
        if (info.memory_limit)
            snprintf(limit, sizeof limit, "%.1f MiB", (double)info.memory_limit / (1 << 20));
        printf("%-*s  %-8s %8d %14s  %s\n", widest, info.name, info.kind, info.threads, limit, info.description);
    }
    const char *why = tw_devices_why_no_gpu();
    if (why[0])
        printf("\nno real GPU: %s\n", why);
}

static void print_json(const tw_devices *devices)
{
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_begin(&out, "devices", '[');
    for (int i = 0; i < tw_devices_count(devices, NULL); i++) {
        tw_device_info info = tw_devices_info(devices, i);
        json_begin(&out, NULL, '{');
        json_text(&out, "name", info.name);
        json_text(&out, "type", info.type);
        json_text(&out, "kind", info.kind);
        json_text(&out, "description", info.description);
        json_integer(&out, "threads", info.threads);
        json_integer(&out, "memory_limit_bytes", (int64_t)info.memory_limit);
        json_integer(&out, "memory_used_bytes", (int64_t)info.memory_used);
        json_end(&out);
    }
    json_end(&out);
    const char *why = tw_devices_why_no_gpu();
    json_text(&out, "why_no_gpu", why[0] ? why : NULL);
    json_end(&out);
}

static int run(const void *given)
{
    const settings *s = given;
    tw_error error = {0};
    tw_devices *devices;
    tw_device_options wanted = {
        .cpu_devices = (int)s->cpu_devices,
        .cpu_threads = (int)s->cpu_threads,
        .virtual_gpus = (int)s->virtual_gpus,
    };
    if (tw_devices_create(&wanted, &devices, &error) != TW_OK)
        return failed("devices", &error);
    if (s->format == FORMAT_JSON)
        print_json(devices);
    else
        print_text(devices);
    tw_devices_destroy(devices);
    return EXIT_DONE;
}

static const option options[] = {
    {"cpu-devices", "N", OPTION_NUMBER, offsetof(settings, cpu_devices), "CPU devices that divide the cores among them",
     .initial = "1", .least = 1, .most = 256},
    {"cpu-threads", "N", OPTION_NUMBER, offsetof(settings, cpu_threads),
     "threads of each CPU device; 0: its share of the cores", .initial = "0", .most = 4096},
    {"virtual-gpus", "N", OPTION_NUMBER, offsetof(settings, virtual_gpus),
     "GPUs that run on the CPU but have memory of their own; 0: as many as TOWER_VIRTUAL_GPUS says", .initial = "0",
     .most = 256},
    FORMAT_OPTION(settings, format),
    {0},
};

const command devices_command = {
    .name = "devices",
    .summary = "list the devices of this machine",
    .description =
        "Lists the devices a graph can be placed on, by the names that placement takes (/cpu:0 and /gpu:0 for "
        "short), and says why there is no GPU if there is none. Nothing is allocated on any device.\n\n"
        "The options show what the same options of 'tower train' would make.",
    .examples = "tower devices\ntower devices --cpu-devices 2 --virtual-gpus 4\ntower devices --format json",
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
