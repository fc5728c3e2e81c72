/* matrix.c - parts of matrices [..., rows, columns]: diagonals and bands. Rows, shape rules and gradient rules.
 * The V2 and V3 ops have several diagonals, from k[0] to k[1] (0 the main one, positive above it), as rows of a matrix,
 * the highest first. */
#include "ops/rules.h"

/* The diagonals that input i says. False: not known yet. */
static bool diagonals(twi_inference *c, int i, int64_t *low, int64_t *high)
{
    const tw_tensor *value = i < c->num_inputs ? twi_ask_value(c, i) : NULL;
    *low = *high = 0;
    if (i >= c->num_inputs)
        return true; /* the main one */
    if (!value || value->elements < 1)
        return false;
    *low = twi_tensor_int(value, 0);
    *high = twi_tensor_int(value, value->elements > 1);
    return true;
}

static tw_status check_diagonals(twi_inference *c, int i, int64_t low, int64_t high)
{
    if (c->inputs[i].rank > 1 || (c->inputs[i].rank == 1 && c->inputs[i].dims[0] >= 0 && c->inputs[i].dims[0] != 1 &&
                                  c->inputs[i].dims[0] != 2))
        return TWI_REFUSE(c, "k is a scalar or has one or two elements");
    if (low > high)
        return TWI_REFUSE(c, "the lowest diagonal is %lld, the highest %lld", (long long)low, (long long)high);
    return TW_OK;
}

/* Inputs from i on are numbers: of the padding, which comes last, one element is enough. */
static tw_status check_numbers(twi_inference *c, int i)
{
    static const char *const names[] = {"num_rows", "num_cols", "padding_value"};
    for (int last = c->num_inputs - 1; i <= last; i++) {
        tw_shape shape = c->inputs[i];
        int64_t elements = tw_shape_elements(shape);
        if (i < last || c->num_inputs == 5 ? shape.rank > 0 : elements >= 0 && elements != 1)
            return TWI_REFUSE(c, "%s must be a scalar", names[2 - (last - i)]);
    }
    return TW_OK;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* diagonal [..., (number,) length]: output [..., rows, columns] */
static tw_status diag_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0];
    int64_t low, high, rows = -1, columns = -1;
    bool known = diagonals(c, 1, &low, &high);
    tw_status status = twi_expect_rank_at_least(c, 0, 1);
    if (status == TW_OK && c->num_inputs > 1)
        status = check_diagonals(c, 1, low, high);
    if (status == TW_OK)
        status = check_numbers(c, 2);
    if (status != TW_OK || in.rank < 0 || !known)
        return status;
    if (c->num_inputs > 1 && (!twi_number_of(c, 2, &rows) || !twi_number_of(c, 3, &columns)))
        return TW_OK;
    int batch = in.rank - (low == high ? 1 : 2);
    if (batch < 0)
        return TWI_REFUSE(c, "several diagonals have rank 2 at least");
    if (batch + 2 > TW_MAX_RANK)
        return TWI_REFUSE(c, "the result has %d axes, expected at most %d", batch + 2, TW_MAX_RANK);
    if (low != high && in.dims[batch] >= 0 && in.dims[batch] != high - low + 1)
        return TWI_REFUSE(c, "%lld diagonals, expected %lld", (long long)in.dims[batch], (long long)(high - low + 1));
    tw_shape out = in;
    int64_t length = in.dims[in.rank - 1];
    if (length >= 0) {
        int64_t least_rows = length - least(high, 0), least_columns = length + most(low, 0);
        if (rows < 0 && columns < 0)
            rows = columns = most(least_rows, least_columns);
        rows = rows < 0 ? least_rows : rows;
        columns = columns < 0 ? least_columns : columns;
        if (rows < least_rows || columns < least_columns || (rows != least_rows && columns != least_columns))
            return TWI_REFUSE(c, "diagonals of %lld do not fit %lld x %lld", (long long)length, (long long)rows,
                              (long long)columns);
    }
    out.rank = batch + 2;
    out.dims[batch] = rows;
    out.dims[batch + 1] = columns;
    c->outputs[0] = out;
    return TW_OK;
}

