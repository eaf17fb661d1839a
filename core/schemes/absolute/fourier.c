/* Fourier features: sines and cosines of coordinates, for points in space rather than positions in a sequence. With
 * D axes:
 *
 *     nerf       [x?, sin(f0 x), cos(f0 x), sin(f1 x), …], each D wide; f_k = 2^k, or evenly from 1 to 2^(L-1); times π
 *                in the paper, not in its code (Mildenhall et al. 2020, arXiv 2003.08934, equation 4)
 *     perceiver  [x?, sin(π f x), cos(π f x)?], sines and cosines axis by axis; f_k evenly from 1 to max_resolution/2;
 *                x spread over [-1, 1] (Jaegle et al. 2021, arXiv 2103.03206, section 3.2; transformers)
 *     gaussian   [cos(2π B x), sin(2π B x)], B [num_freqs, D] of N(0, sigma²) (Tancik et al. 2020, arXiv 2006.10739)
 *
 * Frequencies that are fractions times π hit zeros of the sine exactly, and B x is a sum over axes, so such phases
 * are reduced exactly (core/waves/waves.h). The others are ordinary waves (core/waves/waves.h). */
#include "core/schemes/absolute/absolute.h"

#include <stdlib.h>

enum fourier_style { NERF, PERCEIVER, GAUSSIAN };
enum { B }; /* the only input */

/* nerf: 2^47 quarter turns leave room for positions up to 16 below 2^51, and L · 2^L is an exact double. */
enum { NERF_FREQS = 10, NERF_FREQS_MAX = 48, GAUSSIAN_FREQS = 256 };

/* perceiver: so that numerators and denominators of all frequencies are exact doubles. */
#define RESOLUTION_MAX 2147483648.0 /* 2^31 */

struct fourier {
    int style;
    int64_t num_freqs;
    bool include_input, log_sampling, multiply_pi;
    int64_t num_bands;
    struct pe_reals max_resolution; /* once planned, the list below */
    bool concat_pos, sine_only;
    double sigma;
    int64_t seed;
    int arith;
    int64_t resolution[PE_AXES_MAX];
};

/* One column: x·f itself (quarter PE_LINEAR), or the sine (0) or cosine (1) of x·f or π·x·f, where x is the position on
 * the axis and f = numerator/denominator exactly. gaussian: of 2π times row `row` of b times x. */
struct feature {
    double numerator, denominator;
    int quarter;
    unsigned axis;
    size_t row;
};

struct features {
    bool times_pi;
    bool exact;   /* phases are reduced exactly, by fill(); else the features are waves */
    double *four; /* gaussian: 4·b, quarter turns per unit: [num_freqs, axes] */
    size_t n;
    struct feature *features; /* [n] */
};

static const char *const style_words[] = {[NERF] = "nerf", [PERCEIVER] = "perceiver", [GAUSSIAN] = "gaussian", NULL};

#define OF_STYLE(name_, TYPE, CTYPE, styles, ...)                                                                      \
    {                                                                                                                  \
        .name = #name_, .type = PE_T_##TYPE, .offset = PE_OFFSET(fourier, name_, CTYPE), .when = "style=" styles,      \
        __VA_ARGS__                                                                                                    \
    }

