/* Evidence of rotation: q and q_out, k and k_out. */
#include "core/diagnosis/diagnosis.h"
#include "core/request/request.h"
#include "core/rotate/rotate_rows.h"

#include <math.h>
#include <stdlib.h>

/* Has the believed layout the heads and their channels in one axis? */
static bool is_flat(const struct pe_diagnosis *d)
{
    return d->belief.tensor_layout && pe_is_among("flat|bflat", d->belief.tensor_layout);
}

/* The first layout whose axes can have these sizes, the believed one first; false: there is none. */
static bool place_any(struct pe_diagnosis *d, struct pe_operand *axes)
{
    struct pe_evidence *e = &d->evidence;
    bool is_placed = pe_evidence_axes(e, d->belief.tensor_layout, &e->axes);
    *axes = e->axes;
    if (!is_placed)
        e->axes.n = 0;
    for (size_t i = 0; !is_placed && pe_tensor_layout_words[i]; i++)
        is_placed = pe_evidence_axes(e, pe_tensor_layout_words[i], axes);
    return is_placed;
}

/* A last axis of several times head_dim is heads with their channels. */
static void split_heads(struct pe_diagnosis *d, struct pe_operand *axes)
{
    struct pe_evidence *e = &d->evidence;
    const struct pe_value *given = pe_belief_given(d, "head_dim");
    uint64_t head_dim = given && given->kind == PE_INTEGER && given->integer > 0 ? (uint64_t)given->integer : 0;
    uint64_t last = e->row_len, rows = e->n_rows;
    if (head_dim == 0 || head_dim == last || last % head_dim)
        return;
    e->row_len = head_dim;
    e->n_rows = rows * (last / head_dim);
    if (place_any(d, axes))
        return;
    e->row_len = last; /* head_dim contradicts the shape */
    e->n_rows = rows;
}

/* Where no sequence is given, its length follows from the layout. */
static void set_len(struct pe_diagnosis *d, uint64_t n)
{
    if (pe_belief_has_sequence(d))
        return;
    pe_belief_set(d, "len", (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)n});
    d->belief.is_len_fixed = true;
}

/* May the believed sequence have so many positions? It is a length, a list, or not known here. */
static bool may_have_length(const struct pe_diagnosis *d, uint64_t n)
{
    const struct pe_value *len = pe_belief_given(d, "len"), *positions = pe_belief_given(d, "positions");
    if (len && len->kind == PE_INTEGER)
        return len->integer == (int64_t)n;
    return !positions || positions->kind != PE_ARRAY || positions->array.rank != 1 || positions->array.shape[0] == n;
}

/* Channels that are not the last axis. */
static enum pe_status move_channels(struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    const struct pe_value *given = pe_belief_given(d, "head_dim");
    uint64_t head_dim = given && given->kind == PE_INTEGER && given->integer > 0 ? (uint64_t)given->integer : 0;
    unsigned char order[PE_RANK_MAX];
    unsigned at = t->rank;
    for (unsigned a = 0; a < t->rank; a++)
        at = t->shape[a] == head_dim ? a : at;
    if (head_dim == 0 || t->rank < 2 || at + 1 >= t->rank || t->shape[t->rank - 1] % head_dim == 0 ||
        !may_have_length(d, t->shape[t->rank - 1]))
        return PE_OK;
    pe_order_to(t->rank, at, t->rank - 1, order);
    return pe_evidence_move(d, order, err);
}

static int64_t given_integer(const struct pe_diagnosis *d, const char *name)
{
    const struct pe_value *v = pe_belief_given(d, name);
    return v && v->kind == PE_INTEGER ? v->integer : -1;
}

/* The rotated part of a head alone, as DeepSeek's q_pe of 64 channels of 192, is as believed. */
static void take_part(struct pe_diagnosis *d)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    int64_t found = (int64_t)t->shape[t->rank - 1], head_dim = given_integer(d, "head_dim");
    if (head_dim < 0 || head_dim == found || given_integer(d, "rotary_dim") != found)
        return;
    pe_belief_replace(d, "head_dim", (struct pe_value){.kind = PE_INTEGER, .integer = found});
    pe_belief_replace(d, "rotary_offset", (struct pe_value){.kind = PE_INTEGER});
}

