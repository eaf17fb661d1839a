/* What a person reads of the command, printed from the rows: help, the manual page, tables of schemes, and what a shell
 * completes. */
#include "server/command/command.h"

#include <stdlib.h>
#include <string.h>

enum pe_lang listing_lang(void)
{
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strncmp(value, "zh", 2) == 0 ? PE_ZH : PE_EN;
    }
    return PE_EN;
}

/* Options of the command itself; every other is a field. */
static const struct own_option {
    const char *name, *value, *does;
} own_options[] = {
    {"FIELD", "VALUE",
     "a field of the request, as in the query of the service: --head-dim 128; --scaling.factor 8 is a "
     "member of an object; a value that ends in .npy is the file of a tensor"},
    {"set", "NAME=JSON", "a field whose value is JSON"},
    {"tensors", "FILE", "all tensors of a .npz, .safetensors or .npy file, by their names"},
    {"request", "FILE", "a request as JSON, whose fields the options override; - is standard input"},
    {"hf", "DIR|FILE", "the configuration of a model, hf_config: config.json or the folder that has it"},
    {"output", "FILE",
     "where the answer goes; its ending is the format: " OUTPUT_ENDINGS ". "
     "Several tensors to x.npy become x.NAME.npy. Also -o FILE"},
    {"help", "", "this text, or after a command its fields"},
    {"version", "", "the version"},
    {"print-man", "", "the manual page posenc(1)"},
};
enum { N_OWN = sizeof own_options / sizeof *own_options };

/* ---- Rows ---- */

void listing_print_option(FILE *out, const char *prefix, const char *name)
{
    fprintf(out, "--%s", prefix);
    for (; *name; name++)
        fputc(*name == '_' ? '-' : *name, out);
}

static const char *type_of(const struct pe_param *row)
{
    static const char *const names[] = {
        [PE_T_INT] = "integer",   [PE_T_REAL] = "number",   [PE_T_BOOL] = "true|false", [PE_T_WORD] = "word",
        [PE_T_REALS] = "numbers", [PE_T_OBJECT] = "object", [PE_T_VALUE] = "value"};
    return names[row->type];
}

static void print_rows(const char *prefix, const struct pe_param *rows)
{
    for (; rows && rows->name; rows++) {
        if (rows->type == PE_T_OBJECT && rows->fields) {
            char inside[128];
            snprintf(inside, sizeof inside, "%s%s.", prefix, rows->name);
            print_rows(inside, rows->fields);
            continue;
        }
        printf("  ");
        listing_print_option(stdout, prefix, rows->name);
        printf(" %s\n      %s", type_of(rows), pe_summary_in(listing_lang(), &rows->about));
        for (size_t i = 0; rows->words && rows->words[i]; i++)
            printf("%s%s", i ? ", " : ": ", rows->words[i]);
        printf("\n");
    }
}

static void print_inputs(const struct pe_input_row *rows)
{
    for (; rows && rows->name; rows++) {
        printf("  ");
        listing_print_option(stdout, "", rows->name);
        printf(" FILE.npy [%s]\n      %s\n", rows->shape, pe_summary_in(listing_lang(), &rows->about));
    }
}

static const struct pe_operation_info *operation_of(const struct command *command)
{
    for (enum pe_operation_id id = 0; command && id < PE_N_OPERATIONS; id++)
        if (strcmp(pe_operation_at(id)->name, command->name) == 0)
            return pe_operation_at(id);
    return NULL;
}

/* The fields that a command reads beside a configuration and its sequence. */
static const struct pe_param *own_fields(const struct command *command)
{
    const struct pe_operation_info *operation = operation_of(command);
    if (command && strcmp(command->name, "derive") == 0)
        return pe_derive_params();
    if (command && strcmp(command->name, "analyze") == 0)
        return pe_analysis_params();
    return operation ? operation->params : NULL;
}

