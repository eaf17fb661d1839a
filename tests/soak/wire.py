"""Owns one connection to the server as bytes: requests are sent as they are, answers are read strictly, and an answer says
whether it is whole. Cut short is what a client can tell by itself: fewer bytes than promised, or no last chunk."""
import json
import types

import connection

BLOCK = 1 << 20
SECONDS = 60


class Headers(dict):
    """By name in any case; None where there is none. A framing header given twice is an error of the server."""

    def __getitem__(self, name):
        return dict.get(self, name.lower())

    get = __getitem__


class Answer:
    def __init__(self, status, headers):
        self.status, self.headers, self.body, self.n_bytes, self.whole = status, headers, b"", 0, False

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.n_bytes} bytes{'' if self.whole else ' CUT'} {self.body[:200]!r}>"


class Closed(Exception):
    """The server ended the connection before an answer's head was complete; data: what had come."""

    def __init__(self, data=b"", reset=False):
        super().__init__(f"closed{' by a reset' if reset else ''} after {data[:80]!r}")
        self.data, self.reset = data, reset


class Malformed(Exception):
    """Not HTTP/1.1 as RFC 9112 has it."""


class Wire(connection.Client):
    def __init__(self, port, receive_buffer=None, seconds=SECONDS):
        super().__init__(types.SimpleNamespace(host="127.0.0.1", port=port), receive_buffer)
        self.socket.settimeout(seconds)
        self.reusable = True

    def close(self):
        self.__exit__()

    def send(self, data):
        """A server that refuses early may close while we send; its answer is then still to be read."""
        try:
            self.socket.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def line(self, so_far=b""):
        try:
            text = self.file.readline(1 << 16)
        except ConnectionResetError:
            raise Closed(so_far, True) from None
        if not text.endswith(b"\n"):
            raise Closed(so_far + text)
        return text

    def head(self):
        first = self.line()
        words = first.split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            raise Malformed(f"status line {first[:80]!r}")
        headers = Headers()
        while (text := self.line(first)) != b"\r\n":
            name, colon, value = text.decode("latin-1").partition(":")
            if not colon or name.lower() in ("content-length", "transfer-encoding") and name.lower() in headers:
                raise Malformed(f"header {text[:80]!r}")
            headers[name.lower()] = value.strip()
        return Answer(int(words[1]), headers)

    def answer(self):
        answer = self.head()
        while answer.status == 100:
            answer = self.head()
        parts = []
        try:
            answer.whole = self.read_body(answer, parts.append)
        except (ConnectionResetError, Closed):
            pass
        answer.body = b"".join(parts)
        self.reusable = answer.whole and (answer.headers["connection"] or "").lower() != "close"
        return answer

    def read_body(self, answer, take, limit=None):
        """take(block) sees it as it comes; limit: stop after so many bytes, the answer then is cut."""
        if answer.status in (204, 304):
            return True
        if answer.headers["transfer-encoding"] == "chunked":
            return self.read_chunks(answer, take, limit)
        length = answer.headers["content-length"]
        if length is None:
            raise Malformed("neither Content-Length nor chunked")
        return self.read_bytes(answer, int(length), take, limit)

    def read_bytes(self, answer, n_bytes, take, limit=None):
        wanted = n_bytes if limit is None else min(n_bytes, limit)
        while wanted > 0:
            block = self.file.read(min(wanted, BLOCK))
            if not block:
                return False
            answer.n_bytes += len(block)
            wanted -= len(block)
            n_bytes -= len(block)
            take(block)
        return n_bytes == 0

    def read_chunks(self, answer, take, limit):
        while n := int(self.line().split(b";")[0], 16):
            if not self.read_bytes(answer, n, take) or limit is not None and answer.n_bytes > limit:
                return False
            if self.line() != b"\r\n":
                raise Malformed("a chunk's end")
        return self.line() == b"\r\n"


def request(method, path, body=b"", headers=None):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if body or method in ("POST", "PUT"):
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + bytes(body)
