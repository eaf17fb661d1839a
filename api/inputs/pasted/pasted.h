/* Texts as people paste them: logs, commands, configs that were printed. A reader of one form makes of a text what a
 * request could have said itself: keys of a file, a config.json, or the words of a tool. Nothing is guessed: what a
 * text cuts is unread, and what is not about positions is skipped, and both are named in the answer. */
#ifndef API_PASTED_H
#define API_PASTED_H

#include "api/inputs/inputs.h"

#include <jansson.h>

enum {
    PASTED_MAX = 1 << 20,   /* bytes of a text */
    PASTED_WORD_BYTES = 96, /* of a name or line that an answer shows */
    PASTED_NAMES_MAX = 24,  /* that an answer lists */
    PASTED_MODEL_BYTES = 200
};

enum pasted_kind { PASTED_KEYS, PASTED_CONFIG, PASTED_WORDS, PASTED_NAME };

/* Names or lines that an answer shows; each once. */
struct pasted_names {
    const char *at[PASTED_NAMES_MAX + 1]; /* ends with NULL */
    size_t n, n_all;                      /* those that are there, and how many there were */
};

struct pasting {
    struct api_request *request;
    struct api_problem *problem;
    const char *pointer; /* of the field that has the text */
    const char *text;

    /* ---- What it becomes ---- */
    enum pasted_kind kind;
    struct api_text json;     /* the keys, the config, or the value of the words; "{}": no words */
    const char *tool;         /* whose words they are: the name of a target */
    const char *place;        /* said.place: where overrides have their rope object; NULL: not to be said */
    struct pe_value *ignored; /* [n_ignored]: flags about other things */
    size_t n_ignored;
    char model[PASTED_MODEL_BYTES]; /* as the text names it; "": it does not */
    const char *other_model;        /* that the text names, too; NULL: none */
    const char *unknown_model;      /* has a variable without a value; NULL: it has not */
    int64_t length;                 /* the context that it asks for; 0: none */
    struct pasted_names skipped, unread;
};

/* A form of text. */
struct pasted_form {
    const char *label; /* what it is taken for */
    bool (*looks_so)(const char *text);
    bool (*read)(struct pasting *p); /* false: the problem is set */
};

#define PASTED(name, label_)                                                                                           \
    bool pasted_##name##_looks_so(const char *);                                                                       \
    bool pasted_##name##_read(struct pasting *);
#include "api/inputs/pasted/list.h"
#undef PASTED

/* ---- pasting.c --------------------------------------------------------------------------------------------------- */

bool pasted_fail(struct pasting *p, const char *format, ...) __attribute__((format(printf, 2, 3))); /* 422 */
bool pasted_done(struct pasting *p); /* whether the JSON has been written */
/* Adds the first bytes of a name or line, whole characters. False: no memory. */
bool pasted_name(struct pasting *p, struct pasted_names *names, const char *text, size_t n);
bool pasted_skip(struct pasting *p, const char *line, size_t n); /* unless it is blank */
/* The next line of *at without its end and blanks at it; false: there is none. */
bool pasted_line(const char **at, const char **line, size_t *n);
bool pasted_is(const char *text, size_t n, const char *word);          /* are these n bytes the word? */
const char *pasted_find(const char *text, size_t n, const char *what); /* NULL: it is not in the text */
bool pasted_is_of_name(char c);                    /* a letter, a digit, or a sign inside of a name or a number */
size_t pasted_name_in(const char *line, size_t n); /* bytes of the name in "name: value"; 0: it is no such line */
enum { PASTED_FLAG_BYTES = 64 };
const char *pasted_flag_spelled(const char *name, char spelled[PASTED_FLAG_BYTES]); /* of a member: "--hf-overrides" */
/* Is the text one of "a|b*", or has it the beginning of one that ends with a star? */
bool pasted_is_among(const char *list, const char *text, size_t n);

bool pasted_is_named(const char *flag, size_t n, const char *member); /* the same but for - and _? */
/* The member of the target that a flag names, without and with its dashes; NULL: none. */
const struct pe_param *pasted_row_of(const struct pe_target_info *target, const char *flag, size_t n);
const struct pe_param *pasted_flag_of(const struct pe_target_info *target, const char *word);
bool pasted_is_a_length(const struct pe_param *row); /* which every version of a tool has */