static const struct pe_param params[] = {
    PE_P_WORD(fourier, style, style_words, "style",
              "nerf: octaves of the coordinates; perceiver: evenly spaced frequencies; gaussian: random directions"),
    OF_STYLE(num_freqs, INT, int64_t, "nerf|gaussian", .fallback = PE_UNSET, .min = 1, .max = PE_DIM_MAX / 2.0,
             .about = {"frequencies", "frequencies; default 10 (nerf, at most 48), 256 (gaussian)"}, .level = PE_BASIC,
             .group = PE_G_FREQUENCIES, .usual = {1, 256}),
    OF_STYLE(include_input, BOOL, bool, "nerf", .fallback = 1, .max = 1,
             .about = {"include the coordinates",
                       "begin with the coordinates themselves, as NeRF's code does and its paper does not"},
             .group = PE_G_LAYOUT),
    OF_STYLE(log_sampling, BOOL, bool, "nerf", .fallback = 1, .max = 1,
             .about = {"octaves", "true: frequencies 1, 2, 4, …; false: evenly spaced from 1 to 2^(num_freqs-1)"},
             .group = PE_G_FREQUENCIES),
    OF_STYLE(multiply_pi, BOOL, bool, "nerf", .max = 1,
             .about = {"multiply by pi", "multiply angles by pi, as NeRF's paper does and its code does not"},
             .group = PE_G_FREQUENCIES),
    OF_STYLE(num_bands, INT, int64_t, "perceiver", .fallback = 64, .min = 1, .max = PE_DIM_MAX / 2.0,
             .about = {"bands", "frequencies of each axis"}, .level = PE_BASIC, .group = PE_G_FREQUENCIES,
             .usual = {1, 128}),
    OF_STYLE(
        max_resolution, REALS, struct pe_reals, "perceiver", .min = 1, .max = RESOLUTION_MAX,
        .about = {"highest resolution",
                  "an integer for each axis, whose half is the highest frequency; default the length of the axis. "
                  "The indices of a grid or a run are spread over [-1,1], linspace(-1,1,length); explicit positions "
                  "are already coordinates in [-1,1]"},
        .group = PE_G_AXES),
    OF_STYLE(concat_pos, BOOL, bool, "perceiver", .fallback = 1, .max = 1,
             .about = {"coordinates first", "begin with the coordinates themselves"}, .group = PE_G_LAYOUT),
    OF_STYLE(sine_only, BOOL, bool, "perceiver", .max = 1, .about = {"sines only", "no cosines"}, .group = PE_G_LAYOUT),
    OF_STYLE(sigma, REAL, double, "gaussian", .fallback = 1, .max = 1e6,
             .about = {"spread of the frequencies", "standard deviation of a b from the seed"}, .level = PE_BASIC,
             .group = PE_G_FREQUENCIES, .usual = {0.1, 100}),
    OF_STYLE(seed, INT, int64_t, "gaussian", .max = 0x1p53,
             .about = {"seed", "seed of a random b: N(0, sigma^2), the same on every machine"}, .level = PE_BASIC,
             .group = PE_G_WEIGHTS, .usual = {0, 99}),
    PE_P_ARITH(fourier),
    PE_P_END,
};

static const struct pe_output_row outputs[] = {
    PE_OUTPUT("encoding", "n,width", 1, PE_DTYPE_NONE, false, NULL, "encoding", "a row per position"),
    {.name = NULL},
};

static const struct pe_input_row inputs[] = {
    [B] = PE_INPUT("b", "num_freqs,axes", PE_ENCODE, false, "random directions",
                   "gaussian: the frequencies, in turns per unit; default from the seed"),
    {.name = NULL},
};

/* Also before plan() has set it. */
static uint64_t num_freqs(const struct pe_plan *plan)
{
    const struct fourier *c = plan->config;
    uint64_t sent = c->style == GAUSSIAN ? pe_weights_axis(plan, B, 0) : 0;
    uint64_t usual = c->style == GAUSSIAN ? GAUSSIAN_FREQS : NERF_FREQS;
    return sent ? sent : c->num_freqs == PE_UNSET_INT ? usual : (uint64_t)c->num_freqs;
}

static uint64_t width(const struct pe_plan *plan)
{
    const struct fourier *c = plan->config;
    uint64_t axes = plan->seq.n_axes;
    if (c->style == GAUSSIAN)
        return 2 * num_freqs(plan);
    if (c->style == NERF)
        return axes * (2 * num_freqs(plan) + c->include_input);
    return axes * ((uint64_t)c->num_bands * (c->sine_only ? 1 : 2) + c->concat_pos);
}

/* ---- Styles ---- */

/* Each checks its rules, derives parameters, and sets positions and everything in plan->tables but the features, which
 * are then added in the order of the columns. */

static void add_feature(struct features *t, unsigned axis, int quarter, double numerator, double denominator)
{
    t->features[t->n++] = (struct feature){numerator, denominator, quarter, axis, 0};
}

