/* Computes positions on one or several axes from the fields len, offset, positions, grid, ….
 *
 * A sequence is described once, in a form from which any position is computed without those before it
 * (core/waves/waves.h): a run is two numbers, a grid an axis size and repetitions, and only a true list is stored.
 * So 2^40 positions need no memory, and the fast paths (runs, Toeplitz maps, repeated rows) are recognised by form and
 * not by comparing numbers. A list of consecutive integers is recognised as the run that it is; 0.1, 1.1, … is not one,
 * because 0.1 + 1 need not be the double 1.1.
 *
 * Queries and keys have positions of their own; with a key cache the last query is at the last key, unless q_offset
 * states otherwise. */
#include "core/sequence/sequence.h"
#include "core/numeric/numeric.h"
#include "core/limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Runs ---- */

enum pe_status pe_sequence_run(struct pe_positions *p, double first, uint64_t n, const char *pointer,
                               struct pe_failure *err)
{
    double last = first + (double)(n - 1);
    if (first < -PE_POSITION_MAX || last > PE_POSITION_MAX)
        return pe_fail(err, pointer,
                       "the positions run from %.0f to %.0f; allowed: magnitudes up to 2^40 (1099511627776)", first,
                       last);
    *p = (struct pe_positions){.n = n, .start = first};
    return PE_OK;
}

static enum pe_status run(struct pe_positions *p, int64_t start, uint64_t n, const char *pointer,
                          struct pe_failure *err)
{
    return pe_sequence_run(p, (double)start, n, pointer, err);
}

/* The numbers of queries and keys, from the tensors, from len, or from q_len and k_len. */
static enum pe_status run_lengths(const struct pe_sequence_fields *f, struct pe_sequence_sizes sizes, uint64_t *q_len,
                                  uint64_t *k_len, struct pe_failure *err)
{
    int64_t q = pe_given(f->len) ? f->len : f->q_len, k = pe_given(f->len) ? f->len : f->k_len;
    *q_len = pe_given(q) ? (uint64_t)q : sizes.q ? sizes.q : pe_given(k) ? (uint64_t)k : sizes.k;
    *k_len = pe_given(k) ? (uint64_t)k : sizes.k ? sizes.k : *q_len;
    enum pe_status status =
        pe_sequence_check_size(pe_given(f->len) ? "/len" : "/q_len", *q_len, sizes.q, "q", sizes.prefix, err);
    return status ? status
                  : pe_sequence_check_size(pe_given(f->len) ? "/len" : "/k_len", *k_len, sizes.k,
                                           sizes.k_tensor ? sizes.k_tensor : "k", sizes.prefix, err);
}

/* ---- Lists ---- */

/* A list of consecutive integers is a run, and runs are the fast case. (Not with a fraction: 0.1 + 1 need not be the
 * double 1.1.) */
static void recognise_run(struct pe_positions *p)
{
    double first = p->list[0];
    if (first != floor(first))
        return;
    for (uint64_t i = 1; i < p->n; i++)
        if (p->list[i] != first + (double)i || pe_is_cancelled_at(i))
            return;
    p->start = first;
    p->list = NULL;
}

/* [n], or [axes][n]. */
static enum pe_status check_list(const struct pe_reals *list, const char *name, struct pe_failure *err)
{
    char pointer[32] = "/";
    strncat(pointer, name, sizeof pointer - 2);
    if (list->array.rank > 2)
        return pe_fail(err, pointer, "%s has %u dimensions; allowed: [n], or [axes][n]", name, list->array.rank);
    if (list->array.rank == 2 && list->array.shape[0] > PE_AXES_MAX)
        return pe_fail(err, pointer, "%s has %llu axes of %llu positions; allowed: [axes][n] with at most %d axes",
                       name, (unsigned long long)list->array.shape[0], (unsigned long long)list->array.shape[1],
                       PE_AXES_MAX);
    return PE_OK;
}

enum pe_status pe_sequence_doubles(const struct pe_reals *from, const double **data, double **owned,
                                   struct pe_failure *err)
{
    *data = from->array.data;
    if (from->array.dtype == PE_F64)
        return PE_OK;
    *owned = malloc(from->n * sizeof **owned);
    if (!*owned)
        return pe_no_memory(err);
    pe_convert(PE_F64, *owned, from->array.dtype, from->array.data, from->n);
    *data = *owned;
    return PE_OK;
}

