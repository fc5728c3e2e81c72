/* test_op_rows.c - what the rows of ops say of them agrees with their signatures and with each other: the whole engine
 * takes the rows' word for it. */
#include "op_testing.h"

#define HANDLES "rwushqmk"
#define VARIABLES "rwush"

typedef void check_row(const twi_op *op, const twi_signature *signature);

static void each_row(check_row *check)
{
    for (const twi_op *const *family = twi_op_families; *family; family++)
        for (const twi_op *op = *family; op->name; op++) {
            const twi_signature *signature = twi_op_signature(op);
            assert_non_null(signature);
            check(op, signature);
        }
}

static char role_of(const twi_op *op, int argument)
{
    return op->roles ? op->roles[argument] : '.';
}

static bool is_list(const twi_argument *argument)
{
    return argument->number_attr || argument->list_attr;
}

static bool has_attr(const twi_signature *signature, const char *name)
{
    for (int i = 0; i < signature->num_attrs; i++)
        if (strcmp(signature->attrs[i].name, name) == 0)
            return true;
    return false;
}

static void expect(bool is_so, const twi_op *op, const char *what)
{
    if (!is_so)
        fail_msg("%s: %s", op->name, what);
}

static void every_row_can_be_parsed_and_no_name_is_taken_twice(void **state)
{
    (void)state;
    int count = 0;
    for (const twi_op *const *family = twi_op_families; *family; family++)
        for (const twi_op *op = *family; op->name; op++, count++) {
            assert_ptr_equal(twi_op_find(op->name), op);
            assert_non_null(twi_op_signature(op));
            assert_non_null(op->shape);
        }
    assert_true(count > 100);
}

/* ---- roles ------------------------------------------------------------------------------------------------------ */

static void check_letters(const twi_op *op, const twi_signature *s)
{
    expect(!op->roles || (int)strlen(op->roles) == s->num_inputs, op, "one letter for each input");
    for (int i = 0; i < s->num_inputs; i++) {
        bool handle = s->inputs[i].dtype == TW_RESOURCE, letter = strchr(HANDLES, role_of(op, i)) != NULL;
        expect(strchr(HANDLES ".ingdl", role_of(op, i)) != NULL, op, "a letter that means something");
        expect((handle || s->inputs[i].is_ref) == letter, op,
               "handles and references, and they alone, have letters of such");
        expect(!s->inputs[i].is_ref || role_of(op, i) != 'q', op, "references are of variables");
        expect(role_of(op, i) != 'i' || strchr(VARIABLES, role_of(op, 0)), op, "indices are into a variable");
    }
}

static void every_input_has_a_role_that_fits_its_type(void **state)
{
    (void)state;
    each_row(check_letters);
}

static void check_update(const twi_op *op, const twi_signature *s)
{
    bool takes_part = op->roles && strpbrk(op->roles, "sngdl");
    expect(!takes_part || role_of(op, 0) == 'u', op, "an update's first input is the variable");
    expect(!takes_part || strchr(op->roles, 'n'), op, "an update has a number, such as the rate");
    expect(!twi_op_writes(op) || op->planned_as || twi_op_is(op, TWI_STATEFUL), op, "who writes is stateful");
    expect(!twi_op_writes(op) || !twi_op_only_reads(op), op, "who writes does not only read");
    expect(!twi_op_is(op, TWI_READ) || (twi_op_only_reads(op) && op->roles[0] == 'r' && s->num_inputs == 1), op,
           "a read reads one variable");
}

static void updates_have_a_variable_and_who_writes_is_stateful(void **state)
{
    (void)state;
    each_row(check_update);
    assert_true(twi_op_writes(twi_op_find("ResourceScatterSub")));
    assert_true(twi_op_writes(twi_op_find("_Scalars")));
    assert_false(twi_op_writes(twi_op_find("ResourceGather")));
    assert_true(twi_op_only_reads(twi_op_find("VariableShape")));
    assert_false(twi_op_only_reads(twi_op_find("QueueSizeV2")));
    assert_false(twi_op_only_reads(twi_op_find("MatMul")));
}