/* ---- nerf ---- */

static enum pe_status plan_nerf(struct pe_plan *p, struct pe_failure *err)
{
    struct fourier *c = p->config;
    struct features *t = p->tables;
    if (c->num_freqs == PE_UNSET_INT)
        c->num_freqs = NERF_FREQS;
    if (c->num_freqs > NERF_FREQS_MAX)
        return pe_fail(err, "/num_freqs", "num_freqs is %lld; allowed in style nerf: an integer from 1 to %d",
                       (long long)c->num_freqs, NERF_FREQS_MAX);
    t->times_pi = c->multiply_pi;
    t->exact = c->multiply_pi && !c->log_sampling && c->arith == PE_ARITH_EXACT;
    return PE_OK;
}

/* f_k = 2^k, or 1 + k·(2^(L-1) - 1)/(L - 1). */
static void add_nerf(const struct pe_plan *p, struct features *t)
{
    const struct fourier *c = p->config;
    unsigned axes = p->seq.n_axes;
    int last = (int)c->num_freqs - 1;
    bool even = !c->log_sampling && last > 0;
    for (unsigned a = 0; c->include_input && a < axes; a++)
        add_feature(t, a, PE_LINEAR, 1, 1);
    for (int k = 0; k <= last; k++)
        for (int quarter = 0; quarter < 2; quarter++)
            for (unsigned a = 0; a < axes; a++)
                add_feature(t, a, quarter, even ? last + k * (ldexp(1, last) - 1) : ldexp(1, k), even ? last : 1);
}

/* ---- perceiver ---- */

/* Positions in the request are coordinates. Any other sequence is spread by index, and this function returns its
 * lengths. */
static enum pe_status lengths_of(const struct pe_plan *p, double *lengths, bool *spread, struct pe_failure *err)
{
    const struct pe_sequence *seq = &p->seq;
    *spread = !p->sequence.positions.n;
    if (p->sequence.lens.n || seq->has_segments)
        return pe_fail(err, p->sequence.lens.n ? "/lens" : "/segments",
                       "style perceiver spreads a grid or a run over [-1,1]; give len, grid, or positions as "
                       "coordinates");
    if (*spread && !seq->n_grid && seq->k->start != 0)
        return pe_fail(err, "/offset",
                       "offset is not used here: style perceiver spreads the run over [-1,1], wherever it begins");
    for (unsigned a = 0; a < seq->n_axes; a++) {
        lengths[a] = (double)(seq->n_grid ? seq->grid[a] : seq->k->n);
        if (*spread && lengths[a] > RESOLUTION_MAX)
            return pe_fail(err, seq->n_grid ? "/grid" : "/len",
                           "an axis has %.0f positions; allowed in style perceiver: at most 2^31 (2147483648)",
                           lengths[a]);
    }
    return PE_OK;
}

static enum pe_status set_resolution(struct pe_plan *p, const double *lengths, struct pe_failure *err)
{
    struct fourier *c = p->config;
    struct pe_reals *list = &c->max_resolution;
    unsigned axes = p->seq.n_axes;
    enum pe_status status = PE_OK;
    if (!list->n && axes > 1 && !p->seq.n_grid)
        return pe_fail(err, "/max_resolution",
                       "max_resolution is missing; coordinates on %u axes have no lengths to derive it from", axes);
    if (list->n)
        status = pe_reals_whole(list, axes, "max_resolution", "one for each axis", c->resolution, err);
    else
        for (unsigned a = 0; a < axes; a++)
            c->resolution[a] = (int64_t)lengths[a];
    pe_reals_set(list, c->resolution, axes);
    return status;
}

static enum pe_status plan_perceiver(struct pe_plan *p, struct pe_failure *err)
{
    struct fourier *c = p->config;
    struct features *t = p->tables;
    double lengths[PE_AXES_MAX];
    bool spread;
    enum pe_status status = lengths_of(p, lengths, &spread, err);
    if (!status)
        status = set_resolution(p, lengths, err);
    for (unsigned a = 0; !status && spread && a < p->seq.n_axes; a++) {
        /* linspace(-1, 1, n) at index i is (i - (n-1)/2)·2/(n-1): the position begins at exactly -(n-1)/2, and the
         * factor goes into the frequency. A single point is at -1, as in PyTorch. */
        double n = lengths[a];
        p->seq.q[a].start = p->seq.k[a].start = n > 1 ? (1 - n) / 2 : -1;
    }
    t->times_pi = true;
    t->exact = c->arith == PE_ARITH_EXACT;
    return status;
}

