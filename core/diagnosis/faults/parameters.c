/* Faults of parameters: a field has another value. Words and truth values are tried from the scheme's own rows, so a
 * new parameter needs nothing here; numbers and lists have the values that are usual. */
#include "core/diagnosis/diagnosis.h"

#include <string.h>

/* ---- Setting a parameter ---- */

/* Fields whose default follows from another one (from one of its words; NULL: from any value), beside those that a
 * row's condition names. */
static const struct {
    const char *name, *word, *follower;
} followers[] = {
    {"normalize", NULL, "angle_scale"}, {"coords", "pixel", "base"}, {"order", "row_major", "spatial_merge_size"}};

/* Is the row for some words of a parameter only, "coords=resized", and not for this one? */
static bool is_left_by(const char *when, const char *name, const char *word)
{
    size_t n = strlen(name);
    return when && word && strncmp(when, name, n) == 0 && when[n] == '=' && !pe_is_among(when + n + 1, word);
}

/* Leaves out what the new value does not use, and what follows from it. */
static void set(const struct pe_diagnosis *d, struct pe_edit *edit, const char *name, struct pe_value value)
{
    const struct pe_param *rows = d->belief.inheritance->scheme->info.params;
    const char *word = value.kind == PE_STRING ? value.string : NULL;
    pe_edit_set(edit, name, value);
    for (const struct pe_param *row = rows; row->name; row++)
        if (pe_edit_value(d, edit, row->name) && is_left_by(row->when, name, word))
            pe_edit_remove(edit, row->name);
    for (size_t i = 0; i < sizeof followers / sizeof *followers; i++)
        if (pe_same(followers[i].name, name) && pe_edit_value(d, edit, followers[i].follower) &&
            (!followers[i].word || (word && pe_same(followers[i].word, word))))
            pe_edit_remove(edit, followers[i].follower);
}

/* ---- Words and truth values ---- */

/* Those that have a fault of their own, and those that say how numbers are computed or handed over. */
#define ELSEWHERE                                                                                                      \
    "arith|bidirectional|causal|channels|channels_first|combine|coords|direction|flip_sin_to_cos|form|interpolate|"    \
    "kind|layout|odd|style"

static size_t count_words(const struct pe_param *row)
{
    size_t n = row->type == PE_T_BOOL ? 1 : 0;
    for (; row->type == PE_T_WORD && row->words[n]; n++)
        ;
    return n;
}

/* Only parameters that the belief uses: the resolved configuration has no others. */
static bool is_tried(const struct pe_diagnosis *d, const struct pe_param *row)
{
    return pe_edit_value(d, NULL, row->name) && !pe_is_among(ELSEWHERE, row->name);
}

static size_t count_all_words(const struct pe_diagnosis *d)
{
    size_t n = 0;
    for (const struct pe_param *row = d->belief.inheritance->scheme->info.params; row->name; row++)
        n += is_tried(d, row) ? count_words(row) : 0;
    return n;
}

static bool set_row(const struct pe_diagnosis *d, struct pe_edit *edit, const struct pe_param *row, size_t i)
{
    if (row->type == PE_T_WORD && !pe_edit_is_word(d, edit, row->name, row->words[i]))
        set(d, edit, row->name, (struct pe_value){.kind = PE_STRING, .string = row->words[i]});
    else if (row->type == PE_T_BOOL)
        set(d, edit, row->name,
            (struct pe_value){.kind = PE_BOOLEAN, .boolean = !pe_edit_is_true(d, edit, row->name, row->fallback != 0)});
    else
        return false;
    return true;
}

static bool set_word(const struct pe_diagnosis *d, struct pe_edit *edit, size_t i)
{
    for (const struct pe_param *row = d->belief.inheritance->scheme->info.params; row->name; row++) {
        size_t n = is_tried(d, row) ? count_words(row) : 0;
        if (i < n)
            return pe_edit_value(d, edit, row->name) && set_row(d, edit, row, i);
        i -= n;
    }
    return false;
}

/* ---- Numbers and lists ---- */

