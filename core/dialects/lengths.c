/* The lengths of sequences at which two configurations are compared.
 *
 * A rule that depends on the length of the sequence is one up to a border and another beyond it; vLLM's longrope
 * changes one position later. So lengths fall into stretches within which both sides keep their rule, and one length of
 * each stretch is compared. A rule that grows is another one at every length, and may equal a fixed table at one of
 * them, as that of vLLM at factor times the border; so where it differs one position after the border it differs
 * beyond. Without a length in the request the last stretch has no end; it is compared at twice factor times the border,
 * or behind the model's length. */
#include "core/dialects/dialects.h"
#include "core/schemes/scalings/scaling.h"

#include <stdio.h>
#include <string.h>

static const int64_t length_max = INT64_C(1) << 31; /* of a request */

static const struct pe_scaling_rule *rule_of(const struct pe_value *config)
{
    const struct pe_scaling_rule *rule = pe_scaling_find(pe_config_word(config, "scaling.type"));
    return pe_scaling_depends_on_length(rule) ? rule : NULL;
}

int64_t pe_dialect_border(const struct pe_value *config)
{
    const struct pe_scaling_rule *rule = rule_of(config);
    struct pe_value scaling = pe_config_at(config, "scaling");
    double border = rule ? pe_config_number(&scaling, rule->border, 0) : 0;
    return border >= 1 && border < (double)length_max ? (int64_t)border : 0;
}

/* A length at which the rule is far from what it is up to its border, and from a table of factor times that. */
static int64_t far_beyond(const struct pe_value *config)
{
    double factor = pe_config_number(config, "scaling.factor", 0);
    return (int64_t)fmin(2 * fmax(factor, 1) * (double)pe_dialect_border(config), (double)length_max);
}

/* The length from which a rule of the two is another one at every length. */
static int64_t first_that_grows(const struct pe_value *const configs[2])
{
    int64_t first = PE_NO_END;
    for (size_t side = 0; side < 2; side++) {
        const struct pe_scaling_rule *rule = rule_of(configs[side]);
        int64_t border = pe_dialect_border(configs[side]);
        if (border && rule->grows && border + 1 < first)
            first = border + 1;
    }
    return first;
}

/* The last length of each stretch, in order and once each. */
static void add_end(int64_t *ends, size_t *n, int64_t end)
{
    size_t i = 0;
    while (i < *n && ends[i] < end)
        i++;
    if (i < *n && ends[i] == end)
        return;
    memmove(&ends[i + 1], &ends[i], (*n - i) * sizeof *ends);
    ends[i] = end;
    (*n)++;
}

size_t pe_dialect_stretches(const struct pe_explain *ex, const struct pe_value *ours, const struct pe_value *theirs,
                            struct pe_stretch *out)
{
    const struct pe_value *const configs[] = {ours, theirs};
    int64_t ends[PE_STRETCHES_MAX], last = ex->is_length_asked ? ex->length : length_max, beyond = 0;
    size_t n = 0;
    for (size_t side = 0; side < 2; side++) {
        int64_t border = pe_dialect_border(configs[side]), far = far_beyond(configs[side]);
        for (int64_t end = border; border && end <= border + 1; end++)
            if (end < last)
                add_end(ends, &n, end);
        beyond = far > beyond ? far : beyond;
    }
    add_end(ends, &n, ex->length);
    int64_t first_grown = first_that_grows(configs);
    bool has_end = ex->is_length_asked || !beyond || ends[n - 1] >= length_max;
    for (size_t i = 0; i < n; i++)
        out[i] = (struct pe_stretch){i ? ends[i - 1] + 1 : 1, ends[i], ends[i], ends[i] > first_grown};
    if (!has_end) {
        int64_t from = ends[n - 1] + 1;
        out[n++] = (struct pe_stretch){from, PE_NO_END, beyond > from ? beyond : from, from > first_grown};
    }
    return n;
}

size_t pe_dialect_n_lengths(const struct pe_explain *ex, const struct pe_dialect_kind *kind)
{
    struct pe_stretch stretches[PE_STRETCHES_MAX];
    return pe_dialect_stretches(ex, kind->own.config, kind->own.config, stretches);
}

/* ---- Those at which the two differ ---- */

void pe_lengths_add(struct pe_lengths *lengths, const struct pe_stretch *stretch, bool differs)
{
    struct pe_stretch *last = lengths->n ? &lengths->list[lengths->n - 1] : NULL;
    bool goes_on = last && last->to + 1 == stretch->from;
    if (goes_on && (differs || stretch->grows))
        last->to = stretch->to;
    else if (differs)
        lengths->list[lengths->n++] = *stretch;
}

void pe_lengths_done(struct pe_lengths *lengths, const struct pe_stretch *last)
{
    if (lengths->n == 1 && lengths->list[0].from == 1 && lengths->list[0].to == last->to)
        lengths->n = 0;
}

void pe_put_lengths(struct pe_node *node, const struct pe_lengths *lengths)
{
    if (!lengths->n)
        return;
    struct pe_node *list = pe_put_list(node, "lengths");
    for (size_t i = 0; i < lengths->n; i++) {
        struct pe_node *pair = pe_put_list(list, NULL);
        pe_put_integer(pair, NULL, lengths->list[i].from);
        pe_put_count_or_null(pair, NULL, lengths->list[i].to == PE_NO_END ? -1 : lengths->list[i].to);
    }
}

void pe_lengths_print(const struct pe_lengths *lengths, enum pe_lang lang, char *out, size_t room)
{
    *out = '\0';
    if (!lengths->n)
        return;
    long long from = lengths->list[0].from, to = lengths->list[lengths->n - 1].to;
    if (to == PE_NO_END)
        snprintf(out, room, pe_text_in(lang, " Only sequences of %lld positions or more differ."), from);
    else if (from == to)
        snprintf(out, room, pe_text_in(lang, " Only sequences of %lld positions differ."), from);
    else
        snprintf(out, room, pe_text_in(lang, " Only sequences of %lld to %lld positions differ."), from, to);
}
