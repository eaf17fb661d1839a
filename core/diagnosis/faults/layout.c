/* Faults of layout: which channels are a pair, and which channel of q becomes which channel of q_out.
 *
 * Two layouts are in use, pairs of halves and pairs of neighbours, and conversions of weights move the rows of a
 * projection from one to the other. Weights that are converted twice, or for another number of heads, give a model that
 * runs and rotates the wrong channels together. There are (head_dim)! orders of channels, so they cannot be tried.
 *
 * The idea: a rotation keeps the length of each pair, whatever the angle. So an order that somebody may have used (a
 * conversion applied twice, say) is tested by the lengths of the pairs alone, before any position or frequency is known
 * (channels_agree). An order without a name is read by turning q_out back with the cosines and sines of a model: what
 * remains are q's own numbers in another order.
 *
 * All pairs may be longer by one factor, that of attention. The layouts: Su et al. 2021 (arXiv 2104.09864, neighbours),
 * rotate_half of Hugging Face's modeling_llama.py (halves). */
#include "core/diagnosis/diagnosis.h"
#include "core/rotate/rotate_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNEL_WORK = 48 }; /* multiply-adds of a number that is read and compared */

/* The channels of a head that are rotated, and how they pair: c with c + n/2, or neighbours. */
struct width {
    size_t first, n;
    bool is_half;
};

/* ---- Lengths of pairs ---- */

enum { ROWS_OF_LENGTHS = 4, LENGTHS_NOISE = 64 };

static double length2(const double *x, const struct width *w, size_t c)
{
    size_t j = w->first + (w->is_half ? c : 2 * c), k = j + (w->is_half ? w->n / 2 : 1);
    return x[j] * x[j] + x[k] * x[k];
}

/* All pairs are longer by one factor, that of attention. */
static bool are_as_long(const double *in, const double *out, const struct width *w, double noise)
{
    double sum_in = 0, sum_out = 0;
    for (size_t c = 0; c < w->n / 2; c++) {
        sum_in += length2(in, w, c);
        sum_out += length2(out, w, c);
    }
    double factor = sum_in > 0 ? sum_out / sum_in : 1;
    for (size_t c = 0; c < w->n / 2; c++) {
        double expected = factor * length2(in, w, c);
        if (!(fabs(length2(out, w, c) - expected) <= LENGTHS_NOISE * noise * (expected + sum_out / (double)w->n)))
            return false;
    }
    return sum_in > 0;
}

/* Are the pairs of q, in this order, as long as those of q_out? So they are if this order was rotated, whatever the
 * angles. */
static bool channels_agree(struct pe_diagnosis *d, const struct pe_channels *channels, const struct width *w)
{
    const struct pe_evidence *e = &d->evidence;
    double in[PE_HEAD_DIM_MAX], out[PE_HEAD_DIM_MAX], noise = pe_evidence_noise(e);
    size_t n = (size_t)e->row_len;
    bool agree = true;
    for (uint64_t i = 0; agree && i < ROWS_OF_LENGTHS && i < e->n_rows; i++) {
        uint64_t row = (2 * i + 1) * e->n_rows / (2 * ROWS_OF_LENGTHS);
        pe_input_in_order(d, channels, row, in);
        pe_evidence_read(e, 0, row, 0, n, out);
        agree = are_as_long(in, out, w, noise);
        d->work += CHANNEL_WORK * (double)n;
    }
    return agree;
}

/* ---- Sizes of rows ---- */

enum { ROWS_OF_SIZES = 8 };
#define SIZE_TOLERANCE 0x1p-6 /* cosines of 16 bits and a near fit leave less */

static double size2(const double *x, size_t n)
{
    double sum = 0;
    for (size_t j = 0; j < n; j++)
        sum += x[j] * x[j];
    return sum;
}

