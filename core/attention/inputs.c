/* The inputs of attention: q, k, v; or scores; or embeddings with projections; or words. Also the sizes that tensors
 * fix. */
#include "core/attention/attention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define F pe_attention_fields
static const char *const kernels[] = {[PE_SOFTMAX_KERNEL] = "softmax", [PE_LINEAR_KERNEL] = "linear", NULL};

const struct pe_param pe_attention_params[] = {
    PE_P_INT(F, num_heads, 8, 1, PE_HEADS_MAX, "heads", "attention heads; if q is sent, its own", .group = PE_G_SIZE,
             .usual = {1, 32}),
    PE_P_INT(F, head_dim, PE_UNSET, 1, PE_HEAD_DIM_MAX, "head width",
             "channels of one head; if q is sent, its own; else rows of w_q / num_heads", .group = PE_G_SIZE,
             .usual = {8, 256}),
    PE_P_INT(F, dim, PE_UNSET, 1, PE_DIM_MAX, "embedding width",
             "channels of the embeddings; if x is sent, its own; with tokens 512", .group = PE_G_SIZE,
             .usual = {8, 1024}),
    PE_P_REAL(F, softmax_scale, PE_UNSET, -1e12, 1e12, "softmax scale",
              "factor on q·k and on content-dependent terms; default 1/sqrt(head_dim), t5 1, deberta "
              "1/sqrt(head_dim·(1 + terms))",
              .group = PE_G_ATTENTION, .usual = {0.01, 2}),
    PE_P_REAL(F, softcap, PE_UNSET, 1e-12, 1e12, "soft cap",
              "scaled logits s become softcap·tanh(s/softcap) (Gemma 2: 50)", .group = PE_G_ATTENTION,
              .usual = {1, 100}),
    PE_P_BOOL(F, softcap_after_bias, false, "cap after the bias",
              "true: the bias is added before the cap (x-transformers)", .group = PE_G_ATTENTION),
    PE_P_BOOL(F, rotate_values, false, "values turned",
              "true: the values are turned like the keys, over the same channels; rotary schemes (DeepSeek-V4)",
              .group = PE_G_ATTENTION),
    PE_P_BOOL(
        F, unrotate_output, false, "output turned back",
        "true: the output of a query is turned by the inverse of the query's table, so with rotate_values what a key "
        "contributes depends on its distance only (DeepSeek-V4)",
        .group = PE_G_ATTENTION),
    PE_P_REALS(F, sinks, -1e12, 1e12, "attention sinks",
               "a logit for each head that takes part in the softmax and has no value: probabilities are "
               "e^s/(sum of e^s + e^sink), so a row sums to less than 1 (gpt-oss): [num_heads]",
               .group = PE_G_ATTENTION),
    PE_P_QUERY_SCALE(F),
    PE_P_WORD(F, kernel, kernels, "kernel",
              "softmax; linear: phi(q)·phi(k) with phi = elu + 1, rotated only in the numerator (RoFormer eq. 19)",
              .group = PE_G_ATTENTION),
    PE_P_WORD(F, tensor_layout, pe_tensor_layout_words, "tensor layout", PE_TENSOR_LAYOUT_ABOUT,
              .group = PE_G_ATTENTION),
    PE_P_INT(F, seed, PE_UNSET, 0, 0x1p53, "seed",
             "random embeddings of tokens, and random projections where none are sent; default with tokens 0",
             .level = PE_BASIC, .group = PE_G_WEIGHTS, .usual = {0, 99}),
    PE_MASK_PARAMS,
    PE_P_END,
};

#define TENSOR(name_, shape_, ...)                                                                                     \
    {                                                                                                                  \
        .name = name_, .shape = shape_, .operation = PE_ATTEND, .is_operand = true, .about = PE_ABOUT(__VA_ARGS__)     \
    }

