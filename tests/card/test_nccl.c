/* Reductions by NCCL, on cards and a library that are not there (card.h): what they add up to, what becomes of the
 * calls that fail, and of cards that do not come. The driver is asked once a process, so each try has one of its
 * own. */
#include "failing_calls.h"
#include "two_tasks.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

enum { CARDS = 3, VARIABLES = 3, STEPS = 3, MOST_CALLS = 10000 };
enum { TIMEOUT = 1000, DELAY = 777, FAILURE = 778 }; /* seconds: none goes by but on the plug-in's clock (clock.cc) */

/* ---- a program --------------------------------------------------------------------------------------------------- */

typedef struct job {
    const char *type, *spec;
    tw_device_options devices;
    double delay;  /* seconds, of the last card */
    bool again;    /* after a step that fails the others are taken too */
    tw_output means;
    float sum;     /* of all values */
    tw_error first;
} job;

/* Two tasks have two cards each, of which the last has nothing to do. */
static void name_device(const job *j, int i, char *name, size_t size)
{
    if (j->devices.tasks)
        snprintf(name, size, "/job:worker/task:%d/%s:%d", i / 2, j->type, i % 2);
    else
        snprintf(name, size, "/%s:%d", j->type, i);
}

/* On each device variables of its own, and their gradients: small integers, so that sums are the same in any order.
 * Returns what makes their means; values[CARDS * VARIABLES] are the variables after an update. */
static tw_output build(tw_graph *g, const job *j, tw_output *values)
{
    tw_grads *grads[CARDS], *means[CARDS];
    char names[CARDS][40];
    const char *devices[CARDS];
    tw_optimizer *sgd = tw_gradient_descent(g, tw_scalar(g, 0.5f));
    for (int t = 0; t < CARDS; t++) {
        name_device(j, t, names[t], sizeof names[t]);
        devices[t] = names[t];
        TW_DEVICE(g, "%s", names[t]) {
            tw_variable *own[VARIABLES];
            tw_output loss = tw_scalar(g, 0);
            for (int i = 0; i < VARIABLES; i++) {
                char name[] = {'v', (char)('0' + t), (char)('0' + i), 0};
                own[i] = tw_get_variable(g, name, TW_FLOAT32, TW_SHAPE(5 + i), (tw_initializer){.a = (float)(1 + i)});
                loss = tw_add(g, tw_l2_loss(g, tw_mul(g, own[i]->value, tw_scalar(g, (float)(1 << t)))), loss);
            }
            grads[t] = tw_compute_gradients_of(sgd, loss, own, VARIABLES);
        }
    }
    tw_average_options how = {.all_reduce = j->spec, .devices = devices};
    tw_all_reduce(g, grads, CARDS, &how, means);
    tw_output group = {0}, all[CARDS * VARIABLES];
    for (int t = 0; t < CARDS && tw_graph_status(g) == TW_OK; t++)
        TW_DEVICE(g, "%s", names[t]) {
            tw_output update = tw_apply_gradients(sgd, means[t], NULL);
            for (int i = 0; i < VARIABLES; i++)
                all[t * VARIABLES + i] = means[t]->gradients[i];
            TW_CONTROL(g, update)
                for (int i = 0; i < VARIABLES; i++)
                    values[t * VARIABLES + i] = tw_variable_read(g, means[t]->variables[i]);
        }
    TW_DEVICE(g, "/task:0/cpu:0")
        group = tw_group(g, all, CARDS * VARIABLES);
    return group;
}

static tw_status take_step(job *j, tw_session *session, const tw_output *values, tw_error *error)
{
    tw_tensor *found[CARDS * VARIABLES] = {0};
    if (j->delay > 0) /* the last that a card computes shall be before a meeting */
        return tw_session_run(session, NULL, 0, &j->means, 1, NULL, error);
    tw_status status = tw_session_run(session, NULL, 0, values, CARDS * VARIABLES, found, error);
    j->sum = 0;
    for (int i = 0; i < CARDS * VARIABLES; i++) {
        for (int k = 0; status == TW_OK && k < tw_tensor_elements(found[i]); k++)
            j->sum += (float)(i + k + 1) * (float)tw_tensor_value(found[i], k);
        tw_tensor_release(found[i]);
    }
    return status;
}

