/* What a tensor of any name may be.
 *
 * People save tensors under the names of their own code: rope_cos_cache, q_before, attn_weights. The name tells most:
 * its words are compared with patterns, the longest first, because cos_sin_cache is no cos. What the name leaves open
 * is decided by shape, dtype and numbers: integers are positions, numbers that fall in (0, 1] frequencies, a last axis
 * of length 2 whose pairs have length 1 cosines and sines. Several kinds may remain; the caller tries them in order. */
#include "core/diagnosis/diagnosis.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- Names ---- */

/* Of the name in lower case, other characters than letters and digits as one _, with one at both ends. No kind: a
 * tensor of this name is no evidence. The first that matches counts. */
static const struct {
    const char *pattern, *as;
} names[] = {
    {"*_attn_weight*", "probs"},
    {"*_attention_weight*", "probs"},
    {"*_attention_prob*", "probs"},
    {"*_attn_prob*", "probs"},
    {"*_attn_score*", "scores"},
    {"*_attention_score*", "scores"},
    {"*similarity*", NULL},
    {"*_loss_*", NULL},
    {"*_grad_*", NULL},
    {"*mask*", NULL},
    {"*weight*", NULL},
    {"*cos_sin*", "cos_sin"},
    {"*sin_cos*", "cos_sin"},
    {"*freqs_cis*", "freqs_cis"},
    {"*freq_cis*", "freqs_cis"},
    {"*position_id*", "position_ids"},
    {"*pos_id*", "position_ids"},
    {"*inv_freq*", "inv_freq"},
    {"*inverse_freq*", "inv_freq"},
    {"*inv_timescale*", "inv_freq"},
    {"*rope_freqs*", "rope_freqs"},
    {"*rope_factors*", "rope_freqs"},
    {"*_q_*out*", "q_out"},
    {"*_q_*rot*", "q_out"},
    {"*_rot*_q_*", "q_out"},
    {"*_q_*after*", "q_out"},
    {"*_q_*post*", "q_out"},
    {"*_q_embed_*", "q_out"},
    {"*_query_*rot*", "q_out"},
    {"*_rot*_query_*", "q_out"},
    {"*_query_*after*", "q_out"},
    {"*_query_*post*", "q_out"},
    {"*_k_*out*", "k_out"},
    {"*_k_*rot*", "k_out"},
    {"*_rot*_k_*", "k_out"},
    {"*_k_*after*", "k_out"},
    {"*_k_*post*", "k_out"},
    {"*_k_embed_*", "k_out"},
    {"*_key_*rot*", "k_out"},
    {"*_rot*_key_*", "k_out"},
    {"*_key_*after*", "k_out"},
    {"*_key_*post*", "k_out"},
    {"*_q_*", "q"},
    {"*_query_*", "q"},
    {"*_query_states_*", "q"},
    {"*_xq_*", "q"},
    {"*_k_*", "k"},
    {"*_key_*", "k"},
    {"*_key_states_*", "k"},
    {"*_xk_*", "k"},
    {"*_cos*", "cos"},
    {"*cos_*", "cos"},
    {"*_sin_*", "sin"},
    {"*_sine*", "sin"},
    {"*_scores_*", "scores"},
    {"*_logits_*", "scores"},
    {"*_probs_*", "probs"},
    {"*_bias_*", "bias"},
    {"*alibi*", "bias"},
    {"*bucket*", "buckets"},
    {"*_relative_position_index_*", "index"},
    {"*angle*", "angles"},
    {"*_freqs_*", "angles"},
    {"*_rot*mat*", "matrix"},
    {"*pos*_emb*", "encoding"},
    {"*_pos*_enc*", "encoding"},
    {"*_pos*_table_*", "encoding"},
    {"*_pe_*", "encoding"},
    {"*_wpe_*", "encoding"},
    {"*encoding*", "encoding"},
};
enum { N_NAMES = sizeof names / sizeof *names };

/* Does the name match? * is any text. */
static bool matches(const char *pattern, const char *name)
{
    if (*pattern == '\0')
        return *name == '\0';
    if (*pattern != '*')
        return *pattern == *name && matches(pattern + 1, name + 1);
    while (!matches(pattern + 1, name))
        if (*name++ == '\0')
            return false;
    return true;
}

static void spell(const char *name, char *out, size_t room)
{
    size_t n = 0;
    out[n++] = '_';
    for (; *name && n + 2 < room; name++) {
        unsigned char c = (unsigned char)*name;
        if (isalnum(c))
            out[n++] = (char)tolower(c);
        else if (out[n - 1] != '_')
            out[n++] = '_';
    }
    if (out[n - 1] != '_')
        out[n++] = '_';
    out[n] = '\0';
}

/* ---- Numbers ---- */

enum { LOOKED_AT = 4096 };

/* What the first numbers have in common. */
struct sight {
    uint64_t n;
    bool is_within_one, is_falling, is_positive, starts_with_ones, starts_with_zeros, has_unit_pairs;
};

/* Numbers of a body may be at any address. */
static double number_at(const struct pe_tensor *t, uint64_t i)
{
    double room = 0;
    size_t size = pe_dtype_size(t->dtype);
    memcpy(&room, (const char *)t->data + i * size, size);
    return pe_element(t->dtype, &room, 0);
}

