/* einsum.c - Einsum: sums of products of one or two tensors, whose axes have letters. "ij,jk->ik" is a matrix product;
 * "..." stands for axes that broadcast. How an equation is read is in device/fused/einsum.h. */
#include "device/fused/einsum.h"
#include "ops/rules.h"

/* In TensorFlow's words. */
static tw_status refuse_dim(twi_inference *c, int input, int axis, int64_t expected)
{
    char text[256];
    return TWI_REFUSE(c, "Expected dimension %lld at axis %d of the input shaped %s but got dimension %lld",
                      (long long)expected, axis, tw_shape_text(c->inputs[input], text, sizeof text),
                      (long long)c->inputs[input].dims[axis]);
}

static tw_status einsum_shape(twi_inference *c)
{
    twi_einsum e;
    int ranks[2];
    for (int i = 0; i < c->num_inputs; i++) {
        if (i < 2)
            ranks[i] = c->inputs[i].rank;
        if (c->inputs[i].rank < 0)
            return TW_OK;
    }
    const char *why = twi_einsum_read(&e, twi_attr_string(c->attrs, "equation", ""), c->num_inputs, ranks);
    if (why)
        return TWI_REFUSE(c, "equation \"%s\": %s", twi_attr_string(c->attrs, "equation", ""), why);
    int64_t sizes[TWI_EINSUM_LABELS];
    for (int i = 0; i < TWI_EINSUM_LABELS; i++)
        sizes[i] = 1;
    for (int i = 0; i < c->num_inputs; i++)
        for (int k = 0; k < c->inputs[i].rank; k++) {
            int label = e.inputs[i].labels[k];
            int64_t dim = c->inputs[i].dims[k];
            if (sizes[label] == 1 || (dim >= 0 && sizes[label] < 0 && dim != 1))
                sizes[label] = dim;
            else if (dim >= 0 && dim != sizes[label] && !(dim == 1 && label >= TWI_EINSUM_LETTERS) && sizes[label] >= 0)
                return refuse_dim(c, i, k, sizes[label]);
        }
    for (int i = 0; i < c->num_inputs; i++) /* a named axis of 1 meets only its like */
        for (int k = 0; k < c->inputs[i].rank; k++) {
            int label = e.inputs[i].labels[k];
            if (label < TWI_EINSUM_LETTERS && c->inputs[i].dims[k] == 1 && sizes[label] > 1)
                return refuse_dim(c, i, k, sizes[label]);
        }
    c->outputs[0].rank = e.output.rank;
    for (int k = 0; k < e.output.rank; k++)
        c->outputs[0].dims[k] = sizes[e.output.labels[k]];
    return TW_OK;
}

/* ---- gradient ---------------------------------------------------------------------------------------------- */

/* Letters for labels, one each: those of the dots get letters that nobody else has. */
static int write_letters(const twi_einsum *e, const twi_einsum_term *term, char *text)
{
    bool taken[128] = {false};
    for (int i = 0; i < TWI_EINSUM_LETTERS; i++)
        taken[(int)twi_einsum_letter(i)] = e->used[i];
    for (int k = 0; k < term->rank; k++) {
        int label = term->labels[k], free = label - TWI_EINSUM_LETTERS;
        if (label < TWI_EINSUM_LETTERS) {
            text[k] = twi_einsum_letter(label);
            continue;
        }
        for (int i = 0; i < TWI_EINSUM_LETTERS; i++)
            if (!taken[(int)twi_einsum_letter(i)] && free-- == 0)
                text[k] = twi_einsum_letter(i);
    }
    return term->rank;
}

static int count_label(const twi_einsum_term *term, int label)
{
    int count = 0;
    for (int k = 0; k < term->rank; k++)
        count += term->labels[k] == label;
    return count;
}

