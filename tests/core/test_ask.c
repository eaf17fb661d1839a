/* Requests by calls: they plan what struct pe_request plans, refuse what is malformed, and outlive nothing they should
 * not. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct pe_ask *rope(void)
{
    struct pe_ask *ask = pe_ask_new("encode");
    pe_ask_text(ask, "scheme", "rope");
    pe_ask_integer(ask, "len", 7);
    pe_ask_integer(ask, "head_dim", 8);
    return ask;
}

static void refuses(struct pe_ask *ask, enum pe_status status, const char *pointer, const char *detail)
{
    struct pe_plan *const before = (struct pe_plan *)1, *plan = before; /* is left as it was */
    struct pe_error err = {.status = PE_OK};
    assert_int_equal(pe_ask_plan(ask, &plan, &err), status);
    assert_int_equal(err.status, status);
    assert_ptr_equal(plan, before);
    assert_string_equal(err.pointer, pointer);
    assert_non_null(strstr(err.detail, detail));
    pe_ask_free(ask);
}

TEST(a_plan_outlives_its_ask)
{
    struct pe_ask *ask = rope();
    struct pe_plan *plan;
    struct pe_error err;
    char type[] = "linear";
    pe_ask_text(ask, "scaling.type", type);
    pe_ask_real(ask, "scaling.factor", 4);
    pe_ask_text(ask, "outputs", "sin,cos");
    pe_ask_text(ask, "dtype", "f64");
    pe_ask_integer(ask, "len", 9); /* replaces */
    memset(type, 'x', sizeof type - 1);
    assert_int_equal(pe_ask_plan(ask, &plan, &err), PE_OK);
    pe_ask_integer(ask, "len", 2);
    pe_ask_free(ask);
    assert_int_equal(pe_plan_n_outputs(plan), 2);
    assert_string_equal(pe_output_name(plan, 0), "sin");
    assert_int_equal(pe_output_find(plan, "cos"), 1);
    assert_int_equal(pe_output_find(plan, "tan"), -1);
    assert_int_equal(pe_output_find(plan, NULL), -1);
    assert_int_equal(pe_output_rank(plan, 1), 2);
    assert_int_equal(pe_output_shape(plan, 1)[0], 9);
    assert_int_equal(pe_output_shape(plan, 1)[1], 4);
    assert_int_equal(pe_output_dtype(plan, 1), PE_F64);
    assert_int_equal(pe_output_bytes(plan, 1), 9 * 4 * 8);
    double row[4];
    pe_fill(plan, 1, 8 * 4, 4, row);
    for (int i = 0; i < 4; i++)
        assert_true(fabs(row[i] - cos(8 * pow(10000, -2.0 * i / 8) / 4)) < 1e-15);
    pe_plan_free(plan);
}

TEST(tensors_and_lists)
{
    static float q[2 * 4];
    const int64_t positions[] = {5, 900};
    struct pe_plan *plan;
    struct pe_error err;
    q[0] = 1;
    struct pe_ask *ask = pe_ask_new("rotate");
    pe_ask_text(ask, "scheme", "rope");
    pe_ask_text(ask, "layout", "half");
    pe_ask_tensor(ask, "q", PE_F32, 4, (const uint64_t[]){1, 1, 2, 4}, q);
    pe_ask_tensor(ask, "positions", PE_I64, 1, (const uint64_t[]){2}, positions);
    assert_int_equal(pe_ask_plan(ask, &plan, &err), PE_OK);
    pe_ask_free(ask);
    float out[8];
    pe_fill(plan, 0, 0, 8, out);
    assert_true(fabsf(out[0] - cosf(5)) < 1e-6f && fabsf(out[2] - sinf(5)) < 1e-6f);
    pe_plan_free(plan);
}

