/* status.c - statuses and buffers: how every other file answers.
 * Never here:  messages of any one function. */
#include "capi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The API is that of this version. */
const char *TF_Version(void)
{
    return TENSORFLOW_VERSION;
}

TF_Status *TF_NewStatus(void)
{
    return calloc(1, sizeof(TF_Status));
}

static void forget_payloads(TF_Status *s)
{
    for (int i = 0; i < 2 * s->num_payloads; i++)
        free(s->payloads[i]);
    free(s->payloads);
    s->payloads = NULL;
    s->num_payloads = 0;
}

void TF_DeleteStatus(TF_Status *s)
{
    if (s) {
        free(s->message);
        forget_payloads(s);
    }
    free(s);
}

void TF_SetStatus(TF_Status *s, TF_Code code, const char *msg)
{
    char *copy = code == TF_OK || !msg ? NULL : strdup(msg); /* before the old one goes: it may be that */
    free(s->message);
    forget_payloads(s);
    s->code = code;
    s->message = copy;
}

TF_Code TF_GetCode(const TF_Status *s)
{
    return s->code;
}

const char *TF_Message(const TF_Status *s)
{
    return s->message ? s->message : "";
}

/* Those of a status that says that all is well are not kept, nor are those for which memory ran out. */
void TF_SetPayload(TF_Status *s, const char *key, const char *value)
{
    int at = 0;
    while (at < s->num_payloads && strcmp(s->payloads[2 * at], key) != 0)
        at++;
    char *copy = s->code == TF_OK ? NULL : strdup(value);
    if (copy && at < s->num_payloads) {
        free(s->payloads[2 * at + 1]);
        s->payloads[2 * at + 1] = copy;
        return;
    }
    char *name = copy ? strdup(key) : NULL;
    char **grown = name ? realloc(s->payloads, sizeof *grown * 2 * (size_t)(at + 1)) : NULL;
    if (!grown) {
        free(copy);
        free(name);
        return;
    }
    grown[2 * at] = name;
    grown[2 * at + 1] = copy;
    s->payloads = grown;
    s->num_payloads++;
}

void TF_ForEachPayload(const TF_Status *s, TF_PayloadVisitor visitor, void *capture)
{
    for (int i = 0; i < s->num_payloads; i++)
        visitor(s->payloads[2 * i], s->payloads[2 * i + 1], capture);
}

void TF_SetStatusFromIOError(TF_Status *s, int error_code, const char *context)
{
    static const struct {
        int number;
        TF_Code code;
    } codes[] = {
        {0, TF_OK},
        {EINVAL, TF_INVALID_ARGUMENT},
        {ENAMETOOLONG, TF_INVALID_ARGUMENT},
        {E2BIG, TF_INVALID_ARGUMENT},
        {EDOM, TF_INVALID_ARGUMENT},
        {EFAULT, TF_INVALID_ARGUMENT},
        {EILSEQ, TF_INVALID_ARGUMENT},
        {ENOTTY, TF_INVALID_ARGUMENT},
        {ESPIPE, TF_INVALID_ARGUMENT},
        {ETIMEDOUT, TF_DEADLINE_EXCEEDED},
        {ETIME, TF_DEADLINE_EXCEEDED},
        {ENODEV, TF_NOT_FOUND},
        {ENOENT, TF_NOT_FOUND},
        {ENXIO, TF_NOT_FOUND},
        {ESRCH, TF_NOT_FOUND},
        {EEXIST, TF_ALREADY_EXISTS},
        {EADDRNOTAVAIL, TF_ALREADY_EXISTS},
        {EALREADY, TF_ALREADY_EXISTS},
        {EPERM, TF_PERMISSION_DENIED},
        {EACCES, TF_PERMISSION_DENIED},
        {EROFS, TF_PERMISSION_DENIED},
        {ENOTEMPTY, TF_FAILED_PRECONDITION},
        {EISDIR, TF_FAILED_PRECONDITION},
        {ENOTDIR, TF_FAILED_PRECONDITION},
        {EADDRINUSE, TF_FAILED_PRECONDITION},
        {EBADF, TF_FAILED_PRECONDITION},
        {EBUSY, TF_FAILED_PRECONDITION},
        {ECHILD, TF_FAILED_PRECONDITION},
        {EISCONN, TF_FAILED_PRECONDITION},
        {ENOTCONN, TF_FAILED_PRECONDITION},
        {EPIPE, TF_FAILED_PRECONDITION},
        {ETXTBSY, TF_FAILED_PRECONDITION},
        {ENOSPC, TF_RESOURCE_EXHAUSTED},
        {EMFILE, TF_RESOURCE_EXHAUSTED},
        {ENFILE, TF_RESOURCE_EXHAUSTED},
        {ENOMEM, TF_RESOURCE_EXHAUSTED},
        {EMLINK, TF_RESOURCE_EXHAUSTED},
        {ENOBUFS, TF_RESOURCE_EXHAUSTED},
        {EFBIG, TF_OUT_OF_RANGE},
        {EOVERFLOW, TF_OUT_OF_RANGE},
        {ERANGE, TF_OUT_OF_RANGE},
        {ENOSYS, TF_UNIMPLEMENTED},
        {ENOTSUP, TF_UNIMPLEMENTED},
        {EAFNOSUPPORT, TF_UNIMPLEMENTED},
        {EXDEV, TF_UNIMPLEMENTED},
        {EAGAIN, TF_UNAVAILABLE},
        {ECONNREFUSED, TF_UNAVAILABLE},
        {ECONNABORTED, TF_UNAVAILABLE},
        {ECONNRESET, TF_UNAVAILABLE},
        {EINTR, TF_UNAVAILABLE},
        {EHOSTUNREACH, TF_UNAVAILABLE},
        {ENETDOWN, TF_UNAVAILABLE},
        {ENETUNREACH, TF_UNAVAILABLE},
        {EDEADLK, TF_ABORTED},
        {ECANCELED, TF_CANCELLED},
    };
    TF_Code code = TF_UNKNOWN;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].number == error_code)
            code = codes[i].code;
    set_status(s, code, "%s; %s", context ? context : "", strerror(error_code));
}

