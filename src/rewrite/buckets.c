/* buckets.c - the gradients of a tower that travel together are laid end to end by one node, where a device has a
 * kernel for it; and one that travels alone gets its weight decay by the same:
 *
 *     Cast to float, AddN with weight decay, Reshape, of each; ConcatV2        _JoinGradients
 *
 * Never here: which gradients travel together (train/reduce.c), and what becomes of their mean (update.c). */
#include "rewrite/gradient.h"

/* Vectors of floats, one after another. */
static bool is_bucket(const twi_node *node)
{
    return twi_is(node, TWI_OP_ConcatV2) && node->results[0].dtype == TW_FLOAT32 && node->results[0].rank == 1 &&
           node->num_inputs > 2;
}

/* A vector of floats that travels alone, with weight decay. */
static bool is_lone(const twi_rewriting *r, const twi_node *node)
{
    if (!twi_is(node, TWI_OP_Reshape) || node->results[0].dtype != TW_FLOAT32 || node->results[0].rank != 1 ||
        !twi_attr_find(&node->attrs, "_reduction"))
        return false;
    const twi_node *user = twi_only_user(twi_out(node, 0));
    twi_raw_gradient g = {.value = twi_in(node, 0), .user = node};
    twi_split_decay(r, &g, node, (twi_value){0});
    return g.decay.node && !(user && is_bucket(user));
}

/* What the joint node reads for input i of the bucket. */
static twi_raw_gradient find_gradient(twi_rewriting *r, const twi_node *bucket, int i)
{
    twi_raw_gradient g = {.value = twi_in(bucket, i), .user = bucket};
    for (const twi_node *flat; (flat = twi_find_link(g.value, TWI_OP_Reshape, g.user));) {
        g.value = twi_in(flat, 0);
        g.user = flat;
    }
    twi_split_decay(r, &g, bucket, (twi_value){0});
    twi_take_cast(r, &g, bucket, "_JoinGradients");
    twi_find_conv(r, &g, bucket);
    twi_make_transposed(r, &g, 1);
    return g;
}

/* The joint node that is being made of a bucket. */
typedef struct joining {
    int count;                    /* gradients */
    twi_raw_gradient *gradients;
    twi_value *inputs;            /* gradients, then variables, then decays */
    int64_t *transposed, *decayed;
    int num_decayed;
    tw_dtype type;                /* of the narrow ones among them */
} joining;

static bool reserve(joining *j)
{
    size_t count = (size_t)j->count;
    j->gradients = twi_alloc_array(count, sizeof *j->gradients);
    j->inputs = twi_alloc_array(3 * count, sizeof *j->inputs);
    j->transposed = twi_alloc_array(count, sizeof *j->transposed);
    j->decayed = twi_alloc_array(count, sizeof *j->decayed);
    return j->gradients && j->inputs && j->transposed && j->decayed;
}

static void release(joining *j)
{
    twi_free(j->gradients);
    twi_free(j->inputs);
    twi_free(j->transposed);
    twi_free(j->decayed);
}

static void look_at_gradients(twi_rewriting *r, const twi_node *bucket, joining *j)
{
    int n = 0;
    for (int i = 0; i < j->count; i++) {
        const twi_raw_gradient *g = &j->gradients[i];
        j->gradients[i] = find_gradient(r, bucket, i);
        j->transposed[i] = g->transposed;
        j->type = twi_dtype(g->value) != TW_FLOAT32 ? twi_dtype(g->value) : j->type;
        if (g->decay.node)
            j->decayed[j->num_decayed++] = i;
        j->inputs[n++] = g->value;
    }
    for (int i = 0; i < j->num_decayed; i++)
        j->inputs[n++] = j->gradients[j->decayed[i]].variable;
    for (int i = 0; i < j->num_decayed; i++)
        j->inputs[n++] = j->gradients[j->decayed[i]].decay;
}

static twi_node *make(twi_rewriting *r, const twi_node *bucket, const joining *j)
{
    tw_attr attrs[] = {tw_attr_type("T", j->type), tw_attr_int("D", j->num_decayed),
                       tw_attr_ints("decayed", j->decayed, j->num_decayed),
                       tw_attr_ints("transposed", j->transposed, j->count), tw_attr_bool("_reduction", true)};
    int num_attrs = twi_attr_find(&bucket->attrs, "_reduction") ? 5 : 4;
    return twi_rewrite_make(r, bucket, "/joint", "_JoinGradients", j->inputs, j->count + 2 * j->num_decayed, attrs,
                            num_attrs);
}

static tw_status join(twi_rewriting *r, twi_node *bucket, tw_error *error)
{
    joining j = {.count = is_bucket(bucket) ? bucket->num_inputs - 1 : 1, .type = TW_FLOAT32};
    int before = r->region->nodes.count;
    bool fits = reserve(&j);
    twi_node *joint = NULL;
    if (fits) {
        look_at_gradients(r, bucket, &j);
        joint = make(r, bucket, &j);
    }
    for (int i = 0; i < j.count && joint; i++)
        twi_settle_transposed(&j.gradients[i]);
    if (joint) {
        twi_replace(twi_out(bucket, 0), twi_out(joint, 0));
        twi_move_controls(bucket, joint);
    } else {
        twi_rewrite_undo(r, before);
    }
    release(&j);
    return fits ? TW_OK : twi_fail_memory(error, "joining gradients");
}

tw_status twi_rewrite_buckets(twi_rewriting *r, tw_error *error)
{
    tw_status status = TW_OK;
    for (int id = 0, count = r->region->nodes.count; id < count && status == TW_OK; id++) {
        twi_node *node = r->region->nodes.items[id];
        if (!node->gone && (is_bucket(node) || is_lone(r, node)) &&
            twi_rewrite_has_kernel(r, node, "_JoinGradients", TW_FLOAT32))
            status = join(r, node, error);
    }
    return status;
}
