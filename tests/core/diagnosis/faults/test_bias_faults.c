/* Biases and buckets made wrong on purpose, by the formulas of the papers written here once more: the first candidate
 * gives the tensor, and the mistake is named. ALiBi: Press et al. 2021; T5: Raffel et al. 2019; KERPLE: Chi et al. 2022
 * (2205.09921); Sandwich: Chi et al. 2022 (2212.10356); FIRE: Li et al. 2023. */
#include "tests/core/diagnosis/ask.h"
#include "tests/support/random.h"

enum { HEADS_MAX = 40, HIDDEN = 4, BUCKETS_MAX = 64 };
enum scheme { ALIBI, T5, T5_BUCKETS, KERPLE, SANDWICH, FIRE };
enum form { SYMMETRIC, RELATIVE, KEY, KEY_END, KEY_MASK };
static const char *const form_words[] = {"symmetric", "relative", "key", "key_end", "key_mask"};

/* What a tensor is made from. */
struct recipe {
    enum scheme scheme;
    size_t n_heads, q_len, k_len;
    int64_t q_offset;
    bool causal, has_key_mask, hides_finite;
    int64_t window; /* 0: none */
    bool key_mask[64];
    enum form form;
    double bias_max, slopes[HEADS_MAX];
    bool own_slopes; /* stated as a list */
    bool is_log;
    double r1[HEADS_MAX], r2[HEADS_MAX];
    int64_t bar_dim;
    double base;
    int64_t num_buckets, max_distance;
    bool bidirectional;
    double table[BUCKETS_MAX * HEADS_MAX];
    double w1[HIDDEN], b1[HIDDEN], w2[HEADS_MAX * HIDDEN], b2[HEADS_MAX];
    /* Of the finished tensor. */
    bool negated, transposed;
    double factor, mask_value;
    int64_t zero_row;
};

static double uniform(double least, double most)
{
    return least + (most - least) * (double)(random_bits() >> 11) * 0x1p-53;
}
static int64_t among(int64_t least, int64_t most)
{
    return least + (int64_t)(random_bits() % (uint64_t)(most - least + 1));
}

/* ---- The formulas ---- */

static size_t power_below(size_t n)
{
    size_t p = 1;
    while (2 * p <= n)
        p *= 2;
    return p;
}

static void set_slopes(struct recipe *r)
{
    size_t n = power_below(r->n_heads);
    for (size_t h = 0; h < r->n_heads; h++)
        r->slopes[h] = h < n ? pow(2, -r->bias_max * (double)(h + 1) / (double)n)
                             : pow(2, -r->bias_max * (double)(2 * (h - n) + 1) / (double)(2 * n));
}

static double alibi(const struct recipe *r, size_t h, double q, double k, size_t j)
{
    double rel = k - q, m = r->slopes[h], count = 0;
    for (size_t i = 0; i < j; i++)
        count += !r->has_key_mask || r->key_mask[i];
    switch (r->form) {
    case SYMMETRIC: return -m * fabs(rel);
    case RELATIVE: return rel < 0 ? m * rel : 0;
    case KEY: return m * k;
    case KEY_END: return m * (k - (double)(r->k_len - 1));
    default: return m * (r->has_key_mask && !r->key_mask[j] ? 0 : count);
    }
}

/* Raffel et al.'s buckets; the logarithm's ties are far above the tolerance. */
static int64_t bucket(const struct recipe *r, int64_t rel)
{
    int64_t side = r->bidirectional ? r->num_buckets / 2 : r->num_buckets, e = side / 2;
    int64_t off = r->bidirectional && rel > 0 ? side : 0;
    int64_t n = r->bidirectional ? llabs(rel) : rel < 0 ? -rel : 0;
    if (n < e)
        return off + n;
    double steps = log((double)n / (double)e) / log((double)r->max_distance / (double)e) * (double)(side - e);
    int64_t b = e + (int64_t)floor(steps + 1e-9);
    return off + (b < side - 1 ? b : side - 1);
}

