/* Faults of layout: which channels are a pair. */
#include "core/diagnosis/diagnosis.h"

#include <stdlib.h>

static const char *const layouts[] = {"interleaved", "half", "interleaved_to_half", "half_per_axis", "vjepa2"};

static bool swap_layout(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    if (!pe_edit_value(d, edit, "layout") || pe_edit_is_word(d, edit, "layout", layouts[i]))
        return false;
    pe_edit_set_word(edit, "layout", layouts[i]);
    return true;
}

enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

/* Tables of pairs are the same in every layout. */
static size_t count_layouts(const struct pe_diagnosis *d)
{
    return pe_edit_is_word(d, NULL, "form", "pairs") ? 0 : N_LAYOUTS;
}

/* One sentence for each alternative, in the order of faults/layout.c. */
#define HAS_LAYOUT "The tensor has the layout {found}; the configuration says {believed}."
static const char *const of_layouts[] = {
    HAS_LAYOUT " Meta's code is interleaved and Hugging Face's is half: between them, the rows of w_q and w_k must be "
               "permuted. Keep interleaved, or permute the weights; here one was done without the other.",
    HAS_LAYOUT " Meta's code is interleaved and Hugging Face's is half: if the weights are Meta's, the permutation of "
               "the rows of w_q and w_k was forgotten.",
    HAS_LAYOUT " q is in the order of Meta's weights and q_out in that of weights converted for Hugging Face's code.",
    HAS_LAYOUT,
    HAS_LAYOUT,
};

const struct pe_fault pe_fault_layout_swapped = {
    FAULT_TEXTS("layout_swapped", "layout", LAYOUT, 1, "other layout",
                "Channels are paired by another layout, e.g. half instead of interleaved.", of_layouts),

    .schemes = "rope|xpos", .n_alternatives = N_LAYOUTS, .count = count_layouts, .apply = swap_layout};
/* Sinusoidal encodings have the first two. Weights have no part in them, so the sentence is another. */
const struct pe_fault pe_fault_sinusoid_layout = {
    FAULT_TEXT("layout_swapped", "sinusoid", LAYOUT, 1, "other layout",
               "Sines and cosines are neighbours instead of halves, or the reverse.", HAS_LAYOUT),

    .schemes = "sinusoidal", .not_of = PE_EVIDENCE_BIT(LADDER), .n_alternatives = 2, .apply = swap_layout};

/* ---- Channels in another order ---- */

/* What was done to the rows of w_q, or to q: the conversion from interleaved to half, so many times; with another
 * number of heads; then any other order, of q or of what was rotated. */
enum { TWICE, REVERSED, ONCE, REVERSED_TWICE, OTHER_HEADS, ANY_OF_Q, ANY_AFTER, N_ORDERS };
static const int times_of[] = {[TWICE] = 2, [REVERSED] = -1, [ONCE] = 1, [REVERSED_TWICE] = -2, [OTHER_HEADS] = 1};

/* Row i of a converted block of n rows is this row of the old one: first those that are even, then the odd ones. */
static size_t converted(size_t i, size_t n) { return i < n / 2 ? 2 * i : 2 * i - n + 1; }
static size_t restored(size_t i, size_t n) { return i % 2 ? n / 2 + i / 2 : i / 2; }

static size_t convert(size_t i, size_t n, int times)
{
    for (int k = 0; k < abs(times); k++)
        i = times > 0 ? converted(i, n) : restored(i, n);
    return i;
}

/* Channels first … end-1 are converted, in blocks of n; false: nothing moves. */
static bool set_order(uint32_t *order, size_t n_all, size_t first, size_t end, size_t n, int times)
{
    bool is_moved = false;
    for (size_t j = 0; j < n_all; j++) {
        size_t in = (j - first) % n;
        order[j] = (uint32_t)(j >= first && j < end ? j - in + convert(in, n, times) : j);
        is_moved |= order[j] != j;
    }
    return is_moved;
}

static size_t heads_of(const struct pe_diagnosis *d)
{
    return d->evidence.axes.n ? (size_t)d->evidence.axes.n_heads : 1;
}

/* Does the order agree under the layout in use, or under the one that Hugging Face's or Meta's code has? */
static bool find_layout(struct pe_diagnosis *d, struct pe_edit *edit, struct pe_width *w)
{
    bool is_half = pe_edit_is_word(d, edit, "layout", "half"),
         is_plain = is_half || pe_edit_is_word(d, edit, "layout", "interleaved");
    for (int i = 0; i < 2; i++) {
        w->is_half = (i == 0) == (is_half || !is_plain);
        if (!pe_channels_agree(d, &edit->transforms.channels, w))
            continue;
        if (i > 0 || !is_plain)
            pe_edit_set_word(edit, "layout", w->is_half ? "half" : "interleaved");
        return true;
    }
    return false;
}