/* Checks that the diagonals are in the matrix; *length of the longest, -1 if not known. */
static tw_status longest_diagonal(twi_inference *c, int64_t low, int64_t high, int64_t *length)
{
    tw_shape in = c->inputs[0];
    int64_t rows = in.dims[in.rank - 2], columns = in.dims[in.rank - 1];
    *length = -1;
    if (rows < 0 || columns < 0)
        return TW_OK;
    for (int i = 0; i < 2; i++) {
        int64_t k = i ? high : low;
        if (k != 0 && (k <= -rows || k >= columns))
            return TWI_REFUSE(c, "diagonal %lld of %lld x %lld", (long long)k, (long long)rows, (long long)columns);
    }
    *length = least(rows + least(high, 0), columns - most(low, 0));
    return TW_OK;
}

static tw_status diag_part_shape(twi_inference *c)
{
    tw_shape out = c->inputs[0];
    int64_t low, high, length;
    bool known = diagonals(c, 1, &low, &high);
    tw_status status = twi_expect_rank_at_least(c, 0, 2);
    if (status == TW_OK && c->num_inputs > 1)
        status = check_diagonals(c, 1, low, high);
    if (status == TW_OK)
        status = check_numbers(c, 2);
    if (status != TW_OK || out.rank < 0 || !known)
        return status;
    status = longest_diagonal(c, low, high, &length);
    out.rank -= 2;
    if (low != high)
        out.dims[out.rank++] = high - low + 1;
    out.dims[out.rank++] = length;
    c->outputs[0] = out;
    return status;
}

static tw_status set_diag_shape(twi_inference *c)
{
    tw_shape in = c->inputs[0], wanted = in;
    int64_t low, high, length;
    bool known = diagonals(c, 2, &low, &high);
    tw_status status = twi_expect_rank_at_least(c, 0, 2);
    if (status == TW_OK && c->num_inputs > 2)
        status = check_diagonals(c, 2, low, high);
    c->outputs[0] = in;
    if (status != TW_OK || in.rank < 0 || !known)
        return status;
    status = longest_diagonal(c, low, high, &length);
    wanted.rank -= 2;
    if (low != high)
        wanted.dims[wanted.rank++] = high - low + 1;
    wanted.dims[wanted.rank++] = length;
    char text[2][96];
    if (status == TW_OK && !tw_shape_compatible(wanted, c->inputs[1]))
        return TWI_REFUSE(c, "diagonals have shape %s, not %s", tw_shape_text(wanted, text[0], sizeof text[0]),
                          tw_shape_text(c->inputs[1], text[1], sizeof text[1]));
    return status;
}

static tw_status band_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank_at_least(c, 0, 2);
    c->outputs[0] = c->inputs[0];
    for (int i = 1; i <= 2 && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 0);
    return status;
}

/* ---- gradient rules ---------------------------------------------------------------------------------------- */

static tw_output zero(twi_gradient *g)
{
    return twi_number_like(g, DY(0), 0);
}

static void diag_gradient(twi_gradient *g)
{
    g->dx[0] = twi_unary(g, "MatrixDiagPart", DY(0));
}

static void diag_part_gradient(twi_gradient *g)
{
    g->dx[0] = twi_binary(g, "MatrixSetDiag", tw_zeros_like(G, X(0)), DY(0));
}

static void set_diag_gradient(twi_gradient *g)
{
    g->dx[0] = twi_binary(g, "MatrixSetDiag", DY(0), tw_zeros_like(G, X(1)));
    g->dx[1] = twi_unary(g, "MatrixDiagPart", DY(0));
}

static void diag_2_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build(G, "MatrixDiagPartV2", TWI_INPUTS(DY(0), X(1), zero(g)), TWI_NO_ATTRS);
}

