/* Faults of biases and buckets: slopes, forms, buckets. */
#include "core/diagnosis/diagnosis.h"

#define OF_BIAS PE_EVIDENCE_BIT(BIAS)

/* ---- Slopes of heads ---- */

/* Named by ../naming/slopes.c. */
const struct pe_fault pe_fault_slopes_other = {
    FAULT_TEXT("slopes_other", "bias", BIAS, 2, "other slopes", "The heads have other slopes.",
               "The slopes are not those of the configuration; `found` lists them."),
    .schemes = "alibi", .evidence = OF_BIAS, .fit_rank = 1};
const struct pe_fault pe_fault_slopes_order = {
    FAULT_TEXT("slopes_order", "bias", BIAS, 3, "other order of slopes",
               "The heads have the right slopes in another order.",
               "The slopes are right, but the heads have them in another order."),
    .schemes = "alibi", .evidence = OF_BIAS, .fit_rank = 1};
const struct pe_fault pe_fault_bias_max_other = {
    FAULT_TEXT("bias_max_other", "bias", BIAS, 2, "other bias_max", "The slopes are computed with another bias_max.",
               "bias_max is {found}; the configuration says {believed}."),
    .schemes = "alibi", .evidence = OF_BIAS,
    PE_VALUES(PE_INTEGER_OF("bias_max", 16), PE_INTEGER_OF("bias_max", 4), PE_INTEGER_OF("bias_max", 8))};

/* Named by ../naming/biases.c. */
const struct pe_fault pe_fault_bias_signed = {
    FAULT_TEXT("bias_signed", "bias", BIAS, 2, "sign of the distance",
               "The bias keeps the sign of the distance, so it grows on one side of the query.",
               "The bias keeps the sign of the distance, so it grows on one side of the query."),
    .schemes = "alibi", .evidence = OF_BIAS};

/* Named by ../naming/windows.c. */
const struct pe_fault pe_fault_index_strides = {
    FAULT_TEXT("index_strides", "bias", BIAS, 2, "other index of a window",
               "The relative index of a window has other strides, as where height and width are mixed up.",
               "The relative index of a window has other strides."),
    .pointer = "", .schemes = "swin|beit", .evidence = OF_BIAS | PE_EVIDENCE_BIT(BUCKETS)};

/* ---- Forms and buckets ---- */

#define OF_MAPS (PE_EVIDENCE_BIT(BIAS) | PE_EVIDENCE_BIT(BUCKETS))

/* ---- Forms ---- */

/* `asymmetric` differs from `symmetric` only by lists of slopes. */
const struct pe_fault pe_fault_form_other = {
    FAULT_TEXT("form_other", "bias", BIAS, 3, "other form", "The bias has another form, e.g. key instead of relative.",
               "The form is {found}; the configuration says {believed}."),
    .schemes = "alibi", .evidence = OF_BIAS,
    PE_VALUES(PE_WORD_OF("form", "symmetric"), PE_WORD_OF("form", "relative"), PE_WORD_OF("form", "key"),
              PE_WORD_OF("form", "key_end"), PE_WORD_OF("form", "key_mask")),
    .combines_as = PE_KIND_SINUSOID};

/* ---- Buckets of T5 ---- */

const struct pe_fault pe_fault_bidirectional_other = {
    FAULT_TEXT("bidirectional_other", "bias", BIAS, 3, "other bidirectional",
               "Buckets are computed for an encoder instead of a decoder, or the other way round.",
               "bidirectional is {found}; the configuration says {believed}."),

    .schemes = "t5", .evidence = OF_MAPS,
    PE_VALUES(PE_TRUTH_OF("bidirectional", true), PE_TRUTH_OF("bidirectional", false))};

#define FARTHEST(x) PE_INTEGER_OF("max_distance", x)
const struct pe_fault pe_fault_max_distance_other = {
    FAULT_TEXT("max_distance_other", "bias", BIAS, 3, "other max_distance", "Buckets end at another distance.",
               "max_distance is {found}; the configuration says {believed}."),
    .schemes = "t5", .evidence = OF_MAPS,
    PE_VALUES(FARTHEST(64), FARTHEST(128), FARTHEST(256), FARTHEST(512), FARTHEST(800), FARTHEST(96), FARTHEST(100),
              FARTHEST(160), FARTHEST(192), FARTHEST(200), FARTHEST(224), FARTHEST(300), FARTHEST(320), FARTHEST(384),
              FARTHEST(400), FARTHEST(448), FARTHEST(480), FARTHEST(500), FARTHEST(576), FARTHEST(600), FARTHEST(640),
              FARTHEST(700))};

/* ---- Parameters of the other schemes ---- */

const struct pe_fault pe_fault_kind_other = {
    FAULT_TEXT("kind_other", "bias", BIAS, 3, "other kind", "KERPLE's bias is of the other kind: log or power.",
               "The kind is {found}; the configuration says {believed}."),

    .schemes = "kerple", .evidence = OF_BIAS, PE_VALUES(PE_WORD_OF("kind", "log"), PE_WORD_OF("kind", "power"))};
