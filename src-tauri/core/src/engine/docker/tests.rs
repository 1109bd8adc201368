//! The adapter against scripted engines: what a real one does only when it is ill.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::*;

const VERSION: &str = r#"{"Version":"20.10.24","ApiVersion":"1.41","Os":"linux","Arch":"amd64","Components":[{"Name":"Engine","Version":"20.10.24"}]}"#;
const INFO: &str = r#"{"NCPU":2,"MemTotal":4096}"#;

#[derive(Debug, Clone, Copy)]
enum Reply {
    Answer(u16, &'static str),
    /// Headers that promise a body, and no body.
    Half,
    /// The beginning of a stream that never goes on.
    Stuck(&'static str),
    Silence,
    HangUp,
}

type Script = Arc<dyn Fn(usize, &str) -> Reply + Send + Sync>;

/// `script` sees how many requests came before, and the first line of this one.
fn serve(script: impl Fn(usize, &str) -> Reply + Send + Sync + 'static) -> (TempDir, Endpoint) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let script: Script = Arc::new(script);
    tokio::spawn(async move {
        let mut count = 0;
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, count, script.clone()));
            count += 1;
        }
    });
    (folder, endpoint(&path))
}

async fn answer(mut stream: UnixStream, count: usize, script: Script) {
    let mut request = vec![0; 16 << 10];
    let read = stream.read(&mut request).await.unwrap();
    let text = String::from_utf8_lossy(&request[..read]).into_owned();
    let reply = match script(count, text.lines().next().unwrap_or_default()) {
        Reply::Answer(status, body) => {
            format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
        }
        Reply::Half => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".into(),
        Reply::Stuck(line) => {
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{line}\n\r\n", line.len() + 1)
        }
        Reply::Silence => String::new(),
        Reply::HangUp => return,
    };
    stream.write_all(reply.as_bytes()).await.unwrap();
    // Held open until the client has enough.
    while stream.read(&mut request).await.is_ok_and(|read| read > 0) {}
}

fn endpoint(path: &std::path::Path) -> Endpoint {
    Endpoint { url: format!("unix://{}", path.display()), found: "a test".into() }
}

/// An engine that says who it is, and answers everything else from `script`.
async fn engine(script: impl Fn(&str) -> Reply + Send + Sync + 'static) -> (TempDir, Docker) {
    let (folder, endpoint) = serve(move |_, line| match line {
        line if line.contains("/version ") => Reply::Answer(200, VERSION),
        line if line.contains("/info ") => Reply::Answer(200, INFO),
        line => script(line),
    });
    (folder, Docker::connect(endpoint).await.unwrap())
}

fn id() -> ContainerId {
    ContainerId("c0ffee".into())
}

#[tokio::test]
async fn it_says_what_it_is() {
    let (_folder, docker) = engine(|_| Reply::Silence).await;
    let expected = EngineInfo {
        name: "Docker".into(),
        version: "20.10.24".into(),
        api_version: "1.41".into(),
        endpoint: docker.endpoint().clone(),
        os: "linux".into(),
        arch: "amd64".into(),
        cpus: 2,
        memory_bytes: 4096,
        fingerprint: docker.info().await.unwrap().fingerprint,
    };
    assert_eq!(docker.info().await, Ok(expected));
}

#[tokio::test]
async fn a_missing_socket_and_one_without_a_listener_are_not_running() {
    let folder = tempfile::tempdir().unwrap();
    let missing = endpoint(&folder.path().join("none.sock"));
    let abandoned = endpoint(&folder.path().join("old.sock"));
    drop(UnixListener::bind(folder.path().join("old.sock")).unwrap());
    for endpoint in [missing, abandoned] {
        let trouble = Docker::connect(endpoint.clone()).await.unwrap_err();
        assert_eq!(trouble, EngineTrouble::NotRunning { endpoint });
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_not_running() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = Endpoint { url: format!("tcp://{free}"), found: "a test".into() };
    let trouble = Docker::connect(endpoint.clone()).await.unwrap_err();
    assert_eq!(trouble, EngineTrouble::NotRunning { endpoint });
}

#[tokio::test]
async fn an_engine_that_says_nothing_or_half_an_answer_is_not_answering() {
    for reply in [Reply::Silence, Reply::Half, Reply::HangUp, Reply::Answer(503, "")] {
        let (_folder, endpoint) = serve(move |_, _| reply);
        let began = Instant::now();
        let trouble = Docker::connect(endpoint.clone()).await.unwrap_err();
        assert_eq!(trouble, EngineTrouble::NotAnswering { endpoint }, "{reply:?}");
        assert!(began.elapsed() < PING_DEADLINE + Duration::from_secs(2), "{reply:?}");
    }
}

#[tokio::test]
async fn a_listener_whose_backlog_is_full_is_not_answering() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.sock");
    let socket = tokio::net::UnixSocket::new_stream().unwrap();
    socket.bind(&path).unwrap();
    let _listener = socket.listen(1).unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = UnixStream::connect(&path).await {
        waiting.push(stream);
    }
    let trouble = Docker::connect(endpoint(&path)).await.unwrap_err();
    assert_eq!(trouble, EngineTrouble::NotAnswering { endpoint: endpoint(&path) });
}

