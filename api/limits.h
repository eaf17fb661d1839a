/* Every ceiling of api/ with its reason. The host (api.h) sets the sizes of bodies and answers. */
#ifndef API_LIMITS_H
#define API_LIMITS_H

/* Members of `gguf`: as many keys as a file may have. */
enum { API_GGUF_MEMBERS_MAX = 1 << 16 };

/* Levels of a JSON document: conversion recurses once per level, and no request needs ten. */
enum { API_DEPTH_MAX = 64 };

/* Bytes of JSON that remain after its lists of numbers are removed. The longest known model configuration has 10 KiB.
 */
enum { API_SKELETON_MAX = 1 << 20 };

/* Size of jansson's tree of it, as a multiple of the text: this much is reserved from the host before reading. Objects
 * of requests take ten to twenty times their text; only lists of empty objects take more, and are refused. */
enum { API_TREE_FACTOR = 48, API_TREE_MIN = 64 << 10 };

/* Lists of numbers in one JSON document; each costs a record of about a hundred bytes. */
enum { API_ARRAYS_MAX = 1 << 16 };

/* Members of one request, tensors included: every pair of names is compared, which must stay cheap. */
enum { API_FIELDS_MAX = 256 };

/* Numbers drawn from seeds (tensor_in.c). One costs as much as so many multiply-adds of --max-work. As many as this
 * take a millisecond, which the calling thread has; more are left to a worker. And as many as this are drawn without a
 * host, in tests. */
enum { API_DRAWN_WORK = 64, API_DRAWN_AT_ONCE = 16384, API_DRAWN_MAX = 1 << 20 };

/* Parts of a multipart body: more than the number of tensor names. */
enum { API_PARTS_MAX = 64 };

/* Header of one part: three short lines in practice. */
enum { API_PART_HEADER_MAX = 8192 };

/* RFC 2046 §5.1.1. */
enum { API_BOUNDARY_MAX = 70 };

/* The Python dict at the start of a .npy file; NumPy's own reader has the same limit. */
enum { API_NPY_HEADER_MAX = 10000 };

/* The JSON at the start of a safetensors file. The format allows 100 MB; our names need a few hundred bytes, and the
 * tree of this JSON has the same limit as that of a request. */
enum { API_SAFETENSORS_HEADER_MAX = API_SKELETON_MAX };

/* Tensors of one stored file: more than the longest header can name, so whole checkpoints can be stored. */
enum { API_STORED_TENSORS_MAX = 1 << 15 };

/* Bytes of one stored preset: the longest lists that known models need have some kilobytes. */
enum { API_PRESET_BYTES_MAX = 64 << 10 };

/* Bytes of memory for each byte of a stored preset, and for each preset: lists of numbers need about ten for each. A
 * file that others have written may have lists of empty lists, which need a hundred. */
enum { API_PRESET_MEMORY = 16, API_PRESET_MEMORY_EACH = 16 << 10 };

/* Bytes of stored tensors that a call with must_not_block may plan with: planning reads a table, and some schemes
 * project it. */
enum { API_HURRIED_WEIGHTS_MAX = 64 * 1024 };

/* Outputs that one request may name; no scheme has ten, and no name may appear twice. */
enum { API_OUTPUTS_MAX = 32 };

/* Tensors of one answer: those outputs, or the curves of eight configurations. */
enum { API_TENSORS_MAX = 256 };

/* Bytes of one piece of a streamed body: the slowest fill takes half a millisecond, and the piece stays in the
 * second-level cache until it is sent. */
enum { API_PIECE_BYTES = 512 * 1024 };

/* The same for elements that are computed in large units (attention's blocks of rows): a part of a unit would cost as
 * much as all of it. */
enum { API_UNIT_BYTES_MAX = 16 << 20 };

/* Text of the lines of one Toeplitz output, bytes, which is stored while an answer is sent. 8 heads of 16384 positions
 * as f32; above that, rows are compared with the row before them. Offsets into the text are 32-bit. */
enum { API_LINES_MAX = 8 << 20 };

/* Rows of one piece come in multiples of this where they fit: the unit in which kernels restart their recurrences. */
enum { API_ROWS_UNIT = 32 };

/* Bodies of at most this many bytes are computed by the calling thread: some tens of microseconds. */
enum { API_LIGHT_BYTES = 64 * 1024 };

/* The same if an element takes microseconds (pe_plan_pace). */
enum { API_LIGHT_SLOW_BYTES = 2048 };

/* Such a body must also use at most this much memory (the same thread frees it, a page in some 100 ns), and at most
 * this many multiply-adds: those of as many numbers as the bodies above have. */
enum { API_LIGHT_MEMORY = 1 << 20, API_LIGHT_WORK = 1 << 17 };

/* Text of a configuration, a catalogue page or an error. A configuration repeats the lists of its request (a key mask
 * of a million keys is 4 MB), so the limit is generous. */
enum { API_TEXT_MAX = 64 << 20 };

/* Pixels along a side of a picture: at one byte each, a picture is 64 MiB before it is compressed. */
enum { API_PICTURE_SIDE_MAX = 8192 };

/* Bytes of a picture that cannot be compressed, with its frame. The host limits all pictures together (max_pictures).
 */
enum { API_PICTURE_BYTES_MAX = 96 << 20 };

/* The request inside a picture, bytes. */
enum { API_PICTURE_TEXT_MAX = 1 << 20 };

/* zlib's level. Level 1 makes heat maps 1.5 to 3 times as large, and saves at most a sixth of the time, because
 * computing the values takes as long as compressing them. */
enum { API_PICTURE_COMPRESSION = 6 };

/* Columns of a terminal; with half as many lines a picture of text is at most 20 MB. */
enum { API_COLUMNS_MAX = 1000 };
/* /v2: multiply-adds of a plan whose answer has some numbers in JSON and others as bytes, since the JSON is computed
 * before the first byte is sent: some seconds. And bytes of such JSON if an element takes microseconds. */
#define API_BESIDE_WORK_MAX 1e10
enum { API_BESIDE_SLOW_BYTES = 4 << 20 };

_Static_assert((int)API_LIGHT_BYTES <= (int)API_PIECE_BYTES, "a light body fits one piece");
_Static_assert(API_PIECE_BYTES % 4096 == 0, "pieces of a body keep the alignment of its start");

#endif
