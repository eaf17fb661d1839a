/* Position ids made wrong on purpose, by the rules of get_rope_index in transformers and of VideoRoPE, written here
 * once more for text, images and video: the first candidate gives the ids, and the mistake is named. */
#include "tests/core/diagnosis/ask.h"
#include "tests/support/random.h"

enum { IDS_MAX = 4096, SEGMENTS_MAX = 5 };
static const char *const styles[] = {"qwen2_vl",   "qwen2_5_vl", "qwen2_5_vl_int_seconds", "qwen3_vl", "qwen2_5_omni",
                                     "qwen3_omni", "videorope"};
enum style { QWEN2, QWEN2_5, INT_SECONDS, QWEN3, OMNI2_5, OMNI3, VIDEOROPE, N_STYLES };

struct part {
    bool is_text, is_video;
    size_t len, frames, rows, cols; /* rows, cols: patches */
    double seconds;
};

struct recipe {
    enum style style;
    size_t merge, n_parts;
    double rate; /* tokens_per_second, position_id_per_seconds */
    struct part parts[SEGMENTS_MAX];
    unsigned order[3];
    size_t n;
    double ids[3][IDS_MAX];
};

static int64_t among(int64_t least, int64_t most)
{
    return least + (int64_t)(random_bits() % (uint64_t)(most - least + 1));
}

/* ---- The rules ---- */

/* Products are rounded to float32, as torch does it. */
static double time_of(const struct recipe *r, const struct part *p, size_t k)
{
    float elapsed = (float)k * (float)p->seconds, ids = elapsed * (float)r->rate;
    switch (r->style) {
    case QWEN2: return (double)k;
    case QWEN2_5: return p->is_video ? trunc((double)ids) : 0;
    case INT_SECONDS: return p->is_video ? (double)k * trunc(p->seconds) * r->rate : 0;
    case QWEN3: return 0;
    case OMNI2_5: return trunc((double)ids);
    case OMNI3: return (double)ids;
    default: return 2 * (double)k;
    }
}

static double rounded(const struct recipe *r, double x) { return r->style >= OMNI3 ? (double)(float)x : x; }

static void put(struct recipe *r, double t, double h, double w)
{
    assert_true(r->n < IDS_MAX);
    r->ids[0][r->n] = rounded(r, t);
    r->ids[1][r->n] = rounded(r, h);
    r->ids[2][r->n++] = rounded(r, w);
}

static void put_grid(struct recipe *r, const struct part *p, double start)
{
    size_t rows = p->rows / r->merge, cols = p->cols / r->merge;
    for (size_t k = 0; k < p->frames; k++)
        for (size_t y = 0; y < rows; y++)
            for (size_t x = 0; x < cols; x++) {
                double t = rounded(r, start + time_of(r, p, k));
                if (r->style == VIDEOROPE)
                    put(r, t, t + (double)y - (double)((rows - 1) / 2), t + (double)x - (double)((cols - 1) / 2));
                else
                    put(r, t, start + (double)y, start + (double)x);
            }
}

static void lay_out(struct recipe *r)
{
    double start = 0;
    r->n = 0;
    for (size_t i = 0; i < r->n_parts; i++) {
        size_t first = r->n;
        for (size_t j = 0; r->parts[i].is_text && j < r->parts[i].len; j++)
            put(r, start + (double)j, start + (double)j, start + (double)j);
        if (!r->parts[i].is_text)
            put_grid(r, &r->parts[i], start);
        double largest = r->ids[0][first];
        for (size_t a = 0; a < (r->style == VIDEOROPE ? 1 : 3); a++)
            for (size_t j = first; j < r->n; j++)
                largest = fmax(largest, r->ids[a][j]);
        start = rounded(r, largest + 1);
    }
}

