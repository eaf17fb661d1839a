/* What a reader of a config.json has read of it. */
#ifndef PE_MODELS_HF_MARKS_H
#define PE_MODELS_HF_MARKS_H

#include "core/posenc.h"

enum { PE_HF_OBJECTS_MAX = 8, PE_HF_DEFAULTS_MAX = 24 };

/* An object of the config that was looked into. */
struct pe_hf_seen {
    const struct pe_value *object;
    const char *at; /* the pointer to it */
};

enum { PE_HF_KINDS_MAX = 8, PE_HF_KIND_BYTES = 48, PE_HF_LAYERS_MAX = 4096 };

/* The kinds of layers of a config's model. */
struct pe_hf_layers {
    char kinds[2 * PE_HF_KINDS_MAX][PE_HF_KIND_BYTES]; /* from PE_HF_KINDS_MAX on those that are no attention */
    size_t n_kinds;                                    /* at least 1 */
    size_t n_others;                                   /* kinds that are no attention */
    size_t n;                                          /* layers of one stack; 0: not known */
    unsigned char kind_of[PE_HF_LAYERS_MAX];
    bool are_certain;                /* the model has no other kinds */
    bool are_merged;                 /* layers of other masks are among the one kind, and nothing states which */
    bool are_too_many;               /* … kinds to be listed here */
    bool are_stacks;                 /* each kind is a stack of its own, … */
    int64_t depths[PE_HF_KINDS_MAX]; /* … of so many layers; 0: not known */
};

/* Marks that the reader leaves; NULL where they are of no interest. */
struct pe_hf_marks {
    const struct pe_field **read; /* fields that were read; owned */
    size_t n_read, room;
    struct pe_hf_seen seen[PE_HF_OBJECTS_MAX];
    char pointers[PE_HF_OBJECTS_MAX][PE_POINTER_MAX];
    size_t n_seen;
    struct pe_field defaults[PE_HF_DEFAULTS_MAX]; /* values taken for missing fields */
    size_t n_defaults;
    const char *model_type;
    struct pe_hf_layers layers;
    const char *layer_type;      /* NULL: not given, and all kinds are alike */
    int64_t first;               /* position of the first token in the model's own code */
    bool is_told;                /* the request states what a model_type without a row is */
    enum pe_certainty certainty; /* of the row */
    bool no_memory;
};

void pe_hf_mark_read(struct pe_hf_marks *marks, const struct pe_field *field); /* NULL is accepted, as below */
void pe_hf_mark_seen(struct pe_hf_marks *marks, const struct pe_value *object, const char *at);
void pe_hf_mark_default(struct pe_hf_marks *marks, const char *name, struct pe_value value);

#endif
