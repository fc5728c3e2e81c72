/* table.c - lookup tables as nodes of a graph: making, filling and asking them. */
#include "graph/graph.h"
#include "ops/build.h"

static tw_status nothing_shape(twi_inference *c)
{
    (void)c;
    return TW_OK;
}

/* A value for each key. */
static tw_status values_of(twi_inference *c, tw_shape keys, tw_shape value, tw_shape *values)
{
    *values = keys.rank < 0 || value.rank < 0 ? TW_UNKNOWN_SHAPE : keys;
    if (values->rank >= 0 && values->rank + value.rank > TW_MAX_RANK)
        return twi_fail(c->error, TW_UNIMPLEMENTED, "values have more than %d axes", TW_MAX_RANK);
    for (int i = 0; i < value.rank && values->rank >= 0; i++)
        values->dims[values->rank++] = value.dims[i];
    return TW_OK;
}

static const twi_attr *table_attr(const twi_inference *c, const char *name)
{
    tw_output table = c->sources[0];
    while (twi_op_is(table.node->op, TWI_PASSES))
        table = table.node->inputs[table.index];
    return twi_attr_find(&table.node->attrs, name);
}

/* What the table's node says of a value; a scalar where it says nothing. */
static tw_shape value_shape(const twi_inference *c)
{
    const twi_attr *shape = table_attr(c, "value_shape");
    return shape && shape->kind == TW_ATTR_SHAPE ? shape->shape : TW_SCALAR;
}

static tw_status find_shape(twi_inference *c)
{
    return values_of(c, c->inputs[1], value_shape(c), &c->outputs[0]);
}

/* A dense table is exported with its free places, in rows of keys and of values. */
static tw_status export_shape(twi_inference *c)
{
    if (table_attr(c, "initial_num_buckets")) {
        tw_shape value = value_shape(c);
        c->outputs[0] = TW_SHAPE(-1, 1);
        c->outputs[1] = TW_SHAPE(-1, value.rank < 0 ? -1 : tw_shape_elements(value));
        return TW_OK;
    }
    c->outputs[0] = TW_SHAPE(-1);
    return values_of(c, c->outputs[0], value_shape(c), &c->outputs[1]);
}

/* The two keys that TensorFlow marks free places with matter only where those are imported. */
static tw_status dense_shape(twi_inference *c)
{
    c->outputs[0] = TW_SCALAR;
    if (c->inputs[0].rank > 0)
        return twi_fail(c->error, TW_UNIMPLEMENTED, "keys that are no scalars are not supported");
    return TW_OK;
}

#define TYPES "key_dtype:type; value_dtype:type"
#define NAMES "container:string=; shared_name:string=; use_node_name_sharing:bool=false; " TYPES
#define MARKS "; value_shape:shape=[]; initial_num_buckets:int=131072; max_load_factor:float=0.8"
#define STATE TWI_STATEFUL | TWI_HOST_ONLY
#define PAIRS "table_handle:resource, keys:Tin, values:Tout"

const twi_op twi_table_ops[] = {
    {"HashTableV2", "", "table_handle:resource", NAMES, twi_shape_scalar, NULL, STATE, .makes = TWI_MAKES_TABLE},
    {"MutableHashTableV2", "", "table_handle:resource", NAMES, twi_shape_scalar, NULL, STATE, .makes = TWI_MAKES_TABLE},
    {"MutableHashTableOfTensorsV2", "", "table_handle:resource", NAMES "; value_shape:shape=[]", twi_shape_scalar, NULL,
     STATE, .makes = TWI_MAKES_TABLE},
    {"MutableDenseHashTableV2", "empty_key:key_dtype, deleted_key:key_dtype", "table_handle:resource",
     NAMES MARKS, dense_shape, NULL, STATE, .makes = TWI_MAKES_TABLE},
    {"AnonymousHashTable", "", "table_handle:resource", TYPES, twi_shape_scalar, NULL, STATE, .makes = TWI_MAKES_TABLE},
    {"AnonymousMutableHashTable", "", "table_handle:resource", TYPES, twi_shape_scalar, NULL, STATE,
     .makes = TWI_MAKES_TABLE},
    {"AnonymousMutableHashTableOfTensors", "", "table_handle:resource", TYPES "; value_shape:shape=[]",
     twi_shape_scalar, NULL, STATE, .makes = TWI_MAKES_TABLE},
    {"AnonymousMutableDenseHashTable", "empty_key:key_dtype, deleted_key:key_dtype", "table_handle:resource",
     TYPES MARKS, dense_shape, NULL, STATE, .makes = TWI_MAKES_TABLE},
    {"InitializeTableV2", "table_handle:resource, keys:Tkey, values:Tval", "", "Tkey:type; Tval:type", nothing_shape,
     NULL, STATE, "q.."},
    {"InitializeTableFromTextFileV2", "table_handle:resource, filename:string", "",
     "key_index:int; value_index:int; vocab_size:int=-1; delimiter:string=\t; offset:int=0", nothing_shape, NULL, STATE,
     "q."},
    {"InitializeTableFromDataset", "table_handle:resource, dataset:resource", "", "", nothing_shape, NULL, STATE, "qq"},
    {"LookupTableFindV2", "table_handle:resource, keys:Tin, default_value:Tout", "values:Tout", "Tin:type; Tout:type",
     find_shape, twi_not_differentiable, STATE, "q.."},
    {"LookupTableInsertV2", PAIRS, "", "Tin:type; Tout:type", nothing_shape, NULL, STATE, "q.."},
    {"LookupTableImportV2", PAIRS, "", "Tin:type; Tout:type", nothing_shape, NULL, STATE, "q.."},
    {"LookupTableRemoveV2", "table_handle:resource, keys:Tin", "", "Tin:type", nothing_shape, NULL, STATE, "q."},
    {"LookupTableSizeV2", "table_handle:resource", "size:int64", "", twi_shape_scalar, twi_not_differentiable, STATE,
     "q"},
    {"LookupTableExportV2", "table_handle:resource", "keys:Tkeys, values:Tvalues", "Tkeys:type; Tvalues:type",
     export_shape, twi_not_differentiable, STATE | TWI_MAKES_SHAPE, "q"},
    {0},
};
