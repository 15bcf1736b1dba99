"""A collector of OpenTelemetry: keeps the spans that it is sent by OTLP over HTTP in protobuf."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse

PATIENCE = 60
MEDIA_TYPE = "application/x-protobuf"


class Collector:
    def __init__(self):
        self.spans = []
        self.arrived = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                is_protobuf = self.headers["content-type"] == MEDIA_TYPE
                if is_protobuf and self.path == "/v1/traces":
                    collector.add(ExportTraceServiceRequest.FromString(body))
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200 if is_protobuf else 415)
                self.send_header("content-type", MEDIA_TYPE)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, request):
        with self.arrived:
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            self.arrived.notify_all()

    def wait_for(self, count):
        """The spans, once there are so many."""
        with self.arrived:
            if not self.arrived.wait_for(lambda: len(self.spans) >= count, PATIENCE):
                raise AssertionError(f"{count} spans were to come, not {self.spans}")
            return list(self.spans)
