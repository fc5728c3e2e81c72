/* optimizer.c - optimizers: a row of a table says name, slots and the update of one variable.
 * Never here: the arithmetic of updates (device/.../state.c). */
#include "train/optimizer.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>
#include <tower/ops.h>

#include "train/muon.h"
#include "train/reduce.h" /* tw_find_rows */

enum { MOST_SLOTS = 2, MOST_NUMBERS = 3, MOST_APART = 8 };

/* A variable's slots, made when it is first updated. */
typedef struct slots {
    const tw_variable *of;
    tw_variable *slot[MOST_SLOTS];
    struct slots *next;
} slots;

/* Everything the update of one variable needs; scalars have the variable's type. */
typedef struct update {
    tw_optimizer *optimizer;
    const tw_variable *of, *slot_of[MOST_SLOTS];
    tw_output variable, slot[MOST_SLOTS], gradient, rate, number[MOST_NUMBERS]; /* handles, values */
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

/* Variables whose names end so have an optimizer of their own. */
typedef struct apart {
    const char *ending;
    tw_optimizer *optimizer;
} apart;

/* What an optimizer's updates of one step share. */
typedef struct common {
    tw_output rate, numbers[MOST_NUMBERS];
} common;

struct tw_optimizer {
    tw_graph *graph;
    const kind *kind;
    tw_output rate;
    float numbers[MOST_NUMBERS];
    bool nesterov;
    tw_muon_options muon;
    apart apart[MOST_APART]; /* the first that fits counts */
    int num_apart;
    float decay;            /* decoupled weight decay, */
    int decay_rank;         /* of variables of at least so many dimensions */
    bool takes_whole;       /* gradients are fed: what they are made of says nothing */
    const tw_loss_scale *guard; /* NULL: none */
    slots *slots[BUCKETS];  /* by variable */
    tw_variable *powers[2]; /* Adam's beta1_power and beta2_power */
};

void twi_take_whole_gradients(tw_optimizer *optimizer)
{
    if (!optimizer)
        return;
    optimizer->takes_whole = true;
    for (int i = 0; i < optimizer->num_apart; i++)
        optimizer->apart[i].optimizer->takes_whole = true;
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

static tw_output update_muon(tw_graph *graph, const update *u)
{
    const tw_optimizer *o = u->optimizer;
    if (u->of->shape.rank < 2)
        return tw_apply_momentum(graph, u->variable, u->slot[0], u->rate, u->gradient, u->number[0], o->nesterov);
    return twi_update_by_muon(graph, &(twi_muon_update){.options = &o->muon,
                                                        .variable = u->of,
                                                        .accumulator = u->slot_of[0],
                                                        .gradient = u->gradient,
                                                        .rate = u->rate,
                                                        .momentum = u->number[0]});
}

static const kind gradient_descent = {.name = "GradientDescent", .update = update_gradient_descent};
static const kind momentum = {"Momentum", 1, {"Momentum"}, {0}, {"momentum"}, {1}, update_momentum};
static const kind muon = {"Muon", 1, {"Momentum"}, {0}, {"momentum"}, {1}, update_muon};
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

tw_optimizer *tw_muon(tw_graph *graph, tw_output rate, const tw_muon_options *given)
{
    tw_muon_options options;
    TWI_NEED_OR(graph, NULL);
    TWI_TAKE_IN(graph, &options, given, TWI_SIZE(tw_muon_options, normalize), NULL);
    if (!(options.momentum >= 0 && options.momentum <= 1) || options.iterations < 0) {
        tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                      "Muon with a momentum of %g and %d iterations, expected 0 to 1 and at least 0",
                      (double)options.momentum, options.iterations);
        return NULL;
    }
    options.momentum = options.momentum > 0 ? options.momentum : 0.95f;
    options.iterations = options.iterations ? options.iterations : 5;
    tw_optimizer *optimizer = new_optimizer(graph, &muon, rate, &options.momentum);
    if (optimizer) {
        optimizer->muon = options;
        optimizer->nesterov = !options.plain_momentum;
    }
    return optimizer;
}

void tw_optimize_apart(tw_optimizer *optimizer, const char *ending, tw_optimizer *other)
{
    if (!optimizer || !other)
        return;
    tw_graph *graph = optimizer->graph;
    TWI_NEED_IN(graph, ending, "ending", );
    if (other->graph != graph || other == optimizer || other->num_apart)
        tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                      "variables '...%s' are to be updated apart, by an optimizer that is %s", ending,
                      other->graph != graph ? "another graph's"
                      : other == optimizer  ? "the same"
                                            : "itself divided");
    else if (optimizer->num_apart == MOST_APART)
        tw_graph_fail(graph, TW_OUT_OF_RANGE, "more than %d optimizers apart in one", MOST_APART);
    const char *kept = tw_graph_status(graph) == TW_OK ? tw_graph_keep(graph, ending, strlen(ending) + 1) : NULL;
    if (kept)
        optimizer->apart[optimizer->num_apart++] = (apart){kept, other};
    else if (tw_graph_status(graph) == TW_OK)
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while dividing an optimizer");
}

