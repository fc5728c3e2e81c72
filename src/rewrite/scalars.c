/* scalars.c - arithmetic on scalars becomes one node, _Scalars, where a device has a kernel for it: a card takes as
 * long to launch a kernel for one number as for a thousand. Learning rates, sums of losses, scales of them, the
 * counting of steps and what is computed of the new count.
 * Never here: scalars that other joint nodes take in (update.c, which comes before).
 *
 * Joined are the scalars of one device that are equally deep: a scalar is one deeper than another that it waits for by
 * way of something that is none, or that lies on another device. So nothing outside can stand between those of one
 * depth, and there is no circle. */
#include "rewrite/rewrite.h"

#include "device/fused/scalars.h"

#include <stdlib.h>
#include <string.h>

#define TYPES                                                                                                          \
    (TWI_TYPE(TW_FLOAT32) | TWI_TYPE(TW_BFLOAT16) | TWI_TYPE(TW_FLOAT16) | TWI_TYPE(TW_INT32) | TWI_TYPE(TW_INT64) |   \
     TWI_TYPE(TW_BOOL))

typedef enum kind {
    OTHER,
    STEP,     /* an op of device/fused/scalars.h */
    PASS,     /* Identity of another member */
    CONSTANT, /* that waits for a member, as others of its scope do */
    WRITE,    /* AssignAddVariableOp or AssignSubVariableOp by the only one that writes the variable */
    READ,     /* of the new value */
} kind;

typedef struct member {
    twi_node *node;
    int depth;
} member;

/* What is known of each node, by id. */
typedef struct members {
    twi_rewriting *r;
    kind *kinds;
    int *depths;
    twi_node **writers; /* of a READ */
    member *sorted;     /* those that are not OTHER by device and depth, else in the order of the graph */
    int count;
    const twi_op *steps[TWI_SCALAR_OPS]; /* the list of device/fused/scalars.h */
} members;

/* ---- who may be joined ---------------------------------------------------------------------------------------- */

static bool is_scalar(twi_value value)
{
    return twi_shape(value).rank == 0 && TYPES & TWI_TYPE(twi_dtype(value));
}

static bool has_kernel(const members *m, const twi_node *node)
{
    return twi_rewrite_has_kernel(m->r, node, "_Scalars", TW_INVALID_DTYPE);
}

static bool some_device_has_kernel(const twi_rewriting *r)
{
    bool some = false;
    for (int d = 0; d < r->devices->count && !some; d++)
        some = twi_device_has_kernel(r->devices->items[d], "_Scalars", TW_INVALID_DTYPE);
    return some;
}

/* The op's place in the list; -1: it is not there. */
static int step_of(const members *m, const twi_op *op)
{
    for (int i = 0; i < TWI_SCALAR_OPS; i++)
        if (m->steps[i] == op)
            return i;
    return -1;
}

static bool is_step(const members *m, const twi_node *node)
{
    bool fits = node->num_results > 0 && node->num_inputs > 0 && node->num_inputs <= TWI_SCALARS_INPUTS &&
                is_scalar(twi_out(node, 0));
    for (int i = 0; i < node->num_inputs && fits; i++)
        fits = is_scalar(twi_in(node, i));
    return fits && step_of(m, node->op) >= 0;
}

static bool is_write(const twi_node *node)
{
    return twi_is(node, TWI_OP_AssignAddVariableOp) || twi_is(node, TWI_OP_AssignSubVariableOp);
}

/* A variable is written in a joint node if all others read it, each clearly before or clearly after. */
static bool is_only_write(const twi_node *write)
{
    twi_value handle = twi_in(write, 0);
    bool fits = is_scalar(twi_in(write, 1)) && twi_shape(handle).rank == 0;
    for (const twi_edge *e = twi_uses_of(handle)->first; e && fits; e = e->next)
        fits = e->user == write ||
               (twi_has_trait(e->user, TWI_READ) && (twi_leads_to(e->user, write) || twi_leads_to(write, e->user)));
    return fits;
}

