/* order_log.c - see order_log.h. */
#include "train/order_log.h"

#include "base/array.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT ((size_t)1 << 31)     /* bytes of a log */
#define MOST_BATCHES (INT64_C(1) << 40)
enum { MOST_TOWERS = 1 << 20 };

/* ---- reading ----------------------------------------------------------------------------------------------- */

typedef struct reading {
    const char *path;
    char *at;       /* the next line */
    int64_t line;   /* its number, from 1 */
    tw_error *error;
} reading;

/* Cuts off the next line; NULL at the end. A line that was not ended is not one. */
static char *next_line(reading *r)
{
    char *line = r->at, *end = strchr(line, '\n');
    if (!end)
        return NULL;
    *end = 0;
    r->at = end + 1;
    r->line++;
    return line;
}

static tw_status fail_line(const reading *r, const char *what)
{
    return twi_fail(r->error, TW_DATA_LOSS, "%s, line %" PRId64 ": %s", r->path, r->line, what);
}

/* No line has a byte of zero in it: the rest would be taken for the end. */
static tw_status refuse_zeros(const reading *r, const char *bytes, size_t size)
{
    while (size > 0 && bytes[size - 1] != '\n')
        size--;
    const char *zero = size ? memchr(bytes, 0, size) : NULL;
    reading there = {.path = r->path, .line = 1, .error = r->error};
    for (const char *c = bytes; zero && c < zero; c++)
        there.line += *c == '\n';
    return zero ? fail_line(&there, "a byte of zero") : TW_OK;
}

/* "word NUMBER" at *text, which moves behind it. */
static bool take_number(char **text, const char *word, int64_t least, int64_t most, int64_t *number)
{
    size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0)
        return false;
    char *digits = *text + length, *end;
    errno = 0;
    long long value = strtoll(digits, &end, 10);
    if (end == digits || errno || value < least || value > most || (*end && *end != ' '))
        return false;
    *number = value;
    *text = end;
    return true;
}

static tw_status read_head(reading *r, twi_order_head *head)
{
    char *line = next_line(r);
    int used = 0;
    if (!line || strcmp(line, "tower order 1") != 0)
        return twi_fail(r->error, TW_DATA_LOSS, "%s is not an order of updates: it does not begin with 'tower order 1'",
                        r->path);
    line = next_line(r);
    if (!line || sscanf(line, "model %63s%n", head->model, &used) != 1)
        return fail_line(r, "expected 'model NAME towers N batch N seed N first N'");
    line += used;
    if (!take_number(&line, " towers ", 1, MOST_TOWERS, &head->towers) ||
        !take_number(&line, " batch ", 1, MOST_TOWERS, &head->batch) ||
        !take_number(&line, " seed ", INT64_MIN, INT64_MAX, &head->seed) ||
        !take_number(&line, " first ", 0, MOST_BATCHES, &head->first) || *line)
        return fail_line(r, "expected 'model NAME towers N batch N seed N first N'");
    return TW_OK;
}

/* `free_at[tower]`: the number of updates there were when it could pull again. */
static tw_status read_record(reading *r, char *line, const twi_order_head *head, int64_t update, int64_t *free_at,
                             twi_order_record *record)
{
    char *end;
    int64_t number, tower;
    if (!take_number(&line, "", 0, MOST_BATCHES, &number) ||
        !take_number(&line, " tower ", 0, INT64_MAX, &tower) ||
        !take_number(&line, " pulled ", 0, INT64_MAX, &record->pulled) ||
        !take_number(&line, " batch ", 0, MOST_BATCHES, &record->batch) || strncmp(line, " loss ", 6) != 0)
        return fail_line(r, "expected 'UPDATE tower N pulled N batch N loss X'");
    record->loss = strtof(line + 6, &end);
    if (end == line + 6 || *end)
        return fail_line(r, "expected a number after 'loss'");
    if (number != update)
        return fail_line(r, "updates are not numbered one after the other");
    if (tower >= head->towers)
        return fail_line(r, "there is no such tower");
    if (record->pulled > update)
        return fail_line(r, "variables cannot be pulled after the update that is made of them");
    if (record->pulled < free_at[tower])
        return fail_line(r, "the tower pulled before its update before was made");
    record->tower = (int)tower;
    free_at[tower] = update + 1;
    return TW_OK;
}

