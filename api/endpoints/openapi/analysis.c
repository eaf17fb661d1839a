/* The schemas of /analyze and /diagnose, from the rows of metrics, of their fields and of faults. */
#include "api/endpoints/openapi/openapi.h"

#include <string.h>

static const char lang_property[] = "\"lang\":{\"description\":\"language of detail; default from Accept-Language, "
                                    "else en\",\"type\":\"string\",\"enum\":[\"en\",\"zh\"]}";

static void add_metric_names(struct api_text *text)
{
    api_text_put(text, "\"metrics\":{\"description\":\"names of metrics, each once; default all that "
                       "apply\",\"type\":\"array\",\"items\":{\"enum\":[");
    for (size_t i = 0; i < pe_n_metrics(); i++) {
        api_text_add(text, ",", i > 0);
        api_text_string(text, pe_metric_at(i)->name);
    }
    api_text_put(text, "]}}");
}

static void add_fields(struct api_text *text)
{
    bool first = false;
    api_text_put(text, ",\"Analysis\":{\"type\":\"object\",\"description\":\"fields of /analyze beside the "
                       "scheme's\",\"properties\":{\"configs\":{\"description\":\"configurations, each with the "
                       "request's other fields as defaults\",\"type\":\"array\",\"items\":{\"type\":"
                       "\"object\"}},");
    api_text_put(text, lang_property);
    api_text_put(text, ",");
    add_metric_names(text);
    for (const struct pe_param *row = pe_analysis_params(); row->name; row++)
        if (strcmp(row->name, "metrics") != 0) {
            api_openapi_property(text, row->name, &first);
            api_openapi_schema(text, row);
        }
    api_text_put(text, "}}");
}

/* What every metric states; further members depend on the metric. */
static const char result_schema[] =
    ",\"Result\":{\"type\":\"object\",\"required\":[\"value\",\"witness\",\"detail\",\"detail_zh\"],"
    "\"properties\":{\"value\":{\"description\":\"the headline; null: there is none\"},\"witness\":{"
    "\"description\":\"where it is, in rows or distances; null: nowhere\"},\"detail\":{\"type\":\"string\","
    "\"description\":\"one sentence, in the language that lang chooses\"},\"detail_zh\":{\"type\":\"string\","
    "\"description\":\"the same in Chinese\"}}}";

static void add_answer(struct api_text *text)
{
    bool first = true;
    api_text_put(text, result_schema);
    api_text_put(text, ",\"AnalysisAnswer\":{\"type\":\"object\",\"required\":[\"configs\",\"results\","
                       "\"tensors\"],\"properties\":{\"configs\":{\"type\":\"array\",\"items\":{\"type\":"
                       "\"object\"}},\"results\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
                       "\"properties\":{");
    for (size_t i = 0; i < pe_n_metrics(); i++) {
        api_openapi_property(text, pe_metric_at(i)->name, &first);
        api_text_put(text, "{\"$ref\":\"#/components/schemas/Result\",\"description\":");
        api_text_string(text, pe_metric_at(i)->about.summary);
        api_text_put(text, "}");
    }
    api_text_put(text, "}}},\"tensors\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\","
                       "\"required\":[\"dtype\",\"shape\"]}}}}");
}

/* ---- Diagnosis ---- */

static const struct {
    const char *name, *text;
} tensors[] = {
    {"encoding", "[n, dim] or [dim, ...grid]: an additive encoding, or a table of rows"},
    {"cos", "[n, rotary_dim / 2] or [n, rotary_dim], beside sin"},
    {"sin", "as cos"},
    {"cos_sin", "[n, rotary_dim], cosines then sines; [2, n, columns]; [n, rotary_dim / 2, 2]"},
    {"freqs_cis", "[n, rotary_dim / 2, 2]; in .npy, .npz and safetensors also complex [n, rotary_dim / 2]"},
    {"matrix", "[n, rotary_dim / 2, 2, 2]"},
    {"angles", "[n, rotary_dim / 2], or [n, rotary_dim] with each angle twice: radians"},
    {"freqs", "another name of angles"},
    {"inv_freq", "[rotary_dim / 2]: frequencies; beside another tensor a parameter"},
    {"rope_freqs", "[rotary_dim / 2]: by how much each frequency is divided"},
    {"q", "queries before the rotation, beside q_out"},
    {"q_out", "as q, after it"},
    {"k", "keys before the rotation, beside k_out"},
    {"k_out", "as k, after it"},
    {"bias", "[num_heads, queries, keys]: what is added to logits"},
    {"buckets", "[queries, keys]: indices of relative positions"},
    {"position_ids", "[n] or [axes, n]: integers"},
};

/* How q and q_out hold their rows: fields that no plan has, so no list of parameters has them. */
static const char rows_properties[] =
    ",\"tensor_layout\":{\"description\":\"order of the axes of q and q_out; default bhnd; flat and bflat need "
    "head_dim\","
    "\"enum\":[\"bhnd\",\"bnhd\",\"nbhd\",\"nhd\",\"flat\",\"bflat\"]},\"positions_layout\":{\"description\":\"what "
    "two "
    "levels of positions are beside q and q_out: axes (default), or batch: a list for each row of the batch\",\"enum\":"
    "[\"axes\",\"batch\"]}";

