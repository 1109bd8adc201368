//! The kind of this system, as far as the commands that fix an engine differ.

use std::path::Path;
use std::sync::OnceLock;

use sandtray_core::disk;

const OS_RELEASE: &str = "/etc/os-release";
/// Most bytes read of `/etc/os-release`, which has a few hundred.
const MAX_OS_RELEASE: u64 = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Debian, Ubuntu and their derivatives.
    Debian,
    Fedora,
    Arch,
    Suse,
    /// A Linux whose package manager is not known here.
    Linux,
    MacOs,
    Windows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct System {
    pub(crate) family: Family,
    /// Whether services are started with `systemctl`.
    pub(crate) systemd: bool,
}

impl System {
    /// This system, read once.
    pub(crate) fn here() -> Self {
        static HERE: OnceLock<System> = OnceLock::new();
        *HERE.get_or_init(|| {
            let family = if cfg!(target_os = "macos") {
                Family::MacOs
            } else if cfg!(windows) {
                Family::Windows
            } else {
                let text = disk::read_bounded(Path::new(OS_RELEASE), MAX_OS_RELEASE).ok().flatten().unwrap_or_default();
                Family::of_linux(&String::from_utf8_lossy(&text))
            };
            Self { family, systemd: Path::new("/run/systemd/system").is_dir() }
        })
    }

    pub(crate) fn is_linux(self) -> bool {
        !matches!(self.family, Family::MacOs | Family::Windows)
    }
}

impl Family {
    /// The family by the text of `/etc/os-release`.
    fn of_linux(text: &str) -> Self {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_default().trim().trim_matches(['"', '\'']).to_lowercase()
        };
        let (id, like) = (value("ID"), value("ID_LIKE"));
        let is = |name: &str| id == name || like.split_whitespace().any(|other| other == name);
        if is("debian") || is("ubuntu") {
            Self::Debian
        // These resemble Fedora, but their repositories have no Docker.
        } else if is("rhel") || is("centos") {
            Self::Linux
        } else if is("fedora") {
            Self::Fedora
        } else if is("arch") {
            Self::Arch
        } else if is("suse") || id.starts_with("opensuse") {
            Self::Suse
        } else {
            Self::Linux
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_known_by_its_own_name_or_by_what_it_is_like() {
        for (text, family) in [
            ("PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n", Family::Debian),
            ("ID=ubuntu\nID_LIKE=debian\n", Family::Debian),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", Family::Debian),
            ("ID=fedora\n", Family::Fedora),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", Family::Linux),
            ("ID=arch\n", Family::Arch),
            ("ID=manjaro\nID_LIKE=arch\n", Family::Arch),
            ("ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n", Family::Suse),
            ("ID=nixos\n", Family::Linux),
            ("", Family::Linux),
        ] {
            assert_eq!(Family::of_linux(text), family, "{text}");
        }
    }
}
