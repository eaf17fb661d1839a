/* The outputs of attention: their names, which of them a request can have, and their shapes. */
#include "core/attention/attention.h"
#include "core/encode/encode.h"

#include <math.h>
#include <string.h>

static const char *const output_names[] = {
    [PE_SCORES] = "scores",           [PE_PROBS] = "probs", [PE_WEIGHTS] = "weights",           [PE_OUTPUT] = "output",
    [PE_ROW_ENTROPY] = "row_entropy", [PE_TERMS] = "terms", [PE_OUTPUT_TERMS] = "output_terms", NULL};

#define MAP "batch,num_heads,q_len,k_len"

const struct pe_output_row pe_attention_outputs[] = {
    PE_OUTPUT("scores", MAP, 1, PE_DTYPE_NONE, true, "kernel=softmax", "scores",
              "logits after scale, cap, bias and mask; -inf where the mask hides a key"),
    PE_OUTPUT("probs", MAP, 1, PE_DTYPE_NONE, false, "kernel=softmax", "attention weights",
              "softmax of each row; 0 if the query sees no key", .range = {0, 1}),
    PE_OUTPUT("weights", MAP, 1, PE_DTYPE_NONE, false, "kernel=linear", "linear attention weights",
              "may be negative; rows need not sum to 1"),
    PE_OUTPUT("output", "batch,num_heads,q_len,v_dim", 1, PE_DTYPE_NONE, true, NULL, "output",
              "weighted values; needs v, w_v or tokens"),
    PE_OUTPUT("row_entropy", "batch,num_heads,q_len", 1, PE_DTYPE_NONE, true, "kernel=softmax", "entropy of each row",
              "-sum of p·ln p of each row, nats"),
    PE_OUTPUT("terms", "terms," MAP, 1, PE_DTYPE_NONE, true, "kernel=softmax", "terms of the scores",
              "what the scores are the sum of, scaled and masked as they are: content with content, content with "
              "position and so on; the answer names them in order. Absolute schemes need x or tokens, added to the "
              "encoding",
              .families = "absolute|relative"),
    PE_OUTPUT("output_terms", "2,batch,num_heads,q_len,v_dim", 1, PE_DTYPE_NONE, true, "kernel=softmax",
              "terms of the output",
              "shaw: what the output is the sum of, p·v of the values and p·rel_v of the distances, which are 0 "
              "without rel_v",
              .families = "relative"),
    {.name = NULL},
};

/* ---- Terms of the scores ---- */

/* Of an additive scheme: (content + position)·(content + position), multiplied out. Number 2i + j is part i of the
 * queries with part j of the keys. */
static const char *const products[] = {"content_content", "content_position", "position_content", "position_position",
                                       NULL};

static const char *const *names_of_terms(const struct pe_plan *plan)
{
    const struct pe_attend *attend = plan->scheme->attend;
    return plan->scheme->info.is_additive ? products : attend ? attend->parts : NULL;
}

static bool has_terms(const struct pe_plan *plan) { return names_of_terms(plan) != NULL; }

static void find_terms(const struct pe_plan *plan)
{
    struct pe_attention *t = plan->attention;
    const struct pe_attend *attend = plan->scheme->attend;
    t->wants_terms = true;
    t->n_terms = 0;
    for (size_t i = 0; names_of_terms(plan)[i]; i++)
        if (!attend || !attend->has_part || attend->has_part(plan, i))
            t->terms[t->n_terms++] = i;
}

/* The scores must be a sum. */
static enum pe_status check_terms(const struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_attention *t = plan->attention;
    bool is_additive = plan->scheme->info.is_additive;
    if (!isnan(t->fields.softcap))
        return pe_fail(err, "/softcap", "capped scores are not the sum of their terms; leave softcap or terms out");
    if (is_additive && !t->x.rank && !t->has_tokens)
        return pe_fail(err, "/outputs",
                       "terms needs x or tokens: queries and keys that are sent have no part that is the position's");
    if (is_additive && plan->absolute->fields.combine != PE_ADD)
        return pe_fail(err, "/combine",
                       "terms are those of embeddings to which the encoding is added; leave combine or terms out");
    return PE_OK;
}

size_t pe_plan_terms(const struct pe_plan *plan, const char *names[PE_TERMS_MAX])
{
    const struct pe_attention *t = plan->attention;
    size_t n = t && t->wants_terms ? t->n_terms : 0;
    for (size_t i = 0; i < n; i++)
        names[i] = names_of_terms(plan)[t->terms[i]];
    return n;
}

/* ---- Outputs ---- */

