/* fetch for `send` that tells how much was sent: only XMLHttpRequest knows. onSent(bytes, of how many) */
export const sending = (onSent) => (url, { method, headers, body, signal }) => new Promise((resolve, reject) => {
  const call = new XMLHttpRequest();
  call.open(method, url);
  for (const [key, value] of Object.entries(headers)) call.setRequestHeader(key, value);
  call.responseType = 'arraybuffer';
  call.upload.onprogress = ({ loaded, total }) => onSent(loaded, total);
  const retry = () => call.getResponseHeader('Retry-After');
  call.onload = () => resolve(new Response(
    call.response,
    { status: call.status, statusText: call.statusText, headers: retry() ? { 'Retry-After': retry() } : {} }
  ));
  call.onerror = call.onabort = () => reject(new TypeError('no answer'));
  signal.addEventListener('abort', () => call.abort());
  call.send(body);
});
