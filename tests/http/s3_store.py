"""A small S3-compatible store in this process: signatures, conditional writes, lists in parts, and faults on demand.

    with S3Store() as s3:                  s3.endpoint, s3.env() for a server, s3.objects {key: bytes}
        s3.fault(status=503, path="/names/", times=2)
        s3.kill(); s3.revive()             the port refuses connections; its objects stay

It checks what real stores check (AWS Signature Version 4 over method, path, sorted query, headers and the digest of the body), and
answers wrong ones as they do, so that a client that it accepts is accepted elsewhere."""
import collections
import contextlib
import hashlib
import hmac
import http.server
import re
import socket
import socketserver
import threading
import time
import urllib.parse
from email.utils import formatdate
from xml.sax.saxutils import escape

import pytest

from conftest import POSENCD, start_server

ACCESS_KEY, SECRET_KEY, REGION, BUCKET = "tester", "se+cr/et", "us-east-1", "weights"
PLAIN = "-._~"


def canonical_query(query):
    pairs = [pair.partition("=")[::2] for pair in query.split("&") if pair]
    return "&".join(f"{name}={value}" for name, value in sorted(
        (urllib.parse.quote(urllib.parse.unquote(n), safe=PLAIN), urllib.parse.quote(urllib.parse.unquote(v), safe=PLAIN)) for n, v in pairs))


