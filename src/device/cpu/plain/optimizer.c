/* optimizer.c - the optimizers beyond state.c's on the CPU: one rule for an element each, for whole gradients and for
 * those of rows. Half and bfloat16 are computed in float and rounded once, when they are stored. */
#include "base/memory.h"
#include "device/cpu/plain/indices.h"
#include "device/cpu/plain/move.h"
#include "device/cpu/plain/typed.h"
#include "device/resources.h"

#include <string.h>
#include <tgmath.h>

enum { MOST_SLOTS = 3, MOST_NUMBERS = 6, SPAN_ELEMENTS = 1024 };

/* State: which inputs are what, and the attributes. */
typedef struct layout {
    tw_status (*update)(const twi_run *r);
    int rule; /* its number */
    int slots[MOST_SLOTS], numbers[MOST_NUMBERS];
    int num_slots, num_numbers, gradient, indices; /* indices: -1 of a whole gradient */
    bool updates_slots, nesterov, multiplies;
    const char *bounds; /* of the first numbers: what is asked of each */
} layout;

/* Name behind "ResourceApply" and perhaps "ResourceSparseApply", inputs behind the variable (s slot, n number, g
 * gradient), rule. Of those that have both, indices follow the gradient. */
#define RULES(X)                                                                                                       \
    X("Adagrad", "sng", adagrad)                                                                                       \
    X("AdagradV2", "snng", adagrad_2)                                                                                  \
    X("AdagradDA", "ssgnnnn", adagrad_da)                                                                              \
    X("Adadelta", "ssnnng", adadelta)                                                                                  \
    X("Ftrl", "ssgnnnn", ftrl)                                                                                         \
    X("FtrlV2", "ssgnnnnn", ftrl_2)                                                                                    \
    X("RMSProp", "ssnnnng", rms_prop)                                                                                  \
    X("CenteredRMSProp", "sssnnnng", centered)                                                                         \
    X("ProximalGradientDescent", "nnng", proximal)                                                                     \
    X("ProximalAdagrad", "snnng", proximal_adagrad)                                                                    \
    X("AdaMax", "ssnnnnng", ada_max)                                                                                   \
    X("AddSign", "snnnng", add_sign)                                                                                   \
    X("PowerSign", "snnnng", power_sign)                                                                               \
    X("Momentum", "sngn", momentum)                                                                                    \
    X("KerasMomentum", "sngn", keras_momentum)                                                                         \
    X("AdamWithAmsgrad", "sssnnnnnng", amsgrad)

#define BODY "device/cpu/plain/optimizer.inl"
#include "device/cpu/plain/for_stored.h"
#undef BODY

/* What TensorFlow asks of an update's numbers, where it asks: + more than 0, 0 not less, - not more. */
static const struct bounds {
    const char *op, *numbers;
} bounds[] = {
    {"ResourceSparseApplyFtrl", "+00-"},
    {"ResourceSparseApplyFtrlV2", "+000-"},
    {"ResourceApplyProximalAdagrad", "+00"},
    {"ResourceSparseApplyProximalAdagrad", "+00"},
};

/* ---- preparing --------------------------------------------------------------------------------------------------- */

static const struct rule {
    const char *name, *inputs;
} rules[] = {
#define RULE(name, inputs, f) {name, inputs},
    RULES(RULE)
#undef RULE
};

static int find_rule(const char *op)
{
    int i = 0;
    while (strcmp(strstr(op, "Apply") + strlen("Apply"), rules[i].name) != 0)
        i++;
    return i;
}

static const char *bounds_of(const char *op)
{
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (strcmp(op, bounds[i].op) == 0)
            return bounds[i].numbers;
    return "";
}

