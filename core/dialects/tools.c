/* What each tool takes from a config.json: the config as it sees it, read by the model_type's row; of a tool that
 * writes a GGUF file, the file, read as the program does. */
#include "core/dialects/dialects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- One tool ---- */

static void note_read(struct pe_dialect_reader *tool, const struct pe_field *field)
{
    if (!pe_tool_reads(tool, field) && tool->n_read < sizeof tool->read / sizeof *tool->read)
        tool->read[tool->n_read++] = field;
}

bool pe_tool_reads(const struct pe_dialect_reader *tool, const struct pe_field *field)
{
    for (size_t i = 0; i < tool->n_read; i++)
        if (tool->read[i] == field)
            return true;
    return false;
}

/* Reads the view once more, with marks: which fields of the given config have an effect for this kind. */
static enum pe_status mark_fields(struct pe_explain *ex, struct pe_dialect_reader *tool, const char *layer_type)
{
    struct pe_model_fields *fields = malloc(sizeof *fields);
    struct pe_hf_marks *marks = calloc(1, sizeof *marks);
    struct pe_hf_asked asked = pe_hf_asked_of(ex->own, ex->n_own);
    struct pe_failure ignored;
    bool fine = fields && marks;
    asked.layer_type = layer_type;
    enum pe_status status =
        fine ? pe_hf_config_read_marked(&tool->view.config, &asked, fields, marks, &ignored) : PE_NO_MEMORY;
    fine = status != PE_NO_MEMORY && !marks->no_memory;
    for (size_t i = 0; !status && i < marks->n_read; i++) {
        const struct pe_field *original = marks->read[i]; /* of other objects than the rope object, itself */
        for (size_t c = 0; c < tool->view.n_copies; c++)
            if (tool->view.copies[c].copy == original)
                original = tool->view.copies[c].original;
        note_read(tool, original);
    }
    if (marks)
        free(marks->read);
    free(marks);
    free(fields);
    return fine ? PE_OK : pe_no_memory(ex->err);
}

/* Compares the kind with ours at each length that matters; the model is read again at those that are not the answer's.
 */
static enum pe_status compare_kind(struct pe_explain *ex, struct pe_dialect_reader *tool, const struct pe_field *model,
                                   const char *layer_type, size_t k)
{
    const struct pe_reading *ours = &ex->kinds[k].own, *theirs = &tool->readings[k];
    struct pe_apart *apart = &tool->apart[k];
    struct pe_stretch stretches[PE_STRETCHES_MAX];
    size_t n = pe_dialect_stretches(ex, ours->config, theirs->config, stretches);
    *apart = (struct pe_apart){.n = 0};
    for (size_t i = 0; i < n; i++) {
        struct pe_turn a = ours->turn, b = theirs->turn;
        if (stretches[i].at != ex->length) {
            struct pe_reading one = {.config = NULL}, other = {.config = NULL};
            enum pe_status status = pe_dialect_read_at(ex, stretches[i].at, NULL, ex->kinds[k].layer_type, &one);
            if (!status)
                status = pe_dialect_read_at(ex, stretches[i].at, model, layer_type, &other);
            a = one.turn;
            b = other.turn;
            pe_reading_drop(&one);
            pe_reading_drop(&other);
            if (status)
                return status;
        }
        bool is_same = pe_turn_same(&a, &b, tool->is_permuted);
        pe_lengths_add(&apart->lengths, &stretches[i], !is_same);
        if (is_same)
            continue;
        bool goes_on =
            apart->n && apart->length[apart->n - 1] == stretches[i - 1].at && stretches[i - 1].at != ex->length;
        apart->n -= stretches[i].grows && goes_on; /* of a rule that grows the longest is measured */
        apart->ours[apart->n] = a;
        apart->theirs[apart->n] = b;
        apart->length[apart->n++] = stretches[i].at;
    }
    pe_lengths_done(&apart->lengths, &stretches[n - 1]);
    return PE_OK;
}

