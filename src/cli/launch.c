/* launch.c - `tower launch`: starts a command several times on this machine, as the tasks of one run. Each two get a pair
 * of sockets that nobody else can reach (src/comm/local.c).
 * Never here:  what tasks say to each other. */
#define _GNU_SOURCE
#include "command.h"
#include "clock.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_TASKS = 64, GRACE = 1 }; /* seconds that the others have beyond the deadline, when one has failed */

typedef struct settings {
    int64_t tasks, deadline;
    texts words;
    int share_cores;
} settings;

typedef struct tasks {
    const settings *s;
    int sockets[MOST_TASKS][MOST_TASKS]; /* of i to k */
    pid_t processes[MOST_TASKS];         /* 0: it has ended */
    int code;                            /* of the first that failed */
    int running;
} tasks;

static bool make_sockets(tasks *t)
{
    for (int i = 0; i < t->s->tasks; i++)
        for (int k = 0; k < i; k++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
                return complain("launch", "cannot make sockets for %" PRId64 " tasks: %s", t->s->tasks, strerror(errno));
            t->sockets[i][k] = pair[0];
            t->sockets[k][i] = pair[1];
        }
    return true;
}

/* Each task has its part of the cores, if there are enough of them. */
static void share_cores(int task, int64_t count)
{
    cpu_set_t all, own;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < count)
        return;
    for (int core = 0, number = 0, cores = CPU_COUNT(&all); core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &all) && number++ * count / cores == task)
            CPU_SET(core, &own);
    sched_setaffinity(0, sizeof own, &own);
}

/* In the child: becomes the task. */
static void become(const tasks *t, int task)
{
    char text[MOST_TASKS * 12], number[32];
    setpgid(0, 0); /* what the terminal sends comes by way of the launcher */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    size_t used = 0;
    for (int i = 0; i < t->s->tasks; i++) {
        used += (size_t)(i == task ? snprintf(text + used, sizeof text - used, "-")
                                   : snprintf(text + used, sizeof text - used, "%d", t->sockets[task][i]));
        text[used++] = ',';
        if (i != task)
            fcntl(t->sockets[task][i], F_SETFD, 0);
    }
    text[used - 1] = 0;
    setenv("TOWER_TASK_SOCKETS", text, 1);
    snprintf(number, sizeof number, "%d", task);
    setenv("TOWER_TASK", number, 1);
    snprintf(number, sizeof number, "%" PRId64, t->s->deadline);
    setenv("TOWER_DEADLINE", number, 1);
    if (t->s->share_cores)
        share_cores(task, t->s->tasks);
    char **words = calloc((size_t)t->s->words.count + 1, sizeof *words); /* ends with NULL */
    if (words) {
        memcpy(words, t->s->words.items, sizeof *words * (size_t)t->s->words.count);
        execvp(words[0], words);
    }
    complain("launch", "cannot start '%s': %s", t->s->words.items[0], strerror(errno));
    _exit(EXIT_USAGE);
}

static bool start(tasks *t)
{
    for (int i = 0; i < t->s->tasks; i++) {
        pid_t process = fork();
        if (process == 0)
            become(t, i);
        if (process < 0)
            return complain("launch", "cannot start task %d: %s", i, strerror(errno));
        t->processes[i] = process;
        t->running++;
    }
    return true;
}

static void signal_all(const tasks *t, int number)
{
    for (int i = 0; i < t->s->tasks; i++)
        if (t->processes[i])
            kill(t->processes[i], number);
}

static void note_end(tasks *t, pid_t process, int status)
{
    int task = 0;
    while (task < t->s->tasks && t->processes[task] != process)
        task++;
    if (task == t->s->tasks)
        return;
    t->processes[task] = 0;
    t->running--;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_AGAIN;
    if (WIFSIGNALED(status))
        complain("launch", "task %d (process %d) was killed by signal %d (%s)", task, (int)process, WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    if (t->code == EXIT_DONE)
        t->code = code;
}

/* Until all have ended. When one has failed the others end by themselves; who does not is killed. */
static void wait_for_all(tasks *t)
{
    double failed_at = 0;
    bool told = false;
    while (t->running) {
        int status;
        pid_t process = waitpid(-1, &status, WNOHANG);
        if (process > 0) {
            note_end(t, process, status);
            continue;
        }
        if (signals_stop() && !told) { /* task 0 decides when all stop */
            if (t->processes[0])
                kill(t->processes[0], signals_stop());
            told = true;
        }
        if (t->code != EXIT_DONE && failed_at == 0)
            failed_at = seconds_now();
        if (failed_at > 0 && seconds_now() - failed_at > (double)t->s->deadline + GRACE) {
            complain("launch", "%d tasks are still there %" PRId64 " s after one has ended; they are killed", t->running,
                     t->s->deadline + GRACE);
            signal_all(t, SIGKILL);
            failed_at = seconds_now();
        }
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
}

static int run(const void *given)
{
    const settings *s = given;
    tasks t = {.s = s};
    signals_watch();
    bool good = make_sockets(&t) && start(&t);
    for (int i = 0; i < s->tasks; i++)
        for (int k = 0; k < s->tasks; k++)
            if (i != k && t.sockets[i][k] > 0)
                close(t.sockets[i][k]);
    if (!good)
        signal_all(&t, SIGKILL);
    wait_for_all(&t);
    return good ? t.code : EXIT_FAILED;
}

static const option options[] = {
    {NULL, "COMMAND", OPTION_TEXTS, offsetof(settings, words), "what each task is, with its words; put -- before it"},
    {"tasks", "N", OPTION_NUMBER, offsetof(settings, tasks), "so many tasks", .initial = "2", .least = 1,
     .most = MOST_TASKS, .also = "n|np"},
    {"deadline", "SECONDS", OPTION_NUMBER, offsetof(settings, deadline),
     "a task that is not heard of for so long counts as lost: all others then end, and say which it was", .initial = "30",
     .least = 1, .most = 1000000},
    {"share-cores", "HOW", OPTION_CHOICE, offsetof(settings, share_cores), "whether each task gets its part of the cores",
     .initial = "on", .choices = "off|on"},
    {0},
};

const command launch_command = {
    .name = "launch",
    .summary = "start a training as several processes",
    .description =
        "Starts a command several times on this machine, as the tasks 0 to N-1 of one run. `tower train` then trains over "
        "the devices of all tasks, which are called /job:worker/task:1/device:CPU:0 and so on: every task builds and plans "
        "the same, runs what is on its own devices, and sends the others what they need of it. The numbers are those of "
        "one process with as many towers. Task 0 prints, and writes the train directory.\n\n"
        "If a task ends too early, or is not heard of for --deadline seconds, all others end with exit code 75 and say "
        "which it was; `tower train --resume` goes on from the newest checkpoint, with any number of tasks. INT and "
        "TERM go to task 0, which finishes the step, saves, and lets all others end.",
    .examples = "tower launch --tasks 2 -- tower train cifar10 --train-dir train --max-steps 1000\n"
                "tower launch --tasks 4 --deadline 10 -- tower train mnist --cpu-threads 1 --towers 8\n"
                "tower launch --tasks 3 -- tower train cifar10 --train-dir train --resume",
    .exit_codes = "that of the first task that failed; 75 if it was killed",
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
