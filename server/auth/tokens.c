/* Owns the tokens, their names, and the file that they come from. Quotas are in accounts.c.
 *
 * A token is a secret of one line. The table has digests of tokens, and logs, errors and metrics have names; text that
 * held secrets is wiped before it is freed. A client's word is digested and compared with every token, also after a
 * match, so that time does not show how close a guess is. Reading the file again makes a new table beside the old one,
 * which requests in progress still hold; usage stays with the names. */
#define _GNU_SOURCE /* explicit_bzero */
#include "server/auth/auth.h"
#include "server/loop/loop.h"
#include "server/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20, TOKEN_CHARS_MAX = 512, ACCOUNTS_MAX = 4 * TOKENS_MAX };

struct token {
    char name[TOKENS_NAME_MAX + 1];
    uint8_t digest[DIGEST_BYTES];
    enum api_access access;
    struct quotas quotas;
    struct account *account; /* set once the whole file has been accepted */
    unsigned line;
};

struct table {
    size_t n;
    struct token tokens[]; /* one for each line of the file */
};

struct tokens {
    const char *path;         /* borrowed */
    pthread_rwlock_t lock;    /* protects the two fields below */
    struct table *table;      /* never NULL after tokens_new */
    struct account *accounts; /* the list only grows, so holders of an account need no reference count */
};

/* ---- One line -------------------------------------------------------------------------------------------------- */

static const char name_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
static const char token_chars[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/"; /* RFC 6750 */
static const char blanks[] = " \t\r";

/* No word of the line appears in an error text: if the words are in the wrong order, any of them may be the secret. */
static bool fail(char *error, const char *path, unsigned line, const char *why)
{
    snprintf(error, TOKENS_ERROR_BYTES, "--token-file %.200s, line %u: %s", path, line, why);
    return false;
}

static bool is_name(const char *word)
{
    size_t n = strspn(word, name_chars);
    return n > 0 && n <= TOKENS_NAME_MAX && !word[n] && !strchr("._-", *word);
}

static bool is_token(const char *word)
{
    size_t n = strspn(word, token_chars), n_end = strspn(word + n, "=");
    return n > 0 && n + n_end <= TOKEN_CHARS_MAX && !word[n + n_end];
}

static bool read_secret(const char *word, uint8_t *digest)
{
    if (strncmp(word, "sha256:", 7) == 0)
        return digest_parse(word + 7, strlen(word + 7), digest);
    if (!is_token(word))
        return false;
    digest_make(word, strlen(word), digest);
    return true;
}

/* The placeholders of deploy/tokens.example are public. */
static bool is_placeholder(const char *word)
{
    return strncmp(word + (strncmp(word, "sha256:", 7) == 0 ? 7 : 0), "REPLACE-ME", 10) == 0;
}

static bool read_access(const char *word, enum api_access *access)
{
    bool may_write = strcmp(word, "write") == 0;
    *access = may_write ? API_ACCESS_WRITE : API_ACCESS_READ;
    return may_write || strcmp(word, "read") == 0;
}

/* Returns the sentence that states what is wrong with a line, or NULL if nothing is. text is cut into words. */
static const char *read_line(char *text, struct token *token)
{
    char *rest = NULL, *name = strtok_r(text, blanks, &rest), *secret = strtok_r(NULL, blanks, &rest);
    char *access = strtok_r(NULL, blanks, &rest);
    if (!name || !is_name(name))
        return "the first word is not a NAME: up to 64 of A-Z a-z 0-9 . _ -, beginning with a letter or digit";
    if (secret && is_placeholder(secret))
        return "the second word is the example's TOKEN; replace it by your own (openssl rand -hex 24)";
    if (!secret || !read_secret(secret, token->digest))
        return "the second word is not a TOKEN: up to 512 of A-Z a-z 0-9 - . _ ~ + / and = at its end, or sha256: and "
               "64 hexadecimal digits";
    if (!access || !read_access(access, &token->access))
        return "the third word is not read or write";
    snprintf(token->name, sizeof token->name, "%s", name);
    for (char *word; (word = strtok_r(NULL, blanks, &rest));)
        if (!quotas_parse(word, &token->quotas))
            return "after NAME TOKEN read|write may follow, once each, requests=N/s, work=SECONDS/s (of computing; "
                   "also /m and /h) and streams=N";
    return NULL;
}

static bool check_new(const struct table *table, const struct token *token, const char *path, char *error)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct token *other = &table->tokens[i];
        bool is_same_name = strcmp(other->name, token->name) == 0;
        char why[80];
        snprintf(why, sizeof why, "this %s is in line %u already", is_same_name ? "NAME" : "TOKEN", other->line);
        if (is_same_name || digest_is_same(other->digest, token->digest))
            return fail(error, path, token->line, why);
    }
    return true;
}

