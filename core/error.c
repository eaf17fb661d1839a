/* Errors as values in the caller's frame, and the nearest valid name for an unknown word. */
#include "core/params.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pe_shown pe_shown(double x)
{
    struct pe_shown out;
    int digits = 15; /* as many as every decimal keeps */
    do
        snprintf(out.text, sizeof out.text, "%.*g", digits, x);
    while (strtod(out.text, NULL) != x && ++digits <= 17);
    return out;
}

__attribute__((format(printf, 3, 0))) static void fail(struct pe_failure *err, const char *pointer, const char *format,
                                                       va_list args)
{
    /* The pointer may be a part of *err itself (a prefix being extended): so it is copied first. */
    char copy[PE_POINTER_MAX];
    snprintf(copy, sizeof copy, "%s", pointer);
    vsnprintf(err->detail, sizeof err->detail, pe_text(format), args);
    memcpy(err->pointer, copy, sizeof copy);
    err->layer_types[0] = '\0';
    err->needs = PE_NO_NEEDS;
    err->advice = PE_NO_ADVICE;
    err->leave_at = 0;
    err->status = PE_INVALID;
}

enum pe_status pe_fail(struct pe_failure *err, const char *pointer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(err, pointer, format, args);
    va_end(args);
    return PE_INVALID;
}

enum pe_status pe_fail_at(struct pe_failure *err, const char *at, const char *name, const char *format, ...)
{
    char pointer[PE_POINTER_MAX];
    va_list args;
    pe_pointer_join(pointer, sizeof pointer, at, name);
    va_start(args, format);
    fail(err, pointer, format, args);
    va_end(args);
    return PE_INVALID;
}

enum pe_status pe_leave_out(struct pe_failure *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err->leave_at = strlen(err->detail);
    vsnprintf(err->detail + err->leave_at, sizeof err->detail - err->leave_at, pe_text(format), args);
    va_end(args);
    return err->status;
}

enum pe_status pe_advise(struct pe_failure *err, enum pe_advice advice, const char *about)
{
    err->advice = advice;
    err->advice_at = strlen(err->detail);
    err->about = about;
    return err->status;
}

enum pe_status pe_no_memory(struct pe_failure *err)
{
    pe_fail(err, "", "not enough memory for this request");
    return err->status = PE_NO_MEMORY;
}

enum { WORD_MAX = 64 }; /* one bit of a uint64_t for each letter */

/* A word as bits: bit i of places[c] is set if letter i of the word is c. */
struct word {
    size_t n;
    uint64_t places[256];
};

/* Edit distance (insert, delete, replace: 1 each) if it is less than `least`, else any number that is at least
 * `least`. The usual dynamic programme, one column for each letter of the name: neighbouring cells of a column
 * differ by at most one, so two sets of bits describe a column, one where the next cell is one more and one where it
 * is one less (Myers 1999 in Hyyrö's form of 2001). A client may have stored thousands of names, and each comparison
 * takes a hundred nanoseconds. */
static size_t edit_distance(const struct word *word, const char *name, size_t n_name, size_t least)
{
    uint64_t more = ~UINT64_C(0), fewer = 0;
    size_t distance = word->n; /* the column's last cell */
    for (size_t rest = n_name; rest > 0 && distance < least + rest; rest--) {
        uint64_t same = word->places[(unsigned char)*name++];
        uint64_t diagonal = (((same & more) + more) ^ more) | same | fewer;
        uint64_t up = fewer | ~(diagonal | more), down = more & diagonal;
        distance += up >> (word->n - 1) & 1;
        distance -= down >> (word->n - 1) & 1;
        up = up << 1 | 1;
        more = down << 1 | ~(diagonal | up);
        fewer = up & diagonal;
    }
    return distance;
}

/* The first of the names with fewest changes to n letters of text, if those are fewer than least. */
static const char *nearest(const char *text, size_t n, const char *const *names, size_t least)
{
    const char *best = NULL;
    struct word word = {.n = n};
    for (size_t i = 0; i < n; i++)
        word.places[(unsigned char)text[i]] |= UINT64_C(1) << i;
    for (; *names; names++) {
        size_t n_name = strlen(*names), n_more = n > n_name ? n - n_name : n_name - n;
        if (n_name > WORD_MAX || n_more >= least)
            continue; /* at least n_more letters must be inserted or deleted */
        size_t distance = n > 0 ? edit_distance(&word, *names, n_name, least) : n_name;
        if (distance < least) {
            least = distance;
            best = *names;
        }
    }
    return best;
}

const char *pe_nearest(const char *text, const char *const *names)
{
    size_t n = strlen(text); /* a third of the letters may be wrong, and at least one; no valid name is so long */
    return n > WORD_MAX ? NULL : nearest(text, n, names, n / 3 + 2);
}

const char *pe_nearest_of_all(const char *text, const char *const *names)
{
    size_t n = strlen(text);
    return nearest(text, n > WORD_MAX ? WORD_MAX : n, names, SIZE_MAX);
}
