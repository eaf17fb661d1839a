/* Faults of axes: in which order the tensor has them, and which coordinate a pair follows. */
#include "core/diagnosis/diagnosis.h"

/* ---- Axes of the tensor ---- */

/* Without a batch axis, [tokens, heads, head_dim] is rather a list of tokens than a batch of one. */
static const enum pe_tensor_layout memory_layouts[] = {PE_BHND, PE_NHD, PE_BNHD, PE_NBHD, PE_FLAT, PE_BFLAT};

static bool are_alike(const struct pe_operand *a, const struct pe_operand *b)
{
    return a->n == b->n && a->row_step == b->row_step && a->batch_step == b->batch_step && a->n_batches == b->n_batches;
}

/* A leading axis of length 1 is rather a batch of one. */
static bool place(const struct pe_diagnosis *d, size_t i, struct pe_operand *axes)
{
    enum { USUAL_RANK = 4 };
    unsigned rank = d->evidence.tensors[0].rank;
    return pe_evidence_axes(&d->evidence, pe_tensor_layout_words[memory_layouts[i]], axes) &&
           (axes->tensor.rank == rank || rank > USUAL_RANK);
}

/* Does the belief, or an earlier alternative, see the same rows at the same positions? */
static bool is_repeated(const struct pe_diagnosis *d, size_t i, const struct pe_operand *axes)
{
    struct pe_operand other;
    bool is_known = are_alike(&d->evidence.axes, axes);
    for (size_t j = 0; j < i && !is_known; j++)
        is_known = place(d, j, &other) && are_alike(&other, axes);
    return is_known;
}

static bool set_tensor_layout(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    struct pe_operand axes;
    if (!place(d, i, &axes) || is_repeated(d, i, &axes))
        return false;
    if (axes.n == 1 && d->belief.n > 1) /* nothing is rotated then, which is another mistake */
        return false;
    pe_edit_set_word(edit, "tensor_layout", pe_tensor_layout_words[memory_layouts[i]]);
    if (d->belief.is_len_fixed || pe_edit_has(d, edit, "len"))
        pe_edit_set_integer(edit, "len", (int64_t)axes.n);
    return true;
}

const struct pe_fault pe_fault_tensor_layout_other = {
    FAULT_TEXT(
        "tensor_layout_other", "axes", AXES, 2, "other order of axes",
        "The tensor has batch, heads, positions and channels in another order, so other rows are rotated together.",
        "The axes of the tensor have the order {found} (b batch, h heads, n positions, d channels); the configuration "
        "has {believed}."),
    .evidence = PE_EVIDENCE_BIT(ROTATED),
    .is_of_tensor = true,
    .n_alternatives = PE_N_TENSOR_LAYOUTS,
    .apply = set_tensor_layout,
    .cures = pe_cures_axes};

/* ---- Axes of coordinates ---- */

/* Permutations of two and of three axes, without the one that changes nothing; more axes have their last two
 * exchanged. */