/* Another width takes the believed one's place, where a head has no other parts. */
static void take_width(struct pe_diagnosis *d)
{
    int64_t found = (int64_t)d->evidence.row_len, head_dim = given_integer(d, "head_dim");
    int64_t rotated = given_integer(d, "rotary_dim");
    bool is_whole =
        (rotated < 0 || rotated == head_dim) && !pe_belief_given(d, "axes_dim") && !pe_belief_given(d, "mrope_section");
    if (head_dim <= 0 || head_dim > PE_HEAD_DIM_MAX || head_dim == found || !is_whole)
        return;
    if (rotated > 0)
        pe_belief_replace(d, "rotary_dim", (struct pe_value){.kind = PE_INTEGER, .integer = found});
    pe_sizes_take_width(d, "head_dim", (uint64_t)found, (uint64_t)found, (uint64_t)head_dim);
}

static enum pe_status read_rotated(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_operand axes;
    const struct pe_value *form = pe_belief_given(d, "form");
    enum pe_status status = pe_rotary_check_scheme(d, err);
    if (status)
        return status;
    if (is_flat(d) && !pe_belief_given(d, "head_dim"))
        return pe_fail(err, "/head_dim",
                       "the tensor_layout %s needs head_dim, which the shape of q_out does not determine",
                       d->belief.tensor_layout);
    take_part(d);
    status = move_channels(d, err);
    if (status)
        return status;
    split_heads(d, &axes);
    if (!place_any(d, &axes) || axes.width > PE_HEAD_DIM_MAX) {
        return pe_rotary_wrong_shape(
            d,
            "[batch, heads, n, head_dim], where leading axes may be missing, head_dim at most 4096, or "
            "the axes of another tensor_layout",
            err);
    }
    take_width(d);
    status = pe_belief_fix(d, "head_dim", d->evidence.row_len, pe_evidence_name(&d->evidence, 0), err);
    if (!status && form && !(form->kind == PE_STRING && pe_same(form->string, "concat")))
        return pe_fail(err, "/form", "form is for tables; leave it out with %s and %s", d->evidence.kind->input,
                       pe_evidence_name(&d->evidence, 0));
    pe_rotary_set_form(d, "concat");
    set_len(d, axes.n);
    return status;
}

/* The rotation, the row of the table that was computed last, and the pair of each channel. */
struct rotor {
    struct pe_row_rotation turn;
    uint64_t last; /* its position number + 1; 0: none */
    double *row, *in;
    int *pair, *partner; /* [head_dim], -1: not rotated */
};

static void find_pairs(const struct pe_rotation *r, int *pair, int *partner)
{
    for (size_t j = 0; j < r->head_dim; j++)
        pair[j] = partner[j] = -1;
    for (size_t b = 0; b < r->n_blocks; b++)
        for (size_t i = 0; i < r->blocks[b].n_pairs; i++) {
            const struct pe_rotation_block *block = &r->blocks[b];
            size_t c = block->pair0 + i, at = r->offset + block->first + i * block->step;
            pair[at] = pair[at + block->partner] = (int)c;
            partner[at] = (int)(at + block->partner);
            partner[at + block->partner] = (int)at;
        }
    for (size_t c = 0; r->to_half && c < r->n_pairs; c++)
        pair[r->offset + c] = pair[r->offset + r->n_pairs + c] = (int)c;
    for (size_t i = 0; r->is_tiled && i < 2 * r->n_pairs; i++)
        pair[r->offset + i] = (int)(i % r->n_pairs);
}

