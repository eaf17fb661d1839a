/* similarity: dot products of rows by their distance: whether they depend on the distance only, and how they fall.
 *
 *     s[j, d] = r_{j+d} · r_j,   similarity[d] = mean over j of s,   spread[d] = max over j - min over j
 *     xpos:  s[d] = sum over c of a^2 zeta_c^(d/scale_base) cos(d w_c): a query's scale times a key's, any j
 *
 * All pairs of n rows are n²/2 products of dim terms, as many operations as attention. The Gram matrix is computed in
 * blocks above its diagonal by attention's kernels, and never stored: each row of a block is added to the distances
 * that it covers, with its smallest and largest. A block's row runs along one diagonal after the other, so that
 * addition is itself a vector operation.
 *
 * Sums of a distance are sums of blocks' sums, which keeps their error at that of a block. */
#include "core/analysis/analysis.h"
#include "core/kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

/* ---- Which columns ---- */

/* The columns of a sinusoid that its similarity compares. Of C pairs, the cosine of pair c has, instead of its own
 * frequency, that of pair
 *
 *     repeated:  c mod ceil(C/2), so that the first half of the frequencies is used twice
 *     flipped:   C - 1 - c
 *     shifted:   min(c + 1, C - 1)
 *
 * A dot product is a sum over columns in any order, so flipped changes nothing: every sine still has its cosine
 * somewhere in the row. The others leave sines without one. */

enum pairing { PAIRED, SIN, COS, MISMATCHED, REPEATED, FLIPPED, SHIFTED }; /* in the order of the field's words */

/* A sinusoid on one axis with a cosine for every sine. */
static bool has_pairs(const struct pe_subject *subject)
{
    return strcmp(pe_plan_scheme(subject->plan)->name, "sinusoidal") == 0 && subject->plan->seq.n_axes == 1 &&
           subject->is_run && subject->dim % 2 == 0;
}

/* Does the request ask for other columns than all of this subject? */
static bool is_other_pairing(const struct pe_analysis *study, const struct pe_subject *subject)
{
    return study->fields.pairing != PAIRED && has_pairs(subject);
}

/* ---- Rules ---- */

static enum pe_status plan_other(struct pe_analysis *study, const struct pe_subject *subject, struct pe_plan **plan,
                                 struct pe_failure *err)
{
    static const char *const outputs[] = {"encoding"};
    struct pe_field base = {"base", {.kind = PE_REAL, .real = study->fields.other_base}};
    struct pe_variant variant = {PE_ENCODE, PE_F64, &base, 1, outputs, 1, 0};
    return pe_subject_plan(study, subject, &variant, plan, err);
}

/* Can the sinusoid have this base? */
static enum pe_status check_other(const struct pe_analysis *study, const struct pe_subject *subject,
                                  struct pe_failure *err)
{
    struct pe_analysis copy = *study; /* planning changes nothing of it */
    struct pe_plan *plan;
    enum pe_status status = plan_other(&copy, subject, &plan, err);
    if (status == PE_OK)
        pe_plan_free(plan);
    if (status != PE_INVALID)
        return status;
    struct pe_failure inner = *err;
    return pe_fail(err, "/other_base", "other_base does not fit: %.400s", inner.detail);
}

/* The rules of `pairing` and `other_base`. */
static enum pe_status check_pairing(const struct pe_analysis *study, const struct pe_subject *subject,
                                    struct pe_failure *err)
{
    bool has_base = !isnan(study->fields.other_base), is_mismatched = study->fields.pairing == MISMATCHED;
    bool is_used = study->fields.pairing == PAIRED;
    for (size_t i = 0; i < study->n_subjects; i++)
        is_used = is_used || is_other_pairing(study, &study->subjects[i]);
    if (!is_used)
        return pe_fail(err, "/pairing",
                       "pairing is for sinusoidal encodings of one axis with an even dim at consecutive positions");
    if (is_mismatched && !has_base)
        return pe_fail(err, "/other_base", "other_base is missing: pairing mismatched takes cosines of that base");
    if (has_base && !is_mismatched)
        return pe_fail(err, "/other_base", "other_base is used only by pairing mismatched");
    return is_mismatched && has_pairs(subject) ? check_other(study, subject, err) : PE_OK;
}

/* ---- Rows ---- */

static bool is_sine(const struct pe_wave *column) { return column->quarter % 2 == 0; }

