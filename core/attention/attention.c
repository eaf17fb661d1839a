/* The operation attend: its plan, from tensors and a scheme to outputs, and its fill. */
#include "core/attention/internal.h"
#include "core/outputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Before the scheme plans ---- */

/* The request's word, else the dtype of the first tensor if that is real, else f32. */
static enum pe_dtype answer_dtype(const struct pe_attention *t, const struct pe_request *request)
{
    enum pe_dtype sent = t->q.tensor.data ? t->q.tensor.dtype : t->x.rank && !t->x_is_text ? t->x.dtype : PE_F32;
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
    pe_shape_count(t->lead, t->n_lead, &n_batches);
    t->n_batches = n_batches;
}

/* Where each packed sequence begins, and the end. */
static enum pe_status find_pieces(struct pe_plan *plan, struct pe_error *err)
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

enum pe_status pe_attention_begin(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
{
    struct pe_attention *t = plan->attention;
    plan->dtype = answer_dtype(t, request);
    set_sizes(plan);
    enum pe_status status = pe_sight_init(&t->sight, &t->fields.sight, t->k_len, t->n_batches, err);
    plan->sight = &t->sight;
    return status ? status : find_pieces(plan, err);
}

/* ---- What goes together ---- */

static enum pe_status check_linear(const struct pe_plan *plan, struct pe_error *err)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_scheme *scheme = plan->scheme;
    static const char *const names[] = {"softmax_scale", "softcap", "softcap_after_bias"};
    if (!pe_attention_is_linear(t))
        return PE_OK;
    if (t->bias_id != SIZE_MAX || (scheme->attend && scheme->attend->room))
        return pe_fail(err, "/kernel",
                       "kernel linear goes with no, absolute and rotary schemes; what %s adds to logits is no product "
                       "of features",
                       scheme->info.name);
    for (size_t i = 0; i < 3; i++) {
        char pointer[32] = "/";
        if (pe_plan_gave_itself(plan, names[i]))
            return pe_fail(err, strcat(pointer, names[i]), "%s is not used by kernel linear", names[i]);
    }
    return PE_OK;
}

static enum pe_status check_lengths(const struct pe_plan *plan, struct pe_error *err)
{
    const struct pe_attention *t = plan->attention;
    if (plan->scheme->info.is_additive || (plan->seq.q->n == t->q_len && plan->seq.k->n == t->k_len))
        return PE_OK;
    return pe_fail(err, t->x.rank ? "/x" : "/q",
                   "%s has %zu queries and %zu keys, the sequence %llu and %llu positions", t->x.rank ? "x" : "q",
                   t->q_len, t->k_len, (unsigned long long)plan->seq.q->n, (unsigned long long)plan->seq.k->n);
}

/* Positions decide who sees whom where every query and key has one; else their places. */
static bool goes_by_place(const struct pe_plan *plan)
{
    const struct pe_attention *t = plan->attention;
    return plan->seq.n_axes > 1 || plan->seq.q->n != t->q_len || plan->seq.k->n != t->k_len;
}

static void set_scale(struct pe_plan *plan)
{
    struct pe_attention *t = plan->attention;
    const struct pe_attend *attend = plan->scheme->attend;
    double usual =
        attend && attend->softmax_scale ? attend->softmax_scale(plan, t->head_dim) : 1 / sqrt((double)t->head_dim);
    if (isnan(t->fields.softmax_scale) && !pe_attention_is_linear(t))
        t->fields.softmax_scale = usual;
    t->scale = isnan(t->fields.softmax_scale) ? 1 : t->fields.softmax_scale;
    t->bias_factor = attend && attend->bias_is_scaled && attend->bias_is_scaled(plan) ? t->scale : 1;
    if (attend && attend->reach_left)
        t->sight.reach_left = fmin(t->sight.reach_left, attend->reach_left(plan));
}

static void take_shapes(struct pe_attention *t)
{
    t->n_heads = t->q.n_heads;
    t->n_kv_heads = t->k.n_heads;
    t->head_dim = t->q.width;
    t->v_dim = t->v.width;
}

/* ---- Precision ---- */

/* The largest norm of a row, and whether all numbers are finite. Keys that sight hides are left out: what stands
 * in padding changes nothing. sight may be NULL. */
