/* version.c - `tower version`: of the program, the library and what it stands on. */
#include "command.h"
#include "json.h"

#include <tower/device.h>

typedef struct settings {
    int format;
} settings;

#ifdef __SANITIZE_ADDRESS__
#define SANITIZER "address"
#elif defined(__SANITIZE_THREAD__)
#define SANITIZER "thread"
#else
#define SANITIZER ((const char *)NULL)
#endif

static void print_text(void)
{
    printf("tower %s", tw_version());
    printf(*tw_revision() ? ", revision %s\n\n" : "\n\n", tw_revision());
    for (int i = 0; tw_component_at(i).name; i++) {
        tw_component part = tw_component_at(i);
        printf("  %-12s %-10s %s\n", part.name, part.version[0] ? part.version : "left out", part.purpose);
    }
    const char *why, *nccl = tw_devices_nccl(&why);
    printf("  %-12s %-10s reductions between GPUs%s%s\n", "NCCL", nccl ? nccl : "none", nccl ? "" : ": ",
           nccl ? "" : why);
    printf("  %-12s %-10s this program was built with it\n", "compiler", __VERSION__);
    if (SANITIZER)
        printf("  %-12s %-10s slow, finds errors\n", "sanitizer", SANITIZER);
}

static void print_json(void)
{
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_text(&out, "version", tw_version());
    json_text(&out, "revision", *tw_revision() ? tw_revision() : NULL);
    json_integer(&out, "version_number", tw_version_number());
    json_begin(&out, "components", '[');
    for (int i = 0; tw_component_at(i).name; i++) {
        tw_component part = tw_component_at(i);
        json_begin(&out, NULL, '{');
        json_text(&out, "name", part.name);
        json_text(&out, "version", part.version[0] ? part.version : NULL);
        json_text(&out, "purpose", part.purpose);
        json_end(&out);
    }
    json_end(&out);
    const char *why, *nccl = tw_devices_nccl(&why);
    json_text(&out, "nccl", nccl);
    json_text(&out, "why_no_nccl", nccl ? NULL : why);
    json_text(&out, "compiler", __VERSION__);
    json_text(&out, "sanitizer", SANITIZER);
    json_end(&out);
}

static int run(const void *given)
{
    const settings *s = given;
    if (s->format == FORMAT_JSON)
        print_json();
    else
        print_text();
    return EXIT_DONE;
}

static const option options[] = {
    FORMAT_OPTION(settings, format),
    {0},
};

const command version_command = {
    .name = "version",
    .summary = "show the version, and what this build stands on",
    .description = "Shows the version of Tower and those of the libraries it runs with, and which optional parts this "
                   "build was made without.",
    .examples = "tower version\ntower version --format json",
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
