/* Mouse, wheel, fingers and keys on a canvas. A plain wheel and one finger scroll the page; Ctrl+wheel and two fingers
 * zoom; dragging with the mouse, and two fingers, pan. `on`: { hover, point, grab, drag, zoom, key }. */

const CLICK_PX = 4;            /* a mouse that moves less has clicked */
const WHEEL_FACTOR = 1.0015;   /* per unit of deltaY: about 1.16 a notch */

export function listenTo(canvas, on) {
  mouse(canvas, on);
  wheel(canvas, on);
  fingers(canvas, on);
  canvas.addEventListener('keydown', (event) => {
    if (event.altKey || event.metaKey || !on.key(event)) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

function mouse(canvas, on) {
  let held = null;   /* where the button went down, and whether the mouse has moved since */
  canvas.addEventListener('pointerdown', (event) => {
    if (event.pointerType === 'touch' || event.button !== 0) return;
    held = { x: event.clientX, y: event.clientY, panned: false };
    canvas.setPointerCapture(event.pointerId);
    on.grab();
  });
  canvas.addEventListener('pointermove', (event) => {
    if (event.pointerType === 'touch') return;
    if (!held) return on.hover(event.offsetY, event.offsetX);
    const [right, down] = [event.clientX - held.x, event.clientY - held.y];
    held.panned ||= Math.hypot(right, down) >= CLICK_PX;
    if (held.panned) {
      canvas.classList.add('panning');
      on.drag(right, down);
    }
  });
  const release = () => {
    held = null;
    canvas.classList.remove('panning');
  };
  canvas.addEventListener('pointerup', (event) => {
    if (event.pointerType === 'touch' || (held && !held.panned)) on.point(event.offsetY, event.offsetX);
    release();
  });
  canvas.addEventListener('pointercancel', release);
  canvas.addEventListener('pointerleave', (event) => event.pointerType !== 'touch' && on.hover(null));
}

/* Zooms add up until one of them changes the scale: a touchpad sends many small ones. */
function wheel(canvas, on) {
  let delta = 0;
  canvas.addEventListener('wheel', (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    delta += event.deltaMode === 1 ? event.deltaY * 33 : event.deltaY;
    if (Math.abs(delta) < 20) return;
    on.zoom(WHEEL_FACTOR ** -delta, [event.offsetY, event.offsetX]);
    delta = 0;
  }, { passive: false });
}

function fingers(canvas, on) {
  let start = null;
  const middle = ([one, other]) => ({ x: (one.clientX + other.clientX) / 2, y: (one.clientY + other.clientY) / 2,
    apart: Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) });
  const begin = (touches) => {
    start = middle(touches);
    on.grab();
  };
  canvas.addEventListener('touchstart', (event) => {
    if (event.touches.length !== 2) return;
    event.preventDefault();
    begin(event.touches);
  }, { passive: false });
  canvas.addEventListener('touchmove', (event) => {
    if (!start || event.touches.length !== 2) return;
    event.preventDefault();
    const now = middle(event.touches);
    const factor = now.apart / start.apart;
    if (factor < 0.87 || factor > 1.15) {
      const box = canvas.getBoundingClientRect();
      on.zoom(factor, [now.y - box.top, now.x - box.left]);
      begin(event.touches);
    } else on.drag(now.x - start.x, now.y - start.y);
  }, { passive: false });
  for (const end of ['touchend', 'touchcancel']) canvas.addEventListener(end, () => { start = null; });
}
