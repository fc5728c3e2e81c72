/* record_input.c - RecordInput: batches of records from many files, in an order that is drawn.
 *
 * What a node has read lies in a resource of the session's. Files come in an order of each epoch, records by way of a
 * buffer from which any one is taken; all records of an epoch come before the next one begins, which may stand within a
 * batch. TensorFlow reads several files at once, so that its order is never the same; here it follows from the seed. */
#include "base/array.h"
#include "base/inflate.h"
#include "base/philox.h"
#include "base/tfrecord.h"
#include "device/kernel.h"
#include "tensor/tensor.h"

#include <glob.h>
#include <pthread.h>
#include <string.h>

typedef struct source {
    const char *packing;
    int64_t room;         /* records in the buffer at most */
    double shift;         /* by which share of the files an epoch begins later than the one before */
    pthread_mutex_t lock; /* guards all below */
    glob_t files;
    size_t *order; /* [files] of this epoch */
    size_t next;   /* in the order */
    int64_t epoch;
    bool any;                  /* record in this epoch */
    twi_record_reader *reader; /* NULL: no file is open */
    TWI_ARRAY(tw_string) buffer;
    twi_philox random;
} source;

static void destroy(void *object)
{
    source *s = object;
    if (!s)
        return;
    for (int i = 0; i < s->buffer.count; i++)
        twi_free(s->buffer.items[i].data);
    twi_array_free(&s->buffer);
    twi_record_close(s->reader);
    twi_free(s->order);
    globfree(&s->files);
    pthread_mutex_destroy(&s->lock);
    twi_free(s);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static tw_status make(const twi_prepare *p, twi_resource *resource)
{
    const char *pattern = twi_attr_string(p->attrs, "file_pattern", "");
    const char *packing = twi_packing(twi_attr_string(p->attrs, "compression_type", ""));
    if (!packing)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': no compression of files is called '%s'", p->op,
                        p->node, twi_attr_string(p->attrs, "compression_type", ""));
    source *s = twi_alloc(sizeof *s);
    if (!s)
        return twi_fail_memory(p->error, p->node);
    s->packing = packing;
    s->room = twi_attr_int(p->attrs, "file_buffer_size", 10000);
    s->shift = (double)twi_attr_float(p->attrs, "file_shuffle_shift_ratio", 0);
    s->random = twi_philox_seed((uint64_t)twi_attr_int(p->attrs, "file_random_seed", 301), 0);
    pthread_mutex_init(&s->lock, NULL);
    bool found = glob(pattern, 0, NULL, &s->files) == 0 && s->files.gl_pathc;
    s->order = found ? twi_alloc_array(s->files.gl_pathc, sizeof *s->order) : NULL;
    tw_status status = !found
                           ? twi_fail(p->error, TW_NOT_FOUND, "%s '%s': Found no files at %s", p->op, p->node, pattern)
                       : !s->order ? twi_fail_memory(p->error, p->node)
                                   : TW_OK;
    if (status != TW_OK) {
        destroy(s);
        return status;
    }
    s->next = s->files.gl_pathc; /* an epoch begins with the first record */
    resource->object = s;
    resource->destroy = destroy;
    return TW_OK;
}

/* state: the source. */
static tw_status prepare(twi_prepare *p)
{
    twi_resource *resource = p->resources->get(p->resources, p->node);
    if (!resource)
        return twi_fail_memory(p->error, p->node);
    tw_status status = resource->object ? TW_OK : make(p, resource);
    if (status == TW_OK && resource->destroy != destroy)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': that name is taken by something else", p->op, p->node);
    p->state = resource->object;
    return status;
}

/* ---- reading, with the lock held --------------------------------------------------------------------------------- */

static size_t draw(source *s, size_t below)
{
    uint32_t block[4];
    twi_philox_next(&s->random, block);
    return (size_t)((block[0] | (uint64_t)block[1] << 32) % below);
}

static void begin_epoch(source *s)
{
    size_t count = s->files.gl_pathc;
    for (size_t i = 0; i < count; i++)
        s->order[i] = i;
    for (size_t i = count; i > 1; i--) {
        size_t other = draw(s, i), file = s->order[i - 1];
        s->order[i - 1] = s->order[other];
        s->order[other] = file;
    }
    size_t later = (size_t)(s->shift * (double)s->epoch * (double)count) % count;
    for (size_t i = 0; i < later; i++) { /* the first becomes the last */
        size_t file = s->order[0];
        memmove(s->order, s->order + 1, sizeof *s->order * (count - 1));
        s->order[count - 1] = file;
    }
    s->next = 0;
    s->any = false;
    s->epoch++;
}

/* Reads into the buffer until it is full or the files are at their end. */
static tw_status fill(const twi_run *r, source *s)
{
    while (s->buffer.count < s->room && (s->reader || s->next < s->files.gl_pathc)) {
        const char *path = s->files.gl_pathv[s->order[s->next - (s->reader != NULL)]], *bytes;
        size_t size;
        tw_status status = TW_OK;
        if (!s->reader) {
            status = twi_record_open_packed(path, s->packing, &s->reader, r->error);
            s->next += status == TW_OK;
        } else {
            status = twi_record_next(s->reader, &bytes, &size, r->error);
            if (status == TW_OUT_OF_RANGE) {
                twi_record_close(s->reader);
                s->reader = NULL;
                continue;
            }
            tw_string record = {0};
            if (status == TW_OK && (!twi_string_set(&record, bytes, size) || !twi_push(&s->buffer, record))) {
                twi_free(record.data);
                status = twi_fail_memory(r->error, r->node);
            }
            s->any = true;
        }
        if (status != TW_OK)
            return status;
    }
    return TW_OK;
}

static tw_status take(const twi_run *r, source *s, tw_string *to)
{
    tw_status status = TW_OK;
    if (s->epoch) /* else nothing is open */
        status = fill(r, s);
    while (status == TW_OK && s->buffer.count == 0) {
        if (s->epoch && !s->any)
            return twi_fail(r->error, TW_OUT_OF_RANGE, "'%s': the files have no records", r->node);
        begin_epoch(s);
        status = fill(r, s);
    }
    if (status != TW_OK)
        return status;
    tw_string *taken = &s->buffer.items[draw(s, (size_t)s->buffer.count)];
    twi_free(to->data);
    *to = *taken;
    *taken = s->buffer.items[--s->buffer.count];
    return TW_OK;
}

static tw_status run(const twi_run *r)
{
    source *s = r->state;
    tw_status status = TW_OK;
    pthread_mutex_lock(&s->lock);
    for (int64_t i = 0; i < r->output_operands[0].elements && status == TW_OK; i++)
        status = take(r, s, (tw_string *)r->outputs[0] + i);
    pthread_mutex_unlock(&s->lock);
    return status;
}

const twi_kernel twi_cpu_record_input_kernels[] = {
    {"RecordInput", "plain", 0, prepare, run},
    {0},
};
