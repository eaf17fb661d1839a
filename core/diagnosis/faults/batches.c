/* Faults of positions of batches, and of parts of a sequence: padding, rows of a batch, shards.
 *
 * A row shows its position (positions.c), so each rule here needs a few rows only, as the first ones of both halves of
 * a shard. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Evidence whose rows may be those of a batch. */
#define OF_ROWS (PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ENCODING))

/* ---- A padded batch ---- */

/* Has some token another position than the belief gives it? positions: of all columns. */
static bool moves_tokens(const struct pe_belief *b, const double *positions)
{
    const double *believed = b->padded[b->padding.is_counted];
    for (uint64_t i = 0; i < b->padding.n_batches * b->padding.n; i++)
        if (pe_padding_is_token(&b->padding, i) && positions[i] != believed[i])
            return true;
    return false;
}

/* The positions by the other rule. With padding on the right, tokens have the same. */
static bool set_rule(struct pe_diagnosis *d, bool is_counted, struct pe_edit *edit)
{
    const struct pe_belief *b = &d->belief;
    if (!b->has_mask || b->padding.is_counted == is_counted || !moves_tokens(b, b->padded[is_counted]))
        return false;
    pe_edit_set_word(edit, "padding", pe_padding_words[is_counted ? PE_PADDING_COUNTED : PE_PADDING_SKIPPED]);
    return true;
}

static bool count_padding(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    return set_rule(d, true, edit);
}

/* The mask is stated, and its meaning is another. */
static int surprise_of_mask(const struct pe_diagnosis *d, size_t i)
{
    enum { OF_A_STATED_FIELD = 2 };
    (void)d, (void)i;
    return -OF_A_STATED_FIELD;
}

const struct pe_fault pe_fault_padding_counted = {
    FAULT_TEXT("padding_counted", "positions", POSITIONS, 1, "padding counted",
               "Positions count the columns of a padded batch: padding moves the tokens behind it.",
               "Positions count the columns, padding included; in the configuration the first token of each row is at "
               "the beginning. position_ids must follow attention_mask."),

    .evidence = OF_ROWS | PE_EVIDENCE_BIT(MAPS), .n_alternatives = 1, .apply = count_padding,
    .surprise_of = surprise_of_mask};

static bool skip_padding(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    (void)i;
    return set_rule(d, false, edit);
}

const struct pe_fault pe_fault_padding_skipped = {
    FAULT_TEXT("padding_skipped", "positions", POSITIONS, 2, "padding skipped",
               "Positions skip padding: the first token of each row is at the beginning.",
               "Positions skip padding; in the configuration they count every column."),

    .evidence = OF_ROWS | PE_EVIDENCE_BIT(MAPS), .n_alternatives = 1, .apply = skip_padding,
    .surprise_of = surprise_of_mask};

/* As if padding were on the other side: the mask of a tokenizer that pads there. */
static bool mirror_padding(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    const struct pe_belief *b = &d->belief;
    (void)i;
    if (!b->has_mask || b->padding.is_counted)
        return false;
    double *x = pe_edit_positions_by_row(d, edit, b->padding.n_batches, b->padding.n);
    if (!x)
        return false;
    pe_padding_positions(&b->padding, false, true, x);
    return moves_tokens(b, x);
}

const struct pe_fault pe_fault_padding_side = {
    FAULT_TEXT("padding_side", "positions", POSITIONS, 3, "padding on the other side",
               "Positions are those of a batch that is padded on the other side.",
               "The rows have the positions of a batch that is padded on the other side."),

    .evidence = OF_ROWS, .n_alternatives = 1, .apply = mirror_padding, .surprise_of = surprise_of_mask};

/* ---- Rows of a batch ---- */

/* Moves the positions [n] of one row of the batch to where its phases are, `by` so much. Padding is on the left, so the
 * right half is measured. */
static bool fit_batch_row(const struct pe_fit *f, size_t first, size_t n, double *x, double *by)
{
    size_t from = n > 1 ? first + n / 2 : first, count = first + n - from;
    struct pe_solved s = pe_fit_shift(f, x, from, count);
    *by = pe_fit_tidy(s) - (count == 1 ? x[from] : 0);
    for (size_t i = first; i < first + n; i++)
        x[i] += *by;
    return s.score >= PE_FIT_SCORE_MIN && fabs(*by) <= PE_POSITION_MAX;
}

