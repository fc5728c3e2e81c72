/* Downloads, over file URLs and from a server that misbehaves: resumed, cut, of the wrong length or content; archives;
 * the lock. */
#include "testing.h"

#include "base/file.h"
#include "base/sha256.h"
#include "data/fetch.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 200000 };

static tw_error error;
static char root[256], from[300], to[300], url[320]; /* from: what the URL points to; to: the data directory */
static uint8_t content[SIZE];
static char sha[TWI_SHA256_TEXT];
static bool can_download;

static void write_in(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* -1: not there */
static long size_in(const char *folder, const char *name)
{
    char path[512];
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &about) == 0 ? (long)about.st_size : -1;
}

static void assert_holds(const char *name, const void *bytes, size_t size)
{
    char path[512], *found;
    size_t found_size;
    snprintf(path, sizeof path, "%s/%s", to, name);
    assert_ok(twi_file_read(path, 1 << 24, &found, &found_size, &error));
    assert_int_equal(found_size, size);
    assert_memory_equal(found, bytes, size);
    free(found);
}

static void hash(const void *bytes, size_t size, char text[TWI_SHA256_TEXT])
{
    twi_sha256 s;
    twi_sha256_init(&s);
    twi_sha256_add(&s, bytes, size);
    twi_sha256_text(&s, text);
}

static int prepare(void **state)
{
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/tower-fetch-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(root))
        return -1;
    snprintf(from, sizeof from, "%s/from", root);
    snprintf(to, sizeof to, "%s/to", root);
    snprintf(url, sizeof url, "file://%s", from);
    mkdir(from, 0700);
    for (int i = 0; i < SIZE; i++)
        content[i] = (uint8_t)(i * 31 + i / 256);
    hash(content, SIZE, sha);
    int64_t gained;
    can_download = twi_download("file:///", "/nonexistent/part", "x", 1, NULL, NULL, &gained, NULL) != TW_UNIMPLEMENTED;
    return 0;
}

