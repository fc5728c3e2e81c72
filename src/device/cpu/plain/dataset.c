/* dataset.c - nodes of data sets, iterators and optionals; device/dataset/ does the work. */
#include "base/array.h"
#include "device/device.h"
#include "device/dataset/kinds.h"
#include "device/state/table.h"
#include "tensor/variant.h"

#include <stdio.h>
#include <string.h>

/* ---- data sets --------------------------------------------------------------------------------------------------- */

/* What the node's attributes say. */
typedef struct making {
    const twi_recipe_kind *kind;
    twi_function *functions[TWI_RECIPE_FUNCTIONS];
    int lists[TWI_RECIPE_LISTS];
    int num_components;
    int64_t rows;
    bool flag;
    tw_dtype types[TWI_ELEMENT];
    char node[600];
} making;

static tw_status find_function(const twi_prepare *p, const char *attr, twi_function **function)
{
    const char *name = twi_attr_string(p->attrs, attr, "");
    twi_resource *door = p->resources ? p->resources->get(p->resources, TWI_FUNCTIONS) : NULL;
    twi_function_table *table = door ? door->object : NULL;
    if (!table)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s': there are no functions here", p->op, p->node);
    return table->find(table, name, function, p->error);
}

static int length_of(const twi_prepare *p, const char *attr)
{
    const twi_attr *found = twi_attr_find(p->attrs, attr);
    return !found ? 0 : found->kind == TW_ATTR_INT ? (int)found->i : found->count;
}

static tw_status read_types(const twi_prepare *p, making *m)
{
    const twi_attr *types = twi_attr_find(p->attrs, "output_types"), *shapes = twi_attr_find(p->attrs, "output_shapes");
    if (!types)
        types = twi_attr_find(p->attrs, "Toutput_types");
    m->num_components = types ? types->count : 1;
    m->types[0] = TW_STRING;
    if (strcmp(p->op, "SparseTensorSliceDataset") == 0) {
        m->num_components = 3;
        m->types[0] = m->types[2] = TW_INT64;
        m->types[1] = twi_attr_type(p->attrs, "Tvalues");
    }
    if (m->num_components < 1 || m->num_components > TWI_ELEMENT)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s': elements have %d components, expected 1 to %d", p->op,
                        p->node, m->num_components, TWI_ELEMENT);
    for (int i = 0; types && i < types->count; i++)
        m->types[i] = types->types[i];
    m->rows = -1;
    for (int i = 0; shapes && i < shapes->count && m->rows < 0; i++)
        m->rows = shapes->shapes[i].rank > 0 ? shapes->shapes[i].dims[0] : -1;
    return TW_OK;
}

/* state: what is to be made. */
static tw_status prepare_recipe(twi_prepare *p)
{
    making m = {.kind = twi_recipe_find(p->op)};
    tw_status status = twi_slot_make(p->outputs[0].resource, p->node, p->error);
    snprintf(m.node, sizeof m.node, "%s", p->node);
    for (int i = 0; i < TWI_RECIPE_FUNCTIONS && m.kind->functions[i] && status == TW_OK; i++)
        status = find_function(p, m.kind->functions[i], &m.functions[i]);
    for (int i = 0; i < TWI_RECIPE_LISTS && m.kind->lists[i]; i++)
        m.lists[i] = length_of(p, m.kind->lists[i]);
    if (m.kind->flag)
        m.flag = twi_attr_bool(p->attrs, m.kind->flag, strcmp(m.kind->flag, "reshuffle_each_iteration") == 0);
    if (status == TW_OK)
        status = read_types(p, &m);
    return status == TW_OK ? twi_keep(p, &m, sizeof m) : status;
}

/* An input as the recipe keeps it. NULL with TW_OK: a resource that is no recipe. */
static tw_status keep_input(const twi_run *r, int i, tw_tensor **kept)
{
    const twi_operand *in = &r->input_operands[i];
    *kept = NULL;
    if (in->dtype != TW_RESOURCE)
        *kept = tw_tensor_from(in->dtype, in->shape, r->inputs[i]);
    else if (twi_is_slot(in->resource))
        *kept = twi_slot_get(in->resource);
    return *kept || in->dtype == TW_RESOURCE ? TW_OK : twi_fail_memory(r->error, r->node);
}

