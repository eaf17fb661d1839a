/* What the numbers themselves tell: phases, and what follows from them. */
#include "core/diagnosis/measure/measure.h"
#include "core/diagnosis/model/judge.h"
#include "core/rotate/rotate_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

enum { READINGS_MAX = 6, HEADS_READ = 4, LAG_ROWS = 512, SHIFT_ROWS = 96 };

struct pe_measure {
    struct pe_reading readings[READINGS_MAX];
    size_t n_readings, next;
};

static void drop(struct pe_reading *r)
{
    free(r->re);
    free(r->step);
    free(r->piece);
    *r = (struct pe_reading){.n = 0};
}

void pe_measure_drop(struct pe_diagnosis *d)
{
    for (size_t i = 0; d->measure && i < d->measure->n_readings; i++)
        drop(&d->measure->readings[i]);
    free(d->measure);
}

/* ---- Waves of a model ---- */

/* Rotated tensors have the cosines of all pairs first; a table has its columns; an encoding its cosines. */
static size_t count_waves(const struct pe_model *m)
{
    switch (m->d->evidence.kind->id) {
    case PE_OF_ROTATED: return m->n_columns / 2;
    case PE_OF_TABLES: return m->n_columns;
    case PE_OF_ENCODING: return m->n_columns / 2;
    default: return 0;
    }
}

/* The sine of column j of an encoding is the column with the same frequency. */
static size_t partner_of(const struct pe_model *m, size_t cosine)
{
    const struct pe_wave *w = &m->columns[cosine];
    size_t half = m->n_columns / 2,
           near[] = {cosine ^ 1, cosine >= half ? cosine - half : cosine + half,
                     cosine >= (m->n_columns + 1) / 2 ? cosine - (m->n_columns + 1) / 2 : cosine};
    for (size_t i = 0; i < 3; i++)
        if (near[i] < m->n_columns && m->columns[near[i]].quarter == 0 && m->columns[near[i]].fh == w->fh &&
            m->columns[near[i]].axis == w->axis)
            return near[i];
    return SIZE_MAX;
}

static double frequency_of(const struct pe_wave *w) { return (w->fh + w->fl) * (PI / 2); }

size_t pe_wave_count(const struct pe_model *m) { return m->columns ? count_waves(m) : 0; }

void pe_wave_frequencies(const struct pe_model *m, size_t n, double *w)
{
    bool only_cosines = m->d->evidence.kind->id == PE_OF_ENCODING;
    const double *other = only_cosines && m->transforms.sinusoid ? m->state : NULL; /* of the columns */
    size_t k = 0;
    for (size_t j = 0; j < m->n_columns && k < n; j++)
        if (!only_cosines || m->columns[j].quarter == 1)
            w[k++] = other ? other[j] : frequency_of(&m->columns[j]);
    while (k < n)
        w[k++] = 0;
}

/* ---- Reading ---- */

static void put(struct pe_reading *r, size_t k, size_t i, double re, double im, double weight)
{
    r->re[k * r->n + i] = (float)re;
    r->im[k * r->n + i] = (float)im;
    r->weight[k * r->n + i] = (float)weight;
}

/* Undoes what the transforms of tables do: exchanged cosines and sines, signs, the direction. */
static void straighten(const struct pe_model *m, bool is_backward, double *re, double *im)
{
    double x = *re, y = *im, sign = (m->transforms.negated ? -1 : 1) / m->transforms.scaled;
    if (m->transforms.sin_cos_swapped) {
        *re = y;
        *im = x;
    }
    *re *= sign;
    *im *= is_backward ? -sign : sign;
}

/* Channels of pairs: where pair c is read and where it is written. */
struct channels {
    size_t in[2], out[2];
};

static struct channels channels_of(const struct pe_rotation *r, size_t c)
{
    size_t b = 0;
    while (b + 1 < r->n_blocks && c >= r->blocks[b].pair0 + r->blocks[b].n_pairs)
        b++;
    const struct pe_rotation_block *block = &r->blocks[b];
    size_t at = r->offset + block->first + (c - block->pair0) * block->step;
    struct channels x = {{at, at + block->partner}, {at, at + block->partner}};
    if (r->to_half) {
        x.out[0] = r->offset + c;
        x.out[1] = r->offset + r->n_pairs + c;
    }
    return x;
}

