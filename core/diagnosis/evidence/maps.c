/* Attention maps: the scores or the probabilities of queries and keys that came with them, before rotation.
 *
 * The belief is a request of /attention, so a model is a plan of the operation attend, and a row of its numbers is one
 * row of a block (core/attention/block.c): the keys of a head are rotated once and kept while its rows are compared.
 * What no request can say is changed in the model's own plan: the factor of the bias, a side that is not rotated or in
 * the opposite direction.
 *
 * How near: with E = scale·|q|·|k| a score is a sum of products that float32 code adds in any order, so its error grows
 * with E and not with the score; a rotation adds what its angles lose. A probability is off by as much as the largest
 * error of its row of scores, as a factor. */
#include "core/attention/attention.h"
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const pe_operand_names[PE_N_OPERANDS] = {"q", "k"};

const char *const pe_stage_words[] = {NULL, "other", "log_probs", "raw", "scaled", "unmasked"};

/* ---- The tensors ---- */

static enum pe_status read_map(struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    const char *name = d->evidence.kind->tensors[0];
    char shape[96], pointer[24] = "/";
    if (t->rank >= 2)
        return PE_OK;
    pe_shape_print(t->shape, t->rank, shape, sizeof shape);
    return pe_fail(err, strncat(pointer, name, sizeof pointer - 2),
                   "%s has the shape %s; needed: [batch, heads, queries, keys], with the leading axes of q", name,
                   shape);
}

/* The norms of all rows, as the plan of the belief places them: [n_batches, n_heads, n]. */
static enum pe_status measure(struct pe_diagnosis *d, const struct pe_operand *op, double **norms,
                              struct pe_failure *err)
{
    double x[PE_HEAD_DIM_MAX];
    size_t size = pe_dtype_size(op->tensor.dtype);
    uint64_t n = op->n_batches * op->n_heads * op->n;
    if (pe_diagnosis_admit(d, (double)n * sizeof(double), err))
        return err->status;
    *norms = malloc((n + 1) * sizeof **norms);
    if (!*norms)
        return pe_no_memory(err);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t head = i / op->n;
        uint64_t at =
            head / op->n_heads * op->batch_step + head % op->n_heads * op->head_step + i % op->n * op->row_step;
        double sum = 0;
        if (i % 1024 == 1023 && pe_is_cancelled())
            return pe_cancelled(err);
        pe_convert(PE_F64, x, op->tensor.dtype, (const char *)op->tensor.data + at * size, op->width);
        for (uint64_t c = 0; c < op->width; c++)
            sum += x[c] * x[c];
        (*norms)[i] = sqrt(sum);
    }
    return PE_OK;
}

static double farthest(const struct pe_positions *p)
{
    double most = 0;
    for (uint64_t i = 0; i < p->n; i++)
        most = fmax(most, fabs(pe_position_at(p, i)));
    return most;
}

/* What angles of float32 may lose at the farthest position; and counts up to it, of a score's share that is read
 * between rows of a table. */
static double of_turning(const struct pe_plan *plan)
{
    double p = fmax(farthest(plan->seq.q), farthest(plan->seq.k));
    return plan->scheme->rotate || plan->scheme->is_counted ? fmin(0x1p-21 * p, 0.125) : 0;
}

/* What the digits of q or k leave open, as a share of a score: of the row that is shortest. */
static double of_digits(struct pe_evidence *e, const struct pe_operand *op, size_t i)
{
    const struct pe_print *print = e->printed.operands[i];
    double least = (double)INFINITY, n = (double)op->n_batches * (double)op->n_heads * (double)op->n;
    for (uint64_t row = 0; print && row < (uint64_t)n; row++)
        least = e->norms[i][row] > 0 ? fmin(least, e->norms[i][row]) : least;
    double share = print ? sqrt((double)op->width) * print->half / least : 0;
    if (share > 0x1p-22)
        e->printed.name = pe_operand_names[i];
    return share > 0x1p-22 ? share : 0;
}