static enum pe_status prepare_rotor(struct pe_model *m, struct pe_failure *err)
{
    size_t d = (size_t)m->d->evidence.row_len;
    struct rotor *r = m->state = calloc(1, sizeof *r + (m->n_columns + 3 * d) * sizeof(double) + 2 * d * sizeof(int));
    if (!r)
        return pe_no_memory(err);
    m->plan->scheme->rotate(m->plan, &r->turn.rotation, NULL);
    r->row = (double *)(void *)(r + 1);
    r->in = r->row + m->n_columns;
    r->pair = (int *)(void *)(r->in + 3 * d);
    r->partner = r->pair + d;
    if (r->turn.rotation.head_dim != d || !m->columns)
        return pe_fail(err, "", "the width differs");
    if (m->transforms.turn && (r->turn.rotation.to_half || r->turn.rotation.is_tiled))
        return pe_fail(err, "", "the width differs");
    find_pairs(&r->turn.rotation, r->pair, r->partner);
    return PE_OK;
}

/* ---- What is no rotation ---- */

/* The column of cosines that channel j has, which is rotated. */
static size_t column_of(const struct pe_model *m, size_t j)
{
    const struct rotor *r = m->state;
    const struct pe_rotation *rot = &r->turn.rotation;
    size_t at = j - rot->offset;
    if (m->transforms.turn != PE_TURN_OTHER_TABLE)
        return (size_t)r->pair[j];
    return rot->blocks[0].partner == 1 ? at % rot->n_pairs : at / 2;
}

static void turn_otherwise(const struct pe_model *m, const double *row, const double *in, double *out)
{
    const struct rotor *r = m->state;
    enum pe_turn turn = m->transforms.turn;
    for (size_t j = 0; j < r->turn.rotation.head_dim; j++) {
        if (r->pair[j] < 0) {
            out[j] = in[j];
            continue;
        }
        size_t c = column_of(m, j), partner = (size_t)r->partner[j];
        double sine = turn == PE_TURN_COSINES ? 0 : row[m->n_columns / 2 + c];
        out[j] = in[j] * row[c] + (j < partner && turn != PE_TURN_UNSIGNED ? -sine : sine) * in[partner];
    }
}

static void rotate(const struct pe_model *m, const double *row, const double *in, double *out)
{
    if (m->transforms.turn)
        turn_otherwise(m, row, in, out);
    else
        pe_rotate_row(&((struct rotor *)m->state)->turn, row, PE_F64, in, PE_F64, out);
}

/* ---- Channels ---- */

int pe_rotated_pair(const struct pe_model *m, uint64_t j)
{
    const struct pe_channels *channels = &m->transforms.channels;
    return ((const struct rotor *)m->state)->pair[channels->order && channels->is_after ? channels->order[j] : j];
}

bool pe_rotated_keeps_lengths(const struct pe_model *m)
{
    return !((const struct rotor *)m->state)->turn.rotation.is_tiled && !m->transforms.turn;
}

void pe_rotated_channels(const struct pe_model *m, uint64_t col0, size_t n, double *out)
{
    for (size_t j = 0; j < n; j++)
        out[j] = pe_rotated_pair(m, col0 + j) >= 0;
}

/* A head may take channels from others, so rows of those are read. */
void pe_input_in_order(const struct pe_diagnosis *d, const struct pe_channels *channels, uint64_t row, double *out)
{
    const struct pe_evidence *e = &d->evidence;
    if (!channels->order || channels->is_after) {
        pe_evidence_input(e, row, out);
        return;
    }
    double whole[PE_HEAD_DIM_MAX];
    size_t width = (size_t)e->row_len;
    uint64_t step = channels->n > width ? e->axes.head_step / width : 0, last = UINT64_MAX;
    uint64_t head = step ? row / step % (channels->n / width) : 0, first = row - head * step;
    for (size_t j = 0; j < width; j++) {
        size_t at = channels->order[head * width + j];
        uint64_t from = first + at / width * step;
        if (from != last)
            pe_evidence_input(e, from, whole);
        last = from;
        out[j] = whole[at % width];
    }
}

/* The rotated vector in another order. */
static void reorder(const struct pe_channels *channels, size_t n, double *room, double *x)
{
    if (!channels->order || !channels->is_after)
        return;
    memcpy(room, x, n * sizeof *x);
    for (size_t j = 0; j < n; j++)
        x[j] = room[channels->order[j]];
}

