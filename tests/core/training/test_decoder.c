/* The decoder: its gradients against central differences, in f64, for every scheme that is trained; f32 against f64;
 * rows that may not see what follows; a batch against its sequences one by one. */
#include "core/training/training.h"
#include "tests/support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = 3, LENGTH = 21, ROWS = SEQUENCES * LENGTH };

static const char *const schemes[] = {"none", "sinusoidal", "learned", "rope", "alibi", "t5", "kerple", "sandwich"};

struct setup {
    struct pe_field fields[1];
    struct pe_trained_config config;
    struct pe_places places, places_f32;
    struct pe_parameters parameters;
    struct pe_task task;
    struct pe_decoder_f64 *decoder;
    uint8_t tokens[SEQUENCES * (LENGTH + 1)];
    struct pe_batch batch;
    double *values, *gradients;
};

static void set_up(struct setup *s, const char *scheme)
{
    struct pe_failure err;
    memset(s, 0, sizeof *s);
    s->fields[0] = (struct pe_field){.name = "scheme", .value = {.kind = PE_STRING, .string = scheme}};
    s->config = (struct pe_trained_config){.fields = s->fields, .n_fields = 1, .pointer = "/configs/0"};
    assert_int_equal(pe_trained_config_check(&s->config, &err), PE_OK);
    assert_int_equal(pe_places_init(&s->places, &s->config, LENGTH + 4, PE_F64, NULL, &err), PE_OK);
    assert_int_equal(pe_places_init(&s->places_f32, &s->config, LENGTH + 4, PE_F32, NULL, &err), PE_OK);
    assert_int_equal(
        pe_parameters_init(&s->parameters, s->config.scheme->learned, LENGTH + 4, s->config.scheme->token_std, 3, &err),
        PE_OK);
    pe_task_init(&s->task, PE_TASK_LOCAL, 3);
    pe_task_sequences(&s->task, PE_TASK_TRAIN, 5, SEQUENCES, LENGTH, s->tokens);
    s->batch = (struct pe_batch){SEQUENCES, LENGTH, s->tokens};
    s->decoder = pe_decoder_new_f64(ROWS, LENGTH + 4, true);
    size_t n = s->parameters.at.n;
    s->values = malloc(n * sizeof *s->values);
    s->gradients = malloc(n * sizeof *s->gradients);
    assert_true(s->decoder && s->values && s->gradients);
    for (size_t i = 0; i < n; i++) /* no parameter at a special value, as gains of 1 and biases of 0 are */
        s->values[i] = (double)s->parameters.values[i] + 0.05 * sin(0.7 * (double)i);
}

static void tear_down(struct setup *s)
{
    pe_places_drop(&s->places);
    pe_places_drop(&s->places_f32);
    pe_parameters_drop(&s->parameters);
    pe_decoder_free_f64(s->decoder);
    free(s->values);
    free(s->gradients);
}

static double loss_of(struct setup *s)
{
    double losses[ROWS], sum = 0;
    pe_decoder_forward_f64(s->decoder, &s->parameters.at, s->values, &s->places, &s->batch, losses);
    for (size_t i = 0; i < ROWS; i++)
        sum += losses[i];
    return sum / ROWS;
}

/* (f(x + h) - f(x - h)) / 2h, whose error is about h²·f''' / 6 + 1e-16 / h. */
static double difference_at(struct setup *s, size_t i)
{
    const double h = 1e-5, x = s->values[i];
    s->values[i] = x + h;
    double above = loss_of(s);
    s->values[i] = x - h;
    double below = loss_of(s);
    s->values[i] = x;
    return (above - below) / (2 * h);
}

/* A bias of keys moves all scores of a row alike, so its gradient is 0, but for rounding. */
static bool has_no_gradient(const struct pe_parameters_at *at, size_t i)
{
    for (size_t l = 0; l < PE_TRAIN_LAYERS; l++)
        if (i - (at->layers[l].b_qkv + PE_TRAIN_WIDTH) < PE_TRAIN_WIDTH)
            return true;
    return false;
}

/* Some of every tensor: every 61st parameter, and the ends. */
static void check_gradients(const char *scheme)
{
    struct setup s;
    set_up(&s, scheme);
    loss_of(&s);
    pe_decoder_backward_f64(s.decoder, &s.parameters.at, s.values, &s.places, &s.batch, s.gradients);
    size_t n = s.parameters.at.n, n_zero = 0;
    for (size_t i = 0; i < n; i += i % 4 ? 1 : 58) {
        double expected = difference_at(&s, i);
        n_zero += s.gradients[i] == 0 && !has_no_gradient(&s.parameters.at, i);
        if (!(fabs(s.gradients[i] - expected) < 1e-8))
            fail_msg("%s, parameter %zu: gradient %.12g, central difference %.12g", scheme, i, s.gradients[i],
                     expected);
    }
    if (s.config.scheme->learned == PE_LEARNS_NOTHING)
        assert_int_equal(n_zero, 0);
    tear_down(&s);
}

