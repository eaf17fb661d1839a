/* Rotation of whole tensors: every dtype, every path through the kernels in pieces, in place and on every instruction
 * set, floats turned by the nearest floats. Values of layouts and orders of axes: tests/http/rotate. */
#include "tests/support/kernel_sets.h"
#include "tests/support/request.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static float sample(uint64_t i)
{
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ULL;
    x ^= x >> 31;
    return (float)((double)(x * 0xbf58476d1ce4e5b9ULL >> 40) / 0x1p23 - 1);
}

/* The rotation by its formula, in double with the C library's functions. */
static double expected(const float *x, size_t d, size_t j, double p)
{
    size_t c = j % (d / 2);
    double angle = p * pow(10000, -2.0 * (double)c / (double)d), x1 = (double)x[c], x2 = (double)x[c + d / 2];
    return j < d / 2 ? x1 * cos(angle) - x2 * sin(angle) : x2 * cos(angle) + x1 * sin(angle);
}

static struct pe_plan *plan_of(struct test_request *r, const char *json, const struct pe_tensor *q, enum pe_dtype dtype)
{
    test_request_parse(r, json);
    r->fields[r->request.n_fields++] = (struct pe_field){"q", {.kind = PE_ARRAY, .array = *q}};
    return test_plan_as(r, PE_ROTATE, dtype);
}

enum { D = 16 };

/* Any dtype in, any real dtype out: as accurate as the wider arithmetic of f32 and the answer's dtype allows. */
TEST(every_dtype)
{
    float values[2 * D];
    for (size_t i = 0; i < 2 * D; i++)
        values[i] = (float)(int)(100 * sample(i)); /* representable in all of them but the unsigned */
    for (enum pe_dtype from = 0; from < PE_N_DTYPES; from++)
        for (enum pe_dtype to = PE_F32; to < PE_N_DTYPES; to++) {
            if (!pe_dtype_is_real(to))
                continue;
            struct test_request r;
            _Alignas(8) char in[2 * D * 8], out[2 * D * 8];
            float seen[2 * D];
            pe_convert(from, in, PE_F32, values, 2 * D);
            pe_convert(PE_F32, seen, from, in, 2 * D);
            struct pe_tensor q = {from, 2, {2, D}, in};
            struct pe_plan *plan = plan_of(&r, "{'scheme':'rope','layout':'half','offset':5}", &q, to);
            assert_int_equal(pe_plan_output(plan, 0)->dtype, to);
            pe_fill(plan, 0, 0, 2 * D, out);
            bool by_floats = (from == PE_F32 || pe_narrow_type(from)) && to != PE_F64;
            double terms = by_floats ? 6 * 0x1p-24 * 100 : 0; /* no value is above 100 */
            double ulp = to == PE_F64 ? 0x1p-50 : pe_real_type(to)->unit;
            double least = fmax(pe_real_type(to)->least_normal, 0x1p-14);
            for (size_t i = 0; i < 2 * D; i++) {
                double e = expected(seen + i / D * D, D, i % D, 5 + (double)(i / D));
                assert_true(fabs(pe_element(to, out, i) - e) <= 1.001 * ulp * fmax(fabs(e), least) + terms + 1e-13);
            }
            pe_plan_free(plan);
            test_request_drop(&r);
        }
}

/* ---- Blocks of rows ---- */

/* 70 positions in no order, some of them fractions. */
#define SCATTERED                                                                                                      \
    "-19.5,17,54,-9.5,27,64,0.5,37,74,10.5,47,-17,20.5,57,-7,30.5,67,3,40.5,77,13,"                                    \
    "50.5,-14,23,60.5,-4,33,70.5,6,43,80.5,16,53,-10.5,26,63,-0.5,36,73,9.5,46,-18,"                                   \
    "19.5,56,-8,29.5,66,2,39.5,76,12,49.5,-15,22,59.5,-5,32,69.5,5,42,79.5,15,52,"                                     \
    "-11.5,25,62,-1.5,35,72,8.5"

/* Every path through the kernels: whole registers of pairs and remainders, parts of a head, several axes, runs and
 * lists of positions, heads inside, factors, tables for one head and for many. */
static const struct shape_case {
    const char *json;
    uint64_t shape[3];
} shapes[] = {
    {"{'scheme':'rope','layout':'half'}", {2, 150, 32}},
    {"{'scheme':'rope'}", {2, 150, 32}},
    {"{'scheme':'rope'}", {1, 300, 22}},
    {"{'scheme':'rope','layout':'half','offset':-70}", {1, 300, 22}},
    {"{'scheme':'rope','layout':'half','offset':1000000}", {3, 40, 6}},
    {"{'scheme':'rope','rotary_dim':18,'rotary_offset':5,'direction':-1}", {2, 99, 30}},
    {"{'scheme':'rope','layout':'half','rotary_dim':20,'tensor_layout':'bnhd'}", {90, 5, 24}},
    {"{'scheme':'rope','tensor_layout':'bnhd','positions':[" SCATTERED "]}", {70, 3, 16}},
    {"{'scheme':'rope','layout':'half_per_axis','grid':[9,11]}", {2, 99, 44}},
    {"{'scheme':'rope','layout':'interleaved_to_half'}", {2, 80, 16}},
    {"{'scheme':'rope','layout':'half','arith':'float32'}", {2, 80, 16}},
    {"{'scheme':'rope','attention_factor':1.25}", {2, 80, 48}},
    {"{'scheme':'xpos','layout':'half'}", {2, 80, 48}},
    {"{'scheme':'rope','layout':'half'}", {1, 3000, 16}}, /* no table is stored */
};

enum { N_SHAPES = sizeof shapes / sizeof *shapes, MOST = 3000 * 16 };

