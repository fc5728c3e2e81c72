/* torn.c - power that fails while a checkpoint is saved. The calls of one save are recorded; for every place where it
 * could have been cut off, the states are built that a disk may then legally be in, and in each a reader finds a whole
 * checkpoint: the older, or the new one; the new one, once the save has returned.
 *
 * What is legal: bytes of a file that was synced since are there; of others each write is absent, whole, cut at a
 * block's end, or zeros. Changes of the directory before its last sync are there; of later ones the first few, or all
 * but one.
 *
 * usage: torn [STRIDE]      every STRIDE-th state; 1 by default. Prints how many there were. */
#include "faulty_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>
#include <tower/io.h>

enum { MOST_STEPS = 512, MOST_FILES = 64, MOST_DESCRIPTORS = 1024, BLOCK = 512, ELEMENTS = 700 };

/* ---- recording ------------------------------------------------------------------------------------------------- */

typedef enum step_kind { CREATE, WRITE, SYNC_FILE, SYNC_FOLDER, RENAME, LINK, UNLINK } step_kind;

typedef struct step {
    step_kind kind;
    int file; /* of CREATE, WRITE, SYNC_FILE: its number */
    char name[128], to[128];
    char *bytes;
    size_t size;
} step;

static step steps[MOST_STEPS];
static int num_steps, num_files;
static int file_of[MOST_DESCRIPTORS]; /* number + 1; 0: none; -1: a folder */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static step *record(step_kind kind, int file, const char *name, const char *to)
{
    if (num_steps == MOST_STEPS)
        abort();
    step *s = &steps[num_steps++];
    *s = (step){.kind = kind, .file = file};
    snprintf(s->name, sizeof s->name, "%s", name ? base_name(name) : "");
    snprintf(s->to, sizeof s->to, "%s", to ? base_name(to) : "");
    return s;
}

static int recorded_open(const char *path, int flags, unsigned mode)
{
    int fd = twi_posix_files.open(path, flags, mode);
    struct stat about;
    if (fd < 0 || fd >= MOST_DESCRIPTORS)
        return fd;
    file_of[fd] = fstat(fd, &about) == 0 && S_ISDIR(about.st_mode) ? -1 : 0;
    if (flags & O_CREAT) {
        file_of[fd] = ++num_files;
        record(CREATE, num_files - 1, path, NULL);
    }
    return fd;
}

static ssize_t recorded_write(int fd, const void *bytes, size_t size)
{
    ssize_t written = twi_posix_files.write(fd, bytes, size);
    if (written > 0 && file_of[fd] > 0) {
        step *s = record(WRITE, file_of[fd] - 1, NULL, NULL);
        s->bytes = malloc((size_t)written);
        memcpy(s->bytes, bytes, s->size = (size_t)written);
    }
    return written;
}

static int recorded_fsync(int fd)
{
    int result = twi_posix_files.fsync(fd);
    if (result == 0 && file_of[fd])
        record(file_of[fd] < 0 ? SYNC_FOLDER : SYNC_FILE, file_of[fd] - 1, NULL, NULL);
    return result;
}

static int recorded_close(int fd)
{
    return twi_posix_files.close(fd);
}

static int recorded_rename(const char *from, const char *to)
{
    int result = twi_posix_files.rename(from, to);
    if (result == 0)
        record(RENAME, 0, from, to);
    return result;
}

static int recorded_link(const char *from, const char *to)
{
    int result = twi_posix_files.link(from, to);
    if (result == 0)
        record(LINK, 0, from, to);
    return result;
}

static int recorded_unlink(const char *path)
{
    int result = twi_posix_files.unlink(path);
    if (result == 0)
        record(UNLINK, 0, path, NULL);
    return result;
}

/* ---- checkpoints that tell which they are ---------------------------------------------------------------------- */

static tw_status save(const char *folder, int64_t step, int keep)
{
    float values[ELEMENTS];
    tw_error error = {0};
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = (float)(step * 1000 + i);
    tw_tensor *tensor = tw_tensor_from(TW_FLOAT32, TW_SHAPE(ELEMENTS), values);
    tw_named_tensor named[] = {{"a", tensor, NULL}, {"b", tensor, NULL}};
    tw_status status = tw_checkpoint_save(folder, "model.ckpt", step, named, 2, keep, &error);
    tw_tensor_release(tensor);
    return status;
}

