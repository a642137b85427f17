//! Drawing: axes and the elements of an SVG picture.
//!
//! Text is placed by its anchor only, so no font has to be measured.

use std::fmt::Write;

/// Escapes text for HTML and SVG.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// A logarithmic axis from a value to a larger one, on a range of pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogAxis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogAxis {
    /// An axis for values from `min` to `max`, widened to round numbers, on the
    /// pixels `from` to `to`. Values that are not positive count as tiny.
    pub fn new(min: f64, max: f64, from: f64, to: f64) -> Self {
        let min = min.max(1e-6);
        let (low, high) = (round_down(min), round_up(max.max(min)));
        // An axis needs some length even for a single value.
        let high = if high > low { high } else { low * 10.0 };
        Self::exact(low, high, from, to)
    }

    /// An axis from exactly `low` (above 0) to exactly `high` (above `low`).
    pub fn exact(low: f64, high: f64, from: f64, to: f64) -> Self {
        Self {
            low,
            high,
            from,
            to,
        }
    }

    /// The pixel of `value`; values outside the axis are clamped to its ends.
    pub fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = libm::log10(value / self.low) / libm::log10(self.high / self.low);
        self.from + (self.to - self.from) * share
    }

    /// The tick values: 1, 2 and 5 of each decade on short axes, 1 on longer
    /// ones, and 1 of every second decade on the longest.
    pub fn ticks(&self) -> Vec<f64> {
        self.ticks_up_to(8)
    }

    /// As [`Self::ticks`], but at most `most` if possible.
    pub fn ticks_up_to(&self, most: usize) -> Vec<f64> {
        let kinds: [(i32, &[f64]); 5] = [
            (1, &[1.0, 2.0, 5.0]),
            (1, &[1.0]),
            (2, &[1.0]),
            (3, &[1.0]),
            (4, &[1.0]),
        ];
        let all = kinds.map(|(decades, steps)| self.marks(decades, steps));
        let enough = |ticks: &&Vec<f64>| (2..=most).contains(&ticks.len());
        all.iter().find(enough).unwrap_or(&all[0]).clone()
    }

    /// The `steps` of every `every`-th decade within the axis.
    fn marks(&self, every: i32, steps: &[f64]) -> Vec<f64> {
        let first = libm::floor(libm::log10(self.low)) as i32;
        let candidates = (first..first + 20)
            .filter(|decade| decade.rem_euclid(every) == 0)
            .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
        // A small tolerance for powers that are not exact.
        let inside = |tick: &f64| *tick > self.low * 0.999 && *tick < self.high * 1.001;
        candidates.filter(inside).collect()
    }
}

/// The largest 1, 2 or 5 x 10^n that is not above `value`.
fn round_down(value: f64) -> f64 {
    let decade = 10f64.powi(libm::floor(libm::log10(value)) as i32);
    let steps = [5.0, 2.0, 1.0].into_iter().map(|step| step * decade);
    steps
        .into_iter()
        .find(|step| *step <= value * 1.000_001)
        .unwrap_or(decade)
}

/// The smallest 1, 2 or 5 x 10^n that is not below `value`.
fn round_up(value: f64) -> f64 {
    let decade = 10f64.powi(libm::floor(libm::log10(value)) as i32);
    let steps = [1.0, 2.0, 5.0].into_iter().map(|step| step * decade);
    steps
        .into_iter()
        .find(|step| *step >= value * 0.999_999)
        .unwrap_or(10.0 * decade)
}

/// A linear axis from a value to a larger one, on a range of pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearAxis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LinearAxis {
    /// An axis from `low` to `high`, on the pixels `from` to `to`.
    pub fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            low,
            high,
            from,
            to,
        }
    }

    /// The pixel of `value`; values outside the axis are clamped to its ends.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value.clamp(self.low, self.high) - self.low) / (self.high - self.low);
        self.from + (self.to - self.from) * share
    }

    /// The smallest multiple of the tick distance that is not below its upper
    /// end, with about `most` ticks.
    pub fn round_high(&self, most: u32) -> f64 {
        let step = round_up((self.high - self.low) / f64::from(most.max(1)));
        libm::ceil(self.high / step - 1e-9) * step
    }

    /// Its upper end.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Round values for ticks, at most `most` + 1.
    pub fn ticks(&self, most: u32) -> Vec<f64> {
        let step = round_up((self.high - self.low) / f64::from(most.max(1)));
        let first = libm::ceil(self.low / step - 1e-9) as i64;
        let last = libm::floor(self.high / step + 1e-9) as i64;
        (first..=last).map(|index| index as f64 * step).collect()
    }
}

/// A picture under construction.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Its name: letters, digits and hyphens.
    pub name: String,
    /// A short title.
    pub title: String,
    /// A description for readers who cannot see it.
    pub description: String,
    width: f64,
    height: f64,
    body: String,
}

impl Picture {
    /// An empty picture of this size in pixels.
    pub fn new(name: &str, (width, height): (f64, f64), title: &str, description: &str) -> Self {
        Self {
            name: name.to_string(),
            title: title.to_string(),
            description: description.to_string(),
            width,
            height,
            body: String::new(),
        }
    }

    /// Width and height in pixels.
    pub fn size(&self) -> (f64, f64) {
        (self.width, self.height)
    }

