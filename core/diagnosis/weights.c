/* Two checkpoints of one projection: which row of w_found is which row of w_believed.
 *
 * A conversion between checkpoints moves rows and changes none of their numbers. So equal rows get one number, their
 * class, and from there on everything is about lists of classes: a reading (rows moved by a conversion, heads moved,
 * blocks of a fused matrix) is a rule that states where each row came from, and it holds if the classes agree. Rows
 * that are equal have one class, so they match in any order. A sign, exchanged axes and a factor change the numbers
 * before they are compared: each is a variant, with classes of its own. */
#include "core/diagnosis/diagnosis.h"
#include "core/numeric/numeric.h"
#include "core/params.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 65536, READINGS_MAX = 16, SOME = 1024, ORDER_MAX = 64 };
#define NOWHERE UINT32_MAX

/* ---- The request ---- */

enum { NO_CONVERSION, TO_HALF, TO_INTERLEAVED };
static const char *const conversions[] = {"none", "interleaved_to_half", "half_to_interleaved", NULL};

struct fields {
    int64_t num_heads, num_kv_heads, head_dim, rotary_dim;
    int conversion;
};

static const struct pe_param rows[] = {
    PE_P_INT(fields, num_heads, PE_UNSET, 1, ROWS_MAX, "heads", "query heads of the model", .group = PE_G_SIZE),
    PE_P_INT(fields, num_kv_heads, PE_UNSET, 1, ROWS_MAX, "key heads",
             "heads of keys; given, the matrices are those of keys", .group = PE_G_SIZE),
    PE_P_INT(fields, head_dim, PE_UNSET, 2, ROWS_MAX, "channels of a head", "rows of one head; follows from the heads",
             .group = PE_G_SIZE),
    PE_P_INT(fields, rotary_dim, PE_UNSET, 2, ROWS_MAX, "rotated channels",
             "rows of a head that a conversion moves, the first ones; default all", .group = PE_G_SIZE),
    PE_P_WORD(fields, conversion, conversions, "conversion",
              "what w_found should have had done to the rows of w_believed", .group = PE_G_LAYOUT),
    PE_P_END};

const struct pe_param *pe_weights_params(void) { return rows; }

static const char *const names[] = {"w_believed", "w_found"};
enum { BELIEVED, FOUND };

bool pe_weights_are_sent(const struct pe_diagnosis_request *request)
{
    return pe_field_find(request->fields, request->n_fields, names[BELIEVED]) ||
           pe_field_find(request->fields, request->n_fields, names[FOUND]);
}

/* ---- A matrix ---- */

struct matrix {
    const void *data;
    enum pe_dtype dtype;
    bool is_text;
    uint64_t n_rows, n_cols, row_step, col_step;
    enum pe_dtype least; /* the narrowest that holds every number */
};

/* Rows that a conversion moves in each head. */
struct heads {
    uint64_t n, rows, rotated;
};

struct weights {
    struct pe_diagnosis *d;
    struct pe_failure *err;
    struct fields fields;
    struct matrix believed, found;
    struct heads heads;  /* as believed */
    enum pe_dtype dtype; /* in which rows are compared */
    double factor;       /* of the variant: found over believed, with its sign */
    uint32_t *of_believed, *expected, *of_found, *place, *table;
    uint64_t *hashes;
    double *keys;
};

static double bits_of(enum pe_dtype dtype) { return -log2(pe_roundoff(dtype)); }

static enum pe_dtype narrower(enum pe_dtype a, enum pe_dtype b) { return bits_of(b) < bits_of(a) ? b : a; }

/* n numbers of a row as they were sent. */
static void read_plain(const struct matrix *m, uint64_t row, uint64_t col0, size_t n, double *out)
{
    size_t size = pe_dtype_size(m->dtype);
    const char *from = (const char *)m->data + (row * m->row_step + col0 * m->col_step) * size;
    if (m->col_step == 1)
        pe_convert(PE_F64, out, m->dtype, from, n);
    for (size_t i = 0; m->col_step != 1 && i < n; i++)
        out[i] = pe_element(m->dtype, from, i * m->col_step);
    for (size_t i = 0; m->is_text && i < n; i++)
        out[i] = (double)(float)out[i];
}

static void read_row(const struct weights *w, const struct matrix *m, uint64_t row, uint64_t col0, size_t n,
                     double *out)
{
    bool is_rounded = w->dtype != (m->is_text ? PE_F32 : m->dtype);
    read_plain(m, row, col0, n, out);
    for (size_t i = 0; is_rounded && i < n; i++)
        out[i] = pe_round_to(w->dtype, out[i]);
}

static size_t piece(uint64_t n, uint64_t at) { return n - at < SOME ? (size_t)(n - at) : SOME; }

static bool gives_up(const struct weights *w)
{
    if (!pe_is_cancelled())
        return false;
    pe_cancelled(w->err);
    return true;
}

/* ---- Reading the request ---- */

static enum pe_status take(struct weights *w, int i, struct matrix *m)
{
    const struct pe_diagnosis_request *request = w->d->request;
    const struct pe_value *v = pe_field_find(request->fields, request->n_fields, names[i]);
    char pointer[24], shape[96];
    uint64_t n;
    snprintf(pointer, sizeof pointer, "/%s", names[i]);
    if (!v)
        return pe_fail(w->err, pointer, "%s is missing; %s is compared with it", names[i], names[1 - i]);
    if (v->kind != PE_ARRAY || !pe_dtype_is_real(v->array.dtype))
        return pe_fail(w->err, pointer, "%s is not a matrix of real numbers", names[i]);
    struct pe_tensor t = v->array;
    while (t.rank > 2 && t.shape[0] == 1)
        memmove(t.shape, t.shape + 1, --t.rank * sizeof *t.shape);
    if (t.rank != 2 || !pe_shape_count(t.shape, t.rank, &n) || n == 0) {
        pe_shape_print(v->array.shape, v->array.rank, shape, sizeof shape);
        return pe_fail(w->err, pointer, "%s has the shape %s; needed: [out, in], with elements", names[i], shape);
    }
    *m = (struct matrix){t.data, t.dtype, v->from_text, t.shape[0], t.shape[1], t.shape[1], 1, t.dtype};
    return PE_OK;
}

