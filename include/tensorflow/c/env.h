/* env.h - files, clocks, threads and libraries of the machine. */
#ifndef TENSORFLOW_C_ENV_H_
#define TENSORFLOW_C_ENV_H_

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_file_statistics.h"
#include "tensorflow/c/tf_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- files and folders; the status is that of the machine's error ------------------------------------------------ */

TF_CAPI_EXPORT extern void TF_CreateDir(const char *dirname, TF_Status *status);
TF_CAPI_EXPORT extern void TF_DeleteDir(const char *dirname, TF_Status *status); /* which must be empty */
/* With all that is in it, as far as that can be: how many files and folders are left. */
TF_CAPI_EXPORT extern void TF_DeleteRecursively(const char *dirname, int64_t *undeleted_file_count,
                                                int64_t *undeleted_dir_count, TF_Status *status);
TF_CAPI_EXPORT extern void TF_DeleteFile(const char *filename, TF_Status *status);
TF_CAPI_EXPORT extern void TF_FileStat(const char *filename, TF_FileStatistics *stats, TF_Status *status);

/* A file that is written anew; it is yours until it is closed. */
typedef struct TF_WritableFileHandle TF_WritableFileHandle;
TF_CAPI_EXPORT extern void TF_NewWritableFile(const char *filename, TF_WritableFileHandle **handle, TF_Status *status);
TF_CAPI_EXPORT extern void TF_AppendWritableFile(TF_WritableFileHandle *handle, const char *data, size_t length,
                                                 TF_Status *status);
TF_CAPI_EXPORT extern void TF_FlushWritableFile(TF_WritableFileHandle *handle, TF_Status *status);
TF_CAPI_EXPORT extern void TF_SyncWritableFile(TF_WritableFileHandle *handle, TF_Status *status);
TF_CAPI_EXPORT extern void TF_CloseWritableFile(TF_WritableFileHandle *handle, TF_Status *status);

/* Texts that are read one after the other, each borrowed until TF_StringStreamDone(); false: that was all. */
typedef struct TF_StringStream TF_StringStream;
TF_CAPI_EXPORT extern bool TF_StringStreamNext(TF_StringStream *list, const char **result);
TF_CAPI_EXPORT extern void TF_StringStreamDone(TF_StringStream *list); /* NULL is fine */
/* What is in a folder, and folders for files that do not last. NULL: the status says why, or memory ran out. */
TF_CAPI_EXPORT extern TF_StringStream *TF_GetChildren(const char *filename, TF_Status *status);
TF_CAPI_EXPORT extern TF_StringStream *TF_GetLocalTempDirectories(void);
/* The name of a file that is not there, with this extension ("": none). Yours: free(). */
TF_CAPI_EXPORT extern char *TF_GetTempFileName(const char *extension);

/* ---- clocks: since 1970 ------------------------------------------------------------------------------------------ */

TF_CAPI_EXPORT extern uint64_t TF_NowNanos(void);
TF_CAPI_EXPORT extern uint64_t TF_NowMicros(void);
TF_CAPI_EXPORT extern uint64_t TF_NowSeconds(void);

/* ---- threads ----------------------------------------------------------------------------------------------------- */

typedef struct TF_Thread TF_Thread;
typedef struct TF_ThreadOptions {
    size_t stack_size; /* 0 each: what the machine takes */
    size_t guard_size;
    int numa_node; /* not heeded */
} TF_ThreadOptions;

TF_CAPI_EXPORT extern void TF_DefaultThreadOptions(TF_ThreadOptions *options);
/* NULL: it could not be started. Joining it waits for its end. */
TF_CAPI_EXPORT extern TF_Thread *TF_StartThread(const TF_ThreadOptions *options, const char *thread_name,
                                                void (*work_func)(void *), void *param);
TF_CAPI_EXPORT extern void TF_JoinThread(TF_Thread *thread);

/* ---- libraries --------------------------------------------------------------------------------------------------- */

/* NULL: TF_NOT_FOUND, and the status says what the loader says. */
TF_CAPI_EXPORT extern void *TF_LoadSharedLibrary(const char *library_filename, TF_Status *status);
TF_CAPI_EXPORT extern void *TF_GetSymbolFromLibrary(void *handle, const char *symbol_name, TF_Status *status);

#ifdef __cplusplus
}
#endif
#endif
