/* Relations of resized tables: not resized at all, height for width, another kernel. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/maps.h"
#include "core/diagnosis/naming/relations.h"

#include <math.h>
#include <stdlib.h>

/* ---- The words ---- */

const struct pe_fault pe_fault_interpolation_other = {
    FAULT_TEXT(
        "interpolation_other", "size", SIZE, 3, "other resizing of a table",
        "A learned table was resized to the grid in another way.",
        "The table was resized to the grid in another way: {pointer} is {found}; the configuration has {believed}."),
    .schemes = "learned", .evidence = PE_EVIDENCE_BIT(ENCODING)};
const struct pe_fault pe_fault_not_resized = {
    FAULT_TEXT("not_resized", "size", SIZE, 2, "table not resized", "A learned table was not resized to the grid.",
               "The table was not resized: its rows are unchanged."),
    .role = PE_ROLE_NOT_RESIZED, .pointer = "interpolate", .schemes = "learned", .evidence = PE_EVIDENCE_BIT(ENCODING)};

/* ---- Kernels ---- */

/* word: of the field `interpolate`, whose usual cubic_a is a. The plainest first. */
static const struct row {
    struct pe_kernel kernel;
    const char *word;
    double a; /* of the word */
    struct pe_relation relation;
} rows[] = {
#define KERNEL(kind_, rule_, ...) .kernel = {.kind = PE_KERNEL_##kind_, .rule = PE_##rule_, __VA_ARGS__}
#define SENTENCE(text) .relation = {&pe_fault_interpolation_other, 1, NULL, text}
    {KERNEL(LINEAR, HALF_PIXEL, ), .word = "bilinear",
     SENTENCE("The table was resized by a bilinear kernel; the configuration has {believed}.")},
    {KERNEL(CUBIC, HALF_PIXEL, .a = -0.75), .word = "bicubic", .a = -0.75,
     SENTENCE("The table was resized by a bicubic kernel with a = {found}; the configuration has {believed}.")},
    {KERNEL(CUBIC, HALF_PIXEL, .a = -0.5, .is_wide = true), .word = "bicubic_antialias", .a = -0.5,
     SENTENCE("The table was resized by a bicubic kernel with antialias and a = {found}; the configuration has "
              "{believed}.")},
    {KERNEL(LINEAR, CORNERS, ), .word = "bilinear_aligned",
     SENTENCE("The table was resized by a bilinear kernel with aligned corners; the configuration has {believed}.")},
    {KERNEL(LINEAR, HALF_PIXEL, .offset = 0.1), .word = "bilinear",
     SENTENCE("The table was resized by a bilinear kernel; the configuration has {believed}.")},
    {KERNEL(CUBIC, HALF_PIXEL, .a = -0.75, .offset = 0.1), .word = "bicubic", .a = -0.75,
     SENTENCE("The table was resized by a bicubic kernel with a = {found}; the configuration has {believed}.")},
    {KERNEL(CUBIC, HALF_PIXEL, .a = -0.5, .is_wide = true, .offset = 0.1), .word = "bicubic_antialias", .a = -0.5,
     SENTENCE("The table was resized by a bicubic kernel with antialias and a = {found}; the configuration has "
              "{believed}.")},
    {KERNEL(LINEAR, HALF_PIXEL, .is_wide = true), .word = "bilinear_antialias",
     SENTENCE("The table was resized by a bilinear kernel as wide as the step (antialias); the configuration has "
              "{believed}.")},
    {KERNEL(LINEAR, HALF_PIXEL, .is_wide = true, .offset = 0.1), .word = "bilinear_antialias",
     SENTENCE("The table was resized by a bilinear kernel as wide as the step (antialias); the configuration has "
              "{believed}.")},
    {KERNEL(NEAREST, ASYMMETRIC, ), SENTENCE("Each row of the result is the nearest row of the table, counted from the "
                                             "corners of pixels (nearest); the configuration has {believed}.")},
    {KERNEL(NEAREST, HALF_PIXEL, ), SENTENCE("Each row of the result is the nearest row of the table, between the "
                                             "centres of pixels (nearest-exact); the configuration has {believed}.")},
    {KERNEL(CUBIC, CORNERS, .a = -0.75), SENTENCE("The table was resized by a bicubic kernel with aligned corners and "
                                                  "a = {found}; the configuration has {believed}.")},
    {KERNEL(LINEAR, ASYMMETRIC, ),
     SENTENCE("The table was resized by a bilinear kernel at coordinates that begin at the corner of a pixel, not at "
              "its centre; the configuration has {believed}.")},
    {KERNEL(CUBIC, ASYMMETRIC, .a = -0.75),
     SENTENCE("The table was resized by a bicubic kernel with a = {found} at coordinates that begin at the corner of a "
              "pixel, not at its centre; the configuration has {believed}.")},
    {KERNEL(NEAREST, FIRST_ROWS, ), .relation = {&pe_fault_not_resized, 1, NULL,
                                                 "The table was not resized but cut: the result is its first rows and "
                                                 "columns; the configuration has {believed}."}},
    {KERNEL(NEAREST, MIDDLE_ROWS, ), .relation = {&pe_fault_not_resized, 1, NULL,
                                                  "The table was not resized but cut: the result is its middle rows "
                                                  "and columns; the configuration has {believed}."}},
#undef KERNEL
#undef SENTENCE
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static bool has_word(const struct row *row, const struct pe_kernel *kernel)
{
    return row->word && (kernel->kind != PE_KERNEL_CUBIC || (kernel->a >= -1 && kernel->a <= 0));
}

/* Is it the believed one? */
static bool is_believed(const struct pe_diagnosis *d, const struct pe_edit *edit, const struct row *row,
                        const struct pe_kernel *kernel)
{
    return has_word(row, kernel) && pe_edit_is_word(d, edit, "interpolate", row->word) &&
           pe_edit_real(d, edit, "interpolate_offset", 0) == kernel->offset &&
           (kernel->kind != PE_KERNEL_CUBIC || pe_edit_real(d, edit, "cubic_a", row->a) == kernel->a);
}

/* ---- Into an edit ---- */

/* From the list that keep_kernel wrote. */
static bool set_kernel(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    const double *k = named->predicted;
    (void)d;
    edit->transforms.kernel.kind = (unsigned)k[0];
    edit->transforms.kernel.rule = (unsigned)k[1];
    edit->transforms.kernel.is_wide = k[2] != 0;
    edit->transforms.kernel.by_column = k[3] != 0;
    edit->transforms.kernel.a = k[4];
    edit->transforms.kernel.offset = k[5];
    edit->transforms.kernel.table_by_column = k[6] != 0;
    return true;
}

/* The words of a row, and the a that keep() wrote. */
static bool set_word(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    const struct row *row = &rows[named->related.row];
    if (!pe_edit_is_word(d, edit, "interpolate", row->word))
        pe_edit_set_word(edit, "interpolate", row->word);
    if (pe_edit_real(d, edit, "interpolate_offset", 0) != row->kernel.offset)
        pe_edit_set_real(edit, "interpolate_offset", row->kernel.offset);
    if (row->kernel.kind == PE_KERNEL_CUBIC && pe_edit_real(d, edit, "cubic_a", row->a) != *named->predicted)
        pe_edit_set_real(edit, "cubic_a", *named->predicted);
    else if (row->kernel.kind != PE_KERNEL_CUBIC && pe_edit_has(d, edit, "cubic_a"))
        pe_edit_remove(edit, "cubic_a");
    return true;
}

static bool set_grid(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    (void)d;
    pe_edit_set_reals(edit, "grid", named->predicted, 2);
    return true;
}

static bool set_table(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    (void)d;
    pe_edit_set_reals(edit, "table_grid", named->predicted, 2);
    return true;
}

/* Rows of the table as they are. */
static bool take_rows(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    static const char *const fields[] = {"interpolate", "cubic_a", "interpolate_offset", "table_grid", "num_prefix"};
    (void)named;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (pe_edit_has(d, edit, fields[i]))
            pe_edit_remove(edit, fields[i]);
    pe_edit_remove_sequence(d, edit);
    pe_edit_set_integer(edit, "len", (int64_t)d->evidence.n_rows);
    return true;
}

/* ---- The parts ---- */

static const struct pe_relation
    unchanged = {&pe_fault_not_resized, 1, NULL, NULL},
    cut = {&pe_fault_not_resized, 1, NULL,
           "The table was not resized but cut: the tensor has its first {found} rows, unchanged, of {believed}."},
    turned_grid = {PE_OF_ROLE(AXES_EXCHANGED), 1, NULL,
                   "Height and width changed places: the grid has {found} rows; in the configuration it has "
                   "{believed}."},
    turned_table = {PE_OF_ROLE(AXES_EXCHANGED), 1, NULL,
                    "Height and width of the table changed places: it was read as {found} rows; in the configuration "
                    "it has {believed}."},
    other_sides = {PE_OF_ROLE(ANY_FIELD), 1, NULL, NULL},
    by_column =
        {PE_OF_ROLE(AXES_EXCHANGED), 1, NULL,
         "The result is transposed, column by column: its second row is at column {found}; in the configuration "
         "at column {believed}."},
    table_by_column = {PE_OF_ROLE(AXES_EXCHANGED), 1, NULL,
                       "The table was read transposed, column by column: its second row is at column {found}; in the "
                       "configuration at column {believed}."};

static bool keep(struct pe_diagnosis *d, struct pe_named *named, const double *list, size_t n)
{
    named->predicted = malloc(n * sizeof *list);
    d->no_memory |= !named->predicted;
    if (named->predicted)
        memcpy(named->predicted, list, n * sizeof *list);
    return named->predicted;
}

static bool keep_kernel(struct pe_diagnosis *d, struct pe_named *named, const struct pe_kernel *k)
{
    const double list[] = {k->kind, k->rule, k->is_wide, k->by_column, k->a, k->offset, k->table_by_column};
    named->apply = set_kernel;
    return keep(d, named, list, sizeof list / sizeof *list);
}

/* Sides that are not the believed ones: exchanged, or others. */
static size_t relate_pair(struct pe_diagnosis *d, const uint64_t *found, const uint64_t *believed,
                          const struct pe_relation *turned, pe_apply apply, struct pe_part *parts)
{
    bool is_turned = found[0] == believed[1] && found[1] == believed[0];
    if (found[0] == believed[0])
        return 0;
    size_t n = 0;
    struct pe_named *named =
        pe_part_add(d, is_turned ? turned : &other_sides, (double)found[0], (double)believed[0], parts, &n);
    if (!named)
        return 0;
    named->apply = apply;
    return keep(d, named, (const double[]){(double)found[0], (double)found[1]}, 2);
}

static size_t relate_sides(struct pe_diagnosis *d, const struct pe_resizing *s, struct pe_part *parts)
{
    uint64_t from[PE_RESIZED_AXES], to[PE_RESIZED_AXES], n_prefix;
    if (!pe_resized_sides(d->belief.plan, from, to, &n_prefix))
        return 0;
    if (s->kernel.by_column || s->kernel.table_by_column) {
        size_t one = 0;
        struct pe_named *named = pe_part_add(d, s->kernel.by_column ? &by_column : &table_by_column, 0, 1, parts, &one);
        return named && keep_kernel(d, named, &s->kernel);
    }
    size_t n = relate_pair(d, s->to, to, &turned_grid, set_grid, parts);
    return n + relate_pair(d, s->from, from, &turned_table, set_table, parts + n);
}

static size_t relate_kernel(struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_resizing *s,
                            size_t which, struct pe_part *part)
{
    static const struct pe_relation of_word = {&pe_fault_interpolation_other, 1, NULL, NULL};
    bool is_word = has_word(&rows[which], &s->kernel) && !s->kernel.by_column && !s->kernel.table_by_column;
    if (is_believed(d, edit, &rows[which], &s->kernel))
        return 0;
    size_t n = 0;
    struct pe_named *named = pe_part_add(d, is_word ? &of_word : &rows[which].relation, s->kernel.a, 0, part, &n);
    if (!named)
        return 0;
    const struct pe_value *believed = pe_edit_value(d, edit, "interpolate");
    named->word = believed ? believed->string : NULL;
    named->related.row = which;
    named->apply = set_word;
    return is_word ? keep(d, named, &s->kernel.a, 1) : keep_kernel(d, named, &s->kernel);
}

size_t pe_relate_table(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts)
{
    enum { BITS = 60 }; /* 20 for one number, 20 for which kernel it is, 20 more */
    struct pe_kernel kernels[N_ROWS];
    struct pe_resizing s;
    size_t which, n;
    double numbers = (double)d->evidence.n_rows * (double)d->evidence.row_len,
           bits = numbers * log2(1 / (4 * pe_evidence_noise(&d->evidence) + 1e-6));
    bool is_table = pe_same(d->belief.inheritance->scheme->info.name, "learned") && pe_edit_has(d, edit, "table_grid");
    if (!is_table || !is_first || bits <= BITS)
        return 0;
    for (size_t i = 0; i < N_ROWS; i++)
        kernels[i] = rows[i].kernel;
    if (pe_resized_is_table(d, d->belief.plan)) {
        n = 0;
        double n_rows = (double)d->evidence.n_rows, all = (double)d->belief.plan->weights[0].tensor.shape[0];
        struct pe_named *named = pe_part_add(d, n_rows < all ? &cut : &unchanged, n_rows, all, parts, &n);
        if (named)
            named->apply = take_rows;
        return named != NULL;
    }
    if (!pe_measure_resizing(d, edit, kernels, N_ROWS, &s, &which))
        return 0;
    n = relate_sides(d, &s, parts);
    return n + relate_kernel(d, edit, &s, which, parts + n);
}