static enum pe_status read_kinds(struct pe_explain *ex, struct pe_dialect_reader *tool)
{
    struct pe_field model = {"hf_config", tool->view.config};
    for (size_t k = 0; k < ex->n_text; k++)
        if (pe_dialect_read_shown(ex, &model, ex->kinds[k].layer_type, &tool->readings[k]) ||
            compare_kind(ex, tool, &model, ex->kinds[k].layer_type, k) ||
            mark_fields(ex, tool, ex->kinds[k].layer_type))
            return ex->err->status;
    return PE_OK;
}

/* ---- A tool that writes a file ---- */

static bool turns(const struct pe_reading *reading) { return reading->turn.n > 0; }

static enum pe_status write_file(struct pe_explain *ex, struct pe_dialect_reader *tool)
{
    struct pe_stated_kind kinds[PE_DIALECT_KINDS_MAX + PE_HF_KINDS_MAX];
    struct pe_dialect_kind others[PE_HF_KINDS_MAX];
    size_t n_others;
    enum pe_status status = pe_dialect_other_kinds(ex, tool, others, &n_others);
    for (size_t k = 0; k < ex->n_text; k++)
        kinds[k] = pe_dialect_state(&ex->kinds[k], &tool->readings[k]);
    for (size_t k = 0; k < n_others; k++)
        kinds[ex->n_text + k] = pe_dialect_state(&others[k], &others[k].own);
    struct pe_gguf_wish wish = {.architecture = tool->architecture,
                                .kinds = kinds,
                                .n_kinds = ex->n_text,
                                .length = ex->model_length,
                                .is_converter = true,
                                .has_no_rope = pe_is_among(tool->reader->writes_no_rope, ex->language.model_type),
                                .has_lists_only =
                                    pe_is_among(tool->reader->writes_lists_only, ex->language.model_type)};
    wish.n_kinds += n_others;
    pe_dialect_sizes(ex, &wish);
    pe_gguf_choose_kinds(&wish);
    if (!status && wish.full) /* no rotation: the keys are those of the shape alone */
        status = pe_gguf_write(&wish, ex->values, &tool->keys, ex->err);
    for (size_t k = 0; k < n_others; k++)
        pe_reading_drop(&others[k].own);
    return status;
}

static void drop_readings(const struct pe_explain *ex, struct pe_dialect_reader *tool)
{
    for (size_t k = 0; k < ex->n_text; k++)
        pe_reading_drop(&tool->readings[k]);
}

static enum pe_status run_file(struct pe_explain *ex, struct pe_dialect_reader *tool)
{
    struct pe_gguf_outline *outline = malloc(sizeof *outline);
    struct pe_failure err;
    if (!outline)
        return pe_no_memory(ex->err);
    enum pe_status status = pe_gguf_outline(&tool->keys, outline, &err);
    if (status == PE_INVALID) {
        drop_readings(ex, tool);
        snprintf(tool->refused, sizeof tool->refused, "%s", err.detail);
    } else if (status) {
        *ex->err = err;
    }
    struct pe_field model = {"gguf", tool->keys};
    for (size_t k = 0; !status && k < ex->n_text; k++) {
        bool was_refused = !tool->readings[k].config;
        pe_reading_drop(&tool->readings[k]);
        const char *name = pe_gguf_kind_name(outline, ex->kinds[k].layer_type);
        if (!was_refused)
            status = pe_dialect_read_shown(ex, &model, name, &tool->readings[k]);
        if (!was_refused && !status)
            status = compare_kind(ex, tool, &model, name, k);
    }
    for (size_t k = 0; !status && k < ex->n_text; k++)
        status = pe_dialect_compare_layers(ex, tool, k, &model, pe_gguf_kind_name(outline, ex->kinds[k].layer_type));
    free(outline);
    return status == PE_INVALID ? PE_OK : status;
}

