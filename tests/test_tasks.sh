#!/bin/bash
# Several processes train as one does: the same bits on any number of them, whoever dies or hangs is named and nothing is
# lost, and who plans something else is told so. Arguments: the program `tower`; "some": only what tasks do that nobody
# looks at, and two that are lost.
set -u
# shellcheck source=tests/tasks.sh
. "$(dirname "$0")/tasks.sh"
tower=$(realpath "$1") some=${2-} here=$(realpath "$(dirname "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
work=$(pwd -P)
export OMP_WAIT_POLICY=passive TOWER_NO_CUDA=1

fail() {
    echo "FAILED: $*" >&2
    tail -n 20 ./*.log >&2
    exit 1
}

options=(train mnist --data-set synthetic --cpu-threads 1 --batch-size 4 --towers 4 --log-every 0)

# The deadline ends what hangs, and no machine is so slow that it comes near.
launch() { # OPTION... -- COMMAND...
    "$tower" launch --deadline 120 "$@"
}

# train TASKS DIRECTORY STEPS [OPTION...]
train() {
    local tasks=$1 directory=$2 steps=$3
    shift 3
    launch --tasks "$tasks" -- "$tower" "${options[@]}" --train-dir "$directory" \
        --max-steps "$steps" "$@" > "$directory.log" 2>&1
}

same() {
    cmp "$1/model.ckpt-$3.data-00000-of-00001" "$2/model.ckpt-$3.data-00000-of-00001" ||
        fail "$1 and $2 differ at step $3"
}

# The same bits on any number of tasks, and resumed on another.
"$tower" "${options[@]}" --cpu-devices 4 --train-dir alone --max-steps 4 > alone.log 2>&1 || fail "one process"
train 2 two 4 || fail "two tasks"
train 4 four 2 || fail "four tasks"
train 3 four 4 --resume || fail "three tasks that go on"
same alone two 4
same alone four 4
[ "$(grep -c '^tower 0.1' two.log)" -le 1 ] || fail "more than one task printed"
grep -q '/job:worker/replica:0/task:1/device:CPU:0' two.log || fail "the header does not name the second task's device"

# Groups that meet now and then, on a number of tasks that changes between two meetings.
groups=(--variable-update local --groups 2 --meet-every 3)
"$tower" "${options[@]}" "${groups[@]}" --train-dir groups --max-steps 5 > groups.log 2>&1 || fail "groups in one process"
train 4 groups4 2 "${groups[@]}" || fail "groups in four tasks"
train 2 groups4 5 --resume || fail "groups in two tasks that go on"
same groups groups4 5

# Replicas on virtual GPUs.
gpus=(train mnist --data-set synthetic --batch-size 4 --log-every 0 --max-steps 3 --variable-update replicated)
"$tower" "${gpus[@]}" --virtual-gpus 4 --train-dir gpus > gpus.log 2>&1 || fail "replicas in one process"
launch --tasks 2 -- "$tower" "${gpus[@]}" --virtual-gpus 2 --train-dir gpus2 > gpus2.log 2>&1 ||
    fail "replicas in two"
same gpus gpus2 3

# A task that is killed, or stopped: the others end with 75 and name it, and the run goes on from there. Towers that
# update by themselves wait in other places. Most of the time is spent waiting for the deadline, so all do it at once.
strike() { # KILL|STOP SYNC
    local how=$1-$2 launcher task deadline=120
    [ "$1" = KILL ] || deadline=5
    # shellcheck disable=SC2016 # the tasks' shells expand it
    "$tower" launch --tasks 3 --deadline $deadline -- bash -c 'echo $$ > "$0-$TOWER_TASK"; exec "$@"' "$how" "$tower" \
        "${options[@]}" --train-dir "$how" --sync "$2" --max-steps 1000000 --save-every 2 > "$how.log" 2>&1 &
    launcher=$!
    until [ -e "$how/checkpoint" ] || ! kill -0 "$launcher" 2> /dev/null; do sleep 0.05; done
    kill -s "$1" "$(cat "$how-2")"
    wait "$launcher"
    [ $? -eq 75 ] || fail "$how: the launcher did not end with 75"
    for task in 0 1 2; do
        ! is_running "$(cat "$how-$task")" || fail "$how: task $task is still there"
    done
    [ "$(grep -cE '^tower train: .*task 2 has (ended|not been heard of)' "$how.log")" -eq 1 ] ||
        fail "$how: not one of the others named the task"
}
strikes=()
for how in KILL-on STOP-off $([ "$some" ] || echo STOP-on KILL-off); do
    strike "${how%-*}" "${how#*-}" &
    strikes+=($!)
done
for number in "${strikes[@]}"; do
    wait "$number" || exit 1
done
train 2 KILL-on $(($(newest KILL-on) + 1)) --resume || fail "the run did not go on"

# So does a step that waits for what another task does not send, long before its patience is over; that one, where a
# queue stays empty, hears of it. Most of it is waiting, too.
# shellcheck disable=SC2016 # the tasks' shells expand it
"$tower" launch -n 2 --deadline 3 -- bash -c 'echo $$ > "empty-$TOWER_TASK"; exec "$@"' bash "$tower" run \
    "$here/golden/tf1_queues_empty.meta" --fetch loss > empty.log 2>&1 &
waits=$!
(
    until grep -q 'which is there but does not send it; after 60 s' empty.log || ! kill -0 "$waits" 2> /dev/null; do
        sleep 0.05
    done
    kill -s TERM "$(cat empty-1)"
) &

# Whichever task is asked to stop, all do, behind the same step, and save it.
# shellcheck disable=SC2016 # the tasks' shells expand it
"$tower" launch --tasks 2 -- bash -c 'echo $$ > "asked-$TOWER_TASK"; exec "$@"' bash "$tower" "${options[@]}" \
    --train-dir asked --max-steps 1000000 --save-every 2 > asked.log 2>&1 &
launcher=$!
until [ -e asked/checkpoint ] || ! kill -0 "$launcher" 2> /dev/null; do sleep 0.05; done
kill -s TERM "$(cat asked-1)"
wait "$launcher"
[ $? -eq 143 ] || fail "a task that was asked to stop: the launcher did not end with 143"
"$tower" "${options[@]}" --train-dir undisturbed --max-steps "$(newest asked)" > undisturbed.log 2>&1 || fail "one process"
same undisturbed asked "$(newest asked)"

# So it is before all are there: the first task is asked when the other has not even begun.
cat > early.sh << 'END'
echo $$ > "early-$TOWER_TASK"
if [ "$TOWER_TASK" = 1 ]; then
    until first=$(cat early-0) && caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$first/status") &&
        ((0x${caught:-0} >> 14 & 1)); do sleep 0.05; done
    kill -s TERM "$first"
fi
exec "$@"
END
launch -n 2 -- bash early.sh "$tower" "${options[@]}" --train-dir early --max-steps 1000000 > early.log 2>&1
[ $? -eq 143 ] || fail "a task that was asked to stop early: the launcher did not end with 143"
! grep -q 'task [01] has' early.log || fail "a task that was asked to stop early left the other alone"
grep -q '^stopped by signal 15 with 0 of' early.log && ! grep -qE 'nothing to do|tower eval' early.log ||
    fail "who was asked to stop before the first step is told something else"

# So it is of one that does not listen yet, whose end is all that the launcher sees of it.
# shellcheck disable=SC2016 # the tasks' shells expand it
launch -n 2 --max-restarts 1 -- bash -c '[ "$TOWER_TASK" = 0 ] || kill -s TERM $$; exec "$@"' bash "$tower" \
    "${options[@]}" --train-dir deaf --max-steps 1000000 > deaf.log 2>&1
[ $? -eq 143 ] || fail "a task that was asked to stop before it listened: the launcher did not end with 143"
grep -q '^tower launch: task 1 (process [0-9]*) was ended by signal 15 (Terminated): all are asked to stop$' deaf.log &&
    ! grep -q 'restart' deaf.log || fail "what has ended a task that did not listen is not told, or all is started again"

# Though another, which lost it, is seen to have ended before.
# shellcheck disable=SC2016 # the tasks' shells expand it
launch -n 2 -- bash -c '[ "$TOWER_TASK" = 1 ] || { echo $$ > gone; exit 3; }
    until [ -s gone ] && ! kill -0 "$(cat gone)" 2> /dev/null; do sleep 0.05; done
    kill -s TERM $$' > gone.log 2>&1
[ $? -eq 143 ] || fail "a task that a signal ended: the launcher did not end with 143, but as one that lost it"

# When one has failed nobody waits for another that is stopped.
# shellcheck disable=SC2016 # the tasks' shells expand it
"$tower" launch -n 2 --deadline 1000000 -- bash -c '[ "$TOWER_TASK" = 1 ] || exit 3; kill -s STOP $$' > stopped.log 2>&1
[ $? -eq 3 ] || fail "a task that fails beside one that is stopped: the launcher did not end with its code"

# What one process does for all task 0 does, and another says so, for it may have been meant otherwise.
launch -n 3 -- "$tower" export two exported.pb > exported.log 2>&1 || fail "an export by three tasks"
[ "$(grep -c '^exported.pb: a frozen graph' exported.log)" -eq 1 ] &&
    [ "$(grep -c '^tower export: task 0 alone does this, for all 3 tasks$' exported.log)" -eq 1 ] ||
    fail "not one of three tasks exports"

# What is wrong with the words of all one says, though none has joined the others by then.
launch -n 3 -- "$tower" train --nonsense > nonsense.log 2>&1
[ $? -eq 2 ] && [ "$(cat nonsense.log)" = "tower train: unknown option '--nonsense'
'tower train --help' explains" ] || fail "not one of three tasks says what is wrong with their words"

# Who has left by itself says why, and one of the others that it has.
# shellcheck disable=SC2016 # the tasks' shells expand it
launch -n 4 -- bash -c '[ "$TOWER_TASK" != 2 ] || set -- "$@" --nonsense; exec "$@"' bash "$tower" "${options[@]}" \
    --train-dir left > left.log 2>&1
[ $? -eq 2 ] && [ "$(grep -cE '^tower train: task 2 has (left|ended)' left.log)" -eq 1 ] &&
    [ "$(wc -l < left.log)" -eq 3 ] || fail "not one task says that another has left"

# Asked to stop, tasks that are scripts end too, whose shells do not hand on what they are sent; nobody is left behind. USR1
# would end a shell, and goes to who expects it.
# shellcheck disable=SC2016 # the tasks' shells expand it
"$tower" launch --tasks 2 --deadline 120 -- bash -c 'bash -c "echo \$\$ > scripted-$TOWER_TASK; exec \"\$@\"" "$@"; exit $?' \
    bash bash "$tower" "${options[@]}" --train-dir scripted --max-steps 1000000 --save-every 1000000 > scripted.log 2>&1 &
launcher=$!
until [ -e scripted-0 ] || ! kill -0 "$launcher" 2> /dev/null; do sleep 0.05; done
until [ -e scripted/checkpoint ] || ! kill -s USR1 "$launcher" 2> /dev/null; do sleep 0.5; done
[ -e scripted/checkpoint ] || fail "a wish to save ended scripts"
kill -s TERM "$launcher"
wait "$launcher"
[ $? -eq 143 ] || fail "scripts that were asked to stop: the launcher did not end with 143"
for task in 0 1; do
    ! is_running "$(cat "scripted-$task")" || fail "what the script of task $task has started is still there"
done
grep -q '^saved as scripted/' scripted.log || fail "what a script has started did not save"

# A run is one command: the next one of a script is told so.
launch -n 2 -- bash -c '"$@" --train-dir first && exec "$@" --train-dir second' bash "$tower" "${options[@]}" \
    --max-steps 1 > next.log 2>&1
[ $? -eq 2 ] && grep -q '^saved as first/' next.log || fail "the second command of a script did not fail"
grep -q 'another command of task [01] has joined the other tasks before' next.log ||
    fail "the second command of a script is not told why"

# The launcher starts again what has lost a task, with one less; the end is that of a run that nobody disturbed. It has
# no end before it has lost one, and then two steps more than are saved. The script hands nothing on that comes behind
# its words.
cat > dies_once.sh << END
steps=1000000
case "\$TOWER_RESUME" in
1) steps=\$((\$(sed -n '1s/.*model.ckpt-\([0-9]*\)".*/\1/p' again/checkpoint) + 2)) ;;
*) [ "\$TOWER_TASK" != 2 ] || (until [ -e again/checkpoint ]; do sleep 0.05; done; kill -KILL \$\$) & ;;
esac
exec "$tower" $(printf '%q ' "${options[@]}") --train-dir again --save-every 2 --max-steps \$steps
END
launch --tasks 3 --max-restarts 2 --elastic -- bash dies_once.sh > again.log 2>&1 || fail "the launcher did not start again"
step=$(newest again)
grep -q '^tower launch: restart 1 of 2 after exit code 75, with 2 tasks$' again.log || fail "the restart is not told"
"$tower" "${options[@]}" --train-dir alone --resume --max-steps "$step" > alone.log 2>&1 || fail "one process that goes on"
same alone again "$step"
if [ "$some" ]; then
    echo "some tasks agree"
    exit
fi

# Evaluation, summaries and a trace: task 0 writes what one process would have written.
watched=(--summary-every 2 --eval-every 3 --keep-best --trace)
"$tower" "${options[@]}" --train-dir watched --max-steps 3 "${watched[@]}" watched.json > watched.log 2>&1 ||
    fail "one process that is watched"
train 3 watched3 3 "${watched[@]}" watched3.json || fail "three tasks that are watched"
same watched watched3 3
same watched/best watched3/best 3
for of in watched watched3; do
    sed 's/"time":"[^"]*"//' $of/eval.jsonl > $of.scores
    grep -aoE '(train|eval)/[a-z_]+|[a-zA-Z0-9/]+/gradients|[a-zA-Z0-9/]+/activations' $of/events* > $of.tags
done
cmp watched.scores watched3.scores || fail "three tasks measured something else"
[ "$(grep -c gradients watched.tags)" -gt 10 ] || fail "there are no summaries"
cmp watched.tags watched3.tags || fail "three tasks wrote other summaries"
[ "$(grep -c '"ph":"X"' watched.json)" -eq "$(grep '"ph":"X"' watched3.json | grep -vc '"from"')" ] ||
    fail "kernels of three tasks are not all in the trace"
grep '"pid":2' watched3.json | grep -q '"from":"/job:worker/replica:0/task:0/device:CPU:0"' ||
    fail "copies between tasks are not in the trace"
train 2 watched3 5 --resume --variable-update auto || fail "two tasks that choose a mode"
grep -q '^  chosen' watched3.log || fail "what was chosen is not told"

# Modes between processes, and the job ps: a sample of the whole table.
"$here/modes/tasks" "$tower" 2 3 'horovod|[dn], job ps|by arrival' > modes.log 2>&1 ||
    fail "modes between processes"
[ "$(grep -c ' ok ' modes.log)" -eq 5 ] || fail "not all modes between processes were tried"

# Servers have the variables and no towers.
train 3 servers 2 --ps_hosts=a,b --worker-hosts c --job-name worker > /dev/null
# Both servers say so, unless the one that does so first ends the other before.
grep -qE -- '--job-name and --task-index: this is task (0 of job ps, because it was started as number 1|1 of job ps, .* 2) of 3' \
    servers.log ||
    fail "a task of another job is not told so"
train 3 servers 2 --ps_hosts=a,b || fail "two servers"
grep -qE '^  towers 0-3 +/job:worker/replica:0/task:0/device:CPU:0$|^  towers 0, 1, 2, 3 +/job:worker/replica:0/task:0/' \
    servers.log || fail "towers are on servers"
tr -s ' \n' ' ' < servers.log | grep -qE 'least-bytes: .*/job:ps/replica:0/task:0/.*/job:ps/replica:0/task:1/' ||
    fail "variables are not on both servers"
while IFS='|' read -r code tasks flags message; do
    # shellcheck disable=SC2086 # words
    train "$tasks" refused 1 $flags
    found=$?
    [ "$found" -eq "$code" ] || fail "$flags: $found instead of $code"
    [ "$(grep -cF -- "$message" refused.log)" -eq 1 ] || fail "$flags: not one task says '$message'"
done << END
2|2|--ps-hosts a,b|--ps-hosts leaves no worker: 2 tasks were started in all
2|2|--ps_hosts=a --worker_hosts=b,c|--worker-hosts and --ps-hosts name 3 tasks, and 2 were started
2|2|--ps-hosts a --variable-update replicated|--ps-hosts: with --variable-update=replicated each tower has all
2|1|--variable-update horovod --cpu-devices 2|horovod is one task for each device, and there are 2 devices for 1 task
2|1|--controller_host=a:1|--controller_host is not supported because every task plans the whole
END

# Queues are filled in the task that has them: the tutorial's input and pictures, and a graph whose data end.
tutorial=(train cifar10 --data-set synthetic --compat tutorial --cpu-threads 1 --batch-size 4 --towers 2 --max-steps 4
    --summary-every 2 --progress none)
"$tower" "${tutorial[@]}" --cpu-devices 2 --train-dir queues > queues.log 2>&1 || fail "one process with queues"
launch -n 2 -- "$tower" "${tutorial[@]}" --train-dir queues2 > queues2.log 2>&1 || fail "two tasks with queues"
same queues queues2 3
[ "$(grep -aoE 'images/image/[0-9]' queues2/events* | sort -u | wc -l)" -eq 3 ] || fail "there are no pictures"
"$tower" run "$here/golden/tf1_queues.meta" --fetch loss --target train --steps 100 --save ends1 > ends1.log 2>&1 ||
    fail "one process whose data end"
launch -n 2 -- "$tower" run "$here/golden/tf1_queues.meta" --fetch loss --target train --steps 100 \
    --save ends > saved.log 2>&1 || fail "two tasks whose data end"
grep -q '^saved as ends/model.ckpt-6$' saved.log || fail "nothing is saved where the data end"
same ends1 ends 6
grep -v '^saved as' saved.log > ends.log
grep -q '^step 6: loss = 1.087' ends.log && grep -q '^the data ended after 6 steps' ends.log || fail "other losses"
# One whose runner takes examples of one task into the queue of another: until they end, or nobody wants more.
launch -n 3 -- "$tower" run "$here/golden/tf1_queues_tasks.meta" --fetch loss --target train --steps 100 \
    > ends2.log 2>&1 || fail "a runner on two tasks"
diff ends.log ends2.log || fail "a runner on two tasks has other losses"
launch -n 2 -- "$tower" run "$here/golden/tf1_queues_tasks.meta" --fetch loss --target train --steps 2 \
    > ends3.log 2>&1 || fail "a runner on two tasks that is stopped"
launch -n 2 -- "$tower" run "$here/golden/tf1_queues_loop.meta" --fetch loss --target train --steps 100 \
    > ends4.log 2>&1 || fail "a runner with a loop whose shapes change"
grep -q '^step 7: loss = 477.5$' ends4.log && grep -q '^the data ended after 7 steps' ends4.log ||
    fail "a runner with a loop whose shapes change has other losses" # the numbers 5 to 10 and 6 to 12
launch -n 3 -- "$tower" run "$here/golden/tf1_queues_loops.meta" --fetch loss --target train \
    --steps 100 > ends5.log 2>&1 || fail "loops in loops that two runners and a step plan at once"
tail -n 2 ends5.log | diff - <(printf 'step 14: loss = [3] 2 1.43115234 0\nthe data ended after 14 steps\n') ||
    fail "loops in loops that two runners and a step plan at once have other losses"
diff <(head -n 2 ends.log) ends3.log || fail "a runner on two tasks that is stopped has other losses"
# What all refuse alike one says, where they have joined each other by then.
launch -n 2 -- "$tower" run "$here/golden/tf1_queues_tasks.meta" --ps-hosts a --fetch loss > alike.log 2>&1
[ $? -eq 1 ] || [ $? -eq 2 ] || fail "a node of a task that is not there was accepted"
[ "$(grep -c 'Cannot assign a device' alike.log)" -eq 1 ] || fail "not one task says what all refuse"
# One task says what soft placement moved.
launch -n 2 -- "$tower" run "$here/golden/tf1_towers.meta" --fetch loss --target train --steps 2 \
    > moved.log 2>&1 || fail "towers for GPUs on two tasks"
[ "$(grep -c 'soft placement moved' moved.log)" -eq 1 ] || fail "not one task says what was moved"
# Functions of data sets run in the task that has the iterator, loops in them whose shapes change, too.
launch -n 2 -- "$tower" run "$here/golden/tf1_data_sets_tasks.meta" --fetch loss --target train \
    --steps 100 > sets.log 2>&1 || fail "data sets on two tasks"
diff sets.log <(printf 'step 1: loss = 15\nstep 2: loss = 108.75\nthe data ended after 2 steps\n') ||
    fail "data sets on two tasks have other losses"

# A benchmark of all tasks is one report.
launch --tasks 3 -- "$tower" bench --model cifar10 --batch_size 1 --num_warmup_batches 1 --num_batches 2 \
    --device cpu --num_intra_threads 1 --variable_update distributed_replicated --ps_hosts a --worker_hosts b,c \
    > bench.log 2>&1 || fail "a benchmark of three tasks"
[ "$(grep -c '^total images/sec: ' bench.log)" -eq 1 ] || fail "not one task reported"
grep -qF "Devices:     ['/job:worker/task:0/cpu:0', '/job:worker/task:1/cpu:0']" bench.log || fail "devices of a benchmark"
grep -qE '^ +1 per device' bench.log && grep -q 'Batch size:  2 global' bench.log || fail "the batch of a benchmark"

# Where the time goes is seen over tasks: the slowest device computes for as long as it is delayed, at least. Every mode
# is measured.
benchmark=(bench --model mnist --batch_size 4 --num_warmup_batches 2 --num_batches 4 --device cpu --num_intra_threads 1)
launch -n 2 -- "$tower" "${benchmark[@]}" --variable_update replicated --waterfall \
    --inject tower=1,kind=compute,ms=200 > waterfall.log 2>&1 || fail "a benchmark with a delay"
awk '$1 ~ /compute|imbalance/ { ms += $2 } END { exit !(ms >= 200) }' waterfall.log ||
    fail "a delay of 200 ms is not in what the slowest device computes"
grep -q 'what the slowest device computes longer: /job:worker/task:1/cpu:0$' waterfall.log ||
    fail "the slowest device is not named"
launch -n 2 -- "$tower" "${benchmark[@]}" --all > all.log 2>&1 || fail "a benchmark of all modes"
[ "$(grep -cE '^(replicated|parameter_server|independent).* 2 ' all.log)" -ge 7 ] || fail "not all modes were measured"

# Wherever a command is when it loses a task, it ends with 75.
launch -n 2 -- bash -c '[ "$TOWER_TASK" = 0 ] || (until [ -s lost.log ]; do sleep 0.05; done; kill -s KILL $$) &
    exec "$@"' bash "$tower" "${benchmark[@]}" --num_batches 1000000 --all > lost.log 2>&1
[ $? -eq 75 ] || fail "a benchmark of all modes that has lost a task did not end with 75"

# Who does something else is named with what differs, once: so it is where no plan shows it, as of another number of steps,
# for whose end the others would wait.
differ() { # differ WHAT HERE THERE: words for task 0, and for task 1
    launch -n 2 -- bash -c "[ \$TOWER_TASK = 1 ] && exec '$tower' $3; exec '$tower' $2" > differ.log 2>&1
    case $? in 1 | 2) ;; *) fail "tasks that differ in $1 did not end with 1 or 2" ;; esac
    [ "$(grep -c "^tower ${2%% *}: tasks differ in $1; every task must do the same$" differ.log)" -eq 1 ] ||
        fail "tasks that differ in $1 are not told so once"
}
queues=$here/golden/tf1_queues
differ "what they plan: task 1 has '.* (Const \[2\], .*', task 0 has '.* (Const \[6,5\], .*'" \
    "run ${queues}_tasks.meta --fetch loss" "run ${queues}_loop.meta --fetch loss"
