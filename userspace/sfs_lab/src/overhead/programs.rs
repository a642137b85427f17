//! CPU time of each BPF program.

use super::table::{number, row};

/// A handful of calls say nothing of what is typical.
const ENOUGH: f64 = 50.0;

/// A crowd's measurement of one program.
#[derive(Debug, Clone, Default)]
struct Cost {
    calls: f64,
    /// Both in ns.
    mean: f64,
    typical: f64,
}

/// Rows for the programs, and a column for each file, which has lines of program, calls,
/// mean and typical ns. The last two rows have what all of them come to for each call of
/// `per`.
pub fn costs(per: &str, files: &[String]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for line in files.iter().flat_map(|file| file.lines()) {
        let name = line.split_whitespace().next().unwrap_or_default();
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    let columns: Vec<Vec<Cost>> = files.iter().map(|file| column(file, &names)).collect();
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        let known = |column: &Vec<Cost>| column[index].calls >= ENOUGH;
        if columns.iter().any(known) {
            let cells = columns.iter().map(|column| {
                us(if known(column) {
                    column[index].typical
                } else {
                    0.0
                })
            });
            text += &titled(format!("`{name}`"), cells);
        }
    }
    let at = names.iter().position(|name| *name == per);
    let each = |cost: fn(&Cost) -> f64| {
        let per_call = move |column: &Vec<Cost>| {
            let sum: f64 = column.iter().map(|one| one.calls * cost(one)).sum();
            let calls = at.map_or(0.0, |at| column[at].calls);
            us(if calls > 0.0 { sum / calls } else { 0.0 })
        };
        columns.iter().map(per_call)
    };
    text += &titled(format!("all, for each `{per}`"), each(|one| one.typical));
    text + &titled("the same by means".into(), each(|one| one.mean))
}

/// The measurements of each program in one file.
fn column(file: &str, names: &[&str]) -> Vec<Cost> {
    let mut costs = vec![Cost::default(); names.len()];
    for line in file.lines() {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let Some(at) = names.iter().position(|known| *known == name) else {
            continue;
        };
        let mut next = || number(words.next());
        let (calls, mean, typical) = (next(), next(), next());
        if calls != 0.0 {
            costs[at] = Cost {
                calls,
                mean,
                typical,
            };
        }
    }
    costs
}

fn titled(title: String, cells: impl Iterator<Item = String>) -> String {
    let mut row_cells = vec![title];
    row_cells.extend(cells);
    row(&row_cells)
}

/// From ns; nothing is `-`.
fn us(ns: f64) -> String {
    match ns == 0.0 {
        true => "-".into(),
        false => format!("{:.2}", ns / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_costs_are_shown_of_what_is_called_often() {
        let one = "sfs_running 100 500 400\nsfs_tick 60 3000 2000\nsfs_enable 3 100 100\n";
        let two = "sfs_running 50 450 440\nsfs_tick 0 0 0\nsfs_dispatch 200 1300 1250\n";
        let table = costs("sfs_running", &[one.into(), two.into()]);
        assert_eq!(
            table,
            "| `sfs_running` | 0.40 | 0.44 |\n\
             | `sfs_tick` | 2.00 | - |\n\
             | `sfs_dispatch` | - | 1.25 |\n\
             | all, for each `sfs_running` | 1.60 | 5.44 |\n\
             | the same by means | 2.30 | 5.65 |\n"
        );
    }

    #[test]
    fn what_was_never_called_divides_nothing() {
        let table = costs("sfs_running", &["sfs_tick 60 3000 2000\n".into()]);
        assert!(
            table.ends_with("`sfs_running` | - |\n| the same by means | - |\n"),
            "{table}"
        );
    }
}