static double sandwich(const struct recipe *r, size_t h, double rel)
{
    double sum = 0;
    for (int64_t t = 0; t < r->bar_dim / 2; t++)
        sum += cos(rel * pow(r->base, -2.0 * (double)t / (double)r->bar_dim));
    return sum * (double)r->n_heads / (8 * (double)(h + 1));
}

static double fire(const struct recipe *r, size_t h, double q, double rel)
{
    double x = log1p(0.1 * fabs(rel)) / (log1p(0.1 * fmax(q, 512)) + 1e-6), y = r->b2[h];
    for (size_t u = 0; u < HIDDEN; u++)
        y += r->w2[h * HIDDEN + u] * fmax(r->w1[u] * x + r->b1[u], 0);
    return y;
}

static bool is_hidden(const struct recipe *r, double rel, size_t j)
{
    bool beyond = r->window && (-rel >= (double)r->window || rel >= (double)r->window);
    return (r->causal && rel > 0) || beyond || (r->has_key_mask && !r->key_mask[j]);
}

static double number_at(const struct recipe *r, size_t h, size_t i, size_t j)
{
    double q = (double)(r->q_offset + (int64_t)i), k = (double)j, rel = k - q;
    if (r->scheme == T5_BUCKETS)
        return (double)bucket(r, (int64_t)rel);
    if (is_hidden(r, rel, j))
        return -(double)INFINITY;
    switch (r->scheme) {
    case ALIBI: return alibi(r, h, q, k, j);
    case KERPLE: return r->is_log ? -r->r1[h] * log1p(r->r2[h] * fabs(rel)) : -r->r1[h] * pow(fabs(rel), r->r2[h]);
    case SANDWICH: return sandwich(r, h, rel);
    case FIRE: return fire(r, h, q, rel);
    default: return r->table[(size_t)bucket(r, (int64_t)rel) * r->n_heads + h];
    }
}

static double finished(const struct recipe *r, double x, size_t row)
{
    if (isinf(x))
        x = isnan(r->mask_value) ? x : r->mask_value;
    else
        x *= r->factor * (r->negated ? -1 : 1);
    return (int64_t)(row % r->q_len) == r->zero_row ? 0 : x + 0.0;
}

static struct sent make(const struct recipe *r, enum pe_dtype dtype)
{
    const uint64_t shape[] = {r->n_heads, r->q_len, r->k_len};
    bool buckets = r->scheme == T5_BUCKETS;
    size_t heads = buckets ? 1 : r->n_heads, at = 0;
    double *x = malloc(heads * r->q_len * r->k_len * sizeof *x);
    assert_non_null(x);
    for (size_t h = 0; h < heads; h++)
        for (size_t i = 0; i < r->q_len; i++)
            for (size_t j = 0; j < r->k_len; j++, at++)
                x[at] = finished(r, r->transposed ? number_at(r, h, j, i) : number_at(r, h, i, j), h * r->q_len + i);
    return buckets ? sent_new("buckets", PE_I32, 2, shape + 1, x) : sent_new("bias", dtype, 3, shape, x);
}

/* ---- Beliefs ---- */

static const char *const scheme_words[] = {"alibi", "t5", "t5", "kerple", "sandwich", "fire"};

static void print_list(char *json, size_t room, const char *name, const double *x, size_t n)
{
    size_t at = strlen(json);
    at += (size_t)snprintf(json + at, room - at, ",'%s':[", name);
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(json + at, room - at, "%s%.17g", i ? "," : "", x[i]);
    snprintf(json + at, room - at, "]");
}

