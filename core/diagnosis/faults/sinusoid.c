/* Faults of sinusoidal encodings. */
#include "core/diagnosis/diagnosis.h"

static size_t count_odd(const struct pe_diagnosis *d) { return pe_edit_integer(d, NULL, "dim", 0) % 2 ? 3 : 0; }

/* fairseq has its own odd width and its own freq_shift, so both may differ at once: the former counts as a fault of
 * width, of which encodings have no other. */
const struct pe_fault pe_fault_odd_other = {
    FAULT_TEXT("odd_other", "sinusoid", SINUSOID, 2, "other last column",
               "The last column of an odd width is computed by another rule.",
               "odd is {found}; the configuration has {believed}."),

    .schemes = "sinusoidal", .count = count_odd,
    PE_VALUES(PE_WORD_OF("odd", "paper"), PE_WORD_OF("odd", "pad"), PE_WORD_OF("odd", "truncate")),
    .combines_as = PE_KIND_WIDTH};

static const char *const styles[] = {"axial", "detr", "mae", "timm", "multidim", "vjepa", "axial"};
enum { N_STYLES = sizeof styles / sizeof *styles };

/* Fields that one style has and others refuse are left to their defaults. The last style has no word of its own:
 * columns before rows, sines before cosines, frequencies from 1 to 1/base (MoCo v3, big_vision). */
static bool apply_style(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    static const char *const own[] = {"layout",      "freq_shift", "odd",       "flip_sin_to_cos",    "angle_scale",
                                      "axes_dim",    "axis_order", "normalize", "interleave_sin_cos", "uniform_power",
                                      "temperature", "coords",     NULL};
    double base = pe_edit_real(d, edit, "base", pe_edit_real(d, edit, "temperature", 10000));
    pe_edit_set_word(edit, "style", styles[i]);
    for (size_t j = 0; own[j]; j++)
        if (pe_edit_value(d, edit, own[j]))
            pe_edit_remove(edit, own[j]);
    if (pe_same(styles[i], "detr")) {
        pe_edit_remove(edit, "base");
        pe_edit_set_real(edit, "temperature", base);
    } else {
        pe_edit_set_real(edit, "base", base);
    }
    if (i == N_STYLES - 1) {
        pe_edit_set_reals(edit, "axis_order", (const double[]){1, 0}, 2);
        pe_edit_set_word(edit, "layout", "half");
        pe_edit_set_integer(edit, "freq_shift", 1);
    }
    return true;
}

static bool set_style(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    bool is_other = pe_edit_value(d, edit, "style") && !pe_edit_is_word(d, edit, "style", styles[i]);
    return is_other && apply_style(d, i, edit);
}

const struct pe_fault pe_fault_style_other = {FAULT_TEXT("style_other", "sinusoid", SINUSOID, 2, "other style",
                                                         "Several axes are combined in another style.",
                                                         "The style is {found}; the configuration has {believed}."),

                                              .schemes = "sinusoidal", .n_alternatives = N_STYLES, .apply = set_style};

#define CHANGE(name, change, texts)                                                                                    \
    const struct pe_fault pe_fault_##name = {texts, .schemes = "sinusoidal", .not_of = PE_EVIDENCE_BIT(LADDER),        \
                                             PE_TRANSFORMS({PE_TO_SINUSOID, change})};

CHANGE(exponent_per_column, PE_EXPONENT_PER_COLUMN,
       FAULT_TEXT("exponent_per_column", "sinusoid", SINUSOID, 2, "exponent per column",
                  "Column j has the frequency base^(-j/d), so a sine and its cosine differ in frequency.",
                  "Each column has a frequency of its own, base^(-j/d) for column j."))
CHANGE(exponent_doubled, PE_EXPONENT_DOUBLED,
       FAULT_TEXT("exponent_doubled", "sinusoid", SINUSOID, 2, "doubled exponent",
                  "Column j has the frequency base^(-2j/d): the column is taken for the pair.",
                  "Column j has the frequency base^(-2j/d): the column is taken for the pair."))
CHANGE(sine_only, PE_SINE_ONLY,
       FAULT_TEXT("sine_only", "sinusoid", SINUSOID, 2, "sines only", "Cosine columns have the sine of the same angle.",
                  "Every cosine column has the sine of the same angle."))

/* ---- Forgotten axes (several_axes.c) ---- */

enum { COLUMNS_MAX = 64 };

