/* pattern.c - see pattern.h. Rows are read once a pass; a match is searched clause by clause, with a way back. */
#include "rewrite/pattern.h"

#include "base/hash.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

enum { ALTERNATIVES = 3, MOST_ARGUMENTS = 12, MOST_RESULTS = 8, MOST_PRODUCTS = 3, MOST_NAME = 16, ANY = -1 };

/* An argument: the first of these names that is there. */
typedef struct argument {
    int names[ALTERNATIVES]; /* ANY: whatever it is */
    int count;
    bool optional;
} argument;

/* A clause, or a node to be made. */
typedef struct clause {
    const twi_op *ops[ALTERNATIVES];
    int num_ops;
    argument arguments[MOST_ARGUMENTS], results[MOST_RESULTS];
    int num_arguments, num_results;
    bool optional, stays;
    bool open; /* "...": more inputs may follow */
} clause;

typedef struct pattern {
    const twi_fusion *row;
    char names[TWI_PATTERN_NAMES][MOST_NAME];
    int num_names;
    clause clauses[TWI_PATTERN_CLAUSES], products[MOST_PRODUCTS];
    int num_clauses, num_products;
} pattern;

struct twi_match {
    twi_rewriting *r;
    const pattern *p;
    twi_value values[TWI_PATTERN_NAMES];
    twi_node *nodes[TWI_PATTERN_CLAUSES];
};

/* ---- which ops there are ----------------------------------------------------------------------------------------- */

enum { MOST_OPS = 1024 }; /* a power of two, well above how many ops there are */

/* The ops that a region has nodes of. */
typedef struct op_set {
    const twi_op *slots[MOST_OPS];
} op_set;

static size_t find_op(const op_set *set, const twi_op *op)
{
    size_t at = twi_hash_mix(0, (uintptr_t)op) & (MOST_OPS - 1);
    while (set->slots[at] && set->slots[at] != op)
        at = (at + 1) & (MOST_OPS - 1);
    return at;
}

static void list_ops(const twi_region *region, op_set *set)
{
    *set = (op_set){0};
    for (int id = 0; id < region->nodes.count; id++)
        set->slots[find_op(set, region->nodes.items[id]->op)] = region->nodes.items[id]->op;
}

/* ---- reading rows; a malformed one is a bug of ours -------------------------------------------------------------- */

static const char *skip(const char *at)
{
    return at + strspn(at, " \n");
}

static const char *read_word(const char *at, char *word)
{
    size_t length = 0;
    at = skip(at);
    while (isalnum((unsigned char)at[length]) || at[length] == '_')
        length++;
    assert(length > 0);
    memcpy(word, at, length);
    word[length] = 0;
    return skip(at + length);
}

static int name_of(pattern *p, const char *word)
{
    if (strcmp(word, "_") == 0)
        return ANY;
    for (int i = 0; i < p->num_names; i++)
        if (strcmp(p->names[i], word) == 0)
            return i;
    assert(p->num_names < TWI_PATTERN_NAMES && strlen(word) < MOST_NAME);
    strcpy(p->names[p->num_names], word);
    return p->num_names++;
}

/* "z|y", "s?" */
static const char *read_argument(pattern *p, const char *at, argument *a)
{
    char word[64];
    *a = (argument){.count = 0};
    do {
        at = read_word(*at == '|' ? at + 1 : at, word);
        a->names[a->count++] = name_of(p, word);
    } while (*at == '|');
    a->optional = *at == '?';
    return skip(at + a->optional);
}

static const char *read_results(pattern *p, const char *at, clause *c)
{
    c->num_results = 0;
    do {
        assert(c->num_results < MOST_RESULTS);
        at = read_argument(p, *at == ',' ? at + 1 : at, &c->results[c->num_results++]);
    } while (*at == ',');
    return at;
}