static void print_own(const struct recipe *r, char *json, size_t room)
{
    size_t at = strlen(json);
    if (r->scheme == ALIBI)
        snprintf(json + at, room - at, ",'form':'%s','bias_max':%g", form_words[r->form], r->bias_max);
    if (r->scheme == T5 || r->scheme == T5_BUCKETS)
        snprintf(json + at, room - at, ",'num_buckets':%d,'max_distance':%d,'bidirectional':%s", (int)r->num_buckets,
                 (int)r->max_distance, r->bidirectional ? "true" : "false");
    if (r->scheme == SANDWICH)
        snprintf(json + at, room - at, ",'bar_dim':%d,'base':%g", (int)r->bar_dim, r->base);
    if (r->scheme == KERPLE) {
        snprintf(json + at, room - at, ",'kind':'%s'", r->is_log ? "log" : "power");
        print_list(json, room, "r1", r->r1, r->n_heads);
        print_list(json, room, "r2", r->r2, r->n_heads);
    }
}

static void print_mask(const struct recipe *r, char *json, size_t room)
{
    size_t at = strlen(json);
    if (r->scheme == T5_BUCKETS)
        return;
    if (r->causal)
        at += (size_t)snprintf(json + at, room - at, ",'causal':true");
    if (r->window)
        snprintf(json + at, room - at, ",'window':%d", (int)r->window);
    double mask[64];
    for (size_t j = 0; j < r->k_len; j++)
        mask[j] = r->key_mask[j];
    if (r->has_key_mask)
        print_list(json, room, "key_mask", mask, r->k_len);
}

static void print_belief(const struct recipe *r, char *json, size_t room)
{
    size_t at = (size_t)snprintf(json, room, "{'scheme':'%s'", scheme_words[r->scheme]);
    if (r->q_len != r->k_len || r->q_offset != 0)
        at += (size_t)snprintf(json + at, room - at, ",'q_len':%zu,'k_len':%zu", r->q_len, r->k_len);
    if (r->q_offset != (int64_t)r->k_len - (int64_t)r->q_len)
        snprintf(json + at, room - at, ",'q_offset':%d", (int)r->q_offset);
    print_own(r, json, room);
    print_mask(r, json, room);
    strncat(json, "}", room - strlen(json) - 1);
}

/* Weights as f64 tensors. */
static size_t list_weights(const struct recipe *r, struct pe_field *fields)
{
    const struct {
        enum scheme scheme;
        const char *name;
        unsigned rank;
        uint64_t rows, cols;
        const double *data;
    } all[] = {{T5, "table", 2, (uint64_t)r->num_buckets, r->n_heads, r->table},
               {FIRE, "w1", 2, HIDDEN, 1, r->w1},
               {FIRE, "b1", 1, HIDDEN, 0, r->b1},
               {FIRE, "w2", 2, r->n_heads, HIDDEN, r->w2},
               {FIRE, "b2", 1, r->n_heads, 0, r->b2}};
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].scheme == r->scheme)
            fields[n++] = (struct pe_field){
                all[i].name,
                {.kind = PE_ARRAY,
                 .array = {
                     .dtype = PE_F64, .rank = all[i].rank, .shape = {all[i].rows, all[i].cols}, .data = all[i].data}}};
    return n;
}

static void fill_random(double *x, size_t n, double least, double most)
{
    for (size_t i = 0; i < n; i++)
        x[i] = uniform(least, most);
}

static void set_masks(struct recipe *r)
{
    r->causal = random_bits() % 2;
    r->window = random_bits() % 4 ? 0 : among(2, (int64_t)r->q_len - 1);
    r->has_key_mask = random_bits() % 6 == 0;
    for (size_t j = 0, first = (size_t)among(1, (int64_t)r->k_len / 2); j < 64; j++)
        r->key_mask[j] = j >= first; /* left padding */
}

