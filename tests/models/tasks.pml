/* tasks.pml - the protocol between tasks (src/comm/exchange.c) over both kinds of carriers (local.c, mpi/mpi.c), for
 * spin, which tries every order in which its threads can take their steps, with a task that dies, hangs, or hangs for a
 * while at any of them. tests/models/run says for how many tasks; so does a test that each defect named DEFECT_... here
 * is found when it is put in.
 *
 * What is shown: all tasks come to their end. If nothing was done to any of them, all end well and nobody fails, not
 * even at his end; messages come in their order, and nobody ends well without those that were for him. If something was
 * done to one, whoever fails says that it was this one, and not another that has ended because of it.
 *
 * Each task sends a message to each other one and then receives theirs, MESSAGES times. With PUMPED they are carried as
 * over MPI, where messages move only while somebody asks, so that who is done waits for the others; else as over
 * sockets. Time is left out: a task may be taken for lost when nothing of it is under way and it does not beat, because
 * it is struck, or stays where it does not (is_silent()). So a deadline is taken for long enough: longer than a message
 * takes, and than a task needs between two of its steps. Half messages, who waits for too long (TWI_PATIENCE), and how
 * far who sends may be ahead are left out too.
 *
 * Each heading names the functions that the part mirrors. */
#ifndef TASKS
#define TASKS 2
#endif
#ifndef MESSAGES
#define MESSAGES 2
#endif
#ifndef ROOM
#define ROOM 2 /* messages that a line takes whose receiver does not look */
#endif
#ifndef DEEDS
#define DEEDS 0 /* what may be done to a task: 1: it dies, 2: it hangs, 4: it hangs for a while */
#endif
#define NOBODY 255
#define OTHERS (TASKS - 1)

mtype = {DATA, BEAT, LEAVE, ABORT, END}; /* END: the carrier says that the process is there no more */

typedef lines {
    chan from[TASKS] = [ROOM + 3] of {mtype, byte}
};
typedef numbers {
    byte from[TASKS]
};
typedef flags {
    bool to[TASKS]
};

lines line[TASKS];     /* of who receives */
numbers sent[TASKS];   /* by whom, to whom */
numbers came[TASKS];   /* to whom, of whom: taken in */
numbers taken[TASKS];  /* and out */
flags left[TASKS], told[TASKS];
bool failed[TASKS], closing[TASKS], over[TASKS], beats[TASKS], closed[TASKS], well[TASKS];
byte leaves[TASKS];    /* to whom it says that it is done, when nobody beats any more */
byte culprit[TASKS];   /* whom the first failure names */

/* what is done to one of them */
byte struck = NOBODY;
bool dead[TASKS], hung[TASKS];

#define has_room(to) (len(line[to].from[me]) < ROOM)
#define is_there(task) (!dead[task] && !hung[task] && !closed[task])

/* ---- beating and silence: beat_once(), find_silent() ---- */

#ifdef DEFECT_NO_BEATS_TO_THE_DONE /* a task that was done, and waited for the others, heard nothing of them */
#define beats_to(task, other) (beats[task] && !left[task].to[other])
#else
#define beats_to(task, other) (beats[task])
#endif

/* It has no room for that, and nobody makes some. */
#define is_stuck(task)                                                                                                 \
    (leaves[task] != NOBODY && !is_there(leaves[task] % TASKS) && len(line[leaves[task] % TASKS].from[task]) >= ROOM)

#define is_silent(task)                                                                                                \
    ((task) < TASKS && (task) != me && !left[me].to[(task) % TASKS] && len(line[me].from[(task) % TASKS]) == 0 &&      \
     (!is_there((task) % TASKS) ||                                                                                     \
      (!beats_to((task) % TASKS, me) && (beats[(task) % TASKS] || is_stuck((task) % TASKS)))))
#define somebody_is_silent (is_silent(0) || is_silent(1) || is_silent(2))
#define the_silent (is_silent(0) -> 0 : (is_silent(1) -> 1 : 2))

/* ---- failing: fail_with() ---- */

inline fail(whom)
{
    atomic {
        if
        :: !failed[me] -> culprit[me] = whom; failed[me] = true
        :: else
        fi
    }
}

/* ---- a carrier's part: what has come is taken in. hand_in(), append(), heed(), lost() ---- */