/* Some columns of an encoding [n, n_columns], all rows, less than a megabyte; and which are still looked at. */
struct sheet {
    double *x;
    size_t n, n_columns;
    bool is_left[COLUMNS_MAX];
};

/* Every stride-th row: is a column the same in each period, or in each block, of so many of them? */
static bool repeats(const struct sheet *s, size_t column, size_t stride, size_t size, bool in_blocks)
{
    for (size_t i = 0; i < s->n; i += stride) {
        size_t row = i / stride, first = in_blocks ? row - row % size : row % size;
        if (fabs(s->x[i * s->n_columns + column] - s->x[first * stride * s->n_columns + column]) > 1e-5)
            return false;
    }
    return true;
}

/* Does every column repeat in one way or the other, and some only in periods, others only in blocks? Leaves those. */
static bool is_side(struct sheet *s, size_t stride, size_t size)
{
    bool has_period = false, has_block = false, is_left[COLUMNS_MAX] = {false};
    for (size_t c = 0; c < s->n_columns; c++) {
        if (!s->is_left[c])
            continue;
        bool in_periods = repeats(s, c, stride, size, false), in_blocks = repeats(s, c, stride, size, true);
        if (!in_periods && !in_blocks)
            return false;
        has_period |= !in_blocks;
        has_block |= !in_periods;
        is_left[c] = in_blocks && !in_periods;
    }
    if (has_period && has_block)
        memcpy(s->is_left, is_left, sizeof is_left);
    return has_period && has_block;
}

/* The sides of the grid from the last axis on; their number, 1 if it is no grid. */
static unsigned sides_of(struct pe_diagnosis *d, struct sheet *s, double *sides)
{
    unsigned n = 0;
    size_t stride = 1;
    for (size_t size = 2; 2 * size * stride <= s->n && n + 1 < PE_AXES_MAX && !pe_is_cancelled(); size++) {
        d->work += s->n % (stride * size) ? 1 : 16 * (double)(s->n * s->n_columns);
        if (s->n % (stride * size) || !is_side(s, stride, size))
            continue;
        sides[n++] = (double)size;
        stride *= size;
        size = 1;
    }
    sides[n] = (double)(s->n / stride);
    return n + 1;
}

static unsigned find_grid(struct pe_diagnosis *d, struct pe_edit *edit, double *grid)
{
    enum { NUMBERS = 1 << 16, COLUMNS_MIN = 8 };
    size_t width = (size_t)d->evidence.row_len, columns = NUMBERS / d->belief.n;
    columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns < COLUMNS_MAX ? columns : COLUMNS_MAX;
    columns = columns < width ? columns : width;
    struct sheet s = {.n = (size_t)d->belief.n, .n_columns = columns};
    double sides[PE_AXES_MAX];
    if (d->evidence.n_rows != s.n || !(s.x = pe_edit_room(edit, s.n * columns * sizeof *s.x)))
        return 0;
    for (size_t c = 0; c < columns; c++) {
        s.is_left[c] = true;
        for (size_t i = 0; i < s.n && !(i % 256 == 0 && pe_is_cancelled()); i++)
            pe_evidence_read(&d->evidence, 0, i, c * width / columns, 1, &s.x[i * columns + c]);
    }
    unsigned n = sides_of(d, &s, sides);
    for (unsigned a = 0; a < n; a++)
        grid[a] = sides[n - 1 - a];
    return n;
}

static size_t count_styles(const struct pe_diagnosis *d) { return pe_axes_are_forgotten(d, 1) ? N_STYLES : 0; }

static bool sinusoid_axes_missing(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    double grid[PE_AXES_MAX];
    unsigned n = find_grid(d, edit, grid);
    if (n < 2)
        return false;
    pe_edit_remove_sequence(d, edit);
    pe_edit_set_reals(edit, "grid", grid, n);
    return apply_style(d, i, edit);
}
const struct pe_fault pe_fault_sinusoid_axes_missing = {
    FAULT_TEXT("axes_missing", "sinusoid", AXES, 2, "axes forgotten",
               "The positions are on several axes; the configuration has one.",
               "The positions are on several axes; the configuration has one."),
    .schemes = "sinusoidal",
    .evidence = PE_EVIDENCE_BIT(ENCODING),
    .is_of_tensor = true,
    .count = count_styles,
    .apply = sinusoid_axes_missing};
