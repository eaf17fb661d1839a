/* Every number of a tensor beside those that it is computed with.
 *
 * judge.c bounds what float32 may lose of a number by itself, and far from position 0 that is much. But the numbers of
 * right code are not off independently of each other, so a number that is moved alone shows:
 *
 *     length     cos and sin are of one angle, and a rotation keeps the length of a pair, whatever the angle is: with
 *                e and f the pair as predicted and as found, ||f| − |e|| is a few roundings of |e|
 *     angle      that between e and f is ε. A pair has one frequency in every row, which is off by one share, so the
 *                ε/(p·w) of all rows are one number, but for what roundings of each row's own angle and numbers may add
 *     channels   that are not rotated are copied
 *     maps       a score loses by its own query's and key's positions, not by the farthest; and in 16 bits or far from
 *                position 0, where the worst case is most of a score, the roundings of its products are independent: in
 *                the mean of squares they are far below it, and another scale, cap or rotation is not
 *
 * The roundings, v = max(u, 2^-24): tables and encodings 4v of each number (8 behind a factor), a rotated pair 8v of
 * its length. Roundings of a row's own angle: 1 + 2√c units, c the pair's number in its ladder, none where float32
 * holds the angle (evidence/waves.c). A rotated pair is exact within one rounding, its products computed in float32.
 *
 * Whether the rows of a column leave one share in common is decided by the two that leave least above and below: each
 * row allows an interval, and the largest lower end must not be above the smallest upper one. Where most rows are as
 * far off as these, none is alone: keys that were rotated twice have the roundings of both angles. */
#include "core/attention/attention.h"
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>

/* The ends of intervals that are nearest to being apart, the nearest first; whose the first are, and their ε. */
struct common {
    double low[2], high[2];
    struct pe_misfit of_low, of_high;
    double low_angle, high_angle, all_angles; /* all_angles: the sum of n */
    size_t n;
};

struct couple {
    uint32_t col[2], wave; /* of tables both columns are one, of two tensors; of a channel by itself both are it */
};

struct pe_own {
    const struct pe_model *m;
    struct pe_judge judge;
    double u, most; /* how far beyond its bound the worst is, as a multiple */
    size_t n_couples, n_waves;
    struct couple *couples;
    struct common *waves;
    bool is_exact;
    struct pe_misfit first_inexact, worst, farthest; /* farthest: of a map, as a share of the worst case */
    double farthest_share, sum_shares2;
    uint64_t n_shares;
};

/* ---- Which numbers belong together ---- */

static bool is_of_tables(const struct pe_own *o) { return o->judge.id == PE_OF_TABLES; }

/* Of rotated channels: those of one pair. */
static void couple_channels(struct pe_own *o, size_t n)
{
    uint32_t first[PE_HEAD_DIM_MAX];
    for (size_t c = 0; c < o->n_waves; c++)
        first[c] = UINT32_MAX;
    for (uint32_t j = 0; j < n; j++) {
        int pair = pe_rotated_pair(o->m, j);
        if (pair < 0)
            o->couples[o->n_couples++] = (struct couple){{j, j}, UINT32_MAX};
        else if (first[pair] == UINT32_MAX)
            first[pair] = j;
        else
            o->couples[o->n_couples++] = (struct couple){{first[pair], j}, (uint32_t)pair};
    }
}

/* A sine and a cosine of one frequency and one axis. */
static bool are_of_one_angle(const struct pe_wave *a, const struct pe_wave *b)
{
    return a->fh == b->fh && a->axis == b->axis && a->ah == b->ah && a->quarter != PE_LINEAR &&
           b->quarter != PE_LINEAR && (a->quarter ^ b->quarter) % 2;
}

static void couple_columns(struct pe_own *o, size_t n, bool *is_taken)
{
    const struct pe_wave *w = o->m->columns;
    for (uint32_t a = 0; a < n; a++) {
        uint32_t b = a + 1;
        while (!is_taken[a] && b < n && (is_taken[b] || !are_of_one_angle(&w[a], &w[b])))
            b++;
        if (is_taken[a] || b == n)
            continue; /* an odd one is judged by itself */
        is_taken[b] = true;
        o->couples[o->n_couples++] = (struct couple){{a, b}, a};
    }
}