/* Keeps the sines or the cosines. */
static enum pe_status keep(const struct pe_subject *subject, const struct pe_wave *columns, bool sines,
                           struct pe_rows *rows, struct pe_failure *err)
{
    const struct pe_rows *all = &subject->rows;
    *rows = (struct pe_rows){.n = all->n, .largest = all->largest};
    for (size_t c = 0; c < all->dim; c++)
        rows->dim += is_sine(&columns[c]) == sines;
    double *at = rows->at = malloc((all->n * rows->dim + 1) * sizeof *at);
    if (!at)
        return pe_no_memory(err);
    for (size_t i = 0; i < all->n && (i % 64 || !pe_is_cancelled()); i++)
        for (size_t c = 0; c < all->dim; c++)
            if (is_sine(&columns[c]) == sines)
                *at++ = all->at[i * all->dim + c];
    return PE_OK;
}

/* The rows of the other base, with the subject's sines in their place. */
static enum pe_status mismatch(struct pe_analysis *study, const struct pe_subject *subject,
                               const struct pe_wave *columns, struct pe_rows *rows, struct pe_failure *err)
{
    struct pe_plan *plan;
    enum pe_status status = plan_other(study, subject, &plan, err);
    if (status)
        return status;
    status = pe_rows_init(rows, plan, err);
    pe_plan_free(plan);
    for (size_t i = 0; !status && i < rows->n && (i % 64 || !pe_is_cancelled()); i++)
        for (size_t c = 0; c < rows->dim; c++)
            if (is_sine(&columns[c]))
                rows->at[i * rows->dim + c] = subject->rows.at[i * rows->dim + c];
    return status;
}

/* The pair whose cosine pair c of n has. */
static size_t cosine_of(int pairing, size_t c, size_t n)
{
    return pairing == REPEATED ? c % ((n + 1) / 2) : pairing == FLIPPED ? n - 1 - c : c + 1 < n ? c + 1 : c;
}

/* The subject's rows with their cosines in another order. */
static enum pe_status rearrange(const struct pe_subject *subject, const struct pe_wave *columns, int pairing,
                                struct pe_rows *rows, struct pe_failure *err)
{
    const struct pe_rows *all = &subject->rows;
    size_t n_cosines = 0, pair = 0, *cosines = calloc(all->dim, 2 * sizeof *cosines), *from = cosines + all->dim;
    *rows = (struct pe_rows){.n = all->n, .dim = all->dim, .largest = all->largest};
    rows->at = malloc((all->n * all->dim + 1) * sizeof *rows->at);
    if (!cosines || !rows->at) {
        free(cosines);
        return pe_no_memory(err);
    }
    for (size_t c = 0; c < all->dim; c++)
        if (!is_sine(&columns[c]))
            cosines[n_cosines++] = c;
    for (size_t c = 0; c < all->dim; c++)
        from[c] = is_sine(&columns[c]) ? c : cosines[cosine_of(pairing, pair++, n_cosines)];
    for (size_t i = 0; i < all->n && (i % 64 || !pe_is_cancelled()); i++)
        for (size_t c = 0; c < all->dim; c++)
            rows->at[i * all->dim + c] = all->at[i * all->dim + from[c]];
    free(cosines);
    return PE_OK;
}

/* Those columns of its rows; free with pe_rows_drop. */
static enum pe_status paired_rows(struct pe_analysis *study, const struct pe_subject *subject, struct pe_rows *rows,
                                  struct pe_failure *err)
{
    struct pe_wave *columns = calloc(subject->dim, sizeof *columns);
    if (!columns)
        return pe_no_memory(err);
    subject->plan->scheme->columns(subject->plan, 0, columns);
    int pairing = study->fields.pairing;
    enum pe_status status = pairing == MISMATCHED ? mismatch(study, subject, columns, rows, err)
                            : pairing >= REPEATED ? rearrange(subject, columns, pairing, rows, err)
                                                  : keep(subject, columns, pairing == SIN, rows, err);
    free(columns);
    return status;
}

/* ---- The metric ---- */

/* Whole tiles of products and whole panels; small, as half of the blocks on the diagonal is not used. A chunk of
 * channels of a block takes about a millisecond. */
enum { BLOCK = 144, CHUNK = 512 };

