/* attr.h - attribute values: the constants a node carries beside its inputs. Kinds are those of TensorFlow. */
#ifndef TWI_ATTR_H
#define TWI_ATTR_H

#include "base/arena.h"

#include <tower/graph.h> /* tw_attr, the public constructor of one */

typedef tw_attr twi_attr;

/* An ordered list of attributes, owned by an arena: those of the signature, then marks, whose names begin with '_'. */
typedef struct twi_attrs {
    twi_attr *items;
    int count;
} twi_attrs;

const twi_attr *twi_attr_find(const twi_attrs *attrs, const char *name); /* NULL if absent */

/* Readers for code that knows the attribute is there with that kind, because the op's row declares it. A missing one
 * gives the fallback. */
int64_t twi_attr_int(const twi_attrs *attrs, const char *name, int64_t fallback);
float twi_attr_float(const twi_attrs *attrs, const char *name, float fallback);
bool twi_attr_bool(const twi_attrs *attrs, const char *name, bool fallback);
tw_dtype twi_attr_type(const twi_attrs *attrs, const char *name);                        /* TW_INVALID_DTYPE */
const char *twi_attr_string(const twi_attrs *attrs, const char *name, const char *fallback);
tw_shape twi_attr_shape(const twi_attrs *attrs, const char *name);                       /* TW_UNKNOWN_SHAPE */
tw_tensor *twi_attr_tensor(const twi_attrs *attrs, const char *name);                    /* borrowed; NULL */
/* Integers of a list attribute; *count 0 if absent. Borrowed. */
const int64_t *twi_attr_ints(const twi_attrs *attrs, const char *name, int *count);

/* Deep copy into the arena (tensors are retained: release with twi_attr_release). False when out of memory. */
bool twi_attr_copy(twi_arena *arena, const twi_attr *from, twi_attr *to);
/* The same under a name that lives as long as the arena. */
bool twi_attr_copy_as(twi_arena *arena, const char *name, const twi_attr *from, twi_attr *to);
void twi_attr_release(twi_attr *attr);
void twi_attrs_release(twi_attrs *attrs); /* all of them */
/* Of what tells nodes without inputs, constants above all, from each other, mixed into a hash; twi_attr_equal()
 * says the rest. */
uint64_t twi_attr_hash(uint64_t hash, const twi_attr *attr);
bool twi_attr_equal(const twi_attr *a, const twi_attr *b); /* values, not names */
/* Of nodes of one op: whether all but marks ("_class") are equal. */
bool twi_attrs_equal(const twi_attrs *a, const twi_attrs *b);

#endif
