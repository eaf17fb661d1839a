/* An experiment: trains a decoder with each configuration in turn and evaluates it, a few milliseconds at each call.
 *
 * Press, Smith and Lewis 2022 (ALiBi, arXiv 2108.12409), figure 1, with a task whose best loss is known. So a curve
 * shows the excess over what any model can reach, and zero means solved; with text one would have to compare curves by
 * eye.
 *
 * One call of pe_experiment_advance does one step of training or evaluates a few sequences, and returns the event that
 * it completed. The caller owns the time: a server may stop between two calls, charge them to a client, or drop the
 * whole. All refusals and allocations come before the first step.
 *
 * Fair comparison: task, sequences, first weights and the order of batches depend on the seed alone, so two
 * configurations differ in their encoding and nothing else. Same binary and machine, same numbers; between instruction
 * sets last bits differ, and training amplifies them. */
#include "core/params.h"
#include "core/training/training.h"
#include "core/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEQUENCES = 8, /* of a batch */
    OVERRIDES_MAX = 4,
    EVALUATIONS_MAX = PE_EXPERIMENT_CONFIGS_MAX * (1 + OVERRIDES_MAX),
    STEPS_MAX = 2000,
    TRAIN_LEN_MIN = 16,
    TRAIN_LEN_MAX = 512,
    EVAL_LEN_MAX = 1024
};

struct experiment_fields {
    int64_t steps, train_len, eval_len, seed;
    int task;
};

static const char *const tasks[] = {"local", "lag", NULL}; /* by enum pe_task_kind */

static const struct pe_param rows[] = {
    PE_P_WORD(
        experiment_fields, task, tasks, "task",
        "local: a token follows from the two before it; lag: it repeats the one eight before; each in 80 % of the "
        "cases"),
    PE_P_INT(experiment_fields, steps, 600, 1, STEPS_MAX, "steps", "steps of training, each of 8 sequences",
             .usual = {100, STEPS_MAX}),
    PE_P_INT(experiment_fields, train_len, 128, TRAIN_LEN_MIN, TRAIN_LEN_MAX, "training length",
             "length of the sequences in training; even", .usual = {TRAIN_LEN_MIN, TRAIN_LEN_MAX}),
    PE_P_INT(experiment_fields, eval_len, 256, TRAIN_LEN_MIN, EVAL_LEN_MAX, "evaluation length",
             "length of the sequences in evaluation, at least train_len", .usual = {TRAIN_LEN_MIN, EVAL_LEN_MAX}),
    PE_P_INT(experiment_fields, seed, 0, 0, 0x1p53, "seed", "seed of the task, the sequences and the weights",
             .usual = {0, 99}),
    PE_P_END,
};

const struct pe_param *pe_experiment_params(void) { return rows; }

/* One configuration: its fields, and what training needs of it. */
struct run {
    struct pe_trained_config config;
    struct pe_field *fields; /* those of its entry without `eval` */
    struct pe_plan *plan;    /* NULL: a learned table */
    struct pe_places places; /* of train_len positions */
    size_t n_evaluations;
};

struct pe_experiment {
    struct experiment_fields fields;
    struct pe_task task;
    size_t n_runs, n_evaluations;
    struct run runs[PE_EXPERIMENT_CONFIGS_MAX];
    struct pe_evaluation evaluations[EVALUATIONS_MAX];
    char pointers[EVALUATIONS_MAX][PE_POINTER_MAX];
    /* Of the run that is trained or evaluated now: */
    size_t run, evaluation;
    uint64_t step, n_steps;
    struct pe_parameters parameters;
    struct pe_adamw adamw;
    /* Shared by all runs: */
    struct pe_decoder_f32 *decoder;
    struct pe_evaluator evaluator;
    uint8_t *tokens;
    float *losses, *gradients;
    struct pe_values *start, *results;
    const struct pe_value *started, *result_list;
    struct pe_named_tensor tensors[EVALUATIONS_MAX];
    char names[EVALUATIONS_MAX][32];
};

/* ---- Reading ---- */

