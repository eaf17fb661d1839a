/* Sequences of a batch whose rows have positions of their own, and parts of long or packed sequences.
 *
 * Code that ports a model has its positions as the training or serving loop made them: a list for each row of the batch
 * (position_ids), a mask of padding from which they are counted (below), the ends of packed sequences (cu_seqlens
 * of flash attention), or the rank of a machine among those that share a sequence. All are the same two things to a
 * plan: lists of n positions for each row, or one list.
 *
 * Zigzag gives rank R of N the chunks R and 2N-1-R of 2N, so that under a causal mask all ranks have equal work (Liu et
 * al. 2023, Ring Attention, as Megatron's context parallelism balances it). */
#include "core/sequence/sequence.h"
#include "core/limits.h"

#include <stdlib.h>
#include <string.h>

const char *const pe_positions_layout_words[] = {[PE_BY_AXES] = "axes",
                                                 [PE_BY_BATCH] = "batch",
                                                 [PE_BY_BATCH_AXES] = "batch_axes",
                                                 [PE_BY_AXES_BATCH] = "axes_batch",
                                                 NULL};

struct pe_sequence pe_sequence_of_batch(const struct pe_sequence *seq, uint64_t batch)
{
    struct pe_sequence row = *seq;
    struct pe_positions *sides[2] = {row.q, row.k};
    for (size_t side = 0; side < 2; side++)
        for (unsigned a = 0; a < row.n_axes; a++) {
            struct pe_positions *p = &sides[side][a];
            if (p->n_batches > 1)
                p->list += batch % p->n_batches * p->n;
            p->n_batches = 0;
        }
    return row;
}

enum pe_status pe_sequence_wrong_batch(const struct pe_sequence_fields *f, uint64_t n_batches, const char *tensor,
                                       uint64_t batch, struct pe_failure *err)
{
    const char *pointer = f->padded.attention_mask.n ? "/attention_mask" : "/positions";
    return pe_fail(err, pointer, "%s has %llu lists, but %s has a batch of %llu", pointer + 1,
                   (unsigned long long)n_batches, tensor, (unsigned long long)batch);
}

static void share(struct pe_sequence *seq) { memcpy(seq->q, seq->k, sizeof seq->q); }

/* ---- Positions by batch ---- */

enum pe_status pe_sequence_wrong_levels(const struct pe_tensor *t, enum pe_positions_layout layout,
                                        struct pe_failure *err)
{
    static const char *const levels[] = {
        [PE_BY_BATCH_AXES] = "[batch][axes][n]", [PE_BY_AXES_BATCH] = "[axes][batch][n]"};
    if (layout == PE_BY_BATCH)
        return pe_fail(err, "/positions",
                       "positions_layout batch needs positions of two levels: a list for each row of the batch");
    return pe_fail(err, "/positions", "positions has %u dimensions; positions_layout %s needs three: %s", t->rank,
                   pe_positions_layout_words[layout], levels[layout]);
}

/* [batch][axes][n] as [axes][batch][n]. */
static enum pe_status turn(const struct pe_tensor *t, const double *from, double **owned, struct pe_failure *err)
{
    uint64_t n_batches = t->shape[0], n_axes = t->shape[1], n = t->shape[2];
    double *to = malloc(n_batches * n_axes * n * sizeof *to);
    if (!to)
        return pe_no_memory(err);
    for (uint64_t b = 0; b < n_batches; b++)
        for (uint64_t a = 0; a < n_axes; a++) {
            memcpy(to + (a * n_batches + b) * n, from + (b * n_axes + a) * n, n * sizeof *to);
            if (pe_is_cancelled_at(b * n_axes + a))
                break;
        }
    free(*owned);
    *owned = to;
    return PE_OK;
}

