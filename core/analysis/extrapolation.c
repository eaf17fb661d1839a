/* extrapolation: what a scheme meets beyond the length of training, T, up to the length of evaluation, E. Only what
 * needs no training is measured; a scheme has those of the numbers below that are defined for it. */
#include "core/analysis/parts/extrapolation.h"

#include <stdlib.h>
#include <string.h>

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
                                     struct pe_lengths lengths, struct findings *f, struct pe_error *err)
{
    size_t n = subject->ladder.n;
    double *unseen = malloc((n + 1) * sizeof *unseen), *tensor = pe_study_tensor(study, subject, "unseen");
    enum pe_status status = unseen ? pe_unseen_angles(study, subject, lengths, unseen, err) : pe_no_memory(err);
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
                                         struct pe_lengths lengths, struct findings *f, struct pe_error *err)
{
    enum pe_status status = pe_saturated(study, subject, lengths.train, &f->saturated[0], err);
    return status ? status : pe_saturated(study, subject, lengths.eval, &f->saturated[1], err);
}

static enum pe_status measure(struct pe_analysis *study, const struct pe_subject *subject, struct findings *f,
                              struct pe_error *err)
{
    struct pe_lengths lengths = lengths_of(study, subject);
    *f = (struct findings){.without_row = pe_positions_without_row(subject, lengths),
                           .unseen_angles = (double)NAN,
                           .unseen_pairs = pe_unseen_pairs(subject, lengths)};
    enum pe_status status = PE_OK;
    if (subject->ladder.n)
        status = measure_angles(study, subject, lengths, f, err);
    if (!status && pe_has_saturation(subject))
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
    if (!pe_has_saturation(subject))
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
                              struct pe_error *err)
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

static enum pe_status check(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_error *err)
{
    double train = floor(pe_train_len(study, subject)), eval = pe_eval_len(study, subject);
    bool is_given = study->fields.eval_len != PE_UNSET_INT;
    if (is_given && eval < train)
        return pe_fail(err, "/eval_len", "eval_len is %.0f, train_len %.0f; allowed: train_len to %d", eval, train,
                       PE_EVAL_LEN_MAX);
    if (eval <= PE_EVAL_LEN_MAX)
        return PE_OK;
    pe_fail(err, is_given ? "/eval_len" : "/train_len", "eval_len %s %.0f%s; allowed: at most %d",
            is_given ? "is" : "would be", eval, is_given ? "" : ", twice the length in training, unless it is given",
            PE_EVAL_LEN_MAX);
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
    cost->work += pe_has_saturation(subject) ? 2 * 2 * eval * pe_plan_each(subject->plan) : 0;
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
