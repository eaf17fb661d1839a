/* Formulas as texts: lines "symbol = expression", and how a line is printed as plain text, TeX and MathML.
 *
 * The language is as small as the formulas of core/schemes/ need. A name is a symbol that another line defines, a
 * parameter, a tensor, or a symbol of the list below; m_h is m with the subscript h, w'_c has a prime too.
 *
 *     line      name = term   or   name[a, b] = term, for every a and b
 *     term      terms joined by or, and, one of = != < <= > >= is, by + -, by * / mod, by ^, or -term
 *               number, name, name[term, term], function(term, term), (term)
 *               { term if term; term if term; term }       the first whose condition holds, else the last
 *               sum(t, 0, n - 1, term)                     over t from 0 to n - 1; none if n is 0
 *
 * "name is word" compares a parameter that is a word, "name is given" asks whether the request has it. A parameter that
 * is a word also calls the function of that name. tests/truth/formula.py evaluates the same language, and a test
 * compares its numbers with those that plans compute. */
#include "core/inside.h"

#include <ctype.h>
#include <string.h>

const struct pe_formula_line pe_formula_symbols[] = {
    {"p", "the position; of several axes the coordinate on the axis of the pair"},
    {"j", "the channel, from 0"},
    {"c", "the pair of channels, from 0"},
    {"h", "the head, from 0"},
    {"q", "the position of the query"},
    {"k", "the position of the key"},
    {"m", "the index of the query, from 0"},
    {"n", "the index of the key, from 0"},
    {"n_m", "the index of the last key that the query sees"},
    {"N", "the number of positions"},
    {"P", "the largest position"},
    {"A", "the number of axes"},
    {"x", "the coordinate on each axis"},
    {"x_1", "the first channel of a pair of a query or key: 2c if interleaved, c if half"},
    {"x_2", "the second channel of the pair: 2c + 1 if interleaved, c + r/2 if half"},
    {"k_last", "the position of the last key"},
    {"delta", "the position of the query minus that of the key"},
    {"Q", "the queries of each head"},
    {"K", "the keys of each head"},
    {NULL, NULL},
};

/* ---- A line as a tree ---- */

enum kind {
    NUMBER,
    NAME,
    ELEMENT, /* name[…] */
    CALL,    /* name(…) */
    CHOICE,  /* of cases */
    CASE,    /* a term and its condition; without a condition: the last */
    LINE,
    OR,
    AND,
    IS,
    EQUAL,
    UNEQUAL,
    LESS,
    AT_MOST,
    MORE,
    AT_LEAST,
    PLUS,
    MINUS,
    TIMES,
    OVER,
    MOD,
    NEGATIVE,
    POWER
};

enum { NODES_MAX = 192, PRECEDENCE_MAX = 8, OF_NEGATIVE = 6 };

/* Children are a list. 0 is no node: the line itself is node 1. */
struct node {
    enum kind kind;
    const char *name; /* in the line */
    int n, first, next;
};

struct tree {
    const char *at;    /* what is not read yet */
    const char *wrong; /* where the line is not of the language; NULL: nowhere */
    int n;
    struct node nodes[NODES_MAX];
};

/* Longer ones before those that they begin with. */
static const struct {
    const char *word;
    enum kind kind;
    int precedence;
} operators[] = {{"or", OR, 1},       {"and", AND, 2}, {"is", IS, 3},  {"!=", UNEQUAL, 3}, {"<=", AT_MOST, 3},
                 {">=", AT_LEAST, 3}, {"=", EQUAL, 3}, {"<", LESS, 3}, {">", MORE, 3},     {"+", PLUS, 4},
                 {"-", MINUS, 4},     {"*", TIMES, 5}, {"/", OVER, 5}, {"mod", MOD, 5},    {"^", POWER, 7}};

static bool is_of_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '\''; }

static bool takes(struct tree *t, const char *word)
{
    size_t n = strlen(word);
    t->at += strspn(t->at, " ");
    if (strncmp(t->at, word, n) != 0 || (isalpha((unsigned char)*word) && is_of_name(t->at[n])))
        return false;
    t->at += n;
    return true;
}

static void expect(struct tree *t, const char *word)
{
    if (!takes(t, word) && !t->wrong)
        t->wrong = t->at;
}

