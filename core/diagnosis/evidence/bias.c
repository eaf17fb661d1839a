/* Evidence: bias [heads, queries, keys]; buckets, and the index of a table, [queries, keys]. */
#include "core/diagnosis/diagnosis.h"
#include "core/request/request.h"
#include "core/schemes/bias/bias.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct pe_evidence_kind index_kind;

static void set_integer(struct pe_diagnosis *d, const char *name, uint64_t x)
{
    pe_belief_set(d, name, (struct pe_value){.kind = PE_INTEGER, .integer = (int64_t)x});
}

static int64_t given_length(const struct pe_diagnosis *d, const char *name)
{
    const struct pe_value *v = pe_belief_given(d, name);
    return v && v->kind == PE_INTEGER ? v->integer : -1;
}

/* Does the map have a row for each key, and a column for each query? */
static bool is_turned(const struct pe_diagnosis *d)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    int64_t rows = (int64_t)t->shape[t->rank - 2], columns = (int64_t)t->shape[t->rank - 1];
    return rows != columns && given_length(d, "q_len") == columns && given_length(d, "k_len") == rows;
}

/* Without a sequence, queries and keys end at the same position. */
static void set_sequence(struct pe_diagnosis *d)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    uint64_t q_len = t->shape[t->rank - 2], k_len = t->shape[t->rank - 1];
    d->evidence.is_turned = is_turned(d);
    if (pe_belief_has_sequence(d))
        return;
    if (q_len == k_len && !pe_belief_given(d, "q_offset")) {
        set_integer(d, "len", q_len);
        return;
    }
    set_integer(d, "q_len", q_len);
    set_integer(d, "k_len", k_len);
}

static bool is_hidden(const struct pe_diagnosis *d, uint64_t row, uint64_t col)
{
    double x;
    pe_evidence_read(&d->evidence, 0, row, col, 1, &x);
    return isinf(x);
}

/* Is the triangle after the queries hidden, and nothing else of the first and the last row? */
static bool looks_causal(const struct pe_diagnosis *d)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    uint64_t q_len = t->shape[t->rank - 2], k_len = t->shape[t->rank - 1];
    bool causal = q_len > 1 && q_len <= k_len;
    for (uint64_t j = 0; causal && j < k_len; j++)
        causal = is_hidden(d, 0, j) == (j > k_len - q_len) && !is_hidden(d, q_len - 1, j);
    return causal;
}

static enum pe_status wrong_shape(const struct pe_diagnosis *d, const char *needed, struct pe_failure *err)
{
    char shape[96], pointer[24] = "/";
    const char *name = strncat(pointer, d->evidence.kind->tensors[0], sizeof pointer - 2) + 1;
    pe_shape_print(d->evidence.sent.shape, d->evidence.sent.rank, shape, sizeof shape);
    return pe_fail(err, pointer, "%s has the shape %s, %u dimensions; allowed: %s", name, shape, d->evidence.sent.rank,
                   pe_text(needed));
}

/* Is the tensor the same block of maps again and again, bit for bit? */
static bool is_repeated(const struct pe_tensor *t, uint64_t n_maps, uint64_t n_times)
{
    size_t block = (size_t)(n_maps * t->shape[t->rank - 2] * t->shape[t->rank - 1]) * pe_dtype_size(t->dtype);
    for (uint64_t i = 1; i < n_times; i++)
        if (memcmp(t->data, (const char *)t->data + i * block, block) != 0 || pe_is_cancelled())
            return false;
    return true;
}

/* [batch, heads, queries, keys]: where all rows of the batch have the same maps, those of the first. */
static bool fold_batch(struct pe_diagnosis *d)
{
    enum { BATCHED = 4 };
    const struct pe_tensor *t = &d->evidence.tensors[0];
    if (t->rank != BATCHED || !is_repeated(t, t->shape[1], t->shape[0]))
        return false;
    pe_evidence_fold(&d->evidence, 3, t->shape + 1);
    return true;
}

/* [batch·heads, queries, keys], as BLOOM's: likewise, where the belief has fewer heads. */
static void fold_heads(struct pe_diagnosis *d)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    int64_t heads = given_length(d, "num_heads");
    if (heads > 0 && t->shape[0] > (uint64_t)heads && t->shape[0] % (uint64_t)heads == 0 &&
        is_repeated(t, (uint64_t)heads, t->shape[0] / (uint64_t)heads))
        pe_evidence_fold(&d->evidence, 3, (uint64_t[]){(uint64_t)heads, t->shape[1], t->shape[2]});
}