static int clean(void **state)
{
    (void)state;
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static twi_fetch_set plain_set(void)
{
    return (twi_fetch_set){
        .name = "set", .title = "Set", .num_files = 1, .files = {{"thing.gz", SIZE, sha}}, .places = {url}};
}

static void file_arrives_whole_under_its_name(void **state)
{
    (void)state;
    if (!can_download)
        skip();
    twi_fetch_set set = plain_set();
    write_in(from, "thing.gz", content, SIZE);
    assert_ok(twi_fetch(&set, to, NULL, NULL, NULL, &error));
    assert_holds("thing.gz", content, SIZE);
    assert_int_equal(size_in(to, "thing.gz.part"), -1);

    write_in(from, "thing.gz", "gone", 4); /* not needed again */
    assert_ok(twi_fetch(&set, to, NULL, NULL, NULL, &error));
}

static void next_place_is_tried_when_one_fails(void **state)
{
    (void)state;
    if (!can_download)
        skip();
    twi_fetch_set set = plain_set();
    set.places[0] = "file:///nonexistent-place";
    set.places[1] = url;
    write_in(from, "thing.gz", content, SIZE);
    assert_ok(twi_fetch(&set, to, NULL, NULL, NULL, &error));
    assert_holds("thing.gz", content, SIZE);
}

static void given_url_replaces_the_known_places(void **state)
{
    (void)state;
    if (!can_download)
        skip();
    char slashed[400];
    twi_fetch_set set = plain_set();
    set.places[0] = "file:///nonexistent-place";
    write_in(from, "thing.gz", content, SIZE);
    snprintf(slashed, sizeof slashed, "%s/", url);
    assert_ok(twi_fetch(&set, to, slashed, NULL, NULL, &error));
    assert_holds("thing.gz", content, SIZE);
}

static void unreachable_place_says_what_to_put_where(void **state)
{
    (void)state;
    twi_fetch_set set = plain_set();
    char where[400];
    snprintf(where, sizeof where, "put it at '%s/thing.gz'", to);
    assert_fails(twi_fetch(&set, to, "file:///nonexistent-place", NULL, NULL, &error),
                 can_download ? TW_UNAVAILABLE : TW_UNIMPLEMENTED, where);
    assert_message(error.message, "file:///nonexistent-place/thing.gz");
    assert_message(error.message, "200000 bytes");
    assert_message(error.message, sha);
    assert_int_equal(size_in(to, "thing.gz.part"), -1);
}

static void download_cut_short_is_kept_and_continued(void **state)
{
    (void)state;
    if (!can_download)
        skip();
    twi_fetch_set set = plain_set();
    write_in(from, "thing.gz", content, 70000);
    assert_fails(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_UNAVAILABLE, "ended after 70000 of 200000 bytes");
    assert_int_equal(size_in(to, "thing.gz"), -1);
    assert_int_equal(size_in(to, "thing.gz.part"), 70000);

    /* Only what is missing is taken from there now. */
    static uint8_t other_beginning[SIZE];
    memcpy(other_beginning + 70000, content + 70000, SIZE - 70000);
    write_in(from, "thing.gz", other_beginning, SIZE);
    assert_ok(twi_fetch(&set, to, NULL, NULL, NULL, &error));
    assert_holds("thing.gz", content, SIZE);
}

static void part_with_a_wrong_beginning_is_dropped_and_loaded_anew(void **state)
{
    (void)state;
    if (!can_download)
        skip();
    twi_fetch_set set = plain_set();
    write_in(from, "thing.gz", content, SIZE);
    static const int sizes[] = {1, 14, SIZE, SIZE + 1};
    for (int i = 0; i < 4; i++) {
        uint8_t *page = calloc(1, (size_t)sizes[i]);
        memset(page, 'x', (size_t)sizes[i]);
        mkdir(to, 0700);
        write_in(to, "thing.gz.part", page, (size_t)sizes[i]);
        free(page);
        assert_ok(twi_fetch(&set, to, NULL, NULL, NULL, &error));
        assert_holds("thing.gz", content, SIZE);
        assert_int_equal(size_in(to, "thing.gz.part"), -1);
        char path[400];
        snprintf(path, sizeof path, "%s/thing.gz", to);
        unlink(path);
    }
}

static void part_longer_than_the_place_s_file_starts_again(void **state)
{
    (void)state;
    if (!can_download)
        skip();
    twi_fetch_set set = plain_set();
    mkdir(to, 0700);
    write_in(to, "thing.gz.part", content, 90000);
    write_in(from, "thing.gz", content, 50000);
    assert_fails(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_UNAVAILABLE, "ended after 50000");
    assert_int_equal(size_in(to, "thing.gz.part"), 50000);
}

static void other_content_and_other_length_are_refused(void **state)
{
    (void)state;
    if (!can_download)
        skip();
    twi_fetch_set set = plain_set();
    uint8_t *other = calloc(1, SIZE + 1);
    memcpy(other, content, SIZE);
    write_in(from, "thing.gz", other, SIZE + 1);
    assert_fails(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_DATA_LOSS, "more than the 200000 bytes expected");
    assert_int_equal(size_in(to, "thing.gz.part"), -1);
    other[77] ^= 1;
    char found[TWI_SHA256_TEXT];
    hash(other, SIZE, found);
    write_in(from, "thing.gz", other, SIZE);
    assert_fails(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_DATA_LOSS, sha);
    assert_message(error.message, found);
    assert_int_equal(size_in(to, "thing.gz.part"), -1);
    assert_int_equal(size_in(to, "thing.gz"), -1);
    free(other);
}

static void wrong_file_that_is_there_already_is_left_and_named(void **state)
{
    (void)state;
    twi_fetch_set set = plain_set();
    mkdir(to, 0700);
    write_in(to, "thing.gz", "mine", 4);
    assert_fails(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_DATA_LOSS, "move it away");
    assert_message(error.message, "it has 4 bytes, expected 200000");
    assert_holds("thing.gz", "mine", 4);
}

/* Allows as many calls as it is told. */
static bool stop_after(void *user, const char *file, int64_t done, int64_t total)
{
    int *calls = user;
    assert_string_equal(file, "thing.gz");
    assert_int_equal(total, SIZE);
    assert_true(done >= 0 && done <= total);
    return (*calls)-- > 0;
}

static bool count_calls(void *user, const char *file, int64_t done, int64_t total)
{
    int64_t *last = user;
    (void)file;
    assert_true(done >= *last && done <= total);
    *last = done;
    return true;
}

static void progress_reaches_the_end_and_may_stop_the_download(void **state)
{
    (void)state;
    if (!can_download)
        skip();
    twi_fetch_set set = plain_set();
    int calls = 0;
    int64_t last = 0;
    write_in(from, "thing.gz", content, SIZE);
    assert_fails(twi_fetch(&set, to, NULL, stop_after, &calls, &error), TW_CANCELLED, "after 0 of 200000 bytes");
    assert_int_equal(calls, -1);
    assert_int_equal(size_in(to, "thing.gz"), -1);
    calls = 1; /* at the beginning */
    assert_fails(twi_fetch(&set, to, NULL, stop_after, &calls, &error), TW_CANCELLED, "was stopped");
    assert_int_equal(size_in(to, "thing.gz"), -1);
    assert_true(size_in(to, "thing.gz.part") > 0);
    assert_ok(twi_fetch(&set, to, NULL, count_calls, &last, &error));
    assert_int_equal(last, SIZE);
}

/* What another fetch does while this one waits. */
typedef struct other_fetch {
    int lock;
    bool ends;
    int looks; /* of this one */
    char told[300];
} other_fetch;

static void note_told(void *user, int level, const char *text)
{
    other_fetch *other = user;
    (void)level;
    assert_int_equal(other->told[0], 0); /* once */
    snprintf(other->told, sizeof other->told, "%s", text);
}

static bool look_twice(void *user, const char *file, int64_t done, int64_t total)
{
    other_fetch *other = user;
    assert_string_equal(file, "thing.gz");
    assert_int_equal(done, 0);
    assert_int_equal(total, SIZE);
    if (++other->looks < 2)
        return true;
    if (other->ends) {
        write_in(to, "thing.gz", content, SIZE);
        close(other->lock);
    }
    return other->ends;
}

static void second_fetch_into_a_directory_waits_for_the_first(void **state)
{
    (void)state;
    twi_fetch_set set = plain_set();
    mkdir(to, 0700);
    for (int ends = 0; ends < 2; ends++) {
        other_fetch other = {.lock = open(to, O_RDONLY | O_DIRECTORY), .ends = ends};
        assert_int_equal(flock(other.lock, LOCK_EX), 0);
        tw_set_log(note_told, &other, 1);
        if (ends) /* nothing is downloaded: what the first has brought is there */
            assert_ok(twi_fetch(&set, to, "file:///nowhere", look_twice, &other, &error));
        else
            assert_fails(twi_fetch(&set, to, NULL, look_twice, &other, &error), TW_CANCELLED, "waited for another");
        tw_set_log(NULL, NULL, 0);
        assert_int_equal(other.looks, 2);
        assert_non_null(strstr(other.told, "another fetch is at work in"));
        if (!ends)
            close(other.lock);
    }
}

static ssize_t full_disk(int fd, const void *bytes, size_t size)
{
    static size_t room = 50000;
    if (size > room) {
        errno = ENOSPC;
        return -1;
    }
    room -= size;
    return write(fd, bytes, size);
}

static void full_disk_is_reported_as_such(void **state)
{
    (void)state;
    if (!can_download)
        skip();
    twi_fetch_set set = plain_set();
    twi_file_calls calls = twi_posix_files;
    calls.write = full_disk;
    write_in(from, "thing.gz", content, SIZE);
    twi_set_files(&calls);
    assert_fails(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_RESOURCE_EXHAUSTED, "No space left");
    twi_set_files(NULL);
    assert_int_equal(size_in(to, "thing.gz"), -1);
    assert_ok(twi_fetch(&set, to, NULL, NULL, NULL, &error));
    assert_holds("thing.gz", content, SIZE);
}

/* ---- a server ------------------------------------------------------------------------------------------------ */

typedef enum manner {
    PLAIN,
    SLOW,
    NO_LENGTH,
    CHUNKED,
    MOVED,
    NO_RANGES, /* begins at the beginning, whatever it is asked for; so far files arrive */
    WRONG_RANGE,
    NO_SUCH_RANGE,
    NOT_FOUND,
    FAILING,
    IN_CIRCLES,
    GARBAGE,
    SILENT,
    NUM_MANNERS,
    SILENT_FOR_LONG, /* says nothing, and does not go either */
} manner;

typedef enum body { WHOLE, CUT, LONGER, OTHER, NUM_BODIES } body;

static struct {
    int socket, port;
    pthread_t thread;
    manner manner;
    body body;
} server;

static void say(int to, const char *text)
{
    send(to, text, strlen(text), MSG_NOSIGNAL);
}

/* What comes from the place `from` on. */
static void send_body(int to, size_t from)
{
    static uint8_t bytes[SIZE + 1000];
    size_t end = server.body == LONGER ? sizeof bytes : server.body == CUT ? from + (SIZE - from) / 3 : SIZE;
    char line[32];
    memcpy(bytes, content, SIZE);
    bytes[SIZE - 1] ^= server.body == OTHER;
    for (size_t at = from, part = server.manner == SLOW ? 50000 : end; at < end; at += part) {
        part = part < end - at ? part : end - at;
        snprintf(line, sizeof line, "%zx\r\n", part);
        if (server.manner == SLOW)
            usleep(5000);
        if (server.manner == CHUNKED)
            say(to, line);
        send(to, bytes + at, part, MSG_NOSIGNAL);
        if (server.manner == CHUNKED)
            say(to, server.body == CUT ? "\r\n" : "\r\n0\r\n\r\n");
    }
}

static void answer(int to)
{
    char request[4000] = "", head[400];
    size_t used = 0;
    ssize_t got;
    while (!strstr(request, "\r\n\r\n") && (got = recv(to, request + used, sizeof request - 1 - used, 0)) > 0) {
        used += (size_t)got;
        if (request[0] != 'G') /* whoever begins to encrypt waits for an answer */
            return;
    }
    const char *range = strstr(request, "Range: bytes=");
    size_t from = range ? strtoul(range + 13, NULL, 10) : 0, whole = SIZE + (server.body == LONGER ? 1000 : 0);
    manner m = strstr(request, "GET /moved/") ? PLAIN : server.manner;
    if (m == NO_RANGES)
        from = 0;
    if (m == MOVED || m == IN_CIRCLES)
        snprintf(head, sizeof head, "HTTP/1.1 302 Found\r\nLocation: /%s/thing.gz\r\nContent-Length: 0\r\n\r\n",
                 m == MOVED ? "moved" : "again");
    else if (m >= NO_SUCH_RANGE && m <= FAILING)
        snprintf(head, sizeof head, "HTTP/1.1 %d No\r\nContent-Length: 4\r\n\r\nnone",
                 m == NO_SUCH_RANGE ? 416 : m == NOT_FOUND ? 404 : 503);
    else if (m == NO_LENGTH || m == CHUNKED)
        snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Range: bytes %zu-%zu/%zu\r\n%s\r\n",
                 from ? "206 Partial Content" : "200 OK", from, whole - 1, whole,
                 m == CHUNKED ? "Transfer-Encoding: chunked\r\n" : "Connection: close\r\n");
    else
        snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Range: bytes %zu-%zu/%zu\r\nContent-Length: %zu\r\n\r\n",
                 from ? "206 Partial Content" : "200 OK", from + (m == WRONG_RANGE), whole - 1, whole, whole - from);
    if (m == SILENT_FOR_LONG)
        recv(to, request, 1, 0); /* until the other one goes */
    else if (m != SILENT)
        say(to, m == GARBAGE ? "\x80\x81 HTTP/9 nothing\r\n\r\n" : head);
    if (m <= WRONG_RANGE && m != MOVED)
        send_body(to, from);
}

