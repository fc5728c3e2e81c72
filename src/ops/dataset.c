/* dataset.c - data sets and iterators as nodes of a graph.
 *
 * A data set's node gives a recipe: what it was made of when it ran (device/dataset/dataset.h). MakeIterator hands it
 * to an iterator, whose elements IteratorGetNext gives. Handles of data sets, which TensorFlow calls
 * variants, are resources here; an optional is a value (ops/list.c). Attributes that are functions in TensorFlow are
 * names of cuts of the graph (io/functions/functions.h). */
#include "ops/build.h"

static tw_status nothing_shape(twi_inference *c)
{
    (void)c;
    return TW_OK;
}

static tw_status handle_shape(twi_inference *c)
{
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = TW_SCALAR;
    return TW_OK;
}

/* Outputs as the attributes say. */
static tw_status elements_shape(twi_inference *c)
{
    const twi_attr *shapes = twi_attr_find(c->attrs, "output_shapes");
    if (shapes->count != c->num_outputs)
        return twi_fail(c->error, TW_INVALID_ARGUMENT, "%d shapes for %d components", shapes->count, c->num_outputs);
    for (int i = 0; i < c->num_outputs; i++)
        c->outputs[i] = shapes->shapes[i];
    return TW_OK;
}

static tw_status at_shape(twi_inference *c)
{
    tw_status status = twi_expect_rank(c, 1, 0);
    return status == TW_OK ? elements_shape(c) : status;
}

static tw_status seeds_shape(twi_inference *c)
{
    tw_status status = TW_OK;
    for (int i = 0; i < c->num_inputs && status == TW_OK; i++)
        status = twi_expect_rank(c, i, 0);
    return status == TW_OK ? handle_shape(c) : status;
}

#define ELEMENTS "output_types:types>=1; output_shapes:shapes>=1; metadata:string="
#define COMPONENTS "Toutput_types:types>=1; output_shapes:shapes>=1; metadata:string="
#define FUNCTION "f:string; Targuments:types; " ELEMENTS
#define CSV                                                                                                            \
    "filenames:string, compression_type:string, buffer_size:int64, header:bool, field_delim:string, "                  \
    "use_quote_delim:bool, na_value:string, select_cols:int64, record_defaults:output_types"
#define REDUCER                                                                                                        \
    "input_dataset:resource, key_func_other_arguments:Tkey_func_other_arguments, "                                     \
    "init_func_other_arguments:Tinit_func_other_arguments, reduce_func_other_arguments:Treduce_func_other_arguments, " \
    "finalize_func_other_arguments:Tfinalize_func_other_arguments",                                                    \
        "handle:resource",                                                                                             \
        ELEMENTS "; key_func:string; init_func:string; reduce_func:string; finalize_func:string; "                     \
                 "Tkey_func_other_arguments:types; Tinit_func_other_arguments:types; "                                 \
                 "Treduce_func_other_arguments:types; Tfinalize_func_other_arguments:types",                           \
        RECIPE, "q....", MAKES_RECIPE
#define SPARSE_BATCH                                                                                                   \
    "input_dataset:resource, batch_size:int64, row_shape:int64", "handle:resource", ELEMENTS, RECIPE, "q..",           \
        MAKES_RECIPE
#define STATE TWI_STATEFUL | TWI_HOST_ONLY
#define GIVES STATE | TWI_INPUT | TWI_MAKES_SHAPE
#define RECIPE handle_shape, NULL, STATE
#define MAKES_RECIPE .makes = TWI_MAKES_RECIPE
#define MAKES_ITERATOR .makes = TWI_MAKES_ITERATOR

