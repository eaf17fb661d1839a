/* Two checkpoints of one projection: which row of w_found is which row of w_believed.
 *
 * A conversion between checkpoints moves rows and changes none of their numbers. So equal rows get one number, their
 * class, and from there on everything is about lists of classes: a reading (rows moved by a conversion, heads moved,
 * blocks of a fused matrix) is a rule that states where each row came from, and it holds if the classes agree. Rows
 * that are equal have one class, so they match in any order. A sign, exchanged axes and a factor change the numbers
 * before they are compared: each is a variant, with classes of its own. */
#include "core/diagnosis/weights.h"
#include "core/numeric/numeric.h"
#include "core/params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The request ---- */

static const struct pe_param rows[] = {
    PE_P_INT(pe_matrices_fields, num_heads, PE_UNSET, 1, PE_WEIGHT_ROWS_MAX, "heads", "query heads of the model",
             .group = PE_G_SIZE),
    PE_P_INT(pe_matrices_fields, num_kv_heads, PE_UNSET, 1, PE_WEIGHT_ROWS_MAX, "key heads",
             "heads of keys; given, the matrices are those of keys", .group = PE_G_SIZE),
    PE_P_INT(pe_matrices_fields, head_dim, PE_UNSET, 2, PE_WEIGHT_ROWS_MAX, "channels of a head",
             "rows of one head; follows from the heads", .group = PE_G_SIZE),
    PE_P_INT(pe_matrices_fields, rotary_dim, PE_UNSET, 2, PE_WEIGHT_ROWS_MAX, "rotated channels",
             "rows of a head that a conversion moves, the first ones; default all", .group = PE_G_SIZE),
    PE_P_WORD(pe_matrices_fields, conversion, pe_matrices_conversions, "conversion",
              "what w_found should have had done to the rows of w_believed", .group = PE_G_LAYOUT),
    PE_P_END};

const struct pe_param *pe_weights_params(void) { return rows; }

bool pe_weights_are_sent(const struct pe_diagnosis_request *request)
{
    return pe_field_find(request->fields, request->n_fields, pe_matrices_names[PE_BELIEVED]) ||
           pe_field_find(request->fields, request->n_fields, pe_matrices_names[PE_FOUND]);
}

/* ---- Reading the request ---- */

static enum pe_status take(struct pe_matrices *w, int i, struct pe_matrix *m)
{
    const struct pe_diagnosis_request *request = w->d->request;
    const struct pe_value *v = pe_field_find(request->fields, request->n_fields, pe_matrices_names[i]);
    char pointer[24], shape[96];
    uint64_t n;
    snprintf(pointer, sizeof pointer, "/%s", pe_matrices_names[i]);
    if (!v)
        return pe_fail(w->err, pointer, "%s is missing; %s is compared with it", pe_matrices_names[i],
                       pe_matrices_names[1 - i]);
    if (v->kind != PE_ARRAY || !pe_dtype_is_real(v->array.dtype))
        return pe_fail(w->err, pointer, "%s is not a matrix of real numbers", pe_matrices_names[i]);
    struct pe_tensor t = v->array;
    while (t.rank > 2 && t.shape[0] == 1)
        memmove(t.shape, t.shape + 1, --t.rank * sizeof *t.shape);
    if (t.rank != 2 || !pe_shape_count(t.shape, t.rank, &n) || n == 0) {
        pe_shape_print(v->array.shape, v->array.rank, shape, sizeof shape);
        return pe_fail(w->err, pointer, "%s has the shape %s; needed: [out, in], with elements", pe_matrices_names[i],
                       shape);
    }
    *m = (struct pe_matrix){t.data, t.dtype, v->from_text, t.shape[0], t.shape[1], t.shape[1], 1, t.dtype};
    return PE_OK;
}

static enum pe_status check_sizes(struct pe_matrices *w)
{
    const struct pe_matrix *b = &w->believed, *f = &w->found, t = pe_matrices_turned(f);
    double bytes = (double)(b->n_rows * b->n_cols) * (double)pe_dtype_size(b->is_text ? PE_F32 : b->dtype) +
                   (double)(f->n_rows * f->n_cols) * (double)pe_dtype_size(f->is_text ? PE_F32 : f->dtype);
    if (bytes > (double)PE_EVIDENCE_BYTES_MAX) {
        pe_fail(w->err, "",
                "the tensors have %.0f bytes; allowed: at most %llu (64 MiB). 64 columns of each row are enough", bytes,
                PE_EVIDENCE_BYTES_MAX);
        return w->err->status = PE_TOO_LARGE;
    }
    bool is_long = b->n_rows > PE_WEIGHT_ROWS_MAX;
    if (is_long || (f->n_cols == b->n_cols && f->n_rows > PE_WEIGHT_ROWS_MAX)) {
        pe_fail(w->err, is_long ? "/w_believed" : "/w_found", "%s has %llu rows; allowed: at most %d",
                pe_matrices_names[is_long ? PE_BELIEVED : PE_FOUND], (unsigned long long)(is_long ? b : f)->n_rows,
                PE_WEIGHT_ROWS_MAX);
        return w->err->status = PE_TOO_LARGE;
    }
    if (pe_matrices_is_like(w, f) || pe_matrices_is_like(w, &t))
        return PE_OK;
    return pe_fail(w->err, "/w_found",
                   "w_found has the shape [%llu,%llu]; w_believed has %llu columns, so it needs "
                   "as many, or as many rows if it is transposed",
                   (unsigned long long)f->n_rows, (unsigned long long)f->n_cols, (unsigned long long)b->n_cols);
}

