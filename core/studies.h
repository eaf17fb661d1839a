/* What the library computes about encodings, as values that api/ prints: analyses, diagnoses, explanations, golden
 * vectors, experiments; and what was read of a model. Part of inside.h, which includes it. */
#ifndef PE_STUDIES_H
#define PE_STUDIES_H

/* ---- What was read of a request ---------------------------------------------------------------------------------- */

/* Makes *config (free with pe_config_free): the configuration of a request that has no sequence and no tensors, as a
 * preset keeps it. That is what the request itself states, in its words, and what it inherits from the preset or
 * hf_config that it names; defaults are left out. It is checked by planning it with one position, or with its grid;
 * fields that only some requests use (softmax_scale of attention, rules of segments, combine) are checked one by
 * one. */
struct pe_config;
enum pe_status pe_config_new(const struct pe_request *request, struct pe_config **config, struct pe_failure *err);
void pe_config_free(struct pe_config *config); /* NULL is accepted */
/* {"scheme":…, …}. Borrowed until pe_config_free; its parts are borrowed from the request too. */
const struct pe_value *pe_config_value(const struct pe_config *config);

/* What was read of a request's hf_config: {"model_type","certainty","ignored":[names not read],"defaults":{name: value
 * taken for a missing one}}, "first_position" where the model's first token is not at position 0, and of a request for
 * scores "notes", "sinks" where there are any. Of its `gguf`: {"architecture","certainty","layer_type","layers","rows",
 * "ignored","defaults","source"}. Makes *about (free with pe_model_about_free); NULL: the request has neither. Of a
 * request that has been planned it fails only without memory. */
struct pe_model_about;
enum pe_status pe_model_about_new(const struct pe_request *request, struct pe_model_about **about,
                                  struct pe_failure *err);
void pe_model_about_free(struct pe_model_about *about);                          /* NULL is accepted */
const struct pe_value *pe_model_about_value(const struct pe_model_about *about); /* borrowed until it is freed */

/* For a reader of GGUF files: the keys that are read of it and the names of the tensors (NULL-terminated). */

/* How a key may be stored, bits. */
enum pe_gguf_stored {
    PE_GGUF_U32 = 1,
    PE_GGUF_F32 = 2,
    PE_GGUF_BOOL = 4,
    PE_GGUF_STRING = 8,
    PE_GGUF_ARRAY_U32 = 16,
    PE_GGUF_ARRAY_I32 = 32,
    PE_GGUF_ARRAY_BOOL = 64,
    PE_GGUF_ARRAYS = PE_GGUF_ARRAY_U32 | PE_GGUF_ARRAY_I32 | PE_GGUF_ARRAY_BOOL
};
struct pe_gguf_key {
    const char *name; /* behind the architecture and a dot */
    unsigned stored;
    const char *fields; /* that are taken from it, "scaling.factor|attention_factor"; NULL: none alone */
};
const struct pe_gguf_key *pe_gguf_key_find(const char *name); /* NULL if there is none */
extern const char *const pe_gguf_tensor_names[];

/* ---- Members of answers ---------------------------------------------------------------------------------------- */

/* What the members are, where rows do not list them. */
enum pe_member_list { PE_ROWS, PE_FAULT_CODES, PE_METRICS, PE_TENSORS };

/* A member of an answer of /analyze, /diagnose or /experiments. The rows are beside the code that puts the member; the
 * OpenAPI document and the guide's tables are made from them. */
struct pe_member {
    const char *name;                /* NULL ends a list; "": the members that `members` lists, in this place */
    const char *types;               /* of JSON, "object|null"; NULL: several */
    const char *summary;             /* NULL: the name is enough */
    const char *items;               /* the type of a list's items; NULL: not stated */
    const struct pe_member *members; /* of the object, or of the list's items; NULL: not stated */
    const char *const *words;        /* its values, then NULL; NULL: any */
    enum pe_member_list list;        /* the words or members follow from the registry */
    unsigned n_max;                  /* most items of a list; 0: not stated */
    bool is_optional;                /* some answers leave it out */
};

extern const struct pe_member pe_analysis_members[], pe_result_members[];   /* of an analysis; of one metric */
extern const struct pe_member pe_diagnosis_members[], pe_finding_members[]; /* of a diagnosis; of one finding */
extern const struct pe_member pe_experiment_result_members[];               /* of one item of `results` */

/* ---- Analysis: properties of encodings --------------------------------------------------------------------------- */

