/* Positions of public models: presets by name, and the relevant part of a model's config.json. Both become fields
 * that a request would write; the request's own fields win over them (core/models/inherit.c). */
#ifndef PE_MODELS_H
#define PE_MODELS_H

#include "core/posenc.h"

enum { PE_MODEL_FIELDS_MAX = 32 };

/* Fields read out of a config, with the storage that some of them point to. Strings and lists are borrowed from the
 * config. */
struct pe_model_fields {
    struct pe_field fields[PE_MODEL_FIELDS_MAX];
    size_t n;
    struct pe_field scaling[PE_MODEL_FIELDS_MAX]; /* of the object `scaling` */
    double numbers[PE_MODEL_FIELDS_MAX];          /* storage of computed lists */
};

/* Reads the object of a model's config.json (also one with a nested text_config) for layers of layer_type (NULL:
 * like "full_attention"). Pointers of errors begin with "/hf_config" or are "/layer_type". */
enum pe_status pe_hf_config_read(const struct pe_value *config, const char *layer_type, struct pe_model_fields *out,
                                 struct pe_error *err);

/* The same, leaving marks of what was read (core/models/hf_marks.h; NULL: none). */
struct pe_hf_marks;
enum pe_status pe_hf_config_read_marked(const struct pe_value *config, const char *layer_type,
                                        struct pe_model_fields *out, struct pe_hf_marks *marks, struct pe_error *err);

/* The names of the scheme's input in checkpoints, in the form of struct pe_weight_name; NULL: the request can use
 * none of the known names. */
const char *pe_weight_elsewhere(const char *scheme, const struct pe_request *request, const char *input);

#endif
