/* optimizer.c - optimizers: a row of a table says name, slots and the update of one variable.
 * Never here: the arithmetic of updates (device/.../state.c). */
#include "train/optimizer.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"

#include <stdio.h>
#include <tower/ops.h>

#include "train/reduce.h" /* tw_find_rows */

enum { MOST_SLOTS = 2, MOST_NUMBERS = 3 };

/* A variable's slots, made when it is first updated. */
typedef struct slots {
    const tw_variable *of;
    tw_variable *slot[MOST_SLOTS];
    struct slots *next;
} slots;

/* Everything the update of one variable needs; scalars have the variable's type. */
typedef struct update {
    tw_optimizer *optimizer;
    tw_output variable, slot[MOST_SLOTS], gradient, rate, number[MOST_NUMBERS];
    tw_dtype dtype;
} update;

typedef struct kind {
    const char *name;
    int num_slots;
    const char *slot_names[MOST_SLOTS];
    float slot_values[MOST_SLOTS];
    const char *number_names[MOST_NUMBERS];
    float idle[MOST_NUMBERS]; /* with these, a rate of 0 and gradients of 0 an update changes nothing */
    tw_output (*update)(tw_graph *graph, const update *u);
} kind;

enum { BUCKETS = 512 };

struct tw_optimizer {
    tw_graph *graph;
    const kind *kind;
    tw_output rate;
    float numbers[MOST_NUMBERS];
    bool nesterov;
    float decay;            /* decoupled weight decay, */
    int decay_rank;         /* of variables of at least so many dimensions */
    bool takes_whole;       /* gradients are fed: what they are made of says nothing */
    const tw_loss_scale *guard; /* NULL: none */
    slots *slots[BUCKETS];  /* by variable */
    tw_variable *powers[2]; /* Adam's beta1_power and beta2_power */
};

void twi_take_whole_gradients(tw_optimizer *optimizer)
{
    if (optimizer)
        optimizer->takes_whole = true;
}

tw_graph *twi_optimizer_graph(const tw_optimizer *optimizer)
{
    return optimizer->graph;
}

/* ---- the kinds --------------------------------------------------------------------------------------------- */

/* Of a sparse gradient only the rows are updated that it touches, each as often as it was looked up, in TensorFlow's
 * order. */
static tw_output update_gradient_descent(tw_graph *graph, const update *u)
{
    tw_rows rows;
    bool scatters = u->dtype == TW_FLOAT32 || u->dtype == TW_FLOAT64; /* on all devices */
    if (scatters && !u->optimizer->takes_whole && tw_find_rows(u->gradient, &rows))
        return tw_scatter_sub(graph, u->variable, rows.ids, tw_mul(graph, rows.values, u->rate));
    return tw_apply_gradient_descent(graph, u->variable, u->rate, u->gradient);
}

static tw_output update_momentum(tw_graph *graph, const update *u)
{
    return tw_apply_momentum(graph, u->variable, u->slot[0], u->rate, u->gradient, u->number[0],
                             u->optimizer->nesterov);
}

static tw_output update_adam(tw_graph *graph, const update *u)
{
    tw_output powers[2];
    for (int i = 0; i < 2; i++)
        powers[i] = tw_cast(graph, u->optimizer->powers[i]->value, u->dtype);
    return tw_apply_adam(graph, u->variable, u->slot[0], u->slot[1], powers[0], powers[1], u->rate, u->number[0],
                         u->number[1], u->number[2], u->gradient);
}

static tw_output update_rms_prop(tw_graph *graph, const update *u)
{
    return tw_apply_rms_prop(graph, u->variable, u->slot[0], u->slot[1], u->rate, u->number[0], u->number[1],
                             u->number[2], u->gradient);
}

static const kind gradient_descent = {.name = "GradientDescent", .update = update_gradient_descent};
static const kind momentum = {"Momentum", 1, {"Momentum"}, {0}, {"momentum"}, {1}, update_momentum};
static const kind adam = {
    "Adam", 2, {"Adam", "Adam_1"}, {0}, {"beta1", "beta2", "epsilon"}, {1, 1, 1}, update_adam};
