/* A format turns the tensors of an answer into bytes, piece by piece. Each has one file and one line in list.h. */
#ifndef API_FORMATS_FORMAT_H
#define API_FORMATS_FORMAT_H

#include "api/api.h"
#include "api/arena.h"
#include "api/formats/source.h"
#include "api/problem.h"
#include "api/requests/form.h"

struct api_lines;

/* A segment of a body: finished text, all elements of an output, or bytes that the format computes on request (neither
 * text nor output). */
struct api_segment {
    const char *text;               /* else NULL */
    const struct pe_output *output; /* else NULL */
    size_t index;    /* of the output in its source, or the format's own number of a segment that it computes */
    uint64_t count;  /* bytes of text, or elements */
    size_t width;    /* most bytes of one of them */
    size_t step;     /* how many make a piece; the last of a period may be shorter */
    uint64_t period; /* a new piece begins at each multiple of it */
    uint64_t first_piece, n_pieces;
    struct api_lines *lines; /* of an output that is Toeplitz, if the format wants them; else NULL */
};

/* A body whose bytes are computed on demand. It is immutable once opened, except for data that a format stores
 * atomically behind `own`; any number of threads may compute its pieces. */
struct api_body {
    const struct api_format *format;
    struct api_source source;
    int digits;
    bool joined; /* one piece holds everything */
    bool is_light;
    uint64_t length; /* of the body; API_LENGTH_UNKNOWN if it depends on the printed text */
    uint64_t n_pieces;
    size_t piece_max;
    struct api_segment *segments; /* in the arena */
    size_t n_segments, max_segments;
    /* A part of the body: its first piece, and the bytes omitted from the first and the last piece. */
    uint64_t part_piece;
    size_t skipped, dropped;
    void *own; /* data of the format for print() and waits(), in the arena */
};

/* A member of an answer beside its tensors. */
struct api_member {
    const char *name, *json;
    size_t n; /* bytes of json */
};

/* The arguments of a format's open(). */
struct api_opening {
    struct api_source source;
    const struct api_form *form;
    const struct api_request *request; /* the fields that do not belong to the form */
    struct api_arena *arena;           /* for the stream's own data; lives as long as the stream */
    uint64_t max_kept;                 /* bytes of all pictures that are not read yet */
    const char *config;                /* of a plan: its resolved configuration as JSON text */
    size_t config_bytes;
    const struct api_member *members; /* of an answer without a plan: what JSON and safetensors contain besides tensors,
                                         in this order; borrowed until open() returns */
    size_t n_members;
    struct api_body *stream;  /* open() adds its segments */
    void *about;              /* further data for a format of a single endpoint; else NULL */
    const char *header;       /* one more header of the answer, NULL if none */
    const char *header_value; /* in the arena */
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
    size_t (*width)(const struct api_body *stream, const struct pe_output *output);
    /* Writes n elements from `first` on to dst (room for n × width + 64, aligned to 8 where the format has no text)
     * and returns the bytes written. */
    size_t (*print)(const struct api_body *stream, const struct api_segment *segment, uint64_t first, size_t n,
                    char *dst);
    /* Like api_reply_waits; NULL: no piece waits. */
    bool (*waits)(const struct api_body *stream, const struct api_segment *segment);
};

size_t api_n_formats(void);
const struct api_format *api_format_at(size_t i); /* in order of preference */
extern const char *const api_format_names[];      /* NULL-terminated */
extern const char *const api_reduce_names[];      /* in the order of enum pe_reduce, NULL-terminated */
void api_formats_print(char *out, size_t room);   /* "application/json (json), …" for messages */

/* For open(): adds the next segment of the body. text is borrowed for the stream's life. */
void api_body_text(struct api_body *stream, const char *text, size_t n);
void api_body_output(struct api_body *stream, size_t index);
/* n bytes in one piece, which print() writes; index is its number in the format's own count. */
void api_body_made(struct api_body *stream, size_t index, size_t n);
/* The same in pieces of usual size. */
void api_body_filled(struct api_body *stream, size_t index, size_t n);
/* Takes a finished text into the arena and adds it as a segment; on failure *problem has the reason. */
bool api_body_take(struct api_opening *opening, struct api_text *text, struct api_problem *problem);

/* The same for a complete picture, which is stored until it is read: 503 if too many pictures wait for their
 * readers. */
bool api_body_keep(struct api_opening *opening, struct api_text *text, struct api_problem *problem);
bool api_finished_has_room(const struct api_opening *opening, struct api_problem *problem);

/* Opens *stream in arena: a body of all tensors of the source. format fits form (api_form_check). */
bool api_body_open(const struct api_format *format, struct api_opening *opening, struct api_problem *problem);
/* Leaves only bytes first … last of a body whose length is known by arithmetic (no text). */
void api_body_cut(struct api_body *stream, uint64_t first, uint64_t last);
/* Like api_reply_piece, api_reply_waits. */
size_t api_body_piece(const struct api_body *stream, uint64_t i, char *dst);
bool api_body_waits(const struct api_body *stream, uint64_t i);

/* The offset of piece i in its segment; *n is the number of its elements (or bytes of text). The second function
 * returns the number of the piece that begins at `first`. */
uint64_t api_segment_first(const struct api_segment *segment, uint64_t i, size_t *n);
uint64_t api_segment_piece(const struct api_segment *segment, uint64_t first);

/* Shared by the formats that send elements as their bytes. */
size_t api_bytes_width(const struct api_body *stream, const struct pe_output *output);
size_t api_bytes_print(const struct api_body *stream, const struct api_segment *segment, uint64_t first, size_t n,
                       char *dst);

#endif