/* At his end: over sockets whoever is done may go. */
#ifdef PUMPED
#define waits_for_nobody false
#else
#define waits_for_nobody true
#endif

inline take_in(i)
{
    line[me].from[i] ? kind, value;
    if
    :: kind == DATA ->
        assert(value == came[me].from[i]);
        came[me].from[i]++
    :: kind == BEAT
    :: kind == LEAVE -> left[me].to[i] = true
    :: kind == ABORT -> fail(value)
    :: kind == END ->
        if
        :: left[me].to[i] || (closing[me] && waits_for_nobody)
        :: else -> fail(i)
        fi
    fi;
    kind = DATA;
    value = 0
}

/* Over sockets threads read until the line is closed; over MPI whoever waits, and the beating thread. */
proctype taker(byte me)
{
    mtype kind;
    byte value;
    do
    :: atomic { !dead[me] && !hung[me] && !closed[me] && len(line[me].from[0]) > 0 -> take_in(0) }
    :: atomic { !dead[me] && !hung[me] && !closed[me] && len(line[me].from[1]) > 0 -> take_in(1) }
#if TASKS > 2
    :: atomic { !dead[me] && !hung[me] && !closed[me] && len(line[me].from[2]) > 0 -> take_in(2) }
#endif
    :: dead[me] || closed[me] -> break
    od
}

/* ---- telling of a failure: tell_all() ----
 *
 * It has a second for that. Who is there has room in it; who is not is left out. */

inline tell_all()
{
    other = 0;
    do
    :: other < TASKS ->
        if
        :: other == me || told[me].to[other]
        :: else ->
            atomic {
                !hung[me] && (has_room(other) || !is_there(other));
                if
                :: has_room(other) -> line[other].from[me] ! ABORT, culprit[me]; told[me].to[other] = true
                :: else
                fi
            }
        fi;
        other++
    :: else -> other = 0; break
    od;
    over[me] = true
}

proctype beat(byte me)
{
    byte other;
    {
        !hung[me] && (closing[me] || failed[me]);
        if
        :: failed[me] -> tell_all()
        :: else
        fi;
        beats[me] = false
    } unless { dead[me] }
}

/* ---- sending and receiving: send_message(), take_out() ---- */

inline send_to_all()
{
    other = 0;
    do
    :: other < TASKS && !failed[me] ->
        if
        :: other == me
        :: other != me && !left[me].to[other] ->
            atomic {
                !hung[me] && (has_room(other) || failed[me] || somebody_is_silent);
                if
                :: failed[me]
                :: !failed[me] && has_room(other) ->
                    line[other].from[me] ! DATA, sent[me].from[other];
                    sent[me].from[other]++
                :: !failed[me] && !has_room(other) -> fail(the_silent)
                fi
            }
        :: other != me && left[me].to[other] -> assert(false) /* nobody leaves before he has what is for him */
        fi;
        other++
    :: else -> other = 0; break
    od
}

inline receive_of_all()
{
    other = 0;
    do
    :: other < TASKS && !failed[me] ->
        if
        :: other == me
        :: else ->
            atomic {
                !hung[me] && (came[me].from[other] > taken[me].from[other] || left[me].to[other] || failed[me] ||
                              somebody_is_silent);
                if
                :: failed[me]
                :: !failed[me] && came[me].from[other] > taken[me].from[other] -> taken[me].from[other]++
                :: !failed[me] && came[me].from[other] == taken[me].from[other] && left[me].to[other] -> fail(other)
                :: !failed[me] && came[me].from[other] == taken[me].from[other] && !left[me].to[other] ->
                    fail(the_silent)
                fi
            }
        fi;
        other++
    :: else -> other = 0; break
    od
}

/* ---- the end: leave(), close_exchange() ---- */

#define has_left(task) ((task) >= TASKS || (task) == me || left[me].to[(task) % TASKS])
#define all_have_left (has_left(0) && has_left(1) && has_left(2))

/* MPI takes thousands of messages for who does not look; sockets do not, and who is done there needs no word. */
#ifdef PUMPED
#define has_room_to_leave(task) true
#else
#define has_room_to_leave(task) has_room(task)
#endif
#ifdef DEFECT_WAITS_FOR_THE_DONE /* for room to tell one that was done, and hung */
#define needs_no_word(task) closed[task]
#else
#define needs_no_word(task) (closed[task] || left[me].to[task])
#endif

