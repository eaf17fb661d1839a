/* What a scheme's row of the catalogue says of its papers, each with a link to where it can be read. */
import { english, make } from './dom.js';
import { label, word } from './words.js';

const NUMBER = /(\d{4}\.\d{5})/;
export const AWAY = { target: '_blank', rel: 'noopener noreferrer' };

/* An element in English, as the names of papers are. */
const cited = (paper) => make('span', english, paper.split(NUMBER).map((part, i) => (
  i % 2 ? make('a', { href: `https://arxiv.org/abs/${part}`, ...AWAY }, part) : part)));

/* Of one scheme: a line. */
export const paperOf = (row) => row?.paper
  ? make('p', { class: 'hint papers' }, word('paper.one'), ' ', cited(row.paper)) : null;

/* Of several: a list, for the end of a story. */
export const papersOf = (rows) => make('div', { class: 'papers' }, make('h2', null, word('paper.all')),
  make('ul', null, rows.map((row) => make('li', null, label(row), word('paper.colon'), cited(row.paper)))));