/* Fills p[axis] for each axis of the list; *owned holds the doubles if they had to be converted. */
static enum pe_status read_list(struct pe_positions *p, unsigned *n_axes, const struct pe_reals *from, const char *name,
                                double **owned, struct pe_failure *err)
{
    const double *data;
    enum pe_status status = check_list(from, name, err);
    if (!status)
        status = pe_sequence_doubles(from, &data, owned, err);
    if (status)
        return status;
    *n_axes = from->array.rank == 2 ? (unsigned)from->array.shape[0] : 1;
    uint64_t n = from->n / *n_axes;
    for (unsigned a = 0; a < *n_axes; a++) {
        p[a] = (struct pe_positions){.n = n, .list = data + a * n};
        recognise_run(&p[a]);
    }
    return PE_OK;
}

static void share(struct pe_sequence *seq) { memcpy(seq->q, seq->k, sizeof seq->q); }

/* One list for queries and keys. */
static enum pe_status init_positions(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                     struct pe_sequence_sizes sizes, struct pe_failure *err)
{
    enum pe_status status = read_list(seq->k, &seq->n_axes, &f->positions, "positions", &seq->owned[0], err);
    share(seq);
    return status ? status : pe_sequence_check_sizes("/positions", seq->k->n, sizes, err);
}

/* Two lists; one alone counts for both. */
static enum pe_status init_two_lists(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                     struct pe_sequence_sizes sizes, struct pe_failure *err)
{
    const struct pe_reals *q = f->q_positions.n ? &f->q_positions : &f->k_positions;
    const struct pe_reals *k = f->k_positions.n ? &f->k_positions : &f->q_positions;
    unsigned q_axes = 1;
    enum pe_status status = read_list(seq->q, &q_axes, q, "q_positions", &seq->owned[0], err);
    if (!status && q == k)
        memcpy(seq->k, seq->q, sizeof seq->k);
    else if (!status)
        status = read_list(seq->k, &seq->n_axes, k, "k_positions", &seq->owned[1], err);
    if (!status && q == k)
        seq->n_axes = q_axes;
    if (!status && q_axes != seq->n_axes)
        return pe_fail(err, "/q_positions", "q_positions has %u axes, k_positions %u; give the same", q_axes,
                       seq->n_axes);
    if (!status)
        status = pe_sequence_check_size("/q_positions", seq->q->n, sizes.q, "q", sizes.prefix, err);
    return status ? status
                  : pe_sequence_check_size("/k_positions", seq->k->n, sizes.k, sizes.k_tensor ? sizes.k_tensor : "k",
                                           sizes.prefix, err);
}

/* ---- Packed sequences, segments, tokens ---- */

/* The lengths, of the field that gives them. */
static enum pe_status count_lens(const struct pe_reals *lens, const char *pointer, uint64_t *n, struct pe_failure *err)
{
    double sum = 0;
    for (uint64_t i = 0; i < lens->n; i++) {
        double x = pe_real_at(lens, i);
        if (pe_is_cancelled_at(i))
            return pe_cancelled(err);
        if (x != floor(x))
            return pe_fail(err, "/lens", "lens has %s at index %llu; allowed: integers of at least 1", pe_shown(x).text,
                           (unsigned long long)i);
        sum += x;
    }
    if (sum > PE_LISTED_POSITIONS_MAX) {
        pe_fail(err, pointer, "%s add up to %.0f; allowed: at most %d", pointer + 1, sum, PE_LISTED_POSITIONS_MAX);
        return err->status = PE_TOO_LARGE;
    }
    *n = (uint64_t)sum;
    return PE_OK;
}

static enum pe_status init_lens(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                struct pe_sequence_sizes sizes, struct pe_failure *err)
{
    uint64_t n = 0;
    double offset = pe_given(f->offset) ? (double)f->offset : 0;
    const char *pointer = f->cu_seqlens.n ? "/cu_seqlens" : "/lens";
    enum pe_status status = count_lens(&f->lens, pointer, &n, err);
    if (!status)
        status = pe_sequence_check_sizes(pointer, n, sizes, err);
    struct pe_positions reach; /* positions of one sequence, to check the limit */
    for (uint64_t i = 0; !status && i < f->lens.n && !pe_is_cancelled_at(i); i++)
        status = run(&reach, (int64_t)offset, (uint64_t)pe_real_at(&f->lens, i), "/offset", err);
    seq->k[0] = (struct pe_positions){.n = n, .start = offset};
    seq->is_counted = true;
    share(seq);
    return status;
}

/* A number that only some styles use: set to its default under those, refused under the others. */
static enum pe_status set_rule(double *field, double fallback, unsigned styles, int style, const char *name,
                               struct pe_failure *err)
{
    char pointer[64] = "/";
    strncat(pointer, name, sizeof pointer - 2);
    if (styles & 1U << style) {
        *field = isnan(*field) ? fallback : *field;
        return PE_OK;
    }
    return isnan(*field)
               ? PE_OK
               : pe_fail(err, pointer, "%s is not used by position_style %s", name, pe_position_styles[style]);
}

