//! Scales a picture down line by line. Each pixel is the mean of the area that it covers.

use super::Pixels;

/// The sums of red, green and blue, each times its opacity, and of the opacity itself.
type Sum = [u64; 4];

pub(super) struct Shrink {
    width: u64,
    height: u64,
    small: (u64, u64),
    /// Input lines received so far.
    came: u64,
    /// The last input line, scaled to the output's width.
    across: Vec<Sum>,
    /// The unfinished output line.
    down: Vec<Sum>,
    rgba: Vec<u8>,
}

impl Shrink {
    /// Scales the longer side down to `side`, if it is more.
    pub(super) fn new(width: u32, height: u32, side: u32) -> Self {
        let (width, height, side) = (u64::from(width), u64::from(height), u64::from(side));
        let longer = width.max(height).max(1);
        let small = |edge: u64| if longer > side { (edge * side / longer).max(1) } else { edge };
        let small = (small(width), small(height));
        let line = vec![Sum::default(); small.0 as usize];
        Self { width, height, small, came: 0, across: line.clone(), down: line, rgba: Vec::new() }
    }

    /// Takes the next input line, in full width.
    pub(super) fn line(&mut self, rgba: &[u8]) {
        if self.came >= self.height {
            return;
        }
        if self.small == (self.width, self.height) {
            self.rgba.extend_from_slice(rgba);
        } else {
            self.squeeze(rgba);
            self.stack();
        }
        self.came += 1;
    }

    /// Scales a line. Lengths are in units of 1 / (`width * small`) of a line, in which pixels of both sizes are whole.
    fn squeeze(&mut self, rgba: &[u8]) {
        self.across.fill(Sum::default());
        let (mut at, mut edge) = (0, self.width);
        for (begin, pixel) in (0..).step_by(self.small.0 as usize).zip(rgba.chunks_exact(4)) {
            let opacity = u64::from(pixel[3]);
            let sum = [0, 1, 2].map(|part| u64::from(pixel[part]) * opacity);
            let sum = [sum[0], sum[1], sum[2], opacity];
            let end = begin + self.small.0;
            add(&mut self.across[at], &sum, end.min(edge) - begin);
            if end >= edge {
                at += 1;
                if end > edge && at < self.across.len() {
                    add(&mut self.across[at], &sum, end - edge);
                }
                edge += self.width;
            }
        }
    }

    /// Adds the scaled line to the output, the same way from top to bottom.
    fn stack(&mut self) {
        let begin = self.came * self.small.1;
        let end = begin + self.small.1;
        let edge = (begin / self.height + 1) * self.height;
        for (down, across) in self.down.iter_mut().zip(&self.across) {
            add(down, across, end.min(edge) - begin);
        }
        if end >= edge {
            let area = self.width * self.height;
            self.rgba.extend(self.down.iter().flat_map(|sum| mean(sum, area)));
            for (down, across) in self.down.iter_mut().zip(&self.across) {
                *down = across.map(|part| part * (end - edge));
            }
        }
    }

    /// The small picture. `None` if lines are missing.
    pub(super) fn finish(self) -> Option<Pixels> {
        let whole = self.came == self.height && self.rgba.len() as u64 == self.small.0 * self.small.1 * 4;
        whole.then_some(Pixels { width: self.small.0 as u32, height: self.small.1 as u32, rgba: self.rgba })
    }
}

fn add(to: &mut Sum, sum: &Sum, times: u64) {
    for (to, part) in to.iter_mut().zip(sum) {
        *to += part * times;
    }
}

fn mean(sum: &Sum, area: u64) -> [u8; 4] {
    let rounded = |part: u64, of: u64| (part + of / 2).checked_div(of).map_or(0, |mean| mean.min(255) as u8);
    let [red, green, blue, opacity] = *sum;
    [rounded(red, opacity), rounded(green, opacity), rounded(blue, opacity), rounded(opacity, area)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shrunk(width: u32, height: u32, side: u32, rgba: &[u8]) -> Pixels {
        let mut shrink = Shrink::new(width, height, side);
        rgba.chunks_exact(width as usize * 4).for_each(|line| shrink.line(line));
        shrink.finish().unwrap()
    }

    #[test]
    fn a_small_picture_stays_as_it_is() {
        let rgba = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(shrunk(2, 1, 2, &rgba), Pixels { width: 2, height: 1, rgba: rgba.to_vec() });
    }

    #[test]
    fn a_pixel_is_the_mean_of_its_area() {
        let gray = |value: u8| [value, value, value, 255];
        let three = [gray(0), gray(90), gray(240)].concat();
        // Each output pixel covers one and a half: (0 * 2 + 90) / 3, (90 + 240 * 2) / 3.
        assert_eq!(shrunk(3, 1, 2, &three).rgba, [gray(30), gray(190)].concat());
        assert_eq!(shrunk(1, 3, 2, &three).rgba, [gray(30), gray(190)].concat());
        let four = [gray(10), gray(20), gray(30), gray(40)].concat();
        assert_eq!(shrunk(2, 2, 1, &four), Pixels { width: 1, height: 1, rgba: gray(25).to_vec() });
    }

    #[test]
    fn transparent_pixels_do_not_change_colours() {
        let half = [[200, 0, 0, 255], [0, 255, 255, 0]].concat();
        assert_eq!(shrunk(2, 1, 1, &half).rgba, [200, 0, 0, 128]);
    }

    #[test]
    fn a_picture_of_any_shape_keeps_a_pixel_each_way() {
        let line = vec![7; 4 * 100_000];
        let pixels = shrunk(100_000, 1, 1600, &line);
        assert_eq!((pixels.width, pixels.height, pixels.rgba.len()), (1600, 1, 6400));
        assert!(pixels.rgba.iter().all(|part| *part == 7));
    }

    #[test]
    fn missing_lines_are_noticed() {
        assert!(Shrink::new(1, 2, 10).finish().is_none());
        let mut shrink = Shrink::new(4, 4, 2);
        (0..9).for_each(|_| shrink.line(&[1; 16]));
        assert_eq!(shrink.finish().map(|pixels| pixels.rgba.len()), Some(16));
    }
}
