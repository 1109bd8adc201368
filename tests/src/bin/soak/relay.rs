//! The way from the engine's own network to the machine's registry: a port in there, a socket in the file system, a port out here.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// In the engine's network. Never returns.
pub(crate) async fn inside(port: u16, socket: &Path) {
    let up = tokio::process::Command::new("ip").args(["link", "set", "lo", "up"]).stdin(Stdio::null()).status().await;
    assert!(up.unwrap().success(), "the engine's network has no loopback");
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    loop {
        let (near, _) = listener.accept().await.unwrap();
        let far = UnixStream::connect(socket).await;
        tokio::spawn(join(near, far));
    }
}

/// On the machine. Never returns.
pub(crate) async fn outside(socket: &Path, registry: String) {
    let listener = UnixListener::bind(socket).unwrap();
    loop {
        let (near, _) = listener.accept().await.unwrap();
        let registry = registry.clone();
        tokio::spawn(async move { join(near, TcpStream::connect(registry).await).await });
    }
}

/// An end of either side is the end of both; the engine sees it as an end of the registry's.
async fn join<A, B>(mut near: A, far: std::io::Result<B>)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    if let Ok(mut far) = far {
        let _ = copy_bidirectional(&mut near, &mut far).await;
    }
}