enum pe_status pe_sequence_init_batch(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                      struct pe_sequence_sizes sizes, struct pe_failure *err)
{
    enum pe_positions_layout layout = (enum pe_positions_layout)f->positions_layout;
    const struct pe_tensor *t = &f->positions.array;
    if (t->rank != (layout == PE_BY_BATCH ? 2 : 3))
        return pe_sequence_wrong_levels(t, layout, err);
    uint64_t n_axes = layout == PE_BY_BATCH ? 1 : t->shape[layout == PE_BY_BATCH_AXES ? 1 : 0];
    uint64_t n = t->shape[t->rank - 1], n_batches = f->positions.n / n / n_axes;
    if (n_axes > PE_AXES_MAX)
        return pe_fail(err, "/positions", "positions has %llu axes; allowed: at most %d", (unsigned long long)n_axes,
                       PE_AXES_MAX);
    const double *data;
    enum pe_status status = pe_sequence_doubles(&f->positions, &data, &seq->owned[0], err);
    if (!status && layout == PE_BY_BATCH_AXES) {
        status = turn(t, data, &seq->owned[0], err);
        data = seq->owned[0];
    }
    if (status)
        return status;
    seq->n_axes = (unsigned)n_axes;
    for (unsigned a = 0; a < n_axes; a++)
        seq->k[a] = (struct pe_positions){.n = n, .list = data + a * n_batches * n, .n_batches = n_batches};
    share(seq);
    sizes.q *= n_batches;
    sizes.k *= n_batches;
    return pe_sequence_check_sizes("/positions", n * n_batches, sizes, err);
}

/* ---- A mask of padding ---- */

static enum pe_status check_columns(const struct pe_sequence_fields *f, uint64_t n, struct pe_sequence_sizes sizes,
                                    struct pe_failure *err)
{
    uint64_t needed = sizes.k ? sizes.k : sizes.q;
    const char *tensor = !sizes.k ? "q" : sizes.k_tensor ? sizes.k_tensor : "k";
    if (pe_given(f->len) && (uint64_t)f->len != n)
        return pe_fail(err, "/len", "len is %lld, but attention_mask has %llu columns", (long long)f->len,
                       (unsigned long long)n);
    if (sizes.q > n) {
        needed = sizes.q;
        tensor = "q";
    }
    if (needed && needed != n)
        return pe_fail(err, "/attention_mask", "attention_mask has %llu columns, but %s has %llu positions",
                       (unsigned long long)n, tensor, (unsigned long long)needed);
    return PE_OK;
}

/* The last n_last positions of each row. */
static enum pe_status take_last(const struct pe_positions *all, uint64_t n_last, double **owned,
                                struct pe_positions *last, struct pe_failure *err)
{
    double *list = *owned = malloc(all->n_batches * n_last * sizeof *list);
    if (!list)
        return pe_no_memory(err);
    for (uint64_t b = 0; b < all->n_batches; b++)
        memcpy(list + b * n_last, all->list + (b + 1) * all->n - n_last, n_last * sizeof *list);
    *last = (struct pe_positions){.n = n_last, .list = list, .n_batches = all->n_batches};
    return PE_OK;
}

enum pe_status pe_sequence_init_mask(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                     struct pe_sequence_sizes sizes, struct pe_failure *err)
{
    struct pe_padding p;
    struct pe_positions reach; /* of all columns, to check the limit */
    enum pe_status status = pe_padding_read(&p, &f->padded, err);
    if (!status)
        status = check_columns(f, p.n, sizes, err);
    p.offset = pe_given(f->offset) ? (double)f->offset : 0;
    if (!status)
        status = pe_sequence_run(&reach, p.offset, p.n, "/offset", err);
    if (status)
        return status;
    double *list = seq->owned[0] = malloc(p.n_batches * p.n * sizeof *list);
    if (!list)
        return pe_no_memory(err);
    pe_padding_positions(&p, p.is_counted, false, list);
    seq->k[0] = (struct pe_positions){.n = p.n, .list = list, .n_batches = p.n_batches};
    share(seq);
    return sizes.q && sizes.q < p.n ? take_last(&seq->k[0], sizes.q, &seq->owned[1], &seq->q[0], err) : PE_OK;
}

/* ---- Packed sequences by their ends ---- */

