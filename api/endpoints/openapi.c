/* GET /openapi.json: the endpoints and every parameter as OpenAPI 3.1, from the same tables that read the requests.
 *
 * A request is one flat object. Its schema consists of "scheme", the fields that all requests have in common, and one
 * schema for each scheme; the endpoint decides which fields it uses, and refuses others by name. */
#include "api/endpoints/openapi.h"
#include "api/requests/form.h"
#include "api/routes.h"
#include "api/statuses.h"

#include <math.h>
#include <string.h>

/* ---- Schemas of parameters ---- */

static void add_properties(struct api_text *text, const struct pe_param *rows, bool *first);

static void add_bounds(struct api_text *text, const struct pe_param *row)
{
    if (row->min > -1e300)
        api_text_format(text, ",\"minimum\":%.17g", row->min);
    if (row->max < 1e300)
        api_text_format(text, ",\"maximum\":%.17g", row->max);
}

static void add_words(struct api_text *text, const char *const *words)
{
    api_text_put(text, ",\"enum\":[");
    for (size_t i = 0; words[i]; i++) {
        api_text_add(text, ",", i > 0);
        api_text_string(text, words[i]);
    }
    api_text_put(text, "]");
}

/* A default that the plan derives is not stated. */
static void add_default(struct api_text *text, const struct pe_param *row)
{
    if (isnan(row->fallback))
        return;
    if (row->type == PE_T_BOOL)
        api_text_format(text, ",\"default\":%s", row->fallback != 0 ? "true" : "false");
    else if (row->type == PE_T_INT || row->type == PE_T_REAL)
        api_text_format(text, ",\"default\":%.17g", row->fallback);
    else if (row->type == PE_T_WORD && row->fallback >= 0) {
        api_text_put(text, ",\"default\":");
        api_text_string(text, row->words[(int)row->fallback]);
    }
}

/* The members of a row's schema after its description. */
static void add_type(struct api_text *text, const struct pe_param *row)
{
    bool first = true;
    switch (row->type) {
    case PE_T_INT:
    case PE_T_REAL:
        api_text_member(text, "type", row->type == PE_T_INT ? "integer" : "number");
        add_bounds(text, row);
        break;
    case PE_T_BOOL: api_text_member(text, "type", "boolean"); break;
    case PE_T_WORD:
        api_text_member(text, "type", "string");
        add_words(text, row->words);
        break;
    case PE_T_REALS: api_text_put(text, ",\"type\":\"array\""); break;
    case PE_T_OBJECT:
        api_text_put(text, ",\"type\":\"object\",\"properties\":{");
        add_properties(text, row->fields, &first);
        api_text_put(text, "}");
        break;
    case PE_T_VALUE: break; /* several types; the description says which */
    }
    add_default(text, row);
}

void api_openapi_schema(struct api_text *text, const struct pe_param *row)
{
    api_text_put(text, "{\"description\":");
    api_text_string(text, row->about.summary);
    add_type(text, row);
    api_text_put(text, "}");
}

void api_openapi_property(struct api_text *text, const char *name, bool *first)
{
    api_text_add(text, ",", !*first);
    *first = false;
    api_text_string(text, name);
    api_text_put(text, ":");
}

static void add_properties(struct api_text *text, const struct pe_param *rows, bool *first)
{
    for (; rows && rows->name; rows++) {
        api_openapi_property(text, rows->name, first);
        api_openapi_schema(text, rows);
    }
}

static void add_words_property(struct api_text *text, const char *name, const char *description, bool *first)
{
    api_openapi_property(text, name, first);
    api_text_put(text, "{\"description\":");
    api_text_string(text, description);
    api_text_put(text, "}");
}

/* ---- Schemas of requests ---- */

/* A tensor in JSON: nested lists, or an object with its dtype. */
static const char tensor_schema[] =
    "\"Tensor\":{\"description\":\"nested lists of numbers (f32); or an object that states dtype and shape; or one "
    "without "
    "data, whose numbers are drawn from a seed\",\"oneOf\":[{\"type\":\"array\"},"
    "{\"type\":\"object\",\"required\":[\"data\"],\"properties\":{\"dtype\":{\"type\":\"string\"},\"shape\":{\"type\":"
    "\"array\",\"items\":{\"type\":\"integer\",\"minimum\":0}},\"data\":{\"type\":\"array\"}},\"additionalProperties\":"
    "false},"
    "{\"type\":\"object\",\"description\":\"f32, N(0, std^2): element i depends on seed, std, the field's name and i "
    "only\",\"required\":[\"shape\",\"seed\"],\"properties\":{\"shape\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"integer\",\"minimum\":0}},\"seed\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9007199254740992},\"std\":{"
    "\"type\":\"number\",\"minimum\":0,\"maximum\":1000000,\"default\":0.02}},\"additionalProperties\":false}]}";

