/* Formulas: every line of every scheme and scaling is of the language, each of its names is something, and how lines
 * are printed, as written here by hand. What lines compute is compared with plans in
 * tests/http/encode/test_formulas.py. */
#include "core/params.h"
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <string.h>

struct piece {
    char text[8192];
    size_t n;
};

static void put(void *to, const char *bytes, size_t n)
{
    struct piece *piece = to;
    assert_in_range(piece->n + n, 0, sizeof piece->text - 1);
    memcpy(piece->text + piece->n, bytes, n);
    piece->text[piece->n += n] = '\0';
}

static const char *print(const char *line, enum pe_notation notation, struct piece *piece)
{
    *piece = (struct piece){.n = 0};
    return pe_formula_print(line, notation, put, piece);
}

/* ---- Every line ---- */

struct place {
    const struct pe_scheme_info *info;
    const struct pe_formula_line *lines, *more;
    const char *line;
};

static bool has_line(const struct pe_formula_line *lines, const char *name, bool is_whole)
{
    size_t n = strlen(name);
    for (; lines && lines->line; lines++)
        if ((is_whole ? strlen(lines->line) : pe_formula_symbol(lines->line)) == n &&
            strncmp(lines->line, name, n) == 0)
            return true;
    return false;
}

/* Is it a variable of what the line defines? */
static bool is_variable(const char *line, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = line + pe_formula_symbol(line); *p != '=' && *p != ']'; p++)
        if (strncmp(p, name, n) == 0 && strchr(" [", p[-1]) && strchr(",]", p[n]))
            return true;
    return false;
}

/* A symbol of a line, a variable, a parameter, a tensor, or a symbol of every request. */
static void is_something(void *to, const char *bytes, size_t n)
{
    const struct place *place = to;
    const struct pe_param *scaling = pe_param_find(place->info->params, "scaling");
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)n, bytes);
    bool is_one = is_variable(place->line, name) || has_line(place->lines, name, false) ||
                  has_line(place->more, name, false) || has_line(pe_formula_symbols, name, true) ||
                  pe_param_find(place->info->params, name) || (place->more && pe_param_find(scaling->fields, name)) ||
                  pe_param_find(pe_sequence_params(), name) || pe_param_find(pe_operation_at(PE_ATTEND)->params, name);
    for (const struct pe_input_row *row = place->info->inputs; row && row->name; row++)
        is_one |= strcmp(row->name, name) == 0;
    if (!is_one)
        fail_msg("%s: %s is nothing", place->line, name);
}

/* Elements of MathML close in the reverse order. */
static void is_balanced(const struct piece *piece)
{
    const char *open[64];
    size_t n = 0;
    for (const char *p = strchr(piece->text, '<'); p; p = strchr(p + 1, '<')) {
        assert_in_range(n, 0, 63);
        if (p[1] != '/') {
            open[n++] = p + 1;
            continue;
        }
        size_t n_name = strcspn(p + 2, ">");
        assert_true(n > 0 && memcmp(open[--n], p + 2, n_name) == 0 && strchr(" >", open[n][n_name]));
    }
    assert_int_equal(n, 0);
}

static size_t check_lines(struct place place, const struct pe_formula_line *lines)
{
    size_t n = 0;
    for (; lines->line; lines++, n++) {
        for (enum pe_notation notation = 0; notation < PE_N_NOTATIONS; notation++) {
            struct piece piece;
            const char *wrong = print(lines->line, notation, &piece);
            if (wrong)
                fail_msg("%s: wrong from \"%s\" on", lines->line, wrong);
            assert_true(piece.n > 0);
            if (notation == PE_MATHML)
                is_balanced(&piece);
        }
        place.line = lines->line;
        pe_formula_names(lines->line, is_something, &place);
    }
    return n;
}

TEST(every_line_is_of_the_language)
{
    for (size_t i = 0; i < pe_n_schemes(); i++) {
        const struct pe_scheme_info *info = pe_scheme_at(i);
        assert_non_null(info->formula);
        assert_true(check_lines((struct place){info, info->formula, NULL, NULL}, info->formula) > 0);
    }
    const struct pe_scheme_info *rope = pe_scheme_find("rope");
    for (size_t i = 0; i < pe_n_scalings(); i++) {
        const struct pe_formula_line *lines = pe_scaling_formula(i).lines;
        assert_non_null(lines);
        assert_true(check_lines((struct place){rope, rope->formula, lines, NULL}, lines) > 0);
        assert_true(has_line(lines, "w'_c", false));
    }
}

/* ---- Three notations ---- */

