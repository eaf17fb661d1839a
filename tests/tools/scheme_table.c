/* Prints the README's table of schemes from the registry, as Markdown. */
#include "core/inside.h"

#include <stdio.h>

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

int main(void)
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
    return 0;
}