/* Whether input i has to be a data set. */
static bool wants_recipe(const twi_run *r, const twi_recipe_kind *kind, int i)
{
    return r->input_operands[i].dtype == TW_RESOURCE && twi_is_slot(r->input_operands[i].resource) &&
           (i < 1 || i < kind->before || !kind->lists[0]);
}

/* A graph may be hostile: elements come by calls in each other, and a data set that is zipped with itself doubles. */
static tw_status measure(twi_recipe *made, tw_error *error)
{
    enum { DEEPEST = 1000, MOST_PARTS = 1 << 20 };
    int64_t parts = 1;
    for (int i = 0; i < made->num_arguments; i++) {
        const twi_recipe *input = twi_recipe_of(made->arguments[i]);
        parts += input ? input->parts : 0;
        made->depth = input && input->depth >= made->depth ? input->depth + 1 : made->depth;
    }
    if (made->depth > DEEPEST || parts > MOST_PARTS)
        return twi_fail(error, TW_RESOURCE_EXHAUSTED,
                        "data sets lie in each other %d deep, and are %lld in all; expected at most %d and %d",
                        made->depth, (long long)parts, DEEPEST, MOST_PARTS);
    made->parts = (int)parts;
    return TW_OK;
}

/* Who passes elements on has room for as many components as it says it has. */
static tw_status expect_components(const twi_run *r, const twi_recipe *made, int i)
{
    const twi_recipe *input = twi_recipe_of(made->arguments[i]);
    if (!input || i < made->kind->passes || input->num_components == made->num_components)
        return TW_OK;
    return twi_fail(r->error, TW_INVALID_ARGUMENT, "input %d of '%s' has elements of %d components, expected %d", i,
                    r->node, input->num_components, made->num_components);
}

static tw_status run_recipe(const twi_run *r)
{
    const making *m = r->state;
    tw_status status = TW_OK;
    twi_recipe *made = twi_recipe_make(m->kind, m->node, r->num_inputs, m->num_components);
    if (!made)
        return twi_fail_memory(r->error, r->node);
    memcpy(made->types, m->types, sizeof *m->types * (size_t)m->num_components);
    memcpy(made->functions, m->functions, sizeof m->functions);
    memcpy(made->lists, m->lists, sizeof m->lists);
    made->flag = m->flag;
    made->rows = m->rows;
    for (int i = 0; i < r->num_inputs && status == TW_OK; i++) {
        status = keep_input(r, i, &made->arguments[i]);
        bool is_seed = i > 0 && (!made->arguments[i] || twi_is_seeds(made->arguments[i]));
        if (status == TW_OK && wants_recipe(r, m->kind, i) && !is_seed && !twi_recipe_of(made->arguments[i]))
            status = twi_fail(r->error, TW_INVALID_ARGUMENT, "input %d of '%s' is not a data set", i, r->node);
        if (status == TW_OK && wants_recipe(r, m->kind, i))
            status = expect_components(r, made, i);
    }
    if (status == TW_OK)
        status = measure(made, r->error);
    if (status == TW_OK && m->kind->check)
        status = m->kind->check(made, r->error);
    if (status != TW_OK) {
        twi_recipe_free(made);
        return status;
    }
    tw_tensor *value = twi_variant(made, twi_recipe_free);
    if (!value)
        return twi_fail_memory(r->error, r->node);
    twi_slot_put(r->output_operands[0].resource, value);
    return TW_OK;
}

static tw_status prepare_slot(twi_prepare *p)
{
    return twi_slot_make(p->outputs[0].resource, p->node, p->error);
}

static tw_status do_nothing(const twi_run *r)
{
    (void)r;
    return TW_OK;
}

