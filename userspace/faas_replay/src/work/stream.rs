//! Memory bandwidth, after McCalpin's STREAM: copy, scale, add and triad over
//! three arrays, each larger than the L2 cache.

use std::hint::black_box;

/// Elements of a block, the smallest piece of work: one page of each array.
const BLOCK: usize = 512;

/// Size of the L2 cache in bytes if it is unknown.
const USUAL_L2: usize = 2 << 20;

/// The factor of scale and triad: with sqrt(2) - 1 the values of an array are
/// the same after each round of the four, instead of growing without limit.
const FACTOR: f64 = std::f64::consts::SQRT_2 - 1.0;

/// The operation on a block: STREAM's four, and before them the first touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    Fill,
    Copy,
    Scale,
    Add,
    Triad,
}

impl Kernel {
    fn next(self) -> Self {
        match self {
            Self::Fill | Self::Triad => Self::Copy,
            Self::Copy => Self::Scale,
            Self::Scale => Self::Add,
            Self::Add => Self::Triad,
        }
    }
}

/// The arrays, and the progress of the computation.
#[derive(Debug)]
pub struct Stream {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    kernel: Kernel,
    at: usize,
}

impl Default for Stream {
    fn default() -> Self {
        Self::new(l2_bytes())
    }
}

impl Stream {
    /// Arrays of twice `l2_bytes` each. The kernel allocates their memory at
    /// the first write, which is part of the work.
    fn new(l2_bytes: usize) -> Self {
        let blocks = (2 * l2_bytes).div_ceil(BLOCK * size_of::<f64>()).max(1);
        let array = || vec![0.0; blocks * BLOCK];
        Self {
            a: array(),
            b: array(),
            c: array(),
            kernel: Kernel::Fill,
            at: 0,
        }
    }

    /// Computes the next `count` blocks.
    pub fn blocks(&mut self, count: u64) {
        for _ in 0..count {
            self.block();
        }
        black_box(&mut self.a);
    }

    fn block(&mut self) {
        let range = self.at..self.at + BLOCK;
        let a = &mut self.a[range.clone()];
        let b = &mut self.b[range.clone()];
        let c = &mut self.c[range];
        for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
            match self.kernel {
                Kernel::Fill => (*a, *b, *c) = (1.0, 2.0, 0.0),
                Kernel::Copy => *c = *a,
                Kernel::Scale => *b = FACTOR * *c,
                Kernel::Add => *c = *a + *b,
                Kernel::Triad => *a = *b + FACTOR * *c,
            }
        }
        self.at += BLOCK;
        if self.at == self.a.len() {
            self.at = 0;
            self.kernel = self.kernel.next();
        }
    }
}

/// Size of this machine's L2 cache in bytes.
fn l2_bytes() -> usize {
    let path = "/sys/devices/system/cpu/cpu0/cache/index2/size";
    let text = std::fs::read_to_string(path).unwrap_or_default();
    parse_size(text.trim()).unwrap_or(USUAL_L2)
}

/// Parses a size in the kernel's format: `2048K`.
fn parse_size(text: &str) -> Option<usize> {
    let kib: usize = text.strip_suffix('K')?.parse().ok()?;
    (1..=1 << 20).contains(&kib).then_some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_larger_than_the_cache() {
        let stream = Stream::new(100_000);
        assert!(size_of_val(&*stream.a) >= 200_000);
        assert_eq!(parse_size("2048K"), Some(2 << 20));
        for other in ["", "K", "0K", "2M", "99999999999K"] {
            assert_eq!(parse_size(other), None, "{other}");
        }
    }

    #[test]
    fn a_round_of_the_four_preserves_the_values() {
        let mut stream = Stream::new(8192);
        let blocks = (stream.a.len() / BLOCK) as u64;
        stream.blocks(blocks);
        assert!(stream.b.iter().all(|value| *value == 2.0));
        stream.blocks(2 * blocks);
        assert!(stream.b.iter().all(|value| *value == FACTOR));
        stream.blocks(2 * blocks);
        let unchanged = |value: &f64| (value - 1.0).abs() < 1e-12;
        assert!(stream.a.iter().all(unchanged));
        assert_eq!((stream.kernel, stream.at), (Kernel::Copy, 0));
        stream.blocks(4000 * blocks);
        assert!(stream.a.iter().all(|value| (value - 1.0).abs() < 1e-9));
    }
}
