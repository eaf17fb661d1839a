"""A proxy between browser and posencd that alters JSON answers: a server as it may be one day."""
import contextlib
import http.client
import json
import threading
import urllib.parse

from passing import Listener, PassingHandler


class Handler(PassingHandler):
    def pass_on(self, body):
        back = http.client.HTTPConnection(self.server.back.host, self.server.back.port, timeout=60)
        with contextlib.closing(back):
            ours = ("host", "connection", "if-none-match", "accept-encoding")  # plain answers: they are altered
            headers = {name: value for name, value in self.headers.items() if name.lower() not in ours}
            back.request(self.command, self.path, body, headers)
            answer = back.getresponse()
            data = self.altered(answer, answer.read())
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server", "etag"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def altered(self, answer, data):
        alter = self.server.alter.get(urllib.parse.urlsplit(self.path).path)
        if not alter or answer.status != 200 or "json" not in answer.getheader("Content-Type", ""):
            return data
        return json.dumps(alter(json.loads(data))).encode()


@contextlib.contextmanager
def altered_proxy(server, alter):
    """alter: {path: function of the parsed answer to another}. Gives the proxy's address."""
    listener = Listener(("127.0.0.1", 0), Handler)
    listener.back, listener.alter = server, alter
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.server_port}"
    finally:
        listener.shutdown()
        listener.server_close()
