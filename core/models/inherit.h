/* What a request inherits from the model it names: `preset`, or `hf_config`, with `layer_type`. The request's own
 * fields win, nested objects as a whole. */
#ifndef PE_INHERIT_H
#define PE_INHERIT_H

#include "core/models/models.h"

enum { PE_FIELDS_MAX = 256 }; /* fields of one request; each is compared with the others and with every row */

struct pe_scheme;

/* The request's own fields (without preset, hf_config, layer_type), then those inherited. */
struct pe_inheritance {
    struct pe_field fields[PE_FIELDS_MAX];
    size_t n, n_own, n_inherited; /* n: both, and what the caller has added after them */
    const struct pe_scheme *scheme;
    const struct pe_preset *preset; /* NULL: none named */
    struct pe_model_fields model;   /* the fields read from hf_config; `fields` may point into it */
};

/* Finds the scheme and merges the fields. A scheme is required, from the request or from the model it names. */
enum pe_status pe_inherit(struct pe_inheritance *out, const struct pe_request *request, struct pe_error *err);

/* The same, also with the fields that this request does not use and another one may: rules of segments, a window. */
enum pe_status pe_inherit_whole(struct pe_inheritance *out, const struct pe_request *request, struct pe_error *err);

enum { PE_MODEL_LABEL_MAX = 96 };

/* The model that these fields name, for a sentence: `the preset "llama-3.1"`, `hf_config`. One of both is there. */
void pe_model_label(const struct pe_field *fields, size_t n, char label[PE_MODEL_LABEL_MAX]);

/* An error about an inherited field, or about the scheme that a model has: its pointer becomes that of the model's
 * name, /preset or /hf_config, because the request does not have the field, and its sentence names the field and does
 * not advise to leave it out. Errors about other fields stay as they are. */
void pe_inherit_blame(const struct pe_inheritance *in, const struct pe_request *request, struct pe_error *err);

#endif