/* "Add|AddV2" of OPS(ARGUMENTS), then the rest of it. */
static const char *read_ops(const char *at, clause *c)
{
    char word[64];
    c->num_ops = 0;
    do {
        at = read_word(*at == '|' ? at + 1 : at, word);
        c->ops[c->num_ops] = twi_op_find(word);
        assert(c->ops[c->num_ops]);
        c->num_ops++;
    } while (*at == '|');
    return at;
}

static const char *read_arguments(pattern *p, const char *at, clause *c)
{
    assert(*at == '(');
    c->open = false;
    c->num_arguments = 0;
    for (at = skip(at + 1); *at != ')'; at = skip(*at == ',' ? at + 1 : at)) {
        c->open = strncmp(at, "...", 3) == 0;
        assert(c->num_arguments < MOST_ARGUMENTS);
        at = c->open ? at + 3 : read_argument(p, at, &c->arguments[c->num_arguments++]);
    }
    return skip(at + 1);
}

static bool is_there(const clause *c, const op_set *set)
{
    bool there = false;
    for (int i = 0; i < c->num_ops && !there; i++)
        there = set->slots[find_op(set, c->ops[i])] != NULL;
    return there;
}

/* Reads as far as there is a node for each clause that must have one: most rows end at the ops of their first. False:
 * there is none. */
static bool read_pattern(const twi_fusion *row, const op_set *set, pattern *p)
{
    p->row = row;
    p->num_names = p->num_clauses = p->num_products = 0;
    for (const char *at = skip(row->find); *at; at = skip(at + (*at == ';'))) {
        clause *c = &p->clauses[p->num_clauses++];
        c->optional = *at == '?';
        c->stays = *at == '&';
        const char *behind = read_ops(strchr(at, '=') + 1, c);
        if (!c->optional && !is_there(c, set))
            return false;
        at = read_results(p, at + (c->optional || c->stays), c);
        assert(*at == '=');
        at = read_arguments(p, behind, c);
    }
    for (const char *at = skip(row->make); *at; at = skip(at + (*at == ';'))) {
        clause *c = &p->products[p->num_products++];
        c->optional = c->stays = false;
        at = read_arguments(p, read_ops(at, c), c);
        assert(strncmp(at, "->", 2) == 0);
        at = read_results(p, skip(at + 2), c);
    }
    return true;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static twi_value value_of(const twi_match *m, const argument *a)
{
    for (int i = 0; i < a->count; i++)
        if (a->names[i] != ANY && m->values[a->names[i]].node)
            return m->values[a->names[i]];
    return (twi_value){0};
}

twi_value twi_matched(const twi_match *m, const char *name)
{
    for (int i = 0; i < m->p->num_names; i++)
        if (strcmp(m->p->names[i], name) == 0)
            return m->values[i];
    return (twi_value){0};
}

twi_node *twi_matched_node(const twi_match *m, const char *name)
{
    return twi_matched(m, name).node;
}

/* Lets the name stand for the value. False if it stands for another one. */
static bool bind(twi_match *m, const argument *a, twi_value value)
{
    twi_value known = value_of(m, a);
    if (known.node)
        return twi_same(known, value);
    for (int i = 0; i < a->count; i++)
        if (a->names[i] == ANY)
            return true;
    m->values[a->names[0]] = value;
    return a->count == 1; /* of several names, one must be there by now */
}

static bool is_one_of(const clause *c, const twi_node *node)
{
    for (int i = 0; i < c->num_ops; i++)
        if (node->op == c->ops[i])
            return true;
    return false;
}

/* Lets the clause stand for the node, with its first two inputs the other way round if `swapped`. */
static bool take(twi_match *m, int k, twi_node *node, bool swapped)
{
    const clause *c = &m->p->clauses[k];
    const twi_node *first = m->nodes[0] ? m->nodes[0] : node;
    bool fits = is_one_of(c, node) && node->device == first->device &&
                (c->open ? node->num_inputs >= c->num_arguments : node->num_inputs == c->num_arguments);
    for (int i = 0; i < k && fits; i++)
        fits = m->nodes[i] != node;
    for (int i = 0; i < c->num_results && i < node->num_results && fits; i++)
        fits = bind(m, &c->results[i], twi_out(node, i));
    for (int i = 0; i < c->num_arguments && fits; i++)
        fits = bind(m, &c->arguments[i], twi_in(node, swapped && i < 2 ? 1 - i : i));
    m->nodes[k] = node;
    return fits;
}

/* ---- applying ---------------------------------------------------------------------------------------------------- */

/* Which result of which product takes the place of a value; -1: none. */
static int product_of(const twi_match *m, twi_value value)
{
    for (int k = 0; k < m->p->num_products; k++)
        for (int i = 0; i < m->p->products[k].num_results; i++)
            if (twi_same(value_of(m, &m->p->products[k].results[i]), value))
                return k;
    return -1;
}

/* Whether the node is one of those that go. */
static bool is_found(const twi_match *m, const twi_node *node)
{
    for (int i = 0; i < m->p->num_clauses; i++)
        if (m->nodes[i] == node && !m->p->clauses[i].stays)
            return true;
    return false;
}

/* Whether nobody outside wants what vanishes. */
static bool vanishes(const twi_match *m, const twi_node *node)
{
    for (int i = 0; i < node->num_results; i++) {
        const twi_edge *use = node->results[i].uses.first;
        for (; use && product_of(m, twi_out(node, i)) < 0; use = use->next)
            if (!is_found(m, use->user))
                return false;
    }
    return true;
}

/* Which product a node found becomes part of: that of its own results, or of those that use it. */
static int part_of(const twi_match *m, const twi_node *node)
{
    for (int i = 0; i < node->num_results; i++)
        if (product_of(m, twi_out(node, i)) >= 0)
            return product_of(m, twi_out(node, i));
    for (int i = 0; i < node->num_results; i++)
        for (const twi_edge *use = node->results[i].uses.first; use; use = use->next)
            if (is_found(m, use->user))
                return part_of(m, use->user);
    return 0;
}

/* The nodes in whose place product k stands, the one of the highest rank last. */
static int list_parts(const twi_match *m, int k, twi_node **parts)
{
    int count = 0;
    for (int i = 0; i < m->p->num_clauses; i++)
        if (m->nodes[i] && !m->p->clauses[i].stays && part_of(m, m->nodes[i]) == k)
            parts[count++] = m->nodes[i];
    for (int i = 0; i < count - 1; i++)
        if (parts[i]->rank > parts[count - 1]->rank) {
            twi_node *swap = parts[i];
            parts[i] = parts[count - 1];
            parts[count - 1] = swap;
        }
    return count;
}

static void put(twi_attr_list *list, tw_attr attr)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, attr.name) == 0)
            return;
    assert(list->count < TWI_PATTERN_ATTRS);
    list->items[list->count++] = attr;
}

