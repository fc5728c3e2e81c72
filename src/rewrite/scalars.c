/* scalars.c - arithmetic on scalars becomes one node, _Scalars, where a device has a kernel for it: a card takes as long
 * to launch a kernel for one number as for a thousand. Learning rates, sums of losses, scales of them, the counting of
 * steps and what is computed of the new count.
 * Never here: scalars that other joint nodes take in (update.c, which comes before).
 *
 * Joined are the scalars of one device that are equally deep: a scalar is one deeper than another that it waits for by
 * way of something that is none, or that lies on another device. So nothing outside can stand between those of one
 * depth, and there is no circle. */
#include "rewrite/rewrite.h"

#include "device/fused/scalars.h"

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

/* What is known of each node, by id. */
typedef struct members {
    twi_rewriting *r;
    int count;         /* nodes that were there before; those made here are OTHER */
    kind *kinds;
    int *depths;
    tw_node **writers; /* of a READ */
    bool *after;       /* scratch */
} members;

static bool is(const tw_node *node, const char *op)
{
    return strcmp(node->op->name, op) == 0;
}

static bool same(tw_output a, tw_output b)
{
    return a.node == b.node && a.index == b.index;
}

/* ---- who may be joined ---------------------------------------------------------------------------------------- */

static bool is_scalar(tw_output output)
{
    return tw_output_shape(output).rank == 0 && TYPES & TWI_TYPE(tw_output_dtype(output));
}

static bool has_kernel(const twi_rewriting *r, const tw_node *node)
{
    return twi_rewrite_has_kernel(r, node, "_Scalars", TW_INVALID_DTYPE);
}

static bool is_step(const tw_node *node)
{
    bool fits = twi_scalar_op(node->op->name) >= 0 && node->num_inputs <= TWI_SCALARS_INPUTS &&
                is_scalar((tw_output){(tw_node *)node, 0});
    for (int i = 0; i < node->num_inputs && fits; i++)
        fits = is_scalar(node->inputs[i]);
    return fits;
}

/* after[id] for all that waits for `node`, and itself; the graph is sorted. */
static void mark_after(const members *m, const tw_node *node)
{
    for (int id = 0; id < m->count; id++) {
        const tw_node *other = m->r->graph->nodes.items[id];
        m->after[id] = other == node;
        for (int i = 0; i < other->num_inputs && !m->after[id]; i++)
            m->after[id] = m->after[other->inputs[i].node->id];
        for (int i = 0; i < other->num_control_inputs && !m->after[id]; i++)
            m->after[id] = m->after[other->control_inputs[i]->id];
    }
}

/* A variable is written in a joint node if all others read it, each clearly before or clearly after. */
static void find_write(members *m, tw_node *write)
{
    tw_node *user;
    tw_output handle = write->inputs[0];
    bool fits = is_scalar(write->inputs[1]) && tw_output_shape(handle).rank == 0;
    for (int i = 0; fits && (user = twi_rewrite_user(m->r, handle, i)); i++) {
        mark_after(m, user);
        bool before = m->after[write->id];
        mark_after(m, write);
        fits = user == write || (is(user, "ReadVariableOp") && (before || m->after[user->id]));
    }
    if (!fits)
        return;
    m->kinds[write->id] = WRITE;
    mark_after(m, write);
    for (int i = 0; (user = twi_rewrite_user(m->r, handle, i)); i++)
        if (user != write && m->after[user->id] && user->assigned == write->assigned)
            m->writers[user->id] = write;
}

/* True if the node waits for a member on its device. */
static bool waits_for_member(const members *m, const tw_node *node)
{
    bool waits = false;
    for (int i = 0; i < node->num_control_inputs; i++) {
        const tw_node *before = node->control_inputs[i];
        waits = waits || (m->kinds[before->id] != OTHER && before->assigned == node->assigned);
    }
    return waits;
}

static int depth_of(const members *m, const tw_node *node, bool joins)
{
    int depth = 0;
    for (int i = 0; i < node->num_inputs + node->num_control_inputs; i++) {
        const tw_node *before =
            i < node->num_inputs ? node->inputs[i].node : node->control_inputs[i - node->num_inputs];
        bool together = joins && before->assigned == node->assigned;
        int least = m->depths[before->id] + (m->kinds[before->id] != OTHER && !together);
        depth = least > depth ? least : depth;
    }
    return depth;
}

