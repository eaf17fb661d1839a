/* Shares of clients: the rule itself, against a plain account beside it, alone and from several threads. */
#include "server/memory/memory.h"
#include "tests/support/cmocka.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* How many streams a client gets, one after the other. */
static uint64_t take_all_streams(uint64_t client)
{
    uint64_t n = 0;
    while (admission_begin_stream(client))
        n++;
    return n;
}

static void end_streams(uint64_t client, uint64_t n)
{
    while (n--)
        admission_end_stream(client);
}

TEST(one_client_gets_four_fifths)
{
    static const struct {
        uint64_t max, most;
    } cases[] = {{1, 1}, {2, 1}, {3, 2}, {4, 3}, {5, 4}, {8, 6}, {256, 204}, {1000, 800}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        admission_setup(UINT64_MAX, cases[i].max);
        assert_int_equal(take_all_streams(1), cases[i].most);
        assert_int_equal(shares_held(SHARE_STREAMS, 1), cases[i].most);
        end_streams(1, cases[i].most);
        assert_int_equal(shares_held(SHARE_STREAMS, 1), 0);
    }
}

/* Each further client gets something, and no more than four times what it leaves. */
TEST(many_clients_leave_room_for_one_more)
{
    enum { N = 20 };
    uint64_t got[N], sum = 0;
    admission_setup(UINT64_MAX, 256);
    for (uint64_t i = 0; i < N && sum < 256; i++) {
        got[i] = take_all_streams(i + 1);
        sum += got[i];
        assert_true(got[i] >= 1);
        assert_true(got[i] == 1 || got[i] <= 4 * (256 - sum));
    }
    assert_int_equal(sum, 256);
    struct admission_refusal refusal = admission_refuse_stream(77);
    assert_int_equal(refusal.status, 429);
    assert_non_null(strstr(refusal.detail, "256 answers"));
    end_streams(1, got[0]);
    refusal = admission_refuse_stream(2);
    assert_non_null(strstr(refusal.detail, "four times"));
    for (uint64_t i = 1; sum > got[0]; sum -= got[i], i++)
        end_streams(i + 1, got[i]);
}

/* What may still be taken is what can be taken. */
TEST(what_is_left)
{
    for (uint64_t held = 0; held < 40; held++)
        for (uint64_t n_free = 0; n_free < 60; n_free++) {
            if (held && !shares_take(SHARE_MEMORY, 5, held, UINT64_MAX))
                fail();
            uint64_t left = shares_left(SHARE_MEMORY, 5, n_free);
            assert_true(left <= n_free);
            if (left > 0) {
                assert_true(shares_take(SHARE_MEMORY, 5, left, n_free - left));
                shares_give(SHARE_MEMORY, 5, left);
            }
            if (left < n_free)
                assert_false(shares_take(SHARE_MEMORY, 5, left + 1, n_free - left - 1));
            shares_give(SHARE_MEMORY, 5, held);
        }
    assert_int_equal(shares_left(SHARE_MEMORY, 0, 100), 100);
    assert_true(shares_take(SHARE_MEMORY, 0, 100, 0)); /* the server's own */
    shares_give(SHARE_MEMORY, 0, 100);
}

/* Many clients, colliding in their buckets, against plain sums. */
TEST(holdings_are_sums)
{
    enum { N_CLIENTS = 20000, N_STEPS = 200000 };
    uint64_t *sums = calloc(N_CLIENTS, sizeof *sums), seed = 12345;
    assert_non_null(sums);
    for (size_t i = 0; i < N_STEPS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t client = (seed >> 33) % N_CLIENTS, n = (seed >> 20) % 1000;
        if (seed >> 63 && sums[client] >= n)
            shares_give(SHARE_PICTURES, client + 1, n), sums[client] -= n;
        else if (shares_take(SHARE_PICTURES, client + 1, n, UINT64_MAX))
            sums[client] += n;
    }
    for (uint64_t i = 0; i < N_CLIENTS; i++) {
        assert_int_equal(shares_held(SHARE_PICTURES, i + 1), sums[i]);
        shares_give(SHARE_PICTURES, i + 1, sums[i]);
        assert_int_equal(shares_held(SHARE_PICTURES, i + 1), 0);
    }
    free(sums);
}

/* What several requests of a client share counts once, for each client that has any use of it. */
TEST(objects_count_once)
{
    enum { N = 3000 };
    static char objects[N];
    for (uint64_t client = 1; client <= 2; client++)
        for (int uses = 0; uses < 3; uses++)
            for (size_t i = 0; i < N; i++)
                assert_true(shares_take_object(SHARE_MEMORY, client, &objects[i], i, UINT64_MAX));
    assert_true(shares_take_object(SHARE_PICTURES, 1, &objects[5], 40, UINT64_MAX));
    assert_true(shares_take_object(SHARE_MEMORY, 1, &objects[5], 5, 0)); /* it has it already */
    assert_false(shares_take_object(SHARE_MEMORY, 1, objects + N, 1, 0));
    shares_give_object(SHARE_MEMORY, 1, objects + N); /* which it has not got */
    shares_give_object(SHARE_MEMORY, 1, &objects[5]);
    for (uint64_t client = 1; client <= 2; client++) {
        assert_int_equal(shares_held(SHARE_MEMORY, client), N * (N - 1) / 2);
        for (int uses = 0; uses < 3; uses++)
            for (size_t i = 0; i < N; i++) {
                assert_true(i < 7 || uses < 2 || shares_held(SHARE_MEMORY, client) > 0);
                shares_give_object(SHARE_MEMORY, client, &objects[i]);
            }
        assert_int_equal(shares_held(SHARE_MEMORY, client), 0);
    }
    assert_int_equal(shares_held(SHARE_PICTURES, 1), 40);
    shares_give_object(SHARE_PICTURES, 1, &objects[5]);
    assert_int_equal(shares_held(SHARE_PICTURES, 1), 0);
}

static void *take_and_give(void *self)
{
    uint64_t client = 1 + (uint64_t)(uintptr_t)self % 3;
    for (int i = 0; i < 20000; i++) {
        if (admission_take_for(client, 100))
            admission_give_for(client, 100);
        if (admission_take_body(client, 70))
            admission_give_body(client, 70);
        if (admission_begin_stream(client))
            admission_end_stream(client);
    }
    return NULL;
}

TEST(all_is_given_back_by_many_threads)
{
    enum { N = 6 };
    pthread_t threads[N];
    admission_setup(1000, 5);
    for (uintptr_t i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, (void *)i), 0);
    for (size_t i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(admission_memory(), 0);
    assert_int_equal(take_all_streams(1), 4);
    end_streams(1, 4);
    assert_true(admission_take_for(1, 800));
    assert_false(admission_take_for(1, 1));
    assert_true(admission_take_for(2, 160)); /* four fifths of the rest */
    assert_false(admission_take_for(2, 1));
    assert_true(admission_take(40)); /* nobody's: planning, small bodies */
    admission_give(40);
    admission_give_for(1, 800);
    admission_give_for(2, 160);
    assert_int_equal(admission_memory(), 0);
}
