/* libraries.c - see libraries.h. */
#define _GNU_SOURCE /* dladdr */
#include "device/cuda/libraries.h"

#include "base/log.h"

#include <dlfcn.h>
#include <stdio.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

tw_status twi_library_fail(tw_error *error, const twi_device *d, const char *call, const char *where, const char *text)
{
    return twi_fail(error, TW_INTERNAL, "%s%s%s: %s (%s)", d ? d->text : "", d ? ": " : "", call, text, where);
}

/* Fills in one call of a table; false when the library lacks it. */
static bool find(void *library, const char *call, void *to, char *why, size_t size)
{
    void *found = dlsym(library, call);
    if (!found)
        snprintf(why, size, "%s", dlerror());
    *(void **)to = found;
    return found != NULL;
}

static const char *file_of(void *call)
{
    Dl_info found;
    return dladdr(call, &found) ? found.dli_fname : "";
}

/* A machine may have several of a library. */
static void say_which(const char *name, size_t major, size_t minor, size_t patch, void *call)
{
    twi_log(TWI_LOG_DETAIL, "%s %zu.%zu.%zu is that in '%s'", name, major, minor, patch, file_of(call));
}

/* ---- cuBLASLt ---------------------------------------------------------------------------------------------------- */

static struct {
    pthread_once_t once;
    twi_cublas table;
    bool works;
    char why[300];
} cublas = {.once = PTHREAD_ONCE_INIT};

static const char *cublas_text(int code)
{
    return cublas.table.cublasLtGetStatusString((cublasStatus_t)code);
}

static void open_cublas(void)
{
    void *library = dlopen("libcublasLt.so." TEXT(CUBLAS_VER_MAJOR), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(cublas.why, sizeof cublas.why, "%s", dlerror());
        return;
    }
    cublas.works = true;
    cublas.table.text = cublas_text;
#define X(call) cublas.works = cublas.works && find(library, #call, &cublas.table.call, cublas.why, sizeof cublas.why);
    TWI_CUBLAS_CALLS(X)
#undef X
    size_t version = cublas.works ? cublas.table.cublasLtGetVersion() : 0;
    if (cublas.works)
        say_which("cuBLASLt", version / 10000, version / 100 % 100, version % 100,
                  (void *)cublas.table.cublasLtGetVersion);
}

tw_status twi_cublas_open(twi_device *d, const twi_cublas **library, cublasLtHandle_t *handle, tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    tw_status status = twi_cuda_use(d, error);
    if (status != TW_OK)
        return status;
    pthread_once(&cublas.once, open_cublas);
    if (!cublas.works)
        return twi_fail(error, TW_UNAVAILABLE, "%s: cuBLASLt cannot be used: %s", d->text, cublas.why);
    pthread_mutex_lock(&c->lock);
    if (!c->cublas)
        TWI_LIBRARY_CALL(d, error, &cublas.table, cublasLtCreate, (cublasLtHandle_t *)&c->cublas);
    *library = &cublas.table;
    *handle = c->cublas;
done:
    pthread_mutex_unlock(&c->lock);
    return status;
}

void twi_cublas_close(twi_cuda_device *c)
{
    if (c->cublas)
        cublas.table.cublasLtDestroy(c->cublas);
    c->cublas = NULL;
}

/* ---- cuDNN ------------------------------------------------------------------------------------------------------- */

#ifdef TOWER_WITH_CUDNN
static struct {
    pthread_once_t once;
    twi_cudnn table;
    bool works;
    char why[300];
} cudnn = {.once = PTHREAD_ONCE_INIT};

static const char *cudnn_text(int code)
{
    return cudnn.table.cudnnGetErrorString((cudnnStatus_t)code);
}

static void open_cudnn(void)
{
    void *library = dlopen("libcudnn.so." TEXT(CUDNN_MAJOR), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(cudnn.why, sizeof cudnn.why, "%s", dlerror());
        return;
    }
    cudnn.works = true;
    cudnn.table.text = cudnn_text;
#define X(call) cudnn.works = cudnn.works && find(library, #call, &cudnn.table.call, cudnn.why, sizeof cudnn.why);
    TWI_CUDNN_CALLS(X)
#undef X
    size_t version = cudnn.works ? cudnn.table.cudnnGetVersion() : 0;
    if (cudnn.works)
        say_which("cuDNN", version / 10000, version / 100 % 100, version % 100, (void *)cudnn.table.cudnnGetVersion);
}

tw_status twi_cudnn_library(const twi_cudnn **library, tw_error *error)
{
    pthread_once(&cudnn.once, open_cudnn);
    if (!cudnn.works)
        return twi_fail(error, TW_UNAVAILABLE, "cuDNN cannot be used: %s", cudnn.why);
    *library = &cudnn.table;
    return TW_OK;
}

