/* Owns the figures of /metrics: the single figures of metrics_list.h, and the counts of requests by route, scheme and
 * status, in the text format of Prometheus.
 *
 * Counting must not slow a request, so a figure is an atomic number or is read from its owner when the page is asked
 * for. Labels come from fixed tables (routes, schemes, statuses), never from a client's text: with labels that clients
 * choose, memory and the monitoring would grow without bound. A histogram is kept for each route only; a dozen buckets
 * for every combination of labels would cost more to scrape than they are worth. */
#include "server/process/process.h"

#include "core/inside.h"
#include "server/memory/memory.h"
#include "server/loop/loop.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Requests by label ----------------------------------------------------------------------------------------- */

/* Upper bounds of the buckets; the last bucket, +Inf, equals the count. */
static const double seconds_bounds[] = {0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60};
static const double bytes_bounds[] = {256, 1024, 16384, 262144, 1048576, 16777216, 268435456, 4294967296, 68719476736};

enum { BOUNDS_MAX = 12, SERIES_MAX = 512 };

struct histogram {
    uint64_t counts[BOUNDS_MAX + 1]; /* not cumulative; the sums are computed when printed */
    double sum;
};

/* Requests of one (route, scheme, status). Histograms are by route alone: a dozen buckets for every combination of
 * labels would cost more to scrape than they are worth. */
struct series {
    const char *route, *scheme;
    int status;
    uint64_t n;
};

struct route_series {
    const char *route;
    struct histogram seconds, bytes;
};

struct analysis_series {
    const char *metric;
    struct histogram seconds;
};

struct sum_series { /* a sum by one label */
    const char *label;
    double sum;
};

enum { ROUTES_MAX = 64, LABELS_MAX = 128, ANALYSES_MAX = 32 };

/* Labels come from fixed tables of api/, so the lists stay short. If a list is ever full, further labels are counted in
 * its last row as "other". */
