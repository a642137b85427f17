//! Properties of any text.

use proptest::prelude::*;
use sfs_text::{line, lines, until_nul, word, wrap, LINE_CHARS, NAME_CHARS};

/// Whether a terminal or a log shows `text` as one line, in the order of its characters.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| {
        let formats = matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}');
        !c.is_control() && !formats
    })
}

/// Every byte at the start, in the middle, at the end, alone, after the beginnings of
/// characters of two, three and four bytes, and before a byte that continues one.
#[test]
fn every_byte_value_in_every_place() {
    for byte in 0..=u8::MAX {
        let places: [(&[u8], &[u8]); 9] = [
            (b"", b""),
            (b"", b"name"),
            (b"na", b"me"),
            (b"name", b""),
            (b"\xc3", b"name"),
            (b"\xe2\x82", b"name"),
            (b"\xf0\x9f\x98", b"name"),
            (b"name", b"\xbf"),
            (b"\x1b[", b"\n"),
        ];
        for (before, after) in places {
            let text = [before, &[byte], after].concat();
            let shown = line(&text, 100);
            assert!(is_plain(&shown), "{text:?}: {shown:?}");
            assert!(!shown.is_empty(), "{text:?} is not shown");
            let name = word(&text);
            assert!(is_plain(&name) && !name.contains(' '), "{text:?}: {name:?}");
        }
    }
}

/// Printable characters are themselves, all others are escaped.
#[test]
fn single_bytes() {
    for byte in 0..=u8::MAX {
        let expected = match byte {
            0 => "\\0".to_owned(),
            b'\t' => "\\t".to_owned(),
            b'\n' => "\\n".to_owned(),
            b'\r' => "\\r".to_owned(),
            b' '..=b'~' => char::from(byte).to_string(),
            1..=8 | 11 | 12 | 14..=31 | 0x7f => format!("\\u{{{byte:x}}}"),
            0x80..=0xff => format!("\\x{byte:02x}"),
        };
        assert_eq!(line([byte], 10), expected);
        if byte != b' ' {
            assert_eq!(word([byte]), expected);
        }
    }
    assert_eq!(word(" "), r"\u{20}");
    assert_eq!((line("", 10).as_str(), word("").as_str()), ("", "\"\""));
}

/// All characters that order others or are invisible.
#[test]
fn characters_without_a_shape_are_escaped() {
    let ranges = [
        ('\u{80}', '\u{9f}'), // C1: CSI in one character
        ('\u{ad}', '\u{ad}'),
        ('\u{61c}', '\u{61c}'),
        ('\u{180e}', '\u{180e}'),
        ('\u{200b}', '\u{200f}'),
        ('\u{2028}', '\u{202e}'),
        ('\u{2060}', '\u{206f}'),
        ('\u{fe00}', '\u{fe0f}'),
        ('\u{feff}', '\u{feff}'),
        ('\u{fff9}', '\u{fffb}'),
        ('\u{e000}', '\u{f8ff}'), // private
        ('\u{e0001}', '\u{e007f}'),
        ('\u{a0}', '\u{a0}'),
        ('\u{3000}', '\u{3000}'),
    ];
    for (first, last) in ranges {
        for c in first..=last {
            assert_eq!(line(c.to_string(), 20), c.escape_unicode().to_string());
        }
    }
    for letters in ["Größe", "функция", "関数", "دالة", "f('x')=\"\\\""] {
        assert_eq!(line(letters, 20), letters);
    }
}

#[test]
fn long_text_is_cut_after_a_whole_character() {
    assert_eq!(line("12345678", 8), "12345678");
    assert_eq!(line("123456789", 8), "12345...");
    assert_eq!(line(b"1234\xff789", 8), "1234...");
    assert_eq!(line("\u{1b}\u{1b}", 8), "...");
    assert_eq!(line("much", 0), "...");
    assert_eq!(word("x".repeat(1000)).chars().count(), NAME_CHARS);
    let long = vec![b'\n'; 100_000];
    assert!(line(long, LINE_CHARS).len() <= LINE_CHARS);
}

#[test]
fn a_dump_keeps_its_lines_and_each_has_the_prefix() {
    let dump = b"CPU states\n\n R f\nEXIT: \xff\x1b[2J[7] +5ms\n\tend  \r\n";
    let shown: Vec<String> = lines(dump, "dump: ").collect();
    let expected = [
        "dump: CPU states",
        "dump:",
        "dump:  R f",
        r"dump: EXIT: \xff\u{1b}[2J[7] +5ms",
        r"dump: \tend  \r",
    ];
    assert_eq!(shown, expected);
    assert_eq!(lines(b"", "> ").collect::<Vec<_>>(), [">"]);
}

#[test]
fn c_strings_end_at_their_first_nul() {
    let chars = |text: &[u8]| text.iter().map(|byte| *byte as _).collect::<Vec<_>>();
    assert_eq!(until_nul(&chars(b"name\0rest")), b"name");
    assert_eq!(until_nul(&chars(b"\xff\xfe")), b"\xff\xfe");
    assert_eq!(until_nul(&chars(b"\0")), b"");
}

proptest! {
    #[test]
    fn any_bytes_are_one_plain_line(text: Vec<u8>, most in 0..300_usize) {
        let shown = line(&text, most);
        prop_assert!(is_plain(&shown), "{shown:?}");
        prop_assert!(shown.chars().count() <= most.max(3));
        prop_assert_eq!(&line(&shown, most), &shown);
        let name = word(&text);
        prop_assert!(is_plain(&name) && !name.contains(' ') && !name.is_empty());
    }

    #[test]
    fn any_characters_are_one_plain_line(text: String) {
        let shown = line(&text, LINE_CHARS);
        prop_assert!(is_plain(&shown), "{shown:?}");
        prop_assert_eq!(&line(&shown, LINE_CHARS), &shown);
    }

    #[test]
    fn any_dump_keeps_its_number_of_lines(text: Vec<u8>) {
        let shown: Vec<String> = lines(&text, "> ").collect();
        let ends = text.strip_suffix(b"\n").unwrap_or(&text);
        prop_assert_eq!(shown.len(), ends.iter().filter(|byte| **byte == b'\n').count() + 1);
        for one in &shown {
            prop_assert!(one.starts_with('>') && is_plain(one), "{one:?}");
        }
    }
}

#[test]
fn lines_are_broken_between_words() {
    assert_eq!(wrap("one two three", 80, 4), "one two three");
    assert_eq!(wrap("one two three", 11, 4), "one two\n    three");
    assert_eq!(wrap("averylongword b", 8, 4), "averylongword\n    b");
    assert_eq!(wrap("", 8, 4), "");
}