static enum pe_status wrong_end(const struct pe_reals *ends, uint64_t i, struct pe_failure *err)
{
    double x = pe_real_at(ends, i), before = i ? pe_real_at(ends, i - 1) : 0;
    if (x != floor(x))
        return pe_fail(err, "/cu_seqlens", "cu_seqlens has %s at index %llu; allowed: integers", pe_shown(x).text,
                       (unsigned long long)i);
    if (i == 0)
        return pe_fail(err, "/cu_seqlens", "cu_seqlens begins with %s; it must begin with 0", pe_shown(x).text);
    return pe_fail(err, "/cu_seqlens", "cu_seqlens falls from %s to %s at index %llu; it may not fall",
                   pe_shown(before).text, pe_shown(x).text, (unsigned long long)i);
}

enum pe_status pe_sequence_read_cu_seqlens(struct pe_sequence *seq, struct pe_sequence_fields *f,
                                           struct pe_failure *err)
{
    const struct pe_reals *ends = &f->cu_seqlens;
    if (ends->array.rank != 1)
        return pe_fail(err, "/cu_seqlens", "cu_seqlens has %u dimensions; allowed: one list of numbers",
                       ends->array.rank);
    double *lens = seq->lens = malloc(ends->n * sizeof *lens), before = 0;
    uint64_t n = 0;
    if (!lens)
        return pe_no_memory(err);
    for (uint64_t i = 0; i < ends->n; i++) {
        double x = pe_real_at(ends, i);
        if (x != floor(x) || x < before || (i == 0 && x != 0))
            return wrong_end(ends, i, err);
        if (x > before) /* empty sequences drop out */
            lens[n++] = x - before;
        before = x;
        if (pe_is_cancelled_at(i))
            return pe_cancelled(err);
    }
    if (n == 0)
        return pe_fail(err, "/cu_seqlens", "cu_seqlens has no sequence: its last number, %s, is the number of tokens",
                       pe_shown(before).text);
    f->lens = (struct pe_reals){{PE_F64, 1, {n}, lens}, n};
    return PE_OK;
}

/* ---- A shard ---- */

static enum pe_status check_shard(const struct pe_shard_fields *s, uint64_t n, struct pe_failure *err)
{
    if (!pe_given(s->rank))
        return pe_fail(err, "/shard/rank", "shard needs rank, from 0 on, and of, the number of ranks");
    if (!pe_given(s->of))
        return pe_fail(err, "/shard/of", "shard needs of, the number of ranks");
    if (s->rank >= s->of)
        return pe_fail(err, "/shard/rank", "rank is %lld; allowed: below of, %lld", (long long)s->rank,
                       (long long)s->of);
    if (n == 0)
        return pe_fail(err, "/len", "shard needs len, the number of rows of this rank");
    if (s->split != PE_SPLIT_CONTIGUOUS && n % 2)
        return pe_fail(err, "/len",
                       "a zigzag shard has two chunks of one length, so its rows must be even in number; found: %llu",
                       (unsigned long long)n);
    return PE_OK;
}

/* The last rank's two chunks follow each other. */
static bool is_run(const struct pe_shard_fields *s) { return s->split == PE_SPLIT_CONTIGUOUS || s->rank + 1 == s->of; }

static double first_of(const struct pe_shard_fields *s, uint64_t n)
{
    double chunk = (double)(s->split == PE_SPLIT_CONTIGUOUS ? n : n / 2);
    return (double)s->rank * chunk;
}

enum pe_status pe_sequence_init_shard(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                      struct pe_sequence_sizes sizes, struct pe_failure *err)
{
    const struct pe_shard_fields *s = &f->shard;
    uint64_t n = pe_given(f->len) ? (uint64_t)f->len : sizes.k ? sizes.k : sizes.q;
    double offset = pe_given(f->offset) ? (double)f->offset : 0;
    struct pe_positions whole; /* to check the limit */
    enum pe_status status = check_shard(s, n, err);
    if (!status)
        status = pe_sequence_check_sizes(pe_given(f->len) ? "/len" : "/shard", n, sizes, err);
    if (!status && (double)n * (double)s->of > PE_POSITION_MAX)
        return pe_fail(err, "/shard/of", "the shards have more than 2^40 (1099511627776) positions");
    if (!status)
        status = pe_sequence_run(&whole, offset, n * (uint64_t)s->of, "/offset", err);
    if (!status && !is_run(s) && n > PE_LISTED_POSITIONS_MAX) {
        pe_fail(err, "/len", "a zigzag shard has %llu positions; allowed: at most %d", (unsigned long long)n,
                PE_LISTED_POSITIONS_MAX);
        return err->status = PE_TOO_LARGE;
    }
    seq->k[0] = (struct pe_positions){.n = n, .start = offset + first_of(s, n)};
    seq->is_counted = !is_run(s);
    share(seq);
    return status;
}