struct products {
    const struct pe_rows *rows;
    double *panels;             /* of a block of queries: [chunks, channels of a chunk, BLOCK] */
    double *block, *more;       /* [BLOCK, BLOCK]: rows are keys, columns queries; those of a further chunk */
    double *part;               /* [2 BLOCK]: sums of one block by distance, so that long sums are sums of sums */
    double *sum, *least, *most; /* [n] */
    double *values;             /* [n]: of one distance */
    double *gram;               /* [n, n] or NULL */
};

/* ---- Blocks ---- */

static size_t at_most(size_t n, size_t most) { return n < most ? n : most; }

static void pack(const struct products *p, size_t i0, size_t n)
{
    size_t dim = p->rows->dim;
    for (size_t x = 0; x < dim && !pe_is_cancelled(); x += CHUNK)
        pe_kernels()->pack_f64(p->rows->at + i0 * dim + x, dim, n, at_most(dim - x, CHUNK), p->panels + BLOCK * x);
}

/* Products of m keys with the n queries in panels. */
static void multiply(const struct products *p, size_t j0, size_t m, size_t n)
{
    size_t dim = p->rows->dim;
    for (size_t x = 0; x < dim && !pe_is_cancelled(); x += CHUNK) {
        double *to = x ? p->more : p->block;
        pe_kernels()->products_f64(m, 0, n, at_most(dim - x, CHUNK), 1, p->rows->at + j0 * dim + x, dim,
                                   p->panels + BLOCK * x, to, BLOCK);
        if (x)
            pe_kernels()->add_f64(p->block, p->more, m * BLOCK, 1);
    }
}

/* Distances of the block's numbers count from first: that of its lower left corner, or 0 on the diagonal. */
static void tally(struct products *p, size_t j0, size_t m, size_t i0, size_t n)
{
    size_t first = i0 > j0 ? i0 - j0 - (m - 1) : 0, last = i0 + n - 1 - j0;
    memset(p->part, 0, 2 * BLOCK * sizeof *p->part);
    for (size_t j = 0; j < m; j++) {
        size_t from = i0 > j0 ? 0 : j, d = i0 + from - (j0 + j); /* no query before the key */
        if (from < n)
            pe_kernels()->tally_f64(p->block + j * BLOCK + from, n - from, p->part + d - first, p->least + d,
                                    p->most + d);
    }
    for (size_t d = first; d <= last; d++)
        p->sum[d] += p->part[d - first];
}

static void add_block(struct products *p, size_t j0, size_t i0, size_t n)
{
    size_t m = at_most(p->rows->n - j0, BLOCK);
    multiply(p, j0, m, n);
    if (pe_was_cancelled())
        return;
    tally(p, j0, m, i0, n);
    if (p->gram)
        for (size_t j = 0; j < m; j++)
            for (size_t i = i0 + n > j0 + j && i0 < j0 + j ? j0 + j - i0 : 0; i < n; i++)
                p->gram[(i0 + i) * p->rows->n + j0 + j] = p->gram[(j0 + j) * p->rows->n + i0 + i] =
                    p->block[j * BLOCK + i];
}

static void multiply_all(struct products *p)
{
    size_t n = p->rows->n;
    for (size_t d = 0; d < n; d++) {
        p->sum[d] = 0;
        p->least[d] = (double)INFINITY;
        p->most[d] = -(double)INFINITY;
    }
    for (size_t i0 = 0; i0 < n; i0 += BLOCK) {
        pack(p, i0, at_most(n - i0, BLOCK));
        for (size_t j0 = 0; j0 <= i0 && !pe_was_cancelled(); j0 += BLOCK)
            add_block(p, j0, i0, at_most(n - i0, BLOCK));
    }
    /* From here on sum and most are similarity and spread. */
    for (size_t d = 0; d < p->rows->n; d++) {
        p->sum[d] /= (double)(p->rows->n - d);
        p->most[d] -= p->least[d];
    }
}

/* ---- xPos ---- */

/* zeta^(d/scale_base) for all distances: the scale of a sequence that begins at its centre. */
static enum pe_status plan_scale(struct pe_analysis *study, const struct pe_subject *subject, struct pe_plan **plan,
                                 struct pe_failure *err)
{
    static const char *const outputs[] = {"scale"};
    struct pe_field overrides[] = {{"len", {.kind = PE_INTEGER, .integer = (int64_t)subject->rows.n}},
                                   {"center", {.kind = PE_INTEGER, .integer = 0}}};
    struct pe_variant variant = {PE_ENCODE, PE_F64, overrides, 2, outputs, 1, 0};
    return pe_subject_plan(study, subject, &variant, plan, err);
}

