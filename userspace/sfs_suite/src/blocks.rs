//! The output of a guest, case by case.

use crate::count::Count;
use std::collections::HashSet;
use std::ops::AddAssign;

/// A tick, in ms: a task may not wait longer beside an idle CPU that it may use.
const LONGEST_WASTE_MS: f64 = 4.0;

/// The cases in which CPU time may be wasted: `tests/waste`.
#[derive(Debug, Clone, Default)]
pub struct Allowed(HashSet<String>);

impl Allowed {
    /// From the list: one a line, as `NAME: why`, `NAME/share: why`, `NAME/waits: why` or
    /// `NAME/kernel: why`.
    pub fn parse(list: &str) -> Self {
        let names = list.lines().filter_map(|line| line.split(':').next());
        Self(names.map(str::to_string).collect())
    }

    fn has(&self, name: &str, what: &str) -> bool {
        self.0.contains(&format!("{name}{what}"))
    }
}

/// Puts the lines of TAP together to whole cases, so that those of several guests do not mix.
/// Fails a case that passed, but in which a task waited longer than a tick beside an idle
/// CPU, or that says "too much wasted", "waited too long" or "the kernel warned", unless the list
/// allows it.
#[derive(Debug)]
pub struct Blocks<'a> {
    allowed: &'a Allowed,
    block: Vec<String>,
    /// The current case, if it passed.
    name: Option<String>,
    /// The counts so far; after [`Blocks::finish`] those of the cases that were seen, if the guest
    /// has told none.
    pub count: Option<Count>,
    /// The cases that were seen to their end.
    seen: Count,
    /// Cases that failed here although they had passed in the guest.
    pub worse: usize,
    /// The names of all cases that failed.
    pub failed: Vec<String>,
}

impl<'a> Blocks<'a> {
    /// For one guest.
    pub fn new(allowed: &'a Allowed) -> Self {
        Self {
            allowed,
            block: Vec::new(),
            name: None,
            count: None,
            seen: Count::default(),
            worse: 0,
            failed: Vec::new(),
        }
    }

    /// Takes a line, without its end. Returns the lines that are to be printed: those of a
    /// whole case, if this line is its last one. The guest's count is kept instead.
    pub fn take(&mut self, line: &str) -> Vec<String> {
        if let Some(mut count) = Count::parse(line) {
            count.fail(self.worse);
            self.count.get_or_insert_default().add_assign(count);
            return Vec::new();
        }
        if line.starts_with("ok ") || line.starts_with("not ok ") {
            self.name = passed(line).map(str::to_string);
        }
        let mut line = line.to_string();
        let verdict = self.verdict(&line);
        if let Some(note) = verdict {
            line.push_str(note);
            self.fail();
        }
        let last = is_last(&line);
        self.block.push(line);
        if last {
            self.flush()
        } else {
            Vec::new()
        }
    }

    /// The lines of a case that the guest has not come to the end of. Such a case has failed.
    pub fn finish(&mut self) -> Vec<String> {
        let rest = std::mem::take(&mut self.block);
        let seen = &mut self.seen;
        self.count.get_or_insert_with(|| {
            seen.failed += usize::from(rest.iter().any(|line| case(line).is_some()));
            *seen
        });
        rest
    }

    /// If the line says that the current case fails: what is to be added to it.
    fn verdict(&self, line: &str) -> Option<&'static str> {
        let name = self.name.as_deref().unwrap_or_default();
        let note = line.strip_prefix("#   ")?;
        if let Some(waste) = note.strip_prefix("under scx_sfs: ") {
            let longest = waste.strip_suffix(" at once")?.rsplit(' ').next()?;
            let long = longest.parse().is_ok_and(|ms: f64| ms > LONGEST_WASTE_MS);
            return (long && !self.allowed.has(name, "")).then_some(", more than a tick");
        }
        let fails = [
            ("too much wasted: ", "/share"),
            ("waited too long: ", "/waits"),
            ("the kernel warned: ", "/kernel"),
        ]
        .iter()
        .any(|(begin, what)| note.starts_with(begin) && !self.allowed.has(name, what));
        fails.then_some("")
    }

    /// Fails the current case, if it passed.
    fn fail(&mut self) {
        let first = self.block.first_mut().filter(|line| line.starts_with("ok"));
        if let (Some(line), Some(_)) = (first, &self.name) {
            line.insert_str(0, "not ");
            self.worse += 1;
        }
    }

    fn flush(&mut self) -> Vec<String> {
        let block = std::mem::take(&mut self.block);
        let first = block.first().map(String::as_str).unwrap_or_default();
        match case(first) {
            Some((_, false)) => self.seen.failed += 1,
            Some(_) if first.contains(" # SKIP ") => self.seen.skipped += 1,
            Some(_) => self.seen.passed += 1,
            None => {}
        }
        self.failed
            .extend(first.strip_prefix("not ").and_then(passed).map(Into::into));
        block
    }
}

/// The name in `ok 7 - NAME # ...`.
fn passed(line: &str) -> Option<&str> {
    line.strip_prefix("ok ")?.split(' ').nth(2)
}