enum pe_status pe_sequence_lay_out_shard(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                         struct pe_failure *err)
{
    const struct pe_shard_fields *s = &f->shard;
    uint64_t n = seq->k->n, half = n / 2;
    double first = seq->k->start, second = first + (double)(2 * (s->of - s->rank) - 1) * (double)half;
    double *list = seq->owned[0] = malloc(n * sizeof *list);
    if (!list)
        return pe_no_memory(err);
    for (uint64_t i = 0; i < n; i++)
        list[i] = i < half ? first + (double)i : second + (double)(i - half);
    seq->k[0] = (struct pe_positions){.n = n, .list = list};
    share(seq);
    return PE_OK;
}

/* ---- Padded batches ---- */

/* Positions of a padded batch. Transformers counts the tokens: position 0 is the first that is no padding, on whichever
 * side the padding is, and padding itself is at one position that does not matter (its code has 1). Code that sees no
 * padding counts the columns. */

const char *const pe_padding_words[] = {[PE_PADDING_SKIPPED] = "skipped", [PE_PADDING_COUNTED] = "counted", NULL};

static const struct pe_param rows[] = {PE_PADDING_PARAMS, PE_P_END};

const struct pe_param *pe_padding_params(void) { return rows; }

enum pe_status pe_padding_read(struct pe_padding *p, const struct pe_padding_fields *fields, struct pe_failure *err)
{
    const struct pe_tensor *t = &fields->attention_mask.array;
    *p = (struct pe_padding){.mask = &fields->attention_mask,
                             .n_batches = t->rank == 2 ? t->shape[0] : 1,
                             .n = t->rank ? t->shape[t->rank - 1] : 0,
                             .is_counted = fields->padding == PE_PADDING_COUNTED,
                             .pad_position = pe_given(fields->pad_position) ? (double)fields->pad_position : 1};
    if (t->rank < 1 || t->rank > 2)
        return pe_fail(err, "/attention_mask", "attention_mask has %u axes; needed: [batch][n], or [n]", t->rank);
    if (p->n_batches * p->n > PE_LISTED_POSITIONS_MAX) {
        pe_fail(err, "/attention_mask", "attention_mask has %llu columns in all; allowed: at most %d",
                (unsigned long long)(p->n_batches * p->n), PE_LISTED_POSITIONS_MAX);
        return err->status = PE_TOO_LARGE;
    }
    bool has_token = false;
    for (uint64_t i = 0; i < p->n_batches * p->n; i++) {
        double x = pe_real_at(p->mask, i);
        has_token |= x == 1;
        if (x != 0 && x != 1)
            return pe_fail(err, "/attention_mask", "attention_mask has %.10g; allowed: 0 and 1", x);
    }
    return has_token ? PE_OK : pe_fail(err, "/attention_mask", "attention_mask has no 1: every column is padding");
}

bool pe_padding_is_token(const struct pe_padding *p, uint64_t i) { return pe_real_at(p->mask, i) == 1; }

void pe_padding_positions(const struct pe_padding *p, bool is_counted, bool is_mirrored, double *out)
{
    for (uint64_t b = 0; b < p->n_batches; b++) {
        double next = p->offset;
        for (uint64_t i = 0; i < p->n; i++) {
            uint64_t at = b * p->n + (is_mirrored ? p->n - 1 - i : i);
            bool is_token = pe_padding_is_token(p, at);
            out[b * p->n + i] = is_counted ? p->offset + (double)i : is_token ? next : p->pad_position;
            next += is_token;
        }
    }
}
