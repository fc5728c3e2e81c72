/* mirror.inl - the gradient of MirrorPad: what each element was shown as, added up in the order of the large array. */

static tw_status NAME(mirror_pad_grad)(const twi_run *r)
{
    const twi_operand *dy = &r->input_operands[0], *dx = &r->output_operands[0];
    const REAL *from = r->inputs[0];
    REAL *to = r->outputs[0];
    mirror m;
    tw_status status = lay_mirror(r, dx->shape, dy->shape, &m);
    if (status != TW_OK)
        return status;
    memset(to, 0, (size_t)dx->elements * sizeof *to);
    for (int64_t i = 0; i < dy->elements; i++) {
        int64_t at = mirrored(&m, i);
        to[at] = ADD(to[at], from[i]);
    }
    return TW_OK;
}
