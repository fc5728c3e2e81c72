/* io.h - what outlives a run: checkpoints, event logs and graphs, in TensorFlow's formats.
 *
 * A checkpoint of step 1000 with prefix "model.ckpt" is two files, model.ckpt-1000.index and
 * model.ckpt-1000.data-00000-of-00001 (a "V2 tensor bundle"); its path, as functions here take and give it, is
 * "DIRECTORY/model.ckpt-1000". TensorFlow reads what Tower writes and the other way round. */
#ifndef TOWER_IO_H
#define TOWER_IO_H

#include <tower/graph.h>
#include <tower/session.h>
#include <tower/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writing checkpoints ------------------------------------------------------------------------------------ */

typedef struct tw_named_tensor {
    const char *name;        /* not empty, unique among those saved together */
    const tw_tensor *tensor; /* any dtype but TW_RESOURCE */
    const char *part;        /* NULL or "": all of it. Otherwise which part of a larger tensor of that name it is:
                                "1000 64 0,500:-" is the first 500 rows of [1000,64]. Parts of one tensor share a name */
} tw_named_tensor;

/* Saves tensors as DIRECTORY/PREFIX-STEP, then brings the text file DIRECTORY/checkpoint up to date, then deletes the
 * older checkpoints of this prefix until `keep` are left (0 keeps all). The directory is made if need be. Equal tensors
 * give equal bytes, in whatever order they are passed.
 *
 * The files are written beside, synced to the disk and renamed, the index last: a checkpoint exists from the moment its
 * index does, and is complete then. A save that fails or is killed leaves every earlier checkpoint as it was; what it
 * leaves behind is removed by the next save that succeeds. A checkpoint of the same step is replaced in the same way
 * (were the process killed in between, the old one would be found as PREFIX-STEP.replaced). Checkpoints of later steps,
 * from another run, are left alone, with a warning in the log: readers that look for the latest will find those.
 *
 * One directory belongs to one saving process at a time. The message of an error names the file. When only the
 * `checkpoint` file could not be written, this too is an error, but the checkpoint is there and will be found. */
TW_API tw_status tw_checkpoint_save(const char *directory, const char *prefix, int64_t step,
                                    const tw_named_tensor *tensors, int count, int keep, tw_error *error);

/* Deletes what processes that were killed while they saved checkpoints of this prefix left in the directory under
 * temporary names, as the next save would. Waits for one that is under way. */
TW_API tw_status tw_checkpoint_tidy(const char *directory, const char *prefix, tw_error *error);

/* ---- reading checkpoints ------------------------------------------------------------------------------------ */

typedef struct tw_checkpoint tw_checkpoint;

/* Opens a checkpoint: its path (with or without ".index"), or a directory, which stands for its latest complete
 * checkpoint. The index is read and checked whole: its checksums, the order of names, and that every tensor lies
 * inside its data file. A checkpoint as TensorFlow wrote them until 0.11 is its file, or the files of its shards,
 * "model.ckpt-5-?????-of-00002"; it is read and checked whole, with all values. Yours: tw_checkpoint_close(). Use it
 * from one thread at a time. */
TW_API tw_status tw_checkpoint_open(const char *path, tw_checkpoint **checkpoint, tw_error *error);
TW_API void tw_checkpoint_close(tw_checkpoint *checkpoint); /* NULL is fine */

TW_API const char *tw_checkpoint_path(const tw_checkpoint *checkpoint); /* borrowed */
TW_API int64_t tw_checkpoint_step(const tw_checkpoint *checkpoint);     /* from its name; -1 if that has none */

/* The tensors, ordered by name (as bytes). */
TW_API int tw_checkpoint_count(const tw_checkpoint *checkpoint);
TW_API const char *tw_checkpoint_name(const tw_checkpoint *checkpoint, int i); /* borrowed */
TW_API tw_dtype tw_checkpoint_dtype(const tw_checkpoint *checkpoint, int i);   /* TW_INVALID_DTYPE: one Tower lacks */
TW_API tw_shape tw_checkpoint_shape(const tw_checkpoint *checkpoint, int i);   /* unknown above TW_MAX_RANK */
TW_API int64_t tw_checkpoint_bytes(const tw_checkpoint *checkpoint, int i);    /* in the data files */
TW_API int tw_checkpoint_find(const tw_checkpoint *checkpoint, const char *name); /* -1 if absent */

