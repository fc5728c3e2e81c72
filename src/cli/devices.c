/* devices.c - `tower devices`: which devices there are, and why there is no GPU. */
#include "command.h"
#include "job.h"
#include "json.h"
#include "translate.h"

#include <string.h>
#include <tower/device.h>

typedef struct settings {
    job job;
    bool links;
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
    for (int i = 0; i < tw_devices_count(devices, NULL); i++)
        if (tw_devices_info(devices, i).parts) {
            printf("\nlogical GPUs: parts of a card, with multiprocessors of their own and one memory's bandwidth for all\n");
            break;
        }
    char text[600];
    const char *why = tw_devices_why_no_gpu(), *why_no_nccl;
    if (why[0])
        printf("\nno real GPU: %s\n", translate(why, text, sizeof text));
    else if (tw_devices_nccl(&why_no_nccl))
        printf("\nNCCL %s reduces between GPUs where it is asked for: --all-reduce-spec nccl\n", tw_devices_nccl(&why));
    else
        printf("\nno NCCL: %s\n", why_no_nccl);
}

/* "CPU:0" */
static const char *short_name(const tw_devices *devices, int i)
{
    const char *name = strstr(tw_devices_info(devices, i).name, "/device:");
    return name ? name + strlen("/device:") : tw_devices_info(devices, i).name;
}

/* A line, or an object, for every two devices, and for copies within one. */
static tw_status print_links(tw_devices *devices, json *out, tw_error *error)
{
    int count = tw_devices_count(devices, NULL);
    if (out)
        json_begin(out, "links", '[');
    else
        printf("\n%-8s %-8s %14s %14s  %s\n", "from", "to", "bandwidth", "latency", "way");
    for (int from = 0; from < count; from++)
        for (int to = 0; to < count; to++) {
            tw_link link;
            tw_status status = tw_devices_measure_link(devices, from, to, &link, error);
            if (status != TW_OK)
                return status;
            if (!out) {
                printf("%-8s %-8s %9.2f GB/s %11.2f us  %s\n", short_name(devices, from), short_name(devices, to),
                       link.bytes_per_second * 1e-9, link.seconds * 1e6, link.direct ? "direct" : "through the host");
                continue;
            }
            json_begin(out, NULL, '{');
            json_text(out, "from", tw_devices_info(devices, from).name);
            json_text(out, "to", tw_devices_info(devices, to).name);
            json_number(out, "bytes_per_second", link.bytes_per_second);
            json_number(out, "seconds", link.seconds);
            json_flag(out, "direct", link.direct);
            json_end(out);
        }
    if (out)
        json_end(out);
    return TW_OK;
}

/* With its links if they are wanted. */
static tw_status print_json(tw_devices *devices, bool links, tw_error *error)
{
    json out = {.file = stdout};
    tw_status status = TW_OK;
    json_begin(&out, NULL, '{');
    json_begin(&out, "devices", '[');
    for (int i = 0; i < tw_devices_count(devices, NULL); i++) {
        tw_device_info info = tw_devices_info(devices, i);
        json_begin(&out, NULL, '{');
        json_text(&out, "name", info.name);
        json_text(&out, "type", info.type);
        json_text(&out, "kind", info.kind);
        json_text(&out, "description", info.description);
        if (info.arithmetic[0])
            json_text(&out, "arithmetic", info.arithmetic);
        json_integer(&out, "threads", info.threads);
        json_integer(&out, "memory_total_bytes", (int64_t)info.memory_total);
        json_integer(&out, "memory_limit_bytes", (int64_t)info.memory_limit);
        json_integer(&out, "memory_used_bytes", (int64_t)info.memory_used);
        if (info.uuid[0]) {
            json_text(&out, "model", info.model);
            json_text(&out, "uuid", info.uuid);
            json_text(&out, "pci", info.pci);
            json_integer(&out, "multiprocessors", info.multiprocessors);
        }
        if (info.parts) {
            json_integer(&out, "part", info.part);
            json_integer(&out, "parts", info.parts);
        }
        json_end(&out);
    }
    json_end(&out);
    if (links)
        status = print_links(devices, &out, error);
    char text[600];
    const char *why = translate(tw_devices_why_no_gpu(), text, sizeof text);
    json_text(&out, "why_no_gpu", why[0] ? why : NULL);
    const char *nccl = tw_devices_nccl(&why);
    json_text(&out, "nccl", nccl);
    json_text(&out, "why_no_nccl", nccl ? NULL : why);
    json_end(&out);
    return status;
}

static int run(const void *given)
{
    const settings *s = given;
    tw_error error = {0};
    tw_status status = TW_OK;
    tw_devices *devices = job_open_devices("devices", &s->job);
    if (!devices)
        return EXIT_FAILED;
    if (s->job.format == FORMAT_JSON)
        status = print_json(devices, s->links, &error);
    else
        print_text(devices);
    if (s->job.format != FORMAT_JSON && s->links)
        status = print_links(devices, NULL, &error);
    tw_devices_destroy(devices);
    return status == TW_OK ? EXIT_DONE : failed("devices", &error);
}

static const option options[] = {
    CPU_DEVICES_OPTION(settings),
    CPU_THREADS_OPTION(settings),
    VIRTUAL_GPUS_OPTION(settings),
    LOGICAL_GPUS_OPTION(settings),
    GPU_MEMORY_OPTIONS(settings),
    {"links", NULL, OPTION_FLAG, offsetof(settings, links),
     "measure copies between every two devices: their bandwidth and their latency. This uses the devices"},
    FORMAT_OPTION(settings, job.format),
    {0},
};

const command devices_command = {
    .name = "devices",
    .summary = "list the devices of this machine",
    .description =
        "Lists the devices a graph can be placed on, by the names that placement takes (/cpu:0 and /gpu:0 for "
        "short), and says why there is no GPU if there is none. Nothing is allocated on any device, unless --links is "
        "given. GPUs are numbered by their places on the PCI bus; in names a GPU's UUID, or the beginning of it, may "
        "stand for its number: gpu:GPU-8a7e0d1c.\n\n"
        "The options show what the same options of 'tower train' would make.",
    .examples = "tower devices\ntower devices --cpu-devices 2 --virtual-gpus 4\ntower devices --links --format json",
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
