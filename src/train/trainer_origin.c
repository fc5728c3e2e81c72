/* trainer_origin.c - of what a checkpoint was made: model, data set, devices, version. Whoever goes on from it with
 * something else is told what that changes, before anything runs; where bits were promised it has to be allowed. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <tower/io.h>

#include "train/trainer.h"

#define MODEL "tower/model"
#define DATA_SET "tower/data_set"
#define DATA_DIGEST "tower/data_digest"
#define DEVICES "tower/devices"
#define ARITHMETIC "tower/arithmetic"
#define VERSION "tower/version"
#define REVISION "tower/revision"
#define PROCESSOR "tower/processor"

enum { TEXT_SIZE = 256 };

/* The text that the checkpoint has under `key`; "" if it has none. */
static tw_status read_text(tw_checkpoint *checkpoint, const char *key, char text[TEXT_SIZE], tw_error *error)
{
    tw_tensor *saved = NULL;
    text[0] = 0;
    if (!checkpoint || tw_checkpoint_find(checkpoint, key) < 0)
        return TW_OK;
    tw_status status = tw_checkpoint_read(checkpoint, key, &saved, error);
    if (status != TW_OK)
        return status;
    const tw_string *string = tw_tensor_data(saved);
    if (tw_tensor_dtype(saved) != TW_STRING || tw_tensor_elements(saved) != 1 || string->size >= TEXT_SIZE)
        status = twi_fail(error, TW_DATA_LOSS, "checkpoint %s: '%s' is not what a trainer saves",
                          tw_checkpoint_path(checkpoint), key);
    else
        snprintf(text, TEXT_SIZE, "%.*s", (int)string->size, string->size ? string->data : "");
    tw_tensor_release(saved);
    return status;
}

tw_status twi_origin_check_model(const tw_trainer *t, tw_checkpoint *checkpoint, tw_error *error)
{
    char before[TEXT_SIZE];
    tw_status status = read_text(checkpoint, MODEL, before, error);
    if (status == TW_OK && before[0] && strcmp(before, t->model.name) != 0)
        status = twi_fail(error, TW_INVALID_ARGUMENT, "checkpoint %s was made by model %s, but %s was asked for",
                          tw_checkpoint_path(checkpoint), before, t->model.name);
    return status;
}

/* ---- devices --------------------------------------------------------------------------------------------------- */

/* What decides the bits that a device makes: "cpu with 2 threads", "virtual", "cuda (NVIDIA H200)". */
static void say_device(const tw_device_info *info, char text[TEXT_SIZE])
{
    if (info->model[0])
        snprintf(text, TEXT_SIZE, "%s (%s)", info->kind, info->model);
    else if (tw_device_is(info->name, "CPU"))
        snprintf(text, TEXT_SIZE, "%s with %d thread%s", info->kind, info->threads, info->threads == 1 ? "" : "s");
    else
        snprintf(text, TEXT_SIZE, "%s", info->kind);
}

/* By which libraries and instructions: "oneDNN 3.1.1 with the instructions AVX2". */
static void say_arithmetic(const tw_device_info *info, char text[TEXT_SIZE])
{
    snprintf(text, TEXT_SIZE, "%s", info->arithmetic);
}

/* What is said of the devices that towers run on, each thing once. */
static void say_of_towers(const tw_trainer *t, void (*say)(const tw_device_info *, char *), char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < t->towers.count && used < size; i++) {
        char one[TEXT_SIZE];
        int number = tw_devices_find(t->devices, tw_trainer_tower_device(t, i));
        if (number < 0)
            continue;
        tw_device_info info = tw_devices_info(t->devices, number);
        say(&info, one);
        if (!strstr(text, one))
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? " and " : "", one);
    }
}

char *tw_trainer_device_text(const tw_trainer *t, char *text, size_t size)
{
    TWI_NEED_OR(text, NULL);
    if (size)
        text[0] = 0;
    TWI_NEED_OR(t, text);
    if (size)
        say_of_towers(t, say_device, text, size);
    return text;
}

static tw_status check_devices(tw_trainer *t, tw_checkpoint *checkpoint, bool accept, tw_error *error)
{
    static const struct {
        const char *key, *how, *what;
        void (*say)(const tw_device_info *, char *);
    } rows[] = {{DEVICES, "on", "devices of kind", say_device}, {ARITHMETIC, "by", "arithmetic of", say_arithmetic}};
    tw_status status = TW_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == TW_OK; i++) {
        char before[TEXT_SIZE], now[TEXT_SIZE];
        status = read_text(checkpoint, rows[i].key, before, error);
        say_of_towers(t, rows[i].say, now, sizeof now);
        if (status != TW_OK || !before[0] || !now[0] || strcmp(before, now) == 0)
            continue;
        if (!accept)
            return twi_fail(error, TW_INVALID_ARGUMENT,
                            "checkpoint %s was made %s %s %s, and this run has %s: sums would be added in another "
                            "order, and the run would not end with the bits that it would have ended with. "
                            "options.accept_other_bits goes on all the same",
                            tw_checkpoint_path(checkpoint), rows[i].how, rows[i].what, before, now);
        twi_recipe_note(&t->recipe, rows[i].what, now, before);
    }
    return status;
}

