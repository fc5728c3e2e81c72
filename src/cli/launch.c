/* launch.c - `tower launch`: starts a command several times on this machine, as the tasks of one run, and again when a
 * task was lost. Each two tasks get a pair of sockets that nobody else can reach (src/comm/local.c). A command that
 * starts tasks itself (mpirun) is started once.
 * Never here:  what tasks say to each other. */
#define _GNU_SOURCE
#include "command.h"
#include "clock.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_TASKS = 64, TASKS = 2 };
enum { GRACE = 1 }; /* seconds that the others have beyond the deadline, when one has failed */
enum { REST = 2 };  /* seconds before a restart: mpirun ends before what it has killed */

typedef struct settings {
    int64_t tasks, deadline, max_restarts;
    texts words;
    int share_cores;
    bool elastic;
} settings;

typedef struct tasks {
    const settings *s;
    char **words;                        /* of the command, ended by NULL */
    int count;                           /* of tasks */
    bool start_theirs;                   /* the command starts tasks itself; it is the only one here */
    bool resume;                         /* they are started again */
    int sockets[MOST_TASKS][MOST_TASKS]; /* of i to k */
    pid_t processes[MOST_TASKS];         /* 0: it has ended */
    struct pollfd ends[MOST_TASKS];      /* of a process; fd -1: it has ended, or the kernel does not tell */
    int code;                            /* of the first that failed, of its own accord if one did */
    int stop;                            /* the signal that all are asked to stop by; 0: none */
    int running;
    pid_t launcher;
    struct rlimit files;                 /* as it was given to the launcher */
} tasks;

/* Sockets of 33 tasks are more than the 1,024 descriptors that a process may usually have without asking. */
static void allow_sockets(tasks *t)
{
    enum { OTHERS = 32 };
    rlim_t wanted = (rlim_t)t->count * (rlim_t)t->count + OTHERS;
    getrlimit(RLIMIT_NOFILE, &t->files);
    rlim_t most = t->files.rlim_max < wanted ? t->files.rlim_max : wanted;
    if (t->files.rlim_cur < most)
        setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, t->files.rlim_max}); /* or making them says why not */
}

static bool make_sockets(tasks *t)
{
    for (int i = 0; i < t->count; i++)
        for (int k = 0; k < i; k++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
                return complain("launch", "cannot make sockets for %d tasks: %s", t->count, strerror(errno));
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
    signals_end_with(t->launcher);
    size_t used = 0;
    for (int i = 0; i < t->count; i++) {
        used += (size_t)(i == task ? snprintf(text + used, sizeof text - used, "-")
                                   : snprintf(text + used, sizeof text - used, "%d", t->sockets[task][i]));
        text[used++] = ',';
        if (i != task)
            fcntl(t->sockets[task][i], F_SETFD, 0);
    }
    text[used - 1] = 0;
    if (!t->start_theirs) {
        setenv("TOWER_TASK_SOCKETS", text, 1);
        snprintf(number, sizeof number, "%d", task);
        setenv("TOWER_TASK", number, 1);
    }
    snprintf(number, sizeof number, "%" PRId64, t->s->deadline);
    setenv("TOWER_DEADLINE", number, 1);
    if (t->s->share_cores && !t->start_theirs)
        share_cores(task, t->count);
    if (t->resume)
        setenv(RESUME_VARIABLE, "1", 1);
    setrlimit(RLIMIT_NOFILE, &t->files);
    signals_hand_on();
    execvp(t->words[0], t->words);
    complain("launch", "cannot start '%s': %s", t->words[0], strerror(errno));
    _exit(EXIT_USAGE);
}

static bool start(tasks *t)
{
    for (int i = 0; i < t->count; i++)
        t->ends[i].fd = -1;
    for (int i = 0; i < t->count; i++) {
        pid_t process = fork();
        if (process == 0)
            become(t, i);
        if (process < 0)
            return complain("launch", "cannot start task %d: %s", i, strerror(errno));
        setpgid(process, process); /* as it does itself: who is asked first, its group is there */
        t->processes[i] = process;
        t->ends[i] = (struct pollfd){(int)syscall(SYS_pidfd_open, process, 0), POLLIN, 0};
        t->running++;
    }
    return true;
}

/* Their numbers; NULL: the kernel does not tell. */
static FILE *open_children(pid_t process)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/task/%d/children", (int)process, (int)process);
    return fopen(name, "r");
}

