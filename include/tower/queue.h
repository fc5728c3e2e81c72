/* queue.h - input as graphs of old have it: queues and readers as ops, and the threads that keep them filled.
 *
 *     tw_output names = tw_string_input_producer(g, files, 5, NULL);
 *     tw_output record = tw_reader_read(g, tw_fixed_length_record_reader(g, 0, 3073, 0), names, NULL);
 *     ... decode, cut, distort: one example ...
 *     tw_shuffle_batch(g, example, 2, TW_OPTIONS(tw_batch_options, .batch = 128, .threads = 4), batch);
 *     ... a network, a session, variables initialized ...
 *     tw_start_queue_runners(session, coordinator, &error);
 *     while (!tw_coordinator_should_stop(coordinator)) ...train...
 *     tw_coordinator_request_stop(coordinator);
 *     tw_coordinator_join(coordinator, 10, &error);
 *
 * Names, attributes and behaviour are TensorFlow's. What is in a queue is not in checkpoints. New programs are better
 * off with data.h: its order does not depend on timing, and a stopped run goes on where it was. */
#ifndef TOWER_QUEUE_H
#define TOWER_QUEUE_H

#include <tower/graph.h>
#include <tower/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- queues --------------------------------------------------------------------------------------------------- */

typedef enum tw_queue_kind { /* ORDER QUEUES */
    TW_QUEUE_FIFO,
    TW_QUEUE_SHUFFLE,  /* RandomShuffleQueue: gives any of what it holds */
    TW_QUEUE_PADDING,  /* PaddingFIFOQueue: shapes may have unknown dimensions; see tw_dequeue_padded() */
    TW_QUEUE_PRIORITY, /* the smallest first; the first component, an int64 scalar that `types` does not list, ranks */
} tw_queue_kind;

/* Zero values are sensible. */
typedef struct tw_queue_options {
    size_t size; /* TW_SIZED(tw_queue_options) sets it: see language.h */
    int64_t capacity;          /* elements; 0: no limit */
    int64_t min_after_dequeue; /* of a shuffle queue: so many stay, to draw from, until it is closed */
    int64_t seed;              /* of a shuffle queue; 0: the graph's */
    const char *shared_name;   /* queues of one name are one queue; NULL: the node's */
} tw_queue_options;

/* A queue of elements with `count` components, as a handle. shapes NULL: any; then elements can only be taken one by
 * one, and their shapes must not be needed before the step. */
TW_API tw_output tw_queue(tw_graph *graph, tw_queue_kind kind, const tw_dtype *types, const tw_shape *shapes, int count,
                          const tw_queue_options *options);

/* Nodes to run. A full queue makes the run wait, and a closed one fails it with TW_CANCELLED. tw_enqueue_many() puts in
 * an element for each place of the components' first dimension. */
TW_API tw_output tw_enqueue(tw_graph *graph, tw_output queue, const tw_output *components, int count);
TW_API tw_output tw_enqueue_many(tw_graph *graph, tw_output queue, const tw_output *components, int count);

/* components[i] becomes component i of an element, or of n as [n,...]. An empty queue makes the run wait, unless it is
 * closed: then it fails with TW_OUT_OF_RANGE, and what is left stays in the queue. */
TW_API void tw_dequeue(tw_graph *graph, tw_output queue, tw_output *components);
TW_API void tw_dequeue_many(tw_graph *graph, tw_output queue, int64_t n, tw_output *components);
/* The same for elements of several sizes: shapes[i] is what each is filled up to with zeros. */
TW_API void tw_dequeue_padded(tw_graph *graph, tw_output queue, int64_t n, const tw_shape *shapes,
                              tw_output *components);

/* Nodes to run. After closing nothing can be put in any more; with cancel_pending_enqueues those who wait to do so
 * fail, else they come first. */
TW_API tw_output tw_queue_close(tw_graph *graph, tw_output queue, bool cancel_pending_enqueues);
TW_API tw_output tw_queue_size(tw_graph *graph, tw_output queue);      /* int32 */
TW_API tw_output tw_queue_is_closed(tw_graph *graph, tw_output queue); /* bool */

/* ---- readers -------------------------------------------------------------------------------------------------- */

/* A handle. A reader reads the files whose names it takes from a queue of strings, one after the other. */
TW_API tw_output tw_fixed_length_record_reader(tw_graph *graph, int64_t header_bytes, int64_t record_bytes,
                                               int64_t footer_bytes);
TW_API tw_output tw_record_reader(tw_graph *graph); /* TFRecord files */
TW_API tw_output tw_text_line_reader(tw_graph *graph, int64_t skip_header_lines);
TW_API tw_output tw_whole_file_reader(tw_graph *graph);

/* The next record, a string; *key (it may be NULL) says where it is from, "FILE:PLACE". TW_OUT_OF_RANGE when the last
 * file has ended and the queue of names is closed. */
TW_API tw_output tw_reader_read(tw_graph *graph, tw_output reader, tw_output queue, tw_output *key);
TW_API tw_output tw_reader_num_records_produced(tw_graph *graph, tw_output reader); /* int64 */

