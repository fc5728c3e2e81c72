/* checkpoint.c - readers of checkpoints for TensorFlow's C API.
 * Never here:  the format, which Tower reads. */
#include "capi.h"

#include <stdlib.h>
#include <tensorflow/c/c_api_experimental.h>
#include <tower/io.h>

struct TF_CheckpointReader {
    tw_checkpoint *checkpoint;
};

TF_CheckpointReader *TF_NewCheckpointReader(const char *filename, TF_Status *status)
{
    tw_error error = TW_NO_ERROR;
    TF_CheckpointReader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        set_no_memory(status);
        return NULL;
    }
    if (tw_checkpoint_open(filename, &reader->checkpoint, &error) != TW_OK) {
        free(reader);
        reader = NULL;
    }
    set_error(status, &error);
    return reader;
}

void TF_DeleteCheckpointReader(TF_CheckpointReader *reader)
{
    if (reader)
        tw_checkpoint_close(reader->checkpoint);
    free(reader);
}

int TF_CheckpointReaderHasTensor(TF_CheckpointReader *reader, const char *name)
{
    return tw_checkpoint_find(reader->checkpoint, name) >= 0;
}

int TF_CheckpointReaderSize(TF_CheckpointReader *reader)
{
    return tw_checkpoint_count(reader->checkpoint);
}

const char *TF_CheckpointReaderGetVariable(TF_CheckpointReader *reader, int index)
{
    bool is_there = index >= 0 && index < TF_CheckpointReaderSize(reader);
    return is_there ? tw_checkpoint_name(reader->checkpoint, index) : NULL;
}

TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader *reader, const char *name)
{
    int i = tw_checkpoint_find(reader->checkpoint, name);
    return i < 0 ? (TF_DataType)0 : (TF_DataType)tw_checkpoint_dtype(reader->checkpoint, i);
}

int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader *reader, const char *name)
{
    int i = tw_checkpoint_find(reader->checkpoint, name);
    return i < 0 ? -1 : tw_checkpoint_shape(reader->checkpoint, i).rank;
}

void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader *reader, const char *name, int64_t *dims, int num_dims,
                                         TF_Status *status)
{
    int i = tw_checkpoint_find(reader->checkpoint, name);
    tw_shape shape = i < 0 ? TW_UNKNOWN_SHAPE : tw_checkpoint_shape(reader->checkpoint, i);
    TF_SetStatus(status, TF_OK, "");
    if (i < 0)
        set_status(status, TF_NOT_FOUND, "'%s' is not in %s", name, tw_checkpoint_path(reader->checkpoint));
    else if (num_dims != shape.rank)
        set_status(status, TF_INVALID_ARGUMENT, "Expected rank is %d but actual rank is %d", num_dims, shape.rank);
    for (int d = 0; is_ok(status) && d < num_dims; d++)
        dims[d] = shape.dims[d];
}

TF_Tensor *TF_CheckpointReaderGetTensor(TF_CheckpointReader *reader, const char *name, TF_Status *status)
{
    tw_error error = TW_NO_ERROR;
    tw_tensor *read = NULL;
    tw_checkpoint_read(reader->checkpoint, name, &read, &error);
    set_error(status, &error);
    TF_Tensor *tensor = read ? tensor_from_tower(read) : NULL;
    if (read && !tensor)
        set_no_memory(status);
    return tensor;
}
