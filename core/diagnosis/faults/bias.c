/* Faults of biases and buckets: slopes, forms, masks, alignment, buckets. */
#include "core/diagnosis/faults/slopes.h"

#include <stdlib.h>

#define OF_BIAS PE_EVIDENCE_BIT(BIAS)
#define OF_MAPS (PE_EVIDENCE_BIT(BIAS) | PE_EVIDENCE_BIT(BUCKETS))

/* An axis of the tensor [heads, queries, keys] or [queries, keys], counted from its end. */
static size_t axis(const struct pe_diagnosis *d, unsigned from_end)
{
    const struct pe_tensor *t = &d->evidence.tensors[0];
    return from_end < t->rank ? (size_t)t->shape[t->rank - 1 - from_end] : 1;
}
static size_t k_len(const struct pe_diagnosis *d) { return axis(d, d->evidence.is_turned ? 1 : 0); }
static size_t q_len(const struct pe_diagnosis *d) { return axis(d, d->evidence.is_turned ? 0 : 1); }
static size_t num_heads(const struct pe_diagnosis *d) { return axis(d, 2); }

static bool has(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name)
{
    return pe_edit_value(d, edit, name) != NULL;
}

static bool is_true(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, bool fallback)
{
    const struct pe_value *v = pe_edit_value(d, edit, name);
    return v && v->kind == PE_BOOLEAN ? v->boolean : fallback;
}

/* ---- Slopes ---- */

/* The mistakes found in public ports. h: head; n: the largest power of two that is at most num_heads. */
enum { LINEAR, LINEAR_OF_ALL, LINEAR_HALVED, PLAIN, HALVED, BF16, FITTED, N_SLOPES };

struct slopes {
    size_t n_heads, n;
    double bias_max;
    double right[PE_HEADS_MAX], wrong[PE_HEADS_MAX];
};

/* 2^(-bias_max·(h+1)/n) read as a product, over n heads. */
static double linear(const struct slopes *s, size_t h, size_t n)
{
    return (double)(h + 1) * exp2(-s->bias_max / (double)n);
}

static double wrong_slope(const struct slopes *s, size_t alternative, size_t h)
{
    switch (alternative) {
    case LINEAR: return linear(s, h, s->n);
    case LINEAR_OF_ALL: return linear(s, h, s->n_heads);
    case LINEAR_HALVED: return h < s->n ? linear(s, h, s->n) : linear(s, h - s->n, s->n) / 2;
    case PLAIN: return exp2(-s->bias_max * (double)(h + 1) / (double)s->n_heads);
    case HALVED: return h < s->n ? s->right[h] : s->right[h - s->n] / 2;
    default: return pe_bf16_value(pe_bf16_round(s->right[h]));
    }
}

static void set_wrong_slopes(struct slopes *s, size_t alternative)
{
    for (size_t h = 0; h < s->n_heads; h++)
        s->wrong[h] = wrong_slope(s, alternative, h);
}

static bool differ(const struct slopes *s)
{
    for (size_t h = 0; h < s->n_heads; h++)
        if (s->wrong[h] != s->right[h])
            return true;
    return false;
}

static struct slopes *slopes_new(struct pe_diagnosis *d, const struct pe_edit *edit)
{
    struct slopes *s = calloc(1, sizeof *s);
    d->no_memory |= !s;
    if (!s)
        return NULL;
    s->n_heads = num_heads(d);
    s->bias_max = pe_edit_real(d, edit, "bias_max", 8);
    for (s->n = 1; 2 * s->n <= s->n_heads;)
        s->n *= 2;
    if (pe_slopes_read(d, edit, s->n_heads, true, s->right))
        return s;
    free(s);
    return NULL;
}

static bool are_near(const double *a, const double *b, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++)
        if (fabs(a[i] - b[i]) > tolerance * fabs(a[i]))
            return false;
    return true;
}

/* A measured list near a known one is that one: the search has it already. */
static bool is_known(struct pe_diagnosis *d, struct slopes *s)
{
    double u = pe_evidence_noise(&d->evidence), *measured = malloc(s->n_heads * sizeof *measured);
    bool known = !measured;
    d->no_memory |= known;
    for (size_t i = 0; measured && i < s->n_heads; i++)
        measured[i] = s->wrong[i];
    for (size_t a = 0; !known && a < FITTED; a++) {
        set_wrong_slopes(s, a);
        known = are_near(measured, s->wrong, s->n_heads, 8 * u);
    }
    known = known || are_near(measured, s->right, s->n_heads, 8 * u);
    for (size_t i = 0; measured && i < s->n_heads; i++)
        s->wrong[i] = measured[i];
    free(measured);
    return known;
}