static void add_inputs(struct api_text *text, const struct pe_input_row *rows, bool *first)
{
    for (; rows && rows->name; rows++) {
        api_openapi_property(text, rows->name, first);
        api_text_put(text, "{\"$ref\":\"#/components/schemas/Tensor\",\"description\":");
        api_text_string(text, rows->about.summary);
        api_text_put(text, "}");
    }
}

static void add_common(struct api_text *text)
{
    bool first = true;
    api_text_put(text, ",\"Request\":{\"type\":\"object\",\"description\":\"what every request may have; the fields of "
                       "its scheme come beside them\",\"properties\":{");
    add_words_property(text, "scheme", "which scheme; see the schemas scheme.NAME", &first);
    add_words_property(text, "preset", "a public model by name (GET /presets); its fields are defaults", &first);
    add_words_property(text, "hf_config", "a Hugging Face config.json as an object", &first);
    add_words_property(text, "layer_type", "which layers of the model, where they differ", &first);
    add_words_property(
        text, "weights",
        "the name of stored weights (PUT /weights/{name}), or an object of name, sha256 (checked) and map "
        "(our name of a tensor: its name in the file)",
        &first);
    add_properties(text, api_form_lists(), &first);
    add_properties(text, api_form_params(), &first);
    add_properties(text, pe_sequence_params(), &first);
    api_text_put(text, "}}");
}

static void add_scheme(struct api_text *text, const struct pe_scheme_info *info)
{
    bool first = false;
    api_text_put(text, ",\"scheme.");
    api_text_put(text, info->name);
    api_text_put(text, "\":{\"type\":\"object\",\"description\":");
    api_text_string(text, info->about.summary);
    api_text_put(text, ",\"required\":[\"scheme\"],\"properties\":{\"scheme\":{\"const\":");
    api_text_string(text, info->name);
    api_text_put(text, "}");
    add_properties(text, info->params, &first);
    add_inputs(text, info->inputs, &first);
    if (info->is_additive) {
        for (const struct pe_param *row = pe_absolute_params(); row->name; row++)
            if (!pe_param_find(info->params, row->name)) {
                api_openapi_property(text, row->name, &first);
                api_openapi_schema(text, row);
            }
        add_words_property(text, "x", "embeddings [..., n, dim]", &first);
    }
    api_text_put(text, "},\"examples\":[");
    api_text_put(text, info->example);
    api_text_put(text, "]}");
}

/* The fields that operations take beside the scheme's rows. */
static void add_operation(struct api_text *text, enum pe_operation_id id)
{
    bool first = true;
    const struct api_operation *row = &api_operations[id];
    const struct pe_operation_info *info = pe_operation_at(id);
    if (!row->component)
        return;
    api_text_format(text,
                    ",\"%s\":{\"type\":\"object\",\"description\":\"fields of POST %s beside the scheme's\","
                    "\"properties\":{",
                    row->component, row->route.pattern);
    add_properties(text, info->params, &first);
    add_inputs(text, info->inputs, &first);
    api_text_put(text, "}}");
}

static const char problem_schema[] =
    ",\"Problem\":{\"type\":\"object\",\"description\":\"RFC 9457\",\"required\":[\"type\",\"title\",\"status\","
    "\"detail\",\"error\"],\"properties\":{\"type\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},\"status\":{"
    "\"type\":\"integer\"},\"detail\":{\"type\":\"string\"},\"pointer\":{\"type\":\"string\"},\"error\":{\"type\":"
    "\"string\"}}},\"Answer\":{\"type\":\"object\",\"required\":[\"scheme\",\"config\",\"tensors\"],\"properties\":{"
    "\"scheme\":{\"type\":\"string\"},\"config\":{\"type\":\"object\"},\"preset\":{\"type\":\"object\"},\"tensors\":{"
    "\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\",\"required\":[\"dtype\",\"shape\"]}},"
    "\"empty_rows\":{\"type\":\"integer\"},\"terms\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}";