static int add_node(struct tree *t, enum kind kind, int first, int second)
{
    bool is_full = t->n + 1 >= NODES_MAX; /* a line of ours that is too long */
    if (is_full && !t->wrong)
        t->wrong = t->at;
    int at = is_full ? t->n : ++t->n;
    t->nodes[at] = (struct node){.kind = kind, .first = first};
    if (first && second && first != at)
        t->nodes[first].next = second;
    return at;
}

static int read_term(struct tree *t, int least);

static int read_choice(struct tree *t)
{
    int choice = 0, last = 0, condition;
    do {
        int term = read_term(t, 0);
        condition = takes(t, "if") ? read_term(t, 0) : 0;
        int one = add_node(t, CASE, term, condition);
        if (last)
            t->nodes[last].next = one;
        else
            choice = one;
        last = one;
    } while (!t->wrong && takes(t, ";"));
    expect(t, condition ? ";" : "}"); /* the last has none */
    return add_node(t, CHOICE, choice, 0);
}

static int read_name(struct tree *t)
{
    const char *name = t->at;
    bool is_number = isdigit((unsigned char)*name);
    while (is_of_name(*t->at) || (is_number && *t->at == '.'))
        t->at++;
    if (t->at == name && !t->wrong)
        t->wrong = name;
    int n = (int)(t->at - name), arguments = 0;
    enum kind kind = is_number ? NUMBER : *t->at == '[' ? ELEMENT : *t->at == '(' ? CALL : NAME;
    if (kind == ELEMENT || kind == CALL) {
        t->at++;
        /* Terms until the word that ends them. */
        int first = read_term(t, 0);
        for (int last = first; !t->wrong && takes(t, ","); last = t->nodes[last].next)
            t->nodes[last].next = read_term(t, 0);
        expect(t, kind == ELEMENT ? "]" : ")");
        arguments = first;
    }
    int at = add_node(t, kind, arguments, 0);
    t->nodes[at].name = name;
    t->nodes[at].n = n;
    return at;
}

static int read_first(struct tree *t)
{
    if (takes(t, "-"))
        return add_node(t, NEGATIVE, read_term(t, OF_NEGATIVE), 0);
    if (takes(t, "{"))
        return read_choice(t);
    if (!takes(t, "("))
        return read_name(t);
    int inside = read_term(t, 0);
    expect(t, ")");
    return inside;
}

/* Of operators of at least this precedence; a power's exponent may be negative. */
static int read_term(struct tree *t, int least)
{
    int left = read_first(t);
    for (size_t i = 0; i < sizeof operators / sizeof *operators && !t->wrong; i++)
        if (operators[i].precedence >= least && takes(t, operators[i].word)) {
            bool is_power = operators[i].kind == POWER;
            int right = read_term(t, is_power ? OF_NEGATIVE : operators[i].precedence + 1);
            left = add_node(t, operators[i].kind, left, right);
            i = SIZE_MAX; /* the next operator may be any again */
        }
    return left;
}

/* Node 1 is what the line defines, and the next of it the term. */
static const char *read_line(const char *line, struct tree *t)
{
    *t = (struct tree){.at = line, .n = 1, .nodes = {[1] = {.kind = LINE}}};
    int symbol = read_name(t);
    expect(t, "=");
    t->nodes[1].first = symbol;
    t->nodes[symbol].next = read_term(t, 0);
    if (*t->at && !t->wrong)
        t->wrong = t->at;
    return t->wrong;
}

/* ---- How it is printed ---- */

/* What is before, between and after the parts, in each notation; MathML's are one element each. */
struct form {
    int precedence;
    const char *open[PE_N_NOTATIONS], *between[PE_N_NOTATIONS], *close[PE_N_NOTATIONS];
};

#define INFIX(precedence, plain, tex, mathml)                                                                          \
    {                                                                                                                  \
        precedence, {"", "", "<mrow>"}, {plain, tex, mathml}, { "", "", "</mrow>" }                                    \
    }
#define CELL "<mtd style=\"text-align:left\">" /* Chromium knows no columnalign, others no text-align */
#define RELATION(sign, tex) INFIX(3, " " sign " ", " " tex " ", "<mo>" sign "</mo>")
#define WORD(precedence, word)                                                                                         \
    INFIX(precedence, " " word " ", " \\text{ " word " } ", "<mtext>&#160;" word "&#160;</mtext>")

