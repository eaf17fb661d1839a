/* CPU of small requests that are computed: api_answer and all pieces, without a server around them.
 *
 *   bench_small                 nanoseconds of each request, median of rounds
 *   bench_small ROW N           asks one N times, for a profiler */
#include "api/api.h"
#include "tests/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *name, *method, *query, *body;
};

static const struct row rows[] = {
    {"post", "POST", "",
     "{\"scheme\": \"rope\", \"head_dim\": 8, \"len\": 1, \"base\": 500000.0, \"layout\": \"half\", \"dtype\": "
     "\"f32\", \"digits\": 6, \"outputs\": [\"cos\", \"sin\"], \"format\": \"json\"}"},
    {"get", "GET", "scheme=sinusoidal&dim=4&len=1", ""},
    {"get_16", "GET", "scheme=sinusoidal&dim=8&len=16", ""},
    {"post_16", "POST", "", "{\"scheme\":\"rope\",\"head_dim\":8,\"len\":16}"},
    {"post_16_64", "POST", "", "{\"scheme\":\"rope\",\"len\":16}"},
    {"post_raw", "POST", "", "{\"scheme\":\"rope\",\"head_dim\":8,\"len\":16,\"format\":\"raw\"}"},
    {"post_alibi", "POST", "", "{\"scheme\":\"alibi\",\"len\":4,\"outputs\":[\"bias\"]}"},
};

enum { N_ROWS = sizeof rows / sizeof rows[0], ROUNDS = 15, REPEATS = 3000 };

static size_t ask(const struct row *row, char *to)
{
    const struct api_host host = {
        .max_body = 1 << 20, .max_answer = 1 << 30, .max_pictures = 1 << 20, .max_work = 1 << 30};
    struct api_call call = {.method = row->method,
                            .path = "/encode",
                            .query = row->query,
                            .content_type = *row->body ? "application/json" : NULL,
                            .body = *row->body ? row->body : NULL,
                            .body_bytes = strlen(row->body),
                            .must_not_block = true};
    struct api_reply *reply = api_answer(&host, &call);
    if (!reply || reply->status != 200) {
        fprintf(stderr, "%s is refused\n", row->name);
        exit(1);
    }
    size_t n = 0;
    for (uint64_t i = 0; i < reply->body->n_pieces; i++)
        n += api_reply_piece(reply, i, to + n);
    api_reply_free(reply);
    return n;
}

static double took(const struct row *row, char *to)
{
    double begun = seconds();
    for (int i = 0; i < REPEATS; i++)
        ask(row, to);
    return (seconds() - begun) / REPEATS * 1e9;
}

int main(int argc, char **argv)
{
    _Alignas(64) static char to[1 << 20];
    static double times[N_ROWS][ROUNDS];
    api_setup();
    for (size_t i = 0; argc == 3 && i < N_ROWS; i++)
        for (long n = atol(argv[2]); strcmp(rows[i].name, argv[1]) == 0 && n > 0; n--)
            ask(&rows[i], to);
    if (argc == 3)
        return 0;
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < N_ROWS; i++)
            times[i][round] = took(&rows[i], to);
    for (size_t i = 0; i < N_ROWS; i++)
        printf("%-12s %6zu B %8.0f ns\n", rows[i].name, ask(&rows[i], to), median(times[i], ROUNDS));
    return 0;
}