/// The verdict on a case, in `ok 7 - NAME # ...` or `not ok 7 - NAME # ...`: the name, and
/// whether it passed.
pub fn case(line: &str) -> Option<(&str, bool)> {
    match line.strip_prefix("not ") {
        Some(line) => passed(line).map(|name| (name, false)),
        None => passed(line).map(|name| (name, true)),
    }
}

/// Whether a line ends a case: its time, or a line outside of cases.
fn is_last(line: &str) -> bool {
    let of_a_case = ["#", "ok", "not ok", "TAP"];
    is_time(line) || !of_a_case.iter().any(|begin| line.starts_with(begin))
}

/// Whether a line is the time that a case took: `#   1.0 s`.
fn is_time(line: &str) -> bool {
    let seconds = line
        .strip_prefix("#   ")
        .and_then(|line| line.strip_suffix(" s"));
    seconds.is_some_and(|text| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The printed part of these lines, and the counts after them.
    fn pass<'a>(allowed: &'a Allowed, lines: &[&str]) -> (Vec<String>, Blocks<'a>) {
        let mut blocks = Blocks::new(allowed);
        let printed = lines.iter().flat_map(|line| blocks.take(line)).collect();
        (printed, blocks)
    }

    #[test]
    fn cases_are_passed_on_whole() {
        let allowed = Allowed::default();
        let mut blocks = Blocks::new(&allowed);
        assert!(blocks.take("TAP version 14").is_empty());
        assert_eq!(blocks.take("1..2"), ["TAP version 14", "1..2"]);
        assert!(blocks.take("ok 1 - a # about").is_empty());
        assert!(blocks.take("#   a note of 5 s").is_empty());
        assert_eq!(blocks.take("#   1.0 s").len(), 3);
        assert!(blocks.take("not ok 2 - b # about").is_empty());
        assert_eq!(blocks.take("#   0.5 s").len(), 2);
        assert_eq!(blocks.failed, ["b"]);
        assert!(blocks.take("1 passed, 1 failed, 0 skipped").is_empty());
        assert_eq!(blocks.count, Count::parse("1 passed, 1 failed, 0 skipped"));
        assert!(blocks.take("ok 3 - c # about").is_empty());
        assert_eq!(blocks.finish(), ["ok 3 - c # about"]);
    }

    #[test]
    fn waste_fails_a_case_once() {
        let long = "#   under scx_sfs: 20.00 ms of idle CPUs wasted in 100 ms, 4.01 at once";
        let lines = [
            "ok 1 - slow # about",
            long,
            "#   too much wasted: 9 ms",
            "#   1.0 s",
            "ok 2 - quick # about",
            "#   under scx_sfs: 20.00 ms of idle CPUs wasted in 100 ms, 4.00 at once",
            "#   1.0 s",
            "2 passed, 0 failed, 0 skipped",
        ];
        let allowed = Allowed::default();
        let (printed, blocks) = pass(&allowed, &lines);
        assert_eq!(printed[0], "not ok 1 - slow # about");
        assert_eq!(printed[1], format!("{long}, more than a tick"));
        assert_eq!(printed[4], "ok 2 - quick # about");
        assert_eq!(
            (blocks.worse, &blocks.failed[..]),
            (1, &["slow".into()][..])
        );
        assert_eq!(blocks.count, Count::parse("1 passed, 1 failed, 0 skipped"));
        let allowed = Allowed::parse("slow: known\nslow/share: known\n");
        assert_eq!(pass(&allowed, &lines).1.worse, 0);
        let allowed = Allowed::parse("slow: known\nslow/waits: of another kind\n");
        assert_eq!(pass(&allowed, &lines).1.worse, 1);
    }

    #[test]
    fn waits_and_warnings_fail_a_case() {
        for (note, what) in [
            ("waited too long", "waits"),
            ("the kernel warned", "kernel"),
        ] {
            let note = format!("#   {note}: x");
            let lines = ["ok 1 - late # about", &note, "#   1 s"];
            assert_eq!(pass(&Allowed::default(), &lines).1.worse, 1);
            let allowed = Allowed::parse(&format!("late/{what}: known"));
            assert_eq!(pass(&allowed, &lines).1.worse, 0);
        }
    }

    #[test]
    fn a_case_that_failed_is_not_counted_twice() {
        let lines = [
            "not ok 1 - late # about",
            "#   waited too long: x",
            "#   1 s",
        ];
        let allowed = Allowed::default();
        let (printed, blocks) = pass(&allowed, &lines);
        assert_eq!(printed, lines);
        assert_eq!((blocks.worse, blocks.failed.len()), (0, 1));
    }

    #[test]
    fn cases_of_a_guest_that_is_gone_are_counted() {
        let lines = [
            "ok 1 - a # about",
            "#   1 s",
            "ok 2 - b # SKIP not here",
            "#   1 s",
            "not ok 3 - c # about",
            "#   1 s",
            "ok 4 - d # about",
        ];
        let allowed = Allowed::default();
        let (_, mut blocks) = pass(&allowed, &lines);
        assert_eq!(blocks.count, None);
        assert_eq!(blocks.finish(), [lines[6]]);
        assert_eq!(blocks.count, Count::parse("1 passed, 2 failed, 1 skipped"));
        let (_, mut none) = pass(&allowed, &[]);
        none.finish();
        assert_eq!(none.count, Some(Count::default()));
    }
}
