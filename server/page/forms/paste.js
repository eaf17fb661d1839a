/* What a pasted or dropped text is: a link of this page, a request, a command, a program, a model's config.json. Pure.
 *
 *   recognise(text) → { kind: 'link', hash }                  a link of this page, whatever its host
 *                     { kind: 'link', state }                 several configurations at once
 *                     { kind: 'request' | 'curl', config, path? }
 *                     { kind: 'hf_config', config }
 *                     { kind: 'gguf', config }           the keys of a GGUF file
 *                     { kind: 'unknown', why } */
import { bodyOf } from '../asking/client.js';
import { isObject } from './fields.js';
import { SLOTS } from '../state.js';
import { word } from '../words.js';

const LINK_KEYS = /^(view|story|[abcd])=/;
const PATHS = ['/encode', '/rotate', '/attention', '/analyze'];
const SOURCES = ['scheme', 'preset', 'hf_config', 'gguf'];
const SEQUENCES = ['len', 'positions', 'grid', 'grid_coords', 'lens', 'segments', 'tokens', 'q_len', 'k_len', 'q_positions',
  'k_positions'];
const SIDE = 8;          /* patches of an image or a frame */
const AXIS_LISTS = ['axes_dims_rope', 'axes_dim_rope', 'axes_dims', 'rope_axes_dim', 'mrope_section'];
const START_LEN = 128;   /* a model's configuration has no sequence */

/* The page asks for the form of an answer itself: what a command wanted in its file is not the configuration's. */
const FORM = ['outputs', 'slice', 'reduce', 'format', 'digits', 'data', 'cmap', 'vmin', 'vmax', 'zoom', 'legend',
  'ascii', 'columns', 'lang', 'metrics'];
const PROGRAM_MAX = 2 ** 20;

export function recognise(text) {
  const trimmed = text.trim();
  const found = link(trimmed) ?? command(trimmed) ?? address(trimmed) ?? object(trimmed) ?? program(trimmed);
  return found ?? unknown(trimmed.startsWith('{') ? 'json' : 'nothing');
}

const unknown = (why) => ({ kind: 'unknown', why: word(`paste.why.${why}`) });

function parse(text) {
  try { return JSON.parse(text); } catch { return undefined; }
}

/* ---- Links ---- */

