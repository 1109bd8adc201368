"""Makes processes, then threads, until no more can be had; sees that what there is keeps working."""
import json, os, signal, sys, threading, time

MOST = int(sys.stdin.read() or 128)
children, succeeded, refused = [], [], None
for _ in range(MOST * 4):
    try:
        pid = os.fork()
    except OSError as error:
        refused = error.errno
        break
    if pid == 0:
        while True:
            signal.pause()
    children.append(pid)
if refused is None or len(children) >= MOST:
    succeeded.append(f"{len(children)} processes")
for pid in children:
    os.kill(pid, signal.SIGKILL)
for pid in children:
    os.waitpid(pid, 0)
stop, threads = threading.Event(), []
try:
    for _ in range(MOST * 4):
        thread = threading.Thread(target=stop.wait)
        thread.start()
        threads.append(thread)
    succeeded.append(f"{len(threads)} threads")
except RuntimeError:
    pass
stop.set()
print(json.dumps({"succeeded": succeeded, "processes": len(children), "errno": refused, "threads": len(threads)}))