/* Header parameters of every operation: the time limit of the answer, and the name of the request. */
static const char common_parameters[] =
    "\"RequestTimeout\":{\"name\":\"X-Request-Timeout\",\"in\":\"header\",\"description\":\"seconds, as 2.5, from the "
    "last "
    "byte of the request: an answer that has not begun by then is 503, one that has is cut\",\"schema\":{\"type\":"
    "\"number\",\"exclusiveMinimum\":0,\"maximum\":1000000}},\"RequestId\":{\"name\":\"X-Request-Id\",\"in\":"
    "\"header\","
    "\"description\":\"the request's name in the answer and in the log; without it, or with another, one is made\","
    "\"schema\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9._-]{1,128}$\"}}";

/* ---- Schemas of the catalogue ---- */

static void add_pair(struct api_text *text, const char *name, const char *meaning)
{
    api_text_format(text,
                    ",\"%s\":{\"type\":\"string\",\"description\":\"%s, in the language that lang chooses\"},"
                    "\"%s_zh\":{\"type\":\"string\",\"description\":\"the same in Chinese\"}",
                    name, meaning, name);
}

/* What only some of the entries have. */
static const char entry_members[] =
    ",\"group\":{\"type\":\"string\",\"description\":\"section of a form, an entry of groups\"},"
    "\"level\":{\"type\":\"string\",\"enum\":[\"basic\",\"more\"]},"
    "\"usual\":{\"type\":\"array\",\"items\":{\"type\":\"number\"},\"description\":\"the values of a slider, lowest "
    "and highest\"},"
    "\"spacing\":{\"type\":\"string\",\"enum\":[\"linear\",\"log\"]},"
    "\"axes\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"what the axes of an output "
    "count\"},"
    "\"range\":{\"type\":[\"array\",\"null\"],\"items\":{\"type\":\"number\"},\"description\":\"bounds of all values "
    "of "
    "an output; null: none that hold for every request\"},"
    "\"picture\":{\"type\":[\"string\",\"null\"],\"description\":\"path of a GET whose answer shows the scheme\"}";

/* The members that schemes, parameters, inputs and outputs share. */
static void add_entry(struct api_text *text)
{
    static const char *const lists[] = {"parameters", "inputs", "outputs"};
    api_text_put(
        text, ",\"Entry\":{\"type\":\"object\",\"description\":\"a scheme, parameter, input, output, family or group\","
              "\"required\":[\"name\",\"label\",\"label_zh\",\"summary\",\"summary_zh\"],"
              "\"properties\":{\"name\":{\"type\":\"string\"}");
    add_pair(text, "label", "a short name, for a control or a heading");
    add_pair(text, "summary", "its meaning in one sentence");
    api_text_put(text, entry_members);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        api_text_format(text, ",\"%s\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Entry\"}}",
                        lists[i]);
    api_text_put(text, "}}");
}

static void add_preset(struct api_text *text)
{
    api_text_put(text,
                 ",\"Preset\":{\"type\":\"object\",\"description\":\"a preset of the program has label, source and "
                 "certainty, a stored one stored_by and stored_at\",\"required\":[\"name\",\"config\"],"
                 "\"properties\":{\"name\":{\"type\":\"string\"},\"source\":{\"type\":\"string\"},"
                 "\"certainty\":{\"type\":\"string\"},\"config\":{\"type\":\"object\"},"
                 "\"stored_by\":{\"type\":[\"string\",\"null\"],\"description\":\"the name of the token\"},"
                 "\"stored_at\":{\"type\":[\"string\",\"null\"]}");
    add_pair(text, "label", "the model as people write it");
    add_pair(text, "note", "other facts for porting");
    api_text_put(text, "}}");
}

/* ---- Components ---- */

