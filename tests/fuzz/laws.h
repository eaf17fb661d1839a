/* Common to all targets: the entry point that libFuzzer calls, and the one way to report a broken law. */
#ifndef TESTS_FUZZ_LAWS_H
#define TESTS_FUZZ_LAWS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* AddressSanitizer keeps freed blocks to detect later uses; its default of 256 MiB exceeds every cache. Allocation
 * stacks are not recorded here either; ASAN_OPTIONS=malloc_context_size=20 records them, for the one input of a
 * report. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1:thread_local_quarantine_size_kb=64:malloc_context_size=0:max_malloc_fill_size=0:"
           "detect_stack_use_after_return=0";
}

/* Laws that cost as much as the execution are checked for one input in n while fuzzing, chosen at random so that no two
 * laws are correlated. The first input is checked for all laws, because a report's input runs alone. A replay checks
 * all laws for all inputs. */
static inline bool is_one_of(unsigned n)
{
#ifdef POSENC_FUZZING
    static uint64_t state, n_drawn;
    state = state * 6364136223846793005 + 1442695040888963407; /* Knuth, MMIX */
    return n_drawn++ < 64 || (state >> 33) % n == 0;
#else
    (void)n;
    return true;
#endif
}

/* What a target does once, before its first input. */
#define SETUP(...)                                                                                                     \
    int LLVMFuzzerInitialize(int *argc, char ***argv)                                                                  \
    {                                                                                                                  \
        (void)argc, (void)argv;                                                                                        \
        __VA_ARGS__;                                                                                                   \
        return 0;                                                                                                      \
    }

/* Not assert: it must also hold in a build without asserts. */
#define REQUIRE(law)                                                                                                   \
    do {                                                                                                               \
        if (!(law)) {                                                                                                  \
            fprintf(stderr, "%s:%d: broken law: %s\n", __FILE__, __LINE__, #law);                                      \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* The input as a string of its own size, so that a sanitizer detects reads past its end; bytes behind a NUL are
 * lost. */
static inline char *text_of(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    REQUIRE(text);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* A target whose inputs are texts of its own to change: TEXT_TARGET(text, size) { … } */
#define TEXT_TARGET(text, size)                                                                                        \
    static void take_text(char *text, size_t size);                                                                    \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)                                                          \
    {                                                                                                                  \
        char *copy = text_of(data, n);                                                                                 \
        take_text(copy, n);                                                                                            \
        free(copy);                                                                                                    \
        return 0;                                                                                                      \
    }                                                                                                                  \
    static void take_text(char *text, __attribute__((unused)) size_t size)

/* An input whose first line stands for what a header or a member would say; the line is empty where there is none. */
struct parts {
    const char *line, *rest;
    size_t n_line, n_rest;
};

static inline struct parts split(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = size ? memchr(data, '\n', size) : NULL;
    size_t n = end ? (size_t)(end - text) : 0, begin = end ? n + 1 : 0;
    return (struct parts){text, text + begin, n, size - begin};
}

#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* The rule of names again: [A-Za-z0-9][A-Za-z0-9._-]*, n bytes of at most n_max. */
static inline bool is_plain_name(const char *name, size_t n, size_t n_max)
{
    return n >= 1 && n <= n_max && strspn(name, LETTERS_AND_DIGITS) > 0 && strspn(name, LETTERS_AND_DIGITS "._-") >= n;
}

/* The next line of a text, ended in place; NULL when there is none, and for a line "-", which stands for a header that
 * is not there. */
static inline char *next_line(char **text)
{
    char *line = strsep(text, "\n");
    return line && strcmp(line, "-") != 0 ? line : NULL;
}

#endif
