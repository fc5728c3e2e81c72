/* program.c - targets that read what the program reads: command lines, files of options, run.json. */
#include "fuzz.h"

#include "cli/command.h"
#include "cli/config.h"
#include "cli/run_file.h"
#include "report/report.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 64 };

static void parse(const command *command, const presets *presets, int count, char **words)
{
    void *settings = calloc(1, command->settings_bytes + 1);
    if (!settings)
        abort();
    if (!command->refusals || !options_refused(command->name, command->refusals, count, words))
        options_parse(command->name, command->options, presets, count, words, settings);
    options_free(command->options, settings);
    free(settings);
}

void fuzz_options(const uint8_t *bytes, size_t size)
{
    char *text = malloc(size + 1), *words[MOST_WORDS], *rest = text;
    int count = 0, used = 0;
    if (!text)
        abort();
    memcpy(text, bytes, size);
    text[size] = 0;
    while (rest && count < MOST_WORDS)
        words[count++] = strsep(&rest, "\n");
    const command *named = find_command(count, words, &used);
    parse(named ? named : find_named("fuzz", "train", NULL), NULL, count - used, words + used);
    free(text);
}

static void take(presets *presets)
{
    parse(find_named("fuzz", "train", NULL), presets, 0, NULL);
    presets_free(presets);
}

void fuzz_config(const uint8_t *bytes, size_t size)
{
    presets presets = {0};
    config_read("fuzz", fuzz_file("config", bytes, size), NULL, &presets);
    take(&presets);
}

void fuzz_run_file(const uint8_t *bytes, size_t size)
{
    presets presets = {0};
    bool bad = false;
    fuzz_file("run.json", bytes, size);
    cJSON *run = run_file_read("fuzz", fuzz_folder(), &bad);
    if (run)
        run_file_presets(run, fuzz_folder(), NULL, &presets);
    cJSON_Delete(run);
    take(&presets);
}

/* Without Graphviz, which is a program of its own. */
void fuzz_report(const uint8_t *bytes, size_t size)
{
    static const char *const names[] = {"run.json", "step.json", "eval.jsonl", "events.out.tfevents.1.fuzz"};
    numbers n = {bytes, bytes + size};
    tw_error error = {0};
    const char *folder = fuzz_folder();
    setenv("PATH", "", 1);
    for (int i = 0; i < 4; i++) {
        numbers part = next_part(&n);
        fuzz_file(names[i], part.at, (size_t)(part.end - part.at));
    }
    FILE *page = fopen("/dev/null", "w");
    if (!page)
        abort();
    report_write(&folder, 1, page, &error);
    fclose(page);
}
