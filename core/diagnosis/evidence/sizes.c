/* Tensors with more or fewer rows, or rows of the batch, than the belief: compared where they match.
 *
 * Of a tensor that is longer the rows are kept that are the believed ones, wherever they begin (a class token may be
 * before them, the rest of a cache behind); of a belief that is longer those positions that the tensor has. Where no
 * rows match, the first ones are compared, so that whatever else is wrong can be found. What was left out is stated as
 * a finding of its own (../search/where.c). */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which rows match ---- */

enum { ROWS_BETWEEN = 64 };

static bool has_numbers(const struct pe_evidence *e)
{
    return e->kind->id == PE_OF_TABLES || e->kind->id == PE_OF_ENCODING || e->kind->id == PE_OF_IDS;
}

/* Ids are i64 in a plan, one at a time, or f64. */
static void fill(const struct pe_plan *plan, size_t t, uint64_t first, size_t n, double *out)
{
    int64_t id;
    if (pe_plan_output(plan, t)->dtype != PE_I64) {
        pe_fill(plan, t, first, n, out);
        return;
    }
    pe_fill(plan, t, first, 1, &id);
    *out = (double)id;
}

/* Is a row of the evidence one of a plan? Of ids it is a column. */
static bool is_row(const struct pe_evidence *e, const struct pe_plan *plan, uint64_t found, uint64_t believed)
{
    enum { SOME = 64 };
    double x[SOME], y[SOME], largest = 0, error = 0;
    bool are_ids = e->kind->id == PE_OF_IDS;
    size_t n_tensors = are_ids ? 1 : e->n_tensors < 2 ? e->n_tensors : 2;
    const struct pe_output *o = pe_plan_output(plan, 0);
    for (size_t t = 0; t < n_tensors; t++)
        for (uint64_t c0 = 0, n; c0 < (are_ids ? e->n_rows : e->row_len); c0 += n) {
            n = are_ids ? 1 : e->row_len - c0 < SOME ? e->row_len - c0 : SOME;
            uint64_t first = are_ids ? c0 * o->row_len + believed : believed * o->row_len + c0;
            pe_evidence_read(e, t, are_ids ? c0 : found, are_ids ? found : c0, (size_t)n, x);
            fill(plan, e->kind->id == PE_OF_TABLES ? pe_evidence_table(e, t) : t, first, (size_t)n, y);
            for (size_t j = 0; j < n; j++) {
                largest = fmax(largest, fabs(y[j]));
                error = isfinite(x[j]) ? fmax(error, fabs(x[j] - y[j])) : error;
            }
            if (error > 0.5 * largest)
                return false;
        }
    return error <= 1e-2 * largest;
}

/* Do n rows match, one list from `first` on, the other from its beginning? Three of them tell. */
static bool do_match(const struct pe_evidence *e, const struct pe_plan *plan, uint64_t first, uint64_t n,
                     bool is_longer)
{
    const uint64_t some[] = {n - 1, 0, n / 2};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (!is_row(e, plan, some[i] + (is_longer ? first : 0), some[i] + (is_longer ? 0 : first)))
            return false;
    return true;
}

/* Where n rows of the longer one are those of the shorter one: at its beginning, its end, or between; 0 where they are
 * nowhere. */
static uint64_t find_first(const struct pe_evidence *e, const struct pe_plan *plan, uint64_t n, uint64_t n_longer,
                           bool is_longer, bool *matches)
{
    uint64_t last = n_longer - n;
    *matches = true;
    for (uint64_t i = 0; has_numbers(e) && i <= last; i++) {
        uint64_t first = i < 2 ? i * last : i - 1;
        if (i % ROWS_BETWEEN == 0 && pe_is_cancelled())
            break;
        if (do_match(e, plan, first, n, is_longer))
            return first;
    }
    *matches = false;
    return 0;
}

/* ---- A tensor that is longer ---- */

