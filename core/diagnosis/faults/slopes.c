/* Lists of ALiBi's slopes. */
#include "core/diagnosis/diagnosis.h"

/* ---- As a plan gives them ---- */

static enum pe_status plan_slopes(const struct pe_field *fields, size_t n, struct pe_plan **plan, struct pe_error *err)
{
    static const char *const outputs[] = {"slopes"};
    const struct pe_request request = {
        .operation = PE_ENCODE, .fields = fields, .n_fields = n, .dtype = PE_F64, .outputs = outputs, .n_outputs = 1};
    return pe_plan_new(&request, plan, err);
}

bool pe_slopes_read(struct pe_diagnosis *d, const struct pe_edit *edit, size_t n_heads, bool own, double *slopes)
{
    struct pe_field fields[5] = {
        {"scheme", {.kind = PE_STRING, .string = "alibi"}},
        {"num_heads", {.kind = PE_INTEGER, .integer = (int64_t)n_heads}},
        {"len", {.kind = PE_INTEGER, .integer = 1}},
        {"bias_max", {.kind = PE_REAL, .real = pe_edit_real(d, edit, "bias_max", 8)}},
    };
    const struct pe_value *list = own ? pe_edit_value(d, edit, "slopes") : NULL;
    struct pe_plan *plan;
    struct pe_error err;
    if (list)
        fields[4] = (struct pe_field){"slopes", *list};
    enum pe_status status = plan_slopes(fields, list ? 5 : 4, &plan, &err);
    d->no_memory |= status == PE_NO_MEMORY;
    if (status)
        return false;
    pe_fill(plan, 0, 0, n_heads, slopes);
    pe_plan_free(plan);
    return true;
}

/* ---- As the tensor has them ---- */

enum { COLUMNS = 256 };

/* Both ends of a row: in causal tensors the last query sees most, else the first queries see farthest. */
static bool read_row(const struct pe_model *unit, uint64_t row, double u, struct pe_ratio *a)
{
    const struct pe_evidence *e = &unit->d->evidence;
    double found[COLUMNS], ones[COLUMNS];
    size_t n = e->row_len < COLUMNS ? (size_t)e->row_len : COLUMNS;
    bool agrees = true;
    for (uint64_t col0 = 0; agrees; col0 = e->row_len - n) {
        pe_evidence_read(e, 0, row, col0, n, found);
        pe_model_fill(unit, 0, row, col0, n, ones);
        agrees = pe_ratio_add(a, found, ones, n, u);
        if (col0 == e->row_len - n)
            break;
    }
    return agrees;
}

static bool read_head(const struct pe_model *unit, size_t head, size_t n_heads, double u, double *slope)
{
    uint64_t q_len = unit->d->evidence.n_rows / n_heads;
    const uint64_t queries[] = {0, q_len / 2, q_len - 1};
    struct pe_ratio a;
    pe_ratio_init(&a);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        if (pe_is_cancelled() || !read_row(unit, head * q_len + queries[i], u, &a))
            return false;
    *slope = 0; /* of a head whose slope nothing depends on */
    return pe_ratio_is_consistent(&a) && (!pe_ratio_is_known(&a) || pe_ratio_choose(&a, slope));
}

static bool read_heads(const struct pe_model *unit, size_t n_heads, double u, double *slopes)
{
    for (size_t h = 0; h < n_heads; h++)
        if (!read_head(unit, h, n_heads, u, &slopes[h]))
            return false;
    return true;
}

static void set_all(struct pe_edit *edit, const char *name, double x, double *room, size_t n)
{
    for (size_t h = 0; h < n; h++)
        room[h] = x;
    pe_edit_set_reals(edit, name, room, n);
}

/* The edit with slopes of 1. Where the two sides have their own slopes, those of the other side are 0. */
static enum pe_status unit_model(struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, double *room,
                                 size_t n_heads, struct pe_model **unit)
{
    struct pe_edit ones = *edit;
    struct pe_error err;
    ones.n_owned = 0; /* the rest is borrowed */
    ones.transforms.mask_value = (double)NAN;
    if (!pe_same(name, "slopes")) {
        set_all(&ones, "slopes_left", 0, room, n_heads);
        set_all(&ones, "slopes_right", 0, room, n_heads);
    }
    set_all(&ones, name, 1, room, n_heads);
    enum pe_status status = ones.failed ? PE_NO_MEMORY : pe_model_new(d, &ones, unit, &err);
    pe_edit_drop(&ones);
    d->no_memory |= status == PE_NO_MEMORY;
    return status;
}

bool pe_slopes_fit(struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, size_t n_heads, double *slopes)
{
    struct pe_model *unit;
    if (unit_model(d, edit, name, slopes, n_heads, &unit))
        return false;
    double u = pe_roundoff(d->evidence.dtype), narrow = pe_roundoff(d->evidence.narrow);
    bool agrees = read_heads(unit, n_heads, u, slopes) ||
                  (d->evidence.narrow != PE_DTYPE_NONE && read_heads(unit, n_heads, narrow, slopes));
    pe_model_free(unit);
    return agrees;
}
