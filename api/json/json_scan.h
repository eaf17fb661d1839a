/* Extracts lists of numbers from JSON text, so that the JSON library never builds a million nodes. */
#ifndef API_JSON_SCAN_H
#define API_JSON_SCAN_H

#include "api/numbers/numbers.h"
#include "api/problem.h"

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
 * under the name "slice" may be ragged: they are entered, not extracted. The JSON library checks the syntax; the scan
 * refuses excessive depth, ragged lists, and anything over a limit. */
void api_scan_init(struct api_scan *scan);
bool api_scan_text(struct api_scan *scan, const char *text, size_t n, const char *where, struct api_problem *problem);
void api_scan_drop(struct api_scan *scan);

/* Offset in the original text of an offset in the skeleton; a place inside a stand-in is the start of its list. */
size_t api_scan_origin(const struct api_scan *scan, size_t skeleton_at);

/* Line and column (from 1, in characters) of a byte of a text. */
struct api_place {
    size_t line, column;
};
struct api_place api_place_of(const char *text, size_t n, size_t at);

#endif