static bool has_attr(const twi_signature *s, const char *name)
{
    for (int i = 0; i < s->num_attrs; i++)
        if (strcmp(s->attrs[i].name, name) == 0)
            return true;
    return false;
}

/* "p: A,B" or "N = #s" or "relu = ?r"; names of attributes end in the region's memory. */
static const char *read_attrs(const twi_match *m, const twi_signature *s, const char *at, twi_attr_list *list)
{
    char word[64], name[64];
    at = read_word(at, word);
    if (*at == '=') {
        at = skip(at + 1);
        bool counts = *at == '#';
        at = read_word(at + 1, name);
        bool there = twi_matched_node(m, name) != NULL;
        for (int i = 0; i < s->num_attrs; i++)
            if (strcmp(s->attrs[i].name, word) == 0)
                put(list, counts ? tw_attr_int(s->attrs[i].name, there) : tw_attr_bool(s->attrs[i].name, there));
        return at;
    }
    assert(*at == ':');
    const twi_node *node = twi_matched_node(m, word);
    do {
        at = read_word(at + 1, name);
        const twi_attr *attr = node ? twi_attr_find(&node->attrs, name) : NULL;
        if (attr && has_attr(s, name))
            put(list, *attr);
    } while (*at == ',');
    return at;
}

static bool list_attrs(const twi_match *m, const clause *product, twi_attr_list *list)
{
    const twi_signature *s = twi_op_signature(product->ops[0]);
    twi_attr_list more = {.count = 0};
    if (!s)
        return twi_region_fail_memory(m->r->region), false;
    if (m->p->row->more)
        m->p->row->more(m, &more);
    for (int i = 0; i < more.count; i++)
        if (has_attr(s, more.items[i].name))
            put(list, more.items[i]);
    for (const char *at = skip(m->p->row->attrs); *at; at = skip(at + (*at == ';')))
        at = read_attrs(m, s, at, list);
    return true;
}

