/* The laws of the bias family: a map copied from a plan's stored line of distances equals the map of single pairs, in
 * any dtype, under any mask, in any pieces, whichever thread computes the line. */
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"
#include "tests/support/request.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { Q = 210, K = 190, SHIFT = 40 };

static const char *const schemes[] = {"'scheme':'alibi','num_heads':3", "'scheme':'t5','seed':1",
                                      "'scheme':'kerple','num_heads':2,'r2':0.3"};
static const char *const masks[] = {"", ",'causal':true", ",'window':17", ",'window':30,'window_right':3"};
static const enum pe_dtype dtypes[] = {PE_F32, PE_F64, PE_F16, PE_BF16};

enum { N_SCHEMES = 3, N_MASKS = 4, N_DTYPES = 4 };

static struct pe_plan *plan_of(struct test_request *r, const char *json, enum pe_dtype dtype)
{
    struct pe_plan *plan = NULL;
    struct pe_failure err;
    test_request_parse(r, json);
    r->request.dtype = dtype;
    if (pe_plan_new(&r->request, &plan, &err))
        fail_msg("%s: %s", json, err.detail);
    return plan;
}

static size_t bytes_of(const struct pe_plan *plan)
{
    const struct pe_output *output = pe_plan_output(plan, 0);
    return (size_t)(output->n_rows * output->row_len) * pe_dtype_size(output->dtype);
}

/* The whole first output. Owned. */
static char *whole(const char *json, enum pe_dtype dtype, size_t *n_bytes)
{
    struct test_request r;
    struct pe_plan *plan = plan_of(&r, json, dtype);
    *n_bytes = bytes_of(plan);
    char *out = malloc(*n_bytes);
    pe_fill(plan, 0, 0, *n_bytes / pe_dtype_size(dtype), out);
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

TEST(runs_are_like_lists)
{
    char run[256], list[4096];
    for (int i = 0; i < N_SCHEMES * N_MASKS * N_DTYPES; i++) {
        const char *scheme = schemes[i % N_SCHEMES], *mask = masks[i / N_SCHEMES % N_MASKS];
        enum pe_dtype dtype = dtypes[i / N_SCHEMES / N_MASKS];
        snprintf(run, sizeof run, "{%s%s,'q_len':%d,'k_len':%d,'q_offset':%d}", scheme, mask, Q, K, SHIFT);
        size_t used = (size_t)snprintf(list, sizeof list, "{%s%s", scheme, mask);
        used += print_list(list + used, sizeof list - used, "q_positions", SHIFT, Q);
        used += print_list(list + used, sizeof list - used, "k_positions", 0, K);
        snprintf(list + used, sizeof list - used, "}");
        size_t n, m;
        char *a = whole(run, dtype, &n), *b = whole(list, dtype, &m);
        assert_int_equal(n, m);
        assert_memory_equal(a, b, n);
        free(a);
        free(b);
    }
}

/* Keys of a mask are -inf in every row, whatever their runs; all others as without it. */
TEST(masked_keys_are_hidden)
{
    enum { QUERIES = 150, KEYS = 1100 };
    static char json[4096];
    static uint8_t seen[KEYS];
    uint32_t state = 7;
    size_t n, used = (size_t)snprintf(json, sizeof json, "{%s,'q_len':%d,'k_len':%d}", schemes[0], QUERIES, KEYS);
    char *open = whole(json, PE_F32, &n);
    used += (size_t)snprintf(json + used - 1, sizeof json - used, ",'key_mask':[") - 1;
    for (size_t j = 0; j < KEYS; j++) { /* runs of a few, and one of half of the keys */
        state = state * 1664525u + 1013904223u;
        seen[j] = (j < 300 || j > 900) && (state >> 24) % 3 != 0;
        used += (size_t)snprintf(json + used, sizeof json - used, j ? ",%d" : "%d", seen[j]);
    }
    snprintf(json + used, sizeof json - used, "]}");
    char *masked = whole(json, PE_F32, &n);
    for (size_t i = 0; i < n / sizeof(float); i++) {
        float a = ((float *)(void *)open)[i], b = ((float *)(void *)masked)[i];
        assert_true(seen[i % KEYS] ? a == b : b == -(float)INFINITY);
    }
    free(open);
    free(masked);
}

/* ---- Pieces, threads, memory ---- */

#define LARGE "{'scheme':'kerple','num_heads':4,'q_len':1200,'k_len':1500,'causal':true}"
enum { THREADS = 4, PIECE = 7777 };

struct part {
    const struct pe_plan *plan;
    size_t first; /* piece */
    char *out;
};

static void *fill_pieces(void *argument)
{
    const struct part *part = argument;
    size_t n = bytes_of(part->plan) / sizeof(float);
    for (size_t at = part->first * PIECE; at < n; at += THREADS * PIECE)
        pe_fill(part->plan, 0, at, n - at < PIECE ? n - at : PIECE, part->out + at * sizeof(float));
    return NULL;
}

TEST(threads_share_a_line)
{
    size_t n;
    char *once = whole(LARGE, PE_F32, &n), *out = malloc(n);
    for (int round = 0; round < 5; round++) {
        struct test_request r;
        struct pe_plan *plan = plan_of(&r, LARGE, PE_F32);
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

TEST(laws_of_large_maps)
{
    test_assert_laws("{'scheme':'alibi','num_heads':2,'q_len':300,'k_len':280,'window':100}");
    test_assert_laws("{'scheme':'t5','num_heads':2,'q_len':300,'k_len':280,'seed':3}");
}
