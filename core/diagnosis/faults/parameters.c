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
static const struct parameter {
    const char *scheme, *name;
    size_t n; /* of a list; 0: a number */
    double values[3];
} parameters[] = {
    {"sandwich", "bar_dim", 0, {128}},
    {"sandwich", "bar_dim", 0, {64}},
    {"sandwich", "bar_dim", 0, {32}},
    {"sandwich", "bar_dim", 0, {256}},
    {"t5", "num_buckets", 0, {32}},
    {"t5", "num_buckets", 0, {64}},
    {"t5", "num_buckets", 0, {16}},
    {"t5", "num_buckets", 0, {128}},
    {"t5", "num_buckets", 0, {320}},
    {"deberta", "position_buckets", 0, {-1}},
    {"deberta", "position_buckets", 0, {256}},
    {"deberta", "position_buckets", 0, {128}},
    {"deberta", "position_buckets", 0, {64}},
    {"deberta", "position_buckets", 0, {32}},
    {"deberta", "max_relative_positions", 0, {512}},
    {"deberta", "max_relative_positions", 0, {256}},
    {"deberta", "max_relative_positions", 0, {128}},
    {"deberta", "max_relative_positions", 0, {1024}},
    {"rope", "mrope_section", 3, {16, 24, 24}}, /* Qwen2-VL */
    {"rope", "mrope_section", 3, {24, 20, 20}}, /* Qwen3-VL */
    {"rope", "mrope_section", 3, {8, 12, 12}},  /* GLM-4V */
    {"rope", "mrope_section", 3, {11, 11, 10}}, /* Qwen3.5 */
    {"rope", "mrope_section", 3, {22, 21, 21}},
    {"rope", "axes_dim", 3, {16, 56, 56}}, /* Flux */
    {"rope", "axes_dim", 3, {44, 42, 42}}, /* Wan */
    {"rope", "axes_dim", 3, {32, 48, 48}}, /* Lumina 2 */
    {"rope", "axes_dim", 3, {16, 24, 24}}, /* CogVideoX */
    {"rope", "max_freq", 0, {10}},
    {"rope", "max_freq", 0, {20}},
    {"rope", "max_freq", 0, {224}},
    {"rope", "max_freq", 0, {256}},
    {"sinusoidal", "angle_scale", 0, {1}},
    {"sinusoidal", "angle_scale", 0, {1000}},
    {"sinusoidal", "angle_scale", 0, {0.001}},
    {"sinusoidal", "angle_scale", 0, {PI}},
    {"sinusoidal", "angle_scale", 0, {2 * PI}},
};
enum { N_PARAMETERS = sizeof parameters / sizeof *parameters };

/* Lists share out the same width. */
static bool set_list(const struct pe_diagnosis *d, struct pe_edit *edit, const struct parameter *p)
{
    const struct pe_value *v = pe_edit_value(d, edit, p->name);
    double sum = 0;
    bool differs = false;
    if (v->kind != PE_ARRAY || v->array.rank != 1 || v->array.shape[0] != p->n)
        return false;
    struct pe_reals now = {v->array, p->n};
    for (size_t i = 0; i < p->n; i++) {
        double x = pe_real_at(&now, i);
        sum += p->values[i] - x;
        differs |= p->values[i] != x;
    }
    if (sum == 0 && differs)
        pe_edit_set_reals(edit, p->name, p->values, p->n);
    return sum == 0 && differs;
}

static bool set_number(const struct pe_diagnosis *d, struct pe_edit *edit, const struct parameter *p)
{
    double x = p->values[0];
    if (!pe_same(d->belief.inheritance->scheme->info.name, p->scheme) || !pe_edit_value(d, edit, p->name))
        return false;
    if (p->n)
        return set_list(d, edit, p);
    if (pe_edit_real(d, edit, p->name, x) == x)
        return false;
    if (x == floor(x))
        pe_edit_set_integer(edit, p->name, (int64_t)x);
    else
        pe_edit_set_real(edit, p->name, x);
    return true;
}

static bool exchange(const struct pe_diagnosis *d, struct pe_edit *edit, const char *a, const char *b)
{
    const struct pe_value *x = pe_edit_value(d, edit, a), *y = pe_edit_value(d, edit, b);
    const struct pe_value one = {.kind = PE_REAL, .real = 1}, was_x = x ? *x : one, was_y = y ? *y : one;
    pe_edit_set(edit, a, was_y);
    pe_edit_set(edit, b, was_x);
    return x || y;
}

/* ---- The faults ---- */

static size_t count_parameters(const struct pe_diagnosis *d) { return N_PARAMETERS + 1 + count_all_words(d); }

/* After the values: KERPLE's two numbers exchanged, then the words. */
static bool parameter_other(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    if (i < N_PARAMETERS)
        return set_number(d, edit, &parameters[i]);
    if (i > N_PARAMETERS)
        return set_word(d, edit, i - N_PARAMETERS - 1);
    return pe_same(d->belief.inheritance->scheme->info.name, "kerple") && exchange(d, edit, "r1", "r2");
}
const struct pe_fault pe_fault_parameter_other = {
    FAULT_TEXT("parameter_other", "parameter", PARAMETER, 3, "other parameter", "A parameter has another value.",
               "{pointer} is {found}; the configuration says {believed}."),
    .count = count_parameters, .apply = parameter_other};

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
               "{pointer} is {found}; the configuration says {believed}."),
    .schemes = "rope", .count = count_coords, .apply = coords_other};

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
               "{pointer} is {found}; the configuration says {believed}."),
    .n_alternatives = 4, .apply = order_other};