/* In the form asymmetric each side has its own list. */
static bool set_fitted_slopes(struct pe_diagnosis *d, struct slopes *s, struct pe_edit *edit)
{
    bool two_sides = pe_edit_is_word(d, edit, "form", "asymmetric");
    bool fits = pe_slopes_fit(d, edit, two_sides ? "slopes_left" : "slopes", s->n_heads, s->wrong) &&
                (two_sides ? pe_slopes_fit(d, edit, "slopes_right", s->n_heads, s->right) : !is_known(d, s));
    if (fits)
        pe_edit_set_reals(edit, two_sides ? "slopes_left" : "slopes", s->wrong, s->n_heads);
    if (fits && two_sides)
        pe_edit_set_reals(edit, "slopes_right", s->right, s->n_heads);
    return fits;
}

static bool slopes_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    struct slopes *s = slopes_new(d, edit);
    if (!s)
        return false;
    bool is_power = s->n == s->n_heads, applies = !(is_power && alternative >= LINEAR_OF_ALL && alternative <= HALVED);
    if (applies && alternative == FITTED)
        applies = set_fitted_slopes(d, s, edit);
    else if (applies) {
        set_wrong_slopes(s, alternative);
        applies = differ(s);
        pe_edit_set_reals(edit, "slopes", s->wrong, s->n_heads);
    }
    free(s);
    return applies;
}

enum { REVERSED, DESCENDING, ASCENDING, N_ORDERS };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void reverse(double *x, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        double kept = x[i];
        x[i] = x[n - 1 - i];
        x[n - 1 - i] = kept;
    }
}

static bool slopes_order(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    struct slopes *s = slopes_new(d, edit);
    if (!s)
        return false;
    memcpy(s->wrong, s->right, sizeof s->wrong);
    if (alternative != REVERSED)
        qsort(s->wrong, s->n_heads, sizeof *s->wrong, by_size);
    if (alternative != ASCENDING)
        reverse(s->wrong, s->n_heads);
    bool applies = differ(s);
    pe_edit_set_reals(edit, "slopes", s->wrong, s->n_heads);
    free(s);
    return applies;
}

const struct pe_fault pe_fault_slopes_other = {.schemes = "alibi",
                                               .evidence = OF_BIAS,
                                               .n_alternatives = N_SLOPES,
                                               .apply = slopes_other,
                                               .n_fits = 1,
                                               .fit_rank = 1,
                                               .fit_cost = 3};
const struct pe_fault pe_fault_slopes_order = {
    .schemes = "alibi", .evidence = OF_BIAS, .n_alternatives = N_ORDERS, .apply = slopes_order};

static bool bias_max_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    static const double values[] = {16, 4, 8};
    if (has(d, edit, "slopes") || pe_edit_real(d, edit, "bias_max", 8) == values[alternative])
        return false;
    pe_edit_set_real(edit, "bias_max", values[alternative]);
    return true;
}
const struct pe_fault pe_fault_bias_max_other = {
    .schemes = "alibi", .evidence = OF_BIAS, .n_alternatives = 3, .apply = bias_max_other};

/* ---- Forms ---- */

/* `asymmetric` differs from `symmetric` only by lists of slopes. */
static const char *const forms[] = {"symmetric", "relative", "key", "key_end", "key_mask"};

static bool form_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    if (pe_edit_is_word(d, edit, "form", forms[alternative]))
        return false;
    pe_edit_set_word(edit, "form", forms[alternative]);
    if (has(d, edit, "slopes_left"))
        pe_edit_remove(edit, "slopes_left");
    if (has(d, edit, "slopes_right"))
        pe_edit_remove(edit, "slopes_right");
    return true;
}
const struct pe_fault pe_fault_form_other = {
    .schemes = "alibi", .evidence = OF_BIAS, .n_alternatives = sizeof forms / sizeof *forms, .apply = form_other};

/* ---- Alignment of queries and keys ---- */

static bool is_run(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    static const char *const others[] = {"positions", "grid",        "lens",       "segments",
                                         "tokens",    "q_positions", "k_positions"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (has(d, edit, others[i]))
            return false;
    return true;
}

/* The first query's position, counted from the first key's: by default the last query stands at the last key. */
static int64_t usual_q_offset(const struct pe_diagnosis *d) { return (int64_t)k_len(d) - (int64_t)q_len(d); }

static int64_t q_offset(const struct pe_diagnosis *d, const struct pe_edit *edit)
{
    return pe_edit_integer(d, edit, "q_offset", usual_q_offset(d));
}

static bool alignment_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    if (!is_run(d, edit))
        return false;
    int64_t now = q_offset(d, edit), usual = usual_q_offset(d);
    const int64_t others[] = {0, usual, now + 1, now - 1};
    if (others[alternative] == now || (alternative == 1 && usual == 0))
        return false;
    pe_edit_set_integer(edit, "q_offset", others[alternative]);
    return true;
}
const struct pe_fault pe_fault_alignment_other = {.evidence = OF_MAPS, .n_alternatives = 4, .apply = alignment_other};

