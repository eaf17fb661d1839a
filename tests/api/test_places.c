/* Each of 16 values at each place of each example of each endpoint that reads JSON: the answer is below 500 and
 * well-formed, or a refusal in words. Run under the sanitizers it finds what is read before its kind is known.
 *
 * One in PLACES (75) is drawn, by SEED (1); PLACES=1 sends all. */
#include "api/routes.h"
#include "tests/api/ask.h"
#include "tests/support/random.h"

#include <jansson.h>
#include <stdio.h>

#define LONG8(c) c c c c c c c c
#define LONG LONG8(LONG8(LONG8("abcdefgh")))

static const char *const values[] = {
    "null",
    "true",
    "false",
    "1",
    "-3",
    "0.5",
    "1e308",
    "36893488147419103232", /* 2^65 */
    "\"\"",
    "\"" LONG "\"",
    "[]",
    "[1,2]",
    "[[\"a\",[1]],[]]",
    "[\"rope\",1,null,{\"a\":1}]",
    "{}",
    "{\"shape\":[2,2],\"seed\":1,\"a\":{\"b\":[\"\"]}}",
};
enum { N_VALUES = sizeof values / sizeof *values };

/* ---- The service ---- */

static uint64_t n_readings;
static uint64_t now_ms(void) { return n_readings++; }
static bool begin(uint64_t turn) { return turn == 0; }
static void end(bool is_done, uint64_t n_steps) { (void)is_done, (void)n_steps; }

static struct api_reply *reply_to(const char *path, const char *body, size_t n)
{
    static struct api_host own;
    own = host;
    own.has_mcp = true;
    own.max_work = 1 << 20;
    own.max_analysis = UINT64_C(1) << 36;
    own.max_answer = 1 << 20;
    own.experiments = 1;
    own.experiment_ms = 50; /* readings of the clock above */
    own.now_ms = now_ms;
    own.experiment_begin = begin;
    own.experiment_end = end;
    struct api_call call = {.method = "POST", .path = path, .content_type = "application/json", .host = "localhost"};
    call.body = body;
    call.body_bytes = n;
    return api_answer(&own, &call);
}

static struct {
    size_t n_examples, n_places, n_sent, n_answered;
} counts;

static bool is_json(const char *bytes, size_t n)
{
    json_t *read = json_loadb(bytes, n, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    json_decref(read);
    return read;
}

static void send_one(const char *path, const char *body)
{
    struct answer a = gather(reply_to(path, body, strlen(body)));
    bool is_problem = a.status >= 400, is_fine = a.status < 500;
    if (is_problem || strcmp(a.reply->content_type, "application/json") == 0)
        is_fine = is_fine && (is_json(a.body, a.n) || (a.n == 0 && a.status == 202));
    if (is_problem)
        is_fine = is_fine && (strstr(a.body, "\"detail\"") || strstr(a.body, "\"error\""));
    if (!is_fine)
        fail_msg("POST %s %s: %d %.300s", path, body, a.status, a.body);
    answer_drop(&a);
    counts.n_sent++;
    counts.n_answered += !is_problem;
}

/* ---- The places of an example ---- */

/* The text of a place, which no example has. */
#define HERE "here it is"

struct sending {
    const char *path;
    json_t *root; /* in a list of one, so that the root has a place too */
    json_t *seen; /* places of examples of its kind, which are sent once; NULL: all are new */
    char at[256];
};

static uint64_t number_of(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    uint64_t n = text ? strtoull(text, NULL, 10) : 0;
    return n ? n : otherwise;
}

static bool is_drawn(void)
{
    static uint64_t share;
    if (!share) {
        random_seed(number_of("SEED", 1));
        share = number_of("PLACES", 75);
    }
    return random_bits() % share == 0;
}

static void send_at_place(struct sending *s)
{
    static const char here[] = "\"" HERE "\"";
    char *text = NULL;
    for (size_t i = 0; i < N_VALUES; i++) {
        if (!is_drawn())
            continue;
        if (!text)
            text = json_dumps(json_array_get(s->root, 0), JSON_COMPACT | JSON_ENCODE_ANY);
        char *place = strstr(text, here);
        assert_non_null(place);
        size_t n = strlen(text) + strlen(values[i]) + 1;
        char *body = malloc(n);
        assert_non_null(body);
        snprintf(body, n, "%.*s%s%s", (int)(place - text), text, values[i], place + sizeof here - 1);
        send_one(s->path, body);
        free(body);
    }
    free(text);
}

static void visit(struct sending *s, json_t *v);

static bool is_new(struct sending *s)
{
    bool is_known = s->seen && json_object_get(s->seen, s->at);
    if (s->seen)
        json_object_set_new(s->seen, s->at, json_true());
    return !is_known;
}

static void visit_member(struct sending *s, json_t *in, const char *name, size_t i)
{
    size_t n = strlen(s->at);
    json_t *v = json_incref(name ? json_object_get(in, name) : json_array_get(in, i));
    snprintf(s->at + n, sizeof s->at - n, "/%s%zu", name ? name : "", name ? 0 : i);
    visit(s, v);
    if (is_new(s)) {
        counts.n_places++;
        name ? json_object_set_new(in, name, json_string(HERE)) : json_array_set_new(in, i, json_string(HERE));
        send_at_place(s);
        name ? json_object_set(in, name, v) : json_array_set(in, i, v);
    }
    s->at[n] = '\0';
    json_decref(v);
}

/* Of a list the first and the last: one loop reads those between. */
static void visit(struct sending *s, json_t *v)
{
    size_t n = json_array_size(v);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || i + 1 == n)
            visit_member(s, v, NULL, i);
    const char *name;
    json_t *member;
    json_object_foreach(v, name, member) visit_member(s, v, name, 0);
}

