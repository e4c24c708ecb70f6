//! Draws docs/screen.svg: the real program in a terminal of its own, chatting with a real model, its screen taken in
//! the middle of a reply. Everything is waited for by what the screen shows.
//!
//! `screenshot PLATEN MODEL OUT.svg [COLUMNS ROWS]`

#[path = "screenshot/session.rs"]
mod session;
#[path = "screenshot/shapes.rs"]
mod shapes;
#[path = "screenshot/svg.rs"]
mod svg;

use std::path::Path;

use anyhow::Context as _;
use session::Session;

/// The conversation: short, and within what a small model knows.
const FIRST: &str = "Is Paris the capital of France?";
const SECOND: &str = "Why is the sky blue?";
/// The temperature is raised once the second reply has this many tokens.
const BEFORE_CHANGE: u32 = 24;
/// The picture is taken once it has this many.
const AT_PICTURE: u32 = 72;
/// Alt-Up, as a terminal sends it.
const WARMER: &str = "\x1b[1;3A";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (program, model, target, size) = match arguments.as_slice() {
        [program, model, target] => (program, model, target, ("120", "34")),
        [program, model, target, columns, rows] => {
            (program, model, target, (columns.as_str(), rows.as_str()))
        }
        _ => anyhow::bail!("usage: screenshot PLATEN MODEL OUT.svg [COLUMNS ROWS]"),
    };
    let size = (size.0.parse()?, size.1.parse()?);
    let flags = ["--seed", "1", "--temp", "0.2", "--max-tokens", "400", model];
    let mut session = Session::start(Path::new(program), &flags, size)?;

    session.wait("the model", |screen| screen.contains("○ idle"))?;
    session.say(FIRST)?;
    session.wait("the first reply", |screen| {
        screen.contains("○ idle") && generated(screen) > 0
    })?;
    session.say(SECOND)?;
    session.wait("the second reply", |screen| {
        screen.contains("● decoding") && (BEFORE_CHANGE..AT_PICTURE).contains(&generated(screen))
    })?;
    session.keys(WARMER)?;
    session.wait("the middle of the reply", |screen| {
        screen.contains("● decoding") && generated(screen) >= AT_PICTURE
    })?;
    let picture = svg::draw(&session.screen());
    session.keys("\x1b")?;
    session.wait("the end", |screen| screen.contains("○ idle"))?;
    session.keys("\x04")?;
    session.ended()?;
    std::fs::write(target, picture).with_context(|| format!("cannot write {target}"))
}

/// The tokens of the reply, by the Speed panel's row of decode; 0 where it has none yet.
fn generated(screen: &str) -> u32 {
    let row = screen
        .lines()
        .filter_map(|row| row.rsplit_once("│ decode ").map(|(_, figures)| figures));
    let mut counted = row.filter_map(|figures| figures.split_once(" tok/s")?.1.split_once(" tok"));
    counted
        .find_map(|(count, _)| count.trim().replace(',', "").parse().ok())
        .unwrap_or(0)
}
