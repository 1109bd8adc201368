//! Every trouble on every system, as its owner reads it.

use super::*;

const SYSTEMS: [Family; 7] =
    [Family::Debian, Family::Fedora, Family::Arch, Family::Suse, Family::Linux, Family::MacOs, Family::Windows];

fn at(url: &str, found: &str) -> Endpoint {
    Endpoint { url: url.into(), found: found.into() }
}

fn socket() -> Endpoint {
    at("unix:///var/run/docker.sock", "the default socket")
}

fn on(family: Family) -> System {
    System { family, systemd: true }
}

fn of(trouble: EngineTrouble, family: Family) -> TroubleView {
    view(&trouble, on(family))
}

fn commands(view: &TroubleView) -> Vec<&str> {
    view.steps.iter().filter_map(|step| step.copy.as_deref()).collect()
}

fn links(view: &TroubleView) -> Vec<Link> {
    view.steps.iter().filter_map(|step| step.link.as_ref()).map(|link| link.link).collect()
}

/// One of each kind at each of these places.
fn troubles() -> Vec<EngineTrouble> {
    let places = [
        socket(),
        at("unix:///home/ada/.docker/desktop/docker.sock", "Docker Desktop"),
        at("unix:///run/user/1000/podman/podman.sock", "rootless Podman"),
        at("unix:///nowhere.sock", "Sandtray's settings"),
        at("tcp://10.0.0.1:2375", "DOCKER_HOST"),
        at("ssh://ada@lab", "the Docker context lab"),
    ];
    let kinds = |endpoint: Endpoint| {
        let unfit =
            [Unfit::Address, Unfit::Ssh, Unfit::Tls, Unfit::Elsewhere, Unfit::TooOld, Unfit::OtherSystem, Unfit::Other];
        let here = endpoint.clone();
        let unusable = unfit.into_iter().map(move |unfit| EngineTrouble::Unusable {
            endpoint: here.clone(),
            unfit,
            reason: "it says that itself, in so many words".into(),
        });
        unusable.chain([
            EngineTrouble::NotRunning { endpoint: endpoint.clone() },
            EngineTrouble::PermissionDenied { endpoint: endpoint.clone() },
            EngineTrouble::NotAnswering { endpoint: endpoint.clone() },
            EngineTrouble::WallMissing { endpoint, image: "python:3.12-slim".into(), wall: "no network".into() },
        ])
    };
    places.into_iter().flat_map(kinds).chain([EngineTrouble::Absent { looked_at: vec!["unix:///x".into()] }]).collect()
}

#[test]
fn each_trouble_has_a_short_title_a_sentence_and_a_step_on_every_system() {
    for family in SYSTEMS {
        for trouble in troubles() {
            let shown = of(trouble.clone(), family);
            assert!(shown.title.len() <= 40 && !shown.title.contains([':', '`', '.']), "{}", shown.title);
            assert!(shown.text.ends_with('.') && shown.text.len() > 20, "{}", shown.text);
            assert!(!shown.steps.is_empty(), "{trouble:?}");
            for step in &shown.steps {
                assert!(step.text.ends_with(['.', ':']), "{}", step.text);
                let follows = step.copy.is_some() || step.link.is_some() || step.setting;
                assert!(follows || step.text.ends_with('.'), "nothing follows {}", step.text);
            }
            let own = trouble.endpoint().is_some_and(|endpoint| endpoint.named_by().is_some());
            assert_eq!(shown.named.is_some(), own, "an address that was written down is shown, and only that");
        }
    }
}

#[test]
fn what_is_not_installed_is_explained_and_installed_with_the_systems_own_command() {
    let absent = |family| of(EngineTrouble::Absent { looked_at: Vec::new() }, family);
    for (family, command) in [
        (Family::Debian, &["sudo apt-get install docker.io"][..]),
        (Family::Fedora, &["sudo dnf install moby-engine", "sudo systemctl enable --now docker"]),
        (Family::Arch, &["sudo pacman -S docker", "sudo systemctl enable --now docker"]),
        (Family::Suse, &["sudo zypper install docker", "sudo systemctl enable --now docker"]),
        (Family::MacOs, &["brew install --cask docker-desktop"]),
        (Family::Windows, &["winget install --exact --id Docker.DockerDesktop"]),
        (Family::Linux, &[]),
    ] {
        let shown = absent(family);
        assert_eq!(commands(&shown), command, "{family:?}");
        assert_eq!(links(&shown), [Link::InstallDocker]);
        assert!(shown.text.contains("closed rooms with none of your files"), "{}", shown.text);
    }
}

