/* A train directory as a user meets it: it says what it is, belongs to one training at a time, and goes on as it was.
 */
#include "program.h"

#define SMALL_RUN "$T train cifar10 --data-set synthetic --batch-size 4 "

/* MNIST's files of so many black images, all of them ones. */
static void write_mnist(const char *where, unsigned char count)
{
    static const char *const halves[] = {"train", "t10k"};
    assert_runs(0, "mkdir -p '%s'", where);
    for (int i = 0; i < 4; i++) {
        char path[512];
        bool labels = i % 2;
        snprintf(path, sizeof path, "%s/%s/%s-%s-ubyte", directory, where, halves[i / 2],
                 labels ? "labels-idx1" : "images-idx3");
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        const unsigned char header[] = {0, 0, 8, labels ? 1 : 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, 28};
        fwrite(header, 1, labels ? 8 : 16, file);
        for (int k = 0; k < count * (labels ? 1 : 784); k++)
            fputc(labels, file);
        fclose(file);
    }
}

/* ---- run.json ---- */

static void a_directory_says_what_it_is(void **state)
{
    (void)state;
    write_mnist("data", 15);
    assert_runs(0, "$T train cifar10 --data-dir data --data-set mnist --batch-size 4 --max-steps 1 --seed 9 "
                   "--virtual-gpus 2 --train-dir d1");
    assert_runs(0, "sed -e \"s|$(pwd -P)|HERE|\" -e 's/\"process\": [1-9][0-9]*/\"process\": 0/' "
                   "-e 's/\"started\": \"20[-0-9.: ]*\"/\"started\": \"now\"/' "
                   "-e 's/\"sha256\": \"[0-9a-f]*\"/\"sha256\": \"sum\"/' d1/run.json | tr -d '\\n' | tr -s ' '");
    assert_prints("{ \"version\": \"" EXPECTED_VERSION "\", \"revision\": \"");
    assert_prints("\", \"model\": \"cifar10\", \"seed\": 9, \"data_set\": { \"name\": \"mnist\", "
                  "\"directory\": \"HERE/data\", \"examples\": 15, \"height\": 32, \"width\": 32, \"channels\": 3, "
                  "\"sha256\": \"sum\", \"files\": [ "
                  "{ \"path\": \"HERE/data/train-images-idx3-ubyte\", \"bytes\": 11776 }, "
                  "{ \"path\": \"HERE/data/train-labels-idx1-ubyte\", \"bytes\": 23 } ], "
                  "\"classes\": [ \"0\", \"1\", \"2\", \"3\", \"4\", \"5\", \"6\", \"7\", \"8\", \"9\" ] }, "
                  "\"devices\": \"virtual\", "
                  "\"tower_devices\": [ \"/job:localhost/replica:0/task:0/device:GPU:0\", "
                  "\"/job:localhost/replica:0/task:0/device:GPU:1\" ], \"processor\": \"");
    assert_prints("\", \"cards\": [], \"options\": { \"data-dir\": \"HERE/data\", \"data-set\": \"mnist\", "
                  "\"max-steps\": \"1\", \"batch-size\": \"4\", \"seed\": \"9\", \"virtual-gpus\": \"2\" }, "
                  "\"decided\": { \"towers\": 2, \"batch_size\": 4, \"examples_a_step\": 8, \"parameters\": 1068298, "
                  "\"variable_update\": \"parameter_server\", \"updates\": \"synchronous\", \"reduction\": \"tree\", "
                  "\"rate\": \"0.1, times 0.1 every 656 steps (349.9 epochs)\", \"rule\": \"gradient descent\", "
                  "\"input\": \"host\", \"last_step\": -1 }, "
                  "\"sessions\": [ { \"started\": \"now\", \"first_step\": 0, \"host\": \"");
    assert_prints("\", \"process\": 0, \"version\": \"" EXPECTED_VERSION "\", \"revision\": \"");
    assert_prints("\", \"devices\": \"virtual\", \"changes\": \"\" } ]}");
    assert_runs(0, "test \"$(sed -n 's/^      \"host\": \"\\(.*\\)\",$/\\1/p' d1/run.json)\" = \"$(uname -n)\"");
    assert_runs(0, "$T checkpoint show d1 --tensor tower/model && $T checkpoint show d1 --tensor tower/devices");
    assert_prints("'cifar10'");
    assert_prints("'virtual'");
}