/* One metric, as the catalogue lists it. */
struct pe_metric_info {
    const char *name; /* "unique" */
    struct pe_about about;
    const char *applies_to;              /* "absolute and rotary schemes at consecutive positions of one axis" */
    const char *params;                  /* fields that it uses, "k|dtypes"; NULL: none */
    const char *work;                    /* multiply-adds for one configuration, "n^2 D / 2" */
    const struct pe_output_row *tensors; /* end with .name = NULL; NULL: none. Their dtype is f64. */
    const char *const *details;          /* patterns of its sentence, n_details of them */
    size_t n_details;
};
size_t pe_n_metrics(void);
const struct pe_metric_info *pe_metric_at(size_t i); /* in the order of answers */
const struct pe_param *pe_analysis_params(void);     /* metrics, k, train_len, … */

/* One configuration with its sequence. */
struct pe_entry {
    const struct pe_field *fields;
    size_t n_fields;
    size_t n_own;        /* the first so many are the entry's own, the others are common to all entries */
    const char *pointer; /* JSON pointer of the entry, "/configs/0"; "" if the request is one configuration */
};
enum { PE_ENTRIES_MAX = 8 };

struct pe_analysis_request {
    const struct pe_field *fields; /* of pe_analysis_params(), not more; borrowed until pe_analysis_free */
    size_t n_fields;
    const struct pe_entry *entries; /* 1 to PE_ENTRIES_MAX; borrowed until pe_analysis_free */
    size_t n_entries;
    enum pe_dtype dtype;              /* that `difference` rounds to; PE_DTYPE_NONE: f32 */
    const char *const *outputs;       /* names of tensors, without index; NULL: all that are not on request */
    size_t n_outputs;                 /* may be 0: none */
    enum pe_lang lang;                /* of `detail` */
    double max_work;                  /* multiply-adds of all metrics; the limit --max-analysis */
    const char *const *caller_fields; /* as in struct pe_request */
    /* As in struct pe_request: called with the memory needed so far, before it is allocated. */
    enum pe_status (*admit)(void *caller, double bytes, struct pe_failure *err);
    /* Called when a metric begins, with its name, and with NULL when it ends. NULL: not wanted. */
    void (*step)(void *caller, const char *metric);
    void *caller;
};

/* A tensor in memory with its name. */
struct pe_named_tensor {
    const char *name; /* "similarity.0" */
    struct pe_tensor tensor;
};

struct pe_analysis; /* immutable */

/* Plans the entries, checks every limit, then computes all metrics. Asks is_gone of pe_watch now and then. Makes
 * *analysis (free with pe_analysis_free). */
enum pe_status pe_analysis_new(const struct pe_analysis_request *request, struct pe_analysis **analysis,
                               struct pe_failure *err);
void pe_analysis_free(struct pe_analysis *analysis); /* NULL is accepted */
/* {"configs":[…],"results":[…]}. Borrowed until pe_analysis_free, as the tensors are. */
const struct pe_value *pe_analysis_answer(const struct pe_analysis *analysis);
size_t pe_analysis_n_tensors(const struct pe_analysis *analysis);
const struct pe_named_tensor *pe_analysis_tensor(const struct pe_analysis *analysis, size_t i);

/* Plans and checks like pe_analysis_new, but computes nothing: *configs is a list of the resolved configurations
 * (borrowed until pe_analysis_free of *analysis), which name the answer before it is computed. */
enum pe_status pe_analysis_open(const struct pe_analysis_request *request, struct pe_analysis **analysis,
                                struct pe_failure *err);
const struct pe_value *pe_analysis_configs(const struct pe_analysis *analysis);
/* Do its metrics read sums that the kernels compute, each instruction set in an order of its own? */
bool pe_analysis_is_of_kernels(const struct pe_analysis *analysis);
/* Computes what pe_analysis_open has prepared. Fails without memory, when no request is waiting any more, and where a
 * sent table has a number that is not finite. */
enum pe_status pe_analysis_compute(struct pe_analysis *analysis, struct pe_failure *err);
/* Frees everything but the tensors, once the answer is printed. */
void pe_analysis_settle(struct pe_analysis *analysis);

/* ---- Diagnosis: the configuration that gives a tensor ------------------------------------------------------------ */

/* One code of the catalogue of faults. */
struct pe_fault_info {
    const char *code, *kind; /* "layout_swapped", "layout" */
    struct pe_about about;
    const char *const *details;
    size_t n_details;
};
size_t pe_n_faults(void);
const struct pe_fault_info *pe_fault_at(size_t i); /* in the order of findings */
int pe_fault_surprise(size_t i); /* how unlikely the mistake is, from 1 to 8; 0: it is none (faults/list.h) */

