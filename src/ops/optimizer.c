/* optimizer.c - updates of variables by optimizers' rules beyond those of state.c, for gradients of all of a variable
 * and for those of some of its rows. Lives here:  signatures and shape rules. Each update is a pair of ops: on handles,
 * and on references of old graphs. */
#include "graph/op.h"
#include "ops/types.h"

static tw_status unlike_variable(twi_inference *c, int input)
{
    char text[2][96];
    return twi_fail(c->error, TW_INVALID_ARGUMENT, "the variable has shape %s, but input %d has shape %s",
                    tw_shape_text(c->inputs[0], text[0], sizeof text[0]), input,
                    tw_shape_text(c->inputs[input], text[1], sizeof text[1]));
}

/* The gradient of rows: as many as there are indices, each as long as the variable's. */
static tw_status rows_shape(twi_inference *c, int gradient, int indices)
{
    tw_shape wanted = c->inputs[0], rows = c->inputs[indices];
    char text[2][96];
    if (rows.rank >= 0 && rows.rank != 1)
        return twi_expect_rank(c, indices, 1);
    if (wanted.rank == 0)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "the variable is a scalar and has no rows");
    if (wanted.rank < 0)
        return TW_OK;
    wanted.dims[0] = rows.rank < 0 ? -1 : rows.dims[0];
    if (!tw_shape_compatible(wanted, c->inputs[gradient]))
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "rows of the variable have a gradient %s, not %s",
                        tw_shape_text(wanted, text[0], sizeof text[0]),
                        tw_shape_text(c->inputs[gradient], text[1], sizeof text[1]));
    return TW_OK;
}

