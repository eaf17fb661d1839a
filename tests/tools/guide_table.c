/* Prints tables of guides from their rows, as Markdown: guide_table schemes, sections, metrics, or the members of an
 * answer: analysis, diagnosis, experiments. */
#include "api/endpoints/endpoints.h"
#include "core/posenc.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Schemes -------------------------------------------------------------------------------------------------- */

static void print_schemes(void)
{
    puts("| scheme | family | what |\n|---|---|---|");
    for (size_t i = 0; i < pe_n_schemes(); i++) {
        const struct pe_scheme_info *info = pe_scheme_at(i);
        printf("| [`%s`](#%s) | %s | %s |\n", info->name, info->name, info->family, info->about.summary);
    }
}

/* The column behind what has been printed of a paragraph, whose lines end at WIDTH_MAX. */
enum { WIDTH_MAX = 120 };

static size_t put_word(const char *word, size_t column)
{
    bool fits = column + 1 + strlen(word) <= WIDTH_MAX;
    printf("%s%s", column == 0 ? "" : fits ? " " : "\n", word);
    return column && fits ? column + 1 + strlen(word) : strlen(word);
}

static void print_paragraph(const char *text)
{
    char word[256];
    size_t column = 0;
    for (; *text; text += strspn(text, " ")) {
        size_t n = strcspn(text, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, text);
        column = put_word(word, column);
        text += n;
    }
    puts("");
}

static void print_outputs(const struct pe_output_row *outputs)
{
    for (size_t i = 0; outputs[i].name; i++)
        printf("%s`%s` `[%s]`%s%s%s", i ? "; " : "\n**Outputs**: ", outputs[i].name, outputs[i].shape,
               outputs[i].when ? ", " : "", outputs[i].when ? outputs[i].when : "",
               outputs[i].on_request ? ", on request" : "");
    puts(outputs[0].name ? "." : "\n**Outputs**: none of its own; it is computed from queries and keys.");
}

/* A default is shown where it is constant: a number, a word, true or false. */
static void print_fallback(const struct pe_param *row, char text[64])
{
    bool unset = row->fallback != row->fallback;
    *text = '\0';
    if (row->type == PE_T_WORD)
        snprintf(text, 64, " %s", row->words[unset ? 0 : (int)row->fallback]);
    else if (row->type == PE_T_BOOL)
        snprintf(text, 64, " %s", row->fallback != 0 ? "true" : "false");
    else if ((row->type == PE_T_INT || row->type == PE_T_REAL) && !unset)
        snprintf(text, 64, " %.10g", row->fallback);
}

static void print_params(const struct pe_param *params)
{
    char fallback[64], word[256];
    fputs("\n**Parameters** (default):\n", stdout);
    size_t column = 0;
    for (size_t i = 0; params[i].name; i++) {
        print_fallback(&params[i], fallback);
        snprintf(word, sizeof word, "`%s`%s%s", params[i].name, fallback, params[i + 1].name ? "," : ".");
        column = put_word(word, column);
    }
    puts("");
}

/* ---- A number at work ----------------------------------------------------------------------------------------- */

/* The answer of a GET, as the service gives it. Ends the program if it is no JSON of status 200. */
static json_t *ask(const char *address)
{
    static char body[1 << 16];
    struct pe_reply *reply = pe_call("GET", address, NULL, NULL, 0, 0, 0);
    size_t n = 0;
    for (ptrdiff_t got; reply && (got = pe_reply_read(reply, body + n, sizeof body - n)) > 0;)
        n += (size_t)got;
    json_t *answer = reply && pe_reply_status(reply) == 200 ? json_loadb(body, n, 0, NULL) : NULL;
    if (!answer) {
        fprintf(stderr, "guide_table: %s: %.*s\n", address, (int)n, body);
        exit(1);
    }
    pe_reply_free(reply);
    return answer;
}