/* ---- threads that fill queues ----------------------------------------------------------------------------------- */

/* Ends a group of threads together: the first that fails, or has had enough, asks all to stop. Any thread may call. */
typedef struct tw_coordinator tw_coordinator;

/* Yours: tw_coordinator_destroy(). */
TW_API tw_status tw_coordinator_create(tw_coordinator **coordinator, tw_error *error);
/* Asks to stop, and waits for all threads. NULL is fine. Before the session's end. */
TW_API void tw_coordinator_destroy(tw_coordinator *coordinator);

/* Starts a thread that is waited for. It looks whether it should stop now and then, and its failure, if it does not
 * return TW_OK, is a request to stop because of `error`. */
typedef tw_status tw_coordinator_thread(tw_coordinator *coordinator, void *user, tw_error *error);
TW_API tw_status tw_coordinator_start(tw_coordinator *coordinator, const char *name, tw_coordinator_thread *thread,
                                      void *user, tw_error *error);

/* why NULL: all is well. Of several reasons the first counts. TW_OUT_OF_RANGE is the end of the data, and no
 * failure. */
TW_API void tw_coordinator_request_stop(tw_coordinator *coordinator, const tw_error *why);
TW_API bool tw_coordinator_should_stop(tw_coordinator *coordinator);
/* Waits at most so long for such a request; true if there is one. */
TW_API bool tw_coordinator_wait_for_stop(tw_coordinator *coordinator, double seconds);
/* Waits for a request to stop, and then at most so long for the threads. Fails with the reason of the request, or with
 * TW_DEADLINE_EXCEEDED and the names of those that still run. */
TW_API tw_status tw_coordinator_join(tw_coordinator *coordinator, double grace_seconds, tw_error *error);

/* What fills a queue: nodes that are run over and over, each in a thread of its own (name one twice for two threads).
 * When one fails with TW_OUT_OF_RANGE or TW_CANCELLED its thread has done its work, and the last to end runs `close`;
 * other failures are a request to stop. On such a request `cancel` is run; a thread whose run has not ended two seconds
 * later, for it waits elsewhere than in a queue, has its lane cancelled (tw_session_cancel_lane()). */
typedef struct tw_queue_runner {
    tw_output queue;
    tw_output close, cancel;   /* {NULL, 0}: made when the runner is added */
    const tw_output *enqueues; /* [num_enqueues], copied */
    int num_enqueues;
} tw_queue_runner;

/* Adds a runner to the graph's collection "queue_runners", which holds, for each, its queue, `close`, `cancel` and the
 * nodes of its threads, in this order. */
TW_API void tw_add_queue_runner(tw_graph *graph, const tw_queue_runner *runner);
/* Starts the threads of all runners of the session's graph; variables they need have been initialized. Each thread runs
 * in a lane of its own. */
TW_API tw_status tw_start_queue_runners(tw_session *session, tw_coordinator *coordinator, tw_error *error);

/* ---- input made of these ---------------------------------------------------------------------------------------- */

/* Zero values are sensible. */
typedef struct tw_input_producer_options {
    size_t size; /* TW_SIZED(tw_input_producer_options) sets it: see language.h */
    int64_t epochs;   /* 0: no end; else a variable counts, and the queue is closed after so many */
    bool in_order;    /* as given; otherwise shuffled anew in each epoch */
    int64_t seed;     /* of the shuffling; 0: the graph's */
    int64_t capacity; /* of the queue; 0: 32 */
} tw_input_producer_options;

/* A queue of the names, again and again, with its runner. */
TW_API tw_output tw_string_input_producer(tw_graph *graph, const char *const *names, int count,
                                          const tw_input_producer_options *options);

typedef struct tw_batch_options {
    size_t size; /* TW_SIZED(tw_batch_options) sets it: see language.h */
    int batch;                 /* examples */
    int threads;               /* that fill the queue; 0: 1 */
    int64_t capacity;          /* 0: 32, or when shuffling min_after_dequeue + 3 * batch */
    int64_t min_after_dequeue; /* when shuffling: examples to draw from */
    int64_t seed;              /* when shuffling; 0: the graph's */
    bool enqueue_many;         /* components are several examples each, along their first dimension */
} tw_batch_options;

/* Batches of the example that `components` are, through a queue with its runner: batches[i] is [batch,...]. When
 * shuffling each example is drawn from those that wait. */
TW_API void tw_batch(tw_graph *graph, const tw_output *components, int count, const tw_batch_options *options,
                     tw_output *batches);
TW_API void tw_shuffle_batch(tw_graph *graph, const tw_output *components, int count, const tw_batch_options *options,
                             tw_output *batches);

/* A queue of whole batches that a runner keeps filled while steps compute; each tower takes its own with tw_dequeue().
 * capacity 0: 8. */
TW_API tw_output tw_prefetch_queue(tw_graph *graph, const tw_output *components, int count, int64_t capacity);

#ifdef __cplusplus
}
#endif
#endif
