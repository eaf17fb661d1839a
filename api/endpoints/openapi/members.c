/* The schemas of answers, from the rows of their members. */
#include "api/endpoints/openapi/openapi.h"

#include <string.h>

static void add_object(struct api_text *text, const struct pe_member *members, enum pe_member_list list);

/* A code may occur with several kinds of tensors. */
static bool is_repeated(size_t i)
{
    size_t j = 0;
    while (j < i && strcmp(pe_fault_at(j)->code, pe_fault_at(i)->code) != 0)
        j++;
    return j < i;
}

static void add_fault_codes(struct api_text *text, bool *first)
{
    for (size_t i = 0; i < pe_n_faults(); i++)
        if (!is_repeated(i)) {
            api_text_add(text, ",", !*first);
            *first = false;
            api_text_string(text, pe_fault_at(i)->code);
        }
}

static void add_words(struct api_text *text, const struct pe_member *row)
{
    bool first = true;
    api_text_put(text, ",\"enum\":[");
    if (row->list == PE_FAULT_CODES)
        add_fault_codes(text, &first);
    for (size_t i = 0; row->words && row->words[i]; i++) {
        api_text_add(text, ",", i > 0);
        api_text_string(text, row->words[i]);
    }
    api_text_put(text, "]");
}

/* "object|null" as a word, or as a list of several. */
static void add_types(struct api_text *text, const char *types)
{
    bool are_many = strchr(types, '|');
    api_text_put(text, are_many ? ",\"type\":[\"" : ",\"type\":\"");
    for (const char *p = types; *p; p++)
        api_text_add(text, *p == '|' ? "\",\"" : p, *p == '|' ? 3 : 1);
    api_text_put(text, are_many ? "\"]" : "\"");
}

static void add_items(struct api_text *text, const struct pe_member *row)
{
    api_text_format(text, ",\"items\":{\"type\":\"%s\"", row->items);
    add_object(text, row->members, row->list);
    api_text_put(text, "}");
}

static void add_rows(struct api_text *text, const struct pe_member *rows, bool *first)
{
    for (; rows && rows->name; rows++) {
        if (!*rows->name) {
            add_rows(text, rows->members, first);
            continue;
        }
        api_openapi_property(text, rows->name, first);
        size_t begin = text->n;
        /* The members of a schema, at least one, each with a comma in front. */
        if (rows->types)
            add_types(text, rows->types);
        if (rows->n_max)
            api_text_format(text, ",\"maxItems\":%u", rows->n_max);
        if (rows->summary)
            api_text_description(text, rows->summary);
        if (rows->words || rows->list == PE_FAULT_CODES)
            add_words(text, rows);
        if (rows->items)
            add_items(text, rows);
        else
            add_object(text, rows->members, rows->list);
        if (!text->state)
            text->bytes[begin] = '{'; /* in place of the first comma */
        api_text_put(text, "}");
    }
}

static void add_metrics(struct api_text *text)
{
    bool first = true;
    for (size_t i = 0; i < pe_n_metrics(); i++) {
        api_openapi_property(text, pe_metric_at(i)->name, &first);
        api_text_named(text, "{\"$ref\":\"#/components/schemas/Result\",\"description\":",
                       pe_summary_in(pe_spoken(), &pe_metric_at(i)->about));
        api_text_put(text, "}");
    }
}

static void add_object(struct api_text *text, const struct pe_member *members, enum pe_member_list list)
{
    bool first = true;
    if (list == PE_TENSORS)
        api_text_put(text, ",\"additionalProperties\":{\"type\":\"object\",\"required\":[\"dtype\",\"shape\"]}");
    if (!members && list != PE_METRICS)
        return;
    api_text_put(text, ",\"properties\":{");
    add_rows(text, members, &first);
    if (list == PE_METRICS)
        add_metrics(text);
    api_text_put(text, "}");
}

static void add_required(struct api_text *text, const struct pe_member *rows, bool *first)
{
    for (; rows->name; rows++)
        if (!*rows->name) {
            add_required(text, rows->members, first);
        } else if (!rows->is_optional) {
            api_text_add(text, ",", !*first);
            *first = false;
            api_text_string(text, rows->name);
        }
}

void api_openapi_answer(struct api_text *text, const char *name, const char *about, const struct pe_member *members)
{
    bool first = true;
    api_text_format(text, ",\"%s\":{\"type\":\"object\"", name);
    if (about)
        api_text_description(text, about);
    api_text_put(text, ",\"required\":[");
    add_required(text, members, &first);
    api_text_put(text, "]");
    add_object(text, members, PE_ROWS);
    api_text_put(text, "}");
}