static struct matrix turned(const struct matrix *m)
{
    struct matrix t = *m;
    t.n_rows = m->n_cols;
    t.n_cols = m->n_rows;
    t.row_step = m->col_step;
    t.col_step = m->row_step;
    return t;
}

static bool is_like(const struct weights *w, const struct matrix *found)
{
    return found->n_cols == w->believed.n_cols && found->n_rows <= ROWS_MAX;
}

static enum pe_status check_sizes(struct weights *w)
{
    const struct matrix *b = &w->believed, *f = &w->found, t = turned(f);
    double bytes = (double)(b->n_rows * b->n_cols) * (double)pe_dtype_size(b->is_text ? PE_F32 : b->dtype) +
                   (double)(f->n_rows * f->n_cols) * (double)pe_dtype_size(f->is_text ? PE_F32 : f->dtype);
    if (bytes > (double)PE_EVIDENCE_BYTES_MAX) {
        pe_fail(w->err, "",
                "the tensors have %.0f bytes; allowed: at most %llu (64 MiB). 64 columns of each row are enough", bytes,
                PE_EVIDENCE_BYTES_MAX);
        return w->err->status = PE_TOO_LARGE;
    }
    bool is_long = b->n_rows > ROWS_MAX;
    if (is_long || (f->n_cols == b->n_cols && f->n_rows > ROWS_MAX)) {
        pe_fail(w->err, is_long ? "/w_believed" : "/w_found", "%s has %llu rows; allowed: at most %d",
                names[is_long ? BELIEVED : FOUND], (unsigned long long)(is_long ? b : f)->n_rows, ROWS_MAX);
        return w->err->status = PE_TOO_LARGE;
    }
    if (is_like(w, f) || is_like(w, &t))
        return PE_OK;
    return pe_fail(w->err, "/w_found",
                   "w_found has the shape [%llu,%llu]; w_believed has %llu columns, so it needs "
                   "as many, or as many rows if it is transposed",
                   (unsigned long long)f->n_rows, (unsigned long long)f->n_cols, (unsigned long long)b->n_cols);
}

/* No scheme, and nothing of a model but its heads. */
static enum pe_status read_fields(struct weights *w)
{
    const struct pe_diagnosis_request *request = w->d->request;
    const char *known[sizeof rows / sizeof *rows] = {NULL};
    bool taken[PE_FIELDS_MAX] = {false};
    char pointer[PE_POINTER_MAX];
    if (request->n_fields > PE_FIELDS_MAX)
        return pe_fail(w->err, "", "the request has %zu fields; allowed: at most %d", request->n_fields, PE_FIELDS_MAX);
    for (size_t i = 0; rows[i].name; i++)
        known[i] = rows[i].name;
    if (pe_params_read(rows, &w->fields, request->fields, request->n_fields, taken, "", w->err))
        return w->err->status;
    for (size_t i = 0; i < request->n_fields; i++) {
        const char *name = request->fields[i].name, *nearest = pe_nearest(name, known);
        if (taken[i] || pe_same(name, names[BELIEVED]) || pe_same(name, names[FOUND]))
            continue;
        pe_pointer_join(pointer, sizeof pointer, "", name);
        if (nearest)
            return pe_fail(w->err, pointer, "unknown field \"%.64s\" beside w_believed and w_found; nearest: \"%s\"",
                           name, nearest);
        return pe_fail(w->err, pointer,
                       "unknown field \"%.64s\" beside w_believed and w_found; allowed: num_heads, num_kv_heads, "
                       "head_dim, rotary_dim, conversion",
                       name);
    }
    return PE_OK;
}

static bool has(int64_t x) { return x != PE_UNSET_INT; }

/* Heads of this matrix: keys' where given. */
static enum pe_status find_heads(struct weights *w)
{
    const struct fields *f = &w->fields;
    const char *name = has(f->num_kv_heads) ? "num_kv_heads" : has(f->num_heads) ? "num_heads" : "head_dim";
    int64_t out = (int64_t)w->believed.n_rows, n = has(f->num_kv_heads) ? f->num_kv_heads : f->num_heads;
    char pointer[24];
    snprintf(pointer, sizeof pointer, "/%s", name);
    if (!has(n) && !has(f->head_dim))
        return pe_fail(w->err, "/num_heads", "num_heads is missing (for wk, num_kv_heads too), or head_dim");
    int64_t parts = has(n) ? n : f->head_dim;
    if (out % parts || (out / parts == 0))
        return pe_fail(w->err, pointer, "%s is %lld, which does not divide the %lld rows of w_believed", name,
                       (long long)parts, (long long)out);
    int64_t width = has(n) ? out / n : f->head_dim;
    if (has(f->head_dim) && f->head_dim != width)
        return pe_fail(w->err, "/head_dim", "head_dim is %lld, but %s and the %lld rows of w_believed give %lld",
                       (long long)f->head_dim, name, (long long)out, (long long)width);
    int64_t rotated = has(f->rotary_dim) ? f->rotary_dim : width;
    if (width % 2 && !has(f->rotary_dim))
        return pe_fail(w->err, pointer, "a head has %lld rows; needed: an even number", (long long)width);
    if (rotated > width || rotated % 2)
        return pe_fail(w->err, "/rotary_dim",
                       "rotary_dim is %lld; needed: an even number, at most the %lld rows of a "
                       "head",
                       (long long)rotated, (long long)width);
    w->heads = (struct heads){(uint64_t)(out / width), (uint64_t)width, (uint64_t)rotated};
    return PE_OK;
}

/* ---- Dtypes ---- */