static void add_components(struct api_text *text)
{
    api_text_put(text, "\"security\":[{},{\"bearer\":[]}],\"components\":{\"securitySchemes\":{\"bearer\":{\"type\":"
                       "\"http\",\"scheme\":\"bearer\"}},\"schemas\":{");
    api_text_put(text, tensor_schema);
    add_common(text);
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++)
        add_operation(text, id);
    api_openapi_analysis(text);
    api_openapi_experiments(text);
    for (size_t i = 0; i < pe_n_schemes(); i++)
        add_scheme(text, pe_scheme_at(i));
    api_text_put(text, problem_schema);
    add_entry(text);
    add_preset(text);
    api_text_put(text, "},");
    api_statuses_describe(text);
    api_text_put(text, ",\"parameters\":{");
    api_text_put(text, common_parameters);
    api_text_put(text, "}}");
}

/* ---- Paths ---- */

/* Every scheme that has the operation, or a field that stands for one. */
static void add_scheme_choice(struct api_text *text, const struct api_route_info *route)
{
    api_text_put(text, ",{\"anyOf\":[{\"required\":[\"preset\"]},{\"required\":[\"hf_config\"]}");
    if (route->instead)
        api_text_format(text, ",{\"required\":[\"%s\"]}", route->instead);
    for (size_t i = 0; i < pe_n_schemes(); i++)
        if (pe_scheme_can(pe_scheme_at(i), route->operation))
            api_text_format(text, ",{\"$ref\":\"#/components/schemas/scheme.%s\"}", pe_scheme_at(i)->name);
    api_text_put(text, "]}");
}

static void add_request_schema(struct api_text *text, const struct api_route_info *route)
{
    api_text_put(text, "{\"allOf\":[{\"$ref\":\"#/components/schemas/Request\"}");
    if (route->component)
        api_text_format(text, ",{\"$ref\":\"#/components/schemas/%s\"}", route->component);
    if (!route->instead || *route->instead)
        add_scheme_choice(text, route);
    api_text_put(text, "]}");
}

static void add_body(struct api_text *text, const struct api_route_info *route)
{
    api_text_put(text, ",\"requestBody\":{\"content\":{\"application/json\":{\"schema\":");
    add_request_schema(text, route);
    api_text_format(text, ",\"example\":%s", route->example);
    api_text_put(text, "},\"multipart/form-data\":{\"schema\":{\"type\":\"object\",\"description\":\"part request: the "
                       "JSON; other parts: .npy files named after tensors\"}},\"application/vnd.safetensors\":{},"
                       "\"application/x-npy\":{},\"application/zip\":{}}}");
}

static void add_query(struct api_text *text, const struct api_route_info *route)
{
    api_text_put(text, ",\"parameters\":[{\"name\":\"request\",\"in\":\"query\",\"description\":\"the whole request as "
                       "JSON\",\"content\":{\"application/json\":{\"schema\":");
    add_request_schema(text, route);
    api_text_format(text, ",\"example\":%s", route->example);
    api_text_put(text, "}}},{\"name\":\"fields\",\"in\":\"query\",\"style\":\"form\",\"explode\":true,\"description\":"
                       "\"the request's fields by name: text, numbers and booleans as they are, lists with commas, the "
                       "rest as JSON\",\"schema\":{\"type\":\"object\"}}]");
}

/* Also writes the end of the responses. */
static void add_other_responses(struct api_text *text, const struct api_route_info *route, const char *method)
{
    api_statuses_refer(text, route, method);
    api_text_format(text,
                    ",\"default\":{\"description\":\"what was wrong, in words\",\"content\":{"
                    "\"application/%sjson\":{\"schema\":{\"$ref\":\"#/components/schemas/Problem\"}}}}}",
                    route->is_protocol ? "" : "problem+");
}

static void add_entries(struct api_text *text, const char *name, const char *entry, bool first)
{
    api_text_format(text, "%s\"%s\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/%s\"}}",
                    first ? "" : ",", name, entry);
}

/* One thing of the catalogue, or lists of them: one under the path's own name, and others beside it. */
static void add_catalogue_schema(struct api_text *text, const struct api_route_info *route)
{
    const char *name = route->pattern + 1;
    if (route->name) {
        api_text_format(text, "\"schema\":{\"$ref\":\"#/components/schemas/%s\"}", route->entry);
        return;
    }
    api_text_format(text, "\"schema\":{\"type\":\"object\",\"required\":[\"%s\"],\"properties\":{", name);
    add_entries(text, name, route->entry, true);
    for (const char *const *list = route->lists; list && *list; list++)
        add_entries(text, *list, route->entry, false);
    api_text_put(text, "}}");
}

