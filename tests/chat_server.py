"""A local server that speaks OpenAI's chat completions, and answers as a test says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    before_s: float = 0.0
    drip_s: float = 0.0
    drip_head_s: float = 0.0
    """Between the bytes of a header that never ends, in place of the answer."""


def said(text: Any, usage: Any = None, **rest: Any) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    document = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **rest}
    return Answer(body=json.dumps(document | ({} if usage is None else {"usage": usage})).encode())


def refused(status: int, message: str = "no", param: str | None = None, **headers: str) -> Answer:
    body = {"error": {"message": message, "type": "error", "param": param, "code": None}}
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(body).encode(), told)


@dataclass
class Server:
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str | None] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)


@contextmanager
def serving(answer: Callable[[int, dict[str, Any]], Answer]) -> Iterator[Server]:
    """A server whose n-th answer (from 0) is `answer(n, request)`."""
    seen, lock = Server(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                number = len(seen.asked)
                seen.asked.append(request)
                seen.keys.add(self.headers["Authorization"])
                seen.paths.add(self.path)
            given = answer(number, request)
            time.sleep(given.before_s)
            try:
                if given.drip_head_s:
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
                    for _ in range(200):
                        self.wfile.write(b"x")
                        time.sleep(given.drip_head_s)
                self.send_response(given.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(given.body)))
                for name, value in given.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                for byte in given.body if given.drip_s else ():
                    self.wfile.write(bytes([byte]))
                    time.sleep(given.drip_s)
                if not given.drip_s:
                    self.wfile.write(given.body)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    seen.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