static void *serve(void *unused)
{
    (void)unused;
    for (int to; (to = accept(server.socket, NULL, NULL)) >= 0; close(to))
        answer(to);
    return NULL;
}

static void start_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    setenv("no_proxy", "127.0.0.1", 1);
    server.socket = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server.socket, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server.socket, 8), 0);
    assert_int_equal(getsockname(server.socket, (struct sockaddr *)&address, &size), 0);
    server.port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void stop_server(void)
{
    shutdown(server.socket, SHUT_RDWR);
    pthread_join(server.thread, NULL);
    close(server.socket);
}

static void drop_what_came(void)
{
    char path[400];
    snprintf(path, sizeof path, "%s/thing.gz", to);
    unlink(path);
    strcat(path, ".part");
    unlink(path);
}

/* Before it a part may be there: a right one, or one that is none of the file's. */
static void assert_whole_or_not_there(const char *place, manner m, body b, int part)
{
    twi_fetch_set set = plain_set();
    uint8_t other[1000] = {0};
    server.manner = m;
    server.body = b;
    mkdir(to, 0700);
    if (part)
        write_in(to, "thing.gz.part", part == 1 ? content : other, sizeof other);
    tw_status status = twi_fetch(&set, to, place, NULL, NULL, &error);
    if (status == TW_OK)
        assert_holds("thing.gz", content, SIZE);
    else
        assert_int_equal(size_in(to, "thing.gz"), -1);
    assert_true(status == TW_OK || status == TW_UNAVAILABLE || status == TW_DATA_LOSS);
    if (b == WHOLE && m <= NO_RANGES && status != TW_OK)
        fail_msg("manner %d, part %d: %s", m, part, error.message);
    if (b != WHOLE && b != CUT && status == TW_OK && m < NO_SUCH_RANGE && part != 1)
        fail_msg("manner %d, body %d, part %d: taken for whole", m, b, part);
    server.manner = PLAIN;
    server.body = WHOLE;
    char again[64];
    snprintf(again, sizeof again, "http://127.0.0.1:%d", server.port);
    assert_ok(twi_fetch(&set, to, again, NULL, NULL, &error)); /* another time the same place is well */
    assert_holds("thing.gz", content, SIZE);
    assert_int_equal(size_in(to, "thing.gz.part"), -1);
    drop_what_came();
}