static void expect_roles(const char *op, const twi_attrs *attrs, const char *expected)
{
    char roles[32] = "";
    for (int i = 0; expected[i]; i++)
        roles[i] = twi_op_role(twi_op_find(op), attrs, i);
    assert_string_equal(roles, expected);
}

static void a_list_has_one_role_for_all_its_inputs(void **state)
{
    (void)state;
    tw_dtype types[3] = {TW_FLOAT32, TW_FLOAT16, TW_FLOAT32};
    tw_attr many[] = {tw_attr_int("N", 2), tw_attr_int("S", 4),  tw_attr_int("K", 3), tw_attr_types("G", types, 3),
                      tw_attr_int("D", 1), tw_attr_int("L", 0)};
    tw_attr scalars[] = {tw_attr_types("Tin", types, 0), tw_attr_int("N", 2)};
    expect_roles("_ApplyMany", &(twi_attrs){many, 6}, "uussssnnngggd.");
    expect_roles("_Scalars", &(twi_attrs){scalars, 2}, "uu.");
    expect_roles("ResourceApplyMomentum", &(twi_attrs){0}, "usngn.");
    expect_roles("MatMul", &(twi_attrs){0}, "..");
}

/* ---- resources ------------------------------------------------------------------------------------------------- */

static void check_maker(const twi_op *op, const twi_signature *s)
{
    bool handle = s->num_outputs == 1 && s->outputs[0].dtype == TW_RESOURCE;
    bool variable = op->makes == TWI_MAKES_VARIABLE || op->makes == TWI_MAKES_DATA_SET;
    bool reference = s->num_outputs == 1 && s->outputs[0].is_ref;
    bool told = op->makes == TWI_MAKES_TABLE; /* a dense table is told which keys nobody has */
    bool makes = (s->num_inputs == 0 || told) && (handle || reference);
    if (op->makes == TWI_MAKES_SERIES)
        return expect(s->num_outputs > 0 && s->outputs[0].dtype == TW_RESOURCE, op, "gives what it makes first");
    if (op->makes == TWI_MAKES_RECIPE || op->makes == TWI_MAKES_ITERATOR)
        return expect(s->outputs[0].dtype == TW_RESOURCE && twi_op_is(op, TWI_STATEFUL), op, "gives what it makes");
    expect(makes == (op->makes != TWI_MAKES_NOTHING), op, "says what it makes");
    expect(!makes || twi_op_is(op, TWI_STATEFUL), op, "who makes a resource is stateful");
    bool nameless = strncmp(op->name, "Anonymous", strlen("Anonymous")) == 0; /* another one in each run */
    expect(!makes || has_attr(s, "shared_name") != nameless, op, "what is made may have a name");
    expect(!variable || (has_attr(s, "dtype") && has_attr(s, "shape")), op, "a variable has a type and a shape");
    expect(!makes || variable || handle, op, "references are of variables");
}

static void who_makes_a_resource_says_which(void **state)
{
    (void)state;
    each_row(check_maker);
}

/* An attribute of a form by handles: of the same name, or the type of the variable, which has two names. */
static bool can_say(const twi_signature *s, const char *name)
{
    bool type = strcmp(name, "dtype") == 0 || strcmp(name, "T") == 0;
    return has_attr(s, name) || (type && (has_attr(s, "dtype") || has_attr(s, "T")));
}