for value in 1 2; do
    cat > $value.pbtxt << END
node { name: "a" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: $value } } } }
END
done
differ "what they plan: task 1 has 'a (Const \[\], kernel -, value 2, .*', task 0 has 'a (Const \[\], kernel -, value 1, .*'" \
    "run 1.pbtxt --fetch a" "run 2.pbtxt --fetch a"
differ "their options: task 1 has '--max-steps 3', task 0 has '--max-steps 2'" \
    "${options[*]} --train-dir differ --max-steps 2" "${options[*]} --train-dir differ --max-steps 3"
differ "their options: task 1 has 'no --save', task 0 has '--save'" \
    "run ${queues}_tasks.meta --fetch loss --save differ" "run ${queues}_tasks.meta --fetch loss"
differ "their options: task 1 has 'MODEL cifar10', task 0 has 'MODEL mnist'" \
    "${options[*]} --train-dir differ --max-steps 2" "train cifar10 ${options[*]:2} --train-dir differ --max-steps 2"
npy() { # SHAPE TEXT: so many bytes of the text, as NumPy keeps them
    printf '\x93NUMPY\x01\0\x76\0%-117s\n%s' "{'descr': '|u1', 'fortran_order': False, 'shape': ($1), }" "$2"
}
for name in here other_train other_test; do
    mkdir $name
    for half in train test; do
        [ $name = other_$half ] && pixel=b || pixel=a
        npy 8,28,28 "$(printf "%6272s" "" | tr ' ' $pixel)" > $name/${half}_images.npy
        npy 8, "$(printf '\1\2\3\4\5\6\7\10')" > $name/${half}_labels.npy
    done
