/* Models: an edited request as a plan, and the transforms of its numbers.
 *
 * A hypothesis is not a formula but a request: the belief's fields with the edit's in their place, planned like any
 * other. So whatever a scheme learns to compute, a diagnosis can recognise. What no configuration can express (cos and
 * sin exchanged, a sign, a factor, a transposed tensor, angles of few bits) is a transform after the plan.
 *
 * Planning thousands of times is the cost of that, so a model whose shape cannot match the evidence is refused before
 * it is planned, and work is counted against the request's limit. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The request of an edit ---- */

static enum pe_status plan_of(const struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_plan **plan,
                              struct pe_failure *err)
{
    struct pe_field fields[PE_FIELDS_MAX];
    struct pe_request request = {.operation = d->evidence.kind->operation,
                                 .fields = fields,
                                 .n_fields = pe_edit_fields(d, edit, fields),
                                 .dtype = PE_F64,
                                 .outputs = d->evidence.kind->outputs,
                                 .positions_max = PE_DIAGNOSED_POSITIONS_MAX};
    while (request.outputs[request.n_outputs])
        request.n_outputs++;
    return pe_plan_new(&request, plan, err);
}

/* ---- Rows with another scaling ---- */

/* Caches of two ladders: rows before some row have the frequencies of one length, the others those of another, as where
 * a cache keeps keys that were rotated before the scaling changed. A request has one length, so the rows behind are of
 * a second plan: the same request with another `scaling`. Where the ladder grows with every row, each row has a plan of
 * its own, of which the last is kept. */
struct pe_pieces {
    struct pe_edit edit;                         /* of the rows behind; borrows what the edit of the model owns */
    struct pe_edit one;                          /* of a single row, where the ladder grows, … */
    struct pe_field scaling[PE_EDIT_FIELDS_MAX]; /* … and its scaling */
    struct pe_plan *plan;
    uint64_t row; /* that the plan is of, where the ladder grows; UINT64_MAX: none yet */
};

static enum pe_status open_pieces(struct pe_model *m, const struct pe_edit *edit, struct pe_failure *err)
{
    const struct pe_transforms *t = &edit->transforms;
    if (!t->scaling_behind)
        return PE_OK;
    if (t->recipe || m->plan->seq.n_axes != 1)
        return pe_fail(err, "", "the width differs"); /* no hypothesis */
    struct pe_pieces *p = m->pieces = calloc(1, sizeof *p);
    if (!p)
        return pe_no_memory(err);
    p->edit = *edit;
    p->edit.n_owned = 0;
    p->row = UINT64_MAX;
    pe_edit_set(&p->edit, "scaling", *t->scaling_behind);
    return t->is_growing ? PE_OK : plan_of(m->d, &p->edit, &p->plan, err);
}

static void forget_piece(struct pe_pieces *p)
{
    pe_plan_free(p->plan);
    pe_edit_drop(&p->one);
    p->plan = NULL;
}

static void drop_pieces(struct pe_pieces *p)
{
    if (p)
        forget_piece(p);
    free(p);
}

/* The scaling of the rows behind, at another length. */
static void set_length(struct pe_pieces *p, double seq_len)
{
    const struct pe_value *behind = p->edit.transforms.scaling_behind;
    size_t n = behind->object.n < PE_EDIT_FIELDS_MAX ? behind->object.n : PE_EDIT_FIELDS_MAX;
    for (size_t i = 0; i < n; i++) {
        p->scaling[i] = behind->object.fields[i];
        if (pe_same(p->scaling[i].name, "seq_len"))
            p->scaling[i].value = (struct pe_value){.kind = PE_REAL, .real = seq_len};
    }
    pe_edit_set(&p->one, "scaling", (struct pe_value){.kind = PE_OBJECT, .object = {p->scaling, n}});
}

/* The request at one row, whose length is that of the sequence up to it. */
static void plan_row(const struct pe_model *m, uint64_t i)
{
    struct pe_pieces *p = m->pieces;
    struct pe_failure err;
    double at = pe_position_at(m->plan->seq.k, i);
    forget_piece(p);
    p->row = i;
    p->one = p->edit;
    pe_edit_remove_sequence(m->d, &p->one);
    pe_edit_set_reals(&p->one, "positions", &at, 1);
    set_length(p, at + 1);
    if (p->one.failed || plan_of(m->d, &p->one, &p->plan, &err))
        p->plan = NULL;
    *m->no_memory |= p->one.failed;
    *m->work += p->plan ? PE_WORK_OF_A_NS * p->plan->cost.ns + p->plan->work : 0;
}

const struct pe_plan *pe_model_plan_at(const struct pe_model *m, uint64_t i, uint64_t *row)
{
    struct pe_pieces *p = m->pieces;
    *row = i;
    if (!p || i < (uint64_t)m->transforms.switched_at)
        return m->plan;
    if (!m->transforms.is_growing)
        return p->plan;
    *row = 0;
    if (p->row != i)
        plan_row(m, i);
    return p->plan;
}

