/* What is known of a model's scores: their fields that a request inherits, a refusal, and notes. */
#include "core/models/models.h"
#include "core/params.h"
#include "core/values.h"

void pe_model_fields_clear(struct pe_model_fields *out)
{
    out->n = out->scores.n_notes = 0;
    out->scores.refusal.status = PE_OK;
    out->scores.sinks = NULL;
}

size_t pe_model_score_fields(const struct pe_inheritance *in, struct pe_field out[PE_SCORE_FIELDS_MAX])
{
    size_t n = 0;
    for (size_t i = in->n_own; i < in->n_own + in->n_inherited && n < PE_SCORE_FIELDS_MAX; i++)
        if (pe_is_among("softmax_scale|softcap|query_scale", in->fields[i].name))
            out[n++] = in->fields[i];
    return n;
}

void pe_model_put_scores(const struct pe_model_scores *scores, struct pe_node *root)
{
    struct pe_node *list = scores->n_notes ? pe_put_list(root, "notes") : NULL;
    for (size_t i = 0; i < scores->n_notes; i++)
        pe_put_string(list, NULL, scores->notes[i]);
    if (scores->sinks)
        pe_put_string(root, "sinks", scores->sinks);
}

enum pe_status pe_model_check_scores(const struct pe_inheritance *in, struct pe_failure *err)
{
    const struct pe_failure *refusal = &in->model.scores.refusal;
    if (!refusal->status || pe_field_find(in->fields, in->n_own, "softmax_scale"))
        return PE_OK;
    *err = *refusal;
    return err->status;
}
