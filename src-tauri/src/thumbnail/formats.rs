//! The formats that are shown, recognised by their first bytes, and the decoder of each. A header's sizes are checked
//! before memory is taken for them. Of an animation, the first frame is read.

use std::io::Cursor;

use gif::{ColorOutput, DecodeOptions, MemoryLimit};
use image_webp::WebPDecoder;
use png::Transformations;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::shrink::Shrink;
use super::{MAX_PIXELS, Refusal};

/// Memory that a decoder may take beside the pixels: text chunks, profiles, tables.
const MAX_BESIDE: usize = 16 << 20;
const MAX_BYTES: usize = MAX_PIXELS as usize * 4 + MAX_BESIDE;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Png,
    Jpeg,
    Gif,
    Webp,
}

impl Kind {
    /// The format by the first bytes, whatever the file's name.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }
}

/// A header that was read and is within bounds.
pub(super) struct Picture<'a> {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) lines: Lines<'a>,
}

/// Reads the pixels. Returns whether there are more frames.
type Lines<'a> = Box<dyn FnOnce(&mut Shrink) -> Result<bool, Refusal> + 'a>;

pub(super) fn open(bytes: &[u8]) -> Result<Picture<'_>, Refusal> {
    match Kind::of(bytes).ok_or(Refusal::Unreadable)? {
        Kind::Png => open_png(bytes),
        Kind::Jpeg => open_jpeg(bytes),
        Kind::Gif => open_gif(bytes),
        Kind::Webp => open_webp(bytes),
    }
}

fn fits(width: u32, height: u32) -> Result<(), Refusal> {
    match u64::from(width) * u64::from(height) {
        0 => Err(Refusal::Unreadable),
        pixels if pixels > MAX_PIXELS => Err(Refusal::TooLarge { width, height }),
        _ => Ok(()),
    }
}

fn unreadable<E>(_: E) -> Refusal {
    Refusal::Unreadable
}

fn open_png(bytes: &[u8]) -> Result<Picture<'_>, Refusal> {
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), png::Limits { bytes: MAX_BYTES });
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    decoder.set_transformations(Transformations::normalize_to_color8());
    let (width, height) = decoder.read_header_info().map_err(unreadable)?.size();
    fits(width, height)?;
    let lines = move |small: &mut Shrink| {
        let mut reader = decoder.read_info().map_err(unreadable)?;
        let moves = reader.info().animation_control().is_some();
        let channels = reader.output_color_type().0.samples();
        if reader.info().interlaced {
            let mut pixels = vec![0; reader.output_buffer_size().ok_or(Refusal::Unreadable)?];
            reader.next_frame(&mut pixels).map_err(unreadable)?;
            rgba_lines(&pixels, width, channels, small);
        } else {
            while let Some(row) = reader.next_row().map_err(unreadable)? {
                rgba_lines(row.data(), width, channels, small);
            }
        }
        Ok(moves)
    };
    Ok(Picture { width, height, lines: Box::new(lines) })
}

fn open_jpeg(bytes: &[u8]) -> Result<Picture<'_>, Refusal> {
    let most = usize::from(u16::MAX);
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(most).set_max_height(most);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(unreadable)?;
    let (width, height) = decoder.dimensions().ok_or(Refusal::Unreadable)?;
    let (width, height) = (u32::try_from(width).map_err(unreadable)?, u32::try_from(height).map_err(unreadable)?);
    fits(width, height)?;
    let (colors, channels) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (ColorSpace::Luma, 1),
        Some(_) | None => (ColorSpace::RGB, 3),
    };
    decoder.set_options(decoder.options().jpeg_set_out_colorspace(colors));
    let lines = move |small: &mut Shrink| {
        rgba_lines(&decoder.decode().map_err(unreadable)?, width, channels, small);
        Ok(false)
    };
    Ok(Picture { width, height, lines: Box::new(lines) })
}