static tw_status run_seeds(const twi_run *r)
{
    const int64_t *seed = r->inputs[0], *seed2 = r->inputs[1];
    tw_tensor *made = NULL;
    tw_status status = twi_seeds_make(*seed, *seed2, *(const bool *)r->inputs[2], &made, r->error);
    if (status == TW_OK)
        twi_slot_put(r->output_operands[0].resource, made);
    return status;
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

/* Hands an element to the outputs, and drops it. */
static tw_status give(const twi_run *r, tw_tensor **element)
{
    tw_status status = TW_OK;
    for (int i = 0; i < r->num_outputs && status == TW_OK; i++) {
        const twi_operand *out = &r->output_operands[i];
        char has[128], wants[128];
        void *data;
        if (element[i]->dtype != out->dtype)
            status = twi_fail(r->error, TW_INVALID_ARGUMENT, "component %d is %s, expected %s", i,
                              tw_dtype_name(element[i]->dtype), tw_dtype_name(out->dtype));
        else if (!tw_shape_compatible(element[i]->shape, out->shape))
            status = twi_fail(
                r->error, TW_INVALID_ARGUMENT, "Incompatible shapes at component %d: expected %s but got %s.", i,
                tw_shape_text(out->shape, wants, sizeof wants), tw_shape_text(element[i]->shape, has, sizeof has));
        else if (out->elements < 0) { /* what was made is handed on as it is */
            tw_tensor_release(*(tw_tensor **)r->outputs[i]);
            *(tw_tensor **)r->outputs[i] = element[i];
            element[i] = NULL;
        } else if ((status = twi_make_output(r, i, element[i]->shape, &data)) == TW_OK) {
            tw_string *to = data;
            const tw_string *from = element[i]->data;
            if (out->dtype != TW_STRING)
                memcpy(data, from, tw_tensor_bytes(element[i]));
            for (int64_t k = 0; out->dtype == TW_STRING && k < out->elements && status == TW_OK; k++)
                if (!twi_string_set(&to[k], from[k].data, from[k].size))
                    status = twi_fail_memory(r->error, r->node);
        }
    }
    twi_element_drop(element, r->num_outputs);
    return status;
}

static tw_status prepare_element(twi_prepare *p)
{
    if (p->num_outputs > TWI_ELEMENT)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s': elements have %d components, expected at most %d", p->op,
                        p->node, p->num_outputs, TWI_ELEMENT);
    for (int i = 0; i < p->num_outputs; i++)
        if (p->outputs[i].dtype == TW_RESOURCE)
            return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s' gives data sets, which nobody can take here", p->op,
                            p->node);
    p->varies = true;
    return TW_OK;
}

/* ---- iterators --------------------------------------------------------------------------------------------------- */

/* Iterators of a session by name, for handles that are texts. */
#define ITERATORS "iterators"

typedef struct named {
    pthread_mutex_t lock;
    twi_resource **items;
    int count, capacity;
} named;

static void destroy_named(void *object)
{
    named *all = object;
    pthread_mutex_destroy(&all->lock);
    twi_free(all->items);
    twi_free(all);
}

static named *find_named(twi_prepare *p)
{
    twi_resource *r = p->resources ? p->resources->get(p->resources, ITERATORS) : NULL;
    if (r && !r->object && (r->object = twi_alloc(sizeof(named)))) {
        pthread_mutex_init(&((named *)r->object)->lock, NULL);
        r->destroy = destroy_named;
    }
    return r ? r->object : NULL;
}

static bool note_iterator(named *all, twi_resource *iterator)
{
    bool known = false, fits = true;
    pthread_mutex_lock(&all->lock);
    for (int i = 0; i < all->count && !known; i++)
        known = all->items[i] == iterator;
    if (!known)
        fits = all->count < all->capacity ||
               twi_array_grow((void **)&all->items, &all->capacity, all->count + 1, sizeof(twi_resource *));
    if (!known && fits)
        all->items[all->count++] = iterator;
    pthread_mutex_unlock(&all->lock);
    return fits;
}

