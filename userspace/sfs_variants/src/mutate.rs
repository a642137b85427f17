//! Generates mutants from the text of a file: copies with one small defect each.

use crate::rules;
use crate::source::{closing, functions, tokens, Function, Kind, Token};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// What is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// `<` and `<=`, `>` and `>=`, `==` and `!=` swapped.
    Comparison,
    /// `&&` and `||` swapped.
    Junction,
    /// The condition of an `if` or a `while` negated.
    Negation,
    /// A call whose result nobody uses left out.
    Call,
    /// A number, one higher.
    Increment,
    /// A number, doubled.
    Double,
    /// What a function of type bool returns inverted.
    Result,
    /// `+` and `-` swapped.
    Arithmetic,
}

/// A mutant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mutant {
    /// The file's name.
    pub file: String,
    /// The line of the change, from 1.
    pub line: usize,
    /// What is changed.
    pub change: Change,
    /// The text that is replaced, in bytes from the file's beginning.
    pub at: Range<usize>,
    /// What stands there instead.
    pub text: String,
    /// The function, or the constant.
    pub inside: String,
}

impl Mutant {
    /// A name that no other mutant of the same sources has; it can be a file's name.
    #[must_use]
    pub fn id(&self) -> String {
        let change = format!("{:?}", self.change).to_lowercase();
        format!("{}-{}-{}-{change}", self.file, self.line, self.at.start)
    }

    /// The text of the file with the mutation.
    #[must_use]
    pub fn apply(&self, original: &str) -> String {
        let (before, after) = (&original[..self.at.start], &original[self.at.end..]);
        format!("{before}{}{after}", self.text)
    }

    /// `was → is`, on one line.
    #[must_use]
    pub fn describe(&self, original: &str) -> String {
        let short = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let was = short(&original[self.at.clone()]);
        let line = original.lines().nth(self.line - 1).unwrap_or_default();
        match self.change {
            Change::Call => format!("{was} → left out"),
            Change::Negation | Change::Result => format!("{was} → {}", short(&self.text)),
            _ => format!("`{was}` → `{}` in {}", self.text, short(line)),
        }
    }
}

/// The mutants of a file, in the order of the text.
#[must_use]
pub fn mutants(file: &str, text: &str) -> Vec<Mutant> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let maker = Maker {
        file,
        text,
        tokens: &tokens,
    };
    for (n, token) in tokens.iter().enumerate() {
        if let Some(name) = token
            .defines
            .as_deref()
            .filter(|n| rules::takes_constant(n))
        {
            found.extend(maker.numbers(n, name));
        }
    }
    for function in functions(text, &tokens) {
        if rules::takes_function(&function.name) {
            maker.body(&function, &mut found);
        }
    }
    found.sort_by_key(|mutant| (mutant.at.start, mutant.at.end, mutant.change));
    found
}

struct Maker<'a> {
    file: &'a str,
    text: &'a str,
    tokens: &'a [Token],
}