tw_status twi_order_log_read(const char *path, twi_order_log *log, tw_error *error)
{
    tw_status status;
    char *bytes = NULL, *line;
    size_t size;
    int64_t *free_at = NULL;
    TWI_ARRAY(twi_order_record) records = {0};
    *log = (twi_order_log){0};
    status = twi_file_read_any(path, LIMIT, &bytes, &size, error);
    if (status != TW_OK)
        return status;
    reading r = {.path = path, .at = bytes, .error = error};
    TWI_TRY(refuse_zeros(&r, bytes, size));
    TWI_TRY(read_head(&r, &log->head));
    free_at = twi_alloc_array((size_t)log->head.towers, sizeof *free_at);
    if (!free_at)
        TWI_LEAVE(twi_fail_memory(error, "reading an order of updates"));
    while ((line = next_line(&r))) {
        twi_order_record record;
        TWI_TRY(read_record(&r, line, &log->head, log->head.first + records.count, free_at, &record));
        if (!twi_push(&records, record))
            TWI_LEAVE(twi_fail_memory(error, "reading an order of updates"));
    }
    log->records = records.items;
    log->count = records.count;
    records.items = NULL;
done:
    twi_free(records.items);
    twi_free(free_at);
    twi_free(bytes);
    return status;
}

void twi_order_log_free(twi_order_log *log)
{
    twi_free(log->records);
    *log = (twi_order_log){0};
}

/* ---- writing ----------------------------------------------------------------------------------------------- */

struct twi_order_writer {
    twi_file_writer *file;
    int64_t update; /* number of the next */
};

static int print_record(char line[160], int64_t update, const twi_order_record *r)
{
    return snprintf(line, 160, "%" PRId64 " tower %d pulled %" PRId64 " batch %" PRId64 " loss %a\n", update, r->tower,
                    r->pulled, r->batch, (double)r->loss);
}

static bool is_same_run(const twi_order_head *a, const twi_order_head *b)
{
    return strcmp(a->model, b->model) == 0 && a->towers == b->towers && a->batch == b->batch && a->seed == b->seed;
}

static tw_status make_directory_of(const char *path, tw_error *error)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return TW_OK;
    char *directory = twi_strdup(path);
    if (!directory)
        return twi_fail_memory(error, "writing an order of updates");
    directory[slash - path] = 0;
    tw_status status = twi_make_directories(directory, error);
    twi_free(directory);
    return status;
}

tw_status twi_order_writer_open(const char *path, const twi_order_head *head, int64_t step, twi_order_writer **result,
                                tw_error *error)
{
    tw_status status;
    char line[160];
    twi_text text = {0};
    twi_order_log before = {0};
    int64_t first = step;
    *result = NULL;
    twi_order_writer *writer = twi_alloc(sizeof *writer);
    if (!writer)
        return twi_fail_memory(error, "writing an order of updates");
    if (twi_order_log_read(path, &before, NULL) == TW_OK && is_same_run(&before.head, head) &&
        before.head.first <= step && before.head.first + before.count >= step)
        first = before.head.first;
    twi_text_printf(&text,
                    "tower order 1\nmodel %s towers %" PRId64 " batch %" PRId64 " seed %" PRId64 " first %" PRId64 "\n",
                    head->model, head->towers, head->batch, head->seed, first);
    for (int64_t i = first; i < step; i++)
        twi_text_append(&text, line, (size_t)print_record(line, i, &before.records[i - first]));
    if (text.failed)
        TWI_LEAVE(twi_fail_memory(error, "writing an order of updates"));
    TWI_TRY(make_directory_of(path, error));
    TWI_TRY(twi_file_replace(path, text.data, text.size, error));
    TWI_TRY(twi_file_append(path, &writer->file, error));
    writer->update = step;
    *result = writer;
    writer = NULL;
done:
    twi_free(writer);
    twi_text_free(&text);
    twi_order_log_free(&before);
    return status;
}

tw_status twi_order_writer_add(twi_order_writer *writer, const twi_order_record *r, tw_error *error)
{
    char line[160];
    twi_file_write(writer->file, line, (size_t)print_record(line, writer->update++, r));
    return twi_file_flush(writer->file, error);
}

void twi_order_writer_close(twi_order_writer *writer)
{
    if (writer)
        twi_file_close(writer->file, false, NULL); /* a write that failed was reported by _add */
    twi_free(writer);
}
