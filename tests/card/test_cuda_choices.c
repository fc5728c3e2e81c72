/* Which algorithms of NVIDIA's libraries are taken, on a card that is not there (card.h) and whose times are what the
 * test says: the fastest; and what is remembered of that in a file. The process remembers too, so each start is a
 * process of its own. */
#define _GNU_SOURCE /* pipe2 */
#include "testing.h"

#include "card.h"
#include "two_tasks.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tower/tower.h>
#include <unistd.h>

/* Two algorithms obey; cuDNN has them in both of its lists, which makes them no more. Each is timed by itself, then in
 * graphs of 20 runs. One takes 1 or 2 ms, so the first replay is all the warming up there is; four are timed. */
enum { RUNS = 20, LOOKS = 1 + 5, OF_CUDNN = 2 * LOOKS, OF_CUBLASLT = 2 * LOOKS };

/* ---- starts ------------------------------------------------------------------------------------------------------ */

/* What a start has seen; shared by the processes through a pipe. */
typedef struct seen {
    long timed;         /* how often an event was asked how long something took */
    long engines[5], algorithms[3]; /* how often each ran */
    int warnings;
    int beside;         /* libraries that another thread has opened */
    long ahead;         /* questions to cuBLASLt that the same has asked */
    char log[4000];     /* all that was said */
    char failure[2200]; /* why it did not compute; "": it did */
} seen;

static seen now;

static void note(void *starter, int level, const char *text)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    size_t used = strlen(now.log);
    now.warnings += level <= 1;
    now.beside += strstr(text, " is that in '") && !pthread_equal(*(pthread_t *)starter, pthread_self());
    snprintf(now.log + used, sizeof now.log - used, "%s\n", text);
    pthread_mutex_unlock(&lock);
}

/* What computes: so many devices of a process, or one of each of two tasks. */
typedef struct start_options {
    int gpus, logical;
    bool tasks, grows; /* in rounds whose values change their shape */
} start_options;

/* A convolution and a product. */
static tw_output still_part(tw_graph *g)
{
    tw_output x = tw_fill(g, tw_constant_int32s(g, TW_SHAPE(4), (int32_t[]){1, 4, 4, 2}), tw_scalar(g, 1));
    tw_output w = tw_fill(g, tw_constant_int32s(g, TW_SHAPE(4), (int32_t[]){3, 3, 2, 4}), tw_scalar(g, 1));
    tw_output y = tw_reshape(g, tw_conv2d(g, x, w, &(tw_conv2d_options){0}), TW_SHAPE(16, 4));
    return tw_l2_loss(g, tw_matmul(g, y, tw_transpose(g, y, TW_SHAPE(1, 0))));
}

/* A product in two rounds, the second of more rows, so that each is planned when it comes. */
static tw_output growing_part(tw_graph *g)
{
    tw_output w = tw_fill(g, tw_constant_int32s(g, TW_SHAPE(2), (int32_t[]){4, 4}), tw_scalar(g, 1));
    tw_output rows[] = {tw_placeholder_with_default(g, tw_ones(g, TW_FLOAT32, TW_SHAPE(8, 4)), TW_SHAPE(-1, 4))};
    TW_LOOP(g, rows, 1)
    {
        tw_while(g, tw_less(g, tw_round_number(g), tw_scalar_of(g, TW_INT32, 2)));
        tw_output more = tw_matmul(g, rows[0], w);
        rows[0] = tw_concat(g, (tw_output[]){rows[0], more}, 2, 0);
    }
    return tw_l2_loss(g, rows[0]);
}

/* On each device, twice; false: `now` says why not. */
static bool compute(const start_options *options)
{
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_graph *g = tw_graph_create();
    tw_output parts[4] = {0};
    for (int i = 0; i < options->gpus; i++)
        TW_DEVICE(g, options->tasks ? "/job:worker/task:%d/gpu:0" : "/gpu:%d", i)
    parts[i] = options->grows ? growing_part(g) : still_part(g);
    tw_output sum = options->gpus > 1 ? tw_add_n(g, parts, options->gpus) : parts[0];
    tw_device_options opened = TW_SIZED(tw_device_options);
    opened.logical_gpus = options->logical;
    opened.tasks = options->tasks;
    bool works = tw_devices_create(&opened, &devices, &error) == TW_OK &&
                 tw_session_create(g, &(tw_session_options){.devices = devices, .disable = "fold"}, &session, &error) ==
                     TW_OK;
    for (int i = 0; i < 2 && works; i++) {
        tw_tensor *value = NULL;
        works = tw_session_run(session, NULL, 0, &sum, 1, &value, &error) == TW_OK;
        tw_tensor_release(value);
    }
    if (!works) {
        snprintf(now.failure, sizeof now.failure, "%s%s", tw_graph_message(g), error.message);
        return false;
    }
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return *card_leaks() == 0;
}

