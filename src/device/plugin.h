/* plugin.h - what libtower and a plug-in with backends, or with ways to be started, agree on.
 *
 * A plug-in is a shared library libtower_NAME.so that is opened at run time, so that one package serves machines with
 * and without some kind of device. It shows one function, twi_plugin_entry, that returns a table; all else it needs of
 * the library is compiled into it. Memory is freed on the side that allocated it.
 *
 * Both sides were compiled with some version of the headers. A plug-in is refused unless the two agree in the
 * contract's number and in the size of every struct that both look into. */
#ifndef TWI_PLUGIN_H
#define TWI_PLUGIN_H

#include "comm/comm.h"
#include "device/backend.h"

#include <tower/status.h> /* tw_log_function */

/* Goes up when what both sides see changes and no size shows it: the order of members, the meaning of a call. */
#define TWI_CONTRACT 7

/*  X(struct) for each that both sides look into */
#define TWI_SHARED(X)                                                                                                  \
    X(twi_plugin)                                                                                                      \
    X(twi_backend)                                                                                                     \
    X(twi_comm_way)                                                                                                    \
    X(twi_comm_ops)                                                                                                    \
    X(twi_comm_watcher)                                                                                                \
    X(twi_comm)                                                                                                        \
    X(twi_backend_option)                                                                                              \
    X(twi_options)                                                                                                     \
    X(twi_device)                                                                                                      \
    X(twi_device_ops)                                                                                                  \
    X(twi_device_name)                                                                                                 \
    X(tw_devices)                                                                                                      \
    X(tw_device_info)                                                                                                  \
    X(twi_kernel)                                                                                                      \
    X(twi_prepare)                                                                                                     \
    X(twi_run)                                                                                                         \
    X(twi_operand)                                                                                                     \
    X(twi_resource)                                                                                                    \
    X(twi_resources)                                                                                                   \
    X(twi_attr)                                                                                                        \
    X(twi_attrs)                                                                                                       \
    X(tw_tensor)                                                                                                       \
    X(tw_shape)                                                                                                        \
    X(tw_error)

typedef struct twi_layout {
    const char *name;
    size_t bytes;
} twi_layout;

extern const twi_layout twi_layouts[]; /* of this side; ended by one without a name */

typedef struct twi_plugin {
    /* What comes first stays as it is in every version, so that any two can tell whether they fit. */
    int contract;              /* TWI_CONTRACT */
    const char *version;       /* of the Tower whose headers it was compiled with */
    const twi_layout *layouts; /* twi_layouts */
    /* What comes now is as the contract says. */
    const twi_backend *const *backends;                                /* ended by NULL */
    const twi_comm_way *const *ways;                                   /* ended by NULL; NULL: none */
    void (*set_log)(tw_log_function *function, void *user, int level); /* where its messages go: as tw_set_log() */
} twi_plugin;

#define TWI_PLUGIN_HEAD                                                                                                \
    .contract = TWI_CONTRACT, .version = TOWER_VERSION, .layouts = twi_layouts, .set_log = tw_set_log

/* The one function that a plug-in shows. */
__attribute__((visibility("default"))) const twi_plugin *twi_plugin_entry(void);
#define TWI_PLUGIN_ENTRY "twi_plugin_entry"

/* The plug-ins' backends, opened when first asked for and never closed: all files libtower_*.so in the folders of the
 * environment's TOWER_PLUGIN_PATH (separated by colons), beside libtower, and where the loader looks; of one name the
 * first. *why says in plain words which were refused, or that there are none; "" if neither. */
enum { TWI_MOST_BACKENDS = 32 };
twi_backends twi_plugin_backends(const char **why);
/* Their ways for tasks to be started, ended by NULL; *refused says which plug-ins were, "" if none. */
const twi_comm_way *const *twi_plugin_ways(const char **refused);

#endif
