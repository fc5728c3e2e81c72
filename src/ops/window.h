/* window.h - attributes of convolutions and pools, as builders write them. */
#ifndef TWI_OPS_WINDOW_H
#define TWI_OPS_WINDOW_H

#include "ops/build.h"

#include <tower/nn.h>

/* {1, vertical, horizontal, 1} of an option's pair. */
static inline void twi_four(const int pair[2], int fallback, int64_t four[4])
{
    four[0] = four[3] = 1;
    four[1] = pair[0] ? pair[0] : fallback;
    four[2] = pair[1] ? pair[1] : four[1];
}

/* Writes "padding" and, if it is explicit, "explicit_paddings" (whose numbers go to `eight`); returns how many. */
static inline int twi_padding_attrs(tw_padding padding, const int sides[4], int64_t eight[8], tw_attr attrs[2])
{
    static const char *const names[] = {"SAME", "VALID", "EXPLICIT"}; /* ORDER PADDING: tw_padding */
    attrs[0] = tw_attr_string("padding", names[padding]);
    if (padding != TW_PADDING_EXPLICIT)
        return 1;
    for (int i = 0; i < 8; i++)
        eight[i] = i < 2 || i > 5 ? 0 : sides[i - 2];
    attrs[1] = tw_attr_ints("explicit_paddings", eight, 8);
    return 2;
}

#endif
