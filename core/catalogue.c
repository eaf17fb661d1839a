/* How the catalogue presents its rows to a form: families and sections, and what a row's control follows from. */
#include "core/params.h"

#include <ctype.h>

/* ---- Headings ---- */

static const struct pe_heading families[] = {
    {"absolute", {"absolute", "an encoding of each position, added to the embeddings"}},
    {"rotary", {"rotary", "queries and keys are rotated by their positions"}},
    {"bias", {"bias", "a bias on the logits of each pair of positions"}},
    {"relative", {"relative", "terms that depend on the distance and on content"}},
};

size_t pe_n_families(void) { return sizeof families / sizeof *families; }

const struct pe_heading *pe_family_at(size_t i) { return &families[i]; }

static const struct pe_heading groups[PE_N_GROUPS] = {
    [PE_G_SCHEME] = {"scheme", {"scheme", "what is particular to the scheme"}},
    [PE_G_SEQUENCE] = {"sequence", {"sequence", "the positions that are encoded"}},
    [PE_G_SEGMENTS] = {"segments", {"multimodal sequence", "text, images, video and sound in one sequence"}},
    [PE_G_SIZE] = {"size", {"sizes", "widths, and numbers of heads"}},
    [PE_G_FREQUENCIES] = {"frequencies", {"frequencies", "how fast each channel turns with the position"}},
    [PE_G_SCALING] = {"scaling", {"context scaling", "changes for longer contexts"}},
    [PE_G_LAYOUT] = {"layout", {"layout", "order and signs of the channels"}},
    [PE_G_AXES] = {"axes", {"several axes", "images, video and other grids"}},
    [PE_G_MASK] = {"mask", {"mask", "which keys a query sees"}},
    [PE_G_WEIGHTS] = {"weights", {"weights", "random weights in place of learned ones"}},
    [PE_G_COMBINATION] = {"combination", {"combination", "how the encoding meets the embeddings"}},
    [PE_G_ATTENTION] = {"attention", {"attention", "from products to weights"}},
    [PE_G_NUMBERS] = {"numbers", {"numbers", "precision of the computation"}},
    [PE_G_ANSWER] = {"answer", {"answer", "which numbers are answered, and how"}},
    [PE_G_PICTURE] = {"picture", {"picture", "the look of pictures"}},
};

const struct pe_heading *pe_group_at(enum pe_group group) { return &groups[group]; }

/* ---- Controls ---- */

static bool is_number(const struct pe_param *row) { return row->type == PE_T_INT || row->type == PE_T_REAL; }

static bool has_default(const struct pe_param *row)
{
    if (row->type == PE_T_WORD)
        return row->fallback >= 0;
    return row->type == PE_T_BOOL || (is_number(row) && !isnan(row->fallback));
}

bool pe_param_is_basic(const struct pe_param *row)
{
    bool is_central = row->group == PE_G_SCHEME || row->group == PE_G_SIZE || row->group == PE_G_FREQUENCIES;
    if (row->level != PE_LEVEL_OF_ROW)
        return row->level == PE_BASIC;
    return is_central && has_default(row) && !row->when && !row->excludes;
}

static double clamp(double x, double lo, double hi) { return x < lo ? lo : x > hi ? hi : x; }

/* A parameter without values of its own yet: a few times its default, or small numbers. */
static struct pe_interval around(const struct pe_param *row)
{
    double x = isnan(row->fallback) ? 0 : fabs(row->fallback), most = x > 0 ? 8 * x : 64;
    double least = row->min < 0 ? -most : 0;
    if (row->min > 0)
        least = x > 0 ? x / 8 : row->min;
    if (row->type == PE_T_INT)
        least = floor(least);
    struct pe_interval usual = {clamp(least, row->min, row->max), clamp(most, row->min, row->max)};
    return usual.lo < usual.hi ? usual : (struct pe_interval){row->min, row->max};
}

bool pe_param_usual(const struct pe_param *row, struct pe_interval *usual)
{
    enum { FEW = 64 };
    if (!is_number(row))
        return false;
    if (row->usual.lo < row->usual.hi)
        *usual = row->usual;
    else if (row->max - row->min <= FEW)
        *usual = (struct pe_interval){row->min, row->max};
    else
        *usual = around(row);
    return true;
}

bool pe_interval_is_log(const struct pe_interval *usual)
{
    const double LARGE = 64;
    return usual->lo > 0 && usual->hi >= LARGE * usual->lo;
}

/* ---- Outputs ---- */

bool pe_output_suits(const struct pe_output_row *row, const struct pe_scheme_info *scheme)
{
    return !row->families || pe_is_among(row->families, scheme->family);
}

/* What an expression in a shape counts; any other counts channels. */
static const struct {
    const char *expression, *axis;
} axes[] = {
    {"n", "position"},  {"n+num_prefix", "position"}, {"q_len", "query"}, {"k_len", "key"},  {"num_heads", "head"},
    {"batch", "batch"}, {"rotary_dim/2", "pair"},     {"axes", "axis"},   {"terms", "term"},
};

static size_t name_axis(const char *expression, size_t n, const char **name)
{
    *name = isdigit((unsigned char)*expression) ? "component" : "dim";
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
        if (strlen(axes[i].expression) == n && memcmp(axes[i].expression, expression, n) == 0)
            *name = axes[i].axis;
    return strlen(*name);
}

size_t pe_output_axis(const struct pe_output_row *row, unsigned i, const char **name)
{
    const char *part = row->axes ? row->axes : row->shape;
    for (; i > 0 && *part; i--) {
        part += strcspn(part, ",");
        part += *part == ',';
    }
    size_t n = strcspn(part, ",");
    if (n == 0)
        return 0;
    if (!row->axes)
        return name_axis(part, n, name);
    *name = part;
    return n;
}
