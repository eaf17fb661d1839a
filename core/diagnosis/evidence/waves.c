/* Numbers of waves that no configuration gives.
 *
 *     recipe      cos, sin of fl(fl(p)·fl(w)), each step rounded:   w      p, product, result
 *                 f32                                               f32    f32
 *                 bf16_inv_freq, f16_inv_freq                       16 bit f32
 *                 bf16, f16                                         16 bit 16 bit
 *                 tf32                                              11 bits of w and p, else f32
 *                 …_divided, of bf16: w is fl(1/fl(fl(base)^e)), as torch's 1 / (base ** e) has it
 *     sinusoid    column j of d at position p; even columns are sines, or as the layout states:
 *                 exponent_per_column   p·base^(-j/d)
 *                 exponent_doubled      p·base^(-2j/d)
 *                 sine_only             the cosines are sines of the same angle */
#include "core/diagnosis/diagnosis.h"
#include "core/schemes/rotary/rotary.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct pe_dd half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

double pe_wave_radians(const struct pe_wave *w) { return dd_mul((struct pe_dd){w->fh, w->fl}, half_pi).hi; }

static double position_of(const struct pe_model *m, const struct pe_wave *w, uint64_t i)
{
    return pe_position_at(&m->plan->seq.k[w->axis], i);
}

/* Under `arith: float32` the columns of a plan are in radians. */
static void set_turns(struct pe_model *m)
{
    for (size_t j = 0; m->plan->arith != PE_ARITH_EXACT && j < m->n_columns; j++) {
        struct pe_wave *w = &m->columns[j];
        struct pe_dd turns = pe_quarter_turns((struct pe_dd){w->fh, w->fl});
        if (w->quarter != PE_LINEAR) {
            w->fh = turns.hi;
            w->fl = turns.lo;
        }
    }
}

static bool is_float32(double x) { return (double)(float)x == x; }

/* A ladder falls. Columns of one frequency are one pair of it, and where frequencies rise another ladder begins. The
 * exponent of the first pair is 0, so all code has its frequency as it is. Of the others the product is rounded once,
 * by a running product c times, independently of each other: 2√c are five standard deviations of their sum. A scaling
 * of positions rounds once more. */
static void set_losses(struct pe_model *m)
{
    size_t pair = 0;
    double before = 0;
    for (size_t j = 0; j < m->n_columns; j++) {
        double w = fabs(pe_wave_radians(&m->columns[j]));
        pair = w == before ? pair : w < before ? pair + 1 : 0;
        m->losses[j] =
            (struct pe_loss){.of_angle = w * pe_float32_loss(w, pair),
                             .of_step = w * 0x1p-24 * (1 + fmax(1, fmin((double)pair, 2 * sqrt((double)pair)))),
                             .is_exact = pair == 0 && is_float32(w)};
        before = w;
    }
}

/* Does float32 hold the angle? */
static bool is_exact(const struct pe_model *m, size_t j, double p)
{
    return m->losses[j].is_exact && !m->transforms.sinusoid && is_float32(p) &&
           is_float32(p * pe_wave_radians(&m->columns[j]));
}

/* Of an angle that is exact, float32's rounding of the cosine, which is in f64 tables too. */
double pe_wave_loss(const struct pe_model *m, size_t j, double p)
{
    double loss = fabs(p) * m->losses[j].of_angle;
    return is_exact(m, j, p) ? fmin(loss, 0x1p-23) : loss;
}

double pe_wave_step_loss(const struct pe_model *m, size_t j, double p)
{
    const struct pe_loss *loss = &m->losses[j];
    return is_exact(m, j, p) ? 0 : fabs(p) * (p == floor(p) ? fmin(loss->of_step, loss->of_angle) : loss->of_angle);
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
        out[j] = pe_wave_loss(m, col0 + j, p);
    }
}

