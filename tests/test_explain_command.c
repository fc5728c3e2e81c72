/* test_explain_command.c - `tower plan`, `tower why`, and what `tower train` says of memory and soft placement, run as
 * a user runs them. */
#include "program.h"

/* ---- tower plan ------------------------------------------------------------------------------------------------ */

/* The number behind `key` in the JSON that was printed. */
static long long number_of(const char *key)
{
    char quoted[64];
    long long value = -1;
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(output, quoted);
    if (!at || sscanf(at + strlen(quoted), "%lld", &value) != 1)
        fail_msg("no number \"%s\" in %s", key, output);
    return value;
}

static void a_plan_lists_memory_by_device_tower_and_tensor(void **state)
{
    (void)state;
    assert_runs(0, "$T plan cifar10 --virtual-gpus 2 --batch-size 4 --top 2");
    assert_prints("cifar10: 2 towers of 4 examples; a step runs ");
    assert_prints("\n/device:CPU:0         4273192      4273200 ");
    assert_prints("\n  shared              4273192      4273200 ");
    assert_prints("\n  tower_1 ");
    assert_prints("\n/device:GPU:1, the largest when it is fullest, while 'tower_1/");
    assert_prints("        3538944  variable   local3/weights (VarHandleOp)\n");
    assert_prints_not("largest batch"); /* nothing has an end */
    assert_runs(0, "$T plan cifar10 --virtual-gpus 1 --batch-size 4 --input device"); /* 50000 * 32 * 32 * 3 bytes */
    assert_prints("    153600000  input      data/images (TowerData)");
    assert_runs(0, "$T plan mnist --virtual-gpus 1 --batch-size 4 --input device --hold-back 20000");
    assert_prints("     31360000  input      data/images (TowerData)");
    assert_runs(0, "$T plan mnist --cpu-devices 2 --num-gpus 0 --batch-size 8 --format json");
    assert_int_equal(number_of("towers"), 2);
    assert_int_equal(number_of("batch_size"), 8);
    assert_true(number_of("total_bytes") == number_of("variable_bytes") + number_of("constant_bytes") +
                                                number_of("arena_bytes"));
    assert_runs(0, "ls | wc -l");
    assert_string_equal(output, "0\n"); /* nothing is written */
}

/* More tasks than there are bits for kinds of devices: those of other tasks are no kinds of their own. */
static void a_plan_is_made_for_tasks_that_are_not_started(void **state)
{
    (void)state;
    assert_runs(0, "$T plan mnist -n 12 --ps-hosts a,b --cpu-threads 1 --batch-size 4 --top 0");
    assert_prints("mnist: 10 towers of 4 examples; a step runs ");
    assert_prints("\n/job:worker/replica:0/task:9/device:CPU:0 ");
    assert_prints("\n/job:ps/replica:0/task:1/device:CPU:0 ");
    assert_runs(0, "$T plan mnist --cpu-devices 2 --cpu-threads 1 --batch-size 4 --format json");
    long long copies = number_of("copies"), variables = number_of("variable_bytes");
    assert_runs(0, "$T plan mnist --tasks 2 --cpu-threads 1 --batch-size 4 --format json");
    assert_int_equal(number_of("towers"), 2);
    assert_int_equal(number_of("variable_bytes"), variables);
    assert_true(number_of("copies") > copies); /* devices of one host look at each other's memory */
    assert_runs(2, "$T plan mnist --tasks 1025");
    assert_prints("tower plan: --tasks: expected a whole number from 1 to 1024, found '1025'");
    assert_runs(2, "$T plan mnist --tasks 2 --worker-hosts a,b,c");
    assert_prints("--worker-hosts and --ps-hosts name 3 tasks, and 2 were started");
}

