/* The operation attend: the steps of its plan, from tensors and a scheme to working memory.
 *
 * The order matters, because each step needs what the one before has fixed: the dtype of the answer and the sizes
 * follow from the tensors; the scheme plans with these sizes; the precision follows from the norms of the rows
 * (precision.c); the size of a block from the precision; outputs and working memory from the block. Everything that may
 * be refused is refused here, and filling cannot fail.
 *
 * The cost is estimated before tables are computed or memory is allocated (core/request/request.h), so a small request
 * for a huge map is refused or sent to a worker by its numbers alone. A map is never stored whole: fill.c computes the
 * blocks that an answer needs, when it needs them. */
#include "core/attention/attention.h"
#include "core/encode/encode.h"
#include "core/operation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Before the scheme plans ---- */

/* The requested dtype, else the dtype of the first tensor if that is real, else f32. */
static enum pe_dtype answer_dtype(const struct pe_attention *t, const struct pe_request *request)
{
    enum pe_dtype sent = t->q.tensor.data             ? t->q.tensor.dtype
                         : pe_attention_is_given(t)   ? t->given.tensor.dtype
                         : t->x.rank && !t->x_is_text ? t->x.dtype
                                                      : PE_F32;
    if (request->dtype != PE_DTYPE_NONE)
        return request->dtype;
    return pe_dtype_is_real(sent) ? sent : PE_F32;
}

static void set_sizes(struct pe_plan *plan)
{
    struct pe_attention *t = plan->attention;
    uint64_t n_batches = 1;
    t->q_len = t->q.tensor.data ? t->q.n : t->x.rank ? t->x.shape[t->x.rank - 2] : plan->seq.k->n;
    t->k_len = t->k.tensor.data ? t->k.n : t->q_len;
    if (pe_attention_is_given(t)) {
        t->q_len = t->given.n;
        t->k_len = t->given.width;
    }
    pe_shape_count(t->lead, t->n_lead, &n_batches);
    t->n_batches = n_batches;
}

/* Finds the first key of each packed sequence, and the end of the last. */
static enum pe_status find_pieces(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    const uint32_t *piece = plan->seq.piece;
    if (!piece)
        return PE_OK;
    t->piece_first = calloc((size_t)piece[t->k_len - 1] + 2, sizeof *t->piece_first);
    if (!t->piece_first)
        return pe_no_memory(err);
    for (size_t j = 0; j < t->k_len; j++)
        if (j == 0 || piece[j] != piece[j - 1])
            t->piece_first[piece[j]] = j;
    t->piece_first[piece[t->k_len - 1] + 1] = t->k_len;
    return PE_OK;
}

/* Keys of a padded batch are hidden where its mask is 0. */
static enum pe_status hide_padding(const struct pe_plan *plan, struct pe_mask_fields *fields, struct pe_failure *err)
{
    const struct pe_reals *mask = &plan->sequence.padded.attention_mask;
    if (mask->n == 0)
        return PE_OK;
    if (fields->key_mask.n)
        return pe_fail(err, "/key_mask", "attention_mask hides keys already; leave it or key_mask out");
    fields->key_mask = *mask;
    if (pe_sequence_n_batches(&plan->seq) == 1) /* one row for all */
        fields->key_mask.array = (struct pe_tensor){mask->array.dtype, 1, {mask->n}, mask->array.data};
    return PE_OK;
}

static enum pe_status begin(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    plan->dtype = answer_dtype(t, request);
    set_sizes(plan);
    uint64_t n_batches = pe_sequence_n_batches(&plan->seq);
    struct pe_mask_fields fields = t->fields.mask;
    enum pe_status status =
        n_batches > 1 && n_batches != t->n_batches
            ? pe_sequence_wrong_batch(&plan->sequence, n_batches, t->x.rank ? "x" : "q", t->n_batches, err)
            : hide_padding(plan, &fields, err);
    if (!status)
        status = pe_mask_init(&t->mask, &fields, t->k_len, t->n_batches, err);
    plan->mask = &t->mask;
    return status;
}

/* ---- What planning will take ---- */

