/* Running, from within: what is in running/, all of it or the part that the argument names. label: threads */
#include "running/parts.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(void);
} parts[] = {
    {"dispatchers", run_dispatchers}, {"sessions", run_sessions}, {"part", run_part},
    {"packing", run_packing},         {"messages", run_messages}, {"traffic", run_traffic},
    {"waterfall", run_waterfall},     {"protocol", run_protocol}, {"exchange", run_exchange},
    {"sockets", run_sockets},         {"local", run_local},       {"waits", run_waits},
};

int main(int argc, char **argv)
{
    int failed = 0, found = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (argc < 2 || strcmp(argv[1], parts[i].name) == 0) {
            failed += parts[i].run();
            found++;
        }
    if (!found)
        fprintf(stderr, "test_run: there is no part '%s'\n", argv[1]);
    return failed + !found;
}
