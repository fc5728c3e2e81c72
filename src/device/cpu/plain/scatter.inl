/* scatter.inl - ScatterNd for one type; see typed.h. */

/* indices [n,d], updates [n,slice]: output [s_1..s_d,slice] */
static tw_status NAME(scatter_nd)(const twi_run *r)
{
    REAL *to = r->outputs[0];
    const REAL *from = r->inputs[1];
    twi_places places;
    tw_status status = twi_places_check_by_policy(r, 0, r->output_operands[0].shape, &places);
    if (status != TW_OK)
        return status;
    twi_clear(to, sizeof *to * (size_t)r->output_operands[0].elements);
    for (int64_t i = 0; i < places.count; i++) {
        int64_t at = twi_places_offset(r, 0, &places, i);
        REAL *slice = to + (at < 0 ? 0 : at);
        for (int64_t k = 0; k < places.slice && at >= 0; k++)
            slice[k] = ADD(slice[k], from[i * places.slice + k]);
    }
    return TW_OK;
}
