/* Relations of scores: what was done to queries and keys, the softmax scale, the factor of the bias, the cap, where the
 * queries are, sinks. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/maps.h"
#include "core/diagnosis/naming/relations.h"

#include <math.h>

/* ---- The words ---- */

#define OF_SCORES PE_EVIDENCE_BIT(MAPS)

const struct pe_fault pe_fault_softmax_scale_missing = {
    FAULT_TEXT("softmax_scale_missing", "size", SIZE, 1, "missing softmax scale", "q·k is not multiplied by a scale.",
               "The scores have no softmax scale; the configuration gives {believed}."),
    .evidence = OF_SCORES, .cures = pe_cures_softmax_scale};
const struct pe_fault pe_fault_softmax_scale_twice = {
    FAULT_TEXT("softmax_scale_twice", "size", SIZE, 2, "softmax scale applied twice",
               "q·k is multiplied by the softmax scale twice.",
               "The softmax scale {believed} was applied twice: the scores have {found}."),
    .evidence = OF_SCORES, .cures = pe_cures_softmax_scale};
const struct pe_fault pe_fault_softmax_scale_other = {
    FAULT_TEXT("softmax_scale_other", "size", SIZE, 3, "other softmax scale", "q·k is multiplied by another scale.",
               "The scores have the softmax scale {found}; the configuration gives {believed}."),
    .evidence = OF_SCORES, .cures = pe_cures_softmax_scale};

/* The magnitude of a scaling, in the softmax scale. */

const struct pe_fault pe_fault_mscale_missing = {
    FAULT_TEXT(
        "mscale_missing", "size", SIZE, 1, "scores without the magnitude of the scaling",
        "The scores lack the squared magnitude of the scaling (YaRN's m^2).",
        "The scores lack the squared magnitude of the scaling (YaRN's m^2): they have the softmax scale {found}, "
        "not {believed}."),
    .schemes = "rope", .evidence = OF_SCORES};
const struct pe_fault pe_fault_mscale_once = {
    FAULT_TEXT(
        "mscale_once", "size", SIZE, 2, "magnitude of the scaling on one side only",
        "The scores have the magnitude of the scaling once, not squared.",
        "The scores have the magnitude of the scaling (YaRN's m) once, not squared: the softmax scale is {found}, "
        "not {believed}."),
    .schemes = "rope", .evidence = OF_SCORES};
const struct pe_fault pe_fault_mscale_twice = {
    FAULT_TEXT("mscale_twice", "size", SIZE, 2, "magnitude of the scaling applied twice",
               "The scores have the squared magnitude of the scaling (YaRN's m^2) once more.",
               "The scores have the squared magnitude of the scaling (YaRN's m^2) once more than the configuration "
               "gives: the softmax scale is {found}, not {believed}. Tables and softmax scale may both have it."),
    .schemes = "rope", .evidence = OF_SCORES};

const struct pe_fault pe_fault_softcap_missing = {
    FAULT_TEXT("softcap_missing", "size", PARAMETER, 2, "missing cap", "The scores are not capped.",
               "The scores are not capped; the configuration caps them at {believed}."),
    .pointer = "softcap", .evidence = OF_SCORES, PE_VALUES(PE_NONE_OF("softcap"))};
const struct pe_fault pe_fault_softcap_other = {
    FAULT_TEXT("softcap_other", "size", PARAMETER, 4, "other cap", "The scores are capped at another number.",
               "The scores are capped at {found}; the configuration has {believed}."),
    .evidence = OF_SCORES};
const struct pe_fault pe_fault_sinks_missing = {
    FAULT_TEXT("sinks_missing", "size", PARAMETER, 3, "missing sinks", "The rows of probabilities have no sinks.",
               "The rows of probabilities sum to 1, but the configuration has a sink in each head, which takes a part "
               "of every row."),
    .pointer = "sinks", .evidence = OF_SCORES, PE_VALUES(PE_NONE_OF("sinks"))};
const struct pe_fault pe_fault_sinks_extra = {
    FAULT_TEXT("sinks_extra", "size", PARAMETER, 4, "sinks",
               "The rows of probabilities sum to less than 1: each head has a sink, a logit without a value.",
               "The rows of probabilities sum to less than 1: each head has a sink, a logit without a value; `found` "
               "has one for each head."),
    .evidence = OF_SCORES, .fit_rank = 2};

