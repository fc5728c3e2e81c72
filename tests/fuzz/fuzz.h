/* fuzz.h - everything that reads bytes from outside, as a table of targets. One program has them all: under libFuzzer
 * it makes inputs (fuzz, of scripts/fuzz), without it it replays those that were kept (replay, of ctest).
 *
 * What a target must hold: no crash, nothing the sanitizers find, no leak, a second and 64 MB + 8 times the input at
 * most.
 *
 * Adding one: a row here, and a function fuzz_NAME in the file for its kind; inputs to begin with in corpus/NAME/,
 * words of its language in words/NAME. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, kind, "what it reads"): READS is bounded as above; COMPUTES runs what a graph says, which takes as long as it
 * takes: its allocations fail beyond the bound, and it has ten seconds. */
#define FUZZ_TARGETS(X)                                                                                                \
    X(graph, READS, "a GraphDef, exported again")                                                                      \
    X(meta_graph, READS, "a MetaGraphDef, exported again")                                                             \
    X(graph_file, READS, "a graph in a file: binary, text, SavedModel, event file, by the first byte")                 \
    X(checkpoint, READS, "a checkpoint: the index's length in two bytes, the index, the data")                         \
    X(state, READS, "the text file `checkpoint` of a directory")                                                       \
    X(table, READS, "a sorted string table")                                                                           \
    X(snappy, READS, "a block of Snappy's")                                                                            \
    X(records, READS, "a TFRecord file")                                                                               \
    X(events, READS, "an event file, value by value")                                                                  \
    X(example, READS, "a tf.train.Example")                                                                            \
    X(text, READS, "a GraphDef in protobuf's text format, made into what lies on the wire")                            \
    X(idx, READS,                                                                                                      \
      "MNIST's four files, each as its length in two bytes and its bytes; plain or with .gz, by the first")            \
    X(cifar, READS, "files of CIFAR-10")                                                                               \
    X(list, READS, "labels.csv of own images")                                                                         \
    X(npy, READS, "an array of NumPy's")                                                                               \
    X(image, READS, "a JPEG or a PNG, decoded and fitted")                                                             \
    X(archive, READS, "a tar archive, compressed or not")                                                              \
    X(http, READS, "replies of a server: how much is there of the file in a byte, then the bytes of each connection")  \
    X(algorithms, READS, "the algorithms that a card remembers, behind the line of their head")                        \
    X(order_log, READS, "order.log of an asynchronous training")                                                       \
    X(device, READS, "names of devices, two in two lines: parsed, printed, merged")                                    \
    X(specs, READS, "a line of each: reductions, slices")                                                              \
    X(options, READS, "the words of a command line, one a line; the first names the command")                          \
    X(config, READS, "a file of options")                                                                              \
    X(run_file, READS, "run.json of a train directory")                                                                \
    X(report, READS,                                                                                                   \
      "run.json, step.json, eval.jsonl and an event log, each as its length in two bytes and its bytes")               \
    X(run, COMPUTES, "a GraphDef, each of whose nodes is run on three devices")                                        \
    X(ops, COMPUTES,                                                                                                   \
      "numbers that a graph of any ops is drawn from: differentiated, rewritten, compared with the plain kernels")     \
    X(calls, COMPUTES, "a program of public calls, in any order, with NULLs, on three threads")

typedef void fuzz_function(const uint8_t *bytes, size_t size);
#define X(name, kind, reads) fuzz_function fuzz_##name;
FUZZ_TARGETS(X)
#undef X

/* The directory of this process, in memory where that can be; it is there for good, and what is in it is for the target
 * to replace. */
const char *fuzz_folder(void);
/* Writes a file there; its path is valid until the next call. */
const char *fuzz_file(const char *name, const void *bytes, size_t size);

/* Numbers out of an input; zeros when it has ended. */
typedef struct numbers {
    const uint8_t *at, *end;
} numbers;

static inline unsigned next_byte(numbers *n)
{
    return n->at < n->end ? *n->at++ : 0;
}

static inline unsigned next_below(numbers *n, unsigned below) /* below > 0, at most 256 */
{
    return next_byte(n) % below;
}

/* The next stretch: its length in two bytes, then the bytes, as far as there are any. */
static inline numbers next_part(numbers *n)
{
    size_t size = next_byte(n);
    size |= (size_t)next_byte(n) << 8;
    if (size > (size_t)(n->end - n->at))
        size = (size_t)(n->end - n->at);
    numbers part = {n->at, n->at + size};
    n->at += size;
    return part;
}

#endif