/* What the rows are that are left out, of a tensor with its own axes still. */
static enum pe_left_is what_is_left(const struct pe_evidence *e, const struct pe_size *s)
{
    double x[2];
    bool are_zero = true, are_repeated = s->n_found % s->n_believed == 0;
    bool are_ids = e->kind->id == PE_OF_IDS;
    uint64_t n_others = are_ids ? e->n_rows : e->row_len;
    for (size_t t = 0; t < e->n_tensors && (are_zero || are_repeated); t++)
        for (uint64_t i = 0; i < s->n_found && !(i % ROWS_BETWEEN == 0 && pe_is_cancelled()); i++) {
            bool is_kept = i >= s->first && i < s->first + s->n_believed;
            for (uint64_t c = 0; !is_kept && c < n_others && (are_zero || are_repeated); c++) {
                uint64_t like = i % s->n_believed;
                pe_evidence_read(e, t, are_ids ? c : i, are_ids ? i : c, 1, &x[0]);
                pe_evidence_read(e, t, are_ids ? c : like, are_ids ? like : c, 1, &x[1]);
                are_zero = are_zero && x[0] == 0;
                are_repeated = are_repeated && x[0] == x[1];
            }
        }
    return are_zero && !are_ids ? PE_LEFT_ZERO : are_repeated ? PE_LEFT_REPEATED : PE_LEFT_OTHER;
}

/* Do the rows behind go on as the belief does, where it is a run? */
static bool do_go_on(struct pe_diagnosis *d, const struct pe_size *s)
{
    const struct pe_value *len = pe_belief_given(d, "len");
    if (!has_numbers(&d->evidence) || s->first != 0 || !len || len->kind != PE_INTEGER)
        return false;
    pe_belief_replace(d, "len", (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)s->n_found});
    struct pe_plan *plan = pe_belief_try(d, s->n_found);
    pe_belief_replace(d, "len", (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)s->n_believed});
    bool goes_on = plan && do_match(&d->evidence, plan, 0, s->n_found, true);
    pe_plan_free(plan);
    return goes_on;
}

/* The axis that counts positions, of a rotated tensor or one whose rows are not a batch's. */
static unsigned axis_of_rows(const struct pe_evidence *e, bool is_batch)
{
    const struct pe_tensor *t = &e->tensors[0];
    uint64_t step = 1, of_rows = is_batch ? e->axes.batch_step : e->axes.row_step,
             n = is_batch ? e->axes.n_batches : e->axes.n;
    if (e->kind->id == PE_OF_IDS)
        return t->rank - 1;
    if (e->kind->id != PE_OF_ROTATED)
        return t->rank - 2;
    for (unsigned a = t->rank; a-- > 0; step *= t->shape[a])
        if (step == of_rows && t->shape[a] == n)
            return a;
    return t->rank;
}

static enum pe_status shorten_tensor(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_size *s,
                                     struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    unsigned axis = axis_of_rows(e, s->of == PE_SIZE_OF_BATCH);
    bool matches = false;
    if (axis >= e->tensors[0].rank)
        return err->status;
    if (s->of == PE_SIZE_OF_ROWS)
        s->first = find_first(e, plan, s->n_believed, s->n_found, true, &matches);
    if (e->kind->id != PE_OF_ROTATED)
        s->left = matches && do_go_on(d, s) ? PE_LEFT_GOING_ON : what_is_left(e, s);
    return pe_evidence_cut(d, axis, s->first, s->n_believed, err);
}

/* ---- A belief that is longer ---- */

static size_t without_sequence(struct pe_field *fields, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!pe_belief_is_sequence(fields[i].name))
            fields[kept++] = fields[i];
    return kept;
}

static enum pe_status list_positions(struct pe_diagnosis *d, const struct pe_plan *plan, const struct pe_size *s,
                                     struct pe_failure *err)
{
    uint64_t n = s->n_found, n_axes = plan->seq.n_axes;
    double *x = malloc(n_axes * n * sizeof *x);
    if (!x)
        return pe_no_memory(err);
    for (unsigned a = 0; a < n_axes; a++)
        for (uint64_t i = 0; i < n; i++)
            x[a * n + i] = pe_coordinate(plan, a, s->first + i);
    free(d->evidence.places);
    d->evidence.places = x;
    struct pe_belief *b = &d->belief;
    size_t before = b->inheritance->n;
    b->n_asked = without_sequence(b->asked, b->n_asked);
    b->inheritance->n = without_sequence(b->inheritance->fields, b->inheritance->n);
    b->n_stated -= before - b->inheritance->n < b->n_stated ? before - b->inheritance->n : 0;
    struct pe_tensor list = {.dtype = PE_F64, .rank = 1, .shape = {n}, .data = x};
    if (n_axes > 1)
        list = (struct pe_tensor){.dtype = PE_F64, .rank = 2, .shape = {n_axes, n}, .data = x};
    pe_belief_set(d, "positions", (struct pe_value){.kind = PE_ARRAY, .array = list});
    return PE_OK;
}