/* Is each row of q_out as long as that of q, but for one factor? So it is in whatever order the channels are. */
static bool channels_keep_sizes(struct pe_diagnosis *d)
{
    const struct pe_evidence *e = &d->evidence;
    double x[PE_HEAD_DIM_MAX], least = (double)INFINITY, most = 0;
    size_t n = (size_t)e->row_len;
    for (uint64_t i = 0; i < ROWS_OF_SIZES && i < e->n_rows; i++) {
        uint64_t row = (2 * i + 1) * e->n_rows / (2 * ROWS_OF_SIZES);
        pe_evidence_input(e, row, x);
        double in2 = size2(x, n);
        pe_evidence_read(e, 0, row, 0, n, x);
        if (!(in2 > 0))
            continue;
        least = fmin(least, size2(x, n) / in2);
        most = fmax(most, size2(x, n) / in2);
        d->work += 4 * (double)n;
    }
    return most <= (1 + 2 * SIZE_TOLERANCE) * least || most == 0;
}

/* ---- Numbers in another order ---- */

enum { ROWS_READ = 32, NUMBERS_READ = 1 << 17, TURN_NOISE = 16 };

/* Rows of two sides that hold the same numbers in another order: x[j] is y[order[j]]. */
struct sides {
    size_t n, n_rows;
    double *x, *y; /* [n_rows, n] */
    double tolerance[ROWS_READ];
};

struct number {
    double x;
    uint32_t at;
};

static int by_size(const void *a, const void *b)
{
    const struct number *x = a, *y = b;
    return (x->x > y->x) - (x->x < y->x);
}

/* q_out, turned back by the model's angles. */
static void turn_back(const struct pe_model *m, const struct pe_row_rotation *turn, uint64_t row, double *out)
{
    double table[PE_HEAD_DIM_MAX], found[PE_HEAD_DIM_MAX];
    size_t pairs = m->n_columns / 2;
    pe_rotary_row(m, pe_model_position(m, row), table);
    for (size_t c = 0; c < pairs; c++) {
        double size2 = table[c] * table[c] + table[pairs + c] * table[pairs + c];
        table[c] /= size2;
        table[pairs + c] /= -size2;
    }
    pe_evidence_read(&m->d->evidence, 0, row, 0, (size_t)m->d->evidence.row_len, found);
    pe_rotate_row(turn, table, PE_F64, found, PE_F64, out);
}

static void read_sides(const struct pe_model *m, const struct pe_row_rotation *turn, bool is_after, size_t i,
                       uint64_t row, struct sides *s)
{
    const struct pe_evidence *e = &m->d->evidence;
    double p = fabs(pe_position_at(&m->plan->seq.k[0], pe_model_position(m, row)));
    s->tolerance[i] = (TURN_NOISE * pe_evidence_noise(e) + fmin(0x1p-20 * p, 0.125)) * e->largest;
    if (is_after) {
        pe_evidence_read(e, 0, row, 0, s->n, s->x + i * s->n);
        pe_model_fill(m, 0, row, 0, s->n, s->y + i * s->n);
    } else {
        turn_back(m, turn, row, s->x + i * s->n);
        pe_evidence_input(e, row, s->y + i * s->n);
    }
    *m->work += 4 * CHANNEL_WORK * (double)s->n;
}

static void sort(const double *x, size_t n, struct number *sorted)
{
    for (size_t j = 0; j < n; j++)
        sorted[j] = (struct number){x[j], (uint32_t)j};
    qsort(sorted, n, sizeof *sorted, by_size);
}

/* Has row 0 the same numbers on both sides? Nearly every model ends here. */
static bool are_alike(const struct sides *s, struct number *x, struct number *y)
{
    sort(s->x, s->n, x);
    sort(s->y, s->n, y);
    for (size_t j = 0; j < s->n; j++)
        if (!(fabs(x[j].x - y[j].x) <= s->tolerance[0]))
            return false;
    return true;
}

/* The largest difference of channel j of x and channel a of y, as a share of what is allowed; above 1: too large. */
static double distance(const struct sides *s, size_t j, size_t a)
{
    double most = 0;
    for (size_t i = 0; i < s->n_rows && most <= 1; i++)
        most = fmax(most, fabs(s->x[i * s->n + j] - s->y[i * s->n + a]) / s->tolerance[i]);
    return most;
}

/* The channel of y that is channel j of x and is not used yet; n: none. Among equal ones the channel itself. */
static size_t find_channel(const struct sides *s, const struct number *sorted, const bool *used, size_t j)
{
    size_t low = 0, best = s->n;
    double least = used[j] ? 2 : distance(s, j, j), x = s->x[j];
    best = least <= 1 ? j : best;
    for (size_t high = s->n; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle].x < x - s->tolerance[0])
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < s->n && sorted[low].x <= x + s->tolerance[0]; low++) {
        size_t a = sorted[low].at;
        double far = used[a] ? 2 : distance(s, j, a);
        if (far <= 1 && far < least) {
            least = far;
            best = a;
        }
    }
    return best;
}