static const kind rms_prop = {
    "RMSProp", 2, {"RMSProp", "RMSProp_1"}, {1, 0}, {"decay", "momentum", "epsilon"}, {1, 0, 1}, update_rms_prop};

static tw_optimizer *new_optimizer(tw_graph *graph, const kind *kind, tw_output rate, const float *numbers)
{
    if (tw_graph_status(graph) != TW_OK)
        return NULL;
    tw_optimizer *optimizer = tw_graph_keep(graph, NULL, sizeof *optimizer);
    if (!optimizer) {
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while making an optimizer");
        return NULL;
    }
    *optimizer = (tw_optimizer){.graph = graph, .kind = kind, .rate = rate};
    for (int i = 0; i < MOST_NUMBERS && kind->number_names[i]; i++)
        optimizer->numbers[i] = numbers[i];
    return optimizer;
}

tw_optimizer *tw_optimizer_at(tw_optimizer *optimizer, const char *file, int line)
{
    TWI_NEED_OR(optimizer, NULL);
    tw_graph_at(optimizer->graph, file, line);
    return optimizer;
}

tw_optimizer *tw_gradient_descent(tw_graph *graph, tw_output rate)
{
    return new_optimizer(graph, &gradient_descent, rate, NULL);
}

tw_optimizer *tw_momentum(tw_graph *graph, tw_output rate, float value, bool nesterov)
{
    tw_optimizer *optimizer = new_optimizer(graph, &momentum, rate, &value);
    if (optimizer)
        optimizer->nesterov = nesterov;
    return optimizer;
}

tw_optimizer *tw_adam(tw_graph *graph, tw_output rate, float beta1, float beta2, float epsilon)
{
    return new_optimizer(graph, &adam, rate, (float[]){beta1, beta2, epsilon});
}

tw_optimizer *tw_rms_prop(tw_graph *graph, tw_output rate, float decay, float momentum_value, float epsilon)
{
    return new_optimizer(graph, &rms_prop, rate, (float[]){decay, momentum_value, epsilon});
}

void tw_decouple_weight_decay(tw_optimizer *optimizer, float decay, int least_rank)
{
    if (!optimizer)
        return;
    if (!(decay >= 0))
        tw_graph_fail(optimizer->graph, TW_INVALID_ARGUMENT, "a weight decay of %g, expected 0 or more", decay);
    optimizer->decay = decay;
    optimizer->decay_rank = least_rank;
}

void tw_guard_optimizer(tw_optimizer *optimizer, const tw_loss_scale *scale)
{
    if (!optimizer || !scale)
        return;
    if (!scale->automatic)
        tw_graph_fail(optimizer->graph, TW_INVALID_ARGUMENT, "an optimizer is guarded by an automatic loss scale");
    else if (optimizer->kind == &rms_prop && optimizer->numbers[1] != 0)
        tw_graph_fail(optimizer->graph, TW_INVALID_ARGUMENT,
                      "Automatic loss scaling is not supported with RMSProp's momentum (here %g): it goes on moving "
                      "variables in the steps that are to be left out",
                      optimizer->numbers[1]);
    optimizer->guard = scale;
}

/* ---- slots ------------------------------------------------------------------------------------------------- */

/* A variable next to `beside`, named `name`, or name_1, name_2... if another optimizer has that already. Of a copy's
 * slots `original` is what they copy; NULL otherwise. */
static tw_variable *make_beside(tw_graph *graph, const tw_variable *beside, const char *name, tw_dtype dtype,
                                tw_shape shape, float value, const tw_variable *original)
{
    char free_name[700];
    snprintf(free_name, sizeof free_name, "%s", name);
    for (int i = 1; tw_graph_find_variable(graph, free_name); i++)
        snprintf(free_name, sizeof free_name, "%s_%d", name, i);
    tw_enter_colocation(graph, beside->handle);
    tw_variable *made =
        tw_make_variable(graph, free_name,
                         &(tw_new_variable){dtype, shape, {.kind = TW_INIT_CONSTANT, .a = value}, .copy_of = original});
    tw_leave_colocation(graph);
    return made;
}

