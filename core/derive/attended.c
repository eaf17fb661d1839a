/* scores and probs of /attention: one query with one key.
 *
 *     c_i = q'[a]·k'[a] + q'[b]·k'[b]    of each pair of channels that is turned; of other channels q[a]·k[a]
 *     q·k = Σ c_i;   l = softmax_scale·q·k + terms;   l = softcap·tanh(l/softcap);   s = l + bias, or −inf
 *     p = e^(s − max) / Σ e^(s_j − max)
 *
 * The products are taken exactly, of queries and keys as they are sent or projected. What needs the scheme's tables or
 * the whole row (its terms, the other keys' scores) is read from a second plan of the same map in double. The rows of
 * queries and keys are turned once, exactly and by the recipe, because a derivation is run again for each rounding. */
#include "core/attention/attention.h"
#include "core/derive/derive.h"
#include "core/encode/encode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 8, QUERY = 0, KEY = 1, EXACT = 0, ROUNDED = 1, NAME_BYTES = 24 };

/* Channels whose products are stated together: a pair that is turned, or one channel. */
struct group {
    size_t channels[2], n, number;
    bool is_turned;
};

struct pe_attended {
    const struct pe_plan *plan; /* in double */
    size_t batch, head, i, j;
    bool is_probs, has_rounded;
    size_t width;
    struct pe_dd rows[2][2][PE_HEAD_DIM_MAX]; /* [exact, rounded][query, key]: turned */
    struct group groups[PE_HEAD_DIM_MAX];     /* the largest LARGEST first */
    size_t n_groups;
    char names[LARGEST][NAME_BYTES];
    struct pe_pair_terms terms;
    size_t n_seen, of_max; /* keys; the one with the largest score */
    double max, others;    /* Σ e^(s_j − max) of the other keys that the query sees */
    /* What would be large on a stack. */
    struct pe_dd turned[PE_HEAD_DIM_MAX];
    struct pe_derivation of_turn;
};

/* Sums and products of which a part may be infinite. */
static struct pe_dd plus(struct pe_dd a, struct pe_dd b)
{
    return isfinite(a.hi + b.hi) ? dd_add(a, b) : dd(a.hi + b.hi);
}
static struct pe_dd times(struct pe_dd a, struct pe_dd b)
{
    return isfinite(a.hi * b.hi) ? dd_mul(a, b) : dd(a.hi * b.hi);
}
static struct pe_dd over(struct pe_dd a, struct pe_dd b)
{
    return isfinite(a.hi / b.hi) ? dd_div(a, b) : dd(a.hi / b.hi);
}
static struct pe_dd power(struct pe_dd x) { return x.hi > -700 && x.hi < 700 ? pe_dd_exp(x) : dd(exp(x.hi)); }
static struct pe_dd rounded(const struct pe_derivation *d, struct pe_dd x)
{
    return isfinite(x.hi) ? pe_derived_round(d, PE_F32, x) : x;
}

/* ---- Planning ---- */

void pe_derive_close_map(struct pe_derive *d)
{
    pe_plan_free(d->f64);
    free(d->attended);
    d->f64 = NULL;
    d->attended = NULL;
}

/* Bytes of the plan in double, beside those of the other. */
static enum pe_status admit_beside(void *caller, double bytes, struct pe_failure *err)
{
    const struct pe_derive *d = caller;
    return d->request->admit ? d->request->admit(d->request->caller, d->map_bytes + bytes, err) : PE_OK;
}