/* ---- What was measured ---- */

/* What was measured, and the parts so far. */
struct scores {
    struct pe_diagnosis *d;
    struct pe_edit *edit;
    struct pe_scores measured;
    struct pe_part *parts;
    size_t n;
    double numbers; /* that relations have taken from the tensor */
};

static bool is_near(const struct scores *s, double x, double y) { return fabs(x - y) <= s->measured.error * fabs(y); }

static void add_part(struct scores *s, const struct pe_fault *fault)
{
    if (s->n < PE_PARTS_MAX)
        s->parts[s->n++] = (struct pe_part){fault, 0};
}

/* ---- Numbers ---- */

static bool move_queries(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    (void)d;
    edit->transforms.moved = named->related.found - named->related.believed;
    return true;
}

static const struct pe_relation of_cap = {&pe_fault_softcap_other, 1, NULL, NULL},
                                of_place = {PE_OF_ROLE(PLACE_OF_QUERIES), 1, NULL,
                                            "The first query is rotated to position {found}; the configuration has it "
                                            "at {believed}."};

static struct pe_named *add_named(struct scores *s, const struct pe_relation *relation, double found, double believed,
                                  const char *field)
{
    struct pe_named *named = pe_part_add(s->d, relation, found, believed, s->parts, &s->n);
    if (named)
        named->field = field;
    s->numbers += named != NULL;
    return named;
}

/* ---- The softmax scale ---- */

/* YaRN multiplies scores by m^2, in the tables of q and k or in the softmax scale; NaN: there is none. */
static double magnitude(const struct scores *s)
{
    double factor = pe_edit_real(s->d, s->edit, "scaling.factor", 1),
           all = pe_edit_real(s->d, s->edit, "scaling.mscale_all_dim", 0);
    if (!pe_edit_is_word(s->d, s->edit, "scaling.type", "yarn"))
        return pe_edit_real(s->d, s->edit, "attention_factor", (double)NAN);
    return factor > 1 ? 0.1 * (all > 0 ? all : 1) * log(factor) + 1 : (double)NAN;
}

/* In the order of `scales`; the last one of any that follow. */
static const struct pe_relation of_scales[] = {
    {&pe_fault_softmax_scale_missing, 1, NULL, NULL}, {&pe_fault_softmax_scale_twice, 1, NULL, NULL},
    {&pe_fault_mscale_missing, 1, NULL, NULL},        {&pe_fault_mscale_once, 1, NULL, NULL},
    {&pe_fault_mscale_twice, 1, NULL, NULL},          {&pe_fault_softmax_scale_other, 1, NULL, NULL},
};

static void relate_scale(struct scores *s)
{
    double now = pe_edit_real(s->d, s->edit, "softmax_scale", (double)NAN), found = now * s->measured.scale,
           m = magnitude(s), width = pe_edit_real(s->d, s->edit, "head_dim", (double)NAN),
           rotated = pe_edit_real(s->d, s->edit, "rotary_dim", width),
           heads = pe_edit_real(s->d, s->edit, "num_heads", (double)NAN);
    const double scales[] = {1,         now * now,         now / (m * m),           now / m,     now * m * m,
                             1 / width, 1 / sqrt(rotated), 1 / sqrt(heads * width), sqrt(width), (double)NAN};
    size_t i = 0, n = sizeof scales / sizeof *scales - 1, last = sizeof of_scales / sizeof *of_scales - 1;
    if (is_near(s, s->measured.scale, 1) || !isfinite(found))
        return;
    while (i < n && !is_near(s, found, scales[i]))
        i++;
    add_named(s, &of_scales[i < last ? i : last], i < n ? scales[i] : pe_shortest_decimal(found, s->measured.error),
              now, "softmax_scale");
    s->numbers -= i < n; /* a number that has a name is not taken from the tensor */
}

/* ---- The rest ---- */