static tw_status make_handle(twi_cuda_device *c, tw_error *error)
{
    tw_status status = TW_OK;
    TWI_LIBRARY_CALL(&c->base, error, &cudnn.table, cudnnCreate, (cudnnHandle_t *)&c->cudnn);
done:
    return status;
}

/* The library may refuse a stream of another context than the one in which the handle was made, and a part's streams
 * have one of their own; so its handle is tried, and made in there if it must be. */
static tw_status make_handle_of_part(twi_cuda_device *c, tw_error *error)
{
    tw_status status;
    TWI_TRY(make_handle(c, error));
    cudnnStatus_t code = cudnn.table.cudnnSetStream(c->cudnn, c->stream);
    if (code == CUDNN_STATUS_SUCCESS)
        return TW_OK;
    twi_log(TWI_LOG_DETAIL, "%s: cuDNN's handle is made in the part's own context: cudnnSetStream: %s", c->base.text,
            cudnn.table.cudnnGetErrorString(code));
    twi_cudnn_close(c);
    TWI_TRY(twi_cuda_part_enter(c, error));
    status = make_handle(c, error);
    twi_cuda_part_leave(c);
done:
    return status;
}

tw_status twi_cudnn_open(twi_device *d, const twi_cudnn **library, cudnnHandle_t *handle, tw_error *error)
{
    twi_cuda_device *c = (twi_cuda_device *)d;
    tw_status status = twi_cuda_use(d, error);
    if (status == TW_OK && (status = twi_cudnn_library(library, error)) != TW_OK)
        twi_prefix(error, "%s", d->text);
    if (status != TW_OK)
        return status;
    pthread_mutex_lock(&c->lock);
    if (!c->cudnn)
        status = c->share ? make_handle_of_part(c, error) : make_handle(c, error);
    *handle = c->cudnn;
    pthread_mutex_unlock(&c->lock);
    return status;
}

tw_status twi_cudnn_to_stream(twi_cuda_device *c, cudaStream_t stream, tw_error *error)
{
    tw_status status = TW_OK;
    if (c->cudnn_stream == stream)
        return TW_OK;
    TWI_LIBRARY_CALL(&c->base, error, &cudnn.table, cudnnSetStream, c->cudnn, stream);
    c->cudnn_stream = stream;
done:
    return status;
}

void twi_cudnn_close(twi_cuda_device *c)
{
    if (c->cudnn)
        cudnn.table.cudnnDestroy(c->cudnn);
    c->cudnn = NULL;
    c->cudnn_stream = NULL;
}
#else
void twi_cudnn_close(twi_cuda_device *c)
{
    (void)c;
}
#endif

/* ---- NCCL -------------------------------------------------------------------------------------------------------- */

#ifdef TOWER_WITH_NCCL
static struct {
    pthread_once_t once;
    twi_nccl table;
    bool works;
    char version[24];
    char why[300];
} nccl = {.once = PTHREAD_ONCE_INIT};

static void open_nccl(void)
{
    int version;
    void *library = dlopen("libnccl.so." TEXT(NCCL_MAJOR), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(nccl.why, sizeof nccl.why, "%s", dlerror());
        return;
    }
    nccl.works = true;
#define X(call) nccl.works = nccl.works && find(library, #call, &nccl.table.call, nccl.why, sizeof nccl.why);
    TWI_NCCL_CALLS(X)
#undef X
    if (!nccl.works)
        return;
    ncclResult_t code = nccl.table.ncclGetVersion(&version);
    nccl.works = code == ncclSuccess;
    if (nccl.works) {
        snprintf(nccl.version, sizeof nccl.version, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
        say_which("NCCL", (size_t)version / 10000, (size_t)version / 100 % 100, (size_t)version % 100,
                  (void *)nccl.table.ncclGetVersion);
    } else
        snprintf(nccl.why, sizeof nccl.why, "ncclGetVersion: %s (%s)", nccl.table.ncclGetErrorString(code), TWI_HERE);
}

tw_status twi_nccl_open(const twi_nccl **library, tw_error *error)
{
    pthread_once(&nccl.once, open_nccl);
    if (!nccl.works)
        return twi_fail(error, TW_UNAVAILABLE, "NCCL cannot be used: %s", nccl.why);
    *library = &nccl.table;
    return TW_OK;
}

const char *twi_nccl_version(const char **about)
{
    pthread_once(&nccl.once, open_nccl);
    *about = nccl.works ? file_of((void *)nccl.table.ncclGetVersion) : nccl.why;
    return nccl.works ? nccl.version : NULL;
}
#else
const char *twi_nccl_version(const char **about)
{
    *about = "the CUDA plug-in was built without NCCL's header";
    return NULL;
}
#endif

/* ---- both of them ----------------------------------------------------------------------------------------------- */

void twi_libraries_open(void)
{
    pthread_once(&cublas.once, open_cublas); /* the larger one, and cuDNN opens it, too */
#ifdef TOWER_WITH_CUDNN
    pthread_once(&cudnn.once, open_cudnn);
#endif
}
