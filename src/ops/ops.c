/* ops.c - the list of op families. A family is an array of rows in a file of its own: add it here. */
#include "graph/op.h"

#define FAMILIES(X)                                                                                                    \
    X(twi_math_ops)                                                                                                    \
    X(twi_complex_ops)                                                                                                 \
    X(twi_fourier_ops)                                                                                                 \
    X(twi_special_ops)                                                                                                 \
    X(twi_constant_ops)                                                                                                \
    X(twi_array_ops)                                                                                                   \
    X(twi_slice_ops)                                                                                                   \
    X(twi_gather_ops)                                                                                                  \
    X(twi_blocks_ops)                                                                                                  \
    X(twi_rearrange_ops)                                                                                               \
    X(twi_matrix_ops)                                                                                                  \
    X(twi_linear_ops)                                                                                                  \
    X(twi_einsum_ops)                                                                                                  \
    X(twi_segment_ops)                                                                                                 \
    X(twi_scatter_ops)                                                                                                 \
    X(twi_parse_ops)                                                                                                   \
    X(twi_sparse_dense_ops)                                                                                            \
    X(twi_sparse_math_ops)                                                                                             \
    X(twi_sparse_ops)                                                                                                  \
    X(twi_serialize_ops)                                                                                               \
    X(twi_ragged_ops)                                                                                                  \
    X(twi_sets_ops)                                                                                                    \
    X(twi_warp_ops)                                                                                                    \
    X(twi_sound_ops)                                                                                                   \
    X(twi_find_ops)                                                                                                    \
    X(twi_places_ops)                                                                                                  \
    X(twi_random_ops)                                                                                                  \
    X(twi_candidates_ops)                                                                                              \
    X(twi_clusters_ops)                                                                                                \
    X(twi_state_ops)                                                                                                   \
    X(twi_optimizer_ops)                                                                                               \
    X(twi_control_ops)                                                                                                 \
    X(twi_branch_ops)                                                                                                  \
    X(twi_loop_ops)                                                                                                    \
    X(twi_list_ops)                                                                                                    \
    X(twi_series_ops)                                                                                                  \
    X(twi_conv_ops)                                                                                                    \
    X(twi_activation_ops)                                                                                              \
    X(twi_pool_ops)                                                                                                    \
    X(twi_fractional_ops)                                                                                              \
    X(twi_glimpse_ops)                                                                                                 \
    X(twi_inplace_ops)                                                                                                 \
    X(twi_volume_ops)                                                                                                  \
    X(twi_normalization_ops)                                                                                           \
    X(twi_quantize_ops)                                                                                                \
    X(twi_quantized_ops)                                                                                               \
    X(twi_softmax_ops)                                                                                                 \
    X(twi_recurrent_ops)                                                                                               \
    X(twi_ctc_ops)                                                                                                     \
    X(twi_regression_ops)                                                                                              \
    X(twi_image_ops)                                                                                                   \
    X(twi_picture_ops)                                                                                                 \
    X(twi_resize_ops)                                                                                                  \
    X(twi_summary_ops)                                                                                                 \
    X(twi_summary_writer_ops)                                                                                          \
    X(twi_input_ops)                                                                                                   \
    X(twi_queue_ops)                                                                                                   \
    X(twi_barrier_ops)                                                                                                 \
    X(twi_mutex_ops)                                                                                                   \
    X(twi_accumulator_ops)                                                                                             \
    X(twi_stage_map_ops)                                                                                               \
    X(twi_regions_ops)                                                                                                 \
    X(twi_files_ops)                                                                                                   \
    X(twi_collective_ops)                                                                                              \
    X(twi_table_ops)                                                                                                   \
    X(twi_dataset_ops)                                                                                                 \
    X(twi_reader_ops)                                                                                                  \
    X(twi_saver_ops)                                                                                                   \
    X(twi_text_ops)                                                                                                    \
    X(twi_unicode_ops)                                                                                                 \
    X(twi_fused_ops) /* made by rewrites only */                                                                       \
    X(twi_plan_ops)  /* made by the planner only */

#define FAMILY(name) extern const twi_op name[];
FAMILIES(FAMILY)

#define ENTRY(name) name,
const twi_op *const twi_op_families[] = {FAMILIES(ENTRY) NULL};