static tw_status run(job *j, tw_error *error)
{
    tw_devices *devices = NULL;
    tw_session *session = NULL;
    tw_output values[CARDS * VARIABLES];
    tw_graph *g = tw_graph_create();
    tw_device_options options = j->devices;
    options.size = sizeof options;
    options.cpu_devices = CARDS;
    options.cpu_threads = 1;
    tw_status status = tw_devices_create(&options, &devices, error);
    if (status == TW_OK && strcmp(j->type, "gpu") == 0 && tw_devices_count(devices, "GPU") < CARDS) {
        snprintf(error->message, sizeof error->message, "%s", tw_devices_why_no_gpu());
        status = TW_UNAVAILABLE;
    }
    if (status == TW_OK) {
        j->means = build(g, j, values);
        assert_string_equal(tw_graph_message(g), "");
        status =
            tw_session_create(g, &(tw_session_options){.devices = devices, .trace = j->delay > 0}, &session, error);
    }
    tw_output start = tw_initialize_variables(g);
    if (status == TW_OK)
        status = tw_session_run(session, NULL, 0, &start, 1, NULL, error);
    for (int step = 0; step < STEPS && (status == TW_OK || j->again); step++) {
        if (step == 1 && j->delay > 0) {
            const char *late = tw_devices_info(devices, 2 * CARDS - 1).name;
            assert_int_equal(tw_session_delay(session, &(tw_delay){TW_TIME_COMPUTE, late, 0, j->delay}, error), TW_OK);
        }
        status = take_step(j, session, values, error);
        if (status != TW_OK && j->first.status == TW_OK) {
            j->first = *error;
            unsetenv("CARD_NCCL_AT");
        }
    }
    tw_session_destroy(session);
    tw_graph_destroy(g);
    tw_devices_destroy(devices);
    return status;
}

static int complain(const char *what, const char *text)
{
    fprintf(stderr, "%s: \"%s\"\n", what, text);
    return BAD;
}

/* ---- what comes out ---------------------------------------------------------------------------------------------- */

static int same_sums(long unused)
{
    (void)unused;
    tw_error error = {0};
    job host = {.type = "cpu", .spec = "tree"}, cards = {.type = "gpu", .spec = "nccl/xring"};
    if (run(&host, &error) != TW_OK || run(&cards, &error) != TW_OK)
        return complain("fails", error.message);
    if (card_count("ncclAllReduce") != CARDS * VARIABLES * STEPS || card_count("ncclGroupEnd") != VARIABLES * STEPS + 2)
        return complain("other calls than one group for each gradient, one to begin and one to end", "");
    if (host.sum == 0 || host.sum != cards.sum)
        return complain("the sums are others than the host's", "");
    return *card_leaks() ? complain("left behind", card_leaks()) : FINE;
}

static void cards_reduce_to_what_the_host_does(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(same_sums, 0), FINE);
}

/* ---- every call -------------------------------------------------------------------------------------------------- */

/* Between the calls that are tried; the argument "every" makes it 1. The thread sanitizer has a quarter: whichever call
 * fails, the same threads are told. */
static long stride = UNDER_THREAD_SANITIZER ? 127 : 29;

/* At the end of a session nobody is there to be told. */
static bool may_be_silent(const char *call)
{
    return strstr(call, "Destroy") || strstr(call, "Free") || strstr(call, "ncclComm") || strstr(call, "ncclGroup") ||
           strcmp(call, "cudaSetDevice") == 0;
}

static int try_one(long n)
{
    tw_error error = {0};
    job j = {.type = "gpu", .spec = "nccl"};
    tw_set_log(log_it, NULL, 1);
    card_fail_at(n);
    tw_status status = run(&j, &error);
    const char *call = card_failed();
    if (*card_leaks())
        return fprintf(stderr, "call %ld, %s: ", n, call), complain("left behind", card_leaks());
    if (!*call)
        return status == TW_OK ? NOT_REACHED : complain("fails on its own", error.message);
    if (status == TW_OK)
        return may_be_silent(call) || strstr(logged, call) ? FINE : complain("nobody says so", call);
    if (strncmp(call, "nccl", 4) != 0) /* test_cuda_faults.c */
        return strstr(error.message, call) ? FINE : complain(call, error.message);
    bool named = strstr(error.message, call) && strstr(error.message, "/device:GPU:") && strstr(error.message, ".c:");
    if (strcmp(call, "ncclGetVersion") == 0)
        named = strstr(error.message, "NCCL cannot be used: ncclGetVersion: made-up error (libraries.c:");
    if (strcmp(call, "ncclGetLastError") == 0)
        named = true;
    return named ? FINE : complain(call, error.message);
}

