//! Pictures as other programs write them, and hostile ones. The files of `testdata` are 16 by 8 pixels, red on the left
//! and blue on the right.

use std::io::Cursor;

use super::*;

const RED: [u8; 3] = [200, 30, 30];
const BLUE: [u8; 3] = [30, 30, 200];

macro_rules! sample {
    ($name:literal) => {
        ($name, include_bytes!(concat!("testdata/", $name)).as_slice())
    };
}

const SAMPLES: [(&str, &[u8]); 10] = [
    sample!("baseline.jpg"),
    sample!("progressive.jpg"),
    sample!("cmyk.jpg"),
    sample!("gray.jpg"),
    sample!("lossy.webp"),
    sample!("lossless.webp"),
    sample!("moves.webp"),
    sample!("moves.gif"),
    sample!("still.gif"),
    sample!("moves.png"),
];

fn named(name: &str) -> Vec<u8> {
    SAMPLES.iter().find(|(sample, _)| *sample == name).unwrap().1.to_vec()
}

/// The picture that the window would show: a PNG, read again.
fn decoded(view: &PictureView) -> Pixels {
    let PictureView::Fits { png: Some(png), .. } = view else { panic!("{view:?}") };
    let mut reader = png::Decoder::new(Cursor::new(STANDARD.decode(png).unwrap())).read_info().unwrap();
    let mut rgba = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut rgba).unwrap();
    assert_eq!((info.color_type, info.bit_depth), (ColorType::Rgba, BitDepth::Eight));
    Pixels { width: info.width, height: info.height, rgba }
}

fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut crc = crc32fast::Hasher::new();
    crc.update(kind);
    crc.update(data);
    [&(data.len() as u32).to_be_bytes(), kind.as_slice(), data, &crc.finalize().to_be_bytes()].concat()
}

