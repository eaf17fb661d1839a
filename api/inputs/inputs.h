/* Requests: what is read of a call, whatever body it comes in, and its readers, one content type in each file; stored
 * files that requests name. Lowest file first. */
#ifndef API_INPUTS_H
#define API_INPUTS_H

#include "api/api.h"
#include "api/arena.h"
#include "api/json/json.h"
#include "api/limits.h"
#include "api/problem.h"

#include <string.h>

/* ---- request.c --------------------------------------------------------------------------------------------------- */

/* A request: the call, what is read of it (named values, whatever body and query they came from), and what is found
 * out about its answer. Every step takes it and adds to it, until a reply is there. */

struct api_call;
struct api_format;
struct api_host;
struct api_route;
struct api_stored_file;
struct api_store;

/* What an endpoint takes, where that is not what the row of its operation states. */
struct api_taking {
    const char *(*tensor)(const struct pe_tensor *tensor); /* the field that a body of one .npy file fills */
    /* Its own fields; in a query, one of any type (PE_T_VALUE) is a list of words. NULL: none. */
    const struct pe_param *(*params)(void);
    bool may_answer_nothing; /* `outputs` may be an empty list */
    size_t entries_max;      /* configurations in `configs`; 0: PE_ENTRIES_MAX */
    const char *variants;    /* the field of a configuration that lists variants of it, objects; NULL: none */
    bool shows_unread;       /* the answer names what a text cuts; else it is refused */
};
/* For endpoints that take no tensor: as for most others, one without a name is q, which is then refused by name. */
static inline const char *api_tensor_is_q(const struct pe_tensor *tensor)
{
    (void)tensor;
    return "q";
}

/* The form of an answer: dtype, format, digits, outputs, slice, reduce, data, and the look of pictures. An absent word
 * is -1, an absent integer PE_UNSET_INT, an absent real NaN. */
#define API_FORM_WORD int
#define API_FORM_INT int64_t
#define API_FORM_REAL double
#define API_FORM_BOOL bool

struct api_form {
#define FORM(TYPE, name, ...) API_FORM_##TYPE name;
#include "api/requests/form_list.h"
#undef FORM
    const char *outputs[API_OUTPUTS_MAX];
    size_t n_outputs;        /* 0: those of the answer by default */
    bool has_no_outputs;     /* the request names an empty list */
    struct pe_slice *slices; /* in the request's arena */
    size_t n_slices;
};

/* An integer of the form, or its default if it is absent. */
static inline int64_t api_form_integer(int64_t given, int64_t usual) { return given == PE_UNSET_INT ? usual : given; }

/* The index of the colours in api_cmap_names. */
static inline int api_form_cmap(const struct api_form *form) { return form->cmap < 0 ? 0 : form->cmap; }

/* The parts of a path that are given by name in the route's pattern. All valid names fit; a longer one is cut, and its
 * beginning is quoted in the message that there is no such name. */
struct api_path {
    char name[256], preset[256], version[32], build[32], file[256];
    char query[2], key[2]; /* of any length: zarr.c reads them from the path */
};

enum { API_ETAG_MAX = 40 };

/* Numbers drawn from seeds. */
struct api_drawing {
    uint64_t n, max;      /* so far, and at most */
    uint64_t max_at_once; /* more than so many are not drawn while the request is read, but by a worker */
    uint64_t n_waiting;   /* of n: not drawn yet */
};

/* A tensor whose memory is allocated and not set: n bytes are copied from `from`, or, if that is NULL, n numbers drawn
 * from a seed. */
struct api_waiting {
    struct api_waiting *next;
    void *to;
    const void *from;
    size_t n;
    const char *name;
    int64_t seed;
    double std;
};

/* Where the tensors of an answer come from: a plan that computes their elements on demand, or memory that already holds
 * them (the curves of an analysis). */
