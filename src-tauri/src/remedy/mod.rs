//! How to fix an engine's trouble, in words for a person who may not know Docker, with the commands of this system.
//! Pure, except that the system is read once.

pub(crate) mod links;
mod makers;
pub(crate) mod system;

use sandtray_core::engine::{Endpoint, EngineTrouble, NamedBy, Unfit};

use crate::dto::snapshot::EndpointView;
use crate::dto::trouble::{Link, LinkView, NamedView, StepView, TroubleKind, TroubleView};
use makers::{Act, Maker};
use system::{Family, System};

/// Shown when Docker has to be installed.
const WHAT_DOCKER_IS: &str = "Docker is a program that runs other programs in containers: closed rooms with none of your files and \
    no network. Sandtray needs it to run what agents send.";
/// Shown before the owner joins the group, which gives as many rights as the administrator's password.
const WHAT_THE_GROUP_MEANS: &str = "A member of this group can get all rights on this computer (root), and so can every program \
    that the member starts. Where that is too much, Docker can also run without those rights.";
/// Longest host name that is put into a command.
const MAX_HOST: usize = 200;

pub(crate) fn view(trouble: &EngineTrouble, system: System) -> TroubleView {
    let endpoint = trouble.endpoint();
    let named = endpoint.and_then(named);
    let (kind, text, mut steps) = match trouble {
        EngineTrouble::Absent { .. } => (TroubleKind::Absent, absent(), install(system)),
        EngineTrouble::NotRunning { endpoint } => {
            (TroubleKind::NotRunning, not_running(endpoint), start(endpoint, system))
        }
        EngineTrouble::PermissionDenied { endpoint } => {
            (TroubleKind::PermissionDenied, denied(endpoint), admit(endpoint, system))
        }
        EngineTrouble::NotAnswering { endpoint } => {
            (TroubleKind::NotAnswering, not_answering(endpoint), restart(endpoint, system))
        }
        EngineTrouble::Unusable { endpoint, unfit, reason } => {
            (TroubleKind::Unusable, unusable(*unfit, reason), make_fit(*unfit, endpoint, system))
        }
        EngineTrouble::WallMissing { wall, image, .. } => (
            TroubleKind::WallMissing,
            wall_missing(wall, image),
            update(system, "Or choose another engine or another image:"),
        ),
    };
    // A named address has its own link to Settings.
    steps.retain(|step| !step.setting || named.is_none());
    let looked_at = if let EngineTrouble::Absent { looked_at } = trouble { looked_at.clone() } else { Vec::new() };
    TroubleView {
        trouble: kind,
        title: trouble.summary(),
        text,
        steps,
        named,
        endpoint: endpoint.map(|at| EndpointView { url: at.url.clone(), found: at.found.clone() }),
        looked_at,
    }
}

fn says(text: impl Into<String>) -> StepView {
    StepView { text: text.into(), ..StepView::default() }
}

fn copies(text: impl Into<String>, command: impl Into<String>) -> StepView {
    StepView { copy: Some(command.into()), ..says(text) }
}

fn leads(text: impl Into<String>, link: LinkView) -> StepView {
    StepView { link: Some(link), ..says(text) }
}

/// A step with a link to the engine's setting.
fn chooses(text: impl Into<String>) -> StepView {
    StepView { setting: true, ..says(text) }
}

fn absent() -> String {
    format!("Docker wasn't found on this computer. {WHAT_DOCKER_IS}")
}

