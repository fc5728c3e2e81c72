/* trainer_names.c - see trainer_names.h. */
#include "train/trainer_names.h"

#include <string.h>
#include <tower/trainer.h>

const twi_name twi_optimizer_names[] = {
    {"sgd", TW_OPTIMIZER_GRADIENT_DESCENT, 1}, {"momentum", TW_OPTIMIZER_MOMENTUM, 2}, {"adam", TW_OPTIMIZER_ADAM, 3},
    {"rmsprop", TW_OPTIMIZER_RMS_PROP, 4},     {"muon", TW_OPTIMIZER_MUON, 0},         {NULL},
};

const twi_name twi_dtype_names[] = {
    {"float32", TW_FLOAT32, 1},
    {"bfloat16", TW_BFLOAT16, 14},
    {"float16", TW_FLOAT16, 19},
    {"float64", TW_FLOAT64, 2},
    {NULL},
};

const twi_name twi_updates_names[] = {
    {"synchronous", TW_UPDATES_SYNCHRONOUS, 1},
    {"asynchronous", TW_UPDATES_ASYNCHRONOUS, 2},
    {NULL},
};

const twi_name twi_schedule_names[] = {
    {"model", TW_SCHEDULE_MODEL, 1},
    {"constant", TW_SCHEDULE_CONSTANT, 2},
    {"exponential", TW_SCHEDULE_EXPONENTIAL, 3},
    {"polynomial", TW_SCHEDULE_POLYNOMIAL, 4},
    {"cosine", TW_SCHEDULE_COSINE, 5},
    {"piecewise", TW_SCHEDULE_PIECEWISE, 6},
    {NULL},
};

const twi_name twi_unit_names[] = {
    {"epochs", TW_RATE_EPOCHS, 1},
    {"steps", TW_RATE_STEPS, 2},
    {"examples", TW_RATE_EXAMPLES, 3},
    {NULL},
};

const twi_name *twi_name_find(const twi_name *names, const char *name, size_t length)
{
    for (; names->name; names++)
        if (strlen(names->name) == length && memcmp(names->name, name, length) == 0)
            return names;
    return NULL;
}

const twi_name *twi_name_of(const twi_name *names, int64_t value)
{
    for (; names->name; names++)
        if (names->value == value)
            return names;
    return NULL;
}

const twi_name *twi_name_before(const twi_name *names, int64_t before)
{
    for (; names->name; names++)
        if (names->before == before)
            return names;
    return NULL;
}
