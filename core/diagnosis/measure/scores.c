/* Scores: how they follow from queries and keys.
 *
 * Scores are linear in the softmax scale and in the factor of the bias, so both are solved for by least squares, for
 * each form: as believed, with a side that does not turn or turns the other way, with key heads in another order. A cap
 * is one unknown more, for Gauss, Newton and Levenberg. Nothing of a scheme is written here: the columns of the fit are
 * numbers of plans.
 *
 * Where no form fits, the queries may stand elsewhere. Moved on by t positions, a score is a sum over pairs,
 * A·cos(w·t) + B·sin(w·t), so some tens of numbers are compared at every t, and all numbers of the sample at the few
 * that are nearest. */
#include "core/attention/attention.h"
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/maps.h"

#include <stdlib.h>

enum unknown { SCALE, BIAS, CAP, N_UNKNOWNS };

struct numbers {
    const struct pe_sample *sample;
    bool are_probs, has_bias;
    size_t n, n_used;           /* of the sample; those that are known on both sides */
    double noise;               /* that right scores may have, as a share */
    double *y;                  /* [n], NaN: not known */
    double *content, *bias;     /* [n] at a softmax scale and a factor of the bias as believed */
    double *column[N_UNKNOWNS]; /* [n] derivatives */
    double *left;               /* [n] y less what is predicted */
};

/* ---- The numbers ---- */

static bool open_numbers(struct pe_diagnosis *d, struct numbers *n)
{
    const struct pe_judge judge = pe_judge_of(&d->evidence, false);
    *n = (struct numbers){.sample = &d->sample,
                          .are_probs = judge.are_probs,
                          .has_bias = pe_evidence_is_output(d, "bias"),
                          .n = d->sample.n,
                          .noise = 16 * judge.u + (judge.are_probs ? 1e-4 : 2e-5)};
    n->y = malloc((4 + N_UNKNOWNS) * (n->n + 1) * sizeof *n->y);
    d->no_memory |= !n->y;
    if (!n->y)
        return false;
    n->content = n->y + n->n;
    n->bias = n->content + n->n;
    n->left = n->bias + n->n;
    for (size_t i = 0; i < N_UNKNOWNS; i++)
        n->column[i] = n->left + (i + 1) * n->n;
    for (size_t i = 0; i < n->n; i++) {
        double x = d->sample.found[i];
        n->y[i] = !n->are_probs ? x : x > 0x1p-20 ? log(x) : (double)NAN;
        n->y[i] = isfinite(n->y[i]) ? n->y[i] : (double)NAN;
    }
    return true;
}

/* The scores of an edit under a form, without a cap. */
static bool predict(struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_scores_form *form,
                    bool without_bias, double *out)
{
    struct pe_edit changed = *edit;
    changed.n_owned = 0;
    for (size_t i = 0; i < PE_N_OPERANDS; i++)
        if (form->sides[i])
            changed.transforms.sides[i] = form->sides[i];
    changed.transforms.is_tiled |= form->is_tiled;
    changed.transforms.moved = form->moved;
    if (pe_edit_has(d, edit, "softcap"))
        pe_edit_remove(&changed, "softcap");
    if (without_bias)
        changed.transforms.bias = PE_BIAS_MISSING;
    return pe_sample_scores(d, changed, out) && !pe_is_cancelled();
}

static bool fill_columns(struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_scores_form *form,
                         struct numbers *n)
{
    if (!predict(d, edit, form, false, n->bias) || (n->has_bias && !predict(d, edit, form, true, n->content)))
        return false;
    n->n_used = 0;
    for (size_t i = 0; i < n->n; i++) {
        double all = n->bias[i];
        n->content[i] = n->has_bias ? n->content[i] : all;
        n->bias[i] = n->has_bias ? all - n->content[i] : 0;
        n->n_used += isfinite(n->y[i]) && isfinite(all) ? 1 : 0;
    }
    return n->n_used > 1;
}

