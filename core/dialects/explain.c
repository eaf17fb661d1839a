/* The explanation of a configuration: its kinds of layers, its positional fields with what each tool takes, and the
 * findings. */
#include "core/dialects/findings.h"
#include "core/operation.h"
#include "core/sequence/sequence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The request ---- */

struct own_fields {
    int64_t length;
    const struct pe_value *readers;
};

static const struct pe_param rows[] = {
    PE_P_VALUE(own_fields, readers, "readers", "names of the tools that are asked, default all", .group = PE_G_ANSWER),
    PE_P_INT(own_fields, length, PE_UNSET, 1, 0x1p31, "length",
             "positions over which consequences are measured; default the model's length", .group = PE_G_SEQUENCE),
    PE_P_END,
};

const struct pe_param *pe_explain_params(void) { return rows; }

static enum pe_status refuse_sequence(const struct pe_explain *ex)
{
    for (size_t i = 0; i < ex->n_own; i++) {
        const char *name = ex->own[i].name;
        if (!pe_param_find(pe_sequence_params(), name) || pe_param_find(pe_sequence_rules(), name))
            continue;
        return ex->is_translation
                   ? pe_fail_at(ex->err, "", name,
                                "a translation is of a configuration, which has no sequence; leave out %s", name)
                   : pe_fail_at(ex->err, "", name,
                                "an explanation is about a configuration, which has no sequence; leave out %s", name);
    }
    return PE_OK;
}

static enum pe_status find_preset(struct pe_explain *ex, const struct pe_value *named)
{
    struct pe_request request = {.fields = ex->own, .n_fields = ex->n_own};
    ex->preset = named->kind == PE_PRESET   ? named->preset
                 : named->kind == PE_STRING ? pe_preset_named(named->string)
                                            : NULL;
    return ex->preset ? PE_OK : pe_inherit(ex->buffer, &request, ex->err); /* which refuses it in words */
}

/* Of a model of another size than the one whose file was read, the number of layers is not known. */
static enum pe_status copy_config(struct pe_explain *ex)
{
    const struct pe_value *named = pe_field_find(ex->own, ex->n_own, "preset");
    ex->is_other_size = named->kind == PE_STRING && !pe_preset_is_of_size(ex->preset, named->string);
    struct pe_field *fields = pe_values_room(ex->values, ex->preset->config.n * sizeof *fields);
    size_t n = 0;
    if (!fields)
        return pe_no_memory(ex->err);
    for (size_t i = 0; i < ex->preset->config.n; i++)
        if (!ex->is_other_size || !pe_same(ex->preset->config.fields[i].name, "num_hidden_layers"))
            fields[n++] = ex->preset->config.fields[i];
    ex->config = pe_object(fields, n);
    return PE_OK;
}

/* A preset that has the config.json of a class is explained as that. */
static enum pe_status take_config(struct pe_explain *ex)
{
    if (copy_config(ex))
        return ex->err->status;
    if (ex->is_over && ex->preset->inside) { /* which the words may not reach */
        struct pe_field *outer = pe_values_room(ex->values, sizeof *outer);
        if (!outer)
            return pe_no_memory(ex->err);
        *outer = (struct pe_field){ex->preset->inside, ex->config};
        ex->config = (struct pe_value){.kind = PE_OBJECT, .object = {outer, 1}};
    }
    ex->hf = &ex->config;
    for (size_t i = 0; i < ex->n_own; i++)
        if (pe_same(ex->own[i].name, "preset"))
            ex->own[i] = (struct pe_field){"hf_config", ex->config};
    return PE_OK;
}

/* The fields of rows, then those of the configuration. */
static enum pe_status part_fields(struct pe_explain *ex, const struct pe_param *own_rows, void *own)
{
    const struct pe_explain_request *request = ex->request;
    bool taken[PE_FIELDS_MAX] = {false};
    if (request->n_fields > PE_FIELDS_MAX)
        return pe_fail(ex->err, "", "the request has %zu fields; allowed: at most %d", request->n_fields,
                       PE_FIELDS_MAX);
    if (pe_params_read(own_rows, own, request->fields, request->n_fields, taken, "", ex->err))
        return ex->err->status;
    for (size_t i = 0; i < request->n_fields; i++) {
        const struct pe_field *field = &request->fields[i];
        bool is_type = pe_same(field->name, "layer_type");
        if (is_type && field->value.kind != PE_STRING)
            return pe_fail(ex->err, "/layer_type", "%s is not a string; write a name", field->name);
        if (is_type)
            ex->layer_type = field->value.string;
        else if (!taken[i])
            ex->own[ex->n_own++] = *field;
    }
    return PE_OK;
}