done
own=(train mnist --cpu-threads 1 --batch-size 2 --towers 2 --log-every 0 --max-steps 1 --eval-every 1)
differ "the data that they learn from: task 1 has '.*, 8 examples, SHA-256 .*', task 0 has .*" \
    "${own[*]} --train-dir learn --data-dir here" "${own[*]} --train-dir learn --data-dir other_train"
differ "the data that they are evaluated on: task 1 has '.*, 8 examples, SHA-256 .*', task 0 has .*" \
    "${own[*]} --train-dir evaluated --data-dir here" "${own[*]} --train-dir evaluated --data-dir other_test"
differ "the checkpoint that they go on from: task 1 has 'none', task 0 has 'step 4'" \
    "${options[*]} --train-dir two --max-steps 6 --resume" "${options[*]} --train-dir elsewhere --max-steps 6 --resume"

# So is who has another version, here the same library under another name.
revision=$("$tower" version | sed -n 's/.*revision \([0-9a-f]\{12\}\).*/\1/p')
library=$(ldd "$tower" | sed -n 's/.*=> \(.*libtower\.so[^ ]*\).*/\1/p')
if [ -n "$revision" ] && [ -n "$library" ]; then
    mkdir other
    sed "s/$revision/otherversion/g" "$library" > "other/$(basename "$library")"
    cat > version.sh << END