static void right_recipe(struct recipe *r, enum scheme scheme)
{
    static const int64_t bars[] = {16, 32, 64}, buckets[] = {8, 16, 32, 64}, distances[] = {64, 128, 256};
    memset(r, 0, sizeof *r);
    r->scheme = scheme;
    r->n_heads = (size_t)among(1, scheme == SANDWICH ? HEADS_MAX / 5 : HEADS_MAX); /* sums of cosines take time */
    r->q_len = (size_t)among(4, 64);
    r->k_len = random_bits() % 2 ? r->q_len : (size_t)among((int64_t)r->q_len, 64);
    r->q_offset = (int64_t)r->k_len - (int64_t)r->q_len;
    r->form = (enum form)(random_bits() % 5);
    r->bias_max = 8;
    r->is_log = random_bits() % 2;
    fill_random(r->r1, HEADS_MAX, 0.1, 2);
    fill_random(r->r2, HEADS_MAX, 0.1, 2);
    r->bar_dim = bars[random_bits() % 3];
    r->base = random_bits() % 2 ? 10000 : 500;
    r->num_buckets = buckets[random_bits() % 4];
    r->max_distance = distances[random_bits() % 3];
    r->bidirectional = random_bits() % 2;
    fill_random(r->table, BUCKETS_MAX * HEADS_MAX, -2, 2);
    fill_random(r->w1, HIDDEN, -1, 2);
    fill_random(r->b1, HIDDEN, -0.5, 1);
    fill_random(r->w2, HEADS_MAX * HIDDEN, -1, 1);
    fill_random(r->b2, HEADS_MAX, -1, 1);
    r->factor = 1;
    r->mask_value = (double)NAN;
    r->zero_row = -1;
    set_slopes(r);
    if (scheme != T5_BUCKETS)
        set_masks(r);
}

/* ---- Mistakes ---- */

/* Changes the recipe; false: it does not apply. */
typedef bool mistake_fn(struct recipe *r, size_t variant);

/* The slopes of a public course: the ratio multiplied by the head's number, instead of raised to it; the remaining
 * heads have half of the first ones. */
static bool linear_slopes(struct recipe *r, size_t variant)
{
    size_t n = power_below(r->n_heads), all = variant == 1 ? r->n_heads : n;
    double ratio = pow(2, -8 / (double)all);
    for (size_t h = 0; h < r->n_heads; h++)
        r->slopes[h] = (double)(h + 1) * ratio;
    for (size_t h = n; variant == 2 && h < r->n_heads; h++)
        r->slopes[h] = r->slopes[h - n] / 2;
    return r->n_heads > 1;
}

static bool plain_slopes(struct recipe *r, size_t variant)
{
    for (size_t h = 0; h < r->n_heads; h++)
        r->slopes[h] = pow(2, -8 * (double)(h + 1) / (double)r->n_heads);
    return variant == 0 && r->n_heads > 2;
}

static bool halved_slopes(struct recipe *r, size_t variant)
{
    size_t n = power_below(r->n_heads);
    for (size_t h = n; h < r->n_heads; h++)
        r->slopes[h] = r->slopes[h - n] / 2;
    return variant == 0 && n < r->n_heads;
}

static bool rounded_slopes(struct recipe *r, size_t variant)
{
    uint16_t bits;
    for (size_t h = 0; h < r->n_heads; h++) {
        pe_convert(PE_BF16, &bits, PE_F64, &r->slopes[h], 1);
        pe_convert(PE_F64, &r->slopes[h], PE_BF16, &bits, 1);
    }
    return variant == 0;
}

static bool free_slopes(struct recipe *r, size_t variant)
{
    fill_random(r->slopes, r->n_heads, 0.01, 1);
    return variant == 0 && r->n_heads > 1;
}

static bool order_slopes(struct recipe *r, size_t variant)
{
    double right[HEADS_MAX];
    memcpy(right, r->slopes, sizeof right);
    for (size_t h = 0; h < r->n_heads; h++)
        r->slopes[h] = right[r->n_heads - 1 - h];
    if (variant == 0)
        return r->n_heads > 1;
    for (size_t h = 0; h < r->n_heads; h++) /* sorted downwards */
        for (size_t i = h + 1; i < r->n_heads; i++)
            if (r->slopes[i] > r->slopes[h]) {
                double kept = r->slopes[h];
                r->slopes[h] = r->slopes[i];
                r->slopes[i] = kept;
            }
    return variant == 1;
}

