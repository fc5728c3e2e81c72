/* make_trainer_checkpoint.c - makes trainer_before-3 and trainer_before_alone-3: checkpoints of revision f6a8ed6, which
 * held numbers of enumerators and a schedule as a row of doubles. It prints what training went on with there, which is
 * trainer_before.h. Built and run once, against that revision:
 *
 *     git worktree add OLD f6a8ed6 && cmake -S OLD -B OLD/build && cmake --build OLD/build
 *     cc -Itests -IOLD/include tests/golden/make_trainer_checkpoint.c -LOLD/build/src -ltower -o make
 *     LD_LIBRARY_PATH=OLD/build/src ./make tests/golden >tests/golden/trainer_before.h
 */
#include "remembered_training.h"

#include <stdio.h>
#include <stdlib.h>

static void must(tw_status status, const tw_error *error)
{
    if (status == TW_OK)
        return;
    fprintf(stderr, "%s\n", error->message);
    exit(1);
}

static void make(const remembered_run *run, const char *directory)
{
    tw_error error = {0};
    tw_trainer *trainer;
    tw_trainer_step_result result;
    remembered_ground ground;
    must(remembered_open(&ground, &error), &error);
    tw_trainer_options options = remembered_options(run, &ground);
    must(tw_trainer_create(&options, &trainer, &error), &error);
    for (int i = 0; i < REMEMBERED_STEPS; i++)
        must(tw_trainer_step(trainer, &result, &error), &error);
    must(tw_trainer_save(trainer, directory, 0, &error), &error);
    printf("static const float %s_losses[] = {", run->name);
    for (int i = 0; i < REMEMBERED_STEPS; i++) {
        must(tw_trainer_step(trainer, &result, &error), &error);
        printf("%.9gf, ", result.loss);
    }
    printf("};\n");
    tw_trainer_destroy(trainer);
    remembered_close(&ground);
}

int main(int count, char **arguments)
{
    char directory[1024];
    (void)count;
    printf("/* made by make_trainer_checkpoint.c */\n");
    for (int i = 0; i < 2; i++) {
        snprintf(directory, sizeof directory, "%s/%s", arguments[1], remembered_runs[i].name);
        make(&remembered_runs[i], directory);
    }
    return 0;
}
