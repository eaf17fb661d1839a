/* What a heat map shows, in one or two sentences with its numbers. */
import { code, make, name } from '../dom.js';
import { short } from '../draw/numbers.js';
import { datum } from '../figure.js';
import { label, phrase, word } from '../words.js';

export const shapeText = (shape) => shape.length ? shape.join(' × ') : '1';

const AXES = ['axis', 'batch', 'component', 'dim', 'distance', 'head', 'key', 'pair', 'position', 'query', 'row', 'column', 'term'];

/* An axis in the page's language. */
export const axisName = (axis) => AXES.includes(axis) ? word(`axis.${axis}`) : axis;

const times = (one, other) => name(`${one} × ${other}`);
const number = (value, what) => datum(value, what, short(value));

/* about, axes, reduce, range [min, max]; difference: largest |Δ| of the window, null where none is meant; hasGaps: some
 * cells are not finite. */
export function captionOf({ about, axes, reduce, range, scheme, difference, hasGaps }) {
  const { row, col } = axes;
  const parts = { output: code(about.name), scheme: scheme ? label(scheme) : name(about.scheme ?? ''), shape: name(shapeText(about.shape)),
    min: number(range[0], 'min'), max: number(range[1], 'max'), cells: times(row.step, col.step), pixels: times(row.px, col.px), red: code(reduce) };
  const zoomedOut = row.step > 1 || col.step > 1;
  const sentences = difference === null
    ? [phrase('heat.caption', parts)]
    : [phrase('heat.captionDifference', { ...parts, difference: number(difference, 'difference'), most: number(range[1], 'max') })];
  if (about.isPart) sentences.push(phrase('heat.captionPart', { part: times(about.rows, about.cols), a: name(shapeText(about.a.shape)), b: name(shapeText(about.b.shape)) }));
  sentences.push(zoomedOut ? phrase('heat.captionReduced', parts) : phrase('heat.captionPixels', parts));
  if (hasGaps) sentences.push(phrase('heat.captionGaps', {}));
  return sentences.flatMap((sentence, i) => i ? [' ', sentence] : [sentence]);
}

/* The canvas's name. */
export function labelOf(about, slot) {
  return word(slot === 'b-a' ? 'heat.labelDifference' : 'heat.label', { scheme: about.scheme ?? '', output: about.name, shape: shapeText(about.shape) });
}

/* The figure's title: shorter, since the caption says the rest. */
export function titleOf(about, slot, scheme) {
  const output = [' ', make('code', { class: 'figure-output' }, about.name)];
  if (slot === 'b-a') return [name('b − a'), ...output];
  return [make('span', { class: 'slot-letter', translate: 'no' }, slot), ' ', make('span', null, scheme ? label(scheme) : about.scheme ?? ''), ...output];
}
