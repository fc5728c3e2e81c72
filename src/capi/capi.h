/* capi.h - what the files of TensorFlow's C API share. They stand on Tower's public headers alone.
 *
 * A TF_Graph has a tw_graph and, for each of its nodes, a TF_Operation of the same number. Whoever looks something up
 * holds the graph's lock for reading, and whoever builds for writing; a builder of nodes holds the graph's sessions,
 * too (begin_building), which may be running. */
#ifndef CAPI_H
#define CAPI_H

#include <pthread.h>
#include <stdarg.h>
#include <tensorflow/c/c_api.h>
#include <tower/graph.h>
#include <tower/op.h>
#include <tower/session.h>

#include "wire.h"

struct TF_Status {
    TF_Code code;
    char *message;
    char **payloads; /* [2 * num_payloads] keys, and behind each its value */
    int num_payloads;
};

/* Memory that tensors share. */
typedef struct tensor_memory {
    int references;
    void *data;
    size_t bytes;
    bool ours; /* to be written to by whoever has it alone */
    void (*deallocator)(void *data, size_t bytes, void *arg);
    void *arg;
} tensor_memory;

struct TF_Tensor {
    TF_DataType type;
    int num_dims;
    int64_t *dims;
    tensor_memory *memory;
};

typedef struct kept_attr kept_attr;

struct TF_Operation {
    TF_Graph *graph;
    tw_node *node;
    const tw_op_info *op; /* its row; NULL: not asked for yet, or it is a node that could not be built */
    TF_Input *consumers;  /* of all outputs */
    TF_Operation **controlled;
    int num_consumers, num_controlled;
    kept_attr *kept; /* [num_kept] attributes that the node has no room for */
    int num_kept;
};

struct TF_Graph {
    pthread_rwlock_t lock;
    int references; /* its own, and one for each session */
    TF_Session *sessions;
    tw_graph *tower;
    tw_graph **former; /* [num_former] what it was before nodes changed: names of operations are borrowed from these */
    int num_former;
    TF_Operation **operations; /* [num_operations] by the numbers of their nodes */
    int num_operations;
    TF_Function **functions;
    int num_functions;
    TF_Graph *around;  /* of a loop's condition: the graph that the loop is to be part of, */
    TF_Output *begins; /* and what it begins with there */
};

/* -- status.c -- */
void set_status(TF_Status *status, TF_Code code, const char *format, ...) TW_PRINTF(3, 4);
void set_error(TF_Status *status, const tw_error *error);       /* what Tower says, or that all went well */
void set_graph_error(TF_Status *status, const tw_error *error); /* the same of what is added to a graph */
void set_no_memory(TF_Status *status);
bool is_ok(const TF_Status *status);
/* Gives bytes to a buffer of the caller's, which must be empty; they are freed if it is not. Bytes NULL: memory ran
 * out. */
void fill_buffer(TF_Buffer *buffer, wire *bytes, TF_Status *status);
TF_Buffer *new_buffer(wire *bytes); /* the same in one that is new, and the caller's; NULL: memory ran out */

/* -- tensor.c -- */
TF_Tensor *make_tensor(TF_DataType type, const int64_t *dims, int num_dims,
                       tensor_memory *memory);                  /* which it retains */
TF_Tensor *share_tensor(const TF_Tensor *tensor);                /* another of the same memory */
TF_Tensor *tensor_from_tower(tw_tensor *tensor);                /* takes over the reference; NULL: memory ran out */
tw_tensor *tensor_to_tower(TF_Tensor *tensor, tw_error *error); /* yours; NULL: the error says why */
tw_tensor *tensor_of_message(const TF_Buffer *from, tw_error *error); /* a TensorProto; the result is as that above */
void write_tower_tensor(wire *w, tw_tensor *tensor);
bool write_tensor(wire *w, const TF_Tensor *tensor); /* as a TensorProto. False: it has what no message can have */

