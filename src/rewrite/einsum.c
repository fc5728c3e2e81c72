/* einsum.c - products of tensors become products of matrices, which have kernels that are fast.
 *
 * The letters of an Einsum of two tensors are of four kinds: those that both tensors and the result have number
 * matrices, those that both tensors have alone are summed over, and those of one tensor and the result are its rows or
 * columns. So each tensor is transposed until letters of a kind are neighbours, unless they are, and reshaped to
 * [matrices, rows, columns]; the product is shaped and transposed back. Where nothing is summed over, columns and rows
 * of one are multiplied element by element. What one tensor has alone is summed before. An Einsum of one tensor is such
 * a sum and a transposition.
 *
 * Never here:  letters that repeat within a tensor (diagonals), and axes of 1 that meet longer ones. */
#include "device/fused/einsum.h"
#include "rewrite/rewrite.h"

enum { LEAST = 1024 /* products; fewer are as fast in the walk of the plain kernel */ };

typedef twi_einsum_term letters;

/* A tensor, and which letter each of its axes has. */
typedef struct side {
    twi_value value;
    letters axes;
} side;

typedef struct work {
    twi_rewriting *r;
    twi_node *node; /* the Einsum */
    int64_t size[TWI_EINSUM_LABELS];
} work;

static bool is_alike(const letters *a, const letters *b)
{
    return a->rank == b->rank && memcmp(a->labels, b->labels, sizeof *a->labels * (size_t)a->rank) == 0;
}

static bool repeats(const letters *term)
{
    for (int k = 0; k < term->rank; k++)
        for (int i = 0; i < k; i++)
            if (term->labels[k] == term->labels[i])
                return true;
    return false;
}

/* The letters of `term` that both of the others have, or lack, as is asked for. */
static letters choose(const letters *term, const letters *a, bool in_a, const letters *b, bool in_b)
{
    letters chosen = {0};
    for (int k = 0; k < term->rank; k++)
        if (twi_einsum_has(a, term->labels[k]) == in_a && twi_einsum_has(b, term->labels[k]) == in_b)
            chosen.labels[chosen.rank++] = term->labels[k];
    return chosen;
}

static letters join(const letters *a, const letters *b, const letters *c)
{
    const letters *all[] = {a, b, c};
    letters joint = {0};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < all[i]->rank; k++)
            joint.labels[joint.rank++] = all[i]->labels[k];
    return joint;
}

static int64_t elements(const work *w, const letters *term)
{
    int64_t count = 1;
    for (int k = 0; k < term->rank; k++)
        count *= w->size[term->labels[k]];
    return count;
}

/* Sizes of all letters; false: one is not known, is 0, or stands for axes of different sizes. */
static bool find_sizes(work *w, const twi_einsum *e)
{
    for (int i = 0; i < w->node->num_inputs; i++) {
        tw_shape shape = twi_shape(twi_in(w->node, i));
        for (int k = 0; k < shape.rank; k++) {
            int64_t *size = &w->size[e->inputs[i].labels[k]];
            if (shape.dims[k] <= 0 || (*size && *size != shape.dims[k]))
                return false;
            *size = shape.dims[k];
        }
    }
    return true;
}

/* ---- nodes; each makes a value of one, whose node is NULL if the device refuses it or memory has run out ----------
 */

static twi_value make(const work *w, const char *suffix, const char *op, twi_value a, twi_value b, const tw_attr *attrs,
                      int num_attrs)
{
    const twi_value inputs[] = {a, b};
    if (!a.node || !b.node)
        return (twi_value){0};
    return twi_out(twi_rewrite_make(w->r, w->node, suffix, op, inputs, 2, attrs, num_attrs), 0);
}

static twi_value make_numbers(const work *w, const char *suffix, const int64_t *numbers, int count)
{
    tw_tensor *tensor = tw_tensor_create(TW_INT64, TW_SHAPE(count));
    if (tensor && count)
        memcpy(tw_tensor_data(tensor), numbers, sizeof *numbers * (size_t)count);
    twi_node *node = twi_node_constant(w->r->region, w->node, suffix, tensor);
    tw_tensor_release(tensor);
    return (twi_value){node, 0};
}

static twi_value reshape(const work *w, twi_value value, const int64_t *dims, int rank)
{
    return make(w, "/matrices", "Reshape", value, make_numbers(w, "/shape", dims, rank), NULL, 0);
}

/* The side with its axes in the order of `to`, which has the same letters. */
static side transpose(const work *w, side from, const letters *to)
{
    int64_t order[2 * TW_MAX_RANK];
    if (is_alike(&from.axes, to))
        return from;
    for (int k = 0; k < to->rank; k++)
        for (int i = 0; i < from.axes.rank; i++)
            if (from.axes.labels[i] == to->labels[k])
                order[k] = i;
    twi_value permutation = make_numbers(w, "/order", order, to->rank);
    return (side){make(w, "/transposed", "Transpose", from.value, permutation, NULL, 0), *to};
}

/* The side without the axes that nobody else has. */
static side sum_away(const work *w, side from, const letters *others, const letters *output)
{
    letters own = choose(&from.axes, others, false, output, false);
    int64_t axes[2 * TW_MAX_RANK];
    if (own.rank == 0)
        return from;
    side to = {.value = from.value};
    for (int k = 0, count = 0; k < from.axes.rank; k++)
        if (twi_einsum_has(&own, from.axes.labels[k]))
            axes[count++] = k;
        else
            to.axes.labels[to.axes.rank++] = from.axes.labels[k];
    to.value = make(w, "/alone", "Sum", from.value, make_numbers(w, "/axes", axes, own.rank), NULL, 0);
    return to;
}

