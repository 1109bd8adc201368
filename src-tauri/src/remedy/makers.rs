//! The product that an engine's address belongs to, and how to start and restart it.

use sandtray_core::engine::Endpoint;

use super::system::{Family, System};

const DEFAULT_SOCKET: &str = "unix:///var/run/docker.sock";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// The system's own Docker service.
    Docker,
    DockerDesktop,
    RootlessDocker,
    Podman,
    RootlessPodman,
    PodmanMachine,
    Colima,
    OrbStack,
    RancherDesktop,
    Unknown,
}

/// An action: as a command if there is one, otherwise in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Act {
    Typed(String),
    Words(&'static str),
}

impl Maker {
    pub(super) fn of(endpoint: &Endpoint, system: System) -> Self {
        match endpoint.found.as_str() {
            "Docker Desktop" => Self::DockerDesktop,
            "rootless Docker" => Self::RootlessDocker,
            "Podman" => Self::Podman,
            "rootless Podman" => Self::RootlessPodman,
            "Podman machine" => Self::PodmanMachine,
            "Colima" => Self::Colima,
            "OrbStack" => Self::OrbStack,
            "Rancher Desktop" => Self::RancherDesktop,
            "the default socket" | "the default pipe" => Self::default_of(system),
            _ if endpoint.url == DEFAULT_SOCKET => Self::default_of(system),
            _ => Self::Unknown,
        }
    }

    fn default_of(system: System) -> Self {
        if system.is_linux() { Self::Docker } else { Self::DockerDesktop }
    }

    pub(super) fn start(self, system: System) -> Option<Act> {
        let command = |text: &str| Some(Act::Typed(text.into()));
        match (self, system.family) {
            (Self::Docker, _) if system.systemd => command("sudo systemctl start docker"),
            (Self::Docker, _) => command("sudo service docker start"),
            (Self::DockerDesktop, Family::MacOs) => command("open -a Docker"),
            (Self::DockerDesktop, Family::Windows) => Some(Act::Words("Open Docker Desktop from the Start menu.")),
            (Self::DockerDesktop, _) => command("systemctl --user start docker-desktop"),
            (Self::RootlessDocker, _) => command("systemctl --user start docker"),
            (Self::Podman, _) => command("sudo systemctl start podman.socket"),
            (Self::RootlessPodman, _) => command("systemctl --user start podman.socket"),
            (Self::PodmanMachine, _) => command("podman machine start"),
            (Self::Colima, _) => command("colima start"),
            (Self::OrbStack, _) => command("orb start"),
            (Self::RancherDesktop, _) => command("rdctl start"),
            (Self::Unknown, _) => None,
        }
    }

    pub(super) fn restart(self, system: System) -> Option<Act> {
        let command = |text: &str| Some(Act::Typed(text.into()));
        match (self, system.family) {
            (Self::Docker, _) if system.systemd => command("sudo systemctl restart docker"),
            (Self::Docker, _) => command("sudo service docker restart"),
            (Self::DockerDesktop, Family::MacOs) => {
                Some(Act::Words("Press the whale at the top of the screen and choose Restart."))
            }
            (Self::DockerDesktop, Family::Windows) => {
                Some(Act::Words("Press the whale beside the clock with the right button and choose Restart."))
            }
            (Self::DockerDesktop, _) => command("systemctl --user restart docker-desktop"),
            (Self::RootlessDocker, _) => command("systemctl --user restart docker"),
            (Self::Podman, _) => command("sudo systemctl restart podman.socket podman.service"),
            (Self::RootlessPodman, _) => command("systemctl --user restart podman.socket podman.service"),
            (Self::PodmanMachine, _) => command("podman machine stop; podman machine start"),
            (Self::Colima, _) => command("colima restart"),
            (Self::OrbStack, _) => command("orb restart docker"),
            (Self::RancherDesktop, _) => command("rdctl shutdown; rdctl start"),
            (Self::Unknown, _) => None,
        }
    }
}
