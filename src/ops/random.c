/* random.c - ops that draw from random streams.
 * Lives here:  signatures, shape rules and builders, which give each node its seeds.
 * Never here:  the streams themselves (base/philox.h, device/.../random.c). */
#include "ops/rules.h"
#include "ops/types.h"

static tw_status shape_from_input(twi_inference *c)
{
    return twi_spelled_shape(c, 0, false, &c->outputs[0]);
}

static tw_status uniform_int_shape(twi_inference *c)
{
    tw_status status = shape_from_input(c);
    for (int i = 1; i < 3 && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 0);
    return status;
}

/* Two seeds are an input: the same ones give the same numbers each time. */
static tw_status stateless_shape(twi_inference *c)
{
    tw_shape seeds = c->inputs[1];
    tw_status status = shape_from_input(c);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 1);
    if (status == TW_OK && seeds.rank == 1 && seeds.dims[0] >= 0 && seeds.dims[0] != 2)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "seed must have shape [2], not [%lld]", (long long)seeds.dims[0]);
    for (int i = 2; i < c->num_inputs && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 0);
    return status;
}

static tw_status expect_vector(twi_inference *c, int input, int64_t length)
{
    char text[128];
    tw_shape shape = c->inputs[input];
    bool fits = shape.rank < 0 || (shape.rank == 1 && (shape.dims[0] < 0 || shape.dims[0] == length));
    return fits ? TW_OK
                : twi_fail(c->error, TW_INVALID_ARGUMENT, "input %d must have shape [%lld], got %s", input,
                           (long long)length, tw_shape_text(shape, text, sizeof text));
}

/* shape, key, counter, algorithm and perhaps limits: what the seeds became is given. */
static tw_status keyed_shape(twi_inference *c)
{
    tw_status status = shape_from_input(c);
    for (int i = 1; i < 3 && status == TW_OK; i++)
        status = expect_vector(c, i, i);
    for (int i = 3; i < c->num_inputs && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 0);
    return status;
}

/* Two seeds, or none: key, counter and algorithm, or the last of them alone */
static tw_status key_shape(twi_inference *c)
{
    tw_status status = c->num_inputs ? expect_vector(c, 0, 2) : TW_OK;
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = c->num_inputs && i < 2 ? TW_SHAPE(i + 1) : TW_SCALAR;
    return status;
}

static tw_status multinomial_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 0, 2);
    if (status == TW_OK)
        status = twi_expect_rank(c, 1, 0);
    const tw_tensor *value = twi_ask_value(c, 1);
    int64_t samples = value ? (int64_t)tw_tensor_value(value, 0) : -1;
    if (status == TW_OK && value && samples < 0)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "num_samples is %lld, expected 0 or more", (long long)samples);
    c->outputs[0] = (tw_shape){2, {c->inputs[0].rank == 2 ? c->inputs[0].dims[0] : -1, samples}};
    return status;
}

static tw_status stateless_multinomial_shape(twi_inference *c)
{
    tw_status status = expect_vector(c, 2, 2);
    return status == TW_OK ? multinomial_shape(c) : status;
}

/* shape, alpha or rate: for each of its elements a tensor of that shape; the element's own axes come last. */
static tw_status samples_shape(twi_inference *c)
{
    tw_status status = shape_from_input(c);
    tw_shape shape = c->outputs[0], each = c->inputs[1];
    if (status != TW_OK || shape.rank < 0 || each.rank < 0) {
        c->outputs[0] = TW_UNKNOWN_SHAPE;
        return status;
    }
    if (shape.rank + each.rank > TW_MAX_RANK)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "samples of rank %d; the highest is %d", shape.rank + each.rank,
                        TW_MAX_RANK);
    for (int i = 0; i < each.rank; i++)
        shape.dims[shape.rank++] = each.dims[i];
    c->outputs[0] = shape;
    return TW_OK;
}