/* A longer number with ten digits. */
static void shorten(const char *value, char text[32])
{
    if (strlen(value) > 12)
        snprintf(text, 32, "%.10g", strtod(value, NULL));
    else
        snprintf(text, 32, "%s", value);
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static void print_number(const json_t *number)
{
    char *index = json_dumps(json_object_get(number, "index"), JSON_COMPACT | JSON_ENCODE_ANY);
    char *value = json_dumps(json_object_get(number, "value"), JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    printf("%s%s = %s\n", text_of(number, "tensor"), index, value);
    free(index);
    free(value);
}

/* A step a line: its symbol with its value, and behind these its formula with numbers. */
static void print_steps(const json_t *steps)
{
    enum { COLUMN = 26 };
    char value[32], left[128];
    size_t i;
    json_t *step;
    json_array_foreach(steps, i, step)
    {
        const char *text = text_of(step, "text"), *symbol = text_of(step, "symbol");
        shorten(text_of(step, "value"), value);
        snprintf(left, sizeof left, *value ? "%s = %s" : "%s", symbol, value);
        size_t column = 0;
        for (const char *c = left; *c; c++)
            column += ((unsigned char)*c & 0xc0) != 0x80;
        bool says_more = *text && strcmp(text, value) != 0;
        printf("%s%*s%s\n", left, says_more ? (int)(column < COLUMN ? COLUMN - column : 1) : 0, "",
               says_more ? text : "");
    }
}

static void print_worked(const struct pe_scheme_info *info)
{
    char address[512];
    snprintf(address, sizeof address, "/derive?scheme=%s&%s", info->name, info->worked);
    json_t *answer = ask(address);
    printf("\n**One number**, with ten digits of each step:\n\n```sh\ncurl 'localhost:8080%s&format=text'\n```\n\n"
           "```text\n",
           address);
    print_steps(json_object_get(answer, "steps"));
    print_number(json_object_get(answer, "number"));
    puts("```");
    json_decref(answer);
}

/* ---- Sections ------------------------------------------------------------------------------------------------- */

static void print_piece(void *to, const char *bytes, size_t n) { fwrite(bytes, 1, n, to); }

static void print_lines(const struct pe_formula_line *lines)
{
    for (puts(""); lines->line; lines++) {
        fputs("- `", stdout);
        pe_formula_print(lines->line, PE_PLAIN, print_piece, stdout);
        printf("`: %s\n", lines->says);
    }
}

static void print_section(const struct pe_scheme_info *info)
{
    printf("\n### %s\n\n**%s**: %s.\n", info->name, info->about.label, info->about.summary);
    print_lines(info->formula);
    print_worked(info);
    puts("\n**Traps**:");
    print_paragraph(info->traps);
    if (info->picture)
        printf("\n**Picture**: [a heat map](http://localhost:8080/encode?scheme=%s&%s&format=png).\n", info->name,
               info->picture);
    print_outputs(info->outputs);
    print_params(info->params);
    printf("\n**Paper**: %s.\n", info->paper);
}

static void print_sections(void)
{
    puts("Symbols that no line defines:\n");
    for (const struct pe_formula_line *symbol = pe_formula_symbols; symbol->line; symbol++)
        printf("- `%s`: %s\n", symbol->line, symbol->says);
    for (size_t i = 0; i < pe_n_schemes(); i++)
        print_section(pe_scheme_at(i));
    puts("\n### Scalings\n\nRules of the parameter `scaling` of the rotary schemes.");
    for (size_t i = 0; i < pe_n_scalings(); i++) {
        printf("\n**scaling: %s**\n", pe_scaling_formula(i).name);
        print_lines(pe_scaling_formula(i).lines);
    }
}

/* ---- Metrics -------------------------------------------------------------------------------------------------- */

/* "k|dtypes" as `k`, `dtypes`. */
static void print_names(const char *names)
{
    for (const char *p = names; p && *p; p++)
        printf("%s%c%s", p == names ? "`" : "", *p == '|' ? '`' : *p, *p == '|' ? ", `" : p[1] ? "" : "`");
}

static void print_tensors(const struct pe_output_row *rows)
{
    for (size_t i = 0; rows && rows[i].name; i++)
        printf("%s`%s` `[%s]`%s", i ? "<br>" : "", rows[i].name, rows[i].shape,
               rows[i].on_request ? " on request" : "");
}

static void print_metrics(void)
{
    puts("| metric | what | for | fields | tensors |\n|---|---|---|---|---|");
    for (size_t i = 0; i < pe_n_metrics(); i++) {
        const struct pe_metric_info *metric = pe_metric_at(i);
        printf("| `%s` | %s | %s | ", metric->name, metric->about.summary, metric->applies_to);
        print_names(metric->params);
        printf(" | ");
        print_tensors(metric->tensors);
        printf(" |\n");
    }
}

/* ---- Members of answers --------------------------------------------------------------------------------------- */

/* "object|null" as "object or null". */
static void print_types(const char *types)
{
    for (; types && *types; types++)
        printf(*types == '|' ? " or " : "%c", *types);
}

static void print_meaning(const struct pe_member *row)
{
    const char *before = row->summary ? "; " : "";
    printf("%s", row->summary ? row->summary : "");
    for (size_t i = 0; row->words && row->words[i]; i++)
        printf("%s`%s`", i ? ", " : before, row->words[i]);
    if (row->n_max)
        printf("%sat most %u", before, row->n_max);
    if (row->list == PE_METRICS)
        printf("one for each configuration, with an object for each metric");
    if (row->list == PE_FAULT_CODES)
        printf("one of the `faults` that `GET /schemes` lists");
    if (row->list == PE_TENSORS)
        printf("each with `dtype` and `shape`, as in the answer of `/encode`");
}

static void print_rows(const char *before, const struct pe_member *rows)
{
    char inner[128];
    for (; rows && rows->name; rows++) {
        if (*rows->name) {
            printf("| `%s%s` | ", before, rows->name);
            print_types(rows->types);
            printf(" | ");
            print_meaning(rows);
            printf(" |\n");
        }
        snprintf(inner, sizeof inner, "%s%s%s", before, rows->name, !*rows->name ? "" : rows->items ? "[]." : ".");
        print_rows(inner, rows->members);
        if (rows->list == PE_METRICS)
            print_rows("results[].*.", pe_result_members);
    }
}

static void print_members(const struct pe_member *rows)
{
    puts("| member | type | what |\n|---|---|---|");
    print_rows("", rows);
}

int main(int n, char **words)
{
    static const struct {
        const char *name;
        void (*print)(void);
        const struct pe_member *rows;
    } tables[] = {{"schemes", print_schemes, NULL},          {"sections", print_sections, NULL},
                  {"metrics", print_metrics, NULL},          {"analysis", NULL, pe_analysis_members},
                  {"diagnosis", NULL, pe_diagnosis_members}, {"experiments", NULL, api_live_members}};
    for (size_t i = 0; n == 2 && i < sizeof tables / sizeof *tables; i++)
        if (strcmp(words[1], tables[i].name) == 0) {
            if (tables[i].print)
                tables[i].print();
            else
                print_members(tables[i].rows);
            return 0;
        }
    fputs("usage: guide_table schemes|sections|metrics|analysis|diagnosis|experiments\n", stderr);
    return 2;
}