static double largest_norm(const struct pe_operand *op, const struct pe_sight *sight, bool *is_finite)
{
    double x[PE_HEAD_DIM_MAX], most = 0;
    size_t size = pe_dtype_size(op->tensor.dtype);
    *is_finite = true;
    for (size_t b = 0; b < op->n_batches; b++)
        for (size_t h = 0; h < op->n_heads; h++)
            for (size_t i = 0; i < op->n; i++) {
                size_t at = b * op->batch_step + h * op->head_step + i * op->row_step;
                double sum = 0;
                if (sight && sight->seen && !sight->seen[b % sight->n_masks * op->n + i])
                    continue;
                pe_convert(PE_F64, x, op->tensor.dtype, (const char *)op->tensor.data + at * size, op->width);
                for (size_t c = 0; c < op->width; c++)
                    sum += x[c] * x[c];
                *is_finite &= isfinite(sum) != 0;
                most = sum > most ? sum : most;
            }
    return sqrt(most);
}

/* YaRN's factor makes what is turned longer. */
static double largest_amplitude(const struct pe_turn *turn)
{
    double most = 1;
    for (size_t i = 0; i < 2 * turn->rotation.n_pairs; i++)
        most = fmax(most, fabs(turn->columns[i].ah));
    return most;
}

/* A product of two rows of floats is wrong by about 2^-24 of the product of their norms, and so is a logit; a
 * probability by up to a quarter of the errors of two logits. Where that may pass 2^-20 (or scales depend on positions)
 * logits are made in double. */
#define F32_LOGIT_MAX 24

static bool wants_f64(const struct pe_plan *plan)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_attend *attend = plan->scheme->attend;
    double factor = 1, amplitude = t->turns ? largest_amplitude(&t->turn) : 1;
    bool q_is_finite, k_is_finite;
    if (plan->scheme->magnitude)
        return true;
    double q = amplitude * largest_norm(&t->q, NULL, &q_is_finite);
    double k = amplitude * largest_norm(&t->k, &t->sight, &k_is_finite);
    if (attend && attend->cosine && attend->cosine(plan, 0, &factor))
        return true;
    double terms = attend && attend->largest ? attend->largest(plan, q, k) : 0;
    return !(fabs(t->scale) * (q * k + terms) <= F32_LOGIT_MAX);
}

static bool is_f64(enum pe_dtype dtype) { return dtype == PE_F64; }

/* Words are few. */
static bool are_few_words(const struct pe_attention *t)
{
    double n = (double)t->q_len, dim = (double)t->embedded.dim;
    return t->has_tokens && n * dim * dim * 4 < PE_IN_ORDER_WORK_MAX;
}

static enum pe_status choose_arithmetic(struct pe_plan *plan, struct pe_error *err)
{
    struct pe_attention *t = plan->attention;
    bool sent_f64 = t->x.rank ? is_f64(t->x.dtype) && !t->x_is_text
                              : is_f64(t->q.tensor.dtype) || is_f64(t->k.tensor.dtype) || is_f64(t->v.tensor.dtype);
    bool f64 = is_f64(plan->dtype) || sent_f64 || t->has_tokens;
    enum pe_status status = PE_OK;
    t->products = are_few_words(t) ? pe_arithmetic_in_order() : pe_arithmetic(PE_F64);
    if (t->x.rank)
        status = pe_attention_embed(plan, f64 ? PE_F64 : PE_F32, err);
    if (!status && !f64 && wants_f64(plan)) {
        f64 = true;
        status = t->x.rank ? pe_attention_embed(plan, PE_F64, err) : PE_OK;
    }
    t->a = f64 ? t->products : pe_arithmetic(PE_F32);
    if (!status && t->wants_output)
        largest_norm(&t->v, NULL, &t->v_is_finite);
    return status;
}

/* ---- Rotation ---- */

static size_t input_of(const struct pe_scheme *scheme, const char *name)
{
    for (size_t id = 0; scheme->info.inputs && scheme->info.inputs[id].name; id++)
        if (scheme->info.inputs[id].is_operand && strcmp(scheme->info.inputs[id].name, name) == 0)
            return id;
    return 0;
}

static enum pe_status make_table(struct pe_plan *plan, size_t i, struct pe_error *err)
{
    struct pe_attention *t = plan->attention;
    struct pe_side *side = &t->sides[i], *queries = &t->sides[0];
    uint64_t n = side->operand->n, row_bytes = 2 * t->turn.rotation.n_pairs * sizeof(double);
    if (i > 0 && !plan->scheme->magnitude && queries->cosines &&
        pe_turn_same_positions(plan, side->positions, queries->positions)) {
        side->cosines = queries->cosines;
        return PE_OK;
    }
    if (n > PE_ROTATION_TABLE_MAX / row_bytes)
        return PE_OK;
    side->cosines = t->tables[i] = malloc(n * row_bytes);
    if (!side->cosines)
        return pe_no_memory(err);
    pe_turn_table(&t->turn, plan, side->positions, side->id, 0, n, side->cosines);
    return PE_OK;
}