struct api_source {
    const struct pe_plan *plan; /* NULL: the tensors are in memory */
    const struct api_held *held;
    size_t n_held;
};

/* A tensor in memory: its shape, and its elements in row-major order, aligned to one of them. Borrowed as long as the
 * answer is sent. */
struct api_held {
    struct pe_output output;
    const void *elements;
};

/* A member of an answer beside its tensors. */
struct api_member {
    const char *name, *json;
    size_t n; /* bytes of json */
};

/* What a format opens: the tensors, and what is beside them. */
struct api_opening {
    struct api_source source;
    const char *config; /* of a plan: its resolved configuration as JSON text */
    size_t config_bytes;
    const struct api_member *members; /* of an answer without a plan: what JSON and safetensors contain besides tensors,
                                         in this order; borrowed until the format is open */
    size_t n_members;
    bool keeps_order;             /* a file has the tensors in the order of the source, where a format has its own */
    struct api_plan_body *stream; /* formats/body.c; the format adds its segments */
    const char *header;           /* one more header of the answer, NULL if none */
    const char *header_value;     /* in the arena */
};

/* One owner: api_request_drop frees the plan and everything that the fields point to, except slices of the received
 * body, which are borrowed from the caller until then, and gives back what is reserved. */
struct api_request {
    unsigned n_owners; /* of one from api_request_new: the thread that answers it, and a body that borrows from it */
    const struct api_host *host;
    const struct api_call *call;
    const struct api_route *route;
    const struct api_route *(*route_at)(size_t i); /* all rows, for their description; NULL: the end */
    /* Whether the head of a call of any row may be answered: the rules of the row. */
    bool (*check_head)(const struct api_host *host, const struct api_call *call, const struct api_route *route,
                       uint64_t n, struct api_problem *problem);
    struct api_path path;
    struct api_problem problem;   /* why it is refused, if it is */
    bool is_late;                 /* the next step would have to wait, but must_not_block: it is a worker's */
    bool is_long;                 /* building its answer takes long, or may wait: a worker does it */
    bool is_checked, draws_first; /* by its last step; its check reads tensors that wait */
    unsigned n_read_steps;        /* taken of api_steps.read */
    void *own;                    /* the endpoint's own state: api_steps.own_bytes */
    bool is_refused;              /* by the host, while the core has called admit(): the problem is set */

    /* ---- What it asks for ---- */
    enum pe_operation_id operation;
    const struct api_taking *taking; /* NULL: what the operation takes */
    bool body_is_ours;               /* tensors may be moved inside the body: api_call.body_is_ours */
    uint64_t max_json;               /* bytes of its JSON: api_host.max_json; 0: any number */
    bool must_not_block;             /* api_call.must_not_block */
    bool fills_later;                /* tensors that no check reads are set by api_request_fill, not while read */
    struct api_waiting *waiting;     /* those, in the arena; NULL: none */
    struct api_drawing drawing;      /* without a host, API_DRAWN_MAX numbers */
    struct api_arena arena;
    struct pe_field fields[API_FIELDS_MAX];
    size_t n_fields;
    size_t n_completing; /* the first of them, which another of the same name replaces: api_call.is_completed */
    const struct api_stored_file *stored; /* the file that its field `weights` named, held by the arena; NULL: none */
    const struct api_store *presets;      /* api_host.presets */
    bool has_stored_preset;               /* it names a stored preset: api_preset_take */
    size_t stored_bytes;                  /* of the stored tensors that it uses */
    const char *pasted;                   /* JSON: what texts in its fields were taken for; NULL: there were none */
    const char *const *unread;            /* names of keys that a text cuts, ends with NULL; NULL: none */
    bool is_pasted;
    enum pe_lang lang; /* of its errors and of the answer's texts */
    struct api_form form;
    const struct api_format *format;
    void *about; /* further data for a format of a single endpoint; else NULL */
    struct api_opening opening;
    struct pe_plan *plan; /* of the fields, from which it borrows; owned; NULL: none yet */