static tw_status prepare_iterator(twi_prepare *p)
{
    twi_function *factory = NULL;
    twi_resource *iterator = p->outputs[0].resource;
    named *all = find_named(p);
    tw_status status = TW_OK;
    if (twi_attr_find(p->attrs, "dataset_factory"))
        status = find_function(p, "dataset_factory", &factory);
    if (status == TW_OK)
        status = twi_iterator_make(iterator, twi_attr_find(p->attrs, "output_types"),
                                   twi_attr_find(p->attrs, "output_shapes"), factory, p->error);
    if (status != TW_OK)
        twi_prefix(p->error, "%s '%s'", p->op, p->node);
    else if (!all || !note_iterator(all, iterator))
        status = twi_fail_memory(p->error, p->node);
    return status;
}

static tw_status prepare_use(twi_prepare *p)
{
    int input = strcmp(p->op, "MakeIterator") == 0;
    if (!twi_is_iterator(p->inputs[input].resource))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input %d is not the handle of an iterator", p->op,
                        p->node, input);
    return prepare_element(p);
}

static tw_status run_make(const twi_run *r)
{
    tw_tensor *recipe = twi_is_slot(r->input_operands[0].resource) ? twi_slot_get(r->input_operands[0].resource) : NULL;
    tw_status status = twi_iterator_start(r->input_operands[1].resource, recipe, r->error);
    tw_tensor_release(recipe);
    return status;
}

static tw_status run_next(const twi_run *r)
{
    tw_tensor *element[TWI_ELEMENT] = {0};
    twi_pull pull = {.ending = r->ending, .error = r->error};
    tw_status status = twi_iterator_next(r->input_operands[0].resource, &pull, element, r->num_outputs);
    if (status == TW_OK && pull.end)
        return twi_fail(r->error, TW_OUT_OF_RANGE, "End of sequence");
    return status == TW_OK ? give(r, element) : status;
}

static tw_status run_to_handle(const twi_run *r)
{
    const char *name = twi_iterator_name(r->input_operands[0].resource);
    return twi_string_set(r->outputs[0], name, strlen(name)) ? TW_OK : twi_fail_memory(r->error, r->node);
}

/* state: the iterators, which the session owns. */
static tw_status prepare_from_handle(twi_prepare *p)
{
    p->state = find_named(p);
    if (!p->state)
        return twi_fail_memory(p->error, p->node);
    tw_status status = twi_iterator_make(p->outputs[0].resource, NULL, NULL, NULL, p->error);
    if (status == TW_OK && p->inputs[0].elements != 1)
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': the handle is not a scalar", p->op, p->node);
    return status;
}

static tw_status run_from_handle(const twi_run *r)
{
    named *all = r->state;
    const tw_string *handle = r->inputs[0];
    twi_resource *found = NULL;
    pthread_mutex_lock(&all->lock);
    for (int i = 0; i < all->count && !found; i++)
        if (strlen(all->items[i]->name) == handle->size && memcmp(all->items[i]->name, handle->data, handle->size) == 0)
            found = all->items[i];
    pthread_mutex_unlock(&all->lock);
    if (!found)
        return twi_fail(
            r->error, TW_INVALID_ARGUMENT,
            "string_handle '%.*s' is not of an iterator of this session: expected what IteratorToStringHandle gave",
            (int)handle->size, handle->data ? handle->data : "");
    twi_iterator_stand_for(r->output_operands[0].resource, found);
    return TW_OK;
}

/* ---- optionals --------------------------------------------------------------------------------------------------- */

/* state: how many components an element has. */
static tw_status prepare_next_optional(twi_prepare *p)
{
    const twi_attr *types = twi_attr_find(p->attrs, "output_types");
    if (types->count > TWI_ELEMENT)
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s': elements have %d components, expected at most %d", p->op,
                        p->node, types->count, TWI_ELEMENT);
    if (!twi_is_iterator(p->inputs[0].resource))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input 0 is not the handle of an iterator", p->op,
                        p->node);
    return twi_keep(p, &types->count, sizeof types->count);
}