static struct sent make(struct recipe *r)
{
    lay_out(r);
    uint64_t shape[] = {3, r->n};
    bool fractional = false;
    double *x = malloc(3 * r->n * sizeof *x);
    assert_non_null(x);
    for (size_t a = 0; a < 3; a++)
        for (size_t j = 0; j < r->n; j++) {
            x[a * r->n + j] = r->ids[r->order[a]][j];
            fractional |= x[a * r->n + j] != floor(x[a * r->n + j]);
        }
    return sent_new("position_ids", fractional ? PE_F32 : random_bits() % 2 ? PE_I64 : PE_I32, 2, shape, x);
}

/* ---- Beliefs ---- */

/* Qwen3-VL writes each frame as a segment of its own, so its sequences have no other videos. */
static struct part any_part(size_t i, bool is_single)
{
    static const double seconds[] = {1, 0.5, 2, 0.3, 1.5};
    struct part p = {.is_text = i % 2 == 0, .is_video = random_bits() % 3 > 0, .len = (size_t)among(1, 9)};
    p.frames = p.is_video && !is_single ? (size_t)among(2, 9) : 1;
    p.rows = 2 * (size_t)among(1, 4);
    p.cols = 2 * (size_t)among(1, 5);
    p.seconds = p.is_video ? seconds[random_bits() % 5] : 1;
    return p;
}

static double usual_rate(enum style style) { return style == OMNI2_5 || style == OMNI3 ? 25 : 2; }

static void right_recipe(struct recipe *r, unsigned in_styles)
{
    memset(r, 0, sizeof *r);
    do
        r->style = (enum style)(random_bits() % N_STYLES);
    while (!(in_styles & 1U << r->style));
    r->merge = 2;
    r->rate = usual_rate(r->style);
    r->n_parts = (size_t)among(2, SEGMENTS_MAX);
    bool is_single = r->style == QWEN3 || random_bits() % 4 == 0;
    for (size_t i = 0; i < r->n_parts; i++)
        r->parts[i] = any_part(i, is_single);
    for (unsigned a = 0; a < 3; a++)
        r->order[a] = a;
}

static void print_part(const struct part *p, char *json, size_t room)
{
    size_t at = strlen(json);
    if (p->is_text)
        snprintf(json + at, room - at, "{'type':'text','len':%zu}", p->len);
    else if (p->is_video)
        snprintf(json + at, room - at, "{'type':'video','grid':[%zu,%zu,%zu],'second_per_grid':%g}", p->frames, p->rows,
                 p->cols, p->seconds);
    else
        snprintf(json + at, room - at, "{'type':'image','grid':[%zu,%zu,%zu]}", p->frames, p->rows, p->cols);
}

static void print_belief(const struct recipe *r, char *json, size_t room)
{
    snprintf(json, room, "{'scheme':'rope','position_style':'%s','segments':[", styles[r->style]);
    for (size_t i = 0; i < r->n_parts; i++) {
        strncat(json, i ? "," : "", room - strlen(json) - 1);
        print_part(&r->parts[i], json, room);
    }
    strncat(json, "]}", room - strlen(json) - 1);
}

/* ---- Mistakes ---- */

typedef bool mistake_fn(struct recipe *r);

static bool other_style(struct recipe *r)
{
    r->style = (enum style)((r->style + among(1, N_STYLES - 1)) % N_STYLES);
    r->rate = usual_rate(r->style);
    bool has_frames = false;
    for (size_t i = 0; i < r->n_parts; i++)
        has_frames |= r->parts[i].frames > 1;
    return !(has_frames && r->style == QWEN3);
}

static bool other_rate(struct recipe *r)
{
    static const double rates[] = {1, 2, 4, 25};
    r->rate = rates[random_bits() % 4];
    return true;
}

static bool other_merge(struct recipe *r)
{
    r->merge = 1;
    return true;
}

static bool other_order(struct recipe *r)
{
    unsigned a = (unsigned)among(0, 2), b = (a + (unsigned)among(1, 2)) % 3, kept = r->order[a];
    r->order[a] = r->order[b];
    r->order[b] = kept;
    return true;
}

