/* precision: what the usual ways to compute cosines and sines in few bits cost.
 *
 *     error[row, pair] = max(|cos a - cos pw|, |sin a - sin pw|),   a = fl(fl(p)·fl(w)), cos and sin rounded too
 *
 * where cos pw and sin pw are within an ulp of f64, whatever the position.
 *
 * A recipe (core/waves/recipes.c) is four types: of the frequency, the position, their product and the result; or
 * ggml's steps, where ggml has them for the configuration. That covers what libraries do: torch in float32, autocast to
 * bf16 after the table, `inv_freq` itself cast to bf16 or f16 with the model (the notorious one: errors grow with the
 * position), and everything in bf16. Angles of a recipe are floats of some type, so their sines need only a double's
 * accuracy and come from a vectorised routine (fast_sines); the exact ones come from core/waves. */
#include "core/analysis/analysis.h"
#include "core/schemes/rotary/rotary.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- Cosines and sines of many angles ---- */

/* Both functions of a list of angles, in a loop that the compiler makes vectors of. */

/* π/2 as a sum; multiples of the first two parts are exact up to FAST_TURNS quarter turns. */
#define HALF_PI_HIGH 0x1.921fb544p0
#define HALF_PI_MIDDLE 0x1.0b4611a6p-34
#define HALF_PI_LOW 0x1.3198a2e037073p-69
#define TO_INTEGER 0x1.8p52
#define FAST_TURNS 0x1p20

/* Polynomials of fdlibm on [-π/4, π/4], within 2^-57. */
static inline double sine_near_0(double r, double z)
{
    double high =
        8.33333333332248946124e-03 +
        z * (-1.98412698298579493134e-04 +
             z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));
    return r + z * r * (-1.66666666666666324348e-01 + z * high);
}

static inline double cosine_near_0(double z)
{
    double high = 4.16666666666666019037e-02 +
                  z * (-1.38888888888741095749e-03 +
                       z * (2.48015872894767294178e-05 +
                            z * (-2.75573143513906633035e-07 +
                                 z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))));
    return 1 - (0.5 * z - z * z * high);
}

/* a if swap is 0, b if it is -1; negated where sign has its upper bit. */
static inline double choose(double a, double b, int64_t swap, int64_t sign)
{
    int64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = ((x & ~swap) | (y & swap)) ^ sign;
    memcpy(&a, &x, sizeof a);
    return a;
}

static void sincos_near(const double *angles, size_t n, double *cosines, double *sines)
{
    for (size_t i = 0; i < n; i++) {
        double shifted = angles[i] * (2 / M_PI) + TO_INTEGER, k = shifted - TO_INTEGER;
        double r = ((angles[i] - k * HALF_PI_HIGH) - k * HALF_PI_MIDDLE) - k * HALF_PI_LOW, z = r * r;
        double s = sine_near_0(r, z), c = cosine_near_0(z);
        int64_t quarter;
        memcpy(&quarter, &shifted, sizeof quarter);
        int64_t swap = -(quarter & 1), half = quarter & 2, odd_half = (quarter + 1) & 2;
        cosines[i] = choose(c, s, swap, (int64_t)((uint64_t)odd_half << 62));
        sines[i] = choose(s, c, swap, (int64_t)((uint64_t)half << 62));
    }
}

/* cosines[i], sines[i] of angles[i] radians, i < n: less than 2^-52 off, and the C library's where an angle of the list
 * is beyond a million. */
static void fast_sines(const double *angles, size_t n, double *cosines, double *sines)
{
    double most = 0;
    for (size_t i = 0; i < n; i++)
        most = fabs(angles[i]) > most ? fabs(angles[i]) : most;
    if (most < FAST_TURNS) {
        sincos_near(angles, n, cosines, sines);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        cosines[i] = cos(angles[i]);
        sines[i] = sin(angles[i]);
    }
}

/* ---- The recipes ---- */

/* The last is of those subjects only whose table ggml computes. */
static const enum pe_recipe recipes[] = {PE_RECIPE_F32,          PE_RECIPE_F32_BF16, PE_RECIPE_BF16_INV_FREQ,
                                         PE_RECIPE_F16_INV_FREQ, PE_RECIPE_BF16,     PE_RECIPE_GGML};