    /* ---- Whether the answer is cacheable ---- */
    bool is_cacheable; /* the method allows caching of the answer, so the answer has a validator */
    bool is_unchanged; /* and the client's cached answer is still valid */
    const char *key;   /* a key of a store, with its own tag and without Accept; NULL: none */
    char etag[API_ETAG_MAX];
    /* What its tag names besides: the endpoint of an answer that no operation gives, NULL: none; whether its bytes may
     * differ between machines (pe_machine_fuses), and between instruction sets of one machine; the requests of several
     * configurations. */
    const char *tagged_as;
    bool is_of_machine, is_of_kernels;
    struct api_request *const *parts;
    size_t n_parts;

    /* What it has reserved of the memory for all requests: requests/memory.c. */
    uint64_t n_taken;           /* by the host */
    uint64_t n_read;            /* of n_taken, for the fields */
    uint64_t body_bytes;        /* that server/ has reserved itself */
    struct api_problem refusal; /* from a failed reservation; status 0: none */
};

/* Whether the same request means the same as long as this process runs: it names nothing that a client may change. */
static inline bool api_request_is_lasting(const struct api_request *request)
{
    return !request->stored && !request->has_stored_preset;
}

void api_request_init(struct api_request *request, enum pe_operation_id operation);
void api_request_drop(struct api_request *request);
/* The same for a request of its own, with one owner, and own_bytes for its endpoint. NULL: no memory. */
struct api_request *api_request_new(enum pe_operation_id operation, size_t own_bytes);
/* One more owner; api_request_free removes one. Owners are threads that follow one another. */
static inline struct api_request *api_request_hold(struct api_request *request)
{
    request->n_owners++;
    return request;
}
void api_request_free(struct api_request *request);

/* Adds a field; name and what value points to are borrowed until api_request_drop. A name that is already present is
 * 400, or replaced if it is one of n_completing. */
bool api_request_add(struct api_request *request, const char *name, const struct pe_value *value,
                     struct api_problem *problem);

/* Removes the fields i for which taken[i] is set. */
void api_request_remove(struct api_request *request, const bool *taken);

/* Adds a tensor of the received bytes: data is borrowed, or copied if its address does not suit its elements. n_spare:
 * bytes before the data that are no longer needed; if they suffice for alignment and the body is writable, the data is
 * moved instead. */
bool api_request_add_tensor(struct api_request *request, const char *name, const struct pe_tensor *tensor,
                            size_t n_spare, struct api_problem *problem);

/* What operations, schemes and sequences have under this name. */
struct api_name_uses {
    bool as_input, as_param; /* a tensor of an input row (q, table); a parameter */
};
struct api_name_uses api_name_uses(const char *name);

/* If the request fills_later: is a field of this name a tensor of an input row (q, table), and no parameter, which is
 * checked before? Then it may wait (*waiting is copied into the arena; false: no memory) for api_request_fill. */
bool api_field_may_wait(const char *name);
bool api_request_wait(struct api_request *request, const struct api_waiting *waiting);
void api_request_fill(struct api_request *request);

/* Complex numbers are pairs of reals: adds a last axis of 2 to a shape. Only for the field freqs_cis; else 422. */
bool api_complex_shape(const char *pointer, uint64_t *shape, unsigned *rank, struct api_problem *problem);

/* Whether two names are equal. A request compares dozens of names, most of which differ in their first letter. */
static inline bool api_is(const char *a, const char *b) { return *a == *b && strcmp(a, b) == 0; }

/* The value of a field; NULL if the request has none of this name. */
static inline const struct pe_value *api_request_find(const struct api_request *request, const char *name)
{
    for (size_t i = 0; i < request->n_fields; i++)
        if (api_is(request->fields[i].name, name))
            return &request->fields[i].value;
    return NULL;
}
/* Is it one of the names, NULL-terminated? */
static inline bool api_is_among(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names;
}
/* The first of these names that a field has, and its pointer; NULL: none. */
const char *api_request_first(const struct api_request *request, const char *const *names,
                              char pointer[PE_POINTER_MAX]);
