/* Numbers of a text in the order of a tensor: brackets with nothing but numbers in them, or lines. */
#include "api/inputs/pasted/pasted.h"
#include "api/numbers/numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GROUPS_MAX = 4096 }; /* brackets in one text */

struct reading {
    struct pasted_numbers *p;
    const char *text, *end;
    struct pasted_list *groups; /* [n_groups] */
    size_t n, room;             /* numbers */
    size_t n_groups, n_outside; /* n_outside: numbers outside of them */
    uint64_t gap;               /* groups before "..." between them */
    bool is_ragged, is_left_out_twice;
};

/* ---- Brackets ---- */

/* The list that is open at one depth, and what every list of the depth has. */
struct level {
    uint64_t n, gap, length, gap_of_all;
    bool is_known;
};

static bool end_list(struct level *level)
{
    if (level->is_known)
        return level->n == level->length && level->gap == level->gap_of_all;
    level->is_known = true;
    level->length = level->n;
    level->gap_of_all = level->gap;
    return level->n > 0;
}

/* "<repeats 12 times>" of a number that was read; how many more there are, and where the text goes on. */
static uint64_t repeats(const char **at, const char *end)
{
    struct pasted_token sign = pasted_token(*at, end), word = pasted_token(sign.end, end);
    struct pasted_token number = pasted_token(word.end, end), times = pasted_token(number.end, end);
    if (sign.kind != PASTED_SIGN || *sign.begin != '<' || word.kind != PASTED_WORD || !pasted_is_index(&number) ||
        word.end - word.begin != 7 || memcmp(word.begin, "repeats", 7) != 0 || number.value < 1)
        return 0;
    *at = times.end < end && *times.end == '>' ? times.end + 1 : times.end;
    return (uint64_t)number.value - 1;
}

static bool put_number(struct reading *r, struct pasted_list *g, const struct pasted_token *t, uint64_t times)
{
    if (times > PASTED_REPEATED_MAX || r->n + times > r->room)
        return false;
    for (uint64_t i = 0; i < times; i++)
        r->p->numbers[r->n++] = t->value;
    g->is_whole &= pasted_is_index(t) || (*t->begin == '-' && !t->has_point && !t->has_exponent);
    pasted_digits_add(&g->digits, t);
    return true;
}

/* "[3] =" in front of a number. */
static const char *pass_index(const char *at, const char *end)
{
    struct pasted_token number = pasted_token(at, end), close = pasted_token(number.end, end);
    struct pasted_token sign = pasted_token(close.end, end);
    bool is_index = pasted_is_index(&number) && close.kind == PASTED_CLOSE && sign.kind == PASTED_SIGN;
    return is_index && *sign.begin == '=' ? sign.end : NULL;
}

static bool add_item(struct reading *r, struct pasted_list *g, struct level *levels, unsigned depth,
                     const struct pasted_token *t, const char **at)
{
    if (g->rank && g->rank != depth)
        return false;
    g->rank = depth;
    uint64_t times = 1 + repeats(at, r->end);
    levels[depth].n += times;
    return put_number(r, g, t, times);
}

/* From an opening bracket on. False: something else is in it. */
static bool read_group(struct reading *r, const char *at, struct pasted_list *g)
{
    struct level levels[PE_RANK_MAX + 1] = {{0}};
    unsigned depth = 0;
    *g = (struct pasted_list){.first = r->n, .is_whole = true};
    do {
        struct pasted_token t = pasted_token(at, r->end);
        const char *behind = t.kind == PASTED_OPEN && depth ? pass_index(t.end, r->end) : NULL;
        bool fits = true;
        at = behind ? behind : t.end;
        if (t.kind == PASTED_OPEN && !behind) {
            fits = depth < PE_RANK_MAX && !(g->rank && depth >= g->rank);
            levels[depth].n++;
            depth += fits;
            levels[depth].n = 0;
            levels[depth].gap = PASTED_NOWHERE;
        } else if (t.kind == PASTED_NUMBER) {
            fits = add_item(r, g, levels, depth, &t, &at);
        } else if (t.kind == PASTED_GAP) {
            fits = levels[depth].gap == PASTED_NOWHERE;
            r->is_left_out_twice |= !fits;
            levels[depth].gap = levels[depth].n;
        } else if (t.kind == PASTED_CLOSE) {
            fits = end_list(&levels[depth]);
            r->is_ragged |= !fits && levels[depth].n > 0;
            depth--;
        } else {
            fits = t.kind == PASTED_LINE || behind;
        }
        if (!fits || (t.kind == PASTED_END)) {
            r->n = g->first;
            return false;
        }
    } while (depth);
    for (unsigned a = 0; a < g->rank; a++) {
        g->shape[a] = levels[a + 1].length;
        g->gap[a] = levels[a + 1].gap_of_all;
    }
    g->end = at;
    g->n = r->n - g->first;
    return g->rank > 0;
}

