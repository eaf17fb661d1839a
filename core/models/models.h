/* Positions of public models: presets by name, and the relevant part of a model's config.json. Both become fields
 * that a request would write; the request's own fields win over them (core/models/inherit.c). */
#ifndef PE_MODELS_H
#define PE_MODELS_H

#include "core/inside.h"

#include <string.h>

enum { PE_MODEL_FIELDS_MAX = 32, PE_MODEL_NUMBERS_MAX = 1024, PE_MODEL_ITEMS_MAX = 8, PE_MODEL_LAYERS_MAX = 4096 };

/* The rows of presets.txt in its order, which is that of GET /presets; rows.awk makes them. */
extern const struct pe_preset pe_preset_rows[];
extern const size_t pe_n_preset_rows;

/* Words of names that people give to models (names.txt); pe_preset_name drops them. */
struct pe_name_row {
    const char *name, *words; /* a class, and its words "a|b" */
    const char *means;        /* instead of words: the presets that the name can mean */
};
extern const struct pe_name_row pe_name_rows[];
extern const size_t pe_n_name_rows;

/* The name of the first preset that has most words of the beginning of this name, or of one inside; NULL: none. */
const char *pe_preset_relative(const char *asked);

/* Adds `asked`, `resolved` and `dropped` to what an answer states of a preset, unless the name is the preset's own. */
struct pe_node;
void pe_preset_put_name(const struct pe_preset_name *name, struct pe_node *node);
#define PE_PRESET_NAME_MEMBERS                                                                                         \
    {.name = "asked",                                                                                                  \
     .types = "string",                                                                                                \
     .summary = "the name that was given, if it is not the preset's own",                                              \
     .is_optional = true},                                                                                             \
        {.name = "resolved", .types = "string", .summary = "the preset that it means", .is_optional = true},           \
    {                                                                                                                  \
        .name = "dropped", .types = "array", .summary = "the words of it that are not the model's",                    \
        .is_optional = true                                                                                            \
    }

/* What is known of a model's scores beside their fields, which are softmax_scale, softcap and query_scale. */
enum { PE_SCORE_NOTES_MAX = 2 };
struct pe_model_scores {
    struct pe_failure refusal; /* of a request for scores that states no softmax_scale; PE_OK: none */
    char notes[PE_SCORE_NOTES_MAX][PE_DETAIL_MAX];
    size_t n_notes;
    const char *sinks;              /* the tensor of learned sinks, below a layer; NULL: there are none */
    struct pe_field query_scale[3]; /* of the object `query_scale` */
};

/* Fields read out of a config, with the storage that some of them point to. Strings and lists are borrowed from the
 * config, or are those of its model_type's row. */
struct pe_model_fields {
    struct pe_field fields[PE_MODEL_FIELDS_MAX];
    size_t n;
    struct pe_field scaling[PE_MODEL_FIELDS_MAX]; /* of the object `scaling` */
    double numbers[PE_MODEL_NUMBERS_MAX];         /* storage of computed lists */
    struct pe_value items[PE_MODEL_ITEMS_MAX];    /* of a list of objects, whose fields are in scaling */
    struct pe_model_scores scores;
};

/* Adds `notes` and `sinks` to an answer, where there are any. */
void pe_model_put_scores(const struct pe_model_scores *scores, struct pe_node *root);
#define PE_SCORE_MEMBERS                                                                                               \
    {.name = "notes",                                                                                                  \
     .types = "array",                                                                                                 \
     .summary = "of scores: what is not known for certain of how the model scales them",                               \
     .is_optional = true},                                                                                             \
    {                                                                                                                  \
        .name = "sinks", .types = "string", .summary = "of scores: the tensor of learned sinks, below a layer",        \
        .is_optional = true                                                                                            \
    }

/* Empties out, before a model is read. */
void pe_model_fields_clear(struct pe_model_fields *out);

/* What the request states beside the config. */
struct pe_hf_asked {
    const char *layer_type;        /* NULL: not given; layers of the default type */
    const char *scheme;            /* NULL: not given; else what a config of unknown model_type is read as */
    const struct pe_value *fps;    /* frames per second of a video; NULL: not given */
    bool has_layout, has_channels; /* the request states them, which such a config does not */
};

struct pe_hf_asked pe_hf_asked_of(const struct pe_field *fields, size_t n); /* of a request's fields */

/* Reads the object of a model's config.json (also one with a nested text_config). Pointers of errors begin with
 * "/hf_config" or are "/layer_type" or "/layout". A model_type without a row is refused, unless the request states the
 * scheme. */