enum pe_status pe_dialect_open(struct pe_explain *ex, const struct pe_param *own_rows, void *own)
{
    const struct pe_explain_request *request = ex->request;
    ex->values = pe_values_new();
    ex->buffer = malloc(sizeof *ex->buffer);
    if (!ex->values || !ex->buffer)
        return pe_no_memory(ex->err);
    if (part_fields(ex, own_rows, own))
        return ex->err->status;
    ex->hf = pe_field_find(ex->own, ex->n_own, "hf_config");
    ex->gguf = pe_field_find(ex->own, ex->n_own, "gguf");
    ex->said = pe_field_find(ex->own, ex->n_own, "said");
    const struct pe_value *named = pe_field_find(ex->own, ex->n_own, "preset");
    int n_models = (ex->hf != NULL) + (ex->gguf != NULL) + (ex->said != NULL) + (named != NULL);
    struct pe_request all = {.fields = request->fields, .n_fields = request->n_fields};
    ex->is_over = ex->said && n_models == 2;
    if (n_models - ex->is_over > 1 || (ex->said && ex->said->kind != PE_OBJECT)) /* which refuses them in words */
        return pe_inherit(ex->buffer, &all, ex->err);
    if (named && find_preset(ex, named))
        return ex->err->status;
    if (ex->preset && ex->preset->config.n && !ex->is_translation && take_config(ex))
        return ex->err->status;
    return refuse_sequence(ex);
}

static enum pe_status read_fields(struct pe_explain *ex)
{
    struct own_fields fields;
    if (pe_dialect_open(ex, rows, &fields))
        return ex->err->status;
    ex->length = fields.length == PE_UNSET_INT ? 0 : fields.length;
    return pe_dialect_check_readers(ex, fields.readers);
}

/* A field that no plan has, or one that only a plan of the request without a model has, is refused as anywhere. */
static enum pe_status check_own(struct pe_explain *ex)
{
    bool has_model = ex->hf || ex->gguf || ex->preset || ex->said;
    if (!has_model && !ex->kinds[0].own.config)
        return pe_dialect_read_refused(ex, 0);
    if ((ex->n_own > 1 || ex->layer_type) && !ex->kinds[0].own.config && !ex->kinds[0].own.lacks_bytes)
        return pe_dialect_read_refused(ex, 0);
    return PE_OK;
}

/* ---- The parts of the answer ---- */

static void put_same(const struct pe_explain *ex, struct pe_node *node, size_t k)
{
    for (size_t i = 0; i < k; i++)
        if (ex->kinds[i].own.config && ex->kinds[k].own.config &&
            pe_value_same(ex->kinds[i].own.config, ex->kinds[k].own.config)) {
            pe_put_integer(node, "same_as", (int64_t)i);
            return;
        }
    pe_put_null(node, "same_as");
}

/* At each of which a rule that depends on the length may be another. */
static void put_kind_lengths(const struct pe_explain *ex, struct pe_node *node, const struct pe_value *config)
{
    struct pe_stretch stretches[PE_STRETCHES_MAX];
    if (!pe_dialect_border(config))
        return;
    struct pe_node *lengths = pe_put_list(node, "lengths");
    size_t n = pe_dialect_stretches(ex, config, NULL, stretches);
    for (size_t i = 0; i < n; i++)
        pe_put_integer(lengths, NULL, stretches[i].at);
}

static void put_kind(const struct pe_explain *ex, struct pe_node *list, size_t k)
{
    char summary[1024];
    const struct pe_dialect_kind *kind = &ex->kinds[k];
    struct pe_node *node = pe_put_object(list, NULL);
    pe_put_string(node, "layer_type", kind->layer_type);
    pe_put_string(node, "part", kind->part);
    if (kind->layers)
        pe_put_integers(node, "layers", kind->layers, kind->n_layers);
    else
        pe_put_null(node, "layers");
    pe_put_count_or_null(node, "count", kind->layers ? (int64_t)kind->n_layers : -1);
    put_same(ex, node, k);
    if (kind->own.config) {
        pe_dialect_put_config(kind->own.shown, pe_put_object(node, "config"), node);
        put_kind_lengths(ex, node, kind->own.config);
        pe_put_string(node, "summary", pe_dialect_summary(&kind->own, ex->request->lang, summary, sizeof summary));
        if (kind->own.scores->sinks)
            pe_put_string(node, "sinks", kind->own.scores->sinks);
    } else {
        pe_put_null(node, "config");
        pe_put_string(node, "refused", kind->own.refused);
    }
}

