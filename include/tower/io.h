/* io.h - what outlives a run: checkpoints, event logs and graphs, in TensorFlow's formats.
 *
 * A checkpoint of step 1000 with prefix "model.ckpt" is two files, model.ckpt-1000.index and
 * model.ckpt-1000.data-00000-of-00001 (a "V2 tensor bundle"); its path, as functions here take and give it, is
 * "DIRECTORY/model.ckpt-1000". TensorFlow reads what Tower writes and the other way round. */
#ifndef TOWER_IO_H
#define TOWER_IO_H

#include <tower/graph.h>
#include <tower/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writing checkpoints ------------------------------------------------------------------------------------ */

typedef struct tw_named_tensor {
    const char *name;        /* not empty, unique among those saved together */
    const tw_tensor *tensor; /* any dtype but TW_RESOURCE */
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

/* ---- reading checkpoints ------------------------------------------------------------------------------------ */

typedef struct tw_checkpoint tw_checkpoint;

/* Opens a checkpoint: its path (with or without ".index"), or a directory, which stands for its latest complete
 * checkpoint. The index is read and checked whole: its checksums, the order of names, and that every tensor lies
 * inside its data file. Yours: tw_checkpoint_close(). Use it from one thread at a time. */
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

/* Reads one tensor and compares it with its checksum. *tensor is yours: tw_tensor_release(). TW_NOT_FOUND for an
 * unknown name, TW_UNIMPLEMENTED for dtypes that Tower lacks, TW_DATA_LOSS for damage. */
TW_API tw_status tw_checkpoint_read(tw_checkpoint *checkpoint, const char *name, tw_tensor **tensor, tw_error *error);

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

/* ---- graphs ------------------------------------------------------------------------------------------------- */

/* The whole graph as a serialized GraphDef message, in order of creation, with the shapes of all outputs for TensorBoard
 * (tw_event_writer_add_graph). TensorFlow runs it, but for nodes of tw_input(), which must be fed there. Variables keep
 * their names but not their values, which are in checkpoints. *bytes is yours: tw_free(). TW_INVALID_ARGUMENT if it
 * would take 2 GiB or more. */
TW_API tw_status tw_graph_export(const tw_graph *graph, void **bytes, size_t *size, tw_error *error);

/* Adds the nodes of a serialized GraphDef, by whomever it was written, in an order in which inputs come first. They are
 * named "PREFIX/name" (prefix NULL or "": as in the file) and take their devices from the file; open scopes do not count.
 * Queues and readers of before version 26 (FIFOQueue, ReaderRead) become those of today (FIFOQueueV2, ReaderReadV2).
 * What is assigned and read through a VarHandleOp or VariableV2 becomes a variable of the graph, not trainable, since the file does not
 * tell; with another of that name it shares its value.
 *
 * A node of an op that Tower lacks, and those that take something from it, are kept as nodes without outputs of the op
 * "_Unknown": a run that needs one fails with TW_NOT_FOUND and names the op, others never mind, and an export writes what
 * the file said. So what nobody needs may be anything, loops too.
 *
 * All is checked before anything is added: attributes, types, shapes, names, cycles; the error names the node.
 * TW_UNIMPLEMENTED: a type or kind of attribute that it lacks. TW_ALREADY_EXISTS:
 * the graph has a node of a name. TW_RESOURCE_EXHAUSTED also for files that are small but would take much memory: constants
 * whose last value is repeated may take 64 MiB more than the file says. TW_INVALID_ARGUMENT: everything else. */
TW_API tw_status tw_graph_import(tw_graph *graph, const void *bytes, size_t size, const char *prefix, tw_error *error);

/* The same for a serialized MetaGraphDef, as tf.train.export_meta_graph and Saver write it (model.ckpt-1000.meta): also
 * its collections of nodes, which variables are trainable, and the queue runners. */
TW_API tw_status tw_meta_graph_import(tw_graph *graph, const void *bytes, size_t size, const char *prefix,
                                      tw_error *error);

#ifdef __cplusplus
}
#endif
#endif
