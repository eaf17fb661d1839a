/* posencd: reads the options, sets up the parts, and serves until a signal ends it.
 *
 * Limits and environment are set before any thread, and before any library that counts processors. The socket is opened
 * last, so that whatever is wrong with options, tokens, certificates or stores is reported before a client can connect.
 * At the end jobs stop before the loops that wait for them, and large memory is freed before the stores that its
 * objects refer to.
 *
 * What Linux does to a server in a container is decided here: --max-memory follows the control group's limit, since
 * malloc is not refused there and the process is killed instead; --workers follows the quota of processors and not
 * their number. */
#include "api/api.h"
#include "core/inside.h"
#include "server/server.h"
#include "server/process/process.h"
#include "server/memory/memory.h"
#include "server/page/page.h"
#include "server/store/weights/weights.h"

#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
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
    WATCHDOG_SIGNS = 4,           /* signs of life in the time after which the service manager would end the process */
    FDS_BESIDE_CONNECTIONS = 160, /* includes connections that are being turned away or closed (accept.c) */
    FDS_OF_A_LOOP = 8,
    IO_THREADS_MAX = 64,
    MAPPED_MIN = 1024 * 1024 /* heap blocks of this many bytes or more get their own mapping */
};

#define MIB (UINT64_C(1) << 20)
#define STACK_MIN (UINT64_C(512) << 10) /* the default is 8 MiB; with 64 KiB a table of 80 MiB ended the process */
#define THREAD_BYTES (16 * MIB)         /* address space of a thread: its stack, and some of the heap */
#define HEAP_BYTES (64 * MIB)           /* address space that glibc reserves for an arena */

#define MEMORY_MIN (UINT64_C(1) << 20)
#define MEMORY_MAX (UINT64_C(2) << 30)
#define WEIGHTS_MIN (UINT64_C(1) << 10)
#define WEIGHTS_MAX (UINT64_C(1) << 30)
#define PROGRAM_BYTES (UINT64_C(64) << 20) /* code, libraries, buffers of connections, presets, cached answers */

struct server {
    struct options options;
    struct api_host host;
    struct api_page page; /* with --ui-dir */
    struct stored stored;
    struct http_door door;
    struct loops *loops;
    struct loop_timer *watchdog; /* of the first loop */
    struct supervisor supervisor;
    struct shutdown shutdown;
    struct reload reload;
};

/* ---- The process ----------------------------------------------------------------------------------------------- */

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

/* Refuses limits under which requests would never end, or the process would die, instead of being refused one by one.
 */