/* In the child: whether what it has seen was told. */
static bool see(const start_options *options, int told_to)
{
    pthread_t starter = pthread_self();
    tw_set_log(note, &starter, 3);
    bool works = compute(options);
    now.timed = card_count("cudaEventElapsedTime");
    now.ahead = card_count("cublasLtMatmulAlgoGetHeuristic ahead");
    for (int i = 0; i < 5; i++) {
        char name[] = {'e', 'n', 'g', 'i', 'n', 'e', ' ', (char)('0' + i), 0};
        now.engines[i] = card_count(name);
    }
    now.algorithms[1] = card_count("algorithm 1");
    now.algorithms[2] = card_count("algorithm 2");
    return write(told_to, &now, sizeof now) == (ssize_t)sizeof now && (works || now.failure[0]);
}

typedef struct started {
    pid_t child;
    int end; /* of the pipe through which it tells what it has seen */
} started;

/* Another process, which calls become() first. */
static started begin(const start_options *options, void (*become)(int), int argument)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (become)
            become(argument);
        _exit(see(options, ends[1]) ? 0 : 1);
    }
    close(ends[1]);
    return (started){child, ends[0]};
}

static seen end(started s)
{
    seen found;
    int code;
    assert_int_equal(read(s.end, &found, sizeof found), sizeof found);
    close(s.end);
    assert_int_equal(waitpid(s.child, &code, 0), s.child);
    assert_int_equal(code, 0);
    return found;
}

static seen start_on(int gpus, int logical)
{
    seen found = end(begin(&(start_options){.gpus = gpus, .logical = logical}, NULL, 0));
    assert_string_equal(found.failure, "");
    return found;
}

static seen start(void)
{
    return start_on(1, 0);
}

/* ---- the folder -------------------------------------------------------------------------------------------------- */

static char folder[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tower-choices-XXXXXX");
    unsetenv("TOWER_ALGORITHM_CACHE");
    card_takes("engine 3", 2);
    card_takes("engine 4", 1);
    card_takes("algorithm 1", 2);
    card_takes("algorithm 2", 1);
    return mkdtemp(folder) && setenv("XDG_CACHE_HOME", folder, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* The path of cuDNN's one file whose name has `part`. */
static const char *file_of(const char *part)
{
    static char path[400];
    char list[128];
    int count = 0;
    snprintf(list, sizeof list, "%s/tower/algorithms", folder);
    DIR *open = opendir(list);
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open));)
        if (strstr(entry->d_name, part) && strstr(entry->d_name, "cudnn") && entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", list, entry->d_name);
            count++;
        }
    closedir(open);
    assert_int_equal(count, 1);
    return path;
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void the_fastest_is_taken_and_the_next_start_times_nothing(void **state)
{
    (void)state;
    seen cold = start();
    assert_true(cold.timed > 0);
    assert_true(cold.engines[4] == cold.engines[3] + 2); /* both were timed, the second ran */
    assert_int_equal(cold.engines[3], 2 + RUNS);         /* twice by itself, and into a graph */
    assert_int_equal(cold.timed, OF_CUDNN + OF_CUBLASLT);
    assert_true(cold.algorithms[2] == cold.algorithms[1] + 2);
    assert_message(cold.log, "cuDNN 9.");
    assert_message(cold.log, "is that in '/");
    assert_message(cold.log, "cudnn's algorithm 4, 1.0000 ms, timed");
    assert_message(cold.log, "cublaslt's algorithm 2, 1.0000 ms, timed");
    seen warm = start();
    assert_int_equal(warm.timed, 0);
    assert_int_equal(warm.engines[3], 0);
    assert_int_equal(warm.engines[4], 2);
    assert_int_equal(warm.algorithms[1], 0);
    assert_message(warm.log, "cudnn's algorithm 4, 1.0000 ms, remembered");
    assert_int_equal(cold.warnings + warm.warnings, 0);
}

/* What takes long to open is opened beside the card, which takes long as well, and has answered once before it is asked
 * in earnest. */