def sign(secret, date, region, scope, text):
    key = ("AWS4" + secret).encode()
    for part in (date, region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Refusal(Exception):
    def __init__(self, status, code):
        super().__init__(code)
        self.status, self.code = status, code


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def setup(self):
        super().setup()
        self.server.sockets.add(self.connection)

    def finish(self):
        self.server.sockets.discard(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    # ---- Signatures ----

    def check_signature(self, body):
        store, h = self.server.store, self.headers
        if "Authorization" not in h and store.is_open:
            return
        if "Authorization" not in h:
            raise Refusal(403, "AccessDenied")
        parts = dict(part.strip().split("=", 1) for part in h["Authorization"].removeprefix("AWS4-HMAC-SHA256").split(","))
        key, date, region, service, _ = parts["Credential"].split("/")
        if key != store.access_key:
            raise Refusal(403, "InvalidAccessKeyId")
        if region != REGION or service != "s3":
            raise Refusal(400, "AuthorizationHeaderMalformed")
        at = time.mktime(time.strptime(h["x-amz-date"], "%Y%m%dT%H%M%SZ")) - time.timezone
        if abs(at - store.now()) > 900:
            raise Refusal(403, "RequestTimeTooSkewed")
        digest = h["x-amz-content-sha256"]
        if digest != "UNSIGNED-PAYLOAD" and digest != hashlib.sha256(body).hexdigest():
            raise Refusal(400, "XAmzContentSHA256Mismatch")
        if store.session_token and h["x-amz-security-token"] != store.session_token:
            raise Refusal(403, "InvalidToken")
        path, _, query = self.path.partition("?")
        names = parts["SignedHeaders"].split(";")
        for name in h:
            if name.lower().startswith("x-amz-") and name.lower() not in names:
                raise Refusal(403, "AccessDenied")
        canonical = "\n".join([self.command, urllib.parse.quote(urllib.parse.unquote(path), safe="/" + PLAIN), canonical_query(query),
                               *(f"{name}:{' '.join((h[name] or '').split())}" for name in names), "", parts["SignedHeaders"], digest])
        scope = f"{date}/{region}/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", h["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
        if not hmac.compare_digest(sign(store.secret_key, date, region, scope, text), parts["Signature"]):
            raise Refusal(403, "SignatureDoesNotMatch")

    # ---- Answers ----

    def answer(self, status, body=b"", fault=None, **headers):
        self.send_response_only(status)
        self.send_header("Date", formatdate(self.server.store.now(), usegmt=True))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        fault = fault or {}
        body = fault.get("body", body)
        if "bare" in fault:  # as a proxy of HTTP/1.0 passes it on: its end is that of the connection
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if "cut" in fault:
            self.wfile.write(body[:fault["cut"]])
            self.drop()
        elif "trickle" in fault:
            for i in range(0, len(body), 10):
                if self.server.store.released.wait(fault["trickle"]):
                    return self.drop()
                self.wfile.write(body[i:i + 10])
        else:
            self.wfile.write(body)

    def drop(self):
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def refuse(self, refusal):
        self.answer(refusal.status, f"<?xml version='1.0'?><Error><Code>{refusal.code}</Code><Message>no</Message></Error>".encode(),
                    Content_Type="application/xml")

    # ---- Operations ----

    def list(self, query):
        store = self.server.store
        asked = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        keys = sorted(key for key in store.objects if key.startswith(asked.get("prefix", "")) and key > asked.get("continuation-token", ""))
        part, rest = keys[:store.list_max], keys[store.list_max:]
        items = "".join(f"<Contents><Key>{escape(key)}</Key><ETag>&quot;{store.tag(key)}&quot;</ETag><Size>{len(store.objects[key])}</Size></Contents>"
                        for key in part)
        more = f"<NextContinuationToken>{escape(part[-1])}</NextContinuationToken>" if rest else ""
        return self.answer(200, (f"<?xml version='1.0'?><ListBucketResult><Name>{store.bucket}</Name><IsTruncated>{'true' if rest else 'false'}"
                                 f"</IsTruncated>{items}{more}</ListBucketResult>").encode(), self.applied, Content_Type="application/xml")

    def check_conditions(self, key):
        store = self.server.store
        match, none = (None if name in store.ignored else self.headers[name] for name in ("If-Match", "If-None-Match"))
        if not store.has_conditions and (match or none):
            raise Refusal(501, "NotImplemented")
        if none == "*" and key in store.objects:
            raise Refusal(412, "PreconditionFailed")
        if match and key not in store.objects:
            raise Refusal(404, "NoSuchKey")
        if match and match.strip('"') != store.tag(key):
            raise Refusal(412, "PreconditionFailed")

    def operate(self, key, body, fault):
        store = self.server.store
        if self.command == "PUT":
            with store.lock:
                self.check_conditions(key)
                store.objects[key] = body
                store.written[key] = store.now()
            return self.answer(200, ETag=f'"{store.tag(key)}"')
        if self.command == "DELETE":
            with store.lock:
                self.check_conditions(key)
                store.objects.pop(key, None)
            return self.answer(204)
        if key not in store.objects:
            raise Refusal(404, "NoSuchKey")
        stored = store.objects[key]
        if "corrupt" in fault:
            stored = stored[:-1] + bytes([stored[-1] ^ 1])
        return self.answer(200, stored, fault, ETag=f'"{store.tag(key)}"', Last_Modified=formatdate(store.written[key], usegmt=True))

    def handle_one(self):
        store = self.server.store
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        path, _, query = self.path.partition("?")
        fault = self.applied = store.take_fault(self.command, self.path)
        store.seen.append((self.command, path))
        if "delay" in fault:
            store.released.wait(fault["delay"])
        if "hang" in fault:
            store.released.wait()
            return self.drop()
        if "close" in fault:
            return self.drop()
        if "status" in fault:
            raise Refusal(fault["status"], fault.get("code", "SlowDown"))
        self.check_signature(body)
        bucket, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
        if bucket != store.bucket:
            raise Refusal(404, "NoSuchBucket")
        if not key:
            return self.list(query)
        return self.operate(key, body, fault)

    def do_GET(self):
        try:
            try:
                self.handle_one()
            except Refusal as refusal:
                self.refuse(refusal)
        except (BrokenPipeError, ConnectionResetError):
            self.drop()

    do_PUT = do_DELETE = do_HEAD = do_GET


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, store, port):
        self.store, self.sockets = store, set()
        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request, client_address):
        pass


class S3Store:
    def __init__(self, bucket=BUCKET, has_conditions=True, list_max=1000, tls=None):
        self.bucket, self.has_conditions, self.list_max = bucket, has_conditions, list_max
        self.ignored = set()  # conditions that it takes no notice of, {"If-Match"}
        self.is_open = False  # to requests that are not signed
        self.tls = tls  # an ssl.SSLContext: https
        self.access_key, self.secret_key, self.session_token = ACCESS_KEY, SECRET_KEY, ""
        self.objects, self.seen, self.faults, self.ahead = {}, [], [], 0
        self.written = collections.defaultdict(time.time)  # key: when; what a test puts into objects itself is new
        self.lock, self.released = threading.RLock(), threading.Event()
        self.server, self.port = None, 0

    def __enter__(self):
        self.revive()
        return self

    def __exit__(self, *_):
        self.kill()

    @property
    def endpoint(self):
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"

    def env(self, **more):
        keys = {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key, "AWS_REGION": REGION, "no_proxy": "127.0.0.1"}
        return {**keys, **({"AWS_SESSION_TOKEN": self.session_token} if self.session_token else {}), **more}

    def now(self):
        return time.time() + self.ahead

    def tag(self, key):
        return hashlib.md5(self.objects[key]).hexdigest()

    def revive(self):
        self.released.clear()
        self.server = Server(self, self.port)
        self.port = self.server.server_address[1]
        if self.tls:
            self.server.socket = self.tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def kill(self):
        """As SIGKILL: the port refuses, open connections end."""
        if not self.server:
            return
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        for connection in list(self.server.sockets):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server = None

    def fault(self, path="", method="", times=1 << 40, **what):
        """delay=s, hang=1, close=1, status=503, cut=bytes, bare=1 (without Content-Length, so that what was cut looks whole), trickle=s
        (every 10 bytes), corrupt=1, body=bytes (instead); for requests whose path (of a list: its query, "names%2F") contains path."""
        self.faults.append({"path": path, "method": method, "times": times, **what})

    def heal(self):
        self.faults = []
        self.released.set()
        time.sleep(0.05)
        self.released.clear()

    def take_fault(self, method, path):
        with self.lock:
            for fault in self.faults:
                if fault["path"] in path and fault["method"] in method and fault["times"] > 0:
                    fault["times"] -= 1
                    return fault
        return {}


# ---- Servers on it -------------------------------------------------------------------------------------------------------

PREFIX = "team/a"
PLACE = f"s3://{BUCKET}/{PREFIX}"


@pytest.fixture
def s3():
    with S3Store() as store:
        yield store


def on(s3, *flags, place=PLACE, refresh=1, env=None, program=POSENCD):
    """A server on it that compares its names every so many seconds."""
    return start_server("--store", place, "--store-endpoint", s3.endpoint, "--store-refresh", str(refresh), *flags, env=env or s3.env(), program=program)


def sha(body):
    return hashlib.sha256(body).hexdigest()


def blob_key(body, prefix=PREFIX):
    return f"{prefix}/blobs/{sha(body)}"


def name_text(body):
    """What a name says of its blob."""
    return f'{{"sha256":"{sha(body)}","bytes":{len(body)}}}\n'.encode()


def lay(s3, name, body, prefix=PREFIX, kind="names"):
    """As another server would write it; the path of its blob."""
    s3.objects[blob_key(body, prefix)] = body
    s3.objects[f"{prefix}/{kind}/{name}"] = name_text(body)
    return f"/blobs/{sha(body)}"


def n_seen(s3, method="", path="", end=""):
    """How many requests it has got, of this method, whose path has this part and this end."""
    return sum(asked == (method or asked) and path in where and where.endswith(end) for asked, where in s3.seen)


def names(server):
    return [entry["name"] for entry in server.get("/weights").json()["weights"]]


def figure(server, name, **labels):
    """A figure of /metrics; None: it is not there."""
    wanted = ",".join(f'{label}="{value}"' for label, value in labels.items())
    found = re.search(rf"^{name}{re.escape('{' + wanted + '}') if wanted else ''} (\S+)$", server.get("/metrics").body.decode(), re.M)
    return float(found[1]) if found else None
