/* Cancelled work: planning and filling that are cancelled at the k-th check, for every k. The data that a plan has
 * stored is still right, so that other clients that fill from it get the same bytes as from a plan that was never
 * cancelled. */
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

#include <stdlib.h>
#include <string.h>

struct caller {
    long n_asked, leaves_at; /* gone from that check on; 0: never */
};

static bool is_gone(void *self)
{
    struct caller *caller = self;
    caller->n_asked++;
    return caller->leaves_at && caller->n_asked >= caller->leaves_at;
}

static const struct {
    enum pe_operation_id operation;
    const char *json;
    struct pe_slice slice;
    enum pe_reduce reduce;
} requests[] = {
    {PE_ENCODE, "{'scheme':'floater','len':9,'dim':6,'seed':1,'substeps':3}", {0}, PE_REDUCE_SAMPLE},
    {PE_ENCODE, "{'scheme':'recursive','len':9,'dim':6,'seed':1}", {0}, PE_REDUCE_SAMPLE},
    {PE_ENCODE, "{'scheme':'swinv2','grid':[5,5],'num_heads':2,'hidden':8,'seed':0}", {0}, PE_REDUCE_SAMPLE},
    {PE_ENCODE,
     "{'scheme':'sinusoidal','len':3000,'dim':8}",
     {.cuts = {{false, 0, PE_UNSET_INT, 1500}, {false, 0, PE_UNSET_INT, 4}}, .n_cuts = 2},
     PE_REDUCE_MEAN},
    {PE_ENCODE,
     "{'scheme':'sinusoidal','len':40,'dim':8}",
     {.cuts = {{false, 0, PE_UNSET_INT, 7}}, .n_cuts = 1},
     PE_REDUCE_SAMPLE},
    {PE_ATTEND,
     "{'scheme':'rope','tokens':['a','b','c','a','d'],'num_heads':2,'dim':16,'seed':0}",
     {0},
     PE_REDUCE_SAMPLE},
    {PE_ATTEND,
     "{'scheme':'transformer_xl','tokens':['a','b','c','a'],'num_heads':2,'dim':16,'seed':0}",
     {0},
     PE_REDUCE_SAMPLE},
    {PE_ATTEND,
     "{'scheme':'floater','tokens':['a','b','c','a'],'num_heads':2,'dim':16,'seed':0}",
     {0},
     PE_REDUCE_SAMPLE},
};

enum { N_REQUESTS = sizeof requests / sizeof *requests };

static enum pe_status plan(size_t i, struct test_request *r, struct pe_plan **out)
{
    struct pe_failure err;
    test_request_parse(r, requests[i].json);
    r->request.operation = requests[i].operation;
    r->request.slices = requests[i].slice.n_cuts ? &requests[i].slice : NULL;
    r->request.n_slices = requests[i].slice.n_cuts > 0;
    r->request.reduce = requests[i].reduce;
    enum pe_status status = pe_plan_new(&r->request, out, &err);
    if (status && status != PE_CANCELLED)
        fail_msg("%s: %s", requests[i].json, err.detail);
    return status;
}

static size_t fill(const struct pe_plan *p, char *dst)
{
    size_t n = 0;
    for (size_t i = 0; i < pe_plan_n_outputs(p); i++) {
        const struct pe_output *o = pe_plan_output(p, i);
        size_t count = (size_t)(o->n_rows * o->row_len);
        pe_fill(p, i, 0, count, dst + n);
        n += (count * pe_dtype_size(o->dtype) + 7) & ~(size_t)7;
    }
    return n;
}

/* Of output 0. */
static void assert_second_half(const struct pe_plan *p, const char *expected, char *got)
{
    const struct pe_output *o = pe_plan_output(p, 0);
    uint64_t first = o->n_rows / 2 * o->row_len, n = o->n_rows * o->row_len - first;
    size_t size = pe_dtype_size(o->dtype);
    pe_fill(p, 0, first, (size_t)n, got);
    assert_memory_equal(got, expected + first * size, n * size);
}

enum { ROOM = 1 << 20 };

TEST(test_filling)
{
    char *expected = calloc(1, ROOM), *got = calloc(1, ROOM);
    for (size_t i = 0; i < N_REQUESTS; i++) {
        struct test_request r;
        struct pe_plan *p = NULL;
        struct caller stays = {0};
        assert_int_equal(plan(i, &r, &p), PE_OK);
        pe_watch(is_gone, &stays);
        size_t n = fill(p, expected);
        assert_false(pe_was_cancelled());
        assert_true(n <= ROOM && stays.n_asked > 1);
        pe_plan_free(p);
        test_request_drop(&r);
        for (long k = 1; k <= stays.n_asked; k++) {
            struct caller leaves = {.leaves_at = k};
            pe_watch(NULL, NULL);
            assert_int_equal(plan(i, &r, &p), PE_OK);
            pe_watch(is_gone, &leaves);
            fill(p, got);
            assert_int_equal(leaves.n_asked, k); /* no further check, which would occur if the work went on */
            assert_true(pe_was_cancelled());
            pe_watch(NULL, NULL);
            assert_second_half(p, expected, got); /* first: from the place where the cancelled fill stopped */
            memset(got, 0, n);
            assert_int_equal(fill(p, got), n);
            assert_memory_equal(got, expected, n);
            pe_plan_free(p);
            test_request_drop(&r);
        }
    }
    free(expected);
    free(got);
}

TEST(test_planning)
{
    long n_asked = 0;
    for (size_t i = 0; i < N_REQUESTS; i++) {
        struct test_request r;
        struct pe_plan *p = NULL;
        struct caller stays = {0};
        pe_watch(is_gone, &stays);
        assert_int_equal(plan(i, &r, &p), PE_OK);
        pe_plan_free(p);
        test_request_drop(&r);
        for (long k = 1; k <= stays.n_asked; k++) {
            struct caller leaves = {.leaves_at = k};
            p = NULL;
            pe_watch(is_gone, &leaves);
            assert_int_equal(plan(i, &r, &p), PE_CANCELLED);
            assert_null(p);
            assert_int_equal(leaves.n_asked, k);
            test_request_drop(&r);
        }
        n_asked += stays.n_asked;
        pe_watch(NULL, NULL);
    }
    assert_true(n_asked > 3);
}