static bool other_bias_max(struct recipe *r, size_t variant)
{
    r->bias_max = variant == 0 ? 16 : 4;
    set_slopes(r);
    return variant < 2 && r->n_heads > 1;
}

static bool other_form(struct recipe *r, size_t variant)
{
    r->form = (enum form)((size_t)r->form + 1 + variant) % 5;
    return variant < 4;
}

static bool other_alignment(struct recipe *r, size_t variant)
{
    r->q_offset = variant == 0 ? 0 : r->q_offset + (variant == 1 ? 1 : -1);
    return variant < 3;
}

static bool no_causal(struct recipe *r, size_t variant)
{
    bool was = r->causal;
    r->causal = false;
    return variant == 0 && was;
}

static bool no_window(struct recipe *r, size_t variant)
{
    bool was = r->window != 0;
    r->window = 0;
    return variant == 0 && was;
}

static bool no_key_mask(struct recipe *r, size_t variant)
{
    bool was = r->has_key_mask && r->form != KEY_MASK;
    r->has_key_mask = false;
    return variant == 0 && was;
}

static bool extra_causal(struct recipe *r, size_t variant)
{
    bool was = r->causal;
    r->causal = true;
    return variant == 0 && !was;
}

static bool other_window(struct recipe *r, size_t variant)
{
    bool was = r->window != 0;
    r->window += variant ? 1 : -1;
    return variant < 2 && was;
}

static bool other_bidirectional(struct recipe *r, size_t variant)
{
    r->bidirectional = !r->bidirectional;
    return variant == 0;
}

static bool other_max_distance(struct recipe *r, size_t variant)
{
    static const int64_t values[] = {64, 128, 256, 512, 800};
    r->max_distance = values[variant % 5];
    return variant < 5;
}

static bool other_kind(struct recipe *r, size_t variant)
{
    r->is_log = !r->is_log;
    return variant == 0;
}

static bool exchange_parameters(struct recipe *r, size_t variant)
{
    double kept[HEADS_MAX];
    memcpy(kept, r->r1, sizeof kept);
    memcpy(r->r1, r->r2, sizeof kept);
    memcpy(r->r2, kept, sizeof kept);
    return variant == 0;
}

static bool other_bar_dim(struct recipe *r, size_t variant)
{
    static const int64_t values[] = {32, 64, 128, 256};
    r->bar_dim = values[variant % 4];
    return variant < 4;
}

static bool other_base(struct recipe *r, size_t variant)
{
    static const double values[] = {500, 1000, 5e5, 1e6};
    r->base = values[variant % 4];
    return variant < 4;
}

static bool negate(struct recipe *r, size_t variant)
{
    r->negated = true;
    return variant == 0;
}

static bool transpose(struct recipe *r, size_t variant)
{
    r->transposed = true;
    return variant == 0 && r->q_len == r->k_len;
}

static bool scale(struct recipe *r, size_t variant)
{
    r->factor = variant ? uniform(0.1, 3) : 0.125;
    return variant < 2;
}

static bool zero_a_row(struct recipe *r, size_t variant)
{
    r->zero_row = among(0, (int64_t)r->q_len - 1);
    return variant == 0;
}

static bool finite_mask(struct recipe *r, size_t variant)
{
    static const double values[] = {-10000, -1e30, -3.4028234663852886e38};
    r->mask_value = values[variant % 3];
    return variant < 3 && (r->causal || r->window || r->has_key_mask);
}

