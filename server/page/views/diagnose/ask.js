/* What the view `diagnose` asks: a file of tensors with what is believed of it, and a candidate's tensor beside the
 * file's. */
import { queryOf } from '../../asking/client.js';
import { line, python, quoted, shell } from '../../copying/request.js';
import { bodyFor } from '../parts.js';
import { pack, readTensors } from './tensor_files.js';

export const PATH = '/diagnose';
const READ_MAX = 2 ** 26;    /* bytes of a file whose numbers are drawn */
const QUERY_MAX = 3072;      /* a longer request goes into the file */
const SENT_MAX = 2 ** 22;    /* bytes of a tensor that are sent for a picture of its blocks */
const ROTATED_MAX = 2 ** 16; /* numbers of q or k that are sent to be rotated for a picture */

/* What /diagnose explains, by how many tensors that takes. */
const ALONE = ['encoding', 'bias', 'buckets', 'position_ids', 'cos_sin', 'freqs_cis', 'matrix', 'angles', 'freqs',
  'inv_freq', 'rope_freqs'];
const HELD = [ALONE, ['cos,sin', 'q,q_out', 'k,k_out']];
const EXPLAINED = ['cos', 'sin', 'q_out', 'k_out', 'scores', 'probs', ...ALONE];
/* What each of two is explained with. */
const PARTNERS = {
  cos: 'sin', sin: 'cos', q: 'q_out', q_out: 'q', k: 'k_out', k_out: 'k',
};

/* ---- the file ---- */

/* { title, blob, tensors, files }; tensors null: they are the server's to read. Of several files each is called as its
 * file, and so is one whose name says what it holds. */
export async function opened(files) {
  const blob = files.length > 1 ? new Blob(files) : files[0];
  const tensors = blob.size > READ_MAX ? null : (await Promise.all(files.map(held)).catch(() => null))?.flat();
  const isCalled = files.length > 1 || (tensors?.[0].name === null && ALONE.includes(stem(files[0])));
  return {
    title: files.map((file) => file.name).join(', '), blob, files,
    tensors: tensors?.map((one, i) => isCalled ? { ...one, name: stem(files[i]), isCalled } : one) ?? null,
  };
}

/* { has, wants } of a file that is one of two tensors which say something only together; null: of any other. */
export function lackOf({ tensors, files }) {
  const [one, more] = tensors ?? [];
  if (!one || more) return null;
  const has = one.name ?? stem(files[0]);
  return PARTNERS[has] ? { has, wants: PARTNERS[has] } : null;
}

/* Are these files the one that was wanted? */
export const brings = (files, lack) => files?.length === 1 && stem(files[0]) === lack?.wants;

const held = async (file) => readTensors(await file.arrayBuffer());
const stem = ({ name }) => name.replace(/\.\w+$/, '');

const isNamed = ({ tensors }) => tensors.some(({ name }) => name);

/* What the file may hold, for a choice where its own names do not say it: names in the order of its tensors; '' are its
 * own. */
export function mayHold(file) {
  if (!file?.tensors || explained(file.tensors).length) return [];
  return [...isNamed(file) ? [''] : [], ...HELD[file.tensors.length - 1] ?? []];
}

/* The same without a choice: by its axes and numbers where it has no names. */
export function holdsItself(file) {
  const [{ shape, isComplex }] = file.tensors;
  if (isNamed(file)) return '';
  if (isComplex) return 'freqs_cis';
  if (shape.length > 3 && shape.slice(-2).every((side) => side === 2)) return 'matrix';
  return shape.length === 1 && takenAs(file) === 'encoding' ? 'inv_freq' : takenAs(file);
}

