/* env.c - files, clocks, threads and libraries of the machine, as programs ask TensorFlow for them.
 * Never here:  checkpoints, event logs and other files that have a form (io/). */
#include <tensorflow/c/c_api_experimental.h>
#include <tensorflow/c/env.h>

#include "capi.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void set_result(TF_Status *status, bool went_well, const char *name)
{
    if (went_well)
        TF_SetStatus(status, TF_OK, "");
    else
        TF_SetStatusFromIOError(status, errno, name);
}

/* ---- files and folders ------------------------------------------------------------------------------------------ */

void TF_CreateDir(const char *dirname, TF_Status *status)
{
    set_result(status, mkdir(dirname, 0755) == 0, dirname);
}

void TF_DeleteDir(const char *dirname, TF_Status *status)
{
    set_result(status, rmdir(dirname) == 0, dirname);
}

void TF_DeleteFile(const char *filename, TF_Status *status)
{
    set_result(status, unlink(filename) == 0, filename);
}

static _Thread_local int64_t files_left, folders_left; /* of the walk of this thread */

static int delete_one(const char *path, const struct stat *about, int kind, struct FTW *where)
{
    (void)about;
    (void)where;
    if (remove(path) != 0)
        ++*(kind == FTW_DP || kind == FTW_D || kind == FTW_DNR ? &folders_left : &files_left);
    return 0;
}

void TF_DeleteRecursively(const char *dirname, int64_t *undeleted_file_count, int64_t *undeleted_dir_count,
                          TF_Status *status)
{
    enum { MOST_OPEN = 16 };
    struct stat about;
    files_left = folders_left = 0;
    bool is_there = lstat(dirname, &about) == 0;
    set_result(status, is_there && nftw(dirname, delete_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS) == 0, dirname);
    *undeleted_file_count = files_left;
    *undeleted_dir_count = is_there ? folders_left : 1;
}

void TF_FileStat(const char *filename, TF_FileStatistics *stats, TF_Status *status)
{
    struct stat about;
    bool is_there = stat(filename, &about) == 0;
    set_result(status, is_there, filename);
    if (is_there)
        *stats = (TF_FileStatistics){.length = about.st_size,
                                     .mtime_nsec = about.st_mtim.tv_sec * (int64_t)1000000000 + about.st_mtim.tv_nsec,
                                     .is_directory = S_ISDIR(about.st_mode)};
}

struct TF_WritableFileHandle {
    FILE *file;
    char *name;
};

void TF_NewWritableFile(const char *filename, TF_WritableFileHandle **handle, TF_Status *status)
{
    TF_WritableFileHandle *made = calloc(1, sizeof *made);
    *handle = NULL;
    if (!made || !(made->name = strdup(filename))) {
        set_no_memory(status);
        free(made);
        return;
    }
    made->file = fopen(filename, "we");
    set_result(status, made->file, filename);
    if (made->file) {
        *handle = made;
        return;
    }
    free(made->name);
    free(made);
}

void TF_CloseWritableFile(TF_WritableFileHandle *handle, TF_Status *status)
{
    set_result(status, fclose(handle->file) == 0, handle->name);
    free(handle->name);
    free(handle);
}

void TF_SyncWritableFile(TF_WritableFileHandle *handle, TF_Status *status)
{
    set_result(status, fflush(handle->file) == 0 && fsync(fileno(handle->file)) == 0, handle->name);
}

void TF_FlushWritableFile(TF_WritableFileHandle *handle, TF_Status *status)
{
    set_result(status, fflush(handle->file) == 0, handle->name);
}

void TF_AppendWritableFile(TF_WritableFileHandle *handle, const char *data, size_t length, TF_Status *status)
{
    set_result(status, fwrite(data, 1, length, handle->file) == length, handle->name);
}

/* ---- lists of names --------------------------------------------------------------------------------------------- */

struct TF_StringStream {
    char **texts; /* [count], and NULL behind them */
    int count, at;
};

static bool append(TF_StringStream *list, const char *text)
{
    char **grown = realloc(list->texts, sizeof *grown * (size_t)(list->count + 2));
    if (!grown)
        return false;
    list->texts = grown;
    grown[list->count + 1] = NULL;
    return (grown[list->count] = strdup(text)) && ++list->count;
}

bool TF_StringStreamNext(TF_StringStream *list, const char **result)
{
    bool is_there = list && list->at < list->count;
    *result = is_there ? list->texts[list->at++] : NULL;
    return is_there;
}

void TF_StringStreamDone(TF_StringStream *list)
{
    for (int i = 0; list && i < list->count; i++)
        free(list->texts[i]);
    if (list)
        free(list->texts);
    free(list);
}