/* A list of the element's components; none at the end. */
static tw_status run_next_optional(const twi_run *r)
{
    tw_tensor *element[TWI_ELEMENT] = {0};
    twi_pull pull = {.ending = r->ending, .error = r->error};
    twi_tensor_list **optional = r->outputs[0], *made = NULL;
    const int *count = r->state;
    tw_status status = twi_iterator_next(r->input_operands[0].resource, &pull, element, *count);
    if (status != TW_OK)
        return status;
    if (!pull.end && !(made = twi_tensor_list_create(*count))) {
        twi_element_drop(element, *count);
        return twi_fail_memory(r->error, r->node);
    }
    bool fits = true;
    for (int i = 0; i < *count && made; i++)
        fits = twi_tensor_list_put(made, i, element[i]) && fits;
    if (!fits) {
        twi_tensor_list_release(made);
        return twi_fail_memory(r->error, r->node);
    }
    twi_tensor_list_release(*optional);
    *optional = made;
    return TW_OK;
}

/* ---- whole data sets --------------------------------------------------------------------------------------------- */

/* An iteration that ends with the step. */
typedef struct passing {
    twi_monitor monitor;
    twi_iteration *iteration;
} passing;

static tw_status prepare_of_slot(twi_prepare *p)
{
    if (!twi_is_slot(p->inputs[0].resource))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input 0 is not the handle of a data set", p->op,
                        p->node);
    return prepare_element(p);
}

/* The recipe in input 0's slot: a reference. */
static tw_status get_recipe(const twi_run *r, tw_tensor **value, twi_recipe **recipe)
{
    *value = twi_slot_get(r->input_operands[0].resource);
    *recipe = twi_recipe_of(*value);
    return *recipe ? TW_OK : twi_fail(r->error, TW_INVALID_ARGUMENT, "input 0 of '%s' is not a data set", r->node);
}

static tw_status prepare_count(twi_prepare *p)
{
    if (*twi_attr_string(p->attrs, "cardinality_options", ""))
        return twi_fail(p->error, TW_UNIMPLEMENTED, "%s '%s': cardinality_options are not supported, expected none",
                        p->op, p->node);
    return prepare_of_slot(p);
}

static tw_status run_count(const twi_run *r)
{
    tw_tensor *value;
    twi_recipe *recipe;
    tw_status status = get_recipe(r, &value, &recipe);
    if (status == TW_OK)
        *(int64_t *)r->outputs[0] = twi_recipe_count(recipe);
    tw_tensor_release(value);
    return status;
}

static tw_status run_at(const twi_run *r)
{
    tw_tensor *value, *element[TWI_ELEMENT] = {0};
    twi_recipe *recipe;
    tw_status status = get_recipe(r, &value, &recipe);
    if (status == TW_OK && recipe->num_components != r->num_outputs)
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "elements have %d components, %d are asked for",
                          recipe->num_components, r->num_outputs);
    if (status == TW_OK)
        status = twi_recipe_at(recipe, *(const int64_t *)r->inputs[1], element, r->error);
    tw_tensor_release(value);
    return status == TW_OK ? give(r, element) : status;
}

static tw_status begin_passing(const twi_run *r, int input, passing *s)
{
    tw_tensor *recipe = twi_slot_get(r->input_operands[input].resource);
    pthread_mutex_init(&s->monitor.lock, NULL);
    pthread_cond_init(&s->monitor.changed, NULL);
    s->iteration = NULL;
    tw_status status = twi_iteration_begin(recipe, &s->monitor, &s->iteration, r->error);
    tw_tensor_release(recipe);
    return status;
}

static void end_passing(passing *s)
{
    twi_iteration_end(s->iteration);
    pthread_cond_destroy(&s->monitor.changed);
    pthread_mutex_destroy(&s->monitor.lock);
}

static tw_status run_single(const twi_run *r)
{
    tw_tensor *element[TWI_ELEMENT] = {0}, *second[TWI_ELEMENT] = {0};
    twi_pull pull = {.ending = r->ending, .error = r->error};
    passing s;
    tw_status status = begin_passing(r, 0, &s);
    if (status == TW_OK && s.iteration->recipe->num_components != r->num_outputs)
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "elements have %d components, %d are asked for",
                          s.iteration->recipe->num_components, r->num_outputs);
    if (status == TW_OK)
        status = twi_iteration_next(s.iteration, &pull, element);
    if (status == TW_OK && pull.end)
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "Dataset was empty.");
    if (status == TW_OK)
        status = twi_iteration_next(s.iteration, &pull, second);
    if (status == TW_OK && !pull.end)
        status = twi_fail(r->error, TW_INVALID_ARGUMENT, "Dataset had more than one element.");
    twi_element_drop(second, TWI_ELEMENT);
    end_passing(&s);
    if (status == TW_OK)
        return give(r, element);
    twi_element_drop(element, TWI_ELEMENT);
    return status;
}