static enum pe_status convert(struct pe_explain *ex, struct pe_dialect_reader *tool)
{
    tool->architecture = tool->reader->architecture(ex->language.model_type);
    const struct pe_gguf_architecture *row = tool->architecture ? pe_gguf_architecture_find(tool->architecture) : NULL;
    if (!row) {
        drop_readings(ex, tool);
        tool->is_unknown = true;
        snprintf(tool->refused, sizeof tool->refused, pe_text("no architecture is known here for model_type \"%s\""),
                 ex->language.model_type);
        return PE_OK;
    }
    tool->is_permuted = row->is_permuted;
    if (write_file(ex, tool))
        return ex->err->status;
    return tool->keys.kind == PE_OBJECT ? run_file(ex, tool) : PE_OK;
}

/* ---- All of them ---- */

static enum pe_status run(struct pe_explain *ex, struct pe_dialect_reader *tool)
{
    struct pe_failure err;
    enum pe_status status = pe_config_view(tool->reader, false, ex->hf, &ex->language, ex->values, &tool->view, &err);
    if (status == PE_INVALID) {
        tool->is_unknown = !pe_tool_has_type(tool->reader, ex->language.model_type);
        snprintf(tool->refused, sizeof tool->refused, "%s", err.detail);
        return PE_OK;
    }
    if (status)
        return *ex->err = err, status;
    if (read_kinds(ex, tool))
        return ex->err->status;
    return tool->reader->architecture ? convert(ex, tool) : PE_OK;
}

static enum pe_status unknown_reader(const struct pe_explain *ex, const char *name)
{
    const char *names[PE_DIALECT_READERS_MAX + 1] = {NULL};
    char list[160] = "";
    for (size_t i = 0; pe_reader_at(i); i++) {
        names[i] = pe_reader_at(i)->name;
        strcat(strcat(list, i ? ", " : ""), names[i]);
    }
    const char *nearest = pe_nearest(name, names);
    if (nearest)
        return pe_fail(ex->err, "/readers", "unknown reader \"%.40s\"; nearest: \"%s\"", name, nearest);
    return pe_fail(ex->err, "/readers", "unknown reader \"%.40s\"; one of: %s", name, list);
}

enum pe_status pe_dialect_check_readers(struct pe_explain *ex, const struct pe_value *wanted)
{
    struct pe_names names = pe_names_of(wanted);
    ex->wanted = wanted ? 0 : ~0U;
    for (size_t i = 0; i < names.n; i++) {
        if (names.items[i].kind != PE_STRING)
            return pe_fail(ex->err, "/readers", "readers is not a list of names");
        size_t at = 0;
        while (pe_reader_at(at) && !pe_same(pe_reader_at(at)->name, names.items[i].string))
            at++;
        if (!pe_reader_at(at))
            return unknown_reader(ex, names.items[i].string);
        ex->wanted |= 1U << at;
    }
    return PE_OK;
}

size_t pe_dialect_n_wanted(const struct pe_explain *ex)
{
    size_t n = 0;
    for (size_t i = 0; pe_reader_at(i); i++)
        n += ex->wanted >> i & 1;
    return n;
}

/* Words on top of the config are those of one tool, which no other gets. */
enum pe_status pe_dialect_tools(struct pe_explain *ex)
{
    if (!ex->hf || ex->is_over)
        return PE_OK;
    ex->readers = calloc(PE_DIALECT_READERS_MAX, sizeof *ex->readers);
    if (!ex->readers)
        return pe_no_memory(ex->err);
    bool is_of_grid = ex->kinds[0].own.config && pe_dialect_is_of_grid(ex->kinds[0].own.config);
    for (size_t i = 0; pe_reader_at(i); i++) {
        /* A tool whose reading of the class is not known here is left out, unless it is asked by its name; and so are
         * tools of language models if this is none. */
        bool is_known =
            pe_tool_has_type(pe_reader_at(i), ex->language.model_type) && (pe_reader_at(i)->has_images || !is_of_grid);
        if (ex->wanted == ~0U ? !is_known : !(ex->wanted >> i & 1))
            continue;
        ex->readers[ex->n_readers].reader = pe_reader_at(i);
        if (run(ex, &ex->readers[ex->n_readers++]))
            return ex->err->status;
    }
    return PE_OK;
}