/* "shape=(1000, 64)", "torch.Size([4, 8])". Returns where the text goes on. */
static const char *read_shape(struct reading *r, const char *at)
{
    struct pe_tensor shape = {.rank = 0};
    struct pasted_token t = pasted_token(at, r->end);
    while (t.kind == PASTED_OPEN || (t.kind == PASTED_SIGN && strchr("=:", *t.begin)))
        t = pasted_token(t.end, r->end);
    for (; pasted_is_index(&t) && shape.rank < PE_RANK_MAX; t = pasted_token(t.end, r->end))
        shape.shape[shape.rank++] = (uint64_t)t.value;
    if (t.kind != PASTED_CLOSE || !shape.rank)
        return at;
    r->p->stated = r->p->stated.rank ? r->p->stated : shape;
    return t.end;
}

static bool is_word(const struct pasted_token *t, const char *list)
{
    return t->kind == PASTED_WORD && pasted_is_among(list, t->begin, (size_t)(t->end - t->begin));
}

/* The dtype that a word like torch.bfloat16 names; PE_DTYPE_NONE: none that is narrower than f32. */
static enum pe_dtype dtype_of(const struct pasted_token *t)
{
    char word[API_DESCR_BYTES];
    if (t->kind != PASTED_WORD || (size_t)(t->end - t->begin) >= sizeof word)
        return PE_DTYPE_NONE;
    snprintf(word, sizeof word, "%.*s", (int)(t->end - t->begin), t->begin);
    return api_dtype_find(API_TORCH, word);
}

/* A token outside of brackets with numbers. */
static const char *pass_outside(struct reading *r, const struct pasted_token *t)
{
    struct pasted_token next = pasted_token(t->end, r->end);
    if (is_word(t, "shape|Size|size"))
        return read_shape(r, t->end);
    enum pe_dtype dtype = dtype_of(t);
    if (dtype != PE_DTYPE_NONE && t->begin > r->text && strchr("=.", t->begin[-1]))
        r->p->dtype = dtype;
    if (t->kind == PASTED_GAP && r->n_groups)
        r->gap = r->n_groups;
    bool is_positive = t->kind == PASTED_NUMBER && t->value > 0 && isfinite(t->value);
    if (is_positive && next.kind == PASTED_SIGN && *next.begin == '*')
        r->p->factor = t->value;
    else
        r->n_outside += t->kind == PASTED_NUMBER;
    return t->end;
}

/* All brackets with numbers, and what is around them. */
static bool read_groups(struct reading *r)
{
    uint64_t i = 0;
    for (const char *at = r->text; at < r->end && !pe_is_cancelled_at(i); i++) {
        struct pasted_token t = pasted_token(at, r->end);
        struct pasted_list *g = &r->groups[r->n_groups];
        if (t.kind != PASTED_OPEN) {
            at = pass_outside(r, &t);
            continue;
        }
        bool is_call = *t.begin == '(' && t.begin > r->text && pasted_is_of_name(t.begin[-1]); /* tensor(…) */
        bool is_group = !is_call && read_group(r, t.begin, g);
        at = is_group ? g->end : t.end;
        if (is_group && g->n == 1 && g->is_whole) /* an index, or how many there are */
            r->n = g->first;
        else
            r->n_groups += is_group;
        if (r->n_groups == GROUPS_MAX)
            return pasted_refuse(r->p, "the text has more than 4096 lists of numbers; send them as one");
    }
    return true;
}

/* Rows that a program printed one by one. */
static void join_rows(struct reading *r, struct pasted_list *rows)
{
    size_t n_rows = 0, first = rows->first;
    uint64_t width = rows->shape[0], gap = PASTED_NOWHERE;
    for (size_t i = 0; i < r->n_groups; i++) {
        const struct pasted_list *g = &r->groups[i];
        if (g->rank != 1 || g->shape[0] != width || g->gap[0] != rows->gap[0])
            continue;
        memmove(r->p->numbers + first + n_rows * width, r->p->numbers + g->first, g->n * sizeof *r->p->numbers);
        pasted_digits_join(&rows->digits, &g->digits);
        n_rows++;
        gap = r->gap == i + 1 && i + 1 < r->n_groups ? n_rows : gap;
    }
    rows->n = n_rows * width;
    if (n_rows < 2)
        return;
    rows->rank = width > 1 ? 2 : 1;
    rows->shape[1] = width;
    rows->gap[1] = rows->gap[0];
    rows->shape[0] = n_rows;
    rows->gap[0] = gap;
}

/* ---- Lines ---- */

/* What is in front of "=", or ":" and a blank, is a label; numbers in brackets are an index. */
struct line {
    uint64_t n, gap;
    size_t first;
    bool starts_with_index, is_left_out_twice;
};