static slots *slots_of(tw_optimizer *o, const tw_variable *variable)
{
    slots **bucket = &o->slots[(uintptr_t)variable / sizeof *variable % BUCKETS];
    for (slots *s = *bucket; s; s = s->next)
        if (s->of == variable)
            return s;
    slots *originals = variable->copy_of ? slots_of(o, variable->copy_of) : NULL;
    slots *s = tw_graph_keep(o->graph, NULL, sizeof *s);
    if (!s || (variable->copy_of && !originals)) {
        tw_graph_fail(o->graph, TW_RESOURCE_EXHAUSTED, "out of memory while making slots");
        return NULL;
    }
    *s = (slots){.of = variable, .next = *bucket};
    *bucket = s;
    for (int i = 0; i < o->kind->num_slots; i++) {
        char name[640];
        snprintf(name, sizeof name, "%s/%s", variable->name, o->kind->slot_names[i]);
        s->slot[i] = make_beside(o->graph, variable, name, variable->dtype, variable->shape, o->kind->slot_values[i],
                                 originals ? originals->slot[i] : NULL);
        if (!s->slot[i])
            return NULL;
    }
    return s;
}

/* Slots of all variables that will be updated, and Adam's powers beside the first of them. */
static void make_slots(tw_optimizer *o, const tw_grads *grads)
{
    const tw_variable *first = NULL;
    for (int i = 0; i < grads->count; i++) {
        if (!grads->gradients[i].node)
            continue;
        first = first ? first : grads->variables[i];
        if (!slots_of(o, grads->variables[i]))
            return;
    }
    static const char *const names[] = {"beta1_power", "beta2_power"};
    for (int i = 0; o->kind == &adam && first && i < 2; i++)
        if (!o->powers[i])
            o->powers[i] = make_beside(o->graph, first, names[i], TW_FLOAT32, TW_SCALAR, o->numbers[i], NULL);
}

/* ---- applying ---------------------------------------------------------------------------------------------- */

/* variable -= rate * decay * variable */
static tw_output decay_variable(tw_optimizer *o, const tw_variable *variable, tw_output rate)
{
    tw_graph *graph = o->graph;
    tw_output share = tw_mul(graph, rate, tw_cast(graph, tw_scalar(graph, o->decay), variable->dtype));
    tw_output lost = tw_mul(tw_name(graph, "decay"), variable->value, share);
    return tw_assign_sub(graph, variable->handle, lost);
}

static tw_output update_variable(tw_optimizer *o, const tw_variable *variable, tw_output gradient, tw_output rate,
                                 const tw_output *numbers)
{
    tw_graph *graph = o->graph;
    slots *s = slots_of(o, variable);
    if (!s)
        return (tw_output){0};
    update u = {.optimizer = o, .variable = variable->handle, .gradient = gradient, .dtype = variable->dtype};
    tw_output made = {0};
    TW_NAME_SCOPE(graph, "update_%s", variable->name)
    TW_COLOCATE(graph, variable->handle) {
        u.rate = tw_cast(graph, rate, u.dtype);
        for (int i = 0; i < MOST_NUMBERS && o->kind->number_names[i]; i++)
            u.number[i] = tw_cast(graph, numbers[i], u.dtype);
        for (int i = 0; i < o->kind->num_slots; i++)
            u.slot[i] = s->slot[i]->handle;
        if (o->decay > 0 && variable->shape.rank >= o->decay_rank) {
            tw_output decayed = decay_variable(o, variable, u.rate);
            TW_CONTROL(graph, decayed)
                made = o->kind->update(graph, &u);
        } else {
            made = o->kind->update(graph, &u);
        }
    }
    return made;
}

/* Adam's powers go on, after all updates (which the open control scopes see to); returns how many nodes it made. */
static int advance_powers(tw_optimizer *o, const tw_output *numbers, tw_output *nodes)
{
    if (o->kind != &adam)
        return 0;
    for (int i = 0; i < 2; i++)
        TW_COLOCATE(o->graph, o->powers[i]->handle) {
            tw_output next = tw_mul(tw_name(o->graph, "mul"), o->powers[i]->value, numbers[i]);
            nodes[i] = tw_assign(tw_name(o->graph, "Assign"), o->powers[i]->handle, next);
        }
    return 2;
}