/* ---- Masks ---- */

static const char *const hiding[] = {"causal", "window", "window_right", "key_mask"};
enum { N_HIDING = sizeof hiding / sizeof *hiding };

static bool hides(const struct pe_diagnosis *d, const struct pe_edit *edit, size_t i)
{
    return i == 0 ? is_true(d, edit, hiding[i], false) : has(d, edit, hiding[i]);
}

static bool stop_hiding(const struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    if (!hides(d, edit, i))
        return false;
    if (i == 0)
        pe_edit_set_boolean(edit, hiding[i], false);
    else
        pe_edit_remove(edit, hiding[i]);
    return true;
}

/* One reason to hide keys is missing, or all of them. */
static bool mask_missing(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    if (alternative < N_HIDING)
        return stop_hiding(d, alternative, edit);
    size_t n = 0;
    for (size_t i = 0; i < N_HIDING; i++)
        n += stop_hiding(d, i, edit);
    return n > 1;
}
const struct pe_fault pe_fault_mask_missing = {
    .evidence = OF_BIAS, .n_alternatives = N_HIDING + 1, .apply = mask_missing};

/* What the tensor's own infinities say, for a run of queries against a run of keys. */
static bool is_hidden(const struct pe_diagnosis *d, uint64_t i, uint64_t j)
{
    double x;
    pe_evidence_read(&d->evidence, 0, i, j, 1, &x);
    return isinf(x);
}

/* The distance to the first hidden key at or before query i; 0: all are seen. */
static int64_t hidden_left(const struct pe_diagnosis *d, const struct pe_edit *edit, uint64_t i)
{
    for (int64_t j = q_offset(d, edit) + (int64_t)i, distance = 0; j >= 0; j--, distance++)
        if (j < (int64_t)k_len(d) && is_hidden(d, i, (uint64_t)j))
            return distance;
    return 0;
}

/* The same after query i. */
static int64_t hidden_right(const struct pe_diagnosis *d, const struct pe_edit *edit, uint64_t i)
{
    for (int64_t j = q_offset(d, edit) + (int64_t)i + 1, distance = 1; j < (int64_t)k_len(d); j++, distance++)
        if (j >= 0 && is_hidden(d, i, (uint64_t)j))
            return distance;
    return 0;
}

/* The window that the last query has to its left; to the right, what the first query sees unless the window or a
 * causal mask implies it. */
static bool read_window(struct pe_diagnosis *d, struct pe_edit *edit)
{
    if (!d->evidence.has_infinity || !is_run(d, edit))
        return false;
    int64_t window = hidden_left(d, edit, q_len(d) - 1), right = hidden_right(d, edit, 0);
    if (window < 1 || window == pe_edit_integer(d, edit, "window", 0))
        return false;
    pe_edit_set_integer(edit, "window", window);
    if (!is_true(d, edit, "causal", false) && right != window)
        pe_edit_set_integer(edit, "window_right", right ? right - 1 : (int64_t)k_len(d));
    return true;
}

/* Keys that no query sees, but the belief's mask shows. */
static bool read_key_mask(struct pe_diagnosis *d, struct pe_edit *edit)
{
    size_t n = k_len(d), last = q_len(d) - 1, n_hidden = 0;
    bool may_hide = d->evidence.has_infinity && !has(d, edit, "key_mask");
    double *mask = may_hide ? malloc(n * sizeof *mask) : NULL;
    d->no_memory |= may_hide && !mask;
    if (!mask)
        return false;
    for (size_t j = 0; j < n; j++) {
        mask[j] = !(is_hidden(d, last, j) && is_hidden(d, 0, j));
        n_hidden += mask[j] == 0;
    }
    if (n_hidden > 0 && n_hidden < n)
        pe_edit_set_reals(edit, "key_mask", mask, n);
    free(mask);
    return n_hidden > 0 && n_hidden < n;
}

static bool mask_extra(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    if (alternative == 1)
        return !has(d, edit, "window") && read_window(d, edit);
    if (alternative == 2)
        return read_key_mask(d, edit);
    if (is_true(d, edit, "causal", false))
        return false;
    pe_edit_set_boolean(edit, "causal", true);
    return true;
}
const struct pe_fault pe_fault_mask_extra = {
    .evidence = OF_BIAS, .n_alternatives = 3, .apply = mask_extra, .n_fits = 1, .fit_rank = 2, .fit_cost = 3};

