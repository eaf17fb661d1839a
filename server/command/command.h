/* The command posenc: what its files share. Options become the query of a request and files the parts of a multipart
 * body, both of which api/ reads already. */
#ifndef SERVER_COMMAND_COMMAND_H
#define SERVER_COMMAND_COMMAND_H

#include "api/api.h"

#include <stdio.h>

/* Exit status, as diff(1) has it. */
enum { DONE, DIFFERS, TROUBLE };

struct command {
    const char *name, *operand; /* operand: what may be beside its options */
    const char *does;
    enum {
        ENDPOINT, /* /NAME with the options as its fields */
        MODEL,    /* the same, of the model that the operand names */
        SCHEMES,
        PRESETS,
        COMPLETION
    } kind;
    /* On a terminal. EITHER: a picture of the outputs that are named, or sentences if none is. */
    enum { AS_JSON, SENTENCES, PICTURE, EITHER } shows;
};

/* ---- line.c ------------------------------------------------------------------------------------------------------ */

extern const struct command commands[]; /* ends with .name = NULL */
const struct command *command_find(const char *name);

/* Writes one line to standard error and returns TROUBLE. */
int trouble(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Bytes that grow, followed by a NUL. All fields start at zero; p is freed with free. Without memory the command ends:
 * nothing has been written by then. */
struct bytes {
    char *p;
    size_t n, room;
};
void bytes_add(struct bytes *bytes, const char *text);

bool ends_with(const char *text, const char *end);

enum { LINE_FILES_MAX = 64, LINE_WORDS_MAX = 64 };

/* A command line that has been read. Names and paths are borrowed from it. */
struct line {
    const struct command *command;
    struct bytes query;
    struct {
        const char *name, *path; /* name: of its field */
    } files[LINE_FILES_MAX];
    size_t n_files;
    const char *members[LINE_WORDS_MAX][2]; /* "scaling.factor" and its value */
    size_t n_members;
    const char *tensors, *request, *output;
    const char *outputs, *format; /* the fields of these names, NULL: not given */
    const char *operands[LINE_WORDS_MAX];
    size_t n_operands;
    bool wants_help;
};

/* Reads the words behind the command. Returns DONE or TROUBLE. */
int line_read(struct line *line, int n, char **words);

void line_to_field(char *name); /* "head-dim" is head_dim */
/* Adds a field to a query. */
void line_add(struct bytes *query, const char *name, const char *value);
/* Does the line give a field of that name as an option? */
bool line_has(const struct line *line, const char *name);
bool line_has_members(const struct line *line, const char *object); /* "scaling": of --scaling.factor */

/* Adds a file that is the field of that name. */
int line_add_file(struct line *line, const char *name, const char *path);
/* Adds what only a file has: the config.json at path, which may be the folder that has it. */
int line_add_model(struct line *line, const char *path);

/* The body of the request and its type: no body leaves them as they are. */
int line_body(const struct line *line, struct bytes *body, const char **type);

/* ---- output.c ---------------------------------------------------------------------------------------------------- */

/* Adds the format that the ending of -o or a terminal asks for, unless the line names one. Another ending is trouble.
 */
#define OUTPUT_ENDINGS ".npy .npz .safetensors .json .raw .png .txt .tex"
int output_choose(struct line *line);

/* Asks api/ and writes its answer. Returns the exit status. */
int output_ask(const struct line *line, const char *method, const char *path);

/* ---- listing.c --------------------------------------------------------------------------------------------------- */

/* From the locale's environment. */
enum pe_lang listing_lang(void);

/* An option as it is typed: "--head-dim" for head_dim. prefix: "", or "scaling." */
void listing_print_option(FILE *out, const char *prefix, const char *name);

int listing_help(const struct command *command); /* NULL: of all */
int listing_scheme(const struct pe_scheme_info *scheme);
int listing_schemes(void);
int listing_man(void);

/* The script that completes commands in a shell. */
int listing_completion(const struct line *line);
/* Prints what may follow, one a line. words: those behind posenc up to the cursor, the last of which is begun. */
int listing_complete(int n, char **words);

#endif
