//! Builds the window's pages when they are older than what they are made of, so that plain `cargo build` is all there is to
//! know; then does tauri's own work.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::SystemTime;

const UI: &str = "../ui";
/// What the build makes last.
const PAGE: &str = "dist/index.html";
/// What the pages are made of, beside the folders below.
const INPUT_FILES: [&str; 6] =
    ["index.html", "package.json", "package-lock.json", "svelte.config.js", "tsconfig.json", "vite.config.ts"];
const INPUT_FOLDERS: [&str; 2] = ["src", "public"];

/// Each becomes a permission of its own, which the window's capability names.
const COMMANDS: &[&str] = &[
    "subscribe",
    "set_enabled",
    "saw_turned_on",
    "retry_engine",
    "pull_image",
    "cancel_pull",
    "remove_image",
    "pin_image",
    "stop_run",
    "stop_all",
    "watch_run",
    "unwatch_run",
    "live_request",
    "history_page",
    "history_run",
    "history_recent",
    "history_picture",
    "history_delete",
    "history_clear",
    "history_stats",
    "run_again",
    "save_file",
    "save_all",
    "open_saved",
    "agents",
    "try_it",
    "copy_text",
    "open_link",
    "close_window",
    "quit",
    "settings",
    "apply_settings",
];

fn main() -> ExitCode {
    if let Err(failure) = pages() {
        eprintln!("The window's pages could not be built: {failure}");
        return ExitCode::FAILURE;
    }
    let manifest = tauri_build::AppManifest::new().commands(COMMANDS);
    if let Err(failure) = tauri_build::try_build(tauri_build::Attributes::new().app_manifest(manifest)) {
        eprintln!("{failure:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn pages() -> Result<(), String> {
    let ui = Path::new(UI);
    let inputs = inputs(ui)?;
    for input in &inputs {
        println!("cargo:rerun-if-changed={}", input.display());
    }
    // Removed by hand, it is built again.
    println!("cargo:rerun-if-changed={}", ui.join(PAGE).display());
    // `tauri dev` serves the pages itself.
    if std::env::var_os("CARGO_FEATURE_CUSTOM_PROTOCOL").is_none() {
        return Ok(());
    }
    let newest = inputs.iter().filter_map(|input| modified(input)).max().unwrap_or(SystemTime::UNIX_EPOCH);
    if modified(&ui.join(PAGE)).is_some_and(|built| built >= newest) {
        return Ok(());
    }
    if modified(&ui.join("node_modules/.package-lock.json")) < modified(&ui.join("package-lock.json")) {
        npm(ui, &["ci", "--no-audit", "--no-fund"])?;
    }
    npm(ui, &["run", "build"])?;
    // As old as its newest input: cargo runs this again for whatever is newer than its last run.
    File::options()
        .append(true)
        .open(ui.join(PAGE))
        .and_then(|page| page.set_modified(newest))
        .map_err(|error| format!("`npm run build` left no {PAGE}: {error}"))
}

fn npm(ui: &Path, arguments: &[&str]) -> Result<(), String> {
    let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let said = arguments.join(" ");
    match Command::new(program).args(arguments).current_dir(ui).output() {
        Ok(output) if ExitStatus::success(&output.status) => Ok(()),
        Ok(output) => Err(format!(
            "`npm {said}` failed:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )),
        Err(error) => Err(format!(
            "`npm {said}` cannot be run ({error}). Sandtray's window needs Node 20 or newer with npm: \
             https://nodejs.org, or `apt-get install npm`."
        )),
    }
}

fn inputs(ui: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found: Vec<PathBuf> = INPUT_FILES.iter().map(|name| ui.join(name)).filter(|path| path.exists()).collect();
    for folder in INPUT_FOLDERS.iter().map(|name| ui.join(name)).filter(|path| path.exists()) {
        walk(&folder, &mut found).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    Ok(found)
}

/// Folders too: a file that was removed changes its folder alone.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    found.push(folder.to_owned());
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() { walk(&entry.path(), found)? } else { found.push(entry.path()) }
    }
    Ok(())
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}
