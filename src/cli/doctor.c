/* doctor.c - `tower doctor`: what is here and what is not, whether training works, and what to do.
 * Lives here:  libraries, devices, plug-ins, a training of two steps. The machine: doctor_machine.c; files:
 *              doctor_files.c; how it is shown: findings.c. */
#include "clock.h"
#include "command.h"
#include "findings.h"
#include "job.h"
#include "progress.h" /* bytes_text */
#include "translate.h"

#include <stdlib.h>
#include <string.h>
#include <tower/trainer.h>

typedef struct settings {
    int format;
} settings;

static void look_at_libraries(findings *all)
{
    for (int i = 0; tw_component_at(i).name; i++) {
        tw_component part = tw_component_at(i);
        bool there = part.version[0] != 0;
        finding *f = find(all, "libraries", part.name, there ? VERDICT_OK : VERDICT_NONE, "%s%s%s (%s)",
                          there ? part.version : "left out", part.path[0] ? " " : "", part.path, part.purpose);
        if (!there)
            advise(f,
                   "only needed for %s; on Debian and Ubuntu: apt-get install libcurl4, or build with "
                   "libcurl4-openssl-dev",
                   part.purpose);
    }
}

/* ---- devices ----------------------------------------------------------------------------------------------- */

static void look_at_driver(findings *all)
{
    char line[256] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "re");
    if (file && !fgets(line, sizeof line, file))
        *line = 0;
    if (file)
        fclose(file);
    line[strcspn(line, "\n")] = 0;
    find(all, "devices", "driver", *line ? VERDICT_OK : VERDICT_NONE, "%s",
         *line ? line : "none of NVIDIA's is loaded");
}

/* Returns how many there are. */
static int look_at_plugins(findings *all)
{
    int i = 0;
    for (tw_plugin plugin; (plugin = tw_plugin_at(i)).path; i++) {
        const char *name = strrchr(plugin.path, '/');
        finding *f = find(all, "devices", name ? name + 1 : plugin.path, plugin.refusal ? VERDICT_WARNING : VERDICT_OK,
                          "%s", plugin.refusal ? plugin.refusal : plugin.path);
        if (plugin.refusal)
            advise(f, "rebuild and install it together with this library, or take it away: %s", plugin.path);
    }
    if (i == 0)
        find(all, "devices", "plug-ins", VERDICT_NONE,
             "none, so no real GPUs: libtower_NAME.so is looked for in $TOWER_PLUGIN_PATH, beside libtower, and where "
             "the "
             "loader looks");
    return i;
}

static void look_at_devices(findings *all, tw_devices **devices)
{
    tw_error error = TW_NO_ERROR;
    char text[600];
    if (tw_devices_create(NULL, devices, &error) != TW_OK) {
        advise(find(all, "devices", "opening them", VERDICT_BROKEN, "%s", error.message),
               "the environment is read here: TOWER_VIRTUAL_GPUS, TOWER_PLUGIN_PATH, CUDA_VISIBLE_DEVICES; 'tower "
               "devices' "
               "says the same");
        return;
    }
    for (int i = 0; i < tw_devices_count(*devices, NULL); i++) {
        tw_device_info info = tw_devices_info(*devices, i);
        const char *name = strstr(info.name, "/device:");
        char card[160] = "", memory[48] = "", bytes[32];
        job_card_text(*devices, info.name, card, sizeof card);
        if (info.memory_total)
            snprintf(memory, sizeof memory, ", %s", bytes_text((double)info.memory_total, bytes, sizeof bytes));
        find(all, "devices", name ? name + strlen("/device:") : info.name, VERDICT_OK, "%s%s",
             *card ? card : info.description, *card ? "" : memory);
    }
    look_at_driver(all);
    if (look_at_plugins(all) == 0)
        return; /* which says why there is no real GPU, nor NCCL */
    const char *why = tw_devices_why_no_gpu();
    if (why[0])
        find(all, "devices", "real GPUs", VERDICT_NONE, "%s", translate(why, text, sizeof text));
    const char *about, *nccl = tw_devices_nccl(&about);
    find(all, "devices", "NCCL", nccl ? VERDICT_OK : VERDICT_NONE, "%s%s%s", nccl ? nccl : "", nccl ? ", " : "", about);
}

/* ---- whether training works -------------------------------------------------------------------------------- */

enum { TRIAL_STEPS = 2 };

static tw_status try_training(tw_devices *devices, const tw_dataset *data, char *where, size_t size, tw_error *error)
{
    tw_trainer *trainer = NULL;
    tw_trainer_step_result result;
    tw_trainer_options options = {
        .model = tw_model_find("mnist"), .dataset = data, .devices = devices, .batch = 8, .seed = 1};
    tw_status status = tw_trainer_create(&options, &trainer, error);
    if (status == TW_OK)
        status = tw_trainer_run_steps(trainer, TRIAL_STEPS, &result, error);
    for (int i = 0; status == TW_OK && i < tw_trainer_towers(trainer); i++) {
        const char *name = strstr(tw_trainer_tower_device(trainer, i), "/device:");
        size_t used = strlen(where);
        snprintf(where + used, size - used, "%s%s", i ? ", " : "", name ? name + strlen("/device:") : "");
    }
    tw_trainer_destroy(trainer);
    return status;
}

static void look_at_training(findings *all, tw_devices *devices)
{
    tw_error error = TW_NO_ERROR;
    tw_dataset *data = NULL;
    char where[256] = "";
    double begin = seconds_now();
    tw_status status = tw_dataset_synthetic(256, 28, 28, 1, 10, 1, &data, &error);
    if (status == TW_OK)
        status = try_training(devices, data, where, sizeof where, &error);
    tw_dataset_destroy(data);
    if (status == TW_OK)
        find(all, "training", "a trial", VERDICT_OK, "%d steps of mnist on %s, planned and run in %.2f s", TRIAL_STEPS,
             where, seconds_now() - begin);
    else
        advise(find(all, "training", "a trial", VERDICT_BROKEN, "%s", error.message),
               "if a GPU is named here, see whether 'tower train --num-gpus 0' works, which leaves it alone");
}

static int run(const void *given)
{
    const settings *s = given;
    tw_devices *devices = NULL;
    findings *all = calloc(1, sizeof *all);
    if (!all) {
        complain("doctor", "out of memory");
        return EXIT_FAILED;
    }
    look_at_libraries(all);
    look_at_machine(all);
    look_at_devices(all, &devices);
    look_at_files(all);
    if (devices)
        look_at_training(all, devices);
    tw_devices_destroy(devices);
    if (s->format == FORMAT_JSON)
        findings_json(all);
    else
        findings_text(all);
    int code = worst(all) == VERDICT_BROKEN ? EXIT_FAILED : EXIT_DONE;
    free(all);
    return code;
}

static const option options[] = {
    FORMAT_OPTION(settings, format),
    {0},
};

const command doctor_command = {
    .name = "doctor",
    .summary = "look at what is installed and found, and whether training works",
    .description =
        "Looks at libraries, processor, memory, limits of the container, devices, plug-ins, data sets and programs "
        "beside, measures for a moment how many cores are really to be had, trains two steps, and says what to do. "
        "Behind each line's mark: ok; - it is not here, and need not be; ! training works, but not as well as it "
        "might; FAILS training does not work.\n\n"
        "Nothing is written, and nothing is asked of the network. It is what to send along with a question.",
    .examples = "tower doctor\ntower doctor --format json",
    .exit_codes = "1 also when training does not work",
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