/* Tables of doubles; queries and keys at the same positions share one. */
static double ns_of_tables(const struct pe_plan *plan)
{
    const struct pe_attention *t = plan->attention;
    uint64_t head_dim = t->fields.head_dim > 0 ? (uint64_t)t->fields.head_dim : 0;
    bool is_shared =
        !plan->scheme->magnitude && t->q_len == t->k_len && pe_rotate_same_positions(plan, plan->seq.q, plan->seq.k);
    if (!plan->scheme->rotate)
        return 0;
    uint64_t n = pe_positions_count(plan->seq.k) + (is_shared ? 0 : pe_positions_count(plan->seq.q));
    return pe_rotate_ns(head_dim) + pe_rotate_table_ns(plan, n, head_dim);
}

static double ns_of_norms(const struct pe_operand *op)
{
    return pe_norms_ns((double)op->n_batches * (double)op->n_heads * (double)op->n, (double)op->width);
}

static double ns(const struct pe_plan *plan)
{
    const struct pe_attention *t = plan->attention;
    double ns = ns_of_tables(plan) + pe_view_ns(plan);
    ns += t->fields.query_scale.is_given ? PE_NS_QUERY_FACTOR * (double)pe_positions_count(plan->seq.q) : 0;
    if (pe_attention_is_given(t))
        return ns + (t->wants_output ? ns_of_norms(&t->v) : 0);
    if (t->q.tensor.data)
        return ns + ns_of_norms(&t->q) + ns_of_norms(&t->k) + (t->wants_output ? ns_of_norms(&t->v) : 0);
    struct pe_embedding_sizes sizes = pe_attention_sizes_most(plan);
    double width = sizes.widths[0] + sizes.widths[1] + sizes.widths[2];
    return ns + pe_attention_embed_ns(plan, &sizes) + pe_norms_ns(sizes.n * (double)t->fields.num_heads, 0) +
           pe_norms_ns(sizes.n, width);
}

/* ---- What goes together ---- */

static enum pe_status check_linear(const struct pe_plan *plan, struct pe_failure *err)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_scheme *scheme = plan->scheme;
    static const char *const names[] = {"softmax_scale", "softcap", "softcap_after_bias", "sinks", "query_scale"};
    enum { N_NAMES = sizeof names / sizeof *names };
    if (!pe_attention_is_linear(t))
        return PE_OK;
    if (t->bias_id != SIZE_MAX || (scheme->attend && scheme->attend->room))
        return pe_fail(err, "/kernel",
                       "kernel linear goes with no, absolute and rotary schemes; what %s adds to logits is no product "
                       "of features",
                       scheme->info.name);
    for (size_t i = 0; i < N_NAMES; i++) {
        char pointer[32] = "/";
        if (pe_plan_gave_itself(plan, names[i]))
            return pe_fail(err, strcat(pointer, names[i]), "%s is not used by kernel linear", names[i]);
    }
    return PE_OK;
}

/* Masks compare positions if every query and key has one; else they compare indices in the sequence, as in a padded
 * batch, whose padding has positions that mean nothing. */
static bool goes_by_place(const struct pe_plan *plan)
{
    const struct pe_attention *t = plan->attention;
    return plan->sequence.padded.attention_mask.n || plan->seq.n_axes > 1 || plan->seq.q->n != t->q_len ||
           plan->seq.k->n != t->k_len;
}

/* ---- Rotation ---- */

static size_t input_of(const struct pe_scheme *scheme, const char *name)
{
    for (size_t id = 0; scheme->info.inputs && scheme->info.inputs[id].name; id++)
        if (scheme->info.inputs[id].is_operand && strcmp(scheme->info.inputs[id].name, name) == 0)
            return id;
    return 0;
}

static enum pe_status make_table(struct pe_plan *plan, size_t i, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    struct pe_side *side = &t->sides[i], *queries = &t->sides[0];
    uint64_t n = pe_positions_count(side->positions), row_bytes = 2 * t->turn.rotation.n_pairs * sizeof(double);
    if (i > 0 && !plan->scheme->magnitude && queries->cosines &&
        pe_rotate_same_positions(plan, side->positions, queries->positions)) {
        side->cosines = queries->cosines;
        return PE_OK;
    }
    if (n > PE_ROTATION_TABLE_MAX / row_bytes)
        return PE_OK;
    if (pe_plan_admit(plan, (double)(n * row_bytes), err))
        return err->status;
    side->cosines = t->tables[i] = malloc(n * row_bytes);
    if (!side->cosines)
        return pe_no_memory(err);
    pe_rotate_table(&t->turn, plan, side->positions, side->id, 0, n, side->cosines);
    return PE_OK;
}

