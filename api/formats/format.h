/* A format turns the tensors of an answer into bytes, piece by piece. Each has one file and one line in list.h. */
#ifndef API_FORMATS_FORMAT_H
#define API_FORMATS_FORMAT_H

#include "api/bodies/bodies.h"
#include "api/problem.h"
#include "api/requests/form.h"

/* A member of an answer beside its tensors. */
struct api_member {
    const char *name, *json;
    size_t n; /* bytes of json */
};

/* The arguments of a format's open(). */
struct api_opening {
    struct api_source source;
    const struct api_form *form;
    struct api_request *request; /* the fields that do not belong to the form; the stream will own it */
    struct api_arena *arena;     /* for the stream's own data; lives as long as the stream */
    uint64_t max_kept;           /* bytes of all pictures that are not read yet */
    const char *config;          /* of a plan: its resolved configuration as JSON text */
    size_t config_bytes;
    const struct api_member *members; /* of an answer without a plan: what JSON and safetensors contain besides tensors,
                                         in this order; borrowed until open() returns */
    size_t n_members;
    struct api_plan_body *stream; /* api_body_open makes it, open() adds its segments */
    void *about;                  /* further data for a format of a single endpoint; else NULL */
    const char *header;           /* one more header of the answer, NULL if none */
    const char *header_value;     /* in the arena */
};

struct api_format {
    const char *name, *media_type; /* "raw", "application/octet-stream" */
    const char *content_type;      /* the value of the Content-Type header, if longer than the media type; else NULL */
    const char *const *fields;  /* names of the form's fields that not all formats use; NULL-terminated, NULL: none */
    bool is_text;               /* numbers as text: the length is known only once they are printed */
    bool is_picture;            /* open() computes the whole body, so a call with must_not_block may not use it */
    const char *(*maker)(void); /* versions of the libraries that the bytes depend on; NULL: of none */
    /* Gives the stream its segments by api_body_text and api_body_output, or fails if these tensors have no such
     * form. */
    bool (*open)(struct api_opening *opening, struct api_problem *problem);
    /* Pictures do not have this function or the next ones. Most bytes of one element with everything around it, scratch
     * included. */
    size_t (*width)(const struct api_plan_body *stream, const struct pe_output *output);
    /* Writes n elements from `first` on to dst (room for n × width + 64, aligned to 8 where the format has no text)
     * and returns the bytes written. */
    size_t (*print)(const struct api_plan_body *stream, const struct api_segment *segment, uint64_t first, size_t n,
                    char *dst);
    /* Like api_body.waits; NULL: no piece waits. */
    bool (*waits)(const struct api_plan_body *stream, const struct api_segment *segment);
};

size_t api_n_formats(void);
const struct api_format *api_format_at(size_t i); /* in order of preference */
extern const char *const api_format_names[];      /* NULL-terminated */
extern const char *const api_reduce_names[];      /* in the order of enum pe_reduce, NULL-terminated */
void api_formats_print(char *out, size_t room);   /* "application/json (json), …" for messages */

/* ---- npy.c, for the formats that contain such files ---- */

/* 406 if NumPy has no dtype for the output; format is the name of the requested format. */
bool api_npy_check(const struct pe_output *output, const char *format, struct api_problem *problem);
/* Adds magic, length and dict; a multiple of 64 bytes. output has passed api_npy_check. */
void api_npy_head(struct api_text *text, const struct pe_output *output);

/* ---- preset_about.c: the description of a public model in the catalogue and in the answers computed from it ---- */

/* The members name, source, certainty and note of a preset, without the braces around them. */
void api_preset_about(struct api_text *text, const struct pe_preset *preset);
/* The same for the catalogue, with the note in lang and as note_zh in Chinese. */
void api_preset_about_in(struct api_text *text, const struct pe_preset *preset, enum pe_lang lang);

#endif
