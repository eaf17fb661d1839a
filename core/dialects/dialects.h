/* One model's positions in every tool's words: which layers it has, which tool takes which number, and what follows
 * from a difference.
 *
 * A kind of layers is planned once as the request states it, and once as each tool reads it. What a plan computes, its
 * frequencies and its factor, is compared: a tool that reads other fields may yet compute the same numbers. */
#ifndef PE_DIALECTS_H
#define PE_DIALECTS_H

#include "core/models/gguf/gguf.h"
#include "core/models/models.h"
#include "core/tools/lens.h"
#include "core/params.h"
#include "core/values.h"

enum {
    PE_DIALECT_KINDS_MAX = 16,
    PE_DIALECT_READERS_MAX = 8,
    PE_STRETCHES_MAX = 6,        /* two borders, a position after each, the model's length, and beyond all */
    PE_DIALECT_FIELDS_MAX = 128, /* positional fields of one config */
    PE_DIALECT_LENGTH = 131072   /* where the model states none */
};

/* ---- turn.c: a rotation as numbers ---- */

struct pe_turn {
    const double *w; /* [n]: radians by position; owned by the reading's values */
    size_t n;        /* 0: the kind does not turn */
    double factor;   /* on cos and sin */
    int64_t head_dim, offset;
    bool is_half; /* pairs of halves; else of neighbours */
};

bool pe_is_near(double a, double b); /* what is stored as f32 may be rounded */
bool pe_turn_same(const struct pe_turn *a, const struct pe_turn *b, bool is_permuted); /* but for f32 rounding */

/* How far two rotations are apart over a model's length. */
struct pe_distance {
    double cos, sin; /* the largest differences, rounded to nine decimals */
    int64_t position;
    size_t pair;
    int64_t first;       /* the first position with more than 0.01; -1: none, */
    int64_t first_after; /* … or it was sought up to here; -1: up to the length */
    int64_t length;
};
struct pe_explain;
struct pe_dialect_kind;
/* Whether n readings of kinds, each with its distance from ours, are within the request's max_work. */
enum pe_status pe_dialect_admit(const struct pe_explain *ex, double n);
/* Two rotations are measured once, however many tools turn so; those that are the same at several lengths at the
 * answer's. */
enum pe_status pe_dialect_measure(struct pe_explain *ex, const struct pe_turn *a, const struct pe_turn *b,
                                  bool is_permuted, int64_t length, struct pe_distance *out);
void pe_put_distance(struct pe_node *node, const char *name, const struct pe_distance *distance); /* NULL: null */
extern const struct pe_member pe_distance_members[];

/* ---- lengths.c: sequences of which lengths are compared ---- */

#define PE_NO_END INT64_MAX

/* Lengths within which neither of two rules changes, and the one of them that is compared. */
struct pe_stretch {
    int64_t from, to, at; /* to: PE_NO_END */
    bool grows;           /* a rule is another one at each of them */
};

/* Lengths at which two configurations differ; n = 0: all, or none. */
struct pe_lengths {
    struct pe_stretch list[PE_STRETCHES_MAX];
    size_t n;
};

/* The length up to which the rule of a resolved configuration is one, and beyond which another; 0: it does not depend
 * on the length. */
int64_t pe_dialect_border(const struct pe_value *config);
/* Of one configuration, or two; out[PE_STRETCHES_MAX]. They reach up to the request's length, or have no end; the
 * answer's length is the `at` of one. */
size_t pe_dialect_stretches(const struct pe_explain *ex, const struct pe_value *ours, const struct pe_value *theirs,
                            struct pe_stretch *out);
/* At how many lengths at most a kind is compared with itself as somebody else has it. */
size_t pe_dialect_n_lengths(const struct pe_explain *ex, const struct pe_dialect_kind *kind);
void pe_lengths_add(struct pe_lengths *lengths, const struct pe_stretch *stretch, bool differs); /* each, in order */
void pe_lengths_done(struct pe_lengths *lengths, const struct pe_stretch *last);                 /* are those all? */
void pe_put_lengths(struct pe_node *node,
                    const struct pe_lengths *lengths); /* lengths: [[from, to], …]; to null: no end */