impl Maker<'_> {
    fn of(&self, n: usize) -> &str {
        self.tokens.get(n).map_or("", |t| &self.text[t.at.clone()])
    }

    fn body(&self, function: &Function, found: &mut Vec<Mutant>) {
        let mut n = function.body.start + 1;
        while n + 1 < function.body.end {
            if self.tokens[n].defines.is_some() {
                n += 1;
                continue;
            }
            if self.begins_statement(n) && !rules::takes_statement(self.of(n)) {
                n = self.end_of_statement(n);
                continue;
            }
            if matches!(self.of(n), "if" | "while") && !self.takes_condition(n) {
                n = closing(self.text, self.tokens, n + 1).unwrap_or(n) + 1;
                continue;
            }
            found.extend(self.at_token(n, function));
            n += 1;
        }
    }

    fn at_token(&self, n: usize, function: &Function) -> Vec<Mutant> {
        let name = &function.name;
        match self.tokens[n].kind {
            Kind::Number if self.is_without_effect(n, function) => return Vec::new(),
            Kind::Number => return self.numbers(n, name),
            Kind::Text => return Vec::new(),
            Kind::Word | Kind::Sign => {}
        }
        let one = match self.of(n) {
            "if" | "while" => self.negated(n, name),
            "return" if function.is_bool => self.inverted(n, name),
            "+" | "-" if !self.is_binary(n) => None,
            sign if self.tokens[n].kind == Kind::Sign => swapped(sign).map(|(change, to)| {
                self.mutant(change, self.tokens[n].at.clone(), to.into(), name)
            }),
            _ => self.dropped(n, name),
        };
        one.into_iter().collect()
    }

    /// A number that nobody looks at: flags of newer kernels, or the only result of a function, which
    /// has one because BPF wants it so.
    fn is_without_effect(&self, n: usize, function: &Function) -> bool {
        let is_last = self.of(n - 1) == "," && self.of(n + 1) == ")";
        if is_last && !rules::takes_last_argument(self.caller(n)) {
            return true;
        }
        let is_result = |at: usize| {
            self.of(at) == "return" && self.of(at + 1) == self.of(n) && self.of(at + 2) == ";"
        };
        let mut returns = function.body.clone().filter(|&at| self.of(at) == "return");
        is_result(n - 1) && !function.is_bool && returns.all(is_result)
    }

    /// The function whose call a token is in.
    fn caller(&self, n: usize) -> &str {
        let mut depth = 0;
        let open = (0..n).rev().find(|&at| {
            depth += match self.of(at) {
                ")" => 1,
                "(" => -1,
                _ => 0,
            };
            depth < 0
        });
        open.map_or("", |at| self.of(at - 1))
    }

    fn mutant(&self, change: Change, at: Range<usize>, text: String, inside: &str) -> Mutant {
        Mutant {
            file: self.file.to_owned(),
            line: 1 + self.text[..at.start].matches('\n').count(),
            change,
            at,
            text,
            inside: inside.to_owned(),
        }
    }

    fn begins_statement(&self, n: usize) -> bool {
        matches!(self.of(n - 1), "{" | "}" | ";" | ")" | "else" | ":")
    }

    fn end_of_statement(&self, n: usize) -> usize {
        let mut at = n;
        while at < self.tokens.len() && self.of(at) != ";" {
            at = match self.of(at) {
                "(" => closing(self.text, self.tokens, at).unwrap_or(at),
                _ => at,
            } + 1;
        }
        at + 1
    }

    fn takes_condition(&self, n: usize) -> bool {
        let Some(end) = closing(self.text, self.tokens, n + 1) else {
            return false;
        };
        rules::takes_condition(&self.text[self.tokens[n + 1].at.end..self.tokens[end].at.start])
    }

    /// `if (c)` becomes `if (!(c))`.
    fn negated(&self, n: usize, name: &str) -> Option<Mutant> {
        let end = closing(self.text, self.tokens, n + 1)?;
        let at = self.tokens[n + 1].at.start..self.tokens[end].at.end;
        let text = format!("(!{})", &self.text[at.clone()]);
        Some(self.mutant(Change::Negation, at, text, name))
    }

    /// `return x;` becomes `return !(x);`.
    fn inverted(&self, n: usize, name: &str) -> Option<Mutant> {
        let end = self.end_of_statement(n) - 1;
        let at = self.tokens[n + 1].at.start..self.tokens[end].at.start;
        let text = format!("!({})", &self.text[at.clone()]);
        (n + 1 < end).then(|| self.mutant(Change::Result, at, text, name))
    }

    /// `f(x);` becomes `(void)0;`.
    fn dropped(&self, n: usize, name: &str) -> Option<Mutant> {
        let is_call = self.begins_statement(n) && self.of(n + 1) == "(";
        if !is_call || matches!(self.of(n), "for" | "switch" | "sizeof") {
            return None;
        }
        let end = closing(self.text, self.tokens, n + 1)?;
        let at = self.tokens[n].at.start..self.tokens[end].at.end;
        (self.of(end + 1) == ";").then(|| self.mutant(Change::Call, at, "(void)0".to_owned(), name))
    }

    fn numbers(&self, n: usize, name: &str) -> Vec<Mutant> {
        let token = &self.tokens[n];
        let Some((value, is_hex, suffix)) = number(&self.text[token.at.clone()]) else {
            return Vec::new();
        };
        let written = |value: u64| match is_hex {
            true => format!("{value:#x}{suffix}"),
            false => format!("{value}{suffix}"),
        };
        let of = |change, value| self.mutant(change, token.at.clone(), written(value), name);
        let mut found = Vec::new();
        found.extend(value.checked_add(1).map(|v| of(Change::Increment, v)));
        if value > 1 {
            found.extend(value.checked_mul(2).map(|v| of(Change::Double, v)));
        }
        found
    }

    /// A sign behind a value joins it with the next; others belong to the next.
    fn is_binary(&self, n: usize) -> bool {
        let before = &self.tokens[n - 1];
        match before.kind {
            Kind::Number => true,
            Kind::Word => self.of(n - 1) != "return",
            Kind::Text => false,
            // A type in brackets is no value, as in (s64)-1.
            Kind::Sign => match self.of(n - 1) {
                "]" => true,
                ")" => !matches!(
                    self.of(n - 2),
                    "s8" | "s16" | "s32" | "s64" | "u32" | "u64" | "int"
                ),
                _ => false,
            },
        }
    }
}