int listing_help(const struct command *command)
{
    const struct pe_operation_info *operation = operation_of(command);
    const struct pe_param *fields = own_fields(command);
    printf("Usage: posenc %s%s%s%s\n", command ? command->name : "COMMAND", command && command->operand ? " " : "",
           command && command->operand ? command->operand : "",
           command && command->kind != ENDPOINT && command->kind != MODEL ? "" : " [--FIELD VALUE …] [-o FILE]");
    if (command)
        printf("%s.\n", command->does);
    else {
        puts("Computes the positional encodings of Transformer models.\n");
        for (size_t i = 0; commands[i].name; i++)
            printf("  %-12s %s\n", commands[i].name, commands[i].does);
        puts("\nThe exit status is 0 if it is done, the tensor fits or is explained; 1 if a check finds a difference "
             "or a diagnosis no explanation; 2 for any trouble.\nA terminal gets a heat map or a table, a pipe or file "
             "the service's JSON, or the format that the ending of -o names.\n\nOptions (posenc COMMAND --help lists "
             "the fields of a command, posenc schemes NAME those of a scheme):");
    }
    if (command && command->kind != ENDPOINT && command->kind != MODEL)
        return DONE;
    for (size_t i = 0; i < N_OWN; i++)
        printf("  --%s %s\n      %s\n", own_options[i].name, own_options[i].value, own_options[i].does);
    if (!command)
        return DONE;
    puts("\nFields of the sequence:");
    print_rows("", pe_sequence_params());
    if (fields) {
        printf("\nFields of %s:\n", command->name);
        print_rows("", fields);
    }
    if (operation && operation->inputs) {
        printf("\nTensors of %s:\n", operation->name);
        print_inputs(operation->inputs);
    }
    puts("\nThe form of the answer:");
    print_rows("", api_form_params());
    return DONE;
}

/* ---- Schemes ---- */

int listing_schemes(void)
{
    for (size_t i = 0; i < pe_n_schemes(); i++)
        printf("%-16s %-10s %s\n", pe_scheme_at(i)->name, pe_scheme_at(i)->family,
               pe_summary_in(listing_lang(), &pe_scheme_at(i)->about));
    return DONE;
}

static void print_piece(void *to, const char *bytes, size_t n) { fwrite(bytes, 1, n, to); }

static void print_lines(const char *title, const struct pe_formula_line *lines)
{
    printf("\n%s\n", title);
    for (; lines->line; lines++) {
        fputs("  ", stdout);
        pe_formula_print(lines->line, PE_PLAIN, print_piece, stdout);
        printf("\n      %s\n", pe_text_in(listing_lang(), lines->says));
    }
}

int listing_scheme(const struct pe_scheme_info *scheme)
{
    bool has_scalings = pe_param_find(scheme->params, "scaling");
    printf("%s: %s\n%s\n", scheme->name, pe_summary_in(listing_lang(), &scheme->about), scheme->paper);
    print_lines("formula", scheme->formula);
    for (size_t i = 0; has_scalings && i < pe_n_scalings(); i++) {
        char title[64];
        snprintf(title, sizeof title, "scaling %s", pe_scaling_formula(i).name);
        print_lines(title, pe_scaling_formula(i).lines);
    }
    putchar('\n');
    print_rows("", scheme->params);
    print_inputs(scheme->inputs);
    return DONE;
}

/* ---- Completion ---- */

int listing_completion(const struct line *line)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {
        {"bash",
         "_posenc() {\n"
         "    local IFS=$'\\n'\n"
         "    COMPREPLY=($(compgen -W \"$(posenc --complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\" -- "
         "\"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "}\n"
         "complete -o default -F _posenc posenc\n"},
        {"zsh", "#compdef posenc\n"
                "local -a found\n"
                "found=(${(f)\"$(posenc --complete ${words[2,CURRENT]} 2>/dev/null)\"})\n"
                "compadd -a found || _files\n"},
        {"fish", "complete -c posenc -a '(posenc --complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'\n"},
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (line->n_operands == 1 && strcmp(line->operands[0], scripts[i].shell) == 0) {
            fputs(scripts[i].script, stdout);
            return DONE;
        }
    return trouble("completion of which shell? bash, zsh or fish");
}

static void list_fields(const char *prefix, const struct pe_param *rows)
{
    for (; rows && rows->name; rows++) {
        char inside[128];
        snprintf(inside, sizeof inside, "%s%s.", prefix, rows->name);
        if (rows->type == PE_T_OBJECT && rows->fields) {
            list_fields(inside, rows->fields);
            continue;
        }
        listing_print_option(stdout, prefix, rows->name);
        putchar('\n');
    }
}

static void list_inputs(const struct pe_input_row *rows)
{
    for (; rows && rows->name; rows++) {
        listing_print_option(stdout, "", rows->name);
        putchar('\n');
    }
}

static const struct pe_param *row_of(const char *name, const struct pe_param *own, const struct pe_scheme_info *scheme)
{
    const struct pe_param *lists[] = {scheme ? scheme->params : NULL, own, pe_sequence_params(), api_form_params()};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const struct pe_param *row = lists[i] ? pe_param_find(lists[i], name) : NULL;
        if (row)
            return row;
    }
    return NULL;
}

/* The values that an option can have, one a line: of a scheme, a preset, the words of a row. */
static void list_values(char *name, const struct pe_param *own, const struct pe_scheme_info *scheme)
{
    line_to_field(name);
    const struct pe_param *row = row_of(name, own, scheme);
    for (size_t i = 0; strcmp(name, "scheme") == 0 && i < pe_n_schemes(); i++)
        puts(pe_scheme_at(i)->name);
    for (size_t i = 0; strcmp(name, "preset") == 0 && i < pe_n_presets(); i++)
        puts(pe_preset_at(i)->name);
    for (size_t i = 0; row && row->words && row->words[i]; i++)
        puts(row->words[i]);
    if (row && row->type == PE_T_BOOL)
        puts("true\nfalse");
}

