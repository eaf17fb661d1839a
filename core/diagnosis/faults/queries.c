/* Faults of queries and keys: what multiplies queries by their positions (core/rotate/query_scale.c), and in maps which
 * keys a head reads and a side that is not rotated. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>

#define OF_QUERIES (PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(MAPS))

static const double lengths[] = {4096, 8192, 16384, 32768};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths, N_TYPES = PE_SCALE_LOGN + 1 };
#define USUAL_BETA 0.1

static bool has_queries(const struct pe_diagnosis *d) { return !d->evidence.kind->is_key; }

static bool set_scale(struct pe_edit *edit, size_t type, double beta, double length)
{
    enum { N_MEMBERS = 3 };
    struct pe_field *members = pe_edit_room(edit, N_MEMBERS * sizeof *members);
    size_t n = 0;
    if (!members)
        return false;
    members[n++] = (struct pe_field){"type", {.kind = PE_STRING, .string = pe_query_scale_words[type]}};
    if (type != PE_SCALE_LOGN)
        members[n++] = (struct pe_field){"beta", {.kind = PE_REAL, .real = beta}};
    members[n++] = (struct pe_field){"original_max_position_embeddings", {.kind = PE_REAL, .real = length}};
    pe_edit_set(edit, "query_scale", (struct pe_value){.kind = PE_OBJECT, .object = {members, n}});
    return true;
}

static size_t count_queries(const struct pe_diagnosis *d) { return has_queries(d); }

const struct pe_fault pe_fault_query_scale_missing = {
    FAULT_TEXT("query_scale_missing", "size", SIZE, 2, "queries not scaled by position",
               "Queries are not multiplied by the factor that grows with their position.",
               "The queries are not multiplied by a factor that grows with their position; in the configuration they "
               "are."),
    .pointer = "query_scale", .evidence = OF_QUERIES, .count = count_queries, PE_VALUES(PE_NONE_OF("query_scale"))};

/* Up to its length a factor is 1, so in shorter sequences it is no other hypothesis. */
static bool reaches(const struct pe_diagnosis *d, double length)
{
    const struct pe_sequence *seq = &d->belief.plan->seq;
    return pe_positions_last(d->evidence.kind->id == PE_OF_MAPS ? seq->q : seq->k) + 1 >= length;
}

static bool add_scale(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    double length = lengths[i % N_LENGTHS];
    return has_queries(d) && !pe_edit_has(d, edit, "query_scale") && reaches(d, length) &&
           set_scale(edit, i / N_LENGTHS, USUAL_BETA, length);
}

const struct pe_fault pe_fault_query_scale_extra = {
    FAULT_TEXT("query_scale_extra", "size", SIZE, 3, "queries scaled by position",
               "Queries are multiplied by a factor that grows with their position.",
               "The queries are multiplied by a factor that grows with their position (`found`); in the configuration "
               "they are not."),
    .evidence = OF_QUERIES, .n_alternatives = N_TYPES * N_LENGTHS, .apply = add_scale};

/* ---- Another one than the believed ---- */

static size_t type_of(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    size_t type = 0;
    while (type < N_TYPES && !pe_edit_is_word(d, edit, "query_scale.type", pe_query_scale_words[type]))
        type++;
    return type;
}

/* The x at which numbers that are linear in it fit best, from the edits at 0 and at 1. Logarithms of probabilities are
 * scores but for one number of their row: their means in a piece are left out. */
static bool fit_between(struct pe_diagnosis *d, const struct pe_edit *at0, const struct pe_edit *at1,
                        struct pe_solved *x)
{
    const struct pe_sample *s = &d->sample;
    bool are_probs = d->evidence.kind == &pe_evidence_probs,
         is_linear = !pe_edit_has(d, at0, "softcap") && at0->transforms.stage == PE_STAGE_AS_IS;
    double both = 0, own = 0, all = 0, n_all = 0;
    if (!is_linear || !pe_sample_scores(d, *at0, s->phase) || !pe_sample_scores(d, *at1, s->expected))
        return false;
    for (const struct pe_piece *p = s->pieces; p < s->pieces + s->n_pieces; p++) {
        double n = 0, gaps = 0, steps = 0;
        for (size_t j = p->at; j < p->at + p->n; j++) {
            double y = are_probs ? s->found[j] > 0x1p-20 ? log(s->found[j]) : (double)NAN : s->found[j],
                   gap = y - s->phase[j], step = s->expected[j] - s->phase[j];
            if (!isfinite(gap) || !isfinite(step))
                continue;
            n++;
            gaps += gap;
            steps += step;
            both += gap * step;
            own += step * step;
            all += y * y;
        }
        both -= are_probs && n > 0 ? gaps * steps / n : 0;
        own -= are_probs && n > 0 ? steps * steps / n : 0;
        n_all += n;
    }
    x->x = both / own;
    x->error = pe_evidence_noise(&d->evidence) * sqrt(all / (own * n_all));
    return own > 0 && isfinite(x->x);
}

