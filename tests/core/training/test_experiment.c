/* Experiments: their events, runs that do not depend on each other, allocations that fail, memory. */
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"
#include "tests/support/plans.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A request of this test: fields of the experiment, then configurations, as JSON objects. */
struct asked {
    struct test_request fields, configs[PE_EXPERIMENT_CONFIGS_MAX];
    struct pe_entry entries[PE_EXPERIMENT_CONFIGS_MAX];
    char pointers[PE_EXPERIMENT_CONFIGS_MAX][16];
    struct pe_experiment_request request;
};

static void parse(struct asked *a, const char *fields, const char *const *configs, size_t n)
{
    test_request_parse(&a->fields, fields);
    for (size_t i = 0; i < n; i++) {
        test_request_parse(&a->configs[i], configs[i]);
        snprintf(a->pointers[i], sizeof a->pointers[i], "/configs/%zu", i);
        a->entries[i] = (struct pe_entry){.fields = a->configs[i].fields,
                                          .n_fields = a->configs[i].n,
                                          .n_own = a->configs[i].n,
                                          .pointer = a->pointers[i]};
    }
    a->request = (struct pe_experiment_request){
        .fields = a->fields.fields, .n_fields = a->fields.n, .entries = a->entries, .n_entries = n};
}

static void drop(struct asked *a)
{
    test_request_drop(&a->fields);
    for (size_t i = 0; i < a->request.n_entries; i++)
        test_request_drop(&a->configs[i]);
}

static struct asked asked; /* large */

#define CONFIGS(...) (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static struct pe_experiment *open_experiment(const char *fields, const char *const *configs, size_t n)
{
    struct pe_experiment *experiment = NULL;
    struct pe_failure err;
    parse(&asked, fields, configs, n);
    if (pe_experiment_new(&asked.request, &experiment, &err))
        fail_msg("%s %s", err.pointer, err.detail);
    return experiment;
}

static void close_experiment(struct pe_experiment *experiment)
{
    pe_experiment_free(experiment);
    drop(&asked);
}

/* ---- Events ---- */

struct told {
    size_t n;
    struct pe_experiment_progress progress[64];
};

static void run(struct pe_experiment *experiment, struct told *told)
{
    enum pe_experiment_event event = PE_EXPERIMENT_WORKED;
    struct pe_failure err;
    told->n = 0;
    while (event != PE_EXPERIMENT_DONE) {
        assert_int_equal(pe_experiment_advance(experiment, &event, &told->progress[told->n], &err), PE_OK);
        told->n += event == PE_EXPERIMENT_PROGRESS;
    }
}

static const char small[] = "{'task':'local','steps':40,'train_len':16,'eval_len':20,'seed':2}";

TEST(test_events)
{
    const uint64_t steps[] = {1, 10, 20, 40};
    struct pe_experiment *experiment = open_experiment(small, CONFIGS("{'scheme':'rope'}", "{'scheme':'t5'}"));
    struct told told;
    run(experiment, &told);
    assert_int_equal(told.n, 8);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(told.progress[i].run, i / 4);
        assert_int_equal(told.progress[i].step, steps[i % 4]);
        assert_true(told.progress[i].loss > 0.5 && told.progress[i].loss < 2.6);
    }
    assert_true(told.progress[3].loss < told.progress[0].loss);
    assert_int_equal(pe_experiment_steps(experiment), 80);
    close_experiment(experiment);
}

static double member(const struct pe_value *object, const char *name)
{
    for (size_t i = 0; i < object->object.n; i++)
        if (strcmp(object->object.fields[i].name, name) == 0)
            return object->object.fields[i].value.real;
    fail();
    return 0;
}

