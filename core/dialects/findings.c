/* Findings as the answer states them: errors before notes, then by code and pointer. */
#include "core/dialects/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pe_finding *pe_finding_add(struct pe_findings *f, enum pe_contradiction_id id, const char *at, const char *name)
{
    struct pe_finding *finding = &f->list[f->n < PE_FINDINGS_MAX ? f->n++ : PE_FINDINGS_MAX - 1];
    *finding = (struct pe_finding){.id = id, .is_note = pe_same(pe_contradictions[id].level, "note")};
    if (name)
        pe_pointer_join(finding->pointer, sizeof finding->pointer, at, name);
    else
        snprintf(finding->pointer, sizeof finding->pointer, "%s", at);
    return finding;
}

void pe_finding_measure(struct pe_findings *f, struct pe_finding *finding, const struct pe_turn *ours,
                        const struct pe_turn *theirs, bool is_permuted, int64_t length)
{
    struct pe_distance distance;
    if (!ours->n || !theirs->n)
        return;
    if (pe_dialect_measure(f->ex, ours, theirs, is_permuted, length, &distance)) {
        f->no_memory = true;
        return;
    }
    if (finding->has_distance && finding->distance.cos >= distance.cos)
        return;
    finding->has_distance = true;
    finding->distance = distance;
}

/* ---- The answer ---- */

static int in_order(const void *a, const void *b)
{
    const struct pe_finding *x = a, *y = b;
    if (x->is_note != y->is_note)
        return x->is_note ? 1 : -1;
    int by_code = strcmp(pe_contradictions[x->id].code, pe_contradictions[y->id].code);
    int by_pointer = by_code ? by_code : strcmp(x->pointer, y->pointer);
    if (by_pointer)
        return by_pointer;
    for (size_t i = 0; pe_tools[i]; i++) /* then as the tools are listed */
        if (x->reader != y->reader && (pe_tools[i] == x->reader || pe_tools[i] == y->reader))
            return pe_tools[i] == x->reader ? -1 : 1;
    return 0;
}

static void put_kinds(const struct pe_explain *ex, struct pe_node *node, unsigned kinds)
{
    struct pe_node *list = pe_put_list(node, "layers");
    for (size_t k = 0; k < ex->n_text; k++)
        if (!kinds || kinds >> k & 1)
            pe_put_string(list, NULL, ex->kinds[k].layer_type);
}

static const char off_from[] = " Cosines are off by up to {consequence.max_abs_cos}, by more than 0.01 from position "
                               "{consequence.first} on.";
static const char off[] = " Cosines are off by up to {consequence.max_abs_cos}.";
/* … where the cosines' difference would be printed as 0.00. */
static const char sines_from[] = " Sines are off by up to {consequence.max_abs_sin}, by more than 0.01 from position "
                                 "{consequence.first} on.";
static const char sines[] = " Sines are off by up to {consequence.max_abs_sin}.";

static const char *distance_text(const struct pe_finding *finding)
{
    bool has_first = finding->distance.first >= 0,
         is_of_sines = finding->distance.cos < 0.005 && finding->distance.sin > finding->distance.cos;
    if (!finding->has_distance)
        return "";
    return is_of_sines ? has_first ? sines_from : sines : has_first ? off_from : off;
}

static void print_number(const struct pe_value *v, char *out, size_t room)
{
    *out = '\0';
    if (v->kind == PE_REAL || v->kind == PE_INTEGER)
        pe_value_show(v, out, room);
}

void pe_replace(char *text, size_t room, const char *name, const char *by)
{
    char rest[PE_DETAIL_MAX];
    size_t n = strlen(name), n_by = strlen(by);
    for (char *at = text; n_by && (at = strstr(at, name)); at += n_by) {
        size_t left = room - (size_t)(at - text);
        if (n_by >= left)
            return;
        snprintf(rest, sizeof rest, "%s", at + n);
        memcpy(at, by, n_by);
        snprintf(at + n_by, left - n_by, "%s", rest);
    }
}

/* Ranges of layers are not in quotes, and may be empty. */
static void expand_layers(const struct pe_finding *finding, enum pe_lang lang, char *out, size_t room)
{
    char layers[PE_LAYERS_TEXT], number[24];
    pe_replace(out, room, "{kind}", finding->layer_type);
    pe_layers_name(finding->found.string, lang, layers);
    pe_replace(out, room, "{found}", layers);
    pe_layers_name(finding->taken.string, lang, layers);
    pe_replace(out, room, "{taken}", layers);
    snprintf(number, sizeof number, "%zu", finding->n);
    pe_replace(out, room, "{n}", number);
    snprintf(number, sizeof number, "%zu", finding->of);
    pe_replace(out, room, "{of}", number);
}

