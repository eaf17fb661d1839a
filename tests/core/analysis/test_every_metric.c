/* Analyses: every metric of the registry, of every scheme's example that it applies to, survives each failed
 * allocation and ends at once when its client has left. So do requests that take other ways,
 * rows of tests/cases/plans.jsonl. Values:
 * tests/http/analyze, tests/cases/analysis_by_hand.jsonl. */
#include "core/params.h"
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Requests ---- */

enum { OUTPUTS_MAX = 8 };

struct asked {
    struct test_request parsed;
    struct pe_field fields[TEST_FIELDS_MAX], own[PE_ENTRIES_MAX][TEST_FIELDS_MAX];
    struct pe_entry entries[PE_ENTRIES_MAX];
    const char *outputs[OUTPUTS_MAX];
    struct pe_analysis_request request;
};

static bool is_of_entries(const char *name)
{
    return !pe_is_among("configs|outputs", name) && !pe_param_find(pe_analysis_params(), name);
}

/* Fields of its own, then those that all entries have in common. */
static void add_entry(struct asked *a, const struct pe_field *own, size_t n_own)
{
    static const char *const pointers[PE_ENTRIES_MAX] = {"/configs/0", "/configs/1", "/configs/2", "/configs/3"};
    size_t n = n_own, e = a->request.n_entries++;
    if (n_own)
        memcpy(a->own[e], own, n_own * sizeof *own);
    for (size_t i = 0; i < a->parsed.n; i++)
        if (is_of_entries(a->parsed.fields[i].name))
            a->own[e][n++] = a->parsed.fields[i];
    a->entries[e] = (struct pe_entry){a->own[e], n, n_own ? n_own : n, n_own ? pointers[e] : ""};
}

static void parse(struct asked *a, const char *json)
{
    memset(a, 0, sizeof *a);
    test_request_parse(&a->parsed, json);
    a->request = (struct pe_analysis_request){.fields = a->fields, .entries = a->entries, .max_work = 1e12};
    a->request.outputs = a->outputs;
    for (size_t i = 0; i < a->parsed.n; i++) {
        const struct pe_field *field = &a->parsed.fields[i];
        const struct pe_value *v = &field->value;
        for (size_t k = 0; strcmp(field->name, "configs") == 0 && k < v->list.n; k++)
            add_entry(a, v->list.items[k].object.fields, v->list.items[k].object.n);
        for (size_t k = 0; strcmp(field->name, "outputs") == 0 && k < v->list.n; k++)
            a->outputs[a->request.n_outputs++] = v->list.items[k].string;
        if (pe_param_find(pe_analysis_params(), field->name))
            a->fields[a->request.n_fields++] = *field;
    }
    if (a->request.n_entries == 0)
        add_entry(a, NULL, 0);
}

/* ---- Laws ---- */

static enum pe_status analyse(void *request)
{
    struct pe_analysis *analysis = NULL;
    struct pe_failure err;
    enum pe_status status = pe_analysis_new(request, &analysis, &err);
    if (!status)
        pe_analysis_free(analysis);
    return status;
}

struct client {
    long n_asked, leaves_at;
};

static bool is_gone(void *self)
{
    struct client *client = self;
    return ++client->n_asked >= client->leaves_at;
}

/* Left at one of the checks, whichever: no check follows. */
static void assert_ends_at_once(struct asked *a)
{
    struct client client = {0, 1};
    enum pe_status status = PE_CANCELLED;
    for (; status == PE_CANCELLED; client.leaves_at += 1 + client.leaves_at / 2) {
        client.n_asked = 0;
        pe_watch(is_gone, &client);
        status = analyse(&a->request);
        pe_watch(NULL, NULL);
        assert_true(status ? client.n_asked == client.leaves_at : client.n_asked < client.leaves_at);
    }
    assert_int_equal(status, PE_OK);
}

/* Whether the metric applies to it. */
static bool holds(const char *json)
{
    static struct asked a;
    parse(&a, json);
    enum pe_status status = analyse(&a.request);
    if (!status) {
        test_each_allocation_fails(analyse, &a.request);
        assert_ends_at_once(&a);
    }
    test_request_drop(&a.parsed);
    return status == PE_OK;
}

TEST(every_metric_of_every_scheme)
{
    for (size_t m = 0; m < pe_n_metrics(); m++) {
        size_t n_schemes = 0;
        for (size_t s = 0; s < pe_n_schemes(); s++) {
            char json[1024];
            const char *metric = pe_metric_at(m)->name, *example = pe_scheme_at(s)->example;
            bool is_pair = strcmp(metric, "difference") == 0;
            snprintf(json, sizeof json, "{'metrics':['%s'],%s%s", metric,
                     is_pair ? "'configs':[{'offset':0},{'offset':1}]," : "", example + 1);
            n_schemes += pe_scheme_can(pe_scheme_at(s), PE_ENCODE) && holds(json);
        }
        if (n_schemes < 2)
            fail_msg("%s applies to the examples of %zu schemes", pe_metric_at(m)->name, n_schemes);
    }
}

static void hold(const char *row, const char *request)
{
    (void)row;
    if (!holds(request))
        fail_msg("%s is refused", request);
}

TEST(other_ways) { assert_true(test_rows("/analyze", hold) > 10); }
