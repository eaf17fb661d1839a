/* Which keys each query sees, where the numbers that it sees are those of the configuration: the mask alone differs.
 *
 * What is believed is computed without a mask. Scores and biases are compared as they are, probabilities up to a factor
 * of each row, since a softmax over other keys changes no quotient. Every head has the same mask. The keys of a query
 * are a run [low, high] under the rules that have a name; else they are stated as they are. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/changed.h"
#include "core/diagnosis/measure/maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mask {
    size_t n_queries, n_keys;
    unsigned char *sees, *believed; /* [n_queries, n_keys] */
};

static bool is_seen(const struct pe_numbers *s, double x)
{
    return s->d->evidence.kind == &pe_evidence_probs ? x > 0 : x > -1e4;
}

/* Are the numbers seen those without a mask, and the keys seen the same in every head? */
static bool read_mask(const struct pe_numbers *s, const struct pe_model *bare, struct mask *m, double *expected)
{
    bool are_probs = s->d->evidence.kind == &pe_evidence_probs;
    for (size_t row = 0; row < s->n_rows && !pe_is_cancelled(); row++) {
        const double *found = s->found + row * s->n_cols, *believed = s->believed + row * s->n_cols;
        unsigned char *sees = m->sees + row % m->n_queries * m->n_keys;
        size_t most = 0;
        pe_model_fill(bare, 0, row, 0, s->n_cols, expected);
        for (size_t j = 1; j < s->n_cols; j++)
            most = found[j] > found[most] ? j : most;
        double factor = are_probs ? found[most] / expected[most] : 1;
        for (size_t j = 0; j < s->n_cols; j++) {
            bool is_other = row >= m->n_queries && sees[j] != is_seen(s, found[j]);
            if (is_other ||
                (is_seen(s, found[j]) && !(fabs(found[j] - factor * expected[j]) <= s->near * fmax(1, factor))))
                return false;
            sees[j] = is_seen(s, found[j]);
            m->believed[row % m->n_queries * m->n_keys + j] = is_seen(s, believed[j]);
        }
    }
    return !pe_is_cancelled();
}

/* Have the hidden keys of each row of probabilities one weight, and the others the believed ones up to a factor? The
 * example is the first row that hides two keys. */
static bool is_hidden_by_number(const struct pe_numbers *s, struct pe_changed *out)
{
    bool is_any = false;
    for (size_t row = 0; row < s->n_rows; row++) {
        const double *found = s->found + row * s->n_cols, *believed = s->believed + row * s->n_cols;
        double hidden = (double)NAN, factor = (double)NAN;
        size_t n_hidden = 0;
        for (size_t j = 0; j < s->n_cols; j++) {
            if (believed[j] > 0) {
                factor = isnan(factor) ? found[j] / believed[j] : factor;
                if (!(fabs(found[j] - factor * believed[j]) <= 4 * s->near))
                    return false;
                continue;
            }
            hidden = isnan(hidden) ? found[j] : hidden;
            if (!(found[j] > 0) || !(fabs(found[j] - hidden) <= 4 * s->near))
                return false;
            n_hidden++;
        }
        if (n_hidden > 1 && !is_any) {
            out->x = hidden;
            out->found.row = row % s->sizes.row;
            is_any = true;
        }
    }
    out->change = PE_CHANGED_HIDDEN_WEIGHT;
    return is_any && s->d->evidence.kind == &pe_evidence_probs;
}

/* "0-3, 8": the keys that a query sees; "[]": none. */
static void state_keys(const unsigned char *sees, size_t n, char *text)
{
    size_t used = 0;
    *text = 0;
    for (size_t j = 0, end; j < n && used + 24 < PE_CHANGED_TEXT; j = end + 1) {
        for (end = j; end < n && sees[end]; end++)
            ;
        if (end > j + 1)
            used += (size_t)snprintf(text + used, PE_CHANGED_TEXT - used, "%s%zu-%zu", used ? ", " : "", j, end - 1);
        else if (end > j)
            used += (size_t)snprintf(text + used, PE_CHANGED_TEXT - used, "%s%zu", used ? ", " : "", j);
    }
    if (!used)
        snprintf(text, PE_CHANGED_TEXT, "[]");
}

/* j - i from `low` on (if is_low) to `high` (if is_high), and the first `prefix` keys. */
struct rule {
    bool is_low, is_high;
    int64_t low, high, prefix;
};

