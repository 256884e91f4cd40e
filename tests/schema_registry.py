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
        if self.server.status is not None:
            return self._answer(self.server.status, {"error_code": 1, "message": "not now"})
        return self._get()

    def _get(self):
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
    """Schemas by their id, counted from 1, and the ids of each subject.

    One that *follows* another that has stopped has its schemas, and its port.
    """

    daemon_threads = True

    def __init__(self, follows=None):
        port = 0 if follows is None else follows.server_port
        super().__init__(("127.0.0.1", port), _Handler)
        self.schemas = [] if follows is None else follows.schemas
        self.subjects = {} if follows is None else follows.subjects
        self.asked, self.status = 0, None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def register(self, subject, schema):
        """Add a schema as other clients do, and return its id."""
        self.schemas.append(json.dumps(schema))
        self.subjects.setdefault(subject, []).append(len(self.schemas))
        return len(self.schemas)


@contextmanager
def schema_registry(follows=None):
    """Yield a registry that runs; it may be that of before, started again."""
    with Registry(follows) as registry:
        serving = threading.Thread(target=registry.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield registry
        finally:
            registry.shutdown()
            serving.join()