static void libraries_are_opened_beside_the_card(void **state)
{
    (void)state;
    seen warm = start();
    for (int again = 0; again < 20 && warm.beside < 2; again++)
        warm = start(); /* on a busy machine who needs them may come before that thread has begun */
    assert_int_equal(warm.beside, 2);
    assert_int_equal(warm.ahead, 1);
    assert_message(warm.log, "cuBLASLt ");
    assert_message(warm.log, "cuDNN ");
}

static void what_is_as_fast_as_the_first_is_not_taken(void **state)
{
    (void)state;
    card_takes("engine 3", 1.02);
    seen cold = start();
    assert_true(cold.engines[3] == cold.engines[4] + 2);
}

static void what_takes_several_times_as_long_is_not_looked_at_closely(void **state)
{
    (void)state;
    card_takes("engine 3", 1);
    card_takes("engine 4", 3);
    seen cold = start();
    assert_int_equal(cold.engines[4], 2); /* the first loads, the second is timed */
    assert_int_equal(cold.timed, OF_CUDNN + OF_CUBLASLT - (LOOKS - 1));
    assert_message(cold.log, "cudnn's algorithm 4, settings");
    assert_message(cold.log, "3.0000 ms");
    assert_message(cold.log, "cudnn's algorithm 3, 1.0000 ms, timed");
    assert_int_equal(cold.warnings, 0);
}

static void devices_and_parts_of_one_card_agree(void **state)
{
    (void)state;
    seen cold = start_on(4, 2);
    assert_int_equal(cold.timed, OF_CUDNN + OF_CUBLASLT); /* for all of them together */
    assert_int_equal(start_on(1, 0).timed, 0);
}

static void a_damaged_file_is_passed_over_once_and_replaced(void **state)
{
    static const char *const damages[] = {"", "rubbish", "tower algorithms 2: another card, cudnn 1\n", "HEAD conv 1 2",
                                          "HEADconv -1 4 5 100\n", "HEADconv x 4 5 100\n", "HEADconv 1 4 5 100 more\n"};
    (void)state;
    start();
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        char bad[1000];
        const char *path = file_of("cudnn");
        char *text = read_whole(path, NULL);
        bool with_head = strncmp(damages[i], "HEAD", 4) == 0;
        snprintf(bad, sizeof bad, "%.*s%s", with_head ? (int)strcspn(text, "\n") + 1 : 0, text,
                 damages[i] + (with_head ? 4 : 0));
        free(text);
        write_file(path, bad);
        seen next = start();
        assert_int_equal(next.warnings, 1);
        assert_message(next.log, "damaged");
        assert_message(next.log, path);
        assert_int_equal(next.timed, OF_CUDNN); /* the other library's is whole */
        assert_int_equal(start().timed, 0);
    }
}

static void a_choice_that_the_library_no_longer_has_is_made_anew(void **state)
{
    (void)state;
    start();
    char *text = read_whole(file_of("cudnn"), NULL);
    char *line = strstr(text, " 4 4 "); /* position, number */
    assert_non_null(line);
    memcpy(line, " 4 9 ", 5);
    write_file(file_of("cudnn"), text);
    free(text);
    seen next = start();
    assert_int_equal(next.timed, OF_CUDNN);
    assert_int_equal(next.warnings, 0);
    assert_int_equal(start().timed, 0);
}

static void an_algorithm_with_other_settings_is_another(void **state)
{
    (void)state;
    start();
    setenv("CARD_TUNED", "1", 1);
    seen next = start();
    unsetenv("CARD_TUNED");
    assert_int_equal(next.timed, OF_CUDNN);
    assert_int_equal(next.warnings, 0);
}

static void another_driver_has_a_file_of_its_own(void **state)
{
    (void)state;
    start();
    setenv("CARD_DRIVER", "13010", 1);
    assert_true(start().timed > 0);
    assert_message(file_of("driver-13010"), "driver-13010");
    unsetenv("CARD_DRIVER");
    assert_int_equal(start().timed, 0);
}

static void a_folder_that_cannot_be_written_changes_nothing_else(void **state)
{
    char path[100];
    (void)state;
    snprintf(path, sizeof path, "%s/tower", folder);
    write_file(path, "a file where a folder should be");
    for (int i = 0; i < 2; i++) {
        seen cold = start();
        assert_true(cold.timed > 0 && cold.engines[4] > cold.engines[3]);
        assert_int_equal(cold.warnings, 0);
        assert_message(cold.log, "chosen algorithms are not kept");
    }
}

