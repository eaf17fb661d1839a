/* Evidence: an encoding that is added to embeddings. */
#include "core/diagnosis/diagnosis.h"
#include "core/request/request.h"

#include <math.h>

static enum pe_status wrong_shape(const struct pe_diagnosis *d, struct pe_failure *err)
{
    char shape[96];
    const struct pe_tensor *t = &d->evidence.sent;
    pe_shape_print(t->shape, t->rank, shape, sizeof shape);
    return pe_fail(err, "/encoding", "encoding has the shape %s; needed: [n, dim], or [dim, ...grid]", shape);
}

/* Does the belief state a width that is the other axis? */
static bool is_turned(const struct pe_diagnosis *d, const struct pe_tensor *t)
{
    const struct pe_value *dim = pe_belief_given(d, "dim");
    uint64_t width = dim && dim->kind == PE_INTEGER ? (uint64_t)dim->integer : 0;
    return width == t->shape[t->rank - 2] && width != t->shape[t->rank - 1];
}

/* ---- [dim, ...grid] ---- */

static bool is_true(const struct pe_value *v) { return v && v->kind == PE_BOOLEAN && v->boolean; }

/* Would the belief give the channels first? Some styles do by themselves where there is a grid. */
static bool gives_channels_first(struct pe_diagnosis *d)
{
    const struct pe_value *given = pe_belief_given(d, "channels_first");
    struct pe_plan *plan = given || !pe_belief_given(d, "grid") ? NULL : pe_belief_try(d, 1);
    const struct pe_value *config = plan ? pe_plan_config(plan) : NULL;
    bool is_first = is_true(given);
    if (config)
        is_first = is_true(pe_field_find(config->object.fields, config->object.n, "channels_first"));
    pe_plan_free(plan);
    return is_first;
}

/* The numbers are compared row by row, whatever their order in memory: the belief's plan gives rows. */
static void plan_rows(struct pe_diagnosis *d)
{
    struct pe_belief *b = &d->belief;
    const struct pe_value no = {.kind = PE_BOOLEAN, .boolean = false};
    bool is_asked = false;
    for (size_t i = 0; i < b->inheritance->n; i++)
        if (pe_same(b->inheritance->fields[i].name, "channels_first"))
            b->inheritance->fields[i].value = no;
    for (size_t i = 0; i < b->n_asked; i++)
        if (pe_same(b->asked[i].name, "channels_first")) {
            b->asked[i].value = no;
            is_asked = true;
        }
    if (!is_asked)
        pe_belief_set(d, "channels_first", no);
}

/* The channels are before two axes or more that are longer than 1, or before as many as the belief states. */
static bool fold_grid(struct pe_diagnosis *d, bool is_first)
{
    struct pe_evidence *e = &d->evidence;
    const struct pe_tensor *t = &e->sent;
    uint64_t n = 1;
    unsigned a = 0;
    if (is_first ? t->rank < 2 : pe_evidence_squeeze(e, 2))
        return false;
    while (a + 2 < t->rank && t->shape[a] == 1)
        a++;
    for (unsigned b = a + 1; b < t->rank; b++)
        n *= t->shape[b];
    e->is_channels_first = is_first;
    e->is_turned = !is_first;
    pe_evidence_fold(e, 2, is_first ? (uint64_t[]){n, t->shape[a]} : (uint64_t[]){t->shape[a], n});
    return true;
}

/* What flattened rows or a folded map have, where the belief would give channels first by itself. */
static void read_grid(struct pe_diagnosis *d)
{
    struct pe_evidence *e = &d->evidence;
    bool is_given = is_true(pe_belief_given(d, "channels_first")), has_grid = pe_belief_given(d, "grid") != NULL;
    if (!has_grid && !is_given) {
        pe_evidence_squeeze(e, 2);
        return;
    }
    bool is_first = gives_channels_first(d);
    bool is_map = (is_given || !pe_evidence_squeeze(e, 2)) && fold_grid(d, is_first);
    if (has_grid && is_first)
        plan_rows(d);
    if (!is_map)
        e->is_turned = is_turned(d, &e->tensors[0]);
}

/* [n, dim], with other axes of length 1; or [dim, ...grid]. */
static enum pe_status read(struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    const struct pe_scheme *scheme = d->belief.inheritance->scheme;
    bool has_dim = pe_param_find(scheme->info.params, "dim") != NULL;
    enum pe_status status = PE_OK;
    if (!pe_evidence_is_output(d, "encoding"))
        return pe_fail(err, "/scheme", "scheme \"%s\" has no encoding to be added; send what it gives",
                       scheme->info.name);
    if (t->rank < 2)
        return wrong_shape(d, err);
    read_grid(d);
    if (t->rank != 2)
        return wrong_shape(d, err);
    if (!pe_belief_given(d, "grid"))
        d->evidence.is_turned = is_turned(d, t);
    if (has_dim)
        status = pe_belief_fix(d, "dim", pe_evidence_width(&d->evidence), "encoding", err);
    if (!status && !pe_belief_has_sequence(d))
        status = pe_belief_fix(d, "len", pe_evidence_length(&d->evidence), "encoding", err);
    return status;
}

