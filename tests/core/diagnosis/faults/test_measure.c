/* What the diagnosis reads from numbers: frequencies, bases and positions of tables that are computed here by pow, cos
 * and sin. */
#include "core/diagnosis/diagnosis.h"
#include "tests/core/diagnosis/ask.h"
#include "tests/support/random.h"

enum { PAIRS = 24, ROWS = 40 };

static double real_in(double least, double most)
{
    return least + (most - least) * (double)(random_bits() >> 11) * 0x1p-53;
}

/* cos and sin of place[i]·w[k], in f32 or f64. */
struct tables {
    enum pe_dtype dtype;
    double w[PAIRS], place[ROWS];
    double cosines[ROWS][PAIRS], sines[ROWS][PAIRS];
    float narrow[2][ROWS][PAIRS];
};

static void compute(struct tables *t)
{
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < PAIRS; k++) {
            t->cosines[i][k] = cos(t->place[i] * t->w[k]);
            t->sines[i][k] = sin(t->place[i] * t->w[k]);
            t->narrow[0][i][k] = (float)t->cosines[i][k];
            t->narrow[1][i][k] = (float)t->sines[i][k];
        }
}

static void set_ladder(struct tables *t, double base)
{
    for (size_t k = 0; k < PAIRS; k++)
        t->w[k] = pow(base, -(double)k / PAIRS);
}

static void set_run(struct tables *t, double first)
{
    for (size_t i = 0; i < ROWS; i++)
        t->place[i] = first + (double)i;
}

static struct pe_field tensor(const struct tables *t, const char *name, size_t which)
{
    const void *wide = which == 0 ? (const void *)t->cosines : (const void *)t->sines;
    struct pe_tensor x = {.dtype = t->dtype,
                          .rank = 2,
                          .shape = {ROWS, PAIRS},
                          .data = t->dtype == PE_F64 ? wide : (const void *)t->narrow[which]};
    return (struct pe_field){name, {.kind = PE_ARRAY, .array = x}};
}

/* A diagnosis of the tables by someone who expects rope with its defaults. */
static struct pe_diagnosis *diagnose(const struct tables *t)
{
    const struct pe_field fields[] = {{"scheme", {.kind = PE_STRING, .string = "rope"}},
                                      {"head_dim", {.kind = PE_INTEGER, .integer = 2 * PAIRS}},
                                      tensor(t, "cos", 0),
                                      tensor(t, "sin", 1)};
    const struct pe_diagnosis_request request = {
        .fields = fields, .n_fields = sizeof fields / sizeof *fields, .max_work = 1e12};
    struct pe_diagnosis *d = NULL;
    struct pe_failure err;
    if (pe_diagnosis_new(&request, &d, &err))
        fail_msg("%s: %s", err.pointer, err.detail);
    return d;
}

static struct tables *new_tables(enum pe_dtype dtype)
{
    struct tables *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->dtype = dtype;
    return t;
}

/* ---- Frequencies ---- */

static void check_steps(const struct tables *t)
{
    struct pe_diagnosis *d = diagnose(t);
    const struct pe_reading *r = pe_read_waves(d, d->belief.model);
    assert_non_null(r);
    assert_int_equal(r->n_waves, PAIRS);
    for (size_t k = 0; k < PAIRS; k++) {
        double off = fabs(remainder(r->step[k] - t->w[k], 2 * acos(-1)));
        assert_true(off <= 8 * r->error[k]);
        assert_true(r->error[k] < 1e-6);
    }
    assert_true(pe_agrees(r, t->w, 1, 0x1p-20));
    pe_diagnosis_free(d);
}

TEST(steps_are_the_frequencies)
{
    for (int trial = 0; trial < 8; trial++) {
        struct tables *t = new_tables(trial % 2 ? PE_F32 : PE_F64);
        for (size_t k = 0; k < PAIRS; k++)
            t->w[k] = exp(real_in(-9, 1));
        set_run(t, floor(real_in(0, 2000)));
        compute(t);
        check_steps(t);
        free(t);
    }
}

/* A sequence that begins again in the middle has the same frequencies. */
TEST(jumps_do_not_spoil_them)
{
    struct tables *t = new_tables(PE_F32);
    set_ladder(t, 5e5);
    for (size_t i = 0; i < ROWS; i++)
        t->place[i] = 300 + (double)(i < 13 ? i : i < 30 ? i - 13 : i - 30);
    compute(t);
    check_steps(t);
    free(t);
}

/* ---- The base ---- */

static double base_found(const struct pe_diagnosis *d)
{
    const struct pe_value *first = item(member(pe_diagnosis_answer(d), "candidates"), 0);
    return number(member(first, "config"), "base");
}

