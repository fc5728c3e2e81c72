/* The program, run as a user runs it: what it prints and how it ends. Training is in test_train_command.c. */
#include "program.h"

#include <tower/io.h>

/* Calls visit with the name of every command that `tower help` lists. */
static void each_command(void (*visit)(const char *name))
{
    assert_runs(0, "$T help");
    char list[4096], name[64];
    snprintf(list, sizeof list, "%s", strstr(output, "commands:\n") + strlen("commands:\n"));
    int visited = 0;
    for (char *line = list; strncmp(line, "  ", 2) == 0; line = strchr(line, '\n') + 1, visited++) {
        size_t length = (size_t)(strstr(line + 2, "  ") - (line + 2));
        snprintf(name, sizeof name, "%.*s", (int)length, line + 2);
        visit(name);
    }
    assert_true(visited >= 5);
}

/* ---- usage ------------------------------------------------------------------------------------------------- */

static void without_words_it_lists_commands_and_fails_as_wrong_usage(void **state)
{
    (void)state;
    assert_runs(2, "$T");
    assert_prints("devices");
    assert_runs(0, "$T --help");
    assert_prints("usage: tower COMMAND");
    assert_runs(0, "$T -h 2>/dev/null");
    assert_prints("commands:");
}

static void unknown_command_is_named_with_the_nearest(void **state)
{
    (void)state;
    assert_runs(2, "$T devcies");
    assert_prints("tower: unknown command 'devcies'; did you mean 'devices'?");
    assert_runs(2, "$T data ftch");
    assert_prints("tower data: unknown command 'ftch'; did you mean 'fetch'?");
    assert_runs(2, "$T xyzzy");
    assert_prints("unknown command 'xyzzy'");
    assert_prints_not("did you mean");
}

static void group_without_a_command_lists_its_commands(void **state)
{
    (void)state;
    assert_runs(2, "$T data");
    assert_prints("data fetch");
    assert_prints_not("devices");
    assert_runs(0, "$T data --help");
    assert_runs(0, "$T help data");
    assert_prints("data info");
}

static void unknown_option_is_named_with_the_nearest(void **state)
{
    (void)state;
    assert_runs(2, "$T devices --virtul-gpus 2");
    assert_prints("tower devices: unknown option '--virtul-gpus'; did you mean '--virtual-gpus'?");
    assert_runs(2, "$T devices --virt=2");
    assert_prints("unknown option '--virt'; did you mean '--virtual-gpus'?");
    assert_runs(2, "$T devices -v");
    assert_prints("unknown option '-v'");
    assert_runs(2, "$T --verbose devices");
    assert_prints("unknown option '--verbose'");
    assert_runs(2, "$T devices --$(printf 'x%%.0s' $(seq 300))");
    assert_prints("unknown option '--xxx");
}

/* mpirun's words, and absl's. */
static void one_dash_is_as_good_as_two(void **state)
{
    (void)state;
    assert_runs(0, "$T launch -n 3 -- sh -c 'echo task $TOWER_TASK' | sort");
    assert_string_equal(output, "task 0\ntask 1\ntask 2\n");
    assert_runs(0, "$T launch -np=1 -- echo one");
    assert_string_equal(output, "one\n");
    assert_runs(0, "$T launch --help");
    assert_prints("(default: 2) (also -n, -np)");
    assert_runs(0, "$T devices -virtual_gpus=2");
    assert_prints("GPU:1");
    assert_runs(2, "$T launch -n 0 -- true");
    assert_prints("tower launch: --tasks: expected a whole number from 1 to 64, found '0'");
    assert_runs(2, "$T launch -n two -- true");
    assert_prints("expected a whole number from 1 to 64, found 'two'");
    assert_runs(2, "$T launch -n");
    assert_prints("--tasks: expected N after it, found the end");
    assert_runs(2, "$T launch -m 2 -- true");
    assert_prints("tower launch: unknown option '-m'");
}