static enum pe_status prepare(struct pe_model *m, struct pe_failure *err)
{
    if (m->transforms.sinusoid && !(m->state = pe_wave_other_frequencies(m)))
        return pe_no_memory(err);
    return m->transforms.kernel.kind ? pe_resized_prepare(m, err) : PE_OK;
}

/* Distances run from k_len - 1 down through 0: the row that a row without its sign has. */
static uint64_t mirror(const struct pe_model *m, uint64_t row)
{
    uint64_t zero = m->plan->seq.k->n - 1;
    bool is_first = row<zero, is_wrong = m->transforms.mirrored> 0 ? row > zero : is_first;
    return m->transforms.mirrored && is_wrong ? 2 * zero - row : row;
}

static void fill(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    if (m->transforms.recipe || m->transforms.sinusoid)
        pe_wave_row(m, row, col0, n, out);
    else if (m->transforms.kernel.kind)
        pe_resized_fill(m, row, col0, n, out);
    else
        pe_fill(m->plan, t, mirror(m, row) * pe_plan_output(m->plan, t)->row_len + col0, n, out);
}

/* Of angles; or of the coordinates at which a table is read, as a share of the largest number. */
static void phases(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    const struct pe_plan *plan = m->plan;
    double largest = m->d->evidence.largest;
    (void)t;
    if (m->columns)
        pe_wave_phases(m, row, col0, n, out);
    if (!plan->scheme->coordinate_loss || plan->sources[0].transposed || largest == 0)
        return;
    plan->scheme->coordinate_loss(plan, row, col0, n, out);
    for (size_t j = 0; j < n; j++)
        out[j] *= fabs(m->transforms.scaled) / largest;
}

const struct pe_evidence_kind pe_evidence_encoding = {.id = PE_OF_ENCODING,
                                                      .tensors = {"encoding"},
                                                      .scheme = "sinusoidal",
                                                      .outputs = {"encoding"},
                                                      .read = read,
                                                      .prepare = prepare,
                                                      .fill = fill,
                                                      .phases = phases};

/* ---- Position ids ---- */

/* Evidence: position ids [n], or [axes, n] of sequences on several axes. */

static void set_word(struct pe_diagnosis *d, const char *name, const char *word)
{
    pe_belief_set(d, name, (struct pe_value){.kind = PE_STRING, .string = word});
}

/* Text is at the same id on all axes, so a run of one axis is spread; the channels decide that. */
static void spread(struct pe_diagnosis *d, uint64_t n_axes)
{
    bool has_own = pe_belief_given(d, "segments") || pe_belief_given(d, "grid") || pe_belief_given(d, "channels") ||
                   pe_belief_given(d, "axes_dim");
    if (!has_own && n_axes > 1)
        set_word(d, "channels", "mrope");
}

static enum pe_status read_ids(struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    if (t->rank > 2 || (t->rank == 2 && t->shape[0] == 1)) /* a batch of one */
        pe_evidence_squeeze(&d->evidence, t->rank == 2 ? 1 : 2);
    uint64_t n_axes = t->rank == 2 ? t->shape[0] : 1;
    const char *scheme = d->belief.inheritance->scheme->info.name;
    if (t->rank < 1 || t->rank > 2 || (t->rank == 2 && n_axes != 3))
        return pe_fail(err, "/position_ids", "position_ids has %u dimensions%s; allowed: [n], or [3, n]", t->rank,
                       t->rank == 2 ? pe_text(" and not 3 rows") : "");
    if (!pe_is_among("rope|xpos", scheme))
        return pe_fail(err, "/position_ids", "%s has no position ids; rope has", scheme);
    if (!pe_belief_has_sequence(d))
        pe_belief_set(d, "len", (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)t->shape[t->rank - 1]});
    spread(d, n_axes);
    return PE_OK;
}

/* Ids are i64 in the plan, or f64 where one has a fraction; both have eight bytes. */
static void fill_ids(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    const struct pe_output *output = pe_plan_output(model->plan, t);
    uint64_t axis = model->transforms.n_axes ? model->transforms.order[row] : row;
    uint64_t first = axis * model->d->evidence.row_len + col0;
    enum { SOME = 256 };
    int64_t ids[SOME];
    if (output->dtype == PE_F64) {
        pe_fill(model->plan, t, first, n, out);
        return;
    }
    for (size_t at = 0; at < n; at += SOME) {
        size_t m = n - at < SOME ? n - at : SOME;
        pe_fill(model->plan, t, first + at, m, ids);
        pe_convert(PE_F64, out + at, output->dtype, ids, m);
    }
}

const struct pe_evidence_kind pe_evidence_ids = {.id = PE_OF_IDS,
                                                 .is_parameter = true,
                                                 .tensors = {"position_ids"},
                                                 .scheme = "rope",
                                                 .outputs = {"positions"},
                                                 .read = read_ids,
                                                 .fill = fill_ids};