/* f_k = 1 + k·(resolution/2 - 1)/(num_bands - 1), times the factor of the spread. */
static void add_perceiver(const struct pe_plan *p, struct features *t)
{
    const struct fourier *c = p->config;
    double last = (double)c->num_bands - 1, numerators[PE_AXES_MAX], denominators[PE_AXES_MAX];
    for (unsigned a = 0; a < p->seq.n_axes; a++) {
        double n = (double)(p->seq.n_grid ? p->seq.grid[a] : p->seq.k->n);
        bool factor = !p->sequence.positions.n && n > 1;
        numerators[a] = factor ? 2 : 1;
        denominators[a] = factor ? n - 1 : 1;
        if (c->concat_pos)
            add_feature(t, a, PE_LINEAR, numerators[a], denominators[a]);
    }
    for (int quarter = 0; quarter < (c->sine_only ? 1 : 2); quarter++)
        for (unsigned a = 0; a < p->seq.n_axes; a++)
            for (double k = 0; k <= last; k++) {
                double twice = last > 0 ? 2 * last + k * ((double)c->resolution[a] - 2) : 2;
                double half = 2 * (last > 0 ? last : 1);
                add_feature(t, a, quarter, numerators[a] * twice, denominators[a] * half);
            }
}

/* ---- gaussian ---- */

/* Gets b: as sent, where its shape determines num_freqs, or from the seed. */
static enum pe_status get_b(struct pe_plan *p, struct pe_failure *err)
{
    struct fourier *c = p->config;
    enum pe_status status = PE_OK;
    bool sent = pe_weights_sent(p, B);
    if (sent && (pe_plan_gave(p, "seed") || pe_plan_gave(p, "sigma")))
        return pe_fail(err, pe_plan_gave(p, "seed") ? "/seed" : "/sigma",
                       "seed and sigma make b at random, but b was sent; give one");
    if (sent)
        status = pe_fix_size(p, "num_freqs", pe_weights_axis(p, B, 0), "b", err);
    else if (c->num_freqs == PE_UNSET_INT)
        c->num_freqs = GAUSSIAN_FREQS;
    if (!status)
        status = pe_weights_need(p, B, err);
    if (sent) { /* not in use, so not in the config */
        c->sigma = PE_UNSET;
        c->seed = PE_UNSET_INT;
    }
    return status;
}

static enum pe_status plan_gaussian(struct pe_plan *p, struct pe_failure *err)
{
    struct features *t = p->tables;
    enum pe_status status = get_b(p, err);
    if (status)
        return status;
    size_t n = (size_t)((const struct fourier *)p->config)->num_freqs * p->seq.n_axes;
    t->four = calloc(n, sizeof *t->four);
    if (!t->four)
        return pe_no_memory(err);
    pe_weights_read(&p->weights[B], 0, n, t->four);
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(t->four[i]) < PE_PHASE_MAX / 4))
            return pe_fail(err, "/b", "b has %s at index %zu; allowed: finite numbers below 2^49",
                           pe_shown(t->four[i]).text, i);
        t->four[i] *= 4;
    }
    t->exact = true;
    return PE_OK;
}

static void add_gaussian(const struct pe_plan *p, struct features *t)
{
    const struct fourier *c = p->config;
    for (int quarter = 1; quarter >= 0; quarter--)
        for (size_t row = 0; row < (size_t)c->num_freqs; row++)
            t->features[t->n++] = (struct feature){.quarter = quarter, .row = row};
}

/* ---- Any style ---- */