static void couple_all(struct pe_own *o, size_t n, bool *is_taken)
{
    if (o->judge.id == PE_OF_ROTATED)
        couple_channels(o, n);
    else if (o->judge.id == PE_OF_ENCODING)
        couple_columns(o, n, is_taken);
    for (uint32_t j = 0; (is_of_tables(o) || o->judge.id == PE_OF_ANGLES) && j < n; j++)
        o->couples[o->n_couples++] = (struct couple){{j, j}, j};
}

/* Not where channels of a row are no pairs of one angle: turned tables, encodings without cosines, rows of several
 * ladders, angles without their turns, V-JEPA 2's rotation, cosines without sines. */
static bool has_couples(const struct pe_model *m)
{
    const struct pe_transforms *t = &m->transforms;
    return m->columns && m->has_shape && !t->transposed && !t->sinusoid && !m->pieces && isnan(t->wrapped_from) &&
           m->d->evidence.kind->id != PE_OF_LADDER && !pe_evidence_is_lone(&m->d->evidence) &&
           !(m->d->evidence.kind->id == PE_OF_ROTATED && !pe_rotated_keeps_lengths(m));
}

double pe_own_bytes(const struct pe_evidence *e)
{
    return (double)e->row_len * (double)(sizeof(struct couple) + sizeof(struct common) + sizeof(bool));
}

struct pe_own *pe_own_new(const struct pe_model *m, const struct pe_judge *judge)
{
    size_t n = (size_t)m->d->evidence.row_len;
    bool has = has_couples(m);
    struct pe_own *o = calloc(1, sizeof *o + (has ? n * (sizeof(struct common) + sizeof(struct couple) + 1) : 0));
    if (!o)
        return NULL;
    *o = (struct pe_own){.m = m, .judge = *judge, .u = fmax(judge->u, 0x1p-24), .most = 1, .is_exact = true};
    if (!has)
        return o;
    o->waves = (struct common *)(void *)(o + 1);
    o->couples = (struct couple *)(void *)(o->waves + n);
    o->n_waves = judge->id == PE_OF_ROTATED ? m->n_columns / 2 : m->n_columns;
    for (size_t i = 0; i < n; i++)
        o->waves[i] = (struct common){.low = {-HUGE_VAL, -HUGE_VAL}, .high = {HUGE_VAL, HUGE_VAL}};
    couple_all(o, n, (bool *)(void *)(o->couples + n));
    return o;
}

/* ---- One row ---- */

/* Two numbers, as found and as predicted, and where they are. */
struct pair {
    double f[2], e[2];
    size_t t[2];
    uint64_t row;
    const struct couple *couple;
};

static struct pe_misfit misfit_of(const struct pe_own *o, const struct pair *p, int k)
{
    return (struct pe_misfit){true, p->t[k], p->row, p->couple->col[k], p->f[k], pe_round_to(o->judge.dtype, p->e[k])};
}

/* The number of a pair that is farther off. */
static struct pe_misfit farther(const struct pe_own *o, const struct pair *p)
{
    return misfit_of(o, p, fabs(p->f[1] - p->e[1]) > fabs(p->f[0] - p->e[0]));
}

static void note(struct pe_own *o, const struct pe_misfit *misfit, double error, double limit)
{
    double share = limit > 0 ? error / limit : HUGE_VAL;
    if (!(error > limit) || share <= o->most)
        return;
    o->most = share;
    o->worst = *misfit;
}

/* A row with this ε allows the frequency's share to be between. */
static void allow(struct common *c, double between, double and, double angle, const struct pe_misfit *misfit)
{
    c->all_angles += angle;
    c->n++;
    if (between > c->low[0]) {
        c->low_angle = angle;
        c->low[1] = c->low[0];
        c->low[0] = between;
        c->of_low = *misfit;
    } else if (between > c->low[1]) {
        c->low[1] = between;
    }
    if (and < c->high[0]) {
        c->high_angle = angle;
        c->high[1] = c->high[0];
        c->high[0] = and;
        c->of_high = *misfit;
    } else if (and < c->high[1]) {
        c->high[1] = and;
    }
}