/* An Einsum of two tensors with such axes, or of one: terms[1] is NULL then. */
static tw_output product(twi_gradient *g, const twi_einsum *e, const twi_einsum_term *terms[2], const tw_output *inputs,
                         const twi_einsum_term *result)
{
    char equation[128];
    int length = write_letters(e, terms[0], equation);
    if (terms[1]) {
        equation[length++] = ',';
        length += write_letters(e, terms[1], equation + length);
    }
    equation[length++] = '-';
    equation[length++] = '>';
    length += write_letters(e, result, equation + length);
    equation[length] = 0;
    return twi_build(G, "Einsum", inputs, terms[1] ? 2 : 1, TWI_ATTRS(tw_attr_string("equation", equation)));
}

/* The sum of products of dy and the other input over what this one lacks. Axes that this one alone has were summed
 * away: there the gradient is the same everywhere; but of those that have the same letter on the diagonal alone. */
static void give(twi_gradient *g, const twi_einsum *e, int i)
{
    const twi_einsum_term *own = &e->inputs[i], *other = tw_node_num_inputs(g->node) > 1 ? &e->inputs[1 - i] : NULL;
    bool is_there[TW_MAX_RANK], is_diagonal = false;
    twi_einsum_term present = {0};
    tw_output inputs[2] = {DY(0), other ? tw_conj(G, X(1 - i)) : DY(0)};
    for (int k = 0; k < own->rank; k++) {
        is_there[k] = twi_einsum_has(&e->output, own->labels[k]) || (other && twi_einsum_has(other, own->labels[k]));
        if (is_there[k])
            present.labels[present.rank++] = own->labels[k];
        else
            is_diagonal = is_diagonal || count_label(own, own->labels[k]) > 1;
    }
    tw_output sum = product(g, e, (const twi_einsum_term *[]){&e->output, other}, inputs, &present);
    if (is_diagonal) {
        tw_output ones[2] = {sum, tw_ones_like(G, X(i))};
        g->dx[i] = product(g, e, (const twi_einsum_term *[]){&present, own}, ones, own);
        return;
    }
    for (int k = 0; k < own->rank; k++)
        if (!is_there[k])
            sum = tw_expand_dims(G, sum, k);
    g->dx[i] = present.rank < own->rank ? twi_binary(g, "BroadcastTo", sum, twi_shape_tensor(G, X(i))) : sum;
}

/* Whether no axis of the dots is 1 in one input and more in the other, as far as can be known; named ones never are. */
static bool dots_are_alike(twi_gradient *g, const twi_einsum *e)
{
    bool alike = true;
    for (int k = 0; k < e->inputs[0].rank; k++)
        for (int j = 0; j < e->inputs[1].rank; j++) {
            int64_t a = tw_output_shape(X(0)).dims[k], b = tw_output_shape(X(1)).dims[j];
            if (e->inputs[0].labels[k] == e->inputs[1].labels[j] && e->inputs[0].labels[k] >= TWI_EINSUM_LETTERS)
                alike = alike && a >= 0 && a == b;
        }
    return alike;
}

static void einsum_gradient(twi_gradient *g)
{
    twi_einsum e;
    int count = tw_node_num_inputs(g->node), ranks[2] = {-1, -1};
    bool can = count <= 2;
    for (int i = 0; i < count && can; i++)
        ranks[i] = tw_output_shape(X(i)).rank;
    can = can && !twi_einsum_read(&e, twi_attr_string(&g->node->attrs, "equation", ""), count, ranks);
    for (int i = 0; i < count && can; i++) /* without dots a term says itself how many axes its tensor has */
        can = ranks[i] >= 0 || !e.inputs[i].has_dots;
    if (can && count > 1)
        can = dots_are_alike(g, &e);
    if (!can) {
        twi_graph_fail(G, TW_UNIMPLEMENTED,
                       "the gradient of Einsum '%s': axes of dots that broadcast, or are not known",
                       g->node->name);
        return;
    }
    for (int i = 0; i < count; i++)
        give(g, &e, i);
}

const twi_op twi_einsum_ops[] = {
    {"Einsum", "inputs:N*T", "output:T",
     "equation:string; N:int; T:{bfloat16,half,float,double,complex64,complex128,int32,int64}", einsum_shape,
     einsum_gradient},
    {0},
};
