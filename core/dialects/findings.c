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

/* Tools that compute the same numbers share the work. */
static const struct pe_distance *known(const struct pe_findings *f, const struct pe_turn *ours,
                                       const struct pe_turn *theirs)
{
    for (size_t i = 0; i < f->ex->n_measured; i++) {
        const struct pe_measured *m = &f->ex->measured[i];
        if (m->ours == ours && m->theirs.n == theirs->n && m->theirs.factor == theirs->factor &&
            m->theirs.is_half == theirs->is_half && m->theirs.head_dim == theirs->head_dim &&
            m->theirs.offset == theirs->offset && memcmp(m->theirs.w, theirs->w, theirs->n * sizeof *theirs->w) == 0)
            return &m->distance;
    }
    return NULL;
}

static void remember(struct pe_explain *ex, const struct pe_turn *ours, const struct pe_turn *theirs,
                     const struct pe_distance *distance)
{
    if (ex->n_measured < PE_DIALECT_MEASURED_MAX)
        ex->measured[ex->n_measured++] = (struct pe_measured){ours, *theirs, *distance};
}

void pe_finding_measure(struct pe_findings *f, struct pe_finding *finding, const struct pe_reading *ours,
                        const struct pe_reading *theirs, bool is_permuted)
{
    struct pe_distance distance;
    if (!ours->turn.n || !theirs->turn.n)
        return;
    const struct pe_distance *before = known(f, &ours->turn, &theirs->turn);
    if (before) {
        distance = *before;
    } else {
        f->no_memory |= !pe_turn_distance(&ours->turn, &theirs->turn, is_permuted, f->ex->length, &distance);
        if (f->no_memory)
            return;
        remember(f->ex, &ours->turn, &theirs->turn, &distance);
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
    for (size_t i = 0; pe_readers[i]; i++) /* then as the tools are listed */
        if (x->reader != y->reader && (pe_readers[i] == x->reader || pe_readers[i] == y->reader))
            return pe_readers[i] == x->reader ? -1 : 1;
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

/* A number as people write it: 1000000, not 1e+06. */
static void print_number(const struct pe_value *v, char *out, size_t room)
{
    *out = '\0';
    if (v->kind == PE_REAL)
        snprintf(out, room, "%.10g", v->real);
    else if (v->kind == PE_INTEGER)
        snprintf(out, room, "%lld", (long long)v->integer);
}

/* Replaces {name} by a text; what is not replaced is a member of the finding. */
static void replace(char *text, size_t room, const char *name, const char *by)
{
    char rest[PE_DETAIL_MAX];
    size_t n = strlen(name);
    for (char *at = text; *by && (at = strstr(at, name)); at += strlen(by)) {
        snprintf(rest, sizeof rest, "%s", at + n);
        snprintf(at, room - (size_t)(at - text), "%s%s", by, rest);
    }
}

/* The pattern with the tool's name and the numbers. */
static void expand(const struct pe_finding *finding, enum pe_lang lang, char *out, size_t room)
{
    char number[40];
    bool has_first = finding->has_distance && finding->distance.first >= 0;
    const char *pattern = finding->pattern ? finding->pattern : pe_contradictions[finding->id].pattern;
    snprintf(out, room, "%s%s", pe_text_in(lang, pattern),
             finding->has_distance ? pe_text_in(lang, has_first ? off_from : off) : "");
    replace(out, room, "{label}", finding->reader ? finding->reader->label : "-");
    print_number(&finding->found, number, sizeof number);
    replace(out, room, "{found}", number);
    print_number(&finding->taken, number, sizeof number);
    replace(out, room, "{taken}", number);
    snprintf(number, sizeof number, "%.2f", finding->distance.cos);
    replace(out, room, "{consequence.max_abs_cos}", number);
}

static void put_finding(const struct pe_explain *ex, struct pe_node *list, const struct pe_finding *finding)
{
    char patterns[PE_N_LANGS][PE_DETAIL_MAX];
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "code", pe_contradictions[finding->id].code);
    pe_put_string(node, "level", finding->is_note ? "note" : "error");
    pe_put_string(node, "pointer", finding->pointer);
    if (finding->reader)
        pe_put_string(node, "reader", finding->reader->name);
    else
        pe_put_null(node, "reader");
    if (finding->before)
        pe_put_string(node, "before", finding->before);
    if (finding->is_uncertain)
        pe_put_boolean(node, "certain", false);
    put_kinds(ex, node, finding->kinds);
    pe_put_value(node, "found", &finding->found);
    pe_put_value(node, "taken", &finding->taken);
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
        pe_finding_add(f, PE_LAYERS_DIFFER, at, NULL)->found = (struct pe_value){.kind = PE_INTEGER, .integer = n};
}

enum pe_status pe_dialect_put_findings(struct pe_explain *ex, struct pe_node *root)
{
    struct pe_findings f = {.ex = ex, .list = pe_values_room(ex->values, PE_FINDINGS_MAX * sizeof *f.list)};
    if (!f.list)
        return pe_no_memory(ex->err);
    if (ex->hf)
        pe_find_in_config(&f);
    if (ex->gguf)
        pe_find_in_file(&f);
    if (f.no_memory)
        return pe_no_memory(ex->err);
    if (pe_was_cancelled())
        return pe_cancelled(ex->err);
    qsort(f.list, f.n, sizeof *f.list, in_order);
    struct pe_node *list = pe_put_list(root, "findings");
    for (size_t i = 0; i < f.n; i++)
        put_finding(ex, list, &f.list[i]);
    return PE_OK;
}
