//! The conversation, with the cursor of the reply that is being written.

use ratatui::Frame;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::app::App;
use crate::app::layout::Layout;
use crate::engine::token::Role;
use crate::text::{self, LineKind};

use super::{put_lines, welcome};

/// Draws the conversation, or what stands there before it begins.
pub fn draw(frame: &mut Frame, app: &App, layout: &Layout) {
    let area = layout.chat;
    if app.conversation.messages().is_empty() {
        welcome::draw(frame, app, area);
        return;
    }
    let visible: Vec<&text::Line> = app.transcript.visible(area.height).collect();
    let mut lines: Vec<Line> = visible
        .iter()
        .map(|line| Line::styled(line.text.as_str(), style(app, line.kind)))
        .collect();
    if let Some(last) = end_of_reply(app, &visible)
        && lines[last].width() < usize::from(area.width)
    {
        lines[last].push_span(Span::styled("▌", app.palette.good()));
    }
    put_lines(frame, area, lines);
}

/// The line in sight at which the reply that is being written grows.
fn end_of_reply(app: &App, visible: &[&text::Line]) -> Option<usize> {
    app.streaming()?;
    let reply = app.conversation.messages().len() - 1;
    let is_text = |line: &&text::Line| matches!(line.kind, LineKind::Body | LineKind::Thinking);
    let at_end = app
        .transcript
        .lines_below(u16::try_from(visible.len()).ok()?)
        == 0;
    visible
        .iter()
        .rposition(|line| line.item == reply && is_text(line))
        .filter(|_| at_end)
}

fn style(app: &App, kind: LineKind) -> Style {
    let palette = app.palette;
    match kind {
        LineKind::Header(Role::User) => palette.user().patch(palette.strong()),
        LineKind::Header(Role::Assistant) => palette.model().patch(palette.strong()),
        LineKind::Header(Role::System) => palette.system().patch(palette.strong()),
        LineKind::Body | LineKind::Blank => palette.text(),
        LineKind::Thinking | LineKind::Meta => palette.dim(),
        LineKind::Notice => palette.busy(),
        LineKind::Error => palette.error(),
    }
}

/// A short form of a token's text with its blanks made visible, harmless and on one line.
pub fn quoted(token: &str) -> String {
    let shown: String = token
        .chars()
        .map(|letter| match letter {
            ' ' => '␣',
            '\n' => '⏎',
            '\t' => '⇥',
            other => other,
        })
        .collect();
    text::visible_line(&shown).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blanks_of_a_token_are_visible_and_its_escapes_harmless() {
        assert_eq!(quoted(" Paris"), "␣Paris");
        assert_eq!(quoted("\n\t"), "⏎⇥");
        assert!(!quoted("\u{1b}[2J\u{9b}").chars().any(char::is_control));
    }
}