void pe_wave_losses(const struct pe_model *m, size_t col0, size_t n, double *out)
{
    for (size_t j = col0; j < col0 + n; j++) {
        double w = fabs(pe_wave_radians(&m->columns[j]));
        out[j - col0] = w > 0 && !m->losses[j].is_exact ? m->losses[j].of_angle / w : 0;
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

static const struct rounding roundings[] = {[PE_RECIPE_NONE] = {PE_F64, PE_F64, false},
                                            [PE_RECIPE_F32] = {PE_F32, PE_F32, false},
                                            [PE_RECIPE_BF16_INV_FREQ] = {PE_BF16, PE_F32, false},
                                            [PE_RECIPE_F16_INV_FREQ] = {PE_F16, PE_F32, false},
                                            [PE_RECIPE_BF16] = {PE_BF16, PE_BF16, false},
                                            [PE_RECIPE_BF16_INV_FREQ_DIVIDED] = {PE_BF16, PE_F32, true},
                                            [PE_RECIPE_BF16_DIVIDED] = {PE_BF16, PE_BF16, true},
                                            [PE_RECIPE_F16] = {PE_F16, PE_F16, false},
                                            [PE_RECIPE_TF32] = {PE_F32, PE_F32, false}};

double pe_round_to_tf32(double x)
{
    enum { BITS = 11 };
    int exponent;
    if (x == 0 || !isfinite(x))
        return x;
    double fraction = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(fraction, BITS)), exponent - BITS);
}

/* Both factors of an angle. */
static double round_factor(const struct pe_model *m, double x)
{
    return m->transforms.recipe == PE_RECIPE_TF32 ? pe_round_to_tf32(x) : x;
}

/* Tables with more bits than bf16 are cosines of such angles in f32. A factor is multiplied in afterwards. */
static bool has_more_bits(const struct pe_model *m)
{
    const struct pe_evidence *e = &m->d->evidence;
    enum pe_dtype dtype = e->narrow == PE_DTYPE_NONE ? e->dtype : e->narrow;
    return e->kind->id == PE_OF_TABLES && pe_roundoff(dtype) < pe_roundoff(PE_BF16) && m->columns[0].ah == 1;
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
    double base = r->is_divided ? real_of(m, "base", 10000) : 0;
    if (!r->is_divided || !(w > 0) || !(base > 1))
        return pe_round_to(r->of_frequency, w);
    double power = pow(w, -log(pe_round_to(r->of_frequency, base)) / log(base));
    return pe_round_to(r->of_frequency, 1 / pe_round_to(r->of_frequency, power));
}

bool pe_recipe_is_of_frequencies(enum pe_recipe recipe)
{
    return roundings[recipe].of_others == PE_F32 && pe_roundoff(roundings[recipe].of_frequency) > pe_roundoff(PE_F32);
}

double pe_wave_by_recipe(const struct pe_model *m, double w)
{
    return m->transforms.recipe ? round_factor(m, round_frequency(m, w)) : w;
}

static double by_recipe(const struct pe_model *m, size_t column, double p, double frequency, int quarter)
{
    const struct rounding *r = &roundings[m->transforms.recipe];
    double fp = round_factor(m, pe_round_to(r->of_others, p)), fw = round_factor(m, round_frequency(m, frequency));
    double x = value_of(pe_round_to(r->of_others, fp * fw), quarter);
    return pe_round_to(has_more_bits(m) && r->of_others == PE_BF16 ? PE_F32 : r->of_others, x) * m->columns[column].ah;
}

/* ---- Other exponents ---- */

static double other_frequency(const struct pe_model *m, size_t column, double usual)
{
    double d = (double)m->n_columns, base = real_of(m, "base", 10000), scale = real_of(m, "angle_scale", 1);
    switch (m->transforms.sinusoid) {
    case PE_EXPONENT_PER_COLUMN: return scale * pow(base, -(double)column / d);
    case PE_EXPONENT_DOUBLED: return scale * pow(base, -2 * (double)column / d);
    case PE_SINUSOID_AS_IS:
    case PE_SINE_ONLY: break;
    }
    return usual;
}

double *pe_wave_other_frequencies(const struct pe_model *m)
{
    double *w = malloc(m->n_columns * sizeof *w);
    for (size_t j = 0; w && j < m->n_columns; j++)
        w[j] = other_frequency(m, j, pe_wave_radians(&m->columns[j]));
    return w;
}

static void fill(const struct pe_model *m, uint64_t i, uint64_t col0, size_t n, int behind, double *out)
{
    const double *other = m->transforms.sinusoid ? m->state : NULL;
    for (size_t j = 0; j < n; j++) {
        const struct pe_wave *w = &m->columns[col0 + j];
        int quarter = m->transforms.sinusoid == PE_SINE_ONLY ? w->quarter & ~1 : w->quarter - behind;
        out[j] = by_recipe(m, col0 + j, position_of(m, w, i), other ? other[col0 + j] : pe_wave_radians(w), quarter);
    }
}

