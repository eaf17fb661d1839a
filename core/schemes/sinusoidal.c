/* Sinusoidal encoding (Vaswani et al. 2017, arXiv 1706.03762, section 3.5), one axis, in the conventions of its
 * libraries.
 *
 *     PE(p, sin i) = sin(angle_scale · p · w_i),   PE(p, cos i) = cos(angle_scale · p · w_i)
 *     w_i = base^(-2i/dim)                     freq_shift 0: the paper
 *     w_i = base^(-i/(h - freq_shift))         h = ⌊dim/2⌋; freq_shift 1: fairseq, tensor2tensor, Whisper, diffusers
 *
 * Columns: interleaved s0 c0 s1 c1 …, or half s0 s1 … c0 c1 …. An odd width has no single answer in the libraries
 * (`odd`). */
#include "core/scheme.h"

#include <stdlib.h>

enum layout { INTERLEAVED, HALF };
enum odd { PAPER, PAD, TRUNCATE };

struct sinusoidal {
    int64_t dim;
    double base;
    int layout;
    double freq_shift;
    int odd;
    bool flip_sin_to_cos;
    double angle_scale;
    int arith;
};

static const char *const layout_words[] = {[INTERLEAVED] = "interleaved", [HALF] = "half", NULL};
static const char *const odd_words[] = {[PAPER] = "paper", [PAD] = "pad", [TRUNCATE] = "truncate", NULL};

static const struct pe_param params[] = {
    PE_P_INT(sinusoidal, dim, 512, 1, PE_DIM_MAX, "channels of the encoding"),
    PE_P_REAL(sinusoidal, base, 10000, 1e-3, 1e12, "wavelength base; not 1"),
    PE_P_WORD(sinusoidal, layout, layout_words, "interleaved: sin, cos alternate; half: all sines, then all cosines"),
    PE_P_REAL(sinusoidal, freq_shift, 0, 0, PE_DIM_MAX,
              "0: base^(-2i/dim), the paper; s: base^(-i/(h-s)) with h = dim/2 rounded down; fairseq and Whisper: 1"),
    PE_P_WORD(sinusoidal, odd, odd_words,
              "odd dim: paper: one sine more than cosines; pad: dim-1 columns and a zero; truncate: dim+1 columns, the "
              "last cut"),
    PE_P_BOOL(sinusoidal, flip_sin_to_cos, false, "cosines before sines, as diffusers' option of that name"),
    PE_P_REAL(sinusoidal, angle_scale, 1, -1e3, 1e3, "multiplies every angle; diffusers calls it scale"),
    PE_P_ARITH(sinusoidal),
    PE_P_END,
};

static const struct pe_output_row outputs[] = {
    {.name = "encoding", .shape = "n,dim", .row_axes = 1, .dtype = PE_DTYPE_NONE, .text = "a row per position"},
    {.name = NULL},
};

/* How the columns are laid out: the width computed (dim, or dim + 1 where the last is cut), and how many are sines,
 * cosines. */
struct arrangement {
    size_t n_sines, n_cosines;
    double denominator; /* w_i = base^(-i/denominator) */
};

static struct arrangement arrange(const struct sinusoidal *c)
{
    bool odd = c->dim % 2;
    size_t dim = (size_t)c->dim + (odd && c->odd == TRUNCATE), h = dim / 2;
    struct arrangement a = {.n_sines = h, .n_cosines = h};
    if (odd && c->odd == PAPER)
        a.n_sines = h + 1;
    /* The paper's exponent 2i/dim keeps the odd dim; the others count from the even width they compute. */
    a.denominator = c->freq_shift > 0        ? (double)h - c->freq_shift
                    : odd && c->odd == PAPER ? (double)dim / 2
                                             : (double)h;
    return a;
}