/* No scheme, and nothing of a model but its heads. */
static enum pe_status read_fields(struct pe_matrices *w)
{
    const struct pe_diagnosis_request *request = w->d->request;
    const char *known[sizeof rows / sizeof *rows] = {NULL};
    bool taken[PE_FIELDS_MAX] = {false};
    if (request->n_fields > PE_FIELDS_MAX)
        return pe_fail(w->err, "", "the request has %zu fields; allowed: at most %d", request->n_fields, PE_FIELDS_MAX);
    for (size_t i = 0; rows[i].name; i++)
        known[i] = rows[i].name;
    if (pe_params_read(rows, &w->fields, request->fields, request->n_fields, taken, "", w->err))
        return w->err->status;
    for (size_t i = 0; i < request->n_fields; i++) {
        const char *name = request->fields[i].name, *nearest = pe_nearest(name, known);
        if (taken[i] || pe_same(name, pe_matrices_names[PE_BELIEVED]) || pe_same(name, pe_matrices_names[PE_FOUND]))
            continue;
        if (nearest)
            return pe_fail_at(w->err, "", name,
                              "unknown field \"%.64s\" beside w_believed and w_found; nearest: \"%s\"", name, nearest);
        return pe_fail_at(w->err, "", name,
                          "unknown field \"%.64s\" beside w_believed and w_found; allowed: num_heads, num_kv_heads, "
                          "head_dim, rotary_dim, conversion",
                          name);
    }
    return PE_OK;
}

/* Heads of this matrix: keys' where given. */
static enum pe_status find_heads(struct pe_matrices *w)
{
    const struct pe_matrices_fields *f = &w->fields;
    const char *name = pe_matrices_has(f->num_kv_heads) ? "num_kv_heads"
                       : pe_matrices_has(f->num_heads)  ? "num_heads"
                                                        : "head_dim";
    int64_t out = (int64_t)w->believed.n_rows, n = pe_matrices_has(f->num_kv_heads) ? f->num_kv_heads : f->num_heads;
    char pointer[24];
    snprintf(pointer, sizeof pointer, "/%s", name);
    if (!pe_matrices_has(n) && !pe_matrices_has(f->head_dim))
        return pe_fail(w->err, "/num_heads", "num_heads is missing (for wk, num_kv_heads too), or head_dim");
    int64_t parts = pe_matrices_has(n) ? n : f->head_dim;
    if (out % parts || (out / parts == 0))
        return pe_fail(w->err, pointer, "%s is %lld, which does not divide the %lld rows of w_believed", name,
                       (long long)parts, (long long)out);
    int64_t width = pe_matrices_has(n) ? out / n : f->head_dim;
    if (pe_matrices_has(f->head_dim) && f->head_dim != width)
        return pe_fail(w->err, "/head_dim", "head_dim is %lld, but %s and the %lld rows of w_believed give %lld",
                       (long long)f->head_dim, name, (long long)out, (long long)width);
    int64_t rotated = pe_matrices_has(f->rotary_dim) ? f->rotary_dim : width;
    if (width % 2 && !pe_matrices_has(f->rotary_dim))
        return pe_fail(w->err, pointer, "a head has %lld rows; needed: an even number", (long long)width);
    if (rotated > width || rotated % 2)
        return pe_fail(w->err, "/rotary_dim",
                       "rotary_dim is %lld; needed: an even number, at most the %lld rows of a "
                       "head",
                       (long long)rotated, (long long)width);
    w->heads = (struct pe_row_heads){(uint64_t)(out / width), (uint64_t)width, (uint64_t)rotated};
    return PE_OK;
}

/* ---- Dtypes ---- */