/* noise: what the numbers' own roundings make of ε. */
static void add_angle(struct pe_own *o, const struct pair *pair, double angle, double noise, double position)
{
    const struct pe_wave *w = &o->m->columns[pair->couple->wave];
    double turn = position * pe_wave_radians(w), step = pe_wave_step_loss(o->m, pair->couple->wave, position);
    const struct pe_misfit misfit = farther(o, pair);
    if (step == 0)
        note(o, &misfit, fabs(angle), noise);
    else
        allow(&o->waves[pair->couple->wave], (angle - copysign(noise + step, turn)) / turn,
              (angle + copysign(noise + step, turn)) / turn, fabs(angle), &misfit);
}

/* Roundings of a table's numbers are shares of each of them, those of a rotated pair of its length. */
static void add_pair(struct pe_own *o, const struct pair *p, double position)
{
    const struct pe_judge *j = &o->judge;
    const double *e = p->e, *f = p->f;
    bool is_rotated = j->id == PE_OF_ROTATED, is_16 = o->u > 0x1p-24;
    double length = hypot(e[0], e[1]), found = hypot(f[0], f[1]), least = 2 * pe_real_type(j->dtype)->least;
    double size = length;
    if (o->m->plan->scheme->magnitude) /* powers of a scale lose more, in float32 */
        size = fmax(length, 0x1p-24 / o->u * j->largest);
    double amplitude = is_rotated ? 1 : o->m->columns[p->couple->wave].ah, n = is_rotated || amplitude != 1 ? 8 : 4;
    double roundings = n * o->u * size + least, of_angle = roundings;
    if (!is_rotated && is_16 && length > 0)
        of_angle = n * (2 * o->u * fabs(e[0] * e[1]) / length + 0x1p-24 * size) + least;
    const struct pe_misfit misfit = farther(o, p);
    note(o, &misfit, fabs(found - length), roundings);
    if (found > 0 && length > 0)
        add_angle(o, p, asin(fmax(-1, fmin(1, (e[0] * f[1] - e[1] * f[0]) / (length * found)))), of_angle / length,
                  position);
}

/* One rounding, products in float32. */
static void ask_exact(struct pe_own *o, const struct pair *p, double length)
{
    double v = fmin(o->judge.u, 0x1p-24);
    for (int k = 0; o->is_exact && k < 2; k++)
        if (fabs(p->f[k] - p->e[k]) > 6 * v * length && pe_steps_between(o->judge.dtype, p->f[k], p->e[k]) > 1) {
            o->is_exact = false;
            o->first_inexact = misfit_of(o, p, k);
        }
}

static void add_couple(struct pe_own *o, const struct pair *p, uint64_t place)
{
    const struct couple *c = p->couple;
    if (!isfinite(p->f[0]) || !isfinite(p->f[1]) || !isfinite(p->e[0]) || !isfinite(p->e[1]))
        return; /* as predicted, or judged already */
    if (o->judge.id == PE_OF_ROTATED)
        ask_exact(o, p, c->wave == UINT32_MAX ? 0 : hypot(p->e[0], p->e[1]));
    if (c->wave == UINT32_MAX) {
        const struct pe_misfit misfit = misfit_of(o, p, 0);
        note(o, &misfit, fabs(p->f[0] - p->e[0]), 4 * o->u * fabs(p->e[0]) + 0x1p-149);
        return;
    }
    double position = pe_position_at(&o->m->plan->seq.k[o->m->columns[c->wave].axis], place);
    if (o->judge.id == PE_OF_ANGLES)
        add_angle(o, p, p->f[0] - p->e[0], 2 * o->u * fabs(p->e[0]) + 0x1p-149, position);
    else
        add_pair(o, p, position);
}

/* Of number c of a row: judge.c's bounds, but that of a probability linear in its score's. */
static void add_share(struct pe_own *o, const struct pe_judge *j, double error, uint64_t row, size_t c,
                      const struct pe_row *r)
{
    double most = fmax(fabs(r->found[c]), fabs(r->expected[c])), of_score = (24 * o->u + j->turning) * r->phase[c];
    double linear = most * (2 * of_score + 4 * o->u) + 0x1p-22;
    double share = error / (j->are_probs ? linear : of_score + 4 * o->u * most + 0x1p-149);
    o->n_shares++;
    o->sum_shares2 += share * share;
    if (share > o->farthest_share) {
        o->farthest_share = share;
        o->farthest = (struct pe_misfit){true, 0, row, c, r->found[c], pe_round_to(o->judge.dtype, r->expected[c])};
    }
}