TF_StringStream *TF_GetChildren(const char *filename, TF_Status *status)
{
    DIR *folder = opendir(filename);
    set_result(status, folder, filename);
    TF_StringStream *list = folder ? calloc(1, sizeof *list) : NULL;
    bool failed = folder && !list;
    for (const struct dirent *entry; list && !failed && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            failed = !append(list, entry->d_name);
    if (folder)
        closedir(folder);
    if (!failed)
        return list;
    set_no_memory(status);
    TF_StringStreamDone(list);
    return NULL;
}

TF_StringStream *TF_GetLocalTempDirectories(void)
{
    static const char *const variables[] = {"TEST_TMPDIR", "TMPDIR", "TMP"};
    TF_StringStream *list = calloc(1, sizeof *list);
    for (size_t i = 0; list && i <= sizeof variables / sizeof *variables; i++) {
        const char *folder = i < sizeof variables / sizeof *variables ? getenv(variables[i]) : "/tmp";
        if (folder && *folder && access(folder, W_OK) == 0 && !append(list, folder)) {
            TF_StringStreamDone(list);
            return NULL;
        }
    }
    return list;
}

char *TF_GetTempFileName(const char *extension)
{
    TF_StringStream *folders = TF_GetLocalTempDirectories();
    const char *folder = folders && folders->count ? folders->texts[0] : ".";
    char *name = NULL;
    int length = asprintf(&name, "%s/tf_XXXXXX%s%s", folder, *extension ? "." : "", extension);
    int file = length < 0 ? -1 : mkstemps(name, (int)strlen(extension) + (*extension != 0));
    TF_StringStreamDone(folders);
    if (file >= 0) { /* the name is for a file that is not there */
        close(file);
        unlink(name);
    }
    return length < 0 ? NULL : name;
}

/* ---- clocks, threads, libraries --------------------------------------------------------------------------------- */

uint64_t TF_NowNanos(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t TF_NowMicros(void)
{
    return TF_NowNanos() / 1000;
}

uint64_t TF_NowSeconds(void)
{
    return TF_NowNanos() / 1000000000;
}

struct TF_Thread {
    pthread_t thread;
    void (*work)(void *);
    void *param;
};

void TF_DefaultThreadOptions(TF_ThreadOptions *options)
{
    *options = (TF_ThreadOptions){.numa_node = -1};
}

static void *work(void *thread)
{
    TF_Thread *t = thread;
    t->work(t->param);
    return NULL;
}

TF_Thread *TF_StartThread(const TF_ThreadOptions *options, const char *thread_name, void (*work_func)(void *),
                          void *param)
{
    TF_Thread *made = calloc(1, sizeof *made);
    pthread_attr_t attr;
    (void)thread_name;
    if (!made || pthread_attr_init(&attr) != 0) {
        free(made);
        return NULL;
    }
    *made = (TF_Thread){.work = work_func, .param = param};
    if (options && options->stack_size)
        pthread_attr_setstacksize(&attr, options->stack_size);
    if (options && options->guard_size)
        pthread_attr_setguardsize(&attr, options->guard_size);
    bool started = pthread_create(&made->thread, &attr, work, made) == 0;
    pthread_attr_destroy(&attr);
    if (started)
        return made;
    free(made);
    return NULL;
}

void TF_JoinThread(TF_Thread *thread)
{
    if (thread)
        pthread_join(thread->thread, NULL);
    free(thread);
}

void *TF_LoadSharedLibrary(const char *library_filename, TF_Status *status)
{
    void *handle = dlopen(library_filename, RTLD_NOW | RTLD_LOCAL);
    TF_SetStatus(status, TF_OK, "");
    if (!handle)
        set_status(status, TF_NOT_FOUND, "%s", dlerror());
    return handle;
}

void *TF_GetSymbolFromLibrary(void *handle, const char *symbol_name, TF_Status *status)
{
    void *symbol = dlsym(handle, symbol_name);
    TF_SetStatus(status, TF_OK, "");
    if (!symbol)
        set_status(status, TF_NOT_FOUND, "%s", dlerror());
    return symbol;
}

/* A port of this machine that nobody listens at; 0: there is none. */
int TF_PickUnusedPortOrDie(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int port = 0, end = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (end >= 0 && bind(end, (const struct sockaddr *)&address, size) == 0 &&
        getsockname(end, (struct sockaddr *)&address, &size) == 0)
        port = ntohs(address.sin_port);
    if (end >= 0)
        close(end);
    return port;
}