static const struct {
    enum pe_status (*plan)(struct pe_plan *, struct pe_failure *);
    void (*add)(const struct pe_plan *, struct features *);
} styles[] = {
    [NERF] = {plan_nerf, add_nerf},
    [PERCEIVER] = {plan_perceiver, add_perceiver},
    [GAUSSIAN] = {plan_gaussian, add_gaussian},
};

static enum pe_status check_b_is_used(const struct pe_plan *p, struct pe_failure *err)
{
    const struct fourier *c = p->config;
    if (c->style == GAUSSIAN || !p->weights[B].tensor.data)
        return PE_OK;
    return pe_fail(err, "/b", "b is not used here: it needs style=gaussian");
}

static enum pe_status make_features(struct pe_plan *p, struct pe_failure *err)
{
    const struct fourier *c = p->config;
    struct features *t = p->tables;
    if (width(p) > PE_DIM_MAX)
        return pe_fail(err, "/num_bands", "num_bands %lld gives %llu columns; allowed: at most %d",
                       (long long)c->num_bands, (unsigned long long)width(p), PE_DIM_MAX);
    t->features = calloc(width(p), sizeof *t->features);
    if (!t->features)
        return pe_no_memory(err);
    styles[c->style].add(p, t);
    return PE_OK;
}

/* Quarter turns of a feature at the farthest positions. */
static double farthest_phase(const struct pe_plan *p, const struct feature *f, const double *reach)
{
    const struct features *t = p->tables;
    double sum = 0;
    if (!t->four)
        return 2 * f->numerator / f->denominator * reach[f->axis];
    for (unsigned a = 0; a < p->seq.n_axes; a++)
        sum += fabs(t->four[f->row * p->seq.n_axes + a]) * reach[a];
    return sum;
}

/* The features, each checked against the farthest position, and the random directions. */
static void fourier_cost(const struct pe_plan *p, struct pe_cost *cost)
{
    const struct fourier *c = p->config;
    double axes = p->seq.n_axes, n = (double)num_freqs(p);
    double columns = c->style == PERCEIVER ? axes * (2 * (double)c->num_bands + 1) : axes * (2 * n + 1);
    pe_cost_each(cost, fmin(columns, PE_DIM_MAX), sizeof(struct feature), 100);
    if (c->style == GAUSSIAN)
        pe_cost_weights(cost, p, B, n * axes);
}

/* Phases that are reduced exactly take a division, or products and an exact sum over the axes; arith float32 takes a
 * sine and a cosine to the last bit for each element of style gaussian. Other features are waves, in short runs. */
static void set_work(struct pe_plan *p)
{
    const struct features *t = p->tables;
    if (!t->exact) {
        p->element_work = p->arith == PE_ARITH_FLOAT32 ? 0 : 16;
        return;
    }
    p->pace = PE_SLOW;
    p->element_work = PE_SLOW_WORK;
    if (t->four)
        p->element_work = p->arith == PE_ARITH_FLOAT32 ? 1600 : 64 + 128 * (double)p->seq.n_axes;
}

static enum pe_status fourier_plan(struct pe_plan *p, struct pe_failure *err)
{
    const struct fourier *c = p->config;
    enum pe_status status = check_b_is_used(p, err);
    if (!status)
        status = styles[c->style].plan(p, err);
    if (!status)
        status = make_features(p, err);
    if (!status)
        set_work(p);
    if (status)
        return status;
    /* Checks phases like encode/outputs.c checks waves. */
    const struct features *t = p->tables;
    double reach[PE_AXES_MAX];
    for (unsigned a = 0; a < p->seq.n_axes; a++)
        reach[a] = pe_positions_largest(&p->seq.k[a]);
    for (size_t j = 0; t->exact && j < t->n; j++) {
        const struct feature *f = &t->features[j];
        double phase = f->quarter == PE_LINEAR ? 0 : farthest_phase(p, f, reach);
        if (!(phase < PE_PHASE_MAX))
            return pe_fail(err, "",
                           "the largest angle is %.3g quarter turns; allowed: below 2^51; choose smaller positions or "
                           "frequencies",
                           phase);
    }
    return PE_OK;
}

static void fourier_drop(struct pe_plan *plan)
{
    struct features *t = plan->tables;
    free(t->four);
    free(t->features);
}