/* Heads that are not the first axis, as T5's code has them before it turns its map: [queries, keys, heads]. */
static enum pe_status move_heads(struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    int64_t heads = given_length(d, "num_heads");
    unsigned char order[PE_RANK_MAX];
    unsigned at = 0;
    for (unsigned a = 1; a < t->rank; a++)
        at = heads > 0 && t->shape[a] == (uint64_t)heads ? a : at;
    if (heads <= 0 || t->shape[0] == (uint64_t)heads || at == 0)
        return PE_OK;
    pe_order_to(t->rank, at, 0, order);
    return pe_evidence_move(d, order, err);
}

#define HAVE_BIAS "alibi, t5, kerple, sandwich and fire have one"

static enum pe_status read_bias(struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    if (!pe_evidence_squeeze(&d->evidence, 3) && !fold_batch(d))
        return wrong_shape(
            d, "[heads, queries, keys], or the same for each row of a batch, [batch, heads, queries, keys]", err);
    if (!pe_evidence_is_output(d, "bias"))
        return pe_fail(err, "/bias", "%s has no bias; " HAVE_BIAS, d->belief.inheritance->scheme->info.name);
    fold_heads(d);
    enum pe_status status = move_heads(d, err);
    if (!status && given_length(d, "num_heads") <= 0) /* other heads: sizes.c */
        status = pe_belief_fix(d, "num_heads", t->shape[t->rank - 3], "bias", err);
    if (status)
        return status;
    set_sequence(d);
    if (!d->belief.is_given && !pe_belief_given(d, "causal") && looks_causal(d))
        pe_belief_set(d, "causal", (struct pe_value){.kind = PE_BOOLEAN, .boolean = true});
    return PE_OK;
}

/* Other schemes than T5 call the rows of their tables `index`. */
static enum pe_status read_buckets(struct pe_diagnosis *d, struct pe_failure *err)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    bool is_map = true;
    for (unsigned a = 0; a + 2 < t->rank; a++)
        is_map = is_map && t->shape[a] == 1;
    if (!is_map || !pe_evidence_squeeze(&d->evidence, 2))
        return wrong_shape(d, "[queries, keys]", err);
    if (d->evidence.kind == &pe_evidence_buckets && !pe_evidence_is_output(d, "buckets"))
        d->evidence.kind = &index_kind;
    if (!pe_evidence_is_output(d, d->evidence.kind->outputs[0])) {
        char pointer[24] = "/";
        strncat(pointer, d->evidence.kind->tensors[0], sizeof pointer - 2);
        return pe_fail(err, pointer,
                       "%s has no %s; t5 has buckets, shaw, deberta, swin and beit an index, decomposed index_h and "
                       "index_w",
                       d->belief.inheritance->scheme->info.name, pointer + 1);
    }
    set_sequence(d);
    return PE_OK;
}

/* ---- Numbers of a bias ---- */

/* A bias that depends on the distance has few different numbers, but a plan of a small map computes them anew for every
 * row, and a sum of cosines takes microseconds. So they are kept, block by block as they are needed. */
struct line {
    size_t n, n_blocks;   /* of a head */
    unsigned char *known; /* [heads, n_blocks] */
    double values[];      /* [heads, n] */
};
enum { BLOCK = 16, LINES_MAX = 1 << 18 };

static enum pe_status prepare_line(struct pe_model *m, struct pe_failure *err)
{
    const struct pe_plan *plan = m->plan;
    size_t n_heads = (size_t)pe_plan_output(plan, 0)->shape[0], n = (size_t)(plan->seq.q->n + plan->seq.k->n - 1);
    size_t n_blocks = (n - 1) / BLOCK + 1;
    if (pe_plan_pace(plan) == PE_QUICK || n_heads * n > LINES_MAX || !pe_fill_line(plan, 0, 0, 0, 0, NULL))
        return PE_OK;
    struct line *line = m->state = calloc(1, sizeof *line + n_heads * (n * sizeof *line->values + n_blocks));
    if (!line)
        return pe_no_memory(err);
    line->n = n;
    line->n_blocks = n_blocks;
    line->known = (unsigned char *)(line->values + n_heads * n);
    return PE_OK;
}

static void know_block(const struct pe_model *m, struct line *line, uint64_t head, size_t block)
{
    const struct pe_plan *plan = m->plan;
    unsigned char *known = &line->known[head * line->n_blocks + block];
    size_t first = block * BLOCK, n = line->n - first < BLOCK ? line->n - first : BLOCK;
    if (!*known) {
        pe_fill_line(plan, 0, head, first, n, line->values + head * line->n + first);
        *m->work += (double)n * fmax(pe_plan_each(plan), plan->distance_work);
    }
    *known = 1;
}