static bool is_used(const struct numbers *n, size_t i) { return isfinite(n->y[i]) && isfinite(n->content[i]); }

/* Logarithms of probabilities are scores but for one number of their row: the mean of the piece takes its place. */
static void centre(const struct numbers *n, double *x)
{
    for (size_t p = 0; n->are_probs && p < n->sample->n_pieces; p++) {
        size_t at = n->sample->pieces[p].at, end = at + n->sample->pieces[p].n, m = 0;
        double sum = 0;
        for (size_t i = at; i < end; i++)
            if (is_used(n, i)) {
                sum += x[i];
                m++;
            }
        for (size_t i = at; m && i < end; i++)
            x[i] -= sum / (double)m;
    }
}

static double sum_of_squares(const struct numbers *n, const double *x)
{
    double sum = 0;
    for (size_t i = 0; i < n->n; i++)
        sum += is_used(n, i) ? x[i] * x[i] : 0;
    return sum;
}

/* ---- The fit ---- */

/* What remains at some values, and its derivatives by them. */
static double evaluate(const struct numbers *n, const struct pe_scores *at)
{
    for (size_t i = 0; i < n->n; i++) {
        double x = at->scale * n->content[i], t = isnan(at->cap) ? 0 : tanh(x / at->cap);
        double capped = isnan(at->cap) ? x : at->cap * t;
        n->left[i] = n->y[i] - capped - at->bias * n->bias[i];
        n->column[SCALE][i] = n->content[i] * (1 - t * t);
        n->column[BIAS][i] = n->bias[i];
        n->column[CAP][i] = capped - x * (1 - t * t); /* by the logarithm of the cap */
    }
    centre(n, n->left);
    for (size_t k = 0; k < N_UNKNOWNS; k++)
        centre(n, n->column[k]);
    return sum_of_squares(n, n->left);
}

/* The step that the normal equations of some unknowns have; by: how much it is damped. */
static void step(const struct numbers *n, const bool *is_free, double by, double *x)
{
    double a[N_UNKNOWNS][N_UNKNOWNS + 1] = {{0}};
    for (size_t i = 0; i < n->n; i++)
        for (size_t r = 0; r < N_UNKNOWNS && is_used(n, i); r++) {
            for (size_t c = 0; c < N_UNKNOWNS; c++)
                a[r][c] += n->column[r][i] * n->column[c][i];
            a[r][N_UNKNOWNS] += n->column[r][i] * n->left[i];
        }
    for (size_t r = 0; r < N_UNKNOWNS; r++)
        for (size_t c = 0; c <= N_UNKNOWNS; c++)
            if (!is_free[r] || (c < N_UNKNOWNS && !is_free[c]) || a[r][r] == 0)
                a[r][c] = c == r;
            else if (c == r)
                a[r][c] *= 1 + by;
    for (size_t r = 0; r < N_UNKNOWNS; r++) /* positive definite: no pivots */
        for (size_t below = 0; below < N_UNKNOWNS; below++) {
            double share = below != r ? a[below][r] / a[r][r] : 0;
            for (size_t c = 0; c <= N_UNKNOWNS; c++)
                a[below][c] -= share * a[r][c];
        }
    for (size_t r = 0; r < N_UNKNOWNS; r++)
        x[r] = is_free[r] ? a[r][N_UNKNOWNS] / a[r][r] : 0;
}

