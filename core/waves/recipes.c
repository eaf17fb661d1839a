/* Recipes: the steps in which libraries compute the numbers of a table, each rounded to nearest. Every recipe is a row:
 * how it forms the frequency of pair c of a ladder base^(-2c/r), and to which type it rounds the frequency w, the
 * position p, their product, and its cosine or sine.
 *
 *     exact          exact p·w                               f64            w, p·w, cosine in f64
 *     f32_torch      e = 2c/r, b = base^e, w = 1/b, a = p·w  f32_cast, f32  w in f64, cast; a = p·w
 *     f32_divide     b as f32_torch, a = p/b                 f32_explog     w = exp(2c · (-ln base / r)), a = p·w
 *     f32_product    t = base^(-2/r), a = a·t from pair to pair; ggml: by the plan's own steps (float32.c)
 *     tf32           w of f32_torch and p to 11 bits         …_inv_freq     w to 16 bits, the rest as f32_torch
 *     bf16, f16      w, p, product and result in 16 bits     f32_bf16       f32, the result to bf16
 *     …_divided      of bf16: w = fl(1/fl(fl(base)^e)), as torch's 1 / (base ** e) has it
 *
 * A frequency that is not of a plain ladder (a scaling's) is formed exactly and rounded: pe_recipe_round. */
#include "core/waves/waves.h"

#include <math.h>

#define OF_F32 .w = PE_F32, .p = PE_F32, .product = PE_F32, .result = PE_F32
#define OF_F64 .w = PE_F64, .p = PE_F64, .product = PE_F64, .result = PE_F64
#define OF_BF16 .w = PE_BF16, .p = PE_BF16, .product = PE_BF16, .result = PE_BF16
#define OF_F16 .w = PE_F16, .p = PE_F16, .product = PE_F16, .result = PE_F16
#define OF_FREQUENCY(dtype) .w = dtype, .p = PE_F32, .product = PE_F32, .result = PE_F32

const struct pe_recipe_row pe_recipes[PE_N_RECIPES] = {
    [PE_RECIPE_EXACT] = {"exact", "f64", "The numbers are those of exact angles, bit for bit, as posenc computes them.",
                         OF_F64},
    [PE_RECIPE_F64] = {"f64", "f64",
                       "The numbers are those of NumPy and of ports that compute in float64, bit for bit.", OF_F64},
    [PE_RECIPE_F32_TORCH] =
        {"f32_torch", "f32",
         "The numbers are those of transformers, vLLM and SGLang, bit for bit: float32, 1 / base^e.", OF_F32,
         .rungs = PE_RUNGS_RECIPROCAL},
    [PE_RECIPE_F32_CAST] =
        {"f32_cast", "f32",
         "The numbers are those of tables built in NumPy, bit for bit: frequencies in float64, cast to float32.",
         OF_F32},
    [PE_RECIPE_F32_DIVIDE] =
        {"f32_divide", "f32_divide",
         "The numbers are those of JAX code such as Gemma's, MaxText and T5X, bit for bit: p / base^e.", OF_F32,
         .rungs = PE_RUNGS_DIVISOR},
    [PE_RECIPE_F32_EXPLOG] =
        {"f32_explog", "f32_explog",
         "The numbers are those of the Annotated Transformer's form, bit for bit: exp of a logarithm.", OF_F32,
         .rungs = PE_RUNGS_EXPONENTIAL},
    [PE_RECIPE_F32_PRODUCT] = {"f32_product", "f32_product",
                               "The numbers are those of ggml on a CPU, bit for bit: a product from pair to pair.",
                               OF_F32, .rungs = PE_RUNGS_PRODUCT},
    [PE_RECIPE_TF32] = {"tf32", "tf32", "The numbers are those of a matrix product in TF32, bit for bit.", OF_F32,
                        .rungs = PE_RUNGS_RECIPROCAL, .is_tf32 = true},
    [PE_RECIPE_BF16_INV_FREQ] = {"bf16_inv_freq", "bf16_inv_freq",
                                 "The numbers are those of a model that was cast to bf16 whole, bit for bit.",
                                 OF_FREQUENCY(PE_BF16), .rungs = PE_RUNGS_RECIPROCAL},
    [PE_RECIPE_F16_INV_FREQ] = {"f16_inv_freq", "f16_inv_freq",
                                "The numbers are those of a model that was cast to float16 whole, bit for bit.",
                                OF_FREQUENCY(PE_F16), .rungs = PE_RUNGS_RECIPROCAL},
    [PE_RECIPE_BF16] = {"bf16", "bf16", "The numbers are those of bf16 throughout, as under autocast, bit for bit.",
                        OF_BF16, .rungs = PE_RUNGS_RECIPROCAL},
    [PE_RECIPE_F16] = {"f16", "f16", "The numbers are those of float16 throughout, as under autocast, bit for bit.",
                       OF_F16, .rungs = PE_RUNGS_RECIPROCAL},
    [PE_RECIPE_F32] = {"f32", OF_F32},
    [PE_RECIPE_F32_BF16] = {"f32_bf16", .w = PE_F32, .p = PE_F32, .product = PE_F32, .result = PE_BF16},
    [PE_RECIPE_BF16_INV_FREQ_DIVIDED] = {"bf16_inv_freq_divided", OF_FREQUENCY(PE_BF16), .is_divided = true},
    [PE_RECIPE_BF16_DIVIDED] = {"bf16_divided", OF_BF16, .is_divided = true},
    [PE_RECIPE_GGML] = {"ggml", OF_F32, .rungs = PE_RUNGS_PRODUCT},
};