static void note_reads(members *m, twi_node *write)
{
    for (const twi_edge *e = twi_uses_of(twi_in(write, 0))->first; e; e = e->next)
        if (e->user != write && e->user->device == write->device && twi_leads_to(write, e->user))
            m->writers[e->user->id] = write;
}

/* True if the node waits for a member on its device. */
static bool waits_for_member(const members *m, const twi_node *node)
{
    bool waits = false;
    for (int i = 0; i < node->num_controls && !waits; i++) {
        const twi_node *before = node->controls[i]->node;
        waits = m->kinds[before->id] != OTHER && before->device == node->device;
    }
    return waits;
}

static int depth_of(const members *m, const twi_node *node, bool joins)
{
    int depth = 0;
    for (int i = 0; i < twi_num_dependencies(node); i++) {
        const twi_node *before = twi_dependency(node, i)->node;
        bool together = joins && before->device == node->device;
        int least = m->depths[before->id] + (m->kinds[before->id] != OTHER && !together);
        depth = least > depth ? least : depth;
    }
    return depth;
}

static kind kind_of(const members *m, const twi_node *node)
{
    kind k = OTHER;
    if (is_step(m, node))
        k = STEP;
    else if (is_write(node))
        k = is_only_write(node) ? WRITE : OTHER;
    else if (twi_is(node, TWI_OP_Identity))
        k = m->kinds[node->inputs[0].node->id] != OTHER && node->inputs[0].node->device == node->device ? PASS : OTHER;
    else if (twi_has_trait(node, TWI_CONSTANT))
        k = is_scalar(twi_out(node, 0)) && waits_for_member(m, node) ? CONSTANT : OTHER;
    else if (m->writers[node->id])
        k = READ;
    return k != OTHER && has_kernel(m, node) ? k : OTHER;
}

/* In topological order: what comes before a node is known. */
static void look_at(members *m, twi_node *node)
{
    kind *k = &m->kinds[node->id];
    *k = kind_of(m, node);
    if (*k == WRITE)
        note_reads(m, node);
    m->depths[node->id] = depth_of(m, node, *k != OTHER);
    if (*k != READ || m->depths[node->id] == m->depths[m->writers[node->id]->id])
        return;
    *k = OTHER;
    m->depths[node->id] = depth_of(m, node, false);
}

/* ---- the joint node ------------------------------------------------------------------------------------------- */

enum { MOST_NODES = 4 * TWI_SCALARS_STEPS, VARIABLES = 1 << 20 };

/* Numbers of values: n >= 0 is input n, ~n the result of step n. Variables come behind all other inputs; as long as
 * these are not all known, variable n is VARIABLES + n. */
typedef struct program {
    twi_node *nodes[MOST_NODES];
    int64_t numbers[MOST_NODES]; /* of what each of them gives */
    twi_value inputs[TWI_SCALARS_INPUTS], variables[TWI_SCALARS_INPUTS];
    tw_dtype input_types[TWI_SCALARS_INPUTS], types[TWI_SCALARS_STEPS], result_types[TWI_SCALARS_RESULTS];
    int64_t ops[TWI_SCALARS_STEPS], counts[TWI_SCALARS_STEPS], operands[TWI_SCALARS_OPERANDS];
    int64_t results[TWI_SCALARS_RESULTS], writes[TWI_SCALARS_INPUTS];
    twi_value given[TWI_SCALARS_RESULTS]; /* whose results these are */
    int num_nodes, num_inputs, num_variables, num_steps, num_operands, num_results;
} program;

static int place_of(const program *p, const twi_node *node)
{
    for (int i = 0; i < p->num_nodes; i++)
        if (p->nodes[i] == node)
            return i;
    return -1;
}

static int input_of(const program *p, twi_value value)
{
    for (int i = 0; i < p->num_inputs; i++)
        if (twi_same(p->inputs[i], value))
            return i;
    return -1;
}

static int64_t number_of(program *p, twi_value value)
{
    int place = place_of(p, value.node), input = input_of(p, value);
    if (place >= 0)
        return p->numbers[place];
    if (input >= 0)
        return input;
    p->input_types[p->num_inputs] = twi_dtype(value);
    p->inputs[p->num_inputs] = value;
    return p->num_inputs++;
}