/* Rows are linear in beta. */
static bool fit_beta(struct pe_diagnosis *d, size_t type, double length, struct pe_edit *edit)
{
    struct pe_edit at1 = *edit;
    struct pe_solved beta;
    at1.n_owned = 0;
    bool is_made = type != PE_SCALE_LOGN && set_scale(edit, type, 0, length) && set_scale(&at1, type, 1, length);
    bool fits = is_made && fit_between(d, edit, &at1, &beta);
    edit->failed |= at1.failed;
    pe_edit_drop(&at1);
    if (!fits || !(beta.x > 4 * beta.error))
        return false;
    return set_scale(edit, type, pe_shortest_decimal(beta.x, fmin(0.05, 4 * beta.error / beta.x)), length);
}

static size_t count_changes(const struct pe_diagnosis *d)
{
    return has_queries(d) && pe_edit_has(d, NULL, "query_scale") ? N_TYPES + 1 : 0;
}

static bool change_scale(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    double length = pe_edit_real(d, edit, "query_scale.original_max_position_embeddings", 0),
           beta = pe_edit_real(d, edit, "query_scale.beta", USUAL_BETA);
    size_t type = type_of(d, edit);
    if (type == N_TYPES)
        return false;
    if (i < N_TYPES)
        return i != type && set_scale(edit, i, beta, length);
    return fit_beta(d, type, length, edit);
}

const struct pe_fault pe_fault_query_scale_other = {
    FAULT_TEXT("query_scale_other", "size", SIZE, 3, "queries scaled by another factor",
               "The factor of queries grows otherwise with their position.",
               "The factor of the queries grows differently with their position: {pointer} is {found}; the "
               "configuration has {believed}."),
    .evidence = OF_QUERIES,
    .count = count_changes,
    .apply = change_scale,
    .n_fits = 1,
    .fit_rank = 2};

/* ---- Heads and sides ---- */

const struct pe_fault pe_fault_kv_heads_tiled = {
    FAULT_TEXT("kv_heads_tiled", "axes", AXES, 2, "key heads repeated in another order",
               "Query head h reads key head h modulo their number, not the one of its group.",
               "The key heads were repeated one after another (tile), so query head h reads key head h modulo their "
               "number; neighbouring query heads should share one (repeat_interleave)."),
    .pointer = "num_kv_heads", .evidence = PE_EVIDENCE_BIT(MAPS), PE_TRANSFORMS({PE_TO_TILED, true})};

#define SIDE(name, label, text, transform, operand, kind)                                                              \
    const struct pe_fault pe_fault_##name = {FAULT_TEXT(#name, "positions", POSITIONS, 2, label, text, text),          \
                                             .pointer = "scheme",                                                      \
                                             .schemes = "rope",                                                        \
                                             .evidence = PE_EVIDENCE_BIT(MAPS),                                        \
                                             PE_TRANSFORMS({transform, operand}),                                      \
                                             .combines_as = kind}
/* They may be wrong together, so one of them counts as another kind. */
SIDE(q_not_rotated, "queries not rotated", "The queries were not rotated.", PE_TO_STILL, PE_QUERIES, 0);
SIDE(k_not_rotated, "keys not rotated", "The keys were not rotated.", PE_TO_STILL, PE_KEYS, PE_KIND_WIDTH);
SIDE(q_reversed, "queries rotated backwards",
     "The queries were rotated in the opposite direction, and the keys as the configuration has it: scores depend on "
     "the sum of the positions.",
     PE_TO_REVERSED, PE_QUERIES, 0);
SIDE(k_reversed, "keys rotated backwards",
     "The keys were rotated in the opposite direction, and the queries as the configuration has it: scores depend on "
     "the sum of the positions.",
     PE_TO_REVERSED, PE_KEYS, PE_KIND_WIDTH);
