use super::*;

/// The paths that exist, `alias->real` for a link. `/secret` and `/run/podman` may not be looked into.
fn world(present: &'static [&'static str]) -> impl Fn(&Path) -> Presence {
    move |path| {
        if path.starts_with("/secret") || path.starts_with("/run/podman") {
            return Presence::Hidden;
        }
        let text = path.to_str().unwrap_or_default();
        match present.iter().find_map(|entry| match entry.split_once("->") {
            Some((alias, real)) => (alias == text).then_some(real),
            None => (*entry == text).then_some(*entry),
        }) {
            Some(real) => Presence::There { real: real.into() },
            None => Presence::Missing,
        }
    }
}

fn places(environment: &[(&str, &str)]) -> Places {
    Places {
        chosen: None,
        environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        home: Some("/home/ada".into()),
        uid: Some(1000),
    }
}

fn found(candidates: &Candidates) -> Vec<(&str, &str)> {
    let entries = candidates.found.iter().map(|candidate| match candidate {
        Candidate::Try(endpoint) => (endpoint.url.as_str(), endpoint.found.as_str()),
        Candidate::Unusable { endpoint, .. } => (endpoint.url.as_str(), "unusable"),
    });
    entries.collect()
}

#[test]
fn the_engine_of_the_settings_is_the_only_candidate() {
    let mut places = places(&[("DOCKER_HOST", "unix:///other.sock")]);
    places.chosen = Some(" unix:///there.sock ".into());
    let candidates = candidates(&places, &world(&["/var/run/docker.sock"]));
    assert_eq!(found(&candidates), [("unix:///there.sock", "Sandtray's settings")]);
    assert_eq!(candidates.looked_at, ["unix:///there.sock"]);
}

#[test]
fn docker_host_is_the_only_candidate_unless_it_is_empty() {
    let world = world(&["/var/run/docker.sock"]);
    let named = candidates(&places(&[("DOCKER_HOST", "tcp://127.0.0.1:2375")]), &world);
    assert_eq!(found(&named), [("tcp://127.0.0.1:2375", "DOCKER_HOST")]);
    let empty = candidates(&places(&[("DOCKER_HOST", "")]), &world);
    assert_eq!(found(&empty), [("unix:///var/run/docker.sock", "the default socket")]);
}

#[test]
fn a_plain_path_is_a_unix_socket() {
    let mut places = places(&[]);
    for (chosen, url) in [("/run/x.sock", "unix:///run/x.sock"), ("~/x.sock", "unix:///home/ada/x.sock")] {
        places.chosen = Some(chosen.into());
        assert_eq!(found(&candidates(&places, &world(&[]))), [(url, "Sandtray's settings")]);
    }
}

#[test]
fn an_address_we_cannot_use_says_why() {
    let tls = [("DOCKER_TLS_VERIFY", "1")];
    for (environment, url, kind, word) in [
        (&[][..], "ssh://ada@host", Unfit::Ssh, "SSH"),
        (&[][..], "https://host:2376", Unfit::Tls, "TLS"),
        (&tls[..], "tcp://host:2376", Unfit::Tls, "TLS"),
        (&[][..], "npipe:////./pipe/docker_engine", Unfit::Address, "Windows"),
        (&[][..], "fd://", Unfit::Address, "fd://"),
        (&[][..], "unix://", Unfit::Address, "no socket"),
        (&[][..], "docker.example", Unfit::Address, "starts with"),
    ] {
        let mut places = places(environment);
        places.environment.insert("DOCKER_HOST".into(), url.into());
        let candidates = candidates(&places, &world(&[]));
        let [Candidate::Unusable { endpoint, unfit, reason }] = &candidates.found[..] else { panic!("{candidates:?}") };
        assert_eq!((endpoint.url.as_str(), *unfit), (url, kind));
        assert!(reason.contains(word), "{reason}");
    }
}

