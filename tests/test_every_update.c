/* test_every_update.c - updates of variables, rows of them and places in them: every op that its row says to be one, in
 * every type that has a kernel, must make of the same numbers what it makes in double, but for the rounding of the
 * type; by one thread and by three, in few and in many elements. A sparse update of each row once is the dense one, in
 * float to the bit.
 * What is right in one type TensorFlow says (test_ops_state.c, test_shapes.c). */
#include "typed_testing.h"

enum {
    ROWS = 6,
    WIDTH = 5,
    MANY = 16384 + 7, /* elements that a team shares */
    WAYS = 4,         /* of choosing what may be chosen; see number_of() */
};

static int updates_run, sparse_compared;

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* Exact in every type, as are all that follow. */
static double number_of(const char *name, unsigned way)
{
    if (strcmp(name, "lr_power") == 0)
        return way & 2 ? -0.25 : -0.5;
    if (strcmp(name, "l1") == 0)
        return way & 2 ? 0.0625 : 0;
    if (strcmp(name, "global_step") == 0)
        return 3;
    if (strcmp(name, "epsilon") == 0)
        return 0.0625;
    return strcmp(name, "beta2_power") == 0 ? 0.25 : name[0] == 'l' ? 0.125 : 0.5;
}

/* Few numbers, so that places are found where a gradient is zero, or takes a variable to zero. */
static double element_of(char role, int input, int64_t i, bool whole)
{
    int64_t drawn = (i * 7 + input * 11 + i / 13) % 17;
    if (whole)
        return role == 'u' || role == 's' ? (double)(2 + drawn % 5) : (double)(1 + drawn % 4);
    return role == 's' ? (double)(1 + drawn) / 8 : role == 'u' ? (double)(drawn - 8) / 4 : (double)(drawn - 8) / 8;
}

/* How an op is run. */
typedef struct plan {
    const twi_op *row;
    const twi_signature *signature;
    tw_dtype index;   /* type of indices */
    bool many, scalar; /* many elements; one update for all places */
    bool each_once;    /* each row has its turn once, */
    bool none;         /* or none has */
    unsigned way;
} plan;

static bool has_role(const twi_op *row, char role)
{
    return strchr(row->roles, role) != NULL;
}

static bool has_input(const plan *p, const char *name)
{
    for (int i = 0; i < p->signature->num_inputs; i++)
        if (strcmp(p->signature->inputs[i].name, name) == 0)
            return true;
    return false;
}

/* What an update takes in where it is not told a row or a place. */
static tw_shape whole_shape(const plan *p)
{
    return p->many ? TW_SHAPE(MANY) : TW_SHAPE(ROWS, WIDTH);
}

static bool is_sparse(const plan *p)
{
    return has_role(p->row, 'i') || has_input(p, "indices");
}

