#!/bin/sh
# The generated parts of documents, between their markers: the schemes from the registry (with a number of each, derived), the tables of model_types, classes, metrics and
# members of answers from their rows, the options from --help, the licence.
#   BUILD=build generated.sh check|write
set -eu
BUILD=${BUILD:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$BUILD"/tests/tools/type_table >"$folder/types"
"$BUILD"/tests/tools/type_table classes >"$folder/classes"
for table in schemes sections metrics analysis diagnosis experiments; do
    "$BUILD"/tests/tools/guide_table $table >"$folder/$table"
done
{
    echo '```text'
    "$BUILD"/posencd --help
    echo '```'
} >"$folder/options"
# The licence is stated in one place, the packages' file.
sed -n '/^License:/,$s/^ //p' deploy/debian/copyright >"$folder/licence"
"$PYTHON" tests/lint/splice.py "$1" README.md licence="$folder/licence"
"$PYTHON" tests/lint/splice.py "$1" core/schemes/SCHEMES.md schemes="$folder/schemes" sections="$folder/sections"
"$PYTHON" tests/lint/splice.py "$1" core/models/MODELS.md types="$folder/types" classes="$folder/classes"
"$PYTHON" tests/lint/splice.py "$1" api/USING.md metrics="$folder/metrics" analysis="$folder/analysis" \
    diagnosis="$folder/diagnosis" experiments="$folder/experiments"
"$PYTHON" tests/lint/splice.py "$1" server/RUNNING.md options="$folder/options"