/* A checkpoint of objects, as tf.train.Checkpoint, Keras and SavedModels write them, has the value of the variable that
 * its program called `name` under another: "layer/kernel/.ATTRIBUTES/VARIABLE_VALUE". *key is that one, borrowed; NULL:
 * none of its variables has the name, or several have. TW_DATA_LOSS: what it says of its objects is no message. */
TW_API tw_status tw_checkpoint_key(tw_checkpoint *checkpoint, const char *name, const char **key, tw_error *error);

/* Reads one tensor and compares it with its checksum. *tensor is yours: tw_tensor_release(). TW_NOT_FOUND for an
 * unknown name, TW_UNIMPLEMENTED for dtypes that Tower lacks, TW_DATA_LOSS for damage. */
TW_API tw_status tw_checkpoint_read(tw_checkpoint *checkpoint, const char *name, tw_tensor **tensor, tw_error *error);

/* The same of a part of it, as tw_named_tensor says it (NULL: all of it), in whatever parts it was saved. */
TW_API tw_status tw_checkpoint_read_part(tw_checkpoint *checkpoint, const char *name, const char *part,
                                         tw_tensor **tensor, tw_error *error);

/* Opens the checkpoint and reads every byte of it against the checksums. TW_OK: it is complete and undamaged. */
TW_API tw_status tw_checkpoint_verify(const char *path, tw_error *error);

/* Finds the latest complete checkpoint of a directory: of the highest step that passes tw_checkpoint_verify(); those
 * that do not are passed over, with a warning in the log that says why. What the `checkpoint` file names is looked at
 * too (it may lie elsewhere), but not trusted. Writes its path into path[size] and its step (-1: none in its name)
 * into *step, which may be NULL. TW_NOT_FOUND if there is none. */
TW_API tw_status tw_checkpoint_latest(const char *directory, char *path, size_t size, int64_t *step, tw_error *error);

/* The checkpoints in a directory, by rising step, without looking inside them. */
typedef struct tw_checkpoint_list tw_checkpoint_list;
TW_API tw_status tw_checkpoint_list_open(const char *directory, tw_checkpoint_list **list, tw_error *error);
TW_API void tw_checkpoint_list_close(tw_checkpoint_list *list); /* NULL is fine */
TW_API int tw_checkpoint_list_count(const tw_checkpoint_list *list);
TW_API const char *tw_checkpoint_list_path(const tw_checkpoint_list *list, int i); /* borrowed */
TW_API int64_t tw_checkpoint_list_step(const tw_checkpoint_list *list, int i);     /* -1: none in its name */

/* ---- event logs --------------------------------------------------------------------------------------------- */

/* Writes what TensorBoard shows: curves, histograms, the graph. Point it at the directory, or at a folder above
 * several: each is a run. Functions may be called from several threads; events are never mixed or torn. They are
 * buffered and reach the file every few seconds, as further ones are added, or when flushed. After a write has failed
 * the file ends there: whatever is flushed later reports the first error again. */
typedef struct tw_event_writer tw_event_writer;

/* Makes the directory if need be, and in it a new file, events.out.tfevents.SECONDS.HOST.PROCESS.NUMBER.
 * Yours: tw_event_writer_close(). */
TW_API tw_status tw_event_writer_create(const char *directory, tw_event_writer **writer, tw_error *error);
/* Flushes and frees; NULL is fine. */
TW_API tw_status tw_event_writer_close(tw_event_writer *writer, tw_error *error);
TW_API tw_status tw_event_writer_flush(tw_event_writer *writer, tw_error *error);
TW_API const char *tw_event_writer_path(const tw_event_writer *writer); /* of the file; borrowed */

/* One point of the curve `tag` ("loss", "tower_0/loss"): slashes group curves. */
TW_API tw_status tw_event_writer_add_scalar(tw_event_writer *writer, const char *tag, int64_t step, float value,
                                            tw_error *error);