static const struct form forms[] = {
    [CHOICE] = {PRECEDENCE_MAX,
                {"{ ", "\\begin{cases} ", "<mrow><mo>{</mo><mtable columnalign=\"left left\">"},
                {"; ", " \\\\ ", ""},
                {" }", " \\end{cases}", "</mtable></mrow>"}},
    [CASE] = {0,
              {"", "", "<mtr>" CELL},
              {" if ", " & \\text{if } ", "</mtd>" CELL "<mtext>if&#160;</mtext>"},
              {"", "", "</mtd></mtr>"}},
    [LINE] = RELATION("=", "="),
    [OR] = WORD(1, "or"),
    [AND] = WORD(2, "and"),
    [IS] = WORD(3, "is"),
    [EQUAL] = RELATION("=", "="),
    [UNEQUAL] = RELATION("≠", "\\ne"),
    [LESS] = INFIX(3, " < ", " < ", "<mo>&lt;</mo>"),
    [AT_MOST] = RELATION("≤", "\\le"),
    [MORE] = INFIX(3, " > ", " > ", "<mo>&gt;</mo>"),
    [AT_LEAST] = RELATION("≥", "\\ge"),
    [PLUS] = INFIX(4, " + ", " + ", "<mo>+</mo>"),
    [MINUS] = INFIX(4, " - ", " - ", "<mo>−</mo>"),
    [TIMES] = INFIX(5, "·", " \\cdot ", "<mo>·</mo>"),
    [OVER] = INFIX(5, "/", " / ", "<mo>/</mo>"),
    [MOD] = INFIX(3, " mod ", " \\bmod ", "<mo>mod</mo>"),
    [NEGATIVE] = {OF_NEGATIVE, {"-", "-", "<mrow><mo>−</mo>"}, {"", "", ""}, {"", "", "</mrow>"}},
    [POWER] = {7, {"", "{", "<msup>"}, {"^", "}^{", ""}, {"", "}", "</msup>"}},
};
static const struct form fraction = {PRECEDENCE_MAX, {"", "\\frac{", "<mfrac>"}, {"", "}{", ""}, {"", "}", "</mfrac>"}};
static const struct form parentheses = {PRECEDENCE_MAX,
                                        {"(", "(", "<mrow><mo stretchy=\"false\">(</mo>"},
                                        {", ", ", ", "<mo>,</mo>"},
                                        {")", ")", "<mo stretchy=\"false\">)</mo></mrow>"}};
static const struct form tall_parentheses = {PRECEDENCE_MAX,
                                             {"(", "\\left(", "<mrow><mo>(</mo>"},
                                             {", ", ", ", "<mo>,</mo>"},
                                             {")", "\\right)", "<mo>)</mo></mrow>"}};
static const struct form brackets = {PRECEDENCE_MAX,
                                     {"[", "[", "<mo stretchy=\"false\">[</mo>"},
                                     {", ", ", ", "<mo>,</mo>"},
                                     {"]", "]", "<mo stretchy=\"false\">]</mo>"}};
static const struct form sum = {
    4, {"Σ(", "\\sum_{", "<mrow><munderover><mo>∑</mo><mrow>"}, {" = ", " = ", "<mo>=</mo>"}, {"", "", "</mrow>"}};

/* Functions with signs of their own. */
static const struct {
    const char *name;
    struct form form;
} signs[] = {
    {"abs", {PRECEDENCE_MAX, {"|", "\\left|", "<mrow><mo>|</mo>"}, {""}, {"|", "\\right|", "<mo>|</mo></mrow>"}}},
    {"floor",
     {PRECEDENCE_MAX,
      {"⌊", "\\left\\lfloor ", "<mrow><mo>⌊</mo>"},
      {""},
      {"⌋", " \\right\\rfloor ", "<mo>⌋</mo></mrow>"}}},
    {"ceil",
     {PRECEDENCE_MAX,
      {"⌈", "\\left\\lceil ", "<mrow><mo>⌈</mo>"},
      {""},
      {"⌉", " \\right\\rceil ", "<mo>⌉</mo></mrow>"}}},
    {"sqrt", {PRECEDENCE_MAX, {"√(", "\\sqrt{", "<msqrt>"}, {""}, {")", "}", "</msqrt>"}}},
};