/* The product at one distance from the two rows of cosines and sines, and the scale or its reciprocal. */
static double scaled_product(const struct pe_rows *rows, size_t d, const double *scale, bool is_reciprocal)
{
    size_t n_pairs = rows->dim / 2;
    const double *x = rows->at + d * rows->dim, *y = rows->at;
    double sum = 0;
    for (size_t c = 0; c < n_pairs; c++) {
        double turn = x[c] * y[c] + x[n_pairs + c] * y[n_pairs + c];
        sum += is_reciprocal ? turn / scale[c] : turn * scale[c];
    }
    return sum;
}

/* A key after its query has the reciprocal scale. */
static void spread_gram(const struct products *p, const double *after)
{
    size_t n = p->rows->n;
    for (size_t i = 0; i < n && !pe_is_cancelled(); i++)
        for (size_t j = 0; j < n; j++)
            p->gram[i * n + j] = j <= i ? p->sum[i - j] : after[j - i];
}

static enum pe_status multiply_scaled(struct pe_analysis *study, const struct pe_subject *subject, struct products *p,
                                      struct pe_failure *err)
{
    struct pe_plan *plan;
    enum pe_status status = plan_scale(study, subject, &plan, err);
    if (status)
        return status;
    size_t n_pairs = p->rows->dim / 2;
    for (size_t d = 0; d < p->rows->n && !pe_is_cancelled(); d++) {
        pe_fill(plan, 0, d * n_pairs, n_pairs, p->block);
        p->sum[d] = scaled_product(p->rows, d, p->block, false);
        p->values[d] = p->gram ? scaled_product(p->rows, d, p->block, true) : 0;
        p->most[d] = 0;
    }
    pe_plan_free(plan);
    if (p->gram)
        spread_gram(p, p->values);
    return PE_OK;
}

/* ---- The metric ---- */

static const char *const details[] = {
    "Similarity depends on the distance only, up to {value}: it is {peak} at distance 0 and least, {minimum.value}, "
    "at {minimum.distance}.",
    "Similarity depends on the position too: at distance {witness.distance} it differs by {value} between the queries "
    "{witness.rows}.",
};
enum { BY_DISTANCE, BY_POSITION };

static double largest_magnitude(const double *x, size_t n)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(x[i]));
    return largest;
}

/* The queries of the least and the largest product at this distance. */
static void put_witness(const struct products *p, size_t d, double largest, struct pe_node *out)
{
    const struct pe_rows *rows = p->rows;
    size_t n = rows->n - d;
    for (size_t j = 0; j < n && (j % 16 || !pe_is_cancelled()); j++)
        p->values[j] = pe_kernels()->dot_f64(rows->at + (j + d) * rows->dim, rows->at + j * rows->dim, rows->dim);
    if (pe_was_cancelled())
        return; /* some products are not computed */
    struct pe_node *witness = pe_put_object(out, "witness");
    pe_put_integer(witness, "distance", (int64_t)d);
    pe_put_two_rows(witness, rows, d + pe_first_extreme(p->values, n, -1, largest),
                    d + pe_first_extreme(p->values, n, 1, largest));
}

static bool is_scaled(const struct pe_subject *subject) { return subject->plan->scheme->magnitude != NULL; }

/* Numbers of all but [n]. */
static size_t count_blocks(const struct pe_subject *subject) { return (2 * BLOCK + 2) * BLOCK + subject->dim * BLOCK; }

static enum pe_status allocate(struct pe_analysis *study, const struct pe_subject *subject, struct products *p,
                               struct pe_failure *err)
{
    size_t n = subject->rows.n, blocks = count_blocks(subject);
    double *room = malloc((blocks + 4 * n) * sizeof *room);
    if (!room)
        return pe_no_memory(err);
    *p = (struct products){.rows = &subject->rows, .block = room};
    p->more = p->block + BLOCK * BLOCK;
    p->part = p->more + BLOCK * BLOCK;
    p->panels = p->part + 2 * BLOCK;
    p->sum = room + blocks;
    p->least = p->sum + n;
    p->most = p->least + n;
    p->values = p->most + n;
    p->gram = pe_study_tensor(study, subject, "gram");
    return PE_OK;
}

