/* checkpoint.c - `tower checkpoint ls`, `show` and `verify`: looking at checkpoints without changing them. */
#include "command.h"
#include "json.h"
#include "progress.h" /* bytes_text */
#include "value.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <tower/io.h>

static int64_t total_bytes(const tw_checkpoint *checkpoint)
{
    int64_t total = 0;
    for (int i = 0; i < tw_checkpoint_count(checkpoint); i++)
        total += tw_checkpoint_bytes(checkpoint, i);
    return total;
}

static bool is_directory(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* Not damaged is what may not be read now, or what memory lacks for: it may be whole. */
static const char *what_is_wrong(const tw_error *error)
{
    return error->status == TW_DATA_LOSS ? "damaged" : "not read";
}

/* ---- tower checkpoint ls ----------------------------------------------------------------------------------- */

typedef struct ls_settings {
    const char *directory;
    int format;
} ls_settings;

static void list_one(json *out, const char *path, int64_t step)
{
    tw_error error = {0};
    tw_checkpoint *checkpoint = NULL;
    bool opened = tw_checkpoint_open(path, &checkpoint, &error) == TW_OK;
    int tensors = opened ? tw_checkpoint_count(checkpoint) : 0;
    int64_t bytes = opened ? total_bytes(checkpoint) : 0;
    tw_checkpoint_close(checkpoint);
    if (out) {
        json_begin(out, NULL, '{');
        json_text(out, "path", path);
        json_integer(out, "step", step);
        json_integer(out, "tensors", tensors);
        json_integer(out, "bytes", bytes);
        json_text(out, "error", opened ? NULL : error.message);
        json_end(out);
    } else if (opened) {
        char size[32];
        printf("%10lld %8d %12s  %s\n", (long long)step, tensors, bytes_text((double)bytes, size, sizeof size), path);
    } else {
        printf("%10lld  %s: %s\n", (long long)step, what_is_wrong(&error), error.message);
    }
}

static int list(const void *given)
{
    const ls_settings *s = given;
    tw_error error = {0};
    tw_checkpoint_list *list;
    if (tw_checkpoint_list_open(s->directory, &list, &error) != TW_OK)
        return failed("checkpoint ls", &error);
    json out = {.file = stdout};
    bool as_json = s->format == FORMAT_JSON;
    if (as_json)
        json_begin(&out, NULL, '[');
    else
        printf("%10s %8s %12s  %s\n", "step", "tensors", "size", "path");
    for (int i = 0; i < tw_checkpoint_list_count(list); i++)
        list_one(as_json ? &out : NULL, tw_checkpoint_list_path(list, i), tw_checkpoint_list_step(list, i));
    if (as_json)
        json_end(&out);
    else if (tw_checkpoint_list_count(list) == 0)
        printf("there is none in %s\n", s->directory);
    tw_checkpoint_list_close(list);
    return EXIT_DONE;
}

static const option ls_options[] = {
    {NULL, "DIR", OPTION_DIRECTORY, offsetof(ls_settings, directory), "the directory that a run trained in"},
    FORMAT_OPTION(ls_settings, format),
    {0},
};

const command checkpoint_ls_command = {
    .name = "checkpoint ls",
    .summary = "list the checkpoints of a directory",
    .description = "Lists the checkpoints of a directory by rising step. Their indexes are read and checked, their "
                   "values are not: that is what 'tower checkpoint verify' is for.",
    .examples = "tower checkpoint ls train\ntower checkpoint ls train --format json",
    .of_tasks = TASKS_FIRST,
    .options = ls_options,
    .settings_bytes = sizeof(ls_settings),
    .run = list,
};

/* ---- tower checkpoint show --------------------------------------------------------------------------------- */

typedef struct show_settings {
    const char *path, *tensor;
    int format;
} show_settings;

static void print_tensors_text(const tw_checkpoint *checkpoint)
{
    int widest = 6;
    for (int i = 0; i < tw_checkpoint_count(checkpoint); i++) {
        int length = (int)strlen(tw_checkpoint_name(checkpoint, i));
        widest = length > widest ? length : widest;
    }
    char shape[160], size[32];
    printf("%s\n\n%-*s  %-9s %12s  %s\n", tw_checkpoint_path(checkpoint), widest, "tensor", "type", "size", "shape");
    for (int i = 0; i < tw_checkpoint_count(checkpoint); i++)
        printf("%-*s  %-9s %12s  %s\n", widest, tw_checkpoint_name(checkpoint, i),
               tw_dtype_name(tw_checkpoint_dtype(checkpoint, i)),
               bytes_text((double)tw_checkpoint_bytes(checkpoint, i), size, sizeof size),
               tw_shape_text(tw_checkpoint_shape(checkpoint, i), shape, sizeof shape));
    printf("\n%d tensors, %s\n", tw_checkpoint_count(checkpoint),
           bytes_text((double)total_bytes(checkpoint), size, sizeof size));
}

static void json_shape(json *out, tw_shape shape)
{
    json_begin(out, "shape", '[');
    for (int i = 0; i < shape.rank; i++)
        json_integer(out, NULL, shape.dims[i]);
    json_end(out);
}

static void print_tensors_json(const tw_checkpoint *checkpoint)
{
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_text(&out, "path", tw_checkpoint_path(checkpoint));
    json_integer(&out, "step", tw_checkpoint_step(checkpoint));
    json_begin(&out, "tensors", '[');
    for (int i = 0; i < tw_checkpoint_count(checkpoint); i++) {
        json_begin(&out, NULL, '{');
        json_text(&out, "name", tw_checkpoint_name(checkpoint, i));
        json_text(&out, "type", tw_dtype_name(tw_checkpoint_dtype(checkpoint, i)));
        json_shape(&out, tw_checkpoint_shape(checkpoint, i));
        json_integer(&out, "bytes", tw_checkpoint_bytes(checkpoint, i));
        json_end(&out);
    }
    json_end(&out);
    json_end(&out);
}

/* Of complex numbers their magnitudes'. */
typedef struct statistics {
    double least, most, mean, deviation;
    int64_t not_finite; /* values that the others leave out */
} statistics;

static statistics look_at(const tw_tensor *tensor)
{
    statistics s = {.least = INFINITY, .most = -INFINITY};
    int64_t finite = 0;
    double squares = 0;
    for (int64_t i = 0; i < tw_tensor_elements(tensor); i++) {
        double value = tw_tensor_value(tensor, i);
        if (tw_dtype_is_complex(tw_tensor_dtype(tensor)))
            value = hypot(value, tw_tensor_imaginary(tensor, i));
        if (!isfinite(value)) {
            s.not_finite++;
            continue;
        }
        /* Welford's: a large mean does not swallow a small deviation. */
        double from_mean = value - s.mean;
        s.mean += from_mean / (double)++finite;
        squares += from_mean * (value - s.mean);
        s.least = fmin(s.least, value);
        s.most = fmax(s.most, value);
    }
    s.deviation = finite ? sqrt(squares / (double)finite) : 0;
    return s;
}

enum { SHOWN_VALUES = 8 };

/* Element i of strings, cut, with '?' for what a terminal might obey. */
static const char *string_at(const tw_tensor *tensor, int64_t i, char text[2048])
{
    const tw_string *string = (const tw_string *)tw_tensor_data(tensor) + i;
    snprintf(text, 2048, "%.*s", string->size < 2048 ? (int)string->size : 2047, string->size ? string->data : "");
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
    return text;
}

static void print_strings(const tw_tensor *tensor)
{
    char text[2048];
    for (int64_t i = 0; i < tw_tensor_elements(tensor) && i < SHOWN_VALUES; i++)
        printf("%s'%s'", i ? " " : "values: ", string_at(tensor, i, text));
    puts(tw_tensor_elements(tensor) > SHOWN_VALUES ? " ..." : "");
}

static void print_tensor_text(const char *name, const tw_tensor *tensor)
{
    char shape[160];
    printf("%s: %s %s\n", name, tw_dtype_name(tw_tensor_dtype(tensor)),
           tw_shape_text(tw_tensor_shape(tensor), shape, sizeof shape));
    if (tw_tensor_dtype(tensor) == TW_STRING) {
        print_strings(tensor);
        return;
    }
    statistics s = look_at(tensor);
    fputs(tw_dtype_is_complex(tw_tensor_dtype(tensor)) ? "magnitudes: " : "", stdout);
    printf("least %.9g, most %.9g, mean %.9g, standard deviation %.9g\n", s.least, s.most, s.mean, s.deviation);
    if (s.not_finite)
        printf("%lld of %lld values are infinite or no number\n", (long long)s.not_finite,
               (long long)tw_tensor_elements(tensor));
    for (int64_t i = 0; i < tw_tensor_elements(tensor) && i < SHOWN_VALUES; i++)
        fputs(i ? " " : "values: ", stdout), value_print(tensor, i);
    puts(tw_tensor_elements(tensor) > SHOWN_VALUES ? " ..." : "");
}

static void print_tensor_json(const char *name, const tw_tensor *tensor)
{
    json out = {.file = stdout};
    json_begin(&out, NULL, '{');
    json_text(&out, "name", name);
    json_text(&out, "type", tw_dtype_name(tw_tensor_dtype(tensor)));
    json_shape(&out, tw_tensor_shape(tensor));
    if (tw_tensor_dtype(tensor) == TW_STRING) {
        char text[2048];
        json_begin(&out, "values", '[');
        for (int64_t i = 0; i < tw_tensor_elements(tensor); i++)
            json_text(&out, NULL, string_at(tensor, i, text));
        json_end(&out);
    } else {
        statistics s = look_at(tensor);
        json_number(&out, "least", s.least);
        json_number(&out, "most", s.most);
        json_number(&out, "mean", s.mean);
        json_number(&out, "deviation", s.deviation);
        json_integer(&out, "not_finite", s.not_finite);
        json_begin(&out, "values", '[');
        for (int64_t i = 0; i < tw_tensor_elements(tensor); i++)
            value_json(&out, NULL, tensor, i);
        json_end(&out);
    }
    json_end(&out);
}

static int show(const void *given)
{
    const show_settings *s = given;
    bool as_json = s->format == FORMAT_JSON;
    tw_error error = {0};
    tw_checkpoint *checkpoint;
    tw_tensor *tensor = NULL;
    if (tw_checkpoint_open(s->path, &checkpoint, &error) != TW_OK)
        return failed("checkpoint show", &error);
    int code = EXIT_DONE;
    if (!s->tensor)
        (as_json ? print_tensors_json : print_tensors_text)(checkpoint);
    else if (tw_checkpoint_read(checkpoint, s->tensor, &tensor, &error) == TW_OK)
        (as_json ? print_tensor_json : print_tensor_text)(s->tensor, tensor);
    else
        code = failed("checkpoint show", &error);
    tw_tensor_release(tensor);
    tw_checkpoint_close(checkpoint);
    return code;
}

static const option show_options[] = {
    {NULL, "PATH", OPTION_FILE, offsetof(show_settings, path),
     "a checkpoint, such as train/model.ckpt-1000; or a directory: its latest complete one"},
    {"tensor", "NAME", OPTION_TEXT, offsetof(show_settings, tensor),
     "show this tensor instead: its statistics and first values (with --format json, all values)"},
    FORMAT_OPTION(show_settings, format),
    {0},
};

const command checkpoint_show_command = {
    .name = "checkpoint show",
    .summary = "show what a checkpoint holds",
    .description = "Shows the tensors of a checkpoint: name, type, shape and size; or one of them. Checkpoints that "
                   "TensorFlow wrote are read too.",
    .examples = "tower checkpoint show train\n"
                "tower checkpoint show train/model.ckpt-1000 --tensor conv1/weights\n"
                "tower checkpoint show train --tensor tower/optimizer",
    .of_tasks = TASKS_FIRST,
    .options = show_options,
    .settings_bytes = sizeof(show_settings),
    .run = show,
};

/* ---- tower checkpoint verify ------------------------------------------------------------------------------- */

typedef struct verify_settings {
    const char *path;
    int format;
} verify_settings;

static bool verify_one(const verify_settings *s, const char *path)
{
    tw_error error = {0};
    bool whole = tw_checkpoint_verify(path, &error) == TW_OK;
    if (s->format == FORMAT_JSON) {
        json out = {.file = stdout};
        json_begin(&out, NULL, '{');
        json_text(&out, "path", path);
        json_flag(&out, "whole", whole);
        json_text(&out, "error", whole ? NULL : error.message);
        json_end(&out);
    } else if (whole) {
        printf("%s: whole\n", path);
    } else {
        printf("%s: %s: %s\n", path, what_is_wrong(&error), error.message);
    }
    return whole;
}

static int verify(const void *given)
{
    const verify_settings *s = given;
    if (!is_directory(s->path))
        return verify_one(s, s->path) ? EXIT_DONE : EXIT_FAILED;
    tw_error error = {0};
    tw_checkpoint_list *list;
    if (tw_checkpoint_list_open(s->path, &list, &error) != TW_OK)
        return failed("checkpoint verify", &error);
    bool all_whole = true;
    int count = tw_checkpoint_list_count(list);
    for (int i = 0; i < count; i++)
        all_whole &= verify_one(s, tw_checkpoint_list_path(list, i));
    tw_checkpoint_list_close(list);
    if (count == 0)
        all_whole = complain("checkpoint verify", "there is no checkpoint in '%s'", s->path);
    return all_whole ? EXIT_DONE : EXIT_FAILED;
}

static const option verify_options[] = {
    {NULL, "PATH", OPTION_FILE, offsetof(verify_settings, path),
     "a checkpoint, such as train/model.ckpt-1000; or a directory: all that lie in it"},
    FORMAT_OPTION(verify_settings, format),
    {0},
};

const command checkpoint_verify_command = {
    .name = "checkpoint verify",
    .summary = "read every byte of a checkpoint against its checksums",
    .description = "Reads checkpoints from their first to their last byte and compares them with the checksums in "
                   "them. Fails if one is damaged or cut short, and says where. With --format json a line is written "
                   "for each.",
    .examples = "tower checkpoint verify train\ntower checkpoint verify train/model.ckpt-1000",
    .of_tasks = TASKS_FIRST,
    .options = verify_options,
    .settings_bytes = sizeof(verify_settings),
    .run = verify,
};
