# Writes the C source of a table of blocks: awk -f rows.awk -v table=presets presets.txt >presets_rows.c, or
# table=names names.txt, or table=types list=hf/list.h types.txt classes.txt. The head of each file of blocks explains its keys. What is wrong stops the build
# with file, line and a sentence. Plain POSIX awk, run with LC_ALL=C.

BEGIN {
    keys["presets"] = "label label.zh aliases source certainty note note.zh fields layer config inside"
    needed["presets"] = "label source certainty"
    keys["names"] = "words means"
    keys["types"] = "aliases kind fields gives chosen ignores reads refuses needs inner inner_type without layers none none_if " \
                    "mixed period masks extra_rows row_offset first layout channels position_style head_dim base " \
                    "local_base rope_if axes form buckets distance interpolate positions send remark scale cap sinks indexer traits " \
                    "source certainty"
    needed["types"] = "kind source certainty"
    split("checkpoint:PE_SEEN_CHECKPOINT|class default:PE_CLASS_DEFAULT|unverified:PE_UNVERIFIED", pairs, "|")
    for (i in pairs) {
        split(pairs[i], pair, ":")
        certainties[pair[1]] = pair[2]
    }
    if (table == "types")
        begin_types()
    rows = table == "types" ? "hf_type_rows" : table == "names" ? "name_rows" : "preset_rows"
    struct = table == "types" ? "hf_model" : table == "names" ? "name_row" : "preset"
    print "/* Built from core/models/" table ".txt by rows.awk. */"
    print "#include \"core/models/" (table == "types" ? "hf/hf" : "models") ".h\"\n"
    print "const struct pe_" struct " pe_" rows "[] = {"
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

FNR == 1 && NR > 1 { # the next file begins its own alphabet
    finish()
    name = ""
}
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
    name_file = FILENAME
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

function names_of_block() { return name (("aliases" in value) ? "|" spaceless(value["aliases"]) : "") }

function finish(    n, words, i, k) {
    if (name == "")
        return
    n = split(needed[table], words, " ")
    for (i = 1; i <= n; i++)
        if (!(words[i] in value))
            fail(name_line, "\"" name "\" has no " words[i])
    n = split(names_of_block(), words, "|")
    for (i = 1; i <= n; i++) {
        if (words[i] in block_of)
            fail(i == 1 ? name_line : line["aliases"], "\"" words[i] "\" is a name of \"" block_of[words[i]] "\" too")
        block_of[words[i]] = name
    }
    if (table != "names" && !(value["certainty"] in certainties))
        fail(line["certainty"], "certainty of \"" name "\" is \"" value["certainty"] \
             "\"; allowed: checkpoint, class default, unverified")
    if (table == "types")
        print_type()
    else if (table == "names")
        print_name()
    else
        print_preset()
    n_rows++
    n_layers = 0
    key = ""
    split("", value)
    split("", line)
}

# ---- Fields: name=value ----

function is_number(text) { return text ~ /^-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?$/ }

# Words between bars, "a|b", which may span lines.
function spaceless(text) {
    gsub(/ +/, "", text)
    return text
}

# The initializer of a struct pe_value.
function value_of(text, at,    n, items, i, out, are_numbers) {
    if (text == "true" || text == "false")
        return "{.kind = PE_BOOLEAN, .boolean = " text "}"
    if (text == "null")
        return "{.kind = PE_NULL}"
    if (text ~ /^-?[0-9]+$/)
        return "{.kind = PE_INTEGER, .integer = " text "}"
    if (is_number(text))
        return "{.kind = PE_REAL, .real = " text "}"
    if (text ~ /^[A-Za-z][A-Za-z0-9_.|-]*$/)
        return "{.kind = PE_STRING, .string = " quoted(text) "}"
    if (text !~ /^\[[^][]+\]$/)
        fail(at, "\"" text "\" of \"" name "\" is no number, word, true, false or [list]")
    n = split(substr(text, 2, length(text) - 2), items, ",")
    if (items[1] ~ /^\{/)
        return "{.kind = PE_LIST, .list = {(const struct pe_value[]){" objects_of(items, n, at) "}, " n "}}"
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

# The items of a list of objects: "{type=ntk;factor=2.0}".
function objects_of(items, n, at,    i, k, words, out) {
    for (i = 1; i <= n; i++) {
        if (items[i] !~ /^\{[^{}]+\}$/)
            fail(at, "a list of \"" name "\" has objects and \"" items[i] "\"")
        k = split(substr(items[i], 2, length(items[i]) - 2), words, ";")
        out = out (i > 1 ? ", " : "") "{.kind = PE_OBJECT, .object = {" fields_of(words, 1, k, at) "}}"
    }
    return out
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
    print_member("inside", "inside")
    print "     .layers = (const struct pe_preset_layer[]){"
    if ("fields" in value) {
        n = split_fields(value["fields"], words)
        printf "      {NULL, %s},\n", fields_of(words, 1, n, line["fields"])
    }
    for (i = 1; i <= n_layers; i++) {
        n = split_fields(value["layer:" i], words)
        printf "      {%s, %s},\n", quoted(words[1]), fields_of(words, 2, n, line["layer:" i])
    }
    printf "     },\n     .n_layers = %d,\n", n_layers ? n_layers : 1
    if ("config" in value) {
        n = split_fields(value["config"], words)
        printf "     .config = {%s},\n", fields_of(words, 1, n, line["config"])
    }
    print "    },"
}

# ---- Words of names ----

function print_name() {
    if (("words" in value) == ("means" in value))
        fail(name_line, "\"" name "\" needs words, or means")
    value["words"] = spaceless(value["words"])
    printf "    {.name = %s,\n", quoted(name)
    printf "     .%s = %s,\n", ("means" in value) ? "means" : "words", quoted(value[("means" in value) ? "means" : "words"])
    print "    },"
}

# ---- Types: kinds and traits are those of core/models/hf/list.h ----

function begin_types(    text, part) {
    if ((getline text <list) < 0) {
        print "rows.awk: no list of kinds and traits, \"" list "\"" >"/dev/stderr"
        exit failed = 1
    }
    do {
        if (split(text, part, /[(, ]+/) > 3 && part[1] == "KIND")
            kinds[part[3]] = "PE_HF_" part[2]
        else if (part[1] == "TRAIT")
            members[part[3]] = part[2]
    } while ((getline text <list) > 0)
    is_integer["extra_rows"] = is_integer["row_offset"] = is_integer["first"] = 1
    only["inner"] = only["inner_type"] = only["without"] = "nested"
    only["positions"] = only["send"] = "other"
    only["form"] = "alibi mpt falcon"
    only["buckets"] = only["distance"] = "buckets t5"
    only["interpolate"] = "patches beit"
    only["extra_rows"] = "learned patches beit"
    only["row_offset"] = "learned"
    only["first"] = "sinusoidal"
    only["gives"] = "rope sinusoidal detr rt_detr grid sines"
    only["channels"] = only["head_dim"] = "rope"
    only["chosen"] = "grid"
    only["layout"] = "rope grid cogvideox"
    only["position_style"] = "rope grid"
    only["base"] = "rope grid detr"
    only["rope_if"] = "rope sines"
    only["axes"] = "grid cogvideox"
    only["local_base"] = only["mixed"] = only["period"] = only["none_if"] = "rope"
    only["none"] = "rope none"
    scale = "^(usual(\\*[0-9.]+)?|magnitude|other|none|[0-9.]+|([a-z_]+\\.)?[a-z_]+(\\^-?[0-9.]+)?)$"
}

function all_of(words,    word, out) {
    for (word in words)
        out = out (out ? ", " : "") word
    return out
}

function put_traits(    n, words, i, used, at) {
    n = split(value["traits"], words, " ")
    at = line["traits"]
    for (i = 1; i <= n; i++) {
        if (!(words[i] in members))
            fail(at, "unknown trait \"" words[i] "\" of \"" name "\"; known: " all_of(members))
        if (members[words[i]] in used)
            fail(at, words[i] " and " used[members[words[i]]] " of \"" name "\" replace the same function")
        used[members[words[i]]] = words[i]
        printf "     .%s = pe_hf_%s,\n", members[words[i]], words[i]
    }
}

# A block that another one names.
function refer(to, at) {
    refers[++n_refers] = to
    refers_at[n_refers] = at
    refers_of[n_refers] = name
}

function print_fields(key,    n, words) {
    n = split(value[key], words, " ")
    printf "     .%s = {%s},\n", key, fields_of(words, 1, n, line[key])
}

function print_type_key(key, text, at) {
    if (key in only && !is_among(only[key], value["kind"]))
        fail(at, key " of \"" name "\" means nothing for kind " value["kind"] ", only for " only[key])
    if (key == "scale" && text !~ scale)
        fail(at, "scale of \"" name "\" is \"" text "\"; allowed: usual, usual*1.5, magnitude, other, none, a number, " \
                 "field, object.field, field^-0.5")
    if (key == "fields" || key == "gives")
        print_fields(key)
    else if (key == "traits")
        put_traits()
    else if (key in is_integer) {
        if (text !~ /^[0-9]+$/ && text != "after_padding")
            fail(at, key " of \"" name "\" is \"" text "\"; allowed: an integer, after_padding")
        printf "     .%s = %s,\n", key, text == "after_padding" ? "PE_HF_AFTER_PADDING" : text
    } else if (key == "masks") {
        if (text != "alike" && text != "differ")
            fail(at, "masks of \"" name "\" is \"" text "\"; allowed: alike, differ")
        printf "     .masks = PE_HF_MASKS_%s,\n", text == "alike" ? "ALIKE" : "DIFFER"
    } else {
        if (text ~ / / && key != "positions" && key != "send" && key != "remark" && key != "source")
            text = spaceless(text)
        printf "     .%s = %s,\n", key, quoted(text)
    }
}

function print_type(    n, i, words) {
    if (!(value["kind"] in kinds))
        fail(line["kind"], "kind of \"" name "\" is \"" value["kind"] "\"; known: " all_of(kinds))
    if (value["kind"] == "nested" && !("inner" in value))
        fail(name_line, "\"" name "\" needs inner, the object of the other model")
    if (value["kind"] == "other" && !("positions" in value))
        fail(name_line, "\"" name "\" needs positions, which describe them")
    printf "    {.types = %s,\n", quoted(names_of_block())
    printf "     .kind = %s,\n", kinds[value["kind"]]
    if (name_file ~ /classes\.txt$/)
        print "     .is_class = true,"
    n = split(keys["types"], words, " ")
    for (i = 1; i <= n; i++)
        if (words[i] in value && !is_among("aliases kind certainty", words[i]))
            print_type_key(words[i], value[words[i]], line[words[i]])
    printf "     .certainty = %s},\n", certainties[value["certainty"]]
    if ("inner_type" in value)
        refer(value["inner_type"], line["inner_type"])
    if ("without" in value)
        refer(value["without"], line["without"])
    n = value["kind"] == "parts" ? split(spaceless(value["layers"]), words, "|") : 0
    for (i = 1; i <= n; i++)
        refer(name "/" words[i], line["layers"])
}

END {
    if (failed)
        exit 1
    finish()
    for (i = 1; !failed && i <= n_refers; i++)
        if (!(refers[i] in block_of)) {
            name = refers_of[i]
            fail(refers_at[i], "\"" name "\" refers to \"" refers[i] "\", which has no block")
        }
    if (failed)
        exit 1
    print "};\n\nconst size_t pe_n_" rows " = " n_rows ";"
}
