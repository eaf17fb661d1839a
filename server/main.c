/* posencd: reads the options, sets up the parts, and serves until a signal ends it. */
#include "api/api.h"
#include "core/posenc.h"
#include "server/memory/admission.h"
#include "server/loop/clock.h"
#include "server/memory/disposal.h"
#include "server/loop/jobs.h"
#include "server/experiments.h"
#include "server/log.h"
#include "server/loops.h"
#include "server/metrics.h"
#include "server/options.h"
#include "server/page.h"
#include "server/page_folder.h"
#include "server/process.h"
#include "server/replaced.h"
#include "server/supervisor.h"
#include "server/auth/tokens.h"
#include "server/store/folder.h"
#include "server/store/s3.h"
#include "server/weights/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef POSENC_COMMIT
#define POSENC_COMMIT "unknown" /* the build defines the real value */
#endif

extern char **environ;

enum {
    EXIT_USAGE = 2,
    DRAIN_LOOK_MS = 20,
    CLOSING_SECONDS = 1,    /* longest time in which the last refusals are sent */
    SECRETS_LOOK_MS = 5000, /* how often the server looks whether files of secrets have been replaced */
    WATCHDOG_SIGNS = 4,     /* signs of life in the time after which the service manager would end the process */
    LOG_GRACE_MS = 1000,
    FDS_BESIDE_CONNECTIONS = 96, /* includes connections that are being turned away (accept.c) */
    FDS_OF_A_LOOP = 8,
    IO_THREADS_MAX = 64,
    MAPPED_MIN = 1024 * 1024 /* heap blocks of this many bytes or more get their own mapping */
};

#define MEMORY_MIN (UINT64_C(1) << 20)
#define MEMORY_MAX (UINT64_C(2) << 30)

/* The stages of shutdown, in order. Each lasts for a given time, or until the last connection has ended. While answers
 * are sent, the socket stays open: a balancer that cannot connect would call the server dead, and might cut them. */
enum stage {
    STAGE_SERVING,
    STAGE_DELAY,    /* serves, but says that it is not ready */
    STAGE_DRAINING, /* finishes what it has begun; the listening socket stays open, and what comes is refused */
    STAGE_CLOSING,  /* nothing is left but refusals; the listening socket is closed */
    STAGE_STOPPED
};

/* A thing that is reloaded while the server keeps serving. */
struct rereading {
    struct job job;
    struct server *server;
    bool is_at_work, is_wanted; /* is_wanted: reload once more afterwards */
};

struct server {
    struct options options;
    struct api_host host;
    struct api_page page; /* with --ui-dir */
    struct weights *weights, *presets;
    struct store *bucket; /* the store of weights with --store, which is also that of presets */
    struct http_door door;
    const char *socket; /* path of the Unix socket that exists now; NULL: none */
    struct rereading secrets,
        folder;               /* reloaded after SIGHUP: secrets are tokens and certificate, folder the stored weights */
    struct rereading looking; /* whether one of these has been replaced */
    struct replaced files[3]; /* token file, certificate, key; used by the job that looks */
    bool is_replaced;         /* its result */
    struct loops *loops;
    struct jobs *jobs; /* the first loop: signals, timers and the jobs of this file */
    struct jobs_timer *drain, *watchdog, *look;
    struct supervisor supervisor;
    enum stage stage;
    uint64_t stage_ends_at;
};

/* ---- The end --------------------------------------------------------------------------------------------------- */

static void enter_stage(struct server *server, enum stage stage, uint64_t seconds)
{
    __atomic_store_n(&server->stage, stage, __ATOMIC_RELAXED); /* is_ready may read it on a worker */
    server->stage_ends_at = clock_now() + seconds * CLOCK_SECOND;
}

static void stop(struct server *server)
{
    size_t n = loops_n_early(server->loops);
    if (n > 0)
        log_warn("--drain-seconds are over; cutting %zu connections", n);
    enter_stage(server, STAGE_STOPPED, 0);
    jobs_timer_stop(server->drain);
    loops_stop(server->loops);
}

