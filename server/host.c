/* Owns the callbacks through which api/ reaches the machine. */
#include "server/server.h"

#include "server/loop/loop.h"
#include "server/memory/memory.h"
#include "server/process/process.h"

#include <stdio.h>
#include <time.h>

static void count_hypotheses(uint64_t n) { metrics_add(METRICS_HYPOTHESES, (int64_t)n); }

static bool begin_experiment(uint64_t turn) { return experiments_begin(turn, clock_now() / CLOCK_MS); }

static uint64_t now_ms(void) { return clock_now() / CLOCK_MS; }

static void print_time(char text[API_TIME_BYTES])
{
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(text, API_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* A page of /metrics is appended to, because process/ does not know api/. */
void host_print_metrics(void *self, FILE *out)
{
    const char *tool;
    (void)self;
    fprintf(out, "# HELP posenc_mcp_calls_total Calls of tools of /mcp, by outcome.\n"
                 "# TYPE posenc_mcp_calls_total counter\n");
    for (size_t i = 0; (tool = api_mcp_tool_name(i)); i++)
        for (size_t k = 0; api_mcp_outcomes[k]; k++)
            fprintf(out, "posenc_mcp_calls_total{tool=\"%s\",outcome=\"%s\"} %llu\n", tool, api_mcp_outcomes[k],
                    (unsigned long long)api_mcp_calls(i, k));
}

void host_init(struct api_host *host, const struct options *options, const struct stored *stored,
               const struct shutdown *shutdown)
{
    *host = (struct api_host){
        .max_body = options->max_body,
        .max_json = options->max_json,
        .max_answer = options->max_answer,
        .max_pictures = options->buffer_memory,
        .max_work = options->max_work,
        .max_analysis = options->max_analysis,
        .max_memory = options->max_memory,
        .take_memory = admission_take_counted,
        .give_memory = admission_give,
        .cors_origins = options->cors_origin,
        .frame_origins = options->frame_origin,
        .has_mcp = options->mcp == SWITCH_ON,
        .is_tls = options->tls_cert && *options->tls_cert,
        .public_url = options->public_url && *options->public_url ? options->public_url : NULL,
        .store = weights_store(stored->weights),
        .presets = weights_store(stored->presets),
        .print_time = print_time,
        .is_ending = &shutdown->has_begun,
        .metrics_print = metrics_print,
        .metric_step = metrics_analysis_step,
        .hypotheses_searched = count_hypotheses,
        .experiments = options->experiments,
        .experiment_ms = options->experiment_seconds * 1000,
        .now_ms = now_ms,
        .experiment_begin = begin_experiment,
        .experiment_end = experiments_end,
    };
}
