"""Fit and save a model, load it elsewhere, and answer requests with it: nothing but the standard library serves."""

import json
import tempfile
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_iris

from kernelweave import LapSVMClassifier, SemiSupervisedCalibration, load, save


def train(path: Path) -> None:
    """Fit to 30 labels of 150, with probabilities from held-out rows, and save."""
    flowers, species = load_iris(return_X_y=True)
    y = np.where(np.arange(len(flowers)) % 5 == 0, species, -1)
    save(SemiSupervisedCalibration(LapSVMClassifier(random_state=0), random_state=0).fit(flowers, y), path)


def handler(model: Any) -> type[BaseHTTPRequestHandler]:
    """Return a handler that answers rows in JSON by their classes and probabilities."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            rows = np.array(json.loads(self.rfile.read(int(self.headers["Content-Length"]))), dtype=float)
            answer = {"classes": model.predict(rows).tolist(), "probabilities": model.predict_proba(rows).tolist()}
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing for each request."""

    return Handler


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "iris.skops"
        train(path)
        model = load(path)  # the file holds data, no code
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(model)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        request = urllib.request.Request(
            f"http://127.0.0.1:{server.server_port}", data=json.dumps([[5.1, 3.5, 1.4, 0.2]]).encode()
        )
        with urllib.request.urlopen(request) as reply:
            print(json.load(reply))
        server.shutdown()


if __name__ == "__main__":
    main()