static const struct {
    const char *line, *printed[PE_N_NOTATIONS];
} rows[] = {
    {"w_c = base^(-2*c/r)",
     {"w_c = base^(-2c/r)", "w_{c} = {\\mathrm{base}}^{-2c / r}",
      "<mrow><msub><mi>w</mi><mi>c</mi></msub><mo>=</mo><msup><mi>base</mi><mrow><mrow><mrow><mo>−</mo><mn>2</mn></"
      "mrow>"
      "<mi>c</mi></mrow><mo>/</mo><mi>r</mi></mrow></msup></mrow>"}},
    {"theta = 2*pi/w'_c",
     {"θ = 2π/w'_c", "\\theta = \\frac{2\\pi}{w'_{c}}",
      "<mrow><mi>θ</mi><mo>=</mo><mfrac><mrow><mn>2</mn><mi>π</mi></mrow><msubsup><mi>w</mi><mi>c</mi><mo>′</mo>"
      "</msubsup></mfrac></mrow>"}},
    {"b = { 1 if form is key_end; x[j] }",
     {"b = { 1 if form is key_end; x[j] otherwise }",
      "b = \\begin{cases} 1 & \\text{if } \\mathrm{form} \\text{ is } \\text{key\\_end} \\\\ x[j] & \\text{otherwise} "
      "\\end{cases}",
      "<mrow><mi>b</mi><mo>=</mo><mrow><mo>{</mo><mtable columnalign=\"left left\"><mtr><mtd style=\"text-align:left\">"
      "<mn>1</mn></mtd><mtd style=\"text-align:left\"><mtext>if&#160;</mtext><mrow><mi>form</mi><mtext>&#160;is&#160;"
      "</mtext><mtext>key_end</mtext></mrow></mtd></mtr><mtr><mtd style=\"text-align:left\"><mrow><mi>x</mi>"
      "<mo stretchy=\"false\">[</mo><mi>j</mi><mo stretchy=\"false\">]</mo></mrow></mtd><mtd "
      "style=\"text-align:left\"><mtext>otherwise</mtext></mtd></mtr></mtable></mrow></mrow>"}},
    {"s = 2*sum(t, 0, n - 1, m_t*(a + 1))",
     {"s = 2·Σ(t = 0 … n - 1) m_t·(a + 1)", "s = 2 \\cdot \\sum_{t = 0}^{n - 1} m_{t} \\cdot (a + 1)", NULL}},
    {"d = floor(abs(q - k)/2)", {"d = ⌊|q - k|/2⌋", NULL, NULL}},
    {"a = b - (c - d)", {"a = b - (c - d)", "a = b - (c - d)", NULL}},
    {"a = b - c - d", {"a = b - c - d", NULL, NULL}},
    {"a = b/(c*d)", {"a = b/(c·d)", "a = \\frac{b}{c \\cdot d}", NULL}},
    {"a = b/c*d", {"a = b/c·d", "a = \\frac{b}{c} \\cdot d", NULL}},
    {"a = (b/c)^2", {"a = (b/c)^2", "a = {\\left(\\frac{b}{c}\\right)}^{2}", NULL}},
    {"a = (b + c) mod (d*e)", {"a = (b + c) mod (d·e)", NULL, NULL}},
    {"a = b + c mod d", {"a = b + (c mod d)", NULL, NULL}},
    {"a = (b^c)^d", {"a = (b^c)^d", NULL, NULL}},
    {"a = 2*base + 2*3 + 2*p_min", {"a = 2·base + 2·3 + 2p_min", NULL, NULL}},
    {"a = { b if c <= d and (e or f != g); h }", {"a = { b if c ≤ d and (e or f ≠ g); h otherwise }", NULL, NULL}},
    {"a = max_distance", {"a = max_distance", "a = \\mathrm{max\\_distance}", NULL}},
    {"a = sqrt(zeta_c)", {"a = √(ζ_c)", "a = \\sqrt{\\zeta_{c}}", NULL}},
};

TEST(lines_are_printed)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (enum pe_notation notation = 0; notation < PE_N_NOTATIONS; notation++) {
            struct piece piece, whole = {.n = 0};
            if (!rows[i].printed[notation])
                continue;
            assert_null(print(rows[i].line, notation, &piece));
            if (notation == PE_MATHML)
                put(&whole, "<math display=\"block\">", strlen("<math display=\"block\">"));
            put(&whole, rows[i].printed[notation], strlen(rows[i].printed[notation]));
            if (notation == PE_MATHML)
                put(&whole, "</math>", strlen("</math>"));
            assert_string_equal(piece.text, whole.text);
        }
}

/* A line, and what is left of it where it goes wrong. */
static const char *const wrong[][2] = {
    {"", ""},
    {"a", ""},
    {"a = ", ""},
    {"a = b +", ""},
    {"a = (b", ""},
    {"a = b)", ")"},
    {"a = { b if c }", "}"},
    {"a = b c", "c"},
    {"a = b ? c", "? c"},
    {"a = f(b", ""},
    {"a = [b]", "[b]"},
    {"= b", "= b"},
};

TEST(a_wrong_line_is_found)
{
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct piece piece;
        const char *rest = print(wrong[i][0], PE_PLAIN, &piece);
        assert_string_equal(rest ? rest : "nothing is wrong", wrong[i][1]);
    }
}

static void join(void *to, const char *name, size_t n)
{
    put(to, name, n);
    put(to, " ", 1);
}

/* No word, no function, no variable of a sum; each once. */
TEST(names_are_those_of_others)
{
    struct piece names = {.n = 0};
    pe_formula_names("y[j] = activation(sum(t, 0, n, w[j, t]*x[t])) + x[0] + { pi if form is key; cos(p) }", join,
                     &names);
    assert_string_equal(names.text, "j n w x activation form p ");
    assert_int_equal(pe_formula_symbol("y[j] = 0"), 1);
    assert_int_equal(pe_formula_symbol("w'_c = 0"), 4);
}