static bool has_room(const program *p, const twi_node *node)
{
    int more = 1; /* a constant's */
    for (int i = 0; i < node->num_inputs; i++)
        more += place_of(p, node->inputs[i].node) < 0 && input_of(p, twi_in(node, i)) < 0;
    return p->num_nodes < MOST_NODES && p->num_steps < TWI_SCALARS_STEPS &&
           p->num_operands + node->num_inputs <= TWI_SCALARS_OPERANDS &&
           p->num_inputs + p->num_variables + more <= TWI_SCALARS_INPUTS;
}

static int64_t add_step(const members *m, program *p, const twi_op *op, tw_dtype type, const int64_t *operands,
                        int count)
{
    p->ops[p->num_steps] = step_of(m, op);
    p->types[p->num_steps] = type;
    p->counts[p->num_steps] = count;
    for (int i = 0; i < count; i++)
        p->operands[p->num_operands++] = operands[i];
    return ~(int64_t)p->num_steps++;
}

static int64_t add_write(const members *m, program *p, const twi_node *write)
{
    twi_value value = twi_in(write, 1);
    int variable = p->num_variables++;
    int64_t operands[] = {VARIABLES + variable, number_of(p, value)};
    const twi_op *op = m->r->region->known[twi_is(write, TWI_OP_AssignAddVariableOp) ? TWI_OP_AddV2 : TWI_OP_Sub];
    p->variables[variable] = twi_in(write, 0);
    return p->writes[variable] = add_step(m, p, op, twi_dtype(value), operands, 2);
}

/* The constant as a node that waits for nobody; NULL: memory has run out. */
static twi_node *free_constant(const members *m, const twi_node *constant)
{
    return twi_node_constant(m->r->region, constant, "/free", twi_attr_tensor(&constant->attrs, "value"));
}

static void add_node(const members *m, program *p, twi_node *node)
{
    int64_t number, operands[TWI_SCALARS_INPUTS];
    const twi_node *constant;
    switch (m->kinds[node->id]) {
    case STEP:
        for (int i = 0; i < node->num_inputs; i++)
            operands[i] = number_of(p, twi_in(node, i));
        number = add_step(m, p, node->op, node->results[0].dtype, operands, node->num_inputs);
        break;
    case WRITE:
        number = add_write(m, p, node);
        break;
    case READ:
        if (place_of(p, m->writers[node->id]) < 0)
            return; /* written by another program: the read stays */
        number = p->numbers[place_of(p, m->writers[node->id])];
        break;
    case CONSTANT:
        constant = free_constant(m, node);
        if (!constant)
            return; /* the region has failed */
        number = number_of(p, twi_out(constant, 0));
        break;
    default:
        number = number_of(p, twi_in(node, 0));
    }
    p->numbers[p->num_nodes] = number;
    p->nodes[p->num_nodes++] = node;
}

/* True if somebody outside of the program wants it. */
static bool is_wanted(const program *p, twi_value value)
{
    bool wanted = false;
    for (const twi_edge *e = twi_uses_of(value)->first; e && !wanted; e = e->next)
        wanted = place_of(p, e->user) < 0 && !e->user->became;
    return wanted;
}

/* What is wanted; and now that all inputs are known, variables get their numbers. False if there is no room. */
static bool finish(program *p)
{
    for (int i = 0; i < p->num_nodes; i++) {
        twi_value value = twi_out(p->nodes[i], 0);
        if (p->nodes[i]->num_results == 0 || !is_wanted(p, value))
            continue;
        if (p->num_results + p->num_variables == TWI_SCALARS_RESULTS)
            return false;
        p->results[p->num_results] = p->numbers[i];
        p->result_types[p->num_results] = twi_dtype(value);
        p->given[p->num_results++] = value;
    }
    for (int i = 0; i < p->num_operands; i++)
        if (p->operands[i] >= VARIABLES)
            p->operands[i] += p->num_inputs - VARIABLES;
    return true;
}

