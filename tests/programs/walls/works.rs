use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

fn main() {
    assert_eq!(Command::new("echo").arg("hi").output().unwrap().stdout, b"hi\n");
    let threads: Vec<_> = (0..8).map(|i| thread::spawn(move || i)).collect();
    assert_eq!(threads.into_iter().map(|t| t.join().unwrap()).sum::<i32>(), 28);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || listener.accept().unwrap().0.write_all(b"x").unwrap());
    let mut byte = [0];
    TcpStream::connect(address).unwrap().read_exact(&mut byte).unwrap();
    server.join().unwrap();
    std::fs::copy("main.rs", "copy.rs").unwrap();
    println!("works");
}
