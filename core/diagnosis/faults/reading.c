/* Reads the waves from the evidence: for each pair and row a complex number z = |z|·e^(i·angle), with a weight.
 *
 * Three kinds of evidence are reduced to one: a table holds cos and sin themselves; an encoding has a sine and a cosine
 * among its columns; and of rotated tensors out = z·in for each pair, so z is the quotient, summed over a few heads and
 * weighted by |in|², which is least squares. What the transforms under test have done (signs, exchanged tables,
 * direction) is undone first.
 *
 * All measurements of waves start from here and knows no formula of a scheme: steps, jumps, factors and decay are
 * properties of z. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEADS_READ = 4 };
enum { ROWS_BETWEEN = 32 }; /* between two questions whether to go on: rows may have thousands of channels */

static void put_number(struct pe_reading *r, size_t k, size_t i, double re, double im, double weight)
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

static bool is_turned_back(const struct pe_model *m)
{
    const struct pe_value *config = pe_plan_config(m->plan);
    const struct pe_value *direction = pe_field_find(config->object.fields, config->object.n, "direction");
    return direction && direction->integer < 0;
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

/* V-JEPA 2's layout: channels a and a + n_pairs of a block are turned by one angle, each with its own neighbour:
 * out = first·cos + second·sin. Two equations for z, with the weight of what their determinant leaves of |in|². */
static void add_tiled(const struct pe_rotation *rot, const double *in, const double *out, double *z)
{
    for (size_t b = 0; b < rot->n_blocks; b++) {
        const struct pe_rotation_block *block = &rot->blocks[b];
        size_t first = rot->offset + block->first;
        for (size_t a = 0; a < block->n_pairs; a++) {
            double x[2], y[2], found[2], *sum = z + 3 * (block->pair0 + a);
            for (size_t i = 0; i < 2; i++) {
                size_t channel = a + i * block->n_pairs, j = first + channel;
                x[i] = in[j];
                y[i] = channel % 2 ? in[j - 1] : -in[j + 1];
                found[i] = out[j];
            }
            double det = x[0] * y[1] - x[1] * y[0], in2 = x[0] * x[0] + x[1] * x[1] + y[0] * y[0] + y[1] * y[1];
            double share = in2 > 0 ? det / in2 : 0;
            sum[0] += share * (found[0] * y[1] - found[1] * y[0]);
            sum[1] += share * (x[0] * found[1] - x[1] * found[0]);
            sum[2] += share * det;
        }
    }
}

/* A row of q_out; if its channels are in another order, in that of the rotation. */
static void read_found(const struct pe_model *m, uint64_t row, double *out)
{
    const struct pe_channels *channels = &m->transforms.channels;
    size_t n = (size_t)m->d->evidence.row_len;
    double found[PE_HEAD_DIM_MAX];
    bool is_moved = channels->order && channels->is_after;
    pe_evidence_read(&m->d->evidence, 0, row, 0, n, is_moved ? found : out);
    for (size_t j = 0; is_moved && j < n; j++)
        out[channels->order[j]] = found[j];
}

/* Adds what the first heads that are not set aside have at position number i: z and |in|² of each pair, [n_pairs, 3].
 * Returns how many heads are read where all are. */
static uint64_t add_heads(const struct pe_model *m, const struct pe_rotation *rot, size_t n, size_t i, double *z)
{
    const struct pe_evidence *e = &m->d->evidence;
    double in[PE_HEAD_DIM_MAX], out[PE_HEAD_DIM_MAX];
    uint64_t heads = e->n_rows / n < HEADS_READ ? e->n_rows / n : HEADS_READ, n_read = 0;
    memset(z, 0, 3 * rot->n_pairs * sizeof *z);
    for (uint64_t h = 0; h < e->n_rows / n && n_read < heads; h++) {
        uint64_t row = pe_model_row(m, h, i);
        if (pe_evidence_is_padding(e, row))
            continue;
        n_read++;
        pe_input_in_order(m->d, &m->transforms.channels, row, in);
        read_found(m, row, out);
        (rot->is_tiled ? add_tiled : add_head)(rot, in, out, z);
    }
    return heads;
}

/* Moves the channels that are not rotated to the front; their number. */
static size_t keep_passed(const struct pe_rotation *rot, double *x)
{
    size_t end = rot->offset + 2 * rot->n_pairs;
    memmove(x + rot->offset, x + end, (rot->head_dim - end) * sizeof *x);
    return rot->offset + rot->head_dim - end;
}

/* They are the same numbers after the rotation as before it, but for one factor of the row. */
static void add_passed(const double *in, const double *out, size_t n, double *all, double *others)
{
    double in2 = 0, both = 0;
    for (size_t j = 0; j < n; j++) {
        in2 += in[j] * in[j];
        both += in[j] * out[j];
    }
    double factor = in2 > 0 ? both / in2 : 0;
    for (size_t j = 0; j < n; j++)
        if (fabs(out[j] - factor * in[j]) > PE_LENGTH_TOLERANCE * fabs(factor * in[j]))
            *others += in[j] * in[j];
    *all += in2;
}

void pe_reading_passed(const struct pe_model *m, size_t n, size_t i, double *all, double *others)
{
    const struct pe_evidence *e = &m->d->evidence;
    struct pe_rotation rot;
    double in[PE_HEAD_DIM_MAX], out[PE_HEAD_DIM_MAX];
    uint64_t n_read = 0;
    m->plan->scheme->rotate(m->plan, &rot, NULL);
    for (uint64_t h = 0; h < e->n_rows / n && n_read < HEADS_READ; h++) {
        uint64_t row = pe_model_row(m, h, i);
        if (pe_evidence_is_padding(e, row))
            continue;
        n_read++;
        pe_input_in_order(m->d, &m->transforms.channels, row, in);
        read_found(m, row, out);
        for (size_t j = 0; j < e->row_len; j++) /* a scale of queries is undone */
            out[j] /= pe_model_query_factor(m, i);
        keep_passed(&rot, in);
        add_passed(in, out, keep_passed(&rot, out), all, others);
    }
}

static bool read_rotated(struct pe_reading *r, const struct pe_model *m)
{
    struct pe_rotation rot;
    double z[3 * PE_WAVES_READ];
    m->plan->scheme->rotate(m->plan, &rot, NULL);
    bool is_backward = is_turned_back(m);
    for (size_t i = 0; i < r->n; i++) {
        uint64_t heads = add_heads(m, &rot, r->n, i, z);
        for (size_t c = 0; c < rot.n_pairs; c++) {
            double w = z[3 * c + 2], re = w > 0 ? z[3 * c] / w : 0, im = w > 0 ? z[3 * c + 1] / w : 0;
            straighten(m, is_backward, &re, &im);
            put_number(r, c, i, re, im, w / (double)heads);
        }
        if (i % ROWS_BETWEEN == 0 && pe_is_cancelled())
            return false;
    }
    return true;
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

/* Position number i in the first row of a batch where it is not set aside. */
static uint64_t shown_row(const struct pe_model *m, size_t n, size_t i)
{
    const struct pe_evidence *e = &m->d->evidence;
    for (uint64_t row = i; !m->transforms.transposed && e->aside && row < e->n_rows; row += n)
        if (!e->aside[row])
            return row;
    return i;
}

/* What is known of it. */
static double weight_of(const struct pe_model *m, uint64_t row)
{
    const unsigned char *aside = m->d->evidence.aside;
    return m->transforms.transposed || !aside || !aside[row];
}

static bool read_tables(struct pe_reading *r, const struct pe_model *m)
{
    double cosines[PE_HEAD_DIM_MAX], sines[PE_HEAD_DIM_MAX];
    bool is_backward = is_turned_back(m);
    for (size_t i = 0; i < r->n; i++) {
        uint64_t row = shown_row(m, r->n, i);
        read_row(m, 0, row, 0, r->n_waves, cosines);
        read_row(m, 1, row, 0, r->n_waves, sines);
        for (size_t k = 0; k < r->n_waves; k++) {
            straighten(m, is_backward, &cosines[k], &sines[k]);
            put_number(r, k, i, cosines[k], sines[k],
                       cosines[k] != 0 || sines[k] != 0 ? weight_of(m, row) : 0); /* 0: nothing is known */
        }
        if (i % ROWS_BETWEEN == 0 && pe_is_cancelled())
            return false;
    }
    return true;
}

/* Of a lone table the other one is measured column by column; a number near the length of both shows little. */
static bool read_lone(struct pe_reading *r, const struct pe_model *m)
{
    double row[PE_HEAD_DIM_MAX], *room = malloc(r->n * sizeof *room);
    size_t table = pe_evidence_table(&m->d->evidence, 0);
    bool are_sines = (table == 1) != m->transforms.sin_cos_swapped, is_backward = is_turned_back(m);
    *r->no_memory |= !room;
    for (size_t i = 0; room && i < r->n && !(i % ROWS_BETWEEN == 0 && pe_is_cancelled()); i++) {
        read_row(m, 0, shown_row(m, r->n, i), 0, r->n_waves, row);
        for (size_t k = 0; k < r->n_waves; k++)
            r->re[k * r->n + i] = (float)row[k];
    }
    double length = room ? pe_quadrature_length(r->re, r->n, room) : 0;
    for (size_t k = 0; length > 0 && k < r->n_waves; k++) {
        pe_quadrature(r->re + k * r->n, r->n, length, are_sines, r->im + k * r->n);
        for (size_t i = 0; i < r->n; i++) {
            double sent = (double)r->re[k * r->n + i], other = (double)r->im[k * r->n + i], share = other / length;
            double re = table ? other : sent, im = table ? sent : other;
            straighten(m, is_backward, &re, &im);
            put_number(r, k, i, re, im, share * share * weight_of(m, shown_row(m, r->n, i)));
        }
    }
    free(room);
    return length > 0 && !pe_is_cancelled();
}

void pe_reading_row(const struct pe_model *m, size_t n, size_t i, double *z)
{
    double cosines[PE_WAVES_READ], sines[PE_WAVES_READ];
    size_t n_waves = m->n_columns < PE_WAVES_READ ? m->n_columns : PE_WAVES_READ;
    struct pe_rotation rot;
    if (m->d->evidence.kind->id == PE_OF_ROTATED) {
        m->plan->scheme->rotate(m->plan, &rot, NULL);
        add_heads(m, &rot, n, i, z);
        return;
    }
    uint64_t row = shown_row(m, n, i);
    read_row(m, 0, row, 0, n_waves, cosines);
    read_row(m, 1, row, 0, n_waves, sines);
    for (size_t k = 0; k < n_waves; k++)
        memcpy(z + 3 * k, (double[]){cosines[k], sines[k], weight_of(m, row)}, 3 * sizeof *z);
}

static bool read_angles(struct pe_reading *r, const struct pe_model *m)
{
    double angles[PE_HEAD_DIM_MAX], sign = (m->transforms.negated ? -1 : 1) / m->transforms.scaled;
    sign = is_turned_back(m) ? -sign : sign;
    for (size_t i = 0; i < r->n; i++) {
        uint64_t row = shown_row(m, r->n, i);
        read_row(m, 0, row, 0, r->n_waves, angles);
        for (size_t k = 0; k < r->n_waves; k++)
            put_number(r, k, i, cos(sign * angles[k]), sin(sign * angles[k]), weight_of(m, row));
        if (i % ROWS_BETWEEN == 0 && pe_is_cancelled())
            return false;
    }
    return true;
}

static bool fill_ladder(struct pe_reading *r, const struct pe_model *m)
{
    double w[PE_HEAD_DIM_MAX], u = pe_evidence_noise(&m->d->evidence);
    pe_evidence_read(&m->d->evidence, 0, 0, 0, r->n_waves, w);
    for (size_t k = 0; k < r->n_waves; k++) {
        double x = (m->transforms.inverted ? 1 / w[k] : w[k]) / m->transforms.scaled;
        r->step[k] = isfinite(x) ? x : (double)NAN;
        r->error[k] = fmax(4 * u, 0x1p-22) * fabs(x);
        r->mean_weight[k] = 1;
        for (size_t i = 0; i < r->n; i++)
            put_number(r, k, i, cos((double)i * x), sin((double)i * x), isfinite(x));
    }
    return true;
}

static bool is_sine_of(const struct pe_wave *sine, const struct pe_wave *cosine)
{
    return sine->quarter == 0 && sine->fh == cosine->fh && sine->axis == cosine->axis;
}

/* The sine of column j of an encoding is the column with the same frequency, mostly beside it or half the width away.
 */
static size_t partner_of(const struct pe_model *m, size_t cosine)
{
    size_t half = m->n_columns / 2, near[] = {cosine ^ 1, cosine >= half ? cosine - half : cosine + half}, j = 0;
    for (size_t i = 0; i < 2; i++)
        if (near[i] < m->n_columns && is_sine_of(&m->columns[near[i]], &m->columns[cosine]))
            return near[i];
    while (j < m->n_columns && !is_sine_of(&m->columns[j], &m->columns[cosine]))
        j++;
    return j < m->n_columns ? j : SIZE_MAX;
}

static bool read_encoding(struct pe_reading *r, const struct pe_model *m)
{
    double x[2], sign = (m->transforms.negated ? -1 : 1) / m->transforms.scaled;
    uint64_t n_prefix = pe_absolute_n_prefix(m->plan);
    size_t k = 0;
    for (size_t j = 0; j < m->n_columns && k < r->n_waves && !pe_is_cancelled(); j++) {
        size_t sine = m->columns[j].quarter == 1 ? partner_of(m, j) : SIZE_MAX;
        if (m->columns[j].quarter != 1)
            continue;
        for (size_t i = 0; i < r->n; i++) {
            uint64_t row = n_prefix ? n_prefix + i : shown_row(m, r->n, i);
            x[1] = 0;
            read_row(m, 0, row, j, 1, &x[0]);
            if (sine != SIZE_MAX)
                read_row(m, 0, row, sine, 1, &x[1]);
            put_number(r, k, i, sign * x[0], sign * x[1], sine != SIZE_MAX ? weight_of(m, row) : 0);
        }
        k++;
    }
    return k == r->n_waves;
}

static bool fill_waves(struct pe_reading *r, const struct pe_model *m)
{
    switch (m->d->evidence.kind->id) {
    case PE_OF_ROTATED: return read_rotated(r, m);
    case PE_OF_TABLES: return pe_evidence_is_lone(&m->d->evidence) ? read_lone(r, m) : read_tables(r, m);
    case PE_OF_ANGLES: return read_angles(r, m);
    default: return read_encoding(r, m);
    }
}

bool pe_reading_is_unknown(const struct pe_reading *r, size_t i)
{
    bool is_unknown = true;
    for (size_t k = 0; is_unknown && k < r->n_waves; k++)
        is_unknown = !(r->weight[k * r->n + i] > 0);
    return is_unknown;
}

/* ---- Readings that are kept ---- */

enum { READINGS_MAX = 6 };

struct pe_measure {
    struct pe_reading readings[READINGS_MAX];
    size_t n_readings, next;
};

static void drop(struct pe_reading *r)
{
    pe_free_large(r->re, 3 * r->n * r->n_waves * sizeof *r->re);
    pe_is_cancelled();
    free(r->step);
    free(r->piece);
    free(r->rows);
    *r = (struct pe_reading){.n = 0};
}

void pe_measure_drop(struct pe_diagnosis *d)
{
    for (size_t i = 0; d->measure && i < d->measure->n_readings; i++)
        drop(&d->measure->readings[i]);
    free(d->measure);
}

/* Columns of tables are read as they came, whatever they rotate. */
static uint64_t key_of(const struct pe_model *m)
{
    uint64_t h = 0xcbf29ce484222325U;
    struct pe_rotation rot;
    bool is_table = m->d->evidence.kind->id == PE_OF_TABLES;
    memset(&rot, 0, sizeof rot);
    if (m->plan->scheme->rotate && !is_table)
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
                      m->transforms.inverted,
                      m->transforms.channels.is_after,
                      (double)rot.blocks[0].step,
                      (double)rot.blocks[0].partner,
                      (double)m->axes.n,
                      (double)m->axes.row_step,
                      m->is_by_batch};
    const struct pe_value *config = pe_plan_config(m->plan);
    for (size_t i = 0; i < sizeof parts; i++)
        h = (h ^ ((const unsigned char *)parts)[i]) * 0x100000001b3U;
    for (size_t i = 0; m->transforms.channels.order && i < m->transforms.channels.n; i++)
        h = (h ^ m->transforms.channels.order[i]) * 0x100000001b3U;
    for (size_t i = 0; i < config->object.n; i++) {
        const struct pe_field *f = &config->object.fields[i];
        if (pe_same(f->name, "direction"))
            h = (h ^ (uint64_t)f->value.integer) * 0x100000001b3U;
        if (!is_table && pe_is_among("layout|odd|style", f->name) && f->value.kind == PE_STRING)
            for (const char *p = f->value.string; *p; p++)
                h = (h ^ (unsigned char)*p) * 0x100000001b3U;
        if (pe_same(f->name, "flip_sin_to_cos"))
            h = (h ^ (f->value.boolean ? 7U : 3U)) * 0x100000001b3U;
    }
    return h;
}

static double bytes_of(const struct pe_reading *r)
{
    return (double)(r->n * r->n_waves * 3 * sizeof(float) + r->n * sizeof *r->rows);
}

static bool allocate(struct pe_diagnosis *d, struct pe_reading *r)
{
    struct pe_failure ignored;
    size_t n = r->n * r->n_waves;
    r->no_memory = &d->no_memory;
    r->work = &d->work;
    if (n == 0)
        return false;
    d->no_memory |= pe_diagnosis_admit(d, bytes_of(r), &ignored) != PE_OK;
    if (d->no_memory)
        return false;
    r->re = malloc(3 * n * sizeof(float));
    r->step = calloc(4 * r->n_waves, sizeof(double));
    r->piece = calloc(r->n, sizeof *r->piece);
    r->rows = calloc(r->n, sizeof *r->rows);
    r->im = r->re ? r->re + n : NULL;
    r->weight = r->re ? r->re + 2 * n : NULL;
    r->error = r->step ? r->step + r->n_waves : NULL;
    r->mean_weight = r->step ? r->step + 2 * r->n_waves : NULL;
    r->w_of_rows = r->step ? r->step + 3 * r->n_waves : NULL;
    d->no_memory |= !(r->re && r->step && r->piece && r->rows);
    return !d->no_memory;
}

/* Reading a number, and each product of two rows with its angle. */
enum { READING_WORK = 160, PRODUCT_WORK = 40 };

/* Jumps and the longest lag take products of all rows, usual steps and the other lags those of some. */
double pe_reading_work(double n, double n_waves)
{
    double some = fmin(n, PE_LAG_ROWS);
    return n_waves * (n * (READING_WORK + 3 * PRODUCT_WORK) + some * PRODUCT_WORK * (4 + log2(n + 1)));
}

static bool read_all(struct pe_diagnosis *d, const struct pe_model *m, struct pe_reading *r)
{
    r->noise = fmax(pe_evidence_noise(&d->evidence), 0x1p-24); /* the waves are kept as floats */
    r->farthest = pe_positions_largest(&m->plan->seq.k[0]);
    if (!allocate(d, r))
        return false;
    *r->work += pe_reading_work((double)r->n, (double)r->n_waves);
    if (d->evidence.kind->id == PE_OF_LADDER)
        return fill_ladder(r, m);
    return fill_waves(r, m) && pe_reading_steps(r);
}

/* With other exponents a cosine has no sine; exchanged heads and channels are no pairs. */
static bool has_waves(const struct pe_model *m)
{
    bool is_whole = m->transforms.sinusoid == PE_SINUSOID_AS_IS;
    bool is_rotated = m->d->evidence.kind->id == PE_OF_ROTATED;
    return m->has_shape && !m->d->evidence.is_typed && !m->transforms.turn && is_whole &&
           !(is_rotated && m->transforms.transposed) && pe_wave_count(m) > 0;
}

static uint64_t rows_of(const struct pe_model *m)
{
    return m->d->evidence.kind->id == PE_OF_ROTATED || m->is_by_batch ? m->plan->seq.k->n : m->d->belief.n;
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
    d->bytes -= bytes_of(r);
    drop(r);
    d->measure->next = (d->measure->next + 1) % READINGS_MAX;
    d->measure->n_readings += d->measure->n_readings < READINGS_MAX;
    size_t n = d->evidence.kind->id == PE_OF_LADDER ? 2 : (size_t)rows_of(m); /* positions 0 and 1 */
    *r = (struct pe_reading){.key = key, .n = n, .n_waves = pe_wave_count(m)};
    if (pe_lengths_agree(m) && read_all(d, m, r))
        return r;
    drop(r);
    r->key = key;
    return NULL;
}
