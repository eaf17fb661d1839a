/* What the view `attention` asks, and what it compares of the answers. Pure. */
import { bodyFor } from '../parts.js';

const namesOf = (rows) => rows.map((row) => row.name);

/* Queries and keys, or embeddings, of the configuration itself: then there is no sentence. */
export const hasContent = (config) => Boolean(config.q ?? config.x);

/* A configuration as /attention takes it: its sequence is the sentence. */
export function attentionBody(catalogue, config, tokens) {
  if (hasContent(config)) return bodyFor(catalogue, '/attention', config);
  return { ...bodyFor(catalogue, '/attention', config, { sequence: false }), tokens };
}

/* The same without positions: what the scheme `none` takes of it, and all else the same. */
export function withoutPositions(catalogue, body, resolved) {
  const none = catalogue.scheme('none');
  const names = ['dtype',
    ...namesOf([
      ...none.parameters, ...none.attention.parameters, ...none.attention.inputs, ...catalogue.sequenceRows(),
    ])];
  const known = Object.entries({ ...resolved, ...body })
    .filter(([name, value]) => names.includes(name) && value !== null);
  return { ...Object.fromEntries(known), scheme: 'none' };
}

/* Tokens that stand more than once, with their places. */
export function equalTokens(tokens) {
  const places = new Map();
  tokens.forEach((token, i) => places.set(token, [...places.get(token) ?? [], i]));
  return [...places].filter(([, at]) => at.length > 1).map(([token, at]) => ({ token, at }));
}

/* The largest |Δ| between rows that stand at the places of one token: values [heads, rows, width]. */
export function largestDifference(values, [heads, rows, width], groups) {
  let largest = { difference: 0, token: groups[0]?.token };
  for (const { token, at } of groups) {
    const difference = widestSpan(values, at, { heads, rows, width });
    if (difference > largest.difference) largest = { difference, token };
  }
  return largest;
}

function widestSpan(values, places, { heads, rows, width }) {
  let widest = 0;
  for (let head = 0; head < heads; head += 1) {
    for (let col = 0; col < width; col += 1) {
      const column = places.map((row) => values[(head * rows + row) * width + col]);
      widest = Math.max(widest, Math.max(...column) - Math.min(...column));
    }
  }
  return widest;
}
