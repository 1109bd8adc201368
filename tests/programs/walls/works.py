import asyncio, concurrent.futures, http.server, mmap, multiprocessing, os, sqlite3, subprocess, tempfile, threading, urllib.request

threads = [threading.Thread(target=lambda: None) for _ in range(30)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert subprocess.run(["echo", "hi"], capture_output=True).stdout == b"hi\n"


async def loop():
    child = await asyncio.create_subprocess_exec("echo", "x", stdout=asyncio.subprocess.PIPE)
    assert (await child.communicate())[0] == b"x\n"
    assert await asyncio.to_thread(lambda: 7) == 7


asyncio.run(loop())
database = sqlite3.connect("/sandbox/a.db")
database.execute("pragma journal_mode = delete")
database.execute("create table t (a)")
database.execute("insert into t values (1)")
database.commit()
assert database.execute("select a from t").fetchall() == [(1,)]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
threading.Thread(target=server.serve_forever, daemon=True).start()
assert urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").status == 200
child = multiprocessing.Process(target=os.getpid)
child.start()
child.join()
assert child.exitcode == 0
try:
    # Wants a semaphore in /dev/shm, which is not there: it says so, and hangs nobody.
    multiprocessing.Lock()
    raise AssertionError("there is a /dev/shm")
except FileNotFoundError:
    pass
with concurrent.futures.ThreadPoolExecutor() as pool:
    assert list(pool.map(abs, [-1, -2])) == [1, 2]
with tempfile.TemporaryFile() as file:
    file.truncate(4096)
    mmap.mmap(file.fileno(), 4096)[0:1] = b"x"
os.mkfifo("/sandbox/fifo")
print("works")