static tw_tensor *make_input(const plan *p, int i, tw_dtype dtype)
{
    const twi_argument *argument = &p->signature->inputs[i];
    char role = p->row->roles[i];
    bool index = role == 'i' || strcmp(argument->name, "indices") == 0, number = strchr("ndl", role) != NULL;
    tw_dtype own = index ? p->index : argument->dtype && argument->dtype != TW_RESOURCE ? argument->dtype : dtype;
    tw_shape shape = number || (p->scalar && role == '.' && !index) ? TW_SCALAR : whole_shape(p);
    if (index)
        shape = strstr(p->row->name, "Nd") ? TW_SHAPE(ROWS, 1) : TW_SHAPE(ROWS);
    if (p->none && shape.rank && !twi_role_is_variable(role))
        shape.dims[0] = 0;
    tw_tensor *made = tw_tensor_create(own, shape);
    assert_non_null(made);
    for (int64_t k = 0; k < made->elements; k++)
        twt_put(made, k, index    ? (double)(p->each_once ? k : k * k % ROWS)
                     : number ? number_of(argument->name, p->way)
                              : element_of(role, i, k, !twt_is_float(own)));
    return made;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The update's variables are its first inputs; they hold what has become of them. */
static tw_status run(const plan *p, tw_dtype dtype, bool plain, int threads, twt_op *op, tw_error *error)
{
    twi_resource variables[TWT_MOST] = {{0}};
    twi_operand in[TWT_MOST];
    const void *from[TWT_MOST];
    *op = (twt_op){.op = p->row->name, .num_inputs = p->signature->num_inputs};
    for (int i = 0; i < op->num_inputs; i++) {
        op->inputs[i] = make_input(p, i, dtype);
        in[i] = twt_operand(op->inputs[i], false);
        from[i] = op->inputs[i]->data;
        if (twi_role_is_variable(p->row->roles[i])) {
            variables[i] = (twi_resource){.name = "v", .dtype = dtype, .shape = in[i].shape, .initialized = true,
                                          .memory = op->inputs[i]->data};
            in[i].resource = &variables[i];
            in[i].dtype = TW_RESOURCE;
        }
    }
    for (int i = 0; i < p->signature->num_attrs; i++) {
        const twi_attr_spec *spec = &p->signature->attrs[i];
        if (spec->kind == TW_ATTR_TYPE)
            op->attrs[op->num_attrs++] =
                tw_attr_type(spec->name, strcmp(spec->name, "Tindices") == 0 ? p->index : dtype);
        else if (spec->kind == TW_ATTR_BOOL)
            op->attrs[op->num_attrs++] = tw_attr_bool(spec->name, p->way & 1);
    }
    twi_attrs attrs = {op->attrs, op->num_attrs};
    const twi_kernel *kernel;
    twi_prepare prepare = {.op = op->op, .node = "n", .attrs = &attrs, .roles = p->row->roles, .inputs = in,
                           .num_inputs = op->num_inputs, .device = twt_three_threads->items[0], .threads = threads,
                           .error = error};
    tw_status status = twt_prepare(twt_three_threads->items[0], &prepare, plain, &kernel);
    if (status != TW_OK)
        return status;
    void *workspace = prepare.workspace ? twi_alloc_aligned(prepare.workspace, 64) : NULL;
    op->kernel = kernel->name;
    status = kernel->run(&(twi_run){.state = prepare.state, .inputs = from, .input_operands = in,
                                    .workspace = workspace, .num_inputs = op->num_inputs, .threads = threads,
                                    .node = "n", .error = error});
    if (kernel->release)
        kernel->release(prepare.state);
    twi_free_aligned(workspace);
    return status;
}

/* ---- what must come out ------------------------------------------------------------------------------------------ */

static bool is_unsigned(tw_dtype dtype)
{
    return dtype == TW_UINT8 || dtype == TW_UINT16 || dtype == TW_UINT32 || dtype == TW_UINT64;
}

static void compare(const plan *p, const twt_op *got, const twt_op *wanted, bool bits, const char *what)
{
    for (int i = 0; i < got->num_inputs && twi_role_is_variable(p->row->roles[i]); i++) {
        const tw_tensor *a = got->inputs[i], *b = wanted->inputs[i];
        if (bits && !twt_same_bits(a, b))
            fail_msg("%s in %s: '%s' has other bits %s", got->op, tw_dtype_name(a->dtype),
                     p->signature->inputs[i].name, what);
        for (int64_t k = 0; !bits && k < a->elements; k++) {
            double x = tw_tensor_value(a, k), y = tw_tensor_value(b, k);
            if (is_unsigned(a->dtype) && y < 0)
                y += ldexp(1, 8 * (int)tw_dtype_size(a->dtype)); /* it wraps */
            if (!(fabs(x - y) <= twt_tolerance_of(a->dtype) * fmax(1, fabs(y)) || (isnan(x) && isnan(y)) || x == y))
                fail_msg("%s in %s (way %u, %s): '%s' element %lld is %.9g, expected %.9g %s", got->op,
                         tw_dtype_name(a->dtype), p->way, got->kernel, p->signature->inputs[i].name, (long long)k, x, y,
                         what);
        }
    }
}

/* By the plain kernel, in three threads, and by the fastest one. False: there is none. */
static bool try_type(const plan *p, tw_dtype dtype)
{
    bool number = dtype != TW_STRING && dtype != TW_BOOL;
    tw_dtype by = twt_is_float(dtype) ? TW_FLOAT64 : number ? TW_INT64 : dtype;
    tw_error error = {0};
    twt_op ops[4];
    tw_status statuses[4] = {run(p, dtype, true, 1, &ops[0], &error)};
    if (statuses[0] == TW_OK) {
        statuses[1] = run(p, dtype, true, 3, &ops[1], &error);
        statuses[2] = run(p, dtype, false, 3, &ops[2], &error);
        statuses[3] = run(p, by, true, 1, &ops[3], &error);
        for (int i = 1; i < 4; i++)
            if (statuses[i] != TW_OK)
                fail_msg("%s: %s", p->row->name, error.message);
        compare(p, &ops[1], &ops[0], true, "in three threads");
        compare(p, &ops[2], &ops[0], false, "as the plain kernel has it");
        if (number)
            compare(p, &ops[0], &ops[3], false, "as in the widest type");
        updates_run++;
    } else if (statuses[0] != TW_UNIMPLEMENTED) {
        fail_msg("%s in %s: %s", p->row->name, tw_dtype_name(dtype), error.message);
    }
    for (int i = 0; i < (statuses[0] == TW_OK ? 4 : 1); i++)
        twt_op_release(&ops[i]);
    return statuses[0] == TW_OK;
}

/* A sparse update of every row once does what the dense one of that name does. */
static void try_each_row_once(const plan *p, tw_dtype dtype)
{
    char name[64];
    tw_error error = {0};
    twt_op ops[2];
    const char *at = strstr(p->row->name, "Sparse");
    if (!at)
        return;
    snprintf(name, sizeof name, "%.*s%s", (int)(at - p->row->name), p->row->name, at + strlen("Sparse"));
    plan sparse = *p, dense = {.row = twi_op_find(name), .way = p->way};
    if (!dense.row)
        return;
    assert_non_null(dense.signature = twi_op_signature(dense.row));
    sparse.each_once = true;
    assert_ok(run(&sparse, dtype, true, 1, &ops[0], &error));
    assert_ok(run(&dense, dtype, true, 1, &ops[1], &error));
    compare(p, &ops[0], &ops[1], dtype == TW_FLOAT32, "than the dense update"); /* 16 bits may be rounded in between */
    for (int i = 0; i < 2; i++)
        twt_op_release(&ops[i]);
    sparse_compared++;
}

/* ---- which ops --------------------------------------------------------------------------------------------------- */

/* Ops that take a variable, slots, numbers, and a gradient or values, maybe for some rows or places. */
static bool is_update(const twi_op *row, const twi_signature *s)
{
    if (!row->roles || row->roles[0] != 'u' || row->planned_as || s->num_outputs ||
        strlen(row->roles) != (size_t)s->num_inputs)
        return false;
    for (int i = 0; i < s->num_inputs; i++) {
        const twi_argument *argument = &s->inputs[i];
        bool index = row->roles[i] == 'i' || strcmp(argument->name, "indices") == 0;
        bool variable = twi_role_is_variable(row->roles[i]), step = argument->dtype == TW_INT64;
        bool typed = argument->type_attr && (index || strcmp(argument->type_attr, "Index") != 0);
        if (argument->number_attr || argument->list_attr || !(variable || typed || step))
            return false;
    }
    return true;
}

static uint64_t types_of(const twi_signature *s)
{
    for (int i = 0; i < s->num_attrs; i++)
        if (s->attrs[i].kind == TW_ATTR_TYPE && strcmp(s->attrs[i].name, "Tindices") != 0)
            return s->attrs[i].allowed_types ? s->attrs[i].allowed_types : UINT64_MAX;
    return 0;
}

static void try_ways(plan p, tw_dtype dtype)
{
    for (p.way = 0; p.way < WAYS; p.way++) {
        if (!try_type(&p, dtype))
            return;
        if (is_sparse(&p))
            try_each_row_once(&p, dtype);
    }
    p.way = 0;
    p.none = is_sparse(&p);
    try_type(&p, dtype);
    p.none = false;
    p.many = !is_sparse(&p);
    p.scalar = is_sparse(&p) && has_role(p.row, '.') && !has_input(&p, "grad");
    p.index = TW_INT64;
    if (p.many || strstr(p.row->name, "Nd") == NULL)
        try_type(&p, dtype);
}

static void every_update_is_the_same_in_every_type(void **state)
{
    (void)state;
    for (const twi_op *const *family = twi_op_families; *family; family++)
        for (const twi_op *row = *family; row->name; row++) {
            const twi_signature *signature = twi_op_signature(row);
            assert_non_null(signature);
            for (int i = 0; i < TWT_NUM_DTYPES && is_update(row, signature); i++)
                if (types_of(signature) >> twt_dtypes[i] & 1)
                    try_ways((plan){.row = row, .signature = signature, .index = TW_INT32}, twt_dtypes[i]);
        }
    print_message("%d updates, %d of them sparse and compared with dense ones\n", updates_run, sparse_compared);
    assert_true(updates_run > 300 && sparse_compared > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_update_is_the_same_in_every_type),
    };
    return cmocka_run_group_tests(tests, twt_open_devices, twt_close_devices);
}
