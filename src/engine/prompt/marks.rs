//! Marks that travel through a template with a message's text and show where it came out. They are characters
//! from the private planes that occur nowhere else.

use std::collections::HashSet;

use super::matcher::SpecialMatcher;

/// How a message is marked in a rendering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marking {
    /// Before and after: its text is found exactly.
    Full,
    /// After it: the template looks at how it begins.
    EndOnly,
    /// Not at all.
    Off,
}

impl Marking {
    /// The next weaker marking.
    pub fn weaker(self) -> Marking {
        match self {
            Marking::Full => Marking::EndOnly,
            Marking::EndOnly | Marking::Off => Marking::Off,
        }
    }
}

/// A stretch of marked text.
#[derive(Debug, PartialEq, Eq)]
pub enum Segment<'a> {
    /// Text between marks.
    Text(&'a str),
    /// A message's text begins.
    Start(usize),
    /// A message's text ends.
    End(usize),
}

const DIGITS: usize = 5;
const BLOCK: u32 = 20;
const PRIVATE_PLANES: [u32; 2] = [0xF_0000, 0x10_0000];
const PLANE_SIZE: u32 = 0xFFFE;

/// A hexadecimal digit of a number.
fn digit(number: usize, place: usize) -> u32 {
    u32::try_from((number >> (4 * place)) & 0xF).unwrap_or_default()
}

/// Twenty characters that occur in none of the texts given: sixteen digits and four marks.
#[derive(Debug, Clone, Copy)]
pub struct Marks {
    base: u32,
}

impl Marks {
    /// Chooses the characters; `None` where the texts leave no room.
    pub fn absent_from<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Marks> {
        let mut used: HashSet<u32> = HashSet::new();
        for text in texts {
            // The private planes are encoded in four bytes from F3 B0 on.
            if text.bytes().any(|byte| byte >= 0xF3) {
                used.extend(
                    text.chars()
                        .map(u32::from)
                        .filter(|&c| c >= PRIVATE_PLANES[0]),
                );
            }
        }
        PRIVATE_PLANES
            .into_iter()
            .flat_map(|plane| (0..PLANE_SIZE / BLOCK).map(move |block| plane + block * BLOCK))
            .find(|&base| (base..base + BLOCK).all(|c| !used.contains(&c)))
            .map(|base| Marks { base })
    }

    fn character(self, offset: u32) -> char {
        char::from_u32(self.base + offset).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn start(self) -> char {
        self.character(16)
    }

    fn end(self) -> char {
        self.character(17)
    }

    /// Opens text that must stay text.
    pub fn open(self) -> char {
        self.character(18)
    }

    /// Closes text that must stay text.
    pub fn close(self) -> char {
        self.character(19)
    }

    fn numbered(self, mark: char, number: usize) -> String {
        let digits = (0..DIGITS)
            .rev()
            .map(|place| self.character(digit(number, place)));
        std::iter::once(mark).chain(digits).collect()
    }

    /// A message's text without the whitespace at its edges, marked before and after.
    pub fn around(self, number: usize, core: &str) -> String {
        self.numbered(self.start(), number) + core + &self.numbered(self.end(), number)
    }

    /// A message's text, marked after.
    pub fn after(self, number: usize, text: &str) -> String {
        text.to_string() + &self.numbered(self.end(), number)
    }

    /// The text with the special texts in it wrapped, except those in `allowed`.
    pub fn escape(self, text: &str, matcher: &SpecialMatcher, allowed: &[&str]) -> String {
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for found in matcher.find_all(text) {
            if allowed.contains(&&text[found.clone()]) {
                continue;
            }
            out.push_str(&text[done..found.start]);
            out.push(self.open());
            out.push_str(&text[found.clone()]);
            out.push(self.close());
            done = found.end;
        }
        out.push_str(&text[done..]);
        out
    }

    /// Marked text taken apart; `None` where the template broke a mark.
    pub fn segments(self, text: &str) -> Option<Vec<Segment<'_>>> {
        let mut segments = Vec::new();
        let mut rest = text;
        let reserved = |c: char| (self.base..=self.base + 17).contains(&u32::from(c));
        while let Some(at) = rest.find(reserved) {
            if at > 0 {
                segments.push(Segment::Text(&rest[..at]));
            }
            let mut characters = rest[at..].chars();
            let mark = characters.next()?;
            let mut number = 0;
            for _ in 0..DIGITS {
                let digit = u32::from(characters.next()?)
                    .checked_sub(self.base)
                    .filter(|&digit| digit < 16)?;
                number = number << 4 | digit as usize;
            }
            match mark {
                mark if mark == self.start() => segments.push(Segment::Start(number)),
                mark if mark == self.end() => segments.push(Segment::End(number)),
                _ => return None,
            }
            rest = characters.as_str();
        }
        if !rest.is_empty() {
            segments.push(Segment::Text(rest));
        }
        Some(segments)
    }
}