struct filled {
    struct test_request request;
    struct pe_plan *plan;
    size_t n, n_bytes;
    char x[MOST * 8], y[MOST * 8];
};

static void open_case(struct filled *f, const struct shape_case *s, enum pe_dtype from, enum pe_dtype to)
{
    static float values[MOST];
    f->n = s->shape[0] * s->shape[1] * s->shape[2];
    assert_true(f->n <= MOST);
    for (size_t i = 0; i < f->n; i++)
        values[i] = sample(i);
    pe_convert(from, f->x, PE_F32, values, f->n);
    struct pe_tensor q = {from, 3, {s->shape[0], s->shape[1], s->shape[2]}, f->x};
    f->plan = plan_of(&f->request, s->json, &q, to);
    f->n_bytes = f->n * pe_dtype_size(to);
    pe_fill(f->plan, 0, 0, f->n, f->y);
}

static void close_case(struct filled *f)
{
    pe_plan_free(f->plan);
    test_request_drop(&f->request);
}

static void for_all_cases(void (*check)(struct filled *f, enum pe_dtype to))
{
    static struct filled f;
    for (size_t i = 0; i < N_SHAPES; i++)
        for (enum pe_dtype dtype = PE_F32; dtype <= PE_BF16; dtype++) {
            open_case(&f, &shapes[i], dtype, dtype);
            check(&f, dtype);
            close_case(&f);
        }
    open_case(&f, &shapes[0], PE_F16, PE_F32);
    check(&f, PE_F32);
    close_case(&f);
    open_case(&f, &shapes[1], PE_F32, PE_BF16);
    check(&f, PE_BF16);
    close_case(&f);
}

static void check_chunks(struct filled *f, enum pe_dtype to)
{
    static char part[MOST * 8];
    size_t size = pe_dtype_size(to);
    for (size_t length = 1; length < f->n; length = length * 5 + 2)
        for (size_t at = 0; at < f->n; at += 3 * length) {
            size_t n = f->n - at < length ? f->n - at : length;
            pe_fill(f->plan, 0, at, n, part);
            assert_memory_equal(part, f->y + at * size, n * size);
        }
}

TEST(any_chunks_give_the_same_bytes) { for_all_cases(check_chunks); }

static void check_isas(struct filled *f, enum pe_dtype to)
{
    static char other[MOST * 8];
    for (EACH_KERNEL_SET) {
        pe_fill(f->plan, 0, 0, f->n, other);
        assert_memory_equal(other, f->y, f->n_bytes);
    }
}

TEST(any_instruction_set_gives_the_same_bytes) { for_all_cases(check_isas); }

/* In place: the tensor's own memory is overwritten, some rows at a time. */
TEST(in_place)
{
    static struct filled f;
    for (size_t i = 0; i < N_SHAPES; i++)
        for (enum pe_dtype dtype = PE_F32; dtype <= PE_BF16; dtype++) {
            open_case(&f, &shapes[i], dtype, dtype);
            size_t row = shapes[i].shape[2], size = pe_dtype_size(dtype);
            for (size_t at = 0, n; at < f.n; at += n) {
                n = f.n - at < 37 * row ? f.n - at : 37 * row;
                pe_fill(f.plan, 0, at, n, f.x + at * size);
            }
            assert_memory_equal(f.x, f.y, f.n_bytes);
            close_case(&f);
        }
}

/* Two products of the nearest floats to cosine and sine, and their sum, each rounded to f32, bit for bit. */
static void assert_row_exact(const float *x, const float *y, size_t d, double p)
{
    for (size_t c = 0; c < d / 2; c++) {
        long double angle = (long double)p * powl(10000, -2.0L * (long double)c / (long double)d);
        volatile float cosine = (float)cosl(angle), sine = (float)sinl(angle);
        volatile float a = x[c] * cosine, b = x[c + d / 2] * sine;
        volatile float first = a - b;
        a = x[c + d / 2] * cosine;
        b = x[c] * sine;
        volatile float second = a + b;
        assert_true((double)y[c] == (double)first && (double)y[c + d / 2] == (double)second);
    }
}

TEST(floats_are_turned_by_the_nearest_floats)
{
    enum { LONG = 600, WIDE = 64 };
    static const char *const requests[] = {"{'scheme':'rope','layout':'half'}",
                                           "{'scheme':'rope','layout':'half','offset':-300}",
                                           "{'scheme':'rope','layout':'half','offset':100000}"};
    static const double firsts[] = {0, -300, 100000};
    static float x[2 * LONG * WIDE], y[2 * LONG * WIDE];
    for (size_t i = 0; i < 2 * LONG * WIDE; i++)
        x[i] = i % 11 ? sample(i) : 0; /* alone, a sine or cosine shows its own error */
    for (size_t k = 0; k < 3; k++) {
        struct test_request r;
        struct pe_tensor q = {PE_F32, 3, {2, LONG, WIDE}, x};
        struct pe_plan *plan = plan_of(&r, requests[k], &q, PE_DTYPE_NONE);
        pe_fill(plan, 0, 0, 2 * LONG * WIDE, y);
        for (size_t row = 0; row < 2 * LONG; row++)
            assert_row_exact(x + row * WIDE, y + row * WIDE, WIDE, firsts[k] + (double)(row % LONG));
        pe_plan_free(plan);
        test_request_drop(&r);
    }
}

/* Position 0 rotates nothing: no bit changes, even in the middle of a run. */
TEST(position_0_changes_nothing)
{
    static struct filled f;
    open_case(&f, &shapes[3], PE_F32, PE_F32);
    size_t at = 70 * 22 * sizeof(float);
    assert_memory_equal(f.y + at, f.x + at, 22 * sizeof(float));
    close_case(&f);
}
