/* dispatcher.pml - the protocol by which dispatchers run a plan (src/run/dispatcher.c), for spin, which tries every order
 * in which its threads can take their steps. tests/models/run says for how many devices and rounds; so does a test that
 * each defect named DEFECT_... here is found when it is put in.
 *
 * What is shown: nobody reads what another device made in another round than his own, or while it is written; all threads
 * come to their end, whoever fails and whenever the session is cancelled; a run that ends well has done all its rounds,
 * and one in which nothing failed and that was not cancelled ends well, whatever became of those before it.
 *
 * A loop is one step: its rounds are walked within it, or by dispatchers of its own, to which this applies again. Loops that
 * run side by side are one step, too: they begin behind all that any of them waits for (run_beside()).
 * A step that is skipped, since its branch is not taken, waits and reports like one that is done (twi_run_step() decides), so
 * it is one here.
 *
 * Lists have two steps. The devices but the last are a group that records together, the first of them leads; the last one
 * stands for a CPU that reads what the last of them has made. The first run goes step by step, later ones replay, where the
 * segment is step 1 of the leader and, of each other, step 1 or the whole list. Each heading names the
 * functions of dispatcher.c that the part mirrors. Waiting is a guard here: how a waiter sleeps and is woken (wait_above())
 * is left out. */
#ifndef DEVICES
#define DEVICES 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef FAILURES
#define FAILURES 1 /* of steps, in all runs together */
#endif
#define RUNS 2
#define STEPS 2
#define GROUP (DEVICES > 1 -> DEVICES - 1 : 1)
#define READER (DEVICES - 1)
#define EVER 255 /* INT64_MAX */
#define NOBODY 255

mtype = {OK, FAILED, CANCELLED};

/* struct twi_dispatchers and its counters */
byte progress[DEVICES], begun[DEVICES], ended;
byte round[DEVICES];
byte number, walking, first_failure = NOBODY;
bool ending, cancelled;
bool error[DEVICES]; /* twi_list.error */

/* the plan: whether it has been recorded, whether lists of others than the leader are segments as a whole */
bool recorded, whole;

/* what is looked at: the round, from 1, of which a device's result is; who reads; what has happened in this run */
byte made[DEVICES];
bool writing[DEVICES], reading, has_failed;
byte failures = FAILURES;

/* ---- counters: raise_to() ---- */

#ifdef DEFECT_PLAIN_STORE
inline raise_to(counter, value)
{
    if
    :: counter < (value) -> counter = (value)
    :: else
    fi
}
#else
inline raise_to(counter, value)
{
    atomic {
        if
        :: counter < (value) -> counter = (value)
        :: else
        fi
    }
}
#endif

/* ---- failure and cancelling: end_early(), note_failure(), twi_dispatchers_cancel() ----
 *
 * What C does while it holds the lock is atomic here: all of it is done under that lock but the counters, and who is let
 * go by one of them looks at `ending`, which is set before. */

inline end_early(failure)
{
    if
    :: ending
    :: else ->
        ending = true;
        first_failure = failure;
        i = 0;
        do
        :: i < DEVICES -> raise_to(progress[i], EVER); i++
        :: else -> i = 0; break
        od
    fi
}

inline note_failure(list)
{
    atomic {
        error[list] = true;
        has_failed = true;
        end_early(list)
    }
}

/* ---- steps: run_alone(), replay() ---- */

#define first_of(device) ((device) > 0 && whole -> 0 : 1)
#define is_replayed(device, position) (recorded && (device) < GROUP && (position) == first_of(device))

/* Counters only rise while a run lasts, so to wait for one after the other is to wait for all. */
#define has_done(device, position) ((device) >= DEVICES || progress[(device) % DEVICES] > round[me] * STEPS + (position))

/* Of a segment, its leader waits until the others are where it begins (gather_waits() in src/plan), and they until it has
 * reported for them. Else step 1 of each comes after step 0 of the one before, the reader's after step 1. */
#define segment_may_begin (me > 0 -> has_done(me, STEPS - 1) : (GROUP < 2 || first_of(1) == 0 || has_done(1, 0)))
#define step_may_begin                                                                                                 \
    (position == 0 || me == 0 || has_done(me - 1, (me == READER -> 1 : 0)))
