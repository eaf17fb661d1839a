/* Evidence: the angles of rotary tables, and their frequencies. No plan has them as numbers, but its waves show both.
 */
#include "core/diagnosis/diagnosis.h"

#include <math.h>

static enum pe_status prepare(struct pe_model *m, struct pe_error *err)
{
    if (m->columns)
        return PE_OK;
    return pe_fail(err, "/arith", "angles and frequencies are compared with exact ones; leave out arith");
}

/* ---- Angles ---- */

static void fill_angles(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    (void)t;
    pe_recipe_angles(m, row, col0, n, out);
}

#define ANGLES(name)                                                                                                   \
    const struct pe_evidence_kind pe_evidence_##name = {.id = PE_OF_ANGLES,                                            \
                                                        .like = PE_EVIDENCE_BIT(TABLES),                               \
                                                        .tensors = {#name},                                            \
                                                        .scheme = "rope",                                              \
                                                        .outputs = {"cos"},                                            \
                                                        .view = pe_view_rows,                                          \
                                                        .read = pe_tables_read,                                        \
                                                        .prepare = prepare,                                            \
                                                        .fill = fill_angles,                                           \
                                                        .phases = pe_tables_phases}
ANGLES(angles);
ANGLES(freqs);

/* ---- Frequencies ---- */

static void fill_ladder(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    (void)t;
    (void)row;
    pe_recipe_ladder(m, m->d->evidence.kind == &pe_evidence_rope_freqs, col0, n, out);
}

/* As of position 1, for the number itself: a divisor is as uncertain as its frequency, relatively. */
static void phases_of_ladder(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    double one[PE_HEAD_DIM_MAX];
    fill_ladder(m, t, row, col0, n, out);
    pe_wave_losses(m, col0, n, one);
    for (size_t j = 0; j < n; j++)
        out[j] = fabs(out[j]) * one[j];
}

static enum pe_status read_ladder(struct pe_diagnosis *d, struct pe_error *err);

#define LADDER(name, is_parameter_, output, read_)                                                                     \
    {                                                                                                                  \
        .id = PE_OF_LADDER, .is_parameter = (is_parameter_), .tensors = {name}, .scheme = "rope", .outputs = {output}, \
        .view = pe_view_rows, .read = (read_), .prepare = prepare, .fill = fill_ladder, .phases = phases_of_ladder     \
    }
const struct pe_evidence_kind pe_evidence_inv_freq = LADDER("inv_freq", true, "cos", read_ladder);
/* What GGUF files hold: by how much each frequency is divided. */
const struct pe_evidence_kind pe_evidence_rope_freqs = LADDER("rope_freqs", false, "cos", pe_tables_read);
/* inv_freq of a sinusoidal encoding, whose sines are its waves. */
static const struct pe_evidence_kind of_sinusoid = LADDER("inv_freq", true, "encoding", read_ladder);

/* An odd dim has a frequency more, or less, than half of it. */
static bool has_dim(const struct pe_diagnosis *d, uint64_t n)
{
    const struct pe_value *dim = pe_belief_given(d, "dim");
    uint64_t given = dim && dim->kind == PE_INTEGER && dim->integer > 0 ? (uint64_t)dim->integer : 0;
    return given / 2 == n || (given + 1) / 2 == n;
}

static enum pe_status read_ladder(struct pe_diagnosis *d, struct pe_error *err)
{
    uint64_t n = pe_evidence_width(&d->evidence);
    if (!pe_same(d->belief.inheritance->scheme->info.name, "sinusoidal"))
        return pe_tables_read(d, err);
    d->evidence.kind = &of_sinusoid;
    if (!pe_belief_has_sequence(d))
        pe_belief_set(d, "len", (struct pe_value){.kind = PE_INTEGER, .integer = 1});
    return has_dim(d, n) ? PE_OK : pe_belief_fix(d, "dim", 2 * n, "inv_freq", err);
}

/* ---- Memory that was never written ---- */

static bool is_infinite(const double *w, size_t c, size_t n)
{
    (void)n;
    return !isfinite(w[c]);
}

static bool is_negative(const double *w, size_t c, size_t n)
{
    (void)n;
    return w[c] < 0;
}

/* Zeros at the end, behind a positive number, are pairs that do not turn. */
static bool is_zero(const double *w, size_t c, size_t n)
{
    while (n > 0 && w[n - 1] == 0)
        n--;
    return w[c] == 0 && (c < n || n == 0 || w[n - 1] < 0);
}

static bool is_above_one(const double *w, size_t c, size_t n)
{
    (void)n;
    return w[c] > 1;
}

static bool is_no_fall(const double *w, size_t c, size_t n)
{
    (void)n;
    return c > 0 && w[c] >= w[c - 1] && w[c] != 0;
}

static const struct {
    const char *why;
    bool (*holds)(const double *w, size_t c, size_t n);
} oddities[] = {{"not_finite", is_infinite},
                {"negative", is_negative},
                {"zero", is_zero},
                {"above_one", is_above_one},
                {"not_falling", is_no_fall}};

struct pe_oddity pe_ladder_oddity(const struct pe_evidence *e)
{
    double w[PE_HEAD_DIM_MAX];
    size_t n = (size_t)e->row_len;
    if (e->kind->id != PE_OF_LADDER || e->kind == &pe_evidence_rope_freqs)
        return (struct pe_oddity){.why = NULL};
    pe_evidence_read(e, 0, 0, 0, n, w);
    for (size_t i = 0; i < sizeof oddities / sizeof *oddities; i++)
        for (size_t c = 0; c < n; c++)
            if (oddities[i].holds(w, c, n))
                return (struct pe_oddity){oddities[i].why, c, w[c]};
    return (struct pe_oddity){.why = NULL};
}
