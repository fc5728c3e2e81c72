/* `tower sweep`: every combination of some options, each a training of its own. */
#include "program.h"

static void write_grid(const char *name, const char *grid)
{
    assert_runs(0,
                "printf 'model = cifar10\\ndata-set = synthetic\\nbatch-size = 4\\ncpu-threads = 1\\nmax-steps = 2\\n"
                "[grid]\\n%s' >%s",
                grid, name);
}

static void every_combination_is_trained_and_compared(void **state)
{
    (void)state;
    write_grid("a.ini", "learning-rate = 0.1 0.001\\nseed = 1 2\\n");
    assert_runs(0, "$T sweep a.ini --at-once 2 --train-dir a");
    assert_prints("4 runs, 2 at once, below a\n");
    assert_prints(": 4 of 4, ");
    assert_prints("   learning-rate  seed      steps       loss   accuracy       best    seconds\n");
    assert_prints("  0.001          2             2      4.");
    assert_prints("\n*  ");
    assert_prints("next:\n  tower eval a/learning-rate=0.");
    assert_runs(0, "$T train cifar10 --data-set synthetic --batch-size 4 --cpu-threads 1 --max-steps 2 --seed 2 "
                   "--learning-rate 0.001 --train-dir alone && cmp alone/model.ckpt-2.data-00000-of-00001 "
                   "'a/learning-rate=0.001,seed=2/model.ckpt-2.data-00000-of-00001'");
    assert_runs(0, "$T sweep a.ini --train-dir a --format json"); /* nothing is trained twice */
    assert_prints("{\"runs\":[{\"train_dir\":\"a/"
                  "learning-rate=0.1,seed=1\",\"options\":{\"learning-rate\":\"0.1\",\"seed\":\"1\"},"
                  "\"exit_code\":0,\"steps\":2,");
    assert_runs(0, "grep -c '\"event\":\"step\"' 'a/learning-rate=0.1,seed=1/train.log'");
    assert_prints("2\n");
}

static void one_that_fails_does_not_end_the_others(void **state)
{
    (void)state;
    write_grid("b.ini", "learning-rate = zero 0.001\\n");
    assert_runs(1, "$T sweep b.ini --train-dir b");
    assert_prints("learning-rate=zero: failed with exit code 2: tower train: --learning-rate: expected a number");
    assert_prints("*  0.001 ");
    assert_prints("  failed\n");
}

static void a_grid_that_cannot_be_is_refused_before_anything_runs(void **state)
{
    (void)state;
    write_grid("c.ini", "learning-rat = 0.1\\n");
    assert_runs(2, "$T sweep c.ini --train-dir c");
    assert_prints("unknown option '--learning-rat'; did you mean '--learning-rate'?");
    write_grid("c.ini", "");
    assert_runs(2, "$T sweep c.ini --train-dir c");
    assert_prints("'c.ini': expected a section [grid] with 1 to 8 options, found 0");
    write_grid("c.ini", "learning-rate = 0.1 0.01 0.1\\n");
    assert_runs(2, "$T sweep c.ini --train-dir c");
    assert_prints("'c.ini': two runs would have the directory 'learning-rate=0.1'");
    assert_runs(1, "test -e c");
}

static void a_sweep_that_is_stopped_is_gone_on_with(void **state)
{
    (void)state;
    assert_runs(0,
                "printf 'model = cifar10\\ndata-set = synthetic\\nbatch-size = 4\\ncpu-threads = 1\\nlog-every = 1\\n"
                "[grid]\\nseed = 1 2\\n' >d.ini");
    assert_runs(
        143, "$T sweep d.ini --train-dir d >d.txt & job=$!; seen '\"step\":1' d/seed=1/train.log && kill -TERM $job; "
             "wait $job");
    assert_runs(0, "cat d.txt");
    assert_prints("  not run\n");
    assert_runs(0, "$T checkpoint verify d/seed=1 && ! ls d/seed=2 2>/dev/null");
    assert_runs(0, "echo 'max-steps = 1' >e.ini && cat d.ini >>e.ini && $T sweep e.ini --train-dir d");
    assert_prints("2 of 2, seed=2: loss ");
}

/* The folders of the runs are made with those above them; who cannot write there says where and why. */
static void runs_lie_wherever_they_are_wanted_or_it_is_said_why_not(void **state)
{
    (void)state;
    write_grid("f.ini", "seed = 1\\n");
    assert_runs(0, "$T sweep f.ini --train-dir f/deep/down && ls f/deep/down/seed=1/checkpoint");
    assert_runs(0, "mkdir -p g/seed=1/train.log");
    assert_runs(1, "$T sweep f.ini --train-dir g");
    assert_prints("tower sweep: cannot write 'g/seed=1/train.log': Is a directory");
    assert_runs(1, "$T sweep f.ini --train-dir f.ini/below");
    assert_prints("tower sweep: cannot make the directory 'f.ini/below/seed=1': Not a directory");
    assert_runs(2, "$T sweep f.ini --train-dir $(printf 'long/%%.0s' $(seq 800))");
    assert_prints("tower sweep: --train-dir: the path is too long, expected at most 3488 bytes, found 4000");
    assert_runs(0, "ones=$(printf 1%%.0s $(seq 150)); (cat f.ini; echo learning-rate=0.$ones) | "
                   "sed s/seed.*/seed=$ones/ >long.ini");
    assert_runs(2, "$T sweep long.ini --train-dir h");
    assert_prints(", are the name of its directory, which may be 255 bytes long");
    assert_runs(1, "test -e h");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_is_trained_and_compared),
        cmocka_unit_test(one_that_fails_does_not_end_the_others),
        cmocka_unit_test(a_grid_that_cannot_be_is_refused_before_anything_runs),
        cmocka_unit_test(runs_lie_wherever_they_are_wanted_or_it_is_said_why_not),
        cmocka_unit_test(a_sweep_that_is_stopped_is_gone_on_with),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