static void add_diagnosis(struct api_text *text)
{
    bool first = false;
    api_text_put(text, ",\"Diagnosis\":{\"type\":\"object\",\"description\":\"the tensor in question, beside fields "
                       "of /encode that say what it should be\",\"properties\":{");
    api_text_put(text, lang_property);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        api_openapi_property(text, tensors[i].name, &first);
        api_text_put(text, "{\"$ref\":\"#/components/schemas/Tensor\",\"description\":");
        api_text_string(text, tensors[i].text);
        api_text_put(text, "}");
    }
    api_text_put(text, rows_properties);
    api_text_put(text, "}}");
}

/* A code may occur with several kinds of tensors. */
static bool is_repeated(size_t i)
{
    size_t j = 0;
    while (j < i && strcmp(pe_fault_at(j)->code, pe_fault_at(i)->code) != 0)
        j++;
    return j < i;
}

static void add_fault_codes(struct api_text *text)
{
    api_text_put(text, "{\"type\":\"string\",\"enum\":[");
    for (size_t i = 0; i < pe_n_faults(); i++) {
        if (is_repeated(i))
            continue;
        api_text_add(text, ",", i > 0);
        api_text_string(text, pe_fault_at(i)->code);
    }
    api_text_put(text, "]}");
}

static const char errors_schema[] =
    "\"max_error\":{\"description\":\"the largest difference\"},\"max_ulp\":{\"description\":\"the same in steps of "
    "the dtype\"},\"equal\":{\"description\":\"share of equal numbers\"},\"first_bad\":{\"description\":\"the first "
    "number that differs: output, index, found, expected; null: none\"}";

static void add_diagnosis_answer(struct api_text *text)
{
    api_text_format(
        text,
        ",\"DiagnosisAnswer\":{\"type\":\"object\",\"required\":[\"explained\",\"belief\",\"candidates\","
        "\"findings\",\"undecided\",\"ruled_out\",\"searched\",\"unseen\",\"sides\"],\"properties\":{\"explained\":{"
        "\"type\":"
        "\"boolean\"},\"belief\":{\"type\":[\"object\",\"null\"],\"properties\":{%s}},\"candidates\":{"
        "\"type\":\"array\",\"description\":\"the best first; config with sequence, sent to /encode or "
        "/rotate, and then transforms give the tensor\",\"items\":{\"type\":\"object\",\"properties\":{"
        "\"config\":{\"type\":\"object\"},\"sequence\":{\"type\":\"object\"},\"transforms\":{\"type\":"
        "\"array\"},\"codes\":{\"type\":\"array\"},\"presets\":{\"type\":\"array\"},\"verdict\":{\"enum\":["
        "\"exact\",\"rounding\",\"near\",\"none\"]},%s,\"also\":{\"type\":\"array\",\"description\":\"other "
        "mistakes with the same numbers, at most 8: codes, everywhere, detail, config, sequence, "
        "transforms\"}}}},\"findings\":{\"type\":\"array\",\"items\":{"
        "\"type\":\"object\",\"properties\":{\"code\":",
        errors_schema, errors_schema);
    add_fault_codes(text);
    api_text_put(
        text,
        ",\"pointer\":{\"description\":\"the field of the belief\"},\"detail\":{\"type\":\"string\","
        "\"description\":\"one sentence, in the language that lang chooses\"},\"detail_zh\":{\"type\":"
        "\"string\",\"description\":\"the same in Chinese\"},\"found\":{\"description\":\"what the tensor "
        "has\"},\"believed\":{\"description\":\"what it should have had\"},\"meaning\":{\"type\":[\"string\",\"null\"],"
        "\"description\":\"what a factor that is found is, e.g. 1/sqrt(head_dim)\"}}}},\"undecided\":{\"type\":["
        "\"object\",\"null\"]},\"ruled_out\":{\"type\":\"array\"},\"searched\":{\"type\":\"integer\","
        "\"description\":\"hypotheses tried\"},\"used_all\":{\"type\":\"boolean\",\"description\":\"true: "
        "the search ended because it had used --max-analysis; else left out\"},\"unseen\":{\"type\":"
        "\"array\",\"maxItems\":32,\"description\":\"codes of the mistakes that would not show in a tensor "
        "that is as believed; empty where the belief does not fit\"},\"sides\":{\"type\":[\"object\",\"null\"],"
        "\"description\":\"where q, q_out, k and k_out were sent: verdict and codes of q and of k. Findings and "
        "candidates then have a side, q, k or, if one reading is of both, null\"}}}");
}

void api_openapi_analysis(struct api_text *text)
{
    add_fields(text);
    add_answer(text);
    add_diagnosis(text);
    add_diagnosis_answer(text);
}
