/* What the view `diagnose` asks: a file of tensors with what is believed of it, and a candidate's tensor beside the file's. */
import { queryOf } from '../asking/client.js';
import { shell } from '../copying/request.js';
import { bodyFor } from './parts.js';
import { pack, readTensors } from './tensor_files.js';

export const PATH = '/diagnose';
const READ_MAX = 2 ** 26;    /* bytes of a file whose numbers are drawn */
const QUERY_MAX = 3072;      /* a longer request goes into the file */
const ROTATED_MAX = 2 ** 16; /* numbers of q that are sent to be rotated for a picture */

/* What /diagnose explains, by how many tensors that takes. */
const HELD = [['encoding', 'bias', 'buckets', 'position_ids'], ['cos,sin', 'q,q_out']];
const EXPLAINED = ['encoding', 'cos', 'sin', 'q_out', 'bias', 'buckets', 'position_ids'];

/* ---- the file ---- */

/* { title, blob, tensors }; tensors null: they are the server's to read. */
export async function opened(blob, title) {
  const tensors = blob.size > READ_MAX ? null : await readTensors(await blob.arrayBuffer()).catch(() => null);
  return { title, blob, tensors };
}

const isNamed = ({ tensors }) => tensors.some(({ name }) => name);

/* What the file may hold, for a choice where its own names do not say it: names in the order of its tensors; '' are its own. */
export function mayHold(file) {
  if (!file?.tensors || explained(file.tensors).length) return [];
  return [...isNamed(file) ? [''] : [], ...HELD[file.tensors.length - 1] ?? []];
}

/* The same without a choice: by its axes and numbers where it has no names. */
export function holdsItself(file) {
  if (isNamed(file)) return '';
  const [{ dtype, shape }] = file.tensors;
  return dtype[0] === 'i' ? 'position_ids' : shape.length === 3 ? 'bias' : 'encoding';
}

/* The tensors by the names chosen. */
export function namedAs({ tensors }, holds) {
  const names = holds ? holds.split(',') : [];
  return tensors.map((tensor, i) => ({ ...tensor, name: names[i] ?? tensor.name }));
}

/* Those that a candidate gives anew, so that they can be seen side by side. */
export const explained = (tensors) => EXPLAINED.flatMap((name) => tensors.find((one) => one.name === name) ?? []);

/* ---- the question ---- */

/* The length is that of the file. */
export function beliefOf(catalogue, config) {
  const { len, q_len: queries, k_len: keys, dtype, ...belief } = bodyFor(catalogue, PATH, config);
  return belief;
}

/* { path, body, type } to ask. isAsIs: the file's own names stand. */
export function question(file, holds, isAsIs, belief) {
  const query = queryOf(belief);
  const isLong = query.length > QUERY_MAX;
  const isTaken = isAsIs && !isLong && !file.tensors?.some((one) => one.isCompressed);
  if (!file.tensors || isTaken) return { path: query ? `${PATH}?${query}` : PATH, body: file.blob, type: 'application/octet-stream' };
  return { path: PATH, body: pack(namedAs(file, holds), belief), type: 'application/vnd.safetensors' };
}

/* The same as a command and as a program. */
export const texts = (title, { path }) => ({
  curl: ({ origin, token }) => `curl --data-binary @${shell(title)} \\\n  -H 'Content-Type: application/octet-stream'${token ? ' -H "Authorization: Bearer $TOKEN"' : ''} \\\n  ${shell(origin + path)}`,
  python: ({ origin, token }) => [
    `import json${token ? ', os' : ''}, urllib.request`, '',
    `headers = {"Content-Type": "application/octet-stream"${token ? ', "Authorization": "Bearer " + os.environ["TOKEN"]' : ''}}`,
    `call = urllib.request.Request(${JSON.stringify(origin + path)}, open(${JSON.stringify(title)}, "rb").read(), headers)`,
    'x = json.load(urllib.request.urlopen(call))', 'print(x["findings"])'].join('\n'),
});

/* ---- its answer ---- */

/* A configuration as it is pasted: what equals its default is left out. */
export function lean(catalogue, { config, sequence }) {
  const rows = catalogue.parametersOf(config, '/encode');
  const isDefault = ([name, value]) => name !== 'scheme' && rows.some((row) => row.name === name && JSON.stringify(row.default) === JSON.stringify(value));
  return { ...Object.fromEntries(Object.entries(config).filter((entry) => !isDefault(entry))), ...sequence };
}

/* The candidate's tensor beside one of the file, as a heat map asks for it; null where no endpoint gives it. */
export function candidateSpec(catalogue, candidate, { name, dtype, shape }, tensors) {
  const body = { ...candidate.config, ...candidate.sequence, ...dtype[0] === 'i' ? {} : { dtype } };
  if (name !== 'q_out') return catalogue.outputsOf(body, '/encode').some((row) => row.name === name) ? { path: '/encode', body, output: name } : null;
  const q = tensors.find((one) => one.name === 'q');
  if (!q || q.values.length > ROTATED_MAX || shape.length < 2) return null;
  return { path: '/rotate', body: { ...body, q: { dtype: 'f32', shape: q.shape, data: Array.from(q.values) } }, output: 'q' };
}