inline leave()
{
    other = 0;
    do
    :: other < TASKS && !failed[me] ->
        if
        :: other == me
        :: else ->
            leaves[me] = other;
            atomic {
                !hung[me] && (has_room_to_leave(other) || failed[me] || needs_no_word(other) || somebody_is_silent);
                if
                :: failed[me]
                :: !failed[me] && has_room_to_leave(other) -> line[other].from[me] ! LEAVE, 0
                :: !failed[me] && !has_room_to_leave(other) && needs_no_word(other)
                :: !failed[me] && !has_room_to_leave(other) && !needs_no_word(other) -> fail(the_silent)
                fi;
                leaves[me] = NOBODY
            }
        fi;
        other++
    :: else -> other = 0; break
    od;
#ifdef PUMPED
    atomic {
        !hung[me] && (all_have_left || failed[me] || somebody_is_silent);
        if
        :: !failed[me] && !all_have_left -> fail(the_silent)
        :: else
        fi
    }
#endif
}

/* Of a process that is there no more the others are told behind what it has sent. */
inline end_lines()
{
    atomic {
        !hung[me];
        i = 0;
        do
        :: i < TASKS ->
            if
            :: i != me -> line[i].from[me] ! END, 0
            :: else
            fi;
            i++
        :: else -> i = 0; break
        od
    }
}

proctype task(byte me)
{
    byte other, i, round;
    {
        do
        :: round < MESSAGES && !failed[me] -> send_to_all(); receive_of_all(); round++
        :: else -> break
        od;
        well[me] = !failed[me];
        closing[me] = true;
        !beats[me] && !hung[me];
        if
        :: !failed[me] -> leave()
        :: else
        fi;
#ifndef DEFECT_FAILS_IN_SILENCE /* what failed at the end was told to nobody */
        if
        :: failed[me] && !over[me] -> tell_all()
        :: else
        fi;
#endif
        end_lines();
        closed[me] = true
    } unless { dead[me] -> end_lines() }
}

/* ---- what is done to them ---- */

#define has_ended(task) ((task) >= TASKS || (task) == struck || closed[(task) % TASKS])
#define all_others_have_ended (has_ended(0) && has_ended(1) && has_ended(2))

/* Those that still beat may, until there is no more room. */
inline fill_lines()
{
    i = 0;
    do
    :: i < TASKS ->
        do
        :: i != struck && beats[i] && len(line[struck].from[i]) < ROOM -> line[struck].from[i] ! BEAT, 0
        :: true -> break
        od;
        i++
    :: else -> i = 0; break
    od
}

proctype fate()
{
    byte i;
    if
    :: true /* nothing */
#if DEEDS
    :: true ->
        if
        :: struck = OTHERS
#if TASKS > 2 /* two are alike */
        :: struck = 0
#endif
        fi;
        if
#if DEEDS & 1
        :: atomic { !closed[struck] -> dead[struck] = true }
#endif
#if DEEDS & 2
        :: atomic { !closed[struck] -> hung[struck] = true; fill_lines() };
            atomic { all_others_have_ended -> dead[struck] = true; hung[struck] = false } /* by who has started them */
#endif
#if DEEDS & 4
        :: atomic { !closed[struck] -> hung[struck] = true; fill_lines() };
            hung[struck] = false
#endif
        :: closed[struck] -> struck = NOBODY
        fi
#endif
    fi
}

/* When all have come to their end. */
proctype judge()
{
    byte i, k;
    atomic {
        i = 0;
        do
        :: i < TASKS -> closed[i] || dead[i]; i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < TASKS ->
            assert(struck != NOBODY || (well[i] && !failed[i]));
            assert(i == struck || !failed[i] || culprit[i] == struck);
            k = 0;
            do
            :: k < TASKS ->
                assert(i == k || !well[i] || dead[i] || taken[i].from[k] == MESSAGES);
                k++
            :: else -> break
            od;
            i++
        :: else -> break
        od
    }
}

init {
    byte i;
    atomic {
        do
        :: i < TASKS ->
            culprit[i] = NOBODY;
            leaves[i] = NOBODY;
            beats[i] = true;
            run task(i);
            run beat(i);
            run taker(i);
            i++
        :: else -> break
        od;
        run fate();
        run judge()
    }
}