/* Inputs: a table, and the data set whose elements are its pairs. */
static tw_status prepare_table(twi_prepare *p)
{
    if (!twi_table_of(p->inputs[0].resource))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input 0 is not the handle of a table", p->op,
                        p->node);
    if (!twi_is_slot(p->inputs[1].resource))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its input 1 is not the handle of a data set", p->op,
                        p->node);
    return TW_OK;
}

static tw_status put_pair(const twi_run *r, twi_table *table, tw_tensor *const *pair)
{
    int64_t keys = tw_tensor_elements(pair[0]), wanted = keys * tw_shape_elements(twi_table_shape(table));
    if (tw_tensor_elements(pair[1]) != wanted)
        return twi_fail(r->error, TW_INVALID_ARGUMENT, "'%s': %lld values for %lld keys in an element", r->node,
                        (long long)tw_tensor_elements(pair[1]), (long long)keys);
    return twi_table_put(table, tw_tensor_data(pair[0]), tw_tensor_data(pair[1]), keys, true, r->error);
}

/* Once it is filled it stays so. */
static tw_status run_fill_table(const twi_run *r)
{
    twi_table *table = twi_table_of(r->input_operands[0].resource);
    tw_tensor *pair[TWI_ELEMENT] = {0};
    twi_pull pull = {.ending = r->ending, .error = r->error};
    passing s;
    if (twi_table_size(table))
        return TW_OK;
    tw_status status = begin_passing(r, 1, &s);
    const twi_recipe *recipe = status == TW_OK ? s.iteration->recipe : NULL;
    if (recipe && (recipe->num_components != 2 || recipe->types[0] != twi_table_key(table) ||
                   recipe->types[1] != twi_table_value(table)))
        status = twi_fail(r->error, TW_INVALID_ARGUMENT,
                          "'%s': elements of a data set that fills a table are a key of %s and a value of %s", r->node,
                          tw_dtype_name(twi_table_key(table)), tw_dtype_name(twi_table_value(table)));
    while (status == TW_OK) {
        status = twi_iteration_next(s.iteration, &pull, pair);
        if (status != TW_OK || pull.end)
            break;
        status = put_pair(r, table, pair);
        twi_element_drop(pair, 2);
    }
    end_passing(&s);
    if (status == TW_OK)
        status = twi_table_put(table, NULL, NULL, 0, false, r->error);
    else
        twi_table_clear(table); /* nor is it filled in part */
    return status;
}

/* state: the function. */
static tw_status prepare_reduce(twi_prepare *p)
{
    twi_function *f = NULL;
    tw_status status = prepare_of_slot(p);
    if (status == TW_OK)
        status = find_function(p, "f", &f);
    if (status == TW_OK && (f->num_results != p->num_outputs || length_of(p, "Tstate") != p->num_outputs))
        return twi_fail(p->error, TW_INVALID_ARGUMENT, "%s '%s': its function gives %d values for a state of %d", p->op,
                        p->node, f->num_results, p->num_outputs);
    p->state = f;
    return status;
}

