/* JSON of requests: numbers are extracted from the text first, jansson reads the rest; and a window on a text that is
 * printed in parts. */
#ifndef API_JSON_H
#define API_JSON_H

#include "api/arena.h"
#include "api/numbers/numbers.h"
#include "api/problem.h"
#include "core/inside.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- json_scan.c ------------------------------------------------------------------------------------------------- */

/* Extracts lists of numbers from JSON text, so that the JSON library never builds a million nodes. */

/* A list of numbers taken out of the text. */
struct api_lifted {
    size_t text_at, text_bytes;         /* its place in the original text */
    size_t skeleton_at, skeleton_bytes; /* the place of its stand-in */
    size_t first;                       /* of its first number in the common list */
    unsigned rank;
    uint64_t shape[PE_RANK_MAX];
};

/* The skeleton is the text with the k-th list of numbers replaced by `[k]`. That is unambiguous: a list of exactly one
 * integer is a list of numbers, so every one in the skeleton is a stand-in. */
struct api_scan {
    const char *skeleton; /* the text itself if nothing was extracted, else `replaced` */
    size_t skeleton_bytes;
    struct api_text replaced;
    struct api_doubles numbers; /* of all lists, one after the other */
    struct api_lifted *lifted;
    size_t n_lifted, lifted_room;
    struct api_problem too_deep; /* of the first list with too many levels; status 0: none. It is reported only if the
                                    whole text is JSON. */
};

/* Initialize scan with api_scan_init; the text is borrowed until api_scan_drop. where begins the messages ("" or "part
 * \"request\": "). Lists under the name "tokens" that hold strings are left in place: there "NaN" is a word. Lists
 * under the names "slice" and "grid_coords" may be ragged: they are entered, not extracted. The JSON library checks the
 * syntax; the scan refuses excessive depth, ragged lists, and anything over a limit. */
void api_scan_init(struct api_scan *scan);
bool api_scan_text(struct api_scan *scan, const char *text, size_t n, const char *where, struct api_problem *problem);
void api_scan_drop(struct api_scan *scan);

/* Offset in the original text of an offset in the skeleton; a place inside a stand-in is the start of its list. */
size_t api_scan_origin(const struct api_scan *scan, size_t skeleton_at);

/* How many bytes the text's UTF-8 byte order mark has: 3, or 0 without one. RFC 8259 allows a reader to ignore it. */
size_t api_json_mark(const char *text, size_t n);

/* Line and column (from 1, in characters) of a byte of a text. */
struct api_place {
    size_t line, column;
};
struct api_place api_place_of(const char *text, size_t n, size_t at);

/* ---- json_scan.c: jansson ---------------------------------------------------------------------------------------- */

/* The only call into jansson's parser, with errors that the caller can distinguish. */

struct api_json_error {
    bool no_memory; /* then the other fields are not set */
    int status;     /* 400: not JSON; 422: JSON that cannot be held (a number too large, a zero byte in a string) */
    size_t at;      /* offset of the last byte of the error */
    const char *text;
    json_error_t library; /* holds the text */
};

/* The tree of a whole text, or NULL. The arena owns the tree and frees it: json_decref must not be called. flags are
 * jansson's; a name that occurs twice is always an error. */
json_t *api_json_load(struct api_arena *arena, const char *text, size_t n, size_t flags, struct api_json_error *error);

/* A value as text (freed with free). flags are jansson's. NULL: no memory. */
char *api_json_text(const json_t *value, size_t flags);

/* ---- members.c --------------------------------------------------------------------------------------------------- */

/* The members of an object as they are written, for what must come back byte for byte, and for a part that another
 * reader reads. They end where what is between members is no JSON: is_broken, then, and the text is no object. */

struct api_json_member {
    const char *name, *value; /* the name without its quotes, and as it is escaped */
    size_t name_bytes, value_bytes;
};
struct api_json_members {
    const char *p, *end;
    size_t n_members;
    bool is_broken;
};
struct api_json_members api_json_members(const char *object, size_t n);
bool api_json_next(struct api_json_members *at, struct api_json_member *member);
bool api_json_find(const char *object, size_t n, const char *name, struct api_json_member *member); /* the first */

/* Whether it has more levels than a request may have (API_DEPTH_MAX). */
bool api_json_is_deep(const char *text, size_t n);

/* ---- members.c: printing through a window ------------------------------------------------------------------------ */

/* A window onto a text that is too long to store: all of it is printed, and only the window is kept. Printing needs no
 * memory and cannot fail, so that a piece of a long answer can be computed at any time. */

/* The window keeps the text's bytes from `first` on, at most room bytes. Initialize the other fields to zero: printing
 * starts at the beginning of the text. */
struct api_window {
    uint64_t first;
    size_t room;
    char *dst;   /* [room] */
    size_t n;    /* written */
    uint64_t at; /* bytes of the text printed so far */
};

/* A window that keeps nothing: at the end `at` is the length of the text. */
static inline struct api_window api_window_of_length(void)
{
    return (struct api_window){.first = UINT64_MAX, .room = 1};
}

static inline bool api_window_is_full(const struct api_window *window) { return window->n == window->room; }

/* True if the next n bytes end before the window: then they are counted as printed, and the caller need not print
 * them. */
bool api_window_skip(struct api_window *window, uint64_t n);

void api_window_add(struct api_window *window, const char *bytes, size_t n);
void api_window_put(struct api_window *window, const char *string);
void api_window_string(struct api_window *window, const char *utf8); /* as JSON, like api_text_string */

bool api_is_json_number(const char *text, size_t n); /* is all of it one? */

#endif