enum { RECIPES_MAX = sizeof recipes / sizeof recipes[0] };

static const char *recipe_name(size_t r) { return pe_recipes[recipes[r]].name; }

static size_t recipe_of(const struct pe_analysis *study, size_t i)
{
    const struct pe_value *given = study->fields.recipes;
    size_t r = 0;
    while (given && strcmp(recipe_name(r), given->list.items[i].string) != 0)
        r++;
    return given ? r : i;
}

/* ---- Rounding ---- */

/* To 8 significant bits, ties to even: bf16, for numbers that are not subnormal there. */
static inline double round_to_bf16(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + (INT64_C(1) << 44) - 1 + (bits >> 45 & 1)) & -(INT64_C(1) << 45);
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void round_all(enum pe_dtype dtype, double *x, size_t n)
{
    if (dtype == PE_BF16)
        for (size_t i = 0; i < n; i++)
            x[i] = round_to_bf16(x[i]);
    else
        for (size_t i = 0; i < n; i++)
            x[i] = (double)(float)x[i];
}

/* ---- One recipe ---- */

struct bench {
    const struct pe_recipe_row *recipe;
    size_t n;                          /* C */
    double *w;                         /* [C], rounded */
    double *row, *last;                /* [2 C] cosines and sines of a row, and of the row before it */
    double *angles;                    /* [C] */
    const struct pe_ggml_steps *steps; /* [C]; NULL: not by steps */
};

static void compute_row(const struct bench *b, double position, double *row)
{
    double p = pe_round_to(b->recipe->p, position);
    struct pe_ggml_chain chain = {0, 0, 0};
    for (size_t c = 0; c < b->n; c++)
        b->angles[c] = b->steps ? (double)pe_ggml_angle(&b->steps[c], &chain, p) : p * b->w[c];
    round_all(b->recipe->product, b->angles, b->n);
    fast_sines(b->angles, b->n, row, row + b->n);
    round_all(b->recipe->result, row, 2 * b->n);
}

static double error_of(const double *row, const double *truth, size_t n)
{
    double error = 0;
    bool is_number = true; /* a frequency that overflows in f16 has no cosine */
    for (size_t i = 0; i < n; i++) {
        double e = fabs(row[i] - truth[i]);
        is_number &= e == e;
        error = e > error ? e : error;
    }
    return is_number ? error : (double)INFINITY;
}

