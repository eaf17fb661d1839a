/* Text that grows, and functions that write JSON into it: all JSON of the answers except the numbers of tensors. */
#ifndef API_TEXT_H
#define API_TEXT_H

#include "core/inside.h"

/* A failure is remembered: append everything, then check once. */
enum api_text_state { API_TEXT_FINE, API_TEXT_FULL, API_TEXT_NO_MEMORY };

struct api_text {
    char *bytes; /* not NUL-terminated; NULL while empty */
    size_t n, room, max;
    enum api_text_state state;
};

/* Starts empty and never grows beyond max bytes. Ends with api_text_drop, or when a caller takes bytes (freed with
 * free). */
void api_text_init(struct api_text *text, size_t max);
void api_text_drop(struct api_text *text);

void api_text_add(struct api_text *text, const char *bytes, size_t n);
void api_text_put(struct api_text *text, const char *string);
void api_text_format(struct api_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Room for n more bytes, which the caller writes and then counts with text->n += …; NULL if there is no room. */
char *api_text_room(struct api_text *text, size_t n);

int api_hex_digit(char c); /* its value; -1: it is none */

/* JSON. Strings are escaped, and bytes that are not UTF-8 become U+FFFD, because a string may quote a client's
 * bytes. */
void api_text_string(struct api_text *text, const char *string);
void api_text_string_n(struct api_text *text, const char *bytes, size_t n);
/* A string behind JSON that is written as it is: `{"name":`. */
void api_text_named(struct api_text *text, const char *before, const char *string);
void api_text_integer(struct api_text *text, int64_t x);
void api_text_real(struct api_text *text, double x); /* always with a point or an exponent; non-finite in quotes */
void api_text_shape(struct api_text *text, const uint64_t *shape, unsigned rank);
/* Each begins one more member of an object, or with name NULL one more item of a list, after a comma unless it is the
 * first, or the value of a name: an object or list, which api_text_close ends; the name alone, whose value follows; a value. */
void api_text_open(struct api_text *text, const char *name, char bracket);
void api_text_close(struct api_text *text, char bracket);
void api_text_name(struct api_text *text, const char *name);
void api_text_member(struct api_text *text, const char *name, const char *value);
void api_text_count(struct api_text *text, const char *name, int64_t value);
void api_text_flag(struct api_text *text, const char *name, bool value);
/* The member aliases, "a|b" as a list (NULL: none). */
void api_text_aliases(struct api_text *text, const char *aliases);
/* Two more members, name and name_zh: the text in lang, and in Chinese. */
void api_text_pair(struct api_text *text, const char *name, const char *english, const char *chinese,
                   enum pe_lang lang);
/* The members label, label_zh, summary, summary_zh. */
void api_text_about(struct api_text *text, const struct pe_about *about, enum pe_lang lang);
/* The member description, in the language of the call (pe_text); JSON of ours that has English descriptions. */
void api_text_description(struct api_text *text, const char *english);
void api_text_put_described(struct api_text *text, const char *json);
void api_text_value(struct api_text *text,
                    const struct pe_value *value); /* only for values of trusted depth: configurations */

#endif
