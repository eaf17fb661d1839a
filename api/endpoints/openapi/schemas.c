/* The schemas of the OpenAPI document: of parameters, requests and answers, from the rows that read the requests.
 *
 * A request is one flat object. Its schema consists of "scheme", the fields that all requests have in common, and one
 * schema for each scheme; the endpoint decides which fields it uses, and refuses others by name. */
#include "api/endpoints/openapi/openapi.h"
#include "api/operations.h"
#include "api/requests/requests.h"

#include <math.h>
#include <stdio.h>

/* ---- Schemas of parameters ---- */

/* A default that the plan derives is not stated. */
static void add_default(struct api_text *text, const struct pe_param *row)
{
    if (isnan(row->fallback))
        return;
    if (row->type == PE_T_BOOL)
        api_text_flag(text, "default", row->fallback != 0);
    else if (row->type == PE_T_INT || row->type == PE_T_REAL)
        api_text_format(text, ",\"default\":%.17g", row->fallback);
    else if (row->type == PE_T_WORD && row->fallback >= 0)
        api_text_member(text, "default", row->words[(int)row->fallback]);
}

void api_openapi_schema(struct api_text *text, const struct pe_param *row)
{
    api_text_named(text, "{\"description\":", pe_summary_in(pe_spoken(), &row->about));
    /* The members of a row's schema after its description. */
    switch (row->type) {
    case PE_T_INT:
    case PE_T_REAL:
        api_text_member(text, "type", row->type == PE_T_INT ? "integer" : "number");
        if (row->min > -1e300)
            api_text_format(text, ",\"minimum\":%.17g", row->min);
        if (row->max < 1e300)
            api_text_format(text, ",\"maximum\":%.17g", row->max);
        break;
    case PE_T_BOOL: api_text_member(text, "type", "boolean"); break;
    case PE_T_WORD:
        api_text_member(text, "type", "string");
        api_text_open(text, "enum", '[');
        for (size_t i = 0; row->words[i]; i++)
            api_text_member(text, NULL, row->words[i]);
        api_text_close(text, ']');
        break;
    case PE_T_REALS: api_text_put(text, ",\"type\":\"array\""); break;
    case PE_T_OBJECT:
        api_text_member(text, "type", "object");
        api_text_open(text, "properties", '{');
        api_openapi_properties(text, row->fields);
        api_text_close(text, '}');
        break;
    case PE_T_VALUE: break; /* several types; the description states which */
    }
    add_default(text, row);
    api_text_close(text, '}');
}

void api_openapi_properties(struct api_text *text, const struct pe_param *rows)
{
    for (; rows && rows->name; rows++) {
        api_text_name(text, rows->name);
        api_openapi_schema(text, rows);
    }
}

static void add_words_property(struct api_text *text, const char *name, const char *description)
{
    api_text_open(text, name, '{');
    api_text_description(text, description);
    api_text_close(text, '}');
}

/* ---- Schemas of requests ---- */

/* A tensor in JSON: nested lists, or an object with its dtype. */
static const char tensor_schema[] =
    "\"Tensor\":{\"description\":\"nested lists of numbers (f32); or an object that states dtype and shape; or one "
    "without data, whose numbers are drawn from a seed; or one with a .npy file; of /diagnose and /check a text, too, "
    "as torch or NumPy prints it\",\"oneOf\":[{\"type\":\"array\"},{\"type\":\"string\"},"
    "{\"type\":\"object\",\"required\":[\"data\"],\"properties\":{\"dtype\":{\"type\":\"string\"},\"shape\":{\"type\":"
    "\"array\",\"items\":{\"type\":\"integer\",\"minimum\":0}},\"data\":{\"type\":[\"array\",\"string\"]}},"
    "\"additionalProperties\":"
    "false},"
    "{\"type\":\"object\",\"description\":\"f32, N(0, std^2): element i depends on seed, std, the field's name and i "
    "only\",\"required\":[\"shape\",\"seed\"],\"properties\":{\"shape\":{\"type\":\"array\",\"items\":{\"type\":"
    "\"integer\",\"minimum\":0}},\"seed\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9007199254740992},\"std\":{"
    "\"type\":\"number\",\"minimum\":0,\"maximum\":1000000,\"default\":0.02}},\"additionalProperties\":false},"
    "{\"type\":\"object\",\"required\":[\"npy\"],\"properties\":{\"npy\":{\"type\":\"string\",\"pattern\":"
    "\"^[A-Za-z0-9+/]*={0,2}$\"}},\"additionalProperties\":false}]}";

