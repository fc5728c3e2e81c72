# tasks.sh - what the scripts that start tasks share; they read it before they go to a folder of their own ($work).
# Never here: how tasks are started, which is each script's own.
# shellcheck shell=bash

is_running() { # PROCESS: of that number may be another's by now, and ours are in this folder
    # shellcheck disable=SC2154 # the script's
    [ "$(readlink "/proc/$1/cwd")" = "$work" ]
}

newest() { # DIRECTORY: the step of its last checkpoint
    sed -n '1s/.*model.ckpt-\([0-9]*\)".*/\1/p' "$1/checkpoint"
}