static bool has_room(const struct options *options)
{
    uint64_t n = options->workers + options->experiments, room = process_address_room();
    uint64_t needed = n * (PE_GEMM_BYTES + THREAD_BYTES) + (1 + options->io_threads) * HEAP_BYTES;
    if (process_stack_limit() < STACK_MIN)
        log_error("a stack may have %llu KiB (ulimit -s); needed: %llu",
                  (unsigned long long)process_stack_limit() >> 10, (unsigned long long)STACK_MIN >> 10);
    else if (room < needed)
        log_error("the limit of address space (ulimit -v) leaves %llu MiB; %llu workers and %llu experiments need "
                  "%llu: raise it, or "
                  "lower --workers and --experiments",
                  (unsigned long long)(room / MIB), (unsigned long long)options->workers,
                  (unsigned long long)options->experiments, (unsigned long long)(needed / MIB));
    else if (room < UINT64_MAX)
        pe_gemm_reserve((size_t)n);
    return room >= needed && process_stack_limit() >= STACK_MIN;
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

static uint64_t at_most(uint64_t n, uint64_t max) { return n < max ? n : max; }

/* A part of what the control group allows, but at most `most` if that is less. */
static uint64_t choose(const char *flag, const char *part, uint64_t n, uint64_t most, uint64_t allowed)
{
    uint64_t chosen = at_most(n, most);
    log_info("%s is %" PRIu64 " bytes: %s%s of the %" PRIu64 " that the control group allows", flag, chosen,
             chosen < n ? "less than " : "", part, allowed);
    return chosen;
}

/* With more than the group allows, the kernel would end the process in the middle of its work: it does not start. */
static bool set_up_memory(struct options *options)
{
    uint64_t allowed = process_memory_limit(""), left = allowed - at_most(PROGRAM_BYTES, allowed);
    /* --max-memory and --max-weights where they are 0: half and a quarter of what the control group allows; less if the
     * other one is given, or if the group is so small that these would leave less than the program needs. */
    bool has_memory = options->max_memory, has_weights = options->max_weights;
    uint64_t for_memory = has_weights ? left - at_most(options->max_weights, left) : left / 3 * 2;
    if (!has_memory && at_most(allowed / 2, for_memory) >= MEMORY_MAX)
        options->max_memory = MEMORY_MAX;
    else if (!has_memory)
        options->max_memory =
            choose("--max-memory", "half", allowed / 2, for_memory < MEMORY_MIN ? MEMORY_MIN : for_memory, allowed);
    uint64_t for_weights = has_memory ? left - at_most(options->max_memory, left) : left / 3;
    if (!has_weights && at_most(allowed / 4, for_weights) >= WEIGHTS_MAX)
        options->max_weights = WEIGHTS_MAX;
    else if (!has_weights)
        options->max_weights = choose("--max-weights", "a quarter", allowed / 4,
                                      for_weights < WEIGHTS_MIN ? WEIGHTS_MIN : for_weights, allowed);
    if (options->max_memory <= left && options->max_weights <= left - options->max_memory)
        return true;
    log_error("--max-memory (%" PRIu64 ") + --max-weights (%" PRIu64 ") + 64 MiB for the program are more than the "
              "%" PRIu64 " bytes that the control group allows: lower one of the flags, or raise its limit",
              options->max_memory, options->max_weights, allowed);
    return false;
}

static bool set_up_page(struct server *server)
{
    const struct options *options = &server->options;
    char error[PAGE_FOLDER_ERROR_BYTES];
    if (strpbrk(options->frame_origin, ";,'\"")) /* they are part of a Content-Security-Policy */
    {
        log_error("--frame-origin \"%s\" is not an origin as in https://example.org, or *", options->frame_origin);
        return false;
    }
    if (!*options->ui_dir || page_folder_open(&server->page, options->ui_dir, error))
        return true;
    log_error("%s", error);
    return false;
}

/* Called before any thread runs, and before any library that counts processors is initialised. */
static bool set_up_process(struct server *server)
{
    struct options *options = &server->options;
    if (options->workers == 0)
        options->workers = process_n_cores();
    jobs_set_workers((size_t)options->workers);
    pe_on_wait(job_wait);
    if (options->io_threads == 0)
        options->io_threads = default_io_threads();
    if (!set_up_memory(options))
        return false;
    /* Limits the number of arenas: the I/O threads are the ones that allocate and free for every request. Gives every
     * large block its own mapping, so that memory of a big request returns to the system when it is freed, instead of
     * staying with the thread that freed it. The threshold for "large" is above the daemon's block for a stream, half a
     * megabyte allocated for each answer: as a mapping, its pages would be cleared by the kernel each time, which
     * doubled the time of an answer of 1 MiB. An arena keeps 2 MiB at its end; otherwise that block would be returned
     * and requested again for every answer, too. */
    mallopt(M_ARENA_MAX, 1 + (int)options->io_threads);
    mallopt(M_MMAP_THRESHOLD, MAPPED_MIN);
    mallopt(M_TRIM_THRESHOLD, 2 * MAPPED_MIN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN); /* until the loop handles it: the folder is still being read */
    signal(SIGXFSZ,
           SIG_IGN); /* a write beyond the process's file size limit then fails instead of killing the process */
    pe_gemm_setup();
    experiments_allow(options->experiments);
    limit_connections(options);
    if (!choose_kernels(options->kernels) || !has_room(options) || !set_up_page(server))
        return false;
    admission_setup(options->max_memory, options->max_streams);
    metrics_set(METRICS_WORKERS, (int64_t)options->workers);
    metrics_setup(PE_VERSION, POSENC_COMMIT, pe_isa_name(pe_isa()));
    if (!stored_open(&server->stored, options))
        return false;
    host_init(&server->host, options, &server->stored, &server->shutdown);
    metrics_append(host_print_metrics, NULL);
    server->host.commit = POSENC_COMMIT;
    server->host.clients = &clients_built_in;
    server->host.page = *options->ui_dir ? &server->page : &page_built_in;
    return true;
}

/* ---- The server ------------------------------------------------------------------------------------------------ */

static void print_tokens(void *tokens, FILE *out) { tokens_print(tokens, out); }

static bool set_up_door(struct server *server)
{
    const struct options *options = &server->options;
    char error[TOKENS_ERROR_BYTES];
    reload_init(&server->reload, options, &server->stored, &server->shutdown, &server->door);
    bool fine = door_open(&server->door, options, error);
    if (!fine)
        log_error("%s", error);
    else if (server->door.tokens)
        metrics_append(print_tokens, server->door.tokens);
    return fine;
}

/* If one of the loops is stopped, the sign is left out, and the service manager restarts the process. */
static void give_sign_of_life(void *self)
{
    struct server *server = self;
    if (loops_have_turned(server->loops))
        supervisor_say(&server->supervisor, "WATCHDOG=1");
}

static bool set_up_loop(struct server *server)
{
    server->loops = loops_new(&server->options);
    if (!server->loops)
        return false;
    struct loop *loop = loops_first(server->loops);
    server->watchdog = loop_timer_new(loop, give_sign_of_life, server);
    return server->watchdog &&
           shutdown_setup(&server->shutdown, &server->options, server->loops, &server->stored, &server->supervisor) &&
           reload_setup(&server->reload, loop);
}

static bool start_serving(struct server *server)
{
    char url[HTTP_URL_BYTES], error[OPTIONS_TEXT_BYTES];
    int fd = transport_listen(&server->options, &server->door, url, error, sizeof error);
    if (fd < 0) {
        log_error("%s", error);
        return false;
    }
    if (!stored_start(&server->stored) || !loops_serve(server->loops, &server->host, &server->door, fd))
        return false;
    log_listening(url);
    supervisor_say(&server->supervisor, "READY=1");
    reload_start(&server->reload);
    uint64_t sign_ms = server->supervisor.watchdog_ms / WATCHDOG_SIGNS;
    if (sign_ms)
        loop_timer_start(server->watchdog, sign_ms, sign_ms);
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
    transport_unlisten(server->options.socket);
    stored_stop(&server->stored); /* a job may wait for the store, and loops_free waits for jobs */
    loops_free(server->loops);
    jobs_end_workers();
    disposal_finish(); /* before the stores that its objects refer to are freed: replies hold stored weights */
    stored_free(&server->stored);
    door_close(&server->door);
    if (is_serving)
        log_info("ended");
    supervisor_drop(&server->supervisor);
    log_flush_all(LOG_GRACE_MS);
    return is_serving ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static struct server server;
    process_start_without_blas_threads(argv);
    /* A daemon may be started with its standard streams closed. The next descriptors opened would then take their
     * numbers, and log lines would be written into the event loop's own descriptors. */
    int fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd > STDERR_FILENO)
        close(fd);
    char error[OPTIONS_TEXT_BYTES];
    int code = EXIT_SUCCESS;
    switch (options_read(&server.options, argc, argv, environ, error)) {
    case OPTIONS_RUN: code = serve(&server); break;
    case OPTIONS_PRINT_CONFIG: options_print_config(&server.options, stdout); break;
    case OPTIONS_PRINT_MAN: options_print_man(stdout); break;
    case OPTIONS_SWEEP: code = stored_sweep(&server.options) ? EXIT_SUCCESS : EXIT_FAILURE; break;
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
