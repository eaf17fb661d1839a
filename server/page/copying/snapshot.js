/* A figure as a picture file: its title, its canvases, the texts that stand over and beside them, the colour bar, and
 * the address that shows it again. */

const MARGIN_PX = 16;
const LINE_PX = 28;
const ADDRESS_MAX = 160;   /* of a longer one its beginning */

export function snapshot(figure, address) {
  const parts = [figure.stage, figure.extra.querySelector('.colorbar-bar')].filter((part) => part?.clientHeight);
  const boxes = parts.map((part) => part.getBoundingClientRect());
  const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top))];
  const [right, bottom] = [Math.max(...boxes.map((box) => box.right)), Math.max(...boxes.map((box) => box.bottom))];
  const ratio = Math.max(2, devicePixelRatio);
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil((right - left + 2 * MARGIN_PX) * ratio);
  canvas.height = Math.ceil((bottom - top + 2 * MARGIN_PX + 2 * LINE_PX) * ratio);
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  drawText(context, figure.title, MARGIN_PX, MARGIN_PX + LINE_PX / 2 - 4, figure.title.textContent);
  const shown = address.length > ADDRESS_MAX ? `${address.slice(0, ADDRESS_MAX)}…` : address;
  drawText(context, figure.caption, MARGIN_PX, canvas.height / ratio - MARGIN_PX - 4, shown, right - left);
  context.translate(MARGIN_PX - left, MARGIN_PX + LINE_PX - top);
  for (const part of parts) {
    part.querySelectorAll('canvas').forEach((one) => drawCanvas(context, one));
    textsIn(part).forEach((node) => drawNode(context, node));
  }
  return new Promise((resolve) => canvas.toBlob(resolve));
}

function drawCanvas(context, canvas) {
  const { left, top, width, height } = canvas.getBoundingClientRect();
  if (!width || !height || !canvas.width) return;
  context.imageSmoothingEnabled = getComputedStyle(canvas).imageRendering !== 'pixelated';
  context.drawImage(canvas, left, top, width, height);
}

function textsIn(stage) {
  const walker = document.createTreeWalker(stage, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) {
    const { data, parentElement } = walker.currentNode;
    if (data.trim() && !parentElement.closest('button, select, input, .visually-hidden, canvas')) {
      nodes.push(walker.currentNode);
    }
  }
  return nodes;
}

function drawNode(context, node) {
  const range = document.createRange();
  range.selectNodeContents(node);
  const box = range.getBoundingClientRect();
  if (box.width > 1) drawText(context, node.parentElement, box.left, box.top + box.height / 2, node.data.trim());
}

/* most: pixels into which it is pressed. */
function drawText(context, element, x, y, text, most) {
  const style = getComputedStyle(element);
  context.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.fillStyle = style.color;
  context.textBaseline = 'middle';
  context.fillText(text, x, y, most);
}
