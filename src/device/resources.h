/* resources.h - what outlives a step: a session's variables, random streams and input sources, by name. */
#ifndef TWI_RESOURCES_H
#define TWI_RESOURCES_H

#include "base/map.h"
#include "device/device.h"

typedef struct twi_resource_table {
    twi_resources interface; /* first: kernels get a pointer to this */
    twi_map by_name;
    twi_resource *first;     /* all of them, newest first */
    int64_t clock;           /* goes up when a run begins, and when a variable gets another shape */
} twi_resource_table;

void twi_resources_init(twi_resource_table *table);
void twi_resources_free(twi_resource_table *table); /* gives memory back to devices: free it before them */

/* What a node without inputs makes (a queue, an iterator) or the slot of what it gives, found or made; NULL when out of
 * memory. */
twi_resource *twi_resources_object(twi_resource_table *table, const char *container, const char *name);

twi_resource *twi_resources_find(const twi_resource_table *table, const char *name); /* NULL if absent */

/* The variable of that name: noted for `device`, without memory and not initialized, or found with the same type and
 * shape. */
tw_status twi_resources_variable(twi_resource_table *table, const char *name, tw_dtype dtype, tw_shape shape,
                                 twi_device *device, twi_resource **variable, tw_error *error);

/* Gives the variable a value of another shape than it has: under its name stands a new resource from then on. The one
 * before it keeps its memory until the next time, and longer while a run of another lane is under way that may have
 * been made for it: `oldest` is when the first of those began, INT64_MAX if there is none. */
tw_status twi_resources_reshape(twi_resource_table *table, const char *name, const tw_tensor *value, int64_t oldest,
                                tw_error *error);
/* The same shape: writes the value. */
tw_status twi_resource_write(twi_resource *variable, const tw_tensor *value, tw_error *error);

/* Gives a variable its memory, zeroed, unless it has it already. */
tw_status twi_resource_hold(twi_resource *variable, tw_error *error);

/* TW_FAILED_PRECONDITION: a variable that has no value yet. */
tw_status twi_resource_check(const twi_resource *variable, tw_error *error);
/* TW_INVALID_ARGUMENT: a variable of another type than the op at hand works on. NULL is fine: it is none. */
tw_status twi_resource_check_type(const twi_resource *variable, tw_dtype type, const char *op, const char *node,
                                  tw_error *error);

size_t twi_resource_bytes(const twi_resource *resource); /* of a variable, with or without memory; 0 for all else */
/* Bytes of all variables. */
int64_t twi_resources_variable_bytes(const twi_resource_table *table);

#endif
