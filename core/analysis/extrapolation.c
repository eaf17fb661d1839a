/* extrapolation: what a scheme meets beyond the length of training, T, up to the length of evaluation, E. Only what
 * needs no training is measured; a scheme has those of the numbers below that are defined for it. */
#include "core/analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

/* ---- How far tables reach ---- */

/* Positions without a row, angles and distances that training never showed, and saturated buckets. */

/* ---- Resolved configurations ---- */

static const struct pe_value *find(const struct pe_plan *plan, const char *name, enum pe_kind kind)
{
    const struct pe_value *config = pe_plan_config(plan);
    const struct pe_value *value = pe_field_find(config->object.fields, config->object.n, name);
    return value && value->kind == kind ? value : NULL;
}

static int64_t config_integer(const struct pe_plan *plan, const char *name, int64_t fallback)
{
    const struct pe_value *value = find(plan, name, PE_INTEGER);
    return value ? value->integer : fallback;
}

static bool config_boolean(const struct pe_plan *plan, const char *name, bool fallback)
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
    double rows = (double)config_integer(subject->plan, "rows", 0);
    double left = fmax(rows - (double)config_integer(subject->plan, "row_offset", 0), 0);
    return fmax((double)lengths.eval - left, 0) / (double)lengths.eval;
}

/* ---- Angles ---- */

/* Frequencies of the scheme at length E, as dynamic scalings and LongRoPE have them. */
static enum pe_status read_frequencies(struct pe_analysis *study, const struct pe_subject *subject, uint64_t n,
                                       double *w, struct pe_failure *err)
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

/* unseen[c], c < C: the share of distances T..E-1 whose angle is beyond all angles of training. Only with a ladder. */
static enum pe_status find_unseen_angles(struct pe_analysis *study, const struct pe_subject *subject,
                                         struct pe_lengths lengths, double *unseen, struct pe_failure *err)
{
    const struct pe_ladder *ladder = &subject->ladder;
    enum pe_status status = read_frequencies(study, subject, lengths.eval, unseen, err);
    for (size_t c = 0; !status && c < ladder->n && !pe_was_cancelled(); c++)
        unseen[c] = unseen_of_pair(unseen[c], ladder->w0[c], lengths);
    return status;
}

/* ---- Distances ---- */

/* The share of the pairs of E positions that are T or more apart. */
static double share_of_unseen_pairs(const struct pe_subject *subject, struct pe_lengths lengths)
{
    double beyond = (double)(lengths.eval - lengths.train), n = (double)lengths.eval;
    bool is_causal = config_boolean(subject->plan, "causal", false);
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
        int32_t buckets = (int32_t)config_integer(plan, "num_buckets", 0);
        bool has_two_sides = config_boolean(plan, "bidirectional", true);
        return (struct last){"buckets", (has_two_sides ? buckets / 2 : buckets) - 1, has_two_sides ? buckets - 1 : -1};
    }
    if (pe_same(name, "shaw")) {
        int64_t rows = config_integer(plan, "p_max", 0) - config_integer(plan, "p_min", 0);
        int64_t both = config_integer(plan, "max_relative", -1);
        return (struct last){"index", 0, (int32_t)(both < 0 ? rows : 2 * both)};
    }
    int64_t span = config_integer(plan, "position_buckets", -1);
    span = span > 0 ? span : config_integer(plan, "max_relative_positions", 512);
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

/* The share of the pairs of n positions that share the last bucket or row of a side; NaN: the scheme has none. */
static bool has_saturation(const struct pe_subject *subject) { return is_scheme(subject, "t5|shaw|deberta"); }

static enum pe_status find_saturated(struct pe_analysis *study, const struct pe_subject *subject, uint64_t n,
                                     double *share, struct pe_failure *err)
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
        *share = share_of(&last, line, n, config_boolean(plan, "causal", false));
    status = line ? PE_OK : pe_no_memory(err);
    free(line);
    pe_plan_free(plan);
    return status;
}

/* ---- The metric ---- */

static struct pe_lengths lengths_of(const struct pe_analysis *study, const struct pe_subject *subject)
{
    return (struct pe_lengths){(uint64_t)pe_train_len(study, subject), (uint64_t)pe_eval_len(study, subject)};
}