struct pe_diagnosis_request {
    const struct pe_field *fields; /* the tensor, and the belief: fields of PE_ENCODE; borrowed */
    size_t n_fields;
    enum pe_lang lang;
    double max_work; /* the limit --max-analysis */
    const char *const *caller_fields;
    enum pe_status (*admit)(void *caller, double bytes, struct pe_failure *err);
    void (*step)(void *caller, const char *metric); /* with "diagnose" */
    void *caller;
};

struct pe_diagnosis;
enum pe_status pe_diagnosis_new(const struct pe_diagnosis_request *request, struct pe_diagnosis **diagnosis,
                                struct pe_failure *err);
void pe_diagnosis_free(struct pe_diagnosis *diagnosis);                           /* NULL is accepted */
const struct pe_value *pe_diagnosis_answer(const struct pe_diagnosis *diagnosis); /* borrowed until pe_diagnosis_free */
uint64_t pe_diagnosis_searched(const struct pe_diagnosis *diagnosis);             /* hypotheses */
/* Whether the belief passes: the tensor is as believed, up to the roundings of right code unless strict. */
bool pe_diagnosis_fits(const struct pe_diagnosis *diagnosis, bool strict);

/* What a tensor of any name may be: names of evidence, the likeliest first, and why, in the thread's language. Returns
 * their number; 0: its name is that of something else (a mask, weights). */
enum { PE_KIND_GUESSES_MAX = 4 };
struct pe_kind_guess {
    const char *as, *why;
    bool is_by_name;
};
size_t pe_kinds_of(const char *name, const struct pe_tensor *tensor, struct pe_kind_guess out[PE_KIND_GUESSES_MAX]);
/* Is it the name of a tensor that a diagnosis takes? */
bool pe_kind_has_name(const char *name);
/* What a tensor without a name is. */
const char *pe_kind_alone(const struct pe_tensor *tensor);

const struct pe_param *pe_typed_params(void); /* beside values, which are typed by hand */

/* The few numbers that a person should type to tell the belief from mistakes, and mistakes from each other: the request
 * has no tensor, its fields are the belief and pe_probe_params(). *probe has an answer like a diagnosis. */
const struct pe_param *pe_probe_params(void);
enum pe_status pe_probe_new(const struct pe_diagnosis_request *request, struct pe_diagnosis **probe,
                            struct pe_failure *err);
extern const struct pe_member pe_probe_members[];

/* ---- Explanations: one model's positions as every tool reads them ------------------------------------------------ */

/* A code of findings, as the catalogue lists it. */
struct pe_contradiction {
    const char *code, *level; /* "theta_dropped", "error" */
    struct pe_about about;
    const char *pattern;
};
size_t pe_n_contradictions(void);
const struct pe_contradiction *pe_contradiction_at(size_t i);

/* A tool that reads config.json files, as the catalogue lists it. */
struct pe_dialect_info {
    const char *name;
    struct pe_about about;
    const char *source;
};
size_t pe_n_dialects(void);
struct pe_dialect_info pe_dialect_at(size_t i);

struct pe_explain_request {
    const struct pe_field *fields; /* one configuration without a sequence, layer_type, and pe_explain_params() */
    size_t n_fields;
    enum pe_lang lang;
    double max_work; /* multiply-adds of the comparison with other tools; the limit --max-analysis */
    const char *const *caller_fields;
    const char *const *unread; /* keys about positions whose values a text cuts, ends with NULL; NULL: none */
    bool is_text;              /* the configuration was read of a text, which need not have all of a file */
    enum pe_status (*admit)(void *caller, double bytes, struct pe_failure *err);
    void *caller;
};

struct pe_explain;
const struct pe_param *pe_explain_params(void);
enum pe_status pe_explain_new(const struct pe_explain_request *request, struct pe_explain **explain,
                              struct pe_failure *err);
void pe_explain_free(struct pe_explain *explain);                           /* NULL is accepted */
const struct pe_value *pe_explain_answer(const struct pe_explain *explain); /* borrowed until pe_explain_free */
/* The same as lines of text, a list of strings in the request's language, borrowed likewise; NULL: no memory. */
const struct pe_value *pe_explain_sentences(struct pe_explain *explain);
extern const struct pe_member pe_explain_members[];

/* ---- Translations: the same positions in the words of other tools ------------------------------------------------ */

/* How a target's words are written. */
enum pe_target_form {
    PE_TARGET_JSON,   /* fields of a config.json, or the keys of a file */
    PE_TARGET_SHELL,  /* flags: a member x_y is --x-y */
    PE_TARGET_PYTHON, /* a call with the members as keywords */
    PE_TARGET_LINES   /* an assignment for each member */
};