void pe_dialect_put_layers(const struct pe_explain *ex, struct pe_node *root)
{
    struct pe_node *list = pe_put_list(root, "layers");
    for (size_t k = 0; k < ex->n_kinds; k++)
        put_kind(ex, list, k);
}

static void put_preset(const struct pe_explain *ex, struct pe_node *node)
{
    const struct pe_explain_request *request = ex->request;
    const struct pe_value *named = pe_field_find(request->fields, request->n_fields, "preset");
    struct pe_preset_name name;
    struct pe_failure ignored;
    pe_put_string(node, "preset", ex->preset->name);
    if (ex->hf)
        pe_put_value(node, "hf_config", ex->hf);
    if (named->kind == PE_STRING && pe_preset_name(named->string, &name, &ignored) == PE_OK)
        pe_preset_put_name(&name, node);
}

void pe_dialect_put_model(const struct pe_explain *ex, struct pe_node *root)
{
    struct pe_node *node = pe_put_object(root, "model");
    size_t n = ex->hf ? ex->marks->layers.n : ex->gguf ? ex->outline->layers.n : 0;
    const char *certainty =
        ex->preset ? pe_certainty_name(ex->preset->certainty)
        : ex->hf   ? ex->marks->scheme_is_given ? "as told" : pe_certainty_name(ex->language.row->certainty)
          : ex->gguf ? ex->outline->row->certainty ? ex->outline->row->certainty : "code"
                   : NULL;
    pe_put_string_or_null(node, "model_type", ex->hf ? ex->language.model_type : NULL);
    pe_put_string_or_null(node, "architecture", ex->gguf ? ex->outline->architecture : NULL);
    if (ex->preset)
        put_preset(ex, node);
    pe_put_string_or_null(node, "certainty", certainty);
    pe_put_count_or_null(node, "num_layers", n && !ex->is_other_size ? (int64_t)n : -1);
    pe_put_integer(node, "length", ex->length);
    pe_put_boolean(node, "length_assumed", ex->is_length_assumed);
    const struct pe_value *ignored = pe_stated(ex->said, "ignored");
    if (ignored)
        pe_put_value(node, "ignored", ignored);
}

static void put_defaults(const struct pe_explain *ex, struct pe_node *root)
{
    struct pe_node *defaults = pe_put_object(root, "defaults");
    const struct pe_value *of_file = pe_stated(ex->report, "defaults");
    for (size_t i = 0; ex->marks && i < ex->marks->n_defaults; i++)
        if (!pe_node_find(defaults, ex->marks->defaults[i].name))
            pe_put_value(defaults, ex->marks->defaults[i].name, &ex->marks->defaults[i].value);
    for (size_t i = 0; of_file && i < of_file->object.n; i++)
        pe_put_value(defaults, of_file->object.fields[i].name, &of_file->object.fields[i].value);
}

/* What is known of the scores of kind k, unless the kind before it has the same. */
static bool put_notes_of(const struct pe_explain *ex, struct pe_node *notes, size_t k)
{
    static const struct pe_model_scores none = {.n_notes = 0};
    const struct pe_model_scores *scores = ex->kinds[k].own.scores, *before = k ? ex->kinds[k - 1].own.scores : NULL;
    if (!scores)
        return false;
    before = before ? before : &none;
    for (size_t i = 0; i < scores->n_notes; i++)
        if (i >= before->n_notes || !pe_same(scores->notes[i], before->notes[i]))
            pe_put_string(notes, NULL, scores->notes[i]);
    if (scores->refusal.status && !(before->refusal.status && pe_same(scores->refusal.detail, before->refusal.detail)))
        pe_put_string(notes, NULL, scores->refusal.detail);
    return scores->n_notes || scores->refusal.status;
}

