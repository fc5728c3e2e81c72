/* unsupported.c - what Tower cannot do, and says so: programs that are linked with it start, and are told when they
 * ask.
 * Never here:  anything that works. */
#include "capi.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void refuse(TF_Status *status, const char *what)
{
    set_status(status, TF_UNIMPLEMENTED, "Tower has no %s", what);
}

/* A file that is not there is told as the loader would, another by what can be done. */
static void refuse_file(TF_Status *status, const char *file, const char *why)
{
    if (access(file, F_OK) != 0)
        set_status(status, TF_NOT_FOUND, "%s: cannot open shared object file: %s", file, strerror(errno));
    else
        set_status(status, TF_UNIMPLEMENTED, "'%s' is not loaded: %s", file, why);
}

struct TF_Library {
    void *handle;
};

/* Ops that are made for TensorFlow ask for its functions of C++, so that the loader says what is not there; what loads
 * has added no op. As in TensorFlow it stays when its handle goes. */
TF_Library *TF_LoadLibrary(const char *library_filename, TF_Status *status)
{
    void *handle = library_filename ? dlopen(library_filename, RTLD_NOW | RTLD_LOCAL) : NULL;
    TF_Library *library = handle ? calloc(1, sizeof *library) : NULL;
    TF_SetStatus(status, TF_OK, "");
    if (library)
        library->handle = handle;
    else if (handle)
        set_no_memory(status);
    else
        set_status(status, TF_NOT_FOUND, "%s", library_filename ? dlerror() : "there is no name of a library");
    return library;
}

TF_Buffer TF_GetOpList(TF_Library *lib_handle)
{
    (void)lib_handle;
    return (TF_Buffer){0};
}

void TF_DeleteLibraryHandle(TF_Library *lib_handle)
{
    free(lib_handle);
}

TF_Library *TF_LoadPluggableDeviceLibrary(const char *library_filename, TF_Status *status)
{
    refuse_file(status, library_filename,
                "devices that are made for TensorFlow do not run in Tower; its plug-ins do (TOWER_PLUGIN_PATH)");
    return NULL;
}

void TF_DeletePluggableDeviceLibraryHandle(TF_Library *lib_handle)
{
    (void)lib_handle;
}

void TF_RegisterFilesystemPlugin(const char *plugin_filename, TF_Status *status)
{
    refuse_file(status, plugin_filename, "Tower reads and writes files of the machine alone");
}

void TF_Reset(const TF_SessionOptions *opt, const char **containers, int ncontainers, TF_Status *status)
{
    (void)opt;
    (void)containers;
    (void)ncontainers;
    refuse(status, "servers whose containers could be cleared: what a session has goes with it");
}

void TF_RegisterLogListener(void (*listener)(const char *))
{
    (void)listener;
}

TF_Server *TF_NewServer(const void *proto, size_t proto_len, TF_Status *status)
{
    if (!wire_is_message(proto, proto_len))
        set_status(status, TF_INVALID_ARGUMENT, "Could not parse provided bytes into a ServerDef protocol buffer");
    else
        refuse(status, "servers; several tasks are started by tower launch, mpirun or srun");
    return NULL;
}

void TF_ServerStart(TF_Server *server, TF_Status *status)
{
    (void)server;
    refuse(status, "servers");
}

void TF_ServerStop(TF_Server *server, TF_Status *status)
{
    (void)server;
    refuse(status, "servers");
}

void TF_ServerJoin(TF_Server *server, TF_Status *status)
{
    (void)server;
    refuse(status, "servers");
}

const char *TF_ServerTarget(TF_Server *server)
{
    (void)server;
    return "";
}

void TF_DeleteServer(TF_Server *server)
{
    (void)server;
}
