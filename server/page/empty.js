/* The state `empty`: the last configuration was removed, so five examples are offered. */
import { make } from './dom.js';
import { startOf } from './views/starts.js';
import { label, summary, word } from './words.js';

/* One or two of each family, the most telling first. */
const EXAMPLES = ['sinusoidal', 'rope', 'alibi', 't5', 'shaw'];

function example(page, row) {
  const { view, configs } = startOf(row);
  return make('li', null, make('a', { class: 'card example', href: page.href(view, { configs, emptied: false, on: 'a' }), 'data-scheme': row.name },
    make('strong', null, label(row)), make('span', { class: 'hint' }, summary(row))));
}

export function emptyFigure(page) {
  return make('figure', { class: 'empty', 'data-figure': page.store.state.view, 'data-state': 'empty' },
    make('figcaption', { 'data-caption': '' }, make('h2', null, word('empty.title')), make('p', null, word('empty.try'))),
    make('ul', { class: 'cards plain' }, ...EXAMPLES.map(page.catalogue.scheme).filter(Boolean).map((row) => example(page, row))));
}
