/* Edits: fields of the request that replace the belief's, and transforms of the numbers. A fault writes into one. */
#ifndef PE_EDIT_H
#define PE_EDIT_H

#include "core/scheme.h"

struct pe_diagnosis;

/* Of the last two, base and power are rounded before 1 is divided by them: w = fl(1/fl(fl(base)^e)). */
enum pe_recipe {
    PE_RECIPE_NONE,
    PE_RECIPE_F32,
    PE_RECIPE_BF16_INV_FREQ,
    PE_RECIPE_F16_INV_FREQ,
    PE_RECIPE_BF16,
    PE_RECIPE_BF16_INV_FREQ_DIVIDED,
    PE_RECIPE_BF16_DIVIDED
};
enum pe_sinusoid_change {
    PE_SINUSOID_AS_IS,
    PE_EXPONENT_PER_COLUMN,
    PE_EXPONENT_DOUBLED,
    PE_LADDER_FROM_ONE,
    PE_SINE_ONLY
};

/* Channels in another order: channel j of head h is channel order[h·head_dim + j], counted through as many heads as the
 * order has. */
struct pe_channels {
    const uint32_t *order; /* [n]; NULL: not */
    size_t n;              /* head_dim, or that of all heads */
    bool is_after;         /* the rotated vector's; else q's, before it is rotated */
    int times;             /* of the conversion interleaved to half, negative: of its inverse; 0: another order */
    int64_t heads;         /* in so many heads */
};

/* Applied to the numbers of a plan, in this order. */
struct pe_transforms {
    struct pe_channels channels;
    enum pe_recipe recipe;
    enum pe_sinusoid_change sinusoid;
    bool inverted; /* 1/x: timescales in place of frequencies */
    bool sin_cos_swapped, negated, transposed;
    double wrapped_from; /* angles are reduced modulo 2pi, the smallest is this; NaN: not */
    double scaled;       /* 1: not */
    double mask_value;   /* in place of -infinity; NaN: not */
    int64_t zero_row;    /* this row is 0 (the position, for every head); -1: none */
    unsigned n_axes;     /* `axes`: axis i of the ids is axis order[i] of the plan's; 0: not */
    unsigned char order[PE_AXES_MAX];
};

enum { PE_EDIT_FIELDS_MAX = 48, PE_EDIT_ROOMS_MAX = 16 };

struct pe_edit {
    struct pe_field fields[PE_EDIT_FIELDS_MAX]; /* replace the belief's of the same name; PE_NULL: removed */
    size_t n_fields;
    unsigned char by[PE_EDIT_FIELDS_MAX]; /* which fault of the hypothesis set the field last */
    unsigned char now;                    /* the fault that is being applied */
    struct pe_transforms transforms;
    const char *presets[1]; /* a preset that this edit copies, else NULL */
    void *owned[PE_EDIT_ROOMS_MAX];
    size_t n_owned;
    bool failed;      /* no memory */
    bool is_hopeless; /* a fit has found that no angles make it fit: such pairs are not rotated, or have no such rule */
};

void pe_edit_init(struct pe_edit *edit); /* of nothing: the belief itself */
void pe_edit_drop(struct pe_edit *edit);
void *pe_edit_room(struct pe_edit *edit, size_t n_bytes); /* zeros, freed with the edit; NULL: edit->failed */

/* Replaces a field; a later one of the same name wins. Names are literals. */
void pe_edit_set(struct pe_edit *edit, const char *name, struct pe_value value);
void pe_edit_set_integer(struct pe_edit *edit, const char *name, int64_t x);
void pe_edit_set_real(struct pe_edit *edit, const char *name, double x);
void pe_edit_set_word(struct pe_edit *edit, const char *name, const char *word);
void pe_edit_set_boolean(struct pe_edit *edit, const char *name, bool x);
void pe_edit_set_reals(struct pe_edit *edit, const char *name, const double *x, size_t n); /* copied */
void pe_edit_remove(struct pe_edit *edit, const char *name);
/* Removes every field of the sequence (len, offset, positions, …); then set those of the new one. */
void pe_edit_remove_sequence(const struct pe_diagnosis *d, struct pe_edit *edit);

/* The value in use under an edit: the edit's field, else the belief's resolved value; NULL: unset. Names as in the
 * resolved config; a member of an object is "scaling.factor". */
const struct pe_value *pe_edit_value(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name);
double pe_edit_real(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, double fallback);
int64_t pe_edit_integer(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, int64_t fallback);
bool pe_edit_has(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name);
bool pe_edit_is_true(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, bool fallback);
bool pe_edit_is_word(const struct pe_diagnosis *d, const struct pe_edit *edit, const char *name, const char *word);

#endif
