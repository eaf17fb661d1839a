/* Prints the guide's table of an answer's members from their rows, as Markdown: member_table analysis, diagnosis or
 * experiments. */
#include "api/endpoints/endpoints.h"

#include <stdio.h>
#include <string.h>

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

int main(int n, char **words)
{
    static const struct {
        const char *name;
        const struct pe_member *rows;
    } tables[] = {
        {"analysis", pe_analysis_members}, {"diagnosis", pe_diagnosis_members}, {"experiments", api_live_members}};
    for (size_t i = 0; n == 2 && i < sizeof tables / sizeof *tables; i++)
        if (strcmp(words[1], tables[i].name) == 0) {
            puts("| member | type | what |\n|---|---|---|");
            print_rows("", tables[i].rows);
            return 0;
        }
    fputs("usage: member_table analysis|diagnosis|experiments\n", stderr);
    return 2;
}
