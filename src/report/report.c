/* report.c - the page: its frame, and the data of each run. */
#define _GNU_SOURCE /* memmem */
#include "report.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Made from page.html, page.css and page.js. */
extern const unsigned char report_page_html[], report_page_css[], report_page_js[];
extern const size_t report_page_html_size, report_page_css_size, report_page_js_size;

tw_status report_fail(tw_error *error, tw_status status, const char *format, ...)
{
    va_list arguments;
    if (error) {
        error->status = status;
        va_start(arguments, format);
        vsnprintf(error->message, sizeof error->message, format, arguments);
        va_end(arguments);
    }
    return status;
}

/* Bytes that are no UTF-8 become question marks, so that the page is a text whatever a folder is called. */
void report_text(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text) {
        unsigned char c = (unsigned char)*text;
        int length = c < 0x80                ? 1
                     : c >= 0xC2 && c < 0xE0 ? 2
                     : c >= 0xE0 && c < 0xF0 ? 3
                     : c >= 0xF0 && c < 0xF5 ? 4
                                             : 0;
        for (int i = 1; i < length; i++)
            length = ((unsigned char)text[i] & 0xC0) == 0x80 ? length : 0;
        if (length == 0)
            fputc('?', out);
        else if (c < 0x20 || c == '"' || c == '\\')
            fprintf(out, "\\u%04x", c);
        else
            fwrite(text, 1, (size_t)length, out);
        text += length ? length : 1;
    }
    fputc('"', out);
}

/* ---- files of a run -------------------------------------------------------------------------------------------- */

/* The whole of a file, ended by a 0; *text NULL: it is not there. What is there and cannot be read is an error, for a
 * page without it would look like one of a run that has none. */
static tw_status read_whole(const char *directory, const char *name, char **text, tw_error *error)
{
    char path[PATH_MAX], block[1 << 14];
    size_t size = 0;
    struct stat about;
    *text = NULL;
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return report_fail(error, TW_INVALID_ARGUMENT, "the path of '%s' in '%s' is too long", name, directory);
    if (stat(path, &about) == 0 && S_ISFIFO(about.st_mode)) /* whoever opens it waits until somebody writes to it */
        return report_fail(error, TW_FAILED_PRECONDITION, "'%s' is a pipe, a file was expected", path);
    FILE *in = fopen(path, "re"), *out = in ? open_memstream(text, &size) : NULL;
    if (!in && errno == ENOENT)
        return TW_OK;
    bool good = in && out;
    for (size_t got; good && (got = fread(block, 1, sizeof block, in)) > 0;)
        good = fwrite(block, 1, got, out) == got;
    good = good && !ferror(in);
    int reason = errno;
    if (out)
        good = fclose(out) == 0 && good;
    if (in)
        fclose(in);
    if (good)
        return TW_OK;
    free(*text);
    *text = NULL;
    return report_fail(error, TW_UNAVAILABLE, "cannot read '%s': %s", path, strerror(reason));
}

static tw_status read_json(const char *directory, const char *name, cJSON **json, tw_error *error)
{
    char *text;
    tw_status status = read_whole(directory, name, &text, error);
    *json = text ? cJSON_Parse(text) : NULL;
    free(text);
    return status;
}

static void write_json(const cJSON *json, FILE *out)
{
    char *text = json ? cJSON_PrintUnformatted(json) : NULL;
    fputs(text ? text : "null", out);
    cJSON_free(text);
}

/* eval.jsonl: an object a line, of each evaluation; all but the last without their matrix. */
static tw_status write_evaluations(const char *directory, FILE *out, tw_error *error)
{
    char *text;
    tw_status status = read_whole(directory, "eval.jsonl", &text, error);
    int written = 0;
    fputs("[", out);
    for (char *line = text; line && *line;) {
        char *end = line + strcspn(line, "\n"), *next = end + (*end == '\n');
        *end = 0;
        cJSON *json = cJSON_Parse(line);
        if (json) {
            if (*next)
                cJSON_DeleteItemFromObjectCaseSensitive(json, "confusion");
            fputs(written++ ? "," : "", out);
            write_json(json, out);
        }
        cJSON_Delete(json);
        line = next;
    }
    fputs("]", out);
    free(text);
    return status;
}

/* ---- a step ---------------------------------------------------------------------------------------------------- */

static void write_member(const cJSON *object, const char *name, FILE *out)
{
    fprintf(out, ",\"%s\":", name);
    write_json(cJSON_GetObjectItemCaseSensitive(object, name), out);
}