/* The narrowest dtype that holds every number: bf16, f16, or as sent. */
static enum pe_status look_over(struct weights *w, struct matrix *m, const char *name)
{
    double x[SOME];
    char pointer[24];
    enum pe_dtype own = m->is_text ? PE_F32 : m->dtype;
    bool is_wide = own == PE_F32 || own == PE_F64, fits_bf16 = is_wide, fits_f16 = is_wide;
    snprintf(pointer, sizeof pointer, "/%s", name);
    for (uint64_t row = 0; row < m->n_rows; row++)
        for (uint64_t at = 0; at < m->n_cols; at += SOME) {
            size_t n = piece(m->n_cols, at);
            read_plain(m, row, at, n, x);
            for (size_t i = 0; i < n; i++) {
                if (!isfinite(x[i]))
                    return pe_fail(w->err, pointer, "%s is not finite in row %llu, column %llu", name,
                                   (unsigned long long)row, (unsigned long long)(at + i));
                fits_bf16 = fits_bf16 && pe_round_to(PE_BF16, x[i]) == x[i];
                fits_f16 = fits_f16 && pe_round_to(PE_F16, x[i]) == x[i];
            }
            if (at % (64 * SOME) == 0 && gives_up(w))
                return w->err->status;
        }
    m->least = fits_bf16 ? PE_BF16 : fits_f16 ? PE_F16 : own;
    return PE_OK;
}

/* ---- Classes of rows ---- */

/* The bits of a number, mixed (MurmurHash3's finalizer); -0 is 0. */
static uint64_t mix(uint64_t h, double x)
{
    uint64_t bits;
    x += 0.0;
    memcpy(&bits, &x, sizeof bits);
    h = (h ^ bits) * 0xff51afd7ed558ccdU;
    return h ^ (h >> 32);
}

static uint64_t hash_row(const struct weights *w, const struct matrix *m, uint64_t row, double sign)
{
    double x[SOME];
    uint64_t h = 0x9e3779b97f4a7c15U;
    for (uint64_t at = 0; at < m->n_cols; at += SOME) {
        size_t n = piece(m->n_cols, at);
        read_row(w, m, row, at, n, x);
        for (size_t i = 0; i < n; i++)
            h = mix(h, sign * x[i]);
    }
    return h;
}

/* Is found = sign·believed, number for number? */
static bool are_equal(const struct weights *w, const struct matrix *a, uint64_t i, const struct matrix *b, uint64_t j,
                      double sign)
{
    double x[SOME], y[SOME];
    for (uint64_t at = 0; at < a->n_cols; at += SOME) {
        size_t n = piece(a->n_cols, at);
        read_row(w, a, i, at, n, x);
        read_row(w, b, j, at, n, y);
        for (size_t k = 0; k < n; k++)
            if (x[k] != sign * y[k])
                return false;
    }
    return true;
}

static size_t slots_of(uint64_t n)
{
    size_t slots = 2;
    while (slots < 2 * n)
        slots *= 2;
    return slots;
}

/* The slot of the believed row that this row equals, or the free one where it belongs. */
static uint32_t *slot_of(const struct weights *w, const struct matrix *m, uint64_t row, uint64_t hash, double sign)
{
    size_t slots = slots_of(w->believed.n_rows), at = (size_t)hash & (slots - 1);
    for (;; at = (at + 1) & (slots - 1)) {
        uint32_t other = w->table[at];
        if (other == NOWHERE || (w->hashes[other] == hash && are_equal(w, m, row, &w->believed, other, sign)))
            return &w->table[at];
    }
}

/* The first believed row that is equal is the class. */
static bool class_believed(struct weights *w)
{
    memset(w->table, 0xff, slots_of(w->believed.n_rows) * sizeof *w->table);
    for (uint64_t row = 0; row < w->believed.n_rows; row++) {
        if (row % 16 == 0 && gives_up(w))
            return false;
        w->hashes[row] = hash_row(w, &w->believed, row, 1);
        uint32_t *slot = slot_of(w, &w->believed, row, w->hashes[row], 1);
        if (*slot == NOWHERE)
            *slot = (uint32_t)row;
        w->of_believed[row] = *slot;
    }
    return true;
}

static bool class_found(struct weights *w, const struct matrix *found, double sign)
{
    for (uint64_t row = 0; row < found->n_rows; row++) {
        if (row % 16 == 0 && gives_up(w))
            return false;
        w->of_found[row] = *slot_of(w, found, row, hash_row(w, found, row, sign), sign);
    }
    return true;
}

/* Believed rows that no found row is. */
static uint64_t count_missing(const struct weights *w, uint64_t n_found)
{
    uint64_t missing = w->believed.n_rows;
    uint32_t *left = w->place; /* of each class, rows without a partner */
    memset(left, 0, w->believed.n_rows * sizeof *left);
    for (uint64_t i = 0; i < w->believed.n_rows; i++)
        left[w->of_believed[i]]++;
    for (uint64_t i = 0; i < n_found; i++)
        if (w->of_found[i] != NOWHERE && left[w->of_found[i]]) {
            left[w->of_found[i]]--;
            missing--;
        }
    return missing;
}

/* ---- One factor ---- */

/* Sums of a row: of squares; of numbers with signs and weights that follow no pattern, and of their magnitudes. */
struct sums {
    double squares, key, size;
};

static struct sums sums_of(const struct weights *w, const struct matrix *m, uint64_t row)
{
    struct sums s = {0, 0, 0};
    double x[SOME];
    for (uint64_t at = 0; at < m->n_cols; at += SOME) {
        size_t n = piece(m->n_cols, at);
        read_row(w, m, row, at, n, x);
        for (size_t i = 0; i < n; i++) {
            uint64_t h = mix(0x243f6a8885a308d3U, (double)(at + i + 1));
            double weight = ((double)(h >> 11) * 0x1p-53 - 0.5) * x[i];
            s.squares += x[i] * x[i];
            s.key += weight;
            s.size += fabs(weight);
        }
    }
    return s;
}

