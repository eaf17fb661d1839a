/* Positions without a row, angles and distances that training never showed, and saturated buckets. */
#include "core/analysis/parts/extrapolation.h"

#include <stdlib.h>
#include <string.h>

/* ---- Resolved configurations ---- */

static const struct pe_value *find(const struct pe_plan *plan, const char *name, enum pe_kind kind)
{
    const struct pe_value *config = pe_plan_config(plan);
    const struct pe_value *value = pe_field_find(config->object.fields, config->object.n, name);
    return value && value->kind == kind ? value : NULL;
}

int64_t pe_config_integer(const struct pe_plan *plan, const char *name, int64_t fallback)
{
    const struct pe_value *value = find(plan, name, PE_INTEGER);
    return value ? value->integer : fallback;
}

bool pe_config_boolean(const struct pe_plan *plan, const char *name, bool fallback)
{
    const struct pe_value *value = find(plan, name, PE_BOOLEAN);
    return value ? value->boolean : fallback;
}

static bool is_scheme(const struct pe_subject *subject, const char *names)
{
    return pe_is_among(names, pe_plan_scheme(subject->plan)->name);
}

/* ---- Positions ---- */

double pe_positions_without_row(const struct pe_subject *subject, struct pe_lengths lengths)
{
    if (!is_scheme(subject, "learned"))
        return (double)NAN;
    double rows = (double)pe_config_integer(subject->plan, "rows", 0);
    double left = fmax(rows - (double)pe_config_integer(subject->plan, "row_offset", 0), 0);
    return fmax((double)lengths.eval - left, 0) / (double)lengths.eval;
}

/* ---- Angles ---- */

/* Frequencies of the scheme at length E, as dynamic scalings and LongRoPE have them. */
static enum pe_status read_frequencies(struct pe_analysis *study, const struct pe_subject *subject, uint64_t n,
                                       double *w, struct pe_error *err)
{
    static const char *const outputs[] = {"inv_freq"};
    struct pe_run run = {.n = n, .outputs = outputs, .n_outputs = 1};
    struct pe_plan *plan;
    memcpy(w, subject->ladder.w, subject->ladder.n * sizeof *w);
    if (subject->family != PE_ROTARY)
        return PE_OK;
    enum pe_status status = pe_subject_plan_run(study, subject, &run, &plan, err);
    if (status)
        return status == PE_INVALID ? PE_OK : status;
    if (pe_plan_output(plan, 0)->row_len == subject->ladder.n)
        pe_fill(plan, 0, 0, subject->ladder.n, w);
    pe_plan_free(plan);
    return PE_OK;
}

/* Training shows the angles from 0 to (T - 1)·w°, as one arc; the angles of longer distances are taken modulo a turn.
 */
static double unseen_of_pair(double w, double w0, struct pe_lengths lengths)
{
    double seen = (double)(lengths.train - 1) * fabs(w0);
    uint64_t unseen = 0;
    if (seen >= 2 * M_PI || lengths.eval == lengths.train)
        return 0;
    for (uint64_t d = lengths.train; d < lengths.eval; d++) {
        if (d % 4096 == 0 && pe_is_cancelled())
            break;
        unseen += fmod((double)d * fabs(w), 2 * M_PI) > seen;
    }
    return (double)unseen / (double)(lengths.eval - lengths.train);
}

enum pe_status pe_unseen_angles(struct pe_analysis *study, const struct pe_subject *subject, struct pe_lengths lengths,
                                double *unseen, struct pe_error *err)
{
    const struct pe_ladder *ladder = &subject->ladder;
    enum pe_status status = read_frequencies(study, subject, lengths.eval, unseen, err);
    for (size_t c = 0; !status && c < ladder->n && !pe_was_cancelled(); c++)
        unseen[c] = unseen_of_pair(unseen[c], ladder->w0[c], lengths);
    return status;
}

/* ---- Distances ---- */

double pe_unseen_pairs(const struct pe_subject *subject, struct pe_lengths lengths)
{
    double beyond = (double)(lengths.eval - lengths.train), n = (double)lengths.eval;
    bool is_causal = pe_config_boolean(subject->plan, "causal", false);
    return beyond * (beyond + 1) / (is_causal ? n * (n + 1) : n * n);
}

/* ---- Saturation ---- */

/* The buckets or rows that all distances from some distance on share. */
struct last {
    const char *output;
    int32_t left, right; /* right < 0: there is no such bucket */
};

static struct last last_of(const struct pe_plan *plan)
{
    const char *name = pe_plan_scheme(plan)->name;
    if (pe_same(name, "t5")) {
        int32_t buckets = (int32_t)pe_config_integer(plan, "num_buckets", 0);
        bool has_two_sides = pe_config_boolean(plan, "bidirectional", true);
        return (struct last){"buckets", (has_two_sides ? buckets / 2 : buckets) - 1, has_two_sides ? buckets - 1 : -1};
    }
    if (pe_same(name, "shaw")) {
        int64_t rows = pe_config_integer(plan, "p_max", 0) - pe_config_integer(plan, "p_min", 0);
        int64_t both = pe_config_integer(plan, "max_relative", -1);
        return (struct last){"index", 0, (int32_t)(both < 0 ? rows : 2 * both)};
    }
    int64_t span = pe_config_integer(plan, "position_buckets", -1);
    span = span > 0 ? span : pe_config_integer(plan, "max_relative_positions", 512);
    return (struct last){"index", 0, (int32_t)(2 * span - 1)};
}

/* line[i] is the bucket of the distance i - (n - 1); there are n - |distance| such pairs. */
static double share_of(const struct last *last, const int32_t *line, uint64_t n, bool is_causal)
{
    double saturated = 0, all = 0;
    for (uint64_t i = 0; i < (is_causal ? n : 2 * n - 1); i++) {
        double pairs = i < n ? (double)(i + 1) : (double)(2 * n - 1 - i);
        all += pairs;
        saturated += line[i] == last->left || line[i] == last->right ? pairs : 0;
    }
    return saturated / all;
}

bool pe_has_saturation(const struct pe_subject *subject) { return is_scheme(subject, "t5|shaw|deberta"); }

enum pe_status pe_saturated(struct pe_analysis *study, const struct pe_subject *subject, uint64_t n, double *share,
                            struct pe_error *err)
{
    struct last last = last_of(subject->plan);
    static const struct pe_field no_mask = {"key_mask", {.kind = PE_NULL}}; /* the entry's own has another length */
    struct pe_run run = {.n = n, .overrides = &no_mask, .n_overrides = 1, .outputs = &last.output, .n_outputs = 1};
    struct pe_plan *plan;
    enum pe_status status = pe_subject_plan_run(study, subject, &run, &plan, err);
    if (status)
        return status;
    int32_t *line = malloc((2 * n - 1) * sizeof *line);
    if (line && pe_fill_line(plan, 0, 0, 0, 2 * n - 1, line))
        *share = share_of(&last, line, n, pe_config_boolean(plan, "causal", false));
    status = line ? PE_OK : pe_no_memory(err);
    free(line);
    pe_plan_free(plan);
    return status;
}