/* What the server takes a file for that is sent as it is. */
export function takenAs(file) {
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

/* { path, body, type } to ask, and `parts` of the same in another way where a command cannot make that body. isAsIs:
 * the file's own names stand. */
export function question(file, holds, isAsIs, belief) {
  const query = queryOf(belief);
  const names = file.tensors ? namedAs(file, holds).map(({ name }) => name) : file.files.map(stem);
  if (file.files.length > 1) {
    return {
      path: PATH, body: formOf(file.files, names, belief),
      parts: names.map((name, i) => ({ name, file: file.files[i].name })),
    };
  }
  const isTaken = isAsIs && query.length <= QUERY_MAX && !file.tensors?.some((one) => one.isCompressed || one.isCalled);
  const { title } = file;
  if (!file.tensors || isTaken) return { path: query ? `${PATH}?${query}` : PATH, body: file.blob, type: BYTES, title };
  const members = file.tensors.map((one, i) => (
    { name: names[i], file: title, member: one.name === null || one.isCalled ? null : `${one.name}.npy` }
  ));
  return {
    path: PATH, body: pack(namedAs(file, holds), belief), type: 'application/vnd.safetensors', title,
    parts: /\.safetensors$/i.test(title) ? null : members,
  };
}

function formOf(files, names, belief) {
  const form = new FormData();
  form.append('request', JSON.stringify(belief));
  files.forEach((file, i) => form.append(names[i], file));
  return form;
}

/* The same as a command and as a program. */
export const texts = ({ path, title, belief, parts }) => parts ? formTexts(path, belief, parts) : {
  curl: ({ origin, token }) => command([
    `curl --data-binary @${shell(title)}`, `-H 'Content-Type: ${BYTES}'`, ...bearer(token), shell(origin + path),
  ]),
  python: ({ origin, token }) => [
    `import json${token ? ', os' : ''}, urllib.request`, '',
    `headers = {"Content-Type": "${BYTES}"${token ? BEARER : ''}}`,
    `call = urllib.request.Request(${JSON.stringify(origin + path)}, ${reading(title)}, headers)`,
    ...ANSWER].join('\n'),
};

const BYTES = 'application/octet-stream';
const BEARER = ', "Authorization": "Bearer " + os.environ["TOKEN"]';
const ANSWER = ['x = json.load(urllib.request.urlopen(call))', 'print(x["findings"])'];
const reading = (file, member) => member
  ? `zipfile.ZipFile(${JSON.stringify(file)}).read(${JSON.stringify(member)})`
  : `open(${JSON.stringify(file)}, "rb").read()`;
const bearer = (token) => token ? ['-H "Authorization: Bearer $TOKEN"'] : [];
const command = (words) => words.join(' \\\n  ');

/* One part for each array; those of an archive are taken out of it first. */
const formTexts = (path, belief, parts) => ({
  curl: ({ origin, token }) => {
    const members = parts.flatMap(({ member }) => member ?? []);
    const call = command([
      'curl', `-F request=${quoted(line(belief))}`,
      ...parts.map(({ name, file, member }) => `-F ${shell(`${name}=@${member ?? file}`)}`), ...bearer(token),
      shell(origin + path),
    ]);
    return members.length ? `unzip -oq ${shell(parts[0].file)} ${members.map(shell).join(' ')}\n${call}` : call;
  },
  python: ({ origin, token }) => [
    `import json${token ? ', os' : ''}, urllib.request, uuid${parts.some(({ member }) => member) ? ', zipfile' : ''}`,
    '',
    `parts = {"request": json.dumps(${python(belief)}).encode()}`,
    ...parts.map(({ name, file, member }) => `parts[${JSON.stringify(name)}] = ${reading(file, member)}`),
    'edge = uuid.uuid4().hex',
    'body = b"".join(f"--{edge}\\r\\nContent-Disposition: form-data; name=\\"{name}\\"\\r\\n\\r\\n".encode()'
      + ' + data + b"\\r\\n" for name, data in parts.items())',
    `headers = {"Content-Type": f"multipart/form-data; boundary={edge}"${token ? BEARER : ''}}`,
    `call = urllib.request.Request(${JSON.stringify(origin + path)}, body + f"--{edge}--\\r\\n".encode(), headers)`,
    ...ANSWER].join('\n'),
});

/* ---- its answer ---- */

/* What asks the server for blocks of the file's own numbers: as a table of learned rows. null: it cannot, or there are
 * too many to send. */
export function reducer({ dtype, buffer, values }) {
  if (dtype[0] === 'i' || buffer.byteLength > SENT_MAX || !values.every(Number.isFinite)) return null;
  const size = buffer.byteLength / values.length;
  return ({ base, rows, cols, slice, reduce }) => {
    const table = {
      name: 'table', dtype, shape: [rows, cols], buffer: buffer.slice(base * size, (base + rows * cols) * size),
    };
    const request = { scheme: 'learned', len: rows, outputs: ['encoding'], slice, reduce, dtype: 'f64', format: 'raw' };
    return { path: '/encode', body: pack([table], request), type: 'application/vnd.safetensors' };
  };
}

/* A configuration as it is pasted: what equals its default is left out. */
export function lean(catalogue, { config, sequence }) {
  const rows = catalogue.parametersOf(config, '/encode');
  const isDefault = ([name, value]) =>
    name !== 'scheme' && rows.some((row) => row.name === name && JSON.stringify(row.default) === JSON.stringify(value));
  return { ...Object.fromEntries(Object.entries(config).filter((entry) => !isDefault(entry))), ...sequence };
}

/* The candidate's tensor beside one of the file, as a heat map asks for it; null where no endpoint gives it. */
export function candidateSpec(catalogue, candidate, { name, dtype, shape }, tensors) {
  if (!candidate.config) return null;
  const body = { ...candidate.config, ...candidate.sequence, ...dtype[0] === 'i' ? {} : { dtype } };
  if (!name.endsWith('_out')) {
    return catalogue.outputsOf(body, '/encode').some((row) => row.name === name)
      ? { path: '/encode', body, output: name }
      : null;
  }
  const output = name[0];
  const given = tensors.find((one) => one.name === output);
  if (!given || given.values.length > ROTATED_MAX || shape.length < 2) return null;
  return {
    path: '/rotate', body: { ...body, [output]: { dtype: 'f32', shape: given.shape, data: Array.from(given.values) } },
    output,
  };
}
