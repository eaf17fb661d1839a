/* What metrics read of the request: lists of words, and which tensors are answered. */
#include "core/analysis/internal.h"

#include <stdio.h>
#include <string.h>

/* ---- Tensors ---- */

double *pe_study_tensor(struct pe_analysis *study, const struct pe_subject *subject, const char *name)
{
    for (size_t i = 0; i < study->n_tensors; i++)
        if (study->tensors[i].entry == subject->index && strcmp(study->tensors[i].row->name, name) == 0)
            return study->tensors[i].data;
    return NULL;
}

/* ---- Words ---- */

const char *pe_word_at(const struct pe_value *given, const char *const *usual, size_t i)
{
    if (!given)
        return usual[i];
    return i < given->list.n ? given->list.items[i].string : NULL;
}

bool pe_words_have(const struct pe_value *given, const char *const *usual, const char *word)
{
    for (size_t i = 0; !given && usual[i]; i++)
        if (strcmp(usual[i], word) == 0)
            return true;
    for (size_t i = 0; given && i < given->list.n; i++)
        if (strcmp(given->list.items[i].string, word) == 0)
            return true;
    return false;
}

/* "f32, f16, bf16" */
static void join(const char *const *words, char *out, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; words[i] && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, "%s%s", i ? ", " : "", words[i]);
}

static enum pe_status unknown_word(const char *word, const char *const *allowed, const char *name, const char *pointer,
                                   struct pe_error *err)
{
    char list[128];
    join(allowed, list, sizeof list);
    const char *nearest = pe_nearest(word, allowed);
    if (nearest)
        return pe_fail(err, pointer, "unknown name \"%.64s\" in %s; nearest: \"%s\"; allowed: %s", word, name, nearest,
                       list);
    return pe_fail(err, pointer, "unknown name \"%.64s\" in %s; allowed: %s", word, name, list);
}

static enum pe_status check_word(const struct pe_value *given, size_t i, const char *const *allowed, const char *name,
                                 struct pe_error *err)
{
    char pointer[PE_POINTER_MAX];
    const struct pe_value *item = &given->list.items[i];
    snprintf(pointer, sizeof pointer, "/%s/%zu", name, i);
    if (item->kind != PE_STRING)
        return pe_fail(err, pointer, "%s must be a list of names, for instance [\"%s\"]", name, allowed[0]);
    size_t w = 0;
    while (allowed[w] && strcmp(allowed[w], item->string) != 0)
        w++;
    if (!allowed[w])
        return unknown_word(item->string, allowed, name, pointer, err);
    for (size_t j = 0; j < i; j++)
        if (strcmp(given->list.items[j].string, item->string) == 0)
            return pe_fail(err, pointer, "%s names \"%s\" twice", name, item->string);
    return PE_OK;
}

enum pe_status pe_words_check(const struct pe_value *given, const char *const *allowed, const char *name,
                              struct pe_error *err)
{
    char pointer[PE_POINTER_MAX];
    enum pe_status status = PE_OK;
    snprintf(pointer, sizeof pointer, "/%s", name);
    if (given && (given->kind != PE_LIST || given->list.n == 0))
        return pe_fail(err, pointer, "%s must be a list of names, for instance [\"%s\"]", name, allowed[0]);
    for (size_t i = 0; given && !status && i < given->list.n; i++)
        status = check_word(given, i, allowed, name, err);
    return status;
}
