/* import.h - what the steps of an import share: the nodes of a file on their way into a graph.
 *
 * The steps, in their order: the file's nodes are collected and named (sources.c, nodes.c), their ops and attributes
 * read (attributes.c), all sorted (order.c), data sets told what their elements are (data_sets.c), and all added to the
 * graph (build.c). */
#ifndef TWI_IMPORT_H
#define TWI_IMPORT_H

#include "base/arena.h"
#include "base/array.h"
#include "base/map.h"
#include "base/status.h"
#include "graph/frames.h"
#include "graph/graph.h"
#include "io/functions/functions.h"

#include <string.h>
#include <tower/io.h>

/* One input as the file names it. */
typedef struct twi_import_source {
    int node;  /* place in the file */
    int index; /* of its output; -1: a control input */
} twi_import_source;

typedef struct twi_import_item {
    const Twi__NodeDef *def;
    twi_import_source *inputs; /* [num_inputs] */
    size_t num_inputs;         /* def's, less what it does not wait for (order.c) */
    char *name;                /* with the prefix */
    const char *device;        /* of the file or the options */
    const twi_op *op;
    bool goes_on;    /* into a loop's next round, by the op that the file names, even if it cannot be built */
    const char *why; /* it cannot be built; NULL: it can */
    twi_attr *attrs;
    int num_attrs;
    tw_node *made;          /* in the graph */
    bool given;             /* it was there before; `def` is NULL */
    tw_import_input *input; /* which leads to it; NULL: it is only waited for */
    int frame;              /* loop that it is in; 0: none */
    int next;               /* the next one there; -1: it is the last */
    bool idle;              /* nobody takes it (order.c) */
    bool of_function;       /* a function has it, or it takes something from such a node: TensorFlow knows shapes there
                               when it runs, so what does not fit is an error of runs that need it */
} twi_import_item;

typedef struct twi_importer {
    twi_arena arena;
    const Twi__GraphDef *def;
    const tw_import_options *options;
    const char *prefix; /* "imported/" or "" */
    const char *device; /* of nodes that ask for none */
    tw_graph *graph;
    int count;                      /* with what is given */
    int num_read;                   /* of the file */
    twi_import_item *items;         /* in the order of the file */
    int *order;                     /* inputs first */
    twi_map places;                 /* name in the file -> item */
    twi_map inputs;                 /* "node:1", "^node" -> item that is given instead */
    twi_map outside;                /* "node" -> the same, for who is to be beside it */
    twi_map new_names;              /* of nodes that had to be renamed */
    size_t spare_bytes;             /* for constants */
    TWI_ARRAY(tw_tensor *) tensors; /* the importer's references */
    twi_functions *functions;       /* NULL: it has none */
    Twi__NodeDef **nodes;           /* [count] of the file, without calls of functions */
    twi_frames frames;
    TWI_ARRAY(int) members; /* [frames] the first item of a loop; -1: none */
    int *users;             /* [count] inputs that name an item, where there are loops */
    tw_error *error;
} twi_importer;

/* What a node is marked with that was added though its inputs do not fit. */
#define TWI_MISFITS "_misfits"

tw_status twi_import_fail_memory(twi_importer *m);

/* ---- sources.c --------------------------------------------------------------------------------------------------- */

tw_status twi_import_check_versions(twi_importer *m);
tw_status twi_import_collect_nodes(twi_importer *m);
tw_status twi_import_collect_given(twi_importer *m); /* what leads from the file to the graph */
/* "node", "node:1" or "^node". */
tw_status twi_import_find_source(twi_importer *m, const char *text, twi_import_source *source);
tw_status twi_import_resolve(twi_importer *m, twi_import_item *item); /* its inputs */

/* ---- nodes.c, attributes.c --------------------------------------------------------------------------------------- */

tw_status twi_import_name_items(twi_importer *m);
tw_status twi_import_read_nodes(twi_importer *m);
tw_status twi_import_attrs(twi_importer *m, twi_import_item *item);
/* From now on the node is one that cannot be built, which not everybody wants. */
tw_status twi_import_give_up(twi_importer *m, twi_import_item *item, tw_status status, const char *why);

/* ---- data_sets.c ------------------------------------------------------------------------------------------------- */

/* What data sets are made of, and what their functions give. */
tw_status twi_import_tell_data_sets(twi_importer *m);
/* The types that an attribute says, of what TensorFlow calls a variant. */
tw_status twi_import_tell_variants(twi_importer *m, const twi_import_item *item, const tw_output *inputs,
                                   twi_attr *attr);

/* ---- order.c, build.c -------------------------------------------------------------------------------------------- */

/* A loop's way back; it may come from a node that turns out not to be known. */
bool twi_import_goes_back(const twi_importer *m, const twi_import_item *item, size_t input);
tw_status twi_import_sort(twi_importer *m);
/* Adds all to the graph, or nothing. */
tw_status twi_import_build(twi_importer *m);

#endif