/* Says which variables have no gradient; an error if none has one. */
static tw_status check_grads(tw_graph *graph, const tw_grads *grads)
{
    int missing = 0;
    for (int i = 0; i < grads->count; i++)
        if (!grads->gradients[i].node) {
            missing++;
            twi_log(TWI_LOG_WARNING, "variable '%s' has no gradient and is not trained", grads->variables[i]->name);
        }
    if (missing == grads->count)
        return tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                             "No gradients provided for any of %d variables%s%s: the loss depends on none of them",
                             grads->count, grads->count ? ", the first of them " : "",
                             grads->count ? grads->variables[0]->name : "");
    return TW_OK;
}

/* The updates, then what finishes the step; under the optimizer's name scope. */
static tw_output build_step(tw_optimizer *o, const tw_grads *grads, tw_variable *global_step, tw_output *nodes)
{
    tw_graph *graph = o->graph;
    tw_output numbers[MOST_NUMBERS], rate = o->rate;
    const char *scope = tw_name_scope(graph);
    for (int i = 0; i < MOST_NUMBERS && o->kind->number_names[i]; i++)
        numbers[i] = tw_scalar(tw_name(graph, "%s", o->kind->number_names[i]), o->numbers[i]);
    if (o->guard) {
        rate = tw_select(graph, o->guard->good_step, rate, tw_zeros_like(graph, rate));
        for (int i = 0; i < MOST_NUMBERS && o->kind->number_names[i]; i++)
            numbers[i] = tw_select(graph, o->guard->good_step, numbers[i], tw_scalar(graph, o->kind->idle[i]));
    }
    int count = 0;
    for (int i = 0; i < grads->count; i++)
        if (grads->gradients[i].node)
            nodes[count++] = update_variable(o, grads->variables[i], grads->gradients[i], rate, numbers);
    if (tw_graph_status(graph) != TW_OK)
        return (tw_output){0};
    for (int i = 0; i < count; i++)
        tw_enter_control(graph, nodes[i]);
    int finishing = advance_powers(o, numbers, nodes + count);
    for (int i = 0; i < count; i++)
        tw_leave_control(graph);
    tw_output updated = tw_group(tw_name(graph, "%s", global_step ? "update" : scope), nodes, count + finishing);
    if (!global_step || !updated.node)
        return updated;
    tw_output step = {0};
    TW_CONTROL(graph, updated)
    TW_COLOCATE(graph, global_step->handle) {
        tw_output one = tw_scalar_of(tw_name(graph, "value"), global_step->dtype, 1);
        step = tw_assign_add(tw_name(graph, "%s", scope), global_step->handle, one);
    }
    return step;
}

tw_output tw_apply_gradients(tw_optimizer *optimizer, const tw_grads *grads, tw_variable *global_step)
{
    if (!optimizer || !grads || tw_graph_status(optimizer->graph) != TW_OK)
        return (tw_output){0};
    tw_graph *graph = optimizer->graph;
    tw_output step = {0}, *nodes = twi_alloc_array((size_t)grads->count + 2, sizeof *nodes);
    if (!nodes) {
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while applying gradients");
        return step;
    }
    if (optimizer->guard && !optimizer->guard->good_step.node)
        tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                      "the loss scale that guards an optimizer has not seen any gradients: call tw_unscale_gradients() "
                      "before tw_apply_gradients()");
    else if (check_grads(graph, grads) == TW_OK)
        make_slots(optimizer, grads);
    if (tw_graph_status(graph) == TW_OK) {
        TW_NAME_SCOPE(graph, "%s", optimizer->kind->name)
            step = build_step(optimizer, grads, global_step, nodes);
        if (step.node)
            tw_add_to_collection(graph, "train_op", step);
    }
    twi_free(nodes);
    return step;
}
