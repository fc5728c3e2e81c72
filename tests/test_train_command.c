/* `tower train` and `tower eval`, run as a user runs them, on random images. */
#include "program.h"

#include <tower/models.h>

#define SMALL_RUN "$T train cifar10 --data-set synthetic --batch-size 4 --log-every 1"

/* "22:30:01: step 0, loss = 4.68 (4012.3 examples/sec; 0.032 sec/batch)", of at most 80 columns; with several towers
 * "0.064 sec/step" at its end. The tutorial's has the date and microseconds, and always "sec/batch". */
static void check_line(int64_t step, bool as_tutorial)
{
    char start[64];
    snprintf(start, sizeof start, ": step %lld, loss = ", (long long)step);
    assert_prints(start);
    const char *line = strstr(output, start);
    int end = 0, rest = 0;
    double loss, rate, batch;
    while (line > output && line[-1] != '\n')
        line--;
    const char *time = as_tutorial ? "%*4d-%*2d-%*2d %*2d:%*2d:%*2d.%*6d%n" : "%*2d:%*2d:%*2d%n";
    sscanf(line, time, &end);
    if (end != (as_tutorial ? 26 : 8))
        fail_msg("no time: %.*s", (int)strcspn(line, "\n"), line);
    line += end;
    int fields = sscanf(line, ": step %*d, loss = %lf (%lf examples/sec; %lf %n", &loss, &rate, &batch, &end);
    sscanf(line + end, "sec/batch)%n", &rest);
    if (!rest && !as_tutorial)
        sscanf(line + end, "sec/step)%n", &rest);
    if (fields != 3 || !rest || line[end + rest] != '\n')
        fail_msg("not the line of a step: %.*s", (int)strcspn(line, "\n"), line);
    assert_true(as_tutorial || strcspn(line, "\n") <= 80 - 8);
    if (step == 0)
        assert_true(fabs(loss - 4.68) <= 0.05);
    assert_true(rate > 0 && batch > 0);
}

static void check_step_line(int64_t step)
{
    check_line(step, false);
}

static void training_says_what_runs_where_and_prints_the_tutorials_lines(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 2 --virtual-gpus 2 --towers 4 --input-threads 1 --train-dir t1");
    assert_prints("  towers 0, 2    /job:localhost/replica:0/task:0/device:GPU:0\n");
    assert_prints("  towers 1, 3    /job:localhost/replica:0/task:0/device:GPU:1\n");
    assert_prints("batch          4 for each of 4 towers: 16 examples a step");
    assert_prints("data set       synthetic");
    assert_prints("input          made on the host by 1 thread\n");
    assert_prints("reduction      mean of the towers' gradients");
    assert_prints("seed           1\n");
    assert_prints("memory         ");
    check_step_line(0);
    check_step_line(1);
    assert_runs(0, "ls t1");
    assert_prints("events.out.tfevents.");
    assert_prints("model.ckpt-2.index");
}

static void training_without_devices_runs_on_the_cpu(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 1 --train-dir t2");
    assert_prints("  tower 0        /job:localhost/replica:0/task:0/device:CPU:0\n");
    check_step_line(0);
}

/* The first files that are opened then would be what it prints to. */
static void closed_standard_output_lands_in_no_file(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 1 --train-dir closed <&- >&- 2>&-");
    assert_runs(1, "grep -a 'sec/batch\\|step 0, loss' closed/*");
    assert_runs(0, "$T checkpoint verify closed");
}

static void a_file_over_the_limit_of_the_shell_is_an_error_with_its_name(void **state)
{
    (void)state;
    assert_runs(1, "ulimit -f 64 && " SMALL_RUN " --max-steps 1 --train-dir limited 2>&1");
    assert_prints("File too large");
    assert_prints("limited/");
    assert_runs(0, SMALL_RUN " --max-steps 1 --train-dir exported");
    assert_runs(1, "ulimit -f 64 && $T export exported exported.npz 2>&1");
    assert_prints("cannot write 'exported.npz': File too large"); /* not the name that it has until it is whole */
    assert_runs(1, "ulimit -f 64 && $T export exported exported_served 2>&1");
    assert_prints("cannot write 'exported_served/variables/variables.data-00000-of-00001': File too large");
}

static void devices_make_their_batches_when_asked(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 1 --virtual-gpus 1 --input device --train-dir t_input");
    assert_prints("input          made by each tower's device, where the data set lies\n");
    check_step_line(0);
    assert_runs(2, SMALL_RUN " --max-steps 1 --virtual-gpus 1 --input device --compat tutorial --train-dir t_input_2");
    assert_prints("devices make batches of one stream");
}

static void flags_of_the_tutorial_are_understood(void **state)
{
    (void)state;
    assert_runs(0, "$T train cifar10 --data_set=synthetic --train_dir=t3 --max_steps=1 --batch_size=4 --num_gpus=2 "
                   "--log_device_placement=True 2>log");
    check_step_line(0);
    assert_runs(0, "cat log");
    assert_prints("/conv1/Conv2D: (Conv2D): /job:localhost/replica:0/task:0/");
}