enum pe_status pe_derive_open_map(struct pe_derive *d, const struct pe_request *request, struct pe_failure *err)
{
    const struct pe_attention *t = d->plan->attention;
    struct pe_request in_double = *request;
    double maps = (double)t->n_batches * (double)t->n_heads, n = (double)d->n_numbers;
    double work = d->plan->work * fmin(1, n * ((double)t->block_rows + 1) / (maps * (double)t->q_len));
    if (work > d->request->max_work) {
        pe_fail(err, "", "the numbers need %.3g multiplications; allowed: at most %.3g", work, d->request->max_work);
        err->status = PE_TOO_LARGE;
        return pe_advise(err, PE_RAISE_WORK, NULL);
    }
    pe_derive_close_map(d);
    d->map_bytes = d->plan->cost.bytes + pe_attention_bytes(d->plan) + (double)sizeof *d->attended;
    if (admit_beside(d, 0, err))
        return err->status;
    if (!(d->attended = calloc(1, sizeof *d->attended)))
        return pe_no_memory(err);
    in_double.dtype = PE_F64;
    in_double.admit = admit_beside;
    in_double.caller = d;
    enum pe_status status = pe_plan_new(&in_double, &d->f64, err);
    return status ? status : admit_beside(d, d->f64->cost.bytes + pe_attention_bytes(d->f64), err);
}

/* ---- Rows of queries and keys ---- */

/* A cosine or sine of a pair at a row of positions, as /encode derives it. */
static enum pe_status turn_of(struct pe_attended *m, const struct pe_plan *plan, const char *output, size_t row,
                              size_t pair, enum pe_recipe recipe, struct pe_dd *x, struct pe_failure *err)
{
    struct pe_derivation *steps = &m->of_turn;
    struct pe_address at = {.index = {row, pair}, .row = row, .col = pair};
    steps->recipe = recipe;
    steps->n = 0;
    enum pe_status status = plan->scheme->derive(plan, pe_output_row_find(plan->scheme, output), &at, steps, err);
    *x = status ? dd(0) : steps->at[steps->n - 1].value;
    return status;
}

static struct pe_dd half_turn(const struct pe_derivation *d, struct pe_dd a, struct pe_dd cosine, struct pe_dd b,
                              struct pe_dd sine)
{
    return rounded(d, plus(rounded(d, times(a, cosine)), rounded(d, times(b, sine))));
}

/* Turns the row x of a side in place. */
static enum pe_status turn(struct pe_attended *m, int side, const struct pe_derivation *d, struct pe_dd *x,
                           struct pe_failure *err)
{
    const struct pe_attention *t = m->plan->attention;
    const struct pe_rotation *r = &t->turn.rotation;
    struct pe_plan room, plan = *pe_plan_of_batch(m->plan, m->batch, &room);
    struct pe_dd *y = m->turned;
    double factors[PE_HEAD_DIM_MAX / 2];
    size_t row = side == QUERY ? m->i : m->j;
    if (side == QUERY)
        memcpy(plan.seq.k, plan.seq.q, sizeof plan.seq.k);
    memcpy(y, x, m->width * sizeof *y);
    if (plan.scheme->magnitude)
        plan.scheme->magnitude(&plan, t->sides[side].id, plan.seq.k, row, 1, factors);
    for (size_t b = 0; b < r->n_blocks; b++)
        for (size_t c = 0; c < r->blocks[b].n_pairs; c++) {
            const struct pe_rotation_block *block = &r->blocks[b];
            size_t first = r->offset + block->first + c * block->step, second = first + block->partner;
            struct pe_dd cosine, sine;
            if (turn_of(m, &plan, "cos", row, block->pair0 + c, d->recipe, &cosine, err) ||
                turn_of(m, &plan, "sin", row, block->pair0 + c, d->recipe, &sine, err))
                return err->status;
            if (plan.scheme->magnitude) {
                struct pe_dd factor = rounded(d, dd(factors[block->pair0 + c]));
                cosine = rounded(d, times(factor, cosine));
                sine = rounded(d, times(factor, sine));
            }
            y[first] = half_turn(d, x[first], cosine, x[second], dd_neg(sine));
            y[second] = half_turn(d, x[second], cosine, x[first], sine);
        }
    for (size_t c = 0; c < r->n_pairs && r->to_half; c++) {
        x[r->offset + c] = y[r->offset + 2 * c];
        x[r->offset + r->n_pairs + c] = y[r->offset + 2 * c + 1];
    }
    if (!r->to_half)
        memcpy(x, y, m->width * sizeof *x);
    return PE_OK;
}

