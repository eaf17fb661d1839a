/* Tensors as the bytes of an answer: where they come from, how they are cut into pieces (body.c), and the formats, one
 * in each file. */
#ifndef API_FORMATS_H
#define API_FORMATS_H

#include "api/api.h"
#include "api/arena.h"
#include "api/inputs/inputs.h"
#include "api/problem.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A format turns the tensors of an answer into bytes, piece by piece. Each has one file and one line in list.h. */

struct api_format;
struct api_lines;

/* ---- Where tensors come from, and how they are cut --------------------------------------------------------------- */

/* Formats ask only this of a source (inputs/inputs.h). */

/* The description of a tensor that a caller holds; name is borrowed. */
struct pe_output api_held_output(const char *name, const struct pe_tensor *tensor);

static inline size_t api_source_count(const struct api_source *source)
{
    return source->plan ? pe_plan_n_outputs(source->plan) : source->n_held;
}

static inline const struct pe_output *api_source_output(const struct api_source *source, size_t i)
{
    return source->plan ? pe_plan_output(source->plan, i) : &source->held[i].output;
}

static inline enum pe_pace api_source_pace(const struct api_source *source)
{
    return source->plan ? pe_plan_pace(source->plan) : PE_QUICK;
}

/* Like pe_plan_work and pe_plan_bytes: none for tensors that are in memory. */
static inline double api_source_work(const struct api_source *source)
{
    return source->plan ? pe_plan_work(source->plan) : 0;
}
static inline double api_source_bytes(const struct api_source *source)
{
    return source->plan ? pe_plan_bytes(source->plan) : 0;
}

/* Like pe_fill. */
static inline void api_source_fill(const struct api_source *source, size_t i, uint64_t first, size_t n, void *dst)
{
    if (source->plan) {
        pe_fill(source->plan, i, first, n, dst);
        return;
    }
    size_t size = pe_dtype_size(source->held[i].output.dtype);
    memcpy(dst, (const char *)source->held[i].elements + first * size, n * size);
}

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

/* Tensors in a format. It is immutable once opened, except for data that a format stores atomically behind `own`; any
 * number of threads may compute its pieces. */
struct api_plan_body {
    struct api_body body;        /* must be first; its length depends on the printed text if there is some */
    struct api_request *request; /* held: the body is in its arena, with all that it borrows */
    const struct api_format *format;
    struct api_source source;
    int digits;
    bool joined; /* one piece holds everything */
    bool is_light;
    struct api_segment *segments; /* in the arena */
    size_t n_segments, max_segments;
    /* A part of the body: its first piece, and the bytes omitted from the first and the last piece. */
    uint64_t part_piece;
    size_t skipped, dropped;
    void *own; /* data of the format for print() and waits(), in the arena */
};

/* ---- Formats ----------------------------------------------------------------------------------------------------- */