fn deflated(data: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

/// Filtered lines as they are in the file. `between` comes before them.
fn png_file(size: (u32, u32), depth: u8, color: u8, interlaced: bool, between: &[Vec<u8>], lines: &[u8]) -> Vec<u8> {
    let mut header = [size.0.to_be_bytes(), size.1.to_be_bytes()].concat();
    header.extend([depth, color, 0, 0, u8::from(interlaced)]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(chunk(b"IHDR", &header));
    between.iter().for_each(|chunk| file.extend(chunk));
    file.extend(chunk(b"IDAT", &deflated(lines)));
    file.extend(chunk(b"IEND", b""));
    file
}

const GRAY: u8 = 0;
const RGB: u8 = 2;
const INDEXED: u8 = 3;
const RGBA: u8 = 6;

fn too_large(width: u32, height: u32) -> PictureView {
    PictureView::TooLarge { width, height }
}

fn size(bytes: &[u8]) -> PictureView {
    view(bytes, Want::Size)
}

fn pixels(bytes: &[u8]) -> PictureView {
    view(bytes, Want::Pixels)
}

#[test]
fn every_format_is_shown_as_it_was_drawn() {
    for (name, bytes) in SAMPLES {
        let gray = name.starts_with("gray");
        let (left, right) = if gray { ([81; 3], [49; 3]) } else { (RED, BLUE) };
        let sized = PictureView::Fits { width: 16, height: 8, moves: false, png: None };
        assert_eq!(size(bytes), sized, "{name}");
        let shown = pixels(bytes);
        let PictureView::Fits { moves, .. } = shown else { panic!("{name}: {shown:?}") };
        assert_eq!(moves, name.starts_with("moves"), "{name}");
        let Pixels { width, height, rgba } = decoded(&shown);
        assert_eq!((width, height), (16, 8), "{name}");
        for (x, y, color) in [(1, 1, left), (14, 6, right)] {
            let at = (y * 16 + x) * 4;
            let near = color.iter().zip(&rgba[at..at + 3]).all(|(wanted, found)| wanted.abs_diff(*found) <= 6);
            assert!(near && rgba[at + 3] == 255, "{name}: {:?} at {x}, {y}", &rgba[at..at + 4]);
        }
    }
}

#[test]
fn png_is_read_in_each_of_its_depths() {
    let plain = |depth, color, between: &[Vec<u8>], lines: &[u8]| {
        decoded(&pixels(&png_file((2, 1), depth, color, false, between, lines))).rgba
    };
    assert_eq!(plain(1, GRAY, &[], &[0, 0b1000_0000]), [255, 255, 255, 255, 0, 0, 0, 255]);
    assert_eq!(plain(16, GRAY, &[], &[0, 0x80, 0xff, 0x20, 0x01]), [128, 128, 128, 255, 32, 32, 32, 255]);
    let deep = [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0];
    assert_eq!(plain(16, RGBA, &[], &deep), [1, 2, 3, 4, 5, 6, 7, 8]);
    let palette = [chunk(b"PLTE", &[9, 8, 7, 6, 5, 4]), chunk(b"tRNS", &[0, 128])];
    assert_eq!(plain(8, INDEXED, &palette, &[0, 1, 0]), [6, 5, 4, 128, 9, 8, 7, 0]);
    // Interlaced: of two by two pixels, one in the first pass, one in the sixth, two in the seventh.
    let woven = png_file((2, 2), 8, GRAY, true, &[], &[0, 10, 0, 20, 0, 30, 40]);
    let gray = |value: u8| [value, value, value, 255];
    assert_eq!(decoded(&pixels(&woven)).rgba, [gray(10), gray(20), gray(30), gray(40)].concat());
}

#[test]
fn a_large_picture_becomes_a_small_one() {
    // A megapixel and a half, each line half black, half white.
    let line = [&[0][..], &[0; 1000], &[255; 1000]].concat();
    let shown = pixels(&png_file((2000, 800), 8, GRAY, false, &[], &line.repeat(800)));
    let PictureView::Fits { width: 2000, height: 800, .. } = shown else { panic!("{shown:?}") };
    let Pixels { width, height, rgba } = decoded(&shown);
    assert_eq!((width, height), (1600, 640));
    assert_eq!((&rgba[..4], &rgba[rgba.len() - 4..]), (&[0, 0, 0, 255][..], &[255; 4][..]));
}

#[test]
fn noise_that_does_not_compress_is_shown_smaller() {
    let mut state = 1_u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let lines: Vec<u8> = (0..1500).flat_map(|_| [vec![0], (0..1500 * 3).map(|_| noise()).collect()].concat()).collect();
    let shown = pixels(&png_file((1500, 1500), 8, RGB, false, &[], &lines));
    let PictureView::Fits { png: Some(png), .. } = &shown else { panic!("{shown:?}") };
    assert!(png.len() <= MAX_PNG / 3 * 4 + 4, "{}", png.len());
    let Pixels { width, height, .. } = decoded(&shown);
    assert_eq!(width, height);
    assert!((500..1500).contains(&width), "{width}");
}

#[test]
fn pictures_that_would_fill_the_memory_are_refused_by_their_header() {
    for interlaced in [false, true] {
        for (depth, color) in [(1, GRAY), (16, RGBA)] {
            let bomb = png_file((23_170, 23_170), depth, color, interlaced, &[], &[0; 64]);
            assert_eq!((size(&bomb), pixels(&bomb)), (too_large(23_170, 23_170), too_large(23_170, 23_170)));
        }
    }
    // One pixel above the limit.
    assert_eq!(pixels(&png_file((4096, 4097), 8, GRAY, false, &[], &[0])), too_large(4096, 4097));
    let line = png_file((u32::MAX >> 1, 1), 8, GRAY, false, &[], &[0]);
    assert_eq!(pixels(&line), too_large(u32::MAX >> 1, 1));
}

#[test]
fn a_jpeg_is_judged_by_its_frame_header_wherever_that_is() {
    for (name, mark) in [("baseline.jpg", 0xc0), ("progressive.jpg", 0xc2), ("cmyk.jpg", 0xc0), ("gray.jpg", 0xc0)] {
        let mut bytes = named(name);
        let frame = bytes.windows(2).position(|pair| pair == [0xff, mark]).unwrap();
        bytes[frame + 5..frame + 9].fill(0xff);
        assert_eq!((size(&bytes), pixels(&bytes)), (too_large(65_535, 65_535), too_large(65_535, 65_535)), "{name}");
        // After profiles of a megabyte.
        let profile = [&[0xff, 0xe2, 0xff, 0xff][..], b"ICC_PROFILE\0", &[1; 0xffff - 14]].concat();
        let padded = [&bytes[..2], &profile.repeat(16), &bytes[2..]].concat();
        assert_eq!(size(&padded), too_large(65_535, 65_535), "{name}");
    }
}

#[test]
fn a_gif_is_judged_by_its_screen_and_by_its_frame() {
    let gif = |screen: (u16, u16), frame: (u16, u16)| {
        let two = |pair: (u16, u16)| [pair.0.to_le_bytes(), pair.1.to_le_bytes()].concat();
        let place = [b",\0\0\0\0".as_slice(), &two(frame), &[0]].concat();
        [b"GIF89a", two(screen).as_slice(), &[0x80, 0, 0, 10, 20, 30, 40, 50, 60], &place, b"\x02\x02\x44\x01\x00;"]
            .concat()
    };
    assert_eq!(pixels(&gif((65_535, 65_535), (65_535, 65_535))), too_large(65_535, 65_535));
    assert_eq!(pixels(&gif((65_535, 65_535), (1, 1))), too_large(65_535, 65_535));
    assert_eq!(pixels(&gif((1, 1), (65_535, 65_535))), too_large(65_535, 65_535));
    // Only the part on the screen is seen; the rest of the screen is clear.
    assert_eq!(decoded(&pixels(&gif((2, 2), (1, 1)))).rgba, [[10, 20, 30, 255], [0; 4], [0; 4], [0; 4]].concat());
    assert_eq!(pixels(b"GIF89a\x01\0\x01\0\0\0\0;"), PictureView::Unreadable);
}

/// Chunks of a WebP file, each padded to an even length.
fn webp(chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
    let mut body = b"WEBP".to_vec();
    for (name, data) in chunks {
        body.extend([name.as_slice(), &(data.len() as u32).to_le_bytes(), data, &vec![0; data.len() % 2]].concat());
    }
    [b"RIFF", (body.len() as u32).to_le_bytes().as_slice(), &body].concat()
}

#[test]
fn a_webp_is_judged_by_its_canvas_and_by_each_of_its_frames() {
    let three = |value: u32| value.to_le_bytes()[..3].to_vec();
    let canvas = |flags, side: u32| (b"VP8X", [vec![flags, 0, 0, 0], three(side - 1), three(side - 1)].concat());
    let lossy = |side: u16| {
        let side = side.to_le_bytes();
        (b"VP8 ", [b"\x10\0\0\x9d\x01\x2a".as_slice(), &side, &side, &[0; 16]].concat())
    };
    let lossless = |side: u32| {
        let bits = (side - 1) | (side - 1) << 14;
        (b"VP8L", [&[0x2f][..], &bits.to_le_bytes(), &[0; 16]].concat())
    };
    for hidden in [lossy(16_383), lossless(16_383)] {
        let small = webp(&[canvas(0, 1), hidden.clone()]);
        assert_eq!((size(&small), pixels(&small)), (too_large(16_383, 16_383), too_large(16_383, 16_383)));
        let mut behind = vec![canvas(0, 1)];
        behind.resize(200, (b"XMP ", vec![0]));
        behind.push(hidden.clone());
        assert_eq!(pixels(&webp(&behind)), too_large(16_383, 16_383));
        let still = webp(&[hidden]);
        assert_eq!(pixels(&still), too_large(16_383, 16_383));
        let place = [three(0), three(0), three(0), three(0), three(9), vec![0]].concat();
        let frame = (b"ANMF", [place, still[12..].to_vec()].concat());
        let moving = webp(&[canvas(2, 1), (b"ANIM", vec![0; 6]), frame]);
        assert_eq!(pixels(&moving), too_large(16_383, 16_383));
    }
    assert_eq!(size(&webp(&[canvas(0, 1 << 14)])), too_large(1 << 14, 1 << 14));
    // A frame that declares a larger size than its canvas.
    let wide = (b"ANMF", [three(0), three(0), three((1 << 24) - 1), three(0), three(9), vec![0]].concat());
    let moving = webp(&[canvas(2, 1), (b"ANIM", vec![0; 6]), wide.clone()]);
    assert_eq!(pixels(&moving), PictureView::Unreadable);
    let taller = (b"ANMF", [three(0), three(0), three(9999), three(9999), three(9), vec![0]].concat());
    assert_eq!(pixels(&webp(&[canvas(2, 1), (b"ANIM", vec![0; 6]), taller])), too_large(10_000, 10_000));
}

#[test]
fn text_and_profiles_that_unpack_to_too_much_are_left_packed() {
    let packed = deflated(&vec![0; 64 << 20]);
    let profile = [b"p\0\0".as_slice(), &packed].concat();
    let between = [chunk(b"iCCP", &profile), chunk(b"zTXt", &profile)];
    let bomb = png_file((1, 1), 8, GRAY, false, &between, &[0, 7]);
    assert_eq!(decoded(&pixels(&bomb)).rgba, [7, 7, 7, 255]);
}

#[test]
fn a_cut_or_damaged_file_gives_no_picture_at_worst() {
    let mut state = 7_u32;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    for (name, bytes) in SAMPLES {
        for end in 0..bytes.len() {
            drop(pixels(&bytes[..end]));
        }
        assert_eq!(pixels(&bytes[..bytes.len() / 4]), PictureView::Unreadable, "{name}");
        for _ in 0..500 {
            let mut damaged = bytes.to_vec();
            for _ in 0..=random(4) {
                let at = random(damaged.len());
                damaged[at] = random(256) as u8;
            }
            drop(pixels(&damaged));
        }
    }
    for nothing in [&b""[..], b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF\0\0\0\0WEBP", b"<svg/>"] {
        assert_eq!(pixels(nothing), PictureView::Unreadable);
    }
}
