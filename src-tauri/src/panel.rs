//! The tray's pictures: one for each state, drawn for dark and for light panels.

use std::io::Cursor;

use png::{OutputInfo, Transformations};

use crate::menu::Icon;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tone {
    Dark,
    Light,
}

macro_rules! picture {
    ($name:literal, $tone:literal) => {
        include_bytes!(concat!("../../icons/tray/", $name, "-on-", $tone, ".png"))
    };
}

/// An RGBA picture, 8 bits a channel, line by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pixels {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) rgba: Vec<u8>,
}

/// The picture for this desktop's panel.
pub(crate) fn pixels(icon: Icon) -> Result<Pixels, png::DecodingError> {
    decoded(picture(icon, tone()))
}

fn decoded(picture: &[u8]) -> Result<Pixels, png::DecodingError> {
    let mut decoder = png::Decoder::new(Cursor::new(picture));
    decoder.set_transformations(Transformations::normalize_to_color8() | Transformations::ALPHA);
    let mut reader = decoder.read_info()?;
    let mut rgba = vec![0; reader.output_buffer_size().unwrap_or_default()];
    let OutputInfo { width, height, .. } = reader.next_frame(&mut rgba)?;
    Ok(Pixels { width, height, rgba })
}

fn picture(icon: Icon, tone: Tone) -> &'static [u8] {
    match (icon, tone) {
        (Icon::Off, Tone::Dark) => picture!("off", "dark"),
        (Icon::Off, Tone::Light) => picture!("off", "light"),
        (Icon::Ready, Tone::Dark) => picture!("ready", "dark"),
        (Icon::Ready, Tone::Light) => picture!("ready", "light"),
        (Icon::Running, Tone::Dark) => picture!("running", "dark"),
        (Icon::Running, Tone::Light) => picture!("running", "light"),
        (Icon::Trouble, Tone::Dark) => picture!("trouble", "dark"),
        (Icon::Trouble, Tone::Light) => picture!("trouble", "light"),
    }
}

/// The tone of this desktop's panel. macOS colours a template itself, from the black one. The taskbar of Windows is
/// dark by default.
fn tone() -> Tone {
    if cfg!(target_os = "macos") {
        return Tone::Light;
    }
    if cfg!(windows) {
        return Tone::Dark;
    }
    let desktop = std::env::var("XDG_CURRENT_DESKTOP").unwrap_or_default();
    let theme = std::env::var("GTK_THEME").unwrap_or_default();
    of_desktop(&desktop, &theme)
}

/// GNOME's panel is always dark. The panels of other desktops follow their theme, whose name tells its tone.
fn of_desktop(desktop: &str, theme: &str) -> Tone {
    let light = desktop.split(':').any(|name| matches!(name, "KDE" | "XFCE" | "LXQt" | "MATE"))
        && !theme.to_lowercase().contains("dark");
    if light { Tone::Light } else { Tone::Dark }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_panel_of_a_desktop_is_light_only_where_it_follows_a_light_theme() {
        assert_eq!(of_desktop("ubuntu:GNOME", ""), Tone::Dark);
        assert_eq!(of_desktop("KDE", ""), Tone::Light);
        assert_eq!(of_desktop("XFCE", "Adwaita:dark"), Tone::Dark);
        assert_eq!(of_desktop("", ""), Tone::Dark);
    }

    #[test]
    fn every_state_has_a_picture_of_its_own_for_each_panel() {
        let mut seen = std::collections::HashSet::new();
        for icon in [Icon::Off, Icon::Ready, Icon::Running, Icon::Trouble] {
            for tone in [Tone::Dark, Tone::Light] {
                let Pixels { width, height, rgba } = decoded(picture(icon, tone)).unwrap();
                assert_eq!((width, rgba.len()), (height, 4 * width as usize * height as usize));
                // The picture is a shape with a transparent surrounding.
                assert!(rgba.chunks(4).any(|pixel| pixel[3] == 0) && rgba.chunks(4).any(|pixel| pixel[3] > 200));
                assert!(seen.insert(rgba));
            }
        }
    }
}