/* What becomes of the members of a model that the words on top of it leave out (core/models/over.c). */
enum pe_target_takes {
    PE_TAKES_WORDS,     /* all is in the words: of the model only the width of a head counts */
    PE_TAKES_FLAGS,     /* a flag replaces what it names */
    PE_TAKES_OPTIONS,   /* … and the rope object is one of them */
    PE_TAKES_OVERRIDES, /* the rope object is replaced whole, with the base in it */
};

/* A command that has the words as flags: "a|b", of which one that ends with * is a beginning. */
struct pe_command {
    const char *programs; /* words of it, behind the last / of a path; NULL: there is none */
    const char *calls;    /* calls of Python that take the words as keywords; NULL: none */
    const char *models;   /* flags in front of a model, without their dashes, … */
    const char *before;   /* … and a word in front of it; NULL: none */
};

/* The base that a tool takes for classes whose rope object has none; the last row has no types. */
struct pe_class_base {
    const char *types; /* "a|b" */
    double base;
};

/* A tool in whose words positions can be stated, as the catalogue lists it. */
struct pe_target_info {
    const char *name;
    struct pe_about about;
    const char *certainty, *source; /* "code", "vllm 07b12f1" */
    enum pe_target_form form;
    const char *called; /* of a call without a class, and of assignments: what is in front of it; else NULL */
    const struct pe_param *members; /* of a value; NULL: the keys of a file */
    struct pe_command command;      /* of programs, `said` may have the words themselves. Two versions have the same */
    enum pe_target_takes takes;
    const char *width[3]; /* the member of the width of a head, and the two words that give it by division; or NULL */
    const char *outer, *inner; /* members around the rope object, and it: "hf_overrides", "rope_parameters"; or NULL */
    bool is_loaded_first;      /* overrides change the config that transformers 5 has made of the file, … */
    const struct pe_class_base *bases; /* … where these classes have another base than 10000. NULL: none has */
};
size_t pe_n_targets(void);
const struct pe_target_info *pe_target_at(size_t i);
const struct pe_target_info *pe_target_info_find(const char *name); /* NULL: there is none */

/* A translation is an explanation with another answer: request and result are its. Beside the configuration there are
 * the fields of pe_translate_params(). */
const struct pe_param *pe_translate_params(void);
enum pe_status pe_translate_new(const struct pe_explain_request *request, struct pe_explain **translation,
                                struct pe_failure *err);
extern const struct pe_member pe_translate_members[];

/* ---- Golden vectors: a few exact numbers of a configuration, for the tests of somebody's port -------------------- */

/* A file of golden vectors with its header, bytes: small enough to be part of a repository. */
enum { PE_GOLDEN_BYTES_MAX = 64 << 10 };

struct pe_golden_request {
    const struct pe_field *fields; /* a configuration, and those of pe_golden_params(); borrowed until pe_golden_free */
    size_t n_fields;
    enum pe_dtype dtype;              /* PE_DTYPE_NONE: f32 */
    double max_work;                  /* multiply-adds of one kind of layers; the limit --max-analysis */
    const char *const *caller_fields; /* as in struct pe_request, as are the two below */
    enum pe_status (*admit)(void *caller, double bytes, struct pe_failure *err);
    void *caller;
};

const struct pe_param *pe_golden_params(void); /* seed, positions */
extern const struct pe_member pe_golden_members[];

/* Makes *golden (free with pe_golden_free): plans every kind of layers, and fixes the shapes of the tensors. The
 * request is borrowed until then. */
struct pe_golden;
enum pe_status pe_golden_open(const struct pe_golden_request *request, struct pe_golden **golden,
                              struct pe_failure *err);
void pe_golden_free(struct pe_golden *golden);                                 /* NULL is accepted */
const struct pe_scheme_info *pe_golden_scheme(const struct pe_golden *golden); /* of the first kind */
size_t pe_golden_n_tensors(const struct pe_golden *golden);
/* Borrowed until pe_golden_shrink or pe_golden_free; without data before pe_golden_compute. */
const struct pe_named_tensor *pe_golden_tensor(const struct pe_golden *golden, size_t i);
/* {"golden":1,"preset":…,"configs":{kind: config},"layers":{kind: [layer types]},"tolerance":{tensor: number},
 * "version":…}. Borrowed until the next call. Before pe_golden_compute the tolerances are the longest texts that there
 * are. NULL: no memory. */