static enum pe_status open_sides(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    const struct pe_scheme *scheme = plan->scheme;
    t->sides[0] = (struct pe_side){.operand = &t->q, .positions = plan->seq.q, .id = input_of(scheme, "q")};
    t->sides[1] = (struct pe_side){.operand = &t->k, .positions = plan->seq.k, .id = input_of(scheme, "k")};
    t->turns = scheme->rotate != NULL;
    return t->turns ? pe_rotate_init(&t->turn, plan, err) : PE_OK;
}

/* Values and outputs are turned over the channels of the keys, if theirs reach them and the layout only turns. */
static enum pe_status check_value_turn(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    const struct pe_rotation *turn = &t->turn.rotation;
    const char *pointer = t->fields.rotate_values ? "/rotate_values" : "/unrotate_output", *name = pointer + 1;
    size_t end = turn->offset + 2 * turn->n_pairs;
    if (!t->fields.rotate_values && !t->fields.unrotate_output)
        return PE_OK;
    if (!t->turns || plan->scheme->magnitude)
        return pe_fail(err, pointer, "%s is not used by %s; allowed: rope, which turns values without scaling them",
                       name, plan->scheme->info.name);
    if (turn->to_half || turn->is_tiled)
        return pe_fail(err, pointer,
                       "%s needs a layout that only turns pairs; allowed: half, interleaved, half_per_axis", name);
    if (!t->v.tensor.data)
        return pe_fail(err, pointer, "%s is given, and there is no v", name);
    if (t->v_dim < end)
        return pe_fail(err, "/v", "v has %zu channels; %s needs at least %zu: rotary_offset %zu + %zu rotated ones",
                       t->v_dim, name, end, turn->offset, 2 * turn->n_pairs);
    t->value_turn = t->turn;
    t->value_turn.rotation.head_dim = t->v_dim;
    return PE_OK;
}

/* The factors of all queries, if they are scaled by their positions. */
static enum pe_status make_factors(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    const struct pe_query_scale *scale = &t->fields.query_scale;
    uint64_t n = pe_positions_count(plan->seq.q);
    t->largest_factor = 1;
    if (!scale->is_given)
        return PE_OK;
    enum pe_status status = pe_query_scale_check(scale, plan->seq.n_axes, plan->seq.q, err);
    if (!status && plan->seq.q->n != t->q_len)
        return pe_fail(err, "/query_scale", "query_scale needs a position for each of %zu queries; there are %llu",
                       t->q_len, (unsigned long long)plan->seq.q->n);
    if (!status)
        status = pe_query_factors(scale, plan, plan->seq.q, n, &t->query_factors, err);
    if (status)
        return status;
    for (uint64_t i = 0; i < n && !pe_is_cancelled_at(i); i++)
        t->largest_factor = fmax(t->largest_factor, t->query_factors[i]);
    t->sides[0].factors = t->query_factors;
    return PE_OK;
}

static enum pe_status make_tables(struct pe_plan *plan, struct pe_failure *err)
{
    enum pe_status status = PE_OK;
    for (size_t i = 0; plan->attention->turns && !status && i < 2; i++)
        status = make_table(plan, i, err);
    return status;
}

/* ---- Blocks and work ---- */

/* ---- The plan ---- */

static enum pe_status check_scheme(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    t->bias_id = plan->scheme->info.outputs ? pe_output_row_find(plan->scheme, "bias") : SIZE_MAX;
    t->by_place = goes_by_place(plan);
    const struct pe_attend *attend = plan->scheme->attend;
    double factor;
    enum pe_status status = check_linear(plan, err);
    if (status)
        return status;
    if (pe_attention_is_given(t) && attend && attend->cosine && attend->cosine(plan, 0, &factor))
        return pe_fail(err, "/scores", "%s compares queries and keys by their cosines; give q and k instead of scores",
                       plan->scheme->info.name);
    if (pe_attention_is_given(t) && attend && attend->bias_is_scaled && attend->bias_is_scaled(plan) &&
        isnan(t->fields.softmax_scale))
        return pe_fail(err, "/softmax_scale",
                       "the bias is scaled as the scores are, and given scores have no scale of their own; give "
                       "softmax_scale, a factor on both");
    if (plan->scheme->info.is_additive || (plan->seq.q->n == t->q_len && plan->seq.k->n == t->k_len))
        return PE_OK;
    const char *tensor = t->x.rank ? "x" : pe_attention_is_given(t) ? "scores" : "q";
    return pe_fail_at(err, "", tensor, "%s has %zu queries and %zu keys, the sequence %llu and %llu positions", tensor,
                      t->q_len, t->k_len, (unsigned long long)plan->seq.q->n, (unsigned long long)plan->seq.k->n);
}