static bool match(const struct sides *s, const struct number *sorted, bool *used, uint32_t *order)
{
    bool is_whole = true, is_moved = false;
    for (size_t j = 0; is_whole && j < s->n && !(j % 64 == 0 && pe_is_cancelled()); j++) {
        size_t a = find_channel(s, sorted, used, j);
        is_whole = a < s->n;
        if (is_whole)
            used[a] = true;
        is_moved |= a != j;
        order[j] = (uint32_t)a;
    }
    return is_whole && is_moved && !pe_is_cancelled();
}

static bool find_order(const struct pe_model *m, bool is_after, struct sides *s, struct number *sorted, uint32_t *order)
{
    const struct pe_evidence *e = &m->d->evidence;
    struct pe_row_rotation turn;
    memset(&turn, 0, sizeof turn);
    m->plan->scheme->rotate(m->plan, &turn.rotation, NULL);
    if (turn.rotation.to_half || turn.rotation.is_tiled)
        return false;
    for (size_t i = 0; i < s->n_rows; i++) {
        read_sides(m, &turn, is_after, i, (2 * i + 1) * e->n_rows / (2 * s->n_rows), s);
        if (i == 0 && !are_alike(s, sorted, sorted + s->n))
            return false;
    }
    *m->work += CHANNEL_WORK * (double)s->n * (double)s->n_rows;
    return match(s, sorted + s->n, (bool *)(sorted + 2 * s->n), order);
}

/* Reads the order [head_dim] in which q was rotated by the model's angles; is_after: in which the rotated vector was
 * sent. false: there is none but the usual one. */
static bool channels_read(struct pe_diagnosis *d, const struct pe_model *m, bool is_after, uint32_t *order)
{
    const struct pe_evidence *e = &d->evidence;
    struct sides s = {.n = (size_t)e->row_len, .n_rows = e->n_rows < ROWS_READ ? (size_t)e->n_rows : ROWS_READ};
    if (s.n * s.n_rows > NUMBERS_READ)
        s.n_rows = NUMBERS_READ / s.n;
    size_t n_bytes = s.n * (2 * s.n_rows * sizeof(double) + 2 * sizeof(struct number) + sizeof(bool));
    s.x = m->columns ? calloc(1, n_bytes) : NULL;
    d->no_memory |= m->columns && !s.x;
    if (!s.x)
        return false;
    s.y = s.x + s.n_rows * s.n;
    bool is_read = find_order(m, is_after, &s, (struct number *)(void *)(s.y + s.n_rows * s.n), order);
    free(s.x);
    return is_read;
}

/* ---- The faults ---- */

#define LAYOUT(word) PE_WORD_OF("layout", word)
enum { N_LAYOUTS = 5 };

/* Tables of pairs are the same in every layout. */
static size_t count_layouts(const struct pe_diagnosis *d)
{
    bool are_pairs = pe_edit_is_word(d, NULL, "form", "pairs") && d->evidence.kind->id != PE_OF_MAPS;
    return are_pairs ? 0 : N_LAYOUTS;
}

/* Layouts of coordinates are no slip where there is one. */
static int surprise_of_layout(const struct pe_diagnosis *d, size_t i)
{
    enum { OF_COORDINATES = 3, FAR = 4 };
    return i >= OF_COORDINATES && d->belief.model->plan->seq.n_axes < 2 ? FAR : 0;
}

/* One sentence for each alternative, in the order of faults/layout.c. */
#define HAS_LAYOUT "The tensor has the layout {found}; the configuration has {believed}."
static const char *const of_layouts[] = {
    HAS_LAYOUT " Meta's code is interleaved and Hugging Face's is half: between them, the rows of w_q and w_k must be "
               "permuted. Keep interleaved, or permute the weights; here one was done without the other.",
    HAS_LAYOUT " Meta's code is interleaved and Hugging Face's is half: if the weights are Meta's, the permutation of "
               "the rows of w_q and w_k was forgotten.",
    HAS_LAYOUT " q is in the order of Meta's weights and q_out in that of weights converted for Hugging Face's code.",
    HAS_LAYOUT,
    HAS_LAYOUT,
};