/* Numbers are scalars; slots, and gradients but those of rows, have the shape of the variable, input 0. */
static tw_status update_shape(twi_inference *c)
{
    tw_shape shape = c->inputs[0];
    int gradient = -1, indices = -1;
    for (int i = 0; i < c->num_inputs; i++) {
        char role = twi_op_role(c->op, c->attrs, i);
        gradient = role == 'g' ? i : gradient;
        indices = role == 'i' ? i : indices;
        if (role == 'n' && c->inputs[i].rank > 0)
            return twi_expect_rank(c, i, 0);
        if (role == 's' && twi_merge_shapes(shape, c->inputs[i], &shape, NULL) != TW_OK)
            return unlike_variable(c, i);
    }
    if (c->num_outputs)
        c->outputs[0] = shape;
    if (indices >= 0)
        return rows_shape(c, gradient, indices);
    return twi_merge_shapes(shape, c->inputs[gradient], &shape, NULL) == TW_OK ? TW_OK : unlike_variable(c, gradient);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define TYPE "T:{" TWI_REALS "}; use_locking:bool=false"
#define INDEX "; Tindices:{int32,int64}"
#define SLOTS "; update_slots:bool=true"
#define NESTEROV "; use_nesterov:bool=false"
#define BY_RATE "; multiply_linear_by_lr:bool=false"

/* V: how the op is given a variable. */
#define ADAGRAD(V) "var:" V ", accum:" V ", lr:T, grad:T"
#define ADAGRAD_2(V) "var:" V ", accum:" V ", lr:T, epsilon:T, grad:T"
#define ADAGRAD_DA(V, I)                                                                                               \
    "var:" V ", gradient_accumulator:" V ", gradient_squared_accumulator:" V ", grad:T" I                              \
    ", lr:T, l1:T, l2:T, global_step:int64"
#define ADADELTA(V) "var:" V ", accum:" V ", accum_update:" V ", lr:T, rho:T, epsilon:T, grad:T"
#define FTRL(V, I) "var:" V ", accum:" V ", linear:" V ", grad:T" I ", lr:T, l1:T, l2:T, lr_power:T"
#define FTRL_2(V, I) "var:" V ", accum:" V ", linear:" V ", grad:T" I ", lr:T, l1:T, l2:T, l2_shrinkage:T, lr_power:T"
#define RMS_PROP(V) "var:" V ", ms:" V ", mom:" V ", lr:T, rho:T, momentum:T, epsilon:T, grad:T"
#define CENTERED(V) "var:" V ", mg:" V ", ms:" V ", mom:" V ", lr:T, rho:T, momentum:T, epsilon:T, grad:T"
#define PROXIMAL(V, G) "var:" V ", alpha:T, l1:T, l2:T, " G
#define PROXIMAL_ADAGRAD(V) "var:" V ", accum:" V ", lr:T, l1:T, l2:T, grad:T"
#define ADA_MAX(V) "var:" V ", m:" V ", v:" V ", beta1_power:T, lr:T, beta1:T, beta2:T, epsilon:T, grad:T"
#define ADD_SIGN(V) "var:" V ", m:" V ", lr:T, alpha:T, sign_decay:T, beta:T, grad:T"
#define POWER_SIGN(V) "var:" V ", m:" V ", lr:T, logbase:T, sign_decay:T, beta:T, grad:T"
#define MOMENTUM(V, I) "var:" V ", accum:" V ", lr:T, grad:T" I ", momentum:T"
#define AMSGRAD(V)                                                                                                     \
    "var:" V ", m:" V ", v:" V ", vhat:" V ", beta1_power:T, beta2_power:T, lr:T, beta1:T, beta2:T, epsilon:T, grad:T"
#define AT ", indices:Tindices"

/* where: 0, or TWI_HOST_ONLY */
#define BY_HANDLE(where, name, inputs, attrs, roles)                                                                   \
    {                                                                                                                  \
        name, inputs, "", attrs, update_shape, NULL, TWI_STATEFUL | where, roles                                       \
    }
#define BY_REFERENCE(where, name, inputs, attrs, roles)                                                                \
    {                                                                                                                  \
        name, inputs, "out:Ref(T)", attrs, update_shape, NULL, where, roles, .planned_as = "Resource" name             \
    }
/* inputs, and what follows them */
#define UPDATE(where, name, inputs, more, attrs, roles)                                                                \
    BY_HANDLE(where, "Resource" name, inputs("resource") more, attrs, roles),                                          \
        BY_REFERENCE(where, name, inputs("Ref(T)") more, attrs, roles)
/* inputs, with `between` somewhere in them */
#define UPDATE_WITH(where, name, inputs, between, attrs, roles)                                                        \
    BY_HANDLE(where, "Resource" name, inputs("resource", between), attrs, roles),                                      \
        BY_REFERENCE(where, name, inputs("Ref(T)", between), attrs, roles)

const twi_op twi_optimizer_ops[] = {
    UPDATE(0, "ApplyAdagrad", ADAGRAD, "", TYPE SLOTS, "usng"),
    UPDATE(TWI_HOST_ONLY, "SparseApplyAdagrad", ADAGRAD, AT, TYPE INDEX SLOTS, "usngi"),
    UPDATE(0, "ApplyAdagradV2", ADAGRAD_2, "", TYPE SLOTS, "usnng"),
    UPDATE(TWI_HOST_ONLY, "SparseApplyAdagradV2", ADAGRAD_2, AT, TYPE INDEX SLOTS, "usnngi"),
    UPDATE_WITH(TWI_HOST_ONLY, "ApplyAdagradDA", ADAGRAD_DA, "", TYPE, "ussgnnnn"),
    UPDATE_WITH(TWI_HOST_ONLY, "SparseApplyAdagradDA", ADAGRAD_DA, AT, TYPE INDEX, "ussginnnn"),
    UPDATE(0, "ApplyAdadelta", ADADELTA, "", TYPE, "ussnnng"),
    UPDATE(TWI_HOST_ONLY, "SparseApplyAdadelta", ADADELTA, AT, TYPE INDEX, "ussnnngi"),
    UPDATE_WITH(TWI_HOST_ONLY, "ApplyFtrl", FTRL, "", TYPE BY_RATE, "ussgnnnn"),
    UPDATE_WITH(TWI_HOST_ONLY, "SparseApplyFtrl", FTRL, AT, TYPE INDEX BY_RATE, "ussginnnn"),
    UPDATE_WITH(TWI_HOST_ONLY, "ApplyFtrlV2", FTRL_2, "", TYPE BY_RATE, "ussgnnnnn"),
    UPDATE_WITH(TWI_HOST_ONLY, "SparseApplyFtrlV2", FTRL_2, AT, TYPE INDEX BY_RATE, "ussginnnnn"),
    UPDATE(TWI_HOST_ONLY, "SparseApplyRMSProp", RMS_PROP, AT, TYPE INDEX, "ussnnnngi"),
    UPDATE(0, "ApplyCenteredRMSProp", CENTERED, "", TYPE, "usssnnnng"),
    UPDATE(TWI_HOST_ONLY, "SparseApplyCenteredRMSProp", CENTERED, AT, TYPE INDEX, "usssnnnngi"),
    UPDATE_WITH(TWI_HOST_ONLY, "ApplyProximalGradientDescent", PROXIMAL, "delta:T", TYPE, "unnng"),
    UPDATE_WITH(TWI_HOST_ONLY, "SparseApplyProximalGradientDescent", PROXIMAL, "grad:T" AT, TYPE INDEX, "unnngi"),
    UPDATE(TWI_HOST_ONLY, "ApplyProximalAdagrad", PROXIMAL_ADAGRAD, "", TYPE, "usnnng"),
    UPDATE(TWI_HOST_ONLY, "SparseApplyProximalAdagrad", PROXIMAL_ADAGRAD, AT, TYPE INDEX, "usnnngi"),
    UPDATE(0, "ApplyAdaMax", ADA_MAX, "", TYPE, "ussnnnnng"),
    UPDATE(0, "ApplyAddSign", ADD_SIGN, "", TYPE, "usnnnng"),
    UPDATE(0, "ApplyPowerSign", POWER_SIGN, "", TYPE, "usnnnng"),
    UPDATE_WITH(TWI_HOST_ONLY, "SparseApplyMomentum", MOMENTUM, AT, TYPE INDEX NESTEROV, "usngin"),
    BY_HANDLE(0, "ResourceApplyKerasMomentum", MOMENTUM("resource", ""), TYPE NESTEROV, "usngn"),
    BY_HANDLE(0, "ResourceSparseApplyKerasMomentum", MOMENTUM("resource", AT), TYPE INDEX NESTEROV, "usngin"),
    BY_HANDLE(0, "ResourceApplyAdamWithAmsgrad", AMSGRAD("resource"), TYPE, "usssnnnnnng"),
    {0},
};