static bool is_equal(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

/* ---- All rows ---- */

/* True angles held at a time; each recipe computes as many in less than a millisecond. */
enum { ANGLES = 1 << 13 };

static size_t rows_of_step(size_t pairs)
{
    size_t rows = ANGLES / pairs;
    return rows < 1 ? 1 : rows;
}

struct work {
    const struct pe_subject *subject;
    struct pe_waves *waves;
    size_t n, pairs, n_recipes;
    struct pe_ggml_steps *steps; /* [C] */
    double *memory, *truth;      /* [rows of a step, 2 C] */
    double *curves;              /* [recipes, n] */
    int64_t repeats[RECIPES_MAX];
    struct bench benches[RECIPES_MAX];
};

static bool is_of_ggml(const struct pe_subject *subject)
{
    struct pe_rotary_resolved resolved;
    return subject->family == PE_ROTARY && pe_rotary_resolve_ggml(subject->plan, &resolved);
}

static size_t count_all(const struct pe_subject *subject)
{
    return is_of_ggml(subject) ? (size_t)RECIPES_MAX : (size_t)RECIPES_MAX - 1;
}

static size_t count_recipes(const struct pe_analysis *study, const struct pe_subject *subject)
{
    return study->fields.recipes ? study->fields.recipes->list.n : count_all(subject);
}

static size_t memory_size(size_t n, size_t pairs, size_t n_recipes)
{
    return rows_of_step(pairs) * 2 * pairs + n_recipes * n + n_recipes * 6 * pairs;
}

static void begin_recipe(struct bench *b, enum pe_recipe recipe, const struct work *w, double *memory)
{
    const struct pe_ladder *ladder = &w->subject->ladder;
    size_t n = ladder->n;
    const struct pe_ggml_steps *steps = recipe == PE_RECIPE_GGML ? w->steps : NULL;
    *b = (struct bench){&pe_recipes[recipe], n, memory, memory + n, memory + 3 * n, memory + 5 * n, steps};
    for (size_t c = 0; c < n; c++)
        b->w[c] = pe_recipe_round(recipe, ladder->w[c], 0);
}

static enum pe_status begin(struct work *w, const struct pe_analysis *study, const struct pe_subject *subject,
                            struct pe_failure *err)
{
    struct pe_rotary_resolved resolved;
    *w = (struct work){.subject = subject,
                       .n = (size_t)subject->n,
                       .pairs = subject->ladder.n,
                       .n_recipes = count_recipes(study, subject)};
    w->memory = malloc(memory_size(w->n, w->pairs, w->n_recipes) * sizeof(double));
    w->steps = malloc(w->pairs * sizeof *w->steps);
    if (!w->memory || !w->steps)
        return pe_no_memory(err);
    if (subject->family == PE_ROTARY && pe_rotary_resolve_ggml(subject->plan, &resolved))
        pe_rotary_steps(&resolved, w->steps);
    w->truth = w->memory;
    w->curves = w->truth + rows_of_step(w->pairs) * 2 * w->pairs;
    double *rest = w->curves + w->n_recipes * w->n;
    for (size_t r = 0; r < w->n_recipes; r++)
        begin_recipe(&w->benches[r], recipes[recipe_of(study, r)], w, rest + r * 6 * w->pairs);
    return pe_ladder_waves(subject, w->n, &w->waves, err);
}

static void add_row(struct work *w, size_t r, size_t i, const double *truth)
{
    struct bench *b = &w->benches[r];
    double *spare = b->last;
    b->last = b->row;
    b->row = spare;
    compute_row(b, pe_position_at(&w->subject->plan->seq.k[0], i), b->row);
    w->curves[r * w->n + i] = error_of(b->row, truth, 2 * w->pairs);
    w->repeats[r] += i > 0 && is_equal(b->row, b->last, 2 * w->pairs);
}

/* The pair of the worst error of a row, which is computed again. */
static size_t worst_pair(struct work *w, size_t r, size_t row)
{
    struct bench *b = &w->benches[r];
    size_t n = w->pairs;
    pe_waves_fill(w->waves, PE_F64, &w->subject->plan->seq.k[0], row, 1, 0, 2 * n, w->truth, 2 * n);
    compute_row(b, pe_position_at(&w->subject->plan->seq.k[0], row), b->row);
    for (size_t c = 0; c < n; c++)
        b->angles[c] = fmax(fabs(b->row[c] - w->truth[c]), fabs(b->row[n + c] - w->truth[n + c]));
    return pe_first_extreme(b->angles, n, 1, 1);
}

/* ---- The answer ---- */

static void put_witness(struct work *w, struct pe_node *out, size_t r, size_t row, double worst)
{
    if (!(worst > PE_NOISE)) {
        pe_put_null(out, "witness");
        return;
    }
    struct pe_node *witness = pe_put_object(out, "witness");
    pe_put_integer(witness, "row", (int64_t)row);
    pe_put_integer(witness, "pair", (int64_t)worst_pair(w, r, row));
}

static void put_above(struct pe_node *list, const double *curve, size_t n, double error)
{
    struct pe_node *out = pe_put_object(list, NULL);
    size_t row = 0;
    while (row < n && !(curve[row] > error))
        row++;
    pe_put_real(out, "error", error);
    if (row < n)
        pe_put_integer(out, "row", (int64_t)row);
    else
        pe_put_null(out, "row");
}

static void put_recipe(struct work *w, struct pe_node *out, size_t r, const char *headline)
{
    static const double errors[] = {1e-4, 1e-3, 1e-2, 1e-1};
    const double *curve = w->curves + r * w->n;
    size_t row = pe_first_extreme(curve, w->n, 1, 1);
    pe_put_real(out, headline, curve[row]);
    put_witness(w, out, r, row, curve[row]);
    if (strcmp(headline, "value") == 0)
        return;
    pe_put_integer(out, "repeats", w->repeats[r]);
    struct pe_node *above = pe_put_list(out, "above");
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        put_above(above, curve, w->n, errors[i]);
}

static const char *const details[] = {
    "Recipe {recipe} is off by {value} at worst, at row {witness.row} and pair {witness.pair}.",
    "Recipe {recipe} is off by {value} at worst, which is only rounding noise.",
};

static enum pe_status compute(struct pe_analysis *study, struct pe_subject *subject, struct pe_node *out,
                              struct pe_failure *err)
{
    struct work w;
    double *tensor = pe_study_tensor(study, subject, "precision");
    enum pe_status status = begin(&w, study, subject, err);
    if (!status) {
        const struct pe_positions *positions = &w.subject->plan->seq.k[0];
        size_t step = rows_of_step(w.pairs);
        for (size_t first = 0; first < w.n && !pe_is_cancelled(); first += step) {
            size_t rows = w.n - first < step ? w.n - first : step;
            pe_waves_fill(w.waves, PE_F64, positions, first, rows, 0, 2 * w.pairs, w.truth, 2 * w.pairs);
            for (size_t r = 0; r < w.n_recipes && !pe_is_cancelled(); r++)
                for (size_t i = 0; i < rows; i++)
                    add_row(&w, r, first + i, w.truth + i * 2 * w.pairs);
        }
    }
    if (!status && !pe_was_cancelled()) {
        put_recipe(&w, out, 0, "value");
        pe_put_string(out, "recipe", recipe_name(recipe_of(study, 0)));
        struct pe_node *each = pe_put_object(out, "recipes");
        for (size_t r = 0; r < w.n_recipes; r++)
            put_recipe(&w, pe_put_object(each, recipe_name(recipe_of(study, r))), r, "worst");
        pe_put_detail(out, study->request->lang, details[pe_node_child(out, "witness") == NULL]);
    }
    if (!status && tensor)
        memcpy(tensor, w.curves, w.n_recipes * w.n * sizeof *tensor);
    pe_waves_free(w.waves);
    free(w.steps);
    free(w.memory);
    return status;
}

static enum pe_status check(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_failure *err)
{
    const char *names[RECIPES_MAX + 1] = {NULL};
    for (size_t r = 0; r < count_all(subject); r++)
        names[r] = recipe_name(r);
    return pe_words_check(study->fields.recipes, names, "recipes", err);
}

static void cost(const struct pe_analysis *study, const struct pe_subject *subject, struct pe_metric_cost *cost)
{
    size_t n = (size_t)subject->n, pairs = subject->ladder.n, n_recipes = count_recipes(study, subject);
    cost->work = 64 * (double)n * (double)pairs * (double)n_recipes;
    cost->bytes = (double)memory_size(n, pairs, n_recipes) * sizeof(double) +
                  (double)pairs * sizeof(struct pe_ggml_steps) + pe_ladder_waves_bytes(subject);
}

static void shape(const struct pe_analysis *study, const struct pe_subject *subject, size_t i, unsigned *rank,
                  uint64_t *shape)
{
    (void)i;
    *rank = 2;
    shape[0] = count_recipes(study, subject);
    shape[1] = subject->n;
}

static const struct pe_output_row tensors[] = {
    PE_OUTPUT("precision", "recipes,n", 1, PE_F64, false, NULL, "errors", "the largest error of each row, by recipe"),
    {.name = NULL},
};

const struct pe_metric pe_metric_precision = {
    .info =
        {
            .name = "precision",
            .about = {"precision", "errors of cosines and sines when angles are computed in few bits"},
            .applies_to = "sinusoidal, rope and xpos on one axis",
            .params = "recipes",
            .work = "64 n C for each recipe",
            .tensors = tensors,
            .details = details,
            .n_details = sizeof details / sizeof details[0],
        },
    .applies = pe_has_ladder,
    .check = check,
    .cost = cost,
    .shape = shape,
    .compute = compute,
};
