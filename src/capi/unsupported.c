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