/* Columns before position 0 are padding, all of it at one position, which the first of them shows. */
static void fit_padding(const struct pe_fit *f, double *x, size_t n)
{
    size_t first = 0;
    double pad = 0;
    while (first < n && x[first] >= 0)
        first++;
    if (first == n || !pe_fit_row(f, first, &pad) || pad == x[first])
        return;
    for (size_t i = first; i < n; i++)
        x[i] = x[i] < 0 ? pad : x[i];
}

/* How many rows the batch has, of how many positions each; 0: it is none. */
static uint64_t count_rows(const struct pe_diagnosis *d, const struct pe_edit *edit, uint64_t *n)
{
    struct pe_operand axes;
    const struct pe_evidence *e = &d->evidence;
    const struct pe_value *layout = pe_edit_value(d, edit, "tensor_layout");
    bool is_rotated = e->kind->id == PE_OF_ROTATED;
    if (is_rotated && !pe_evidence_axes(e, layout ? layout->string : NULL, &axes))
        return 0;
    const struct pe_tensor *t = !is_rotated && d->belief.positions ? &d->belief.positions->array : NULL;
    *n = is_rotated ? axes.n : t ? t->shape[t->rank - 1] : pe_evidence_length(e);
    return is_rotated               ? axes.n_batches
           : t                      ? t->shape[t->rank - 2]
           : e->tensors[0].rank > 2 ? e->tensors[0].shape[0]
                                    : 0;
}

static bool fit_by_row(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    double by, first = 0;
    bool differ = false;
    uint64_t n, n_batches = count_rows(d, edit, &n);
    (void)i;
    if (n_batches < 2)
        return false;
    double *x = pe_edit_positions_by_row(d, edit, n_batches, n);
    struct pe_fit f = {.n = 0};
    bool done = x && pe_edit_model(d, edit, &f.model) && (f.reading = pe_read_waves(d, f.model));
    for (uint64_t b = 0; done && b < n_batches; b++) {
        done = fit_batch_row(&f, (size_t)(b * n), (size_t)n, x, &by) && !pe_is_cancelled();
        first = b ? first : by;
        differ |= by != first;
    }
    if (done)
        fit_padding(&f, x, (size_t)(n_batches * n));
    pe_fit_close(&f);
    return done && differ;
}

const struct pe_fault pe_fault_offsets_by_row = {
    FAULT_TEXT(
        "offsets_by_row", "positions", POSITIONS, 2, "positions by batch row",
        "Each row of the batch begins at a position of its own, as with left padding or caches of several lengths.",
        "The rows of the batch begin at different positions; in the configuration they have the same."),

    .evidence = PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(TABLES),
    .n_alternatives = 1,
    .apply = fit_by_row,
    .n_fits = 1,
    .fit_rank = 1};

/* ---- Levels of positions ---- */

/* [axes][batch][n] with the first two exchanged: [batch][axes][n] read as the other, where both are equally many. */
static bool exchange_levels(const struct pe_value *v, struct pe_edit *edit)
{
    const struct pe_tensor *t = &v->array;
    uint64_t m = t->shape[0], n = t->shape[2];
    double *x = t->shape[1] == m && m > 1 ? pe_edit_room(edit, m * m * n * sizeof *x) : NULL;
    struct pe_tensor turned = {PE_F64, 3, {m, m, n}, x};
    for (uint64_t i = 0; x && i < m * m * n; i++) {
        uint64_t a = i / n / m, b = i / n % m;
        x[i] = pe_element(t->dtype, t->data, (b * m + a) * n + i % n);
    }
    if (x)
        pe_edit_set(edit, "positions", (struct pe_value){.kind = PE_ARRAY, .array = turned});
    return x;
}

static bool other_levels(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    const struct pe_value *v = pe_edit_value(d, NULL, "positions");
    bool is_by_batch = pe_edit_has(d, NULL, "positions_layout");
    (void)i;
    if (!v || v->kind != PE_ARRAY || v->array.rank < 2)
        return false;
    if (is_by_batch && v->array.rank == 3)
        return exchange_levels(v, edit);
    if (is_by_batch)
        pe_edit_set_word(edit, "positions_layout", "axes");
    else
        pe_edit_set_word(edit, "positions_layout", "batch");
    return true;
}

