/* tf_file_statistics.h - what is known of a file. */
#ifndef TENSORFLOW_C_TF_FILE_STATISTICS_H_
#define TENSORFLOW_C_TF_FILE_STATISTICS_H_

#include "tensorflow/c/c_api_macros.h"

typedef struct TF_FileStatistics {
    int64_t length;     /* bytes */
    int64_t mtime_nsec; /* when it was last changed, in ns since 1970 */
    bool is_directory;
} TF_FileStatistics;

#endif
