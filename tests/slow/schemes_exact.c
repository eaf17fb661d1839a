/* Correct rounding of whole schemes: answers of the language to requests of the main absolute and rotary schemes, in
 * every narrow dtype, against mpmath's frequencies, 128-bit phases and the C library's long double. Argument: how many
 * values of each scheme and dtype (default 10^8). A minute or so for each scheme. */
#include "api/api.h"
#include "core/numeric/numeric.h"
#include "tests/support/wave_truth.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct scheme_column {
    uint64_t turns[2];
    int quarter;
};
#include "scheme_frequencies.h" /* made from the formulas of tests/truth when this is built */

enum { N_TABLES = sizeof scheme_tables / sizeof *scheme_tables, ROWS = 512, BODY_MAX = 8192 };

static const char *const dtypes[] = {"f32", "f16", "bf16"};
static char *answers[3]; /* of the three dtypes */

static const struct api_host host = {.max_body = 1 << 20, .max_answer = 1 << 30, .commit = "slow"};

/* The bytes of the one tensor of the answer; freed with free. */
static char *ask(const struct scheme_table *table, int64_t start, const char *dtype)
{
    char body[BODY_MAX];
    int n = snprintf(body, sizeof body, "{%s,\"len\":%d,\"offset\":%" PRId64 ",\"dtype\":\"%s\",\"format\":\"raw\"}",
                     table->request, ROWS, start, dtype);
    struct api_call call = {.method = "POST", .path = "/encode", .body = body, .body_bytes = (size_t)n};
    struct api_reply *reply = api_answer(&host, &call);
    char *bytes = aligned_alloc(64, (size_t)(reply->body->n_pieces * reply->body->piece_max + 63) & ~(size_t)63),
         *at = bytes;
    for (uint64_t i = 0; i < reply->body->n_pieces; i++)
        at += api_reply_piece(reply, i, at);
    if (reply->status != 200) {
        printf("%s: refused: %.*s\n", table->request, (int)(at - bytes), bytes);
        exit(1);
    }
    api_reply_free(reply);
    return bytes;
}

/* What value (i, j) must be, times the factor; the sines of a table that turns backwards change their sign. */
static long double truth_at(const struct scheme_table *table, size_t i, size_t j, int64_t start)
{
    const struct scheme_column *column = &table->columns[j];
    long double v = wave_truth(column->turns, start + (int64_t)i, column->quarter);
    return (table->backwards && column->quarter == 0 ? -v : v) * (long double)table->factor;
}

static bool is_right(size_t at, double odd)
{
    return ((const float *)(void *)answers[0])[at] == (float)odd &&
           ((const uint16_t *)(void *)answers[1])[at] == pe_f16_round(odd) &&
           ((const uint16_t *)(void *)answers[2])[at] == pe_bf16_round(odd);
}

static void judge(const struct scheme_table *table, int64_t start, uint64_t *passed, uint64_t *failed)
{
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < table->n; j++) {
            double odd;
            if (wave_judge(truth_at(table, i, j, start), &odd))
                *(is_right(i * table->n + j, odd == 0 ? 0 : odd) ? passed : failed) += 1;
        }
}

static void check(const struct scheme_table *table, uint64_t wanted, uint64_t *passed, uint64_t *failed)
{
    uint64_t seed = 42;
    for (uint64_t round = 0; *passed + *failed < wanted; round++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int64_t start = (int64_t)(seed >> (63 - round % 41)); /* of every size up to 2^40 */
        start = (start < (1LL << 40) - ROWS ? start : 0) * (round % 5 == 4 ? -1 : 1);
        pe_kernels_use((enum pe_isa)(round % PE_N_ISAS));
        for (int d = 0; d < 3; d++)
            answers[d] = ask(table, start, dtypes[d]);
        judge(table, start, passed, failed);
        for (int d = 0; d < 3; d++)
            free(answers[d]);
    }
}

int main(int argc, char **argv)
{
    uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000000, all_passed = 0, all_failed = 0;
    api_setup();
    for (size_t t = 0; t < N_TABLES; t++) {
        uint64_t passed = 0, failed = 0;
        check(&scheme_tables[t], wanted, &passed, &failed);
        printf("%.60s…: %" PRIu64 " right, %" PRIu64 " wrong\n", scheme_tables[t].request, passed, failed);
        fflush(stdout);
        all_passed += passed;
        all_failed += failed;
    }
    printf("undecided in double-double: %" PRIu64 "\n", pe_undecided_count());
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", all_passed, all_failed);
    return all_failed > 0;
}
