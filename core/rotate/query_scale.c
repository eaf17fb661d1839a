/* A factor on queries that grows with their position, so that scores keep their spread over long contexts.
 *
 *     ministral   1 + beta·ln(1 + floor(p/O))             Ministral 3, Mistral 4 (llama_4_scaling_beta)
 *     llama4      1 + beta·ln(1 + floor((p + 1)/O))       Llama 4's layers without positions
 *     logn        max(1, ln(p + 1)/ln O)                  Qwen's logn-attention
 *
 * O is original_max_position_embeddings. Queries are multiplied after their rotation, keys never: no table shows it, so
 * it belongs to the operations that have queries. */
#include "core/rotate/rotate_rows.h"

#include <math.h>
#include <stdlib.h>

const char *const pe_query_scale_words[] = {
    [PE_SCALE_MINISTRAL] = "ministral", [PE_SCALE_LLAMA4] = "llama4", [PE_SCALE_LOGN] = "logn", NULL};

const struct pe_param pe_query_scale_params[] = {
    PE_P_WORD(pe_query_scale, type, pe_query_scale_words, "rule",
              "query_scale: ministral 1 + beta·ln(1 + floor(p/O)); llama4 1 + beta·ln(1 + floor((p+1)/O)); logn "
              "max(1, ln(p+1)/ln O); O is original_max_position_embeddings",
              .fallback = PE_UNSET_WORD),
    PE_P_REAL(pe_query_scale, beta, PE_UNSET, 0, 1e6, "growth", "query_scale: by how much it grows; default 0.1",
              .usual = {0.01, 1}),
    PE_P_REAL(pe_query_scale, original_max_position_embeddings, PE_UNSET, 2, 1e12, "original length",
              "query_scale: positions below it have the factor 1; llama4's default is 8192", .usual = {1024, 131072}),
    PE_P_END,
};

#define LLAMA4_LENGTH 8192
#define USUAL_BETA 0.1

/* ---- Reading ---- */

static void set_member(struct pe_query_scale *s, size_t i, const char *name, struct pe_value value)
{
    s->printed[i] = (struct pe_field){name, value};
}

static void set_printed(struct pe_query_scale *s)
{
    size_t n = 0;
    set_member(s, n++, "type", (struct pe_value){.kind = PE_STRING, .string = pe_query_scale_words[s->type]});
    if (s->type != PE_SCALE_LOGN)
        set_member(s, n++, "beta", (struct pe_value){.kind = PE_REAL, .real = s->beta});
    set_member(s, n++, "original_max_position_embeddings",
               (struct pe_value){.kind = PE_REAL, .real = s->original_max_position_embeddings});
    s->n_printed = n;
}

enum pe_status pe_query_scale_read(struct pe_query_scale *s, const struct pe_field *fields, size_t n,
                                   struct pe_failure *err)
{
    s->is_given = pe_field_find(fields, n, "query_scale") != NULL;
    if (!s->is_given)
        return PE_OK;
    if (s->type == PE_UNSET_WORD)
        return pe_fail(err, "/query_scale/type", "type is missing; allowed: ministral, llama4, logn");
    if (s->type == PE_SCALE_LOGN && !isnan(s->beta))
        return pe_fail(err, "/query_scale/beta", "beta is not used by type logn; leave it out");
    if (s->type != PE_SCALE_LLAMA4 && isnan(s->original_max_position_embeddings))
        return pe_fail(err, "/query_scale/original_max_position_embeddings",
                       "original_max_position_embeddings is missing; type %s needs it", pe_query_scale_words[s->type]);
    if (isnan(s->original_max_position_embeddings))
        s->original_max_position_embeddings = LLAMA4_LENGTH;
    if (isnan(s->beta))
        s->beta = USUAL_BETA;
    set_printed(s);
    return PE_OK;
}

enum pe_status pe_query_scale_check(const struct pe_query_scale *s, unsigned n_axes, const struct pe_positions *q,
                                    struct pe_failure *err)
{
    if (!s->is_given)
        return PE_OK;
    if (n_axes > 1)
        return pe_fail(err, "/query_scale", "query_scale needs positions on one axis; these have %u", n_axes);
    uint64_t n = q->list ? pe_positions_count(q) : 1; /* a run begins with its smallest */
    for (uint64_t i = 0; i < n && !pe_is_cancelled_at(i); i++)
        if (pe_position_at(q, i) < 0)
            return pe_fail(err, "/query_scale", "query_scale is for positions from 0 on; a query is at %s",
                           pe_shown(pe_position_at(q, i)).text);
    return PE_OK;
}

struct pe_value pe_query_scale_value(const struct pe_query_scale *s)
{
    return (struct pe_value){.kind = PE_OBJECT, .object = {s->printed, s->n_printed}};
}

/* ---- The factor ---- */

double pe_query_factor(const struct pe_query_scale *s, double p)
{
    double length = s->original_max_position_embeddings;
    if (!s->is_given || p < 0)
        return 1;
    switch (s->type) {
    case PE_SCALE_MINISTRAL: return 1 + s->beta * log1p(floor(p / length));
    case PE_SCALE_LLAMA4: return 1 + s->beta * log1p(floor((p + 1) / length));
    default: return fmax(1, log1p(p) / log(length));
    }
}

enum pe_status pe_query_factors(const struct pe_query_scale *s, struct pe_plan *plan, const struct pe_positions *q,
                                uint64_t n, double **out, struct pe_failure *err)
{
    if (pe_plan_admit(plan, (double)n * sizeof **out, err))
        return err->status;
    *out = malloc(n * sizeof **out);
    if (!*out)
        return pe_no_memory(err);
    for (uint64_t i = 0; i < n && !pe_is_cancelled_at(i); i++)
        (*out)[i] = pe_query_factor(s, pe_position_at(q, i));
    return PE_OK;
}