TEST(any_base_is_found)
{
    const double bases[] = {12345, 77777, 31.5, 654300, 2.5e8, 999};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        struct tables *t = new_tables(PE_F32);
        set_ladder(t, bases[i]);
        set_run(t, 0);
        compute(t);
        struct pe_diagnosis *d = diagnose(t);
        assert_true(base_found(d) == bases[i]);
        pe_diagnosis_free(d);
        free(t);
    }
}

/* ---- Positions ---- */

TEST(phases_give_back_their_factor)
{
    for (int trial = 0; trial < 200; trial++) {
        double w[PAIRS], phase[PAIRS], weight[PAIRS], x = floor(real_in(-5000, 100000));
        for (size_t k = 0; k < PAIRS; k++) {
            w[k] = pow(10000, -(double)((k * 7) % PAIRS) / PAIRS); /* in any order */
            phase[k] = remainder(x * w[k] + real_in(-1e-3, 1e-3), 2 * acos(-1));
            weight[k] = real_in(0.5, 2);
        }
        struct pe_solved s = pe_solve_phases(w, phase, weight, PAIRS, 1e-3, 0x1p17);
        assert_true(fabs(s.x - x) < 0.01);
        assert_true(s.score > 0.999);
    }
}

TEST(rows_in_any_order_are_read)
{
    struct tables *t = new_tables(PE_F32);
    set_ladder(t, 10000);
    for (size_t i = 0; i < ROWS; i++)
        t->place[i] = (double)(random_bits() % 5000);
    compute(t);
    struct pe_diagnosis *d = diagnose(t);
    const struct pe_value *first = item(member(pe_diagnosis_answer(d), "candidates"), 0);
    const struct pe_value *places = member(member(first, "sequence"), "positions");
    assert_non_null(places);
    for (size_t i = 0; i < ROWS; i++)
        assert_true(integer_at(places, i) == t->place[i]);
    pe_diagnosis_free(d);
    free(t);
}

/* ---- Lengths ---- */

static bool lengths_agree(const struct tables *t)
{
    struct pe_diagnosis *d = diagnose(t);
    bool agree = pe_lengths_agree(d->belief.model);
    pe_diagnosis_free(d);
    return agree;
}

static void scale_column(struct tables *t, size_t k, double factor)
{
    for (size_t i = 0; i < ROWS; i++) {
        t->cosines[i][k] *= factor;
        t->sines[i][k] *= factor;
    }
}

/* Whatever the angles are; a factor for all, and a few wrong numbers, are no reason. */
TEST(rotations_keep_lengths)
{
    struct tables *t = new_tables(PE_F64);
    for (size_t k = 0; k < PAIRS; k++)
        t->w[k] = real_in(0, 6);
    set_run(t, 0);
    compute(t);
    for (size_t k = 0; k < PAIRS; k++)
        scale_column(t, k, 1.3);
    assert_true(lengths_agree(t));
    t->cosines[ROWS / 8][3] = 100;
    t->sines[3 * ROWS / 8][5] = -0.5;
    assert_true(lengths_agree(t));
    for (size_t k = 0; k < PAIRS; k++)
        scale_column(t, k, exp(real_in(-0.6, 0.6)));
    assert_false(lengths_agree(t));
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < PAIRS; k++) {
            t->cosines[i][k] = real_in(-1, 1);
            t->sines[i][k] = real_in(-1, 1);
        }
    assert_false(lengths_agree(t));
    free(t);
}

/* ---- Decimals ---- */

TEST(the_shortest_decimal_is_near_enough)
{
    assert_true(pe_shortest_decimal(10000.01, 3e-6) == 10000);
    assert_true(pe_shortest_decimal(1.13862943611, 5e-8) == 1.1386294);
    for (int trial = 0; trial < 1000; trial++) {
        double x = exp(real_in(-20, 20)), tolerance = exp(real_in(-30, -3));
        assert_true(fabs(pe_shortest_decimal(x, tolerance) - x) <= tolerance * x);
    }
}

/* ---- Ratios ---- */

/* A zero that is predicted and found says nothing of the factor, whichever number it is beside. */
TEST(zeros_do_not_bound_a_ratio)
{
    const double found[][3] = {{2, 0, 6}, {0, 6, 2}, {6, 2, 0}}, predicted[][3] = {{1, 0, 3}, {0, 3, 1}, {3, 1, 0}};
    for (size_t n = 2; n <= 3; n++)
        for (size_t i = 0; i < 3; i++) {
            struct pe_ratio r;
            double factor = 0;
            pe_ratio_init(&r);
            assert_true(pe_ratio_add(&r, found[i], predicted[i], n, 0x1p-24));
            assert_true(pe_ratio_choose(&r, &factor));
            assert_true(factor == 2);
        }
    struct pe_ratio r;
    pe_ratio_init(&r);
    assert_false(pe_ratio_add(&r, (const double[]){2, 1}, (const double[]){1, 0}, 2, 0x1p-24));
}
