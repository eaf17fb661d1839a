/* Owns the figures of /metrics: a table of simple ones, and the requests by route, scheme and status. */
#include "server/metrics.h"

#include "core/posenc.h"
#include "server/memory/admission.h"
#include "server/loop/clock.h"
#include "server/loop/jobs.h"
#include "server/log.h"
#include "server/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_int_fast64_t values[METRICS_N_IDS];

void metrics_add(enum metrics_id id, int64_t change)
{
    atomic_fetch_add_explicit(&values[id], change, memory_order_relaxed);
}

void metrics_set(enum metrics_id id, int64_t value) { atomic_store_explicit(&values[id], value, memory_order_relaxed); }

/* ---- Requests by label ----------------------------------------------------------------------------------------- */

/* Buckets end at these values; the last, +Inf, is the count. */
static const double seconds_bounds[] = {0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60};
static const double bytes_bounds[] = {256, 1024, 16384, 262144, 1048576, 16777216, 268435456, 4294967296, 68719476736};

enum { BOUNDS_MAX = 12, SERIES_MAX = 512 };

struct histogram {
    uint64_t counts[BOUNDS_MAX + 1]; /* not cumulative; made so when printed */
    double sum;
};

/* Requests of one (route, scheme, status). Histograms are by route alone: a product of labels with a dozen buckets each
 * would cost the reader of the metrics more than it tells. */
struct series {
    const char *route, *scheme;
    int status;
    uint64_t n;
};

struct route_series {
    const char *route;
    struct histogram seconds, bytes;
};

struct sum_series { /* a sum by one label */
    const char *label;
    double sum;
};

enum { ROUTES_MAX = 64, LABELS_MAX = 128 };

/* Labels come from the api's own tables, so the lists stay short; should they ever be full, the rest is counted in the
 * last row under "other". */
static struct {
    pthread_mutex_t lock;
    struct series series[SERIES_MAX];
    size_t n_series;
    struct route_series routes[ROUTES_MAX];
    size_t n_routes;
    struct sum_series schemes[LABELS_MAX], formats[LABELS_MAX]; /* compute seconds; bytes sent */
    size_t n_schemes, n_formats;
    struct histogram queue_seconds;
} requests = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_same(const char *a, const char *b) { return a == b || strcmp(a, b) == 0; }

static struct series *series_find(const struct metrics_request *request)
{
    for (size_t i = 0; i < requests.n_series; i++) {
        struct series *series = &requests.series[i];
        if (series->status == request->status && is_same(series->route, request->route) &&
            is_same(series->scheme, request->scheme))
            return series;
    }
    if (requests.n_series == SERIES_MAX)
        return &requests.series[SERIES_MAX - 1];
    struct series *series = &requests.series[requests.n_series++];
    *series = (struct series){request->route, request->scheme, request->status, 0};
    if (requests.n_series == SERIES_MAX)
        series->route = series->scheme = "other";
    return series;
}

static struct route_series *route_find(const char *route)
{
    for (size_t i = 0; i < requests.n_routes; i++)
        if (is_same(requests.routes[i].route, route))
            return &requests.routes[i];
    if (requests.n_routes == ROUTES_MAX)
        return &requests.routes[ROUTES_MAX - 1];
    struct route_series *series = &requests.routes[requests.n_routes++];
    series->route = requests.n_routes == ROUTES_MAX ? "other" : route;
    return series;
}

static void sum_add(struct sum_series *sums, size_t *n, const char *label, double change)
{
    size_t i = 0;
    while (i < *n && !is_same(sums[i].label, label))
        i++;
    if (i == LABELS_MAX)
        i--;
    else if (i == *n)
        sums[++*n - 1].label = i == LABELS_MAX - 1 ? "other" : label;
    sums[i].sum += change;
}

static void histogram_add(struct histogram *histogram, const double *bounds, size_t n_bounds, double value)
{
    size_t i = 0;
    while (i < n_bounds && value > bounds[i])
        i++;
    histogram->counts[i]++;
    histogram->sum += value;
}

#define N_OF(array) (sizeof(array) / sizeof *(array))

static double seconds(uint64_t ns) { return (double)ns / (double)CLOCK_SECOND; }

void metrics_request(const struct metrics_request *request)
{
    pthread_mutex_lock(&requests.lock);
    series_find(request)->n++;
    struct route_series *route = route_find(request->route);
    histogram_add(&route->seconds, seconds_bounds, N_OF(seconds_bounds), seconds(request->total_ns));
    histogram_add(&route->bytes, bytes_bounds, N_OF(bytes_bounds), (double)request->n_bytes);
    histogram_add(&requests.queue_seconds, seconds_bounds, N_OF(seconds_bounds), seconds(request->queue_ns));
    if (*request->scheme)
        sum_add(requests.schemes, &requests.n_schemes, request->scheme, seconds(request->work_ns));
    if (*request->format)
        sum_add(requests.formats, &requests.n_formats, request->format, (double)request->n_bytes);
    pthread_mutex_unlock(&requests.lock);
}