/* The narrowest dtype that holds every number: bf16, f16, or as sent. */
static enum pe_status look_over(struct pe_matrices *w, struct pe_matrix *m, const char *name)
{
    double x[PE_WEIGHTS_PIECE];
    char pointer[24];
    enum pe_dtype own = m->is_text ? PE_F32 : m->dtype;
    bool is_wide = own == PE_F32 || own == PE_F64, fits_bf16 = is_wide, fits_f16 = is_wide;
    snprintf(pointer, sizeof pointer, "/%s", name);
    for (uint64_t row = 0; row < m->n_rows; row++)
        for (uint64_t at = 0; at < m->n_cols; at += PE_WEIGHTS_PIECE) {
            size_t n = pe_matrices_piece(m->n_cols, at);
            pe_matrices_read_plain(m, row, at, n, x);
            for (size_t i = 0; i < n; i++) {
                if (!isfinite(x[i]))
                    return pe_fail(w->err, pointer, "%s is not finite in row %llu, column %llu", name,
                                   (unsigned long long)row, (unsigned long long)(at + i));
                fits_bf16 = fits_bf16 && pe_round_to(PE_BF16, x[i]) == x[i];
                fits_f16 = fits_f16 && pe_round_to(PE_F16, x[i]) == x[i];
            }
            if (at % (64 * PE_WEIGHTS_PIECE) == 0 && pe_matrices_gives_up(w))
                return w->err->status;
        }
    m->least = fits_bf16 ? PE_BF16 : fits_f16 ? PE_F16 : own;
    return PE_OK;
}

static enum pe_dtype narrower(enum pe_dtype a, enum pe_dtype b)
{
    return pe_matrices_bits(b) < pe_matrices_bits(a) ? b : a;
}

/* ---- The whole ---- */

static enum pe_status check_work(const struct pe_matrices *w)
{
    uint64_t others[PE_HEAD_COUNTS_MAX];
    double n = (double)w->believed.n_rows + (double)w->found.n_rows,
           heads = 1 + (double)pe_matrices_other_heads(w, others);
    double work = n * (double)w->believed.n_cols + n * sqrt((double)w->believed.n_cols) * heads;
    if (work <= w->d->request->max_work)
        return PE_OK;
    pe_fail(w->err, "", "comparing the rows needs about %.0f multiply-adds; allowed: %.0f", work,
            w->d->request->max_work);
    w->err->status = PE_TOO_LARGE;
    return pe_advise(w->err, PE_RAISE_DIAGNOSIS, NULL);
}

static enum pe_status allocate(struct pe_matrices *w)
{
    size_t n = w->believed.n_rows, slots = pe_matrices_slots(n);
    uint64_t longest = w->found.n_rows > w->found.n_cols ? w->found.n_rows : w->found.n_cols;
    size_t m = (size_t)(longest > n ? longest : n);
    double bytes = (double)(3 * n + m + slots) * sizeof(uint32_t) + (double)(n + 4 * n) * sizeof(double);
    if (pe_diagnosis_admit(w->d, bytes, w->err))
        return w->err->status;
    w->of_believed = malloc((3 * n + m + slots) * sizeof *w->of_believed);
    w->hashes = malloc((n + 4 * n) * sizeof *w->hashes);
    if (!w->of_believed || !w->hashes)
        return pe_no_memory(w->err);
    w->expected = w->of_believed + n;
    w->place = w->expected + n;
    w->of_found = w->place + n;
    w->table = w->of_found + m;
    w->keys = (double *)(void *)(w->hashes + n);
    return PE_OK;
}

static enum pe_status compare(struct pe_matrices *w)
{
    struct pe_row_readings r = {.n = 0};
    uint64_t missing = 0;
    const struct pe_row_moves moves = {w->fields.conversion, 1, w->heads};
    if (look_over(w, &w->believed, pe_matrices_names[PE_BELIEVED]) ||
        look_over(w, &w->found, pe_matrices_names[PE_FOUND]))
        return w->err->status;
    enum pe_dtype b = w->believed.is_text ? PE_F32 : w->believed.dtype, f = w->found.is_text ? PE_F32 : w->found.dtype;
    w->dtype = narrower(narrower(b, f), pe_matrices_is_narrowed(w) ? w->found.least : f);
    if (!pe_matrices_class_believed(w))
        return w->err->status;
    for (uint64_t i = 0; i < w->believed.n_rows; i++)
        w->expected[i] = w->of_believed[pe_matrices_row_before(&moves, i)];
    enum pe_status status = pe_matrices_read_all(w, &r, &missing);
    return status ? status : pe_matrices_state(w, &r, missing);
}

enum pe_status pe_weights_diagnose(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct pe_matrices w = {.d = d, .err = err};
    enum pe_status status = take(&w, PE_BELIEVED, &w.believed);
    if (!status)
        status = take(&w, PE_FOUND, &w.found);
    if (!status)
        status = read_fields(&w);
    if (!status)
        status = check_sizes(&w);
    if (!status)
        status = find_heads(&w);
    if (!status)
        status = check_work(&w);
    if (!status)
        status = allocate(&w);
    if (!status)
        status = compare(&w);
    free(w.of_believed);
    free(w.hashes);
    return status;
}
