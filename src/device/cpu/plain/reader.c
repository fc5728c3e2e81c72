/* reader.c - readers: records of files whose names come from a queue, one after the other.
 *
 * A reader is a resource of the session's. It takes the next name when the file it is in has ended; when there are no
 * more names its end is the queue's. Keys are "FILE:PLACE", as TensorFlow makes them. */
#include "base/file.h"
#include "base/inflate.h"
#include "base/memory.h"
#include "base/tfrecord.h"
#include "device/state/queue.h"
#include "tensor/tensor.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct reader reader;

/* One kind of file. next() points *bytes at the next record of the open file and says where it is, which goes into its
 * key; TW_OUT_OF_RANGE at the end. */
typedef struct format {
    const char *op;
    tw_status (*next)(reader *r, const char **bytes, size_t *size, tw_error *error);
} format;

struct reader {
    const format *format;
    int64_t header, record, footer, hop; /* bytes of a FixedLengthRecordReader */
    const char *packing;                 /* of its files (base/inflate.h) */
    int64_t skipped_lines;               /* at the top of a TextLineReader's files */
    pthread_mutex_t lock;                /* guards all below; one record is read at a time */
    tw_string name;                      /* of the file it is in; no data: none */
    twi_file_reader *file;
    twi_file_window window;
    twi_record_reader *records;          /* instead of `file` and `window`, of a TFRecordReader */
    char *whole;                         /* of a WholeFileReader */
    uint64_t offset;                     /* of what comes next */
    int64_t place;                       /* of the latest record, for its key; -1: the file's name is the key */
    int64_t produced, files_done;
};

/* ---- formats ---------------------------------------------------------------------------------------------------- */

static tw_status end_of_file(tw_error *error)
{
    return twi_fail(error, TW_OUT_OF_RANGE, "no more records");
}

/* A part of a record at the end of a file is ignored. */
static tw_status next_fixed(reader *r, const char **bytes, size_t *size, tw_error *error)
{
    uint64_t end = twi_file_size(r->file);
    if (r->offset == 0)
        r->offset = (uint64_t)r->header;
    if (end < (uint64_t)(r->record + r->footer) || r->offset > end - (uint64_t)(r->record + r->footer))
        return end_of_file(error);
    *size = (size_t)r->record;
    tw_status status = twi_file_look(&r->window, r->offset, *size, bytes, error);
    r->offset += (uint64_t)(r->hop ? r->hop : r->record);
    r->place++;
    return status;
}

static tw_status next_tfrecord(reader *r, const char **bytes, size_t *size, tw_error *error)
{
    r->place = (int64_t)twi_record_offset(r->records);
    return twi_record_next(r->records, bytes, size, error);
}

/* The next line without its end, which is \n or \r\n; what stands after the last one is a line too. */
static tw_status next_raw_line(reader *r, const char **bytes, size_t *size, tw_error *error)
{
    uint64_t end = twi_file_size(r->file), left = end > r->offset ? end - r->offset : 0;
    if (left == 0)
        return end_of_file(error);
    for (uint64_t looked = 4096;; looked *= 2) {
        size_t sees = (size_t)(looked < left ? looked : left);
        tw_status status = twi_file_look(&r->window, r->offset, sees, bytes, error);
        if (status != TW_OK)
            return status;
        const char *stop = memchr(*bytes, '\n', sees);
        if (!stop && sees < left)
            continue;
        *size = stop ? (size_t)(stop - *bytes) : sees;
        r->offset += *size + (stop != NULL);
        *size -= *size && (*bytes)[*size - 1] == '\r';
        r->place++;
        return TW_OK;
    }
}

static tw_status next_line(reader *r, const char **bytes, size_t *size, tw_error *error)
{
    tw_status status = TW_OK;
    while (status == TW_OK && r->place < r->skipped_lines) /* lines are counted from 1 */
        status = next_raw_line(r, bytes, size, error);
    return status == TW_OK ? next_raw_line(r, bytes, size, error) : status;
}

static tw_status next_whole_file(reader *r, const char **bytes, size_t *size, tw_error *error)
{
    if (r->offset)
        return end_of_file(error);
    twi_free(r->whole);
    r->whole = NULL;
    tw_status status = twi_file_read(r->name.data, SIZE_MAX - 1, &r->whole, size, error);
    *bytes = r->whole;
    r->offset = 1;
    r->place = -1;
    return status;
}

