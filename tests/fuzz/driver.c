/* driver.c - one input after the other to the target that FUZZ_TARGET names, within its bounds. */
#define _GNU_SOURCE /* nftw */
#include "fuzz.h"

#include <dirent.h>
#include <ftw.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <tower/status.h>
#include <unistd.h>

enum { FREE_BYTES = 64 << 20, BYTES_PER_BYTE = 8, READS = 1, COMPUTES = 10 /* seconds */ };

typedef struct target {
    const char *name, *reads;
    int seconds;
    fuzz_function *run;
} target;

static const target targets[] = {
#define X(name, kind, reads) {#name, reads, kind, fuzz_##name},
    FUZZ_TARGETS(X)
#undef X
};
enum { NUM_TARGETS = sizeof targets / sizeof *targets };

static const target *chosen;
static int messages = 2; /* libFuzzer closes standard error to the library's complaints */
static char folder[64];

static _Noreturn void refuse(const char *what, double found, double bound, size_t size)
{
    dprintf(messages, "%s: %s: %.1f for an input of %zu bytes, at most %.1f\n", chosen->name, what, found, size, bound);
    abort();
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static atomic_llong live; /* bytes, since the input began */
static atomic_size_t input_size;
static atomic_bool counting;

static long long bound_of(size_t size)
{
    return FREE_BYTES + BYTES_PER_BYTE * (long long)size;
}

/* What the library takes while a graph computes fails beyond the bound, as a machine of that size would have it. */
static void *bounded_resize(void *user, void *block, size_t bytes)
{
    (void)user;
    long long had = (long long)malloc_usable_size(block);
    if (bytes == 0) {
        atomic_fetch_sub(&live, had);
        free(block);
        return NULL;
    }
    if (atomic_load(&live) - had + (long long)bytes > bound_of(atomic_load(&input_size)))
        return NULL;
    void *moved = realloc(block, bytes);
    if (moved)
        atomic_fetch_add(&live, (long long)malloc_usable_size(moved) - had);
    return moved;
}

#if defined __SANITIZE_ADDRESS__ || defined TOWER_FUZZING
size_t __sanitizer_get_allocated_size(const volatile void *block);
void __sanitizer_malloc_hook(const volatile void *block, size_t bytes);
void __sanitizer_free_hook(const volatile void *block);

/* All that a reader takes counts, that of libraries as well. */
void __sanitizer_malloc_hook(const volatile void *block, size_t bytes)
{
    (void)block;
    if (!atomic_load(&counting))
        return;
    long long now = atomic_fetch_add(&live, (long long)bytes) + (long long)bytes,
              bound = bound_of(atomic_load(&input_size));
    if (now > bound) {
        atomic_store(&counting, false);
        refuse("MB of memory", (double)now / (1 << 20), (double)bound / (1 << 20), atomic_load(&input_size));
    }
}

void __sanitizer_free_hook(const volatile void *block)
{
    if (block && atomic_load(&counting))
        atomic_fetch_sub(&live, (long long)__sanitizer_get_allocated_size(block));
}
#endif

/* ---- files ----------------------------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *fuzz_folder(void)
{
    if (folder[0])
        return folder;
    snprintf(folder, sizeof folder, "%s/tower-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder))
        abort();
    atexit(remove_folder);
    return folder;
}

const char *fuzz_file(const char *name, const void *bytes, size_t size)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    FILE *file = fopen(path, "wb");
    if (!file || (size && fwrite(bytes, 1, size, file) != size) || fclose(file) != 0)
        abort();
    return path;
}

/* ---- inputs ---------------------------------------------------------------------------------------------------- */

static double processor_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void run(const uint8_t *bytes, size_t size)
{
    double began = processor_seconds();
    fuzz_folder();
    atomic_store(&input_size, size);
    if (chosen->seconds == READS) {
        atomic_store(&live, 0);
        atomic_store(&counting, true);
    }
    chosen->run(bytes, size);
    atomic_store(&counting, false);
    double took = processor_seconds() - began;
    if (took > chosen->seconds)
        refuse("seconds", took, chosen->seconds, size);
}

static void choose(const char *name)
{
    chosen = NULL;
    for (int i = 0; i < NUM_TARGETS; i++)
        if (name && strcmp(targets[i].name, name) == 0)
            chosen = &targets[i];
    if (!chosen) {
        for (int i = 0; i < NUM_TARGETS; i++)
            printf("%-12s %s\n", targets[i].name, targets[i].reads);
        exit(name && strcmp(name, "--list") == 0 ? 0 : 2);
    }
    tw_set_allocator(chosen->seconds == READS ? NULL : bounded_resize, NULL);
}

#ifdef TOWER_FUZZING

int LLVMFuzzerInitialize(int *count, char ***words);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count, (void)words;
    messages = dup(2);
    choose(getenv("FUZZ_TARGET"));
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    run(bytes, size);
    return 0;
}

#else

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat about;
    if (!file || fstat(fileno(file), &about) != 0 || !S_ISREG(about.st_mode)) {
        if (file)
            fclose(file);
        return 0;
    }
    uint8_t *bytes = malloc((size_t)about.st_size + 1);
    if (!bytes || fread(bytes, 1, (size_t)about.st_size, file) != (size_t)about.st_size)
        abort();
    fclose(file);
    fprintf(stderr, "%s\n", path); /* the last line of a crash says whose it is */
    run(bytes, (size_t)about.st_size);
    free(bytes);
    return 1;
}

/* usage: replay CORPUS [TARGET]      what lies in CORPUS/TARGET, of one or of all */
int main(int count, char **words)
{
    for (int i = 0; i < NUM_TARGETS && count > 1; i++) {
        char path[4096];
        int inputs = 0;
        if (count > 2 && strcmp(words[2], targets[i].name) != 0)
            continue;
        choose(targets[i].name);
        snprintf(path, sizeof path, "%s/%s", words[1], chosen->name);
        DIR *directory = opendir(path);
        for (struct dirent *entry; directory && (entry = readdir(directory));) {
            snprintf(path, sizeof path, "%s/%s/%s", words[1], chosen->name, entry->d_name);
            inputs += replay_file(path);
        }
        if (directory)
            closedir(directory);
        printf("%s: %d inputs\n", chosen->name, inputs);
        if (inputs == 0)
            return 1;
    }
    return count > 1 ? 0 : 2;
}

#endif