static struct {
    pthread_mutex_t lock;
    struct series series[SERIES_MAX];
    size_t n_series;
    struct route_series routes[ROUTES_MAX];
    size_t n_routes;
    struct sum_series schemes[LABELS_MAX], formats[LABELS_MAX]; /* compute seconds; bytes sent */
    size_t n_schemes, n_formats;
    struct histogram queue_seconds;
    struct analysis_series analyses[ANALYSES_MAX];
    size_t n_analyses;
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

/* The row of a label, at which each begins; the last one is that of all labels for which there is no room. */
static void *row_of(void *rows, size_t row_bytes, size_t n_max, size_t *n, const char *label)
{
    size_t i = 0;
    while (i < *n && !is_same(*(const char **)(void *)((char *)rows + i * row_bytes), label))
        i++;
    i = i < n_max ? i : n_max - 1;
    void *row = (char *)rows + i * row_bytes;
    if (i == *n) {
        *(const char **)row = i == n_max - 1 ? "other" : label;
        ++*n;
    }
    return row;
}

#define ROW_OF(rows, n, label) row_of(rows, sizeof *(rows), N_OF(rows), n, label)
#define N_OF(array) (sizeof(array) / sizeof *(array))

static void histogram_add(struct histogram *histogram, const double *bounds, size_t n_bounds, double value)
{
    size_t i = 0;
    while (i < n_bounds && value > bounds[i])
        i++;
    histogram->counts[i]++;
    histogram->sum += value;
}

static double seconds(uint64_t ns) { return (double)ns / (double)CLOCK_SECOND; }

void metrics_request(const struct metrics_request *request)
{
    pthread_mutex_lock(&requests.lock);
    series_find(request)->n++;
    struct route_series *route = ROW_OF(requests.routes, &requests.n_routes, request->route);
    histogram_add(&route->seconds, seconds_bounds, N_OF(seconds_bounds), seconds(request->total_ns));
    histogram_add(&route->bytes, bytes_bounds, N_OF(bytes_bounds), (double)request->n_bytes);
    histogram_add(&requests.queue_seconds, seconds_bounds, N_OF(seconds_bounds), seconds(request->queue_ns));
    if (*request->scheme) {
        struct sum_series *scheme = ROW_OF(requests.schemes, &requests.n_schemes, request->scheme);
        scheme->sum += seconds(request->work_ns);
    }
    if (*request->format) {
        struct sum_series *format = ROW_OF(requests.formats, &requests.n_formats, request->format);
        format->sum += (double)request->n_bytes;
    }
    pthread_mutex_unlock(&requests.lock);
}

void metrics_analysis_step(const char *metric)
{
    static _Thread_local struct {
        const char *metric;
        uint64_t since;
    } step;
    uint64_t now = clock_of_thread();
    if (step.metric) {
        pthread_mutex_lock(&requests.lock);
        struct analysis_series *analysis = ROW_OF(requests.analyses, &requests.n_analyses, step.metric);
        histogram_add(&analysis->seconds, seconds_bounds, N_OF(seconds_bounds), seconds(now - step.since));
        pthread_mutex_unlock(&requests.lock);
    }
    step.metric = metric;
    step.since = now;
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

void metrics_print_head(FILE *out, const char *name, const char *type, const char *help)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void metrics_print_one(FILE *out, const char *name, const char *type, const char *help, double value)
{
    metrics_print_head(out, name, type, help);
    fprintf(out, "%s %.17g\n", name, value);
}

/* Escapes the label, because the commit string of a build may be anything. Our own labels (routes, schemes, formats)
 * need no escapes. */
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

static double value_of(enum metrics_id id)
{
    return (double)atomic_load_explicit(&metrics_values[id], memory_order_relaxed);
}

/* The values that the rows of metrics_list.h may read, collected once per page. */
struct snapshot {
    struct jobs_figures jobs;
    struct process_figures process;
};

/* One line of the page; figures with the same name share the HELP and TYPE lines of the first. */
struct row {
    const char *name, *type;
    const char *labels; /* "" or {reason="…"} */
    const char *help;
};

static const struct row rows[] = {
#define COUNTED(ID, name, type, labels, help) {name, #type, labels, help},
#define READ(expression, name, type, labels, help) {name, #type, labels, help},
#include "server/process/metrics_list.h"
#undef COUNTED
#undef READ
};

enum { N_ROWS = sizeof rows / sizeof *rows };

/* Reads the figures, in the order of rows. */
static void read_figures(const struct snapshot *now, double *figures)
{
    const double read[N_ROWS] = {
#define COUNTED(ID, ...) value_of(METRICS_##ID),
#define READ(expression, ...) (double)(expression),
#include "server/process/metrics_list.h"
#undef COUNTED
#undef READ
    };
    memcpy(figures, read, sizeof read);
}

/* labels is "" or `route="/encode",` with the trailing comma. */
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
    metrics_print_head(out, name, "counter", help);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s{%s=\"%s\"} %.17g\n", name, label, sums[i].label, sums[i].sum);
}

enum { APPENDED_MAX = 4 };
static struct {
    void (*print)(void *self, FILE *out);
    void *self;
} appended[APPENDED_MAX];
static size_t n_appended;

void metrics_append(void (*print)(void *self, FILE *out), void *self)
{
    assert(n_appended < APPENDED_MAX);
    appended[n_appended].print = print;
    appended[n_appended++].self = self;
}

char *metrics_print(size_t *n_bytes)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, n_bytes);
    if (!out)
        return NULL;
    metrics_print_head(out, "posenc_build_info", "gauge", "Version of the program; always 1.");
    fputs("posenc_build_info{", out);
    print_label(out, "version", build.version, ",");
    print_label(out, "commit", build.commit, ",");
    print_label(out, "isa", build.isa, "} 1\n");
    struct snapshot now = {.jobs = jobs_figures()};
    process_read(&now.process);
    double figures[N_ROWS];
    read_figures(&now, figures);
    const char *family = "";
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(family, rows[i].name) != 0)
            metrics_print_head(out, rows[i].name, rows[i].type, rows[i].help);
        family = rows[i].name;
        fprintf(out, "%s%s %.17g\n", rows[i].name, rows[i].labels, figures[i]);
    }
    pthread_mutex_lock(&requests.lock);
    metrics_print_head(out, "posenc_requests_total", "counter",
                       "Requests ended; status 499: the client left before the answer.");
    for (size_t i = 0; i < requests.n_series; i++) {
        const struct series *series = &requests.series[i];
        fprintf(out, "posenc_requests_total{route=\"%s\",scheme=\"%s\",status=\"%d\"} %llu\n", series->route,
                series->scheme, series->status, (unsigned long long)series->n);
    }
    metrics_print_head(out, "posenc_request_seconds", "histogram",
                       "From a request's first line to its answer's last byte.");
    for (size_t i = 0; i < requests.n_routes; i++)
        print_route(out, &requests.routes[i], true);
    metrics_print_head(out, "posenc_answer_bytes", "histogram", "Sizes of answer bodies.");
    for (size_t i = 0; i < requests.n_routes; i++)
        print_route(out, &requests.routes[i], false);
    metrics_print_head(out, "posenc_queue_seconds", "histogram", "Time a request waited for its first worker.");
    print_histogram(out, "posenc_queue_seconds", "", &requests.queue_seconds, seconds_bounds, N_OF(seconds_bounds));
    print_sums(out, "posenc_compute_seconds_total", "Time spent computing, by scheme.", "scheme", requests.schemes,
               requests.n_schemes);
    print_sums(out, "posenc_output_bytes_total", "Bytes of answer bodies, by format; problem: refusals.", "format",
               requests.formats, requests.n_formats);
    char label[128];
    metrics_print_head(out, "posenc_analysis_seconds", "histogram",
                       "Processor time of one metric of one configuration in /analyze; diagnose: of one /diagnose.");
    for (size_t i = 0; i < requests.n_analyses; i++) {
        snprintf(label, sizeof label, "metric=\"%s\",", requests.analyses[i].metric);
        print_histogram(out, "posenc_analysis_seconds", label, &requests.analyses[i].seconds, seconds_bounds,
                        N_OF(seconds_bounds));
    }
    pthread_mutex_unlock(&requests.lock);
    for (size_t i = 0; i < n_appended; i++)
        appended[i].print(appended[i].self, out);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