/* A member of an object; NULL: it has none of this name. */
static inline const struct pe_value *api_member_find(const struct pe_value *object, const char *name)
{
    for (size_t i = 0; i < object->object.n; i++)
        if (strcmp(object->object.fields[i].name, name) == 0)
            return &object->object.fields[i].value;
    return NULL;
}

/* Holds a file that was found until the request ends; if it cannot, the file is released. */
bool api_request_hold_file(struct api_request *request, const struct api_store *store,
                           const struct api_stored_file *file);

/* ---- weights_in.c: names of stored files ------------------------------------------------------------------------- */

/* Refusals that concern stored files of any kind. */

bool api_fail_stored_name(struct api_problem *problem, const char *pointer, const struct api_contents *contents,
                          const char *name);
/* For API_FOUND_UNKNOWN and what follows it. */
bool api_fail_stored_unknown(struct api_problem *problem, const char *pointer, const struct api_store *store,
                             enum api_found found, const char *name);
/* "the limit --max-weights of this server" */
enum { API_LIMIT_BYTES = 64 };
void api_stored_limit(const struct api_store *store, char *text, size_t room);

/* ---- json_in.c and the readers of list.h ------------------------------------------------------------------------- */

/* An input reads bodies of one content type into the fields of a request. Each has one file and one line in list.h. */

struct api_received {
    const char *bytes; /* borrowed until the request ends */
    size_t n;
    const char *parameters; /* of the content type: what follows its first ;, or "" */
};

struct api_input {
    const char *media_type;
    bool (*read)(struct api_request *request, const struct api_received *body, struct api_problem *problem);
};

/* Reads a body of this content type (NULL: none given). A type that is not a tensor format is read as JSON. */
bool api_input_read(struct api_request *request, const char *content_type, const char *bytes, size_t n,
                    struct api_problem *problem);

bool api_input_is_json(const char *content_type); /* whether api_input_read reads it as JSON */

/* A .npy file to a tensor, Its data is a slice of bytes or, if byte order or axis order differ from ours, a copy in the
 * request's arena. what names the file in messages. pointer is the field's. */
struct api_npy_file {
    const char *bytes;
    size_t n;
    const char *what, *pointer;
};
bool api_npy_parse(struct api_arena *arena, const struct api_npy_file *file, struct pe_tensor *tensor,
                   struct api_problem *problem);
static inline bool api_npy_looks_like(const char *bytes, size_t n)
{
    return n >= 6 && memcmp(bytes, "\x93NUMPY", 6) == 0;
}

/* ---- pasted/ ----------------------------------------------------------------------------------------------------- */

/* Texts in place of objects in hf_config, gguf and said become what they say (pasted/pasted.h). Call it when the
 * request has all its fields; calling it again does nothing. */
bool api_pasted_take(struct api_request *request, struct api_problem *problem);
/* Of a text that begins with {: is it a config.json or the keys of a file, and no request? */
bool api_pasted_is_config(const char *text, size_t n);
/* … is it an object as Python prints it, whose names are in single quotes? */
bool api_pasted_is_dict(const char *text, size_t n);

/* Numbers as programs print them: the text of a tensor of torch, NumPy, JAX or a debugger, as it is or inside a log.
 * Digits and what "..." leaves out are in value->print. stated: the whole shape, NULL if none is stated; without one,
 * what follows a gap has no place, and is dropped but for columns, which are refused. pointer is the field's. */
bool api_printed_read(struct api_request *request, const char *text, const struct pe_tensor *stated,
                      const char *pointer, struct pe_value *value, struct api_problem *problem);
