//! Turns a picture that a program wrote into one that the window may show. A browser's decoders are large, old and not
//! in Rust, and a picture of a few kilobytes can take gigabytes of pixels. So crates that forbid unsafe code decode it
//! here, within the bounds below; it is made small, and written anew as PNG. No byte of the program's file reaches the
//! window.
//!
//! This happens in a separate process, one picture at a time: see [`process`].

mod formats;
mod process;
mod shrink;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};

use crate::dto::picture::PictureView;
use formats::Picture;
use shrink::Shrink;

pub(crate) use formats::Kind;
pub(crate) use process::{Studio, Want, asked, work};

/// Most pixels, by the picture's header: a photograph of 16 megapixels.
const MAX_PIXELS: u64 = 1 << 24;
/// Longest side of the shown picture, in pixels. The window has less room than that.
const MAX_SIDE: u32 = 1600;
/// Most bytes of the shown PNG. A picture that does not compress to that is shown smaller.
const MAX_PNG: usize = 4 << 20;

/// Why a picture is not shown.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    TooLarge {
        width: u32,
        height: u32,
    },
    /// Damaged, cut off, or of a variant that is not read here.
    Unreadable,
}

/// The picture itself, or only its size.
fn view(bytes: &[u8], want: Want) -> PictureView {
    let made = formats::open(bytes).and_then(|picture| {
        let (width, height) = (picture.width, picture.height);
        match want {
            Want::Size => Ok(PictureView::Fits { width, height, moves: false, png: None }),
            Want::Pixels => {
                let (png, moves) = shown(picture)?;
                Ok(PictureView::Fits { width, height, moves, png: Some(STANDARD.encode(png)) })
            }
        }
    });
    made.unwrap_or_else(|refusal| match refusal {
        Refusal::TooLarge { width, height } => PictureView::TooLarge { width, height },
        Refusal::Unreadable => PictureView::Unreadable,
    })
}

/// The picture as PNG, and whether it has more frames.
fn shown(picture: Picture<'_>) -> Result<(Vec<u8>, bool), Refusal> {
    let mut side = MAX_SIDE;
    let mut small = Shrink::new(picture.width, picture.height, side);
    let moves = (picture.lines)(&mut small)?;
    loop {
        let pixels = small.finish().ok_or(Refusal::Unreadable)?;
        let png = encoded(&pixels).map_err(|_| Refusal::Unreadable)?;
        if png.len() <= MAX_PNG {
            return Ok((png, moves));
        }
        side = side / 3 * 2;
        small = Shrink::new(pixels.width, pixels.height, side);
        pixels.rgba.chunks_exact(pixels.width as usize * 4).for_each(|line| small.line(line));
    }
}

/// RGBA, 8 bits a channel, line by line.
#[derive(Debug, PartialEq, Eq)]
struct Pixels {
    width: u32,
    height: u32,
    rgba: Vec<u8>,
}

fn encoded(pixels: &Pixels) -> Result<Vec<u8>, EncodingError> {
    let mut png = Vec::new();
    let mut encoder = Encoder::new(&mut png, pixels.width, pixels.height);
    encoder.set_color(ColorType::Rgba);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(Compression::Fast);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels.rgba)?;
    writer.finish()?;
    Ok(png)
}

#[cfg(test)]
mod tests;