static void look_at_drain(void *self)
{
    struct server *server = self;
    bool is_over = clock_now() >= server->stage_ends_at;
    if (server->stage == STAGE_DELAY && is_over) {
        enter_stage(server, STAGE_DRAINING, server->options.drain_seconds);
        loops_drain(server->loops);
    } else if (server->stage == STAGE_DRAINING && loops_n_early(server->loops) == 0) {
        enter_stage(server, STAGE_CLOSING, CLOSING_SECONDS);
        loops_close(server->loops);
    } else if ((server->stage == STAGE_DRAINING && is_over) ||
               (server->stage == STAGE_CLOSING && (is_over || loops_n_connections(server->loops) == 0))) {
        stop(server);
    }
}

/* If one of the loops stands still, the sign is left out, and the service manager restarts the process. */
static void give_sign_of_life(void *self)
{
    struct server *server = self;
    if (loops_have_turned(server->loops))
        supervisor_say(&server->supervisor, "WATCHDOG=1");
}

static void on_end_signal(void *self, int signum)
{
    struct server *server = self;
    if (server->stage != STAGE_SERVING) {
        log_warn("second signal: ending at once");
        log_flush_all(LOG_GRACE_MS);
        _exit(128 + signum);
    }
    log_info("signal %d: draining, %zu connections open", signum, loops_n_connections(server->loops));
    supervisor_say(&server->supervisor, "STOPPING=1");
    enter_stage(server, STAGE_DELAY, server->options.drain_delay);
    jobs_timer_start(server->drain, 0, DRAIN_LOOK_MS);
}

/* ---- Reading again --------------------------------------------------------------------------------------------- */

/* Reloading bypasses the workers' queue: a revoked token must be refused at once, however busy the workers are, and
 * reading a folder of weights takes as long as the disk does. */

static struct rereading *rereading_of(struct job *job)
{
    return (struct rereading *)(void *)((char *)job - offsetof(struct rereading, job));
}

static void read_secrets(struct job *job) /* runs on a separate thread, as does the next function */
{
    struct server *server = rereading_of(job)->server;
    if (server->door.tokens)
        tokens_reread(server->door.tokens);
    if (server->door.tls.cert)
        tls_reread(&server->door.tls, server->options.tls_cert, server->options.tls_key);
}

static void read_folder(struct job *job)
{
    struct server *server = rereading_of(job)->server;
    if (*server->options.weights_dir || *server->options.store) {
        weights_reread(server->weights);
        weights_reread(server->presets);
    }
}

static void reread(struct server *server, struct rereading *r, void (*read)(struct job *job));

static void reread_done(struct job *job)
{
    struct rereading *r = rereading_of(job);
    r->is_at_work = false;
    if (r->is_wanted && r->server->stage != STAGE_STOPPED)
        reread(r->server, r, job->work);
}

static void reread(struct server *server, struct rereading *r, void (*read)(struct job *job))
{
    r->is_wanted = r->is_at_work; /* the running reload may have missed the latest change */
    if (r->is_at_work)
        return;
    *r = (struct rereading){.server = server, .is_at_work = true};
    r->job = (struct job){.work = read, .done = reread_done};
    jobs_submit_aside(server->jobs, &r->job);
}

/* Kubernetes swaps the files of a Secret, and sends no signal. */
static void look_at_files(struct job *job) /* runs on a separate thread */
{
    struct server *server = rereading_of(job)->server;
    server->is_replaced = false;
    for (size_t i = 0; i < sizeof server->files / sizeof *server->files; i++)
        server->is_replaced |= replaced_look(&server->files[i]);
}

static void looked_at_files(struct job *job)
{
    struct server *server = rereading_of(job)->server;
    server->looking.is_at_work = false;
    if (server->is_replaced && server->stage != STAGE_STOPPED)
        reread(server, &server->secrets, read_secrets);
}