static void whatever_a_server_does_a_file_is_whole_or_not_there(void **state)
{
    (void)state;
    char plain[64], encrypted[64];
    if (!can_download)
        skip();
    start_server();
    snprintf(plain, sizeof plain, "http://127.0.0.1:%d", server.port);
    snprintf(encrypted, sizeof encrypted, "https://127.0.0.1:%d", server.port);
    for (int i = 0; i < NUM_MANNERS * NUM_BODIES; i++)
        assert_whole_or_not_there(plain, (manner)(i / NUM_BODIES), (body)(i % NUM_BODIES), (i + i / NUM_BODIES) % 3);
    assert_whole_or_not_there(encrypted, PLAIN, CUT, 0); /* it knows no TLS */
    stop_server();
}

static void silent_server_can_be_left(void **state)
{
    (void)state;
    char place[64];
    int calls = 1;
    if (!can_download)
        skip();
    twi_fetch_set set = plain_set();
    start_server();
    snprintf(place, sizeof place, "http://127.0.0.1:%d", server.port);
    server.manner = SILENT_FOR_LONG;
    assert_fails(twi_fetch(&set, to, place, stop_after, &calls, &error), TW_CANCELLED, "after 0 of 200000 bytes");
    stop_server();
}

/* ---- archives ---------------------------------------------------------------------------------------------- */

