/* Asks api/ in process, and writes its answer: to a terminal, a pipe, or files that appear whole or not at all. */
#include "server/command/command.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The form of the answer ---- */

static bool is_plain(void)
{
    const char *terminal = getenv("TERM");
    return getenv("NO_COLOR") || (terminal && strcmp(terminal, "dumb") == 0);
}

static unsigned columns(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 8 ? size.ws_col : 80;
}

/* Is there a device or a pipe, whose name has no ending? */
static bool is_no_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

int output_choose(struct line *line)
{
    static const char *const endings[][2] = {{".npy", "npy"},   {".npz", "npz"}, {".safetensors", "safetensors"},
                                             {".json", "json"}, {".raw", "raw"}, {".png", "png"},
                                             {".txt", "text"},  {".tex", "tex"}};
    if (line->format)
        return DONE;
    for (size_t i = 0; line->output && i < sizeof endings / sizeof *endings; i++)
        if (ends_with(line->output, endings[i][0])) {
            line->format = endings[i][1];
            return DONE;
        }
    if (line->output && !is_no_file(line->output))
        return trouble("the ending of %s is no format; there are " OUTPUT_ENDINGS
                       ", and --format for a file of another "
                       "name",
                       line->output);
    if (line->output || line->command->shows == AS_JSON || !isatty(STDOUT_FILENO))
        return DONE;
    char number[16];
    snprintf(number, sizeof number, "%u", columns());
    line->format = "text";
    bool is_picture = line->command->shows == PICTURE || (line->command->shows == EITHER && line->outputs);
    if (line->command->shows == EITHER && !line->outputs)
        line->outputs = "[]";
    if (!is_picture)
        return DONE;
    line_add(&line->query, "columns", number);
    if (is_plain())
        line_add(&line->query, "ascii", "true");
    return DONE;
}

/* ---- Writing ---- */

/* Writes all pieces. False: errno has the reason. */
static bool write_pieces(const struct api_reply *reply, FILE *out)
{
    char *piece = aligned_alloc(64, (reply->body->piece_max + 64) / 64 * 64);
    bool is_written = piece;
    for (uint64_t i = 0; is_written && i < reply->body->n_pieces; i++) {
        size_t n = api_reply_piece(reply, i, piece);
        if (n == 0 && reply->body->n_pieces == UINT64_MAX)
            break;
        is_written = fwrite(piece, 1, n, out) == n;
    }
    free(piece);
    return is_written && fflush(out) == 0;
}

enum { TENSORS_MAX = 64 };

/* Files in the making: each is written beside its place, and moved there when all is well. A signal that ends the
 * command removes them. */
static struct draft {
    char *path;
    char *volatile beside; /* NULL: what is at path is no file but a device or a pipe, and is written itself */
} drafts[TENSORS_MAX];

static void remove_drafts(int signum)
{
    for (size_t i = 0; i < TENSORS_MAX; i++)
        if (drafts[i].beside)
            unlink(drafts[i].beside);
    signal(signum, SIG_DFL);
    raise(signum); /* it ends the command when this function returns */
}

static void draft_forget(struct draft *draft)
{
    char *beside = draft->beside;
    draft->beside = NULL;
    free(beside);
}

static void draft_drop(struct draft *draft)
{
    if (draft->beside)
        unlink(draft->beside);
    draft_forget(draft);
    free(draft->path);
}

static bool draft_write(struct draft *draft, const struct api_reply *reply)
{
    struct stat about;
    struct bytes beside = {NULL, 0, 0};
    if (stat(draft->path, &about) == 0 && !S_ISREG(about.st_mode)) {
        FILE *device = fopen(draft->path, "wb");
        bool is_written = device && write_pieces(reply, device);
        return device && fclose(device) == 0 && is_written;
    }
    bytes_add(&beside, draft->path);
    bytes_add(&beside, ".XXXXXX");
    draft->beside = beside.p; /* from now on: mkstemp writes each name there before it opens the file */
    int fd = mkstemp(beside.p);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "wb");
    mode_t mask = umask(0);
    umask(mask);
    if (fd < 0)
        draft_forget(draft);
    bool is_written = out && write_pieces(reply, out) && fchmod(fd, 0666 & ~mask) == 0;
    return out && fclose(out) == 0 && is_written;
}

