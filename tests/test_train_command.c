/* `tower train` and `tower eval`, run as a user runs them, on random images. */
#include "program.h"

#include <tower/models.h>

#define SMALL_RUN "$T train cifar10 --data-set synthetic --batch-size 4 --log-every 1"

/* "2026-11-20 22:30:01.123456: step 0, loss = 4.68 (4012.3 examples/sec; 0.032 sec/batch)", as the tutorial has it. */
static void check_step_line(int64_t step)
{
    char start[64];
    snprintf(start, sizeof start, ": step %lld, loss = ", (long long)step);
    assert_prints(start);
    const char *line = strstr(output, start);
    int year, month, day, hour, minute, end = 0;
    double seconds, loss, rate, batch;
    while (line > output && line[-1] != '\n')
        line--;
    int fields = sscanf(line, "%d-%d-%d %d:%d:%9lf: step %*d, loss = %lf (%lf examples/sec; %lf sec/batch)%n", &year,
                        &month, &day, &hour, &minute, &seconds, &loss, &rate, &batch, &end);
    if (fields != 9 || line[end] != '\n' || line[19] != '.')
        fail_msg("not the tutorial's line: %.*s", (int)strcspn(line, "\n"), line);
    if (step == 0)
        assert_true(fabs(loss - 4.68) <= 0.05);
    assert_true(rate > 0 && batch > 0);
}

static void training_says_what_runs_where_and_prints_the_tutorials_lines(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 2 --virtual-gpus 2 --towers 4 --train-dir t1");
    assert_prints("  towers 0, 2    /job:localhost/replica:0/task:0/device:GPU:0\n");
    assert_prints("  towers 1, 3    /job:localhost/replica:0/task:0/device:GPU:1\n");
    assert_prints("batch          4 for each of 4 towers: 16 examples a step");
    assert_prints("data set       synthetic");
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

static void flags_of_the_tutorial_are_understood(void **state)
{
    (void)state;
    assert_runs(0, "$T train cifar10 --data_set=synthetic --train_dir=t3 --max_steps=1 --batch_size=4 --num_gpus=2 "
                   "--log_device_placement=True 2>log");
    check_step_line(0);
    assert_runs(0, "cat log");
    assert_prints("/conv1/Conv2D: (Conv2D): /job:localhost/replica:0/task:0/");
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
    assert_prints("was made with dtype bfloat16, but float was asked for");
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
                               "until grep -q 'step 1,' lines; do sleep 0.02; done; kill -TERM $job; wait $job");
    assert_runs(0, "cat lines");
    assert_prints("stopped by signal 15 after step ");
    assert_runs(0, "$T checkpoint verify stopped");
    assert_prints(": whole");
}

/* And evaluated, each in the directory of its own name. */
static void residual_networks_are_trained_with_the_same_options(void **state)
{
    (void)state;
    assert_runs(0, "$T train resnet20 --data-set synthetic --batch-size 2 --max-steps 2 --log-every 1 --virtual-gpus 2");
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
    assert_prints("--learning-rate: expected a number above 0, such as 0.1, found '0.1x'");
}

static void rewrites_may_be_left_out(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN " --max-steps 1 --train-dir t10 --disable fuse,reuse");
    check_step_line(0);
    assert_runs(0, SMALL_RUN " --max-steps 1 --towers 2 --train-dir t11 --disable collective");
    assert_prints("reduction      mean of the towers' gradients, computed on one device");
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

static void total_batch_must_divide_by_the_towers(void **state)
{
    (void)state;
    assert_runs(2, "$T train cifar10 --data-set synthetic --train-dir t7 --towers 3 --global-batch-size 128");
    assert_prints("--global-batch-size 128 does not divide by 3 towers; 126 and 129 do");
    assert_runs(2, SMALL_RUN " --train-dir t7 --towers 2 --global-batch-size 10");
    assert_prints("--batch-size 4 for each of 2 towers makes 8, not the --global-batch-size of 10");
    assert_runs(0,
                "$T train cifar10 --data-set synthetic --train-dir t7 --towers 2 --global-batch-size 8 --max-steps 1");
    assert_prints("batch          4 for each of 2 towers: 8 examples a step");
    assert_runs(0, "$T train cifar10 --data-set synthetic --train-dir t7 --resume --global-batch-size 8 --max-steps 2");
    assert_prints("batch          4 for each of 2 towers: 8 examples a step"); /* though one device alone has one */
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
    assert_prints("'nowhere'");
    assert_prints("tower data fetch cifar10");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_says_what_runs_where_and_prints_the_tutorials_lines),
        cmocka_unit_test(training_without_devices_runs_on_the_cpu),
        cmocka_unit_test(flags_of_the_tutorial_are_understood),
        cmocka_unit_test(steps_as_json_are_an_object_a_line),
        cmocka_unit_test(resumed_training_ends_with_the_same_bits),
        cmocka_unit_test(type_is_remembered),
        cmocka_unit_test(cpu_devices_with_equal_teams_give_equal_bits),
        cmocka_unit_test(summaries_do_not_come_before_the_message_of_a_diverging_loss),
        cmocka_unit_test(only_damaged_checkpoints_are_no_reason_to_start_anew),
        cmocka_unit_test(signal_finishes_the_step_saves_and_leaves),
        cmocka_unit_test(residual_networks_are_trained_with_the_same_options),
        cmocka_unit_test(mnist_trains_on_grey_images),
        cmocka_unit_test(optimizer_is_remembered_and_learning_rate_chosen),
        cmocka_unit_test(rewrites_may_be_left_out),
        cmocka_unit_test(trace_is_written_at_the_end),
        cmocka_unit_test(settings_that_cannot_be_are_refused_as_usage),
        cmocka_unit_test(total_batch_must_divide_by_the_towers),
        cmocka_unit_test(missing_device_without_soft_placement_gets_tensorflows_message),
        cmocka_unit_test(training_fails_before_it_starts_where_it_cannot_write_or_read),
        cmocka_unit_test(evaluation_prints_the_tutorials_line),
        cmocka_unit_test(models_of_the_library_are_those_of_the_table),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
