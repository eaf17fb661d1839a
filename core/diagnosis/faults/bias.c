/* Faults of biases and buckets: forms, buckets. */
#include "core/diagnosis/diagnosis.h"

#define OF_BIAS PE_EVIDENCE_BIT(BIAS)
#define OF_MAPS (PE_EVIDENCE_BIT(BIAS) | PE_EVIDENCE_BIT(BUCKETS))

/* ---- Forms ---- */

/* `asymmetric` differs from `symmetric` only by lists of slopes. */
static const char *const forms[] = {"symmetric", "relative", "key", "key_end", "key_mask"};

static bool form_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    if (pe_edit_is_word(d, edit, "form", forms[alternative]))
        return false;
    pe_edit_set_word(edit, "form", forms[alternative]);
    if (pe_edit_has(d, edit, "slopes_left"))
        pe_edit_remove(edit, "slopes_left");
    if (pe_edit_has(d, edit, "slopes_right"))
        pe_edit_remove(edit, "slopes_right");
    return true;
}
const struct pe_fault pe_fault_form_other = {FAULT_TEXT("form_other", "bias", BIAS, 3, "other form",
                                                        "The bias has another form, e.g. key instead of relative.",
                                                        "The form is {found}; the configuration says {believed}."),
                                             .schemes = "alibi",
                                             .evidence = OF_BIAS,
                                             .n_alternatives = sizeof forms / sizeof *forms,
                                             .apply = form_other,
                                             .combines_as = PE_KIND_SINUSOID};

/* ---- Buckets of T5 ---- */

static bool bidirectional_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    (void)alternative;
    pe_edit_set_boolean(edit, "bidirectional", !pe_edit_is_true(d, edit, "bidirectional", true));
    return true;
}
const struct pe_fault pe_fault_bidirectional_other = {
    FAULT_TEXT("bidirectional_other", "bias", BIAS, 3, "other bidirectional",
               "Buckets are computed for an encoder instead of a decoder, or the other way round.",
               "bidirectional is {found}; the configuration says {believed}."),

    .schemes = "t5", .evidence = OF_MAPS, .n_alternatives = 1, .apply = bidirectional_other};

static const int64_t distances[] = {64,  128, 256, 512, 800, 96,  100, 160, 192, 200, 224,
                                    300, 320, 384, 400, 448, 480, 500, 576, 600, 640, 700};

static bool max_distance_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    if (pe_edit_integer(d, edit, "max_distance", 128) == distances[alternative])
        return false;
    pe_edit_set_integer(edit, "max_distance", distances[alternative]);
    return true;
}
const struct pe_fault pe_fault_max_distance_other = {
    FAULT_TEXT("max_distance_other", "bias", BIAS, 3, "other max_distance", "Buckets end at another distance.",
               "max_distance is {found}; the configuration says {believed}."),
    .schemes = "t5", .evidence = OF_MAPS, .n_alternatives = sizeof distances / sizeof *distances,
    .apply = max_distance_other};

/* ---- Parameters of the other schemes ---- */

static bool kind_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    (void)alternative;
    pe_edit_set_word(edit, "kind", pe_edit_is_word(d, edit, "kind", "power") ? "log" : "power");
    return true;
}
const struct pe_fault pe_fault_kind_other = {
    FAULT_TEXT("kind_other", "bias", BIAS, 3, "other kind", "KERPLE's bias is of the other kind: log or power.",
               "The kind is {found}; the configuration says {believed}."),

    .schemes = "kerple", .evidence = OF_BIAS, .n_alternatives = 1, .apply = kind_other};
