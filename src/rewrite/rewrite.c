/* rewrite.c - the table of passes and the tools they share. */
#include "rewrite/rewrite.h"

#include "base/text.h"
#include <tower/session.h>

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    twi_rewrite_pass *pass;
} passes[] = {
#define X(name) {#name, twi_rewrite_##name},
    TWI_REWRITES(X)
#undef X
};

bool twi_rewrite_is_disabled(const char *disable, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = disable ? disable : ""; *at; at += strcspn(at, ","), at += *at == ',') {
        size_t word = strcspn(at, ",");
        if ((word == length && strncmp(at, name, length) == 0) || (word == 3 && strncmp(at, "all", 3) == 0))
            return true;
    }
    return false;
}

/* Other stages ask twi_rewrite_is_disabled() for these: constants are folded while a graph is copied
 * (plan/specialize.c), the layout of images is changed by plan/layout.c, memory is reused by plan/memory.c. */
static const char *const other_names[] = {"all", "fold", "layout", "reuse"};
enum { PASSES = sizeof passes / sizeof *passes, OTHERS = sizeof other_names / sizeof *other_names };

const char *tw_rewrite_name(int i)
{
    return i < 0 || i >= OTHERS + PASSES ? NULL : i < OTHERS ? other_names[i] : passes[i - OTHERS].name;
}

tw_status twi_rewrite_check_names(const char *disable, tw_error *error)
{
    tw_status status = TW_OK;
    for (const char *at = disable ? disable : ""; *at && status == TW_OK; at += strcspn(at, ","), at += *at == ',') {
        size_t word = strcspn(at, ","), size = 0;
        bool known = word == 0;
        char list[256] = "";
        for (int i = 0; tw_rewrite_name(i); i++) {
            known = known || (strlen(tw_rewrite_name(i)) == word && strncmp(tw_rewrite_name(i), at, word) == 0);
            size += (size_t)snprintf(list + size, sizeof list - size, "%s%s", i ? ", " : "", tw_rewrite_name(i));
        }
        if (!known)
            status = twi_fail(error, TW_INVALID_ARGUMENT, "disable: there is no rewrite '%.*s'; known are %s",
                              word > 64 ? 64 : (int)word, at, list);
    }
    return status;
}

static tw_status run_pass(twi_rewriting *r, size_t i, tw_error *error)
{
    tw_status status = passes[i].pass(r, error);
    if (status == TW_OK)
        status = twi_region_check(r->region, error);
    if (status == TW_OK) {
        twi_region_sweep(r->region);
        status = twi_region_check(r->region, error);
    }
    if (status != TW_OK)
        twi_prefix(error, "rewrite '%s'", passes[i].name);
    return status;
}

tw_status twi_rewrite(twi_rewriting *r, const char *disable, tw_error *error)
{
    tw_status status = TW_OK;
    for (size_t i = 0; i < sizeof passes / sizeof *passes && status == TW_OK; i++)
        if (!twi_rewrite_is_disabled(disable, passes[i].name))
            status = run_pass(r, i, error);
    return status;
}

bool twi_rewrite_has_kernel(const twi_rewriting *r, const twi_node *node, const char *op, tw_dtype type)
{
    return twi_device_has_kernel(r->devices->items[node->device], op, type);
}

twi_node *twi_rewrite_make(twi_rewriting *r, const twi_node *like, const char *suffix, const char *op,
                           const twi_value *inputs, int num_inputs, const tw_attr *attrs, int num_attrs)
{
    twi_node *node = twi_node_like(r->region, like, suffix, twi_op_find(op), inputs, num_inputs, attrs, num_attrs);
    tw_error error = {0};
    tw_status status = node ? twi_node_accepted(node, r->devices->items[node->device], false, NULL, &error) : TW_OK;
    if (status == TW_OK)
        return node;
    if (status != TW_UNIMPLEMENTED)
        twi_region_fail(r->region, status, "%s", error.message);
    twi_node_drop(node);
    return NULL;
}

void twi_rewrite_undo(twi_rewriting *r, int count)
{
    for (int id = r->region->nodes.count - 1; id >= count; id--)
        if (!r->region->nodes.items[id]->gone)
            twi_node_drop(r->region->nodes.items[id]);
}
