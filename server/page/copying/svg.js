/* As much of a canvas's context as pictures of this page use, written down as SVG. What it draws is elements, so no
 * text becomes markup. */
import { svg } from '../dom.js';

const LOOK = {
  strokeStyle: '#000', fillStyle: '#000', lineWidth: 1, lineJoin: 'miter', font: '10px sans-serif', textAlign: 'start',
  textBaseline: 'alphabetic', globalAlpha: 1, imageSmoothingEnabled: true,
};
const ANCHOR = { left: 'start', start: 'start', center: 'middle', right: 'end', end: 'end' };
const BASELINE = { top: 'text-before-edge', middle: 'central', alphabetic: 'auto' };
const brief = (value) => String(Number(value.toFixed(2)));

export class SvgContext {
  #kept = [];
  #path = '';
  #dash = [];
  #x = 0;
  #y = 0;
  #turn = 0;   /* of texts alone, in degrees */
  #clips = 0;

  constructor(width, height) {
    this.canvas = { width, height };
    this.root = svg('svg', { xmlns: 'http://www.w3.org/2000/svg', width, height, viewBox: `0 0 ${width} ${height}` });
    this.into = this.root;
    this.pen = document.createElement('canvas').getContext('2d');
    Object.assign(this, LOOK);
  }

  get text() { return new XMLSerializer().serializeToString(this.root); }

  /* ---- state ---- */

  save() {
    const look = Object.fromEntries(Object.keys(LOOK).map((key) => [key, this[key]]));
    this.#kept.push([look, this.into, this.#x, this.#y, this.#dash, this.#turn]);
  }

  restore() {
    const [look, into, x, y, dash, turn] = this.#kept.pop();
    Object.assign(this, look, { into });
    [this.#x, this.#y, this.#dash, this.#turn] = [x, y, dash, turn];
  }

  translate(x, y) {
    this.#x += x;
    this.#y += y;
  }

  rotate(angle) { this.#turn += angle * 180 / Math.PI; }

  setLineDash(dash) { this.#dash = dash; }

  measureText(text) {
    this.pen.font = this.font;
    return this.pen.measureText(text);
  }

  /* ---- paths ---- */

  #point(x, y) { return `${brief(this.#x + x)} ${brief(this.#y + y)}`; }
  beginPath() { this.#path = ''; }
  moveTo(x, y) { this.#path += `M${this.#point(x, y)}`; }
  lineTo(x, y) { this.#path += `L${this.#point(x, y)}`; }
  closePath() { this.#path += 'Z'; }
  rect(x, y, w, h) { this.#path += `M${this.#point(x, y)}h${brief(w)}v${brief(h)}h${brief(-w)}Z`; }

  /* Whole circles only. */
  arc(x, y, radius) {
    const half = (to) => `A${brief(radius)} ${brief(radius)} 0 1 1 ${this.#point(to, y)}`;
    this.#path += `M${this.#point(x + radius, y)}${half(x - radius)}${half(x + radius)}Z`;
  }

  #draw(d, look) {
    this.into.append(svg('path', { d, opacity: this.globalAlpha === 1 ? null : this.globalAlpha, ...look }));
  }

  stroke() {
    if (!this.#path) return;
    this.#draw(this.#path, {
      fill: 'none', stroke: this.strokeStyle, 'stroke-width': this.lineWidth, 'stroke-linejoin': this.lineJoin,
      'stroke-dasharray': this.#dash.length ? this.#dash.join(' ') : null,
    });
  }

  fill() { if (this.#path) this.#draw(this.#path, { fill: this.fillStyle }); }

  fillRect(x, y, w, h) {
    this.#draw(`M${this.#point(x, y)}h${brief(w)}v${brief(h)}h${brief(-w)}Z`, { fill: this.fillStyle });
  }

  clip() {
    const id = `clip-${this.#clips += 1}`;
    this.root.append(svg('clipPath', { id }, svg('path', { d: this.#path })));
    const group = svg('g', { 'clip-path': `url(#${id})` });
    this.into.append(group);
    this.into = group;
  }

  /* ---- texts and pictures ---- */

  fillText(text, x, y, most) {
    const isLong = most && this.measureText(text).width > most;
    const at = this.#point(x, y);
    const node = svg('text', {
      x: brief(this.#x + x), y: brief(this.#y + y), fill: this.fillStyle,
      transform: this.#turn ? `rotate(${brief(this.#turn)} ${at})` : null, 'text-anchor': ANCHOR[this.textAlign],
      'dominant-baseline': BASELINE[this.textBaseline] ?? 'auto', textLength: isLong ? most : null,
      lengthAdjust: isLong ? 'spacingAndGlyphs' : null,
    }, text);
    node.style.font = this.font;
    this.into.append(node);
  }

  drawImage(canvas, x, y, width, height) {
    const image = svg('image', {
      x: brief(this.#x + x), y: brief(this.#y + y), width: brief(width), height: brief(height),
      preserveAspectRatio: 'none', href: canvas.toDataURL(),
    });
    if (!this.imageSmoothingEnabled) image.style.imageRendering = 'pixelated';
    this.into.append(image);
  }
}