/* By its model's name, by its folder, by one in it, or by a checkpoint; what it says has to be so. */
static void a_run_is_found_by_each_of_its_names(void **state)
{
    (void)state;
    static const char *const names[] = {"mnist", "mnist_train", "mnist_train/best", "mnist_train/model.ckpt-1",
                                        "mnist_train/model.ckpt-1.index", "mnist --train-dir mnist_train/best"};
    write_mnist("few", 3);
    assert_runs(0, "$T train mnist --data-dir few --data-set mnist --batch-size 2 --max-steps 1 --eval-every 1 "
                   "--keep-best");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_runs(0, "$T eval %s --no-events", names[i]);
        assert_prints("3 of mnist: ");
    }
    assert_runs(0, "cd mnist_train && $T eval model.ckpt-1 --no-events");
    assert_prints("3 of mnist: ");
    assert_runs(0, "cd mnist_train && sed -i 's/\"max-steps\": \"1\"/\"max-steps\": 1/' run.json && "
                   "$T eval . --no-events"); /* what is no text is no option */
    assert_prints("3 of mnist: ");
    assert_runs(2, "sed -i 's/\"data-set\": \"mnist\"/\"data-set\": \"mnits\"/' mnist_train/run.json && "
                   "$T eval mnist_train --no-events");
    assert_prints("mnist_train/run.json");
    assert_prints("mnits");
    assert_runs(1, "echo '{' >mnist_train/run.json && $T eval mnist_train --data-dir few --data-set mnist --no-events");
    assert_prints("mnist_train/run.json");
    assert_prints_not("of mnist: ");
}

static void a_run_goes_on_with_the_options_that_it_had(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN "--virtual-gpus 2 --max-steps 4 --train-dir whole");
    assert_runs(0, SMALL_RUN "--virtual-gpus 2 --max-steps 2 --train-dir part && mv part moved");
    assert_runs(0, "$T train --resume --train-dir moved --max-steps 4");
    assert_prints("  tower 1        /job:localhost/replica:0/task:0/device:GPU:1\n");
    assert_runs(0, "cmp whole/model.ckpt-4.index moved/model.ckpt-4.index && "
                   "cmp whole/model.ckpt-4.data-00000-of-00001 moved/model.ckpt-4.data-00000-of-00001");
    assert_runs(0, "grep first_step moved/run.json | tr -d ' \\n'");
    assert_prints("\"first_step\":0,\"first_step\":2,");
    assert_runs(2, "$T train --resume --max-steps 4");
    assert_prints("expected MODEL: the network");
}

/* As where a launcher starts a run again with one task less, which then have more cores each. */
static void a_run_keeps_its_threads_on_another_number_of_cores(void **state)
{
    (void)state;
    assert_runs(0, "taskset -c 0 " SMALL_RUN "--num-gpus 0 --max-steps 1 --train-dir k0");
    assert_runs(0, "$T train --resume --train-dir k0 --max-steps 2");
    assert_runs(0, "grep -c '\"devices\": \"cpu with 1 thread\"' k0/run.json");
    assert_prints("3"); /* of the whole, and of two sessions */
}

static void another_kind_of_device_is_named_and_has_to_be_accepted(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN "--virtual-gpus 2 --max-steps 1 --train-dir k1");
    assert_runs(2, SMALL_RUN "--num-gpus 0 --cpu-threads 1 --max-steps 2 --train-dir k1 --resume");
    assert_prints(
        "was made on devices of kind virtual, and this run has cpu with 1 thread: sums would be added in another "
        "order");
    assert_prints("--accept-other-bits goes on all the same");
    assert_prints_not("step 1, ");
    assert_runs(2,
                "rm k1/run.json && " SMALL_RUN "--max-steps 2 --train-dir k1 --resume"); /* the checkpoint knows, too */
    assert_prints("was made on devices of kind virtual");
    assert_runs(0, SMALL_RUN "--num-gpus 0 --cpu-threads 1 --max-steps 2 --train-dir k1 --resume --accept-other-bits");
    assert_prints("this run goes on with devices of kind cpu with 1 thread instead of virtual");
    assert_runs(2, "$T train --cpu-threads 2 --max-steps 3 --train-dir k1 --resume"); /* another team */
    assert_prints("cpu with 1 thread, and this run has cpu with 2 threads");
}

