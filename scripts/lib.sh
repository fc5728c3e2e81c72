# lib.sh - what the scripts share: packages that are needed, building, counting tests. Sourced; defines functions only.
# shellcheck shell=sh

say() {
    printf '%s\n' "$*"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# PACKAGE:PROBE a line, where the probe is a program or a header. Names are those of Debian 12, 13 and Ubuntu 24.04.
# shellcheck disable=SC2034 # used by those who source this
build_needs='
gcc:cc
g++:c++
cmake:cmake
ninja-build:ninja
pkg-config:pkg-config
libdnnl-dev:oneapi/dnnl/dnnl.h
zlib1g-dev:zlib.h
libarchive-dev:archive.h
libre2-dev:re2/re2.h
nettle-dev:nettle/sha2.h
libprotobuf-c-dev:protobuf-c/protobuf-c.h
protobuf-c-compiler:protoc-c
libpng-dev:png.h
libjpeg-dev:jpeglib.h
libcjson-dev:cjson/cJSON.h
libinih-dev:ini.h
libcurl4-openssl-dev:curl/curl.h
'
# shellcheck disable=SC2034
test_needs="$build_needs
libcmocka-dev:cmocka.h
spin:spin
strace:strace
"

is_there() { # PROBE
    case $1 in
    /*) [ -e "$1" ] ;;
    *.h) printf '#include <stdarg.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <setjmp.h>\n#include <%s>\n' "$1" |
        c++ -std=c++17 -x c++ -E -o /dev/null - 2>/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

missing_of() { # NEEDS: prints the packages whose probes fail
    for need in $1; do
        is_there "${need#*:}" || printf ' %s' "${need%%:*}"
    done
}

# Runs a command whose output goes to a file, and says how far it is by the file's last line: in place on a terminal, else
# after two seconds and then every half minute. Ends as the command does.
watched() { # WHAT LOG COMMAND...
    watched_what=$1 watched_log=$2
    shift 2
    "$@" >"$watched_log" 2>&1 &
    watched_worker=$! watched_seconds=0
    while kill -0 "$watched_worker" 2>/dev/null; do
        sleep 1
        watched_seconds=$((watched_seconds + 1))
        watched_far=$(tail -n 1 "$watched_log" 2>/dev/null | sed -n 's/^\(\[[^]]*\]\).*/\1 /p')
        if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ] && [ -z "${NO_COLOR-}" ]; then
            [ "$watched_seconds" -lt 2 ] || printf '\r%s, %s%d s\033[K' "$watched_what" "$watched_far" "$watched_seconds"
        elif [ "$watched_seconds" -eq 2 ] || [ $((watched_seconds % 30)) -eq 0 ]; then
            say "$watched_what, $watched_far$watched_seconds s so far"
        fi
    done
    if [ -t 1 ] && [ "$watched_seconds" -ge 2 ] && [ "${TERM:-dumb}" != dumb ] && [ -z "${NO_COLOR-}" ]; then
        printf '\r\033[K'
    fi
    wait "$watched_worker"
}

install_packages() { # LOG NAME...
    install_log=$1
    shift
    watched installing "$install_log" $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "$@"
}

# Installs what is missing of the needs given; says plainly what to do where it cannot.
need() { # NEEDS
    missing=$(missing_of "$1")
    [ -n "$missing" ] || return 0
    command -v apt-get >/dev/null ||
        die "missing:$missing (names of Debian's packages); this system has no apt-get to install them with"
    as_root=
    say "installing:$missing"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || die "missing:$missing; as root: apt-get install$missing"
        as_root=sudo
        sudo true || die "sudo does not let you; as root: apt-get install$missing" # what it asks, it asks here
    fi
    apt_log=$(mktemp)
    # shellcheck disable=SC2086 # lists of words
    install_packages "$apt_log" $missing || {
        watched 'getting the lists of packages' "$apt_log" $as_root apt-get update || true
        install_packages "$apt_log" $missing || {
            cat "$apt_log" >&2
            die "cannot install:$missing; as root: apt-get install$missing"
        }
    }
    rm -f "$apt_log"
    missing=$(missing_of "$1")
    [ -z "$missing" ] || die "installed, but still not found:$missing"
}

# Configures and builds everything, or what $build_target names, into a directory, with $build_nice before the commands;
# silent unless something goes wrong, but for how far it is.
build_in() { # DIRECTORY [CMAKE OPTIONS...]
    directory=$1
    shift
    mkdir -p "$directory"
    launcher=
    if command -v ccache >/dev/null; then
        launcher='-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache'
    fi
    generator='Unix Makefiles'
    ! command -v ninja >/dev/null || generator=Ninja
    # shellcheck disable=SC2086 # two words
    if ! ${build_nice-} cmake -S . -B "$directory" -G "$generator" $launcher "$@" >"$directory/configure.log" 2>&1; then
        tail -30 "$directory/configure.log" >&2
        return 1
    fi
    grep '^-- Tower:' "$directory/configure.log" || true
    # shellcheck disable=SC2086 # two words, or none
    if ! watched building "$directory/build.log" ${build_nice-} cmake --build "$directory" -j "$(nproc)" \
        ${build_target:+--target $build_target}; then
        grep -E -A5 'error|FAILED|undefined' "$directory/build.log" | head -60 >&2
        return 1
    fi
}

# Of cards' kernels and how they are compiled. tests/card/compiled has that of those that were compiled in full last.
kernels_digest() {
    cat src/device/cuda/*.cu src/device/cuda/*.cuh src/device/cuda/launch.h cmake/cuda.cmake | cksum
}

# Counts what a run of ctest left in its log, into `passed` and `failed`. With "each", a program of cmocka counts as
# the tests inside it; a test that began and came to no end has failed, and so has a program that fails otherwise.
count_tests() { # DIRECTORY each|programs
    log=$1/Testing/Temporary/LastTest.log
    [ -r "$log" ] || { failed=$((failed + 1)); return; }
    counts=$(awk -v each="$2" '
        /^[0-9]+\/[0-9]+ Test: / { began = ended = skipped = 0 }
        index($0, "[ RUN      ]") { began++ }
        index($0, "[       OK ]") { ended++ }
        index($0, "[  SKIPPED ]") { skipped++ }
        /^Test (Passed|Failed)\.$/ {
            bad = $2 == "Failed."
            lost = began - ended - skipped
            if (each == "programs" || began == 0) { passed += !bad; failed += bad }
            else { passed += ended; failed += lost > 0 ? lost : bad }
        }
        END { print passed + 0, failed + 0 }' "$log")
    passed=$((passed + ${counts% *}))
    failed=$((failed + ${counts#* }))
}