/* The pattern with the tool's name and the numbers. */
static void expand(const struct pe_finding *finding, enum pe_lang lang, char *out, size_t room)
{
    char number[40], lengths[128];
    const char *pattern = finding->pattern ? finding->pattern : pe_contradictions[finding->id].pattern;
    pe_lengths_print(&finding->lengths, lang, lengths, sizeof lengths);
    snprintf(out, room, "%s%s%s", pe_text_in(lang, pattern), lengths,
             *distance_text(finding) ? pe_text_in(lang, distance_text(finding)) : "");
    const char *label = finding->label ? finding->label : finding->reader ? finding->reader->label : "-";
    pe_replace(out, room, "{label}", label);
    if (finding->needs)
        pe_replace(out, room, "{needs}", finding->needs);
    print_number(&finding->found, number, sizeof number);
    pe_replace(out, room, "{found}", number);
    print_number(&finding->taken, number, sizeof number);
    pe_replace(out, room, "{taken}", number);
    if (finding->layer_type)
        expand_layers(finding, lang, out, room);
    snprintf(number, sizeof number, "%.2f", finding->distance.cos);
    pe_replace(out, room, "{consequence.max_abs_cos}", number);
    snprintf(number, sizeof number, "%.2f", finding->distance.sin);
    pe_replace(out, room, "{consequence.max_abs_sin}", number);
    pe_replace(out, room, "{key}", finding->pointer + strlen("/gguf/") * (strncmp(finding->pointer, "/gguf/", 6) == 0));
}

const struct pe_member pe_dialect_finding_members[] = {
    {.name = "code", .types = "string", .summary = "of the list contradictions of the catalogue"},
    {.name = "level", .types = "string", .summary = "error: some tool computes other numbers; note"},
    {.name = "pointer", .types = "string", .summary = "to the field"},
    {.name = "reader", .types = "string|null", .summary = "the tool; null: none in particular"},
    {.name = "before",
     .types = "string",
     .summary = "the version of the tool before which it holds",
     .is_optional = true},
    {.name = "certain", .types = "boolean", .summary = "false: a guess by the model's numbers", .is_optional = true},
    {.name = "flag", .types = "string", .summary = "of words: the flag", .is_optional = true},
    {.name = "key", .types = "string", .summary = "of a text that was pasted: the key", .is_optional = true},
    {.name = "layers", .types = "array", .summary = "kinds of layers", .items = "string"},
    {.name = "found", .summary = "what is there"},
    {.name = "taken", .summary = "what the tool uses"},
    PE_LENGTHS_MEMBER,
    {.name = "consequence", .types = "object|null", .summary = "null: not computable", .members = pe_distance_members},
    {.name = "", .members = pe_detail_members},
    {.name = NULL},
};

static void put_finding(const struct pe_explain *ex, struct pe_node *list, const struct pe_finding *finding)
{
    char patterns[PE_N_LANGS][PE_DETAIL_MAX];
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "code", pe_contradictions[finding->id].code);
    pe_put_string(node, "level", finding->is_note ? "note" : "error");
    pe_put_string(node, "pointer", finding->pointer);
    pe_put_string_or_null(node, "reader", finding->reader ? finding->reader->name : NULL);
    if (finding->before)
        pe_put_string(node, "before", finding->before);
    if (finding->is_uncertain)
        pe_put_boolean(node, "certain", false);
    if (finding->name)
        pe_put_string(node, finding->id == PE_FLAG_WITHOUT_EFFECT ? "flag" : "key", finding->name);
    put_kinds(ex, node, finding->kinds);
    pe_put_value(node, "found", &finding->found);
    pe_put_value(node, "taken", &finding->taken);
    pe_put_lengths(node, &finding->lengths);
    pe_put_distance(node, "consequence", finding->has_distance ? &finding->distance : NULL);
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++)
        expand(finding, lang, patterns[lang], sizeof patterns[lang]);
    pe_put_details(node, ex->request->lang, (const char *const[]){patterns[PE_EN], patterns[PE_ZH]});
}

void pe_find_kinds(struct pe_findings *f, const char *at)
{
    int64_t n = 0;
    for (size_t k = 0; k < f->ex->n_text; k++) {
        const struct pe_value *config = f->ex->kinds[k].own.config;
        bool is_new = config != NULL;
        for (size_t i = 0; i < k && is_new; i++)
            is_new = !f->ex->kinds[i].own.config || !pe_value_same(config, f->ex->kinds[i].own.config);
        n += is_new;
    }
    if (n > 1)
        pe_finding_add(f, PE_LAYERS_DIFFER, at, NULL)->found = pe_integer(n);
}

enum pe_status pe_findings_open(struct pe_findings *f, struct pe_explain *ex)
{
    *f = (struct pe_findings){.ex = ex, .list = pe_values_room(ex->values, PE_FINDINGS_MAX * sizeof *f->list)};
    return f->list ? PE_OK : pe_no_memory(ex->err);
}

enum pe_status pe_findings_put(struct pe_findings *f, struct pe_node *root)
{
    struct pe_explain *ex = f->ex;
    if (f->no_memory)
        return pe_no_memory(ex->err);
    if (pe_was_cancelled())
        return pe_cancelled(ex->err);
    qsort(f->list, f->n, sizeof *f->list, in_order);
    struct pe_node *list = pe_put_list(root, "findings");
    for (size_t i = 0; i < f->n; i++) {
        put_finding(ex, list, &f->list[i]);
        ex->has_errors |= !f->list[i].is_note;
    }
    return PE_OK;
}

/* ---- Their texts: a row for each code ---- */

const struct pe_contradiction pe_contradictions[PE_N_CONTRADICTIONS] = {
#define FINDING(ID, level, code, label, summary, pattern) [PE_##ID] = {code, level, {label, summary}, pattern},
#include "core/dialects/list.h"
#undef FINDING
};

size_t pe_n_contradictions(void) { return PE_N_CONTRADICTIONS; }
const struct pe_contradiction *pe_contradiction_at(size_t i) { return &pe_contradictions[i]; }