static void another_data_set_is_named_and_has_to_be_accepted(void **state)
{
    (void)state;
    write_mnist("data", 15);
    assert_runs(0, SMALL_RUN "--max-steps 1 --train-dir s1");
    assert_runs(2, "$T train --resume --data-set mnist --data-dir data --max-steps 2 --train-dir s1");
    assert_prints("was trained on synthetic (SHA-256 ");
    assert_prints("and this is mnist (");
    assert_runs(0,
                "$T train --resume --data-set mnist --data-dir data --max-steps 2 --train-dir s1 --accept-other-bits");
    assert_prints("this run goes on with data set mnist (SHA-256 ");
    assert_runs(2, "printf '\\377' | dd of=data/train-images-idx3-ubyte bs=1 seek=100 conv=notrunc 2>/dev/null; "
                   "$T train --resume --max-steps 3 --train-dir s1");
    assert_prints("and this is another mnist (");
}

static void another_model_is_named(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN "--max-steps 1 --train-dir m1");
    assert_runs(2, "$T train mnist --resume --max-steps 2 --train-dir m1");
    assert_prints("was made by model cifar10, but mnist was asked for");
    assert_runs(1, "$T eval mnist --data-set synthetic --train-dir m1");
    assert_prints("has no '");
    assert_prints("(it was made by model cifar10)");
}

static void another_rule_is_named_and_has_to_be_accepted(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN "--max-steps 1 --train-dir r1");
    assert_runs(2, "$T train --resume --max-steps 2 --train-dir r1 --clip-norm 1");
    assert_prints("was made with another rule. Then: gradient descent. Now: ");
    assert_runs(0, "$T train --resume --max-steps 2 --train-dir r1 --clip-norm 1 --accept-other-bits");
    assert_prints("this run goes on with rule ");
    assert_prints(" instead of gradient descent");
}

/* ---- one training a directory ---- */

#define IN_BACKGROUND SMALL_RUN "--train-dir %s >%s.txt & job=$!; seen 'step 1' %s.txt; "

static void a_second_training_in_a_directory_is_refused(void **state)
{
    (void)state;
    assert_runs(0,
                IN_BACKGROUND SMALL_RUN "--train-dir l1 --resume --max-steps 3; code=$?; echo job $job; "
                                        "kill -TERM $job; wait $job; test $code = 1",
                "l1", "l1", "l1");
    assert_prints("'l1' is being trained into by process ");
    long by = 0, job = 0;
    sscanf(strstr(output, "by process ") + 11, "%ld", &by);
    sscanf(strstr(output, "job ") + 4, "%ld", &job);
    assert_int_equal(by, job);
    assert_prints(" on ");
    assert_runs(0, SMALL_RUN "--train-dir l1 --resume --max-steps 1 && ! ls l1/lock"); /* it was given back */
}

/* The name of a directory that was removed may be another run's meanwhile. */
static void a_directory_that_was_removed_is_made_again_but_not_under_another_run(void **state)
{
    (void)state;
    static const char run[] = SMALL_RUN "--format json --save-every 1000000 --max-steps 1000000 --train-dir gone";
    assert_runs(143,
                "%s >gone.txt 2>&1 & job=$!; seen '\"step\":0,' gone.txt; until rm -r gone; do :; done; "
                "kill -USR1 $job; seen '\"event\":\"checkpoint\"' gone.txt; kill -TERM $job; wait $job",
                run);
    assert_runs(0, "cat gone.txt");
    assert_prints("'gone/lock' was removed while this run trains into 'gone'");
    assert_runs(0, "$T checkpoint verify gone && ! ls gone/lock 2>/dev/null && rm -r gone gone.txt");
    assert_runs(0,
                "%s >gone.txt 2>&1 & job=$!; seen '\"step\":0,' gone.txt; kill -STOP $job; mv gone moved; "
                "%s >moved.txt 2>&1 & second=$!; seen '\"step\":0,' moved.txt; kill -USR1 $job; kill -CONT $job; "
                "wait $job; code=$?; ls gone/lock && kill -TERM $second; wait $second; test $code = 1 -a $? = 143",
                run, run);
    assert_runs(0, "cat gone.txt");
    assert_prints("'gone' is being trained into by process ");
    assert_prints("nothing is saved into 'gone' any more");
}

static void the_lock_of_a_process_that_was_killed_is_taken_over(void **state)
{
    (void)state;
    assert_runs(0, IN_BACKGROUND "kill -KILL $job; wait $job; ls l2/lock && " SMALL_RUN "--train-dir l2 --max-steps 1",
                "l2", "l2", "l2");
    assert_prints("came to no proper end; its lock is taken over");
    assert_prints("1 steps in ");
}