static enum pe_status shorten_belief(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_size *s,
                                     struct pe_failure *err)
{
    bool matches;
    const struct pe_value *len = pe_belief_given(d, "len"), *offset = pe_belief_given(d, "offset");
    s->first = find_first(&d->evidence, plan, s->n_found, s->n_believed, false, &matches);
    if (!len || len->kind != PE_INTEGER || (offset && offset->kind != PE_INTEGER) || pe_belief_given(d, "shard"))
        return list_positions(d, plan, s, err);
    pe_belief_replace(d, "len", (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)s->n_found});
    int64_t first = (offset ? offset->integer : 0) + (int64_t)s->first;
    if (s->first)
        pe_belief_replace(d, "offset", (struct pe_value){.kind = PE_INTEGER, .integer = first});
    return PE_OK;
}

/* Positions of fewer rows of the batch. */
static enum pe_status shorten_batch(struct pe_diagnosis *d, struct pe_size *s, struct pe_failure *err)
{
    struct pe_belief *b = &d->belief;
    if (b->has_mask || b->positions->array.rank != 2)
        return err->status;
    b->by_batch = *b->positions;
    b->by_batch.array.shape[0] = s->n_found;
    b->positions = &b->by_batch;
    pe_belief_replace(d, "positions", pe_flat_positions(b->positions));
    return PE_OK;
}

/* ---- Another grid ---- */

static struct pe_value list_of(const double *sides, unsigned n)
{
    return (struct pe_value){.kind = PE_ARRAY, .array = {.dtype = PE_F64, .rank = 1, .shape = {n}, .data = sides}};
}

/* Does the belief with these sides give every row? */
static bool has_grid(struct pe_diagnosis *d, const struct pe_size *s)
{
    pe_belief_replace(d, "grid", list_of(s->sides, s->n_sides));
    struct pe_plan *plan = pe_belief_try(d, 1);
    const struct pe_output *o = plan ? pe_plan_output(plan, 0) : NULL;
    bool are_ids = d->evidence.kind->id == PE_OF_IDS;
    bool has =
        o && (are_ids ? o->row_len : o->n_rows) == s->n_found && do_match(&d->evidence, plan, 0, s->n_found, true);
    for (uint64_t i = 0; has && i < s->n_found; i++)
        has = is_row(&d->evidence, plan, i, i);
    pe_plan_free(plan);
    return has;
}

/* The sides with which a believed grid has as many rows as the tensor, the first axis as believed or of length 1.
 * The list of the belief becomes that of *s, which the caller keeps where this is true. */
static bool find_grid(struct pe_diagnosis *d, struct pe_size *s)
{
    const struct pe_value *given = pe_belief_given(d, "grid");
    if (!given || given->kind != PE_ARRAY || given->array.rank != 1 || !has_numbers(&d->evidence))
        return false;
    const struct pe_value believed = *given;
    s->n_sides = (unsigned)given->array.shape[0];
    for (unsigned a = 0; a < s->n_sides && a < 3; a++)
        s->believed_sides[a] = pe_element(given->array.dtype, given->array.data, a);
    bool found = false;
    for (int is_one = 0; !found && (s->n_sides == 2 || s->n_sides == 3) && is_one < 2; is_one++) {
        double frames = s->n_sides == 2 || is_one ? 1 : s->believed_sides[0], n = (double)s->n_found / frames;
        for (double h = 1; !found && h <= n && n == floor(n) && !pe_is_cancelled(); h++) {
            if (n / h != floor(n / h))
                continue;
            memcpy(s->sides, s->n_sides == 2 ? (double[]){h, n / h, 0} : (double[]){frames, h, n / h}, sizeof s->sides);
            found = has_grid(d, s);
        }
        is_one += s->n_sides == 2;
    }
    if (!found)
        pe_belief_replace(d, "grid", believed);
    return found;
}

/* A table that is not resized: the belief with its grid for the other gives it as it is. */
static bool find_table(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_size *s)
{
    const struct pe_value *grid = pe_belief_given(d, "grid"), *config = pe_plan_config(plan),
                          *table = pe_stated(config, "table_grid");
    if (!grid || !table || table->kind != PE_ARRAY || grid->kind != PE_ARRAY || grid->array.rank != 1 ||
        plan->weights[0].tensor.shape[0] != s->n_found || !pe_resized_is_table(d, plan))
        return false;
    s->n_sides = (unsigned)table->array.shape[0];
    for (unsigned a = 0; a < s->n_sides; a++) {
        s->sides[a] = pe_element(table->array.dtype, table->array.data, a);
        s->believed_sides[a] = pe_element(grid->array.dtype, grid->array.data, a);
    }
    if (pe_belief_given(d, "interpolate_offset"))
        pe_belief_replace(d, "interpolate_offset", (struct pe_value){.kind = PE_REAL});
    return true;
}