/* Makes product k; NULL: it is refused, or not wanted because none of its results is. */
static twi_node *make_product(const twi_match *m, int k, const twi_node *like)
{
    const clause *product = &m->p->products[k];
    twi_value inputs[MOST_ARGUMENTS];
    twi_attr_list attrs = {.count = 0};
    int count = 0;
    for (int i = 0; i < product->num_arguments; i++) {
        twi_value value = value_of(m, &product->arguments[i]);
        assert(value.node || product->arguments[i].optional);
        if (value.node)
            inputs[count++] = value;
    }
    if (!list_attrs(m, product, &attrs))
        return NULL;
    return twi_rewrite_make(m->r, like, "/fused", product->ops[0]->name, inputs, count, attrs.items, attrs.count);
}

static twi_value first_result(const twi_match *m, int k)
{
    return value_of(m, &m->p->products[k].results[0]);
}

/* The product stands for its parts from now on, and its results for the values. */
static void install(const twi_match *m, int k, twi_node *made, twi_node *const *parts, int count)
{
    const clause *product = &m->p->products[k];
    for (int i = 0; i < count; i++)
        twi_move_controls(parts[i], made);
    for (int i = 0; i < product->num_results && i < made->num_results; i++) {
        twi_value old = value_of(m, &product->results[i]);
        if (old.node)
            twi_replace(old, twi_out(made, i));
    }
}

/* All products or none. */
static bool apply(twi_match *m)
{
    twi_node *parts[MOST_PRODUCTS][TWI_PATTERN_CLAUSES], *made[MOST_PRODUCTS] = {NULL};
    int counts[MOST_PRODUCTS], nodes = m->r->region->nodes.count;
    twi_value before[TWI_PATTERN_NAMES];
    bool fits = !m->p->row->fits || m->p->row->fits(m);
    for (int i = 0; i < m->p->num_clauses && fits; i++)
        fits = !m->nodes[i] || m->p->clauses[i].stays || vanishes(m, m->nodes[i]);
    for (int k = 0; k < m->p->num_products && fits; k++) {
        counts[k] = list_parts(m, k, parts[k]);
        fits = twi_may_join(parts[k], counts[k]);
    }
    memcpy(before, m->values, sizeof before);
    for (int k = 0; k < m->p->num_products && fits; k++) {
        if (!first_result(m, k).node)
            continue;
        made[k] = make_product(m, k, counts[k] ? parts[k][counts[k] - 1] : first_result(m, k).node);
        fits = made[k] != NULL;
        for (int i = 0; fits && i < m->p->products[k].num_results && i < made[k]->num_results; i++)
            (void)bind(m, &m->p->products[k].results[i], twi_out(made[k], i)); /* new names, for those that follow */
    }
    memcpy(m->values, before, sizeof before);
    for (int k = 0; k < m->p->num_products; k++)
        if (made[k] && fits)
            install(m, k, made[k], parts[k], counts[k]);
    if (!fits)
        twi_rewrite_undo(m->r, nodes);
    return fits;
}

/* ---- searching --------------------------------------------------------------------------------------------------- */

static bool search(twi_match *m, int k);