static bool add_line(struct table *table, char *text, unsigned line, const char *path, char *error)
{
    text += strspn(text, blanks);
    if (!*text || *text == '#')
        return true;
    struct token token = {.line = line};
    if (table->n == TOKENS_MAX)
        return fail(error, path, line, "there are 1024 tokens already, and no more are allowed");
    const char *why = read_line(text, &token);
    if (why)
        return fail(error, path, line, why);
    if (!check_new(table, &token, path, error))
        return false;
    uint8_t easy[DIGEST_BYTES];
    digest_make("test", 4, easy);
    if (digest_is_same(token.digest, easy))
        log_warn("--token-file %s, line %u: the TOKEN is the word test, which is easy to guess", path, line);
    table->tokens[table->n++] = token;
    return true;
}

/* ---- The file -------------------------------------------------------------------------------------------------- */

static bool parse(struct table *table, char *text, const char *path, char *error)
{
    unsigned line = 0;
    for (char *next; text; text = next) {
        next = strchr(text, '\n');
        if (next)
            *next++ = '\0';
        if (!add_line(table, text, ++line, path, error))
            return false;
    }
    if (table->n > 0)
        return true;
    snprintf(error, TOKENS_ERROR_BYTES, "--token-file %.200s has no tokens; its lines are NAME TOKEN read|write", path);
    return false;
}

/* Returns the number of bytes read into text, which is less than its room; SIZE_MAX: errno gives the reason. */
static size_t read_file(const char *path, char *text, bool *is_open_to_others)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = -1, used = 0;
    if (fd < 0)
        return SIZE_MAX;
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode))
        while ((n = read(fd, text + used, (size_t)(FILE_BYTES_MAX - used))) > 0)
            used += n;
    else
        errno = S_ISDIR(about.st_mode) ? EISDIR : EINVAL;
    *is_open_to_others = about.st_mode & (S_IROTH | S_IWOTH);
    int reason = errno;
    close(fd);
    errno = used == FILE_BYTES_MAX ? EFBIG : reason;
    return n < 0 || used == FILE_BYTES_MAX ? SIZE_MAX : (size_t)used;
}

static bool read_text(const char *path, char *text, size_t *n, char *error)
{
    bool is_open_to_others = false;
    *n = read_file(path, text, &is_open_to_others);
    if (*n == SIZE_MAX) {
        snprintf(error, TOKENS_ERROR_BYTES, "--token-file %.200s cannot be read: %s", path, strerror(errno));
        return false;
    }
    text[*n] = '\0';
    if (is_open_to_others)
        log_warn("--token-file %s: every user of this machine may read or change it; chmod o= would end that", path);
    return true;
}

static size_t n_lines(const char *text)
{
    size_t n = 1;
    while ((text = strchr(text, '\n'))) {
        text++;
        n++;
    }
    return n;
}

static struct table *table_parse(const char *path, char *text, size_t n, char *error)
{
    if (strlen(text) != n) {
        snprintf(error, TOKENS_ERROR_BYTES, "--token-file %.200s has a byte 0: it is no text", path);
        return NULL;
    }
    size_t room = n_lines(text) < TOKENS_MAX ? n_lines(text) : TOKENS_MAX;
    struct table *table = calloc(1, sizeof *table + room * sizeof *table->tokens);
    if (!table)
        snprintf(error, TOKENS_ERROR_BYTES, "no memory for the tokens");
    if (table && parse(table, text, path, error))
        return table;
    free(table);
    return NULL;
}

/* The text contains the secrets, so it is wiped before its memory is freed. */
static struct table *table_new(const char *path, char *error)
{
    char *text = malloc(FILE_BYTES_MAX + 1);
    struct table *table = NULL;
    size_t n;
    if (!text) {
        snprintf(error, TOKENS_ERROR_BYTES, "no memory for the tokens");
        return NULL;
    }
    if (read_text(path, text, &n, error))
        table = table_parse(path, text, n, error);
    explicit_bzero(text, FILE_BYTES_MAX + 1);
    free(text);
    return table;
}

/* ---- All of them ----------------------------------------------------------------------------------------------- */

/* A name that already has an account keeps it, with the quotas used so far: reading the file again does not reset
 * usage. */
static bool open_accounts(struct tokens *tokens, struct table *table, char *error)
{
    for (size_t i = 0; i < table->n; i++) {
        struct token *token = &table->tokens[i];
        token->account = accounts_open(&tokens->accounts, ACCOUNTS_MAX, token->name);
        if (token->account)
            continue;
        snprintf(error, TOKENS_ERROR_BYTES, "no memory for another name, or %d names since the start already",
                 (int)ACCOUNTS_MAX);
        return false;
    }
    for (size_t i = 0; i < table->n; i++)
        account_set_quotas(table->tokens[i].account, &table->tokens[i].quotas);
    return true;
}