/* Inputs: the data set, the first state, what is captured. given[] begins with the state. */
static tw_status run_reduce(const twi_run *r)
{
    twi_function *f = r->state;
    int states = r->num_outputs, captured = r->num_inputs - 1 - states;
    tw_tensor *given[2 * TWI_ELEMENT] = {0}, *kept[2 * TWI_ELEMENT] = {0}, *results[TWI_ELEMENT] = {0};
    twi_pull pull = {.ending = r->ending, .error = r->error};
    passing s;
    tw_status status = begin_passing(r, 0, &s);
    int width = status == TW_OK ? s.iteration->recipe->num_components : 0;
    if (status == TW_OK && states + width + captured > 2 * TWI_ELEMENT)
        status = twi_fail(r->error, TW_UNIMPLEMENTED, "a function of %d values", states + width + captured);
    for (int i = 0; i < states + captured && status == TW_OK; i++)
        status = keep_input(r, 1 + i, i < states ? &given[i] : &kept[i - states]);
    while (status == TW_OK) {
        status = twi_iteration_next(s.iteration, &pull, given + states);
        if (status != TW_OK || pull.end)
            break;
        memcpy(given + states + width, kept, sizeof *kept * (size_t)captured);
        status = f->call(f, given, states + width + captured, results, r->error);
        twi_element_drop(given, states + width);
        memcpy(given, results, sizeof *results * (size_t)(status == TW_OK ? states : 0));
        memset(results, 0, sizeof results);
    }
    end_passing(&s);
    twi_element_drop(kept, captured > 0 ? captured : 0);
    if (status == TW_OK)
        return give(r, given);
    twi_element_drop(given, states);
    return status;
}

#define RECIPE(op)                                                                                                     \
    {                                                                                                                  \
        op, "plain", 0, prepare_recipe, run_recipe, twi_free                                                           \
    }
#define ITERATOR(op)                                                                                                   \
    {                                                                                                                  \
        op, "plain", 0, prepare_iterator, do_nothing                                                                   \
    }