/* The name itself is the record. */
static tw_status next_name(reader *r, const char **bytes, size_t *size, tw_error *error)
{
    if (r->offset)
        return end_of_file(error);
    *bytes = r->name.data;
    *size = r->name.size;
    r->offset = 1;
    r->place = -1;
    return TW_OK;
}

static const format *find_format(const char *op)
{
    static const format formats[] = {
        {"FixedLengthRecordReaderV2", next_fixed},
        {"TFRecordReaderV2", next_tfrecord},
        {"TextLineReaderV2", next_line},
        {"WholeFileReaderV2", next_whole_file},
        {"IdentityReaderV2", next_name},
    };
    const format *found = formats;
    while (strcmp(found->op, op) != 0)
        found++;
    return found;
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

static void close_file(reader *r)
{
    twi_file_window_free(&r->window);
    twi_file_reader_close(r->file);
    twi_record_close(r->records);
    twi_free(r->whole);
    twi_free(r->name.data);
    r->file = NULL;
    r->records = NULL;
    r->whole = NULL;
    r->name = (tw_string){0};
    r->offset = 0;
}

static void destroy(void *object)
{
    reader *r = object;
    close_file(r);
    pthread_mutex_destroy(&r->lock);
    twi_free(r);
}

static reader *reader_of(const twi_resource *resource)
{
    return resource && resource->destroy == destroy ? resource->object : NULL;
}

static tw_status check_sizes(const twi_prepare *p, const reader *r)
{
    if (r->format->next == next_fixed && (r->header < 0 || r->record <= 0 || r->footer < 0 || r->hop < 0))
        return twi_fail(p->error, TW_INVALID_ARGUMENT,
                        "%s '%s': header_bytes %lld, record_bytes %lld, footer_bytes %lld, hop_bytes %lld: a record has "
                        "1 or more, the others 0 or more",
                        p->op, p->node, (long long)r->header, (long long)r->record, (long long)r->footer,
                        (long long)r->hop);
    return TW_OK;
}

/* NULL: a way to pack that is not known. */
static const char *packing(const twi_prepare *p)
{
    return twi_packing(twi_attr_string(p->attrs, "encoding", twi_attr_string(p->attrs, "compression_type", "")));
}

static tw_status accepts_reader(const twi_prepare *p)
{
    if (!packing(p))
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s': files may be packed by GZIP or ZLIB, no other way", p->op,
                        p->node);
    return TW_OK;
}

static tw_status prepare_reader(twi_prepare *p)
{
    twi_resource *resource = p->outputs[0].resource;
    const reader *found = reader_of(resource);
    reader made = {
        .format = find_format(p->op),
        .header = twi_attr_int(p->attrs, "header_bytes", 0),
        .record = twi_attr_int(p->attrs, "record_bytes", 0),
        .footer = twi_attr_int(p->attrs, "footer_bytes", 0),
        .hop = twi_attr_int(p->attrs, "hop_bytes", 0),
        .skipped_lines = twi_attr_int(p->attrs, "skip_header_lines", 0),
        .packing = packing(p),
    };
    if (found && found->format == made.format && found->header == made.header && found->record == made.record &&
        found->footer == made.footer && found->hop == made.hop && found->skipped_lines == made.skipped_lines &&
        found->packing == made.packing)
        return TW_OK;
    if (found || resource->object || resource->memory)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its name is taken by something else", p->op, p->node);
    tw_status status = check_sizes(p, &made);
    if (status != TW_OK)
        return status;
    reader *kept = twi_alloc(sizeof *kept);
    if (!kept)
        return twi_fail_memory(p->error, p->node);
    *kept = made;
    pthread_mutex_init(&kept->lock, NULL);
    resource->object = kept;
    resource->destroy = destroy;
    return TW_OK;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static const twi_operand name_operand = {TW_STRING, {0, {0}}, 1, sizeof(tw_string), NULL, NULL};

/* state: the reader. */
static tw_status prepare_use(twi_prepare *p)
{
    p->state = reader_of(p->inputs[0].resource);
    if (!p->state)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input 0 is not the handle of a reader", p->op,
                        p->node);
    return TW_OK;
}

