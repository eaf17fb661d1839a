/* Who reads what of a config.json: tools that load the same file, and take other numbers from it.
 *
 * A tool is a row of readers.c. From the row follows the config that this tool sees: fields that it does not
 * read are left out, those that it takes from another place are moved. Read by the model_type's own row
 * (core/models/hf), that config gives the tool's numbers. So what holds for a class is written once, in its block of
 * types.txt, and what holds for a tool once, here. */
#ifndef PE_MODELS_READERS_H
#define PE_MODELS_READERS_H

#include "core/models/hf/hf.h"
#include "core/values.h"

/* Where a tool looks for a number that may be in the rope object or beside it. */
enum pe_reader_place {
    PE_INSIDE,       /* in the object only */
    PE_INSIDE_ELSE,  /* … else beside it */
    PE_OUTSIDE_ELSE, /* beside it, else in the object */
    PE_OUTSIDE       /* beside it only */
};

/* A rule of scaling as the tool has it. */
struct pe_reader_rule {
    const char *name;              /* the scheme's word for it; NULL ends the list */
    enum pe_reader_place original; /* of original_max_position_embeddings */
    double original_else;          /* where it finds none; 0: none */
    bool original_is_needed;       /* it stops without one */
    const char *unread;            /* fields of the object without effect */
    const char *unread_latent;     /* … in models with latent attention; NULL: the same */
    const char *convention;        /* of scaling; NULL: the usual one */
};

/* What a converter's class for some model_types writes. */
struct pe_reader_type {
    const char *types, *architecture; /* "llama|mistral", "llama"; NULL ends the list */
    bool has_no_rope;                 /* … neither a base nor a rule, whatever the config states */
    bool has_lists_only;              /* … of the rules only longrope */
};

struct pe_reader {
    const char *name, *label; /* "transformers4", as people write it */
    struct pe_about about;
    const char *source;
    const char *objects; /* names of the rope object, the first that is there and not empty counts */
    enum pe_reader_place base, share;
    const char *unread;           /* fields of the object, whatever the rule */
    const char *unread_by_layer;  /* … of one that has an object for each kind of layers */
    const char *unread_attention; /* fields of attn_config */
    const char *scaled_sliding;   /* model_types whose sliding layers it scales too, as the model was not trained */
    const struct pe_reader_rule *rules;
    bool drops_rules;       /* a rule that it has not is no rule to it; else it refuses the model */
    bool refuses_two_types; /* type and rope_type that differ */
    bool factor_is_needed;  /* without a factor there is no rule */
    const char *before, *unread_before,
        *rules_before; /* versions before this one did not read these fields of these rules */
    const struct pe_reader_type
        *types; /* it writes a file, for these model_types, which another program reads; NULL: no */
};

extern const struct pe_reader *const pe_readers[];        /* NULL-terminated, in the order of answers */
const struct pe_reader *pe_reader_find(const char *name); /* NULL: there is none */
const struct pe_reader *pe_reader_of_files(void);         /* that whose program reads GGUF files */
const struct pe_reader_rule *pe_reader_rule_find(const struct pe_reader *reader, const char *rule);
const struct pe_reader_type *pe_reader_type_find(const struct pe_reader *reader,
                                                 const char *model_type); /* NULL: none */

/* Which field of the given config a field of the rewritten one is. */
struct pe_reader_copy {
    const struct pe_field *copy, *original;
};

enum { PE_READER_COPIES_MAX = 1024 };

/* A config as a tool sees it. */
struct pe_reader_view {
    struct pe_value config;
    struct pe_reader_copy *copies;
    size_t n_copies;
};

/* Writes the view of a config; it lives as long as values, and borrows of the config. Fails with the tool's refusal. */
enum pe_status pe_reader_view(const struct pe_reader *reader, const struct pe_value *config,
                              const struct pe_hf_language *language, struct pe_values *values,
                              struct pe_reader_view *view, struct pe_failure *err);

/* The rope object of a language model's config that the reader looks into; NULL: none. */
const struct pe_field *pe_reader_object(const struct pe_reader *reader, const struct pe_value *config);
bool pe_rope_is_by_layer(const struct pe_value *object); /* has it an object for each kind of layers? */

#endif