/* From the values of *at on. Sets its misfit. */
static void solve(struct pe_diagnosis *d, const struct numbers *n, bool is_cap_free, struct pe_scores *at)
{
    enum { STEPS = 40, STEP_WORK = 40 };
    const bool is_free[N_UNKNOWNS] = {true, n->has_bias, is_cap_free};
    double damping = is_cap_free ? 1e-2 : 0, x[N_UNKNOWNS], now = evaluate(n, at);
    for (int i = 0; i < (isnan(at->cap) ? 1 : STEPS) && !pe_is_cancelled(); i++) {
        struct pe_scores next = *at;
        d->work += STEP_WORK * (double)n->n;
        step(n, is_free, damping, x);
        next.scale += x[SCALE];
        next.bias += x[BIAS];
        next.cap *= exp(fmin(fmax(x[CAP], -1), 1));
        double then = evaluate(n, &next), gain = now - then;
        if (then <= now) {
            *at = next;
            now = then;
            damping /= 8;
        } else {
            damping = fmax(8 * damping, 1e-3);
            evaluate(n, at);
        }
        if (gain >= 0 && gain <= 1e-9 * now)
            break;
    }
    for (size_t i = 0; i < n->n; i++)
        n->left[i] = n->y[i];
    centre(n, n->left);
    at->misfit = sqrt(now / sum_of_squares(n, n->left));
}

/* Under one form: with the believed cap, then without one. Keeps what is nearer. */
static void fit_form(struct pe_diagnosis *d, const struct pe_edit *edit, struct numbers *n,
                     const struct pe_scores_form *form, struct pe_scores *best)
{
    const double caps[] = {pe_edit_real(d, edit, "softcap", (double)NAN), (double)NAN};
    if (!fill_columns(d, edit, form, n))
        return;
    bool has_cap = pe_edit_has(d, edit, "softcap");
    for (size_t i = has_cap ? 0 : 1; i < 2; i++) {
        struct pe_scores at = {.form = *form, .scale = 1, .bias = 1, .cap = caps[i]};
        solve(d, n, false, &at);
        if (at.misfit < 0.999 * best->misfit) /* not where two forms have the same numbers */
            *best = at;
    }
}

/* Of a few scales and caps the nearest. */
static struct pe_scores start_of_cap(struct pe_diagnosis *d, const struct numbers *n, const struct pe_scores *near)
{
    static const double factors[] = {1, 2, 4, 8, 16}, shares[] = {0.6, 1.05, 1.5, 2.5, 6};
    enum { N_FACTORS = sizeof factors / sizeof *factors, N_SHARES = sizeof shares / sizeof *shares, NUMBER_WORK = 60 };
    struct pe_scores best = *near;
    double most = 0, least = (double)INFINITY;
    for (size_t i = 0; i < n->n; i++)
        n->left[i] = n->y[i];
    centre(n, n->left);
    for (size_t i = 0; i < n->n; i++)
        most = is_used(n, i) ? fmax(most, fabs(n->left[i])) : most;
    for (size_t i = 0; i < N_FACTORS; i++)
        for (size_t j = 0; j < N_SHARES && !pe_is_cancelled(); j++) {
            struct pe_scores at = *near;
            at.scale *= factors[i];
            at.cap = shares[j] * most;
            double then = evaluate(n, &at);
            d->work += NUMBER_WORK * (double)n->n;
            best = then < least ? at : best;
            least = fmin(then, least);
        }
    return best;
}

/* A cap that is not the believed one, under the form that is nearest. */
static void fit_cap(struct pe_diagnosis *d, const struct pe_edit *edit, struct numbers *n, struct pe_scores *best)
{
    const struct pe_scores near = *best;
    if (!(near.misfit < 0.9) || !fill_columns(d, edit, &near.form, n))
        return;
    struct pe_scores at = start_of_cap(d, n, &near);
    solve(d, n, true, &at);
    if (at.misfit < 0.5 * best->misfit)
        *best = at;
}

/* ---- Queries elsewhere ---- */

enum { ROWS = 8, NUMBERS = 64, BEST = 6, FARTHEST = 4096 };

/* Some numbers as functions of how far their query is moved. */
struct scan {
    size_t n_pairs, n, n_rows, end[ROWS]; /* end: of the numbers of a row */
    double *a, *b;                        /* [n, n_pairs] */
    double y[NUMBERS], rest[NUMBERS];     /* rest: of channels that are not rotated */
    double *turn, *by;                    /* [2, n_pairs]: e^(i·w·t), e^(i·w) */
};