function link(text) {
  if (/\s/.test(text.split('#')[0])) return null;
  const at = text.indexOf('#');
  if (at < 0 || (at > 0 && !/^https?:\/\//i.test(text))) return null;
  const hash = text.slice(at);
  return hash.slice(1).split('&').some((part) => LINK_KEYS.test(part)) ? { kind: 'link', hash } : null;
}

/* The address of a GET: https://host/encode?scheme=rope&len=8. */
function address(text) {
  if (!/^(https?:\/\/|[\w.-]+:\d+\/|\/)\S+$/i.test(text)) return null;
  const { path, query } = placeOf(text);
  return query ? request(query, path, 'request') : null;
}

function urlOf(text) {
  try { return new URL(text); } catch { return null; }
}

/* Path and query of an address, with or without its host. A path may stand behind a prefix of a proxy. */
function placeOf(text) {
  const url = urlOf(/^https?:\/\//i.test(text) ? text : `http://${text.startsWith('/') ? 'host' : ''}${text}`);
  const path = PATHS.find((one) => url?.pathname.endsWith(one));
  const query = path && url.search ? bodyOf(url.searchParams) : null;
  return { path, query };
}

/* ---- Requests ---- */

function object(text) {
  const value = text.startsWith('{') ? parse(text) : undefined;
  return isObject(value) ? request(value) : null;
}

/* What an object is: a request or several of them, a config.json, or an answer or a preset with its configuration. */
function request(body, path, kind = 'request') {
  if (Array.isArray(body.configs)) return several(body);
  if (typeof body['general.architecture'] === 'string') return { kind: 'gguf', config: keysOf(body) };
  if (isModel(body)) return { kind: 'hf_config', config: { hf_config: body, ...sequenceOf(body) } };
  if (isObject(body.config) && isRequest(body.config)) return { kind, config: withLength(stripped(body.config)) };
  if (isRequest(body)) return { kind, config: stripped(body), ...path ? { path } : {} };
  return unknown('scheme');
}

/* Of a class of diffusers a small image or video, with as many axes as its lists have widths; else a run. */
function sequenceOf({ _class_name: kind, ...body }) {
  const isRun = typeof kind !== 'string' || kind.startsWith('OmniGen')
    || (kind.startsWith('SanaTransformer') && typeof body.interpolation_scale !== 'number');
  if (isRun) return { len: START_LEN };
  if (kind.includes('3D') && !kind.startsWith('Latte')) return { grid: [3, SIDE, SIDE] };
  const n = AXIS_LISTS.map((one) => body[one]).find(Array.isArray)?.length ?? 2;
  return { grid: n > 2 ? [1, SIDE, SIDE, 1].slice(0, n) : [SIDE, SIDE] };
}

/* The keys of a GGUF file as a configuration. */
export const keysOf = (gguf) => ({ gguf, len: START_LEN });

const has = (body, names) => names.some((name) => body[name] !== undefined);
const isRequest = (body) => has(body, SOURCES) || has(body, SEQUENCES);
const withLength = (config) => has(config, SEQUENCES) ? config : { ...config, len: START_LEN };
const stripped = (body) => Object.fromEntries(Object.entries(body).filter(([name]) => !FORM.includes(name)));

/* /analyze: the fields beside `configs` are the defaults of each, nested objects whole. */
function several({ configs, ...others }) {
  const all = configs.filter(isObject).slice(0, SLOTS.length)
    .map((config, i) => [SLOTS[i], stripped({ ...others, ...config })]);
  return all.length
    ? { kind: 'link', state: { configs: Object.fromEntries(all), emptied: false } }
    : unknown('nothing');
}

const MODEL_FIELDS = ['rope_theta', 'rope_scaling', 'rope_parameters', 'hidden_size', 'n_embd', 'd_model',
  'num_attention_heads', 'n_head', 'max_position_embeddings', 'text_config'];

/* It names its kind of model, or has two fields that only models have. */
function isModel(body) {
  if (has(body, SOURCES)) return false;
  if (typeof (body.model_type ?? body._class_name) === 'string' || Array.isArray(body.architectures)) return true;
  return MODEL_FIELDS.filter((name) => body[name] !== undefined).length >= 2;
}

/* ---- Commands ---- */

/* curl's options that take a value; the others stand alone. */
const VALUED = new Set([
  '-d -F -H -o -X -u -A -e -b -c -w -m -x -T -K -D -E -r -y -Y -z --data --data-raw --data-binary --data-ascii',
  '--data-urlencode --json --form --form-string --url --header --output --output-dir --request --user --user-agent',
  '--referer --cookie --cookie-jar --write-out --max-time --connect-timeout --retry --retry-delay --retry-max-time',
  '--proxy --cacert --cert --key --config --dump-header --range --limit-rate --resolve --connect-to --interface',
  '--upload-file --oauth2-bearer --unix-socket',
].join(' ').split(' '));
const DATA = ['-d', '--data', '--data-raw', '--data-binary', '--data-ascii', '--data-urlencode', '--json'];
const PARTS = ['-F', '--form', '--form-string'];

function command(text) {
  if (!/^\$?\s*curl(\.exe)?\s/.test(text)) return null;
  const [line, input] = heredoc(text);
  const words = shellWords(line.replace(/^\$\s*/, ''));
  if (!words) return unknown('quote');
  const options = optionsOf(words.slice(1));
  const { path, query } = placeOf(options.find(({ option }) => option === '--url')?.value ?? '');
  if (!path) return unknown('path');
  const body = dataOf(options, input);
  if (body === null) return unknown('file');
  const whole = { ...query, ...body };
  return Object.keys(whole).length ? request(whole, path, 'curl') : unknown('nothing');
}

const HEREDOC = /^([\s\S]*?)<<-?\s*(['"]?)(\w+)\2([^\n]*)\n([\s\S]*?)\n\3\s*$/;

/* The command line, and what it is given as standard input. */
function heredoc(text) {
  const [, before, , , after, body] = HEREDOC.exec(text) ?? [];
  return before === undefined ? [text, null] : [`${before} ${after}`, body];
}

/* [{ option, value }]: an address is the value of --url. -sSd '{}' is -s, -S and -d. */
function optionsOf(words) {
  const options = [];
  const take = (option, value) => options.push({ option, value });
  for (let i = 0; i < words.length; i++) {
    const one = words[i];
    if (VALUED.has(one)) take(one, words[++i]);
    else if (/^--/.test(one)) take(one, null);
    else if (/^-./.test(one)) i = takeShort(words, i, take);
    else take('--url', one);
  }
  return options;
}

/* A cluster of short options; the first that takes a value takes the rest, or the next word. Gives the last word
 * used. */
function takeShort(words, i, take) {
  const letters = words[i].slice(1);
  for (let at = 0; at < letters.length; at++) {
    const option = `-${letters[at]}`;
    if (!VALUED.has(option)) take(option, null);
    else if (at + 1 < letters.length) return take(option, letters.slice(at + 1)), i;
    else return take(option, words[i + 1]), i + 1;
  }
  return i;
}

/* The request that is sent: an object, {} if none, null if it stands in a file that is not here. */
function dataOf(options, input) {
  const part = options.find(({ option, value }) => PARTS.includes(option) && /^request=/.test(value ?? ''));
  const texts = part ? [part.value.slice('request='.length)]
    : options.filter(({ option }) => DATA.includes(option)).map(({ value }) => value ?? '');
  if (!texts.length) return {};
  if (texts.join('') === '@-' && input !== null) return parse(input) ?? null;
  if (/^[@<]/.test(texts[0])) return null;
  const whole = parse(texts.join('&'));
  return isObject(whole) ? whole : bodyOf(new URLSearchParams(texts.join('&')));
}

/* ---- Words of a POSIX shell ---- */

const ESCAPES = { n: '\n', t: '\t', r: '\r' };
const PIECES = [
  [/^\\\r?\n/, () => null],   /* the line goes on */
  [/^'([^']*)'/, (piece) => piece],
  [/^"((?:[^"\\]|\\[\s\S])*)"/, (piece) => piece.replace(/\\\r?\n/g, '').replace(/\\([$`"\\])/g, '$1')],
  [/^\$'((?:[^'\\]|\\[\s\S])*)'/, (piece) => piece.replace(/\\(.)/g, (_, letter) => ESCAPES[letter] ?? letter)],
  [/^\\([\s\S])/, (piece) => piece],
  [/^([^\s'"\\;|&<>]+|[&<>])/, (piece) => piece],
];

/* The words of the first command of a line; null if a quote stays open. */
function shellWords(text) {
  const words = [];
  let rest = text;
  let current = null;
  const end = () => { if (current !== null) words.push(current); current = null; };
  while (rest && !/^[;|\n]/.test(rest)) {
    const [space] = /^[ \t]+/.exec(rest) ?? [];
    const [match, letters] = space ? [space] : piece(rest);
    if (match === undefined) return null;
    if (space) end();
    else if (letters !== null) current = (current ?? '') + letters;
    rest = rest.slice(match.length);
  }
  end();
  return words;
}

function piece(rest) {
  for (const [pattern, read] of PIECES) {
    const found = pattern.exec(rest);
    if (found) return [found[0], read(found[1] ?? '')];
  }
  return [];
}

/* ---- Programs ---- */

/* A request among the braces of a program, e.g. the Python of the request panel. Two of them are a difference, b -
 * a. */
function program(text) {
  if (text.length > PROGRAM_MAX) return null;
  const found = literals(text).filter((body) => isRequest(body) || isModel(body));
  const path = PATHS.find((one) => new RegExp(`${one}["'\`?]`).test(text));
  if (found.length < 2) return found.length ? request(found[0], path) : null;
  const configs = Object.fromEntries(found.slice(0, SLOTS.length).map((body, i) => [SLOTS[i], stripped(body)]));
  return { kind: 'link', state: { configs, emptied: false } };
}

const STRING = /"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'/y;

/* The objects in a text, outermost first. Braces that are no object, as a function's, may hold some. */
function literals(text) {
  const found = [];
  for (let at = text.indexOf('{'); at >= 0; at = text.indexOf('{', at)) {
    const end = closing(text, at);
    const body = end ? parse(jsonOf(text.slice(at, end))) : undefined;
    if (body) found.push(body);
    at = body ? end : at + 1;
  }
  return found;
}

/* The place behind the brace that closes the one at `at`; 0: none does. */
function closing(text, at) {
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    STRING.lastIndex = i;
    if (STRING.test(text)) i = STRING.lastIndex - 1;
    else if (text[i] === '{') depth++;
    else if (text[i] === '}' && --depth === 0) return i + 1;
  }
  return 0;
}

const NAMES = { True: 'true', False: 'false', None: 'null' };

/* A Python literal as JSON: its three names, single quotes, a comma behind the last. */
function jsonOf(literal) {
  return literal.replace(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\b(?:True|False|None)\b|,(?=\s*[}\]])/g, (token) => {
    if (token === ',') return '';
    if (token.startsWith("'")) return JSON.stringify(token.slice(1, -1).replace(/\\'/g, "'"));
    return NAMES[token] ?? token;
  });
}