/* ---- Waves ---- */

static const struct pe_dd pi = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53};

static struct pe_dd frequency(const struct features *t, const struct feature *f, bool float32)
{
    struct pe_dd w = dd_div(dd(f->numerator), dd(f->denominator));
    if (f->quarter == PE_LINEAR)
        return w;
    if (float32) /* radians, a float */
        return dd((double)(float)dd_round_odd(t->times_pi ? dd_mul(w, pi) : w));
    return t->times_pi ? dd_mul_d(w, 2) : pe_quarter_turns(w);
}

static bool columns(const struct pe_plan *plan, size_t id, struct pe_wave *columns)
{
    const struct features *t = plan->tables;
    (void)id;
    for (size_t j = 0; !t->exact && j < t->n; j++) {
        const struct feature *f = &t->features[j];
        struct pe_dd w = frequency(t, f, plan->arith == PE_ARITH_FLOAT32);
        columns[j] = (struct pe_wave){.fh = w.hi, .fl = w.lo, .ah = 1, .quarter = f->quarter, .axis = f->axis};
    }
    return !t->exact;
}

/* ---- Phases taken apart ---- */

enum { GROUP = 128 };
_Static_assert((int)PE_AXES_MAX <= (int)PE_PHASE_TERMS, "a phase is a sum over the axes");

static void store_input(enum pe_dtype dtype, const struct feature *f, double x, void *dst, size_t at)
{
    struct pe_dd v = dd_div(dd_two_prod(x, f->numerator), dd(f->denominator));
    pe_store(dtype, dst, at, dtype == PE_F64 ? v.hi : dd_round_odd(v));
}

/* Writes n ≤ GROUP columns of the row at x, from `features` on, to dst[at …]. */
static void fill_group(const struct pe_plan *plan, enum pe_dtype dtype, const struct feature *features, size_t n,
                       const double *x, void *dst, size_t at)
{
    const struct features *t = plan->tables;
    struct pe_phase phases[GROUP] = {0};
    for (size_t j = 0; j < n; j++) {
        const struct feature *f = &features[j];
        if (t->four)
            phases[j] = pe_phase_of_products(t->four + f->row * plan->seq.n_axes, x, plan->seq.n_axes);
        else /* π·x·f is 2·x·f quarter turns */
            phases[j] = pe_phase_of_fraction(x[f->axis], 2 * f->numerator, f->denominator);
        phases[j].whole += f->quarter;
    }
    pe_phases_fill(dtype, phases, n, dst, at);
    for (size_t j = 0; j < n; j++)
        if (features[j].quarter == PE_LINEAR)
            store_input(dtype, &features[j], x[features[j].axis], dst, at + j);
}

/* float32, gaussian: (2π·x)·B as the authors write it, every product and sum rounded to f32. */
static void fill_group_float32(const struct pe_plan *plan, enum pe_dtype dtype, const struct feature *features,
                               size_t n, const double *x, void *dst, size_t at)
{
    const struct features *t = plan->tables;
    for (size_t j = 0; j < n; j++) {
        const double *four = t->four + features[j].row * plan->seq.n_axes;
        float angle = 0, values[2];
        for (unsigned a = 0; a < plan->seq.n_axes; a++)
            angle += (float)0x1.921fb54442d18p+2 * (float)x[a] * (float)(four[a] / 4);
        pe_sincos_f32((double)angle, &values[1], &values[0]);
        pe_store(dtype, dst, at + j, (double)values[features[j].quarter]);
    }
}

static void fourier_fill(const struct pe_plan *plan, const struct pe_output *output, size_t id,
                         const struct pe_block *b, void *dst)
{
    const struct features *t = plan->tables;
    bool float32 = plan->arith == PE_ARITH_FLOAT32;
    (void)id;
    for (uint64_t i = 0; i < b->n_rows; i++) {
        double x[PE_AXES_MAX];
        for (unsigned a = 0; a < plan->seq.n_axes; a++)
            x[a] = pe_position_at(&plan->seq.k[a], b->row0 + i);
        for (uint64_t j = 0; j < b->n_cols; j += GROUP) {
            size_t n = b->n_cols - j < GROUP ? (size_t)(b->n_cols - j) : GROUP;
            (float32 ? fill_group_float32 : fill_group)(plan, output->dtype, t->features + b->col0 + j, n, x, dst,
                                                        (size_t)(i * b->n_cols + j));
        }
    }
}

