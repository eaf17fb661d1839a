/* The sink of each head, a logit without a value, from the sums of rows of probabilities. */
#include "core/diagnosis/diagnosis.h"
#include "core/diagnosis/measure/maps.h"

#include <math.h>
#include <stdlib.h>

/* A row of probabilities with the sum S, whose scores have the logarithm L of their sum of exponentials: its sink is
 * L + ln((1 - S)/S), which is known as well as S·(1 - S). */
struct sink {
    double weighted, weight; /* sums over rows */
};

static double sum_of_row(const struct pe_evidence *e, uint64_t row, double *room)
{
    double sum = 0;
    pe_evidence_read(e, 0, row, 0, (size_t)e->row_len, room);
    for (uint64_t j = 0; j < e->row_len; j++)
        sum += room[j];
    return sum;
}

/* room: [row_len]. */
static void add_row_of_sink(const struct pe_model *scores, uint64_t row, double *room, struct sink *sink)
{
    size_t n = (size_t)scores->d->evidence.row_len;
    double most = -HUGE_VAL, total = 0, sum = sum_of_row(&scores->d->evidence, row, room);
    if (!(sum > 0 && sum < 1))
        return;
    pe_model_fill(scores, 0, row, 0, n, room);
    for (size_t j = 0; j < n; j++)
        most = fmax(most, room[j]);
    for (size_t j = 0; j < n; j++)
        total += exp(room[j] - most);
    double weight = sum * (1 - sum) * sum * (1 - sum);
    if (!isfinite(most))
        return;
    sink->weighted += weight * (most + log(total) + log((1 - sum) / sum));
    sink->weight += weight;
}

/* How far the sum of a row of right probabilities may be from 1. */
static double noise_of_sum(const struct pe_diagnosis *d)
{
    return 4 * pe_evidence_noise(&d->evidence) * sqrt((double)d->evidence.row_len);
}

/* A few rows of each head, spread over its queries. */
enum { ROWS_OF_SINK = 8 };

static uint64_t row_of_sink(uint64_t first, uint64_t n, uint64_t i)
{
    return first + (n > ROWS_OF_SINK ? (i * (n - 1) + (ROWS_OF_SINK - 1) / 2) / (ROWS_OF_SINK - 1) : i);
}

/* Without memory, or where some head's rows do not show one: false. A row that sums to 1 shows that its sink is far
 * below its scores, which is as good as none. */
static bool fit_heads(const struct pe_model *scores, size_t n_heads, double *room, double *sinks)
{
    const double none = -1e4, noise = noise_of_sum(scores->d);
    uint64_t n_rows = scores->d->evidence.n_rows, n = n_rows / n_heads;
    bool is_any = false;
    for (size_t h = 0; h < n_heads && !pe_is_cancelled(); h++) {
        struct sink sink = {0, 0};
        for (uint64_t i = 0; i < ROWS_OF_SINK && i < n; i++)
            add_row_of_sink(scores, row_of_sink(h * n, n, i), room, &sink);
        double least = noise / sqrt(sink.weight), x = sink.weighted / sink.weight;
        bool is_seen = sink.weight > 0 && least < 0.5;
        sinks[h] = is_seen ? pe_shortest_decimal(x, fmin(0.5, least / (16 * fabs(x)))) : none;
        is_any |= is_seen;
    }
    return is_any;
}

bool pe_has_gaps(struct pe_diagnosis *d)
{
    const struct pe_sample *s = &d->sample;
    bool has_gap = false, may = d->evidence.kind == &pe_evidence_probs;
    double *room = may ? malloc((size_t)d->evidence.row_len * sizeof *room) : NULL;
    d->no_memory |= may && !room;
    for (size_t i = 0; room && !has_gap && i < s->n_pieces; i++) {
        double sum = s->pieces[i].col0 == 0 ? sum_of_row(&d->evidence, s->pieces[i].row, room) : 0;
        has_gap = sum > 0 && sum < 1 - noise_of_sum(d);
    }
    free(room);
    return has_gap;
}

bool pe_measure_sinks(struct pe_diagnosis *d, const struct pe_edit *edit, size_t n_heads, double *sinks)
{
    struct pe_edit changed = *edit;
    struct pe_model *model;
    changed.n_owned = 0;
    changed.transforms.stage = PE_STAGE_OTHER;
    double *room = malloc((size_t)d->evidence.row_len * sizeof *room);
    d->no_memory |= !room;
    bool is_any = room && pe_edit_model(d, &changed, &model);
    if (is_any) {
        is_any = fit_heads(model, n_heads, room, sinks);
        pe_model_free(model);
    }
    free(room);
    return is_any;
}
