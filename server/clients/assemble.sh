#!/bin/sh
# Writes the client libraries as the server hands them out: assemble.sh FOLDER VERSION.
#
# FOLDER/posenc.py is the file beside this with the version in it. FOLDER/posenc.js is one module made of three: what the
# web page reads answers and asks with (server/page/asking/), and the class of posenc.js beside this.
set -eu
here=$(dirname "$0")
asking=$here/../page/asking

sed "s/\"VERSION\"/\"$2\"/" "$here/posenc.py" >"$1/posenc.py"

# The code of a module without its imports and exports.
plain() { sed -e '/^import /d' -e 's/^export //' "$1"; }

{
    cat <<END
/* posenc: the numbers of Transformer positional encodings, from a posenc service. Version $2.
 *
 *   import Posenc from 'http://localhost:8080/clients/posenc.js';
 *   const posenc = new Posenc();
 *   const { cos, sin } = await posenc.encode({ scheme: 'rope', len: 2048 });   // { dtype, shape, data: Float32Array }
 *
 * In a page, in node 18 or newer, in a worker. Pages of other origins need a service with --cors-origin. */
export const version = '$2';

END
    echo 'const { readNumbers, readRaw } = (() => {'
    plain "$asking/answers.js"
    echo 'return { readNumbers, readRaw };'
    echo '})();'
    echo
    plain "$asking/client.js" | sed -e 's/^class Refusal/export &/' -e 's/^class Away/export &/'
    echo
    cat "$here/posenc.js"
} >"$1/posenc.js"
