/* name.c - see name.h.
 *
 * The grammar is the runtime's of TensorFlow, with what its Python front end forgives: no leading slash ("gpu:0"), any
 * case for cpu and gpu, no number after them ("/gpu" asks for any GPU). Other types are case-sensitive. "*" asks for
 * nothing. A component that comes twice counts as it was written last. */
#define _GNU_SOURCE /* strchrnul */
#include "device/name.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* [A-Za-z][A-Za-z0-9_]*, or "*" for "". False if it is anything else or too long for `out`. */
static bool parse_word(const char *text, size_t length, char *out, size_t size)
{
    if (length == 1 && text[0] == '*') {
        out[0] = 0;
        return true;
    }
    if (length == 0 || length >= size || !is_letter(text[0]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!is_letter(text[i]) && !is_digit(text[i]) && text[i] != '_')
            return false;
    memcpy(out, text, length);
    out[length] = 0;
    return true;
}

/* A decimal number that fits an int, or "*" for -1. */
static bool parse_number(const char *text, size_t length, int *out)
{
    if (length == 1 && text[0] == '*') {
        *out = -1;
        return true;
    }
    int64_t number = 0;
    for (size_t i = 0; i < length; i++) {
        if (!is_digit(text[i]))
            return false;
        number = number * 10 + (text[i] - '0');
        if (number > INT_MAX)
            return false;
    }
    *out = (int)number;
    return length > 0;
}

/* "GPU-8a7e...", hexadecimal digits and dashes after the first four, or the beginning of one. */
static bool parse_uuid(const char *text, size_t length, char *out, size_t size)
{
    if (length < 5 || length >= size || strncasecmp(text, "GPU-", 4) != 0 ||
        strspn(text + 4, "0123456789abcdefABCDEF-") < length - 4)
        return false;
    memcpy(out, text, length);
    out[length] = 0;
    return true;
}

/* The part after "device:", or a legacy "gpu:0". Returns what is wrong with it, or NULL. */
static const char *parse_device(const char *text, size_t length, twi_device_name *name)
{
    const char *colon = memchr(text, ':', length);
    size_t type_length = colon ? (size_t)(colon - text) : length;
    if (!parse_word(text, type_length, name->type, sizeof name->type))
        return "a device type is a letter followed by letters, digits or '_', at most 31 of them, or '*'";
    if (strcasecmp(name->type, "cpu") == 0)
        strcpy(name->type, "CPU");
    else if (strcasecmp(name->type, "gpu") == 0)
        strcpy(name->type, "GPU");
    name->id = -1;
    name->uuid[0] = 0;
    if (colon && !parse_number(colon + 1, length - type_length - 1, &name->id) &&
        (strcmp(name->type, "GPU") != 0 ||
         !parse_uuid(colon + 1, length - type_length - 1, name->uuid, sizeof name->uuid)))
        return "a device's id is a number or '*'";
    if (!name->type[0] && name->id >= 0)
        return "a device's id needs a type before it";
    return NULL;
}

/* One component between slashes. Returns what is wrong with it, or NULL. */
static const char *parse_component(const char *text, size_t length, twi_device_name *name)
{
    const char *colon = memchr(text, ':', length);
    size_t key = colon ? (size_t)(colon - text) : length;
    const char *value = colon ? colon + 1 : "";
    size_t value_length = colon ? length - key - 1 : 0;

    if (length == 0)
        return "there is nothing between two slashes, or after the last";
    if (key == 3 && memcmp(text, "job", 3) == 0)
        return parse_word(value, value_length, name->job, sizeof name->job)
                   ? NULL
                   : "a job is a letter followed by letters, digits or '_', at most 63 of them, or '*'";
    if (key == 7 && memcmp(text, "replica", 7) == 0)
        return parse_number(value, value_length, &name->replica) ? NULL : "a replica is a number or '*'";
    if (key == 4 && memcmp(text, "task", 4) == 0)
        return parse_number(value, value_length, &name->task) ? NULL : "a task is a number or '*'";
    if (key == 6 && memcmp(text, "device", 6) == 0)
        return parse_device(value, value_length, name);
    if (key == 3 && (strncasecmp(text, "cpu", 3) == 0 || strncasecmp(text, "gpu", 3) == 0))
        return parse_device(text, length, name);
    return "its parts are /job:NAME, /replica:N, /task:N and /device:TYPE:N, or /cpu:N and /gpu:N for short";
}

tw_status twi_device_name_parse(const char *text, twi_device_name *name, tw_error *error)
{
    twi_device_name parsed = TWI_NO_DEVICE;
    const char *part = text[0] == '/' ? text + 1 : text;
    while (*part) {
        const char *end = strchrnul(part, '/');
        const char *problem = parse_component(part, (size_t)(end - part), &parsed);
        if (!problem && *end && !end[1])
            problem = parse_component("", 0, &parsed);
        if (problem)
            return twi_fail(error, TW_INVALID_ARGUMENT, "Malformed device specification '%.256s%s': %s", text,
                            strlen(text) > 256 ? "..." : "", problem);
        part = *end ? end + 1 : end;
    }
    *name = parsed;
    return TW_OK;
}

char *twi_device_name_print(const twi_device_name *name, char *text, size_t size)
{
    char job[80] = "", replica[32] = "", task[32] = "", id[48] = "*", device[96] = "";
    if (name->job[0])
        snprintf(job, sizeof job, "/job:%s", name->job);
    if (name->replica >= 0)
        snprintf(replica, sizeof replica, "/replica:%d", name->replica);
    if (name->task >= 0)
        snprintf(task, sizeof task, "/task:%d", name->task);
    if (name->id >= 0)
        snprintf(id, sizeof id, "%d", name->id);
    else if (name->uuid[0])
        snprintf(id, sizeof id, "%s", name->uuid);
    if (name->type[0])
        snprintf(device, sizeof device, "/device:%s:%s", name->type, id);
    snprintf(text, size, "%s%s%s%s", job, replica, task, device);
    return text;
}

twi_device_name twi_device_name_override(const twi_device_name *outer, const twi_device_name *inner)
{
    twi_device_name name = *outer;
    if (inner->job[0])
        memcpy(name.job, inner->job, sizeof name.job);
    if (inner->replica >= 0)
        name.replica = inner->replica;
    if (inner->task >= 0)
        name.task = inner->task;
    if (inner->type[0]) {
        memcpy(name.type, inner->type, sizeof name.type);
        if (strcmp(name.type, "GPU") != 0) /* only they have one */
            name.uuid[0] = 0;
    }
    if (inner->id >= 0 || inner->uuid[0]) {
        name.id = inner->id;
        memcpy(name.uuid, inner->uuid, sizeof name.uuid);
    }
    return name;
}

static tw_status incompatible(const char *what, const twi_device_name *a, const twi_device_name *b, tw_error *error)
{
    char text_a[192], text_b[192];
    return twi_fail(error, TW_INVALID_ARGUMENT, "Cannot merge devices with incompatible %s: '%s' and '%s'", what,
                    twi_device_name_print(a, text_a, sizeof text_a), twi_device_name_print(b, text_b, sizeof text_b));
}

static bool differ(int a, int b)
{
    return a >= 0 && b >= 0 && a != b;
}

/* Neither is the beginning of the other. */
static bool uuids_differ(const char *a, const char *b)
{
    size_t length = strlen(a) < strlen(b) ? strlen(a) : strlen(b);
    return strncasecmp(a, b, length) != 0;
}

tw_status twi_device_name_merge(const twi_device_name *a, const twi_device_name *b, bool soft, twi_device_name *out,
                                tw_error *error)
{
    if (a->job[0] && b->job[0] && strcmp(a->job, b->job) != 0)
        return incompatible("jobs", a, b, error);
    if (differ(a->replica, b->replica))
        return incompatible("replicas", a, b, error);
    if (differ(a->task, b->task))
        return incompatible("tasks", a, b, error);
    bool types_differ = a->type[0] && b->type[0] && strcmp(a->type, b->type) != 0;
    if (types_differ && !soft)
        return incompatible("types", a, b, error);
    bool ids_differ = differ(a->id, b->id) || uuids_differ(a->uuid, b->uuid);
    if (ids_differ && !types_differ && !soft)
        return incompatible("ids", a, b, error);

    twi_device_name merged = twi_device_name_override(a, b);
    if (types_differ)
        merged.type[0] = 0;
    merged.id = b->id >= 0 ? b->id : a->id; /* of one the number and of the other the UUID: both must be the device's */
    memcpy(merged.uuid, strlen(b->uuid) > strlen(a->uuid) ? b->uuid : a->uuid, sizeof merged.uuid);
    if (types_differ || ids_differ) {
        merged.id = -1;
        merged.uuid[0] = 0;
    }
    *out = merged;
    return TW_OK;
}

bool twi_device_name_matches(const twi_device_name *spec, const twi_device_name *device)
{
    return (spec->task < 0 || spec->task == device->task) && (spec->id < 0 || spec->id == device->id) &&
           (spec->replica < 0 || spec->replica == device->replica) &&
           (!spec->job[0] || strcmp(spec->job, device->job) == 0) &&
           (!spec->type[0] || strcmp(spec->type, device->type) == 0) &&
           (!spec->uuid[0] || strncasecmp(spec->uuid, device->uuid, strlen(spec->uuid)) == 0);
}
