//! The pictures as files: SVG, and PNG for where SVG cannot go.
//!
//! The PNG files are drawn from the SVG ones with a font that comes with the
//! program (Noto Sans), so that they do not depend on the host's fonts.

use super::svg::Picture;
use super::{charts, style, Comparison};
use anyhow::{Context, Result};
use faas_data::output::Output;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{fontdb::Database, Options, Tree};
use std::path::Path;
use std::sync::Arc;

/// Pixels of a PNG for each pixel of its SVG.
const ZOOM: f32 = 3.0;

/// Writes every picture to `folder` as NAME.svg; makes the folder.
///
/// # Errors
/// If the folder or a file cannot be written.
pub fn write_svg(comparison: &Comparison, folder: &Path) -> Result<()> {
    let style = style::file();
    write_all(comparison, folder, "svg", |picture| {
        Ok(picture.file(&style).into_bytes())
    })
}

/// Writes every picture to `folder` as NAME.png; makes the folder.
///
/// # Errors
/// If the folder or a file cannot be written.
pub fn write_png(comparison: &Comparison, folder: &Path) -> Result<()> {
    let style = style::file();
    let options = options();
    write_all(comparison, folder, "png", |picture| {
        to_png(&picture.file(&style), &options)
    })
}

fn write_all(
    comparison: &Comparison,
    folder: &Path,
    suffix: &str,
    content: impl Fn(&Picture) -> Result<Vec<u8>>,
) -> Result<()> {
    let cannot = || format!("cannot make the folder {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    for picture in charts::all(comparison) {
        let output = Output::create(&folder.join(format!("{}.{suffix}", picture.name)))?;
        output.commit(&content(&picture)?)?;
    }
    Ok(())
}

/// How SVG is read: with our font alone.
fn options() -> Options<'static> {
    let mut fonts = Database::new();
    fonts.load_font_data(notosans::REGULAR_TTF.to_vec());
    fonts.load_font_data(notosans::BOLD_TTF.to_vec());
    fonts.set_sans_serif_family("Noto Sans");
    Options {
        font_family: "Noto Sans".to_string(),
        fontdb: Arc::new(fonts),
        ..Options::default()
    }
}

fn to_png(svg: &str, options: &Options) -> Result<Vec<u8>> {
    let tree = Tree::from_str(svg, options).context("cannot read our own picture")?;
    let size = tree.size().to_int_size();
    let pixels = |length: u32| (length as f32 * ZOOM) as u32;
    let mut pixmap = Pixmap::new(pixels(size.width()), pixels(size.height()))
        .context("a picture is too large to draw")?;
    let zoom = Transform::from_scale(ZOOM, ZOOM);
    resvg::render(&tree, zoom, &mut pixmap.as_mut());
    pixmap.encode_png().context("cannot encode a picture")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of pixels that are not white.
    fn ink(text: &str) -> usize {
        let mut picture = Picture::new("t", (100.0, 30.0), "t", "");
        picture.text("name", (10.0, 20.0), "start", text);
        let png = to_png(&picture.file(&style::file()), &options()).unwrap();
        let pixmap = Pixmap::decode_png(&png).unwrap();
        assert_eq!((pixmap.width(), pixmap.height()), (300, 90));
        let white = |pixel: &&resvg::tiny_skia::PremultipliedColorU8| pixel.red() < 128;
        pixmap.pixels().iter().filter(white).count()
    }

    #[test]
    fn text_is_drawn_wherever_it_runs() {
        assert_eq!(ink(""), 0);
        assert!(ink("scx_sfs") > 500, "{}", ink("scx_sfs"));
        assert!(ink("µ") > 20);
    }
}
