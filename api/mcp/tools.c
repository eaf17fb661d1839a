/* The list of tools, from the rows of the endpoints: a route with a name for its tool is one, so an operation that the
 * core gets is a tool without other code. Only the order, and what is made of an answer, is stated here. Texts are
 * English: they are for models, and every model that uses this server reads all of them, so they are short. */
#include "api/endpoints/openapi/openapi.h"
#include "api/mcp/mcp.h"

#include <math.h>

/* Before and after those of the operations. The picture is no endpoint of its own. */
static const struct row {
    const char *tool;
    enum api_mcp_kind kind;
    int values;
} before[] = {{"schemes", API_MCP_SCHEMES, 0}, {"presets", API_MCP_PRESETS, 0}, {"explain", API_MCP_ANSWER, 0}},
  after[] = {{"analyze", API_MCP_TENSORS, 64}, {"diagnose", API_MCP_ANSWER, 0}, {"check", API_MCP_ANSWER, 0},
             {"picture", API_MCP_PICTURE, 0},  {"experiment", API_MCP_LIVE, 0}, {"translate", API_MCP_ANSWER, 0},
             {"derive", API_MCP_ANSWER, 0}};

enum { N_BEFORE = sizeof before / sizeof *before, N_AFTER = sizeof after / sizeof *after };

static const char *const pictured[] = {"encode", "attention", "analyze", NULL};

const struct pe_param api_mcp_own_rows[] = {
    {.name = "values",
     .type = PE_T_INT,
     .offset = offsetof(struct api_mcp_own, values),
     .fallback = (double)NAN,
     .min = 0,
     .max = API_MCP_VALUES_MAX,
     .about = {"values", "numbers shown of each tensor"}},
    {.name = "of",
     .type = PE_T_WORD,
     .offset = offsetof(struct api_mcp_own, of),
     .words = pictured,
     .about = {"of", "which endpoint draws"}},
    {.name = NULL},
};

static const struct api_route *route_of(const struct api_request *request, const char *tool)
{
    const struct api_route *route;
    for (size_t i = 0; (route = request->route_at(i)); i++)
        if (route->tool && strcmp(route->tool, tool) == 0)
            return route;
    return NULL;
}

static struct api_mcp_tool tool_of(const struct row *row, const struct api_route *route, size_t number)
{
    if (row->kind == API_MCP_PICTURE)
        return (struct api_mcp_tool){.name = row->tool,
                                     .title = "Draw a picture",
                                     .description =
                                         "A heat map as an image: an encoding, an attention map (of: attention) or a "
                                         "curve of analyze (of: analyze). Use it to show a "
                                         "scheme to a person; give outputs and slice to choose what is drawn.",
                                     .kind = row->kind,
                                     .route = route,
                                     .number = number};
    return (struct api_mcp_tool){.name = route->tool,
                                 .title = route->title,
                                 .description = route->description,
                                 .kind = row->kind,
                                 .route = route,
                                 .number = number,
                                 .values = row->values};
}

/* Takes the rows that have a route; *left counts down to the one that is asked for. */
static bool take_rows(const struct api_request *request, const struct row *rows, size_t n, size_t *left, size_t number,
                      struct api_mcp_tool *tool)
{
    for (size_t i = 0; i < n; i++) {
        const struct api_route *route = route_of(request, rows[i].kind == API_MCP_PICTURE ? pictured[0] : rows[i].tool);
        if (!route || (*left)--)
            continue;
        *tool = tool_of(&rows[i], route, number);
        return true;
    }
    return false;
}

bool api_mcp_tool_at(const struct api_request *request, size_t i, struct api_mcp_tool *tool)
{
    size_t left = i;
    if (take_rows(request, before, N_BEFORE, &left, i, tool))
        return true;
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++) {
        const struct row row = {api_operations[id].route.tool, API_MCP_TENSORS, 64};
        if (take_rows(request, &row, row.tool != NULL, &left, i, tool))
            return true;
    }
    return take_rows(request, after, N_AFTER, &left, i, tool);
}