/* 75 says that another was lost: whose end was seen first does not matter. */
static void a_launched_task_that_fails_by_itself_says_the_exit_code(void **state)
{
    (void)state;
    assert_runs(1, "$T launch -n 2 -- sh -c 'if test $TOWER_TASK = 0; then echo $$ >lost; exit 75; fi; "
                   "until test -s lost; do sleep 0.02; done; "
                   "while kill -0 $(cat lost) 2>/dev/null; do sleep 0.02; done; exit 1'");
    assert_runs(75, "$T launch -n 2 -- sh -c 'test $TOWER_TASK = 1 || exit 75'");
}

static void usage_errors_go_to_standard_error_only(void **state)
{
    (void)state;
    assert_runs(2, "$T devices --nonsense 2>/dev/null");
    assert_string_equal(output, "");
}

static void number_out_of_range_is_refused_with_the_range(void **state)
{
    (void)state;
    static const char *const wrong[] = {"257", "-1", "two", "1.5", "99999999999999999999", "''", "' 1'", "1x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_runs(2, "$T devices --virtual-gpus %s", wrong[i]);
        assert_prints("--virtual-gpus: expected a whole number from 0 to 256, found '");
    }
    assert_runs(0, "$T devices --virtual-gpus 256");
}

static void value_may_follow_an_equals_sign_and_underscores_count_as_dashes(void **state)
{
    (void)state;
    assert_runs(0, "$T devices --virtual_gpus=2");
    assert_prints("GPU:1");
    assert_prints_not("GPU:2");
    assert_runs(0, "$T devices --virtual-gpus=1 --virtual_gpus 3");
    assert_prints("GPU:2");
}

static void missing_value_is_said(void **state)
{
    (void)state;
    assert_runs(2, "$T devices --virtual-gpus");
    assert_prints("--virtual-gpus: expected N after it, found the end");
    assert_runs(2, "$T devices --virtual-gpus --format json");
    assert_prints("--virtual-gpus: expected N, found the option '--format'");
}

static void unknown_choice_is_answered_with_the_choices(void **state)
{
    (void)state;
    assert_runs(2, "$T devices --format jsn");
    assert_prints("--format: expected one of text, json, found 'jsn'; did you mean 'json'?");
}

static void operands_are_counted(void **state)
{
    (void)state;
    assert_runs(2, "$T data fetch");
    assert_prints("expected NAME");
    assert_runs(2, "$T devices stray");
    assert_prints("unexpected word 'stray'");
    assert_runs(2, "$T devices -- --virtual-gpus");
    assert_prints("unexpected word '--virtual-gpus'");
}

/* ---- help, manual, completion ------------------------------------------------------------------------------ */

static void check_help(const char *name)
{
    char title[128];
    assert_runs(0, "$T %s --help 2>/dev/null", name);
    snprintf(title, sizeof title, "tower %s: ", name);
    assert_prints(title);
    assert_prints("\nusage: tower ");
    assert_prints("\nexamples:\n  ");
    assert_prints("\nexit codes: 0 done, 1 failed, 2 wrong usage");
    for (const char *line = output; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strcspn(line, "\n") > 100)
            fail_msg("a line of the help on %s is too long: %.*s", name, (int)strcspn(line, "\n"), line);
    }
}

static void every_command_has_help_that_teaches(void **state)
{
    (void)state;
    each_command(check_help);
}

static void help_wins_over_other_words(void **state)
{
    (void)state;
    assert_runs(0, "$T devices --nonsense --help");
    assert_prints("usage: tower devices");
    assert_runs(2, "$T help nonsense");
    assert_prints("there is no command 'nonsense'");
}

static void check_manual(const char *name)
{
    char help[sizeof output];
    assert_runs(0, "$T %s --help", name);
    memcpy(help, output, sizeof help);
    assert_runs(0, "$T man %s", name);
    assert_prints(".TH \"TOWER-");
    assert_prints(".SH DESCRIPTION");
    /* Every option of the help stands in the page too, with its dashes escaped. */
    for (char *at = help; (at = strstr(at, "\n  --"));) {
        char option[64], escaped[128] = "";
        at += 5;
        snprintf(option, sizeof option, "%.*s", (int)strcspn(at, " \n"), at);
        for (const char *p = option; *p; p++)
            snprintf(escaped + strlen(escaped), sizeof escaped - strlen(escaped), *p == '-' ? "\\-" : "%c", *p);
        assert_prints(escaped);
    }
}

