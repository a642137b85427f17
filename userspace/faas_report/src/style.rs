//! The look of each scheduler: colour, kind of line and kind of mark.
//!
//! The name decides, so a scheduler has the same colour in every report and
//! figure. The colours also differ for colour-blind readers; with many rows,
//! lines and marks distinguish the rest. Variants of one scheduler, such as
//! `scx_sfs+fast`, share its colour.

use super::Comparison;
use std::fmt::Write;

/// The colours, for light and for dark backgrounds, each with a contrast of 3
/// or more. The first is for the kernel's default, the last for the bounds.
const COLOURS: [(&str, &str); 8] = [
    ("#6b7280", "#9ca3af"),
    ("#f4550b", "#fc6826"),
    ("#042f78", "#359eed"),
    ("#1da46c", "#31e7ac"),
    ("#f03dce", "#bf51ac"),
    ("#6a4d12", "#ebbf6a"),
    ("#3a22f5", "#7860f9"),
    ("#111827", "#f3f4f6"),
];

/// The kinds of lines: dashes and gaps.
const DASHES: [&str; 4] = ["none", "7 3", "2 3", "9 3 2 3"];

/// The number of kinds of marks.
const MARKS: usize = 6;

/// Known schedulers: name, colour, kind of line and of mark.
const KNOWN: [(&str, usize, usize, usize); 20] = [
    ("eevdf", 0, 0, 0),
    ("batch", 0, 1, 3),
    ("ps", 0, 2, 1),
    ("scx_sfs", 1, 0, 1),
    ("sfs", 1, 2, 0),
    ("sfs-no-hybrid", 1, 3, 2),
    ("scx_bpfland", 2, 0, 2),
    ("scx_p2dq", 2, 1, 4),
    ("gittins", 2, 2, 5),
    ("scx_flash", 3, 0, 3),
    ("scx_lavd", 3, 1, 5),
    ("las", 3, 2, 0),
    ("scx_cosmos", 4, 0, 4),
    ("scx_flow", 4, 1, 0),
    ("fifo", 5, 0, 5),
    ("rr", 5, 1, 2),
    ("scx_rusty", 6, 0, 0),
    ("scx_tickless", 6, 1, 3),
    ("srtf", 7, 1, 2),
    ("ideal", 7, 2, 4),
];

/// The look of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Index of its colour.
    pub colour: usize,
    /// Index of its kind of line.
    pub dash: usize,
    /// Index of its kind of mark.
    pub mark: usize,
}

impl Style {
    /// The look of `name` if no other row has it.
    pub fn of(name: &str) -> Self {
        let base = name.split(['+', '(']).next().unwrap_or(name);
        if let Some((_, colour, dash, mark)) = KNOWN.iter().find(|known| known.0 == base) {
            return Self {
                colour: *colour,
                dash: *dash,
                mark: *mark,
            };
        }
        // Grey and black are reserved for the kernel's default and the bounds.
        let hash = hash(base);
        Self {
            colour: 2 + hash % (COLOURS.len() - 3),
            dash: hash / 8 % DASHES.len(),
            mark: hash / 32 % MARKS,
        }
    }

    /// The CSS classes of its colour and kind of line.
    pub fn classes(&self) -> String {
        format!("k{} d{}", self.colour, self.dash)
    }
}

/// FNV-1a: a name's look does not depend on the version of a library.
fn hash(name: &str) -> usize {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    name.bytes().fold(2_166_136_261, step) as usize
}

/// The looks of all rows of a comparison, see [`styles_of`].
pub fn styles(comparison: &Comparison) -> Vec<Style> {
    let names = comparison
        .rows
        .iter()
        .map(|row| row.scheduler.name.as_str());
    styles_of(names)
}

/// The looks of several names, all different as long as there are enough. The
/// colour is always that of the name; of two names with the same look, the
/// later one gets another kind of line or mark.
pub fn styles_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Style> {
    let mut taken: Vec<Style> = Vec::new();
    for name in names {
        let wanted = Style::of(name);
        let others = (0..DASHES.len() * MARKS).map(|turn| Style {
            dash: (wanted.dash + turn) % DASHES.len(),
            mark: (wanted.mark + turn / DASHES.len()) % MARKS,
            ..wanted
        });
        let free = |style: &Style| !taken.contains(style);
        let style = others.into_iter().find(free).unwrap_or(wanted);
        taken.push(style);
    }
    taken
}

/// The outline of a mark of this kind around a point.
pub fn mark(kind: usize, (x, y): (f64, f64)) -> String {
    let points: &[(f64, f64)] = match kind % MARKS {
        1 => &[(-3.4, -3.4), (3.4, -3.4), (3.4, 3.4), (-3.4, 3.4)],
        2 => &[(0.0, -4.6), (4.4, 3.4), (-4.4, 3.4)],
        3 => &[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)],
        4 => &[(0.0, 4.6), (4.4, -3.4), (-4.4, -3.4)],
        5 => &[
            (-1.4, -4.6),
            (1.4, -4.6),
            (1.4, -1.4),
            (4.6, -1.4),
            (4.6, 1.4),
            (1.4, 1.4),
            (1.4, 4.6),
            (-1.4, 4.6),
            (-1.4, 1.4),
            (-4.6, 1.4),
            (-4.6, -1.4),
            (-1.4, -1.4),
        ],
        _ => {
            let left = x - 3.8;
            return format!("M{left:.1} {y:.1}a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0 -7.6 0Z");
        }
    };
    let mut path = String::new();
    for (index, (dx, dy)) in points.iter().enumerate() {
        let step = if index == 0 { "M" } else { "L" };
        // Writing to a String cannot fail.
        let _ = write!(path, "{step}{:.1} {:.1}", x + dx, y + dy);
    }
    path + "Z"
}

