/* The tasks: the generator, the rules, and the best predictor's loss against its closed forms. */
#include "core/training/training.h"
#include "tests/support/cmocka.h"

#include <math.h>

/* The generator, written again from its description: SplitMix64 over FNV-1a of the name. */
static double uniform(uint64_t seed, const char *name, uint64_t i)
{
    const uint64_t golden = 0x9E3779B97F4A7C15;
    uint64_t h = 0xCBF29CE484222325;
    for (const char *c = name; *c; c++)
        h = (h ^ (uint64_t)(unsigned char)*c) * 0x100000001B3;
    uint64_t z = (seed * golden ^ h) + (i + 1) * golden;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    z ^= z >> 31;
    return ((double)(z >> 11) + 0.5) / 9007199254740992.0;
}

static void expect_sequence(enum pe_task_kind kind, const char *token, const char *coin, uint64_t seed, uint64_t s,
                            size_t n, uint8_t *x)
{
    for (size_t j = 0; j <= n; j++) {
        uint64_t at = s * (n + 1) + j;
        x[j] = (uint8_t)(8 * uniform(seed, token, at));
        if (uniform(seed, coin, at) >= 0.8)
            continue;
        if (kind == PE_TASK_LOCAL && j >= 2)
            x[j] = (uint8_t)(8 * uniform(seed, "table", (uint64_t)(8 * x[j - 2] + x[j - 1])));
        if (kind == PE_TASK_LAG && j >= 8)
            x[j] = x[j - 8];
    }
}

TEST(test_sequences)
{
    enum { N = 40, FIRST = 11, COUNT = 3 };
    for (int kind = PE_TASK_LOCAL; kind <= PE_TASK_LAG; kind++)
        for (int part = PE_TASK_TRAIN; part <= PE_TASK_EVAL; part++) {
            struct pe_task task;
            uint8_t tokens[COUNT * (N + 1)], expected[N + 1];
            pe_task_init(&task, (enum pe_task_kind)kind, 7);
            pe_task_sequences(&task, (enum pe_task_part)part, FIRST, COUNT, N, tokens);
            for (size_t s = 0; s < COUNT; s++) {
                expect_sequence((enum pe_task_kind)kind, part == PE_TASK_TRAIN ? "train.token" : "eval.token",
                                part == PE_TASK_TRAIN ? "train.coin" : "eval.coin", 7, FIRST + s, N, expected);
                assert_memory_equal(tokens + s * (N + 1), expected, N + 1);
            }
        }
}

/* 0.8 + 0.2/8 for what the rule says, 0.2/8 for each other token, 1/8 while it says nothing. */
TEST(test_best_predictor)
{
    struct pe_task lag, local;
    uint8_t x[12] = {0, 1, 2, 3, 4, 5, 6, 7, 0, 5, 2, 3};
    pe_task_init(&lag, PE_TASK_LAG, 0);
    for (size_t i = 0; i < 7; i++)
        assert_true(fabs(pe_task_bayes(&lag, x, i) - log(8)) < 1e-15);
    assert_true(fabs(pe_task_bayes(&lag, x, 7) + log(0.825)) < 1e-15); /* 0 repeats 0 */
    assert_true(fabs(pe_task_bayes(&lag, x, 8) + log(0.025)) < 1e-14); /* 5 does not repeat 1 */
    pe_task_init(&local, PE_TASK_LOCAL, 0);
    assert_true(fabs(pe_task_bayes(&local, x, 0) - log(8)) < 1e-15);
    x[2] = local.table[x[0]][x[1]];
    assert_true(fabs(pe_task_bayes(&local, x, 1) + log(0.825)) < 1e-15);
    x[2] ^= 1;
    assert_true(fabs(pe_task_bayes(&local, x, 1) + log(0.025)) < 1e-14);
}

/* Its mean over many tokens is the entropy of the task: -.825 ln .825 - 7·.025 ln .025 = .8043. */
TEST(test_floor)
{
    enum { N = 500, COUNT = 400 };
    static uint8_t tokens[COUNT * (N + 1)];
    struct pe_task task;
    double sum = 0, entropy = -0.825 * log(0.825) - 7 * 0.025 * log(0.025);
    pe_task_init(&task, PE_TASK_LAG, 1);
    pe_task_sequences(&task, PE_TASK_EVAL, 0, COUNT, N, tokens);
    for (size_t s = 0; s < COUNT; s++)
        for (size_t i = 7; i < N; i++)
            sum += pe_task_bayes(&task, tokens + s * (N + 1), i);
    assert_true(fabs(sum / (COUNT * (N - 7.0)) - entropy) < 0.01);
}
