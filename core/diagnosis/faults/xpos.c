/* Faults of xPos: the scale that multiplies queries beside their rotation. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>

/* ---- The lengths of pairs ---- */

/* How the lengths of pairs change with the position.
 *
 * xPos (core/schemes/rotary/xpos.c) multiplies pair c of a query at position p by zeta_c^((p - center)/scale_base). So
 *
 *     ln|z|/ln zeta_c = (p - center)/scale_base
 *
 * is one straight line for all pairs; its slope gives scale_base whatever the centre is. */

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

/* Lengths of 0 show nothing, nor do those that the dtype has few bits for. */
static void read_lengths(const struct pe_model *m, size_t n_rows, size_t i, struct lengths *l)
{
    const struct pe_evidence *e = &m->d->evidence;
    double z[3 * PE_WAVES_READ], gamma = gamma_of(m);
    double least = pe_real_type(e->narrow == PE_DTYPE_NONE ? e->dtype : e->narrow)->least_normal;
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
    if ((id != PE_OF_ROTATED && id != PE_OF_TABLES) || pe_evidence_is_lone(&m->d->evidence) || !m->has_shape ||
        waves == 0 || m->d->evidence.is_typed)
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

/* Each error is three standard ones. */
struct decay {
    double scale_base, base_error; /* relative */
    double center, center_error;
};

/* From every so many rows. false: no length is known, or without a believed scale_base, lengths do not fall. */
static bool decay_of(const struct pe_reading *r, const struct pe_model *m, double gamma, double scale_base,
                     size_t apart, struct decay *out)
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
    *out = (struct decay){.scale_base = base, .base_error = is_free ? 3 * error / slope : 0};
    out->center = s.origin + s.p / s.w - base * s.y / s.w;
    out->center_error = 3 * base * r->noise / sqrt(s.w);
    return isfinite(base) && isfinite(out->center);
}

/* Lengths that fall show it in a few rows, and most do not: every hypothesis of several mistakes asks. */
/* xPos' scale as the lengths of pairs have it; scale_base 0: it is measured too. false: lengths show nothing, or do not
 * fall with the position. */
static bool measure_decay(struct pe_diagnosis *d, const struct pe_model *m, double gamma, double scale_base,
                          struct decay *out)
{
    enum { SOME_ROWS = 128 };
    const struct pe_reading *r = m->columns ? pe_read_waves(d, m) : NULL;
    if (!r || m->plan->seq.n_axes != 1)
        return false;
    size_t apart = r->n / SOME_ROWS;
    bool may_fall = apart < 2 || decay_of(r, m, gamma, scale_base, apart, out);
    return may_fall && decay_of(r, m, gamma, scale_base, 1, out);
}

/* ---- The faults ---- */

#define OF_ROTATED PE_EVIDENCE_BIT(ROTATED)

static bool measure(struct pe_diagnosis *d, struct pe_edit *edit, double scale_base, struct decay *decay)
{
    struct pe_model *m;
    if (!pe_edit_model(d, edit, &m))
        return false;
    bool is_measured = m->has_shape && measure_decay(d, m, pe_edit_real(d, edit, "gamma", 0.4), scale_base, decay);
    pe_model_free(m);
    return is_measured;
}

/* The decimal with the fewest digits that is near enough. */
static double decimal(double x, double error)
{
    double whole = nearbyint(x);
    return fabs(x - whole) <= error ? whole : pe_shortest_decimal(x, error / fabs(x));
}

static bool set_scale_base(struct pe_edit *edit, double now, double wanted)
{
    pe_edit_set_real(edit, "scale_base", wanted);
    return now != wanted;
}

static bool scale_base_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    static const double usual[] = {512, 256, 1024, 128, 2048, 64, 4096, 8192};
    double now = pe_edit_real(d, edit, "scale_base", 512);
    struct decay decay;
    if (alternative < sizeof usual / sizeof *usual)
        return set_scale_base(edit, now, usual[alternative]);
    return measure(d, edit, 0, &decay) &&
           set_scale_base(edit, now, pe_shortest_decimal(decay.scale_base, decay.base_error));
}
const struct pe_fault pe_fault_scale_base_other = {
    FAULT_TEXT("scale_base_other", "size", SIZE, 3, "other scale_base",
               "The scale of xPos changes over another number of positions.",
               "scale_base is {found}; the configuration says {believed}."),
    .schemes = "xpos",
    .evidence = OF_ROTATED,
    .n_alternatives = 9,
    .apply = scale_base_other,
    .n_fits = 1,
    .fit_rank = 1};