static void check_form(const twi_op *op, const twi_signature *s)
{
    const twi_op *form = twi_op_find(twi_op_planned(op));
    bool refers = strstr(op->inputs, "Ref(") || strstr(op->outputs, "Ref(");
    expect(form != NULL, op, "the op that stands for it in a plan is there");
    expect(!refers || form != op, op, "plans have no references");
    expect(form == op || !form->planned_as, op, "the op that stands for it in a plan stands for itself");
    const twi_signature *planned = twi_op_signature(form);
    assert_non_null(planned);
    if (twi_op_is(op, TWI_SWITCH | TWI_MERGE | TWI_LOOP_COND)) /* of them the form lends its kernels */
        return;
    expect(planned->num_inputs == s->num_inputs || planned->num_inputs == 0, op,
           "its form takes what it takes, or nothing");
    for (int i = 0; i < planned->num_inputs; i++)
        expect(role_of(op, i) == role_of(form, i), op, "its form's inputs have the roles of its own");
    for (int i = 0; i < planned->num_attrs && !twi_op_is(form, TWI_RESTORE); i++)
        expect(planned->attrs[i].has_default || can_say(s, planned->attrs[i].name), op,
               "knows what its form must know");
}

static void forms_in_plans_are_there_and_do_the_same(void **state)
{
    (void)state;
    each_row(check_form);
    assert_string_equal(twi_op_planned(twi_op_find("Assign")), "AssignVariableOp");
    assert_string_equal(twi_op_planned(twi_op_find("MatMul")), "MatMul");
}

static void references_are_told_by_their_place(void **state)
{
    (void)state;
    const twi_op *momentum = twi_op_find("ApplyMomentum"), *is = twi_op_find("IsVariableInitialized");
    assert_true(twi_op_takes_reference(momentum, &(twi_attrs){0}, 1));
    assert_false(twi_op_takes_reference(momentum, &(twi_attrs){0}, 2));
    assert_false(twi_op_takes_reference(momentum, &(twi_attrs){0}, 5));
    assert_true(twi_op_gives_reference(momentum, &(twi_attrs){0}, 0));
    assert_true(twi_op_takes_reference(is, &(twi_attrs){0}, 0));
    assert_false(twi_op_gives_reference(is, &(twi_attrs){0}, 0));
}

/* ---- flags ------------------------------------------------------------------------------------------------------ */

static bool same_type(const twi_argument *a, const twi_argument *b)
{
    const char *x = a->list_attr ? a->list_attr : a->type_attr, *y = b->list_attr ? b->list_attr : b->type_attr;
    return a->dtype == b->dtype && !a->is_ref == !b->is_ref && (x == y || (x && y && strcmp(x, y) == 0));
}

static void check_passing(const twi_op *op, const twi_signature *s)
{
    if (!twi_op_is(op, TWI_PASSES))
        return;
    expect(s->num_outputs == 1 && s->num_inputs == 1, op, "passes one argument on");
    expect(same_type(&s->outputs[0], &s->inputs[0]), op, "what is passed on keeps its type");
    expect(!twi_op_is(op, TWI_STATEFUL) && !twi_op_is(op, TWI_ELEMENTWISE), op, "does nothing else");
}

static void check_commutative(const twi_op *op, const twi_signature *s)
{
    for (int i = 1; i < s->num_inputs && twi_op_is(op, TWI_COMMUTATIVE); i++)
        expect(same_type(&s->inputs[0], &s->inputs[i]), op, "inputs that change places have one type");
}

/* Two inputs for a list, all of one shape: so is the output. */
static void check_elementwise(const twi_op *op, const twi_signature *s)
{
    tw_shape shapes[4], output = TW_UNKNOWN_SHAPE;
    tw_tensor *values[4] = {NULL};
    tw_error error = {0};
    twi_attrs attrs = {0};
    int count = s->num_inputs == 1 && is_list(&s->inputs[0]) ? 2 : s->num_inputs;
    if (!twi_op_is(op, TWI_ELEMENTWISE))
        return;
    assert_in_range(count, 1, 4);
    for (int i = 0; i < count; i++)
        shapes[i] = TW_SHAPE(2, 3, 5);
    twi_inference context = {.op = op, .node = "x", .attrs = &attrs, .num_inputs = count, .inputs = shapes,
                             .input_values = values, .num_outputs = 1, .outputs = &output, .error = &error};
    expect(s->num_outputs == 1 && !op->roles, op, "gives one tensor, and takes no handles");
    assert_int_equal(op->shape(&context), TW_OK);
    expect(tw_shape_equal(output, shapes[0]), op, "the output has the shape of the inputs");
}