/* The shape is an input, and ends with that of the parameters, the inputs from `first` on, which broadcast. */
static tw_status given_samples_shape(twi_inference *c, int shape, int first)
{
    char text[128], wanted[128];
    tw_status status = twi_spelled_shape(c, shape, false, &c->outputs[0]);
    tw_shape all = c->outputs[0], each = c->inputs[first];
    for (int i = first + 1; i < c->num_inputs && status == TW_OK; i++)
        status = twi_broadcast_shapes(each, c->inputs[i], &each, c->error);
    bool fits = all.rank < 0 || each.rank < 0 || all.rank >= each.rank;
    for (int i = 0; i < each.rank && all.rank >= 0 && fits; i++) {
        int64_t length = all.dims[all.rank - each.rank + i];
        fits = length < 0 || each.dims[i] < 0 || length == each.dims[i];
    }
    if (status == TW_OK && !fits)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "Shape passed in must end with broadcasted shape: %s with %s",
                        tw_shape_text(all, text, sizeof text), tw_shape_text(each, wanted, sizeof wanted));
    return status;
}

static tw_status stateless_samples_shape(twi_inference *c)
{
    tw_status status = expect_vector(c, 1, 2);
    return status == TW_OK ? given_samples_shape(c, 0, 2) : status;
}

static tw_status keyed_samples_shape(twi_inference *c)
{
    tw_status status = given_samples_shape(c, 0, 4);
    for (int i = 1; i < 3 && status == TW_OK; i++)
        status = expect_vector(c, i, i);
    return status == TW_OK ? twi_expect_rank(c, 3, 0) : status;
}

static tw_status stateless_shuffle_shape(twi_inference *c)
{
    tw_status status = twi_shape_same(c);
    for (int i = 1; i < 3 && status == TW_OK; i++)
        status = expect_vector(c, i, i);
    return status == TW_OK ? twi_expect_rank(c, 3, 0) : status;
}

/* As gamma_gradient(): alpha is the last input, and the last axes are its own. */
static void stateless_gamma_gradient(twi_gradient *g)
{
    int last = g->node->num_inputs - 1;
    tw_output alpha = tw_node_input(g->node, last), sample = {g->node, 0};
    tw_output slope = twi_build(g->graph, "RandomGammaGrad", TWI_INPUTS(alpha, sample), TWI_NO_ATTRS);
    g->dx[last] = twi_unbroadcast(g->graph, tw_mul(g->graph, g->dy[0], slope), alpha, sample);
}

/* What a sample would have been for a slightly larger alpha, summed over the samples of each. */
static void gamma_gradient(twi_gradient *g)
{
    tw_output shape = tw_node_input(g->node, 0), alpha = tw_node_input(g->node, 1), sample = {g->node, 0};
    tw_output slope = twi_build(g->graph, "RandomGammaGrad", TWI_INPUTS(alpha, sample), TWI_NO_ATTRS);
    tw_output axes =
        tw_range(g->graph, twi_constant_int(g->graph, 0), tw_size_of(g->graph, shape), twi_constant_int(g->graph, 1));
    g->dx[1] = twi_build(g->graph, "Sum", TWI_INPUTS(tw_mul(g->graph, g->dy[0], slope), axes), TWI_NO_ATTRS);
}

/* A variable that holds a generator's state, the algorithm, the shape and perhaps limits */
static tw_status kept_shape(twi_inference *c)
{
    tw_status status = twi_spelled_shape(c, 2, false, &c->outputs[0]);
    for (int i = 1; i < c->num_inputs && status == TW_OK; i++)
        status = i == 2 ? TW_OK : twi_expect_rank(c, i, 0);
    return status;
}

static tw_status kept_samples_shape(twi_inference *c)
{
    tw_status status = given_samples_shape(c, 2, 3);
    return status == TW_OK ? twi_expect_rank(c, 1, 0) : status;
}

/* index and max_index: scalars or vectors; seed [3] or one for each index */
static tw_status index_shuffle_shape(twi_inference *c)
{
    enum { MOST_ROUNDS = 1 << 12 }; /* the designers make 32 to 72; more only serve hostile graphs */
    tw_shape index = c->inputs[0], seed = c->inputs[1], most = c->inputs[2];
    int64_t rounds = twi_attr_int(c->attrs, "rounds", 4), n = -1;
    if (rounds < 4 || rounds % 2 != 0)
        return TWI_REFUSE(c, "rounds is %lld, expected an even number from 4 on", (long long)rounds);
    if (rounds > MOST_ROUNDS)
        return TWI_REFUSE(c, "rounds is %lld, expected at most %d", (long long)rounds, MOST_ROUNDS);
    if (index.rank > 1 || most.rank > 1)
        return TWI_REFUSE(c, "%s has rank %d, expected a scalar or a vector", index.rank > 1 ? "index" : "max_index",
                          index.rank > 1 ? index.rank : most.rank);
    if (seed.rank == 0 || seed.rank > 2 ||
        (seed.rank > 0 && seed.dims[seed.rank - 1] >= 0 && seed.dims[seed.rank - 1] != 3))
        return TWI_REFUSE(c, "seed must have shape [3] or three numbers for each index");
    bool fits = (index.rank != 1 || twi_merge_dims(n, index.dims[0], &n)) &&
                (most.rank != 1 || twi_merge_dims(n, most.dims[0], &n)) &&
                (seed.rank != 2 || twi_merge_dims(n, seed.dims[0], &n));
    if (!fits)
        return TWI_REFUSE(c, "index, seed and max_index are not of the same number");
    if (index.rank == 1 || most.rank == 1 || seed.rank == 2)
        c->outputs[0] = TW_SHAPE(n);
    else if (index.rank == 0 && most.rank == 0 && seed.rank == 1)
        c->outputs[0] = TW_SCALAR;
    return TW_OK;
}

