/* wavelengths: which pairs make a full turn within the length of training.
 *
 *     wavelength_c = 2·pi/w_c,   turns_c = T·w_c/(2·pi),   ratio_c = w_c/w°_c (with and without scaling) */
#include "core/analysis/analysis.h"

enum { WAVELENGTH, TURNS, RATIO };

static double turns_of(const struct pe_ladder *ladder, size_t c, double train_len)
{
    return train_len * fabs(ladder->w[c]) / (2 * M_PI);
}

/* A pair that never turns has the ratio 1. */
static double ratio_of(const struct pe_ladder *ladder, size_t c)
{
    return ladder->w[c] == ladder->w0[c] ? 1 : ladder->w[c] / ladder->w0[c];
}

struct ladder_facts {
    size_t full, kept, first_short; /* pairs with a full turn, with ratio 1; the first without a full turn, or C */
    size_t slowest, fastest;        /* without scaling */
    double least, most;             /* frequencies with scaling */
};

static struct ladder_facts survey(const struct pe_ladder *ladder, double train_len)
{
    struct ladder_facts f = {.first_short = ladder->n, .least = (double)INFINITY};
    for (size_t c = ladder->n; c-- > 0;) {
        bool is_full = turns_of(ladder, c, train_len) >= 1;
        f.full += is_full;
        f.first_short = is_full ? f.first_short : c;
        f.kept += fabs(ratio_of(ladder, c) - 1) <= 1e-9;
        f.slowest = fabs(ladder->w0[c]) <= fabs(ladder->w0[f.slowest]) ? c : f.slowest;
        f.fastest = fabs(ladder->w0[c]) >= fabs(ladder->w0[f.fastest]) ? c : f.fastest;
        f.least = fmin(f.least, fabs(ladder->w[c]));
        f.most = fmax(f.most, fabs(ladder->w[c]));
    }
    return f;
}

static void put_witness(struct pe_node *out, const struct pe_ladder *ladder, size_t pair, double train_len)
{
    if (pair == ladder->n) {
        pe_put_null(out, "witness");
        return;
    }
    struct pe_node *witness = pe_put_object(out, "witness");
    pe_put_integer(witness, "pair", (int64_t)pair);
    pe_put_real(witness, "turns", turns_of(ladder, pair, train_len));
}

static const char *const details[] = {
    "A share of {value} of the pairs makes a full turn within {train_len} positions; pair {witness.pair} is the first "
    "that "
    "does not.",
    "Every pair makes a full turn within {train_len} positions: the share is {value}.",
};

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    (void)err;
    const struct pe_ladder *ladder = &subject->ladder;
    double train_len = pe_train_len(study, subject);
    struct ladder_facts f = survey(ladder, train_len);
    pe_put_real(out, "value", (double)f.full / (double)ladder->n);
    put_witness(out, ladder, f.first_short, train_len);
    pe_put_length(out, "train_len", train_len);
    pe_put_real(out, "shortest", 2 * M_PI / f.most);
    pe_put_real(out, "longest", 2 * M_PI / f.least);
    pe_put_real(out, "attention_factor", ladder->attention_factor);
    pe_put_integer(out, "kept", (int64_t)f.kept);
    pe_put_real(out, "slowest_ratio", ratio_of(ladder, f.slowest));
    pe_put_real(out, "fastest_ratio", ratio_of(ladder, f.fastest));
    pe_put_detail(out, study->request->lang, details[f.first_short == ladder->n]);
    double *wavelength = pe_study_tensor(study, subject, "wavelength");
    double *turns = pe_study_tensor(study, subject, "turns"), *ratio = pe_study_tensor(study, subject, "ratio");
    for (size_t c = 0; c < ladder->n; c++) {
        if (wavelength)
            wavelength[c] = 2 * M_PI / fabs(ladder->w[c]);
        if (turns)
            turns[c] = turns_of(ladder, c, train_len);
        if (ratio)
            ratio[c] = ratio_of(ladder, c);
    }
    return PE_OK;
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    (void)study;
    cost->work = (double)subject->ladder.n;
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
    [WAVELENGTH] = PE_OUTPUT("wavelength", "rotary_dim/2", 1, PE_F64, false, NULL, "wavelength",
                             "positions in one turn of each pair"),
    [TURNS] = PE_OUTPUT("turns", "rotary_dim/2", 1, PE_F64, false, NULL, "turns",
                        "turns of each pair within the length of training"),
    [RATIO] = PE_OUTPUT("ratio", "rotary_dim/2", 1, PE_F64, false, NULL, "frequency ratio",
                        "each pair's frequency over the one without scaling"),
    {.name = NULL},
};

const struct pe_metric pe_metric_wavelengths = {
    .info =
        {
            .name = "wavelengths",
            .about = {"wavelengths", "which pairs make a full turn within the length of training"},
            .applies_to = "sinusoidal, rope and xpos on one axis",
            .params = "train_len",
            .work = "C",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .applies = pe_has_ladder,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