TEST(mistakes_are_sentences)
{
    refuses(pe_ask_new("encod"), PE_INVALID, "", "unknown operation \"encod\"; nearest: \"encode\"");
    refuses(pe_ask_new(NULL), PE_INVALID, "", "unknown operation \"NULL\"");
    refuses(NULL, PE_NO_MEMORY, "", "memory");
    static const char *const paths[] = {NULL, "", ".", ".len", "len.", "scaling..factor"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct pe_ask *ask = rope();
        pe_ask_integer(ask, paths[i], 1);
        pe_ask_text(ask, "schem", "the first mistake is kept");
        refuses(ask, PE_INVALID, "", "a path is the name of a field, or names with dots between them; found: ");
    }
    char lengthy[400];
    memset(lengthy, 'a', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    struct pe_ask *ask = rope();
    pe_ask_bool(ask, lengthy, true);
    refuses(ask, PE_INVALID, "", "a path is");
    ask = rope();
    pe_ask_text(ask, "scaling", "linear");
    pe_ask_real(ask, "scaling.factor", 2);
    refuses(ask, PE_INVALID, "/scaling/factor", "scaling and scaling.factor exclude each other");
    ask = rope();
    pe_ask_text(ask, "scaling.type", "yarn");
    pe_ask_bool(ask, "scaling.factor", true);
    refuses(ask, PE_INVALID, "/scaling/factor", "factor");
    static const struct {
        const char *name, *text, *pointer, *detail;
        double number; /* of what has no text */
    } rows[] = {{"layout", NULL, "/layout", "layout: the text is NULL", 0},
                {"len", "7", "/len", "len is \"7\"", 0},
                {"dtype", "f33", "/dtype", "dtype is \"f33\"; allowed: ", 0},
                {"outputs", "cos,,sin", "/outputs/1", "", 0},
                {"base", NULL, "/base", "base: the number is not finite", (double)NAN},
                {"lenn", NULL, "/lenn", "nearest: \"len\"", 7},
                {"outputs", NULL, "/outputs", "outputs are names with commas", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ask = rope();
        if (rows[i].number != 0)
            pe_ask_real(ask, rows[i].name, rows[i].number);
        else
            pe_ask_text(ask, rows[i].name, rows[i].text);
        refuses(ask, PE_INVALID, rows[i].pointer, rows[i].detail);
    }
}

TEST(wrong_tensors)
{
    static const struct {
        enum pe_dtype dtype;
        unsigned rank;
        uint64_t n;
        const char *detail;
    } wrong[] = {{PE_DTYPE_NONE, 1, 1, "q: unknown dtype of the tensor"},
                 {PE_N_DTYPES, 1, 1, "q: unknown dtype of the tensor"},
                 {PE_F32, 9, 1, "q: the tensor has no such shape"},
                 {PE_F32, 2, UINT64_MAX, "q: the tensor has no such shape"},
                 {PE_F32, 1, 1, "q: the tensor has no data"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const uint64_t shape[PE_RANK_MAX] = {wrong[i].n, wrong[i].n};
        struct pe_ask *ask = pe_ask_new("rotate");
        pe_ask_tensor(ask, "q", wrong[i].dtype, wrong[i].rank, shape, NULL);
        refuses(ask, PE_INVALID, "/q", wrong[i].detail);
    }
    struct pe_ask *ask = pe_ask_new("rotate");
    pe_ask_tensor(ask, "q", PE_F32, 1, NULL, "");
    refuses(ask, PE_INVALID, "/q", "q: the tensor has no such shape");
}

TEST(limits_refuse)
{
    struct pe_ask *ask = rope();
    pe_ask_limit(ask, 10, 0);
    refuses(ask, PE_TOO_LARGE, "", "allowed here: at most 10");
    ask = rope();
    pe_ask_limit(ask, 0, 10);
    refuses(ask, PE_TOO_LARGE, "", "multiply-adds; allowed here: at most 10");
    ask = pe_ask_new("encode");
    char name[16];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "field%d", i);
        pe_ask_integer(ask, name, i);
    }
    refuses(ask, PE_INVALID, "/field256", "the request has more than 256 fields");
}

/* Tensors, names of outputs and a nested object of three fields. */
static enum pe_status ask_and_plan(void *unused)
{
    static const float q[2 * 4 * 8];
    static const uint64_t shape[] = {2, 4, 8};
    struct pe_plan *plan = NULL;
    struct pe_error err = {.status = PE_OK};
    struct pe_ask *ask = pe_ask_new("attention");
    pe_ask_text(ask, "scheme", "rope");
    pe_ask_text(ask, "outputs", "scores,probs");
    pe_ask_text(ask, "scaling.type", "yarn");
    pe_ask_real(ask, "scaling.factor", 4);
    pe_ask_integer(ask, "scaling.original_max_position_embeddings", 2048);
    pe_ask_bool(ask, "causal", true);
    pe_ask_tensor(ask, "q", PE_F32, 3, shape, q);
    pe_ask_tensor(ask, "k", PE_F32, 3, shape, q);
    enum pe_status status = pe_ask_plan(ask, &plan, &err);
    pe_plan_free(plan);
    pe_ask_free(ask);
    return status;
}

TEST(no_memory) { test_each_allocation_fails(ask_and_plan, NULL); }

/* Other tests have planned before. */
TEST(the_process_has_chosen)
{
    enum pe_isa isa = pe_isa();
    pe_ask_free(rope());
    assert_false(pe_on_wait(NULL));
    for (enum pe_isa other = PE_ISA_BASE; other < PE_N_ISAS; other++)
        assert_false(pe_isa_use(other));
    assert_int_equal(pe_isa(), isa);
}