/* Goes on with clause k standing for a node, in both orders of its inputs if it is commutative. */
static bool try_node(twi_match *m, int k, twi_node *node)
{
    twi_value before[TWI_PATTERN_NAMES];
    bool commutes = node->op->flags & TWI_COMMUTATIVE && node->num_inputs == 2, found = false;
    memcpy(before, m->values, sizeof before);
    for (int swapped = 0; swapped <= commutes && !found; swapped++) {
        found = take(m, k, node, swapped) && search(m, k + 1);
        if (!found) {
            memcpy(m->values, before, sizeof before);
            m->nodes[k] = NULL;
        }
    }
    return found;
}

/* The value that the clause takes and that fewest others do. */
static twi_value rarest_argument(const twi_match *m, const clause *c)
{
    twi_value rarest = {0};
    for (int i = 0; i < c->num_arguments; i++) {
        twi_value value = value_of(m, &c->arguments[i]);
        if (value.node && (!rarest.node || twi_uses_of(value)->count < twi_uses_of(rarest)->count))
            rarest = value;
    }
    return rarest;
}

static bool is_result(const clause *c, int name)
{
    for (int i = 0; i < c->num_results; i++)
        if (c->results[i].names[0] == name)
            return true;
    return false;
}

/* Whether the clause takes what an earlier one would give that is not there. */
static bool lacks_argument(const twi_match *m, int k)
{
    const clause *c = &m->p->clauses[k];
    for (int i = 0; i < c->num_arguments; i++)
        for (int before = 0; before < k && !value_of(m, &c->arguments[i]).node; before++)
            if (is_result(&m->p->clauses[before], c->arguments[i].names[0]) && c->arguments[i].names[0] != ANY)
                return true;
    return false;
}

/* True if the row has been applied. */
static bool search(twi_match *m, int k)
{
    const clause *c = &m->p->clauses[k];
    bool found = false;
    if (k == m->p->num_clauses)
        return apply(m);
    twi_value made = {0};
    for (int i = 0; i < c->num_results && !made.node; i++)
        made = value_of(m, &c->results[i]);
    bool lacks = lacks_argument(m, k);
    if (made.node && !lacks)
        found = try_node(m, k, made.node);
    if (!made.node && !lacks) {
        twi_value used = rarest_argument(m, c);
        for (const twi_edge *e = used.node ? twi_uses_of(used)->first : NULL; e && !found; e = e->next)
            found = e->user != m->r->region->end && try_node(m, k, e->user);
    }
    return found || (c->optional && search(m, k + 1));
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* Whether the row is for nodes of this one's type. */
static bool is_for(const twi_rewriting *r, const pattern *p, const twi_node *node)
{
    const tw_dtype type = twi_attr_type(&node->attrs, "T");
    bool fast = true;
    if (!p->row->types || p->row->types >> type & 1)
        return true;
    for (int k = 0; k < p->num_products && fast; k++)
        fast = twi_device_has_fast_kernel(r->devices->items[node->device], p->products[k].ops[0]->name, type);
    return fast;
}

/* True if it was applied somewhere. */
static bool apply_row(twi_rewriting *r, const pattern *p)
{
    bool any = false;
    for (int id = 0, count = r->region->nodes.count; id < count && r->region->error.status == TW_OK; id++) {
        twi_node *node = r->region->nodes.items[id];
        if (is_one_of(&p->clauses[0], node) && !node->gone && !node->became && is_for(r, p, node))
            any = try_node(&(twi_match){.r = r, .p = p}, 0, node) || any;
    }
    return any;
}

tw_status twi_apply_fusions(twi_rewriting *r, const twi_fusion *rows, int count, tw_error *error)
{
    op_set ops;
    pattern *p = twi_alloc(sizeof *p);
    if (!p)
        return twi_fail_memory(error, "reading patterns");
    list_ops(r->region, &ops);
    for (int i = 0; i < count && r->region->error.status == TW_OK; i++)
        if (read_pattern(&rows[i], &ops, p) && apply_row(r, p)) {
            twi_region_sweep(r->region);
            list_ops(r->region, &ops);
        }
    twi_free(p);
    return twi_region_check(r->region, error);
}