struct findings {
    double without_row, unseen_angles, unseen_pairs; /* NaN: not defined */
    size_t first_pair;                               /* with unseen angles; C: none */
    double saturated[2];                             /* at T and at E */
    struct pe_drift drift;
};

/* ---- Measuring ---- */

static enum pe_status measure_angles(struct pe_analysis *study, const struct pe_subject *subject,
                                     struct pe_lengths lengths, struct findings *f, struct pe_failure *err)
{
    size_t n = subject->ladder.n;
    double *unseen = malloc((n + 1) * sizeof *unseen), *tensor = pe_study_tensor(study, subject, "unseen");
    enum pe_status status = unseen ? find_unseen_angles(study, subject, lengths, unseen, err) : pe_no_memory(err);
    if (!status) {
        f->unseen_angles = pe_sum(unseen, n) / (double)n;
        f->first_pair = 0;
        while (f->first_pair < n && !(unseen[f->first_pair] > 0))
            f->first_pair++;
    }
    if (!status && tensor)
        memcpy(tensor, unseen, n * sizeof *tensor);
    free(unseen);
    return status;
}

static enum pe_status measure_saturation(struct pe_analysis *study, const struct pe_subject *subject,
                                         struct pe_lengths lengths, struct findings *f, struct pe_failure *err)
{
    enum pe_status status = find_saturated(study, subject, lengths.train, &f->saturated[0], err);
    return status ? status : find_saturated(study, subject, lengths.eval, &f->saturated[1], err);
}

static enum pe_status measure(struct pe_analysis *study, const struct pe_subject *subject, struct findings *f,
                              struct pe_failure *err)
{
    struct pe_lengths lengths = lengths_of(study, subject);
    *f = (struct findings){.without_row = pe_positions_without_row(subject, lengths),
                           .unseen_angles = (double)NAN,
                           .unseen_pairs = share_of_unseen_pairs(subject, lengths)};
    enum pe_status status = PE_OK;
    if (subject->ladder.n)
        status = measure_angles(study, subject, lengths, f, err);
    if (!status && has_saturation(subject))
        status = measure_saturation(study, subject, lengths, f, err);
    return status ? status : pe_attention_drift(study, subject, lengths, &f->drift, err);
}

/* ---- The answer ---- */

enum headline { WITHOUT_ROW, UNSEEN_ANGLES, MASS_BEYOND, UNSEEN_PAIRS };

static const char *const details[] = {
    [WITHOUT_ROW] = "A share of {value} of {eval_len} positions has no row in the table.",
    [UNSEEN_ANGLES] =
        "For distances from {train_len} to below {eval_len}, a share of {value} of the angles does not occur in "
        "training, on average over the pairs.",
    [MASS_BEYOND] = "With {eval_len} positions, a share of {value} of the last query's attention goes to keys that are "
                    "{train_len} or more away.",
    [UNSEEN_PAIRS] =
        "A share of {value} of the pairs of {eval_len} positions is {train_len} or more apart, farther than in "
        "training.",
};

static enum headline put_value(struct pe_node *out, const struct findings *f)
{
    const double values[] = {f->without_row, f->unseen_angles, f->drift.is_there ? f->drift.mass_beyond : (double)NAN,
                             f->unseen_pairs};
    size_t i = 0;
    while (isnan(values[i]))
        i++;
    pe_put_real(out, "value", values[i]);
    return (enum headline)i;
}

static void put_witness(struct pe_node *out, const struct pe_subject *subject, const struct findings *f)
{
    if (isnan(f->unseen_angles) || f->first_pair == subject->ladder.n)
        pe_put_null(out, "witness");
    else
        pe_put_integer(pe_put_object(out, "witness"), "pair", (int64_t)f->first_pair);
}

static void put_two(struct pe_node *out, const char *name, const double *x)
{
    struct pe_node *list = pe_put_list(out, name);
    pe_put_real(list, NULL, x[0]);
    pe_put_real(list, NULL, x[1]);
}

static void put_drift(struct pe_node *out, const struct pe_drift *drift)
{
    if (!drift->is_there)
        return;
    struct pe_node *attention = pe_put_object(out, "attention");
    put_two(attention, "entropy", drift->entropy);
    put_two(attention, "mean_distance", drift->mean_distance);
    pe_put_real(attention, "mass_beyond", drift->mass_beyond);
}