enum { MEMBER = 30000 };

struct entry {
    const char *path;
    size_t size;
    unsigned type;
};

/* A tar.gz in the data directory, as if put there by hand; its hash goes into sha. Returns its size. */
static long make_archive(const struct entry *entries, int count)
{
    static char archive_sha[TWI_SHA256_TEXT];
    char path[400], *bytes;
    size_t size;
    mkdir(to, 0700);
    snprintf(path, sizeof path, "%s/set.tar.gz", to);
    struct archive *archive = archive_write_new();
    archive_write_add_filter_gzip(archive);
    archive_write_set_format_ustar(archive);
    assert_int_equal(archive_write_open_filename(archive, path), ARCHIVE_OK);
    for (int i = 0; i < count; i++) {
        struct archive_entry *entry = archive_entry_new();
        archive_entry_set_pathname(entry, entries[i].path);
        archive_entry_set_filetype(entry, entries[i].type);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, (la_int64_t)entries[i].size);
        if (entries[i].type == AE_IFLNK)
            archive_entry_set_symlink(entry, "/etc/passwd");
        assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
        if (entries[i].size)
            archive_write_data(archive, content + i, entries[i].size);
        archive_entry_free(entry);
    }
    archive_write_close(archive);
    archive_write_free(archive);
    assert_ok(twi_file_read(path, 1 << 24, &bytes, &size, &error));
    hash(bytes, size, archive_sha);
    memcpy(sha, archive_sha, sizeof sha);
    free(bytes);
    return (long)size;
}

static twi_fetch_set archive_set(long size)
{
    return (twi_fetch_set){
        .name = "set",
        .title = "Set",
        .num_files = 1,
        .files = {{"set.tar.gz", size, sha}},
        .places = {"file:///nonexistent-place"},
        .folder = "inside",
        .members = {"a.bin", "b.bin"},
        .member_size = MEMBER,
    };
}

