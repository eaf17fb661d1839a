/* The answer of /derive: each number as /encode gives it, the steps of its formula, and the same steps with a rounding
 * after each.
 *
 * The formula is the scheme's own (core/waves/derivation.c): it is run exactly, then by a recipe, then once for each
 * rounding of that recipe, which states what the rounding costs the last number. */
#include "core/derive/derive.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 20, ERROR_DIGITS = 2 };

#define STEP_MEMBERS                                                                                                   \
    {.name = "symbol", .types = "string"}, {.name = "tex", .types = "string", .is_optional = true},                    \
    {                                                                                                                  \
        .name = "text", .types = "string", .summary = "the formula with its numbers", .is_optional = true              \
    }

static const struct pe_member of_steps[] = {
    STEP_MEMBERS,
    {.name = "value", .types = "string", .summary = "20 significant digits, rounded once", .is_optional = true},
    {.name = "exact", .types = "string", .summary = "a short ratio that is the value", .is_optional = true},
    {.name = "rounded", .types = "string", .summary = "of the last step: the number itself", .is_optional = true},
    {.name = "step", .types = "string", .summary = "the distance to the next number of its type", .is_optional = true},
    {.name = NULL}};

static const struct pe_member of_float32[] = {
    {.name = "symbol", .types = "string"},
    {.name = "value", .types = "string"},
    {.name = "error", .types = "string", .summary = "difference from the exact step", .is_optional = true},
    {.name = NULL}};

static const struct pe_member of_number[] = {
    {.name = "tensor", .types = "string"},
    {.name = "index", .types = "array", .items = "integer"},
    {.name = "dtype", .types = "string"},
    {.name = "value", .types = "number|string", .summary = "as /encode gives it; a word where it is not finite"},
    {.name = "bits", .types = "string", .summary = "hexadecimal"},
    {.name = "below", .types = "number", .summary = "the next lower number of its type", .is_optional = true},
    {.name = "above", .types = "number", .is_optional = true},
    {.name = NULL}};

static const struct pe_member of_lost[] = {
    {.name = "by", .types = "string", .summary = "float32, or the recipe"},
    {.name = "symbol", .types = "string", .summary = "the step whose rounding costs most"},
    {.name = "adds", .types = "string", .summary = "what that adds to the last number, with its sign"},
    {.name = "error", .types = "string", .summary = "of the last number, of all steps together"},
    {.name = NULL}};

#define NUMBER_MEMBERS                                                                                                 \
    {.name = "number", .types = "object", .members = of_number, .is_optional = true},                                  \
        {.name = "steps", .types = "array", .items = "object", .members = of_steps, .is_optional = true},              \
        {.name = "recipe", .types = "string|null", .summary = "of float32", .is_optional = true},                      \
        {.name = "float32",                                                                                            \
         .types = "array|null",                                                                                        \
         .items = "object",                                                                                            \
         .members = of_float32,                                                                                        \
         .summary = "the steps, each rounded by the recipe; null: nothing is rounded on the way",                      \
         .is_optional = true},                                                                                         \
        {.name = "lost", .types = "object|null", .members = of_lost, .is_optional = true},                             \
    {                                                                                                                  \
        .name = "", .members = pe_detail_members                                                                       \
    }

const struct pe_member pe_derived_members[] = {NUMBER_MEMBERS, {.name = NULL}};

const struct pe_member pe_derive_members[] = {
    {.name = "config", .types = "object", .summary = "the configuration with every parameter"},
    {.name = "numbers",
     .types = "array",
     .items = "object",
     .members = pe_derived_members,
     .summary = "of several numbers: for each of them the members below",
     .n_max = PE_DERIVED_NUMBERS_MAX,
     .is_optional = true},
    NUMBER_MEMBERS,
    {.name = NULL}};

/* ---- Numbers as text ---- */