fn install(system: System) -> Vec<StepView> {
    let command = match system.family {
        Family::Debian => Some("sudo apt-get install docker.io"),
        Family::Fedora => Some("sudo dnf install moby-engine"),
        Family::Arch => Some("sudo pacman -S docker"),
        Family::Suse => Some("sudo zypper install docker"),
        Family::MacOs => Some("brew install --cask docker-desktop"),
        Family::Windows => Some("winget install --exact --id Docker.DockerDesktop"),
        Family::Linux => None,
    };
    let words = match system.family {
        Family::MacOs => "Install it with Homebrew:",
        Family::Windows => "Install it, in a window of PowerShell:",
        Family::Debian | Family::Fedora | Family::Arch | Family::Suse | Family::Linux => "Install it, in a terminal:",
    };
    // On the other systems Docker starts by itself.
    let start = match system.family {
        Family::Fedora | Family::Arch | Family::Suse => Some("sudo systemctl enable --now docker"),
        Family::Debian | Family::Linux | Family::MacOs | Family::Windows => None,
    };
    let guide = match command {
        Some(_) => "Or follow Docker's own guide:",
        None => "Docker's own guide says how to install it:",
    };
    let commands = command.map(|command| copies(words, command)).into_iter();
    commands
        .chain(start.map(|command| copies("Then start it, now and with the computer:", command)))
        .chain([leads(guide, Link::InstallDocker.view("Open the guide"))])
        .collect()
}

fn not_running(endpoint: &Endpoint) -> String {
    let name = endpoint.engine_name();
    match endpoint.named_by() {
        Some(_) => format!("Nothing listens at the address where Sandtray was told to find {name}."),
        None => format!(
            "{name} is installed on this computer, and it isn't running. It runs the programs that agents send."
        ),
    }
}

fn start(endpoint: &Endpoint, system: System) -> Vec<StepView> {
    let name = endpoint.engine_name();
    match Maker::of(endpoint, system).start(system) {
        Some(Act::Typed(command)) => vec![copies(format!("Start {name}, in a terminal:"), command)],
        Some(Act::Words(words)) => vec![says(words)],
        None if endpoint.named_by().is_some() => vec![says("Start the engine there, or change the address.")],
        None => vec![says(format!("Start {name}."))],
    }
}

fn denied(endpoint: &Endpoint) -> String {
    let name = endpoint.engine_name();
    format!("{name} is there, and your user account may not use it, so Sandtray may not either.")
}

fn admit(endpoint: &Endpoint, system: System) -> Vec<StepView> {
    match Maker::of(endpoint, system) {
        Maker::Docker => vec![
            copies("Add yourself to the group docker, then log out and in again:", "sudo usermod -aG docker \"$USER\""),
            leads(WHAT_THE_GROUP_MEANS, Link::RootlessDocker.view("Docker without those rights")),
        ],
        Maker::DockerDesktop if system.family == Family::Windows => vec![copies(
            "As an administrator, add yourself to the group docker-users, then log out and in again:",
            "net localgroup docker-users \"%USERNAME%\" /add",
        )],
        Maker::Podman => vec![copies(
            "Podman also runs for you alone, without an administrator's rights. Start that, in a terminal:",
            "systemctl --user enable --now podman.socket",
        )],
        Maker::DockerDesktop
        | Maker::RootlessDocker
        | Maker::RootlessPodman
        | Maker::PodmanMachine
        | Maker::Colima
        | Maker::OrbStack
        | Maker::RancherDesktop
        | Maker::Unknown => {
            vec![says("Ask the owner of that address, or this computer's administrator, to let you use it.")]
        }
    }
}

fn not_answering(endpoint: &Endpoint) -> String {
    let name = endpoint.engine_name();
    format!("{name} takes calls and doesn't answer them. It may be starting, or it hangs.")
}

fn restart(endpoint: &Endpoint, system: System) -> Vec<StepView> {
    let name = endpoint.engine_name();
    match Maker::of(endpoint, system).restart(system) {
        Some(Act::Typed(command)) => {
            vec![copies(format!("If that lasts longer than a minute, start {name} again, in a terminal:"), command)]
        }
        Some(Act::Words(words)) => vec![says(format!("If that lasts longer than a minute: {words}"))],
        None => vec![says("If that lasts longer than a minute, start the engine at that address again.")],
    }
}