bool api_mcp_tool_find(const struct api_request *request, const char *name, struct api_mcp_tool *tool)
{
    for (size_t i = 0; api_mcp_tool_at(request, i, tool); i++)
        if (strcmp(tool->name, name) == 0)
            return true;
    return false;
}

const char *api_mcp_tool_nearest(const struct api_request *request, const char *name)
{
    const char *names[API_MCP_TOOLS_MAX];
    struct api_mcp_tool tool;
    size_t n = 0;
    for (; n + 1 < API_MCP_TOOLS_MAX && api_mcp_tool_at(request, n, &tool); n++)
        names[n] = tool.name;
    names[n] = NULL;
    return pe_nearest(name, names);
}

/* ---- The schema of the arguments ---- */

/* One object's properties; a name that two tables have is written once. */
struct schema {
    struct api_text *text;
    const char *names[API_FIELDS_MAX];
    size_t n;
};

static bool begin_property(struct schema *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->names[i], name) == 0)
            return false;
    if (s->n == API_FIELDS_MAX)
        return false;
    s->names[s->n++] = name;
    api_text_name(s->text, name);
    return true;
}

static const char *type_of(enum pe_type type)
{
    static const char *const names[] = {
        [PE_T_INT] = "integer", [PE_T_REAL] = "number",   [PE_T_BOOL] = "boolean", [PE_T_WORD] = "string",
        [PE_T_REALS] = "array", [PE_T_OBJECT] = "object", [PE_T_VALUE] = NULL};
    return names[type];
}

/* With its label alone: the tool schemas has the sentence. Words and bounds only where all schemes agree. */
static void print_short(struct api_text *text, const struct pe_param *row, bool agree)
{
    api_text_named(text, "{\"description\":", pe_label_in(PE_EN, &row->about));
    if (type_of(row->type))
        api_text_member(text, "type", type_of(row->type));
    if (agree && row->type == PE_T_WORD) {
        api_text_open(text, "enum", '[');
        for (size_t i = 0; row->words[i]; i++)
            api_text_member(text, NULL, row->words[i]);
        api_text_close(text, ']');
    }
    if (agree && (row->type == PE_T_INT || row->type == PE_T_REAL) && row->max < 1e9)
        api_text_format(text, ",\"minimum\":%.17g,\"maximum\":%.17g", row->min, row->max);
    api_text_put(text, "}");
}

/* Of an object's members only `type` is listed: all of `scaling` in every tool would be most of the list. */
static void put_object(struct schema *s, const struct pe_param *row)
{
    const struct pe_param *type = pe_param_find(row->fields, "type");
    api_text_named(s->text, "{\"type\":\"object\",\"description\":", pe_summary_in(PE_EN, &row->about));
    if (type) {
        api_text_put(s->text, ",\"properties\":{\"type\":");
        print_short(s->text, type, true);
        api_text_put(s->text, "}");
    }
    api_text_put(s->text, "}");
}

static void put_row(struct schema *s, const struct pe_param *row)
{
    if (!begin_property(s, row->name))
        return;
    if (row->type == PE_T_OBJECT)
        put_object(s, row);
    else
        api_openapi_schema(s->text, row);
}

/* The details of multimodal sequences are for those who read the scheme's own page. */
static void put_rows(struct schema *s, const struct pe_param *rows)
{
    for (; rows && rows->name; rows++)
        if (rows->group != PE_G_SEGMENTS || pe_param_is_basic(rows))
            put_row(s, rows);
}

static void put_property(struct schema *s, const char *name, const char *type, const char *about)
{
    if (!begin_property(s, name))
        return;
    api_text_put(s->text, "{");
    if (type)
        api_text_format(s->text, "\"type\":\"%s\",", type);
    api_text_named(s->text, "\"description\":", about);
    api_text_put(s->text, "}");
}