#define PI 3.14159265358979323846
static const struct pe_field parameters[] = {
    PE_INTEGER_OF("bar_dim", 128), /* Sandwich */
    PE_INTEGER_OF("bar_dim", 64),
    PE_INTEGER_OF("bar_dim", 32),
    PE_INTEGER_OF("bar_dim", 256),
    PE_INTEGER_OF("position_buckets", -1), /* DeBERTa */
    PE_INTEGER_OF("position_buckets", 256),
    PE_INTEGER_OF("position_buckets", 128),
    PE_INTEGER_OF("position_buckets", 64),
    PE_INTEGER_OF("position_buckets", 32),
    PE_INTEGER_OF("max_relative_positions", 512),
    PE_INTEGER_OF("max_relative_positions", 256),
    PE_INTEGER_OF("max_relative_positions", 128),
    PE_INTEGER_OF("max_relative_positions", 1024),
    PE_LIST_OF("mrope_section", 16, 24, 24), /* Qwen2-VL */
    PE_LIST_OF("mrope_section", 24, 20, 20), /* Qwen3-VL */
    PE_LIST_OF("mrope_section", 8, 12, 12),  /* GLM-4V */
    PE_LIST_OF("mrope_section", 11, 11, 10), /* Qwen3.5 */
    PE_LIST_OF("mrope_section", 22, 21, 21),
    PE_LIST_OF("axes_dim", 16, 56, 56), /* Flux */
    PE_LIST_OF("axes_dim", 44, 42, 42), /* Wan */
    PE_LIST_OF("axes_dim", 32, 48, 48), /* Lumina 2 */
    PE_LIST_OF("axes_dim", 16, 24, 24), /* CogVideoX */
    PE_INTEGER_OF("max_freq", 10),
    PE_INTEGER_OF("max_freq", 20),
    PE_INTEGER_OF("max_freq", 224),
    PE_INTEGER_OF("max_freq", 256),
    PE_INTEGER_OF("angle_scale", 1),
    PE_INTEGER_OF("angle_scale", 1000),
    PE_REAL_OF("angle_scale", 0.001),
    PE_REAL_OF("angle_scale", PI),
    PE_REAL_OF("angle_scale", 2 * PI),
};
enum { N_PARAMETERS = sizeof parameters / sizeof *parameters };

/* Lists share out the same width. */
static bool is_another(const struct pe_value *now, const struct pe_value *value)
{
    double sum = 0;
    if (!now || now->kind != PE_ARRAY || value->kind != PE_ARRAY)
        return now && !pe_value_same(now, value);
    struct pe_reals x = {now->array, now->array.shape[0]}, y = {value->array, value->array.shape[0]};
    for (size_t i = 0; i < x.n && x.n == y.n; i++)
        sum += pe_real_at(&y, i) - pe_real_at(&x, i);
    return x.n == y.n && sum == 0 && !pe_value_same(now, value);
}

/* A field that is used has another value. */
static bool set_field(const struct pe_diagnosis *d, struct pe_edit *edit, const struct pe_field *field)
{
    bool is_other = is_another(pe_edit_value(d, edit, field->name), &field->value);
    if (is_other)
        set(d, edit, field->name, field->value);
    return is_other;
}

/* A list of frequencies shows to how many bits they were rounded. */
static bool may_have(const struct pe_diagnosis *d, enum pe_recipe recipe)
{
    enum pe_dtype dtype = recipe == PE_RECIPE_F16_INV_FREQ ? PE_F16 : PE_BF16;
    return d->evidence.kind->id != PE_OF_LADDER || d->evidence.narrow == dtype || d->evidence.is_typed;
}

static bool set_transform(struct pe_diagnosis *d, struct pe_edit *edit, const struct pe_transformed *one)
{
    struct pe_transforms *t = &edit->transforms;
    switch (one->what) {
    case PE_TO_RECIPE: t->recipe = (enum pe_recipe)one->to; return may_have(d, t->recipe);
    case PE_TO_TURN: t->turn = (enum pe_turn)one->to; return true;
    case PE_TO_BIAS: t->bias = (enum pe_bias_change)one->to; return true;
    case PE_TO_SINUSOID: t->sinusoid = (enum pe_sinusoid_change)one->to; return d->belief.model->plan->seq.n_axes == 1;
    case PE_TO_INVERTED: return t->inverted = true;
    case PE_TO_NEGATED: return t->negated = true;
    case PE_TO_STILL: t->sides[one->to] = PE_SIDE_STILL; return true;
    case PE_TO_REVERSED: t->sides[one->to] = PE_SIDE_REVERSED; return true;
    case PE_TO_TILED: return t->is_tiled = d->evidence.kind->id == PE_OF_MAPS && pe_tiled_keys(d);
    default: return false;
    }
}

bool pe_fault_apply(struct pe_diagnosis *d, const struct pe_fault *fault, size_t i, struct pe_edit *edit)
{
    if (fault->values)
        return set_field(d, edit, &fault->values[i]);
    if (fault->transforms)
        return set_transform(d, edit, &fault->transforms[i]);
    if (i < fault->n_maps)
        return pe_edit_by_map(d, edit, &fault->maps[i]);
    return fault->fit ? fault->fit(d, edit) : fault->apply(d, i, edit);
}