#define STYLE(name) (1U << PE_##name)

static enum pe_status set_segment_rules(struct pe_sequence_fields *f, struct pe_segment_rules *rules,
                                        struct pe_failure *err)
{
    int style = f->position_style == PE_UNSET_WORD ? PE_QWEN2_5_VL : f->position_style;
    bool is_image = pe_position_style_is_image((enum pe_position_style)style);
    f->position_style = style;
    if (is_image && (pe_given(f->spatial_merge_size) || f->id_rules != PE_UNSET_WORD))
        return pe_fail(err, f->id_rules != PE_UNSET_WORD ? "/id_rules" : "/spatial_merge_size",
                       "%s is not used by position_style %s",
                       f->id_rules != PE_UNSET_WORD ? "id_rules" : "spatial_merge_size", pe_position_styles[style]);
    if (!pe_given(f->spatial_merge_size) && !is_image)
        f->spatial_merge_size = 2;
    if (set_rule(&f->tokens_per_second, 2, STYLE(QWEN2_5_VL) | STYLE(QWEN2_5_VL_INT_SECONDS), style,
                 "tokens_per_second", err) ||
        set_rule(&f->position_id_per_seconds, 25, STYLE(QWEN2_5_OMNI) | STYLE(QWEN3_OMNI), style,
                 "position_id_per_seconds", err) ||
        set_rule(&f->seconds_per_chunk, 2, STYLE(QWEN2_5_OMNI), style, "seconds_per_chunk", err) ||
        set_rule(&f->temporal_scale, 2, STYLE(VIDEOROPE), style, "temporal_scale", err))
        return err->status;
    *rules = (struct pe_segment_rules){.style = (enum pe_position_style)style,
                                       .spatial_merge_size = is_image ? 1 : f->spatial_merge_size,
                                       .id_rules = f->id_rules == PE_IDS_TRANSFORMERS_5 ? PE_IDS_TRANSFORMERS_5
                                                                                        : PE_IDS_PUBLISHED,
                                       .tokens_per_second = f->tokens_per_second,
                                       .position_id_per_seconds = f->position_id_per_seconds,
                                       .seconds_per_chunk = f->seconds_per_chunk,
                                       .temporal_scale = f->temporal_scale};
    return PE_OK;
}

static enum pe_status init_segments(struct pe_sequence *seq, struct pe_sequence_fields *f,
                                    struct pe_sequence_sizes sizes, struct pe_failure *err)
{
    struct pe_segment_rules rules;
    if (set_segment_rules(f, &rules, err))
        return err->status;
    enum pe_status status = pe_segments_read(&seq->blocks, f->segments, &rules, err);
    if (!status)
        status = pe_sequence_check_sizes("/segments", seq->blocks.n_tokens, sizes, err);
    seq->has_segments = seq->is_counted = true;
    seq->n_axes = pe_position_style_axes(rules.style);
    for (unsigned a = 0; a < seq->n_axes; a++)
        seq->k[a] = (struct pe_positions){.n = seq->blocks.n_tokens};
    share(seq);
    return status;
}

static enum pe_status lay_out_segments(struct pe_sequence *seq, struct pe_failure *err)
{
    enum pe_status status = pe_segments_lay_out(&seq->segments, &seq->blocks, err);
    for (unsigned a = 0; !status && a < seq->segments.n_axes; a++) {
        seq->k[a] = (struct pe_positions){.n = seq->segments.n, .list = seq->segments.ids[a]};
        recognise_run(&seq->k[a]);
    }
    share(seq);
    return status;
}

static enum pe_status init_tokens(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                  struct pe_sequence_sizes sizes, struct pe_failure *err)
{
    const struct pe_value *t = f->tokens;
    if (t->kind != PE_LIST || t->list.n == 0)
        return pe_fail(err, "/tokens", "tokens must be a list of at least one word");
    for (size_t i = 0; i < t->list.n; i++)
        if (t->list.items[i].kind != PE_STRING)
            return pe_fail(err, "/tokens", "tokens has something else than a word at index %zu", i);
    seq->k[0] = (struct pe_positions){.n = t->list.n};
    share(seq);
    return pe_sequence_check_sizes("/tokens", t->list.n, sizes, err);
}

/* ---- The whole ---- */

static enum pe_status check_grid(const struct pe_sequence *seq, const char *pointer, enum pe_status status,
                                 struct pe_sequence_sizes sizes, struct pe_failure *err)
{
    return status ? status : pe_sequence_check_sizes(pointer, seq->k->n, sizes, err);
}