static bool follows(const struct mask *m, const struct rule *r)
{
    for (size_t i = 0; i < m->n_queries; i++)
        for (size_t j = 0; j < m->n_keys; j++) {
            int64_t by = (int64_t)j - (int64_t)i;
            bool sees = ((!r->is_low || by >= r->low) && (!r->is_high || by <= r->high)) || (int64_t)j < r->prefix;
            if (m->sees[i * m->n_keys + j] != sees)
                return false;
        }
    return true;
}

/* Bounds are read off the last query (before it) and the one in the middle (after it), a prefix off the first. */
static bool find_rule(const struct mask *m, char *text)
{
    const unsigned char *first = m->sees, *last = first + (m->n_queries - 1) * m->n_keys,
                        *middle = first + m->n_queries / 2 * m->n_keys;
    int64_t low = -1, prefix = 0, most = -1, half = (int64_t)m->n_queries / 2, n = (int64_t)m->n_queries - 1;
    while (prefix < (int64_t)m->n_keys && first[prefix])
        prefix++;
    for (int64_t j = 0; j < (int64_t)m->n_keys; j++) {
        low = last[j] && (j == 0 || !last[j - 1]) ? j : low;
        most = middle[j] ? j : most;
    }
    if (low < 0) { /* the last query sees no key */
        n = half;
        while (++low < (int64_t)m->n_keys && !middle[low])
            ;
    }
    const struct rule rules[] = {{false, true, 0, most - half, 0},
                                 {true, false, low - n, 0, 0},
                                 {true, true, low - n, most - half, 0},
                                 {false, true, 0, most - half, prefix},
                                 {true, true, low - n, most - half, prefix}};
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        const struct rule *r = &rules[k];
        char or_first[32] = "";
        if (!follows(m, r))
            continue;
        if (r->prefix)
            snprintf(or_first, sizeof or_first, " or j < %lld", (long long)r->prefix);
        if (r->is_low && r->is_high)
            snprintf(text, PE_CHANGED_TEXT, "%lld <= j-i <= %lld%s", (long long)r->low, (long long)r->high, or_first);
        else
            snprintf(text, PE_CHANGED_TEXT, "j-i %s %lld%s",
                     r->is_low ? ">=" : "<=", (long long)(r->is_low ? r->low : r->high), or_first);
        return true;
    }
    return false;
}

static bool state(const struct mask *m, struct pe_changed *out)
{
    size_t i = 0;
    while (i < m->n_queries && memcmp(m->sees + i * m->n_keys, m->believed + i * m->n_keys, m->n_keys) == 0)
        i++;
    if (i == m->n_queries)
        return false;
    out->found.row = i;
    state_keys(m->sees + i * m->n_keys, m->n_keys, out->first);
    state_keys(m->believed + i * m->n_keys, m->n_keys, out->before);
    out->change = find_rule(m, out->rule) ? PE_CHANGED_MASK : PE_CHANGED_KEYS;
    return true;
}

bool pe_changed_mask(struct pe_numbers *s, struct pe_changed *out)
{
    struct pe_diagnosis *d = s->d;
    enum pe_evidence_id id = d->evidence.kind->id;
    struct mask m = {.n_queries = s->sizes.row, .n_keys = s->n_cols};
    struct pe_edit edit;
    struct pe_model *bare;
    bool is_asked = (id == PE_OF_MAPS || id == PE_OF_BIAS) && !d->evidence.is_turned;
    m.sees = is_asked ? malloc(2 * m.n_queries * m.n_keys) : NULL;
    double *expected = is_asked ? malloc(s->n_cols * sizeof *expected) : NULL;
    bool holds = false;
    pe_edit_init(&edit);
    d->no_memory |= is_asked && !(m.sees && expected);
    if (m.sees && expected && pe_open_unmasked(d, &edit, &bare)) {
        m.believed = m.sees + m.n_queries * m.n_keys;
        s->near = fmax(0x1p-20, 4 * pe_evidence_noise(&d->evidence)) * d->evidence.largest;
        holds =
            bare->has_shape && ((read_mask(s, bare, &m, expected) && state(&m, out)) || is_hidden_by_number(s, out));
        s->work += 8 * (double)s->n;
        pe_model_free(bare);
    }
    pe_edit_drop(&edit);
    free(m.sees);
    free(expected);
    return holds;
}