static int by_number(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Lengths of rows, sorted; the sum of their squares. NaN: given up. */
static double sorted_lengths(struct weights *w, const struct matrix *m, double *lengths)
{
    double all = 0;
    for (uint64_t row = 0; row < m->n_rows; row++) {
        if (row % 16 == 0 && gives_up(w))
            return (double)NAN;
        double squares = sums_of(w, m, row).squares;
        lengths[row] = sqrt(squares);
        all += squares;
    }
    qsort(lengths, m->n_rows, sizeof *lengths, by_number);
    return all;
}

/* The magnitude of the factor, if every length has it; 0: there is none. keys: [4, n_rows]. */
static double factor_of(struct weights *w, const struct matrix *found)
{
    uint64_t n = found->n_rows;
    double *a = w->keys, *b = w->keys + n, u = pe_roundoff(w->dtype);
    double of_believed = sorted_lengths(w, &w->believed, a), of_found = sorted_lengths(w, found, b);
    double factor = sqrt(of_found / of_believed);
    if (!(of_believed > 0) || !isfinite(factor) || !(factor > 0))
        return 0;
    for (uint64_t i = 0; i < n; i++)
        if (fabs(b[i] - factor * a[i]) > 4 * u * b[i])
            return 0;
    return pe_shortest_decimal(factor, 4 * u / sqrt((double)n * (double)found->n_cols) + 1e-15);
}

static bool is_scaled(const struct weights *w, const struct matrix *found, uint64_t i, uint64_t j, double factor)
{
    double x[SOME], y[SOME], u = pe_roundoff(w->dtype);
    for (uint64_t at = 0; at < found->n_cols; at += SOME) {
        size_t n = piece(found->n_cols, at);
        read_row(w, found, i, at, n, x);
        read_row(w, &w->believed, j, at, n, y);
        for (size_t k = 0; k < n; k++)
            if (fabs(x[k] - factor * y[k]) > 4 * u * fabs(x[k]) + 0x1p-126)
                return false;
    }
    return true;
}

/* Rows are found by one number each, sorted, and compared. keys: pairs of key and row, then sizes. */
static bool class_scaled(struct weights *w, const struct matrix *found, double factor)
{
    struct keyed {
        double key, row;
    } *sorted = (struct keyed *)(void *)w->keys;
    uint64_t n = w->believed.n_rows;
    for (uint64_t j = 0; j < n; j++) {
        if (j % 16 == 0 && gives_up(w))
            return false;
        sorted[j] = (struct keyed){factor * sums_of(w, &w->believed, j).key, (double)j};
    }
    qsort(sorted, n, sizeof *sorted, by_number);
    for (uint64_t i = 0; i < n; i++) {
        struct sums s = sums_of(w, found, i);
        double most = 4 * pe_roundoff(w->dtype) * s.size;
        uint64_t low = 0, high = n;
        while (low < high) {
            uint64_t middle = (low + high) / 2;
            if (sorted[middle].key < s.key - most)
                low = middle + 1;
            else
                high = middle;
        }
        w->of_found[i] = NOWHERE;
        for (; low < n && sorted[low].key <= s.key + most && w->of_found[i] == NOWHERE; low++)
            if (is_scaled(w, found, i, (uint64_t)sorted[low].row, factor))
                w->of_found[i] = w->of_believed[(uint64_t)sorted[low].row];
        if (i % 16 == 0 && gives_up(w))
            return false;
    }
    return true;
}

/* ---- Readings ---- */

/* Conversions within heads, one way or the other, so many times. */
struct moves {
    int conversion;
    unsigned times;
    struct heads heads;
};

/* The row that row i was before it was moved once. */
static uint64_t moved_once(const struct moves *m, uint64_t i)
{
    uint64_t j = i % m->heads.rows, half = m->heads.rotated / 2;
    if (j >= m->heads.rotated)
        return i;
    uint64_t from_interleaved = j < half ? 2 * j : 2 * (j - half) + 1;
    return i - j + (m->conversion == TO_HALF ? from_interleaved : j % 2 * half + j / 2);
}

static uint64_t row_before(const struct moves *m, uint64_t i)
{
    for (unsigned k = 0; m->conversion && k < m->times; k++)
        i = moved_once(m, i);
    return i;
}

/* A variant, then where the rows are. */
struct reading {
    const struct pe_fault *of_rows; /* NULL: they are in place */
    struct moves moves;
    bool replaces;                /* the moves were made in place of those that were believed */
    bool are_heads_moved;         /* whole heads, too */
    uint64_t first, block, every; /* of a fused matrix; block 0: it has as many rows as believed */
    bool is_turned;
    double factor;
    unsigned cost;
    int surprise;
};

struct readings {
    struct reading best[READINGS_MAX];
    size_t n, searched;
};

enum { READING_FAULTS_MAX = 6 };

/* The faults of a reading, in the order of the table; returns their number. */
static size_t faults_of(const struct reading *r, const struct pe_fault *out[READING_FAULTS_MAX])
{
    const struct pe_fault *const all[READING_FAULTS_MAX] = {r->of_rows,
                                                            r->are_heads_moved ? &pe_fault_heads_order : NULL,
                                                            r->block ? &pe_fault_rows_fused : NULL,
                                                            r->factor < 0 ? &pe_fault_negated : NULL,
                                                            r->is_turned ? &pe_fault_transposed : NULL,
                                                            fabs(r->factor) != 1 ? &pe_fault_scaled : NULL};
    size_t n = 0;
    for (size_t i = 0; i < READING_FAULTS_MAX; i++)
        if (all[i])
            out[n++] = all[i];
    return n;
}

static void keep(struct readings *r, struct reading one)
{
    const struct pe_fault *faults[READING_FAULTS_MAX];
    size_t n = faults_of(&one, faults);
    for (size_t i = 0; i < n; i++) {
        one.cost += faults[i] == &pe_fault_rows_other ? 3 : 1;
        one.surprise += faults[i]->plausibility;
    }
    size_t at = r->n;
    while (at > 0 && (r->best[at - 1].cost > one.cost ||
                      (r->best[at - 1].cost == one.cost && r->best[at - 1].surprise > one.surprise)))
        at--;
    if (at == READINGS_MAX)
        return;
    r->n += r->n < READINGS_MAX;
    memmove(&r->best[at + 1], &r->best[at], (r->n - 1 - at) * sizeof *r->best);
    r->best[at] = one;
}

/* Are the found rows from `first` on those of a list, as they were moved? */
static bool agree(const struct weights *w, const uint32_t *from, const struct moves *m, uint64_t first, uint64_t row0,
                  uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (w->of_found[first + i] != from[row_before(m, row0 + i)])
            return false;
    return true;
}

/* Heads by the class of their first row: of each class the first head, of each head the next one. */
struct by_first_row {
    uint32_t *first, *next;
};

static struct by_first_row list_heads(const struct weights *w, const uint32_t *from, const struct moves *m)
{
    struct by_first_row list = {(uint32_t *)(void *)w->keys, (uint32_t *)(void *)w->keys + w->believed.n_rows};
    memset(list.first, 0xff, w->believed.n_rows * sizeof *list.first);
    for (uint64_t j = w->heads.n; j-- > 0;) {
        uint32_t class = from[row_before(m, j * w->heads.rows)];
        list.next[j] = list.first[class];
        list.first[class] = (uint32_t)j;
    }
    return list;
}

/* Are whole heads in another order? order: [heads], NULL: not wanted; equal heads are taken in their order. */
static bool are_heads_moved(const struct weights *w, const uint32_t *from, const struct moves *m, int64_t *order)
{
    struct by_first_row list = list_heads(w, from, m);
    uint64_t n = w->heads.rows;
    for (uint64_t i = 0; i < w->heads.n; i++) {
        uint32_t class = w->of_found[i * n];
        if (class == NOWHERE || (i % 64 == 0 && pe_is_cancelled()))
            return false;
        uint32_t *link = &list.first[class];
        while (*link != NOWHERE && !agree(w, from, m, i * n, *link * n, n))
            link = &list.next[*link];
        if (*link == NOWHERE)
            return false;
        if (order)
            order[i] = *link;
        *link = list.next[*link];
    }
    return true;
}

/* Blocks of so many rows, each `every` rows after the one before. */
static bool are_blocks(const struct weights *w, const uint32_t *from, const struct moves *m, const struct reading *r)
{
    uint64_t n = w->believed.n_rows;
    for (uint64_t at = 0; at < n; at += r->block)
        if (!agree(w, from, m, r->first + at / r->block * r->every, at, r->block))
            return false;
    return true;
}

/* Where the second block begins, and that the last one ends within the matrix; false: there are no such blocks. */
static bool place_blocks(const struct weights *w, const uint32_t *from, const struct moves *m, uint64_t n_found,
                         struct reading *r)
{
    uint64_t n = w->believed.n_rows, n_blocks = n / r->block;
    r->every = n_found;
    if (n_blocks == 1)
        return r->first + n <= n_found && are_blocks(w, from, m, r);
    uint32_t next = from[row_before(m, r->block)];
    for (uint64_t every = r->block + 1; r->first + (n_blocks - 1) * every + r->block <= n_found; every++) {
        r->every = every;
        if (w->of_found[r->first + every] == next && are_blocks(w, from, m, r))
            return true;
    }
    return false;
}

/* The believed rows among more: one block, or as many as divide them. */
static bool is_fused(const struct weights *w, const uint32_t *from, const struct moves *m, uint64_t n_found,
                     struct reading *r)
{
    enum { FIRSTS = 8 }; /* equal rows may be the first one */
    uint64_t n = w->believed.n_rows;
    unsigned tried = 0;
    for (r->first = 0; r->first < n_found && tried < FIRSTS; r->first++) {
        if (w->of_found[r->first] != from[row_before(m, 0)])
            continue;
        uint64_t run = 0;
        while (run < n && r->first + run < n_found && agree(w, from, m, r->first + run, run, 1))
            run++;
        for (uint64_t n_blocks = 1; n_blocks <= n; n_blocks++) {
            r->block = n / n_blocks;
            if (n % n_blocks == 0 && r->block <= run && place_blocks(w, from, m, n_found, r))
                return true;
        }
        tried++;
    }
    return false;
}

/* One way of moving rows: everywhere, with whole heads moved, or in a fused matrix. */
static void try_moves(const struct weights *w, const uint32_t *from, uint64_t n_found, struct reading one,
                      struct readings *r)
{
    uint64_t n = w->believed.n_rows;
    r->searched++;
    if (pe_is_cancelled())
        return;
    if (n_found == n && agree(w, from, &one.moves, 0, 0, n)) {
        keep(r, one);
    } else if (n_found == n && w->heads.n > 1 && !one.replaces && are_heads_moved(w, from, &one.moves, NULL)) {
        one.are_heads_moved = true;
        keep(r, one);
    } else if (n_found > n && is_fused(w, from, &one.moves, n_found, &one)) {
        keep(r, one);
    }
}

/* Other numbers of heads that a conversion may have used. */
static size_t other_heads(const struct weights *w, uint64_t *out)
{
    uint64_t first[] = {has(w->fields.num_heads) ? (uint64_t)w->fields.num_heads : 0,
                        has(w->fields.num_kv_heads) ? (uint64_t)w->fields.num_kv_heads : 0, 1};
    uint64_t n_rows = w->believed.n_rows;
    size_t n = 0;
    for (uint64_t k = 0; k < 3 + n_rows / 2; k++) {
        uint64_t heads = k < 3 ? first[k] : k - 2;
        bool is_new = heads > 0 && heads != w->heads.n && n_rows % heads == 0 && n_rows / heads % 2 == 0;
        for (size_t i = 0; is_new && i < n; i++)
            is_new = out[i] != heads;
        if (is_new)
            out[n++] = heads;
    }
    return n;
}

enum { HEADS_MAX = 256 }; /* more than any number up to 65536 has divisors */

/* Conversions in other heads, in place of the one believed; without one, in any direction. */
static void try_other_heads(const struct weights *w, uint64_t n_found, struct reading one, struct readings *r)
{
    uint64_t others[HEADS_MAX];
    size_t n = other_heads(w, others);
    one.of_rows = &pe_fault_rows_heads_other;
    one.replaces = true;
    one.moves.times = 1;
    for (size_t i = 0; i < n && !pe_is_cancelled(); i++)
        for (int conversion = TO_HALF; conversion <= TO_INTERLEAVED; conversion++) {
            uint64_t width = w->believed.n_rows / others[i], rotated = w->heads.rotated;
            bool is_whole = rotated == w->heads.rows || rotated > width;
            if (w->fields.conversion && conversion != w->fields.conversion)
                continue;
            one.moves.conversion = conversion;
            one.moves.heads = (struct heads){others[i], width, is_whole ? width : rotated};
            try_moves(w, w->of_believed, n_found, one, r);
        }
}

/* The smallest number of times first; in heads of four rows both directions are the same. */
static void try_conversions(const struct weights *w, uint64_t n_found, struct reading one, struct readings *r)
{
    try_moves(w, w->expected, n_found, one, r);
    for (unsigned times = 1; times <= 2; times++)
        for (int conversion = TO_HALF; conversion <= TO_INTERLEAVED; conversion++) {
            one.of_rows = times == 1 ? &pe_fault_rows_permuted : &pe_fault_rows_permuted_twice;
            one.moves = (struct moves){conversion, times, w->heads};
            try_moves(w, w->expected, n_found, one, r);
        }
}

/* Every reading of one variant. missing: believed rows that are nowhere. */
static void read_variant(struct weights *w, const struct matrix *found, bool is_turned, struct readings *r,
                         uint64_t *missing)
{
    struct reading one = {.is_turned = is_turned, .factor = w->factor};
    size_t before = r->n;
    *missing = count_missing(w, found->n_rows);
    if (*missing)
        return;
    try_conversions(w, found->n_rows, one, r);
    try_other_heads(w, found->n_rows, one, r);
    if (r->n == before && found->n_rows == w->believed.n_rows) {
        one.of_rows = &pe_fault_rows_other;
        keep(r, one);
    }
}

/* As sent, with the opposite sign, with another size; then the same transposed. What has every row is read no other
 * way. */
static enum pe_status read_all(struct weights *w, struct readings *r, uint64_t *missing)
{
    *missing = w->believed.n_rows;
    for (int is_turned = 0; is_turned < 2 && r->n == 0; is_turned++) {
        const struct matrix found = is_turned ? turned(&w->found) : w->found;
        const double signs[] = {1, -1};
        uint64_t left = w->believed.n_rows;
        if (!is_like(w, &found))
            continue;
        for (size_t i = 0; i < 2 && r->n == 0; i++) {
            w->factor = signs[i];
            if (!class_found(w, &found, w->factor))
                return w->err->status;
            read_variant(w, &found, is_turned, r, &left);
            *missing = left < *missing ? left : *missing;
        }
        double size = r->n == 0 && found.n_rows == w->believed.n_rows ? factor_of(w, &found) : 0;
        for (size_t i = 0; i < 2 && r->n == 0 && size != 0 && size != 1; i++) {
            w->factor = signs[i] * size;
            if (!class_scaled(w, &found, w->factor))
                return w->err->status;
            read_variant(w, &found, is_turned, r, &left);
            *missing = left < *missing ? left : *missing;
        }
    }
    return gives_up(w) ? w->err->status : PE_OK;
}

/* ---- The answer ---- */

static const char *heads_field(const struct weights *w)
{
    return has(w->fields.num_kv_heads) ? "/num_kv_heads" : has(w->fields.num_heads) ? "/num_heads" : "/head_dim";
}

static struct pe_node *begin_finding(struct pe_node *list, const struct pe_fault *fault, const char *pointer)
{
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "code", fault->info.code);
    pe_put_string(node, "pointer", pointer);
    return node;
}