const struct pe_input_row pe_attention_inputs[] = {
    TENSOR("q", "batch,num_heads,q_len,head_dim", "queries",
           "queries; leading axes may be missing, and are then missing in the answer too"),
    TENSOR("k", "batch,kv_heads,k_len,head_dim", "keys", "keys; kv_heads divides num_heads"),
    TENSOR("v", "batch,kv_heads,k_len,v_dim", "values", "values, for output"),
    TENSOR("scores", "batch,num_heads,q_len,k_len", "given scores",
           "scores instead of q and k, for schemes with a bias and for none: times softmax_scale (here by default 1), "
           "then "
           "cap, bias, mask and softmax"),
    TENSOR("x", "...,n,dim", "embeddings", "embeddings instead of q, k, v"),
    TENSOR("w_q", "num_heads*head_dim,dim", "query projection",
           "with x: q = x·w_qᵀ + b_q; the other projections likewise"),
    TENSOR("w_k", "kv_heads*head_dim,dim", "key projection", "keys"),
    TENSOR("w_v", "kv_heads*head_dim,dim", "value projection", "values, for output"),
    TENSOR("b_q", "num_heads*head_dim", "query bias", "optional"),
    TENSOR("b_k", "kv_heads*head_dim", "key bias", "optional"),
    TENSOR("b_v", "kv_heads*head_dim", "value bias", "optional"),
    {.name = NULL},
};

/* Standard deviation of random projections. */
#define PROJECTION_STD 0.1

static const char *const projection_names[PE_N_PROJECTIONS] = {"w_q", "w_k", "w_v", "b_q", "b_k", "b_v"};

/* ---- Reading ---- */

static const struct pe_field *find_field(const struct pe_request *request, const char *name, bool *taken)
{
    for (size_t i = 0; i < request->n_fields; i++)
        if (strcmp(request->fields[i].name, name) == 0) {
            taken[i] = true;
            return &request->fields[i];
        }
    return NULL;
}

static enum pe_status read_x(struct pe_attention *t, const struct pe_request *request, bool *taken,
                             struct pe_failure *err)
{
    const struct pe_field *field = find_field(request, "x", taken);
    uint64_t count;
    if (!field)
        return PE_OK;
    const struct pe_tensor *x = &field->value.array;
    char shape[128];
    if (field->value.kind != PE_ARRAY)
        return pe_fail(err, "/x", "x is not a tensor; needed: [..., n, dim]");
    pe_shape_print(x->shape, x->rank, shape, sizeof shape);
    if (x->rank < 2 || x->rank > PE_RANK_MAX - 2)
        return pe_fail(err, "/x", "x has the shape %s; needed: [..., n, dim] of two to %d axes", shape,
                       PE_RANK_MAX - 2);
    if (!pe_shape_count(x->shape, x->rank, &count) || count == 0)
        return pe_fail(err, "/x", "x has no elements");
    t->x = *x;
    t->x_is_text = field->value.from_text;
    return PE_OK;
}

static enum pe_status read_tensors(struct pe_attention *t, const struct pe_request *request, bool *taken,
                                   struct pe_failure *err)
{
    enum pe_tensor_layout layout = (enum pe_tensor_layout)t->fields.tensor_layout;
    uint64_t head_dim = t->fields.head_dim > 0 ? (uint64_t)t->fields.head_dim : 0;
    enum pe_status status = pe_operand_take(&t->q, request, "q", layout, head_dim, taken, err);
    if (!status)
        status = pe_operand_take(&t->k, request, "k", layout, head_dim, taken, err);
    if (!status)
        status = pe_operand_take(&t->v, request, "v", layout, head_dim, taken, err);
    if (!status)
        status = pe_operand_take(&t->given, request, "scores", PE_BHND, 0, taken, err);
    if (!status)
        status = read_x(t, request, taken, err);
    for (size_t i = 0; !status && i < PE_N_PROJECTIONS; i++) {
        const struct pe_field *field = find_field(request, projection_names[i], taken);
        if (field)
            status = pe_weights_take(&t->brought.projections[i], field, err);
    }
    t->brought.v_dim = t->v.width;
    return status;
}

