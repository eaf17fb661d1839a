/* Evidence: an encoding that is added to embeddings. */
#include "core/diagnosis/model/recipe.h"
#include "core/request/operand.h"

static enum pe_status wrong_shape(const struct pe_diagnosis *d, struct pe_error *err)
{
    char shape[96];
    const struct pe_tensor *t = &d->evidence.tensors[0];
    pe_shape_print(t->shape, t->rank, shape, sizeof shape);
    return pe_fail(err, "/encoding", "encoding has the shape %s; needed: [n, dim]", shape);
}

/* Does the belief state a width that is the other axis? */
static bool is_turned(const struct pe_diagnosis *d, const struct pe_tensor *t)
{
    const struct pe_value *dim = pe_belief_given(d, "dim");
    uint64_t width = dim && dim->kind == PE_INTEGER ? (uint64_t)dim->integer : 0;
    return width == t->shape[t->rank - 2] && width != t->shape[t->rank - 1];
}

/* [n, dim], with leading axes of length 1; or [dim, ...grid]. */
static enum pe_status read(struct pe_diagnosis *d, struct pe_error *err)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    const struct pe_value *first = pe_belief_given(d, "channels_first");
    bool is_first = first && first->kind == PE_BOOLEAN && first->boolean;
    bool has_dim = pe_param_find(d->belief.inheritance->scheme->info.params, "dim") != NULL;
    enum pe_status status = PE_OK;
    if (!pe_same(d->belief.inheritance->scheme->info.family, "absolute"))
        return pe_fail(err, "/scheme", "scheme \"%s\" has no encoding to be added; send what it gives",
                       d->belief.inheritance->scheme->info.name);
    if (t->rank < 2)
        return wrong_shape(d, err);
    for (unsigned a = 0; !is_first && a + 2 < t->rank; a++)
        if (t->shape[a] != 1)
            return wrong_shape(d, err);
    d->evidence.is_turned = !is_first && is_turned(d, t);
    if (has_dim)
        status = pe_belief_fix(d, "dim", is_first ? t->shape[0] : pe_evidence_width(&d->evidence), "encoding", err);
    if (!status && !pe_belief_has_sequence(d))
        status = pe_belief_fix(d, "len", pe_evidence_length(&d->evidence), "encoding", err);
    return status;
}

static enum pe_status prepare(struct pe_model *m, struct pe_error *err)
{
    if (m->transforms.sinusoid && !(m->state = pe_recipe_frequencies(m)))
        return pe_no_memory(err);
    return PE_OK;
}

static void fill(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    if (m->transforms.recipe || m->transforms.sinusoid)
        pe_recipe_fill(m, row, col0, n, out);
    else
        pe_fill(m->plan, t, row * pe_plan_output(m->plan, t)->row_len + col0, n, out);
}

static void phases(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    (void)t;
    if (m->columns)
        pe_wave_phases(m, row, col0, n, out);
}

const struct pe_evidence_kind pe_evidence_encoding = {.id = PE_OF_ENCODING,
                                                      .tensors = {"encoding"},
                                                      .scheme = "sinusoidal",
                                                      .outputs = {"encoding"},
                                                      .read = read,
                                                      .prepare = prepare,
                                                      .fill = fill,
                                                      .phases = phases};
