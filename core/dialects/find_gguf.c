/* What a GGUF file leaves out, or states in vain. */
#include "core/dialects/findings.h"

#include <stdio.h>
#include <string.h>

static const struct pe_value *key(const struct pe_explain *ex, enum pe_gguf_key_id id, char name[PE_GGUF_IGNORED_BYTES])
{
    snprintf(name, PE_GGUF_IGNORED_BYTES, "%.40s.%s", ex->outline->architecture, pe_gguf_key_at(id)->name);
    return pe_stated(ex->gguf, name);
}

static struct pe_finding *add_finding(struct pe_findings *f, enum pe_contradiction_id id, const char *name)
{
    struct pe_finding *finding = pe_finding_add(f, id, "/gguf", name);
    finding->reader = pe_tool_of_files();
    return finding;
}

static const struct pe_dialect_kind *turning(const struct pe_explain *ex, bool slides)
{
    const struct pe_dialect_kind *found = NULL;
    for (size_t k = ex->n_kinds; k-- > 0;)
        if (ex->kinds[k].own.turn.n && (strstr(ex->kinds[k].layer_type, "sliding") != NULL) == slides)
            found = &ex->kinds[k];
    return found;
}

/* ---- The base ---- */

static void find_bases(struct pe_findings *f)
{
    char name[PE_GGUF_IGNORED_BYTES];
    struct pe_explain *ex = f->ex;
    const struct pe_dialect_kind *full = turning(ex, false), *local = turning(ex, true);
    if ((full || local) && !key(ex, PE_GGUF_FREQ_BASE, name) && !ex->outline->row->is_never_scaled &&
        !pe_words_state_base(ex))
        add_finding(f, PE_FREQ_BASE_MISSING, name)->taken = pe_config_at((full ? full : local)->own.config, "base");
    if (local && ex->outline->row->local_base == PE_GGUF_BASE_10000 && !key(ex, PE_GGUF_FREQ_BASE_SWA, name))
        add_finding(f, PE_FREQ_BASE_SWA_MISSING, name)->taken = pe_config_at(local->own.config, "base");
}

/* ---- Divisors ---- */

static void find_unread(struct pe_findings *f)
{
    unsigned kinds = 0;
    for (size_t k = 0; k < f->ex->n_text; k++)
        kinds |= (unsigned)f->ex->kinds[k].own.lacks_bytes << k;
    if (kinds)
        add_finding(f, PE_FACTORS_UNREAD, "tensors")->kinds = kinds;
}

/* The kind as the rule of those models turns it. */
static enum pe_status read_expected(struct pe_findings *f, const struct pe_gguf_expected *rule,
                                    const struct pe_reading *ours, struct pe_reading *theirs)
{
    struct pe_explain *ex = f->ex;
    struct pe_field scaling[] = {
        {"type", {.kind = PE_STRING, .string = rule->rule}},
        {"factor", {.kind = PE_REAL, .real = rule->factor}},
        {"low_freq_factor", {.kind = PE_REAL, .real = rule->low}},
        {"high_freq_factor", {.kind = PE_REAL, .real = rule->high}},
        {"original_max_position_embeddings", {.kind = PE_REAL, .real = rule->original}},
    };
    struct pe_field fields[] = {
        {"scheme", {.kind = PE_STRING, .string = "rope"}},
        {"head_dim", pe_config_at(ours->config, "head_dim")},
        {"base", pe_config_at(ours->config, "base")},
        {"layout", pe_config_at(ours->config, "layout")},
        {"scaling", {.kind = PE_OBJECT, .object = {scaling, sizeof scaling / sizeof *scaling}}},
    };
    return pe_dialect_read_fields(ex, fields, sizeof fields / sizeof *fields, theirs);
}