/* ---- keys.c: keys of a GGUF file, from lines ----------------------------------------------------------------------
 */

enum { PASTED_KEYS_MAX = 256 };

struct pasted_keys {
    struct pasted_key {
        const char *name, *json; /* in the arena; json NULL: unread */
    } at[PASTED_KEYS_MAX];
    size_t n;
    bool has_freqs, has_long, has_short; /* tensors of these names are in the file */
};

/* Whether a key of that name is of interest; others are read and left out. */
bool pasted_key_counts(const char *name, size_t n);
/* Adds one; value: as the log prints it, with `type` as llama.cpp names it ("f32", "arr[i32,4]"); NULL: the line ends
 * before. A key that is there with another value is refused. */
bool pasted_key_add(struct pasting *p, struct pasted_keys *keys, const char *name, size_t n_name, const char *type,
                    size_t n_type, const char *value, size_t n);
const char *pasted_key_find(const struct pasted_keys *keys, const char *name); /* its JSON; NULL: none */
/* … in the place of one that is there. */
bool pasted_key_replace(struct pasting *p, struct pasted_keys *keys, const char *name, const char *type,
                        const char *value);
/* A tensor that the file has, whose numbers no text shows. */
void pasted_key_tensor(struct pasted_keys *keys, const char *name, size_t n);
bool pasted_keys_put(struct pasting *p, const struct pasted_keys *keys); /* the JSON of all */

/* ---- words.c: words of a shell -------------------------------------------------------------------------------------
 */

enum { PASTED_WORDS_MAX = 4096 };

struct pasted_word {
    const char *text;
    bool is_unknown; /* has an expansion whose value is not known, and is as it was written */
    bool begins;     /* is the first of a command */
    bool is_listed;  /* is inside NAME=( … ) */
};
struct pasted_words {
    struct pasted_word *at; /* in the arena */
    size_t n;
};
/* Splits a text as a POSIX shell does, with variables that the text sets before. A line that begins with a flag goes on
 * with the command before it. */
bool pasted_words_split(struct pasting *p, struct pasted_words *words);

/* ---- choose.c ------------------------------------------------------------------------------------------------------
 */

/* The name of a program: behind the last / of a path, without the ending of Windows. */
const char *pasted_program(const char *word, size_t *n);
const struct pe_target_info *pasted_tool_of_word(const char *word); /* NULL: it is no tool's program */
/* The tool that has one of the flags; NULL: none. Of two the one that takes an object, or does not, as the value is. */
const struct pe_target_info *pasted_tool_of_flags(const struct pasted_word *words, size_t n);
/* Sets the model that a command names, and another one that it names, too. */
void pasted_find_model(struct pasting *p, const struct pe_command *command, const struct pasted_words *words);
bool pasted_has_program(const struct pasted_words *words);                  /* a tool's */
const struct pe_target_info *pasted_tool(const struct pasted_words *words); /* by its program, else by its flags */
/* Keeps the words of the command that counts. target NULL: of any tool; false: two differ, or the program is unknown.
 */
bool pasted_choose(struct pasting *p, const struct pe_target_info *target, struct pasted_words *words, bool *is_found);

/* ---- command.c ------------------------------------------------------------------------------------------------------
 */

/* Keeps the words of the command that has the target's flags, and finds the model that it names. */
bool pasted_command_choose(struct pasting *p, const struct pe_target_info *target, struct pasted_words *words);
/* A keyword of a call of Python, or a setting of a file: the same as a flag of a command. */
struct pasted_setting {
    const char *name;
    const json_t *value; /* a text in it that begins with PASTED_UNKNOWN is an expression whose value is not known */
};
#define PASTED_UNKNOWN "\x01"
const struct pe_target_info *pasted_tool_of_call(const char *name,
                                                 size_t n); /* NULL: none has its words in this call */
/* The version of the tool that has most of the flags. */
const struct pe_target_info *pasted_version(const struct pe_target_info *tool, const struct pasted_word *words,
                                            size_t n);
