/* cudnn_graph.h - operation graphs of cuDNN: what is to be computed, described without a card; and plans, which are a
 * graph with an engine that computes it on some card.
 *
 * A graph finalizes without a card, and an engine can be chosen for a card that is described only; so all here but
 * running is tested where no card is. */
#ifndef TWI_CUDNN_GRAPH_H
#define TWI_CUDNN_GRAPH_H

#include "device/cuda/choice.h"
#include "device/cuda/launch.h"
#include "device/cuda/libraries.h"

#ifdef TOWER_WITH_CUDNN
enum { TWI_MOST_DESCRIPTORS = 24 + 2 * TWI_CANDIDATES, TWI_MOST_TENSORS = 6 };

/* Descriptors that live and go together. The first failure stays: later calls do nothing, `status` is asked once. */
typedef struct twi_descriptors {
    const twi_cudnn *cudnn;
    const twi_device *device;      /* for messages; may be NULL */
    cudnnBackendDescriptor_t items[TWI_MOST_DESCRIPTORS];
    int count;
    int64_t between;               /* values that exist only between two operations of a graph */
    tw_status status;
    tw_error *error;
} twi_descriptors;

cudnnBackendDescriptor_t twi_descriptor(twi_descriptors *d, cudnnBackendDescriptorType_t type);
void twi_describe(twi_descriptors *d, cudnnBackendDescriptor_t item, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t count, const void *values);
void twi_described(twi_descriptors *d, cudnnBackendDescriptor_t item); /* finalizes */
void twi_descriptors_free(twi_descriptors *d);

/* The tensors of a convolution's graph, by the ids that a run names them with. */
enum { TWI_CONV_IMAGE = 1, TWI_CONV_FILTER, TWI_CONV_OUTPUT, TWI_CONV_BIAS };

/* Images are [N,H,W,C] in memory, filters [K,kh,kw,C]. Sums are of floats. */
typedef struct twi_conv_graph {
    twi_conv_direction direction;
    tw_dtype type;
    int64_t batch, in_channels, out_channels;
    int64_t image[2], output[2], size[2], stride[2], dilation[2], before[2], after[2];
    bool bias, relu;               /* forward: added and cut off before the output is written */
} twi_conv_graph;

/* The finalized graph; NULL: see d->status. `handle` NULL: of no card. */
cudnnBackendDescriptor_t twi_conv_graph_make(twi_descriptors *d, const twi_conv_graph *what, cudnnHandle_t handle);

/* What an engine may do. */
typedef struct twi_engine_rules {
    bool tensor_cores;             /* products of floats may be of TF32; narrow types always may use them */
    bool any_order;                /* sums in an order that changes from run to run */
    size_t workspace;              /* bytes at most */
} twi_engine_rules;

/* An engine with a plan that it computes. Its descriptors are the graph's, until it is dropped. */
typedef struct twi_engine {
    cudnnBackendDescriptor_t plan;
    int position;                  /* in the library's list */
    int64_t number;
    uint64_t settings;             /* a hash of its knobs */
    size_t workspace;
} twi_engine;

/* The first wanted engine that obeys, in the library's list. Of the handle's card, or of the one that `card`
 * (a DEVICEPROP descriptor) describes: one of them is NULL. False: there is none, or see d->status. */
bool twi_engine_next(twi_descriptors *d, cudnnBackendDescriptor_t graph, cudnnHandle_t handle,
                     cudnnBackendDescriptor_t card, const twi_engine_rules *rules, const twi_search *search,
                     twi_engine *engine);
void twi_engine_drop(twi_descriptors *d, const twi_engine *engine);

/* The pointers of a run, kept until they change. */
typedef struct twi_variant_pack {
    cudnnBackendDescriptor_t pack;
    void *pointers[TWI_MOST_TENSORS], *workspace;
} twi_variant_pack;

/* Hands a plan to the handle's stream. */
tw_status twi_plan_execute(const twi_cudnn *library, cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                           twi_variant_pack *pack, int count, const int64_t *ids, void *const *pointers, void *workspace,
                           tw_error *error);
void twi_variant_pack_free(const twi_cudnn *library, twi_variant_pack *pack);
#endif
#endif
