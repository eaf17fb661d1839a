/* The texts of stories as elements. In a text: `name` is code, *word* stands out, $x_i$ is a formula,
 * [words](#view=table) a link within the page, [words](https://…) one to another. Formulas are a little of TeX:
 * letters, numbers, signs, ^ and _, groups in braces, \frac, \sqrt, \bf, \text, \matrix{a & b \\ c & d} and the names
 * below. */
import { code, make, math } from '../dom.js';
import { AWAY } from '../papers.js';
import { rewrite, word } from '../words.js';

const PIECES = /`([^`]+)`|\*([^*]+)\*|\$([^$]+)\$|\[([^\]]+)\]\(((?:#|https:)[^)]+)\)/;

/* An element that holds the text `key` in whatever language the page has. */
export const prose = (tag, key, attributes) =>
  rewrite(make(tag, attributes), (node) => node.replaceChildren(...pieces(String(word(key)))));

function pieces(text) {
  const found = PIECES.exec(text);
  if (!found) return [text];
  return [text.slice(0, found.index), piece(...found.slice(1)), ...pieces(text.slice(found.index + found[0].length))];
}

function piece(name, strong, formula, words, href) {
  if (name) return code(name);
  if (strong) return make('em', null, ...pieces(strong));
  return formula ? formulaOf(formula) : make('a', { href, ...!href.startsWith('#') && AWAY }, ...pieces(words));
}

/* ---- formulas ---- */

const NAMES = {
  alpha: 'α', beta: 'β', gamma: 'γ', delta: 'δ', epsilon: 'ε', theta: 'θ', lambda: 'λ', mu: 'μ', pi: 'π', phi: 'φ',
  omega: 'ω', sigma: 'σ', Delta: 'Δ', ldots: '…', infty: '∞',
};
const SIGNS = {
  sum: '∑', cdot: '·', times: '×', le: '≤', ge: '≥', ne: '≠', in: '∈', approx: '≈', to: '→', top: '⊤', lfloor: '⌊',
  rfloor: '⌋', odot: '⊙', langle: '⟨', rangle: '⟩', quad: ' ', pm: '±', mid: '|', propto: '∝', oplus: '⊕',
};
const TOKENS = /\\\\|\\[A-Za-z]+|\d+(?:\.\d+)?|\s+|./gu;

export function formulaOf(text) {
  const tokens = text.match(TOKENS).filter((token) => token.trim());
  return math('math', null, row(tokens));
}

/* Elements up to the end or the closing brace, which is taken. */
function row(tokens) {
  const found = [];
  while (tokens.length && tokens[0] !== '}') {
    const token = tokens.shift();
    if (token === '^' || token === '_') found.push(script(found.pop() ?? math('mrow'), token, tokens));
    else found.push(atom(token, tokens));
  }
  tokens.shift();
  return math('mrow', null, found);
}

const argument = (tokens) => atom(tokens.shift() ?? '', tokens);

/* x_i^2 has both its scripts in one element. */
function script(base, token, tokens) {
  const first = argument(tokens);
  if ((tokens[0] === '^' || tokens[0] === '_') && tokens[0] !== token) {
    tokens.shift();
    const other = argument(tokens);
    return math('msubsup', null, base, ...token === '_' ? [first, other] : [other, first]);
  }
  return math(token === '_' ? 'msub' : 'msup', null, base, first);
}

function atom(token, tokens) {
  if (token === '{') return row(tokens);
  if (token[0] === '\\') return command(token.slice(1), tokens);
  if (/^\d/.test(token)) return math('mn', null, token);
  if (/\p{L}/u.test(token)) return math('mi', null, token);
  return math('mo', { stretchy: 'false' }, token === '-' ? '−' : token);   /* brackets as high as letters */
}

function command(name, tokens) {
  if (name === 'frac') return math('mfrac', null, argument(tokens), argument(tokens));
  if (name === 'sqrt') return math('msqrt', null, argument(tokens));
  if (name === 'bf') return math('mi', { class: 'bold' }, argument(tokens).textContent);
  if (name === 'text') return math('mtext', null, argument(tokens).textContent);
  if (name === 'matrix') return matrix(group(tokens));
  if (name in SIGNS) return math('mo', null, SIGNS[name]);
  return math('mi', null, NAMES[name] ?? name);
}

/* The tokens between this brace and its own. */
function group(tokens) {
  let depth = 0;
  const end = tokens.findIndex((token) => (depth += token === '{' ? 1 : token === '}' ? -1 : 0) === 0);
  return tokens.splice(0, end + 1).slice(1, -1);
}

const split = (tokens, sign) => tokens.reduce((parts, token) => {
  if (token === sign) parts.push([]);
  else parts.at(-1).push(token);
  return parts;
}, [[]]);

function matrix(tokens) {
  const rows = split(tokens, '\\\\')
    .map((line) => math('mtr', null, split(line, '&').map((one) => math('mtd', null, row(one)))));
  return math('mrow', null, math('mo', null, '('), math('mtable', null, rows), math('mo', null, ')'));
}