const struct pe_value *pe_golden_about(struct pe_golden *golden);
/* Leaves out a head or a position, those of least worth first; false: nothing more can be left out. */
bool pe_golden_shrink(struct pe_golden *golden);
enum pe_status pe_golden_compute(struct pe_golden *golden, struct pe_failure *err);

/* ---- Derivations: the work of one number ------------------------------------------------------------------------- */

enum { PE_DERIVED_NUMBERS_MAX = 16 };

struct pe_derive_request {
    const struct pe_field *fields; /* a configuration, maybe a sequence, and those of pe_derive_params(); borrowed until
                                      pe_derive_free */
    size_t n_fields;
    enum pe_dtype dtype;              /* PE_DTYPE_NONE: f32 */
    double max_work;                  /* multiply-adds of the numbers of an attention map; the limit --max-work */
    enum pe_lang lang;                /* of `detail`; words beside a step are in the language of pe_speak_in */
    const char *const *caller_fields; /* as in struct pe_request, as are the two below */
    enum pe_status (*admit)(void *caller, double bytes, struct pe_failure *err);
    void *caller;
};

const struct pe_param *pe_derive_params(void);                           /* tensor, index, position, … */
extern const struct pe_member pe_derive_members[], pe_derived_members[]; /* of the answer; of one number of several */

/* Makes *derive (free with pe_derive_free): plans the configuration and takes the steps of each number. */
struct pe_derive;
enum pe_status pe_derive_new(const struct pe_derive_request *request, struct pe_derive **derive,
                             struct pe_failure *err);
void pe_derive_free(struct pe_derive *derive);                           /* NULL is accepted */
const struct pe_value *pe_derive_answer(const struct pe_derive *derive); /* borrowed until pe_derive_free */
const struct pe_scheme_info *pe_derive_scheme(const struct pe_derive *derive);

/* ---- Experiments: small decoders trained with different encodings ------------------------------------------------ */

enum { PE_EXPERIMENT_CONFIGS_MAX = 6 };

struct pe_experiment_request {
    const struct pe_field *fields; /* of pe_experiment_params(), not more; borrowed until pe_experiment_free */
    size_t n_fields;
    /* Configurations without a sequence; borrowed too. A field `eval` is a list of objects, each the fields that differ
     * in one further evaluation of the same weights. */
    const struct pe_entry *entries;
    size_t n_entries;
    const char *const *caller_fields; /* as in struct pe_request */
    /* As in struct pe_request: called once, with all memory that the experiment needs. */
    enum pe_status (*admit)(void *caller, double bytes, struct pe_failure *err);
    void *caller;
};

const struct pe_param *pe_experiment_params(void); /* task, steps, train_len, eval_len, seed */

struct pe_experiment; /* used by one thread at a time */

/* Checks everything and allocates everything; trains nothing yet. Makes *experiment (free with pe_experiment_free). */
enum pe_status pe_experiment_new(const struct pe_experiment_request *request, struct pe_experiment **experiment,
                                 struct pe_failure *err);
void pe_experiment_free(struct pe_experiment *experiment); /* NULL is accepted */
/* {"task":…, "steps":…, …, "configs":[…]}, the configurations resolved. Borrowed until pe_experiment_free. */
const struct pe_value *pe_experiment_start(const struct pe_experiment *experiment);

enum pe_experiment_event {
    PE_EXPERIMENT_WORKED,   /* some milliseconds of work, nothing to report */
    PE_EXPERIMENT_PROGRESS, /* a step whose loss is reported: 1, 10, and every 20th */
    PE_EXPERIMENT_DONE
};

struct pe_experiment_progress {
    size_t run; /* of which configuration */
    uint64_t step;
    double loss; /* the mean of the step's batch, in nats */
};

/* Does the next few milliseconds of work. *progress is written only for PE_EXPERIMENT_PROGRESS. Fails with PE_NO_MEMORY
 * only where the results are put together. */
enum pe_status pe_experiment_advance(struct pe_experiment *experiment, enum pe_experiment_event *event,
                                     struct pe_experiment_progress *progress, struct pe_failure *err);
/* Steps of training so far, of all runs. */
uint64_t pe_experiment_steps(const struct pe_experiment *experiment);

/* Once done: a list of {"run","eval","floor","inside","outside","rise"}, and the tensors excess.0, excess.1 … in its
 * order. Borrowed until pe_experiment_free. */
const struct pe_value *pe_experiment_results(const struct pe_experiment *experiment);
size_t pe_experiment_n_tensors(const struct pe_experiment *experiment);
const struct pe_named_tensor *pe_experiment_tensor(const struct pe_experiment *experiment, size_t i);

#endif