static void look_for_secrets(void *self)
{
    struct server *server = self;
    if (server->looking.is_at_work || server->stage == STAGE_STOPPED)
        return;
    server->looking = (struct rereading){.server = server, .is_at_work = true};
    server->looking.job = (struct job){.work = look_at_files, .done = looked_at_files};
    jobs_submit_aside(server->jobs, &server->looking.job);
}

static void on_hangup(void *self, int signum)
{
    struct server *server = self;
    (void)signum;
    if (!*server->options.weights_dir && !*server->options.store && !server->door.tokens && !server->door.tls.cert)
        log_info("SIGHUP: nothing to read again");
    else if (server->stage != STAGE_STOPPED) {
        reread(server, &server->secrets, read_secrets);
        reread(server, &server->folder, read_folder);
    }
}

/* ---- What the language asks of the machine --------------------------------------------------------------------- */

/* Both functions are called on the loop, or on a worker for a request with a large body. stage is one word and only
 * ever increases. */
static bool is_ready(void *self)
{
    const struct server *server = self;
    return __atomic_load_n(&server->stage, __ATOMIC_RELAXED) == STAGE_SERVING;
}

static char *print_metrics(void *self, size_t *n_bytes)
{
    (void)self;
    return metrics_print(n_bytes);
}

static void step_metric(void *self, const char *metric)
{
    (void)self;
    metrics_analysis_step(metric);
}

static void count_hypotheses(void *self, uint64_t n)
{
    (void)self;
    metrics_add(METRICS_HYPOTHESES, (int64_t)n);
}

static bool begin_experiment(void *self)
{
    (void)self;
    return experiments_begin();
}

static void end_experiment(void *self, bool is_done, uint64_t n_steps)
{
    (void)self;
    experiments_end(is_done, n_steps);
}

static uint64_t now_ms(void) { return clock_now() / CLOCK_MS; }

/* ---- The start ------------------------------------------------------------------------------------------------- */

static bool choose_kernels(int option)
{
    static const enum pe_isa isas[] = {[OPTIONS_KERNELS_BASE] = PE_ISA_BASE,
                                       [OPTIONS_KERNELS_AVX2] = PE_ISA_AVX2,
                                       [OPTIONS_KERNELS_AVX512] = PE_ISA_AVX512};
    if (option == OPTIONS_KERNELS_AUTO || pe_isa_use(isas[option]))
        return true;
    log_error("--kernels %s: this machine does not have it; the best it has is %s", pe_isa_name(isas[option]),
              pe_isa_name(pe_isa()));
    return false;
}

/* Limits the number of arenas: the I/O threads are the ones that allocate and free for every request. Gives every large
 * block its own mapping, so that memory of a big request returns to the system when it is freed, instead of staying
 * with the thread that freed it. The threshold for "large" is above the daemon's block for a stream, half a megabyte
 * allocated for each answer: as a mapping, its pages would be cleared by the kernel each time, which doubled the time
 * of an answer of 1 MiB. An arena keeps 2 MiB at its end; otherwise that block would be returned and requested again
 * for every answer, too. */
static void tame_heap(const struct options *options)
{
    mallopt(M_ARENA_MAX, 1 + (int)options->io_threads);
    mallopt(M_MMAP_THRESHOLD, MAPPED_MIN);
    mallopt(M_TRIM_THRESHOLD, 2 * MAPPED_MIN);
}

static void limit_connections(struct options *options)
{
    uint64_t n_beside = FDS_BESIDE_CONNECTIONS + FDS_OF_A_LOOP * options->io_threads;
    uint64_t n_fds = process_raise_fds(options->max_connections + n_beside);
    if (n_fds >= options->max_connections + n_beside)
        return;
    uint64_t n = n_fds > 2 * n_beside ? n_fds - n_beside : n_beside;
    log_warn("only %llu file descriptors allowed (ulimit -n): at most %llu connections", (unsigned long long)n_fds,
             (unsigned long long)n);
    options->max_connections = n;
}

