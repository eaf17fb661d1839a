/* The command posenc: asks api/ in process, as a request over HTTP would, without a server and without a socket.
 *
 * Options become the query of the request and files the parts of a multipart body, both of which api/ reads already; so
 * there is one reader of fields, one set of refusals, and the bytes of an answer are those of the service. Here is what
 * each command does; command/ has the words of a command line, the way of an answer to its place, and what is printed
 * from rows. */
#include "core/inside.h"
#include "server/command/command.h"
#include "server/process/process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- What each does ---- */

/* What is no file is a text as it was pasted if it has a blank, else a preset, and if it is none either, api/ names the
 * nearest. */
static int of_model(struct line *line)
{
    struct stat about;
    const char *model = line->n_operands ? line->operands[0] : NULL;
    char path[32];
    int status = DONE;
    if (line->n_operands > 1)
        return trouble("%s takes one model; found: %s", line->command->name, line->operands[1]);
    if (model && stat(model, &about) != 0 && strcmp(model, "-") != 0)
        line_add(&line->query, strpbrk(model, " \t\n") ? "said" : "preset", model);
    else if (model && ends_with(model, ".gguf"))
        status = line_add_file(line, "gguf", model);
    else if (model)
        status = line_add_model(line, model);
    snprintf(path, sizeof path, "/%s", line->command->name);
    return status ? status : output_ask(line, "POST", path);
}

/* A terminal gets a table, made from the rows. */
static int schemes(struct line *line)
{
    const char *name = line->n_operands ? line->operands[0] : NULL;
    char path[160] = "/schemes";
    if (line->n_operands > 1)
        return trouble("%s takes one scheme; found: %s", line->command->name, line->operands[1]);
    if (name)
        snprintf(path, sizeof path, "/schemes/%.120s", name);
    const struct pe_scheme_info *scheme = name ? pe_scheme_find(name) : NULL;
    if (line->output || !isatty(STDOUT_FILENO) || (name && !scheme))
        return output_ask(line, "GET", path);
    return scheme ? listing_scheme(scheme) : listing_schemes();
}

static int answer(struct line *line)
{
    const struct command *command = line->command;
    if (line->wants_help)
        return listing_help(command);
    if (command->kind == COMPLETION)
        return listing_completion(line);
    if (command->kind == ENDPOINT && line->n_operands)
        return trouble("%s takes options, no word \"%s\"", command->name, line->operands[0]);
    int status = output_choose(line);
    if (status)
        return status;
    if (command->kind == MODEL)
        return of_model(line);
    if (command->kind == SCHEMES)
        return schemes(line);
    if (command->kind == PRESETS) {
        struct bytes words = {NULL, 0, 0};
        for (size_t i = 0; i < line->n_operands; i++) {
            bytes_add(&words, i ? " " : "");
            bytes_add(&words, line->operands[i]);
        }
        if (words.n)
            line_add(&line->query, "query", words.p);
        free(words.p);
        return output_ask(line, "GET", "/presets");
    }
    char path[32];
    snprintf(path, sizeof path, "/%s", command->name);
    return output_ask(line, "POST", path);
}

/* ---- The start ---- */

/* A matrix product needs a buffer, for which OpenBLAS asks without end. Commands that look something up have none. */
static int check_room(const struct command *command)
{
    uint64_t room = process_address_room();
    if (command->kind != ENDPOINT || room == UINT64_MAX)
        return DONE;
    if (room < PE_GEMM_BYTES)
        return trouble("the limit of address space (ulimit -v) leaves %llu MiB; %s needs %llu: raise it",
                       (unsigned long long)room >> 20, command->name, (unsigned long long)PE_GEMM_BYTES >> 20);
    pe_gemm_reserve(1);
    return DONE;
}

static int run(int argc, char **argv)
{
    static struct line line;
    if (argc < 2)
        return trouble("a command is missing; posenc --help lists them");
    if (strcmp(argv[1], "--help") == 0)
        return listing_help(NULL);
    if (strcmp(argv[1], "--version") == 0)
        return printf("posenc %s\n", PE_VERSION), DONE;
    if (strcmp(argv[1], "--print-man") == 0)
        return listing_man();
    if (strcmp(argv[1], "--complete") == 0)
        return listing_complete(argc - 2, argv + 2);
    if (!(line.command = command_find(argv[1]))) {
        const char *names[32] = {NULL};
        for (size_t i = 0; commands[i].name && i + 1 < sizeof names / sizeof *names; i++)
            names[i] = commands[i].name;
        const char *nearest = pe_nearest(argv[1], names);
        return trouble("unknown command %s%s%s", argv[1], nearest ? "; nearest: " : "; posenc --help lists them",
                       nearest ? nearest : "");
    }
    int status = line_read(&line, argc - 2, argv + 2);
    status = status ? status : check_room(line.command);
    status = status ? status : answer(&line);
    free(line.query.p);
    return status;
}

int main(int argc, char **argv)
{
    process_start_without_blas_threads(argv);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of file sizes then fails, as one to a full disk does */
    pe_gemm_setup();
    pe_speak_in(listing_lang());
    int status = run(argc, argv);
    return fflush(stdout) && errno != EPIPE ? trouble("cannot write: %s", strerror(errno)) : status;
}
