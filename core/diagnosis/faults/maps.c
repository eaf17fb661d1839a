/* Faults of attention maps: what multiplies and caps the scores, what becomes of the bias, and where the map was
 * taken. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>
#include <string.h>

#define OF_SCORES PE_EVIDENCE_BIT(MAPS)

/* ---- The softmax scale: named by ../naming/scores.c ---- */

#define SCALE_IS "The scores have the softmax scale {found}; the configuration gives {believed}."

const struct pe_fault pe_fault_softmax_scale_missing = {
    FAULT_TEXT("softmax_scale_missing", "size", SIZE, 1, "missing softmax scale", "q·k is not multiplied by a scale.",
               "The scores have no softmax scale; the configuration gives {believed}."),
    .evidence = OF_SCORES};
const struct pe_fault pe_fault_softmax_scale_twice = {
    FAULT_TEXT("softmax_scale_twice", "size", SIZE, 2, "softmax scale applied twice",
               "q·k is multiplied by the softmax scale twice.",
               "The softmax scale {believed} was applied twice: the scores have {found}."),
    .evidence = OF_SCORES};
const struct pe_fault pe_fault_softmax_scale_other = {FAULT_TEXT("softmax_scale_other", "size", SIZE, 3,
                                                                 "other softmax scale",
                                                                 "q·k is multiplied by another scale.", SCALE_IS),
                                                      .evidence = OF_SCORES};

/* ---- The magnitude of a scaling, in the softmax scale ---- */

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

/* ---- The cap ---- */

const struct pe_fault pe_fault_softcap_missing = {
    FAULT_TEXT("softcap_missing", "size", PARAMETER, 2, "missing cap", "The scores are not capped.",
               "The scores are not capped; the configuration caps them at {believed}."),
    .pointer = "softcap", .evidence = OF_SCORES, PE_VALUES(PE_NONE_OF("softcap"))};
const struct pe_fault pe_fault_softcap_other = {
    FAULT_TEXT("softcap_other", "size", PARAMETER, 4, "other cap", "The scores are capped at another number.",
               "The scores are capped at {found}; the configuration says {believed}."),
    .evidence = OF_SCORES}; /* ../naming/scores.c */

/* ---- Sinks ---- */

/* Sinks show in probabilities alone. */
static bool show_sinks(const struct pe_diagnosis *d) { return d->evidence.kind == &pe_evidence_probs; }

/* A row of probabilities with the sum S, whose scores have the logarithm L of their sum of exponentials: its sink is
 * L + ln((1 - S)/S), which is known as well as S·(1 - S). */
struct sink {
    double weighted, weight; /* sums over rows */
};

static double sum_of_row(const struct pe_evidence *e, uint64_t row, double *room)
{
    double sum = 0;
    pe_evidence_read(e, 0, row, 0, (size_t)e->row_len, room);
    for (uint64_t j = 0; j < e->row_len; j++)
        sum += room[j];
    return sum;
}

/* room: [row_len]. */
static void add_row_of_sink(const struct pe_model *scores, uint64_t row, double *room, struct sink *sink)
{
    size_t n = (size_t)scores->d->evidence.row_len;
    double most = -HUGE_VAL, total = 0, sum = sum_of_row(&scores->d->evidence, row, room);
    if (!(sum > 0 && sum < 1))
        return;
    pe_model_fill(scores, 0, row, 0, n, room);
    for (size_t j = 0; j < n; j++)
        most = fmax(most, room[j]);
    for (size_t j = 0; j < n; j++)
        total += exp(room[j] - most);
    double weight = sum * (1 - sum) * sum * (1 - sum);
    if (!isfinite(most))
        return;
    sink->weighted += weight * (most + log(total) + log((1 - sum) / sum));
    sink->weight += weight;
}

/* How far the sum of a row of right probabilities may be from 1. */
static double noise_of_sum(const struct pe_diagnosis *d)
{
    return 4 * pe_evidence_noise(&d->evidence) * sqrt((double)d->evidence.row_len);
}

/* A few rows of each head, spread over its queries. */
enum { ROWS_OF_SINK = 8 };