/* Scores by their own positions; a row of probabilities by the farthest key that it sees. */
static void add_map_row(struct pe_own *o, uint64_t row, const struct pe_row *r, size_t n)
{
    struct pe_judge j = o->judge;
    double farthest = 0;
    for (size_t c = 0; c < n && j.are_probs; c++)
        farthest = r->expected[c] > 0 ? fmax(farthest, pe_map_reach(o->m, row, c)) : farthest;
    for (size_t c = 0; c < n; c++) {
        double error = fabs(r->found[c] - r->expected[c]);
        if (!isfinite(error))
            continue;
        double p = j.are_probs ? farthest : pe_map_reach(o->m, row, c);
        j.turning = fmin(o->judge.turning, 0x1p-21 * p);
        add_share(o, &j, error, row, c, r);
        if (!(error > 0))
            continue;
        const struct pe_misfit misfit = {true, 0, row, c, r->found[c], pe_round_to(j.dtype, r->expected[c])};
        if (j.are_probs && r->expected[c] <= 1) /* logits in their place are another reading */
            note(o, &misfit, r->found[c] - 1, 4 * o->u);
        if (!pe_is_exact(&j, r->found[c], r->expected[c], r->phase[c]))
            note(o, &misfit, error, pe_rounding_tolerance(&j, r->found[c], r->phase[c]));
    }
}

void pe_own_add(struct pe_own *o, uint64_t row, const struct pe_row *rows)
{
    const struct pe_evidence *e = &o->m->d->evidence;
    if (o->judge.id == PE_OF_MAPS)
        add_map_row(o, row, rows, (size_t)e->row_len);
    uint64_t place = o->judge.id == PE_OF_ENCODING ? row % o->m->plan->outputs[0].n_rows : pe_model_position(o->m, row);
    for (size_t t = 0; o->couples && t < e->n_tensors; t += 2)
        for (size_t i = 0; i < o->n_couples; i++) {
            const struct couple *c = &o->couples[i];
            size_t second = t + is_of_tables(o);
            const struct pair p = {{rows[t].found[c->col[0]], rows[second].found[c->col[1]]},
                                   {rows[t].expected[c->col[0]], rows[second].expected[c->col[1]]},
                                   {t, second},
                                   row,
                                   c};
            add_couple(o, &p, place);
        }
}

/* ---- The whole ---- */

/* The row that is alone is the one without which the others agree. */
static void ask_common(struct pe_own *o, const struct common *c)
{
    enum { ALONE = 8 }; /* times as far off as the others in the mean */
    double apart = c->low[0] - c->high[0];
    if (!(apart > 0))
        return;
    bool is_low = c->low[1] <= c->high[0], is_high = c->low[0] <= c->high[1];
    if (is_low == is_high)
        is_low = fabs(c->low[0]) > fabs(c->high[0]);
    const struct pe_misfit *misfit = is_low ? &c->of_low : &c->of_high;
    double angle = is_low ? c->low_angle : c->high_angle, others = c->all_angles - angle;
    if (angle * (double)(c->n - 1) > ALONE * others)
        note(o, misfit, o->most + 1 + apart, 1);
}

/* Of independent roundings: right code in bf16 and f16, and far from position 0, has a hundredth of the worst case. */
static bool is_more_than_roundings(const struct pe_own *o)
{
    enum { FEW = 16 };
    const double most = 1.0 / 24;
    return (o->u > 0x1p-24 || o->judge.turning > 24 * o->u) && o->n_shares >= FEW &&
           o->sum_shares2 > most * most * (double)o->n_shares;
}

void pe_own_end(struct pe_own *o, struct pe_comparison *out)
{
    if (pe_fits(out->verdict) && is_more_than_roundings(o)) {
        out->verdict = PE_NEAR;
        out->worst = o->farthest;
    }
    for (size_t i = 0; o->waves && !o->worst.is_any && i < o->n_waves; i++)
        ask_common(o, &o->waves[i]);
    if (pe_fits(out->verdict) && o->worst.is_any) {
        out->verdict = PE_NEAR;
        out->worst = o->worst;
        out->is_alone = true;
    }
    if (out->verdict == PE_EXACT && !o->is_exact)
        out->verdict = PE_ROUNDING;
    const struct pe_misfit *first = o->first_inexact.is_any ? &o->first_inexact : &o->worst;
    if (!out->first_bad.is_any)
        out->first_bad = *first;
}