/* 0; the words that follow the sequence; a number that is measured. */
enum { AT_0, TORCHSCALE, LUCIDRAINS, MEASURED, N_CENTERS };
static const char *const words[] = {[TORCHSCALE] = "torchscale", [LUCIDRAINS] = "lucidrains"};

static void set_center(struct pe_edit *edit, size_t alternative, double measured)
{
    if (alternative == TORCHSCALE || alternative == LUCIDRAINS)
        pe_edit_set_word(edit, "center", words[alternative]);
    else
        pe_edit_set_real(edit, "center", alternative == AT_0 ? 0 : measured);
}

static bool center_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    struct decay decay = {.center = 0};
    double now = pe_edit_real(d, edit, "center", (double)NAN);
    if (alternative == AT_0 && now == 0)
        return false;
    if ((alternative == TORCHSCALE || alternative == LUCIDRAINS) &&
        pe_edit_is_word(d, edit, "center", words[alternative]))
        return false;
    if (alternative == MEASURED) {
        if (!measure(d, edit, pe_edit_real(d, edit, "scale_base", 512), &decay))
            return false;
        decay.center = decimal(decay.center, decay.center_error);
        if (decay.center == now)
            return false;
    }
    set_center(edit, alternative, decay.center);
    return true;
}
/* A scale has two numbers, so both may be wrong together. */
const struct pe_fault pe_fault_center_other = {
    FAULT_TEXT("center_other", "size", SIZE, 3, "other centre", "The scale of xPos is 1 at another position.",
               "The scale of xPos is 1 at the position {found}; the configuration says {believed}."),
    .schemes = "xpos",
    .evidence = OF_ROTATED,
    .n_alternatives = N_CENTERS,
    .apply = center_other,
    .n_fits = 1,
    .fit_rank = 2,
    .combines_as = PE_KIND_AXES};

/* ---- The scheme ---- */

enum { TO_ROPE = MEASURED, TO_MEASURED, N_SCHEMES };

static bool forget_scale(struct pe_edit *edit)
{
    static const char *const own[] = {"scale_base", "gamma", "center"};
    pe_edit_set_word(edit, "scheme", "rope");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        pe_edit_remove(edit, own[i]);
    return true;
}

/* Both numbers are measured: the slope gives the first, and then all lengths the second. */
static bool measure_both(struct pe_diagnosis *d, struct pe_edit *edit, struct decay *decay)
{
    if (!measure(d, edit, 0, decay))
        return false;
    double base = pe_shortest_decimal(decay->scale_base, decay->base_error);
    return measure(d, edit, base, decay);
}

/* RoPE without the scale where xPos is believed, or the reverse. */
static bool scheme_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    struct decay decay = {.scale_base = 512};
    bool is_rope = pe_same(d->belief.inheritance->scheme->info.name, "rope");
    if (is_rope == (alternative == TO_ROPE) || (alternative == TO_MEASURED && !measure_both(d, edit, &decay)))
        return false;
    if (alternative == TO_ROPE)
        return forget_scale(edit);
    pe_edit_set_word(edit, "scheme", "xpos");
    pe_edit_set_real(edit, "scale_base", decay.scale_base);
    set_center(edit, alternative == TO_MEASURED ? MEASURED : alternative, decimal(decay.center, decay.center_error));
    return true;
}
const struct pe_fault pe_fault_scheme_other = {
    FAULT_TEXT(
        "scheme_other", "size", SIZE, 3, "other scheme",
        "The tensor is of another scheme, e.g. RoPE where xPos is believed.",
        "The scheme is {found}; the configuration says {believed}. xPos is RoPE with a scale that changes with the "
        "position."),
    .schemes = "rope|xpos",
    .evidence = OF_ROTATED,
    .n_alternatives = N_SCHEMES,
    .apply = scheme_other,
    .n_fits = 1,
    .fit_rank = 2};