/* Fields and members of `tensors` that are such texts become tensors. */
bool api_printed_take(struct api_request *request, struct api_problem *problem);
/* How the numbers of a list in JSON are printed, in the arena; NULL: with every digit. False without memory. */
bool api_print_of_json(struct api_arena *arena, const char *text, size_t n, const struct pe_print **print);
/* Does the endpoint compare tensors, which may have few digits? */
bool api_takes_prints(const struct api_request *request);

/* ---- said.c ------------------------------------------------------------------------------------------------------ */

/* The text of an object `said`, flags of a command line, as the JSON of its value; nothing of an unknown target. The
 * caller drops json of p, also after a failure. */
struct pasting;
bool api_said_flags(struct pasting *p, const struct pe_value *said);

/* ---- gguf.c ------------------------------------------------------------------------------------------------------ */

/* The head of a GGUF file as the object of its keys about positions, with `tensors` (core/models/gguf); a tensor that
 * was not sent is {"needs":[first byte, last byte]} or {"needs":null}. Values are in the arena. pointer is the field's.
 */
bool api_gguf_parse(struct api_arena *arena, const char *bytes, size_t n, const char *pointer, struct pe_value *value,
                    struct api_problem *problem);
static inline bool api_gguf_looks_like(const char *bytes, size_t n) { return n >= 4 && memcmp(bytes, "GGUF", 4) == 0; }

/* ---- gguf_value.c ------------------------------------------------------------------------------------------------ */

/* The types of values, by the number that the file has for them. */
enum api_gguf_type {
    API_GGUF_U8,
    API_GGUF_I8,
    API_GGUF_U16,
    API_GGUF_I16,
    API_GGUF_U32,
    API_GGUF_I32,
    API_GGUF_F32,
    API_GGUF_BOOL,
    API_GGUF_STRING,
    API_GGUF_ARRAY,
    API_GGUF_U64,
    API_GGUF_I64,
    API_GGUF_F64,
    API_GGUF_N_TYPES
};
enum { API_GGUF_TYPE_BYTES = 16, API_GGUF_TYPES_BYTES = 80 }; /* the name of a type, of all that are read */

/* Bytes of one; 0: of a string or an array. */
unsigned api_gguf_size(uint64_t type);
/* Of n bytes, at most 8, the lowest first. */
uint64_t api_little_endian(const char *bytes, unsigned n);
/* Are the n bytes UTF-8 without a NUL? */
bool api_gguf_is_text(const char *text, size_t n);

/* In the next two the bytes of a value begin with its type; the walk has found that all of them are there. */

/* Is the type among those `allowed`, PE_GGUF_… bits? is: its name; names: those that are allowed, "u32, u32[]". */
bool api_gguf_is_stored_as(const char *bytes, unsigned allowed, char is[API_GGUF_TYPE_BYTES],
                           char names[API_GGUF_TYPES_BYTES]);
/* Copied to the arena; null: an array of strings, which no key about positions is. */
bool api_gguf_value(struct api_arena *arena, const char *bytes, struct pe_value *value, struct api_problem *problem);

/* A tensor that was not sent: {"needs":[first,last]}, its bytes in the file; {"needs":null} with n_bytes = 0. */
bool api_gguf_needs(struct api_arena *arena, uint64_t first, uint64_t n_bytes, struct pe_value *value,
                    struct api_problem *problem);
/* One that was: `count` numbers in f32. */
bool api_gguf_numbers(struct api_arena *arena, const char *bytes, uint64_t count, struct pe_value *value,
                      struct api_problem *problem);

/* The readers of list.h. */
#define INPUT(media_type, name)                                                                                        \
    bool api_##name##_read(struct api_request *, const struct api_received *, struct api_problem *);
#include "api/inputs/list.h"
#undef INPUT

/* ---- json_in.c --------------------------------------------------------------------------------------------------- */

/* A JSON object's members as fields of a request. */

/* Adds the members of the JSON object that text holds to request, without those that are null. where begins the
 * messages: "" or "part \"request\": ". Not JSON is 400 with line and column, JSON that is no object 422. */
