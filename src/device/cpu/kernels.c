/* kernels.c - the CPU's kernels, family by family, fastest first.
 *
 * A family is an array of rows ended by a row without an op; it lives in the file it is named after. To add one, give
 * it a line here. For one op the first family that accepts the shapes wins, so families built on libraries stand above
 * the plain C loops, which accept everything and are what the others are tested against. */
#include "device/device.h"

#define FAMILY(name) extern const twi_kernel name[];
#define FAMILIES(X)                                                                                                    \
    X(twi_vector_pool_lrn_kernels)                                                                                     \
    X(twi_amx_kernels)           /* bfloat16 on x86's matrix units */                                                  \
    X(twi_direct_conv_kernels)   /* float on AVX2 */                                                                   \
    X(twi_winograd_conv_kernels) /* float on AVX-512 */                                                                \
    X(twi_gemm_conv_kernels)     /* the same, constant filters */                                                      \
    X(twi_col2im_conv_kernels)   /* the same, gradients of images of few channels */                                   \
    X(twi_filter_conv_kernels)   /* the same, gradients of filters */                                                  \
    X(twi_onednn_conv_kernels)                                                                                         \
    X(twi_onednn_matmul_kernels)                                                                                       \
    X(twi_vector_elementwise_kernels) /* loops built for each vector unit */                                           \
    X(twi_vector_casts_kernels)                                                                                        \
    X(twi_vector_activation_kernels)                                                                                   \
    X(twi_vector_depthwise_kernels)                                                                                    \
    X(twi_vector_softmax_kernels)                                                                                      \
    X(twi_vector_bias_kernels)                                                                                         \
    X(twi_vector_reduce_kernels)                                                                                       \
    X(twi_vector_pool_kernels)                                                                                         \
    X(twi_vector_normalization_kernels)                                                                                \
    X(twi_vector_batch_norm_kernels)                                                                                   \
    X(twi_vector_random_kernels)                                                                                       \
    X(twi_vector_state_kernels)                                                                                        \
                                                                                                                       \
    X(twi_cpu_array_kernels) /* from here on: plain C */                                                               \
    X(twi_cpu_slice_kernels)                                                                                           \
    X(twi_cpu_rearrange_kernels)                                                                                       \
    X(twi_cpu_matrix_kernels)                                                                                          \
    X(twi_cpu_linear_kernels)                                                                                          \
    X(twi_cpu_tridiagonal_kernels)                                                                                     \
    X(twi_cpu_blocks_kernels)                                                                                          \
    X(twi_cpu_pad_kernels)                                                                                             \
    X(twi_cpu_gather_kernels)                                                                                          \
    X(twi_cpu_scatter_kernels)                                                                                         \
    X(twi_cpu_segment_kernels)                                                                                         \
    X(twi_cpu_boxes_kernels)                                                                                           \
    X(twi_cpu_parse_example_kernels)                                                                                   \
    X(twi_cpu_parse_sequence_kernels)                                                                                  \
    X(twi_cpu_parse_text_kernels)                                                                                      \
    X(twi_cpu_unicode_kernels)                                                                                         \
    X(twi_cpu_ngrams_kernels)                                                                                          \
    X(twi_cpu_sparse_dense_kernels)                                                                                    \
    X(twi_cpu_sparse_kernels)                                                                                          \
    X(twi_cpu_serialize_kernels)                                                                                       \
    X(twi_cpu_counts_kernels)                                                                                          \
    X(twi_cpu_ragged_kernels)                                                                                          \
    X(twi_cpu_ragged_variant_kernels)                                                                                  \
    X(twi_cpu_sets_kernels)                                                                                            \
    X(twi_cpu_warp_kernels)                                                                                            \
    X(twi_cpu_sound_kernels)                                                                                           \
    X(twi_cpu_sparse_math_kernels)                                                                                     \
    X(twi_cpu_find_kernels)                                                                                            \
    X(twi_cpu_places_kernels)                                                                                          \
    X(twi_cpu_select_kernels)                                                                                          \
    X(twi_cpu_top_k_kernels)                                                                                           \
    X(twi_cpu_elementwise_kernels)                                                                                     \
    X(twi_cpu_complex_kernels)                                                                                         \
    X(twi_cpu_fourier_kernels)                                                                                         \
    X(twi_cpu_special_kernels)                                                                                         \
    X(twi_cpu_reduce_kernels)                                                                                          \
    X(twi_cpu_matmul_kernels)                                                                                          \
    X(twi_cpu_einsum_kernels)                                                                                          \
    X(twi_cpu_conv_kernels)                                                                                            \
    X(twi_cpu_bias_kernels)                                                                                            \
    X(twi_cpu_activation_kernels)                                                                                      \
    X(twi_cpu_pool_kernels)                                                                                            \
    X(twi_cpu_fractional_kernels)                                                                                      \
    X(twi_cpu_glimpse_kernels)                                                                                         \
    X(twi_cpu_inplace_kernels)                                                                                         \
    X(twi_cpu_volume_kernels)                                                                                          \
    X(twi_cpu_normalization_kernels)                                                                                   \
    X(twi_cpu_round_trip_kernels)                                                                                      \
    X(twi_cpu_cross_product_kernels)                                                                                   \
    X(twi_cpu_quantize_kernels)                                                                                        \
    X(twi_cpu_quantized_kernels)                                                                                       \
    X(twi_cpu_quantized_math_kernels)                                                                                  \
    X(twi_cpu_batch_norm_kernels)                                                                                      \
    X(twi_cpu_pool_lrn_kernels)                                                                                        \
    X(twi_cpu_softmax_kernels)                                                                                         \
    X(twi_cpu_recurrent_kernels)                                                                                       \
    X(twi_cpu_beams_kernels)                                                                                           \
    X(twi_cpu_global_norm_kernels)                                                                                     \
    X(twi_cpu_labels_kernels)                                                                                          \
    X(twi_cpu_ctc_kernels)                                                                                             \
    X(twi_cpu_state_kernels)                                                                                           \
    X(twi_cpu_optimizer_kernels)                                                                                       \
    X(twi_cpu_scatter_variable_kernels)                                                                                \
    X(twi_cpu_random_tried_kernels)                                                                                    \
    X(twi_cpu_index_shuffle_kernels)                                                                                   \
    X(twi_cpu_isotonic_kernels)                                                                                        \
    X(twi_cpu_beta_kernels)                                                                                            \
    X(twi_cpu_random_kernels)                                                                                          \
    X(twi_cpu_candidates_kernels)                                                                                      \
    X(twi_cpu_clusters_kernels)                                                                                        \
    X(twi_cpu_control_kernels)                                                                                         \
    X(twi_cpu_branch_kernels)                                                                                          \
    X(twi_cpu_list_kernels)                                                                                            \
    X(twi_cpu_series_kernels)                                                                                          \
    X(twi_cpu_input_kernels)                                                                                           \
    X(twi_cpu_examples_kernels)                                                                                        \
    X(twi_cpu_queue_kernels)                                                                                           \
    X(twi_cpu_barrier_kernels)                                                                                         \
    X(twi_cpu_mutex_kernels)                                                                                           \
    X(twi_cpu_accumulator_kernels)                                                                                     \
    X(twi_cpu_stage_map_kernels)                                                                                       \
    X(twi_cpu_regions_kernels)                                                                                         \
    X(twi_cpu_files_kernels)                                                                                           \
    X(twi_cpu_cross_kernels)                                                                                           \
    X(twi_cpu_table_kernels)                                                                                           \
    X(twi_cpu_dataset_kernels)                                                                                         \
    X(twi_cpu_record_input_kernels)                                                                                    \
    X(twi_cpu_reader_kernels)                                                                                          \
    X(twi_cpu_remap_kernels)                                                                                           \
    X(twi_cpu_saver_kernels)                                                                                           \
    X(twi_cpu_text_kernels)                                                                                            \
    X(twi_cpu_text_joined_kernels)                                                                                     \
    X(twi_cpu_image_kernels)                                                                                           \
    X(twi_cpu_picture_kernels)                                                                                         \
    X(twi_cpu_color_kernels)                                                                                           \
    X(twi_cpu_resize_kernels)                                                                                          \
    X(twi_cpu_scale_kernels)                                                                                           \
    X(twi_cpu_crop_kernels)                                                                                            \
    X(twi_cpu_summary_writer_kernels)                                                                                  \
    X(twi_cpu_summary_kernels)

FAMILIES(FAMILY)

#define ENTRY(name) name,
const twi_kernel *const twi_cpu_kernels[] = {FAMILIES(ENTRY) NULL};