static void add_head(const struct pe_rotation *rot, const double *in, const double *out, double *z)
{
    for (size_t c = 0; c < rot->n_pairs; c++) {
        struct channels x = channels_of(rot, c);
        double a = in[x.in[0]], b = in[x.in[1]], y = out[x.out[0]], s = out[x.out[1]];
        z[3 * c] += a * y + b * s;
        z[3 * c + 1] += a * s - b * y;
        z[3 * c + 2] += a * a + b * b;
    }
}

static bool read_rotated(struct pe_reading *r, const struct pe_model *m)
{
    const struct pe_evidence *e = &m->d->evidence;
    struct pe_rotation rot;
    double in[PE_HEAD_DIM_MAX], out[PE_HEAD_DIM_MAX], z[3 * (PE_HEAD_DIM_MAX / 2)];
    m->plan->scheme->rotate(m->plan, &rot, NULL);
    bool is_backward = pe_edit_real(m->d, NULL, "direction", 1) < 0;
    const struct pe_value *config = pe_plan_config(m->plan);
    for (size_t i = 0; i < config->object.n; i++)
        if (pe_same(config->object.fields[i].name, "direction"))
            is_backward = config->object.fields[i].value.integer < 0;
    uint64_t heads = e->n_rows / r->n < HEADS_READ ? e->n_rows / r->n : HEADS_READ;
    for (size_t i = 0; i < r->n && !rot.is_tiled; i++) {
        memset(z, 0, 3 * rot.n_pairs * sizeof *z);
        for (uint64_t h = 0; h < heads; h++) {
            pe_evidence_input(e, h * r->n + i, in);
            pe_evidence_read(e, 0, h * r->n + i, 0, (size_t)e->row_len, out);
            add_head(&rot, in, out, z);
        }
        for (size_t c = 0; c < rot.n_pairs; c++) {
            double w = z[3 * c + 2], re = w > 0 ? z[3 * c] / w : 0, im = w > 0 ? z[3 * c + 1] / w : 0;
            straighten(m, is_backward, &re, &im);
            put(r, c, i, re, im, w / (double)heads);
        }
        if (i % 256 == 0 && pe_is_cancelled())
            return false;
    }
    return !rot.is_tiled;
}

/* Numbers found at a row of the model, which are a column of transposed evidence. */
static void read_row(const struct pe_model *m, size_t t, uint64_t row, size_t col0, size_t n, double *out)
{
    const struct pe_evidence *e = &m->d->evidence;
    if (!m->transforms.transposed)
        pe_evidence_read(e, t, row, col0, n, out);
    for (size_t j = 0; m->transforms.transposed && j < n; j++)
        pe_evidence_read(e, t, col0 + j, row, 1, out + j);
}

static bool read_tables(struct pe_reading *r, const struct pe_model *m)
{
    double cosines[PE_HEAD_DIM_MAX], sines[PE_HEAD_DIM_MAX];
    bool is_backward = false;
    const struct pe_value *config = pe_plan_config(m->plan);
    for (size_t i = 0; i < config->object.n; i++)
        if (pe_same(config->object.fields[i].name, "direction"))
            is_backward = config->object.fields[i].value.integer < 0;
    for (size_t i = 0; i < r->n; i++) {
        read_row(m, 0, i, 0, r->n_waves, cosines);
        read_row(m, 1, i, 0, r->n_waves, sines);
        for (size_t k = 0; k < r->n_waves; k++) {
            straighten(m, is_backward, &cosines[k], &sines[k]);
            put(r, k, i, cosines[k], sines[k], 1);
        }
    }
    return true;
}

static bool read_encoding(struct pe_reading *r, const struct pe_model *m)
{
    double x[2], sign = (m->transforms.negated ? -1 : 1) / m->transforms.scaled;
    size_t k = 0;
    for (size_t j = 0; j < m->n_columns && k < r->n_waves; j++) {
        size_t sine = m->columns[j].quarter == 1 ? partner_of(m, j) : SIZE_MAX;
        if (m->columns[j].quarter != 1)
            continue;
        for (size_t i = 0; i < r->n; i++) {
            x[1] = 0;
            read_row(m, 0, i, j, 1, &x[0]);
            if (sine != SIZE_MAX)
                read_row(m, 0, i, sine, 1, &x[1]);
            put(r, k, i, sign * x[0], sign * x[1], sine != SIZE_MAX);
        }
        k++;
    }
    return k == r->n_waves;
}

