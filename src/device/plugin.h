/* plugin.h - what libtower and a plug-in with GPUs agree on.
 *
 * A plug-in is a shared library that is opened at run time, so that one package serves machines with and without GPUs.
 * It shows one function, named TWI_PLUGIN_ENTRY, that returns a table; all else it needs of the library is compiled into
 * it. Memory is freed on the side that allocated it. */
#ifndef TWI_PLUGIN_H
#define TWI_PLUGIN_H

#include "device/device.h"

#include <tower/status.h> /* tw_log_function */

#define TWI_PLUGIN_VERSION 5 /* goes up whenever this file, device.h or kernel.h change what both sides see */
#define TWI_PLUGIN_ENTRY "tw_cuda_plugin"

/* A card as the driver describes it; nothing is allocated on it to ask. */
typedef struct twi_card {
    char name[96];
    char uuid[48];             /* "GPU-8a7e...": 16 bytes in hexadecimal */
    char pci[24];              /* "0000:1b:00.0" */
    size_t memory;             /* bytes */
    int capability;            /* 90 for 9.0 */
    int multiprocessors;
} twi_card;

typedef struct twi_plugin {
    int version;               /* TWI_PLUGIN_VERSION of its sources */
    size_t device_size;        /* sizeof(twi_device) there */
    void (*set_log)(tw_log_function *function, void *user, int level); /* where its messages go: as tw_set_log() */
    int (*count)(const char **why);     /* of cards; if 0, *why is one plain line, valid for ever */
    tw_status (*describe)(int index, twi_card *card, tw_error *error); /* in PCI order */
    /* "/gpu:number": card `index`, or with parts > 1 one part of it; NULL: see error */
    twi_device *(*create)(int index, int number, int part, int parts, tw_error *error);
    const char *(*nccl)(const char **why); /* version of the library that reduces between cards; NULL: as with count() */
} twi_plugin;

typedef const twi_plugin *twi_plugin_entry(void);

/* The plug-in, opened when first asked for and never closed: in the folders of the environment's TOWER_PLUGIN_PATH
 * (separated by colons), beside libtower, or where the loader looks. NULL: *why says in one line why there is none. */
const twi_plugin *twi_plugin_open(const char **why);

#endif