static void end_finding(const struct weights *w, struct pe_node *node, const char *meaning, const char *sentence)
{
    if (!pe_node_find(node, "found") && !pe_node_child(node, "found"))
        pe_put_null(node, "found");
    if (!pe_node_find(node, "believed"))
        pe_put_null(node, "believed");
    if (meaning)
        pe_put_string(node, "meaning", meaning);
    else
        pe_put_null(node, "meaning");
    pe_put_detail(node, w->d->request->lang, sentence);
}

/* Which expected row each found one is, the same place first, then the first that is free: at most n of them. */
static size_t put_order(const struct weights *w, int64_t *order, size_t most)
{
    uint64_t n = w->believed.n_rows;
    size_t listed = n < most ? (size_t)n : most;
    uint32_t *next = w->place, *chain = w->table; /* of each class the first expected row, of each row the next */
    memset(next, 0xff, n * sizeof *next);
    for (uint64_t i = n; i-- > 0;)
        if (w->of_found[i] != w->expected[i]) {
            chain[i] = next[w->expected[i]];
            next[w->expected[i]] = (uint32_t)i;
        }
    for (uint64_t i = 0; i < listed; i++) {
        uint32_t class = w->of_found[i];
        order[i] = class == w->expected[i] ? (int64_t)i : (int64_t)next[class];
        if (class != w->expected[i])
            next[class] = chain[next[class]];
    }
    return listed;
}