/* ---- One number ---- */

/* θ = 2π·Σ b[row, a]·x[a], in the order of the authors' code. */
static struct pe_dd state_direction(const struct pe_plan *plan, const struct feature *f, uint64_t i,
                                    struct pe_derivation *d)
{
    static const char *const symbols[PE_AXES_MAX] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"};
    const struct features *t = plan->tables;
    struct pe_dd sum = dd(0), turn = pe_derived_round(d, PE_F32, dd_mul_d(pi, 2));
    for (unsigned a = 0; a < plan->seq.n_axes; a++) {
        double x = pe_position_at(&plan->seq.k[a], i), b = t->four[f->row * plan->seq.n_axes + a] / 4;
        struct pe_dd at = pe_derived_round(d, PE_F32, dd_mul(turn, pe_derived_round(d, PE_F32, dd(x))));
        at = pe_derived_round(d, PE_F32, dd_mul(at, pe_derived_round(d, PE_F32, dd(b))));
        at = pe_derived(d, symbols[a], at, "2π·x[%u]·b[%zu, %u] = 2π·%s·%s", a, f->row, a, pe_shown(x).text,
                        pe_shown(b).text);
        sum = pe_derived_round(d, PE_F32, dd_add(sum, at));
    }
    return pe_derived(d, "θ", sum, "Σ");
}

/* θ = w·p, where a style that spreads the axis has counted p from its middle and put the step into w. */
static struct pe_dd state_band(const struct pe_plan *plan, const struct feature *f, double p, struct pe_derivation *d)
{
    const struct fourier *c = plan->config;
    const struct features *t = plan->tables;
    double n = (double)(plan->seq.n_grid ? plan->seq.grid[f->axis] : plan->seq.k->n);
    bool is_spread = c->style == PERCEIVER && !plan->sequence.positions.n && n > 1;
    struct pe_dd w = dd_div(dd(f->numerator), dd(f->denominator));
    if (is_spread) {
        pe_derived(d, "x", pe_derived_round(d, PE_F32, dd_div(dd(2 * p), dd(n - 1))), "2·p/(n − 1) = 2·%s/%s",
                   pe_shown(p).text, pe_shown(n - 1).text);
        pe_derived_says(d, "the index from the middle, %s, spread over [−1, 1]", pe_shown(p).text);
    }
    struct pe_dd band = is_spread ? dd_div(dd_mul_d(w, n - 1), dd(2)) : w;
    pe_derived(d, "f", pe_derived_round(d, PE_F32, band), "%s", "");
    pe_derived_says(d, "the frequency of this column");
    w = pe_derived_round(d, PE_F32, t->times_pi ? dd_mul(w, pi) : w);
    if (is_spread)
        w = pe_derived(d, "w", w, "2·π·f/(n − 1)");
    else if (t->times_pi)
        w = pe_derived(d, "w", w, "π·f");
    return pe_derived(d, "θ", pe_derived_angle(d, dd(p), w, 0), "%s·%s", pe_shown(p).text, d->at[d->n - 1].symbol);
}