static struct sight look(const struct pe_tensor *t)
{
    struct sight s = {0, true, true, true, true, true, true};
    uint64_t count, width = t->rank ? t->shape[t->rank - 1] : 1;
    double before = (double)INFINITY;
    if (!pe_shape_count(t->shape, t->rank, &count))
        return s;
    s.n = count < LOOKED_AT ? count : LOOKED_AT;
    for (uint64_t i = 0; i < s.n; i++) {
        double x = number_at(t, i);
        s.is_within_one &= fabs(x) <= 1.0001;
        s.is_falling &= x > 0 && x <= 1 && x < before;
        s.is_positive &= x >= 0;
        s.starts_with_ones &= i >= width || x == 1;
        s.starts_with_zeros &= i >= width || x == 0;
        if (i % 2)
            s.has_unit_pairs &= fabs(x * x + before * before - 1) < 1e-2;
        before = x;
    }
    s.has_unit_pairs &= width == 2;
    return s;
}

/* Is the first of square matrices 0 but for two numbers in each row? */
static bool is_of_pairs(const struct pe_tensor *t)
{
    if (!pe_is_whole_matrix(t))
        return false;
    uint64_t width = t->shape[t->rank - 1];
    for (uint64_t r = 0, n; r < width; r++) {
        n = 0;
        for (uint64_t c = 0; c < width; c++)
            n += number_at(t, r * width + c) != 0;
        if (n == 0 || n > 2)
            return false;
    }
    return true;
}

/* ---- Kinds ---- */

static void add_guess(struct pe_kind_guess *out, size_t *n, const char *as, const char *why)
{
    for (size_t i = 0; i < *n; i++)
        if (pe_same(out[i].as, as))
            return;
    if (*n < PE_KIND_GUESSES_MAX)
        out[(*n)++] = (struct pe_kind_guess){as, why, false};
}

/* How many axes are longer than 1. */
static unsigned long_axes(const struct pe_tensor *t)
{
    unsigned n = 0;
    for (unsigned i = 0; i < t->rank; i++)
        n += t->shape[i] != 1;
    return n;
}

static size_t by_numbers(const struct pe_tensor *t, struct pe_kind_guess *out, size_t n)
{
    struct sight s = look(t);
    unsigned axes = long_axes(t);
    bool is_matrix = t->rank > 2 && t->shape[t->rank - 1] == 2 && t->shape[t->rank - 2] == 2;
    if (s.n == 0)
        return n;
    if (!pe_dtype_is_real(t->dtype)) {
        add_guess(out, &n, "position_ids", pe_text("integers"));
        return n;
    }
    if (axes <= 1 && s.is_falling)
        add_guess(out, &n, "inv_freq", pe_text("numbers that fall, in (0, 1]"));
    if (axes <= 1 && s.is_positive && !s.is_falling)
        add_guess(out, &n, "rope_freqs", pe_text("one axis of positive numbers"));
    if (is_matrix && s.has_unit_pairs)
        add_guess(out, &n, "matrix", pe_text("its shape and numbers: matrices of 2×2 that turn"));
    if (t->rank > 2 && s.is_within_one && is_of_pairs(t))
        add_guess(out, &n, "matrix", pe_text("its shape and numbers: matrices that turn pairs of channels"));
    if (axes > 1 && s.has_unit_pairs)
        add_guess(out, &n, "freqs_cis", pe_text("its numbers: pairs whose squares add up to 1"));
    if (axes > 1 && s.is_within_one && s.starts_with_ones)
        add_guess(out, &n, "cos", pe_text("its numbers: at most 1, and 1 in the first row"));
    if (axes > 1 && s.is_within_one && s.starts_with_zeros)
        add_guess(out, &n, "sin", pe_text("its numbers: at most 1, and 0 in the first row"));
    if (axes > 1 && s.is_within_one)
        add_guess(out, &n, "cos_sin", pe_text("its numbers: at most 1"));
    if (axes > 1 && !s.is_within_one && s.starts_with_zeros && s.is_positive)
        add_guess(out, &n, "angles", pe_text("its numbers: 0 in the first row, and no negative ones"));
    if (axes == 3 && !s.is_within_one)
        add_guess(out, &n, "bias", pe_text("its shape"));
    if (axes > 1)
        add_guess(out, &n, "encoding", pe_text("its shape"));
    return n;
}

size_t pe_kinds_of(const char *name, const struct pe_tensor *tensor, struct pe_kind_guess out[PE_KIND_GUESSES_MAX])
{
    char spelled[160];
    size_t n = 0, i = 0;
    spell(name, spelled, sizeof spelled);
    while (i < N_NAMES && !matches(names[i].pattern, spelled))
        i++;
    if (i < N_NAMES && !names[i].as)
        return 0;
    if (i < N_NAMES)
        out[n++] = (struct pe_kind_guess){names[i].as, pe_text("its name"), true};
    return by_numbers(tensor, out, n);
}

/* Is a map a function of the distance of query and key, as biases are? */
static bool is_of_distance(const struct pe_tensor *t)
{
    uint64_t n = t->shape[t->rank - 1];
    for (uint64_t j = 0; j + 1 < n && j < LOOKED_AT; j++)
        if (number_at(t, j) != number_at(t, n + j + 1))
            return false;
    return true;
}

const char *pe_kind_alone(const struct pe_tensor *tensor)
{
    uint64_t count;
    if (!pe_dtype_is_real(tensor->dtype))
        return "position_ids";
    bool has_rows = tensor->rank == 3 && tensor->shape[0] == 1 && tensor->shape[1] > 1 && tensor->shape[2] > 1 &&
                    pe_shape_count(tensor->shape, 3, &count);
    if (tensor->rank != 3)
        return "encoding";
    return has_rows && look(tensor).is_within_one && !is_of_distance(tensor) ? "encoding" : "bias";
}
