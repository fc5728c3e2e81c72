/* pictures.c - see pictures.h. */
#include "data/pictures.h"

#include "base/cores.h"
#include "base/memory.h"
#include "base/room.h"
#include "base/status.h"
#include "base/thread.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

enum { CHANNELS = 3 };           /* at most */
static const double PART = 1.0 / 3; /* of the memory that is left is for pictures, where nobody says how much */

enum state { ABSENT, COMING, THERE };

struct twi_pictures {
    TWI_ARRAY(twi_found) entries;
    tw_tensor *arrays[2]; /* of entries without a path: for training, for testing */
    int64_t first;        /* the entry of image 0 */
    int64_t kept;         /* there is room for so many, from image 0 on */
    _Atomic uint8_t *states; /* [kept] enum state */
    _Atomic int64_t num_there;
    pthread_mutex_t adding;
    bool added;
    uint64_t sums[CHANNELS], squares[CHANNELS]; /* of bytes: exact up to 2^48 pixels */
};

static tw_status no_memory(tw_error *error)
{
    return twi_fail_memory(error, "reading images");
}

/* For how many of the images there is room. */
static int64_t room_for(const tw_dataset *d, const tw_dataset_options *options)
{
    double part = PART / (options->processes > 1 ? options->processes : 1);
    double most = options->image_memory > 0 ? (double)options->image_memory : part * twi_memory_left("");
    double fit = floor(most / (double)twi_image_bytes(d));
    return fit < (double)d->count ? (int64_t)fit : d->count;
}

tw_status twi_pictures_create(twi_gathering *g, const tw_dataset_options *options, tw_dataset *d, tw_error *error)
{
    bool later = (options->when_needed || options->sizes_only) && !g->images[0] && !g->images[1];
    twi_pictures *p = d->pictures = twi_alloc(sizeof *p);
    if (!p)
        return no_memory(error);
    pthread_mutex_init(&p->adding, NULL);
    memcpy(&p->entries, &g->entries, sizeof p->entries);
    memcpy(p->arrays, g->images, sizeof p->arrays);
    memset(&g->entries, 0, sizeof g->entries);
    memset(g->images, 0, sizeof g->images);
    p->kept = later ? room_for(d, options) : d->count;
    tw_status status = twi_dataset_make_room(d, p->kept, error);
    if (status != TW_OK && later) { /* not so much after all: then without */
        p->kept = 0;
        status = twi_dataset_make_room(d, p->kept, error);
    }
    p->states = twi_alloc_array((size_t)p->kept + 1, sizeof *p->states);
    return status == TW_OK && !p->states ? no_memory(error) : status;
}

void twi_pictures_destroy(twi_pictures *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->entries.count; i++)
        twi_free(p->entries.items[i].path);
    twi_array_free(&p->entries);
    tw_tensor_release(p->arrays[0]);
    tw_tensor_release(p->arrays[1]);
    twi_free(p->states);
    pthread_mutex_destroy(&p->adding);
    twi_free(p);
}

void twi_pictures_skip(twi_pictures *p, int64_t count)
{
    p->first += count;
}

bool twi_pictures_are_rows(const twi_pictures *p)
{
    return p->arrays[0] || p->arrays[1];
}

/* ---- one ------------------------------------------------------------------------------------------------------- */

tw_status twi_take_pixels(const uint8_t *from, int height, int width, int has, int channels, twi_image *image,
                          tw_error *error)
{
    size_t pixels = (size_t)height * (size_t)width;
    *image = (twi_image){height, width, channels, twi_resize(NULL, pixels * (size_t)channels + 1)};
    if (!image->pixels)
        return no_memory(error);
    for (size_t i = 0; i < pixels; i++, from += has)
        for (int c = 0; c < channels; c++)
            image->pixels[i * (size_t)channels + (size_t)c] = has == 1 ? from[0]
                                                              : channels == 1
                                                                  ? twi_image_grey(from[0], from[1], from[2])
                                                                  : from[c];
    return TW_OK;
}

/* A row of an array. */
static tw_status take_row(const twi_pictures *p, const twi_found *e, int channels, twi_image *image, tw_error *error)
{
    const tw_tensor *images = p->arrays[e->test && p->arrays[1] ? 1 : 0];
    tw_shape shape = tw_tensor_shape(images);
    int has = shape.rank == 4 ? (int)shape.dims[3] : 1;
    const uint8_t *row = (const uint8_t *)tw_tensor_data(images) + e->index * shape.dims[1] * shape.dims[2] * has;
    return twi_take_pixels(row, (int)shape.dims[1], (int)shape.dims[2], has, channels, image, error);
}

static tw_status decode(const tw_dataset *d, int64_t index, uint8_t *pixels, tw_error *error)
{
    const twi_pictures *p = d->pictures;
    const twi_found *e = &p->entries.items[p->first + index];
    twi_image image = {0};
    int side = d->height > d->width ? d->height : d->width;
    tw_status status = e->is_record ? twi_record_image(e, d->channels, 2 * side, &image, error)
                       : e->path    ? twi_image_read(e->path, d->channels, 2 * side, &image, error)
                                    : take_row(p, e, d->channels, &image, error);
    if (status == TW_OK)
        status = twi_image_fit(&image, d->height, d->width, pixels, error);
    twi_image_free(&image);
    return status;
}

