/* Faults of axes: which coordinate a pair follows. */
#include "core/diagnosis/faults/places.h"

/* Permutations of two and of three axes, without the one that changes nothing; more axes have their last two
 * exchanged. */
static const unsigned char orders[][3] = {{1, 0, 2}, {0, 2, 1}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
enum { N_ORDERS = sizeof orders / sizeof *orders };

static bool reorder(struct pe_diagnosis *d, struct pe_edit *edit, const unsigned *order)
{
    struct pe_model *m;
    if (!pe_edit_model(d, edit, &m))
        return false;
    bool done = pe_places_reorder(d, edit, m->plan, order);
    pe_model_free(m);
    return done;
}

static bool swap_axes(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    unsigned n = d->belief.model->plan->seq.n_axes, order[PE_AXES_MAX];
    if (n < 2 || (n != 3 && i > 0))
        return false;
    for (unsigned a = 0; a < n; a++)
        order[a] = n == 3 ? orders[i][a] : a;
    if (n != 3) {
        order[n - 2] = n - 1;
        order[n - 1] = n - 2;
    }
    return reorder(d, edit, order);
}

#define OF_WAVES (PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(ENCODING))

/* Not fitted, but applied after the faults that choose the positions. */
const struct pe_fault pe_fault_axes_swapped = {.schemes = "rope|sinusoidal",
                                               .evidence = OF_WAVES,
                                               .n_alternatives = N_ORDERS,
                                               .apply = swap_axes,
                                               .n_fits = N_ORDERS,
                                               .fit_rank = 1};

static bool permute_sections(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    const struct pe_value *v = pe_edit_value(d, edit, "mrope_section");
    double sections[3];
    bool differs = false;
    if (!v || v->kind != PE_ARRAY || v->array.shape[0] != 3)
        return false;
    struct pe_reals list = {v->array, 3};
    for (unsigned a = 0; a < 3; a++) {
        sections[a] = pe_real_at(&list, orders[i][a]);
        differs |= sections[a] != pe_real_at(&list, a);
    }
    if (differs)
        pe_edit_set_reals(edit, "mrope_section", sections, 3);
    return differs;
}

const struct pe_fault pe_fault_section_order = {
    .schemes = "rope", .evidence = OF_WAVES, .n_alternatives = N_ORDERS, .apply = permute_sections};

static const char *const channels[] = {"mrope", "mrope_interleaved"};

static bool set_channels(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    if (d->belief.model->plan->seq.n_axes < 2 || pe_edit_is_word(d, edit, "channels", channels[i]))
        return false;
    pe_edit_set_word(edit, "channels", channels[i]);
    pe_edit_remove(edit, "axes_dim");
    pe_edit_remove(edit, "axis_order");
    return true;
}

const struct pe_fault pe_fault_channels_other = {
    .schemes = "rope", .evidence = OF_WAVES, .n_alternatives = 2, .apply = set_channels};