/* ---- the product --------------------------------------------------------------------------------------------------
 */

/* The side as matrices of rows and columns, transposed (*turned) if its axes lie so. */
static twi_value make_matrices(const work *w, side from, const letters *matrices, const letters *rows,
                               const letters *columns, bool *turned)
{
    letters plain = join(matrices, rows, columns), other = join(matrices, columns, rows);
    int64_t dims[] = {elements(w, matrices), elements(w, rows), elements(w, columns)};
    *turned = !is_alike(&from.axes, &plain) && is_alike(&from.axes, &other);
    if (*turned) {
        int64_t rows_of_it = dims[2];
        dims[2] = dims[1];
        dims[1] = rows_of_it;
    }
    from = transpose(w, from, *turned ? &other : &plain);
    return matrices->rank ? reshape(w, from.value, dims, 3) : reshape(w, from.value, dims + 1, 2);
}

static side multiply(const work *w, side a, side b, const letters *output)
{
    letters matrices = choose(output, &a.axes, true, &b.axes, true),
            sums = choose(&a.axes, &b.axes, true, output, false);
    letters rows = choose(output, &a.axes, true, &b.axes, false),
            columns = choose(output, &a.axes, false, &b.axes, true);
    letters joint = join(&matrices, &rows, &columns);
    bool turn_a, turn_b;
    twi_value left = make_matrices(w, a, &matrices, &rows, &sums, &turn_a);
    twi_value right = make_matrices(w, b, &matrices, &sums, &columns, &turn_b);
    const tw_attr many[] = {tw_attr_bool("adj_x", turn_a), tw_attr_bool("adj_y", turn_b)};
    const tw_attr one[] = {tw_attr_bool("transpose_a", turn_a), tw_attr_bool("transpose_b", turn_b)};
    twi_value product = sums.rank == 0  ? make(w, "/product", "Mul", left, right, NULL, 0)
                        : matrices.rank ? make(w, "/product", "BatchMatMulV2", left, right, many, 2)
                                        : make(w, "/product", "MatMul", left, right, one, 2);
    int64_t dims[2 * TW_MAX_RANK];
    for (int k = 0; k < joint.rank; k++)
        dims[k] = w->size[joint.labels[k]];
    return (side){reshape(w, product, dims, joint.rank), joint};
}

/* Whether the result has the second tensor's own letters before the first's. */
static bool is_swapped(const twi_einsum *e)
{
    const letters *first = &e->inputs[0], *second = &e->inputs[1];
    letters matrices = choose(&e->output, first, true, second, true);
    letters rows = choose(&e->output, first, true, second, false),
            columns = choose(&e->output, first, false, second, true);
    letters swapped = join(&matrices, &columns, &rows);
    return rows.rank && columns.rank && is_alike(&e->output, &swapped);
}

static twi_value make_result(const work *w, const twi_einsum *e)
{
    bool swapped = w->node->num_inputs > 1 && is_swapped(e);
    side result = {twi_in(w->node, swapped), e->inputs[swapped]};
    if (w->node->num_inputs == 1) {
        result = sum_away(w, result, &(letters){0}, &e->output);
    } else {
        side other = {twi_in(w->node, !swapped), e->inputs[!swapped]};
        side left = sum_away(w, result, &other.axes, &e->output), right = sum_away(w, other, &result.axes, &e->output);
        result = multiply(w, left, right, &e->output);
    }
    return transpose(w, result, &e->output).value;
}

/* Narrow numbers are rounded once, as the Einsum's are: what is summed before is not. */
static bool fits(const work *w, const twi_einsum *e)
{
    tw_dtype dtype = twi_dtype(twi_in(w->node, 0));
    const letters *first = &e->inputs[0], *second = &e->inputs[1];
    bool is_narrow = dtype == TW_FLOAT16 || dtype == TW_BFLOAT16;
    int own =
        choose(first, second, false, &e->output, false).rank + choose(second, first, false, &e->output, false).rank;
    letters alone = choose(second, first, false, first, false);
    return !repeats(first) && !repeats(second) && !repeats(&e->output) && (own == 0 || !is_narrow) &&
           elements(w, first) * elements(w, &alone) >= LEAST;
}

static void rewrite(twi_rewriting *r, twi_node *node)
{
    work w = {r, node, {0}};
    twi_einsum e;
    int ranks[2], made = r->region->nodes.count;
    for (int i = 0; i < node->num_inputs && i < 2; i++)
        ranks[i] = twi_shape(twi_in(node, i)).rank;
    if (twi_einsum_read(&e, twi_attr_string(&node->attrs, "equation", ""), node->num_inputs, ranks) ||
        !find_sizes(&w, &e) || !fits(&w, &e))
        return;
    twi_value result = make_result(&w, &e);
    if (!result.node) {
        twi_rewrite_undo(r, made);
        return;
    }
    twi_move_controls(node, result.node);
    twi_replace(twi_out(node, 0), result);
}

tw_status twi_rewrite_einsum(twi_rewriting *r, tw_error *error)
{
    (void)error; /* it is on the region */
    for (int id = 0, count = r->region->nodes.count; id < count; id++)
        if (!r->region->nodes.items[id]->gone && twi_is(r->region->nodes.items[id], TWI_OP_Einsum))
            rewrite(r, r->region->nodes.items[id]);
    return TW_OK;
}
