/* Prints tables of guides from their rows, as Markdown: guide_table schemes, formulas, metrics, or the members of an
 * answer: analysis, diagnosis, experiments. */
#include "api/endpoints/endpoints.h"

#include <stdio.h>
#include <string.h>

/* ---- Schemes -------------------------------------------------------------------------------------------------- */

static void print_outputs(const struct pe_output_row *outputs)
{
    for (size_t i = 0; outputs[i].name; i++)
        printf("%s`%s` `[%s]`%s%s%s", i ? "<br>" : "", outputs[i].name, outputs[i].shape, outputs[i].when ? ", " : "",
               outputs[i].when ? outputs[i].when : "", outputs[i].on_request ? ", on request" : "");
}

/* A default is shown where it is constant: a number, a word, true or false. */
static void print_fallback(const struct pe_param *row)
{
    bool unset = row->fallback != row->fallback;
    if (row->type == PE_T_WORD)
        printf(" %s", row->words[unset ? 0 : (int)row->fallback]);
    else if (row->type == PE_T_BOOL)
        printf(" %s", row->fallback != 0 ? "true" : "false");
    else if ((row->type == PE_T_INT || row->type == PE_T_REAL) && !unset)
        printf(" %.10g", row->fallback);
}

static void print_params(const struct pe_param *params)
{
    for (size_t i = 0; params[i].name; i++) {
        printf("%s`%s`", i ? ", " : "", params[i].name);
        print_fallback(&params[i]);
    }
}

static void print_schemes(void)
{
    puts("| scheme | family | what | outputs | parameters (default) | paper |\n|---|---|---|---|---|---|");
    for (size_t i = 0; i < pe_n_schemes(); i++) {
        const struct pe_scheme_info *info = pe_scheme_at(i);
        printf("| `%s` | %s | %s | ", info->name, info->family, info->about.summary);
        print_outputs(info->outputs);
        printf(" | ");
        print_params(info->params);
        printf(" | %s |\n", info->paper);
    }
}

/* ---- Formulas ------------------------------------------------------------------------------------------------- */

static void print_piece(void *to, const char *bytes, size_t n) { fwrite(bytes, 1, n, to); }

static void print_lines(const char *title, const struct pe_formula_line *lines)
{
    printf("\n**%s**\n\n", title);
    for (; lines->line; lines++) {
        fputs("- `", stdout);
        pe_formula_print(lines->line, PE_PLAIN, print_piece, stdout);
        printf("`: %s\n", lines->says);
    }
}

static void print_formulas(void)
{
    for (size_t i = 0; pe_formula_symbols[i].line; i++)
        printf("%s`%s`: %s", i ? "; " : "Symbols that no line defines are ", pe_formula_symbols[i].line,
               pe_formula_symbols[i].says);
    puts(".");
    for (size_t i = 0; i < pe_n_schemes(); i++)
        print_lines(pe_scheme_at(i)->name, pe_scheme_at(i)->formula);
    for (size_t i = 0; i < pe_n_scalings(); i++) {
        char title[64];
        snprintf(title, sizeof title, "scaling: %s", pe_scaling_formula(i).name);
        print_lines(title, pe_scaling_formula(i).lines);
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
    } tables[] = {{"schemes", print_schemes, NULL},          {"formulas", print_formulas, NULL},
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
    fputs("usage: guide_table schemes|formulas|metrics|analysis|diagnosis|experiments\n", stderr);
    return 2;
}