/* Sets the shapes of x's projections before their values are computed, because the scale and the rotation need
 * head_dim. */
static enum pe_status open_x(struct pe_plan *plan, struct pe_failure *err)
{
    return pe_attention_is_sent(plan->attention) ? PE_OK : pe_attention_open_x(plan, err);
}

static enum pe_status open_tensors(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    bool is_given = pe_attention_is_given(t);
    t->head_dim = is_given ? 0 : t->q.tensor.data ? t->q.width : (size_t)t->fields.head_dim;
    const struct pe_attend *attend = plan->scheme->attend;
    double usual = is_given                          ? 1
                   : attend && attend->softmax_scale ? attend->softmax_scale(plan, t->head_dim)
                                                     : 1 / sqrt((double)t->head_dim);
    if (pe_attention_is_linear(t))
        t->fields.softmax_scale = PE_UNSET;
    else if (isnan(t->fields.softmax_scale))
        t->fields.softmax_scale = usual;
    t->scale = isnan(t->fields.softmax_scale) ? 1 : t->fields.softmax_scale;
    t->bias_factor = attend && attend->bias_is_scaled && attend->bias_is_scaled(plan) ? t->scale : 1;
    if (attend && attend->reach_left)
        t->mask.reach_left = fmin(t->mask.reach_left, attend->reach_left(plan));
    enum pe_status status = open_sides(plan, err);
    if (!status)
        status = make_factors(plan, err);
    if (!status)
        status = pe_attention_choose_arithmetic(plan, err);
    if (!status) {
        t->n_heads = is_given ? t->given.n_heads : t->q.n_heads;
        t->n_kv_heads = !is_given ? t->k.n_heads : t->v.tensor.data ? t->v.n_heads : t->n_heads;
        t->head_dim = t->q.width;
        t->v_dim = t->v.width;
    }
    if (!status)
        status = check_value_turn(plan, err);
    if (!status && t->fields.sinks.n)
        status = pe_reals_expect(&t->fields.sinks, t->n_heads, "sinks", "one per head: num_heads", err);
    if (!status && t->wants_terms && plan->scheme->info.is_additive)
        status = pe_attention_embed_parts(plan, err);
    if (!status && plan->scheme->attend && plan->scheme->attend->open)
        status = plan->scheme->attend->open(plan, t->a, err);
    return status ? status : make_tables(plan, err);
}