/* The step of the latest checkpoint, all of which was read and is right; -1: there is none. */
static int64_t latest(const char *folder)
{
    int64_t step = -1;
    tw_error error = {0};
    tw_checkpoint *checkpoint = NULL;
    if (tw_checkpoint_open(folder, &checkpoint, &error) != TW_OK)
        return -1;
    tw_tensor *tensors[2] = {NULL, NULL};
    bool good = tw_checkpoint_read(checkpoint, "a", &tensors[0], &error) == TW_OK &&
                tw_checkpoint_read(checkpoint, "b", &tensors[1], &error) == TW_OK;
    step = tw_checkpoint_step(checkpoint);
    for (int k = 0; k < 2 && good; k++)
        for (int i = 0; i < ELEMENTS && good; i++)
            good = ((const float *)tw_tensor_data(tensors[k]))[i] == (float)(step * 1000 + i);
    tw_tensor_release(tensors[0]);
    tw_tensor_release(tensors[1]);
    tw_checkpoint_close(checkpoint);
    return good ? step : -1;
}

/* ---- what a disk may hold --------------------------------------------------------------------------------------- */

typedef enum fate { WHOLE, ABSENT, CUT, ZEROS, NUM_FATES } fate;

typedef struct content {
    char *bytes;
    size_t size;
} content;

typedef struct entry { /* of the folder: a name, and either the number of a file or that of one which was there before */
    char name[128];
    content *content;
} entry;

static entry entries[MOST_FILES], before[MOST_FILES];
static int num_entries, num_before;
static content contents[MOST_FILES];

static entry *find(const char *name)
{
    for (int i = 0; i < num_entries; i++)
        if (strcmp(entries[i].name, name) == 0)
            return &entries[i];
    return NULL;
}

static void put(const char *name, content *content)
{
    entry *e = find(name);
    if (!e) {
        if (num_entries == MOST_FILES)
            abort();
        e = &entries[num_entries++];
        snprintf(e->name, sizeof e->name, "%s", name);
    }
    e->content = content;
}

static void drop(const char *name)
{
    entry *e = find(name);
    if (e)
        *e = entries[--num_entries];
}

static bool changes_folder(const step *s)
{
    return s->kind == CREATE || s->kind == RENAME || s->kind == LINK || s->kind == UNLINK;
}

static void change_folder(const step *s)
{
    entry *from = find(s->name);
    if (s->kind == CREATE) {
        put(s->name, &contents[s->file]);
    } else if (s->kind == UNLINK) {
        drop(s->name);
    } else if (from) { /* whose creation was lost has no other name either */
        content *content = from->content;
        put(s->to, content);
        if (s->kind == RENAME)
            drop(s->name);
    }
}

static void append(content *c, const step *s, fate fate)
{
    size_t size = fate == ABSENT ? 0 : fate == CUT ? s->size / 2 / BLOCK * BLOCK : s->size;
    c->bytes = realloc(c->bytes, c->size + size + 1);
    if (fate == ZEROS)
        memset(c->bytes + c->size, 0, size);
    else
        memcpy(c->bytes + c->size, s->bytes, size);
    c->size += size;
}

/* Whether the file's bytes before step `at` were synced before the cut. */
static bool is_synced(int at, int cut)
{
    for (int i = at + 1; i < cut; i++)
        if (steps[i].kind == SYNC_FILE && steps[i].file == steps[at].file)
            return true;
    return false;
}

static int last_sync_of_folder(int cut)
{
    int last = -1;
    for (int i = 0; i < cut; i++)
        if (steps[i].kind == SYNC_FOLDER)
            last = i;
    return last;
}

/* Which changes of the folder since its sync are there: the first `kept`, but not number `lost` (-1: all of these). */
typedef struct choice {
    int cut, kept, lost;
    fate even, odd; /* of writes that were not synced, to files of even and odd numbers */
} choice;

static void imagine(choice c)
{
    int synced = last_sync_of_folder(c.cut), change = 0;
    num_entries = num_before;
    memcpy(entries, before, sizeof entries);
    for (int i = 0; i < num_files; i++)
        contents[i].size = 0;
    for (int i = 0; i < c.cut; i++) {
        const step *s = &steps[i];
        if (s->kind == WRITE)
            append(&contents[s->file], s, is_synced(i, c.cut) ? WHOLE : s->file % 2 ? c.odd : c.even);
        if (!changes_folder(s))
            continue;
        bool is_there = i < synced || (change < c.kept && change != c.lost);
        change += i > synced;
        if (is_there)
            change_folder(s);
    }
}