static enum pe_status derive(const struct pe_plan *plan, size_t id, const struct pe_address *at,
                             struct pe_derivation *d, struct pe_failure *err)
{
    const struct features *t = plan->tables;
    const struct feature *f = &t->features[at->col];
    double p = pe_position_at(&plan->seq.k[f->axis], at->row);
    (void)id;
    enum pe_rungs rungs = pe_recipes[d->recipe].rungs;
    if (rungs == PE_RUNGS_DIVISOR || rungs == PE_RUNGS_PRODUCT)
        return pe_fail(err, "/recipe", "recipe %s is of a ladder of frequencies, and fourier has none",
                       pe_recipes[d->recipe].name);
    if (f->quarter == PE_LINEAR) {
        pe_derived(d, "x", pe_derived_round(d, PE_F32, dd_div(dd_two_prod(p, f->numerator), dd(f->denominator))),
                   "%s·%s/%s", pe_shown(p).text, pe_shown(f->numerator).text, pe_shown(f->denominator).text);
        pe_derived_says(d, "the coordinate itself, of axis %u", f->axis);
        return PE_OK;
    }
    pe_derived_case(d, "%llu → %s", (unsigned long long)at->col, f->quarter ? "cos" : "sin");
    if (t->four)
        pe_derived_says(
            d, f->quarter ? "the column has the cosine of direction %zu" : "the column has the sine of direction %zu",
            f->row);
    else
        pe_derived_says(d, f->quarter ? "the column has a cosine of axis %u" : "the column has a sine of axis %u",
                        f->axis);
    struct pe_dd angle = t->four ? state_direction(plan, f, at->row, d) : state_band(plan, f, p, d);
    pe_derived(d, f->quarter ? "cos θ" : "sin θ", pe_derived_sine(d, angle, f->quarter), "%s", "");
    return PE_OK;
}

static const struct pe_formula_line formula[] = {
    {"I = { A if style is nerf and include_input or style is perceiver and concat_pos; 0 }",
     "the number of channels that are the coordinates themselves"},
    {"t = j - I", "the number of the wave"},
    {"a = { t mod A if style is nerf; floor(t/num_bands) mod A }", "its axis"},
    {"i = { floor(t/(2*A)) if style is nerf; t mod num_bands }", "its band"},
    {"u = { floor(t/A) mod 2 if style is nerf; floor(t/(A*num_bands)) if style is perceiver; 1 if j < num_freqs; 0 }",
     "0: a sine; 1: a cosine"},
    {"f = { 1 if i = 0; 2^i if style is nerf and log_sampling; 1 + i*(2^(num_freqs - 1) - 1)/(num_freqs - 1) if style "
     "is nerf; 1 + i*(max_resolution[a]/2 - 1)/(num_bands - 1) }",
     "the band's frequency: octaves, or even steps up to the largest"},
    {"g = { pi*f if multiply_pi or style is perceiver; f }",
     "radians per unit of the coordinate; perceiver spreads a run or a grid over [-1, 1]"},
    {"theta = { 2*pi*sum(e, 0, A - 1, b[j mod num_freqs, e]*x[e]) if style is gaussian; g*x[a] }",
     "the angle; gaussian has random directions b"},
    {"PE[j] = { x[j] if j < I; sin(theta) if u = 0; cos(theta) }", "the coordinates, then their waves"},
    {NULL, NULL},
};

const struct pe_scheme pe_scheme_fourier = {
    .info =
        {
            .name = "fourier",
            .family = "absolute",
            .about = {"Fourier features",
                      "sines and cosines of coordinates: NeRF's octaves, Perceiver's bands, Gaussian features"},
            .paper = "Mildenhall et al. 2020, arXiv 2003.08934; Jaegle et al. 2021, arXiv 2103.03206; Tancik et al. "
                     "2020, arXiv 2006.10739",
            .formula = formula,
            .example = "{\"scheme\":\"fourier\",\"len\":8,\"num_freqs\":4}",
            .picture = "style=perceiver&len=128&num_bands=32",
            .worked = "num_freqs=4&position=3&channel=3",
            .traps = "NeRF's paper multiplies angles by π and leaves the coordinates out; its code does "
                     "neither (`multiply_pi`, `include_input`). Perceiver spreads the indices of a grid over "
                     "[-1, 1], but takes positions that are listed as such coordinates already.",
            .params = params,
            .outputs = outputs,
            .inputs = inputs,
            .is_additive = true,
        },
    .config_bytes = sizeof(struct fourier),
    .tables_bytes = sizeof(struct features),
    .has_axes = true,
    .cost = fourier_cost,
    .plan = fourier_plan,
    .drop = fourier_drop,
    .is_slow = true,
    .width = width,
    .columns = columns,
    .fill = fourier_fill,
    .derive = derive,
};