/* ---- Text ------------------------------------------------------------------------------------------------------ */

static struct {
    const char *version, *commit, *isa;
} build = {"", "", ""};

void metrics_setup(const char *version, const char *commit, const char *isa)
{
    build.version = version;
    build.commit = commit;
    build.isa = isa;
}

static void print_head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* The build names its commit as it likes; our own labels (routes, schemes, formats) need no escapes. */
static void print_label(FILE *out, const char *name, const char *label, const char *after)
{
    fprintf(out, "%s=\"", name);
    for (; *label; label++)
        if (*label == '\n')
            fputs("\\n", out);
        else
            fprintf(out, *label == '"' || *label == '\\' ? "\\%c" : "%c", *label);
    fprintf(out, "\"%s", after);
}

static double value_of(enum metrics_id id) { return (double)atomic_load_explicit(&values[id], memory_order_relaxed); }

/* Everything a simple row may show, gathered once per page. */
struct snapshot {
    struct jobs_figures jobs;
    struct process_figures process;
};

/* A row of the page without labels of its own, or one value of a family that has a label: `family` rows in a row share
 * the head of the first. */
struct row {
    const char *name, *type, *help;
    const char *labels; /* "" or {reason="…"} */
    double (*value)(const struct snapshot *now);
};

#define OWN(function, id)                                                                                              \
    static double function(const struct snapshot *now)                                                                 \
    {                                                                                                                  \
        (void)now;                                                                                                     \
        return value_of(id);                                                                                           \
    }
#define SEEN(function, expression)                                                                                     \
    static double function(const struct snapshot *now)                                                                 \
    {                                                                                                                  \
        (void)now;                                                                                                     \
        return (double)(expression);                                                                                   \
    }
OWN(connections, METRICS_CONNECTIONS)
OWN(in_flight, METRICS_IN_FLIGHT)
OWN(streams, METRICS_STREAMS)
OWN(pool_bytes_value, METRICS_POOL_BYTES)
OWN(sent_bytes, METRICS_SENT_BYTES)
OWN(received_bytes, METRICS_RECEIVED_BYTES)
OWN(workers, METRICS_WORKERS)
OWN(not_modified, METRICS_NOT_MODIFIED)
OWN(answers_hits, METRICS_ANSWERS_HITS)
OWN(answers_misses, METRICS_ANSWERS_MISSES)
OWN(answers_bytes, METRICS_ANSWERS_BYTES)
OWN(answers_shared, METRICS_ANSWERS_SHARED)
OWN(cancelled_receiving, METRICS_CANCELLED_RECEIVING)
OWN(cancelled_waiting, METRICS_CANCELLED_WAITING)
OWN(cancelled_sending, METRICS_CANCELLED_SENDING)
OWN(cancelled_slow, METRICS_CANCELLED_SLOW)
OWN(cancelled_late, METRICS_CANCELLED_LATE)
OWN(rejected_queue, METRICS_REJECTED_QUEUE)
OWN(rejected_timeout, METRICS_REJECTED_TIMEOUT)
OWN(rejected_late, METRICS_REJECTED_LATE)
OWN(rejected_head, METRICS_REJECTED_HEAD)
OWN(rejected_memory, METRICS_REJECTED_MEMORY)
OWN(rejected_age, METRICS_REJECTED_AGE)
OWN(rejected_streams, METRICS_REJECTED_STREAMS)
OWN(rejected_connections, METRICS_REJECTED_CONNECTIONS)
OWN(rejected_limit, METRICS_REJECTED_LIMIT)
OWN(rejected_token, METRICS_REJECTED_TOKEN)
OWN(rejected_quota, METRICS_REJECTED_QUOTA)
SEEN(jobs_queued, now->jobs.n_queued)
SEEN(requests_waiting, now->jobs.n_waiting)
SEEN(jobs_parked, now->jobs.n_parked)
SEEN(yields, now->jobs.n_yields)
SEEN(workers_busy, now->jobs.n_busy)
SEEN(jobs_done, now->jobs.n_done)
SEEN(busy_seconds, seconds(now->jobs.busy_ns))
SEEN(memory_bytes, admission_memory())
SEEN(undecided, pe_undecided_count())
SEEN(log_dropped, log_n_dropped())
SEEN(cpu_seconds, now->process.cpu_seconds)
SEEN(resident_bytes, now->process.resident_bytes)
SEEN(virtual_bytes, now->process.virtual_bytes)
SEEN(n_fds, now->process.n_fds)
SEEN(fds_max, now->process.fds_max)
SEEN(started_at, now->process.started_at)