/* Which optimizer's the variable is, and its number: 0 for `o` itself. */
static int part_of(const tw_optimizer *o, const tw_variable *variable)
{
    const char *name = variable->copy_of ? variable->copy_of->name : variable->name;
    size_t length = strlen(name);
    for (int i = 0; i < o->num_apart; i++) {
        size_t ending = strlen(o->apart[i].ending);
        if (ending <= length && strcmp(name + length - ending, o->apart[i].ending) == 0)
            return i + 1;
    }
    return 0;
}

static tw_optimizer *part(tw_optimizer *o, int i)
{
    return i ? o->apart[i - 1].optimizer : o;
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
    else
        for (int i = 0; i <= optimizer->num_apart; i++)
            if (part(optimizer, i)->kind == &muon)
                tw_graph_fail(optimizer->graph, TW_INVALID_ARGUMENT,
                              "Automatic loss scaling is not supported with Muon: it goes on moving variables in the "
                              "steps that are to be left out");
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

/* Slots of all variables that this part of an optimizer will update, and Adam's powers beside the first of them. */
static void make_slots(tw_optimizer *whole, int number, const tw_grads *grads)
{
    tw_optimizer *o = part(whole, number);
    const tw_variable *first = NULL;
    for (int i = 0; i < grads->count; i++) {
        if (!grads->gradients[i].node || part_of(whole, grads->variables[i]) != number)
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

static tw_output update_variable(tw_optimizer *o, const tw_variable *variable, tw_output gradient, const common *common)
{
    tw_graph *graph = o->graph;
    slots *s = slots_of(o, variable);
    if (!s)
        return (tw_output){0};
    update u = {
        .optimizer = o, .of = variable, .variable = variable->handle, .gradient = gradient, .dtype = variable->dtype};
    tw_output made = {0};
    TW_NAME_SCOPE(graph, "update_%s", variable->name)
    TW_COLOCATE(graph, variable->handle) {
        u.rate = tw_cast(graph, common->rate, u.dtype);
        for (int i = 0; i < MOST_NUMBERS && o->kind->number_names[i]; i++)
            u.number[i] = tw_cast(graph, common->numbers[i], u.dtype);
        for (int i = 0; i < o->kind->num_slots; i++) {
            u.slot_of[i] = s->slot[i];
            u.slot[i] = s->slot[i]->handle;
        }
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
    if (o->kind != &adam || !o->powers[0]) /* no variable is its own */
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

/* Where a guard says that the step is a bad one, those of an update that changes nothing. */
static common make_common(const tw_optimizer *o, const tw_loss_scale *guard)
{
    tw_graph *graph = o->graph;
    common c = {.rate = o->rate};
    for (int i = 0; i < MOST_NUMBERS && o->kind->number_names[i]; i++)
        c.numbers[i] = tw_scalar(tw_name(graph, "%s", o->kind->number_names[i]), o->numbers[i]);
    if (guard) {
        c.rate = tw_select(graph, guard->good_step, c.rate, tw_zeros_like(graph, c.rate));
        for (int i = 0; i < MOST_NUMBERS && o->kind->number_names[i]; i++)
            c.numbers[i] = tw_select(graph, guard->good_step, c.numbers[i], tw_scalar(graph, o->kind->idle[i]));
    }
    return c;
}

/* The updates, then what finishes the step; under the optimizer's name scope. */
static tw_output build_step(tw_optimizer *o, const tw_grads *grads, tw_variable *global_step, tw_output *nodes)
{
    tw_graph *graph = o->graph;
    common commons[MOST_APART + 1];
    const char *scope = tw_name_scope(graph);
    for (int i = 0; i <= o->num_apart; i++)
        commons[i] = make_common(part(o, i), o->guard);
    int count = 0;
    for (int i = 0; i < grads->count; i++)
        if (grads->gradients[i].node) {
            int number = part_of(o, grads->variables[i]);
            nodes[count++] =
                update_variable(part(o, number), grads->variables[i], grads->gradients[i], commons + number);
        }
    if (tw_graph_status(graph) != TW_OK)
        return (tw_output){0};
    for (int i = 0; i < count; i++)
        tw_enter_control(graph, nodes[i]);
    int finishing = 0;
    for (int i = 0; i <= o->num_apart; i++)
        finishing += advance_powers(part(o, i), commons[i].numbers, nodes + count + finishing);
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
    tw_output step = {0}, *nodes = twi_alloc_array((size_t)grads->count + 2 * (MOST_APART + 1), sizeof *nodes);
    if (!nodes) {
        tw_graph_fail(graph, TW_RESOURCE_EXHAUSTED, "out of memory while applying gradients");
        return step;
    }
    if (optimizer->guard && !optimizer->guard->good_step.node)
        tw_graph_fail(graph, TW_INVALID_ARGUMENT,
                      "the loss scale that guards an optimizer has not seen any gradients: call tw_unscale_gradients() "
                      "before tw_apply_gradients()");
    else if (check_grads(graph, grads) == TW_OK)
        for (int i = 0; i <= optimizer->num_apart; i++)
            make_slots(optimizer, i, grads);
    if (tw_graph_status(graph) == TW_OK) {
        TW_NAME_SCOPE(graph, "%s", optimizer->kind->name)
            step = build_step(optimizer, grads, global_step, nodes);
        if (step.node)
            tw_add_to_collection(graph, "train_op", step);
    }
    twi_free(nodes);
    return step;
}
