/* The search: its bound, its order, what it refuses, and that every failed allocation is reported. */
#include "tests/core/diagnosis/ask.h"
#include "core/diagnosis/diagnosis.h"
#include "tests/support/alloc.h"
#include "tests/support/random.h"

enum { DIM = 16, ROWS = 12 };

static double *garbage(size_t n)
{
    double *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = 2 * (double)(random_bits() >> 11) * 0x1p-53 - 1;
    return x;
}

/* The paper's encoding at places first, first + 1, …, with another base. */
static double *encoding(double base, double first)
{
    double *x = malloc(ROWS * DIM * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < ROWS; i++)
        for (size_t c = 0; c < DIM / 2; c++) {
            double angle = (first + (double)i) * pow(base, -2 * (double)c / DIM);
            x[i * DIM + 2 * c] = sin(angle);
            x[i * DIM + 2 * c + 1] = cos(angle);
        }
    return x;
}

static void ask_encoding(struct asked *a, const char *json, double *values)
{
    struct sent s = sent_new("encoding", PE_F32, 2, (uint64_t[]){ROWS, DIM}, values);
    ask(a, json, &s, NULL, 0);
    sent_free(&s);
}

/* ---- Bound and order ---- */

TEST(garbage_ends_at_the_bound)
{
    struct asked a;
    ask_encoding(&a, "{'scheme':'sinusoidal'}", garbage(ROWS * DIM));
    assert_non_null(a.answer);
    assert_string_equal(codes_of(&a), "unexplained");
    assert_true(pe_diagnosis_searched(a.diagnosis) > 100);
    assert_true(pe_diagnosis_searched(a.diagnosis) <= PE_HYPOTHESES_MAX);
    asked_drop(&a);
}

TEST(the_best_stand_in_order)
{
    struct asked a;
    ask_encoding(&a, "{'scheme':'sinusoidal'}", encoding(5e5, 0));
    const struct pe_diagnosis *d = a.diagnosis;
    assert_non_null(d);
    assert_true(d->n_best > 0);
    assert_int_equal(d->best[0].cost, 1);
    for (size_t i = 1; i < d->n_best; i++) {
        assert_true(pe_explanation_compare(&d->best[i - 1], &d->best[i]) < 0);
        assert_true(d->best[i - 1].signature != d->best[i].signature);
    }
    assert_string_equal(codes_of(&a), "base_other");
    asked_drop(&a);
}

TEST(two_mistakes_are_two_codes)
{
    struct asked a;
    ask_encoding(&a, "{'scheme':'sinusoidal'}", encoding(256, 1));
    assert_string_equal(codes_of(&a), "off_by_one base_other");
    asked_drop(&a);
}

/* The same question twice has the same answer, hypothesis by hypothesis. */
TEST(a_search_is_repeatable)
{
    struct asked a, b;
    ask_encoding(&a, "{'scheme':'sinusoidal'}", encoding(300, 7));
    ask_encoding(&b, "{'scheme':'sinusoidal'}", encoding(300, 7));
    assert_int_equal(pe_diagnosis_searched(a.diagnosis), pe_diagnosis_searched(b.diagnosis));
    assert_string_equal(codes_of(&a), "offset_other base_other");
    assert_int_equal(a.diagnosis->n_best, b.diagnosis->n_best);
    for (size_t i = 0; i < a.diagnosis->n_best; i++)
        assert_true(a.diagnosis->best[i].signature == b.diagnosis->best[i].signature);
    asked_drop(&a);
    asked_drop(&b);
}

/* ---- Refusals ---- */

static void refuse(const char *json, const char *pointer, const char *part)
{
    struct test_request r;
    struct pe_diagnosis *d = NULL;
    struct pe_failure err;
    test_request_parse(&r, json);
    const struct pe_diagnosis_request request = {.fields = r.fields, .n_fields = r.n, .max_work = 1e12};
    assert_true(pe_diagnosis_new(&request, &d, &err) != PE_OK);
    if (strcmp(err.pointer, pointer) != 0 || !strstr(err.detail, part))
        fail_msg("%s: \"%s\": %s", json, err.pointer, err.detail);
    test_request_drop(&r);
}

