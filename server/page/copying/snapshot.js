/* A figure as a picture file, PNG or SVG: its title, its canvases, the texts that stand over and beside them, the
 * colour bar, and the address that shows it again. On light paper, whatever the page has. */
import { painters } from '../figure.js';
import { inLight } from '../frame/settings.js';
import { SvgContext } from './svg.js';

const MARGIN_PX = 16;
const LINE_PX = 28;
const ADDRESS_MAX = 160;   /* of a longer one its beginning */

/* kind: 'png' or 'svg'. Gives a Blob. */
export function snapshot(figure, address, kind) {
  const context = inLight(() => {
    const sheet = sheetOf(figure);
    const drawn = kind === 'svg' ? new SvgContext(sheet.width, sheet.height) : canvasOf(sheet);
    drawSheet(drawn, figure, sheet, address);
    return drawn;
  });
  if (kind === 'svg') return new Blob([context.text], { type: 'image/svg+xml' });
  return new Promise((resolve) => context.canvas.toBlob(resolve));
}

/* What is drawn of a figure, and how large the whole becomes, in pixels of the page. */
function sheetOf(figure) {
  const parts = [figure.stage, figure.extra.querySelector('.colorbar-bar')].filter((part) => part?.clientHeight);
  const ends = [...figure.extra.querySelectorAll('.colorbar-end')].filter((end) => end.clientHeight);
  const boxes = [...parts, ...ends].map((part) => part.getBoundingClientRect());
  const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top))];
  const [right, bottom] = [Math.max(...boxes.map((box) => box.right)), Math.max(...boxes.map((box) => box.bottom))];
  const [width, height] = [right - left + 2 * MARGIN_PX, bottom - top + 2 * MARGIN_PX + 2 * LINE_PX].map(Math.ceil);
  return { parts, ends, left, top, width, height };
}

function canvasOf({ width, height }) {
  const ratio = Math.max(2, devicePixelRatio);
  const canvas = document.createElement('canvas');
  Object.assign(canvas, { width: Math.ceil(width * ratio), height: Math.ceil(height * ratio) });
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  return context;
}

function drawSheet(context, figure, { parts, ends, left, top, width, height }, address) {
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, width, height);
  drawText(context, figure.title, MARGIN_PX, MARGIN_PX + LINE_PX / 2 - 4, figure.title.textContent);
  const shown = address.length > ADDRESS_MAX ? `${address.slice(0, ADDRESS_MAX)}…` : address;
  drawText(context, figure.caption, MARGIN_PX, height - MARGIN_PX - 4, shown, width - 2 * MARGIN_PX);
  context.translate(MARGIN_PX - left, MARGIN_PX + LINE_PX - top);
  for (const part of parts) {
    part.querySelectorAll('canvas:not(.chart-cursor)').forEach((one) => drawCanvas(context, one));
    textsIn(part).forEach((node) => drawNode(context, node));
  }
  for (const end of ends) {   /* of the colour bar: fields */
    const box = end.getBoundingClientRect();
    drawText(context, end, box.left, box.top + box.height / 2, end.value || end.placeholder, box.width);
  }
}

/* Lines are drawn anew, so that they are sharp at any size. */
function drawCanvas(context, canvas) {
  const { left, top, width, height } = canvas.getBoundingClientRect();
  if (!width || !height || !canvas.width) return;
  context.save();
  context.translate(left, top);
  if (painters.has(canvas)) painters.get(canvas)(context);
  else {
    context.imageSmoothingEnabled = getComputedStyle(canvas).imageRendering !== 'pixelated';
    context.drawImage(canvas, 0, 0, width, height);
  }
  context.restore();
}

function textsIn(stage) {
  const walker = document.createTreeWalker(stage, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) {
    const { data, parentElement } = walker.currentNode;
    if (data.trim() && !parentElement.closest('button, select, input, .visually-hidden, canvas, [hidden]')) {
      nodes.push(walker.currentNode);
    }
  }
  return nodes;
}

function drawNode(context, node) {
  const range = document.createRange();
  range.selectNodeContents(node);
  const { left, top, width, height, bottom } = range.getBoundingClientRect();
  const [element, text] = [node.parentElement, node.data.trim()];
  if (width <= 1) return;
  if (getComputedStyle(element).writingMode === 'horizontal-tb') {
    return drawText(context, element, left, top + height / 2, text);
  }
  context.save();   /* it is read from below */
  context.translate(left + width / 2, bottom);
  context.rotate(-Math.PI / 2);
  drawText(context, element, 0, 0, text);
  context.restore();
}

/* most: pixels into which it is pressed. */
function drawText(context, element, x, y, text, most) {
  const style = getComputedStyle(element);
  context.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.fillStyle = style.color;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.fillText(text, x, y, most);
}
