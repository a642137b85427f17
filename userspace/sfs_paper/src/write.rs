//! Writes figures to files: Markdown, CSV and SVG.

use crate::chart::csv;
use crate::data::Measured;
use crate::figures::{self, Drawn, Figure};
use crate::published;
use crate::table::Table;
use anyhow::{Context, Result};
use faas_data::output::Output;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The beginning of a figure's text.
const MEASURED: &str = "Measured:";

/// File name of a figure's text in its folder.
pub const TEXT: &str = "figure.md";

/// Writes `drawn` to `folder`, and deletes the folder's earlier content.
///
/// # Errors
/// If a file cannot be written, or there is nothing to draw.
pub fn figure(folder: &Path, figure: &Figure, drawn: &Drawn, measured: &[Measured]) -> Result<()> {
    let fresh = folder.with_extension("new");
    let cannot = || format!("cannot write to {}", folder.display());
    if fresh.exists() {
        std::fs::remove_dir_all(&fresh).with_context(cannot)?;
    }
    std::fs::create_dir_all(&fresh).with_context(cannot)?;
    if let Err(error) = fill_folder(&fresh, figure, drawn, measured) {
        // Half a figure is useless.
        let _ = std::fs::remove_dir_all(&fresh);
        return Err(error).with_context(cannot);
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(cannot)?;
    }
    std::fs::rename(&fresh, folder).with_context(cannot)
}

fn fill_folder(folder: &Path, figure: &Figure, drawn: &Drawn, measured: &[Measured]) -> Result<()> {
    let put = |name: String, content: &[u8]| std::fs::write(folder.join(name), content);
    for table in &drawn.tables {
        put(format!("table-{}.csv", table.name), &table.csv()?)?;
    }
    for chart in &drawn.charts {
        let nothing = || format!("there is nothing to draw in {}", chart.name);
        let svg = chart.svg().with_context(nothing)?;
        put(format!("{}.svg", chart.name), svg.as_bytes())?;
        put(format!("{}.csv", chart.name), &csv(chart)?)?;
    }
    let published = published::table(figure.id, Some(measured))?;
    if let Some(table) = &published {
        put("table-published.csv".to_string(), &table.csv()?)?;
    }
    let text = text(published.as_ref(), drawn, measured);
    put(TEXT.to_string(), text.as_bytes())?;
    Ok(())
}

/// The figure as Markdown, with picture names relative to its folder.
fn text(published: Option<&Table>, drawn: &Drawn, measured: &[Measured]) -> String {
    let mut text = format!("{}\n", provenance(measured));
    if let Some(table) = published {
        let _ = write!(text, "\n{}", table.markdown());
    }
    for table in &drawn.tables {
        let _ = write!(text, "\n{}", table.markdown());
    }
    for chart in &drawn.charts {
        let _ = write!(text, "\n![{}]({}.svg)\n", chart.title, chart.name);
    }
    for run in measured.iter().flat_map(|one| &one.runs) {
        if let Some(trouble) = run.trouble() {
            let _ = write!(text, "\nNot a clean measurement: {trouble}.\n");
        }
    }
    for note in &drawn.notes {
        let _ = write!(text, "\n{note}\n");
    }
    text
}

/// The measurement and its machine.
fn provenance(measured: &[Measured]) -> String {
    let Some(first) = measured.first() else {
        return String::new();
    };
    let sources: BTreeSet<&str> = measured.iter().map(|one| one.source.as_str()).collect();
    let sources: Vec<&str> = sources.into_iter().collect();
    let mut parts = vec![
        format!(
            "{} invocations of {}",
            first.trace.len(),
            sources.join(", ")
        ),
        format!("{} CPUs", first.cpus),
    ];
    let live = measured
        .iter()
        .flat_map(|one| &one.runs)
        .find(|run| !run.summary.is_simulated());
    if let Some(run) = live {
        parts.push(format!("Linux {}", run.summary.kernel));
        parts.push(run.summary.accel.clone());
    }
    let own = measured
        .iter()
        .flat_map(|one| &one.runs)
        .find(|run| run.name.starts_with("scx_sfs"));
    if let Some(run) = own {
        parts.push(format!("scx_sfs {}", run.summary.scheduler.version));
    }
    let loads: Vec<String> = measured
        .iter()
        .filter_map(|one| one.runs.first()?.summary.trace.offered_load)
        .map(|load| format!("{load:.3}"))
        .collect();
    parts.push(format!("offered load {}", loads.join(", ")));
    let commits: BTreeSet<&str> = measured
        .iter()
        .map(|one| one.commit.as_deref().unwrap_or("unknown"))
        .collect();
    let commits: Vec<&str> = commits.into_iter().collect();
    parts.push(format!("commit {}", commits.join(", ")));
    format!("{MEASURED} {}.", parts.join(", "))
}

/// The content of the mark of a figure without a measurement; `None` if there
/// is no such figure.
fn unmeasured(id: &str) -> Result<Option<String>> {
    let known = figures::all().iter().any(|figure| figure.id == id);
    if !known && id != published::NONE {
        return Ok(None);
    }
    let mut text = match known {
        true => format!("Not measured yet: `make paper FIG={id}`.\n"),
        false => String::new(),
    };
    if let Some(table) = published::table(id, None)? {
        if known {
            text += "\n";
        }
        text += &table.markdown();
    }
    Ok(Some(text))
}