static const struct mistake {
    const char *code;
    mistake_fn *make;
    unsigned in_styles;
} mistakes[] = {
    {"position_style_other", other_style, ~0U},
    {"tokens_per_second_other", other_rate, 1U << QWEN2_5 | 1U << INT_SECONDS},
    {"merge_size_other", other_merge, ~0U},
    {"axes_swapped", other_order, ~0U},
};
enum { N_MISTAKES = sizeof mistakes / sizeof *mistakes, TRIES = 40, JSON_MAX = 4096 };

enum outcome { MISSED, BY_ANOTHER, NAMED };

/* Another single fault may give the same ids. */
static enum outcome ask_about(const struct recipe *belief, const struct sent *s, const char *const *codes,
                              size_t n_codes)
{
    char json[JSON_MAX];
    struct asked a;
    bool is_named = true;
    print_belief(belief, json, sizeof json);
    ask(&a, json, s, NULL, 0);
    if (!a.answer)
        fail_msg("%s: %s: %s", json, a.err.pointer, a.err.detail);
    for (size_t i = 0; i < n_codes; i++)
        is_named &= finding(&a, codes[i]) != NULL;
    bool is_given = !finding(&a, "unexplained") && reproduces(&a, s, 0);
    if (!is_named || !is_given)
        print_message("%s: expected %s, got %s%s\n", json, codes[0], codes_of(&a),
                      is_given ? "" : ", which does not give the ids");
    bool is_one = item(member(a.answer, "findings"), n_codes) == NULL;
    asked_drop(&a);
    return !is_given ? MISSED : is_named ? NAMED : is_one ? BY_ANOTHER : MISSED;
}

TEST(every_single_mistake_is_named)
{
    size_t missed = 0;
    for (size_t m = 0; m < N_MISTAKES; m++) {
        size_t n_asked = 0, n_outcomes[] = {0, 0, 0};
        for (size_t i = 0; i < TRIES; i++) {
            struct recipe right, wrong;
            right_recipe(&right, mistakes[m].in_styles);
            wrong = right;
            bool applies = mistakes[m].make(&wrong);
            struct sent before = make(&right), s = make(&wrong);
            if (applies && !sent_equal(&before, &s)) {
                n_asked++;
                n_outcomes[ask_about(&right, &s, &mistakes[m].code, 1)]++;
            }
            sent_free(&before);
            sent_free(&s);
        }
        print_message("%-24s %3zu asked, %3zu named, %zu by another fault\n", mistakes[m].code, n_asked,
                      n_outcomes[NAMED], n_outcomes[BY_ANOTHER]);
        missed += n_outcomes[MISSED];
        assert_true(n_asked > 0 && n_outcomes[BY_ANOTHER] * 2 <= n_asked);
    }
    assert_int_equal(missed, 0);
}

/* Rows are exchanged in ids that another rule gave. */
TEST(exchanged_rows_are_named_beside_another_mistake)
{
    for (size_t m = 0; m < N_MISTAKES - 1; m++)
        for (size_t i = 0; i < TRIES / 4; i++) {
            struct recipe right, one, both;
            const char *const codes[] = {mistakes[m].code, "axes_swapped"};
            right_recipe(&right, mistakes[m].in_styles);
            one = right;
            bool applies = mistakes[m].make(&one);
            both = one;
            struct sent before = make(&right), begun = make(&one);
            other_order(&both);
            struct sent s = make(&both);
            if (applies && !sent_equal(&before, &begun) && !sent_equal(&begun, &s))
                assert_int_not_equal(ask_about(&right, &s, codes, 2), MISSED);
            sent_free(&before);
            sent_free(&begun);
            sent_free(&s);
        }
}

TEST(the_right_ids_are_as_believed)
{
    static const char *const codes[] = {"as_believed"};
    for (size_t i = 0; i < 40; i++) {
        struct recipe r;
        right_recipe(&r, ~0U);
        struct sent s = make(&r);
        assert_int_equal(ask_about(&r, &s, codes, 1), NAMED);
        sent_free(&s);
    }
}
