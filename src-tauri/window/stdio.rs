//! Takes the pipes to the app off standard input and output. Child processes of WebKit inherit those two, so they are
//! replaced first, and no child process has an end of the pipes.

use std::io;

#[cfg(unix)]
pub(crate) fn take() -> io::Result<(std::fs::File, std::fs::File)> {
    use rustix::io::fcntl_dupfd_cloexec;
    use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};
    /// The first descriptor after the standard ones.
    const FIRST: i32 = 3;
    let input = fcntl_dupfd_cloexec(stdin(), FIRST)?;
    let output = fcntl_dupfd_cloexec(stdout(), FIRST)?;
    dup2_stdin(std::fs::File::open("/dev/null")?)?;
    // Output of libraries goes to stderr.
    dup2_stdout(stderr())?;
    Ok((input.into(), output.into()))
}

/// On Windows child processes inherit only handles that are passed to them.
#[cfg(windows)]
pub(crate) fn take() -> io::Result<(io::Stdin, io::Stdout)> {
    Ok((io::stdin(), io::stdout()))
}