/* ---- Which of the ways ---- */

/* Given scores go with schemes that need no queries and keys. */
static enum pe_status check_given(const struct pe_plan *plan, const struct pe_attention *t, struct pe_failure *err)
{
    const struct pe_scheme *scheme = plan->scheme;
    const char *name = scheme->info.name;
    if (t->q.tensor.data || t->k.tensor.data || t->x.rank || t->has_tokens)
        return pe_fail(err, "/scores",
                       "give scores, or what they are computed from (q and k, or x, or tokens): one of them");
    if (scheme->rotate)
        return pe_fail(err, "/scores", "%s turns queries and keys; give q and k instead of scores", name);
    if (scheme->info.is_additive && !scheme->is_neutral)
        return pe_fail(err, "/scores",
                       "%s is added to embeddings before they are projected; give x with w_q and w_k, or tokens, "
                       "instead of scores",
                       name);
    if (scheme->attend && scheme->attend->parts)
        return pe_fail(err, "/scores",
                       "the terms of %s are products with queries and keys; give q and k instead of scores", name);
    if (pe_attention_is_linear(t))
        return pe_fail(err, "/kernel", "kernel linear needs queries and keys; give q and k instead of scores");
    if (t->fields.query_scale.is_given)
        return pe_fail(err, "/query_scale", "query_scale multiplies queries; give q and k instead of scores");
    if (pe_plan_gave_itself(plan, "head_dim") && !t->v.tensor.data)
        return pe_fail(err, "/head_dim", "head_dim is not used: scores are given");
    return PE_OK;
}

static enum pe_status check_ways(const struct pe_plan *plan, const struct pe_attention *t, struct pe_failure *err)
{
    const struct pe_scheme *scheme = plan->scheme;
    bool q = t->q.tensor.data, k = t->k.tensor.data, v = t->v.tensor.data, x = t->x.rank;
    if (pe_attention_is_given(t) && check_given(plan, t, err))
        return err->status;
    if ((q || k || v) + x + t->has_tokens > 1)
        return pe_fail(err, x ? "/x" : "/tokens", "give q and k, or x, or tokens: one of the three");
    if (x || t->has_tokens)
        return PE_OK;
    if ((!q || !k) && !pe_attention_is_given(t))
        return pe_fail(
            err, q ? "/k" : "/q",
            "%s is missing; give q and k, [batch, heads, n, head_dim] each, or x with w_q and w_k, or tokens",
            q ? "k" : "q");
    if (scheme->info.is_additive && !scheme->is_neutral)
        return pe_fail(err, "/q",
                       "%s is added to embeddings before they are projected; give x with w_q and w_k, or tokens, "
                       "instead of q and k",
                       scheme->info.name);
    bool used = plan->scheme->attend && plan->scheme->attend->uses_projections;
    for (size_t i = 0; !used && i < PE_N_PROJECTIONS; i++) {
        char pointer[8] = "/";
        if (t->brought.projections[i].tensor.data)
            return pe_fail(err, strcat(pointer, projection_names[i]),
                           "%s is not used here: it makes queries, keys or values out of x, and %s is there",
                           projection_names[i], q ? "q" : "scores");
    }
    return PE_OK;
}

/* ---- Shapes ---- */

/* A rule between two tensors; the message names both shapes. */
static enum pe_status unfit(const struct pe_operand *a, const struct pe_operand *b, const char *rule,
                            struct pe_failure *err)
{
    char pointer[8] = "/", one[96], other[96];
    strncat(pointer, a->name, 4);
    pe_shape_print(a->tensor.shape, a->tensor.rank, one, sizeof one);
    pe_shape_print(b->tensor.shape, b->tensor.rank, other, sizeof other);
    return pe_fail(err, pointer, "%s has the shape %s, %s %s: %s", a->name, one, b->name, other, pe_text(rule));
}