bool api_json_read(struct api_request *request, const char *text, size_t n, const char *where,
                   struct api_problem *problem);

/* One JSON object as a value; at: the pointer of the field that it will be, which decides about null. */
bool api_json_value_read(struct api_request *request, const char *text, size_t n, const char *at, const char *where,
                         struct pe_value *value, struct api_problem *problem);

/* The same, but an object with a member "data" stays an object and is not read as a tensor. */
bool api_json_read_plain(struct api_request *request, const char *text, size_t n, const char *where,
                         struct api_problem *problem);
/* Whether n bytes of JSON are within the limit --max-json (max; 0: no limit). If not, *problem has the reason. */
bool api_json_check_size(uint64_t max, uint64_t n, const char *where, struct api_problem *problem);

/* Whether text is one JSON value and nothing else; its tree stays in the arena. If not, *problem has the reason, which
 * begins with `where`. */
bool api_json_check(struct api_arena *arena, const char *text, size_t n, const char *where,
                    struct api_problem *problem);
/* A string (borrowed), number, truth or null; of an array or an object its kind; of an array its length too. */
struct pe_value api_json_scalar(const json_t *json);

/* ---- safetensors.c ----------------------------------------------------------------------------------------------- */

/* A safetensors file as its tensors: for bodies of requests and for stored weights. */

struct api_safetensor {
    const char *name;
    struct pe_tensor tensor; /* its data is a slice of the file */
    uint64_t begin, end;     /* of its bytes within the data */
};

struct api_safetensors {
    struct api_safetensor *entries; /* in the order of their data */
    size_t n_entries;
    const char *request; /* the text in __metadata__.request, NULL if there is none */
};

/* Reads the n bytes of a file with at most n_max tensors. The result is borrowed from the arena and from bytes. */
bool api_safetensors_parse(struct api_arena *arena, const char *bytes, size_t n, size_t n_max,
                           struct api_safetensors *found, struct api_problem *problem);

bool api_safetensors_looks_like(const char *bytes, size_t n);

/* ---- tensor_in.c ------------------------------------------------------------------------------------------------- */

/* A tensor written in JSON: {"dtype":"f32","shape":[2,2],"data":[1,2,3,4]}, or drawn from a seed:
 * {"shape":[2,2],"seed":7,"std":1}; or the bytes of a .npy file: {"npy":"<base64>"}. */

/* Is the object a tensor, well written or not? One that `pointer` places in a model's configuration is none without
 * data. */
bool api_tensor_is(const struct pe_value *object, const char *pointer);

/* Turns *value, such an object, into the dense array it describes; memory from the request's arena. dtype left out:
 * f32; shape left out: that of the data. Without data its numbers are drawn: N(0, std^2) in f32, from the seed and the
 * name of its field (pe_seed_fill); the request's `drawing` is the limit. pointer names the object in errors. */
bool api_tensor_read(struct api_request *request, const char *name, struct pe_value *value, const char *pointer,
                     struct api_problem *problem);

/* ---- tensor_table.c ---------------------------------------------------------------------------------------------- */

/* Stored weights inside api/: finding tensors in a file that has been read. */

/* api_tensors_read for handlers: if it returns NULL, it fills *problem. */
struct api_tensors *api_tensors_parse(const char *bytes, size_t n, struct api_problem *problem);

size_t api_tensors_count(const struct api_tensors *tensors);
const char *api_tensors_name(const struct api_tensors *tensors, size_t i); /* in the order of strcmp */
/* Tensor i of the stored file; its data is borrowed from it. */
struct pe_tensor api_weights_tensor(const struct api_stored_file *weights, size_t i);
bool api_tensors_find(const struct api_tensors *tensors, const char *name, size_t *i);
/* How many have a name that is `ending` (n bytes) or ends with it behind a dot. found has the first of them by name,
 * n_max at most, *n_found of them before and after the call, so that calls with several endings append to one list. */
