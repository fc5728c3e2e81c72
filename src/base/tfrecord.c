/* tfrecord.c - see tfrecord.h. */
#include "base/tfrecord.h"

#include "base/crc32c.h"
#include "base/inflate.h"
#include "base/little_endian.h"
#include "base/memory.h"
#include "base/status.h"

#define HEAD 12 /* length and its checksum */
#define TAIL 4

void twi_record_write(twi_file_writer *file, const void *bytes, size_t size)
{
    char head[HEAD], tail[TAIL];
    twi_put64(head, size);
    twi_put32(head + 8, twi_crc32c_mask(twi_crc32c(0, head, 8)));
    twi_put32(tail, twi_crc32c_mask(twi_crc32c(0, bytes, size)));
    twi_file_write(file, head, HEAD);
    twi_file_write(file, bytes, size);
    twi_file_write(file, tail, TAIL);
}

struct twi_record_reader {
    twi_file_reader *file;
    char *path;
    uint64_t offset;
    twi_file_window window;
};

tw_status twi_record_open(const char *path, twi_record_reader **reader, tw_error *error)
{
    return twi_record_open_packed(path, "", reader, error);
}

tw_status twi_record_open_packed(const char *path, const char *kind, twi_record_reader **reader, tw_error *error)
{
    tw_status status = TW_OK;
    twi_record_reader *made = twi_alloc(sizeof *made);
    *reader = NULL;
    if (!made || !(made->path = twi_strdup(path))) {
        status = twi_fail_memory(error, "opening a record file");
        goto done;
    }
    TWI_TRY(twi_file_open_packed(path, kind, &made->file, error));
    made->window.file = made->file;
    *reader = made;
    made = NULL;
done:
    twi_record_close(made);
    return status;
}

tw_status twi_record_next(twi_record_reader *reader, const char **bytes, size_t *size, tw_error *error)
{
    const char *record;
    unsigned long long offset = reader->offset;
    uint64_t file_size = twi_file_size(reader->file), rest = file_size - offset;
    if (file_size <= offset)
        return twi_fail(error, TW_OUT_OF_RANGE, "'%s': no more records", reader->path);
    if (rest < HEAD)
        return twi_fail(error, TW_DATA_LOSS, "'%s': truncated record at %llu: %llu bytes are left, its head has %d",
                        reader->path, offset, (unsigned long long)rest, HEAD);
    tw_status status = twi_file_look(&reader->window, offset, HEAD, &record, error);
    if (status != TW_OK)
        return status;
    uint64_t length = twi_get64(record);
    if (!twi_crc32c_matches(twi_get32(record + 8), twi_crc32c(0, record, 8)))
        return twi_fail(error, TW_DATA_LOSS, "'%s': corrupted record at %llu: its length does not match its checksum",
                        reader->path, offset);
    if (rest < HEAD + TAIL || length > rest - HEAD - TAIL)
        return twi_fail(error, TW_DATA_LOSS,
                        "'%s': truncated record at %llu: it has %llu bytes of data, and the file ends after %llu more",
                        reader->path, offset, (unsigned long long)length, (unsigned long long)(rest - HEAD));
    status = twi_file_look(&reader->window, offset, HEAD + (size_t)length + TAIL, &record, error);
    if (status != TW_OK)
        return status;
    record += HEAD;
    if (!twi_crc32c_matches(twi_get32(record + length), twi_crc32c(0, record, (size_t)length)))
        return twi_fail(error, TW_DATA_LOSS, "'%s': corrupted record at %llu: its data do not match their checksum",
                        reader->path, offset);
    reader->offset += HEAD + length + TAIL;
    *bytes = record;
    *size = (size_t)length;
    return TW_OK;
}

uint64_t twi_record_offset(const twi_record_reader *reader)
{
    return reader->offset;
}

void twi_record_seek(twi_record_reader *reader, uint64_t offset)
{
    reader->offset = offset;
}

void twi_record_close(twi_record_reader *reader)
{
    if (!reader)
        return;
    twi_file_reader_close(reader->file);
    twi_file_window_free(&reader->window);
    twi_free(reader->path);
    twi_free(reader);
}