static const char *read_line(struct reading *r, const char *at, struct pasted_list *g, struct line *line)
{
    *line = (struct line){.gap = PASTED_NOWHERE, .first = r->n};
    struct pasted_digits before = g->digits;
    bool is_inside = false;
    for (;;) {
        struct pasted_token t = pasted_token(at, r->end);
        at = t.end;
        if (t.kind == PASTED_END || t.kind == PASTED_LINE)
            return at;
        is_inside = t.kind == PASTED_OPEN || (is_inside && t.kind != PASTED_CLOSE);
        struct pasted_token next = pasted_token(at, r->end);
        bool is_label =
            t.kind == PASTED_SIGN && (*t.begin == '=' || (*t.begin == ':' && at < r->end && strchr(" \t", *at)));
        bool is_factor = next.kind == PASTED_SIGN && *next.begin == '*';
        if (is_label) {
            r->n = line->first;
            line->n = 0;
            line->gap = PASTED_NOWHERE;
            g->digits = before;
        } else if (t.kind == PASTED_NUMBER && !is_inside && !is_factor) {
            line->starts_with_index = line->n ? line->starts_with_index : pasted_is_index(&t);
            line->n += put_number(r, g, &t, 1);
        } else if (t.kind == PASTED_GAP) {
            line->is_left_out_twice |= line->n && line->gap != PASTED_NOWHERE && line->gap != line->n;
            line->gap = line->n;
        }
    }
}

/* Drops a first column that counts the rows. */
static void drop_index(struct reading *r, struct pasted_list *g)
{
    double *x = r->p->numbers + g->first;
    for (uint64_t i = 0; i < g->shape[0]; i++)
        if (x[2 * i] != (double)i)
            return;
    for (uint64_t i = 0; i < g->shape[0]; i++)
        x[i] = x[2 * i + 1];
    g->n = g->shape[0];
    g->shape[1] = 1;
}

/* Each line with numbers is a row. */
static bool read_lines(struct reading *r, struct pasted_list *g)
{
    bool have_index = true;
    struct line line;
    r->n = 0;
    *g = (struct pasted_list){.rank = 2, .gap = {PASTED_NOWHERE, PASTED_NOWHERE}, .is_whole = true};
    for (const char *at = r->text; at < r->end && !pe_is_cancelled();) {
        at = read_line(r, at, g, &line);
        if (line.n == 0) {
            g->gap[0] = line.gap != PASTED_NOWHERE && g->shape[0] ? g->shape[0] : g->gap[0];
            continue;
        }
        if (line.is_left_out_twice) {
            r->is_left_out_twice = true;
            return false;
        }
        if (g->shape[0]++ == 0) {
            g->shape[1] = line.n;
            g->gap[1] = line.gap;
        } else if (line.n != g->shape[1] || line.gap != g->gap[1]) {
            r->is_ragged = true;
            return false;
        }
        have_index &= line.starts_with_index;
    }
    g->n = r->n;
    if (have_index && g->shape[1] == 2 && g->shape[0] > 1 && g->digits.plain > 0)
        drop_index(r, g);
    g->rank = g->shape[1] == 1 && g->gap[1] == PASTED_NOWHERE ? 1 : 2;
    return g->n > 0;
}

/* ---- The whole ---- */

bool pasted_lists_read(struct pasted_numbers *p, size_t room, struct pasted_list *list)
{
    struct reading r = {.p = p, .text = p->text, .end = p->text + strlen(p->text), .room = room, .gap = PASTED_NOWHERE};
    bool are_two = false;
    size_t n_brackets = 1;
    for (const char *at = r.text; n_brackets <= GROUPS_MAX && (at = strpbrk(at, "[{(")); at++)
        n_brackets++;
    r.groups = api_arena_array(&p->request->arena, n_brackets, sizeof *r.groups);
    if (!r.groups)
        return api_fail_memory(p->problem);
    if (!read_groups(&r))
        return false;
    /* The brackets that are meant, if there are any. */
    struct pasted_list *best = NULL;
    for (size_t i = 0; i < r.n_groups; i++) {
        struct pasted_list *g = &r.groups[i];
        if (best && g->n == best->n && g->rank == best->rank)
            are_two = best->rank > 1;
        else if (!best || g->n > best->n) {
            best = g;
            are_two = false;
        }
    }
    if (best && best->rank == 1)
        join_rows(&r, best);
    bool is_tensor = best && (best->n > r.n_outside || !best->is_whole);
    const struct pasted_list *found = is_tensor ? best : NULL;
    if (found && are_two)
        return pasted_refuse(p, "the text has two tensors of one shape; send each under its own name");
    if (found)
        *list = *found;
    if (found || read_lines(&r, list))
        return true;
    if (r.is_left_out_twice)
        return pasted_refuse(p,
                             "the text leaves out numbers (...) twice in one row: what is between them has no place");
    return pasted_refuse(p, r.is_ragged ? "the text has rows of different lengths"
                                        : "the text has no numbers; a tensor is a list of numbers, or a text as torch "
                                          "or NumPy prints it");
}
