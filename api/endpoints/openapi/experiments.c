/* The schemas of /experiments. */
#include "api/endpoints/openapi/openapi.h"

static const char configs_property[] =
    "\"configs\":{\"description\":\"configurations, each with the request's other fields as defaults, without a "
    "sequence; eval: up to 4 objects of fields that differ in further evaluations of the same weights\",\"type\":"
    "\"array\",\"minItems\":1,\"maxItems\":6,\"items\":{\"type\":\"object\",\"properties\":{\"eval\":{\"type\":"
    "\"array\",\"maxItems\":4,\"items\":{\"type\":\"object\"}}}}}";

static const char event_schema[] =
    ",\"ExperimentAnswer\":{\"type\":\"object\",\"description\":\"one line, or one server-sent event\",\"required\":["
    "\"event\"],\"properties\":{\"event\":{\"enum\":[\"start\",\"progress\",\"alive\",\"done\",\"error\"]},\"run\":{"
    "\"type\":\"integer\",\"description\":\"of which configuration\"},\"step\":{\"type\":\"integer\"},\"loss\":{"
    "\"type\":\"number\",\"description\":\"mean of the step's batch, nats\"},\"seconds\":{\"type\":\"number\"},"
    "\"results\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"run\":{\"type\":\"integer\"},"
    "\"eval\":{\"description\":\"number in the configuration's eval; null: the configuration itself\"},\"floor\":{"
    "\"description\":\"mean loss of the best predictor\"},\"inside\":{\"description\":\"mean excess over the second "
    "half of train_len\"},\"outside\":{\"description\":\"mean excess over the last train_len / 2 places\"},\"rise\":{"
    "\"description\":\"outside - inside\"}}}},\"tensors\":{\"type\":\"object\",\"description\":\"excess.i [eval_len] "
    "of "
    "result i: mean loss beyond the best predictor's\"}}}";

void api_openapi_experiments(struct api_text *text)
{
    bool first = false;
    api_text_put(text,
                 ",\"Experiment\":{\"type\":\"object\",\"description\":\"fields of /experiments\",\"properties\":{");
    api_text_put(text, configs_property);
    for (const struct pe_param *row = pe_experiment_params(); row->name; row++) {
        api_openapi_property(text, row->name, &first);
        api_openapi_schema(text, row);
    }
    api_text_put(text, "}}");
    api_text_put(text, event_schema);
}