/* swinv2: the row divided by its norm. */
static void normalise(const struct pe_attended *m, const struct pe_derivation *d, struct pe_dd *x)
{
    struct pe_dd square = dd(0);
    for (size_t c = 0; c < m->width; c++)
        square = rounded(d, plus(square, rounded(d, times(x[c], x[c]))));
    double root = sqrt(square.hi);
    struct pe_dd norm = dd(root);
    if (root > 0 && isfinite(root)) /* a step of Newton's */
        norm = dd_add(norm, dd_div(dd_sub(square, dd_mul_d(dd(root), root)), dd(2 * root)));
    if (norm.hi < 1e-12)
        norm = dd(1e-12); /* torch.nn.functional.normalize */
    for (size_t c = 0; c < m->width; c++)
        x[c] = rounded(d, over(x[c], rounded(d, norm)));
}

static enum pe_status load_row(struct pe_attended *m, int side, const struct pe_derivation *d, struct pe_dd *x,
                               struct pe_failure *err)
{
    const struct pe_attention *t = m->plan->attention;
    const struct pe_operand *op = side == QUERY ? &t->q : &t->k;
    size_t head = side == QUERY ? m->head : m->head / (t->n_heads / t->n_kv_heads);
    size_t at = m->batch * op->batch_step + head * op->head_step + (side == QUERY ? m->i : m->j) * op->row_step;
    const char *row = (const char *)op->tensor.data + at * pe_dtype_size(op->tensor.dtype);
    double factor;
    for (size_t c = 0; c < m->width; c++)
        x[c] = rounded(d, dd(pe_element(op->tensor.dtype, row, c)));
    const struct pe_attend *attend = m->plan->scheme->attend;
    if (attend && attend->cosine && attend->cosine(m->plan, m->head, &factor))
        normalise(m, d, x);
    return t->turns ? turn(m, side, d, x, err) : PE_OK;
}

static enum pe_status load_rows(struct pe_attended *m, int run, enum pe_recipe recipe, struct pe_failure *err)
{
    struct pe_derivation d = {.recipe = recipe};
    enum pe_status status = load_row(m, QUERY, &d, m->rows[run][QUERY], err);
    return status ? status : load_row(m, KEY, &d, m->rows[run][KEY], err);
}

/* ---- Contributions ---- */

static void find_groups(struct pe_attended *m)
{
    const struct pe_attention *t = m->plan->attention;
    const struct pe_rotation *r = &t->turn.rotation;
    bool has_group[PE_HEAD_DIM_MAX] = {false};
    m->n_groups = 0;
    for (size_t b = 0; t->turns && b < r->n_blocks; b++)
        for (size_t c = 0; c < r->blocks[b].n_pairs; c++) {
            const struct pe_rotation_block *block = &r->blocks[b];
            size_t pair = block->pair0 + c, first = r->offset + (r->to_half ? pair : block->first + c * block->step);
            size_t second = first + (r->to_half ? r->n_pairs : block->partner);
            m->groups[m->n_groups++] = (struct group){{first, second}, 2, pair, true};
            has_group[first] = has_group[second] = true;
        }
    for (size_t c = 0; c < m->width; c++)
        if (!has_group[c])
            m->groups[m->n_groups++] = (struct group){{c, 0}, 1, c, false};
}

static struct pe_dd product_of(const struct pe_attended *m, const struct group *g, const struct pe_derivation *d)
{
    const struct pe_dd *q = m->rows[d->recipe != PE_RECIPE_EXACT][QUERY],
                       *k = m->rows[d->recipe != PE_RECIPE_EXACT][KEY];
    struct pe_dd sum = rounded(d, times(q[g->channels[0]], k[g->channels[0]]));
    return g->n < 2 ? sum : rounded(d, plus(sum, rounded(d, times(q[g->channels[1]], k[g->channels[1]]))));
}