static uint64_t row_of_sink(uint64_t first, uint64_t n, uint64_t i)
{
    return first + (n > ROWS_OF_SINK ? (i * (n - 1) + (ROWS_OF_SINK - 1) / 2) / (ROWS_OF_SINK - 1) : i);
}

/* Without memory, or where some head's rows do not show one: false. A row that sums to 1 shows that its sink is far
 * below its scores, which is as good as none. */
static bool fit_heads(const struct pe_model *scores, size_t n_heads, double *room, double *sinks)
{
    const double none = -1e4, noise = noise_of_sum(scores->d);
    uint64_t n_rows = scores->d->evidence.n_rows, n = n_rows / n_heads;
    bool is_any = false;
    for (size_t h = 0; h < n_heads && !pe_is_cancelled(); h++) {
        struct sink sink = {0, 0};
        for (uint64_t i = 0; i < ROWS_OF_SINK && i < n; i++)
            add_row_of_sink(scores, row_of_sink(h * n, n, i), room, &sink);
        double least = noise / sqrt(sink.weight), x = sink.weighted / sink.weight;
        bool is_seen = sink.weight > 0 && least < 0.5;
        sinks[h] = is_seen ? pe_shortest_decimal(x, fmin(0.5, least / (16 * fabs(x)))) : none;
        is_any |= is_seen;
    }
    return is_any;
}

/* Does any row sum to less than 1? Most maps are without sinks, and end here. */
static bool has_gaps(const struct pe_diagnosis *d, double *room)
{
    const struct pe_sample *s = &d->sample;
    for (size_t i = 0; i < s->n_pieces; i++)
        if (s->pieces[i].col0 == 0) {
            double sum = sum_of_row(&d->evidence, s->pieces[i].row, room);
            if (sum > 0 && sum < 1 - noise_of_sum(d))
                return true;
        }
    return false;
}

static size_t count_fits(const struct pe_diagnosis *d) { return show_sinks(d); }

static bool fit_sinks(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    struct pe_edit changed = *edit;
    struct pe_model *model;
    int64_t n_heads = pe_edit_integer(d, edit, "num_heads", 0);
    (void)i;
    bool may = show_sinks(d) && n_heads > 0 && d->evidence.n_rows % (uint64_t)n_heads == 0 &&
               !pe_edit_has(d, edit, "sinks") && edit->transforms.stage == PE_STAGE_AS_IS;
    double *room = may ? pe_edit_room(edit, ((size_t)n_heads + (size_t)d->evidence.row_len) * sizeof *room) : NULL;
    if (!room || !has_gaps(d, room))
        return false;
    changed.n_owned = 0;
    changed.transforms.stage = PE_STAGE_OTHER;
    if (!pe_edit_model(d, &changed, &model))
        return false;
    double *sinks = room + d->evidence.row_len;
    bool done = fit_heads(model, (size_t)n_heads, room, sinks);
    pe_model_free(model);
    if (done)
        pe_edit_set_reals(edit, "sinks", sinks, (size_t)n_heads);
    return done;
}

const struct pe_fault pe_fault_sinks_missing = {
    FAULT_TEXT("sinks_missing", "size", PARAMETER, 3, "missing sinks", "The rows of probabilities have no sinks.",
               "The rows of probabilities sum to 1, but the configuration has a sink in each head, which takes a part "
               "of every row."),
    .pointer = "sinks", .evidence = OF_SCORES, .count = count_fits, PE_VALUES(PE_NONE_OF("sinks"))};
const struct pe_fault pe_fault_sinks_extra = {
    FAULT_TEXT("sinks_extra", "size", PARAMETER, 4, "sinks",
               "The rows of probabilities sum to less than 1: each head has a sink, a logit without a value.",
               "The rows of probabilities sum to less than 1: each head has a sink, a logit without a value; `found` "
               "has one for each head."),
    .evidence = OF_SCORES,
    .count = count_fits,
    .apply = fit_sinks,
    .n_fits = 1,
    .fit_rank = 2};

/* ---- The bias ---- */