/* Half of the processors: while a worker computes one piece, an I/O thread sends the previous one. */
static unsigned default_io_threads(void)
{
    unsigned n = process_n_cores() / 2;
    return n < 1 ? 1 : n > IO_THREADS_MAX ? IO_THREADS_MAX : n;
}

/* The other half is for stored weights, the cache, the program and its libraries. */
static uint64_t default_memory(void)
{
    uint64_t allowed = process_memory_limit(""), half = allowed / 2;
    if (half >= MEMORY_MAX)
        return MEMORY_MAX;
    half = half < MEMORY_MIN ? MEMORY_MIN : half;
    log_info("--max-memory is %llu bytes: half of the %llu that the control group allows", (unsigned long long)half,
             (unsigned long long)allowed);
    return half;
}

/* api/ calls this before it reads, plans or draws, and refuses the request if it returns false. A request that exceeds
 * the total can never be served, so it is counted as a limit, not as a lack of memory, here and elsewhere. */
static bool take_memory(uint64_t n_bytes)
{
    bool is_taken = admission_take(n_bytes);
    metrics_add(METRICS_REJECTED_MEMORY, !is_taken && admission_may_fit(n_bytes));
    return is_taken;
}

static bool set_up_page(struct server *server)
{
    const struct options *options = &server->options;
    char error[PAGE_FOLDER_ERROR_BYTES];
    if (!*options->ui_dir || page_folder_open(&server->page, options->ui_dir, error))
        return true;
    log_error("%s", error);
    return false;
}

/* False: the log says why. */
static bool open_bucket(const struct options *options, struct store **store)
{
    char error[S3_ERROR_BYTES];
    struct s3_settings settings = {.place = options->store,
                                   .endpoint = options->store_endpoint,
                                   .credentials = options->store_credentials,
                                   .cache = options->store_cache,
                                   .cache_bytes = options->max_weights,
                                   .files_max = WEIGHTS_FILES_MAX};
    *store = s3_store_new(&settings, error);
    if (!*store)
        log_error("%s", error);
    else
        metrics_append(s3_print_metrics, *store);
    return *store;
}

/* NULL without a store; false: the log says why it cannot be used. */
static bool open_folder(const struct options *options, const char *suffix, struct store **store)
{
    *store = *options->weights_dir ? folder_store_new(options->weights_dir, suffix) : NULL;
    if (*store || !*options->weights_dir)
        return true;
    log_error("--weights-dir %s: %s", options->weights_dir, strerror(errno));
    return false;
}

static uint64_t refresh_ms(const struct options *options)
{
    return 1000 * (*options->store ? options->store_refresh : options->weights_refresh);
}

static bool set_up_weights(struct server *server)
{
    const struct options *options = &server->options;
    char error[WEIGHTS_ERROR_BYTES];
    struct weights_settings settings = {.contents = &api_contents_weights,
                                        .bytes_max = options->max_weights,
                                        .limit = "--max-weights",
                                        .files_max = WEIGHTS_FILES_MAX,
                                        .refresh_ms = refresh_ms(options)};
    if (!(*options->store ? open_bucket(options, &settings.store)
                          : open_folder(options, ".safetensors", &settings.store)))
        return false;
    server->bucket = *options->store ? settings.store : NULL;
    server->weights = weights_new(&settings, error);
    if (!server->weights)
        log_error("%s", error);
    return server->weights;
}

/* In the same place as the weights, under names of their own. */
static bool set_up_presets(struct server *server)
{
    const struct options *options = &server->options;
    char error[WEIGHTS_ERROR_BYTES] = "stored presets: no memory";
    struct s3_beside beside = {.names = "presets",
                               .cache = options->store_cache,
                               .cache_bytes = API_PRESETS_BYTES_MAX,
                               .files_max = API_PRESETS_MAX};
    struct weights_settings settings = {.contents = &api_contents_presets,
                                        .bytes_max = API_PRESETS_BYTES_MAX,
                                        .files_max = API_PRESETS_MAX,
                                        .is_beside = true,
                                        .refresh_ms = refresh_ms(options)};
    if (server->bucket)
        settings.store = s3_store_beside(server->bucket, &beside);
    else if (!open_folder(options, ".preset.json", &settings.store))
        return false;
    if (settings.store || !server->bucket)
        server->presets = weights_new(&settings, error);
    if (!server->presets)
        log_error("%s", error);
    return server->presets;
}