#define SEEDS "seed:int=0; seed2:int=0; "
#define FLOAT "{half,bfloat16,float,double}"
#define COUNTS "{half,float,double,int32,int64}"

#define STATELESS(name)                                                                                                \
    {                                                                                                                  \
        name, "shape:T, seed:Tseed", "output:dtype",                                                                   \
            "dtype:" FLOAT "=float; T:{int32,int64}=int32; Tseed:{int32,int64}=int64", stateless_shape,                \
            twi_not_differentiable                                                                                     \
    }

#define KEYED "shape:Tshape, key:uint64, counter:uint64, alg:int32"
#define WORDS "{int32,int64,uint32,uint64}"
#define KEYED_FLOATS(name)                                                                                             \
    {                                                                                                                  \
        name, KEYED, "output:dtype", "dtype:" FLOAT "=float; Tshape:{int32,int64}=int32", keyed_shape,                 \
            twi_not_differentiable                                                                                     \
    }

/* The state of a generator of Philox's: two words of a counter, and the key. */
static tw_status generator_shape(twi_inference *c)
{
    if (c->num_outputs)
        c->outputs[0] = TW_SHAPE(3);
    tw_status status = twi_expect_rank(c, 1, 0);
    return status == TW_OK ? twi_expect_rank(c, 2, 0) : status;
}

#define KEPT "resource:resource, algorithm:int64, shape:shape_dtype"
#define KEPT_FLOATS(name)                                                                                              \
    {                                                                                                                  \
        name, KEPT, "output:dtype", "dtype:" FLOAT "=float; shape_dtype:{int32,int64}=int64", kept_shape,              \
            twi_not_differentiable, TWI_STATEFUL | TWI_HOST_ONLY, "u.."                                                \
    }

