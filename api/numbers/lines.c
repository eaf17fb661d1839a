/* The texts of lines. An element of a Toeplitz matrix of R rows and C columns is one of R+C-1 numbers, so a map of 1024
 * by 1024 has 512 times as many elements as texts; its rows are then copied at the speed of memory.
 *
 * The line of numbers is printed once for each head, with the place of each number in it; a row of the matrix is a
 * stretch of that text, commas included, so even the join is one copy. Schemes whose rows repeat without a stored line
 * get less from elements.c, which compares values. */
#include "api/numbers/numbers.h"
#include "api/limits.h"

#include <string.h>

/* Most bytes of a line's values, text and beginnings, rounded up to keep the next line's values aligned. */
static size_t room_of(size_t n, enum pe_dtype dtype, int digits)
{
    size_t each = pe_dtype_size(dtype) + api_number_width(dtype, digits) + 1 + sizeof(uint32_t);
    return (n * each + 2 * sizeof(uint32_t) + 63) & ~(size_t)63;
}

static bool make_room(struct api_arena *arena, struct api_lines *lines, size_t n_matrices)
{
    lines->states = api_arena_array(arena, n_matrices, sizeof *lines->states);
    lines->kept = api_arena_array(arena, n_matrices, lines->room);
    for (size_t i = 0; lines->states && i < n_matrices; i++)
        atomic_init(&lines->states[i], 0);
    return lines->states && lines->kept;
}

bool api_lines_new(struct api_arena *arena, const struct pe_plan *plan, size_t index, int digits,
                   struct api_lines **lines)
{
    const struct pe_output *output = pe_plan_output(plan, index);
    uint64_t n_rows = output->rank >= 2 ? output->shape[output->rank - 2] : 0;
    *lines = NULL;
    if (n_rows == 0 || n_rows + output->row_len > API_LINES_MAX || !pe_fill_line(plan, index, 0, 0, 0, NULL))
        return true;
    size_t n = (size_t)(n_rows + output->row_len - 1), room = room_of(n, output->dtype, digits);
    uint64_t n_matrices = output->n_rows / n_rows;
    if (n_matrices > API_LINES_MAX / room)
        return true;
    struct api_lines *made = api_arena_alloc(arena, sizeof *made);
    if (!made)
        return false;
    *made = (struct api_lines){plan, output, index, digits, n_rows, n, room, NULL, NULL};
    *lines = made;
    return make_room(arena, made, (size_t)n_matrices);
}

/* ---- One line ---- */

struct line {
    char *values, *text;
    uint32_t *begins; /* [n + 1]: start of each number's text; the last is one past the comma that would follow */
};

static struct line line_of(const struct api_lines *lines, uint64_t matrix)
{
    struct line l = {.values = lines->kept + matrix * lines->room};
    size_t beside = lines->n * pe_dtype_size(lines->output->dtype);
    l.begins = (uint32_t *)(void *)(l.values + ((beside + 3) & ~(size_t)3));
    l.text = (char *)(l.begins + lines->n + 1);
    return l;
}

/* Numbers printed between two searches for commas: their text is still in the first-level cache. */
enum { AT_ONCE = 256 };

enum { TO_MAKE, IN_MAKING, MADE };

static bool is_made(struct api_lines *lines, uint64_t matrix)
{
    atomic_uchar *state = &lines->states[matrix];
    unsigned char found = atomic_load_explicit(state, memory_order_acquire);
    if (found != TO_MAKE ||
        !atomic_compare_exchange_strong_explicit(state, &found, IN_MAKING, memory_order_acquire, memory_order_acquire))
        return found == MADE;
    struct line l = line_of(lines, matrix);
    enum pe_dtype dtype = lines->output->dtype;
    char *end = l.text;
    size_t known = 0;
    pe_fill_line(lines->plan, lines->index, matrix, 0, lines->n, l.values);
    for (size_t at = 0, m; at < lines->n && !pe_is_cancelled(); at += m) {
        const char *from = end;
        m = lines->n - at < AT_ONCE ? lines->n - at : AT_ONCE;
        end = api_numbers_print(end, dtype, l.values + at * pe_dtype_size(dtype), m, lines->digits);
        *end++ = ',';
        l.begins[known++] = (uint32_t)(from - l.text);
        for (const char *p = from; p < end - 1; p++)
            if (*p == ',')
                l.begins[known++] = (uint32_t)(p + 1 - l.text);
    }
    l.begins[known] = (uint32_t)(end - l.text);
    bool is_whole = !pe_was_cancelled(); /* else the client has disconnected */
    atomic_store_explicit(state, is_whole ? MADE : TO_MAKE, memory_order_release);
    return is_whole;
}

struct api_span api_lines_span(struct api_lines *lines, uint64_t first, size_t n)
{
    uint64_t row = first / lines->output->row_len, col = first % lines->output->row_len;
    uint64_t matrix = row / lines->n_rows, i = row % lines->n_rows;
    if (!is_made(lines, matrix))
        return (struct api_span){NULL, 0};
    struct line l = line_of(lines, matrix);
    const uint32_t *begin = l.begins + (lines->n_rows - 1 - i + col);
    return (struct api_span){l.text + begin[0], begin[n] - begin[0] - 1};
}