static enum pe_status check_pair(const struct pe_operand *a, const struct pe_operand *b, struct pe_failure *err)
{
    if (a->tensor.rank != b->tensor.rank)
        return unfit(a, b, "they need the same number of axes", err);
    if (a->n_batches != b->n_batches)
        return unfit(a, b, "they need the same batch", err);
    return PE_OK;
}

static enum pe_status check_shapes(const struct pe_attention *t, struct pe_failure *err)
{
    const struct pe_operand *q = &t->q, *k = &t->k, *v = &t->v;
    enum pe_status status = check_pair(k, q, err);
    if (!status && k->width != q->width)
        return unfit(k, q, "they need the same last axis, head_dim", err);
    if (!status && q->n_heads % k->n_heads)
        return unfit(k, q, "the heads of k must divide those of q", err);
    if (!status && v->tensor.data)
        status = check_pair(v, k, err);
    if (!status && v->tensor.data && (v->n != k->n || v->n_heads != k->n_heads))
        return unfit(v, k, "v needs as many heads and keys as k", err);
    return status;
}

/* ---- Sizes ---- */

/* Fixes a size in the scheme's config and in the operation's own fields. */
static enum pe_status fix(struct pe_plan *plan, const char *name, int64_t *own, uint64_t size, const char *tensor,
                          struct pe_failure *err)
{
    char pointer[16] = "/";
    if (pe_plan_gave(plan, name) && *own != PE_UNSET_INT && (uint64_t)*own != size) {
        pe_fail(err, strncat(pointer, name, 12), "%s is %lld, the tensor %s makes it %llu", name, (long long)*own,
                tensor, (unsigned long long)size);
        return pe_leave_out(err, "; leave %s out", name);
    }
    *own = (int64_t)size;
    return pe_param_find(plan->scheme->info.params, name) ? pe_fix_size(plan, name, size, tensor, err) : PE_OK;
}

static enum pe_status fix_by_scores(struct pe_plan *plan, struct pe_attention *t, struct pe_failure *err)
{
    const struct pe_operand *v = &t->v, *scores = &t->given;
    enum pe_status status = PE_OK;
    if (v->tensor.data)
        status = check_pair(v, scores, err);
    if (!status && v->tensor.data && (v->n != scores->width || scores->n_heads % v->n_heads))
        return unfit(v, scores, "v needs a row for each key, and heads that divide those of the scores", err);
    if (!status)
        status = fix(plan, "num_heads", &t->fields.num_heads, scores->n_heads, "scores", err);
    t->n_lead = scores->has_batch;
    t->lead[0] = scores->n_batches;
    t->has_heads = scores->has_heads;
    return status;
}

static enum pe_status fix_by_q(struct pe_plan *plan, struct pe_attention *t, struct pe_failure *err)
{
    enum pe_status status = check_shapes(t, err);
    if (!status)
        status = fix(plan, "num_heads", &t->fields.num_heads, t->q.n_heads, "q", err);
    if (!status)
        status = fix(plan, "head_dim", &t->fields.head_dim, t->q.width, "q", err);
    t->n_lead = t->q.has_batch;
    t->lead[0] = t->q.n_batches;
    t->has_heads = t->q.has_heads;
    return status;
}

/* A scheme may have this parameter too, with its own default. The request's value comes first, then the tensor's
 * size, then the default. */
static int64_t scheme_size(const struct pe_plan *plan, const char *name, int64_t otherwise)
{
    int64_t size = otherwise;
    pe_param_integer(plan->scheme->info.params, plan->config, name, strlen(name), &size);
    return size;
}

