/* colocation.h - groups of nodes that must share a device. Private to src/place. */
#ifndef TWI_COLOCATION_H
#define TWI_COLOCATION_H

#include "base/array.h"
#include "base/map.h"
#include "base/text.h"
#include "place/place.h"

/* A kind of device: those with one table of functions, so with the same kernels. */
enum { TWI_MOST_KINDS = 8 };

typedef enum twi_link { TWI_BY_RESOURCE, TWI_BY_CLASS } twi_link;

/* What made one group of two: `to` uses the resource of `from`, or names it in _class. */
typedef struct twi_join {
    int from, to;
    twi_link link;
} twi_join;

/* One for each node. What is said of a group stands in its root. */
typedef struct twi_member {
    int parent, size;            /* union-find */
    bool nowhere;                /* no device has a kernel for the node: it belongs to no group and gets no device */
    const twi_device_name *requested; /* group: what its members ask for, merged */
    const twi_device_name *resource;  /* group: what the node that makes its resource asked for */
    int asker;                   /* group: the node whose request counts; -1 if nobody asks */
    unsigned kinds;              /* group: bit k: every member has a kernel on devices of kind k */
    int lacking[TWI_MOST_KINDS]; /* group: the first member without one; -1 */
    int assigned;                /* group: device, once it is chosen; -1 */
    bool kept;                   /* group: it was chosen before the graph grew */
    int chooser;                 /* group: the node that was placed first */
    bool wished;                 /* group: and a heuristic that saves copies chose for it */
    int relaxed;                 /* group: 0 as asked; 1 type and id dropped; 2 the resource's too */
} twi_member;

typedef struct twi_groups {
    const tw_graph *graph;
    const tw_devices *devices;
    twi_placement_options options;
    const twi_refusals *refusals;
    int num_kinds;
    twi_device *kinds[TWI_MOST_KINDS]; /* one device of each */
    int *kind_of;                      /* [devices] */
    int *preference;                   /* [devices] GPUs before CPUs, then by number */
    twi_member *members;               /* [nodes] */
    bool *generates;                   /* [nodes] it has no inputs and makes one value */
    bool *gives_resource;              /* [nodes] some output of it is a resource or a reference */
    TWI_ARRAY(twi_join) joins;         /* trees that span the groups */
    twi_map names;                     /* all that members ask for, each once */
    const twi_device_name *latest_name; /* of them */
    const twi_device_name *nothing;     /* of them: of who asks for none */
    twi_arena arena;                   /* holds them */
    struct {
        const twi_device_name *name;
        unsigned kinds;
        int device;
    } latest; /* the first device of these kinds with this name: neighbours often ask for the same one of a thousand */
} twi_groups;

/* earlier: device of each node whose place is fixed, else -1; [num_earlier], nodes beyond are free. */
tw_status twi_groups_build(twi_groups *groups, const tw_graph *graph, const twi_placement_options *options,
                           const twi_refusals *refusals, const int *earlier, int num_earlier, tw_error *error);
void twi_groups_free(twi_groups *groups);
twi_member *twi_group_of(twi_groups *groups, int node);
/* The name as one of groups->names, the same for the same; NULL when out of memory. */
const twi_device_name *twi_keep_name(twi_groups *groups, const twi_device_name *name);
bool twi_names_a_device(const twi_device_name *name);                          /* says anything at all */
unsigned twi_kinds_with_kernel(const twi_groups *groups, const tw_node *node); /* bit k: devices of kind k */
/* What a kernel of that kind of device says of a node that it does not take; NULL: nothing. */
const char *twi_refusal_of(const twi_groups *groups, const tw_node *node, int kind);

/* -- placer.c -- */
/* Where soft placement would put a group; -1: nowhere. */
int twi_nearest_device(const twi_groups *groups, const twi_member *group);

/* -- messages.c: the texts of failures, TensorFlow's -- */
tw_status twi_fail_malformed(const tw_node *node, const tw_error *reason, tw_error *error);
tw_status twi_fail_no_kernel(const twi_groups *groups, const tw_node *node, tw_error *error);
tw_status twi_fail_to_place(twi_groups *groups, const tw_node *node, tw_error *error);
/* merge_error NULL: no kind of device suits both. */
tw_status twi_fail_to_colocate(twi_groups *groups, const tw_node *a, const tw_node *b, const tw_error *merge_error,
                               tw_error *error);
/* "b_1 = VariableV2[dtype=DT_FLOAT, shape=[3,2], _device="/device:GPU:1"]()" */
void twi_node_summary(twi_text *text, const tw_node *node);

/* -- reasons.c -- */
/* All of an explanation that is data, in one sentence. */
void twi_tell_reason(twi_text *text, twi_groups *groups, const tw_explanation *explanation);

#endif