/* ---- data ------------------------------------------------------------------------------------------------------ */

static tw_status check_data(tw_trainer *t, tw_checkpoint *checkpoint, const tw_dataset *dataset, bool accept,
                            tw_error *error)
{
    char name[TEXT_SIZE], digest[TEXT_SIZE];
    tw_status status = read_text(checkpoint, DATA_SET, name, error);
    if (status == TW_OK)
        status = read_text(checkpoint, DATA_DIGEST, digest, error);
    if (status != TW_OK || !digest[0] || strcmp(digest, tw_dataset_digest(dataset)) == 0)
        return status;
    const char *now = tw_dataset_name(dataset), *same = strcmp(name, now) == 0 ? "another " : "";
    if (!accept)
        return twi_fail(
            error, TW_INVALID_ARGUMENT,
            "checkpoint %s was trained on %s (SHA-256 %.12s...), and this is %s%s (%.12s..., %lld examples): from "
            "here on the network would learn from that. options.accept_other_bits goes on all the same",
            tw_checkpoint_path(checkpoint), name, digest, same, now, tw_dataset_digest(dataset),
            (long long)tw_dataset_count(dataset));
    char text[2][TEXT_SIZE + 32];
    snprintf(text[0], sizeof text[0], "%s (SHA-256 %.12s...)", now, tw_dataset_digest(dataset));
    snprintf(text[1], sizeof text[1], "%s (%.12s...)", name, digest);
    twi_recipe_note(&t->recipe, "data set", text[0], text[1]);
    return TW_OK;
}

tw_status twi_data_agree(tw_devices *devices, const tw_dataset *dataset, const char *what, tw_error *error)
{
    char text[TEXT_SIZE];
    if (tw_devices_tasks(devices) < 2)
        return TW_OK;
    snprintf(text, sizeof text, "%s, %lld examples, SHA-256 %.12s...", tw_dataset_name(dataset),
             (long long)tw_dataset_count(dataset), tw_dataset_digest(dataset));
    return tw_devices_agree(devices, text, what, error);
}

/* ---- all of it ------------------------------------------------------------------------------------------------ */

/* What may be otherwise, and is only said. */
static tw_status note_change(tw_trainer *t, tw_checkpoint *checkpoint, const char *key, const char *what,
                             const char *now, tw_error *error)
{
    char before[TEXT_SIZE];
    tw_status status = read_text(checkpoint, key, before, error);
    if (status == TW_OK && before[0] && *now && strcmp(before, now) != 0)
        twi_recipe_note(&t->recipe, what, now, before);
    return status;
}

tw_status twi_origin_check(tw_trainer *t, tw_checkpoint *checkpoint, const tw_dataset *dataset, bool accept,
                           tw_error *error)
{
    tw_status status;
    if (!checkpoint)
        return TW_OK;
    TWI_TRY(check_data(t, checkpoint, dataset, accept, error));
    TWI_TRY(check_devices(t, checkpoint, accept, error));
    TWI_TRY(note_change(t, checkpoint, VERSION, "version", tw_version(), error));
    TWI_TRY(note_change(t, checkpoint, REVISION, "revision", tw_revision(), error));
    TWI_TRY(note_change(t, checkpoint, PROCESSOR, "processor (it may round otherwise)", tw_processor_info().name,
                        error));
done:
    return status;
}

tw_status twi_origin_to_save(const tw_trainer *t, tw_named_tensor tensors[TWI_NUM_ORIGINS], tw_error *error)
{
    char devices[TEXT_SIZE], arithmetic[TEXT_SIZE];
    say_of_towers(t, say_device, devices, sizeof devices);
    say_of_towers(t, say_arithmetic, arithmetic, sizeof arithmetic);
    const char *const texts[TWI_NUM_ORIGINS][2] = {{MODEL, t->model.name},
                                                   {DATA_SET, tw_dataset_name(t->dataset)},
                                                   {DATA_DIGEST, tw_dataset_digest(t->dataset)},
                                                   {DEVICES, devices},
                                                   {ARITHMETIC, arithmetic},
                                                   {VERSION, tw_version()},
                                                   {REVISION, tw_revision()},
                                                   {PROCESSOR, tw_processor_info().name}};
    tw_status status = TW_OK;
    for (int i = 0; i < TWI_NUM_ORIGINS; i++) {
        tensors[i] = (tw_named_tensor){texts[i][0], tw_tensor_string(texts[i][1], strlen(texts[i][1]))};
        if (!tensors[i].tensor)
            status = twi_fail_memory(error, "saving a checkpoint");
    }
    return status;
}