static void wanted_members_come_out_of_an_archive_and_nothing_else(void **state)
{
    (void)state;
    static const struct entry entries[] = {
        {"inside/", 0, AE_IFDIR},         {"inside/b.bin", MEMBER, AE_IFREG}, {"inside/readme.html", 80, AE_IFREG},
        {"../outside", MEMBER, AE_IFREG}, {"inside/a.bin", MEMBER, AE_IFREG}, {"inside/../c.bin", MEMBER, AE_IFREG},
    };
    twi_fetch_set set = archive_set(make_archive(entries, 6));
    assert_ok(twi_fetch(&set, to, NULL, NULL, NULL, &error));
    assert_holds("inside/b.bin", content + 1, MEMBER);
    assert_holds("inside/a.bin", content + 4, MEMBER);
    assert_int_equal(size_in(to, "inside/readme.html"), -1);
    assert_int_equal(size_in(to, "c.bin"), -1);
    assert_int_equal(size_in(root, "outside"), -1);
    assert_int_equal(size_in(to, "set.tar.gz"), -1);
    assert_ok(twi_fetch(&set, to, NULL, NULL, NULL, &error)); /* nothing left to do */
}

static void archives_that_are_not_as_expected_are_refused(void **state)
{
    (void)state;
    static const struct entry missing[] = {{"inside/a.bin", MEMBER, AE_IFREG}};
    static const struct entry longer[] = {{"inside/a.bin", MEMBER + 1, AE_IFREG}};
    static const struct entry link[] = {{"inside/a.bin", 0, AE_IFLNK}, {"inside/b.bin", MEMBER, AE_IFREG}};
    twi_fetch_set set = archive_set(make_archive(missing, 1));
    assert_fails(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_DATA_LOSS, "does not hold inside/b.bin");
    set = archive_set(make_archive(longer, 1));
    assert_fails(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_DATA_LOSS,
                 "holds inside/a.bin with 30001 bytes, expected 30000");
    write_in(to, "set.tar.gz", content, SIZE);
    hash(content, SIZE, sha);
    set = archive_set(SIZE);
    assert_fails(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_DATA_LOSS, "cannot be unpacked");
    set = archive_set(make_archive(link, 2));
    assert_fails(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_DATA_LOSS, "does not hold inside/a.bin");
}

/* An entry of a tar as somebody might make it by hand, and what lies behind its header. */
struct hostile {
    char type;
    const char *name, *link;
    int64_t size; /* as the header says it */
    const char *text; /* NULL: as much of `content` as a member has */
};

static void put_header(FILE *file, const struct hostile *h)
{
    unsigned char block[512] = {0};
    unsigned sum = 0;
    snprintf((char *)block, 100, "%s", h->name);
    memcpy(block + 100, "0000644", 7);
    if (h->size >= 0 && h->size < (int64_t)1 << 33)
        snprintf((char *)block + 124, 12, "%011llo", (long long)h->size);
    else /* in base 256 */
        for (int i = 0; i < 12; i++)
            block[124 + i] = (unsigned char)(i < 4 ? h->size >> 63 : h->size >> 8 * (11 - i));
    block[124] |= h->size < 0 || h->size >= (int64_t)1 << 33 ? 0x80 : 0;
    memcpy(block + 148, "        ", 8);
    block[156] = (unsigned char)h->type;
    snprintf((char *)block + 157, 100, "%s", h->link ? h->link : "");
    memcpy(block + 257, "ustar\00000", 8);
    for (int i = 0; i < 512; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum);
    assert_int_equal(fwrite(block, 1, sizeof block, file), sizeof block);
}

static void put_hostile(FILE *file, const struct hostile *h)
{
    size_t size = h->text ? strlen(h->text) : MEMBER;
    put_header(file, h);
    assert_int_equal(fwrite(h->text ? h->text : (const char *)content, 1, size, file), size);
    for (; size % 512; size++)
        fputc(0, file);
}

/* Below the root there is nothing but what was there and whole members. */
static void assert_nothing_else_was_written(const char *name)
{
    char command[2400], line[512] = "";
    snprintf(command, sizeof command,
             "find '%s' -mindepth 1 ! -path '%s' ! -path '%s' ! -name set.tar.gz ! -name '*lock*' ! -path '%s/inside' "
             "! '(' -path '%s/inside/a.bin' -type f -size %dc ')'",
             root, from, to, to, to, MEMBER);
    FILE *found = popen(command, "r");
    if (fgets(line, sizeof line, found))
        fail_msg("an archive with '%s' left %s", name, line);
    pclose(found);
}

