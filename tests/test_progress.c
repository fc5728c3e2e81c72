/* How far a training is, as a person sees it in a terminal: the panel, its limits, and that it leaves the terminal as
 * it was. The terminal is played: a pseudo-terminal, and a screen that understands what the program sends. */
#include "program.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

enum { ROWS = 50, COLUMNS = 200 };

/* What is on the screen. Of what terminals understand: line feeds, carriage returns, cursor up, erasing; colours pass.
 */
typedef struct screen {
    char cells[ROWS][COLUMNS + 1]; /* a character that is not ASCII stands as '*' */
    int row, column, columns, rows;
    int widest; /* column that anything was written to, from 1 */
    bool moved_up, hid_cursor;
} screen;

typedef struct terminal {
    int master;
    char name[64]; /* of the program's side, a file */
    pid_t pid;
    struct termios before;
    screen s;
    char all[1 << 20]; /* as it came */
    size_t size, seen;
} terminal;

static terminal t;

static void clear_from(screen *s, int row, int column)
{
    memset(&s->cells[row][column], ' ', (size_t)(COLUMNS - column));
    for (int r = row + 1; r < ROWS; r++)
        memset(s->cells[r], ' ', COLUMNS);
}

static void feed_line(screen *s)
{
    if (++s->row < s->rows)
        return;
    memmove(s->cells[0], s->cells[1], sizeof s->cells[0] * (ROWS - 1));
    memset(s->cells[ROWS - 1], ' ', COLUMNS);
    s->row = s->rows - 1;
}

/* An escape sequence; returns its length, 0 if it has not all come yet. */
static size_t obey(screen *s, const char *text, size_t size)
{
    size_t i = 2;
    if (size < 3)
        return 0;
    assert_int_equal(text[1], '[');
    int number = (int)strtol(text + 2, NULL, 10);
    while (i < size && ((text[i] >= '0' && text[i] <= '9') || text[i] == ';' || text[i] == '?'))
        i++;
    if (i == size)
        return 0;
    if (text[i] == 'A') {
        s->row -= number;
        s->moved_up = true;
        assert_true(s->row >= 0);
    } else if (text[i] == 'J') {
        clear_from(s, s->row, s->column);
    } else if (text[i] == 'K') {
        memset(&s->cells[s->row][s->column], ' ', (size_t)(COLUMNS - s->column));
    } else if (text[i] == 'l' && text[2] == '?') {
        s->hid_cursor = true;
    } else {
        assert_int_equal(text[i], 'm');
    }
    return i + 1;
}

static void put(screen *s, char c)
{
    if (s->column == s->columns) { /* wraps */
        s->column = 0;
        feed_line(s);
    }
    s->cells[s->row][s->column++] = c;
    s->widest = s->column > s->widest ? s->column : s->widest;
}

static void show(terminal *x)
{
    while (x->seen < x->size) {
        unsigned char c = (unsigned char)x->all[x->seen];
        size_t used = 1;
        if (c == 033)
            used = obey(&x->s, x->all + x->seen, x->size - x->seen);
        else if (c == '\n')
            feed_line(&x->s);
        else if (c == '\r')
            x->s.column = 0;
        else if ((c & 0xC0) != 0x80) /* further bytes of a character take no room */
            put(&x->s, c < 0x80 ? (char)c : '*');
        if (!used)
            return;
        x->seen += used;
    }
}