/* From the n-th call on every call fails, of CUDA's as well. */
static int try_from(long n)
{
    tw_error error = {0};
    job j = {.type = "gpu", .spec = "nccl"};
    tw_set_log(log_it, NULL, 1);
    alarm(PATIENCE); /* none waits for what does not come */
    card_fail_from(n);
    tw_status status = run(&j, &error);
    if (*card_leaks())
        return fprintf(stderr, "from call %ld, %s: ", n, card_failed()), complain("left behind", card_leaks());
    if (!*card_failed())
        return status == TW_OK ? NOT_REACHED : complain("fails on its own", error.message);
    if (status == TW_OK)
        return names_a_failed_call(logged, may_be_silent) ? FINE : complain("nobody says so", card_failed());
    return names_a_failed_call(error.message, NULL) ? FINE : complain(card_failed(), error.message);
}

static void a_card_that_fails_for_good_is_named_and_communicators_are_given_back(void **state)
{
    (void)state;
    assert_failing_calls_are_answered(try_from, stride, 200, MOST_CALLS);
}

static void every_call_that_fails_is_named_and_communicators_are_given_back(void **state)
{
    (void)state;
    assert_failing_calls_are_answered(try_one, stride, 200, MOST_CALLS);
}

/* ---- who does not come ------------------------------------------------------------------------------------------- */

static bool has(const job *j, const char *part)
{
    return strstr(j->first.message, part) != NULL;
}

/* A rank that is never ready while communicators are made. */
static int hangs_at_init(long rank)
{
    char text[16], device[32];
    tw_error error = {0};
    job j = {.type = "gpu", .spec = "nccl", .devices.collective_timeout = TIMEOUT};
    snprintf(text, sizeof text, "%ld", rank);
    snprintf(device, sizeof device, "/device:GPU:%ld has not", rank);
    setenv("CARD_NCCL_HANGS", text, 1);
    setenv("CARD_NCCL_AT", "init", 1);
    card_hang_for(TIMEOUT);
    tw_status status = run(&j, &error);
    if (status != TW_DEADLINE_EXCEEDED || !has(&j, device) || !has(&j, "1000 s: ncclCommInitRankConfig (nccl_world.c:"))
        return complain("not told who is late", j.first.message);
    if (card_count("ncclCommAbort") != CARDS)
        return complain("communicators are not aborted", j.first.message);
    return *card_leaks() ? complain("left behind", card_leaks()) : FINE;
}

static char warnings[1000];

static void keep_warning(void *user, int level, const char *text)
{
    (void)user;
    size_t used = strlen(warnings);
    if (level <= 1)
        snprintf(warnings + used, sizeof warnings - used, "%s\n", text);
}

/* A rank whose communicator does not end: nothing is lost any more, but it is said. */
static int hangs_at_the_end(long unused)
{
    (void)unused;
    tw_error error = {0};
    job j = {.type = "gpu", .spec = "nccl", .devices.collective_timeout = TIMEOUT};
    setenv("CARD_NCCL_HANGS", "1", 1);
    setenv("CARD_NCCL_AT", "end", 1);
    card_hang_for(TIMEOUT);
    tw_set_log(keep_warning, NULL, 1);
    if (run(&j, &error) != TW_OK)
        return complain("fails", error.message);
    if (!strstr(warnings, "GPU:1 has not come within the collective timeout of 1000 s: ncclCommFinalize"))
        return complain("not told what does not end", warnings);
    return *card_leaks() ? complain("left behind", card_leaks()) : FINE;
}

/* A kernel of the library's that never ends; the steps after it have new communicators. */
static int hangs_while_it_reduces(long unused)
{
    (void)unused;
    tw_error error = {0};
    job j = {.type = "gpu", .spec = "nccl", .devices.collective_timeout = TIMEOUT, .again = true};
    setenv("CARD_NCCL_AT", "reduction", 1);
    card_hang_for(TIMEOUT);
    if (run(&j, &error) != TW_OK)
        return complain("does not go on", error.message);
    if (j.first.status != TW_DEADLINE_EXCEEDED || !has(&j, "/device:GPU:") ||
        !has(&j, "ncclAllReduce has not ended there"))
        return complain("not told what hangs", j.first.message);
    if (card_count("ncclCommAbort") != CARDS || card_count("ncclCommInitRankConfig") != 2 * CARDS)
        return complain("communicators are not made anew", "");
    return *card_leaks() ? complain("left behind", card_leaks()) : FINE;
}