static void every_command_has_a_manual_page_with_all_its_options(void **state)
{
    (void)state;
    each_command(check_manual);
    assert_runs(0, "$T man");
    assert_prints(".TH \"TOWER\" 1");
}

static void manual_pages_are_written_into_a_directory(void **state)
{
    (void)state;
    assert_runs(0, "mkdir -p man && $T man --directory man && cat man/tower.1 man/tower-data-fetch.1");
    assert_prints(".TH \"TOWER-DATA-FETCH\"");
    assert_runs(1, "$T man --directory nowhere");
    assert_prints("cannot write 'nowhere/tower.1': No such file or directory");
}

static void complete(const char *words, int current, const char *expected)
{
    assert_runs(0,
                "bash -c 'source <(\"$0\" completion bash); COMP_WORDS=(%s); COMP_CWORD=%d; _tower; "
                "echo \"<${COMPREPLY[*]}>\"' \"$T\"",
                words, current);
    char all[256];
    snprintf(all, sizeof all, "<%s>\n", expected);
    assert_string_equal(output, all);
}

static void bash_completes_commands_options_and_values(void **state)
{
    (void)state;
    if (shell("command -v bash") != 0)
        skip();
    complete("tower dev", 1, "devices");
    complete("tower data \"\"", 2, "fetch info");
    complete("tower devices --cpu-t", 2, "--cpu-threads");
    complete("tower devices --format \"\"", 3, "text json");
    complete("tower devices --format = j", 4, "json");
    complete("tower data fetch cif", 3, "cifar10");
    assert_runs(0, "mkdir -p sub1 && touch file1");
    complete("tower data info sub", 3, "sub1");
    complete("tower data fetch mnist --data-dir s", 5, "sub1");
}

static void other_shells_accept_their_completion(void **state)
{
    (void)state;
    bool any = false;
    static const char *const shells[] = {"zsh", "fish"};
    for (int i = 0; i < 2; i++)
        if (shell("command -v %s", shells[i]) == 0) {
            any = true;
            assert_runs(0, "$T completion %s > script && %s -n script", shells[i], shells[i]);
            assert_string_equal(output, "");
        }
    if (!any)
        skip();
}

static const char *script; /* of the shell that is looked at */

static void expect_in_script(const char *name)
{
    const char *last = strrchr(name, ' ');
    if (!strstr(script, last ? last + 1 : name))
        fail_msg("the script does not know '%s'", name);
}

/* Whether these shells are here or not. */
static void completion_of_other_shells_knows_every_command_and_kind_of_option(void **state)
{
    (void)state;
    static const struct {
        const char *shell, *words[5]; /* how a choice, a file, a directory and a number are asked for */
    } shells[] = {
        {"zsh", {"#compdef tower", "text json", "_files", "_files -/", "--virtual-gpus="}},
        {"fish", {"complete -c tower", "text json", " -r -F", "__fish_complete_directories", "virtual-gpus"}},
    };
    for (int i = 0; i < 2; i++) {
        assert_runs(0, "$T completion %s", shells[i].shell);
        for (int k = 0; k < 5; k++)
            assert_prints(shells[i].words[k]);
        char *copy = strdup(output);
        script = copy;
        each_command(expect_in_script);
        free(copy);
    }
    assert_runs(2, "$T completion tcsh");
    assert_prints("expected one of bash, zsh, fish, found 'tcsh'");
}

/* ---- output ------------------------------------------------------------------------------------------------ */

static void reader_that_goes_away_is_no_failure(void **state)
{
    (void)state;
    assert_runs(0, "{ until test -e gone; do sleep 0.02; done; $T help; echo $? > code; } | { exec <&-; touch gone; }; "
                   "cat code");
    assert_string_equal(output, "0\n");
}

