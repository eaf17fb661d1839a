/* Every ceiling of the language with its reason. Sizes of bodies and answers are the host's (api.h), not here. */
#ifndef API_LIMITS_H
#define API_LIMITS_H

/* Levels of a JSON document: conversion recurses once a level, and no request needs ten. */
enum { API_DEPTH_MAX = 64 };

/* JSON that is left when its lists of numbers are taken out, bytes. The longest model configuration known has 10 KiB.
 */
enum { API_SKELETON_MAX = 1 << 20 };

/* jansson's tree of it, as multiple of the text: what is announced to the host before reading. Objects of requests take
 * ten to twenty times their text; only rows of empty ones take more, and are refused. */
enum { API_TREE_FACTOR = 48, API_TREE_MIN = 64 << 10 };

/* Lists of numbers in one JSON document; each costs a record of about a hundred bytes. */
enum { API_ARRAYS_MAX = 1 << 16 };

/* Members of one request, tensors included: names are compared in pairs, which must stay cheap. */
enum { API_FIELDS_MAX = 256 };

/* Parts of a multipart body: more than there are tensor names. */
enum { API_PARTS_MAX = 64 };

/* Header of one part: three short lines in practice. */
enum { API_PART_HEADER_MAX = 8192 };

/* RFC 2046 §5.1.1. */
enum { API_BOUNDARY_MAX = 70 };

/* Python dict in front of a .npy file; what NumPy's own reader accepts. */
enum { API_NPY_HEADER_MAX = 10000 };

/* JSON in front of a safetensors file. The format allows 100 MB; our names need a few hundred bytes, and the tree of it
 * is bounded like that of a request. */
enum { API_SAFETENSORS_HEADER_MAX = API_SKELETON_MAX };

/* Tensors of one stored file: more than the longest header can name, so that whole checkpoints can be stored. */
enum { API_STORED_TENSORS_MAX = 1 << 15 };

/* Bytes of stored tensors that a hurried caller plans with; a table is read through, and projected by some schemes. */
enum { API_HURRIED_WEIGHTS_MAX = 64 * 1024 };

/* Outputs that one request may name; no scheme has ten, and a name may not stand twice. */
enum { API_OUTPUTS_MAX = 32 };

/* Bytes of one piece of a streamed body: half a millisecond of the slowest fill, and it stays in the second-level cache
 * between being made and being sent. */
enum { API_PIECE_BYTES = 512 * 1024 };

/* The same where elements are made together in large units, the blocks of rows of attention: a part of one would cost
 * as much as all of it. */
enum { API_UNIT_BYTES_MAX = 16 << 20 };

/* Text of the lines of one Toeplitz output, bytes: what is kept of an answer while it is sent. 8 heads of 16384
 * positions as f32; beyond, rows are compared with the row before them. Beginnings of numbers are 32-bit. */
enum { API_LINES_MAX = 8 << 20 };

/* Rows of one piece come in multiples of this where they fit: the unit in which kernels restart their recurrences. */
enum { API_ROWS_UNIT = 32 };

/* Bodies of at most this many bytes are made in place by whoever asks: some tens of microseconds. */
enum { API_LIGHT_BYTES = 64 * 1024 };

/* The same where an element takes microseconds (pe_plan_pace). */
enum { API_LIGHT_SLOW_BYTES = 2048 };

/* Of them, those that hold at most this much memory (who makes them frees it too, a page of it in some 100 ns), and
 * that take this many multiply-adds: as many numbers as the bodies above have, at their pace. */
enum { API_LIGHT_MEMORY = 1 << 20, API_LIGHT_WORK = 1 << 17 };

/* Planning that a hurried caller waits for, nanoseconds of a slow machine (struct pe_cost). */
#define API_HURRIED_NS_MAX 1e6

/* Text of a configuration, a catalogue page or an error. A configuration repeats the lists of its request (a key mask
 * of a million keys is 4 MB), so it has much room. */
enum { API_TEXT_MAX = 64 << 20 };

/* Pixels along a side of a picture: as a byte each, one picture is 64 MiB before it is compressed. */
enum { API_PICTURE_SIDE_MAX = 8192 };

/* A picture that cannot be compressed, and its frame. What all of them may take is the host's (max_pictures). */
enum { API_PICTURE_BYTES_MAX = 96 << 20 };

/* The request inside a picture, bytes. */
enum { API_PICTURE_TEXT_MAX = 1 << 20 };

/* zlib's level. Of heat maps, 1 leaves half as much again and up to three times as much, and saves a sixth of the time
 * at most: the values take as long as the bytes. */
enum { API_PICTURE_COMPRESSION = 6 };

/* Columns of a terminal; with half as many lines a picture of text is at most 20 MB. */
enum { API_COLUMNS_MAX = 1000 };
/* /v2: multiply-adds of a plan whose answer has numbers in JSON beside others as bytes; they are made before the first
 * byte is sent: some seconds. And bytes of such JSON where elements take
 * microseconds. */
#define API_BESIDE_WORK_MAX 1e10
enum { API_BESIDE_SLOW_BYTES = 4 << 20 };

_Static_assert((int)API_LIGHT_BYTES <= (int)API_PIECE_BYTES, "a light body fits one piece");
_Static_assert(API_PIECE_BYTES % 4096 == 0, "pieces of a body keep the alignment of its start");

#endif