static bool is_there(const struct pe_plan *plan, enum pe_attention_output kind)
{
    const struct pe_attention *t = plan->attention;
    switch (kind) {
    case PE_WEIGHTS: return pe_attention_is_linear(t);
    case PE_TERMS: return !pe_attention_is_linear(t) && !pe_attention_is_given(t) && has_terms(plan);
    case PE_OUTPUT_TERMS: return plan->scheme->attend && plan->scheme->attend->add_output && is_there(plan, PE_OUTPUT);
    case PE_OUTPUT: return t->v.tensor.data || t->x.rank || t->has_tokens;
    case PE_SCORES:
    case PE_PROBS:
    case PE_ROW_ENTROPY: return !pe_attention_is_linear(t);
    default: return plan->scheme->attend->has_term(plan, (size_t)(kind - PE_TERM));
    }
}

static const char *name_of(const struct pe_plan *plan, enum pe_attention_output kind)
{
    const struct pe_attend *attend = plan->scheme->attend;
    return kind < PE_TERM ? output_names[kind] : attend && attend->terms ? attend->terms[kind - PE_TERM] : NULL;
}

static enum pe_status find_output(const struct pe_plan *plan, size_t asked, const char *name,
                                  enum pe_attention_output *kind, struct pe_failure *err)
{
    const struct pe_attend *attend = plan->scheme->attend;
    const char *names[16], *known;
    size_t n = 0;
    if (strcmp(name, "output") == 0 && !is_there(plan, PE_OUTPUT))
        return pe_fail(err, "/outputs", "output needs the values v, [batch, heads, keys, v_dim]");
    if (strcmp(name, "output_terms") == 0 && attend && attend->add_output && !is_there(plan, PE_OUTPUT))
        return pe_fail(err, "/outputs", "output_terms needs the values v, [batch, heads, keys, v_dim]");
    for (enum pe_attention_output k = 0; (known = name_of(plan, k)); k++) {
        if (!is_there(plan, k))
            continue;
        *kind = k;
        if (strcmp(known, name) == 0)
            return PE_OK;
        names[n++] = known;
    }
    names[n] = NULL;
    return pe_output_unknown(plan, asked, name, names, err);
}

enum pe_status pe_attention_choose_outputs(struct pe_plan *plan, const struct pe_request *request,
                                           struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    enum pe_status status = pe_outputs_twice(request, err);
    size_t n = request->n_outputs ? request->n_outputs : 1;
    if (!status && n > sizeof t->kinds / sizeof *t->kinds)
        return pe_output_unknown(plan, n - 1, request->outputs[n - 1], output_names, err);
    if (!status)
        status = pe_outputs_alloc(plan, n + 1, err); /* one more for the encoding of an additive scheme */
    t->kinds[0] = pe_attention_is_linear(t) ? PE_WEIGHTS : PE_PROBS;
    for (size_t i = 0; !status && i < request->n_outputs; i++) {
        status = find_output(plan, i, request->outputs[i], &t->kinds[i], err);
        if (!status && t->kinds[i] == PE_TERMS) {
            find_terms(plan);
            status = check_terms(plan, err);
        }
    }
    if (!status)
        plan->n_outputs = plan->n_sources = n;
    return status;
}

enum pe_status pe_attention_shape_output(struct pe_plan *plan, size_t i, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    struct pe_output *o = &plan->outputs[i];
    enum pe_attention_output kind = t->kinds[i];
    bool inside = kind == PE_OUTPUT && pe_attention_heads_inside(t); /* heads after positions */
    uint64_t width = kind == PE_OUTPUT || kind == PE_OUTPUT_TERMS ? t->v_dim
                     : kind == PE_ROW_ENTROPY                     ? 1
                                                                  : t->k_len,
             total;
    o->name = name_of(plan, kind);
    o->dtype = plan->dtype;
    o->rank = 0;
    if (kind == PE_TERMS || kind == PE_OUTPUT_TERMS)
        o->shape[o->rank++] = kind == PE_TERMS ? t->n_terms : 2;
    if (inside && pe_attention_batch_inside(t))
        o->shape[o->rank++] = t->q_len;
    memcpy(o->shape + o->rank, t->lead, t->n_lead * sizeof *t->lead);
    o->rank += t->n_lead;
    if (inside && !pe_attention_batch_inside(t))
        o->shape[o->rank++] = t->q_len;
    if (t->has_heads)
        o->shape[o->rank++] = t->n_heads;
    if (!inside)
        o->shape[o->rank++] = t->q_len;
    if (inside && (t->fields.tensor_layout == PE_FLAT || t->fields.tensor_layout == PE_BFLAT))
        o->shape[o->rank - 1] *= width;
    else if (kind != PE_ROW_ENTROPY)
        o->shape[o->rank++] = width;
    if (!pe_shape_count(o->shape, o->rank, &total) || total > INT64_MAX / sizeof(double)) {
        pe_fail(err, "", "output %s would have more than 2^60 elements", o->name);
        return err->status = PE_TOO_LARGE;
    }
    o->row_len = o->shape[o->rank - 1];
    o->n_rows = total / o->row_len;
    uint64_t heads = inside ? t->n_heads * (pe_attention_batch_inside(t) ? t->n_batches : 1) : 1;
    o->unit = t->block_rows * width * heads;
    o->period = t->q_len * width * heads;
    return PE_OK;
}
