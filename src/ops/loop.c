/* loop.c - loops, as TensorFlow 1 writes them: a frame between Enter and Exit, whose values go round by NextIteration.
 *
 * In a plan a frame is one node, _While, which runs a plan of its own again and again (plan/frames.h). */
#include "graph/op.h"

static tw_status loop_cond_shape(twi_inference *c)
{
    c->outputs[0] = TW_SCALAR;
    return twi_expect_rank(c, 0, 0);
}

static tw_status while_shape(twi_inference *c)
{
    const twi_attr *shapes = twi_attr_find(c->attrs, "shapes");
    for (int i = 0; i < c->num_outputs && shapes && i < shapes->count; i++)
        c->outputs[i] = shapes->shapes[i];
    return TW_OK;
}

#define ENTER "T:type; frame_name:string; is_constant:bool=false; parallel_iterations:int=10"
#define PASSED(flag) (flag) | TWI_UNBOUND

const twi_op twi_loop_ops[] = {
    {"Enter", "data:T", "output:T", ENTER, twi_shape_same, NULL, PASSED(TWI_ENTER), .planned_as = "Identity"},
    {"RefEnter", "data:Ref(T)", "output:Ref(T)", ENTER, twi_shape_same, NULL, PASSED(TWI_ENTER), "h",
     .planned_as = "NoOp"},
    {"Exit", "data:T", "output:T", "T:type", twi_shape_same, NULL, PASSED(TWI_EXIT), .planned_as = "Identity"},
    {"RefExit", "data:Ref(T)", "output:Ref(T)", "T:type", twi_shape_same, NULL, PASSED(TWI_EXIT), "h",
     .planned_as = "NoOp"},
    {"NextIteration", "data:T", "output:T", "T:type", twi_shape_same, NULL, PASSED(TWI_NEXT), .planned_as = "Identity"},
    {"RefNextIteration", "data:Ref(T)", "output:Ref(T)", "T:type", twi_shape_same, NULL, PASSED(TWI_NEXT), "h",
     .planned_as = "NoOp"},
    {"LoopCond", "input:bool", "output:bool", "", loop_cond_shape, NULL, TWI_LOOP_COND | TWI_PASSES,
     .planned_as = "Identity"},

    /* Made by the planner. `values` are those that the loop begins with, then those that do not change in it; `changes`
     * the variables that it writes. */
    {"_While", "values:T, changes:N*resource", "results:U", "T:types; U:types; N:int; shapes:shapes", while_shape, NULL,
     TWI_STATEFUL | TWI_REWRITTEN | TWI_LOOP | TWI_UNBOUND | TWI_MAKES_SHAPE, ".u"},
    {0},
};