/* The conversion with another number of heads, as when k's rows are converted with the heads of q. */
static bool other_heads(struct pe_diagnosis *d, struct pe_edit *edit, struct pe_width *w)
{
    size_t heads = heads_of(d), all = heads * w->n;
    if (!d->evidence.axes.n || pe_edit_has(d, edit, "tensor_layout")) /* rows of other heads are read as believed */
        return false;
    uint32_t *order = w->n == (size_t)d->evidence.row_len ? pe_edit_room(edit, all * sizeof *order) : NULL;
    for (size_t n = 1; order && n <= 16 * heads; n++) {
        bool is_other = n != heads && (heads % n == 0 || n % heads == 0) && all % (2 * n) == 0;
        if (!is_other || !set_order(order, all, 0, all, all / n, 1))
            continue;
        edit->transforms.channels = (struct pe_channels){.order = order, .n = all, .times = 1, .heads = (int64_t)n};
        if (find_layout(d, edit, w))
            return true;
    }
    return false;
}

/* An order that has no name, under each of the plain layouts. */
static bool read_order(struct pe_diagnosis *d, bool is_after, struct pe_edit *edit)
{
    static const char *const plain[] = {NULL, "half", "interleaved"};
    size_t width = (size_t)d->evidence.row_len;
    uint32_t *order = pe_edit_room(edit, width * sizeof *order);
    bool is_scaled = d->belief.model->columns && d->belief.model->columns[0].ah != 1; /* some channels of a row only */
    edit->is_hopeless = !is_scaled && !pe_channels_keep_sizes(d);
    for (size_t i = 0; order && !edit->is_hopeless && i < sizeof plain / sizeof *plain; i++) {
        struct pe_model *m;
        if (plain[i] && pe_edit_is_word(d, edit, "layout", plain[i]))
            continue;
        if (plain[i])
            pe_edit_set_word(edit, "layout", plain[i]);
        if (!pe_edit_model(d, edit, &m))
            return false;
        bool is_read = m->has_shape && pe_channels_read(d, m, is_after, order);
        pe_model_free(m);
        if (is_read) {
            edit->transforms.channels = (struct pe_channels){.order = order, .n = width, .is_after = is_after};
            return true;
        }
    }
    return false;
}

static bool permute(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    size_t width = (size_t)d->evidence.row_len;
    struct pe_width w = {.first = (size_t)pe_edit_integer(d, edit, "rotary_offset", 0),
                         .n = (size_t)pe_edit_integer(d, edit, "rotary_dim", (int64_t)width)};
    if (alternative >= ANY_OF_Q)
        return read_order(d, alternative == ANY_AFTER, edit);
    if (w.n < 4 || w.first + w.n > width || pe_edit_has(d, edit, "axes_dim"))
        return false;
    if (alternative == OTHER_HEADS)
        return other_heads(d, edit, &w);
    uint32_t *order = pe_edit_room(edit, width * sizeof *order);
    int times = times_of[alternative];
    if (!order || !set_order(order, width, w.first, w.first + w.n, w.n, times))
        return false;
    edit->transforms.channels =
        (struct pe_channels){.order = order, .n = width, .times = times, .heads = (int64_t)heads_of(d)};
    return find_layout(d, edit, &w);
}

#define CONVERSION "the conversion of Meta's weights for Hugging Face's code (interleaved to half)."
#define INVERSE " This is the inverse of " CONVERSION
#define FROM " Channel i of a head is channel found[i] of q."
#define FROM_ALL " Channel i, counted through the heads, is channel found[i] of q."
static const char *const of_orders[] = {
    "The channels of q were permuted twice before they were rotated: weights that already had it got " CONVERSION FROM,
    "The channels of q were permuted in the wrong direction before they were rotated." INVERSE FROM,
    "The channels of q were permuted before they were rotated, which the configuration does not say, by " CONVERSION
        FROM,
    "The channels of q were permuted twice in the wrong direction before they were rotated." INVERSE FROM,
    ("The channels of q were permuted for {heads} heads before they were rotated, which is not the number of q, as "
     "when k's rows are converted with the heads of q." FROM_ALL),
    "The channels of q were permuted before they were rotated, in an order that has no name." FROM,
    "The channels were permuted after the rotation: channel i of q_out is channel found[i] of the rotated vector.",
};

const struct pe_fault pe_fault_channels_permuted = {
    FAULT_TEXTS("channels_permuted", "layout", LAYOUT, 3, "channels permuted",
                "The channels of a head are in another order, e.g. because the rows of w_q were permuted twice.",
                of_orders),
    .schemes = "rope",
    .evidence = PE_EVIDENCE_BIT(ROTATED),
    .is_of_tensor = true,
    .n_alternatives = N_ORDERS,
    .apply = permute,
    .n_fits = 2,
    .fit_rank = 1,
    .fit_cost = 3};