static void check_reduction(const twi_op *op, const twi_signature *s)
{
    if (!twi_op_is(op, TWI_REDUCES))
        return;
    expect(s->num_inputs == 2 && s->num_outputs == 1 && has_attr(s, "keep_dims"), op, "has axes, and may keep them");
    expect(same_type(&s->inputs[0], &s->outputs[0]), op, "keeps the type");
}

static void check_metadata(const twi_op *op, const twi_signature *s)
{
    if (!twi_op_is(op, TWI_METADATA))
        return;
    expect(s->num_inputs == 1 && s->num_outputs == 1, op, "one argument, told of by one");
    expect(is_list(&s->inputs[0]) == is_list(&s->outputs[0]), op, "tells of each input");
    expect(!op->roles || strcmp(op->roles, "h") == 0, op, "needs no value");
}

static void check_sources(const twi_op *op, const twi_signature *s)
{
    bool source = twi_op_is(op, TWI_CONSTANT) || twi_op_is(op, TWI_PLACEHOLDER) || twi_op_is(op, TWI_FEED);
    expect(!source || (s->num_inputs == 0 && s->num_outputs == 1), op, "gives one tensor out of nothing");
    expect(!twi_op_is(op, TWI_CONSTANT) || has_attr(s, "value"), op, "a constant has its value");
    expect(!(twi_op_is(op, TWI_PLACEHOLDER) || twi_op_is(op, TWI_FEED)) || twi_op_is(op, TWI_STATEFUL), op,
           "what is fed may differ from run to run");
    bool into_variables = op->roles && strchr(op->roles, 'w');
    expect(!twi_op_is(op, TWI_INPUT) || s->num_outputs > 0 || into_variables, op, "input is something");
    expect(!twi_op_is(op, TWI_COLLECTIVE) || (twi_op_is(op, TWI_STATEFUL) && has_attr(s, "shared_name")), op,
           "members of a collective know each other");
    expect(twi_op_is(op, TWI_REWRITTEN) == (op->name[0] == '_'), op, "ops of ours begin with '_', and they alone");
}

static void flags_fit_signatures(void **state)
{
    (void)state;
    each_row(check_passing);
    each_row(check_commutative);
    each_row(check_elementwise);
    each_row(check_reduction);
    each_row(check_metadata);
    each_row(check_sources);
}

/* ---- flags and kernels ------------------------------------------------------------------------------------------- */

enum { ELEMENTS = 30, CHANGED = 17 };

/* What an argument is given: floats, if it takes them, or else whole or complex numbers. */
static tw_dtype type_for(const twi_signature *s, const twi_argument *argument)
{
    for (int i = 0; i < s->num_attrs && argument->type_attr; i++)
        if (strcmp(s->attrs[i].name, argument->type_attr) == 0 && s->attrs[i].allowed_types)
            return s->attrs[i].allowed_types >> TW_FLOAT32 & 1 ? TW_FLOAT32
                   : s->attrs[i].allowed_types >> TW_INT32 & 1 ? TW_INT32
                                                               : TW_COMPLEX64;
    return argument->dtype == TW_BOOL ? TW_BOOL : TW_FLOAT32;
}

