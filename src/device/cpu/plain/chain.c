/* chain.c - see chain.h. */
#include "device/cpu/plain/chain.h"

#include "base/memory.h"
#include "device/device.h"

typedef struct chain {
    int num_links;
    struct prepared {
        twi_link link;
        const twi_kernel *kernel;
        void *state;
        twi_operand inputs[3], output;
    } links[TWI_MOST_LINKS];
} chain;

void twi_chain_release(void *state)
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

tw_status twi_chain_prepare(twi_prepare *p, bool plain_only, const twi_link *links, int num_links)
{
    chain *c = p->state = twi_alloc(sizeof *c);
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
        if (status != TW_OK)
            return status;
        l->state = part.state;
        c->num_links++;
        workspace = part.workspace > workspace ? part.workspace : workspace;
    }
    p->workspace = workspace;
    return TW_OK;
}

tw_status twi_chain_run(const twi_run *r)
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

tw_status twi_chain_biased(twi_prepare *p, const char *product)
{
    twi_link links[TWI_MOST_LINKS] = {{product, 2, {0, 1}, -1}};
    int count = 1;
    if (p->num_inputs > 2)
        links[count++] = (twi_link){"BiasAdd", 2, {-1, 2}, -1};
    if (twi_attr_bool(p->attrs, "relu", false))
        links[count++] = (twi_link){"Relu", 1, {-1}, -1};
    return twi_chain_prepare(p, true, links, count);
}
