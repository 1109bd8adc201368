//! The line to the app is the program's standard input and output. What a browser starts inherits those two: so they are taken away
//! first, and nothing that WebKit starts has an end of the line.

use std::io;

#[cfg(unix)]
pub(crate) fn take() -> io::Result<(std::fs::File, std::fs::File)> {
    use rustix::io::fcntl_dupfd_cloexec;
    use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};
    /// Behind the three that every program has.
    const FIRST: i32 = 3;
    let input = fcntl_dupfd_cloexec(stdin(), FIRST)?;
    let output = fcntl_dupfd_cloexec(stdout(), FIRST)?;
    dup2_stdin(std::fs::File::open("/dev/null")?)?;
    // What a library prints is for whoever reads complaints.
    dup2_stdout(stderr())?;
    Ok((input.into(), output.into()))
}

/// Windows hands down only what it is told to.
#[cfg(windows)]
pub(crate) fn take() -> io::Result<(io::Stdin, io::Stdout)> {
    Ok((io::stdin(), io::stdout()))
}
