/* Prints the README's table of metrics from their rows, as Markdown. */
#include "core/inside.h"

#include <stdio.h>

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

int main(void)
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
    return 0;
}