void pe_dialect_tools_drop(struct pe_explain *ex)
{
    for (size_t i = 0; i < ex->n_readers; i++)
        drop_readings(ex, &ex->readers[i]);
    free(ex->readers);
}

bool pe_tool_agrees(const struct pe_explain *ex, const struct pe_dialect_reader *tool, size_t kind)
{
    const struct pe_reading *ours = &ex->kinds[kind].own, *theirs = &tool->readings[kind];
    if (!ours->config || !theirs->config)
        return false;
    if (!turns(ours) && !turns(theirs)) /* layers without positions have no width */
        return pe_value_same(ours->config, theirs->config) ||
               (pe_same(pe_config_word(ours->config, "scheme"), "none") &&
                pe_same(pe_config_word(theirs->config, "scheme"), "none"));
    return tool->apart[kind].n == 0;
}

/* ---- Their part of the answer ---- */

static void put_config(struct pe_node *list, const struct pe_reading *reading)
{
    if (reading->config)
        pe_dialect_put_config(reading->shown, pe_put_object(list, NULL), NULL);
    else
        pe_put_null(list, NULL);
}

bool pe_dialect_agrees(const struct pe_explain *ex, const struct pe_dialect_reader *tool)
{
    for (size_t k = 0; k < ex->n_text; k++)
        if (!pe_tool_agrees(ex, tool, k) || tool->layers[k].n)
            return false;
    return !*tool->refused;
}

const char *pe_tool_refusal(const struct pe_explain *ex, const struct pe_dialect_reader *tool)
{
    const char *refused = tool->refused;
    for (size_t k = 0; k < ex->n_text && !*refused; k++)
        refused = tool->readings[k].refused;
    return refused;
}

static const char *source_of(const struct pe_tool *tool)
{
    return tool->reads_source ? tool->reads_source : tool->source;
}

static void put_tool(const struct pe_explain *ex, struct pe_node *tools, const struct pe_dialect_reader *tool)
{
    struct pe_node *node = pe_put_object(tools, tool->reader->name), *configs = pe_put_list(node, "configs");
    for (size_t k = 0; k < ex->n_kinds; k++)
        put_config(configs, k < ex->n_text ? &tool->readings[k] : &ex->kinds[k].own);
    pe_put_boolean(node, "agrees", pe_dialect_agrees(ex, tool));
    pe_put_string_or_null(node, "refuses", pe_tool_refusal(ex, tool));
    if (tool->architecture) {
        pe_put_string(node, "architecture", tool->architecture);
        pe_put_string(node, "rows", pe_rows_name(tool->is_permuted));
    }
    pe_put_string(node, "source", source_of(tool->reader));
}

/* The program that runs a file reads nothing but the file. */
static void put_program(const struct pe_explain *ex, struct pe_node *tools)
{
    struct pe_node *node = pe_put_object(tools, pe_tool_of_files()->name), *configs = pe_put_list(node, "configs");
    const char *refused = "";
    for (size_t k = 0; k < ex->n_kinds; k++) {
        put_config(configs, &ex->kinds[k].own);
        refused = *refused ? refused : ex->kinds[k].own.refused;
    }
    pe_put_boolean(node, "agrees", !*refused);
    pe_put_string_or_null(node, "refuses", refused);
    pe_put_string(node, "source", pe_gguf_source);
}

void pe_dialect_put_tools(const struct pe_explain *ex, struct pe_node *root)
{
    struct pe_node *tools = pe_put_object(root, "readers");
    for (size_t t = 0; t < ex->n_readers; t++)
        put_tool(ex, tools, &ex->readers[t]);
    if (ex->gguf)
        put_program(ex, tools);
}

/* ---- The catalogue ---- */

size_t pe_n_dialects(void)
{
    size_t n = 0;
    while (pe_reader_at(n))
        n++;
    return n;
}

struct pe_dialect_info pe_dialect_at(size_t i)
{
    const struct pe_tool *tool = pe_reader_at(i);
    return (struct pe_dialect_info){tool->name, tool->reads, source_of(tool)};
}