/* The rule's list is chosen by another length in each tool, which no frequency at the full length shows. */
static bool put_notes(const struct pe_explain *ex, struct pe_node *root)
{
    struct pe_node *notes = pe_put_list(root, "notes");
    bool is_long = false, has_notes = false;
    for (size_t k = 0; k < ex->n_text; k++) {
        has_notes |= put_notes_of(ex, notes, k);
        is_long |= pe_same(pe_config_word(ex->kinds[k].own.config, "scaling.type"), "longrope");
    }
    for (size_t k = ex->n_text; k < ex->n_kinds; k++)
        if (pe_same(ex->kinds[k].part, PE_HF_INDEXER))
            put_notes_of(ex, notes, k);
    if (is_long && !pe_dialect_is_class(ex))
        pe_put_string(notes, NULL,
                      pe_text_in(ex->request->lang,
                                 "longrope: transformers uses the short list up to the original length and the long "
                                 "list beyond; llama.cpp uses the long list at every length if the context that it "
                                 "allocates, by default the model's, is longer than the original."));
    return (is_long && !pe_dialect_is_class(ex)) || has_notes;
}

enum stance { AGREES, OTHERS, REFUSES, UNKNOWN };

static enum stance stance_of(const struct pe_explain *ex, const struct pe_dialect_reader *tool)
{
    return pe_dialect_agrees(ex, tool)  ? AGREES
           : tool->is_unknown           ? UNKNOWN
           : *pe_tool_refusal(ex, tool) ? REFUSES
                                        : OTHERS;
}

/* The labels of the tools of that stance. */
static void list_tools(const struct pe_explain *ex, enum stance stance, char *out)
{
    *out = '\0';
    for (size_t t = 0; t < ex->n_readers; t++) {
        const struct pe_dialect_reader *tool = &ex->readers[t];
        if (stance_of(ex, tool) == stance)
            strcat(strcat(out, *out ? ", " : ""), tool->reader->label);
    }
}

/* The tools that compute other numbers, those that refuse the model, those of which neither is known. */
static void put_apart(const struct pe_explain *ex, struct pe_node *root)
{
    char patterns[PE_N_LANGS][PE_DETAIL_MAX], labels[160];
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++) {
        char *text = patterns[lang];
        size_t n = 0;
        list_tools(ex, OTHERS, labels);
        if (*labels)
            n += (size_t)snprintf(text, PE_DETAIL_MAX, pe_text_in(lang, "These tools compute other numbers: %s."),
                                  labels);
        list_tools(ex, REFUSES, labels);
        if (*labels)
            n += (size_t)snprintf(
                text + n, PE_DETAIL_MAX - n,
                pe_text_in(lang, n ? " These tools refuse the model: %s." : "These tools refuse the model: %s."),
                labels);
        list_tools(ex, UNKNOWN, labels);
        if (*labels)
            snprintf(text + n, PE_DETAIL_MAX - n,
                     pe_text_in(lang, n ? " How these tools read the model is not known here: %s."
                                        : "How these tools read the model is not known here: %s."),
                     labels);
    }
    pe_put_details(root, ex->request->lang, (const char *const[]){patterns[PE_EN], patterns[PE_ZH]});
}

/* Of the words of a tool on top of a model no other tool is asked. */
static void put_over(const struct pe_explain *ex, struct pe_node *root)
{
    char patterns[PE_N_LANGS][PE_DETAIL_MAX];
    for (enum pe_lang lang = 0; lang < PE_N_LANGS; lang++)
        snprintf(patterns[lang], PE_DETAIL_MAX,
                 pe_text_in(lang, "These are the numbers of %s with this model and these words."), pe_dialect_tool(ex));
    pe_put_details(root, ex->request->lang, (const char *const[]){patterns[PE_EN], patterns[PE_ZH]});
}

/* Which tools compute other numbers. Those that were asked compute these only if nothing in the answer states where one
 * of them does not: in an earlier version, or at another length. Of other parts than the language model ours are known.
 */
static void put_verdict(const struct pe_explain *ex, struct pe_node *root, bool has_notes)
{
    bool all_agree = true;
    if (ex->is_over) {
        put_over(ex, root);
        return;
    }
    for (size_t t = 0; t < ex->n_readers; t++)
        all_agree = all_agree && stance_of(ex, &ex->readers[t]) == AGREES;
    if (!all_agree) {
        put_apart(ex, root);
        return;
    }
    pe_put_detail(root, ex->request->lang,
                  !ex->n_readers && pe_dialect_is_class(ex) && ex->kinds[0].own.config
                      ? "These are the numbers of this class of diffusers; no tool of language models reads it."
                  : !ex->n_readers && ex->hf ? "No tool was asked."
                  : !ex->n_readers && ex->preset
                      ? "Only these numbers are known: there is no config.json of this model here to ask tools about."
                  : !ex->n_readers              ? "Only these numbers are known; no other tool reads this dialect."
                  : ex->has_errors || has_notes ? "The tools that were asked compute these numbers, but not in "
                                                  "every case: see the findings and notes."
                  : ex->n_kinds > ex->n_text    ? "Every tool that was asked computes these numbers of the "
                                                  "language model; how tools read its other parts is not known."
                                                : "Every tool that was asked computes these numbers.");
}

