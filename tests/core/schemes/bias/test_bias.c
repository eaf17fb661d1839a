/* The laws of maps: a map copied from a plan's stored line of distances equals the map of single pairs, in any dtype,
 * under any mask, whichever thread computes the line; products are rounded once. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { Q = 210, K = 190, SHIFT = 40, N_MASKS = 4 };

static const char *const schemes[] = {
    "'scheme':'alibi','num_heads':3",           "'scheme':'t5','seed':1",
    "'scheme':'kerple','num_heads':2,'r2':0.3", "'scheme':'sandwich','num_heads':2,'bar_dim':6",
    "'scheme':'fire','num_heads':2,'seed':1",   "'scheme':'shaw','max_relative':9",
    "'scheme':'deberta','position_buckets':16",
};
static const char *const masks[N_MASKS] = {"", ",'causal':true", ",'window':17", ",'window':30,'window_right':3"};
static const enum pe_dtype dtypes[] = {PE_F32, PE_F64, PE_F16, PE_BF16, PE_F8_E4M3, PE_F8_E5M2};

/* The whole first output. Owned. */
static char *whole(const char *json, enum pe_dtype dtype, size_t *n_bytes)
{
    struct test_request r;
    test_request_parse(&r, json);
    struct pe_plan *plan = test_plan_as(&r, PE_ENCODE, dtype);
    char *out = test_whole(plan, 0, n_bytes);
    pe_plan_free(plan);
    test_request_drop(&r);
    return out;
}

static size_t print_list(char *to, size_t room, const char *name, int first, int n)
{
    size_t used = (size_t)snprintf(to, room, ",'%s':[", name);
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(to + used, room - used, i ? ",%d" : "%d", first + i);
    return used + (size_t)snprintf(to + used, room - used, "]");
}

static void assert_run_is_list(const char *scheme, const char *mask, enum pe_dtype dtype)
{
    char run[256], list[4096];
    size_t n, m, used = (size_t)snprintf(list, sizeof list, "{%s%s", scheme, mask);
    snprintf(run, sizeof run, "{%s%s,'q_len':%d,'k_len':%d,'q_offset':%d}", scheme, mask, Q, K, SHIFT);
    used += print_list(list + used, sizeof list - used, "q_positions", SHIFT, Q);
    used += print_list(list + used, sizeof list - used, "k_positions", 0, K);
    snprintf(list + used, sizeof list - used, "}");
    char *a = whole(run, dtype, &n), *b = whole(list, dtype, &m);
    assert_int_equal(n, m);
    if (memcmp(a, b, n) != 0)
        fail_msg("%s differs from the same positions as lists", run);
    free(a);
    free(b);
}

/* Of rows of a table there is no mask, and one dtype. */
TEST(runs_are_like_lists)
{
    for (size_t s = 0; s < sizeof schemes / sizeof *schemes; s++)
        for (size_t m = 0; m < (s < 5 ? N_MASKS : 1); m++)
            for (size_t d = 0; d < (s < 5 ? 4 : 1); d++)
                assert_run_is_list(schemes[s], masks[m], dtypes[d]);
}

/* Keys of a mask are -inf in every row, whatever their runs; all others as without it. */
TEST(masked_keys_are_hidden)
{
    enum { QUERIES = 150, KEYS = 1100 };
    static char json[4096];
    static uint8_t seen[KEYS];
    uint32_t state = 7;
    size_t n, used = (size_t)snprintf(json, sizeof json, "{%s,'q_len':%d,'k_len':%d}", schemes[0], QUERIES, KEYS);
    float *open = (float *)(void *)whole(json, PE_F32, &n);
    used += (size_t)snprintf(json + used - 1, sizeof json - used, ",'key_mask':[") - 1;
    for (size_t j = 0; j < KEYS; j++) { /* runs of a few, and one of half of the keys */
        state = state * 1664525u + 1013904223u;
        seen[j] = (j < 300 || j > 900) && (state >> 24) % 3 != 0;
        used += (size_t)snprintf(json + used, sizeof json - used, j ? ",%d" : "%d", seen[j]);
    }
    snprintf(json + used, sizeof json - used, "]}");
    float *masked = (float *)(void *)whole(json, PE_F32, &n);
    for (size_t i = 0; i < n / sizeof *masked; i++)
        assert_true(seen[i % KEYS] ? open[i] == masked[i] : masked[i] == -(float)INFINITY);
    free(open);
    free(masked);
}

/* Every f32 is the float nearest to the exact product: of slopes that are irrational, in long double. */
TEST(products_are_rounded_once)
{
    enum { KEYS = 20000 };
    size_t n;
    float *bias =
        (float *)(void *)whole("{'scheme':'alibi','num_heads':12,'q_len':1,'k_len':20000,'q_offset':0}", PE_F32, &n);
    for (int h = 8; h < 12; h++)
        for (int j = 0; j < KEYS; j++)
            assert_true(bias[h * KEYS + j] ==
                        (float)(-powl(2.0L, -(long double)(2 * (h - 8) + 1) / 2) * (long double)j));
    free(bias);
}

/* ---- Threads ---- */

#define LARGE "{'scheme':'kerple','num_heads':4,'q_len':1200,'k_len':1500,'causal':true}"
enum { THREADS = 4, PIECE = 7777, LARGE_N = 4 * 1200 * 1500 };

struct part {
    const struct pe_plan *plan;
    size_t first; /* piece */
    float *out;
};

static void *fill_pieces(void *argument)
{
    const struct part *part = argument;
    for (size_t at = part->first * PIECE; at < LARGE_N; at += THREADS * PIECE)
        pe_fill(part->plan, 0, at, LARGE_N - at < PIECE ? LARGE_N - at : PIECE, part->out + at);
    return NULL;
}

TEST(threads_share_a_line)
{
    size_t n;
    char *once = whole(LARGE, PE_F32, &n);
    float *out = malloc(n);
    for (int round = 0; round < 5; round++) {
        struct test_request r;
        struct pe_plan *plan = test_plan(&r, LARGE);
        pthread_t threads[THREADS];
        struct part parts[THREADS];
        for (size_t i = 0; i < THREADS; i++) {
            parts[i] = (struct part){plan, i, out};
            assert_int_equal(pthread_create(&threads[i], NULL, fill_pieces, &parts[i]), 0);
        }
        for (size_t i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        assert_memory_equal(once, out, n);
        pe_plan_free(plan);
        test_request_drop(&r);
    }
    free(once);
    free(out);
}
