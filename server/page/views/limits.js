/* What the server allows (/limits) as a table: readable, with the flag that changes each. */
import { code, make } from '../dom.js';
import { datum } from '../figure.js';
import { size } from '../states.js';
import { word } from '../words.js';

const count = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, '\u2009');
const yes = (value) => word(value ? 'server.yes' : 'server.no');

/* [name in /limits, how it is written, the flag that changes it, or none] */
const ROWS = [
  ['max_body', size, '--max-body'], ['max_answer', size, '--max-answer'], ['max_work', count, '--max-work'], ['max_analysis', count, '--max-analysis'],
  ['picture_side', count], ['configs', count], ['position', count], ['private', yes, '--token-file'], ['may_write', yes, '--token-file'],
];

export function limitsTable(limits) {
  const rows = ROWS.filter(([key]) => key in limits).map(([key, write, flag]) => make('tr', null,
    make('th', { scope: 'row' }, word(`server.limit.${key}`), ' ', code(key)), make('td', null, datum(limits[key], key, write(limits[key]))),
    make('td', null, flag ? code(flag) : word('server.fixed'))));
  return make('section', { class: 'server-limits' }, make('h2', null, word('server.limits')), make('p', { class: 'hint' }, word('server.limits.lead')),
    make('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': word('server.limits') },
      make('table', { class: 'rows' }, make('thead', null, make('tr', null, ['limit', 'value', 'flag'].map((key) => make('th', { scope: 'col' }, word(`server.${key}`))))),
        make('tbody', null, rows))));
}
