/* The controls that a story gives one of its figures: sliders and buttons for fields of its configurations. */
import { code, make } from '../dom.js';
import { choice, sliderField } from '../views/controls.js';
import { label, word } from '../words.js';

const parts = (field) => field.split('.');
const valueAt = (config, field) => parts(field).reduce((value, key) => value?.[key], config);

/* config with another value of a field, a copy; undefined leaves it out. */
function withValue(config, [key, ...rest], value) {
  const { [key]: old, ...others } = config;
  const next = rest.length ? withValue(old ?? {}, rest, value) : value;
  return next === undefined ? others : { ...others, [key]: next };
}

export class Touches {
  constructor(page, story, rows) {
    Object.assign(this, { page, story });
    this.all = rows.map((row) => ({ row, known: this.known(row), control: this.control(row) }));
    this.element = make('div', { class: 'story-touch', hidden: !rows.length },
      this.all.map(({ control }) => control.element));
  }

  control(row) {
    const text = this.title(row);
    const config = row.slots ?? this.slots(row)[0];
    if (row.kind === 'slide') {
      return sliderField({
        name: row.field, text, spacing: row.spacing, whole: row.whole ?? true, config,
        move: (value) => this.set(row, value),
      });
    }
    return choice({ name: row.field, text, pick: (value) => this.set(row, value === '' ? undefined : value) });
  }

  /* What the catalogue knows of a field; of one within an object, nothing. */
  known(row) {
    const { field } = row;
    const config = this.page.config(this.slots(row)[0]);
    const { catalogue } = this.page;
    const scheme = catalogue.schemeOf(config);
    return [...scheme?.parameters ?? [], ...scheme?.attention?.parameters ?? [], ...catalogue.catalogue().common]
      .find((one) => one.name === field);
  }

  /* As the catalogue calls the field, unless the story has a name for it. */
  title(row) {
    const known = this.known(row);
    if (row.text) return word(`${this.story}.${row.text}`);
    return known ? label(known) : parts(row.field).at(-1);
  }

  slots({ slots }) {
    return this.page.configs().map(([slot]) => slot).filter((slot) => !slots || slots.includes(slot));
  }

  set(row, value) {
    const slots = this.slots(row);
    this.page.changeAll((config, slot) => slots.includes(slot) ? withValue(config, parts(row.field), value) : config,
      row.field);
  }

  update() {
    for (const { row, known, control } of this.all) {
      const value = valueAt(this.page.config(this.slots(row)[0]), row.field) ?? known?.default;
      if (row.kind === 'slide')
        control.show({
          value: value ?? row.min, min: row.min, max: row.max,
          step: row.step ?? (row.whole === false ? (row.max - row.min) / 500 : 1),
        });
      else control.show(row.values.map((one) => one === null ? ['', word('story.without')] : [one, code(String(one))]),
        String(value ?? ''));
    }
  }
}
