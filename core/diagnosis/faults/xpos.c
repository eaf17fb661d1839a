/* Faults of xPos: the scale that multiplies queries beside their rotation. */
#include "core/diagnosis/diagnosis.h"

#include <math.h>

#define OF_ROTATED PE_EVIDENCE_BIT(ROTATED)

static bool measure(struct pe_diagnosis *d, struct pe_edit *edit, double scale_base, struct pe_decay *decay)
{
    struct pe_model *m;
    if (!pe_edit_model(d, edit, &m))
        return false;
    bool is_measured = m->has_shape && pe_measured_decay(d, m, pe_edit_real(d, edit, "gamma", 0.4), scale_base, decay);
    pe_model_free(m);
    return is_measured;
}

/* The decimal with the fewest digits that is near enough. */
static double decimal(double x, double error)
{
    double whole = nearbyint(x);
    return fabs(x - whole) <= error ? whole : pe_shortest_decimal(x, error / fabs(x));
}

static bool set_scale_base(struct pe_edit *edit, double now, double wanted)
{
    pe_edit_set_real(edit, "scale_base", wanted);
    return now != wanted;
}

static bool scale_base_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    static const double usual[] = {512, 256, 1024, 128, 2048, 64, 4096, 8192};
    double now = pe_edit_real(d, edit, "scale_base", 512);
    struct pe_decay decay;
    if (alternative < sizeof usual / sizeof *usual)
        return set_scale_base(edit, now, usual[alternative]);
    return measure(d, edit, 0, &decay) &&
           set_scale_base(edit, now, pe_shortest_decimal(decay.scale_base, decay.base_error));
}
const struct pe_fault pe_fault_scale_base_other = {
    FAULT_TEXT("scale_base_other", "size", SIZE, 3, "other scale_base",
               "The scale of xPos changes over another number of positions.",
               "scale_base is {found}; the configuration says {believed}."),
    .schemes = "xpos",
    .evidence = OF_ROTATED,
    .n_alternatives = 9,
    .apply = scale_base_other,
    .n_fits = 1,
    .fit_rank = 1};

/* 0; the words that follow the sequence; a number that is measured. */
enum { AT_0, TORCHSCALE, LUCIDRAINS, MEASURED, N_CENTERS };
static const char *const words[] = {[TORCHSCALE] = "torchscale", [LUCIDRAINS] = "lucidrains"};

static void set_center(struct pe_edit *edit, size_t alternative, double measured)
{
    if (alternative == TORCHSCALE || alternative == LUCIDRAINS)
        pe_edit_set_word(edit, "center", words[alternative]);
    else
        pe_edit_set_real(edit, "center", alternative == AT_0 ? 0 : measured);
}

static bool center_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    struct pe_decay decay = {.center = 0};
    double now = pe_edit_real(d, edit, "center", (double)NAN);
    if (alternative == AT_0 && now == 0)
        return false;
    if ((alternative == TORCHSCALE || alternative == LUCIDRAINS) &&
        pe_edit_is_word(d, edit, "center", words[alternative]))
        return false;
    if (alternative == MEASURED) {
        if (!measure(d, edit, pe_edit_real(d, edit, "scale_base", 512), &decay))
            return false;
        decay.center = decimal(decay.center, decay.center_error);
        if (decay.center == now)
            return false;
    }
    set_center(edit, alternative, decay.center);
    return true;
}
/* A scale has two numbers, so both may be wrong together. */
const struct pe_fault pe_fault_center_other = {
    FAULT_TEXT("center_other", "size", SIZE, 3, "other centre", "The scale of xPos is 1 at another position.",
               "The scale of xPos is 1 at the position {found}; the configuration says {believed}."),
    .schemes = "xpos",
    .evidence = OF_ROTATED,
    .n_alternatives = N_CENTERS,
    .apply = center_other,
    .n_fits = 1,
    .fit_rank = 2,
    .combines_as = PE_KIND_AXES};

/* ---- The scheme ---- */

enum { TO_ROPE = MEASURED, TO_MEASURED, N_SCHEMES };

static bool forget_scale(struct pe_edit *edit)
{
    static const char *const own[] = {"scale_base", "gamma", "center"};
    pe_edit_set_word(edit, "scheme", "rope");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        pe_edit_remove(edit, own[i]);
    return true;
}

/* Both numbers are measured: the slope gives the first, and then all lengths the second. */
static bool measure_both(struct pe_diagnosis *d, struct pe_edit *edit, struct pe_decay *decay)
{
    if (!measure(d, edit, 0, decay))
        return false;
    double base = pe_shortest_decimal(decay->scale_base, decay->base_error);
    return measure(d, edit, base, decay);
}

/* RoPE without the scale where xPos is believed, or the reverse. */
static bool scheme_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    struct pe_decay decay = {.scale_base = 512};
    bool is_rope = pe_same(d->belief.inheritance->scheme->info.name, "rope");
    if (is_rope == (alternative == TO_ROPE) || (alternative == TO_MEASURED && !measure_both(d, edit, &decay)))
        return false;
    if (alternative == TO_ROPE)
        return forget_scale(edit);
    pe_edit_set_word(edit, "scheme", "xpos");
    pe_edit_set_real(edit, "scale_base", decay.scale_base);
    set_center(edit, alternative == TO_MEASURED ? MEASURED : alternative, decimal(decay.center, decay.center_error));
    return true;
}
const struct pe_fault pe_fault_scheme_other = {
    FAULT_TEXT(
        "scheme_other", "size", SIZE, 3, "other scheme",
        "The tensor is of another scheme, e.g. RoPE where xPos is believed.",
        "The scheme is {found}; the configuration says {believed}. xPos is RoPE with a scale that changes with the "
        "position."),
    .schemes = "rope|xpos",
    .evidence = OF_ROTATED,
    .n_alternatives = N_SCHEMES,
    .apply = scheme_other,
    .n_fits = 1,
    .fit_rank = 2};