static void flags_are_typed_as_absl_takes_them(void **state)
{
    (void)state;
    static const char *const good[] = {"--nolog_device_placement --use_fp16 --sync",
                                       "--use_fp16=True --nouse_fp16 --log_frequency 5 --nosync",
                                       "--use_fp16=False --num-inter-threads 0 --num-intra-threads 1 "
                                       "--data-format channels_last"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_runs(0, "rm -rf absl; $T train cifar10 --data-set synthetic --batch-size 1 --max-steps 1 --train-dir absl %s", good[i]);
    static const char *const wrong[][2] = {
        {"--nolog_device_placement=1", "--nolog_device_placement takes no value, found '1'"},
        {"--nobatch_size", "unknown option '--nobatch_size'"},
        {"--use_fp16=half", "expected on or off, found 'half'"},
        {"--sync --max-steps", "--max-steps: expected N after it, found the end"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_runs(2, "$T train cifar10 --train-dir absl %s", wrong[i][0]);
        assert_prints(wrong[i][1]);
    }
}

static void evaluation_goes_on_as_cifar10_eval_does(void **state)
{
    (void)state;
    assert_runs(0, "rm -rf on; $T train cifar10 --data-set synthetic --batch-size 1 --max-steps 1 --train-dir on && "
                   "$T eval cifar10 --compat tutorial --checkpoint_dir on --eval_dir events --run_once >line && "
                   "wc -l line && cat line && grep -aq 'Precision @ 1' events/events.out.tfevents.*");
    assert_prints("1 line\n");
    assert_prints(": precision @ 1 = ");
    assert_runs(128 + 15, "$T eval cifar10 --checkpoint_dir=nothing_yet --data-set synthetic --eval_interval_secs=1 "
                          "> waits & job=$!; seen 'No checkpoint file found' waits && kill $job; wait $job; "
                          "code=$?; cat waits; exit $code");
    assert_prints("No checkpoint file found");
}

static void steps_as_json_are_an_object_a_line(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 2 --train-dir t4 --format json --seed 7");
    assert_prints("{\"event\":\"start\",");
    assert_prints("\"seed\":7,");
    assert_prints("\n{\"event\":\"plan\",");
    assert_prints("\n{\"event\":\"step\",");
    assert_prints(",\"step\":1,");
    assert_prints("\"path\":\"t4/model.ckpt-2\"");
    assert_prints("\n{\"event\":\"end\",");
}

static void resumed_training_ends_with_the_same_bits(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 4 --towers 2 --virtual-gpus 1 --train-dir whole");
    assert_runs(0, SMALL_RUN " --max-steps 2 --towers 2 --virtual-gpus 1 --train-dir parts");
    assert_runs(1, SMALL_RUN " --max-steps 4 --towers 2 --virtual-gpus 1 --train-dir parts");
    assert_prints("'parts' holds checkpoints of an earlier run, up to step 2; --resume continues it");
    assert_runs(0, SMALL_RUN " --max-steps 4 --virtual-gpus 2 --train-dir parts --resume");
    check_step_line(3);
    assert_runs(0, "cmp whole/model.ckpt-4.data-00000-of-00001 parts/model.ckpt-4.data-00000-of-00001");
    assert_runs(0, "cmp whole/model.ckpt-4.index parts/model.ckpt-4.index");
}

static void type_is_remembered(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 1 --train-dir half --dtype bfloat16");
    assert_runs(2, SMALL_RUN " --max-steps 2 --train-dir half --resume --dtype float32");
    assert_prints("was made with dtype bfloat16, but float32 was asked for");
    assert_runs(0, "$T checkpoint show half --tensor tower/dtype");
    assert_prints("tower/dtype: string []\nvalues: 'bfloat16'\n");
    assert_runs(0, "$T checkpoint show half --tensor tower/dtype --format json");
    assert_prints("\"values\":[\"bfloat16\"]");
    assert_runs(0, SMALL_RUN " --max-steps 2 --train-dir half --resume");
}

static void cpu_devices_with_equal_teams_give_equal_bits(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 2 --towers 2 --cpu-threads 1 --train-dir cpu1");
    assert_runs(0, SMALL_RUN " --max-steps 2 --towers 2 --cpu-threads 1 --num-gpus 0 --cpu-devices 2 --train-dir cpu2");
    assert_prints("  tower 1        /job:localhost/replica:0/task:0/device:CPU:1\n");
    assert_runs(0, "cmp cpu1/model.ckpt-2.data-00000-of-00001 cpu2/model.ckpt-2.data-00000-of-00001");
}

static void summaries_do_not_come_before_the_message_of_a_diverging_loss(void **state)
{
    (void)state;
    assert_runs(1, SMALL_RUN " --max-steps 50 --train-dir wild --learning-rate 100000 --summary-every 1");
    assert_prints("tower train: Model diverged with loss = ");
    assert_prints(" in tower_0 (/job:localhost/replica:0/task:0/device:CPU:0)");
    assert_runs(0, "$T checkpoint ls wild");
    assert_prints("there is none in wild");
}

static void only_damaged_checkpoints_are_no_reason_to_start_anew(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 1 --train-dir hurt && truncate -s 1000 hurt/model.ckpt-1.data*");
    assert_runs(1, SMALL_RUN " --max-steps 2 --train-dir hurt --resume");
    assert_prints("none of the 1 checkpoints in 'hurt' is complete");
    assert_prints_not("step 0");
    assert_runs(0, "mkdir new && " SMALL_RUN " --max-steps 1 --train-dir new --resume"); /* without any it does */
    check_step_line(0);
}

static void signal_finishes_the_step_saves_and_leaves(void **state)
{
    (void)state;
    assert_runs(143, SMALL_RUN " --train-dir stopped >lines & job=$!; "
                               "seen 'step 1,' lines && kill -TERM $job; wait $job");
    assert_runs(0, "cat lines");
    assert_prints("stopped by signal 15 with ");
    assert_runs(0, "$T checkpoint verify stopped");
    assert_prints(": whole");
}

/* And evaluated, each in the directory of its own name. */
static void residual_networks_are_trained_with_the_same_options(void **state)
{
    (void)state;
    assert_runs(0,
                "$T train resnet20 --data-set synthetic --batch-size 2 --max-steps 2 --log-every 1 --virtual-gpus 2");
    assert_prints("the residual network of 20 layers for CIFAR-10 (269,787 parameters)");
    assert_prints("step 1, loss = ");
    assert_runs(0, "$T eval resnet20 --data-set synthetic");
    assert_prints(": precision @ 1 = 0.");
    assert_runs(0, "ls resnet20_train");
    assert_prints("model.ckpt-2.index");
}

static void mnist_trains_on_grey_images(void **state)
{
    (void)state;
    assert_runs(0, "$T train mnist --data-set synthetic --batch-size 4 --max-steps 1 --num-gpus 2 --virtual-gpus 2");
    assert_prints("batch          4 for each of 2 towers: 8 examples a step");
    assert_runs(0, "$T eval mnist --data-set synthetic --train-dir mnist_train");
    assert_prints(": precision @ 1 = 0.");
}

static void optimizer_is_remembered_and_learning_rate_chosen(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 1 --train-dir o1 --optimizer adam --learning-rate 0.001");
    assert_runs(0, "$T checkpoint show o1/model.ckpt-1");
    assert_prints("conv1/weights/Adam_1");
    assert_runs(2, SMALL_RUN " --max-steps 2 --train-dir o1 --resume --optimizer momentum");
    assert_prints("was made with optimizer adam, but momentum was asked for");
    assert_runs(0, SMALL_RUN " --max-steps 2 --train-dir o1 --resume");
    assert_runs(2, SMALL_RUN " --train-dir o2 --learning-rate 0.1x");
    assert_prints("--learning-rate: expected a number above 0 and at most 1000000, such as 0.1, found '0.1x'");
}

static void rewrites_may_be_left_out(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 1 --train-dir t10 --disable fuse,reuse");
    check_step_line(0);
    assert_runs(0, SMALL_RUN " --max-steps 1 --towers 2 --train-dir t11 --disable collective");
    assert_prints("reduction      mean of the towers' gradients: one device");
}

static void gradients_meet_by_the_algorithm_that_is_named(void **state)
{
    (void)state;
    static const char run[] = SMALL_RUN " --max-steps 2 --towers 3 --all-reduce-spec pscpu:2k:ring "
                                        "--compact_gradient_transfer bfloat16 ";
    assert_runs(0, "%s --virtual-gpus 1 --train-dir r1", run);
    assert_prints("reduction      mean of the towers' gradients: pscpu:2k:ring");
    assert_runs(0, "%s --virtual-gpus 3 --train-dir r3", run);
    assert_runs(0, "cmp r1/model.ckpt-2.data-00000-of-00001 r3/model.ckpt-2.data-00000-of-00001");
    assert_runs(2, SMALL_RUN " --all-reduce-spec rings");
    assert_prints("expected one of tree, ring, xring, rechd, pscpu, psgpu, hierarchical, nccl at character 1, found 'rings'");
    assert_runs(2, SMALL_RUN " --all-reduce-spec collective");
    assert_prints("'collective' at character 1 is not available");
    assert_runs(2, SMALL_RUN " --towers 2 --virtual-gpus 2 --all-reduce-spec nccl/xring");
    assert_prints("--all-reduce-spec=nccl/xring goes with --variable-update=replicated only, not with parameter_server");
    assert_runs(2, SMALL_RUN " --towers 2 --virtual-gpus 2 --all-reduce-spec nccl --variable-update replicated");
    assert_prints("NCCL works between real GPUs, and /job:localhost/replica:0/task:0/device:GPU:0 is of kind 'virtual'");
    assert_runs(2, SMALL_RUN " --gradient-repacking 2 --agg-small-grads-max-bytes 10");
    assert_prints("give one of them");
}

static void asynchronous_updates_are_measured_logged_and_replayed(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --sync off --virtual-gpus 3 --max-steps 9 --train-dir stale");
    assert_prints("batch          4 for each of 3 towers: 4 examples a step");
    assert_prints("updates        asynchronous, in order of arrival; each is a step");
    assert_prints(" examples/sec); staleness ");
    assert_prints("staleness: ");
    assert_prints("  tower 2 ");
    assert_runs(0, "$T train cifar10 --data-set synthetic --replay stale/order.log --virtual-gpus 1 --train-dir again");
    assert_prints("updates        asynchronous, in a replayed order");
    assert_prints("0 to 9 (");
    assert_runs(0, "cmp stale/order.log again/order.log");
    assert_runs(0, "$T train cifar10 --resume --train-dir stale --data-set synthetic --virtual-gpus 2 --max-steps 12 "
                   "--format json");
    assert_prints("\"updates\":\"asynchronous, in order of arrival\"");
    assert_prints("\"staleness\":{\"updates\":3,");
    assert_runs(2, "$T train cifar10 --resume --train-dir stale --data-set synthetic --sync on 2>&1");
    assert_prints("was made with updates asynchronous, but synchronous was asked for");
}

static void what_is_only_for_asynchronous_updates_is_refused_with_others(void **state)
{
    (void)state;
    assert_runs(2, SMALL_RUN " --max-staleness 3 --train-dir no 2>&1");
    assert_prints("--max-staleness is for --sync off");
    assert_runs(2, SMALL_RUN " --sync on --order equal --train-dir no 2>&1");
    assert_prints("--order is for --sync off");
    assert_runs(2, SMALL_RUN " --sync off --virtual-gpus 2 --all-reduce-spec ring --train-dir no 2>&1");
    assert_prints("with --sync off each tower's gradients are applied by themselves");
    assert_runs(2, SMALL_RUN " --sync off --virtual-gpus 2 --trace trace.json --train-dir no 2>&1");
    assert_prints("--trace shows a synchronous step; with --sync off they overlap");
    assert_runs(2, SMALL_RUN " --sync off --virtual-gpus 2 --variable-update replicated --train-dir no 2>&1");
    assert_prints("--sync off needs one copy of the variables, --variable-update=parameter_server, not replicated");
    assert_runs(2, SMALL_RUN " --sync off --virtual-gpus 2 --staged-vars --train-dir no 2>&1");
    assert_prints("not parameter_server with --staged-vars");
    assert_runs(2, SMALL_RUN " --sync off --virtual-gpus 2 --accumulate 2 --train-dir no 2>&1");
    assert_prints("--sync off goes without --accumulate");
    assert_runs(2, SMALL_RUN " --replay order.log --max-staleness 1 --train-dir no 2>&1");
    assert_prints("--replay says in which order towers update; leave out --max-staleness");
}

static void trace_is_written_at_the_end(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 1 --train-dir t5 --trace trace.json && cat trace.json");
    assert_prints("traceEvents");
    assert_prints("Conv2DBackpropFilter"); /* the step, not the summaries of step 0 */
    assert_runs(1, SMALL_RUN " --max-steps 1 --train-dir t12 --trace nowhere/trace.json");
    assert_prints("--trace: cannot write 'nowhere/trace.json': No such file or directory");
    assert_prints_not("step 0");
    assert_runs(1, SMALL_RUN " --max-steps 1 --train-dir t12 --trace /dev/null");
    assert_prints("--trace: expected a file to write, but '/dev/null' is something else");
}

static void settings_that_cannot_be_are_refused_as_usage(void **state)
{
    (void)state;
    assert_runs(2, "$T train cifar11");
    assert_prints("found 'cifar11'; did you mean 'cifar10'?");
    assert_runs(2, SMALL_RUN " --train-dir t6 --devices gpuu:0");
    assert_prints("'/gpuu:0'");
    assert_runs(2, SMALL_RUN " --train-dir t6 --devices gpu:0,,gpu:1");
    assert_prints("--devices: expected names such as gpu:0,gpu:1");
    assert_runs(2, SMALL_RUN " --train-dir t6 --devices gpu:0 --num-gpus 1");
    assert_prints("--devices and --num-gpus both say");
    assert_runs(2, SMALL_RUN " --train-dir t6 --disable fold,fuze");
    assert_prints("--disable: there is no rewrite 'fuze'; did you mean 'fuse'?");
}

static void a_total_batch_is_shared_out_and_odd_shares_are_named(void **state)
{
    (void)state;
    assert_runs(2, "$T train cifar10 --data-set synthetic --train-dir t7 --towers 3 --global-batch-size 2");
    assert_prints("--global-batch-size=2 leaves no example for tower 2 of 3");
    assert_runs(2, SMALL_RUN " --train-dir t7 --towers 2 --global-batch-size 10");
    assert_prints("--batch-size=4 for each of 2 towers makes 8, not --global-batch-size=10");
    assert_runs(2, "$T train cifar10 --data-set synthetic --train-dir t7 --global-batch-size 8 --tower-shares 3:x");
    assert_prints("--tower-shares: expected a part for each tower, such as 3:1, found '3:x'");
    assert_runs(0,
                "$T train cifar10 --data-set synthetic --train-dir t7 --towers 2 --global-batch-size 7 --max-steps 1");
    assert_prints("batch          4, 3 for 2 towers: 7 examples a step");
    assert_runs(0, "$T train cifar10 --data-set synthetic --train-dir t7 --resume --global-batch-size 7 --max-steps 2");
    assert_prints("batch          4, 3 for 2 towers: 7 examples a step"); /* though one device alone has one tower */
    assert_runs(2, "$T train cifar10 --data-set synthetic --train-dir t7 --resume --global-batch-size 8 --max-steps 3");
    assert_prints("was made with 7 examples a step, 3 of them for tower 1, but 8 and 4 were asked for");
    assert_runs(0, "$T train cifar10 --data-set synthetic --train-dir t7b --towers 2 --global-batch-size 8 "
                   "--tower-shares 3:1 --max-steps 1 --format json");
    assert_prints("\"tower_shares\":[6,2]");
}

static void the_header_says_the_mode_and_where_variables_lie(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --train-dir t13 --towers 2 --virtual-gpus 2 --max-steps 1 --variable-strategy GPU");
    assert_prints("parameter_server: the mean gradient is applied to the one copy there is");
    assert_prints("variables      least-loaded: GPU:0 6.8 MiB, GPU:1 1.4 MiB");
    assert_prints("numbers        those of one device with as many towers");
    assert_runs(0, SMALL_RUN " --train-dir t14 --towers 2 --virtual-gpus 2 --max-steps 1 --format json "
                             "--variable-update replicated --variable-consistency relaxed");
    assert_prints("\"variable_update\":\"replicated\"");
    assert_prints("\"variable_consistency\":\"relaxed\"");
    assert_prints("device:GPU:1\",\"bytes\":8546384");
    assert_runs(0, SMALL_RUN " --train-dir t14 --virtual-gpus 1 --resume --max-steps 2");
    assert_prints("replicated, relaxed: each tower applies the mean gradient of the step before to its own copy");
    assert_runs(0, SMALL_RUN " --train-dir t15 --virtual-gpus 2 --max-steps 1 --variable-update auto");
    assert_prints("independent, the bound");
    assert_prints("; towers that never meet would do ");
    assert_runs(2, SMALL_RUN " --train-dir t16 --variable-update auto --staged-vars");
    assert_prints("--staged-vars leaves it no choice, so give one of the two");
    assert_runs(2, SMALL_RUN " --train-dir t16 --staged-vars --variable-update replicated");
    assert_prints("--staged-vars goes with --variable-update=parameter_server only");
}

static void missing_device_without_soft_placement_gets_tensorflows_message(void **state)
{
    (void)state;
    assert_runs(2, SMALL_RUN " --train-dir t8 --num-gpus 1 --soft-placement=off");
    assert_prints("Cannot assign a device for operation 'tower_0/");
    assert_prints("but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ]");
    assert_prints("[[Node: tower_0/");
}

static void training_fails_before_it_starts_where_it_cannot_write_or_read(void **state)
{
    (void)state;
    assert_runs(1, SMALL_RUN " --train-dir /dev/null/x --max-steps 1");
    assert_prints("/dev/null");
    assert_prints_not("step 0");
    assert_runs(1, "$T train cifar10 --data-dir nowhere --train-dir t9");
    assert_prints("there is no data set in 'nowhere': No such file or directory: expected images of your own");
    assert_prints("tower data fetch cifar10 --data-dir nowhere");
    assert_runs(1, "$T train resnet50 --data-dir nowhere --train-dir t9");
    assert_prints("there is no data set in 'nowhere'");
    assert_prints_not("fetch");
    write_cifar("scraps", 2);
    assert_runs(1, "truncate -s 5000 scraps/data_batch_2.bin; $T train cifar10 --data-dir scraps --train-dir t9");
    assert_prints("data_batch_");
}

static void evaluation_prints_the_tutorials_line(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 1 --train-dir e1");
    assert_runs(0, "$T eval cifar10 --data-set synthetic --train-dir e1");
    assert_prints(": precision @ 1 = 0.");
    assert_runs(0, "$T eval cifar10 --data-set synthetic --train-dir e1 --raw --format json");
    assert_prints("\"step\":1,\"precision_at_1\":0.");
    assert_prints("\"moving_averages\":false");
    assert_runs(1, "mkdir -p none && $T eval cifar10 --data-set synthetic --train-dir none");
    assert_prints("tower eval: there is no checkpoint in 'none'");
    assert_runs(1, "$T eval cifar10 --data-set synthetic");
    assert_prints("there is no checkpoint 'cifar10_train': neither a directory nor 'cifar10_train.index' is there");
}

static void models_of_the_library_are_those_of_the_table(void **state)
{
    (void)state;
    char line[512] = "MODEL: expected one of ";
    for (int i = 0; i < tw_model_count(); i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s", i ? ", " : "", tw_model_at(i)->name);
    strcat(line, ", found 'none'");
    assert_runs(2, "$T train none");
    assert_prints(line);
}

#define ESTIMATOR "$T train resnet --data-set synthetic --log-every 1 "

static void the_records_network_is_looked_at_six_times(void **state)
{
    (void)state;
    assert_runs(0, "$T train airbench --data-set synthetic --width-multiplier 0.125 --batch-size 4 --max-steps 2 "
                   "--train-dir record");
    assert_runs(0, "$T eval record");
    assert_prints("6 of each example");
    assert_runs(0, "$T eval record --views one --format json");
    assert_prints("\"views\":1");
}

static void flags_of_cifar10_estimator_are_understood(void **state)
{
    (void)state;
    assert_runs(0, ESTIMATOR "--job-dir est1 --num-classes 10 --train-batch-size 2 --train-steps 1 --format json");
    assert_prints("\"parameters\":658586");
    assert_prints("\"global_batch_size\":2");
    assert_runs(0, ESTIMATOR "--job-dir est2 --num-layers 8 --num-classes 10 --train-batch-size 8 --train-steps 2 "
                             "--num-gpus 2 --virtual-gpus 2 --momentum 0.8 --weight-decay 1e-4 --batch-norm-decay 0.9 "
                             "--batch-norm-epsilon 1e-3 --use-distortion-for-training off");
    assert_prints("4 for each of 2 towers: 8 examples a step");
    assert_runs(0, "$T eval resnet --data-set synthetic --job-dir est2 --num-layers 8 --num-classes 10 "
                   "--batch-norm-epsilon 1e-3 --eval-batch-size 77");
    assert_prints("precision @ 1 = ");
    assert_runs(1, "$T eval resnet --data-set synthetic --job-dir est2 --num-layers 14");
}

static void compat_prints_the_last_towers_loss_and_the_tutorials_line(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --compat tutorial --max-steps 1 --virtual-gpus 2 --train-dir compat1");
    check_line(0, true);
    assert_prints(" sec/batch)\n");
    assert_prints("rate           0.1, times 0.1 every 4375000 steps (34179.7 epochs)");
    assert_runs(0, "ls compat1");
    assert_prints("model.ckpt-0.meta\n");
    assert_runs(0, "$T checkpoint show compat1");
    assert_prints("tower_1/cross_entropy/avg");
    assert_runs(0, "grep -aq 'cross_entropy (raw)' compat1/events* && grep -aq images/image/0 compat1/events*");
    assert_runs(0, SMALL_RUN " --compat tutorial --max-steps 2 --virtual-gpus 2 --train-dir compat1 --resume");
    check_line(1, true);
    assert_prints("saved as compat1/model.ckpt-1\n");
    assert_runs(0, SMALL_RUN
                " --compat tutorial-prefetch --max-steps 1 --virtual-gpus 2 --train-dir compat2 --format json");
    assert_prints("\"loss\":4.");
    assert_runs(0, SMALL_RUN " --max-steps 1 --virtual-gpus 2 --train-dir compat3");
    assert_prints(" sec/step)\n");
    assert_runs(0,
                ESTIMATOR "--compat estimator --job-dir compat4 --num-layers 8 --train-batch-size 4 --train-steps 1");
    assert_prints("rate           0.1, times 0.1 from step 922500 (epoch ");
    assert_runs(2, ESTIMATOR "--compat estimator --job-dir compat5 --num-layers 8 --train-batch-size 10 --num-gpus 3 "
                             "--virtual-gpus 3 --train-steps 1");
    assert_prints("--train-batch-size must be multiple of --num-gpus, which 10 is not of 3");
    assert_runs(2, SMALL_RUN " --compat estimator --max-steps 1 --train-dir compat5");
    assert_prints("--compat estimator: expected a residual network for CIFAR-10, such as resnet, found the model cifar10");
    assert_runs(2, ESTIMATOR "--compat tutorial --train-dir compat5");
    assert_prints("--compat tutorial: expected the model cifar10, found the model resnet");
}

/* Files of black images, as large as CIFAR-10's. What was written beside the checkpoint is a program by itself. */
static void compat_reads_the_files_in_the_graph_which_goes_on_by_itself(void **state)
{
    (void)state;
    const char *run = "$T train cifar10 --data-dir black --compat tutorial-prefetch --virtual-gpus 2 --batch-size 2 "
                      "--train-dir compat6 --max-steps 2 --summary-every 1";
    assert_runs(0, "mkdir black && for i in 1 2 3 4 5; do truncate -s 30730000 black/data_batch_$i.bin; done");
    assert_runs(0, "%s", run);
    assert_prints("input          read by the graph from the data set's files, with queues that 16 threads fill");
    assert_prints("reduction      mean of the towers' gradients: tree\n");
    assert_runs(0, "grep -aq shuffle_batch/fraction_over_20000_of_6_full compat6/events*");
    assert_runs(0, "$T run compat6/model.ckpt-1.meta --restore compat6/model.ckpt-1 --train-for 2 "
                   "--fetch tower_0/total_loss");
    assert_prints("step 4: tower_0/total_loss = ");
    assert_runs(2, "%s --hold-back 10000 --resume", run);
    assert_prints("data set cifar10 has 40000 examples, its files 50000");
    assert_runs(1, "rm -r black; $T run compat6/model.ckpt-1.meta --restore compat6/model.ckpt-1 --train-for 2");
    assert_prints("black/data_batch_");
}

static void wrong_values_of_cifar10_estimators_flags_are_refused(void **state)
{
    (void)state;
    assert_runs(2, ESTIMATOR "--job-dir est3 --num-layers 45");
    assert_prints("Invalid --num-layers parameter: three stages of blocks of two layers and two more make 6n + 2, such "
                  "as 44 or 50, found 45");
    assert_runs(2, ESTIMATOR "--job-dir est3 --train-batch-size 2 --num-gpus 3 --virtual-gpus 3");
    assert_prints("--global-batch-size=2 leaves no example for tower 2 of 3");
    assert_runs(2, ESTIMATOR "--job-dir est3 --momentum 1.5");
    assert_prints("--momentum: expected a number above 0 and at most 1, found '1.5'");
    assert_runs(2, ESTIMATOR "--job-dir est3 --weight-decay -1");
    assert_prints("--weight-decay: expected a number of at least 0 and at most 1000, found '-1'");
    assert_runs(2, ESTIMATOR "--job-dir est3 --num-classes 9");
    assert_prints("of at most 9 classes");
    assert_runs(2, ESTIMATOR "--job-dir est3 --momentum 0.8 --optimizer adam");
    assert_prints("--momentum belongs to --optimizer momentum, which is not what resnet trains with here");
    assert_runs(2, "$T train cifar10 --data-set synthetic --train-dir est3 --num-layers 20");
    assert_prints("--num-layers: the model cifar10 comes in one depth only");
    assert_runs(2, "$T train cifar10 --data-set synthetic --train-dir est3 --width-multiplier 0.5");
    assert_prints("--width-multiplier: the model cifar10 has no other width");
    assert_runs(2, "$T train cifar10 --data-set synthetic --train-dir est3 --batch-norm-decay 0.9");
    assert_prints("--batch-norm-decay: the model cifar10 has no batch normalization");
}

static void networks_for_imagenet_train_on_random_images(void **state)
{
    (void)state;
    assert_runs(0, "$T train resnet50 --data-set synthetic --max-steps 1 --batch-size 1 --log-every 1");
    assert_prints("data set       synthetic, 222 examples");
    assert_prints("step 0, loss = ");
    assert_runs(0, "$T train trivial --max-steps 2 --batch-size 2 --train-dir trivial_train --virtual-gpus 2");
}

static void a_rule_departs_from_the_models_recipe(void **state)
{
    (void)state;
#define RULE_RUN SMALL_RUN " --max-steps 2 --train-dir rule1 --optimizer adamw --learning-rate 0.001 --warm-up 2 --schedule " \
                           "cosine --rate-length 10 --clip-norm 1 --accumulate 2 --loss-scale auto"
    assert_runs(0, RULE_RUN);
    assert_prints("for each of 2 towers");
    assert_prints("rate           0.001, along a cosine to 0 at step ");
    assert_prints("rises in a line until step ");
    assert_prints("rule           Adam (beta 0.9 and 0.999, epsilon 1e-08); weight decay 0.01 beside the gradient; averaged "
                  "gradients clipped to a norm of 1; loss scaled automatically, from 32768, doubled after 1000 good steps");
    assert_runs(2, SMALL_RUN " --max-steps 3 --train-dir rule1 --resume --optimizer adam");
    assert_prints("was made with another rule. Then: Adam");
    assert_runs(0,
                SMALL_RUN " --max-steps 3 --train-dir rule1 --resume --optimizer adamw --clip-norm 1 --loss-scale auto "
                          "--learning-rate 0.01");
    assert_prints("tower train: this run goes on with learning rate 0.01 instead of 0.001\n");
    assert_prints("rate           0.01, along a cosine to 0 at step ");
    assert_runs(0,
                SMALL_RUN " --max-steps 1 --train-dir rule2 --rate-steps '0.1;82;0.01;123;0.001' --optimizer rmsprop "
                          "--beta1 0 --dtype float16 --loss-scale 128 --weight-decay-of weights");
    assert_prints("rate           0.1, 0.01 from step ");
    assert_prints("RMSProp (decay 0.9, momentum 0, epsilon 1)");
    assert_prints("loss scaled by 128");
}

static void rules_that_contradict_themselves_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *options, *message;
    } cases[] = {
        {"--rate-steps '0.1;82'", "--rate-steps must have an odd number of components"},
        {"--rate-steps '0.1;82;0.01;40;1'", "times must rise, but 40 follows 82"},
        {"--rate-steps '0.1;x;1'", "expected numbers with ';' between them"},
        {"--rate-steps '0.1;82;0.01' --schedule cosine", "both say how the rate goes on"},
        {"--rate-steps '0.1;82;0.01' --learning-rate 1", "leave --learning-rate out"},
        {"--schedule cosine", "--schedule needs --rate-length"},
        {"--rate-length 3", "--rate-length belongs to"},
        {"--schedule exponential --rate-length 3", "--schedule exponential and --rate-factor belong together"},
        {"--schedule cosine --rate-length 3 --rate-power 2", "--rate-power belongs to --schedule polynomial"},
        {"--optimizer sgd --nesterov", "--nesterov belongs to --optimizer momentum"},
        {"--optimizer sgd --beta2 0.9", "belong to --optimizer adam, adamw and rmsprop"},
        {"--optimizer rmsprop --loss-scale auto", "Automatic loss scaling is not supported with RMSProp's momentum"},
        {"--optimizer muon --loss-scale auto", "Automatic loss scaling is not supported with Muon"},
        {"--loss-scale much", "--loss-scale: expected auto or a number"},
        {"--loss-scale 8 --loss-scale-every 5", "--loss-scale-every belongs to --loss-scale auto"},
        {"--accumulate 1000 --towers 3", "makes 3000 towers in all, expected at most 1024"},
    };
    char command[400];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(command, sizeof command, "%s --train-dir rule3 %s", SMALL_RUN, cases[i].options);
        assert_runs(2, "%s", command);
        assert_prints(cases[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_says_what_runs_where_and_prints_the_tutorials_lines),
        cmocka_unit_test(training_without_devices_runs_on_the_cpu),
        cmocka_unit_test(closed_standard_output_lands_in_no_file),
        cmocka_unit_test(a_file_over_the_limit_of_the_shell_is_an_error_with_its_name),
        cmocka_unit_test(devices_make_their_batches_when_asked),
        cmocka_unit_test(flags_of_the_tutorial_are_understood),
        cmocka_unit_test(flags_are_typed_as_absl_takes_them),
        cmocka_unit_test(evaluation_goes_on_as_cifar10_eval_does),
        cmocka_unit_test(steps_as_json_are_an_object_a_line),
        cmocka_unit_test(resumed_training_ends_with_the_same_bits),
        cmocka_unit_test(type_is_remembered),
        cmocka_unit_test(cpu_devices_with_equal_teams_give_equal_bits),
        cmocka_unit_test(summaries_do_not_come_before_the_message_of_a_diverging_loss),
        cmocka_unit_test(only_damaged_checkpoints_are_no_reason_to_start_anew),
        cmocka_unit_test(signal_finishes_the_step_saves_and_leaves),
        unsanitized_test(residual_networks_are_trained_with_the_same_options),
        unsanitized_test(mnist_trains_on_grey_images),
        cmocka_unit_test(optimizer_is_remembered_and_learning_rate_chosen),
        cmocka_unit_test(rewrites_may_be_left_out),
        cmocka_unit_test(gradients_meet_by_the_algorithm_that_is_named),
        cmocka_unit_test(asynchronous_updates_are_measured_logged_and_replayed),
        cmocka_unit_test(what_is_only_for_asynchronous_updates_is_refused_with_others),
        cmocka_unit_test(trace_is_written_at_the_end),
        cmocka_unit_test(settings_that_cannot_be_are_refused_as_usage),
        cmocka_unit_test(a_total_batch_is_shared_out_and_odd_shares_are_named),
        unsanitized_test(the_header_says_the_mode_and_where_variables_lie),
        cmocka_unit_test(missing_device_without_soft_placement_gets_tensorflows_message),
        cmocka_unit_test(training_fails_before_it_starts_where_it_cannot_write_or_read),
        cmocka_unit_test(evaluation_prints_the_tutorials_line),
        cmocka_unit_test(models_of_the_library_are_those_of_the_table),
        unsanitized_test(the_records_network_is_looked_at_six_times),
        cmocka_unit_test(flags_of_cifar10_estimator_are_understood),
        unsanitized_test(compat_prints_the_last_towers_loss_and_the_tutorials_line),
        unsanitized_test(compat_reads_the_files_in_the_graph_which_goes_on_by_itself),
        cmocka_unit_test(wrong_values_of_cifar10_estimators_flags_are_refused),
        unsanitized_test(networks_for_imagenet_train_on_random_images),
        cmocka_unit_test(a_rule_departs_from_the_models_recipe),
        cmocka_unit_test(rules_that_contradict_themselves_are_refused),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