static void put_conversion(struct pe_node *node, const struct moves *m)
{
    pe_put_string(node, "conversion", conversions[m->conversion]);
    pe_put_integer(node, "heads", (int64_t)m->heads.n);
    pe_put_integer(node, "times", m->times);
}

static const uint32_t *from_of(const struct weights *w, const struct reading *r)
{
    return r->replaces ? w->of_believed : w->expected;
}

static void put_rows_finding(const struct weights *w, const struct reading *r, struct pe_node *list)
{
    const struct pe_fault *fault = r->of_rows;
    bool are_heads = fault == &pe_fault_rows_heads_other;
    if (!fault)
        return;
    struct pe_node *node = begin_finding(list, fault,
                                         are_heads                       ? heads_field(w)
                                         : fault == &pe_fault_rows_other ? "/w_found"
                                                                         : "/conversion");
    struct pe_node *found = pe_put_object(node, "found");
    if (are_heads) {
        pe_put_integer(found, "heads", (int64_t)r->moves.heads.n);
        pe_put_integer(node, "believed", (int64_t)w->heads.n);
    } else if (fault == &pe_fault_rows_other) {
        int64_t order[ORDER_MAX];
        pe_put_integers(found, "rows", order, put_order(w, order, ORDER_MAX));
    } else {
        put_conversion(found, &r->moves);
        pe_put_string(node, "believed", conversions[w->fields.conversion]);
    }
    end_finding(w, node, NULL, fault->info.details[0]);
}

static void put_order_finding(const struct weights *w, const struct reading *r, struct pe_node *list)
{
    int64_t *order = pe_values_room(w->d->values, w->heads.n * sizeof *order);
    if (!r->are_heads_moved || !order)
        return;
    struct pe_node *node = begin_finding(list, &pe_fault_heads_order, "/w_found");
    are_heads_moved(w, from_of(w, r), &r->moves, order);
    pe_put_integers(pe_put_object(node, "found"), "order", order, (size_t)w->heads.n);
    end_finding(w, node, NULL, pe_fault_heads_order.info.details[0]);
}

static void put_blocks(struct pe_node *node, const struct reading *r)
{
    pe_put_integer(node, "first", (int64_t)r->first);
    pe_put_integer(node, "block", (int64_t)r->block);
    pe_put_integer(node, "every", (int64_t)r->every);
}

