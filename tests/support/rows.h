/* Requests of tests/cases that tests in C ask themselves: what only they can look at. */
#ifndef TESTS_SUPPORT_ROWS_H
#define TESTS_SUPPORT_ROWS_H

#include "tests/support/cmocka.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rows of tests/cases/NAME.jsonl, as a list. */
static inline json_t *rows_of(const char *name)
{
    char path[64], line[8192];
    snprintf(path, sizeof path, "tests/cases/%s.jsonl", name);
    FILE *file = fopen(path, "r");
    json_t *rows = json_array();
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL);
        assert_non_null(row);
        json_array_append_new(rows, row);
    }
    fclose(file);
    assert_true(json_array_size(rows) > 0);
    return rows;
}

static inline const char *row_text(const json_t *row, const char *name)
{
    return json_string_value(json_object_get(row, name));
}

/* A request as text, in which "WORDS" stands for n words, of as many sorts as may differ. Owned. */
static inline char *row_request(const json_t *request, size_t n, size_t n_sorts)
{
    char *text = json_dumps(request, JSON_COMPACT), *place = strstr(text, "\"WORDS\"");
    if (!place)
        return text;
    char *all = malloc(strlen(text) + 12 * n), *end = all + sprintf(all, "%.*s[", (int)(place - text), text);
    for (size_t i = 0; i < n; i++)
        end += sprintf(end, "%s\"%zu\"", i ? "," : "", i * i % n_sorts);
    sprintf(end, "]%s", place + strlen("\"WORDS\""));
    free(text);
    return all;
}

#endif
