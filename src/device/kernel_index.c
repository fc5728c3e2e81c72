/* kernel_index.c - see kernel_index.h. */
#include "device/kernel_index.h"

#include "base/memory.h"
#include "device/own.h"

#include <string.h>

/* The op's rows, begun if there are none yet; NULL when out of memory. */
static twi_kernel_rows *rows_of(twi_kernel_index *index, const char *op)
{
    twi_kernel_rows *known = twi_map_get(&index->by_op, op), *begun = &index->ops[index->by_op.count];
    if (known)
        return known;
    begun->lacked = index->lacks ? index->lacks(op) : 0;
    return twi_map_put(&index->by_op, op, begun) ? begun : NULL;
}

/* How many rows an op has must be known before they are laid side by side. owners: of each row, in turn. */
static bool count_rows(twi_kernel_index *index, twi_kernel_rows **owners)
{
    const char *latest = ""; /* many rows stand behind another one of their op */
    twi_kernel_rows *of = NULL;
    for (const twi_kernel *const *family = index->families; *family; family++)
        for (const twi_kernel *row = *family; row->op; row++) {
            if (strcmp(row->op, latest) != 0)
                of = rows_of(index, latest = row->op);
            if (!of)
                return false;
            of->count++;
            of->types |= row->types ? row->types : UINT64_MAX;
            *owners++ = of;
        }
    return true;
}

static void lay_rows(twi_kernel_index *index, twi_kernel_rows *const *owners)
{
    const twi_kernel **next = index->rows;
    for (int i = 0; i < index->by_op.count; i++) {
        index->ops[i].rows = next;
        next += index->ops[i].count;
        index->ops[i].count = 0;
    }
    for (const twi_kernel *const *family = index->families; *family; family++)
        for (const twi_kernel *row = *family; row->op; row++) {
            twi_kernel_rows *of = *owners++;
            of->rows[of->count++] = row;
        }
}

twi_kernel_index *twi_kernel_index_make(const twi_kernel *const *families, uint64_t (*lacks)(const char *op))
{
    size_t total = 0;
    for (const twi_kernel *const *family = families; *family; family++)
        for (const twi_kernel *row = *family; row->op; row++)
            total++;
    twi_kernel_index *index = twi_alloc(sizeof *index);
    if (!index)
        return NULL;
    index->families = families;
    index->lacks = lacks;
    index->ops = twi_alloc_array(total + 1, sizeof *index->ops);
    index->rows = twi_alloc_array(total + 1, sizeof *index->rows);
    twi_kernel_rows **owners = twi_alloc_array(total + 1, sizeof *owners);
    bool counted = index->ops && index->rows && owners && count_rows(index, owners);
    if (counted)
        lay_rows(index, owners);
    else
        twi_kernel_index_free(index);
    twi_free(owners);
    return counted ? index : NULL;
}

void twi_kernel_index_free(twi_kernel_index *index)
{
    if (!index)
        return;
    twi_map_free(&index->by_op);
    twi_free(index->ops);
    twi_free(index->rows);
    twi_free(index);
}

const twi_kernel_rows *twi_kernel_index_find(const twi_kernel_index *index, const char *op)
{
    const twi_kernel_rows *known = twi_map_get(&index->by_op, op);
    const twi_own_op *own = known ? NULL : twi_own_find(op);
    return own ? &own->rows : known;
}
