/* Numbers of waves that no configuration gives.
 *
 *     recipe      cos, sin of fl(fl(p)·fl(w)), each step rounded:   w      p, product, result
 *                 f32                                               f32    f32
 *                 bf16_inv_freq, f16_inv_freq                       16 bit f32
 *                 bf16                                              bf16   bf16
 *                 …_divided, of bf16: w is fl(1/fl(fl(base)^e)), as torch's 1 / (base ** e) has it
 *     sinusoid    column j of d at position p; even columns are sines, or as the layout states:
 *                 exponent_per_column   p·base^(-j/d)
 *                 exponent_doubled      p·base^(-2j/d)
 *                 ladder_from_one       the angle of the pair after it
 *                 sine_only             the cosines are sines of the same angle */
#include "core/diagnosis/diagnosis.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

static const struct pe_dd half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

static double radians(const struct pe_wave *w) { return dd_mul((struct pe_dd){w->fh, w->fl}, half_pi).hi; }

static double position_of(const struct pe_model *m, const struct pe_wave *w, uint64_t i)
{
    return pe_position_at(&m->plan->seq.k[w->axis], i);
}

/* Under `arith: float32` the columns of a plan are in radians. */
static void set_turns(struct pe_model *m)
{
    for (size_t j = 0; m->plan->arith == PE_ARITH_FLOAT32 && j < m->n_columns; j++) {
        struct pe_wave *w = &m->columns[j];
        struct pe_dd turns = pe_quarter_turns((struct pe_dd){w->fh, w->fl});
        if (w->quarter != PE_LINEAR) {
            w->fh = turns.hi;
            w->fl = turns.lo;
        }
    }
}

/* A ladder falls. Columns of one frequency are one pair of it, and where frequencies rise another ladder begins. */
static void set_losses(struct pe_model *m)
{
    size_t pair = 0;
    double before = 0;
    for (size_t j = 0; j < m->n_columns; j++) {
        double w = fabs(m->columns[j].fh) * half_pi.hi;
        pair = w == before ? pair : w < before ? pair + 1 : 0;
        m->losses[j] = w * pe_float32_loss(w, pair);
        before = w;
    }
}

void pe_wave_columns(struct pe_model *m)
{
    set_turns(m);
    set_losses(m);
}

void pe_wave_phases(const struct pe_model *m, uint64_t i, uint64_t col0, size_t n, double *out)
{
    double p = 0;
    unsigned axis = UINT_MAX;
    for (size_t j = 0; j < n; j++) {
        const struct pe_wave *w = &m->columns[col0 + j];
        if (w->axis != axis)
            p = position_of(m, w, i);
        axis = w->axis;
        out[j] = fabs(p) * m->losses[col0 + j];
    }
}

void pe_wave_losses(const struct pe_model *m, size_t col0, size_t n, double *out)
{
    for (size_t j = col0; j < col0 + n; j++) {
        double w = fabs(m->columns[j].fh) * half_pi.hi;
        out[j - col0] = w > 0 ? m->losses[j] / w : 0;
    }
}

static double value_of(double angle, int quarter)
{
    switch (quarter) {
    case 0: return sin(angle);
    case 1: return cos(angle);
    case 2: return -sin(angle);
    case 3: return -cos(angle);
    default: return angle;
    }
}

/* ---- Few bits ---- */

struct rounding {
    enum pe_dtype of_frequency, of_others;
    bool is_divided;
};

static const struct rounding roundings[] = {
    [PE_RECIPE_NONE] = {PE_F64, PE_F64, false},           [PE_RECIPE_F32] = {PE_F32, PE_F32, false},
    [PE_RECIPE_BF16_INV_FREQ] = {PE_BF16, PE_F32, false}, [PE_RECIPE_F16_INV_FREQ] = {PE_F16, PE_F32, false},
    [PE_RECIPE_BF16] = {PE_BF16, PE_BF16, false},         [PE_RECIPE_BF16_INV_FREQ_DIVIDED] = {PE_BF16, PE_F32, true},
    [PE_RECIPE_BF16_DIVIDED] = {PE_BF16, PE_BF16, true}};

/* Tables with more bits than bf16 are cosines of such angles in f32. A factor is multiplied in afterwards. */
static bool has_more_bits(const struct pe_model *m)
{
    const struct pe_evidence *e = &m->d->evidence;
    return e->kind->id == PE_OF_TABLES && e->dtype != PE_BF16 && e->narrow != PE_BF16 && m->columns[0].ah == 1;
}

static const struct pe_value *config_of(const struct pe_model *m, const char *name)
{
    const struct pe_value *config = pe_plan_config(m->plan);
    for (size_t i = 0; i < config->object.n; i++)
        if (pe_same(config->object.fields[i].name, name))
            return &config->object.fields[i].value;
    return NULL;
}

static double real_of(const struct pe_model *m, const char *name, double fallback)
{
    const struct pe_value *v = config_of(m, name);
    return !v ? fallback : v->kind == PE_REAL ? v->real : v->kind == PE_INTEGER ? (double)v->integer : fallback;
}