static const struct mistake {
    const char *code;
    mistake_fn *make;
    size_t n_variants;
    unsigned schemes;  /* bits of enum scheme */
    bool is_of_tensor; /* done to the finished tensor: of another kind than the faults of biases */
} mistakes[] = {
    {"slopes_other", linear_slopes, 3, 1U << ALIBI, false},
    {"slopes_other", plain_slopes, 1, 1U << ALIBI, false},
    {"slopes_other", halved_slopes, 1, 1U << ALIBI, false},
    {"slopes_other", rounded_slopes, 1, 1U << ALIBI, false},
    {"slopes_other", free_slopes, 1, 1U << ALIBI, false},
    {"slopes_order", order_slopes, 2, 1U << ALIBI, false},
    {"bias_max_other", other_bias_max, 2, 1U << ALIBI, false},
    {"form_other", other_form, 4, 1U << ALIBI, false},
    {"alignment_other", other_alignment, 3, 0x3f, false},
    {"mask_missing", no_causal, 1, 0x3f & ~(1U << T5_BUCKETS), false},
    {"mask_missing", no_window, 1, 0x3f & ~(1U << T5_BUCKETS), false},
    {"mask_missing", no_key_mask, 1, 0x3f & ~(1U << T5_BUCKETS), false},
    {"mask_extra", extra_causal, 1, 0x3f & ~(1U << T5_BUCKETS), false},
    {"window_other", other_window, 2, 0x3f & ~(1U << T5_BUCKETS), false},
    {"bidirectional_other", other_bidirectional, 1, 1U << T5 | 1U << T5_BUCKETS, false},
    {"max_distance_other", other_max_distance, 5, 1U << T5 | 1U << T5_BUCKETS, false},
    {"kind_other", other_kind, 1, 1U << KERPLE, false},
    {"parameter_other", exchange_parameters, 1, 1U << KERPLE, false},
    {"parameter_other", other_bar_dim, 4, 1U << SANDWICH, false},
    {"base_other", other_base, 4, 1U << SANDWICH, false},
    {"negated", negate, 1, 0x3f & ~(1U << T5_BUCKETS), true},
    {"transposed", transpose, 1, 0x3f, true},
    {"scaled", scale, 2, 0x3f & ~(1U << T5_BUCKETS), true},
    {"zero_row", zero_a_row, 1, 0x3f & ~(1U << T5_BUCKETS), true},
    {"mask_value", finite_mask, 3, 0x3f & ~(1U << T5_BUCKETS), true},
};
enum { N_MISTAKES = sizeof mistakes / sizeof *mistakes, JSON_MAX = 16384 };

/* ---- Asking ---- */

struct outcome {
    bool is_asked, is_named, is_given;
    bool is_other; /* one other fault gives the tensor just as well */
};

/* Findings that are faults. */
static size_t n_found(const struct asked *a)
{
    size_t n = 0;
    while (item(member(a->answer, "findings"), n))
        n++;
    return n - (finding(a, "table_dtype") != NULL) - (finding(a, "undecided") != NULL);
}

static struct outcome ask_about(const struct recipe *belief, const struct sent *s, const char *const *codes,
                                size_t n_codes, bool is_told)
{
    char json[JSON_MAX];
    struct pe_field weights[8];
    struct asked a;
    struct outcome o = {.is_asked = true, .is_named = true};
    print_belief(belief, json, sizeof json);
    size_t n_weights = list_weights(belief, weights);
    ask(&a, json, s, weights, n_weights);
    if (!a.answer)
        fail_msg("%s: %s: %s", json, a.err.pointer, a.err.detail);
    for (size_t i = 0; i < n_codes; i++)
        o.is_named &= finding(&a, codes[i]) != NULL;
    o.is_given = !finding(&a, "unexplained") && reproduces(&a, s, 0);
    o.is_other = o.is_given && !o.is_named && n_found(&a) <= n_codes;
    if (is_told && (!o.is_named || !o.is_given))
        print_message("%.300s [%llu,%llu,%llu] %s: expected %s%s%s, got %s%s\n", json, (unsigned long long)s->shape[0],
                      (unsigned long long)s->shape[1], (unsigned long long)s->shape[2], pe_dtype_name(s->dtype),
                      n_codes ? codes[0] : "", n_codes > 1 ? ", " : "", n_codes > 1 ? codes[1] : "", codes_of(&a),
                      o.is_given ? "" : ", which does not give the tensor");
    asked_drop(&a);
    return o;
}