/* ---- Rows in front ---- */

/* Is it a tensor without some of the rows that come before those of positions, as class tokens or text? */
static bool lacks_prefix(const struct pe_evidence *e, const struct pe_plan *plan, const struct pe_size *s)
{
    return e->kind->id == PE_OF_ENCODING && e->n_tensors == 1 && s->of == PE_SIZE_OF_ROWS &&
           s->n_found < s->n_believed && s->n_believed - s->n_found <= pe_absolute_n_prefix(plan);
}

/* The other rows are compared, at their own places. */
static enum pe_status pad_prefix(struct pe_diagnosis *d, struct pe_size *s, struct pe_failure *err)
{
    s->first = s->n_believed - s->n_found;
    s->is_padded = true;
    return pe_evidence_pad(d, d->evidence.tensors[0].rank - 2, s->first, s->n_believed, err);
}

/* ---- A map ---- */

/* Are the maps of the tensor those of the plan's heads from `first` on, or the reverse? One row of each tells. */
static bool are_heads(const struct pe_evidence *e, const struct pe_plan *plan, const struct pe_size *s, uint64_t first)
{
    enum { SOME = 64 };
    double x[SOME], y[SOME];
    uint64_t n_rows = plan->seq.q->n, row = n_rows - 1, more = s->n_found > s->n_believed;
    size_t n = e->row_len < SOME ? (size_t)e->row_len : SOME;
    for (uint64_t h = 0; h < (more ? s->n_believed : s->n_found); h++) {
        pe_evidence_read(e, 0, (h + (more ? first : 0)) * n_rows + row, 0, n, x);
        pe_fill(plan, 0, ((h + (more ? 0 : first)) * n_rows + row) * e->row_len, n, y);
        for (size_t j = 0; j < n; j++)
            if (x[j] != y[j] && !(fabs(x[j] - y[j]) <= 1e-2 * fabs(y[j])))
                return false;
    }
    return true;
}

/* Fewer heads are some of the believed ones, as on one rank of a tensor-parallel model; more heads begin with them. */
static enum pe_status mend_heads(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_size *s,
                                 struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    uint64_t last = s->n_found > s->n_believed ? s->n_found - s->n_believed : s->n_believed - s->n_found;
    while (s->first <= last && !are_heads(e, plan, s, s->first))
        s->first++;
    if (s->first > last) { /* another number of heads has other slopes */
        s->first = 0;
        s->left = PE_LEFT_NONE;
        pe_belief_replace(d, "num_heads", (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)s->n_found});
        return PE_OK;
    }
    s->is_padded = s->n_found < s->n_believed;
    return s->is_padded ? pe_evidence_pad(d, 0, s->first, s->n_believed, err)
                        : pe_evidence_cut(d, 0, s->first, s->n_believed, err);
}

static bool replace_length(struct pe_diagnosis *d, const char *name, uint64_t n)
{
    const struct pe_value *v = pe_belief_given(d, name);
    if (!v || v->kind != PE_INTEGER)
        return false;
    pe_belief_replace(d, name, (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)n});
    return true;
}

/* Queries and keys, where lengths alone give them. false: they are as many. */
static bool take_lengths(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_size *s)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    uint64_t q = t->shape[t->rank - 2], k = t->shape[t->rank - 1];
    *s = (struct pe_size){
        .of = PE_SIZE_OF_MAP, .n_found = q * k, .n_believed = plan->seq.q->n * plan->seq.k->n, .n_sides = 2};
    memcpy(s->sides, (double[]){(double)q, (double)k, 0}, sizeof s->sides);
    memcpy(s->believed_sides, (double[]){(double)plan->seq.q->n, (double)plan->seq.k->n, 0}, sizeof s->sides);
    if (q == plan->seq.q->n && k == plan->seq.k->n)
        return false;
    if (q == k && replace_length(d, "len", q))
        return true;
    bool has_q = replace_length(d, "q_len", q), has_k = replace_length(d, "k_len", k);
    return has_q && has_k;
}

