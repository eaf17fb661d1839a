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

/* Marks that the reader leaves; NULL where nobody wants them. */
struct pe_hf_marks {
    const struct pe_field **read; /* fields that were read; owned */
    size_t n_read, room;
    struct pe_hf_seen seen[PE_HF_OBJECTS_MAX];
    char pointers[PE_HF_OBJECTS_MAX][PE_POINTER_MAX];
    size_t n_seen;
    struct pe_field defaults[PE_HF_DEFAULTS_MAX]; /* values taken for missing fields */
    size_t n_defaults;
    const char *model_type;
    int64_t first;  /* position of the first token in the model's own code */
    bool is_told;   /* the request says what a model_type without a row is */
    bool is_unread; /* the row has not been confirmed */
    bool no_memory;
};

void pe_hf_mark_read(struct pe_hf_marks *marks, const struct pe_field *field); /* NULL is accepted, as below */
void pe_hf_mark_seen(struct pe_hf_marks *marks, const struct pe_value *object, const char *at);
void pe_hf_mark_default(struct pe_hf_marks *marks, const char *name, struct pe_value value);

#endif
