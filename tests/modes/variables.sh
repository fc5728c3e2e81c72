# variables.sh - what the scripts beside it share; sourced. $program is the tower program.
# shellcheck shell=sh

# The variables' SHA-256 of the checkpoint of that step. A checkpoint's data lie in order of names: the variables, then
# what the trainer remembers as tower/...
sum() { # DIRECTORY STEP
    remembered=$("$program" checkpoint show "$1" --format json | tr '{' '\n' | grep '"name":"tower/' |
        sed 's/.*"bytes":\([0-9]*\).*/\1/' | awk '{ bytes += $1 } END { print bytes }')
    head -c -"$remembered" "$1/model.ckpt-$2.data-00000-of-00001" | sha256sum | cut -c1-16
}