static enum pe_status open_sides(struct pe_plan *plan, struct pe_error *err)
{
    struct pe_attention *t = plan->attention;
    const struct pe_scheme *scheme = plan->scheme;
    t->sides[0] = (struct pe_side){.operand = &t->q, .positions = plan->seq.q, .id = input_of(scheme, "q")};
    t->sides[1] = (struct pe_side){.operand = &t->k, .positions = plan->seq.k, .id = input_of(scheme, "k")};
    t->turns = scheme->rotate != NULL;
    return t->turns ? pe_turn_init(&t->turn, plan, err) : PE_OK;
}

static enum pe_status make_tables(struct pe_plan *plan, struct pe_error *err)
{
    enum pe_status status = PE_OK;
    for (size_t i = 0; plan->attention->turns && !status && i < 2; i++)
        status = make_table(plan, i, err);
    return status;
}

/* ---- Outputs ---- */

static const char *const output_names[] = {[PE_SCORES] = "scores",           [PE_PROBS] = "probs",
                                           [PE_WEIGHTS] = "weights",         [PE_OUTPUT] = "output",
                                           [PE_ROW_ENTROPY] = "row_entropy", NULL};

#define MAP "batch,num_heads,q_len,k_len"

const struct pe_output_row *pe_attention_outputs(void)
{
    static const struct pe_output_row rows[] = {
        {"scores", MAP, 1, PE_DTYPE_NONE, true, "kernel=softmax",
         "logits after scale, cap, bias and mask; what is hidden is -inf"},
        {"probs", MAP, 1, PE_DTYPE_NONE, false, "kernel=softmax", "each row's softmax; 0 where a row sees nothing"},
        {"weights", MAP, 1, PE_DTYPE_NONE, false, "kernel=linear", "may be negative; rows need not sum to 1"},
        {"output", "batch,num_heads,q_len,v_dim", 1, PE_DTYPE_NONE, true, NULL,
         "values weighted; needs v, w_v or tokens"},
        {"row_entropy", "batch,num_heads,q_len", 1, PE_DTYPE_NONE, true, "kernel=softmax",
         "-sum of p·ln p of each row, nats"},
        {.name = NULL},
    };
    return rows;
}