    /// A straight line of a CSS class.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// Text of a CSS class at a point; `anchor` is start, middle or end.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: &str, text: &str) {
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            at.0,
            at.1,
            escape(text)
        );
    }

    /// Text that reads upwards, centred on a point.
    pub fn upright(&mut self, class: &str, at: (f64, f64), text: &str) {
        let _ = writeln!(
            self.body,
            "<text class=\"{class}\" transform=\"translate({:.1} {:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
            at.0,
            at.1,
            escape(text)
        );
    }

    /// A line through points, with a title shown on hover.
    pub fn curve(&mut self, class: &str, points: &[(f64, f64)], title: &str) {
        let mut path = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { "M" } else { "L" });
        }
        self.path(class, &path, title);
    }

    /// Any path, with a title.
    pub fn path(&mut self, class: &str, path: &str, title: &str) {
        let _ = writeln!(
            self.body,
            "<path class=\"{class}\" d=\"{path}\"><title>{}</title></path>",
            escape(title)
        );
    }

    /// A bar between two x, of a height around a y, with a title.
    pub fn bar(&mut self, class: &str, x: (f64, f64), y: f64, height: f64, title: &str) {
        let (left, right) = (x.0.min(x.1), x.0.max(x.1));
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
             height=\"{height:.1}\"><title>{}</title></rect>",
            y - height / 2.0,
            (right - left).max(0.5),
            escape(title)
        );
    }

    /// Inserts `other` into this picture, its upper left corner at a point.
    pub fn place(&mut self, other: &Self, at: (f64, f64)) {
        let _ = write!(
            self.body,
            "<g transform=\"translate({:.1} {:.1})\">\n{}</g>\n",
            at.0, at.1, other.body
        );
    }

    /// Begins a group with a CSS class.
    pub fn begin(&mut self, class: &str) {
        let _ = writeln!(self.body, "<g class=\"{class}\">");
    }

    /// Ends the group of [`Self::begin`].
    pub fn end(&mut self) {
        self.body.push_str("</g>\n");
    }

    /// Its content, without the element `svg`.
    pub fn content(&self) -> &str {
        &self.body
    }

    /// The picture for a page that has the style.
    pub fn inline(&self) -> String {
        let name = &self.name;
        format!(
            "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{name}-t {name}-d\">\n\
             <title id=\"{name}-t\">{}</title>\n<desc id=\"{name}-d\">{}</desc>\n{}</svg>\n",
            self.width,
            self.height,
            escape(&self.title),
            escape(&self.description),
            self.body
        )
    }

    /// The picture as a separate file, with its style and a background.
    pub fn file(&self, style: &str) -> String {
        let (width, height) = self.size();
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n<desc>{}</desc>\n\
             <style>\n{style}</style>\n<rect class=\"paper\" width=\"{width}\" \
             height=\"{height}\"/>\n{}</svg>\n",
            escape(&self.title),
            escape(&self.description),
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_and_ends_at_round_numbers() {
        let axis = LogAxis::new(3.3, 812.0, 0.0, 300.0);
        assert_eq!((axis.at(2.0), axis.at(1000.0)), (0.0, 300.0));
        assert_eq!((axis.at(0.0), axis.at(1e9)), (0.0, 300.0));
        assert_eq!(axis.ticks(), [10.0, 100.0, 1000.0]);
        let short = LogAxis::new(0.3, 1.9, 0.0, 1.0);
        let ticks: Vec<String> = short
            .ticks_up_to(8)
            .iter()
            .map(|tick| format!("{tick:.1}"))
            .collect();
        assert_eq!(ticks, ["0.2", "0.5", "1.0", "2.0"]);
    }

    #[test]
    fn an_axis_for_one_value_has_a_length() {
        let axis = LogAxis::new(1.0, 1.0, 0.0, 100.0);
        assert_eq!(axis.at(1.0), 0.0);
        assert!(axis.ticks().len() > 1);
        assert!(LogAxis::new(0.0, 0.0, 0.0, 1.0).at(0.0).is_finite());
    }

    #[test]
    fn there_are_at_most_the_requested_ticks() {
        let axis = LogAxis::exact(0.1, 1e6, 0.0, 1.0);
        assert_eq!(axis.ticks_up_to(8).len(), 8);
        assert_eq!(axis.ticks_up_to(4), [1.0, 100.0, 10_000.0, 1_000_000.0]);
        let seconds = LinearAxis::new(0.0, 9.3, 0.0, 93.0);
        assert_eq!(seconds.ticks(5), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(seconds.round_high(5), 10.0);
        assert_eq!((seconds.at(4.65), seconds.at(99.0)), (46.5, 93.0));
        assert_eq!(LinearAxis::new(1.0, 1.0, 0.0, 9.0).at(1.0), 0.0);
    }

    #[test]
    fn a_file_is_self_contained() {
        let mut inner = Picture::new("b", (10.0, 10.0), "", "");
        inner.text("tick", (1.0, 2.0), "end", "5");
        let mut picture = Picture::new("a", (20.0, 10.0), "T & t", "D");
        picture.place(&inner, (10.0, 0.0));
        let file = picture.file(".tick { fill: red; }\n");
        assert!(file.starts_with("<svg xmlns="), "{file}");
        assert!(file.contains("<title>T &amp; t</title>"), "{file}");
        assert!(file.contains("translate(10.0 0.0)"), "{file}");
        assert!(!picture.inline().contains("xmlns"));
        assert!(picture.inline().contains("aria-labelledby=\"a-t a-d\""));
    }

    #[test]
    fn text_cannot_break_out() {
        assert_eq!(escape("<a \"b\"&c>"), "&lt;a &quot;b&quot;&amp;c&gt;");
    }
}