const struct pe_fault pe_fault_positions_layout_other = {
    FAULT_TEXT("positions_layout_other", "positions", POSITIONS, 3, "other levels of positions",
               "The levels of positions are read as others: rows of the batch as axes, or the reverse.",
               "The levels of positions are read as others: rows of the batch as axes, or axes as rows of the batch."),

    .evidence = PE_EVIDENCE_BIT(ROTATED), .pointer = "positions_layout", .n_alternatives = 1, .apply = other_levels};

/* ---- Shards ---- */

static bool set_shard(const struct pe_diagnosis *d, struct pe_edit *edit, double rank, double of, const char *split)
{
    enum { RANKS_MAX = 4096, N_MEMBERS = 3 };
    if (!(rank >= 0 && rank == floor(rank) && of == floor(of) && of > rank && of <= RANKS_MAX))
        return false;
    int64_t n = (int64_t)d->belief.n, offset = pe_edit_integer(d, NULL, "offset", 0);
    struct pe_field *members = pe_edit_room(edit, N_MEMBERS * sizeof *members);
    if (!members)
        return false;
    members[0] = (struct pe_field){"rank", {.kind = PE_INTEGER, .integer = (int64_t)rank}};
    members[1] = (struct pe_field){"of", {.kind = PE_INTEGER, .integer = (int64_t)of}};
    members[2] = (struct pe_field){"split", {.kind = PE_STRING, .string = split}};
    pe_edit_remove_sequence(d, edit);
    pe_edit_set(edit, "shard", (struct pe_value){.kind = PE_OBJECT, .object = {members, N_MEMBERS}});
    pe_edit_set_integer(edit, "len", n);
    if (offset)
        pe_edit_set_integer(edit, "offset", offset);
    return true;
}

/* Rank and number of ranks from the first rows of both halves: R·n/2 and (2N - 1 - R)·n/2; of a whole chunk, R·n. */
static bool fit_shard(struct pe_diagnosis *d, bool is_zigzag, struct pe_edit *edit)
{
    struct pe_fit f;
    double first = -1, second = -1, n = (double)d->belief.n, half = n / 2;
    bool is_open = pe_fit_open(d, edit, &f) && f.n > 1 && f.n == d->belief.n && half == floor(half);
    bool is_read = is_open && pe_fit_row(&f, 0, &first) && pe_fit_row(&f, f.n / 2, &second);
    double offset = is_open ? f.position[0] : 0;
    pe_fit_close(&f);
    bool is_consecutive = second - first == half; /* the last rank's too: beside another mistake it is an offset */
    if (!is_read || (is_consecutive && edit->n_fields))
        return false;
    double rank = (first - offset) / (is_zigzag ? half : n), of = rank + 1;
    if (is_zigzag)
        of = ((second - offset) / half + 1 + rank) / 2;
    else if (rank == 0 || !is_consecutive)
        return false;
    return set_shard(d, edit, rank, of, is_zigzag ? "zigzag" : "contiguous");
}

static bool shard(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    bool has_shard = pe_edit_has(d, NULL, "shard");
    if (i == 0)
        return has_shard && pe_edit_run(d, edit, (double)pe_edit_integer(d, NULL, "offset", 0));
    return pe_belief_is_run(d) && fit_shard(d, i == 1, edit);
}

static const char *const of_shards[] = {
    "The rows have consecutive positions from the beginning; in the configuration they are the shard of one rank.",
    "The rows are those of one rank of context parallelism, in two chunks; in the configuration they are consecutive.",
    "The rows are those of one rank of context parallelism; in the configuration they are at the beginning."};

const struct pe_fault pe_fault_positions_sharded = {
    FAULT_TEXTS("positions_sharded", "positions", POSITIONS, 3, "rows of a shard",
                "The rows are the part of a sequence that one rank has, or they are not, where they should be.",
                of_shards),

    .evidence = PE_OF_POSITIONS,
    .n_alternatives = 3,
    .apply = shard,
    .n_fits = 2,
    .fit_rank = 1};