enum pe_status pe_hf_config_read(const struct pe_value *config, const struct pe_hf_asked *asked,
                                 struct pe_model_fields *out, struct pe_failure *err);

/* The same, leaving marks of what was read (core/models/hf/hf.h; NULL: none). */
struct pe_hf_marks;
enum pe_status pe_hf_config_read_marked(const struct pe_value *config, const struct pe_hf_asked *asked,
                                        struct pe_model_fields *out, struct pe_hf_marks *marks, struct pe_failure *err);

/* Writes to pointer[PE_POINTER_MAX] which field of the config this one was taken from: the only one that was read and
 * has its value, where one of its name goes before others. The pointer is unchanged if there is none, or no memory. */
void pe_hf_config_point(const struct pe_value *config, const struct pe_hf_asked *asked, const struct pe_field *taken,
                        char *pointer);

/* ---- The keys of a GGUF file, as llama.cpp reads them ---- */

/* Reads an object of the keys, with `tensors`. Pointers of errors begin with "/gguf" or are "/layer_type". */
enum pe_status pe_gguf_read(const struct pe_value *object, const char *layer_type, struct pe_model_fields *out,
                            struct pe_failure *err);

/* Writes to pointer[PE_POINTER_MAX] which key of the object a field was taken from, as pe_hf_config_point. */
void pe_gguf_point(const struct pe_value *object, const char *field, char *pointer);

/* What was read of them, into the root of values: see pe_model_about_new. */
struct pe_values;
enum pe_status pe_gguf_report(const struct pe_request *request, const struct pe_value *gguf, struct pe_values *values,
                              struct pe_failure *err);

/* Reads the object `said`: the words of a tool (core/tools). beside are the request's own fields, which state
 * what the words do not. Pointers of errors begin with "/said", or are those of fields beside it. */
enum pe_status pe_said_read(const struct pe_value *said, const char *layer_type, const struct pe_field *beside,
                            size_t n_beside, struct pe_model_fields *out, struct pe_failure *err);
/* Does a member of a target's value count as not given: null, or a number that the tool has for that? */
bool pe_said_is_unset(const char *to, const struct pe_field *member);
/* Fails: the words have none of those of this tool, which has members. */
enum pe_status pe_said_no_word(const char *to, struct pe_failure *err);

/* The same on top of a model: the fields that the tool computes with which is given the model and the words. */
enum { PE_OVER_FIELDS_MAX = 2 * PE_MODEL_FIELDS_MAX };
struct pe_said_over {
    const struct pe_value *said;  /* with `place`: where overrides have their rope object, as pe_said_unread has it */
    const struct pe_field *model; /* of the layers that are asked for */
    size_t n_model;
    const char *layer_type; /* NULL: not given */
    int64_t length;         /* of the model; 0: not known */
    const char *model_type; /* … "": not known */
    bool has_parts;         /* … its config.json has the language model's inside, beside those of other parts */
    const struct pe_field *beside;
    size_t n_beside;
    struct pe_model_fields *own; /* storage of what the words state */
    const char *to, *place;
    struct pe_field fields[PE_OVER_FIELDS_MAX]; /* the result; they borrow of own and model */
    size_t n;
};
enum pe_status pe_said_over(struct pe_said_over *in, struct pe_failure *err);

/* What a tool does not read of overrides on top of a model. Their member `place` is "nested": inside the language
 * model's config; "numbers": no rope object, "beside": … and a base; "both": a base beside an object that has none;
 * absent: an object alone. */
/* {"text_config":{…}}: inside that object. */
static inline bool pe_overrides_are_nested(const struct pe_value *overrides)
{
    const struct pe_field *only = overrides->kind == PE_OBJECT ? overrides->object.fields : NULL;
    return only && overrides->object.n == 1 && only->value.kind == PE_OBJECT &&
           strcmp(only->name, "rope_parameters") != 0;
}
enum pe_said_unread { PE_SAID_READ, PE_SAID_BASE_UNREAD, PE_SAID_ALL_UNREAD };
enum pe_said_unread pe_said_unread(const struct pe_value *said, bool has_parts);
bool pe_model_has_parts(const struct pe_value *hf, const struct pe_preset *preset); /* of either that is not NULL */

/* A kind of layers with its configuration, resolved, and its frequencies: what is stated again in other words. */
struct pe_stated_kind {
    const char *layer_type;
    const int64_t *layers; /* NULL: not known */
    size_t n_layers;
    const struct pe_value *config; /* NULL: refused */
    const double *w;               /* [n]: radians by position, at the model's full length */
    size_t n;                      /* 0: it does not turn */
};

