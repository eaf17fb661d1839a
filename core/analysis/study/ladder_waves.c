/* Cosines and sines of a ladder's angles, from the columns of the subject's own plan. */
#include "core/analysis/study/ladder_waves.h"

#include <stdlib.h>

/* Frequencies of a rotary plan are in its cosines, those of a sinusoidal one in its sines. Under `arith: float32` the
 * columns are in radians, and the ladder's own doubles are exact. */
static void read_frequencies(const struct pe_subject *subject, struct pe_wave *columns, struct pe_dd *f)
{
    const struct pe_plan *plan = subject->plan;
    struct pe_rotation rotation;
    size_t n = 0;
    bool is_rotary = subject->family == PE_ROTARY;
    if (is_rotary)
        plan->scheme->rotate(plan, &rotation, columns);
    else
        plan->scheme->columns(plan, 0, columns);
    for (size_t i = 0; n < subject->ladder.n; i++)
        if (is_rotary || pe_is_ladder_column(&columns[i]))
            f[n++] = (struct pe_dd){columns[i].fh, columns[i].fl};
    for (size_t c = 0; plan->arith == PE_ARITH_FLOAT32 && c < n; c++)
        f[c] = pe_quarter_turns(dd(subject->ladder.w[c]));
}

enum pe_status pe_ladder_waves(const struct pe_subject *subject, uint64_t n_rows, struct pe_waves **waves,
                               struct pe_error *err)
{
    size_t n = subject->ladder.n, n_columns = subject->dim > 2 * n ? subject->dim : 2 * n;
    struct pe_wave *columns = calloc(n_columns, sizeof *columns);
    struct pe_dd *f = calloc(n, sizeof *f);
    enum pe_status status = columns && f ? PE_OK : pe_no_memory(err);
    if (!status)
        read_frequencies(subject, columns, f);
    for (size_t c = 0; !status && c < 2 * n; c++)
        columns[c] = (struct pe_wave){.fh = f[c % n].hi, .fl = f[c % n].lo, .ah = 1, .quarter = c < n};
    if (!status && pe_waves_new_for(columns, 2 * n, PE_F64, n_rows, waves))
        status = pe_no_memory(err);
    free(columns);
    free(f);
    return status;
}

double pe_ladder_waves_bytes(const struct pe_subject *subject)
{
    enum { COLUMN_BYTES = 256 }; /* a prepared column, rather too much */
    double columns = 2 * (double)subject->ladder.n, width = fmax((double)subject->dim, columns);
    return width * sizeof(struct pe_wave) + columns * COLUMN_BYTES + columns / 2 * sizeof(struct pe_dd);
}