/* -- graph.c -- */
/* Makes operations of the nodes that have come since; false: memory ran out, and these nodes are no more. Between
 * begin_building() and end_building(), as the next. */
bool sync_graph(TF_Graph *graph);
void take_back(TF_Graph *graph, int count); /* leaves so many operations */
bool note_uses(TF_Operation *user);         /* with those whose outputs it takes. False: memory ran out */
void retain_graph(TF_Graph *graph);
void release_graph(TF_Graph *graph);
static inline TF_Operation *operation_of(const TF_Graph *graph, const tw_node *node)
{
    return node ? graph->operations[tw_node_number(node)] : NULL;
}
static inline TF_Output output_of(const TF_Graph *graph, tw_output output)
{
    return (TF_Output){operation_of(graph, output.node), output.index};
}
/* Says in a GraphDef that it is a new one: in old ones the shape [] of a placeholder means that nothing is known. */
void write_versions(wire *def);
enum { GRAPH_VERSION = 134 }; /* of graphs: tw_graph_export()'s */
/* The name of a node that is called so, or lies in a scope that is; NULL: there is none. */
const char *find_in_scope(const tw_graph *graph, const char *scope);
/* An output of the graph for Tower; false: it is none, and the status says so. */
bool find_output(const TF_Graph *graph, TF_Output output, tw_output *found, TF_Status *status);
/* The same, with the codes for an index that is below 0 or above the last: TF_OUT_OF_RANGE is not everywhere. */
bool find_output_as(const TF_Graph *graph, TF_Output output, tw_output *found, TF_Code below, TF_Code above,
                    TF_Status *status);
tw_shape shape_of(const int64_t *dims, int num_dims);

/* -- session.c -- */
void begin_building(TF_Graph *graph);
void end_building(TF_Graph *graph);

/* -- build.c -- */
/* As TF_FinishOperation(), but inputs of lists may have been added one by one, as those of eager operations may. */
TF_Operation *finish_operation(TF_OperationDescription *d, TF_Status *status);
bool check_minima(TF_Operation *made, TF_Status *status); /* false: an attribute has less than TensorFlow takes */
void delete_description(TF_OperationDescription *d); /* which was not finished; NULL is fine */
/* Takes the AttrValue over; what the attribute was before is forgotten. */
void set_attr(TF_OperationDescription *d, const char *name, wire *value);
const wire *described_value(const TF_OperationDescription *d, const char *name); /* NULL: it has not been told */
/* The type that an attribute has been told to be, or number `i` of those that it lists; 0: it has not been told. */
TF_DataType described_type(const TF_OperationDescription *d, const char *name, int i);
const char *described_device(const TF_OperationDescription *d);
void write_attrs(const TF_OperationDescription *d, wire *w, int field); /* a map of them */
bool may_call(const TF_OperationDescription *d); /* whether something of it may be a function of the graph */
/* Those that it has not been told, and that its op has. */
void add_attrs(TF_OperationDescription *d, const TF_OperationDescription *from);
/* The same with another name, without inputs, and without attributes that the op has not. NULL: memory ran out. */
TF_OperationDescription *describe_again(const TF_OperationDescription *d, const char *name);

/* -- kept_attr.c -- */
bool is_kept(const char *name, size_t size); /* whether such attributes are kept beside operations */
/* Keeps an AttrValue, in place of one of that name; false: memory ran out. */
bool keep_attr(TF_Operation *oper, const char *name, size_t name_size, const void *value, size_t size);
bool drop_attr(TF_Operation *oper, const char *name, size_t size); /* false: it is not kept */
void free_kept_attrs(TF_Operation *oper);
/* What an operation has, its node's attributes and those beside it. */
int num_attrs(const TF_Operation *oper);
const tw_attr *attr_at(const TF_Operation *oper, int i); /* NULL: there are not so many */
/* Of a kept one that is nothing that Tower knows, `kind` is 0, `i` a TF_AttrType and `count` -1 or that of a list. */
const tw_attr *attr_of(const TF_Operation *oper, const char *name);
const unsigned char *bools_of(const tw_attr *attr); /* of such a list */
tw_status write_node_def(wire *def, const TF_Operation *oper, tw_error *error);