static void find_divisors(struct pe_findings *f)
{
    char name[PE_GGUF_IGNORED_BYTES];
    struct pe_explain *ex = f->ex;
    const struct pe_gguf_expected *rule = ex->outline->row->expected;
    const struct pe_dialect_kind *kind = turning(ex, false);
    const struct pe_value *tensors = pe_stated(ex->gguf, "tensors");
    bool has_tensors = tensors && tensors->kind == PE_OBJECT && tensors->object.n;
    const struct pe_value *base = key(ex, PE_GGUF_FREQ_BASE, name);
    if (!rule || !kind || has_tensors || pe_value_number(base) != rule->base ||
        ex->outline->length <= rule->longer_than ||
        !pe_same(pe_config_word(kind->own.config, "scaling.type"), "default"))
        return;
    struct pe_reading theirs;
    if (read_expected(f, rule, &kind->own, &theirs)) {
        f->no_memory = true;
        return;
    }
    struct pe_finding *finding = add_finding(f, PE_DIVISORS_MISSING, "tensors");
    finding->is_uncertain = true;
    if (ex->request->is_text)
        finding->pattern =
            "The text does not list tensors. With base {found} and context {taken}, as models by the rule "
            "llama3 have, the file has rope_freqs, by which these frequencies would be divided.";
    pe_finding_state(finding, *base, pe_integer(ex->outline->length));
    pe_finding_measure(f, finding, &theirs.turn, &kind->own.turn, false, ex->length);
    pe_reading_drop(&theirs);
}

/* ---- Keys in vain ---- */

/* What llama.cpp computes with in place of the number of a key; PE_NULL: not known. */
static struct pe_value taken_for(const struct pe_explain *ex, const char *name)
{
    char path[64];
    const struct pe_gguf_key *key = pe_gguf_key_find(strchr(name, '.') + 1);
    const struct pe_dialect_kind *kind = turning(ex, false);
    if (!key || !key->fields || !kind)
        return pe_null();
    snprintf(path, sizeof path, "%.*s", (int)strcspn(key->fields, "|"), key->fields);
    return pe_config_at(kind->own.config, path);
}

static void find_ignored(struct pe_findings *f)
{
    struct pe_explain *ex = f->ex;
    const struct pe_value *list = pe_stated(ex->report, "ignored");
    for (size_t i = 0; list && list->kind == PE_LIST && i < list->list.n; i++) {
        const char *name = list->list.items[i].string;
        const struct pe_value *v = pe_field_find(ex->gguf->object.fields, ex->gguf->object.n, name);
        struct pe_value now = taken_for(ex, name);
        bool is_same = v && now.kind != PE_NULL && pe_value_same(v, &now);
        bool is_pattern = pe_same(pe_gguf_key_at(PE_GGUF_PATTERN)->name, strchr(name, '.') + 1);
        if (is_same || !v)
            continue;
        struct pe_finding *finding = add_finding(f, is_pattern ? PE_PATTERN_NOT_READ : PE_KEY_NOT_READ, name);
        pe_finding_state(finding, v->kind != PE_LIST && v->kind != PE_ARRAY ? *v : pe_null(), now);
        if (!is_pattern && now.kind == PE_NULL)
            finding->pattern = "llama.cpp does not read {key} for this architecture.";
    }
}

static void find_type(struct pe_findings *f)
{
    char name[PE_GGUF_IGNORED_BYTES], type[PE_GGUF_IGNORED_BYTES];
    struct pe_explain *ex = f->ex;
    const struct pe_value *factor = key(ex, PE_GGUF_FACTOR, name);
    if (!factor)
        factor = key(ex, PE_GGUF_SCALE_LINEAR, name);
    if (!factor || key(ex, PE_GGUF_SCALING_TYPE, type) || pe_value_number(factor) == 1 || pe_value_number(factor) == 0)
        return;
    pe_finding_state(add_finding(f, PE_TYPE_MISSING, name), *factor, pe_word("linear"));
}

static void find_window(struct pe_findings *f)
{
    char name[PE_GGUF_IGNORED_BYTES];
    const struct pe_value *window = key(f->ex, PE_GGUF_WINDOW, name);
    if (f->ex->outline->row->is_chunked && window && pe_value_number(window) == 0)
        add_finding(f, PE_LAST_LAYER_STILL, name)->found = *window;
}

void pe_find_in_file(struct pe_findings *f)
{
    find_bases(f);
    find_unread(f);
    find_divisors(f);
    find_ignored(f);
    find_type(f);
    find_window(f);
    pe_find_kinds(f, "/gguf");
}