const twi_op twi_random_ops[] = {
    KEPT_FLOATS("StatefulUniform"),
    KEPT_FLOATS("StatefulStandardNormalV2"),
    KEPT_FLOATS("StatefulTruncatedNormal"),
    {"StatefulUniformInt", KEPT ", minval:dtype, maxval:dtype", "output:dtype",
     "dtype:{int32,int64}=int64; shape_dtype:{int32,int64}=int64", kept_shape, twi_not_differentiable,
     TWI_STATEFUL | TWI_HOST_ONLY, "u...."},
    {"StatefulUniformFullInt", KEPT, "output:dtype", "dtype:" WORDS "=uint64; shape_dtype:{int32,int64}=int64",
     kept_shape, twi_not_differentiable, TWI_STATEFUL | TWI_HOST_ONLY, "u.."},
    {"StatefulRandomBinomial", "resource:resource, algorithm:int64, shape:S, counts:T, probs:T", "output:dtype",
     "S:{int32,int64}; T:" COUNTS "=double; dtype:" COUNTS "=int64", kept_samples_shape, twi_not_differentiable,
     TWI_STATEFUL | TWI_HOST_ONLY, "u...."},
    {"NonDeterministicInts", "shape:shape_dtype", "output:dtype",
     "dtype:" WORDS "=int64; shape_dtype:{int32,int64}=int64", shape_from_input,
     twi_not_differentiable, TWI_STATEFUL | TWI_HOST_ONLY},
    {"RandomIndexShuffle", "index:dtype, seed:Tseed, max_index:dtype", "output:dtype",
     "rounds:int=4; dtype:" WORDS "; Tseed:" WORDS, index_shuffle_shape, twi_not_differentiable, TWI_HOST_ONLY},
    KEYED_FLOATS("StatelessRandomUniformV2"),
    KEYED_FLOATS("StatelessRandomNormalV2"),
    KEYED_FLOATS("StatelessTruncatedNormalV2"),
    {"StatelessRandomUniformIntV2", KEYED ", minval:dtype, maxval:dtype", "output:dtype",
     "dtype:{int32,int64}; Tshape:{int32,int64}=int32", keyed_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"StatelessRandomUniformFullIntV2", KEYED, "output:dtype", "dtype:" WORDS "=uint64; Tshape:{int32,int64}=int32",
     keyed_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"StatelessRandomUniformFullInt", "shape:T, seed:Tseed", "output:dtype",
     "dtype:" WORDS "=uint64; T:{int32,int64}=int32; Tseed:" WORDS "=int64", stateless_shape, twi_not_differentiable,
     TWI_HOST_ONLY},
    {"StatelessRandomGetKeyCounter", "seed:Tseed", "key:uint64, counter:uint64", "Tseed:{int32,int64}=int64", key_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"StatelessRandomGetKeyCounterAlg", "seed:Tseed", "key:uint64, counter:uint64, alg:int32",
     "Tseed:{int32,int64}=int64", key_shape, twi_not_differentiable, TWI_HOST_ONLY},
    {"RngReadAndSkip", "resource:resource, alg:int32, delta:uint64", "value:int64", "", generator_shape,
     twi_not_differentiable, TWI_STATEFUL | TWI_HOST_ONLY, "u.."},
    {"RngSkip", "resource:resource, algorithm:int64, delta:int64", "", "", generator_shape, twi_not_differentiable,
     TWI_STATEFUL | TWI_HOST_ONLY, "u.."},
    {"StatelessRandomGetAlg", "", "alg:int32", "", key_shape, twi_not_differentiable, TWI_HOST_ONLY},
    STATELESS("StatelessRandomUniform"),
    STATELESS("StatelessRandomNormal"),
    STATELESS("StatelessTruncatedNormal"),
    {"StatelessRandomUniformInt", "shape:T, seed:Tseed, minval:dtype, maxval:dtype", "output:dtype",
     "dtype:{int32,int64}; T:{int32,int64}; Tseed:{int32,int64}=int64", stateless_shape, twi_not_differentiable},
    {"RandomUniform", "shape:T", "output:dtype", SEEDS "dtype:" FLOAT "; T:{int32,int64}", shape_from_input,
     twi_not_differentiable, TWI_STATEFUL},
    {"RandomUniformInt", "shape:T, minval:Tout, maxval:Tout", "output:Tout",
     SEEDS "Tout:{int32,int64}; T:{int32,int64}", uniform_int_shape, twi_not_differentiable, TWI_STATEFUL},
    {"RandomStandardNormal", "shape:T", "output:dtype", SEEDS "dtype:" FLOAT "; T:{int32,int64}", shape_from_input,
     twi_not_differentiable, TWI_STATEFUL},
    {"TruncatedNormal", "shape:T", "output:dtype", SEEDS "dtype:" FLOAT "; T:{int32,int64}", shape_from_input,
     twi_not_differentiable, TWI_STATEFUL},
    {"RandomGamma", "shape:S, alpha:T", "output:T", SEEDS "S:{int32,int64}; T:{half,float,double}", samples_shape,
     gamma_gradient, TWI_STATEFUL | TWI_HOST_ONLY},
    {"RandomGammaGrad", "alpha:T, sample:T", "output:T", "T:{float,double}", twi_shape_broadcast, NULL,
     TWI_ELEMENTWISE | TWI_HOST_ONLY},
    {"RandomPoissonV2", "shape:S, rate:R", "output:dtype",
     SEEDS "S:{int32,int64}; R:" COUNTS "=double; dtype:" COUNTS "=int64", samples_shape, twi_not_differentiable,
     TWI_STATEFUL | TWI_HOST_ONLY},
    {"StatelessRandomGammaV2", "shape:T, seed:Tseed, alpha:dtype", "output:dtype",
     "dtype:{half,float,double}; T:{int32,int64}; Tseed:{int32,int64}=int64", stateless_samples_shape,
     stateless_gamma_gradient, TWI_HOST_ONLY},
    {"StatelessRandomGammaV3", "shape:shape_dtype, key:uint64, counter:uint64, alg:int32, alpha:dtype", "output:dtype",
     "dtype:{half,float,double}; shape_dtype:{int32,int64}=int32", keyed_samples_shape, stateless_gamma_gradient,
     TWI_HOST_ONLY},
    {"StatelessRandomPoisson", "shape:T, seed:Tseed, lam:Rtype", "output:dtype",
     "Rtype:" COUNTS "; dtype:" COUNTS "; T:{int32,int64}; Tseed:{int32,int64}=int64", stateless_samples_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"StatelessRandomBinomial", "shape:S, seed:Tseed, counts:T, probs:T", "output:dtype",
     "S:{int32,int64}; Tseed:{int32,int64}=int64; T:" COUNTS "=double; dtype:" COUNTS "=int64", stateless_samples_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {"StatelessParameterizedTruncatedNormal",
     "shape:S, seed:Tseed, means:dtype, stddevs:dtype, minvals:dtype, maxvals:dtype", "output:dtype",
     "S:{int32,int64}; Tseed:{int32,int64}=int64; dtype:{float,double}", stateless_samples_shape, NULL, TWI_HOST_ONLY},
    {"StatelessShuffle", "value:T, key:uint64, counter:uint64, alg:int32", "output:T", "T:type",
     stateless_shuffle_shape, NULL, TWI_HOST_ONLY},
    {"RandomShuffle", "value:T", "output:T", SEEDS "T:type", twi_shape_same, NULL, TWI_STATEFUL | TWI_HOST_ONLY},
    {"Multinomial", "logits:T, num_samples:int32", "output:output_dtype",
     SEEDS "T:{" TWI_REALS "}; output_dtype:{int32,int64}=int64", multinomial_shape, twi_not_differentiable,
     TWI_STATEFUL},
    {"StatelessMultinomial", "logits:T, num_samples:int32, seed:Tseed", "output:output_dtype",
     "T:{" TWI_REALS "}; Tseed:{int32,int64}=int64; output_dtype:{int32,int64}=int64", stateless_multinomial_shape,
     twi_not_differentiable, TWI_HOST_ONLY},
    {0},
};

/* ---- builders ---------------------------------------------------------------------------------------------- */

/* Adds a random op with its seeds and, if dtype_name is given, that type attribute. */
static tw_output add(tw_graph *graph, const char *op, int64_t seed, const tw_output *inputs, int num_inputs,
                     const char *dtype_name, tw_dtype dtype)
{
    int64_t seeds[2];
    twi_op_seeds(graph, seed, seeds);
    tw_attr attrs[] = {tw_attr_int("seed", seeds[0]), tw_attr_int("seed2", seeds[1]),
                       tw_attr_type(dtype_name ? dtype_name : "", dtype)};
    return tw_node_output(tw_add_node(graph, op, NULL, inputs, num_inputs, attrs, dtype_name ? 3 : 2), 0);
}

tw_output tw_random_uniform(tw_graph *graph, tw_output shape, tw_dtype dtype, int64_t seed)
{
    return add(graph, "RandomUniform", seed, &shape, 1, "dtype", dtype);
}

tw_output tw_random_uniform_int(tw_graph *graph, tw_output shape, tw_output low, tw_output high, int64_t seed)
{
    return add(graph, "RandomUniformInt", seed, (tw_output[]){shape, low, high}, 3, NULL, TW_INVALID_DTYPE);
}

tw_output tw_random_normal(tw_graph *graph, tw_output shape, tw_dtype dtype, int64_t seed)
{
    return add(graph, "RandomStandardNormal", seed, &shape, 1, "dtype", dtype);
}

tw_output tw_truncated_normal(tw_graph *graph, tw_output shape, tw_dtype dtype, int64_t seed)
{
    return add(graph, "TruncatedNormal", seed, &shape, 1, "dtype", dtype);
}

tw_output tw_random_shuffle(tw_graph *graph, tw_output value, int64_t seed)
{
    return add(graph, "RandomShuffle", seed, &value, 1, NULL, TW_INVALID_DTYPE);
}

tw_output tw_multinomial(tw_graph *graph, tw_output logits, tw_output num_samples, int64_t seed)
{
    return add(graph, "Multinomial", seed, (tw_output[]){logits, num_samples}, 2, NULL, TW_INVALID_DTYPE);
}