/* -- attr.c -- */
TF_AttrType type_of_kind(tw_attr_kind kind); /* of lists that of their items */
bool is_list_kind(tw_attr_kind kind);

/* -- import.c -- */
/* The prefix, or PREFIX_1 and so on: one that no node has, of a graph whose lock is held. To be freed; NULL: memory ran
 * out. */
char *unique_prefix(const tw_graph *graph, const char *wanted);
/* TF_GraphImportGraphDefWithResults() between begin_building() and end_building(). */
TF_ImportGraphDefResults *import_graph(TF_Graph *graph, const TF_Buffer *graph_def,
                                       const TF_ImportGraphDefOptions *options, TF_Status *status);

/* -- op_def.c -- */
const tw_op_info *find_op(const char *name); /* valid for ever; NULL: there is none */
const tw_op_info *op_of(TF_Operation *operation);
void set_not_registered(TF_Status *status, const char *op); /* TF_NOT_FOUND */
void write_op_def(wire *w, const tw_op_info *op);
void write_attr_value(wire *w, int field, const tw_attr *value); /* as an AttrValue */
/* How many tensors an argument of the node has. */
int length_of_argument(const tw_node *node, const tw_op_argument *argument);
/* Which argument an input or output belongs to; NULL: the row does not say. *first: the number of its first. */
const tw_op_argument *find_argument(const tw_node *node, const tw_op_argument *arguments, int count, int index,
                                    int *first);

/* -- function.c -- */
struct TF_Function {
    int references;
    char *name;
    wire def;       /* a FunctionDef */
    char *gradient; /* in a graph's list: which function is its gradient; NULL: none */
};
TF_Function *new_function(wire *def, TF_Status *status); /* takes the bytes over */
void release_function(TF_Function *function);
TF_Function *find_function(const TF_Graph *graph, const char *name);
/* Adds a function, and another that is its gradient (NULL: none), to a graph whose lock is held for writing. */
bool add_function(TF_Graph *graph, const TF_Function *function, const TF_Function *gradient, TF_Status *status);
void write_library(wire *w, const TF_Graph *graph); /* field 2 of a GraphDef, if there are functions */

/* -- session.c -- */
/* TF_NewSession() with tw_session_options.kept_plans. */
TF_Session *new_session(TF_Graph *graph, const TF_SessionOptions *opts, int kept_plans, TF_Status *status);
const TF_Graph *session_graph(const TF_Session *session);
bool is_closed(const TF_Session *session);
bool places_softly(const TF_SessionOptions *options);
tw_session *tower_session_of(const TF_Session *session);
struct partial_run **partial_runs_of(TF_Session *session); /* the first of them */
/* Which of the feeds an output is, where nodes do nothing but pass that on: it is given back as it is, which need not
 * be run for. -1: none of them. */
int find_fed(const tw_feed *feeds, int num_feeds, tw_output output);
/* How a run is to be, as RunOptions and who asks say. */
typedef struct run_settings {
    int64_t timeout_ms; /* not above 0: as long as the session's options say */
    wire *metadata;     /* the run is traced, and this RunMetadata tells when what ran; NULL: it is not */
} run_settings;
/* A run of the graph, whose lock is not held, in a lane that nobody else is in. */
void run_session(TF_Session *session, run_settings settings, const tw_feed *feeds, int num_feeds,
                 const tw_output *fetches, int num_fetches, tw_tensor **results, TF_Status *status);

/* -- metadata.c -- */
void write_step_stats(wire *metadata, const tw_timeline *timeline); /* of a run that has just ended */

/* -- partial.c -- */
typedef struct partial_run partial_run;
void free_partial_runs(partial_run *runs);

#endif