#[tokio::test]
async fn an_engine_that_we_cannot_use_says_why() {
    for (reply, word) in [
        (Reply::Answer(200, r#"{"Version":"18","ApiVersion":"1.39","Os":"linux"}"#), "too old"),
        (Reply::Answer(200, r#"{"Version":"28","ApiVersion":"1.50","Os":"windows"}"#), "Windows containers"),
        (Reply::Answer(200, r#"{"Version":"28"}"#), "doesn't say"),
        (Reply::Answer(200, "<html>hello</html>"), "as Docker does"),
        (Reply::Answer(400, "Client sent an HTTP request to an HTTPS server."), "HTTPS server"),
        (Reply::Answer(503, r#"{"message":"Docker Desktop is manually paused."}"#), "manually paused"),
    ] {
        let (_folder, endpoint) = serve(move |_, _| reply);
        let trouble = Docker::connect(endpoint).await.unwrap_err();
        assert!(trouble.kind() == "unusable" && trouble.to_string().contains(word), "{trouble}");
    }
}

#[tokio::test]
async fn a_removal_that_somebody_else_began_is_waited_for() {
    let looks = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let seen = looks.clone();
    let (_folder, docker) = engine(move |line| {
        if line.starts_with("DELETE") {
            return Reply::Answer(409, r#"{"message":"removal of container c0ffee is already in progress"}"#);
        }
        match seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0..2 => Reply::Answer(200, r#"{"State":{"Running":false,"ExitCode":137}}"#),
            _ => Reply::Answer(404, r#"{"message":"No such container: c0ffee"}"#),
        }
    })
    .await;
    assert_eq!(docker.remove(&id()).await, Ok(()));
    assert_eq!(looks.load(std::sync::atomic::Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_program_that_ends_as_it_is_killed_is_removed_all_the_same() {
    const IMPROPER: &str = r#"{"cause":"container state improper","message":"cannot remove container c0ffee as it could not be stopped: sending SIGKILL to container c0ffee: container state improper: stopped","response":500}"#;
    let tries = std::sync::atomic::AtomicUsize::new(0);
    let (_folder, docker) = engine(move |_| match tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0..2 => Reply::Answer(500, IMPROPER),
        _ => Reply::Answer(204, ""),
    })
    .await;
    assert_eq!(docker.remove(&id()).await, Ok(()));
}

#[tokio::test]
async fn a_refusal_is_told_in_the_engines_words() {
    let (_folder, docker) = engine(|_| Reply::Answer(409, r#"{"message":"it is in use\n"}"#)).await;
    let refused = EngineError::Refused { doing: "remove a container", message: "it is in use".into() };
    assert_eq!(docker.remove(&id()).await, Err(refused));
}

#[tokio::test]
async fn how_it_ended_is_read_from_the_engine() {
    const STATE: &str =
        r#"{"State":{"Running":false,"ExitCode":137,"OOMKilled":true,"StartedAt":"1970-01-01T00:00:01Z"}}"#;
    let (_folder, docker) = engine(|_| Reply::Answer(200, STATE)).await;
    let started_at = Some(std::time::UNIX_EPOCH + Duration::from_secs(1));
    assert_eq!(docker.exit(&id()).await, Ok(Exit { running: false, exit_code: 137, oom_killed: true, started_at }));
}

#[tokio::test]
async fn a_state_that_podman_passes_through_is_waited_out() {
    let looks = std::sync::atomic::AtomicUsize::new(0);
    let (_folder, docker) = engine(move |_| match looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        0..3 => Reply::Answer(200, r#"{"State":{"Status":"stopped","Running":false,"ExitCode":0}}"#),
        _ => Reply::Answer(200, r#"{"State":{"Status":"exited","Running":false,"ExitCode":7}}"#),
    })
    .await;
    let exit = Exit { running: false, exit_code: 7, oom_killed: false, started_at: None };
    assert_eq!(docker.exit(&id()).await, Ok(exit));
}

#[tokio::test]
async fn containers_of_others_are_not_listed() {
    const LIST: &str = r#"[
        {"Id":"a","Names":["/other/alias","/mine"],"ImageID":"i","Labels":{"sandtray.instance":"h-b","sandtray.run":"r"},"State":"running"},
        {"Id":"b","Labels":{"sandtray.instance":"h-b"},"State":"exited"},
        {"Id":"c","Labels":{},"State":"running"}]"#;
    let (_folder, docker) = engine(|_| Reply::Answer(200, LIST)).await;
    let info = |id: &str, (name, image): (&str, &str), run: &str, running| ContainerInfo {
        id: ContainerId(id.into()),
        name: name.into(),
        image: image.into(),
        instance: "h-b".into(),
        run: run.into(),
        running,
    };
    assert_eq!(
        docker.containers().await,
        Ok(vec![info("a", ("mine", "i"), "r", true), info("b", ("", ""), "", false)])
    );
}

#[tokio::test]
async fn an_image_has_its_own_run_label_and_a_missing_image_has_none() {
    let (_folder, docker) = engine(|line| match line {
        line if line.contains("/images/labelled/") => {
            Reply::Answer(200, r#"{"Config":{"Labels":{"sandtray.run":"r"}}}"#)
        }
        line if line.contains("/images/plain/") => Reply::Answer(200, r#"{"Config":{}}"#),
        _ => Reply::Answer(404, r#"{"message":"No such image"}"#),
    })
    .await;
    assert_eq!(docker.run_label_of_image("labelled").await, Ok(Some("r".into())));
    assert_eq!(docker.run_label_of_image("plain").await, Ok(None));
    assert_eq!(docker.run_label_of_image("gone").await, Ok(None));
}

#[tokio::test]
async fn a_name_that_would_ask_for_something_else_never_reaches_the_engine() {
    let (_folder, docker) = engine(|line| panic!("asked: {line}")).await;
    assert_eq!(docker.image("../version?x=").await, Ok(None));
    assert_eq!(docker.remove_image("../containers/prune").await, Ok(()));
    assert_eq!(docker.pull("a b").collect::<Vec<_>>().await, [Err(PullError::NoSuchImage)]);
}

#[tokio::test]
async fn an_error_inside_a_pull_ends_it() {
    const LINES: &str = "{\"status\":\"Pulling fs layer\",\"progressDetail\":{},\"id\":\"a\"}\n{\"errorDetail\":{\"message\":\"write /x: no space left on device\"},\"error\":\"x\"}\n{\"status\":\"Pull complete\",\"id\":\"a\"}\n";
    let (_folder, docker) = engine(|_| Reply::Answer(200, LINES)).await;
    let waiting = LayerEvent::parse("a", "Pulling fs layer", 0, 0);
    assert_eq!(docker.pull("x").collect::<Vec<_>>().await, [Ok(waiting), Err(PullError::DiskFull)]);
}

#[tokio::test]
async fn a_pull_that_ends_without_an_image_has_failed() {
    let (_folder, docker) = engine(|line| match line {
        line if line.starts_with("POST") => Reply::Answer(200, "{\"error\":\"something else\"}\n"),
        _ => Reply::Answer(404, r#"{"message":"No such image: x"}"#),
    })
    .await;
    let events: Vec<_> = docker.pull("x").collect().await;
    let message = "the engine ended the pull without an image.".into();
    assert_eq!(events.last(), Some(&Err(PullError::Other { message })));
}

#[tokio::test]
async fn a_pull_without_a_word_is_a_lost_network() {
    let (_folder, docker) = engine(|_| Reply::Stuck(r#"{"status":"Pulling fs layer","id":"a"}"#)).await;
    let mut events = docker.pull("x");
    assert_eq!(events.next().await, Some(Ok(LayerEvent::parse("a", "Pulling fs layer", 0, 0))));
    tokio::time::pause();
    let began = Instant::now();
    assert_eq!(events.next().await, Some(Err(PullError::NoNetwork)));
    assert!(began.elapsed() >= crate::engine::pull::DOWNLOAD_SILENCE);
    assert_eq!(events.next().await, None);
}

#[tokio::test]
async fn requests_carry_no_version_so_that_every_engine_answers_in_its_own() {
    let (_folder, docker) = engine(|line| {
        assert_eq!(line, "GET /images/alpine:3.22/json HTTP/1.1");
        Reply::Answer(404, "{}")
    })
    .await;
    assert_eq!(docker.image("alpine:3.22").await, Ok(None));
}

#[tokio::test]
async fn a_socket_in_a_folder_that_does_not_exist_is_not_running() {
    let endpoint = endpoint(&PathBuf::from("/nowhere/at/all.sock"));
    assert_eq!(Docker::connect(endpoint.clone()).await.unwrap_err(), EngineTrouble::NotRunning { endpoint });
}