/* As JSON has it: the fewest digits that are read as x, a number of this dtype; of one byte, as a double. */
static void print_shortest(enum pe_dtype dtype, double x, char out[PE_DECIMAL_MAX])
{
    enum { MOST = 17 };
    for (unsigned n = 1; n <= MOST; n++) {
        pe_dd_print(dd(x), n, out);
        double back = strtod(out, NULL);
        if ((dtype == PE_F64 || pe_dtype_size(dtype) == 1 ? back : pe_round_to(dtype, back)) == x)
            return;
    }
}

/* Small ones as 1.7e-10. */
static void print_error(double x, unsigned n_digits, char out[PE_DECIMAL_MAX])
{
    const double small = 1e-3;
    if (!isfinite(x) || x == 0 || fabs(x) >= small) {
        pe_dd_print(dd(x), n_digits, out);
        return;
    }
    snprintf(out, PE_DECIMAL_MAX, "%.*e", (int)n_digits - 1, x);
    char *exponent = strchr(out, 'e') + 2; /* behind its sign */
    size_t zeros = strspn(exponent, "0");
    memmove(exponent, exponent + zeros, strlen(exponent + zeros) + 1);
}

static enum pe_dtype narrowest(double x) { return (double)(float)x == x ? PE_F32 : PE_F64; }

/* The bits of element 0, most significant first. */
static void print_bits(enum pe_dtype dtype, const void *number, char out[2 * sizeof(double) + 3])
{
    const unsigned char *bytes = number;
    size_t n = pe_dtype_size(dtype);
    out += sprintf(out, "0x");
    while (n-- > 0)
        out += sprintf(out, "%02x", bytes[n]);
}

/* The next number of a real dtype above x, or below it. */
static double next_to(enum pe_dtype dtype, double x, bool above)
{
    double least = x, most = above ? (double)INFINITY : -(double)INFINITY;
    if (dtype == PE_F64)
        return nextafter(x, most);
    if (dtype == PE_F32)
        return (double)nextafterf((float)x, (float)most);
    /* 16 bits or 8: by doubling steps from the smallest that there are */
    for (double step = 0x1p-140; isfinite(least); step *= 2) {
        double far = pe_round_to(dtype, above ? x + step : x - step);
        if (far != x)
            return far;
    }
    return most;
}

/* ---- One number ---- */

static void put_real_of(struct pe_node *node, const char *name, enum pe_dtype dtype, double x)
{
    char text[PE_DECIMAL_MAX];
    print_shortest(dtype, x, text);
    if (isfinite(x))
        pe_put_real(node, name, strtod(text, NULL));
    else
        pe_put_string(node, name, text);
}

static void put_number(const struct pe_derive *d, const struct pe_number_place *place, const void *number, double x,
                       enum pe_dtype dtype, struct pe_node *node)
{
    const struct pe_output *output = &d->plan->outputs[0];
    unsigned rank = d->side ? 1 : output->rank;
    char bits[2 * sizeof(double) + 3];
    int64_t index[PE_RANK_MAX];
    for (unsigned i = 0; i < rank; i++)
        index[i] = (int64_t)(d->side ? place->element : place->at.index[i]);
    print_bits(dtype, number, bits);
    pe_put_string(node, "tensor", !d->side ? output->name : d->side[0] == 'q' ? "q_out" : "k_out");
    pe_put_integers(node, "index", index, rank);
    pe_put_string(node, "dtype", pe_dtype_name(dtype));
    if (!pe_dtype_is_real(dtype)) {
        pe_put_integer(node, "value", (int64_t)x);
        pe_put_string(node, "bits", bits);
        return;
    }
    put_real_of(node, "value", dtype, x);
    pe_put_string(node, "bits", bits);
    if (!isfinite(x))
        return;
    put_real_of(node, "below", dtype, next_to(dtype, x, false));
    put_real_of(node, "above", dtype, next_to(dtype, x, true));
}

