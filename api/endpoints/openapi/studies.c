/* The schemas of /analyze, /diagnose, /explain, /translate, /golden and /experiments, from the rows of metrics, of
 * their fields and of their answers.
 */
#include "api/endpoints/endpoints.h"
#include "api/endpoints/openapi/openapi.h"

#include <string.h>

#define LANG                                                                                                           \
    "\"lang\":{\"description\":\"language of detail; default from Accept-Language, else en\",\"type\":\"string\","     \
    "\"enum\":[\"en\",\"zh\"]}"

/* ---- Diagnosis ---- */

const struct api_openapi_tensor api_openapi_evidence[] = {
    {"encoding", "[n, dim] or [dim, ...grid]: an additive encoding, or a table of rows"},
    {"cos", "[n, rotary_dim / 2] or [n, rotary_dim], beside sin or alone; an axis of a batch may be before any table"},
    {"sin", "as cos"},
    {"cos_sin", "[n, rotary_dim], cosines then sines; [2, n, columns]; [n, rotary_dim / 2, 2]"},
    {"freqs_cis", "[n, rotary_dim / 2, 2]; in .npy, .npz and safetensors also complex [n, rotary_dim / 2]"},
    {"matrix", "[n, rotary_dim / 2, 2, 2], or the whole matrices [n, head_dim, head_dim]"},
    {"angles", "[n, rotary_dim / 2], or [n, rotary_dim] with each angle twice: radians"},
    {"freqs", "another name of angles"},
    {"inv_freq", "[rotary_dim / 2]: frequencies; beside another tensor a parameter"},
    {"rope_freqs", "[rotary_dim / 2]: by how much each frequency is divided"},
    {"q", "queries before the rotation, beside q_out, scores or probs"},
    {"q_out", "as q, after it"},
    {"k", "keys before the rotation, beside k_out, scores or probs"},
    {"k_out", "as k, after it"},
    {"scores", "[batch, num_heads, queries, keys]: logits of q and k, masked ones -inf"},
    {"probs", "the same after the softmax"},
    {"bias", "[num_heads, queries, keys]: what is added to logits"},
    {"buckets", "[queries, keys]: indices of relative positions"},
    {"index", "[queries, keys]: rows of a relative table"},
    {"index_h", "as index, of rel_h"},
    {"index_w", "as index, of rel_w"},
    {"position_ids", "[n] or [axes, n]: integers; beside another tensor its positions, also [batch, n]"},
    {NULL, NULL},
};

/* What is typed by hand. */
static const char values_property[] =
    ",\"values\":{\"description\":\"numbers typed by hand in place of a tensor, of one kind, each place once; see "
    "/diagnose/probe\",\"type\":\"array\",\"minItems\":1,\"maxItems\":64,\"items\":{\"type\":\"object\",\"required\":["
    "\"tensor\",\"value\"],\"properties\":{\"tensor\":{\"enum\":[\"cos\",\"sin\",\"q_out\",\"inv_freq\",\"angles\","
    "\"encoding\",\"bias\"]},\"position\":{\"type\":\"number\"},\"channel\":{\"type\":\"integer\",\"minimum\":0},"
    "\"head\":{\"type\":\"integer\",\"minimum\":0},\"query\":{\"type\":\"number\"},\"key\":{\"type\":\"number\"},"
    "\"value\":{\"description\":\"a number, or its text, which keeps its digits\",\"type\":[\"number\",\"string\"]}}}}";

static void add_diagnosis(struct api_text *text)
{
    const struct pe_param *const lists[] = {pe_padding_params(), pe_operation_at(PE_ATTEND)->params, pe_typed_params(),
                                            api_any_names_params(), api_diagnose_params()};
    api_text_put_described(
        text, ",\"Diagnosis\":{\"type\":\"object\",\"description\":\"the tensor in question, beside fields of /encode, "
              "or of /attention for scores and probs, that state what it should be\",\"properties\":{" LANG);
    for (const struct api_openapi_tensor *tensor = api_openapi_evidence; tensor->name; tensor++) {
        api_text_name(text, tensor->name);
        api_text_put(text, "{\"$ref\":\"#/components/schemas/Tensor\"");
        api_text_description(text, tensor->text);
        api_text_put(text, "}");
    }
    api_text_name(text, "positions_layout");
    api_openapi_schema(text, pe_param_find(pe_sequence_params(), "positions_layout"));
    api_text_put_described(text, values_property);
    /* Each name once: rows that come in an earlier list are left out. */
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct pe_param *row = lists[i]; row->name; row++) {
            bool is_new = true;
            for (size_t j = 0; j < i; j++)
                is_new = is_new && !pe_param_find(lists[j], row->name);
            if (is_new) {
                api_text_name(text, row->name);
                api_openapi_schema(text, row);
            }
        }
    api_text_put(text, "}}");
}

