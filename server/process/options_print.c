/* Owns what is printed of the options: the help, the configuration as JSON, the lines of the log at the start. */
#include "server/process/process.h"
#include "core/inside.h"

#include <assert.h>
#include <string.h>

static void print_words(FILE *out, const struct options_row *row)
{
    for (size_t i = 0; row->type == OPTIONS_TYPE_WORD && row->words[i]; i++)
        fprintf(out, "%s%s", i ? ", " : ": ", row->words[i]);
}

void options_print_help(FILE *out)
{
    fputs("Usage: posencd [--config FILE] [--flag value …]\n"
          "Serves positional encodings over HTTP.\n\n"
          "A flag --max-body is also POSENC_MAX_BODY in the environment and max_body in the file of --config;\n"
          "the flag wins over the environment, the environment over the file.\n\n",
          out);
    for (size_t i = 0; i < OPTIONS_N; i++) {
        char flag[OPTIONS_NAME_BYTES + 16];
        snprintf(flag, sizeof flag, "--%s %s", options_flag(&options_rows[i]).text, options_rows[i].unit);
        fprintf(out, "  %-30s %s", flag, options_rows[i].text);
        print_words(out, &options_rows[i]);
        fprintf(out, options_rows[i].fallback ? " [%s]\n" : "%s\n", options_fallback(&options_rows[i]));
    }
    for (size_t i = 0; i < OPTIONS_N_ACTIONS; i++)
        fprintf(out, "  --%-28s %s\n", options_actions[i].flag, options_actions[i].text);
    fputs(
        "\nSIGTERM and SIGINT let running answers finish; a second one ends at once. SIGXCPU lets them finish, too.\n",
        out);
}

/* ---- The manual page ---- */

static void print_roff(FILE *out, const char *text)
{
    for (; *text; text++)
        if (*text == '-' || *text == '\\')
            fputs(*text == '-' ? "\\-" : "\\e", out);
        else
            fputc(*text, out);
}

static void print_flag_roff(FILE *out, const char *flag, const char *unit, const char *text)
{
    fputs(".TP\n\\fB\\-\\-", out);
    print_roff(out, flag);
    fprintf(out, "\\fR%s\\fI%s\\fR\n", *unit ? " " : "", unit);
    print_roff(out, text);
}

void options_print_man(FILE *out)
{
    fprintf(
        out,
        ".TH POSENCD 8 \"\" \"posenc %s\" \"System Administration\"\n.SH NAME\nposencd \\- serves positional encodings "
        "of Transformer models over HTTP\n.SH SYNOPSIS\n.B posencd\n[\\-\\-config \\fIFILE\\fR] [\\-\\-\\fIflag "
        "value\\fR ...]\n.SH DESCRIPTION\nComputes tables, cosines and sines, rotated queries and keys, attention "
        "biases and attention maps, and answers requests for them on 127.0.0.1:8080.\nGET /docs describes the "
        "requests.\n.SH OPTIONS\nA flag \\-\\-max\\-body is also POSENC_MAX_BODY in the environment and max_body in "
        "the file of \\-\\-config; the flag wins over the environment, the environment over the file.\n",
        PE_VERSION);
    for (size_t i = 0; i < OPTIONS_N; i++) {
        print_flag_roff(out, options_flag(&options_rows[i]).text, options_rows[i].unit, options_rows[i].text);
        print_words(out, &options_rows[i]);
        if (options_rows[i].fallback) {
            fputs(". Default: ", out);
            print_roff(out, options_fallback(&options_rows[i]));
        }
        fputs(".\n", out);
    }
    for (size_t i = 0; i < OPTIONS_N_ACTIONS; i++) {
        print_flag_roff(out, options_actions[i].flag, "", options_actions[i].text);
        fputs(".\n", out);
    }
    fputs(
        ".SH EXIT STATUS\n0: ended by a signal, every answer finished. 1: it could not start or serve. 2: an option is "
        "wrong.\n.SH SIGNALS\n.TP\n.B SIGTERM, SIGINT\nRunning answers are finished; a second one ends at once.\n.TP\n"
        ".B SIGXCPU\nThe limit of processor time is reached: running answers are finished.\n.TP\n"
        ".B SIGHUP\nThe token file, the certificate and the stored files are read again.\n.SH ENVIRONMENT\n.TP\n.B "
        "POSENC_...\nEvery option, as above.\n.SH FILES\n.TP\n.I /etc/posenc/posencd.json\nThe options of the "
        "installed service, as \\-\\-print\\-config prints them.\n.TP\n.I /var/lib/posenc\nThe folder that the service "
        "may write to, for \\-\\-weights\\-dir.\n.SH EXAMPLES\n.nf\nposencd \\-\\-port 9000 \\-\\-max\\-answer "
        "1GiB\ncurl "
        "\\(aqlocalhost:9000/encode?scheme=alibi&len=64&format=text\\(aq\n.fi\n.SH SEE ALSO\nposenc(1)\n",
        out);
}