static void add_inputs(struct api_text *text, const struct pe_input_row *rows)
{
    for (; rows && rows->name; rows++) {
        api_text_name(text, rows->name);
        api_text_named(text, "{\"$ref\":\"#/components/schemas/Tensor\",\"description\":",
                       pe_summary_in(pe_spoken(), &rows->about));
        api_text_close(text, '}');
    }
}

static void add_common(struct api_text *text)
{
    api_text_put_described(text, ",\"Request\":{\"type\":\"object\",\"description\":\"what every request may have; the "
                                 "fields of its scheme are beside them\",\"properties\":{");
    add_words_property(text, "scheme", "which scheme; see the schemas scheme.NAME");
    add_words_property(
        text, "preset",
        "a public model by its preset's name (GET /presets), or by that of Hugging Face, of a file or of "
        "ollama; its fields are defaults");
    add_words_property(text, "hf_config", "a Hugging Face config.json as an object, or a text that shows one");
    add_words_property(
        text, "gguf",
        "keys of a GGUF file as an object, or a text that lists them; tensors: its rope_freqs.weight and the "
        "like");
    add_words_property(
        text, "said",
        "positions in another tool's words: {\"to\":\"vllm\",\"value\":{…}}, or text, its flags; see "
        "dialects in GET /schemes; or a text as it was pasted. On top of preset, hf_config or gguf: what "
        "the tool makes of both");
    add_words_property(text, "layer_type", "which layers of the model, where they differ");
    add_words_property(text, "fps",
                       "beside hf_config of a class that counts in seconds: frames per second of the video");
    add_words_property(
        text, "weights",
        "the name of stored weights (PUT /weights/{name}), or an object of name, sha256 (checked) and map "
        "(our name of a tensor: its name in the file)");
    api_openapi_properties(text, api_form_lists());
    api_openapi_properties(text, api_form_params());
    api_openapi_properties(text, pe_sequence_params());
    api_text_put(text, "}}");
}

static void add_scheme(struct api_text *text, const struct pe_scheme_info *info)
{
    api_text_put(text, ",\"scheme.");
    api_text_put(text, info->name);
    api_text_named(text, "\":{\"type\":\"object\",\"description\":", pe_summary_in(pe_spoken(), &info->about));
    api_text_named(text, ",\"required\":[\"scheme\"],\"properties\":{\"scheme\":{\"const\":", info->name);
    api_text_close(text, '}');
    api_openapi_properties(text, info->params);
    add_inputs(text, info->inputs);
    if (info->is_additive) {
        for (const struct pe_param *row = pe_absolute_params(); row->name; row++)
            if (!pe_param_find(info->params, row->name)) {
                api_text_name(text, row->name);
                api_openapi_schema(text, row);
            }
        add_words_property(text, "x", "embeddings [..., n, dim]");
    }
    api_text_put(text, "},\"examples\":[");
    api_text_put(text, info->example);
    api_text_put(text, "]}");
}

/* The fields that operations take beside the scheme's rows. */
static void add_operation(struct api_text *text, enum pe_operation_id id)
{
    const struct api_operation *row = &api_operations[id];
    const struct pe_operation_info *info = pe_operation_at(id);
    if (!row->route.component)
        return;
    char about[96];
    snprintf(about, sizeof about, pe_text("fields of POST %s beside the scheme's"), row->route.pattern);
    api_text_format(text, ",\"%s\":{\"type\":\"object\"", row->route.component);
    api_text_member(text, "description", about);
    api_text_put(text, ",\"properties\":{");
    api_openapi_properties(text, info->params);
    add_inputs(text, info->inputs);
    api_text_put(text, "}}");
}

/* ---- Schemas of answers ---- */