/* How the values of a numeric tensor are spread. TW_INVALID_ARGUMENT for NaN, infinities and strings. */
TW_API tw_status tw_event_writer_add_histogram(tw_event_writer *writer, const char *tag, int64_t step,
                                               const tw_tensor *tensor, tw_error *error);
/* A serialized Summary message, as summary ops give it. */
TW_API tw_status tw_event_writer_add_summary(tw_event_writer *writer, int64_t step, const void *summary, size_t bytes,
                                             tw_error *error);
/* A serialized GraphDef message. */
TW_API tw_status tw_event_writer_add_graph(tw_event_writer *writer, const void *graph_def, size_t bytes,
                                           tw_error *error);
/* Training goes on from `step`: TensorBoard forgets what earlier files say of this step and later ones. */
TW_API tw_status tw_event_writer_add_restart(tw_event_writer *writer, int64_t step, tw_error *error);

/* What an event file says, one value after the other. */
typedef enum tw_event_kind {
    TW_EVENT_SCALAR,
    TW_EVENT_HISTOGRAM,
    TW_EVENT_RESTART, /* what was said of this step and later ones is to be forgotten */
} tw_event_kind;

typedef struct tw_event {
    tw_event_kind kind;
    int64_t step;
    double time;          /* seconds since 1970 */
    const char *tag;      /* borrowed until the next event, like what follows; "" of a restart */
    float value;          /* of a scalar */
    double min, max, sum; /* of a histogram */
    int num_buckets;
    const double *limits, *counts; /* [num_buckets] bucket i holds limits[i - 1] <= x < limits[i] */
} tw_event;

/* Reads such a file, whoever wrote it; other kinds of events are passed over. Yours: tw_event_reader_close(). Use it
 * from one thread at a time. */
typedef struct tw_event_reader tw_event_reader;
TW_API tw_status tw_event_reader_open(const char *path, tw_event_reader **reader, tw_error *error);
TW_API void tw_event_reader_close(tw_event_reader *reader); /* NULL is fine */
/* TW_OUT_OF_RANGE behind the last; TW_DATA_LOSS where the file is damaged or was cut off: nothing comes behind that. */
TW_API tw_status tw_event_reader_next(tw_event_reader *reader, tw_event *event, tw_error *error);

/* ---- graphs ------------------------------------------------------------------------------------------------- */

/* The whole graph as a serialized GraphDef message, in order of creation, with the shapes of all outputs for
 * TensorBoard (tw_event_writer_add_graph). TensorFlow imports and runs it: what brings a step's examples from outside,
 * as tw_input() does, is a placeholder for each output there (NAME, NAME/output_1, ...), and a data set that lies on a
 * device a variable. Variables keep their names but not their values, which are in checkpoints. *bytes is yours:
 * tw_free(). TW_INVALID_ARGUMENT if it would take 2 GiB or more. */
TW_API tw_status tw_graph_export(const tw_graph *graph, void **bytes, size_t *size, tw_error *error);
/* The same of those nodes alone that the outputs need. */
TW_API tw_status tw_graph_export_part(const tw_graph *graph, const tw_output *outputs, int num_outputs, void **bytes,
                                      size_t *size, tw_error *error);

/* One node as a serialized NodeDef message. *bytes is yours: tw_free(). */
TW_API tw_status tw_node_export(const tw_node *node, void **bytes, size_t *size, tw_error *error);

/* Adds the nodes of a serialized GraphDef, by whomever it was written, in an order in which inputs come first. They are
 * named "PREFIX/name" (prefix NULL or "": as in the file) and take their devices from the file; open scopes do not
 * count. Queues and readers of before version 26 (FIFOQueue, ReaderRead) become those of today (FIFOQueueV2,
 * ReaderReadV2). What is assigned and read through a VarHandleOp or VariableV2 becomes a variable of the graph, not
 * trainable, since the file does not tell; with another of that name it shares its value.
 *
 * A node of an op that Tower lacks, or that asks of one what it cannot do here (a type such as complex64, more than
 * TW_MAX_RANK dimensions, an attribute of a newer writer), and those that take something from such a node, are kept as
 * nodes without outputs of the op "_Unknown": a run that needs one fails with TW_NOT_FOUND and says op and reason,
 * others never mind, and an export writes what the file said. So what nobody needs may be anything, loops too.
 *
 * All is checked before anything is added: attributes, types, shapes, names, cycles; the error names the node.
 * TW_ALREADY_EXISTS: the graph has a node of a name. TW_RESOURCE_EXHAUSTED also for files that are small but would take
 * much memory: constants whose last value is repeated may take 64 MiB more than the file says. TW_INVALID_ARGUMENT:
 * everything else. */
