"""A schema registry on a free port: what Confluent's does of which Sojourn makes use."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

__all__ = ["schema_registry"]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        match urlsplit(self.path).path.split("/")[1:]:
            case ["schemas", "ids", number] if int(number) <= len(self.server.schemas):
                self._answer(200, {"schema": self.server.schemas[int(number) - 1]})
            case ["schemas", "ids", _]:
                self._answer(404, {"error_code": 40403, "message": "Schema not found"})
            case ["subjects", name, "versions", "latest"] if unquote(name) in self._subjects:
                number = self._subjects[unquote(name)][-1]
                self._answer(
                    200,
                    {
                        "subject": unquote(name),
                        "version": len(self._subjects[unquote(name)]),
                        "id": number,
                        "schema": self.server.schemas[number - 1],
                    },
                )
            case ["subjects", name, "versions", "latest"]:
                message = f"Subject '{unquote(name)}' not found."
                self._answer(404, {"error_code": 40401, "message": message})

    def do_POST(self):
        match urlsplit(self.path).path.split("/")[1:]:
            case ["subjects", name, "versions"]:
                text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))[
                    "schema"
                ]
                if "refused" in name:
                    return self._answer(409, {"error_code": 409, "message": "incompatible"})
                if text not in self.server.schemas:
                    self.server.schemas.append(text)
                number = self.server.schemas.index(text) + 1
                self._subjects.setdefault(unquote(name), []).append(number)
                return self._answer(200, {"id": number})

    @property
    def _subjects(self):
        return self.server.subjects

    def _answer(self, status, content):
        body = json.dumps(content).encode()
        self.server.asked += 1
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Print nothing."""


class Registry(ThreadingHTTPServer):
    """Schemas by their id, counted from 1, and the ids of each subject."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.schemas, self.subjects, self.asked = [], {}, 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def register(self, subject, schema):
        """Add a schema as other clients do, and return its id."""
        self.schemas.append(json.dumps(schema))
        self.subjects.setdefault(subject, []).append(len(self.schemas))
        return len(self.schemas)


@contextmanager
def schema_registry():
    """Yield a registry that runs."""
    with Registry() as registry:
        serving = threading.Thread(target=registry.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield registry
        finally:
            registry.shutdown()
            serving.join()
