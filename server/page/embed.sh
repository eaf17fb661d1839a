#!/bin/sh
# Writes the C source that holds the pages: embed.sh front.html docs.html >page.c
#
# Each page becomes a struct api_page page_NAME: its bytes, an entity tag that is the hash of them, and a policy that
# lets exactly its own style and script run, named by their hashes. Needs od, awk and sha256sum, which every Debian has.
#
# So that the hashed bytes are plain: <style>, </style>, <script> and </script> each stand alone on a line.
set -eu

# From standard input; 64 hexadecimal digits.
sha256() { sha256sum | cut -d ' ' -f 1; }

# What stands between <tag> and </tag>, with the newline that follows the first.
inner() { # tag file
    awk -v open="<$1>" -v close_="</$1>" '
        $0 == close_ { inside = 0 }
        inside { print }
        $0 == open { inside = 1; print "" }' "$2"
}

# Hexadecimal digits as base64: three bytes, so six digits, are four letters; 32 bytes leave two over.
base64_of() {
    awk '{
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        for (i = 1; i <= length($0); i += 6) {
            bits = 0
            for (j = 0; j < 6; j++)
                bits = bits * 16 + index("123456789abcdef", substr($0, i + j, 1) ? substr($0, i + j, 1) : "0")
            out = ""
            for (j = 0; j < 4; j++) {
                out = substr(letters, bits % 64 + 1, 1) out
                bits = int(bits / 64)
            }
            all = all (i + 5 <= length($0) ? out : substr(out, 1, 3) "=")
        }
        print all
    }'
}

source_of() { # tag file -> 'sha256-…', or 'none' if the page has no such part
    if grep -qx "<$1>" "$2"; then
        echo "'sha256-$(inner "$1" "$2" | sha256 | base64_of)'"
    else
        echo "'none'"
    fi
}

# Only the page with a script asks the server for anything.
policy_of() { # file
    script=$(source_of script "$1")
    connect="'self'"
    [ "$script" != "'none'" ] || connect="'none'"
    echo "default-src 'none'; connect-src $connect; style-src $(source_of style "$1"); script-src $script;" \
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

embed() { # file
    name=$(basename "$1" .html)
    printf 'static const char %s_bytes[] = {\n' "$name"
    od -An -v -tx1 "$1" | sed 's/ \([0-9a-f][0-9a-f]\)/0x\1,/g'
    printf '};\nconst struct api_page page_%s = {\n    .bytes = %s_bytes,\n    .n_bytes = sizeof %s_bytes,\n' \
        "$name" "$name" "$name"
    printf '    .etag = "\\"%s\\"",\n    .policy = "%s",\n};\n\n' "$(sha256 <"$1" | cut -c 1-32)" "$(policy_of "$1")"
}

echo '/* Made by server/page/embed.sh. */'
printf '#include "server/page.h"\n\n'
for page in "$@"; do
    LC_ALL=C grep -q '[^ -~]' "$page" && { echo "embed.sh: $page: only ASCII, so that a byte is a char" >&2 && exit 1; }
    embed "$page"
done