/* A row of a side, rotated as believed. */
static void load(const struct pe_plan *plan, size_t side, size_t batch, size_t head, size_t i, double *out)
{
    const struct pe_attention *t = plan->attention;
    double room[PE_HEAD_DIM_MAX];
    pe_workspace_load_rows(plan, &t->sides[side], batch, head, i, 1, room, NULL);
    pe_convert(PE_F64, out, t->a->dtype, room, t->head_dim);
}

/* The channels of a pair, as they are after rotation. */
static void channels_of(const struct pe_rotation *r, size_t block, size_t i, size_t *first, size_t *second)
{
    const struct pe_rotation_block *b = &r->blocks[block];
    *first = r->offset + (r->to_half ? b->pair0 + i : b->first + i * b->step);
    *second = *first + (r->to_half ? r->n_pairs : b->partner);
}

static void add_number(struct scan *s, const struct pe_rotation *r, double y, const double *q, const double *k)
{
    double all = 0, rotated = 0;
    for (size_t c = 0; c < r->head_dim; c++)
        all += q[c] * k[c];
    for (size_t block = 0; block < r->n_blocks; block++)
        for (size_t i = 0; i < r->blocks[block].n_pairs; i++) {
            size_t x, z, at = s->n * s->n_pairs + r->blocks[block].pair0 + i;
            channels_of(r, block, i, &x, &z);
            s->a[at] = q[x] * k[x] + q[z] * k[z];
            s->b[at] = q[x] * k[z] - q[z] * k[x];
            rotated += s->a[at];
        }
    s->y[s->n] = y;
    s->rest[s->n++] = all - rotated;
}

/* Known numbers of a piece, spread over it. */
static void add_piece(struct scan *s, const struct pe_plan *plan, const struct numbers *n, const struct pe_piece *p,
                      size_t most)
{
    const struct pe_attention *t = plan->attention;
    size_t head = p->row / t->q_len, batch = head / t->n_heads, known = 0, kv = head % t->n_heads;
    double q[PE_HEAD_DIM_MAX], k[PE_HEAD_DIM_MAX];
    for (size_t j = 0; j < p->n; j++)
        known += isfinite(n->y[p->at + j]) ? 1 : 0;
    size_t stride = known / most + 1, seen = 0, before = s->n;
    if (known < 2)
        return;
    load(plan, PE_QUERIES, batch, kv, p->row % t->q_len, q);
    kv /= t->n_heads / t->n_kv_heads;
    for (size_t j = 0; j < p->n && s->n < NUMBERS; j++)
        if (isfinite(n->y[p->at + j]) && seen++ % stride == 0) {
            load(plan, PE_KEYS, batch, kv, p->col0 + j, k);
            add_number(s, &t->turn.rotation, n->y[p->at + j], q, k);
        }
    s->end[s->n_rows] = s->n;
    s->n_rows += s->n > before;
}

static bool open_scan(struct pe_diagnosis *d, const struct pe_plan *plan, const struct numbers *n, struct scan *s)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_sample *sample = &d->sample;
    static const double one[] = {0, 1};
    const struct pe_positions at = {.n = 2, .list = one};
    size_t pieces = sample->n_pieces < ROWS ? sample->n_pieces : ROWS;
    *s = (struct scan){.n_pairs = t->turn.rotation.n_pairs};
    size_t room = 2 * (NUMBERS + 4) * s->n_pairs;
    s->a = malloc(room * sizeof *s->a);
    d->no_memory |= !s->a;
    if (!s->a)
        return false;
    s->b = s->a + NUMBERS * s->n_pairs;
    s->turn = s->b + NUMBERS * s->n_pairs;
    s->by = s->turn + 2 * s->n_pairs;
    for (size_t i = 0; i < pieces; i++)
        add_piece(s, plan, n, &sample->pieces[i * sample->n_pieces / pieces], NUMBERS / pieces);
    pe_rotate_table(&t->turn, plan, &at, t->sides[PE_QUERIES].id, 0, 2, s->turn);
    for (size_t c = 0; c < s->n_pairs; c++) { /* the second row, without its length */
        const double *row = s->turn + 2 * s->n_pairs;
        double length = hypot(row[c], row[s->n_pairs + c]);
        s->by[c] = row[c] / length;
        s->by[s->n_pairs + c] = row[s->n_pairs + c] / length;
    }
    return s->n > 1;
}