static double round_frequency(const struct pe_model *m, double w)
{
    const struct rounding *r = &roundings[m->transforms.recipe];
    double base = real_of(m, "base", 10000);
    if (!r->is_divided || !(w > 0) || !(base > 1))
        return pe_round_to(r->of_frequency, w);
    double power = pow(w, -log(pe_round_to(r->of_frequency, base)) / log(base));
    return pe_round_to(r->of_frequency, 1 / pe_round_to(r->of_frequency, power));
}

static double by_recipe(const struct pe_model *m, size_t column, double p, double frequency, int quarter)
{
    const struct rounding *r = &roundings[m->transforms.recipe];
    double fp = pe_round_to(r->of_others, p), fw = round_frequency(m, frequency);
    double x = value_of(pe_round_to(r->of_others, fp * fw), quarter);
    return pe_round_to(has_more_bits(m) && r->of_others == PE_BF16 ? PE_F32 : r->of_others, x) * m->columns[column].ah;
}

/* ---- Other exponents ---- */

/* From one pair's frequency to the next one's. */
static double ratio_of(const struct pe_model *m)
{
    double first = radians(&m->columns[0]);
    for (size_t j = 1; j < m->n_columns; j++)
        if (fabs(radians(&m->columns[j])) < fabs(first))
            return radians(&m->columns[j]) / first;
    return 1;
}

static double other_frequency(const struct pe_model *m, size_t column, double usual)
{
    double d = (double)m->n_columns, base = real_of(m, "base", 10000), scale = real_of(m, "angle_scale", 1);
    switch (m->transforms.sinusoid) {
    case PE_EXPONENT_PER_COLUMN: return scale * pow(base, -(double)column / d);
    case PE_EXPONENT_DOUBLED: return scale * pow(base, -2 * (double)column / d);
    case PE_LADDER_FROM_ONE: return usual * ratio_of(m);
    case PE_SINUSOID_AS_IS:
    case PE_SINE_ONLY: break;
    }
    return usual;
}

double *pe_recipe_frequencies(const struct pe_model *m)
{
    double *w = malloc(m->n_columns * sizeof *w);
    for (size_t j = 0; w && j < m->n_columns; j++)
        w[j] = other_frequency(m, j, radians(&m->columns[j]));
    return w;
}

static void fill(const struct pe_model *m, uint64_t i, uint64_t col0, size_t n, int behind, double *out)
{
    const double *other = m->transforms.sinusoid ? m->state : NULL;
    for (size_t j = 0; j < n; j++) {
        const struct pe_wave *w = &m->columns[col0 + j];
        int quarter = m->transforms.sinusoid == PE_SINE_ONLY ? w->quarter & ~1 : w->quarter - behind;
        out[j] = by_recipe(m, col0 + j, position_of(m, w, i), other ? other[col0 + j] : radians(w), quarter);
    }
}

void pe_recipe_fill(const struct pe_model *m, uint64_t i, uint64_t col0, size_t n, double *out)
{
    fill(m, i, col0, n, 0, out);
}

void pe_recipe_at(const struct pe_model *m, double p, size_t col0, size_t n, double *out)
{
    const double *other = m->state;
    for (size_t j = col0; j < col0 + n; j++) {
        int quarter = m->transforms.sinusoid == PE_SINE_ONLY ? m->columns[j].quarter & ~1 : m->columns[j].quarter;
        out[j - col0] = by_recipe(m, j, p, other[j], quarter);
    }
}

/* The model's waves are the cosines. Sines have the same frequencies; the direction of rotation is their sign. */
void pe_recipe_tables(const struct pe_model *m, size_t t, uint64_t i, uint64_t col0, size_t n, double *out)
{
    double direction = t == 1 ? real_of(m, "direction", 1) : 1;
    fill(m, i, col0, n, t == 1, out);
    for (size_t j = 0; direction < 0 && j < n; j++)
        out[j] = -out[j];
}

/* ---- Angles and frequencies ---- */

void pe_recipe_angles(const struct pe_model *m, uint64_t i, uint64_t col0, size_t n, double *out)
{
    const struct rounding *r = &roundings[m->transforms.recipe];
    double direction = real_of(m, "direction", 1);
    for (size_t j = 0; j < n; j++) {
        const struct pe_wave *w = &m->columns[col0 + j];
        double p = pe_round_to(r->of_others, position_of(m, w, i)), f = round_frequency(m, radians(w));
        out[j] = pe_round_to(r->of_others, direction * (p * f));
    }
}

void pe_recipe_ladder(const struct pe_model *m, bool as_divisors, uint64_t col0, size_t n, double *out)
{
    double base = real_of(m, "base", 10000), pairs = (double)m->n_columns;
    for (size_t j = 0; j < n; j++) {
        double w = radians(&m->columns[col0 + j]);
        double x = as_divisors ? pow(base, -(double)(col0 + j) / pairs) / w : w;
        out[j] = round_frequency(m, m->transforms.inverted ? 1 / x : x);
    }
}