static bool exchange(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    const struct pe_value *x = pe_edit_value(d, edit, "r1"), *y = pe_edit_value(d, edit, "r2");
    const struct pe_value one = {.kind = PE_REAL, .real = 1}, was_x = x ? *x : one, was_y = y ? *y : one;
    (void)i;
    pe_edit_set(edit, "r1", was_y);
    pe_edit_set(edit, "r2", was_x);
    return x || y;
}

/* ---- The faults ---- */

static size_t count_parameters(const struct pe_diagnosis *d) { return N_PARAMETERS + count_all_words(d); }

/* The values, then the words. */
static bool parameter_other(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    return i < N_PARAMETERS ? set_field(d, edit, &parameters[i]) : set_word(d, edit, i - N_PARAMETERS);
}
const struct pe_fault pe_fault_parameter_other = {
    FAULT_TEXT("parameter_other", "parameter", PARAMETER, 3, "other parameter", "A parameter has another value.",
               "{pointer} is {found}; the configuration has {believed}."),
    .role = PE_ROLE_ANY_FIELD, .count = count_parameters, .apply = parameter_other};

const struct pe_fault pe_fault_parameters_swapped = {
    FAULT_TEXT("parameters_swapped", "parameter", PARAMETER, 3, "parameters exchanged",
               "Two parameters have changed places: KERPLE's r1 and r2.",
               "r1 and r2 are exchanged: r1 is {found}; the configuration has {believed}."),
    .schemes = "kerple", .n_alternatives = 1, .apply = exchange};

const struct pe_fault pe_fault_kind_other = {FAULT_TEXT("kind_other", "bias", BIAS, 3, "other kind",
                                                        "KERPLE's bias is of the other kind: log or power.",
                                                        "The kind is {found}; the configuration has {believed}."),

                                             .schemes = "kerple", .evidence = PE_EVIDENCE_BIT(BIAS),
                                             PE_VALUES(PE_WORD_OF("kind", "log"), PE_WORD_OF("kind", "power"))};

/* Grids that models are trained on, for coordinates resized to them. */
static const double ref_sides[] = {16, 14, 24, 7, 32, 37};
enum { N_REF_SIDES = sizeof ref_sides / sizeof *ref_sides };

static const struct pe_param *coords_row(const struct pe_diagnosis *d)
{
    return pe_param_find(d->belief.inheritance->scheme->info.params, "coords");
}

static size_t count_coords(const struct pe_diagnosis *d)
{
    bool is_used = coords_row(d) && pe_edit_value(d, NULL, "coords");
    return is_used ? N_REF_SIDES + count_words(coords_row(d)) : 0;
}

/* Coordinates resized to a square grid, which need its sides; then the words of the row. */
static bool coords_other(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    double sides[PE_AXES_MAX];
    unsigned n = d->belief.model->plan->seq.n_axes;
    if (!pe_edit_value(d, edit, "coords") || !pe_edit_value(d, edit, "grid"))
        return false;
    if (i >= N_REF_SIDES)
        return set_row(d, edit, coords_row(d), i - N_REF_SIDES);
    for (unsigned a = 0; a < n; a++)
        sides[a] = ref_sides[i];
    set(d, edit, "coords", (struct pe_value){.kind = PE_STRING, .string = "resized"});
    pe_edit_set_reals(edit, "ref_grid", sides, n);
    return true;
}
const struct pe_fault pe_fault_coords_other = {
    FAULT_TEXT("coords_other", "axes", AXES, 1, "other coordinates",
               "The coordinates on a grid are counted by another rule, as resized to the training grid.",
               "{pointer} is {found}; the configuration has {believed}."),
    .schemes = "rope|sinusoidal", .count = count_coords, .apply = coords_other};

/* Raster order, then blocks of patches that become one token. */
static bool order_other(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    static const int64_t sizes[] = {1, 2, 3, 4};
    bool is_merge = pe_edit_is_word(d, edit, "order", "merge");
    int64_t now = is_merge ? pe_edit_integer(d, edit, "spatial_merge_size", 2) : 1;
    if (!pe_edit_value(d, edit, "grid") || now == sizes[i])
        return false;
    set(d, edit, "order", (struct pe_value){.kind = PE_STRING, .string = sizes[i] > 1 ? "merge" : "row_major"});
    if (sizes[i] > 1)
        pe_edit_set_integer(edit, "spatial_merge_size", sizes[i]);
    return true;
}
const struct pe_fault pe_fault_order_other = {
    FAULT_TEXT("order_other", "axes", AXES, 2, "other order of patches",
               "The patches of a grid are in another order: row by row, or block after block that are merged.",
               "{pointer} is {found}; the configuration has {believed}."),
    .n_alternatives = 4, .apply = order_other};