static void output_that_cannot_be_written_is_a_failure(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    assert_runs(1, "$T version > /dev/full");
    assert_prints("cannot write to standard output: No space left on device");
}

static void version_names_the_libraries(void **state)
{
    (void)state;
    assert_runs(0, "$T version");
    assert_prints("tower " EXPECTED_VERSION);
    assert_prints("oneDNN");
    assert_prints("zlib");
    assert_runs(0, "$T --version --format json");
    assert_prints("{\"version\":\"" EXPECTED_VERSION "\"");
}

/* ---- devices ----------------------------------------------------------------------------------------------- */

static void devices_are_listed_and_hold_no_memory(void **state)
{
    (void)state;
    assert_runs(0, "TOWER_VIRTUAL_GPUS=2 $T devices --cpu-devices 2 --format json");
    assert_prints("\"name\":\"/job:localhost/replica:0/task:0/device:CPU:1\"");
    assert_prints("\"name\":\"/job:localhost/replica:0/task:0/device:GPU:1\"");
    assert_prints("\"kind\":\"virtual\"");
    int devices = 0;
    for (const char *at = output; (at = strstr(at, "\"memory_used_bytes\":0}")); at++)
        devices++;
    assert_int_equal(devices, 4);
}

static void wrong_number_of_virtual_gpus_in_the_environment_is_named(void **state)
{
    (void)state;
    assert_runs(1, "TOWER_VIRTUAL_GPUS=many $T devices");
    assert_prints("tower devices: TOWER_VIRTUAL_GPUS: expected a number");
}

/* ---- data -------------------------------------------------------------------------------------------------- */

static void data_info_counts_classes_and_measures_channels(void **state)
{
    (void)state;
    write_cifar("cifar", 2);
    assert_runs(0, "$T data info cifar");
    assert_prints("cifar10 in cifar");
    assert_prints("train       10 images of 32 x 32 x 3; mean 10.00 20.00 30.00");
    assert_prints("3  cat                  10        2");
    assert_runs(0, "$T data info cifar --format json");
    assert_prints("\"train\":{\"count\":10,\"height\":32,\"width\":32,\"channels\":3,\"mean\":[10,20,30]");
    assert_prints("{\"name\":\"cat\",\"count\":2}");
}

static void data_info_refuses_files_cut_short(void **state)
{
    (void)state;
    write_cifar("cut", 2);
    assert_runs(1, "truncate -s 5000 cut/data_batch_4.bin && $T data info cut");
    assert_prints("data_batch_4.bin");
    assert_runs(1, "$T data info nowhere");
    assert_prints("cannot look into 'nowhere': No such file or directory");
    assert_runs(1, "$T data info cut/data_batch_4.bin");
    assert_prints("cannot look into 'cut/data_batch_4.bin': Not a directory");
    assert_runs(1, "mkdir bare && $T data info bare");
    assert_prints("no data set in 'bare'");
}

static void json_stays_valid_whatever_a_directory_is_called(void **state)
{
    (void)state;
    write_cifar("odd\"\\\x01\xff\xc3\xa9", 1);
    assert_runs(0, "$T data info odd* --format json");
    assert_prints("\"directory\":\"odd\\\"\\\\\\u0001\\ufffd\xc3\xa9\"");
}

static void fetching_says_what_to_bring_by_hand_when_it_fails(void **state)
{
    (void)state;
    assert_runs(1, "$T data fetch cifar10 --data-dir got --url file://%s/nowhere", directory);
    assert_prints("tower data fetch: ");
    assert_prints("cifar-10-binary.tar.gz");
    assert_prints("got/");
}

static void fetching_without_any_place_says_so(void **state)
{
    (void)state;
    assert_runs(1, "env -u HOME -u XDG_CACHE_HOME -u TOWER_DATA_DIR $T data fetch mnist --url file:///nowhere");
    assert_prints("--data-dir");
    assert_runs(1, "TOWER_DATA_DIR=base $T data fetch mnist --url file:///nowhere");
    assert_prints("base/mnist/");
}