/* The largest first, the others in their order. */
static void sort_groups(struct pe_attended *m)
{
    static const struct pe_derivation exact = {.recipe = PE_RECIPE_EXACT};
    for (size_t i = 0; i < LARGEST && i < m->n_groups; i++) {
        size_t most = i;
        for (size_t k = i + 1; k < m->n_groups; k++)
            if (fabs(product_of(m, &m->groups[k], &exact).hi) > fabs(product_of(m, &m->groups[most], &exact).hi))
                most = k;
        struct group largest = m->groups[most];
        memmove(&m->groups[i + 1], &m->groups[i], (most - i) * sizeof largest);
        m->groups[i] = largest;
        snprintf(m->names[i], sizeof m->names[i], "%s_%zu", largest.is_turned ? "pair" : "channel", largest.number);
    }
}

/* ---- The row of the map ---- */

static void read_row(struct pe_attended *m, struct pe_workspace *workspace)
{
    const struct pe_attention *t = m->plan->attention;
    const double *s = (const double *)workspace->block;
    pe_block_make(m->plan, workspace, PE_SCORES, m->batch, m->head, m->i, 1, workspace->block);
    m->max = -(double)INFINITY;
    m->n_seen = 0;
    m->others = 0;
    for (size_t j = 0; j < t->k_len; j++)
        if (s[j] > m->max || isnan(s[j])) {
            m->max = s[j];
            m->of_max = j;
        }
    for (size_t j = 0; j < t->k_len && !pe_is_cancelled_at(j); j++) {
        m->n_seen += s[j] != -(double)INFINITY;
        m->others += j == m->j ? 0 : exp(s[j] - m->max);
    }
}

enum pe_status pe_derive_open_pair(struct pe_derive *d, const struct pe_number_place *place, struct pe_failure *err)
{
    struct pe_attended *m = d->attended;
    const struct pe_attention *t = d->f64->attention;
    const struct pe_output *output = &d->plan->outputs[0];
    m->plan = d->f64;
    m->is_probs = pe_same(output->name, "probs");
    m->has_rounded = false;
    m->width = t->head_dim;
    if (t->turns && t->turn.rotation.is_tiled)
        return pe_fail(err, "/layout", "layout vjepa2 is no rotation of pairs and is not derived");
    m->j = place->element % t->k_len;
    m->i = place->element / t->k_len % t->q_len;
    m->head = place->element / t->k_len / t->q_len % t->n_heads;
    m->batch = place->element / t->k_len / t->q_len / t->n_heads;
    if (!pe_attention_is_given(t)) {
        if (load_rows(m, EXACT, PE_RECIPE_EXACT, err))
            return err->status;
        find_groups(m);
        sort_groups(m);
    }
    struct pe_workspace *workspace = pe_workspace_borrow(t, UINT64_MAX);
    pe_workspace_load_head(d->f64, workspace, m->batch, m->head);
    pe_block_make_pair(d->f64, workspace, m->batch, m->head, m->i, m->j, &m->terms);
    if (m->is_probs && !m->terms.is_hidden)
        read_row(m, workspace);
    pe_workspace_return(workspace, UINT64_MAX);
    return pe_was_cancelled() ? pe_cancelled(err) : PE_OK;
}

/* ---- The steps ---- */

static void state_group(const struct pe_attended *m, size_t i, struct pe_derivation *d)
{
    const struct group *g = &m->groups[i];
    const struct pe_dd *q = m->rows[EXACT][QUERY], *k = m->rows[EXACT][KEY];
    size_t a = g->channels[0], b = g->channels[1];
    if (g->n == 1)
        pe_derived(d, m->names[i], product_of(m, g, d), "q[%zu]·k[%zu] = %s·%s", a, a, pe_brief(q[a], 7).text,
                   pe_brief(k[a], 7).text);
    else
        pe_derived(d, m->names[i], product_of(m, g, d), "q'[%zu]·k'[%zu] + q'[%zu]·k'[%zu] = %s·%s + %s·%s", a, a, b, b,
                   pe_brief(q[a], 7).text, pe_brief(k[a], 7).text, pe_brief(q[b], 7).text, pe_brief(k[b], 7).text);
}