TW_API tw_status tw_graph_import(tw_graph *graph, const void *bytes, size_t size, const char *prefix, tw_error *error);

/* An input of the file that is led to something that the graph has. */
typedef struct tw_import_input {
    const char *name; /* of the node that the file's nodes name, whether the file has it or not */
    int index;        /* of its output; -1: who is to wait for the node waits for that of `output` instead */
    tw_output output; /* what they take instead, of the graph */
    bool used;        /* is set: somebody does */
} tw_import_input;

/* Zero values are sensible. */
typedef struct tw_import_options {
    size_t size;               /* TW_SIZED(tw_import_options) sets it: see language.h */
    const char *prefix;        /* as of tw_graph_import() */
    const char *device;        /* of nodes that the file asks nothing for; NULL: none */
    tw_import_input *inputs;   /* [num_inputs] */
    int num_inputs;
    tw_node *const *after;     /* [num_after] what those of the file's nodes wait for that take nothing of the file */
    int num_after;
    bool rename;               /* a node whose name is taken becomes NAME_1, NAME_2, ...; otherwise that is an error */
    bool known_only;           /* a node that cannot be built is an error: TW_NOT_FOUND, TW_UNIMPLEMENTED */
    bool any_names;            /* names may have any characters, not just those that TensorFlow's files have */
    const char *const *names;  /* [num_names] of nodes of the file: nodes[i] is set to what has become of it, or NULL */
    tw_node **nodes;
    int num_names;
} tw_import_options;

/* tw_graph_import() with options (NULL: all zero): a graph becomes a part of another, or a node is added that somebody
 * has described in TensorFlow's own words. A node's "loc:@NAME" may name what `inputs` have. */
TW_API tw_status tw_graph_import_with(tw_graph *graph, const void *bytes, size_t size, const tw_import_options *options,
                                      tw_error *error);

/* The same for a serialized MetaGraphDef, as tf.train.export_meta_graph and Saver write it (model.ckpt-1000.meta): also
 * its collections of nodes, which variables are trainable, and the queue runners. */
TW_API tw_status tw_meta_graph_import(tw_graph *graph, const void *bytes, size_t size, const char *prefix,
                                      tw_error *error);

/* ---- graphs in files ---------------------------------------------------------------------------------------- */

/* Something of a graph by a name that is not its node's: an input or output of a signature, or the text that holds the
 * path of one of the model's files. */
typedef struct tw_signature_value {
    const char *name;
    tw_output output;
} tw_signature_value;

/* What a graph offers to who does not know its nodes: values to feed and to fetch, by names of their own. */
typedef struct tw_signature {
    const char *name, *method;            /* "serving_default", "tensorflow/serving/predict" */
    tw_signature_value *inputs, *outputs; /* ordered by name */
    int num_inputs, num_outputs;
} tw_signature;

/* What a file says beside the nodes. */
typedef struct tw_graph_about {
    const char *format;          /* "GraphDef", "MetaGraphDef", "SavedModel", "event file" */
    bool is_text;                /* of the first three: in protobuf's text format */
    const char *writer;          /* version of TensorFlow; "": it is not said */
    const char *tags;            /* "serve" or "serve,gpu"; "": none */
    tw_signature *signatures;    /* ordered by name */
    int num_signatures;
    tw_output saver_filename;    /* the Saver's: what is fed with a path; {NULL, 0}: there is none, as of the next two */
    tw_output saver_save;        /* what saves */
    tw_output saver_restore;     /* what restores */
    const char *variables;       /* of a SavedModel: the checkpoint beside it; NULL: none */
    tw_output *initializers;     /* what has to be run before all else, beside the variables' own: tables, for example */
    int num_initializers;
    tw_signature_value *assets;  /* files that the graph reads: `name` is the path, what to feed `output` with */
    int num_assets;
    const void *meta_graph;      /* a serialized MetaGraphDef, that of a SavedModel, if it was to be kept; NULL: none */
    size_t meta_graph_size;
} tw_graph_about;