static void no_entry_of_an_archive_leads_out_of_its_folder(void **state)
{
    (void)state;
    static const struct hostile after = {'0', "inside/a.bin", NULL, MEMBER, NULL};
    static const struct hostile entries[] = {
        /* names */
        {'0', "../a.bin", NULL, MEMBER, NULL}, {'0', "/tower-was-here", NULL, MEMBER, NULL},
        {'0', "inside/../../a.bin", NULL, MEMBER, NULL}, {'0', "inside/../a.bin", NULL, MEMBER, NULL},
        {'0', "inside/a.bin/../../../a.bin", NULL, MEMBER, NULL}, {'0', "inside/./c.bin", NULL, MEMBER, NULL},
        {'0', "inside//c.bin", NULL, MEMBER, NULL}, {'0', "inside/a.bin/", NULL, MEMBER, NULL},
        {'0', "inside", NULL, MEMBER, NULL}, {'0', "inside/", NULL, MEMBER, NULL}, {'0', "..", NULL, MEMBER, NULL},
        {'0', ".", NULL, MEMBER, NULL}, {'0', "", NULL, MEMBER, NULL}, {'0', "inside\\c.bin", NULL, MEMBER, NULL},
        {'0', "inside/a.bin\n", NULL, MEMBER, NULL}, {'0', "~/a.bin", NULL, MEMBER, NULL},
        /* kinds that are no files */
        {'1', "inside/a.bin", "../../a.bin", 0, ""}, {'2', "inside/a.bin", "/etc/passwd", 0, ""},
        {'2', "inside", "..", 0, ""}, {'3', "inside/a.bin", NULL, 0, ""}, {'4', "inside/a.bin", NULL, 0, ""},
        {'5', "inside/a.bin", NULL, 0, ""}, {'6', "inside/a.bin", NULL, 0, ""}, {'5', "..", NULL, 0, ""},
        /* sizes */
        {'0', "inside/a.bin", NULL, (int64_t)1 << 30, NULL}, {'0', "inside/a.bin", NULL, INT64_MAX, NULL},
        {'0', "inside/a.bin", NULL, -1, NULL}, {'0', "inside/a.bin", NULL, MEMBER - 1, NULL},
        {'0', "inside/a.bin", NULL, 0, ""}, {'0', "inside/c.bin", NULL, (int64_t)1 << 40, NULL},
        /* headers about what follows */
        {'x', "x", NULL, 19, "19 path=../outside\n"}, {'x', "x", NULL, 24, "24 path=/tower-was-here\n"},
        {'x', "x", NULL, 19, "19 size=1073741824\n"}, {'x', "x", NULL, 26, "26 GNU.sparse.size=999999\n"},
        {'x', "x", NULL, 19, "99999999999 path=a\n"}, {'x', "x", NULL, (int64_t)1 << 30, "19 path=../outside\n"},
        {'L', "././@LongLink", NULL, 11, "../outside"}, {'L', "././@LongLink", NULL, (int64_t)1 << 30, "../outside"},
        {'K', "././@LongLink", NULL, 11, "/etc/passwd"}, {'g', "g", NULL, 19, "19 path=../outside\n"},
    };
    char path[400], *bytes;
    size_t size;
    mkdir(to, 0700);
    snprintf(path, sizeof path, "%s/set.tar.gz", to);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        FILE *file = fopen(path, "wb");
        put_hostile(file, &entries[i]);
        put_hostile(file, &after);
        fclose(file);
        assert_ok(twi_file_read(path, 1 << 24, &bytes, &size, &error));
        hash(bytes, size, sha);
        free(bytes);
        twi_fetch_set set = archive_set((long)size);
        assert_fails(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_DATA_LOSS, "set.tar.gz'");
        assert_nothing_else_was_written(entries[i].name);
        assert_int_not_equal(access("/tower-was-here", F_OK), 0);
    }
}

