/* Which model a dropped config.json or GGUF file is, in large type above the view: by its positions, as the server has
 * read them. */
import { make } from '../dom.js';
import { bind, label, phrase, word } from '../words.js';

const OTHERS_MAX = 4;

export class Naming {
  #shown = '';

  constructor(page, place) {
    this.page = page;
    this.element = make('div', { class: 'naming', hidden: true });
    place.prepend(this.element);
  }

  /* When the server has read a file, and when there are others. */
  update() {
    const { page } = this;
    const known = page.configs().map(([slot, config]) => [slot, page.catalogue.modelsOf(config)])
      .filter(([, models]) => models);
    const names = known.map(([slot, models]) => [slot, models.map(({ name }) => name)]);
    const key = JSON.stringify([page.store.state.view, names]);
    if (key === this.#shown) return;
    this.#shown = key;
    this.element.hidden = !known.length;
    this.element.replaceChildren(...known.map(([slot, models]) => this.#line(slot, models)));
  }

  #line(slot, [model, ...others]) {
    const letter = make('span', { class: 'slot-letter', translate: 'no' }, slot);
    const link = (row) => bind(make('a', {
      href: this.page.href('table', { configs: { a: { preset: row.name, len: 128 } }, on: 'a' }), translate: 'no',
      'data-model': row.name,
    }), null, label(row));
    const more = others.slice(0, OTHERS_MAX).flatMap((row, i) => [i ? ', ' : '', link(row)]);
    const tools = make('a', { href: this.page.href('explain') }, word('naming.tools'));
    return make('p', { 'data-config': slot, 'data-named': model?.name ?? '' }, letter, ' ',
      make('strong', null, model ? phrase('naming.is', { model: link(model) }) : word('naming.none')), ' ',
      others.length
        ? make('span', { class: 'hint' }, phrase('naming.also', { models: make('span', null, more) }))
        : null,
      ' ', make('span', { class: 'hint' }, tools));
  }
}