int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

/* The delay of a dispatcher: until one of the other cards has waited in vain, or until the thread for NCCL's calls has
 * met a failure of what is under way. */
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    if (time->tv_sec == FAILURE) {
        card_fail_among("ncclCommGetAsyncError", 1);
        while (card_count("failure") == 0)
            usleep(1000);
        return 0;
    }
    if (time->tv_sec != DELAY)
        return __real_nanosleep(time, left);
    while (card_waiting() < CARDS - 1)
        usleep(1000);
    card_skip(2);
    while (card_count("wait in vain") == 0)
        usleep(1000);
    return 0;
}

/* A card whose dispatcher is held up on its way. */
static int comes_late(long unused)
{
    (void)unused;
    tw_error error = {0};
    job j = {.type = "gpu", .spec = "nccl", .devices.collective_timeout = TIMEOUT, .delay = DELAY};
    card_hang_for(TIMEOUT);
    if (run(&j, &error) != TW_DEADLINE_EXCEEDED ||
        !has(&j, "/device:GPU:2 has not come within the collective timeout of 1000 s"))
        return complain("not told who is late", j.first.message);
    return *card_leaks() ? complain("left behind", card_leaks()) : FINE;
}

/* Communicators that fail between two reductions of a step: the second does not make them anew, the next step does. */
static int fails_under_way(long unused)
{
    (void)unused;
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_output sums[2], both;
    tw_graph *g = tw_graph_create();
    alarm(PATIENCE);
    assert_ok(tw_devices_create(&(tw_device_options){.cpu_devices = 1, .cpu_threads = 1}, &devices, &error));
    for (int i = 0; i < 2; i++)
        TW_DEVICE(g, "/gpu:%d", i)
            sums[i] = tw_nccl_all_reduce(
                g, tw_neg(g, tw_nccl_all_reduce(g, tw_neg(g, tw_scalar(g, (float)i)), 2, "first")), 2, "second");
    both = tw_group(g, sums, 2);
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices, .trace = true}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &both, 1, NULL, &error));
    const char *held_up = tw_devices_info(devices, 2).name;
    assert_ok(tw_session_delay(session, &(tw_delay){TW_TIME_COMPUTE, held_up, 0, FAILURE}, &error));
    assert_fails(tw_session_run(session, NULL, 0, &both, 1, NULL, &error), TW_INTERNAL,
                 "ncclCommGetAsyncError: made-up error (nccl_world.c:");
    assert_ok(tw_session_delay(session, &(tw_delay){TW_TIME_COMPUTE, held_up, 0, 0}, &error));
    assert_ok(tw_session_run(session, NULL, 0, &both, 1, NULL, &error));
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return *card_leaks() ? complain("left behind", card_leaks()) : FINE;
}

static void what_fails_between_two_reductions_fails_the_step(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(fails_under_way, 0), FINE);
}

static void who_does_not_come_is_named_when_the_time_is_over(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(hangs_at_init, 0), FINE);
    assert_int_equal(in_a_process(hangs_at_init, 2), FINE);
    assert_int_equal(in_a_process(hangs_while_it_reduces, 0), FINE);
    assert_int_equal(in_a_process(hangs_at_the_end, 0), FINE);
    assert_int_equal(in_a_process(comes_late, 0), FINE);
}

/* ---- what does not come back ------------------------------------------------------------------------------------- */