/* 32 MB of zeros in 32 KB. */
static void what_is_not_wanted_is_passed_over_however_large_it_becomes(void **state)
{
    (void)state;
    char path[400];
    static const char zeros[1 << 16];
    snprintf(path, sizeof path, "%s/set.tar.gz", to);
    mkdir(to, 0700);
    struct archive *archive = archive_write_new();
    archive_write_add_filter_gzip(archive);
    archive_write_set_format_ustar(archive);
    assert_int_equal(archive_write_open_filename(archive, path), ARCHIVE_OK);
    struct archive_entry *entry = archive_entry_new();
    archive_entry_set_pathname(entry, "inside/c.bin");
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_size(entry, 512 * (la_int64_t)sizeof zeros);
    assert_int_equal(archive_write_header(archive, entry), ARCHIVE_OK);
    for (int i = 0; i < 512; i++)
        archive_write_data(archive, zeros, sizeof zeros);
    archive_entry_free(entry);
    archive_write_close(archive);
    archive_write_free(archive);
    char *bytes;
    size_t size;
    assert_ok(twi_file_read(path, 1 << 24, &bytes, &size, &error));
    assert_in_range(size, 1, 1 << 16);
    hash(bytes, size, sha);
    free(bytes);
    twi_fetch_set set = archive_set((long)size);
    assert_fails(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_DATA_LOSS, "does not hold inside/a.bin");
    assert_nothing_else_was_written("inside/c.bin");
}

static void archive_cut_anywhere_leaves_no_half_member(void **state)
{
    (void)state;
    static const struct entry entries[] = {{"inside/a.bin", MEMBER, AE_IFREG}, {"inside/b.bin", MEMBER, AE_IFREG}};
    long size = make_archive(entries, 2);
    char path[400], *bytes;
    size_t read;
    snprintf(path, sizeof path, "%s/set.tar.gz", to);
    assert_ok(twi_file_read(path, 1 << 24, &bytes, &read, &error));
    for (long cut = 0; cut < size - 40; cut += 1 + size / 50) {
        write_in(to, "set.tar.gz", bytes, (size_t)cut);
        hash(bytes, (size_t)cut, sha);
        twi_fetch_set set = archive_set(cut);
        assert_int_equal(twi_fetch(&set, to, NULL, NULL, NULL, &error), TW_DATA_LOSS);
        assert_int_equal(size_in(to, "inside/a.bin.part"), -1);
        assert_int_equal(size_in(to, "inside/b.bin.part"), -1);
        long a = size_in(to, "inside/a.bin");
        assert_true(a == -1 || a == MEMBER);
        assert_int_equal(size_in(to, "inside/b.bin"), -1);
    }
    free(bytes);
}

static void unknown_names_are_refused(void **state)
{
    (void)state;
    assert_fails(tw_data_fetch("imagenet", to, NULL, NULL, NULL, &error), TW_INVALID_ARGUMENT,
                 "cifar10, mnist and fashion-mnist");
    assert_int_equal(size_in(root, "to"), -1);
}

#define in_a_directory(test) cmocka_unit_test_setup_teardown(test, prepare, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_a_directory(file_arrives_whole_under_its_name),
        in_a_directory(next_place_is_tried_when_one_fails),
        in_a_directory(given_url_replaces_the_known_places),
        in_a_directory(unreachable_place_says_what_to_put_where),
        in_a_directory(download_cut_short_is_kept_and_continued),
        in_a_directory(part_with_a_wrong_beginning_is_dropped_and_loaded_anew),
        in_a_directory(part_longer_than_the_place_s_file_starts_again),
        in_a_directory(other_content_and_other_length_are_refused),
        in_a_directory(wrong_file_that_is_there_already_is_left_and_named),
        in_a_directory(progress_reaches_the_end_and_may_stop_the_download),
        in_a_directory(second_fetch_into_a_directory_waits_for_the_first),
        in_a_directory(full_disk_is_reported_as_such),
        in_a_directory(whatever_a_server_does_a_file_is_whole_or_not_there),
        in_a_directory(silent_server_can_be_left),
        in_a_directory(wanted_members_come_out_of_an_archive_and_nothing_else),
        in_a_directory(archives_that_are_not_as_expected_are_refused),
        in_a_directory(no_entry_of_an_archive_leads_out_of_its_folder),
        in_a_directory(what_is_not_wanted_is_passed_over_however_large_it_becomes),
        in_a_directory(archive_cut_anywhere_leaves_no_half_member),
        in_a_directory(unknown_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