/* ---- All of them ---- */

#define CONFIGS                                                                                                        \
    "\"configs\":{\"description\":\"configurations, each with the request's other fields as defaults, without a "      \
    "sequence; eval: up to 4 objects of fields that differ in further evaluations of the same weights\",\"type\":"     \
    "\"array\",\"minItems\":1,\"maxItems\":6,\"items\":{\"type\":\"object\",\"properties\":{\"eval\":{\"type\":"       \
    "\"array\",\"maxItems\":4,\"items\":{\"type\":\"object\"}}}}}"

/* The schema that this JSON opens, whose further properties are these rows; and the schema of the answer. */
static void add_study(struct api_text *text, const char *opening, const struct pe_param *rows, const char *answer,
                      const char *about, const struct pe_member *members)
{
    api_text_put_described(text, opening);
    api_openapi_properties(text, rows);
    api_text_put(text, "}}");
    api_openapi_answer(text, answer, about, members);
}

void api_openapi_studies(struct api_text *text)
{
    api_text_put_described(
        text, ",\"Analysis\":{\"type\":\"object\",\"description\":\"fields of /analyze beside the "
              "scheme's\",\"properties\":{\"configs\":{\"description\":\"configurations, each with the "
              "request's other fields as defaults\",\"type\":\"array\",\"items\":{\"type\":"
              "\"object\"}}," LANG ",\"metrics\":{\"description\":\"names of metrics, each once; default all that "
              "apply\",\"type\":\"array\",\"items\":{\"enum\":[");
    for (size_t i = 0; i < pe_n_metrics(); i++)
        api_text_member(text, NULL, pe_metric_at(i)->name);
    api_text_put(text, "]}}");
    for (const struct pe_param *row = pe_analysis_params(); row->name; row++)
        if (strcmp(row->name, "metrics") != 0) {
            api_text_name(text, row->name);
            api_openapi_schema(text, row);
        }
    api_text_put(text, "}}");
    api_openapi_answer(text, "Result", NULL, pe_result_members);
    api_openapi_answer(text, "AnalysisAnswer", NULL, pe_analysis_members);
    add_diagnosis(text);
    api_openapi_answer(text, "DiagnosisAnswer", NULL, pe_diagnosis_members);
    api_openapi_answer(text, "CheckAnswer", NULL, api_check_members);
    add_study(text,
              ",\"Probe\":{\"type\":\"object\",\"description\":\"fields of /diagnose/probe beside the "
              "configuration\",\"properties\":{" LANG,
              pe_probe_params(), "ProbeAnswer", NULL, pe_probe_members);
    add_study(text,
              ",\"Explanation\":{\"type\":\"object\",\"description\":\"fields of /explain beside the configuration"
              "\",\"properties\":{" LANG,
              pe_explain_params(), "ExplanationAnswer", NULL, pe_explain_members);
    add_study(text,
              ",\"Translation\":{\"type\":\"object\",\"description\":\"fields of /translate beside the "
              "configuration\",\"properties\":{" LANG,
              pe_translate_params(), "TranslationAnswer", NULL, pe_translate_members);
    add_study(text,
              ",\"Golden\":{\"type\":\"object\",\"description\":\"fields of /golden beside the configuration\","
              "\"properties\":{",
              pe_golden_params(), "GoldenAnswer", "as JSON; in safetensors, the default, the members are __metadata__",
              pe_golden_members);
    api_text_put_described(text, ",\"Derivation\":{\"type\":\"object\",\"description\":\"fields of /derive beside the "
                                 "configuration\",\"properties\":{" LANG);
    for (const struct pe_param *row = pe_derive_params(); row->name; row++) {
        api_text_name(text, row->name);
        if (row->type != PE_T_REALS) {
            api_openapi_schema(text, row);
            continue;
        }
        api_text_named(text, "{\"description\":", pe_summary_in(pe_spoken(), &row->about));
        api_text_put(text, ",\"type\":[\"number\",\"array\"]}"); /* of one number, of several */
    }
    api_text_put(text, "}}");
    api_openapi_answer(text, "DerivationAnswer", NULL, pe_derive_members);
    add_study(
        text,
        ",\"Experiment\":{\"type\":\"object\",\"description\":\"fields of /experiments\",\"properties\":{" CONFIGS,
        pe_experiment_params(), "ExperimentAnswer", "one line, or one server-sent event", api_live_members);
}