static void add_responses(struct api_text *text, const struct api_route_info *route, const char *method)
{
    bool computes = route->computes;
    api_text_format(text, ",\"responses\":{\"200\":{\"description\":\"the answer\",\"content\":{\"%s\":{",
                    route->media_type);
    if (computes)
        api_text_format(text, "\"schema\":{\"$ref\":\"#/components/schemas/%s\"}", route->answer);
    else if (route->entry)
        add_catalogue_schema(text, route);
    api_text_put(text, "}");
    if (route->is_live)
        api_text_put(text, ",\"text/event-stream\":{}");
    for (size_t i = 0; computes && !route->is_live && i < api_n_formats(); i++)
        if (strcmp(api_format_at(i)->media_type, api_json_type) != 0)
            api_text_format(text, ",\"%s\":{}", api_format_at(i)->media_type);
    api_text_put(text, "}}");
    add_other_responses(text, route, method);
}

static const char tensors_file[] = "\"application/vnd.safetensors\":{}";

/* PUT takes the same file that GET returns. */
static void add_file_method(struct api_text *text, const struct api_route_info *route, const char *method)
{
    bool is_put = strcmp(method, "PUT") == 0, is_delete = strcmp(method, "DELETE") == 0;
    if (is_put)
        api_text_format(text, ",\"requestBody\":{\"required\":true,\"content\":{%s}}", tensors_file);
    api_text_put(text, ",\"responses\":{");
    if (is_delete)
        api_text_put(text, "\"204\":{\"description\":\"it is no longer stored\"}");
    else if (is_put)
        api_text_put(text, "\"201\":{\"description\":\"stored: its bytes, sha256 and tensors\",\"content\":{"
                           "\"application/json\":{}}},\"200\":{\"description\":\"replaced\",\"content\":{"
                           "\"application/json\":{}}}");
    else
        api_text_format(text, "\"200\":{\"description\":\"the file\",\"content\":{%s}}", tensors_file);
    add_other_responses(text, route, method);
}