tw_status twi_picture(const tw_dataset *d, int64_t index, uint8_t *scratch, const uint8_t **pixels, tw_error *error)
{
    twi_pictures *p = d->pictures;
    uint8_t *place = index < p->kept ? d->images + (size_t)index * twi_image_bytes(d) : NULL;
    uint8_t state = place ? atomic_load(&p->states[index]) : COMING;
    bool mine = state == ABSENT && atomic_compare_exchange_strong(&p->states[index], &state, COMING);
    tw_status status = TW_OK;
    *pixels = state == THERE || mine ? place : scratch;
    if (state != THERE)
        status = decode(d, index, mine ? place : scratch, error);
    if (mine) {
        atomic_fetch_add(&p->num_there, status == TW_OK);
        atomic_store(&p->states[index], status == TW_OK ? THERE : ABSENT);
    }
    return status;
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

bool twi_pictures_are_there(const tw_dataset *d)
{
    return atomic_load(&d->pictures->num_there) >= d->count;
}

bool twi_pictures_sums(const tw_dataset *d, int channel, double *sum, double *squares)
{
    twi_pictures *p = d->pictures;
    pthread_mutex_lock(&p->adding);
    bool added = p->added;
    *sum = (double)p->sums[channel];
    *squares = (double)p->squares[channel];
    pthread_mutex_unlock(&p->adding);
    return added;
}

/* How a reading of all goes. */
struct reading {
    const tw_dataset *data;
    tw_read_progress *progress;
    void *user;
    _Atomic int64_t next, done;
    atomic_bool stop;
    bool cancelled;    /* this and what follows under `adding` */
    int64_t failed_at; /* or the count */
    tw_error failure;
    uint64_t sums[CHANNELS], squares[CHANNELS];
};

static void fail_at(struct reading *r, int64_t index, const tw_error *reason)
{
    atomic_store(&r->stop, true);
    pthread_mutex_lock(&r->data->pictures->adding);
    if (index < r->failed_at) {
        r->failed_at = index;
        r->failure = *reason;
    }
    pthread_mutex_unlock(&r->data->pictures->adding);
}

static void tell(struct reading *r)
{
    twi_pictures *p = r->data->pictures;
    int64_t now = atomic_fetch_add(&r->done, 1) + 1;
    if (!r->progress || (now % 64 != 0 && now != r->data->count))
        return;
    pthread_mutex_lock(&p->adding);
    if (!r->progress(r->user, "reading images", now, r->data->count)) {
        r->cancelled = true;
        atomic_store(&r->stop, true);
    }
    pthread_mutex_unlock(&p->adding);
}

static void read_one(struct reading *r, int64_t index, uint8_t *scratch)
{
    const tw_dataset *d = r->data;
    const uint8_t *pixels;
    uint64_t sums[CHANNELS] = {0}, squares[CHANNELS] = {0};
    tw_error reason = {0};
    if (twi_picture(d, index, scratch, &pixels, &reason) != TW_OK) {
        fail_at(r, index, &reason);
        return;
    }
    for (size_t i = 0; i < twi_image_bytes(d); i += (size_t)d->channels)
        for (int c = 0; c < d->channels; c++) {
            sums[c] += pixels[i + (size_t)c];
            squares[c] += (uint64_t)pixels[i + (size_t)c] * pixels[i + (size_t)c];
        }
    pthread_mutex_lock(&d->pictures->adding);
    for (int c = 0; c < d->channels; c++) {
        r->sums[c] += sums[c];
        r->squares[c] += squares[c];
    }
    pthread_mutex_unlock(&d->pictures->adding);
    tell(r);
}

static void *read_some(void *reading)
{
    struct reading *r = reading;
    tw_error reason = {0};
    uint8_t *scratch = twi_resize(NULL, twi_image_bytes(r->data));
    if (!scratch) {
        no_memory(&reason);
        fail_at(r, 0, &reason);
    }
    for (int64_t i; !atomic_load(&r->stop) && (i = atomic_fetch_add(&r->next, 1)) < r->data->count;)
        read_one(r, i, scratch);
    twi_free(scratch);
    return NULL;
}

/* Whoever started before an error was found ends, so that of two the first is told. */
static void read_all(struct reading *r)
{
    int most = twi_usable_cores() - 1, count = 0;
    pthread_t *threads = twi_alloc_array((size_t)most + 1, sizeof *threads);
    while (threads && count < most && /* fewer will do */
           twi_thread_start(&threads[count], "tower-read", NULL, 0, read_some, r, NULL) == TW_OK)
        count++;
    read_some(r);
    while (count-- > 0)
        pthread_join(threads[count], NULL);
    twi_free(threads);
}

tw_status twi_pictures_read(const tw_dataset *d, tw_read_progress *progress, void *user, tw_error *error)
{
    twi_pictures *p = d->pictures;
    struct reading r = {.data = d, .progress = progress, .user = user, .failed_at = d->count};
    read_all(&r);
    if (r.failed_at < d->count)
        return twi_fail(error, r.failure.status, "%s", r.failure.message);
    if (r.cancelled)
        return twi_fail(error, TW_CANCELLED, "reading the images in '%s' was stopped", d->files.items[0]);
    pthread_mutex_lock(&p->adding);
    memcpy(p->sums, r.sums, sizeof p->sums);
    memcpy(p->squares, r.squares, sizeof p->squares);
    p->added = true;
    pthread_mutex_unlock(&p->adding);
    return TW_OK;
}

/* ---- what they are --------------------------------------------------------------------------------------------- */

static void hash_number(twi_sha256 *sha, uint64_t number)
{
    uint8_t bytes[8]; /* little-endian on any machine */
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    twi_sha256_add(sha, bytes, sizeof bytes);
}

void twi_pictures_hash(const tw_dataset *d, twi_sha256 *sha)
{
    const twi_pictures *p = d->pictures;
    for (int64_t i = 0; i < d->count; i++) {
        const twi_found *e = &p->entries.items[p->first + i];
        struct stat about = {0};
        if (stat(e->path, &about) != 0)
            about.st_size = -1;
        hash_number(sha, e->key);
        hash_number(sha, (uint64_t)about.st_size);
    }
}