bool pasted_is_kin(const struct pe_target_info *a, const struct pe_target_info *b); /* two versions of a program? */
/* The members of an object that are not null, in the arena; NULL: no memory. */
struct pasted_setting *pasted_settings_of(struct pasting *p, const json_t *object, size_t *n);
bool pasted_is_setting(const char *name, size_t n); /* is it a flag of a server, as a file of settings names it? */
bool pasted_has_settings(const char *text);         /* does a line begin with one, and a colon? */
/* tool NULL: one that has a flag of these names. */
bool pasted_settings_read(struct pasting *p, const struct pe_target_info *tool, const struct pasted_setting *settings,
                          size_t n);

/* ---- printed.c ------------------------------------------------------------------------------------------------------
 */

bool pasted_object_put(struct pasting *p); /* the object that the text has, of JSON or of Python, as JSON */

/* ---- yaml.c ---------------------------------------------------------------------------------------------------------
 */

const json_t *pasted_yaml_documents(struct pasting *p); /* a list of them; NULL: the problem is set */
/* ---- digits.c -------------------------------------------------------------------------------------------------------
 */

/* A piece of a text that has numbers; blanks, commas and such between them are none. A line: its end; a gap: "...". */
struct pasted_token {
    enum {
        PASTED_END,
        PASTED_NUMBER,
        PASTED_OPEN,
        PASTED_CLOSE,
        PASTED_GAP,
        PASTED_LINE,
        PASTED_WORD,
        PASTED_SIGN
    } kind;
    const char *begin, *end;
    double value;
    int decimals, exponent; /* digits behind the point; what it is times ten to the power of */
    bool has_point, has_exponent;
};
struct pasted_token pasted_token(const char *at, const char *end);
bool pasted_is_index(const struct pasted_token *t); /* a whole number without a sign */

/* What the numbers of one tensor have at most. */
struct pasted_digits {
    int plain, mantissa, place; /* digits behind the point, without and with an exponent; the place of the last one */
    bool is_mixed;              /* some number has no exponent */
};
void pasted_digits_add(struct pasted_digits *d, const struct pasted_token *number);
void pasted_digits_join(struct pasted_digits *d, const struct pasted_digits *other);
double pasted_half(const struct pasted_digits *d, bool *is_scientific); /* as of pe_print */

/* ---- lists.c --------------------------------------------------------------------------------------------------------
 */

#define PASTED_NOWHERE UINT64_MAX
enum { PASTED_REPEATED_MAX = 4096 }; /* numbers that a debugger prints once */

/* A text that is read as numbers. */
struct pasted_numbers {
    struct api_request *request;
    struct api_problem *problem;
    const char *pointer, *text;
    double *numbers;
    double factor;           /* in front of all: 1.0e+03 * */
    struct pe_tensor stated; /* the shape; rank 0: it is not known */
    enum pe_dtype dtype;     /* narrower than f32, as the text states */
};

/* Brackets with nothing but numbers in them, or lines. */
struct pasted_list {
    const char *end;
    size_t first, n; /* its numbers */
    unsigned rank;
    uint64_t shape[PE_RANK_MAX], gap[PE_RANK_MAX]; /* gap: items before "..."; PASTED_NOWHERE: there is none */
    bool is_whole;                                 /* no number has a point or an exponent */
    struct pasted_digits digits;
};

bool pasted_refuse(const struct pasted_numbers *p, const char *what); /* 422 */
/* The tensor that the text has, its factor, shape and dtype; room: for numbers. */
bool pasted_lists_read(struct pasted_numbers *p, size_t room, struct pasted_list *list);

/* ---- overrides.c ----------------------------------------------------------------------------------------------------
 */

/* Writes the rope object of overrides of a config.json, at any depth, as a target takes it: {"rope_parameters":{…}};
 * nothing if they have none. word: the JSON; name: of the flag. */
bool pasted_overrides_put(struct pasting *p, struct api_text *json, const char *name, const char *word);

/* ---- ../said.c
 * -------------------------------------------------------------------------------------------------------- */

/* The flags among n words of a command as members of the target's value, with braces. */
bool pasted_flags_put(struct pasting *p, const struct pe_target_info *target, const struct pasted_word *words,
                      size_t n);

#endif