static enum pe_status read_fields(struct pe_experiment *experiment, const struct pe_experiment_request *request,
                                  struct pe_failure *err)
{
    bool taken[sizeof rows / sizeof *rows] = {false};
    enum pe_status status =
        pe_params_read(rows, &experiment->fields, request->fields, request->n_fields, taken, "", err);
    if (status)
        return status;
    if (request->n_entries < 1 || request->n_entries > PE_EXPERIMENT_CONFIGS_MAX)
        return pe_fail(err, "/configs", "configs has %zu configurations; allowed: 1 to %d", request->n_entries,
                       PE_EXPERIMENT_CONFIGS_MAX);
    if (experiment->fields.train_len % 2)
        return pe_fail(err, "/train_len", "train_len is %lld; it must be even, from %d to %d",
                       (long long)experiment->fields.train_len, TRAIN_LEN_MIN, TRAIN_LEN_MAX);
    if (experiment->fields.eval_len < experiment->fields.train_len)
        return pe_fail(err, "/eval_len", "eval_len is %lld; allowed: from train_len, %lld, to %d",
                       (long long)experiment->fields.eval_len, (long long)experiment->fields.train_len, EVAL_LEN_MAX);
    return PE_OK;
}

static enum pe_status fail_overrides(const struct run *run, const char *pointer, struct pe_failure *err)
{
    (void)run;
    return pe_fail(err, pointer,
                   "eval must be a list of at most %d objects, for instance "
                   "[{\"scaling\":{\"type\":\"linear\",\"factor\":2}}]",
                   OVERRIDES_MAX);
}

/* One evaluation of a run's weights: of the configuration itself, or with an override. */
static enum pe_status add_evaluation(struct pe_experiment *experiment, struct run *run, int64_t number,
                                     const struct pe_value *override, struct pe_failure *err)
{
    size_t n = (size_t)experiment->fields.eval_len, i = experiment->n_evaluations++;
    struct pe_evaluation *evaluation = &experiment->evaluations[i];
    struct pe_trained_config config = run->config;
    enum pe_status status = PE_OK;
    *evaluation = (struct pe_evaluation){.run = experiment->n_runs, .override = number};
    run->n_evaluations++;
    if (override) {
        snprintf(experiment->pointers[i], PE_POINTER_MAX, "%s/eval/%lld", run->config.pointer, (long long)number);
        config.overrides = override->object.fields;
        config.n_overrides = override->object.n;
        config.overrides_pointer = experiment->pointers[i];
        status = pe_trained_config_check(&config, err);
    }
    if (!status)
        status = pe_places_init(&evaluation->places, &config, n, PE_F32, NULL, err);
    evaluation->excess = calloc(n, sizeof *evaluation->excess);
    return status ? status : evaluation->excess ? PE_OK : pe_no_memory(err);
}

static enum pe_status add_overrides(struct pe_experiment *experiment, struct run *run, const struct pe_value *eval,
                                    struct pe_failure *err)
{
    char pointer[PE_POINTER_MAX];
    enum pe_status status = PE_OK;
    pe_pointer_join(pointer, sizeof pointer, run->config.pointer, "eval");
    if (!eval)
        return PE_OK;
    if (eval->kind != PE_LIST || eval->list.n > OVERRIDES_MAX)
        return fail_overrides(run, pointer, err);
    for (size_t i = 0; !status && i < eval->list.n; i++)
        if (eval->list.items[i].kind != PE_OBJECT || eval->list.items[i].object.n == 0)
            status = fail_overrides(run, pointer, err);
        else
            status = add_evaluation(experiment, run, (int64_t)i, &eval->list.items[i], err);
    return status;
}

/* `seed` belongs to the experiment, although some schemes have a field of that name. */
static bool is_of_experiment(const struct pe_entry *entry, size_t i)
{
    bool is_own = i < entry->n_own && *entry->pointer;
    return !is_own && pe_param_find(rows, entry->fields[i].name);
}

