/* The two halves of planning: what the first may touch, and that both together give what pe_plan_new gives. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <string.h>
#include <sys/mman.h>

/* ---- Tensors that cannot be read ---- */

enum { BYTES = 1 << 16 };

static float *closed;

static void set_closed(bool is_closed)
{
    assert_int_equal(mprotect(closed, BYTES, is_closed ? PROT_NONE : PROT_READ | PROT_WRITE), 0);
}

void tests_begin(void)
{
    closed = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(closed, MAP_FAILED);
    for (size_t i = 0; i < BYTES / sizeof *closed; i++)
        closed[i] = (float)(i % 97) / 97;
}

void tests_end(void) { assert_int_equal(munmap(closed, BYTES), 0); }

static struct pe_field word(const char *name, const char *text)
{
    return (struct pe_field){name, {.kind = PE_STRING, .string = text}};
}

static struct pe_field integer(const char *name, int64_t x)
{
    return (struct pe_field){name, {.kind = PE_INTEGER, .integer = x}};
}

static struct pe_field tensor(const char *name, unsigned rank, uint64_t a, uint64_t b, uint64_t c)
{
    const struct pe_tensor t = {.dtype = PE_F32, .rank = rank, .shape = {a, b, c}, .data = closed};
    return (struct pe_field){name, {.kind = PE_ARRAY, .array = t}};
}

enum { CASES = 8, FIELDS = 6 };

static size_t requests(struct pe_request out[CASES])
{
    static struct pe_field fields[CASES][FIELDS];
    const struct {
        enum pe_operation_id operation;
        struct pe_field fields[FIELDS];
    } all[CASES] = {
        {PE_ROTATE, {word("scheme", "rope"), tensor("q", 3, 2, 8, 16), tensor("k", 3, 2, 8, 16)}},
        {PE_ENCODE, {word("scheme", "learned"), tensor("table", 2, 16, 8, 0), integer("len", 4)}},
        {PE_ENCODE, {word("scheme", "sinusoidal"), tensor("x", 2, 16, 8, 0)}},
        {PE_ENCODE, {word("scheme", "t5"), tensor("table", 2, 32, 8, 0), integer("len", 4)}},
        {PE_ATTEND, {word("scheme", "alibi"), tensor("q", 3, 2, 8, 16), tensor("k", 3, 2, 8, 16)}},
        {PE_ATTEND,
         {word("scheme", "sinusoidal"), tensor("x", 2, 8, 16, 0), integer("seed", 3), integer("num_heads", 2)}},
        {PE_ATTEND,
         {word("scheme", "rope"), tensor("x", 2, 8, 16, 0), tensor("w_q", 2, 16, 16, 0), tensor("w_k", 2, 16, 16, 0),
          integer("num_heads", 2)}},
        {PE_ATTEND,
         {word("scheme", "shaw"), tensor("q", 3, 2, 8, 16), tensor("k", 3, 2, 8, 16), tensor("rel_k", 2, 9, 16, 0)}},
    };
    for (size_t i = 0; i < CASES; i++) {
        memcpy(fields[i], all[i].fields, sizeof fields[i]);
        out[i] = (struct pe_request){.operation = all[i].operation, .fields = fields[i], .dtype = PE_DTYPE_NONE};
        while (out[i].n_fields < FIELDS && fields[i][out[i].n_fields].name)
            out[i].n_fields++;
    }
    return CASES;
}

static void assert_same_bytes(const struct pe_plan *a, const struct pe_plan *b)
{
    static char x[1 << 16], y[1 << 16];
    const struct pe_output *o = pe_plan_output(a, 0);
    size_t n = (size_t)(o->n_rows * o->row_len);
    assert_true(n > 0 && n * pe_dtype_size(o->dtype) <= sizeof x);
    pe_fill(a, 0, 0, n, x);
    pe_fill(b, 0, 0, n, y);
    assert_memory_equal(x, y, n * pe_dtype_size(o->dtype));
}