/* Steps that another or a segment waits for (mark_awaited() in src/plan): others do not report, but for a list's last. */
#ifdef DEFECT_UNMARKED /* what only a segment waits for did not report */
#define is_awaited(device, position) ((position) == STEPS - 1 || (device) + 1 < READER)
#else
#define is_awaited(device, position) ((position) == STEPS - 1 || (device) + 1 < READER || ((device) == 1 && GROUP > 1))
#endif
#define may_begin (is_replayed(me, position) -> segment_may_begin : step_may_begin)

#define follows (is_replayed(me, position) && me > 0)
#define reads (me == READER && DEVICES > 1 && position == 1)
#define makes(device)                                                                                                  \
    ((device) == me && position == 1 && !reads && !follows || (is_replayed(me, position) && me == 0 && (device) < GROUP))

inline may_fail()
{
    if
    :: true
    :: failures > 0 -> failures--; failed = true
    fi
}

/* What is made is written from here to end_work(); what is read is read. */
inline begin_work()
{
    may_fail();
    i = 0;
    do
    :: i < DEVICES && !failed ->
        assert(!makes(i) || i != READER - 1 || !reading);
        assert(!reads || i != READER - 1 || (!writing[i] && made[i] == round[me] + 1));
        writing[i] = writing[i] || makes(i);
        i++
    :: else -> break
    od;
    reading = reading || (reads && !failed);
    i = 0
}

inline end_work()
{
    i = 0;
    do
    :: i < DEVICES && !failed ->
        if
        :: makes(i) -> made[i] = round[me] + 1; writing[i] = false
        :: else
        fi;
        i++
    :: else -> break
    od;
    reading = reading && !reads;
    i = 0
}

/* Of all parts of a segment, by who leads it. */
inline report_all()
{
    if
    :: is_replayed(me, position) && me == 0 && !failed ->
        i = 0;
        do
        :: i < GROUP -> raise_to(progress[i], (round[me] + 1) * STEPS); i++
        :: else -> i = 0; break
        od
    :: else
    fi
}

/* ---- lists: walker_of(), walk_list(), wait_for_round(), finish_list(), run_list() ---- */

#ifdef DEFECT_LET_ANOTHER /* the follower's thread took part, and said at once that all was done */
#define walker_of(list) (list)
#define is_let (recorded && whole && me > 0 && me < GROUP)
#else
#define walker_of(list) (recorded && whole && (list) > 0 && (list) < GROUP -> 0 : (list))
#define is_let false
#endif

inline walk_list()
{
    do
    :: atomic { !stop && position < STEPS && may_begin -> skipped = ending };
        if
        :: skipped
        :: else ->
#ifdef DEFECT_EARLY_REPORT
            report_all();
#endif
            atomic { begin_work() };
            atomic { end_work() };
#ifndef DEFECT_EARLY_REPORT
            report_all()
#else
            skip
#endif
        fi;
        if
        :: failed -> failed = false; note_failure(me)
        :: !failed
        fi;
        atomic {
            stop = ending;
            position = (is_replayed(me, position) -> STEPS : position + 1);
            skipped = false
        };
        if
        :: !stop && is_awaited(me, position - 1) -> raise_to(progress[me], round[me] * STEPS + position)
        :: else
        fi
    :: atomic { stop || position == STEPS -> position = 0; break }
    od
}

#ifdef DEFECT_NO_MEETING
#define all_have_met true
#else
#define all_have_met (has_done(0, STEPS - 1) && has_done(1, STEPS - 1) && has_done(2, STEPS - 1))
#endif

/* Of a device with a queue: an error may come to light late, of the walked list or of one that was replayed with it. */
inline finish_lists()
{
    do
    :: position < DEVICES ->
        atomic {
            if
            :: walker_of(position) == me && !error[position] -> may_fail()
            :: else
            fi
        };
        if
        :: failed -> failed = false; note_failure(position)
        :: else
        fi;
        position++
    :: else -> position = 0; break
    od
}

