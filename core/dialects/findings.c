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
    replace(out, room, "{kind}", finding->layer_type);
    pe_layers_name(finding->found.string, lang, layers);
    replace(out, room, "{found}", layers);
    pe_layers_name(finding->taken.string, lang, layers);
    replace(out, room, "{taken}", layers);
    snprintf(number, sizeof number, "%zu", finding->n);
    replace(out, room, "{n}", number);
    snprintf(number, sizeof number, "%zu", finding->of);
    replace(out, room, "{of}", number);
}

/* The pattern with the tool's name and the numbers. */
static void expand(const struct pe_finding *finding, enum pe_lang lang, char *out, size_t room)
{
    char number[40], lengths[128];
    bool has_first = finding->has_distance && finding->distance.first >= 0;
    const char *pattern = finding->pattern ? finding->pattern : pe_contradictions[finding->id].pattern;
    pe_lengths_print(&finding->lengths, lang, lengths, sizeof lengths);
    snprintf(out, room, "%s%s%s", pe_text_in(lang, pattern), lengths,
             finding->has_distance ? pe_text_in(lang, has_first ? off_from : off) : "");
    replace(out, room, "{label}", finding->label ? finding->label : finding->reader ? finding->reader->label : "-");
    if (finding->needs)
        replace(out, room, "{needs}", finding->needs);
    print_number(&finding->found, number, sizeof number);
    replace(out, room, "{found}", number);
    print_number(&finding->taken, number, sizeof number);
    replace(out, room, "{taken}", number);
    if (finding->layer_type)
        expand_layers(finding, lang, out, room);
    snprintf(number, sizeof number, "%.2f", finding->distance.cos);
    replace(out, room, "{consequence.max_abs_cos}", number);
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
    {.name = "taken", .summary = "what the tool takes"},
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
        pe_finding_add(f, PE_LAYERS_DIFFER, at, NULL)->found = (struct pe_value){.kind = PE_INTEGER, .integer = n};
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

/* ---- Their texts: a row for each code. {label} is the tool. ---- */

#define ERROR(ID, code_, label_, summary_, pattern_) [PE_##ID] = {code_, "error", {label_, summary_}, pattern_}
#define NOTE(ID, code_, label_, summary_, pattern_) [PE_##ID] = {code_, "note", {label_, summary_}, pattern_}

const struct pe_contradiction pe_contradictions[PE_N_CONTRADICTIONS] = {
    ERROR(THETA_DIFFERS, "theta_differs", "two bases",
          "rope_theta beside the rope object and inside it are different numbers, and tools take one or the other.",
          "rope_theta is {found} inside the rope object and another number beside it: {label} turns by base {taken}."),
    ERROR(THETA_DROPPED, "theta_dropped", "base not read",
          "rope_theta is only inside rope_parameters, which some tools do not read.",
          "{label} does not read rope_parameters: it turns by base {taken} instead of {found}."),
    NOTE(THETA_DEFAULT, "theta_default", "base by default", "No field states the base; the class's value is taken.",
         "No field states the base: it is {taken}, the default of the model's class."),
    ERROR(THETA_NOT_WRITTEN, "theta_not_written", "base not written",
          "The converter's class for the model writes no base, so that the program takes its own.",
          "{label} writes no base for this model: it turns by base {taken} instead of {found}."),
    ERROR(SCALING_DROPPED, "scaling_dropped", "scaling not read",
          "The rule of scaling is only in rope_parameters, which some tools do not read.",
          "{label} does not read rope_parameters: it does not scale by {found}."),
    ERROR(SCALING_TWICE, "scaling_twice", "two rope objects",
          "rope_scaling and rope_parameters are both there, and differ.",
          "rope_scaling and rope_parameters are both there and differ: {label} reads {taken}, not {found}."),
    ERROR(SLIDING_SCALED, "sliding_scaled", "sliding layers scaled",
          "A tool scales sliding layers too, where the model was trained without.",
          "{label} scales the sliding layers too, which the model was trained without."),
    ERROR(TYPE_DIFFERS, "type_differs", "two types", "type and rope_type of one rope object name different rules.",
          "rope_type is {found} and type is {taken}: which one counts depends on the reader."),
    ERROR(FACTOR_MISMATCH, "factor_mismatch", "factor and lengths differ",
          "The factor is not the ratio of the two lengths, by which earlier versions scale.",
          "The factor is {found}, but max_position_embeddings/original_max_position_embeddings is {taken}: {label} "
          "before {before} scales by that."),
    ERROR(ORIGINAL_MAX_PLACEMENT, "original_max_placement", "original length not found",
          "A tool looks for original_max_position_embeddings in another place, and takes another number.",
          "{label} takes the original length {taken} instead of {found}: it looks in another place."),
    ERROR(ORIGINAL_MAX_MISSING, "original_max_missing", "no original length",
          "A rule that needs original_max_position_embeddings has none.",
          "original_max_position_embeddings is missing: max_position_embeddings, {taken}, is taken, or the model is "
          "refused."),
    ERROR(SHARE_ON_MLA, "share_on_mla", "share of latent attention",
          "partial_rotary_factor beside qk_rope_head_dim, which is the number of rotated channels already.",
          "partial_rotary_factor is {found} beside qk_rope_head_dim {taken}: a reader that multiplies them turns only "
          "that share."),
    ERROR(SHARE_DROPPED, "share_dropped", "share not read",
          "partial_rotary_factor is only inside the rope object, where some tools do not read it.",
          "{label} does not read partial_rotary_factor inside the rope object: it turns the share {taken} of a head "
          "instead of {found}."),
    NOTE(HEAD_DIM_MISMATCH, "head_dim_mismatch", "head_dim is stated",
         "head_dim is not hidden_size/num_attention_heads.",
         "head_dim is {found}, not hidden_size/num_attention_heads, which is {taken}."),
    ERROR(MROPE_SUM, "mrope_sum", "sections do not fit", "The sections do not add up to half of the rotated channels.",
          "The sections of mrope_section add up to {found} pairs; rotated are {taken}."),
    ERROR(MROPE_STILL_PAIRS, "mrope_still_pairs", "pairs that stand still",
          "Interleaved sections leave pairs to a fourth coordinate, which is 0 for text and images.",
          "{label} gives {found} pairs to a fourth coordinate, which is 0: they do not turn."),
    ERROR(ATTENTION_FACTOR_IGNORED, "attention_factor_ignored", "attention factor not read",
          "attention_factor, or mscale, is stated, and a tool computes another factor.",
          "{label} does not read {pointer}: it multiplies cos and sin by {taken} instead of {found}."),
    ERROR(TRUNCATE_DROPPED, "truncate_dropped", "ramp rounded", "truncate is false, and a tool rounds the ramp's ends.",
          "{label} does not read truncate: it rounds the ends of the ramp to whole pairs."),
    ERROR(SLOPES_DROPPED, "slopes_dropped", "slopes not read", "A tool takes the usual slopes, whatever is stated.",
          "{label} does not read alibi_bias_max: its slopes are those of {taken} instead of {found}."),
    ERROR(RULE_UNKNOWN, "rule_unknown", "rule without a word", "A tool has no word for the rule of scaling.",
          "{label} has no word for the rule {found}: it computes with {taken}, or stops."),
    ERROR(LAYERS, "layers", "other layers",
          "A tool gives the positions of a kind to other layers than the config does.",
          "{label} has the positions of {kind} in {taken}, the config has them in {found}: {n} of {of} layers differ."),
    NOTE(LAYERS_DIFFER, "layers_differ", "layers differ", "The model has kinds of layers with different positions.",
         "The layers have {found} kinds of positions: name one with layer_type."),
    NOTE(FREQ_BASE_MISSING, "freq_base_missing", "no base in the file",
         "The file states no base; llama.cpp takes 10000.", "The file states no base: {taken} is taken."),
    NOTE(FREQ_BASE_SWA_MISSING, "freq_base_swa_missing", "no base of sliding layers",
         "The file states no base for sliding layers; llama.cpp takes 10000.",
         "The file states no base for sliding layers: {taken} is taken."),
    NOTE(DIVISORS_MISSING, "divisors_missing", "no frequency factors",
         "The file looks like one of a model whose frequencies are divided, and has no divisors.",
         "The file has no rope_freqs, but its base is {found} and its context {taken}, as those of models by the rule "
         "llama3, whose files have them."),
    ERROR(FACTORS_UNREAD, "factors_unread", "tensor not sent",
          "A tensor that divides the frequencies is in the file, and was not sent.",
          "A tensor that divides the frequencies was not sent: the numbers of these layers are not known."),
    NOTE(KEY_NOT_READ, "key_not_read", "key without effect", "A key of the file that this architecture does not read.",
         "llama.cpp does not read this key for this architecture: it computes with {taken} instead of {found}."),
    NOTE(PATTERN_NOT_READ, "pattern_not_read", "pattern not read",
         "The file lists which layers slide, and this architecture reads a period only.",
         "The list of sliding layers is not read for this architecture: its usual period holds."),
    NOTE(TYPE_MISSING, "type_missing", "factor without a type", "A factor without a type of scaling counts as linear.",
         "The file states the factor {found} and no type of scaling: it is taken as {taken}."),
    ERROR(LAST_LAYER_STILL, "last_layer_still", "last layer without positions",
          "A window of 0 leaves the last layer without positions, where all layers were meant to turn.",
          "The window is {found}: the last layer does not turn."),
    ERROR(LENGTH_READ_OTHERWISE, "length_read_otherwise", "length read otherwise",
          "The rule of scaling depends on the length of the sequence, and a tool reads it otherwise.",
          "The rule {found} depends on the length of the sequence, and {label} reads it otherwise."),
    NOTE(FLAG_WITHOUT_EFFECT, "flag_without_effect", "flag without effect",
         "Words that the tool reads, and that change nothing beside the others.",
         "{label} does not use {flag} here: it counts only with {needs}."),
    ERROR(UNREAD_IN_TEXT, "unread_in_text", "value cut in the text",
          "A text that was pasted has a key about positions without its whole value.",
          "The text cuts the value of {key}: it is not known, and what follows from it neither."),
};

size_t pe_n_contradictions(void) { return PE_N_CONTRADICTIONS; }
const struct pe_contradiction *pe_contradiction_at(size_t i) { return &pe_contradictions[i]; }
