/* An explanation as lines of text: the kinds of layers, a line for each tool that was asked, what was taken by default,
 * findings that no tool's line has, notes, and the verdict. */
#include "core/dialects/dialects.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 4 * PE_DETAIL_MAX };

struct line {
    char bytes[LINE_BYTES];
    size_t n;
};

/* What is longer than a line is cut. */
static void add_text(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_text(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line->bytes + line->n, sizeof line->bytes - line->n, format, arguments);
    va_end(arguments);
    line->n = strlen(line->bytes);
}

static void end(struct line *line, struct pe_node *list)
{
    pe_put_string(list, NULL, line->bytes);
    *line = (struct line){.n = 0};
}

static const struct pe_value *member(const struct pe_value *object, const char *name)
{
    return pe_field_find(object->object.fields, object->object.n, name);
}

static const char *word(const struct pe_value *object, const char *name)
{
    const struct pe_value *value = member(object, name);
    return value && value->kind == PE_STRING ? value->string : "";
}

/* ---- Its parts ---- */

static void put_kind(const struct pe_explain *ex, const struct pe_dialect_kind *kind, const struct pe_value *stated,
                     struct line *line)
{
    char ranges[PE_LAYERS_TEXT], layers[PE_LAYERS_TEXT];
    enum pe_lang lang = ex->request->lang;
    const char *summary = word(stated, "summary");
    if (!pe_is_among("text|" PE_DIALECT_GENERATOR, kind->part))
        add_text(line, "%s, ", kind->part);
    add_text(line, "%s", kind->layer_type);
    if (kind->layers && ex->n_text > 1) {
        pe_layers_print(kind->layers, kind->n_layers, ranges, sizeof ranges);
        pe_layers_name(ranges, lang, layers);
        add_text(line, ", %s", layers);
    }
    add_text(line, "%s%s", pe_text_in(lang, ": "), *summary ? summary : word(stated, "refused"));
}

/* An error about this tool as it is now, not about an earlier version. */
static bool is_reason(const struct pe_value *finding, const struct pe_dialect_reader *tool)
{
    return pe_same(word(finding, "reader"), tool->reader->name) && pe_same(word(finding, "level"), "error") &&
           !member(finding, "before");
}

static void put_tool(const struct pe_explain *ex, const struct pe_dialect_reader *tool, const struct pe_value *findings,
                     struct line *line)
{
    enum pe_lang lang = ex->request->lang;
    const char *refusal = pe_tool_refusal(ex, tool);
    if (*refusal) {
        add_text(line, pe_text_in(lang, tool->is_unknown ? "%s: not known: %s" : "%s: refuses the model: %s"),
                 tool->reader->label, refusal);
        return;
    }
    struct line reasons = {.n = 0};
    for (size_t i = 0; !pe_dialect_agrees(ex, tool) && i < findings->list.n; i++)
        if (is_reason(&findings->list.items[i], tool))
            add_text(&reasons, "%s%s", reasons.n && lang == PE_EN ? " " : "", word(&findings->list.items[i], "detail"));
    if (reasons.n)
        add_text(line, pe_text_in(lang, "%s: computes other numbers: %s"), tool->reader->label, reasons.bytes);
    else
        add_text(line, pe_text_in(lang, pe_dialect_agrees(ex, tool) ? "%s: agrees" : "%s: computes other numbers"),
                 tool->reader->label);
}

static bool is_said(const struct pe_explain *ex, const struct pe_value *finding)
{
    for (size_t t = 0; t < ex->n_readers; t++) {
        const struct pe_dialect_reader *tool = &ex->readers[t];
        if (is_reason(finding, tool) && !*pe_tool_refusal(ex, tool) && !pe_dialect_agrees(ex, tool))
            return true;
    }
    return false;
}

/* A number, word or list; of an object its type and factor. */
static void add_value(struct line *line, const struct pe_value *value)
{
    double number = pe_value_number(value);
    switch (value->kind) {
    case PE_STRING: add_text(line, "%s", value->string); break;
    case PE_BOOLEAN: add_text(line, "%s", value->boolean ? "true" : "false"); break;
    case PE_OBJECT:
        add_text(line, "%s", word(value, "type"));
        if (member(value, "factor"))
            add_text(line, " factor %.10g", pe_value_number(member(value, "factor")));
        break;
    case PE_LIST:
        for (size_t i = 0; i < value->list.n; i++) {
            add_text(line, "%s", i ? ", " : "[");
            add_value(line, &value->list.items[i]);
        }
        add_text(line, "]");
        break;
    default: number == number ? add_text(line, "%.10g", number) : add_text(line, "-");
    }
}

/* What the words of a tool change of a model; NULL: there are none. */
static void put_changes(const struct pe_value *changes, struct line *line, struct pe_node *list)
{
    for (size_t i = 0; changes && i < changes->list.n; i++) {
        const struct pe_value *change = &changes->list.items[i];
        add_text(line, "change %s: %s ", word(change, "layer_type"), word(change, "field"));
        add_value(line, member(change, "model"));
        add_text(line, " -> ");
        add_value(line, member(change, "words"));
        end(line, list);
    }
}

static void put_defaults(const struct pe_value *defaults, enum pe_lang lang, struct line *line)
{
    for (size_t i = 0; i < defaults->object.n; i++) {
        const struct pe_field *field = &defaults->object.fields[i];
        double number = pe_value_number(&field->value);
        if (field->value.kind != PE_STRING && !(number == number))
            continue;
        if (line->n == 0)
            add_text(line, "%s", pe_text_in(lang, "used by default: "));
        else
            add_text(line, ", ");
        if (field->value.kind == PE_STRING)
            add_text(line, "%s %s", field->name, field->value.string);
        else
            add_text(line, "%s %.10g", field->name, number);
    }
}

/* ---- The whole ---- */

static void put_all(const struct pe_explain *ex, struct pe_node *list)
{
    struct line line = {.n = 0};
    const struct pe_value *answer = ex->answer, *kinds = member(answer, "layers"),
                          *findings = member(answer, "findings"), *notes = member(answer, "notes");
    for (size_t k = 0; k < ex->n_kinds; k++) {
        put_kind(ex, &ex->kinds[k], &kinds->list.items[k], &line);
        end(&line, list);
    }
    put_changes(member(answer, "changes"), &line, list);
    for (size_t t = 0; t < ex->n_readers; t++) {
        put_tool(ex, &ex->readers[t], findings, &line);
        end(&line, list);
    }
    put_defaults(member(answer, "defaults"), ex->request->lang, &line);
    if (line.n)
        end(&line, list);
    for (size_t i = 0; i < findings->list.n; i++) {
        const struct pe_value *finding = &findings->list.items[i];
        if (is_said(ex, finding))
            continue;
        add_text(&line, "%s %s: %s", word(finding, "level"), word(finding, "code"), word(finding, "detail"));
        end(&line, list);
    }
    for (size_t i = 0; i < notes->list.n; i++) {
        add_text(&line, "note: %s", notes->list.items[i].string);
        end(&line, list);
    }
    pe_put_string(list, NULL, word(answer, "detail"));
}

const struct pe_value *pe_explain_sentences(struct pe_explain *ex)
{
    ex->sentences = ex->sentences ? ex->sentences : pe_values_new();
    if (!ex->sentences)
        return NULL;
    put_all(ex, pe_put_list(pe_values_root(ex->sentences), "lines"));
    const struct pe_value *all = pe_values_done(ex->sentences);
    return all ? member(all, "lines") : NULL;
}