/* The n-th of a call never returns; it is said by an error, or at the end by a warning. */
static const struct {
    const char *call;
    long n;
    const char *whose;     /* communicators */
    const char *at;        /* what goes wrong before it: CARD_NCCL_AT */
    bool warned;           /* nobody is there any more to be told otherwise, or he has been told of something else */
} hangs[] = {
    {"ncclGetUniqueId", 1, "communicators of /job:localhost/replica:0/task:0/device:GPU:0, /job:"},
    {"ncclGroupStart", 1, "communicators of /job:"},
    {"ncclCommInitRankConfig", 2, "communicator of /job:localhost/replica:0/task:0/device:GPU:1:"},
    {"ncclGroupEnd", 1, "communicators of /job:"},
    {"ncclCommGetAsyncError", 3, "communicator of /job:localhost/replica:0/task:0/device:GPU:2:"},
    {"ncclGroupStart", 2, "communicators of /job:"},
    {"ncclAllReduce", 1, "communicator of /job:localhost/replica:0/task:0/device:GPU:0:"},
    {"ncclAllReduce", 2 + CARDS, "communicator of /job:localhost/replica:0/task:0/device:GPU:1:"},
    {"ncclGroupEnd", 2, "communicators of /job:"},
    {"ncclCommGetAsyncError", 10, "communicator of /job:localhost/replica:0/task:0/device:GPU:0:"},
    {"ncclGetLastError", 1, "communicator", "refusal"},
    {"ncclGetErrorString", 1, "communicator", "refusal"},
    {"ncclCommAbort", 2, "communicator of /job:localhost/replica:0/task:0/device:GPU:1:", "reduction", .warned = true},
    {"ncclCommFinalize", 1, "communicator of /job:localhost/replica:0/task:0/device:GPU:0:", .warned = true},
    {"ncclGroupEnd", 2 + VARIABLES * STEPS, "communicators of /job:", .warned = true},
    {"ncclCommDestroy", 3, "communicator of /job:localhost/replica:0/task:0/device:GPU:2:", .warned = true},
};

static int hangs_in(long row)
{
    tw_error error = {0};
    char text[200];
    job j = {.type = "gpu", .spec = "nccl", .devices.collective_timeout = TIMEOUT, .again = true};
    card_hang_at(hangs[row].call, hangs[row].n);
    card_hang_for(TIMEOUT);
    tw_set_log(keep_warning, NULL, 1);
    if (hangs[row].at)
        setenv("CARD_NCCL_AT", hangs[row].at, 1);
    if (run(&j, &error) != TW_OK)
        return complain("does not go on", error.message);
    const char *told = hangs[row].warned ? warnings : j.first.message;
    snprintf(text, sizeof text, ": %s has not come back within the collective timeout of 1000 s (nccl_world.c:",
             hangs[row].call);
    if (!strstr(told, hangs[row].whose) || !strstr(told, text))
        return complain(hangs[row].call, told);
    if (!hangs[row].warned && j.first.status != TW_DEADLINE_EXCEEDED)
        return complain("another kind of error", j.first.message);
    if (!strstr(card_leaks(), "stream"))
        return complain("what the call may touch has not been kept", card_leaks());
    card_let_go();
    for (int tries = 0; *card_leaks() && tries < PATIENCE * 1000; tries++)
        usleep(1000);
    return *card_leaks() ? complain("left behind by a call that came back", card_leaks()) : FINE;
}

static void a_call_that_does_not_come_back_is_named_and_given_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hangs / sizeof *hangs; i++)
        assert_int_equal(in_a_process(hangs_in, (long)i), FINE);
}

/* ---- over two tasks ---------------------------------------------------------------------------------------------- */

static int task; /* which this process is */

/* Each in a process of its own, with two cards; what became of them, which is fine if it is of both. */
static int in_two_tasks(int (*test)(long), long n)
{
    int pair[2], codes[2], worst = FINE;
    pid_t children[2];
    fflush(NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] > 0)
            continue;
        become_task(i, pair, "2");
        alarm(PATIENCE);
        task = i;
        _exit(test(n));
    }
    close(pair[0]);
    close(pair[1]);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(waitpid(children[i], &codes[i], 0), children[i]);
        bool killed = WIFSIGNALED(codes[i]) && WTERMSIG(codes[i]) == SIGKILL; /* which a test does itself */
        int code = WIFEXITED(codes[i]) ? WEXITSTATUS(codes[i]) : killed ? FINE : BAD;
        worst = code > worst ? code : worst;
    }
    return worst;
}

static job job_of_tasks(void)
{
    return (job){.type = "gpu", .spec = "nccl", .devices = {.collective_timeout = TIMEOUT, .tasks = true}};
}

