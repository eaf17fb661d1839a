/* A translation's entries: a target, and one kind of layers or all, with what is exported and what is lost. */
#ifndef PE_STATEMENT_H
#define PE_STATEMENT_H

#include "core/dialects/dialects.h"

enum { PE_LOSSES_MAX = 24, PE_REQUIRED_MAX = 8 };

struct pe_loss {
    const char *what;
    struct pe_value wanted, gets;
    const char *layer_type; /* NULL: of one kind only */
    const char *pattern, *a, *b;
    const struct pe_lengths *lengths; /* NULL: of all */
};

/* One entry of the answer: a target, and one kind or all. */
struct pe_statement {
    struct pe_explain *ex;
    const struct pe_tool *target;
    const struct pe_dialect_kind *const *kinds;
    size_t n_kinds;
    const struct pe_dialect_kind *kind; /* the one that is compared */
    const char *architecture;
    bool is_assumed;

    const char *layout;    /* of the tool */
    struct pe_value value; /* PE_NULL: nothing was exported */
    struct pe_field required[PE_REQUIRED_MAX];
    size_t n_required;
    struct pe_loss losses[PE_LOSSES_MAX];
    size_t n_losses;
    struct pe_distance distance;
    bool has_distance;
    bool has_other_layers; /* of a file: its architecture has another pattern */
    bool is_refused;       /* what was exported cannot be imported */
};

/* ---- statement.c ---- */

/* States the kinds of an entry whose target, kinds and architecture are set, reads them back and compares. */
enum pe_status pe_statement_fill(struct pe_statement *e);
/* Entries live as long as the answer, which borrows of them. */
void pe_statement_put(struct pe_statement *e, struct pe_node *list, const char *layer_type);
bool pe_is_local(const struct pe_explain *ex, const struct pe_dialect_kind *kind);

/* ---- losses.c ---- */

/* Adds a loss of the kind, in the words of a pattern, in which {a} and {b} may be; the words of both are copied. */
struct pe_loss *pe_add_loss(struct pe_statement *e, const char *what, struct pe_value wanted, struct pe_value gets,
                            const char *pattern);
/* The kind, and what the tool reads back, for sequences of one stretch of lengths. */
struct pe_sides {
    struct pe_stretch stretch;
    struct pe_reading ours, theirs;
};

/* What differs, and how far; sides[at] is that of the answer's length. */
enum pe_status pe_statement_compare(struct pe_statement *e, const struct pe_sides *sides, size_t n, size_t at);
bool pe_is_permuted(const char *ours, const char *theirs); /* layouts: do rows of q and k change places? */
struct pe_value pe_word_or(const struct pe_reading *reading, const char *path, const char *otherwise);
const char *pe_keep_word(struct pe_values *values, const char *word); /* a copy; "" without memory */

#endif
