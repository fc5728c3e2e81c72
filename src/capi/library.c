/* library.c - libraries that register ops and kernels of their own when they are loaded. They stay loaded when their
 * handles go, and loading one again tells of the same ops. */
#include <dlfcn.h>
#include <stdlib.h>

#include "own_op.h"

struct TF_Library {
    wire ops; /* an OpList */
};

/* Ops that a library has registered, for ever. */
typedef struct loaded {
    void *handle;
    int first, end;
    struct loaded *next;
} loaded;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* so that what is registered while one is loaded is its own */
static loaded *libraries;

/* Notes which ops have come since there were `before`, if the library is new. NULL: memory ran out. */
static const loaded *note(void *handle, int before)
{
    loaded *library = libraries;
    while (library && library->handle != handle)
        library = library->next;
    if (library || !(library = malloc(sizeof *library)))
        return library;
    *library = (loaded){handle, before, num_own_ops(), libraries};
    return libraries = library;
}

/* With its function TF_InitKernel() called if it is loaded as a plug-in. Ops that are made for TensorFlow's C++ ask for
 * its functions, so that the loader says what is not there. */
static TF_Library *load(const char *file, bool is_plugin, TF_Status *status)
{
    TF_SetStatus(status, TF_OK, "");
    TF_Library *library = NULL;
    pthread_mutex_lock(&lock);
    int before = num_own_ops();
    void *handle = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *init = handle && is_plugin ? dlsym(handle, "TF_InitKernel") : NULL;
    if (!handle)
        set_status(status, TF_NOT_FOUND, "%s", file ? dlerror() : "there is no name of a library");
    else if (is_plugin && (dlsym(handle, "SE_InitPlugin") || !init))
        set_status(status, TF_UNIMPLEMENTED, "'%s' is not a plug-in that has kernels for CPUs alone: %s", file,
                   init
                       ? "devices that are made for TensorFlow do not run in Tower; its plug-ins do (TOWER_PLUGIN_PATH)"
                       : "it has no function TF_InitKernel");
    else {
        if (init)
            ((void (*)(void))init)();
        library = calloc(1, sizeof *library);
        const loaded *noted = note(handle, before);
        if (library && noted)
            write_own_ops(&library->ops, noted->first, noted->end);
        if (!library || !noted || library->ops.failed) {
            TF_DeleteLibraryHandle(library);
            library = NULL;
            set_no_memory(status);
        }
    }
    pthread_mutex_unlock(&lock);
    return library;
}

TF_Library *TF_LoadLibrary(const char *library_filename, TF_Status *status)
{
    return load(library_filename, false, status);
}

TF_Buffer TF_GetOpList(TF_Library *lib_handle)
{
    return (TF_Buffer){.data = lib_handle->ops.data, .length = lib_handle->ops.size};
}

void TF_DeleteLibraryHandle(TF_Library *lib_handle)
{
    if (lib_handle)
        wire_free(&lib_handle->ops);
    free(lib_handle);
}

TF_Library *TF_LoadPluggableDeviceLibrary(const char *library_filename, TF_Status *status)
{
    return load(library_filename, true, status);
}

void TF_DeletePluggableDeviceLibraryHandle(TF_Library *lib_handle)
{
    TF_DeleteLibraryHandle(lib_handle);
}