/* In order of id: what comes before a node is known. */
static void look_at(members *m, tw_node *node)
{
    kind *k = &m->kinds[node->id];
    if (has_kernel(m->r, node)) {
        if (is_step(node))
            *k = STEP;
        else if (is(node, "AssignAddVariableOp") || is(node, "AssignSubVariableOp"))
            find_write(m, node);
        else if (is(node, "Identity") && m->kinds[node->inputs[0].node->id] != OTHER &&
                 node->inputs[0].node->assigned == node->assigned)
            *k = PASS;
        else if (is(node, "Const") && is_scalar((tw_output){node, 0}) && waits_for_member(m, node))
            *k = CONSTANT;
        else if (m->writers[node->id])
            *k = READ;
    }
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
    tw_node *nodes[MOST_NODES];
    int64_t numbers[MOST_NODES]; /* of what each of them gives */
    tw_output inputs[TWI_SCALARS_INPUTS], variables[TWI_SCALARS_INPUTS];
    tw_dtype input_types[TWI_SCALARS_INPUTS], types[TWI_SCALARS_STEPS], result_types[TWI_SCALARS_RESULTS];
    int64_t ops[TWI_SCALARS_STEPS], counts[TWI_SCALARS_STEPS], operands[TWI_SCALARS_OPERANDS];
    int64_t results[TWI_SCALARS_RESULTS], writes[TWI_SCALARS_INPUTS];
    tw_output given[TWI_SCALARS_RESULTS]; /* whose results these are */
    int num_nodes, num_inputs, num_variables, num_steps, num_operands, num_results;
} program;

static int place_of(const program *p, const tw_node *node)
{
    for (int i = 0; i < p->num_nodes; i++)
        if (p->nodes[i] == node)
            return i;
    return -1;
}

static int input_of(const program *p, tw_output value)
{
    for (int i = 0; i < p->num_inputs; i++)
        if (same(p->inputs[i], value))
            return i;
    return -1;
}

static int64_t number_of(program *p, tw_output value)
{
    int place = place_of(p, value.node), input = input_of(p, value);
    if (place >= 0)
        return p->numbers[place];
    if (input >= 0)
        return input;
    p->input_types[p->num_inputs] = tw_output_dtype(value);
    p->inputs[p->num_inputs] = value;
    return p->num_inputs++;
}

static bool has_room(const program *p, const tw_node *node)
{
    int more = 1; /* a constant's */
    for (int i = 0; i < node->num_inputs; i++)
        more += place_of(p, node->inputs[i].node) < 0 && input_of(p, node->inputs[i]) < 0;
    return p->num_nodes < MOST_NODES && p->num_steps < TWI_SCALARS_STEPS &&
           p->num_operands + node->num_inputs <= TWI_SCALARS_OPERANDS &&
           p->num_inputs + p->num_variables + more <= TWI_SCALARS_INPUTS;
}

static int64_t add_step(program *p, const char *op, tw_dtype type, const int64_t *operands, int count)
{
    p->ops[p->num_steps] = twi_scalar_op(op);
    p->types[p->num_steps] = type;
    p->counts[p->num_steps] = count;
    for (int i = 0; i < count; i++)
        p->operands[p->num_operands++] = operands[i];
    return ~(int64_t)p->num_steps++;
}

static int64_t add_write(program *p, const tw_node *write)
{
    tw_output value = write->inputs[1];
    int variable = p->num_variables++;
    int64_t operands[] = {VARIABLES + variable, number_of(p, value)};
    p->variables[variable] = write->inputs[0];
    return p->writes[variable] = add_step(p, is(write, "AssignAddVariableOp") ? "AddV2" : "Sub", tw_output_dtype(value),
                                          operands, 2);
}

/* The constant as a node that waits for nobody. */
static tw_output free_constant(const members *m, const tw_node *constant)
{
    return (tw_output){twi_rewrite_node(m->r, constant, "/free", "Const", NULL, 0, constant->attrs.items,
                                        constant->attrs.count), 0};
}

static void add_node(const members *m, program *p, tw_node *node)
{
    int64_t number, operands[TWI_SCALARS_INPUTS];
    switch (m->kinds[node->id]) {
    case STEP:
        for (int i = 0; i < node->num_inputs; i++)
            operands[i] = number_of(p, node->inputs[i]);
        number = add_step(p, node->op->name, node->output_types[0], operands, node->num_inputs);
        break;
    case WRITE:
        number = add_write(p, node);
        break;
    case READ:
        if (place_of(p, m->writers[node->id]) < 0)
            return; /* written by another program: the read stays */
        number = p->numbers[place_of(p, m->writers[node->id])];
        break;
    case CONSTANT:
        number = number_of(p, free_constant(m, node));
        break;
    default:
        number = number_of(p, node->inputs[0]);
    }
    p->numbers[p->num_nodes] = number;
    p->nodes[p->num_nodes++] = node;
}