[ "\$TOWER_TASK" = 0 ] || export LD_LIBRARY_PATH=other
exec "$tower" ${options[@]} --train-dir version --max-steps 2
END
    launch --tasks 2 -- bash version.sh > version.log 2>&1
    [ $? -eq 1 ] || fail "tasks of two versions trained"
    grep -q "tasks differ in their versions: task 1 has 'Tower .* (otherversion" version.log ||
        fail "the other version is not told"
fi

# And who computes with other instructions.
ONEDNN_MAX_CPU_ISA=SSE41 launch --tasks 2 -- bash -c '[ "$TOWER_TASK" = 0 ] || export ONEDNN_MAX_CPU_ISA=AVX2; exec "$@"' \
    bash "$tower" "${options[@]}" --train-dir instructions --max-steps 2 > instructions.log 2>&1
[ $? -eq 1 ] || fail "tasks that compute with other instructions trained"
grep -q "tasks differ in their devices: task 1 has '.*oneDNN .* with the instructions AVX2 .* SSE41" instructions.log ||
    fail "the other instructions are not told"

wait "$waits"
[ $? -eq 143 ] || fail "a step that waits and is asked to end: the launcher did not end with 143"
grep -q '^tower run: asked to end by signal 15, but task 0 has waited .* for .* of task 1' empty.log ||
    fail "what a step waits for that is asked to end is not told"
! grep -q 'killed' empty.log || fail "a task that waits at a queue of its own does not hear that the other has failed"

echo "all tasks agree"