static struct pe_dd state_product(const struct pe_attended *m, struct pe_derivation *d)
{
    size_t n = m->n_groups < LARGEST ? m->n_groups : LARGEST;
    struct pe_dd sum = dd(0), rest = dd(0);
    for (size_t i = 0; i < n; i++) {
        state_group(m, i, d);
        sum = rounded(d, plus(sum, d->at[d->n - 1].value));
    }
    for (size_t i = n; i < m->n_groups; i++)
        rest = rounded(d, plus(rest, product_of(m, &m->groups[i], d)));
    if (n < m->n_groups) {
        rest = pe_derived(d, "rest", rest, "%s", "");
        pe_derived_says(d, "the sum of the %zu others", m->n_groups - n);
        sum = rounded(d, plus(sum, rest));
    }
    sum = pe_derived(d, "q·k", sum, "%s", "");
    pe_derived_says(d, "the sum of all of them");
    return sum;
}

/* A score that is given in place of the product. */
static struct pe_dd state_given(const struct pe_attended *m, struct pe_derivation *d)
{
    const struct pe_attention *t = m->plan->attention;
    const struct pe_operand *op = &t->given;
    size_t at = m->batch * op->batch_step + m->head * op->head_step + m->i * op->row_step + m->j;
    struct pe_dd x = dd(pe_element(op->tensor.dtype, op->tensor.data, at));
    x = pe_derived(d, "given", rounded(d, x), "scores[%zu, %zu, %zu]", m->head, m->i, m->j);
    return pe_derived(d, "l", rounded(d, times(rounded(d, dd(t->scale)), x)), "softmax_scale·given = %s·%s",
                      pe_shown(t->scale).text, pe_brief(x, 7).text);
}

static struct pe_dd state_scaled(const struct pe_attended *m, struct pe_dd product, struct pe_derivation *d)
{
    const struct pe_attention *t = m->plan->attention;
    const struct pe_attend *attend = m->plan->scheme->attend;
    const struct pe_side *queries = &t->sides[QUERY];
    double scale = t->scale;
    if (attend && attend->cosine && attend->cosine(m->plan, m->head, &scale)) {
        product = pe_derived(d, "l", rounded(d, times(rounded(d, dd(scale)), product)), "factor·q·k = %s·%s",
                             pe_shown(scale).text, pe_brief(product, 7).text);
        pe_derived_says(d, "queries and keys have the norm 1; the factor is the head's");
        return product;
    }
    if (queries->factors) {
        size_t n_batches = queries->positions->n_batches;
        double f = queries->factors[(n_batches ? m->batch % n_batches * t->q_len : 0) + m->i];
        struct pe_dd factor = pe_derived(d, "f", rounded(d, dd(f)), "%s", "");
        pe_derived_says(d, "query_scale: the factor of this query");
        product = rounded(d, times(factor, product));
    }
    return pe_derived(d, "l", rounded(d, times(rounded(d, dd(scale)), product)), "softmax_scale%s·q·k = %s·%s",
                      queries->factors ? "·f" : "", pe_shown(scale).text, pe_brief(product, 7).text);
}

/* l, and each of the scheme's terms. */
static struct pe_dd state_terms(const struct pe_attended *m, struct pe_dd l, bool is_last, struct pe_derivation *d)
{
    const struct pe_attend *attend = m->plan->scheme->attend;
    char text[PE_DERIVED_BYTES] = "l";
    size_t n = 0;
    if (!attend || !attend->parts || (!attend->add_part) != is_last)
        return l;
    for (size_t part = 1; attend->parts[part]; part++) {
        const char *name = attend->parts[part];
        if (attend->has_part && !attend->has_part(m->plan, part))
            continue;
        struct pe_dd term = pe_derived(d, name, rounded(d, dd(m->terms.parts[part])), "%s", "");
        pe_derived_says(d, "a term of %s, scaled", m->plan->scheme->info.name);
        l = rounded(d, plus(l, term));
        snprintf(text + strlen(text), sizeof text - strlen(text), " + %s", name);
        n++;
    }
    return n == 0 || is_last ? l : pe_derived(d, "l'", l, "%s", text);
}