static void print_time(char text[API_TIME_BYTES])
{
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(text, API_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* Called before any thread runs, and before any library that counts processors is initialised. */
static bool set_up_process(struct server *server)
{
    struct options *options = &server->options;
    if (options->workers == 0)
        options->workers = process_n_cores();
    jobs_set_workers((size_t)options->workers);
    pe_on_wait(jobs_wait);
    if (options->io_threads == 0)
        options->io_threads = default_io_threads();
    if (options->max_memory == 0)
        options->max_memory = default_memory();
    tame_heap(options);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN); /* until the loop handles it: the folder is still being read */
    signal(SIGXFSZ,
           SIG_IGN); /* a write beyond the process's file size limit then fails instead of killing the process */
    pe_gemm_setup();
    api_setup();
    experiments_allow(options->experiments);
    limit_connections(options);
    if (!choose_kernels(options->kernels) || !set_up_page(server))
        return false;
    admission_setup(options->max_memory, options->max_streams);
    metrics_set(METRICS_WORKERS, (int64_t)options->workers);
    metrics_setup(PE_VERSION, POSENC_COMMIT, pe_isa_name(pe_isa()));
    if (!set_up_weights(server) || !set_up_presets(server))
        return false;
    server->host = (struct api_host){
        .max_body = options->max_body,
        .max_json = options->max_json,
        .max_answer = options->max_answer,
        .max_pictures = options->buffer_memory,
        .max_work = options->max_work,
        .max_analysis = options->max_analysis,
        .max_memory = options->max_memory,
        .take_memory = take_memory,
        .give_memory = admission_give,
        .cors_origins = options->cors_origin,
        .commit = POSENC_COMMIT,
        .clients = &clients_built_in,
        .page = *options->ui_dir ? &server->page : &page_built_in,
        .store = weights_store(server->weights),
        .presets = weights_store(server->presets),
        .print_time = print_time,
        .self = server,
        .is_ready = is_ready,
        .metrics_print = print_metrics,
        .metric_step = step_metric,
        .hypotheses_searched = count_hypotheses,
        .experiments = server->options.experiments,
        .experiment_ms = server->options.experiment_seconds * 1000,
        .now_ms = now_ms,
        .experiment_begin = begin_experiment,
        .experiment_end = end_experiment,
    };
    return true;
}

static void print_tokens(void *tokens, FILE *out) { tokens_print(tokens, out); }

static bool set_up_door(struct server *server)
{
    const struct options *options = &server->options;
    char error[TOKENS_ERROR_BYTES];
    const char *const secrets[] = {options->token_file, options->tls_cert, options->tls_key};
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
        server->files[i] = replaced_now(secrets[i]); /* before they are read */
    bool fine = networks_parse(options->trusted_proxy, &server->door.proxies, error, sizeof error) &&
                tls_read(&server->door.tls, options->tls_cert, options->tls_key, error, sizeof error);
    if (fine && *options->token_file) {
        server->door.tokens = tokens_new(options->token_file, error);
        fine = server->door.tokens;
    }
    if (!fine)
        log_error("%s", error);
    else if (server->door.tokens)
        metrics_append(print_tokens, server->door.tokens);
    return fine;
}

static bool set_up_loop(struct server *server)
{
    server->loops = loops_new(&server->options);
    if (!server->loops)
        return false;
    server->jobs = loops_first(server->loops);
    server->drain = jobs_timer_new(server->jobs, look_at_drain, server);
    server->watchdog = jobs_timer_new(server->jobs, give_sign_of_life, server);
    server->look = jobs_timer_new(server->jobs, look_for_secrets, server);
    return server->drain && server->watchdog && server->look &&
           jobs_on_signal(server->jobs, SIGTERM, on_end_signal, server) &&
           jobs_on_signal(server->jobs, SIGINT, on_end_signal, server) &&
           jobs_on_signal(server->jobs, SIGHUP, on_hangup, server);
}

static int listen_somewhere(struct server *server, char *url, char *error, size_t n_error)
{
    const struct options *options = &server->options;
    if (!*options->socket)
        return http_listen(options->host, (unsigned)options->port, server->door.tls.cert, options->tcp_cc, url, error,
                           n_error);
    int fd = http_listen_unix(options->socket, url, error, n_error);
    if (fd >= 0)
        server->socket = options->socket;
    return fd;
}

static bool start_serving(struct server *server)
{
    char url[HTTP_URL_BYTES], error[OPTIONS_TEXT_BYTES];
    int fd = listen_somewhere(server, url, error, sizeof error);
    if (fd < 0) {
        log_error("%s", error);
        return false;
    }
    if (!server->door.tokens && http_is_beyond_loopback(fd))
        log_warn("listening beyond this machine without --token-file: whoever reaches %s may use it", url);
    if (!weights_start(server->weights) || !weights_start(server->presets) ||
        !loops_serve(server->loops, &server->host, &server->door, fd))
        return false;
    log_listening(url);
    supervisor_say(&server->supervisor, "READY=1");
    if (server->door.tokens || server->door.tls.cert)
        jobs_timer_start(server->look, SECRETS_LOOK_MS, SECRETS_LOOK_MS);
    uint64_t sign_ms = server->supervisor.watchdog_ms / WATCHDOG_SIGNS;
    if (sign_ms)
        jobs_timer_start(server->watchdog, sign_ms, sign_ms);
    return true;
}

static int serve(struct server *server)
{
    log_setup((enum log_format)server->options.log_format, (enum log_level)server->options.log_level, STDERR_FILENO);
    options_log(&server->options);
    supervisor_init(&server->supervisor);
    if (*server->options.warning)
        log_warn("%s", server->options.warning);
    bool is_serving = set_up_process(server) && set_up_door(server) && set_up_loop(server) && start_serving(server);
    if (is_serving)
        loops_run(server->loops);
    if (server->socket)
        http_unlisten(server->socket);
    weights_stop(server->presets);
    weights_stop(server->weights); /* a job may wait for the store, and loops_free waits for jobs */
    loops_free(server->loops);
    jobs_end_workers();
    disposal_finish(); /* before the stores that its objects refer to are freed: replies hold stored weights */
    weights_free(server->presets); /* its store uses that of the weights */
    weights_free(server->weights);
    tokens_free(server->door.tokens);
    tls_drop(&server->door.tls);
    if (is_serving)
        log_info("ended");
    supervisor_drop(&server->supervisor);
    log_flush_all(LOG_GRACE_MS);
    return is_serving ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* A daemon may be started with its standard streams closed. The next descriptors opened would then take their numbers,
 * and log lines would be written into the event loop's own descriptors. */
static void fill_standard_streams(void)
{
    int fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO)
        close(fd);
}

int main(int argc, char **argv)
{
    static struct server server;
    fill_standard_streams();
    char error[OPTIONS_TEXT_BYTES];
    int code = EXIT_SUCCESS;
    switch (options_read(&server.options, argc, argv, environ, error)) {
    case OPTIONS_RUN: code = serve(&server); break;
    case OPTIONS_PRINT_CONFIG: options_print_config(&server.options, stdout); break;
    case OPTIONS_HELP: options_print_help(stdout); break;
    case OPTIONS_VERSION: printf("posencd %s (%s)\n", PE_VERSION, POSENC_COMMIT); break;
    case OPTIONS_ERROR:
        fprintf(stderr, "posencd: %s\n", error);
        code = EXIT_USAGE;
        break;
    }
    options_drop(&server.options);
    return code;
}