static void diag_part_2_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build(G, "MatrixSetDiagV2", TWI_INPUTS(tw_zeros_like(G, X(0)), DY(0), X(1)), TWI_NO_ATTRS);
}

static void set_diag_2_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build(G, "MatrixSetDiagV2", TWI_INPUTS(DY(0), tw_zeros_like(G, X(1)), X(2)), TWI_NO_ATTRS);
    g->dx[1] = twi_build(G, "MatrixDiagPartV2", TWI_INPUTS(DY(0), X(2), zero(g)), TWI_NO_ATTRS);
}

static void diag_3_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "MatrixDiagPartV3", TWI_INPUTS(DY(0), X(1), zero(g)));
}

static void diag_part_3_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "MatrixSetDiagV3", TWI_INPUTS(tw_zeros_like(G, X(0)), DY(0), X(1)));
}

static void set_diag_3_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build_like(g->node, "MatrixSetDiagV3", TWI_INPUTS(DY(0), tw_zeros_like(G, X(1)), X(2)));
    g->dx[1] = twi_build_like(g->node, "MatrixDiagPartV3", TWI_INPUTS(DY(0), X(2), zero(g)));
}

static void band_gradient(twi_gradient *g)
{
    g->dx[0] = twi_build(G, "MatrixBandPart", TWI_INPUTS(DY(0), X(1), X(2)), TWI_NO_ATTRS);
}

/* ---- rows -------------------------------------------------------------------------------------------------- */

#define ALIGN "; align:{LEFT_RIGHT,RIGHT_LEFT,LEFT_LEFT,RIGHT_RIGHT}=RIGHT_LEFT"
#define DIAG "diagonal:T, k:int32, num_rows:int32, num_cols:int32, padding_value:T"
#define DIAG_PART "input:T, k:int32, padding_value:T"
#define SET_DIAG "input:T, diagonal:T, k:int32"

const twi_op twi_matrix_ops[] = {
    {"MatrixDiag", "diagonal:T", "output:T", "T:type", diag_shape, diag_gradient},
    {"MatrixDiagPart", "input:T", "diagonal:T", "T:type", diag_part_shape, diag_part_gradient},
    {"MatrixSetDiag", "input:T, diagonal:T", "output:T", "T:type", set_diag_shape, set_diag_gradient},
    {"BatchMatrixDiag", "diagonal:T", "output:T", "T:type", diag_shape, diag_gradient},
    {"BatchMatrixDiagPart", "input:T", "diagonal:T", "T:type", diag_part_shape, diag_part_gradient},
    {"BatchMatrixSetDiag", "input:T, diagonal:T", "output:T", "T:type", set_diag_shape, set_diag_gradient},
    {"MatrixDiagV2", DIAG, "output:T", "T:type", diag_shape, diag_2_gradient},
    {"MatrixDiagPartV2", DIAG_PART, "diagonal:T", "T:type", diag_part_shape, diag_part_2_gradient},
    {"MatrixSetDiagV2", SET_DIAG, "output:T", "T:type", set_diag_shape, set_diag_2_gradient},
    {"MatrixDiagV3", DIAG, "output:T", "T:type" ALIGN, diag_shape, diag_3_gradient},
    {"MatrixDiagPartV3", DIAG_PART, "diagonal:T", "T:type" ALIGN, diag_part_shape, diag_part_3_gradient},
    {"MatrixSetDiagV3", SET_DIAG, "output:T", "T:type" ALIGN, set_diag_shape, set_diag_3_gradient},
    {"MatrixBandPart", "input:T, num_lower:Tindex, num_upper:Tindex", "band:T", "T:type; Tindex:{int32,int64}=int64",
     band_shape, band_gradient},
    {"BatchMatrixBandPart", "input:T, num_lower:int64, num_upper:int64", "band:T", "T:type", band_shape, band_gradient},
    {0},
};