bool is_ok(const TF_Status *status)
{
    return status->code == TF_OK;
}

void set_status(TF_Status *status, TF_Code code, const char *format, ...)
{
    char text[TW_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    TF_SetStatus(status, code, text);
}

/* TensorFlow has one code for all that is wrong with a graph. */
void set_graph_error(TF_Status *status, const tw_error *error)
{
    bool one = error->status == TW_ALREADY_EXISTS || error->status == TW_NOT_FOUND || error->status == TW_UNIMPLEMENTED;
    TF_SetStatus(status, one ? TF_INVALID_ARGUMENT : (TF_Code)error->status, error->message);
}

void set_error(TF_Status *status, const tw_error *error)
{
    TF_SetStatus(status, (TF_Code)error->status, error->message);
}

void set_no_memory(TF_Status *status)
{
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "out of memory");
}

/* ---- buffers ---------------------------------------------------------------------------------------------------- */

static void free_data(void *data, size_t length)
{
    (void)length;
    free(data);
}

TF_Buffer *TF_NewBuffer(void)
{
    return calloc(1, sizeof(TF_Buffer));
}

TF_Buffer *TF_NewBufferFromString(const void *proto, size_t proto_len)
{
    TF_Buffer *buffer = TF_NewBuffer();
    void *copy = buffer ? malloc(proto_len + 1) : NULL;
    if (!copy) {
        free(buffer);
        return NULL;
    }
    if (proto_len)
        memcpy(copy, proto, proto_len);
    *buffer = (TF_Buffer){copy, proto_len, free_data};
    return buffer;
}

void TF_DeleteBuffer(TF_Buffer *buffer)
{
    if (buffer && buffer->data_deallocator)
        buffer->data_deallocator((void *)buffer->data, buffer->length);
    free(buffer);
}

TF_Buffer TF_GetBuffer(TF_Buffer *buffer)
{
    return *buffer;
}

void fill_buffer(TF_Buffer *buffer, wire *bytes, TF_Status *status)
{
    if (buffer->data) {
        set_status(status, TF_INVALID_ARGUMENT, "Passing non-empty TF_Buffer is invalid.");
        wire_free(bytes);
        return;
    }
    if (!bytes->failed && !bytes->data) /* an empty message has data, too */
        wire_append(bytes, "", 1), bytes->size = 0;
    if (bytes->failed) {
        set_no_memory(status);
        wire_free(bytes);
        return;
    }
    *buffer = (TF_Buffer){bytes->data, bytes->size, free_data};
    *bytes = (wire){0};
    TF_SetStatus(status, TF_OK, "");
}

TF_Buffer *new_buffer(wire *bytes)
{
    TF_Status status = {0};
    TF_Buffer *buffer = TF_NewBuffer();
    if (buffer)
        fill_buffer(buffer, bytes, &status);
    else
        wire_free(bytes);
    if (!is_ok(&status)) {
        TF_DeleteBuffer(buffer);
        buffer = NULL;
    }
    free(status.message);
    return buffer;
}