static int same_sums_over_tasks(long unused)
{
    (void)unused;
    tw_error error = {0};
    job host = {.type = "cpu", .spec = "tree"}, cards = job_of_tasks();
    int own = task == 0 ? 2 : CARDS - 2;
    if (run(&cards, &error) != TW_OK || run(&host, &error) != TW_OK)
        return complain("fails", error.message);
    if (card_count("ncclAllReduce") != own * VARIABLES * STEPS || card_count("ncclGetUniqueId") != (task == 0))
        return complain("other calls than those for this task's cards", "");
    if (host.sum == 0 || host.sum != cards.sum)
        return complain("the sums are others than the host's", "");
    return *card_leaks() ? complain("left behind", card_leaks()) : FINE;
}

/* Ranks that go to and fro between the tasks. */
static int in_turns(long unused)
{
    (void)unused;
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_output x[4];
    tw_graph *g = tw_graph_create();
    tw_device_options options = TW_SIZED(tw_device_options);
    options.tasks = true;
    assert_ok(tw_devices_create(&options, &devices, &error));
    for (int i = 0; i < 4; i++)
        TW_DEVICE(g, "/job:worker/task:%d/gpu:%d", i % 2, i / 2)
            x[i] = tw_nccl_all_reduce(g, tw_neg(g, tw_scalar(g, (float)i + 1)), 4, "a");
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    for (int times = 0; times < 2; times++) {
        tw_tensor *values[4] = {0};
        if (tw_session_run(session, NULL, 0, x, 4, values, &error) != TW_OK)
            return complain("fails", error.message);
        for (int i = 0; i < 4; i++) {
            if (tw_tensor_value(values[i], 0) != -10)
                return complain("another sum", "");
            tw_tensor_release(values[i]);
        }
    }
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return *card_leaks() ? complain("left behind", card_leaks()) : FINE;
}

static void cards_of_two_tasks_reduce_to_what_the_host_does(void **state)
{
    (void)state;
    assert_int_equal(in_two_tasks(same_sums_over_tasks, 0), FINE);
    assert_int_equal(in_two_tasks(in_turns, 0), FINE);
}

/* The two take turns at what goes wrong. */
static bool is_turn(long n)
{
    return n % 2 == task;
}

/* What both say of a call that goes wrong in one of them: nothing, where the run was over. */
static int check_told(const char *call, tw_status status, const tw_error *error, bool own)
{
    char other[40];
    snprintf(other, sizeof other, "task %d failed: ", 1 - task);
    if (status == TW_OK)
        return !own || may_be_silent(call) || strstr(warnings, call) ? FINE : complain("nobody says so", call);
    if (!own && !strstr(error->message, other))
        return complain("not told whose failure it is", error->message);
    if (strstr(error->message, "NCCL cannot be used: ncclGetVersion: made-up error"))
        return FINE;
    if (!strstr(error->message, "/task:") || !strstr(error->message, "/device:GPU:") || !strstr(error->message, ".c:"))
        return complain("not told where", error->message);
    return strstr(error->message, own ? call : ": nccl") || strstr(call, "Get") ? FINE : complain(call, error->message);
}

static int fails_in_a_task(long n)
{
    tw_error error = {0};
    job j = job_of_tasks();
    bool own = is_turn(n);
    tw_set_log(keep_warning, NULL, 1);
    if (own)
        card_fail_among("nccl", (n + 1) / 2);
    tw_status status = run(&j, &error);
    if (*card_leaks())
        return complain("left behind", card_leaks());
    if (own && !*card_failed())
        return status == TW_OK ? NOT_REACHED : complain("fails on its own", error.message);
    return check_told(own ? card_failed() : "", status, &error, own);
}

static int hangs_in_a_task(long n)
{
    tw_error error = {0};
    job j = job_of_tasks();
    bool own = is_turn(n);
    tw_set_log(keep_warning, NULL, 1);
    if (own) {
        card_hang_for(TIMEOUT);
        card_hang_at("nccl", (n + 1) / 2);
    }
    tw_status status = run(&j, &error);
    if (own && !*card_hung())
        return status == TW_OK ? NOT_REACHED : complain("fails on its own", error.message);
    if (status != TW_OK && status != TW_ABORTED)
        return complain("another kind of error", error.message);
    return check_told(own ? card_hung() : "", status, &error, own);
}