void pe_wave_row(const struct pe_model *m, uint64_t i, uint64_t col0, size_t n, double *out)
{
    fill(m, i, col0, n, 0, out);
}

void pe_wave_row_at(const struct pe_model *m, double p, size_t col0, size_t n, double *out)
{
    const double *other = m->state;
    for (size_t j = col0; j < col0 + n; j++) {
        int quarter = m->transforms.sinusoid == PE_SINE_ONLY ? m->columns[j].quarter & ~1 : m->columns[j].quarter;
        out[j - col0] = by_recipe(m, j, p, other[j], quarter);
    }
}

double pe_wave_at(const struct pe_model *m, size_t j, double p, int behind)
{
    const double *other = m->transforms.sinusoid ? m->state : NULL;
    const struct pe_wave *w = &m->columns[j];
    double frequency = other ? other[j] : pe_wave_radians(w);
    int quarter = m->transforms.sinusoid == PE_SINE_ONLY ? w->quarter & ~1 : w->quarter - behind;
    return m->transforms.recipe ? by_recipe(m, j, p, frequency, quarter) : value_of(p * frequency, quarter) * w->ah;
}

/* The model's waves are the cosines. Sines have the same frequencies; the direction of rotation is their sign. */
void pe_wave_tables(const struct pe_model *m, size_t t, uint64_t i, uint64_t col0, size_t n, double *out)
{
    double direction = t == 1 ? real_of(m, "direction", 1) : 1;
    fill(m, i, col0, n, t == 1, out);
    for (size_t j = 0; direction < 0 && j < n; j++)
        out[j] = -out[j];
}

/* ---- Angles and frequencies ---- */

void pe_wave_angles(const struct pe_model *m, uint64_t i, uint64_t col0, size_t n, double *out)
{
    const struct rounding *r = &roundings[m->transforms.recipe];
    double direction = real_of(m, "direction", 1);
    for (size_t j = 0; j < n; j++) {
        const struct pe_wave *w = &m->columns[col0 + j];
        double p = round_factor(m, pe_round_to(r->of_others, position_of(m, w, i))),
               f = round_factor(m, round_frequency(m, pe_wave_radians(w)));
        out[j] = pe_round_to(r->of_others, direction * (p * f));
    }
}

void pe_wave_ladder(const struct pe_model *m, bool as_divisors, uint64_t col0, size_t n, double *out)
{
    double base = real_of(m, "base", 10000), pairs = (double)m->n_columns;
    for (size_t j = 0; j < n; j++) {
        const struct pe_wave *wave = &m->columns[col0 + j];
        double w =
            pe_wave_radians(wave) / pe_coordinate_unit(m->plan, wave->axis); /* without the last step of coordinates */
        double x = as_divisors ? pow(base, -(double)(col0 + j) / pairs) / w : w;
        out[j] = round_frequency(m, m->transforms.inverted ? 1 / x : x);
    }
}

/* ---- Rows of cosines and sines ---- */

/* The cosines and sines that rotate a tensor: of one position, or of all of them, kept. */

static void exchange(double *row, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        double x = row[c];
        row[c] = row[n + c];
        row[n + c] = x;
    }
}

/* ---- The factors of rows ----
 *
 * Each is an exponential of many digits, and thousands of hypotheses scale the same rows alike. So the factors of a row
 * are kept at the place that its position and the parameters hash to: [key, position, a factor for each pair]. */

enum { KEPT_FACTORS = 1 << 15 };

static uint64_t mix(uint64_t h, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    h = (h ^ bits) * 0x9e3779b97f4a7c15U;
    return h ^ h >> 32;
}

static uint64_t mix_word(uint64_t h, const char *word)
{
    while (*word)
        h = mix(h, *word++);
    return h;
}