/* Takes the request. */
static void send_example(const char *path, json_t *request, json_t *seen)
{
    struct sending s = {.path = path, .seen = seen, .root = json_array()};
    assert_non_null(request);
    json_array_append_new(s.root, request);
    visit(&s, s.root);
    json_decref(s.root);
    counts.n_examples++;
}

static void say(const char *what)
{
    assert_true(counts.n_examples > 0);
    printf("%s: %zu examples, %zu places, %zu requests, %zu of them answered\n", what, counts.n_examples,
           counts.n_places, counts.n_sent, counts.n_answered);
    memset(&counts, 0, sizeof counts);
}

/* ---- The examples ---- */

static json_t *json_of(const char *text)
{
    json_error_t error;
    json_t *read = json_loads(text, 0, &error);
    if (!read)
        fail_msg("%s: %.200s", error.text, text);
    return read;
}

static void as_tool(const struct api_route *route)
{
    json_t *call = json_pack("{s:s, s:i, s:s, s:{s:s, s:o}}", "jsonrpc", "2.0", "id", 1, "method", "tools/call",
                             "params", "name", route->tool, "arguments", json_of(route->example));
    send_example("/mcp", call, NULL);
}

TEST(those_of_the_routes)
{
    for (size_t i = 0; api_route_at(i); i++) {
        const struct api_route *route = api_route_at(i);
        const char *brace = strchr(route->pattern, '{'), *rest = brace ? strchr(brace, '}') + 1 : "";
        char path[128];
        snprintf(path, sizeof path, "%.*s%s%s", (int)strcspn(route->pattern, "{"), route->pattern,
                 brace ? route->name : "", rest);
        if (!route->example || strchr(rest, '{'))
            continue;
        send_example(path, json_of(route->example), NULL);
        if (route->tool)
            as_tool(route);
    }
    say("routes");
}

/* What an example computes is made-up evidence for a diagnosis; seen are the places of this scheme. */
static void send_evidence(const struct answer *a, json_t *seen)
{
    json_t *answer = json_of(a->body), *config = json_object_get(answer, "config"), *tensor;
    const char *name;
    json_object_foreach(json_object_get(answer, "tensors"), name, tensor)
        json_object_set(config, name, json_object_get(tensor, "data"));
    send_example("/diagnose", json_deep_copy(config), json_object_get(seen, "diagnose"));
    send_example("/check", json_deep_copy(config), json_object_get(seen, "check"));
    json_decref(answer);
}

/* With the outputs that are computed by default, or with another one. */
static void send_computed(const char *example, const char *output, json_t *seen)
{
    json_t *request = json_of(example);
    if (output)
        json_object_set_new(request, "outputs", json_pack("[s]", output));
    char *text = json_dumps(request, JSON_COMPACT);
    struct answer a = gather(reply_to("/encode", text, strlen(text)));
    if (a.status == 200)
        send_evidence(&a, seen);
    answer_drop(&a);
    free(text);
    json_decref(request);
}

static json_t *with_operands(const char *example, enum pe_operation_id id)
{
    json_t *request = json_of(example);
    if (id == PE_ENCODE || json_object_get(request, "q"))
        return request;
    if (id == PE_ROTATE)
        json_object_set_new(request, "q", json_of("{\"shape\":[8,16],\"seed\":1}"));
    else
        json_object_update_new(request, json_of("{\"len\":null,\"tokens\":[\"a\",\"b\",\"a\"]}"));
    return request;
}

/* A belief has no sequence. */
static json_t *believed(const char *example)
{
    json_t *request = json_of(example);
    json_object_del(request, "len");
    return request;
}

TEST(those_of_the_schemes)
{
    for (size_t i = 0; i < pe_n_schemes(); i++) {
        const struct pe_scheme_info *scheme = pe_scheme_at(i);
        for (enum pe_operation_id id = 0; id < PE_N_OPERATIONS; id++)
            if (pe_scheme_can(scheme, id))
                send_example(api_operations[id].route.pattern, with_operands(scheme->example, id), NULL);
        send_example("/golden", believed(scheme->example), NULL);
        send_example("/diagnose/probe", believed(scheme->example), NULL);
        json_t *seen = json_pack("{s:{}, s:{}}", "diagnose", "check");
        send_computed(scheme->example, NULL, seen);
        for (const struct pe_output_row *row = scheme->outputs; row && row->name; row++)
            if (row->on_request)
                send_computed(scheme->example, row->name, seen);
        json_decref(seen);
    }
    say("schemes");
}

