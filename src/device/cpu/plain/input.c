/* input.c - TowerInput: asks the session's source of that name to fill the outputs. */
#include "base/memory.h"
#include "device/kernel.h"

#include <stdio.h>

typedef struct input {
    twi_resource *source; /* object: a twi_source */
    const char *name;
    int tower;
} input;

static tw_status prepare(twi_prepare *p)
{
    char key[300];
    const char *name = twi_attr_string(p->attrs, "source", "");
    snprintf(key, sizeof key, "source/%s", name);
    input *state = twi_alloc(sizeof *state);
    twi_resource *source = p->resources ? p->resources->get(p->resources, key) : NULL;
    if (!state || !source) {
        twi_free(state);
        return twi_fail_memory(p->error, "preparing an input");
    }
    *state = (input){source, name, (int)twi_attr_int(p->attrs, "tower", 0)};
    p->state = state;
    return TW_OK;
}

static tw_status run(const twi_run *r)
{
    const input *state = r->state;
    const twi_source *source = state->source->object;
    if (!source)
        return twi_fail(r->error, TW_FAILED_PRECONDITION, "no source '%s': set one with tw_session_set_source()",
                        state->name);
    return source->fill(source->user, state->tower, r->outputs, r->error);
}

const twi_kernel twi_cpu_input_kernels[] = {
    {"TowerInput", "plain", 0, prepare, run, twi_free},
    {0},
};