static void put_fused_finding(const struct weights *w, const struct reading *r, struct pe_node *list)
{
    if (!r->block)
        return;
    struct pe_node *node = begin_finding(list, &pe_fault_rows_fused, "/w_found");
    put_blocks(pe_put_object(node, "found"), r);
    end_finding(w, node, NULL, pe_fault_rows_fused.info.details[0]);
}

static const char *meaning_of(const struct weights *w, double factor)
{
    bool is_narrow = w->dtype == PE_BF16 || w->dtype == PE_F16;
    return pe_factor_name(fabs(factor), (double)w->heads.rows, (double)NAN, is_narrow ? 1e-3 : 1e-5);
}

static void put_number_findings(const struct weights *w, const struct reading *r, struct pe_node *list)
{
    if (r->factor < 0)
        end_finding(w, begin_finding(list, &pe_fault_negated, "/w_found"), NULL, pe_fault_negated.info.details[0]);
    if (r->is_turned)
        end_finding(w, begin_finding(list, &pe_fault_transposed, "/w_found"), NULL,
                    pe_fault_transposed.info.details[0]);
    if (fabs(r->factor) == 1)
        return;
    const char *meaning = meaning_of(w, r->factor);
    struct pe_node *node = begin_finding(list, &pe_fault_scaled, "/w_found");
    pe_put_real(node, "found", fabs(r->factor));
    end_finding(w, node, meaning, pe_fault_scaled.info.details[meaning != NULL]);
}

/* Bits that were lost on the way. */
static bool is_narrowed(const struct weights *w) { return bits_of(w->found.least) < bits_of(w->believed.least); }

/* In the order of the table of faults. */
static void put_findings(const struct weights *w, const struct readings *r, uint64_t missing, struct pe_node *root)
{
    struct pe_node *list = pe_put_list(root, "findings");
    const struct reading *one = r->best;
    if (r->n == 0) {
        enum { OF_ROWS = 3 };
        struct pe_node *node = begin_finding(list, &pe_fault_unexplained, "/w_found");
        pe_put_integer(pe_put_object(node, "found"), "missing", (int64_t)missing);
        end_finding(w, node, NULL, pe_fault_unexplained.info.details[OF_ROWS]);
        return;
    }
    put_rows_finding(w, one, list);
    put_order_finding(w, one, list);
    put_fused_finding(w, one, list);
    put_number_findings(w, one, list);
    if (is_narrowed(w)) {
        struct pe_node *node = begin_finding(list, &pe_fault_table_dtype, "/w_found");
        pe_put_string(node, "found", pe_dtype_name(w->found.least));
        end_finding(w, node, NULL, pe_fault_table_dtype.info.details[0]);
    } else if (one->cost == 0) {
        end_finding(w, begin_finding(list, &pe_fault_as_believed, ""), NULL, pe_fault_as_believed.info.details[0]);
    }
}

static struct pe_node *put_transform(struct pe_node *list, const char *name)
{
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "name", name);
    return node;
}

/* What is done to w_believed after the believed conversion, or, of rows_heads_other, in its place. */
static void put_transforms(const struct weights *w, const struct reading *r, struct pe_node *node)
{
    struct pe_node *list = pe_put_list(node, "transforms");
    if (r->moves.conversion)
        put_conversion(put_transform(list, "rows"), &r->moves);
    if (r->of_rows == &pe_fault_rows_other) {
        int64_t *order = pe_values_room(w->d->values, w->believed.n_rows * sizeof *order);
        if (order)
            pe_put_integers(put_transform(list, "rows"), "order", order,
                            put_order(w, order, (size_t)w->believed.n_rows));
    }
    if (r->are_heads_moved) {
        int64_t *order = pe_values_room(w->d->values, w->heads.n * sizeof *order);
        if (order && are_heads_moved(w, from_of(w, r), &r->moves, order))
            pe_put_integers(put_transform(list, "heads"), "order", order, (size_t)w->heads.n);
    }
    if (r->block)
        put_blocks(put_transform(list, "fused"), r);
    if (r->factor < 0)
        put_transform(list, "negated");
    if (fabs(r->factor) != 1)
        pe_put_real(put_transform(list, "scaled"), "factor", fabs(r->factor));
    if (r->is_turned)
        put_transform(list, "transposed");
}

static void put_codes(const struct reading *r, struct pe_node *node)
{
    struct pe_node *codes = pe_put_list(node, "codes");
    const struct pe_fault *faults[READING_FAULTS_MAX];
    size_t n = faults_of(r, faults);
    for (size_t i = 0; i < n; i++)
        pe_put_string(codes, NULL, faults[i]->info.code);
}

/* How far rows are from those that a list of classes has in their place. */
struct distance {
    double error, steps;
    uint64_t n_equal, n; /* rows */
    bool is_any;
    uint64_t row, col; /* of the first number that differs */
    double found, expected;
};

static bool add_row(struct weights *w, const struct matrix *found, uint64_t row, uint64_t from, double factor,
                    struct distance *out)
{
    double x[SOME], y[SOME];
    bool is_equal = true;
    for (uint64_t at = 0; at < found->n_cols; at += SOME) {
        size_t n = piece(found->n_cols, at);
        read_row(w, found, row, at, n, x);
        read_row(w, &w->believed, from, at, n, y);
        for (size_t i = 0; i < n; i++) {
            y[i] = factor == 1 ? y[i] : pe_round_to(w->dtype, factor * y[i]);
            if (x[i] == y[i])
                continue;
            if (!out->is_any)
                *out = (struct distance){out->error, out->steps, out->n_equal, out->n, true, row, at + i, x[i], y[i]};
            is_equal = false;
            out->error = fmax(out->error, fabs(x[i] - y[i]));
            out->steps = fmax(out->steps, pe_steps_between(w->dtype, x[i], y[i]));
        }
    }
    out->n++;
    out->n_equal += is_equal;
    return !(row % 16 == 0 && gives_up(w));
}