struct api_format {
    const char *name, *media_type; /* "raw", "application/octet-stream" */
    const char *content_type;      /* the value of the Content-Type header, if longer than the media type; else NULL */
    const char *const *fields;  /* names of the form's fields that not all formats use; NULL-terminated, NULL: none */
    bool is_text;               /* numbers as text: the length is known only once they are printed */
    bool is_picture;            /* open() computes the whole body, so a call with must_not_block may not use it */
    const char *(*maker)(void); /* versions of the libraries that the bytes depend on; NULL: of none */
    /* Gives request->opening.stream its segments by api_body_text and api_body_output, or fails if these tensors have
     * no such form. */
    bool (*open)(struct api_request *request);
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

extern const struct api_format *const api_formats[]; /* in order of preference */
size_t api_n_formats(void);
static inline const struct api_format *api_format_at(size_t i) { return api_formats[i]; }
static inline const char *api_format_type(const struct api_format *f)
{
    return f->content_type ? f->content_type : f->media_type;
}
extern const char *const api_format_names[];    /* NULL-terminated */
extern const char *const api_reduce_names[];    /* in the order of enum pe_reduce, NULL-terminated */
void api_formats_print(char *out, size_t room); /* "application/json (json), …" for messages */

/* ---- body.c ------------------------------------------------------------------------------------------------------ */

/* Opens request->opening.stream in the request's arena: a body of all tensors of the source, in its format, which fits
 * its form (api_form_check). */
bool api_body_open(struct api_request *request);
/* Leaves only bytes first … last of a body whose length is known by arithmetic (no text). */
void api_body_cut(struct api_plan_body *stream, uint64_t first, uint64_t last);

/* For open(): adds the next segment of the body. text is borrowed for the stream's life. */
void api_body_text(struct api_plan_body *stream, const char *text, size_t n);
void api_body_output(struct api_plan_body *stream, size_t index);
/* n bytes in one piece, which print() writes; index is its number in the format's own count. */
void api_body_made(struct api_plan_body *stream, size_t index, size_t n);
/* The same in pieces of usual size. */
void api_body_filled(struct api_plan_body *stream, size_t index, size_t n);
/* Takes a finished text into the arena and adds it as a segment; on failure request->problem has the reason. */
bool api_body_take(struct api_request *request, struct api_text *text);

/* The same for a complete picture, which is stored until it is read: 503 if too many pictures wait for their
 * readers. */
bool api_body_keep(struct api_request *request, struct api_text *text);

/* For print(): the offset of piece i in its segment; *n is the number of its elements (or bytes of text). The second
 * function returns the number of the piece that begins at `first`, the third computes a piece. */
uint64_t api_segment_first(const struct api_segment *segment, uint64_t i, size_t *n);
uint64_t api_segment_piece(const struct api_segment *segment, uint64_t first);
size_t api_body_piece(const struct api_plan_body *stream, uint64_t i, char *dst);

/* Shared by the formats that send elements as their bytes. */
size_t api_bytes_width(const struct api_plan_body *stream, const struct pe_output *output);
size_t api_bytes_print(const struct api_plan_body *stream, const struct api_segment *segment, uint64_t first, size_t n,
                       char *dst);

/* ---- json.c ---- */

/* Adds what JSON states of the plan: "scheme":…,"config":{…} and, if the request named one, ,"preset":{…}. */
void api_json_plan(struct api_text *text, const struct api_request *request);
/* What follows its tensors, where it has them: empty_rows, and terms, the names along the first axis of that output.
 * plan may be NULL. */
void api_json_rest(struct api_text *text, const struct pe_plan *plan);

/* ---- safetensors.c ---- */

/* Bytes of the file that the request's opening gives. */
bool api_safetensors_size(struct api_request *request, uint64_t *n_bytes);

/* ---- npy.c, for the formats that contain such files ---- */

/* 406 if NumPy has no dtype for the output; format is the name of the requested format. */
bool api_npy_check(const struct pe_output *output, const char *format, struct api_problem *problem);
/* Adds magic, length and dict; a multiple of 64 bytes. output has passed api_npy_check. */
void api_npy_head(struct api_text *text, const struct pe_output *output);

/* ---- picture.c: colour maps -------------------------------------------------------------------------------------- */

/* Colours of pictures: 255 of a map, from the lowest value to the highest. */

/* With one more index for "no number", they fill a palette of one-byte indices. */
enum { API_COLOURS = 255 };

struct api_colour {
    uint8_t red, green, blue; /* sRGB */
};

extern const char *const api_cmap_names[]; /* NULL-terminated; the first is the default */

/* Colour i < API_COLOURS of the map with that index in api_cmap_names. */
struct api_colour api_colour(int cmap, unsigned i);

/* ---- picture.c: the legend --------------------------------------------------------------------------------------- */

/* The strip below a picture that explains its colours: all colours from left to right, and under the two ends the least
 * and the greatest value in digits. */

struct api_legend {
    char low[16], high[16];
    uint8_t paper, ink; /* indices of colours: the map's lightest and its darkest, so that digits show on any page */
    size_t scale;       /* pixels of a dot along each side */
};

/* Dots high, with the gap above. */
enum { API_LEGEND_DOTS = 21 };

/* A size that is readable beside a picture whose longer side is this. */
size_t api_legend_scale(uint64_t side);

void api_legend_init(struct api_legend *legend, int cmap, double low, double high, size_t scale);

/* The least width in pixels. */
size_t api_legend_width(const struct api_legend *legend);

/* Row i < API_LEGEND_DOTS of dots as width colour indices, 0 for an empty dot. */
void api_legend_row(const struct api_legend *legend, unsigned i, uint8_t *indices, size_t width);

/* ---- picture.c --------------------------------------------------------------------------------------------------- */

/* A picture: the last two axes of an answer's first output as indices of colours, row by row. Shared by png and text.
 */

/* Its values are needed twice, for their range and for the pixels, and computed twice: never more than a chunk of the
 * tensor is in memory. */
struct api_picture {
    struct api_source source;
    const struct pe_output *output;
    uint64_t height, width;      /* of the matrix: the last two axes, with leading indices 0; a single axis is a row */
    uint64_t row_step, col_step; /* the picture shows the first element of each step */
    size_t n_rows, n_cols;       /* of the picture; n_cols after shrinking */
    bool has_range;              /* false: no visible value is finite */
    double low, high;            /* the values of the first and the last colour; low <= high */
    double *values;              /* one row of the picture; owned */
    char *chunk;                 /* consecutive elements of the output; owned */
    uint64_t chunk_first, chunk_n;
    uint64_t step, within; /* elements of a chunk; a new chunk begins at each multiple of within */
    bool is_left;          /* the client has disconnected: nothing more is computed, and the rows have no meaning */
};

/* Starts with the first tensor of the answer; no rows are in memory yet. Fails if that output has no picture. */
bool api_picture_init(struct api_picture *picture, struct api_request *request);
void api_picture_drop(struct api_picture *picture);

/* Decides the steps and allocates. Call it before the functions below. */
bool api_picture_shrink(struct api_picture *picture, uint64_t row_step, uint64_t col_step, struct api_problem *problem);

/* Finds the range: vmin and vmax of the form, else the least and the greatest finite visible value. */
void api_picture_measure(struct api_picture *picture, const struct api_form *form);

/* Row i as n_cols indices: 0 for a value that is not finite, 1 … 255 for the colours. Reading the rows in order is
 * fastest. */
void api_picture_row(struct api_picture *picture, size_t i, uint8_t *indices);

/* Whether the picture is complete. If not, the client has disconnected, and the answer is a refusal that is never
 * read. */
bool api_picture_check(const struct api_picture *picture, struct api_problem *problem);

/* ---- resolved.c -------------------------------------------------------------------------------------------------- */

/* The request that a picture was made from, with every default filled in. */

/* Writes a JSON object in ASCII: the configuration, the sequence, and the resolved form of the picture. Sent as a
 * request, it returns the same picture. It does not contain the tensors of the request. zoom: 0 leaves it out. */
void api_resolved_print(struct api_text *text, const struct api_request *request, const struct api_picture *picture,
                        uint64_t zoom);

#endif