/* Sums of cosines and of a network's units cancel, so in f64 this test's own numbers are not within 4u of each. */
static enum pe_dtype any_dtype(enum scheme scheme)
{
    static const enum pe_dtype dtypes[] = {PE_F32, PE_F32, PE_F32, PE_BF16, PE_F16, PE_F64};
    return dtypes[random_bits() % (scheme == SANDWICH || scheme == FIRE ? 5 : 6)];
}

static bool any_mistake_changes(const struct recipe *right, const struct recipe *wrong, enum pe_dtype dtype,
                                struct sent *s)
{
    struct sent before = make(right, dtype);
    *s = make(wrong, dtype);
    bool same = sent_equal(&before, s);
    sent_free(&before);
    if (same)
        sent_free(s);
    return !same;
}

static struct outcome try_one(const struct mistake *m, enum scheme scheme)
{
    struct recipe right, wrong;
    struct sent s;
    enum pe_dtype dtype = any_dtype(scheme);
    right_recipe(&right, scheme);
    wrong = right;
    if (m->make == rounded_slopes && dtype != PE_F64) /* in 16 bits that is the same */
        dtype = PE_F32;
    if (!m->make(&wrong, random_bits() % m->n_variants) || !any_mistake_changes(&right, &wrong, dtype, &s))
        return (struct outcome){.is_asked = false};
    struct outcome o = ask_about(&right, &s, &m->code, 1, true);
    sent_free(&s);
    return o;
}

/* Of every mistake so many that apply to a recipe and change its tensor, however often that takes drawing. */
enum { ASKED = 6, DRAWN_MAX = 300 };

TEST(every_single_mistake_is_named)
{
    size_t n_asked = 0, n_named = 0, n_given = 0, n_other = 0;
    for (size_t m = 0; m < N_MISTAKES; m++) {
        struct score score = {.code = mistakes[m].code};
        for (size_t i = 0; i < DRAWN_MAX && score.asked < ASKED; i++) {
            enum scheme scheme = (enum scheme)(random_bits() % 6);
            while (!(mistakes[m].schemes & 1U << scheme))
                scheme = (enum scheme)((scheme + 1) % 6);
            struct outcome o = try_one(&mistakes[m], scheme);
            score.asked += o.is_asked;
            score.named += o.is_named;
            score.given += o.is_given;
            n_other += o.is_other;
        }
        print_message("%-20s %3zu asked, %3zu named, %3zu given\n", score.code, score.asked, score.named, score.given);
        assert_int_equal(score.asked, ASKED);
        n_asked += score.asked;
        n_named += score.named;
        n_given += score.given;
    }
    print_message("all: %zu asked, %zu named, %zu given, %zu by another fault\n", n_asked, n_named, n_given, n_other);
    assert_int_equal(n_named + n_other, n_asked);
    assert_true(n_other * 25 <= n_asked);
    assert_int_equal(n_given, n_asked);
}

/* One mistake in the formula and one in the finished tensor; each of them must change it. */
static struct outcome try_two(const struct mistake *a, const struct mistake *b, enum scheme scheme)
{
    struct recipe right, one, other, both;
    struct sent s, t;
    enum pe_dtype dtype = any_dtype(scheme);
    const char *const codes[] = {a->code, b->code};
    struct outcome o = {.is_asked = false};
    right_recipe(&right, scheme);
    one = other = right;
    bool applies = a->make(&one, random_bits() % a->n_variants);
    both = one;
    size_t variant = random_bits() % b->n_variants;
    if (!applies || !b->make(&other, variant) || !b->make(&both, variant))
        return o;
    both.factor = other.factor; /* drawn once */
    both.zero_row = other.zero_row;
    if (!any_mistake_changes(&one, &both, dtype, &s))
        return o;
    if (any_mistake_changes(&other, &both, dtype, &t)) {
        sent_free(&t);
        o = ask_about(&right, &s, codes, 2, true);
    }
    sent_free(&s);
    return o;
}

