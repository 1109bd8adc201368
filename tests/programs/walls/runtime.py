#!/usr/bin/env python3
"""An OCI runtime before runc: what an image asks for by its environment gets a file and the memory of the host, as a graphics
card's runtime hands out devices and drivers."""
import json, os, sys

arguments = sys.argv[1:]
if "create" in arguments and "--bundle" in arguments:
    path = os.path.join(arguments[arguments.index("--bundle") + 1], "config.json")
    with open(path) as file:
        config = json.load(file)
    if "SANDTRAY_TEST_DEVICES=all" in config["process"]["env"]:
        bind = {"destination": "/dev/extra", "type": "bind", "source": "/etc/machine-id", "options": ["bind", "ro"]}
        memory = {"path": "/dev/mem0", "type": "c", "major": 1, "minor": 1, "fileMode": 0o666, "uid": 0, "gid": 0}
        config["mounts"].append(bind)
        config["linux"].setdefault("devices", []).append(memory)
        with open(path, "w") as file:
            json.dump(config, file)
os.execvp("runc", ["runc", *arguments])