static enum pe_status check(const struct sinusoidal *c, struct pe_error *err)
{
    struct arrangement a = arrange(c);
    if (c->base == 1)
        return pe_fail(
            err, "/base",
            "base is 1, which gives every channel the same frequency; allowed: any other number from 0.001 to 1e12");
    /* One frequency is base^0 whatever the denominator: tensor2tensor's rule for dim 2, where others divide by zero. */
    if (a.n_sines > 1 && a.denominator <= 0)
        return pe_fail(err, "/freq_shift",
                       "freq_shift is %.10g with dim %lld, so the exponent's denominator dim/2 - freq_shift is %.10g; "
                       "allowed: freq_shift below %lld",
                       c->freq_shift, (long long)c->dim, a.denominator, (long long)(c->dim / 2));
    return PE_OK;
}

static enum pe_status make_ladder(struct pe_plan *p, struct pe_error *err)
{
    const struct sinusoidal *c = p->config;
    struct arrangement a = arrange(c);
    struct pe_dd *freq = p->tables = calloc(a.n_sines + 1, sizeof *freq);
    if (!freq)
        return pe_no_memory(err);
    if (c->arith == PE_ARITH_FLOAT32)
        pe_ladder_float32(c->base, a.denominator, a.n_sines, freq);
    else
        pe_ladder(c->base, a.denominator, a.n_sines, freq);
    return PE_OK;
}

static enum pe_status plan(struct pe_plan *p, struct pe_error *err)
{
    const struct sinusoidal *c = p->config;
    p->arith = (enum pe_arith)c->arith;
    enum pe_status status = check(c, err);
    return status ? status : make_ladder(p, err);
}

/* Which sine or cosine column j holds. */
struct place {
    size_t i;
    bool is_cosine;
};

static struct place place_of(const struct sinusoidal *c, const struct arrangement *a, size_t j)
{
    if (c->layout == INTERLEAVED) {
        bool lone = j == 2 * a->n_cosines; /* the paper's last sine at an odd width has no cosine */
        return (struct place){j / 2, !lone && (j % 2 != 0) != c->flip_sin_to_cos};
    }
    size_t first = c->flip_sin_to_cos ? a->n_cosines : a->n_sines;
    return (struct place){j < first ? j : j - first, (j < first) == c->flip_sin_to_cos};
}

static void set_columns(const struct sinusoidal *c, const struct arrangement *a, const struct pe_dd *freq,
                        struct pe_wave *columns)
{
    for (size_t j = 0; j < (size_t)c->dim; j++) {
        if (j >= a->n_sines + a->n_cosines) { /* pad: sin(0·p) = 0 */
            columns[j] = (struct pe_wave){.ah = 1};
            continue;
        }
        struct place p = place_of(c, a, j);
        struct pe_dd w = dd_mul_d(freq[p.i], c->angle_scale);
        if (c->arith == PE_ARITH_FLOAT32)
            w = dd((double)((float)freq[p.i].hi * (float)c->angle_scale));
        else
            w = pe_quarter_turns(w);
        columns[j] = (struct pe_wave){.fh = w.hi, .fl = w.lo, .ah = 1, .quarter = p.is_cosine};
    }
}

static bool columns(const struct pe_plan *plan, size_t id, struct pe_wave *columns)
{
    const struct sinusoidal *c = plan->config;
    struct arrangement a = arrange(c);
    (void)id;
    set_columns(c, &a, plan->tables, columns);
    return true;
}

static void drop(struct pe_plan *plan) { free(plan->tables); }

const struct pe_scheme pe_scheme_sinusoidal = {
    .info =
        {
            .name = "sinusoidal",
            .family = "absolute",
            .summary = "sines and cosines of geometrically spaced frequencies, added to the embeddings",
            .paper = "Vaswani et al. 2017, arXiv 1706.03762, section 3.5",
            .example = "{\"scheme\":\"sinusoidal\",\"len\":8,\"dim\":16}",
            .params = params,
            .outputs = outputs,
            .operations = 1U << PE_ENCODE,
            .is_additive = true,
        },
    .config_bytes = sizeof(struct sinusoidal),
    .plan = plan,
    .drop = drop,
    .columns = columns,
};