/* True if somebody outside of the program, or who fetches, wants it. */
static bool is_wanted(const members *m, const program *p, tw_output output)
{
    tw_node *user;
    bool wanted = false;
    int users = 0;
    for (; (user = twi_rewrite_user(m->r, output, users)); users++)
        wanted = wanted || (place_of(p, user) < 0 && !user->became);
    return wanted || twi_rewrite_count_uses(m->r, output) > users;
}

/* What is wanted; and now that all inputs are known, variables get their numbers. False if there is no room. */
static bool finish(const members *m, program *p)
{
    for (int i = 0; i < p->num_nodes; i++) {
        tw_output output = {p->nodes[i], 0};
        if (p->nodes[i]->num_outputs == 0 || !is_wanted(m, p, output))
            continue;
        if (p->num_results + p->num_variables == TWI_SCALARS_RESULTS)
            return false;
        p->results[p->num_results] = p->numbers[i];
        p->result_types[p->num_results] = tw_output_dtype(output);
        p->given[p->num_results++] = output;
    }
    for (int i = 0; i < p->num_operands; i++)
        if (p->operands[i] >= VARIABLES)
            p->operands[i] += p->num_inputs - VARIABLES;
    return true;
}

/* Puts one node in the place of the program's, and makes the program empty. */
static void join(const members *m, program *p)
{
    if (p->num_steps > 1 && twi_rewrite_may_join(m->r, p->nodes, p->num_nodes) && finish(m, p)) {
        tw_output inputs[TWI_SCALARS_INPUTS];
        memcpy(inputs, p->inputs, sizeof *inputs * (size_t)p->num_inputs);
        memcpy(inputs + p->num_inputs, p->variables, sizeof *inputs * (size_t)p->num_variables);
        tw_attr attrs[] = {tw_attr_types("Tin", p->input_types, p->num_inputs), tw_attr_int("N", p->num_variables),
                           tw_attr_types("Tout", p->result_types, p->num_results),
                           tw_attr_ints("ops", p->ops, p->num_steps), tw_attr_types("types", p->types, p->num_steps),
                           tw_attr_ints("counts", p->counts, p->num_steps),
                           tw_attr_ints("operands", p->operands, p->num_operands),
                           tw_attr_ints("results", p->results, p->num_results),
                           tw_attr_ints("writes", p->writes, p->num_variables)};
        tw_node *joint = twi_rewrite_node(m->r, p->nodes[p->num_nodes - 1], "/scalars", "_Scalars", inputs,
                                          p->num_inputs + p->num_variables, attrs, sizeof attrs / sizeof *attrs);
        for (int i = 0; i < p->num_results && joint; i++)
            twi_rewrite_replace(m->r, p->given[i], (tw_output){joint, i});
        for (int i = 0; i < p->num_nodes && joint; i++)
            twi_rewrite_move_controls(m->r, p->nodes[i], joint);
    }
    memset(p, 0, sizeof *p);
}

static void join_all(const members *m, program *p)
{
    int depths = 0;
    for (int id = 0; id < m->count; id++)
        depths = m->depths[id] > depths ? m->depths[id] : depths;
    for (int device = 0; device < m->r->devices->count; device++)
        for (int depth = 0; depth <= depths; depth++) {
            for (int id = 0; id < m->count; id++) {
                tw_node *node = m->r->graph->nodes.items[id];
                if (m->kinds[id] == OTHER || node->assigned != device || m->depths[id] != depth)
                    continue;
                if (!has_room(p, node))
                    join(m, p);
                add_node(m, p, node);
            }
            join(m, p);
        }
}

tw_status twi_rewrite_scalars(twi_rewriting *r, tw_error *error)
{
    tw_status status = TW_OK;
    size_t n = (size_t)r->graph->nodes.count + 1;
    members m = {r, r->graph->nodes.count, twi_alloc_array(n, sizeof *m.kinds), twi_alloc_array(n, sizeof *m.depths),
                 twi_alloc_array(n, sizeof *m.writers), twi_alloc_array(n, sizeof *m.after)};
    program *p = twi_alloc(sizeof *p);
    if (!m.kinds || !m.depths || !m.writers || !m.after || !p)
        TWI_TRY(twi_fail_memory(error, "joining scalars"));
    for (int id = 0; id < m.count; id++)
        look_at(&m, r->graph->nodes.items[id]);
    join_all(&m, p);
done:
    twi_free(m.kinds);
    twi_free(m.depths);
    twi_free(m.writers);
    twi_free(m.after);
    twi_free(p);
    return status; /* an error may be on the graph, too */
}
