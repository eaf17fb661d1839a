/* The card of one configuration: its scheme or preset, its sequence, its parameters, and its JSON. All of it follows
 * from the rows of the catalogue. */
import {
  calledBy, catalogue, common, complete, inherited, outputsOf, parametersOf, preset, scheme, schemeOf, sequenceRows,
} from '../catalogue.js';
import { control, Group } from './controls.js';
import { make, name } from '../dom.js';
import {
  applies, goesWith, isChooser, kindOf, kindsFor, shown, unfolded, withField, withInnerField, withKind, withPreset,
  withScheme,
  withSequence,
} from './edits.js';
import { words } from './fields.js';
import { Formula } from './formula.js';
import { tool } from '../icons.js';
import { Json } from './json.js';
import { LayerChoice, PresetChoice, ReadFile, SchemeChoice, SequenceChoice } from './sources.js';
import { paperOf } from '../papers.js';
import { label, rewrite, word } from '../words.js';

export { presetList } from './sources.js';

const START_KIND = 'len';
const HAS_FOCUS = ['key', 'link', 'load'];   /* causes after which a refused control is moved to */

export class Card {
  constructor(page, slot) {
    Object.assign(this, { page, slot, kind: START_KIND, built: null, wrong: null });
    this.makeSources();
    this.makeSequence();
    this.parameters = new Map();   /* row: its control */
    this.basic = make('div', { class: 'basic' });
    this.groups = make('div', null);
    this.more = make('details', { class: 'more' }, make('summary', null, word('form.more')), this.groups);
    this.formula = new Formula((field) => this.goTo(field));
    this.paper = make('div');
    this.json = new Json(slot, (config) => this.set(config, 'json'));
    const onkeydown = (event) => { if (event.key === 'Enter') this.goToWrong(); };
    this.element = make('section',
      { class: 'form-card', 'data-card': slot, 'aria-labelledby': `slot-${slot} card-${slot}`, onkeydown },
      this.makeHead(),
      this.file.element, this.sources, this.sequence, this.basic, this.more, this.formula.element, this.json.element,
      this.paper);
    this.element.style.setProperty('--slot', `var(--${slot})`);
    /* What its fields mean comes after the first picture. */
    document.addEventListener('posenc:drawn', complete, { once: true });
  }

  /* ---- What stands in it ---- */

  makeHead() {
    this.title = rewrite(make('h3', { id: `card-${this.slot}` }), () => this.writeTitle());
    const remove = tool('close', word('form.remove', { slot: this.slot }),
      { 'data-action': 'remove', 'data-config': this.slot, onclick: () => this.page.removeConfig(this.slot) });
    const badge = make('span', { class: 'slot', id: `slot-${this.slot}`, translate: 'no' }, this.slot);
    return make('header', { class: 'form-head' }, badge, this.title, remove);
  }

  makeSources() {
    const { slot } = this;
    this.scheme = new SchemeChoice(slot, (value) =>
      this.set(withScheme(this.config, scheme(value), schemeOf(this.config)), 'scheme'));
    this.preset = new PresetChoice(slot, (value) => this.set(this.afterPreset(value), 'preset'));
    this.layer = new LayerChoice(slot, (value) => this.changeField({ name: 'layer_type' }, value));
    this.file = new ReadFile(() => this.set(unfolded(this.context()), 'hf_config'));
    this.sources = make('div', { class: 'sources' }, this.scheme.element, this.preset.element, this.layer.element);
  }

  afterPreset(value) {
    return value ? withPreset(this.config, preset(value)) : unfolded(this.context());
  }

  makeSequence() {
    const example = () => words(String(word('form.sentence')));
    this.chooser = new SequenceChoice(this.slot, (kind) => {
      this.kind = kind;
      this.set(withSequence(this.config, kind, example()), 'sequence');
    });
    /* An object of the sequence (shard) is none of its kinds: it is among the parameters. */
    const rowsOfPositions = sequenceRows().filter((row) => row.type !== 'object');
    this.positions = new Map(rowsOfPositions.map((row) => [row, this.controlOf(row)]));
    const isFirst = (row) => row.level === 'basic' || kindOf({ [row.name]: 1 }) !== null;
    const [first, later] = [true, false].map((yes) => [...this.positions].filter(([row]) => isFirst(row) === yes)
      .map(([, one]) => one.element));
    this.laterPositions = make('details', { class: 'more' }, make('summary', null, word('form.moreSequence')),
      ...later);
    this.fixed = make('p', { class: 'hint', 'data-fixed': 'sequence' }, word('form.viewSequence'));
    this.ownSequence = make('div', { class: 'sequence' }, this.chooser.element, ...first, this.laterPositions);
    this.sequence = make('div', null, this.fixed, this.ownSequence);
  }

  controlOf(row) {
    const options = { field: row.name, slot: this.slot };
    if (row.parameters) {
      return new Group(row, { ...options, change: (inner, value) => this.changeInner(row, inner, value) });
    }
    return control(row, { ...options, change: (value) => this.changeField(row, value) });
  }

  /* Controls are made anew only for another scheme or path, so nothing jumps while one is used. */
  build(row, rows) {
    const built = `${row?.name} ${this.page.viewPath()}`;
    if (built === this.built) return;
    this.built = built;
    this.paper.replaceChildren(...[paperOf(row)].filter(Boolean));
    this.parameters = new Map(rows.filter((one) => !this.positions.has(one)).map((one) => [one, this.controlOf(one)]));
    const isBasic = (one) => one.level === 'basic';
    this.basic.replaceChildren(...this.elements(isBasic));
    this.groups.replaceChildren(...catalogue().groups.map((group) => {
      const elements = this.elements((one) => !isBasic(one) && one.group === group.name);
      return elements.length
        ? make('section', { class: 'form-group' }, make('h4', null, label(group)), ...elements)
        : null;
    }).filter(Boolean));
  }