static void put_schemes(struct schema *s, const struct api_route *route)
{
    if (!begin_property(s, "scheme"))
        return;
    api_text_put(s->text, "{\"type\":\"string\",\"enum\":[");
    for (size_t i = 0; i < pe_n_schemes(); i++)
        if (pe_scheme_can(pe_scheme_at(i), route->operation))
            api_text_member(s->text, NULL, pe_scheme_at(i)->name);
    api_text_put(s->text, "]}");
}

/* A basic parameter that two or more schemes have: its words and bounds only where all agree. */
static size_t count_schemes(const struct pe_param *row, bool *agree)
{
    size_t n = 0;
    *agree = true;
    for (size_t i = 0; i < pe_n_schemes(); i++) {
        const struct pe_param *other = pe_param_find(pe_scheme_at(i)->params, row->name);
        if (!other)
            continue;
        n++;
        *agree = *agree && other->type == row->type && other->words == row->words && other->min == row->min &&
                 other->max == row->max;
    }
    return n;
}

static void put_short(struct schema *s, const struct pe_param *row, bool agree)
{
    if (begin_property(s, row->name))
        print_short(s->text, row, agree);
}

static void put_inputs(struct schema *s, const struct pe_input_row *rows)
{
    for (; rows && rows->name; rows++)
        if (strcmp(rows->name, "scores") != 0) /* rare, and the list of tools is long; the tool takes it */
            put_property(s, rows->name, NULL, rows->about.summary);
}

static bool is_among(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = words; *p; p += strcspn(p, "|"), p += *p == '|')
        if (strcspn(p, "|") == n && strncmp(p, word, n) == 0)
            return true;
    return false;
}

/* The parts of the answer's form that mean something in a tool. */
static void put_form(struct schema *s, const char *words)
{
    for (const struct pe_param *row = api_form_params(); row->name; row++)
        if (is_among(words, row->name))
            put_row(s, row);
}

/* What names a configuration, for the tool that reads one. */
static void put_configuration(struct schema *s)
{
    put_property(s, "preset", "string", "a model; the tool presets finds its name");
    put_property(s, "hf_config", NULL, "a Hugging Face config.json");
    put_property(s, "gguf", NULL, "the keys of a GGUF file, or the log of llama.cpp's loader as text");
    put_property(s, "said", NULL,
                 "pasted text: a command such as vllm serve MODEL --hf-overrides '{...}', a log, a Modelfile, "
                 "YAML, a printed config; or {to, value} in the words of one tool; also on top of preset, hf_config or "
                 "gguf");
    put_property(s, "layer_type", "string", "which layers, where they differ");
}

static bool is_check(const struct api_mcp_tool *tool) { return strcmp(tool->name, "check") == 0; }

static void put_request(struct schema *s, const struct api_mcp_tool *tool)
{
    const struct api_route *route = tool->route;
    const struct pe_operation_info *operation = pe_operation_at(route->operation);
    put_schemes(s, route);
    put_property(s, "preset", "string", "a model; the tool presets finds its name");
    put_property(s, "hf_config", "object", "a Hugging Face config.json");
    /* Rarer ways of giving a sequence have their labels alone, since every tool has them. */
    for (const struct pe_param *row = pe_sequence_params(); row->name; row++) {
        if (pe_param_is_basic(row))
            put_row(s, row);
        else if (row->group != PE_G_SEGMENTS && row->level != PE_MORE && !is_check(tool) &&
                 begin_property(s, row->name))
            print_short(s->text, row, true);
    }
    if (tool->kind == API_MCP_TENSORS || tool->kind == API_MCP_PICTURE)
        put_property(s, "outputs", "array", "names of outputs");
    if (tool->kind == API_MCP_TENSORS)
        put_form(s, "dtype|digits|reduce");
    if (tool->kind == API_MCP_PICTURE)
        put_form(s, "cmap|vmin|vmax|zoom|legend");
    if (tool->kind == API_MCP_TENSORS || tool->kind == API_MCP_PICTURE)
        put_property(s, "slice", NULL, "a list per axis of null, an index or [start,stop]");
    put_rows(s, operation->params);
    put_inputs(s, operation->inputs);
    for (size_t i = 0; !is_check(tool) && i < pe_n_schemes(); i++) /* check has those of diagnose */
        for (const struct pe_param *row = pe_scheme_at(i)->params; row->name; row++) {
            bool agree;
            if (!pe_param_is_basic(row) || count_schemes(row, &agree) < 2)
                continue;
            if (row->type == PE_T_OBJECT)
                put_row(s, row);
            else
                put_short(s, row, agree);
        }
}