#[test]
fn an_engine_of_another_computer_is_used_only_where_the_settings_name_it() {
    let world = world(&["/var/run/docker.sock"]);
    for url in ["tcp://10.0.0.1:2375", "http://docker:2375", "tcp://127.0.0.1@example.com:2375", "tcp://0.0.0.0:2375"] {
        let refused = candidates(&places(&[("DOCKER_HOST", url)]), &world);
        let [Candidate::Unusable { endpoint, unfit, reason }] = &refused.found[..] else { panic!("{refused:?}") };
        let (endpoint, unfit, reason) = (endpoint.clone(), *unfit, reason.clone());
        assert_eq!(unfit, Unfit::Elsewhere);
        let trouble = crate::engine::EngineTrouble::Unusable { endpoint, unfit, reason };
        assert_eq!(
            trouble.to_string(),
            format!(
                "The engine at {url} (DOCKER_HOST) can't be used: it is another computer's, where programs, inputs and results \
                 would go unencrypted; if you mean it, name it as `engine` in Sandtray's settings, otherwise forward its socket \
                 with `ssh -L`."
            )
        );
        let mut chosen = places(&[("DOCKER_HOST", "unix:///other.sock")]);
        chosen.chosen = Some(url.into());
        assert_eq!(found(&candidates(&chosen, &world)), [(url, "Sandtray's settings")]);
        let home = home_with_context(url);
        let mut of_context = places(&[]);
        of_context.home = Some(home.path().into());
        assert_eq!(
            found(&candidates(&of_context, &world)),
            [(url, "unusable"), ("unix:///var/run/docker.sock", "the default socket")]
        );
    }
    for url in ["tcp://127.0.0.1:2375", "tcp://localhost:2375", "tcp://[::1]:2375"] {
        assert_eq!(found(&candidates(&places(&[("DOCKER_HOST", url)]), &world)), [(url, "DOCKER_HOST")]);
    }
}

#[test]
fn the_usual_places_come_in_a_fixed_order() {
    let everything = world(&[
        "/run/user/1000/podman/podman.sock",
        "/run/user/1000/docker.sock",
        "/home/ada/.rd/docker.sock",
        "/home/ada/.orbstack/run/docker.sock",
        "/home/ada/.colima/default/docker.sock",
        "/home/ada/.docker/desktop/docker.sock",
        "/var/run/docker.sock",
    ]);
    let candidates = candidates(&places(&[]), &everything);
    assert_eq!(
        found(&candidates),
        [
            ("unix:///var/run/docker.sock", "the default socket"),
            ("unix:///home/ada/.docker/desktop/docker.sock", "Docker Desktop"),
            ("unix:///home/ada/.colima/default/docker.sock", "Colima"),
            ("unix:///home/ada/.orbstack/run/docker.sock", "OrbStack"),
            ("unix:///home/ada/.rd/docker.sock", "Rancher Desktop"),
            ("unix:///run/user/1000/docker.sock", "rootless Docker"),
            ("unix:///run/user/1000/podman/podman.sock", "rootless Podman"),
        ]
    );
}

#[test]
fn one_socket_under_two_names_is_tried_once() {
    let world =
        world(&["/var/run/docker.sock->/home/ada/.docker/run/docker.sock", "/home/ada/.docker/run/docker.sock"]);
    let candidates = candidates(&places(&[]), &world);
    assert_eq!(found(&candidates), [("unix:///var/run/docker.sock", "the default socket")]);
}

#[test]
fn a_socket_in_a_folder_that_is_closed_to_us_is_no_candidate_unless_it_was_named() {
    let nowhere = world(&[]);
    let none = candidates(&places(&[]), &nowhere);
    assert!(none.found.is_empty());
    assert!(none.looked_at.contains(&"unix:///run/podman/podman.sock".to_owned()));
    let named = candidates(&places(&[("DOCKER_HOST", "unix:///secret/docker.sock")]), &nowhere);
    assert_eq!(found(&named), [("unix:///secret/docker.sock", "DOCKER_HOST")]);
}

#[test]
fn an_installed_engine_that_is_stopped_is_not_absent() {
    let docker = candidates(&places(&[("PATH", "/opt/bin")]), &world(&["/opt/bin/dockerd"]));
    assert_eq!(found(&docker), [("unix:///var/run/docker.sock", "the default socket")]);
    let podman = candidates(&places(&[]), &world(&["/usr/bin/podman"]));
    assert_eq!(found(&podman), [("unix:///run/user/1000/podman/podman.sock", "rootless Podman")]);
}