static void turn_to(struct scan *s, double t)
{
    for (size_t c = 0; c < s->n_pairs; c++) {
        double angle = atan2(s->by[s->n_pairs + c], s->by[c]) * t;
        s->turn[c] = cos(angle);
        s->turn[s->n_pairs + c] = sin(angle);
    }
}

static void turn_on(struct scan *s)
{
    for (size_t c = 0; c < s->n_pairs; c++) {
        double x = s->turn[c], z = s->turn[s->n_pairs + c];
        s->turn[c] = x * s->by[c] - z * s->by[s->n_pairs + c];
        s->turn[s->n_pairs + c] = z * s->by[c] + x * s->by[s->n_pairs + c];
    }
}

/* How alike the numbers are, but for a factor and, of probabilities, a constant of each row: 1 at most. */
static double alike(const struct scan *s, bool are_probs)
{
    double both = 0, own = 0, found = 0;
    for (size_t r = 0, i = 0; r < s->n_rows; r++) {
        double x[NUMBERS], sum_x = 0, sum_y = 0;
        size_t first = i, n = s->end[r] - first;
        for (; i < s->end[r]; i++) {
            const double *a = s->a + i * s->n_pairs, *b = s->b + i * s->n_pairs;
            x[i] = s->rest[i];
            for (size_t c = 0; c < s->n_pairs; c++)
                x[i] += a[c] * s->turn[c] + b[c] * s->turn[s->n_pairs + c];
            sum_x += are_probs ? x[i] : 0;
            sum_y += are_probs ? s->y[i] : 0;
        }
        for (size_t j = first; j < i; j++) {
            double u = x[j] - sum_x / (double)n, v = s->y[j] - sum_y / (double)n;
            both += u * v;
            own += u * u;
            found += v * v;
        }
    }
    return both > 0 ? both / sqrt(own * found) : 0;
}

/* The shifts that are most alike, best first, of n from `first` on. */
static void scan_from(struct pe_diagnosis *d, struct scan *s, bool are_probs, double first, size_t n, double *shift,
                      double *likeness)
{
    enum { EXACTLY = 256 };
    for (size_t i = 0; i < n && !pe_is_cancelled(); i++) {
        if (i % EXACTLY == 0)
            turn_to(s, first + (double)i);
        double x = alike(s, are_probs);
        d->work += 2 * (double)(s->n + 2) * (double)s->n_pairs;
        turn_on(s);
        if (x <= likeness[BEST - 1] || first + (double)i == 0)
            continue;
        size_t at = BEST - 1;
        for (; at > 0 && likeness[at - 1] < x; at--) {
            likeness[at] = likeness[at - 1];
            shift[at] = shift[at - 1];
        }
        likeness[at] = x;
        shift[at] = first + (double)i;
    }
}

/* Queries within 4096 positions of where they are believed, or of the beginning. */
static void find_shifts(struct pe_diagnosis *d, const struct pe_plan *plan, struct scan *s, bool are_probs,
                        double *shift)
{
    double likeness[BEST] = {0}, at = pe_position_at(plan->seq.q, 0);
    scan_from(d, s, are_probs, -FARTHEST, 2 * FARTHEST + 1, shift, likeness);
    if (fabs(at) > 2 * FARTHEST && at == floor(at))
        scan_from(d, s, are_probs, -at, FARTHEST, shift, likeness);
}

