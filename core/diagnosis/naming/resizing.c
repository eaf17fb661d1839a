/* Relations of resized tables: not resized at all, height for width, another kernel. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/maps.h"
#include "core/diagnosis/naming/relations.h"

#include <math.h>
#include <stdlib.h>

/* ---- Kernels ---- */

/* word: of the field `interpolate`, which has this a (0: any that is solved for is the kernel's own). The plainest
 * first. */
static const struct row {
    struct pe_kernel kernel;
    const char *word;
    double a; /* of the word */
    struct pe_relation relation;
} rows[] = {
#define KERNEL(kind_, rule_, ...) .kernel = {.kind = PE_KERNEL_##kind_, .rule = PE_##rule_, __VA_ARGS__}
#define SENTENCE(text) .relation = {&pe_fault_interpolation_other, 1, NULL, text}
    {KERNEL(LINEAR, HALF_PIXEL, ), .word = "bilinear",
     SENTENCE("The table was resized by a bilinear kernel; the configuration says {believed}.")},
    {KERNEL(CUBIC, HALF_PIXEL, .a = -0.75), .word = "bicubic", .a = -0.75,
     SENTENCE("The table was resized by a bicubic kernel with a = {found}; the configuration says {believed}.")},
    {KERNEL(CUBIC, HALF_PIXEL, .a = -0.5, .is_wide = true), .word = "bicubic_antialias", .a = -0.5,
     SENTENCE("The table was resized by a bicubic kernel with antialias and a = {found}; the configuration says "
              "{believed}.")},
    {KERNEL(LINEAR, CORNERS, ), .word = "bilinear_aligned",
     SENTENCE("The table was resized by a bilinear kernel with aligned corners; the configuration says {believed}.")},
    {KERNEL(LINEAR, HALF_PIXEL, .offset = 0.1), .word = "bilinear",
     SENTENCE("The table was resized by a bilinear kernel; the configuration says {believed}.")},
    {KERNEL(CUBIC, HALF_PIXEL, .a = -0.75, .offset = 0.1), .word = "bicubic", .a = -0.75,
     SENTENCE("The table was resized by a bicubic kernel with a = {found}; the configuration says {believed}.")},
    {KERNEL(CUBIC, HALF_PIXEL, .a = -0.5, .is_wide = true, .offset = 0.1), .word = "bicubic_antialias", .a = -0.5,
     SENTENCE("The table was resized by a bicubic kernel with antialias and a = {found}; the configuration says "
              "{believed}.")},
    {KERNEL(LINEAR, HALF_PIXEL, .is_wide = true), SENTENCE("The table was resized by a bilinear kernel as wide as the "
                                                           "step (antialias); the configuration says {believed}.")},
    {KERNEL(NEAREST, ASYMMETRIC, ),
     SENTENCE(
         "Each row of the result is the nearest row of the table, counted from the corners of pixels (nearest); the "
         "configuration says {believed}.")},
    {KERNEL(NEAREST, HALF_PIXEL, ),
     SENTENCE("Each row of the result is the nearest row of the table, between the centres of pixels (nearest-exact); "
              "the configuration says {believed}.")},
    {KERNEL(CUBIC, CORNERS, .a = -0.75),
     SENTENCE("The table was resized by a bicubic kernel with aligned corners and a = {found}; the configuration says "
              "{believed}.")},
    {KERNEL(LINEAR, ASYMMETRIC, ),
     SENTENCE(
         "The table was resized by a bilinear kernel at coordinates that begin at the corner of a pixel, not at its "
         "centre; the configuration says {believed}.")},
    {KERNEL(CUBIC, ASYMMETRIC, .a = -0.75),
     SENTENCE("The table was resized by a bicubic kernel with a = {found} at coordinates that begin at the corner of a "
              "pixel, not at its centre; the configuration says {believed}.")},
#undef KERNEL
#undef SENTENCE
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static bool has_word(const struct row *row, const struct pe_kernel *kernel)
{
    return row->word && (kernel->kind != PE_KERNEL_CUBIC || kernel->a == row->a);
}

/* Is it the believed one? */
static bool is_believed(const struct pe_diagnosis *d, const struct pe_edit *edit, const struct row *row,
                        const struct pe_kernel *kernel)
{
    return has_word(row, kernel) && pe_edit_is_word(d, edit, "interpolate", row->word) &&
           pe_edit_real(d, edit, "interpolate_offset", 0) == kernel->offset;
}

/* ---- Into an edit ---- */

/* A kernel as a list of a named relation. */
static void write_kernel(const struct pe_kernel *k, double *out)
{
    const double list[] = {k->kind, k->rule, k->is_wide, k->by_column, k->a, k->offset};
    memcpy(out, list, sizeof list);
}

enum { N_OF_KERNEL = 6 };

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
    return true;
}

/* The words of a row. */
static bool set_word(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    const struct row *row = &rows[named->related.row];
    if (!pe_edit_is_word(d, edit, "interpolate", row->word))
        pe_edit_set_word(edit, "interpolate", row->word);
    if (pe_edit_real(d, edit, "interpolate_offset", 0) != row->kernel.offset)
        pe_edit_set_real(edit, "interpolate_offset", row->kernel.offset);
    return true;
}

