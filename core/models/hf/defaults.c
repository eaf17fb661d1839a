/* The fields of a model's class, from the text of its row: "hidden_size=4096 rope_parameters.factor=32 section=[1,2]".
 */
#include "core/models/hf/hf.h"

#include <stdlib.h>
#include <string.h>

/* "[24,20,20]"; the numbers stay with the defaults. */
static bool set_list(struct pe_hf_defaults *d, struct pe_value *value, char *text)
{
    size_t first = d->n_numbers;
    for (char *end = text + 1; *end && *end != ']'; end += *end == ',') {
        if (d->n_numbers == PE_HF_FIELDS_MAX)
            return false;
        d->numbers[d->n_numbers++] = strtod(end, &end);
        if (*end != ',' && *end != ']')
            return false;
    }
    *value = (struct pe_value){.kind = PE_ARRAY, .from_text = true};
    value->array =
        (struct pe_tensor){.dtype = PE_F64, .rank = 1, .shape = {d->n_numbers - first}, .data = d->numbers + first};
    return true;
}

static bool set_value(struct pe_hf_defaults *d, struct pe_value *value, char *text)
{
    char *end;
    double x = strtod(text, &end);
    if (*text == '[')
        return set_list(d, value, text);
    if (*text == '\0')
        return false;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        *value = (struct pe_value){.kind = PE_BOOLEAN, .boolean = *text == 't'};
    else if (strcmp(text, "null") == 0)
        *value = (struct pe_value){.kind = PE_NULL};
    else if (*end)
        *value = (struct pe_value){.kind = PE_STRING, .string = text};
    else if (strpbrk(text, ".e"))
        *value = (struct pe_value){.kind = PE_REAL, .real = x};
    else
        *value = (struct pe_value){.kind = PE_INTEGER, .integer = strtoll(text, NULL, 10)};
    return true;
}

/* The field of an object: its first one makes the object. */
static struct pe_value *inner_slot(struct pe_hf_defaults *d, const char *object, const char *name)
{
    if (d->n_inner == 0)
        d->fields[d->n++] = (struct pe_field){.name = object, .value = {.kind = PE_OBJECT}};
    struct pe_field *around = &d->fields[0];
    while (around->value.kind != PE_OBJECT)
        around++;
    d->inner[d->n_inner].name = name;
    around->value.object.fields = d->inner;
    around->value.object.n = d->n_inner + 1;
    return &d->inner[d->n_inner++].value;
}

static bool set_field(struct pe_hf_defaults *d, char *word)
{
    char *is = strchr(word, '='), *dot = strchr(word, '.');
    if (!is || d->n == PE_HF_FIELDS_MAX || d->n_inner == PE_HF_FIELDS_MAX)
        return false;
    *is = '\0';
    if (!dot || dot > is) {
        d->fields[d->n].name = word;
        return set_value(d, &d->fields[d->n++].value, is + 1);
    }
    *dot = '\0';
    return set_value(d, inner_slot(d, word, dot + 1), is + 1);
}

bool pe_hf_defaults_set(struct pe_hf_defaults *d, const char *text)
{
    d->n = d->n_inner = d->n_numbers = 0;
    if (!text)
        return true;
    if (strlen(text) >= sizeof d->text)
        return false;
    memcpy(d->text, text, strlen(text) + 1);
    for (char *word = d->text; *word;) {
        char *end = word + strcspn(word, " ");
        bool is_last = *end == '\0';
        *end = '\0';
        if (!set_field(d, word))
            return false;
        word = is_last ? end : end + 1;
    }
    return true;
}
