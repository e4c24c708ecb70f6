//! The colours: the terminal's own sixteen at most, never black or white, so that every theme stays readable.
//! No meaning is carried by colour alone; without colours everything is still told by words, signs and weight.

use ratatui::style::{Color, Modifier, Style};

/// Which colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Palette {
    /// The terminal's own.
    #[default]
    Ansi,
    /// None (`NO_COLOR`); weight and dimness stay.
    Mono,
}

impl Palette {
    fn coloured(self, colour: Color) -> Style {
        match self {
            Palette::Ansi => Style::new().fg(colour),
            Palette::Mono => Style::new(),
        }
    }

    /// Plain text.
    #[must_use]
    pub fn text(self) -> Style {
        Style::new()
    }

    /// What matters less.
    #[must_use]
    pub fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// What matters more.
    #[must_use]
    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Names, headings, the prompt sign.
    #[must_use]
    pub fn accent(self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Decode, and what went well.
    #[must_use]
    pub fn good(self) -> Style {
        self.coloured(Color::Green)
    }

    /// Prefill, and what needs a look.
    #[must_use]
    pub fn busy(self) -> Style {
        self.coloured(Color::Yellow)
    }

    /// What failed.
    #[must_use]
    pub fn error(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// The user's name and cells.
    #[must_use]
    pub fn user(self) -> Style {
        self.coloured(Color::Cyan)
    }

    /// The model's name and cells.
    #[must_use]
    pub fn model(self) -> Style {
        self.coloured(Color::Green)
    }

    /// The system prompt's cells.
    #[must_use]
    pub fn system(self) -> Style {
        self.coloured(Color::Magenta)
    }

    /// The chosen row of a list.
    #[must_use]
    pub fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