const struct pe_fault pe_fault_layout_swapped = {
    FAULT_TEXTS("layout_swapped", "layout", LAYOUT, 1, "other layout",
                "Channels are paired by another layout, e.g. half instead of interleaved.", of_layouts),

    .role = PE_ROLE_PAIRING,
    .schemes = "rope|xpos",
    PE_VALUES(LAYOUT("interleaved"), LAYOUT("half"), LAYOUT("interleaved_to_half"), LAYOUT("half_per_axis"),
              LAYOUT("vjepa2")),
    .count = count_layouts,
    .surprise_of = surprise_of_layout,
    .cures = pe_cures_layout};
/* Sinusoidal encodings have the first two. Weights have no part in them, so the sentence is another. */
const struct pe_fault pe_fault_sinusoid_layout = {
    FAULT_TEXT("layout_swapped", "sinusoid", LAYOUT, 1, "other layout",
               "Sines and cosines are neighbours instead of halves, or the reverse.", HAS_LAYOUT),

    .schemes = "sinusoidal", .not_of = PE_EVIDENCE_BIT(LADDER), PE_VALUES(LAYOUT("interleaved"), LAYOUT("half")),
    .cures = pe_cures_columns};

/* ---- Channels in another order ---- */

/* What was done to the rows of w_q, or to q: the conversion from interleaved to half, so many times; with another
 * number of heads; then any other order, of q or of what was rotated. */
enum { TWICE, REVERSED, ONCE, REVERSED_TWICE, OTHER_HEADS, ANY_OF_Q, ANY_AFTER, N_ORDERS };
static const int times_of[] = {[TWICE] = 2, [REVERSED] = -1, [ONCE] = 1, [REVERSED_TWICE] = -2, [OTHER_HEADS] = 1};

/* Row i of a converted block of n rows is this row of the old one: first those that are even, then the odd ones. */
static size_t converted(size_t i, size_t n) { return i < n / 2 ? 2 * i : 2 * i - n + 1; }
static size_t restored(size_t i, size_t n) { return i % 2 ? n / 2 + i / 2 : i / 2; }

static size_t convert(size_t i, size_t n, int times)
{
    for (int k = 0; k < abs(times); k++)
        i = times > 0 ? converted(i, n) : restored(i, n);
    return i;
}

/* Channels first … end-1 are converted, in blocks of n; false: nothing moves. */
static bool set_order(uint32_t *order, size_t n_all, size_t first, size_t end, size_t n, int times)
{
    bool is_moved = false;
    for (size_t j = 0; j < n_all; j++) {
        size_t in = (j - first) % n;
        order[j] = (uint32_t)(j >= first && j < end ? j - in + convert(in, n, times) : j);
        is_moved |= order[j] != j;
    }
    return is_moved;
}

static size_t heads_of(const struct pe_diagnosis *d)
{
    return d->evidence.axes.n ? (size_t)d->evidence.axes.n_heads : 1;
}

/* Does the order agree under the layout in use, or under the one that Hugging Face's or Meta's code has? */
static bool find_layout(struct pe_diagnosis *d, struct pe_edit *edit, struct width *w)
{
    bool is_half = pe_edit_is_word(d, edit, "layout", "half"),
         is_plain = is_half || pe_edit_is_word(d, edit, "layout", "interleaved");
    for (int i = 0; i < 2; i++) {
        w->is_half = (i == 0) == (is_half || !is_plain);
        if (!channels_agree(d, &edit->transforms.channels, w))
            continue;
        if (i > 0 || !is_plain)
            pe_edit_set_word(edit, "layout", w->is_half ? "half" : "interleaved");
        return true;
    }
    return false;
}

