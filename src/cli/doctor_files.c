/* doctor_files.c - data sets, caches, room on disks, and the programs that Tower gets on with. */
#include "findings.h"
#include "places.h"
#include "progress.h" /* bytes_text */

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <tower/data.h>
#include <unistd.h>

static void look_at_data_sets(findings *all)
{
    static const char *const names[] = {"cifar10", "mnist", "fashion-mnist"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char directory[PATH_MAX], shared[PATH_MAX];
        snprintf(shared, sizeof shared, "/usr/share/datasets/%s", names[i]);
        if (!data_directory("doctor", NULL, names[i], directory, sizeof directory))
            return;
        bool own = tw_dataset_detect(directory) != NULL;
        const char *where = own ? directory : tw_dataset_detect(shared) ? shared : NULL;
        if (where) {
            find(all, "files", names[i], VERDICT_OK, "in %s%s%s", where, own ? "" : "; use it with --data-dir ",
                 own ? "" : where);
            continue;
        }
        finding *f = find(all, "files", names[i], VERDICT_NONE, "not in %s", directory);
        if (i == 0)
            advise(f, "'tower data fetch %s' downloads it; --data-set synthetic needs no files", names[i]);
    }
}

/* Whether files can be written there, and how many bytes of them. */
static void look_at_room(findings *all, const char *name, const char *directory)
{
    static const double little = 256.0 * (1 << 20);
    struct statvfs disk;
    char room[32];
    if (access(directory, W_OK) != 0 || statvfs(directory, &disk) != 0) {
        advise(find(all, "files", name, VERDICT_WARNING, "%s cannot be written to", directory),
               "checkpoints go into --train-dir, which is here unless it says otherwise");
        return;
    }
    double bytes = (double)disk.f_bavail * (double)disk.f_frsize;
    finding *f = find(all, "files", name, bytes < little ? VERDICT_WARNING : VERDICT_OK, "%s: %s free", directory,
                      bytes_text(bytes, room, sizeof room));
    if (bytes < little)
        advise(f, "a training keeps several checkpoints; give it a --train-dir with more room");
}

/* The first program of that name in PATH; false: there is none. */
static bool find_program(const char *name, char *path, size_t size)
{
    const char *folders = getenv("PATH");
    while (folders && *folders) {
        int length = (int)strcspn(folders, ":");
        if (snprintf(path, size, "%.*s/%s", length, folders, name) < (int)size && access(path, X_OK) == 0)
            return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}

static void look_at_programs(findings *all)
{
    static const struct {
        const char *name, *use, *package;
    } programs[] = {
        {"dot", "draws graphs in 'tower report'; without it own layers do", "graphviz"},
        {"tensorboard", "shows event logs", "tensorboard"},
        {"mpirun", "starts several processes", "openmpi-bin"},
    };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        char path[PATH_MAX];
        bool there = find_program(programs[i].name, path, sizeof path);
        find(all, "programs beside", programs[i].name, there ? VERDICT_OK : VERDICT_NONE, "%s%s(%s)", there ? path : "",
             there ? " " : "", programs[i].use);
    }
}

void look_at_files(findings *all)
{
    char here[PATH_MAX];
    look_at_data_sets(all);
    look_at_room(all, "this folder", getcwd(here, sizeof here) ? here : ".");
    look_at_programs(all);
}