/* Of studies: the rows that they read beside a request. */
static void put_own(struct schema *s, const struct api_mcp_tool *tool)
{
    const char *name = tool->name;
    if (tool->kind == API_MCP_LIVE || strcmp(name, "analyze") == 0)
        put_property(s, "configs", "array", "configurations to compare, objects; other fields are their defaults");
    if (strcmp(name, "analyze") == 0)
        put_rows(s, pe_analysis_params());
    if (tool->kind == API_MCP_LIVE)
        put_rows(s, pe_experiment_params());
    if (strcmp(name, "diagnose") == 0 || is_check(tool)) {
        for (size_t i = 0; api_openapi_evidence[i].name; i++)
            put_property(s, api_openapi_evidence[i].name, NULL,
                         is_check(tool) ? "as in diagnose" : api_openapi_evidence[i].text);
        put_property(s, "values", "array", "numbers typed by hand: objects of tensor, position, channel, value");
        put_rows(s, pe_typed_params());
        put_rows(s, api_any_names_params());
        put_rows(s, api_diagnose_params());
    }
    if (tool->kind == API_MCP_TENSORS || tool->kind == API_MCP_LIVE)
        put_row(s, &api_mcp_own_rows[0]);
    if (tool->kind == API_MCP_PICTURE)
        put_row(s, &api_mcp_own_rows[1]);
}

/* A number or, of several, a list. */
static void put_derivation(struct schema *s)
{
    put_property(s, "scheme", "string", "or preset, hf_config, gguf, said");
    put_property(s, "preset", "string", "a model");
    put_property(s, "hf_config", "object", "a Hugging Face config.json");
    for (const struct pe_param *row = pe_derive_params(); row->name; row++)
        if (row->type == PE_T_WORD)
            put_row(s, row);
        else
            put_property(s, row->name, NULL, pe_summary_in(PE_EN, &row->about));
}

static void put_catalogue(struct schema *s, const struct api_mcp_tool *tool)
{
    if (tool->kind == API_MCP_SCHEMES) {
        put_property(s, "name", "string", "one scheme, with all its parameters");
        return;
    }
    put_property(s, "query", "string", "words of a model's name, label, source or note");
    put_property(s, "scheme", "string", "only presets of this scheme");
    if (begin_property(s, "limit"))
        api_text_put(s->text, "{\"type\":\"integer\",\"minimum\":0,\"maximum\":1000,\"default\":10}");
}

static bool is_catalogue(const struct api_mcp_tool *tool) { return tool->kind <= API_MCP_PRESETS; }

static void put_input_schema(struct api_text *text, const struct api_mcp_tool *tool)
{
    struct schema s = {.text = text};
    api_text_put(text, "{\"type\":\"object\",\"properties\":{");
    if (is_catalogue(tool)) {
        put_catalogue(&s, tool);
    } else if (tool->kind == API_MCP_LIVE) {
        put_own(&s, tool);
    } else if (strcmp(tool->name, "explain") == 0) {
        put_configuration(&s);
    } else if (strcmp(tool->name, "translate") == 0) {
        put_configuration(&s);
        if (begin_property(&s, "to"))
            api_text_put(text,
                         "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"array\"}],\"default\":\"all\",\"description\":"
                         "\"a tool or a list of tools, such as vllm, llama.cpp, gguf, megatron\"}");
    } else if (strcmp(tool->name, "derive") == 0) {
        put_derivation(&s);
    } else {
        put_own(&s, tool);
        put_request(&s, tool);
    }
    if (begin_property(&s, "lang"))
        api_text_put(text, "{\"type\":\"string\",\"enum\":[\"en\",\"zh\"]}");
    api_text_format(text, "},\"additionalProperties\":%s", is_catalogue(tool) ? "false" : "true");
    if (!is_catalogue(tool))
        api_text_format(text, ",\"description\":\"any other %s\"",
                        is_check(tool) ? "field of diagnose" : "parameter of the scheme; the tool schemas lists them");
    api_text_put(text, "}");
}

