/* state.c - variables and what changes them: handles, reads, assignments, optimizer updates.
 * Lives here:  signatures, shape rules, gradients and builders.
 * Never here:  making variables by name (graph/variables.c), optimizers (src/train). */
#include "graph/graph.h"
#include "ops/types.h"

#include <tower/ops.h>

/* ---- shape rules ------------------------------------------------------------------------------------------- */

/* Numbers are scalars, all else has the shape of the variable, input 0. Outputs, if any, are the variable. */
static tw_status update_shape(twi_inference *c)
{
    tw_shape shape = c->inputs[0];
    for (int i = 0; i < c->num_inputs; i++) {
        char text[2][96];
        if (twi_op_role(c->op, c->attrs, i) == 'n') {
            if (!tw_shape_compatible(c->inputs[i], TW_SCALAR))
                return twi_fail(c->error, TW_INVALID_ARGUMENT, "input %d is a scalar, not %s", i,
                                tw_shape_text(c->inputs[i], text[0], sizeof text[0]));
        } else if (twi_merge_shapes(shape, c->inputs[i], &shape, NULL) != TW_OK) {
            return twi_fail(c->error, TW_INVALID_ARGUMENT, "the variable has shape %s, but input %d has shape %s",
                            tw_shape_text(c->inputs[0], text[0], sizeof text[0]), i,
                            tw_shape_text(c->inputs[i], text[1], sizeof text[1]));
        }
    }
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = shape;
    return TW_OK;
}

/* var [V,...], indices [n...], updates [n...,...]; an output, if there is one, is the variable. */
static tw_status scatter_shape(twi_inference *c)
{
    char text[3][96];
    tw_shape variable = c->inputs[0], wanted = c->inputs[1];
    if (c->num_outputs)
        c->outputs[0] = variable;
    if (variable.rank == 0)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "the variable is a scalar and has no rows");
    if (variable.rank < 0 || wanted.rank < 0 || c->inputs[2].rank == 0) /* a scalar goes into every place */
        return TW_OK;
    if (wanted.rank + variable.rank - 1 > TW_MAX_RANK)
        return twi_fail(c->error, TW_UNIMPLEMENTED, "updates of rank %d; the highest is %d",
                        wanted.rank + variable.rank - 1, TW_MAX_RANK);
    for (int i = 1; i < variable.rank; i++)
        wanted.dims[wanted.rank++] = variable.dims[i];
    if (!tw_shape_compatible(wanted, c->inputs[2]))
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "rows of a variable %s at indices %s: updates have shape %s",
                        tw_shape_text(variable, text[0], sizeof text[0]),
                        tw_shape_text(c->inputs[1], text[1], sizeof text[1]),
                        tw_shape_text(c->inputs[2], text[2], sizeof text[2]));
    return TW_OK;
}

static tw_status variable_shape_shape(twi_inference *c)
{
    int rank = c->inputs[0].rank;
    c->outputs[0] = rank < 0 ? (tw_shape){1, {-1}} : (tw_shape){1, {rank}};
    return TW_OK;
}

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

