/* The bodies of answers: each file has one kind, behind struct api_body. bytes.c: finished bytes. plan.c: tensors in a
 * format, computed on demand. file.c: a part of a stored file. list.c: a list of stored files. live.c: an experiment
 * that runs while it is sent. */
#ifndef API_BODIES_H
#define API_BODIES_H

#include "api/api.h"
#include "api/arena.h"
#include "api/text.h"

struct api_format;
struct api_lines;
struct api_opening;
struct api_problem;
struct api_request;

/* ---- bytes.c ------------------------------------------------------------------------------------------------------
 */

/* Finished bytes, in one piece. */
struct api_bytes_body {
    struct api_body body; /* must be first */
    char *owned;          /* freed with it; NULL: the bytes last longer */
};
struct api_bytes_body api_bytes_body_of(const char *bytes, size_t n, char *owned);
size_t api_bytes_body_piece(struct api_body *body, uint64_t i, char *dst);

/* ---- plan.c -------------------------------------------------------------------------------------------------------
 */

/* Where the tensors of an answer come from: a plan that computes their elements on demand, or memory that already holds
 * them (the curves of an analysis). Formats ask only this. */

/* A tensor in memory: its shape, and its elements in row-major order, aligned to one of them. Borrowed as long as the
 * answer is sent. */
struct api_held {
    struct pe_output output;
    const void *elements;
};

struct api_source {
    const struct pe_plan *plan; /* NULL: the tensors are in memory */
    const struct api_held *held;
    size_t n_held;
};

/* The description of a tensor that a caller holds; name is borrowed. */
struct pe_output api_held_output(const char *name, const struct pe_tensor *tensor);

size_t api_source_count(const struct api_source *source);
const struct pe_output *api_source_output(const struct api_source *source, size_t i);
enum pe_pace api_source_pace(const struct api_source *source);
/* Like pe_plan_work, pe_plan_bytes: none for tensors that are in memory. */
double api_source_work(const struct api_source *source);
double api_source_bytes(const struct api_source *source);
/* Like pe_fill. */
void api_source_fill(const struct api_source *source, size_t i, uint64_t first, size_t n, void *dst);

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

/* Opens opening->stream in the request's arena: a body of all tensors of the source. format fits form
 * (api_form_check). */
bool api_body_open(const struct api_format *format, struct api_opening *opening, struct api_problem *problem);
/* Leaves only bytes first … last of a body whose length is known by arithmetic (no text). */
void api_body_cut(struct api_plan_body *stream, uint64_t first, uint64_t last);

/* For open(): adds the next segment of the body. text is borrowed for the stream's life. */
void api_body_text(struct api_plan_body *stream, const char *text, size_t n);
void api_body_output(struct api_plan_body *stream, size_t index);
/* n bytes in one piece, which print() writes; index is its number in the format's own count. */
void api_body_made(struct api_plan_body *stream, size_t index, size_t n);
/* The same in pieces of usual size. */
void api_body_filled(struct api_plan_body *stream, size_t index, size_t n);
/* Takes a finished text into the arena and adds it as a segment; on failure *problem has the reason. */
bool api_body_take(struct api_opening *opening, struct api_text *text, struct api_problem *problem);

/* The same for a complete picture, which is stored until it is read: 503 if too many pictures wait for their
 * readers. */
bool api_body_keep(struct api_opening *opening, struct api_text *text, struct api_problem *problem);
bool api_finished_has_room(const struct api_opening *opening, struct api_problem *problem);

/* For print(): the offset of piece i in its segment; *n is the number of its elements (or bytes of text). The second
 * function returns the number of the piece that begins at `first`, the third computes a piece. */
uint64_t api_segment_first(const struct api_segment *segment, uint64_t i, size_t *n);
uint64_t api_segment_piece(const struct api_segment *segment, uint64_t first);
size_t api_body_piece(const struct api_plan_body *stream, uint64_t i, char *dst);

/* Shared by the formats that send elements as their bytes. */
size_t api_bytes_width(const struct api_plan_body *stream, const struct pe_output *output);
size_t api_bytes_print(const struct api_plan_body *stream, const struct api_segment *segment, uint64_t first, size_t n,
                       char *dst);

/* ---- file.c, list.c, live.c ---------------------------------------------------------------------------------------
 */

/* n bytes of a stored file from `first` on; takes the hold on it. NULL: no memory. */
struct api_body *api_file_body_new(const struct api_store *store, const struct api_weights *file, size_t first,
                                   size_t n);

/* Lists of stored files as JSON. NULL: no memory. */
struct api_body *api_list_body_all(const struct api_store *store); /* store NULL: nothing is stored */
/* One file, without brackets; holds a card of the file. */
struct api_body *api_list_body_one(const struct api_store *store, const struct api_weights *weights);
/* The stored presets after others: begin, of n_begin bytes, is a list of at least one without its "]}", and lasts. */
struct api_body *api_list_body_presets(const struct api_store *store, const char *begin, size_t n_begin);
/* Writes the n bytes of a list from `first` on, all of them within it. Any thread; cannot fail. */
void api_list_print(const struct api_body *list, uint64_t first, size_t n, char *dst);

/* The events of an experiment, which runs while they are sent: lines, or server-sent events. Takes the experiment,
 * which the host counts as begun, and holds the request that it borrows from. NULL: no memory, and nothing is taken. */
struct api_body *api_live_body_new(struct api_request *request, struct pe_experiment *experiment, bool is_events);
extern const struct pe_member api_live_members[]; /* of an event */

#endif
