/* fused.c - the fused ops in plain C: what the fast kernels are tested against (rows "plain").
 * Lives here:  the chain each op of ops/fused.c stands for, link by link; of the ReLU's and the bias's gradients also
 *              by the links' fastest kernels (row "chain").
 * Never here:  pools with normalizations (pool_lrn.c).
 *
 * The links' own plain kernels run one after another on the output. */
#include "base/memory.h"
#include "device/cpu/plain/typed.h"
#include "device/device.h"

/* A link takes operands of the fused op: inputs by number, outputs by -1 - number. */
typedef struct link {
    const char *op;
    int num_inputs, inputs[3], output;
} link;

enum { MOST_LINKS = 3 };

typedef struct chain {
    int num_links;
    struct prepared {
        link link;
        const twi_kernel *kernel;
        void *state;
        twi_operand inputs[3], output;
    } links[MOST_LINKS];
} chain;

static void chain_release(void *state)
{
    chain *c = state;
    for (int i = 0; i < c->num_links; i++)
        if (c->links[i].kernel->release)
            c->links[i].kernel->release(c->links[i].state);
    twi_free(c);
}

static const twi_operand *operand(const twi_prepare *p, int number)
{
    return number < 0 ? &p->outputs[-1 - number] : &p->inputs[number];
}

static tw_status chain_prepare(twi_prepare *p, bool plain_only, const link *links, int num_links)
{
    chain *c = twi_alloc(sizeof *c);
    if (!c)
        return twi_fail_memory(p->error, p->node);
    size_t workspace = 0;
    for (int i = 0; i < num_links; i++) {
        struct prepared *l = &c->links[i];
        l->link = links[i];
        for (int k = 0; k < links[i].num_inputs; k++)
            l->inputs[k] = *operand(p, links[i].inputs[k]);
        l->output = *operand(p, links[i].output);
        twi_prepare part = *p;
        part.op = links[i].op;
        part.num_inputs = links[i].num_inputs;
        part.num_outputs = 1;
        part.inputs = l->inputs;
        part.outputs = &l->output;
        tw_status status = twi_device_prepare(p->device, &part, plain_only, &l->kernel);
        if (status != TW_OK) {
            chain_release(c);
            return status;
        }
        l->state = part.state;
        c->num_links++;
        workspace = part.workspace > workspace ? part.workspace : workspace;
    }
    p->state = c;
    p->workspace = workspace;
    return TW_OK;
}

static tw_status chain_run(const twi_run *r)
{
    const chain *c = r->state;
    tw_status status = TW_OK;
    for (int i = 0; i < c->num_links && status == TW_OK; i++) {
        const struct prepared *l = &c->links[i];
        const void *inputs[3];
        void *output = r->outputs[-1 - l->link.output];
        for (int k = 0; k < l->link.num_inputs; k++)
            inputs[k] = l->link.inputs[k] < 0 ? r->outputs[-1 - l->link.inputs[k]] : r->inputs[l->link.inputs[k]];
        twi_run part = *r;
        part.state = l->state;
        part.inputs = inputs;
        part.outputs = &output;
        part.input_operands = l->inputs;
        part.output_operands = &l->output;
        part.num_inputs = l->link.num_inputs;
        part.num_outputs = 1;
        status = l->kernel->run(&part);
    }
    return status;
}

static tw_status biased_prepare(twi_prepare *p, const char *product)
{
    link links[MOST_LINKS] = {{product, 2, {0, 1}, -1}};
    int count = 1;
    if (p->num_inputs > 2)
        links[count++] = (link){"BiasAdd", 2, {-1, 2}, -1};
    if (twi_attr_bool(p->attrs, "relu", false))
        links[count++] = (link){"Relu", 1, {-1}, -1};
    return chain_prepare(p, true, links, count);
}

static tw_status conv_prepare(twi_prepare *p)
{
    return biased_prepare(p, "Conv2D");
}

static tw_status matmul_prepare(twi_prepare *p)
{
    return biased_prepare(p, "MatMul");
}

static tw_status filter_bias_prepare(twi_prepare *p)
{
    static const link links[] = {{"Conv2DBackpropFilter", 3, {0, 1, 2}, -1}, {"BiasAddGrad", 1, {2}, -2}};
    return chain_prepare(p, true, links, 2);
}

static const link relu_grad_bias[] = {{"ReluGrad", 2, {0, 1}, -1}, {"BiasAddGrad", 1, {-1}, -2}};

static tw_status relu_grad_bias_prepare(twi_prepare *p)
{
    return chain_prepare(p, true, relu_grad_bias, 2);
}

/* The links' fastest kernels: on a CPU nothing is gained by joining them, and nothing shall be lost. */
static tw_status fast_relu_grad_bias_prepare(twi_prepare *p)
{
    p->can_overwrite[0] = p->can_overwrite[1] = true; /* as ReluGrad may */
    return chain_prepare(p, false, relu_grad_bias, 2);
}

#define TYPES (TWI_NARROW_TYPES | TWI_TYPE(TW_FLOAT32))

const twi_kernel twi_cpu_fused_kernels[] = {
    {"_FusedConv2D", "plain", TYPES, conv_prepare, chain_run, chain_release},
    {"_Conv2DBackpropFilterBias", "plain", TYPES, filter_bias_prepare, chain_run, chain_release},
    {"_FusedMatMul", "plain", TYPES, matmul_prepare, chain_run, chain_release},
    {"_ReluGradBias", "chain", TYPES, fast_relu_grad_bias_prepare, chain_run, chain_release},
    {"_ReluGradBias", "plain", TYPES, relu_grad_bias_prepare, chain_run, chain_release},
    {0},
};