/* w_q's rows are num_heads · head_dim; without it head_dim is dim / num_heads. */
static enum pe_status fix_head_dim(struct pe_plan *plan, struct pe_attention *t, uint64_t dim, struct pe_failure *err)
{
    const struct pe_tensor *w = &t->brought.projections[PE_W_Q].tensor;
    uint64_t heads = (uint64_t)t->fields.num_heads, rows_of_q = w->data && w->rank == 2 ? w->shape[0] : dim;
    if (pe_plan_gave(plan, "head_dim") && !w->data)
        return fix(plan, "head_dim", &t->fields.head_dim, (uint64_t)t->fields.head_dim, "", err);
    if (rows_of_q % heads)
        return pe_fail(err, w->data ? "/w_q" : "/num_heads",
                       w->data ? "w_q has %llu rows, which %llu heads (num_heads) do not divide"
                               : "the embedding has %llu channels, which %llu heads (num_heads) do not divide; give "
                                 "num_heads or head_dim",
                       (unsigned long long)rows_of_q, (unsigned long long)heads);
    return fix(plan, "head_dim", &t->fields.head_dim, rows_of_q / heads, w->data ? "w_q" : "x", err);
}

static enum pe_status fix_by_x(struct pe_plan *plan, struct pe_attention *t, struct pe_failure *err)
{
    const struct pe_tensor *x = &t->x;
    t->has_heads = true;
    t->n_lead = x->rank ? x->rank - 2 : 0;
    memcpy(t->lead, x->shape, t->n_lead * sizeof *t->lead);
    t->fields.num_heads = scheme_size(plan, "num_heads", t->fields.num_heads);
    if (plan->scheme->info.is_additive) /* concat widens x: pe_attention_init fixes dim */
        return PE_OK;
    if (x->rank)
        return fix(plan, "dim", &t->fields.dim, x->shape[x->rank - 1], "x", err);
    t->fields.dim = scheme_size(plan, "dim", t->fields.dim);
    if (t->fields.dim == PE_UNSET_INT)
        t->fields.dim = 512;
    return PE_OK;
}

/* ---- The seed ---- */

/* ---- Projections ---- */

static enum pe_status need_projection(struct pe_attention *t, enum pe_projection i, uint64_t n_rows, uint64_t dim,
                                      struct pe_failure *err)
{
    struct pe_weights *w = &t->brought.projections[i];
    const uint64_t shape[2] = {n_rows, dim};
    char pointer[8] = "/", sent[96], needed[96];
    strcat(pointer, projection_names[i]);
    unsigned rank = i < PE_B_Q ? 2 : 1;
    if (w->tensor.data && w->tensor.rank == rank && memcmp(w->tensor.shape, shape, rank * sizeof *shape) == 0)
        return PE_OK;
    pe_shape_print(shape, rank, needed, sizeof needed);
    if (w->tensor.data) {
        pe_shape_print(w->tensor.shape, w->tensor.rank, sent, sizeof sent);
        return pe_fail(err, pointer, "%s has the shape %s; needed: %s, [heads · head_dim%s]", projection_names[i], sent,
                       needed, rank == 2 ? ", dim" : "");
    }
    if (rank == 1)
        return PE_OK; /* no bias */
    if (!t->has_seed)
        return pe_fail(err, pointer, "x needs the tensor %s %s; send it, or \"seed\":0 makes projections at random",
                       projection_names[i], needed);
    pe_weights_seed(w, t->fields.seed, projection_names[i], PROJECTION_STD, shape, rank);
    return PE_OK;
}