static void open_terminal(int columns, int rows, const char *format, ...) TW_PRINTF(3, 4);
static void open_terminal(int columns, int rows, const char *format, ...)
{
    char line[2048], command[4096];
    struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    snprintf(command, sizeof command, "cd '%s' && T='%s' && %s", directory, PROGRAM, line);
    memset(&t, 0, sizeof t);
    t.s.columns = columns;
    t.s.rows = rows;
    clear_from(&t.s, 0, 0);
    t.pid = forkpty(&t.master, t.name, NULL, &size);
    assert_true(t.pid >= 0);
    if (t.pid == 0) {
        signal(SIGINT, SIG_DFL); /* whoever started the tests may have it ignored */
        setenv("TERM", "xterm", 1); /* and not what those who run the tests have */
        unsetenv("NO_COLOR");
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(tcgetattr(t.master, &t.before), 0);
}

static void assert_modes(tcflag_t local)
{
    struct termios now;
    assert_int_equal(tcgetattr(t.master, &now), 0);
    assert_int_equal(now.c_lflag, local);
    assert_int_equal(now.c_iflag, t.before.c_iflag);
    assert_int_equal(now.c_oflag, t.before.c_oflag);
}

/* What the program has written since; false: it has ended. Waits for it, for as long as it takes. */
static bool read_more(void)
{
    ssize_t got = read(t.master, t.all + t.size, sizeof t.all - t.size - 1);
    if (got <= 0)
        return false;
    t.size += (size_t)got;
    t.all[t.size] = 0;
    show(&t);
    return true;
}

static bool screen_has(const char *text)
{
    for (int r = 0; r < ROWS; r++)
        if (strstr(t.s.cells[r], text))
            return true;
    return false;
}

static int screen_count(const char *text)
{
    int count = 0;
    for (int r = 0; r < ROWS; r++)
        count += strstr(t.s.cells[r], text) != NULL;
    return count;
}

static void print_screen(void)
{
    for (int r = 0; r < t.s.rows; r++)
        printf("%.*s|\n", t.s.columns, t.s.cells[r]);
}

static void wait_for_text(const char *text)
{
    while (!screen_has(text) && read_more())
        ;
    if (!screen_has(text)) {
        print_screen();
        fail_msg("'%s' does not come", text);
    }
}

/* A frame ends with the erasing of what stood below it. Where the count-th from a place in t.all ends. */
static size_t end_of_frame(size_t from, int count)
{
    for (;;) {
        const char *end = t.all + from;
        int left = count;
        while (left > 0 && (end = strstr(end, "\033[J")) != NULL) {
            end += strlen("\033[J");
            left--;
        }
        if (left == 0)
            return (size_t)(end - t.all);
        assert_true(read_more());
    }
}

/* Stops the program, between two frames, and lets somebody else write to its terminal, as a shell does: when that has
 * come, so has all that was written before. Returns where in t.all the words stand. */
static size_t stop_and_say(const char *words)
{
    int terminal = open(t.name, O_WRONLY | O_NOCTTY), ended;
    assert_true(terminal >= 0);
    for (;;) {
        size_t from = t.size;
        kill(t.pid, SIGSTOP);
        assert_int_equal(waitpid(t.pid, &ended, WUNTRACED), t.pid);
        assert_true(WIFSTOPPED(ended));
        assert_int_equal(dprintf(terminal, "%s\n", words), strlen(words) + 1);
        const char *at;
        while (!(at = strstr(t.all + from, words)))
            assert_true(read_more());
        wait_for_text(words);
        if (strncmp(at - strlen("\033[J"), "\033[J", strlen("\033[J")) == 0) {
            close(terminal);
            return (size_t)(at - t.all);
        }
        kill(t.pid, SIGCONT); /* it was in the midst of a frame */
        end_of_frame(t.size, 2);
    }
}

/* Reads to the end. The terminal must be as it was. */
static void close_terminal(int expected)
{
    int ended;
    while (read_more())
        ;
    waitpid(t.pid, &ended, 0);
    assert_modes(t.before.c_lflag);
    close(t.master);
    int code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
    if (code != expected) {
        print_screen();
        fail_msg("exit code %d instead of %d", code, expected);
    }
    assert_false(t.s.hid_cursor);
    assert_int_equal(t.s.column, 0); /* the shell's prompt begins a line */
}

#define TRAIN " train mnist --data-set synthetic --batch-size 2 --log-every 1 "
#define RUN "$T" TRAIN
#define LAST_LINE "  memory " /* above the panel; from then on there are frames only */
/* The program with a clock on which each look at it is so many seconds later than the one before. */
#define BY_LOOKS(seconds)                                                                                              \
    "env LD_PRELOAD='" PLAY_CLOCK "' PLAY_CLOCK=" seconds " ASAN_OPTIONS=\"$ASAN_OPTIONS:verify_asan_link_order=0\" $T"

static void a_terminal_shows_a_panel_that_is_drawn_in_place(void **state)
{
    (void)state;
    open_terminal(80, 40, "LC_ALL=C " BY_LOOKS("0.1") TRAIN "--virtual-gpus 2 --max-steps 40 --train-dir p1");
    wait_for_text(" time ");
    close_terminal(0);
    assert_true(t.s.moved_up);
    assert_int_equal(screen_count(" of 40 "), 1);
    assert_true(screen_has(" step      40 of 40 #"));
    assert_true(screen_has("100.0 %"));
    assert_true(screen_has(" GPU:0     "));
    assert_true(screen_has(" GPU:1     "));
    assert_true(screen_has("waiting"));
    assert_true(screen_has(" loss      "));
    assert_true(screen_has(" rate      0.001"));
    assert_true(screen_has("done"));
    assert_false(screen_has(": step ")); /* no lines */
    assert_true(screen_has("40 steps in "));
    assert_true(screen_has("saved as p1/model.ckpt-40"));
    assert_true(screen_has("tower eval p1"));
    assert_true(screen_has("tower report p1"));
    assert_true(t.s.widest <= 80);
}

static void devices_for_which_there_is_no_room_are_counted(void **state)
{
    (void)state;
    open_terminal(80, 12, "LC_ALL=C " BY_LOOKS("0.1") TRAIN "--virtual-gpus 8 --max-steps 12 --train-dir many");
    wait_for_text("more devices");
    assert_true(screen_has("and 5 more devices"));
    close_terminal(0);
}

static void characters_are_drawn_where_the_locale_has_them(void **state)
{
    (void)state;
    open_terminal(120, 40, "LC_ALL=C.UTF-8 " RUN "--max-steps 20 --train-dir p2");
    close_terminal(0);
    assert_true(screen_has(" step      20 of 20 ****"));
    assert_non_null(strstr(t.all, "\u2588"));
    open_terminal(120, 40, "LC_ALL=C " RUN "--max-steps 20 --train-dir p2c");
    close_terminal(0);
    assert_null(strstr(t.all, "\u2588"));
}

/* Each of these gets a line for each step, and nothing is ever rewritten. */
static void where_nothing_may_move_lines_of_at_most_80_columns_come(void **state)
{
    (void)state;
    static const struct {
        const char *before, *behind;
        int columns;
    } cases[] = {{"TERM=dumb", "", 100}, {"NO_COLOR=1", "", 100}, {"", "--progress lines", 100}, {"", "", 50}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_terminal(cases[i].columns, 40, "%s " RUN "--max-steps 3 --train-dir lines%zu %s", cases[i].before, i,
                      cases[i].behind);
        close_terminal(0);
        assert_non_null(strstr(t.all, ": step 2, loss = "));
        assert_null(strstr(t.all, "\033["));
    }
    assert_runs(0, RUN "--max-steps 3 --train-dir pipe | cat");
    assert_prints(": step 2, loss = ");
    assert_prints_not("\033[");
    assert_runs(0, BY_LOOKS("0") TRAIN
                "--max-steps 3 --train-dir pipe2 --virtual-gpus 3 --towers 3 --sync off | awk 'length > 80 && !/^  /'");
    assert_string_equal(output, "");
    assert_runs(0, RUN "--max-steps 3 --train-dir none --progress none");
    assert_prints_not(": step ");
    assert_prints("3 steps in ");
}

static void ctrl_c_saves_and_leaves_the_terminal_as_it_was(void **state)
{
    (void)state;
    open_terminal(80, 40, RUN "--max-steps 1000000 --train-dir c1");
    wait_for_text(LAST_LINE);
    end_of_frame(t.size, 2);
    assert_modes(t.before.c_lflag | NOFLSH);
    assert_int_equal(write(t.master, "\003", 1), 1);
    wait_for_text("stopped by signal 2");
    wait_for_text("tower train --resume --train-dir c1");
    close_terminal(130);
    assert_int_equal(screen_count(" of 1,000,000 "), 1);
}

/* Presses Ctrl-C when as much is unread as the kernel keeps for who reads a terminal (N_TTY_BUF_SIZE, less one), which
 * ends in the midst of a frame: what is written beyond that the key would throw away. */
static void press_ctrl_c_far_behind(int ahead)
{
    enum { KEPT = 4095 };
    static const char nothing[] = "\033[m";
    int terminal = open(t.name, O_WRONLY | O_NOCTTY), unread = 0;
    assert_true(terminal >= 0);
    for (int size = 0; size < KEPT - ahead; size += (int)strlen(nothing))
        assert_int_equal(write(terminal, nothing, strlen(nothing)), strlen(nothing));
    close(terminal);
    while (unread < KEPT) {
        assert_int_equal(ioctl(t.master, FIONREAD, &unread), 0);
        usleep(5000);
    }
    assert_int_equal(write(t.master, "\003", 1), 1);
}

/* The program is one that Ctrl-C does not end, so it can be pressed again and again. */
static void ctrl_c_loses_no_part_of_a_frame_where_the_terminal_is_behind(void **state)
{
    (void)state;
    open_terminal(80, 40, "trap '' INT; exec env LC_ALL=C " RUN "--cpu-threads 1 --max-steps 1000000 --train-dir b2");
    wait_for_text(LAST_LINE);
    end_of_frame(t.size, 2);
    for (int ahead = 20; ahead < 500; ahead += 120) {
        size_t from = t.size;
        press_ctrl_c_far_behind(ahead);
        const char *echo;
        while (!(echo = strstr(t.all + from, "^C")))
            assert_true(read_more());
        end_of_frame((size_t)(echo - t.all), 2);
        assert_int_equal(screen_count(" of 1,000,000 "), 1);
        assert_int_equal(screen_count(LAST_LINE), 1);
    }
    kill(t.pid, SIGTERM);
    close_terminal(128 + SIGTERM);
    assert_int_equal(screen_count(" of 1,000,000 "), 1);
    assert_true(t.s.widest <= 80);
}

static void after_a_stop_it_is_drawn_anew_below_what_the_shell_wrote(void **state)
{
    (void)state;
    open_terminal(80, 40, "exec " RUN "--max-steps 1000000 --train-dir s1");
    wait_for_text(LAST_LINE);
    size_t said = stop_and_say("shell says hello");
    int row = t.s.row - 1, shown = screen_count(" of 1,000,000 ");
    kill(t.pid, SIGCONT);
    end_of_frame(said, 2);
    assert_true(strncmp(t.s.cells[row], "shell says hello ", strlen("shell says hello ")) == 0);
    assert_int_equal(screen_count(" of 1,000,000 "), shown + 1); /* the one before the stop is history */
    kill(t.pid, SIGTERM);
    close_terminal(128 + SIGTERM);
}

/* Columns that the widest line takes of what came from there on; what stands between two sequences is text. */
static int widest_from(size_t from)
{
    int width = 0, widest = 0;
    for (size_t i = from; i < t.size; i++) {
        if (t.all[i] == 033)
            while (i < t.size && !strchr("mKJA", t.all[i]))
                i++;
        else
            width = t.all[i] == '\n' || t.all[i] == '\r' ? 0 : width + 1;
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* Resizes the terminal, and returns where in t.all the frames for the new size begin: one that was drawn meanwhile
 * may be of the old one. */
static size_t resize(int columns)
{
    struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = 40};
    size_t said = stop_and_say("resized");
    assert_int_equal(ioctl(t.master, TIOCSWINSZ, &size), 0);
    kill(t.pid, SIGCONT);
    return end_of_frame(said, 1);
}

static void a_narrower_terminal_gets_a_narrower_panel(void **state)
{
    (void)state;
    open_terminal(120, 40, "exec env LC_ALL=C " RUN "--max-steps 1000000 --train-dir n1");
    wait_for_text(LAST_LINE);
    size_t wide = end_of_frame(t.size, 1);
    end_of_frame(wide, 1);
    assert_in_range(widest_from(wide), 71, 120);
    size_t narrower = resize(70);
    end_of_frame(narrower, 3);
    assert_in_range(widest_from(narrower), 50, 70);
    size_t narrow = resize(30); /* too narrow for a panel: a line */
    end_of_frame(narrow, 3);
    assert_in_range(widest_from(narrow), 5, 30);
    assert_int_equal(write(t.master, "\003", 1), 1);
    close_terminal(130);
}

static void a_terminal_without_a_size_gets_lines(void **state)
{
    (void)state;
    open_terminal(80, 24, "stty cols 0 rows 0 && " RUN "--max-steps 4 --train-dir z1");
    close_terminal(0);
    assert_null(memchr(t.all, '\033', t.size));
}

static void warnings_stand_above_the_panel_and_are_not_lost(void **state)
{
    (void)state;
    open_terminal(100, 40,
                  RUN "--max-steps 20 --train-dir w1; rm -f w1/model*; " RUN "--max-steps 20 --train-dir w1 --resume");
    close_terminal(0);
    assert_true(screen_has("there is no checkpoint in 'w1'; training begins at step 0"));
}

#define EVALUATE " eval mnist --data-set synthetic --train-dir b1 --batch-size 16"

/* A handler's frame on a thread that computes may lie in the heap (src/cli/signals.h). */
static void handlers_run_on_one_thread(void **state)
{
    (void)state;
    static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    char command[128];
    open_terminal(80, 40, "exec " RUN "--max-steps 1000000 --train-dir h1 --cpu-threads 2");
    wait_for_text(LAST_LINE);
    snprintf(command, sizeof command, "sed -n 's/^SigBlk://p' /proc/%d/task/*/status", (int)t.pid);
    FILE *threads = popen(command, "r");
    assert_non_null(threads);
    int all = 0, open_to[sizeof handled / sizeof *handled] = {0};
    for (unsigned long long blocked; fscanf(threads, "%llx", &blocked) == 1; all++) {
        assert_true(blocked >> (SIGCONT - 1) & 1);
        for (size_t i = 0; i < sizeof handled / sizeof *handled; i++)
            open_to[i] += !(blocked >> (handled[i] - 1) & 1);
    }
    pclose(threads);
    assert_in_range(all, 4, 100); /* the one that trains, its team, the panel's, the input's, that of handlers */
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++)
        assert_int_equal(open_to[i], 1);
    kill(t.pid, SIGTERM);
    close_terminal(128 + SIGTERM);
}

/* timeout(1) sends its signal twice. No second passes here between the two. */
static void signals_of_one_second_are_one(void **state)
{
    (void)state;
    assert_runs(0, BY_LOOKS("0") TRAIN "--max-steps 1000000 --train-dir twice >lines & job=$!; "
                "seen 'step 1,' lines && kill -HUP $job && kill -TERM $job; wait $job; grep '^saved as twice/' lines");
}

/* A page that is a pipe, and full already, holds the program up until somebody reads from it. */
#define HELD "rm -f page && mkfifo page && exec 3<>page && head -c 60000 /dev/zero >&3; "
static void what_takes_long_is_said_after_two_seconds(void **state)
{
    (void)state;
    assert_runs(0, RUN "--max-steps 1 --train-dir b1");
    assert_runs(0, HELD BY_LOOKS("1") " report b1 --output page 2>&1 | while read -r line; do echo \"$line\"; "
                "case $line in *'so far') cat page >/dev/null 3>&- 2>&1 & ;; esac; done");
    assert_prints("reading event logs, ");
    assert_prints("open it in a browser");
    assert_runs(0, HELD "{ sleep 0.5; exec cat page >/dev/null 3>&- 2>&1; } & " BY_LOOKS("0")
                " report b1 --output page");
    assert_prints_not("so far");
    assert_runs(0, BY_LOOKS("1") EVALUATE);
    assert_prints("evaluating: ");
    assert_runs(0, BY_LOOKS("0") EVALUATE);
    assert_prints_not("evaluating: ");
}

/* A pipe that can be opened to read has a writer: the program has begun. */
static void a_wish_to_save_ends_no_command(void **state)
{
    (void)state;
    assert_runs(0, RUN "--max-steps 1 --train-dir u1 && mkfifo u1.html");
    assert_runs(0, "{ exec " PROGRAM " report u1 --output u1.html; } & exec 3< u1.html; "
                   "kill -USR1 $!; cat <&3 >/dev/null; wait $!");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_shows_a_panel_that_is_drawn_in_place),
        cmocka_unit_test(devices_for_which_there_is_no_room_are_counted),
        cmocka_unit_test(characters_are_drawn_where_the_locale_has_them),
        cmocka_unit_test(where_nothing_may_move_lines_of_at_most_80_columns_come),
        cmocka_unit_test(ctrl_c_saves_and_leaves_the_terminal_as_it_was),
        cmocka_unit_test(ctrl_c_loses_no_part_of_a_frame_where_the_terminal_is_behind),
        cmocka_unit_test(after_a_stop_it_is_drawn_anew_below_what_the_shell_wrote),
        cmocka_unit_test(a_narrower_terminal_gets_a_narrower_panel),
        cmocka_unit_test(a_terminal_without_a_size_gets_lines),
        cmocka_unit_test(signals_of_one_second_are_one),
        cmocka_unit_test(handlers_run_on_one_thread),
        cmocka_unit_test(warnings_stand_above_the_panel_and_are_not_lost),
        cmocka_unit_test(what_takes_long_is_said_after_two_seconds),
        cmocka_unit_test(a_wish_to_save_ends_no_command),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