/* A ratio that is stated, or that a double shows: an odd number over a power of two, both short. */
static bool find_ratio(const struct pe_derived *step, char out[PE_DECIMAL_MAX])
{
    const double most = 1 << 20;
    double n = step->value.hi, below = 1;
    if (step->denominator) {
        snprintf(out, PE_DECIMAL_MAX, "%lld/%lld", (long long)step->numerator, (long long)step->denominator);
        return true;
    }
    if (step->value.lo != 0 || !isfinite(n) || n == floor(n))
        return false;
    for (; n != floor(n) && below <= most; below *= 2)
        n *= 2;
    snprintf(out, PE_DECIMAL_MAX, "%.0f/%.0f", n, below);
    return below <= most && fabs(n) <= most;
}

static void put_tex(const struct pe_derived *step, struct pe_node *node)
{
    char symbol[PE_TEX_MAX], formula[PE_TEX_MAX], all[2 * PE_TEX_MAX + 4];
    pe_tex_print(step->symbol, symbol);
    pe_tex_print(step->text, formula);
    if (!step->has_value)
        pe_put_string(node, "tex", formula);
    else if (!*step->text)
        pe_put_string(node, "tex", symbol);
    else {
        snprintf(all, sizeof all, "%s = %s", symbol, formula);
        pe_put_string(node, "tex", all);
    }
}

static void put_text(const struct pe_derived *step, struct pe_node *node)
{
    char text[2 * PE_DERIVED_BYTES + 2];
    const char *between = *step->text && *step->says ? ": " : "";
    snprintf(text, sizeof text, "%s%s%s", step->text, between, step->says);
    if (*text)
        pe_put_string(node, "text", text);
}

static void put_steps(const struct pe_derivation *exact, enum pe_dtype dtype, double number, bool is_its_own,
                      struct pe_node *list)
{
    for (size_t i = 0; i < exact->n; i++) {
        const struct pe_derived *step = &exact->at[i];
        struct pe_node *node = pe_put_object(list, NULL);
        char text[PE_DECIMAL_MAX];
        pe_put_string(node, "symbol", step->symbol);
        put_tex(step, node);
        put_text(step, node);
        if (!step->has_value)
            continue;
        pe_dd_print(step->value, DIGITS, text);
        pe_put_string(node, "value", text);
        if (find_ratio(step, text))
            pe_put_string(node, "exact", text);
        if (i + 1 < exact->n || !is_its_own || !pe_dtype_is_real(dtype) || !isfinite(number))
            continue;
        print_shortest(dtype, number, text);
        pe_put_string(node, "rounded", text);
        print_error(next_to(dtype, number, true) - number, 3, text);
        pe_put_string(node, "step", text);
    }
}

static void put_rounded(const struct pe_derivation *exact, const struct pe_derivation *rounded, struct pe_node *list)
{
    for (size_t i = 0; i < rounded->n; i++) {
        const struct pe_derived *step = &rounded->at[i], *truth = pe_derivation_find(exact, step->symbol);
        char text[PE_DECIMAL_MAX];
        if (!step->has_value)
            continue;
        struct pe_node *node = pe_put_object(list, NULL);
        pe_put_string(node, "symbol", step->symbol);
        print_shortest(narrowest(step->value.hi), step->value.hi, text);
        pe_put_string(node, "value", text);
        if (!truth || !isfinite(truth->value.hi) || !isfinite(step->value.hi))
            continue;
        print_error(dd_sub(step->value, truth->value).hi, ERROR_DIGITS, text);
        pe_put_string(node, "error", text);
    }
}

/* Is there a step on the way to it that is no whole number? */
static bool has_fractions(const struct pe_derivation *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->at[i].has_value && d->at[i].value.hi != floor(d->at[i].value.hi))
            return true;
    return false;
}

static bool has_errors(const struct pe_derivation *exact, const struct pe_derivation *rounded)
{
    for (size_t i = 0; i < rounded->n; i++) {
        const struct pe_derived *truth = pe_derivation_find(exact, rounded->at[i].symbol);
        if (rounded->at[i].has_value && truth && dd_sub(rounded->at[i].value, truth->value).hi != 0)
            return true;
    }
    return false;
}