static int pending_changes(int cut)
{
    int count = 0;
    for (int i = last_sync_of_folder(cut) + 1; i < cut; i++)
        count += changes_folder(&steps[i]);
    return count;
}

static bool is_pending(int cut)
{
    for (int i = 0; i < cut; i++)
        if (steps[i].kind == WRITE && !is_synced(i, cut))
            return true;
    return false;
}

static const char *build(void)
{
    const char *folder = scratch_folder();
    for (int i = 0; i < num_entries; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%.64s/%.4000s", folder, entries[i].name);
        FILE *file = fopen(path, "wb");
        fwrite(entries[i].content->bytes, 1, entries[i].content->size, file);
        fclose(file);
    }
    return folder;
}

/* ---- the test --------------------------------------------------------------------------------------------------- */

static void remember_folder(const char *folder)
{
    DIR *directory = opendir(folder);
    for (struct dirent *e; directory && (e = readdir(directory));) {
        char path[512];
        if (e->d_name[0] == '.' || strlen(e->d_name) >= sizeof before->name)
            continue;
        snprintf(path, sizeof path, "%s/%.127s", folder, e->d_name);
        FILE *file = fopen(path, "rb");
        content *c = calloc(1, sizeof *c);
        c->bytes = malloc(1 << 16);
        c->size = fread(c->bytes, 1, 1 << 16, file);
        fclose(file);
        memcpy(before[num_before].name, e->d_name, strlen(e->d_name) + 1);
        before[num_before++].content = c;
    }
    closedir(directory);
}

static long states, wrong;

static void try_state(choice c, int stride, int64_t old, int64_t new)
{
    if (states++ % stride != 0)
        return;
    imagine(c);
    const char *folder = build();
    int64_t found = latest(folder);
    bool ended = c.cut == num_steps;
    if (found != new && (ended || found != old)) {
        wrong++;
        printf("cut after %d of %d steps, %d changes of the folder but %d, writes %d and %d: found step %lld\n", c.cut,
               num_steps, c.kept, c.lost, c.even, c.odd, (long long)found);
    } else if (save(folder, new + 1, 2) != TW_OK || latest(folder) != new + 1) {
        wrong++;
        printf("cut after %d of %d steps: nothing can be saved any more\n", c.cut, num_steps);
    }
    remove_scratch(folder);
}

static void try_cut(int cut, int stride, int64_t old, int64_t new)
{
    int pending = pending_changes(cut);
    int fates = is_pending(cut) ? NUM_FATES : 1;
    for (int even = 0; even < fates; even++)
        for (int odd = 0; odd < fates; odd++) {
            for (int kept = 0; kept <= pending; kept++)
                try_state((choice){cut, kept, -1, (fate)even, (fate)odd}, stride, old, new);
            for (int lost = 0; lost + 1 < pending; lost++)
                try_state((choice){cut, pending, lost, (fate)even, (fate)odd}, stride, old, new);
        }
}

/* Saves step `new` where step `old` is, which may be the same. */
static void try_save(int64_t old, int64_t new, int stride)
{
    static const twi_file_calls calls = {recorded_open,   recorded_write, recorded_fsync, recorded_close,
                                         recorded_rename, recorded_link,  recorded_unlink};
    const char *folder = scratch_folder();
    char path[300];
    snprintf(path, sizeof path, "%s", folder);
    num_steps = num_files = num_before = 0;
    if (save(path, old, 1) != TW_OK)
        abort();
    remember_folder(path);
    twi_set_files(&calls);
    if (save(path, new, 1) != TW_OK)
        abort();
    twi_set_files(NULL);
    remove_scratch(path);
    long had = states;
    for (int cut = 0; cut <= num_steps; cut++)
        try_cut(cut, stride, old, new);
    printf("step %lld where step %lld was: %d calls, %ld states\n", (long long)new, (long long)old, num_steps,
           states - had);
}

int main(int count, char **words)
{
    int stride = count > 1 ? atoi(words[1]) : 1;
    if (stride < 1)
        return 2;
    try_save(1, 2, stride);
    try_save(2, 2, stride);
    printf("torn writes: %ld states, every %d-th tried, %ld wrong\n", states, stride, wrong);
    return wrong != 0;
}