fn open_gif(bytes: &[u8]) -> Result<Picture<'_>, Refusal> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::RGBA);
    if let Some(most) = u64::try_from(MAX_BYTES).ok().and_then(std::num::NonZeroU64::new) {
        options.set_memory_limit(MemoryLimit::Bytes(most));
    }
    let mut decoder = options.read_info(Cursor::new(bytes)).map_err(unreadable)?;
    let (width, height) = (u32::from(decoder.width()), u32::from(decoder.height()));
    fits(width, height)?;
    // A frame may be larger than the picture's canvas.
    let frame = decoder.next_frame_info().map_err(unreadable)?.ok_or(Refusal::Unreadable)?;
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let (frame_width, frame_height) = (frame.width, frame.height);
    fits(frame_width.into(), frame_height.into())?;
    let lines = move |small: &mut Shrink| {
        let mut frame = vec![0; decoder.buffer_size()];
        decoder.read_into_buffer(&mut frame).map_err(unreadable)?;
        let mut frame = frame.chunks_exact(usize::from(frame_width) * 4);
        for y in 0..height as usize {
            let mut line = vec![0; width as usize * 4];
            let row = if y >= top { frame.next() } else { None };
            if let (Some(row), Some(place)) = (row, line.get_mut(left * 4..)) {
                let shared = row.len().min(place.len());
                place[..shared].copy_from_slice(&row[..shared]);
            }
            small.line(&line);
        }
        Ok(decoder.next_frame_info().is_ok_and(|next| next.is_some()))
    };
    Ok(Picture { width, height, lines: Box::new(lines) })
}

fn open_webp(bytes: &[u8]) -> Result<Picture<'_>, Refusal> {
    // The decoder allocates the size that a part of the file declares before it compares that with the whole.
    webp_fits(bytes)?;
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(unreadable)?;
    decoder.set_memory_limit(MAX_BESIDE);
    let (width, height) = decoder.dimensions();
    fits(width, height)?;
    let lines = move |small: &mut Shrink| {
        let mut pixels = vec![0; decoder.output_buffer_size().ok_or(Refusal::Unreadable)?];
        decoder.read_image(&mut pixels).map_err(unreadable)?;
        rgba_lines(&pixels, width, if decoder.has_alpha() { 4 } else { 3 }, small);
        Ok(decoder.num_frames() > 1)
    };
    Ok(Picture { width, height, lines: Box::new(lines) })
}

/// Checks every size that the file's chunks declare: of the canvas, and of each frame.
fn webp_fits(bytes: &[u8]) -> Result<(), Refusal> {
    const HEADER: usize = 12;
    /// Bytes ahead of the chunks of a frame, within the frame's own chunk.
    const FRAME: usize = 16;
    let mut rest = bytes.get(HEADER..).unwrap_or_default();
    while let Some((name, declared)) = rest.split_first_chunk::<4>() {
        let Some((length, data)) = declared.split_first_chunk::<4>() else { break };
        if let Some((width, height)) = webp_size(name, data) {
            fits(width, height)?;
        }
        let length = u32::from_le_bytes(*length) as usize;
        let skipped = if name == b"ANMF" { FRAME } else { length.saturating_add(length % 2) };
        rest = data.get(skipped..).unwrap_or_default();
    }
    Ok(())
}

/// The size that a chunk declares, if it declares one.
fn webp_size(name: &[u8; 4], data: &[u8]) -> Option<(u32, u32)> {
    let three = |at: usize| data.get(at..at + 3).map(|part| u32::from_le_bytes([part[0], part[1], part[2], 0]) + 1);
    match name {
        b"VP8X" => Some((three(4)?, three(7)?)),
        b"ANMF" => Some((three(6)?, three(9)?)),
        b"VP8L" => {
            let bits = u32::from_le_bytes(*data.get(1..)?.first_chunk()?);
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8 " => {
            let side = |at: usize| Some(u32::from(u16::from_le_bytes(*data.get(at..)?.first_chunk()?)) & 0x3fff);
            Some((side(6)?, side(8)?))
        }
        _ => None,
    }
}

/// Converts grey, grey with alpha, RGB or RGBA lines, by the number of channels.
fn rgba_lines(pixels: &[u8], width: u32, channels: usize, small: &mut Shrink) {
    let mut line = Vec::with_capacity(width as usize * 4);
    for row in pixels.chunks_exact(width as usize * channels) {
        line.clear();
        for pixel in row.chunks_exact(channels) {
            line.extend(match *pixel {
                [gray] => [gray, gray, gray, u8::MAX],
                [gray, opacity] => [gray, gray, gray, opacity],
                [red, green, blue] => [red, green, blue, u8::MAX],
                [red, green, blue, opacity, ..] => [red, green, blue, opacity],
                [] => [0; 4],
            });
        }
        small.line(&line);
    }
}