/* A tensor whose memory cannot be read is checked; its numbers may be written after that. */
TEST(checking_reads_no_tensor)
{
    struct pe_request all[CASES];
    for (size_t i = 0, n = requests(all); i < n; i++) {
        struct pe_plan *halves, *whole;
        struct pe_failure err = {.detail = ""};
        set_closed(true);
        enum pe_status status = pe_plan_check(&all[i], &halves, &err);
        set_closed(false);
        if (status)
            fail_msg("request %zu: %s", i, err.detail);
        assert_int_equal(pe_plan_build(halves, &err), PE_OK);
        assert_int_equal(pe_plan_new(&all[i], &whole, &err), PE_OK);
        assert_same_bytes(halves, whole);
        pe_plan_free(halves);
        pe_plan_free(whole);
    }
}

/* ---- Which half refuses, and who should build ---- */

static enum pe_status check(const char *json, enum pe_builder *builder, enum pe_status *built)
{
    struct test_request r;
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    test_request_parse(&r, json);
    enum pe_status status = pe_plan_check(&r.request, &plan, &err);
    if (!status) {
        *builder = pe_plan_builder(plan);
        *built = pe_plan_build(plan, &err);
    }
    pe_plan_free(plan);
    test_request_drop(&r);
    return status;
}

TEST(what_is_wrong_is_refused_at_once)
{
    static const char *const wrong[] = {
        "{'scheme':'rope','len':4,'positions':[1]}",
        "{'scheme':'rope','len':4,'rotari_dim':4}",
        "{'scheme':'rope','head_dim':-2,'len':4}",
        "{'scheme':'sinusoidal','lens':[300000]}",
        "{'scheme':'rope','segments':[{'type':'text','len':300000}]}",
        "{'scheme':'rope','segments':[{'type':'text'}]}",
        "{'preset':'llama-3.1','grid':[2,1.5]}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        enum pe_builder builder;
        enum pe_status built;
        if (check(wrong[i], &builder, &built) == PE_OK)
            fail_msg("%s was not refused by the first half", wrong[i]);
    }
}

/* Rules of the scheme alone are refused by the second half. */
TEST(rules_of_the_scheme_come_second)
{
    enum pe_builder builder = PE_WORKER;
    enum pe_status built = PE_OK;
    assert_int_equal(check("{'scheme':'rope','rotary_dim':3,'head_dim':8,'len':4}", &builder, &built), PE_OK);
    assert_int_equal(built, PE_INVALID);
    assert_int_equal(builder, PE_READY);
}

/* A hundred bytes that ask for long tables are left to a worker; small requests are not. */
TEST(the_builder_is_chosen_by_what_is_asked_for)
{
    static const struct {
        const char *json;
        enum pe_builder builder;
    } cases[] = {
        {"{'scheme':'rope','len':8}", PE_READY},
        {"{'preset':'llama-3.1','len':131072}", PE_READY},
        {"{'scheme':'alibi','num_heads':32,'len':4096}", PE_READY},
        {"{'scheme':'t5','len':512,'seed':0}", PE_READY},
        {"{'scheme':'sinusoidal','lens':[3,4]}", PE_READY},
        {"{'scheme':'sinusoidal','dim':65536,'len':4}", PE_WORKER},
        {"{'scheme':'swinv2','grid':[8,8],'hidden':1024,'num_heads':1024,'seed':0}", PE_WORKER},
        {"{'scheme':'rope','lens':[200000]}", PE_WORKER},
        {"{'scheme':'rope','segments':[{'type':'text','len':200000}]}", PE_WORKER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum pe_builder builder = PE_READY;
        enum pe_status built = PE_INVALID;
        assert_int_equal(check(cases[i].json, &builder, &built), PE_OK);
        if (builder != cases[i].builder || built != PE_OK)
            fail_msg("%s: builder %d, needed %d; built with status %d", cases[i].json, builder, cases[i].builder,
                     built);
    }
}