/// The SHA-256 of `desktop-linux`, which names the context's folder on every computer with Docker Desktop.
const DIGEST: &str = "fe9c6bd7a66301f49ca9b6a70b217107cd1284598bfc254700c989b916da791e";

/// A home whose current Docker context is `desktop-linux`, at `host`.
fn home_with_context(host: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let docker = home.path().join(".docker");
    let meta = docker.join("contexts/meta").join(DIGEST);
    std::fs::create_dir_all(&meta).unwrap();
    let json = format!(
        r#"{{"Name":"desktop-linux","Metadata":{{}},"Endpoints":{{"docker":{{"Host":"{host}","SkipTLSVerify":false}}}}}}"#
    );
    std::fs::write(meta.join("meta.json"), json).unwrap();
    std::fs::write(docker.join("config.json"), r#"{"auths":{},"currentContext":"desktop-linux"}"#).unwrap();
    home
}

#[test]
fn the_current_docker_context_comes_first_even_while_nothing_is_there() {
    let home = home_with_context("unix:///home/ada/.docker/desktop/docker.sock");
    let mut places = places(&[]);
    places.home = Some(home.path().into());
    let candidates = candidates(&places, &world(&["/var/run/docker.sock"]));
    assert_eq!(
        found(&candidates),
        [
            ("unix:///home/ada/.docker/desktop/docker.sock", "the Docker context desktop-linux"),
            ("unix:///var/run/docker.sock", "the default socket"),
        ]
    );
}

#[test]
fn the_environment_may_name_another_context_or_another_folder() {
    let home = home_with_context("unix:///ctx.sock");
    let folder = home.path().join(".docker");
    let mut places = places(&[("DOCKER_CONFIG", folder.to_str().unwrap())]);
    let world = world(&["/var/run/docker.sock"]);
    assert_eq!(found(&candidates(&places, &world))[0].0, "unix:///ctx.sock");
    places.environment.insert("DOCKER_CONTEXT".into(), "default".into());
    assert_eq!(found(&candidates(&places, &world))[0].0, "unix:///var/run/docker.sock");
    places.environment.insert("DOCKER_CONTEXT".into(), "forgotten".into());
    assert_eq!(found(&candidates(&places, &world))[0].0, "unix:///var/run/docker.sock");
}

#[test]
fn a_context_with_certificates_is_unusable_and_the_others_are_still_tried() {
    let home = home_with_context("tcp://host:2376");
    std::fs::create_dir_all(home.path().join(".docker/contexts/tls").join(DIGEST).join("docker")).unwrap();
    let mut places = places(&[]);
    places.home = Some(home.path().into());
    let candidates = candidates(&places, &world(&["/var/run/docker.sock"]));
    assert_eq!(
        found(&candidates),
        [("tcp://host:2376", "unusable"), ("unix:///var/run/docker.sock", "the default socket")]
    );
}

#[test]
fn docker_files_that_make_no_sense_are_passed_over() {
    let home = home_with_context("unix:///ctx.sock");
    let mut places = places(&[]);
    places.home = Some(home.path().into());
    for content in ["{", "[]", r#"{"currentContext":7}"#, r#"{"currentContext":""}"#, r#"{"currentContext":"../.."}"#] {
        std::fs::write(home.path().join(".docker/config.json"), content).unwrap();
        let candidates = candidates(&places, &world(&["/var/run/docker.sock"]));
        assert_eq!(found(&candidates)[0].0, "unix:///var/run/docker.sock", "{content}");
    }
}

#[test]
fn the_probe_follows_links() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap().join("real");
    std::fs::write(&real, "").unwrap();
    let alias = folder.path().join("alias");
    std::os::unix::fs::symlink(&real, &alias).unwrap();
    assert_eq!(on_disk(&alias), Presence::There { real });
    assert_eq!(on_disk(&folder.path().join("none")), Presence::Missing);
}
