/* scatter_variable.inl - changes at places for one type; see scatter_variable.c. */

#ifdef STORED
#define ELEMENT STORED
#else
#define ELEMENT REAL
#define LOAD
#define STORE
#endif

/* x at a place and y of the updates; a scalar goes into every place. Then the change of rows of a variable, of places in
 * it, and of places in a copy of a tensor. */
#define CHANGE(f, expression)                                                                                          \
    static void NAME(f)(const twi_run *r, void *to, const twi_places *places)                                          \
    {                                                                                                                  \
        bool one = is_scalar(r);                                                                                       \
        for (int64_t i = 0; i < places->count; i++) {                                                                  \
            ELEMENT *at = (ELEMENT *)to + twi_places_offset(r, 1, places, i);                                          \
            const ELEMENT *from = (const ELEMENT *)r->inputs[2] + (one ? 0 : i * places->slice);                       \
            for (int64_t k = 0; k < places->slice; k++) {                                                              \
                REAL x = LOAD(at[k]), y = LOAD(from[one ? 0 : k]);                                                     \
                at[k] = STORE(expression);                                                                             \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static tw_status NAME(rows_##f)(const twi_run *r)                                                                  \
    {                                                                                                                  \
        return change_rows(r, NAME(f));                                                                                \
    }                                                                                                                  \
                                                                                                                       \
    static tw_status NAME(places_##f)(const twi_run *r)                                                                \
    {                                                                                                                  \
        return change_places(r, NAME(f), false);                                                                       \
    }                                                                                                                  \
                                                                                                                       \
    static tw_status NAME(copy_##f)(const twi_run *r)                                                                  \
    {                                                                                                                  \
        return change_places(r, NAME(f), true);                                                                        \
    }

CHANGE(add, ADD(x, y))
CHANGE(sub, SUBTRACT(x, y))
CHANGE(mul, MULTIPLY(x, y))
CHANGE(div, DIVIDE(x, y))
#ifndef PART /* complex numbers have no order */
CHANGE(min, y < x ? y : x)
CHANGE(max, y > x ? y : x)
#endif
#undef CHANGE
#undef ELEMENT
#ifndef STORED
#undef LOAD
#undef STORE
#endif