static const double *row_at(const struct pe_model *m, uint64_t i)
{
    struct rotor *r = m->state;
    if (m->kept)
        return m->kept + i * m->n_columns;
    if (r->last != i + 1)
        pe_rotary_row(m, i, r->row);
    r->last = i + 1;
    return r->row;
}

static void multiply(double factor, size_t n, double *x)
{
    for (size_t j = 0; factor != 1 && j < n; j++)
        x[j] *= factor;
}

static void fill_rotated(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    struct rotor *r = m->state;
    size_t d = (size_t)m->d->evidence.row_len;
    uint64_t place = pe_model_position(m, row);
    double *whole = n == d ? out : r->in + d;
    (void)t;
    pe_input_in_order(m->d, &m->transforms.channels, row, r->in);
    rotate(m, row_at(m, place), r->in, whole);
    multiply(pe_model_query_factor(m, place), d, whole);
    reorder(&m->transforms.channels, d, r->in + 2 * d, whole);
    if (whole != out)
        memcpy(out, whole + col0, n * sizeof *out);
}

/* Numbers that are no rotation have no pairs that could be asked whether one angle explains both (../search/own.c). */
#define NO_ROTATION_LOSS 0x1p-10

/* Of n channels at position number i. */
static void phases_at(const struct pe_model *m, uint64_t i, uint64_t col0, size_t n, double *out)
{
    double of_pairs[PE_HEAD_DIM_MAX / 2];
    pe_wave_phases(m, i, 0, m->n_columns / 2, of_pairs);
    for (size_t j = 0; j < n; j++)
        out[j] = pe_rotated_pair(m, col0 + j) < 0 ? 0
                 : m->transforms.turn             ? fmin(of_pairs[column_of(m, col0 + j)], NO_ROTATION_LOSS)
                                                  : of_pairs[pe_rotated_pair(m, col0 + j)];
}

static void phases_of_rotated(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    (void)t;
    phases_at(m, pe_model_position(m, row), col0, n, out);
}

void pe_rotated_at(const struct pe_model *m, uint64_t i, const double *in, double *out, double *phase)
{
    rotate(m, row_at(m, i), in, out);
    multiply(pe_model_query_factor(m, i), (size_t)m->d->evidence.row_len, out);
    phases_at(m, i, 0, (size_t)m->d->evidence.row_len, phase);
}

double pe_rotated_alone(const struct pe_model *m, size_t j, double p, double *out)
{
    size_t d = (size_t)m->d->evidence.row_len, pairs = m->n_columns / 2;
    double *table = out + d, *in = out + 2 * d;
    int c = pe_rotated_pair(m, j);
    if (c >= 0 && m->transforms.turn)
        c = (int)column_of(m, j);
    memset(table, 0, m->n_columns * sizeof *table);
    if (c >= 0) {
        table[c] = pe_wave_at(m, (size_t)c, p, 0);
        table[pairs + (size_t)c] = pe_wave_at(m, pairs + (size_t)c, p, 0);
    }
    pe_evidence_input(&m->d->evidence, 0, in);
    rotate(m, table, in, out);
    multiply(pe_query_factor(&m->query_scale, p), d, out);
    return c >= 0 ? pe_wave_loss(m, (size_t)c, p) : 0;
}

const struct pe_evidence_kind pe_evidence_rotated = {.id = PE_OF_ROTATED,
                                                     .tensors = {"q_out"},
                                                     .input = "q",
                                                     .scheme = "rope",
                                                     .outputs = {"cos_sin"},
                                                     .read = read_rotated,
                                                     .prepare = prepare_rotor,
                                                     .fill = fill_rotated,
                                                     .phases = phases_of_rotated};

const struct pe_evidence_kind pe_evidence_keys = {.id = PE_OF_ROTATED,
                                                  .is_key = true,
                                                  .tensors = {"k_out"},
                                                  .input = "k",
                                                  .scheme = "rope",
                                                  .outputs = {"cos_sin"},
                                                  .read = read_rotated,
                                                  .prepare = prepare_rotor,
                                                  .fill = fill_rotated,
                                                  .phases = phases_of_rotated};
