/* Experiments: what is refused, their events, the same numbers each time, allocations that fail, memory. */
#include "tests/support/alloc.h"
#include "tests/support/cmocka.h"
#include "tests/support/request.h"

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

/* ---- Refusals ---- */

static void refused(const char *fields, const char *const *configs, size_t n, const char *pointer, const char *word)
{
    struct pe_experiment *experiment = NULL;
    struct pe_failure err = {0};
    parse(&asked, fields, configs, n);
    assert_int_equal(pe_experiment_new(&asked.request, &experiment, &err), PE_INVALID);
    assert_null(experiment);
    assert_string_equal(err.pointer, pointer);
    if (!strstr(err.detail, word))
        fail_msg("\"%s\" does not say \"%s\"", err.detail, word);
    drop(&asked);
}

TEST(test_refusals)
{
    const char *alibi = "{'scheme':'alibi'}";
    refused("{}", CONFIGS("{'scheme':'shaw'}"), "/configs/0/scheme", "kerple");
    refused("{'train_len':33}", CONFIGS(alibi), "/train_len", "even");
    refused("{'train_len':514,'eval_len':600}", CONFIGS(alibi), "/train_len", "512");
    refused("{'eval_len':126}", CONFIGS(alibi), "/eval_len", "128");
    refused("{'steps':2001}", CONFIGS(alibi), "/steps", "2000");
    refused("{'task':'local '}", CONFIGS(alibi), "/task", "local");
    refused("{}", CONFIGS(alibi, "{'scheme':'rope','base':-1}"), "/configs/1/base", "base");
    refused("{}", CONFIGS("{'scheme':'rope','len':4}"), "/configs/0/len", "train_len");
    refused("{}", CONFIGS("{'scheme':'rope','head_dim':64}"), "/configs/0/head_dim", "8");
    refused("{}", CONFIGS("{'scheme':'t5','bidirectional':true}"), "/configs/0/bidirectional", "false");
    refused("{}", CONFIGS("{'scheme':'t5','seed':1}"), "/configs/0/seed", "seed");
    refused("{}", CONFIGS("{'scheme':'learned','rows':64}"), "/configs/0/rows", "learned");
    refused("{}", CONFIGS("{'scheme':'rope','eval':3}"), "/configs/0/eval", "objects");
    refused("{}", CONFIGS("{'scheme':'rope','eval':[{'base':0}]}"), "/configs/0/eval/0/base", "base");
    refused("{}", CONFIGS("{'scheme':'rope','eval':[{'base':2},{'scheme':'alibi'}]}"), "/configs/0/eval/1/scheme",
            "rope");
    refused("{}", CONFIGS("{'scheme':'alibi','eval':[{'scheme':'kerple'}]}"), "/configs/0/eval/0/scheme", "alibi");
    refused("{}", CONFIGS("{'scheme':'none','eval':[{'scheme':'alibi'}]}"), "/configs/0/eval/0/scheme", "none");
    refused("{}", CONFIGS("{'scheme':'none','eval':[{'zoom':1,'bass':2}]}"), "/configs/0/eval/0/zoom", "zoom");
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

TEST(test_same_numbers_each_time)
{
    double first[20];
    for (int again = 0; again < 2; again++) {
        struct pe_experiment *experiment = open_experiment(small, CONFIGS("{'scheme':'sinusoidal'}"));
        struct told told;
        run(experiment, &told);
        const double *x = pe_experiment_tensor(experiment, 0)->tensor.data;
        if (again)
            assert_memory_equal(x, first, sizeof first);
        memcpy(first, x, sizeof first);
        close_experiment(experiment);
    }
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

TEST(test_each_allocation_may_fail)
{
    struct pe_experiment *experiment = NULL;
    struct pe_failure err;
    enum pe_status status = PE_NO_MEMORY;
    parse(&asked, small, CONFIGS("{'scheme':'rope','eval':[{'base':500}]}", "{'scheme':'t5'}"));
    for (long n = 0; status; n++) {
        alloc_fail_at(n);
        status = pe_experiment_new(&asked.request, &experiment, &err);
        alloc_fail_at(-1);
        assert_true(status == PE_OK || status == PE_NO_MEMORY);
        assert_true(n < 2000);
    }
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