/* ---- checkpoints ------------------------------------------------------------------------------------------- */

static void save_checkpoint(const char *where, int64_t step)
{
    char path[512];
    tw_error error = {0};
    snprintf(path, sizeof path, "%s/%s", directory, where);
    tw_tensor *weights = tw_tensor_from(TW_FLOAT32, TW_SHAPE(2, 3), (float[]){1, 2, 3, 4, 5, NAN});
    tw_tensor *counter = tw_tensor_int64(step);
    tw_named_tensor tensors[] = {{"conv1/weights", weights}, {"global_step", counter}};
    assert_ok(tw_checkpoint_save(path, "model.ckpt", step, tensors, 2, 5, &error));
    tw_tensor_release(weights);
    tw_tensor_release(counter);
}

static void checkpoints_are_listed_and_shown(void **state)
{
    (void)state;
    save_checkpoint("train", 9);
    save_checkpoint("train", 10);
    assert_runs(0, "$T checkpoint ls train");
    assert_prints("         9        2     32 bytes  train/model.ckpt-9\n        10        2");
    assert_runs(0, "$T checkpoint ls train --format json");
    assert_prints("{\"path\":\"train/model.ckpt-10\",\"step\":10,\"tensors\":2,\"bytes\":32,\"error\":null}");
    assert_runs(0, "$T checkpoint show train");
    assert_prints("train/model.ckpt-10\n");
    assert_prints("conv1/weights  float         24 bytes  [2,3]");
    assert_runs(0, "$T checkpoint show train/model.ckpt-9 --format json");
    assert_prints("{\"name\":\"conv1/weights\",\"type\":\"float\",\"shape\":[2,3],\"bytes\":24}");
    assert_runs(0, "mkdir -p none && $T checkpoint ls none");
    assert_prints("there is none in none");
    assert_runs(1, "$T checkpoint ls nowhere");
    assert_prints("tower checkpoint ls: ");
    assert_prints("nowhere");
}

static void one_tensor_is_shown_with_its_statistics(void **state)
{
    (void)state;
    save_checkpoint("one", 9);
    assert_runs(0, "$T checkpoint show one --tensor conv1/weights");
    assert_prints("conv1/weights: float [2,3]\nleast 1, most 5, mean 3, standard deviation 1.41421356\n"
                  "1 of 6 values are infinite or no number\n");
    assert_runs(0, "$T checkpoint show one --tensor conv1/weights --format json");
    assert_prints("\"not_finite\":1,\"values\":[1,2,3,4,5,\"NaN\"]}");
    assert_runs(1, "$T checkpoint show one --tensor conv1/weihgts");
    assert_prints("conv1/weihgts");
}

static void damaged_checkpoint_is_found_by_verify_and_by_ls(void **state)
{
    (void)state;
    save_checkpoint("worn", 9);
    save_checkpoint("worn", 10);
    assert_runs(0, "$T checkpoint verify worn");
    assert_prints("worn/model.ckpt-9: whole\nworn/model.ckpt-10: whole\n");
    assert_runs(0, "printf x | dd of=worn/model.ckpt-9.data-00000-of-00001 bs=1 seek=3 conv=notrunc status=none");
    assert_runs(1, "$T checkpoint verify worn");
    assert_prints("worn/model.ckpt-9: damaged: ");
    assert_prints("worn/model.ckpt-10: whole");
    assert_runs(1, "$T checkpoint verify worn/model.ckpt-9 --format json");
    assert_prints("\"whole\":false");
    assert_runs(0, "truncate -s 20 worn/model.ckpt-10.index && $T checkpoint ls worn");
    assert_prints("10  damaged: ");
    assert_runs(1, "mkdir -p none && $T checkpoint verify none");
    assert_prints("there is no checkpoint in 'none'");
}