/* Greek letters, then functions that have a name in TeX. */
enum { N_GREEK = 6 };
static const struct {
    const char *name, *shown, *tex;
} letters[] = {{"delta", "δ", "\\delta"},    {"gamma", "γ", "\\gamma"}, {"lambda", "λ", "\\lambda"},
               {"pi", "π", "\\pi"},          {"theta", "θ", "\\theta"}, {"zeta", "ζ", "\\zeta"},
               {"sin", "sin", "\\sin"},      {"cos", "cos", "\\cos"},   {"ln", "ln", "\\ln"},
               {"exp", "exp", "\\exp"},      {"min", "min", "\\min"},   {"max", "max", "\\max"},
               {"log2", "log₂", "\\log_{2}"}};

struct printer {
    const struct tree *tree;
    enum pe_notation notation;
    void (*put)(void *to, const char *bytes, size_t n);
    void *to;
};

static void put_text(const struct printer *p, const char *text) { p->put(p->to, text, strlen(text)); }

static void put_part(const struct printer *p, const char *const *of_notations)
{
    if (of_notations[p->notation])
        put_text(p, of_notations[p->notation]);
}

static bool is_name(const struct node *node, const char *name)
{
    return node->name && (size_t)node->n == strlen(name) && memcmp(node->name, name, (size_t)node->n) == 0;
}

/* A word as it is spelled; TeX needs a backslash before "_". */
static void put_word(const struct printer *p, const char *word, int n)
{
    for (int i = 0; i < n; i++) {
        if (word[i] == '_' && p->notation == PE_TEX)
            put_text(p, "\\");
        p->put(p->to, word + i, 1);
    }
}

/* The place of a name among the letters, or how many they are. */
static size_t letter_of(const char *name, int n)
{
    const struct node head = {.name = name, .n = n};
    size_t i = 0;
    while (i < sizeof letters / sizeof *letters && !is_name(&head, letters[i].name))
        i++;
    return i;
}

/* A name without its subscript: a letter in italics, Greek, or a word. */
static void put_head(const struct printer *p, const char *name, int n)
{
    size_t i = letter_of(name, n), n_letters = sizeof letters / sizeof *letters;
    static const char *const open[] = {"", "\\mathrm{", "<mi>"}, *const close[] = {"", "}", "</mi>"};
    bool is_tex = p->notation == PE_TEX, is_bare = is_tex && (i < n_letters || n == 1);
    if (!is_bare)
        put_part(p, open);
    if (i < n_letters)
        put_text(p, is_tex ? letters[i].tex : letters[i].shown);
    else
        put_word(p, name, n);
    if (!is_bare)
        put_part(p, close);
}

/* m_h, p_min and zeta_c have subscripts, num_heads has none. */
static void put_name(const struct printer *p, const char *name, int n)
{
    int head = (int)strcspn(name, "_'"), prime = head < n && name[head] == '\'', under = head + prime;
    bool is_letter = head == 1 || letter_of(name, head) < N_GREEK;
    bool has_subscript = under < n && name[under] == '_' && is_letter;
    static const char *const opens[2][2][PE_N_NOTATIONS] = {{{"", "", ""}, {"", "", "<msub>"}},
                                                            {{"", "", "<msup>"}, {"", "", "<msubsup>"}}};
    static const char *const subscript[] = {"_", "_{", ""}, *const after_subscript[] = {"", "}", ""};
    static const char *const primes[] = {"'", "'", "<mo>′</mo>"};
    static const char *const closes[2][2][PE_N_NOTATIONS] = {{{"", "", ""}, {"", "", "</msub>"}},
                                                             {{"", "", "</msup>"}, {"", "", "</msubsup>"}}};
    if (!has_subscript && !prime) {
        put_head(p, name, n);
        return;
    }
    put_part(p, opens[prime][has_subscript]);
    put_head(p, name, head);
    if (prime && p->notation != PE_MATHML)
        put_part(p, primes);
    if (has_subscript) {
        put_part(p, subscript);
        put_head(p, name + under + 1, n - under - 1);
        put_part(p, after_subscript);
    }
    if (prime && p->notation == PE_MATHML)
        put_part(p, primes);
    put_part(p, closes[prime][has_subscript]);
}