/* The number of rows of w_k determines the heads of keys and values. */
static enum pe_status kv_rows(const struct pe_attention *t, uint64_t *n_rows, struct pe_failure *err)
{
    const struct pe_tensor *w = &t->brought.projections[PE_W_K].tensor;
    uint64_t heads = (uint64_t)t->fields.num_heads, head_dim = (uint64_t)t->fields.head_dim;
    *n_rows = w->data && w->rank == 2 ? w->shape[0] : heads * head_dim;
    char shape[96];
    pe_shape_print(w->shape, w->rank, shape, sizeof shape);
    if (*n_rows && *n_rows % head_dim == 0 && heads % (*n_rows / head_dim) == 0)
        return PE_OK;
    return pe_fail(
        err, "/w_k",
        "w_k has the shape %s; needed: heads · head_dim (%llu) rows, with heads that divide num_heads (%llu)", shape,
        (unsigned long long)head_dim, (unsigned long long)heads);
}

enum pe_status pe_attention_need_projections(struct pe_plan *plan, uint64_t dim, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    uint64_t n_kv = 0;
    enum pe_status status = fix_head_dim(plan, t, dim, err);
    if (!status)
        status = kv_rows(t, &n_kv, err);
    uint64_t n_q = status ? 0 : (uint64_t)(t->fields.num_heads * t->fields.head_dim);
    for (size_t i = 0; !status && i < PE_N_PROJECTIONS; i++)
        if (i % 3 != PE_W_V || t->wants_output || t->brought.projections[i].tensor.data)
            status = need_projection(t, (enum pe_projection)i, i % 3 == PE_W_Q ? n_q : n_kv, dim, err);
    return status;
}

/* ---- The steps that core/plan.c takes ---- */

static bool asks_for(const struct pe_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_outputs; i++)
        if (strcmp(request->outputs[i], name) == 0)
            return true;
    return false;
}

enum pe_status pe_attention_open(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                 struct pe_failure *err)
{
    struct pe_attention *t = plan->attention = calloc(1, sizeof *t);
    if (!t)
        return pe_no_memory(err);
    plan->brought = &t->brought;
    t->wants_output = asks_for(request, "output") || asks_for(request, "output_terms");
    enum pe_status status =
        pe_params_read(pe_attention_params, &t->fields, request->fields, request->n_fields, taken, "", err);
    if (status || pe_attention_is_linear(t)) /* what a model gives for its scores is not used */
        return status;
    status = pe_query_scale_read(&t->fields.query_scale, request->fields, request->n_fields, err);
    return status ? status : pe_model_check_scores(plan->inheritance, err);
}

/* std is that of a scheme's weights; embeddings of words have 1. */
static enum pe_status check_std(const struct pe_plan *plan, struct pe_failure *err)
{
    const char *name = plan->scheme->info.name;
    if (!plan->attention->has_tokens || pe_param_find(plan->scheme->info.params, "std") ||
        !pe_plan_gave_itself(plan, "std"))
        return PE_OK;
    if (plan->scheme->info.is_additive)
        return pe_fail(
            err, "/std",
            "std is the standard deviation of a scheme's weights, and %s has none; embeddings of tokens have "
            "1, and x_scale multiplies them",
            name);
    return pe_fail(err, "/std",
                   "std is the standard deviation of a scheme's weights, and %s has none; embeddings of tokens have 1; "
                   "send x for others",
                   name);
}

