/* The table of parameters, and their first values. */
#include "core/training/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { D = PE_TRAIN_WIDTH, F = PE_TRAIN_INNER, V = PE_TRAIN_VOCABULARY };

enum first { ZEROS, ONES, DRAWN, DRAWN_MATRIX };

/* A tensor of the decoder. */
struct row {
    const char *name;
    size_t place; /* offset of its beginning within struct pe_layer_at, or pe_parameters_at */
    size_t rows, cols;
    enum first first;
    double std; /* of DRAWN; 0: that of the scheme's tokens */
};

#define AT(member) offsetof(struct pe_parameters_at, member)
#define IN(member) offsetof(struct pe_layer_at, member)

static const struct row before[] = {{"tok", AT(tok), V, D, DRAWN, 0}};
static const struct row layer[] = {
    {"norm_1", IN(norm_1), 1, D, ONES, 0},           {"norm_1_bias", IN(norm_1_bias), 1, D, ZEROS, 0},
    {"w_qkv", IN(w_qkv), 3 * D, D, DRAWN_MATRIX, 0}, {"b_qkv", IN(b_qkv), 1, 3 * D, ZEROS, 0},
    {"w_o", IN(w_o), D, D, DRAWN_MATRIX, 0},         {"b_o", IN(b_o), 1, D, ZEROS, 0},
    {"norm_2", IN(norm_2), 1, D, ONES, 0},           {"norm_2_bias", IN(norm_2_bias), 1, D, ZEROS, 0},
    {"w_1", IN(w_1), F, D, DRAWN_MATRIX, 0},         {"b_1", IN(b_1), 1, F, ZEROS, 0},
    {"w_2", IN(w_2), D, F, DRAWN_MATRIX, 0},         {"b_2", IN(b_2), 1, D, ZEROS, 0},
};
static const struct row after[] = {
    {"norm", AT(norm), 1, D, ONES, 0},
    {"norm_bias", AT(norm_bias), 1, D, ZEROS, 0},
    {"w_out", AT(w_out), V, D, DRAWN_MATRIX, 0},
    {"b_out", AT(b_out), 1, V, ZEROS, 0},
};

#define N(rows) (sizeof(rows) / sizeof *(rows))

/* Visits every tensor in order, first to count, then to fill. */
struct walk {
    struct pe_parameters *to;
    int64_t seed;
    double token_std;
    size_t n;
    bool fills;
};

static void visit(struct walk *walk, const struct row *row, void *base, const char *name)
{
    *(size_t *)((char *)base + row->place) = walk->n;
    if (walk->fills) {
        size_t n = row->rows * row->cols;
        float *values = walk->to->values + walk->n;
        double drawn = row->std > 0 ? row->std : walk->token_std;
        double std = row->first == DRAWN_MATRIX ? 1 / sqrt(3.0 * (double)row->cols) : drawn;
        for (size_t i = 0; i < n; i++) {
            values[i] = row->first == ONES ? 1 : 0;
            walk->to->decays[walk->n + i] = row->first == DRAWN_MATRIX;
        }
        if (row->first == DRAWN || row->first == DRAWN_MATRIX)
            pe_seed_fill(walk->seed, name, std, 0, n, values);
    }
    walk->n += row->rows * row->cols;
}

static void visit_layer(struct walk *walk, size_t i)
{
    for (size_t r = 0; r < N(layer); r++) {
        char name[24];
        snprintf(name, sizeof name, "%zu.%s", i, layer[r].name);
        visit(walk, &layer[r], &walk->to->at.layers[i], name);
    }
}

static void visit_all(struct walk *walk, enum pe_learned learned, size_t n_positions)
{
    walk->n = 0;
    for (size_t r = 0; r < N(before); r++)
        visit(walk, &before[r], &walk->to->at, before[r].name);
    for (size_t i = 0; i < PE_TRAIN_LAYERS; i++)
        visit_layer(walk, i);
    for (size_t r = 0; r < N(after); r++)
        visit(walk, &after[r], &walk->to->at, after[r].name);
    const struct row positions = {"pos", AT(extra), n_positions, D, DRAWN, 0.02};
    const struct row buckets = {"rel", AT(extra), PE_TRAIN_BUCKETS, PE_TRAIN_HEADS, DRAWN, 0.02};
    walk->to->at.n_fixed = walk->to->at.extra = walk->n;
    if (learned == PE_LEARNS_POSITIONS)
        visit(walk, &positions, &walk->to->at, positions.name);
    if (learned == PE_LEARNS_BUCKETS)
        visit(walk, &buckets, &walk->to->at, buckets.name);
    walk->to->at.n = walk->n;
}

