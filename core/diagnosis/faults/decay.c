/* How the lengths of pairs change with the position.
 *
 * xPos (core/schemes/rotary/xpos.c) multiplies pair c of a query at position p by zeta_c^((p - center)/scale_base). So
 *
 *     ln|z|/ln zeta_c = (p - center)/scale_base
 *
 * is one straight line for all pairs; its slope gives scale_base whatever the centre is. */
#include "core/diagnosis/diagnosis.h"

/* ---- Are they lengths of a rotation? ---- */

/* Most evidence is distinguished from noise by a few rows. */
enum { ROWS_OF_LENGTHS = 4, WAVE_WORK = 200 };
/* Of all lengths, that may be further off. */
#define SHARE_OF_OTHERS 0.5

/* ln|z|/|in|² of each wave of a row, which is one number, or a line in ln zeta_c. */
struct lengths {
    size_t n;
    double x[PE_WAVES_READ], y[PE_WAVES_READ], weight[PE_WAVES_READ];
};

static double log_zeta(size_t c, size_t n, double gamma) { return log(((double)c / (double)n + gamma) / (1 + gamma)); }

static double gamma_of(const struct pe_model *m)
{
    const struct pe_value *config = pe_plan_config(m->plan);
    const struct pe_value *gamma = pe_field_find(config->object.fields, config->object.n, "gamma");
    return gamma ? gamma->real : 0.4;
}

/* Lengths of 0 show nothing, nor do those that f16 has no bits for. */
static void read_lengths(const struct pe_model *m, size_t n_rows, size_t i, struct lengths *l)
{
    const struct pe_evidence *e = &m->d->evidence;
    double z[3 * PE_WAVES_READ], gamma = gamma_of(m);
    double least = e->dtype == PE_F16 || e->narrow == PE_F16 ? 0x1p-14 : 0;
    size_t n = pe_wave_count(m) < PE_WAVES_READ ? pe_wave_count(m) : PE_WAVES_READ;
    pe_reading_row(m, n_rows, i, z);
    l->n = 0;
    for (size_t c = 0; c < n; c++) {
        double size = hypot(z[3 * c], z[3 * c + 1]), in2 = z[3 * c + 2];
        if (!(size > least * sqrt(in2)) || !(in2 > 0))
            continue;
        l->x[l->n] = log_zeta(c, n, gamma);
        l->y[l->n] = log(size / in2);
        l->weight[l->n++] = in2;
    }
}

/* Adds the weights of all lengths, and of those beside the line that is nearest to them. */
static void add_lengths(const struct lengths *l, double *all, double *others)
{
    double w = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (size_t c = 0; c < l->n; c++) {
        w += l->weight[c];
        x += l->weight[c] * l->x[c];
        y += l->weight[c] * l->y[c];
        xx += l->weight[c] * l->x[c] * l->x[c];
        xy += l->weight[c] * l->x[c] * l->y[c];
    }
    double spread = w * xx - x * x, slope = spread > 0 ? (w * xy - x * y) / spread : 0;
    for (size_t c = 0; c < l->n; c++)
        if (fabs(l->y[c] - y / w - slope * (l->x[c] - x / w)) > PE_LENGTH_TOLERANCE)
            *others += l->weight[c];
    *all += w;
}

bool pe_lengths_agree(const struct pe_model *m)
{
    enum pe_evidence_id id = m->d->evidence.kind->id;
    size_t n = id == PE_OF_ROTATED ? (size_t)m->plan->seq.k->n : (size_t)m->d->belief.n, waves = pe_wave_count(m);
    double all = 0, others = 0, all_passed = 0, others_passed = 0;
    struct lengths l;
    if ((id != PE_OF_ROTATED && id != PE_OF_TABLES) || !m->has_shape || waves == 0)
        return true;
    for (size_t i = 0; i < ROWS_OF_LENGTHS && !pe_is_cancelled(); i++) {
        size_t row = (2 * i + 1) * n / (2 * ROWS_OF_LENGTHS);
        read_lengths(m, n, row, &l);
        add_lengths(&l, &all, &others);
        if (id == PE_OF_ROTATED)
            pe_reading_passed(m, n, row, &all_passed, &others_passed);
    }
    *m->work += ROWS_OF_LENGTHS * WAVE_WORK * (double)waves;
    return others <= SHARE_OF_OTHERS * all && others_passed <= SHARE_OF_OTHERS * all_passed;
}

/* ---- xPos' scale ---- */

/* Weighted sums over rows and pairs; positions are counted from `origin`, so that far ones lose no digits. */
struct sums {
    double origin, w, p, y, pp, py;
};

static void add_pair(const struct pe_reading *r, const struct pe_model *m, size_t c, double ln_zeta, size_t apart,
                     struct sums *s)
{
    for (size_t i = 0; i < r->n; i += apart) {
        double re = (double)r->re[c * r->n + i], im = (double)r->im[c * r->n + i], size = hypot(re, im);
        double w = (double)r->weight[c * r->n + i] * ln_zeta * ln_zeta;
        if (!(size > 0) || !(w > 0))
            continue;
        double p = pe_position_at(&m->plan->seq.k[0], i) - s->origin;
        double y = log(size / m->columns[0].ah) / ln_zeta;
        s->w += w;
        s->p += w * p;
        s->y += w * y;
        s->pp += w * p * p;
        s->py += w * p * y;
    }
}

/* From every so many rows. false: no length is known, or without a believed scale_base, lengths do not fall. */
static bool decay_of(const struct pe_reading *r, const struct pe_model *m, double gamma, double scale_base,
                     size_t apart, struct pe_decay *out)
{
    struct sums s = {.origin = pe_position_at(&m->plan->seq.k[0], r->n / 2)};
    for (size_t c = 0; c < r->n_waves && !pe_is_cancelled(); c++)
        add_pair(r, m, c, log_zeta(c, r->n_waves, gamma), apart, &s);
    *r->work += (double)(r->n / apart * r->n_waves) * 64;
    double spread = s.w * s.pp - s.p * s.p, slope = (s.w * s.py - s.p * s.y) / spread;
    double error = r->noise * sqrt(s.w / spread);
    bool is_free = scale_base == 0;
    if (!(s.w > 0) || (is_free && !(spread > 0 && slope > 3 * error)))
        return false;
    double base = is_free ? 1 / slope : scale_base;
    *out = (struct pe_decay){.scale_base = base, .base_error = is_free ? 3 * error / slope : 0};
    out->center = s.origin + s.p / s.w - base * s.y / s.w;
    out->center_error = 3 * base * r->noise / sqrt(s.w);
    return isfinite(base) && isfinite(out->center);
}

/* Lengths that fall show it in a few rows, and most do not: every hypothesis of several mistakes asks. */
bool pe_measured_decay(struct pe_diagnosis *d, const struct pe_model *m, double gamma, double scale_base,
                       struct pe_decay *out)
{
    enum { SOME_ROWS = 128 };
    const struct pe_reading *r = m->columns ? pe_read_waves(d, m) : NULL;
    if (!r || m->plan->seq.n_axes != 1)
        return false;
    size_t apart = r->n / SOME_ROWS;
    bool may_fall = apart < 2 || decay_of(r, m, gamma, scale_base, apart, out);
    return may_fall && decay_of(r, m, gamma, scale_base, 1, out);
}
