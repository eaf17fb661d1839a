/* Token files. A second reader, written here from the rules in server/auth/auth.h, must accept exactly the files that
 * the server accepts. Then each secret is found under its name with its rights, a changed secret is not found, and no
 * error text contains a secret. */
#define _GNU_SOURCE /* memmem, open_memstream */
#include "tests/fuzz/laws.h"
#include "server/auth/auth.h"

#include <math.h>

enum { LINES_MAX = 128, LONG_WORD = 20 /* than any in our own sentences */ };

static const char path[] = "t";

/* ---- The rules once more --------------------------------------------------------------------------------------- */

struct line {
    const char *name, *secret;
    bool may_write;
    uint8_t digest[DIGEST_BYTES];
};

struct file {
    struct line lines[LINES_MAX];
    size_t n;
};

static bool is_secret(const char *word, uint8_t *digest)
{
    size_t n = strlen(word);
    bool is_digest = strncmp(word, "sha256:", 7) == 0;
    if (is_digest)
        return strspn(word + 7, "0123456789abcdefABCDEF") == 64 && n == 71 && digest_parse(word + 7, 64, digest);
    digest_make(word, n, digest);
    size_t n_letters = strspn(word, LETTERS_AND_DIGITS "-._~+/");
    return n_letters > 0 && n_letters + strspn(word + n_letters, "=") == n && n <= 512;
}

/* Digits, optionally with a point and more digits: their end; NULL: the number has another form, or is below least. */
static const char *number_end(const char *text, double least, double *x)
{
    char *end;
    size_t n = strspn(text, "0123456789"), n_all = n + (text[n] == '.');
    n_all += text[n] == '.' ? strspn(text + n_all, "0123456789") : 0;
    *x = n ? strtod(text, &end) : 0;
    return n && end == text + n_all && *x > 0 && *x >= least && *x <= 1e12 ? end : NULL;
}

static bool is_quota(const char *word, bool *seen)
{
    static const char *const names[] = {"requests=", "streams=", "work="};
    double x;
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(names[i]);
        if (strncmp(word, names[i], n) != 0)
            continue;
        const char *end = number_end(word + n, i < 2 ? 1 : 0, &x);
        bool is_first = !seen[i];
        seen[i] = true;
        return is_first && end &&
               (i == 1 ? !*end && x <= floor(x) : (*end == '/' && strspn(end + 1, "smh") == 1 && !end[2]));
    }
    return false;
}