static layout lay_out(int rule, tw_dtype type, bool sparse)
{
    layout u = {.rule = rule, .indices = -1};
    int input = 1;
    for (const char *letter = rules[rule].inputs; *letter; letter++, input++) {
        if (*letter == 's')
            u.slots[u.num_slots++] = input;
        else if (*letter == 'n')
            u.numbers[u.num_numbers++] = input;
        else
            u.gradient = input;
        if (*letter == 'g' && sparse)
            u.indices = ++input;
    }
    u.update = type == TW_FLOAT64    ? update_double
               : type == TW_FLOAT16  ? update_half
               : type == TW_BFLOAT16 ? update_bfloat16
                                     : update_float;
    return u;
}

/* Variables have the op's type, and slots the variable's shape: what a variable of unknown shape turned out to be. */
static tw_status check_variables(const twi_prepare *p, const layout *u, tw_dtype type)
{
    char text[2][96];
    for (int k = -1; k < u->num_slots; k++) {
        int i = k < 0 ? 0 : u->slots[k];
        tw_status status = twi_resource_check_type(p->inputs[i].resource, type, p->op, p->node, p->error);
        if (status != TW_OK)
            return status;
        if (!tw_shape_equal(p->inputs[i].shape, p->inputs[0].shape))
            return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': the variable has shape %s, input %d has shape %s",
                            p->op, p->node, tw_shape_text(p->inputs[0].shape, text[0], sizeof text[0]), i,
                            tw_shape_text(p->inputs[i].shape, text[1], sizeof text[1]));
    }
    return TW_OK;
}

static tw_status prepare(twi_prepare *p)
{
    tw_dtype type = twi_kernel_type(p->attrs);
    layout u = lay_out(find_rule(p->op), type, strstr(p->op, "SparseApply") != NULL);
    u.bounds = bounds_of(p->op);
    u.updates_slots = twi_attr_bool(p->attrs, "update_slots", true);
    u.nesterov = twi_attr_bool(p->attrs, "use_nesterov", false);
    u.multiplies = twi_attr_bool(p->attrs, "multiply_linear_by_lr", false);
    tw_status status = check_variables(p, &u, type);
    return status == TW_OK ? twi_keep(p, &u, sizeof u) : status;
}

static tw_status run(const twi_run *r)
{
    const layout *u = r->state;
    tw_status status = TW_OK;
    if (u->indices >= 0)
        status = twi_indices_check(r, u->indices, r->input_operands[0].shape.dims[0]);
    return status == TW_OK ? u->update(r) : status;
}

#define DENSE(name)                                                                                                    \
    {                                                                                                                  \
        "ResourceApply" name, "plain", TWI_FLOAT_TYPES, prepare, run, twi_free                                         \
    }
#define SPARSE(name)                                                                                                   \
    {                                                                                                                  \
        "ResourceSparseApply" name, "plain", TWI_FLOAT_TYPES, prepare, run, twi_free                                   \
    }

const twi_kernel twi_cpu_optimizer_kernels[] = {
    DENSE("Adagrad"),
    SPARSE("Adagrad"),
    DENSE("AdagradV2"),
    SPARSE("AdagradV2"),
    DENSE("AdagradDA"),
    SPARSE("AdagradDA"),
    DENSE("Adadelta"),
    SPARSE("Adadelta"),
    DENSE("Ftrl"),
    SPARSE("Ftrl"),
    DENSE("FtrlV2"),
    SPARSE("FtrlV2"),
    SPARSE("RMSProp"),
    DENSE("CenteredRMSProp"),
    SPARSE("CenteredRMSProp"),
    DENSE("ProximalGradientDescent"),
    SPARSE("ProximalGradientDescent"),
    DENSE("ProximalAdagrad"),
    SPARSE("ProximalAdagrad"),
    DENSE("AdaMax"),
    DENSE("AddSign"),
    DENSE("PowerSign"),
    SPARSE("Momentum"),
    DENSE("KerasMomentum"),
    SPARSE("KerasMomentum"),
    DENSE("AdamWithAmsgrad"),
    {0},
};
