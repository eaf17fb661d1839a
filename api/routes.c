/* The table of endpoints, how a path finds its row, and the refusals of a request's head; steps.c answers.
 *
 * A route is a row: path, methods, what its body may be, whether it is open without a token, whether its answer may be
 * kept, and up to three functions. OpenAPI, /limits and the refusals (405 with Allow, 415, 413) read the row, so an
 * endpoint cannot be undocumented.
 *
 * Refusals of the head come in the order that helps a client most: the path before the method, authentication before
 * anything that would show which paths exist. */
#include "api/routes.h"
#include "api/replies/replies.h"
#include "api/inputs/inputs.h"
#include "api/json/json.h"
#include "api/mcp/mcp.h"
#include "api/oip/oip.h"
#include "api/requests/requests.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { GET = API_BY_GET, POST = API_BY_POST, QUERY = API_BY_QUERY, PUT = API_BY_PUT, DELETE = API_BY_DELETE };

#define EXAMPLE_INFER                                                                                                  \
    "{\"inputs\":[{\"name\":\"q\",\"shape\":[1,1,1,2],\"datatype\":\"FP32\",\"data\":[1,0]}],"                         \
    "\"parameters\":{\"offset\":1}}"

/* The version is optional. */
#define MODEL(end, methods_, handle_, summary_, ...)                                                                   \
    {"/v2/models/{name}" end, methods_, handle_, API_PROTOCOL, .summary = summary_, .name = "rope", __VA_ARGS__},      \
    {                                                                                                                  \
        "/v2/models/{name}/versions/{version}" end, methods_, handle_, API_PROTOCOL, .summary = summary_,              \
                                                                                     .name = "rope", __VA_ARGS__       \
    }

#define EXAMPLE_ANALYZE                                                                                                \
    "{\"scheme\":\"rope\",\"len\":64,\"head_dim\":16,\"metrics\":[\"bounds\"],\"outputs\":[],\"digits\":6}"

#define EXAMPLE_DIAGNOSE                                                                                               \
    "{\"scheme\":\"rope\",\"layout\":\"interleaved\",\"offset\":5,\"q\":[[1,2,3,4]],\"q_out\":[[3.160435,1.7975838,"   \
    "-0.107937716,4.0949593]]}"

#define EXAMPLE_CHECK                                                                                                  \
    "{\"scheme\":\"rope\",\"layout\":\"half\",\"offset\":5,\"q\":[[1,2,3,4]],\"q_out\":[[3.160435,1.7975838,"          \
    "-0.107937716,4.0949593]]}"

#define EXAMPLE_PROBE "{\"scheme\":\"rope\",\"head_dim\":8,\"layout\":\"half\",\"count\":3}"

#define EXAMPLE_EXPERIMENT                                                                                             \
    "{\"task\":\"local\",\"steps\":2,\"train_len\":16,\"eval_len\":32,\"configs\":[{\"scheme\":\"alibi\"},"            \
    "{\"scheme\":\"rope\"}]}"

#define EXAMPLE_TRANSLATE "{\"preset\":\"llama-3.1\",\"to\":[\"vllm\",\"llama.cpp\"]}"

static const char lang_of_entries[] = "language of label, summary and note; default from Accept-Language, else en";
#define EXAMPLE_GOLDEN "{\"scheme\":\"rope\",\"head_dim\":8,\"layout\":\"half\",\"format\":\"json\",\"digits\":4}"

#define EXAMPLE_DERIVE "{\"preset\":\"llama-3.1\",\"position\":8192,\"pair\":29}"

#define EXAMPLE_EXPLAIN                                                                                                \
    "{\"hf_config\":{\"model_type\":\"qwen3\",\"head_dim\":128,\"max_position_embeddings\":40960,"                     \
    "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":1000000}}}"

static const char *const beside_schemes[] = {"common", "families", "groups", NULL};