/* A word of who is left. */
static int dies_in_a_task(long n)
{
    tw_error error = {0};
    job j = job_of_tasks();
    bool own = is_turn(n);
    if (own)
        card_die_at("nccl", (n + 1) / 2);
    tw_status status = run(&j, &error);
    if (own)
        return NOT_REACHED;
    if (*card_leaks())
        return complain("left behind", card_leaks());
    bool named = strstr(error.message, " has ended");
    return status == TW_OK || (status == TW_ABORTED && named) ? FINE : complain("not told who died", error.message);
}

static void assert_told_in_tasks(int (*test)(long), long step)
{
    int bad = 0, result = FINE;
    long n = 1;
    for (; result != NOT_REACHED && n < MOST_CALLS; n += step) {
        result = in_two_tasks(test, n);
        bad += result == BAD;
    }
    print_message("%ld calls\n", n / step);
    if (bad)
        fail_msg("%d of %ld calls that go wrong in one task are not answered well", bad, n / step);
    assert_true(n > 40);
}

static void what_goes_wrong_in_one_task_is_named_in_both(void **state)
{
    (void)state;
    long step = stride > 1 ? 13 : 1; /* odd: the tasks take turns */
    assert_told_in_tasks(fails_in_a_task, step);
    assert_told_in_tasks(hangs_in_a_task, step);
    assert_told_in_tasks(dies_in_a_task, step);
}

/* A card of the second task that never comes to life, and kernels that never end. */
static int comes_late_in_a_task(long at_init)
{
    tw_error error = {0};
    job j = job_of_tasks();
    const char *late = at_init ? "/task:1/device:GPU:0 has not come" : "/device:GPU:";
    setenv("CARD_NCCL_HANGS", "2", 1);
    setenv("CARD_NCCL_AT", at_init ? "init" : "reduction", 1);
    card_hang_for(TIMEOUT);
    if (run(&j, &error) != TW_ABORTED || !has(&j, late) || !has(&j, "and may wait for /job:worker") ||
        !has(&j, at_init ? "1000 s: ncclCommInitRankConfig" : "ncclAllReduce has not ended there"))
        return complain("not told who is late", error.message);
    return *card_leaks() ? complain("left behind", card_leaks()) : FINE;
}

/* A reduction waits for another task's card for good, and the call that shall begin the next does not come back: nobody
 * but the guard ends what is under way. */
static int hangs_behind_a_reduction(long unused)
{
    (void)unused;
    tw_error error = {0};
    job j = job_of_tasks();
    setenv("CARD_NCCL_HANGS", "2", 1);
    setenv("CARD_NCCL_AT", "reduction", 1);
    card_hang_for(TIMEOUT);
    if (task == 0)
        card_hang_at("ncclGroupStart", 3); /* the first is at the beginning */
    if (run(&j, &error) != TW_ABORTED || (task == 0 && strcmp(card_hung(), "ncclGroupStart") != 0))
        return complain("ends otherwise", error.message);
    return FINE;
}

static void what_is_under_way_when_a_call_hangs_is_ended(void **state)
{
    (void)state;
    assert_int_equal(in_two_tasks(hangs_behind_a_reduction, 0), FINE);
}

static int has_another_version(long unused)
{
    (void)unused;
    tw_error error = {0};
    job j = job_of_tasks();
    setenv("CARD_NCCL", task == 0 ? "22705" : "22602", 1);
    if (run(&j, &error) != TW_FAILED_PRECONDITION || card_count("ncclCommInitRankConfig") != (task == 0 ? 2 : 0) ||
        !has(&j, "tasks differ in NCCL: task 1 has version 2.26.2, task 0 has 2.27.5"))
        return complain("not told what differs", error.message);
    return *card_leaks() ? complain("left behind", card_leaks()) : FINE;
}

static void other_versions_are_told_before_anything_is_reduced(void **state)
{
    (void)state;
    assert_int_equal(in_two_tasks(has_another_version, 0), FINE);
}

static void who_does_not_come_is_named_in_both_tasks(void **state)
{
    (void)state;
    assert_int_equal(in_two_tasks(comes_late_in_a_task, 0), FINE);
    assert_int_equal(in_two_tasks(comes_late_in_a_task, 1), FINE);
}

/* ---- what cannot be ---------------------------------------------------------------------------------------------- */

