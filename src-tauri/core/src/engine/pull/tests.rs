use super::*;

const MB: u64 = 1 << 20;

fn event(layer: &str, step: LayerStep) -> LayerEvent {
    LayerEvent { layer: layer.into(), step }
}

fn fold(events: &[(&str, LayerStep)]) -> Vec<f64> {
    let mut fold = PullFold::default();
    events.iter().map(|(layer, step)| fold.apply(&event(layer, *step)).fraction).collect()
}

fn assert_never_back(fractions: &[f64]) {
    for pair in fractions.windows(2) {
        assert!(pair[0] <= pair[1], "{fractions:?}");
    }
    assert!(fractions.iter().all(|fraction| (0.0..=1.0).contains(fraction)), "{fractions:?}");
}

#[test]
fn a_pull_as_docker_tells_it_goes_from_nothing_to_one() {
    let lines = [
        ("1", "Pulling from engtest/layers", 0, 0),
        ("e7a21b18c8e4", "Already exists", 0, 0),
        ("3a5c3a4b4812", "Pulling fs layer", 0, 0),
        ("9ce0a8e18a85", "Pulling fs layer", 0, 0),
        ("9ce0a8e18a85", "Downloading", 36445, 3001123),
        ("3a5c3a4b4812", "Downloading", 302080, 30009358),
        ("9ce0a8e18a85", "Verifying Checksum", 0, 0),
        ("9ce0a8e18a85", "Download complete", 0, 0),
        ("3a5c3a4b4812", "Downloading", 29728768, 30009358),
        ("3a5c3a4b4812", "Verifying Checksum", 0, 0),
        ("3a5c3a4b4812", "Download complete", 0, 0),
        ("3a5c3a4b4812", "Extracting", 327680, 30009358),
        ("3a5c3a4b4812", "Extracting", 30009358, 30009358),
        ("3a5c3a4b4812", "Pull complete", 0, 0),
        ("9ce0a8e18a85", "Extracting", 3001123, 3001123),
        ("9ce0a8e18a85", "Pull complete", 0, 0),
        ("", "Digest: sha256:6d89f8c0c79fd45d3e09b154ff70b5dc2f58993de81a752a895da4684cf2a0d9", 0, 0),
        ("", "Status: Downloaded newer image for 127.0.0.1:5055/engtest/layers:1", 0, 0),
    ];
    let mut fold = PullFold::default();
    let figures: Vec<PullFigure> = lines
        .iter()
        .map(|(layer, status, current, total)| fold.apply(&LayerEvent::parse(layer, status, *current, *total)))
        .collect();
    assert_never_back(&figures.iter().map(|figure| figure.fraction).collect::<Vec<_>>());
    assert_eq!(figures[3].fraction, 0.0);
    let bytes = 3001123 + 30009358;
    let figure = figures[10];
    assert!((figure.fraction - 0.75).abs() < 1e-9, "{figure:?}");
    let last = PullFigure { fraction: 1.0, downloaded_bytes: bytes, total_bytes: bytes, preparing: false };
    assert_eq!(figures.last(), Some(&last));
}

#[test]
fn podman_tells_neither_sizes_nor_unpacking() {
    let fractions = fold(&[
        ("a", LayerStep::Waiting),
        ("b", LayerStep::Waiting),
        ("a", LayerStep::Downloaded),
        ("b", LayerStep::Downloaded),
        // the image's configuration comes last, as one more layer
        ("c", LayerStep::Waiting),
        ("c", LayerStep::Downloaded),
    ]);
    assert_eq!(fractions, [0.0, 0.0, 0.375, 0.75, 0.75, 0.75]);
}

#[test]
fn a_layer_that_was_never_seen_downloading_may_extract() {
    let half = LayerStep::Extracting { current: 5, total: 10 };
    assert_eq!(fold(&[("a", half), ("a", LayerStep::Complete)]), [0.875, 1.0]);
    assert_eq!(fold(&[("a", LayerStep::Extracting { current: 3, total: 0 })]), [0.75]);
}

#[test]
fn a_small_layer_that_reports_first_does_not_fill_the_bar() {
    let fractions = fold(&[
        ("small", LayerStep::Waiting),
        ("large", LayerStep::Waiting),
        ("small", LayerStep::Downloading { current: 3000, total: 3000 }),
        ("small", LayerStep::Complete),
        ("large", LayerStep::Downloading { current: 10 * MB, total: 100 * MB }),
    ]);
    assert!(fractions[3] < 0.01, "{fractions:?}");
    assert!((fractions[4] - 0.075).abs() < 0.001, "{fractions:?}");
}

#[test]
fn late_layers_and_downloads_that_start_again_never_move_it_back() {
    let fractions = fold(&[
        ("a", LayerStep::Downloading { current: 9 * MB, total: 10 * MB }),
        ("a", LayerStep::Downloading { current: 0, total: 10 * MB }),
        ("b", LayerStep::Downloading { current: 0, total: 500 * MB }),
        ("a", LayerStep::Downloading { current: 99 * MB, total: 10 * MB }),
        ("b", LayerStep::Complete),
        ("c", LayerStep::Waiting),
        ("a", LayerStep::Complete),
    ]);
    assert_never_back(&fractions);
}

#[test]
fn only_layers_that_exist_already_leave_the_figure_at_nothing() {
    let mut fold = PullFold::default();
    assert_eq!(fold.apply(&event("a", LayerStep::AlreadyExists)), PullFigure::default());
    assert_eq!(fold.apply(&event("1", LayerStep::Other)), PullFigure::default());
}

