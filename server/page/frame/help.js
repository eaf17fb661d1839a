/* The dialog that explains all keys. */
import { make } from '../dom.js';
import { closer } from './frame.js';
import { word } from '../words.js';

const MOD = /Mac|iP/.test(navigator.platform) ? '⌘' : 'Ctrl';

/* Text (`help.NAME`) and its keys. */
const FIGURE_KEYS = {
  move: ['←', '→', '↑', '↓'],
  page: ['PageUp', 'PageDown'],
  row: ['Home', 'End'],
  corner: [`${MOD}+Home`, `${MOD}+End`],
  zoom: ['+', '-'],
  fit: ['0'],
  one: ['1'],
  position: ['[', ']'],
  reduce: ['r'],
  colors: ['m'],
  play: ['p'],
  data: ['t'],
  value: ['c'],
  why: ['w'],
  help: ['?'],
};
const PAGE_KEYS = {
  walk: ['Space', '→', '←'], slider: ['p'], undo: [`${MOD}+Z`], redo: [`${MOD}+Shift+Z`], paste: [`${MOD}+V`],
};

function list(keys) {
  return make('dl', { class: 'keys' }, ...Object.entries(keys).map(([name, strokes]) => make('div', null,
    make('dt', null, ...strokes.map((stroke) => make('kbd', null, stroke))),
    make('dd', null, word(`help.${name}`)))));
}

export function helpDialog() {
  return make('dialog', { class: 'help', 'aria-label': word('page.help') },
    make('form', { method: 'dialog', class: 'dialog-head' }, make('h2', null, word('page.help')), closer()),
    make('div', { class: 'columns' },
      make('section', null, make('h3', null, word('help.inFigure')), list(FIGURE_KEYS)),
      make('section', null, make('h3', null, word('help.onPage')), list(PAGE_KEYS),
        make('h3', null, word('help.pointer')),
        make('ul', { class: 'plain' },
          ...['wheel', 'drag', 'anything'].map((name) => make('li', null, word(`help.${name}`)))))));
}
