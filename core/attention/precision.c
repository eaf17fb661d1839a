/* Chooses the precision of a map: f32 if that keeps probabilities accurate, else f64.
 *
 * The problem: with |q|·|k| of several hundred, which real models reach, a logit in f32 is wrong by 2^-24 of that, and
 * e^s turns the absolute error of s into a relative error of p. Frameworks accept it. Here the norms of all rows are
 * measured once, while planning, and the bound below decides.
 *
 * The answer's dtype is another matter: probabilities are computed in the chosen precision and rounded once to f16 or
 * bf16 at the end. */
#include "core/attention/attention.h"

#include <math.h>
#include <string.h>

/* The largest norm of a row, and whether all numbers are finite. Keys that mask hides are skipped, so the contents
 * of padding do not matter. mask may be NULL. */
static double largest_norm(const struct pe_operand *op, const struct pe_mask *mask, bool *is_finite)
{
    double x[PE_HEAD_DIM_MAX], most = 0;
    size_t size = pe_dtype_size(op->tensor.dtype);
    *is_finite = true;
    for (size_t b = 0; b < op->n_batches; b++)
        for (size_t h = 0; h < op->n_heads; h++)
            for (size_t i = 0; i < op->n; i++) {
                size_t at = b * op->batch_step + h * op->head_step + i * op->row_step;
                double sum = 0;
                if (i % 1024 == 1023 && pe_is_cancelled())
                    return 0;
                if (mask && mask->seen && !mask->seen[b % mask->n_masks * op->n + i])
                    continue;
                pe_convert(PE_F64, x, op->tensor.dtype, (const char *)op->tensor.data + at * size, op->width);
                for (size_t c = 0; c < op->width; c++)
                    sum += x[c] * x[c];
                *is_finite &= isfinite(sum) != 0;
                most = sum > most ? sum : most;
            }
    return sqrt(most);
}

/* The largest factor by which a rotation lengthens a row, e.g. YaRN's attention factor. */
static double largest_amplitude(const struct pe_row_rotation *turn)
{
    double most = 1;
    for (size_t i = 0; i < 2 * turn->rotation.n_pairs; i++)
        most = fmax(most, fabs(turn->columns[i].ah));
    return most;
}

/* The error of a product of two rows of floats is about 2^-24 times the product of their norms, and so is the error
 * of a logit. The error of a probability is at most a quarter of the errors of two logits. Where that may exceed
 * 2^-20 (or scales depend on positions), logits are computed in double. */
#define F32_LOGIT_MAX 24

static bool wants_f64(const struct pe_plan *plan)
{
    const struct pe_attention *t = plan->attention;
    const struct pe_attend *attend = plan->scheme->attend;
    double factor = 1, amplitude = t->turns ? largest_amplitude(&t->turn) : 1;
    bool q_is_finite, k_is_finite;
    if (plan->scheme->magnitude)
        return true;
    double q = amplitude * t->largest_factor * largest_norm(&t->q, NULL, &q_is_finite);
    double k = amplitude * largest_norm(&t->k, &t->mask, &k_is_finite);
    if (attend && attend->cosine && attend->cosine(plan, 0, &factor))
        return true;
    double terms = attend && attend->largest ? attend->largest(plan, q, k) : 0;
    return !(fabs(t->scale) * (q * k + terms) <= F32_LOGIT_MAX);
}

/* Every number of queries, keys and values is read once. */
double pe_norms_ns(double n_rows, double width)
{
    enum { NS_OF_NUMBER = 6, CHANNELS_OF_ROW = 8 };
    return n_rows * (width + CHANNELS_OF_ROW) * NS_OF_NUMBER;
}

static bool is_f64(enum pe_dtype dtype) { return dtype == PE_F64; }

/* Sequences of words are short. */
static bool are_few_words(const struct pe_attention *t)
{
    double n = (double)t->q_len, dim = (double)t->embedded.dim;
    return t->has_tokens && n * dim * dim * 4 < PE_IN_ORDER_WORK_MAX;
}

enum pe_status pe_attention_choose_arithmetic(struct pe_plan *plan, struct pe_failure *err)
{
    struct pe_attention *t = plan->attention;
    bool sent_f64 = t->x.rank ? is_f64(t->x.dtype) && !t->x_is_text
                              : is_f64(t->q.tensor.dtype) || is_f64(t->k.tensor.dtype) || is_f64(t->v.tensor.dtype);
    /* Given scores are not products, and in double their biases keep their digits too. */
    bool f64 = is_f64(plan->dtype) || sent_f64 || t->has_tokens || pe_attention_is_given(t);
    enum pe_status status = PE_OK;
    t->products = are_few_words(t) ? pe_arithmetic_in_order() : pe_arithmetic(PE_F64);
    if (t->x.rank)
        status = pe_attention_embed(plan, f64 ? PE_F64 : PE_F32, err);
    if (!status && !f64 && wants_f64(plan)) {
        f64 = true;
        status = t->x.rank ? pe_attention_embed(plan, PE_F64, err) : PE_OK;
    }
    t->a = f64 ? t->products : pe_arithmetic(PE_F32);
    if (!status && t->wants_output)
        largest_norm(&t->v, NULL, &t->v_is_finite);
    return status;
}
