//! The common part of all inputs: damage, noise, and a stream that is cut anywhere.

use fastrand::Rng;

/// Numbers at which boundaries are likely.
const SIZES: &[usize] = &[0, 1, 2, 7, 99, 100, 101, 255, 256, 257, 511, 512, 513, 1024, 4096];

pub(crate) fn size(rng: &mut Rng, most: usize) -> usize {
    let size = if rng.u8(..4) == 0 { rng.usize(..=most) } else { SIZES[rng.usize(..SIZES.len())] };
    size.min(most)
}

pub(crate) fn bytes(rng: &mut Rng, most: usize) -> Vec<u8> {
    let length = size(rng, most);
    // Bytes from a small set form structure more often than random bytes.
    let few = [0, b'\n', b' ', 0x1e, b'a', 0xff, b'"', b'\\'];
    let any = rng.bool();
    (0..length).map(|_| if any { rng.u8(..) } else { few[rng.usize(..few.len())] }).collect()
}

pub(crate) fn choice<'a, T>(rng: &mut Rng, of: &'a [T]) -> &'a T {
    &of[rng.usize(..of.len())]
}

/// Up to eight changes, mostly few: a bit, a byte, a piece removed, doubled, moved or inserted, the end cut off.
pub(crate) fn damage(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let most = rng.usize(1..=8);
    for _ in 0..rng.usize(1..=most) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.usize(..bytes.len());
        let end = at + rng.usize(..=(bytes.len() - at).min(64));
        match rng.u8(..7) {
            0 => bytes[at] ^= 1 << rng.u8(..8),
            1 => bytes[at] = rng.u8(..),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => {
                let piece: Vec<u8> = bytes.drain(at..end).collect();
                let to = rng.usize(..=bytes.len());
                bytes.splice(to..to, piece);
            }
            5 => {
                let piece = self::bytes(rng, 32);
                bytes.splice(at..at, piece);
            }
            _ => bytes.truncate(at),
        }
    }
}

/// Pieces of a stream, of varied sizes: one byte each, some, or nearly all.
pub(crate) fn pieces<'a>(rng: &mut Rng, mut bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let most = *choice(rng, &[1, 3, 64, 512, 700, 4096, 1 << 16]);
    // A long stream in single bytes takes long and shows no more than its beginning does.
    let most = if bytes.len() > 8192 { most.max(64) } else { most };
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(rng.usize(1..=most).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}