static const char problem_schema[] =
    ",\"Problem\":{\"type\":\"object\",\"description\":\"RFC 9457; title, detail and error are Chinese where lang=zh "
    "or "
    "Accept-Language asks for it\",\"required\":[\"type\",\"title\",\"status\","
    "\"detail\",\"error\"],\"properties\":{\"type\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},\"status\":{"
    "\"type\":\"integer\"},\"detail\":{\"type\":\"string\"},\"pointer\":{\"type\":\"string\"},\"error\":{\"type\":"
    "\"string\"},\"layer_types\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"the kinds "
    "of layers of a model whose layers differ, where the request names "
    "none\"},\"needs\":{\"type\":[\"array\",\"null\"]}}},\"Answer\":{\"type\":\"object\",\"required\":[\"scheme\","
    "\"config\",\"tensors\"],\"properties\":{"
    "\"scheme\":{\"type\":\"string\"},\"config\":{\"type\":\"object\"},\"preset\":{\"type\":\"object\"},\"tensors\":{"
    "\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\",\"required\":[\"dtype\",\"shape\"]}},"
    "\"empty_rows\":{\"type\":\"integer\"},\"terms\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}";

static void add_pair(struct api_text *text, const char *name, const char *meaning)
{
    api_text_format(text, ",\"%s\":{\"type\":\"string\"", name);
    api_text_description(text, meaning);
    api_text_format(text, "},\"%s_zh\":{\"type\":\"string\"", name);
    api_text_description(text, "the same in Chinese");
    api_text_close(text, '}');
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
    "\"picture\":{\"type\":[\"string\",\"null\"],\"description\":\"path of a GET whose answer shows the scheme\"},"
    "\"formula\":{\"type\":\"array\",\"description\":\"of one scheme: its lines, each with symbol, expression, text, "
    "tex, mathml, its reason and the parameters that it uses\"}";

/* ---- All of them ---- */

void api_openapi_schemas(struct api_text *text)
{
    api_text_put_described(text, tensor_schema);
    add_common(text);
    for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++)
        add_operation(text, id);
    api_openapi_studies(text);
    for (size_t i = 0; i < pe_n_schemes(); i++)
        add_scheme(text, pe_scheme_at(i));
    api_text_put_described(text, problem_schema);
    /* The members that schemes, parameters, inputs and outputs share. */
    static const char *const lists[] = {"parameters", "inputs", "outputs"};
    api_text_put_described(
        text, ",\"Entry\":{\"type\":\"object\",\"description\":\"a scheme, parameter, input, output, family or group\","
              "\"required\":[\"name\",\"label\",\"label_zh\",\"summary\",\"summary_zh\"],"
              "\"properties\":{\"name\":{\"type\":\"string\"}");
    add_pair(text, "label", "a short name, for a control or a heading, in the language that lang chooses");
    add_pair(text, "summary", "its meaning in one sentence, in the language that lang chooses");
    api_text_put_described(text, entry_members);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        api_text_format(text, ",\"%s\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/components/schemas/Entry\"}}",
                        lists[i]);
    api_text_put(text, "}}");
    api_text_put_described(
        text, ",\"Preset\":{\"type\":\"object\",\"description\":\"a preset of the program has label, source and "
              "certainty, a stored one stored_by and stored_at\",\"required\":[\"name\",\"config\"],"
              "\"properties\":{\"name\":{\"type\":\"string\"},\"source\":{\"type\":\"string\"},"
              "\"certainty\":{\"type\":\"string\"},\"config\":{\"type\":\"object\"},"
              "\"stored_by\":{\"type\":[\"string\",\"null\"],\"description\":\"the name of the token\"},"
              "\"stored_at\":{\"type\":[\"string\",\"null\"]}");
    add_pair(text, "label", "the model as people write it, in the language that lang chooses");
    add_pair(text, "note", "other facts for porting, in the language that lang chooses");
    api_text_put_described(
        text,
        ",\"asked\":{\"type\":\"string\",\"description\":\"the name that was given, if it is neither the "
        "preset's own nor an alias\"},\"resolved\":{\"type\":\"string\",\"description\":\"then the preset that it "
        "means\"},\"dropped\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"description\":\"then its words "
        "that "
        "are not the model's\"}");
    api_text_put(text, "}}");
}