#[test]
fn the_group_is_offered_with_what_it_means() {
    let shown = of(EngineTrouble::PermissionDenied { endpoint: socket() }, Family::Debian);
    assert_eq!(commands(&shown), ["sudo usermod -aG docker \"$USER\""]);
    assert!(shown.steps.iter().any(|step| step.text.contains("all rights on this computer (root)")));
    assert_eq!(links(&shown), [Link::RootlessDocker]);
    // The docker group does not own Podman's socket, nor a socket elsewhere.
    for endpoint in [at("unix:///run/podman/podman.sock", "Podman"), at("unix:///own.sock", "DOCKER_HOST")] {
        let shown = of(EngineTrouble::PermissionDenied { endpoint }, Family::Debian);
        assert!(!commands(&shown).iter().any(|command| command.contains("docker")), "{shown:?}");
    }
}

#[test]
fn starting_and_restarting_are_the_products_own_on_this_system() {
    let command =
        |trouble, system| commands(&view(&trouble, system)).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let (start, restart) =
        (|endpoint| EngineTrouble::NotRunning { endpoint }, |endpoint| EngineTrouble::NotAnswering { endpoint });
    let debian = on(Family::Debian);
    let without = System { systemd: false, ..debian };
    assert_eq!(command(start(socket()), debian), ["sudo systemctl start docker"]);
    assert_eq!(command(restart(socket()), debian), ["sudo systemctl restart docker"]);
    assert_eq!(command(start(socket()), without), ["sudo service docker start"]);
    assert_eq!(command(restart(socket()), without), ["sudo service docker restart"]);
    assert_eq!(command(start(socket()), on(Family::MacOs)), ["open -a Docker"]);
    let whale = view(&restart(socket()), on(Family::MacOs));
    assert!(whale.steps[0].text.contains("choose Restart"), "{whale:?}");
    let podman = at("unix:///run/user/1000/podman/podman.sock", "rootless Podman");
    assert_eq!(command(start(podman), debian), ["systemctl --user start podman.socket"]);
    // The same socket, though it was written down.
    let chosen = at("unix:///var/run/docker.sock", "Sandtray's settings");
    assert_eq!(command(start(chosen), debian), ["sudo systemctl start docker"]);
    assert_eq!(command(start(at("unix:///own.sock", "DOCKER_HOST")), debian), [""; 0]);
}

#[test]
fn an_address_says_who_wrote_it_down() {
    let by = |found: &str| {
        let trouble = EngineTrouble::NotRunning { endpoint: at("unix:///nowhere.sock", found) };
        of(trouble, Family::Debian).named.map(|named| named.text)
    };
    assert_eq!(by("Sandtray's settings").unwrap(), "The address is from Sandtray's settings, under Engine:");
    assert!(by("DOCKER_HOST").unwrap().contains("the variable DOCKER_HOST"));
    assert!(by("the Docker context lab").unwrap().contains("the Docker context lab"));
    assert_eq!(by("the default socket"), None);
}

#[test]
fn a_socket_is_forwarded_from_the_host_that_the_address_names() {
    let tail = "-N -L /tmp/docker.sock:/var/run/docker.sock";
    assert_eq!(forward("ssh://ada@lab.example"), format!("ssh {tail} ada@lab.example"));
    assert_eq!(forward("ssh://lab:2222/x"), format!("ssh -p 2222 {tail} lab"));
    // Never more than a name: the command is made to be pasted.
    for hostile in ["ssh://", "ssh://-oProxyCommand=x", "ssh://a;reboot", "ssh://a b", "ssh://$(x)", "ssh://a:b"] {
        assert_eq!(forward(hostile), format!("ssh {tail} HOST"), "{hostile}");
    }
}

#[test]
fn a_reason_becomes_a_sentence() {
    assert_eq!(sentence("it is too old"), "It is too old.");
    assert_eq!(sentence("Docker Desktop is paused. "), "Docker Desktop is paused.");
}