/* A link to itself cannot be read by anyone, root included. */
static void a_checkpoint_that_cannot_be_read_is_not_called_damaged(void **state)
{
    (void)state;
    save_checkpoint("closed", 9);
    save_checkpoint("closed", 10);
    assert_runs(0, "ln -sf model.ckpt-9.index closed/model.ckpt-9.index && "
                   "ln -sf model.ckpt-10.data-00000-of-00001 closed/model.ckpt-10.data-00000-of-00001");
    assert_runs(0, "$T checkpoint ls closed");
    assert_prints("9  not read: ");
    assert_runs(1, "$T checkpoint verify closed");
    assert_prints("closed/model.ckpt-9: not read: ");
    assert_prints("closed/model.ckpt-10: not read: ");
}

/* A text it is, or it says nothing. */
static void the_model_that_a_checkpoint_names_is_one_text(void **state)
{
    (void)state;
    const tw_string words[] = {{"mnits", 5}, {"cifar", 5}};
    tw_tensor *said[] = {tw_tensor_from(TW_STRING, TW_SCALAR, words), tw_tensor_from(TW_STRING, TW_SHAPE(2), words),
                         tw_tensor_float(3)};
    for (int i = 0; i < 3; i++) {
        char path[512];
        tw_error error = {0};
        tw_named_tensor named = {"tower/model", said[i]};
        snprintf(path, sizeof path, "%s/odd%d", directory, i);
        assert_ok(tw_checkpoint_save(path, "model.ckpt", 1, &named, 1, 5, &error));
        assert_runs(2, "$T eval odd%d", i);
        assert_prints(i == 0 ? "mnits" : "does not say which model it was made by");
        tw_tensor_release(said[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_words_it_lists_commands_and_fails_as_wrong_usage),
        cmocka_unit_test(unknown_command_is_named_with_the_nearest),
        cmocka_unit_test(group_without_a_command_lists_its_commands),
        cmocka_unit_test(unknown_option_is_named_with_the_nearest),
        cmocka_unit_test(one_dash_is_as_good_as_two),
        cmocka_unit_test(a_launched_task_that_fails_by_itself_says_the_exit_code),
        cmocka_unit_test(usage_errors_go_to_standard_error_only),
        cmocka_unit_test(number_out_of_range_is_refused_with_the_range),
        cmocka_unit_test(value_may_follow_an_equals_sign_and_underscores_count_as_dashes),
        cmocka_unit_test(missing_value_is_said),
        cmocka_unit_test(unknown_choice_is_answered_with_the_choices),
        cmocka_unit_test(operands_are_counted),
        cmocka_unit_test(every_command_has_help_that_teaches),
        cmocka_unit_test(help_wins_over_other_words),
        cmocka_unit_test(every_command_has_a_manual_page_with_all_its_options),
        cmocka_unit_test(manual_pages_are_written_into_a_directory),
        cmocka_unit_test(bash_completes_commands_options_and_values),
        cmocka_unit_test(other_shells_accept_their_completion),
        cmocka_unit_test(completion_of_other_shells_knows_every_command_and_kind_of_option),
        cmocka_unit_test(reader_that_goes_away_is_no_failure),
        cmocka_unit_test(output_that_cannot_be_written_is_a_failure),
        cmocka_unit_test(version_names_the_libraries),
        cmocka_unit_test(devices_are_listed_and_hold_no_memory),
        cmocka_unit_test(wrong_number_of_virtual_gpus_in_the_environment_is_named),
        cmocka_unit_test(data_info_counts_classes_and_measures_channels),
        cmocka_unit_test(data_info_refuses_files_cut_short),
        cmocka_unit_test(json_stays_valid_whatever_a_directory_is_called),
        cmocka_unit_test(fetching_says_what_to_bring_by_hand_when_it_fails),
        cmocka_unit_test(fetching_without_any_place_says_so),
        cmocka_unit_test(checkpoints_are_listed_and_shown),
        cmocka_unit_test(one_tensor_is_shown_with_its_statistics),
        cmocka_unit_test(damaged_checkpoint_is_found_by_verify_and_by_ls),
        cmocka_unit_test(a_checkpoint_that_cannot_be_read_is_not_called_damaged),
        cmocka_unit_test(the_model_that_a_checkpoint_names_is_one_text),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
