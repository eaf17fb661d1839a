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

static void add_fault_codes(struct api_text *text)
{
    for (size_t i = 0; i < pe_n_faults(); i++)
        if (!is_repeated(i))
            api_text_member(text, NULL, pe_fault_at(i)->code);
}

static void add_words(struct api_text *text, const struct pe_member *row)
{
    api_text_open(text, "enum", '[');
    if (row->list == PE_FAULT_CODES)
        add_fault_codes(text);
    for (size_t i = 0; row->words && row->words[i]; i++)
        api_text_member(text, NULL, row->words[i]);
    api_text_close(text, ']');
}

/* "object|null" as a word, or as a list of several. */
static void add_types(struct api_text *text, const char *types)
{
    bool are_many = strchr(types, '|');
    api_text_name(text, "type");
    api_text_put(text, are_many ? "[\"" : "\"");
    for (const char *p = types; *p; p++)
        api_text_add(text, *p == '|' ? "\",\"" : p, *p == '|' ? 3 : 1);
    api_text_put(text, are_many ? "\"]" : "\"");
}

static void add_items(struct api_text *text, const struct pe_member *row)
{
    api_text_format(text, ",\"items\":{\"type\":\"%s\"", row->items);
    add_object(text, row->members, row->list);
    api_text_close(text, '}');
}

static void add_rows(struct api_text *text, const struct pe_member *rows)
{
    for (; rows && rows->name; rows++) {
        if (!*rows->name) {
            add_rows(text, rows->members);
            continue;
        }
        api_text_open(text, rows->name, '{');
        if (rows->types)
            add_types(text, rows->types);
        if (rows->n_max)
            api_text_count(text, "maxItems", rows->n_max);
        if (rows->summary)
            api_text_description(text, rows->summary);
        if (rows->words || rows->list == PE_FAULT_CODES)
            add_words(text, rows);
        if (rows->items)
            add_items(text, rows);
        else
            add_object(text, rows->members, rows->list);
        api_text_close(text, '}');
    }
}

static void add_object(struct api_text *text, const struct pe_member *members, enum pe_member_list list)
{
    if (list == PE_TENSORS) {
        api_text_name(text, "additionalProperties");
        api_text_put(text, "{\"type\":\"object\",\"required\":[\"dtype\",\"shape\"]}");
    }
    if (!members && list != PE_METRICS)
        return;
    api_text_open(text, "properties", '{');
    add_rows(text, members);
    if (list == PE_METRICS) {
        for (size_t i = 0; i < pe_n_metrics(); i++) {
            api_text_name(text, pe_metric_at(i)->name);
            api_text_named(text, "{\"$ref\":\"#/components/schemas/Result\",\"description\":",
                           pe_summary_in(pe_spoken(), &pe_metric_at(i)->about));
            api_text_close(text, '}');
        }
    }
    api_text_close(text, '}');
}

static void add_required(struct api_text *text, const struct pe_member *rows)
{
    for (; rows->name; rows++)
        if (!*rows->name)
            add_required(text, rows->members);
        else if (!rows->is_optional)
            api_text_member(text, NULL, rows->name);
}

void api_openapi_answer(struct api_text *text, const char *name, const char *about, const struct pe_member *members)
{
    api_text_open(text, name, '{');
    api_text_member(text, "type", "object");
    if (about)
        api_text_description(text, about);
    api_text_open(text, "required", '[');
    add_required(text, members);
    api_text_close(text, ']');
    add_object(text, members, PE_ROWS);
    api_text_close(text, '}');
}