static enum pe_status add_run(struct pe_experiment *experiment, const struct pe_experiment_request *request,
                              struct pe_failure *err)
{
    const struct pe_entry *entry = &request->entries[experiment->n_runs];
    struct run *run = &experiment->runs[experiment->n_runs];
    run->config.pointer = entry->pointer;
    run->config.caller_fields = request->caller_fields;
    run->fields = calloc(entry->n_fields + 1, sizeof *run->fields);
    if (!run->fields)
        return pe_no_memory(err);
    /* Copies the entry's fields without `eval`. */
    const struct pe_value *eval = NULL;
    for (size_t i = 0; i < entry->n_fields; i++)
        if (strcmp(entry->fields[i].name, "eval") == 0)
            eval = &entry->fields[i].value;
        else if (!is_of_experiment(entry, i)) {
            run->fields[run->config.n_fields++] = entry->fields[i];
            run->config.n_own += i < entry->n_own;
        }
    run->config.fields = run->fields;
    enum pe_status status = pe_trained_config_check(&run->config, err);
    if (!status)
        status =
            pe_places_init(&run->places, &run->config, (size_t)experiment->fields.train_len, PE_F32, &run->plan, err);
    if (!status)
        status = add_evaluation(experiment, run, -1, NULL, err);
    if (!status)
        status = add_overrides(experiment, run, eval, err);
    experiment->n_runs++;
    return status;
}

/* ---- Memory ---- */

/* Rather too much: every evaluation as if it had turns, every run as if it learned positions. */
static double bytes_of(const struct pe_experiment_request *request, const struct experiment_fields *fields)
{
    double train = (double)fields->train_len, eval = (double)fields->eval_len;
    double turns = 2 * PE_TRAIN_HEAD * PE_TRAIN_HEAD * sizeof(float);
    double runs = (double)request->n_entries * (train * turns + (1 + OVERRIDES_MAX) * eval * (turns + sizeof(double)));
    double weights = 5 * sizeof(float) * (27000 + eval * PE_TRAIN_WIDTH);
    return pe_decoder_bytes((size_t)(SEQUENCES * fields->train_len), (size_t)fields->train_len, true) +
           pe_evaluator_bytes((size_t)fields->eval_len) + runs + weights + (double)SEQUENCES * train * 8;
}

static enum pe_status allocate(struct pe_experiment *experiment, struct pe_failure *err)
{
    size_t n = (size_t)experiment->fields.train_len;
    experiment->decoder = pe_decoder_new_f32(SEQUENCES * n, n, true);
    experiment->tokens = malloc(SEQUENCES * (n + 1));
    experiment->losses = malloc(SEQUENCES * n * sizeof *experiment->losses);
    if (!experiment->decoder || !experiment->tokens || !experiment->losses)
        return pe_no_memory(err);
    return pe_evaluator_init(&experiment->evaluator, (size_t)experiment->fields.eval_len, err);
}

/* The weights of the run that begins now, in the place of those before. */
static enum pe_status begin_run(struct pe_experiment *experiment, struct pe_failure *err)
{
    const struct pe_trainable *scheme = experiment->runs[experiment->run].config.scheme;
    pe_parameters_drop(&experiment->parameters);
    pe_adamw_drop(&experiment->adamw);
    free(experiment->gradients);
    enum pe_status status =
        pe_parameters_init(&experiment->parameters, scheme->learned, (size_t)experiment->fields.eval_len,
                           scheme->token_std, experiment->fields.seed, err);
    experiment->gradients = status ? NULL : calloc(experiment->parameters.at.n, sizeof *experiment->gradients);
    if (!status)
        status = experiment->gradients ? pe_adamw_init(&experiment->adamw, experiment->parameters.at.n, err)
                                       : pe_no_memory(err);
    experiment->step = 0;
    return status;
}

/* ---- The start ---- */

static void put_config(struct pe_node *list, const struct run *run)
{
    if (run->plan) {
        pe_put_value(list, NULL, pe_plan_config(run->plan));
        return;
    }
    struct pe_node *config = pe_put_object(list, NULL);
    pe_put_string(config, "scheme", run->config.scheme->name);
    pe_put_integer(config, "dim", PE_TRAIN_WIDTH);
}