static bool draft_finish(struct draft *draft)
{
    bool is_there = !draft->beside || rename(draft->beside, draft->path) == 0;
    if (is_there)
        draft_forget(draft);
    return is_there;
}

static int write_file(const struct api_reply *reply, const char *path)
{
    struct draft *draft = &drafts[0];
    draft->path = strdup(path);
    bool is_written = draft->path && draft_write(draft, reply) && draft_finish(draft);
    int status = is_written ? DONE : trouble("cannot write %s: %s", path, strerror(errno));
    draft_drop(draft);
    return status;
}

/* A reader that has gone ends the command without a word. */
static int write_out(const struct api_reply *reply)
{
    bool is_written = write_pieces(reply, stdout);
    if (is_written && isatty(STDOUT_FILENO) && strcmp(reply->content_type, "application/json") == 0)
        putchar('\n');
    return is_written || errno == EPIPE ? DONE : trouble("cannot write: %s", strerror(errno));
}

/* ---- Asking ---- */

/* What the service has by default, without what several clients share. */
static const struct api_host host = {.max_body = UINT64_C(1) << 40,
                                     .max_answer = UINT64_C(1) << 40,
                                     .max_pictures = UINT64_C(1) << 30,
                                     .max_work = UINT64_C(10000000000000),
                                     .max_analysis = UINT64_C(1000000000000),
                                     .commit = "",
                                     .is_in_process = true};

/* What is sent. */
struct sending {
    const struct line *line;
    const char *method, *path, *type;
    struct bytes body, query;
};

/* Does each tensor get a file of its own, if there are several? */
static bool is_split(const struct line *line)
{
    return line->output && ends_with(line->output, ".npy") && strcmp(line->format, "npy") == 0;
}

static struct api_reply *ask(struct sending *s, const char *outputs, const char *format)
{
    s->query.n = 0;
    bytes_add(&s->query, s->line->query.p ? s->line->query.p : "");
    if (outputs)
        line_add(&s->query, "outputs", outputs);
    if (format)
        line_add(&s->query, "format", format);
    struct api_call call = {.access = API_ACCESS_OPEN,
                            .method = s->method,
                            .path = s->path,
                            .query = s->query.p,
                            .content_type = s->type,
                            .accept_language = listing_lang() == PE_ZH ? "zh" : "en",
                            .body = s->body.p,
                            .body_bytes = s->body.n,
                            .body_is_ours = !is_split(s->line), /* it is sent again then */
                            .is_completed = true};
    return api_ask(&host, &call);
}

/* The words of a shell for the service's: the field is an option here, or the member of an object is, whose name is
 * then the prefix. */
static bool print_unknown(const struct line *line, const char *sentence)
{
    char name[80], prefix[80] = "", nearest[80];
    int used = 0, more = 0;
    if (sscanf(sentence, "unknown field \"%79[^\"]\"%n", name, &used) != 1)
        return false;
    bool is_member = sscanf(sentence + used, " in %78[a-z_]%n", prefix, &more) == 1;
    if (is_member ? !line_has_members(line, prefix) : !line_has(line, name))
        return false;
    used += more;
    strcat(prefix, is_member ? "." : "");
    bool is_near = sscanf(sentence + used, "; nearest: \"%79[^\"]\"", nearest) == 1;
    if (!is_near && strncmp(sentence + used, "; GET ", 6) != 0) /* a field of another command */
        return false;
    fputs("posenc: unknown option ", stderr);
    listing_print_option(stderr, prefix, name);
    fputs(is_near ? "; nearest: " : "; posenc schemes NAME lists the fields of a scheme", stderr);
    if (is_near)
        listing_print_option(stderr, prefix, nearest);
    fputc('\n', stderr);
    return true;
}

