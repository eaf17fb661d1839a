/* Owns the callbacks through which api/ reaches the machine. */
#include "server/server.h"
#include "server/loop/loop.h"
#include "server/memory/memory.h"
#include "server/process/process.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void count_hypotheses(uint64_t n) { metrics_add(METRICS_HYPOTHESES, (int64_t)n); }

static bool take_memory(const struct api_host *host, uint64_t n)
{
    (void)host;
    return admission_take_counted(n);
}

static void give_memory(const struct api_host *host, uint64_t n)
{
    (void)host;
    admission_give(n);
}

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
        .take_memory = take_memory,
        .give_memory = give_memory,
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

/* ---- The places of running experiments, and the line of clients that wait for one -------------------------------- */

/* Clients that were refused, in the order of their first refusal. While the line is full, others are refused without a
 * place in it. */
enum { WAITING_MAX = 256 };

static struct {
    pthread_mutex_t lock;
    uint64_t n_free;
    struct waiting {
        uint64_t client, asked_ms; /* when it was refused last */
    } line[WAITING_MAX];
    size_t n_waiting;
} places = {.lock = PTHREAD_MUTEX_INITIALIZER};

void experiments_allow(uint64_t n) { places.n_free = n; }

static void leave_line(size_t i)
{
    places.n_waiting--;
    memmove(&places.line[i], &places.line[i + 1], (places.n_waiting - i) * sizeof places.line[0]);
}

/* The number of clients before this one: all of them if it is not in the line. */
static size_t place_in_line(uint64_t client)
{
    size_t i = 0;
    while (i < places.n_waiting && places.line[i].client != client)
        i++;
    return i;
}

static void wait_in_line(size_t place, uint64_t client, uint64_t now_ms)
{
    if (!client || place == WAITING_MAX)
        return;
    places.n_waiting += place == places.n_waiting;
    places.line[place] = (struct waiting){client, now_ms};
}

static bool take_turn(uint64_t client, uint64_t now_ms)
{
    for (size_t i = places.n_waiting; i-- > 0;)
        if (now_ms > places.line[i].asked_ms + EXPERIMENTS_WAIT_MS)
            leave_line(i);
    size_t place = place_in_line(client);
    if (place >= places.n_free) {
        wait_in_line(place, client, now_ms);
        return false;
    }
    places.n_free--;
    if (place < places.n_waiting)
        leave_line(place);
    return true;
}

bool experiments_begin(uint64_t client, uint64_t now_ms)
{
    pthread_mutex_lock(&places.lock);
    bool has_turn = take_turn(client, now_ms);
    pthread_mutex_unlock(&places.lock);
    metrics_add(METRICS_EXPERIMENTS, has_turn);
    return has_turn;
}

void experiments_end(bool is_done, uint64_t n_steps)
{
    pthread_mutex_lock(&places.lock);
    places.n_free++;
    pthread_mutex_unlock(&places.lock);
    metrics_add(METRICS_EXPERIMENTS, -1);
    metrics_add(is_done ? METRICS_EXPERIMENTS_DONE : METRICS_EXPERIMENTS_ENDED, 1);
    metrics_add(METRICS_EXPERIMENT_STEPS, (int64_t)n_steps);
}