static enum pe_status open_all(struct pe_experiment *experiment, const struct pe_experiment_request *request,
                               struct pe_failure *err)
{
    enum pe_status status = read_fields(experiment, request, err);
    if (status)
        return status;
    if (request->admit && (status = request->admit(request->caller, bytes_of(request, &experiment->fields), err)))
        return status;
    while (!status && experiment->n_runs < request->n_entries)
        status = add_run(experiment, request, err);
    if (!status)
        status = allocate(experiment, err);
    if (!status)
        status = begin_run(experiment, err);
    pe_task_init(&experiment->task, (enum pe_task_kind)experiment->fields.task, experiment->fields.seed);
    if (status)
        return status;
    experiment->start = pe_values_new();
    if (!experiment->start)
        return pe_no_memory(err);
    struct pe_node *root = pe_values_root(experiment->start);
    pe_put_string(root, "task", tasks[experiment->fields.task]);
    pe_put_integer(root, "steps", experiment->fields.steps);
    pe_put_integer(root, "train_len", experiment->fields.train_len);
    pe_put_integer(root, "eval_len", experiment->fields.eval_len);
    pe_put_integer(root, "seed", experiment->fields.seed);
    struct pe_node *list = pe_put_list(root, "configs");
    for (size_t i = 0; i < experiment->n_runs; i++)
        put_config(list, &experiment->runs[i]);
    experiment->started = pe_values_done(experiment->start);
    return experiment->started ? PE_OK : pe_no_memory(err);
}

enum pe_status pe_experiment_new(const struct pe_experiment_request *request, struct pe_experiment **out,
                                 struct pe_failure *err)
{
    struct pe_experiment *experiment = calloc(1, sizeof *experiment);
    if (!experiment)
        return pe_no_memory(err);
    enum pe_status status = open_all(experiment, request, err);
    if (status)
        pe_experiment_free(experiment);
    else
        *out = experiment;
    return status;
}

void pe_experiment_free(struct pe_experiment *experiment)
{
    if (!experiment)
        return;
    for (size_t i = 0; i < experiment->n_runs; i++) {
        pe_places_drop(&experiment->runs[i].places);
        pe_plan_free(experiment->runs[i].plan);
        free(experiment->runs[i].fields);
    }
    for (size_t i = 0; i < experiment->n_evaluations; i++) {
        pe_places_drop(&experiment->evaluations[i].places);
        free(experiment->evaluations[i].excess);
    }
    pe_parameters_drop(&experiment->parameters);
    pe_adamw_drop(&experiment->adamw);
    pe_evaluator_drop(&experiment->evaluator);
    pe_decoder_free_f32(experiment->decoder);
    free(experiment->tokens);
    free(experiment->losses);
    free(experiment->gradients);
    pe_values_free(experiment->start);
    pe_values_free(experiment->results);
    free(experiment);
}

const struct pe_value *pe_experiment_start(const struct pe_experiment *experiment) { return experiment->started; }

uint64_t pe_experiment_steps(const struct pe_experiment *experiment) { return experiment->n_steps; }

/* ---- Training ---- */

static double mean_loss(const struct pe_experiment *experiment)
{
    size_t n = (size_t)(SEQUENCES * experiment->fields.train_len);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)experiment->losses[i];
    return sum / (double)n;
}

static bool is_reported(uint64_t step) { return step == 1 || step == 10 || step % 20 == 0; }

static enum pe_experiment_event train(struct pe_experiment *experiment, struct pe_experiment_progress *progress)
{
    const struct run *run = &experiment->runs[experiment->run];
    struct pe_parameters *parameters = &experiment->parameters;
    size_t n = (size_t)experiment->fields.train_len;
    uint64_t step = ++experiment->step;
    struct pe_batch batch = {SEQUENCES, n, experiment->tokens};
    pe_task_sequences(&experiment->task, PE_TASK_TRAIN, SEQUENCES * (step - 1), SEQUENCES, n, experiment->tokens);
    pe_decoder_forward_f32(experiment->decoder, &parameters->at, parameters->values, &run->places, &batch,
                           experiment->losses);
    pe_decoder_backward_f32(experiment->decoder, &parameters->at, parameters->values, &run->places, &batch,
                            experiment->gradients);
    pe_adamw_step(&experiment->adamw, parameters, experiment->gradients, step, (size_t)experiment->fields.steps);
    experiment->n_steps++;
    if (!is_reported(step))
        return PE_EXPERIMENT_WORKED;
    *progress = (struct pe_experiment_progress){experiment->run, step, mean_loss(experiment)};
    return PE_EXPERIMENT_PROGRESS;
}

