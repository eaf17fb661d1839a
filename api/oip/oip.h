/* The Open Inference Protocol v2 over REST: schemes as models. Shared declarations of this folder, and its handlers.
 */
#ifndef API_OIP_OIP_H
#define API_OIP_OIP_H

#include "api/endpoints/endpoints.h"
#include "api/operations.h"

/* ---- Models (metadata.c) --------------------------------------------------------------------------------------- */

#define API_OIP_VERSION "1" /* the version of every model */

/* A scheme under its own name, whose outputs decide what is computed; or as "encode-…", "rotate-…", "attention-…". */
struct api_oip_model {
    const struct pe_scheme_info *scheme;
    bool is_fixed; /* to the operation; else any operation that the scheme has */
    enum pe_operation_id operation;
};

enum { API_OIP_NAME_MAX = 96 };
size_t api_oip_n_models(void);
struct api_oip_model api_oip_model_at(size_t i);
void api_oip_name_print(const struct api_oip_model *model, char *name); /* API_OIP_NAME_MAX bytes */
bool api_oip_can(const struct api_oip_model *model, enum pe_operation_id operation);
/* Finds the model and version that a path names ("" is any version); else 404. */
bool api_oip_find(struct api_request *request, struct api_oip_model *model);

/* ---- Datatypes (metadata.c) ------------------------------------------------------------------------------------ */

/* ---- A request (infer_in.c, tensors.c) ------------------------------------------------------------------------- */

enum api_oip_wish { API_OIP_UNSAID, API_OIP_JSON, API_OIP_BINARY };

struct api_oip_input {
    const char *name, *datatype;
    struct pe_tensor shape; /* rank and lengths alone */
    const struct pe_value *data;
    bool is_binary;
    uint64_t n_bytes; /* of the binary tail */
    size_t index;     /* in the list, for pointers */
};

/* The contents of the JSON; lives as long as the api_request it was read into. */
struct api_oip_request {
    const char *id; /* NULL: none */
    struct api_oip_input inputs[API_FIELDS_MAX];
    size_t n_inputs;
    const char *outputs[API_OUTPUTS_MAX];
    enum api_oip_wish wishes[API_OUTPUTS_MAX];
    size_t n_outputs;       /* 0: those of the model */
    enum api_oip_wish wish; /* for outputs without their own setting */
    uint64_t timeout_us;    /* 0: none */
};

/* The number of bytes of a body that are JSON: as the header states, else all. */
bool api_oip_json_bytes(const struct api_call *call, size_t *n, struct api_problem *problem);

/* Reads a body whose first n_json bytes are JSON into *oip, and parameters and tensors into request. The scheme is
 * added by the caller. */
bool api_oip_read(struct api_request *request, const struct api_call *call, size_t n_json, struct api_oip_request *oip,
                  struct api_problem *problem);

/* The bytes behind the JSON, consumed from the front. */
struct api_oip_tail {
    const char *p, *end;
    const char *free_from; /* bytes from here to p are no longer used */
};

/* Adds an input's tensor to request: from its data, or from the tail. */
bool api_oip_add_tensor(struct api_request *request, const struct api_oip_input *input, struct api_oip_tail *tail,
                        struct api_problem *problem);

/* Sets *value from a parameter: a scalar directly, a list or object from the JSON text in a string. */
bool api_oip_add_parameter(struct api_request *request, const char *name, const struct pe_value *value,
                           struct api_problem *problem);

/* ---- An answer (infer_out.c) ----------------------------------------------------------------------------------- */

/* The data that the formats below use. */
struct api_oip_answer {
    const struct api_oip_model *model;
    const struct api_oip_request *request;
    bool has_tail; /* set by open: at least one output is sent as bytes */
};

extern const struct api_format api_oip_json;   /* everything in JSON, streamed */
extern const struct api_format api_oip_binary; /* JSON, then the tensors that were requested as bytes */
/* Chooses one of the two; *is_mixed: some outputs are requested as JSON, others as bytes. */
const struct api_format *api_oip_format(const struct api_oip_request *request, bool *is_mixed);

/* ---- Handlers -------------------------------------------------------------------------------------------------- */

struct api_reply *api_oip_server(struct api_request *request); /* models.c */
struct api_reply *api_oip_live(struct api_request *request);
struct api_reply *api_oip_ready(struct api_request *request);
struct api_reply *api_oip_models(struct api_request *request);
struct api_reply *api_oip_models_stats(struct api_request *request);
struct api_reply *api_oip_model_ready(struct api_request *request);
struct api_reply *api_oip_stats(struct api_request *request);
struct api_reply *api_oip_index(struct api_request *request);
struct api_reply *api_oip_load(struct api_request *request);
struct api_reply *api_oip_unload(struct api_request *request);
struct api_reply *api_oip_model(struct api_request *request); /* metadata.c */
struct api_reply *api_oip_config(struct api_request *request);
extern const struct api_steps api_oip_infer; /* infer.c */

#endif