/* ---- Windows whose index has other strides ---- */

bool pe_window_of(const struct pe_plan *plan, uint64_t *sides, uint64_t *n_class)
{
    const struct pe_window *w = plan->tables;
    bool is_index = plan->outputs[0].dtype == PE_I32; /* Swin V2 has the index of Swin, and another bias */
    if (!pe_is_among(is_index ? "swin|swinv2|beit" : "swin|beit", plan->scheme->info.name) || w->frames > 1)
        return false;
    sides[0] = w->h;
    sides[1] = w->w;
    *n_class = w->has_class;
    return true;
}

/* The index of a query and a key that are patches; NaN: one is the class token. */
static double index_of(const struct pe_strides *s, const uint64_t *sides, uint64_t n_class, uint64_t i, uint64_t j)
{
    double h = (double)sides[0], w = (double)sides[1], rows = isnan(s->by[0]) ? 2 * w - 1 : s->by[0],
           columns = isnan(s->by[1]) ? 1 : s->by[1],
           first = isnan(s->first) ? (h - 1) * rows + (w - 1) * columns : s->first;
    if (i < n_class || j < n_class)
        return (double)NAN;
    i -= n_class;
    j -= n_class;
    return first + rows * ((double)(i / sides[1]) - (double)(j / sides[1])) +
           columns * ((double)(i % sides[1]) - (double)(j % sides[1]));
}

static bool has_strides(const struct pe_model *m)
{
    const struct pe_strides *s = &m->transforms.strides;
    return !isnan(s->by[0]) || !isnan(s->by[1]) || !isnan(s->first);
}

/* Puts other indices, or the numbers of the table there, over those of the plan; beyond the table: infinity. */
static void restride(const struct pe_model *m, uint64_t row, uint64_t col0, size_t n, double *out)
{
    uint64_t sides[2], n_class, q_len = m->plan->seq.q->n;
    bool is_index = m->d->evidence.kind->id == PE_OF_BUCKETS;
    if (!has_strides(m) || !pe_window_of(m->plan, sides, &n_class))
        return;
    const struct pe_tensor *table = is_index ? NULL : &m->plan->weights[0].tensor;
    for (size_t j = 0; j < n; j++) {
        double index = index_of(&m->transforms.strides, sides, n_class, row % q_len, col0 + j);
        if (isnan(index) || isinf(out[j]))
            continue;
        out[j] = is_index ? index : (double)INFINITY;
        if (table && index >= 0 && index < (double)table->shape[0])
            pe_weights_read(&m->plan->weights[0], (uint64_t)index * table->shape[1] + row / q_len, 1, &out[j]);
    }
}

/* ---- All biases ---- */

static void fill_bias(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    struct line *line = m->state;
    if (!line) {
        pe_fill(m->plan, t, row * m->plan->seq.k->n + col0, n, out);
        restride(m, row, col0, n, out);
        return;
    }
    uint64_t q_len = m->plan->seq.q->n, head = row / q_len;
    size_t first = (size_t)(q_len - 1 - row % q_len + col0);
    for (size_t block = first / BLOCK; block * BLOCK < first + n; block++)
        know_block(m, line, head, block);
    memcpy(out, line->values + head * line->n + first, n * sizeof *out);
}

/* The head, from 1: a float32 power of its slope is off by so many roundings. */
static void phases_of_bias(const struct pe_model *m, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    uint64_t head = row / m->plan->seq.q->n % m->plan->outputs[0].shape[0];
    (void)t;
    (void)col0;
    for (size_t j = 0; j < n; j++)
        out[j] = (double)(head + 1);
}

/* Buckets are integers in the plan. */
static void fill_buckets(const struct pe_model *model, size_t t, uint64_t row, uint64_t col0, size_t n, double *out)
{
    enum { SOME = 256 };
    int32_t buckets[SOME];
    uint64_t first = row * pe_plan_output(model->plan, t)->row_len + col0;
    for (size_t at = 0; at < n; at += SOME) {
        size_t m = n - at < SOME ? n - at : SOME;
        pe_fill(model->plan, t, first + at, m, buckets);
        pe_convert(PE_F64, out + at, PE_I32, buckets, m);
    }
    restride(model, row, col0, n, out);
}

/* ---- Numbers elsewhere ---- */

/* Queries at 0 … 63 and at powers of two up to 2^40 see a key at 0. */
enum { NEAR_QUERIES = 64, FAR_QUERIES = 35, N_QUERIES = NEAR_QUERIES + FAR_QUERIES };