/* The gradient of a read is the gradient of what was read. */
static void read_gradient(twi_gradient *g)
{
    g->dx[0] = g->dy[0];
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define ADDED "{" TWI_NUMBERS "}"
#define REF_VARIABLE "shape:shape; dtype:type; container:string=; shared_name:string="

const twi_op twi_state_ops[] = {
    {"VarHandleOp", "", "resource:resource",
     "container:string=; shared_name:string=; debug_name:string=; dtype:type; shape:shape; allowed_devices:strings=[]",
     twi_shape_from_attr, NULL, TWI_STATEFUL, .makes = TWI_MAKES_VARIABLE},
    {"ReadVariableOp", "resource:resource", "value:dtype", "dtype:type", twi_shape_same, read_gradient,
     TWI_STATEFUL | TWI_READ, "r"},
    {"VarIsInitializedOp", "resource:resource", "is_initialized:bool", "", twi_shape_scalar, twi_not_differentiable,
     TWI_STATEFUL, "h"},
    {"DisableCopyOnRead", "resource:resource", "", "", twi_shape_unknown, NULL, TWI_STATEFUL, "h",
     .planned_as = "NoOp"},
    /* here alone the value ends to be there: no run may read it before another one has assigned it anew */
    {"DestroyResourceOp", "resource:resource", "", "ignore_lookup_error:bool=true", twi_shape_unknown, NULL,
     TWI_STATEFUL | TWI_HOST_ONLY, "h"},
    {"VariableShape", "input:resource", "output:out_type", "out_type:{int32,int64}=int32", variable_shape_shape,
     twi_not_differentiable, TWI_METADATA, "h"},
    {"AssignVariableOp", "resource:resource, value:dtype", "", "dtype:type; validate_shape:bool=false", update_shape,
     NULL, TWI_STATEFUL, "w."},
    {"AssignAddVariableOp", "resource:resource, value:dtype", "", "dtype:type", update_shape, NULL, TWI_STATEFUL, "u."},
    {"AssignSubVariableOp", "resource:resource, value:dtype", "", "dtype:type", update_shape, NULL, TWI_STATEFUL, "u."},
    {"ResourceScatterAdd", "resource:resource, indices:Tindices, updates:dtype", "",
     "dtype:" ADDED "; Tindices:{int32,int64}", scatter_shape, NULL, TWI_STATEFUL, "ui."},
    {"ResourceScatterSub", "resource:resource, indices:Tindices, updates:dtype", "",
     "dtype:" ADDED "; Tindices:{int32,int64}", scatter_shape, NULL, TWI_STATEFUL, "ui."},
    {"ResourceScatterUpdate", "resource:resource, indices:Tindices, updates:dtype", "",
     "dtype:type; Tindices:{int32,int64}", scatter_shape, NULL, TWI_STATEFUL, "ui."},
    {"ResourceCountUpTo", "resource:resource", "output:T", "limit:int; T:{int32,int64}", twi_shape_scalar,
     twi_not_differentiable, TWI_STATEFUL, "u"},

    {"ResourceApplyGradientDescent", "var:resource, alpha:T, delta:T", "", "T:" ADDED "; use_locking:bool=false",
     update_shape, NULL, TWI_STATEFUL, "ung"},
    {"ResourceApplyMomentum", "var:resource, accum:resource, lr:T, grad:T, momentum:T", "",
     "T:" ADDED "; use_locking:bool=false; use_nesterov:bool=false", update_shape, NULL, TWI_STATEFUL, "usngn"},
    {"ResourceApplyAdam",
     "var:resource, m:resource, v:resource, beta1_power:T, beta2_power:T, lr:T, beta1:T, beta2:T, epsilon:T, grad:T",
     "", "T:" ADDED "; use_locking:bool=false; use_nesterov:bool=false", update_shape, NULL, TWI_STATEFUL,
     "ussnnnnnng"},
    {"ResourceApplyRMSProp", "var:resource, ms:resource, mom:resource, lr:T, rho:T, momentum:T, epsilon:T, grad:T", "",
     "T:" ADDED "; use_locking:bool=false", update_shape, NULL, TWI_STATEFUL, "ussnnnng"},

    /* Reference variables of old graphs. A Ref output is the variable itself, not a copy. */
    {"VariableV2", "", "ref:Ref(dtype)", REF_VARIABLE, twi_shape_from_attr, NULL, TWI_STATEFUL,
     .makes = TWI_MAKES_VARIABLE, .planned_as = "VarHandleOp"},
    {"Variable", "", "ref:Ref(dtype)", REF_VARIABLE, twi_shape_from_attr, NULL, TWI_STATEFUL,
     .makes = TWI_MAKES_VARIABLE, .planned_as = "VarHandleOp"},
    {"IsVariableInitialized", "ref:Ref(dtype)", "is_initialized:bool", "dtype:type", twi_shape_scalar,
     twi_not_differentiable, 0, "h", .planned_as = "VarIsInitializedOp"},
    {"Assign", "ref:Ref(T), value:T", "output_ref:Ref(T)", "T:type; validate_shape:bool=true; use_locking:bool=true",
     update_shape, twi_not_differentiable, 0, "w.", .planned_as = "AssignVariableOp"},
    {"AssignAdd", "ref:Ref(T), value:T", "output_ref:Ref(T)", "T:" ADDED "; use_locking:bool=false", update_shape,
     twi_not_differentiable, 0, "u.", .planned_as = "AssignAddVariableOp"},
    {"AssignSub", "ref:Ref(T), value:T", "output_ref:Ref(T)", "T:" ADDED "; use_locking:bool=false", update_shape,
     twi_not_differentiable, 0, "u.", .planned_as = "AssignSubVariableOp"},
    {"ScatterAdd", "ref:Ref(T), indices:Tindices, updates:T", "output_ref:Ref(T)",
     "T:" ADDED "; Tindices:{int32,int64}; use_locking:bool=false", scatter_shape, twi_not_differentiable, 0, "ui.",
     .planned_as = "ResourceScatterAdd"},
    {"ScatterSub", "ref:Ref(T), indices:Tindices, updates:T", "output_ref:Ref(T)",
     "T:" ADDED "; Tindices:{int32,int64}; use_locking:bool=false", scatter_shape, twi_not_differentiable, 0, "ui.",
     .planned_as = "ResourceScatterSub"},
    {"ScatterUpdate", "ref:Ref(T), indices:Tindices, updates:T", "output_ref:Ref(T)",
     "T:type; Tindices:{int32,int64}; use_locking:bool=true", scatter_shape, twi_not_differentiable, 0, "ui.",
     .planned_as = "ResourceScatterUpdate"},
    {"CountUpTo", "ref:Ref(T)", "output:T", "limit:int; T:{int32,int64}", twi_shape_scalar, twi_not_differentiable,
     TWI_STATEFUL, "u", .planned_as = "ResourceCountUpTo"},
    {"ApplyGradientDescent", "var:Ref(T), alpha:T, delta:T", "out:Ref(T)", "T:" ADDED "; use_locking:bool=false",
     update_shape, NULL, 0, "ung", .planned_as = "ResourceApplyGradientDescent"},
    {"ApplyMomentum", "var:Ref(T), accum:Ref(T), lr:T, grad:T, momentum:T", "out:Ref(T)",
     "T:" ADDED "; use_locking:bool=false; use_nesterov:bool=false", update_shape, NULL, 0, "usngn",
     .planned_as = "ResourceApplyMomentum"},
    {"ApplyAdam",
     "var:Ref(T), m:Ref(T), v:Ref(T), beta1_power:T, beta2_power:T, lr:T, beta1:T, beta2:T, epsilon:T, grad:T",
     "out:Ref(T)", "T:" ADDED "; use_locking:bool=false; use_nesterov:bool=false", update_shape, NULL, 0, "ussnnnnnng",
     .planned_as = "ResourceApplyAdam"},
    {"ApplyRMSProp", "var:Ref(T), ms:Ref(T), mom:Ref(T), lr:T, rho:T, momentum:T, epsilon:T, grad:T", "out:Ref(T)",
     "T:" ADDED "; use_locking:bool=false", update_shape, NULL, 0, "ussnnnng", .planned_as = "ResourceApplyRMSProp"},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

static tw_output add(tw_graph *graph, const char *op, const tw_output *inputs, int num_inputs, const tw_attr *attrs,
                     int num_attrs)
{
    return tw_node_output(tw_add_node(graph, op, NULL, inputs, num_inputs, attrs, num_attrs), 0);
}

/* An op on a handle that has to be told the type of the variable behind it. */
static tw_output add_typed(tw_graph *graph, const char *op, const tw_output *inputs, int num_inputs)
{
    tw_node *handle = inputs[0].node;
    tw_dtype dtype = handle ? twi_attr_type(&handle->attrs, "dtype") : TW_INVALID_DTYPE;
    return add(graph, op, inputs, num_inputs, (tw_attr[]){tw_attr_type("dtype", dtype)}, 1);
}

tw_output tw_read_variable(tw_graph *graph, tw_output handle)
{
    return add_typed(graph, "ReadVariableOp", &handle, 1);
}

tw_output tw_assign(tw_graph *graph, tw_output handle, tw_output value)
{
    return add_typed(graph, "AssignVariableOp", (tw_output[]){handle, value}, 2);
}

tw_output tw_assign_add(tw_graph *graph, tw_output handle, tw_output value)
{
    return add_typed(graph, "AssignAddVariableOp", (tw_output[]){handle, value}, 2);
}

tw_output tw_assign_sub(tw_graph *graph, tw_output handle, tw_output value)
{
    return add_typed(graph, "AssignSubVariableOp", (tw_output[]){handle, value}, 2);
}

tw_output tw_count_up_to(tw_graph *graph, tw_output handle, int64_t limit)
{
    tw_dtype dtype = handle.node ? twi_attr_type(&handle.node->attrs, "dtype") : TW_INVALID_DTYPE;
    return add(graph, "ResourceCountUpTo", &handle, 1,
               (tw_attr[]){tw_attr_int("limit", limit), tw_attr_type("T", dtype)}, 2);
}

tw_output tw_is_initialized(tw_graph *graph, tw_output handle)
{
    return add(graph, "VarIsInitializedOp", &handle, 1, NULL, 0);
}

tw_output tw_variable_shape(tw_graph *graph, tw_output handle)
{
    return add(graph, "VariableShape", &handle, 1, NULL, 0);
}

tw_output tw_apply_gradient_descent(tw_graph *graph, tw_output handle, tw_output rate, tw_output gradient)
{
    return add(graph, "ResourceApplyGradientDescent", (tw_output[]){handle, rate, gradient}, 3, NULL, 0);
}

tw_output tw_scatter_sub(tw_graph *graph, tw_output handle, tw_output indices, tw_output updates)
{
    return add(graph, "ResourceScatterSub", (tw_output[]){handle, indices, updates}, 3, NULL, 0);
}

tw_output tw_apply_momentum(tw_graph *graph, tw_output handle, tw_output accumulator, tw_output rate,
                            tw_output gradient, tw_output momentum, bool nesterov)
{
    return add(graph, "ResourceApplyMomentum", (tw_output[]){handle, accumulator, rate, gradient, momentum}, 5,
               (tw_attr[]){tw_attr_bool("use_nesterov", nesterov)}, 1);
}

tw_output tw_apply_adam(tw_graph *graph, tw_output handle, tw_output m, tw_output v, tw_output beta1_power,
                        tw_output beta2_power, tw_output rate, tw_output beta1, tw_output beta2, tw_output epsilon,
                        tw_output gradient)
{
    tw_output inputs[] = {handle, m, v, beta1_power, beta2_power, rate, beta1, beta2, epsilon, gradient};
    return add(graph, "ResourceApplyAdam", inputs, 10, NULL, 0);
}

tw_output tw_apply_rms_prop(tw_graph *graph, tw_output handle, tw_output mean_square, tw_output momentum_slot,
                            tw_output rate, tw_output decay, tw_output momentum, tw_output epsilon, tw_output gradient)
{
    tw_output inputs[] = {handle, mean_square, momentum_slot, rate, decay, momentum, epsilon, gradient};
    return add(graph, "ResourceApplyRMSProp", inputs, 8, NULL, 0);
}
