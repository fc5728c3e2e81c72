/* pace.c - see pace.h. */
#include "pace.h"

static const double blink = 0.05; /* seconds */

int64_t pace_steps(const pace *p, int64_t most)
{
    double fit = p->seconds > 0 ? blink / p->seconds : 1;
    int64_t steps = p->fixed ? p->fixed : fit < 1 ? 1 : fit > (double)most ? most : (int64_t)fit;
    return steps < most ? steps : most;
}

void pace_learn(pace *p, int64_t steps, double seconds)
{
    p->seconds = seconds / (double)steps;
}