static struct pe_dd state_cap(const struct pe_attended *m, struct pe_dd l, struct pe_derivation *d)
{
    double cap = m->plan->attention->fields.softcap;
    if (isnan(cap))
        return l;
    struct pe_dd x = over(l, dd(cap)), e = power(dd_mul_d(x, -2 * (x.hi < 0 ? -1 : 1)));
    struct pe_dd tanh_of = over(dd_sub(dd(1), e), dd_add(dd(1), e)); /* of |x| */
    if (fabs(x.hi) < 1e-3) { /* 1 − e would lose digits: x − x³/3 + 2x⁵/15 − 17x⁷/315 */
        struct pe_dd square = dd_mul(x, x);
        tanh_of = dd_sub(dd_div(dd(2), dd(15)), dd_mul(square, dd_div(dd(17), dd(315))));
        tanh_of = dd_sub(dd_div(dd(1), dd(3)), dd_mul(square, tanh_of));
        tanh_of = dd_mul(x, dd_sub(dd(1), dd_mul(square, tanh_of)));
    } else if (x.hi < 0)
        tanh_of = dd_neg(tanh_of);
    return pe_derived(d, "l_cap", rounded(d, dd_mul_d(tanh_of, cap)), "softcap·tanh(l/softcap) = %s·tanh(%s/%s)",
                      pe_shown(cap).text, pe_brief(l, 7).text, pe_shown(cap).text);
}

/* The bias by the scheme's own steps, where it has them; true: they end at the bias that the map adds. */
static bool state_steps_of_bias(const struct pe_attended *m, struct pe_derivation *d)
{
    struct pe_plan room;
    const struct pe_plan *plan = pe_plan_of_batch(m->plan, m->batch, &room);
    const struct pe_attention *t = m->plan->attention;
    struct pe_address at = {.index = {m->head, m->i, m->j}, .row = m->i, .col = m->j};
    struct pe_failure err;
    size_t before = d->n;
    double bias = m->terms.bias / t->bias_factor;
    if (plan->scheme->derive && !plan->scheme->derive(plan, t->bias_id, &at, d, &err) && d->n > before) {
        const struct pe_derived *last = &d->at[d->n - 1];
        if (last->has_value && fabs(last->value.hi - bias) <= 1e-4 * fabs(bias) + 1e-30)
            return true;
    }
    d->n = before;
    return false;
}

static struct pe_dd state_bias(const struct pe_attended *m, struct pe_dd l, struct pe_derivation *d)
{
    const struct pe_attention *t = m->plan->attention;
    if (t->bias_id == SIZE_MAX)
        return l;
    struct pe_dd bias = dd(m->terms.bias / t->bias_factor);
    if (!state_steps_of_bias(m, d)) {
        pe_derived(d, "bias", rounded(d, bias), "bias[%zu, %zu, %zu]", m->head, m->i, m->j);
        pe_derived_says(d, "the bias of %s", m->plan->scheme->info.name);
    }
    d->is_looked_up = false; /* the score is not, if its bias is */
    const char *name = d->at[d->n - 1].symbol,
               *of = isnan(t->fields.softcap) || t->fields.softcap_after_bias ? "l" : "l_cap";
    bias = d->at[d->n - 1].value;
    if (t->bias_factor != 1)
        bias = pe_derived(d, "b", rounded(d, dd_mul_d(bias, t->bias_factor)), "softmax_scale·%s", name);
    return pe_derived(d, "l_bias", rounded(d, plus(l, bias)), "%s + %s", of, t->bias_factor != 1 ? "b" : name);
}

