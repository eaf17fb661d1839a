/* The controls of a heat map: what a pixel stands for, zoom, reduction, output, indices of leading axes; and of a view of
 * several: which configuration is in front. */
import { action, make, name } from '../dom.js';
import { icon } from '../icons.js';
import { phrase, word } from '../words.js';
import { axisName } from './beside.js';
import { REDUCTIONS, ZOOM } from './hands.js';

const iconButton = (which, text, onclick) => action(which, icon(which), onclick, { class: 'icon', 'aria-label': text, title: text });

export class Toolbar {
  #shown = {};

  /* quiet: only says what a pixel stands for; its figure shares the controls of another one. */
  constructor(page, moves, { quiet }) {
    this.page = page;
    this.scale = make('span', { class: 'heat-scale' });
    this.leads = make('span', { class: 'heat-leads' });
    this.element = make('div', { class: 'heat-tools' });
    if (quiet) return void this.element.append(this.scale);
    this.outputs = make('span');
    this.reduction = make('select', { 'data-field': 'red', 'aria-label': word('heat.reduction'), title: word('heat.reduction'), translate: 'no',
      onchange: (event) => page.store.set({ red: event.target.value }, { undo: 'red' }) },
    REDUCTIONS.map((one) => make('option', { value: one }, one)));
    this.element.append(this.outputs, this.leads, this.scale, this.reduction,
      make('div', { class: 'segmented', role: 'group', 'aria-label': word('heat.zoom') },
        iconButton('zoom-out', word('heat.zoomOut'), () => moves.zoom(1 / ZOOM)),
        iconButton('zoom-in', word('heat.zoomIn'), () => moves.zoom(ZOOM)),
        iconButton('fit', word('heat.fit'), () => moves.fit()),
        iconButton('one', word('heat.one'), () => moves.one())));
  }

  /* axes of the picture; reduce: what a block shows; ownLead: the leading axes are chosen here; outputs: rows or none. */
  show({ axes, about, reduce, ownLead, outputs }) {
    this.#once('scale', [axes.row.px, axes.row.step, axes.col.px, axes.col.step, reduce], () => this.scale.replaceChildren(scaleText(axes, reduce)));
    if (!this.reduction) return;
    this.reduction.value = reduce;
    this.reduction.hidden = axes.row.step === 1 && axes.col.step === 1;
    this.#once('outputs', [outputs.map((row) => row.name), about.name], () => this.#showOutputs(outputs, about.name));
    const lead = ownLead ? about.shape.slice(0, -2) : [];
    this.#once('lead', [lead, about.axes, about.lead], () => this.#showLead(lead, about));
  }

  #once(what, key, write) {
    const text = JSON.stringify(key);
    if (this.#shown[what] === text) return;
    this.#shown[what] = text;
    write();
  }

  #showOutputs(rows, chosen) {
    const names = [...new Set(rows.map((row) => row.name))];
    if (names.length < 2) return this.outputs.replaceChildren();
    const select = make('select', { 'data-field': 'out', 'aria-label': word('heat.output'), title: word('heat.output'), translate: 'no',
      onchange: (event) => this.page.store.set({ out: event.target.value, at: [], win: [0, 0], cur: [0, 0] }, { undo: 'out' }) },
    names.map((one) => make('option', { value: one, selected: one === chosen }, one)));
    this.outputs.replaceChildren(select);
  }

  /* A slider and its number for each leading axis that has more than one index. */
  #showLead(lead, about) {
    if (this.leads.contains(document.activeElement) && this.sliders?.length === lead.length) return this.#moveSliders(lead, about);
    this.sliders = lead.map((side, i) => this.#slider(side, i, about));
    this.leads.replaceChildren(...this.sliders.filter((_, i) => lead[i] > 1).map(({ element }) => element));
  }

  #slider(side, i, about) {
    const change = (event) => {
      const at = [...about.lead];
      this.sliders.forEach(({ input }, j) => { at[j] = Number(input.value); });
      at[i] = Number(event.target.value);
      this.page.store.set({ at }, { undo: `at.${i}` });
    };
    const text = axisName(about.axes[i] ?? 'axis');
    const input = make('input', { type: 'range', min: 0, max: side - 1, step: 1, 'data-slider': 'at', 'data-axis': i, 'aria-label': text, oninput: change });
    input.value = about.lead[i];
    const shown = make('output', { 'aria-live': 'off' }, about.lead[i]);
    return { input, shown, element: make('label', { class: 'heat-lead' }, make('span', null, text), input, shown) };
  }

  #moveSliders(lead, about) {
    this.sliders.forEach(({ input, shown }, i) => {
      input.max = lead[i] - 1;
      input.value = about.lead[i];
      shown.textContent = about.lead[i];
    });
  }
}

/* 133 × 1 cells a pixel, mean; or 8 × 8 pixels a cell; or one of each, rows first. */
function scaleText({ row, col }, reduce) {
  const zoomedOut = row.step > 1 || col.step > 1;
  if (!zoomedOut) return phrase('heat.pixels', { row: row.px, col: col.px });
  const red = name(reduce);
  if (row.px === 1 && col.px === 1) return phrase('heat.cells', { row: row.step, col: col.step, red });
  if (row.px === 1) return phrase('heat.rowsTall', { step: row.step, px: col.px, red });
  return phrase('heat.colsWide', { step: col.step, px: row.px, red });
}

/* Buttons for what is in front, from two configurations on; with a and b also their difference. */
export function frontChooser(page, { difference = true } = {}) {
  const element = make('div', { class: 'segmented front', role: 'group', 'aria-label': word('heat.front') });
  let shown = '';
  const choose = (on) => page.store.set({ on }, { undo: 'on' });
  const isPressed = (on, choices) => on === (choices.includes(page.store.state.on) ? page.store.state.on : page.front());
  const button = (on, choices) => make('button', { type: 'button', 'data-on': on, 'data-config': on, translate: 'no',
    'aria-pressed': String(isPressed(on, choices)), title: on === 'b-a' ? word('heat.difference') : word('heat.inFront', { slot: on }),
    onclick: () => choose(on) }, on.replace('-', ' − '));

  function update() {
    const slots = page.store.slots();
    const choices = [...slots, ...difference && slots.includes('a') && slots.includes('b') ? ['b-a'] : []];
    element.hidden = choices.length < 2;
    const key = `${choices} ${page.store.state.on}`;
    if (key === shown) return;
    shown = key;
    const focused = document.activeElement?.dataset.on;
    element.replaceChildren(...choices.map((on) => button(on, choices)));
    if (focused) element.querySelector(`[data-on="${focused}"]`)?.focus();
  }
  return { element, update };
}