/* Each configuration, then its evaluations; the means are those of the curves. */
TEST(test_results)
{
    enum { T = 16, E = 20 };
    struct pe_experiment *experiment = open_experiment(
        small, CONFIGS("{'scheme':'rope','eval':[{'scaling':{'type':'linear','factor':2}},{'base':500}]}",
                       "{'scheme':'learned'}"));
    struct told told;
    run(experiment, &told);
    const struct pe_value *results = pe_experiment_results(experiment);
    assert_int_equal(results->list.n, 4);
    assert_int_equal(pe_experiment_n_tensors(experiment), 4);
    for (size_t i = 0; i < 4; i++) {
        const struct pe_value *result = &results->list.items[i];
        const struct pe_named_tensor *excess = pe_experiment_tensor(experiment, i);
        const double *x = excess->tensor.data;
        double inside = 0, outside = 0;
        assert_int_equal(result->object.fields[0].value.integer, i == 3);
        assert_int_equal(result->object.fields[1].value.kind, i % 3 ? PE_INTEGER : PE_NULL);
        assert_int_equal(excess->tensor.shape[0], E);
        for (size_t p = 0; p < T / 2; p++) {
            inside += x[T / 2 + p] / (T / 2);
            outside += x[E - T / 2 + p] / (T / 2);
        }
        assert_true(fabs(member(result, "inside") - inside) < 1e-12);
        assert_true(fabs(member(result, "outside") - outside) < 1e-12);
        assert_true(fabs(member(result, "rise") - (outside - inside)) < 1e-12);
        assert_true(member(result, "floor") == member(&results->list.items[0], "floor"));
    }
    const double *plain = pe_experiment_tensor(experiment, 0)->tensor.data;
    const double *stretched = pe_experiment_tensor(experiment, 1)->tensor.data;
    assert_true(plain[0] == stretched[0] && plain[5] != stretched[5]); /* position 0 is not turned */
    close_experiment(experiment);
}

/* A run begins as if it were alone. */
TEST(test_runs_do_not_depend_on_each_other)
{
    double alone[20];
    struct told told;
    struct pe_experiment *experiment = open_experiment(small, CONFIGS("{'scheme':'kerple'}"));
    run(experiment, &told);
    memcpy(alone, pe_experiment_tensor(experiment, 0)->tensor.data, sizeof alone);
    close_experiment(experiment);
    experiment = open_experiment(small, CONFIGS("{'scheme':'learned'}", "{'scheme':'kerple'}"));
    run(experiment, &told);
    assert_memory_equal(alone, pe_experiment_tensor(experiment, 1)->tensor.data, sizeof alone);
    close_experiment(experiment);
}

/* ---- Resources ---- */

static enum pe_status begin(void *experiment)
{
    struct pe_failure err;
    return pe_experiment_new(&asked.request, experiment, &err);
}

TEST(test_each_allocation_may_fail)
{
    struct pe_experiment *experiment = NULL;
    parse(&asked, small, CONFIGS("{'scheme':'rope','eval':[{'base':500}]}", "{'scheme':'t5'}"));
    test_each_allocation_fails(begin, &experiment);
    close_experiment(experiment);
}

static double admitted;

static enum pe_status admit(void *caller, double bytes, struct pe_failure *err)
{
    (void)caller, (void)err;
    admitted = bytes;
    return PE_OK;
}

/* The largest experiment stays below 64 MiB, and below what it has reserved. */
TEST(test_memory)
{
    const char *rope = "{'scheme':'rope','eval':[{'base':3},{'base':2},{'base':3},{'base':4}]}";
    struct pe_experiment *experiment = NULL;
    struct pe_failure err;
    enum pe_experiment_event event;
    struct pe_experiment_progress progress;
    parse(&asked, "{'steps':1,'train_len':512,'eval_len':1024}", CONFIGS(rope, rope, rope, rope, rope, rope));
    asked.request.admit = admit;
    alloc_watch();
    assert_int_equal(pe_experiment_new(&asked.request, &experiment, &err), PE_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pe_experiment_advance(experiment, &event, &progress, &err), PE_OK);
    assert_true(alloc_peak() < 64L << 20);
    assert_true((double)alloc_peak() <= admitted);
    close_experiment(experiment);
}
