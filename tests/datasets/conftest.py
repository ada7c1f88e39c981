"""A server on this machine that answers as OpenML does, and a machine on which no set is found."""

import gzip
import hashlib
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sklearn.datasets import _openml


class Server:
    """Answers by path, and remembers what was asked."""

    def __init__(self):
        self.answers, self.asked, self.gzip = {}, [], False
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(self.path)
                body = server.answers.get(self.path)
                self.send_response(404 if body is None else 200)
                if server.gzip:
                    self.send_header("Content-Encoding", "gzip")
                self.end_headers()
                self.wfile.write(gzip.compress(body or b"") if server.gzip else body or b"")

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}"

    def serve(self, data_id, rows, target, n_columns, *, url=None, md5=None):
        """Offer lines of ARFF whose last column is the class; the columns before are numbers."""
        names = [*(f"a{j}" for j in range(n_columns)), "Class"]
        types = [*["NUMERIC"] * n_columns, "{" + ",".join(target) + "}"]
        head = ["@RELATION r", *(f"@ATTRIBUTE {n} {t}" for n, t in zip(names, types, strict=True)), "@DATA"]
        arff = "\n".join([*head, *rows, ""]).encode()
        file = f"/data/v1/download/{data_id}"  # where scikit-learn before 1.7 looks, whatever the url
        about = {
            "id": str(data_id),
            "name": "r",
            "version": "1",
            "format": "ARFF",
            "status": "active",
            "description": "rows",
            "file_id": str(data_id),
            "url": url or self.address + file,
            "md5_checksum": md5 or hashlib.md5(arff).hexdigest(),
        }
        features = [
            {
                "index": str(j),
                "name": name,
                "data_type": "nominal" if name == "Class" else "numeric",
                "is_target": str(name == "Class").lower(),
                "is_ignore": "false",
                "is_row_identifier": "false",
                "number_of_missing_values": "0",
            }
            for j, name in enumerate(names)
        ]
        qualities = [{"name": "NumberOfInstances", "value": str(len(rows))}]
        where = "/api/v1/json/data"
        self.answers |= {
            f"{where}/{data_id}": json.dumps({"data_set_description": about}).encode(),
            f"{where}/features/{data_id}": json.dumps({"data_features": {"feature": features}}).encode(),
            f"{where}/qualities/{data_id}": json.dumps({"data_qualities": {"quality": qualities}}).encode(),
            file: arff,
        }


@pytest.fixture
def server(monkeypatch):
    """OpenML, as far as scikit-learn can see."""
    server = Server()
    for name, value in vars(_openml).copy().items():
        if isinstance(value, str) and value.startswith("https://"):
            monkeypatch.setattr(_openml, name, server.address + "/" + value.split("/", 3)[3])
    monkeypatch.setattr(time, "sleep", lambda _: None)  # between two tries
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()


@pytest.fixture
def bare(monkeypatch, tmp_path, server):
    """A machine without a folder of data, with an empty cache, and with a server that has nothing; the cache."""
    monkeypatch.delenv("KERNELWEAVE_DATA", raising=False)
    monkeypatch.setenv("KERNELWEAVE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