/* Every parameter but those that are known not to matter; 0: one of them is neither a number nor a word. */
static uint64_t key_of(const struct pe_plan *plan)
{
    const struct pe_value *config = pe_plan_config(plan);
    uint64_t h = plan->arith + 1;
    for (size_t i = 0; i < config->object.n; i++) {
        const struct pe_field *f = &config->object.fields[i];
        if (pe_is_among("base|inv_freq|scaling|attention_factor|layout|direction|rotary_offset|form", f->name))
            continue;
        if (f->value.kind == PE_STRING)
            h = mix_word(mix_word(h, f->name), f->value.string);
        else if (f->value.kind == PE_INTEGER || f->value.kind == PE_REAL)
            h = mix(mix_word(h, f->name), f->value.kind == PE_REAL ? f->value.real : (double)f->value.integer);
        else
            return 0;
    }
    return h | 1;
}

enum pe_status pe_factors_open(struct pe_diagnosis *d, struct pe_model *m, struct pe_failure *err)
{
    if (!m->plan->scheme->magnitude)
        return PE_OK;
    if (!d->factors && pe_diagnosis_admit(d, KEPT_FACTORS * sizeof *d->factors, err))
        return err->status;
    if (!d->factors)
        d->factors = calloc(KEPT_FACTORS, sizeof *d->factors);
    m->scale = key_of(m->plan);
    return d->factors ? PE_OK : pe_no_memory(err);
}

static void factors_at(const struct pe_model *m, uint64_t i, size_t pairs, double *factors)
{
    double p = pe_position_at(m->plan->seq.k, i), key;
    size_t room = (size_t)m->d->evidence.row_len / 2 + 2; /* as many pairs as a head can have: all slots are alike */
    uint64_t place = (mix(m->scale, p) >> 32) % (KEPT_FACTORS / room);
    double *slot = m->scale ? m->d->factors + place * room : NULL;
    memcpy(&key, &m->scale, sizeof key);
    if (slot && memcmp(slot, &key, sizeof key) == 0 && slot[1] == p) {
        memcpy(factors, slot + 2, pairs * sizeof *factors);
        return;
    }
    m->plan->scheme->magnitude(m->plan, m->d->evidence.kind->is_key, m->plan->seq.k, i, 1, factors);
    if (!slot)
        return;
    memcpy(slot, &key, sizeof key);
    slot[1] = p;
    memcpy(slot + 2, factors, pairs * sizeof *factors);
}

/* ---- Rows ---- */

void pe_rotary_row(const struct pe_model *m, uint64_t i, double *out)
{
    size_t n = m->n_columns, pairs = n / 2;
    double factors[PE_HEAD_DIM_MAX / 2];
    uint64_t at;
    const struct pe_plan *plan = pe_model_plan_at(m, i, &at);
    if (m->transforms.recipe)
        pe_wave_row(m, i, 0, n, out);
    else if (plan)
        pe_fill(plan, 0, at * n, n, out);
    for (size_t c = 0; !plan && c < n; c++)
        out[c] = (double)INFINITY;
    if (m->transforms.sin_cos_swapped)
        exchange(out, pairs);
    if (!m->plan->scheme->magnitude)
        return;
    factors_at(m, i, pairs, factors);
    for (size_t c = 0; c < n; c++)
        out[c] *= factors[c % pairs];
}

double pe_model_kept_bytes(const struct pe_model *m)
{
    bool is_rotated = m->d->evidence.kind->id == PE_OF_ROTATED;
    return is_rotated ? (double)m->plan->seq.k->n * (double)m->n_columns * sizeof *m->kept : 0;
}

enum { ROWS_BETWEEN_ASKING = 16 };

enum pe_status pe_model_keep(struct pe_model *m, struct pe_failure *err)
{
    size_t n = (size_t)m->plan->seq.k->n;
    if (m->kept || m->is_misfit || m->d->evidence.kind->id != PE_OF_ROTATED)
        return PE_OK;
    double *kept = malloc(n * m->n_columns * sizeof *kept);
    if (!kept)
        return pe_no_memory(err);
    for (size_t i = 0; i < n && !(i % ROWS_BETWEEN_ASKING == 0 && pe_is_cancelled()); i++)
        pe_rotary_row(m, i, kept + i * m->n_columns);
    m->kept = kept;
    return pe_was_cancelled() ? pe_cancelled(err) : PE_OK;
}

void pe_model_forget(struct pe_model *m)
{
    free(m->kept);
    m->kept = NULL;
}
