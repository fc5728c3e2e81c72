/* trainer_names.h - what values are called in checkpoints. Names stay for ever; the numbers of a public enumeration may
 * change, and a checkpoint means the same. */
#ifndef TWI_TRAINER_NAMES_H
#define TWI_TRAINER_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row of a table, which ends with a row without a name. */
typedef struct twi_name {
    const char *name;
    int64_t value;
    int64_t before; /* what checkpoints of revisions before there were names have instead; 0: none has it */
} twi_name;

extern const twi_name twi_optimizer_names[], twi_dtype_names[], twi_updates_names[];
/* Of a schedule, with its unit; the numbers of before began at 0, so 1 is added here. */
extern const twi_name twi_schedule_names[], twi_unit_names[];

/* The rows of a name (of so many bytes), of a value, and of a number of before; NULL: there is none. */
const twi_name *twi_name_find(const twi_name *names, const char *name, size_t length);
const twi_name *twi_name_of(const twi_name *names, int64_t value);
const twi_name *twi_name_before(const twi_name *names, int64_t before);

#endif