void pe_replace(char *text, size_t room, const char *name, const char *by); /* {name} by a text that is not empty */
void pe_lengths_print(const struct pe_lengths *lengths, enum pe_lang lang, char *out, size_t room); /* a sentence */
#define PE_LENGTHS_MEMBER                                                                                              \
    {                                                                                                                  \
        .name = "lengths", .types = "array",                                                                           \
        .summary =                                                                                                     \
            "if only sequences of some lengths differ: the first and the last length of each range; null: no end",     \
        .items = "array", .is_optional = true                                                                          \
    }

/* ---- kinds.c: the kinds of layers, and a kind as somebody reads it ---- */

struct pe_reading {
    const struct pe_value *config;  /* resolved; NULL: refused */
    const struct pe_value *shown;   /* … without what follows from the length, as pe_dialect_read_shown reads it */
    const char *style;              /* position_style of the model's segments; "": none */
    struct pe_model_scores *scores; /* what is known of them beside config; NULL: refused */
    char refused[PE_DETAIL_MAX];
    bool lacks_bytes; /* … because a part of the file was not sent */
    struct pe_turn turn;
    struct pe_plan *plan;    /* config is one of these two's */
    struct pe_config *whole; /* … of schemes that are no rotation */
};

struct pe_dialect_kind {
    char layer_type[PE_HF_KIND_BYTES];
    const char *part;
    int64_t *layers; /* NULL: not known */
    size_t n_layers;
    struct pe_reading own;
};

/* The layers to which a tool gives a kind's positions, if they are others than ours. */
struct pe_other_layers {
    size_t n, of;        /* layers that differ; 0: none, or not known */
    char *found, *taken; /* "0-2, 4, …, 44-46"; "": none */
};

/* The config of a tool, with what it makes of each kind. */
struct pe_dialect_reader {
    const struct pe_tool *reader;
    struct pe_config_view view;
    char refused[PE_DETAIL_MAX];                         /* the whole; "": it reads it */
    bool is_unknown;                                     /* … for its reading of the class is not known here */
    const char *architecture;                            /* of the file that it writes; NULL: none */
    bool is_permuted;                                    /* … with rows in the order of neighbours */
    struct pe_other_layers layers[PE_DIALECT_KINDS_MAX]; /* of each kind */
    struct pe_value keys;                                /* of that file */
    const struct pe_field *read[PE_CONFIG_COPIES_MAX];   /* fields of the given config that it reads */
    size_t n_read;
    struct pe_reading readings[PE_DIALECT_KINDS_MAX]; /* at the answer's length */
    struct pe_apart {
        struct pe_turn ours[PE_STRETCHES_MAX], theirs[PE_STRETCHES_MAX];
        int64_t length[PE_STRETCHES_MAX];
        size_t n;
        struct pe_lengths lengths;
    } apart[PE_DIALECT_KINDS_MAX]; /* at which lengths it turns otherwise, and how */
};

/* The consequence of a tool's numbers; it lives as long as the answer. */
struct pe_measured {
    struct pe_turn ours, theirs;
    struct pe_distance distance;
    struct pe_measured *next;
};

enum { PE_CONFIG_MEMBERS_MAX = 4096 }; /* of a config.json: each tool copies it, for each kind of layers */

struct pe_explain {
    const struct pe_explain_request *request;
    struct pe_failure *err;
    struct pe_values *values;      /* the answer */
    struct pe_inheritance *buffer; /* for one reading at a time */
    double bytes, asked;           /* that plans keep; and the one that is being made */

