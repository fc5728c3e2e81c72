/* pad.inl - what mirrored pads give back to the elements they came from, for one type; see typed.h. */

/* Adds each pad to its inner element: a move backwards, that adds. */
static void NAME(add_back)(const twi_move *move, REAL *inner, const REAL *pad)
{
    int64_t at[TWI_MOVE_RANK] = {0}, from = 0, to = 0;
    for (int i = 0; i < move->rank; i++)
        if (move->axes[i].size == 0)
            return;
    for (int i = 0; i >= 0;) {
        inner[from] = ADD(inner[from], pad[to]);
        for (i = move->rank - 1; i >= 0; i--) {
            from += move->axes[i].from;
            to += move->axes[i].to;
            if (++at[i] < move->axes[i].size)
                break;
            from -= at[i] * move->axes[i].from;
            to -= at[i] * move->axes[i].to;
            at[i] = 0;
        }
    }
}

static tw_status NAME(mirror_pad_grad)(const twi_run *r)
{
    tw_shape padded = r->input_operands[0].shape, inner = r->output_operands[0].shape;
    int edge = (int)(intptr_t)r->state;
    REAL *sums = r->workspace;
    REAL *to = r->outputs[0];
    paddings p;
    tw_status status = read_paddings(r, inner, padded, edge, &p);
    if (status != TW_OK || r->output_operands[0].elements == 0)
        return status;
    memcpy(sums, r->inputs[0], sizeof *sums * (size_t)r->input_operands[0].elements);
    for (int i = 0; i < inner.rank; i++)
        for (int after = 0; after < 2; after++) {
            mirror m = mirror_of(&p, inner, padded, edge, i, after);
            NAME(add_back)(&m.move, sums + m.inner_offset, sums + m.pad_offset);
        }
    twi_move move = inner_move(&p, inner);
    twi_clear(to, sizeof *to * (size_t)r->output_operands[0].elements);
    NAME(add_back)(&move, to, sums + p.offset);
    return TW_OK;
}