static bool read_line(struct line *line, char *text)
{
    char *words[8], *rest = NULL;
    size_t n = 0;
    bool seen[3] = {false};
    for (char *word = strtok_r(text, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
        if (n == 8)
            return false;
        words[n++] = word;
    }
    if (n < 3 || !is_plain_name(words[0], strlen(words[0]), 64) || !is_secret(words[1], line->digest))
        return false;
    *line = (struct line){.name = words[0], .secret = words[1], .may_write = strcmp(words[2], "write") == 0};
    is_secret(words[1], line->digest);
    for (size_t i = 3; i < n; i++)
        if (!is_quota(words[i], seen))
            return false;
    return line->may_write || strcmp(words[2], "read") == 0;
}

static bool is_new(const struct file *file, const struct line *line)
{
    for (size_t i = 0; i < file->n; i++)
        if (strcmp(file->lines[i].name, line->name) == 0 ||
            memcmp(file->lines[i].digest, line->digest, DIGEST_BYTES) == 0)
            return false;
    return true;
}

/* Splits the text in place; false: it is not a token file, and the server must refuse it too. */
static bool read_file(struct file *file, char *text)
{
    file->n = 0;
    for (char *line; (line = strsep(&text, "\n"));) {
        line += strspn(line, " \t\r");
        if (!*line || *line == '#')
            continue;
        if (file->n == LINES_MAX || !read_line(&file->lines[file->n], line) || !is_new(file, &file->lines[file->n]))
            return false;
        file->n++;
    }
    return file->n > 0;
}

/* ---- The laws -------------------------------------------------------------------------------------------------- */

static enum api_access find(struct tokens *tokens, const char *before, const char *secret, const char *after,
                            struct account **account)
{
    char header[600];
    int n = snprintf(header, sizeof header, "%s%s%s", before, secret, after);
    REQUIRE(n < (int)sizeof header);
    return tokens_find(tokens, header, account);
}

static const struct line *line_of(const struct file *file, const char *secret, size_t n)
{
    uint8_t digest[DIGEST_BYTES];
    digest_make(secret, n, digest);
    for (size_t i = 0; i < file->n; i++)
        if (memcmp(file->lines[i].digest, digest, DIGEST_BYTES) == 0)
            return &file->lines[i];
    return NULL;
}

/* The client that is found is the file's client with that secret, or none. */
static void check_found(struct tokens *tokens, const struct file *file, const char *before, const char *secret)
{
    struct account *account;
    const struct line *line = line_of(file, secret, strlen(secret));
    enum api_access access = find(tokens, before, secret, "", &account);
    REQUIRE(access == (!line ? API_ACCESS_WRONG : line->may_write ? API_ACCESS_WRITE : API_ACCESS_READ));
    REQUIRE(line ? account && strcmp(account_name(account), line->name) == 0 : !account);
}

static void check_quota(struct account *account)
{
    char detail[400];
    uint64_t retry_s = 0;
    REQUIRE(account_admit(account, detail, sizeof detail, &retry_s)); /* of a full store */
    account_charge(account, UINT64_C(1000000000) * 3600);
    if (!account_admit(account, detail, sizeof detail, &retry_s))
        REQUIRE(retry_s >= 1 && retry_s <= 1000000000 && strstr(detail, account_name(account)));
    REQUIRE(account_begin_stream(account, detail, sizeof detail, &retry_s));
    account_end_stream(account);
}

static void check_line(struct tokens *tokens, const struct file *file, const struct line *line)
{
    struct account *account;
    char other[600];
    check_found(tokens, file, "Bearer ", line->secret); /* a "sha256:" entry is not the secret itself */
    check_found(tokens, file, "bEARER  ", line->secret);
    snprintf(other, sizeof other, "%sx", line->secret);
    check_found(tokens, file, "Bearer ", other);
    other[strlen(line->secret) - 1] ^= 1;
    check_found(tokens, file, "Bearer ", other);
    REQUIRE(find(tokens, "Bearex ", line->secret, "", &account) == API_ACCESS_WRONG && !account);
    if (find(tokens, "Bearer ", line->secret, " \t", &account) != API_ACCESS_WRONG)
        check_quota(account);
}

static void check_all(struct tokens *tokens, const struct file *file)
{
    struct account *account;
    REQUIRE(tokens_find(tokens, NULL, &account) == API_ACCESS_NONE && !account);
    REQUIRE(tokens_find(tokens, "Bearer ", &account) == API_ACCESS_WRONG && !account);
    for (size_t i = 0; i < file->n; i++)
        if (is_one_of((unsigned)file->n))
            check_line(tokens, file, &file->lines[i]);
    if (!is_one_of(32))
        return;
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    tokens_print(tokens, out);
    fclose(out);
    REQUIRE(n > 0);
    free(text);
}

/* No word that could be a secret stands in the error. */
static void check_error(const char *error, const char *text)
{
    REQUIRE(strncmp(error, "--token-file t", 14) == 0);
    while (*text) {
        size_t n = strcspn(text, " \t\r\n");
        REQUIRE(n < LONG_WORD || !memmem(error, strlen(error), text, n));
        text += n + strspn(text + n, " \t\r\n");
    }
}

static void check(const char *text, size_t size)
{
    static struct file file;
    char error[TOKENS_ERROR_BYTES] = "";
    char *cut = text_of((const uint8_t *)text, size), *ours = text_of((const uint8_t *)text, size);
    bool is_good = strlen(text) == size && read_file(&file, ours);
    struct tokens *tokens = tokens_parse(path, cut, size, error);
    REQUIRE(is_good == (tokens != NULL));
    if (tokens)
        check_all(tokens, &file);
    else
        check_error(error, text);
    tokens_free(tokens);
    free(cut);
    free(ours);
}

/* A leading comment and Windows line ends change nothing. */
static void check_lines(const char *text)
{
    char *other = malloc(2 * strlen(text) + 4), *end = other + sprintf(other, "#\r\n"), error[TOKENS_ERROR_BYTES];
    char *cut = strdup(text);
    for (const char *c = text; *c; c++) {
        if (*c == '\n')
            *end++ = '\r';
        *end++ = *c;
    }
    *end = '\0';
    struct tokens *a = tokens_parse(path, cut, strlen(text), error);
    struct tokens *b = tokens_parse(path, other, (size_t)(end - other), error);
    REQUIRE(!a == !b);
    tokens_free(a);
    tokens_free(b);
    free(cut);
    free(other);
}

TEXT_TARGET(text, size)
{
    check(text, size);
    if (is_one_of(16))
        check_lines(text);
}
