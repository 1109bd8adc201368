#!/usr/bin/env python3
"""Owns: putting an image into a registry over its HTTP API, without any engine.

Usage: push.py REGISTRY_URL REPOSITORY TAG[,TAG...] ARCHITECTURE CONFIG_JSON LAYER.tar.gz...

CONFIG_JSON is the image's run-time config, e.g. {"Env": ["A=b"], "Cmd": ["sh"]}. Only the standard library is used.
"""

import datetime
import hashlib
import http.client
import json
import os
import sys
import urllib.parse
import zlib

DOCKER = "application/vnd.docker."
TIMEOUT_SECONDS = 60


class Registry:
    def __init__(self, url, repository):
        self.address = urllib.parse.urlsplit(url).netloc
        self.base = f"/v2/{repository}"

    def request(self, method, path, expected, body=None, headers=None):
        """One request on a connection of its own. Returns the response's headers, or None for a 404 to a HEAD."""
        connection = http.client.HTTPConnection(self.address, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            response = connection.getresponse()
            text = response.read()
            if response.status == 404 and method == "HEAD":
                return None
            if response.status != expected:
                sys.exit(f"push.py: {method} {path}: {response.status} {text[:500]!r}")
            return response.headers
        finally:
            connection.close()

    def put_blob(self, digest, size, open_body):
        if self.request("HEAD", f"{self.base}/blobs/{digest}", 200) is not None:
            return
        started = self.request("POST", f"{self.base}/blobs/uploads/", 202, headers={"Content-Length": "0"})
        where = urllib.parse.urlsplit(started["Location"])
        path = f"{where.path}?{where.query + '&' if where.query else ''}digest={urllib.parse.quote(digest)}"
        with open_body() as body:
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
            self.request("PUT", path, 201, body=body, headers=headers)

    def put_json(self, document):
        data = json.dumps(document, sort_keys=True).encode()
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        self.put_blob(digest, len(data), lambda: BytesBody(data))
        return {"digest": digest, "size": len(data)}


class BytesBody:
    """Bytes as a context manager, so that put_blob treats them like an open file."""

    def __init__(self, data):
        self.data = data

    def __enter__(self):
        return self.data

    def __exit__(self, *_):
        pass


def digests(path):
    """The digest of the compressed file, and of the tar inside (the layer's diff id)."""
    packed, unpacked, gunzip = hashlib.sha256(), hashlib.sha256(), zlib.decompressobj(wbits=31)
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            packed.update(chunk)
            unpacked.update(gunzip.decompress(chunk))
    unpacked.update(gunzip.flush())
    if not gunzip.eof:
        sys.exit(f"push.py: {path}: the gzip stream is cut short")
    return "sha256:" + packed.hexdigest(), "sha256:" + unpacked.hexdigest()


def main(url, repository, tags, architecture, config, *paths):
    registry = Registry(url, repository)
    layers, diff_ids = [], []
    for path in paths:
        digest, diff_id = digests(path)
        size = os.path.getsize(path)
        registry.put_blob(digest, size, lambda path=path: open(path, "rb"))
        layers.append({"mediaType": DOCKER + "image.rootfs.diff.tar.gzip", "digest": digest, "size": size})
        diff_ids.append(diff_id)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    image = {
        "architecture": architecture,
        "os": "linux",
        "created": now,
        "config": json.loads(config),
        "rootfs": {"type": "layers", "diff_ids": diff_ids},
        "history": [{"created": now, "created_by": os.path.basename(path)} for path in paths],
    }
    kind = DOCKER + "distribution.manifest.v2+json"
    manifest = {
        "schemaVersion": 2,
        "mediaType": kind,
        "config": {"mediaType": DOCKER + "container.image.v1+json", **registry.put_json(image)},
        "layers": layers,
    }
    for tag in tags.split(","):
        body = json.dumps(manifest).encode()
        registry.request("PUT", f"{registry.base}/manifests/{tag}", 201, body=body, headers={"Content-Type": kind})


if __name__ == "__main__":
    if len(sys.argv) < 7:
        sys.exit(__doc__)
    main(*sys.argv[1:])