enum pe_status pe_parameters_init(struct pe_parameters *parameters, enum pe_learned learned, size_t n_positions,
                                  double token_std, int64_t seed, struct pe_failure *err)
{
    *parameters = (struct pe_parameters){0};
    struct walk walk = {.to = parameters, .seed = seed, .token_std = token_std};
    visit_all(&walk, learned, n_positions);
    parameters->values = malloc(walk.n * sizeof *parameters->values);
    parameters->decays = malloc(walk.n * sizeof *parameters->decays);
    if (!parameters->values || !parameters->decays)
        return pe_no_memory(err);
    walk.fills = true;
    visit_all(&walk, learned, n_positions);
    return PE_OK;
}

void pe_parameters_drop(struct pe_parameters *parameters)
{
    free(parameters->values);
    free(parameters->decays);
    *parameters = (struct pe_parameters){0};
}

/* ---- The optimizer ---- */

/* The optimizer: AdamW (Loshchilov and Hutter 2019, arXiv 1711.05101) with a linear warm-up, a cosine down to zero and
 * clipping of the gradients' norm at 1.
 *
 * A run has some hundred steps, so the schedule is short, and beta_2 is 0.98 instead of 0.999: a mean over a thousand
 * steps would never be warm. Decay applies to matrices and not to norms and biases (parameters.c has the rows). */

enum { WARM_UP = 20 };
#define RATE 5e-3
#define DECAY 0.01
#define BETA_1 0.9
#define BETA_2 0.98
#define EPS 1e-8F
#define PI 3.14159265358979323846

enum pe_status pe_adamw_init(struct pe_adamw *adamw, size_t n, struct pe_failure *err)
{
    *adamw = (struct pe_adamw){n, calloc(n, sizeof(float)), calloc(n, sizeof(float))};
    return adamw->first && adamw->second ? PE_OK : pe_no_memory(err);
}

void pe_adamw_drop(struct pe_adamw *adamw)
{
    free(adamw->first);
    free(adamw->second);
    *adamw = (struct pe_adamw){0};
}

double pe_adamw_rate(size_t m, size_t n_steps)
{
    if (m <= WARM_UP)
        return RATE * (double)m / WARM_UP;
    return RATE * 0.5 * (1 + cos(PI * (double)(m - WARM_UP) / (double)(n_steps - WARM_UP)));
}

void pe_adamw_step(struct pe_adamw *adamw, struct pe_parameters *parameters, float *gradients, size_t m, size_t n_steps)
{
    double rate = pe_adamw_rate(m, n_steps);
    /* 1, or what brings the gradients' norm down to 1. */
    double sum = 0;
    for (size_t i = 0; i < adamw->n; i++)
        sum += (double)gradients[i] * (double)gradients[i];
    double norm = sqrt(sum);
    const float clip = norm > 1 ? (float)(1 / norm) : 1, shrink = (float)(1 - rate * DECAY);
    const float beta_1 = (float)BETA_1, beta_2 = (float)BETA_2;
    const float step = (float)(rate / (1 - pow(BETA_1, (double)m)));
    const float inverse = (float)(1 / sqrt(1 - pow(BETA_2, (double)m)));
    float *restrict first = adamw->first, *restrict second = adamw->second, *restrict x = parameters->values;
    const bool *restrict decays = parameters->decays;
    for (size_t i = 0; i < adamw->n; i++) {
        float g = gradients[i] * clip;
        first[i] = beta_1 * first[i] + (1 - beta_1) * g;
        second[i] = beta_2 * second[i] + (1 - beta_2) * g * g;
        x[i] = x[i] * (decays[i] ? shrink : 1) - step * first[i] / (sqrtf(second[i]) * inverse + EPS);
    }
}