static struct pe_dd last(const struct pe_derivation *d)
{
    for (size_t i = d->n; i-- > 0;)
        if (d->at[i].has_value)
            return d->at[i].value;
    return dd((double)NAN);
}

static enum pe_status take_steps(const struct pe_derive *d, const struct pe_number_place *place,
                                 struct pe_derivation *steps, struct pe_failure *err)
{
    const struct pe_plan *plan = d->plan;
    return d->is_map ? pe_derive_attended(d, steps, err)
           : d->side ? pe_derive_rotated(d, place, steps, err)
                     : plan->scheme->derive(plan, plan->sources[0].id, &place->at, steps, err);
}

/* The step whose rounding costs the last number most, and how much; SIZE_MAX: no step costs anything. */
static size_t find_loss(const struct pe_derive *d, const struct pe_number_place *place,
                        const struct pe_derivation *exact, const struct pe_derivation *rounded, double *cost)
{
    struct pe_failure err;
    struct pe_dd truth = last(exact);
    double before = 0;
    size_t worst = SIZE_MAX;
    *cost = 0;
    for (size_t i = 0; i < rounded->n; i++) {
        struct pe_derivation mixed = {.given = rounded, .n_given = i + 1};
        if (!rounded->at[i].has_value || take_steps(d, place, &mixed, &err))
            continue;
        double error = dd_sub(last(&mixed), truth).hi;
        if (fabs(error - before) > fabs(*cost)) {
            *cost = error - before;
            worst = i;
        }
        before = error;
    }
    return worst;
}

/* What the last number is, in a sentence. */
static const char *sentence_of(const struct pe_derivation *exact, bool is_last)
{
    const char *symbol = exact->at[exact->n - 1].symbol;
    if (is_last)
        return "{lost.by} loses nothing on the way: the error is that of the last step, {lost.error}.";
    if (strstr(symbol, "cos"))
        return "{lost.by} loses it in {lost.symbol}: {lost.error} in the cosine.";
    if (strstr(symbol, "sin"))
        return "{lost.by} loses it in {lost.symbol}: {lost.error} in the sine.";
    return "{lost.by} loses it in {lost.symbol}: {lost.error} in the number.";
}

static void put_detail(const struct pe_derive *d, const struct pe_number_place *place,
                       const struct pe_derivation *exact, const struct pe_derivation *rounded, struct pe_node *node)
{
    double cost;
    size_t worst = find_loss(d, place, exact, rounded, &cost);
    char text[PE_DECIMAL_MAX];
    if (worst == SIZE_MAX || !isfinite(last(rounded).hi) || dd_sub(last(rounded), last(exact)).hi == 0) {
        pe_put_null(node, "lost");
        pe_put_detail(node, d->request->lang,
                      !isfinite(last(rounded).hi)  ? "{recipe} overflows on the way: its number is not finite."
                      : has_errors(exact, rounded) ? "{recipe} gives the exact number: its roundings cost it nothing."
                                                   : "{recipe} gives the exact number: no step is rounded.");
        return;
    }
    struct pe_node *lost = pe_put_object(node, "lost");
    bool is_float32 = rounded->recipe == PE_RECIPE_F32_TORCH || rounded->recipe == PE_RECIPE_F32;
    pe_put_string(lost, "by", is_float32 ? "float32" : pe_recipes[rounded->recipe].name);
    pe_put_string(lost, "symbol", rounded->at[worst].symbol);
    print_error(cost, ERROR_DIGITS, text);
    pe_put_string(lost, "adds", text);
    print_error(fabs(dd_sub(last(rounded), last(exact)).hi), ERROR_DIGITS, text);
    pe_put_string(lost, "error", text);
    pe_put_detail(node, d->request->lang, sentence_of(exact, worst + 1 == rounded->n));
}

static enum pe_recipe recipe_of(const struct pe_derive *d)
{
    if (d->fields.recipe != PE_UNSET_WORD)
        return (enum pe_recipe)d->fields.recipe;
    return d->plan->arith == PE_ARITH_GGML ? PE_RECIPE_GGML : PE_RECIPE_F32_TORCH;
}