static void fit_shift(struct pe_diagnosis *d, const struct pe_edit *edit, struct numbers *n, struct pe_scores *best)
{
    struct pe_edit changed = *edit;
    struct pe_model *model;
    struct scan s;
    double shift[BEST] = {0};
    changed.n_owned = 0;
    if (!pe_edit_model(d, &changed, &model))
        return;
    const struct pe_attention *t = model->plan->attention;
    bool may = t->turns && t->sides[PE_QUERIES].cosines && !model->plan->scheme->magnitude &&
               !t->turn.rotation.is_tiled && model->plan->seq.n_axes == 1 && !n->has_bias;
    if (may && open_scan(d, model->plan, n, &s))
        find_shifts(d, model->plan, &s, n->are_probs, shift);
    if (may)
        free(s.a);
    pe_model_free(model);
    for (size_t i = 0; i < BEST && shift[i] != 0 && best->misfit > n->noise; i++)
        fit_form(d, edit, n, &(struct pe_scores_form){.moved = shift[i]}, best);
}

/* ---- All of it ---- */

static bool is_possible(struct pe_diagnosis *d, const struct pe_scores_form *form)
{
    bool is_rope = pe_same(d->belief.inheritance->scheme->info.name, "rope"),
         is_other = form->sides[PE_QUERIES] || form->sides[PE_KEYS];
    return (!is_other || is_rope) && (!form->is_tiled || pe_tiled_keys(d));
}

/* Bits of a number that is known within some roundings. */
static double bits_of(const struct numbers *n, double u)
{
    double m = (double)n->n_used - (n->are_probs ? (double)n->sample->n_pieces : 0);
    return m * log2(3.14159 / (4 * u + 2e-6));
}

bool pe_measure_scores(struct pe_diagnosis *d, const struct pe_edit *edit, bool is_first, struct pe_scores *out)
{
    static const struct pe_scores_form forms[] = {
        {.sides = {PE_SIDE_AS_IS, PE_SIDE_AS_IS}},
        {.sides = {PE_SIDE_STILL, PE_SIDE_AS_IS}},
        {.sides = {PE_SIDE_AS_IS, PE_SIDE_STILL}},
        {.sides = {PE_SIDE_STILL, PE_SIDE_STILL}},
        {.is_tiled = true},
        {.sides = {PE_SIDE_REVERSED, PE_SIDE_AS_IS}},
        {.sides = {PE_SIDE_AS_IS, PE_SIDE_REVERSED}},
    };
    enum { N_FORMS = sizeof forms / sizeof *forms };
    double u = pe_judge_of(&d->evidence, false).u;
    struct numbers n;
    *out = (struct pe_scores){.misfit = (double)INFINITY};
    bool is_capped_late = pe_edit_is_true(d, edit, "softcap_after_bias", false),
         may = edit->transforms.stage == PE_STAGE_AS_IS && edit->transforms.bias == PE_BIAS_AS_IS && !is_capped_late;
    if (!may || !open_numbers(d, &n))
        return false;
    for (size_t i = 0; i < (is_first ? N_FORMS : 1) && out->misfit > n.noise; i++)
        if (is_possible(d, &forms[i]))
            fit_form(d, edit, &n, &forms[i], out);
    if (out->misfit > n.noise)
        fit_cap(d, edit, &n, out);
    if (is_first && out->misfit > n.noise)
        fit_shift(d, edit, &n, out);
    if (out->form.moved != 0 && out->misfit > n.noise)
        fit_cap(d, edit, &n, out);
    out->error = fmax(u > 0x1p-20 ? 2 * u : 16 * u, 4 * out->misfit / sqrt((double)n.n_used + 1));
    out->bits = bits_of(&n, u);
    bool fits = out->misfit <= n.noise && out->scale != 0;
    free(n.y);
    return fits;
}