/* The conversion with another number of heads, as when k's rows are converted with the heads of q. */
static bool other_heads(struct pe_diagnosis *d, struct pe_edit *edit, struct width *w)
{
    size_t heads = heads_of(d), all = heads * w->n;
    if (!d->evidence.axes.n || pe_edit_has(d, edit, "tensor_layout")) /* rows of other heads are read as believed */
        return false;
    uint32_t *order = w->n == (size_t)d->evidence.row_len ? pe_edit_room(edit, all * sizeof *order) : NULL;
    for (size_t n = 1; order && n <= 16 * heads; n++) {
        bool is_other = n != heads && (heads % n == 0 || n % heads == 0) && all % (2 * n) == 0;
        if (!is_other || !set_order(order, all, 0, all, all / n, 1))
            continue;
        edit->transforms.channels = (struct pe_channels){.order = order, .n = all, .times = 1, .heads = (int64_t)n};
        if (find_layout(d, edit, w))
            return true;
    }
    return false;
}

/* An order that has no name, under each of the plain layouts. */
static bool read_order(struct pe_diagnosis *d, bool is_after, struct pe_edit *edit)
{
    static const char *const plain[] = {NULL, "half", "interleaved"};
    size_t width = (size_t)d->evidence.row_len;
    uint32_t *order = pe_edit_room(edit, width * sizeof *order);
    bool is_scaled = d->belief.model->columns && d->belief.model->columns[0].ah != 1; /* some channels of a row only */
    edit->is_hopeless = !is_scaled && !channels_keep_sizes(d);
    for (size_t i = 0; order && !edit->is_hopeless && i < sizeof plain / sizeof *plain; i++) {
        struct pe_model *m;
        if (plain[i] && pe_edit_is_word(d, edit, "layout", plain[i]))
            continue;
        if (plain[i])
            pe_edit_set_word(edit, "layout", plain[i]);
        if (!pe_edit_model(d, edit, &m))
            return false;
        bool is_read = m->has_shape && channels_read(d, m, is_after, order);
        pe_model_free(m);
        if (is_read) {
            edit->transforms.channels = (struct pe_channels){.order = order, .n = width, .is_after = is_after};
            return true;
        }
    }
    return false;
}

static bool permute(struct pe_diagnosis *d, size_t alternative, struct pe_edit *edit)
{
    size_t width = (size_t)d->evidence.row_len;
    struct width w = {.first = (size_t)pe_edit_integer(d, edit, "rotary_offset", 0),
                      .n = (size_t)pe_edit_integer(d, edit, "rotary_dim", (int64_t)width)};
    if (alternative >= ANY_OF_Q)
        return read_order(d, alternative == ANY_AFTER, edit);
    if (w.n < 4 || w.first + w.n > width || pe_edit_has(d, edit, "axes_dim"))
        return false;
    if (alternative == OTHER_HEADS)
        return other_heads(d, edit, &w);
    uint32_t *order = pe_edit_room(edit, width * sizeof *order);
    int times = times_of[alternative];
    if (!order || !set_order(order, width, w.first, w.first + w.n, w.n, times))
        return false;
    edit->transforms.channels =
        (struct pe_channels){.order = order, .n = width, .times = times, .heads = (int64_t)heads_of(d)};
    return find_layout(d, edit, &w);
}

#define CONVERSION "the conversion of Meta's weights for Hugging Face's code (interleaved to half)."
#define INVERSE " This is the inverse of " CONVERSION
#define FROM " Channel i of a head is channel found[i] of q."
#define FROM_ALL " Channel i, counted through the heads, is channel found[i] of q."
static const char *const of_orders[] = {
    "The channels of q were permuted twice before they were rotated: weights that already had it got " CONVERSION FROM,
    "The channels of q were permuted in the wrong direction before they were rotated." INVERSE FROM,
    "The channels of q were permuted before they were rotated, which the configuration does not state, by " CONVERSION
        FROM,
    "The channels of q were permuted twice in the wrong direction before they were rotated." INVERSE FROM,
    ("The channels of q were permuted for {heads} heads before they were rotated, which is not the number of q, as "
     "when k's rows are converted with the heads of q." FROM_ALL),
    "The channels of q were permuted before they were rotated, in an order that has no name." FROM,
    "The channels were permuted after the rotation: channel i of q_out is channel found[i] of the rotated vector.",
};

