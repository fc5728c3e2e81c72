/* job.c - see job.h. */
#include "job.h"

#include "command.h" /* complain */
#include "places.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { SYNTHETIC_EXAMPLES = 1024, CLASSES = 10 };

static const char *const data_sets[] = {NULL, "cifar10", "mnist", "fashion-mnist", "synthetic"}; /* ORDER DATA_SET */

const char *job_train_dir(const job *job, char *path, size_t size)
{
    if (job->train_dir)
        return job->train_dir;
    snprintf(path, size, "%s_train", tw_model_at(job->model)->name);
    return path;
}

tw_dataset *job_load_data(const char *command, const job *job, tw_dataset_split split, char *directory)
{
    const tw_model *model = tw_model_at(job->model);
    const char *name = data_sets[job->data_set];
    tw_dataset *data = NULL;
    tw_error error = {0};
    tw_status status;

    directory[0] = 0;
    if (name && strcmp(name, "synthetic") == 0) {
        int side = model->channels == 3 ? 32 : 28; /* as images of CIFAR-10 and of MNIST */
        status = tw_dataset_synthetic(SYNTHETIC_EXAMPLES, side, side, model->channels, CLASSES, 1, &data, &error);
    } else {
        if (!data_directory(command, job->data_dir, name ? name : model->dataset, directory, PATH_MAX))
            return NULL;
        if (!name)
            name = tw_dataset_detect(directory);
        if (!name)
            name = model->dataset; /* loading it says what was looked for */
        tw_dataset_options options = {.as_rgb32 = model->channels == 3};
        status = tw_dataset_load(name, directory, split, &options, &data, &error);
        if (status == TW_NOT_FOUND && !job->data_dir) { /* or where a package of the distribution puts it */
            status = tw_dataset_load(name, NULL, split, &options, &data, NULL);
            directory[0] = 0;
        }
    }
    if (status != TW_OK)
        failed(command, &error);
    return data;
}

tw_devices *job_open_devices(const char *command, const job *job)
{
    tw_error error = {0};
    tw_devices *devices = NULL;
    tw_device_options options = {
        .cpu_devices = (int)job->cpu_devices,
        .cpu_threads = (int)job->cpu_threads,
        .virtual_gpus = (int)job->virtual_gpus,
    };
    if (tw_devices_create(&options, &devices, &error) != TW_OK)
        failed(command, &error);
    return devices;
}
