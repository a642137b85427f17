//! Colours and characters.

use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::bar::{Set as Bars, NINE_LEVELS};
use ratatui::symbols::border::{Set as Border, PLAIN};

/// How things look.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    /// Ordinary text.
    pub plain: Style,
    /// Titles.
    pub title: Style,
    /// What is chosen.
    pub chosen: Style,
    /// What needs attention.
    pub alarm: Style,
    /// Graphs.
    pub graph: Style,
    is_unicode: bool,
}

/// Graphs in ASCII.
const ASCII_BARS: Bars<'static> = Bars {
    full: "#",
    seven_eighths: "#",
    three_quarters: "*",
    five_eighths: "*",
    half: "+",
    three_eighths: "-",
    one_quarter: "-",
    one_eighth: ".",
    empty: " ",
};

/// Lines in ASCII.
const ASCII_BORDER: Border<'static> = Border {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

impl Theme {
    /// Returns the theme with or without colours, for a terminal that shows Unicode or ASCII
    /// only.
    pub fn new(is_coloured: bool, is_unicode: bool) -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let coloured = |style: Style, colour| match is_coloured {
            true => style.fg(colour),
            false => style,
        };
        Self {
            plain,
            title: bold,
            chosen: plain.add_modifier(Modifier::REVERSED),
            alarm: coloured(bold, Color::Red),
            graph: coloured(plain, Color::Cyan),
            is_unicode,
        }
    }

    /// Returns the characters of graphs.
    pub fn bars(self) -> Bars<'static> {
        if self.is_unicode {
            NINE_LEVELS
        } else {
            ASCII_BARS
        }
    }

    /// Returns the lines around the help.
    pub fn border(self) -> Border<'static> {
        if self.is_unicode {
            PLAIN
        } else {
            ASCII_BORDER
        }
    }

    /// Returns whether the terminal shows Unicode, by the variables of the locale.
    pub fn is_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
        let set = |name: &&str| variable(name).is_some_and(|value| !value.is_empty());
        let first = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find(set);
        let value = first.and_then(variable).unwrap_or_default();
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_tells_the_characters() {
        let with = |pairs: &[(&str, &str)]| {
            Theme::is_unicode(|name| {
                let pair = pairs.iter().find(|(it, _)| *it == name);
                pair.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(with(&[("LANG", "en_GB.UTF-8")]));
        assert!(with(&[("LC_ALL", ""), ("LANG", "C.utf8")]));
        assert!(!with(&[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")]));
        assert!(!with(&[]));
    }

    #[test]
    fn without_colours_there_are_none() {
        let theme = Theme::new(false, true);
        for style in [
            theme.plain,
            theme.title,
            theme.chosen,
            theme.alarm,
            theme.graph,
        ] {
            assert_eq!((style.fg, style.bg), (None, None));
        }
        assert!(Theme::new(true, true).alarm.fg.is_some());
    }
}