/* Why the query does not see the key. */
static void say_hidden(const struct pe_attended *m, struct pe_derivation *d)
{
    const struct pe_attention *t = m->plan->attention;
    struct pe_plan room;
    const struct pe_sequence *seq = &pe_plan_of_batch(m->plan, m->batch, &room)->seq;
    bool is_by_place = t->by_place || seq->piece;
    double rel = is_by_place ? (double)m->j - ((double)m->i + (double)t->k_len - (double)t->q_len)
                             : pe_position_at(seq->k, m->j) - pe_position_at(seq->q, m->i);
    if (t->mask.seen && !t->mask.seen[m->batch % t->mask.n_masks * t->k_len + m->j])
        pe_derived_says(d, "key_mask hides the key");
    else if (seq->piece && seq->piece[m->i] != seq->piece[m->j])
        pe_derived_says(d, "query and key are of two packed sequences");
    else if (rel > 0)
        pe_derived_says(d, "the key is after the query");
    else
        pe_derived_says(d, "the key is before the window");
}

static struct pe_dd state_score(const struct pe_attended *m, struct pe_derivation *d)
{
    if (m->terms.is_hidden) {
        pe_derived(d, "s", dd(-(double)INFINITY), "−inf");
        say_hidden(m, d);
        return dd(-(double)INFINITY);
    }
    struct pe_dd l = pe_attention_is_given(m->plan->attention)
                         ? state_given(m, d)
                         : state_terms(m, state_scaled(m, state_product(m, d), d), false, d);
    if (m->plan->attention->fields.softcap_after_bias)
        l = state_cap(m, state_bias(m, l, d), d);
    else
        l = state_bias(m, state_cap(m, l, d), d);
    const char *before = d->at[d->n - 1].symbol;
    size_t n = d->n;
    l = state_terms(m, l, true, d);
    l = d->n == n ? pe_derived(d, "s", l, "%s", before)
                  : pe_derived(d, "s", l, "%s + %s", before, d->at[d->n - 1].symbol);
    pe_derived_says(d, "no mask hides the key");
    return l;
}

static void state_probability(const struct pe_attended *m, struct pe_dd s, struct pe_derivation *d)
{
    const struct pe_reals *sinks = &m->plan->attention->fields.sinks;
    if (m->terms.is_hidden) {
        pe_derived(d, "p", dd(0), "0");
        if (m->terms.is_empty)
            pe_derived_says(d, "the query sees no key");
        else
            pe_derived_says(d, "a hidden key has no weight");
        return;
    }
    struct pe_dd max = pe_derived(d, "max", m->of_max == m->j ? s : rounded(d, dd(m->max)), "%s", "");
    pe_derived_says(d, "the largest score of the row, that of key %zu", m->of_max);
    struct pe_dd difference = rounded(d, plus(s, dd_neg(max)));
    struct pe_dd e =
        pe_derived(d, "e", rounded(d, power(difference)), "exp(s − max) = exp(%s)", pe_brief(difference, 7).text);
    struct pe_dd sum = rounded(d, plus(e, dd(m->others)));
    if (sinks->n) {
        double sink = pe_real_at(sinks, m->head);
        struct pe_dd of_sink = pe_derived(d, "sink", rounded(d, power(plus(dd(sink), dd_neg(max)))),
                                          "exp(sinks[%zu] − max) = exp(%s − max)", m->head, pe_shown(sink).text);
        sum = rounded(d, plus(sum, of_sink));
    }
    sum = pe_derived(d, "Z", sum, sinks->n ? "Σ exp(s_j − max) + sink" : "Σ exp(s_j − max)");
    pe_derived_says(d, "over the %zu keys that the query sees", m->n_seen);
    pe_derived(d, "p", rounded(d, over(e, sum)), "e/Z = %s/%s", pe_brief(e, 7).text, pe_brief(sum, 7).text);
}

enum pe_status pe_derive_attended(const struct pe_derive *derive, struct pe_derivation *d, struct pe_failure *err)
{
    struct pe_attended *m = derive->attended;
    if (d->recipe != PE_RECIPE_EXACT && !m->has_rounded && !pe_attention_is_given(m->plan->attention)) {
        if (load_rows(m, ROUNDED, d->recipe, err))
            return err->status;
        m->has_rounded = true;
    }
    struct pe_dd s = state_score(m, d);
    if (m->is_probs)
        state_probability(m, s, d);
    return PE_OK;
}
