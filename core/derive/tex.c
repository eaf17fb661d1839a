/* A formula of a step as TeX. Its language is that of the texts of steps: names, numbers, operators and brackets.
 *
 *     base^(-2·29/128) = 500000^(-0.453125)   →   \mathrm{base}^{-2\cdot 29/128} = 500000^{-0.453125}
 *     c_fast, 1.5e-9, w'                      →   c_{\mathrm{fast}}, 1.5\cdot 10^{-9}, w'
 *
 * Names of one letter are variables; longer ones are upright, as parameters are called. */
#include "core/derive/derive.h"

#include <ctype.h>
#include <stdio.h>

struct tex {
    char *out;
    size_t n;
    int depth;      /* of brackets that are open */
    int powers[32]; /* depths at which an exponent ends */
    size_t n_powers;
};

static void put(struct tex *t, const char *text, size_t n)
{
    if (t->n + n + 1 >= PE_TEX_MAX)
        return;
    memcpy(t->out + t->n, text, n);
    t->n += n;
    t->out[t->n] = '\0';
}

static void puts_of(struct tex *t, const char *text) { put(t, text, strlen(text)); }

static const struct {
    const char *sign, *tex;
} signs[] = {
    {"·", "\\cdot "},   {"−", "-"},         {"π", "\\pi "},   {"θ", "\\theta "}, {"λ", "\\lambda "}, {"ζ", "\\zeta "},
    {"γ", "\\gamma "},  {"≤", "\\le "},     {"≥", "\\ge "},   {"Σ", "\\sum "},   {"→", "\\to "},     {"°", "^{\\circ}"},
    {"⌊", "\\lfloor "}, {"⌋", "\\rfloor "}, {"√", "\\surd "}, {"≠", "\\ne "},    {"⌈", "\\lceil "},  {"⌉", "\\rceil "},
};

static bool is_letter(char c) { return isalpha((unsigned char)c) || c == '_'; }

static void put_upright(struct tex *t, const char *word, size_t n)
{
    puts_of(t, "\\mathrm{");
    for (size_t i = 0; i < n; i++)
        puts_of(t, word[i] == '_' ? "\\_" : (char[]){word[i], '\0'});
    puts_of(t, "}");
}

/* A name; returns its length. */
static size_t put_name(struct tex *t, const char *text)
{
    static const char *const functions[] = {"ln", "log", "log2", "cos", "sin", "exp", "min", "max"};
    size_t n = 0;
    while (is_letter(text[n]) || (n > 0 && isdigit((unsigned char)text[n])))
        n++;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strlen(functions[i]) == n && memcmp(functions[i], text, n) == 0) {
            puts_of(t, "\\");
            put(t, text, isdigit((unsigned char)text[n - 1]) ? n - 1 : n);
            puts_of(t, isdigit((unsigned char)text[n - 1]) ? "_2 " : " ");
            return n;
        }
    if (n > 2 && text[1] == '_') {
        put(t, text, 1);
        puts_of(t, "_{");
        put_upright(t, text + 2, n - 2);
        puts_of(t, "}");
    } else if (n > 1)
        put_upright(t, text, n);
    else
        put(t, text, n);
    return n;
}

/* A number, whose exponent of ten is written out; returns its length. */
static size_t put_number(struct tex *t, const char *text)
{
    size_t n = 0;
    while (isdigit((unsigned char)text[n]) || text[n] == '.')
        n++;
    put(t, text, n);
    size_t sign = text[n] == 'e' && (text[n + 1] == '-' || text[n + 1] == '+');
    if (text[n] != 'e' || !isdigit((unsigned char)text[n + 1 + sign]))
        return n;
    puts_of(t, "\\cdot 10^{");
    for (n++; isdigit((unsigned char)text[n]) || text[n] == '-'; n++)
        put(t, text + n, 1);
    puts_of(t, "}");
    return n;
}

static size_t put_exponent(struct tex *t, const char *text)
{
    puts_of(t, "^{");
    if (text[1] == '(' && t->n_powers < sizeof t->powers / sizeof *t->powers) {
        t->powers[t->n_powers++] = t->depth++;
        return 2;
    }
    size_t n = 1 + (isdigit((unsigned char)text[1]) ? put_number(t, text + 1) : put_name(t, text + 1));
    puts_of(t, "}");
    return n;
}

static size_t put_bracket(struct tex *t, char c)
{
    t->depth += c == '(' ? 1 : -1;
    bool ends = c == ')' && t->n_powers > 0 && t->powers[t->n_powers - 1] == t->depth;
    t->n_powers -= ends;
    puts_of(t, ends ? "}" : (char[]){c, '\0'});
    return 1;
}

static size_t put_sign(struct tex *t, const char *text)
{
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strncmp(text, signs[i].sign, strlen(signs[i].sign)) == 0) {
            puts_of(t, signs[i].tex);
            return strlen(signs[i].sign);
        }
    put(t, text, 1);
    return 1;
}

void pe_tex_print(const char *formula, char out[PE_TEX_MAX])
{
    struct tex t = {.out = out};
    *out = '\0';
    for (size_t n; *formula; formula += n)
        n = *formula == '^'                      ? put_exponent(&t, formula)
            : *formula == '(' || *formula == ')' ? put_bracket(&t, *formula)
            : isdigit((unsigned char)*formula)   ? put_number(&t, formula)
            : is_letter(*formula)                ? put_name(&t, formula)
                                                 : put_sign(&t, formula);
}