static struct pe_value list_of(const double *x, uint64_t n)
{
    return (struct pe_value){.kind = PE_ARRAY, .array = {.dtype = PE_F64, .rank = 1, .shape = {n}, .data = x}};
}

/* The model's configuration and the weights, without its sequence and the mask of its keys. */
static size_t copy_fields(const struct pe_model *m, struct pe_field *fields)
{
    const struct pe_value *config = pe_plan_config(m->plan);
    const struct pe_belief *b = &m->d->belief;
    size_t n = 0;
    for (size_t i = 0; i < config->object.n; i++)
        if (!pe_same(config->object.fields[i].name, "key_mask"))
            fields[n++] = config->object.fields[i];
    for (size_t i = 0; i < b->n_fields && n < PE_FIELDS_MAX; i++) {
        const char *name = b->fields[i].name;
        bool is_weight = !pe_param_find(m->plan->scheme->info.params, name);
        if (is_weight && !pe_field_find(config->object.fields, config->object.n, name) &&
            !pe_param_find(pe_sequence_params(), name))
            fields[n++] = b->fields[i];
    }
    return n;
}

/* The plan borrows the queries. */
static struct pe_plan *plan_beyond(const struct pe_model *m, double *queries)
{
    static const double key = 0;
    struct pe_field fields[PE_FIELDS_MAX + 2];
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    for (int i = 0; i < N_QUERIES; i++)
        queries[i] = i < NEAR_QUERIES ? i : ldexp(1, i - NEAR_QUERIES + 6);
    size_t n = copy_fields(m, fields);
    fields[n++] = (struct pe_field){"q_positions", list_of(queries, N_QUERIES)};
    fields[n++] = (struct pe_field){"k_positions", list_of(&key, 1)};
    const struct pe_request request = {.operation = PE_ENCODE,
                                       .fields = fields,
                                       .n_fields = n,
                                       .dtype = PE_F64,
                                       .outputs = m->d->evidence.kind->outputs,
                                       .n_outputs = 1};
    enum pe_status status = pe_plan_new(&request, &plan, &err);
    *m->no_memory |= status == PE_NO_MEMORY;
    return status ? NULL : plan;
}

/* As many heads as there is room for. */
static size_t fill_beyond(const struct pe_model *m, size_t n_max, double *out)
{
    double queries[N_QUERIES];
    struct pe_plan *plan = m->is_misfit ? NULL : plan_beyond(m, queries);
    if (!plan)
        return 0;
    const struct pe_output *output = pe_plan_output(plan, 0);
    uint64_t all = output->n_rows * output->row_len;
    size_t n = all < n_max ? (size_t)all : n_max, size = pe_dtype_size(output->dtype);
    pe_fill(plan, 0, 0, n, out);
    if (output->dtype != PE_F64) { /* integers need less room; widened from the end */
        for (size_t i = n; i-- > 0;)
            out[i] = pe_element(output->dtype, (char *)out + i * size, 0);
    }
    pe_plan_free(plan);
    return n;
}

const struct pe_evidence_kind pe_evidence_bias = {.id = PE_OF_BIAS,
                                                  .tensors = {"bias"},
                                                  .scheme = "alibi",
                                                  .outputs = {"bias"},
                                                  .read = read_bias,
                                                  .prepare = prepare_line,
                                                  .fill = fill_bias,
                                                  .fill_beyond = fill_beyond,
                                                  .phases = phases_of_bias};
static const struct pe_evidence_kind index_kind = {.id = PE_OF_BUCKETS,
                                                   .tensors = {"buckets"},
                                                   .scheme = "shaw",
                                                   .outputs = {"index"},
                                                   .fill = fill_buckets,
                                                   .fill_beyond = fill_beyond};

/* The same under the names of /encode. */
#define INDEX(name_, scheme_)                                                                                          \
    {                                                                                                                  \
        .id = PE_OF_BUCKETS, .tensors = {name_}, .scheme = scheme_, .outputs = {name_}, .read = read_buckets,          \
        .fill = fill_buckets, .fill_beyond = fill_beyond                                                               \
    }
const struct pe_evidence_kind pe_evidence_index = INDEX("index", "shaw"),
                              pe_evidence_index_h = INDEX("index_h", "decomposed"),
                              pe_evidence_index_w = INDEX("index_w", "decomposed");
#undef INDEX
const struct pe_evidence_kind pe_evidence_buckets = {.id = PE_OF_BUCKETS,
                                                     .tensors = {"buckets"},
                                                     .scheme = "t5",
                                                     .outputs = {"buckets"},
                                                     .read = read_buckets,
                                                     .fill = fill_buckets,
                                                     .fill_beyond = fill_beyond};