/* ---- Results ---- */

const struct pe_member pe_experiment_result_members[] = {
    {.name = "run", .types = "integer"},
    {.name = "eval", .summary = "number in the configuration's eval; null: the configuration itself"},
    {.name = "floor", .summary = "mean loss of the best predictor"},
    {.name = "inside", .summary = "mean excess over the second half of train_len"},
    {.name = "outside", .summary = "mean excess over the last train_len / 2 places"},
    {.name = "rise", .summary = "outside - inside"},
    {.name = NULL},
};

static enum pe_status put_results(struct pe_experiment *experiment, struct pe_failure *err)
{
    experiment->results = pe_values_new();
    if (!experiment->results)
        return pe_no_memory(err);
    struct pe_node *list = pe_put_list(pe_values_root(experiment->results), "results");
    for (size_t i = 0; i < experiment->n_evaluations; i++) {
        const struct pe_evaluation *evaluation = &experiment->evaluations[i];
        size_t train = (size_t)experiment->fields.train_len, eval = (size_t)experiment->fields.eval_len;
        double inside = pe_evaluation_mean(evaluation, train / 2, train);
        double outside = pe_evaluation_mean(evaluation, eval - train / 2, eval);
        struct pe_node *result = pe_put_object(list, NULL);
        pe_put_integer(result, "run", (int64_t)evaluation->run);
        if (evaluation->override < 0)
            pe_put_null(result, "eval");
        else
            pe_put_integer(result, "eval", evaluation->override);
        pe_put_real(result, "floor", evaluation->floor);
        pe_put_real(result, "inside", inside);
        pe_put_real(result, "outside", outside);
        pe_put_real(result, "rise", outside - inside);
        snprintf(experiment->names[i], sizeof experiment->names[i], "excess.%zu", i);
        experiment->tensors[i] = (struct pe_named_tensor){
            experiment->names[i],
            {PE_F64, 1, {(uint64_t)experiment->fields.eval_len}, evaluation->excess},
        };
    }
    const struct pe_value *done = pe_values_done(experiment->results);
    experiment->result_list = done ? &done->object.fields[0].value : NULL;
    return done ? PE_OK : pe_no_memory(err);
}

enum pe_status pe_experiment_advance(struct pe_experiment *experiment, enum pe_experiment_event *event,
                                     struct pe_experiment_progress *progress, struct pe_failure *err)
{
    if (experiment->step < (uint64_t)experiment->fields.steps) {
        *event = train(experiment, progress);
        return PE_OK;
    }
    /* The next evaluation of this run, or the next run. */
    struct pe_evaluation *evaluation = &experiment->evaluations[experiment->evaluation];
    *event = PE_EXPERIMENT_WORKED;
    if (!pe_evaluation_advance(evaluation, &experiment->evaluator, &experiment->parameters, &experiment->task))
        return PE_OK;
    experiment->evaluation++;
    if (experiment->evaluation == experiment->n_evaluations) {
        *event = PE_EXPERIMENT_DONE;
        return put_results(experiment, err);
    }
    if (experiment->evaluations[experiment->evaluation].run == experiment->run)
        return PE_OK;
    experiment->run++;
    return begin_run(experiment, err);
}

const struct pe_value *pe_experiment_results(const struct pe_experiment *experiment) { return experiment->result_list; }

size_t pe_experiment_n_tensors(const struct pe_experiment *experiment) { return experiment->n_evaluations; }

const struct pe_named_tensor *pe_experiment_tensor(const struct pe_experiment *experiment, size_t i)
{
    return &experiment->tensors[i];
}