/// Inserts the figures into the text of a document, between the lines `<!--
/// figure ID -->` and `<!-- end of figure ID -->`. Figures that are not in
/// `figures` stay unchanged if the document has a measurement of them; else the
/// published numbers stand alone. Pictures go to `pictures`; the document links
/// to them by the folder's last component. Returns the number of figures
/// inserted.
///
/// # Errors
/// If a mark has no end, or a file cannot be copied.
pub fn fill(document: &str, figures: &Path, pictures: &Path) -> Result<(String, usize)> {
    let mut filled = String::new();
    let mut count = 0;
    let mut rest = document;
    while let Some((before, id, inner, after)) = next_mark(rest)? {
        filled += before;
        let folder = figures.join(id);
        let _ = writeln!(filled, "<!-- figure {id} -->");
        match std::fs::read_to_string(folder.join(TEXT)) {
            Ok(text) => {
                filled += &adopt(&text, id, &folder, pictures)?;
                count += 1;
            }
            Err(_) if inner.starts_with(MEASURED) => filled += inner,
            Err(_) => filled += &unmeasured(id)?.unwrap_or_else(|| inner.to_string()),
        }
        let _ = writeln!(filled, "<!-- end of figure {id} -->");
        rest = after;
    }
    filled += rest;
    Ok((filled, count))
}

/// The text before the next mark, its id, its content, and the text after it.
fn next_mark(text: &str) -> Result<Option<(&str, &str, &str, &str)>> {
    const OPEN: &str = "<!-- figure ";
    const CLOSE: &str = " -->\n";
    let Some(start) = text.find(OPEN) else {
        return Ok(None);
    };
    let behind = &text[start + OPEN.len()..];
    let (id, inner) = behind
        .split_once(CLOSE)
        .context("a mark is not closed by -->")?;
    let end = format!("<!-- end of figure {id}{CLOSE}");
    let (inner, after) = inner
        .split_once(end.as_str())
        .with_context(|| format!("figure {id} has no line {}", end.trim()))?;
    Ok(Some((&text[..start], id, inner, after)))
}

/// The text of a figure, with its pictures copied and their links renamed.
fn adopt(text: &str, id: &str, folder: &Path, pictures: &Path) -> Result<String> {
    let cannot = || format!("cannot copy the pictures of figure {id}");
    std::fs::create_dir_all(pictures).with_context(cannot)?;
    let base = pictures.file_name().map(PathBuf::from).unwrap_or_default();
    let mut adopted = text.to_string();
    let entries = std::fs::read_dir(folder).with_context(cannot)?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_none_or(|extension| extension != "svg") {
            continue;
        }
        let own = path.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{id}-{own}");
        let picture = std::fs::read(&path).with_context(cannot)?;
        let copy = Output::create(&pictures.join(&name)).with_context(cannot)?;
        copy.commit(&picture).with_context(cannot)?;
        let target = base.join(&name);
        adopted = adopted.replace(&format!("({own})"), &format!("({})", target.display()));
    }
    Ok(adopted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_figures_are_inserted_into_a_document() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("figures/6");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(TEXT), "new\n![x](load1.00.svg)\n").unwrap();
        std::fs::write(folder.join("load1.00.svg"), "<svg/>").unwrap();
        let document = "a\n<!-- figure 6 -->\nold\n<!-- end of figure 6 -->\nb\n\
                        <!-- figure 7 -->\nMeasured: kept\n<!-- end of figure 7 -->\nc\n";
        let pictures = dir.path().join("docs/results");
        let (filled, count) = fill(document, &dir.path().join("figures"), &pictures).unwrap();
        assert_eq!(count, 1);
        let want = "a\n<!-- figure 6 -->\nnew\n![x](results/6-load1.00.svg)\n<!-- end of figure 6 -->\nb\n\
                    <!-- figure 7 -->\nMeasured: kept\n<!-- end of figure 7 -->\nc\n";
        assert_eq!(filled, want);
        assert!(pictures.join("6-load1.00.svg").exists());
        // A second run changes nothing.
        assert_eq!(
            fill(&filled, &dir.path().join("figures"), &pictures)
                .unwrap()
                .0,
            want
        );
    }

    #[test]
    fn a_figure_without_a_measurement_shows_what_is_published() {
        let document = "<!-- figure headline -->\nold\n<!-- end of figure headline -->\n\
                        <!-- figure - -->\nold\n<!-- end of figure - -->\n\
                        <!-- figure mine -->\nold\n<!-- end of figure mine -->\n";
        let (filled, count) = fill(document, Path::new("/none"), Path::new("/none")).unwrap();
        assert_eq!(count, 0);
        assert!(
            filled.contains("Not measured yet: `make paper FIG=headline`.\n\nPublished, and ours:")
        );
        assert!(filled.contains("| 49.6x | not measured yet |"), "{filled}");
        assert!(
            filled.contains("<!-- figure - -->\nPublished, and ours:"),
            "{filled}"
        );
        assert!(filled.contains("<!-- figure mine -->\nold\n"), "{filled}");
    }

    #[test]
    fn a_mark_without_an_end_is_an_error() {
        let said = fill(
            "<!-- figure 6 -->\nold\n",
            Path::new("/none"),
            Path::new("/none"),
        );
        assert!(said
            .unwrap_err()
            .to_string()
            .contains("figure 6 has no line"));
    }
}
