/* scatter.c - elements of variables and tensors changed at places that indices say. Changes of whole rows by addition,
 * subtraction and replacement are in state.c, ScatterNd in array.c. */
#include "ops/gradients.h"
#include "ops/rules.h"
#include "ops/types.h"

/* ---- shape rules ------------------------------------------------------------------------------------------- */

/* var [V,...], indices [n...], updates [n...,...] or a scalar. */
static tw_status rows_shape(twi_inference *c)
{
    tw_shape variable = c->inputs[0], wanted = c->inputs[1];
    char text[2][96];
    if (c->num_outputs)
        c->outputs[0] = variable;
    if (variable.rank == 0)
        return TWI_REFUSE(c, "the variable is a scalar and has no rows");
    if (variable.rank < 0 || wanted.rank < 0 || c->inputs[2].rank == 0)
        return TW_OK;
    if (wanted.rank + variable.rank - 1 > TW_MAX_RANK)
        return TWI_REFUSE(c, "updates of rank %d; the highest is %d", wanted.rank + variable.rank - 1, TW_MAX_RANK);
    for (int i = 1; i < variable.rank; i++)
        wanted.dims[wanted.rank++] = variable.dims[i];
    if (!tw_shape_compatible(wanted, c->inputs[2]))
        return TWI_REFUSE(c, "updates have shape %s, not %s", tw_shape_text(wanted, text[0], sizeof text[0]),
                          tw_shape_text(c->inputs[2], text[1], sizeof text[1]));
    return TW_OK;
}

/* array [s_1..s_d,...], indices [n...,d], updates [n...,...] */
static tw_status places_shape(twi_inference *c)
{
    tw_shape array = c->inputs[0], wanted = c->inputs[1];
    tw_status status = twi_expect_rank_at_least(c, 1, 1);
    char text[2][96];
    if (c->num_outputs)
        c->outputs[0] = array;
    if (status != TW_OK || array.rank < 0 || wanted.rank < 0 || wanted.dims[wanted.rank - 1] < 0)
        return status;
    int64_t depth = wanted.dims[--wanted.rank];
    if (depth > array.rank || wanted.rank + array.rank - depth > TW_MAX_RANK)
        return TWI_REFUSE(c, "indices %s do not fit %s", tw_shape_text(c->inputs[1], text[0], sizeof text[0]),
                          tw_shape_text(array, text[1], sizeof text[1]));
    for (int i = (int)depth; i < array.rank; i++)
        wanted.dims[wanted.rank++] = array.dims[i];
    if (!tw_shape_compatible(wanted, c->inputs[2]))
        return TWI_REFUSE(c, "updates have shape %s, not %s", tw_shape_text(wanted, text[0], sizeof text[0]),
                          tw_shape_text(c->inputs[2], text[1], sizeof text[1]));
    return TW_OK;
}

/* The part has the shape of its value: what it lies in keeps its own. */
static tw_status assign_part_shape(twi_inference *c)
{
    if (c->num_outputs)
        c->outputs[0] = c->inputs[0];
    return TW_OK;
}

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

static void add_gradient(twi_gradient *g)
{
    g->dx[0] = DY(0);
    g->dx[2] = tw_gather_nd(G, DY(0), X(1));
}

static void sub_gradient(twi_gradient *g)
{
    g->dx[0] = DY(0);
    g->dx[2] = tw_neg(G, tw_gather_nd(G, DY(0), X(1)));
}

static void update_gradient(twi_gradient *g)
{
    tw_output zeros = tw_zeros_like(G, X(2));
    g->dx[0] = twi_build(G, "TensorScatterUpdate", TWI_INPUTS(DY(0), X(1), zeros), TWI_NO_ATTRS);
    g->dx[2] = tw_gather_nd(G, DY(0), X(1));
}