/* The layers up to the last of these kinds; those that are no attention, or of a kind that is not asked for, count too.
 */
static inline size_t pe_stated_layers_end(const struct pe_stated_kind *kinds, size_t n_kinds)
{
    size_t end = 0;
    for (size_t k = 0; k < n_kinds; k++)
        for (size_t l = 0; l < kinds[k].n_layers; l++)
            end = (size_t)kinds[k].layers[l] >= end ? (size_t)kinds[k].layers[l] + 1 : end;
    return end;
}

/* ---- Which layers: core/models/layers.c ---- */

enum pe_layer_mark { PE_LAYER_OTHER, PE_LAYER_OF_KIND, PE_LAYER_NO_ATTENTION };

/* The layers of a model: does each have the positions of one kind? */
struct pe_layer_marks {
    size_t n; /* 0: not known */
    unsigned char of[PE_MODEL_LAYERS_MAX];
};

/* Of the hf_config or gguf of these fields, and the kind of their layer_type. What would be refused is not known.
 * False: no memory. */
bool pe_model_layers(const struct pe_field *fields, size_t n, struct pe_layer_marks *out);

/* Layers that two models have, and that are attention in both. */
struct pe_layers_apart {
    size_t n, of;              /* as many have the kind's positions in one of the two only, of so many */
    char found[64], taken[64]; /* those that have them, of the first and of the other: "0-2, 4, …, 44-46"; "": none */
};
void pe_layers_compare(const struct pe_layer_marks *found, const struct pe_layer_marks *taken,
                       struct pe_layers_apart *out);
/* Three runs at most; 64 bytes are enough (hf/differ.c). */
void pe_layers_print(const int64_t *indices, size_t n, char *out, size_t room);
/* "layers 0-2, 4", "no layers". */
enum { PE_LAYERS_TEXT = 96 };
void pe_layers_name(const char *ranges, enum pe_lang lang, char out[PE_LAYERS_TEXT]);

/* The names of the scheme's input in checkpoints, in the form of struct pe_weight_name; NULL: the request can use
 * none of the known names. */
const char *pe_weight_elsewhere(const char *scheme, const struct pe_request *request, const char *input);

/* ---- What a request inherits ---- */

/* What a request inherits from the model it names: `preset`, `hf_config`, `gguf` or `said`, with `layer_type`; or said
 * on top of one of the others. The request's own fields win, nested objects as a whole. */

enum { PE_FIELDS_MAX = 256 }; /* fields of one request; each is compared with the others and with every row */

struct pe_scheme;

/* The request's own fields (without preset, hf_config, gguf, said, layer_type), then those inherited. */
struct pe_inheritance {
    struct pe_field fields[PE_FIELDS_MAX];
    size_t n, n_own, n_inherited; /* n: both, and what the caller has added after them */
    const struct pe_scheme *scheme;
    const struct pe_preset *preset; /* NULL: none named */
    struct pe_model_fields model;   /* the fields read from hf_config, gguf or said; `fields` may point into it */
    const char *words[PE_MODEL_FIELDS_MAX]; /* names of those from said, on top of another; ends with NULL */
};

/* Finds the scheme and merges the fields. A scheme is required, from the request or from the model it names. */
enum pe_status pe_inherit(struct pe_inheritance *out, const struct pe_request *request, struct pe_failure *err);

/* Writes those that are inherited and that only scores have to out; their number. */
enum { PE_SCORE_FIELDS_MAX = 3 };
size_t pe_model_score_fields(const struct pe_inheritance *in, struct pe_field out[PE_SCORE_FIELDS_MAX]);

/* Fails if this request asks for scores that its model refuses, and states no softmax_scale itself. */
enum pe_status pe_model_check_scores(const struct pe_inheritance *in, struct pe_failure *err);

/* The same, also with the fields that this request does not use and another one may: rules of segments, a window. */
enum pe_status pe_inherit_whole(struct pe_inheritance *out, const struct pe_request *request, struct pe_failure *err);

enum { PE_MODEL_LABEL_MAX = 96 };

/* The model that these fields name, for a sentence: `the preset "llama-3.1"`, `hf_config`. One of both is there. */
void pe_model_label(const struct pe_field *fields, size_t n, char label[PE_MODEL_LABEL_MAX]);

/* An error about an inherited field, or about the scheme that a model has: its pointer becomes that of the model's
 * name, /preset or /hf_config, because the request does not have the field, and its sentence names the field and does
 * not advise to leave it out. Errors about other fields stay as they are. */
void pe_inherit_blame(const struct pe_inheritance *in, const struct pe_request *request, struct pe_failure *err);

#endif