static int refuse(const struct line *line, const struct api_reply *reply)
{
    char sentence[PE_DETAIL_MAX + PE_POINTER_MAX + 16];
    api_refusal_print(reply, sentence, sizeof sentence);
    return print_unknown(line, sentence) ? TROUBLE : trouble("%s", sentence);
}

/* A check has failed if the belief does not fit; a diagnosis, if it has no explanation. */
static int verdict(const struct line *line, const struct api_reply *reply)
{
    const char *fits = api_reply_find(reply, "Posenc-Fits");
    if (!fits || strcmp(fits, "?1") == 0)
        return DONE;
    if (strcmp(line->command->name, "check") == 0)
        return DIFFERS;
    const char json[] = "{\"explained\":true", text[] = "explained:", *body = reply->body->bytes;
    bool is_explained =
        body && (strncmp(body, json, sizeof json - 1) == 0 || strncmp(body, text, sizeof text - 1) == 0);
    return is_explained ? DONE : DIFFERS;
}

/* ---- Several tensors to .npy: a file each ---- */

static int write_tensor(struct sending *s, const char *name, struct draft *draft)
{
    struct api_reply *reply = ask(s, name, "npy");
    int status = DONE;
    /* "x.npy" and "cos": "x.cos.npy". */
    struct bytes b = {NULL, 0, 0};
    bytes_add(&b, s->line->output);
    b.n -= strlen(".npy");
    b.p[b.n] = '\0';
    bytes_add(&b, ".");
    bytes_add(&b, name);
    bytes_add(&b, ".npy");
    draft->path = b.p;
    if (reply->status >= 400)
        status = refuse(s->line, reply);
    else if (!draft_write(draft, reply))
        status = trouble("cannot write %s: %s", draft->path, strerror(errno));
    api_reply_free(reply);
    return status;
}

/* All files appear, or none; then standard error names them. */
static int write_each(struct sending *s, const char *const *names, size_t n)
{
    int status = DONE;
    for (size_t i = 0; i < n && !status; i++)
        status = write_tensor(s, names[i], &drafts[i]);
    for (size_t i = 0; i < n && !status; i++)
        if (!draft_finish(&drafts[i]))
            status = trouble("cannot write %s: %s", drafts[i].path, strerror(errno));
    if (!status)
        fprintf(stderr, "posenc: %zu tensors:", n);
    for (size_t i = 0; i < n; i++) {
        if (!status)
            fprintf(stderr, "%s %s", i ? "," : "", drafts[i].path);
        draft_drop(&drafts[i]);
    }
    if (!status)
        fputc('\n', stderr);
    return status;
}

/* If an answer was refused as .npy because it has several tensors. False: it was not. */
static bool has_several(struct sending *s, const struct api_reply *refusal, int *status)
{
    const char *names[TENSORS_MAX];
    if (!is_split(s->line) || refusal->status != 406)
        return false;
    struct api_reply *all = ask(s, s->line->outputs, "npz"); /* a file that may have several; nothing is filled */
    size_t n = all->status == 200 ? api_reply_tensors(all, names, TENSORS_MAX) : 0;
    bool is_several = n > 1 && n <= TENSORS_MAX;
    if (is_several)
        *status = write_each(s, names, n);
    api_reply_free(all);
    return is_several;
}

int output_ask(const struct line *line, const char *method, const char *path)
{
    struct sending s = {.line = line, .method = method, .path = path};
    int status = line_body(line, &s.body, &s.type);
    /* Those that end a process unless it catches them, but for SIGPIPE and SIGXFSZ, which main ignores, and those of
     * our mistakes. A signal that is ignored (nohup) stays ignored. */
    static const int all[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (signal(all[i], remove_drafts) == SIG_IGN)
            signal(all[i], SIG_IGN);
    struct api_reply *reply = status ? NULL : ask(&s, line->outputs, line->format);
    if (reply && reply->status >= 400) {
        if (!has_several(&s, reply, &status))
            status = refuse(line, reply);
    } else if (reply) {
        status = line->output ? write_file(reply, line->output) : write_out(reply);
        status = status ? status : verdict(line, reply);
    }
    api_reply_free(reply);
    free(s.body.p);
    free(s.query.p);
    return status;
}
