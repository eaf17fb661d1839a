/* Small fully connected networks from a plan's weights: x → activation(W·x + b) → …, with torch.nn.Linear's layout.
 * Family helper of the schemes whose rows a network computes. */
#ifndef PE_SCHEMES_NETWORK_H
#define PE_SCHEMES_NETWORK_H

#include "core/scheme.h"

enum pe_activation { PE_TANH, PE_RELU, PE_SIGMOID, PE_GELU, PE_IDENTITY };
extern const char *const pe_activation_words[];
#define PE_P_ACTIVATION(S, fallback_)                                                                                  \
    {                                                                                                                  \
        .name = "activation", .type = PE_T_WORD, .offset = PE_OFFSET(S, activation, int), .fallback = (fallback_),     \
        .words = pe_activation_words, .about = {                                                                       \
            "activation",                                                                                              \
            "activation between two layers; gelu: x·Φ(x), by erf"                                                    \
        }                                                                                                              \
    }

enum { PE_LAYERS_MAX = 8 };
#define PE_NO_BIAS SIZE_MAX

struct pe_network;

struct pe_network_form {
    size_t n_layers;
    uint64_t widths[PE_LAYERS_MAX + 1];        /* of the input, of each layer's output */
    size_t w[PE_LAYERS_MAX], b[PE_LAYERS_MAX]; /* rows of the scheme's inputs; b PE_NO_BIAS: the layer has none */
    bool time_input;                           /* every layer has one more input at the end: the time */
    enum pe_activation activation;             /* between layers */
    bool output_activation;                    /* after the last layer too */
    enum pe_arith arith;                       /* float32: each layer's output is rounded to f32 */
};

/* Reads the weights (tensors sent, or seeded) and makes *network; fails and names the missing tensor. */
enum pe_status pe_network_new(struct pe_plan *plan, const struct pe_network_form *form, struct pe_network **network,
                              struct pe_failure *err);
/* Adds the cost of pe_network_new, for the scheme's cost(). */
void pe_network_room(struct pe_cost *cost, double n_weights);
void pe_network_free(struct pe_network *network); /* NULL is accepted */

size_t pe_network_scratch(const struct pe_network *network); /* doubles that pe_network_apply needs */
double pe_network_cost(const struct pe_network *network);    /* cost of applying it once, in multiply-adds */
double pe_network_made(const struct pe_network *network);    /* cost of computing its weights, in multiply-adds */

/* Reads the weights unless that is already done. Call it before the first pe_network_apply, from any thread. */
void pe_network_load(struct pe_network *network, bool may_leave);

/* out = network(x, t); out may be x. */
void pe_network_apply(const struct pe_network *network, double t, const double *x, double *out, double *scratch);

#endif