static tw_status prepare_read(twi_prepare *p)
{
    tw_status status = prepare_use(p);
    if (status != TW_OK)
        return status;
    const twi_queue *names = twi_queue_of(p->inputs[1].resource);
    if (!names)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input 1 is not the handle of a queue", p->op,
                        p->node);
    return twi_queue_check(names, &name_operand, 1, -1, p->error);
}

static tw_status open_file(reader *r, tw_error *error)
{
    r->place = r->format->next == next_fixed ? -1 : 0; /* records are counted from 0, lines from 1 */
    if (r->format->next == next_whole_file || r->format->next == next_name)
        return TW_OK;
    if (r->format->next == next_tfrecord)
        return twi_record_open_packed(r->name.data, r->packing, &r->records, error);
    tw_status status = twi_file_open_packed(r->name.data, r->packing, &r->file, error);
    r->window.file = r->file;
    return status;
}

static tw_status set_key(const reader *r, tw_string *key)
{
    char number[24] = "";
    if (r->place >= 0)
        snprintf(number, sizeof number, ":%lld", (long long)r->place);
    size_t digits = strlen(number);
    char *text = twi_resize(NULL, r->name.size + digits + 1);
    if (!text)
        return TW_RESOURCE_EXHAUSTED;
    memcpy(text, r->name.data, r->name.size);
    memcpy(text + r->name.size, number, digits + 1);
    twi_free(key->data);
    *key = (tw_string){text, r->name.size + digits};
    return TW_OK;
}

/* With the lock held. A file that cannot be read is left, so that the next call goes on with the next one. */
static tw_status read_record(reader *r, const twi_run *run, tw_string *key, tw_string *value)
{
    twi_queue *names = twi_queue_of(run->input_operands[1].resource);
    for (;;) {
        tw_error ended = {0};
        const char *bytes;
        size_t size;
        tw_status status = TW_OK;
        if (!r->name.data) {
            status = twi_queue_take_one(names, run, &name_operand, (void *[]){&r->name});
            if (status != TW_OK)
                return status;
            status = open_file(r, &ended);
        }
        if (status == TW_OK)
            status = r->format->next(r, &bytes, &size, &ended);
        if (status == TW_OK) {
            if (set_key(r, key) != TW_OK || !twi_string_set(value, bytes, size))
                return twi_fail_memory(run->error, "reading a record");
            r->produced++;
            return TW_OK;
        }
        close_file(r);
        r->files_done++;
        if (status != TW_OUT_OF_RANGE)
            return twi_fail(run->error, status, "%s", ended.message);
    }
}

static tw_status run_read(const twi_run *r)
{
    reader *state = r->state;
    tw_status status = TW_OK;
    pthread_mutex_lock(&state->lock);
    for (int64_t i = 0; i < r->output_operands[0].elements && status == TW_OK; i++)
        status = read_record(state, r, (tw_string *)r->outputs[0] + i, (tw_string *)r->outputs[1] + i);
    pthread_mutex_unlock(&state->lock);
    return status;
}

static tw_status run_num_records(const twi_run *r)
{
    reader *state = r->state;
    pthread_mutex_lock(&state->lock);
    *(int64_t *)r->outputs[0] = state->produced;
    pthread_mutex_unlock(&state->lock);
    return TW_OK;
}

static tw_status run_num_files(const twi_run *r)
{
    reader *state = r->state;
    pthread_mutex_lock(&state->lock);
    *(int64_t *)r->outputs[0] = state->files_done;
    pthread_mutex_unlock(&state->lock);
    return TW_OK;
}

const twi_kernel twi_cpu_reader_kernels[] = {
    {"FixedLengthRecordReaderV2", "plain", 0, prepare_reader, .accepts = accepts_reader},
    {"TFRecordReaderV2", "plain", 0, prepare_reader, .accepts = accepts_reader},
    {"TextLineReaderV2", "plain", 0, prepare_reader, .accepts = accepts_reader},
    {"WholeFileReaderV2", "plain", 0, prepare_reader, .accepts = accepts_reader},
    {"IdentityReaderV2", "plain", 0, prepare_reader, .accepts = accepts_reader},
    {"ReaderReadV2", "plain", 0, prepare_read, run_read},
    {"ReaderReadUpToV2", "plain", 0, prepare_read, run_read},
    {"ReaderNumRecordsProducedV2", "plain", 0, prepare_use, run_num_records},
    {"ReaderNumWorkUnitsCompletedV2", "plain", 0, prepare_use, run_num_files},
    {0},
};