enum { PAIRS = 24 };

TEST(pairs_of_mistakes_are_named)
{
    size_t n_asked = 0, n_named = 0, n_other = 0;
    while (n_asked < PAIRS) {
        const struct mistake *a = &mistakes[random_bits() % N_MISTAKES], *b = &mistakes[random_bits() % N_MISTAKES];
        enum scheme scheme = (enum scheme)(random_bits() % 6);
        if (a->is_of_tensor || !b->is_of_tensor || !(a->schemes & b->schemes & 1U << scheme))
            continue;
        struct outcome o = try_two(a, b, scheme);
        n_asked += o.is_asked;
        n_named += o.is_named && o.is_given;
        n_other += o.is_other;
    }
    print_message("pairs: %zu asked, %zu named, %zu by others\n", n_asked, n_named, n_other);
    assert_true((double)(n_named + n_other) >= 0.98 * (double)n_asked);
    assert_true((double)n_other <= 0.15 * (double)n_asked);
}

/* Without a belief: ALiBi's tensor alone. */
TEST(a_lone_tensor_is_identified)
{
    for (size_t i = 0; i < 30; i++) {
        struct recipe r;
        struct asked a;
        right_recipe(&r, i % 3 ? ALIBI : T5_BUCKETS);
        r.window = 0;
        r.has_key_mask = false;
        r.num_buckets = 32;
        r.max_distance = 128;
        struct sent s = make(&r, any_dtype(r.scheme));
        ask(&a, "{}", &s, NULL, 0);
        if (!a.answer)
            fail_msg("%s: %s", a.err.pointer, a.err.detail);
        if (!finding(&a, "identified") || !reproduces(&a, &s, 0))
            fail_msg("form %s, causal %d: %s", form_words[r.form], r.causal, codes_of(&a));
        asked_drop(&a);
        sent_free(&s);
    }
}

/* Twelve positions do not tell where T5's buckets end; the position that the answer names does, and none before it. */
TEST(what_a_small_tensor_leaves_open_is_undecided)
{
    struct recipe r, rival;
    struct asked a;
    right_recipe(&r, T5_BUCKETS);
    r.q_len = r.k_len = 12;
    r.q_offset = 0;
    r.num_buckets = 32;
    r.max_distance = 128;
    r.bidirectional = true;
    struct sent s = make(&r, PE_I32);
    ask(&a, "{'scheme':'t5'}", &s, NULL, 0);
    const struct pe_value *undecided = finding(&a, "undecided");
    assert_non_null(finding(&a, "as_believed"));
    assert_non_null(undecided);
    size_t j = (size_t)number(undecided, "candidate");
    int64_t position = (int64_t)number(undecided, "position");
    assert_true(reproduces(&a, &s, j));
    rival = r;
    rival.max_distance = (int64_t)number(member(item(member(a.answer, "candidates"), j), "config"), "max_distance");
    for (int64_t p = 0; p < position; p++)
        assert_int_equal(bucket(&r, -p), bucket(&rival, -p));
    assert_int_not_equal(bucket(&r, -position), bucket(&rival, -position));
    asked_drop(&a);
    sent_free(&s);
}

TEST(the_right_tensor_is_as_believed)
{
    static const char *const codes[] = {"as_believed"};
    for (size_t i = 0; i < 24; i++) {
        struct recipe r;
        right_recipe(&r, (enum scheme)(i % 6));
        struct sent s = make(&r, any_dtype(r.scheme));
        struct outcome o = ask_about(&r, &s, codes, 1, true);
        assert_true(o.is_named && o.is_given);
        sent_free(&s);
    }
}
