/* From the fields len, offset, positions, q_len, … to positions. */
#include "core/sequence.h"
#include "core/dtype.h"
#include "core/limits.h"

#include <stdlib.h>
#include <string.h>

static const struct pe_param rows[] = {
    PE_P_INT(pe_sequence_fields, len, PE_UNSET, 1, PE_POSITION_MAX, "number of positions, from offset on"),
    PE_P_INT(pe_sequence_fields, offset, PE_UNSET, -PE_POSITION_MAX, PE_POSITION_MAX,
             "first position of a run; default 0"),
    PE_P_REALS(pe_sequence_fields, positions, -PE_POSITION_MAX, PE_POSITION_MAX,
               "positions as given, integer or real: [n]"),
    PE_P_INT(pe_sequence_fields, q_len, PE_UNSET, 1, PE_POSITION_MAX, "number of queries; alone it sets k_len too"),
    PE_P_INT(pe_sequence_fields, k_len, PE_UNSET, 1, PE_POSITION_MAX, "number of keys; alone it sets q_len too"),
    PE_P_INT(pe_sequence_fields, q_offset, PE_UNSET, -PE_POSITION_MAX, PE_POSITION_MAX,
             "first query's place counted from the first key; default k_len - q_len"),
    PE_P_REALS(pe_sequence_fields, q_positions, -PE_POSITION_MAX, PE_POSITION_MAX, "positions of the queries: [q_len]"),
    PE_P_REALS(pe_sequence_fields, k_positions, -PE_POSITION_MAX, PE_POSITION_MAX, "positions of the keys: [k_len]"),
    PE_P_END,
};

const struct pe_param *pe_sequence_params(void) { return rows; }

double pe_position_at(const struct pe_positions *positions, uint64_t i)
{
    return positions->list ? positions->list[i] : positions->start + (double)i;
}

bool pe_positions_are_integers(const struct pe_positions *positions)
{
    for (uint64_t i = 0; positions->list && i < positions->n; i++)
        if (positions->list[i] != floor(positions->list[i]))
            return false;
    return true;
}

double pe_positions_largest(const struct pe_positions *positions)
{
    if (!positions->list)
        return fmax(fabs(positions->start), fabs(positions->start + (double)(positions->n - 1)));
    double largest = 0;
    for (uint64_t i = 0; i < positions->n; i++)
        largest = fmax(largest, fabs(positions->list[i]));
    return largest;
}

static bool given(int64_t field) { return field != PE_UNSET_INT; }

/* ---- Rules about which fields go together ---- */

static enum pe_status check_kind(const struct pe_sequence_fields *f, struct pe_error *err)
{
    const char *pointer = given(f->q_len)      ? "/q_len"
                          : given(f->k_len)    ? "/k_len"
                          : given(f->q_offset) ? "/q_offset"
                          : f->q_positions.n   ? "/q_positions"
                          : f->k_positions.n   ? "/k_positions"
                                               : NULL;
    if (!pointer)
        return PE_OK;
    return pe_fail(
        err, pointer,
        "%s is for schemes that compare queries with keys; this one encodes one sequence: give len or positions",
        pointer + 1);
}

static enum pe_status check_one_way(const struct pe_sequence_fields *f, bool fixed, struct pe_error *err)
{
    int ways = given(f->len) + (f->positions.n > 0) + (given(f->q_len) || given(f->k_len)) +
               (f->q_positions.n || f->k_positions.n);
    if (ways == 0 && !fixed)
        return pe_fail(err, "/len",
                       "the sequence is missing; give one of len, positions, q_len and k_len, q_positions and "
                       "k_positions, as in \"len\":2048");
    if (ways > 1)
        return pe_fail(
            err, f->positions.n ? "/positions" : "/len",
            "the sequence is given in %d ways; give exactly one of len, positions, q_len and k_len, q_positions "
            "and k_positions",
            ways);
    bool listed = f->positions.n || f->q_positions.n || f->k_positions.n;
    if (listed && given(f->offset))
        return pe_fail(err, "/offset", "offset goes with a run of positions; positions in a list are taken as given");
    if (listed && given(f->q_offset))
        return pe_fail(err, "/q_offset",
                       "q_offset goes with a run of positions; positions in a list are taken as given");
    return PE_OK;
}

/* A length that tensors fix need not be given, but may not be contradicted. */
static enum pe_status check_size(const char *pointer, uint64_t n, uint64_t fixed, const char *tensor,
                                 struct pe_error *err)
{
    if (!fixed || n == fixed)
        return PE_OK;
    return pe_fail(err, pointer,
                   "%s says %llu positions, the tensor %s has %llu; give the same number, or leave %s out", pointer + 1,
                   (unsigned long long)n, tensor, (unsigned long long)fixed, pointer + 1);
}

/* ---- Runs and lists ---- */

static enum pe_status run(struct pe_positions *p, int64_t start, uint64_t n, const char *pointer, struct pe_error *err)
{
    double first = (double)start, last = first + (double)(n - 1);
    if (first < -PE_POSITION_MAX || last > PE_POSITION_MAX)
        return pe_fail(err, pointer,
                       "the positions run from %.0f to %.0f; allowed: magnitudes up to 2^40 (1099511627776)", first,
                       last);
    *p = (struct pe_positions){.n = n, .start = first};
    return PE_OK;
}