static bool is_there(const struct pe_plan *plan, enum pe_attention_output kind)
{
    const struct pe_attention *t = plan->attention;
    switch (kind) {
    case PE_WEIGHTS: return pe_attention_is_linear(t);
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
                                  enum pe_attention_output *kind, struct pe_error *err)
{
    const char *names[16], *known;
    size_t n = 0;
    if (strcmp(name, "output") == 0 && !is_there(plan, PE_OUTPUT))
        return pe_fail(err, "/outputs", "output needs the values v, [batch, heads, keys, v_dim]");
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

static enum pe_status choose_outputs(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
{
    struct pe_attention *t = plan->attention;
    enum pe_status status = pe_outputs_twice(request, err);
    size_t n = request->n_outputs ? request->n_outputs : 1;
    if (!status && n > sizeof t->kinds / sizeof *t->kinds)
        return pe_output_unknown(plan, n - 1, request->outputs[n - 1], output_names, err);
    if (!status)
        status = pe_outputs_alloc(plan, n + 1, err); /* and the encoding of an additive scheme */
    t->kinds[0] = pe_attention_is_linear(t) ? PE_WEIGHTS : PE_PROBS;
    for (size_t i = 0; !status && i < request->n_outputs; i++)
        status = find_output(plan, i, request->outputs[i], &t->kinds[i], err);
    if (!status)
        plan->n_outputs = plan->n_sources = n;
    return status;
}

static enum pe_status shape_output(struct pe_plan *plan, size_t i, struct pe_error *err)
{
    struct pe_attention *t = plan->attention;
    struct pe_output *o = &plan->outputs[i];
    enum pe_attention_output kind = t->kinds[i];
    bool inside = kind == PE_OUTPUT && t->fields.tensor_layout == PE_BNHD; /* heads behind positions */
    uint64_t width = kind == PE_OUTPUT ? t->v_dim : kind == PE_ROW_ENTROPY ? 1 : t->k_len, total;
    o->name = name_of(plan, kind);
    o->dtype = plan->dtype;
    o->rank = t->n_lead;
    memcpy(o->shape, t->lead, t->n_lead * sizeof *t->lead);
    if (inside)
        o->shape[o->rank++] = t->q_len;
    if (t->has_heads)
        o->shape[o->rank++] = t->n_heads;
    if (!inside)
        o->shape[o->rank++] = t->q_len;
    if (kind != PE_ROW_ENTROPY)
        o->shape[o->rank++] = width;
    if (!pe_shape_count(o->shape, o->rank, &total) || total > INT64_MAX / sizeof(double)) {
        pe_fail(err, "", "output %s would have more than 2^60 elements", o->name);
        return err->status = PE_TOO_LARGE;
    }
    o->row_len = o->shape[o->rank - 1];
    o->n_rows = total / o->row_len;
    o->unit = t->block_rows * width * (inside ? t->n_heads : 1);
    o->period = t->q_len * width * (inside ? t->n_heads : 1);
    return PE_OK;
}

/* Rows worked on together: products of matrices want many (32 rows reach nine tenths of their speed), the cache few. */
static void choose_block(struct pe_attention *t)
{
    size_t rows = 128, row_bytes = t->k_len * t->a->size;
    while (rows > 32 && rows * row_bytes > PE_BLOCK_BYTES)
        rows /= 2;
    while (rows > 1 && rows * row_bytes > PE_BLOCK_BYTES_MAX)
        rows /= 2;
    t->block_rows = rows < t->q_len ? rows : t->q_len;
}

/* Multiply-adds: for each output anew, since an answer is never kept. */
static void estimate_work(struct pe_plan *plan)
{
    struct pe_attention *t = plan->attention;
    const struct pe_attend *attend = plan->scheme->attend;
    double pairs = (double)t->n_batches * (double)t->n_heads * (double)t->q_len * (double)t->k_len;
    double pair = (double)t->head_dim * (pe_attention_is_linear(t) && t->turns ? 2 : 1);
    if (attend && attend->work)
        pair += attend->work(plan);
    for (size_t i = 0; i < plan->n_outputs; i++)
        plan->work += pairs * (pair + (t->kinds[i] == PE_OUTPUT ? (double)t->v_dim : 0));
    if (t->x.rank)
        plan->work += (double)t->embedded.n_rows * (double)t->embedded.dim * (double)t->head_dim *
                      (double)(t->n_heads + 2 * t->n_kv_heads);
    if (plan->work > PE_LIGHT_WORK)
        plan->pace = PE_HEAVY;
}

/* ---- The plan ---- */

static enum pe_status check_scheme(struct pe_plan *plan, struct pe_error *err)
{
    struct pe_attention *t = plan->attention;
    t->bias_id = plan->scheme->info.outputs ? pe_output_row_find(plan->scheme, "bias") : SIZE_MAX;
    t->by_place = goes_by_place(plan);
    enum pe_status status = check_linear(plan, err);
    return status ? status : check_lengths(plan, err);
}

/* x's projections have shapes before they have numbers: the scale and the rotation need head_dim. */
static enum pe_status open_x(struct pe_plan *plan, struct pe_error *err)
{
    return plan->attention->q.tensor.data ? PE_OK : pe_attention_open_x(plan, err);
}

static enum pe_status open_tensors(struct pe_plan *plan, struct pe_error *err)
{
    struct pe_attention *t = plan->attention;
    t->head_dim = t->q.tensor.data ? t->q.width : (size_t)t->fields.head_dim;
    set_scale(plan);
    enum pe_status status = open_sides(plan, err);
    if (!status)
        status = choose_arithmetic(plan, err);
    if (!status)
        take_shapes(t);
    if (!status && plan->scheme->attend && plan->scheme->attend->open)
        status = plan->scheme->attend->open(plan, t->a, err);
    return status ? status : make_tables(plan, err);
}

enum pe_status pe_attention_init(struct pe_plan *plan, const struct pe_request *request, struct pe_error *err)
{
    struct pe_attention *t = plan->attention;
    enum pe_status status = check_scheme(plan, err);
    if (!status)
        status = choose_outputs(plan, request, err);
    if (!status)
        status = open_x(plan, err);
    if (!status)
        status = open_tensors(plan, err);
    if (status)
        return status;
    choose_block(t);
    for (size_t i = 0; !status && i < plan->n_outputs; i++)
        status = shape_output(plan, i, err);
    if (!status)
        status = pe_view_count_empty(plan, err);
    if (status)
        return status;
    estimate_work(plan);
    return pe_desks_init(plan, err);
}

void pe_attention_drop(struct pe_plan *plan)
{
    struct pe_attention *t = plan->attention;
    if (!t)
        return;
    pe_desks_drop(t);
    pe_operand_drop(&t->q);
    pe_operand_drop(&t->k);
    pe_operand_drop(&t->v);
    pe_turn_drop(&t->turn);
    pe_sight_drop(&t->sight);
    free(t->tables[0]);
    free(t->tables[1]);
    free(t->embeddings);
    free(t->piece_first);
    free(t);
}

bool pe_plan_empty_rows(const struct pe_plan *plan, uint64_t *n)
{
    *n = plan->attention ? plan->attention->empty_rows : 0;
    return plan->attention;
}

/* ---- Filling ---- */

/* What one desk makes at a time: some queries of a head, or of all heads where an output has them inside. Units are
 * numbered across the answer. */
struct unit {
    uint64_t number;
    size_t batch, head, n_heads; /* heads head … head+n_heads-1 */
    size_t i0, n_rows;
    size_t width; /* numbers a query has of a head */
};

static struct unit unit_at(const struct pe_plan *plan, size_t i, uint64_t element)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_output *o = &plan->outputs[i];
    uint64_t period = element / o->period, within = element % o->period / o->unit;
    bool inside = t->kinds[i] == PE_OUTPUT && t->fields.tensor_layout == PE_BNHD;
    struct unit u = {.number = period * ((o->period - 1) / o->unit + 1) + within};
    u.n_heads = inside ? t->n_heads : 1;
    u.batch = inside ? period : period / t->n_heads;
    u.head = inside ? 0 : period % t->n_heads;
    u.i0 = within * t->block_rows;
    u.n_rows = t->q_len - u.i0 < t->block_rows ? t->q_len - u.i0 : t->block_rows;
    u.width = o->unit / t->block_rows / u.n_heads;
    return u;
}

/* Values of one head of the unit; in the unit heads stand beside each other. */
static void make_output(const struct pe_plan *plan, struct pe_desk *desk, const struct unit *u, size_t head)
{
    const struct pe_attention *t = plan->attention;
    enum pe_attention_output kind = pe_attention_is_linear(t) ? PE_WEIGHTS : PE_PROBS;
    pe_block_make(plan, desk, kind, u->batch, head, u->i0, u->n_rows, desk->block);
    pe_block_output(plan, desk, u->batch, head, u->i0, u->n_rows, desk->block,
                    pe_numbers_at(t->a, desk->out, (head - u->head) * t->v_dim), u->n_heads * t->v_dim);
}

/* Makes the unit's numbers and says where they are and in what dtype. */
static const void *make_unit(const struct pe_plan *plan, struct pe_desk *desk, enum pe_attention_output kind,
                             const struct unit *u, bool is_made, enum pe_dtype *dtype)
{
    const struct pe_attention *t = plan->attention;
    *dtype = kind == PE_ROW_ENTROPY ? PE_F64 : t->a->dtype;
    for (size_t head = u->head; !is_made && head < u->head + u->n_heads; head++) {
        pe_desk_load_head(plan, desk, u->batch, head);
        if (kind == PE_OUTPUT)
            make_output(plan, desk, u, head);
        else
            pe_block_make(plan, desk, kind, u->batch, head, u->i0, u->n_rows, desk->block);
    }
    return kind == PE_OUTPUT ? desk->out : kind == PE_ROW_ENTROPY ? (const void *)desk->entropies : desk->block;
}

/* A unit is always made whole, and the part asked for copied: products of matrices depend on their size in their last
 * bits. */
void pe_attention_fill(const struct pe_plan *plan, size_t i, uint64_t first, size_t n, void *dst)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_output *o = &plan->outputs[i];
    char *at = dst;
    while (n > 0) {
        struct unit u = unit_at(plan, i, first);
        uint64_t name = u.number * 16 + (uint64_t)t->kinds[i], start = first % o->period % o->unit;
        uint64_t left = u.n_rows * u.n_heads * u.width - start;
        size_t m = left < n ? (size_t)left : n;
        enum pe_dtype dtype;
        struct pe_desk *desk = pe_desk_borrow(t, name);
        bool is_made = atomic_load_explicit(&desk->unit, memory_order_relaxed) == name;
        const char *numbers = make_unit(plan, desk, t->kinds[i], &u, is_made, &dtype);
        pe_convert(o->dtype, at, dtype, numbers + start * pe_dtype_size(dtype), m);
        pe_desk_return(desk, name);
        first += m;
        n -= m;
        at += m * pe_dtype_size(o->dtype);
    }
}