/// The style of pictures apart from the colours.
const SHAPES: &str = "\
text { font-size: 12px; } text.head { font-size: 12.5px; font-weight: 600; }
.line, .axis, .grid, .even { fill: none; } .grid { stroke-width: 1; } .axis { stroke-width: 1; }
.even { stroke-width: 1; stroke-dasharray: 3 3; }
.line { stroke-width: 1.8; stroke-linejoin: round; } .line.strong { stroke-width: 3; }
.line.thin { stroke-width: 1.2; } .line.faint { stroke-opacity: .55; }
.bar.pale { fill-opacity: .45; } .bar.area { fill-opacity: .3; stroke: none; }
.mark { stroke-width: 1; }
";

/// The style of pictures, light or dark.
pub fn pictures(dark: bool) -> String {
    let mut css = String::new();
    let (ink, dim, grid, paper, band) = if dark {
        ("#e6edf3", "#9198a1", "#30363d", "#0d1117", "#5c2b12")
    } else {
        ("#1b1f24", "#59636e", "#d8dee4", "#ffffff", "#fde3d3")
    };
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        css,
        "text {{ fill: {ink}; }} text.tick {{ fill: {dim}; }} .grid {{ stroke: {grid}; }} \
         .axis {{ stroke: {dim}; }} .even {{ stroke: {dim}; }} .mark {{ stroke: {paper}; }} \
         .paper {{ fill: {paper}; }} .band {{ fill: {band}; }}"
    );
    for (index, (light, on_dark)) in COLOURS.iter().enumerate() {
        let colour = if dark { on_dark } else { light };
        let _ = writeln!(
            css,
            ".line.k{index} {{ stroke: {colour}; }} \
             .bar.k{index}, .mark.k{index} {{ fill: {colour}; }}"
        );
    }
    css
}

/// The part of the style that is the same in light and dark: sizes and kinds of
/// lines.
pub fn shapes() -> String {
    let mut css = String::from(SHAPES);
    for (index, dash) in DASHES.iter().enumerate().skip(1) {
        let _ = writeln!(css, ".line.d{index} {{ stroke-dasharray: {dash}; }}");
    }
    css
}

/// The style of a picture in its own file: light, for paper and slides.
pub fn file() -> String {
    let font = "text { font-family: \"Noto Sans\", sans-serif; }\n";
    format!("{font}{}{}", shapes(), pictures(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A channel of linear RGB; `at` is its position in `#rrggbb`.
    fn linear(colour: &str, at: usize) -> f64 {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.03928 {
            value / 12.92
        } else {
            libm::pow((value + 0.055) / 1.055, 2.4)
        }
    }

    /// Relative luminance according to WCAG 2.
    fn luminance(colour: &str) -> f64 {
        let channel = |at| linear(colour, at);
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }

    #[test]
    fn every_colour_can_be_seen_on_its_paper() {
        for (light, dark) in COLOURS {
            assert!(contrast(light, "#ffffff") >= 3.0, "{light}");
            assert!(contrast(dark, "#0d1117") >= 3.0, "{dark}");
        }
    }

    /// Linear RGB as seen without one of the three kinds of cones (Machado,
    /// Oliveira and Fernandes, 2009: severity 1.0); the first entry is normal
    /// vision.
    const EYES: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    /// CIE L*a*b* (D65) of a colour as seen by some eyes.
    fn seen(colour: &str, eyes: &[[f64; 3]; 3]) -> [f64; 3] {
        let rgb = [1, 3, 5].map(|at| linear(colour, at));
        let dot = |row: &[f64; 3]| row.iter().zip(rgb).map(|(a, b)| a * b).sum::<f64>();
        let [red, green, blue] = [dot(&eyes[0]), dot(&eyes[1]), dot(&eyes[2])];
        let root = |value: f64| libm::cbrt(value.max(0.0));
        let x = root((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505);
        let y = root(0.2126 * red + 0.7152 * green + 0.0722 * blue);
        let z = root((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn all_eyes_tell_the_colours_apart() {
        for eyes in &EYES {
            for (index, one) in COLOURS.iter().enumerate() {
                for other in &COLOURS[..index] {
                    for (one, other) in [(one.0, other.0), (one.1, other.1)] {
                        let (a, b) = (seen(one, eyes), seen(other, eyes));
                        let square = |(a, b): (f64, f64)| (a - b) * (a - b);
                        let distance: f64 = a.into_iter().zip(b).map(square).sum();
                        // 2.3 is just noticeable.
                        assert!(distance >= 15.0 * 15.0, "{one} {other} {distance}");
                    }
                }
            }
        }
    }

    #[test]
    fn known_schedulers_look_different() {
        for (index, one) in KNOWN.iter().enumerate() {
            for other in &KNOWN[..index] {
                assert_ne!((one.1, one.2), (other.1, other.2), "{} {}", one.0, other.0);
            }
        }
    }

    #[test]
    fn a_name_has_one_colour_and_variants_share_it() {
        assert_eq!(Style::of("scx_new"), Style::of("scx_new"));
        assert_eq!(Style::of("scx_sfs+fast"), Style::of("scx_sfs"));
        for name in ["a", "scx_new", "x-2", ""] {
            assert!((2..7).contains(&Style::of(name).colour), "{name}");
        }
    }
}
