/* What the rows and columns of a tensor are called: the position at which each stands, where the request says it, not
 * its number. Pure.
 *
 * A place is { first, list }: cell i is at first + i, or at list[i]; null where a position is more than one number
 * (a grid, segments) or the answer has rows beside those of positions. */
import { printed } from './numbers.js';

const isFlat = (list) => Array.isArray(list) && list.every((one) => typeof one === 'number');

const run = (first) => ({ first, list: null });
const listed = (list, cells) => isFlat(list) && list.length === cells ? { first: 0, list } : null;

/* Packed sequences begin again each. */
const packed = (lens, offset) => lens.flatMap((len) => Array.from({ length: len }, (_, i) => offset + i));

const own = (config, name) => config[name] ?? null;

/* The axis `position`, of so many cells. */
function ofPositions(config, cells, others) {
  const [positions, lens, tokens] = ['positions', 'lens', 'tokens'].map((name) => own(config, name));
  const offset = config.offset ?? 0;
  if (positions) return listed(positions, cells);
  if (lens) return isFlat(lens) ? listed(packed(lens, offset), cells) : null;
  const len = own(config, 'len') ?? tokens?.length ?? cells;
  return others.some((name) => own(config, name) !== null) || len !== cells ? null : run(offset);
}

/* The axes `query` and `key`: queries follow the keys that are kept (API §2.2). apart: keys less queries. */
function ofPairs(config, axis, cells, others, apart) {
  const side = axis === 'query' ? 'q' : 'k';
  const positions = own(config, `${side}_positions`) ?? own(config, 'positions');
  if (positions) return listed(positions, cells);
  if (own(config, 'lens')) return ofPositions(config, cells, others);
  if (others.some((name) => !/^[qk]_/.test(name) && own(config, name) !== null)) return null;
  return run((config.offset ?? 0) + (axis === 'query' ? config.q_offset ?? apart : 0));
}

/* { row, col } of a tensor whose last axes are named so; sequence: names of all fields that say where rows stand. */
export function places(config, { axes, rows, cols }, sequence) {
  const others = sequence.filter((name) => !['len', 'offset', 'tokens', 'positions', 'lens'].includes(name));
  const of = (axis, cells) => {
    if (axis === 'position') return ofPositions(config, cells, others);
    if (axis !== 'query' && axis !== 'key') return run(0);
    const isPair = axes.includes('query') && axes.includes('key');
    return ofPairs(config, axis, cells, others, isPair ? cols - rows : 0);
  };
  return { row: axes.length > 1 ? of(axes.at(-2), rows) : run(0), col: of(axes.at(-1), cols) };
}

export const placeOf = (place, cell) => place?.list?.[cell] ?? (place?.first ?? 0) + cell;

export const placeText = (place, cell) => printed(placeOf(place, cell));

const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/* Of cells that stand for two tensors: null where those stand elsewhere. */
export const common = (one, other) =>
  Object.fromEntries(['row', 'col'].map((side) => [side, isSame(one[side], other[side]) ? one[side] : null]));