static const unsigned char orders[][3] = {{1, 0, 2}, {0, 2, 1}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
enum { N_ORDERS = sizeof orders / sizeof *orders };

static bool reorder(struct pe_diagnosis *d, struct pe_edit *edit, const unsigned *order)
{
    struct pe_model *m;
    if (!pe_edit_model(d, edit, &m))
        return false;
    bool done = pe_edit_reorder(d, edit, m->plan, order);
    pe_model_free(m);
    return done;
}

/* The order of n axes of an alternative; false: it has none. */
static bool order_of(size_t i, unsigned n, unsigned *order)
{
    for (unsigned a = 0; a < n; a++)
        order[a] = n == 3 ? orders[i][a] : a;
    if (n >= 2 && n != 3) {
        order[n - 2] = n - 1;
        order[n - 1] = n - 2;
    }
    return n == 3 || (n >= 2 && i == 0);
}

/* Numbers of a list in another order; false: nothing changes. */
static bool permute(struct pe_edit *edit, const struct pe_tensor *list, size_t i, double *out)
{
    unsigned order[PE_AXES_MAX];
    struct pe_reals reals = {*list, list->shape[0]};
    bool differs = false;
    if (edit->failed || list->rank != 1 || list->shape[0] > PE_AXES_MAX || !order_of(i, (unsigned)reals.n, order))
        return false;
    for (unsigned a = 0; a < reals.n; a++) {
        out[a] = pe_real_at(&reals, order[a]);
        differs |= out[a] != pe_real_at(&reals, a);
    }
    return differs;
}

static bool permute_field(struct pe_diagnosis *d, size_t i, struct pe_edit *edit, const char *name)
{
    const struct pe_value *v = pe_edit_value(d, edit, name);
    double out[PE_AXES_MAX];
    if (!v || v->kind != PE_ARRAY || !permute(edit, &v->array, i, out))
        return false;
    pe_edit_set_reals(edit, name, out, (size_t)v->array.shape[0]);
    return true;
}

/* Room for a copy of one segment, and for its grid. */
struct turned {
    struct pe_field fields[8];
    double grid[PE_AXES_MAX];
};

/* A segment with its height and width exchanged; itself, if it has no grid. */
static struct pe_value turn_segment(struct pe_edit *edit, const struct pe_value *segment, struct turned *room)
{
    struct pe_value copy = *segment;
    size_t n = segment->kind == PE_OBJECT ? segment->object.n : 0;
    if (n > sizeof room->fields / sizeof *room->fields)
        return copy;
    for (size_t j = 0; j < n; j++) {
        room->fields[j] = segment->object.fields[j];
        struct pe_value *v = &room->fields[j].value;
        if (!pe_same(room->fields[j].name, "grid") || v->kind != PE_ARRAY || !permute(edit, &v->array, 1, room->grid))
            continue;
        v->array.dtype = PE_F64;
        v->array.data = room->grid;
        copy.object.fields = room->fields;
    }
    return copy;
}

static bool turn_segments(struct pe_diagnosis *d, struct pe_edit *edit)
{
    const struct pe_value *v = pe_edit_value(d, edit, "segments");
    size_t n = v && v->kind == PE_LIST ? v->list.n : 0;
    bool differs = false;
    struct pe_value *items = n ? pe_edit_room(edit, n * sizeof *items) : NULL;
    struct turned *room = items ? pe_edit_room(edit, n * sizeof *room) : NULL;
    for (size_t j = 0; room && j < n; j++) {
        items[j] = turn_segment(edit, &v->list.items[j], &room[j]);
        differs |= items[j].kind == PE_OBJECT && items[j].object.fields == room[j].fields;
    }
    if (differs)
        pe_edit_set(edit, "segments", (struct pe_value){.kind = PE_LIST, .list = {items, n}});
    return differs;
}

/* The sides of the grid, or of every image: width by height instead of height by width. */
static bool turn_grid(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    return pe_edit_value(d, edit, "segments") ? i == 0 && turn_segments(d, edit) : permute_field(d, i, edit, "grid");
}

static size_t count_orders(const struct pe_diagnosis *d)
{
    return d->belief.model->plan->seq.n_axes > 1 ? 3 * N_ORDERS : 0;
}

/* First the sides of the grid, then the order in which its tokens are counted (columns first), then the positions; the
 * rows of finished ids are exchanged at the end of this file. */
static bool swap_axes(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    unsigned order[PE_AXES_MAX];
    size_t j = i % N_ORDERS;
    if (i < N_ORDERS)
        return turn_grid(d, j, edit);
    if (d->evidence.kind->id == PE_OF_IDS || (i < 2 * N_ORDERS && !permute_field(d, j, edit, "grid")))
        return false;
    return order_of(j, d->belief.model->plan->seq.n_axes, order) && reorder(d, edit, order);
}

#define OF_WAVES (PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(ENCODING))

#define SIDES "The sides of the grid have changed places, as width for height."
#define COLUMNS "The tokens of the grid are ordered column by column; the configuration orders them row by row."
#define EXCHANGED "Two axes of the positions have changed places."
/* Five permutations of three axes each: faults/axes.c. */
static const char *const of_axes[] = {SIDES,   SIDES,   SIDES,     SIDES,     SIDES,     COLUMNS,   COLUMNS,  COLUMNS,
                                      COLUMNS, COLUMNS, EXCHANGED, EXCHANGED, EXCHANGED, EXCHANGED, EXCHANGED};

/* Positions are not fitted, but exchanged after the faults that choose them. */
const struct pe_fault pe_fault_axes_swapped = {FAULT_TEXTS("axes_swapped", "axes", AXES, 2, "axes exchanged",
                                                           "Two axes of the positions have changed places.", of_axes),
                                               .role = PE_ROLE_AXES_EXCHANGED,
                                               .schemes = "rope|sinusoidal|fourier",
                                               .evidence = OF_WAVES | PE_EVIDENCE_BIT(IDS),
                                               .count = count_orders,
                                               .apply = swap_axes,
                                               .n_fits = 2 * N_ORDERS,
                                               .fit_rank = 1};

static bool permute_sections(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    return permute_field(d, i % N_ORDERS, edit, i < N_ORDERS ? "mrope_section" : "axes_dim");
}

const struct pe_fault pe_fault_section_order = {
    FAULT_TEXT("section_order", "axes", AXES, 3, "other order of sections",
               "The sections of the axes are in another order.",
               "The sections are {found}; the configuration has {believed}."),

    .schemes = "rope", .evidence = OF_WAVES, .n_alternatives = 2 * N_ORDERS, .apply = permute_sections};

/* The rule of one list of frequencies; at last none of them, which is a list for each axis. */
static const char *const channels[] = {"mrope", "mrope_interleaved", "videorope", "pixtral", "dinov3"};
enum { N_CHANNELS = sizeof channels / sizeof *channels };

static bool set_channels(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    bool is_one_list = i < N_CHANNELS, has_rule = pe_edit_value(d, edit, "channels");
    if (d->belief.model->plan->seq.n_axes < 2 ||
        (is_one_list ? pe_edit_is_word(d, edit, "channels", channels[i]) : !has_rule))
        return false;
    if (is_one_list)
        pe_edit_set_word(edit, "channels", channels[i]);
    else
        pe_edit_remove(edit, "channels");
    if (i >= 3)
        pe_edit_remove(edit, "mrope_section");
    pe_edit_remove(edit, "axes_dim");
    pe_edit_remove(edit, "axis_order");
    return true;
}

#define RULE "The channels are {found}; the configuration has {believed}."
#define SHARED "The axes share the channels of a head by another rule: channels {found}."
static const char *const of_channels[] = {
    RULE,
    RULE,
    SHARED,
    SHARED,
    SHARED,
    "Each axis has a block of channels with frequencies of its own; in the configuration the axes share one list.",
};

const struct pe_fault pe_fault_channels_other = {
    FAULT_TEXTS("channels_other", "axes", AXES, 3, "other channels",
                "The axes share the channels of a head by another rule.", of_channels),

    .schemes = "rope", .evidence = OF_WAVES, .n_alternatives = N_CHANNELS + 1, .apply = set_channels};

/* ---- Position ids ---- */

/* Faults of the position ids of multimodal sequences. */

#define OF_IDS PE_EVIDENCE_BIT(IDS)
/* The ids decide over rotated heads and their tables, too. */
#define OF_SEGMENTS (OF_IDS | PE_EVIDENCE_BIT(TABLES) | PE_EVIDENCE_BIT(ROTATED))

/* ---- The rules of a model ---- */

/* The fields that only some styles use; a field that a style does not use is refused, so it goes with the style. */
static const struct rule {
    const char *name;
    unsigned styles;
} rules[] = {
    {"tokens_per_second", 1U << PE_QWEN2_5_VL | 1U << PE_QWEN2_5_VL_INT_SECONDS},
    {"position_id_per_seconds", 1U << PE_QWEN2_5_OMNI | 1U << PE_QWEN3_OMNI},
    {"seconds_per_chunk", 1U << PE_QWEN2_5_OMNI},
    {"temporal_scale", 1U << PE_VIDEOROPE},
};
enum { N_RULES = sizeof rules / sizeof *rules, N_STYLES = PE_VIDEOROPE + 1 };

static bool position_style_other(struct pe_diagnosis *d, size_t style, struct pe_edit *edit)
{
    const char *word = pe_position_styles[style];
    bool is_usual = style == PE_QWEN2_5_VL && !pe_edit_value(d, edit, "position_style");
    if (!pe_edit_value(d, edit, "segments") || is_usual || pe_edit_is_word(d, edit, "position_style", word))
        return false;
    pe_edit_set_word(edit, "position_style", word);
    for (size_t i = 0; i < N_RULES; i++)
        if (!(rules[i].styles & 1U << style) && pe_edit_value(d, edit, rules[i].name))
            pe_edit_remove(edit, rules[i].name);
    return true;
}
const struct pe_fault pe_fault_position_style_other = {
    FAULT_TEXT("position_style_other", "ids", IDS, 2, "other position_style",
               "The position ids are counted by another model's rules.",
               "The position_style is {found}; the configuration has {believed}."),

    .evidence = OF_SEGMENTS, .n_alternatives = N_STYLES, .apply = position_style_other};

/* ---- Ids of a second ---- */

static bool uses_ids_per_second(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    return pe_edit_is_word(d, edit, "position_style", "qwen2_5_omni") ||
           pe_edit_is_word(d, edit, "position_style", "qwen3_omni");
}

/* 2 in released Qwen2.5-VL checkpoints, 4 in its class default, 25 and 13 in the Omni models. */
static const double rates[] = {2, 4, 1, 25, 13};

static bool tokens_per_second_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    bool is_omni = uses_ids_per_second(d, edit);
    const char *name = is_omni ? "position_id_per_seconds" : "tokens_per_second";
    if (!pe_edit_value(d, edit, "segments") || pe_edit_real(d, edit, name, is_omni ? 25 : 2) == rates[alternative])
        return false;
    pe_edit_set_real(edit, name, rates[alternative]);
    return true;
}
const struct pe_fault pe_fault_tokens_per_second_other = {
    FAULT_TEXT("tokens_per_second_other", "ids", IDS, 2, "other tokens_per_second",
               "A second of video has another number of temporal ids.",
               "A second of video counts as {found} temporal ids; the configuration has {believed}."),

    .evidence = OF_SEGMENTS, .n_alternatives = sizeof rates / sizeof *rates, .apply = tokens_per_second_other};

