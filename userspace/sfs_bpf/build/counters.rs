//! Reads the list of counters from `counters.h`.

use std::fmt::Write;

/// Returns a macro that passes the list to another one: for each published
/// counter its field in the statistics, its number in the bindings, and its
/// description.
///
/// # Errors
///
/// A line is not a counter, or there is none: a sentence about it.
pub fn to_macro(header: &str) -> Result<String, String> {
    let (_, list) = header
        .split_once("#define SFS_COUNTERS(PUBLISHED, INTERNAL) \\\n")
        .ok_or("it does not define SFS_COUNTERS(PUBLISHED, INTERNAL)")?;
    let mut entries = String::new();
    for line in list.lines().take_while(|line| !line.is_empty()) {
        let line = line.trim().trim_end_matches('\\').trim_end();
        if let Some((name, text)) = published(line) {
            let field = name.to_lowercase();
            let number = format!("sfs_counter_SFS_{name}");
            let _ = writeln!(entries, "            {field} = {number}: \"{text}\",");
        } else if !line.starts_with("INTERNAL(") {
            return Err(format!("this line is not a counter: {line}"));
        }
    }
    if entries.is_empty() {
        return Err("it has no counters".to_owned());
    }
    Ok(format!(
        "/// Passes the list of the counters to another macro: field, number, description.\n\
         #[macro_export]\n\
         macro_rules! with_kernel_counters {{\n    \
             ($then:ident {{ $($given:tt)* }}) => {{\n        \
                 $then! {{ $($given)* kernel {{\n{entries}        }} }}\n    \
             }};\n\
         }}\n"
    ))
}

/// Returns the name and the description, if `line` is `PUBLISHED(NAME, "text")`.
fn published(line: &str) -> Option<(&str, &str)> {
    let inside = line.strip_prefix("PUBLISHED(")?.strip_suffix(')')?;
    let (name, text) = inside.split_once(", ")?;
    let text = text.strip_prefix('"')?.strip_suffix('"')?;
    let is_plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let good = !name.is_empty() && name.chars().all(is_plain) && !text.contains(['"', '\\']);
    good.then_some((name, text))
}