/* What the process has started, and is not in that group, as what is behind timeout(1). */
static void ask_those_apart(pid_t process, pid_t group, int number)
{
    FILE *file = open_children(process);
    for (int child; file && fscanf(file, "%d", &child) == 1;) {
        ask_those_apart(child, group, number);
        if (getpgid(child) != group)
            kill(child, number);
    }
    if (file)
        fclose(file);
}

/* As mpirun and srun do all tasks are asked, for who is asked before it listens ends alone. One that is a script may
 * have the program as its child, mostly in its group; mpirun hands on by itself. */
static void ask_to_stop(const tasks *t, int number)
{
    for (int i = 0; i < t->count; i++)
        if (t->processes[i]) {
            if (!t->start_theirs)
                ask_those_apart(t->processes[i], t->processes[i], number);
            kill(t->start_theirs ? t->processes[i] : -t->processes[i], number);
        }
}

/* What the kernel says of it in the line that the format is for, which has one place; false: it is not there. */
static bool ask_kernel(pid_t process, const char *format, void *value)
{
    char name[64], line[256];
    bool found = false;
    snprintf(name, sizeof name, "/proc/%d/status", (int)process);
    FILE *file = fopen(name, "r");
    while (file && !found && fgets(line, sizeof line, file))
        found = sscanf(line, format, value) == 1;
    if (file)
        fclose(file);
    return found;
}

static bool catches(pid_t process, int number)
{
    unsigned long long caught;
    return ask_kernel(process, "SigCgt: %llx", &caught) && (caught >> (number - 1) & 1);
}

/* By a signal; who is looked at by a debugger is not. */
static bool is_stopped(pid_t process)
{
    char state;
    return ask_kernel(process, "State: %c", &state) && state == 'T';
}

/* 0: it has none. */
static pid_t first_child(pid_t process)
{
    int child = 0;
    FILE *file = open_children(process);
    if (file && fscanf(file, "%d", &child) != 1)
        child = 0;
    if (file)
        fclose(file);
    return child;
}

/* USR1 ends who does not expect it, as a script's shell: it goes to the first who does, of task 0 and
 * its children. */
static void ask_to_save(const tasks *t)
{
    pid_t process = t->processes[0];
    while (process && !catches(process, SIGUSR1))
        process = first_child(process);
    if (process)
        kill(process, SIGUSR1);
}

/* All tasks, and what was left behind by those that have ended: that is this process's own then, see run_tasks(). */
static void kill_all(const tasks *t)
{
    for (int i = 0; i < t->count; i++)
        if (t->processes[i])
            kill(t->processes[i], SIGKILL);
    FILE *file = open_children(getpid());
    for (int process; file && fscanf(file, "%d", &process) == 1;)
        kill(process, SIGKILL);
    if (file)
        fclose(file);
}

/* When another has failed, who is stopped would not hear of it. */
static void kill_stopped(const tasks *t)
{
    for (int i = 0; i < t->count; i++)
        for (pid_t process = t->processes[i]; process; process = first_child(process))
            if (is_stopped(process))
                kill(process, SIGKILL);
}

/* Until one ends, or for so long; without the kernel's word of it just that. */
static void rest(tasks *t)
{
    enum { LOOK = 100, BLIND = 10 }; /* milliseconds: a look costs the tasks some 25 us of a core */
    bool told = true;
    for (int i = 0; i < t->count; i++)
        told = told && (t->ends[i].fd >= 0 || !t->processes[i]);
    poll(t->ends, (nfds_t)t->count, told ? LOOK : BLIND);
}

/* Who is asked to stop before it listens, or is a script's shell, does not hand that on. */
static void note_signal(tasks *t, int task, pid_t process, int number)
{
    bool asked = number == SIGINT || number == SIGTERM || number == SIGHUP;
    if (number == t->stop)
        return; /* before it had anything to finish */
    complain("launch", "task %d (process %d) was %s by signal %d (%s)%s", task, (int)process,
             asked ? "ended" : "killed", number, strsignal(number), asked && !t->stop ? ": all are asked to stop" : "");
    if (asked && !t->stop)
        t->stop = number;
}

static void note_end(tasks *t, pid_t process, int status)
{
    int task = 0;
    while (task < t->count && t->processes[task] != process)
        task++;
    if (task == t->count)
        return;
    t->processes[task] = 0;
    if (t->ends[task].fd >= 0)
        close(t->ends[task].fd);
    t->ends[task].fd = -1;
    t->running--;
    bool asked = t->stop;
    if (WIFSIGNALED(status))
        note_signal(t, task, process, WTERMSIG(status));
    bool stopped = WIFSIGNALED(status) && WTERMSIG(status) == t->stop;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : stopped ? 128 + t->stop : EXIT_AGAIN;
    bool is_reason = (stopped && !asked) || (t->code == EXIT_AGAIN && code != EXIT_DONE);
    if (t->code == EXIT_DONE || is_reason) /* which end was seen first is chance */
        t->code = code;
}