/* ---- Patches of a token ---- */

static bool merge_size_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    int64_t size = (int64_t)alternative + 1;
    bool is_used = pe_edit_value(d, edit, "segments") || pe_edit_is_word(d, edit, "order", "merge");
    if (!is_used || pe_edit_integer(d, edit, "spatial_merge_size", 2) == size)
        return false;
    pe_edit_set_integer(edit, "spatial_merge_size", size);
    return true;
}
const struct pe_fault pe_fault_merge_size_other = {
    FAULT_TEXT("merge_size_other", "ids", IDS, 2, "other merge size",
               "Another number of patches is merged into a token.",
               "spatial_merge_size is {found}; the configuration has {believed}."),
    .evidence = OF_IDS, .n_alternatives = 2, .apply = merge_size_other};

/* ---- Rows ---- */

static const unsigned char orders_of_ids[][PE_AXES_MAX] = {{0, 2, 1}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}};

static bool ids_axes_swapped(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    edit->transforms.n_axes = 3;
    memcpy(edit->transforms.order, orders_of_ids[alternative], PE_AXES_MAX);
    return d->evidence.n_rows == 3;
}
/* Rows are exchanged in the finished ids, whatever rules gave them. */
const struct pe_fault pe_fault_ids_axes_swapped = {
    FAULT_TEXT("axes_swapped", "ids", AXES, 2, "axes exchanged",
               "The rows of time, height and width have changed places.",
               "The rows of time, height and width are in another order."),
    .evidence = OF_IDS, .n_alternatives = sizeof orders_of_ids / sizeof *orders_of_ids, .apply = ids_axes_swapped,
    .combines_as = PE_KIND_AXES};
