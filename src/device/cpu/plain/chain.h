/* chain.h - fused ops in plain C: the chain that each of ops/fused.c stands for, link by link, which is what fast
 * kernels are tested against. The links' own kernels run one after another on the output. */
#ifndef TWI_CPU_CHAIN_H
#define TWI_CPU_CHAIN_H

#include "device/kernel.h"

/* A link takes operands of the fused op: inputs by number, outputs by -1 - number. */
typedef struct twi_link {
    const char *op;
    int num_inputs, inputs[3], output;
} twi_link;

enum { TWI_MOST_LINKS = 3 };

/* The three parts of a row. With plain_only the links' plain kernels, else their fastest. */
tw_status twi_chain_prepare(twi_prepare *p, bool plain_only, const twi_link *links, int num_links);
tw_status twi_chain_run(const twi_run *r);
void twi_chain_release(void *state);

/* A product, with the bias and the ReLU that the node has. */
tw_status twi_chain_biased(twi_prepare *p, const char *product);

#endif