static void say_killed(const tasks *t)
{
    if (t->running)
        complain("launch", "%d task%s still there %" PRId64 " s after one has ended, and killed now", t->running,
                 t->running == 1 ? " is" : "s are", t->s->deadline + GRACE);
    else
        complain("launch", "what a task has started is still there %" PRId64 " s after one has ended, and killed now",
                 t->s->deadline + GRACE);
}

/* Until all have ended. When one has failed the others end by themselves, and what they have started; who does not is
 * killed. */
static void wait_for_all(tasks *t)
{
    double failed_at = 0;
    bool told = false, killed = false;
    for (;;) {
        int status;
        t->stop = t->stop ? t->stop : signals_stop();
        pid_t process = waitpid(-1, &status, WNOHANG);
        if (process > 0) {
            note_end(t, process, status);
            continue;
        }
        if (!t->running && (t->code == EXIT_DONE || process < 0))
            return;
        if (t->stop && !told) { /* where they train task 0 decides behind which step */
            ask_to_stop(t, t->stop);
            told = true;
        }
        if (signals_take_save())
            ask_to_save(t);
        if (t->code != EXIT_DONE && failed_at == 0)
            failed_at = seconds_now();
        if (failed_at > 0)
            kill_stopped(t);
        if (failed_at > 0 && seconds_now() - failed_at > (double)t->s->deadline + GRACE) {
            if (!killed)
                say_killed(t);
            killed = true;
            kill_all(t);
        }
        rest(t);
    }
}

/* Starts the tasks, and waits for them: the exit code. */
static int run_tasks(tasks *t)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a script has started is not left behind unseen when the script ends */
    bool good = make_sockets(t) && start(t);
    for (int i = 0; i < t->count; i++)
        for (int k = 0; k < t->count; k++)
            if (i != k && t->sockets[i][k] > 0)
                close(t->sockets[i][k]);
    if (!good)
        kill_all(t);
    wait_for_all(t);
    return good ? t->code : EXIT_FAILED;
}

/* ---- starting again ---------------------------------------------------------------------------------------------- */

static bool starts_tasks(const char *word)
{
    const char *name = strrchr(word, '/') ? strrchr(word, '/') + 1 : word;
    return strncmp(name, "mpirun", 6) == 0 || strncmp(name, "mpiexec", 7) == 0 || strcmp(name, "srun") == 0;
}

/* The number in "-n 4", "-n4" or "--ntasks=4", if the words begin so; NULL: they do not. */
static const char *number_behind(const char *name, char **words)
{
    size_t length = strlen(name);
    const char *rest = words[0] + length;
    if (strncmp(words[0], name, length) != 0)
        return NULL;
    if (!*rest)
        rest = words[1];
    else if (*rest == '=')
        rest++;
    return rest && atoi(rest) > 0 ? rest : NULL;
}