size_t api_tensors_ending(const struct api_tensors *tensors, const char *ending, size_t n, size_t *found,
                          size_t *n_found, size_t n_max);
/* All as members of a JSON object, "name":{"dtype":…,"shape":…}. Text that the window skips costs nothing. */
void api_tensors_print(const struct api_tensors *tensors, struct api_window *window);

/* ---- preset_file.c ----------------------------------------------------------------------------------------------- */

/* A stored preset, as the store keeps it: {"config":{"scheme":…},"source":"…","note":"…","stored_by":"…",
 * "stored_at":"…"}, all but config optional. Its name is that of its file. */

struct api_text;

/* One that has been read. */
struct api_stored_preset {
    struct pe_preset preset; /* without its name */
    const char *members;     /* as api_preset_members writes them */
};

/* The members that a file has. config is an object; the texts may be NULL. */
struct api_preset_members {
    const struct pe_value *config;
    const char *source, *note, *stored_by, *stored_at;
};
/* Writes them as members, without the braces around them. */
void api_preset_members(struct api_text *text, const struct api_preset_members *members);

/* The members of one that is stored, under a name: an entry of GET /presets. */
void api_preset_stored(struct api_text *text, const char *name, const struct api_stored_preset *kept);

/* The name that is nearest, built in or stored; buffer has API_WEIGHT_NAME_MAX + 1 bytes. NULL: none is near. presets
 * may be NULL. */
const char *api_preset_nearest(const struct api_store *presets, const char *name, char *buffer);

/* Fails as pe_preset_name has (err), or with the nearest name, also of those that are stored. */
bool api_fail_preset(const struct api_store *presets, const struct pe_preset_name *name, const struct pe_failure *err,
                     struct api_problem *problem);

/* Of a public model, in the catalogue and in the answers computed from it. */

/* The members name, source, certainty and note of a preset, without the braces around them. */
void api_preset_about(struct api_text *text, const struct pe_preset *preset);
/* The members asked, resolved and dropped, each behind a comma, if the name (NULL: none) is neither the preset's own
 * nor an alias. */
void api_preset_asked(struct api_text *text, const char *asked);
/* The same for the catalogue, with the note in lang and as note_zh in Chinese. */
void api_preset_about_in(struct api_text *text, const struct pe_preset *preset, enum pe_lang lang);

/* ---- preset_file.c: in a request --------------------------------------------------------------------------------- */

/* The field `preset` of a request: a stored preset instead of its name. */

/* If the field `preset` names no preset that is built in, looks it up in request->presets. It is held until
 * api_request_drop. Call it as soon as the request has the field; calling it again does nothing. */
bool api_preset_find(struct api_request *request, struct api_problem *problem);
static inline bool api_preset_take(struct api_request *request, struct api_problem *problem)
{
    return !api_request_find(request, "preset") || api_preset_find(request, problem);
}

/* The same for the field `preset` of each object in a list, the value of a field of this name. */
bool api_preset_take_within(struct api_request *request, const char *name, const struct pe_value *list,
                            struct api_problem *problem);

/* ---- weights_in.c ------------------------------------------------------------------------------------------------ */

/* The field `weights` of a request: stored tensors become fields of it. */

/* Replaces the field `weights`, if there is one, by the tensors of the stored file that it names. They are borrowed
 * from the file, which is held until api_request_drop. *n_bytes: of those tensors. store may be NULL. */
bool api_weights_find(const struct api_store *store, struct api_request *request, size_t *n_bytes,
                      struct api_problem *problem);
static inline bool api_weights_add(const struct api_store *store, struct api_request *request, size_t *n_bytes,
                                   struct api_problem *problem)
{
    *n_bytes = 0;
    return !api_request_find(request, "weights") || api_weights_find(store, request, n_bytes, problem);
}

#endif
