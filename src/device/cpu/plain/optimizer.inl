/* optimizer.inl - updates of one element for one type; see optimizer.c. STORED is how a variable keeps it, REAL what it
 * is computed in. Each gets the update's numbers n, the variable v, its slots s and the gradient g. */

typedef void NAME(element)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g);

static inline REAL NAME(sign_of)(REAL x)
{
    return x != x ? x : (REAL)((x > 0) - (x < 0));
}

/* Towards zero, not past it. */
static inline REAL NAME(shrink)(REAL x, REAL by)
{
    return NAME(sign_of)(x) * (REAL)fmax(fabs(x) - by, 0);
}

static inline void NAME(adagrad)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    s[0] += u->updates_slots ? g * g : 0;
    *v -= g * n[0] / sqrt(s[0]);
}

static inline void NAME(adagrad_2)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    s[0] += u->updates_slots ? g * g : 0;
    *v -= g * n[0] / (sqrt(s[0]) + n[1]);
}

/* lr, l1, l2, step */
static inline void NAME(adagrad_da)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    (void)u;
    s[0] += g;
    s[1] += g * g;
    REAL sum = n[1] > 0 ? NAME(shrink)(s[0], n[1] * n[3]) : s[0];
    *v = -n[0] * sum / (n[2] * n[3] * n[0] + sqrt(s[1]));
}

/* lr, rho, epsilon */
static inline void NAME(adadelta)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    (void)u;
    s[0] = s[0] * n[1] + g * g * (1 - n[1]);
    REAL step = sqrt(s[1] + n[2]) / sqrt(s[0] + n[2]) * g;
    *v -= step * n[0];
    s[1] = s[1] * n[1] + step * step * (1 - n[1]);
}

/* x to the power of minus lr_power */
static inline REAL NAME(to_power)(REAL x, REAL power)
{
    return power == (REAL)-0.5 ? sqrt(x) : pow(x, -power);
}

/* lr, l1, l2, l2_shrinkage, lr_power. Shrinkage is no part of what is accumulated. */
static inline void NAME(ftrl_2)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    REAL before = NAME(to_power)(s[0], n[4]), after = NAME(to_power)(s[0] + g * g, n[4]);
    REAL shrunk = g + 2 * n[3] * *v;
    REAL rate = u->multiplies ? 1 : n[0], linear_rate = u->multiplies ? n[0] : 1; /* the same, but for a factor */
    s[1] += shrunk * linear_rate - (after - before) / rate * *v;
    REAL least = n[1] * linear_rate, scale = after / rate + 2 * n[2] * linear_rate;
    *v = fabs(s[1]) > least ? (least * NAME(sign_of)(s[1]) - s[1]) / scale : 0;
    s[0] += g * g;
}

static inline void NAME(ftrl)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    const REAL numbers[] = {n[0], n[1], n[2], 0, n[3]};
    NAME(ftrl_2)(u, numbers, v, s, g);
}

/* lr, rho, momentum, epsilon */
static inline void NAME(rms_prop)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    (void)u;
    s[0] = s[0] * n[1] + g * g * (1 - n[1]);
    s[1] = s[1] * n[2] + n[0] * g / sqrt(s[0] + n[3]);
    *v -= s[1];
}

static inline void NAME(centered)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    (void)u;
    s[1] += (g * g - s[1]) * (1 - n[1]);
    s[0] += (g - s[0]) * (1 - n[1]);
    s[2] = s[2] * n[2] + g * n[0] / sqrt(s[1] - s[0] * s[0] + n[3]);
    *v -= s[2];
}

/* alpha, l1, l2 */
static inline void NAME(proximal)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    (void)u, (void)s;
    REAL moved = *v - g * n[0];
    *v = (n[1] > 0 ? NAME(shrink)(moved, n[0] * n[1]) : moved) / (1 + n[2] * n[0]);
}

/* lr, l1, l2 */
static inline void NAME(proximal_adagrad)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    s[0] += g * g;
    const REAL numbers[] = {n[0] / sqrt(s[0]), n[1], n[2]};
    NAME(proximal)(u, numbers, v, s, g);
}

/* beta1_power, lr, beta1, beta2, epsilon */
static inline void NAME(ada_max)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    (void)u;
    s[0] += (g - s[0]) * (1 - n[2]);
    s[1] = fmax(n[3] * s[1], fabs(g));
    *v -= n[1] / (1 - n[0]) * (s[0] / (s[1] + n[4]));
}

/* lr, alpha, sign_decay, beta */
static inline void NAME(add_sign)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    (void)u;
    s[0] = s[0] * n[3] + g * (1 - n[3]);
    *v -= n[0] * (n[1] + n[2] * NAME(sign_of)(g) * NAME(sign_of)(s[0])) * g;
}

static inline void NAME(power_sign)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    (void)u;
    s[0] = s[0] * n[3] + g * (1 - n[3]);
    *v -= n[0] * exp(n[1] * n[2] * NAME(sign_of)(g) * NAME(sign_of)(s[0])) * g;
}