static void put_saturation(struct pe_node *out, const struct pe_subject *subject, const struct findings *f)
{
    if (!has_saturation(subject))
        return;
    struct pe_node *saturated = pe_put_object(out, "saturated");
    pe_put_real(saturated, "train", f->saturated[0]);
    pe_put_real(saturated, "eval", f->saturated[1]);
}

static void put(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_node *out,
                const struct findings *f)
{
    struct pe_lengths lengths = lengths_of(study, subject);
    enum headline headline = put_value(out, f);
    put_witness(out, subject, f);
    pe_put_integer(out, "train_len", (int64_t)lengths.train);
    pe_put_integer(out, "eval_len", (int64_t)lengths.eval);
    if (!isnan(f->without_row))
        pe_put_real(out, "positions_without_row", f->without_row);
    if (!isnan(f->unseen_angles))
        pe_put_real(out, "unseen_angles", f->unseen_angles);
    pe_put_real(out, "unseen_pairs", f->unseen_pairs);
    put_saturation(out, subject, f);
    put_drift(out, &f->drift);
    pe_put_detail(out, study->request->lang, details[headline]);
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    struct findings f;
    enum pe_status status = measure(study, subject, &f, err);
    if (!status && !pe_was_cancelled())
        put(study, subject, out, &f);
    return status;
}

/* ---- The metric ---- */

/* A model trained on very long contexts is left out, unless the request names the metric or a length: its other metrics
 * should not be refused because of this one. */
static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    const struct pe_analysis_fields *f = &study->fields;
    bool is_asked = f->metrics || f->train_len != PE_UNSET_INT || f->eval_len != PE_UNSET_INT;
    return is_asked || pe_eval_len(study, subject) <= PE_EVAL_LEN_MAX;
}

static enum pe_status check(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_failure *err)
{
    double train = floor(pe_train_len(study, subject)), eval = pe_eval_len(study, subject);
    bool is_given = study->fields.eval_len != PE_UNSET_INT;
    if (is_given && eval < train)
        return pe_fail(err, "/eval_len", "eval_len is %.0f, train_len %.0f; allowed: train_len to %d", eval, train,
                       PE_EVAL_LEN_MAX);
    if (eval <= PE_EVAL_LEN_MAX)
        return PE_OK;
    pe_fail(err, is_given ? "/eval_len" : "/train_len",
            is_given ? "eval_len is %.0f; allowed: at most %d"
                     : "eval_len would be %.0f, twice the length in training, unless it is given; allowed: at most %d",
            eval, PE_EVAL_LEN_MAX);
    return err->status = PE_TOO_LARGE;
}

enum { ANGLE_WORK = 64 }; /* of an angle modulo a turn */

/* Angles, and the lines of buckets at both lengths, beside the attention. */
static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    struct pe_lengths lengths = lengths_of(study, subject);
    double eval = (double)lengths.eval;
    pe_attention_cost(subject, lengths, cost);
    cost->work += eval * (1 + ANGLE_WORK * (double)subject->ladder.n) + 2 * pe_planning_work(subject);
    cost->work += has_saturation(subject) ? 2 * 2 * eval * pe_plan_each(subject->plan) : 0;
    cost->bytes += ((double)subject->ladder.n + eval) * sizeof(double);
}

static void shape(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape)
{
    (void)study;
    (void)i;
    *rank = 1;
    shape[0] = subject->ladder.n;
}

static const struct pe_output_row tensors[] = {
    PE_OUTPUT("unseen", "rotary_dim/2", 1, PE_F64, false, NULL, "unseen angles",
              "share of the distances between both lengths whose angle does not occur in training, by pair"),
    {.name = NULL},
};

const struct pe_metric pe_metric_extrapolation;
const struct pe_metric pe_metric_extrapolation = {
    .info =
        {
            .name = "extrapolation",
            .about = {"length extrapolation", "what a scheme meets beyond the length of training"},
            .applies_to = "every scheme",
            .params = "train_len|eval_len|seed",
            .work = "64 E H d",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .is_of_kernels = true,
    .applies = applies,
    .check = check,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
