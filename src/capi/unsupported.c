/* unsupported.c - what Tower cannot do, and says so: programs that are linked with it start, and are told when they
 * ask.
 * Never here:  anything that works. */
#include "capi.h"

#include <stdlib.h>

static void refuse(TF_Status *status, const char *what)
{
    set_status(status, TF_UNIMPLEMENTED, "Tower has no %s", what);
}

TF_Library *TF_LoadLibrary(const char *library_filename, TF_Status *status)
{
    (void)library_filename;
    refuse(status, "ops that are loaded from TensorFlow's libraries");
    return NULL;
}

TF_Buffer TF_GetOpList(TF_Library *lib_handle)
{
    (void)lib_handle;
    return (TF_Buffer){0};
}

void TF_DeleteLibraryHandle(TF_Library *lib_handle)
{
    (void)lib_handle;
}

TF_Library *TF_LoadPluggableDeviceLibrary(const char *library_filename, TF_Status *status)
{
    (void)library_filename;
    refuse(status, "devices that are loaded from TensorFlow's libraries");
    return NULL;
}

void TF_DeletePluggableDeviceLibraryHandle(TF_Library *lib_handle)
{
    (void)lib_handle;
}

void TF_RegisterFilesystemPlugin(const char *plugin_filename, TF_Status *status)
{
    (void)plugin_filename;
    refuse(status, "file systems of TensorFlow's");
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
    (void)proto;
    (void)proto_len;
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
