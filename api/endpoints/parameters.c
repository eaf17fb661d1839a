/* A parameter in the descriptors of /schemes: its type, range, usual range, words, and texts in the language asked for.
 * The page's controls and every client's completion are made from these members. */
#include "api/endpoints/endpoints.h"
#include "api/requests/requests.h"

#include <math.h>
#include <string.h>

void api_put_about(struct api_text *text, const struct pe_about *about, struct api_wording wording)
{
    if (wording.is_brief)
        api_text_pair(text, "label", about->label, pe_label_in(PE_ZH, about), wording.lang);
    else
        api_text_about(text, about, wording.lang);
}

void api_put_optional(struct api_text *text, const char *name, const char *value)
{
    if (value)
        api_text_member(text, name, value);
}

/* ---- Parameters ---- */

/* The words of JSON Schema. */
static const char *type_name(enum pe_type type)
{
    switch (type) {
    case PE_T_INT: return "integer";
    case PE_T_REAL: return "number";
    case PE_T_BOOL: return "boolean";
    case PE_T_WORD: return "string";
    case PE_T_REALS: return "array";
    case PE_T_OBJECT: break;
    case PE_T_VALUE: return "any";
    }
    return "object";
}

static void add_number(struct api_text *text, const char *name, enum pe_type type, double x)
{
    api_text_name(text, name);
    if (type == PE_T_INT && fabs(x) < 9e18)
        api_text_integer(text, (int64_t)x);
    else
        api_text_real(text, x);
}

/* A bound that no number can exceed is omitted. */
static void add_range(struct api_text *text, const struct pe_param *row)
{
    if (row->type != PE_T_INT && row->type != PE_T_REAL && row->type != PE_T_REALS)
        return;
    if (row->min > -1e300)
        add_number(text, "min", row->type, row->min);
    if (row->max < 1e300)
        add_number(text, "max", row->type, row->max);
}

void api_put_interval(struct api_text *text, const char *name, enum pe_type type, const struct pe_interval *interval)
{
    api_text_open(text, name, '[');
    add_number(text, NULL, type, interval->lo);
    add_number(text, NULL, type, interval->hi);
    api_text_close(text, ']');
}

/* What a form needs beside type and range. Only numbers have a slider. */
static void add_control(struct api_text *text, const struct pe_param *row)
{
    struct pe_interval usual;
    api_text_member(text, "group", pe_group_at(row->group)->name);
    api_text_member(text, "level", pe_param_is_basic(row) ? "basic" : "more");
    if (!pe_param_usual(row, &usual))
        return;
    api_put_interval(text, "usual", row->type, &usual);
    api_text_member(text, "spacing", pe_interval_is_log(&usual) ? "log" : "linear");
}

void api_put_param(struct api_text *text, const struct pe_param *row, struct api_wording wording)
{
    api_text_open(text, NULL, '{');
    api_text_member(text, "name", row->name);
    api_text_aliases(text, row->alias);
    api_text_member(text, "type", type_name(row->type));
    /* null: an absent value is derived, and the summary states from which values. */
    if (row->type == PE_T_OBJECT || row->type == PE_T_REALS || row->type == PE_T_VALUE || isnan(row->fallback) ||
        (row->type == PE_T_WORD && row->fallback < 0)) {
        api_text_name(text, "default");
        api_text_put(text, "null");
    } else if (row->type == PE_T_BOOL)
        api_text_flag(text, "default", row->fallback != 0);
    else if (row->type == PE_T_WORD)
        api_text_member(text, "default", row->words[(int)row->fallback]);
    else
        add_number(text, "default", row->type, row->fallback);
    add_range(text, row);
    if (row->type == PE_T_WORD) {
        api_text_open(text, "values", '[');
        for (size_t i = 0; row->words[i]; i++)
            api_text_member(text, NULL, row->words[i]);
        api_text_close(text, ']');
    }
    api_put_optional(text, "when", row->when);
    api_put_optional(text, "excludes", row->excludes);
    api_put_optional(text, "used_by", row->used_by);
    add_control(text, row);
    api_put_about(text, &row->about, wording);
    if (row->type == PE_T_OBJECT)
        api_put_params(text, row->fields, NULL, wording);
    api_text_close(text, '}');
}

/* The rows of two tables as one list; more may be NULL. A row of the second table is omitted if the first has a row of
 * the same name. */
void api_put_params(struct api_text *text, const struct pe_param *rows, const struct pe_param *more,
                    struct api_wording wording)
{
    api_text_open(text, "parameters", '[');
    for (const struct pe_param *row = rows; row->name; row++)
        api_put_param(text, row, wording);
    for (; more && more->name; more++)
        if (!pe_param_find(rows, more->name))
            api_put_param(text, more, wording);
    api_text_close(text, ']');
}