static int refusals(long unused)
{
    (void)unused;
    tw_error error = {0};
    tw_devices *devices;
    const char *names[] = {"/gpu:0", "/gpu:1", "/gpu:0"}, *why;
    assert_string_equal(tw_devices_nccl(&why) ? "" : why, "");
    assert_ok(tw_devices_create(NULL, &devices, &error));
    assert_ok(tw_devices_check_nccl(devices, names, 2, &error));
    assert_fails(tw_devices_check_nccl(devices, names, 3, &error), TW_INVALID_ARGUMENT,
                 "towers 0 and 2 share /job:localhost");
    names[1] = "/cpu:0";
    assert_fails(tw_devices_check_nccl(devices, names, 2, &error), TW_INVALID_ARGUMENT,
                 "device:CPU:0 is of kind 'cpu'");
    names[1] = "/gpu:7";
    assert_fails(tw_devices_check_nccl(devices, names, 2, &error), TW_INVALID_ARGUMENT, "there is no device '/gpu:7'");
    tw_devices_destroy(devices);
    names[1] = "/gpu:1";
    assert_ok(tw_devices_create(&(tw_device_options){.logical_gpus = 2}, &devices, &error));
    assert_fails(tw_devices_check_nccl(devices, names, 2, &error), TW_INVALID_ARGUMENT, "is part 1 of 2 of one");
    tw_devices_destroy(devices);
    return FINE;
}

static int bad_meetings(long unused)
{
    (void)unused;
    tw_error error = {0};
    tw_devices *devices;
    tw_session *session;
    tw_output x[3], both, same;
    tw_graph *g = tw_graph_create();
    assert_ok(tw_devices_create(NULL, &devices, &error));
    TW_DEVICE(g, "/gpu:0")
        x[0] = tw_nccl_all_reduce(g, tw_neg(g, tw_scalar(g, 1)), 2, "a");
    TW_DEVICE(g, "/gpu:1")
        x[1] = tw_nccl_all_reduce(g, tw_neg(g, tw_scalar(g, 2)), 2, "a");
    TW_DEVICE(g, "/gpu:0")
        x[2] = tw_nccl_all_reduce(g, tw_neg(g, tw_scalar(g, 2)), 2, "a");
    both = tw_group(g, x, 2);
    same = tw_group(g, (tw_output[]){x[0], x[2]}, 2);
    assert_ok(tw_session_create(g, &(tw_session_options){.devices = devices}, &session, &error));
    assert_ok(tw_session_run(session, NULL, 0, &both, 1, NULL, &error));
    assert_fails(tw_session_run(session, NULL, 0, x, 1, (tw_tensor *[1]){0}, &error), TW_INVALID_ARGUMENT,
                 "1 of the 2 nodes that reduce 'a' together");
    assert_fails(tw_session_run(session, NULL, 0, &same, 1, NULL, &error), TW_INVALID_ARGUMENT,
                 "are both on /job:localhost/replica:0/task:0/device:GPU:0");
    tw_session_destroy(session);
    tw_devices_destroy(devices);
    tw_graph_destroy(g);
    return *card_leaks() ? complain("left behind", card_leaks()) : FINE;
}

static void what_nccl_cannot_do_is_refused_in_one_line(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(refusals, 0), FINE);
    assert_int_equal(in_a_process(bad_meetings, 0), FINE);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_reduce_to_what_the_host_does),
        cmocka_unit_test(every_call_that_fails_is_named_and_communicators_are_given_back),
        cmocka_unit_test(a_card_that_fails_for_good_is_named_and_communicators_are_given_back),
        cmocka_unit_test(what_fails_between_two_reductions_fails_the_step),
        cmocka_unit_test(who_does_not_come_is_named_when_the_time_is_over),
        cmocka_unit_test(a_call_that_does_not_come_back_is_named_and_given_up),
        cmocka_unit_test(cards_of_two_tasks_reduce_to_what_the_host_does),
        cmocka_unit_test(what_goes_wrong_in_one_task_is_named_in_both),
        cmocka_unit_test(who_does_not_come_is_named_in_both_tasks),
        cmocka_unit_test(what_is_under_way_when_a_call_hangs_is_ended),
        cmocka_unit_test(other_versions_are_told_before_anything_is_reduced),
        cmocka_unit_test(what_nccl_cannot_do_is_refused_in_one_line),
    };
    setenv("CARD_COUNT", "3", 1);
    if (count > 1 && strcmp(arguments[1], "every") == 0)
        stride = 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