/* ---- Making ---- */

/* ---- Rows of a rotated tensor ---- */

static void place_axes(struct pe_model *m, const struct pe_edit *edit)
{
    const struct pe_value *layout = pe_edit_value(m->d, edit, "tensor_layout");
    if (!pe_evidence_axes(&m->d->evidence, layout ? layout->string : NULL, &m->axes))
        m->axes.n = 0;
}

static bool has_levels(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    const struct pe_value *levels = pe_edit_value(d, edit, "positions_layout");
    return (pe_edit_value(d, edit, "attention_mask") && d->belief.positions) ||
           (levels && !pe_same(levels->string, "axes"));
}

uint64_t pe_model_position(const struct pe_model *m, uint64_t row)
{
    const struct pe_operand *a = &m->axes;
    if (!m->has_shape || m->d->evidence.kind->id != PE_OF_ROTATED)
        return row % m->plan->seq.k->n;
    uint64_t at = row * a->width, batch = m->is_by_batch ? at / a->batch_step % a->n_batches : 0;
    return batch * a->n + at / a->row_step % a->n;
}

/* The scale of queries that an edit has. */
static enum pe_status read_query_scale(struct pe_model *m, const struct pe_edit *edit, struct pe_failure *err)
{
    const struct pe_value *v = pe_edit_value(m->d, edit, "query_scale");
    struct pe_query_scale *s = &m->query_scale;
    if (!v || m->d->evidence.kind->is_key)
        return PE_OK;
    while (!pe_edit_is_word(m->d, edit, "query_scale.type", pe_query_scale_words[s->type]))
        s->type++;
    s->is_given = true;
    s->beta = pe_edit_real(m->d, edit, "query_scale.beta", 0);
    s->original_max_position_embeddings = pe_edit_real(m->d, edit, "query_scale.original_max_position_embeddings", 0);
    return pe_query_scale_check(s, m->plan->seq.n_axes, m->plan->seq.k, err);
}

double pe_model_query_factor(const struct pe_model *m, uint64_t i)
{
    return m->query_scale.is_given ? pe_query_factor(&m->query_scale, pe_position_at(m->plan->seq.k, i)) : 1;
}

uint64_t pe_model_row(const struct pe_model *m, uint64_t head, uint64_t place)
{
    uint64_t batch = m->is_by_batch ? place / m->axes.n : 0;
    return pe_axes_row(&m->axes, batch * m->axes.n_heads + head, place % m->axes.n);
}

/* The same number of rows and columns as the evidence, after transposing it? */
static bool has_shape(const struct pe_model *m)
{
    const struct pe_evidence *e = &m->d->evidence;
    const struct pe_output *o = pe_plan_output(m->plan, 0);
    const struct pe_tensor *t = &e->tensors[0];
    uint64_t length = t->rank > 1 ? t->shape[t->rank - 2] : 1, rows = e->n_rows, columns = e->row_len;
    bool is_shared = pe_evidence_is_shared(e) && !m->is_by_batch;
    if (e->kind->id == PE_OF_ROTATED)
        return m->plan->seq.k->n == m->axes.n * (m->is_by_batch ? m->axes.n_batches : 1);
    if (e->kind->id == PE_OF_LADDER)
        return (m->columns ? m->n_columns : o->row_len) == columns;
    if (m->transforms.transposed && t->rank > 1) {
        rows = e->n_rows / length * e->row_len;
        columns = length;
        length = e->row_len;
    }
    return (o->n_rows == rows || (is_shared && o->n_rows == length)) && o->row_len == columns;
}

/* Another width is no hypothesis of tables and encodings. */
static bool has_width(const struct pe_model *m)
{
    enum pe_evidence_id id = m->d->evidence.kind->id;
    bool has_columns = id == PE_OF_TABLES || id == PE_OF_ENCODING || id == PE_OF_ANGLES;
    return !has_columns || !m->d->belief.plan || m->plan->outputs[0].row_len == m->d->belief.plan->outputs[0].row_len;
}

/* An encoding has each frequency as a sine and as a cosine, and an odd width may have a column of zeros. */
static size_t keep_sines(struct pe_wave *columns, size_t n)
{
    size_t m = 0;
    for (size_t j = 0; j < n; j++)
        if (columns[j].quarter == 0 && columns[j].fh != 0)
            columns[m++] = columns[j];
    return m;
}

