# Writes the C source of a table of blocks: awk -f rows.awk -v table=presets presets.txt >presets_rows.c
#
# A block begins with a name at the start of a line; its keys follow, indented by four spaces; a line indented by more
# continues the value above it. Blocks are in the order of the bytes of their names. "#" begins a comment line. What is
# wrong stops the build with file, line and a sentence. Plain POSIX awk, run with LC_ALL=C.

BEGIN {
    keys["presets"] = "label label.zh aliases source certainty note note.zh fields layer"
    needed["presets"] = "label source certainty"
    split("checkpoint:PE_SEEN_CHECKPOINT|class default:PE_CLASS_DEFAULT|unverified:PE_UNVERIFIED", pairs, "|")
    for (i in pairs) {
        split(pairs[i], pair, ":")
        certainties[pair[1]] = pair[2]
    }
    print "/* Built from core/models/" table ".txt by rows.awk. */\n#include \"core/models/models.h\"\n"
    print "const struct pe_preset pe_preset_rows[] = {"
}

function fail(line, text) {
    printf "%s:%d: %s\n", FILENAME, line, text >"/dev/stderr"
    failed = 1
    exit 1 # goes through END
}

function is_among(words, word) { return index(" " words " ", " " word " ") > 0 }

function quoted(text) {
    gsub(/\\/, "\\\\", text)
    gsub(/"/, "\\\"", text)
    return "\"" text "\""
}

# ---- Blocks ----

/^#/ || /^[ \t]*$/ { next }
/\t/ { fail(FNR, "a tab; keys are indented by spaces") }

/^[^ ]/ {
    finish()
    if (NF > 1)
        fail(FNR, "the name \"" $0 "\" has a space; a name begins a line alone, a key is indented by four spaces")
    if ("" $1 == name)
        fail(FNR, "\"" $1 "\" has two blocks")
    if ("" $1 < name)
        fail(FNR, "\"" $1 "\" belongs before \"" name "\": blocks are in alphabetical order")
    name = "" $1
    name_line = FNR
    next
}

name == "" { fail(FNR, "a key before the first name") }

/^    [^ ]/ {
    key = $1
    if (!is_among(keys[table], key))
        fail(FNR, "unknown key \"" key "\" of \"" name "\"; known: " keys[table])
    if (key in value && key != "layer")
        fail(FNR, "\"" name "\" has two of " key)
    text = $0
    sub(/^ +[^ ]+ */, "", text)
    sub(/ +$/, "", text)
    if (text == "")
        fail(FNR, key " of \"" name "\" is empty")
    if (key == "layer")
        key = key ":" ++n_layers
    value[key] = text
    line[key] = FNR
    next
}

/^        / {
    if (key == "")
        fail(FNR, "a line that continues nothing; keys are indented by four spaces")
    text = $0
    gsub(/^ +| +$/, "", text)
    value[key] = value[key] " " text
    next
}

{ fail(FNR, "keys are indented by four spaces, what continues a value by eight or more") }

function finish(    n, words, i, k) {
    if (name == "")
        return
    n = split(needed[table], words, " ")
    for (i = 1; i <= n; i++)
        if (!(words[i] in value))
            fail(name_line, "\"" name "\" has no " words[i])
    if (!(value["certainty"] in certainties))
        fail(line["certainty"], "certainty of \"" name "\" is \"" value["certainty"] \
             "\"; allowed: checkpoint, class default, unverified")
    print_preset()
    n_rows++
    n_layers = 0
    key = ""
    split("", value)
    split("", line)
}

# ---- Fields: name=value ----

function is_number(text) { return text ~ /^-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$/ }

