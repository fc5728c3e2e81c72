/* pace.h - how many steps are taken in a row, before the program looks up: for signals, lines, checkpoints. A row costs
 * what a step costs the host, so where steps are short a row is as many as pass in the blink of an eye. */
#ifndef CLI_PACE_H
#define CLI_PACE_H

#include <stdint.h>

#define STEPS_PER_EXECUTION_OPTION(settings)                                                                           \
    {"steps-per-execution", "N", OPTION_NUMBER, offsetof(settings, steps_per_execution),                               \
     "steps that are handed over in a row; 0: as many as take a twentieth of a second. GPUs with short steps are faster "  \
     "so; a loss that is no number is noticed at the end of a row", .initial = "0", .most = 1 << 20}

typedef struct pace {
    int64_t fixed;  /* steps of a row; 0: it follows from */
    double seconds; /* of a step; 0: not known yet */
} pace;

/* Of a row, where the program wants to look up after `most` steps. */
int64_t pace_steps(const pace *pace, int64_t most);
/* What a row has taken. */
void pace_learn(pace *pace, int64_t steps, double seconds);

#endif