/* PUT takes what GET returns; what the server sets itself may be left out. */
static void add_entry_change(struct api_text *text, const struct api_route_info *route, const char *method)
{
    bool is_put = strcmp(method, "PUT") == 0;
    if (is_put)
        api_text_put(
            text, ",\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":{\"type\":"
                  "\"object\",\"required\":[\"config\"],\"properties\":{\"config\":{\"type\":\"object\","
                  "\"description\":\"a request without its sequence\"},\"source\":{\"type\":\"string\"},"
                  "\"note\":{\"type\":\"string\"}}},\"example\":{\"config\":{\"scheme\":\"rope\",\"base\":500000}}}}}");
    api_text_put(text, ",\"responses\":{");
    if (is_put)
        api_text_format(text,
                        "\"201\":{\"description\":\"stored\",\"content\":{\"application/json\":{\"schema\":{\"$ref\":"
                        "\"#/components/schemas/%s\"}}}},\"200\":{\"description\":\"replaced\",\"content\":{"
                        "\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}}}",
                        route->entry, route->entry);
    else
        api_text_put(text, "\"204\":{\"description\":\"it is no longer stored\"}");
    add_other_responses(text, route, method);
}

static const char *lower(const char *method)
{
    static const char *const words[] = {"GET", "get", "HEAD", "head", "POST", "post", "PUT", "put", "DELETE", "delete"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i += 2)
        if (strcmp(method, words[i]) == 0)
            return words[i + 1];
    return "x-query"; /* OpenAPI 3.1 does not know the method QUERY */
}

/* The protocol's own specification describes the rest. */
static void add_inference_body(struct api_text *text, const char *example)
{
    api_text_format(
        text,
        ",\"requestBody\":{\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\",\"properties\":{\"id\":{"
        "\"type\":\"string\"},\"parameters\":{\"type\":\"object\",\"description\":\"the request's fields as strings, "
        "numbers and booleans; lists and objects as JSON text\",\"properties\":{\"timeout\":{\"type\":"
        "\"integer\",\"minimum\":0,\"description\":\"microseconds from the last byte of the request, as header "
        "X-Request-Timeout says them in seconds; 0: any time\"}}},\"inputs\":{\"type\":\"array\",\"items\":{\"type\":"
        "\"object\",\"required\":[\"name\",\"shape\",\"datatype\"],\"properties\":{\"name\":{\"type\":\"string\"},"
        "\"shape\":{\"type\":\"array\"},\"datatype\":{\"type\":\"string\"},\"parameters\":{\"type\":\"object\"},"
        "\"data\":{\"type\":\"array\"}}}},\"outputs\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":["
        "\"name\"],\"properties\":{\"name\":{\"type\":\"string\"},\"parameters\":{\"type\":\"object\"}}}}}},"
        "\"example\":%s},\"application/octet-stream\":{}}}",
        example);
}

static const char lang_parameter[] =
    "{\"name\":\"lang\",\"in\":\"query\",\"description\":\"language of label, summary and note; default from "
    "Accept-Language, else en\",\"schema\":{\"type\":\"string\",\"enum\":[\"en\",\"zh\"]}}";

/* Those in the path, and the language. build: of this program's page, as an example. */
static void add_parameters(struct api_text *text, const struct api_route_info *route, const char *build)
{
    static const char *const names[] = {"name", "version", "build", "file", "query", "key"}, *const steps[] = {
                                                                                                 "{name}",  "{version}",
                                                                                                 "{build}", "{file}",
                                                                                                 "{query}", "{key}"};
    const char *const examples[] = {route->name, "1", build, route->name, route->name, ".zmetadata"};
    bool first = true;
    api_text_put(text, ",\"parameters\":[");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (!strstr(route->pattern, steps[i]))
            continue;
        api_text_format(text,
                        "%s{\"name\":\"%s\",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":\"string\"},"
                        "\"example\":\"%s\"}",
                        first ? "" : ",", names[i], examples[i]);
        first = false;
    }
    if (route->entry)
        api_text_format(text, "%s%s", first ? "" : ",", lang_parameter);
    api_text_put(text, "]");
}

static void add_method(struct api_text *text, const struct api_route_info *route, const char *build, const char *method,
                       bool *first)
{
    bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    api_text_add(text, ",", !*first);
    *first = false;
    api_text_format(text, "\"%s\":{\"summary\":", lower(method));
    api_text_string(text, route->summary);
    api_text_format(text, ",\"tags\":[\"%s\"]", route->group);
    if (strchr(route->pattern, '{') || route->entry)
        add_parameters(text, route, build);
    else if (route->computes && is_get)
        add_query(text, route);
    if (route->computes && !is_get)
        add_body(text, route);
    if (route->is_protocol && route->example)
        add_inference_body(text, route->example);
    bool is_change = strcmp(method, "PUT") == 0 || strcmp(method, "DELETE") == 0;
    if (route->keeps_files)
        add_file_method(text, route, method);
    else if (route->keeps_entries && is_change)
        add_entry_change(text, route, method);
    else
        add_responses(text, route, method);
    api_text_put(text, "}");
}

static void add_path(struct api_text *text, const struct api_route_info *route, const char *build)
{
    bool first = true;
    api_text_string(text, route->pattern);
    api_text_put(text, ":{");
    api_text_put(text, "\"parameters\":[{\"$ref\":\"#/components/parameters/RequestTimeout\"},{\"$ref\":"
                       "\"#/components/parameters/RequestId\"}],");
    for (size_t i = 0; route->methods[i]; i++)
        add_method(text, route, build, route->methods[i], &first);
    api_text_put(text, "}");
}

static void print(struct api_text *text, const void *about)
{
    const struct api_asked *asked = about;
    const struct api_routes *routes = asked->routes;
    const char *build = asked->host->page ? asked->host->page->build : "none";
    api_text_put(text,
                 "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"posenc\",\"version\":\"" PE_VERSION
                 "\",\"description\":\"Transformer positional encodings: tables, rotated queries and keys, attention "
                 "maps, analyses\"},\"paths\":{");
    for (size_t i = 0; i < routes->n; i++) {
        struct api_route_info route = routes->at(i);
        api_text_add(text, ",", i > 0);
        add_path(text, &route, build);
    }
    api_text_put(text, "},");
    add_components(text);
    api_text_put(text, "}");
}

struct api_reply *api_openapi(const struct api_asked *asked)
{
    static struct api_document document = {.print = print};
    return api_reply_document(&document, asked);
}
