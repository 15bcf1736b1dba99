"""A collector of OpenTelemetry: keeps the spans that it is sent by OTLP over HTTP with JSON."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATIENCE = 60


class Collector:
    def __init__(self):
        self.spans = []
        self.arrived = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.path == "/v1/traces":
                    collector.add(body)
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, body):
        with self.arrived:
            for resource in body["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    self.spans += scope["spans"]
            self.arrived.notify_all()

    def wait_for(self, count):
        """The spans, once there are so many."""
        with self.arrived:
            if not self.arrived.wait_for(lambda: len(self.spans) >= count, PATIENCE):
                raise AssertionError(f"{count} spans were to come, not {self.spans}")
            return list(self.spans)
