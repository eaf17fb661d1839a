/* The schemas of /analyze, from the rows of the metrics and of their fields. */
#include "api/endpoints/openapi.h"

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

void api_openapi_analysis(struct api_text *text)
{
    add_fields(text);
    add_answer(text);
}