static void the_largest_batch_fits_and_one_more_does_not(void **state)
{
    (void)state;
    static const char *const jobs[] = {"mnist --virtual-gpus 1", "mnist --virtual-gpus 2 --summary-every 0",
                                       "resnet20 --virtual-gpus 1 --summary-every 0"};
    for (int i = 0; i < 3; i++) {
        assert_runs(0, "$T plan %s --memory-limit 40M --format json", jobs[i]);
        long long batch = number_of("largest_batch_size");
        assert_true(batch > 3);
        assert_runs(0, "$T train %s --data-set synthetic --gpu-memory-limit 40M --batch-size %lld --max-steps 1 "
                       "--train-dir fits%d", jobs[i], batch, i);
        assert_runs(1, "$T train %s --data-set synthetic --gpu-memory-limit 40M --batch-size %lld --max-steps 1 "
                       "--train-dir over%d", jobs[i], batch + 1, i);
        char expected[128];
        snprintf(expected, sizeof expected, "the largest batch for each tower that fits is %lld", batch);
        assert_prints(expected);
        assert_runs(1, "test -e over%d", i); /* nothing was written */
    }
    assert_runs(0, "$T plan mnist --virtual-gpus 1 --memory-limit 100K");
    assert_prints("not even a batch of one example for each tower fits");
}

static void memory_options_are_checked(void **state)
{
    (void)state;
    assert_runs(0, "$T devices --virtual-gpus 1 --virtual-gpu-memory 1G --gpu-memory-fraction 0.4");
    assert_prints("409.6 MiB");
    assert_runs(1, "$T devices --virtual-gpus 1 --gpu-memory-fraction 0.4");
    assert_prints("a part of what?");
    assert_runs(1,
                "$T devices --virtual-gpus 1 --virtual-gpu-memory 1G --gpu-memory-fraction 0.4 --gpu-memory-limit 1M");
    assert_prints("give one of them");
    static const char *const wrong[] = {"12X", "M", "-5", "0", "1.5.2G", "99999999999T", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_runs(2, "$T devices --virtual-gpus 1 --gpu-memory-limit=%s", wrong[i]);
        assert_prints("--gpu-memory-limit: expected bytes such as 512M or 1.5G");
    }
    assert_runs(0, "$T devices --virtual-gpus 1 --gpu-memory-limit 1536K --format json");
    assert_prints("\"memory_limit_bytes\":1572864");
    assert_runs(2, "$T devices --gpu-memory-fraction 1.5");
}

/* ---- tower why ------------------------------------------------------------------------------------------------- */

/* What a machine's vector units decide is left out: the name of the kernel. */
#define ANY_KERNEL " | sed -e \"s/kernel '[a-z0-9_]*'/kernel 'K'/\" -e 's/\\(own kernel *[0-9]*  \\).*/\\1K/'"

/* The output is what tests/golden/explain has under this name; with TOWER_WRITE_GOLDEN it is written there. */
static void assert_golden(const char *name)
{
    char path[512], expected[sizeof output];
    snprintf(path, sizeof path, "%s/explain/%s.txt", GOLDEN_DIR, name);
    bool write = getenv("TOWER_WRITE_GOLDEN") != NULL;
    FILE *file = fopen(path, write ? "w" : "r");
    assert_non_null(file);
    if (write) {
        fputs(output, file);
        fclose(file);
        return;
    }
    expected[fread(expected, 1, sizeof expected - 1, file)] = 0;
    fclose(file);
    assert_string_equal(output, expected);
}

#define GRAPH " --graph '" GOLDEN_DIR "/graph.pb' --batch-size 2"

static void the_story_of_a_node_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *name, *words;
    } cases[] = {
        {"variable", "net/filters --virtual-gpus 2"},
        {"read", "Conv2D/ReadVariableOp --virtual-gpus 2"},
        {"fused", "Conv2D --virtual-gpus 2"},
        {"moved", "Conv2D --virtual-gpus 1"},
        {"wrapped", "Conv2D --virtual-gpus 1 --soft-placement wrap"},
        {"to_cpu", "Conv2D --virtual-gpus 1 --soft-placement cpu"},
        {"constant", "gradients/loss_grad/Shape --virtual-gpus 1"},
        {"table", "'*o*' --virtual-gpus 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_runs(0, "$T why %s" GRAPH ANY_KERNEL, cases[i].words);
        assert_golden(cases[i].name);
    }
    assert_runs(0, "$T why Conv2D --virtual-gpus 1 --format json" GRAPH
                   " | sed 's/\"kernel\":\"[a-z0-9_]*\"/\"kernel\":\"K\"/'");
    assert_golden("json");
}