enum pe_status pe_sequence_init(struct pe_sequence *seq, struct pe_sequence_fields *fields, enum pe_sequence_kind kind,
                                struct pe_sequence_sizes sizes, struct pe_failure *err)
{
    *seq = (struct pe_sequence){.n_axes = 1};
    enum pe_status status = pe_sequence_check(fields, kind, sizes.q || sizes.k, err);
    if (status)
        return status;
    if (fields->positions.n && fields->positions_layout > PE_BY_AXES)
        return pe_sequence_init_batch(seq, fields, sizes, err);
    if (fields->positions.n)
        return init_positions(seq, fields, sizes, err);
    if (fields->padded.attention_mask.n)
        return pe_sequence_init_mask(seq, fields, sizes, err);
    if (fields->shard.is_given)
        return pe_sequence_init_shard(seq, fields, sizes, err);
    if (fields->grid.n)
        return check_grid(seq, "/grid", pe_sequence_init_grid(seq, fields, err), sizes, err);
    if (fields->grid_coords)
        return check_grid(seq, "/grid_coords", pe_sequence_init_grid_coords(seq, fields, err), sizes, err);
    if (fields->cu_seqlens.n && pe_sequence_read_cu_seqlens(seq, fields, err))
        return err->status;
    if (fields->lens.n)
        return init_lens(seq, fields, sizes, err);
    if (fields->segments)
        return init_segments(seq, fields, sizes, err);
    if (fields->tokens)
        return init_tokens(seq, fields, sizes, err);
    if (fields->q_positions.n || fields->k_positions.n)
        return init_two_lists(seq, fields, sizes, err);
    /* Key j is at offset + j, query i at offset + q_offset + i. */
    uint64_t q_len, k_len;
    status = run_lengths(fields, sizes, &q_len, &k_len, err);
    if (status)
        return status;
    int64_t offset = pe_given(fields->offset) ? fields->offset : 0;
    int64_t q_offset = pe_given(fields->q_offset) ? fields->q_offset : (int64_t)k_len - (int64_t)q_len;
    status = run(&seq->k[0], offset, k_len, "/offset", err);
    return status
               ? status
               : run(&seq->q[0], offset + q_offset, q_len, pe_given(fields->q_offset) ? "/q_offset" : "/offset", err);
}

enum pe_status pe_sequence_lay_out(struct pe_sequence *seq, const struct pe_sequence_fields *fields,
                                   struct pe_failure *err)
{
    if (!seq->is_counted)
        return PE_OK;
    seq->is_counted = false;
    if (fields->shard.is_given)
        return pe_sequence_lay_out_shard(seq, fields, err);
    if (seq->has_segments)
        return lay_out_segments(seq, err);
    uint64_t n = seq->k->n, at = 0;
    double offset = seq->k->start, *list = seq->owned[0] = malloc(n * sizeof *list);
    if (!list)
        return pe_no_memory(err);
    seq->piece = fields->lens.n > 1 ? malloc(n * sizeof *seq->piece) : NULL;
    if (fields->lens.n > 1 && !seq->piece)
        return pe_no_memory(err);
    for (uint64_t i = 0; i < fields->lens.n; i++)
        for (uint64_t j = 0, m = (uint64_t)pe_real_at(&fields->lens, i); j < m; j++, at++) {
            list[at] = offset + (double)j;
            if (seq->piece)
                seq->piece[at] = (uint32_t)i;
            if (pe_is_cancelled_at(at))
                return pe_cancelled(err);
        }
    seq->k[0] = (struct pe_positions){.n = n, .list = list};
    recognise_run(&seq->k[0]);
    share(seq);
    return PE_OK;
}

void pe_sequence_drop(struct pe_sequence *seq)
{
    free(seq->owned[0]);
    free(seq->owned[1]);
    free(seq->lens);
    free(seq->piece);
    free(seq->blocks.at);
    pe_segments_drop(&seq->segments);
}

void pe_sequence_spread(struct pe_sequence *seq, unsigned n_axes)
{
    for (unsigned a = 1; seq->n_axes == 1 && a < n_axes; a++) {
        seq->q[a] = seq->q[0];
        seq->k[a] = seq->k[0];
    }
    if (seq->n_axes == 1)
        seq->n_axes = n_axes;
}

double pe_sequence_reach(const struct pe_sequence *seq)
{
    double last = pe_positions_last(&seq->k[0]);
    for (unsigned a = 0; a < seq->n_axes; a++)
        last = fmax(last, fmax(pe_positions_last(&seq->q[a]), pe_positions_last(&seq->k[a])));
    return floor(last) + 1;
}