static const struct pe_fault of_side[][PE_N_OPERANDS] =
    {[PE_SIDE_STILL] = {{PE_TRANSFORMS({PE_TO_STILL, PE_QUERIES})}, {PE_TRANSFORMS({PE_TO_STILL, PE_KEYS})}},
     [PE_SIDE_REVERSED] = {{PE_TRANSFORMS({PE_TO_REVERSED, PE_QUERIES})}, {PE_TRANSFORMS({PE_TO_REVERSED, PE_KEYS})}}},
                             tiled = {PE_TRANSFORMS({PE_TO_TILED, true})};

static void relate_form(struct scores *s)
{
    const struct pe_scores_form *form = &s->measured.form;
    double first = pe_position_at(s->d->belief.plan->seq.q, 0);
    for (size_t i = 0; i < PE_N_OPERANDS; i++)
        if (form->sides[i])
            add_part(s, &of_side[form->sides[i]][i]);
    if (form->is_tiled)
        add_part(s, &tiled);
    struct pe_named *moved = form->moved != 0 ? add_named(s, &of_place, first + form->moved, first, NULL) : NULL;
    if (moved)
        moved->apply = move_queries;
}

/* In the order of the factors below. */
static const struct pe_fault of_bias[] = {{PE_TRANSFORMS({PE_TO_BIAS, PE_BIAS_MISSING})},
                                          {PE_TRANSFORMS({PE_TO_BIAS, PE_BIAS_TWICE})},
                                          {PE_TRANSFORMS({PE_TO_BIAS, PE_BIAS_BEFORE_SCALE})},
                                          {PE_TRANSFORMS({PE_TO_BIAS, PE_BIAS_UNSIGNED})}};

/* false: the factor has no name. */
static bool relate_bias(struct scores *s)
{
    double scale = pe_edit_real(s->d, s->edit, "softmax_scale", (double)NAN) * s->measured.scale;
    const double factors[] = {0, 2, scale, -1};
    if (fabs(s->measured.bias - 1) <= 1e-3)
        return true;
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (fabs(s->measured.bias - factors[i]) <= 1e-3 * fmax(fabs(factors[i]), 1e-2)) {
            add_part(s, &of_bias[i]);
            return true;
        }
    return false;
}

static void relate_cap(struct scores *s)
{
    double believed = pe_edit_real(s->d, s->edit, "softcap", (double)NAN), found = s->measured.cap;
    if (isnan(found) && !isnan(believed))
        add_part(s, &pe_fault_softcap_missing);
    if (!isnan(found) && found != believed)
        add_named(s, &of_cap, pe_shortest_decimal(found, fmax(1e-3, 16 * s->measured.error)), believed, "softcap");
}

/* After all else. */
static bool set_sinks(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    int64_t n = pe_edit_integer(d, edit, "num_heads", 0);
    bool may = n > 0 && d->evidence.n_rows % (uint64_t)n == 0 && edit->transforms.stage == PE_STAGE_AS_IS;
    double *sinks = may ? pe_edit_room(edit, (size_t)n * sizeof *sinks) : NULL;
    (void)named;
    if (!sinks || !pe_measure_sinks(d, edit, (size_t)n, sinks))
        return false;
    pe_edit_set_reals(edit, "sinks", sinks, (size_t)n);
    return true;
}

static void relate_sinks(struct scores *s)
{
    static const struct pe_relation extra = {&pe_fault_sinks_extra, 1, NULL, NULL};
    bool are_believed = pe_edit_has(s->d, s->edit, "sinks");
    if (s->d->evidence.kind != &pe_evidence_probs || are_believed == pe_has_gaps(s->d))
        return;
    struct pe_named *named = are_believed ? NULL : pe_part_add(s->d, &extra, (double)NAN, (double)NAN, s->parts, &s->n);
    if (are_believed)
        add_part(s, &pe_fault_sinks_missing);
    else if (named)
        named->apply = set_sinks;
}

size_t pe_relate_scores(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts)
{
    enum { BITS_OF_A_NUMBER = 20 };
    struct scores s = {.d = d, .edit = edit, .parts = parts};
    if (!pe_measure_scores(d, edit, is_first, &s.measured))
        return 0;
    relate_form(&s);
    relate_scale(&s);
    relate_cap(&s);
    relate_sinks(&s);
    if (!relate_bias(&s) || s.measured.bits <= BITS_OF_A_NUMBER * (1 + s.numbers))
        return 0;
    return s.n;
}