static bool change_window(struct pe_diagnosis *d, const char *name, int64_t by, int64_t least, struct pe_edit *edit)
{
    int64_t now = pe_edit_integer(d, edit, name, least - 1);
    if (now < least || now + by < least)
        return false;
    pe_edit_set_integer(edit, name, now + by);
    return true;
}

static bool window_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    int64_t by = alternative % 2 ? 1 : -1;
    if (alternative < 2)
        return change_window(d, "window", by, 1, edit);
    if (alternative < 4)
        return change_window(d, "window_right", by, 0, edit);
    return has(d, edit, "window") && read_window(d, edit);
}
const struct pe_fault pe_fault_window_other = {.evidence = OF_BIAS, .n_alternatives = 5, .apply = window_other};

/* ---- Buckets of T5 ---- */

static bool bidirectional_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    (void)alternative;
    pe_edit_set_boolean(edit, "bidirectional", !is_true(d, edit, "bidirectional", true));
    return true;
}
const struct pe_fault pe_fault_bidirectional_other = {
    .schemes = "t5", .evidence = OF_MAPS, .n_alternatives = 1, .apply = bidirectional_other};

static const int64_t distances[] = {64,  128, 256, 512, 800, 96,  100, 160, 192, 200, 224,
                                    300, 320, 384, 400, 448, 480, 500, 576, 600, 640, 700};

static bool max_distance_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    if (pe_edit_integer(d, edit, "max_distance", 128) == distances[alternative])
        return false;
    pe_edit_set_integer(edit, "max_distance", distances[alternative]);
    return true;
}
const struct pe_fault pe_fault_max_distance_other = {.schemes = "t5",
                                                     .evidence = OF_MAPS,
                                                     .n_alternatives = sizeof distances / sizeof *distances,
                                                     .apply = max_distance_other};

/* ---- Parameters of the other schemes ---- */

static bool kind_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    (void)alternative;
    pe_edit_set_word(edit, "kind", pe_edit_is_word(d, edit, "kind", "power") ? "log" : "power");
    return true;
}
const struct pe_fault pe_fault_kind_other = {
    .schemes = "kerple", .evidence = OF_BIAS, .n_alternatives = 1, .apply = kind_other};

static const struct parameter {
    const char *scheme, *name;
    int64_t value, usual;
} parameters[] = {
    {"sandwich", "bar_dim", 128, 128},
    {"sandwich", "bar_dim", 64, 128},
    {"sandwich", "bar_dim", 32, 128},
    {"sandwich", "bar_dim", 256, 128},
    {"t5", "num_buckets", 32, 32},
    {"t5", "num_buckets", 64, 32},
    {"t5", "num_buckets", 16, 32},
    {"t5", "num_buckets", 128, 32},
    {"t5", "num_buckets", 320, 32},
    {"deberta", "position_buckets", -1, -1},
    {"deberta", "position_buckets", 256, -1},
    {"deberta", "position_buckets", 128, -1},
    {"deberta", "position_buckets", 64, -1},
    {"deberta", "position_buckets", 32, -1},
    {"deberta", "max_relative_positions", 512, 512},
    {"deberta", "max_relative_positions", 256, 512},
    {"deberta", "max_relative_positions", 128, 512},
    {"deberta", "max_relative_positions", 1024, 512},
};
enum { N_PARAMETERS = sizeof parameters / sizeof *parameters };

static bool exchange(struct pe_diagnosis *d, struct pe_edit *edit, const char *a, const char *b)
{
    const struct pe_value *x = pe_edit_value(d, edit, a), *y = pe_edit_value(d, edit, b);
    const struct pe_value one = {.kind = PE_REAL, .real = 1}, was_x = x ? *x : one, was_y = y ? *y : one;
    pe_edit_set(edit, a, was_y);
    pe_edit_set(edit, b, was_x);
    return x || y;
}

/* The last alternative: KERPLE's two numbers exchanged. */
static bool parameter_other(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    const char *scheme = d->belief.inheritance->scheme->info.name;
    if (alternative == N_PARAMETERS)
        return pe_same(scheme, "kerple") && exchange(d, edit, "r1", "r2");
    const struct parameter *p = &parameters[alternative];
    if (!pe_same(scheme, p->scheme) || pe_edit_integer(d, edit, p->name, p->usual) == p->value)
        return false;
    pe_edit_set_integer(edit, p->name, p->value);
    return true;
}
const struct pe_fault pe_fault_parameter_other = {.schemes = "kerple|sandwich|t5|deberta",
                                                  .evidence = OF_MAPS,
                                                  .n_alternatives = N_PARAMETERS + 1,
                                                  .apply = parameter_other};