/* Input i of an op: truths, whole numbers, or numbers between 0.1 and 0.7, of which one may be another. */
static tw_tensor *make_input(const twi_signature *s, const twi_argument *argument, int i, bool change)
{
    tw_dtype dtype = type_for(s, argument);
    tw_tensor *tensor = tw_tensor_create(dtype, TW_SHAPE(2, 3, 5));
    assert_non_null(tensor);
    for (int k = 0; k < ELEMENTS; k++)
        if (dtype == TW_BOOL)
            ((bool *)tensor->data)[k] = (k % 2 == 0) != (change && k == CHANGED);
        else if (dtype == TW_INT32)
            ((int32_t *)tensor->data)[k] = change && k == CHANGED ? ~(k + 15 * i + 1) : k + 15 * i + 1;
        else if (dtype == TW_COMPLEX64)
            ((float *)tensor->data)[2 * k] = ((float *)tensor->data)[2 * k + 1] = change && k == CHANGED ? 3 : (float)k;
        else
            ((float *)tensor->data)[k] = 0.1f + 0.01f * (float)(k + 15 * i) + (change && k == CHANGED ? 0.3f : 0);
    return tensor;
}

/* Runs the op on inputs of which number `changed` is another in one element; -1: none. */
static twt_op run_row(const twi_op *op, const twi_signature *s, int changed)
{
    tw_error error = {0};
    twt_op run = {.op = op->name, .plain = true};
    int count = s->num_inputs == 1 && is_list(&s->inputs[0]) ? 2 : s->num_inputs;
    for (int i = 0; i < count; i++)
        run.inputs[run.num_inputs++] = make_input(s, &s->inputs[s->num_inputs == 1 ? 0 : i], i, i == changed);
    if (has_attr(s, "DstT"))
        run.attrs[run.num_attrs++] = tw_attr_type("DstT", TW_FLOAT16);
    if (has_attr(s, "shape"))
        run.attrs[run.num_attrs++] = tw_attr_shape("shape", TW_SHAPE(2, 3, 5));
    if (twt_op_run(&run, &error) != TW_OK)
        fail_msg("%s: %s", op->name, error.message);
    return run;
}

static int ops_run;

static void check_that_elements_stay_apart(const twi_op *op, const twi_signature *s)
{
    if (!twi_op_is(op, TWI_ELEMENTWISE))
        return;
    twt_op before = run_row(op, s, -1);
    for (int i = 0; i < before.num_inputs; i++) {
        twt_op after = run_row(op, s, i);
        size_t size = tw_dtype_size(after.outputs[0]->dtype);
        for (size_t k = 0; k < ELEMENTS; k++)
            if (k != CHANGED && memcmp((char *)before.outputs[0]->data + k * size,
                                       (char *)after.outputs[0]->data + k * size, size) != 0)
                fail_msg("%s: element %d of input %d changes element %zu of the output", op->name, CHANGED, i, k);
        twt_op_release(&after);
    }
    twt_op_release(&before);
    ops_run++;
}

static void an_elementwise_op_changes_what_was_changed_and_nothing_else(void **state)
{
    (void)state;
    ops_run = 0;
    each_row(check_that_elements_stay_apart);
    assert_true(ops_run > 60);
}

static void check_that_it_passes(const twi_op *op, const twi_signature *s)
{
    if (!twi_op_is(op, TWI_PASSES) || op->planned_as)
        return;
    twt_op run = run_row(op, s, -1);
    for (int i = 0; i < run.num_outputs; i++)
        if (memcmp(run.outputs[i]->data, run.inputs[i]->data, tw_tensor_bytes(run.inputs[i])) != 0)
            fail_msg("%s: output %d is not input %d", op->name, i, i);
    twt_op_release(&run);
    ops_run++;
}

static void what_is_passed_on_stays_what_it_is(void **state)
{
    (void)state;
    ops_run = 0;
    each_row(check_that_it_passes);
    assert_true(ops_run >= 4);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* The types by which a kernel of the op is chosen; 0: any, or the node's attributes decide which attribute that is. */
static uint64_t types_chosen_by(const twi_signature *s)
{
    const char *const names[] = {"dtype", "T"};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < s->num_attrs; i++)
            if (strcmp(s->attrs[i].name, names[k]) == 0 && s->attrs[i].kind == TW_ATTR_TYPE)
                return s->attrs[i].allowed_types;
    return 0;
}