/* Of equals each has its part. */
static void extreme_gradient(twi_gradient *g)
{
    tw_dtype dtype = tw_output_dtype(X(0));
    tw_output kept = tw_cast(G, tw_equal(G, X(0), Y(0)), dtype);
    tw_output came = tw_cast(G, tw_equal(G, X(2), tw_gather_nd(G, Y(0), X(1))), dtype);
    tw_output count = twi_build(G, "TensorScatterAdd", TWI_INPUTS(kept, X(1), came), TWI_NO_ATTRS);
    g->dx[0] = tw_div(G, tw_mul(G, DY(0), kept), count);
    g->dx[2] = tw_mul(G, tw_gather_nd(G, tw_div(G, DY(0), count), X(1)), came);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define NUMBERS "{" TWI_REALS "}"
#define ADDED "{" TWI_NUMBERS "}"
#define ORDERED "{half,bfloat16,float,double,int32,int64}"
#define INDEX "; Tindices:{int32,int64}"
#define ROWS(name, types, resource_types)                                                                              \
    {"Resource" name,                                                                                                  \
     "resource:resource, indices:Tindices, updates:dtype",                                                             \
     "",                                                                                                               \
     "dtype:" resource_types INDEX,                                                                                    \
     rows_shape,                                                                                                       \
     NULL,                                                                                                             \
     TWI_STATEFUL,                                                                                                     \
     "ui."},                                                                                                           \
    {                                                                                                                  \
        name, "ref:Ref(T), indices:Tindices, updates:T", "output_ref:Ref(T)",                                          \
            "T:" types INDEX "; use_locking:bool=false", rows_shape, twi_not_differentiable, 0, "ui.",                 \
            .planned_as = "Resource" name                                                                              \
    }
#define PLACES(name, types, locks)                                                                                     \
    {"Resource" name,                                                                                                  \
     "ref:resource, indices:Tindices, updates:T",                                                                      \
     "",                                                                                                               \
     "T:type" INDEX "; use_locking:bool=true",                                                                         \
     places_shape,                                                                                                     \
     NULL,                                                                                                             \
     TWI_STATEFUL,                                                                                                     \
     "u.."},                                                                                                           \
    {                                                                                                                  \
        name, "ref:Ref(T), indices:Tindices, updates:T", "output_ref:Ref(T)", "T:" types INDEX "; use_locking:" locks, \
            places_shape, twi_not_differentiable, 0, "u..", .planned_as = "Resource" name                              \
    }
#define COPY(name, types, gradient)                                                                                    \
    {                                                                                                                  \
        name, "tensor:T, indices:Tindices, updates:T", "output:T", "T:" types INDEX, places_shape, gradient            \
    }

#define MASKS                                                                                                          \
    "T:type; Index:{int32,int64}; begin_mask:int=0; end_mask:int=0; ellipsis_mask:int=0; new_axis_mask:int=0; "        \
    "shrink_axis_mask:int=0"

const twi_op twi_scatter_ops[] = {
    ROWS("ScatterMul", ADDED, ADDED),
    ROWS("ScatterDiv", ADDED, ADDED),
    ROWS("ScatterMin", ORDERED, NUMBERS),
    ROWS("ScatterMax", ORDERED, NUMBERS),
    PLACES("ScatterNdUpdate", "type", "bool=true"),
    PLACES("ScatterNdAdd", ADDED, "bool=false"),
    PLACES("ScatterNdSub", ADDED, "bool=false"),
    PLACES("ScatterNdMax", NUMBERS, "bool=false"),
    PLACES("ScatterNdMin", NUMBERS, "bool=false"),
    COPY("TensorScatterUpdate", "type", update_gradient),
    COPY("TensorScatterAdd", "type", add_gradient),
    COPY("TensorScatterSub", "type", sub_gradient),
    COPY("TensorScatterMax", NUMBERS, extreme_gradient),
    COPY("TensorScatterMin", NUMBERS, extreme_gradient),
    {"ScatterNdNonAliasingAdd", "input:T, indices:Tindices, updates:T", "output:T", "T:" ADDED INDEX, places_shape,
     add_gradient},
    {"TensorStridedSliceUpdate", "input:T, begin:Index, end:Index, strides:Index, value:T", "output:T", MASKS,
     twi_shape_same, twi_gradient_strided_slice_update},
    {"ResourceStridedSliceAssign", "ref:resource, begin:Index, end:Index, strides:Index, value:T", "", MASKS,
     assign_part_shape, NULL, TWI_STATEFUL, "u...."},
    {"StridedSliceAssign", "ref:Ref(T), begin:Index, end:Index, strides:Index, value:T", "output_ref:Ref(T)", MASKS,
     assign_part_shape, twi_not_differentiable, 0, "u....", .planned_as = "ResourceStridedSliceAssign"},
    {0},
};
