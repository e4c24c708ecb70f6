//! Where everything stands, for every size of the terminal. Pure numbers: the state needs them to wrap and to
//! scroll, the drawing to draw.

use ratatui::layout::Rect;

use super::state::Panels;

/// The least size that holds a chat.
pub const LEAST: (u16, u16) = (20, 5);

/// How much fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Nothing but a sentence.
    TooSmall,
    /// The chat alone, without a frame.
    Small,
    /// The chat in a frame, with two lines of figures.
    Medium,
    /// The chat in a frame, with the panels at its side.
    Wide,
}

/// The places on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// How much fits.
    pub class: Class,
    /// The whole screen.
    pub screen: Rect,
    /// The title bar.
    pub title: Rect,
    /// Two lines of figures; empty unless medium.
    pub strip: Rect,
    /// The frame; empty where there is none.
    pub frame: Rect,
    /// The conversation's text.
    pub chat: Rect,
    /// The panels' insides; empty unless wide.
    pub side: Rect,
    /// The row of the line between chat and draft.
    pub divider: u16,
    /// Notices and queued messages.
    pub notices: Rect,
    /// The draft, its prompt sign included.
    pub composer: Rect,
    /// The sampling bar and the key hints.
    pub footer: Rect,
}

/// What the layout depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// The terminal's columns and rows.
    pub size: (u16, u16),
    /// Whether figures are shown.
    pub panels: Panels,
    /// Rows of notices and queued messages.
    pub notice_rows: u16,
    /// Rows of the draft.
    pub composer_rows: u16,
}

impl Layout {
    /// How much fits into this size.
    #[must_use]
    pub fn class((width, height): (u16, u16), panels: Panels) -> Class {
        if width < LEAST.0 || height < LEAST.1 {
            Class::TooSmall
        } else if width < 60 || height < 16 {
            Class::Small
        } else if width < 100 || panels == Panels::Hidden {
            Class::Medium
        } else {
            Class::Wide
        }
    }

    /// The columns that the draft's text has, its prompt sign left out.
    #[must_use]
    pub fn composer_width(size: (u16, u16), panels: Panels) -> u16 {
        let around = match Layout::class(size, panels) {
            Class::TooSmall | Class::Small => 2,
            Class::Medium | Class::Wide => 6,
        };
        size.0.saturating_sub(around).max(1)
    }

    /// The most rows that the draft takes.
    #[must_use]
    pub fn composer_most(size: (u16, u16)) -> u16 {
        (size.1 / 3).max(1)
    }

    /// Places everything.
    #[must_use]
    pub fn new(contents: Contents) -> Layout {
        let (width, height) = contents.size;
        let class = Layout::class(contents.size, contents.panels);
        let screen = Rect::new(0, 0, width, height);
        let framed = matches!(class, Class::Medium | Class::Wide);
        let strip_rows = match (class, contents.panels) {
            (Class::Medium, Panels::Shown) => 2,
            (Class::TooSmall | Class::Small | Class::Wide, _) | (Class::Medium, Panels::Hidden) => {
                0
            }
        };
        let chat_top = 1 + strip_rows + u16::from(framed);
        // What is left beside title, strip, frame, divider, footer and one row of chat goes to draft and notices.
        let free = height.saturating_sub(chat_top + 3);
        let composer_rows = contents
            .composer_rows
            .clamp(1, Layout::composer_most(contents.size))
            .min(free);
        let notice_rows = contents
            .notice_rows
            .min(free.saturating_sub(composer_rows))
            .min(height / 4);
        let divider = height.saturating_sub(2 + composer_rows + notice_rows);
        let inset = if framed { 2 } else { 0 };
        let inner = width.saturating_sub(2 * inset);
        let side_width = match class {
            Class::TooSmall | Class::Small | Class::Medium => 0,
            Class::Wide if width >= 130 => 46,
            Class::Wide => 40,
        };
        let chat_rows = divider.saturating_sub(chat_top);
        let chat_width = inner.saturating_sub(if side_width > 0 { side_width + 1 } else { 0 });
        let side = match side_width {
            0 => Rect::default(),
            columns => Rect::new(width - 1 - columns, chat_top, columns, chat_rows),
        };
        let frame = if framed {
            Rect::new(0, chat_top - 1, width, height.saturating_sub(chat_top - 1))
        } else {
            Rect::default()
        };
        Layout {
            class,
            screen,
            title: Rect::new(0, 0, width, 1).intersection(screen),
            strip: Rect::new(0, 1, width, strip_rows).intersection(screen),
            frame,
            chat: Rect::new(inset, chat_top, chat_width, chat_rows).intersection(screen),
            side,
            divider,
            notices: Rect::new(inset, divider + 1, inner, notice_rows).intersection(screen),
            composer: Rect::new(inset, divider + 1 + notice_rows, inner, composer_rows)
                .intersection(screen),
            footer: Rect::new(0, height.saturating_sub(1), width, 1).intersection(screen),
        }
    }

    /// Where a page lies over the chat: its insides.
    #[must_use]
    pub fn page(&self) -> Rect {
        let top = self.title.bottom();
        let rows = self.footer.y.saturating_sub(top);
        let around = Rect::new(0, top, self.screen.width, rows);
        match self.class {
            Class::TooSmall => Rect::default(),
            Class::Small => Rect::new(0, top + 1, around.width, rows.saturating_sub(1)),
            Class::Medium | Class::Wide => Rect::new(
                2,
                top + 1,
                around.width.saturating_sub(4),
                rows.saturating_sub(1),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(width: u16, height: u16, panels: Panels) -> Layout {
        Layout::new(Contents {
            size: (width, height),
            panels,
            notice_rows: 3,
            composer_rows: 9,
        })
    }

    #[test]
    fn nothing_leaves_the_screen_and_nothing_overlaps_at_any_size() {
        for (width, height) in (0..160).flat_map(|width| (0..50).map(move |height| (width, height)))
        {
            for panels in [Panels::Shown, Panels::Hidden] {
                let it = layout(width, height, panels);
                for place in [
                    it.title,
                    it.strip,
                    it.chat,
                    it.side,
                    it.notices,
                    it.composer,
                    it.footer,
                ] {
                    assert_eq!(
                        place.intersection(it.screen),
                        place,
                        "{width}×{height} {it:?}"
                    );
                }
                if it.class != Class::TooSmall {
                    assert!(
                        it.chat.height >= 1 && it.composer.height >= 1,
                        "{width}×{height} {it:?}"
                    );
                    assert_eq!(it.chat.bottom(), it.divider, "{width}×{height}");
                    assert_eq!(it.composer.bottom(), it.footer.y, "{width}×{height}");
                }
            }
        }
    }

    #[test]
    fn the_class_follows_the_size() {
        let class = |width, height| layout(width, height, Panels::Shown).class;
        assert_eq!(class(19, 40), Class::TooSmall);
        assert_eq!(class(80, 4), Class::TooSmall);
        assert_eq!(class(59, 40), Class::Small);
        assert_eq!(class(140, 15), Class::Small);
        assert_eq!(class(60, 16), Class::Medium);
        assert_eq!(class(100, 16), Class::Wide);
        assert_eq!(layout(140, 40, Panels::Hidden).class, Class::Medium);
    }

    #[test]
    fn the_draft_takes_a_third_of_the_screen_at_most() {
        assert_eq!(layout(80, 24, Panels::Shown).composer.height, 8);
        let one = Contents {
            size: (80, 24),
            panels: Panels::Shown,
            notice_rows: 0,
            composer_rows: 1,
        };
        assert_eq!(Layout::new(one).composer.height, 1);
    }
}
