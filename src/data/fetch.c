/* fetch.c - getting a data set's official files into a directory.
 * Lives here:  which files, sizes, hashes and places; what is there already, what must be checked, tried again or
 *              given up; the lock against two fetches at once.
 * Never here:  the transfer itself (download.c), archives (unpack.c). */
#include "data/fetch.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/sha256.h"
#include "base/status.h"
#include "data/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* Sizes and hashes are those of the files as their authors publish them; the hashes are the ones that public programs
 * which load these sets agree on. */
static const twi_fetch_set known_sets[] = {
    {
        .name = "cifar10",
        .title = "CIFAR-10",
        .places = {"https://www.cs.toronto.edu/~kriz"},
        .num_files = 1,
        .files = {{"cifar-10-binary.tar.gz", 170052171,
                   "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
        .folder = TWI_CIFAR10_FOLDER,
        .members = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
                    "test_batch.bin"},
        .member_size = 30730000,
    },
    {
        .name = "mnist",
        .title = "MNIST",
        .places = {"https://ossci-datasets.s3.amazonaws.com/mnist",
                   "https://storage.googleapis.com/cvdf-datasets/mnist"},
        .num_files = 4,
        .files =
            {{"train-images-idx3-ubyte.gz", 9912422,
              "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
             {"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
             {"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
             {"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}},
    },
    {
        .name = "fashion-mnist",
        .title = "Fashion-MNIST",
        .places = {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
                   "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"},
        .num_files = 4,
        .files =
            {{"train-images-idx3-ubyte.gz", 26421880,
              "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
             {"train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
             {"t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
             {"t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}},
    },
};

enum { TRIES = 3 };     /* at one place, as long as each brings us further */
enum { LOOK_MS = 100 }; /* between two looks whether another fetch has ended */

typedef struct fetch {
    const twi_fetch_set *set;
    const char *directory;
    const char *places[4]; /* ends in NULL */
    tw_fetch_progress *progress;
    void *user;
} fetch;

static tw_status hash_file(const char *path, char text[TWI_SHA256_TEXT], tw_error *error)
{
    enum { CHUNK = 1 << 16 };
    twi_file_reader *reader = NULL;
    twi_sha256 sha;
    tw_status status;
    uint8_t *chunk = twi_alloc(CHUNK);
    if (!chunk)
        return twi_fail_memory(error, "checking a file");
    twi_sha256_init(&sha);
    TWI_TRY(twi_file_open(path, &reader, error));
    for (uint64_t at = 0, size = twi_file_size(reader); at < size; at += CHUNK) {
        size_t some = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        TWI_TRY(twi_file_read_at(reader, at, chunk, some, error));
        twi_sha256_add(&sha, chunk, some);
    }
    twi_sha256_text(&sha, text);
done:
    twi_file_reader_close(reader);
    twi_free(chunk);
    return status;
}

/* TW_DATA_LOSS if what lies at path is not that file; `what` says for the message where it came from. */
static tw_status check_file(const twi_fetch_file *file, const char *path, const char *what, tw_error *error)
{
    char found[TWI_SHA256_TEXT];
    int64_t size;
    tw_status status;
    TWI_TRY(twi_data_size(path, &size, error));
    if (size != file->size)
        return twi_fail(error, TW_DATA_LOSS, "%s is not the official %s: it has %lld bytes, expected %lld", what,
                        file->name, (long long)size, (long long)file->size);
    TWI_TRY(hash_file(path, found, error));
    if (strcmp(found, file->sha256) != 0)
        status = twi_fail(error, TW_DATA_LOSS, "%s is not the official %s: its SHA-256 is %s, expected %s", what,
                          file->name, found, file->sha256);
done:
    return status;
}

/* From one place, with as many tries as make sense. */
static tw_status download_from(const fetch *f, const twi_fetch_file *file, const char *url, const char *part,
                               tw_error *error)
{
    int64_t there, gained = 0;
    tw_status status = TW_OK;
    for (int try = 0; try < TRIES; try++) {
        bool resumed = twi_data_size(part, &there, NULL) == TW_OK && there > 0;
        status = twi_download(url, part, file->name, file->size, f->progress, f->user, &gained, error);
        if (status != TW_OK) {
            if (status != TW_UNAVAILABLE || gained == 0)
                break;
            continue;
        }
        status = check_file(file, part, url, error);
        if (status != TW_DATA_LOSS)
            break;
        twi_files()->unlink(part);
        if (!resumed) /* otherwise its beginning may have been at fault */
            break;
    }
    return status;
}

static tw_status download(const fetch *f, const twi_fetch_file *file, const char *path, tw_error *error)
{
    char part[TWI_PATH_SIZE], url[TWI_PATH_SIZE];
    tw_status status = TW_UNAVAILABLE;
    if (snprintf(part, sizeof part, "%s.part", path) >= (int)sizeof part)
        return twi_fail(error, TW_INVALID_ARGUMENT, "the data directory's name is too long");
    for (int i = 0; f->places[i]; i++) {
        size_t length = strlen(f->places[i]);
        bool slash = length > 0 && f->places[i][length - 1] == '/';
        if (snprintf(url, sizeof url, "%s%s%s", f->places[i], slash ? "" : "/", file->name) >= (int)sizeof url)
            return twi_fail(error, TW_INVALID_ARGUMENT, "the URL of %s is too long", file->name);
        status = download_from(f, file, url, part, error);
        if (status == TW_OK) {
            TWI_TRY(twi_rename(part, path, error));
            TWI_TRY(twi_sync_directory_of(path, error));
            return TW_OK;
        }
        if (status != TW_UNAVAILABLE && status != TW_DATA_LOSS && status != TW_UNIMPLEMENTED)
            return status;
    }
    if (error) {
        char reason[TW_MESSAGE_SIZE];
        memcpy(reason, error->message, sizeof reason);
        twi_fail(error, status,
                 "%.1000s. To do without: get %s (%lld bytes, SHA-256 %s), put it at '%s' and run this again", reason,
                 url, (long long)file->size, file->sha256, path);
    }
done:
    return status;
}

static tw_status obtain(const fetch *f, const twi_fetch_file *file, tw_error *error)
{
    char path[TWI_PATH_SIZE], what[TWI_PATH_SIZE + 2];
    if (!twi_data_path(path, f->directory, file->name))
        return twi_fail(error, TW_INVALID_ARGUMENT, "the data directory's name is too long");
    if (!twi_file_exists(path))
        return download(f, file, path, error);
    snprintf(what, sizeof what, "'%s'", path);
    tw_status status = check_file(file, path, what, error);
    if (status == TW_DATA_LOSS)
        twi_prefix(error, "%s is there already; move it away to download it again", file->name);
    return status;
}

static bool is_unpacked(const twi_fetch_set *set, const char *directory)
{
    char folder[TWI_PATH_SIZE], path[TWI_PATH_SIZE];
    int64_t size;
    if (!twi_data_path(folder, directory, set->folder))
        return false;
    for (int i = 0; i < TWI_FETCH_MAX_MEMBERS && set->members[i]; i++)
        if (!twi_data_path(path, folder, set->members[i]) || twi_data_size(path, &size, NULL) != TW_OK ||
            size != set->member_size)
            return false;
    return true;
}

/* Until no other fetch is at work in the directory: this one then finds what that has brought. */
static tw_status wait_for_lock(const fetch *f, int lock, tw_error *error)
{
    const twi_fetch_file *first = &f->set->files[0];
    for (bool told = false; flock(lock, LOCK_EX | LOCK_NB) != 0; told = true) {
        if (errno != EWOULDBLOCK)
            return twi_fail_file(error, "lock", f->directory);
        if (!told)
            twi_log(TWI_LOG_WARNING, "another fetch is at work in '%s': waiting until it ends", f->directory);
        if (f->progress && !f->progress(f->user, first->name, 0, first->size))
            return twi_fail(error, TW_CANCELLED, "the fetch into '%s' was stopped: it waited for another one there",
                            f->directory);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
    return TW_OK;
}

tw_status twi_fetch(const twi_fetch_set *set, const char *directory, const char *base_url, tw_fetch_progress *progress,
                    void *user, tw_error *error)
{
    fetch f = {.set = set, .directory = directory, .progress = progress, .user = user};
    tw_status status;
    int lock = -1;
    if (base_url)
        f.places[0] = base_url;
    else
        memcpy(f.places, set->places, sizeof set->places);

    TWI_TRY(twi_make_directories(directory, error));
    lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock < 0)
        return twi_fail_file(error, "open", directory);
    TWI_TRY(wait_for_lock(&f, lock, error));
    if (set->folder && is_unpacked(set, directory))
        goto done;
    for (int i = 0; i < set->num_files; i++)
        TWI_TRY(obtain(&f, &set->files[i], error));
    if (set->folder) {
        char archive[TWI_PATH_SIZE];
        twi_data_path(archive, directory, set->files[0].name);
        TWI_TRY(twi_unpack(set, directory, archive, error));
        twi_files()->unlink(archive);
    }
done:
    if (lock >= 0) {
        flock(lock, LOCK_UN); /* a child that has begun meanwhile has it too */
        close(lock);
    }
    return status;
}

tw_status tw_data_fetch(const char *name, const char *directory, const char *base_url, tw_fetch_progress *progress,
                        void *user, tw_error *error)
{
    TWI_NEED(name, "name", error);
    for (size_t i = 0; i < sizeof known_sets / sizeof *known_sets; i++)
        if (strcmp(known_sets[i].name, name) == 0)
            return twi_fetch(&known_sets[i], directory, base_url, progress, user, error);
    return twi_fail(error, TW_INVALID_ARGUMENT,
                    "unknown data set '%s'; cifar10, mnist and fashion-mnist can be fetched", name);
}
