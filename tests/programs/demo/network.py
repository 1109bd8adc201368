import socket

for host in ("1.1.1.1", "example.org"):
    try:
        socket.create_connection((host, 80), timeout=3)
        print(host, "was reached")
    except OSError as error:
        print(f"{host}: {error}")