fn unusable(unfit: Unfit, reason: &str) -> String {
    match unfit {
        Unfit::Ssh => "Its address leads over SSH, and Sandtray doesn't connect over SSH by itself.".into(),
        Unfit::Tls => "Its address needs TLS, and Sandtray doesn't speak TLS to an engine.".into(),
        Unfit::Elsewhere => {
            "Its address is another computer's. Programs, inputs and results would go there unencrypted, so \
            Sandtray uses such an address only where its own settings name it."
                .into()
        }
        Unfit::OtherSystem => "It runs containers of Windows, and the programs of agents need Linux.".into(),
        Unfit::Address | Unfit::TooOld | Unfit::Other => {
            sentence(reason.strip_prefix("it is too old: ").unwrap_or(reason))
        }
    }
}

fn make_fit(unfit: Unfit, endpoint: &Endpoint, system: System) -> Vec<StepView> {
    match unfit {
        Unfit::Ssh => vec![
            copies("Lead its socket to this computer, in a terminal that stays open:", forward(&endpoint.url)),
            copies("Then give Sandtray this address instead:", "unix:///tmp/docker.sock"),
        ],
        Unfit::Tls => {
            vec![says("Choose the socket of an engine on this computer, or run Sandtray where that engine is.")]
        }
        Unfit::Elsewhere => {
            vec![says("If you mean it, enter that address in Settings. If not, choose an engine on this computer.")]
        }
        Unfit::Address => vec![says("Correct the address. It is most often `unix:///var/run/docker.sock`.")],
        Unfit::TooOld => update(system, "Or choose another engine:"),
        Unfit::OtherSystem => {
            vec![says("Choose Switch to Linux containers in the menu of Docker Desktop, the whale beside the clock.")]
        }
        Unfit::Other if endpoint.named_by().is_some() => vec![says("Update the engine, or choose another one.")],
        Unfit::Other => vec![chooses("Update the engine, or choose another one:")],
    }
}

/// The command that forwards a socket of the host in this address to this computer.
fn forward(url: &str) -> String {
    let host = url.strip_prefix("ssh://").unwrap_or_default();
    let host = host.split('/').next().unwrap_or_default();
    // `ssh` takes a host that begins with `-` for an option.
    let is_plain = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text.len() <= MAX_HOST
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '@' | '.' | '-' | '_'))
    };
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) && !port.is_empty() => (host, Some(port)),
        Some(_) | None => (host, None),
    };
    let host = if is_plain(host) { host } else { "HOST" };
    let port = port.map(|port| format!("-p {port} ")).unwrap_or_default();
    format!("ssh {port}-N -L /tmp/docker.sock:/var/run/docker.sock {host}")
}

fn wall_missing(wall: &str, image: &str) -> String {
    format!(
        "A wall that keeps programs of the image `{image}` in is missing here: {wall}. Sandtray runs nothing where a program \
         could get out or take more than it may."
    )
}

fn update(system: System, otherwise: &str) -> Vec<StepView> {
    let command = match system.family {
        Family::Debian => Some("sudo apt-get update && sudo apt-get install docker.io"),
        Family::Fedora => Some("sudo dnf upgrade moby-engine"),
        Family::Arch => Some("sudo pacman -Syu docker"),
        Family::Suse => Some("sudo zypper update docker"),
        Family::Linux | Family::MacOs | Family::Windows => None,
    };
    let guide = leads("Or install the latest Docker by its own guide:", Link::InstallDocker.view("Open the guide"));
    let update = command.map(|command| copies("Update Docker, in a terminal:", command));
    update.into_iter().chain([guide, chooses(otherwise)]).collect()
}

/// Where the address comes from and how to change it, if it was configured.
fn named(endpoint: &Endpoint) -> Option<NamedView> {
    let text = match endpoint.named_by()? {
        NamedBy::Settings => "The address is from Sandtray's settings, under Engine:".into(),
        NamedBy::Variable => {
            "The address is from the variable DOCKER_HOST of your session. One that you enter in Settings goes before it:".into()
        }
        NamedBy::Context(name) => {
            format!("The address is from the Docker context {name}. One that you enter in Settings goes before it:")
        }
    };
    Some(NamedView { url: endpoint.url.clone(), text })
}

/// Turns the end of another sentence into a sentence.
fn sentence(words: &str) -> String {
    let mut letters = words.trim().trim_end_matches('.').chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests;