const char *pe_dialect_name(const struct pe_explain *ex)
{
    return ex->preset ? "preset" : ex->hf ? "hf_config" : ex->gguf ? "gguf" : ex->said ? "said" : "fields";
}

/* Of words on top of a config what tools read of it does not matter: only one has the words. */
static enum pe_status put_findings(struct pe_explain *ex, struct pe_node *root)
{
    struct pe_findings f;
    if (pe_findings_open(&f, ex))
        return ex->err->status;
    if (ex->hf && ex->is_over)
        pe_find_kinds(&f, "/hf_config");
    else if (ex->hf)
        pe_find_in_config(&f);
    if (ex->gguf)
        pe_find_in_file(&f);
    pe_find_in_words(&f);
    return pe_findings_put(&f, root);
}

static enum pe_status put_all(struct pe_explain *ex)
{
    struct pe_node *root = pe_values_root(ex->values);
    pe_put_string(root, "dialect", pe_dialect_name(ex));
    pe_dialect_put_model(ex, root);
    pe_dialect_put_layers(ex, root);
    if (pe_dialect_put_fields(ex, root))
        return ex->err->status;
    pe_dialect_put_tools(ex, root);
    put_defaults(ex, root);
    if (pe_dialect_put_changes(ex, root) || put_findings(ex, root))
        return ex->err->status;
    pe_put_string_or_null(root, "rows", ex->gguf ? pe_rows_name(ex->outline->row->is_permuted) : NULL);
    put_verdict(ex, root, put_notes(ex, root));
    ex->answer = pe_values_done(ex->values);
    return ex->answer ? PE_OK : pe_no_memory(ex->err);
}

/* ---- The whole ---- */

/* What the file's reading reports, of the first kind that is read. */
static enum pe_status report_on_file(struct pe_explain *ex)
{
    for (size_t k = 0; ex->gguf && k < ex->n_text && !ex->about; k++) {
        struct pe_failure err;
        struct pe_field fields[] = {{"gguf", *ex->gguf},
                                    {"layer_type", {.kind = PE_STRING, .string = ex->kinds[k].layer_type}}};
        struct pe_request request = {.fields = fields, .n_fields = 2};
        if (pe_model_about_new(&request, &ex->about, &err) == PE_NO_MEMORY)
            return pe_no_memory(ex->err);
    }
    ex->report = ex->about ? pe_model_about_value(ex->about) : NULL;
    return PE_OK;
}

/* Every tool reads every kind at every length, and an earlier version of it may; of a file the tool is its program. */
static enum pe_status admit(const struct pe_explain *ex)
{
    double n_tools = ex->gguf ? 1 : ex->hf ? 2 * (double)pe_dialect_n_wanted(ex) : 0;
    size_t n_lengths = 0;
    for (size_t k = 0; k < ex->n_text; k++)
        n_lengths += pe_dialect_n_lengths(ex, &ex->kinds[k]);
    return pe_dialect_admit(ex, n_tools * (double)n_lengths);
}

static enum pe_status explain(struct pe_explain *ex)
{
    if (read_fields(ex) || pe_dialect_kinds(ex) || check_own(ex) || admit(ex) || report_on_file(ex) ||
        pe_dialect_tools(ex))
        return ex->err->status;
    return put_all(ex);
}

enum pe_status pe_dialect_new(const struct pe_explain_request *request, enum pe_status (*compute)(struct pe_explain *),
                              struct pe_explain **out, struct pe_failure *err)
{
    struct pe_explain *ex = calloc(1, sizeof *ex);
    if (!ex)
        return pe_no_memory(err);
    ex->request = request;
    ex->err = err;
    enum pe_status status = compute(ex);
    if (!status && pe_was_cancelled()) /* consequences are incomplete */
        status = pe_cancelled(err);
    if (status)
        pe_explain_free(ex);
    else
        *out = ex;
    return status;
}

enum pe_status pe_explain_new(const struct pe_explain_request *request, struct pe_explain **out, struct pe_failure *err)
{
    return pe_dialect_new(request, explain, out, err);
}

void pe_explain_free(struct pe_explain *ex)
{
    if (!ex)
        return;
    pe_dialect_tools_drop(ex);
    pe_dialect_kinds_drop(ex);
    pe_model_about_free(ex->about);
    pe_values_free(ex->values);
    pe_values_free(ex->sentences);
    free(ex->buffer);
    free(ex);
}

