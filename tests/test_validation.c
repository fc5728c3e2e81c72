/* Accuracy as the program measures it, after training and while it trains. */
#include "program.h"

#define SMALL_RUN "$T train cifar10 --data-set synthetic --batch-size 4 "

static void eval_needs_nothing_but_the_directory(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN "--virtual-gpus 2 --max-steps 2 --train-dir e1");
    assert_runs(0, "$T eval e1 --confusion");
    assert_prints(": precision @ 1 = 0.");
    assert_prints("  step             2, with the moving averages of its variables\n");
    assert_prints("1024 of synthetic: ");
    assert_prints("taken most often for");
    assert_prints("label \\ taken for");
    assert_runs(0, "$T eval e1/model.ckpt-2 --format json --no-events");
    assert_prints("\"step\":2,\"precision_at_1\":0.");
    assert_prints("\"confusion\":[[");
    assert_int_equal((int)number_behind(output, "examples"), 1024);
    assert_runs(0, "ls e1/eval | wc -l");
    assert_prints("1\n");                                                /* of the first one */
    assert_runs(0, "rm e1/run.json && $T eval e1 --data-set synthetic"); /* the checkpoint knows its model */
    assert_runs(1, "$T eval nowhere");
    assert_prints("there is no checkpoint 'nowhere'");
}

static void eval_of_another_data_set_has_to_be_meant(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN "--max-steps 1 --train-dir e2 && rm e2/run.json");
    if (access("/usr/share/datasets/fashion-mnist", R_OK) != 0)
        skip(); /* the package is not installed */
    assert_runs(1, "$T eval e2 --data-dir /usr/share/datasets/fashion-mnist");
    assert_prints(
        "'e2' was trained on synthetic, and this is fashion-mnist; '--data-set fashion-mnist' says that this is meant");
}

#define EVALUATED "--max-steps 6 --eval-every 2 --save-every 100 "

static void evaluation_while_training_costs_no_bits(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN "--virtual-gpus 2 --max-steps 6 --train-dir plain");
    assert_runs(0, SMALL_RUN "--virtual-gpus 2 " EVALUATED "--train-dir watched --keep-best --keep-every 4");
    assert_prints(": step 2, precision @ 1 = 0.");
    assert_prints("; the best so far\n");
    assert_prints("precision @ 1 0.");
    assert_prints("the best is in watched/best\nnext:\n  tower eval watched/best\n");
    assert_runs(0, "cmp plain/model.ckpt-6.index watched/model.ckpt-6.index && "
                   "cmp plain/model.ckpt-6.data-00000-of-00001 watched/model.ckpt-6.data-00000-of-00001");
    assert_runs(0, "ls watched/best watched/milestones && wc -l <watched/eval.jsonl");
    assert_prints("milestones:\ncheckpoint\nmodel.ckpt-4.data");
    assert_prints("3\n");
    assert_runs(0, "$T eval watched/best");
    assert_runs(0, "grep -aq eval/accuracy watched/events* && grep -aq train/loss watched/events*");
}

static void as_many_checkpoints_stay_as_asked(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN "--max-steps 4 --save-every 1 --keep 2 --train-dir k1 && ls k1/*.index");
    assert_prints("k1/model.ckpt-3.index\nk1/model.ckpt-4.index\n");
    assert_prints_not("ckpt-2");
    assert_runs(0, SMALL_RUN "--max-steps 8 --save-every 1 --keep 0 --train-dir k2 && ls k2/*.index | wc -l");
    assert_prints("8\n");
}

/* At a rate of almost nothing. */
static void training_that_gets_no_better_ends_early_also_when_resumed(void **state)
{
    (void)state;
    static const char run[] =
        "$T train cifar10 --data-set synthetic --batch-size 4 --learning-rate 1e-30 --eval-every 1 "
        "--early-stopping 2 --train-dir s1";
    assert_runs(0, "%s --max-steps 2", run);
    assert_prints_not("stopped early");
    assert_runs(0, "printf '{\"time\":' >>s1/eval.jsonl"); /* as a full disk leaves it */
    assert_runs(0, "mv s1/eval.jsonl lines && mkdir s1/eval.jsonl");
    assert_runs(1, "$T train --resume --train-dir s1 --max-steps 20"); /* what it has found so far is not known */
    assert_prints("cannot read 's1/eval.jsonl': Is a directory");
    assert_runs(0, "rmdir s1/eval.jsonl && mv lines s1/eval.jsonl");
    assert_runs(0, "$T train --resume --train-dir s1 --max-steps 20 --format json");
    assert_prints("\"event\":\"evaluation\"");
    assert_prints("\"stopped_early\":true");
    assert_prints("s1/model.ckpt-3\"");
    assert_prints_not("s1/model.ckpt-4\"");
    assert_runs(0, "cut -c1-8 s1/eval.jsonl");
    assert_prints("{\"time\":\n{\"time\":\n{\"time\":\n{\"time\":\n");
    assert_runs(2, SMALL_RUN "--early-stopping 2 --train-dir s2");
    assert_prints("--early-stopping goes by evaluations; say how often with --eval-every");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eval_needs_nothing_but_the_directory),
        cmocka_unit_test(eval_of_another_data_set_has_to_be_meant),
        unsanitized_test(evaluation_while_training_costs_no_bits),
        cmocka_unit_test(as_many_checkpoints_stay_as_asked),
        unsanitized_test(training_that_gets_no_better_ends_early_also_when_resumed),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
