/* driver.c - the cards of this machine, from the driver alone: nothing is allocated on any of them.
 *
 * The driver is opened at run time and may be missing: then there is a line that says so. Cards are numbered by their
 * place on the PCI bus, which does not change between two starts of the machine. */
#include "device/cuda/cuda.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*  X(field, symbol in the driver) */
#define CALLS(X)                                                                                                       \
    X(Init, cuInit)                                                                                                    \
    X(DriverGetVersion, cuDriverGetVersion)                                                                            \
    X(GetErrorString, cuGetErrorString)                                                                                \
    X(DeviceGetCount, cuDeviceGetCount)                                                                                \
    X(DeviceGet, cuDeviceGet)                                                                                          \
    X(DeviceGetName, cuDeviceGetName)                                                                                  \
    X(DeviceGetUuid, cuDeviceGetUuid)                                                                                  \
    X(DeviceGetPCIBusId, cuDeviceGetPCIBusId)                                                                          \
    X(DeviceTotalMem, cuDeviceTotalMem)                                                                                \
    X(DeviceGetAttribute, cuDeviceGetAttribute)

#define TEXT_OF(symbol) #symbol
#define TEXT(symbol) TEXT_OF(symbol) /* cuda.h gives some calls a newer version's name */

typedef struct driver {
#define X(field, symbol) __typeof__(&symbol) field;
    CALLS(X)
#undef X
} driver;

typedef struct found {
    twi_card card;
    int ordinal;
} found;

/* Asked once: cards do not come and go while a process runs. */
static struct {
    pthread_once_t once;
    found cards[TWI_CUDA_MOST_CARDS];
    int count;
    char why[256];
} list = {.once = PTHREAD_ONCE_INIT};

static bool load(driver *d)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(list.why, sizeof list.why, "no NVIDIA driver is installed (libcuda.so.1 was not found)");
        return false;
    }
#define X(field, symbol)                                                                                               \
    if (!(d->field = (__typeof__(&symbol))dlsym(library, TEXT(symbol)))) {                                             \
        snprintf(list.why, sizeof list.why, "the NVIDIA driver is too old: it has no %s", TEXT(symbol));               \
        return false;                                                                                                  \
    }
    CALLS(X)
#undef X
    return true;
}

static bool works(const driver *d, const char *call, CUresult code)
{
    const char *text = NULL;
    if (code == CUDA_SUCCESS)
        return true;
    if (code == CUDA_ERROR_NO_DEVICE) {
        snprintf(list.why, sizeof list.why, "the NVIDIA driver finds no card");
        return false;
    }
    d->GetErrorString(code, &text);
    snprintf(list.why, sizeof list.why, "the NVIDIA driver does not work: %s: %s", call, text ? text : "unknown error");
    return false;
}

static bool describe(const driver *d, int ordinal, found *f)
{
    CUdevice device;
    CUuuid uuid;
    int major, minor, length = 4;
    twi_card *card = &f->card;
    f->ordinal = ordinal;
    if (!works(d, "cuDeviceGet", d->DeviceGet(&device, ordinal)) ||
        !works(d, "cuDeviceGetName", d->DeviceGetName(card->name, sizeof card->name, device)) ||
        !works(d, "cuDeviceGetUuid", d->DeviceGetUuid(&uuid, device)) ||
        !works(d, "cuDeviceGetPCIBusId", d->DeviceGetPCIBusId(card->pci, sizeof card->pci, device)) ||
        !works(d, "cuDeviceTotalMem", d->DeviceTotalMem(&card->memory, device)) ||
        !works(d, "cuDeviceGetAttribute",
               d->DeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)) ||
        !works(d, "cuDeviceGetAttribute",
               d->DeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)) ||
        !works(d, "cuDeviceGetAttribute",
               d->DeviceGetAttribute(&card->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device)) ||
        !works(d, "cuDeviceGetAttribute",
               d->DeviceGetAttribute(&card->shared, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device)))
        return false;
    card->capability = 10 * major + minor;
    memcpy(card->uuid, "GPU-", 4);
    for (int i = 0; i < 16; i++)
        length += snprintf(card->uuid + length, sizeof card->uuid - (size_t)length, "%s%02x",
                           i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (unsigned char)uuid.bytes[i]);
    return true;
}

/* All parts of a PCI id have a fixed width. */
static int by_pci(const void *a, const void *b)
{
    return strcmp(((const found *)a)->card.pci, ((const found *)b)->card.pci);
}

static void ask(void)
{
    driver d = {0};
    int version, count;
    if (!load(&d) || !works(&d, "cuInit", d.Init(0)) ||
        !works(&d, "cuDriverGetVersion", d.DriverGetVersion(&version)))
        return;
    if (version / 1000 < CUDART_VERSION / 1000) {
        snprintf(list.why, sizeof list.why, "the NVIDIA driver is too old: it knows CUDA %d.%d, needed is %d.0",
                 version / 1000, version % 1000 / 10, CUDART_VERSION / 1000);
        return;
    }
    if (!works(&d, "cuDeviceGetCount", d.DeviceGetCount(&count)))
        return;
    if (count == 0)
        snprintf(list.why, sizeof list.why, "the NVIDIA driver finds no card");
    for (int i = 0; i < count && i < TWI_CUDA_MOST_CARDS; i++, list.count++)
        if (!describe(&d, i, &list.cards[i])) {
            list.count = 0;
            return;
        } else {
            list.cards[i].card.driver = version;
        }
    qsort(list.cards, (size_t)list.count, sizeof *list.cards, by_pci);
}

int twi_cuda_count(const char **why)
{
    pthread_once(&list.once, ask);
    *why = list.why;
    return list.count;
}

tw_status twi_cuda_describe(int index, twi_card *card, tw_error *error)
{
    const char *why;
    int count = twi_cuda_count(&why);
    if (index < 0 || index >= count)
        return twi_fail(error, TW_NOT_FOUND, "there is no card number %d: %s", index,
                        count ? "there are fewer" : why);
    *card = list.cards[index].card;
    return TW_OK;
}

int twi_cuda_ordinal(int index)
{
    return list.cards[index].ordinal;
}