TEST(wrong_questions_are_refused)
{
    refuse("{'scheme':'rope'}", "", "no tensor");
    refuse("{'scheme':'rope','cos':[[1,1]]}", "/sin", "missing");
    refuse("{'scheme':'rope','q':[[1,2]]}", "/q_out", "missing");
    refuse("{'encoding':[[1,2]],'bias':[[[0]]]}", "/bias", "send one of");
    refuse("{'q':[[1,2]],'q_out':[[1,2],[3,4]]}", "/q_out", "[2,2]");
    refuse("{'cos':[1,1],'sin':[0,0]}", "/cos", "needed");
    refuse("{'scheme':'rope','head_dim':64,'cos':[[1,1]],'sin':[[0,0]]}", "/head_dim", "64");
    refuse("{'scheme':'sinusoidal','dim':8,'encoding':[[1,2]]}", "/dim", "8");
    refuse("{'scheme':'sinusoidal','len':3,'encoding':[[1,2]]}", "/len", "[3,2]");
    refuse("{'scheme':'alibi','encoding':[[1,2]]}", "/scheme", "alibi");
    refuse("{'scheme':'sinusoidal','base':1,'encoding':[[1,2]]}", "/base", "base is 1");
    refuse("{'scheme':'sinusoidal','encoding':'x'}", "/encoding", "not a tensor");
    refuse("{'scheme':'sinusoidal','encodings':1,'encoding':[[1,2]]}", "/encodings", "unknown field");
}

TEST(nan_is_refused)
{
    struct asked a;
    double *x = encoding(10000, 0);
    x[ROWS * DIM - 1] = (double)NAN;
    ask_encoding(&a, "{'scheme':'sinusoidal'}", x);
    assert_null(a.diagnosis);
    assert_string_equal(a.err.pointer, "/encoding");
    assert_non_null(strstr(a.err.detail, "NaN"));
    asked_drop(&a);
}

TEST(long_tensors_are_refused)
{
    struct asked a;
    struct sent s = sent_new("encoding", PE_F32, 2, (uint64_t[]){16385, 2}, garbage(2 * 16385));
    ask(&a, "{'scheme':'sinusoidal'}", &s, NULL, 0);
    assert_null(a.diagnosis);
    assert_int_equal(a.err.status, PE_TOO_LARGE);
    assert_non_null(strstr(a.err.detail, "16384"));
    asked_drop(&a);
    sent_free(&s);
}

/* ---- Memory ---- */

static enum pe_status diagnose_failing(const struct sent *s, long failing, uint64_t *searched)
{
    struct test_request r;
    struct pe_diagnosis *d = NULL;
    struct pe_failure err;
    test_request_parse(&r, "{'scheme':'sinusoidal'}");
    struct pe_tensor tensor = {.dtype = s->dtype, .rank = 2, .shape = {s->shape[0], s->shape[1]}, .data = s->raw};
    struct pe_field fields[] = {r.fields[0], {"encoding", {.kind = PE_ARRAY, .array = tensor}}};
    const struct pe_diagnosis_request request = {.fields = fields, .n_fields = 2, .max_work = 1e12};
    alloc_fail_at(failing);
    enum pe_status status = pe_diagnosis_new(&request, &d, &err);
    alloc_fail_at(-1);
    *searched = d ? pe_diagnosis_searched(d) : 0;
    pe_diagnosis_free(d);
    test_request_drop(&r);
    return status;
}

/* With an allocation that fails, the diagnosis says so; it never answers something else. */
static void fail_allocations(uint64_t rows, double base)
{
    struct sent s = sent_new("encoding", PE_F32, 2, (uint64_t[]){rows, DIM}, encoding(base, 0));
    uint64_t whole, searched;
    long before = alloc_count();
    assert_int_equal(diagnose_failing(&s, -1, &whole), PE_OK);
    long n = alloc_count() - before;
    for (long i = 0; i < n; i += i < 200 ? 1 : 7) {
        enum pe_status status = diagnose_failing(&s, i, &searched);
        if (status != PE_NO_MEMORY && !(status == PE_OK && searched == whole))
            fail_msg("allocation %ld of %ld: status %d, searched %llu", i, n, (int)status,
                     (unsigned long long)searched);
    }
    sent_free(&s);
}

/* Of a search, and of what a row that is as believed could not have shown. */
TEST(failed_allocations_are_reported)
{
    fail_allocations(ROWS, 5e5);
    fail_allocations(1, 1e4);
}
