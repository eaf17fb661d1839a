/* Numbers typed by hand in place of a file: which ones the server wants to know of the configuration in front, a field
 * for each, and what was typed as the `values` of /diagnose. */
import { action, code, freshId, make, row, scrolling, table, columns } from '../../dom.js';
import { printed } from '../../draw/numbers.js';
import { Figure } from '../../figure.js';
import { word } from '../../words.js';

const PATH = '/diagnose/probe';

export class Typed {
  #fields = [];   /* [place, input] */

  /* send(values) is called with what was typed. */
  constructor(page, root, send) {
    Object.assign(this, { page, root, send });
    this.figure = new Figure(page, { view: 'typed', slot: 'none', label: word('diagnose.typed') });
    root.append(this.figure.element);
  }

  show(belief) {
    return this.figure.ask(async (get, { over }) => {
      const answer = await get({ path: PATH, body: belief }, { as: 'json' });
      if (over()) return;
      this.figure.stage.replaceChildren(this.#form(answer));
      this.figure.drawn();
    });
  }

  #form({ probe, decimals }) {
    this.#fields = probe.map(({ expected, ...place }) => [place, this.#field(place, expected, decimals)]);
    const rows = this.#fields.map(([place, input], i) => row(
      make('label', { for: input.id }, code(called(place))),
      [make('td', null, printed(probe[i].expected.toFixed(decimals))), make('td', null, input)]));
    const submit = (event) => {
      event.preventDefault();
      this.send(this.#values());
    };
    const heads = ['diagnose.place', 'diagnose.should', 'diagnose.is'].map((text) => word(text));
    return make('form', { onsubmit: submit },
      make('p', { class: 'hint' }, word('diagnose.typing')),
      scrolling(word('diagnose.typed'), table({ class: 'rows' }, columns(heads), rows)),
      action('judge', word('diagnose.judge'), null, { type: 'submit', class: 'primary' }));
  }

  #field(place, expected, decimals) {
    return make('input', {
      id: freshId('typed'), 'data-typed': called(place), inputmode: 'decimal', autocomplete: 'off', size: 12,
      placeholder: printed(expected.toFixed(decimals)),
    });
  }

  /* Fields that are empty were not looked at. A text keeps its digits. */
  #values() {
    return this.#fields.map(([place, input]) => ({ ...place, value: input.value.trim().replaceAll('−', '-') }))
      .filter(({ value }) => value);
  }

  close() { this.figure.close(); }
}

/* As an index of the tensor. */
const called = ({ tensor, ...at }) => `${tensor}[${Object.values(at).join(', ')}]`;