/* Takes the table. NULL (there is no table): error[] gives the reason. */
static struct tokens *tokens_of(const char *path, struct table *table, char *error)
{
    struct tokens *tokens = table ? calloc(1, sizeof *tokens) : NULL;
    if (table && !tokens)
        snprintf(error, TOKENS_ERROR_BYTES, "no memory for the tokens");
    if (!tokens) {
        free(table);
        return NULL;
    }
    pthread_rwlock_init(&tokens->lock, NULL);
    tokens->path = path;
    tokens->table = table;
    if (open_accounts(tokens, table, error))
        return tokens;
    tokens_free(tokens);
    return NULL;
}

struct tokens *tokens_new(const char *path, char *error) { return tokens_of(path, table_new(path, error), error); }

struct tokens *tokens_parse(const char *path, char *text, size_t n, char *error)
{
    return tokens_of(path, table_parse(path, text, n, error), error);
}

void tokens_free(struct tokens *tokens)
{
    if (!tokens)
        return;
    accounts_free(tokens->accounts);
    pthread_rwlock_destroy(&tokens->lock);
    free(tokens->table);
    free(tokens);
}

void tokens_reread(struct tokens *tokens)
{
    char error[TOKENS_ERROR_BYTES];
    struct table *table = table_new(tokens->path, error), *old = table;
    pthread_rwlock_wrlock(&tokens->lock);
    bool is_good = table && open_accounts(tokens, table, error);
    if (is_good) {
        old = tokens->table;
        tokens->table = table;
    }
    pthread_rwlock_unlock(&tokens->lock);
    if (is_good)
        log_info("--token-file read again: %zu tokens", table->n);
    else
        log_error("%s; the tokens stay as they were", error);
    free(old);
}

/* The text after "Bearer" and blanks; NULL: another authentication scheme. */
static const char *credentials(const char *authorization)
{
    size_t n = strcspn(authorization, " ");
    if (n != 6 || strncasecmp(authorization, "Bearer", 6) != 0)
        return NULL;
    return authorization + n + strspn(authorization + n, " ");
}

/* Every token is compared, even after a match, so that timing does not reveal how close a guess is. */
enum api_access tokens_find(struct tokens *tokens, const char *authorization, struct account **account)
{
    const char *word = authorization ? credentials(authorization) : NULL;
    enum api_access access = authorization ? API_ACCESS_WRONG : API_ACCESS_NONE;
    uint8_t digest[DIGEST_BYTES];
    *account = NULL;
    if (!word)
        return access;
    size_t n = strlen(word);
    while (n > 0 && strchr(" \t", word[n - 1])) /* not part of a header's value, but 0.9.75 does not remove them */
        n--;
    digest_make(word, n, digest);
    pthread_rwlock_rdlock(&tokens->lock);
    for (size_t i = 0; i < tokens->table->n; i++)
        if (digest_is_same(tokens->table->tokens[i].digest, digest)) {
            access = tokens->table->tokens[i].access;
            *account = tokens->table->tokens[i].account;
        }
    pthread_rwlock_unlock(&tokens->lock);
    return access;
}

void tokens_print(struct tokens *tokens, FILE *out)
{
    pthread_rwlock_rdlock(&tokens->lock);
    accounts_print(tokens->accounts, out);
    pthread_rwlock_unlock(&tokens->lock);
}

/* ---- SHA-256 ----------------------------------------------------------------------------------------------------- */

void digest_make(const void *bytes, size_t n, uint8_t *digest)
{
    enum {
        TURN_BYTES = 1 << 20
    }; /* a file of weights may be gigabytes long: other jobs get a turn after so many bytes */
    struct sha256_ctx context;
    const uint8_t *from = bytes;
    sha256_init(&context);
    for (size_t at = 0, part; at < n; at += part) {
        part = n - at < TURN_BYTES ? n - at : TURN_BYTES;
        sha256_update(&context, part, from + at);
        job_yield();
    }
    sha256_digest(&context, DIGEST_BYTES, digest);
    explicit_bzero(&context, sizeof context); /* it contains the last block of a token */
}

void digest_print(const uint8_t *digest, char *text)
{
    for (size_t i = 0; i < DIGEST_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

static int value_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool digest_parse(const char *text, size_t n, uint8_t *digest)
{
    for (size_t i = 0; i < DIGEST_BYTES && n == 2 * DIGEST_BYTES; i++) {
        int high = value_of(text[2 * i]), low = value_of(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        digest[i] = (uint8_t)(high * 16 + low);
    }
    return n == 2 * DIGEST_BYTES;
}

bool digest_is_same(const uint8_t *a, const uint8_t *b) { return memeql_sec(a, b, DIGEST_BYTES); }
