/* update.h - how updates of variables are called, for who joins them and who computes them. */
#ifndef TWI_UPDATE_H
#define TWI_UPDATE_H

#include <string.h>

/* The inputs of an optimizer's update by letter: v the variable, s a slot, n a number (a scalar), g the gradient. NULL of
 * other ops, gradient descent's among them. */
static inline const char *twi_update_inputs(const char *op)
{
    static const char *const known[][2] = {{"ResourceApplyMomentum", "vsngn"},
                                           {"ResourceApplyAdam", "vssnnnnnng"},
                                           {"ResourceApplyRMSProp", "vssnnnng"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(op, known[i][0]) == 0)
            return known[i][1];
    return NULL;
}

#endif
