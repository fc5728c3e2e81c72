/* inside.h - what the parts of libcard share: counting calls and things, putting work on streams. */
#ifndef CARD_INSIDE_H
#define CARD_INSIDE_H

#include "card.h"

#include <cuda_runtime_api.h>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace card {

extern std::recursive_mutex lock;
extern thread_local cudaError_t last_error; /* each thread has its own, as with CUDA */

/* Notes a call; true when it is the one that shall fail. */
bool fails(const char *call);
/* Counts things that must be given back: born("streams", 1), born("streams", -1). */
void born(const char *what, int change);
void seen(const char *what);

/* Puts work on a stream, or into what it records. */
void enqueue(cudaStream_t stream, std::function<void()> work);
/* Lets the time of a stream, as events see it, go on by what "engine 3" takes. */
void spend(cudaStream_t stream, const std::string &what);
/* A part of a card has a context of its own, and its streams do; nullptr: the card's. What the thread makes now belongs
 * to `context`. */
extern thread_local void *context;
void set_context(cudaStream_t stream, void *context);
void *context_of(cudaStream_t stream);
/* Whether nothing is to be computed, only noted. */
bool idle(void);
/* Puts work on `count` streams at once: it is done, once, when any of them gets to it, all others being worked off up
 * to there; while it says false it is not. Where CARD_NCCL_AT says "reduction", it never is, until the world that it
 * belongs to is released. */
void meet(size_t count, const std::function<cudaStream_t(size_t)> &stream, std::function<bool()> work, uint64_t world);
void release(uint64_t world);
/* Whether the range lies in one block of some card's memory, or of page-locked memory. */
bool on_card(const void *memory, size_t bytes);

/* Bytes of shared memory of a size that the launch says which the kernel may have. */
size_t most_shared(const void *kernel);
/* Runs a kernel's threads, block after block; emulate.h has what they see. */
void run_grid(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel);

}

/* First line of a call. */
#define CALL(code)                                                                                                     \
    std::lock_guard<std::recursive_mutex> guard(card::lock);                                                           \
    if (card::fails(__func__))                                                                                         \
        return code;

#endif
