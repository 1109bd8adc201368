//! The autostart entry (`autostart/*.desktop`) for Linux desktops.

use std::path::Path;
use std::{fs, io};

use super::QUIETLY;

const FILE: &str = "sandtray.desktop";

/// Writes or removes the entry. `settings` is the owner's configuration folder, usually `~/.config`.
pub(super) fn set(settings: &Path, program: &Path, wanted: bool) -> io::Result<()> {
    let folder = settings.join("autostart");
    if wanted {
        fs::create_dir_all(&folder)?;
        return sandtray_core::disk::write_atomically(&folder.join(FILE), text(program)?.as_bytes());
    }
    match fs::remove_file(folder.join(FILE)) {
        Err(failure) if failure.kind() != io::ErrorKind::NotFound => Err(failure),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn text(program: &Path) -> io::Result<String> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "the program's own path cannot be written down");
    let program = program.to_str().filter(|path| !path.contains(char::is_control)).ok_or_else(wrong)?;
    Ok(format!(
        "[Desktop Entry]\nType=Application\nName=Sandtray\nComment=Runs agents' code in throw-away containers\n\
         Exec={} {QUIETLY}\nTerminal=false\nStartupNotify=false\n",
        quoted(program)
    ))
}

/// Quotes a path for `Exec=` by the desktop entry specification: for the shell, then for the file; `%` is doubled.
fn quoted(path: &str) -> String {
    let mut out = String::from("\"");
    for character in path.chars() {
        match character {
            '"' | '`' | '$' => out.extend(["\\\\", character.encode_utf8(&mut [0; 4])]),
            '\\' => out.push_str("\\\\\\\\"),
            '%' => out.push_str("%%"),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtray_core::settings::Settings;

    #[test]
    fn it_is_off_until_the_owner_wants_it() {
        assert!(!Settings::default().start_at_login);
    }

    #[test]
    fn an_entry_names_the_program_and_goes_again() {
        let home = tempfile::tempdir().unwrap();
        let settings = home.path().join("config");
        let file = settings.join("autostart/sandtray.desktop");
        // A missing entry is not an error.
        set(&settings, Path::new("/usr/bin/sandtray-app"), false).unwrap();
        assert!(!settings.exists());
        for _ in 0..2 {
            set(&settings, Path::new("/usr/bin/sandtray-app"), true).unwrap();
        }
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "[Desktop Entry]\nType=Application\nName=Sandtray\nComment=Runs agents' code in throw-away containers\n\
             Exec=\"/usr/bin/sandtray-app\" --background\nTerminal=false\nStartupNotify=false\n"
        );
        let others = settings.join("autostart/other.desktop");
        fs::write(&others, "").unwrap();
        set(&settings, Path::new("/usr/bin/sandtray-app"), false).unwrap();
        assert!(!file.exists() && others.exists(), "only its own entry goes");
    }

    #[test]
    fn a_path_is_quoted_as_the_standard_says() {
        assert_eq!(quoted("/home/ada/My Apps/sandtray"), "\"/home/ada/My Apps/sandtray\"");
        assert_eq!(quoted(r#"/a"b`c$d\e%f"#), r#""/a\\"b\\`c\\$d\\\\e%%f""#);
        assert!(text(Path::new("/tmp/two\nlines")).is_err());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_said() {
        let home = tempfile::tempdir().unwrap();
        let settings = home.path().join("config");
        fs::write(&settings, "a file, not a folder").unwrap();
        assert!(set(&settings, Path::new("/usr/bin/sandtray-app"), true).is_err());
    }
}