inline run_list()
{
    stop = false;
    if
    :: is_let ->
        raise_to(progress[me], EVER);
        atomic { progress[0] > ROUNDS * STEPS - 1 -> round[me] = ROUNDS }
    :: else
    fi;
    do
    :: round[me] < ROUNDS && !stop ->
        walk_list();
        atomic {
            stop || round[me] + 1 == ROUNDS || all_have_met -> round[me] = round[me] + (stop -> 0 : 1)
        }
    :: else -> break
    od;
    finish_lists();
#ifdef DEFECT_LET_ANOTHER
    raise_to(progress[me], EVER);
#endif
    atomic {
        stop = false;
        walking--;
        if
        :: walking == 0 && ended < number -> ended = number
        :: else
        fi
    }
}

/* ---- threads: dispatch() ---- */

#define LOCALS byte i, position; bool stop, skipped, failed

proctype dispatcher(byte me)
{
    LOCALS;
    byte seen = 0;
    do
    :: begun[me] > seen ->
        seen = begun[me];
        if
        :: seen == EVER -> break
        :: else
        fi;
        run_list()
    od
}

/* ---- a run, by the thread of who calls: begin(), walk(), end(), run(), here run_once() ---- */

inline begin()
{
    atomic {
        begins = !cancelled;
#ifdef DEFECT_LEFTOVERS /* a run that was cancelled before it began was judged by what the last one had left */
        i = 0;
        do
        :: i < DEVICES -> progress[i] = 0; round[i] = 0; error[i] = false; i++
        :: else -> i = 0; break
        od;
#endif
        if
        :: begins ->
            number++;
            has_failed = false;
            reading = false;
            walking = 0;
            i = 0;
            do
            :: i < DEVICES ->
                progress[i] = 0;
                round[i] = 0;
                error[i] = false;
                made[i] = 0;
                writing[i] = false;
                walking = walking + (walker_of(i) == i -> 1 : 0);
                i++
            :: else -> i = 0; break
            od;
            first_failure = NOBODY;
            ending = false
        :: else
        fi
    }
}

inline walk()
{
    position = 0;
    do
    :: position < DEVICES ->
        if
        :: position != own && walker_of(position) == position -> raise_to(begun[position], number)
        :: else
        fi;
        position++
    :: else -> position = 0; break
    od;
    if
    :: own == 0 -> run_list()
    :: else
    fi;
    ended >= number
}

inline end()
{
    atomic {
        done = ROUNDS;
        i = 0;
        do
        :: i < DEVICES ->
            if
            :: walker_of(i) == i && round[i] < done -> done = round[i]
            :: else
            fi;
            i++
        :: else -> i = 0; break
        od;
        status = (!ending -> OK : (first_failure == NOBODY -> CANCELLED : (error[first_failure] -> FAILED : OK)))
    }
}

inline run_once()
{
    done = 0;
    begin();
    if
    :: begins -> walk(); end()
#ifdef DEFECT_LEFTOVERS
    :: !begins -> end()
#else
    :: !begins -> status = CANCELLED
#endif
    fi
}

proctype caller()
{
    byte me = 0, own, done, runs;
    bool begins;
    mtype status = OK;
    LOCALS;
    do
    :: runs < RUNS && status != CANCELLED ->
        recorded = runs > 0;
        if
        :: own = 0
#ifndef CALLER_WALKS
        :: own = NOBODY /* bound to cores, or called inside of a parallel region */
#endif
        fi;
        run_once();
        runs++;
        assert(status != OK || done == ROUNDS);
        assert(status != OK || !has_failed);
        assert(status != FAILED || has_failed);
        assert(status != CANCELLED || cancelled)
    :: else -> break
    od;
    i = 0;
    do
    :: i < DEVICES -> raise_to(begun[i], EVER); i++
    :: else -> break
    od
}

proctype canceller()
{
    byte i;
    if
    :: true /* never */
#ifndef NO_CANCEL
    :: atomic { true -> cancelled = true; end_early(NOBODY) }
#endif
    fi
}

init {
    byte i;
    atomic {
        if
        :: whole = true
        :: whole = false
        fi;
        do
        :: i < DEVICES -> run dispatcher(i); i++
        :: else -> break
        od;
        run caller();
        run canceller()
    }
}