/* Of the belief, once: neither depends on a hypothesis. */
static enum pe_status measure_operands(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_attention *t = plan->attention;
    struct pe_evidence *e = &d->evidence;
    if (e->norms[PE_KEYS])
        return PE_OK;
    e->turning = of_turning(plan);
    const struct pe_operand *operands[] = {[PE_QUERIES] = &t->q, [PE_KEYS] = &t->k};
    for (size_t i = 0; i < PE_N_OPERANDS; i++) {
        if (measure(d, operands[i], &e->norms[i], err))
            return err->status;
        e->turning += of_digits(e, operands[i], i);
    }
    return PE_OK;
}

/* ---- Models ---- */

struct map {
    uint64_t row;     /* whose numbers are known; UINT64_MAX: none */
    double numbers[]; /* [k_len], then the tables of sides that are rotated otherwise, and positions */
};

/* Positions of a side: those of each batch row, where they differ. */
static size_t n_places(const struct pe_side *side)
{
    size_t n_batches = side->positions ? side->positions->n_batches : 0;
    return side->operand->n * (n_batches ? n_batches : 1);
}

/* A table of the same amplitudes at position 0, or of the opposite angles: [places, cosines and sines]. */
static void change_side(struct pe_attention *t, size_t i, enum pe_side_change change, double *table)
{
    bool is_still = change == PE_SIDE_STILL;
    size_t pairs = t->turn.rotation.n_pairs;
    const double *turned = t->sides[i].cosines;
    for (size_t row = 0; row < n_places(&t->sides[i]); row++)
        for (size_t c = 0; c < pairs; c++) {
            const double *from = turned + row * 2 * pairs + c;
            table[row * 2 * pairs + c] = is_still ? hypot(from[0], from[pairs]) : from[0];
            table[row * 2 * pairs + pairs + c] = is_still ? 0 : -from[pairs];
        }
    t->sides[i].cosines = table;
}

/* A table of queries further on, whose positions take the room behind it. */
static void move(const struct pe_plan *plan, double by, double *table)
{
    struct pe_attention *t = plan->attention;
    struct pe_side *side = &t->sides[PE_QUERIES];
    size_t n = n_places(side);
    double *positions = table + n * 2 * t->turn.rotation.n_pairs;
    struct pe_positions moved = *side->positions;
    for (size_t i = 0; i < n; i++)
        positions[i] = pe_position_at(side->positions, i) + by;
    moved = (struct pe_positions){.n = moved.n, .list = positions, .n_batches = moved.n_batches};
    pe_rotate_table(&t->turn, plan, &moved, side->id, 0, n, table);
    side->cosines = table;
}

static double bias_factor(const struct pe_attention *t, enum pe_bias_change change)
{
    switch (change) {
    case PE_BIAS_MISSING: return 0;
    case PE_BIAS_BEFORE_SCALE: return t->scale;
    case PE_BIAS_TWICE: return 2;
    case PE_BIAS_UNSIGNED: return -1;
    default: return 1;
    }
}

static enum pe_status prepare_map(struct pe_model *m, struct pe_failure *err)
{
    struct pe_attention *t = m->plan->attention;
    const struct pe_transforms *changes = &m->transforms;
    enum pe_status status = measure_operands((struct pe_diagnosis *)m->d, m->plan, err);
    size_t n = t->k_len, at = n, room[2];
    for (size_t i = 0; i < 2; i++) {
        bool is_moved = i == PE_QUERIES && changes->moved != 0, is_other = changes->sides[i] || is_moved;
        room[i] = is_other ? n_places(&t->sides[i]) * (2 * t->turn.rotation.n_pairs + is_moved) : 0;
        if (is_other && (!t->turns || !t->sides[i].cosines || (is_moved && m->plan->seq.n_axes != 1)))
            return pe_fail(err, "", "the width differs"); /* its angles are not in a table */
        n += room[i];
    }
    if (changes->bias && t->bias_id == SIZE_MAX)
        return pe_fail(err, "", "the width differs"); /* there is none to change */
    struct map *map = status ? NULL : malloc(sizeof *map + n * sizeof *map->numbers);
    if (status)
        return status;
    if (!map)
        return pe_no_memory(err);
    m->state = map;
    map->row = UINT64_MAX;
    for (size_t i = 0; i < 2; at += room[i], i++)
        if (changes->sides[i])
            change_side(t, i, changes->sides[i], map->numbers + at);
        else if (room[i])
            move(m->plan, changes->moved, map->numbers + at);
    t->bias_factor *= bias_factor(t, changes->bias);
    return PE_OK;
}