/* ---- The schema of the result ---- */

/* "name:type" of those that are always there; some answers have more. */
static const char *members_of(const struct api_mcp_tool *tool)
{
    switch (tool->kind) {
    case API_MCP_SCHEMES: return "schemes:array";
    case API_MCP_PRESETS: return "total:integer presets:array";
    case API_MCP_TENSORS:
        return strcmp(tool->name, "analyze") == 0
                   ? "configs:array results:array tensors:object complete:boolean url:string|null"
                   : "scheme:string config:object tensors:object complete:boolean url:string|null";
    case API_MCP_PICTURE: return "output:string shape:array url:string|null";
    case API_MCP_LIVE: return "seconds:number configs:array results:array tensors:object";
    case API_MCP_ANSWER: break;
    }
    if (strcmp(tool->name, "check") == 0)
        return "fits:boolean verdict:string findings:array max_error:number|null";
    if (strcmp(tool->name, "diagnose") == 0)
        return "fits:boolean explained:boolean candidates:array findings:array";
    if (strcmp(tool->name, "translate") == 0)
        return "targets:array";
    if (strcmp(tool->name, "derive") == 0)
        return "config:object";
    return strcmp(tool->name, "explain") == 0 ? "layers:array" : "";
}

/* ---- The list ---- */

static void put_tool(struct api_text *text, const struct api_mcp_tool *tool)
{
    api_text_open(text, NULL, '{');
    api_text_member(text, "name", tool->name);
    api_text_member(text, "title", tool->title);
    api_text_member(text, "description", tool->description);
    api_text_put(text, ",\"inputSchema\":");
    put_input_schema(text, tool);
    api_text_put(text, ",\"outputSchema\":");
    const char *members = members_of(tool);
    api_text_put(text, "{\"type\":\"object\",\"properties\":{\"summary\":{\"type\":\"string\"}");
    for (const char *p = members; *p; p += *p == ' ') {
        size_t name = strcspn(p, ":"), all = strcspn(p, " ");
        bool may_be_null = all > 5 && strncmp(p + all - 5, "|null", 5) == 0;
        int n = (int)(all - name - 1 - (may_be_null ? 5 : 0));
        api_text_format(text, ",\"%.*s\":", (int)name, p);
        api_text_format(text,
                        may_be_null ? "{\"anyOf\":[{\"type\":\"%.*s\"},{\"type\":\"null\"}]}" : "{\"type\":\"%.*s\"}",
                        n, p + name + 1);
        p += all;
    }
    api_text_put(text, "},\"required\":[\"summary\"");
    for (const char *p = members; *p; p += *p == ' ') {
        api_text_format(text, ",\"%.*s\"", (int)strcspn(p, ":"), p);
        p += strcspn(p, " ");
    }
    api_text_put(text, "],\"additionalProperties\":true}");
    api_text_put(text, ",\"annotations\":{\"readOnlyHint\":true,\"destructiveHint\":false,\"idempotentHint\":true,"
                       "\"openWorldHint\":false}}");
}

void api_mcp_tools_print(struct api_text *text, const struct api_request *request)
{
    struct api_mcp_tool tool;
    pe_speak_in(PE_EN);
    api_text_open(text, "tools", '[');
    for (size_t i = 0; api_mcp_tool_at(request, i, &tool); i++)
        put_tool(text, &tool);
    api_text_put(text, "]");
}