/* ---- The configuration ---- */

static uint64_t number_of(const struct options *options, const struct options_row *row)
{
    return *(const uint64_t *)(const void *)((const char *)options + row->offset);
}

/* Prints the value as text that the table's own parser reads back. */
static void print_value(char *dst, size_t n_bytes, const struct options *options, const struct options_row *row)
{
    const void *field = (const char *)options + row->offset;
    if (options_is_text(row))
        snprintf(dst, n_bytes, "%s", *(char *const *)field);
    else if (row->type == OPTIONS_TYPE_WORD)
        snprintf(dst, n_bytes, "%s", row->words[*(const int *)field]);
    else
        snprintf(dst, n_bytes, "%llu", (unsigned long long)number_of(options, row));
}

/* The parser of configuration files supports one-letter escapes only. A control character without such an escape can
 * only come from a flag. */
static void print_json_string(FILE *out, const char *text)
{
    static const char values[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    fputc('"', out);
    for (; *text; text++) {
        const char *escaped = strchr(values, *text);
        if (escaped)
            fprintf(out, "\\%c", letters[escaped - values]);
        else
            fprintf(out, (unsigned char)*text < 0x20 ? "\\u%04x" : "%c", (unsigned char)*text);
    }
    fputc('"', out);
}

void options_print_config(const struct options *options, FILE *out)
{
    char value[OPTIONS_TEXT_BYTES];
    for (size_t i = 1; i < OPTIONS_N; i++) { /* all but --config itself */
        print_value(value, sizeof value, options, &options_rows[i]);
        fprintf(out, "%s\"%s\": ", i == 1 ? "{\n  " : ",\n  ", options_rows[i].key);
        if (options_is_text(&options_rows[i])) /* not truncated: value has room for a log line */
            print_json_string(out, *(char *const *)(const void *)((const char *)options + options_rows[i].offset));
        else if (options_rows[i].type == OPTIONS_TYPE_WORD)
            print_json_string(out, value);
        else
            fputs(value, out);
    }
    fputs("\n}\n", out);
}

void options_log(const struct options *options)
{
    for (size_t i = 0; i < OPTIONS_N; i++) {
        struct options scratch = {0};
        char error[CONFIG_FILE_ERROR_BYTES], now[OPTIONS_TEXT_BYTES], then[OPTIONS_TEXT_BYTES];
        bool is_set = options_set(&scratch, &options_rows[i], options_fallback(&options_rows[i]), "", error);
        assert(is_set || options_is_text(&options_rows[i])); /* the table's own defaults are within its ranges */
        if (is_set)
            print_value(then, sizeof then, &scratch, &options_rows[i]);
        print_value(now, sizeof now, options, &options_rows[i]);
        bool is_same = is_set && strcmp(now, then) == 0;
        options_drop(&scratch);
        if (is_same)
            continue;
        char value[OPTIONS_TEXT_BYTES];
        print_value(value, sizeof value, options, &options_rows[i]);
        const struct log_field fields[] = {LOG_TEXT("name", options_flag(&options_rows[i]).text),
                                           LOG_TEXT("value", value), LOG_TEXT("source", options->sources[i])};
        log_line(LOG_INFO, "option", fields, 3);
    }
}