static void put_figures(const struct weights *w, const struct distance *all, struct pe_node *node)
{
    bool is_known = all->n > 0;
    pe_put_real_or_null(node, "max_error", is_known ? all->error : (double)NAN);
    pe_put_real_or_null(node, "max_ulp", is_known ? all->steps : (double)NAN);
    pe_put_real(node, "equal", is_known ? (double)all->n_equal / (double)all->n : 0);
    if (!all->is_any) {
        pe_put_null(node, "first_bad");
        return;
    }
    struct pe_node *bad = pe_put_object(node, "first_bad");
    pe_put_string(bad, "output", names[FOUND]);
    pe_put_integers(bad, "index", (const int64_t[]){(int64_t)all->row, (int64_t)all->col}, 2);
    pe_put_real(bad, "found", pe_answer_shortest(w->dtype, all->found));
    pe_put_real(bad, "expected", pe_answer_shortest(w->dtype, all->expected));
}

/* Row by row, each in the place where the believed conversion puts it. */
static enum pe_status put_belief(struct weights *w, struct pe_node *root)
{
    const struct moves moves = {w->fields.conversion, 1, w->heads};
    struct distance all = {0, 0, 0, 0, false, 0, 0, 0, 0};
    bool is_one_shape = w->found.n_rows == w->believed.n_rows && w->found.n_cols == w->believed.n_cols;
    for (uint64_t row = 0; is_one_shape && row < w->found.n_rows; row++)
        if (!add_row(w, &w->found, row, row_before(&moves, row), 1, &all))
            return w->err->status;
    put_figures(w, &all, pe_put_object(root, "belief"));
    return PE_OK;
}

static void put_also(const struct weights *w, const struct readings *r, struct pe_node *node)
{
    enum { ALSO_MAX = 8 };
    struct pe_node *list = pe_put_list(node, "also");
    for (size_t i = 1; i < r->n && i <= ALSO_MAX && r->best->cost > 0; i++) {
        struct pe_node *other = pe_put_object(list, NULL);
        const struct pe_fault *faults[READING_FAULTS_MAX];
        faults_of(&r->best[i], faults);
        put_codes(&r->best[i], other);
        pe_put_boolean(other, "everywhere", true);
        pe_put_detail(other, w->d->request->lang, faults[0]->info.about.summary);
        pe_put_null(other, "config");
        pe_put_null(other, "sequence");
        put_transforms(w, &r->best[i], other);
    }
}

/* The class of a found row is a believed row with its numbers. */
static enum pe_status put_candidate(struct weights *w, const struct readings *r, struct pe_node *root)
{
    struct pe_node *list = pe_put_list(root, "candidates");
    const struct reading *first = r->best;
    const struct matrix found = first->is_turned ? turned(&w->found) : w->found;
    struct distance all = {0, 0, 0, 0, false, 0, 0, 0, 0};
    if (r->n == 0)
        return PE_OK;
    for (uint64_t row = 0; row < found.n_rows; row++)
        if (w->of_found[row] != NOWHERE && !add_row(w, &found, row, w->of_found[row], first->factor, &all))
            return w->err->status;
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_null(node, "config");
    pe_put_null(node, "sequence");
    put_transforms(w, first, node);
    put_codes(first, node);
    pe_put_list(node, "presets");
    pe_put_string(node, "verdict", all.steps <= 1 ? "exact" : "rounding");
    all.is_any &= all.steps > 1;
    put_figures(w, &all, node);
    put_also(w, r, node);
    return PE_OK;
}

static enum pe_status state(struct weights *w, const struct readings *r, uint64_t missing)
{
    struct pe_diagnosis *d = w->d;
    d->values = pe_values_new();
    if (!d->values)
        return pe_no_memory(w->err);
    struct pe_node *root = pe_values_root(d->values);
    pe_put_boolean(root, "explained", r->n > 0);
    if (put_belief(w, root))
        return w->err->status;
    if (put_candidate(w, r, root))
        return w->err->status;
    put_findings(w, r, missing, root);
    pe_put_null(root, "undecided");
    pe_put_list(root, "ruled_out");
    pe_put_integer(root, "searched", (int64_t)r->searched);
    pe_put_list(root, "unseen");
    pe_put_null(root, "sides");
    pe_put_null(root, "next");
    d->searched = r->searched;
    d->stated = pe_values_done(d->values);
    return d->stated ? PE_OK : pe_no_memory(w->err);
}

/* ---- The whole ---- */

static enum pe_status check_work(const struct weights *w)
{
    uint64_t others[HEADS_MAX];
    double n = (double)w->believed.n_rows + (double)w->found.n_rows, heads = 1 + (double)other_heads(w, others);
    double work = n * (double)w->believed.n_cols + n * sqrt((double)w->believed.n_cols) * heads;
    if (work <= w->d->request->max_work)
        return PE_OK;
    pe_fail(w->err, "", "comparing the rows needs about %.0f multiply-adds; allowed: %.0f", work,
            w->d->request->max_work);
    w->err->status = PE_TOO_LARGE;
    return pe_advise(w->err, PE_RAISE_DIAGNOSIS, NULL);
}

static enum pe_status allocate(struct weights *w)
{
    size_t n = w->believed.n_rows, slots = slots_of(n);
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

static enum pe_status compare(struct weights *w)
{
    struct readings r = {.n = 0};
    uint64_t missing = 0;
    const struct moves moves = {w->fields.conversion, 1, w->heads};
    if (look_over(w, &w->believed, names[BELIEVED]) || look_over(w, &w->found, names[FOUND]))
        return w->err->status;
    enum pe_dtype b = w->believed.is_text ? PE_F32 : w->believed.dtype, f = w->found.is_text ? PE_F32 : w->found.dtype;
    w->dtype = narrower(narrower(b, f), is_narrowed(w) ? w->found.least : f);
    if (!class_believed(w))
        return w->err->status;
    for (uint64_t i = 0; i < w->believed.n_rows; i++)
        w->expected[i] = w->of_believed[row_before(&moves, i)];
    enum pe_status status = read_all(w, &r, &missing);
    return status ? status : state(w, &r, missing);
}

enum pe_status pe_weights_diagnose(struct pe_diagnosis *d, struct pe_failure *err)
{
    struct weights w = {.d = d, .err = err};
    enum pe_status status = take(&w, BELIEVED, &w.believed);
    if (!status)
        status = take(&w, FOUND, &w.found);
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