/* ---- Numbers ---- */

/* A product, and a share of the rotation of the keys. */
double pe_map_number_work(const struct pe_plan *plan) { return 4 * (double)plan->attention->head_dim; }

static bool are_probs(const struct pe_model *m) { return m->d->evidence.kind == &pe_evidence_probs; }

static void make_row(const struct pe_model *m, struct map *map, uint64_t row)
{
    const struct pe_attention *t = m->plan->attention;
    size_t batch = row / t->q_len / t->n_heads, head = row / t->q_len % t->n_heads;
    enum pe_stage stage = m->transforms.stage;
    bool probs = stage == PE_STAGE_LOG_PROBS || are_probs(m) != (stage == PE_STAGE_OTHER);
    struct pe_workspace *workspace = pe_workspace_borrow(t, UINT64_MAX);
    map->row = UINT64_MAX;
    pe_workspace_load_head(m->plan, workspace, batch, head);
    if (!pe_was_cancelled()) {
        pe_block_make(m->plan, workspace, probs ? PE_PROBS : PE_SCORES, batch, head, row % t->q_len, 1,
                      workspace->block);
        pe_convert(PE_F64, map->numbers, t->a->dtype, workspace->block, t->k_len);
        map->row = row;
    }
    pe_workspace_return(workspace, UINT64_MAX);
    for (size_t j = 0; stage == PE_STAGE_LOG_PROBS && j < t->k_len; j++)
        map->numbers[j] = log(map->numbers[j]);
}

/* Of a map [batch, heads, queries, keys], with leading axes of length 1 left out: the batch row of a row. */
static uint64_t batch_of(const struct pe_evidence *e, uint64_t row)
{
    uint64_t n_batches = e->padding->n_batches;
    return n_batches > 1 ? row / (e->n_rows / n_batches) : 0;
}

bool pe_map_is_padding(const struct pe_evidence *e, uint64_t row)
{
    const struct pe_tensor *t = &e->tensors[0];
    uint64_t q_len = t->shape[t->rank - 2], k_len = e->padding->n;
    if (q_len > k_len || e->row_len != k_len || e->n_rows % e->padding->n_batches)
        return false;
    return !pe_padding_is_token(e->padding, batch_of(e, row) * k_len + k_len - q_len + row % q_len);
}

/* Whatever code has where a key is padding is right. */
static void pass_padding(const struct pe_model *m, uint64_t row, uint64_t col0, size_t n, double *out)
{
    const struct pe_evidence *e = &m->d->evidence;
    if (!e->padding || e->row_len != e->padding->n || e->n_rows % e->padding->n_batches)
        return;
    uint64_t first = batch_of(e, row) * e->padding->n;
    for (size_t j = 0; j < n; j++)
        if (!pe_padding_is_token(e->padding, first + col0 + j))
            pe_evidence_read(e, 0, row, col0 + j, 1, &out[j]);
}

/* Keys that the tensor has not. */
static void pass_missing(const struct pe_model *m, uint64_t row, uint64_t col0, size_t n, double *out)
{
    const struct pe_evidence *e = &m->d->evidence;
    for (size_t i = 0; i < e->n_sizes; i++) {
        const struct pe_size *s = &e->sizes[i];
        for (size_t j = 0; s->is_padded && s->of == PE_SIZE_OF_KEYS && j < n; j++)
            if (col0 + j < s->first || col0 + j >= s->first + s->n_found)
                pe_evidence_read(e, 0, row, col0 + j, 1, &out[j]);
    }
}

static void fill_map(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    struct map *map = m->state;
    (void)t;
    if (map->row != row)
        make_row(m, map, row);
    memcpy(out, map->numbers + col0, n * sizeof *out);
    pass_padding(m, row, col0, n, out);
    pass_missing(m, row, col0, n, out);
}

static double factor_of_query(const struct pe_plan *plan, uint64_t batch, uint64_t i)
{
    const double *factors = plan->attention->sides[PE_QUERIES].factors;
    uint64_t n_batches = plan->seq.q->n_batches;
    return factors ? factors[(n_batches ? batch % n_batches : 0) * plan->attention->q_len + i] : 1;
}

