//! Image names as engines write them.

/// Longer than any registry allows.
const MAX_NAME_BYTES: usize = 512;

/// Whether a name may be put into the path of a request. bollard does not escape it, so `?`, `#` or `..` would change
/// the request.
pub(super) fn is_plausible(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@[]+".contains(c);
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.chars().all(plain)
        && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Adds the tag `latest` to a name without a tag, because Docker would otherwise pull every tag of the repository.
pub(super) fn with_tag(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.contains(':') || name.contains('@') { name.to_owned() } else { format!("{name}:latest") }
}

/// The digest under which this repository, and no other, offers the image.
pub(super) fn digest_of(name: &str, repo_digests: &[String]) -> Option<String> {
    let wanted = repository(name);
    repo_digests.iter().find_map(|entry| {
        let (repo, digest) = entry.split_once('@')?;
        (repository(repo) == wanted).then(|| digest.to_owned())
    })
}

/// Matches the messages of Docker and Podman for a missing image.
pub(super) fn says_no_image(message: &str) -> bool {
    let lower = message.to_lowercase();
    lower.contains("no such image") || lower.contains("image not known")
}

/// The part of a name that identifies its repository: `docker.io/library/alpine:3.22` and `alpine` give the same.
fn repository(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    let end = name.rfind('/').map_or(0, |slash| slash + 1);
    let name = name[end..].find(':').map_or(name, |colon| &name[..end + colon]);
    let hub = ["docker.io/", "index.docker.io/", "registry-1.docker.io/"];
    let name = hub.into_iter().find_map(|host| name.strip_prefix(host)).unwrap_or(name);
    name.strip_prefix("library/").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gets_a_tag_where_it_has_none() {
        for (name, tagged) in [
            ("alpine", "alpine:latest"),
            ("alpine:3.22", "alpine:3.22"),
            ("127.0.0.1:5055/library/alpine", "127.0.0.1:5055/library/alpine:latest"),
            ("127.0.0.1:5055/a/b:1", "127.0.0.1:5055/a/b:1"),
            ("alpine@sha256:00", "alpine@sha256:00"),
        ] {
            assert_eq!(with_tag(name), tagged);
        }
    }

    #[test]
    fn names_that_would_ask_for_something_else_are_not_asked() {
        for name in ["", "..", "a/../b", "/a", "a//b", "a?x=1", "a#b", "a b", "a%2f", "ä", "a\n"] {
            assert!(!is_plausible(name), "{name:?}");
        }
        assert!(!is_plausible(&"a".repeat(513)));
        for name in ["alpine", "127.0.0.1:5055/library/alpine:3.22", "a@sha256:0f", "[::1]:5000/a_b-c.d:1"] {
            assert!(is_plausible(name), "{name:?}");
        }
    }

    #[test]
    fn the_digest_is_that_of_the_same_repository() {
        let digests = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let both = digests(&["127.0.0.1:5055/library/alpine@sha256:aa", "alpine@sha256:bb"]);
        assert_eq!(digest_of("alpine:3.22", &both), Some("sha256:bb".into()));
        assert_eq!(digest_of("127.0.0.1:5055/library/alpine:3.22", &both), Some("sha256:aa".into()));
        assert_eq!(digest_of("other", &both), None);
        let podman = digests(&["docker.io/library/alpine@sha256:cc"]);
        assert_eq!(digest_of("alpine", &podman), Some("sha256:cc".into()));
        assert_eq!(digest_of("docker.io/library/alpine@sha256:cc", &podman), Some("sha256:cc".into()));
    }
}