static enum pe_status mend_map(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_evidence *e = &d->evidence;
    const struct pe_tensor *t = &e->tensors[0];
    const struct pe_output *o = pe_plan_output(plan, 0);
    struct pe_size s;
    if (e->is_turned || t->rank < 2 || pe_belief_given(d, "key_mask"))
        return err->status;
    if (take_lengths(d, plan, &s)) {
        e->sizes[e->n_sizes++] = s;
        return PE_OK;
    }
    s = (struct pe_size){
        .of = PE_SIZE_OF_HEADS, .n_found = t->shape[0], .n_believed = o->rank > 2 ? o->shape[o->rank - 3] : 0};
    if (e->kind->id != PE_OF_BIAS || t->rank != 3 || s.n_found == s.n_believed || !s.n_believed ||
        e->row_len != plan->seq.k->n || t->shape[1] != plan->seq.q->n)
        return err->status;
    enum pe_status status = mend_heads(d, plan, &s, err);
    if (!status)
        e->sizes[e->n_sizes++] = s;
    return status;
}

/* ---- Both ---- */

/* How many positions the tensor has, and its belief; false: their number is not all that differs. */
static bool compare_rows(const struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_size *s)
{
    const struct pe_evidence *e = &d->evidence;
    const struct pe_output *o = pe_plan_output(plan, 0);
    const struct pe_tensor *t = &e->tensors[0], *by_batch = d->belief.positions ? &d->belief.positions->array : NULL;
    enum pe_evidence_id id = e->kind->id;
    bool is_rotated = id == PE_OF_ROTATED, are_ids = id == PE_OF_IDS;
    bool has_rows = id == PE_OF_TABLES || id == PE_OF_ENCODING || id == PE_OF_ANGLES;
    *s = (struct pe_size){.n_believed = is_rotated || are_ids ? plan->seq.k->n : o->n_rows};
    if (is_rotated && by_batch && e->axes.n && by_batch->shape[by_batch->rank - 1] == e->axes.n) {
        s->of = PE_SIZE_OF_BATCH;
        s->n_found = e->axes.n_batches;
        s->n_believed = by_batch->shape[by_batch->rank - 2];
    } else if (is_rotated)
        s->n_found = e->axes.n;
    else
        s->n_found = are_ids ? e->row_len : has_rows && t->rank > 1 ? t->shape[t->rank - 2] : 0;
    bool is_alike = is_rotated || (are_ids ? o->n_rows == e->n_rows : o->row_len == e->row_len);
    return s->n_found && s->n_believed && s->n_found != s->n_believed && is_alike && !e->is_turned &&
           (!by_batch || s->of == PE_SIZE_OF_BATCH);
}

enum pe_status pe_sizes_mend(struct pe_diagnosis *d, const struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_size s;
    struct pe_evidence *e = &d->evidence;
    if (e->n_sizes < PE_SIZES_MAX && (e->kind->id == PE_OF_BIAS || e->kind->id == PE_OF_BUCKETS))
        return mend_map(d, plan, err);
    if (e->kind->id == PE_OF_MAPS)
        return pe_sizes_mend_attention(d, plan, err);
    if (!compare_rows(d, plan, &s) || e->n_sizes == PE_SIZES_MAX)
        return err->status;
    bool is_table = s.of == PE_SIZE_OF_ROWS && find_table(d, plan, &s);
    if (is_table || (s.of == PE_SIZE_OF_ROWS && find_grid(d, &s))) {
        struct pe_size *kept = &e->sizes[e->n_sizes++];
        *kept = s;
        kept->of = is_table ? PE_SIZE_OF_TABLE : PE_SIZE_OF_GRID;
        pe_belief_replace(d, "grid", list_of(kept->sides, kept->n_sides));
        return PE_OK;
    }
    enum pe_status status = lacks_prefix(e, plan, &s)  ? pad_prefix(d, &s, err)
                            : s.n_found > s.n_believed ? shorten_tensor(d, plan, &s, err)
                            : s.of == PE_SIZE_OF_BATCH ? shorten_batch(d, &s, err)
                                                       : shorten_belief(d, plan, &s, err);
    if (!status && e->kind->id == PE_OF_ROTATED && !pe_evidence_axes(e, d->belief.tensor_layout, &e->axes))
        return PE_INVALID;
    if (!status)
        e->sizes[e->n_sizes++] = s;
    return status;
}

void pe_sizes_take_width(struct pe_diagnosis *d, const char *field, uint64_t value, uint64_t n_found,
                         uint64_t n_believed)
{
    struct pe_evidence *e = &d->evidence;
    pe_belief_replace(d, field, (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)value});
    if (e->n_sizes < PE_SIZES_MAX)
        e->sizes[e->n_sizes++] = (struct pe_size){
            .of = PE_SIZE_OF_CHANNELS, .left = PE_LEFT_NONE, .n_found = n_found, .n_believed = n_believed};
}