static bool exchange(const struct pe_diagnosis *d, struct pe_edit *edit, const char *name)
{
    const struct pe_value *v = pe_edit_value(d, edit, name);
    struct pe_reals list = {v ? v->array : (struct pe_tensor){.rank = 0}, 2};
    if (!v || v->kind != PE_ARRAY || v->array.rank != 1 || v->array.shape[0] != 2)
        return false;
    pe_edit_set_reals(edit, name, (const double[]){pe_real_at(&list, 1), pe_real_at(&list, 0)}, 2);
    return true;
}

static bool exchange_grid(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    (void)named;
    return exchange(d, edit, "grid");
}

static bool exchange_table(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    (void)named;
    return exchange(d, edit, "table_grid");
}

/* Rows of the table as they are. */
static bool take_rows(struct pe_diagnosis *d, const struct pe_named *named, struct pe_edit *edit)
{
    static const char *const fields[] = {"interpolate", "interpolate_offset", "table_grid", "num_prefix"};
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
    other_grid =
        {&pe_fault_axes_swapped, 1, NULL,
         "Height and width changed places: the grid has {found} rows; in the configuration it has {believed}."},
    other_table = {&pe_fault_axes_swapped, 1, NULL,
                   "Height and width of the table changed places: it was read as {found} rows; in the configuration it "
                   "has {believed}."},
    by_column = {
        &pe_fault_axes_swapped, 1, NULL,
        "The result is transposed, column by column: its second row is at column {found}; in the configuration "
        "at column {believed}."};

static struct pe_named *add(struct pe_diagnosis *d, const struct pe_relation *relation, double found, double believed,
                            struct pe_part *part)
{
    struct pe_named *named = pe_named_add(d);
    if (!named)
        return NULL;
    *named = (struct pe_named){.relation = relation, .related = {found, believed, 0, 1}};
    *part = pe_named_part(d, named);
    return named;
}

static bool keep_kernel(struct pe_diagnosis *d, struct pe_named *named, const struct pe_kernel *kernel)
{
    named->predicted = malloc(N_OF_KERNEL * sizeof *named->predicted);
    d->no_memory |= !named->predicted;
    if (named->predicted)
        write_kernel(kernel, named->predicted);
    named->apply = set_kernel;
    return named->predicted;
}

static size_t relate_sides(struct pe_diagnosis *d, const struct pe_resizing *s, struct pe_part *parts)
{
    const struct pe_plan *plan = d->belief.plan;
    uint64_t from[2], to[2], n_prefix;
    struct pe_named *named;
    if (!(s->grid_exchanged || s->table_exchanged || s->kernel.by_column) ||
        !pe_resized_sides(plan, from, to, &n_prefix))
        return 0;
    if (s->kernel.by_column) {
        named = add(d, &by_column, 0, 1, parts);
        return named && keep_kernel(d, named, &s->kernel);
    }
    const uint64_t *sides = s->grid_exchanged ? to : from;
    named = add(d, s->grid_exchanged ? &other_grid : &other_table, (double)sides[1], (double)sides[0], parts);
    if (named)
        named->apply = s->grid_exchanged ? exchange_grid : exchange_table;
    return named != NULL;
}

static size_t relate_kernel(struct pe_diagnosis *d, const struct pe_edit *edit, const struct pe_resizing *s,
                            size_t which, struct pe_part *part)
{
    static const struct pe_relation of_word = {&pe_fault_interpolation_other, 1, NULL, NULL};
    bool is_word = has_word(&rows[which], &s->kernel) && !s->kernel.by_column;
    if (is_believed(d, edit, &rows[which], &s->kernel))
        return 0;
    struct pe_named *named = add(d, is_word ? &of_word : &rows[which].relation, s->kernel.a, 0, part);
    if (!named)
        return 0;
    const struct pe_value *believed = pe_edit_value(d, edit, "interpolate");
    named->word = believed ? believed->string : NULL;
    named->related.row = which;
    named->apply = set_word;
    return is_word || keep_kernel(d, named, &s->kernel);
}

size_t pe_relate_table(struct pe_diagnosis *d, struct pe_edit *edit, bool is_first, struct pe_part *parts)
{
    enum { BITS = 60 }; /* 20 for one number, 20 for which kernel it is, 20 more */
    struct pe_kernel kernels[N_ROWS];
    struct pe_resizing s;
    size_t which, n;
    const struct pe_plan *plan = d->belief.plan;
    double numbers = (double)d->evidence.n_rows * (double)d->evidence.row_len,
           bits = numbers * log2(1 / (4 * pe_evidence_noise(&d->evidence) + 1e-6));
    bool is_table = pe_same(d->belief.inheritance->scheme->info.name, "learned") && pe_edit_has(d, edit, "table_grid");
    if (!is_table || !is_first || bits <= BITS)
        return 0;
    for (size_t i = 0; i < N_ROWS; i++)
        kernels[i] = rows[i].kernel;
    if (!pe_measure_resizing(d, edit, kernels, N_ROWS, &s, &which)) {
        bool may = plan->weights[0].tensor.shape[0] == d->evidence.n_rows;
        struct pe_named *named = may ? add(d, &unchanged, 0, 0, parts) : NULL;
        if (named)
            named->apply = take_rows;
        return named != NULL;
    }
    n = relate_sides(d, &s, parts);
    return n + relate_kernel(d, edit, &s, which, parts + n);
}