/* [n], or [1][n] as a list of one axis. */
static enum pe_status check_list(const struct pe_reals *list, const char *name, struct pe_error *err)
{
    char pointer[32] = "/";
    strcat(pointer, name);
    if (list->array.rank == 1 || (list->array.rank == 2 && list->array.shape[0] == 1))
        return PE_OK;
    if (list->array.rank == 2)
        return pe_fail(err, pointer, "%s has %llu axes; this scheme has one: give a flat list", name,
                       (unsigned long long)list->array.shape[0]);
    return pe_fail(err, pointer, "%s has %u dimensions; allowed: a flat list", name, list->array.rank);
}

/* A list of consecutive integers is a run, and runs are the fast case. (Not with a fraction: 0.1 + 1 need not be the
 * double 1.1.) */
static void recognise_run(struct pe_positions *p)
{
    double first = p->list[0];
    if (first != floor(first))
        return;
    for (uint64_t i = 1; i < p->n; i++)
        if (p->list[i] != first + (double)i)
            return;
    p->start = first;
    p->list = NULL;
}

static enum pe_status list(struct pe_positions *p, const struct pe_reals *from, const char *name, double **owned,
                           struct pe_error *err)
{
    enum pe_status status = check_list(from, name, err);
    if (status)
        return status;
    p->n = from->n;
    p->start = 0;
    p->list = from->array.data;
    if (from->array.dtype != PE_F64) {
        *owned = malloc(from->n * sizeof **owned);
        if (!*owned)
            return pe_no_memory(err);
        pe_convert(PE_F64, *owned, from->array.dtype, from->array.data, from->n);
        p->list = *owned;
    }
    recognise_run(p);
    return PE_OK;
}

/* One list for queries and keys. */
static enum pe_status init_positions(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                     struct pe_sequence_sizes sizes, struct pe_error *err)
{
    enum pe_status status = check_size("/positions", f->positions.n, sizes.q, "q", err);
    if (!status)
        status = check_size("/positions", f->positions.n, sizes.k, "k", err);
    if (!status)
        status = list(&seq->k, &f->positions, "positions", &seq->owned[0], err);
    seq->q = seq->k;
    return status;
}

/* Two lists; one alone stands for both. */
static enum pe_status init_two_lists(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                     struct pe_sequence_sizes sizes, struct pe_error *err)
{
    const struct pe_reals *q = f->q_positions.n ? &f->q_positions : &f->k_positions;
    const struct pe_reals *k = f->k_positions.n ? &f->k_positions : &f->q_positions;
    enum pe_status status = check_size("/q_positions", q->n, sizes.q, "q", err);
    if (!status)
        status = check_size("/k_positions", k->n, sizes.k, "k", err);
    if (!status)
        status = list(&seq->q, q, "q_positions", &seq->owned[0], err);
    if (!status && q == k)
        seq->k = seq->q;
    else if (!status)
        status = list(&seq->k, k, "k_positions", &seq->owned[1], err);
    return status;
}

/* How many queries and keys: from the tensors, from len, or from q_len and k_len. */
static enum pe_status run_lengths(const struct pe_sequence_fields *f, struct pe_sequence_sizes sizes, uint64_t *q_len,
                                  uint64_t *k_len, struct pe_error *err)
{
    int64_t q = given(f->len) ? f->len : f->q_len, k = given(f->len) ? f->len : f->k_len;
    *q_len = given(q) ? (uint64_t)q : sizes.q ? sizes.q : given(k) ? (uint64_t)k : sizes.k;
    *k_len = given(k) ? (uint64_t)k : sizes.k ? sizes.k : *q_len;
    enum pe_status status = check_size(given(f->len) ? "/len" : "/q_len", *q_len, sizes.q, "q", err);
    return status ? status : check_size(given(f->len) ? "/len" : "/k_len", *k_len, sizes.k, "k", err);
}

/* Key j stands at offset + j, query i at offset + q_offset + i. */
static enum pe_status init_runs(struct pe_sequence *seq, const struct pe_sequence_fields *f,
                                struct pe_sequence_sizes sizes, struct pe_error *err)
{
    uint64_t q_len, k_len;
    enum pe_status status = run_lengths(f, sizes, &q_len, &k_len, err);
    if (status)
        return status;
    int64_t offset = given(f->offset) ? f->offset : 0;
    int64_t q_offset = given(f->q_offset) ? f->q_offset : (int64_t)k_len - (int64_t)q_len;
    status = run(&seq->k, offset, k_len, "/offset", err);
    return status ? status : run(&seq->q, offset + q_offset, q_len, given(f->q_offset) ? "/q_offset" : "/offset", err);
}

enum pe_status pe_sequence_init(struct pe_sequence *seq, const struct pe_sequence_fields *fields,
                                enum pe_sequence_kind kind, struct pe_sequence_sizes sizes, struct pe_error *err)
{
    *seq = (struct pe_sequence){0};
    enum pe_status status = kind == PE_ONE_SEQUENCE ? check_kind(fields, err) : PE_OK;
    if (!status)
        status = check_one_way(fields, sizes.q || sizes.k, err);
    if (status)
        return status;
    if (fields->positions.n)
        return init_positions(seq, fields, sizes, err);
    if (fields->q_positions.n || fields->k_positions.n)
        return init_two_lists(seq, fields, sizes, err);
    return init_runs(seq, fields, sizes, err);
}

void pe_sequence_drop(struct pe_sequence *seq)
{
    free(seq->owned[0]);
    free(seq->owned[1]);
}