/* Nodes that the timeline speaks of, by their number: [name, op, kernel, device]. */
static void write_span_nodes(const cJSON *step, FILE *out)
{
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(step, "nodes"), *node;
    int number = 0, written = 0;
    fputs(",\"nodes\":{", out);
    cJSON_ArrayForEach(node, nodes)
    {
        enum { NAME, OP, DEVICE, KERNEL, FATE, STEP = 1 }; /* ORDER NODE, and tw_fate */
        const cJSON *fate = cJSON_GetArrayItem(node, FATE);
        if (cJSON_IsNumber(fate) && fate->valueint == STEP) {
            fprintf(out, "%s\"%d\":[", written++ ? "," : "", number);
            write_json(cJSON_GetArrayItem(node, NAME), out);
            fputs(",", out);
            write_json(cJSON_GetArrayItem(node, OP), out);
            fputs(",", out);
            write_json(cJSON_GetArrayItem(node, KERNEL), out);
            fputs(",", out);
            write_json(cJSON_GetArrayItem(node, DEVICE), out);
            fputs("]", out);
        }
        number++;
    }
    fputs("}", out);
}

static void write_step(const cJSON *step, FILE *out)
{
    static const char *const members[] = {"examples", "towers",    "seconds", "kinds",
                                          "spans",    "waterfall", "memory",  "reasons"};
    if (!step) {
        fputs("null", out);
        return;
    }
    fputs("{\"step\":", out);
    write_json(cJSON_GetObjectItemCaseSensitive(step, "step"), out);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        write_member(step, members[i], out);
    write_span_nodes(step, out);
    fputs(",\"placement\":", out);
    report_placement(step, out);
    fputs("}", out);
}

/* ---- a run ----------------------------------------------------------------------------------------------------- */

/* The folder's own name: the last one of the path. */
static void write_name(const char *directory, FILE *out)
{
    char real[PATH_MAX], *path = realpath(directory, real) ? real : NULL;
    const char *slash = path ? strrchr(path, '/') : NULL;
    report_text(out, slash && slash[1] ? slash + 1 : directory);
}

static tw_status write_run(const char *directory, FILE *out, tw_error *error)
{
    int files = 0;
    cJSON *run = NULL, *step = NULL;
    tw_status status = read_json(directory, "run.json", &run, error);
    if (status == TW_OK)
        status = read_json(directory, "step.json", &step, error);
    fputs("{\"name\":", out);
    write_name(directory, out);
    fputs(",\"directory\":", out);
    report_text(out, directory);
    fputs(",", out);
    if (status == TW_OK)
        status = report_curves(directory, out, &files, error);
    if (status == TW_OK && files == 0 && !run && !step)
        status = report_fail(error, TW_NOT_FOUND,
                             "'%s' is no train directory: it has no event log, no run.json, no step.json", directory);
    if (status == TW_OK) {
        fputs(",\"run\":", out);
        write_json(run, out);
        fputs(",\"evaluations\":", out);
        status = write_evaluations(directory, out, error);
        fputs(",\"pictures\":", out);
        report_pictures(run, out);
        fputs(",\"step\":", out);
        write_step(step, out);
        fputs("}", out);
    }
    cJSON_Delete(run);
    cJSON_Delete(step);
    return status;
}

/* ---- the page -------------------------------------------------------------------------------------------------- */

/* In a page's script "<" may end it, so it is written another way. */
static void write_escaped(const char *json, size_t size, FILE *out)
{
    for (size_t i = 0; i < size; i++)
        if (json[i] == '<')
            fputs("\\u003c", out);
        else
            fputc(json[i], out);
}

/* The frame, with what stands for style, data and script replaced by them. */
static void write_page(const char *data, size_t size, FILE *out)
{
    const char *at = (const char *)report_page_html, *end = at + report_page_html_size;
    while (at < end) {
        const char *mark = memmem(at, (size_t)(end - at), "{{", 2);
        fwrite(at, 1, mark ? (size_t)(mark - at) : (size_t)(end - at), out);
        if (!mark)
            return;
        if (strncmp(mark, "{{css}}", 7) == 0)
            fwrite(report_page_css, 1, report_page_css_size, out);
        else if (strncmp(mark, "{{js}}", 6) == 0)
            fwrite(report_page_js, 1, report_page_js_size, out);
        else
            write_escaped(data, size, out);
        at = strstr(mark, "}}") + 2;
    }
}

tw_status report_write(const char *const *directories, int count, FILE *out, tw_error *error)
{
    char *data = NULL, made[64];
    size_t size = 0;
    tw_status status = TW_OK;
    time_t now = time(NULL);
    struct tm local;
    FILE *text = open_memstream(&data, &size);
    if (!text)
        return report_fail(error, TW_RESOURCE_EXHAUSTED, "out of memory");
    strftime(made, sizeof made, "%Y-%m-%d %H:%M", localtime_r(&now, &local));
    fprintf(text, "{\"tower\":\"%s\",\"made\":\"%s\",\"runs\":[", tw_version(), made);
    for (int i = 0; i < count && status == TW_OK; i++) {
        fputs(i ? "," : "", text);
        status = write_run(directories[i], text, error);
    }
    fputs("]}", text);
    if (fclose(text) != 0 && status == TW_OK)
        status = report_fail(error, TW_RESOURCE_EXHAUSTED, "out of memory");
    if (status == TW_OK)
        write_page(data, size, out);
    free(data);
    return status;
}