static void nodes_of_what_would_be_trained_are_explained(void **state)
{
    (void)state;
    assert_runs(0, "$T why tower_1/local3/MatMul cifar10 --virtual-gpus 2 --batch-size 4");
    assert_prints("tower_1/local3/MatMul (MatMul) is on /device:GPU:1\n");
    assert_prints("  became     part of 'tower_1/local3/local3/fused' (_FusedMatMul), kernel '");
    assert_prints("3538944 bytes a step from /device:CPU:0 to /device:GPU:1: it reads 'local3/weights/Read/ReadVariableOp'");
    assert_runs(0, "$T why local3/weights/Read/ReadVariableOp --virtual-gpus 1");
    assert_prints("  chain      'local3/weights/Read/ReadVariableOp' uses the resource of 'local3/weights'\n");
    assert_runs(0, "$T why 'tower_?/local3/*' cifar10 --virtual-gpus 2 --batch-size 4");
    assert_prints("tower_0/local3/BiasAdd      BiasAdd  /device:GPU:0  asked      joined ");
    assert_prints("tower_1/local3/BiasAdd      BiasAdd  /device:GPU:1  asked      joined ");
    assert_runs(0, "$T why tower_1/local3/MatMul cifar10 --tasks 3 --ps-hosts a --batch-size 4");
    assert_prints("tower_1/local3/MatMul (MatMul) is on /job:worker/replica:0/task:1/device:CPU:0\n");
    assert_prints("from /job:ps/replica:0/task:0/device:CPU:0 to /job:worker/replica:0/task:1/device:CPU:0: it reads");
}

