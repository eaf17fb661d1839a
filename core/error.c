/* Errors as values in the caller's frame, and the guess at what an unknown word was meant to be. */
#include "core/posenc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum pe_status pe_fail(struct pe_error *err, const char *pointer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    /* The pointer may be a part of *err itself (a prefix being extended): print to the side first. */
    char copy[PE_POINTER_MAX];
    snprintf(copy, sizeof copy, "%s", pointer);
    vsnprintf(err->detail, sizeof err->detail, format, args);
    va_end(args);
    memcpy(err->pointer, copy, sizeof copy);
    err->status = PE_INVALID;
    return PE_INVALID;
}

enum pe_status pe_no_memory(struct pe_error *err)
{
    pe_fail(err, "", "not enough memory for this request");
    return err->status = PE_NO_MEMORY;
}

enum { WORD_MAX = 64 };

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edit distance (insert, delete, replace: 1 each), row by row of the usual table; words longer than WORD_MAX are far
 * from all. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n > WORD_MAX || m > WORD_MAX)
        return WORD_MAX;
    size_t row[WORD_MAX + 1];
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = min3(row[j] + 1, row[j - 1] + 1, replaced);
        }
    }
    return row[m];
}

const char *pe_nearest(const char *word, const char *const *names)
{
    const char *best = NULL;
    size_t n = strlen(word), least = n / 3 + 2;  /* a third of the letters may be wrong, and always one */
    least = least < WORD_MAX ? least : WORD_MAX; /* what is longer than any name is near none */
    for (; *names; names++) {
        size_t n_name = strlen(*names), n_more = n > n_name ? n - n_name : n_name - n;
        if (n_more >= least)
            continue; /* as many letters at least are inserted or deleted */
        size_t distance = edit_distance(word, *names);
        if (distance < least) {
            least = distance;
            best = *names;
        }
    }
    return best;
}
