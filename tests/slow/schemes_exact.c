/* Correct rounding of whole schemes: answers of the language to requests of the main absolute and rotary schemes, in
 * every narrow dtype, as runs and as lists of positions in no order, by every instruction set, against mpmath's
 * frequencies, 128-bit phases and the C library's long double. Argument: how many values of each scheme and dtype
 * (default 10^8). A minute or so for each scheme. */
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

enum { N_TABLES = sizeof scheme_tables / sizeof *scheme_tables, ROWS = 512, BODY_MAX = 1 << 14 };

static const char *const dtypes[] = {"f32", "f16", "bf16"};
static char *answers[3]; /* of the three dtypes */

static const struct api_host host = {.max_body = 1 << 20, .max_answer = 1 << 30, .max_work = 1e12, .commit = "slow"};

/* Rows begin at start; those of a list go from the last to the first. */
struct rows {
    int64_t start;
    bool is_list;
};

static int64_t position_at(struct rows rows, size_t i)
{
    return rows.start + (int64_t)(rows.is_list ? ROWS - 1 - i : i);
}

static size_t print_rows(char *to, size_t room, struct rows rows)
{
    if (!rows.is_list)
        return (size_t)snprintf(to, room, "\"len\":%d,\"offset\":%" PRId64, ROWS, rows.start);
    size_t n = (size_t)snprintf(to, room, "\"positions\":");
    for (size_t i = 0; i < ROWS; i++)
        n += (size_t)snprintf(to + n, room - n, "%c%" PRId64, i ? ',' : '[', position_at(rows, i));
    return n + (size_t)snprintf(to + n, room - n, "]");
}

/* The bytes of the one tensor of the answer; freed with free. */
static char *ask(const struct scheme_table *table, struct rows rows, const char *dtype)
{
    char body[BODY_MAX];
    size_t n = (size_t)snprintf(body, sizeof body, "{%s,", table->request);
    n += print_rows(body + n, sizeof body - n, rows);
    n += (size_t)snprintf(body + n, sizeof body - n, ",\"dtype\":\"%s\",\"format\":\"raw\"}", dtype);
    struct api_call call = {.method = "POST", .path = "/encode", .body = body, .body_bytes = n};
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
static long double truth_at(const struct scheme_table *table, size_t j, int64_t position)
{
    const struct scheme_column *column = &table->columns[j];
    long double v = wave_truth(column->turns, position, column->quarter);
    return (table->backwards && column->quarter == 0 ? -v : v) * (long double)table->factor;
}

static bool is_right(size_t at, double odd)
{
    return ((const float *)(void *)answers[0])[at] == (float)odd &&
           ((const uint16_t *)(void *)answers[1])[at] == pe_bits(PE_F16, odd) &&
           ((const uint16_t *)(void *)answers[2])[at] == pe_bits(PE_BF16, odd);
}

static void judge(const struct scheme_table *table, struct rows rows, uint64_t *passed, uint64_t *failed)
{
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < table->n; j++) {
            double odd;
            if (wave_judge(truth_at(table, j, position_at(rows, i)), &odd))
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
        struct rows rows = {start, round % 2};
        pe_kernels_use((enum pe_isa)(round % PE_N_ISAS));
        for (int d = 0; d < 3; d++)
            answers[d] = ask(table, rows, dtypes[d]);
        judge(table, rows, passed, failed);
        for (int d = 0; d < 3; d++)
            free(answers[d]);
    }
}

int main(int argc, char **argv)
{
    uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000000, all_passed = 0, all_failed = 0;
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
