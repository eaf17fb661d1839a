/* A table of sinusoidal encodings: cc table.c $(pkg-config --cflags --libs posenc) -o table */
#include <posenc.h>
#include <stdio.h>

static float table[2048 * 64];

int main(void)
{
    struct pe_error err;
    struct pe_plan *plan;
    struct pe_ask *ask = pe_ask_new("encode");
    pe_ask_text(ask, "scheme", "sinusoidal");
    pe_ask_integer(ask, "len", 2048);
    pe_ask_integer(ask, "dim", 64);
    if (pe_ask_plan(ask, &plan, &err) != PE_OK)
        return fprintf(stderr, "%s\n", err.detail), 2;
    pe_fill(plan, 0, 0, sizeof table / sizeof *table, table);
    printf("%s %.9g %.9g\n", pe_output_name(plan, 0), (double)table[64], (double)table[2047 * 64 + 1]);
    pe_plan_free(plan);
    pe_ask_free(ask);
    return 0;
}
