/* Reading members: fields beside them, refusals, and the scaling object that they become. */
#include "core/models/targets/targets.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

double pe_beside(const struct pe_hearing *h, const char *name, double otherwise)
{
    const struct pe_value *v = pe_field_find(h->beside, h->n_beside, name);
    if (!v || (v->kind != PE_INTEGER && v->kind != PE_REAL))
        return otherwise;
    return v->kind == PE_INTEGER ? (double)v->integer : v->real;
}

enum pe_status pe_hear_wrong(const struct pe_hearing *h, const char *member, const char *format, ...)
{
    char pointer[PE_POINTER_MAX], sentence[PE_DETAIL_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, pe_text(format), args);
    va_end(args);
    pe_pointer_join(pointer, sizeof pointer, "/said/value", member);
    return pe_fail(h->err, pointer, "%s", sentence);
}

void pe_hear_field(struct pe_heard *heard, const char *name, struct pe_value value)
{
    if (heard->n < PE_MODEL_FIELDS_MAX)
        heard->h->out->scaling[heard->n++] = (struct pe_field){name, value};
}

void pe_hear_word(struct pe_heard *heard, const char *name, const char *word)
{
    pe_hear_field(heard, name, (struct pe_value){.kind = PE_STRING, .string = word});
}

void pe_hear_number(struct pe_heard *heard, const char *name, double x)
{
    if (!isnan(x))
        pe_hear_field(heard, name, (struct pe_value){.kind = PE_REAL, .real = x});
}

void pe_hear_flag(struct pe_heard *heard, const char *name, bool flag)
{
    pe_hear_field(heard, name, (struct pe_value){.kind = PE_BOOLEAN, .boolean = flag});
}

void pe_hear_done(const struct pe_heard *heard)
{
    pe_hf_put(heard->h->out, "scaling",
              (struct pe_value){.kind = PE_OBJECT, .object = {heard->h->out->scaling, heard->n}});
}