static double reach(const struct pe_positions *p, uint64_t batch, uint64_t n, uint64_t i)
{
    return fabs(pe_position_at(p, (p->n_batches ? batch % p->n_batches : 0) * n + i));
}

double pe_map_reach(const struct pe_model *m, uint64_t row, uint64_t key)
{
    const struct pe_attention *t = m->plan->attention;
    uint64_t batch = row / t->q_len / t->n_heads;
    return fmax(reach(m->plan->seq.q, batch, t->q_len, row % t->q_len), reach(m->plan->seq.k, batch, t->k_len, key));
}

/* E of each score; of a row of probabilities the largest. */
static void phases_of_map(const struct pe_model *m, size_t tensor, uint64_t row, uint64_t col0, size_t n, double *out)
{
    const struct pe_attention *t = m->plan->attention;
    const struct pe_evidence *e = &m->d->evidence;
    uint64_t batch = row / t->q_len / t->n_heads, head = row / t->q_len % t->n_heads;
    uint64_t n_kv = m->d->belief.plan->attention->n_kv_heads, kv = head / (t->n_heads / n_kv);
    const double *keys = e->norms[PE_KEYS] + (batch * n_kv + (m->transforms.is_tiled ? head % n_kv : kv)) * t->k_len;
    double query = fabs(t->scale) * factor_of_query(m->plan, batch, row % t->q_len) * e->norms[PE_QUERIES][row],
           most = 0, of_table = m->plan->scheme->is_counted ? m->plan->scheme->attend->largest(m->plan, 1, 0) : 0;
    (void)tensor;
    for (size_t j = 0; are_probs(m) && j < t->k_len; j++)
        most = fmax(most, keys[j]);
    for (size_t j = 0; j < n; j++)
        out[j] = query * ((are_probs(m) ? most : keys[col0 + j]) + of_table);
}

#define MAP_KIND(name)                                                                                                 \
    const struct pe_evidence_kind pe_evidence_##name = {.id = PE_OF_MAPS,                                              \
                                                        .operation = PE_ATTEND,                                        \
                                                        .tensors = {#name},                                            \
                                                        .scheme = "rope",                                              \
                                                        .outputs = {#name},                                            \
                                                        .read = read_map,                                              \
                                                        .prepare = prepare_map,                                        \
                                                        .fill = fill_map,                                              \
                                                        .phases = phases_of_map}
MAP_KIND(scores);
MAP_KIND(probs);

/* ---- Keys of other heads ---- */

/* The keys as a model would read them that repeats its key heads one after another: query head h reads key head h mod
 * their number. Written once. */
const struct pe_value *pe_tiled_keys(struct pe_diagnosis *d)
{
    const struct pe_attention *t = d->belief.plan->attention;
    struct pe_evidence *e = &d->evidence;
    struct pe_failure err;
    size_t size = pe_dtype_size(t->k.tensor.dtype), row = t->k.width * size, at = 0;
    if (e->tiled_keys.kind == PE_ARRAY)
        return &e->tiled_keys;
    uint64_t n = (uint64_t)t->n_batches * t->n_heads * t->k_len;
    if (t->n_kv_heads == 1 || t->n_kv_heads == t->n_heads || t->fields.tensor_layout != PE_BHND ||
        pe_diagnosis_admit(d, (double)(n * row), &err))
        return NULL;
    char *keys = malloc(n * row + 1);
    d->no_memory |= !keys;
    for (size_t b = 0; keys && b < t->n_batches; b++)
        for (size_t h = 0; h < t->n_heads && !pe_is_cancelled(); h++)
            for (size_t j = 0; j < t->k_len; j++, at += row)
                memcpy(keys + at,
                       (const char *)t->k.tensor.data +
                           (b * t->k.batch_step + h % t->n_kv_heads * t->k.head_step + j * t->k.row_step) * size,
                       row);
    if (!keys)
        return NULL;
    struct pe_tensor tensor = {t->k.tensor.dtype, 4, {t->n_batches, t->n_heads, t->k_len, t->k.width}, keys};
    if (t->n_lead == 0) /* the axis of the batch is missing in q too */
        tensor = (struct pe_tensor){tensor.dtype, 3, {t->n_heads, t->k_len, t->k.width}, keys};
    e->tiled_keys = (struct pe_value){.kind = PE_ARRAY, .array = tensor};
    return &e->tiled_keys;
}