#[test]
fn an_unknown_total_counts_the_bytes_all_the_same() {
    let mut fold = PullFold::default();
    let figure = fold.apply(&event("a", LayerStep::Downloading { current: 4 * MB, total: 0 }));
    assert_eq!((figure.downloaded_bytes, figure.total_bytes), (4 * MB, 0));
    assert!(figure.fraction > 0.0 && figure.fraction < 0.75);
}

#[test]
fn a_flood_of_layers_is_bounded() {
    let mut fold = PullFold::default();
    for n in 0..3000 {
        fold.apply(&event(&n.to_string(), LayerStep::Downloading { current: u64::MAX, total: u64::MAX }));
    }
    fold.apply(&event(&"x".repeat(1 << 20), LayerStep::Waiting));
    fold.apply(&event("", LayerStep::Waiting));
    assert_eq!(fold.layers.len(), MAX_LAYERS);
}

#[test]
fn silence_means_the_network_until_everything_is_here() {
    let mut fold = PullFold::default();
    assert_eq!(fold.patience(), (DOWNLOAD_SILENCE, PullError::NoNetwork));
    fold.apply(&event("a", LayerStep::Waiting));
    fold.apply(&event("b", LayerStep::Downloaded));
    assert_eq!(fold.patience().0, DOWNLOAD_SILENCE);
    fold.apply(&event("a", LayerStep::Downloaded));
    assert_eq!(fold.patience().0, UNPACK_SILENCE);
}

#[test]
fn what_engines_say_becomes_a_reason() {
    use PullError::{Denied, DiskFull, NoNetwork, NoSuchImage, RateLimited};
    for (status, message, reason) in [
        (
            Some(404),
            "manifest for 127.0.0.1:5055/library/nope:1 not found: manifest unknown: manifest unknown",
            NoSuchImage,
        ),
        (
            None,
            "initializing source docker://127.0.0.1:5055/library/nope:1: reading manifest 1 in 127.0.0.1:5055/library/nope: manifest unknown: manifest unknown",
            NoSuchImage,
        ),
        (
            Some(404),
            "pull access denied for nosuch/thing, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
            Denied,
        ),
        (
            None,
            "initializing source docker://nosuch/thing:1: reading manifest 1 in docker.io/nosuch/thing: requested access to the resource is denied",
            Denied,
        ),
        (
            Some(404),
            "repository 127.0.0.1:5055/x not found: name unknown: repository name not known to registry",
            NoSuchImage,
        ),
        (Some(400), "invalid reference format: repository name must be lowercase", NoSuchImage),
        (
            Some(500),
            "normalizing image: normalizing name for compat API: repository name must be lowercase",
            NoSuchImage,
        ),
        (Some(404), "", NoSuchImage),
        (Some(500), "Head \"https://ghcr.io/v2/a/b/manifests/1\": unauthorized", Denied),
        (Some(500), "unauthorized: authentication required", Denied),
        (
            Some(500),
            "Head \"https://123.dkr.ecr.eu-west-1.amazonaws.com/v2/a/manifests/1\": no basic auth credentials",
            Denied,
        ),
        (
            Some(500),
            "Get \"https://registry.example/v2/\": dial tcp: lookup registry.example on 192.0.2.53:53: no such host",
            NoNetwork,
        ),
        (
            None,
            "initializing source docker://alpine:3.22: pinging container registry registry.example: Get \"https://registry.example/v2/\": dial tcp: lookup registry.example on 192.0.2.53:53: no such host",
            NoNetwork,
        ),
        (Some(500), "Get \"http://127.0.0.1:1/v2/\": dial tcp 127.0.0.1:1: connect: connection refused", NoNetwork),
        (None, "Get \"https://127.0.0.1:5055/v2/\": http: server gave HTTP response to HTTPS client", NoNetwork),
        (Some(500), "Get \"https://registry.example/v2/\": dial tcp 54.1.2.3:443: i/o timeout", NoNetwork),
        (Some(500), "Get \"https://registry.example/v2/\": net/http: TLS handshake timeout", NoNetwork),
        (
            Some(500),
            "Get \"https://registry.example/v2/\": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)",
            NoNetwork,
        ),
        (Some(500), "Get \"https://registry.example/v2/\": x509: certificate signed by unknown authority", NoNetwork),
        (Some(500), "Get \"https://registry.example/v2/\": EOF", NoNetwork),
        (None, "read tcp 10.0.0.2:5000->1.2.3.4:443: read: connection reset by peer", NoNetwork),
        (
            Some(429),
            "toomanyrequests: You have reached your pull rate limit. You may increase the limit by authenticating and upgrading: https://www.docker.com/increase-rate-limit",
            RateLimited,
        ),
        (
            None,
            "failed to copy: httpReadSeeker: failed open: unexpected status code https://registry.example/v2/: 429 Too Many Requests",
            RateLimited,
        ),
        (
            None,
            "failed to register layer: Error processing tar file(exit status 1): write /usr/lib/x: no space left on device",
            DiskFull,
        ),
        (None, "write /var/lib/docker/tmp/GetImageBlob123: no space left on device", DiskFull),
    ] {
        assert_eq!(PullError::classify(status, message), reason, "{message}");
    }
}

#[test]
fn anything_else_is_quoted_at_a_bounded_length() {
    let message = "no matching manifest for linux/arm64/v8 in the manifest list entries";
    let processor = PullError::Other { message: "the image does not exist for this kind of processor.".into() };
    assert_eq!(PullError::classify(Some(404), message), processor);
    let message = "received unexpected HTTP status: 503 Service Unavailable";
    assert_eq!(PullError::classify(Some(500), message), PullError::Other { message: message.into() });
    assert_eq!(PullError::classify(None, " \n"), PullError::Other { message: "the engine gave no reason.".into() });
    let PullError::Other { message } = PullError::classify(None, &"ä".repeat(9000)) else { panic!("not Other") };
    assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS);
}