/* ---- Of the guide ---- */

static char *file_read(const char *name)
{
    FILE *file = fopen(name, "rb");
    if (!file)
        fail_msg("%s: not here", name);
    fseek(file, 0, SEEK_END);
    size_t n = (size_t)ftell(file);
    char *text = malloc(n + 1);
    rewind(file);
    assert_int_equal(fread(text, 1, n, file), n);
    fclose(file);
    text[n] = '\0';
    return text;
}

/* As a shell reads it: a command goes on after a backslash, and until its quote is closed. */
static char *command_end(char *p)
{
    bool is_quoted = false;
    for (; *p && (*p != '\n' || is_quoted || p[-1] == '\\'); p++)
        is_quoted ^= *p == '\'';
    return p;
}

static const char *shape_of(const char *name)
{
    return strncmp(name, "w_", 2) == 0        ? "[128,4]"
           : strcmp(name, "scores") == 0      ? "[1,2,8,8]"
           : strstr("cos sin encoding", name) ? "[8,64]"
                                              : "[1,2,8,64]";
}

/* A request of a command; a file that it sends is numbers that are drawn. */
static json_t *request_of(char *command)
{
    char *text = strstr(command, " -d '"), *part = strstr(command, " -F request='");
    text = text ? text + 5 : part ? part + 13 : NULL;
    char *quote = text ? strchr(text, '\'') : NULL;
    if (!quote || *text != '{')
        return NULL;
    *quote = '\0';
    json_t *request = json_of(text);
    for (char *file = quote + 1; (file = strstr(file, " -F ")); file++) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(file + 4, "="), file + 4);
        json_object_set_new(request, name, json_pack("{s:o, s:i}", "shape", json_of(shape_of(name)), "seed", 1));
    }
    return request;
}

TEST(those_of_the_guide)
{
    char *guide = file_read("api/USING.md");
    for (char *command = guide, *after; (command = strstr(command, "\ncurl ")); command = after) {
        char *at = command + 1, path[128] = "";
        after = command_end(at);
        bool is_last = !*after;
        *after = '\0';
        char *url = strstr(at, "localhost:8080");
        snprintf(path, sizeof path, "%.*s", url ? (int)strcspn(url + 14, "?' \n") : 0, url ? url + 14 : "");
        json_t *request = strstr(at, " -X PUT ") ? NULL : request_of(at);
        if (request)
            send_example(path, request, NULL);
        *after = is_last ? '\0' : '\n';
    }
    free(guide);
    say("guide");
}

/* ---- Of other tools ---- */

/* Configurations, each type's places once. */
static void send_configs(const char *name)
{
    char *text = file_read(name), *rest = text, *line;
    json_t *types = json_object();
    while ((line = strsep(&rest, "\n")) && *line) {
        json_t *row = json_of(line), *config = json_object_get(row, "config"),
               *kind = json_object_get(row, "layer_type");
        const char *type = json_string_value(json_object_get(config, "model_type"));
        json_t *seen = json_object_get(types, type ? type : "");
        if (!seen)
            json_object_set_new(types, type ? type : "", seen = json_object());
        json_t *request = json_pack("{s:O, s:O*}", "hf_config", config, "layer_type", kind);
        send_example("/explain", request, seen);
        json_decref(row);
    }
    json_decref(types);
    free(text);
}

TEST(configurations)
{
    send_configs("tests/http/models/hf_truth/a_k.jsonl");
    send_configs("tests/http/models/hf_truth/l_z.jsonl");
    say("configurations");
}

/* What /translate says of a model, in the words of every target. */
static void send_said(const char *model)
{
    struct answer a = gather(reply_to("/translate", model, strlen(model)));
    json_t *answer = json_of(a.body), *entry;
    size_t i;
    json_array_foreach(json_object_get(answer, "targets"), i, entry)
    {
        json_t *value = json_object_get(entry, "value"), *text = json_object_get(entry, "text");
        if (!json_is_object(value))
            continue;
        for (int is_text = 0; is_text < 1 + (json_string_value(text) && *json_string_value(text) == '-'); is_text++) {
            json_t *said = json_pack("{s:O, s:O}", "to", json_object_get(entry, "to"), is_text ? "text" : "value",
                                     is_text ? text : value);
            json_t *request = json_deep_copy(json_object_get(entry, "needs"));
            json_object_set_new(request, "said", said);
            send_example("/explain", json_deep_copy(request), NULL);
            send_example("/translate", json_deep_copy(request), NULL);
            json_object_set_new(request, "len", json_integer(2));
            send_example("/encode", request, NULL);
        }
    }
    json_decref(answer);
    answer_drop(&a);
}

TEST(words_of_targets)
{
    send_said("{\"preset\":\"llama-3.1\"}");
    say("said");
}
