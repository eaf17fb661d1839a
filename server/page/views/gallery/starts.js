/* Where the cards of the gallery lead: the view that shows a scheme, a pair or a model best, and its configurations.
 * Pure: all of it is read from the rows of the catalogue, but for the pairs, which are chosen. */
import { bodyOf } from '../../asking/client.js';

const PICTURE_FIELDS = ['format', 'cmap', 'vmin', 'vmax', 'zoom', 'outputs', 'legend'];

/* ---- schemes ---- */

/* A parameter of these groups changes no pattern, so a scheme that has no others shows only in attention. */
const isPlain = (parameter) => ['size', 'numbers', 'combination'].includes(parameter.group);

export function viewFor(row) {
  if (!row.endpoints.includes('/encode') || row.parameters.every(isPlain)) return 'attention';
  const output = row.outputs.find((one) => one.default) ?? row.outputs[0];
  return output.axes.includes('head') ? 'bias' : 'table';
}

/* What a picture of the catalogue shows, as a configuration. */
export function pictured(picture) {
  const query = new URLSearchParams(picture?.split('?')[1] ?? '');
  return bodyOf([...query].filter(([name]) => !PICTURE_FIELDS.includes(name)));
}

/* Random weights in place of learned ones, where the scheme's own example takes them. */
function weights({ example }) {
  const { seed, std } = example;
  return { ...(seed === undefined ? {} : { seed }), ...(std === undefined ? {} : { std }) };
}

/* Attention brings its own sentence. */
function attended({ example: { len, ...rest } }) { return rest; }

/* What a card opens is what its picture shows. */
export function startOf(row) {
  const view = viewFor(row);
  if (view === 'attention') return { view, configs: { a: attended(row) } };
  const shown = pictured(row.picture);
  const config = shown.scheme ? { ...weights(row), ...shown } : row.example;
  return { view, configs: { a: config }, out: view === 'table' ? outputIn(row.picture) : null };
}

const outputIn = (picture) => new URLSearchParams(picture?.split('?')[1]).get('outputs');

/* ---- models ---- */

const SIDE = 14;    /* patches of 16 pixels in a picture of 224 */
const HALF = SIDE / 2;
const LENGTH = 48;  /* some tables of models have no more than 50 rows */

/* Styles that encode a grid and no run of positions. */
const GRID_STYLES = ['axial', 'detr', 'mae'];

/* Styles in which the place of an image depends on what is around it, so a grid alone is refused. */
const PLACED_STYLES = ['z_image', 'ideogram4', 'longcat_image', 'hunyuan_image_3'];

/* How many axes a model of images or videos has; 0: none, or it is not told so. */
const axesOf = ({ style, channels, axes_dim: widths = [] }) =>
  style === 'cogvideox' ? 3 : channels === 'alternating' ? 2 : widths.length;

function sequenceOf(config) {
  if (config.grid) return {};
  if (PLACED_STYLES.includes(config.position_style)) return { segments: [{ type: 'image', grid: [1, SIDE, SIDE] }] };
  const axes = axesOf(config);
  if (axes > 2) return { grid: config.position_style ? [1, SIDE, SIDE, 1].slice(0, axes) : [3, HALF, HALF] };
  const isGrid = axes === 2 || config.table_grid || config.max_resolution?.length > 1
    || GRID_STYLES.includes(config.style);
  return isGrid ? { grid: [SIDE, SIDE] } : { len: LENGTH };
}

/* row: the model's scheme. */
export function modelStart(preset, row) {
  const config = { preset: preset.name, ...sequenceOf(preset.config), ...weights(row) };
  return { view: viewFor(row), configs: { a: config } };
}

/* ---- pairs: two configurations whose difference teaches something ---- */

/* id names the text `gallery.pair.ID`; `both` belongs to both; a field in `titled` tells them apart where the model
 * does not. */
export const PAIRS = [
  { id: 'llama-qwen', a: { preset: 'llama-3.1' }, b: { preset: 'qwen2.5' }, both: { len: 1024 } },
  { id: 'stretched', a: { preset: 'llama-3' }, b: { preset: 'llama-3.1' }, both: { len: 8192 } },
  { id: 'halves', a: { preset: 'llama-2', layout: 'interleaved' }, b: { preset: 'llama-2', layout: 'half' },
    both: { len: 128, form: 'expanded' }, titled: 'layout' },
  {
    id: 'base', a: { preset: 'mistral-7b-v0.1' }, b: { preset: 'mistral-7b-v0.2' }, both: { len: 512 },
    view: 'distance',
  },
  { id: 'buckets', a: { preset: 't5-small', seed: 0, std: 4 }, b: { preset: 'jina-embeddings-v2-small-en' },
    both: { len: 64 }, view: 'bias' },
  { id: 'order', a: { preset: 'transformer-base' }, b: { preset: 'whisper-base' }, both: { len: 128 } },
  { id: 'layers', a: { preset: 'gemma-3', layer_type: 'sliding_attention' },
    b: { preset: 'gemma-3', layer_type: 'full_attention' }, both: { len: 512 }, titled: 'layer_type' },
  { id: 'longrope', a: { preset: 'phi-3-mini-4k' }, b: { preset: 'phi-3-mini-128k' }, both: { len: 4096 } },
];

/* Side by side where the view draws no difference. */
export function pairStart({ a, b, both, view = 'table' }) {
  return { view, configs: { a: { ...a, ...both }, b: { ...b, ...both } }, on: view === 'table' ? 'b-a' : 'a' };
}

/* The picture of one of the two: the whole is too long for a card. */
export function pairPicture(side, both) {
  const fields = { ...side, ...both, len: Math.min(both.len, 64), format: 'png', zoom: 4 };
  return `/encode?${new URLSearchParams(fields)}`;
}

/* ---- search ---- */

/* The text in which a row is looked for: both languages, names and aliases. */
export function haystack(...rows) {
  const words = rows.flatMap((row) => [
    row.name, row.label, row.label_zh, row.summary, row.summary_zh, ...(row.aliases ?? []),
  ]);
  return words.filter(Boolean).join(' ').toLowerCase();
}

export function matches(text, query) {
  return query.toLowerCase().split(/\s+/).every((one) => text.includes(one));
}

export function isExactly(row, query) {
  return [row.name, row.label, ...row.aliases ?? []].some((one) => one?.toLowerCase() === query.toLowerCase());
}