static void a_kernel_takes_no_type_that_its_op_refuses(void **state)
{
    (void)state;
    int count = 0;
    for (const twi_kernel *const *family = twi_cpu_kernels; *family; family++)
        for (const twi_kernel *k = *family; k->op; k++) {
            assert_non_null(twi_op_find(k->op));
            const twi_signature *s = twi_op_signature(twi_op_find(k->op));
            assert_non_null(s);
            uint64_t types = types_chosen_by(s);
            if (types && k->types && !(k->types & types)) {
                for (int t = 0; t < 64; t++)
                    if (k->types >> t & 1)
                        printf("%s: the kernel for %s is out of reach\n", k->op, tw_dtype_name((tw_dtype)t));
                count++;
            }
        }
    assert_int_equal(count, 0);
}

/* ---- what anybody may ask -------------------------------------------------------------------------------------- */

static void what_a_node_is_can_be_asked_without_its_name(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_node *constant = tw_scalar(g, 1).node, *fed = tw_placeholder(g, TW_FLOAT32, TW_SCALAR).node;
    tw_attr attrs[] = {tw_attr_type("dtype", TW_FLOAT32), tw_attr_shape("shape", TW_SHAPE(2))};
    tw_node *variable = tw_get_variable(g, "v", TW_FLOAT32, TW_SHAPE(2), (tw_initializer){0})->handle.node;
    tw_node *reference = tw_add_node(g, "VariableV2", "old", NULL, 0, attrs, 2);
    assert_string_equal(tw_graph_message(g), "");
    assert_true(tw_node_is_constant(constant) && !tw_node_is_constant(fed));
    assert_true(tw_node_is_placeholder(fed) && !tw_node_is_placeholder(constant));
    assert_true(tw_node_is_variable(variable) && tw_node_is_variable(reference) && !tw_node_is_variable(fed));
    assert_false(tw_node_is_unknown(fed));
    tw_graph_destroy(g);
}

static void a_group_of_several_devices_is_refused(void **state)
{
    (void)state;
    tw_graph *g = tw_graph_create();
    tw_output inputs[4] = {tw_scalar(g, 1)};
    for (int i = 1; i < 4; i++)
        inputs[i] = tw_constant_int32s(g, TW_SCALAR, (int32_t[]){2});
    tw_attr attrs[] = {tw_attr_string("merge_op", "Add"), tw_attr_string("final_op", "Id")};
    assert_null(tw_add_node(g, "CollectiveReduceV2", "several", inputs, 4, attrs, 2));
    assert_int_equal(tw_graph_status(g), TW_UNIMPLEMENTED);
    assert_non_null(strstr(tw_graph_message(g), "a group of 2 devices; expected one of 1"));
    tw_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_can_be_parsed_and_no_name_is_taken_twice),
        cmocka_unit_test(every_input_has_a_role_that_fits_its_type),
        cmocka_unit_test(updates_have_a_variable_and_who_writes_is_stateful),
        cmocka_unit_test(a_list_has_one_role_for_all_its_inputs),
        cmocka_unit_test(who_makes_a_resource_says_which),
        cmocka_unit_test(forms_in_plans_are_there_and_do_the_same),
        cmocka_unit_test(references_are_told_by_their_place),
        cmocka_unit_test(flags_fit_signatures),
        cmocka_unit_test(an_elementwise_op_changes_what_was_changed_and_nothing_else),
        cmocka_unit_test(what_is_passed_on_stays_what_it_is),
        cmocka_unit_test(a_kernel_takes_no_type_that_its_op_refuses),
        cmocka_unit_test(what_a_node_is_can_be_asked_without_its_name),
        cmocka_unit_test(a_group_of_several_devices_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