const twi_op twi_dataset_ops[] = {
    {"RangeDataset", "start:int64, stop:int64, step:int64", "handle:resource",
     ELEMENTS "; replicate_on_split:bool=false", RECIPE, "...", MAKES_RECIPE},
    {"TensorDataset", "components:Toutput_types", "handle:resource", COMPONENTS, RECIPE, ".", MAKES_RECIPE},
    {"TensorSliceDataset", "components:Toutput_types", "handle:resource",
     COMPONENTS "; is_files:bool=false; replicate_on_split:bool=false", RECIPE, ".", MAKES_RECIPE},
    {"SparseTensorSliceDataset", "indices:int64, values:Tvalues, dense_shape:int64", "handle:resource", "Tvalues:type",
     RECIPE, "...", MAKES_RECIPE},
    {"ZipDataset", "input_datasets:N*resource", "handle:resource", ELEMENTS "; N:int", RECIPE, "q", MAKES_RECIPE},
    {"ConcatenateDataset", "input_dataset:resource, another_dataset:resource", "handle:resource", ELEMENTS, RECIPE,
     "qq", MAKES_RECIPE},
    {"RepeatDataset", "input_dataset:resource, count:int64", "handle:resource", ELEMENTS, RECIPE, "q.", MAKES_RECIPE},
    {"TakeDataset", "input_dataset:resource, count:int64", "handle:resource", ELEMENTS, RECIPE, "q.", MAKES_RECIPE},
    {"SkipDataset", "input_dataset:resource, count:int64", "handle:resource", ELEMENTS, RECIPE, "q.", MAKES_RECIPE},
    {"ShardDataset", "input_dataset:resource, num_shards:int64, index:int64", "handle:resource",
     ELEMENTS "; require_non_empty:bool=false", RECIPE, "q..", MAKES_RECIPE},
    {"BatchDataset", "input_dataset:resource, batch_size:int64", "handle:resource", ELEMENTS, RECIPE, "q.",
     MAKES_RECIPE},
    {"BatchDatasetV2", "input_dataset:resource, batch_size:int64, drop_remainder:bool", "handle:resource",
     ELEMENTS "; parallel_copy:bool=false", RECIPE, "q..", MAKES_RECIPE},
    {"ParallelBatchDataset", "input_dataset:resource, batch_size:int64, num_parallel_calls:int64, drop_remainder:bool",
     "handle:resource", ELEMENTS "; parallel_copy:bool=false; deterministic:string=default", RECIPE, "q...",
     MAKES_RECIPE},
    {"PaddedBatchDataset",
     "input_dataset:resource, batch_size:int64, padded_shapes:N*int64, padding_values:Toutput_types", "handle:resource",
     COMPONENTS "; N:int", RECIPE, "q...", MAKES_RECIPE},
    {"PaddedBatchDatasetV2",
     "input_dataset:resource, batch_size:int64, padded_shapes:N*int64, padding_values:Toutput_types, "
     "drop_remainder:bool",
     "handle:resource", COMPONENTS "; parallel_copy:bool=false; N:int", RECIPE, "q....", MAKES_RECIPE},
    {"ShuffleDataset", "input_dataset:resource, buffer_size:int64, seed:int64, seed2:int64", "handle:resource",
     ELEMENTS "; reshuffle_each_iteration:bool=true", RECIPE, "q...", MAKES_RECIPE},
    {"ShuffleDatasetV2", "input_dataset:resource, buffer_size:int64, seed_generator:resource", "handle:resource",
     ELEMENTS, RECIPE, "q.q", MAKES_RECIPE},
    {"ShuffleDatasetV3", "input_dataset:resource, buffer_size:int64, seed:int64, seed2:int64, seed_generator:resource",
     "handle:resource", ELEMENTS "; reshuffle_each_iteration:bool=true", RECIPE, "q...q", MAKES_RECIPE},
    {"ShuffleAndRepeatDataset", "input_dataset:resource, buffer_size:int64, seed:int64, seed2:int64, count:int64",
     "handle:resource", ELEMENTS "; reshuffle_each_iteration:bool=true", RECIPE, "q....", MAKES_RECIPE},
    {"ShuffleAndRepeatDatasetV2",
     "input_dataset:resource, buffer_size:int64, seed:int64, seed2:int64, count:int64, seed_generator:resource",
     "handle:resource", ELEMENTS "; reshuffle_each_iteration:bool=true", RECIPE, "q....q", MAKES_RECIPE},
    {"MapDataset", "input_dataset:resource, other_arguments:Targuments", "handle:resource",
     FUNCTION "; use_inter_op_parallelism:bool=true; preserve_cardinality:bool=false; force_synchronous:bool=false",
     RECIPE, "q.", MAKES_RECIPE},
    {"ParallelMapDataset", "input_dataset:resource, other_arguments:Targuments, num_parallel_calls:int32",
     "handle:resource",
     FUNCTION "; use_inter_op_parallelism:bool=true; sloppy:bool=false; preserve_cardinality:bool=false", RECIPE, "q..",
     MAKES_RECIPE},
    {"ParallelMapDatasetV2", "input_dataset:resource, other_arguments:Targuments, num_parallel_calls:int64",
     "handle:resource",
     FUNCTION "; use_inter_op_parallelism:bool=true; deterministic:string=default; preserve_cardinality:bool=false; "
              "use_unbounded_threadpool:bool=false",
     RECIPE, "q..", MAKES_RECIPE},
    {"MapAndBatchDataset",
     "input_dataset:resource, other_arguments:Targuments, batch_size:int64, num_parallel_calls:int64, "
     "drop_remainder:bool",
     "handle:resource", FUNCTION "; preserve_cardinality:bool=false", RECIPE, "q....", MAKES_RECIPE},
    {"ExperimentalMapAndBatchDataset",
     "input_dataset:resource, other_arguments:Targuments, batch_size:int64, num_parallel_calls:int64, "
     "drop_remainder:bool",
     "handle:resource", FUNCTION "; preserve_cardinality:bool=false", RECIPE, "q....", MAKES_RECIPE},
    {"FlatMapDataset", "input_dataset:resource, other_arguments:Targuments", "handle:resource", FUNCTION, RECIPE, "q.",
     MAKES_RECIPE},
    {"InterleaveDataset", "input_dataset:resource, other_arguments:Targuments, cycle_length:int64, block_length:int64",
     "handle:resource", FUNCTION, RECIPE, "q...", MAKES_RECIPE},
    {"ParallelInterleaveDataset",
     "input_dataset:resource, other_arguments:Targuments, cycle_length:int64, block_length:int64, sloppy:bool, "
     "buffer_output_elements:int64, prefetch_input_elements:int64",
     "handle:resource", FUNCTION, RECIPE, "q......", MAKES_RECIPE},
    {"ParallelInterleaveDatasetV2",
     "input_dataset:resource, other_arguments:Targuments, cycle_length:int64, block_length:int64, "
     "num_parallel_calls:int64",
     "handle:resource", FUNCTION "; sloppy:bool=false", RECIPE, "q....", MAKES_RECIPE},
    {"ParallelInterleaveDatasetV3",
     "input_dataset:resource, other_arguments:Targuments, cycle_length:int64, block_length:int64, "
     "num_parallel_calls:int64",
     "handle:resource", FUNCTION "; deterministic:string=default", RECIPE, "q....", MAKES_RECIPE},
    {"ParallelInterleaveDatasetV4",
     "input_dataset:resource, other_arguments:Targuments, cycle_length:int64, block_length:int64, "
     "buffer_output_elements:int64, prefetch_input_elements:int64, num_parallel_calls:int64",
     "handle:resource", FUNCTION "; deterministic:string=default", RECIPE, "q......", MAKES_RECIPE},
    {"LegacyParallelInterleaveDatasetV2",
     "input_dataset:resource, other_arguments:Targuments, cycle_length:int64, block_length:int64, "
     "buffer_output_elements:int64, prefetch_input_elements:int64",
     "handle:resource", FUNCTION "; deterministic:string=default", RECIPE, "q.....", MAKES_RECIPE},
    {"ExperimentalParallelInterleaveDataset",
     "input_dataset:resource, other_arguments:Targuments, cycle_length:int64, block_length:int64, sloppy:bool, "
     "buffer_output_elements:int64, prefetch_input_elements:int64",
     "handle:resource", FUNCTION, RECIPE, "q......", MAKES_RECIPE},
    {"FilterDataset", "input_dataset:resource, other_arguments:Targuments", "handle:resource",
     ELEMENTS "; predicate:string; Targuments:types", RECIPE, "q.", MAKES_RECIPE},
    {"PrefetchDataset", "input_dataset:resource, buffer_size:int64", "handle:resource",
     ELEMENTS "; slack_period:int=0; legacy_autotune:bool=true; buffer_size_min:int=0", RECIPE, "q.", MAKES_RECIPE},
    {"CSVDataset", CSV, "handle:resource", ELEMENTS, RECIPE, ".........", MAKES_RECIPE},
    {"CSVDatasetV2", CSV ", exclude_cols:int64", "handle:resource", ELEMENTS, RECIPE, "..........", MAKES_RECIPE},
    {"ExperimentalCSVDataset", CSV, "handle:resource", ELEMENTS, RECIPE, ".........", MAKES_RECIPE},
    {"CacheDataset", "input_dataset:resource, filename:string", "handle:resource", ELEMENTS, RECIPE, "q.",
     MAKES_RECIPE},
    {"CacheDatasetV2", "input_dataset:resource, filename:string, cache:resource", "handle:resource", ELEMENTS, RECIPE,
     "q.q", MAKES_RECIPE},
    {"FixedLengthRecordDataset",
     "filenames:string, header_bytes:int64, record_bytes:int64, footer_bytes:int64, buffer_size:int64",
     "handle:resource", "metadata:string=", RECIPE, ".....", MAKES_RECIPE},
    {"FixedLengthRecordDatasetV2",
     "filenames:string, header_bytes:int64, record_bytes:int64, footer_bytes:int64, buffer_size:int64, "
     "compression_type:string",
     "handle:resource", "metadata:string=", RECIPE, "......", MAKES_RECIPE},
    {"TFRecordDataset", "filenames:string, compression_type:string, buffer_size:int64", "handle:resource",
     "metadata:string=", RECIPE, "...", MAKES_RECIPE},
    {"TFRecordDatasetV2", "filenames:string, compression_type:string, buffer_size:int64, byte_offsets:int64",
     "handle:resource", "metadata:string=", RECIPE, "....", MAKES_RECIPE},
    {"TextLineDataset", "filenames:string, compression_type:string, buffer_size:int64", "handle:resource",
     "metadata:string=", RECIPE, "...", MAKES_RECIPE},
    {"WindowDataset", "input_dataset:resource, size:int64, shift:int64, stride:int64, drop_remainder:bool",
     "handle:resource", ELEMENTS, RECIPE, "q....", MAKES_RECIPE},
    {"UnbatchDataset", "input_dataset:resource", "handle:resource", ELEMENTS, RECIPE, "q", MAKES_RECIPE},
    {"RebatchDatasetV2", "input_dataset:resource, batch_sizes:int64, drop_remainder:bool", "handle:resource",
     "output_types:types>=1; output_shapes:shapes>=1", RECIPE, "q..", MAKES_RECIPE},
    {"UniqueDataset", "input_dataset:resource", "handle:resource", ELEMENTS, RECIPE, "q", MAKES_RECIPE},
    {"ExperimentalUniqueDataset", "input_dataset:resource", "handle:resource",
     "output_types:types>=1; output_shapes:shapes>=1", RECIPE, "q", MAKES_RECIPE},
    {"ExperimentalUnbatchDataset", "input_dataset:resource", "handle:resource", ELEMENTS, RECIPE, "q", MAKES_RECIPE},
    {"ScanDataset", "input_dataset:resource, initial_state:Tstate, other_arguments:Targuments", "handle:resource",
     FUNCTION "; Tstate:types; preserve_cardinality:bool=false; use_default_device:bool=true", RECIPE, "q..",
     MAKES_RECIPE},
    {"ExperimentalScanDataset", "input_dataset:resource, initial_state:Tstate, other_arguments:Targuments",
     "handle:resource", FUNCTION "; Tstate:types; preserve_cardinality:bool=false", RECIPE, "q..", MAKES_RECIPE},
    {"TakeWhileDataset", "input_dataset:resource, other_arguments:Targuments", "handle:resource",
     ELEMENTS "; predicate:string; Targuments:types", RECIPE, "q.", MAKES_RECIPE},
    {"ExperimentalTakeWhileDataset", "input_dataset:resource, other_arguments:Targuments", "handle:resource",
     ELEMENTS "; predicate:string; Targuments:types", RECIPE, "q.", MAKES_RECIPE},
    {"GroupByWindowDataset",
     "input_dataset:resource, key_func_other_arguments:Tkey_func_other_arguments, "
     "reduce_func_other_arguments:Treduce_func_other_arguments, "
     "window_size_func_other_arguments:Twindow_size_func_other_arguments",
     "handle:resource",
     ELEMENTS "; key_func:string; reduce_func:string; window_size_func:string; Tkey_func_other_arguments:types; "
              "Treduce_func_other_arguments:types; Twindow_size_func_other_arguments:types",
     RECIPE, "q...", MAKES_RECIPE},
    {"ExperimentalGroupByWindowDataset",
     "input_dataset:resource, key_func_other_arguments:Tkey_func_other_arguments, "
     "reduce_func_other_arguments:Treduce_func_other_arguments, "
     "window_size_func_other_arguments:Twindow_size_func_other_arguments",
     "handle:resource",
     ELEMENTS "; key_func:string; reduce_func:string; window_size_func:string; Tkey_func_other_arguments:types; "
              "Treduce_func_other_arguments:types; Twindow_size_func_other_arguments:types",
     RECIPE, "q...", MAKES_RECIPE},
    {"GroupByReducerDataset", REDUCER},
    {"ExperimentalGroupByReducerDataset", REDUCER},
    {"SnapshotDataset", "input_dataset:resource, path:string", "handle:resource",
     ELEMENTS "; compression:string=; reader_path_prefix:string=; writer_path_prefix:string=; "
              "shard_size_bytes:int=10737418240; pending_snapshot_expiry_seconds:int=86400; num_reader_threads:int=1; "
              "reader_buffer_size:int=1; num_writer_threads:int=1; writer_buffer_size:int=1; "
              "shuffle_on_read:bool=false; seed:int=0; seed2:int=0; mode:string=auto; snapshot_name:string=",
     RECIPE, "q.", MAKES_RECIPE},
    {"SnapshotDatasetV2",
     "input_dataset:resource, path:string, reader_func_other_args:Treader_func_args, "
     "shard_func_other_args:Tshard_func_args",
     "handle:resource",
     ELEMENTS "; compression:string=; reader_prefix:string=; writer_prefix:string=; hash_valid:bool=false; "
              "hash:int=0; reader_func:string; shard_func:string; Treader_func_args:types; Tshard_func_args:types",
     RECIPE, "q...", MAKES_RECIPE},
    {"DenseToSparseBatchDataset", SPARSE_BATCH},
    {"ExperimentalDenseToSparseBatchDataset", SPARSE_BATCH},
    {"ListDataset", "tensors:Tinput_types", "handle:resource", ELEMENTS "; Tinput_types:types>=1", RECIPE, ".",
     MAKES_RECIPE},
    {"ParseExampleDataset", "input_dataset:resource, num_parallel_calls:int64, dense_defaults:Tdense",
     "handle:resource",
     ELEMENTS "; sparse_keys:strings; dense_keys:strings; sparse_types:types; Tdense:types; dense_shapes:shapes; "
              "sloppy:bool=false; ragged_keys:strings=[]; ragged_value_types:types=[]; ragged_split_types:types=[]",
     RECIPE, "q..", MAKES_RECIPE},
    {"ParseExampleDatasetV2", "input_dataset:resource, num_parallel_calls:int64, dense_defaults:Tdense",
     "handle:resource",
     ELEMENTS
     "; sparse_keys:strings; dense_keys:strings; sparse_types:types; Tdense:types; dense_shapes:shapes; "
     "deterministic:string=default; ragged_keys:strings=[]; ragged_value_types:types=[]; ragged_split_types:types=[]",
     RECIPE, "q..", MAKES_RECIPE},
    {"ExperimentalParseExampleDataset", "input_dataset:resource, num_parallel_calls:int64, dense_defaults:Tdense",
     "handle:resource",
     ELEMENTS "; sparse_keys:strings; dense_keys:strings; sparse_types:types; Tdense:types; dense_shapes:shapes; "
              "sloppy:bool=false",
     RECIPE, "q..", MAKES_RECIPE},
    {"SamplingDataset", "input_dataset:resource, rate:float, seed:int64, seed2:int64", "handle:resource", ELEMENTS,
     RECIPE, "q...", MAKES_RECIPE},
    {"OptionsDataset", "input_dataset:resource", "handle:resource", ELEMENTS "; serialized_options:string", RECIPE, "q",
     MAKES_RECIPE},
    {"ModelDataset", "input_dataset:resource", "handle:resource",
     ELEMENTS "; algorithm:int=0; cpu_budget:int=0; ram_budget:int=0", RECIPE, "q", MAKES_RECIPE},
    {"OptimizeDataset", "input_dataset:resource, optimizations:string", "handle:resource",
     ELEMENTS "; optimization_configs:strings=[]", RECIPE, "q.", MAKES_RECIPE},
    {"OptimizeDatasetV2",
     "input_dataset:resource, optimizations_enabled:string, optimizations_disabled:string, "
     "optimizations_default:string",
     "handle:resource", ELEMENTS "; optimization_configs:strings=[]", RECIPE, "q...", MAKES_RECIPE},
    {"RewriteDataset", "input_dataset:resource, rewrite_name:string", "handle:resource", ELEMENTS, RECIPE, "q.",
     MAKES_RECIPE},
    {"AutoShardDataset", "input_dataset:resource, num_workers:int64, index:int64", "handle:resource",
     ELEMENTS "; auto_shard_policy:int=0; num_replicas:int=0", RECIPE, "q..", MAKES_RECIPE},
    {"ExperimentalAutoShardDataset", "input_dataset:resource, num_workers:int64, index:int64", "handle:resource",
     ELEMENTS "; auto_shard_policy:int=0", RECIPE, "q..", MAKES_RECIPE},
    {"FinalizeDataset", "input_dataset:resource", "handle:resource", ELEMENTS "; has_captured_ref:bool=false", RECIPE,
     "q", MAKES_RECIPE},
    {"PrivateThreadPoolDataset", "input_dataset:resource, num_threads:int64", "handle:resource", ELEMENTS, RECIPE, "q.",
     MAKES_RECIPE},
    {"ExperimentalPrivateThreadPoolDataset", "input_dataset:resource, num_threads:int64", "handle:resource", ELEMENTS,
     RECIPE, "q.", MAKES_RECIPE},
    {"MaxIntraOpParallelismDataset", "input_dataset:resource, max_intra_op_parallelism:int64", "handle:resource",
     ELEMENTS, RECIPE, "q.", MAKES_RECIPE},
    {"ExperimentalMaxIntraOpParallelismDataset", "input_dataset:resource, max_intra_op_parallelism:int64",
     "handle:resource", ELEMENTS, RECIPE, "q.", MAKES_RECIPE},
    {"ThreadPoolDataset", "input_dataset:resource, thread_pool:resource", "handle:resource", ELEMENTS, RECIPE, "qq",
     MAKES_RECIPE},
    {"SetStatsAggregatorDataset",
     "input_dataset:resource, stats_aggregator:resource, tag:string, counter_prefix:string", "handle:resource",
     ELEMENTS, RECIPE, "qq..", MAKES_RECIPE},
    {"LatencyStatsDataset", "input_dataset:resource, tag:string", "handle:resource", ELEMENTS, RECIPE, "q.",
     MAKES_RECIPE},
    {"BytesProducedStatsDataset", "input_dataset:resource, tag:string", "handle:resource", ELEMENTS, RECIPE, "q.",
     MAKES_RECIPE},
    {"NonSerializableDataset", "input_dataset:resource", "handle:resource", ELEMENTS, RECIPE, "q", MAKES_RECIPE},
    {"ExperimentalNonSerializableDataset", "input_dataset:resource", "handle:resource", ELEMENTS, RECIPE, "q",
     MAKES_RECIPE},
    {"AssertCardinalityDataset", "input_dataset:resource, cardinality:int64", "handle:resource", ELEMENTS, RECIPE, "q.",
     MAKES_RECIPE},
    {"AssertNextDataset", "input_dataset:resource, transformations:string", "handle:resource", ELEMENTS, RECIPE, "q.",
     MAKES_RECIPE},
    {"ExperimentalAssertNextDataset", "input_dataset:resource, transformations:string", "handle:resource", ELEMENTS,
     RECIPE, "q.", MAKES_RECIPE},
    {"IgnoreErrorsDataset", "input_dataset:resource", "handle:resource", ELEMENTS "; log_warning:bool=false", RECIPE,
     "q", MAKES_RECIPE},
    {"ExperimentalIgnoreErrorsDataset", "input_dataset:resource", "handle:resource",
     ELEMENTS "; log_warning:bool=false", RECIPE, "q", MAKES_RECIPE},
    {"RandomDataset", "seed:int64, seed2:int64", "handle:resource", ELEMENTS, RECIPE, "..", MAKES_RECIPE},
    {"RandomDatasetV2", "seed:int64, seed2:int64, seed_generator:resource", "handle:resource",
     ELEMENTS "; rerandomize_each_iteration:bool=false", RECIPE, "..q", MAKES_RECIPE},
    {"ReduceDataset", "input_dataset:resource, initial_state:Tstate, other_arguments:Targuments",
     "components:output_types", FUNCTION "; Tstate:types; use_inter_op_parallelism:bool=true", elements_shape,
     twi_not_differentiable, GIVES, "q.."},
    {"DirectedInterleaveDataset", "selector_input_dataset:resource, data_input_datasets:N*resource", "handle:resource",
     ELEMENTS "; N:int; stop_on_empty_dataset:bool=false", RECIPE, "qq", MAKES_RECIPE},
    {"ExperimentalDirectedInterleaveDataset", "selector_input_dataset:resource, data_input_datasets:N*resource",
     "handle:resource", ELEMENTS "; N:int", RECIPE, "qq", MAKES_RECIPE},
    {"IteratorV2", "", "handle:resource", ELEMENTS "; shared_name:string; container:string", RECIPE, MAKES_ITERATOR},
    {"Iterator", "", "handle:resource", ELEMENTS "; shared_name:string; container:string", RECIPE, MAKES_ITERATOR},
    {"OneShotIterator", "", "handle:resource",
     ELEMENTS "; dataset_factory:string; container:string=; shared_name:string=", RECIPE, MAKES_ITERATOR},
    {"AnonymousIterator", "", "handle:resource", ELEMENTS, RECIPE, MAKES_ITERATOR},
    {"AnonymousIteratorV2", "", "handle:resource, deleter:resource", ELEMENTS, RECIPE, MAKES_ITERATOR},
    {"AnonymousIteratorV3", "", "handle:resource", ELEMENTS, RECIPE, MAKES_ITERATOR},
    {"MakeIterator", "dataset:resource, iterator:resource", "", "", nothing_shape, NULL, STATE, "qq"},
    {"DeleteIterator", "handle:resource, deleter:resource", "", "", nothing_shape, NULL, STATE, "qq"},
    {"IteratorGetNext", "iterator:resource", "components:output_types", ELEMENTS, elements_shape,
     twi_not_differentiable, GIVES, "q"},
    {"IteratorGetNextSync", "iterator:resource", "components:output_types", ELEMENTS, elements_shape,
     twi_not_differentiable, GIVES, "q"},
    {"IteratorToStringHandle", "resource_handle:resource", "string_handle:string", "", twi_shape_scalar,
     twi_not_differentiable, STATE, "q"},
    {"IteratorFromStringHandle", "string_handle:string", "resource_handle:resource",
     "output_types:types=[]; output_shapes:shapes=[]", RECIPE, ".", MAKES_ITERATOR},
    {"IteratorFromStringHandleV2", "string_handle:string", "resource_handle:resource",
     "output_types:types=[]; output_shapes:shapes=[]", RECIPE, ".", MAKES_ITERATOR},
    {"IteratorGetNextAsOptional", "iterator:resource", "optional:variant", ELEMENTS, twi_shape_unknown, NULL,
     STATE | TWI_INPUT, "q"},
    {"DatasetToSingleElement", "dataset:resource", "components:output_types", ELEMENTS, elements_shape,
     twi_not_differentiable, GIVES, "q"},
    {"GetElementAtIndex", "dataset:resource, index:int64", "components:output_types",
     "output_types:types>=1; output_shapes:shapes>=1", at_shape, twi_not_differentiable, GIVES, "q."},
    {"DatasetCardinality", "input_dataset:resource", "cardinality:int64",
     "cardinality_options:string=", twi_shape_scalar, twi_not_differentiable, STATE, "q"},
    {"ExperimentalDatasetCardinality", "input_dataset:resource", "cardinality:int64", "", twi_shape_scalar,
     twi_not_differentiable, STATE, "q"},
    {"AnonymousSeedGenerator", "seed:int64, seed2:int64, reshuffle:bool", "handle:resource, deleter:resource", "",
     seeds_shape, NULL, STATE, MAKES_RECIPE},
    {"DeleteSeedGenerator", "handle:resource, deleter:resource", "", "", nothing_shape, NULL, STATE, "qq"},
    {"DummyMemoryCache", "", "handle:resource", "", RECIPE, MAKES_RECIPE},
    {"DummySeedGenerator", "", "handle:resource", "", RECIPE, MAKES_RECIPE},
    /* what a function is given when it is called */
    {"TowerArgument", "", "output:T", "T:type", twi_shape_unknown, NULL, TWI_STATEFUL | TWI_PLACEHOLDER},
    {"TowerVariant", "", "handle:resource", "", RECIPE, MAKES_RECIPE},
    {0},
};