    struct pe_field own[PE_FIELDS_MAX]; /* the request's fields but those of the explanation */
    size_t n_own;
    const char *layer_type; /* NULL: all */
    unsigned wanted;        /* bits: tools that are asked, in pe_reader_at's order; ~0U: all */
    const struct pe_value *hf, *gguf, *said;
    bool is_over; /* said is on top of one of the others */
    bool is_translation;
    const struct pe_preset *preset;
    bool is_other_size; /* than that of the preset's config.json is asked for: how many layers it has is not known */
    struct pe_value config;          /* of the preset: hf then, where it has one */
    struct pe_hf_marks *marks;       /* of hf */
    struct pe_hf_language language;  /* of hf */
    struct pe_gguf_outline *outline; /* of gguf */
    struct pe_model_about *about;    /* … of its first kind that is read; */
    const struct pe_value *report;   /* what it reports; NULL: none */
    int64_t length, model_length;    /* the answer's; what the model states, 0: nothing */
    bool is_length_asked, is_length_assumed;
    double last[3]; /* the last position, on as many axes as a kind has */

    struct pe_dialect_kind kinds[PE_DIALECT_KINDS_MAX];
    size_t n_kinds, n_text;                         /* those of the language model come first */
    struct pe_reading *alone[PE_DIALECT_KINDS_MAX]; /* the model's without the words on top, whose values are shown */
    size_t n_alone;
    struct pe_dialect_reader *readers;
    size_t n_readers;
    struct pe_measured *measured; /* consequences that are known */
    bool has_errors;              /* among the findings */
    const struct pe_value *answer;
    struct pe_values *sentences; /* of the answer as text; NULL: not asked for */
};

/* A name, or a list of them. n = 0: none is given, which may mean all. */
struct pe_names {
    const struct pe_value *items;
    size_t n;
};
static inline struct pe_names pe_names_of(const struct pe_value *v)
{
    return v && v->kind == PE_LIST ? (struct pe_names){v->list.items, v->list.n} : (struct pe_names){v, v ? 1 : 0};
}

/* ---- explain.c: what every answer begins and ends with ---- */

/* Opens an answer, computes it, and drops it if that fails. */
enum pe_status pe_dialect_new(const struct pe_explain_request *request, enum pe_status (*compute)(struct pe_explain *),
                              struct pe_explain **out, struct pe_failure *err);
/* Reads the request: the fields of rows into own, those of a configuration into ex. */
enum pe_status pe_dialect_open(struct pe_explain *ex, const struct pe_param *rows, void *own);
const char *pe_dialect_name(const struct pe_explain *ex);
void pe_dialect_put_layers(const struct pe_explain *ex, struct pe_node *root);
void pe_dialect_put_model(const struct pe_explain *ex, struct pe_node *root);
extern const struct pe_member pe_dialect_layer_members[], pe_dialect_model_members[];

enum pe_status pe_dialect_kinds(struct pe_explain *ex);
void pe_dialect_kinds_drop(struct pe_explain *ex);
/* Plans the kind of a model that is one of hf_config and gguf, or of the request's own fields (NULL). What refuses it
 * is in the reading; the status is that of memory. */
enum pe_status pe_dialect_read(struct pe_explain *ex, const struct pe_field *model, const char *layer_type,
                               struct pe_reading *reading);
/* The same for a sequence of another length than the answer's. */
enum pe_status pe_dialect_read_at(struct pe_explain *ex, int64_t length, const struct pe_field *model,
                                  const char *layer_type, struct pe_reading *reading);
/* The same with `shown`. */
enum pe_status pe_dialect_read_shown(struct pe_explain *ex, const struct pe_field *model, const char *layer_type,
                                     struct pe_reading *reading);
/* The same of these fields alone. */
enum pe_status pe_dialect_read_fields(struct pe_explain *ex, const struct pe_field *fields, size_t n,
                                      struct pe_reading *reading);
/* Fails as the request of kind k does. */
enum pe_status pe_dialect_read_refused(struct pe_explain *ex, size_t k);
void pe_reading_drop(struct pe_reading *reading);
/* The kind as it is stated again: with the configuration of a reading. */
struct pe_stated_kind pe_dialect_state(const struct pe_dialect_kind *kind, const struct pe_reading *reading);
/* The fields that a request of /encode takes into whole, the others into members of node for x and for attention (NULL:
 * left out). */