static bool change_bias(struct pe_edit *edit, enum pe_bias_change change)
{
    edit->transforms.bias = change;
    return true;
}

#define BIAS_FAULT(name, change, surprise, label, summary, detail)                                                     \
    static bool name(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)                                           \
    {                                                                                                                  \
        (void)d;                                                                                                       \
        (void)i;                                                                                                       \
        return change_bias(edit, change);                                                                              \
    }                                                                                                                  \
    const struct pe_fault pe_fault_##name = {FAULT_TEXT(#name, "bias", BIAS, surprise, label, summary, detail),        \
                                             .pointer = "scheme",                                                      \
                                             .schemes = "alibi|t5|kerple|sandwich|fire",                               \
                                             .evidence = OF_SCORES,                                                    \
                                             .n_alternatives = 1,                                                      \
                                             .apply = name}

BIAS_FAULT(bias_missing, PE_BIAS_MISSING, 2, "missing bias", "No bias was added to the scores.",
           "The scores have no bias; the configuration adds one.");
BIAS_FAULT(bias_before_scale, PE_BIAS_BEFORE_SCALE, 2, "bias added before the scale",
           "The softmax scale multiplies the bias too.",
           "The bias was added before the softmax scale, which multiplies it too.");
BIAS_FAULT(bias_twice, PE_BIAS_TWICE, 4, "bias added twice", "The bias was added twice.", "The bias was added twice.");
BIAS_FAULT(bias_unsigned, PE_BIAS_UNSIGNED, 4, "bias with the opposite sign", "The bias has the opposite sign.",
           "The bias has the opposite sign, so distant keys are favoured.");

/* ---- Where the map was taken ---- */

/* Before the bias and the mask: a request without them, and of q·k itself without a scale. */
static bool take_before(struct pe_diagnosis *d, enum pe_stage stage, struct pe_edit *edit)
{
    static const char *const later[] = {"softcap", "window", "window_right", "key_mask"};
    enum { N_LATER = sizeof later / sizeof *later };
    size_t n = pe_edit_is_true(d, edit, "causal", false);
    bool has_bias = pe_evidence_is_output(d, "bias");
    if (n)
        pe_edit_set_boolean(edit, "causal", false);
    for (size_t i = stage == PE_STAGE_UNMASKED; i < N_LATER; i++)
        if (pe_edit_has(d, edit, later[i])) {
            pe_edit_remove(edit, later[i]);
            n++;
        }
    if (stage != PE_STAGE_UNMASKED && has_bias) {
        edit->transforms.bias = PE_BIAS_MISSING;
        n++;
    }
    if (stage == PE_STAGE_RAW && pe_edit_real(d, edit, "softmax_scale", 1) != 1) {
        pe_edit_set_integer(edit, "softmax_scale", 1);
        n++;
    }
    edit->transforms.stage = stage;
    return n > 1; /* one step alone is a fault of its own */
}

/* Of scores, then of probabilities. */
static bool stage_other(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    static const enum pe_stage stages[] = {PE_STAGE_OTHER, PE_STAGE_LOG_PROBS, PE_STAGE_RAW, PE_STAGE_SCALED,
                                           PE_STAGE_UNMASKED};
    bool are_scores = d->evidence.kind == &pe_evidence_scores;
    if (stages[i] > PE_STAGE_LOG_PROBS)
        return are_scores && take_before(d, stages[i], edit);
    edit->transforms.stage = stages[i];
    return true;
}

static const char *const of_stages[] = {
    "The tensor has probabilities where scores are expected, or scores where probabilities are.",
    "The tensor has logarithms of probabilities.",
    "The tensor is q·k itself, before the scale, the bias and the mask.",
    "The tensor is q·k times the scale, before the cap, the bias and the mask.",
    "The tensor was taken before the mask.",
};

const struct pe_fault pe_fault_stage_other = {
    FAULT_TEXTS("stage_other", "sense", SENSE, 3, "taken at another place",
                "The tensor was taken before or after the place that its name states.", of_stages),
    .pointer = "",
    .is_of_tensor = true,
    .evidence = OF_SCORES,
    .n_alternatives = 5,
    .apply = stage_other};