#define REJECTED                                                                                                       \
    "posenc_rejected_total", "counter",                                                                                \
        "Requests refused for the machine's state, its limits, the form of their head, or who asked."
#define CANCELLED                                                                                                      \
    "posenc_cancelled_total", "counter", "Requests given up: their client left, read too slowly, or had set a time."
static const struct row rows[] = {
    {"posenc_connections", "gauge", "Open connections.", "", connections},
    {"posenc_in_flight_requests", "gauge", "Requests begun and not ended.", "", in_flight},
    {"posenc_streams", "gauge", "Answers being streamed.", "", streams},
    {"posenc_buffer_bytes", "gauge", "Memory of the piece buffers.", "", pool_bytes_value},
    {"posenc_taken_memory_bytes", "gauge", "What requests at hand have taken of --max-memory.", "", memory_bytes},
    {"posenc_sent_bytes_total", "counter", "Bytes of answer bodies handed to the network.", "", sent_bytes},
    {"posenc_received_bytes_total", "counter", "Bytes of request bodies received.", "", received_bytes},
    {"posenc_client_cache_hits_total", "counter", "Requests answered 304: the copy the client has is still the answer.",
     "", not_modified},
    {"posenc_cache_hits_total", "counter", "Requests answered from the kept answers.", "", answers_hits},
    {"posenc_cache_misses_total", "counter", "Requests looked for among the kept answers and not found.", "",
     answers_misses},
    {"posenc_cache_bytes", "gauge", "Memory of the kept answers.", "", answers_bytes},
    {"posenc_shared_answers_total", "counter",
     "Requests answered by the work for an equal one that came at the same time.", "", answers_shared},
    {CANCELLED, "{stage=\"receiving\"}", cancelled_receiving},
    {CANCELLED, "{stage=\"waiting\"}", cancelled_waiting},
    {CANCELLED, "{stage=\"sending\"}", cancelled_sending},
    {CANCELLED, "{stage=\"slow\"}", cancelled_slow},
    {CANCELLED, "{stage=\"late\"}", cancelled_late},
    {REJECTED, "{reason=\"queue\"}", rejected_queue},
    {REJECTED, "{reason=\"timeout\"}", rejected_timeout},
    {REJECTED, "{reason=\"late\"}", rejected_late},
    {REJECTED, "{reason=\"head\"}", rejected_head},
    {REJECTED, "{reason=\"memory\"}", rejected_memory},
    {REJECTED, "{reason=\"age\"}", rejected_age},
    {REJECTED, "{reason=\"streams\"}", rejected_streams},
    {REJECTED, "{reason=\"connections\"}", rejected_connections},
    {REJECTED, "{reason=\"limit\"}", rejected_limit},
    {REJECTED, "{reason=\"token\"}", rejected_token},
    {REJECTED, "{reason=\"quota\"}", rejected_quota},
    {"posenc_queued_jobs", "gauge", "Pieces of work waiting for a worker.", "", jobs_queued},
    {"posenc_waiting_requests", "gauge", "Requests no worker has begun on yet.", "", requests_waiting},
    {"posenc_parked_jobs", "gauge", "Pieces of work begun that wait for their next turn.", "", jobs_parked},
    {"posenc_yields_total", "counter", "Turns that ended before their piece of work was done.", "", yields},
    {"posenc_workers", "gauge", "Workers: so many pieces of work are computed at a time.", "", workers},
    {"posenc_busy_workers", "gauge", "Workers at work.", "", workers_busy},
    {"posenc_jobs_total", "counter", "Pieces of work done.", "", jobs_done},
    {"posenc_worker_busy_seconds_total", "counter", "Time the workers have worked.", "", busy_seconds},
    {"posenc_undecided_values_total", "counter", "Values nearer to a rounding boundary than double-double can tell.",
     "", undecided},
    {"posenc_log_dropped_total", "counter", "Log lines lost because their reader was too slow.", "", log_dropped},
    {"process_cpu_seconds_total", "counter", "User and system time of the process.", "", cpu_seconds},
    {"process_resident_memory_bytes", "gauge", "Resident memory.", "", resident_bytes},
    {"process_virtual_memory_bytes", "gauge", "Virtual memory.", "", virtual_bytes},
    {"process_open_fds", "gauge", "Open file descriptors.", "", n_fds},
    {"process_max_fds", "gauge", "Most file descriptors the process may open.", "", fds_max},
    {"process_start_time_seconds", "gauge", "Start of the process since the epoch.", "", started_at},
};

