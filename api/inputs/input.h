/* An input reads bodies of one content type into the fields of a request. Each has one file and one line in list.h. */
#ifndef API_INPUTS_INPUT_H
#define API_INPUTS_INPUT_H

#include "api/inputs/request.h"

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

void api_inputs_print(char *out, size_t room); /* "application/json, multipart/form-data, …" for Accept-Post */

/* Fails with 415 and the list of accepted types. */
bool api_fail_media_type(struct api_problem *problem, const char *pointer, const char *what);

/* A .npy file to a tensor, Its data is a slice of bytes or, if byte order or axis order differ from ours, a copy in the
 * request's arena. what names the file in messages. pointer is the field's. */
struct api_npy_file {
    const char *bytes;
    size_t n;
    const char *what, *pointer;
};
bool api_npy_parse(struct api_arena *arena, const struct api_npy_file *file, struct pe_tensor *tensor,
                   struct api_problem *problem);
bool api_npy_looks_like(const char *bytes, size_t n);
bool api_npz_looks_like(const char *bytes, size_t n);

/* The readers of list.h. */
#define INPUT(media_type, name)                                                                                        \
    bool api_##name##_read(struct api_request *, const struct api_received *, struct api_problem *);
#include "api/inputs/list.h"
#undef INPUT

#endif