static enum pe_status find_columns(struct pe_model *m, struct pe_failure *err)
{
    bool is_ladder = m->d->evidence.kind->id == PE_OF_LADDER, is_map = m->d->evidence.kind->id == PE_OF_MAPS;
    const struct pe_plan *plan = m->plan;
    size_t n = (size_t)plan->outputs[0].row_len;
    if (is_map || !plan->scheme->columns || plan->sources[0].transposed)
        return PE_OK;
    m->columns = calloc(n, sizeof *m->columns + sizeof *m->losses);
    if (!m->columns)
        return pe_no_memory(err);
    if (plan->scheme->columns(plan, plan->sources[0].id, m->columns)) {
        m->n_columns = is_ladder && !plan->scheme->rotate ? keep_sines(m->columns, n) : n;
        m->losses = (struct pe_loss *)(void *)(m->columns + n);
        pe_wave_columns(m);
        return PE_OK;
    }
    free(m->columns);
    m->columns = NULL;
    return PE_OK;
}

static enum pe_status prepare(struct pe_diagnosis *d, struct pe_model *m, const struct pe_edit *edit,
                              struct pe_failure *err)
{
    const struct pe_transforms *t = &edit->transforms;
    enum pe_status status = plan_of(d, edit, &m->plan, err);
    if (status)
        return status;
    if (!has_width(m))
        return pe_fail(err, "", "the width differs");
    m->is_by_batch = has_levels(d, edit);
    if (d->evidence.kind->id == PE_OF_ROTATED) {
        place_axes(m, edit);
        status = read_query_scale(m, edit, err);
        if (status)
            return status;
    }
    m->has_shape = has_shape(m);
    m->is_misfit = !m->has_shape && d->belief.is_misfit && edit->n_fields == 0;
    if (m->is_misfit)
        return PE_OK;
    if (!status)
        status = find_columns(m, err);
    if (d->evidence.kind->id == PE_OF_LADDER)
        m->has_shape = has_shape(m);
    if (!status && (t->recipe || t->sinusoid) && !m->columns)
        return pe_fail(err, "", "there are no waves to compute in another way");
    if (!status && d->evidence.kind->prepare)
        status = d->evidence.kind->prepare(m, err);
    if (!status)
        status = open_pieces(m, edit, err);
    return status ? status : pe_factors_open(d, m, err);
}

/* ---- Work ---- */

/* A number of a table, one of a rotated row, one that is computed in other steps than the plan's; and the call. */
enum { NUMBER_WORK = 24, ROTATED_WORK = 32, RECIPE_WORK = 256, CALL_WORK = 128 };
/* A request that cannot be planned. */
enum { REFUSED_WORK = 200000 };

/* Cosines and sines have no scale. Numbers of a bias whose distances are kept count where they are computed. */
static double number_work(const struct pe_model *m)
{
    enum pe_evidence_id id = m->d->evidence.kind->id;
    bool is_slow = m->plan->pace == PE_SLOW && !(id == PE_OF_BIAS && m->state);
    if (id == PE_OF_MAPS)
        return pe_map_number_work(m->plan) + NUMBER_WORK;
    if (id == PE_OF_ROTATED)
        return m->plan->arith != PE_ARITH_EXACT ? ROTATED_WORK + PE_SLOW_WORK : ROTATED_WORK;
    if (m->transforms.recipe || m->transforms.sinusoid)
        return RECIPE_WORK;
    if (id == PE_OF_TABLES)
        return m->plan->arith != PE_ARITH_EXACT ? PE_SLOW_WORK : NUMBER_WORK;
    return is_slow ? fmax(fmax(pe_plan_each(m->plan), m->plan->distance_work), NUMBER_WORK) : NUMBER_WORK;
}

double pe_model_plan_work(const struct pe_model *m)
{
    bool is_map = m->d->evidence.kind->id == PE_OF_MAPS; /* whose work is that of all its numbers */
    return PE_WORK_OF_A_NS * m->plan->cost.ns + (is_map ? 0 : m->plan->work);
}

static void count_plan(struct pe_model *m)
{
    *m->work += m->plan ? pe_model_plan_work(m) : REFUSED_WORK;
    m->number_work = m->plan ? number_work(m) : 0;
}

/* Numbers of transposed evidence are predicted one by one, a rotated one with its row. */
static void count_numbers(const struct pe_model *m, size_t n)
{
    bool is_rotated = m->d->evidence.kind->id == PE_OF_ROTATED;
    double row = is_rotated ? (double)m->d->evidence.row_len : 1;
    *m->work += m->transforms.transposed ? (double)n * (CALL_WORK + row * m->number_work)
                                         : CALL_WORK + (is_rotated ? row : (double)n) * m->number_work;
}

enum pe_status pe_model_new(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_model **model,
                            struct pe_failure *err)
{
    struct pe_model *m = edit->failed ? NULL : calloc(1, sizeof *m);
    d->no_memory |= !m;
    if (!m)
        return pe_no_memory(err);
    m->d = d;
    m->no_memory = &d->no_memory;
    m->work = &d->work;
    m->transforms = edit->transforms;
    enum pe_status status = prepare(d, m, edit, err);
    d->no_memory |= status == PE_NO_MEMORY;
    count_plan(m);
    if (status)
        pe_model_free(m);
    else
        *model = m;
    return status;
}