static void print_rows(FILE *out)
{
    struct snapshot now = {.jobs = jobs_figures()};
    process_read(&now.process);
    const char *family = "";
    for (size_t i = 0; i < N_OF(rows); i++) {
        if (strcmp(family, rows[i].name) != 0)
            print_head(out, rows[i].name, rows[i].type, rows[i].help);
        family = rows[i].name;
        fprintf(out, "%s%s %.17g\n", rows[i].name, rows[i].labels, rows[i].value(&now));
    }
}

/* labels is "" or `route="/encode",` with the comma. */
static void print_histogram(FILE *out, const char *name, const char *labels, const struct histogram *histogram,
                            const double *bounds, size_t n_bounds)
{
    uint64_t n = 0;
    for (size_t i = 0; i < n_bounds; i++) {
        n += histogram->counts[i];
        fprintf(out, "%s_bucket{%sle=\"%.12g\"} %llu\n", name, labels, bounds[i], (unsigned long long)n);
    }
    n += histogram->counts[n_bounds];
    int n_label = (int)strlen(labels) - (*labels ? 1 : 0);
    const char *open = *labels ? "{" : "", *close = *labels ? "}" : "";
    fprintf(out, "%s_bucket{%sle=\"+Inf\"} %llu\n", name, labels, (unsigned long long)n);
    fprintf(out, "%s_sum%s%.*s%s %.17g\n", name, open, n_label, labels, close, histogram->sum);
    fprintf(out, "%s_count%s%.*s%s %llu\n", name, open, n_label, labels, close, (unsigned long long)n);
}

static void print_route(FILE *out, const struct route_series *route, bool is_seconds)
{
    char label[128];
    snprintf(label, sizeof label, "route=\"%s\",", route->route);
    if (is_seconds)
        print_histogram(out, "posenc_request_seconds", label, &route->seconds, seconds_bounds, N_OF(seconds_bounds));
    else
        print_histogram(out, "posenc_answer_bytes", label, &route->bytes, bytes_bounds, N_OF(bytes_bounds));
}

static void print_sums(FILE *out, const char *name, const char *help, const char *label, const struct sum_series *sums,
                       size_t n)
{
    print_head(out, name, "counter", help);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s{%s=\"%s\"} %.17g\n", name, label, sums[i].label, sums[i].sum);
}

static void print_requests(FILE *out)
{
    print_head(out, "posenc_requests_total", "counter",
               "Requests ended; status 499: the client left before the answer.");
    for (size_t i = 0; i < requests.n_series; i++) {
        const struct series *series = &requests.series[i];
        fprintf(out, "posenc_requests_total{route=\"%s\",scheme=\"%s\",status=\"%d\"} %llu\n", series->route,
                series->scheme, series->status, (unsigned long long)series->n);
    }
    print_head(out, "posenc_request_seconds", "histogram", "From a request's first line to its answer's last byte.");
    for (size_t i = 0; i < requests.n_routes; i++)
        print_route(out, &requests.routes[i], true);
    print_head(out, "posenc_answer_bytes", "histogram", "Sizes of answer bodies.");
    for (size_t i = 0; i < requests.n_routes; i++)
        print_route(out, &requests.routes[i], false);
    print_head(out, "posenc_queue_seconds", "histogram", "Time a request waited for its first worker.");
    print_histogram(out, "posenc_queue_seconds", "", &requests.queue_seconds, seconds_bounds, N_OF(seconds_bounds));
    print_sums(out, "posenc_compute_seconds_total", "Time spent computing, by scheme.", "scheme", requests.schemes,
               requests.n_schemes);
    print_sums(out, "posenc_output_bytes_total", "Bytes of answer bodies, by format; problem: refusals.", "format",
               requests.formats, requests.n_formats);
}

static struct {
    void (*print)(void *self, FILE *out);
    void *self;
} appended;

void metrics_append(void (*print)(void *self, FILE *out), void *self)
{
    appended.print = print;
    appended.self = self;
}

char *metrics_print(size_t *n_bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, n_bytes);
    if (!out)
        return NULL;
    print_head(out, "posenc_build_info", "gauge", "Version of the program; always 1.");
    fputs("posenc_build_info{", out);
    print_label(out, "version", build.version, ",");
    print_label(out, "commit", build.commit, ",");
    print_label(out, "isa", build.isa, "} 1\n");
    print_rows(out);
    pthread_mutex_lock(&requests.lock);
    print_requests(out);
    pthread_mutex_unlock(&requests.lock);
    if (appended.print)
        appended.print(appended.self, out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
