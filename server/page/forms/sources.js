/* Where a configuration comes from: controls for its scheme, its preset, the kind of layer and the kind of sequence,
 * and what was read from a model's config.json. */
import { catalogue, common, preset } from '../catalogue.js';
import { Choice, Typed } from './controls.js';
import { code, make, mark, name } from '../dom.js';
import { bind, label, phrase, rewrite, word } from '../words.js';

export const PRESETS = 'presets';   /* id of the list that all cards share */

/* A row as the catalogue has them, of texts of the page. The kind of sequence is no field of a request. */
const rowOf = (field, values) => ({
  name: field,
  isOurs: field === 'sequence',
  values,
  default: null,
  get label() { return String(word(`form.${field}`)); },
  get summary() { return String(word(`form.${field}.about`)); },
});

export class SchemeChoice extends Choice {
  constructor(slot, change) {
    super(rowOf('scheme', []), { field: 'scheme', slot, change: (value) => value && change(value) });
  }

  options() {
    const { families, schemes } = catalogue();
    return families.map((family) => bind(make('optgroup', null, ...schemes.filter((row) => row.family === family.name)
      .map((row) => make('option', { value: row.name, translate: 'no' }, label(row)))), 'label', label(family)));
  }

  write(value) {
    super.write(value);
    this.none.hidden = Boolean(value);
  }
}

export class SequenceChoice extends Choice {
  constructor(slot, change) {
    super(rowOf('sequence', []), { field: 'sequence', slot, change: (value) => value && change(value) });
  }

  options() {
    return this.row.values.map((kind) => make('option', { value: kind }, label(common(kind))));
  }

  write(value) {
    super.write(value);
    this.none.hidden = true;
  }
}

/* Some models have several kinds of layers, with a configuration each. */
export class LayerChoice extends Choice {
  constructor(slot, change) {
    super(rowOf('layer_type', []), { field: 'layer_type', slot, change });
    this.told = new Map();   /* a config.json as text: the kinds that the server's refusal listed */
  }

  /* A config.json need not list its layers: the server knows them, and asks for one. */
  learn(config, types) {
    this.told.set(JSON.stringify(config.hf_config), types);
    this.offerOf(config);
  }

  offerOf(config) {
    const file = config.hf_config;
    const listed = preset(config.preset)?.layers?.map((one) => one.layer_type)
      ?? (file && this.told.get(JSON.stringify(file))) ?? file?.layer_types;
    const types = [...new Set(Array.isArray(listed) ? listed : [])];
    this.element.hidden = types.length < 2;
    this.offer(types);
  }
}

/* Found by its name or by what the model is called. */
export class PresetChoice extends Typed {
  constructor(slot, change, field = 'preset') {
    super(rowOf('preset'), { field, slot, change });
    this.input.setAttribute('list', PRESETS);
    rewrite(this.input, () => this.writePlaceholder());
  }

  kind() { return { tag: 'input', type: 'text', inputmode: 'search' }; }

  typed() {
    const text = this.input.value.trim();
    const found = findPreset(text);
    if (!text) this.complain(null);
    if (text && !found) return;
    this.complain(null);
    this.choose(found?.name);
  }

  settle() {
    const text = this.input.value.trim();
    const found = findPreset(text);
    this.complain(text && !found ? word('form.noPreset') : null);
    if (found) this.input.value = found.name;
  }

  write(value, isOwn) {
    this.emptied = false;
    super.write(value, isOwn);
    this.chosen = preset(value);
    this.writePlaceholder();
    this.writeHint();
  }

  writePlaceholder() { this.input.placeholder = word('form.preset.placeholder'); }

  about() { return (this.chosen && noteOf(this.chosen)) || super.about(); }
}

/* The server's own word on a model, in the page's language. */
function noteOf(row) {
  return String(label({ name: '', label: row.note, label_zh: row.note_zh }));
}

function findPreset(text) {
  const wanted = text.toLowerCase();
  const namesOf = (row) => [row.name, row.label, row.label_zh, ...row.aliases ?? []];
  const called = (text) => catalogue().presets.find((row) => namesOf(row).some((one) => one?.toLowerCase() === text));
  if (!wanted.includes('/')) return wanted ? called(wanted) : undefined;
  /* Of a hub's name, owner/Model-7B-Instruct, the longest beginning that is a model. */
  for (let text = wanted.slice(wanted.indexOf('/') + 1); text; text = text.replace(/-?[^-]*$/, '')) {
    if (called(text)) return called(text);
  }
  return undefined;
}

export function presetList() {
  const option = (row) => bind(make('option', { value: row.name, translate: 'no' }), 'label', label(row));
  const options = catalogue().presets.map(option);
  return make('datalist', { id: PRESETS }, ...options);
}

/* What the server read from a config.json, and what it left alone. */
export class ReadFile {
  constructor(drop) {
    this.text = make('p', null);
    this.list = make('div', null);
    this.details = make('details', { class: 'more' }, make('summary', null, word('form.file.more')), this.list);
    this.element = make('div', { class: 'read-file', 'data-read': 'hf_config' }, this.text, this.details,
      make('button', { type: 'button', onclick: drop }, word('form.file.drop')));
  }

  /* answer: { config, hf_config: { model_type, certainty, ignored, defaults, first_position? } } of the server, if it
   * has answered. */
  show(file, answer) {
    this.element.hidden = !file;
    if (!file || (this.file === file && this.answer === answer)) return;
    Object.assign(this, { file, answer });
    const report = answer?.hf_config;
    const type = name(String(report?.model_type ?? file.model_type ?? file['general.architecture'] ?? 'config.json'));
    this.text.replaceChildren(phrase(answer ? 'form.file.read' : 'form.file.reading', { type }));
    this.details.hidden = !report;
    this.list.replaceChildren(...report ? this.report(report) : []);
  }

  report({ certainty, ignored = [], defaults = {}, first_position: first }) {
    const taken = Object.entries(defaults).map(([field, value]) => `${field}: ${JSON.stringify(value)}`);
    const parts = [this.part('certainty', [certainty]), this.part('defaults', taken), this.part('ignored', ignored)];
    return first ? [...parts, this.part('first_position', [String(first)])] : parts;
  }

  part(kind, names) {
    const list = make('p', null, ...names.flatMap((one) => [code(one), ' ']));
    const title = make('h4', null, word(`form.file.${kind}`, { n: names.length }));
    return mark(make('div', null, title, list), { [kind]: '' });
  }
}