/* Is it higher than a line? */
static bool is_tall(const struct tree *t, int at, bool is_small)
{
    const struct node *node = &t->nodes[at];
    bool is_one = node->kind == CHOICE || (node->kind == OVER && !is_small) || is_name(node, "sum");
    for (int i = node->first; i && !is_one; i = t->nodes[i].next)
        is_one = is_tall(t, i, is_small || (node->kind == POWER && i != node->first));
    return is_one;
}

static void put_node(const struct printer *p, int at, int least, bool is_small);

static void put_list(const struct printer *p, int first, const struct form *form, bool is_small)
{
    put_part(p, form->open);
    for (int i = first; i; i = p->tree->nodes[i].next) {
        if (i != first)
            put_part(p, form->between);
        put_node(p, i, 0, is_small);
    }
    put_part(p, form->close);
}

/* sum(t, from, to, term) */
static void put_sum(const struct printer *p, int variable, bool is_small)
{
    static const char *const up[] = {" … ", "}^{", ""}, *const then[] = {") ", "} ", "</munderover>"};
    static const char *const end[] = {"", "", "</mrow>"};
    int from = p->tree->nodes[variable].next, to = p->tree->nodes[from].next, term = p->tree->nodes[to].next;
    put_part(p, sum.open);
    put_node(p, variable, 0, true);
    put_part(p, sum.between);
    put_node(p, from, 0, true);
    put_part(p, sum.close);
    put_part(p, up);
    put_node(p, to, 0, true);
    put_part(p, then);
    put_node(p, term, forms[TIMES].precedence, is_small);
    put_part(p, end);
}

