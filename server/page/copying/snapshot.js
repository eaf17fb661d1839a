/* A figure as a picture file: its title, its canvases, and the texts that stand over and beside them. */

const MARGIN_PX = 16;
const TITLE_PX = 28;

export function snapshot(figure) {
  const box = figure.stage.getBoundingClientRect();
  const ratio = Math.max(2, devicePixelRatio);
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil((box.width + 2 * MARGIN_PX) * ratio);
  canvas.height = Math.ceil((box.height + 2 * MARGIN_PX + TITLE_PX) * ratio);
  const context = canvas.getContext('2d');
  context.scale(ratio, ratio);
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  drawText(context, figure.title, MARGIN_PX, MARGIN_PX + TITLE_PX / 2 - 4, figure.title.textContent);
  context.translate(MARGIN_PX - box.left, MARGIN_PX + TITLE_PX - box.top);
  figure.stage.querySelectorAll('canvas').forEach((one) => drawCanvas(context, one));
  textsIn(figure.stage).forEach((node) => drawNode(context, node));
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

function drawText(context, element, x, y, text) {
  const style = getComputedStyle(element);
  context.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  context.fillStyle = style.color;
  context.textBaseline = 'middle';
  context.fillText(text, x, y);
}