bool pe_edit_model(struct pe_diagnosis *d, const struct pe_edit *edit, struct pe_model **model)
{
    struct pe_failure err;
    enum pe_status status = pe_model_new(d, edit, model, &err);
    bool is_known = !status && !((*model)->is_misfit && d->evidence.kind->id == PE_OF_ROTATED);
    if (!status && !is_known) { /* without rows there is nothing to measure */
        pe_model_free(*model);
        *model = NULL;
    }
    return is_known;
}

void pe_model_free(struct pe_model *m)
{
    if (!m)
        return;
    drop_pieces(m->pieces);
    pe_plan_free(m->plan);
    free(m->columns);
    free(m->kept);
    free(m->state);
    free(m);
}

bool pe_model_is_cast(const struct pe_model *m)
{
    return m->d->evidence.kind->id == PE_OF_LADDER && m->transforms.recipe != PE_RECIPE_EXACT;
}

/* ---- Numbers ---- */

static void fill_plain(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    const struct pe_evidence *e = &m->d->evidence;
    if (e->kind->fill)
        e->kind->fill(m, t, row, col0, n, out);
    else
        pe_fill(m->plan, t, row * pe_plan_output(m->plan, t)->row_len + col0, n, out);
}

/* Which output, after exchanged ones. Cosines and sines may be there more than once. */
static size_t tensor_of(const struct pe_model *m, size_t t)
{
    bool are_tables = m->d->evidence.kind->id == PE_OF_TABLES;
    size_t table = pe_evidence_table(&m->d->evidence, t);
    return are_tables ? (m->transforms.sin_cos_swapped ? 1 - table : table) : t;
}

typedef void (*fill_row)(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out);

enum { BETWEEN = 64 }; /* numbers, each of which may take a row */

/* Element [r, j] of a matrix is [j, r] of the plan's. */
static void transpose(fill_row fill, const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n,
                      double *out)
{
    const struct pe_tensor *tensor = &m->d->evidence.tensors[0];
    uint64_t columns = m->d->evidence.row_len, rows = tensor->rank > 1 ? tensor->shape[tensor->rank - 2] : 1;
    for (size_t j = 0; j < n && (j % BETWEEN || !pe_is_cancelled()); j++)
        fill(m, t, row / rows * columns + col0 + j, row % rows, 1, out + j);
}

static void wrap(double from, size_t n, double *x)
{
    const double turn = 0x1.921fb54442d18p+2;
    for (size_t i = 0; i < n; i++)
        x[i] -= turn * floor((x[i] - from) / turn);
}

static void change(const struct pe_transforms *t, size_t n, double *out)
{
    if (!isnan(t->wrapped_from))
        wrap(t->wrapped_from, n, out);
    double factor = (t->negated ? -1 : 1) * t->scaled;
    for (size_t i = 0; factor != 1 && i < n; i++)
        out[i] = isfinite(out[i]) ? out[i] * factor : out[i];
    for (size_t i = 0; !isnan(t->mask_value) && i < n; i++)
        out[i] = out[i] == -HUGE_VAL ? t->mask_value : out[i];
}

/* A model of another shape has fewer rows, or more, than the evidence. */
static bool has_row(const struct pe_model *m, size_t t, uint64_t row, uint64_t columns)
{
    const struct pe_output *o = pe_plan_output(m->plan, tensor_of(m, t));
    if (m->has_shape || m->is_misfit)
        return m->has_shape;
    if (m->d->evidence.kind->id == PE_OF_ROTATED)
        return row < m->plan->seq.k->n;
    return !m->transforms.transposed && row < o->n_rows && columns <= o->row_len;
}

void pe_model_fill(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    if (!has_row(m, t, row, col0 + n)) { /* unlike any number found */
        for (size_t i = 0; i < n; i++)
            out[i] = (double)INFINITY;
        return;
    }
    count_numbers(m, n);
    if (m->transforms.transposed)
        transpose(fill_plain, m, tensor_of(m, t), row, col0, n, out);
    else
        fill_plain(m, tensor_of(m, t), row, col0, n, out);
    change(&m->transforms, n, out);
}

void pe_model_phases(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    const struct pe_evidence_kind *kind = m->d->evidence.kind;
    memset(out, 0, n * sizeof *out);
    count_numbers(m, n);
    if (kind->phases && m->transforms.transposed)
        transpose(kind->phases, m, tensor_of(m, t), row, col0, n, out);
    else if (kind->phases && !m->is_misfit)
        kind->phases(m, tensor_of(m, t), row, col0, n, out);
}

/* ---- Signatures ---- */