const char *pe_recipe_words[PE_N_RECIPES + 1];

/* Before main, since C cannot make one table of another. */
__attribute__((constructor)) static void set_words(void)
{
    for (size_t r = 0; r < PE_N_RECIPES; r++)
        pe_recipe_words[r] = pe_recipes[r].name;
}

static double f32(double x) { return (double)(float)x; }

/* To 11 significant bits, as the inputs of a product in TF32 are. */
static double round_to_tf32(double x)
{
    enum { BITS = 11 };
    int exponent;
    if (x == 0 || !isfinite(x))
        return x;
    double fraction = frexp(x, &exponent);
    return ldexp(nearbyint(ldexp(fraction, BITS)), exponent - BITS);
}

static double round_factor(const struct pe_recipe_row *row, double x) { return row->is_tf32 ? round_to_tf32(x) : x; }

double pe_recipe_round(enum pe_recipe recipe, double w, double base)
{
    const struct pe_recipe_row *row = &pe_recipes[recipe];
    if (!row->is_divided || !(w > 0) || !(base > 1))
        return round_factor(row, pe_round_to(row->w, w));
    double power = pow(w, -log(pe_round_to(row->w, base)) / log(base));
    return pe_round_to(row->w, 1 / pe_round_to(row->w, power));
}

bool pe_recipe_is_of_frequencies(enum pe_recipe recipe)
{
    const struct pe_recipe_row *row = &pe_recipes[recipe];
    return row->p == PE_F32 && row->w != PE_F32;
}

static double step(double x, int by)
{
    float y = (float)x;
    return by == 0 ? (double)y : (double)nextafterf(y, by > 0 ? HUGE_VALF : -HUGE_VALF);
}

/* In the type in which its rungs are formed. */
static double rung_of(enum pe_rungs rungs, double base, double width, uint32_t c)
{
    double power = f32(pow(base, f32(f32(2.0 * c) / f32(width))));
    switch (rungs) {
    case PE_RUNGS_RECIPROCAL: return f32(1 / power);
    case PE_RUNGS_DIVISOR: return power;
    case PE_RUNGS_EXPONENTIAL: return exp(f32(2.0 * c * f32(-log(base) / width)));
    case PE_RUNGS_PRODUCT: return pow(base, f32(-2 / width));
    case PE_RUNGS_EXACT: break;
    }
    return 1 / pow(base, 2.0 * c / width);
}

double pe_recipe_frequency(enum pe_recipe recipe, double base, double width, uint32_t c, int by)
{
    const struct pe_recipe_row *row = &pe_recipes[recipe];
    double w = rung_of(row->rungs, base, width, c);
    return row->w == PE_F64 ? w : pe_recipe_round(recipe, step(w, by), base);
}

static double product_from_pair_to_pair(double p, double t, uint32_t c)
{
    double a = f32(p);
    for (uint32_t i = 0; i < c; i++)
        a = f32(a * t);
    return a;
}

double pe_recipe_angle(enum pe_recipe recipe, double p, double w, uint32_t c, double scale)
{
    const struct pe_recipe_row *row = &pe_recipes[recipe];
    p = round_factor(row, pe_round_to(row->p, p));
    switch (row->rungs) {
    case PE_RUNGS_DIVISOR: return pe_round_to(row->product, p / (w / scale));
    case PE_RUNGS_PRODUCT: return pe_round_to(row->product, product_from_pair_to_pair(p, w, c) * scale);
    default: return pe_round_to(row->product, p * (w * scale));
    }
}

double pe_recipe_rung(enum pe_recipe recipe, double w, uint32_t c, double scale)
{
    enum pe_rungs rungs = pe_recipes[recipe].rungs;
    if (rungs == PE_RUNGS_DIVISOR)
        return f32(scale / w);
    return rungs == PE_RUNGS_PRODUCT ? f32(product_from_pair_to_pair(1, w, c) * scale) : w * scale;
}

double pe_recipe_number(enum pe_recipe recipe, double angle, int quarter, double sign, double factor,
                        enum pe_dtype dtype)
{
    enum pe_dtype result = pe_recipes[recipe].result;
    double x = quarter == PE_LINEAR ? angle : pe_sine_of(angle, quarter);
    if (result == PE_F64)
        return pe_round_to(dtype, sign * x * factor);
    x = pe_round_to(result, f32(x));
    if (factor != 1)
        x = f32(x * f32(factor));
    return pe_round_to(dtype, sign * x);
}

double pe_sine_of(double angle, int quarter)
{
    switch (quarter) {
    case 0: return sin(angle);
    case 1: return cos(angle);
    case 2: return -sin(angle);
    case 3: return -cos(angle);
    default: return angle;
    }
}