static void copy_tensor(struct pe_analysis *study, const struct pe_subject *subject, const char *name, const double *x)
{
    double *tensor = pe_study_tensor(study, subject, name);
    if (tensor)
        memcpy(tensor, x, subject->rows.n * sizeof *x);
}

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    struct products p = {.rows = NULL};
    struct pe_rows paired = {0};
    enum pe_status status = allocate(study, subject, &p, err);
    if (status)
        return status;
    if (is_other_pairing(study, subject)) {
        status = paired_rows(study, subject, &paired, err);
        p.rows = &paired;
    }
    if (!status && is_scaled(subject))
        status = multiply_scaled(study, subject, &p, err);
    else if (!status)
        multiply_all(&p);
    if (!status && !pe_was_cancelled()) {
        copy_tensor(study, subject, "similarity", p.sum);
        copy_tensor(study, subject, "spread", p.most);
        size_t n = p.rows->n;
        double largest = largest_magnitude(p.sum, n), value = largest_magnitude(p.most, n);
        bool is_noise = value <= PE_NOISE * largest;
        pe_put_real(out, "value", value);
        if (is_noise)
            pe_put_null(out, "witness");
        else
            put_witness(&p, pe_first_extreme(p.most, n, 1, largest), largest, out);
        pe_put_real(out, "peak", p.sum[0]);
        struct pe_node *minimum = pe_put_object(out, "minimum");
        pe_put_integer(minimum, "distance", (int64_t)pe_first_extreme(p.sum, n, -1, largest));
        pe_put_real(minimum, "value", pe_kernels()->least_f64(p.sum, n));
        size_t d = 1;
        while (d < n && !(p.sum[d] - p.sum[d - 1] > PE_NOISE * largest))
            d++;
        if (d < n)
            pe_put_integer(out, "rises_at", (int64_t)d);
        else
            pe_put_null(out, "rises_at");
        pe_put_detail(out, study->request->lang, details[is_noise ? BY_DISTANCE : BY_POSITION]);
    }
    pe_rows_drop(&paired);
    free(p.block);
    return status;
}

/* ---- The row ---- */

static bool applies(const struct pe_analysis *study, const struct pe_subject *subject)
{
    (void)study;
    return subject->is_run && subject->n_rows > 0 && subject->family <= PE_ROTARY;
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    double n = (double)subject->n_rows, dim = (double)subject->dim;
    double by_distance = pe_planning_work(subject) + 8 * n * dim + pe_scale_work(subject, n * dim / 2) + n * n;
    cost->work = is_scaled(subject) ? by_distance : n * n * dim / 2;
    if (is_other_pairing(study, subject))
        cost->work += pe_planning_work(subject) + pe_numbers_work(subject, n * dim);
    cost->bytes = (4 * n + (double)count_blocks(subject)) * sizeof(double);
    cost->bytes += is_other_pairing(study, subject) ? n * dim * sizeof(double) : 0;
}

enum tensor { SIMILARITY, SPREAD, GRAM };

static void shape(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape)
{
    (void)study;
    *rank = i == GRAM ? 2 : 1;
    shape[0] = shape[1] = subject->n_rows;
}

static const struct pe_output_row tensors[] = {
    [SIMILARITY] = {.name = "similarity",
                    .shape = "n",
                    .row_axes = 1,
                    .dtype = PE_F64,
                    .about = {"similarity", "mean dot product of two rows by their distance"}},
    [SPREAD] = {.name = "spread",
                .shape = "n",
                .row_axes = 1,
                .dtype = PE_F64,
                .about = {"spread",
                          "largest less smallest dot product at each distance: 0 if only the distance counts"}},
    [GRAM] = {.name = "gram",
              .shape = "n,n",
              .row_axes = 1,
              .dtype = PE_F64,
              .on_request = true,
              .about = {"Gram matrix", "dot products of all pairs of rows: queries by keys"}},
    {.name = NULL},
};

const struct pe_metric pe_metric_similarity = {
    .info =
        {
            .name = "similarity",
            .about = {"similarity", "dot products of rows by distance, and whether anything but the distance counts"},
            .applies_to = "absolute and rotary schemes at consecutive positions of one axis",
            .params = "pairing|other_base",
            .work = "n^2 D / 2",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .needs_rows = true,
    .is_of_kernels = true,
    .applies = applies,
    .check = check_pairing,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