const struct pe_value *pe_explain_answer(const struct pe_explain *ex) { return ex->answer; }

/* ---- Members of the answer ---- */

const struct pe_member pe_dialect_layer_members[] = {
    {.name = "layer_type", .types = "string", .summary = "the kind"},
    {.name = "part",
     .types = "string",
     .summary = "text, indexer, vision or audio; generator: of a class of diffusers"},
    {.name = "layers", .types = "array|null", .summary = "indices; null: not known", .items = "integer"},
    {.name = "count", .types = "integer|null", .summary = "of its layers"},
    {.name = "same_as",
     .types = "integer|null",
     .summary = "the index of an earlier entry with the same configuration"},
    {.name = "config",
     .types = "object|null",
     .summary = "a request of the kind's tensors but for its sequence: every parameter, without those that follow from "
                "the sequence's length; null: refused"},
    {.name = "with_x",
     .types = "object",
     .summary = "fields that a request has beside these if it sends embeddings x",
     .is_optional = true},
    {.name = "with_attention",
     .types = "object",
     .summary = "fields that a request of attention has beside these",
     .is_optional = true},
    {.name = "lengths",
     .types = "array",
     .summary = "of a rule that depends on the sequence's length: lengths that show what it is at each",
     .items = "integer",
     .is_optional = true},
    {.name = "summary", .types = "string", .summary = "the configuration in words", .is_optional = true},
    {.name = "sinks",
     .types = "string",
     .summary = "of scores: the tensor of learned sinks, below a layer",
     .is_optional = true},
    {.name = "refused", .types = "string", .summary = "why there is no configuration", .is_optional = true},
    {.name = NULL},
};

const struct pe_member pe_dialect_model_members[] = {
    {.name = "model_type", .types = "string|null", .summary = "of a config.json"},
    {.name = "architecture", .types = "string|null", .summary = "of a GGUF file"},
    {.name = "preset", .types = "string", .summary = "its name", .is_optional = true},
    PE_PRESET_NAME_MEMBERS,
    {.name = "hf_config",
     .types = "object",
     .summary = "of a preset: the config.json as which it is explained; pointers into it begin with /hf_config",
     .is_optional = true},
    {.name = "certainty", .types = "string|null", .summary = "how sure the row of the model is"},
    {.name = "num_layers", .types = "integer|null", .summary = "null: not known"},
    {.name = "length", .types = "integer", .summary = "positions over which consequences are measured"},
    {.name = "length_assumed", .types = "boolean", .summary = "the model states none"},
    {.name = "ignored",
     .types = "array",
     .summary = "flags of the text of said that are not about positions",
     .items = "string",
     .is_optional = true},
    {.name = NULL},
};

const struct pe_member pe_explain_members[] = {
    {.name = "dialect", .types = "string", .summary = "hf_config, gguf, said, preset or fields"},
    {.name = "model", .types = "object", .summary = "what is explained", .members = pe_dialect_model_members},
    {.name = "layers",
     .types = "array",
     .summary = "kinds of layers, the language model's first",
     .items = "object",
     .members = pe_dialect_layer_members},
    {.name = "fields",
     .types = "array",
     .summary = "positional fields of the config, or keys of the file",
     .items = "object",
     .members = pe_dialect_field_members},
    {.name = "readers",
     .types = "object",
     .summary = "by tool: configs (one for each entry of layers; null: refused), agrees, refuses, source; of a "
                "converter also architecture and rows"},
    {.name = "defaults", .types = "object", .summary = "values used for fields that are not there"},
    {.name = "changes",
     .types = "array",
     .summary = "of words on top of a model: what they change",
     .items = "object",
     .members = pe_dialect_change_members,
     .is_optional = true},
    {.name = "findings",
     .types = "array",
     .summary = "contradictions, the worst first",
     .items = "object",
     .members = pe_dialect_finding_members},
    {.name = "rows", .types = "string|null", .summary = "of a GGUF file: permuted, or as_published"},
    {.name = "notes", .types = "array", .summary = "what else matters", .items = "string"},
    {.name = "", .members = pe_detail_members},
    {.name = "pasted",
     .types = "object",
     .summary = "of a text: as what it was read, whose words they are, the model that it names, lines that were "
                "skipped, keys whose values it cuts",
     .is_optional = true},
    {.name = NULL},
};