TEST(test_gradients)
{
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        check_gradients(schemes[i]);
}

/* Rows of a learned table beyond the sequences, and buckets of distances that do not occur, have none. */
TEST(test_what_is_not_used_has_no_gradient)
{
    struct setup s;
    set_up(&s, "learned");
    loss_of(&s);
    pe_decoder_backward_f64(s.decoder, &s.parameters.at, s.values, &s.places, &s.batch, s.gradients);
    const double *pos = s.gradients + s.parameters.at.extra;
    for (size_t i = 0; i < LENGTH + 4; i++)
        for (size_t c = 0; c < PE_TRAIN_WIDTH; c++)
            assert_true(i < LENGTH ? pos[i * PE_TRAIN_WIDTH + c] != 0 : pos[i * PE_TRAIN_WIDTH + c] == 0);
    tear_down(&s);
}

TEST(test_f32_follows_f64)
{
    for (size_t k = 0; k < sizeof schemes / sizeof *schemes; k++) {
        struct setup s;
        float losses_f32[ROWS];
        double losses[ROWS];
        set_up(&s, schemes[k]);
        size_t n = s.parameters.at.n;
        struct pe_decoder_f32 *decoder = pe_decoder_new_f32(ROWS, LENGTH + 4, true);
        float *gradients = malloc(n * sizeof *gradients);
        for (size_t i = 0; i < n; i++)
            s.parameters.values[i] = (float)s.values[i];
        pe_decoder_forward_f64(s.decoder, &s.parameters.at, s.values, &s.places, &s.batch, losses);
        pe_decoder_backward_f64(s.decoder, &s.parameters.at, s.values, &s.places, &s.batch, s.gradients);
        pe_decoder_forward_f32(decoder, &s.parameters.at, s.parameters.values, &s.places_f32, &s.batch, losses_f32);
        pe_decoder_backward_f32(decoder, &s.parameters.at, s.parameters.values, &s.places_f32, &s.batch, gradients);
        for (size_t i = 0; i < ROWS; i++)
            assert_true(fabs((double)losses_f32[i] - losses[i]) < 1e-5);
        for (size_t i = 0; i < n; i++)
            assert_true(fabs((double)gradients[i] - s.gradients[i]) < 2e-6);
        free(gradients);
        pe_decoder_free_f32(decoder);
        tear_down(&s);
    }
}

/* The losses before a token do not depend on it, and a batch is its sequences. */
TEST(test_causal_and_independent)
{
    for (size_t k = 0; k < sizeof schemes / sizeof *schemes; k++) {
        struct setup s;
        double all[ROWS], one[LENGTH], changed[ROWS];
        set_up(&s, schemes[k]);
        pe_decoder_forward_f64(s.decoder, &s.parameters.at, s.values, &s.places, &s.batch, all);
        struct pe_batch second = {1, LENGTH, s.tokens + (LENGTH + 1)};
        pe_decoder_forward_f64(s.decoder, &s.parameters.at, s.values, &s.places, &second, one);
        for (size_t i = 0; i < LENGTH; i++)
            assert_true(fabs(one[i] - all[LENGTH + i]) < 1e-12);
        s.tokens[LENGTH + 1 + 10] ^= 1;
        pe_decoder_forward_f64(s.decoder, &s.parameters.at, s.values, &s.places, &s.batch, changed);
        for (size_t i = 0; i < ROWS; i++) {
            bool may_change = i >= LENGTH + 9 && i < 2 * LENGTH; /* it is the next token of place 9 */
            assert_true(may_change ? changed[i] != all[i] : fabs(changed[i] - all[i]) < 1e-12);
        }
        tear_down(&s);
    }
}

/* A decoder without room for gradients gives the same losses. */
TEST(test_room_may_be_shared)
{
    struct setup s;
    double all[ROWS], again[ROWS];
    set_up(&s, "rope");
    struct pe_decoder_f64 *small = pe_decoder_new_f64(ROWS, LENGTH, false);
    pe_decoder_forward_f64(s.decoder, &s.parameters.at, s.values, &s.places, &s.batch, all);
    pe_decoder_forward_f64(small, &s.parameters.at, s.values, &s.places, &s.batch, again);
    assert_memory_equal(all, again, sizeof all);
    pe_decoder_free_f64(small);
    tear_down(&s);
}
