/* A window onto a text that is too long to store: all of it is printed, and only the window is kept. Printing needs no
 * memory and cannot fail, so that a piece of a long answer can be computed at any time. */
#ifndef API_WINDOW_H
#define API_WINDOW_H

#include "core/posenc.h"

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

#endif
