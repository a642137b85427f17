//! Splits C text into tokens, and finds the functions in it. It knows as much of C as mutants need:
//! comments, literals and directives are told apart from code, and macros are not expanded.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A name or a keyword.
    Word,
    /// A number.
    Number,
    /// A string or a character.
    Text,
    /// An operator or a bracket.
    Sign,
}

/// A token of code, or of the value of a plain `#define`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its place in the text, in bytes.
    pub at: Range<usize>,
    /// The name of the constant whose `#define` has it; `None`: it is code.
    pub defines: Option<String>,
}

/// A function with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// It returns a bool.
    pub is_bool: bool,
    /// Its body among the tokens, with both braces.
    pub body: Range<usize>,
}

/// Operators of more than one character, the longest first.
const LONG: [&str; 22] = [
    "<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=",
    "-=", "*=", "/=", "%=", "&=", "|=", "^=",
];

/// The tokens of a text.
#[must_use]
pub fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let (mut at, mut fresh) = (0, true);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with('#') && fresh {
            let end = at + directive_length(rest);
            found.extend(of_define(text, at, end));
            at = end;
            continue;
        }
        let (length, kind) = next(rest);
        if let Some(kind) = kind {
            fresh = false;
            found.push(Token {
                kind,
                at: at..at + length,
                defines: None,
            });
        }
        fresh |= rest[..length].contains('\n');
        at += length;
    }
    found
}

/// The length of what the text begins with, and its kind; `None`: a space or a comment.
fn next(rest: &str) -> (usize, Option<Kind>) {
    let first = rest.chars().next().expect("there is a rest");
    let up_to = |end: &str| rest.find(end).map_or(rest.len(), |n| n + end.len());
    let while_in = |of: fn(char) -> bool| rest.find(|c| !of(c)).unwrap_or(rest.len());
    if rest.starts_with("/*") {
        (up_to("*/"), None)
    } else if rest.starts_with("//") {
        (up_to("\n"), None)
    } else if first == '"' || first == '\'' {
        (literal_length(rest, first), Some(Kind::Text))
    } else if is_word(first) {
        let kind = if first.is_ascii_digit() {
            Kind::Number
        } else {
            Kind::Word
        };
        (while_in(is_word), Some(kind))
    } else if first.is_ascii_punctuation() {
        let long = LONG.iter().find(|sign| rest.starts_with(**sign));
        (long.map_or(1, |sign| sign.len()), Some(Kind::Sign))
    } else {
        (first.len_utf8(), None)
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn literal_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A directive ends with its line, unless a comment or a backslash goes on.
fn directive_length(rest: &str) -> usize {
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("\\\n") {
            at += 2;
        } else if rest[at..].starts_with('\n') {
            break;
        } else {
            at += next(&rest[at..]).0;
        }
    }
    at.min(rest.len())
}

/// The tokens of the value, if the directive from `from` to `to` is a `#define` without
/// parameters.
fn of_define(text: &str, from: usize, to: usize) -> Vec<Token> {
    let mut words = Vec::new();
    let mut at = from + 1;
    while at < to {
        let (length, kind) = next(&text[at..to]);
        if let Some(kind) = kind {
            words.push(Token {
                kind,
                at: at..at + length,
                defines: None,
            });
        }
        at += length;
    }
    let is_define = words.len() > 2 && &text[words[0].at.clone()] == "define";
    // A bracket right behind the name begins parameters.
    if !is_define || words[1].at.end == words[2].at.start {
        return Vec::new();
    }
    let name = text[words[1].at.clone()].to_owned();
    let value = words.into_iter().skip(2).map(|token| Token {
        defines: Some(name.clone()),
        ..token
    });
    value.collect()
}

/// The token that closes the bracket at `open`.
#[must_use]
pub fn closing(text: &str, tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (n, token) in tokens.iter().enumerate().skip(open) {
        match &text[token.at.clone()] {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(n);
                }
            }
            _ => {}
        }
    }
    None
}

/// The functions among the tokens.
#[must_use]
pub fn functions(text: &str, tokens: &[Token]) -> Vec<Function> {
    let of = |n: usize| &text[tokens[n].at.clone()];
    let mut found = Vec::new();
    let mut at = 0;
    // The first bracket since the end of the last declaration begins the parameters.
    let mut parameters = None;
    while at < tokens.len() {
        if tokens[at].defines.is_some() {
            at += 1;
            continue;
        }
        match of(at) {
            ";" => parameters = None,
            "(" if parameters.is_none() && at > 0 && of(at - 1) != "SEC" => parameters = Some(at),
            "{" => {
                let Some(end) = closing(text, tokens, at) else {
                    return found;
                };
                if let Some(open) = parameters.filter(|_| at > 0 && of(at - 1) != "=") {
                    found.push(function(text, tokens, open, at..end + 1));
                }
                parameters = None;
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

fn function(text: &str, tokens: &[Token], open: usize, body: Range<usize>) -> Function {
    let of = |n: usize| &text[tokens[n].at.clone()];
    // BPF_STRUCT_OPS(name, ...) and BPF_PROG(name, ...) have the name as the first argument.
    let is_macro = of(open - 1).starts_with("BPF_");
    Function {
        name: of(if is_macro { open + 1 } else { open - 1 }).to_owned(),
        is_bool: open >= 2 && of(open - 2) == "bool",
        body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|t| &text[t.at]).collect()
    }

    #[test]
    fn comments_and_directives_are_no_code() {
        let text =
            "a /* b < c */ <= \"d\\\"<\" // e\n#include <f.h>\n# define G(x) (x + \\\n 1)\nh";
        assert_eq!(words(text), ["a", "<=", "\"d\\\"<\"", "h"]);
    }

    #[test]
    fn the_value_of_a_define_is_known_as_such() {
        let text = "#define A (2 * B) /* over\ntwo lines */\nint c;";
        let found = tokens(text);
        assert_eq!(words(text), ["(", "2", "*", "B", ")", "int", "c", ";"]);
        assert_eq!(found[1].defines.as_deref(), Some("A"));
        assert_eq!(found[5].defines, None);
    }

    #[test]
    fn functions_are_found_by_their_bodies() {
        let text = "struct s { int a; };\nstatic bool f(int (*x)(void)) { if (x) { g(); } return 0; }\n\
                    SEC(\"syscall\") int BPF_PROG(h, int a)\n{ }\nstatic int t[] = { 1 };\nvoid d(int);\n\
                    void BPF_STRUCT_OPS(k, int a) { }\n";
        let all = tokens(text);
        let found = functions(text, &all);
        let names: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.is_bool)).collect();
        assert_eq!(names, [("f", true), ("h", false), ("k", false)]);
        assert_eq!(&text[all[found[0].body.start].at.clone()], "{");
        assert_eq!(&text[all[found[0].body.end - 1].at.clone()], "}");
    }
}
