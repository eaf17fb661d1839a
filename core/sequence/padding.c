/* Positions of a padded batch. Transformers counts the tokens: position 0 is the first that is no padding, on whichever
 * side the padding is, and padding itself is at one position that does not matter (its code has 1). Code that sees no
 * padding counts the columns. */
#include "core/sequence/sequence.h"
#include "core/limits.h"

#include <stdlib.h>

const char *const pe_padding_words[] = {[PE_PADDING_SKIPPED] = "skipped", [PE_PADDING_COUNTED] = "counted", NULL};

static const struct pe_param rows[] = {PE_PADDING_PARAMS, PE_P_END};

const struct pe_param *pe_padding_params(void) { return rows; }

static enum pe_status check_values(const struct pe_padding *p, struct pe_failure *err)
{
    bool has_token = false;
    for (uint64_t i = 0; i < p->n_batches * p->n; i++) {
        double x = pe_real_at(p->mask, i);
        has_token |= x == 1;
        if (x != 0 && x != 1)
            return pe_fail(err, "/attention_mask", "attention_mask has %.10g; allowed: 0 and 1", x);
    }
    return has_token ? PE_OK : pe_fail(err, "/attention_mask", "attention_mask has no 1: every column is padding");
}

enum pe_status pe_padding_read(struct pe_padding *p, const struct pe_padding_fields *fields, struct pe_failure *err)
{
    const struct pe_tensor *t = &fields->attention_mask.array;
    *p = (struct pe_padding){.mask = &fields->attention_mask,
                             .n_batches = t->rank == 2 ? t->shape[0] : 1,
                             .n = t->rank ? t->shape[t->rank - 1] : 0,
                             .is_counted = fields->padding == PE_PADDING_COUNTED,
                             .pad_position = pe_given(fields->pad_position) ? (double)fields->pad_position : 1};
    if (t->rank < 1 || t->rank > 2)
        return pe_fail(err, "/attention_mask", "attention_mask has %u axes; needed: [batch][n], or [n]", t->rank);
    if (p->n_batches * p->n > PE_LISTED_POSITIONS_MAX) {
        pe_fail(err, "/attention_mask", "attention_mask has %llu columns in all; allowed: at most %d",
                (unsigned long long)(p->n_batches * p->n), PE_LISTED_POSITIONS_MAX);
        return err->status = PE_TOO_LARGE;
    }
    return check_values(p, err);
}

bool pe_padding_is_token(const struct pe_padding *p, uint64_t i) { return pe_real_at(p->mask, i) == 1; }

void pe_padding_positions(const struct pe_padding *p, bool is_counted, bool is_mirrored, double *out)
{
    for (uint64_t b = 0; b < p->n_batches; b++) {
        double next = p->offset;
        for (uint64_t i = 0; i < p->n; i++) {
            uint64_t at = b * p->n + (is_mirrored ? p->n - 1 - i : i);
            bool is_token = pe_padding_is_token(p, at);
            out[b * p->n + i] = is_counted ? p->offset + (double)i : is_token ? next : p->pad_position;
            next += is_token;
        }
    }
}