static void put_call(const struct printer *p, int at, bool is_small)
{
    const struct node *call = &p->tree->nodes[at];
    const struct form *around = is_tall(p->tree, at, is_small) ? &tall_parentheses : &parentheses;
    static const char *const open[] = {"", "", "<mrow>"}, *const close[] = {"", "", "</mrow>"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (is_name(call, signs[i].name)) {
            put_list(p, call->first, &signs[i].form, is_small);
            return;
        }
    put_part(p, open);
    put_name(p, call->name, call->n);
    put_list(p, call->first, call->kind == CALL ? around : &brackets, is_small);
    put_part(p, close);
}

/* 2c, but 2·base and 2·3 */
static bool is_juxtaposed(const struct tree *t, int left, int right)
{
    const struct node *a = &t->nodes[left], *b = &t->nodes[right];
    while (a->kind == NEGATIVE || a->kind == TIMES)
        a = &t->nodes[a->kind == TIMES ? t->nodes[a->first].next : a->first];
    bool is_letter = b->kind == NAME && (b->n == 1 || b->name[1] == '_' || b->name[1] == '\'' || is_name(b, "pi"));
    return a->kind == NUMBER && is_letter;
}

/* The least precedence of an operand without parentheses. A product may end in any product, fraction or sum. */
static int least_of(const struct tree *t, enum kind kind, int operand, bool is_second)
{
    const struct node *inner = &t->nodes[operand];
    bool is_part = inner->kind == TIMES || inner->kind == OVER || (inner->kind == CALL && is_name(inner, "sum"));
    if (is_second && ((kind == TIMES && is_part) || (kind == PLUS && inner->kind == PLUS)))
        return 0;
    return forms[kind == MOD ? TIMES : kind].precedence + (is_second || kind == POWER);
}

static void put_operator(const struct printer *p, const struct node *node, bool is_small)
{
    static const char *const otherwise[] = {" otherwise", " & \\text{otherwise}",
                                            "</mtd>" CELL "<mtext>otherwise</mtext>"};
    const struct tree *t = p->tree;
    bool is_fraction = node->kind == OVER && !is_small && p->notation != PE_PLAIN;
    bool is_apart = is_fraction || node->kind == CASE || node->kind == LINE; /* its parts need no parentheses */
    bool is_raised = node->kind == POWER && p->notation != PE_PLAIN;
    const struct form *form = is_fraction ? &fraction : &forms[node->kind];
    int left = node->first, right = t->nodes[left].next;
    put_part(p, form->open);
    put_node(p, left, is_apart ? 0 : least_of(t, node->kind, left, false), is_small);
    if (right && (node->kind != TIMES || !is_juxtaposed(t, left, right)))
        put_part(p, form->between);
    if (right)
        put_node(p, right, is_apart || is_raised ? 0 : least_of(t, node->kind, right, true), is_small || is_raised);
    else if (node->kind == CASE)
        put_part(p, otherwise);
    put_part(p, form->close);
}

static void put_node(const struct printer *p, int at, int least, bool is_small)
{
    static const char *const number[] = {"", "", "<mn>"}, *const after_number[] = {"", "", "</mn>"};
    const struct node *node = &p->tree->nodes[at];
    bool is_sum = node->kind == CALL && is_name(node, "sum");
    bool is_atom = node->kind <= CALL && !is_sum;
    bool is_apart = !is_atom && (is_sum ? sum.precedence : forms[node->kind].precedence) < least;
    const struct form *around = is_tall(p->tree, at, is_small) ? &tall_parentheses : &parentheses;
    if (is_apart)
        put_part(p, around->open);
    if (node->kind == NUMBER) {
        put_part(p, number);
        p->put(p->to, node->name, (size_t)node->n);
        put_part(p, after_number);
    } else if (node->kind == NAME) {
        put_name(p, node->name, node->n);
    } else if (is_sum) {
        put_sum(p, node->first, is_small);
    } else if (is_atom) {
        put_call(p, at, is_small);
    } else if (node->kind == CHOICE) {
        put_list(p, node->first, &forms[CHOICE], is_small);
    } else if (node->kind == IS) {
        static const char *const word[] = {"", "\\text{", "<mtext>"}, *const after_word[] = {"", "}", "</mtext>"};
        const struct node *right = &p->tree->nodes[p->tree->nodes[node->first].next];
        put_part(p, forms[IS].open);
        put_node(p, node->first, 0, is_small);
        put_part(p, forms[IS].between);
        put_part(p, word);
        put_word(p, right->name, right->n);
        put_part(p, after_word);
        put_part(p, forms[IS].close);
    } else {
        put_operator(p, node, is_small);
    }
    if (is_apart)
        put_part(p, around->close);
}

const char *pe_formula_print(const char *line, enum pe_notation notation,
                             void (*put)(void *to, const char *bytes, size_t n), void *to)
{
    static const char *const open[] = {"", "", "<math display=\"block\">"}, *const close[] = {"", "", "</math>"};
    struct tree tree;
    struct printer p = {&tree, notation, put, to};
    if (read_line(line, &tree))
        return tree.wrong;
    put_part(&p, open);
    put_node(&p, 1, 0, false);
    put_part(&p, close);
    return NULL;
}

/* ---- The names in it ---- */

static bool are_same(const struct node *a, const struct node *b)
{
    return a->n == b->n && memcmp(a->name, b->name, (size_t)a->n) == 0;
}

/* Is it a variable of one of the line's sums? */
static bool is_bound(const struct tree *t, const struct node *name)
{
    bool is_one = false;
    for (int i = 1; i <= t->n; i++)
        is_one |= is_name(&t->nodes[i], "sum") && are_same(&t->nodes[t->nodes[i].first], name);
    return is_one;
}

static bool is_built_in(const struct node *name)
{
    static const char *const others[] = {"sum", "sign", "sigmoid"};
    bool is_letter = letter_of(name->name, name->n) < sizeof letters / sizeof *letters;
    bool is_one = (is_letter && name->kind == CALL) || is_name(name, "pi");
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        is_one |= is_name(name, signs[i].name);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        is_one |= is_name(name, others[i]);
    return is_one;
}

void pe_formula_names(const char *line, void (*each)(void *to, const char *name, size_t n), void *to)
{
    struct tree t;
    if (read_line(line, &t))
        return;
    for (int i = 1; i <= t.n; i++) {
        const struct node *node = &t.nodes[i];
        bool is_other = !node->name || node->kind == NUMBER || i == t.nodes[1].first || is_built_in(node);
        for (int j = 1; j <= t.n; j++) /* a word, or a name that came before */
            is_other |= (t.nodes[j].kind == IS && t.nodes[t.nodes[j].first].next == i) ||
                        (!is_other && j < i && t.nodes[j].name && are_same(&t.nodes[j], node));
        if (!is_other && !is_bound(&t, node))
            each(to, node->name, (size_t)node->n);
    }
}

size_t pe_formula_symbol(const char *line) { return strcspn(line, " ["); }