static enum pe_status put_one(struct pe_derive *d, const struct pe_number_place *place, struct pe_node *node,
                              struct pe_failure *err)
{
    const struct pe_plan *plan = d->plan;
    struct pe_derivation exact = {.recipe = PE_RECIPE_EXACT}, rounded = {.recipe = recipe_of(d)};
    enum pe_dtype dtype = plan->outputs[0].dtype;
    double number[1], x;
    if ((d->is_map && pe_derive_open_pair(d, place, err)) || take_steps(d, place, &exact, err))
        return err->status;
    if (d->side && pe_derive_rotated_number(d, place, &x, &dtype, number, err))
        return err->status;
    if (!d->side) {
        pe_fill(plan, 0, place->element, 1, number);
        x = pe_element(dtype, number, 0);
    }
    bool is_exact = plan->arith == PE_ARITH_EXACT, is_asked = d->fields.recipe != PE_UNSET_WORD;
    put_number(d, place, number, x, dtype, pe_put_object(node, "number"));
    put_steps(&exact, dtype, x, is_exact, pe_put_list(node, "steps"));
    bool has_rounding =
        isfinite(last(&exact).hi) && !exact.is_looked_up && (pe_dtype_is_real(dtype) || has_fractions(&exact));
    if (has_rounding && take_steps(d, place, &rounded, err)) {
        if (is_asked || err->status == PE_NO_MEMORY)
            return err->status;
        has_rounding = false;
    }
    if (!has_rounding) {
        pe_put_null(node, "recipe");
        pe_put_null(node, "float32");
        pe_put_null(node, "lost");
        pe_put_detail(node, d->request->lang,
                      !exact.is_looked_up ? "Nothing is rounded on the way to this number."
                      : plan->scheme->info.is_of_machine
                          ? "A network computes the number in double, and it is rounded once, at the end."
                          : "The number comes from a table and is rounded once, at the end.");
        return PE_OK;
    }
    pe_put_string(node, "recipe", pe_recipes[rounded.recipe].name);
    put_rounded(&exact, &rounded, pe_put_list(node, "float32"));
    put_detail(d, place, &exact, &rounded, node);
    return PE_OK;
}

/* ---- All ---- */

static enum pe_status compute(struct pe_derive *d, struct pe_failure *err)
{
    if (pe_derive_find(d, err))
        return err->status;
    d->answer = pe_values_new();
    if (!d->answer)
        return pe_no_memory(err);
    struct pe_node *root = pe_values_root(d->answer);
    pe_put_value(root, "config", pe_plan_config(d->plan));
    if (d->n_numbers == 1)
        return put_one(d, &d->numbers[0], root, err);
    struct pe_node *list = pe_put_list(root, "numbers");
    for (size_t k = 0; k < d->n_numbers; k++)
        if (put_one(d, &d->numbers[k], pe_put_object(list, NULL), err))
            return err->status;
    return PE_OK;
}

enum pe_status pe_derive_new(const struct pe_derive_request *request, struct pe_derive **out, struct pe_failure *err)
{
    struct pe_derive *d = calloc(1, sizeof *d);
    if (!d)
        return pe_no_memory(err);
    d->request = request;
    enum pe_status status = compute(d, err);
    if (!status && !(d->stated = pe_values_done(d->answer)))
        status = pe_no_memory(err);
    if (status)
        pe_derive_free(d);
    else
        *out = d;
    return status;
}

void pe_derive_free(struct pe_derive *d)
{
    if (!d)
        return;
    pe_derive_close_map(d);
    pe_values_free(d->answer);
    pe_plan_free(d->plan);
    free(d);
}

const struct pe_value *pe_derive_answer(const struct pe_derive *d) { return d->stated; }

const struct pe_scheme_info *pe_derive_scheme(const struct pe_derive *d) { return pe_plan_scheme(d->plan); }