static enum pe_status init(struct pe_plan *plan, const struct pe_request *request, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    enum pe_status status = find_pieces(plan, err);
    if (!status)
        status = check_scheme(plan, err);
    if (!status)
        status = pe_attention_choose_outputs(plan, request, err);
    if (!status)
        status = open_x(plan, err);
    if (!status)
        status = open_tensors(plan, err);
    if (status)
        return status;
    /* Chooses the number of rows computed together. Products with keys reach nine tenths of their full speed at 32
     * rows. Products with values need more rows, because BLAS lays out the values again for each block. The cache
     * favours few rows. */
    size_t rows = 128, row_bytes = t->k_len * t->a->size;
    size_t most = t->wants_output ? PE_BLOCK_BYTES_OF_OUTPUT : PE_BLOCK_BYTES;
    while (rows > 32 && rows * row_bytes > most)
        rows /= 2;
    while (rows > 1 && rows * row_bytes > PE_BLOCK_BYTES_MAX)
        rows /= 2;
    t->block_rows = rows < t->q_len ? rows : t->q_len;
    for (size_t i = 0; !status && i < plan->n_outputs; i++)
        status = pe_attention_shape_output(plan, i, err);
    if (!status)
        status = pe_view_count_empty(plan, err);
    if (status)
        return status;
    /* In multiply-adds. Each output counts separately, because results are not stored. */
    const struct pe_attend *attend = plan->scheme->attend;
    double pairs = (double)t->n_batches * (double)t->n_heads * (double)t->q_len * (double)t->k_len;
    double pair = pe_attention_is_given(t) ? 1 : (double)t->head_dim * (pe_attention_is_linear(t) && t->turns ? 2 : 1);
    if (attend && attend->work)
        pair += attend->work(plan);
    for (size_t i = 0; i < plan->n_outputs; i++)
        plan->work += pairs *
                      (pair + (t->kinds[i] == PE_OUTPUT || t->kinds[i] == PE_OUTPUT_TERMS ? (double)t->v_dim : 0)) *
                      (t->kinds[i] == PE_TERMS          ? (double)t->n_terms
                       : t->kinds[i] == PE_OUTPUT_TERMS ? 2
                                                        : 1);
    size_t n_projected = t->n_heads + 2 * t->n_kv_heads;
    if (t->wants_terms)
        n_projected += PE_N_EMBEDDING_PARTS * (t->n_heads + t->n_kv_heads);
    if (t->x.rank)
        plan->work += (double)t->embedded.n_rows * (double)t->embedded.dim * (double)t->head_dim * (double)n_projected;
    if (plan->work > PE_LIGHT_WORK)
        plan->pace = PE_HEAVY;
    return pe_workspaces_init(plan, err);
}

static void drop(struct pe_plan *plan)
{
    struct pe_attention *t = plan->attention;
    if (!t)
        return;
    pe_workspaces_drop(t);
    pe_operand_drop(&t->q);
    pe_operand_drop(&t->k);
    pe_operand_drop(&t->v);
    pe_operand_drop(&t->given);
    for (size_t i = 0; i < PE_N_EMBEDDING_PARTS; i++) {
        pe_operand_drop(&t->parts[i][0]);
        pe_operand_drop(&t->parts[i][1]);
    }
    pe_rotate_drop(&t->turn);
    pe_mask_drop(&t->mask);
    free(t->tables[0]);
    free(t->tables[1]);
    free(t->query_factors);
    free(t->embeddings);
    free(t->piece_first);
    free(t);
}

bool pe_plan_empty_rows(const struct pe_plan *plan, uint64_t *n)
{
    *n = plan->attention ? plan->attention->empty_rows : 0;
    return plan->attention;
}

/* ---- The operation ---- */

/* A scheme supports attention if it has its own terms, rotates queries and keys, or has an encoding to add to x or
 * biases to add to logits. */
static bool can(const struct pe_scheme *scheme)
{
    return scheme->attend || scheme->rotate || scheme->info.is_additive ||
           pe_output_row_find(scheme, "bias") != SIZE_MAX;
}

static enum pe_status refuse(const struct pe_scheme *scheme, struct pe_failure *err)
{
    return pe_fail(err, "/scheme", "scheme \"%s\" has nothing to do with attention", scheme->info.name);
}

/* Projections compute queries, keys and values from x; one scheme projects its own table with two of them. */
static bool takes_weight(const struct pe_scheme *scheme, const struct pe_request *request, const char *name)
{
    if (strncmp(name, "w_", 2) != 0 && strncmp(name, "b_", 2) != 0)
        return false;
    bool for_table = scheme->attend && scheme->attend->uses_projections && name[2] != 'v';
    return for_table || pe_request_has(request, "x") || pe_request_has(request, "tokens");
}

const struct pe_operation pe_operation_attend = {
    .info = {.name = "attention",
             .params = pe_attention_params,
             .inputs = pe_attention_inputs,
             .outputs = pe_attention_outputs,
             .uses_encoding = true},
    .id = PE_ATTEND,
    .can = can,
    .refuse = refuse,
    .open = pe_attention_open,
    .read = pe_attention_read,
    .kind = pe_attention_kind,
    .sizes = pe_attention_sizes,
    .begin = begin,
    .ns = ns,
    .init = init,
    .print = pe_attention_print,
    .n_printed_max = PE_ATTENTION_FIELDS_MAX,
    .drop = drop,
    .fill = pe_attention_fill,
    .is_counted_whole = true, /* a map is */
    .bytes = pe_attention_bytes,
    .takes_weight = takes_weight,
};
