/* reduce.h - what the files that bring towers' gradients together share.
 *
 *     average.c           gradients in, gradients out: what must agree, what is missing, weights
 *     reduce.c            which gradients travel together, which are sparse, and back to the variables' shapes
 *     reduce_spec.c       the text that names an algorithm
 *     reduce_algorithms.c one flat tensor a tower becomes their mean
 *
 * All of it is ordinary nodes under device scopes, so that reductions are placed, planned, traced and tested like
 * everything else. The order of each sum is a function of the number of towers, never of devices. */
#ifndef TWI_REDUCE_H
#define TWI_REDUCE_H

#include <tower/train.h>

/* An algorithm: a row of the table in reduce_algorithms.c. */
typedef struct twi_algorithm twi_algorithm;

/* The row of a name of so many characters; NULL: there is none. */
const twi_algorithm *twi_algorithm_find(const char *name, size_t length);
/* Name of row i, NULL beyond the last. And why a row is understood but cannot be done; NULL: it can. */
const char *twi_algorithm_name(int i);
const char *twi_algorithm_refusal(const twi_algorithm *algorithm);

enum { TWI_MOST_RULES = 8, TWI_MOST_SHARDS = 256 };

/* Tensors of at most `limit` elements are reduced so. */
typedef struct twi_reduce_rule {
    const twi_algorithm *algorithm;
    int shards;
    int64_t limit;
} twi_reduce_rule;

/* The first rule that fits counts; the last one has no limit. */
typedef struct twi_reduce_spec {
    twi_reduce_rule rules[TWI_MOST_RULES];
    int count;
} twi_reduce_spec;

tw_status twi_reduce_spec_parse(const char *text, twi_reduce_spec *spec, tw_error *error);
/* Whether some rule of it works only where the mean comes to every tower, by a library of the devices (NCCL). */
bool twi_reduce_uses_nccl(const twi_reduce_spec *spec);

/* Places: a tower's number, or one of these. */
enum { TWI_AT_CPU = -1, TWI_AT_ROOT = -2 /* the scopes that are open */ };

/* A reduction under construction. */
typedef struct twi_reducer {
    tw_graph *graph;
    int towers;
    const tw_average_options *options;
    const tw_output *anchors; /* [towers] a gradient of each, beside which it works where the options name no device */
    twi_reduce_spec spec;
    bool everywhere;          /* each tower gets the mean; otherwise the root does */
    bool stacked;             /* the root gets it as TensorFlow's tutorial builds it */
    int parts;                /* how many have been reduced */
} twi_reducer;

/* Nodes made in between belong to a place. */
void twi_reduce_enter(const twi_reducer *r, int place);
void twi_reduce_leave(const twi_reducer *r, int place);

/* The mean of flat tensors inputs[towers] of so many elements: means[towers], or means[0] at the root. False when
 * memory ran out, which is on the graph. */
bool twi_reduce_flat(twi_reducer *r, const tw_output *inputs, int64_t elements, tw_output *means);

/* In towers.c: a list for so many variables, as long as the graph, without gradients yet; NULL is on the graph. */
tw_grads *twi_new_grads(tw_graph *graph, tw_variable *const *variables, int count);

/* Fills averages[towers], or averages[0] at the root: the towers' gradients are complete, {NULL, 0} throughout where a
 * variable has none. */
void twi_reduce_all(twi_reducer *r, tw_grads *const *towers, tw_grads **averages);

#endif