  elements(filter) {
    return [...this.parameters].filter(([row]) => filter(row)).map(([, one]) => one.element);
  }

  /* ---- What it shows ---- */

  context() {
    const row = schemeOf(this.config);
    const answer = this.page.resolved.get(this.slot)?.config;
    return {
      config: this.config,
      inherited: inherited(this.config),
      resolved: answer && answer.scheme === row?.name ? answer : {},
      answered: this.answered,
      isRead: Boolean(this.config.hf_config ?? this.config.gguf),
    };
  }

  rows() {
    const dtype = common('dtype');
    return [...parametersOf(this.config, this.page.viewPath()), ...dtype ? [dtype] : []];
  }

  update(config) {
    this.config = config;
    this.kind = kindOf(config) ?? this.kind;
    this.build(schemeOf(config), this.rows());
    this.show();
  }

  /* The server's answer has come: to this configuration, or to one a moment older. */
  settle(config) {
    this.answered = config;
    this.refuse(null);
    this.update(config);
  }

  show() {
    const context = this.context();
    this.showSources(context);
    this.showSequence(context);
    const rows = this.rows();
    for (const [row, one] of this.parameters) {
      one.element.hidden = !applies(context, rows, row);
      one.show(row.parameters ? context : shown(context, row));
    }
    const { scaling } = { ...context.inherited, ...context.resolved, ...this.config };
    this.formula.show(schemeOf(this.config)?.name, scaling?.type ?? scaling?.rope_type);
    for (const group of this.groups.children) group.hidden = ![...group.children].slice(1).some((one) => !one.hidden);
    this.json.show(this.config);
  }

  showSources(context) {
    const { config } = this;
    const file = config.hf_config ?? config.gguf;
    const kind = file?.model_type ?? file?._class_name ?? file?.['general.architecture'];
    const title = JSON.stringify([config.preset, kind, config.scheme,
      schemeOf(config)?.name]);
    if (title !== this.titled) this.writeTitle();
    this.titled = title;
    this.scheme.show({ value: schemeOf(config)?.name, isOwn: false });
    this.preset.show({ value: config.preset, isOwn: Boolean(config.preset) });
    this.layer.offerOf(config);
    this.layer.show(shown(context, this.layer.row));
    this.file.show(file, this.page.resolved.get(this.slot));
  }

  showSequence(context) {
    this.fixed.hidden = !this.page.setsSequence();
    this.ownSequence.hidden = !this.fixed.hidden;
    this.chooser.offer(kindsFor(outputsOf(this.config, this.page.viewPath()), this.kind));
    this.chooser.show({ value: this.kind, isOwn: false });
    for (const [row, one] of this.positions) {
      one.element.hidden = !goesWith(this.kind, row) && !(row.name in this.config);
      one.show(shown(context, row));
      if (row.name === this.kind) one.reset.hidden = true;   /* without it there are no positions */
    }
    const later = [...this.laterPositions.children].slice(1);
    this.laterPositions.hidden = later.every((one) => one.hidden);
  }

  writeTitle() {
    if (!this.config) return;
    const { preset: model, hf_config: file = this.config.gguf } = this.config;
    this.title.classList.toggle('of-scheme', !model && !file);
    this.title.replaceChildren(name(String(label(calledBy(this.config)))));
  }

  /* ---- What it changes ---- */

  set(config, field) { this.page.setConfig(this.slot, config, `${this.slot}.${field}`); }

  changeField(row, value) {
    this.set(withField(this.context(), this.rows(), row, value), row.name);
  }

  changeInner(row, inner, value) {
    const [context, rows] = [this.context(), this.rows()];
    const next = isChooser(row, inner) ? withKind(context, rows, row, value, catalogue().presets)
      : withInnerField(context, rows, row, inner, value);
    this.set(next, `${row.name}.${inner.name}`);
  }

  /* ---- What the server refused ---- */

  refuse(problem, cause) {
    this.wrong?.complain(null);
    if (problem?.layer_types) this.layer.learn(this.config, problem.layer_types);
    this.wrong = problem && this.controlAt(problem.pointer ?? '');
    this.wrong?.complain(problem.detail, true);
    if (HAS_FOCUS.includes(cause)) this.goToWrong();
  }

  /* A parameter of the formula, whose control may be folded. */
  goTo(field) {
    const found = this.controls().get(field);
    if (!found || found.element.hidden) return;
    const folded = found.element.closest('details');
    if (folded) folded.open = true;
    found.focus();
  }

  goToWrong() { this.wrong?.focus(); }

  /* The control of a JSON pointer, or of what it lies in; the JSON text if no control shows it. */
  controlAt(pointer) {
    const path = pointer.split('/').slice(1).map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
    const controls = this.controls();
    const named = [path.slice(0, 2).join('.'), path[0]].map((field) => controls.get(field));
    return named.find((one) => one && !one.element.hidden) ?? this.json;
  }

  /* field: control; an inner one by 'scaling.factor', and each also by its other names. */
  controls() {
    const all = new Map([['scheme', this.scheme], ['preset', this.preset], ['layer_type', this.layer]]);
    for (const [row, one] of [...this.positions, ...this.parameters]) {
      const [head, inner] = one instanceof Group ? [one.first, one.controls] : [one, []];
      for (const field of [row.name, ...row.aliases ?? []]) {
        all.set(field, head);
        for (const [part, control] of inner) all.set(`${field}.${part.name}`, control);
      }
    }
    return all;
  }
}
