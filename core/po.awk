# Writes the C source of a table of translations: awk -f po.awk -v table=pe_zh zh.po >zh_rows.c
#
# Reads a catalogue in gettext's format: msgctxt, msgid and msgstr, each a quoted text that may continue in the lines
# below. A text keeps its escapes, which are C's. Rows are sorted by English, then by context, as strcmp does, for a
# binary search. What is not translated, or marked as fuzzy, is left out. Plain POSIX awk, run with LC_ALL=C.

function fail(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text >"/dev/stderr"
    failed = 1
    exit 1 # goes through END
}

function quoted(line) {
    if (line !~ /^".*"$/)
        fail("no quoted text")
    return substr(line, 2, length(line) - 2)
}

# What the text is at run time; texts have no other escapes.
function plain(text) {
    gsub(/\\"/, "\"", text)
    gsub(/\\n/, "\n", text)
    gsub(/\\\\/, "\\", text)
    return text
}

function finish(    key) {
    if (part["msgid"] != "" && part["msgstr"] != "" && !is_fuzzy) {
        key = plain(part["msgid"]) SUBSEP plain(part["msgctxt"])
        if (key in row)
            fail("a second translation of \"" part["msgid"] "\"")
        keys[++n] = key
        row[key] = sprintf("    {\"%s\", \"%s\", \"%s\"},", part["msgid"], part["msgctxt"], part["msgstr"])
    }
    split("", part)
    word = ""
    is_fuzzy = 0
}

/^#,.*fuzzy/ { is_fuzzy = 1 }
/^#/ { next }
/^[ \t]*$/ { finish(); next }
/^msg(ctxt|id|str) / {
    word = $1
    sub(/^[^ ]+ +/, "")
    if (word in part)
        fail("a second " word "; an empty line separates entries")
    part[word] = quoted($0)
    next
}
/^"/ {
    if (word == "")
        fail("a text that continues nothing")
    part[word] = part[word] quoted($0)
    next
}
{ fail("neither msgctxt, msgid, msgstr, a quoted text nor a comment") }

# Heapsort: keys[root] sinks among the first `size`.
function sink(root, size,    child, key) {
    key = keys[root]
    while ((child = 2 * root) <= size) {
        if (child < size && keys[child] "" < keys[child + 1] "")
            child++
        if (keys[child] "" <= key "")
            break
        keys[root] = keys[child]
        root = child
    }
    keys[root] = key
}

END {
    if (failed)
        exit 1
    finish()
    for (i = int(n / 2); i >= 1; i--)
        sink(i, n)
    for (size = n; size > 1; size--) {
        last = keys[size]
        keys[size] = keys[1]
        keys[1] = last
        sink(1, size - 1)
    }
    prefix = table
    sub(/_.*/, "", prefix)
    sub(/^[^_]*_/, "", table)
    print "/* Built from a catalogue by core/po.awk. */\n#include \"core/inside.h\"\n"
    print "const struct pe_translation " prefix "_" table "_rows[] = {"
    for (i = 1; i <= n; i++)
        print row[keys[i]]
    print "};\n\nconst size_t " prefix "_n_" table "_rows = " n ";"
}