/* A run opens files of many names in its directory, and would wait for whoever opens the other end of a pipe. */
static void a_directory_with_a_pipe_in_it_is_refused(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN "--train-dir p1 --max-steps 1 && rm p1/checkpoint && mkfifo p1/checkpoint");
    assert_runs(1, SMALL_RUN "--train-dir p1 --max-steps 2 --resume");
    assert_prints("'p1/checkpoint' is a pipe, a train directory has files");
    assert_runs(0, "$T checkpoint ls p1");
    assert_prints("p1/model.ckpt-1");
    assert_runs(0, "rm p1/run.json && mkfifo p1/run.json");
    assert_runs(1, "$T eval p1");
    assert_prints("'p1/run.json' is a pipe, a file was expected");
    assert_runs(1, "$T report p1");
    assert_prints("'p1/run.json' is a pipe, a file was expected");
    assert_runs(0, "rm p1/run.json && ln -s run.json p1/run.json"); /* to itself */
    assert_runs(1, "$T eval p1");
    assert_prints("cannot read 'p1/run.json': Too many levels of symbolic links");
    assert_runs(1, SMALL_RUN "--train-dir $(printf 'long/%%.0s' $(seq 801)) --max-steps 1");
    assert_prints("is too long for a train directory: expected at most 4000 bytes, found 4005");
}

static void what_a_killed_save_left_goes_though_nothing_is_saved(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN
                "--train-dir l3 --max-steps 1 && touch l3/run.json.tmp-1 l3/checkpoint.tmp-1-abc l3/model.ckpt-9.index.tmp-1-abc");
    assert_runs(0, "$T train --resume --train-dir l3 --max-steps 1 && ! ls l3/*.tmp-*");
    assert_prints("nothing to do: 1 of 1 steps were done before");
}

/* ---- what is said ---- */

static void the_end_says_the_last_loss_what_was_saved_and_what_comes_next(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN "--train-dir w1 --max-steps 3 --log-every 2");
    assert_prints("step 2, loss = ");
    assert_prints("; the last loss is ");
    assert_prints("saved as w1/model.ckpt-3\n");
    assert_prints("next:\n  tower eval w1\n  tower report w1\n  tower train --resume --train-dir w1 --max-steps 6\n");
    assert_prints("0 to 3 (epoch 0.01172)");
}

static void what_comes_next_can_be_pasted_into_a_shell(void **state)
{
    (void)state;
    assert_runs(0, SMALL_RUN "--train-dir=\"-it's here\" --max-steps 1");
    assert_prints("next:\n  tower eval ./'-it'\\''s here'\n");
    assert_runs(0, "$T eval ./'-it'\\''s here' --data-set synthetic");
}

static void a_signal_and_the_checkpoint_speak_of_the_same_number_of_steps(void **state)
{
    (void)state;
    assert_runs(143, IN_BACKGROUND "kill -TERM $job; wait $job", "w2", "w2", "w2");
    assert_runs(0, "cat w2.txt");
    const char *with = strstr(output, "stopped by signal 15 with ");
    long long done = -1, saved = -2;
    assert_non_null(with);
    sscanf(with, "stopped by signal 15 with %lld", &done);
    const char *as = strstr(output, "saved as w2/model.ckpt-");
    assert_non_null(as);
    sscanf(as, "saved as w2/model.ckpt-%lld", &saved);
    assert_int_equal(done, saved);
}

static void divergence_comes_with_advice(void **state)
{
    (void)state;
    assert_runs(1, SMALL_RUN "--train-dir w3 --max-steps 50 --learning-rate 100000");
    assert_prints("tower train: step ");
    assert_prints(" makes ");
    assert_prints("; it takes '");
    assert_prints("a lower --learning-rate, --clip-norm 1 or a --warm-up usually help");
    assert_runs(1, SMALL_RUN "--train-dir w4 --max-steps 50 --learning-rate 100000 --on-divergence rollback:2");
    assert_prints("going back to step 0, time 1 of 2, with the rate 100000");
    assert_prints("going back to step 0, time 2 of 2, with the rate 100000");
    assert_prints("--clip-norm 1 or a --warm-up usually help\n");
    assert_runs(2, SMALL_RUN "--train-dir w4 --on-divergence rollback");
    assert_prints("--on-divergence: expected stop, or rollback:K with K from 1 to 1000, found 'rollback'");
    assert_runs(2, SMALL_RUN "--train-dir w4 --check-replicas 2");
    assert_prints(
        "tower train: --check-replicas compares copies that towers hold: with parameter_server there are none");
    assert_runs(2, SMALL_RUN "--train-dir w3 --learning-rate 1e9");
    assert_prints("expected a number above 0 and at most 1000000, such as 0.1, found '1e9'");
}

