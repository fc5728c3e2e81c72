/* crash.h - what the report of a crash (tower/crash.h) says of work under way. Those who work say where they are by
 * writing a pointer into a place of their own, whether a report is wanted or not: that is as cheap as asking. */
#ifndef TWI_CRASH_H
#define TWI_CRASH_H

#include <stdatomic.h>
#include <stdint.h>

/* Where a device is. Texts must live as long as they stand here. */
typedef struct twi_crash_place {
    _Atomic(const char *) device;   /* NULL: the place is free */
    _Atomic(const char *) op, node; /* NULL: at nothing */
} twi_crash_place;

/* A place for the device, until it is given back. Never NULL: where there are too many devices, one that is not
 * reported. */
twi_crash_place *twi_crash_take_place(const char *device);
void twi_crash_give_back(twi_crash_place *place); /* NULL is fine */

static inline void twi_crash_be_at(twi_crash_place *place, const char *op, const char *node)
{
    atomic_store_explicit(&place->op, op, memory_order_relaxed);
    atomic_store_explicit(&place->node, node, memory_order_relaxed);
}

void twi_crash_note_step(int64_t step);

#endif