/* The word with the number of tasks that mpirun or srun starts, which begins at *number; NULL: there is none. */
static char **find_number(char **words, const char **number)
{
    static const char *const names[] = {"-n", "-np", "--np", "--n", "--ntasks"};
    for (char **word = words + 1; word[0]; word++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if ((*number = number_behind(names[i], word)))
                return *number == word[1] ? word + 1 : word;
    return NULL;
}

enum { NUMBER = 64 }; /* characters of such a word */

/* One task less, where there are more than one. `text` is for the word that says so. */
static int shrink(tasks *t, char text[NUMBER])
{
    const char *number;
    char **word = t->start_theirs ? find_number(t->words, &number) : NULL;
    int count = word ? atoi(number) : t->count;
    count -= count > 1;
    if (word) {
        char before[NUMBER];
        snprintf(before, sizeof before, "%.*s", (int)(number - *word), *word);
        snprintf(text, NUMBER, "%.40s%d", before, count);
        *word = text;
    } else {
        t->count = count;
    }
    return count;
}

/* Whether a task was lost, rather than that the work is done, cannot be done, or was asked to stop. Not only here: who
 * speaks to srun's tasks does not speak to this process. */
static bool may_go_on(int code)
{
    bool asked = signals_stop() || code == 128 + SIGTERM || code == 128 + SIGINT || code == 128 + SIGHUP;
    return code != EXIT_DONE && code != EXIT_FAILED && code != EXIT_USAGE && !asked;
}

static int run_again_and_again(tasks *t, int words)
{
    char number[NUMBER];
    int code = run_tasks(t);
    for (int64_t restart = 1; restart <= t->s->max_restarts && may_go_on(code); restart++) {
        if (t->start_theirs)
            t->words[words] = "--resume"; /* what is in the environment may stay on this machine */
        sleep(REST);
        if (signals_stop())
            return 128 + signals_stop();
        if (t->s->elastic)
            complain("launch", "restart %" PRId64 " of %" PRId64 " after exit code %d, with %d tasks", restart,
                     t->s->max_restarts, code, shrink(t, number));
        else
            complain("launch", "restart %" PRId64 " of %" PRId64 " after exit code %d", restart, t->s->max_restarts,
                     code);
        *t = (tasks){.s = t->s, .words = t->words, .count = t->count, .start_theirs = t->start_theirs,
                     .files = t->files, .launcher = t->launcher, .resume = true};
        code = run_tasks(t);
    }
    return code;
}

static int run(const void *given)
{
    const settings *s = given;
    tasks t = {.s = s, .launcher = getpid(), .start_theirs = starts_tasks(s->words.items[0])};
    const char *number;
    int count = s->words.count, code = EXIT_USAGE;
    t.count = t.start_theirs ? 1 : s->tasks == NOT_GIVEN ? TASKS : (int)s->tasks;
    t.words = calloc((size_t)count + 2, sizeof *t.words); /* and --resume */
    allow_sockets(&t);
    signals_watch(NULL);
    if (!t.words)
        return complain("launch", "out of memory") ? EXIT_DONE : EXIT_FAILED;
    memcpy(t.words, s->words.items, sizeof *t.words * (size_t)count);
    if (t.start_theirs && s->tasks != NOT_GIVEN)
        complain("launch", "--tasks: %s starts the tasks; tell it how many", t.words[0]);
    else if (s->elastic && t.start_theirs && !find_number(t.words, &number))
        complain("launch", "--elastic: expected -n and a number among the words of %s", t.words[0]);
    else
        code = run_again_and_again(&t, count);
    free(t.words);
    return code;
}

static const option options[] = {
    {NULL, "COMMAND", OPTION_TEXTS, offsetof(settings, words), "what each task is, with its words; put -- before it",
     .may_be_empty = true},
    {"tasks", "N", OPTION_NUMBER, offsetof(settings, tasks), "so many tasks (default: 2)", .least = 1,
     .most = MOST_TASKS, .also = "n|np"},
    {"deadline", "SECONDS", OPTION_NUMBER, offsetof(settings, deadline),
     "a task that is not heard of for so long counts as lost: all others then end, and say which it was", .initial = "30",
     .least = 1, .most = 1000000},
    {"share-cores", "HOW", OPTION_CHOICE, offsetof(settings, share_cores), "whether each task gets its part of the cores",
     .initial = "on", .choices = "off|on"},
    {"max-restarts", "N", OPTION_NUMBER, offsetof(settings, max_restarts),
     "start again so often, to be resumed, when a task was lost", .initial = "0", .least = 0, .most = 1000000},
    {"elastic", NULL, OPTION_FLAG, offsetof(settings, elastic), "each time with one task less"},
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
        "TERM go to all tasks, and to what a task that is a script has started; they finish the step, save, and end.\n\n"
        "--max-restarts starts all again when a task was lost, with " RESUME_VARIABLE " in the environment, which "
        "`tower train` takes for --resume, also within a script; --elastic does so with one task less each time. A "
        "command that starts tasks itself, mpirun or srun, is started once, and again with --resume behind its words; "
        "its -n is what --elastic counts down. Who failed for a reason of his own (exit code 1 or 2), or was asked to "
        "stop (129, 130 or 143), is not started again. USR1 goes to task 0, which saves.",
    .examples = "tower launch --tasks 2 -- tower train cifar10 --train-dir train --max-steps 1000\n"
                "tower launch --tasks 4 --deadline 10 -- tower train mnist --cpu-threads 1 --towers 8\n"
                "tower launch --max-restarts 3 --elastic -- mpirun -n 4 tower train cifar10 --train-dir train",
    .exit_codes = "a failed task's own, or 75 if one was lost",
    .options = options,
    .settings_bytes = sizeof(settings),
    .run = run,
};
