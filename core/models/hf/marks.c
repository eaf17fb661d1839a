/* Marks of what is read of a config.json. */
#include "core/models/hf/marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pe_hf_mark_read(struct pe_hf_marks *marks, const struct pe_field *field)
{
    if (!marks || !field || marks->no_memory)
        return;
    if (marks->n_read == marks->room) {
        size_t room = marks->room ? 2 * marks->room : 64;
        const struct pe_field **longer = realloc(marks->read, room * sizeof *longer);
        marks->no_memory = !longer;
        if (!longer)
            return;
        marks->read = longer;
        marks->room = room;
    }
    marks->read[marks->n_read++] = field;
}

void pe_hf_mark_seen(struct pe_hf_marks *marks, const struct pe_value *object, const char *at)
{
    if (!marks || marks->n_seen == PE_HF_OBJECTS_MAX)
        return;
    for (size_t i = 0; i < marks->n_seen; i++)
        if (marks->seen[i].object == object)
            return;
    char *pointer = marks->pointers[marks->n_seen];
    snprintf(pointer, PE_POINTER_MAX, "%s", at);
    marks->seen[marks->n_seen++] = (struct pe_hf_seen){object, pointer};
}

void pe_hf_mark_default(struct pe_hf_marks *marks, const char *name, struct pe_value value)
{
    if (!marks || marks->n_defaults == PE_HF_DEFAULTS_MAX)
        return;
    for (size_t i = 0; i < marks->n_defaults; i++)
        if (strcmp(marks->defaults[i].name, name) == 0)
            return;
    marks->defaults[marks->n_defaults++] = (struct pe_field){name, value};
}