/* The endpoints of no operation; those of the operations come before them (operations.c). */
static const struct api_route routes[] = {
    {"/analyze", GET | POST | QUERY, NULL, API_COMPUTES, .steps = &api_analyze, .is_slow = true,
     .summary = "properties of one to eight encodings: distances, bounds, wavelengths, precision, differences",
     .tool = "analyze", .title = "Analyse encodings",
     .description = "Measured properties of one to eight configurations: distances, bounds, wavelengths, precision, "
                    "extrapolation, differences. Use it to "
                    "choose or compare encodings; each metric has a sentence.",
     .example = EXAMPLE_ANALYZE, .component = "Analysis", .answer = "AnalysisAnswer", .instead = "configs"},
    {"/diagnose", POST, NULL, API_COMPUTES, .steps = &api_diagnose, .is_slow = true, .takes_prints = true,
     .summary = "the configuration that gives a tensor, and what differs from the one believed", .tool = "diagnose",
     .title = "Find what differs",
     .description = "Which configuration made a tensor, and how that differs from the one believed: the findings name "
                    "the mistake of a port. Use it when "
                    "numbers differ; a few rows of cos and sin, inv_freq, or q with q_out are enough, as nested lists, "
                    "as a program prints them, or {\"npy\":\"<base64>\"}.",
     .example = EXAMPLE_DIAGNOSE, .component = "Diagnosis", .answer = "DiagnosisAnswer", .instead = ""},
    {"/diagnose/probe", GET | POST | QUERY, NULL, API_COMPUTES, .steps = &api_probe, .is_slow = true,
     .summary =
         "which few numbers of a tensor to look at and type: they distinguish a belief from every single mistake",
     .example = EXAMPLE_PROBE, .component = "Probe", .answer = "ProbeAnswer"},
    {"/check", POST, NULL, API_COMPUTES, .steps = &api_check, .is_slow = true, .takes_prints = true,
     .summary = "whether a tensor is what it is believed to be: a diagnosis as yes or no", .tool = "check",
     .title = "Check a tensor",
     .description = "Whether a tensor is what a scheme, preset or hf_config states: yes or no, and what differs. Use "
                    "it in tests, when the configuration is known; diagnose identifies an unknown tensor.",
     .example = EXAMPLE_CHECK, .component = "Diagnosis", .answer = "CheckAnswer"},
    {"/explain", GET | POST | QUERY, NULL, API_COMPUTES, .steps = &api_explain, .is_slow = true, .takes_text = true,
     .summary = "what a model's configuration means for every kind of layers, which tool uses which number, and what "
                "follows where they differ",
     .tool = "explain", .title = "Explain a configuration",
     .description = "What a model's config.json, GGUF keys or preset mean for every kind of layers, what was read, "
                    "what are defaults, and where other tools differ. Use it first.",
     .example = EXAMPLE_EXPLAIN, .component = "Explanation", .answer = "ExplanationAnswer"},
    {"/translate", GET | POST | QUERY, NULL, API_COMPUTES, .steps = &api_translate, .is_slow = true, .takes_text = true,
     .summary =
         "the same positions in the words of other tools: fields, flags, keys, arguments, calls, and what each of "
         "them loses",
     .tool = "translate", .title = "Translate a configuration",
     .description =
         "The same positions in another tool's words, ready to paste: fields, flags, keys, arguments, and what each "
         "tool cannot express, with the error that follows. Use it to move a model to another stack.",
     .example = EXAMPLE_TRANSLATE, .component = "Translation", .answer = "TranslationAnswer"},
    {"/derive", GET | POST | QUERY, NULL, API_COMPUTES, .steps = &api_derive, .is_slow = true,
     .summary = "the steps of one number with 20 digits, what float32 makes of each, and where its error arises",
     .tool = "derive", .title = "Derive a number",
     .description = "Why a number is what it is: the steps of its formula with 20 digits, the same steps in float32, "
                    "and the step that costs most. Use it when one number differs, or to teach a formula.",
     .example = EXAMPLE_DERIVE, .component = "Derivation", .answer = "DerivationAnswer"},
    {"/golden", POST | QUERY, NULL, API_COMPUTES, .steps = &api_golden, .is_slow = true,
     .summary = "a few exact tensors of a configuration in a file of at most 64 KiB, for the tests of a port",
     .example = EXAMPLE_GOLDEN, .component = "Golden", .answer = "GoldenAnswer"},
    {"/golden/{preset}", GET, NULL, API_COMPUTES, .steps = &api_golden, .is_slow = true,
     .summary = "the same of a public model or a stored preset", .name = "llama-3.1", .answer = "GoldenAnswer"},
    {"/experiments", GET | POST, NULL, API_LIVE, .steps = &api_experiments, .is_slow = true,
     .summary = "small decoders trained with different encodings while the client reads: length extrapolation",
     .tool = "experiment", .title = "Train small decoders",
     .description = "Trains a small decoder with each of up to six encodings and evaluates it at longer lengths, for "
                    "up to some minutes. Use it to compare how "
                    "encodings extrapolate; 300 steps are enough.",
     .example = EXAMPLE_EXPERIMENT, .component = "Experiment", .answer = "ExperimentAnswer", .instead = "configs",
     .media_type = "application/x-ndjson", .needs_server = true},
    {"/zarr/{query}/{key}", GET, NULL, API_STORE, .steps = &api_zarr,
     .summary = "an answer of /encode as a Zarr store, for readers in parallel: a text about its arrays, or a chunk",
     .name = "scheme=rope&len=8", .media_type = "*/*"},
    {"/schemes", GET, api_schemes, API_CATALOGUE, .summary = "every scheme with its parameters, inputs and outputs",
     .tool = "schemes", .title = "List the schemes",
     .description = "What can be computed: every scheme with its family, outputs and an example; with name, every "
                    "parameter of one. Use it before encode if "
                    "a parameter is not known.",
     .entry = "Entry", .lists = beside_schemes, .lang = lang_of_entries},
    {"/schemes/{name}", GET, api_scheme, API_CATALOGUE, .summary = "one scheme", .name = "rope", .entry = "Entry",
     .lang = lang_of_entries},
    {"/presets", GET, api_presets, API_ENTRIES, .is_slow = true,
     .summary = "public models by name, and the presets that are stored here", .tool = "presets",
     .title = "Find a model",
     .description = "Public models, and presets stored here, that match words: configuration, source, certainty. Use "
                    "it to find the preset of a model before "
                    "encode, explain or diagnose.",
     .entry = "Preset", .lang = lang_of_entries},
    {"/presets/{name}", GET | PUT | DELETE, api_preset, API_ENTRIES, .summary = "one preset: a model or a stored one",
     .name = "llama-3.1", .new_name = "team-a-yarn8", .entry = "Preset", .lang = lang_of_entries},
    {"/cmaps", GET, api_cmaps, API_CATALOGUE,
     .summary = "the colours of pictures, from the lowest value to the highest", .is_open = true},
    {"/weights", GET, api_weights_list, API_FILES, .is_slow = true,
     .summary = "every stored file of weights with its tensors"},
    {"/weights/{name}", GET | PUT | DELETE, api_weights_one, API_FILES,
     .summary = "one stored file of weights, safetensors", .name = "t5-small"},
    {"/openapi.json", GET, api_openapi, API_CATALOGUE, .summary = "this description",
     .lang = "language of summaries and descriptions; default from Accept-Language, else en"},
    {"/healthz", GET, api_healthz, API_STATE, .summary = "is the loop turning?", .is_open = true, .needs_server = true},
    {"/readyz", GET, api_readyz, API_STATE, .summary = "does it take work?", .is_open = true, .needs_server = true},
    {"/metrics", GET, api_metrics, API_STATE, .summary = "figures for Prometheus", .media_type = "text/plain",
     .is_open = true, .needs_server = true},
    {"/version", GET, api_version, API_STATE, .summary = "version, commit, instruction set"},
    {"/limits", GET, api_limits, API_STATE,
     .summary = "what this server allows, what this token may do, which endpoints there are", .is_open = true},
    {"/", GET, api_front, API_PAGE, .summary = "the web page", .media_type = "text/html", .is_open = true,
     .needs_server = true},
    {"/docs", GET, api_front, API_PAGE, .summary = "the web page, opened at this description",
     .media_type = "text/html", .is_open = true, .needs_server = true},
    {"/ui/{build}/{file}", GET, api_page_file, API_PAGE, .summary = "a file of the web page", .media_type = "*/*",
     .name = "index.html", .is_open = true, .needs_server = true},
    {"/clients/{file}", GET, api_client_file, API_STATE,
     .summary = "the client library posenc.py (Python, NumPy) or posenc.js (a module for pages and node)",
     .media_type = "*/*", .name = "posenc.py", .is_open = true, .needs_server = true},
    {"/mcp", POST, NULL, API_MESSAGES, .steps = &api_mcp, .is_slow = true,
     .summary = "Model Context Protocol: these endpoints as tools of a language model, with resources and prompts",
     .example = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"},
    {"/v2", GET, api_oip_server, API_PROTOCOL, .summary = "Open Inference Protocol v2: name, version, extensions"},
    {"/v2/health/live", GET, api_oip_live, API_PROTOCOL, .summary = "is the loop turning?", .is_open = true},
    {"/v2/health/ready", GET, api_oip_ready, API_PROTOCOL, .summary = "does it take work?", .is_open = true},
    {"/v2/models", GET, api_oip_models, API_PROTOCOL, .summary = "names of the models"},
    {"/v2/models/stats", GET, api_oip_models_stats, API_PROTOCOL, .summary = "statistics of every model"},
    {"/v2/repository/index", POST, api_oip_index, API_PROTOCOL, .summary = "every model with its state"},
    {"/v2/repository/models/{name}/load", POST, api_oip_load, API_PROTOCOL,
     .summary = "nothing to do: every model is always loaded", .name = "rope"},
    {"/v2/repository/models/{name}/unload", POST, api_oip_unload, API_PROTOCOL,
     .summary = "refused: models are part of the program", .name = "rope"},
    MODEL("", GET, api_oip_model, "a model's inputs and outputs"),
    MODEL("/ready", GET, api_oip_model_ready, "does the model take work?"),
    MODEL("/config", GET, api_oip_config, "a model's configuration as Triton writes it"),
    MODEL("/stats", GET, api_oip_stats, "statistics of a model"),
    MODEL("/infer", POST, NULL, "a model's outputs of the inputs sent", .example = EXAMPLE_INFER,
          .steps = &api_oip_infer),
};

enum { N_ROUTES = PE_N_OPERATIONS + sizeof routes / sizeof routes[0] };

/* NULL: there are no more. */
const struct api_route *api_route_at(size_t i)
{
    if (i < PE_N_OPERATIONS)
        return &api_operations[i].route;
    return i < N_ROUTES ? &routes[i - PE_N_OPERATIONS] : NULL;
}

const char *api_mcp_tool_name(size_t i)
{
    const struct api_request request = {.route_at = api_route_at};
    struct api_mcp_tool tool;
    return api_mcp_tool_at(&request, i, &tool) ? tool.name : NULL;
}

/* ---- Finding ---- */

#define STEP(field, ends)                                                                                              \
    {                                                                                                                  \
        "{" #field "}", offsetof(struct api_path, field), sizeof((struct api_path *)0)->field, ends                    \
    }

static const struct step {
    const char *word;
    size_t offset, room;
    const char *ends; /* characters before which it ends */
} all_steps[] = {STEP(name, "/"), STEP(preset, ""), STEP(version, "/"), STEP(build, "/"),
                 STEP(file, ""),  STEP(query, "/"), STEP(key, "")};

static const char *take_step(const char *pattern, const char **path, struct api_path *parts)
{
    const struct step *step = all_steps;
    while (strncmp(pattern, step->word, strlen(step->word)) != 0)
        step++;
    size_t n = strcspn(*path, step->ends);
    snprintf((char *)parts + step->offset, step->room, "%.*s", (int)(n < step->room ? n : step->room), *path);
    *path += n;
    return pattern + strlen(step->word);
}

bool api_route_matches(const char *pattern, const char *path, struct api_path *parts)
{
    *parts = (struct api_path){.name = ""};
    while (*pattern && *path) {
        if (*pattern == '{' && *path != '/')
            pattern = take_step(pattern, &path, parts);
        else if (*pattern++ != *path++)
            return false;
    }
    return !*pattern && !*path;
}

const struct api_route *api_route_find(const char *path, struct api_path *parts)
{
    for (size_t i = 0; i < N_ROUTES; i++)
        if (api_route_matches(api_route_at(i)->pattern, path, parts))
            return api_route_at(i);
    return NULL;
}

static bool allows(const struct api_route *route, const char *method)
{
    for (const struct api_method_row *row = api_methods; row->name; row++)
        if (strcmp(row->name, method) == 0)
            return row->method & route->methods;
    return false;
}

/* ---- Refusals ---- */

static bool fail_path(const char *path, struct api_problem *problem)
{
    const char *patterns[N_ROUTES + 1];
    char list[384] = "";
    size_t used = 0, n_patterns = 0;
    for (size_t i = 0; i < N_ROUTES; i++) {
        const char *pattern = api_route_at(i)->pattern;
        if (pattern[1]) /* "/" is near every short path */
            patterns[n_patterns++] = pattern;
        if (used < sizeof list &&
            strncmp(pattern, "/v2/", 4) != 0) /* the Open Inference Protocol defines the paths under /v2 */
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", pattern);
    }
    patterns[n_patterns] = NULL;
    const char *nearest = pe_nearest(path, patterns);
    if (nearest)
        return api_fail(problem, 404, "", "nothing is at %.128s; nearest: %s", path, nearest);
    return api_fail(problem, 404, "", "nothing is at %.128s; there are: %s", path, list);
}

void api_print_allowed(const struct api_route *route, char *allowed)
{
    *allowed = '\0';
    for (const struct api_method_row *row = api_methods; row->name; row++)
        if (row->method & route->methods)
            strcat(strcat(allowed, *allowed ? ", " : ""), row->name);
    if (route->kind == API_MESSAGES) /* whose clients try GET and DELETE, and read this */
        strcat(allowed, ", OPTIONS");
}

/* In process there are the steps of a request, and nothing of what a server has around them. */
static bool check_process(const struct api_host *host, const struct api_call *call, const struct api_route *route,
                          struct api_problem *problem)
{
    if (!host->is_in_process || !(route->needs_server || api_changes(call)))
        return true;
    return api_fail(problem, 404, "",
                    "%.16s %s needs a server (posencd): in process a request stores nothing and reads no clock",
                    call->method, route->pattern);
}

static bool check_coding(const char *coding, struct api_problem *problem)
{
    if (!coding || !*coding || strcasecmp(coding, "identity") == 0)
        return true;
    api_fail(problem, 415, "", "the content coding \"%.32s\" is not read; send the body as it is", coding);
    api_problem_header(problem, "Accept-Encoding", "identity");
    return false;
}

static bool check_length(const struct api_host *host, uint64_t n, struct api_problem *problem)
{
    if (n == API_LENGTH_UNKNOWN || n <= host->max_body)
        return true;
    return api_fail(problem, 413, "",
                    "the body has %" PRIu64 " bytes; allowed: at most %" PRIu64
                    " (the limit --max-body of this server)",
                    n, host->max_body);
}

/* JSON with a declared length can be refused before it is received; other JSON is checked while it is read. */
static bool check_json(const struct api_host *host, const struct api_call *call, const struct api_route *route,
                       uint64_t n, struct api_problem *problem)
{
    bool is_json = (api_route_computes(route) || route->kind == API_MESSAGES) && n != API_LENGTH_UNKNOWN &&
                   api_input_is_json(call->content_type);
    return !is_json || api_json_check_size(host->max_json, n, "", problem);
}

bool api_is_options(const struct api_call *call) { return strcmp(call->method, "OPTIONS") == 0; }

bool api_changes(const struct api_call *call)
{
    return strcmp(call->method, "PUT") == 0 || strcmp(call->method, "DELETE") == 0;
}

/* RFC 6750. A client learns which paths exist only after it has authenticated; a browser's preflight request cannot
 * carry a token. */
static bool check_access(const struct api_call *call, const struct api_route *route, struct api_problem *problem)
{
    if (call->access == API_ACCESS_OPEN || api_is_options(call) || (route && route->is_open))
        return true;
    if (call->access == API_ACCESS_WRITE || (call->access == API_ACCESS_READ && !api_changes(call)))
        return true;
    if (call->access == API_ACCESS_READ) {
        api_fail(problem, 403, "", "this token may read, %s needs one that may write (--token-file)", call->method);
        api_problem_header(problem, "WWW-Authenticate",
                           "Bearer realm=\"posenc\", error=\"insufficient_scope\", scope=\"write\"");
        return false;
    }
    bool is_wrong = call->access == API_ACCESS_WRONG;
    api_fail(problem, 401, "", "%s; send Authorization: Bearer TOKEN with one of this server's --token-file",
             pe_text(is_wrong ? "the token is not known here" : "the request has no token"));
    api_problem_header(problem, "WWW-Authenticate",
                       is_wrong ? "Bearer realm=\"posenc\", error=\"invalid_token\"" : "Bearer realm=\"posenc\"");
    return false;
}

/* A page that reaches this port by another name (DNS rebinding) has the Origin that it names. */
static bool is_from_elsewhere(const struct api_call *call)
{
    return call->is_foreign || (call->origin && *call->origin && call->is_elsewhere);
}

/* A browser sends what any page names, and sends it from the user's machine and network. */
static bool check_page(const struct api_host *host, const struct api_call *call, const struct api_route *route,
                       struct api_problem *problem)
{
    bool begins = route->kind == API_LIVE && !api_is_options(call), is_unasked = begins && call->is_unasked;
    bool is_message = route->kind == API_MESSAGES && !api_is_options(call);
    bool is_foreign = ((api_changes(call) || begins) && call->is_foreign) || (is_message && is_from_elsewhere(call));
    if ((!is_foreign && !is_unasked) || api_cors_allows(host, call))
        return true;
    if (!is_unasked)
        return api_fail(problem, 403, "",
                        "%s was sent by a page of another origin, \"%.100s\"; allowed: this server's own pages, and "
                        "those of the origins that --cors-origin names",
                        call->method, call->origin);
    return api_fail(problem, 403, "",
                    "a browser sends this for a page of another site, or in advance (Sec-Fetch-Site, Sec-Purpose), and "
                    "%s computes for minutes; allowed: this server's own pages, clients that are no browser, and pages "
                    "of the origins that --cors-origin names",
                    route->pattern);
}

/* The refusals that the head alone decides, in the order that helps a client most. */
bool api_check_head(const struct api_host *host, const struct api_call *call, const struct api_route *route, uint64_t n,
                    struct api_problem *problem)
{
    if (route && route->kind == API_MESSAGES && !check_page(host, call, route, problem))
        return false; /* before anything else: the protocol demands it */
    if (!check_access(call, route, problem))
        return false;
    if (!route)
        return fail_path(call->path, problem);
    if (!allows(route, call->method) && !api_is_options(call)) {
        char allowed[API_ALLOWED_BYTES];
        api_print_allowed(route, allowed);
        api_fail(problem, 405, "", "%s does not take %.16s; allowed: %s", route->pattern, call->method, allowed);
        api_problem_header(problem, "Allow", allowed);
        return false;
    }
    return check_process(host, call, route, problem) && check_page(host, call, route, problem) &&
           check_coding(call->content_encoding, problem) && check_length(host, n, problem) &&
           check_json(host, call, route, n, problem);
}