/* lr, momentum */
static inline void NAME(momentum)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    s[0] = s[0] * n[1] + g;
    *v -= u->nesterov ? g * n[0] + s[0] * n[1] * n[0] : s[0] * n[0];
}

static inline void NAME(keras_momentum)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    s[0] = s[0] * n[1] - g * n[0];
    *v += u->nesterov ? s[0] * n[1] - g * n[0] : s[0];
}

/* beta1_power, beta2_power, lr, beta1, beta2, epsilon */
static inline void NAME(amsgrad)(const layout *u, const REAL *n, REAL *v, REAL *s, REAL g)
{
    (void)u;
    s[0] += (g - s[0]) * (1 - n[3]);
    s[1] += (g * g - s[1]) * (1 - n[4]);
    s[2] = fmax(s[2], s[1]);
    *v -= s[0] * (n[2] * sqrt(1 - n[1]) / (1 - n[0])) / (sqrt(s[2]) + n[5]);
}

/* ---- all elements ----------------------------------------------------------------------------------------------- */

static inline void NAME(step)(const layout *u, const REAL *n, STORED *v, STORED *const s[MOST_SLOTS], int64_t at,
                              STORED gradient, NAME(element) f)
{
    REAL value = LOAD(v[at]), slots[MOST_SLOTS] = {0};
    for (int k = 0; k < u->num_slots; k++)
        slots[k] = LOAD(s[k][at]);
    f(u, n, &value, slots, LOAD(gradient));
    for (int k = 0; k < u->num_slots; k++)
        s[k][at] = STORE(slots[k]);
    v[at] = STORE(value);
}

/* `count` elements from v[at] on by gradients that lie side by side. Copies are what no store can change. */
typedef void NAME(span)(layout u, const REAL *numbers, STORED *v, STORED *const slots[MOST_SLOTS], int64_t at,
                        const STORED *g, int64_t count);

#define SPAN(op, roles, f)                                                                                             \
    static void NAME(span_##f)(layout u, const REAL *numbers, STORED *v, STORED *const slots[MOST_SLOTS], int64_t at,  \
                               const STORED *g, int64_t count)                                                         \
    {                                                                                                                  \
        REAL n[MOST_NUMBERS];                                                                                          \
        STORED *s[MOST_SLOTS];                                                                                         \
        memcpy(n, numbers, sizeof n);                                                                                  \
        memcpy(s, slots, sizeof s);                                                                                    \
        TWI_VECTOR_LOOP                                                                                                \
        for (int64_t i = 0; i < count; i++)                                                                            \
            NAME(step)(&u, n, v, s, at + i, g[i], NAME(f));                                                            \
    }
RULES(SPAN)
#undef SPAN

/* In the order of the rules. */
static NAME(span) *const NAME(spans)[] = {
#define SPAN(op, roles, f) NAME(span_##f),
    RULES(SPAN)
#undef SPAN
};

/* A rate that the rule only multiplies with may be 0. */
static tw_status NAME(check_numbers)(const twi_run *r, const layout *u, const REAL *n)
{
    for (int k = 0; u->bounds[k]; k++) {
        bool above = u->bounds[k] != '-', may_be_zero = u->bounds[k] != '+' || u->multiplies;
        if ((above ? n[k] > 0 : n[k] < 0) || (may_be_zero && n[k] == 0))
            continue;
        const char *asked = !above ? "not more than" : may_be_zero ? "not less than" : "more than";
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': input %d is %g, expected %s 0", r->node, u->numbers[k],
                        (double)n[k], asked);
    }
    return TW_OK;
}

/* Rows are updated one after the other, since one may be named twice; elements of a whole gradient by the team. */
static tw_status NAME(update)(const twi_run *r)
{
    const layout *u = r->state;
    NAME(span) *update = NAME(spans)[u->rule];
    STORED *v = (STORED *)r->inputs[0], *s[MOST_SLOTS] = {NULL};
    const STORED *g = r->inputs[u->gradient];
    REAL n[MOST_NUMBERS] = {0};
    int64_t count = r->input_operands[u->gradient].elements;
    for (int k = 0; k < u->num_slots; k++)
        s[k] = (STORED *)r->inputs[u->slots[k]];
    for (int k = 0; k < u->num_numbers; k++)
        n[k] = r->input_operands[u->numbers[k]].dtype == TW_INT64 ? (REAL) * (const int64_t *)r->inputs[u->numbers[k]]
                                                                  : LOAD(*(const STORED *)r->inputs[u->numbers[k]]);
    tw_status status = NAME(check_numbers)(r, u, n);
    if (status != TW_OK)
        return status;
    if (u->indices < 0) {
        TWI_PARALLEL_ELEMENTS_LOOP(r, count)
        for (int64_t i = 0; i < count; i += SPAN_ELEMENTS)
            update(*u, n, v, s, i, g + i, count - i < SPAN_ELEMENTS ? count - i : SPAN_ELEMENTS);
        return TW_OK;
    }
    int64_t rows = r->input_operands[u->indices].elements, row = rows ? count / rows : 0;
    for (int64_t i = 0; i < rows; i++)
        update(*u, n, v, s, twi_input_int(r, u->indices, i) * row, g + i * row, row);
    return TW_OK;
}
