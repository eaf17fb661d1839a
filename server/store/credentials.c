/* Owns the keys with which requests to the store are signed: those of the environment, or of a file that may change
 * while the server runs.
 *
 * The problem: keys of a machine's role are valid for hours, and whatever renews them replaces the file. A restart for
 * each renewal would lose what is in memory, and a signal would have to come from every such program. So each request
 * asks for the keys, and each time the file's status is compared with that of the last reading (inode, device, size,
 * time): a stat costs microseconds, a request to the store milliseconds. If the file cannot be read, the keys that it
 * had go on being used, with one warning: they are valid for a while, and a file that is being replaced may be missing
 * for a moment.
 *
 * Keys are never mixed: if there is a file, access key, secret and token are all of it, and a caller gets its copy
 * under the lock, so that all three are of one reading. Only the region falls back, to the environment and then to
 * us-east-1.
 *
 * Invariant: keys appear in no log and no error, and copies on a stack are cleared after use (credentials_wipe).
 *
 * The format is that of ~/.aws/credentials; its first section counts. AWS SDKs and Tools Reference Guide: shared config
 * and credentials files. */
#define _GNU_SOURCE /* explicit_bzero, O_CLOEXEC */
#include "server/store/store.h"

#include "server/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 16 * 1024 };

struct credential_source {
    pthread_mutex_t lock; /* protects all fields below */
    struct credentials now;
    struct stat status; /* of the file when it was read */
    bool is_lost;       /* it cannot be read; logged */
    char file[];        /* "": the environment */
};

void credentials_wipe(struct credentials *credentials)
{
    explicit_bzero(credentials->access_key, sizeof credentials->access_key);
    explicit_bzero(credentials->secret_key, sizeof credentials->secret_key);
    explicit_bzero(credentials->session_token, sizeof credentials->session_token);
}

/* ---- The environment ------------------------------------------------------------------------------------------- */

static void copy_text(char *dst, size_t room, const char *text)
{
    if (text && *text)
        snprintf(dst, room, "%s", text);
}

/* ---- The file -------------------------------------------------------------------------------------------------- */

static char *trimmed(char *text)
{
    text += strspn(text, " \t\r");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]))
        text[--n] = '\0';
    return text;
}

static void read_line(struct credentials *now, char *line)
{
    char *value = strchr(line, '=');
    if (!value)
        return;
    *value++ = '\0';
    const char *name = trimmed(line);
    value = trimmed(value);
    if (strcasecmp(name, "aws_access_key_id") == 0)
        copy_text(now->access_key, sizeof now->access_key, value);
    else if (strcasecmp(name, "aws_secret_access_key") == 0)
        copy_text(now->secret_key, sizeof now->secret_key, value);
    else if (strcasecmp(name, "aws_session_token") == 0)
        copy_text(now->session_token, sizeof now->session_token, value);
    else if (strcasecmp(name, "region") == 0 || strcasecmp(name, "aws_region") == 0)
        copy_text(now->region, sizeof now->region, value);
}

/* NULL, or why it cannot be read. */
static const char *read_file(struct credential_source *source)
{
    char text[FILE_BYTES_MAX + 1];
    struct stat status;
    int fd = open(source->file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 || fstat(fd, &status) != 0 ? -1 : read(fd, text, FILE_BYTES_MAX);
    int reason = n == FILE_BYTES_MAX ? EFBIG : errno;
    if (fd >= 0)
        close(fd);
    if (n < 0 || n == FILE_BYTES_MAX)
        return strerror(reason);
    text[n] = '\0';
    if (strlen(text) != (size_t)n)
        return "it has a byte 0, so it is no text";
    struct credentials now = {.region = ""};
    memcpy(now.region, source->now.region, sizeof now.region); /* the environment's, if the file has none */
    /* The first section counts. */
    char *rest = text, *line;
    unsigned n_sections = 0;
    while ((line = strsep(&rest, "\n"))) {
        n_sections += *trimmed(line) == '[';
        if (n_sections > 1)
            break;
        read_line(&now, line);
    }
    source->now = now;
    source->status = status;
    explicit_bzero(text, sizeof text);
    credentials_wipe(&now);
    return NULL;
}

static bool has_changed(const struct credential_source *source)
{
    struct stat now;
    const struct stat *then = &source->status;
    return stat(source->file, &now) != 0 || now.st_ino != then->st_ino || now.st_dev != then->st_dev ||
           now.st_size != then->st_size || now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
           now.st_mtim.tv_nsec != then->st_mtim.tv_nsec;
}

/* ---- The whole ------------------------------------------------------------------------------------------------- */

struct credential_source *credential_source_new(const char *file, char *error)
{
    size_t n = strlen(file) + 1;
    struct credential_source *source = calloc(1, sizeof *source + n);
    if (!source) {
        snprintf(error, CREDENTIALS_ERROR_BYTES, "no memory");
        return NULL;
    }
    pthread_mutex_init(&source->lock, NULL);
    memcpy(source->file, file, n);
    snprintf(source->now.region, sizeof source->now.region, "us-east-1");
    copy_text(source->now.access_key, sizeof source->now.access_key, getenv("AWS_ACCESS_KEY_ID"));
    copy_text(source->now.secret_key, sizeof source->now.secret_key, getenv("AWS_SECRET_ACCESS_KEY"));
    copy_text(source->now.session_token, sizeof source->now.session_token, getenv("AWS_SESSION_TOKEN"));
    copy_text(source->now.region, sizeof source->now.region, getenv("AWS_DEFAULT_REGION"));
    copy_text(source->now.region, sizeof source->now.region, getenv("AWS_REGION"));
    const char *why = *file ? read_file(source) : NULL;
    if (why)
        snprintf(error, CREDENTIALS_ERROR_BYTES, "--store-credentials %.200s: %s", file, why);
    else if (*file && !*source->now.access_key)
        snprintf(error, CREDENTIALS_ERROR_BYTES,
                 "--store-credentials %.200s has no line aws_access_key_id = …, aws_secret_access_key = …", file);
    if (!why && (!*file || *source->now.access_key))
        return source;
    credential_source_free(source);
    return NULL;
}

void credential_source_free(struct credential_source *source)
{
    if (!source)
        return;
    credentials_wipe(&source->now);
    pthread_mutex_destroy(&source->lock);
    free(source);
}

void credentials_get(struct credential_source *source, struct credentials *credentials)
{
    pthread_mutex_lock(&source->lock);
    if (*source->file && has_changed(source)) {
        const char *why = read_file(source);
        if (why && !source->is_lost)
            log_warn("--store-credentials %s cannot be read: %s; the keys that it had are used", source->file, why);
        else if (!why)
            log_info("--store-credentials %s is read again", source->file);
        source->is_lost = why;
    }
    *credentials = source->now;
    pthread_mutex_unlock(&source->lock);
}
