/* Evidence: position ids [n], or [axes, n] of sequences on several axes. */
#include "core/diagnosis/diagnosis.h"

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

static enum pe_status read_ids(struct pe_diagnosis *d, struct pe_error *err)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    if (t->rank > 2 || (t->rank == 2 && t->shape[0] == 1)) /* a batch of one */
        pe_evidence_squeeze(&d->evidence, t->rank == 2 ? 1 : 2);
    uint64_t n_axes = t->rank == 2 ? t->shape[0] : 1;
    const char *scheme = d->belief.inheritance->scheme->info.name;
    if (t->rank < 1 || t->rank > 2 || (t->rank == 2 && n_axes != 3))
        return pe_fail(err, "/position_ids", "position_ids has %u dimensions%s; allowed: [n], or [3, n]", t->rank,
                       t->rank == 2 ? " and not 3 rows" : "");
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
                                                 .tensors = {"position_ids"},
                                                 .scheme = "rope",
                                                 .outputs = {"positions"},
                                                 .read = read_ids,
                                                 .fill = fill_ids};
