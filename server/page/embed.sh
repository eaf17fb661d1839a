#!/bin/sh
# Writes the C source that holds files to hand out: embed.sh NAME FOLDER FILE... >page.c
#
# NAME is that of the struct api_page: page_built_in, or another one, whose files are taken as they are. FILEs are names below FOLDER, e.g. index.html views/table.js. Each becomes a struct api_page_file, compressed; BUILD is
# a hash of all names and bytes. index.html says where the files are: /ui/BUILD in it becomes /ui/ and that hash.
# Scripts, styles and texts lose what only their readers need, comments that begin a line and indentation, scripts and
# styles also the spaces beside signs: a quarter of their compressed bytes. Names are kept. Needs gzip, od,
# awk, sed and sha256sum, which every Debian has.
set -eu
export LC_ALL=C

# From standard input; $1 hexadecimal digits.
hash() { sha256sum | cut -c "1-$1"; }

build_of() { # file...
    for file in "$@"; do
        echo "$file $(hash 64 <"$folder/$file")"
    done | hash 16
}

# In a script, no text may run over several lines (tests/http/catalogue/test_page_delivery.py): what begins a line is code.
bare() { # file
    awk -v slashes="${1##*.}" '
        { sub(/^[ \t]+/, "") }
        !inside && index($0, "/*") == 1 { inside = 1; $0 = substr($0, 3) }
        inside {
            end = index($0, "*/")
            $0 = end ? substr($0, end + 2) : ""
            sub(/^[ \t]+/, "")
            inside = !end
        }
        slashes == "js" && index($0, "//") == 1 { $0 = "" }
        { print }' "$folder/$1"
}

# The lines of a script without comments behind its code and without spaces beside signs. What is between quotes stays. So
# does a line that cannot be read without knowing the language: with a slash outside of texts (a division or a pattern),
# with a text in a text, within a text that runs over lines, or with two signs that would become ++ or --.
tight() {
    awk '
        function squeezed(code) {
            gsub(/ *[][=+*?:<>|&,{}();!%-] */, "\001&\001", code)
            gsub(/ *\001+ */, "", code)
            return code
        }
        function line_of(rest,   whole, before, out) {
            whole = rest
            while (match(rest, TEXT)) {
                before = substr(rest, 1, RSTART - 1)
                if (before ~ /[\/`]/) return whole
                out = out squeezed(before) substr(rest, RSTART, RLENGTH)
                rest = substr(rest, RSTART + RLENGTH)
            }
            if (rest ~ /^[^\/]*\/\*[^\/]*\*\/$/) sub(/ *\/\*.*/, "", rest)
            return rest ~ /[\/`]/ ? whole : out squeezed(rest)
        }
        BEGIN { TEXT = "\047([^\047\\\\]|\\\\.)*\047|\"([^\"\\\\]|\\\\.)*\"|`([^`\\\\]|\\\\.)*`" }
        {
            quotes = gsub(/`/, "`")
            if (open || quotes % 2 || /\$\{[^}]*`/ || /[+-] [+-]/) print
            else print line_of($0)
            open = (open + quotes) % 2
        }'
}

# Lines in a row where no statement can end between them, and none that are empty. Who follows a script by the numbers of its
# lines has it served from its folder (--ui-dir).
joined() { awk '$0 != "" { printf /[[{(,;]$/ ? "%s" : "%s\n", $0 }'; }

contents() { # file
    case $struct:$1 in
    page_built_in:index.html) sed "s|/ui/BUILD|/ui/$build|g" "$folder/$1" ;;
    page_built_in:*.js) bare "$1" | tight | joined ;;
    page_built_in:*.css) bare "$1" | tr '\n' ' ' | sed -E 's/ *([{};,>]) */\1/g; s/: +/:/g; s/  +/ /g' ;;
    page_built_in:*.json) bare "$1" | sed -E 's/^("[^"]*"): /\1:/' | tr -d '\n' ;;
    *) cat "$folder/$1" ;;
    esac
}

# Bytes as the text of a C string: three octal digits each, so that no digit after them belongs to them.
string_of() { od -An -v -to1 | sed 's/ /\\/g; s/.*/    "&"/'; }

# The compressed bytes without time and name, so that the same page is the same program.
embed() { # number file
    printf 'static const char gzip_%d[] =\n' "$1"
    contents "$2" | gzip -9n | string_of
    printf ';\nstatic char *_Atomic plain_%d;\n\n' "$1"
}

row() { # number file
    printf '    {.name = "%s", .gzip = gzip_%d, .n_gzip = sizeof gzip_%d - 1, .n_bytes = %d, .digest = "%s", .plain = &plain_%d},\n' \
        "$2" "$1" "$1" "$(contents "$2" | wc -c)" "$(contents "$2" | gzip -9n | hash 32)" "$1"
}

struct=$1 folder=$2
shift 2
build=$(build_of "$@")

echo '/* Made by server/page/embed.sh. */'
printf '#include "server/page/page.h"\n\n'
i=0
for file in "$@"; do
    embed $i "$file"
    i=$((i + 1))
done
echo 'static const struct api_page_file files[] = {'
i=0
for file in "$@"; do
    row $i "$file"
    i=$((i + 1))
done
printf '};\n\nconst struct api_page %s = {\n' "$struct"
printf '    .build = "%s", .files = files, .n_files = sizeof files / sizeof *files};\n' "$build"