enum pe_status pe_attention_read(struct pe_plan *plan, const struct pe_request *request, bool *taken,
                                 struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    t->has_tokens = plan->sequence.tokens != NULL;
    enum pe_status status = read_tensors(t, request, taken, err);
    if (!status)
        status = check_ways(plan, t, err);
    if (!status)
        status = check_std(plan, err);
    if (status)
        return status;
    /* Settles the seed, from which embeddings of words and missing projections are computed. Words without a seed use
     * seed 0, and so do the scheme's weights. */
    const struct pe_param *row = pe_param_find(plan->scheme->info.params, "seed");
    int64_t *own = &t->fields.seed;
    if (t->has_tokens && *own == PE_UNSET_INT)
        *own = 0;
    if (t->has_tokens && row && row->type == PE_T_INT)
        *(int64_t *)((char *)plan->config + row->offset) = *own;
    bool makes = t->has_tokens || (t->x.rank && (!t->brought.projections[PE_W_Q].tensor.data ||
                                                 !t->brought.projections[PE_W_K].tensor.data ||
                                                 (t->wants_output && !t->brought.projections[PE_W_V].tensor.data)));
    t->has_seed = plan->operation_uses_seed = makes && *own != PE_UNSET_INT;
    bool schemes = row && pe_when_holds(row->when, plan->scheme->info.params, plan->config);
    if (!t->has_seed && !schemes && pe_plan_gave_itself(plan, "seed"))
        return pe_fail(err, "/seed", "seed is not used here: no tensor is random");
    status = t->q.tensor.data           ? fix_by_q(plan, t, err)
             : pe_attention_is_given(t) ? fix_by_scores(plan, t, err)
                                        : fix_by_x(plan, t, err);
    if (status || pe_attention_is_sent(t) || plan->scheme->info.is_additive)
        return status;
    return pe_attention_need_projections(plan, (uint64_t)t->fields.dim, err);
}

/* Additive schemes encode one sequence of embeddings. */
enum pe_sequence_kind pe_attention_kind(const struct pe_plan *plan)
{
    bool has_one = plan->scheme->info.is_additive && !pe_attention_is_sent(plan->attention);
    return has_one ? PE_ONE_SEQUENCE : PE_TWO_SEQUENCES;
}

struct pe_sequence_sizes pe_attention_sizes(const struct pe_plan *plan)
{
    const struct pe_attention *t = plan->attention;
    uint64_t n = plan->scheme->n_class;
    struct pe_sequence_sizes sizes = {.k_tensor = t->x.rank ? "x" : pe_attention_is_given(t) ? "scores" : "k"};
    if (pe_attention_is_sent(t)) {
        uint64_t q_len = pe_attention_is_given(t) ? t->given.n : t->q.n;
        uint64_t k_len = pe_attention_is_given(t) ? t->given.width : t->k.n;
        sizes.q = q_len > n ? q_len - n : q_len;
        sizes.prefix = q_len > n && k_len > n ? n : 0;
        sizes.k = k_len > n ? k_len - n : k_len;
    } else if (t->x.rank && !plan->scheme->info.is_additive) {
        sizes.k = t->x.shape[t->x.rank - 2];
        sizes.prefix = sizes.k > n ? n : 0;
        sizes.k -= sizes.prefix;
    } else if (t->x.rank) {
        sizes.k = pe_absolute_n(plan);
        sizes.prefix = pe_absolute_n_prefix(plan);
    }
    return sizes;
}

/* ---- The config ---- */

/* Does the field say something under this scheme and this kernel? */
static bool is_used(const struct pe_plan *plan, const char *name)
{
    bool is_of_softmax = strncmp(name, "soft", 4) == 0, is_of_turns = strstr(name, "rotate") != NULL;
    return !(is_of_softmax && pe_attention_is_linear(plan->attention)) && (!is_of_turns || plan->scheme->rotate);
}

size_t pe_attention_print(const struct pe_plan *plan, struct pe_field *fields)
{
    struct pe_param mine[sizeof pe_attention_params / sizeof *pe_attention_params];
    struct pe_attention_fields values = plan->attention->fields;
    size_t n = 0;
    for (const struct pe_param *row = pe_attention_params; row->name; row++)
        if (!pe_param_find(plan->scheme->info.params, row->name) && is_used(plan, row->name) &&
            row->type != PE_T_OBJECT)
            mine[n++] = *row;
    mine[n] = (struct pe_param){.name = NULL};
    if (!plan->attention->has_seed)
        values.seed = PE_UNSET_INT;
    n = pe_params_print(mine, &values, fields, NULL);
    const struct pe_query_scale *scale = &plan->attention->fields.query_scale;
    if (scale->is_given)
        fields[n++] = (struct pe_field){"query_scale", pe_query_scale_value(scale)};
    return n;
}