void pe_dialect_put_config(const struct pe_value *config, struct pe_node *whole, struct pe_node *node);

/* Is it a config.json of diffusers? */
static inline bool pe_dialect_is_class(const struct pe_explain *ex)
{
    return ex->hf && ex->language.row && ex->language.row->is_class;
}
#define PE_DIALECT_GENERATOR "generator" /* the part of its layers */

/* ---- summary.c: a configuration in words ---- */

/* "rope, base 10000, …"; of a grid its axes, their coordinates, the grid of a table and how it is resized. */
const char *pe_dialect_summary(const struct pe_reading *reading, enum pe_lang lang, char *out, size_t room);
/* Are these the positions of a grid: those of an image or a video, and of no language model? */
bool pe_dialect_is_of_grid(const struct pe_value *config);

/* ---- layers.c: which layers are of a kind ---- */

/* Sizes of the model that a file states: what the config has of them. */
void pe_dialect_sizes(const struct pe_explain *ex, struct pe_gguf_wish *wish);

/* Sets the kind's layers, where they are known. */
enum pe_status pe_dialect_list_layers(struct pe_explain *ex, const struct pe_hf_layers *layers,
                                      struct pe_dialect_kind *kind);
/* Compares those of our kind k with those that the tool's model has, in which the kind has this name. */
enum pe_status pe_dialect_compare_layers(struct pe_explain *ex, struct pe_dialect_reader *tool, size_t k,
                                         const struct pe_field *model, const char *name);
/* A file has all kinds of layers, whichever is asked for: others[PE_HF_KINDS_MAX] are those that are not, as the tool
 * reads them. The caller drops their readings, also after a failure. */
enum pe_status pe_dialect_other_kinds(struct pe_explain *ex, const struct pe_dialect_reader *tool,
                                      struct pe_dialect_kind *others, size_t *n);

/* ---- tools.c: what each tool reads ---- */

enum pe_status pe_dialect_tools(struct pe_explain *ex);
enum pe_status pe_dialect_check_readers(struct pe_explain *ex,
                                        const struct pe_value *wanted); /* `readers`; NULL: all */
size_t pe_dialect_n_wanted(const struct pe_explain *ex);
void pe_dialect_tools_drop(struct pe_explain *ex);
const char *pe_tool_refusal(const struct pe_explain *ex, const struct pe_dialect_reader *tool); /* "": it reads all */
bool pe_tool_agrees(const struct pe_explain *ex, const struct pe_dialect_reader *tool, size_t kind);
/* In every kind, and every layer. */
bool pe_dialect_agrees(const struct pe_explain *ex, const struct pe_dialect_reader *tool);
void pe_dialect_put_tools(const struct pe_explain *ex, struct pe_node *root);
bool pe_tool_reads(const struct pe_dialect_reader *tool, const struct pe_field *field);

/* ---- fields.c and findings.c: parts of the answer ---- */

enum pe_status pe_dialect_put_fields(struct pe_explain *ex, struct pe_node *root);
extern const struct pe_member pe_dialect_field_members[], pe_dialect_finding_members[];

/* ---- find_said.c: the words of a tool, on top of a model ---- */

const char *pe_dialect_tool(const struct pe_explain *ex); /* whose words they are; "" */
enum pe_status pe_dialect_put_changes(struct pe_explain *ex, struct pe_node *root);
extern const struct pe_member pe_dialect_change_members[];

/* A field of the language model's config that is about positions. */
struct pe_dialect_field {
    const struct pe_field *field;
    const char *path; /* where its number is in a configuration */
    char pointer[PE_POINTER_MAX];
    char layer_type[PE_HF_KIND_BYTES]; /* of an object for one kind of layers, or a name for it; "": all */
    bool is_inside;                    /* of a rope object */
    bool is_derived;                   /* what is taken without it follows from other numbers */
};
size_t pe_dialect_fields(const struct pe_explain *ex, struct pe_dialect_field *out);

#endif