fn swapped(sign: &str) -> Option<(Change, &'static str)> {
    Some(match sign {
        "<" => (Change::Comparison, "<="),
        "<=" => (Change::Comparison, "<"),
        ">" => (Change::Comparison, ">="),
        ">=" => (Change::Comparison, ">"),
        "==" => (Change::Comparison, "!="),
        "!=" => (Change::Comparison, "=="),
        "&&" => (Change::Junction, "||"),
        "||" => (Change::Junction, "&&"),
        "+" => (Change::Arithmetic, "-"),
        "-" => (Change::Arithmetic, "+"),
        "+=" => (Change::Arithmetic, "-="),
        "-=" => (Change::Arithmetic, "+="),
        _ => return None,
    })
}

/// The value of a number, whether it is hexadecimal, and its suffix.
fn number(text: &str) -> Option<(u64, bool, &str)> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']);
    let suffix = &text[digits.len()..];
    match digits.strip_prefix("0x") {
        Some(hex) => Some((u64::from_str_radix(hex, 16).ok()?, true, suffix)),
        // A leading 0 would make it octal.
        None if digits.len() > 1 && digits.starts_with('0') => None,
        None => Some((digits.parse().ok()?, false, suffix)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str) -> Vec<(Change, String)> {
        let of = |mutant: Mutant| (mutant.change, mutant.apply(text));
        mutants("a.bpf.h", text).into_iter().map(of).collect()
    }

    fn of_body(body: &str) -> Vec<(Change, String)> {
        let around = |text: &str| format!("static void f(void) {{ {text} }}");
        let inner = |text: String| text[22..text.len() - 2].to_owned();
        let found = changed(&around(body));
        found
            .into_iter()
            .map(|(c, text)| (c, inner(text)))
            .collect()
    }

    fn has(found: &[(Change, String)], change: Change, text: &str) {
        let wanted = (change, text.to_owned());
        assert!(found.contains(&wanted), "{wanted:?} is not in {found:?}");
    }

    #[test]
    fn comparisons_junctions_and_conditions() {
        let found = of_body("if (a < b && c) d = e;");
        has(&found, Change::Comparison, "if (a <= b && c) d = e;");
        has(&found, Change::Junction, "if (a < b || c) d = e;");
        has(&found, Change::Negation, "if (!(a < b && c)) d = e;");
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn shifts_arrows_and_masks_stay() {
        assert_eq!(of_body("a = b->c << d & e >> g; h++; *i |= j;"), []);
    }

    #[test]
    fn only_calls_whose_result_is_unused_are_dropped() {
        let found = of_body("f(a); b = g(c); if (d) h((e)); else k(); return;");
        has(
            &found,
            Change::Call,
            "(void)0; b = g(c); if (d) h((e)); else k(); return;",
        );
        has(
            &found,
            Change::Call,
            "f(a); b = g(c); if (d) (void)0; else k(); return;",
        );
        has(
            &found,
            Change::Call,
            "f(a); b = g(c); if (d) h((e)); else (void)0; return;",
        );
        assert_eq!(found.len(), 4, "{found:?}");
    }

    #[test]
    fn numbers_keep_their_form() {
        let found = of_body("a = 0x10ULL; b = 0; c = 3u;");
        has(&found, Change::Increment, "a = 0x11ULL; b = 0; c = 3u;");
        has(&found, Change::Double, "a = 0x20ULL; b = 0; c = 3u;");
        has(&found, Change::Increment, "a = 0x10ULL; b = 1; c = 3u;");
        has(&found, Change::Double, "a = 0x10ULL; b = 0; c = 6u;");
        assert_eq!(found.len(), 5);
    }

    #[test]
    fn numbers_without_an_effect_stay() {
        let found =
            changed("int f(void)\n{\n\tif (a)\n\t\treturn 0;\n\tg(b(c), 0);\n\treturn 0;\n}");
        let changes: Vec<_> = found.into_iter().map(|(change, _)| change).collect();
        assert_eq!(changes, [Change::Negation, Change::Call, Change::Increment]);
        assert!(
            changed("int f(void)\n{\n\treturn scx_bpf_dsq_move_to_local(b(c), 0);\n}").is_empty()
        );
        let found =
            changed("int f(void)\n{\n\treturn a ? 1 : 0;\n}\nint g(void)\n{\n\treturn 1;\n}");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn only_signs_between_values_are_swapped() {
        let found = of_body("a = b + c - (d)[1]; e -= -c;");
        has(&found, Change::Arithmetic, "a = b - c - (d)[1]; e -= -c;");
        has(&found, Change::Arithmetic, "a = b + c + (d)[1]; e -= -c;");
        has(&found, Change::Arithmetic, "a = b + c - (d)[1]; e += -c;");
        assert_eq!(found.len(), 4, "{found:?}");
    }

    #[test]
    fn results_of_type_bool_are_inverted() {
        let found =
            changed("static bool f(void)\n{\n\treturn a;\n}\nstatic int g(void) { return a; }");
        assert_eq!(found.len(), 1);
        has(
            &found,
            Change::Result,
            "static bool f(void)\n{\n\treturn !(a);\n}\nstatic int g(void) { return a; }",
        );
    }

    #[test]
    fn statistics_and_debug_output_stay() {
        assert_eq!(
            of_body("count(a ? 1 : 2); if (debug) bpf_printk(\"%d\", a + 1);"),
            []
        );
        assert_eq!(
            changed("static void count_n(u32 c, u64 n) { if (n > 1) a += 1; }"),
            []
        );
        assert_eq!(
            changed("#define DSQ_FAIR 0x20000ULL\n#define NR_SHARED 8\n"),
            []
        );
        assert!(!rules::takes_file("counters.h") && rules::takes_file("fair.bpf.h"));
    }

    #[test]
    fn constants_are_changed_where_they_are_defined() {
        let found = changed("#define BURST (4 * NSEC_PER_MSEC) /* 1 */\n");
        has(
            &found,
            Change::Increment,
            "#define BURST (5 * NSEC_PER_MSEC) /* 1 */\n",
        );
        has(
            &found,
            Change::Double,
            "#define BURST (8 * NSEC_PER_MSEC) /* 1 */\n",
        );
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn lines_and_names_tell_mutants_apart() {
        let text = "#define A 2\nstatic void f(void)\n{\n\tif (b)\n\t\tc(1);\n}\n";
        let found = mutants("a.bpf.h", text);
        let mut names: Vec<_> = found.iter().map(Mutant::id).collect();
        let lines: Vec<_> = found.iter().map(|m| m.line).collect();
        assert_eq!(lines, [1, 1, 4, 5, 5]);
        names.dedup();
        assert_eq!(names.len(), 5);
        assert_eq!(found[3].describe(text), "c(1) → left out");
        assert_eq!(found[2].inside, "f");
    }
}