/* Zero values are sensible. */
typedef struct tw_load_options {
    size_t size;        /* TW_SIZED(tw_load_options) sets it: see language.h */
    const char *prefix; /* as of tw_graph_import() */
    const char *tags;   /* of several graphs in a SavedModel, that with just these, "a,b", or the first that has others
                           too; NULL: "serve", or any */
    bool just_tags;     /* of a SavedModel, which the file is then: that with just these, or TW_NOT_FOUND; "": one that
                           has none. TW_DATA_LOSS: it is none */
    bool keep_message;  /* *about has the MetaGraphDef, too */
} tw_load_options;

/* Adds the graph of a file, whatever it is called: a GraphDef, a MetaGraphDef, a SavedModel, each in binary or in text,
 * or the last graph in an event file; of a directory, the SavedModel in it or what lies beside its latest checkpoint.
 * It is read as by tw_graph_import() and tw_meta_graph_import(), and a text as the message that it spells. options
 * NULL: all zero. *about is yours: tw_graph_about_destroy(); it belongs to the graph, which has to outlive it. about
 * NULL: not wanted. */
TW_API tw_status tw_graph_load(tw_graph *graph, const char *path, const tw_load_options *options, tw_graph_about **about,
                               tw_error *error);
TW_API void tw_graph_about_destroy(tw_graph_about *about); /* NULL is fine */

/* What a MetaGraphDef says beside the graph. Zero values are sensible. */
typedef struct tw_meta_graph_options {
    size_t size;      /* TW_SIZED(tw_meta_graph_options) sets it: see language.h */
    const char *tags; /* "serve,gpu"; NULL: none */
    const tw_signature *signatures;
    int num_signatures;
} tw_meta_graph_options;

/* The graph as a serialized MetaGraphDef, as tf.train.export_meta_graph writes it: the nodes of tw_graph_export(),
 * those of a Saver of all variables (copies, tw_copy_variable(), are none of its), the collections, variables and queue
 * runners among them, and the signatures. tf.train.import_meta_graph() gives a Saver that restores what tw_save()
 * saved. options NULL: all zero. *bytes is yours: tw_free(). */
TW_API tw_status tw_meta_graph_export(const tw_graph *graph, const tw_meta_graph_options *options, void **bytes,
                                      size_t *size, tw_error *error);

/* Makes DIRECTORY a SavedModel with the values that the session's variables have: saved_model.pb, variables/. Without
 * tags it has "serve". TW_ALREADY_EXISTS: there is one. */
TW_API tw_status tw_saved_model_save(tw_session *session, const char *directory, const tw_meta_graph_options *options,
                                     tw_error *error);

/* ---- arrays ------------------------------------------------------------------------------------------------- */

/* NumPy's files of one array (.npy, versions 1 to 3), of numbers and bools in either order of bytes and of rows.
 * Reading gives a tensor of yours: tw_tensor_release(). Writing replaces the file as a whole; TW_UNIMPLEMENTED for
 * types that NumPy lacks. */
TW_API tw_status tw_tensor_read_npy(const char *path, tw_tensor **tensor, tw_error *error);
TW_API tw_status tw_tensor_write_npy(const tw_tensor *tensor, const char *path, tw_error *error);

/* One picture, JPEG or PNG, as uint8 [height, width, channels], in its own size (tw_image_read() fits it into another).
 * channels: 1 (grey), 3 or 4; 0: as many as it has. *tensor is yours: tw_tensor_release(). */
TW_API tw_status tw_tensor_read_image(const char *path, int channels, tw_tensor **tensor, tw_error *error);

#ifdef __cplusplus
}
#endif
#endif