static void another_card_has_a_file_of_its_own(void **state)
{
    (void)state;
    start();
    setenv("CARD_NAME", "Another Card", 1);
    assert_true(start().timed > 0);
    assert_message(file_of("Another-Card.cudnn"), "Another-Card.cudnn");
    assert_message(file_of("Made-up-Card.cudnn"), "Made-up-Card.cudnn");
    unsetenv("CARD_NAME");
    assert_int_equal(start().timed, 0);
}

static void off_leaves_the_folder_alone(void **state)
{
    char path[100];
    (void)state;
    setenv("TOWER_ALGORITHM_CACHE", "off", 1);
    seen cold = start();
    assert_true(cold.timed > 0 && cold.engines[4] > cold.engines[3]);
    snprintf(path, sizeof path, "%s/tower", folder);
    assert_int_not_equal(access(path, F_OK), 0);
}

/* ---- two tasks --------------------------------------------------------------------------------------------------- */

static int sockets[2];
static const char *only_of_the_second; /* a variable of its environment; NULL: none */

/* To the second's clock other algorithms are the fastest. */
static void become_one_of_two(int task)
{
    become_task(task, sockets, "1");
    if (task == 0)
        return;
    card_takes("engine 4", 3);
    card_takes("algorithm 2", 3);
    if (only_of_the_second)
        setenv(only_of_the_second, "1", 1);
}

static void start_two(bool grows, seen found[2])
{
    start_options options = {.gpus = 2, .tasks = true, .grows = grows};
    started tasks[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    for (int task = 0; task < 2; task++)
        tasks[task] = begin(&options, become_one_of_two, task);
    close(sockets[0]);
    close(sockets[1]);
    for (int task = 0; task < 2; task++)
        found[task] = end(tasks[task]);
}

static void what_the_first_task_has_timed_all_take(void **state)
{
    seen found[2];
    (void)state;
    start_two(false, found);
    assert_string_equal(found[0].failure, "");
    assert_string_equal(found[1].failure, "");
    assert_int_equal(found[0].timed, OF_CUDNN + OF_CUBLASLT); /* for the other's card, too */
    assert_int_equal(found[1].timed, 0);
    assert_int_equal(found[1].engines[3] + found[1].algorithms[1], 0);
    assert_int_equal(found[1].engines[4], 2);
    assert_int_equal(found[1].algorithms[2], 2);
    assert_message(found[1].log, "cudnn's algorithm 4, 1.0000 ms, task 0's");
    assert_message(found[1].log, "on which tasks 0 and 1 take turns");
}

static void an_algorithm_that_only_the_first_task_has_ends_both(void **state)
{
    seen found[2];
    (void)state;
    only_of_the_second = "CARD_TUNED";
    start_two(false, found);
    only_of_the_second = NULL;
    assert_message(found[1].failure, "cudnn's algorithm 4, which task 0 has chosen on its Made-up Card, is not there "
                                     "on task 1's Made-up Card");
    assert_message(found[0].failure, "task 1");
}

/* The first round is of the plan; who plans when another comes cannot ask the first task: all take what no clock has
 * chosen. */
static void rounds_that_are_planned_when_they_come_take_the_librarys_first(void **state)
{
    seen found[2];
    (void)state;
    start_two(true, found);
    for (int task = 0; task < 2; task++) {
        assert_string_equal(found[task].failure, "");
        assert_message(found[task].log, "cublaslt's algorithm 1, the first");
    }
    assert_int_equal(found[1].timed, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_fastest_is_taken_and_the_next_start_times_nothing),
        TEST(libraries_are_opened_beside_the_card),
        TEST(what_is_as_fast_as_the_first_is_not_taken),
        TEST(what_takes_several_times_as_long_is_not_looked_at_closely),
        TEST(devices_and_parts_of_one_card_agree),
        TEST(a_damaged_file_is_passed_over_once_and_replaced),
        TEST(a_choice_that_the_library_no_longer_has_is_made_anew),
        TEST(an_algorithm_with_other_settings_is_another),
        TEST(another_driver_has_a_file_of_its_own),
        TEST(a_folder_that_cannot_be_written_changes_nothing_else),
        TEST(another_card_has_a_file_of_its_own),
        TEST(off_leaves_the_folder_alone),
        TEST(what_the_first_task_has_timed_all_take),
        TEST(an_algorithm_that_only_the_first_task_has_ends_both),
        TEST(rounds_that_are_planned_when_they_come_take_the_librarys_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