/* ---- Steps from row to row ---- */

static double wrap(double x) { return x - 2 * PI * nearbyint(x / (2 * PI)); }

/* The standard error of a phase: of the numbers, and of angles that may have been computed in f32. */
static double noise_of(const struct pe_reading *r, double step)
{
    return r->noise + fmin(0x1p-24 * r->farthest * fabs(step), 0.05);
}

struct sum {
    double re, im, weight;
};

/* z[i + lag]·conj z[i], weighted. */
static struct sum product(const struct pe_reading *r, size_t k, size_t i, size_t lag)
{
    size_t from = k * r->n + i, to = from + lag;
    double a = (double)r->re[from], b = (double)r->im[from], c = (double)r->re[to], e = (double)r->im[to];
    double both = sqrt((double)r->weight[from] * (double)r->weight[to]);
    return (struct sum){both * (c * a + e * b), both * (e * a - c * b), both};
}

/* ---- Where positions jump ---- */

static int by_value(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

/* The usual phase from row to row: the median about the mean direction. */
static double usual_step(const struct pe_reading *r, size_t k, double *room)
{
    struct sum all = {0, 0, 0};
    size_t n = 0, apart = (r->n - 1) / LAG_ROWS + 1;
    for (size_t i = 0; i + 1 < r->n; i += apart) {
        struct sum p = product(r, k, i, 1);
        all.re += p.re;
        all.im += p.im;
    }
    double mean = atan2(all.im, all.re);
    for (size_t i = 0; i + 1 < r->n; i += apart) {
        struct sum p = product(r, k, i, 1);
        if (p.weight > 0)
            room[n++] = wrap(atan2(p.im, p.re) - mean);
    }
    qsort(room, n, sizeof *room, by_value);
    return n ? mean + room[n / 2] : 0;
}

/* piece[i]: how many jumps there are before row i. A step is a jump where it is unlike the usual one. */
static void find_pieces(struct pe_reading *r, const double *usual)
{
    double limit = 1e-3 + 200 * r->noise * r->noise;
    for (size_t i = 0; i + 1 < r->n; i++) {
        double off = 0, weight = 1e-300;
        for (size_t k = 0; k < r->n_waves; k++) {
            struct sum p = product(r, k, i, 1);
            off += hypot(p.re, p.im) - (p.re * cos(usual[k]) + p.im * sin(usual[k]));
            weight += hypot(p.re, p.im);
        }
        r->piece[i + 1] = r->piece[i] + (off > limit * weight);
    }
}

/* ---- Steps, refined over lags ---- */

static struct sum lagged(const struct pe_reading *r, size_t k, size_t lag)
{
    struct sum s = {0, 0, 0};
    for (size_t i = 0; i + lag < r->n; i++) {
        if (r->piece[i] != r->piece[i + lag])
            continue;
        struct sum p = product(r, k, i, lag);
        s.re += p.re;
        s.im += p.im;
        s.weight += hypot(p.re, p.im);
    }
    return s;
}

static void measure_step(struct pe_reading *r, size_t k)
{
    double total = 0;
    for (size_t i = 0; i < r->n; i++)
        total += (double)r->weight[k * r->n + i];
    r->mean_weight[k] = total / (double)r->n;
    r->step[k] = r->error[k] = (double)NAN;
    for (size_t lag = 1; lag < r->n && r->mean_weight[k] > 0; lag *= 2) {
        struct sum s = lagged(r, k, lag);
        if (!(s.weight > 0) || hypot(s.re, s.im) < 0.7 * s.weight)
            break;
        double phase = atan2(s.im, s.re), rows = fmin(s.weight / r->mean_weight[k], (double)r->n);
        r->step[k] = lag == 1 ? phase : r->step[k] + wrap(phase - (double)lag * r->step[k]) / (double)lag;
        r->error[k] = 2 * noise_of(r, r->step[k]) / ((double)lag * sqrt(rows * fmin(r->mean_weight[k], 1)));
    }
}

static bool measure_steps(struct pe_reading *r)
{
    double *usual = malloc((r->n_waves + LAG_ROWS + 2) * sizeof *usual);
    for (size_t k = 0; usual && k < r->n_waves; k++)
        usual[k] = r->n > 1 ? usual_step(r, k, usual + r->n_waves) : 0;
    if (usual)
        find_pieces(r, usual);
    for (size_t k = 0; usual && k < r->n_waves; k++)
        measure_step(r, k);
    *r->no_memory |= !usual;
    free(usual);
    return !*r->no_memory;
}

/* ---- Readings, kept ---- */

static uint64_t key_of(const struct pe_model *m)
{
    uint64_t h = 0xcbf29ce484222325U;
    struct pe_rotation rot;
    memset(&rot, 0, sizeof rot);
    if (m->plan->scheme->rotate)
        m->plan->scheme->rotate(m->plan, &rot, NULL);
    double parts[] = {(double)rot.offset,
                      (double)rot.n_pairs,
                      rot.to_half,
                      rot.is_tiled,
                      (double)rot.n_blocks,
                      m->transforms.sin_cos_swapped,
                      m->transforms.negated,
                      m->transforms.scaled,
                      m->transforms.transposed,
                      (double)rot.blocks[0].step,
                      (double)rot.blocks[0].partner};
    const struct pe_value *config = pe_plan_config(m->plan);
    for (size_t i = 0; i < sizeof parts; i++)
        h = (h ^ ((const unsigned char *)parts)[i]) * 0x100000001b3U;
    for (size_t i = 0; i < config->object.n; i++) {
        const struct pe_field *f = &config->object.fields[i];
        if (pe_same(f->name, "direction"))
            h = (h ^ (uint64_t)f->value.integer) * 0x100000001b3U;
        if (pe_is_among("layout|odd|style", f->name) && f->value.kind == PE_STRING)
            for (const char *p = f->value.string; *p; p++)
                h = (h ^ (unsigned char)*p) * 0x100000001b3U;
        if (pe_same(f->name, "flip_sin_to_cos"))
            h = (h ^ (f->value.boolean ? 7U : 3U)) * 0x100000001b3U;
    }
    return h;
}

static bool allocate(struct pe_diagnosis *d, struct pe_reading *r)
{
    struct pe_error ignored;
    size_t n = r->n * r->n_waves;
    r->no_memory = &d->no_memory;
    if (n == 0 || pe_diagnosis_admit(d, (double)n * 3 * sizeof(float), &ignored))
        return false;
    r->re = malloc(3 * n * sizeof(float));
    r->step = malloc(3 * r->n_waves * sizeof(double));
    r->piece = calloc(r->n, sizeof *r->piece);
    r->im = r->re ? r->re + n : NULL;
    r->weight = r->re ? r->re + 2 * n : NULL;
    r->error = r->step ? r->step + r->n_waves : NULL;
    r->mean_weight = r->step ? r->step + 2 * r->n_waves : NULL;
    d->no_memory |= !(r->re && r->step && r->piece);
    return !d->no_memory;
}

static bool read_all(struct pe_diagnosis *d, const struct pe_model *m, struct pe_reading *r)
{
    r->noise = fmax(pe_evidence_noise(&d->evidence), 0x1p-24); /* the waves are kept as floats */
    r->farthest = pe_positions_largest(&m->plan->seq.k[0]);
    if (!allocate(d, r))
        return false;
    bool done = d->evidence.kind->id == PE_OF_ROTATED  ? read_rotated(r, m)
                : d->evidence.kind->id == PE_OF_TABLES ? read_tables(r, m)
                                                       : read_encoding(r, m);
    return done && measure_steps(r);
}

/* With other exponents a cosine has no sine; exchanged heads and channels are no pairs. */
static bool has_waves(const struct pe_model *m)
{
    bool is_whole = m->transforms.sinusoid == PE_SINUSOID_AS_IS || m->transforms.sinusoid == PE_LADDER_FROM_ONE;
    bool is_rotated = m->d->evidence.kind->id == PE_OF_ROTATED;
    return m->columns && m->has_shape && is_whole && !(is_rotated && m->transforms.transposed) && count_waves(m) > 0;
}

const struct pe_reading *pe_read_waves(struct pe_diagnosis *d, const struct pe_model *m)
{
    if (!has_waves(m))
        return NULL;
    if (!d->measure)
        d->measure = calloc(1, sizeof *d->measure);
    d->no_memory |= !d->measure;
    if (!d->measure)
        return NULL;
    uint64_t key = key_of(m);
    for (size_t i = 0; i < d->measure->n_readings; i++)
        if (d->measure->readings[i].key == key)
            return d->measure->readings[i].n ? &d->measure->readings[i] : NULL;
    struct pe_reading *r = &d->measure->readings[d->measure->next];
    d->bytes -= (double)(r->n * r->n_waves) * 3 * sizeof(float);
    drop(r);
    d->measure->next = (d->measure->next + 1) % READINGS_MAX;
    d->measure->n_readings += d->measure->n_readings < READINGS_MAX;
    *r = (struct pe_reading){.key = key, .n = (size_t)d->belief.n, .n_waves = count_waves(m)};
    if (read_all(d, m, r))
        return r;
    drop(r);
    r->key = key;
    return NULL;
}

/* ---- Solving phases ---- */

static int by_frequency(const void *a, const void *b)
{
    double x = **(const double *const *)a, y = **(const double *const *)b;
    return fabs(x) < fabs(y) ? -1 : fabs(x) > fabs(y);
}

struct waves {
    const double *w, *phase, *weight;
    const double **order; /* into w, slowest first */
    size_t n;
};

/* Refines x by ever faster waves: each wave is right modulo its period, and the estimate so far tells which. */
static double refine(const struct waves *v, double x)
{
    double sum = 0, weights = 0;
    for (size_t i = 0; i < v->n; i++) {
        size_t k = (size_t)(v->order[i] - v->w);
        double w = v->w[k], near = x + wrap(v->phase[k] - x * w) / w, weight = v->weight[k] * w * w;
        sum += weight * near;
        weights += weight;
        x = weights > 0 ? sum / weights : x;
        sum = x * weights;
    }
    return x;
}

static double score_of(const struct waves *v, double x)
{
    double sum = 0, weights = 1e-300;
    for (size_t i = 0; i < v->n; i++) {
        size_t k = (size_t)(v->order[i] - v->w);
        sum += v->weight[k] * cos(v->phase[k] - x * v->w[k]);
        weights += v->weight[k];
    }
    return sum / weights;
}

struct pe_solved pe_solve_phases(const double *w, const double *phase, const double *weight, size_t n, double noise,
                                 double most)
{
    const double *order[PE_HEAD_DIM_MAX];
    struct waves v = {w, phase, weight, order, 0};
    struct pe_solved best = {0, -2, (double)INFINITY};
    double information = 0;
    for (size_t k = 0; k < n && v.n < PE_HEAD_DIM_MAX; k++)
        if (fabs(w[k]) > 1e-12 && weight[k] > 0 && isfinite(phase[k])) {
            order[v.n++] = &w[k];
            information += weight[k] * w[k] * w[k];
        }
    if (v.n == 0)
        return best;
    qsort(order, v.n, sizeof *order, by_frequency);
    size_t slow = (size_t)(order[0] - w);
    double period = 2 * PI / fabs(w[slow]);
    int turns = (int)fmin(ceil(most / period), 64);
    for (int turn = 0; turn <= 2 * turns; turn++) {
        int t = turn % 2 ? -(turn + 1) / 2 : turn / 2;
        double x = refine(&v, phase[slow] / w[slow] + t * period), score = score_of(&v, x);
        if (score > best.score + 1e-9)
            best = (struct pe_solved){x, score, 0};
    }
    best.error = noise / sqrt(information);
    return best;
}

/* ---- Strides and shifts ---- */

struct pe_solved pe_stride_at(const struct pe_reading *r, const double *w)
{
    struct pe_solved none = {0, -2, (double)INFINITY};
    double *weight = malloc(r->n_waves * sizeof *weight), largest = 0;
    for (size_t k = 0; weight && k < r->n_waves; k++) {
        weight[k] = isfinite(r->step[k]) ? 1 / (r->error[k] * r->error[k] + 1e-30) : 0;
        largest = fmax(largest, weight[k]);
    }
    for (size_t k = 0; weight && k < r->n_waves && largest > 0; k++)
        weight[k] /= largest;
    *r->no_memory |= !weight;
    struct pe_solved s = weight ? pe_solve_phases(w, r->step, weight, r->n_waves, r->noise, 64) : none;
    free(weight);
    return s;
}

/* The sum of a wave over rows, each turned back by its place. */
static struct sum turned_back(const struct pe_reading *r, size_t k, double w, const double *place, size_t first,
                              size_t n)
{
    struct sum s = {0, 0, 0};
    size_t apart = n > SHIFT_ROWS ? n / SHIFT_ROWS : 1;
    for (size_t i = first; i < first + n; i += apart) {
        size_t at = k * r->n + i;
        double angle = n > 1 ? place[i] * w : 0, c = cos(angle), e = sin(angle), u = (double)r->weight[at];
        s.re += u * ((double)r->re[at] * c + (double)r->im[at] * e);
        s.im += u * ((double)r->im[at] * c - (double)r->re[at] * e);
    }
    return s;
}

struct pe_solved pe_shift_at(const struct pe_reading *r, const double *w, const double *place, size_t first, size_t n)
{
    struct pe_solved none = {0, -2, (double)INFINITY};
    double *phase = malloc(2 * r->n_waves * sizeof *phase), *weight = phase ? phase + r->n_waves : NULL;
    for (size_t k = 0; phase && k < r->n_waves; k++) {
        struct sum s = turned_back(r, k, w[k], place, first, n);
        phase[k] = atan2(s.im, s.re);
        weight[k] = hypot(s.re, s.im);
    }
    *r->no_memory |= !phase;
    struct pe_solved s = phase ? pe_solve_phases(w, phase, weight, r->n_waves, r->noise, 0x1p17) : none;
    free(phase);
    return s;
}

static double *frequencies(const struct pe_reading *r, const struct pe_model *m)
{
    double *w = malloc(r->n_waves * sizeof *w);
    *r->no_memory |= !w;
    if (w)
        pe_wave_frequencies(m, r->n_waves, w);
    return w;
}

struct pe_solved pe_measured_stride(const struct pe_reading *r, const struct pe_model *m)
{
    struct pe_solved none = {0, -2, (double)INFINITY};
    double *w = frequencies(r, m);
    struct pe_solved s = w ? pe_stride_at(r, w) : none;
    free(w);
    return s;
}

struct pe_solved pe_measured_shift(const struct pe_reading *r, const struct pe_model *m, const double *place,
                                   size_t first, size_t n)
{
    struct pe_solved none = {0, -2, (double)INFINITY};
    double *w = frequencies(r, m);
    struct pe_solved s = w ? pe_shift_at(r, w, place, first, n) : none;
    free(w);
    return s;
}

bool pe_is_still(const struct pe_reading *r)
{
    bool is_known = false;
    for (size_t k = 0; k < r->n_waves; k++) {
        is_known |= isfinite(r->step[k]);
        if (isfinite(r->step[k]) && fabs(r->step[k]) > 8 * r->error[k])
            return false;
    }
    return is_known;
}

bool pe_agrees(const struct pe_reading *r, const double *w, double stride, double relative)
{
    for (size_t k = 0; k < r->n_waves; k++) {
        double tolerance = 8 * r->error[k] + relative * (fabs(stride * w[k]) + 1e-4 * (relative > 1e-5));
        if (isfinite(r->step[k]) && fabs(wrap(r->step[k] - stride * w[k])) > tolerance)
            return false;
    }
    return true;
}

double pe_recipe_tolerance(const struct pe_model *m)
{
    switch (m->transforms.recipe) {
    case PE_RECIPE_BF16_INV_FREQ: return 0x1p-8;
    case PE_RECIPE_F16_INV_FREQ: return 0x1p-10;
    case PE_RECIPE_BF16: return 0x1p-4;
    case PE_RECIPE_NONE:
    case PE_RECIPE_F32: break;
    }
    return 0x1p-20;
}

double pe_model_stride(const struct pe_model *m)
{
    const struct pe_positions *p = &m->plan->seq.k[0];
    return p->n > 1 ? pe_position_at(p, 1) - pe_position_at(p, 0) : 1;
}

double pe_shortest_decimal(double x, double tolerance)
{
    char text[40];
    for (int digits = 0; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits, x);
        double y = strtod(text, NULL);
        if (fabs(y - x) <= tolerance * fabs(x))
            return y;
    }
    return x;
}