const twi_kernel twi_cpu_dataset_kernels[] = {
    RECIPE("RangeDataset"),
    RECIPE("TensorDataset"),
    RECIPE("TensorSliceDataset"),
    RECIPE("SparseTensorSliceDataset"),
    RECIPE("FixedLengthRecordDataset"),
    RECIPE("FixedLengthRecordDatasetV2"),
    RECIPE("TFRecordDataset"),
    RECIPE("TFRecordDatasetV2"),
    RECIPE("TextLineDataset"),
    RECIPE("OptionsDataset"),
    RECIPE("ModelDataset"),
    RECIPE("OptimizeDataset"),
    RECIPE("OptimizeDatasetV2"),
    RECIPE("RewriteDataset"),
    RECIPE("AutoShardDataset"),
    RECIPE("ExperimentalAutoShardDataset"),
    RECIPE("FinalizeDataset"),
    RECIPE("PrivateThreadPoolDataset"),
    RECIPE("ExperimentalPrivateThreadPoolDataset"),
    RECIPE("MaxIntraOpParallelismDataset"),
    RECIPE("ExperimentalMaxIntraOpParallelismDataset"),
    RECIPE("ThreadPoolDataset"),
    RECIPE("SetStatsAggregatorDataset"),
    RECIPE("LatencyStatsDataset"),
    RECIPE("BytesProducedStatsDataset"),
    RECIPE("NonSerializableDataset"),
    RECIPE("ExperimentalNonSerializableDataset"),
    RECIPE("AssertNextDataset"),
    RECIPE("ExperimentalAssertNextDataset"),
    RECIPE("IgnoreErrorsDataset"),
    RECIPE("ExperimentalIgnoreErrorsDataset"),
    RECIPE("RepeatDataset"),
    RECIPE("TakeDataset"),
    RECIPE("SkipDataset"),
    RECIPE("ShardDataset"),
    RECIPE("AssertCardinalityDataset"),
    RECIPE("ConcatenateDataset"),
    RECIPE("ZipDataset"),
    RECIPE("DirectedInterleaveDataset"),
    RECIPE("ExperimentalDirectedInterleaveDataset"),
    RECIPE("CSVDataset"),
    RECIPE("CSVDatasetV2"),
    RECIPE("ExperimentalCSVDataset"),
    RECIPE("CacheDataset"),
    RECIPE("CacheDatasetV2"),
    RECIPE("PrefetchDataset"),
    RECIPE("ShuffleDataset"),
    RECIPE("ShuffleDatasetV2"),
    RECIPE("ShuffleDatasetV3"),
    RECIPE("ShuffleAndRepeatDataset"),
    RECIPE("ShuffleAndRepeatDatasetV2"),
    RECIPE("SamplingDataset"),
    RECIPE("RandomDataset"),
    RECIPE("RandomDatasetV2"),
    RECIPE("BatchDataset"),
    RECIPE("BatchDatasetV2"),
    RECIPE("ParallelBatchDataset"),
    RECIPE("PaddedBatchDataset"),
    RECIPE("PaddedBatchDatasetV2"),
    RECIPE("UnbatchDataset"),
    RECIPE("ExperimentalUnbatchDataset"),
    RECIPE("RebatchDatasetV2"),
    RECIPE("UniqueDataset"),
    RECIPE("ExperimentalUniqueDataset"),
    RECIPE("WindowDataset"),
    RECIPE("MapDataset"),
    RECIPE("ParallelMapDataset"),
    RECIPE("ParallelMapDatasetV2"),
    RECIPE("MapAndBatchDataset"),
    RECIPE("ExperimentalMapAndBatchDataset"),
    RECIPE("FilterDataset"),
    RECIPE("TakeWhileDataset"),
    RECIPE("ExperimentalTakeWhileDataset"),
    RECIPE("ScanDataset"),
    RECIPE("ExperimentalScanDataset"),
    RECIPE("FlatMapDataset"),
    RECIPE("InterleaveDataset"),
    RECIPE("ParallelInterleaveDataset"),
    RECIPE("ParallelInterleaveDatasetV2"),
    RECIPE("ParallelInterleaveDatasetV3"),
    RECIPE("ParallelInterleaveDatasetV4"),
    RECIPE("LegacyParallelInterleaveDatasetV2"),
    RECIPE("ExperimentalParallelInterleaveDataset"),
    RECIPE("GroupByWindowDataset"),
    RECIPE("ExperimentalGroupByWindowDataset"),
    RECIPE("GroupByReducerDataset"),
    RECIPE("ExperimentalGroupByReducerDataset"),
    RECIPE("SnapshotDataset"),
    RECIPE("SnapshotDatasetV2"),
    RECIPE("DenseToSparseBatchDataset"),
    RECIPE("ExperimentalDenseToSparseBatchDataset"),
    RECIPE("ListDataset"),
    ITERATOR("IteratorV2"),
    ITERATOR("Iterator"),
    ITERATOR("OneShotIterator"),
    ITERATOR("AnonymousIterator"),
    ITERATOR("AnonymousIteratorV2"),
    ITERATOR("AnonymousIteratorV3"),
    {"DummyMemoryCache", "plain", 0, prepare_slot, do_nothing},
    {"DummySeedGenerator", "plain", 0, prepare_slot, do_nothing},
    {"AnonymousSeedGenerator", "plain", 0, prepare_slot, run_seeds},
    {"DeleteSeedGenerator", "plain", 0, NULL, do_nothing},
    {"DeleteIterator", "plain", 0, NULL, do_nothing}, /* they go with the session */
    {"MakeIterator", "plain", 0, prepare_use, run_make},
    {"IteratorGetNext", "plain", 0, prepare_use, run_next},
    {"IteratorGetNextSync", "plain", 0, prepare_use, run_next},
    {"IteratorToStringHandle", "plain", 0, prepare_use, run_to_handle},
    {"IteratorFromStringHandle", "plain", 0, prepare_from_handle, run_from_handle},
    {"IteratorFromStringHandleV2", "plain", 0, prepare_from_handle, run_from_handle},
    {"IteratorGetNextAsOptional", "plain", 0, prepare_next_optional, run_next_optional, twi_free},
    {"DatasetToSingleElement", "plain", 0, prepare_of_slot, run_single},
    {"DatasetCardinality", "plain", 0, prepare_count, run_count},
    {"ExperimentalDatasetCardinality", "plain", 0, prepare_count, run_count},
    {"GetElementAtIndex", "plain", 0, prepare_of_slot, run_at},
    {"ReduceDataset", "plain", 0, prepare_reduce, run_reduce},
    {"InitializeTableFromDataset", "plain", 0, prepare_table, run_fill_table},
    {"TowerVariant", "plain", 0, prepare_slot, do_nothing},
    {"TowerArgument", "plain", 0},
    {0},
};