/* Of a chain that is folded each node became another that did, too. */
static void a_long_chain_takes_no_time_that_grows_with_its_square(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/chain.pbtxt", directory);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "node { name: 'n0' op: 'Const' attr { key: 'dtype' value { type: 1 } } attr { key: 'value' value { "
                  "tensor { dtype: 1 tensor_shape { } float_val: 1 } } } }\n");
    for (int i = 1; i < 30000; i++)
        fprintf(file, "node { name: 'n%d' op: 'Neg' input: 'n%d' attr { key: 'T' value { type: 1 } } }\n", i, i - 1);
    assert_int_equal(fclose(file), 0);
    assert_runs(0, "(ulimit -t 5; $T why '*' --graph chain.pbtxt) >chain && tail -n 1 chain"); // of processor time
    assert_prints("n29999");
}

static void a_graph_of_any_file_is_explained(void **state)
{
    (void)state;
    const char *saved_models = GOLDEN_DIR "/files/";
    assert_runs(0, "$T why W/read --graph '%s%s'", saved_models, "saved_model");
    assert_prints("W/read (Identity) is on /device:CPU:0\n");
    assert_runs(0, "$T why W/read --graph '%s%s'", saved_models, "saved_model_text");
    assert_prints("W/read (Identity) is on /device:CPU:0\n");
    assert_runs(0, "$T why W --graph '%s%s'", saved_models, "whole.meta");
    assert_prints("W (VariableV2) is on /device:CPU:0\n");
    assert_runs(0, "$T why input_producer/range --graph '%s/tf1_queues_tasks.meta' -n 2", GOLDEN_DIR);
    assert_prints("input_producer/range (Range) is on /job:worker/replica:0/task:1/device:CPU:0\n");
}

static void unknown_nodes_are_answered_with_near_names(void **state)
{
    (void)state;
    assert_runs(1, "$T why tower_0/local3/MatMull cifar10");
    assert_prints("there is no node 'tower_0/local3/MatMull'\ndid you mean 'tower_0/local3/MatMul'");
    assert_runs(1, "$T why 'nothing*' cifar10");
    assert_prints("no node's name fits 'nothing*'");
    assert_runs(2, "$T why");
    assert_prints("expected NODE");
    assert_runs(1, "$T why x --graph nowhere.pb");
    assert_prints("cannot open 'nowhere.pb'");
}

/* ---- tower train ----------------------------------------------------------------------------------------------- */

#define MNIST "$T train mnist --data-set synthetic --batch-size 2 --max-steps 1 --summary-every 0"

static void training_says_what_soft_placement_moved_and_keeps_to_a_budget(void **state)
{
    (void)state;
    assert_runs(0, MNIST " --virtual-gpus 1 --num-gpus 3 --train-dir soft");
    assert_prints("soft placement moved ");
    assert_prints("all that asked ");
    assert_prints("  /device:GPU:2  /device:GPU:0             0  there is no such device\n");
    assert_runs(0, MNIST " --virtual-gpus 1 --num-gpus 2 --train-dir each --verbose");
    assert_prints("tower_1/");
    assert_runs(0, MNIST " --virtual-gpus 2 --train-dir none");
    assert_prints_not("soft placement");
    /* Towers whose GPU is missing meet on the CPU, and so near the variables: that costs nothing. */
    assert_runs(0, MNIST " --virtual-gpus 1 --num-gpus 2 --soft-placement cpu --soft-budget 0 --train-dir cpu");
    assert_runs(2, MNIST " --virtual-gpus 1 --num-gpus 2 --soft-placement off --train-dir hard");
    assert_prints("The nearest valid device is /job:localhost/replica:0/task:0/device:GPU:0.");
}

static void failures_are_events_for_programs_too(void **state)
{
    (void)state;
    assert_runs(1, MNIST " --virtual-gpus 1 --gpu-memory-limit 1000 --train-dir full --format json 2> /dev/null");
    assert_prints("{\"event\":\"error\",");
    assert_prints("\"status\":\"resource exhausted\",\"message\":\"/job:localhost/replica:0/task:0/device:GPU:0 would "
                  "need ");
}

static void resuming_nothing_is_said(void **state)
{
    (void)state;
    assert_runs(0, MNIST " --train-dir mistyped --resume");
    assert_prints("--resume: there is no directory 'mistyped'; training begins at step 0");
    assert_runs(0, "mkdir empty; " MNIST " --train-dir empty --resume");
    assert_prints("--resume: there is no checkpoint in 'empty'");
    assert_runs(0, MNIST " --train-dir empty --resume --max-steps 2");
    assert_prints_not("--resume:");
}

static void a_plan_is_listed_node_by_node_if_asked(void **state)
{
    (void)state;
    assert_int_equal(shell(PROGRAM " plan mnist --virtual-gpus 1 --batch-size 4 --summary-every 0"), 0);
    assert_prints_not("\nplan 0 of lane 0:\n");
    assert_int_equal(shell(PROGRAM " plan mnist --virtual-gpus 1 --batch-size 4 --summary-every 0 --verbose 2>&1"), 0);
    assert_prints("\nplan 0 of lane 0:\n  device           kernel       bytes read      written  "
                  "op                           node\n");
    /* floats [4, 128], [128, 1024] and [1024]; [4, 1024] */
    assert_prints("  /device:GPU:0    onednn           530432        16384  _FusedMatMul                 tower_0/L3/");
    assert_prints("  /device:GPU:0    copy              12544        12544  _Copy                        ");
    assert_int_equal(shell(PROGRAM " plan mnist --batch-size 4 --summary-every 0 --verbose --format json 2>/dev/null"),
                     0);
    assert_prints("\"runs\":\"onednn\",\"op\":\"_FusedMatMul\",\"name\":\"tower_0/L3/");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_lists_memory_by_device_tower_and_tensor),
        cmocka_unit_test(a_plan_is_made_for_tasks_that_are_not_started),
        cmocka_unit_test(the_largest_batch_fits_and_one_more_does_not),
        cmocka_unit_test(memory_options_are_checked),
        cmocka_unit_test(the_story_of_a_node_is_told),
        cmocka_unit_test(nodes_of_what_would_be_trained_are_explained),
        cmocka_unit_test(a_graph_of_any_file_is_explained),
        cmocka_unit_test(a_long_chain_takes_no_time_that_grows_with_its_square),
        cmocka_unit_test(unknown_nodes_are_answered_with_near_names),
        cmocka_unit_test(training_says_what_soft_placement_moved_and_keeps_to_a_budget),
        cmocka_unit_test(failures_are_events_for_programs_too),
        cmocka_unit_test(resuming_nothing_is_said),
        cmocka_unit_test(a_plan_is_listed_node_by_node_if_asked),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