/* ---- a report of what a signal ended ---- */

static void a_crash_leaves_a_report_and_a_run_that_goes_on(void **state)
{
    (void)state;
    shell(SMALL_RUN "--train-dir crashed --max-steps 100000 --save-every 5 --log-every 1 >crashed.txt & child=$!; "
                    "while kill -0 $child && ! ls crashed/model.ckpt-5.index; do sleep 0.05; done; "
                    "kill -SEGV $child; wait $child; echo ended with $?");
    assert_prints("tower: ended by SIGSEGV; crashed/crash-");
    assert_runs(0, "cat crashed/crash-*.txt");
    assert_prints("tower     " EXPECTED_VERSION " (");
    assert_prints("library   oneDNN ");
    assert_prints("ended by  signal 11 (SIGSEGV), in thread 'tower' of process ");
    assert_prints("step      ");
    assert_prints("a run that is resumed goes on from the newest");
    assert_runs(0, "$T train --resume --train-dir crashed --max-steps 6");
    assert_runs(0, "test $(ls crashed | grep -c crash) -eq 1");
}

/* ---- files of options ---- */

static void options_come_from_a_file_and_the_command_line_wins(void **state)
{
    (void)state;
    assert_runs(
        0,
        "printf 'model = cifar10 ; the network\\ndata-set = synthetic\\nbatch_size = 4\\nmax-steps = 9\\n' >a.ini && "
        "$T train --config a.ini --max-steps 1 --train-dir c1");
    assert_prints("batch          4 for each of 1 tower");
    assert_prints("0 to 1 (");
    assert_runs(2, "echo 'batch-sice = 4' >b.ini; $T train cifar10 --config b.ini --train-dir c2");
    assert_prints("tower train: b.ini: there is no option 'batch-sice'; did you mean 'batch-size'?");
    assert_runs(2, "echo 'batch-size = four' >b.ini; $T train cifar10 --config b.ini --train-dir c2");
    assert_prints("tower train: b.ini: --batch-size: expected a whole number from 1 to 1048576, found 'four'");
    assert_runs(1, "echo 'batch-size' >b.ini; $T train cifar10 --config b.ini --train-dir c2");
    assert_prints("'b.ini', line 1: expected 'name = value'");
    assert_runs(1, "$T train cifar10 --config none.ini --train-dir c2");
    assert_prints("cannot read 'none.ini': No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_directory_says_what_it_is),
        cmocka_unit_test(a_run_is_found_by_each_of_its_names),
        cmocka_unit_test(a_run_goes_on_with_the_options_that_it_had),
        cmocka_unit_test(a_run_keeps_its_threads_on_another_number_of_cores),
        cmocka_unit_test(another_kind_of_device_is_named_and_has_to_be_accepted),
        cmocka_unit_test(another_data_set_is_named_and_has_to_be_accepted),
        cmocka_unit_test(another_model_is_named),
        cmocka_unit_test(another_rule_is_named_and_has_to_be_accepted),
        cmocka_unit_test(a_second_training_in_a_directory_is_refused),
        cmocka_unit_test(a_directory_that_was_removed_is_made_again_but_not_under_another_run),
        cmocka_unit_test(the_lock_of_a_process_that_was_killed_is_taken_over),
        cmocka_unit_test(a_directory_with_a_pipe_in_it_is_refused),
        cmocka_unit_test(what_a_killed_save_left_goes_though_nothing_is_saved),
        cmocka_unit_test(the_end_says_the_last_loss_what_was_saved_and_what_comes_next),
        cmocka_unit_test(what_comes_next_can_be_pasted_into_a_shell),
        cmocka_unit_test(a_signal_and_the_checkpoint_speak_of_the_same_number_of_steps),
        cmocka_unit_test(divergence_comes_with_advice),
        cmocka_unit_test(a_crash_leaves_a_report_and_a_run_that_goes_on),
        cmocka_unit_test(options_come_from_a_file_and_the_command_line_wins),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
