/* Numbers and their text, many at once. */
#ifndef API_NUMBERS_H
#define API_NUMBERS_H

#include "api/arena.h"
#include "core/inside.h"

#include <stdatomic.h>
#include <stdint.h>

/* ---- elements.c, numbers_read.c, numbers_print.c ----------------------------------------------------------------- */

/* Numbers as JSON text, both ways, without a library's tree: the fast path for arrays of a million
 * numbers. And how other programs name their dtypes. */

enum {
    API_NUMBER_MAX = 40, /* room that api_real_print and api_integer_print want; the text has at most 24 characters */
    API_DIGITS_SHORTEST = -1, /* digits: the shortest text that reads back to the same value of its dtype */
    API_DIGITS_MAX = 17
};

/* Most characters one number of this dtype may take with this many digits after the point (or
 * API_DIGITS_SHORTEST). */
size_t api_number_width(enum pe_dtype dtype, int digits);

/* Writes n numbers of src, separated by commas without spaces, at dst (room for n ×
 * (api_number_width + 1), all of which may be overwritten); returns the end of the text. No NUL is
 * added.
 * Reals, shortest: as Python's repr writes them, with a point or an exponent always there: "1.0",
 * "-0.0", "1e-05", "9.999833e-05", "1e+16". Of the decimals in the number's rounding interval those
 * with the fewest digits, of these the nearest; for f32, f16 and bf16 also one that gives the
 * number back when it is read as a double first and then rounded. Narrower ones are printed as the
 * f32 that they are: of 448 in f8_e4m3 the text 450.0 would read back too, and mislead.
 * Reals, fixed: `digits` digits after the point, exactly as printf("%.*f") rounds; a result of only
 * zeros loses its sign ("0.00"). digits = 0 rounds to an integer and writes it as "3.0", since a
 * real always has a point or an exponent.
 * Non-finite: "Infinity", "-Infinity", "NaN" in double quotes. Integers plain; booleans true,
 * false. */
char *api_numbers_print(char *dst, enum pe_dtype dtype, const void *src, size_t n, int digits);
char *api_real_print(char *dst, double x);     /* one double, shortest; room for API_NUMBER_MAX, no NUL */
char *api_integer_print(char *dst, int64_t x); /* likewise */

/* Who names dtypes: Open Inference Protocol ("FP32"), NumPy and Zarr 2 ("f4", after the byte order), Zarr 3
 * ("float32"), safetensors ("F32"); of types narrower than f32 PyTorch and ml_dtypes ("bfloat16"). */
enum api_naming { API_OIP, API_NUMPY, API_ZARR, API_SAFETENSORS, API_TORCH, API_N_NAMINGS };
enum { API_DESCR_BYTES = 24 };

const char *api_dtype_name(enum api_naming naming, enum pe_dtype dtype);       /* NULL: it has none there */
enum pe_dtype api_dtype_find(enum api_naming naming, const char *name);        /* PE_DTYPE_NONE if there is none */
void api_dtypes_print(enum api_naming naming, char *out, size_t room);         /* "BOOL, INT8, …" */
const char *api_numpy_descr(enum pe_dtype dtype, char descr[API_DESCR_BYTES]); /* "<f4": a dtype that NumPy names */
int api_safetensors_rank(enum pe_dtype dtype);                                 /* the reference writer's order */
extern const char api_numpy_dtypes[], api_safetensors_dtypes[];                /* what readers accept, for refusals */

/* Result of reading an array. */
enum api_read {
    API_READ_OK,
    API_READ_OTHER,  /* not an array of only numbers (and nested arrays of them): leave it to the JSON parser */
    API_READ_RAGGED, /* only numbers and arrays, but its rows differ in length, or numbers are beside arrays */
    API_READ_DEEP,   /* more than PE_RANK_MAX levels */
    API_READ_NO_MEMORY
};

/* A growable list of doubles; init to zeros, freed with free(values). It never grows beyond what
 * the rest of the text can fill: a number needs two bytes. */
struct api_doubles {
    double *values;
    size_t n, room;
};

/* Reads the JSON array that starts at *text ('[') and ends before end: numbers, the strings
 * "Infinity", "-Infinity", "NaN", and nested arrays of these, all rows of one length. Appends its
 * numbers to *out (the double nearest each text, ties to even; 1e-400 is 0.0, -0 is -0.0), its
 * shape to shape[] and *rank, and moves *text behind the closing ']'. In every other case *text,
 * *rank and the numbers of *out are as before. A number that overflows a double (1e400), bad JSON,
 * an empty array ([]), or one with any other content gives API_READ_OTHER.
 *
 * Cost: linear in the bytes looked at, which end at the closing ']' or at the first thing that is
 * no number, no array of numbers, or lies deeper than PE_RANK_MAX. A caller who after OTHER, RAGGED
 * or DEEP goes inside and calls once at each inner '[' therefore has every byte read at most
 * PE_RANK_MAX + 1 times, whatever the text: a call reads only what is within that many levels of its
 * own bracket. */
enum api_read api_numbers_read(const char **text, const char *end, struct api_doubles *out, uint64_t *shape,
                               unsigned *rank);

/* ---- lines.c ----------------------------------------------------------------------------------------------------- */

/* Toeplitz outputs as text: the numbers of a matrix's line are printed once, and every row is a part of their
 * text. */

/* The lines of one output: immutable but for the texts, which whoever needs one first makes; for any number of threads.
 */
struct api_lines {
    const struct pe_plan *plan;
    const struct pe_output *output;
    size_t index; /* of the output */
    int digits;
    uint64_t n_rows;      /* of a matrix */
    size_t n, room;       /* numbers of a line, bytes kept for one */
    atomic_uchar *states; /* [n_matrices] */
    char *kept;           /* [n_matrices, room]: values, then text, then where each number's text begins */
};

/* Lines for an output of the plan, in the arena; *lines is NULL if it is not Toeplitz, or the lines would be too large.
 * False without memory. */
bool api_lines_new(struct api_arena *arena, const struct pe_plan *plan, size_t index, int digits,
                   struct api_lines **lines);

/* The text between the brackets of n elements of one row, with commas. */
struct api_span {
    const char *text; /* NULL: not known; print the numbers */
    size_t bytes;
};

/* The text of elements first … first+n-1, which are of one row. None while another thread makes the line. */
struct api_span api_lines_span(struct api_lines *lines, uint64_t first, size_t n);

/* ---- elements.c -------------------------------------------------------------------------------------------------- */

/* Elements of a tensor as JSON text with the brackets of its nesting, any range of them at a time. */

struct api_elements {
    enum pe_dtype dtype;
    int digits;
    unsigned rank;
    uint64_t blocks[PE_RANK_MAX]; /* elements within one list of each level: [0] the whole, [rank-1] a row */
    uint64_t count;
    size_t width; /* most bytes of one element with its comma and the brackets it may open and close */
};

/* digits as in api_numbers_print(). The shape's product must fit uint64_t. */
void api_elements_init(struct api_elements *elements, enum pe_dtype dtype, const uint64_t *shape, unsigned rank,
                       int digits);

/* Writes elements first … first+n-1 (n ≥ 1), whose values start at src, to dst (room for n × width) and returns the
 * bytes written. The texts of consecutive ranges, one after the other, are the text of the whole. */
size_t api_elements_print(const struct api_elements *elements, const void *src, uint64_t first, size_t n, char *dst);

/* The same of a Toeplitz output, from the texts of its lines and without values. 0 if a line is not ready. */
size_t api_elements_copy(const struct api_elements *elements, struct api_lines *lines, uint64_t first, size_t n,
                         char *dst);

#endif
