/* What public models say about positions: presets by name, and the config.json of a model read for what concerns
 * positions. Both end as fields that a request would write; the request's own fields win over them
 * (core/models/inherit.c). */
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
    double numbers[PE_MODEL_FIELDS_MAX];          /* of lists made here */
};

/* Reads the object of a model's config.json (also one with a nested text_config) for layers of layer_type (NULL: as
 * "full_attention"). Pointers of errors begin with "/hf_config" or are "/layer_type". */
enum pe_status pe_hf_config_read(const struct pe_value *config, const char *layer_type, struct pe_model_fields *out,
                                 struct pe_error *err);

/* What checkpoints call the scheme's input, as struct pe_weight_name has it; NULL: none known is of use to the request.
 */
const char *pe_weight_elsewhere(const char *scheme, const struct pe_request *request, const char *input);

#endif
