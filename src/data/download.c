/* download.c - one transfer with libcurl, or the news that there is no libcurl.
 * Lives here:  all that uses libcurl (base/curl.h opens it).
 * Never here:  whether what came is right (fetch.c). */
#include "data/fetch.h"

#include "base/status.h"

#ifdef TOWER_WITH_CURL

#include "base/clock.h"
#include "base/curl.h"
#include "base/file.h"
#include "data/dataset.h"

#include <string.h>

enum {
    MAX_REDIRECTS = 5,
    CONNECT_SECONDS = 20,
    STALL_SECONDS = 30,
    PROGRESS_NS = 50 * 1000 * 1000, /* at most so often */
};

struct sink {
    twi_file_writer *writer;
    const char *name;
    int64_t done, size; /* bytes there, bytes expected */
    bool too_long, cancelled;
    tw_error error; /* of writing */
    tw_fetch_progress *progress;
    void *user;
    int64_t told_at; /* ns */
};

static bool tell(struct sink *sink)
{
    sink->told_at = twi_monotonic_ns();
    sink->cancelled |= sink->progress && !sink->progress(sink->user, sink->name, sink->done, sink->size);
    return !sink->cancelled;
}

/* Anything but `bytes` makes libcurl stop. */
static size_t take(char *data, size_t one, size_t bytes, void *argument)
{
    struct sink *sink = argument;
    (void)one;
    if ((int64_t)bytes > sink->size - sink->done) {
        sink->too_long = true;
        return 0;
    }
    twi_file_write(sink->writer, data, bytes);
    if (twi_file_flush(sink->writer, &sink->error) != TW_OK)
        return 0;
    sink->done += (int64_t)bytes;
    return bytes;
}

/* libcurl calls it before it connects, whenever bytes have come, and about once a second while none do: a server that
 * is silent can be seen, and left. Anything but 0 makes it stop. */
static int look_up(void *argument, curl_off_t down_size, curl_off_t down, curl_off_t up_size, curl_off_t up)
{
    struct sink *sink = argument;
    (void)down_size, (void)down, (void)up_size, (void)up;
    bool due = twi_monotonic_ns() - sink->told_at >= PROGRESS_NS;
    return due && !tell(sink);
}

static CURLcode transfer(const twi_curl *lib, const char *url, struct sink *sink, long *http,
                         char reason[CURL_ERROR_SIZE])
{
    CURL *curl = lib->easy_init();
    if (!curl)
        return CURLE_OUT_OF_MEMORY;
    reason[0] = 0;
    lib->easy_setopt(curl, CURLOPT_URL, url);
    lib->easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https,file");
    lib->easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    lib->easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    lib->easy_setopt(curl, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    lib->easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    lib->easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    lib->easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    lib->easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    lib->easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)STALL_SECONDS);
    lib->easy_setopt(curl, CURLOPT_USERAGENT, "tower/" TOWER_VERSION);
    lib->easy_setopt(curl, CURLOPT_ERRORBUFFER, reason);
    lib->easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    lib->easy_setopt(curl, CURLOPT_WRITEDATA, sink);
    lib->easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    lib->easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_up);
    lib->easy_setopt(curl, CURLOPT_XFERINFODATA, sink);
    lib->easy_setopt(curl, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)sink->done);
    CURLcode code = lib->easy_perform(curl);
    lib->easy_getinfo(curl, CURLINFO_RESPONSE_CODE, http);
    if (!reason[0])
        strncat(reason, lib->easy_strerror(code), CURL_ERROR_SIZE - 1);
    lib->easy_cleanup(curl);
    return code;
}

tw_status twi_download(const char *url, const char *part, const char *name, int64_t size, tw_fetch_progress *progress,
                       void *user, int64_t *gained, tw_error *error)
{
    struct sink sink = {.name = name, .size = size, .progress = progress, .user = user};
    char reason[CURL_ERROR_SIZE];
    tw_status status;
    *gained = 0;
    const twi_curl *lib = twi_curl_get();
    if (!lib)
        return twi_fail(error, TW_UNIMPLEMENTED, "cannot download %s from %s: libcurl.so.4 is not installed", name,
                        url);
    if (twi_data_size(part, &sink.done, NULL) != TW_OK || sink.done > size)
        sink.done = 0;

    CURLcode code = CURLE_OK;
    for (bool again = true; again;) {
        int64_t before = sink.done;
        long http = 0;
        TWI_TRY((before ? twi_file_append : twi_file_create)(part, &sink.writer, error));
        if (before < size)
            code = transfer(lib, url, &sink, &http, reason);
        bool whole = sink.done == size && !sink.too_long;
        if (sink.error.status == TW_OK)
            twi_file_close(sink.writer, whole, &sink.error);
        else
            twi_file_close(sink.writer, false, NULL);
        *gained = sink.done - before;
        /* A server that cannot go on in the middle, or whose file ends before: once more from the beginning. */
        again = before > 0 && (code == CURLE_RANGE_ERROR || code == CURLE_BAD_DOWNLOAD_RESUME || http == 416);
        if (again)
            sink.done = 0;
    }

    if (sink.done == 0)
        twi_files()->unlink(part);
    if (sink.error.status != TW_OK) {
        status = sink.error.status;
        if (error)
            *error = sink.error;
    } else if (sink.cancelled) {
        status = twi_fail(error, TW_CANCELLED, "the download of %s was stopped after %lld of %lld bytes", name,
                          (long long)sink.done, (long long)size);
    } else if (sink.too_long) {
        twi_files()->unlink(part);
        status = twi_fail(error, TW_DATA_LOSS, "%s is not the official file: it has more than the %lld bytes expected",
                          url, (long long)size);
    } else if (code != CURLE_OK && code != CURLE_PARTIAL_FILE) {
        status = twi_fail(error, TW_UNAVAILABLE, "cannot download %s: %s", url, reason);
    } else if (sink.done < size) {
        status = twi_fail(error, TW_UNAVAILABLE, "the download of %s ended after %lld of %lld bytes", url,
                          (long long)sink.done, (long long)size);
    } else if (!tell(&sink)) {
        status = twi_fail(error, TW_CANCELLED, "the download of %s was stopped at its end", name);
    }
done:
    return status;
}

#else

tw_status twi_download(const char *url, const char *part, const char *name, int64_t size, tw_fetch_progress *progress,
                       void *user, int64_t *gained, tw_error *error)
{
    (void)part, (void)size, (void)progress, (void)user;
    *gained = 0;
    return twi_fail(error, TW_UNIMPLEMENTED, "cannot download %s from %s: this Tower was built without libcurl", name,
                    url);
}

#endif
