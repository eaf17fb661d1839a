/* Recipes: the steps in which libraries compute the numbers of a table, each rounded to nearest.
 *
 *     exact          exact p·w                               f64            w, p·w, cosine in f64
 *     f32_torch      e = 2c/r, b = base^e, w = 1/b, a = p·w  f32_cast       w in f64, cast; a = p·w
 *     f32_divide     b as f32_torch, a = p/b                 f32_explog     w = exp(2c · (−ln base / r)), a = p·w
 *     f32_product    t = base^(−2/r), a = a·t from pair to pair
 *     tf32           w of f32_torch and p to 11 bits         …_inv_freq     w to 16 bits, the rest as f32_torch
 *     bf16, f16      w, p, product and result in 16 bits */
#include "core/diagnosis/diagnosis.h"

#include <math.h>

const struct pe_recipe_row pe_known_recipes[PE_N_KNOWN_RECIPES] = {
    [PE_KNOWN_EXACT] = {"exact", "f64", "The numbers are those of exact angles, bit for bit, as posenc computes them."},
    [PE_KNOWN_F64] = {"f64", "f64",
                      "The numbers are those of NumPy and of ports that compute in float64, bit for bit."},
    [PE_KNOWN_F32_TORCH] =
        {"f32_torch", "f32",
         "The numbers are those of transformers, vLLM and SGLang, bit for bit: float32, 1 / base^e."},
    [PE_KNOWN_F32_CAST] =
        {"f32_cast", "f32",
         "The numbers are those of tables built in NumPy, bit for bit: frequencies in float64, cast to float32."},
    [PE_KNOWN_F32_DIVIDE] =
        {"f32_divide", "f32_divide",
         "The numbers are those of JAX code such as Gemma's, MaxText and T5X, bit for bit: p / base^e."},
    [PE_KNOWN_F32_EXPLOG] =
        {"f32_explog", "f32_explog",
         "The numbers are those of the Annotated Transformer's form, bit for bit: exp of a logarithm."},
    [PE_KNOWN_F32_PRODUCT] = {"f32_product", "f32_product",
                              "The numbers are those of ggml on a CPU, bit for bit: a product from pair to pair."},
    [PE_KNOWN_TF32] = {"tf32", "tf32", "The numbers are those of a matrix product in TF32, bit for bit."},
    [PE_KNOWN_BF16_INV_FREQ] = {"bf16_inv_freq", "bf16_inv_freq",
                                "The numbers are those of a model that was cast to bf16 whole, bit for bit."},
    [PE_KNOWN_F16_INV_FREQ] = {"f16_inv_freq", "f16_inv_freq",
                               "The numbers are those of a model that was cast to float16 whole, bit for bit."},
    [PE_KNOWN_BF16] = {"bf16", "bf16", "The numbers are those of bf16 throughout, as under autocast, bit for bit."},
    [PE_KNOWN_F16] = {"f16", "f16", "The numbers are those of float16 throughout, as under autocast, bit for bit."},
};

static double f32(double x) { return (double)(float)x; }

static double step(double x, int by)
{
    float y = (float)x;
    return by == 0 ? (double)y : (double)nextafterf(y, by > 0 ? HUGE_VALF : -HUGE_VALF);
}

double pe_recipe_frequency(enum pe_known_recipe recipe, double base, double width, uint32_t c, int by)
{
    double e = f32(f32(2.0 * c) / f32(width)), b = f32(pow(base, e)), torch = f32(1 / b);
    switch (recipe) {
    case PE_KNOWN_EXACT:
    case PE_KNOWN_F64: return 1 / pow(base, 2.0 * c / width);
    case PE_KNOWN_F32_CAST: return step(1 / pow(base, 2.0 * c / width), by);
    case PE_KNOWN_F32_DIVIDE: return step(b, by);
    case PE_KNOWN_F32_EXPLOG: return step(exp(f32(2.0 * c * f32(-log(base) / width))), by);
    case PE_KNOWN_F32_PRODUCT: return step(pow(base, f32(-2 / width)), by);
    case PE_KNOWN_TF32: return pe_round_to_tf32(step(torch, by));
    case PE_KNOWN_BF16_INV_FREQ:
    case PE_KNOWN_BF16: return pe_round_to(PE_BF16, step(torch, by));
    case PE_KNOWN_F16_INV_FREQ:
    case PE_KNOWN_F16: return pe_round_to(PE_F16, step(torch, by));
    default: return step(torch, by);
    }
}

static double product_from_pair_to_pair(double p, double t, uint32_t c)
{
    double a = f32(p);
    for (uint32_t i = 0; i < c; i++)
        a = f32(a * t);
    return a;
}

double pe_recipe_angle(enum pe_known_recipe recipe, double p, double w, uint32_t c, double scale)
{
    switch (recipe) {
    case PE_KNOWN_EXACT:
    case PE_KNOWN_F64: return p * (w * scale);
    case PE_KNOWN_F32_DIVIDE: return f32(f32(p) / (w / scale));
    case PE_KNOWN_F32_PRODUCT: return f32(product_from_pair_to_pair(p, w, c) * scale);
    case PE_KNOWN_TF32: return f32(pe_round_to_tf32(p) * w * scale);
    case PE_KNOWN_BF16: return pe_round_to(PE_BF16, pe_round_to(PE_BF16, p) * w * scale);
    case PE_KNOWN_F16: return pe_round_to(PE_F16, pe_round_to(PE_F16, p) * w * scale);
    default: return f32(f32(p) * (w * scale));
    }
}

double pe_recipe_rung(enum pe_known_recipe recipe, double w, uint32_t c, double scale)
{
    if (recipe == PE_KNOWN_F32_DIVIDE)
        return f32(scale / w);
    return recipe == PE_KNOWN_F32_PRODUCT ? f32(product_from_pair_to_pair(1, w, c) * scale) : w * scale;
}

double pe_recipe_number(enum pe_known_recipe recipe, double angle, int quarter, double sign, double factor,
                        enum pe_dtype dtype)
{
    double x = quarter == 0 ? sin(angle) : quarter == 1 ? cos(angle) : quarter == 2 ? -sin(angle) : -cos(angle);
    x = quarter == PE_LINEAR ? angle : x;
    if (recipe <= PE_KNOWN_F64)
        return pe_round_to(dtype, sign * x * factor);
    x = f32(x);
    if (recipe == PE_KNOWN_BF16 || recipe == PE_KNOWN_F16)
        x = pe_round_to(recipe == PE_KNOWN_BF16 ? PE_BF16 : PE_F16, x);
    if (factor != 1)
        x = f32(x * f32(factor));
    return pe_round_to(dtype, sign * x);
}
