#!/bin/sh
# Writes the C source that holds files to hand out: embed.sh NAME FOLDER FILE... >page.c
#
# NAME is that of the struct api_page: page_built_in, or another one, whose files are taken as they are. FILEs are names
# below FOLDER, e.g. index.html views/table.js. Each becomes a struct api_page_file, compressed; BUILD is a hash of all
# names and bytes. index.html says where the files are: /ui/BUILD in it becomes /ui/ and that hash. plain.html is made
# of it, without its picture, which only the start of a server without tokens may ask for.
# Scripts and styles lose what only their readers need (esbuild, one file at a time: what a file imports and exports
# keeps its name), texts their ends of lines: three tenths of their compressed bytes. Who follows a script by the numbers
# of its lines has it served from its folder (--ui-dir). Needs esbuild, gzip, od, sed and sha256sum.
set -eu
export LC_ALL=C

# From standard input; $1 hexadecimal digits.
hash() { sha256sum | cut -c "1-$1"; }

# Puts the files into $made as they are handed out.
shorten() { # file...
    scripts= stories=
    for file in "$@"; do
        mkdir -p "$(dirname "$made/$file")"
        case $struct:$file in
        page_built_in:stories/*.js) stories="$stories $file" ;;
        page_built_in:*.js | page_built_in:*.css) scripts="$scripts $file" ;;
        page_built_in:*.json) sed -E 's/^ *("[^"]*"): /\1:/' "$folder/$file" | tr -d '\n' >"$made/$file" ;;
        *) cp "$folder/$file" "$made/$file" ;;
        esac
    done
    [ -n "$scripts$stories" ] || return 0
    command -v esbuild >/dev/null || {
        echo "posenc: esbuild is missing, which shortens the scripts of the page; install it (Debian: esbuild)" >&2
        exit 1
    }
    written="--target=es2022 --log-level=warning --outbase=. --outdir=$made"
    [ -z "$scripts" ] || (cd "$folder" && esbuild --minify $written $scripts)
    # Clients of /mcp read the figures of a story in its script, so there all names stay.
    [ -z "$stories" ] || (cd "$folder" && esbuild --minify-whitespace $written $stories)
}

build_of() { # file...
    for file in "$@"; do
        echo "$file $(hash 64 <"$made/$file")"
    done | hash 16
}

# Bytes as the text of a C string: three octal digits each, so that no digit after them belongs to them.
string_of() { od -An -v -to1 | sed 's/ /\\/g; s/.*/    "&"/'; }

# The compressed bytes without time and name, so that the same page is the same program.
embed() { # number file
    gzip -9nk "$made/$2"
    printf 'static const char gzip_%d[] =\n' "$1"
    string_of <"$made/$2.gz"
    printf ';\nstatic char *_Atomic plain_%d;\n\n' "$1"
}

row() { # number file
    printf '    {.name = "%s", .gzip = gzip_%d, .n_gzip = sizeof gzip_%d - 1, .n_bytes = %d, .digest = "%s", .plain = &plain_%d},\n' \
        "$2" "$1" "$1" "$(wc -c <"$made/$2")" "$(hash 32 <"$made/$2.gz")" "$1"
}

struct=$1 folder=$2
shift 2
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
shorten "$@"
build=$(build_of "$@")
if [ -f "$made/index.html" ]; then
    sed "s|/ui/BUILD|/ui/$build|g" "$folder/index.html" >"$made/index.html"
    sed '/class="live-picture"/d' "$made/index.html" >"$made/plain.html"
    set -- "$@" plain.html
fi

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