/* words: those after the command's name up to the cursor, the last of which is begun. */
int listing_complete(int n, char **words)
{
    const struct command *command = n > 1 ? command_find(words[0]) : NULL;
    const struct pe_scheme_info *scheme = NULL;
    for (int i = 1; i + 1 < n; i++)
        if (strcmp(words[i], "--scheme") == 0)
            scheme = pe_scheme_find(words[i + 1]);
    const struct pe_operation_info *operation = operation_of(command);
    if (!command) {
        for (size_t i = 0; commands[i].name; i++)
            puts(commands[i].name);
        return DONE;
    }
    if (strcmp(command->name, "completion") == 0)
        puts("bash\nzsh\nfish");
    else if (command->kind == SCHEMES)
        list_values((char[]){"scheme"}, NULL, NULL);
    else if (command->kind == PRESETS || command->kind == MODEL)
        list_values((char[]){"preset"}, NULL, NULL);
    else if (n > 2 && strncmp(words[n - 2], "--", 2) == 0)
        list_values(words[n - 2] + 2, own_fields(command), scheme);
    else {
        puts("--scheme\n--preset");
        for (size_t i = 1; i < N_OWN; i++) /* the first is a field */
            printf("--%s\n", own_options[i].name);
        list_fields("", scheme ? scheme->params : NULL);
        list_fields("", own_fields(command));
        list_fields("", pe_sequence_params());
        list_fields("", api_form_params());
        list_inputs(operation ? operation->inputs : NULL);
        list_inputs(scheme ? scheme->inputs : NULL);
    }
    return DONE;
}

/* ---- The manual page ---- */

static void print_roff(const char *text)
{
    for (; *text; text++)
        if (*text == '-' || *text == '\\')
            fputs(*text == '-' ? "\\-" : "\\e", stdout);
        else
            putchar(*text);
}

int listing_man(void)
{
    printf(
        ".TH POSENC 1 \"\" \"posenc %s\" \"User Commands\"\n.SH NAME\nposenc \\- positional encodings of Transformer "
        "models\n.SH SYNOPSIS\n.B posenc\n.I COMMAND\n[\\-\\-\\fIFIELD VALUE\\fR ...] [\\-o \\fIFILE\\fR]\n"
        ".SH DESCRIPTION\nComputes in process what the service posencd(8) answers: the same fields, the same bytes, "
        "the same refusals.\nA terminal gets a heat map or a table, a pipe or file JSON.\n.SH COMMANDS\n",
        PE_VERSION);
    for (size_t i = 0; commands[i].name; i++) {
        printf(".TP\n.B %s", commands[i].name);
        if (commands[i].operand)
            printf(" %s", strcmp(commands[i].operand, "[WORD …]") == 0 ? "[WORD ...]" : commands[i].operand);
        printf("\n");
        print_roff(commands[i].does);
        printf(".\n");
    }
    puts(".SH OPTIONS");
    for (size_t i = 0; i < N_OWN; i++) {
        printf(".TP\n\\fB\\-\\-");
        print_roff(own_options[i].name);
        printf("\\fR \\fI%s\\fR\n", own_options[i].value);
        print_roff(own_options[i].does);
        puts(".");
    }
    puts(
        ".PP\n.B posenc COMMAND \\-\\-help\nlists the fields of a command,\n.B posenc schemes NAME\nthose of a "
        "scheme.\n"
        ".SH EXIT STATUS\n0: done; the tensor fits; it is explained. 1: a check differs; a diagnosis has no "
        "explanation. "
        "2: trouble, with one line on standard error.\nA signal that ends it leaves no file behind.\n"
        ".SH ENVIRONMENT\n.TP\n.B LANG\nChinese texts if it begins with zh, else English.\n.TP\n.B NO_COLOR\nHeat "
        "maps are "
        "drawn with plain characters, as they are where TERM is dumb.\n"
        ".TP\n.B OPENBLAS_NUM_THREADS\n1 where a limit of address space (ulimit \\-v) leaves no room for a thread when "
        "the program is loaded.\n"
        ".SH EXAMPLES\n.nf\nposenc encode \\-\\-scheme rope \\-\\-len 2048 \\-o rope.safetensors\nposenc check "
        "\\-\\-hf "
        "Qwen2\\-7B \\-\\-q q.npy \\-\\-q\\-out o.npy\n.fi\n.SH SEE ALSO\nposencd(8)");
    return DONE;
}