static twi_node *make(const members *m, const program *p)
{
    twi_value inputs[TWI_SCALARS_INPUTS];
    memcpy(inputs, p->inputs, sizeof *inputs * (size_t)p->num_inputs);
    memcpy(inputs + p->num_inputs, p->variables, sizeof *inputs * (size_t)p->num_variables);
    tw_attr attrs[] = {tw_attr_types("Tin", p->input_types, p->num_inputs), tw_attr_int("N", p->num_variables),
                       tw_attr_types("Tout", p->result_types, p->num_results),
                       tw_attr_ints("ops", p->ops, p->num_steps), tw_attr_types("types", p->types, p->num_steps),
                       tw_attr_ints("counts", p->counts, p->num_steps),
                       tw_attr_ints("operands", p->operands, p->num_operands),
                       tw_attr_ints("results", p->results, p->num_results),
                       tw_attr_ints("writes", p->writes, p->num_variables)};
    return twi_rewrite_make(m->r, p->nodes[p->num_nodes - 1], "/scalars", "_Scalars", inputs,
                            p->num_inputs + p->num_variables, attrs, sizeof attrs / sizeof *attrs);
}

/* Puts one node in the place of the program's, which began when the region had `before` nodes, and makes the program
 * empty. */
static void join(const members *m, program *p, int before)
{
    bool may = p->num_steps > 1 && twi_may_join(p->nodes, p->num_nodes) && finish(p);
    twi_node *joint = may ? make(m, p) : NULL;
    for (int i = 0; i < p->num_results && joint; i++)
        twi_replace(p->given[i], twi_out(joint, i));
    for (int i = 0; i < p->num_nodes && joint; i++)
        twi_move_controls(p->nodes[i], joint);
    if (!joint)
        twi_rewrite_undo(m->r, before);
    memset(p, 0, sizeof *p);
}

static bool of_one_program(const member *a, const member *b)
{
    return a->node->device == b->node->device && a->depth == b->depth;
}

static int by_program(const void *a, const void *b)
{
    const member *x = a, *y = b;
    return x->node->device != y->node->device ? x->node->device - y->node->device
           : x->depth != y->depth             ? x->depth - y->depth
                                              : (x->node->place > y->node->place) - (x->node->place < y->node->place);
}

static void sort_members(members *m)
{
    for (twi_node *node = m->r->region->first; node; node = node->next)
        if (m->kinds[node->id] != OTHER)
            m->sorted[m->count++] = (member){node, m->depths[node->id]};
    qsort(m->sorted, (size_t)m->count, sizeof *m->sorted, by_program);
}

static void join_all(const members *m, program *p)
{
    int before = m->r->region->nodes.count;
    for (int i = 0; i < m->count; i++) {
        const member *one = &m->sorted[i];
        if (i && (!of_one_program(one, one - 1) || !has_room(p, one->node))) {
            join(m, p, before);
            before = m->r->region->nodes.count;
        }
        add_node(m, p, one->node);
    }
    join(m, p, before);
}

tw_status twi_rewrite_scalars(twi_rewriting *r, tw_error *error)
{
    if (!some_device_has_kernel(r))
        return TW_OK;
    tw_status status = twi_free_counters(r, error);
    if (status != TW_OK)
        return status;
    size_t n = (size_t)r->region->nodes.count + 1;
    members m = {.r = r, .kinds = twi_alloc_array(n, sizeof *m.kinds),
                 .depths = twi_alloc_array(n, sizeof *m.depths), .writers = twi_alloc_array(n, sizeof *m.writers),
                 .sorted = twi_alloc_array(n, sizeof *m.sorted)};
    program *p = twi_alloc(sizeof *p);
    if (!m.kinds || !m.depths || !m.writers || !m.sorted || !p)
        TWI_LEAVE(twi_fail_memory(error, "joining scalars"));
    for (int i = 0; i < TWI_SCALAR_OPS; i++)
        m.steps[i] = twi_op_find(twi_scalar_ops[i].op);
    for (twi_node *node = r->region->first; node; node = node->next)
        look_at(&m, node);
    sort_members(&m);
    join_all(&m, p);
done:
    twi_free(m.kinds);
    twi_free(m.depths);
    twi_free(m.writers);
    twi_free(m.sorted);
    twi_free(p);
    return status; /* an error may be on the region, too */
}