const struct pe_fault pe_fault_channels_permuted = {
    FAULT_TEXTS("channels_permuted", "layout", LAYOUT, 3, "channels permuted",
                "The channels of a head are in another order, e.g. because the rows of w_q were permuted twice.",
                of_orders),
    .schemes = "rope",
    .evidence = PE_EVIDENCE_BIT(ROTATED),
    .is_of_tensor = true,
    .n_alternatives = N_ORDERS,
    .apply = permute,
    .n_fits = 2,
    .fit_rank = 1,
    .fit_cost = 3};

/* ---- How many channels are rotated ---- */

/* Faults of width: how many channels are rotated, and which. */

/* Channels rotated: the whole head, shares of it, then common widths. */
static const struct {
    int64_t share, width;
} widths[] = {{1, 0}, {2, 0}, {4, 0}, {0, 16}, {0, 32}, {0, 64}};
enum { N_WIDTHS = sizeof widths / sizeof *widths };

/* Shares of the rotated channels that the belief leaves to their defaults follow the width. */
static const char *const shares[] = {"axes_dim", "mrope_section", NULL};

/* Channels in front of the last ones that come out as they went in, in some rows all over; 0: there are no queries. */
static int64_t changed_width(const struct pe_diagnosis *d)
{
    enum { ROWS = 32 };
    double in[PE_HEAD_DIM_MAX], out[PE_HEAD_DIM_MAX];
    const struct pe_evidence *e = &d->evidence;
    size_t n = (size_t)e->row_len, width = 0;
    if (e->kind->id != PE_OF_ROTATED || n > PE_HEAD_DIM_MAX)
        return 0;
    for (uint64_t k = 0; k < ROWS; k++) {
        uint64_t row = e->n_rows * k / ROWS;
        pe_evidence_input(e, row, in);
        pe_evidence_read(e, 0, row, 0, n, out);
        for (size_t c = width; c < n; c++)
            width = in[c] != out[c] ? c + 1 : width;
    }
    return (int64_t)width;
}

/* The usual widths, and what the tensor shows. */
static bool set_rotary_dim(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    int64_t head_dim = pe_edit_integer(d, edit, "head_dim", 0), now = pe_edit_integer(d, edit, "rotary_dim", head_dim);
    int64_t wanted = i == N_WIDTHS ? changed_width(d) : widths[i].share ? head_dim / widths[i].share : widths[i].width;
    if (wanted == now || wanted < 2 || wanted % 2 || wanted > head_dim)
        return false;
    pe_edit_set_integer(edit, "rotary_dim", wanted);
    for (size_t j = 0; shares[j]; j++)
        if (pe_edit_value(d, edit, shares[j]) && !pe_belief_given(d, shares[j]))
            pe_edit_remove(edit, shares[j]);
    if (pe_edit_integer(d, edit, "rotary_offset", 0) + wanted > head_dim)
        pe_edit_set_integer(edit, "rotary_offset", 0);
    return true;
}

const struct pe_fault pe_fault_rotary_dim_other = {
    FAULT_TEXT("rotary_dim_other", "width", WIDTH, 2, "other rotary width",
               "Another number of channels of a head is rotated.",
               "{found} channels of a head are rotated; the configuration has {believed}."),
    .schemes = "rope|xpos",
    .evidence = PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(MAPS),
    .n_alternatives = N_WIDTHS + 1,
    .apply = set_rotary_dim,
    .n_fits = 1};

static bool set_rotary_offset(struct pe_diagnosis *d, size_t i, struct pe_edit *edit)
{
    int64_t head_dim = pe_edit_integer(d, edit, "head_dim", 0);
    int64_t last = head_dim - pe_edit_integer(d, edit, "rotary_dim", head_dim), wanted = i == 0 ? 0 : last;
    if (wanted == pe_edit_integer(d, edit, "rotary_offset", 0))
        return false;
    pe_edit_set_integer(edit, "rotary_offset", wanted);
    return true;
}

const struct pe_fault pe_fault_rotary_offset_other = {
    FAULT_TEXT("rotary_offset_other", "width", WIDTH, 4, "other first channel",
               "The rotated channels begin elsewhere in the head.",
               "The rotated channels begin at channel {found}; the configuration has {believed}."),

    .schemes = "rope|xpos", .evidence = PE_EVIDENCE_BIT(ROTATED) | PE_EVIDENCE_BIT(MAPS), .n_alternatives = 2,
    .apply = set_rotary_offset};