# The initializer of a struct pe_value.
function value_of(text, at,    n, items, i, out, are_numbers) {
    if (text == "true" || text == "false")
        return "{.kind = PE_BOOLEAN, .boolean = " text "}"
    if (text ~ /^-?[0-9]+$/)
        return "{.kind = PE_INTEGER, .integer = " text "}"
    if (is_number(text))
        return "{.kind = PE_REAL, .real = " text "}"
    if (text ~ /^[A-Za-z][A-Za-z0-9_.-]*$/)
        return "{.kind = PE_STRING, .string = " quoted(text) "}"
    if (text !~ /^\[[^][]+\]$/)
        fail(at, "\"" text "\" of \"" name "\" is no number, word, true, false or [list]")
    n = split(substr(text, 2, length(text) - 2), items, ",")
    are_numbers = is_number(items[1])
    for (i = 1; i <= n; i++) {
        if (is_number(items[i]) != are_numbers)
            fail(at, "a list of \"" name "\" has numbers and words")
        out = out (i > 1 ? ", " : "") (are_numbers ? items[i] : value_of(items[i], at))
    }
    if (are_numbers)
        return "{.kind = PE_ARRAY, .from_text = true, .array = {.dtype = PE_F64, .rank = 1, .shape = {" n "}, " \
               ".data = (const double[]){" out "}}}"
    return "{.kind = PE_LIST, .list = {(const struct pe_value[]){" out "}, " n "}}"
}

# "{fields}, n" of the words i…n; those of an object, "scaling.type=yarn", are put where the first of them is.
function fields_of(words, i, n, at,    out, count, word, is, dot, object, inner, n_inner) {
    for (; i <= n; i++) {
        word = words[i]
        is = index(word, "=")
        if (!is)
            fail(at, "\"" word "\" of \"" name "\" is no name=value")
        dot = index(substr(word, 1, is), ".")
        count++
        if (!dot) {
            out = out "\n        {" quoted(substr(word, 1, is - 1)) ", " value_of(substr(word, is + 1), at) "},"
            continue
        }
        object = substr(word, 1, dot)
        inner = ""
        for (n_inner = 0; i <= n && index(words[i], object) == 1; i++) {
            word = substr(words[i], dot + 1)
            is = index(word, "=")
            inner = inner "\n            {" quoted(substr(word, 1, is - 1)) ", " value_of(substr(word, is + 1), at) "},"
            n_inner++
        }
        i--
        out = out "\n        {" quoted(substr(object, 1, dot - 1)) \
              ", {.kind = PE_OBJECT, .object = {(const struct pe_field[]){" inner "}, " n_inner "}}},"
    }
    return "(const struct pe_field[]){" out "}, " count
}

# ---- Presets ----

function print_member(member, key) {
    if (key in value)
        printf "     .%s = %s,\n", member, quoted(value[key])
}

# The words of fields; a list may have spaces, and span lines.
function split_fields(text, words) {
    gsub(/, +/, ",", text)
    return split(text, words, " ")
}

function print_preset(    n, i, words) {
    if (("fields" in value) == (n_layers > 0))
        fail(name_line, "\"" name "\" needs fields, or a layer for each of its layer types")
    if (("note" in value) != ("note.zh" in value))
        fail(name_line, "\"" name "\" needs both note and note.zh, or neither")
    printf "    {.name = %s,\n", quoted(name)
    print_member("label", "label")
    print_member("label_zh", "label.zh")
    print_member("aliases", "aliases")
    print_member("source", "source")
    printf "     .certainty = %s,\n", certainties[value["certainty"]]
    print_member("note", "note")
    print_member("note_zh", "note.zh")
    print "     .layers = (const struct pe_preset_layer[]){"
    if ("fields" in value) {
        n = split_fields(value["fields"], words)
        printf "      {NULL, %s},\n", fields_of(words, 1, n, line["fields"])
    }
    for (i = 1; i <= n_layers; i++) {
        n = split_fields(value["layer:" i], words)
        printf "      {%s, %s},\n", quoted(words[1]), fields_of(words, 2, n, line["layer:" i])
    }
    printf "     },\n     .n_layers = %d},\n", n_layers ? n_layers : 1
}

END {
    if (failed)
        exit 1
    finish()
    if (failed)
        exit 1
    print "};\n\nconst size_t pe_n_preset_rows = " n_rows ";"
}
